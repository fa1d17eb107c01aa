// Synopses come from anywhere: whatever the text is, the answer is a synopsis that agrees with itself, or a SynopsisError.
import assert from "node:assert/strict";
import test from "node:test";
import { parse, SynopsisError } from "../bernstream.js";
import { describe, generator } from "./example.js";

const whole = () => ({ ...describe(), values: [2, 4, 6] });
const refuses = (input, why) =>
  assert.throws(() => parse(input), (e) => e instanceof SynopsisError && why.test(e.message), `${why}`);

/** A table by key of two countries. */
const byKey = (keys = {}, fields = {}) => ({
  ...describe({
    key: null, domain: [], degree: 1, order: 1, meaning: "users and sums",
    basis: { keys: { keys: ["CH", "DE"], columns: [{ statistic: "users", unit: 1 }, { statistic: "low", unit: 2 }, { statistic: "high", unit: 2 }], ...keys } },
    target: { counts: { max_keys: 1, max_records: 2, value: { column: "amount", min: 0, max: 9 }, parts: [{ of: "users", part: 0.5 }, { of: "values", part: 0.5 }] } },
    ...fields,
  }),
  values: [10, 20, 5, 8, 6, 9],
});

test("tables by key that do not agree with themselves are refused", () => {
  assert.deepEqual(parse(byKey()).keyTable().top(1), { keys: ["DE"], isLastUnclear: false });
  const users = { statistic: "users", unit: 1 };
  const { noise } = describe();
  const wrong = [
    [byKey({ keys: [] }), /'keys' is not/],
    [byKey({ keys: ["CH", "CH"] }), /'keys' is not/],
    [byKey({ keys: ["CH", 1] }), /'keys' is not/],
    [byKey({ keys: ["CH"] }), /6 values, its description asks for 3/],
    [byKey({ columns: [] }), /belong together/],
    [byKey({ columns: [users, users, users] }), /two columns users/],
    [byKey({ columns: [{ ...users, unit: 0 }] }), /'unit' is not/],
    [byKey({ columns: [{ ...users, statistic: "median" }] }), /'statistic' is not/],
    [byKey({ columns: [users, { ...users, statistic: "low" }] }), /belong together/],
    [byKey({ columns: ["low", "high", "sum"].map((statistic) => ({ statistic, unit: 1 })) }), /belong together/],
    [byKey({}, { key: "CH" }), /of all keys/],
    [byKey({}, { domain: describe().domain }), /1 axes, not 0 to 0/],
    [byKey({}, { noise: { ...noise, law: "discrete cube" } }), /not independent/],
    [byKey({}, { target: { counts: { max_keys: 1, parts: [] } } }), /does not say which/],
    [byKey({}, { target: { counts: { max_keys: 1, parts: [], value: { min: 1, max: 1 } } } }), /no range/],
    [byKey({}, { target: { counts: { max_keys: 0, parts: [] } } }), /max_keys/],
    [byKey({}, { target: describe().target }), /come together/],
    [{ ...whole(), target: byKey().target }, /come together/],
  ];
  for (const [document, why] of wrong) refuses(document, why);
});

/** Numbers of units by their keys after the columns of the two countries, or of so many keys. */
const told = (bins, units, { cap = 1, keys = ["CH", "DE"], unit = 1e-12, fields = {} } = {}) => ({
  ...byKey(
    { keys, columns: [{ statistic: "users", unit: 1 }], units: { bins: bins.map(([least, most]) => ({ least, most })), unit } },
    { target: { counts: { max_keys: cap, parts: [], ...fields } } },
  ),
  values: [...keys.map(() => 1), ...units],
});

