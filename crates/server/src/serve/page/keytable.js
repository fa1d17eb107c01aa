// Tables by key: users, records, sums, means and quantiles of each key, each with its interval, read from the published numbers alone.

import { isByKey } from "./kinds.js";
import { Ranks } from "./ranks.js";

/** The quantile of Gaussian noise, in deviations, that one number stays within with 95 % probability. */
const GAUSSIAN = 1.959963985;
/** Quantiles are found to a part in a thousand, which is added, as the program does. */
const ROUNDING = 1.001;

/** What a page shows of a synopsis of counts: its description and its table. */
export class CountedSynopsis {
  constructor(meta, values) {
    this.meta = meta;
    this.table = new KeyTable(meta, values);
  }
}

/** The synopsis of counts in a document, or undefined if that is of another kind; what is wrong in it is an error. */
export function countedSynopsis(document) {
  const isOfCounts = typeof document?.target === "object" && document.target !== null && isByKey(document);
  if (!isOfCounts) return undefined;
  const { values, ...meta } = document;
  const { keys, columns } = meta.basis?.keys ?? {};
  const isTable = Array.isArray(keys) && Array.isArray(columns) && Array.isArray(values) && keys.length > 0
    && keys.every((key) => typeof key === "string") && columns.every(({ unit }) => unit > 0)
    && values.length === keys.length * columns.length && values.every(Number.isFinite);
  if (!isTable) throw new Error("not a synopsis: its table by key is not proper");
  return new CountedSynopsis(meta, values);
}

/** A table by key: `readings` are the names of its numbers, `keys` its keys, both in order. */
export class KeyTable {
  #values;
  #columns;
  #noise;
  #ends;
  #halfWidths = new Map();
  #ranks = null;
  #parts = new Map();

  constructor({ band, basis: { keys: basis }, noise, target: { counts } }, values) {
    this.keys = basis.keys;
    this.#values = values;
    this.#columns = basis.columns;
    this.#noise = noise;
    this.#ends = counts.value ?? { min: 0, max: 1 };
    this.readings = basis.columns.flatMap(({ statistic }) => readingsOf(statistic));
    if (counts.quantiles) {
      this.#ranks = new Ranks(counts.quantiles.grid, band.pointwise * basis.columns[0].unit);
      this.#parts = new Map(counts.quantiles.parts.map((part) => [quantileName(part), Math.round(1000 * part) / 1000]));
      this.readings = [...this.#parts.keys(), "values"];
    }
    else for (const reading of this.readings) this.#halfWidths.set(reading, halfWidth(noise, this.#weightsOf(reading)));
    const bounds = counts.per_user ?? counts.value;
    /** Whether no sum can be negative, so that a negative one is noise. */
    this.isSumCount = bounds !== undefined && bounds.min >= 0;
  }

  /** A number of the key at a place: { value, lower, upper }; null where the noise may be all of it. */
  estimate(reading, place) {
    if (this.#ranks) return this.#readOfRanks(reading, place);
    const half = this.#halfWidths.get(reading);
    if (half === undefined || !Number.isFinite(half)) return null;
    if (reading === "mean") return this.#mean(place, half);
    const own = this.#number(reading, place);
    const value = own ?? this.#ofEnds(reading, place);
    return { value, lower: value - half, upper: value + half };
  }

  /** All keys with one number: [{ key, place, found }], the largest first and unknown ones last. */
  sorted(reading) {
    const rows = this.keys.map((key, place) => ({ key, place, found: this.estimate(reading, place) }));
    return rows.sort((a, b) => (b.found?.value ?? -Infinity) - (a.found?.value ?? -Infinity) || a.place - b.place);
  }

  /** Whether a number is a count, or a sum that cannot be negative. */
  isCount(reading) {
    return reading === "users" || reading === "records" || reading === "values" || (reading === "sum" && this.isSumCount);
  }

  /** The number of values of a key, or a quantile of them. */
  #readOfRanks(reading, place) {
    const counts = this.#columns.map((_, column) => this.#values[column * this.keys.length + place]);
    const upTo = this.#ranks.upTo(counts);
    const part = this.#parts.get(reading);
    const { value, pointwise } = part === undefined ? this.#ranks.all(upTo) : this.#ranks.quantile(upTo, part);
    if (value === null || pointwise === null) return null;
    const last = upTo.length - 1;
    const valueAt = (at) => (part === undefined ? at : (this.#ends.min * (last - at) + this.#ends.max * at) / last);
    const [lower, upper] = pointwise.map(valueAt);
    return { value: valueAt(value), lower, upper };
  }

  /** The set of means that the noise allows (Fieller), within the bounds of the value. */
  #mean(place, half) {
    const high = this.#number("high", place);
    const records = this.#number("low", place) + high;
    const square = half * half;
    const ofSquare = records * records - 2 * square;
    if (ofSquare <= 0 || records <= 0) return null;
    const middle = high * records - square;
    const spread = records * records - 2 * high * records + 2 * high * high - square;
    const root = half * Math.sqrt(Math.max(spread, 0));
    const [value, lower, upper] = [high / records, (middle - root) / ofSquare, (middle + root) / ofSquare].map((share) => this.#valueAt(share));
    return { value, lower, upper };
  }

  #valueAt(share) {
    const { min, max } = this.#ends;
    return min + (max - min) * Math.min(Math.max(share, 0), 1);
  }

  #ofEnds(reading, place) {
    const [atMin, atMax] = this.#weightsOfEnds(reading);
    return atMin * this.#number("low", place) + atMax * this.#number("high", place);
  }

  #weightsOfEnds(reading) {
    return reading === "sum" ? [this.#ends.min, this.#ends.max] : [1, 1];
  }

  /** Units of noise that a number adds up; of a mean those of one end. */
  #weightsOf(reading) {
    const unitOf = (statistic) => this.#columns.find((column) => column.statistic === statistic)?.unit;
    const own = unitOf(reading === "mean" ? "low" : reading);
    return own === undefined ? this.#weightsOfEnds(reading).map((weight) => weight * unitOf("low")) : [own];
  }

