// Reads a bernstream synopsis and evaluates it: one ES module, no dependency, for browsers and for node 18 and later.
//
//   import { parse } from "./bernstream.js";
//   const synopsis = parse(text);                  // the JSON of a synopsis
//   synopsis.evaluate(75);                         // the function, in natural units
//   synopsis.halfWidth(75);                        // how far the noise can have moved it
//
// All of this is post-processing of released values and costs no privacy. It follows the evaluator of the Rust crate
// (`crates/synopsis/src` there), line by line where numerics matter, and agrees with it to about 1e-12.

/** The version of the format that this module reads. */
export const FORMAT = 1;
/** The largest order of the Bernstein operator that is evaluated. */
export const MAX_ORDER = 1000;
const MAX_DEGREE = 5000;
/** The most cosine frequencies per axis, on one, two and three axes. */
const MOST_FREQUENCIES = [1024, 258, 19];
/** The most kernel points that a release has; evaluating more would take too long. */
const MOST_POINTS = 1024;
/** The most cells that a release has. */
const MOST_CELLS = 65_536;
/** The most classes that tables of cells have. */
const MOST_CLASSES = 16;
/**
 * How records are shared among nodes: where the first of an axis lies, in steps; how many more there are than steps; the
 * variance of the shares, in steps squared; the shares of the nodes at an end that lie outside the domain.
 */
const SPLINES = new Map([
  ["box", { first: 0.5, more: 0, variance: 1 / 12, outside: [] }],
  ["linear", { first: 0, more: 1, variance: 1 / 6, outside: [1 / 2] }],
  ["quadratic", { first: -1, more: 3, variance: 1 / 4, outside: [47 / 48, 1 / 2, 1 / 48] }],
]);
/** Names that no column of a key has, as tables have them. */
const OWN_COLUMNS = [
  "", "window_start", "window_end", "key", "sequence", "users", "records", "low", "middle", "high", "sum", "mean", "variance", "deviation",
  "values", "keys", "parts", "lattice_values", "is_last_unclear",
];
/** Names that tables of found keys have beside those, users or records of a grid unit of their noise, and how far another computer may round a threshold otherwise. */
const FOUND_COLUMNS = ["new", "until", "threshold"];
const FOUND_UNIT = 2 ** -12;
const FOUND_ROUNDING = 1;
/** Names of quantiles and of counted ranges. */
const OWN_NAMES = /^(p[0-9]|range_)/;
/** Keys whose noise together has the exact law of its sum. */
const EXACT_TERMS = 64;
/** What the columns of a table by key tell, beside counts of ranges. */
const STATISTICS = ["users", "records", "low", "middle", "high", "sum"];
/** Readings that are ratios of noisy numbers, or the root of one. */
const MOMENTS = ["mean", "variance", "deviation"];
/** The most places that values of quantiles count at. */
const MOST_PLACES = 1024;
/** The laws under which all numbers have independent noise. */
const INDEPENDENT = ["discrete laplace", "discrete gaussian"];
const LEVEL = 0.95;

/** What is wrong with a synopsis or a query. */
export class SynopsisError extends Error {
  constructor(message) {
    super(message);
    this.name = "SynopsisError";
  }
}

/**
 * Reads a synopsis: its JSON, or the parsed object. The input may be hostile: returns a synopsis that is consistent in
 * itself, or throws a SynopsisError.
 */
export function parse(textOrObject) {
  let document = textOrObject;
  if (typeof textOrObject === "string") {
    try {
      document = JSON.parse(textOrObject);
    } catch (error) {
      throw damaged(`it is not JSON: ${error.message}`);
    }
  }
  if (!isObject(document)) throw damaged("it is not one JSON object");
  const { values, ...about } = document;
  const meta = copied(about, 0);
  check(meta);
  const expected = valueCount(meta);
  if (!Array.isArray(values) && !(values instanceof Float64Array)) throw damaged("it has no list of values");
  if (values.length !== expected) {
    throw damaged(`it has ${values.length} values, its description asks for ${expected}`);
  }
  for (let i = 0; i < expected; i++) {
    if (!Number.isFinite(values[i])) throw damaged("a lattice value is not a number");
  }
  checkFoundNumbers(meta, values);
  return new Synopsis(meta, Float64Array.from(values));
}

// ---- What a synopsis must satisfy before it is used ------------------------------------------------------------------

const damaged = (why) => new SynopsisError(`not a synopsis: ${why}`);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isPositive = (x) => Number.isFinite(x) && x > 0;
const isWhole = (x, least, most) => Number.isInteger(x) && x >= least && x <= most;
const isText = (x) => typeof x === "string";
const isFlag = (x) => typeof x === "boolean";
const isList = (of) => (list) => Array.isArray(list) && list.every(of);
const isPositives = (length) => (list) => Array.isArray(list) && list.length === length && list.every(isPositive);

