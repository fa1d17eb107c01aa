// What any evaluation must keep, whatever the values are.
import assert from "node:assert/strict";
import test from "node:test";
import { parse, SynopsisError } from "../bernstream.js";
import { axes, cells, cube, describe, generator, lattice, natural } from "./example.js";

const near = (a, b, tolerance = 1e-12) =>
  assert.ok(Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(b)), `${a} is not ${b}`);
const noise = (seed) => {
  const random = generator(seed);
  return () => random() - 0.5;
};
const GRID = [[-1, 0.123, 3], [-2, 1 / 3, 2.9, 3], [-3, 0.5, 4]];

test("the README's example", () => {
  const synopsis = parse(JSON.stringify({ ...describe(), values: [2, 4, 6] }));
  assert.equal(synopsis.evaluate(75), 4);
  assert.equal(synopsis.halfWidth([75]), 1);
  assert.equal(synopsis.mass(), 840);
});

test("the basis adds up to one at every degree, and up to the ends", () => {
  for (const degree of [1, 2, 40, 148, 149, 1000, 5000]) {
    const ones = parse(lattice(1, degree, () => 1)).evaluator(1);
    const mean = parse(lattice(1, degree, ([y]) => y)).evaluator(1);
    for (const y of [0, 1e-300, 1e-9, 0.1, 0.5, 0.77, 1 - 1e-9, 1]) {
      near(ones.evaluate(natural([y])), 1, 1e-14);
      near(mean.evaluate(natural([y])), y, 1e-13);
    }
  }
});

test("linear functions are kept at every order and in every dimension", () => {
  for (const dimensions of [1, 2, 3]) {
    const f = (y) => 3 + y.reduce((sum, y, i) => sum + (i - 4) * y, 0);
    const synopsis = parse(lattice(dimensions, 7, f));
    const y = [0.13, 0.5, 0.92].slice(0, dimensions);
    for (const order of [1, 2, 9, 200]) near(synopsis.evaluate(natural(y), order), f(y));
  }
});

test("a higher order is sharper, and order 1 is the plain Bernstein polynomial", () => {
  const f = ([y]) => y * Math.sin(10 * y);
  const synopsis = parse(lattice(1, 25, f));
  const worst = (order) => {
    const evaluator = synopsis.evaluator(order);
    return Math.max(...cube(1, 201).map((y) => Math.abs(evaluator.evaluate(natural(y)) - f(y))));
  };
  assert.ok(worst(1) > 2 * worst(2) && worst(2) > 2 * worst(8), `${[1, 2, 8].map(worst)}`);
  const choose = (n, k) => (k ? (choose(n, k - 1) * (n - k + 1)) / k : 1);
  const y = 0.37;
  const plain = synopsis.values.reduce((sum, v, j) => sum + v * choose(25, j) * y ** j * (1 - y) ** (25 - j), 0);
  near(synopsis.evaluate(natural([y]), 1), plain);
});

test("a grid is its points, the last axis fastest, by every reading", () => {
  for (const dimensions of [1, 2, 3]) {
    const grid = GRID.slice(0, dimensions);
    const points = grid.reduce((all, axis) => all.flatMap((p) => axis.map((x) => [...p, x])), [[]]);
    const synopsis = parse(lattice(dimensions, 5, noise(1)));
    for (const by of [1, 3, "nearest", "kernel", "posterior"]) {
      const evaluator = synopsis.evaluator(by);
      const values = evaluator.on(grid);
      assert.equal(values.length, points.length);
      // Smooth functions are sums of large terms of either sign.
      const tolerance = by === "kernel" || by === "posterior" ? 1e-9 : 1e-12;
      points.forEach((point, i) => near(values[i], evaluator.evaluate(point), tolerance));
    }
    const wide = synopsis.halfWidths(grid);
    points.forEach((point, i) => near(wide[i], synopsis.halfWidth(point)));
    for (const order of [1, 2, 4, 5, 7]) {
      const band = synopsis.pointwise(order);
      const [narrow, deviations] = [band.halfWidths(grid), band.deviations(grid)];
      points.forEach((point, i) => near(narrow[i], band.halfWidth(point)));
      points.forEach((point, i) => near(deviations[i], band.deviation(point)));
    }
  }
});

