// Readings of tables of cells against the format page, node by node: nothing here is a product over the axes, and the ends of
// intervals are checked by the inequality that defines them.
import assert from "node:assert/strict";
import test from "node:test";
import { parse, SynopsisError } from "../bernstream.js";
import { axes, generator, natural, tables } from "./example.js";

const LABELS = {
  none: null,
  number: { number: { column: "delay", min: -10, max: 50 } },
  above: { above: { column: "delay", above: 15 } },
  classes: { classes: { column: "origin", values: ["EWR", "JFK", "LGA"] } },
};
const FIRST = { box: 0.5, linear: 0, quadratic: -1 };
const MORE = { box: 0, linear: 1, quadratic: 3 };
const STEPS = [[9], [6, 8], [4, 5, 3]];
const bandwidthsOf = (steps) => steps.map((m, i) => (0.9 * (axes(3)[i].max - axes(3)[i].min)) / m);

/** Counts of a few records a node, some of them below 0. */
function synopsisOf(label, spline, steps, size = 30, fields = {}) {
  const random = generator(3);
  return parse(tables(LABELS[label], spline, steps, bandwidthsOf(steps), (t) => size * (random() - 0.1) * (t + 1), fields));
}

const near = (a, b, tolerance = 1e-11, what = "") =>
  assert.ok(Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(b)), `${what} ${a} is not ${b}`);
const sum = (list) => list.reduce((total, x) => total + x, 0);
const lengthOf = (list) => Math.sqrt(sum(list.map((x) => x * x)));
const clip = (x) => Math.min(Math.max(x, 0), 1);

/** What the page says, of a synopsis at some bandwidths. */
class Reference {
  constructor(synopsis, bandwidths) {
    const { meta: { basis: { tables: { spline, steps, tables: T } }, domain, noise, band }, values } = synopsis;
    const along = steps.map((m) => Array.from({ length: m + MORE[spline] }, (_, j) => (j + FIRST[spline]) / m));
    this.nodes = along.reduce((all, axis) => all.flatMap((p) => axis.map((x) => [...p, x])), [[]]);
    const n = this.nodes.length;
    Object.assign(this, { spline, steps, T, domain, n });
    this.v = Array.from({ length: T }, (_, t) => Array.from(values.slice(t * n, (t + 1) * n)));
    this.c = this.nodes.map((_, j) => sum(this.v.map((table) => table[j])));
    const ofSpline = { box: 1 / 12, linear: 1 / 6, quadratic: 1 / 4 }[spline];
    const own = bandwidths?.map((b, i) => b / (domain[i].max - domain[i].min)) ?? synopsis.meta.basis.tables.bandwidths;
    this.s = steps.map((m, i) => Math.sqrt(own[i] ** 2 - ofSpline / m ** 2));
    this.tau = noise.scale * Math.sqrt(2 * T);
    const whole = this.v.map((table) => Math.max(sum(table), 0));
    this.g = whole.map((one) => one / sum(whole));
    this.q = { pointwise: band.pointwise, simultaneous: band.half_width };
  }

  kernels(y) {
    return this.nodes.map((p) => Math.exp(-sum(p.map((x, i) => (y[i] - x) ** 2 / (2 * this.s[i] ** 2)))));
  }

  inside(box) {
    return this.nodes.map((p) => box.reduce((product, [low, high], i) => product * (this.below(i, p[i], high) - this.below(i, p[i], low)), 1));
  }

  /** The part of a spline up to `x`, of what lies inside the cube. */
  below(axis, p, x) {
    const [first, last, at] = [0, 1, x].map((end) => this.integral(axis, p, end));
    return (at - first) / (last - first);
  }

  /** The integral of a spline, by the midpoint rule: it is a piece of a polynomial on every half step. */
  integral(axis, p, x) {
    const spline = (f) => {
      const a = Math.abs(f);
      if (this.spline === "box") return a < 0.5 ? 1 : 0;
      if (this.spline === "linear") return Math.max(1 - a, 0);
      return a <= 0.5 ? 0.75 - a * a : a < 1.5 ? (1.5 - a) ** 2 / 2 : 0;
    };
    const u = (x - p) * this.steps[axis];
    let total = 0;
    for (let from = -1.5; from < Math.min(u, 1.5); from += 0.5) {
      const [to, parts] = [Math.min(from + 0.5, u), 400];
      for (let k = 0; k < parts; k++) total += (spline(from + ((to - from) * (k + 0.5)) / parts) * (to - from)) / parts;
    }
    return total;
  }

