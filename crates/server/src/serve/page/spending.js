// Where the budget went and how long it lasts: at one glance, by release, by day, and as a table.

import { fitted, frame, drawAxes, hatching, rule, sheet, theme } from "./axes.js";
import { blockInWords, inWords, percent, standing, tableOf } from "./budget.js";
import { byId, element, say } from "./dom.js";
import { inSymbols } from "./price.js";
import { exact, instant, plural, shortStart, span } from "./words.js";

/** Milliseconds between two questions to the server. */
const REST = 15_000;
const MINUTE = 60_000;
const DAY = 86_400_000;
/** Releases with a colour of their own; the others share one. */
const COLOURS = 4;

export class Spending {
  #answer;
  #asked = -Infinity;
  #timer;
  #why;
  #isSeen = false;
  #isStale = true;
  #changed;
  /** What is drawn: the numbers change seldom, and the page is drawn with every move of the pointer. */
  #drawn;

  /** `changed()` is called when there is an answer to draw. Nothing is asked before it is looked at. */
  constructor(changed) {
    this.#changed = changed;
    new IntersectionObserver((entries) => {
      this.#isSeen = entries[entries.length - 1].isIntersecting;
      this.#ask();
    }).observe(byId("spending"));
    byId("spending-by").addEventListener("change", changed);
  }

  /** Something was published. */
  age() {
    this.#isStale = true;
    this.#ask();
  }

  #ask() {
    if (!this.#isSeen || !this.#isStale || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#fetch(), Math.max(100, this.#asked + REST - performance.now()));
  }

  async #fetch() {
    this.#asked = performance.now();
    this.#isStale = false;
    try {
      const response = await fetch("/api/v1/spending");
      if (!response.ok) throw new Error(`the server answers ${response.status}`);
      this.#answer = await response.json();
      this.#why = undefined;
    } catch (error) {
      this.#why = error.message;
      this.#isStale = true;
    }
    this.#timer = undefined;
    this.#drawn = undefined;
    this.#changed();
    if (this.#why === undefined) this.#ask();
  }

