// The golden vectors of ../golden: what the Rust evaluator says of synopses of every kind. Their tolerances are relative to the
// largest value of a case.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { parse, SynopsisError } from "../bernstream.js";

const folder = new URL("../../golden/", import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith(".json")).sort();
const read = (name) => JSON.parse(readFileSync(new URL(name, folder), "utf8"));
const cases = names.filter((name) => name !== "wrong.json");

test("there are golden vectors", () => assert.ok(cases.length > 0 && names.includes("wrong.json"), `in ${folder}: ${names}`));

/** Whether numbers are those of the case, where the largest is one. */
function same(found, expected, tolerance, what, scale = Math.max(...expected.map(Math.abs)) || 1) {
  assert.equal(found.length, expected.length, what);
  for (let i = 0; i < found.length; i++) {
    const apart = Math.abs(found[i] - expected[i]) / scale;
    assert.ok(apart <= tolerance, `${what}, number ${i}: ${found[i]} is not ${expected[i]}, ${apart} apart`);
  }
}

const grid = (point) => point.map((x) => [x]);

/** A query as JavaScript, where powers are written otherwise and bind less than a minus. */
function compiled(expression, columns) {
  const text = expression
    .replaceAll("^", "**")
    .replaceAll("-(", "-1*(")
    .replace(/[a-z_]\w*/gi, (name) => (columns.includes(name) ? name : `Math.${name}`));
  return new Function(...columns, `return ${text};`);
}

function checkEvaluation(synopsis, { by, points, values, deviations, mass, tolerance }) {
  const evaluator = synopsis.evaluator(by);
  same(points.map((point) => evaluator.evaluate(point)), values, tolerance, `by ${by}`);
  same(points.map((point) => evaluator.on(grid(point))[0]), values, tolerance, `on a grid by ${by}`);
  const found = points.map((point) => evaluator.deviation(point));
  if (deviations) same(found, deviations, tolerance, `deviation by ${by}`);
  else assert.ok(found.every((deviation) => deviation === null), `deviation by ${by}`);
  const volume = synopsis.meta.domain.reduce((product, { min, max }) => product * (max - min), 1);
  same([evaluator.mass()], [mass], tolerance, `mass by ${by}`, volume * Math.max(...values.map(Math.abs)));
}

function checkBands(synopsis, { points, simultaneous, ends, pointwise, tolerance }) {
  const near = Math.max(tolerance, 1e-12);
  // What is lost where the values that are added and taken away are far larger.
  const scale = Math.max(...simultaneous);
  if (ends) same(points.flatMap((point) => synopsis.interval(point)), ends.flat(), near, "ends of the band", scale);
  same(points.map((point) => synopsis.halfWidth(point)), simultaneous, near, "band");
  same(points.map((point) => synopsis.halfWidths(grid(point))[0]), simultaneous, near, "band on a grid");
  // Where the band does not say it, the factor is simulated there and computed here.
  const { meta: { band, noise } } = synopsis;
  const isSimulated = !band.pointwise && (noise.law === "discrete cube" || noise.law === "rounded ball");
  for (const { order, half_widths, ends: own, deviations } of pointwise) {
    const found = synopsis.pointwise(order);
    const of = isSimulated ? 0.02 : tolerance;
    same(points.map((point) => found.halfWidth(point)), half_widths, of, `pointwise band of order ${order}`);
    same(points.map((point) => found.halfWidths(grid(point))[0]), half_widths, of, `the same on a grid, order ${order}`);
    if (own) {
      const [evaluator, most] = [synopsis.evaluator(order), Math.max(...half_widths)];
      same(points.flatMap((point) => evaluator.interval(point, found.halfWidth(point))), own.flat(), of, `ends of order ${order}`, most);
      const onGrid = points.map((point) => evaluator.intervals(grid(point), found.halfWidths(grid(point))));
      same(onGrid.flatMap(({ lower, upper }) => [lower[0], upper[0]]), own.flat(), of, `ends on a grid, order ${order}`, most);
    }
    const known = points.filter((_, i) => deviations[i] !== null);
    points.forEach((point, i) => assert.equal(Number.isFinite(found.deviation(point)), deviations[i] !== null));
    same(known.map((point) => found.deviation(point)), deviations.filter((one) => one !== null), tolerance, `deviation of order ${order}`);
  }
}