  /** The weights of a line, and the length of what all values move `A_t - p S` by: a count moves the slope as well. */
  linear(y) {
    const [K, l] = [this.kernels(y), y.length];
    const d = this.nodes.map((p) => p.map((x, i) => x - y[i]));
    const entry = (i, k) => sum(this.c.map((c, j) => c * K[j] * d[j][i] * d[j][k]))
      + (i === k ? 2 * this.tau * Math.sqrt(sum(K.map((one, j) => one ** 2 * d[j][i] ** 4))) : 0);
    const M = Array.from({ length: l }, (_, i) => Array.from({ length: l }, (_, k) => entry(i, k)));
    const minors = M.map((_, size) => determinant(M.slice(0, size + 1).map((row) => row.slice(0, size + 1))));
    // By Cramer's rule.
    const slope = (counts) => {
      const right = Array.from({ length: l }, (_, i) => sum(counts.map((c, j) => c * K[j] * d[j][i])));
      return minors.every((minor) => minor > 0)
        ? M.map((_, i) => determinant(M.map((row, r) => row.map((x, k) => (k === i ? right[r] : x)))) / determinant(M)) : M.map(() => 0);
    };
    const rise = (beta, j) => sum(beta.map((b, i) => b * d[j][i]));
    const [all, each] = [slope(this.c), this.v.map(slope)];
    const W = K.map((one, j) => one * (1 - rise(all, j)));
    const length = (t, p) => lengthOf(this.v.flatMap((_, u) => W.map((w, j) => w * ((u === t) - rise(each[t], j) - p * (1 - rise(all, j))))));
    return { W, length };
  }

  constant(y) {
    const W = this.kernels(y);
    return { W, length: (t, p) => lengthOf(W) * Math.sqrt((1 - p) ** 2 + (this.T - 1) * p * p) };
  }

  parts(W) {
    const A = this.v.map((table) => sum(table.map((v, j) => v * W[j])));
    const [S, e] = [sum(A), this.tau * lengthOf(W)];
    const l = (e * e) / Math.max(S, e);
    const raw = A.map((a, t) => clip((a + l * this.g[t]) / (Math.max(S, 0) + l)));
    return { A, S, length: lengthOf(W), values: sum(raw) > 0 ? raw.map((x) => x / sum(raw)) : this.g };
  }
}

function determinant(M) {
  if (M.length === 1) return M[0][0];
  return sum(M[0].map((x, k) => (k % 2 ? -1 : 1) * x * determinant(M.slice(1).map((row) => row.filter((_, i) => i !== k)))));
}

/** Whether an interval is the set of `p` from 0 to 1 with `excess(p) <= 0`. */
function isSet(ends, excess, size, what) {
  const [low, high] = ends;
  assert.ok(low <= high, what);
  for (const end of ends) {
    if (end !== 0 && end !== 1) assert.ok(Math.abs(excess(end)) <= 1e-9 * size, `${what}: ${excess(end)} at ${end}`);
  }
  for (let p = 0; p <= 1; p += 1 / 64) {
    if (p > low && p < high) assert.ok(excess(p) <= 1e-9 * size, `${what}: ${p} is within`);
    if (p < low || p > high) assert.ok(excess(p) >= -1e-9 * size, `${what}: ${p} is not within`);
  }
}

const POINTS = [[0.37, 0.6, 0.2], [0, 1, 0.5], [0.91, 0.02, 1]];
const each = (check) => {
  for (const label of Object.keys(LABELS)) {
    for (const spline of Object.keys(FIRST)) {
      for (const steps of STEPS) check(label, spline, steps, `${label} ${spline} ${steps}`);
    }
  }
};