test("the noise of a large grid, found by its axes, is that of its points, whatever the order", () => {
  for (const [dimensions, degree, orders] of [[2, 12, [1, 2, 7, 30]], [3, 6, [1, 3, 5]]]) {
    const synopsis = parse(lattice(dimensions, degree, () => 1));
    const grid = axes(dimensions).map(({ min, max }) => Array.from({ length: 20 }, (_, i) => min + ((max - min) * i) / 19));
    for (const order of orders) {
      const band = synopsis.pointwise(order);
      const deviations = band.deviations(grid);
      for (let flat = 7; flat < deviations.length; flat += 97) {
        const point = grid.map((axis, i) => axis[Math.floor(flat / 20 ** (dimensions - 1 - i)) % 20]);
        near(deviations[flat], band.deviation(point), 1e-13);
      }
    }
  }
});

test("the nearest lattice point", () => {
  const values = lattice(2, 4, noise(2));
  const synopsis = parse(values);
  assert.equal(synopsis.evaluate(natural([0.5, 0.25]), "nearest"), values.values[2 * 5 + 1]);
  assert.equal(synopsis.evaluate(natural([0.6, 0.3]), "nearest"), values.values[2 * 5 + 1]);
  assert.equal(synopsis.evaluate(natural([1, 1]), "nearest"), values.values[24]);
});

test("an affine function, and a sum of kernel functions", () => {
  const flat = { degree: 1, order: 1, domain: axes(2), target: { regression: { label: "z", min: 0, max: 1, method: "logistic" } } };
  const affine = parse({ ...describe({ ...flat, basis: "affine" }), values: [5, -2, 0.5] });
  near(affine.evaluate(natural([0.75, 0])), 5 - 2 * 0.5 - 0.5);
  near(affine.evaluator().integrate([[-1, 1], [-2, 5]]), 2 * 7 * (5 - 2 * -0.5));
  const points = [[0.2, 0.3], [0.8, 0.4]];
  const kernels = [
    [{ gaussian: { precision: [[4, 1], [1, 9]] } }, (dx, dy) => Math.exp(-(4 * dx * dx + 2 * dx * dy + 9 * dy * dy) / 2)],
    [{ gaussian: { precision: [[4, 0], [0, 9]] } }, (dx, dy) => Math.exp(-(4 * dx * dx + 9 * dy * dy) / 2)],
    [{ machine: { gaussian: { bandwidth: 0.5 } } }, (dx, dy) => Math.exp(-2 * (dx * dx + dy * dy))],
    [{ machine: { laplacian: { bandwidth: 0.5 } } }, (dx, dy) => Math.exp(-2 * (Math.abs(dx) + Math.abs(dy)))],
  ];
  for (const [kernel, value] of kernels) {
    const sum = parse({ ...describe({ ...flat, offset: 7, basis: { kernel: { kernel, points } } }), values: [3, -1] });
    const expected = ([x, y]) => 7 + 3 * value(x - 0.2, y - 0.3) - value(x - 0.8, y - 0.4);
    for (const y of cube(2, 4)) near(sum.evaluate(natural(y)), expected(y));
    const grid = sum.evaluator("kernel").on(axes(2).map(({ min, max }) => [min, max]));
    cube(2, 2).forEach((y, i) => near(grid[i], expected(y)));
  }
  const polynomial = { machine: { polynomial: { power: 3 } } };
  const cubic = parse({ ...describe({ ...flat, basis: { kernel: { kernel: polynomial, points } } }), values: [1, 0] });
  near(cubic.evaluate(natural([1, 0.5])), ((1 - 0.6) / 3) ** 3);
});

test("cells are kernels on the nodes of their grid, separately on each axis where that is the same", () => {
  // Where the nodes of 4 and 3 steps lie.
  const nodes = { box: [[0.125, 0.375, 0.625, 0.875], [1 / 6, 0.5, 5 / 6]], linear: [[0, 0.25, 0.5, 0.75, 1], [0, 1 / 3, 2 / 3, 1]],
    quadratic: [[-0.25, 0, 0.25, 0.5, 0.75, 1, 1.25], [-1 / 3, 0, 1 / 3, 2 / 3, 1, 4 / 3]] };
  for (const spline of ["box", "linear", "quadratic"]) {
    for (const precision of [[[30, 0], [0, 20]], [[30, 9], [9, 20]]]) {
      const synopsis = parse(cells(precision, spline, [4, 3]));
      const points = nodes[spline][0].flatMap((x) => nodes[spline][1].map((y) => [x, y]));
      const [[p, q], [, r]] = precision;
      const kernels = ([x, y]) => points.map(([u, v]) => Math.exp(-(p * (x - u) ** 2 + 2 * q * (x - u) * (y - v) + r * (y - v) ** 2) / 2));
      const value = (y) => kernels(y).reduce((sum, k, i) => sum + k * synopsis.values[i], 0);
      const band = synopsis.pointwise();
      const grid = [axes(2)[0], axes(2)[1]].map(({ min, max }) => [0, 0.3, 1].map((y) => min + y * (max - min)));
      const [values, deviations] = [synopsis.evaluator("kernel").on(grid), band.deviations(grid)];
      [0, 0.3, 1].flatMap((x) => [0, 0.3, 1].map((y) => [x, y])).forEach((y, i) => {
        near(synopsis.evaluate(natural(y)), value(y));
        near(values[i], value(y));
        const deviation = 0.25 * Math.SQRT2 * Math.hypot(...kernels(y));
        near(band.deviation(natural(y)), deviation);
        near(deviations[i], deviation);
      });
      assert.throws(() => synopsis.evaluator("nearest"), /cannot be read/);
    }
  }
});

