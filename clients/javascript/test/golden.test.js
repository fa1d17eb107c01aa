// The golden vectors of ../golden: what the Rust evaluator says of synopses of every kind. Their tolerances are relative to the
// largest value of a case.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { parse, SynopsisError } from "../bernstream.js";

const folder = new URL("../../golden/", import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith(".json")).sort();

test("there are golden vectors", () => assert.ok(names.length > 0, `${folder} is empty`));

const largest = (numbers) => Math.max(...numbers.map(Math.abs));

/** Whether numbers are those of the case, where the largest is one. */
function same(found, expected, tolerance, what) {
  assert.equal(found.length, expected.length, what);
  const scale = largest(expected) || 1;
  found.forEach((x, i) => {
    const apart = Math.abs(x - expected[i]) / scale;
    assert.ok(apart <= tolerance, `${what}, number ${i}: ${x} is not ${expected[i]}, ${apart} apart`);
  });
}

/** A query's function as JavaScript: powers and functions of numbers are written otherwise there. */
function compiled(expression, columns) {
  const text = expression.replaceAll("^", "**").replace(/[a-z_]\w*/gi, (name) => (columns.includes(name) ? name : `Math.${name}`));
  // A unary minus before a power asks for brackets.
  return new Function(...columns, `return ${text.replace(/-\(/g, "-1*(").replace(/-([a-z_])/gi, "-1*$1")};`);
}

for (const name of names) {
  test(name, () => {
    const golden = JSON.parse(readFileSync(new URL(name, folder), "utf8"));
    if (!golden.synopsis) return assert.throws(() => parse(golden.wrong), SynopsisError);
    const synopsis = parse(golden.synopsis);
    for (const { by, points, values, deviations, mass, tolerance } of golden.evaluations ?? []) {
      const evaluator = synopsis.evaluator(by);
      same(points.map((point) => evaluator.evaluate(point)), values, tolerance, `by ${by}`);
      same(points.map((point) => evaluator.on(point.map((x) => [x]))[0]), values, tolerance, `on a grid by ${by}`);
      if (deviations) same(points.map((point) => evaluator.deviation(point)), deviations, tolerance, `deviation by ${by}`);
      const volume = synopsis.meta.domain.reduce((product, { min, max }) => product * (max - min), 1);
      const apart = Math.abs(evaluator.mass() - mass) / (volume * largest(values));
      assert.ok(apart <= tolerance, `mass by ${by}: ${evaluator.mass()} is not ${mass}`);
    }
    if (golden.half_widths) {
      const { points, simultaneous, pointwise } = golden.half_widths;
      same(points.map((point) => synopsis.halfWidth(point)), simultaneous, 1e-12, "band");
      same(points.map((point) => synopsis.halfWidths(point.map((x) => [x]))[0]), simultaneous, 1e-12, "band on a grid");
      for (const { order, half_widths, deviations } of pointwise ?? []) {
        const band = synopsis.pointwise(order);
        same(points.map((point) => band.halfWidth(point)), half_widths, 1e-12, `pointwise band of order ${order}`);
        same(points.map((point) => band.deviation(point)), deviations, 1e-12, `deviation of order ${order}`);
        same(points.map((point) => band.halfWidths(point.map((x) => [x]))[0]), half_widths, 1e-12, `band of order ${order} on a grid`);
      }
    }
    for (const query of golden.queries ?? []) {
      const answer = synopsis.query(compiled(query.function, synopsis.meta.domain.map((axis) => axis.column)));
      const { tolerance } = query;
      same([answer.sum], [query.sum], tolerance, query.function);
      same([answer.noise.deviation], [query.noise_deviation], tolerance, "its deviation");
      same([answer.noise.halfWidth], [query.noise_half_width], tolerance, "its half-width");
      if (query.mean === null) assert.equal(answer.mean, null);
      else {
        same([answer.mean.value], [query.mean], tolerance, "its mean");
        same([answer.mean.noise.halfWidth], [query.mean_noise_half_width], tolerance, "the half-width of its mean");
      }
    }
  });
}