test("a density is the counts read by a kernel, at any bandwidth, with the noise of the same weights", () => {
  each((label, spline, steps, what) => {
    const synopsis = synopsisOf(label, spline, steps);
    const { domain } = synopsis.meta;
    for (const bandwidths of [bandwidthsOf(steps), bandwidthsOf(steps).map((b) => 1.7 * b)]) {
      const reference = new Reference(synopsis, bandwidths);
      const view = synopsis.as({ function: "density", bandwidths });
      const peak = reference.s.reduce((product, s, i) => product * Math.sqrt(2 * Math.PI) * s * (domain[i].max - domain[i].min), 1);
      for (const y of POINTS.map((p) => p.slice(0, steps.length))) {
        const [K, point] = [reference.kernels(y), natural(y)];
        const value = sum(reference.c.map((c, j) => c * K[j])) / peak;
        const wide = Object.entries(reference.q).map(([name, q]) => [name, (q * Math.sqrt(reference.T) * lengthOf(K)) / peak]);
        const found = synopsis.tables().density(point, { bandwidths });
        near(found.value, value, 1e-11, what);
        near(view.evaluate(point), value);
        for (const [name, half] of wide) found[name].forEach((end, i) => near(end, value + (i ? half : -half), 1e-11, what));
        near(view.halfWidth(point), wide[1][1]);
        near(view.pointwise().halfWidth(point), wide[0][1]);
        near(view.pointwise().deviation(point), (wide[0][1] / reference.q.pointwise) * synopsis.meta.noise.scale * Math.SQRT2);
      }
    }
  });
});

test("probabilities are drawn to those of all where records are few, and their intervals are the sets that the noise allows", () => {
  let [known, unknown, linear] = [0, 0, 0];
  for (const size of [30, 3, 0.5]) {
    each((label, spline, steps, what) => {
      if (label === "none") return;
      const synopsis = synopsisOf(label, spline, steps, size);
      const bandwidths = bandwidthsOf(steps).map((b) => 1.2 * b);
      const reference = new Reference(synopsis, bandwidths);
      for (const y of POINTS.map((p) => p.slice(0, steps.length))) {
        for (const degree of ["constant", "linear"]) {
          const { W, length: moved } = reference[degree](y);
          linear += degree === "linear" && lengthOf(W) !== lengthOf(reference.kernels(y));
          const { A, S, values } = reference.parts(W);
          const found = synopsis.tables().probabilities(natural(y), { bandwidths, degree });
          found.forEach((one, t) => {
            near(one.value, values[t], 1e-10, `${what} ${degree}`);
            for (const [name, q] of Object.entries(reference.q)) {
              // Of the variance, a quadratic of p, what is left at large p is that of S.
              const isKnown = S > (q * moved(t, 1e6)) / 1e6;
              assert.equal(one[name] !== null, isKnown, what);
              [known, unknown] = [known + isKnown, unknown + !isKnown];
              const excess = (p) => Math.abs(A[t] - p * S) - q * moved(t, p);
              if (isKnown) isSet(one[name], excess, Math.abs(A[t]) + S, `${what} ${degree} ${size}`);
            }
          });
          near(sum(found.map(({ value }) => value)), 1);
        }
      }
    });
  }
  assert.ok(known > 300 && unknown > 200 && linear > 100, `${known} known, ${unknown} unknown, ${linear} sloped`);
});

