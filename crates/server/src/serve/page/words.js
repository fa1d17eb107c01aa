// Formats numbers, times and prices for people.

/** The decimals of a number with noise `half`: two digits of the noise; negative if it rounds to tens or more. */
const decimalsOf = (half) => (half > 0 && Number.isFinite(half) ? 1 - Math.floor(Math.log10(half)) : 3);

const fixed = (x, decimals) => {
  const digits = Math.min(Math.max(decimals, 0), 20);
  const unit = 10 ** -Math.min(decimals, 0);
  const text = (Math.round(x / unit) * unit === 0 && digits === 0 ? 0 : Math.abs(x) < 1e21 && digits === 0
    ? Math.round(x / unit) * unit : x).toFixed(digits);
  // Zero has no sign; a minus sign is not a hyphen.
  return /^-0\.?0*$/.test(text) ? text.slice(1) : text.replace("-", "\u2212");
};

/** A number rounded to its noise: more digits would be meaningless. Very small and very large ones use powers of ten. */
export function rounded(x, half) {
  if (half === Infinity) return "unknown";
  const size = Math.max(Math.abs(x), half || 0);
  if (size > 0 && (size < 1e-4 || size >= 1e7)) return power(x, half);
  return fixed(x, decimalsOf(half));
}

function power(x, half) {
  const size = Math.max(Math.abs(x), half || 0);
  const exponent = Math.floor(Math.log10(size));
  const unit = 10 ** exponent;
  return `${fixed(x / unit, decimalsOf((half || size / 100) / unit))}\u00b710${superscript(exponent)}`;
}

const superscript = (n) => [...String(n)].map((c) => (c === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[Number(c)])).join("");

/** A number between bounds, "5.2, 4.4 to 6.3"; without bounds it is unknown. `unit` is 100 for percentages. */
export function within(x, ends, unit = 1) {
  if (x === null || !ends) return "unknown";
  const half = Math.max(unit * (ends[1] - ends[0]) / 2, 1e-9 * Math.abs(unit * x));
  const say = (y) => rounded(unit * y, half);
  return `${say(x)}${unit === 100 ? "\u00a0%" : ""}, ${say(ends[0])} to ${say(ends[1])}`;
}

/** Value and half-width, "5.2 ± 1.1", without a line break. */
export function giveOrTake(x, half) {
  if (half === Infinity) return "unknown";
  const size = Math.max(Math.abs(x), half);
  if (size > 0 && (size < 1e-4 || size >= 1e7)) return `${power(x, half)}\u00a0\u00b1\u00a0${power(half, half)}`;
  return `${fixed(x, decimalsOf(half))}\u00a0\u00b1\u00a0${fixed(half, decimalsOf(half))}`;
}

/** What noise and form stay within together, beside a number that stands with its noise; nothing where the form is not known. */
export const withForm = (half, form, unit = "") => (form === null ? "" : ` \u00b7 with what the form cannot follow ${plusMinus(half + form)}${unit}`);

/** A half-width alone. */
export const plusMinus = (half) => (half === Infinity ? "unknown" : `\u00b1\u00a0${rounded(half, half)}`);

/** A number without noise, such as a coordinate: as many decimals as `step` needs. */
export const exact = (x, step) => fixed(x, step > 0 ? Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)) : 6);

/** Short, to three digits, for scales. */
export function short(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-4 || size >= 1e7) {
    const exponent = Math.floor(Math.log10(size));
    return `${short(x / 10 ** exponent)}\u00b710${superscript(exponent)}`;
  }
  return String(Number(x.toPrecision(3))).replace("-", "\u2212");
}

/** A number that is no more than about itself: whole from ten on. */
export const nearly = (x) => x.toFixed(x < 10 ? 1 : 0);

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (n) => String(n).padStart(2, "0");

const day = (t) => `${t.getUTCDate()} ${MONTHS[t.getUTCMonth()]} ${t.getUTCFullYear()}`;
const hour = (t) => {
  const seconds = t.getUTCSeconds() || t.getUTCMilliseconds() ? `:${two(t.getUTCSeconds())}` : "";
  return `${two(t.getUTCHours())}:${two(t.getUTCMinutes())}${seconds}`;
};

/** "1 Jun 2013, 05:00 UTC"; a time without end is "forever". */
export function instant(time) {
  const t = new Date(time);
  if (Number.isNaN(t.getTime()) || t.getUTCFullYear() > 9000) return "forever";
  return `${day(t)}, ${hour(t)} UTC`;
}

/** The same, as short as a pill: without a time at midnight. */
export function shortInstant(time) {
  const t = new Date(time);
  return hour(t) === "00:00" ? day(t) : instant(time);
}

/** A window in words; the day appears once if both ends lie in it. */
export function span(start, end) {
  const [a, b] = [new Date(start), new Date(end)];
  if (a.getUTCFullYear() < 1000) return `until ${instant(end)}`;
  if (b.getUTCFullYear() > 9000) return `from ${instant(start)} on`;
  if (day(a) === day(b)) return `${day(a)}, ${hour(a)} \u2013 ${hour(b)} UTC`;
  if (hour(a) === hour(b)) {
    const first = a.getUTCFullYear() === b.getUTCFullYear() ? `${a.getUTCDate()} ${MONTHS[a.getUTCMonth()]}` : day(a);
    return `${first} \u2013 ${day(b)}, ${hour(a)} UTC`;
  }
  return `${day(a)}, ${hour(a)} \u2013 ${day(b)}, ${hour(b)} UTC`;
}

/** The start of a window, as short as `length` (ms) allows, for the labels of small plots. */
export function shortStart(time, length) {
  const t = new Date(time);
  const date = `${t.getUTCDate()} ${MONTHS[t.getUTCMonth()]}`;
  if (length >= 86_400_000) return date;
  return length < 60_000 ? `${two(t.getUTCHours())}:${two(t.getUTCMinutes())}:${two(t.getUTCSeconds())}` : hour(t);
}

const UNITS = [[86_400_000, "day"], [3_600_000, "hour"], [60_000, "minute"], [1000, "second"]];

/** A duration in its largest whole unit, "28 days", or to two digits. */
export function duration(ms) {
  for (const [unit, name] of UNITS) {
    if (ms >= unit && ms % unit === 0) return plural(ms / unit, name);
  }
  for (const [unit, name] of UNITS) {
    if (ms >= unit) return `${Number((ms / unit).toPrecision(2))} ${name}s`;
  }
  return `${Math.round(ms)} milliseconds`;
}

/** A rough duration: "3 minutes". */
export function roughly(ms) {
  for (const [unit, name] of [[365.25 * 86_400_000, "year"], ...UNITS]) if (ms >= unit) return plural(Math.floor(ms / unit), name);
  return "a moment";
}

export const plural = (n, name) => `${n} ${name}${n === 1 ? "" : "s"}`;

/** "a", "a or b", "a, b or c". */
export const either = (list, word = "or") =>
  (list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} ${word} ${list[list.length - 1]}`);
