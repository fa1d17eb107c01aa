// Names for people, as they were declared: a title, what a record is, labels and units of axes. They are text and nothing else.

import { either } from "./words.js";

const text = (value) => (typeof value === "string" && value.trim() !== "" ? value : undefined);

/** The plural of an English noun; of an abbreviation such as "km" itself. */
export function several(noun) {
  if (noun.length < 4 && !/^[a-z]*[aeiou][a-z]+$/.test(noun)) return noun;
  if (/[^aeiou]y$/.test(noun)) return `${noun.slice(0, -1)}ies`;
  if (/(s|x|z|ch|sh)$/.test(noun)) return `${noun}es`;
  return `${noun}s`;
}

/** The records of a description, "flights". */
export const records = (meta) => several(text(meta.names?.record) ?? "record");

/** The name of an axis with its unit, "departure delay (minutes)". */
export const axisTitle = ({ column, unit }) => (unit ? `${column} (${several(unit)})` : column);

/** "flights per minute of departure delay", "records per unit of x and y". */
export function perUnit(meta) {
  const { domain } = meta;
  const columns = either(domain.map(({ column }) => column), "and");
  if (!domain.some(({ unit }) => unit)) return `${records(meta)} per unit of ${columns}`;
  const units = either(domain.map(({ unit }) => unit ?? "unit"), "and");
  return `${records(meta)} per ${units} of ${columns}`;
}

/** A description with declared labels in place of columns; `plain` is what was published. */
export function named(meta) {
  const { names, domain } = meta;
  if (!names || typeof names !== "object") return meta;
  const axes = domain.map((axis, i) => {
    const { label, unit } = names.axes?.[i] ?? {};
    return { ...axis, column: text(label) ?? axis.column, unit: text(unit), field: axis.column };
  });
  const found = { ...meta, domain: axes, plain: meta };
  return meta.target.density ? { ...found, meaning: meta.meaning.replace(/^records per unit of [^;]*/, () => perUnit(found)) } : found;
}

/** What was published of a description with names. */
export const plain = (meta) => meta.plain ?? meta;

/** The column of an axis in the records, for programs. */
export const fieldOf = ({ column, field }) => field ?? column;

export const titleOf = (meta) => text(meta.names?.title);
export const descriptionOf = (meta) => text(meta.names?.description) ?? "";
