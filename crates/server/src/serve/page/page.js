// The page: its state, and the parts that draw it.

import { Ask } from "./ask.js";
import { drawAbout, drawBadge, drawFlags, drawGauge } from "./about.js";
import { parse } from "./bernstream.js";
import { drawChoices, drawHeading, drawMissing } from "./choices.js";
import { Counts, countsCsv } from "./counts.js";
import { byId, say } from "./dom.js";
import { fileName, png, save, saveFrom } from "./download.js";
import { listen } from "./feed.js";
import { line as lineOf, plane } from "./grid.js";
import { Keys, MOST_OTHERS } from "./keys.js";
import { hasPlot, isByKey, kindOf } from "./kinds.js";
import { countedSynopsis } from "./keytable.js";
import { drawLegend } from "./legend.js";
import { Address, isUntil, read as readAddress } from "./link.js";
import { titleOf } from "./names.js";
import { OverTime } from "./overtime.js";
import { Quantiles } from "./quantiles.js";
import { RecordRange } from "./range.js";
import { ofLine, ofPlane } from "./sentence.js";
import { Smoothing } from "./smoothing.js";
import { Spending } from "./spending.js";
import { noiseAndForm, SIDE, Stage } from "./stage.js";
import { drawStatus, judge, note } from "./status.js";
import { isOfOneScale, Store, whyApart } from "./store.js";
import { answersCsv, csv, drawAnswerTable, drawTable } from "./table.js";
import { Time } from "./time.js";
import { isTables, Views } from "./views.js";
import { Wall } from "./wall.js";

const store = new Store();
const source = { name: "", connected: true, why: null };
/** The view: `window` is a synopsis, null for the newest; `until` is the end of one that a link asks for and that is not here yet. */
const chosen = { pipeline: undefined, release: undefined, key: undefined, window: null, until: undefined, at: [], isMoved: false, others: [], regions: undefined, view: undefined, wall: undefined };
let connection = "connecting";
let clockAhead = 0;
let announced = { id: "", time: 0 };
let isWaiting = false;

const stage = new Stage(byId("stage"), (to) => {
  for (const [axis, x] of Object.entries(to)) chosen.at[axis] = x;
  chosen.isMoved = true;
  adjust();
}, (ends) => range.select(sourceOf(look().entry).meta, ends));
const ask = new Ask(byId("questions"), () => drawNumbers(look()));

/** What was published of an entry, whatever of it is shown. */
const sourceOf = (entry) => entry?.source ?? entry;

const views = new Views();
const smoothing = new Smoothing(views, adjust);
const range = new RecordRange(adjust);
const quantiles = new Quantiles(draw);
const time = new Time((index) => {
  const { series } = look() ?? { series: [] };
  chosen.window = index === null ? null : sourceOf(series[index])?.synopsis ?? null;
  chosen.until = undefined;
  adjust();
});
const overTime = new OverTime(chooseWindow, adjust);
const counts = new Counts(chooseWindow, adjust);
const keyList = new Keys((key) => {
  const { pipeline, release } = look();
  choose(pipeline, release, key);
}, (key, isOn) => {
  const others = chosen.others.filter((one) => one !== key);
  chosen.others = isOn ? [...others, key].slice(-MOST_OTHERS) : others;
  step();
}, draw);

const spending = new Spending(draw);
const wall = new Wall(store, views, ({ pipeline, release, key }) => {
  chosen.view = undefined;
  choose(pipeline, release, key);
});

// ---- Current view ---------------------------------------------------------------------------------------------------

/** What is chosen of `all`, or the fallback: that becomes the choice only if there was none, as what was chosen may still arrive. */
function pick(name, all, fallback) {
  if (all.includes(chosen[name])) return chosen[name];
  chosen[name] ??= fallback;
  return fallback;
}

