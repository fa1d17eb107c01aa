// What the known law of the noise says: samples of it, bands at one point, and the error of a query.
import assert from "node:assert/strict";
import test from "node:test";
import { parse } from "../bernstream.js";
import { axes, cells, describe, generator, lattice, natural } from "./example.js";

const LAWS = ["discrete laplace", "discrete cube", "rounded ball", "discrete gaussian"];
const SCALE = 0.25;
const noise = (law) => ({ ...describe().noise, law, scale: SCALE });
/** The deviation of one of `count` values under a law of scale 1. */
const deviation = (law, count) =>
  Math.sqrt({ "discrete laplace": 2, "discrete cube": ((count + 1) * (count + 2)) / 3, "rounded ball": count + 1, "discrete gaussian": 1 }[law]);

/** The root mean square of numbers. */
const size = (numbers) => Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length);
/** Whether samples have the deviation that is told, to a tenth. */
const has = (sizes, told) => Math.abs(size(sizes) / told - 1) < 0.1;

test("samples are apart from the values by noise of the law", () => {
  for (const law of LAWS) {
    const synopsis = parse(lattice(1, 9, ([y]) => 10 * y, { noise: noise(law) }));
    const samples = synopsis.sample(3000, generator(1));
    const apart = samples.map((sample) => sample.values[4] - synopsis.values[4]);
    const told = SCALE * deviation(law, 10);
    assert.ok(has(apart, told), `${law}: ${size(apart)} is not ${told}`);
    // The same look finds noise that is a third too large.
    assert.ok(!has(apart.map((x) => 1.3 * x), told) && !has(apart, 1.3 * told), law);
    const mean = apart.reduce((sum, x) => sum + x) / apart.length;
    assert.ok(Math.abs(mean) < (4 * told) / Math.sqrt(apart.length), `${law}: ${mean}`);
    const together = samples.map((sample) => (sample.values[4] - synopsis.values[4]) * (sample.values[5] - synopsis.values[5]));
    const correlation = together.reduce((sum, x) => sum + x) / together.length / told ** 2;
    assert.ok(Math.abs(correlation) < 0.15, `${law}: ${correlation}`);
    assert.equal(samples[0].meta, synopsis.meta);
  }
});

test("the function of samples is as far off as the pointwise deviation says, in its band 19 times of 20", () => {
  const kernel = { kernel: { kernel: { gaussian: { precision: [[30, 0], [0, 20]] } }, points: [[0.1, 0.2], [0.5, 0.9], [0.8, 0.3], [0.4, 0.4]] } };
  const flat = { domain: axes(2), degree: 1, order: 1 };
  for (const law of LAWS) {
    const synopses = [
      parse(lattice(2, 4, ([x, y]) => x + y, { order: 3, noise: noise(law) })),
      parse({ ...describe({ ...flat, basis: "affine", noise: noise(law) }), values: [1, 2, 3] }),
      parse(cells([[30, 0], [0, 20]], "linear", [4, 3], { noise: noise(law) })),
      parse(cells([[30, 9], [9, 20]], "box", [3, 4], { noise: noise(law) })),
      parse({ ...describe({ ...flat, basis: kernel, noise: noise(law) }), values: [5, -2, 1, 3] }),
    ];
    for (const synopsis of synopses) {
      const point = natural([0.3, 0.6]);
      const exact = synopsis.evaluate(point);
      const apart = synopsis.sample(2000, generator(2)).map((sample) => sample.evaluate(point) - exact);
      const band = synopsis.pointwise();
      const what = `${law} ${JSON.stringify(synopsis.meta.basis).slice(0, 12)}`;
      assert.ok(has(apart, band.deviation(point)), `${what}: ${size(apart)} is not ${band.deviation(point)}`);
      assert.ok(!has(apart, 1.3 * band.deviation(point)), what);
      const inside = apart.filter((x) => Math.abs(x) <= band.halfWidth(point)).length / apart.length;
      assert.ok(inside > 0.93 && inside < 0.99, `${what}: ${inside}`);
    }
  }
});

