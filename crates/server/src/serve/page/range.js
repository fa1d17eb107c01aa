// A range on one axis: how many records lie in it, their share, and their label; of other functions the mean.

import { ticks } from "./axes.js";
import { byId, element, say } from "./dom.js";
import { records } from "./names.js";
import { capital, placeOn } from "./sentence.js";
import { over } from "./integral.js";
import { kindOf } from "./kinds.js";
import { isTables } from "./views.js";
import { giveOrTake, short, within, withForm } from "./words.js";

export class RecordRange {
  #chosen = new Map();
  #signature = "none";
  #parts;
  #meta;
  #changed;
  /** What a link asks for, until there is a release to ask it of. */
  #wanted;

  /** `changed()` is called when the range is another. */
  constructor(changed) {
    this.#changed = changed;
  }

  /**
   * The range of a release: { axis, ends }; of tables at first the middle half of the first axis, of a curve none. `isOwn` if it
   * was chosen.
   */
  of(meta) {
    if (!hasRange(meta)) return undefined;
    const id = nameOf(meta);
    const { axis = 0, ends } = this.#wanted ?? {};
    const fits = ends && meta.domain[axis] && ends[0] >= meta.domain[axis].min && ends[1] <= meta.domain[axis].max;
    if (fits) this.#chosen.set(id, { axis: isTables(meta) ? axis : 0, ends, isOwn: true });
    this.#wanted = undefined;
    if (!this.#chosen.has(id) && isTables(meta)) this.#chosen.set(id, { axis: 0, ends: middleOf(meta.domain[0]) });
    return this.#chosen.get(id);
  }

  /** What a link asks for: { axis, ends }, or undefined. */
  want(wanted) {
    this.#wanted = wanted;
  }

  /** Chooses the range between two places on an axis, in round numbers; with no places none. */
  select(meta, places, axis = 0) {
    if (!hasRange(meta)) return;
    if (!places) this.#chosen.delete(nameOf(meta));
    else this.#chosen.set(nameOf(meta), { axis, ends: roundedOn(meta.domain[axis], places), isOwn: true });
    this.#changed();
  }

  draw({ entry }) {
    const { meta, synopsis } = entry.source ?? entry;
    byId("range").hidden = !hasRange(meta);
    if (byId("range").hidden) return;
    this.#meta = meta;
    say(byId("range-head"), isCounted(meta) ? `${capital(records(meta))} in a range` : "Mean over a range");
    if (!this.of(meta)) return this.#offer(meta);
    const { axis, ends } = this.of(meta);
    const signature = JSON.stringify([meta.pipeline, meta.release, meta.domain, axis]);
    if (signature !== this.#signature) this.#build(meta, axis);
    this.#signature = signature;
    const { column } = meta.domain[axis];
    this.#parts.ends.forEach(({ handle, field }, i) => {
      handle.value = ends[i];
      handle.setAttribute("aria-valuetext", placeOn(meta.domain[axis], ends[i]));
      // What is being typed stays until it is done.
      if (field.dataset.end === String(ends[i])) return;
      field.dataset.end = ends[i];
      field.value = Number(ends[i].toPrecision(12));
    });
    const found = isTables(meta)
      ? answers(meta, synopsis.tables(), meta.domain.map((_, i) => (i === axis ? ends : null))) : ofCurve(meta, synopsis, ends);
    this.#parts.answers.replaceChildren(...found.map(([name, text]) =>
      element("div", {}, element("dt", { text: name }), element("dd", { text }))));
    say(this.#parts.hint, `Each with its interval for the noise, which holds with 95\u00a0% probability for one range chosen beforehand. ${followed(meta, synopsis)}${blurred(meta, axis)} Any number of ranges costs no further privacy.`);
    return undefined;
  }

  /** Nothing is chosen of a curve: how to choose. */
  #offer(meta) {
    if (this.#signature === "") return;
    this.#signature = "";
    byId("range-body").replaceChildren(element("p", { class: "hint offer" }, "Drag across the curve, or ",
      element("button", { type: "button", text: "select a range", onclick: () => this.select(this.#meta, middleOf(this.#meta.domain[0])) })));
  }

  #build(meta, axis) {
    const { column, min, max } = meta.domain[axis];
    const { step } = ticks(min, max, 200);
    const clip = (x) => Math.min(Math.max(x, min), max);
    // A handle stands at round numbers, a field takes any.
    const end = (name, i) => {
      const handle = element("input", { type: "range", min, max, step: "any", "aria-label": `${name} ${column}`, "aria-describedby": "range-found" });
      handle.addEventListener("input", () => this.#move(i, clip(Math.round(handle.valueAsNumber / step) * step)));
      const field = element("input", { type: "number", min, max, step: "any", "aria-label": `${name} ${column}, in numbers` });
      field.addEventListener("change", () => {
        delete field.dataset.end;
        this.#move(i, clip(Number.isFinite(field.valueAsNumber) ? field.valueAsNumber : [min, max][i]));
      });
      return { label: element("label", { class: "reader" }, element("span", { text: name }), handle, field), handle, field };
    };
    const select = element("select", { "aria-label": "Axis of the range" }, ...meta.domain.map(({ column: text }, i) => element("option", { value: i, text })));
    select.selectedIndex = axis;
    select.addEventListener("change", () => {
      const chosen = this.of(this.#meta);
      chosen.axis = select.selectedIndex;
      chosen.isOwn = true;
      chosen.ends = middleOf(this.#meta.domain[chosen.axis]);
      this.#changed();
    });
    const ends = [end("From", 0), end("To", 1)];
    const answers = element("dl", { id: "range-found", class: "found" });
    const hint = element("p", { class: "hint" });
    const clear = isTables(meta) ? undefined : element("button", { type: "button", text: "Clear", onclick: () => this.select(this.#meta) });
    byId("range-body").replaceChildren(
      element("div", { class: "readers" }, meta.domain.length > 1 ? select : element("span", { text: column }), ...ends.map(({ label }) => label), clear),
      answers, hint);
    this.#parts = { ends, answers, hint };
  }

  /** Moves one end; the other gives way. */
  #move(i, to) {
    const chosen = this.of(this.#meta);
    chosen.isOwn = true;
    chosen.ends = i === 0 ? [to, Math.max(to, chosen.ends[1])] : [Math.min(to, chosen.ends[0]), to];
    this.#changed();
  }
}

const nameOf = (meta) => JSON.stringify([meta.pipeline, meta.release, meta.domain]);

/** Tables have ranges on every axis, other functions on their only one. */
const hasRange = (meta) => isTables(meta) || (meta.domain.length === 1 && kindOf(meta) !== "moments");

/** Whether the integral is a number of records. */
export const isCounted = (meta) => isTables(meta) || kindOf(meta) === "density";

const clipped = (x, { min, max }) => Math.min(Math.max(x, min), max);

/** The middle half of an axis, in round numbers. */
function middleOf(axis) {
  const { min, max } = axis;
  const { step } = ticks(min, max, 20);
  const round = (x) => clipped(Math.round(x / step) * step, axis);
  return [round(min + (max - min) / 4), round(max - (max - min) / 4)];
}

/** Two places in order and in round numbers, at least a step apart. */
function roundedOn(axis, places) {
  const { step } = ticks(axis.min, axis.max, 200);
  const [from, to] = [...places].sort((a, b) => a - b).map((x) => Number(clipped(Math.round(x / step) * step, axis).toPrecision(12)));
  return to > from ? [from, to] : [Math.max(axis.min, to - step), Math.min(axis.max, from + step)];
}

/** What stands beside a count where it is known what the form adds to it. */
const followed = (meta, synopsis) => (isTables(meta) || synopsis.formError() === null ? ""
  : `What the form cannot follow is at most as said, wherever the ${records(meta)} are; with the noise it holds in at least 9 of 10 windows. `);

/** How exactly the ends of a range can be read. */
function blurred(meta, axis) {
  const { column, min, max } = meta.domain[axis];
  if (isTables(meta)) {
    return `A cell is ${short((max - min) / meta.basis.tables.steps[axis])} wide on ${column}: the ends of the range are blurred by about as much.`;
  }
  const width = meta.target.density?.kernel?.bandwidths?.[0];
  if (width === undefined) return isCounted(meta) ? "The curve is smoothed: the ends of the range are blurred." : "The mean weighs every place alike, however many records there are.";
  return `The curve is smoothed by a bandwidth of ${short(width)}: the ends of the range are blurred by about as much, and ${records(meta)} so near an end of the axis count in part.`;
}

/** The answers of a curve: its integral where that is a number of records, its mean elsewhere. */
function ofCurve(meta, synopsis, ends) {
  const { sum, mean, share } = over(synopsis, ends);
  if (!isCounted(meta)) return [["Mean over the range", giveOrTake(mean.value, mean.half)]];
  const part = share ? `${giveOrTake(100 * share.value, 100 * share.half)}\u00a0%` : "unknown";
  return [[capital(records(meta)), giveOrTake(sum.value, sum.half) + withForm(sum.half, sum.form)], [`Share of all ${records(meta)}`, part]];
}

function answers(meta, tables, range) {
  const { target: { cells: { label } } } = meta;
  const { value, pointwise } = tables.count(range);
  const share = tables.share(range);
  const found = [[capital(records(meta)), giveOrTake(value, pointwise[1] - value)], [`Share of all ${records(meta)}`, within(share.value, share.pointwise, 100)]];
  if (label?.number) {
    const mean = tables.mean(range);
    found.push([`Mean ${label.number.column}`, within(mean.value, mean.pointwise)]);
  }
  if (label?.above) {
    const [, over] = tables.proportions(range);
    found.push([`${label.above.column} > ${short(label.above.above)}`, within(over.value, over.pointwise, 100)]);
  }
  if (label?.classes) {
    const { says, probabilities } = tables.classifyIn(range);
    probabilities.forEach((one, t) => found.push([`${label.classes.column} = ${tables.names[t]}`, within(one.value, one.pointwise, 100)]));
    found.push(["Most frequent", says]);
  }
  return found;
}
