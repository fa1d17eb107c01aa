// Tables of keys that nobody listed, as the program makes them: exact counts of each window go in, documents come out.

import { describe, generator } from "./example.js";

const HOUR = 3_600_000;
const UNIT = 2 ** -12;
const START = Date.parse("2026-01-05T00:00:00Z");
/** The threshold of noise of scale 4096, of one key of a user and a delta of 1e-9. */
export const THRESHOLD = 84_277;
const SCALE = 4096;

const time = (ms) => new Date(ms).toISOString().replace(".000", "");
const bytes = (key) => new TextEncoder().encode(key);
const byBytes = (one, other) => Buffer.compare(bytes(one), bytes(other));

/** A release of keys by users, each in one key, for epsilon 1 and a delta of 1e-9 a window of an hour. */
export class Worker {
  constructor({ keep = 3, most = 1000, title = undefined } = {}) {
    Object.assign(this, { keep, most, title, random: generator(7), announced: new Map(), window: 0 });
  }

  noise() {
    const geometric = () => Math.floor(-Math.log(1 - this.random()) * SCALE);
    return geometric() - geometric();
  }

  /** The document of the next window. `counts` are users by key. */
  release(counts, isOverfull = false) {
    const start = START + this.window * HOUR;
    const end = start + HOUR;
    const live = new Set([...this.announced].filter(([, until]) => start < until).map(([key]) => key));
    const numbers = new Map();
    for (const key of isOverfull ? [] : [...new Set([...Object.keys(counts), ...live])].sort(byBytes)) {
      let noise = this.noise();
      while (!live.has(key) && Math.abs(noise) > THRESHOLD) noise = this.noise();
      const number = (counts[key] ?? 0) / UNIT + noise;
      if (live.has(key) || number > THRESHOLD) numbers.set(key, number);
    }
    const kept = [...numbers.keys()].sort((a, b) => numbers.get(b) - numbers.get(a)).slice(0, this.most).sort(byBytes);
    const until = new Map(kept.map((key) => [key, !live.has(key) || numbers.get(key) > THRESHOLD ? end + this.keep * HOUR : this.announced.get(key)]));
    if (!isOverfull) this.announced = until;
    // What is empty is absent.
    const some = (name, list) => (list.length ? { [name]: list } : {});
    const rows = kept.map((key) => ({ is_new: !live.has(key), until: time(until.get(key)) }));
    const found = { threshold: THRESHOLD, delta: "0.000000001", keep_seconds: this.keep * 3600, most: this.most, longest: 128, ...some("rows", rows) };
    const price = { epsilon: "1", delta: "0.000000001" };
    const base = describe();
    this.window += 1;
    return {
      ...base, pipeline: "pages", release: "by-page", key: null, window: { start: time(start), end: time(end) }, published: time(end + 300_000),
      target: { counts: { max_keys: 1, parts: [{ of: "users", part: 1 }] } }, meaning: "users of each page", domain: [], degree: 1, order: 1,
      basis: { keys: { ...some("keys", kept), columns: [{ statistic: "users", unit: UNIT }], found: isOverfull ? { ...found, overfull: { limit: 1_000_000, soft_limit: 959_905, is_overfull: true } } : found } },
      noise: { law: "discrete laplace", scale: SCALE, grid: 1, calibrated: "tight" },
      privacy: {
        ...base.privacy, definition: "epsilon-delta", unit: { user: { column: "visitor", per: "1h" } }, price,
        in_words: "All records of one visitor in an hour more or less change the probability of what is published by no more than this price allows.",
        blocks: [{ start: time(start), end: time(end), spent: price, total: price }],
      },
      band: { ...base.band, half_width: 12 * SCALE, weights: [1], pointwise: 3 * SCALE },
      ledger: { ...base.ledger, sequence: this.window }, ...(this.title ? { names: { title: this.title } } : {}),
      values: kept.map((key) => numbers.get(key) * UNIT),
    };
  }
}