test("a generator that is not random is found out and does not hang", () => {
  const synopsis = parse(lattice(1, 9, () => 1, { noise: noise("discrete cube") }));
  assert.throws(() => synopsis.sample(1, () => 0), /not random/);
});

/** The moments of records of the unit cube. */
function moments(records, frequencies, law = "discrete laplace") {
  const dimensions = records[0].length;
  const fields = { domain: axes(dimensions), basis: { cosine: { frequencies } }, degree: 1, order: 1, target: { moments: { frequencies } }, noise: noise(law) };
  const one = (record) =>
    record.map((y) => Array.from({ length: frequencies }, (_, m) => Math.cos(m * Math.acos(2 * y - 1))))
      .reduce((products, axis) => products.flatMap((p) => axis.map((c) => p * c)), [1]);
  const values = records.map(one).reduce((sum, of) => sum.map((x, i) => x + of[i]));
  return parse({ ...describe(fields), values });
}

test("a polynomial is answered without truncation, in one to three dimensions", () => {
  const random = generator(3);
  for (const dimensions of [1, 2, 3]) {
    const records = Array.from({ length: 200 }, () => Array.from({ length: dimensions }, random));
    const f = (x, y = 1, z = 1) => 2 + x ** 3 * y - z ** 2;
    const answer = moments(records, 5).query(f);
    const exact = records.reduce((sum, record) => sum + f(...natural(record)), 0);
    assert.ok(Math.abs(answer.sum - exact) < 1e-9 * Math.abs(exact), `${answer.sum} is not ${exact}`);
    assert.ok(answer.truncation.perRecord < 1e-10 && answer.truncation.isProved === false);
    assert.ok(Math.abs(answer.mean.value - exact / 200) < 1e-9 * Math.abs(exact));
  }
});

test("the truncation is as large as what the answer misses", () => {
  const records = [[0.1], [0.5], [0.55], [0.9]];
  const f = (x) => Math.abs(x - 1);
  const synopsis = moments(records, 12);
  const exact = records.reduce((sum, record) => sum + f(...natural(record)), 0);
  for (const options of [{}, { jackson: 1 }]) {
    const { sum, truncation } = synopsis.query(f, options);
    assert.ok(Math.abs(sum - exact) <= truncation.error && truncation.perRecord < 0.5, `${sum - exact} ${truncation.error}`);
    assert.ok(Math.abs(sum - exact) > 1e-6);
  }
});

test("the noise of an answer is that of its samples", () => {
  for (const law of LAWS) {
    const synopsis = moments([[0.2], [0.7], [0.9]], 20, law);
    const weights = synopsis.weights((x) => Math.exp(-((x - 1) ** 2)));
    const { sum, noise: told, mean } = synopsis.query(weights);
    const apart = synopsis.sample(3000, generator(4)).map(({ values }) => values.reduce((all, v, i) => all + v * weights.weights[i], 0) - sum);
    assert.ok(has(apart, told.deviation), `${law}: ${size(apart)} is not ${told.deviation}`);
    assert.ok(!has(apart, 1.3 * told.deviation), law);
    const inside = apart.filter((x) => Math.abs(x) <= told.halfWidth).length / apart.length;
    assert.ok(inside > 0.935 && inside < 0.965, `${law}: ${inside}`);
    // Three records drown in the wider laws' noise.
    assert.equal(mean === null, law === "discrete cube" || law === "rounded ball", law);
  }
});

test("a question must have a number as its answer", () => {
  const synopsis = moments([[0.2]], 4);
  assert.throws(() => synopsis.query((x) => 1 / (x > 0 ? 0 : 1)), /no finite answer/);
  assert.throws(() => synopsis.query(() => "3"), /no finite answer/);
  assert.throws(() => synopsis.query({ weights: [1] }), /4 weights/);
  assert.throws(() => synopsis.query((x) => x, { jackson: 0 }), /smoothness/);
  assert.throws(() => synopsis.evaluate(1), /moments of the records/);
  assert.throws(() => synopsis.halfWidth(1), /moments of the records/);
  assert.throws(() => synopsis.pointwise(), /moments of the records/);
});
