// The page: its state, and the parts that draw it.

import { Ask } from "./ask.js";
import { drawAbout, drawBadge, drawFlags, drawGauge } from "./about.js";
import { parse } from "./bernstream.js";
import { byId, element, say } from "./dom.js";
import { fileName, png, save } from "./download.js";
import { listen } from "./feed.js";
import { border, kindOf, title } from "./kinds.js";
import { ofLine, ofPlane, percent } from "./sentence.js";
import { isFlat, line as lineOf, plane } from "./grid.js";
import { isUnclear } from "./heat.js";
import { Quantiles } from "./quantiles.js";
import { RecordRange } from "./range.js";
import { Smoothing } from "./smoothing.js";
import { mapScale, SIDE, Stage } from "./stage.js";
import { drawStatus, drawUnreadable, judge } from "./status.js";
import { isOfOneScale, Store, whyApart } from "./store.js";
import { answersCsv, csv, drawAnswerTable, drawTable } from "./table.js";
import { Time } from "./time.js";
import { Views } from "./views.js";
import { duration, span } from "./words.js";

const store = new Store();
const source = { name: "", connected: true, why: null };
const unreadable = { count: 0, last: [] };
const chosen = { pipeline: undefined, release: undefined, key: undefined, window: null, at: [] };
let connection = "connecting";
let clockAhead = 0;
let announced = { id: "", time: 0 };
let isWaiting = false;
let shape = "";

const stage = new Stage(byId("stage"), (to) => {
  for (const [axis, x] of Object.entries(to)) chosen.at[axis] = x;
  draw();
});
const ask = new Ask(byId("questions"), () => drawNumbers(look()));

/** What was published of an entry, whatever of it is shown. */
const sourceOf = (entry) => entry?.source ?? entry;

const views = new Views();
const smoothing = new Smoothing(views, draw);
const range = new RecordRange(draw);
const quantiles = new Quantiles(draw);
const time = new Time((index) => {
  const { series } = look() ?? { series: [] };
  chosen.window = index === null ? null : sourceOf(series[index])?.synopsis ?? null;
  draw();
});

// ---- Current view ---------------------------------------------------------------------------------------------------

/** What is chosen of `all`, or the fallback: that becomes the choice only if there was none, as what was chosen may still arrive. */
function pick(name, all, fallback) {
  if (all.includes(chosen[name])) return chosen[name];
  chosen[name] ??= fallback;
  return fallback;
}

/** Everything that drawing needs; undefined until there is a synopsis. */
function look() {
  if (store.isEmpty) return undefined;
  const pipelines = store.pipelines();
  const pipeline = pick("pipeline", pipelines, pipelines.find((one) => store.releases(one).includes(chosen.release)) ?? pipelines[0]);
  const releases = store.releases(pipeline);
  const release = pick("release", releases, releases[0]);
  const keys = store.keys(pipeline, release);
  const key = pick("key", keys, keys[0]);
  const series = store.series(pipeline, release, key).map((entry) => views.of(entry));
  const found = series.findIndex((entry) => sourceOf(entry).synopsis === chosen.window);
  const index = found < 0 ? series.length - 1 : found;
  const entry = series[index];
  const { domain } = entry.meta;
  const fits = chosen.at.length === domain.length && domain.every(({ min, max }, i) => chosen.at[i] >= min && chosen.at[i] <= max);
  if (!fits) chosen.at = domain.map(({ min, max }) => (min + max) / 2);
  // The previous window, if it has the same function: a changed configuration is not a change of the records.
  const previous = series[index - 1];
  const apart = previous && whyApart(entry.meta, previous.meta);
  const before = apart ? undefined : previous;
  const alike = series.filter(({ meta }) => isOfOneScale(meta, entry.meta));
  return {
    pipeline, release, key, pipelines, releases, keys, series: alike, entry, before, apart, index: alike.indexOf(entry), isNewest: found < 0, at: chosen.at,
    range: range.of(sourceOf(entry).meta),
    isGhost: byId("ghost").checked, isPlausible: byId("plausible").checked, isRegions: byId("regions").value === "regions",
  };
}