test("smoothed counts are nearer to what was there, and none is negative where that is asked for", () => {
  const random = generator(11);
  for (const precision of [[[70, 0], [0, 60]], [[70, 20], [20, 60]]]) {
    const exact = cells(precision, "quadratic", [6, 6], { noise: { law: "discrete laplace", scale: 10, grid: 1e-9 } });
    // A crowd in one corner.
    exact.values = exact.values.map((_, i) => 40 * Math.exp(-(((i % 9) - 2) ** 2) / 3 - ((Math.floor(i / 9) - 2) ** 2) / 3));
    const laplace = () => (random() < 0.5 ? 10 : -10) * Math.log(1 - random());
    const noisy = () => parse({ ...exact, values: exact.values.map((v) => v + laplace()), reading: "nonnegative" });
    const [truth, synopses] = [parse(exact), Array.from({ length: 8 }, noisy)];
    const grid = axes(2).map(({ min, max }) => Array.from({ length: 15 }, (_, i) => min + ((max - min) * i) / 14));
    const expected = truth.evaluator().on(grid);
    const apart = (synopsis, by) => Math.max(...synopsis.evaluator(by).on(grid).map((v, i) => Math.abs(v - expected[i])));
    const error = (by) => synopses.reduce((sum, synopsis) => sum + apart(synopsis, by), 0) / synopses.length;
    assert.ok(error("posterior") < 0.8 * error(1) && error("nonnegative") < 0.8 * error(1), `${[1, "posterior", "nonnegative"].map(error)}`);
    const [synopsis] = synopses;
    assert.equal(synopsis.recommended, "nonnegative");
    const smooth = synopsis.evaluator("posterior");
    assert.ok(Math.min(...synopsis.evaluator("nonnegative").on(grid)) >= 0 && Math.min(...synopsis.evaluator().on(grid)) < 0);
    const points = grid[0].flatMap((x) => grid[1].map((y) => [x, y]));
    const inside = points.filter((p, i) => Math.abs(smooth.evaluate(p) - expected[i]) <= 1.96 * smooth.deviation(p)).length;
    assert.ok(inside > 0.8 * points.length, `${inside} of ${points.length}`);
    assert.equal(synopsis.evaluator("nonnegative").deviation(points[0]), null);
    near(smooth.evaluate(points[40]), smooth.on([[points[40][0]], [points[40][1]]])[0]);
  }
  assert.equal(parse({ ...describe(), values: [2, 4, 6] }).recommended, 2);
  assert.throws(() => parse({ ...describe(), values: [2, 4, 6] }).evaluator("nonnegative"), /cannot be read/);
  assert.throws(() => parse(cells([[1e6]], "linear", [600])).evaluator("posterior"), /cannot be read/);
});

test("integrals of boxes add up to the mass", () => {
  const synopsis = parse(lattice(2, 6, noise(3)));
  for (const by of [1, 4, "nearest", "kernel"]) {
    const evaluator = synopsis.evaluator(by);
    const parts = [[-1, 0.5], [0.5, 3]].flatMap((x) => [[-2, 0], [0, 5]].map((y) => evaluator.integrate([x, y])));
    const whole = evaluator.integrate([[-1, 3], [-2, 5]]);
    // The mass of steps is that of the midpoint rule, in every client.
    near(whole, evaluator.mass(), by === "nearest" ? 0.05 : 1e-12);
    near(parts.reduce((a, b) => a + b), whole, by === "kernel" ? 0.01 : 1e-12);
  }
  const square = parse(lattice(1, 30, ([y]) => y)).evaluator();
  near(square.integrate([-1, 1]), 4 * 0.5 ** 2 / 2);
});

