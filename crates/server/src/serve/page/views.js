// What is shown of a synopsis: of tables of cells one of the functions that can be read from them, at some bandwidths.

import { perUnit, records } from "./names.js";
import { short } from "./words.js";

/** The widest bandwidth of a slider, in widths of the axis. */
const WIDEST = 1 / 4;
/** The places of a slider of bandwidth. */
export const PLACES = 60;

export const isTables = (meta) => meta.target.cells !== undefined;

/** The functions of tables of cells, the label's own first: each with its name, and as a target that the page knows. */
export function functionsOf(meta) {
  const { number, above, classes } = meta.target.cells.label ?? {};
  const density = {
    name: `distribution of ${records(meta)}`, choice: { function: "density" }, target: { density: {} }, meaning: perUnit(meta),
  };
  if (number) {
    const { column: label, min, max } = number;
    return [{ name: `expected ${label}`, choice: { function: "expected" }, target: { regression: { label, min, max } }, meaning: `the expected ${label}` }, density];
  }
  if (above) {
    const name = `probability of ${above.column} > ${short(above.above)}`;
    return [{ name, choice: { function: "probability", table: 1 }, target: { probability: { label: above.column, above: above.above } }, meaning: `the ${name}` }, density];
  }
  const ofClass = (value, table) => {
    const name = `probability of ${classes.column} = ${value}`;
    return { name, choice: { function: "probability", table }, target: { share: { label: classes.column, value } }, meaning: `the ${name}` };
  };
  return [...(classes?.values ?? []).map(ofClass), density];
}

/** The bandwidth at a place of the slider of an axis: from the finest, evenly in proportion, in round numbers. */
export function bandwidthAt(finest, { min, max }, place) {
  const widest = Math.max(finest, WIDEST * (max - min));
  if (place === 0 || widest === finest) return finest;
  return Math.max(finest, Number((finest * (widest / finest) ** (place / PLACES)).toPrecision(3)));
}

/** What was chosen of each release, and the entries of its synopses as they are then shown. */
export class Views {
  #chosen = new Map();
  #shown = new WeakMap();
  #wanted;

  /** What a link asks of the release that it shows: the index of a function, and places of sliders. */
  want(index, places) {
    this.#wanted = index === undefined && places === undefined ? undefined : { function: index ?? 0, places };
    if (this.#wanted) this.#chosen.clear();
  }

  /** The choice for a release: the index of a function, and the places of the sliders of bandwidth. */
  chosen({ pipeline, release, domain }) {
    const id = JSON.stringify([pipeline, release, domain]);
    if (!this.#chosen.has(id)) {
      const { function: index = 0, places } = this.#wanted ?? {};
      const fits = places?.length === domain.length && places.every((place) => Number.isInteger(place) && place >= 0 && place <= PLACES);
      this.#chosen.set(id, { function: index, places: fits ? places : domain.map(() => 0) });
      this.#wanted = undefined;
    }
    return this.#chosen.get(id);
  }

  /** An entry as it is shown: `source` is the one that was published, which everything else than its function is told of. */
  of(entry) {
    if (entry === undefined || !isTables(entry.meta)) return entry;
    const chosen = this.chosen(entry.meta);
    const state = JSON.stringify(chosen);
    const kept = this.#shown.get(entry);
    if (kept?.state === state) return kept.view;
    const all = functionsOf(entry.meta);
    const { choice, target, meaning } = all[chosen.function] ?? all[0];
    const { finest } = entry.synopsis.tables();
    const bandwidths = entry.meta.domain.map((axis, i) => bandwidthAt(finest[i], axis, chosen.places[i]));
    const view = { ...entry, synopsis: entry.synopsis.as({ ...choice, bandwidths }), meta: { ...entry.meta, target, meaning }, source: entry };
    this.#shown.set(entry, { state, view });
    return view;
  }
}
