// The kind of a synopsis, and its labels.

import { records, titleOf } from "./names.js";
import { either, short } from "./words.js";

export const kindOf = (meta) => Object.keys(meta.target)[0];

/** Whether it holds counts by key, which are no function of a point. */
export const isByKey = (meta) => meta.target.counts !== undefined;

/** Whether it is a function of a point, which can be drawn; counts by key and moments are none. */
export const hasPlot = (meta) => !isByKey(meta) && kindOf(meta) !== "moments";

const aboveOf = ({ label, above }) => `${label} > ${short(above)}`;

/** The axis label of the values. */
export function valueLabel(meta) {
  const of = meta.target[kindOf(meta)];
  switch (kindOf(meta)) {
    case "regression":
      return `expected ${of.label}`;
    case "classifier":
      return `score for ${aboveOf(of)}`;
    case "probability":
      return `probability of ${aboveOf(of)}`;
    case "share":
      return `probability of ${of.label} = ${of.value}`;
    default:
      return meta.meaning.split(";")[0];
  }
}

/** The title of the view: the declared one, and of tables which function of them it is. */
export function title(meta) {
  const declared = titleOf(meta);
  if (!declared) return usualTitle(meta);
  return meta.basis.tables ? `${declared}: ${usualTitle(meta).replace(/^[A-Z](?=[a-z])/, (c) => c.toLowerCase())}` : declared;
}

function usualTitle(meta) {
  const columns = either(meta.domain.map((axis) => axis.column), "and");
  const of = meta.target[kindOf(meta)];
  switch (kindOf(meta)) {
    case "density":
      return `Distribution of ${records(meta)} over ${columns}`;
    case "regression":
      return `${of.label} by ${columns}`;
    case "classifier":
      return `Classification ${aboveOf(of)}, by ${columns}`;
    case "probability":
      return `Probability of ${aboveOf(of)}, by ${columns}`;
    case "share":
      return `Probability of ${of.label} = ${of.value}, by ${columns}`;
    case "moments":
      return `Queries on ${columns}`;
    case "counts":
      return meta.meaning.charAt(0).toUpperCase() + meta.meaning.slice(1);
    default:
      return `Sum over the records, by ${columns}`;
  }
}

/** The threshold between two classes, and their names; undefined without classes. */
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

/**
 * The value that a fit is drawn to where it has few records, of those that are fitted with a bound on their size: half way. The band of
 * the noise does not tell how far. A score is drawn to 0, which changes no side of it.
 */
export function drawnTo(meta) {
  const of = meta.target[kindOf(meta)];
  const isBounded = Object.values(of?.method ?? {}).some((method) => method?.c !== undefined);
  if (!isBounded) return undefined;
  if (kindOf(meta) === "probability") return 0.5;
  return kindOf(meta) === "regression" ? (of.min + of.max) / 2 : undefined;
}

/** What the form of a synopsis cannot follow of its function, which no band covers. */
export function beyondForm({ basis, degree, domain }) {
  const wide = (steps) => either(domain.map(({ column, min, max }, i) => `${short((max - min) / steps[i])} of ${column}`), "and");
  if (basis === "bernstein") return `what a polynomial of degree ${degree} cannot follow`;
  if (basis === "affine") return "what a linear score cannot follow";
  if (basis.kernel) return `what ${basis.kernel.points.length} kernel functions cannot follow`;
  if (basis.cells) return `what changes within a cell (${wide(basis.cells.steps)})`;
  return basis.tables ? `what changes within a cell (${wide(basis.tables.steps)}) or a bandwidth` : "what its form cannot follow";
}

/** The range of the values, if it is known. */
export function rangeOf(meta) {
  if (kindOf(meta) === "probability" || kindOf(meta) === "share") return [0, 1];
  return undefined;
}

/** The range of an expected label. */
export function labelRange({ target: { regression } }) {
  return regression && [regression.min, regression.max];
}