test("a density is nowhere negative and has mass one; a distribution function never falls", () => {
  const evaluator = parse(lattice(1, 12, ([y]) => Math.exp(-50 * (y - 0.4) ** 2) - 0.1)).evaluator();
  const density = evaluator.proper();
  const xs = Array.from({ length: 4001 }, (_, i) => -1 + i / 1000);
  const values = density.on([xs]);
  assert.ok(values.every((value) => value >= 0) && values.some((value) => value === 0));
  near(values.reduce((a, b) => a + b) / 1000, 1, 1e-3);
  near(density.evaluate(0.5), evaluator.evaluate(0.5) / density.mass);
  const function_ = evaluator.cumulative();
  const rises = xs.map((x) => function_.evaluate(x));
  assert.ok(rises.every((value, i) => i === 0 || value >= rises[i - 1]));
  assert.deepEqual([rises[0], rises[4000]], [0, 1]);
  assert.throws(() => parse(lattice(1, 3, () => -1)).evaluator().proper(), /not positive/);
  assert.throws(() => parse(lattice(2, 3, () => 1)).evaluator().cumulative(), /one axis/);
});

test("posterior smoothing leaves less of the noise than the lattice has, and says how much it may be", () => {
  const random = noise(4);
  const f = ([y]) => Math.sin(4 * y);
  const scale = 0.1;
  const fields = { noise: { law: "discrete gaussian", scale, grid: 1e-9 }, target: { sum: { expression: "x" } } };
  const normal = () => Array.from({ length: 12 }, random).reduce((a, b) => a + b);
  const synopsis = parse(lattice(1, 60, (y) => f(y) + scale * normal(), fields));
  const smooth = synopsis.evaluator("posterior");
  const errors = cube(1, 41).map((y) => (smooth.evaluate(natural(y)) - f(y)) / smooth.deviation(natural(y)));
  const size = Math.sqrt(errors.reduce((sum, e) => sum + e * e, 0) / errors.length);
  assert.ok(size > 0.2 && size < 2, `${size} deviations`);
  assert.ok(smooth.deviation(natural([0.5])) < 0.5 * scale);
  assert.equal(synopsis.evaluator().deviation(natural([0.5])), null);
});

test("classes are told apart where the noise leaves one to tell", () => {
  const method = { logistic: { c: 1, max_records: 10 } };
  const flat = { basis: "affine", degree: 1, order: 1, band: { ...describe().band, half_width: 1, weights: [1] } };
  const score = parse({ ...describe({ ...flat, target: { classifier: { label: "late", above: 15, method } } }), values: [0, 3] });
  assert.deepEqual(score.classify(180), { score: 3, lower: 2, upper: 4, says: "above" });
  assert.equal(score.classify(-30).says, "below");
  assert.equal(score.classify(80).says, "too close to call");
  const part = parse({ ...describe({ ...flat, target: { probability: { label: "late", above: 15, method } } }), values: [0.5, 3] });
  assert.equal(part.classify(75).says, "too close to call");
  assert.throws(() => parse({ ...describe(), values: [1, 2, 3] }).classify(0), /no classifier/);
});

test("what cannot be asked is said", () => {
  const synopsis = parse({ ...describe(), values: [2, 4, 6] });
  const wrong = [
    [() => synopsis.evaluate(181), /dep_delay = 181 is outside the domain -30 to 180/],
    [() => synopsis.evaluate(NaN), /outside/],
    [() => synopsis.evaluate([1, 2]), /has 1 coordinates, not 2/],
    [() => synopsis.evaluate(), /has 1 coordinates, not 0/],
    [() => synopsis.evaluator(0), /order 0 is not from 1 to 1000/],
    [() => synopsis.evaluator(1.5), /order 1.5/],
    [() => synopsis.evaluator("constructor"), /no reading/],
    [() => synopsis.evaluator().on([1, 2]), /lists of coordinates/],
    [() => synopsis.evaluator().on([[1, 999]]), /outside/],
    [() => synopsis.evaluator().integrate([5, 1]), /ends before/],
    [() => synopsis.pointwise(0), /order 0/],
    [() => synopsis.query((x) => x), /not moments/],
    [() => synopsis.sample(-1), /no number of samples/],
    [() => parse({ ...describe({ basis: "affine", degree: 1, order: 1 }), values: [1, 2] }).evaluator("posterior"), /cannot be read/],
  ];
  for (const [ask, why] of wrong) {
    assert.throws(ask, (error) => error instanceof SynopsisError && why.test(error.message), `${ask}`);
  }
});