test("what is asked for without more is the label's own function, and a grid is its points", () => {
  each((label, spline, steps, what) => {
    const synopsis = synopsisOf(label, spline, steps, 20);
    const [own, table, degree] = { none: ["density"], number: ["expected", 1, "linear"], above: ["probability", 1, "constant"], classes: ["probability", 0, "constant"] }[label];
    const wanted = [[-1, 0.123, 3], [-2, 1 / 3, 3], [-3, 0.5]].slice(0, steps.length);
    const points = wanted.reduce((all, axis) => all.flatMap((p) => axis.map((x) => [...p, x])), [[]]);
    const grid = synopsis.tables().on(wanted, { function: own, table, degree });
    const [values, wide, narrow] = [synopsis.evaluator().on(wanted), synopsis.halfWidths(wanted), synopsis.pointwise().halfWidths(wanted)];
    const range = label === "number" ? 60 : 1;
    points.forEach((point, i) => {
      const at = synopsis.tables();
      const one = own === "probability" ? at.probabilities(point)[table] : at[own](point);
      near(grid.values[i], one.value, 1e-11, what);
      near(values[i], one.value);
      near(synopsis.evaluate(point), one.value);
      for (const [name, half] of [["simultaneous", wide[i]], ["pointwise", narrow[i]]]) {
        if (one[name] === null) assert.ok(Number.isNaN(grid[name].lower[i]) && Number.isNaN(grid[name].upper[i]), what);
        else near(grid[name].lower[i], one[name][0]) || near(grid[name].upper[i], one[name][1]);
        near(half, one[name] === null ? range : Math.max(one.value - one[name][0], one[name][1] - one.value), 1e-10, what);
      }
      near(synopsis.halfWidth(point), wide[i]);
    });
  });
});

const BOX = [[0.13, 0.78], [0.3, 1], [0, 0.55]];
const inUnits = (box) => box.map((side, i) => side.map((y) => natural(box.map(() => y))[i]));

test("counts, shares and means in a range are the splines' parts in it", () => {
  each((label, spline, steps, what) => {
    const synopsis = synopsisOf(label, spline, steps);
    const reference = new Reference(synopsis);
    const box = BOX.slice(0, steps.length);
    const G = reference.inside(box);
    const at = synopsis.tables();
    const found = at.count(inUnits(box));
    const A = sum(reference.c.map((c, j) => c * G[j]));
    const rough = { box: 3e-3, linear: 3e-5, quadratic: 3e-5 }[spline];
    near(found.value, A, rough, what);
    near(found.pointwise[1] - found.value, reference.q.pointwise * Math.sqrt(reference.T) * lengthOf(G), rough, what);
    const C = sum(reference.c);
    const share = at.share(inUnits(box));
    near(share.value, A / C, rough, what);
    const excess = (p) => Math.abs(found.value - p * C) - reference.q.pointwise * Math.sqrt(reference.T) * lengthOf(G.map((one) => one - p));
    share.pointwise.forEach((end) => assert.ok(end === 0 || end === 1 || Math.abs(excess(end)) <= 1e-2 * C * rough ** 0.5, `${what}: ${excess(end)}`));
    // The whole domain holds every record, and two halves as many as both together.
    const all = box.map(() => null);
    near(at.count(all).value, C);
    near(at.share(all).value, 1);
    const middle = 1.1;
    const half = (side) => [side, ...all.slice(1)];
    near(at.count(half([-1, middle])).value + at.count(half([middle, 3])).value, C, 1e-10, what);
    if (label === "none") return assert.throws(() => at.proportions(all), SynopsisError);
    const { values } = reference.parts(G);
    const parts = at.proportions(inUnits(box));
    parts.forEach(({ value }, t) => near(value, values[t], rough, what));
    if (label === "number") {
      near(at.mean(inUnits(box)).value, -10 + 60 * values[1], 10 * rough, what);
      at.mean(inUnits(box)).pointwise.forEach((end, i) => near(end, -10 + 60 * parts[1].pointwise[i]));
    } else assert.throws(() => at.mean(all), SynopsisError);
    return undefined;
  });
});

test("even records are counted evenly up to the ends of the domain", () => {
  // What of the spline of each node lies inside the domain, at either end.
  const inside = { box: () => 1, linear: (j) => (j % 8 ? 1 : 1 / 2), quadratic: (j) => [1 / 48, 1 / 2, 47 / 48][Math.min(j, 10 - j)] ?? 1 };
  for (const spline of Object.keys(FIRST)) {
    const at = parse(tables(null, spline, [8], [0.6], (_, j) => 5 * inside[spline](j))).tables();
    for (const x of [-0.95, -0.7, 0.3, 2.9, 3]) near(at.count([-1, x]).value, 10 * (x + 1), 1e-12, spline);
    near(at.quantile(0.01).value, -0.96, 1e-12);
  }
});