function checkQuery(synopsis, query) {
  const f = compiled(query.function, synopsis.meta.domain.map((axis) => axis.column));
  const answer = synopsis.query(f);
  const { tolerance, half_width_tolerance: wide } = query;
  const check = (found, expected, tolerance, what) => same([found], [expected], tolerance, `${query.function}: ${what}`);
  same(synopsis.weights(f).weights, query.weights, tolerance, `${query.function}: weights`);
  check(answer.sum, query.sum, tolerance, "sum");
  check(answer.noise.deviation, query.noise_deviation, tolerance, "deviation");
  check(answer.noise.halfWidth, query.noise_half_width, wide, "half-width");
  const size = Math.max(...query.weights.map(Math.abs));
  same([answer.truncation.perRecord], [query.truncation_per_record], tolerance, `${query.function}: truncation`, size);
  assert.equal(answer.mean === null, query.mean === null);
  if (answer.mean) {
    check(answer.mean.value, query.mean, tolerance, "mean");
    // A mean that the moments know exactly, that of 1, has noise of rounding alone.
    const least = Math.max(query.mean_noise_half_width, 1e-9 * Math.abs(query.mean));
    same([answer.mean.noise.halfWidth], [query.mean_noise_half_width], wide, `${query.function}: half-width of the mean`, least);
  }
}

function checkProper(synopsis, { order, points, mass, densities, cumulative, tolerance }) {
  const density = synopsis.evaluator(order).proper();
  same([density.mass], [mass], tolerance, "mass of the density");
  same(points.map((point) => density.evaluate(point)), densities, tolerance, "density");
  same(points.map((point) => density.on(grid(point))[0]), densities, tolerance, "density on a grid");
  if (!cumulative) return assert.throws(() => synopsis.evaluator(order).cumulative(), SynopsisError);
  const parts = synopsis.evaluator(order).cumulative();
  same(points.map((point) => parts.evaluate(point)), cumulative, tolerance, "distribution function");
}

/** A reading of tables of cells, with its intervals; null is unknown. */
function checkReading(synopsis, { reading, table, over, degree, bandwidths, point, range, part, tolerance, ...wanted }) {
  const [tables, options] = [synopsis.tables(), { degree, bandwidths }];
  const found = {
    density: () => tables.density(point, options),
    count: () => tables.count(range),
    share: () => tables.share(range),
    probability: () => (range ? tables.proportions(range) : tables.probabilities(point, options))[table],
    expected: () => (range ? tables.mean(range) : tables.expected(point, options)),
    quantile: () => tables.quantile(part),
    density_ratio: () => tables.densityRatio(point, table, over, options),
  }[reading]();
  const numbers = ({ value, pointwise, simultaneous }) => [value, ...(pointwise ?? [null, null]), ...(simultaneous ?? [null, null])];
  const [here, there] = [numbers(found), numbers(wanted)];
  const what = JSON.stringify({ reading, table, over, degree, bandwidths, point, range, part });
  assert.deepEqual(here.map((x) => x === null), there.map((x) => x === null), what);
  const known = (list) => list.filter((x) => x !== null);
  if (known(there).length) same(known(here), known(there), tolerance, what);
}

/** The shares of all keys; an interval may be off by a part of its length. */
function checkShares(table, { columns, readings, rows }, tolerance, wide) {
  const found = table.shares(...columns);
  assert.deepEqual(found.map(({ key }) => key), table.keys);
  assert.deepEqual(Object.keys(found[0]), ["key", "parts", ...readings]);
  for (const [at, stated] of rows.entries()) {
    assert.deepEqual(found[at].parts, table.parts(found[at].key));
    for (const [i, { value, interval }] of stated.entries()) {
      const own = found[at][readings[i]];
      const what = `share of ${readings[i]} of ${found[at].key} by ${columns}`;
      assert.deepEqual([own.value === null, own.pointwise === null], [value === null, interval === null], what);
      if (value !== null) same([own.value], [value], tolerance, what, 1);
      if (interval) same(own.pointwise, interval, wide, `interval of ${what}`, interval[1] - interval[0] || 1e-9);
    }
  }
}

/** What is said of keys that nobody listed, and of those that are not there. */
function checkFound(table, found, rows) {
  assert.equal(table.isFound, found !== undefined);
  if (!found) return assert.deepEqual([table.newKeys, table.threshold, table.absentBelow, table.isOverfull], [[], null, null, false]);
  const { keys, new: fresh, threshold, absent_below: absentBelow, is_overfull: isOverfull } = found;
  assert.deepEqual([table.keys.length, table.newKeys.length, table.threshold, table.absentBelow, table.isOverfull], [keys, fresh, threshold, absentBelow, isOverfull]);
  for (const { key, new: isNew, until, estimates: [{ interval }] } of rows) {
    assert.deepEqual([table.isNew(key), table.until(key)], [isNew, until], key);
    // That of a new key is found by bisection and not by integration: to the last digits.
    if (isNew) same(table.estimate(key, table.readings[0]).pointwise, interval, 1e-9, `interval of the new key ${key}`, interval[1] - interval[0]);
  }
}

/** What a cap drops, and the numbers of units by their keys. */
function checkCaps(table, caps, tolerance, wide) {
  if (!caps) return assert.deepEqual([table.dropped, table.units], [null, null]);
  const check = ({ value, pointwise }, stated, what) => {
    assert.equal(pointwise === null, stated.interval === null, what);
    same([value], [stated.value], tolerance, what, Math.abs(stated.value) || 1);
    if (pointwise) same(pointwise, stated.interval, wide, `interval of ${what}`, stated.interval[1] - stated.interval[0] || 1);
  };
  check(table.dropped, caps.dropped, "share that is dropped");
  assert.deepEqual(table.units.map(({ least, most }) => [least, most]), caps.units.map(({ least, most }) => [least, most]));
  caps.units.forEach((stated, i) => {
    check(table.units[i], stated, `units with ${stated.least} keys`);
    check(table.units[i].dropped, stated.dropped, `share that a cap of ${stated.most} keys drops`);
  });
}

