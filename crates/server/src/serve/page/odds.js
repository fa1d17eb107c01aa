// The price of privacy as odds: how sure a guess can become that a unit is among the records.

import { parts } from "./price.js";

// What is computed is the rest to 1, which is never 0 and keeps its digits where the bound is close to 1.

/** What is left to 1 of the most that a probability of 1/2 can grow to under pure epsilon, `e^eps / (1 + e^eps)`. */
export const restAfterEpsilon = (epsilon) => 1 / (1 + Math.exp(epsilon));

/**
 * How often a guess between two equally likely cases is wrong at least. The total variation distance of two outcomes is at most
 * `(e^eps - 1 + 2 delta) / (e^eps + 1)` under (epsilon, delta) (Kairouz, Oh and Viswanath 2015); under rho at most
 * `sqrt(rho / 2)` (Pinsker) and `sqrt(1 - e^-rho)` (Bretagnolle and Huber), as rho bounds the divergence of Kullback and Leibler.
 */
export const wrongUnderDelta = (epsilon, delta) => (1 - delta) * restAfterEpsilon(epsilon);
export const wrongUnderRho = (rho) => Math.max(1 - Math.sqrt(rho / 2), Math.exp(-rho) / (1 + Math.sqrt(1 - Math.exp(-rho)))) / 2;

/** The most digits behind the point. */
const DIGITS = 8;

/**
 * A probability in percent, of which `rest` is left to 1. It is rounded up, so that a bound is never below what it bounds, to as many digits as
 * it takes to add no more than a fifth of the distance to 50 % and to 100 %; never 100 % of what is less.
 */
export function inPercent(rest) {
  if (rest <= 0) return "100\u00a0%";
  const left = 100 * rest;
  const precise = Math.min(50 - left, left) / 5;
  let digits = 1;
  while (digits < DIGITS && 10 ** -digits > precise) digits += 1;
  const factor = 10 ** digits;
  // Downwards past the error of what was computed.
  const least = Math.floor(left * factor * (1 - 2 ** -48)) / factor;
  return least > 0 ? `${(100 - least).toFixed(digits)}\u00a0%` : "almost 100\u00a0%";
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
    return `A guess ${guess}, right half of the time without these numbers, is right at most ${inPercent(wrongUnderRho(Number(rho)))} of the time with them.`;
  }
  if (delta !== undefined && Number(delta) > 0) {
    return `A guess ${guess}, right half of the time without these numbers, is right at most ${inPercent(wrongUnderDelta(Number(epsilon), Number(delta)))} of the time with them.`;
  }
  return `Someone who is 50\u00a0% sure ${cases} can become at most ${inPercent(restAfterEpsilon(Number(epsilon)))} sure, whatever else they know.`;
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
