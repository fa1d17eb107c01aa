// The value at the crosshair, or over the chosen range, window by window with its bands.

import { drawAxes, fitted, frame, roundOut, rule, sheet, theme } from "./axes.js";
import { byId, say } from "./dom.js";
import { point } from "./grid.js";
import { over } from "./integral.js";
import { border, hasPlot, kindOf, rangeOf, valueLabel } from "./kinds.js";
import { isCounted } from "./range.js";
import { records } from "./names.js";
import { capital, placeOn } from "./sentence.js";
import { stepOf } from "./store.js";
import { isTables } from "./views.js";
import { either, giveOrTake, plusMinus, shortStart, span, withForm } from "./words.js";

/** The most windows of the chart. */
const WINDOWS = 200;
/** The least pixels between labels of times. */
const APART = 66;

const time = (text) => new Date(text).getTime();
/** Where a window is drawn: itself, or of a longer sum its newest pane. */
const placeOf = ({ window, panes }) => panes?.newest ?? window;

export class OverTime {
  #room;
  #shown = [];
  #of = "at";

  /** `choose(entry)` is called with the window that is clicked, `changed()` when another value is wanted. */
  constructor(choose, changed) {
    const canvas = byId("overtime-chart");
    canvas.addEventListener("click", (event) => {
      const found = shownWindow(this.#room, this.#shown, event);
      if (found) choose(found.entry);
    });
    byId("overtime-of").addEventListener("change", (event) => {
      this.#of = event.target.value;
      changed();
    });
  }

  /** "at" the crosshair or over the "range". */
  get of() {
    return this.#of;
  }

  want(of) {
    this.#of = of === "range" ? "range" : "at";
  }

  draw(look) {
    const { series, entry, range, at } = look;
    const { meta } = entry;
    const home = byId("overtime");
    home.hidden = !hasPlot(meta) || series.length < 2;
    if (home.hidden) return;
    const isRange = this.#of === "range" && range !== undefined;
    const select = byId("overtime-of");
    select.options[1].disabled = range === undefined;
    select.value = isRange ? "range" : "at";
    const end = Math.max(series.indexOf(entry) + 1, Math.min(series.length, WINDOWS));
    const windows = series.slice(Math.max(0, end - WINDOWS), end);
    this.#shown = windows.map((one) => ({ entry: one, ...(isRange ? ofRange(one, range) : ofPoint(one, at)) }));
    const places = isRange
      ? `${meta.domain[range.axis].column} ${range.ends.map((x) => placeOn(meta.domain[range.axis], x)).join(" to ")}`
      : either(meta.domain.map((axis, i) => `${axis.column} = ${placeOn(axis, at[i])}`), "and");
    say(byId("overtime-place"), places);
    const label = isRange ? (isCounted(sourceMeta(entry)) ? records(meta) : `mean ${valueLabel(meta)}`) : valueLabel(meta);
    const own = this.#shown.find((one) => one.entry === entry);
    const canvas = byId("overtime-chart");
    this.#room = drawChart(canvas, this.#shown, entry, label, scaleOf(this.#shown, meta, !isRange));
    canvas.setAttribute("aria-label", `${capital(label)} at ${places} in ${this.#shown.length} windows, each with its band. In this window: ${giveOrTake(own.value, own.wide ?? own.narrow)}${withForm(own.wide ?? own.narrow, own.form)}.`);
    say(byId("overtime-hint"), hintOf(meta, this.#shown.length, own));
  }
}

const sourceMeta = (entry) => (entry.source ?? entry).meta;

function hintOf(meta, count, { wide, narrow, form }) {
  const level = `${Math.round(meta.band.level * 100)}\u00a0%`;
  const outside = Math.floor(count * (1 - meta.band.level) + 1e-9);
  const many = outside > 0 ? ` Of ${count} windows, about ${outside} may lie outside it.` : "";
  const shared = meta.panes?.step === undefined ? "" : " Neighbouring windows share records and noise.";
  return `The pointwise band holds with ${level} probability for one window.${many}${shared} ${form === null ? "" : `In this window noise and what the form cannot follow are within ${plusMinus((wide ?? narrow) + form)} in at least 9 of 10 windows. `}Click a window to go there.`;
}

function ofPoint({ synopsis }, at) {
  return point(synopsis, at);
}

function ofRange(entry, { axis, ends }) {
  const source = entry.source ?? entry;
  if (!isTables(source.meta)) {
    const { sum, mean } = over(source.synopsis, ends);
    const { value, half } = isCounted(source.meta) ? sum : mean;
    return { value, narrow: half, inner: [value - half, value + half], form: isCounted(source.meta) ? sum.form : null };
  }
  const { value, pointwise } = source.synopsis.tables().count(source.meta.domain.map((_, i) => (i === axis ? ends : null)));
  return { value, narrow: pointwise[1] - value, inner: pointwise, form: null };
}

function scaleOf(shown, meta, isPoint) {
  if (isPoint && rangeOf(meta)) return rangeOf(meta);
  const known = shown.filter(({ narrow }) => narrow < Infinity);
  if (known.length === 0) return [0, 1];
  const ends = known.map(({ wide, outer, inner }) => (wide < Infinity ? outer : inner));
  let [low, high] = [Math.min(...ends.map(([lower]) => lower)), Math.max(...ends.map(([, upper]) => upper))];
  if (!isPoint || kindOf(meta) === "density" || border(meta)) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  return roundOut(low, high > low ? high : low + 1);
}

/** The window of a chart that was clicked, or the nearest one. */
export function shownWindow(room, shown, event) {
  if (!room) return undefined;
  const at = room.toX(event.clientX - event.target.getBoundingClientRect().left);
  const far = ({ entry: { meta } }) => {
    const { start, end } = placeOf(meta);
    return Math.max(time(start) - at, at - time(end), 0);
  };
  return shown.reduce((best, one) => (best === undefined || far(one) < far(best) ? one : best), undefined);
}

/** Windows where they lie in time, on a scale of [min, max]: where one was withheld there is a gap. */
export function drawChart(canvas, shown, entry, label, [min, max]) {
  const { context, width, height } = sheet(canvas);
  if (width < 20 || height < 20) return null;
  const colours = theme();
  const places = shown.map((one) => placeOf(one.entry.meta));
  const x = { min: Math.min(...places.map(({ start }) => time(start))), max: Math.max(...places.map(({ end }) => time(end))), label: "" };
  const y = { min, max, label };
  const room = frame(context, width, height, x, y, colours);
  room.xTicks.values = [];
  drawAxes(context, room, x, y, colours);
  context.save();
  context.beginPath();
  context.rect(room.left, room.top, room.right - room.left, room.bottom - room.top);
  context.clip();
  const edges = places.map(({ start, end }) => [room.x(time(start)), Math.max(room.x(time(end)), room.x(time(start)) + 2)]);
  shown.forEach((one, i) => {
    const [left, right] = edges[i];
    if (one.entry === entry) {
      context.fillStyle = colours.line;
      context.fillRect(left, room.top, right - left, room.bottom - room.top);
    }
    if (!(one.narrow < Infinity)) return;
    const box = ([lower, upper], colour, rim) => {
      context.fillStyle = colour;
      context.fillRect(left, room.y(upper), right - left, room.y(lower) - room.y(upper));
      context.lineWidth = 1;
      if (rim) for (const end of [lower, upper]) rule(context, left, room.y(end), right, room.y(end), rim);
    };
    if (one.wide < Infinity) box(one.outer, colours.wide);
    box(one.inner, colours.narrow, colours.rim);
    context.lineWidth = one.entry === entry ? 3.5 : 2;
    rule(context, left, room.y(one.value), right, room.y(one.value), one.isFaint ? colours.ghost : colours.curve);
  });
  context.restore();
  drawTimes(context, room, shown, edges, entry, colours);
  return room;
}

function drawTimes(context, room, shown, edges, entry, colours) {
  context.font = `12px ${colours.font}`;
  context.textAlign = "center";
  context.textBaseline = "top";
  const chosen = shown.findIndex((one) => one.entry === entry);
  const middle = (i) => Math.min(Math.max((edges[i][0] + edges[i][1]) / 2, room.left + 20), room.right - 20);
  const text = (i) => shortStart(placeOf(shown[i].entry.meta).start, stepOf(shown[i].entry.meta));
  let last = -Infinity;
  context.fillStyle = colours.soft;
  shown.forEach((_, i) => {
    if (middle(i) - last < APART || Math.abs(middle(i) - middle(chosen)) < APART) return;
    last = middle(i);
    context.fillText(text(i), last, room.bottom + 8);
  });
  context.font = `600 12px ${colours.font}`;
  context.fillStyle = colours.ink;
  context.fillText(text(chosen), middle(chosen), room.bottom + 8);
  const { start } = placeOf(shown[0].entry.meta);
  const { end } = placeOf(shown[shown.length - 1].entry.meta);
  context.fillText(fitted(context, span(start, end), room.right - room.left), (room.left + room.right) / 2, room.bottom + 25);
}
