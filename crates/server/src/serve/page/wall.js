// The wall: releases and keys in large type, as many as the screen holds, that turn by themselves.

import { drawBars, sizeFor } from "./bars.js";
import { byId, element, say } from "./dom.js";
import { plane } from "./grid.js";
import { drawHeat } from "./heat.js";
import { foundInWords, ofKeys, readingOf, shownReading, shownRows } from "./keyrows.js";
import { nameOf } from "./keys.js";
import { isByKey, kindOf, title } from "./kinds.js";
import { drawPlot } from "./plot.js";
import { inSymbols, unit } from "./price.js";
import { curvePicture, mapPicture } from "./stage.js";
import { judge } from "./status.js";
import { isOfOneScale } from "./store.js";
import { instant, roughly, span } from "./words.js";

/** Milliseconds until the next screen, and where less motion is wanted. */
const TURN = 12_000;
const TURN_CALMLY = 45_000;
/** The least width and height of a tile, in CSS pixels; on a large screen a part of it. */
const LEAST = [360, 300];
const PART = 0.3;
const SIDE = 65;

export class Wall {
  #store;
  #views;
  #open;
  #page = 0;
  #turned = 0;
  #tiles = [];
  #signature = "";

  /** `open(release)` leaves the wall for { pipeline, release, key }. */
  constructor(store, views, open) {
    [this.#store, this.#views, this.#open] = [store, views, open];
  }

  /** Draws, and turns if it is time; `state` is { connection, source, now, isCalm, wanted }, of which `wanted` names one release. */
  draw(state) {
    const all = this.#all(state.wanted);
    // The bar before the tiles: it takes room.
    drawBar(all, state);
    const home = byId("wall-tiles");
    const [columns, rows] = layout(all.length, home.clientWidth, home.clientHeight);
    const pages = Math.max(1, Math.ceil(all.length / (columns * rows)));
    // By the clock of this machine: that of the server is not known from the start. Clocks are also put back.
    const now = Date.now();
    if (this.#turned === 0) this.#turned = now;
    if (pages > 1 && Math.abs(now - this.#turned) >= (state.isCalm ? TURN_CALMLY : TURN)) {
      this.#page += 1;
      this.#turned = now;
    }
    this.#page %= pages;
    const shown = all.slice(this.#page * columns * rows, (this.#page + 1) * columns * rows);
    home.dataset.columns = columns;
    home.style.setProperty("--columns", Math.min(columns, Math.max(1, shown.length)));
    home.style.setProperty("--rows", Math.max(1, Math.ceil(shown.length / columns)));
    say(byId("wall-page"), pages > 1 ? `${this.#page + 1} of ${pages}` : "");
    this.#fill(home, shown);
    // All words before all plots: words take room.
    shown.forEach((one, i) => tell(this.#tiles[i], one, state));
    shown.forEach((one, i) => drawTile(this.#tiles[i], one, state));
  }

  /** The newest entry of each release and key, with its series. */
  #all(wanted) {
    const store = this.#store;
    return store.pipelines().flatMap((pipeline) => store.releases(pipeline)
      .filter((release) => wanted === undefined || release === wanted)
      .flatMap((release) => store.keys(pipeline, release).map((key) => {
        const series = store.series(pipeline, release, key).map((one) => this.#views.of(one));
        const entry = series[series.length - 1];
        return { pipeline, release, key, entry, series: series.filter(({ meta }) => isOfOneScale(meta, entry.meta)) };
      }))).filter(({ entry }) => kindOf(entry.meta) !== "moments");
  }

  #fill(home, shown) {
    const signature = JSON.stringify(shown.map(({ pipeline, release, key }) => [pipeline, release, key]));
    if (signature === this.#signature) return;
    this.#signature = signature;
    this.#tiles = shown.map((one) => {
      const parts = {
        name: element("span", { class: "wall-name" }), what: element("span", { class: "wall-what" }), age: element("span", { class: "wall-age" }),
        canvas: element("canvas", { role: "img" }), about: element("span", { class: "wall-about" }),
      };
      const tile = element("button", { type: "button", class: "tile", onclick: () => this.#open(one) },
        element("span", { class: "wall-head" }, parts.name, parts.age), parts.what, element("span", { class: "wall-plot" }, parts.canvas), parts.about);
      return { tile, ...parts, state: "" };
    });
    home.replaceChildren(...this.#tiles.map(({ tile }) => tile));
  }
}

/** The clock, what concerns all tiles, and a loud word where any record is simulated. */
function drawBar(all, state) {
  byId("wall-simulated").hidden = !all.some(({ entry }) => entry.meta.synthetic);
  const { state: name, words, pill } = judge({ ...state, meta: all[0]?.entry.meta, isEmpty: all.length === 0 });
  // A tile tells its own delay.
  const isOfAll = all.length === 0 || name === "bad" || name === "waiting";
  byId("wall-state").hidden = !isOfAll;
  byId("wall-state").dataset.state = name;
  say(byId("wall-state"), isOfAll ? words || pill : "");
  say(byId("wall-clock"), instant(new Date(60_000 * Math.floor(state.now / 60_000))));
}

function tell(tile, { release, key, entry }, state) {
  const { meta } = entry.source ?? entry;
  const judged = judge({ ...state, connection: "open", source: { connected: true }, meta, isEmpty: false });
  say(tile.name, key === null || key === undefined ? release : nameOf(key));
  say(tile.what, isByKey(meta) ? `${title(meta)}: here ${shownReading(entry)}` : title(entry.meta));
  tile.tile.dataset.state = judged.state;
  say(tile.age, judged.state === "live" ? `${roughly(Math.max(0, state.now - new Date(meta.window.end)))} old` : judged.pill);
  say(tile.about, `${span(meta.window.start, meta.window.end)} \u00b7 ${inSymbols(meta.privacy.price)} a window, ${unit(meta).short}`);
}

function drawTile(tile, { key, entry, series }, state) {
  const { meta, synopsis } = entry;
  const { clientWidth, clientHeight } = tile.canvas;
  const drawn = JSON.stringify([entry.name, series.length, clientWidth, clientHeight, window.devicePixelRatio, state.isDark]);
  // Where nothing has changed nothing is drawn.
  if (tile.state === drawn) return;
  tile.state = drawn;
  const size = Math.max(12, Math.min(40, clientWidth / 36));
  if (isByKey(meta)) {
    const reading = readingOf(synopsis);
    const rows = shownRows(synopsis, reading);
    drawBars(tile.canvas, rows, reading, Math.max(12, Math.min(size, sizeFor(rows.length, clientHeight))));
    tile.canvas.setAttribute("aria-label", `${title(meta)}. ${foundInWords(meta, synopsis.table)} ${ofKeys(meta, rows, reading)}`);
    return;
  }
  const at = meta.domain.map(({ min, max }) => (min + max) / 2);
  const look = { series, entry, at, isRegions: kindOf(meta) !== "probability" };
  if (meta.domain.length === 1) drawPlot(tile.canvas, { ...curvePicture(look, 0), size });
  else drawHeat(tile.canvas, { ...mapPicture(look, plane(synopsis, at, SIDE)), size });
  tile.canvas.setAttribute("aria-label", `${title(meta)}, ${nameOf(key)}, ${span(meta.window.start, meta.window.end)}`);
}

/** Columns and rows for so many tiles: the largest tiles that all fit, and on several screens those of a readable size. */
function layout(count, width, height) {
  const most = [Math.max(1, Math.floor(width / Math.max(LEAST[0], PART * Math.min(width, 2 * height)))), Math.max(1, Math.floor(height / Math.max(LEAST[1], PART * height)))];
  let best = [...most, 0];
  for (let columns = 1; columns <= most[0]; columns++) {
    const rows = Math.ceil(Math.max(1, count) / columns);
    if (rows > most[1]) continue;
    const size = Math.min(width / columns / 1.6, height / rows);
    if (size > best[2]) best = [columns, rows, size];
  }
  return best;
}
