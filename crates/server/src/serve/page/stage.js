// The plot of one synopsis: a curve, or a map with its slices.

import { roundOut, ticks } from "./axes.js";
import { element, say } from "./dom.js";
import { apart, extent, isFlat, isReadCloser, largestHalfWidth, line, plane, plausible, point } from "./grid.js";
import { colourScale, drawHeat } from "./heat.js";
import { border, drawnTo, kindOf, labelRange, rangeOf, valueLabel } from "./kinds.js";
import { drawPlot } from "./plot.js";
import { axisTitle } from "./names.js";
import { changeOnMap, noDifference, ofLine, ofPlane, placeOn } from "./sentence.js";
import { giveOrTake, plusMinus, rounded, short, withForm } from "./words.js";

const CURVES = 20;
/** Pixels that the mouse moves before it selects a range. */
const DRAGGED = 5;
/** Points on each side of a map. */
export const SIDE = 128;

/** Draws the selected synopsis, and reads values at the crosshair. */
export class Stage {
  #home;
  #moved;
  #ranged;
  #signature = "";
  #parts = {};
  #frames = new Map();

  /** `moved(at)` is called when the crosshair moves, `ranged(ends)` when a range is dragged across a curve. */
  constructor(home, moved, ranged) {
    this.#home = home;
    this.#moved = moved;
    this.#ranged = ranged;
  }

  /** Draws `look`: { series, entry, before, at, range, isGhost, isPlausible, isRegions }. */
  draw(look) {
    const { meta } = look.entry;
    const signature = JSON.stringify([kindOf(meta), meta.domain, meta.pipeline, meta.release, meta.key]);
    if (signature !== this.#signature) this.#build(meta);
    this.#signature = signature;
    if (meta.domain.length === 1) this.#drawCurve(look);
    else this.#drawMap(look);
    this.#drawReaders(look);
  }

  forget() {
    this.#signature = "";
    this.#home.replaceChildren();
  }

  #build(meta) {
    const canvas = (name) => element("canvas", { class: name, role: "img" });
    const one = meta.domain.length === 1;
    this.#parts = one ? { main: canvas("plot") } : { main: canvas("map"), first: canvas("slice"), second: canvas("slice"), change: canvas("change") };
    const pictures = one
      ? element("div", { class: "pictures one" }, this.#parts.main)
      : element("div", { class: "pictures two" }, element("div", {}, this.#parts.main, this.#changeHome(meta)),
        element("div", { class: "slices" }, this.#parts.first, this.#parts.second));
    this.#parts.readers = meta.domain.map((axis, i) => this.#reader(axis, i));
    this.#parts.reading = element("output", { class: "reading" });
    this.#home.replaceChildren(pictures, element("div", { class: "readers" },
      ...this.#parts.readers.map(({ label }) => label), this.#parts.reading));
    this.#follow(this.#parts.main, one ? [0] : [0, 1]);
    if (one) this.#select(this.#parts.main);
    else {
      this.#follow(this.#parts.first, [0]);
      this.#follow(this.#parts.second, [1]);
      this.#follow(this.#parts.change, [0, 1]);
    }
  }

  /** The map of change with its legend, below the map. */
  #changeHome(meta) {
    const key = (name, text) => element("span", {}, element("span", { class: `swatch ${name}` }), ` ${text}`);
    this.#parts.changeHome = element("div", { hidden: true }, element("p", { class: "hint keyed" },
      element("strong", { text: "Change from the previous window:" }), key("above", "higher"), key("below", "lower"), key("hatch", noDifference(meta))), this.#parts.change);
    return this.#parts.changeHome;
  }

  /** Where a map differs from the previous window beyond the noise, if that can be compared. */
  #drawChange({ series, entry: { meta }, at, isGhost }, shown, then) {
    const { change, changeHome } = this.#parts;
    changeHome.hidden = change.hidden = !isGhost || series.length < 2;
    // Its place stays where one window has none before it, so that nothing moves from window to window.
    changeHome.style.visibility = then === undefined ? "hidden" : "";
    if (then === undefined) {
      change.width = 0;
      return;
    }
    const [x, y] = meta.domain;
    const on = (axis) => ({ min: axis.min, max: axis.max, label: axisTitle(axis) });
    this.#frames.set(change, drawHeat(change, { x: on(x), y: on(y), plane: apart(shown, then), border: { at: 0 }, mark: at.slice(0, 2) }));
    change.setAttribute("aria-label", `Change from the previous window. ${changeOnMap(meta, shown, then)}`);
  }

  /** A slider for the coordinate on one axis. */
  #reader(axis, index) {
    // Round coordinates, so that the value read belongs to the label.
    const { step } = ticks(axis.min, axis.max, 200);
    const name = index === 2 ? `Slice at ${axis.column}` : `Read at ${axis.column}`;
    const value = element("span", { class: "place" });
    const input = element("input", { type: "range", min: axis.min, max: axis.max, step, "aria-label": name });
    input.addEventListener("input", () => this.#moved({ [index]: Math.min(Math.max(Number(input.value), axis.min), axis.max) }));
    return { label: element("label", { class: "reader" }, element("span", { text: name }), input, value), input, value };
  }

  /** Lets the pointer move the crosshair. */
  #follow(canvas, axes) {
    const move = (event) => {
      const room = this.#frames.get(canvas);
      if (!room || (event.type === "pointermove" && event.buttons === 0 && axes.length > 1)) return;
      if (event.pointerType === "touch" && axes.length === 1 && event.type === "pointermove" && event.buttons === 0) return;
      const box = canvas.getBoundingClientRect();
      const to = {};
      to[axes[0]] = room.toX(event.clientX - box.left);
      if (axes.length > 1) to[axes[1]] = room.toY(event.clientY - box.top);
      this.#moved(to);
    };
    canvas.addEventListener("pointerdown", move);
    canvas.addEventListener("pointermove", move);
  }

