// Tables of keys that nobody listed: what they say of their keys and of others, their intervals, and what is refused.
import assert from "node:assert/strict";
import test from "node:test";
import { parse, SynopsisError } from "../bernstream.js";
import { THRESHOLD, Worker } from "./found.js";

const UNIT = 2 ** -12;
const MANY = { "/": 40, "/a": 47, "<script>": 54, "=1+1": 61, "\u202eabc": 68, "\u00e9t\u00e9": 75 };
const tableOf = (document) => parse(document).keyTable();

test("a table says which keys are new, until when they are there, and what it means that one is not", () => {
  const worker = new Worker();
  const [first, second] = [0, 1].map(() => tableOf(worker.release({ ...MANY, few: 2 })));
  assert.ok(first.isFound && !first.isOverfull);
  assert.deepEqual(first.newKeys, first.keys);
  assert.deepEqual([...first.keys], ["/", "/a", "<script>", "=1+1", "\u00e9t\u00e9", "\u202eabc"]);
  assert.deepEqual(second.newKeys, []);
  assert.ok(first.isNew("/") && !first.isNew("few") && !second.isNew("/"));
  assert.deepEqual([first.until("/"), second.until("/")], ["2026-01-05T04:00:00Z", "2026-01-05T05:00:00Z"]);
  assert.equal(first.threshold, THRESHOLD * UNIT);
  assert.equal(first.absentBelow, first.threshold);
  for (const ask of [() => first.row("few"), () => first.estimate("few", "users"), () => first.until("few")]) {
    assert.throws(ask, /no key 'few' in this table: it had fewer than about 21 users/);
  }
  assert.deepEqual(Object.keys(first.rows()[0]), ["key", "users", "isNew", "until"]);
  const full = tableOf(new Worker({ most: 3 }).release(MANY));
  assert.equal(full.absentBelow, Math.min(...full.keys.map((key) => full.row(key).users.value)));
});

test("a window without keys and one with too many have empty tables", () => {
  const empty = tableOf(new Worker().release({ few: 1 }));
  const worker = new Worker();
  worker.release(MANY);
  const overfull = tableOf(worker.release(MANY, true));
  for (const table of [empty, overfull]) {
    assert.deepEqual([table.rows(), table.top(3)], [[], { keys: [], isLastUnclear: false }]);
    assert.throws(() => table.row("/"), /no key '\/'/);
  }
  assert.deepEqual([empty.isOverfull, overfull.isOverfull, overfull.absentBelow], [false, true, null]);
  assert.deepEqual(tableOf(worker.release(MANY)).newKeys, [], "an overfull window changes nothing");
});

test("found keys do not add up and have no other noise", () => {
  const synopsis = parse(new Worker().release(MANY));
  assert.throws(() => synopsis.keyTable().margin(), SynopsisError);
  assert.throws(() => synopsis.keyTable().shares(), SynopsisError);
  assert.throws(() => synopsis.sample(1), /other noise would have found others/);
});

test("an interval of a new key has the counts of which neither tail is too thin, by summation", () => {
  const tails = (published, exact) => {
    let [all, above, below] = [0, 0, 0];
    for (let x = Math.max(THRESHOLD + 1 - exact, -THRESHOLD); x <= THRESHOLD; x++) {
      const weight = Math.exp(-Math.abs(x) / 4096);
      all += weight;
      if (exact + x >= published) above += weight;
      if (exact + x <= published) below += weight;
    }
    return [above / all, below / all];
  };
  for (const above of [1000, 5000, 15_000, 40_000, 90_000]) {
    const document = new Worker().release({ "/": 200 });
    document.values = [(THRESHOLD + above) * UNIT];
    const { value, pointwise: [lower, upper] } = tableOf(document).row("/").users;
    assert.ok(lower >= Math.max(1, value - THRESHOLD * UNIT) && upper <= value + THRESHOLD * UNIT);
    const [low, high] = [lower, upper].map((end) => Math.round(end / UNIT));
    if (lower > 1) assert.ok(tails(THRESHOLD + above, low - 2)[0] < 0.025 && tails(THRESHOLD + above, low + 2)[0] > 0.025, `${above}`);
    assert.ok(tails(THRESHOLD + above, high - 2)[1] > 0.025 && tails(THRESHOLD + above, high + 2)[1] < 0.025, `${above}`);
  }
});

