// How a budget stands, from the answer of /api/v1/spending: which block, how much of it is spent by whom, and how long it lasts.

import { inSymbols, parts } from "./price.js";
import { instant, plural, span } from "./words.js";

const DAY = 86_400_000;
/** The most days that are drawn, of the past and of a forecast. */
const MOST_DAYS = 120;
/** The most rows of a table; the newest are shown. */
const MOST_ROWS = 300;

const time = (text) => new Date(text).getTime();
const midnight = (at) => Math.floor(at / DAY) * DAY;

/** The block that the next window is charged to: of those that the newest window was, the one that it ends in. */
function blockOf(blocks) {
  const newest = Math.max(...blocks.map((one) => time(one.newest.end)));
  const last = blocks.filter((one) => time(one.newest.end) === newest);
  return last.find(({ block }) => time(block.start) <= newest && newest < time(block.end)) ?? last[last.length - 1];
}

/** The kind that a block has the least left of, of epsilon and delta. */
function kindOf({ spent, total }) {
  const [gone, all] = [parts(spent), parts(total)];
  const part = (kind) => (Number(all[kind]) > 0 ? Number(gone[kind] ?? 0) / Number(all[kind]) : -1);
  return Object.keys(all).reduce((worst, kind) => (part(kind) > part(worst) ? kind : worst));
}

/**
 * How the budget of a pipeline stands at `now`; undefined where nothing is known. Parts are of the total of a block.
 *   one         the block, as it was answered
 *   isOwn       every window has a block of its own
 *   part        what is spent
 *   releases    [{ release, charged, part, ofSpent, ahead }], the largest first; `ahead` is what comes by the end of the forecast
 *   rest        the part that windows were charged that are not kept any more
 *   ahead       what all releases together come to by the end of the forecast, more than `part`
 *   windows     how many windows are to come by then
 *   days        [{ day, parts: Map of release to part, part }], and `next` the same of the forecast, each without gaps
 *   isCut       the forecast is longer than is drawn
 *   state       "own", "over", "exhausted", "ends" before the block does, or "lasts"
 */
export function standing({ days, blocks }, pipeline, now) {
  const ours = blocks.filter((one) => one.pipeline === pipeline);
  if (ours.length === 0) return undefined;
  const one = blockOf(ours);
  const kind = kindOf(one);
  const all = Number(parts(one.total)[kind]) || 1;
  const of = (price) => Number(parts(price)[kind] ?? 0) / all;
  const [start, end] = [time(one.block.start), time(one.block.end)];
  const [from, to] = [time(one.newest.start), time(one.newest.end)];
  const isOwn = start === from && end === to;
  const step = to - from;
  const isOver = !isOwn && now >= end;
  const windows = isOwn || isOver ? 0 : Math.min(one.windows_left, Math.max(0, Math.ceil((end - to) / step)));
  const part = of(one.spent);
  const releases = one.releases.map((own) => ({
    release: own.release, charged: own.charged, windows: own.windows, part: of(own.charged), ofSpent: part > 0 ? of(own.charged) / part : 0, ahead: windows * of(own.price),
  })).sort((a, b) => b.part - a.part || (a.release < b.release ? -1 : 1));
  const known = releases.reduce((sum, own) => sum + own.part, 0);
  const past = byDay(days.filter((own) => own.pipeline === pipeline && kind in parts(own.charged)), of);
  const next = forecast(to, step, windows, of(one.price));
  const state = isOwn ? "own" : isOver ? "over" : windows === 0 && to < end ? "exhausted" : one.lasts_until ? "ends" : "lasts";
  return {
    one, isOwn, part, releases, rest: part - known > 1e-9 ? part - known : 0, windows, ahead: windows * of(one.price), state,
    days: past, next, isCut: windows * step > MOST_DAYS * DAY,
  };
}

/** Every day from the first to the last one with a window. */
function byDay(charged, of) {
  const found = new Map();
  for (const { day, release, charged: price } of charged) {
    const own = found.get(time(day)) ?? new Map();
    found.set(time(day), own.set(release, (own.get(release) ?? 0) + of(price)));
  }
  if (found.size === 0) return [];
  const [first, last] = [Math.min(...found.keys()), Math.max(...found.keys())];
  return Array.from({ length: Math.min(MOST_DAYS, (last - first) / DAY + 1) }, (_, i) => {
    const day = last - i * DAY;
    const own = found.get(day) ?? new Map();
    return { day, parts: own, part: [...own.values()].reduce((sum, part) => sum + part, 0) };
  }).reverse();
}

