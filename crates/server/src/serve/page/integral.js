// A curve over a range: its integral, its mean, and what the noise adds to them.

import { Synopsis } from "./bernstream.js";
import { along } from "./grid.js";

const POINTS = 401;
/** The noise of forms whose values are not independent of each other is drawn, this often. */
const DRAWS = 400;

/** A generator with a seed (mulberry32): the same error for the same range, whenever it is asked. */
function seeded(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** The running integral of values at even points over [0, 1]. */
function running(values) {
  const sums = new Float64Array(values.length);
  for (let i = 1; i < values.length; i++) sums[i] = sums[i - 1] + (values[i - 1] + values[i]) / (2 * (values.length - 1));
  return sums;
}

/** The integral between two places of [0, 1], linear between the points. */
function between(sums, [low, high]) {
  const upTo = (place) => {
    const at = Math.min(Math.max(place, 0), 1) * (sums.length - 1);
    const i = Math.min(sums.length - 2, Math.floor(at));
    return sums[i] + (at - i) * (sums[i + 1] - sums[i]);
  };
  return upTo(high) - upTo(low);
}

const kept = new WeakMap();
const noises = new Map();
const MOST_NOISES = 40;

/**
 * Functions `g` whose integrals tell the noise of any integral: its variance is `scale^2` times the sum of their squares. `factor`
 * is how many standard deviations a band has. The noise is the same for every window and key of a release.
 */
function noiseOf(synopsis) {
  const { meta, values } = synopsis;
  const name = JSON.stringify([meta.noise, meta.band, meta.basis, meta.degree, meta.order, meta.domain, values.length]);
  if (!noises.has(name)) {
    if (noises.size >= MOST_NOISES) noises.clear();
    noises.set(name, makeNoise(synopsis));
  }
  return noises.get(name);
}

function makeNoise(synopsis) {
  const { meta, values } = synopsis;
  const xs = along(meta.domain[0], POINTS);
  const isIndependent = meta.basis === "bernstein" || meta.basis === "affine";
  const pointwise = synopsis.pointwise();
  const middle = xs[(POINTS - 1) / 2];
  const factor = pointwise.halfWidth(middle) / pointwise.deviation(middle);
  if (isIndependent && values.length <= DRAWS) {
    const ones = Array.from(values, (_, i) => new Synopsis(meta, Array.from(values, (_, j) => (i === j ? 1 : 0))));
    const functions = ones.map((one) => one.evaluator().on([xs]));
    const length = Math.sqrt(functions.reduce((sum, own) => sum + own[(POINTS - 1) / 2] ** 2, 0));
    return { sums: functions.map(running), scale: pointwise.deviation(middle) / length, factor };
  }
  const published = synopsis.evaluator().on([xs]);
  const drawn = synopsis.sample(DRAWS, seeded(1)).map((one) => one.evaluator().on([xs]).map((value, i) => published[i] - value));
  return { sums: drawn.map(running), scale: 1 / Math.sqrt(DRAWS), factor };
}

/** What the form adds to the integral between `ends`, as a part of the sum of the values: the same in all windows of a release. */
const forms = new Map();

function formOver(synopsis, ends) {
  const { meta } = synopsis;
  if (synopsis.formError() === null) return null;
  const name = JSON.stringify([meta.form_error, meta.basis, meta.degree, meta.order, meta.domain, meta.target, ends]);
  if (!forms.has(name)) {
    if (forms.size >= MOST_NOISES) forms.clear();
    forms.set(name, synopsis.formErrorOf([ends]) / synopsis.formError());
  }
  return forms.get(name) * synopsis.formError();
}

/**
 * The curve between `ends`: `sum`, its integral, `mean`, its mean, and `share`, the part of the whole integral; each as
 * { value, half, form } with the half-width of its noise at the level of the band, and what the form adds to that at most, or null
 * where it is not known. `share` is null where the noise hides the whole.
 */
export function over(synopsis, ends) {
  const { min, max } = synopsis.meta.domain[0];
  const places = ends.map((end) => (end - min) / (max - min));
  // Of the published values, whatever reading the curve is drawn by: the noise that is told is theirs.
  if (!kept.has(synopsis)) kept.set(synopsis, running(synopsis.evaluator().on([along(synopsis.meta.domain[0], POINTS)])));
  const sums = kept.get(synopsis);
  const { sums: own, scale, factor } = noiseOf(synopsis);
  const [part, whole] = [between(sums, places), between(sums, [0, 1])];
  const half = (weight) => factor * scale * Math.sqrt(own.reduce((sum, one) => sum + weight(one) ** 2, 0));
  const width = max - min;
  const noise = half((one) => between(one, places));
  const ratio = part / whole;
  const ofWhole = half((one) => between(one, [0, 1]));
  const form = formOver(synopsis, ends);
  return {
    sum: { value: width * part, half: width * noise, form },
    mean: { value: part / (places[1] - places[0]), half: noise / (places[1] - places[0]), form: null },
    share: whole > 2 * ofWhole ? { value: ratio, half: half((one) => between(one, places) - ratio * between(one, [0, 1])) / whole, form: null } : null,
  };
}