/** A frozen copy. It cannot reach a prototype, and none of its numbers is infinite. */
function copied(value, depth) {
  if (depth > 50) throw damaged("it is nested too deep");
  if (Array.isArray(value)) return Object.freeze(value.map((item) => copied(item, depth + 1)));
  if (isObject(value)) {
    const copy = {};
    for (const key of Object.keys(value)) {
      if (key !== "__proto__" && value[key] !== undefined) copy[key] = copied(value[key], depth + 1);
    }
    return Object.freeze(copy);
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw damaged("a number in it is out of range");
  if (value === null || ["number", "string", "boolean"].includes(typeof value)) return value;
  throw damaged(`it holds something that JSON does not have: ${typeof value}`);
}

/** A field, only if it is the object's own. */
const field = (of, name) => (isObject(of) && Object.hasOwn(of, name) ? of[name] : undefined);

function need(of, name, isRight, what) {
  const value = field(of, name);
  if (!isRight(value)) throw damaged(`its field '${name}' is not ${what}`);
  return value;
}

/** One of several variants, written as its name alone or as an object with that one field. */
function variant(value, what) {
  if (isText(value)) return { name: value, content: undefined };
  const names = isObject(value) ? Object.keys(value) : [];
  if (names.length !== 1) throw damaged(`its ${what} is not one of those that there are`);
  return { name: names[0], content: value[names[0]] };
}

const unknown = (what, name) => damaged(`its ${what} '${name}' is not one that this module knows`);

/** Checks everything that evaluation relies on, and everything that people are shown. */
function check(meta) {
  const format = field(meta, "format");
  if (format !== FORMAT) throw damaged(`it has format ${format}, this module reads format ${FORMAT}`);
  for (const name of ["pipeline", "release", "meaning"]) need(meta, name, isText, "a text");
  need(meta, "key", (key) => key === undefined || key === null || isText(key), "a text or null");
  need(meta, "published", isTime, "a time");
  need(meta, "grid_end", (x) => x === undefined || x === null || isTime(x), "a time");
  checkSpan(need(meta, "window", isObject, "an object"));
  const domain = need(meta, "domain", Array.isArray, "a list of axes");
  const [least, most] = variant(field(meta, "basis"), "basis").name === "keys" ? [0, 0] : [1, 3];
  if (domain.length < least || domain.length > most) throw damaged(`it has ${domain.length} axes, not ${least} to ${most}`);
  for (const axis of domain) {
    need(axis, "column", isText, "a text");
    const [min, max] = [need(axis, "min", Number.isFinite, "a number"), need(axis, "max", Number.isFinite, "a number")];
    if (!isPositive(max - min)) throw damaged(`axis '${axis.column}' has no proper domain`);
  }
  need(meta, "degree", (k) => isWhole(k, 1, MAX_DEGREE), `a whole number from 1 to ${MAX_DEGREE}`);
  need(meta, "order", (h) => isWhole(h, 1, MAX_ORDER), `a whole number from 1 to ${MAX_ORDER}`);
  const basis = checkBasis(field(meta, "basis"), domain.length);
  if (basis !== "bernstein" && (meta.degree !== 1 || meta.order !== 1)) {
    throw damaged("what has no lattice has degree 1 and order 1");
  }
  need(meta, "reading", (x) => x === undefined || x === null || (x === "nonnegative" && basis === "cells"), "one for such values");
  need(meta, "offset", (x) => x === undefined || Number.isFinite(x), "a number");
  checkTarget(field(meta, "target"), domain.length);
  checkTables(meta);
  checkNoise(meta);
  checkCounts(meta);
  checkKeyParts(meta);
  checkSmoothness(meta.smoothness, domain.length, basis);
  checkFormError(meta, basis);
  need(meta, "not_protected", isList(isText), "a list of texts");
  need(meta, "incomplete", (x) => x === undefined || isFlag(x), "true or false");
  need(meta, "synthetic", isFlag, "true or false");
  const digests = need(meta, "digests", isObject, "an object");
  for (const name of ["configuration", "program"]) need(digests, name, isText, "a text");
  need(meta, "choices", (x) => x === undefined || isList(isObject)(x), "a list of choices");
  if (isObject(need(meta, "panes", (x) => x === undefined || x === null || isObject(x), "an object"))) {
    variant(field(meta.panes, "over"), "number of panes");
    checkSpan(need(meta.panes, "newest", isObject, "an object"));
  }
  const ledger = need(meta, "ledger", isObject, "an object");
  need(ledger, "id", isText, "a text");
  need(ledger, "sequence", (x) => Number.isInteger(x) && x >= 0, "a whole number");
}

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;
const isTime = (text) => isText(text) && RFC3339.test(text) && !Number.isNaN(Date.parse(text));

function checkSpan(span) {
  need(span, "start", isTime, "a time");
  need(span, "end", isTime, "a time");
}

function checkBasis(basis, axes) {
  const { name, content } = variant(basis, "basis");
  if (name === "bernstein" || name === "affine") return name;
  if (name === "cosine") {
    const most = MOST_FREQUENCIES[axes - 1];
    need(content, "frequencies", (t) => isWhole(t, 1, most), `a whole number from 1 to ${most}`);
    return name;
  }
  if (name === "cells") {
    if (!isDefinite(checkPrecision(content, axes))) throw damaged("the matrix that reads its cells is not positive definite");
    checkGrid(content, axes, 1);
    return name;
  }
  if (name === "tables") {
    const areBandwidths = (list) => isPositives(axes)(list) && list.every((b) => b <= 1);
    kernelVariances(checkGrid(content, axes, 1), need(content, "bandwidths", areBandwidths, "a list of widths up to 1, one for each axis"));
    checkGrid(content, axes, need(content, "tables", (x) => isWhole(x, 1, MOST_CLASSES), `a whole number from 1 to ${MOST_CLASSES}`));
    return name;
  }
  if (name === "keys") {
    checkKeys(content);
    return name;
  }
  if (name !== "kernel") throw unknown("basis", name);
  const points = need(content, "points", Array.isArray, "a list of points");
  const isInside = (p) => Array.isArray(p) && p.length === axes && p.every((x) => x >= 0 && x <= 1);
  if (points.length < 1 || points.length > MOST_POINTS || !points.every(isInside)) {
    throw damaged(`its kernel points are not 1 to ${MOST_POINTS} points of the domain`);
  }
  const kernel = variant(field(content, "kernel"), "kernel");
  if (kernel.name === "machine") checkMachineKernel(kernel.content);
  else if (kernel.name === "gaussian") checkPrecision(kernel.content, axes);
  else throw unknown("kernel", kernel.name);
  return name;
}

/** The keys of a table by key: absent where none was found. */
const keysOf = (basis) => basis.keys.keys ?? [];

/** The name of a column: of a count of a range with the ends of the range. */
const statisticName = (statistic) => (isText(statistic) ? statistic : `range_${statistic.range.from}_${statistic.range.to}`);

/** Rows and columns differ, and the columns tell each number once. */
function checkKeys(content) {
  const isFound = content.found !== undefined && content.found !== null;
  const areDifferent = (list) => (list.length > 0 || isFound) && new Set(list).size === list.length;
  need(content, "keys", (list) => (list === undefined && isFound) || (isList(isText)(list) && areDifferent(list)), "a list of different texts");
  const units = new Map();
  for (const column of need(content, "columns", isList(isObject), "a list of columns")) {
    const isKnown = (x) => STATISTICS.includes(x) || isWhole(x?.range?.from, 0, MOST_PLACES) && isWhole(x.range.to, 1, MOST_PLACES);
    const statistic = statisticName(need(column, "statistic", isKnown, "one that this module knows"));
    if (units.has(statistic)) throw damaged(`its table by key has two columns ${statistic}`);
    units.set(statistic, need(column, "unit", isPositive, "a positive number"));
  }
  checkToldUnits(content);
  const hasOwn = units.has("records") || units.has("sum");
  const low = units.get("low");
  const areAlike = low === units.get("high") && (!units.has("middle") || units.get("middle") === low);
  if (!units.size || !areAlike || (units.has("low") && hasOwn)) {
    throw damaged("the columns of its table by key do not belong together");
  }
}

/** How keys were found, and what is said of each: as many rows as keys, in the order of their bytes. */
function checkFoundKeys(meta) {
  const { basis: { keys: { keys = [], columns, found, units } }, privacy, noise, window, panes, target, key_columns: names } = meta;
  if (found === undefined || found === null) return;
  if (!isObject(found)) throw damaged("how its keys were found is no object");
  const whole = (name, least, most) => need(found, name, (x) => isWhole(x, least, most), `a whole number from ${least} to ${most}`);
  const [most, longest] = [whole("most", 1, 2 ** 32 - 1), whole("longest", 1, 2 ** 32 - 1)];
  whole("threshold", 1, 2 ** 53 - 1);
  whole("keep_seconds", 0, 1e12);
  need(found, "delta", (x) => isText(x) && /^0?\.\d{1,40}$/.test(x) && Number(x) > 0, "a part of 1");
  const { overfull } = found;
  if (overfull !== undefined && overfull !== null) {
    if (!isObject(overfull)) throw damaged("its test for too many keys is no object");
    const limit = need(overfull, "limit", (x) => isWhole(x, 1, 2 ** 32 - 1), "a whole number");
    need(overfull, "soft_limit", (x) => isWhole(x, 0, limit - 1), "a whole number below the limit");
    need(overfull, "is_overfull", isFlag, "true or false");
  }
  const isRow = (row) => isObject(row) && isFlag(row.is_new) && isTime(row.until);
  const rows = found.rows === undefined ? [] : need(found, "rows", isList(isRow), "a list of what is said of each key");
  if (rows.length !== keys.length) throw damaged("it does not say of each key whether it is new");
  if (keys.length > most || (overfull?.is_overfull && keys.length > 0)) throw damaged("its table has more keys than it can have");
  const bytes = keys.map((key) => new TextEncoder().encode(key));
  if (bytes.some(({ length }) => length === 0 || length > longest)) throw damaged("a key of its table is empty or too long");
  if (bytes.some((own, i) => i > 0 && !isBefore(bytes[i - 1], own))) throw damaged("the keys of its table are not in the order of their bytes");
  const statistic = privacy.unit === "record" ? "records" : "users";
  const areUnits = columns.length === 1 && columns[0].statistic === statistic && columns[0].unit === FOUND_UNIT;
  if (!areUnits || isObject(units)) throw damaged("its keys were found by another number than that of units");
  if (Array.isArray(names) && names.some((name) => FOUND_COLUMNS.includes(name))) throw damaged("a column of its keys is called as one of the table itself");
  if (privacy.definition === "pure epsilon" || privacy.adjacency !== "add_remove") throw damaged("its definition of privacy cannot find keys");
  if (panes?.step !== undefined && panes?.step !== null) throw damaged("running sums do not find keys");
  if (noise.law !== "discrete laplace" || noise.grid !== 1 || !Number.isInteger(noise.scale)) throw damaged("its keys were found by noise that is not that of found keys");
  const needed = keyThreshold(noise.scale, target.counts.max_keys, found.delta);
  if (!(Math.abs(needed - found.threshold) <= FOUND_ROUNDING)) throw damaged("its keys were found above another threshold than its noise needs");
  const renewed = renewedUntil(meta);
  const isAnnounced = ({ is_new: isNew, until }) => Date.parse(until) > Date.parse(window.start) && (!isNew || Date.parse(until) === renewed);
  if (!rows.every(isAnnounced)) throw damaged("a key of its table is not announced for the time that it is");
}

/** Until when a key stays that a window publishes above the threshold, in milliseconds. */
const renewedUntil = ({ window, basis }) => Date.parse(window.end) + 1000 * basis.keys.found.keep_seconds;

/** Whether bytes come before others. */
function isBefore(one, other) {
  const apart = one.findIndex((byte, i) => byte !== other[i]);
  return apart < 0 ? one.length < other.length : one[apart] < other[apart];
}

/** The threshold that noise of this scale needs, in grid units; NaN where there is none. */
function keyThreshold(scale, maxKeys, delta) {
  const part = Number(BigInt(delta.split(".")[1].slice(0, 18).padEnd(18, "0")) / BigInt(maxKeys)) / 1e18;
  if (!(part > 0 && scale >= 1 && scale <= 2 ** 56)) return NaN;
  const odds = 1 / FOUND_UNIT / scale;
  const most = odds < 40 ? Math.log(Math.expm1(odds) + 2 * part) : odds + Math.exp(-odds);
  const least = Math.ceil(scale * (most - Math.log(part * (1 + Math.exp(1 / scale)))));
  return Math.max(least + 16 + Math.floor(scale / 2 ** 40), 1 / FOUND_UNIT);
}

/** New keys are above the threshold, and what is above it stays as long as a new key. */
function checkFoundNumbers(meta, values) {
  const found = meta.basis.keys?.found;
  if (!isObject(found)) return;
  const renewed = renewedUntil(meta);
  found.rows?.forEach(({ is_new: isNew, until }, i) => {
    const number = values[i] / FOUND_UNIT;
    if (!Number.isInteger(number)) throw damaged("the number of a key is not on the grid of its noise");
    if (isNew && number <= found.threshold) throw damaged("a new key is not above the threshold");
    if (number > found.threshold && Date.parse(until) !== renewed) throw damaged("a key above the threshold is not announced anew");
  });
}

/** The bins of units by their keys have every number from 1 to that of all keys. */
function checkToldUnits({ units, keys = [] }) {
  if (units === undefined || units === null) return;
  if (!isObject(units)) throw damaged("its numbers of units are no object");
  need(units, "unit", isPositive, "a positive number");
  let last = 0;
  for (const { least, most } of need(units, "bins", isList(isObject), "a list of bins")) {
    if (least !== last + 1 || !isWhole(most, least, keys.length)) throw damaged("the bins of its units have gaps or overlaps");
    last = most;
  }
  if (last !== keys.length) throw damaged("the bins of its units are not those of its keys");
}

/** The columns of a key are two or three different names, and each key has a part for each. */
function checkKeyParts({ key_columns: columns, key, basis }) {
  if (columns === undefined || columns === null) return;
  const isOwn = (name) => OWN_COLUMNS.includes(name) || OWN_NAMES.test(name);
  const isName = (name) => isText(name) && !isOwn(name.replace(/_(lower|upper)$/, ""));
  const isRight = isList(isName)(columns) && [2, 3].includes(columns.length) && new Set(columns).size === columns.length;
  if (!isRight) throw damaged("its field 'key_columns' is not two or three different names");
  for (const each of basis.keys ? keysOf(basis) : isText(key) ? [key] : []) partsOf(each, columns);
}

/** The parts of a key by their columns: `/` stands between them, and `%25` and `%2F` for `%` and `/` within a part. */
function partsOf(key, columns) {
  const parts = columns.length ? key.split("/") : [];
  if (parts.length !== columns.length || parts.some((part) => /%(?!25|2F)/.test(part))) {
    throw damaged(`the key '${key}' does not have ${columns.length} parts`);
  }
  return Object.fromEntries(parts.map((part, i) => [columns[i], part.replaceAll("%2F", "/").replaceAll("%25", "%")]));
}

function checkPrecision(of, axes) {
  const isRow = (row) => Array.isArray(row) && row.length === axes && row.every(Number.isFinite);
  const isMatrix = (rows) => Array.isArray(rows) && rows.length === axes && rows.every(isRow);
  return need(of, "precision", isMatrix, `a matrix with ${axes} rows and columns`);
}

/** The nodes that records were shared among, of so many tables. */
function checkGrid(cells, axes, tables) {
  const spline = need(cells, "spline", isText, "a text");
  if (!SPLINES.has(spline)) throw unknown("spline", spline);
  const areSteps = (list) => Array.isArray(list) && list.length === axes && list.every((m) => isWhole(m, 1, MOST_CELLS));
  const steps = need(cells, "steps", areSteps, `${axes} whole numbers`);
  if (cellCount({ spline, steps }) * tables > MOST_CELLS) throw damaged(`it has more than ${MOST_CELLS} cells`);
  return { spline, steps };
}

/** Whether every pivot is positive, where one variable after the other is completed to a square. */
function isDefinite(matrix) {
  const rest = matrix.map((row) => [...row]);
  for (let last = rest.length - 1; last >= 0; last--) {
    const pivot = rest[last][last];
    if (!isPositive(pivot)) return false;
    for (let i = 0; i < last; i++) {
      for (let j = 0; j < last; j++) rest[i][j] -= (rest[last][i] * rest[last][j]) / pivot;
    }
  }
  return true;
}

const cellCount = ({ spline, steps }) => steps.reduce((count, m) => count * (m + SPLINES.get(spline).more), 1);

/** The coordinates of the nodes along each axis. */
function nodesOf({ spline, steps }) {
  const { first, more } = SPLINES.get(spline);
  return steps.map((m) => Float64Array.from({ length: m + more }, (_, j) => (j + first) / m));
}

function checkMachineKernel(kernel) {
  const { name, content } = variant(kernel, "kernel");
  if (name === "gaussian" || name === "laplacian") need(content, "bandwidth", isPositive, "a positive number");
  else if (name === "polynomial") need(content, "power", (power) => isWhole(power, 0, 1000), "a power");
  else if (name !== "linear") throw unknown("kernel", name);
}

function checkTarget(target, axes) {
  const { name, content } = variant(target, "target");
  if (name === "density") {
    const kernel = variant(field(content, "kernel"), "kernel");
    const isSquare = (rows) => Array.isArray(rows) && rows.every(isList(Number.isFinite));
    if (kernel.name === "bandwidths") need(content.kernel, "bandwidths", isList(isPositive), "a list of widths");
    else if (kernel.name === "covariance") need(content.kernel, "covariance", isSquare, "a matrix");
    else throw unknown("kernel", kernel.name);
    need(content, "divide_by", (x) => x === undefined || x === null || isWhole(x, 0, Infinity), "a number or null");
  } else if (name === "regression" || name === "classifier" || name === "probability") {
    need(content, "label", isText, "a text");
    for (const bound of name === "regression" ? ["min", "max"] : ["above"]) {
      need(content, bound, Number.isFinite, "a number");
    }
    const method = variant(field(content, "method"), "method");
    if (method.name === "kernel_machine") checkMachineKernel(field(method.content, "kernel"));
    else if (!["priestley_chao", "kernel_bayes", "gaussian_bayes", "logistic"].includes(method.name)) {
      throw unknown("method", method.name);
    }
  } else if (name === "sum") need(content, "expression", isText, "a text");
  else if (name === "moments") need(content, "frequencies", (t) => isWhole(t, 1, MOST_FREQUENCIES[axes - 1]), "a number");
  else if (name === "cells") {
    if (!isObject(content)) throw damaged("its target has no content");
    checkLabel(content.label);
  } else if (name === "counts") {
    need(content, "max_keys", (x) => isWhole(x, 1, Infinity), "a whole number from 1");
    need(content, "max_records", (x) => x === undefined || x === null || isWhole(x, 1, Infinity), "a whole number from 1");
    need(content, "parts", isList(isObject), "a list of parts of the price");
    for (const bounds of ["value", "per_user"]) checkRange(field(content, bounds));
  } else throw unknown("target", name);
}

/** Bounds that may be absent. */
function checkRange(bounds) {
  if (bounds === undefined || bounds === null) return;
  const [min, max] = [need(bounds, "min", Number.isFinite, "a number"), need(bounds, "max", Number.isFinite, "a number")];
  if (!isPositive(max - min)) throw damaged("the bounds of what it sums are no range");
}

/** The label of tables of cells, if there is one. */
function checkLabel(label) {
  if (label === undefined || label === null) return;
  const { name, content } = variant(label, "label");
  if (!["number", "above", "classes"].includes(name)) throw unknown("label", name);
  need(content, "column", isText, "a text");
  if (name === "above") need(content, "above", Number.isFinite, "a number");
  if (name === "number") {
    const [min, max] = [need(content, "min", Number.isFinite, "a number"), need(content, "max", Number.isFinite, "a number")];
    if (!isPositive(max - min)) throw damaged(`its label '${content.column}' has no proper range`);
  }
  if (name === "classes") {
    const isValue = (x) => isText(x) || isFlag(x) || Number.isFinite(x);
    const areValues = (list) => isList(isValue)(list) && list.length >= 2 && list.length <= MOST_CLASSES;
    need(content, "values", areValues, `a list of 2 to ${MOST_CLASSES} values`);
  }
}

/** The basis of tables and the target that is read from them come together, and fit each other. */
function checkTables({ basis, target }) {
  const isTables = basisName({ basis }) === "tables";
  if (isTables !== (targetName({ target }) === "cells")) throw damaged("tables of cells and their target come together");
  if (isTables && basis.tables.tables !== labelOf(target.cells).tables) throw damaged("its tables are not those of its label");
}

/** A table by key, its target and its noise belong together. */
function checkCounts(meta) {
  const { basis, target, noise, key } = meta;
  const isTable = basisName({ basis }) === "keys";
  if (isTable !== (targetName({ target }) === "counts")) throw damaged("a table by key and its target come together");
  if (!isTable) return;
  if (isText(key)) throw damaged("a table by key is of all keys, and it names one");
  if (!INDEPENDENT.includes(noise.law)) throw damaged("the noise of a table by key is not independent");
  const { columns } = basis.keys;
  const isSummed = columns.some(({ statistic }) => ["low", "middle", "high", "sum"].includes(statistic) || !isText(statistic));
  if (isSummed && !isObject(target.counts.value)) throw damaged("it sums values, and does not say which");
  const { units } = basis.keys;
  if (isObject(units)) {
    if (!units.bins.some(({ most }) => most === target.counts.max_keys)) throw damaged("none of the bins of its units ends at max_keys");
    if (isObject(target.counts.quantiles)) throw damaged("a table of quantiles does not tell its caps");
  }
  checkFoundKeys(meta);
  const { quantiles } = target.counts;
  const hasRanges = columns.some(({ statistic }) => !isText(statistic));
  if (!isObject(quantiles)) {
    if (hasRanges) throw damaged("it counts ranges of a value, and does not say what for");
    return;
  }
  const grid = need(quantiles, "grid", isObject, "an object");
  const places = need(grid, "places", (x) => isWhole(x, 2, MOST_PLACES), `a whole number from 2 to ${MOST_PLACES}`);
  need(grid, "block", (x) => x === undefined || x === null || isWhole(x, 2, places), "a number of places");
  const parts = need(quantiles, "parts", isList(isThousandths), "a list of thousandths");
  if (!parts.length || new Set(parts).size < parts.length) throw damaged("the parts of its quantiles are not different");
  const expected = rangesOf(grid);
  const areExpected = columns.length === expected.length && columns.every(
    ({ statistic, unit }, i) => !isText(statistic) && statisticName(statistic) === expected[i] && unit === columns[0].unit,
  );
  if (!areExpected) throw damaged("its columns are not those of its quantiles");
}

/** Whether a number is a whole number of thousandths above 0 and below 1. */
function isThousandths(part) {
  const thousandths = Math.round(1000 * part);
  return Number.isFinite(part) && thousandths >= 1 && thousandths <= 999 && Math.abs(thousandths / 1000 - part) < 1e-9;
}

/** The names of the counts of a grid: those of its blocks of places, and of each place. */
function rangesOf({ places, block }) {
  const names = [];
  if (isWhole(block, 1, places)) {
    for (let from = 0; from < places; from += block) names.push(`range_${from}_${Math.min(from + block, places)}`);
  }
  for (let from = 0; from < places; from++) names.push(`range_${from}_${from + 1}`);
  return names;
}

const LAWS = ["discrete laplace", "discrete cube", "rounded ball", "discrete gaussian"];
/** The field of a price that each definition of privacy is paid in; none where it is a text. */
const PAID_IN = new Map([
  ["pure epsilon", undefined], ["random", undefined], ["epsilon-delta", "delta"], ["zero-concentrated", "rho"],
  ["gaussian", "rho"], ["declared plan", "slots"],
]);

function checkNoise(meta) {
  const noise = need(meta, "noise", isObject, "an object");
  if (!LAWS.includes(field(noise, "law"))) throw unknown("law of the noise", field(noise, "law"));
  if (!isPositive(field(noise, "scale")) || !isPositive(field(noise, "grid"))) {
    throw damaged("its noise has no positive scale and grid");
  }
  const privacy = need(meta, "privacy", isObject, "an object");
  need(privacy, "in_words", isText, "a text");
  need(privacy, "adjacency", (x) => x === "add_remove" || x === "replace_one", "one that there is");
  if (variant(field(privacy, "unit"), "unit of privacy").name !== "record") {
    const user = need(privacy.unit, "user", isObject, "one that there is");
    for (const name of ["column", "per"]) need(user, name, isText, "a text");
    need(user, "max_records_per_window", (x) => x === undefined || x === null || isWhole(x, 0, Infinity), "a number");
  }
  const definition = variant(field(privacy, "definition"), "definition of privacy").name;
  if (!PAID_IN.has(definition)) throw unknown("definition of privacy", definition);
  const blocks = need(privacy, "blocks", Array.isArray, "a list of blocks");
  blocks.forEach(checkSpan);
  const kind = PAID_IN.get(definition);
  const isDecimal = (price) => isText(price) && /^\d+(\.\d+)?$/.test(price);
  const isPaid = (price) => (kind === undefined ? isDecimal(price) : field(price, kind) !== undefined);
  if (![field(privacy, "price"), ...blocks.flatMap((b) => [field(b, "spent"), field(b, "total")])].every(isPaid)) {
    throw damaged("its prices are not those of its definition of privacy");
  }
  const calibrated = Object.hasOwn(noise, "calibrated") ? variant(noise.calibrated, "calibration") : { name: "tight" };
  if (calibrated.name === "paper") need(calibrated.content, "times_needed", Number.isFinite, "a number");
  else if (!["tight", "sampled"].includes(calibrated.name)) throw unknown("calibration", calibrated.name);
  if ((calibrated.name === "sampled") !== (definition === "random")) {
    throw damaged("its noise and its definition of privacy do not fit");
  }
  if (definition === "declared plan" && !isObject(field(privacy, "implies"))) {
    throw damaged("it does not say what epsilon and delta its plan has");
  }
  const band = need(meta, "band", isObject, "an object");
  need(band, "covers", (what) => what === "the noise, not the approximation", "what a band covers");
  need(band, "draws", (x) => isWhole(x, 0, Infinity), "a number");
  need(band, "level", (level) => level > 0 && level < 1, "between 0 and 1");
  if (!isPositive(field(band, "half_width")) || !isList(isPositive)(field(band, "weights")) || !band.weights.length) {
    throw damaged("its band is not positive");
  }
  if (band.weights.length > MAX_DEGREE + 1) throw damaged("its band has too many weights");
  need(band, "pointwise", (x) => x === undefined || x === null || isPositive(x), "a positive number");
}

function checkSmoothness(smoothness, axes, basis) {
  if (smoothness === undefined || smoothness === null) return;
  const { name, content } = variant(smoothness, "smoothness");
  const fits = {
    lipschitz: () => basis === "bernstein" && isPositives(axes)(content),
    curvature: () => basis === "bernstein" && isPositives(axes)(content),
    norm: () => basis === "kernel" && isPositive(content),
  };
  if (!Object.hasOwn(fits, name) || !fits[name]()) {
    throw damaged("the smoothness that it declares does not fit its form");
  }
}

function checkFormError({ form_error: error, target, band }, basis) {
  if (error === undefined || error === null) return;
  const fits = isObject(target) && Object.hasOwn(target, "density") && (basis === "bernstein" || basis === "cells");
  if (!isPositive(error) || !fits || !isPositive(band.pointwise)) {
    throw damaged("the error of its form is not positive, or does not fit its form");
  }
}

/** "bernstein", "affine", "kernel", "cells", "tables", "keys" or "cosine". */
const basisName = (meta) => (isText(meta.basis) ? meta.basis : Object.keys(meta.basis)[0]);
const targetName = (meta) => (isText(meta.target) ? meta.target : Object.keys(meta.target)[0]);

/** The number of values. */
function valueCount({ basis, degree, domain }) {
  switch (basisName({ basis })) {
    case "bernstein": return (degree + 1) ** domain.length;
    case "affine": return domain.length + 1;
    case "kernel": return basis.kernel.points.length;
    case "cells": return cellCount(basis.cells);
    case "tables": return cellCount(basis.tables) * basis.tables.tables;
    case "keys": return keysOf(basis).length * basis.keys.columns.length + (basis.keys.units?.bins.length ?? 0);
    default: return basis.cosine.frequencies ** domain.length;
  }
}

// ---- A synopsis -----------------------------------------------------------------------------------------------------

/** A released function: what it is (`meta`), and its noisy values. Made by `parse`. */
export class Synopsis {
  #evaluators = new Map();
  #cells = null;
  #keys = null;

  constructor(meta, values, choice) {
    this.meta = meta;
    this.values = values;
    /** What `as` chose, if this was made by it. */
    this.choice = choice;
  }

  /** The reading that is expected to be the most accurate. Bands belong to `meta.order`, which is the default. */
  get recommended() {
    return this.meta.reading ?? this.meta.order;
  }

  /**
   * The function by a reading that its values allow: an order of the Bernstein operator, "nearest" lattice point, "kernel"
   * interpolation, "posterior" smoothing with the known noise, or for cells "nonnegative", the posterior with no count below 0.
   */
  evaluator(by = this.meta.order) {
    const { meta, values } = this;
    const basis = basisName(meta);
    const isOrder = typeof by === "number";
    if (isOrder) checkOrder(by);
    else if (!READINGS.includes(by)) throw new SynopsisError(`there is no reading '${by}'`);
    checkFunction(meta);
    if (basis === "bernstein") {
      const { degree, domain: { length: dimensions } } = meta;
      if (isOrder) {
        const coefficients = by === 1 ? values : operatorOf(degree).coefficients(values, dimensions, by);
        return new Evaluator(meta, new Polynomial(degree, dimensions, coefficients));
      }
      if (by === "nearest") return new Evaluator(meta, new Nearest(degree, values));
    }
    if (basis === "affine" && isOrder) return new Evaluator(meta, new Affine(values));
    if (basis === "kernel" && (isOrder || by === "kernel")) {
      const { kernel, points } = meta.basis.kernel;
      return new Evaluator(meta, new KernelSum(kernelOf(kernel), points, values, meta.offset ?? 0));
    }
    if (basis === "cells") return new Evaluator(meta, cellSum(meta, values, by));
    if (basis === "tables" && isOrder) return new Evaluator(meta, this.#function());
    if (by === "posterior" && (basis === "bernstein" || basis === "kernel")) return smoothed(meta, values, posterior(meta, values));
    if (by === "kernel" && basis === "bernstein") {
      const kernel = prior(meta);
      if (kernel) return smoothed(meta, values, interpolation(meta, values, kernel));
    }
    throw cannotRead(isOrder ? `order ${by}` : by);
  }

  /** The function at one point, in natural units. */
  evaluate(point, by = this.meta.order) {
    if (!this.#evaluators.has(by)) this.#evaluators.set(by, this.evaluator(by));
    return this.#evaluators.get(by).evaluate(point);
  }

  /** The integral over the domain, at the recommended order: for a density the noisy number of records. */
  mass() {
    return this.evaluator().mass();
  }

  /**
   * How far the function of the exact values is from the density itself, everywhere at once and whatever the records are, at the
   * recommended order: add it to a half-width. With that of the simultaneous band it holds in at least 9 of 10 windows; null where it
   * is not known.
   */
  formError() {
    const { meta: { form_error: error } } = this;
    return error === undefined || error === null ? null : error * mostOfSum(this);
  }

  /**
   * The integral over a box, `[low, high]` per axis, at the recommended order, for a density the number of records there: its `value`,
   * the `noise` in it, and `formError`, what the form adds to that at most, wherever the records are, or null where that is not known.
   * With it both hold in at least 9 of 10 windows. Kernels are integrated by the midpoint rule.
   */
  integrate(box) {
    const { meta } = this;
    const value = this.evaluator().integrate(box);
    const sides = unitBox(meta.domain, box);
    const weights = integralWeights(meta, sides);
    const volume = volumeOf(meta.domain);
    const form = formErrorOfIntegral(meta, sides, weights);
    return {
      value,
      noise: weightedNoise(meta.noise, Float64Array.from(weights, (weight) => volume * weight)),
      formError: form === null ? null : volume * form * mostOfSum(this),
    };
  }

  /** `formError` of `integrate` alone: what it takes from the values is their sum, so that a box is looked at once for all windows. */
  formErrorOf(box) {
    const { meta } = this;
    if (meta.form_error === undefined || meta.form_error === null) return null;
    const sides = unitBox(meta.domain, box);
    return volumeOf(meta.domain) * formErrorOfIntegral(meta, sides) * mostOfSum(this);
  }

  /**
   * The half-width of the simultaneous band at a point, at the recommended order: with 95 % probability the noise is within
   * it at all points simultaneously. It covers the noise, not the approximation error. `interval` has its ends.
   */
  halfWidth(point) {
    const { meta } = this;
    checkFunction(meta);
    if (basisName(meta) === "tables") return this.#function().halfWidths(oneOf(meta.domain, point), meta.band.half_width)[0];
    const weights = unitPoint(meta.domain, point).map((x) => weightAt(meta.band.weights, x));
    return meta.band.half_width / weights.reduce((product, weight) => product * weight);
  }

  /** The same on the product grid of `axes`, row-major, the last axis fastest. */
  halfWidths(axes) {
    const { meta } = this;
    checkFunction(meta);
    if (basisName(meta) === "tables") return this.#function().halfWidths(unitAxes(meta.domain, axes), meta.band.half_width);
    const weights = unitAxes(meta.domain, axes).map((axis) => axis.map((x) => weightAt(meta.band.weights, x)));
    return productOf(weights).map((weight) => meta.band.half_width / weight);
  }

  /** The ends of the simultaneous band at a point, at the recommended order; of a probability clipped to 0 to 1. */
  interval(point) {
    const by = this.meta.order;
    if (!this.#evaluators.has(by)) this.#evaluators.set(by, this.evaluator(by));
    return this.#evaluators.get(by).interval(point, this.halfWidth(point));
  }

  /** The pointwise band, for an order. */
  pointwise(order = this.meta.order) {
    return new Pointwise(this.meta, order, basisName(this.meta) === "tables" ? this.#function() : null);
  }

  /** Everything that can be read from noisy counts of cells; only for tables of cells. */
  tables() {
    if (basisName(this.meta) !== "tables") throw new SynopsisError("it does not hold tables of cells");
    return new Tables(this.meta, (this.#cells ??= new CellTables(this.meta, this.values)));
  }

  /** Users, records, sums, means, variances or quantiles of each key; only for tables by key. */
  keyTable() {
    if (basisName(this.meta) !== "keys") throw new SynopsisError("it does not hold a table by key");
    return (this.#keys ??= new KeyTable(this.meta, this.values));
  }

  /**
   * The same tables of cells with another function where one is asked for without more: `choice` is
   * `{ function: "density" | "expected" | "probability", table, degree: "constant" | "linear" | "naive", bandwidths }`.
   */
  as(choice) {
    this.tables();
    new TableFunction(this.#cells, choice);
    return new Synopsis(this.meta, this.values, Object.freeze({ ...choice }));
  }

  #function() {
    this.#cells ??= new CellTables(this.meta, this.values);
    return new TableFunction(this.#cells, this.choice);
  }

  /**
   * A score with its band, and its side: of a classifier (above 0) or a probability (above 1/2).
   */
  classify(point) {
    if (this.meta.target.cells?.label?.above) return sideOf(this.tables().classify(point, this.choice));
    const threshold = new Map([["classifier", 0], ["probability", 0.5]]).get(targetName(this.meta));
    if (threshold === undefined) throw new SynopsisError("it is no classifier: it has no classes");
    const score = this.evaluate(point);
    const [lower, upper] = this.interval(point);
    const says = lower > threshold ? "above" : upper < threshold ? "below" : "too close to call";
    return { score, lower, upper, says };
  }

  /**
   * Plausible functions without the noise: `count` synopses, each minus simulated noise from the same distribution. `random` is
   * like Math.random.
   */
  sample(count, random = Math.random) {
    if (!isWhole(count, 0, 1e6)) throw new SynopsisError(`${count} is no number of samples`);
    const { meta, values } = this;
    if (isObject(meta.basis.keys?.found)) throw new SynopsisError("its keys were found by their noise: other noise would have found others");
    const newton = basisName(meta) === "kernel" ? Newton.on(meta.basis.kernel) : null;
    const one = () => {
      const unit = unitNoise(meta.noise.law, values.length, random);
      // Noise on kernel functions is drawn on their whitened coordinates.
      const noise = newton ? newton.coefficients(unit) : unit;
      return new Synopsis(meta, values.map((value, i) => value - meta.noise.scale * unitOf(meta, i) * noise[i]), this.choice);
    };
    return Array.from({ length: count }, one);
  }

  /**
   * The weights of a query: its answer is the sum of their products with `values`, here and in every synopsis of the
   * same domain and frequencies. `perRecord` is the largest error per record found on a fine grid: an estimate, not a proof.
   */
  weights(f, options = {}) {
    return queryWeights(this.meta, f, options);
  }

  /**
   * The sum of a function over the records of a synopsis of moments. `f` takes one number per axis, in natural units; or
   * pass the result of `weights`.
   */
  query(query, options = {}) {
    return answer(this, typeof query === "function" ? this.weights(query, options) : query);
  }
}

const READINGS = ["nearest", "kernel", "posterior", "nonnegative"];

/** Only functions of a point have values at points. */
function checkFunction(meta) {
  const basis = basisName(meta);
  if (basis === "cosine") throw new SynopsisError("it holds moments of the records, not a function of a point: use query");
  if (basis === "keys") throw new SynopsisError("it holds a table by key, not a function of a point: use keyTable");
}

const cannotRead = (by) => new SynopsisError(`the values of this synopsis cannot be read by ${by}`);

function checkOrder(order) {
  if (!isWhole(order, 1, MAX_ORDER)) throw new SynopsisError(`order ${order} is not from 1 to ${MAX_ORDER}`);
}

function toUnit({ column, min, max }, value) {
  if (!(value >= min && value <= max)) {
    throw new SynopsisError(`${column} = ${value} is outside the domain ${min} to ${max}`);
  }
  return Math.min(Math.max((value - min) / (max - min), 0), 1);
}

/** A point of the domain in the unit cube. */
function unitPoint(domain, point) {
  const coordinates = typeof point === "number" ? [point] : point;
  if (coordinates?.length !== domain.length) {
    throw new SynopsisError(`a point of this synopsis has ${domain.length} coordinates, not ${coordinates?.length ?? 0}`);
  }
  return domain.map((axis, i) => toUnit(axis, coordinates[i]));
}

/** A point of the domain as a product grid of the unit cube. */
const oneOf = (domain, point) => unitPoint(domain, point).map((y) => Float64Array.of(y));

/** A box of the domain, an interval per axis, in the unit cube. */
function unitBox(domain, box) {
  const sides = domain.length === 1 && typeof box?.[0] === "number" ? [box] : box;
  if (sides?.length !== domain.length || sides.some((side) => side?.length !== 2)) {
    throw new SynopsisError(`a box of this synopsis has ${domain.length} pairs of bounds`);
  }
  const unit = domain.map((axis, i) => [...sides[i]].map((bound) => toUnit(axis, bound)));
  if (unit.some(([low, high]) => low > high)) throw new SynopsisError("a box ends before it begins");
  return unit;
}

function unitAxes(domain, axes) {
  if (axes?.length !== domain.length || axes.some((axis) => typeof axis === "number")) {
    throw new SynopsisError(`a grid of this synopsis has ${domain.length} lists of coordinates`);
  }
  return domain.map((axis, i) => Float64Array.from(axes[i], (value) => toUnit(axis, value)));
}

/** The products of one number of each list, row-major, the last list fastest. */
function productOf(lists) {
  return lists.reduce((products, list) => {
    const longer = new Float64Array(products.length * list.length);
    for (let i = 0; i < products.length; i++) {
      for (let j = 0; j < list.length; j++) longer[i * list.length + j] = products[i] * list[j];
    }
    return longer;
  }, Float64Array.of(1));
}

/** All points with one coordinate of each list, the last list fastest. */
function pointsOf(lists) {
  return lists.reduce((points, list) => points.flatMap((p) => Array.from(list, (y) => [...p, y])), [[]]);
}

// ---- Readings -------------------------------------------------------------------------------------------------------

/** One reading of a synopsis, ready for many points. Made by `Synopsis.evaluator`. */
export class Evaluator {
  #domain;
  #form;
  #possible;

  constructor(meta, form) {
    this.#domain = meta.domain;
    this.#form = form;
    this.#possible = possibleOf(meta);
  }

  /** The function at a point of the domain, in natural units; a number is a point on one axis. A probability is clipped to 0 to 1. */
  evaluate(point) {
    return this.#possible(this.#form.at(unitPoint(this.#domain, point)));
  }

  /** On the product grid of `axes`, row-major, the last axis fastest. */
  on(axes) {
    return this.#form.on(unitAxes(this.#domain, axes)).map(this.#possible);
  }

  /** The ends of the value at a point give or take a half-width; of a probability each is clipped, the value only after that. */
  interval(point, halfWidth) {
    const value = this.#form.at(unitPoint(this.#domain, point));
    return [value - halfWidth, value + halfWidth].map(this.#possible);
  }

  /** The same on a product grid, with a half-width for each of its points. */
  intervals(axes, halfWidths) {
    const values = this.#form.on(unitAxes(this.#domain, axes));
    const end = (sign) => values.map((value, i) => this.#possible(value + sign * halfWidths[i]));
    return { lower: end(-1), upper: end(1) };
  }

  /** The posterior standard deviation at a point, of noise and approximation under the prior; null except for "posterior". */
  deviation(point) {
    const unit = unitPoint(this.#domain, point);
    return this.#form.deviation ? this.#form.deviation(unit) : null;
  }

  /** The integral over the domain, of a probability before it is clipped: exact for polynomials, otherwise by the midpoint rule. */
  mass() {
    return volumeOf(this.#domain) * (this.#form.mean?.() ?? meanOf(this.#form.on(wholeCube(this.#domain))));
  }

  /** The integral over a box, `[low, high]` per axis: exact, except for kernels, which use the midpoint rule. */
  integrate(box) {
    const domain = this.#domain;
    const unit = unitBox(domain, box);
    if (this.#form.integral) return volumeOf(domain) * this.#form.integral(unit);
    const volume = unit.reduce((product, [low, high]) => product * (high - low), volumeOf(domain));
    return volume * meanOf(this.#form.on(midpoints(unit)));
  }

  /** A density that is nowhere negative and integrates to 1: this clipped at 0 and divided by its integral. */
  proper() {
    const values = this.#form.on(wholeCube(this.#domain));
    const mass = volumeOf(this.#domain) * meanOf(values.map((value) => Math.max(value, 0)));
    if (!(mass > 0)) throw noMass(mass);
    return {
      mass,
      evaluate: (point) => Math.max(this.evaluate(point), 0) / mass,
      on: (axes) => this.on(axes).map((value) => Math.max(value, 0) / mass),
    };
  }

  /**
   * A distribution function on one axis, nondecreasing from 0 to 1: the nearest to the running integral in least squares
   * (pool adjacent violators).
   */
  cumulative() {
    const domain = this.#domain;
    if (domain.length !== 1) throw new SynopsisError(`a distribution function needs one axis, not ${domain.length}`);
    const steps = 1000;
    let sum = 0;
    const raw = this.#form.on([midpointsOf([0, 1], steps)]).map((value) => (sum += value / steps));
    if (!(sum > 0)) throw noMass(sum * volumeOf(domain));
    const values = [0, ...isotonic(raw).map((value) => Math.min(Math.max(value / sum, 0), 1))];
    values[steps] = 1;
    const evaluate = (point) => {
      const at = unitPoint(domain, point)[0] * steps;
      const before = Math.min(Math.floor(at), steps - 1);
      return values[before] + (values[before + 1] - values[before]) * (at - before);
    };
    return { evaluate };
  }
}

/** What makes a value a possible one: a probability lies from 0 to 1, whatever the noise. */
function possibleOf({ target }) {
  return target.probability ? (value) => Math.min(Math.max(value, 0), 1) : (value) => value;
}

const noMass = (mass) =>
  new SynopsisError(`the released mass is ${mass}, not positive: noise outweighs the records, and there is no density to show`);
const volumeOf = (domain) => domain.reduce((product, { min, max }) => product * (max - min), 1);

function meanOf(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum / values.length;
}

const midpointsOf = ([low, high], count) =>
  Float64Array.from({ length: count }, (_, j) => low + ((j + 0.5) / count) * (high - low));
const midpoints = (sides) => sides.map((side) => midpointsOf(side, [500, 80, 30][sides.length - 1]));
const wholeCube = (domain) => midpoints(domain.map(() => [0, 1]));

/** The nondecreasing sequence nearest to `values` in least squares. */
function isotonic(values) {
  const blocks = [];
  for (const value of values) {
    let [sum, count] = [value, 1];
    while (blocks.length) {
      const last = blocks[blocks.length - 1];
      if (last.sum / last.count <= sum / count) break;
      blocks.pop();
      [sum, count] = [sum + last.sum, count + last.count];
    }
    blocks.push({ sum, count });
  }
  return blocks.flatMap(({ sum, count }) => new Array(count).fill(sum / count));
}

/** A polynomial in Bernstein form on the unit cube. */
class Polynomial {
  constructor(degree, dimensions, coefficients) {
    Object.assign(this, { degree, dimensions, coefficients });
  }

  at(point) {
    return product(this.coefficients, point.map((x) => bernstein(this.degree, x)));
  }

  on(axes) {
    return onGrid(this.coefficients, axes.map((axis) => bernsteinColumns(this.degree, axis)));
  }

  mean() {
    return meanOf(this.coefficients);
  }

  integral(box) {
    return product(this.coefficients, box.map((side) => bernsteinIntegrals(this.degree, side)));
  }
}

/** The value at the nearest lattice point. */
class Nearest {
  constructor(degree, values) {
    Object.assign(this, { degree, values });
  }

  at(point) {
    return this.values[point.reduce((index, x) => index * (this.degree + 1) + Math.round(x * this.degree), 0)];
  }

  on(axes) {
    return Float64Array.from(pointsOf(axes), (point) => this.at(point));
  }

  /** Each value is weighted by the overlap of its cell with the box. */
  integral(box) {
    const { degree } = this;
    const overlap = ([low, high], j) => Math.max(Math.min((j + 0.5) / degree, high) - Math.max((j - 0.5) / degree, low), 0);
    return product(this.values, box.map((side) => Float64Array.from({ length: degree + 1 }, (_, j) => overlap(side, j))));
  }
}

/** `c_0 + sum_i c_i t_i`, `t_i = 2 y_i - 1`. */
class Affine {
  constructor(coefficients) {
    this.coefficients = coefficients;
  }

  at(point) {
    return point.reduce((sum, x, i) => sum + this.coefficients[i + 1] * (2 * x - 1), this.coefficients[0]);
  }

  on(axes) {
    return Float64Array.from(pointsOf(axes), (point) => this.at(point));
  }

  mean() {
    return this.coefficients[0];
  }

  integral(box) {
    const volume = box.reduce((product, [low, high]) => product * (high - low), 1);
    return volume * this.at(box.map(([low, high]) => (low + high) / 2));
  }
}

/** `offset + sum_i a_i K(y, p_i)`. */
class KernelSum {
  constructor(kernel, points, coefficients, offset) {
    Object.assign(this, { kernel, points, coefficients, offset });
  }

  at(y) {
    let sum = 0;
    for (let i = 0; i < this.points.length; i++) sum += this.coefficients[i] * this.kernel.value(y, this.points[i]);
    return this.offset + sum;
  }

  /** A kernel that is a product over the axes is evaluated on each axis separately. */
  on(axes) {
    const { along } = this.kernel;
    if (!along) return Float64Array.from(pointsOf(axes), (point) => this.at(point));
    const values = new Float64Array(axes.reduce((count, axis) => count * axis.length, 1)).fill(this.offset);
    const last = axes[axes.length - 1];
    this.points.forEach((point, i) => {
      const factors = axes.map((axis, a) => axis.map((y) => along(a, y - point[a])));
      const inner = factors.pop();
      const outer = productOf([[this.coefficients[i]], ...factors]);
      for (let o = 0, at = 0; o < outer.length; o++) {
        const factor = outer[o];
        for (let j = 0; j < last.length; j++, at++) values[at] += factor * inner[j];
      }
    });
    return values;
  }
}

/** `sum_j c_j K(y, p_j)`, `p_j` the nodes of a grid. */
class CellSum {
  constructor(cells, counts) {
    Object.assign(this, { kernels: new NodeKernels(cells), counts });
  }

  at(y) {
    const { kernels, counts } = this;
    return kernels.along ? product(counts, kernels.factors(y)) : dot(kernels.at(y), counts);
  }

  on(axes) {
    if (!this.kernels.along) return Float64Array.from(pointsOf(axes), (point) => this.at(point));
    return onGrid(this.counts, this.kernels.columns(axes));
  }

  integral(box) {
    return dot(this.kernels.integrals(box), this.counts);
  }
}

/** Cells by one of their readings. */
function cellSum(meta, values, by) {
  const { basis: { cells } } = meta;
  if (typeof by === "number" || by === "kernel") return new CellSum(cells, values);
  if (by === "nearest" || nodesOf(cells).some((nodes) => nodes.length > MOST_NODES)) throw cannotRead(by);
  const posterior = countsOf(meta, values);
  if (by === "nonnegative") return new CellSum(cells, posterior.counts.map((count) => Math.max(count, 0)));
  const form = new CellSum(cells, posterior.counts);
  form.deviation = (y) => deviationOfCounts(posterior, form.kernels.at(y));
  return form;
}

/** The kernels of all nodes of a grid; those of a diagonal matrix are products over the axes. */
class NodeKernels {
  constructor(cells) {
    const { value, along } = kernelOf({ gaussian: { precision: cells.precision } });
    Object.assign(this, { value, along, nodes: nodesOf(cells), widths: cells.precision.map((row, axis) => row[axis] ** -0.5) });
    if (!along) this.points = pointsOf(this.nodes);
  }

  /** At a point, the last axis fastest. */
  at(y) {
    return this.along ? productOf(this.factors(y)) : Float64Array.from(this.points, (p) => this.value(y, p));
  }

  /** At a point, of each axis. */
  factors(y) {
    return this.nodes.map((nodes, axis) => nodes.map((p) => this.along(axis, y[axis] - p)));
  }

  /** On a product grid, of each axis: a matrix with one column per point. */
  columns(axes) {
    return this.nodes.map((nodes, axis) => matrixOf(axes[axis].length, nodes.length, (i, j) => this.along(axis, axes[axis][i] - nodes[j])));
  }

  /** The integrals over a box: those of a full matrix by the midpoint rule. */
  integrals(box) {
    if (!this.along) return meanOver(box, this.points.length, (y) => this.at(y));
    return productOf(this.nodes.map((nodes, axis) => Float64Array.from(nodes, (p) => bumpIntegral(p, this.widths[axis], box[axis]))));
  }

  /** The length of `at`. */
  length(y) {
    if (!this.along) return root(this.at(y));
    return this.factors(y).reduce((length, factors) => length * root(factors), 1);
  }

  /** The lengths on a product grid, row-major, the last axis fastest. */
  lengths(axes) {
    if (!this.along) return Float64Array.from(pointsOf(axes), (point) => this.length(point));
    return productOf(this.nodes.map((nodes, axis) => axes[axis].map((y) => root(nodes.map((p) => this.along(axis, y - p))))));
  }
}

const root = (vector) => Math.sqrt(dot(vector, vector));

// ---- Integrals ------------------------------------------------------------------------------------------------------

/** The sum of the exact values at most, with the probability that one value of the noise stays within its pointwise band. */
const mostOfSum = ({ meta: { band }, values }) => Math.max(0, sumOf(values) + band.pointwise * Math.sqrt(values.length));

/** The integral over a box of the unit cube of functions that `at(y)` lists, by the midpoint rule. */
function meanOver(box, count, at) {
  const sums = new Float64Array(count);
  const points = pointsOf(midpoints(box));
  const part = box.reduce((size, [low, high]) => size * (high - low), 1) / points.length;
  for (const y of points) at(y).forEach((value, i) => (sums[i] += part * value));
  return sums;
}

/** What each value that noise was added to counts in the integral over a box of the unit cube. */
function integralWeights({ basis, degree, order }, box) {
  switch (basisName({ basis })) {
    case "bernstein": return operatorOf(degree).influence(box.map((side) => bernsteinIntegrals(degree, side)), order);
    case "affine": {
      const size = box.reduce((product, [low, high]) => product * (high - low), 1);
      return [1, ...box.map(([low, high]) => low + high - 1)].map((weight) => size * weight);
    }
    case "cells": return new NodeKernels(basis.cells).integrals(box);
    case "kernel": {
      const newton = Newton.on(basis.kernel);
      return meanOver(box, basis.kernel.points.length, (y) => newton.at(y));
    }
    default: throw new SynopsisError("it holds tables of cells: ask tables() for the count of a range instead of an integral");
  }
}

/** That of `b_j` up to `x` is the sum of the later ones of the next degree, over `k + 1`. */
function bernsteinIntegrals(degree, [low, high]) {
  const upTo = (x) => {
    const next = bernstein(degree + 1, x);
    for (let j = degree; j >= 0; j--) next[j] += next[j + 1];
    return next;
  };
  const [below, above] = [upTo(low), upTo(high)];
  return Float64Array.from({ length: degree + 1 }, (_, j) => (above[j + 1] - below[j + 1]) / (degree + 1));
}

/** `2 / sqrt(pi)` times the integral of `exp(-t^2)` up to `x`: a series without cancellation. */
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let sum = 1;
  for (let n = 1, term = 1; term > 1e-17 * sum; n++) sum += term *= (2 * x * x) / (2 * n + 1);
  return ((2 * x) / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/** The integral of `exp(-(y - x)^2 / 2 width^2)` over an interval. */
const bumpIntegral = (x, width, [low, high]) =>
  width * Math.sqrt(Math.PI / 2) * (erf((high - x) / (width * Math.SQRT2)) - erf((low - x) / (width * Math.SQRT2)));

/** What the largest over places misses between them; what a value of a lattice and the shares of cells are off (`FORMAT.md`). */
const [BETWEEN_PLACES, OF_A_VALUE, ROUNDED] = [1.01, 4.44e-4, 1e-4];
const IN_A_CELL = 24;

/**
 * What the form of a density adds to the integral over a box of the unit cube at most, as a part of the sum of the exact values; null
 * where it is not known. Of one record, wherever it lies; and never more than to the curve, times the size of the box.
 */
function formErrorOfIntegral(meta, box, weights = undefined) {
  const { form_error: error, basis, degree, domain, target } = meta;
  if (error === undefined || error === null) return null;
  const bandwidths = target.density.kernel.bandwidths;
  const everywhere = error * box.reduce((size, [low, high]) => size * (high - low), 1);
  if (!bandwidths) return everywhere;
  if (basisName({ basis }) === "cells") return Math.min(everywhere, recordOnCells(basis.cells, box));
  if (domain.length > 1) return everywhere;
  const width = bandwidths[0] / (domain[0].max - domain[0].min);
  return Math.min(everywhere, recordOnLattice(degree, width, box[0], weights ?? integralWeights(meta, box)));
}

function recordOnLattice(degree, width, side, weights) {
  const places = 4 * degree * Math.max(1, Math.ceil(Math.ceil(16 / width) / (4 * degree)));
  const ofValues = OF_A_VALUE * weights.reduce((sum, weight) => sum + Math.abs(weight), 0);
  let most = 0;
  for (let i = 0; i <= places; i++) {
    let [read, sum] = [0, 0];
    for (let j = 0; j <= degree; j++) {
      const value = Math.exp(-(((j / degree - i / places) / width) ** 2) / 2);
      read += value * weights[j];
      sum += value;
    }
    most = Math.max(most, (Math.abs(read - bumpIntegral(i / places, width, side)) + ofValues) / sum);
  }
  return BETWEEN_PLACES * most;
}

/** On several axes integrals are products: what one axis does to them is at most its error, times the largest of the others. */
function recordOnCells(cells, box) {
  const { spline, steps } = cells;
  const kernels = new NodeKernels(cells);
  const widths = cellBandwidths(cells);
  const along = steps.map((count, axis) => {
    const [narrow, wide] = [kernels.widths[axis], widths[axis]];
    const read = Array.from(kernels.nodes[axis], (node) => bumpIntegral(node, narrow, box[axis]));
    const most = { read: Math.max(...read), exact: 0, error: 0 };
    for (let cell = 0; cell < count; cell++) {
      for (let i = 0; i <= IN_A_CELL; i++) {
        const [from, shares] = recordShares(spline, cell, i / IN_A_CELL);
        const found = shares.reduce((sum, share, j) => sum + share * read[from + j], 0);
        const exact = (narrow / wide) * bumpIntegral((cell + i / IN_A_CELL) / count, wide, box[axis]);
        most.exact = Math.max(most.exact, exact);
        most.error = Math.max(most.error, Math.abs(found - exact));
      }
    }
    return most;
  });
  const others = (axis) => along.reduce((product, { read, exact }, i) => product * (i < axis ? read : i > axis ? exact : 1), 1);
  const error = along.reduce((sum, own, axis) => sum + own.error * others(axis), 0);
  return BETWEEN_PLACES * error + ROUNDED * along.reduce((product, own) => product * own.read, 1);
}

/** The first node that a record has a share in, a part `f` into a cell, and its shares in that and the next ones. */
function recordShares(spline, cell, f) {
  if (spline === "box") return [cell, [1]];
  if (spline === "linear") return f < 1 ? [cell, [1 - f, f]] : [cell + 1, [1]];
  const [from, d] = f < 0.5 ? [cell, f] : [cell + 1, f - 1];
  return [from, [(0.5 - d) ** 2 / 2, 0.75 - d * d, (0.5 + d) ** 2 / 2]];
}

// ---- Bernstein polynomials ------------------------------------------------------------------------------------------

/**
 * The Bernstein basis of a degree at `x` in [0, 1]: computed from its mode outwards and divided by the sum, because a recurrence
 * that starts at an end underflows.
 */
function bernstein(degree, x) {
  const basis = new Float64Array(degree + 1);
  const mode = Math.floor(Math.min((degree + 1) * x, degree));
  let [value, sum] = [1, 0];
  const [up, down] = [x / (1 - x), (1 - x) / x];
  for (let j = mode; j <= degree; j++) {
    basis[j] = value;
    sum += value;
    value *= ((degree - j) / (j + 1)) * up;
  }
  value = 1;
  for (let j = mode - 1; j >= 0; j--) {
    value *= ((j + 1) / (degree - j)) * down;
    basis[j] = value;
    sum += value;
  }
  for (let j = 0; j <= degree; j++) basis[j] /= sum;
  return basis;
}

/** The bases at several points: a matrix with one column per point, stored by rows. */
function bernsteinColumns(degree, points) {
  const columns = points.length;
  const entries = new Float64Array((degree + 1) * columns);
  for (let p = 0; p < columns; p++) {
    const basis = bernstein(degree, points[p]);
    for (let j = 0; j <= degree; j++) entries[j * columns + p] = basis[j];
  }
  return { columns, entries };
}

/** A tensor times one vector on each axis. */
function product(tensor, vectors) {
  let values = tensor;
  for (const vector of [...vectors].reverse()) {
    const width = vector.length;
    const shorter = new Float64Array(values.length / width);
    for (let row = 0; row < shorter.length; row++) {
      let sum = 0;
      for (let j = 0; j < width; j++) sum += values[row * width + j] * vector[j];
      shorter[row] = sum;
    }
    values = shorter;
  }
  return values[0];
}

/** A tensor times one matrix on each axis. */
const onGrid = (tensor, matrices) => matrices.reduce(turned, tensor);

/** Contracts the first axis and puts the result last, so that one call per axis restores their order. */
function turned(tensor, { columns, entries }) {
  if (!columns) return new Float64Array(0);
  const rows = entries.length / columns;
  const others = tensor.length / rows;
  const result = new Float64Array(others * columns);
  for (let i = 0; i < others; i++) {
    const start = i * columns;
    let j = 0;
    // Four rows at once, their terms added in order.
    for (; j + 4 <= rows; j += 4) {
      const [from0, from1, from2, from3] = [j * columns, (j + 1) * columns, (j + 2) * columns, (j + 3) * columns];
      const [c0, c1] = [tensor[j * others + i], tensor[(j + 1) * others + i]];
      const [c2, c3] = [tensor[(j + 2) * others + i], tensor[(j + 3) * others + i]];
      for (let p = 0; p < columns; p++) {
        const two = result[start + p] + c0 * entries[from0 + p] + c1 * entries[from1 + p];
        result[start + p] = two + c2 * entries[from2 + p] + c3 * entries[from3 + p];
      }
    }
    for (; j < rows; j++) {
      const [from, c] = [j * columns, tensor[j * others + i]];
      for (let p = 0; p < columns; p++) result[start + p] += c * entries[from + p];
    }
  }
  return result;
}

/**
 * The iterated Bernstein operator on the lattice: `c_1 = v`, `c_{j+1} = c_j + (v - A c_j)`, `A` from lattice values of a
 * function to those of its Bernstein polynomial. The alternating binomial sum is equal, but loses all digits.
 */
class Operator {
  constructor(degree) {
    this.degree = degree;
    this.lattice = bernsteinColumns(degree, Float64Array.from({ length: degree + 1 }, (_, i) => i / degree));
    const width = degree + 1;
    const entries = this.lattice.entries.map((_, at) => this.lattice.entries[(at % width) * width + Math.floor(at / width)]);
    this.transposed = { columns: width, entries };
  }

  /** The coefficients for an order, given the lattice values. */
  coefficients(values, dimensions, order) {
    return corrected(values, new Array(dimensions).fill(this.lattice), order);
  }

  /** The influence of noise on each lattice value on the value at a point with these bases. */
  influence(bases, order) {
    return corrected(productOf(bases), bases.map(() => this.transposed), order);
  }
}

/** `order - 1` steps of residual correction from `start`. */
function corrected(start, matrices, order) {
  const result = Float64Array.from(start);
  for (let step = 1; step < order; step++) {
    const smooth = onGrid(result, matrices);
    for (let i = 0; i < result.length; i++) result[i] += start[i] - smooth[i];
  }
  return result;
}

/** The operator of the most recent degree: a release has one. */
let lastOperator = null;
function operatorOf(degree) {
  if (lastOperator?.degree !== degree) lastOperator = new Operator(degree);
  return lastOperator;
}

/** `s(x)`: the band at `x` is its half-width over the product of these. */
function weightAt(weights, x) {
  const basis = bernstein(weights.length - 1, x);
  return basis.reduce((sum, b, j) => sum + b * weights[j], 0);
}

// ---- Kernels, and Newton's basis of them ----------------------------------------------------------------------------

/** A kernel on the unit cube: its value, and where it is a product over the axes its factor `along` each. */
function kernelOf(description) {
  const { name, content } = variant(description, "kernel");
  if (name === "machine") return machineKernel(content);
  const { precision } = content;
  const value = (x, y) => {
    let square = 0;
    for (let i = 0; i < precision.length; i++) {
      let along = 0;
      for (let j = 0; j < precision.length; j++) along += precision[i][j] * (x[j] - y[j]);
      square += (x[i] - y[i]) * along;
    }
    return Math.exp(-Math.max(square, 0) / 2);
  };
  const isDiagonal = precision.every((row, i) => row.every((p, j) => (i === j ? p >= 0 : p === 0)));
  return { value, along: isDiagonal ? (axis, d) => Math.exp(-(d * (precision[axis][axis] * d)) / 2) : null };
}

function machineKernel(description) {
  const { name, content } = variant(description, "kernel");
  const sum = (x, y, term) => x.reduce((total, _, i) => total + term(x[i], y[i]), 0);
  // (1 + <t, u>) / (1 + l)
  const affine = (x, y) => (1 + sum(x, y, (x, y) => (2 * x - 1) * (2 * y - 1))) / (1 + x.length);
  const { bandwidth, power } = content ?? {};
  switch (name) {
    case "gaussian": {
      const value = (x, y) => Math.exp(-sum(x, y, (x, y) => (x - y) * (x - y)) / (2 * bandwidth * bandwidth));
      return { value, along: (_, d) => Math.exp(-(d * d) / (2 * bandwidth * bandwidth)) };
    }
    case "laplacian": {
      const value = (x, y) => Math.exp(-sum(x, y, (x, y) => Math.abs(x - y)) / bandwidth);
      return { value, along: (_, d) => Math.exp(-Math.abs(d) / bandwidth) };
    }
    case "polynomial": return { value: (x, y) => whole(affine(x, y), power), along: null };
    default: return { value: affine, along: null };
  }
}

/** A whole power, by squares. */
function whole(base, power) {
  let result = 1;
  for (let left = power, square = base; ; square *= square) {
    if (left % 2) result *= square;
    left = Math.floor(left / 2);
    if (!left) return result;
  }
}

/** A point counts as indistinguishable from earlier ones if at most this fraction of `K(y, y)` is left. */
const REST = 1e-10;

/**
 * Points of a kernel and the factor `L` of its matrix on them. The functions `n(y) = L^-1 k_P(y)` are orthonormal in the
 * kernel's space.
 */
class Newton {
  constructor(kernel, points, factor) {
    Object.assign(this, { kernel, points, factor });
  }

  /** On the points of a basis, in their order. */
  static on({ kernel: description, points }) {
    const newton = new Newton(kernelOf(description), points, []);
    for (const point of points) {
      const row = newton.at(point);
      const whole = newton.kernel.value(point, point);
      newton.factor.push(extended(row, Math.sqrt(Math.max(whole - dot(row, row), REST * whole))));
    }
    return newton;
  }

  /** On at most `most` of `candidates`, each next one where the power function is largest. */
  static among(kernel, candidates, most) {
    const newton = new Newton(kernel, [], []);
    const rests = candidates.map((y) => kernel.value(y, y));
    const rows = candidates.map(() => new Float64Array(most));
    const least = REST * rests.reduce((largest, rest) => Math.max(largest, rest), 0);
    for (let count = 0; count < most; count++) {
      let pivot = 0;
      for (let i = 1; i < rests.length; i++) if (rests[i] > rests[pivot]) pivot = i;
      const rest = rests[pivot];
      if (!(rest > least)) break;
      const root = Math.sqrt(rest);
      const chosen = rows[pivot].slice(0, count + 1);
      chosen[count] = root;
      for (let i = 0; i < candidates.length; i++) {
        const next = (kernel.value(candidates[pivot], candidates[i]) - dot(chosen, rows[i], count)) / root;
        rests[i] -= next * next;
        rows[i][count] = next;
      }
      rests[pivot] = 0;
      newton.factor.push(chosen);
      newton.points.push(candidates[pivot]);
    }
    return newton;
  }

  get count() {
    return this.factor.length;
  }

  /** `n(y)`. */
  at(y) {
    return forward(this.factor, Float64Array.from({ length: this.count }, (_, i) => this.kernel.value(y, this.points[i])));
  }

  /** `L' a`: the coordinates of the function with these kernel coefficients. */
  coordinates(coefficients) {
    const coordinates = new Float64Array(this.count);
    this.factor.forEach((row, i) => row.forEach((l, j) => (coordinates[j] += coefficients[i] * l)));
    return coordinates;
  }

  /** `L'^-1 c`: the kernel coefficients of the function with these coordinates. */
  coefficients(coordinates) {
    return backward(this.factor, coordinates);
  }
}

/** The inner product, in four sums. */
function dot(a, b, count = Math.min(a.length, b.length)) {
  const fours = count - (count % 4);
  let [s0, s1, s2, s3, rest] = [0, 0, 0, 0, 0];
  for (let i = 0; i < fours; i += 4) {
    s0 += a[i] * b[i];
    s1 += a[i + 1] * b[i + 1];
    s2 += a[i + 2] * b[i + 2];
    s3 += a[i + 3] * b[i + 3];
  }
  for (let i = fours; i < count; i++) rest += a[i] * b[i];
  return s0 + s1 + s2 + s3 + rest;
}

function extended(row, last) {
  const longer = new Float64Array(row.length + 1);
  longer.set(row);
  longer[row.length] = last;
  return longer;
}

/** The factor of a positive definite matrix given by its lower triangle. */
function cholesky(rows) {
  const factor = [];
  for (const row of rows) {
    const whole = row[row.length - 1];
    const next = forward(factor, row);
    factor.push(extended(next, Math.sqrt(Math.max(whole - dot(next, next), REST * whole))));
  }
  return factor;
}

/** `L^-1 x`. */
function forward(factor, x) {
  const solved = new Float64Array(factor.length);
  for (let i = 0; i < factor.length; i++) solved[i] = (x[i] - dot(factor[i], solved, i)) / factor[i][i];
  return solved;
}

/** `L'^-1 x`. */
function backward(factor, x) {
  const solved = Float64Array.from(x);
  for (let i = factor.length - 1; i >= 0; i--) {
    const row = factor[i];
    solved[i] /= row[i];
    for (let j = 0; j < i; j++) solved[j] -= row[j] * solved[i];
  }
  return solved;
}

// ---- Posterior smoothing: a Gaussian process given the values and their noise distribution ----------------------------

/** The most coordinates of a smooth function. */
const MOST_COORDINATES = 512;
/** Candidate length scales if the description has none, in widths of the domain. */
const LENGTHS = [0.05, 0.1, 0.2, 0.4, 0.8];
/** Ratio of prior to noise variance for interpolation: just keeps rounding in check. */
const INTERPOLATION = 1e4;

function posterior(meta, values) {
  const noise = variance(meta.noise.law, values.length) * meta.noise.scale ** 2;
  const known = prior(meta);
  const kernels = known ? [known] : LENGTHS.map((length) => gaussian(meta.domain.map(() => length ** 2)));
  const fits = kernels.map((kernel) => {
    const model = modelOf(meta, values, kernel);
    return { model, noise, fit: likeliest(model, noise) };
  });
  return fits.reduce((a, b) => (b.fit.evidence > a.fit.evidence ? b : a));
}

function interpolation(meta, values, kernel) {
  const model = modelOf(meta, values, kernel);
  return { model, noise: 0, fit: fitOf(model, INTERPOLATION, 1) };
}

function smoothed(meta, values, { model, noise, fit }) {
  const { newton } = model;
  const offset = (basisName(meta) === "kernel" ? meta.offset ?? 0 : 0) + fit.mean;
  const form = new KernelSum(newton.kernel, newton.points, newton.coefficients(fit.coordinates), offset);
  if (noise > 0) form.deviation = (y) => deviationOf(newton, fit, noise, y);
  return new Evaluator(meta, form);
}

function deviationOf(newton, { ratio, factor, ones, onesLeft }, noise, y) {
  const n = newton.at(y);
  const solved = forward(factor, n);
  const left = Math.max(newton.kernel.value(y, y) - dot(n, n), 0);
  const ofMean = (1 - ratio * dot(solved, ones)) ** 2 / onesLeft;
  return Math.sqrt(noise * (ratio * (dot(solved, solved) + left) + ofMean));
}

/** `v = m u + F g + noise`, `g` the coordinates in Newton's basis of the prior: the sums needed to fit it. */
function modelOf(meta, values, kernel) {
  const isLattice = basisName(meta) === "bernstein";
  const points = isLattice ? latticeOf(meta) : meta.basis.kernel.points;
  const whitener = isLattice ? null : Newton.on(meta.basis.kernel);
  const whiten = (column) => (whitener ? forward(whitener.factor, column) : column);
  const newton = Newton.among(kernel, points, Math.min(MOST_COORDINATES, points.length));
  const rows = points.map((p) => newton.at(p));
  const columns = newton.points.map((_, i) => whiten(Float64Array.from(rows, (row) => row[i])));
  const ones = whiten(new Float64Array(points.length).fill(1));
  const seen = whitener ? whitener.coordinates(values) : values;
  return {
    newton,
    gram: columns.map((a, i) => Float64Array.from({ length: i + 1 }, (_, j) => dot(a, columns[j]))),
    along: [seen, ones].map((x) => Float64Array.from(columns, (column) => dot(column, x))),
    squares: [dot(seen, seen), dot(ones, seen), dot(ones, ones)],
  };
}

/** The posterior for one `ratio` of prior to noise variance. */
function fitOf({ gram, along, squares: [vv, uv, uu] }, ratio, noise) {
  const factor = cholesky(gram.map((row, i) => row.map((g, j) => (i === j ? 1 : 0) + ratio * g)));
  const [values, ones] = along.map((x) => forward(factor, x));
  const onesLeft = Math.max(uu - ratio * dot(ones, ones), 1e-12 * uu);
  const bothLeft = uv - ratio * dot(ones, values);
  const mean = bothLeft / onesLeft;
  const misfit = Math.max(vv - ratio * dot(values, values) - mean * bothLeft, 0);
  const rest = values.map((v, i) => ratio * (v - mean * ones[i]));
  const volume = factor.reduce((sum, row, i) => sum + Math.log(row[i]), 0);
  const evidence = -volume - (misfit / noise + Math.log(onesLeft)) / 2;
  return { ratio, mean, coordinates: backward(factor, rest), factor, ones, onesLeft, evidence };
}

/** The fit with the largest marginal likelihood: over 15 powers of ten, then refined to a tenth of one. */
function likeliest(model, noise) {
  const best = (exponents) =>
    exponents
      .map((exponent) => ({ exponent, fit: fitOf(model, 10 ** exponent, noise) }))
      .reduce((a, b) => (b.fit.evidence > a.fit.evidence ? b : a));
  const coarse = best(Array.from({ length: 31 }, (_, i) => (i - 12) / 2)).exponent;
  return best(Array.from({ length: 9 }, (_, i) => coarse + (i - 4) / 10)).fit;
}

/** The prior's kernel, from the public description; null where it names none. */
function prior(meta) {
  const widths = meta.domain.map(({ min, max }) => max - min);
  const { name, content } = variant(meta.target, "target");
  if (name === "density") {
    const { bandwidths, covariance } = content.kernel;
    if (bandwidths?.length === widths.length) return gaussian(bandwidths.map((b, i) => 2 * (b / widths[i]) ** 2));
    return covariance?.length === widths.length ? correlated(covariance, widths) : null;
  }
  const machine = content?.method?.kernel_machine?.kernel;
  if (!machine) return null;
  if (machine.gaussian) return gaussian(widths.map(() => 2 * machine.gaussian.bandwidth ** 2));
  return machineKernel(machine);
}

/** The Gaussian kernel with these variances. */
function gaussian(variances) {
  const precision = variances.map((_, i) => variances.map((v, j) => (i === j ? 1 / v : 0)));
  return kernelOf({ gaussian: { precision } });
}

/** The Gaussian kernel with twice a covariance matrix, in the domain mapped to the unit cube. */
function correlated(matrix, widths) {
  const entry = (i, j) => (2 * matrix[i][j]) / (widths[i] * widths[j]);
  if (matrix.some((row) => row.length !== widths.length)) return null;
  const factor = cholesky(widths.map((_, i) => Float64Array.from({ length: i + 1 }, (_, j) => entry(i, j))));
  const unit = (j) => widths.map((_, i) => (i === j ? 1 : 0));
  const precision = widths.map((_, j) => Array.from(backward(factor, forward(factor, unit(j)))));
  return kernelOf({ gaussian: { precision } });
}

function latticeOf({ degree, domain }) {
  const axis = Array.from({ length: degree + 1 }, (_, i) => i / degree);
  return pointsOf(domain.map(() => axis));
}

// ---- What the counts of cells probably were ----------------------------------------------------------------------------

/** The most nodes of an axis. */
const MOST_NODES = 512;
/** Length scales of the prior in bandwidths; at 0 the counts are independent of each other. */
const COUNT_LENGTHS = [0, 0.5, 1, 2, 4];
/** The variance of a whole cell over that of the noise. */
const COUNT_RATIOS = Array.from({ length: 18 }, (_, i) => 4 ** (i - 4));
/** Fits less likely than this are omitted. */
const NEGLIGIBLE = 1e-12;

/**
 * The counts as `mu m + f` and noise: `m` the share of each node's spline inside the domain, `mu` an unknown constant, `f` a
 * Gaussian process. Their posterior mean, averaged over lengths and sizes of `f` weighted by marginal likelihood.
 */
function countsOf(meta, values) {
  const { cells } = meta.basis;
  const noise = variance(meta.noise.law, values.length) * meta.noise.scale ** 2;
  const priors = COUNT_LENGTHS.map((length) => countPrior(cells, length, values, noise));
  const all = priors.flatMap(({ fits }) => fits);
  const best = Math.max(...all.map(({ evidence }) => evidence));
  const whole = all.reduce((sum, { evidence }) => sum + Math.exp(evidence - best), 0);
  const counts = new Float64Array(values.length);
  for (const prior of priors) {
    prior.fits.forEach((fit) => (fit.weight = Math.exp(fit.evidence - best) / whole));
    prior.fits = prior.fits.filter(({ weight }) => weight > NEGLIGIBLE);
    const sum = new Float64Array(values.length);
    for (const { weight, turned } of prior.fits) for (let i = 0; i < sum.length; i++) sum[i] += weight * turned[i];
    onGrid(sum, prior.back).forEach((part, i) => (counts[i] += part));
  }
  return { counts, noise, priors: priors.filter(({ fits }) => fits.length) };
}

/** One length of the prior: its covariance is a product over the axes, so one eigenproblem per axis solves all systems. */
function countPrior(cells, length, values, noise) {
  const { variance: ofSpline, outside } = SPLINES.get(cells.spline);
  const bandwidths = cellBandwidths(cells);
  const shares = nodesOf(cells).map((nodes) => {
    const share = new Float64Array(nodes.length).fill(1);
    outside.forEach((out, i) => {
      share[i] -= out;
      share[nodes.length - 1 - i] -= out;
    });
    return share;
  });
  const eigen = nodesOf(cells).map((nodes, axis) => {
    const spread = (length * bandwidths[axis]) ** 2 + (2 * ofSpline) / cells.steps[axis] ** 2;
    const kernel = (i, j) => (length > 0 ? Math.exp(-((nodes[i] - nodes[j]) ** 2) / (2 * spread)) : i === j ? 1 : 0);
    const share = shares[axis];
    return symmetricEigen(Array.from(nodes, (_, i) => Float64Array.from(nodes, (_, j) => share[i] * share[j] * kernel(i, j))));
  });
  const eigenvalues = productOf(eigen.map(({ values }) => values.map((value) => Math.max(value, 0))));
  const turn = eigen.map(({ vectors }) => matrixOf(vectors.length, vectors.length, (k, i) => vectors[k][i]));
  const back = eigen.map(({ vectors }) => matrixOf(vectors.length, vectors.length, (i, k) => vectors[k][i]));
  const mean = onGrid(productOf(shares), turn);
  const turned = onGrid(values, turn);
  return { turn, back, eigenvalues, mean, fits: COUNT_RATIOS.map((ratio) => countFit(ratio, eigenvalues, mean, turned, noise)) };
}

/** The posterior for one `ratio` of prior to noise variance, in the coordinates of the eigenvectors. */
function countFit(ratio, eigenvalues, mean, values, noise) {
  const kept = eigenvalues.map((value) => 1 / (ratio * value + 1));
  const sum = (a, b) => kept.reduce((sum, k, i) => sum + a[i] * b[i] * k, 0);
  const left = sum(mean, mean);
  const mu = sum(mean, values) / left;
  const rest = values.map((value, i) => value - mu * mean[i]);
  const volume = kept.reduce((sum, k) => sum - Math.log(k), 0);
  const evidence = -(sum(rest, rest) / noise + volume + Math.log(left)) / 2;
  return { ratio, evidence, left, turned: values.map((value, i) => value - rest[i] * kept[i]) };
}

/** The posterior deviation of the sum of the exact counts times `kernels`. */
function deviationOfCounts({ noise, priors }, kernels) {
  let [value, square] = [0, 0];
  for (const { turn, eigenvalues, mean, fits } of priors) {
    const along = onGrid(kernels, turn);
    for (const { ratio, weight, left, turned } of fits) {
      let [spread, ofMean] = [0, 0];
      for (let i = 0; i < along.length; i++) {
        const kept = 1 / (ratio * eigenvalues[i] + 1);
        spread += along[i] * along[i] * (1 - kept);
        ofMean += along[i] * mean[i] * kept;
      }
      const at = dot(along, turned);
      value += weight * at;
      square += weight * (at * at + noise * (spread + (ofMean * ofMean) / left));
    }
  }
  return Math.sqrt(Math.max(square - value * value, 0));
}

/** The deviation of the density's kernel along each axis: of the kernel that reads the cells, and of the spline. */
function cellBandwidths({ precision, spline, steps }) {
  const factor = cholesky(precision.map((row, i) => Float64Array.from(row.slice(0, i + 1))));
  return steps.map((m, axis) => {
    const unit = steps.map((_, i) => (i === axis ? 1 : 0));
    const ofKernel = backward(factor, forward(factor, unit))[axis];
    return Math.sqrt(ofKernel + SPLINES.get(spline).variance / m ** 2);
  });
}

/**
 * The eigenvalues and eigenvectors of a symmetric matrix: Householder's tridiagonal form, then implicit QL steps (Golub and Van
 * Loan, section 8.3). Errors are of the order of the rounding of the largest eigenvalue.
 */
function symmetricEigen(a) {
  const n = a.length;
  const vectors = tridiagonal(a);
  const d = Float64Array.from(a, (row, i) => row[i]);
  const e = Float64Array.from(a, (row, i) => (i + 1 < n ? row[i + 1] : 0));
  const size = Math.max(...d.map(Math.abs), ...e.map(Math.abs));
  for (let l = 0; l < n; l++) {
    for (let steps = 0; steps < 60; steps++) {
      let m = l;
      while (m < n - 1 && Math.abs(e[m]) > Number.EPSILON * size) m++;
      if (m === l) break;
      stepQl(d, e, vectors, l, m);
    }
  }
  return { values: d, vectors };
}

/** Leaves the tridiagonal `T` of `A = Q T Q'` in place of the diagonal and the entries beside it; returns the columns of `Q`. */
function tridiagonal(a) {
  const n = a.length;
  const q = a.map((_, i) => Float64Array.from({ length: n }, (_, j) => (i === j ? 1 : 0)));
  for (let k = 0; k + 2 < n; k++) {
    const v = a[k].slice(k + 1);
    const length = (v[0] < 0 ? -1 : 1) * root(v);
    if (length === 0) continue;
    a[k][k + 1] = -length;
    v[0] += length;
    const beta = 2 / dot(v, v);
    const w = Float64Array.from({ length: v.length }, (_, i) => beta * dot(a[k + 1 + i].subarray(k + 1), v));
    const half = (beta / 2) * dot(w, v);
    for (let i = 0; i < v.length; i++) w[i] -= half * v[i];
    for (let i = 0; i < v.length; i++) {
      const row = a[k + 1 + i].subarray(k + 1);
      for (let j = 0; j < v.length; j++) row[j] -= v[i] * w[j] + w[i] * v[j];
    }
    for (const whole of q) {
      const row = whole.subarray(k + 1);
      const along = beta * dot(row, v);
      for (let j = 0; j < v.length; j++) row[j] -= along * v[j];
    }
  }
  return q.map((_, j) => Float64Array.from(q, (row) => row[j]));
}

/** One QL step with Wilkinson's shift on the block from `l` to `m`. */
function stepQl(d, e, vectors, l, m) {
  const shift = (d[l + 1] - d[l]) / (2 * e[l]);
  let g = d[m] - d[l] + e[l] / (shift + (shift < 0 ? -1 : 1) * Math.hypot(shift, 1));
  let [sine, cosine, p] = [1, 1, 0];
  for (let i = m - 1; i >= l; i--) {
    const [f, b] = [sine * e[i], cosine * e[i]];
    const r = Math.hypot(f, g);
    e[i + 1] = r;
    if (r === 0) {
      d[i + 1] -= p;
      e[m] = 0;
      return;
    }
    [sine, cosine] = [f / r, g / r];
    g = d[i + 1] - p;
    const turn = (d[i] - g) * sine + 2 * cosine * b;
    p = sine * turn;
    d[i + 1] = g + p;
    g = cosine * turn - b;
    const [x, y] = [vectors[i], vectors[i + 1]];
    for (let k = 0; k < x.length; k++) {
      const [before, after] = [x[k], y[k]];
      x[k] = cosine * before - sine * after;
      y[k] = sine * before + cosine * after;
    }
  }
  d[l] -= p;
  e[l] = g;
  e[m] = 0;
}

// ---- The noise ------------------------------------------------------------------------------------------------------

/** The variance of each of `count` values under noise of scale 1. */
function variance(law, count) {
  switch (law) {
    case "discrete laplace": return 2;
    case "discrete cube": return ((count + 1) * (count + 2)) / 3;
    case "rounded ball": return count + 1;
    default: return 1;
  }
}

/** Noise of scale 1 on `count` values; its grid is too fine to be seen. */
function unitNoise(law, count, random) {
  const each = (draw) => Float64Array.from({ length: count }, draw);
  switch (law) {
    case "discrete laplace": return each(() => (random() < 0.5 ? 1 : -1) * exponential(random));
    // Uniform in a cube whose radius has a Gamma distribution of shape N + 1.
    case "discrete cube": {
      const radius = gamma(count + 1, random);
      return each(() => radius * (2 * random() - 1));
    }
    // On a sphere whose radius has a Gamma distribution of shape N.
    case "rounded ball": {
      const noise = each(() => normal(random));
      const factor = gamma(count, random) / Math.sqrt(dot(noise, noise));
      return noise.map((z) => z * factor);
    }
    default: return each(() => normal(random));
  }
}

const exponential = (random) => -Math.log(1 - random());
const normal = (random) => Math.sqrt(2 * exponential(random)) * Math.cos(2 * Math.PI * random());

/** A Gamma variate of a shape of at least 1; Marsaglia and Tsang 2000. */
function gamma(shape, random) {
  const d = shape - 1 / 3;
  for (let tries = 0; tries < 10_000; tries++) {
    const x = normal(random);
    const v = (1 + x / Math.sqrt(9 * d)) ** 3;
    if (v > 0 && Math.log(1 - random()) < (x * x) / 2 + d - d * v + d * Math.log(v)) return d * v;
  }
  throw new SynopsisError("the random number generator is not random");
}

/** How far the noise can move a function at a single point. Made by `Synopsis.pointwise`. */
export class Pointwise {
  #meta;
  #order;
  #factor;
  #deviation;
  #newton = null;
  #cells = null;
  #function;

  constructor(meta, order, ofTables) {
    checkOrder(order);
    this.#function = ofTables;
    const basis = basisName(meta);
    checkFunction(meta);
    if (basis === "kernel") this.#newton = Newton.on(meta.basis.kernel);
    if (basis === "cells") this.#cells = new NodeKernels(meta.basis.cells);
    const count = valueCount(meta);
    this.#meta = meta;
    this.#order = order;
    this.#factor = factorOf(meta);
    this.#deviation = meta.noise.scale * Math.sqrt(variance(meta.noise.law, count));
  }

  /** At a point, the noise is within this with 95 % probability. */
  halfWidth(point) {
    if (this.#function) return this.#function.halfWidths(oneOf(this.#meta.domain, point), this.#factor)[0];
    return this.#factor * this.#length(unitPoint(this.#meta.domain, point));
  }

  /** The standard deviation of the noise. */
  deviation(point) {
    if (this.#function) return this.#function.deviations(oneOf(this.#meta.domain, point), this.#deviation)[0];
    return this.#deviation * this.#length(unitPoint(this.#meta.domain, point));
  }

  /** The half-widths on the product grid of `axes`, row-major, the last axis fastest. */
  halfWidths(axes) {
    const unit = unitAxes(this.#meta.domain, axes);
    return this.#function ? this.#function.halfWidths(unit, this.#factor) : this.#lengths(unit).map((length) => this.#factor * length);
  }

  deviations(axes) {
    const unit = unitAxes(this.#meta.domain, axes);
    return this.#function ? this.#function.deviations(unit, this.#deviation) : this.#lengths(unit).map((length) => this.#deviation * length);
  }

  /** The length of the influences of the values on the function. */
  #length(point) {
    const { basis, degree } = this.#meta;
    if (this.#cells) return this.#cells.length(point);
    let influences;
    if (this.#newton) influences = this.#newton.at(point);
    else if (basis === "affine") influences = [1, ...point.map((x) => 2 * x - 1)];
    else influences = operatorOf(degree).influence(point.map((x) => bernstein(degree, x)), this.#order);
    return root(influences);
  }

  #lengths(axes) {
    const { basis, degree } = this.#meta;
    if (this.#cells) return this.#cells.lengths(axes);
    if (basis === "bernstein" && isExpanded(degree, this.#order, axes)) return expandedLengths(degree, this.#order, axes);
    return Float64Array.from(pointsOf(axes), (point) => this.#length(point));
  }
}

/** The most products of inner products to keep at once. */
const MOST_EXPANDED = 2 ** 22;

/** Whether `expandedLengths` is cheaper for a grid than point by point. */
function isExpanded(degree, order, axes) {
  const [width, pairs] = [degree + 1, order ** 2];
  let [points, expanded] = [1, 0];
  axes.forEach((axis, i) => {
    points *= axis.length;
    expanded += points * pairs ** (axes.length - i) + (axis.length * pairs * width ** 2) / 2;
  });
  const direct = points * order * axes.length * width ** (axes.length + 1);
  return axes.length > 1 && pairs ** axes.length <= MOST_EXPANDED && expanded < direct;
}

/**
 * With `A_i` the operator along axis `i` the influences are `sum_{j<h} (I - A_1 A_2 A_3)^j` on the bases. As a polynomial in
 * each `A_i` of degree `n = h - 1` that has Bernstein coefficients from 0 to `h`, so it is a sum of products over the axes of
 * `C(n,a) A_i^a (I - A_i)^(n-a) b(y_i)`, no digit is lost, and its squared length needs only the inner products of these on
 * each axis.
 */
function expandedLengths(degree, order, axes) {
  const sides = axes.map(() => order);
  const blend = blendOf(order, axes.length);
  const pairs = new Float64Array(blend.length ** 2);
  // The two indices of an axis next to each other.
  for (let one = 0; one < blend.length; one++) {
    const first = placeOf(one, sides);
    for (let other = 0; other < blend.length; other++) {
      const second = placeOf(other, sides);
      const at = first.reduce((at, a, axis) => at * order ** 2 + a * order + second[axis], 0);
      pairs[at] = blend[one] * blend[other];
    }
  }
  const squares = onGrid(pairs, axes.map((axis) => innerProducts(degree, order, axis)));
  return squares.map((square) => Math.sqrt(Math.max(square, 0)));
}

/** The index on each axis of a place in a row-major tensor. */
function placeOf(flat, sides) {
  const place = new Array(sides.length);
  for (let axis = sides.length - 1, left = flat; axis >= 0; axis--) {
    place[axis] = left % sides[axis];
    left = Math.floor(left / sides[axis]);
  }
  return place;
}

/** The Bernstein coefficients of `S_h = sum_{j<h} (1 - t_1 t_2 t_3)^j`, by `S_{h+1} = 1 + (1 - t_1 t_2 t_3) S_h`: only sums. */
function blendOf(order, dimensions) {
  const binomialsOf = (degree) => Array.from({ length: degree + 1 }, (_, a) => choose(degree, a));
  const ones = (degree) => productOf(new Array(dimensions).fill(binomialsOf(degree)));
  // Times their binomials, where a product is a convolution.
  let scaled = Float64Array.of(1);
  for (let side = 1; side < order; side++) {
    const next = ones(side);
    for (let flat = 0; flat < scaled.length; flat++) {
      const place = placeOf(flat, new Array(dimensions).fill(side));
      // 1 - t_1 t_2 t_3 is 1 in every corner except the last.
      for (let corner = 0; corner < 2 ** dimensions - 1; corner++) {
        next[place.reduce((at, a, axis) => at * (side + 1) + a + ((corner >> axis) & 1), 0)] += scaled[flat];
      }
    }
    scaled = next;
  }
  const binomials = ones(order - 1);
  return scaled.map((c, i) => c / binomials[i]);
}

/** The inner products of `C(n,a) A^a (I - A)^(n-a) b(y)`, `a` from 0 to `n`, with each other; one column per point. */
function innerProducts(degree, order, axis) {
  const { transposed } = operatorOf(degree);
  const entries = new Float64Array(order ** 2 * axis.length);
  axis.forEach((y, point) => {
    let parts = [bernstein(degree, y)];
    while (parts.length < order) {
      const smooth = parts.map((part) => turned(part, transposed));
      const rest = parts.map((part, a) => part.map((x, i) => x - smooth[a][i] + (a ? smooth[a - 1][i] : 0)));
      parts = [...rest, smooth[smooth.length - 1]];
    }
    for (let a = 0; a < order; a++) {
      for (let b = 0; b < order; b++) entries[(a * order + b) * axis.length + point] = dot(parts[a], parts[b]);
    }
  });
  return { columns: axis.length, entries };
}

/** `C(n, k)`. */
function choose(n, k) {
  let product = 1;
  for (let i = 0; i < k; i++) product = (product * (n - i)) / (i + 1);
  return product;
}

// ---- Tables of cells: noisy counts by label, which many functions are read from ----------------------------------------

/** The label of a target, and how many tables it makes. */
function labelOf({ label }) {
  if (label === undefined || label === null) return { kind: null, tables: 1 };
  const [[kind, content]] = Object.entries(label);
  return { kind, ...content, tables: kind === "classes" ? content.values.length : 2 };
}

/** The variances of the kernels that read the nodes at these bandwidths: less those of the spline. */
function kernelVariances({ spline, steps }, bandwidths) {
  const { variance } = SPLINES.get(spline);
  return steps.map((m, axis) => {
    const left = bandwidths[axis] ** 2 - variance / m ** 2;
    if (!isPositive(left)) throw damaged("its cells are too wide for its bandwidths");
    return left;
  });
}

/** The share of the spline of the node at `u = 0` that lies below `u`, in steps. */
function splineBelow(spline, u) {
  switch (spline) {
    case "box": return Math.min(Math.max(u + 0.5, 0), 1);
    case "linear":
      if (u <= -1 || u >= 1) return u < 0 ? 0 : 1;
      return u < 0 ? (1 + u) ** 2 / 2 : 1 - (1 - u) ** 2 / 2;
    default:
      if (u <= -1.5 || u >= 1.5) return u < 0 ? 0 : 1;
      if (u < -0.5) return (u + 1.5) ** 3 / 6;
      return u <= 0.5 ? 0.5 + (3 * u) / 4 - u ** 3 / 3 : 1 - (1.5 - u) ** 3 / 6;
  }
}

/** How far a bandwidth may be below the finest: from natural units it is rounded. */
const ROUNDING = 1e-9;

/** The tables of a synopsis in the unit cube: sums of their counts with weights of the nodes. */
class CellTables {
  constructor(meta, values) {
    const { basis: { tables: grid }, target: { cells }, domain, noise, band } = meta;
    Object.assign(this, { meta, grid, domain, label: labelOf(cells), nodes: nodesOf(grid) });
    this.count = cellCount(grid);
    this.tables = Array.from({ length: grid.tables }, (_, t) => values.subarray(t * this.count, (t + 1) * this.count));
    this.counts = new Float64Array(this.count);
    for (const table of this.tables) for (let j = 0; j < this.count; j++) this.counts[j] += table[j];
    const sums = this.tables.map((table) => sumOf(table));
    this.records = sums.reduce((sum, one) => sum + one, 0);
    this.overall = sharesOf(sums.map((one) => Math.max(one, 0)), () => 1 / grid.tables);
    /** The deviation of the noise of a cell, all tables together. */
    this.deviation = noise.scale * Math.sqrt(variance(noise.law, values.length) * grid.tables);
    this.factors = { pointwise: factorOf(meta), simultaneous: band.half_width };
  }

  /** The finest bandwidths, in natural units. */
  get finest() {
    return this.domain.map(({ min, max }, i) => this.grid.bandwidths[i] * (max - min));
  }

  /** Bandwidths to read at in the unit cube, from natural units; by default the finest. */
  bandwidths(wanted) {
    if (wanted === undefined || wanted === null) return this.grid.bandwidths;
    const list = typeof wanted === "number" ? [wanted] : wanted;
    if (!isPositives(this.domain.length)(Array.from(list))) {
      throw new SynopsisError(`${wanted} is not one positive bandwidth for each of ${this.domain.length} axes`);
    }
    return this.domain.map(({ column, min, max }, i) => {
      if (list[i] < this.finest[i] * (1 - ROUNDING)) {
        throw new SynopsisError(`the finest bandwidth of ${column} is ${this.finest[i]}, not ${list[i]}`);
      }
      if (list[i] > (max - min) * (1 + ROUNDING)) throw new SynopsisError(`a bandwidth of ${column} is larger than the domain`);
      return list[i] / (max - min);
    });
  }

  /** How much of each node lies in a range, on each axis. */
  inside(range) {
    return range.map(([low, high], axis) => {
      const [below, above] = [this.below(axis, low), this.below(axis, high)];
      return above.map((share, j) => share - below[j]);
    });
  }

  /** How much of what lies inside the cube of each node lies below `x`. */
  below(axis, x) {
    const { nodes, grid: { spline, steps } } = this;
    return nodes[axis].map((p) => {
      const [first, last, at] = [0, 1, x].map((end) => splineBelow(spline, (end - p) * steps[axis]));
      return (at - first) / (last - first);
    });
  }
}

const sumOf = (list) => list.reduce((sum, x) => sum + x, 0);

/** Numbers that are not negative, divided by their sum; `none(t)` where that is 0. */
function sharesOf(list, none) {
  const whole = sumOf(list);
  return list.map((x, t) => (whole > 0 ? x / whole : none(t)));
}

/** A noisy number for each table at a place, whose parts of their sum are probabilities. */
class Parts {
  /**
   * `squares`: of each number the squared length of its gradient, by the values of its own table. Where the noise may be as large as
   * `leastDivisor`, in lengths of its weights, nothing is known.
   */
  constructor(sums, squares, leastDivisor = Infinity) {
    Object.assign(this, { sums, squares, leastDivisor, whole: sumOf(sums), square: sumOf(squares) });
  }

  /** The probabilities: drawn to those of all records where there are few. */
  probabilities({ overall, deviation }) {
    const noise = deviation * Math.sqrt(this.square / this.sums.length);
    if (!(noise > 0)) return overall;
    const pull = (noise * noise) / Math.max(this.whole, noise);
    const drawn = (sum, t) => Math.min(Math.max((sum + pull * overall[t]) / (Math.max(this.whole, 0) + pull), 0), 1);
    return sharesOf(this.sums.map(drawn), (t) => overall[t]);
  }

  /** The probabilities of a table that the noise allows, if it is within so many lengths; null if the whole may be none. */
  interval(table, factor) {
    if (this.leastDivisor <= factor) return null;
    const found = fieller(this.sums[table], this.whole, factor, this.variances(table));
    return found?.map((p) => Math.min(Math.max(p, 0), 1)) ?? null;
  }

  /** The deviation of the probability `p` of a table under noise of deviation 1, to first order. */
  length(table, p) {
    const [own, both, whole] = this.variances(table);
    return this.whole > 0 ? Math.sqrt(Math.max(own - 2 * p * both + p * p * whole, 0)) / this.whole : Infinity;
  }

  /** Whether the noise, within so many lengths, leaves the one table the larger number. */
  isApart(first, second, factor) {
    const length = Math.sqrt(Math.max(this.difference(first, second), 0));
    return this.leastDivisor > factor && this.sums[first] - this.sums[second] > factor * length;
  }

  /** Under noise of variance 1, the variance of the number of a table, of it and the whole together, of the whole. */
  variances(table) {
    return [this.squares[table], this.squares[table], this.square];
  }

  /** And of the difference of two. */
  difference(first, second) {
    return this.squares[first] + this.squares[second];
  }
}

/** Those of a line, whose slope every table moves. */
class LineParts extends Parts {
  #make;
  #made = null;

  /** `make` says what the slope is of the records of each table, and of all, and sums of the squared weights times 1 and the distances. */
  constructor(sums, square, make) {
    super(sums, sums.map(() => square));
    this.#make = make;
  }

  get #line() {
    return (this.#made ??= this.#make());
  }

  variances(table) {
    const { slopes: { [table]: own }, slope } = this.#line;
    const [count, square] = [this.sums.length, this.squares[table]];
    return [
      square - 2 * this.#along(own) + count * this.#across(own, own),
      square - count * this.#along(own) - this.#along(slope) + count * this.#across(own, slope),
      this.square - 2 * count * this.#along(slope) + count * this.#across(slope, slope),
    ];
  }

  difference(first, second) {
    const { slopes } = this.#line;
    const tilt = slopes[first].map((slope, a) => slope - slopes[second][a]);
    return super.difference(first, second) + this.sums.length * this.#across(tilt, tilt);
  }

  #along(slope) {
    return slope.reduce((sum, x, a) => sum + x * this.#line.moments[a + 1][0], 0);
  }

  #across(one, other) {
    const { moments } = this.#line;
    let sum = 0;
    for (let a = 0; a < one.length; a++) {
      for (let b = 0; b < one.length; b++) sum += one[a] * other[b] * moments[Math.max(a, b) + 1][Math.min(a, b) + 1];
    }
    return sum;
  }
}

/**
 * The ratios `p` with `(part - p whole)^2 <= noise^2 (own - 2 p both + p^2 none)` (Fieller); null if the whole may be none.
 */
function fieller(part, whole, noise, [own, both, none]) {
  if (!(whole > noise * Math.sqrt(Math.max(none, 0)))) return null;
  const square = noise * noise;
  const a = whole * whole - square * none;
  const middle = (part * whole - square * both) / a;
  // The discriminant, without terms that cancel.
  const spread = whole * whole * own - 2 * part * whole * both + part * part * none - square * (own * none - both * both);
  const half = (noise * Math.sqrt(Math.max(spread, 0))) / a;
  return [middle - half, middle + half];
}

/** How a label is fitted around a point; "naive" is naive Bayes, of classes. */
const DEGREES = ["constant", "linear", "naive"];

/** One function of tables of cells at some bandwidths, on product grids of the unit cube, with its intervals. */
class TableFunction {
  constructor(cells, { function: of, table, degree, bandwidths } = {}) {
    const { kind } = cells.label;
    this.cells = cells;
    this.of = of ?? { number: "expected", above: "probability", classes: "probability" }[kind] ?? "density";
    if (!["density", "expected", "probability"].includes(this.of)) throw new SynopsisError(`there is no function '${of}' of tables`);
    if (this.of === "expected" && kind !== "number") throw new SynopsisError("its label is not a number: it has no expected value");
    if (this.of === "probability" && !kind) throw new SynopsisError("it has no label: it has no probabilities");
    this.table = this.of === "expected" ? 1 : table ?? (kind === "classes" ? 0 : 1);
    if (this.of !== "density" && !isWhole(this.table, 0, cells.tables.length - 1)) throw new SynopsisError(`there is no table ${table}`);
    this.degree = degree ?? (this.of === "expected" ? "linear" : "constant");
    if (!DEGREES.includes(this.degree)) throw new SynopsisError(`there is no degree '${degree}'`);
    if (this.degree === "naive" && kind === "number") throw new SynopsisError("its label is a number: naive Bayes is of classes");
    this.variances = kernelVariances(cells.grid, cells.bandwidths(bandwidths));
    [this.low, this.width] = this.of === "expected" ? [cells.label.min, cells.label.max - cells.label.min] : [0, 1];
  }

  at(y) {
    return this.on(y.map((x) => Float64Array.of(x)))[0];
  }

  on(axes) {
    return this.read(axes, []).values;
  }

  /**
   * How far the further end of the interval is, if the noise of any weights is within `factor` times their length; the whole
   * range of the label where it is unknown.
   */
  halfWidths(axes, factor) {
    const { values, ends: [{ lower, upper }] } = this.read(axes, [factor]);
    return values.map((value, i) => (Number.isNaN(lower[i]) ? this.width : Math.max(Math.abs(value - lower[i]), Math.abs(upper[i] - value))));
  }

  /** The standard deviation of the noise; of ratios to first order, and infinite without records. */
  deviations(axes, deviation) {
    if (this.of === "density") return this.halfWidths(axes, deviation);
    const found = this.parts(this.along(axes)).map((parts) => parts.length(this.table, parts.probabilities(this.cells)[this.table]));
    return Float64Array.from(found, (length) => this.width * deviation * length);
  }

  along(axes) {
    return axes.map((axis, i) => new KernelMoments(axis, this.cells.nodes[i], this.variances[i]));
  }

  /** The values, and for each factor the ends of their intervals, which are not a number where it is unknown. */
  read(axes, factors) {
    const along = this.along(axes);
    return this.of === "density" ? this.density(along, factors) : this.ratio(along, factors);
  }

  density(along, factors) {
    const { domain, counts, tables } = this.cells;
    const peak = domain.reduce((product, { min, max }, i) => product * Math.sqrt(2 * Math.PI * this.variances[i]) * (max - min), 1);
    const none = along.map(() => 0);
    const values = sumsOf(counts, along, none).map((sum) => sum / peak);
    const lengths = squaresOf(along, none).map((square) => Math.sqrt(tables.length * square) / peak);
    const end = (far) => values.map((value, i) => value + far * lengths[i]);
    return { values, ends: factors.map((factor) => ({ lower: end(-factor), upper: end(factor) })) };
  }

  ratio(along, factors) {
    const found = this.parts(along);
    const natural = (p) => this.low + this.width * p;
    const ends = factors.map((factor) => {
      const intervals = found.map((parts) => parts.interval(this.table, factor) ?? [NaN, NaN]);
      const [lower, upper] = [0, 1].map((end) => Float64Array.from(intervals, (interval) => natural(interval[end])));
      return { lower, upper };
    });
    return { values: Float64Array.from(found, (parts) => natural(parts.probabilities(this.cells)[this.table])), ends };
  }

  /** What is counted of every table at each point of a grid. */
  parts(along) {
    if (this.degree === "linear") return this.lines(along);
    if (this.degree === "naive" && along.length > 1) return this.naive(along);
    const none = along.map(() => 0);
    const sums = this.cells.tables.map((table) => sumsOf(table, along, none));
    return Array.from(squaresOf(along, none), (square, i) => new Parts(sums.map((sum) => sum[i]), sums.map(() => square)));
  }

  /** By lines: the weights of a kernel times `1 - slope . d`, `d` the distances to the nodes. */
  lines(along) {
    const { tables, counts, deviation } = this.cells;
    const none = along.map(() => 0);
    // Of so many factors the distance along each axis, the first of which is 1.
    const powers = (...factors) => none.map((_, axis) => factors.filter((factor) => factor === axis + 1).length);
    const each = (make) => along.map((_, a) => make(a + 1));
    const sums = tables.map((table) => sumsOf(table, along, none));
    const firsts = tables.map((table) => each((a) => sumsOf(table, along, powers(a))));
    const seconds = each((a) => each((b) => (b <= a ? sumsOf(counts, along, powers(a, b)) : null)));
    const ridges = each((a) => squaresOf(along, powers(a, a, a, a)).map((square) => 2 * deviation * Math.sqrt(square)));
    const known = new Map();
    const squares = (...factors) => {
      const wanted = powers(...factors);
      if (!known.has(`${wanted}`)) known.set(`${wanted}`, squaresOf(along, wanted));
      return known.get(`${wanted}`);
    };
    const affine = [0, ...each((a) => a)];
    const quadratic = affine.map((c) => affine.map((d) => squares(c, d)));
    let quartic = null;
    // A sum over the nodes of what is bent twice, as its weights are.
    const bent = (of, tilt, i) => {
      let sum = 0;
      for (let c = 0; c < tilt.length; c++) {
        for (let d = 0; d <= c; d++) sum += (c === d ? 1 : 2) * tilt[c] * tilt[d] * of[c][d][i];
      }
      return sum;
    };
    const ofAll = each((a) => firsts.slice(1).reduce((sum, first) => sum.map((x, i) => x + first[a - 1][i]), firsts[0][a - 1]));
    return Array.from(sums[0], (_, i) => {
      const matrix = seconds.map((row, a) => row.map((_, b) => (row[b] ?? seconds[b][a])[i] + (a === b ? ridges[a][i] : 0)));
      const slope = solved(matrix, ofAll.map((first) => first[i])) ?? none;
      const tilt = [1, ...slope.map((beta) => -beta)];
      const tilted = tables.map((_, t) => slope.reduce((sum, beta, a) => sum - beta * firsts[t][a][i], sums[t][i]));
      return new LineParts(tilted, Math.max(bent(quadratic, tilt, i), 0), () => {
        quartic ??= affine.map((a) => affine.map((b) => quadratic.map((row, c) => row.map((_, d) => squares(a, b, c, d)))));
        const slopes = tables.map((_, t) => solved(matrix, firsts[t].map((first) => first[i])) ?? none);
        return { slopes, slope, moments: affine.map((a) => affine.map((b) => (b <= a ? bent(quartic[a][b], tilt, i) : 0))) };
      });
    });
  }

  /** By naive Bayes: of each class the product over the axes of what is counted along each, by its records for each axis but one. */
  naive(along) {
    const { tables, count, deviation } = this.cells;
    const axes = along.length;
    const one = deviation / Math.sqrt(tables.length);
    const alone = (a) => along.map((axis, i) => (i === a ? axis.times(0) : axis.ones()));
    const factors = tables.map((table) => along.map((_, a) => onGrid(table, alone(a))));
    // The inner products of the kernels along two axes; the last "axis" has none, and counts all.
    const every = [...along, null];
    const inner = every.map((_, a) => every.map((_, b) => productOf(along.map((axis, i) =>
      a === i && b === i ? axis.squares(0) : a === i || b === i ? axis.sums() : axis.axis.map(() => axis.nodes.length)))));
    const records = tables.map((table) => sumOf(table));
    const least = records.map((sum) => Math.max(sum, one * Math.sqrt(count)));
    const leastDivisor = Math.min(...records) / Math.sqrt(count);
    return Array.from(factors[0][0], (_, i) => {
      const of = factors.map((list, t) => {
        const here = list.map((factor) => factor[i]);
        const divisor = least[t] ** (axes - 1);
        const sum = (here.some((x) => x < 0) ? -1 : 1) * Math.abs(here.reduce((product, x) => product * x, 1)) / divisor;
        // Beside each factor the others, as large as they and their noise probably are.
        const sizes = here.map((x, a) => Math.hypot(x, one * Math.sqrt(inner[a][a][i])));
        const by = sizes.map((_, a) => sizes.reduce((product, size, b) => (a === b ? product : product * size), 1) / divisor);
        by.push((-(axes - 1) * sum) / least[t]);
        return { sum, square: by.reduce((all, x, a) => all + x * by.reduce((some, y, b) => some + y * inner[a][b][i], 0), 0) };
      });
      return new Parts(of.map(({ sum }) => sum), of.map(({ square }) => Math.max(square, 0)), leastDivisor);
    });
  }
}

/** The kernels of an axis times powers of the distance to each node, as matrices with one column per point. */
class KernelMoments {
  #moments;

  constructor(axis, nodes, variance) {
    Object.assign(this, { axis, nodes });
    this.#moments = [matrixOf(axis.length, nodes.length, (i, j) => Math.exp(-((nodes[j] - axis[i]) ** 2) / (2 * variance)))];
  }

  times(power) {
    const { axis, nodes } = this;
    if (!this.#moments[power]) {
      const { entries } = this.times(power - 1);
      this.#moments[power] = matrixOf(axis.length, nodes.length, (i, j) => entries[j * axis.length + i] * (nodes[j] - axis[i]));
    }
    return this.#moments[power];
  }

  /** 1 for every node. */
  ones() {
    return matrixOf(this.axis.length, this.nodes.length, () => 1);
  }

  /** The sums over the nodes of the kernels. */
  sums() {
    const { entries } = this.times(0);
    return this.axis.map((_, i) => this.nodes.reduce((sum, _, j) => sum + entries[j * this.axis.length + i], 0));
  }

  /** The sums over the nodes of the squared kernels times a power of the distance. */
  squares(power) {
    const [a, b] = [this.times(Math.floor(power / 2)).entries, this.times(Math.ceil(power / 2)).entries];
    const count = this.axis.length;
    return this.axis.map((_, i) => {
      let sum = 0;
      for (let at = i; at < a.length; at += count) sum += a[at] * b[at];
      return sum;
    });
  }
}

const sumsOf = (table, along, powers) => onGrid(table, along.map((axis, i) => axis.times(powers[i])));
const squaresOf = (along, powers) => productOf(along.map((axis, i) => axis.squares(powers[i])));

/** The solution of a symmetric system of equations; null if its matrix is not positive definite. */
function solved(matrix, right) {
  const factor = [];
  for (const row of matrix) {
    const next = forward(factor, row);
    const pivot = row[factor.length] - dot(next, next);
    if (!(pivot > 0)) return null;
    factor.push(extended(next, Math.sqrt(pivot)));
  }
  return backward(factor, forward(factor, right));
}

/** The steps of a distribution function that quantiles are read from. */
const PARTS = 1000;

/** Everything that can be read from tables of cells, each with its intervals. Made by `Synopsis.tables`. */
export class Tables {
  #domain;
  #cells;

  constructor(meta, cells) {
    this.#domain = meta.domain;
    this.#cells = cells;
  }

  /** The names of the tables: classes, or the two sides of a threshold; of a number and without a label none. */
  get names() {
    const { kind, values } = this.#cells.label;
    return kind === "classes" ? values.map(String) : kind === "above" ? ["below", "above"] : [];
  }

  /** The finest bandwidths of a reading, in natural units, one for each axis. */
  get finest() {
    return this.#cells.finest;
  }

  /** Records per unit of the axes at a point. `options` may have `bandwidths`, in natural units. */
  density(point, options = {}) {
    return this.#estimate(point, { ...options, function: "density" });
  }

  /** The expected label at a point. `options` may have `bandwidths` and the `degree`, "linear" or "constant". */
  expected(point, options = {}) {
    return this.#estimate(point, { ...options, function: "expected" });
  }

  /** The probability of every table at a point; options as for `expected`, by default "constant"; of classes also "naive". */
  probabilities(point, options = {}) {
    return this.#cells.tables.map((_, table) => this.#estimate(point, { ...options, function: "probability", table }));
  }

  /** The most probable class at a point, within the simultaneous band. */
  classify(point, { bandwidths, degree } = {}) {
    const probabilities = this.probabilities(point, { bandwidths, degree });
    const form = new TableFunction(this.#cells, { function: "probability", bandwidths, degree });
    const [parts] = form.parts(form.along(oneOf(this.#domain, point)));
    return this.#class(probabilities, parts, this.#cells.factors.simultaneous);
  }

  /**
   * How much denser the records of one class lie at a point than those of another, each divided by the number of its records; `of` and
   * `over` are the indices of their tables, and `options` may have `bandwidths`. The value is null where there are no records to divide by.
   */
  densityRatio(point, of, over, { bandwidths } = {}) {
    const { kind, tables: count } = this.#cells.label;
    if (kind !== "classes" && kind !== "above") throw new SynopsisError("its label has no classes: a ratio of densities is of two");
    if (![of, over].every((t) => isWhole(t, 0, count - 1)) || of === over) throw new SynopsisError(`${of} and ${over} are not two of its tables`);
    const form = new TableFunction(this.#cells, { function: "density", bandwidths });
    const weights = form.along(oneOf(this.#domain, point)).map((axis) => axis.times(0).entries);
    const [once, square, nodes] = [productOf(weights.map((axis) => [sumOf(axis)]))[0], lengthOf(weights) ** 2, this.#cells.count];
    const [[a, n], [b, m]] = [of, over].map((t) => [product(this.#cells.tables[t], weights), sumOf(this.#cells.tables[t])]);
    const variances = [m * m * square + a * a * nodes, (m * b + a * n) * once, b * b * nodes + n * n * square];
    const within = (factor) => {
      const isKnown = b > factor * Math.sqrt(square) && Math.min(n, m) > factor * Math.sqrt(nodes);
      return (isKnown && fieller(a * m, b * n, factor, variances)?.map((ratio) => Math.max(ratio, 0))) || null;
    };
    const { pointwise, simultaneous } = this.#cells.factors;
    const value = Math.min(b, n, m) > 0 ? Math.max((a * m) / (b * n), 0) : null;
    return { value, pointwise: within(pointwise), simultaneous: within(simultaneous) };
  }

  /** A function on the product grid of `axes`, row-major, with both intervals; their ends are not a number where they are unknown. */
  on(axes, choice = {}) {
    const form = new TableFunction(this.#cells, choice);
    const unit = unitAxes(this.#domain, axes);
    const { pointwise, simultaneous } = this.#cells.factors;
    const { values, ends: [alone, all] } = form.read(unit, [pointwise, simultaneous]);
    return { values, pointwise: alone, simultaneous: all };
  }

  /** The number of records in a range: `[low, high]` for each axis, or null for all of it. */
  count(range) {
    const { tables, counts, factors } = this.#cells;
    const weights = this.#inside(range);
    const half = factors.pointwise * Math.sqrt(tables.length) * lengthOf(weights);
    const value = product(counts, weights);
    return { value, pointwise: [value - half, value + half] };
  }

  /** The share of all records in a range. */
  share(range) {
    const { tables, counts, records, count, factors } = this.#cells;
    const weights = this.#inside(range);
    const part = product(counts, weights);
    const noise = factors.pointwise * Math.sqrt(tables.length);
    const sum = weights.reduce((product, of) => product * sumOf(of), 1);
    const ends = fieller(part, records, noise, [lengthOf(weights) ** 2, sum, count]);
    const pointwise = ends?.map((end) => Math.min(Math.max(end, 0), 1)) ?? null;
    return { value: records > 0 ? Math.min(Math.max(part / records, 0), 1) : null, pointwise };
  }

  /** The probability of every table among the records in a range. */
  proportions(range) {
    if (!this.#cells.label.kind) throw new SynopsisError("it has no label: it has no probabilities");
    const parts = this.#partsIn(range);
    return parts.probabilities(this.#cells).map((value, t) => ({ value, pointwise: parts.interval(t, this.#cells.factors.pointwise) }));
  }

  /** The mean label of the records in a range. */
  mean(range) {
    const { kind, min, max } = this.#cells.label;
    if (kind !== "number") throw new SynopsisError("its label is not a number: it has no mean");
    const { value, pointwise } = this.proportions(range)[1];
    const natural = (p) => min + (max - min) * p;
    return { value: natural(value), pointwise: pointwise?.map(natural) ?? null };
  }

  /** The most frequent class in a range. */
  classifyIn(range) {
    return this.#class(this.proportions(range), this.#partsIn(range), this.#cells.factors.pointwise);
  }

  /** The place below which a part of all records lies, for example 1/2 for the median; one axis only. */
  quantile(part) {
    const [{ min, max }] = this.#domain;
    if (this.#domain.length !== 1) throw new SynopsisError(`a quantile needs one axis, not ${this.#domain.length}`);
    if (!(part >= 0 && part <= 1)) throw new SynopsisError(`the part ${part} is not from 0 to 1`);
    const { tables, records, count, factors } = this.#cells;
    const natural = (k) => min + ((max - min) * k) / PARTS;
    const steps = this.#distribution();
    const noise = factors.pointwise * Math.sqrt(tables.length);
    const apart = steps.map(({ below }) => below - part * records);
    const allowed = steps.map(({ sum, square }) => noise * Math.sqrt(Math.max(square - 2 * part * sum + part * part * count, 0)));
    // Everything but what is certainly below and certainly above.
    const first = apart.findIndex((d, k) => d >= -allowed[k]);
    let last = PARTS;
    while (last >= 0 && apart[last] > allowed[last]) last--;
    const ends = [first < 0 ? PARTS : Math.max(first - 1, 0), Math.min(last + 1, PARTS)];
    if (!(records > 0)) return { value: null, pointwise: ends.map(natural) };
    const rising = isotonic(steps.map(({ below }) => below)).map((below) => below / records);
    const at = rising.findIndex((below) => below >= part);
    const k = at < 0 ? PARTS : at === 0 ? 0 : at - 1 + (part - rising[at - 1]) / (rising[at] - rising[at - 1]);
    return { value: natural(k), pointwise: ends.map(natural) };
  }

  /** The noisy number of records below each step, and the sums of the weights and their squares. */
  #distribution() {
    const cells = this.#cells;
    return (cells.distribution ??= Array.from({ length: PARTS + 1 }, (_, k) => {
      const below = cells.below(0, k / PARTS);
      return { below: dot(cells.counts, below), sum: sumOf(below), square: dot(below, below) };
    }));
  }

  #inside(range) {
    const sides = typeof range?.[0] === "number" ? [range] : range;
    if (sides?.length !== this.#domain.length || sides.some((side) => side !== null && side?.length !== 2)) {
      throw new SynopsisError(`a range of this synopsis has ${this.#domain.length} pairs of bounds`);
    }
    const unit = this.#domain.map((axis, i) => sides[i]?.map((bound) => toUnit(axis, bound)) ?? [0, 1]);
    if (unit.some(([low, high]) => low > high)) throw new SynopsisError("a range ends before it begins");
    return this.#cells.inside(unit);
  }

  #partsIn(range) {
    const weights = this.#inside(range);
    const sums = this.#cells.tables.map((table) => product(table, weights));
    return new Parts(sums, sums.map(() => lengthOf(weights) ** 2));
  }

  #estimate(point, choice) {
    const form = new TableFunction(this.#cells, choice);
    const axes = oneOf(this.#domain, point);
    const { pointwise, simultaneous } = this.#cells.factors;
    const { values: [value], ends } = form.read(axes, [pointwise, simultaneous]);
    const [alone, all] = ends.map(({ lower, upper }) => (Number.isNaN(lower[0]) ? null : [lower[0], upper[0]]));
    return { value, pointwise: alone, simultaneous: all };
  }

  /** The most probable, if its sum is larger than that of the next by more than the noise of their difference. */
  #class(probabilities, parts, factor) {
    if (!this.names.length) throw new SynopsisError("its label is a number: it has no classes");
    const [best, next] = probabilities.map((_, t) => t).sort((a, b) => probabilities[b].value - probabilities[a].value);
    const isApart = parts.isApart(best, next, factor);
    return { table: isApart ? best : null, says: isApart ? this.names[best] : "too close to call", probabilities };
  }
}

/** The length of weights that are a product over the axes. */
const lengthOf = (weights) => weights.reduce((length, of) => length * root(of), 1);

/** A class of two as the side of a threshold. */
function sideOf({ says, probabilities: [, { value, simultaneous }] }) {
  const [lower, upper] = simultaneous ?? [0, 1];
  return { score: value, lower, upper, says };
}

// ---- Tables by key --------------------------------------------------------------------------------------------------

/** The unit of the noise of a value: each column of a table by key has its own. */
function unitOf({ basis }, i) {
  if (basis.keys === undefined) return 1;
  // Numbers of units follow the columns.
  return (basis.keys.columns[Math.floor(i / keysOf(basis).length)] ?? basis.keys.units).unit;
}

/** The column of a quantile: "p50" for the median. */
function quantileName(part) {
  const thousandths = Math.round(1000 * part);
  const tenth = thousandths % 10;
  return `p${Math.floor(thousandths / 10)}${tenth ? `.${tenth}` : ""}`;
}

/** Quantiles from noisy counts of places and of blocks of them: clients/FORMAT.md, "Quantiles". */
class Ranks {
  #grid;
  #unit;
  #noise;

  /** `unit` is the half-width of noise with weights of length 1. */
  constructor(grid, unit) {
    this.#grid = grid;
    this.#unit = unit;
    this.#noise = new Map();
  }

  /** Numbers of values up to each place, by least squares. */
  upTo(counts) {
    const { places, block } = this.#grid;
    const blocks = isWhole(block, 1, places) ? Math.ceil(places / block) : 0;
    const sums = new Float64Array(places);
    let before = 0;
    const size = blocks ? block : places;
    for (let from = 0, at = 0; from < places; from += size, at++) {
      const to = Math.min(from + size, places);
      let each = 0;
      if (blocks) {
        let sum = 0;
        for (let place = from; place < to; place++) sum += counts[blocks + place];
        each = (counts[at] - sum) / (to - from + 1);
      }
      for (let place = from; place < to; place++) sums[place] = before += counts[blocks + place] + each;
    }
    return sums;
  }

  /** The half-widths of (values up to a place) - part x (all values). */
  halfWidths(part) {
    if (!this.#noise.has(part)) {
      const widths = Float64Array.from({ length: this.#grid.places }, (_, place) => this.#unit * this.#length(place, part));
      this.#noise.set(part, widths);
    }
    return this.#noise.get(part);
  }

  #length(place, part) {
    const { places, block } = this.#grid;
    const upTo = place + 1;
    if (!isWhole(block, 1, places)) return Math.sqrt(upTo * (1 - part) ** 2 + (places - upTo) * part ** 2);
    let square = 0;
    for (let from = 0; from < places; from += block) {
      const k = Math.min(from + block, places) - from;
      const counted = Math.min(Math.max(upTo - from, 0), k);
      const ofBlock = (counted - part * k) ** 2;
      square += (ofBlock + counted * (k + 1 - counted - part) ** 2 + (k - counted) * (counted + part) ** 2) / (k + 1) ** 2;
    }
    return Math.sqrt(square);
  }

  /** All values, give or take their noise. */
  all(upTo) {
    const value = upTo[upTo.length - 1];
    const halfWidth = this.halfWidths(0)[upTo.length - 1];
    return { value, pointwise: [value - halfWidth, value + halfWidth] };
  }

  /** The place of a quantile, and those of its interval. */
  quantile(upTo, part) {
    const { value: all, pointwise: [least] } = this.all(upTo);
    const last = upTo.length - 1;
    const widths = this.halfWidths(part);
    let lower = upTo.findIndex((sum, place) => sum - part * all >= -widths[place]);
    if (lower < 0) lower = last;
    const below = upTo.findLastIndex((sum, place) => sum - part * all <= widths[place]);
    const upper = Math.max(Math.min(below + 1, last), lower);
    let place = rising(upTo).findIndex((sum) => sum >= part * all);
    if (place < 0) place = last;
    const value = all > 0 ? Math.min(Math.max(place, lower), upper) : null;
    return { value, pointwise: least > 0 ? [lower, upper] : null };
  }
}

/** The nearest sequence, in least squares, that never falls. */
function rising(sums) {
  const means = [];
  const sizes = [];
  for (const sum of sums) {
    means.push(sum);
    sizes.push(1);
    while (means.length > 1 && means.at(-2) > means.at(-1)) {
      const [mean, size] = [means.pop(), sizes.pop()];
      const both = sizes.at(-1) + size;
      means[means.length - 1] = (means.at(-1) * sizes.at(-1) + mean * size) / both;
      sizes[sizes.length - 1] = both;
    }
  }
  return means.flatMap((mean, i) => Array(sizes[i]).fill(mean));
}

/** The share of a number in the sum of so many, each with noise of this half-width. */
function shareOf(part, whole, halfWidth, count) {
  const inside = (share) => Math.min(Math.max(share, 0), 1);
  return { value: whole > 0 ? inside(part / whole) : null, pointwise: fieller(part, whole, halfWidth, [1, 1, count])?.map(inside) ?? null };
}

/** The share of all pairs of a unit and a key that a cap drops, wherever in its bin a unit is; one of the bins ends at the cap. */
function droppedShare(bins, units, cap, halfWidth) {
  const inside = (share, [least, most] = [0, 1]) => Math.min(Math.max(share, least), most);
  const middle = pairsOf(bins.map(({ least, most }) => Math.min((least + most) / 2, 1.25 * least)), units, cap);
  // The share falls with the keys of a unit that loses none, and rises with those of others.
  const lower = pairsOf(bins.map(({ least, most }) => (most <= cap ? most : least)), units, cap);
  const upper = pairsOf(bins.map(({ least, most }) => (most <= cap ? least : most)), units, cap);
  const [low, high] = [lower, upper].map(({ dropped, all, squares }) => fieller(dropped, all, halfWidth, squares));
  // A number of units below 0 turns the two around.
  const pointwise = low && high ? [inside(Math.min(low[0], high[0])), inside(Math.max(low[1], high[1]))] : null;
  if (!(middle.all > 0)) return { value: null, pointwise };
  // Noise of the last bin can put the value, which takes the middle there, outside of ends that take other numbers.
  return { value: inside(inside(middle.dropped / middle.all), pointwise ?? [0, 1]), pointwise };
}

/** Pairs of a unit and a key, all and those that a cap drops, with so many keys of each unit of a bin; and how the noise moves both. */
function pairsOf(keys, units, cap) {
  const lost = keys.map((number) => Math.max(number - cap, 0));
  return { dropped: dot(lost, units), all: dot(keys, units), squares: [dot(lost, lost), dot(lost, keys), dot(keys, keys)] };
}

/**
 * The law of the published count of a found key: `n G + X` given that it exceeds the threshold `K`, with `G` grid units for each of `n` users
 * or records and `X` discrete Laplace noise within `K`.
 */
class FoundLaw {
  #scale;
  #threshold;

  constructor(scale, threshold) {
    this.#scale = scale;
    this.#threshold = threshold;
  }

  /**
   * The true counts of a key that was found with this count, in users or records: 95 %, given that it is found. A count belongs to it
   * where neither the published count or more, nor that or less, has a probability below 2.5 %.
   */
  interval(published) {
    const noisy = Math.max(published / FOUND_UNIT, this.#threshold + 1);
    const least = Math.max(noisy - this.#threshold, 1 / FOUND_UNIT);
    const most = Math.max(noisy + this.#threshold, least);
    const isAbove = (exact) => this.#part(noisy - exact, this.#threshold, exact) >= (1 - LEVEL) / 2;
    const isBelow = (exact) => this.#part(-Infinity, noisy - exact, exact) >= (1 - LEVEL) / 2;
    return [FOUND_UNIT * endBetween(least, most, isAbove), FOUND_UNIT * Math.max(endBetween(most, least, isBelow), noisy)];
  }

  /** The probability of noise from `first` to `last`, of found keys with an exact count. */
  #part(first, last, exact) {
    const lowest = Math.max(this.#threshold + 1 - exact, -this.#threshold);
    return this.#weight(Math.max(first, lowest), last, lowest) / this.#weight(lowest, this.#threshold, lowest);
  }

  /** The sum of `exp(-abs(x) / s)` from `first` to `last`, up to a factor for each `lowest`. */
  #weight(first, last, lowest) {
    const nearest = Math.max(lowest, 0);
    const tail = (from, to) => Math.exp((nearest - from) / this.#scale) * -Math.expm1((from - to - 1) / this.#scale);
    if (first > 0) return tail(first, last);
    return last < 0 ? tail(-last, -first) : tail(0, last) + tail(1, -first);
  }
}

/** Where an interval ends, between a count that is outside and one that is inside, as near as floats can be. */
function endBetween(outside, inside, isInside) {
  for (;;) {
    const middle = outside + (inside - outside) / 2;
    if (!(middle !== outside && middle !== inside)) return outside;
    if (isInside(middle)) inside = middle;
    else outside = middle;
  }
}

/** Users, records, sums, means, variances and quantiles of each key, each with its interval. Made by `Synopsis.keyTable`. */
export class KeyTable {
  #noise;
  #range;
  #hasLeast;
  #units;
  #columns;
  #rows = new Map();
  #halfWidths = new Map();
  #ranks = null;
  #parts = new Map();
  #upTo = new Map();
  #told = null;
  #found = null;

  constructor({ basis: { keys: basis }, target: { counts }, noise, band, key_columns: columns }, values) {
    /** The keys, in the order of the rows. */
    this.keys = keysOf({ keys: basis });
    const count = this.keys.length;
    this.#noise = noise;
    this.#range = isObject(counts.value) ? [counts.value.min, counts.value.max] : [0, 1];
    this.#hasLeast = [counts.value, counts.per_user].some((bounds) => isObject(bounds) && bounds.min >= 0);
    this.#units = new Map(basis.columns.map(({ statistic, unit }) => [statisticName(statistic), unit]));
    const ofColumn = ({ statistic }, j) => [statisticName(statistic), values.subarray(j * count, (j + 1) * count)];
    this.#columns = new Map(basis.columns.map(ofColumn));
    if (isObject(basis.units)) {
      const { bins, unit } = basis.units;
      this.#told = { bins, unit, cap: counts.max_keys, units: values.subarray(count * basis.columns.length) };
    }
    const ofEnds = { low: ["records", "sum", "mean"], middle: ["variance", "deviation"], high: [] };
    let readings = [...this.#units.keys()].flatMap((statistic) => ofEnds[statistic] ?? [statistic]);
    if (isObject(counts.quantiles)) {
      const { grid, parts } = counts.quantiles;
      this.#ranks = new Ranks(grid, band.pointwise * basis.columns[0].unit);
      this.#parts = new Map(parts.map((part) => [quantileName(part), Math.round(1000 * part) / 1000]));
      readings = [...this.#parts.keys(), "values"];
      this.#range.push(grid.places - 1);
    }
    /** What is known of each key: some of "users", "records", "sum", "mean", "variance" and "deviation", or quantiles such as "p50" and "values". */
    this.readings = Object.freeze(readings);
    this.keys.forEach((key, i) => this.#rows.set(key, i));
    /** The columns that a key has a part of each of; none where keys are one column. */
    this.keyColumns = Object.freeze([...(columns ?? [])]);
    if (isObject(basis.found)) this.#found = { ...basis.found, rows: basis.found.rows ?? [], intervals: new Map(), law: new FoundLaw(noise.scale, basis.found.threshold) };
  }

  /** Whether its keys were found, and nobody listed them: then a key that is not here had fewer than about `absentBelow` users or records. */
  get isFound() {
    return this.#found !== null;
  }

  /** The keys that were found in this window: their counts are near the threshold, or above it, by selection. */
  get newKeys() {
    return this.keys.filter((_, i) => this.#found?.rows[i].is_new);
  }

  /** Whether a key was found in this window. */
  isNew(key) {
    return this.#found !== null && this.#rows.has(key) && this.#found.rows[this.#rows.get(key)].is_new;
  }

  /** Until when a found key is published, in every window that begins before, whatever its count is; null where keys are listed. */
  until(key) {
    if (!this.#rows.has(key)) throw this.#missing(key);
    return this.#found?.rows[this.#rows.get(key)].until ?? null;
  }

  /** A key of so many users or records is found with about even odds; null where keys are listed. */
  get threshold() {
    return this.#found && this.#found.threshold * FOUND_UNIT;
  }

  /** Whether there were too many different keys to look for new ones; then the table is empty. */
  get isOverfull() {
    return this.#found?.overfull?.is_overfull ?? false;
  }

  /**
   * A key that is not in the table had fewer than about so many users or records: the threshold, or of a full table its least count where
   * that is larger. Null where nobody looked for new ones, and where keys are listed.
   */
  get absentBelow() {
    if (!this.isFound || this.isOverfull) return null;
    const [counts] = this.#columns.values();
    const least = counts.length >= this.#found.most ? counts.reduce((one, other) => Math.min(one, other)) : 0;
    return Math.max(least, this.threshold);
  }

  #missing(key) {
    const below = this.absentBelow === null ? "" : `: it had fewer than about ${this.absentBelow.toFixed(this.absentBelow < 10 ? 1 : 0)} ${this.readings[0]}`;
    return new SynopsisError(`there is no key '${key}' in this table${below}`);
  }

  #checkHasAllKeys() {
    if (this.isFound) throw new SynopsisError("nobody listed its keys: those that were not found are missing in it, and would be in a sum");
  }

  /** The parts of a key by their columns: `{ country: "DE", device: "phone" }`; none where keys are one column. */
  parts(key) {
    return partsOf(key, this.keyColumns);
  }

  /** The readings of one key by their names: `{ users: { value, pointwise }, .. }`. */
  row(key) {
    if (!this.#rows.has(key)) throw this.#missing(key);
    const estimates = this.readings.map((reading) => [reading, this.#estimate(reading, this.#rows.get(key))]);
    return Object.fromEntries(estimates);
  }

  /** One reading of a key: `{ value, pointwise }`, null where the noise leaves it unknown. */
  estimate(key, reading) {
    if (!this.#rows.has(key)) throw this.#missing(key);
    if (!this.readings.includes(reading)) throw new SynopsisError(`this table has ${this.readings.join(", ")}, and no '${reading}'`);
    return this.#estimate(reading, this.#rows.get(key));
  }

  /**
   * The readings of every key, in the order of the rows: `{ key, users: { value, pointwise }, .. }`, with `parts` where keys have them, and
   * of found keys with `isNew` and `until`.
   */
  rows() {
    const parts = (key) => (this.keyColumns.length ? { parts: this.parts(key) } : {});
    const found = (key) => (this.isFound ? { isNew: this.isNew(key), until: this.until(key) } : {});
    return this.keys.map((key) => ({ key, ...parts(key), ...this.row(key), ...found(key) }));
  }

  /**
   * The `count` keys with the largest values of a reading, by default the first; those whose mean is unknown come last. The noise may
   * have made the last of them larger than the first one that is left out: then `isLastUnclear`.
   */
  top(count, by = this.readings[0]) {
    if (!this.readings.includes(by)) throw new SynopsisError(`this table has ${this.readings.join(", ")}, and no '${by}'`);
    if (!isWhole(count, 1, Infinity)) throw new SynopsisError(`the largest keys are one or more, not ${count}`);
    const all = this.keys.map((key, i) => ({ key, ...this.#estimate(by, i) }));
    const unknownLast = (one, other) => (one.pointwise === null) - (other.pointwise === null);
    const bySize = (one, other) => (one.pointwise && other.pointwise ? other.value - one.value : 0);
    all.sort((one, other) => unknownLast(one, other) || bySize(one, other));
    const isLastUnclear = count < all.length && !this.#isLarger(by, all[count - 1], all[count]);
    return { keys: all.slice(0, count).map(({ key }) => key), isLastUnclear };
  }

  /**
   * Sums over all keys with the same parts in these columns, over all keys where there are none:
   * `[{ parts, keys, records: { value, pointwise }, .. }]`, `keys` the number of keys that are summed. A mean and a variance are those of
   * all their records. Users do not add up: a user may be in several keys.
   */
  margin(...columns) {
    const readings = this.readings.filter((reading) => ["records", "sum", ...MOMENTS].includes(reading));
    this.#checkHasAllKeys();
    if (!readings.length) throw new SynopsisError("users and quantiles do not add up: a user may be in several keys");
    return this.#groups(columns).map(({ parts, rows }) => {
      const sums = readings.map((reading) => [reading, this.#sumOver(reading, rows)]);
      return { parts, keys: rows.length, ...Object.fromEntries(sums) };
    });
  }

  /**
   * The share of every key in all keys with the same parts in these columns, in all keys where there are none, in the order of the rows:
   * `[{ key, parts, records: { value, pointwise }, .. }]`, of records, and of sums of values none of which is below 0. A value is null where all
   * of them may be none, an interval (Fieller's) where the noise leaves it unknown.
   */
  shares(...columns) {
    const readings = this.readings.filter((reading) => reading === "records" || (reading === "sum" && this.#hasLeast));
    this.#checkHasAllKeys();
    if (!readings.length) throw new SynopsisError("it has no shares: only records have, and sums of values none of which is below 0");
    const found = this.keys.map((key) => ({ key, ...(this.keyColumns.length ? { parts: this.parts(key) } : {}) }));
    for (const { rows } of this.#groups(columns)) {
      for (const reading of readings) {
        const values = rows.map((i) => this.#estimate(reading, i).value);
        const whole = values.reduce((sum, value) => sum + value, 0);
        const halfWidth = this.#halfWidth(this.#weights(reading));
        rows.forEach((i, at) => (found[i][reading] = shareOf(values[at], whole, halfWidth, rows.length)));
      }
    }
    return found;
  }

  /** The share of all pairs of a unit and a key of it that `max_keys` drops: `{ value, pointwise }`; null where caps are not told. */
  get dropped() {
    if (!this.#told) return null;
    const { bins, unit, cap, units } = this.#told;
    return droppedShare(bins, units, cap, this.#halfWidth([unit]));
  }

  /**
   * The numbers of units with so many keys, before the cap, and the share that a cap of `most` keys would drop:
   * `[{ least, most, value, pointwise, dropped }, ..]`; null where caps are not told.
   */
  get units() {
    if (!this.#told) return null;
    const { bins, unit, units } = this.#told;
    const halfWidth = this.#halfWidth([unit]);
    const ofBin = ({ least, most }, i) => {
      const dropped = droppedShare(bins, units, most, halfWidth);
      return { least, most, value: units[i], pointwise: [units[i] - halfWidth, units[i] + halfWidth], dropped };
    };
    return bins.map(ofBin);
  }

  /** The rows of the keys with the same parts in these columns, in the order of the first of each. */
  #groups(columns) {
    const unknown = columns.find((column) => !this.keyColumns.includes(column));
    if (unknown !== undefined) {
      const known = this.keyColumns.length ? `, only ${this.keyColumns.join(", ")}` : ": they are one column";
      throw new SynopsisError(`its keys have no parts '${unknown}'${known}`);
    }
    const groups = new Map();
    this.keys.forEach((key, i) => {
      const all = this.parts(key);
      const parts = Object.fromEntries(columns.map((column) => [column, all[column]]));
      const name = JSON.stringify(columns.map((column) => all[column]));
      if (!groups.has(name)) groups.set(name, { parts, rows: [] });
      groups.get(name).rows.push(i);
    });
    return [...groups.values()];
  }

  #sumOver(reading, rows) {
    const weights = MOMENTS.includes(reading) ? [this.#units.get("low")] : this.#weights(reading);
    // Of more keys the law of their sum is as wide as that of so many, or less; the normal law is one whatever their number.
    const terms = this.#noise.law === "discrete gaussian" ? 1 : Math.min(rows.length, EXACT_TERMS);
    const halfWidth = Math.sqrt(rows.length / terms) * this.#halfWidth(Array(terms).fill(weights).flat());
    const total = (of) => rows.reduce((sum, i) => sum + of(i), 0);
    if (MOMENTS.includes(reading)) return this.#moment(reading, this.#places().map((column) => total((i) => column[i])), halfWidth);
    const value = total((i) => this.#estimate(reading, i).value);
    return { value, pointwise: [value - halfWidth, value + halfWidth] };
  }

  /** Whether the noise does not explain that one key has more than another. */
  #isLarger(reading, one, other) {
    // The noise of a new key is not symmetric.
    const isByInterval = MOMENTS.includes(reading) || this.#parts.has(reading) || this.isNew(one.key) || this.isNew(other.key);
    if (isByInterval) return one.pointwise !== null && other.pointwise !== null && one.pointwise[0] > other.pointwise[1];
    if (this.#ranks) return one.value - other.value > Math.SQRT1_2 * (one.pointwise[1] - one.pointwise[0]);
    const weights = this.#weights(reading);
    return one.value - other.value > this.#halfWidth([...weights, ...weights]);
  }

  /** Numbers of values of a key up to each place. */
  #valuesUpTo(i) {
    if (!this.#upTo.has(i)) this.#upTo.set(i, this.#ranks.upTo([...this.#columns.values()].map((column) => column[i])));
    return this.#upTo.get(i);
  }

  /**
   * The least value that `part` of the values of a key lie up to, any part above 0 and below 1: `{ value, pointwise }`, null where the noise
   * leaves it unknown. Only of tables that count ranges of a value.
   */
  quantile(key, part) {
    if (!this.#ranks) throw new SynopsisError("this table counts no ranges of a value: only those with quantiles do");
    if (!this.#rows.has(key)) throw this.#missing(key);
    if (!(part > 0 && part < 1)) throw new SynopsisError(`a quantile is of a part above 0 and below 1, not ${part}`);
    return this.#quantile(this.#rows.get(key), part);
  }

  #quantile(i, part) {
    const [min, max, last] = this.#range;
    const valueAt = (place) => (min * (last - place) + max * place) / last;
    const { value, pointwise } = this.#ranks.quantile(this.#valuesUpTo(i), part);
    return { value: value === null ? null : valueAt(value), pointwise: pointwise?.map(valueAt) ?? null };
  }

  #estimate(reading, i) {
    if (this.#parts.has(reading)) return this.#quantile(i, this.#parts.get(reading));
    if (this.#ranks) return this.#ranks.all(this.#valuesUpTo(i));
    const places = this.#places().map((column) => column[i]);
    if (MOMENTS.includes(reading)) return this.#moment(reading, places, this.#halfWidth([this.#units.get("low")]));
    const ofPlaces = () => this.#ofPlaces(reading).reduce((sum, weight, j) => sum + weight * places[j], 0);
    const value = this.#columns.has(reading) ? this.#columns.get(reading)[i] : ofPlaces();
    if (this.#found?.rows[i].is_new) return { value, pointwise: this.#foundInterval(value, i) };
    const halfWidth = this.#halfWidth(this.#weights(reading));
    return { value, pointwise: [value - halfWidth, value + halfWidth] };
  }

  /** That of a new key, which takes a while to find. */
  #foundInterval(value, i) {
    if (!this.#found.intervals.has(i)) this.#found.intervals.set(i, this.#found.law.interval(value));
    return this.#found.intervals.get(i);
  }

  /** Records at the lower end of the value, in the middle where there are variances, and at the upper end. */
  #places() {
    return ["low", "middle", "high"].filter((place) => this.#columns.has(place)).map((place) => this.#columns.get(place));
  }

  /** A mean or a variance of records at these places, each number of this half-width. */
  #moment(reading, places, halfWidth) {
    const [min, max] = this.#range;
    const { value, pointwise } = reading === "mean" ? placedMean(places, halfWidth) : placedVariance(places, halfWidth);
    const valueAt = {
      mean: (share) => min + (max - min) * share,
      variance: (square) => (max - min) ** 2 * square,
      deviation: (square) => (max - min) * Math.sqrt(square),
    }[reading];
    return { value: value === null ? null : valueAt(value), pointwise: pointwise?.map(valueAt) ?? null };
  }

  /** What records at each place count in a reading of all of them. */
  #ofPlaces(reading) {
    const [low, high] = reading === "sum" ? this.#range : [1, 1];
    return this.#units.has("middle") ? [low, (low + high) / 2, high] : [low, high];
  }

  /** The units of noise that a reading adds up: of its own column, or of records at all places. */
  #weights(reading) {
    if (this.#units.has(reading)) return [this.#units.get(reading)];
    return this.#ofPlaces(reading).map((weight) => weight * this.#units.get("low"));
  }

  #halfWidth(weights) {
    const name = weights.join();
    if (!this.#halfWidths.has(name)) {
      const { law, scale } = this.#noise;
      const { halfWidth } = remembered(JSON.stringify([law, scale, weights]), () => weightedNoise(this.#noise, weights));
      this.#halfWidths.set(name, halfWidth);
    }
    return this.#halfWidths.get(name);
  }
}

/** The mean of noisy records whose values lie from 0 to 1, as far apart as they can, and those that the noise allows (Fieller). */
const placedMean = (places, halfWidth) => clippedEstimate(placedMoment(places, places.map((_, j) => j / (places.length - 1)), halfWidth), 1);

/**
 * The variance of noisy records at 0, in the middle and at 1: the mean square distance from the mean that is estimated, less the square
 * of how far that is off, for which the interval of the mean says how much it may be.
 */
function placedVariance(places, halfWidth) {
  const { value: about, pointwise: means } = placedMean(places, halfWidth);
  if (about === null) return { value: null, pointwise: null };
  const { value, pointwise } = placedMoment(places, [about ** 2, about * (about - 1), (1 - about) ** 2], halfWidth);
  const farthest = means && Math.max(about - means[0], means[1] - about);
  const ends = pointwise && [pointwise[0] - farthest ** 2, pointwise[1]];
  return clippedEstimate({ value, pointwise: ends }, 0.25);
}

function placedMoment(places, weights, halfWidth) {
  const total = (of) => places.reduce((sum, records, j) => sum + of(weights[j], records), 0);
  const [part, records] = [total((weight, records) => weight * records), total((_, records) => records)];
  const variances = [total((weight) => weight ** 2), total((weight) => weight), places.length];
  return { value: records > 0 ? part / records : null, pointwise: fieller(part, records, halfWidth, variances) };
}

function clippedEstimate({ value, pointwise }, most) {
  const clipped = (moment) => Math.min(Math.max(moment, 0), most);
  return { value: value === null ? null : clipped(value), pointwise: pointwise?.map(clipped) ?? null };
}

// ---- Sums of smooth functions over the records, from their cosine moments -------------------------------------------

function answer({ meta, values }, { weights, perRecord = null }) {
  if (basisName(meta) !== "cosine") throw noMoments();
  if (weights?.length !== values.length) throw new SynopsisError(`a query of this synopsis has ${values.length} weights`);
  const noiseOf = (weights) => weightedNoise(meta.noise, weights);
  const sum = values.reduce((sum, moment, i) => sum + weights[i] * moment, 0);
  const records = values[0];
  const counted = Math.max(records, 0);
  const seen = { perRecord, isProved: false, records: counted, error: perRecord * counted };
  const truncation = perRecord === null ? null : seen;
  let mean = null;
  if (records > 3 * noiseOfNumber(meta.noise, values.length).halfWidth) {
    const value = sum / records;
    const ofMean = Float64Array.from(weights, (c, i) => (i ? c : c - value) / records);
    mean = { value, noise: noiseOf(ofMean) };
  }
  return { sum, noise: noiseOf(weights), truncation, mean };
}

/** The noise of the number of records. */
function noiseOfNumber({ law, scale }, length) {
  const weights = () => Float64Array.from({ length }, (_, i) => (i === 0 ? 1 : 0));
  return remembered(JSON.stringify([law, scale, length]), () => weightedNoise({ law, scale }, weights()));
}

/** What `compute` returns, once for each name: noise is the same in all windows of a release, and takes long. */
function remembered(name, compute) {
  if (!noises.has(name)) {
    if (noises.size > 100) noises.clear();
    noises.set(name, compute());
  }
  return noises.get(name);
}
const noises = new Map();

const noMoments = () => new SynopsisError("it holds a function of a point, not moments of the records: use evaluate");

/** The cosine expansion of `f`, and its largest error found on a grid. */
function queryWeights(meta, f, { jackson = null } = {}) {
  if (basisName(meta) !== "cosine") throw noMoments();
  const { domain, basis: { cosine: { frequencies: t } } } = meta;
  const at = (cosines) => {
    const point = domain.map(({ min, max }, i) => Math.min(Math.max(min + ((cosines[i] + 1) / 2) * (max - min), min), max));
    const value = f(...point);
    if (!Number.isFinite(value)) {
      const at = point.join(", ");
      throw new SynopsisError(`the question has no finite answer at [${at}]: it must be a number everywhere in the domain`);
    }
    return value;
  };
  const count = resolution(domain.length, t);
  const inner = Float64Array.from({ length: count }, (_, j) => (Math.PI * (j + 0.5)) / count);
  const transform = matrixOf(t, count, (m, j) => ((m ? 2 : 1) / count) * Math.cos(m * inner[j]));
  const weights = onGrid(sampled(domain.map(() => inner), at), domain.map(() => transform));
  if (jackson !== null) {
    if (!isWhole(jackson, 1, 32)) throw new SynopsisError(`the smoothness ${jackson} is not a whole number from 1 to 32`);
    const one = jacksonMultipliers(t, jackson);
    productOf(domain.map(() => one)).forEach((multiplier, i) => (weights[i] *= multiplier));
  }
  const even = Float64Array.from({ length: count + 1 }, (_, j) => (Math.PI * j) / count);
  const back = matrixOf(count + 1, t, (j, m) => Math.cos(m * even[j]));
  const approximate = onGrid(weights, domain.map(() => back));
  const exact = sampled(domain.map(() => even), at);
  const perRecord = exact.reduce((most, value, i) => Math.max(most, Math.abs(value - approximate[i])), 0);
  return { weights, perRecord };
}

/** The number of nodes per axis. */
function resolution(dimensions, t) {
  const [least, most] = [[1024, 2048], [128, 256], [24, 48]][dimensions - 1];
  return Math.max(Math.min(Math.max(4 * t, least), most), 2 * t);
}

/** A matrix as `turned` expects it: one column for each of `rows`. */
function matrixOf(rows, width, entry) {
  const entries = new Float64Array(rows * width);
  for (let column = 0; column < width; column++) {
    for (let row = 0; row < rows; row++) entries[column * rows + row] = entry(row, column);
  }
  return { columns: rows, entries };
}

/** A function of a point of [-1, 1]^d at the cosines of these angles. */
const sampled = (angles, f) => {
  const cosines = angles.map((axis) => axis.map(Math.cos));
  const point = new Array(angles.length);
  const values = new Float64Array(angles.reduce((count, axis) => count * axis.length, 1));
  for (let flat = 0; flat < values.length; flat++) {
    for (let axis = angles.length - 1, left = flat; axis >= 0; axis--) {
      point[axis] = cosines[axis][left % angles[axis].length];
      left = Math.floor(left / angles[axis].length);
    }
    values[flat] = f(point);
  }
  return values;
};

/** The factor of the paper's operator for each frequency, for functions of this smoothness. */
function jacksonMultipliers(t, smoothness) {
  const r = Math.ceil((smoothness + 3) / 2);
  const side = Math.floor((t - 1) / r) + 1;
  const triangle = Array.from({ length: 2 * side - 1 }, (_, j) => side - Math.abs(j - side + 1));
  let power = triangle;
  for (let i = 1; i < r; i++) {
    const longer = new Float64Array(power.length + triangle.length - 1);
    power.forEach((a, i) => triangle.forEach((b, j) => (longer[i + j] += a * b)));
    power = longer;
  }
  const middle = Math.floor(power.length / 2);
  const rho = (l) => (power[middle + l] ?? 0) / power[middle];
  const terms = smoothness + 1;
  return Float64Array.from({ length: t }, (_, n) => {
    let sum = 0;
    for (let k = 1; k <= terms; k++) sum += (k % 2 ? 1 : -1) * choose(terms, k) * rho(k * n);
    return sum;
  });
}

/** Integration steps: a full turn of the phase covers this many standard deviations; and their maximum number. */
const DEVIATIONS = 80;
const STEP = Math.PI / DEVIATIONS;
const MOST_STEPS = 40_000;

/** The noise of `sum_i w_i z_i`: its deviation, and its 95 % half-width. */
function weightedNoise({ law, scale }, weights) {
  const length = Math.sqrt(weights.reduce((sum, w) => sum + w * w, 0));
  if (length === 0) return { deviation: 0, level: LEVEL, halfWidth: 0 };
  const { deviation, exceeds } = lawOfSum(law, weights, length);
  const halfWidth = scale * deviation * quantile(exceeds) * 1.001;
  return { deviation: scale * deviation, level: LEVEL, halfWidth };
}

/** The deviation of a weighted sum of noise of scale 1, and its tail probability at multiples of that deviation. */
function lawOfSum(law, weights, length) {
  const largest = weights.reduce((most, w) => Math.max(most, Math.abs(w)), 0);
  // Weights far below the largest are omitted from the shape of the distribution, not from its width.
  const few = Float64Array.from(weights, Math.abs).filter((w) => w >= 1e-6 * largest);
  const count = weights.length;
  switch (law) {
    case "discrete laplace": {
      const deviation = Math.sqrt(2) * length;
      const one = (u) => Math.exp(-few.reduce((sum, w) => sum + Math.log1p(((w * u) / deviation) ** 2), 0));
      return { deviation, exceeds: symmetric(one, one) };
    }
    // Uniform in a cube whose radius has a Gamma distribution of shape N + 1.
    case "discrete cube": {
      const uniform = length / Math.sqrt(3);
      const sinc = (x) => (x === 0 ? 1 : Math.sin(x) / x);
      const one = (u) => few.reduce((product, w) => product * sinc((w * u) / uniform), 1);
      const envelope = (u) => few.reduce((product, w) => product * Math.min(uniform / (w * u), 1), 1);
      return cubed(count, uniform, symmetric(one, envelope));
    }
    // On a sphere whose radius has a Gamma distribution of shape N: all directions are equivalent.
    case "rounded ball": {
      const one = (u) => Math.exp((-(count + 1) / 2) * Math.log1p((u * u) / (count + 1)));
      return { deviation: Math.sqrt(count + 1) * length, exceeds: symmetric(one, one) };
    }
    default: return { deviation: length, exceeds: symmetric(bell, bell) };
  }
}

const bell = (u) => Math.exp((-u * u) / 2);

/** A distribution for one radius, mixed over the radii of a cube of `count` values. */
function cubed(count, uniform, exceeds) {
  const radius = Math.sqrt((count + 1) * (count + 2));
  const radii = gammaParts(count + 1);
  const mixed = (x) => radii.reduce((sum, [r, p]) => sum + p * exceeds((x * radius) / r), 0);
  return { deviation: uniform * radius, exceeds: mixed };
}

/** The smallest `x` that is exceeded with probability at most 5 %. */
function quantile(exceeds) {
  let [low, high] = [0, DEVIATIONS];
  while (high - low > 1e-5) {
    const middle = (low + high) / 2;
    if (exceeds(middle) > 1 - LEVEL) low = middle;
    else high = middle;
  }
  return high;
}

/** The two-sided tail of a symmetric distribution of variance 1 at `x`: its characteristic function, inverted. */
function symmetric(law, envelope) {
  const parts = [];
  for (let k = 0; k < MOST_STEPS; k++) {
    const u = (k + 0.5) * STEP;
    if (!(envelope(u) > 1e-8)) break;
    parts.push(law(u) / u);
  }
  return (x) => {
    if (x > DEVIATIONS) return 0;
    // Sines at even steps, each the previous one rotated by one step.
    const [turn, flat] = [Math.sin(STEP * x), Math.cos(STEP * x)];
    let [sine, cosine, sum] = [Math.sin((STEP * x) / 2), Math.cos((STEP * x) / 2), 0];
    for (let k = 0; k < parts.length; k++) {
      sum += parts[k] * sine;
      [sine, cosine] = [sine * flat + cosine * turn, cosine * flat - sine * turn];
    }
    return 1 - ((2 * STEP) / Math.PI) * sum;
  };
}

/** The Gamma distribution of a shape as a hundred values with their probabilities. */
function gammaParts(shape) {
  const [low, high] = [Math.max(shape - 7 * Math.sqrt(shape), 0), shape + 7 * Math.sqrt(shape) + 20];
  const mode = shape - 1;
  const weighed = Array.from({ length: 100 }, (_, k) => {
    const r = low + ((high - low) * (k + 0.5)) / 100;
    return [r, Math.exp((shape - 1) * Math.log(r / mode) - (r - mode))];
  });
  const mass = weighed.reduce((sum, [, p]) => sum + p, 0);
  return weighed.map(([r, p]) => [r, p / mass]);
}

/** At one point the noise is within this times the length of the influences with 95 % probability. */
const factorOf = (meta) => meta.band.pointwise ?? meta.noise.scale * pointwiseFactor(meta.noise.law, valueCount(meta));

/** The same for noise of scale 1, for synopses whose band does not state it. */
function pointwiseFactor(law, count) {
  if (law === "discrete laplace") return Math.log(20);
  if (law === "discrete gaussian") return 1.959963985;
  const alone = new Float64Array(count);
  alone[0] = 1;
  // In a cube of many small influences, in a ball of any.
  const sum = law === "discrete cube" ? cubed(count, Math.sqrt(1 / 3), symmetric(bell, bell)) : lawOfSum(law, alone, 1);
  return sum.deviation * quantile(sum.exceeds);
}