test("bins of units that are not those of the keys and the cap are refused", () => {
  assert.deepEqual(parse(told([[1, 1], [2, 2]], [3, 1])).keyTable().units.map(({ value }) => value), [3, 1]);
  assert.equal(parse(byKey()).keyTable().dropped, null);
  for (const bins of [[], [[2, 2]], [[1, 1]], [[1, 1], [1, 2]], [[1, 1], [2, 3]], [[1, 1], [2, 1.5]]]) {
    refuses(told(bins, bins.map(() => 1)), /bins of its units/);
  }
  refuses(told([[1, 2]], [4]), /none of the bins of its units ends at max_keys/);
  refuses(told([[1, 1], [2, 2]], [3, 1], { unit: 0 }), /'unit' is not/);
  refuses(told([[1, 1], [2, 2]], [3]), /3 values, its description asks for 4/);
  const quantiles = { grid: { places: 2 }, parts: [0.5] };
  refuses(told([[1, 1], [2, 2]], [3, 1], { fields: { quantiles, value: { column: "x", min: 0, max: 1 } } }), /does not tell its caps/);
});

test("the share that a cap drops holds wherever in their bins units are", () => {
  const bins = [[1, 1], [2, 2], [3, 3], [4, 4], [5, 6], [7, 8], [9, 11]];
  const keys = Array.from({ length: 11 }, (_, i) => `k${i}`);
  for (const cap of [1, 2, 3, 4, 6, 8]) {
    const shares = [];
    for (const one of [5, 6]) for (const two of [5, 6]) for (const three of [7, 8]) for (const four of [9, 10, 11]) {
      const all = [1, 1, 1, 2, 2, 4, one, two, three, four];
      const sum = (list) => list.reduce((total, number) => total + number, 0);
      shares.push(sum(all.map((number) => Math.max(number - cap, 0))) / sum(all));
    }
    const { value, pointwise: [lower, upper] } = parse(told(bins, [3, 2, 0, 1, 2, 1, 1], { cap, keys })).keyTable().dropped;
    const near = (x, y) => assert.ok(Math.abs(x - y) < 1e-9, `${cap}: ${x}, not ${y}`);
    near(lower, Math.min(...shares));
    near(upper, Math.max(...shares));
    assert.ok(lower <= value && value <= upper, `${cap}: ${value}`);
  }
  const { value, pointwise: [lower, upper] } = parse(told([[1, 1], [2, 2], [3, 3], [4, 4], [5, 11]], [0, 0, 0, 300, -50], { cap: 3, keys })).keyTable().dropped;
  assert.ok(lower < 0.1 && upper > 0.2 && lower <= value && value <= upper, `${lower} to ${upper}`);
  // Without units nothing is known, and in noise that may be all of them no interval.
  assert.deepEqual(parse(told([[1, 1], [2, 2]], [-1, 0])).keyTable().dropped, { value: null, pointwise: null });
  assert.deepEqual(parse(told([[1, 1], [2, 2]], [3, 1], { unit: 100 })).keyTable().dropped, { value: 0.2, pointwise: null });
  // Numbers below 0 make no share that is none.
  assert.deepEqual(parse(told([[1, 1], [2, 2]], [-4, 3])).keyTable().dropped, { value: 1, pointwise: [1, 1] });
  assert.deepEqual(parse(told([[1, 1], [2, 2]], [5, -1])).keyTable().dropped, { value: 0, pointwise: [0, 0] });
});