test("quantiles are where the sorted counts reach a part, and their interval the steps that the noise allows", () => {
  for (const spline of Object.keys(FIRST)) {
    for (const size of [30, 2]) {
      const synopsis = synopsisOf("number", spline, [12], size);
      const reference = new Reference(synopsis);
      const C = sum(reference.c);
      const steps = Array.from({ length: 1001 }, (_, k) => synopsis.tables().count([-1, Math.min(-1 + (4 * k) / 1000, 3)]));
      const raw = steps.map(({ value }) => value);
      // The nearest nondecreasing sequence is the least upper mean of means to the left (min-max formula).
      const rising = raw.map((_, k) => k).filter((k) => k % 50 === 0).map((k) => minMax(raw, k));
      for (const part of [0.1, 0.5, 0.9]) {
        const { value, pointwise } = synopsis.tables().quantile(part);
        const at = ((value + 1) / 4) * 1000;
        const low = rising.filter((below, i) => 50 * i < at - 1 && below > part * C + 1e-9 * C);
        const high = rising.filter((below, i) => 50 * i > at + 1 && below < part * C - 1e-9 * C);
        assert.ok(low.length === 0 && high.length === 0, `${spline} ${part}: ${value}`);
        const node = (k) => reference.nodes.map(([p]) => reference.below(0, p, k / 1000));
        for (const [end, step] of [[pointwise[0], 1], [pointwise[1], -1]]) {
          const k = Math.round(((end + 1) / 4) * 1000);
          near(-1 + (4 * k) / 1000, end);
          // One step further in it is not certain; at the end itself and beyond it is, but for the ends of the domain.
          const excess = (k) => step * (part * C - raw[k]) - reference.q.pointwise * Math.SQRT2 * lengthOf(node(k).map((one) => one - part));
          if (k === 0 || k === 1000) continue;
          assert.ok(excess(k + step) <= 1e-2 && excess(k) >= -1e-2, `${spline} ${part} at ${k}: ${excess(k + step)}, ${excess(k)}`);
          for (const beyond of [k - 7 * step, k - 60 * step]) assert.ok(beyond < 0 || beyond > 1000 || excess(beyond) >= -1e-2);
        }
        assert.ok(pointwise[0] <= pointwise[1]);
      }
    }
  }
  assert.throws(() => synopsisOf("none", "box", [4, 4]).tables().quantile(0.5), SynopsisError);
  assert.throws(() => synopsisOf("none", "box", [4]).tables().quantile(1.5), SynopsisError);
});

function minMax(values, k) {
  let best = -Infinity;
  for (let i = 0; i <= k; i++) {
    let [total, least] = [0, Infinity];
    for (let j = i; j < values.length; j++) {
      total += values[j];
      if (j >= k) least = Math.min(least, total / (j - i + 1));
    }
    best = Math.max(best, least);
  }
  return best;
}

test("without records there is nothing to know, and that is said", () => {
  const empty = parse(tables(LABELS.number, "linear", [6], [1], (t, j) => (j % 2 ? 0.1 : -0.2)));
  const at = empty.tables();
  assert.deepEqual([at.share([0, 1]).value, at.share([0, 1]).pointwise, at.quantile(0.5).value], [null, null, null]);
  assert.deepEqual(at.quantile(0.5).pointwise, [-1, 3]);
  assert.equal(at.mean([0, 1]).pointwise, null);
  assert.equal(at.expected(1).simultaneous, null);
  assert.equal(at.expected(1).value, 20, "the middle of the label, as no table has records");
  assert.equal(empty.halfWidth(1), 60);
});

