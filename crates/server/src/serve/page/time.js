// Selects the window: scrubber, play and step, and small plots of recent windows.

import { byId, element, say } from "./dom.js";
import { plane } from "./grid.js";
import { drawHeat } from "./heat.js";
import { hasPlot } from "./kinds.js";
import { drawPlot } from "./plot.js";
import { curvePicture, mapPicture } from "./stage.js";
import { stepOf } from "./store.js";
import { plural, shortStart, span } from "./words.js";

const PLAY = 700;
const PLAY_CALMLY = 2000;
const MULTIPLES = 12;
const SMALL_SIDE = 33;

export class Time {
  #chosen;
  #timer;
  #count = 0;
  #index = 0;
  #calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  /** `chosen(index)` is called when a window is selected, `chosen(null)` to follow the newest. */
  constructor(chosen) {
    this.#chosen = chosen;
    byId("scrubber").addEventListener("input", (event) => {
      this.stop();
      this.#choose(Number(event.target.value));
    });
    byId("back").addEventListener("click", () => this.step(-1));
    byId("forth").addEventListener("click", () => this.step(1));
    byId("play").addEventListener("click", () => this.toggle());
    byId("newest").addEventListener("click", () => {
      this.stop();
      chosen(null);
    });
  }

  step(by) {
    this.stop();
    this.#choose(this.#index + by);
  }

  /** To the oldest (0) or the newest window. */
  end(isNewest) {
    this.stop();
    this.#chosen(isNewest ? null : 0);
  }

  toggle() {
    if (this.#timer) return this.stop();
    if (this.#count < 2) return undefined;
    if (this.#index >= this.#count - 1) this.#chosen(0);
    const turn = () => {
      if (this.#index >= this.#count - 1) {
        this.stop();
        this.#chosen(null);
      } else this.#chosen(this.#index + 1);
    };
    this.#timer = setInterval(turn, this.#calm.matches ? PLAY_CALMLY : PLAY);
    return this.#label();
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#label();
  }

  get isPlaying() {
    return this.#timer !== undefined;
  }

  #label() {
    say(byId("play-words"), this.#timer ? "Pause" : "Play");
    byId("play").classList.toggle("on", this.#timer !== undefined);
  }

  #choose(index) {
    const at = Math.min(Math.max(index, 0), this.#count - 1);
    this.#chosen(at === this.#count - 1 ? null : at);
  }

  draw({ series, entry, index, isNewest }) {
    [this.#count, this.#index] = [series.length, index];
    const scrubber = byId("scrubber");
    scrubber.max = Math.max(0, series.length - 1);
    scrubber.value = index;
    scrubber.disabled = series.length < 2;
    scrubber.setAttribute("aria-valuetext", `window ${index + 1} of ${series.length}, ${span(entry.meta.window.start, entry.meta.window.end)}`);
    byId("back").disabled = index === 0;
    byId("forth").disabled = index >= series.length - 1;
    byId("play").disabled = series.length < 2;
    say(byId("position"), `window ${index + 1} of ${series.length}`);
    const newer = series.length - 1 - index;
    byId("newest").hidden = isNewest;
    say(byId("newest"), newer > 0 ? `${plural(newer, "newer window")}: go to the newest` : "Follow the newest");
  }

  /** Recent windows including the selected one, all on one scale. */
  drawMultiples(look) {
    const { series, entry, index } = look;
    const home = byId("multiples-list");
    byId("multiples").hidden = series.length < 2 || !hasPlot(entry.meta);
    if (byId("multiples").hidden) return home.replaceChildren();
    const end = Math.max(index + 1, Math.min(series.length, MULTIPLES));
    const shown = series.slice(Math.max(0, end - MULTIPLES), end);
    while (home.children.length > shown.length) home.lastChild.remove();
    while (home.children.length < shown.length) home.append(this.#small());
    shown.forEach((one, i) => {
      const button = home.children[i].firstChild;
      const { start, end: to } = one.meta.window;
      button.setAttribute("aria-label", `Window ${span(start, to)}`);
      if (one === entry) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
      button.onclick = () => {
        this.stop();
        this.#choose(series.indexOf(one));
      };
      say(button.lastChild, shortStart(start, stepOf(one.meta)));
      drawSmall(button.firstChild, { ...look, entry: one, before: undefined, isPlausible: false });
    });
    return undefined;
  }

  #small() {
    return element("li", {}, element("button", { type: "button", class: "small" },
      element("canvas", { "aria-hidden": "true" }), element("span", {})));
  }
}

export function drawSmall(canvas, look) {
  const { meta, synopsis } = look.entry;
  if (meta.domain.length === 1) drawPlot(canvas, { ...curvePicture(look, 0, 101), small: true });
  else drawHeat(canvas, { ...mapPicture(look, plane(synopsis, look.at, SMALL_SIDE)), small: true });
}