/** What windows to come are charged a day, if each costs as much as the newest one. */
function forecast(from, step, windows, price) {
  const next = [];
  for (let day = midnight(from); next.length < MOST_DAYS; day += DAY) {
    const before = (at) => Math.min(windows, Math.max(0, Math.ceil((at - from) / step)));
    const count = before(day + DAY) - before(day);
    if (count > 0 || before(day) < windows) next.push({ day, part: count * price });
    if (before(day + DAY) >= windows) return next;
  }
  return next;
}

export const percent = (part) => {
  const of = 100 * part;
  return `${of === 0 || of >= 10 || Number.isInteger(of) ? Math.round(of) : Number(of.toPrecision(2))}\u00a0%`;
};

/** The whole at one glance: what is spent, how long the rest lasts, and who spent it. */
export function inWords({ one, part, state, releases, windows }) {
  const total = inSymbols(one.total);
  const until = instant(one.block.end);
  const isForever = until === "forever";
  // What follows is not in a synopsis: the pipeline's share of a budget may end with the block.
  const renewal = isForever ? "This budget never renews." : `The block ends on ${until}; the next one, if the pipeline goes on, has a budget of its own.`;
  const spent = `${percent(part)} of ${total} is spent`;
  const head = {
    own: `Every window has a budget of its own, ${total}: what one spends, no other one lacks. The newest one spent ${percent(part)} of it.`,
    over: `${percent(part)} of ${total} was spent in the last block, which ended on ${until}.`,
    exhausted: `The budget is exhausted: ${spent}, and ${inSymbols(one.left)} that is left does not pay for a window at ${inSymbols(one.price)}. Windows from ${instant(one.newest.end)} on are withheld. ${renewal}`,
    ends: `${spent}. At the price of the newest window the rest pays for ${plural(windows, "more window")}, and lasts until ${instant(one.lasts_until)}. ${renewal}`,
    lasts: `${spent}. At the price of the newest window the rest lasts ${isForever ? "for longer than there are dates" : "to the end of the block"}. ${renewal}`,
  }[state];
  const [most] = releases;
  if (!most || most.part === 0) return head;
  if (releases.length === 1) return `${head} Everything was spent by ${most.release}.`;
  const least = releases[releases.length - 1];
  if (most.part === least.part) return `${head} All ${releases.length} releases spent the same.`;
  return `${head} ${most.ofSpent > 0.5 ? "Most" : "The largest part"} was spent by ${most.release}: ${percent(most.ofSpent)}.`;
}

/** A block in words. */
export const blockInWords = ({ start, end }) => (instant(end) === "forever" ? "all of time" : span(start, end));

/** The rows of a table, by "release", "day" or "block". */
export function tableOf(answer, pipeline, by) {
  const ours = (list) => list.filter((one) => one.pipeline === pipeline);
  const heads = { release: ["release", "windows", "charged", "from", "to"], day: ["day (UTC)", "release", "windows", "charged"], block: ["block", "spent", "of", "left", "lasts until", "for"] }[by];
  const rowOf = {
    release: ({ release, windows, charged, span: over }) => [release, windows, inSymbols(charged), instant(over.start), instant(over.end)],
    day: ({ day, release, windows, charged }) => [day.slice(0, 10), release, windows, inSymbols(charged)],
    block: ({ block, spent, total, left, lasts_until: until, releases }) => [
      blockInWords(block), inSymbols(spent), inSymbols(total), inSymbols(left), until ? instant(until) : instant(block.end) === "forever" ? "beyond all dates" : "the end of the block",
      releases.map((own) => `${own.release}: ${inSymbols(own.charged)}`).join("; "),
    ],
  }[by];
  const rows = ours({ release: answer.releases, day: answer.days, block: answer.blocks }[by]);
  const isOfSeveral = new Set(rows.map((one) => one.ledger)).size > 1;
  const list = rows.map((one) => [...(isOfSeveral ? [one.ledger.slice(0, 8)] : []), ...rowOf(one)]);
  const shown = by === "release" ? list : list.reverse();
  return { heads: [...(isOfSeveral ? ["ledger"] : []), ...heads], rows: shown.slice(0, MOST_ROWS), hidden: Math.max(0, shown.length - MOST_ROWS) };
}