/** Draws at most once per frame. */
function draw() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    drawNow();
  });
  // A hidden page has no frames, but its title is still visible.
  if (document.visibilityState === "hidden") {
    isWaiting = false;
    drawNow();
  }
}

function drawNow() {
  if (!store.isEmpty) drawSwitches(look());
  const now = look();
  drawState(now);
  byId("all").hidden = !now;
  document.body.classList.toggle("empty", !now);
  if (!now) return;
  const { meta } = now.entry;
  drawChoices(now);
  drawFlags(meta);
  drawBadge(meta);
  drawGauge(meta);
  if (byId("about").open) drawAbout(sourceOf(now.entry).meta);
  say(byId("where"), `${meta.pipeline} \u00b7 ${meta.release}`);
  say(byId("title"), title(meta));
  say(byId("key-title"), meta.key === null || meta.key === undefined ? "" : meta.key);
  say(byId("when"), `${span(meta.window.start, meta.window.end)} (${duration(new Date(meta.window.end) - new Date(meta.window.start))})`);
  document.title = `${meta.key ?? meta.release} \u00b7 bernstream`;
  const isQuestions = kindOf(meta) === "moments";
  byId("stage").hidden = isQuestions;
  byId("questions").hidden = !isQuestions;
  try {
    if (isQuestions) {
      stage.forget();
      ask.draw(now);
    } else {
      ask.forget();
      stage.draw(now);
    }
    smoothing.draw(now);
    range.draw(now);
    quantiles.draw(now);
    time.draw(now);
    time.drawMultiples(now);
    drawNumbers(now);
    announce(now);
    byId("all").dataset.shown = JSON.stringify([meta.release, meta.key, meta.window.start, meta.ledger.sequence]);
  } catch (error) {
    note(`${meta.release}, ${meta.window.start}`, `it cannot be drawn: ${error.message}`);
    console.error(error);
  }
}

/** The sentence below the plot, and the table if it is open. */
function drawNumbers(now) {
  if (!now) return;
  const { meta, synopsis } = now.entry;
  const isQuestions = kindOf(meta) === "moments";
  if (!isQuestions) {
    say(byId("sentence"), sentence(now));
  } else say(byId("sentence"), "Each answer has two errors: that of the noise, which is known in advance, and the truncation error, what these frequencies cannot represent of the query.");
  byId("table-home").hidden = !byId("table-switch").checked;
  if (byId("table-home").hidden) return;
  if (isQuestions) drawAnswerTable(ask);
  else drawTable({ entry: { meta, synopsis }, at: now.at });
}

function sentence({ entry, before, apart, at, isGhost }) {
  const { meta, synopsis } = entry;
  if (meta.domain.length > 1) return ofPlane(meta, plane(synopsis, at, SIDE), at);
  return ofLine(meta, lineOf(synopsis, 0, at), before && isGhost ? lineOf(before.synopsis, 0, at) : undefined,
    isGhost ? apart : undefined);
}

/** Announces a new window to screen readers, once per window and not too often. */
function announce(now) {
  if (!now.isNewest || time.isPlaying || kindOf(now.entry.meta) === "moments") return;
  const { meta } = now.entry;
  const id = JSON.stringify([meta.pipeline, meta.release, meta.key, meta.window.start]);
  if (id === announced.id || Date.now() - announced.time < 15_000) return;
  announced = { id, time: Date.now() };
  say(byId("spoken"), sentence(now));
}