  /** The number of a column, or undefined without the column. */
  #number(statistic, place) {
    const column = this.#columns.findIndex((one) => one.statistic === statistic);
    return column < 0 ? undefined : this.#values[column * this.keys.length + place];
  }
}

/** The column of a quantile: "p50" for the median. */
function quantileName(part) {
  const thousandths = Math.round(1000 * part);
  const tenth = thousandths % 10;
  return `p${Math.floor(thousandths / 10)}${tenth ? `.${tenth}` : ""}`;
}

/** Whether a number is a place among the values, as a mean is, and no amount that begins at 0. */
export const isPlace = (reading) => reading === "mean" || /^p\d/.test(reading);

/** The numbers that a column is read as: of both ends of a value, which are two columns, three. */
function readingsOf(statistic) {
  if (statistic === "low") return ["records", "sum", "mean"];
  return ["users", "records", "sum"].includes(statistic) ? [statistic] : [];
}

/** What the noise of a sum of one or two numbers stays within, with 95 % probability; infinite for laws that are not known here. */
export function halfWidth({ law, scale }, weights) {
  const sizes = weights.map(Math.abs).filter((weight) => weight > 0).sort((a, b) => b - a);
  if (sizes.length === 0) return 0;
  if (law === "discrete gaussian") return scale * GAUSSIAN * Math.hypot(...sizes) * ROUNDING;
  if (law !== "discrete laplace") return Infinity;
  let [low, high] = [0, 40 * sizes[0]];
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (laplaceTail(sizes, middle) > 0.05) low = middle;
    else high = middle;
  }
  return scale * high * ROUNDING;
}

/** The probability that Laplace noise of one scale, or the sum of two, is larger than `x` either way. */
function laplaceTail([a, b], x) {
  if (b === undefined || b < 1e-6 * a) return Math.exp(-x / a);
  // Both formulas are the same law; the second one has no difference of nearly equal numbers.
  if (a - b > 1e-4 * a) return (a * a * Math.exp(-x / a) - b * b * Math.exp(-x / b)) / (a * a - b * b);
  const middle = (a + b) / 2;
  return (1 + x / (2 * middle)) * Math.exp(-x / middle);
}