/** The rows of a table by key, and its largest keys by each reading. */
function checkKeys(synopsis, { readings, rows, top, parts, margins, shares, caps, found, tolerance, half_width_tolerance: wide }) {
  const table = synopsis.keyTable();
  if (parts) assert.deepEqual(table.keys.map((key) => Object.values(table.parts(key))), parts);
  for (const { columns, readings, rows } of margins ?? []) {
    const found = table.margin(...columns);
    const parts = rows.map(({ parts }) => parts);
    assert.deepEqual(found.map((row) => Object.values(row.parts)), parts);
    for (const [at, { keys, estimates }] of rows.entries()) {
      assert.equal(found[at].keys, keys);
      for (const [i, { value, interval }] of estimates.entries()) {
        const own = found[at][readings[i]];
        if (interval === null) assert.equal(own.pointwise, null);
        else same([own.value, ...own.pointwise], [value, ...interval], wide, `margin of ${columns}`, interval[1] - interval[0]);
      }
    }
  }
  for (const stated of shares ?? []) checkShares(table, stated, tolerance, wide);
  assert.deepEqual(table.readings, readings);
  assert.deepEqual(table.rows().map(({ key }) => key), rows.map(({ key }) => key));
  for (const [i, reading] of readings.entries()) {
    const stated = rows.map(({ estimates }) => estimates[i]);
    const known = (list) => list.filter((x) => x !== null);
    const size = Math.max(...known(stated.map(({ value }) => value)).map(Math.abs));
    for (const [row, { key }] of rows.entries()) {
      const { [reading]: found } = table.row(key);
      const { value, interval } = stated[row];
      assert.deepEqual([found.value === null, found.pointwise === null], [value === null, interval === null], `${reading} of ${key}`);
      if (value !== null) same([found.value], [value], tolerance, `${reading} of ${key}`, size);
      if (interval) same(found.pointwise, interval, wide, `interval of ${reading} of ${key}`, interval[1] - interval[0] || size);
    }
  }
  checkCaps(table, caps, tolerance, wide);
  checkFound(table, found, rows);
  for (const { by, count, keys, is_last_unclear: isLastUnclear } of top) {
    assert.deepEqual(table.top(count, by), { keys, isLastUnclear }, `the ${count} largest by ${by}`);
  }
  assert.throws(() => table.row("no such key"), SynopsisError);
  assert.throws(() => table.top(1, "median"), SynopsisError);
  assert.throws(() => synopsis.query(() => 1), SynopsisError);
}

for (const name of cases) {
  test(name, () => {
    const golden = read(name);
    const synopsis = parse(golden.synopsis);
    golden.evaluations.forEach((evaluation) => checkEvaluation(synopsis, evaluation));
    for (const by of golden.refused) assert.throws(() => synopsis.evaluator(by), SynopsisError, `by ${by}`);
    if (golden.half_widths) checkBands(synopsis, golden.half_widths);
    else assert.throws(() => synopsis.halfWidth(golden.synopsis.domain.map(({ min }) => min)), SynopsisError);
    if (golden.form_error) same([synopsis.formError()], [golden.form_error], 1e-12, "error of the form");
    else assert.equal(synopsis.formError(), null);
    for (const { box, tolerance, ...expected } of golden.integrals ?? []) {
      const { value, noise, formError } = synopsis.integrate(box);
      same([value, noise.deviation], [expected.value, expected.noise_deviation], tolerance, `integral over ${box}`);
      same([noise.halfWidth], [expected.noise_half_width], expected.half_width_tolerance, `its noise over ${box}`);
      assert.equal(formError === null, expected.form_error === null);
      if (formError !== null) {
        same([formError, synopsis.formErrorOf(box)], [expected.form_error, expected.form_error], tolerance, `its form over ${box}`);
      }
    }
    golden.queries.forEach((query) => checkQuery(synopsis, query));
    (golden.readings ?? []).forEach((reading) => checkReading(synopsis, reading));
    if (golden.proper) checkProper(synopsis, golden.proper);
    if (golden.keys) checkKeys(synopsis, golden.keys);
    else assert.throws(() => synopsis.keyTable(), SynopsisError);
    assert.ok(golden.keys || golden.evaluations.length + golden.queries.length > 0);
  });
}

test("what every reader refuses", { skip: !names.includes("wrong.json") }, () => {
  for (const { why, text } of read("wrong.json")) {
    assert.throws(() => parse(text), (error) => error instanceof SynopsisError, why);
  }
});