function drawSwitches(now) {
  const { meta } = now.entry;
  const isQuestions = kindOf(meta) === "moments";
  // By default classes are shown as regions and probabilities as values.
  const own = JSON.stringify([meta.pipeline, meta.release, kindOf(meta)]);
  if (shape !== own) {
    shape = own;
    byId("regions").value = kindOf(meta) === "probability" ? "values" : "regions";
  }
  for (const id of ["ghost", "plausible"]) byId(id).closest("label").hidden = isQuestions;
  byId("regions").closest("label").hidden = !border(meta) || meta.domain.length === 1;
  byId("legend").hidden = isQuestions;
  const isMap = !isQuestions && meta.domain.length > 1;
  const sided = border(meta);
  say(byId("wide-words"), `${percent(meta)} simultaneous band (all points together)`);
  say(byId("narrow-words"), `${percent(meta)} pointwise band (a single point)`);
  say(byId("above-words"), sided?.above ?? "");
  say(byId("below-words"), sided?.below ?? "");
  const scale = isMap ? mapScale(now) : undefined;
  const drawn = isQuestions ? undefined : isMap ? plane(now.entry.synopsis, now.at, SIDE) : lineOf(now.entry.synopsis, 0, now.at);
  const isBlind = scale && (scale.steps === 1 || isFlat(drawn));
  for (const item of document.querySelectorAll("#legend [data-for]")) {
    const wanted = item.dataset.for;
    item.hidden = !((wanted === "map" && scale?.tellsApart && !isBlind)
      || (wanted === "few" && scale && !scale.tellsApart && !isBlind)
      || (wanted === "flat" && isBlind)
      || (wanted === "range" && now.range)
      || (wanted === "unknown" && !isMap && drawn?.wide.some((half) => half === Infinity))
      || (wanted === "unclear" && scale && !isBlind && isUnclear(drawn, scale).includes(true))
      || (["above", "below"].includes(wanted) && sided)
      || (wanted === "ghost" && now.isGhost && now.before)
      || (wanted === "plausible" && now.isPlausible)
      || (wanted === "narrow" && !now.isPlausible)
      || (wanted === "close" && sided && !isBlind)
      || (wanted === "none" && isMap && !isBlind && kindOf(meta) === "density"));
  }
}

function drawChoices({ pipeline, release, key, pipelines, releases, keys }) {
  fillSelect(byId("pipeline"), pipelines, pipeline);
  fillSelect(byId("release"), releases, release);
  fillSelect(byId("key"), keys, key);
  byId("pipeline").closest("label").hidden = pipelines.length < 2;
  byId("release").closest("label").hidden = releases.length < 2;
  byId("key").closest("label").hidden = keys.length < 2;
}

function fillSelect(select, values, value) {
  const names = values.map((one) => one ?? "(all records)");
  if (names.join("\n") !== [...select.options].map((option) => option.textContent).join("\n")) {
    select.replaceChildren(...names.map((text, i) => element("option", { value: i, text })));
  }
  select.selectedIndex = values.indexOf(value);
}

/** The state of connection, source and schedule; for the newest window, whichever is shown. */
function drawState(now) {
  const meta = now?.series[now.series.length - 1].meta;
  drawStatus(judge({ connection, source, meta, now: Date.now() + clockAhead, isEmpty: !now }));
  say(byId("source"), source.name);
}

// ---- Server events --------------------------------------------------------------------------------------------------

/** Limits on unreadable messages and their texts: anyone who can write to the topic can write many. */
const MOST_UNREADABLE = 20;
const MOST_TEXT = 300;
const truncate = (text) => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)} \u2026` : text);

function note(...texts) {
  const [where, why] = texts.map(truncate);
  const { last } = unreadable;
  if (last.some((one) => one.where === where && one.why === why)) return;
  unreadable.count += 1;
  last.push({ where, why });
  if (last.length > MOST_UNREADABLE) last.shift();
  drawUnreadable(unreadable.count, last);
}

/** The tolerated clock error, ms. A window further in the future would stay the newest one until then. */
const MOST_AHEAD = 60_000;

function refuseFuture({ published, window }) {
  const limit = Date.now() + clockAhead + MOST_AHEAD;
  for (const time of [published, window.end]) {
    if (!(new Date(time).getTime() <= limit)) throw new Error(`its time is ${time}, which lies in the future by the clock of the server`);
  }
}

function read(text, make) {
  try {
    return make(JSON.parse(text));
  } catch {
    return undefined;
  }
}

const handlers = {
  hello: (text) => read(text, ({ now, source: name, version }) => {
    clockAhead = new Date(now).getTime() - Date.now() || 0;
    Object.assign(source, { name: String(name ?? ""), connected: true, why: null });
    say(byId("version"), version ? `bernstream ${version}` : "");
  }),
  synopsis: (text) => {
    try {
      const synopsis = parse(text);
      refuseFuture(synopsis.meta);
      store.add(synopsis, text);
    } catch (error) {
      note("a message from the server", error.message);
    }
  },
  unreadable: (text) => read(text, ({ where, why }) => note(String(where), String(why))),
  source: (text) => read(text, ({ connected, why }) => Object.assign(source, { connected: connected !== false, why })),
};

listen("/api/v1/events", (kind, text) => {
  handlers[kind](text);
  draw();
}, (state) => {
  connection = state;
  draw();
});

// ---- User input -----------------------------------------------------------------------------------------------------

function choose(pipeline, release, key) {
  time.stop();
  const { start } = chosen.window?.meta.window ?? {};
  Object.assign(chosen, { pipeline, release, key, window: null });
  const { series } = look();
  // The same window for another key.
  if (start) chosen.window = sourceOf(series.find(({ meta }) => meta.window.start === start))?.synopsis ?? null;
  remember();
  draw();
}

/** The selection is kept in the address, so that a wall display can be set up once. */
function remember() {
  const about = new URLSearchParams({ release: chosen.release });
  if (chosen.key !== null && chosen.key !== undefined) about.set("key", chosen.key);
  if (store.pipelines().length > 1) about.set("pipeline", chosen.pipeline);
  history.replaceState(null, "", `#${about}`);
}