/** What releases are chosen by: their declared titles, or their names where there is none or two have the same. */
function titlesOf(pipeline, releases) {
  const titles = releases.map((one) => titleOf(store.series(pipeline, one, store.keys(pipeline, one)[0]).at(-1).meta));
  return releases.map((one, i) => (titles[i] && titles.indexOf(titles[i]) === titles.lastIndexOf(titles[i]) ? titles[i] : one));
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
  if (chosen.until !== undefined) {
    const wanted = series.findLast(({ meta }) => isUntil(chosen.until, meta));
    if (wanted) Object.assign(chosen, { window: sourceOf(wanted).synopsis, until: undefined });
  }
  const found = series.findIndex((entry) => sourceOf(entry).synopsis === chosen.window);
  const index = found < 0 ? series.length - 1 : found;
  const entry = series[index];
  const { domain } = entry.meta;
  const fits = chosen.at.length === domain.length && domain.every(({ min, max }, i) => chosen.at[i] >= min && chosen.at[i] <= max);
  if (!fits) Object.assign(chosen, { at: domain.map(({ min, max }) => (min + max) / 2), isMoved: false });
  // The previous window, if it has the same function: a changed configuration is not a change of the records.
  const previous = series[index - 1];
  const apart = previous && whyApart(entry.meta, previous.meta);
  const before = apart ? undefined : previous;
  const alike = series.filter(({ meta }) => isOfOneScale(meta, entry.meta));
  const seriesOf = (one) => store.series(pipeline, release, one).map((own) => views.of(own)).filter(({ meta }) => isOfOneScale(meta, entry.meta));
  // The same window of another key.
  const entryOf = (one) => (one === key ? entry : views.of(store.series(pipeline, release, one).findLast(({ meta }) => isUntil(entry.meta.window.end, meta))));
  const laid = domain.length > 1 || !hasPlot(entry.meta) ? [] : chosen.others.filter((one) => one !== key && keys.includes(one)).slice(0, MOST_OTHERS);
  const others = laid.map((one) => ({ key: one, entry: entryOf(one) })).filter((one) => one.entry && isOfOneScale(one.entry.meta, entry.meta));
  return {
    entryOf, others, scaleWith: others.flatMap((one) => seriesOf(one.key)),
    pipeline, release, key, pipelines, releases, titles: titlesOf(pipeline, releases), keys, series: alike, entry, before, apart, index: alike.indexOf(entry), isNewest: found < 0, at: chosen.at,
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
  const isWall = chosen.view === "wall";
  document.body.classList.toggle("on-wall", isWall);
  byId("wall").hidden = !isWall;
  if (isWall) drawWall();
  else drawPage();
}

function drawPage() {
  if (!store.isEmpty) drawLegend(look(), chosen.regions);
  const now = look();
  drawState(now);
  drawMissing(now, chosen);
  byId("all").hidden = !now;
  document.body.classList.toggle("empty", !now);
  if (!now) return;
  const { meta } = now.entry;
  drawChoices(now);
  drawFlags(meta);
  drawBadge(meta);
  drawGauge(meta);
  if (byId("about").open) drawAbout(sourceOf(now.entry).meta);
  drawHeading(meta);
  const isQuestions = kindOf(meta) === "moments";
  byId("stage").hidden = !hasPlot(meta);
  byId("questions").hidden = !isQuestions;
  try {
    if (isQuestions) {
      stage.forget();
      ask.draw(now);
    } else {
      ask.forget();
      if (hasPlot(meta)) stage.draw(now);
      else stage.forget();
    }
    counts.draw(now);
    smoothing.draw(now);
    range.draw(now);
    quantiles.draw(now);
    time.draw(now);
    overTime.draw(now);
    keyList.draw(now);
    time.drawMultiples(now);
    drawNumbers(now);
    spending.draw(now, Date.now() + clockAhead);
    announce(now);
    byId("all").dataset.shown = JSON.stringify([meta.release, meta.key, meta.window.start, meta.ledger.sequence]);
  } catch (error) {
    note(`${meta.release}, ${meta.window.start}`, `it cannot be drawn: ${error.message}`);
    console.error(error);
  }
}

function drawWall() {
  wall.draw({
    connection, source, now: Date.now() + clockAhead, wanted: chosen.wall,
    isCalm: window.matchMedia("(prefers-reduced-motion: reduce)").matches, isDark: window.matchMedia("(prefers-color-scheme: dark)").matches,
  });
  document.title = "bernstream";
}

/** The sentence below the plot, and the table if it is open. */
function drawNumbers(now) {
  if (!now) return;
  const { meta, synopsis } = now.entry;
  const isQuestions = kindOf(meta) === "moments";
  if (!isQuestions) say(byId("sentence"), sentence(now));
  else say(byId("sentence"), "Each answer has two errors: that of the noise, which is known in advance, and the truncation error, what these frequencies cannot represent of the query.");
  byId("table-home").hidden = !byId("table-switch").checked;
  if (byId("table-home").hidden) return;
  if (isQuestions) drawAnswerTable(ask);
  else if (isByKey(meta)) counts.drawTable(now);
  else drawTable({ entry: { meta, synopsis }, at: now.at });
}

function sentence({ entry, before, apart, at, isGhost }) {
  const { meta, synopsis } = entry;
  if (isByKey(meta)) return counts.sentence(entry);
  if (meta.domain.length > 1) return ofPlane(meta, plane(synopsis, at, SIDE), at, before && isGhost ? plane(before.synopsis, at, SIDE) : undefined);
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

/** The state of connection, source and schedule; for the newest window, whichever is shown. */
function drawState(now) {
  const meta = now?.series[now.series.length - 1].meta;
  drawStatus(judge({ connection, source, meta, now: Date.now() + clockAhead, isEmpty: !now }));
  say(byId("source"), source.name);
}

// ---- Server events --------------------------------------------------------------------------------------------------

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
      const document = read(text, (one) => one) ?? text;
      const synopsis = countedSynopsis(document) ?? parse(document);
      refuseFuture(synopsis.meta);
      if (store.add(synopsis, text)) spending.age();
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

/** Shows the window of an entry that was clicked. */
function chooseWindow(entry) {
  time.stop();
  const { series } = look();
  chosen.window = entry === series[series.length - 1] ? null : sourceOf(entry).synopsis;
  chosen.until = undefined;
  step();
}

function choose(pipeline, release, key) {
  time.stop();
  const { start } = chosen.window?.meta.window ?? {};
  const isOther = pipeline !== chosen.pipeline || release !== chosen.release;
  Object.assign(chosen, { pipeline, release, key, window: null, until: undefined });
  if (isOther) Object.assign(chosen, { others: [], regions: undefined });
  const { series } = look();
  // The same window for another key.
  if (start) chosen.window = sourceOf(series.find(({ meta }) => meta.window.start === start))?.synopsis ?? null;
  step();
}

/** The view as its address says it. */
function view() {
  if (chosen.view === "wall") return { view: "wall", release: chosen.wall };
  const now = look();
  if (!now) return undefined;
  const { meta } = sourceOf(now.entry);
  const own = range.of(meta);
  const { function: index, places } = isTables(meta) ? views.chosen(meta) : { function: 0, places: [] };
  return {
    release: chosen.release, key: chosen.key, pipeline: store.pipelines().length > 1 ? chosen.pipeline : undefined,
    until: chosen.until ?? (chosen.window ? chosen.window.meta.window.end : undefined), at: chosen.isMoved ? chosen.at : undefined,
    ...(isByKey(meta) ? counts.chosen : {}), others: chosen.others, range: own?.isOwn ? own : undefined, overtime: overTime.of, function: index || undefined,
    smoothing: places.some((place) => place > 0) ? places : undefined, regions: chosen.regions,
    switches: { previous: byId("ghost").checked, plausible: byId("plausible").checked, table: byId("table-switch").checked },
  };
}

/** The view is another: a step that the browser goes back from. */
function step() {
  address.step(view());
  draw();
}

/** The view has changed a little. */
function adjust() {
  const now = view();
  if (now) address.adjust(now);
  draw();
}

function follow(wanted) {
  time.stop();
  const isKept = (name) => wanted[name] ?? (wanted.release === undefined ? undefined : null);
  Object.assign(chosen, {
    pipeline: wanted.pipeline, release: wanted.release, key: isKept("key"), window: null, until: wanted.until,
    view: wanted.view, wall: wanted.view === "wall" ? wanted.release : undefined, at: wanted.at ?? [], isMoved: wanted.at !== undefined, others: wanted.others, regions: wanted.regions,
  });
  range.want(wanted.range);
  overTime.want(wanted.overtime);
  counts.want(wanted);
  views.want(wanted.function, wanted.smoothing);
  byId("ghost").checked = wanted.switches.previous;
  byId("plausible").checked = wanted.switches.plausible;
  byId("table-switch").checked = wanted.switches.table;
  draw();
}
const address = new Address(follow);
follow(readAddress(location.hash));

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
for (const id of ["ghost", "plausible", "table-switch"]) byId(id).addEventListener("change", adjust);
byId("regions").addEventListener("change", (event) => {
  chosen.regions = event.target.value;
  adjust();
});
byId("copy").addEventListener("click", async () => {
  address.flush();
  const found = await navigator.clipboard.writeText(location.href).then(() => "Link copied", () => "Copy it from the address bar");
  say(byId("copy"), found);
  setTimeout(() => say(byId("copy"), "Copy link"), 2500);
});
for (const [id, is] of [["wall-open", "wall"], ["wall-close", undefined]]) {
  byId(id).addEventListener("click", () => {
    Object.assign(chosen, { view: is, wall: undefined });
    step();
  });
}
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});