  /** Lets the mouse drag a range; a finger moves the crosshair. */
  #select(canvas) {
    let start;
    canvas.addEventListener("pointerdown", (event) => {
      start = event.pointerType !== "touch" && event.button === 0 ? event.clientX : undefined;
      if (start !== undefined) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const room = this.#frames.get(canvas);
      if (start === undefined || (event.buttons & 1) === 0 || !room || Math.abs(event.clientX - start) < DRAGGED) return;
      const { left } = canvas.getBoundingClientRect();
      this.#ranged([start, event.clientX].map((x) => room.toX(x - left)));
    });
  }

  #drawCurve(look) {
    const { meta } = look.entry;
    const { main } = this.#parts;
    const picture = curvePicture(look, 0);
    this.#frames.set(main, drawPlot(main, { ...picture, mark: look.at[0] }));
    main.setAttribute("aria-label", ofLine(meta, picture.now, picture.then));
  }

  #drawMap(look) {
    const { meta, synopsis } = look.entry;
    const { main, first, second } = this.#parts;
    const shown = plane(synopsis, look.at, SIDE);
    const picture = mapPicture(look, shown);
    this.#frames.set(main, drawHeat(main, { ...picture, mark: [look.at[0], look.at[1]] }));
    const then = look.before && look.isGhost ? plane(look.before.synopsis, look.at, SIDE) : undefined;
    this.#drawChange(look, shown, then);
    main.setAttribute("aria-label", ofPlane(meta, shown, look.at, then));
    for (const [canvas, axis] of [[first, 0], [second, 1]]) {
      const slice = curvePicture(look, axis);
      const other = meta.domain[1 - axis];
      slice.y.label = `at ${other.column} = ${placeOn(other, look.at[1 - axis])}`;
      this.#frames.set(canvas, drawPlot(canvas, { ...slice, mark: look.at[axis] }));
      canvas.setAttribute("aria-label", `Slice ${slice.y.label}. ${valueLabel(meta)} over ${meta.domain[axis].column}, with its band.`);
    }
  }

  #drawReaders({ entry, before, at, isGhost }) {
    const { meta, synopsis } = entry;
    this.#parts.readers.forEach(({ input, value }, i) => {
      if (Number(input.value) !== at[i]) input.value = at[i];
      say(value, placeOn(meta.domain[i], at[i]));
      input.setAttribute("aria-valuetext", `${meta.domain[i].column} ${placeOn(meta.domain[i], at[i])}`);
    });
    const here = point(synopsis, at);
    const words = isReadCloser(meta)
      ? [`${valueLabel(meta)}: ${rounded(here.value, here.wide)} by "${meta.reading}", band ${fromTo(here.outer, here.wide)} (pointwise ${fromTo(here.inner, here.narrow)})`]
      : [`${valueLabel(meta)}: ${giveOrTake(here.value, here.wide)}`, `(pointwise ${plusMinus(here.narrow)})`];
    words.push(withForm(here.wide, here.form).trim());
    // At the number itself: a narrow band of a fit with few records does not say that it is near.
    const to = drawnTo(meta);
    if (to !== undefined) words.push(`\u00b7 noise alone; with few records drawn towards ${short(to)}`);
    if (before && isGhost) {
      const then = point(before.synopsis, at);
      const isApart = Math.abs(here.value - then.value) > here.wide + then.wide;
      words.push(`\u00b7 previous window: ${rounded(then.value, then.wide)}, ${isApart ? "changed by more than the noise" : noDifference(meta)}`);
    }
    const sided = border(meta);
    if (sided && here.wide < Infinity) {
      const over = here.value - sided.at;
      words.push(`\u00b7 ${Math.abs(over) <= here.wide ? "too close to call" : over > 0 ? sided.above : sided.below}`);
    }
    if (kindOf(meta) === "share") {
      const { table, says } = synopsis.tables().classify(at, { bandwidths: synopsis.choice.bandwidths });
      words.push(`\u00b7 ${table === null ? "the most probable is too close to call" : `most probable: ${says}`}`);
    }
    say(this.#parts.reading, words.filter(Boolean).join(" "));
  }
}

