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

/** A table by key: `readings` are the names of its numbers, `keys` its keys, both in order. */
export class ShownTable {
  #table;
  #isSumCount;

  constructor(synopsis) {
    this.#table = synopsis.keyTable();
    this.keys = this.#table.keys;
    this.readings = this.#table.readings;
    const { per_user: ofUser, value } = synopsis.meta.target.counts;
    const bounds = ofUser ?? value;
    // No sum can be negative then, so a negative one is noise.
    this.#isSumCount = bounds !== undefined && bounds !== null && bounds.min >= 0;
  }

  /** A number of the key at a place: { value, lower, upper }; null where the noise may be all of it. */
  estimate(reading, place) {
    const { value, pointwise } = this.#table.estimate(this.keys[place], reading);
    if (value === null || pointwise === null) return null;
    const [lower, upper] = pointwise;
    return { value, lower, upper };
  }

  /** All keys with one number: [{ key, place, found }], the largest first and unknown ones last. */
  sorted(reading) {
    const rows = this.keys.map((key, place) => ({ key, place, found: this.estimate(reading, place) }));
    return rows.sort((a, b) => (b.found?.value ?? -Infinity) - (a.found?.value ?? -Infinity) || a.place - b.place);
  }

  /** Whether a number is a count, or a sum that cannot be negative. */
  isCount(reading) {
    return ["users", "records", "values"].includes(reading) || (reading === "sum" && this.#isSumCount);
  }
}

/** Whether a number is a place among the values, as a mean is, and no amount that begins at 0. */
export const isPlace = (reading) => reading === "mean" || /^p\d/.test(reading);
