// A table by key in words, for the rows of the page, the bars of the wall and files.

import { isLocation, sortedRows } from "./keytable.js";
import { records, several } from "./names.js";
import { either, instant, nearly, plural, plusMinus, rounded, span } from "./words.js";

/** The only row where no key is declared. */
const ALL = "(all)";
/** Characters that have no shape of their own, or change that of others: control, format and bidirectional ones, and separators of lines. */
const SHAPELESS = /[\p{C}\p{Zl}\p{Zp}\\]/gu;
/** Escapes that have a letter. */
const LETTERS = new Map([["\t", "\\t"], ["\n", "\\n"], ["\r", "\\r"], ["\\", "\\\\"]]);

/** A key as it is shown: what cannot be seen is escaped, as on the command line. */
export const shownKey = (key) => (key === "" ? ALL : key.replace(SHAPELESS, (c) => LETTERS.get(c) ?? `\\u{${c.codePointAt(0).toString(16)}}`));

/** What is counted or summed: "users", "sum of amount". */
export function readingName(meta, reading) {
  if (reading === "users") return "users";
  if (reading === "records") return records(meta);
  if (reading === "values") return "values";
  const name = { p50: "median", deviation: "standard deviation" }[reading] ?? reading;
  return `${name} of ${meta.target.counts.value?.column ?? "values"}`;
}

/**
 * A row as it is shown: { key, place, name, words, interval, value, ends, isFaint }, of keys that were found also { isNew, until }. A count cannot be negative: what the noise may have
 * made of nothing is said to be below the noise, and its interval begins at 0.
 */
export function shownRow(table, reading, { key, place, found }) {
  const row = { key, place, name: shownKey(key), ...table.foundAt?.(place) };
  if (!found) return { ...row, words: "unknown", interval: "may have no records", value: null, ends: null, isFaint: true };
  const isCount = table.isCount(reading);
  const value = isCount ? Math.max(found.value, 0) : found.value;
  // Around what is shown: below 0 the interval would shrink to nothing, as if there were no noise.
  const ends = isCount ? [Math.max(found.lower, 0), value + found.upper - found.value] : [found.lower, found.upper];
  const isFaint = !isLocation(reading) && found.lower <= 0 && (isCount || found.upper >= 0);
  const half = digitsOf(reading, (found.upper - found.lower) / 2);
  return {
    ...row, value, ends, isFaint, words: isFaint ? "below the noise" : rounded(value, half),
    interval: `${rounded(ends[0], half)} to ${rounded(ends[1], half)}`,
  };
}

/** The noise to which a number is rounded: people and records are whole. */
const digitsOf = (reading, half) => (half >= 1 && (reading === "users" || reading === "records" || reading === "values") ? Math.max(half, 10) : half);

/** All rows of a synopsis as they are shown, the largest first. */
export const shownRows = (synopsis, reading) => sortedRows(synopsis.table, reading).map((one) => shownRow(synopsis.table, reading, one));

/** The ends of the axis of bars: amounts begin at 0, means do not. */
export function barScale(rows, reading) {
  const ends = rows.flatMap((row) => row.ends ?? []);
  if (!isLocation(reading)) ends.push(0);
  const [min, max] = [Math.min(...ends), Math.max(...ends)];
  if (!Number.isFinite(min)) return { min: 0, max: 1 };
  return max > min ? { min, max } : { min, max: min + 1 };
}

/** What a table is of: a window, or everything since a running sum began. */
function covered({ window: { start, end }, panes }) {
  return panes?.over === "cumulative" ? `since ${instant(start)}, until ${instant(end)}` : `window ${span(start, end)}`;
}

/** Which key has most, as far as the noise allows to say so. */
export function ofKeys(meta, rows, reading) {
  const name = readingName(meta, reading);
  const [first, ...others] = rows;
  const window = covered(meta);
  if (!first) return `No keys; ${window}.`;
  if (others.length === 0) return `${first.name}, ${name}: ${first.words}, ${first.interval}; ${window}.`;
  if (first.isFaint) return `${plural(rows.length, "key")}, ${name}: all are ${first.ends ? "below the noise" : "unknown"}; ${window}.`;
  const rivals = others.filter(({ ends }) => ends && ends[1] >= first.ends[0]);
  const doubt = rivals.length === 0 ? "" : rivals.length < 3
    ? `; with this noise it may also be ${either(rivals.map((row) => row.name))}`
    : `; with this noise it may also be one of ${rivals.length} others`;
  const faint = others.filter(({ ends, isFaint }) => isFaint && ends).length;
  const unknown = others.filter(({ ends }) => !ends).length;
  const few = [faint > 0 && `${faint} of ${rows.length} keys ${faint === 1 ? "is" : "are"} below the noise`, unknown > 0 && `${unknown} of ${rows.length} keys ${unknown === 1 ? "is" : "are"} unknown`].filter(Boolean);
  return `Largest ${name}: ${first.name} with ${first.words}, ${first.interval}${doubt}. ${few.length > 0 ? `${few.join(", ")}; ` : ""}${window}.`;
}

