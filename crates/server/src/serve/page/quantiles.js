// Quantiles of tables of cells on one axis, of the window that is shown and over time.

import { drawAxes, frame, hatching, roundOut, rule, sheet, theme } from "./axes.js";
import { byId, element, say } from "./dom.js";
import { axisTitle } from "./names.js";
import { stepOf } from "./store.js";
import { isTables } from "./views.js";
import { exact, shortStart } from "./words.js";

/** The number of windows of the chart. */
const WINDOWS = 24;
/** The parts that can be chosen beside the median. */
const PARTS = [0.25, 0.1, 0.05, 0.01];
const kept = new WeakMap();

/** A quantile of a synopsis, computed once. It is unknown where the noise allows the whole domain. */
function quantile(synopsis, part) {
  if (!kept.has(synopsis)) kept.set(synopsis, { tables: synopsis.tables(), found: new Map() });
  const { tables, found } = kept.get(synopsis);
  if (!found.has(part)) {
    const [{ min, max }] = synopsis.meta.domain;
    const { value, pointwise } = tables.quantile(part);
    found.set(part, { value: pointwise[0] === min && pointwise[1] === max ? null : value, pointwise });
  }
  return found.get(part);
}

const inPercent = (part) => `${Math.round(100 * part)}\u00a0%`;

export class Quantiles {
  #part = PARTS[1];

  /** `changed()` is called when other quantiles are chosen. */
  constructor(changed) {
    const select = byId("quantile-parts");
    select.replaceChildren(...PARTS.map((part, i) => element("option", { value: i, text: `${inPercent(part)} and ${inPercent(1 - part)}` })));
    select.selectedIndex = PARTS.indexOf(this.#part);
    select.addEventListener("change", () => {
      this.#part = PARTS[select.selectedIndex];
      changed();
    });
  }

  draw({ series, entry }) {
    const { meta } = entry.source ?? entry;
    byId("quantiles").hidden = !isTables(meta) || meta.domain.length > 1;
    if (byId("quantiles").hidden) return;
    const [axis] = meta.domain;
    const parts = [this.#part, 0.5, 1 - this.#part];
    const index = series.indexOf(entry);
    const end = Math.max(index + 1, Math.min(WINDOWS, series.length));
    const shown = series.slice(Math.max(0, end - WINDOWS), end);
    const windows = shown.map((one) => ({
      label: shortStart(one.meta.window.start, stepOf(one.meta)), isChosen: one === entry,
      quantiles: parts.map((part) => quantile((one.source ?? one).synopsis, part)),
    }));
    const now = windows.find(({ isChosen }) => isChosen).quantiles;
    const place = (x) => exact(x, (axis.max - axis.min) / 1000);
    const words = now.map(({ value, pointwise }) => (value === null ? "unknown" : `${place(value)}, ${pointwise.map(place).join(" to ")}`));
    const names = parts.map((part) => (part === 0.5 ? "Median" : `${inPercent(part)} below`));
    byId("quantiles-now").replaceChildren(...names.map((name, i) =>
      element("div", {}, element("dt", { text: name }), element("dd", { text: words[i] }))));
    const canvas = byId("quantiles-chart");
    canvas.hidden = windows.length < 2;
    if (!canvas.hidden) drawChart(canvas, axis, windows, parts);
    canvas.setAttribute("aria-label", `Quantiles of ${axis.column} in ${windows.length} windows, each with its interval. In this window: ${names.map((name, i) => `${name} ${words[i]}`).join("; ")}.`);
    say(byId("quantiles-hint"), "Each with its interval for the noise, which holds with 95\u00a0% probability for one quantile of one window. They cost no further privacy.");
  }
}

/** Quantiles by window: lines, and the interval of each as a bar. */
function drawChart(canvas, axis, windows, parts) {
  const { context, width, height } = sheet(canvas);
  if (width < 20 || height < 20) return;
  const colours = theme();
  const known = windows.flatMap(({ quantiles }) => quantiles).filter(({ value }) => value !== null).flatMap(({ value, pointwise }) => [value, ...pointwise]);
  const [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [axis.min, axis.max];
  const [min, max] = roundOut(low, high > low ? high : low + 1);
  const [x, y] = [{ min: -0.6, max: windows.length - 0.4, label: "" }, { min, max, label: axisTitle(axis) }];
  const room = frame(context, width - 44, height, x, y, colours);
  room.xTicks.values = [];
  drawAxes(context, room, x, y, colours);
  const apart = Math.min(7, (room.right - room.left) / windows.length / 5);
  parts.forEach((part, p) => {
    const at = (i) => room.x(i) + (p - 1) * apart;
    context.lineWidth = part === 0.5 ? 2.25 : 1.5;
    windows.forEach(({ quantiles, isChosen }, i) => {
      const { value, pointwise } = quantiles[p];
      const before = windows[i - 1]?.quantiles[p];
      const colour = isChosen ? colours.curve : colours.soft;
      if (value === null) return;
      if (before && before.value !== null) rule(context, at(i - 1), room.y(before.value), at(i), room.y(value), colours.ghost);
      context.globalAlpha = 0.45;
      context.lineWidth = 5;
      rule(context, at(i), room.y(pointwise[0]), at(i), room.y(pointwise[1]), colour);
      context.globalAlpha = 1;
      context.lineWidth = part === 0.5 ? 2.25 : 1.5;
      context.beginPath();
      context.arc(at(i), room.y(value), isChosen ? 4.5 : 3, 0, 2 * Math.PI);
      context.fillStyle = colour;
      context.fill();
    });
    const last = windows[windows.length - 1].quantiles[p].value;
    if (last === null) return;
    context.font = `12px ${colours.font}`;
    context.fillStyle = colours.ink;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(inPercent(part), room.right + 6, room.y(last));
  });
  drawLabels(context, room, windows, colours);
}

function drawLabels(context, room, windows, colours) {
  const every = Math.ceil(windows.length / Math.max(1, (room.right - room.left) / 64));
  const half = (room.x(1) - room.x(0)) / 2;
  const hatch = hatching(context, colours);
  windows.forEach(({ label, quantiles }, i) => {
    if (quantiles.some(({ value }) => value === null)) {
      context.fillStyle = hatch;
      context.fillRect(room.x(i) - half, room.top, 2 * half, room.bottom - room.top);
    }
    if ((windows.length - 1 - i) % every !== 0) return;
    context.fillStyle = colours.soft;
    context.font = `12px ${colours.font}`;
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillText(label, room.x(i), room.bottom + 8);
  });
}
