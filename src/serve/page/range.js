// A range on one axis of tables of cells: how many records lie in it, their share, and their label.

import { ticks } from "./axes.js";
import { byId, element, say } from "./dom.js";
import { placeOn } from "./sentence.js";
import { isTables } from "./views.js";
import { giveOrTake, short, within } from "./words.js";

export class RecordRange {
  #chosen = new Map();
  #signature = "";
  #parts;
  #meta;
  #changed;

  /** `changed()` is called when the range is another. */
  constructor(changed) {
    this.#changed = changed;
  }

  /** The range of a release: { axis, ends }, at first the middle half of the first axis; undefined where there is none. */
  of(meta) {
    if (!isTables(meta)) return undefined;
    const id = JSON.stringify([meta.pipeline, meta.release, meta.domain]);
    if (!this.#chosen.has(id)) this.#chosen.set(id, { axis: 0, ends: middleOf(meta.domain[0]) });
    return this.#chosen.get(id);
  }

  draw({ entry }) {
    const { meta, synopsis } = entry.source ?? entry;
    byId("range").hidden = !isTables(meta);
    if (byId("range").hidden) return;
    this.#meta = meta;
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
    const found = answers(meta, synopsis.tables(), meta.domain.map((_, i) => (i === axis ? ends : null)));
    this.#parts.answers.replaceChildren(...found.map(([name, text]) =>
      element("div", {}, element("dt", { text: name }), element("dd", { text }))));
    const { min, max } = meta.domain[axis];
    const step = (max - min) / meta.basis.tables.steps[axis];
    say(this.#parts.hint, `Each with its interval for the noise, which holds with 95\u00a0% probability for one range chosen beforehand. A cell is ${short(step)} wide on ${column}: the ends of the range are blurred by about as much. Any number of ranges costs no further privacy.`);
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
      chosen.ends = middleOf(this.#meta.domain[chosen.axis]);
      this.#changed();
    });
    const ends = [end("From", 0), end("To", 1)];
    const answers = element("dl", { id: "range-found", class: "found" });
    const hint = element("p", { class: "hint" });
    byId("range-body").replaceChildren(
      element("div", { class: "readers" }, meta.domain.length > 1 ? select : element("span", { text: column }), ...ends.map(({ label }) => label)),
      answers, hint);
    this.#parts = { ends, answers, hint };
  }

  /** Moves one end; the other gives way. */
  #move(i, to) {
    const chosen = this.of(this.#meta);
    chosen.ends = i === 0 ? [to, Math.max(to, chosen.ends[1])] : [Math.min(to, chosen.ends[0]), to];
    this.#changed();
  }
}

/** The middle half of an axis, in round numbers. */
function middleOf({ min, max }) {
  const { step } = ticks(min, max, 20);
  const round = (x) => Math.min(Math.max(Math.round(x / step) * step, min), max);
  return [round(min + (max - min) / 4), round(max - (max - min) / 4)];
}

function answers({ target: { cells: { label } } }, tables, range) {
  const { value, pointwise } = tables.count(range);
  const share = tables.share(range);
  const found = [["Records", giveOrTake(value, pointwise[1] - value)], ["Share of all records", within(share.value, share.pointwise, 100)]];
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