/** What a key is, of which one is told: "page"; "key" where the description has no word for it. */
const keyName = ({ key_columns: columns, meaning }) => (columns ? "key" : /^[\p{L}\p{M}\d_-]+$/u.exec(meaning.split(" of each ")[1] ?? "")?.[0] ?? "key");

/** What it means that a key is not in a table of keys that nobody listed; nothing of others. */
export function absenceInWords(meta, { found, readings }) {
  if (!found) return "";
  if (found.isOverfull) return "Too many different keys to look for new ones.";
  return `A ${keyName(meta)} that is not here had fewer than about ${nearly(found.absentBelow)} ${readingName(meta, readings[0])}.`;
}

/** How many keys there are that nobody listed, how many are new, and what it means that one is not there; nothing of others. */
export function foundInWords(meta, table) {
  const { found, keys } = table;
  if (!found || found.isOverfull) return absenceInWords(meta, table);
  const many = `${keys.length} ${keys.length === 1 ? keyName(meta) : several(keyName(meta))} found`;
  return `${many}${keys.length > 0 ? `, ${found.count} of them new` : ""}. ${absenceInWords(meta, table)}`;
}

/** What the caps leave out, which no interval covers. */
export function capsInWords(meta) {
  const { max_keys: keys, max_records: records_ } = meta.target.counts;
  const isRecord = meta.privacy.unit === "record";
  const isOfMeans = meta.target.counts.quantiles && !isRecord;
  const most = isOfMeans ? ", with the mean of its values in each" : records_ ? `, with at most ${plural(records_, "record")} of each` : "";
  const window = meta.panes?.step === undefined ? "a window" : "each window that is added up";
  const counts = isRecord ? "A record counts once"
    : `A user counts in at most ${plural(keys, "key")} of ${window}${most}: what a user has beyond that is left out of these numbers, and no interval tells how much that is${meta.basis.keys.units ? " of one key" : ""}`;
  const ofNew = meta.basis.keys.found ? " Counts of new keys are above the threshold by selection, which their intervals include." : "";
  return `Intervals cover the noise, each with 95\u00a0% probability; keys whose intervals overlap may stand in another order.${ofNew} ${counts}.`;
}

/** What the cap on keys drops of what users have; nothing where it is not told. */
export function droppedInWords({ target }, { dropped }) {
  if (dropped === undefined) return "";
  const cap = `cap of ${plural(target.counts.max_keys, "key")} drops`;
  if (dropped === null) return `How much the ${cap} is unknown: the noise of this window hides it.`;
  const half = 50 * (dropped.upper - dropped.lower);
  const [value, lower, upper] = [dropped.value, dropped.lower, dropped.upper].map((share) => rounded(100 * share, half >= 1 ? Math.max(half, 10) : half));
  return `The ${cap} about ${value}\u00a0% of what users have (${lower} to ${upper}\u00a0%).`;
}

/** What the sums by a column are, or can be; nothing where keys are one column. */
export function marginInWords(meta, { keyColumns, sums, readings, found }, column) {
  if (keyColumns.length === 0 || found) return "";
  const left = readings.filter((reading) => !sums.includes(reading));
  const why = left.includes("users") ? "Users do not add up: a user may be in several keys." : left.length > 0 ? "Quantiles do not add up." : "";
  if (sums.length === 0) return ` ${why}`;
  const known = either(sums.map((reading) => readingName(meta, reading)), "and");
  const whole = keyColumns.includes(column)
    ? `Here all keys with the same ${shownKey(column)} are added up, and each interval is that of the sum.`
    : `By one of the columns there are ${known} of all its keys together.`;
  return ` ${whole} ${why}`.trimEnd();
}

/** The first number of a synopsis and its noise, which is the same for all keys: "users, each ± 12". */
export function shownReading({ meta, synopsis: { table } }) {
  const reading = readingOf({ table });
  // The noise of a new key is not that of others.
  const place = table.found ? table.keys.findIndex((_, i) => !table.foundAt(i).isNew) : 0;
  const found = place < 0 ? null : table.estimate(reading, place);
  return `${readingName(meta, reading)}${found ? `, each ${plusMinus((found.upper - found.lower) / 2)}` : ""}`;
}

/** The number that is shown of a synopsis: the one that was chosen if it has it, or its first. */
export const readingOf = ({ table }, chosen) => (table.readings.includes(chosen) ? chosen : table.readings[0]);
