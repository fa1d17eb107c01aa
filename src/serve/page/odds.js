// The price of privacy as odds: how sure a guess can become that a unit is among the records.

import { parts } from "./price.js";

/** The most that a probability of 1/2 can grow to under pure epsilon: `e^eps / (1 + e^eps)`. */
const afterEpsilon = (epsilon) => 1 / (1 + Math.exp(-epsilon));

/**
 * How often a guess between two equally likely cases can be right. The total variation distance of two outcomes is at most
 * `(e^eps - 1 + 2 delta) / (e^eps + 1)` under (epsilon, delta) (Kairouz, Oh and Viswanath 2015); under rho at most
 * `sqrt(rho / 2)` (Pinsker) and `sqrt(1 - e^-rho)` (Bretagnolle and Huber), as rho bounds the divergence of Kullback and Leibler.
 */
const rightUnderDelta = (epsilon, delta) => Math.min(1, afterEpsilon(epsilon) + delta / (1 + Math.exp(epsilon)));
const rightUnderRho = (rho) => (1 + Math.sqrt(Math.min(rho / 2, 1 - Math.exp(-rho), 1))) / 2;

/** A probability in percent; never 100 % of what is less. */
export function inPercent(p) {
  for (const digits of [0, 1, 2, 4]) {
    const text = (100 * p).toFixed(digits);
    if (Number(text) < 100) return `${text}\u00a0%`;
  }
  return "almost 100\u00a0%";
}

/** What a price means, in odds; undefined where there is no such bound, as of a declared plan. */
export function odds({ privacy: { definition, adjacency, unit } }, price) {
  const { epsilon, delta, rho } = parts(price);
  const isRandom = typeof definition === "object";
  if (isRandom || (epsilon === undefined && rho === undefined)) return undefined;
  const whose = unit === "record" ? "your record is included" : "your records are included";
  const [guess, cases] = adjacency === "replace_one"
    ? ["which of two values your record has", "between two values of your record"]
    : [`whether ${whose}`, `that ${whose}`];
  if (rho !== undefined) {
    return `A guess ${guess}, right half of the time without these numbers, is right at most ${inPercent(rightUnderRho(Number(rho)))} of the time with them.`;
  }
  if (delta !== undefined && Number(delta) > 0) {
    return `A guess ${guess}, right half of the time without these numbers, is right at most ${inPercent(rightUnderDelta(Number(epsilon), Number(delta)))} of the time with them.`;
  }
  return `Someone who is 50\u00a0% sure ${cases} can become at most ${inPercent(afterEpsilon(Number(epsilon)))} sure, whatever else they know.`;
}

/** The records of the example. */
const RECORDS = 10;

/** That a person may have more records than one; undefined where the unit is a user. */
export function ofPerson({ privacy: { unit, definition } }, price) {
  if (unit !== "record" || typeof definition === "object") return undefined;
  const { epsilon, delta, rho } = parts(price);
  const times = (x, factor) => String(Number((Number(x) * factor).toPrecision(6)));
  const head = `A record is not a person. A person with ${RECORDS} records here is protected by at most `;
  if (rho !== undefined) return `${head}${RECORDS ** 2} \u00d7 \u03c1 = ${times(rho, RECORDS ** 2)}.`;
  if (epsilon === undefined) return undefined;
  const all = `${head}${RECORDS} \u00d7 \u03b5 = ${times(epsilon, RECORDS)}`;
  return delta !== undefined && Number(delta) > 0 ? `${all}, and by a \u03b4 that grows still faster.` : `${all}.`;
}