test("naive Bayes multiplies what each axis says, and is a local constant on one", () => {
  const at = synopsisOf("classes", "linear", [9]).tables();
  assert.deepEqual(at.probabilities(0.7, { degree: "naive" }), at.probabilities(0.7));
  // Three classes whose axes are independent: a product of one number for each axis.
  const along = [[[9, 5, 2, 1], [1, 3, 6, 8], [4, 4, 4, 4]], [[7, 7, 1], [2, 5, 3], [1, 1, 9]]];
  const plane = (times) => parse(tables(LABELS.classes, "box", [4, 3], bandwidthsOf([4, 3]), (t, j) => times * along[0][t][Math.floor(j / 3)] * along[1][t][j % 3]));
  for (const point of [[-0.5, 0.3], [1.2, 1.9], [2.9, -0.4]]) {
    const [naive, mean] = ["naive", "constant"].map((degree) => plane(1e6).tables().probabilities(point, { degree }));
    naive.forEach(({ value }, t) => near(value, mean[t].value, 1e-6));
    for (const { value, pointwise: [low, high] } of naive) assert.ok(low < value && value < high && high - low < 1e-3);
  }
  const few = parse(tables(LABELS.classes, "box", [4, 3], bandwidthsOf([4, 3]), (t, j) => (t < 2 ? 50 + j : 0))).tables();
  assert.equal(few.probabilities([0, 1], { degree: "naive" })[0].pointwise, null, "a class may have no records");
  assert.notEqual(few.probabilities([0, 1])[0].pointwise, null);
  assert.equal(few.classify([0, 1], { degree: "naive" }).table, null);
  assert.throws(() => synopsisOf("number", "box", [4]).tables().on([[0]], { degree: "naive" }), /naive Bayes is of classes/);
});

test("a ratio of densities is unknown where there may be nothing to divide by, and its inverse the other way round", () => {
  const counts = [[90, 90, 40, 20, 10, 0, 0, 0], [10, 30, 40, 90, 90, 9, 0, 0], [1, 0, 0, 0, 0, 0, 1, 0]];
  const at = parse(tables(LABELS.classes, "box", [8], [0.5], (t, j) => counts[t][j])).tables();
  const [one, other] = [at.densityRatio(0.1, 0, 1), at.densityRatio(0.1, 1, 0)];
  near(one.value * other.value, 1);
  near(one.pointwise[0] * other.pointwise[1], 1);
  near(one.simultaneous[1] * other.simultaneous[0], 1);
  assert.ok(at.densityRatio(-0.7, 0, 1).pointwise[0] > 1.5 && at.densityRatio(1.3, 0, 1).pointwise[1] < 0.7);
  assert.equal(at.densityRatio(2.9, 0, 1).pointwise, null);
  assert.equal(at.densityRatio(0.1, 0, 2).pointwise, null);
  for (const wrong of [() => at.densityRatio(0, 1, 1), () => at.densityRatio(0, 0, 3), () => synopsisOf("number", "box", [4]).tables().densityRatio(0, 0, 1)]) {
    assert.throws(wrong, SynopsisError);
  }
});

test("a class is called only where the noise leaves no other", () => {
  const counts = [[40, 40, 40, 4, 4, 1, 1, 1], [4, 4, 4, 40, 40, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1]];
  const classes = parse(tables(LABELS.classes, "box", [8], [0.5], (t, j) => counts[t][j])).tables();
  const says = (x) => classes.classify(x).says;
  assert.deepEqual([-0.6, 1.2, 2.7, 0.5].map(says), ["EWR", "JFK", "too close to call", "too close to call"]);
  assert.deepEqual(classes.classifyIn([-1, 0.5]).says, "EWR");
  assert.equal(classes.classifyIn([-0.5, 1.5]).table, null);
  const above = parse(tables(LABELS.above, "box", [8], [0.5], (t, j) => counts[1 - t][j]));
  assert.deepEqual(above.tables().names, ["below", "above"]);
  const { score, lower, upper, says: side } = above.classify(-0.6);
  assert.ok(side === "above" && lower > 0.5 && score > lower && upper > score, `${side} ${lower} ${score} ${upper}`);
  assert.equal(above.classify(0.5).says, "too close to call");
  assert.throws(() => synopsisOf("number", "box", [4]).tables().classify(0), SynopsisError);
});

