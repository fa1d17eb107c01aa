// Counts by key: the keys of a window as bars with their intervals, and one of them over time.

import { roundOut } from "./axes.js";
import { drawBars, heightOf } from "./bars.js";
import { byId, element, say } from "./dom.js";
import { png } from "./download.js";
import { absenceInWords, barScale, capsInWords, droppedInWords, foundInWords, marginInWords, ofKeys, readingName, readingOf, shownKey, shownRow, shownRows } from "./keyrows.js";
import { isLocation } from "./keytable.js";
import { isByKey } from "./kinds.js";
import { drawChart, shownWindow } from "./overtime.js";
import { capital } from "./sentence.js";
import { csvText, fill } from "./table.js";
import { instant, nearly, plural, span } from "./words.js";

/** Keys that are shown before all are asked for. */
const FEW = 10;
/** From so many keys on there is a field to find one. */
const MANY = 12;
/** The most windows of the chart. */
const WINDOWS = 200;
/** The text and width of a picture that is saved, in CSS pixels. */
const PICTURE = { size: 15, width: 900 };

export class Counts {
  #changed;
  #chosen = { by: undefined, row: undefined, part: undefined };
  /** The key over time of each release where none was chosen: the largest of the window that was shown first. */
  #first = new Map();
  #isAll = false;
  #signature = "";
  #room;
  #shown = [];

