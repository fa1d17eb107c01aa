// The price of privacy: prices as in a synopsis, exact decimals, and the remaining budget.

import { instant, plural } from "./words.js";

/** The parts of a price by kind, as decimal strings. */
export function parts(price) {
  if (typeof price === "string") return { epsilon: price };
  return price ?? {};
}

/** "ε = 0.5", "ε = 1, δ = 1e-9", "ρ = 0.02", "1 of the planned windows". */
export function inSymbols(price) {
  const { epsilon, delta, rho, slots } = parts(price);
  if (slots !== undefined) return plural(Number(slots), "planned window");
  if (rho !== undefined) return `\u03c1 = ${rho}`;
  return delta === undefined ? `\u03b5 = ${epsilon}` : `\u03b5 = ${epsilon}, \u03b4 = ${power(delta)}`;
}

/** A small decimal in short, "1e-9". */
const power = (text) => (Number(text) > 0 && Number(text) < 1e-3 ? Number(text).toExponential() : text);

/** Decimals as integers in units of 10^-30, so that they compare exactly. */
const PLACES = 30;
function whole(text) {
  const match = /^(\d+)(?:\.(\d+))?$/.exec(String(text));
  if (!match || (match[2] ?? "").length > PLACES) return null;
  return BigInt(match[1] + (match[2] ?? "").padEnd(PLACES, "0"));
}

/** The fraction of the block that is spent, 0 to 1: the largest over its parts. */
export function spentPart({ spent, total }) {
  const [a, b] = [parts(spent), parts(total)];
  const shares = Object.keys(b).map((kind) => {
    const all = Number(b[kind]);
    return all > 0 ? Number(a[kind] ?? 0) / all : 0;
  });
  return Math.min(1, Math.max(0, ...shares));
}

/** Whether a block is spent, to the last decimal. A spent delta is not enough: there are prices without delta. */
function isEmpty({ spent, total }) {
  const [a, b] = [parts(spent), parts(total)];
  return ["epsilon", "rho", "slots"].some((kind) => {
    const [gone, all] = [whole(a[kind]), whole(b[kind])];
    return gone !== null && all !== null && gone >= all;
  });
}

const time = (text) => new Date(text).getTime();

/**
 * The block whose budget is certainly spent: nothing is left of it, and the next window, as long as the newest one, lies in it.
 * If something is left, a synopsis cannot tell: prices may fall, part may be a reserve, and other releases pay too.
 */
export function exhausted(meta) {
  const newest = meta.panes?.newest ?? meta.window;
  const [start, end] = [time(newest.start), time(newest.end)];
  return meta.privacy.blocks.find((block) =>
    time(block.start) <= end && 2 * end - start <= time(block.end) && isEmpty(block));
}

/**
 * Whether the budget belongs to this window alone: it has one block, which is the window or, for a running sum, its newest pane,
 * which pays once for all sums. Not if each window is computed from its records: then a pane pays in every one.
 */
export function isPerWindow({ window, panes, privacy: { blocks } }) {
  if (panes && panes.step === undefined) return false;
  const own = panes?.newest ?? window;
  return blocks.length === 1 && time(blocks[0].start) === time(own.start) && time(blocks[0].end) === time(own.end);
}

/** "ε = 0.3 a window, of 0.9 in all": the price, and the total of the unit if that is more. */
export function atMost(meta) {
  const { price } = meta.privacy;
  const total = shownBlock(meta)?.total;
  const [one, all] = [parts(price), parts(total)];
  const words = `${inSymbols(price)} a window`;
  if (total === undefined || inSymbols(total) === inSymbols(price)) return words;
  const kinds = Object.keys(all);
  return `${words}, of ${kinds.length === 1 && kinds[0] in one ? all[kinds[0]] : inSymbols(total)} in all`;
}

/** The block to show: of those charged, the one with the largest fraction spent, and the newest of equals. */
export function shownBlock(meta) {
  return [...meta.privacy.blocks].sort((a, b) => spentPart(a) - spentPart(b) || time(a.end) - time(b.end)).pop();
}

/** "spent 0.12 of 1 until 2 Jun 2013, 05:00 UTC". */
export function spentInWords(block) {
  const [a, b] = [parts(block.spent), parts(block.total)];
  const one = (kind) => {
    const symbol = { epsilon: "\u03b5 ", delta: "\u03b4 ", rho: "\u03c1 ", slots: "" }[kind] ?? "";
    return `${symbol}${power(a[kind] ?? "0")} of ${power(b[kind])}${kind === "slots" ? " windows" : ""}`;
  };
  return Object.keys(b).map(one).join(", ");
}

/** Until when a block lasts. That another one follows is not known: a share of a budget may have ended. */
export const untilInWords = (block) => {
  const end = instant(block.end);
  return end === "forever" ? "never renews" : `until ${end}`;
};

const DEFINITIONS = {
  "pure epsilon": ["pure differential privacy", "pure"],
  "epsilon-delta": ["(\u03b5, \u03b4)-differential privacy", "approximate"],
  "zero-concentrated": ["zero-concentrated differential privacy", "zero-concentrated"],
  gaussian: ["Gaussian differential privacy", "Gaussian"],
  "declared plan": ["(\u03b5, \u03b4)-differential privacy of a declared plan", "declared plan"],
};

/** Name and short name of the kind of differential privacy. Never just "private" if it is weaker. */
export function definition(meta) {
  const { definition: kind } = meta.privacy;
  if (typeof kind === "object" && kind.random) {
    return {
      name: `RANDOM differential privacy, \u03b3 = ${kind.random.gamma}: weaker than plain differential privacy`,
      short: "RANDOM differential privacy",
      random: kind.random,
    };
  }
  const [name, short] = DEFINITIONS[kind] ?? [String(kind), String(kind)];
  return { name, short };
}

/** Whose privacy it is. */
export function unit(meta) {
  const { unit: of } = meta.privacy;
  if (of === "record") return { name: "one record", short: "per record" };
  const { column, per, max_records_per_window: most } = of.user ?? {};
  const period = per === "ever" ? "forever" : `in ${per}`;
  return {
    name: `all records of one user (${column}) ${period}${most === undefined || most === null ? "" : `, at most ${plural(most, "record")} of them a window`}`,
    short: per === "ever" ? "per user, forever" : `per user and ${per}`,
  };
}

export function adjacency(meta) {
  const { adjacency: of } = meta.privacy;
  if (of === "add_remove") return "whether the unit is present at all (added or removed)";
  if (of === "replace_one") return "the values of a record that is known to be present (replaced by any others, valid or not)";
  return typeof of === "string" ? of : JSON.stringify(of);
}
