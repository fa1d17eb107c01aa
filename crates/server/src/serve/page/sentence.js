// Describes a plot in a sentence, as far as the band supports it.

import { ticks } from "./axes.js";
import { beyond, runs, sides } from "./grid.js";
import { beyondForm, border, drawnTo, kindOf, title } from "./kinds.js";
import { either, exact, giveOrTake, plusMinus, rounded, short, span } from "./words.js";

/** A coordinate, to a hundredth of the axis. */
export const placeOn = (axis, x) => exact(x, ticks(axis.min, axis.max, 100).step);

/** An interval; to a thousandth of the axis if a hundredth does not distinguish its ends. */
function interval(axis, { from, to }) {
  const fine = placeOn(axis, from) === placeOn(axis, to) ? (axis.max - axis.min) / 1000 : 0;
  return fine > 0 ? `${exact(from, fine)} to ${exact(to, fine)}` : `${placeOn(axis, from)} to ${placeOn(axis, to)}`;
}

/** The level of the band. */
export const percent = (meta) => `${Math.round(meta.band.level * 100)}\u00a0%`;

/** Release, key and window: "delay, key JFK, window 1 – 2 Jun 2013". */
export function heading(meta) {
  const key = meta.key === null || meta.key === undefined ? "" : `, key ${meta.key}`;
  return `${meta.release}${key}, window ${span(meta.window.start, meta.window.end)}`;
}

/**
 * Where the maximum may be: all points whose upper bound reaches the largest lower bound. The noise-free function has its
 * maximum there with the probability of the band.
 */
export function peak({ xs, values, wide }) {
  let [best, floor] = [0, -Infinity];
  values.forEach((value, i) => {
    if (value > values[best]) best = i;
    floor = Math.max(floor, value - wide[i]);
  });
  const marks = Array.from(values, (value, i) => (value + wide[i] >= floor ? 1 : 0));
  return { at: xs[best], value: values[best], half: wide[best], where: runs(xs, marks).filter((run) => run.mark === 1) };
}

function peakInWords(axis, now, noun) {
  const { at, value, half, where } = peak(now);
  const width = where.reduce((sum, { from, to }) => sum + to - from, 0);
  const all = axis.max - axis.min;
  if (width > 0.6 * all) return `The noise hides where it is largest.`;
  const places = where.length > 3 ? `within ${interval(axis, { from: where[0].from, to: where[where.length - 1].to })}`
    : either(where.map((run) => interval(axis, run)));
  return `${noun} is largest near ${axis.column} = ${placeOn(axis, at)}, at ${giveOrTake(value, half)}; the noise allows ${places}.`;
}

/** Where there may be no records to know the function by. */
const unknown = (now) => Array.from(now.wide, (half) => half === Infinity);

function unknownInWords(axis, now) {
  const own = runs(now.xs, unknown(now)).filter(({ mark }) => mark).map((run) => interval(axis, run));
  return own.length > 0 ? [`It is unknown, as there may be no records, for ${axis.column} ${either(own, "and")}.`] : [];
}

function sidesInWords(axis, now, { at, above, below }) {
  const hidden = unknown(now);
  const found = runs(now.xs, sides(now, at).map((mark, i) => (hidden[i] ? undefined : mark)));
  const say = (mark, words) => {
    const own = found.filter((run) => run.mark === mark).map((run) => interval(axis, run));
    return own.length > 0 ? `${words} for ${axis.column} ${either(own, "and")}` : "";
  };
  const all = [say(1, above), say(-1, below), say(0, "too close to call within the noise")].filter(Boolean);
  return `${all.join("; ")}.`;
}

/**
 * What to say if two windows differ by less than both their bands. A synopsis of a running sum shares records and noise
 * with the previous one, so less noise separates them: a difference beyond two half-widths is still real, and a smaller one
 * may be.
 */
export const noDifference = (meta) =>
  (meta.panes?.step === undefined ? "no difference beyond the noise" : "no difference beyond both bands, which share noise: a smaller difference may be real");

/** How this window differs from the previous one beyond the noise. */
export function change(meta, now, then) {
  const axis = meta.domain[0];
  const found = runs(now.xs, beyond(now, then)).filter(({ mark }) => mark !== 0);
  if (found.length === 0) {
    return meta.panes?.step === undefined ? "No difference from the previous window exceeds the noise."
      : "No difference from the previous window exceeds both bands; the two share records and noise, so a smaller difference may be real.";
  }
  const say = (mark, word) => {
    const own = found.filter((run) => run.mark === mark).map((run) => interval(axis, run));
    return own.length > 0 ? `${word} at ${axis.column} ${either(own, "and")}` : "";
  };
  const all = [say(1, "higher"), say(-1, "lower")].filter(Boolean);
  return `Beyond the noise, it is ${either(all, "and")} than in the previous window.`;
}

/** The reading that the curve is drawn by, where the synopsis says that it is closer than the published values. */
export const readingOf = ({ reading }) =>
  (reading ? `Read by "${reading}", which smooths the counts and leaves none below 0: the synopsis says that this is closer than the published values, which the band belongs to.` : undefined);

/**
 * What noise and form together stay within, where the form is known: the band holds in 19 of 20 windows, and so does the number of records
 * that the form is reckoned with.
 */