const wanted = new URLSearchParams(location.hash.slice(1));
if (wanted.has("release")) {
  Object.assign(chosen, { pipeline: wanted.get("pipeline") ?? undefined, release: wanted.get("release"), key: wanted.get("key") });
}

/** Keeps the key if the release has it. */
function chooseRelease(pipeline, release) {
  const keys = store.keys(pipeline, release);
  choose(pipeline, release, keys.includes(chosen.key) ? chosen.key : keys[0]);
}

byId("pipeline").addEventListener("change", (event) => {
  const pipeline = look().pipelines[event.target.selectedIndex];
  const releases = store.releases(pipeline);
  chooseRelease(pipeline, releases.includes(chosen.release) ? chosen.release : releases[0]);
});
byId("release").addEventListener("change", (event) => {
  const { pipeline, releases } = look();
  chooseRelease(pipeline, releases[event.target.selectedIndex]);
});
byId("key").addEventListener("change", (event) => {
  const { pipeline, release, keys } = look();
  choose(pipeline, release, keys[event.target.selectedIndex]);
});
for (const id of ["ghost", "plausible", "regions", "table-switch"]) byId(id).addEventListener("change", draw);

for (const id of ["badge", "gauge", "about-open"]) {
  byId(id).addEventListener("click", () => {
    const now = look();
    if (!now) return;
    drawAbout(sourceOf(now.entry).meta);
    byId("about").showModal();
  });
}
byId("about-close").addEventListener("click", () => byId("about").close());
byId("about").addEventListener("click", (event) => event.target === byId("about") && byId("about").close());

byId("save-csv").addEventListener("click", () => {
  const now = look();
  const { meta } = now.entry;
  save(fileName(meta, "csv"), "text/csv", kindOf(meta) === "moments" ? answersCsv(ask) : csv(now));
});
byId("save-json").addEventListener("click", () => {
  const { entry } = look();
  save(fileName(entry.meta, "json"), "application/json", entry.text);
});
byId("save-png").addEventListener("click", async () => {
  const { meta } = look().entry;
  const home = kindOf(meta) === "moments" ? byId("questions") : byId("stage");
  save(fileName(meta, "png"), "image/png", await png(home, meta));
});

const KEYS = {
  ArrowLeft: () => time.step(-1),
  ArrowRight: () => time.step(1),
  Home: () => time.end(false),
  End: () => time.end(true),
  " ": () => time.toggle(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("about").open || store.isEmpty) return;
  const { target } = event;
  const own = target.closest("input, select, textarea, [contenteditable]");
  if (own || (event.key === " " && target.closest("button, a, summary")) || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

// ---- Redraw ---------------------------------------------------------------------------------------------------------

new ResizeObserver(draw).observe(byId("all"));
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.addEventListener("visibilitychange", draw);
// Windows become late as time passes.
setInterval(() => drawState(look()), 1000);
draw();