test("new keys are told apart by their intervals, and others by the noise of their difference", () => {
  const worker = new Worker();
  const first = tableOf(worker.release({ a: 40, b: 41, c: 200 }));
  assert.deepEqual([first.top(2).isLastUnclear, first.top(1).isLastUnclear], [true, false]);
  // By the noise of the difference they would be apart.
  const near = new Worker().release({ a: 60, b: 60, c: 200 });
  near.values = [21.5, 26, 200];
  const { a, b } = Object.fromEntries(tableOf(near).rows().map(({ key, users }) => [key, users.pointwise]));
  assert.ok(b[0] < a[1] && tableOf(near).top(2).isLastUnclear);
  const document = worker.release({ a: 40, b: 46, c: 200 });
  document.values = [40, 45, 200];
  const later = tableOf(document);
  assert.ok(later.row("b").users.pointwise[0] < later.row("a").users.pointwise[1]);
  assert.ok(!later.top(2).isLastUnclear);
});

const GOOD = new Worker().release({ ...MANY, "\u{1f600}": 60, "\uffee": 60 });
const { rows } = GOOD.basis.keys.found;
const OVERFULL = new Worker().release({}, true);
const rule = (found, of = GOOD) => ({ ...of, basis: { keys: { ...of.basis.keys, found: { ...of.basis.keys.found, ...found } } } });
const row = (more) => rule({ rows: [{ ...rows[0], ...more }, ...rows.slice(1)] });
const keyed = (keys) => ({ ...GOOD, basis: { keys: { ...GOOD.basis.keys, keys } } });

test("tables that do not agree with themselves are refused", () => {
  const { keys } = GOOD.basis.keys;
  assert.equal(tableOf(GOOD).keys.length, 8);
  assert.ok(tableOf(OVERFULL).isOverfull);
  const wrong = [
    [{ ...GOOD, basis: { keys: { ...GOOD.basis.keys, found: 1 } } }, /no object/],
    [rule({ rows: rows.slice(1) }), /whether it is new/],
    [rule({ rows: undefined }), /whether it is new/],
    [rule({ rows: "new" }), /'rows' is not/],
    [row({ is_new: 1 }), /'rows' is not/],
    [row({ until: "soon" }), /'rows' is not/],
    [row({ until: "2026-01-05T00:00:00Z" }), /not announced for the time/],
    [row({ until: "2026-01-05T05:00:00Z" }), /not announced for the time/],
    [row({ is_new: false, until: "2026-01-05T02:00:00Z" }), /not announced anew/],
    [rule({ most: 7 }), /more keys than it can have/],
    [rule({ longest: 5 }), /empty or too long/],
    [rule({ threshold: 0 }), /'threshold' is not/],
    [rule({ threshold: 1.5 }), /'threshold' is not/],
    [rule({ threshold: THRESHOLD - 2 }), /another threshold/],
    [rule({ delta: "0" }), /'delta' is not/],
    [rule({ delta: "1e-9" }), /'delta' is not/],
    [rule({ delta: 1e-9 }), /'delta' is not/],
    [rule({ delta: "0.0000000000000000001" }), /another threshold/],
    [rule({ keep_seconds: -1 }), /'keep_seconds' is not/],
    [rule({ overfull: { limit: 10, soft_limit: 10, is_overfull: true } }, OVERFULL), /'soft_limit' is not/],
    [rule({ overfull: [] }), /no object/],
    [rule({ overfull: { limit: 10, soft_limit: 1, is_overfull: true } }), /more keys than it can have/],
    [keyed(["", ...keys.slice(1)]), /empty or too long/],
    [keyed([...keys].reverse()), /order of their bytes/],
    [keyed([...keys].sort()), /order of their bytes/],
    [{ ...GOOD, values: [5, ...GOOD.values.slice(1)] }, /new key is not above/],
    [{ ...GOOD, values: [GOOD.values[0] + 2 ** -13, ...GOOD.values.slice(1)] }, /not on the grid/],
    [{ ...GOOD, noise: { ...GOOD.noise, law: "discrete gaussian" } }, /noise that is not/],
    [{ ...GOOD, noise: { ...GOOD.noise, grid: 2 } }, /noise that is not/],
    [{ ...GOOD, noise: { ...GOOD.noise, scale: 4112 } }, /another threshold/],
    [{ ...GOOD, privacy: { ...GOOD.privacy, adjacency: "replace_one" } }, /cannot find keys/],
    [{ ...GOOD, privacy: { ...GOOD.privacy, unit: "record" } }, /another number/],
    [{ ...GOOD, panes: { over: "cumulative", newest: GOOD.window, step: 0 } }, /running sums/],
    [{ ...GOOD, key_columns: ["until", "page"] }, /one of the table itself/],
    [{ ...GOOD, key_columns: "until" }, /key_columns/],
  ];
  for (const [document, why] of wrong) {
    assert.throws(() => parse(document), (error) => error instanceof SynopsisError && why.test(error.message), `${why}`);
  }
});