test("keys of several columns have a part for each, and users no margins", () => {
  const shops = (fields, keys = ["CH/a", "DE/%25%2F"]) => byKey({ keys }, { key_columns: ["country", "shop"], ...fields });
  const table = parse(shops()).keyTable();
  assert.deepEqual(table.parts("DE/%25%2F"), { country: "DE", shop: "%/" });
  assert.deepEqual(table.rows()[0].parts, { country: "CH", shop: "a" });
  assert.equal(table.margin()[0].records.value, 28);
  assert.equal(table.margin("shop").length, 2);
  assert.equal(table.margin("shop")[0].users, undefined);
  assert.throws(() => table.margin("users"), SynopsisError);
  const ofUsers = byKey({ columns: [{ statistic: "users", unit: 1 }] }, { target: { counts: { max_keys: 1, parts: [] } } });
  assert.throws(() => parse({ ...ofUsers, values: [10, 20] }).keyTable().margin(), /do not add up/);
  assert.throws(() => parse({ ...ofUsers, values: [10, 20] }).keyTable().shares(), /it has no shares/);
  const [ch, de] = table.shares();
  assert.deepEqual([Object.keys(ch), ch.parts], [["key", "parts", "records", "sum"], { country: "CH", shop: "a" }]);
  assert.deepEqual([ch.records.value, ch.records.value + de.records.value], [11 / 28, 1]);
  assert.deepEqual(table.shares("shop")[0].records.value, 1);
  assert.throws(() => table.shares("device"), /no parts 'device', only country, shop/);
  assert.throws(() => parse(byKey()).keyTable().shares("country"), /they are one column/);
  // A sum of values below 0 is no part of a whole; without records its keys have none.
  const { target } = byKey();
  const below = { counts: { ...target.counts, value: { column: "amount", min: -1, max: 9 } } };
  assert.deepEqual(Object.keys(parse(byKey({}, { target: below })).keyTable().shares()[0]), ["key", "records"]);
  const names = /two or three different names/;
  for (const columns of [["country"], ["a", "a"], ["a", "users"], ["a", "sum_lower"], ["a", ""], ["a", "b", "c", "d"], "country", [1, 2]]) {
    refuses(shops({ key_columns: columns }), names);
  }
  for (const key of ["CH", "CH/a/b", "CH/%2f", "CH/%"]) refuses(shops({}, [key, "DE/a"]), /does not have 2 parts/);
});

test("what is not a synopsis is refused, and it is said why", () => {
  for (const input of ["", "{", "null", "[]", "3", "\"text\"", null, undefined, 3, [], () => 0]) refuses(input, /not a synopsis/);
  const change = (fields) => ({ ...whole(), ...fields });
  const kernel = (of) => change({ basis: { kernel: of }, degree: 1, order: 1 });
  const cells = (precision, spline, steps) => change({ basis: { cells: { precision, spline, steps } }, degree: 1, order: 1 });
  const gaussian = { gaussian: { precision: [[1]] } };
  const wrong = [
    [change({ format: 2 }), /it has format 2, this module reads format 1/],
    [change({ format: undefined }), /format/],
    [change({ domain: [] }), /0 axes/],
    [change({ domain: new Array(4).fill(describe().domain[0]) }), /4 axes/],
    [change({ domain: [{ column: "x", min: 1, max: 1 }] }), /no proper domain/],
    [change({ domain: [{ column: "x", min: "0", max: 1 }] }), /'min' is not a number/],
    [change({ degree: 3 }), /3 values, its description asks for 4/],
    [change({ degree: 1e9 }), /degree/],
    [change({ degree: 1.5 }), /degree/],
    [change({ order: 1001 }), /order/],
    [change({ values: [1, 2] }), /2 values/],
    [change({ values: [1, 2, "3"] }), /not a number/],
    [change({ values: [1, 2, null] }), /not a number/],
    [change({ values: { length: 3 } }), /no list of values/],
    [change({ basis: "fourier" }), /'fourier' is not one/],
    [change({ basis: "constructor" }), /'constructor' is not one/],
    [change({ basis: "affine" }), /degree 1 and order 1/],
    [change({ basis: { cosine: { frequencies: 1025 } }, degree: 1, order: 1 }), /frequencies/],
    [kernel({ kernel: gaussian, points: [] }), /kernel points/],
    [kernel({ kernel: gaussian, points: [[2]] }), /kernel points/],
    [kernel({ kernel: gaussian, points: [[0, 0]] }), /kernel points/],
    [kernel({ kernel: { gaussian: { precision: [[1, 0]] } }, points: [[0]] }), /matrix/],
    [kernel({ kernel: { machine: { gaussian: { bandwidth: 0 } } }, points: [[0]] }), /bandwidth/],
    [kernel({ kernel: { machine: "toString" }, points: [[0]] }), /toString/],
    [cells([[1]], "box", [4]), /3 values, its description asks for 4/],
    [cells([[1]], "linear", [3]), /3 values, its description asks for 4/],
    [cells([[1]], "toString", [3]), /spline 'toString'/],
    [{ ...cells([[1]], "box", [3]), reading: "sharp" }, /reading/],
    [change({ reading: "nonnegative" }), /reading/],
    [cells([[0]], "box", [3]), /positive definite/],
    [cells([[1, 0]], "box", [3]), /matrix/],
    [cells([[1]], "box", [1.5]), /whole numbers/],
    [cells([[1]], "box", [3, 1]), /whole numbers/],
    [cells([[1]], "quadratic", [65535]), /more than 65536 cells/],
    [change({ noise: { ...describe().noise, scale: 0 } }), /scale and grid/],
    [change({ noise: { ...describe().noise, law: "uniform" } }), /law/],
    [change({ noise: { ...describe().noise, calibrated: "sampled" } }), /do not fit/],
    [change({ privacy: { ...describe().privacy, price: { rho: "1" } } }), /prices/],
    [change({ privacy: { ...describe().privacy, definition: "declared plan", price: { slots: 1 }, blocks: [] } }), /epsilon and delta/],
    [change({ band: { ...describe().band, half_width: -1 } }), /band/],
    [change({ band: { ...describe().band, weights: [] } }), /band/],
    [change({ band: { ...describe().band, weights: [1, 0] } }), /band/],
    [change({ smoothness: { norm: 1 } }), /smoothness/],
    [change({ target: { density: { kernel: { bandwidths: [0] } } } }), /bandwidths/],
    [change({ target: { anything: {} } }), /target/],
    [change({ window: { start: "yesterday", end: "2013-01-02T05:00:00Z" } }), /time/],
  ];
  for (const [input, why] of wrong) refuses(input, why);
  assert.equal(parse(whole()).values.length, 3);
  assert.equal(parse(cells([[1]], "box", [3])).values.length, 3);
});

