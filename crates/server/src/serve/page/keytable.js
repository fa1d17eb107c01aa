// Tables by key as the page shows them: the numbers and their intervals are the client's.

import { parse } from "./bernstream.js";
import { isByKey } from "./kinds.js";

/** The synopsis of counts in a document, its description and its table, or undefined if that is of another kind; what is wrong in it is an error. */
export function countedSynopsis(document) {
  const isOfCounts = typeof document?.target === "object" && document.target !== null && isByKey(document);
  if (!isOfCounts) return undefined;
  const synopsis = parse(document);
  return { meta: synopsis.meta, table: new ShownTable(synopsis) };
}

/** A table by key: `readings` are the names of its numbers, `keys` its keys, both in order; `keyColumns` the columns that its keys have parts of. */
export class ShownTable {
  #table;
  #isSumCount;
  #margins = new Map();

  constructor(synopsis) {
    this.#table = synopsis.keyTable();
    this.keys = this.#table.keys;
    this.readings = this.#table.readings;
    this.keyColumns = this.#table.keyColumns;
    /** The readings that margins have: records and sums add up, and a mean and a variance are those of all records. Users may be in several keys, quantiles do not add up, and of keys that were found others are missing. */
    this.sums = this.#table.isFound ? [] : this.readings.filter((reading) => ["records", "sum", "mean", "variance", "deviation"].includes(reading));
    const { per_user: ofUser, value } = synopsis.meta.target.counts;
    const bounds = ofUser ?? value;
    // No sum can be negative then, so a negative one is noise.
    this.#isSumCount = bounds !== undefined && bounds !== null && bounds.min >= 0;
    const { dropped } = this.#table;
    /** The share of what users have that the cap on keys drops: { value, lower, upper }; null where the noise hides it, undefined where it is not told. */
    this.dropped = dropped === null ? undefined : ofEstimate(dropped);
    const { isFound, newKeys, absentBelow, isOverfull } = this.#table;
    /** Of keys that nobody listed: how many are new, and fewer than about how many users or records a key had that is not here; null where nobody looked. */
    this.found = isFound ? { count: newKeys.length, absentBelow, isOverfull } : undefined;
  }

  /** Of a key that was found whether it is new, and until when it is published. */
  foundAt(place) {
    return this.found && { isNew: this.#table.isNew(this.keys[place]), until: this.#table.until(this.keys[place]) };
  }

  /** A number of the key at a place: { value, lower, upper }; null where the noise may be all of it. */
  estimate(reading, place) {
    const found = ofEstimate(this.#table.estimate(this.keys[place], reading));
    // So near above the threshold no count is likely, and the interval of a new key ends below what is shown.
    return found && this.found ? { ...found, upper: Math.max(found.upper, found.value) } : found;
  }

  /** The sums over all keys with the same part in a column, as a table whose keys are these parts; the table itself where there are none. */
  margin(column) {
    if (!this.keyColumns.includes(column) || this.sums.length === 0) return this;
    if (!this.#margins.has(column)) this.#margins.set(column, new ShownMargin(this, this.#table.margin(column), column));
    return this.#margins.get(column);
  }

  /** Whether a number is a count, or a sum that cannot be negative. */
  isCount(reading) {
    return ["users", "records", "values"].includes(reading) || (reading === "sum" && this.#isSumCount);
  }
}

/** The sums of a table by key over all columns but one. */
class ShownMargin {
  #rows;
  #isCount;

  constructor(table, rows, column) {
    this.#rows = rows;
    this.#isCount = (reading) => table.isCount(reading);
    this.keys = rows.map(({ parts }) => parts[column]);
    this.readings = table.sums;
  }

  estimate(reading, place) {
    return ofEstimate(this.#rows[place][reading]);
  }

  isCount(reading) {
    return this.#isCount(reading);
  }
}

function ofEstimate({ value, pointwise }) {
  if (value === null || pointwise === null) return null;
  const [lower, upper] = pointwise;
  return { value, lower, upper };
}

/** All keys with one number: [{ key, place, found }], the largest first and unknown ones last. */
export function sortedRows(table, reading) {
  const rows = table.keys.map((key, place) => ({ key, place, found: table.estimate(reading, place) }));
  return rows.sort((a, b) => (b.found?.value ?? -Infinity) - (a.found?.value ?? -Infinity) || a.place - b.place);
}

/** Whether a number is a location of the values, as a mean is, and no amount that begins at 0. */
export const isLocation = (reading) => reading === "mean" || /^p\d/.test(reading);