  draw({ pipeline }, now) {
    const isDark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    const state = [pipeline, byId("spending-by").value, byId("spending").clientWidth, window.devicePixelRatio, isDark, Math.floor(now / MINUTE)].join();
    if (state === this.#drawn) return;
    this.#drawn = state;
    const stands = this.#answer && standing(this.#answer, pipeline, now);
    const body = byId("spending-body");
    body.hidden = !stands;
    const home = byId("spending");
    home.dataset.state = stands?.state ?? "none";
    if (!stands) {
      const nothing = this.#answer ? "The windows that are kept say nothing of a budget." : "Asking the server \u2026";
      say(byId("spending-words"), this.#why ? `Where the budget went cannot be shown: ${this.#why}.` : nothing);
      return;
    }
    say(byId("spending-words"), inWords(stands));
    drawWhole(stands);
    drawReleases(stands);
    drawDays(stands);
    drawHint(stands, this.#drawTable(pipeline), this.#why);
  }

  /** Returns how many rows it has no room for. */
  #drawTable(pipeline) {
    const by = byId("spending-by").value;
    const { heads, rows, hidden } = tableOf(this.#answer, pipeline, by);
    const cell = (name, scope) => (text) => element(name, { scope, text });
    byId("spending-table").replaceChildren(
      element("caption", { class: "unseen", text: `What was charged, by ${by}` }),
      element("thead", {}, element("tr", {}, ...heads.map(cell("th", "col")))),
      element("tbody", {}, ...rows.map(([first, ...rest]) => element("tr", {}, cell("th", "row")(first), ...rest.map(cell("td"))))),
    );
    return hidden;
  }
}

const colourOf = (rank) => `of-${Math.min(rank, COLOURS)}`;
const wide = (part) => `${(100 * Math.min(1, Math.max(0, part))).toFixed(2)}%`;

function piece(name, part) {
  const own = element("span", { class: name });
  own.style.width = wide(part);
  return own;
}

/** The whole block as a bar: what each release spent, what is to come, and what is left. */
function drawWhole({ one, part, releases, rest, ahead, windows, isOwn }) {
  const left = Math.max(0, 1 - part);
  const coming = Math.min(ahead, left);
  byId("spending-whole").replaceChildren(
    ...(rest > 0 ? [piece("of-4", rest)] : []), ...releases.map((own, i) => piece(colourOf(i), own.part)), ...(coming > 0 ? [piece("ahead", coming)] : []),
  );
  const block = `${isOwn ? "The newest window" : "Block"}, ${blockInWords(one.block)}`;
  const to = windows > 0 ? `; forecast ${percent(part + coming)}` : "";
  say(byId("spending-block"), `${block}: ${inSymbols(one.spent)} of ${inSymbols(one.total)} spent, ${inSymbols(one.left)} left${to}`);
}

/** A line a release: its part of the total, and what it comes to. */
function drawReleases({ releases, rest, windows }) {
  const most = Math.max(rest, ...releases.map((own) => own.part + own.ahead)) || 1;
  const line = (name, words, ...pieces) => element("li", {}, element("span", { class: "of", text: name, title: name }),
    element("span", { class: "track", "aria-hidden": "true" }, ...pieces), element("span", { class: "amount", text: words }));
  const lines = releases.map((own, i) => {
    const ahead = windows > 0 ? `; forecast ${percent(own.part + own.ahead)}` : "";
    return line(own.release, `${inSymbols(own.charged)}: ${percent(own.part)} of the total${ahead}`, piece(colourOf(i), own.part / most), piece("ahead", own.ahead / most));
  });
  if (rest > 0) lines.push(line("windows that are not kept", `${percent(rest)} of the total`, piece("of-4", rest / most)));
  byId("spending-releases").replaceChildren(...lines);
}

/** Columns: what was charged a day, and what is to come. */
function drawDays(stands) {
  const { days, next, releases, one, isOwn, isCut, state } = stands;
  const isShown = !isOwn && (days.length > 1 || next.length > 1);
  const home = byId("spending-days");
  home.hidden = !isShown;
  if (!isShown) return;
  const all = [...days.map(({ day }) => day), ...next.map(({ day }) => day)];
  const [first, last] = [Math.min(...all), Math.max(...all) + DAY];
  const came = new Map(days.map((own) => [own.day, own]));
  const coming = new Map(next.map((own) => [own.day, own.part]));
  const high = Math.max(...all.map((day) => (came.get(day)?.part ?? 0) + (coming.get(day) ?? 0)), 0.01);
  const canvas = byId("spending-chart");
  const { context, width, height } = sheet(canvas);
  if (width < 20 || height < 20) return;
  const colours = theme();
  const of = [colours.curve, ...colours.others.map(({ line }) => line), colours.ghost];
  const x = { min: first, max: last, label: "" };
  const y = { min: 0, max: 100 * high * 1.08, label: "% of a block's total, by day (UTC)" };
  const room = frame(context, width, height, x, y, colours);
  room.xTicks.values = [];
  drawAxes(context, room, x, y, colours);
  const hatch = hatching(context, colours, 5);
  const rank = new Map(releases.map(({ release }, i) => [release, i]));
  for (const day of new Set(all)) {
    const gap = Math.min(3, (room.x(day + DAY) - room.x(day)) * 0.15);
    const [left, right] = [room.x(day) + gap, room.x(day + DAY) - gap];
    let at = 0;
    const box = (part, fill) => {
      const [low, top] = [room.y(100 * at), room.y(100 * (at + part))];
      context.fillStyle = fill;
      context.fillRect(left, top, Math.max(1, right - left), low - top);
      at += part;
      return { top, low };
    };
    const parts = [...(came.get(day)?.parts ?? [])].sort(([a], [b]) => (rank.get(a) ?? 99) - (rank.get(b) ?? 99));
    for (const [release, part] of parts) box(part, of[Math.min(rank.get(release) ?? COLOURS, COLOURS)]);
    if (!coming.has(day)) continue;
    const { top, low } = box(coming.get(day), hatch);
    context.strokeStyle = colours.hatch;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, top + 0.5, Math.max(1, right - left - 1), low - top);
  }
  drawDates(context, room, [...new Set(all)].sort((a, b) => a - b), colours);
  const end = { ends: ["exhausted", one.lasts_until], exhausted: ["exhausted", one.newest.end], lasts: ["block ends", one.block.end] }[state];
  if (end && !isCut) drawEnd(context, room, end[0], Math.min(new Date(end[1]).getTime(), last), colours);
  const charged = days.reduce((sum, { part }) => sum + part, 0);
  canvas.setAttribute("aria-label", `What was charged on ${plural(days.length, "day")} up to ${shortStart(days[days.length - 1]?.day ?? first, DAY)}, ${exact(100 * charged, 0.1)} % of a block's total in all, and what is to come on ${plural(next.length, "day")}. The table below has the numbers.`);
  byId("spending-legend").replaceChildren(
    ...releases.slice(0, COLOURS).map(({ release }, i) => key(colourOf(i), release)),
    ...(releases.length > COLOURS ? [key("of-4", `${releases.length - COLOURS} others`)] : []),
    ...(next.length > 0 ? [key("hatch", "to come, at the price of the newest window")] : []),
  );
}

const key = (name, text) => element("li", {}, element("span", { class: `swatch ${name}` }), element("span", { text }));

/** When it is exhausted or the block ends, on the side where there is room. */
function drawEnd(context, room, words, at, colours) {
  const px = Math.round(room.x(at)) - 0.5;
  context.lineWidth = 1.5;
  rule(context, px, room.top, px, room.bottom, colours.beyond);
  context.font = `600 12px ${colours.font}`;
  context.textBaseline = "bottom";
  const width = context.measureText(words).width;
  context.textAlign = "left";
  context.fillStyle = colours.beyond;
  context.fillText(words, Math.max(room.left, Math.min(px - width / 2, room.right - width)), room.top - 1);
}

function drawDates(context, room, days, colours) {
  context.font = `12px ${colours.font}`;
  context.textAlign = "center";
  context.textBaseline = "top";
  context.fillStyle = colours.soft;
  let last = -Infinity;
  for (const day of days) {
    const at = Math.min(Math.max((room.x(day) + room.x(day + DAY)) / 2, room.left + 18), room.right - 18);
    if (at - last < 58) continue;
    last = at;
    context.fillText(shortStart(day, DAY), at, room.bottom + 8);
  }
  context.font = `600 12px ${colours.font}`;
  context.fillStyle = colours.ink;
  context.fillText(fitted(context, span(days[0], days[days.length - 1] + DAY), room.right - room.left), (room.left + room.right) / 2, room.bottom + 25);
}

function drawHint({ state, isCut }, hidden, why) {
  const words = ["From the windows that are kept here, and nothing that was not published."];
  if (state === "lasts" || state === "ends") words.push("A reserve, a price that changes or the end of a share can stop windows earlier or later than this forecast.");
  words.push("Sums over several blocks are what was charged; what a unit lost is at most the total of its own block.");
  if (isCut) words.push("The forecast goes on beyond the days that are drawn.");
  if (hidden > 0) words.push(`The table has the newest rows; ${hidden} older ones are in /api/v1/spending.`);
  if (why) words.push(`The server could not be asked again: ${why}.`);
  say(byId("spending-hint"), words.join(" "));
}