test("numbers that a double does not hold are refused", () => {
  const text = JSON.stringify(whole());
  refuses(text.replace("\"values\":[2", "\"values\":[2e999"), /not a number/);
  refuses(text.replace("\"max\":180", "\"max\":1e999"), /out of range/);
});

test("every field that is needed is missed", () => {
  const optional = ["key", "incomplete"];
  for (const name of Object.keys(whole()).filter((name) => !optional.includes(name))) {
    const { [name]: _, ...rest } = whole();
    refuses(rest, /not a synopsis/);
  }
  for (const name of optional) {
    const { [name]: _, ...rest } = whole();
    parse(rest);
  }
});

test("nothing reaches a prototype, and what was read does not change", () => {
  const text = JSON.stringify(whole()).replace("{", "{\"__proto__\":{\"polluted\":1},\"constructor\":{\"prototype\":{\"polluted\":1}},");
  const { meta } = parse(text);
  assert.equal({}.polluted, undefined);
  assert.equal(meta.polluted, undefined);
  assert.equal(Object.getPrototypeOf(meta), Object.prototype);
  assert.throws(() => (meta.noise.scale = 0), TypeError);
  // A field that is only inherited is not there.
  refuses("{\"__proto__\":" + JSON.stringify(whole()) + "}", /format undefined/);
});

test("deep nesting and later fields", () => {
  refuses({ ...whole(), later: JSON.parse("[".repeat(5000) + "]".repeat(5000)) }, /nested too deep/);
  assert.deepEqual(parse({ ...whole(), later: { a: [1, null, true] } }).meta.later, { a: [1, null, true] });
});

test("whatever one character of the text becomes, it is refused or evaluated", () => {
  const random = generator(5);
  const text = JSON.stringify(whole());
  const characters = "0123456789-+.e\"{}[],:nulltrue \\";
  let [read, refused] = [0, 0];
  for (let i = 0; i < 3000; i++) {
    const at = Math.floor(random() * text.length);
    const changed = text.slice(0, at) + characters[Math.floor(random() * characters.length)] + text.slice(at + 1);
    try {
      const synopsis = parse(changed);
      const { min, max } = synopsis.meta.domain[0];
      assert.ok(Number.isFinite(synopsis.evaluate((min + max) / 2)));
      assert.ok(synopsis.halfWidth((min + max) / 2) > 0);
      read++;
    } catch (error) {
      assert.ok(error instanceof SynopsisError, `${error.stack}\n${changed}`);
      refused++;
    }
  }
  assert.ok(read > 100 && refused > 100, `${read} read, ${refused} refused`);
});