/** What noise and form stay within at the crosshair, in a sentence for a picture; "" where the form is not known. */
export function noiseAndForm({ entry: { meta, synopsis }, at }) {
  const { wide, form } = point(synopsis, at);
  const place = meta.domain.map((axis, i) => `${axis.column} = ${placeOn(axis, at[i])}`).join(", ");
  return form === null ? "" : `The band is of the noise alone. At ${place} noise and what the form cannot follow are within ${plusMinus(wide + form)} in at least 9 of 10 windows.`;
}

const fromTo = (ends, half) => ends.map((end) => rounded(end, half)).join(" to ");

/** One scale of values for all windows of a series; it always includes the band. */
function valueScale(series, label) {
  const { meta } = series[series.length - 1];
  const bounds = rangeOf(meta);
  if (bounds) return { min: bounds[0], max: bounds[1], label };
  let [low, high] = extent(series, true, labelRange(meta));
  if (kindOf(meta) === "density" || border(meta)) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  const [min, max] = roundOut(low, high > low ? high : low + 1);
  return { min, max, label };
}

/** The input for a plot of the function along one axis. */
export function curvePicture({ series, entry, before, at, range, isGhost, isPlausible, others, scaleWith }, axis, count = 201) {
  const { meta, synopsis } = entry;
  const { min, max } = meta.domain[axis];
  return {
    x: { min, max, label: axisTitle(meta.domain[axis]) },
    y: valueScale([...(scaleWith ?? []), ...series], valueLabel(meta)),
    now: line(synopsis, axis, at, count),
    then: isGhost && before && !others?.length ? line(before.synopsis, axis, at, count) : undefined,
    curves: isPlausible ? plausible(synopsis, axis, at, CURVES) : undefined,
    border: border(meta),
    others: (others ?? []).map(({ key, entry: own }) => ({ key, now: line(own.synopsis, axis, at, count) })),
    key: meta.key,
    range: range?.axis === axis ? range.ends : undefined,
  };
}

/** The colour scale of all windows of a series; none if regions of classes are shown. */
export function mapScale({ series, isRegions }) {
  const sided = border(series[series.length - 1].meta);
  return sided && isRegions ? undefined : coloursOf(series, Math.max(...series.map(({ synopsis }) => largestHalfWidth(synopsis))), sided);
}

/** The input for a map: colours, or the regions of classes. */
export function mapPicture(look, shown) {
  const { meta } = look.series[look.series.length - 1];
  const [x, y] = meta.domain;
  const sided = border(meta);
  const scale = mapScale(look);
  return {
    x: { min: x.min, max: x.max, label: axisTitle(x) },
    y: { min: y.min, max: y.max, label: axisTitle(y) },
    plane: shown,
    scale,
    isFlat: scale && (scale.steps === 1 || isFlat(shown)),
    border: sided ?? (kindOf(meta) === "density" ? { at: 0 } : undefined),
  };
}

function coloursOf(series, half, sided) {
  const { meta } = series[series.length - 1];
  const label = valueLabel(meta);
  const bounds = rangeOf(meta);
  if (bounds) return colourScale(bounds[0], bounds[1], half, label);
  const [low, high] = extent(series, false, labelRange(meta));
  if (sided) {
    const most = Math.max(Math.abs(low), Math.abs(high));
    return colourScale(-most, most, half, label, true);
  }
  const [min, max] = roundOut(kindOf(meta) === "density" ? 0 : low, high > low ? high : low + 1);
  return colourScale(min, max, half, label);
}
