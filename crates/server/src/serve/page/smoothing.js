// Controls of tables of cells: which function is drawn, and at what bandwidth.

import { byId, element, say } from "./dom.js";
import { short } from "./words.js";
import { bandwidthAt, functionsOf, isTables, PLACES } from "./views.js";

export class Smoothing {
  #views;
  #signature = "";
  #sliders = [];
  #changed;
  #meta;

  /** `changed()` is called when there is something else to draw. */
  constructor(views, changed) {
    this.#views = views;
    this.#changed = changed;
    byId("function").addEventListener("change", (event) => {
      if (this.#meta) this.#views.chosen(this.#meta).function = event.target.selectedIndex;
      changed();
    });
  }

  draw({ entry }) {
    const { meta, synopsis } = entry.source ?? entry;
    const isShown = isTables(meta);
    byId("smoothing").hidden = !isShown;
    byId("function").closest("label").hidden = !isShown || functionsOf(meta).length < 2;
    this.#meta = isShown ? meta : undefined;
    if (!isShown) return;
    const names = functionsOf(meta).map(({ name }) => name);
    const signature = JSON.stringify([meta.pipeline, meta.release, meta.domain, names]);
    if (signature !== this.#signature) this.#build(meta, names);
    this.#signature = signature;
    const { function: index, places } = this.#views.chosen(meta);
    byId("function").selectedIndex = Math.min(index, names.length - 1);
    const { finest } = synopsis.tables();
    this.#sliders.forEach(({ input, value }, i) => {
      if (Number(input.value) !== places[i]) input.value = places[i];
      input.disabled = bandwidthAt(finest[i], meta.domain[i], PLACES) === finest[i];
      const words = `${short(bandwidthAt(finest[i], meta.domain[i], places[i]))}${places[i] === 0 ? ", the finest" : ""}`;
      input.setAttribute("aria-valuetext", words);
      say(value, words);
    });
  }

  #build(meta, names) {
    byId("function").replaceChildren(...names.map((text, i) => element("option", { value: i, text })));
    this.#sliders = meta.domain.map(({ column }, axis) => {
      const name = `Bandwidth on ${column}`;
      const value = element("span", { class: "place" });
      const input = element("input", { type: "range", min: 0, max: PLACES, step: 1, "aria-label": name });
      input.addEventListener("input", () => {
        this.#views.chosen(this.#meta).places[axis] = Number(input.value);
        this.#changed();
      });
      return { label: element("label", { class: "reader" }, element("span", { text: name }), input, value), input, value };
    });
    byId("smoothing").replaceChildren(...this.#sliders.map(({ label }) => label), element("p", {
      class: "hint", text: "Every bandwidth is read here from the same published counts: it costs no privacy. A wider one has less noise and hides what is narrower.",
    }));
  }
}
