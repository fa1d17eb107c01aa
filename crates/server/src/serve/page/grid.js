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
/** The reading that the synopsis says is closer, where it names one. */
const closer = (synopsis) => once(synopsis, "closer", () => synopsis.evaluator(synopsis.meta.reading));
export const isReadCloser = (meta) => Boolean(meta.reading);
const pointwise = (synopsis) => once(synopsis, "pointwise", () => synopsis.pointwise());

/** The half-widths of a band up to its further end, and its ends; both infinite where it is unknown. */
function asymmetric(values, { lower, upper }) {
  const known = (x, none) => (Number.isNaN(x) ? none : x);
  return {
    half: values.map((v, i) => known(Math.max(v - lower[i], upper[i] - v), Infinity)),
    ends: { lower: lower.map((x) => known(x, -Infinity)), upper: upper.map((x) => known(x, Infinity)) },
  };
}

/**
 * The function on a product grid, by the reading that the synopsis recommends, with the half-widths of its simultaneous band (`wide`), infinite where it is unknown, and its
 * ends (`outer`); the same of the pointwise band (`narrow`, `inner`) if wanted. The ends of a band are those around the published
 * values, (`published`), wherever the curve lies between them: its half-widths reach the further one. `form` is what the form adds to either
 * at most, and null where that is not known.
 */
export function banded(synopsis, axes, isBoth) {
  if (synopsis.choice) {
    const { values, simultaneous, pointwise: own } = synopsis.tables().on(axes, synopsis.choice);
    const [outer, inner] = [asymmetric(values, simultaneous), asymmetric(values, own)];
    return { values, published: values, form: null, wide: outer.half, outer: outer.ends, narrow: inner.half, inner: inner.ends };
  }
  const own = evaluator(synopsis);
  const published = own.on(axes);
  const values = isReadCloser(synopsis.meta) ? closer(synopsis).on(axes) : published;
  // Of a probability, which is clipped, and of a curve that is not the published one, the band is not as far on both sides.
  const around = (halfWidths) => {
    const ends = own.intervals(axes, halfWidths);
    return synopsis.meta.target.probability || isReadCloser(synopsis.meta) ? asymmetric(values, ends) : { half: halfWidths, ends };
  };
  const outer = around(synopsis.halfWidths(axes));
  const all = { values, published, form: synopsis.formError(), wide: outer.half, outer: outer.ends };
  if (!isBoth) return all;
  const inner = around(pointwise(synopsis).halfWidths(axes));
  return { ...all, narrow: inner.half, inner: inner.ends };
}

/** The points of a line through the domain: along `axis`, with all other coordinates from `at`. */
const lineAxes = (meta, axis, at, xs) => meta.domain.map((_, i) => (i === axis ? xs : [at[i]]));

/** The function along one axis, with both bands. */
export function line(synopsis, axis, at, count = 201) {
  const others = at.map((x, i) => (i === axis ? "" : x));
  return once(synopsis, JSON.stringify(["line", axis, others, count]), () => {
    const xs = along(synopsis.meta.domain[axis], count);
    return { xs, ...banded(synopsis, lineAxes(synopsis.meta, axis, at, xs), true) };
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
    return { xs, ys, ...banded(synopsis, [xs, ys, ...others.map((x) => [x])], false) };
  }, places);
}

/** Value, half-widths and the ends of both bands at one point. */
export function point(synopsis, at) {
  const { values, form, wide, narrow, outer, inner } = banded(synopsis, at.map((x) => [x]), true);
  const ends = ({ lower, upper }) => [lower[0], upper[0]];
  return { value: values[0], form, wide: wide[0], narrow: narrow[0], outer: ends(outer), inner: ends(inner) };
}

/** The smallest and largest value of a series, optionally with the band: one scale for all windows; `none` if all is unknown. */
export function extent(series, withBand, none = [0, 1]) {
  let [low, high] = [Infinity, -Infinity];
  for (const { synopsis } of series) {
    const [a, b] = once(synopsis, `extent ${withBand}`, () => own(synopsis, withBand));
    low = Math.min(low, a);
    high = Math.max(high, b);
  }
  return low <= high ? [low, high] : none;
}

function own(synopsis, withBand) {
  const { domain } = synopsis.meta;
  const count = [0, 101, 33, 15][domain.length];
  const axes = domain.map((axis) => along(axis, count));
  if (synopsis.choice) return knownExtent(banded(synopsis, axes), withBand);
  if (!withBand) return endsOf(banded(synopsis, axes).values);
  const { lower, upper } = banded(synopsis, axes).outer;
  return [least(lower), most(upper)];
}

const endsOf = (values) => [least(values), most(values)];

const most = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
const least = (list) => -most(list.map((x) => -x));

/**
 * The same where the function is known. Its band grows without limit where records are few: it is on the scale as far as it is
 * usual, or as wide as the values.
 */
function knownExtent({ values, wide, outer }, withBand) {
  const known = [...values.keys()].filter((i) => wide[i] < Infinity);
  if (known.length === 0) return [Infinity, -Infinity];
  const own = known.map((i) => values[i]);
  const [low, high] = [least(own), most(own)];
  if (!withBand) return [low, high];
  const room = Math.max(high - low, 2 * partOf(known.map((i) => wide[i]), 0.5));
  return [Math.max(low - room, least(known.map((i) => outer.lower[i]))), Math.min(high + room, most(known.map((i) => outer.upper[i])))];
}

const partOf = (list, part) => [...list].sort((a, b) => a - b)[Math.floor(part * (list.length - 1))];

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

/** What a plane has more than another one, with the half-widths of both bands together. */
export const apart = (now, then) => ({
  xs: now.xs, ys: now.ys, values: now.values.map((value, i) => value - then.values[i]), wide: now.wide.map((half, i) => half + then.wide[i]),
});

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
 * The largest half-width of the simultaneous band on the domain; of a function of tables, whose noise differs from place to place,
 * that of half of the known places. Otherwise the band is a product over the axes of one and the same function,
 * so the worst coordinate of the first axis is the worst of every axis. The points include those of a map.
 */
export function largestHalfWidth(synopsis) {
  return once(synopsis, "largest", () => {
    const { domain } = synopsis.meta;
    if (synopsis.choice) {
      const { wide } = banded(synopsis, domain.map((axis) => along(axis, [0, 101, 33, 15][domain.length])));
      return partOf(wide.filter((half) => half < Infinity), 0.5) ?? Infinity;
    }
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
