// The numbers to draw: a function and its bands on even grids, each computed once per synopsis.

const kept = new WeakMap();
const places = new WeakMap();
/** Crosshairs and sliders keep requesting new points: the number of results to keep. */
const MOST_PLACES = 12;

function once(synopsis, name, make, all = kept) {
  if (!all.has(synopsis)) all.set(synopsis, new Map());
  const own = all.get(synopsis);
  if (all === places && own.size >= MOST_PLACES && !own.has(name)) own.clear();
  if (!own.has(name)) own.set(name, make());
  return own.get(name);
}

/** `count` even points from end to end of an axis; the ends are exact. */
export function along({ min, max }, count) {
  return Array.from({ length: count }, (_, i) => (i === count - 1 ? max : min + ((max - min) * i) / (count - 1)));
}

const evaluator = (synopsis) => once(synopsis, "evaluator", () => synopsis.evaluator());
const pointwise = (synopsis) => once(synopsis, "pointwise", () => synopsis.pointwise());

/** The points of a line through the domain: along `axis`, with all other coordinates from `at`. */
const lineAxes = (meta, axis, at, xs) => meta.domain.map((_, i) => (i === axis ? xs : [at[i]]));

/** The function along one axis, with the half-widths of its simultaneous (`wide`) and pointwise (`narrow`) bands. */
export function line(synopsis, axis, at, count = 201) {
  const others = at.map((x, i) => (i === axis ? "" : x));
  return once(synopsis, JSON.stringify(["line", axis, others, count]), () => {
    const xs = along(synopsis.meta.domain[axis], count);
    const axes = lineAxes(synopsis.meta, axis, at, xs);
    return {
      xs,
      values: evaluator(synopsis).on(axes),
      wide: synopsis.halfWidths(axes),
      narrow: pointwise(synopsis).halfWidths(axes),
    };
  }, places);
}

/** `count` plausible curves along one axis: the noise could have turned each into this one. */
export function plausible(synopsis, axis, at, count, points = 101) {
  const samples = once(synopsis, `samples ${count}`, () => synopsis.sample(count));
  const xs = along(synopsis.meta.domain[axis], points);
  const axes = lineAxes(synopsis.meta, axis, at, xs);
  return { xs, curves: samples.map((sample) => evaluator(sample).on(axes)) };
}

/** The function on the first two axes, row-major, the second fastest; the third, if there is one, at `at[2]`. */
export function plane(synopsis, at, side) {
  const { domain } = synopsis.meta;
  const others = at.slice(2);
  return once(synopsis, JSON.stringify(["plane", others, side]), () => {
    const [xs, ys] = [along(domain[0], side), along(domain[1], side)];
    const axes = [xs, ys, ...others.map((x) => [x])];
    return { xs, ys, values: evaluator(synopsis).on(axes), wide: synopsis.halfWidths(axes) };
  }, places);
}

/** Value and half-widths at one point. */
export function point(synopsis, at) {
  const axes = at.map((x) => [x]);
  return {
    value: evaluator(synopsis).on(axes)[0],
    wide: synopsis.halfWidths(axes)[0],
    narrow: pointwise(synopsis).halfWidths(axes)[0],
  };
}

/** The smallest and largest value of a series, optionally with the band: one scale for all windows. */
export function extent(series, withBand) {
  let [low, high] = [Infinity, -Infinity];
  for (const { synopsis } of series) {
    const [a, b] = once(synopsis, `extent ${withBand}`, () => own(synopsis, withBand));
    low = Math.min(low, a);
    high = Math.max(high, b);
  }
  return low <= high ? [low, high] : [0, 1];
}

function own(synopsis, withBand) {
  const { domain } = synopsis.meta;
  const count = [0, 101, 33, 15][domain.length];
  const axes = domain.map((axis) => along(axis, count));
  const values = evaluator(synopsis).on(axes);
  const wide = withBand ? synopsis.halfWidths(axes) : null;
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < values.length; i++) {
    const half = wide ? wide[i] : 0;
    low = Math.min(low, values[i] - half);
    high = Math.max(high, values[i] + half);
  }
  return [low, high];
}

/**
 * Where two windows differ by more than both their bands: 1 above, -1 below, 0 where noise alone could explain the
 * difference.
 */
export function beyond(now, then) {
  return Array.from(now.values, (value, i) => {
    const apart = value - then.values[i];
    return Math.abs(apart) > now.wide[i] + then.wide[i] ? Math.sign(apart) : 0;
  });
}

/** Whether noise could explain all differences between points: some constant lies within the band everywhere. */
export function isFlat({ values, wide }) {
  let [floor, ceiling] = [-Infinity, Infinity];
  values.forEach((value, i) => {
    floor = Math.max(floor, value - wide[i]);
    ceiling = Math.min(ceiling, value + wide[i]);
  });
  return floor <= ceiling;
}

/**
 * The largest half-width of the simultaneous band on the domain. The band is a product over the axes of one and the same function,
 * so the worst coordinate of the first axis is the worst of every axis. The points include those of a map.
 */
export function largestHalfWidth(synopsis) {
  return once(synopsis, "largest", () => {
    const { domain } = synopsis.meta;
    const xs = along(domain[0], 8 * 127 + 1);
    const own = synopsis.halfWidths(domain.map(({ min }, i) => (i === 0 ? xs : [min])));
    const worst = own.indexOf(Math.max(...own)) / (xs.length - 1);
    return synopsis.halfWidths(domain.map(({ min, max }) => [worst === 1 ? max : min + (max - min) * worst]))[0];
  });
}

/** Runs of equal marks along `xs`, as `{ mark, from, to }`; runs meet midway between two points. */
export function runs(xs, marks) {
  const found = [];
  marks.forEach((mark, i) => {
    const last = found[found.length - 1];
    if (last && last.mark === mark) last.to = xs[i];
    else {
      const from = last ? (xs[i - 1] + xs[i]) / 2 : xs[i];
      if (last) last.to = from;
      found.push({ mark, from, to: xs[i] });
    }
  });
  return found;
}

/** The side of a threshold that each point is on: 1 above, -1 below, 0 too close to call within the band. */
export const sides = ({ values, wide }, border) =>
  Array.from(values, (value, i) => (Math.abs(value - border) <= wide[i] ? 0 : Math.sign(value - border)));