  /** `choose(entry)` is called with the window that is clicked, `changed()` when another key or number is wanted. */
  constructor(choose, changed) {
    this.#changed = changed;
    byId("counted-by").addEventListener("change", (event) => {
      this.#chosen.by = event.target.value;
      changed();
    });
    byId("counted-part").addEventListener("change", (event) => {
      this.#chosen.part = event.target.value || undefined;
      changed();
    });
    byId("counted-find").addEventListener("input", changed);
    byId("counted-all").addEventListener("click", () => {
      this.#isAll = !this.#isAll;
      changed();
    });
    byId("counted-rows").addEventListener("keydown", (event) => walk(event));
    byId("counted-chart").addEventListener("click", (event) => {
      const found = shownWindow(this.#room, this.#shown, event);
      if (found) choose(found.entry);
    });
  }

  /** The number, the key and the column of sums that a link asks for. */
  want({ by, row, part }) {
    this.#chosen = { by, row, part };
  }

  /** The number, the key and the column of sums that were chosen. */
  get chosen() {
    return this.#chosen;
  }

  /** Draws the keys of the window, or hides them where there are none. */
  draw(look) {
    const { meta } = look.entry;
    const isShown = isByKey(meta);
    byId("counted").hidden = !isShown;
    byId("counted-time").hidden = !isShown;
    if (!isShown) return;
    const synopsis = this.#summed(look.entry.synopsis);
    const reading = readingOf(synopsis, this.#chosen.by);
    const rows = shownRows(synopsis, reading);
    const row = this.#rowOf(meta, rows, look.series);
    drawParts(look.entry.synopsis.table, this.#chosen.part);
    this.#drawRows({ ...look.entry, synopsis }, rows, reading, row);
    say(byId("counted-caps"), `${capsInWords(meta)}${marginInWords(meta, look.entry.synopsis.table, this.#chosen.part)}`);
    const dropped = droppedInWords(meta, look.entry.synopsis.table);
    byId("counted-dropped").hidden = dropped === "";
    say(byId("counted-dropped"), dropped);
    const found = foundInWords(meta, look.entry.synopsis.table);
    byId("counted-found").hidden = found === "";
    say(byId("counted-found"), found);
    byId("counted-table").hidden = found !== "" && rows.length === 0;
    this.#drawTime(look, reading, row);
  }

  /** The sentence for a window. */
  sentence({ meta, synopsis: whole }) {
    const synopsis = this.#summed(whole);
    const reading = readingOf(synopsis, this.#chosen.by);
    const found = foundInWords(meta, whole.table);
    return `${found}${found && " "}${ofKeys(meta, shownRows(synopsis, reading), reading)}`;
  }

  /** Fills the table of the page: the key that was chosen, window by window. */
  drawTable({ entry: { meta, synopsis: whole }, series }) {
    const synopsis = this.#summed(whole);
    const reading = readingOf(synopsis, this.#chosen.by);
    const row = this.#rowOf(meta, shownRows(synopsis, reading), series);
    if (row === undefined) return fill(foundInWords(meta, whole.table), [], []);
    fill(`${capital(readingName(meta, reading))} of ${shownKey(row)} in each window, rounded to the noise; lower and upper cover the noise of one number with 95 % probability`,
      ["from", "to", "value", "lower to upper"],
      this.#rowOverTime(series, reading, row).map(({ entry, words, interval }) => [instant(entry.meta.window.start), instant(entry.meta.window.end), words, interval]));
  }

  /** The rows as a picture in a data URL. */
  picture({ entry: { meta, synopsis: whole } }) {
    const synopsis = this.#summed(whole);
    const reading = readingOf(synopsis, this.#chosen.by);
    const rows = shownRows(synopsis, reading);
    const said = foundInWords(meta, whole.table);
    const canvas = element("canvas");
    const home = element("div", { class: "counted-sheet" }, canvas);
    home.style.width = `${PICTURE.width}px`;
    canvas.style.height = `${heightOf(Math.max(rows.length, 1), PICTURE.size)}px`;
    byId("counted").append(home);
    drawBars(canvas, rows, reading, PICTURE.size);
    const found = png(home, meta, `${capital(readingName(meta, reading))}, with 95 % intervals for the noise; what the caps leave out of a user is not in these numbers. ${said}`);
    home.remove();
    return found;
  }

  /** A synopsis with its sums by the chosen column in place of its table, where it has them. */
  #summed({ meta, table }) {
    return { meta, table: table.margin(this.#chosen.part) };
  }

  /** The key over time: of keys that were found also one that this window lacks. Undefined where there is none. */
  #rowOf({ pipeline, release }, rows, series) {
    const has = (key) => key !== undefined && (rows.some((one) => one.key === key) || series.some(({ synopsis: { table } }) => table.found && table.keys.includes(key)));
    if (has(this.#chosen.row)) return this.#chosen.row;
    const id = JSON.stringify([pipeline, release, this.#chosen.part]);
    if (!has(this.#first.get(id))) this.#first.set(id, rows[0]?.key);
    return this.#first.get(id);
  }

  #drawRows({ meta, synopsis, name }, rows, reading, chosen) {
    drawReadings(meta, synopsis.table.readings, reading);
    byId("counted-find").hidden = rows.length <= MANY;
    const wanted = byId("counted-find").value.trim().toLowerCase();
    const found = rows.filter((row) => row.name.toLowerCase().includes(wanted));
    const shown = this.#isAll ? found : found.slice(0, FEW);
    const all = byId("counted-all");
    all.hidden = found.length <= FEW;
    all.setAttribute("aria-expanded", this.#isAll);
    say(all, this.#isAll ? `Show the largest ${FEW}` : `Show all ${found.length}`);
    say(byId("counted-caption"), `${capital(readingName(meta, reading))} by key. ${ofKeys(meta, rows, reading)}`);
    say(byId("counted-number"), readingName(meta, reading));
    say(byId("counted-none"), found.length === 0 && rows.length > 0 ? `No key has this in its name. ${absenceInWords(meta, synopsis.table)}` : "");
    const signature = JSON.stringify([meta.pipeline, meta.release, name, reading, this.#chosen.part, wanted, this.#isAll, chosen]);
    if (signature === this.#signature) return;
    this.#signature = signature;
    const scale = barScale(rows, reading);
    const home = byId("counted-rows");
    const focused = home.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    home.replaceChildren(...shown.map((row) => this.#item(row, reading, scale, row.key === chosen)));
    const buttons = [...home.querySelectorAll("button")];
    const first = buttons.find((button) => button.getAttribute("aria-pressed") === "true") ?? buttons[0];
    for (const button of buttons) button.tabIndex = button === first ? 0 : -1;
    // Focus stays with its key.
    if (focused !== undefined) buttons.find((button) => button.dataset.key === focused)?.focus();
  }

  #item(row, reading, scale, isChosen) {
    const button = element("button", {
      type: "button", class: "counted-key", "aria-pressed": String(isChosen), "data-key": row.key, text: row.name, title: `${row.name} over time${row.until ? `; published until ${instant(row.until)}` : ""}`,
      onclick: () => {
        this.#chosen.row = row.key;
        this.#changed();
      },
    });
    return element("tr", { class: row.isFaint ? "faint" : undefined },
      element("th", { scope: "row" }, button, row.isNew ? element("span", { class: "new", text: "new" }) : undefined), element("td", { "aria-hidden": "true" }, bar(row, reading, scale)),
      element("td", { class: "number", text: row.words }), element("td", { class: "ends", text: row.interval }));
  }

  #drawTime({ entry, series }, reading, row) {
    const { meta } = entry;
    const end = Math.max(series.indexOf(entry) + 1, Math.min(series.length, WINDOWS));
    this.#shown = this.#rowOverTime(series.slice(Math.max(0, end - WINDOWS), end), reading, row);
    byId("counted-time").hidden = row === undefined || this.#shown.length < 2;
    if (byId("counted-time").hidden) return;
    const name = readingName(meta, reading);
    say(byId("counted-place"), `${name} of ${shownKey(row)}`);
    const canvas = byId("counted-chart");
    const known = this.#shown.filter(({ ends }) => ends);
    this.#room = drawChart(canvas, this.#shown, entry, name, lineScale(known, reading));
    const own = this.#shown.find((one) => one.entry === entry);
    canvas.setAttribute("aria-label", `${capital(name)} of ${shownKey(row)} in ${plural(this.#shown.length, "window")}, each with its interval. In this window, ${span(meta.window.start, meta.window.end)}: ${own.words}, ${own.interval}.`);
    const outside = Math.floor(known.length * 0.05 + 1e-9);
    const many = outside > 0 ? ` Of ${known.length} windows, about ${outside} may lie outside it.` : "";
    const shared = meta.panes?.step === undefined ? "" : " Neighbouring windows share records and noise.";
    say(byId("counted-hint"), `The interval holds with 95\u00a0% probability for one window.${many}${shared} Choose a key in the table above; click a window to go there.`);
  }

  /** A key window by window, as `shownRow` says it; without the windows that lack the key or the number. Of keys that were found those are gaps. */
  #rowOverTime(series, reading, key) {
    return series.flatMap((entry) => {
      const { table } = this.#summed(entry.synopsis);
      const place = table.keys.indexOf(key);
      if (place < 0 && table.found) {
        const { absentBelow } = table.found;
        return [{ entry, words: "not here", interval: absentBelow === null ? "unknown" : `fewer than about ${nearly(absentBelow)}`, value: null, ends: null, narrow: Infinity, inner: null }];
      }
      if (place < 0 || !table.readings.includes(reading)) return [];
      const row = shownRow(table, reading, { key, place, found: table.estimate(reading, place) });
      return [{ ...row, entry, narrow: row.ends ? (row.ends[1] - row.ends[0]) / 2 : Infinity, inner: row.ends }];
    });
  }
}

/** The columns whose sums can be chosen. */
function drawParts({ keyColumns, sums }, part) {
  const select = byId("counted-part");
  select.closest("label").hidden = sums.length === 0 || keyColumns.length === 0;
  const names = keyColumns.map(shownKey);
  if (names.join("\n") !== [...select.options].slice(1).map((option) => option.textContent).join("\n")) {
    const options = keyColumns.map((column, i) => element("option", { value: column, text: names[i] }));
    select.replaceChildren(element("option", { value: "", text: "every key" }), ...options);
  }
  const isChosen = keyColumns.includes(part) && sums.length > 0;
  select.value = isChosen ? part : "";
  say(byId("counted-head"), isChosen ? shownKey(part) : "key");
}

/** The scale of a line, in round numbers: from 0 unless all of it is so far from there that its intervals could not be seen. */
function lineScale(rows, reading) {
  const ends = rows.flatMap((row) => row.ends);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  if (ends.length > 0 && low > high / 2) return roundOut(low, high > low ? high : low + 1);
  const { min, max } = barScale(rows, reading);
  return roundOut(min, max);
}

/** The numbers that can be chosen. */
function drawReadings(meta, readings, reading) {
  const select = byId("counted-by");
  select.closest("label").hidden = readings.length < 2;
  const names = readings.map((one) => readingName(meta, one));
  if (names.join("\n") !== [...select.options].map((option) => option.textContent).join("\n")) {
    select.replaceChildren(...readings.map((one, i) => element("option", { value: one, text: names[i] })));
  }
  select.value = reading;
}

/** A bar from 0, or a dot of a mean, and the interval as a whisker. */
function bar(row, reading, scale) {
  const home = element("span", { class: "key-bar" });
  if (!row.ends) return home;
  const [lower, upper] = row.ends;
  if (!isLocation(reading)) home.append(mark("amount", Math.min(row.value, 0), Math.max(row.value, 0), scale), mark("zero", 0, 0, scale));
  home.append(mark("whisker", lower, upper, scale), mark("value", row.value, row.value, scale));
  return home;
}

/** A mark between two values of a scale. */
function mark(name, from, to, { min, max }) {
  const own = element("span", { class: name });
  own.style.left = `${(100 * (from - min)) / (max - min)}%`;
  own.style.width = `${(100 * (to - from)) / (max - min)}%`;
  return own;
}

/** Arrows up and down go from key to key, one stop of the tab key for all; those to the sides change the window. */
function walk(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const buttons = [...byId("counted-rows").querySelectorAll("button")];
  const at = buttons.indexOf(event.target);
  if (!by || at < 0) return;
  event.preventDefault();
  const next = buttons[Math.min(Math.max(at + by, 0), buttons.length - 1)];
  for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
  next.focus();
}

/** All keys and numbers of a window as CSV, as published: programs round for themselves. What is unknown is empty. */
export function countsCsv({ synopsis: { table } }) {
  const lines = [["key", ...table.readings.flatMap((name) => [name, `${name}_lower`, `${name}_upper`]), ...(table.found ? ["new", "until"] : [])].join(",")];
  table.keys.forEach((key, place) => {
    const cells = table.readings.flatMap((reading) => {
      const found = table.estimate(reading, place);
      return found ? [found.value, found.lower, found.upper] : ["", "", ""];
    });
    const { isNew, until } = table.foundAt(place) ?? {};
    lines.push([csvText(key && shownKey(key)), ...cells, ...(table.found ? [isNew, until] : [])].join(","));
  });
  return `${lines.join("\r\n")}\r\n`;
}
