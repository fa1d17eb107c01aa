// The status: the connection to the server, its source, and whether the next window is late.

import { byId, element, say } from "./dom.js";
import { shownKey } from "./keyrows.js";
import { exhausted, isPerWindow, shownBlock, spentInWords, untilInWords } from "./price.js";
import { stepOf } from "./store.js";
import { duration, instant, plural, roughly, shortInstant } from "./words.js";

/** The delay after which a window counts as late. */
const slack = (step) => Math.max(2000, Math.min(step / 10, 300_000));

/**
 * A series without a declared end that has been silent for so long is taken for data that has ended: 30 windows of the release, and
 * no less than a week. Whoever runs a stream has been told of the delay all that time.
 */
const ENDED_WINDOWS = 30;
const ENDED_LEAST = 7 * 86_400_000;
const hasEnded = (late, step) => late > Math.max(ENDED_WINDOWS * step, ENDED_LEAST);

/** Whether no window follows, as declared. */
const isLast = ({ window, grid_end: end }) => end !== undefined && end !== null && new Date(window.end) >= new Date(end);

/** When the next window is due, by the cadence of the release. */
const due = (meta) => new Date(meta.published).getTime() + stepOf(meta);

/**
 * The state, worst first: { state, pill, words }. `state` is its name in the style sheet; `words` say what it means and what
 * happens next, and are empty if all is well.
 */
export function judge({ connection, source, meta, now, isEmpty }) {
  const shown = isEmpty ? "" : " The values shown remain valid.";
  if (connection === "connecting") return { state: "waiting", pill: "Connecting \u2026", words: "Connecting to the server \u2026" };
  if (connection === "unreachable") {
    return { state: "bad", pill: "Not reachable", words: "The server cannot be reached. Retrying automatically." };
  }
  if (connection === "lost") {
    return { state: "bad", pill: "Connection lost", words: `The connection to the server was lost: it may have stopped or be restarting. Retrying automatically.${shown}` };
  }
  if (source.connected === false) {
    return { state: "bad", pill: "Source lost", words: `The server cannot read ${source.name || "its source"}${source.why ? `: ${source.why.replace(/\.?$/, "")}` : ""}.${shown}` };
  }
  if (isEmpty) {
    return { state: "waiting", pill: "No window yet", words: `Connected to ${source.name || "the server"}. Windows are shown as soon as they are published.` };
  }
  if (isLast(meta)) return { state: "ended", pill: `Complete through ${shortInstant(meta.window.end)}`, words: "" };
  const spent = exhausted(meta);
  if (spent) {
    return { state: "warn", pill: "Budget spent", words: `${spentForNow(spent)} This is how the guarantee works, not a failure.` };
  }
  const late = now - due(meta);
  if (hasEnded(late, stepOf(meta))) {
    return { state: "ended", pill: `Data through ${shortInstant(meta.window.end)}`, words: `The last window ended ${instant(meta.window.end)}. If this release is meant to go on, its worker is down: windows of ${duration(stepOf(meta))} are overdue since ${instant(due(meta))}.` };
  }
  if (late > slack(stepOf(meta))) {
    return {
      state: "warn", pill: `Overdue since ${shortInstant(due(meta))}`,
      words: `Overdue since ${instant(due(meta))}: the next window was expected then, ${roughly(late)} ago. The worker may be down or late, a window may have been withheld${budgetInWords(meta)}, or the input may have ended.`,
    };
  }
  return { state: "live", pill: "Live", words: "" };
}

function spentForNow(block) {
  const end = instant(block.end);
  return end === "forever" ? "The privacy budget is spent and never renews: all further windows are withheld."
    : `The privacy budget is spent until ${end}. Until then windows are withheld.`;
}

/** Why a window may have been withheld: a budget shared with other windows, and how much of it is spent. */
function budgetInWords(meta) {
  const block = shownBlock(meta);
  return block && !isPerWindow(meta) ? ` for its budget (${spentInWords(block)} is spent in this block, ${untilInWords(block)})` : "";
}

export function drawStatus(judged) {
  const pill = byId("status");
  pill.dataset.state = judged.state;
  say(byId("status-words"), judged.pill);
  const notice = byId("notice");
  notice.hidden = judged.words === "";
  notice.dataset.state = judged.state;
  say(byId("notice-words"), judged.words);
}

/** Limits on unreadable messages and their texts: anyone who can write to the topic can write many. */
const MOST_UNREADABLE = 20;
const MOST_TEXT = 300;
const truncate = (text) => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)} \u2026` : text);
const unreadable = { count: 0, last: [] };

/** Notes an unreadable message: how many there were, and the last ones with reasons, are shown. */
export function note(...texts) {
  const [where, why] = texts.map(truncate);
  const { last } = unreadable;
  if (last.some((one) => one.where === where && one.why === why)) return;
  unreadable.count += 1;
  last.push({ where, why });
  if (last.length > MOST_UNREADABLE) last.shift();
  const { count } = unreadable;
  byId("unreadable").hidden = false;
  say(byId("unreadable-words"), `${plural(count, "message")} could not be read as a synopsis and ${count === 1 ? "is" : "are"} skipped.`);
  byId("unreadable-list").replaceChildren(...[...last].reverse().map((one) => element("li", { text: shownKey(`${one.where}: ${one.why}`) })));
}
