// The keys of a release side by side on one scale, for the window that is shown; up to four laid over each other.

import { byId, element, say } from "./dom.js";
import { point } from "./grid.js";
import { hasPlot } from "./kinds.js";
import { drawSmall } from "./time.js";
import { giveOrTake, plural } from "./words.js";

/** Keys beside the chosen one that can be laid over it. */
export const MOST_OTHERS = 3;
/** Keys that are shown before all are asked for. */
const FEW = 36;
/** From so many keys on there is a field to find one. */
const MANY = 12;

export const nameOf = (key) => key ?? "(all records)";

export class Keys {
  #open;
  #overlay;
  #items = new Map();
  #drawn = new WeakMap();
  #isAll = false;
  #changed;

  /** `open(key)` opens a key, `overlay(key, isOn)` lays it over the chosen one, `changed()` asks for another drawing. */
  constructor(open, overlay, changed) {
    [this.#open, this.#overlay, this.#changed] = [open, overlay, changed];
    byId("keys-sort").addEventListener("change", changed);
    byId("keys-find").addEventListener("input", changed);
    byId("keys-all").addEventListener("click", () => {
      this.#isAll = true;
      changed();
    });
    byId("keys-list").addEventListener("keydown", (event) => this.#walk(event));
  }

  /** `entryOf(key)` gives a key's entry of the window that is shown. */
  draw(look) {
    const { keys, key, entry, at, entryOf, others } = look;
    const home = byId("keys");
    home.hidden = keys.length < 2 || !hasPlot(entry.meta);
    if (home.hidden) return;
    byId("keys-find").hidden = keys.length <= MANY;
    const wanted = byId("keys-find").value.trim().toLowerCase();
    const all = keys.filter((one) => nameOf(one).toLowerCase().includes(wanted)).map((one) => {
      const own = entryOf(one);
      return { key: one, entry: own, here: own && own.meta.domain.length === at.length ? point(own.synopsis, at) : undefined };
    });
    if (byId("keys-sort").value === "value") all.sort((a, b) => (b.here?.value ?? -Infinity) - (a.here?.value ?? -Infinity));
    const shown = this.#isAll ? all : all.slice(0, FEW);
    byId("keys-all").hidden = shown.length === all.length;
    say(byId("keys-all"), `Show all ${all.length}`);
    const isFull = others.length >= MOST_OTHERS;
    const isCurve = entry.meta.domain.length === 1;
    const scaleOf = { ...look, series: all.map((one) => one.entry).filter(Boolean), scaleWith: [], others: [], before: undefined, isPlausible: false };
    const scaleName = scaleOf.series.map((one) => one.name).join(" ");
    const list = shown.map((one) => this.#item(one, { ...scaleOf, key, scaleName, isFull, isCurve, isOver: others.some((other) => other.key === one.key) }));
    const place = byId("keys-list");
    if (list.length !== place.children.length || list.some((item, i) => place.children[i] !== item)) {
      // Focus stays with its key.
      const focused = document.activeElement;
      place.replaceChildren(...list);
      if (focused && place.contains(focused)) focused.focus();
    }
    const first = list.find((item) => item.firstChild.hasAttribute("aria-current")) ?? list[0];
    for (const item of list) item.firstChild.tabIndex = item === first ? 0 : -1;
    const outside = Math.floor(all.length * (1 - entry.meta.band.level) + 1e-9);
    say(byId("keys-hint"), all.length === 0 ? "No key has this in its name." : `Each key has a band of its own${outside > 0 ? `: of ${plural(all.length, "key")}, about ${outside} may lie outside theirs` : ""}. Look for differences beyond both bands.${isCurve ? ` Up to ${MOST_OTHERS + 1} keys can be laid over each other.` : ""}`);
  }

  #item({ key, entry, here }, look) {
    if (!this.#items.has(key)) this.#items.set(key, this.#build(key));
    const item = this.#items.get(key);
    const [button, label] = item.children;
    const isOwn = key === look.key;
    if (isOwn) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    const words = !entry ? "withheld or not yet published" : here ? giveOrTake(here.value, here.wide) : "of another form";
    say(button.querySelector(".here"), words);
    const isFitting = entry !== undefined && here !== undefined;
    label.hidden = !look.isCurve || isOwn || !isFitting;
    label.firstChild.checked = look.isOver;
    label.firstChild.disabled = look.isFull && !look.isOver;
    const canvas = button.querySelector("canvas");
    canvas.classList.toggle("none", !isFitting);
    if (!isFitting) return item;
    const { clientWidth, clientHeight } = canvas;
    // Where nothing has changed nothing is drawn: there may be hundreds.
    const state = JSON.stringify([entry.name, entry.meta.target, look.at.slice(entry.meta.domain.length > 1 ? 2 : 1), clientWidth, clientHeight, window.devicePixelRatio, window.matchMedia("(prefers-color-scheme: dark)").matches, look.isRegions, entry.source ? entry.synopsis.choice : null]);
    const drawn = this.#drawn.get(canvas);
    if ((drawn?.state !== state || drawn.scale !== look.scaleName) && clientWidth > 0) {
      drawSmall(canvas, { ...look, entry, range: undefined });
      this.#drawn.set(canvas, { state, scale: look.scaleName });
    } else if (clientWidth === 0) requestAnimationFrame(this.#changed);
    return item;
  }

  #build(key) {
    const name = nameOf(key);
    const box = element("input", { type: "checkbox", "aria-label": `Lay ${name} over the chosen key` });
    box.addEventListener("change", () => this.#overlay(key, box.checked));
    const button = element("button", { type: "button", class: "small", onclick: () => this.#open(key) },
      element("canvas", { "aria-hidden": "true" }), element("span", { class: "name", text: name, title: name }), element("span", { class: "here" }));
    return element("li", {}, button, element("label", {}, box, " overlay"));
  }

  /** Arrows go from key to key, one stop of the tab key for all. */
  #walk(event) {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const buttons = [...byId("keys-list").querySelectorAll("button")];
    const at = buttons.indexOf(event.target);
    if (!by || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = buttons[Math.min(Math.max(at + by, 0), buttons.length - 1)];
    for (const one of buttons) one.tabIndex = one === next ? 0 : -1;
    next.focus();
  }
}