test("intervals hold the truth at least as often as they say, where noise alone parts the two", () => {
  const random = generator(11);
  const exact = parse(tables(LABELS.number, "linear", [20], [0.4], (t, j) => 60 * (t ? 0.3 : 0.7) * (1.2 - Math.sin(j / 3))));
  const scale = exact.meta.noise.scale;
  // Of Laplace noise of this scale 95 % of a sum with equal weights is within about this times their length.
  const synopsis = parse({ ...exact.meta, band: { ...exact.meta.band, pointwise: 3 * scale, half_width: 4.6 * scale }, noise: { ...exact.meta.noise, scale }, values: [...exact.values] });
  const readings = [(at) => at.count([0, 1.5]), (at) => at.share([0, 1.5]), (at) => at.mean([0, 1.5]), (at) => at.expected(0.7), (at) => at.density(0.7), (at) => at.quantile(0.3)];
  const truth = readings.map((read) => read(synopsis.tables()).value);
  const inside = readings.map(() => 0);
  for (const sample of synopsis.sample(400, random)) {
    readings.forEach((read, i) => {
      const [low, high] = read(sample.tables()).pointwise;
      inside[i] += low <= truth[i] && truth[i] <= high;
    });
  }
  inside.forEach((count, i) => assert.ok(count >= 0.93 * 400, `reading ${i}: ${count} of 400`));
  assert.ok(inside.slice(0, 5).every((count) => count < 400), `${inside}`);
});

test("what does not fit is refused", () => {
  const whole = () => tables(LABELS.number, "box", [4], [1], () => 1);
  const refuses = (change, why) => assert.throws(() => parse({ ...whole(), ...change }), (e) => e instanceof SynopsisError && why.test(e.message), `${why}`);
  const target = (cells) => ({ target: { cells: { label: LABELS.number, ...cells } } });
  const basis = (of) => ({ basis: { tables: { spline: "box", steps: [4], bandwidths: [0.25], tables: 2, ...of } } });
  refuses({ target: { density: { kernel: { bandwidths: [1] } } } }, /come together/);
  refuses({ basis: "affine", values: [1, 2] }, /come together/);
  refuses(target({ label: null }), /not those of its label/);
  refuses(target({ label: LABELS.classes }), /not those of its label/);
  refuses(target({ label: { anything: { column: "x" } } }), /'anything' is not one/);
  refuses(target({ label: { number: { column: "x", min: 1, max: 1 } } }), /no proper range/);
  refuses(target({ label: { above: { column: "x" } } }), /above/);
  refuses(target({ label: { classes: { column: "x", values: ["one"] } } }), /2 to 16 values/);
  refuses(target({ label: { classes: { column: "x", values: [[], {}] } } }), /2 to 16 values/);
  refuses({ target: "cells" }, /no content/);
  for (const bandwidths of [[0.25, 0.25], [0], [1.1], ["0.25"], undefined]) refuses(basis({ bandwidths }), /'bandwidths'/);
  refuses(basis({ bandwidths: [0.07] }), /too wide/);
  refuses(basis({ tables: 17 }), /1 to 16/);
  refuses(basis({ steps: [32769] }), /more than 65536 cells/);
  refuses(basis({ spline: "cubic" }), /spline 'cubic'/);
  refuses({ values: [1, 2, 3] }, /3 values, its description asks for 8/);
  refuses({ degree: 2 }, /degree 1 and order 1/);
  const synopsis = parse(whole());
  assert.ok(synopsis.pointwise().deviation(0) > 0);
  for (const by of ["nearest", "kernel", "posterior", "nonnegative", "furthest"]) assert.throws(() => synopsis.evaluator(by), SynopsisError);
  const at = synopsis.tables();
  for (const wrong of [
    () => at.density(0, { bandwidths: 0.9 }), () => at.density(0, { bandwidths: [1, 2] }), () => at.density(9), () => at.count([0]), () => at.count([2, 1]),
    () => at.count([0, 9]), () => at.expected(0, { degree: "cubic" }), () => synopsis.as({ function: "none" }), () => synopsis.as({ function: "probability", table: 2 }),
    () => parse(tables(null, "box", [4], [1], () => 1)).tables().expected(0), () => at.density(0, { bandwidths: 4.1 }),
  ]) assert.throws(wrong, SynopsisError, `${wrong}`);
  assert.equal(at.expected(0, { bandwidths: 3 }).value, 20);
  assert.deepEqual(at.finest, [1]);
  assert.equal(at.density(0, { bandwidths: 1 - 1e-12 }).value > 0, true, "rounded");
});
