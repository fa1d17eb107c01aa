// Pipeline, release and key: what can be chosen, and what was asked for and is not there.

import { byId, element, say } from "./dom.js";
import { nameOf } from "./keys.js";
import { title } from "./kinds.js";
import { descriptionOf } from "./names.js";
import { duration, either, instant, span } from "./words.js";

/** Milliseconds in which the first synopses may still arrive. */
const PATIENCE = 1500;

/** What is shown: its title, key and window. */
export function drawHeading(meta) {
  const { start, end } = meta.window;
  say(byId("where"), `${meta.pipeline} \u00b7 ${meta.release}`);
  say(byId("title"), title(meta));
  say(byId("key-title"), meta.key ?? "");
  say(byId("description"), descriptionOf(meta));
  say(byId("when"), `${span(start, end)} (${duration(new Date(end) - new Date(start))})`);
  document.title = `${meta.key ?? meta.release} \u00b7 bernstream`;
}

/** What a link or a choice asks for and is not published. */
export function drawMissing(now, chosen) {
  const missing = [];
  if (now && chosen.release !== undefined && chosen.release !== now.release) missing.push(`release ${chosen.release}`);
  else if (now && chosen.key !== undefined && chosen.key !== now.key) missing.push(`key ${nameOf(chosen.key)}`);
  if (now && chosen.until !== undefined) missing.push(`window until ${instant(chosen.until)}`);
  const isEarly = performance.now() < PATIENCE;
  byId("missing").hidden = isEarly || missing.length === 0;
  if (byId("missing").hidden) return;
  const { release, key, entry: { meta } } = now;
  say(byId("missing"), `Not published: ${either(missing, "and")}. It is shown as soon as it is. Until then this is ${release}, key ${nameOf(key)}, ${span(meta.window.start, meta.window.end)}.`);
}

export function drawChoices({ pipeline, release, key, pipelines, releases, titles, keys }) {
  fillSelect(byId("pipeline"), pipelines, pipeline);
  fillSelect(byId("release"), releases, release, titles);
  fillSelect(byId("key"), keys, key);
  byId("pipeline").closest("label").hidden = pipelines.length < 2;
  byId("release").closest("label").hidden = releases.length < 2;
  byId("key").closest("label").hidden = keys.length < 2;
}

function fillSelect(select, values, value, names = values.map(nameOf)) {
  if (names.join("\n") !== [...select.options].map((option) => option.textContent).join("\n")) {
    select.replaceChildren(...names.map((text, i) => element("option", { value: i, text })));
  }
  select.selectedIndex = values.indexOf(value);
}
