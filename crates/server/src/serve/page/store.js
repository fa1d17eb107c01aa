// The synopses received, in order and without duplicates.

import { named, plain } from "./names.js";

/** The most synopses of one pipeline, release and key; the oldest are dropped. */
const MOST = 500;

const time = (text) => new Date(text).getTime();

/** The length of the newest window in a synopsis, in ms: for a longer sum, its newest pane. */
export const stepOf = (meta) => {
  const { start, end } = meta.panes?.newest ?? meta.window;
  return time(end) - time(start);
};

export class Store {
  #series = new Map();
  #seen = new Set();

  /** Adds a synopsis and its text; returns whether it is new. */
  add(synopsis, text) {
    const { pipeline, release, key, ledger } = synopsis.meta;
    const name = JSON.stringify([ledger.id, ledger.sequence, release, key]);
    if (this.#seen.has(name)) return false;
    this.#seen.add(name);
    const id = JSON.stringify([pipeline, release, key ?? null]);
    if (!this.#series.has(id)) this.#series.set(id, []);
    const series = this.#series.get(id);
    const entry = { synopsis, text, name, meta: named(synopsis.meta) };
    const place = series.findLastIndex((other) => before(other.meta, entry.meta)) + 1;
    series.splice(place, 0, entry);
    // A wall display stays open for months.
    if (series.length > MOST) this.#seen.delete(series.shift().name);
    return true;
  }

  get isEmpty() {
    return this.#series.size === 0;
  }

  pipelines() {
    return [...new Set(this.#names().map(([pipeline]) => pipeline))].sort();
  }

  releases(pipeline) {
    return [...new Set(this.#names().filter(([of]) => of === pipeline).map(([, release]) => release))].sort();
  }

  keys(pipeline, release) {
    return this.#names().filter(([of, is]) => of === pipeline && is === release).map(([, , key]) => key).sort();
  }

  /** Entries `{ synopsis, text, meta }` of a pipeline, release and key, oldest window first. */
  series(pipeline, release, key) {
    return this.#series.get(JSON.stringify([pipeline, release, key ?? null])) ?? [];
  }

  #names() {
    return [...this.#series.keys()].map((id) => JSON.parse(id));
  }
}

function before(a, b) {
  const [x, y] = [time(a.window.end), time(b.window.end)];
  if (x !== y) return x < y;
  const [p, q] = [time(a.published), time(b.published)];
  return p === q ? a.ledger.sequence <= b.ledger.sequence : p < q;
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const lengthOf = ({ window: { start, end } }) => time(end) - time(start);

/** Whether two synopses have the same axes and units, so that they can share a scale. */
export const isOfOneScale = (a, b) => same(scaleOf(a), scaleOf(b));
/** Better names are no other scale. */
const scaleOf = (meta) => [Object.keys(meta.target), plain(meta).domain, plain(meta).meaning];

/** What must be equal for two windows to be the same function of their records; the rest is noise and price. */
const FORM = [
  (meta) => [meta.target, meta.basis, meta.offset ?? 0, meta.degree, meta.order, plain(meta).domain, plain(meta).meaning],
  ({ privacy: { unit, adjacency } }) => [unit, adjacency],
  ({ panes }) => [panes?.over, panes?.step !== undefined],
  // It also changes with a price, which does not affect the function: that loses one comparison, but makes none wrong. Nothing
  // else reveals changed filters or what happens to records outside the domain.
  ({ digests }) => digests.configuration,
];

/**
 * Why `now` cannot be compared with the previous window `then`; undefined if a difference beyond both bands is a difference of the
 * records.
 */
export function whyApart(now, then) {
  if (!(time(then.window.end) < time(now.window.end))) return "both end at the same time";
  const taken = ({ choices }) => (choices ?? []).map((one) => Object.entries(one).map(([kind, own]) => [kind, own.taken]));
  if (!same(taken(now), taken(then))) return "their private choices differ";
  if (FORM.some((of) => !same(of(now), of(then)))) return "their settings differ";
  if (now.synthetic !== then.synthetic) return "the records of one of them are simulated";
  if (now.incomplete || then.incomplete) return "records may be missing";
  const [step, before_] = [now.panes?.step, then.panes?.step];
  // A sum counts its synopses, one per pane: if the count does not match the time between them, the sum has started over.
  const panes = (time(now.panes?.newest.end) - time(then.panes?.newest.end)) / stepOf(now);
  if (step !== undefined && (step - before_ !== panes || now.ledger.id !== then.ledger.id)) return "the running sum has started over";
  return lengthOf(now) === lengthOf(then) ? undefined : "they differ in length";
}
