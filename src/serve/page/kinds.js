// What a synopsis shows: its kind, and the words that belong to it.

import { either, short } from "./words.js";

export const kindOf = (meta) => Object.keys(meta.target)[0];

const aboveOf = ({ label, above }) => `${label} > ${short(above)}`;

/** The name of the values, for an axis. */
export function valueLabel(meta) {
  const of = meta.target[kindOf(meta)];
  switch (kindOf(meta)) {
    case "regression":
      return `expected ${of.label}`;
    case "classifier":
      return `score for ${aboveOf(of)}`;
    case "probability":
      return `probability of ${aboveOf(of)}`;
    default:
      return meta.meaning.split(";")[0];
  }
}

/** What the view is called. */
export function title(meta) {
  const columns = either(meta.domain.map((axis) => axis.column), "and");
  const of = meta.target[kindOf(meta)];
  switch (kindOf(meta)) {
    case "density":
      return `Where records lie over ${columns}`;
    case "regression":
      return `${of.label} by ${columns}`;
    case "classifier":
      return `Which side of ${aboveOf(of)}, by ${columns}`;
    case "probability":
      return `Probability of ${aboveOf(of)}, by ${columns}`;
    case "moments":
      return `Questions about ${columns}`;
    default:
      return `Sum over the records, by ${columns}`;
  }
}

/** The value that parts two sides, and their names; none where there are no sides. */
export function border(meta) {
  const of = meta.target[kindOf(meta)];
  switch (kindOf(meta)) {
    case "classifier":
      return { at: 0, above: `${aboveOf(of)} expected`, below: `${aboveOf(of)} not expected`, short: ["not expected", "expected"] };
    case "probability":
      return { at: 0.5, above: `${aboveOf(of)} more likely than not`, below: `${aboveOf(of)} less likely than not`, short: ["less likely", "more likely"] };
    default:
      return undefined;
  }
}

/** The bounds that values have by what they are. */
export function natural(meta) {
  if (kindOf(meta) === "probability") return [0, 1];
  return undefined;
}