byId("gauge").addEventListener("click", () => {
  byId("spending").scrollIntoView();
  byId("spending").focus({ preventScroll: true });
});
for (const id of ["badge", "about-open"]) {
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
  const text = isByKey(meta) ? countsCsv(now.entry) : kindOf(meta) === "moments" ? answersCsv(ask) : csv(now);
  save(fileName(meta, "csv"), "text/csv", text);
});
byId("save-json").addEventListener("click", () => {
  const { entry } = look();
  save(fileName(entry.meta, "json"), "application/json", entry.text);
});
byId("save-png").addEventListener("click", () => {
  const now = look();
  const { meta } = now.entry;
  if (isByKey(meta)) return saveFrom(fileName(meta, "png"), counts.picture(now));
  const isAsked = kindOf(meta) === "moments";
  return saveFrom(fileName(meta, "png"), png(byId(isAsked ? "questions" : "stage"), meta, isAsked ? "" : noiseAndForm(now)));
});

const KEYS = {
  ArrowLeft: () => time.step(-1),
  ArrowRight: () => time.step(1),
  Home: () => time.end(false),
  End: () => time.end(true),
  " ": () => time.toggle(),
};
document.addEventListener("keydown", (event) => {
  if (chosen.view === "wall") {
    if (event.key === "Escape") byId("wall-close").click();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || byId("about").open || store.isEmpty) return;
  const { target } = event;
  const own = target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]");
  if (own || (event.key === " " && target.closest("button, a, summary, input")) || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

// ---- Redraw ---------------------------------------------------------------------------------------------------------

for (const id of ["all", "wall-tiles"]) new ResizeObserver(draw).observe(byId(id));
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.addEventListener("visibilitychange", draw);
// Windows become late as time passes.
setInterval(() => {
  if (chosen.view === "wall") return draw();
  const now = look();
  drawState(now);
  return drawMissing(now, chosen);
}, 1000);
draw();