export function formInWords(form, wide) {
  if (form === null) return undefined;
  const most = wide.reduce((largest, half) => Math.max(largest, half), 0);
  return `The latter is at most ${plusMinus(form)}, wherever the records are: noise and form together stay within ${plusMinus(most + form)} in at least 9 of 10 windows.`;
}

/** What the band says of the noise, and what it does not say. */
function bandInWords(meta, { form, wide }) {
  const to = drawnTo(meta);
  const drawn = to === undefined ? "" : `, and that the fit is drawn towards ${short(to)} where records are few`;
  const found = [
    `The band covers the noise at all points simultaneously with ${percent(meta)} probability.`,
    `Not in it: ${beyondForm(meta)}${drawn}.`, formInWords(form, wide), readingOf(meta),
  ];
  return found.filter(Boolean);
}

/** The sentence for a curve; `apart` says why it cannot be compared. */
export function ofLine(meta, now, then, apart) {
  const axis = meta.domain[0];
  const parts = [`${title(meta)}: ${heading(meta)}.`];
  const sided = border(meta);
  if (sided) parts.push(`According to the band: ${sidesInWords(axis, now, sided)}`);
  if (kindOf(meta) === "density" || kindOf(meta) === "sum") parts.push(peakInWords(axis, now, "It"));
  if (kindOf(meta) === "regression" || kindOf(meta) === "share") parts.push(atEnds(axis, now));
  parts.push(...unknownInWords(axis, now));
  if (then) parts.push(change(meta, now, then));
  else if (apart) parts.push(`It is not compared with the previous window: ${apart}.`);
  parts.push(...bandInWords(meta, now));
  return parts.join(" ");
}

function atEnds(axis, { xs, values, wide }) {
  const at = [0, Math.floor(xs.length / 2), xs.length - 1];
  if (at.every((i) => wide[i] === Infinity)) return "It is hidden by the noise at both ends and in the middle.";
  const all = at.map((i) => `${giveOrTake(values[i], wide[i])} at ${axis.column} = ${placeOn(axis, xs[i])}`);
  return `It is ${either(all, "and")}.`;
}

/** On how much of a map it differs from the previous window beyond the noise. */
export function changeOnMap(meta, now, then) {
  const marks = beyond(now, then);
  const share = (mark) => Math.round((100 * marks.filter((own) => own === mark).length) / marks.length);
  const [higher, lower] = [share(1), share(-1)];
  if (!marks.some((mark) => mark !== 0)) return `Compared with the previous window there is ${noDifference(meta)}.`;
  return `Compared with the previous window it is higher on ${higher} % of the map and lower on ${lower} %; elsewhere there is ${noDifference(meta)}.`;
}

/** The sentence for a map; `then` is the previous window, if it can be compared. */
export function ofPlane(meta, plane, at, then) {
  const [x, y] = meta.domain;
  const third = meta.domain[2] ? `, at ${meta.domain[2].column} = ${placeOn(meta.domain[2], at[2])}` : "";
  const parts = [`${title(meta)}${third}: ${heading(meta)}.`];
  const sided = border(meta);
  const { xs, ys, values, wide } = plane;
  if (sided) {
    const marks = sides(plane, sided.at);
    const share = (mark) => Math.round((100 * marks.filter((own) => own === mark).length) / marks.length);
    const hidden = Math.round((100 * unknown(plane).filter(Boolean).length) / marks.length);
    parts.push(`According to the band: ${sided.above} on ${share(1)} % of the map, ${sided.below} on ${share(-1)} %, ${hidden > 0 ? `unknown on ${hidden} %, ` : ""}too close to call within the noise on ${100 - share(1) - share(-1) - hidden} %.`);
  } else {
    const floor = values.reduce((most, v, i) => Math.max(most, v - wide[i]), -Infinity);
    let [best, count] = [-1, 0];
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    values.forEach((v, i) => {
      if (wide[i] < Infinity && !(v <= values[best])) best = i;
      if (v + wide[i] < floor) return;
      const [px, py] = [xs[Math.floor(i / ys.length)], ys[i % ys.length]];
      count += 1;
      [left, right, low, high] = [Math.min(left, px), Math.max(right, px), Math.min(low, py), Math.max(high, py)];
    });
    const [px, py] = [xs[Math.floor(best / ys.length)], ys[best % ys.length]];
    parts.push(count > 0.6 * values.length
      ? "The noise hides where it is largest."
      : `It is largest near ${x.column} = ${placeOn(x, px)}, ${y.column} = ${placeOn(y, py)}, at ${giveOrTake(values[best], wide[best])}; the noise allows ${x.column} ${interval(x, { from: left, to: right })} and ${y.column} ${interval(y, { from: low, to: high })}.`);
  }
  if (then) parts.push(changeOnMap(meta, plane, then));
  parts.push(...bandInWords(meta, plane));
  return parts.join(" ");
}

/** The sentence for the answer to a query on moments. */
export function ofAnswer(meta, question, { sum, noise }) {
  return `${question}: ${rounded(sum, noise.half_width)}, noise within ${rounded(noise.half_width, noise.half_width)} with ${Math.round(noise.level * 100)} % probability. ${capital(heading(meta))}.`;
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
