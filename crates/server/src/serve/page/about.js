// The guarantee behind a number: the badge, the gauge, and the drawer "How this is protected".

import { byId, element, say } from "./dom.js";
import { capsInWords } from "./keyrows.js";
import { isByKey } from "./kinds.js";
import { odds, ofPerson } from "./odds.js";
import { adjacency, atMost, definition, exhausted, inSymbols, isPerWindow, shownBlock, spentInWords, spentPart, unit, untilInWords } from "./price.js";
import { duration, instant, plural, short, span } from "./words.js";

const time = (text) => new Date(text).getTime();

/** Price and unit, always visible. */
export function drawBadge(meta) {
  const { short: name, random } = definition(meta);
  say(byId("badge-price"), atMost(meta));
  say(byId("badge-unit"), `${unit(meta).short} \u00b7 ${name}`);
  byId("badge").classList.toggle("loud", random !== undefined);
}

/** The budget spent, always visible. */
export function drawGauge(meta) {
  const block = shownBlock(meta);
  const bar = byId("gauge-bar");
  // What renews with each window would always be full, and tell nothing.
  const isOwn = block !== undefined && isPerWindow(meta);
  bar.hidden = isOwn;
  if (isOwn) {
    byId("gauge").classList.remove("spent");
    say(byId("gauge-words"), "Renews with each window");
    return;
  }
  if (!block) {
    byId("gauge-fill").style.width = "0";
    byId("gauge").classList.remove("spent");
    say(byId("gauge-words"), "unknown");
    bar.setAttribute("aria-valuenow", 0);
    bar.setAttribute("aria-valuetext", "unknown");
    return;
  }
  const part = spentPart(block);
  const spent = exhausted(meta);
  byId("gauge-fill").style.width = `${(100 * part).toFixed(1)}%`;
  const gauge = byId("gauge");
  gauge.classList.toggle("spent", spent !== undefined);
  const percent = `${Math.round(100 * part)} %`;
  const words = spent ? `budget spent, ${untilInWords(block)}` : `${percent} spent, ${untilInWords(block)}`;
  say(byId("gauge-words"), words);
  bar.setAttribute("aria-valuenow", Math.round(100 * part));
  bar.setAttribute("aria-valuetext", `${spentInWords(block)}; ${words}`);
}

/** Warnings that must be visible: simulated, incomplete, weaker than plain differential privacy, more noise than needed. */
export function flags(meta) {
  const found = [];
  if (meta.synthetic) found.push(["Simulated data; no real people.", "A program made up the records."]);
  if (meta.incomplete) found.push(["Incomplete", "Input was deleted before it was read: records may be missing from this window."]);
  const { random } = definition(meta);
  if (random) {
    found.push([`RANDOM differential privacy, \u03b3 = ${random.gamma}`,
      "Weaker than plain differential privacy: the guarantee is for records like those of a declared prior. For each record, window and key it may fail with up to that probability, and these probabilities add up."]);
  }
  const calibrated = meta.noise.calibrated;
  if (calibrated?.paper) {
    found.push(["Noise as in the paper", `${calibrated.paper.times_needed.toFixed(2)} times the noise that is needed, for comparison.`]);
  }
  return found;
}

export function drawFlags(meta) {
  byId("flags").replaceChildren(...flags(meta).map(([name, why]) =>
    element("p", { class: "flag" }, element("strong", { text: name }), ` ${why}`)));
}

const NOISE = {
  "discrete laplace": "Laplace noise, exactly sampled, independent on each value",
  "discrete gaussian": "Gaussian noise, exactly sampled, independent on each value",
  "discrete cube": "cube noise on all values together, calibrated to the sensitivity in the maximum norm",
  "rounded ball": "ball noise on all coordinates together, calibrated to the sensitivity in the kernel's Hilbert space",
};

/** Fills the drawer. */
export function drawAbout(meta) {
  const { privacy, noise, band, window } = meta;
  const facts = [];
  const fact = (name, ...words) => words.length > 0 && facts.push(element("dt", { text: name }), element("dd", {}, ...words.map((text) => element("p", { text: text.replace(/^[a-z]/, (c) => c.toUpperCase()) }))));

  fact("What it is", `${meta.meaning}.`);
  fact("Window", `${span(window.start, window.end)} (${duration(time(window.end) - time(window.start))})`, `Published ${instant(meta.published)}.`, ...panes(meta));
  const total = shownBlock(meta)?.total;
  const isMore = total !== undefined && inSymbols(total) !== inSymbols(privacy.price);
  fact("In odds", ...[odds(meta, privacy.price), isMore ? allInAll(meta, total) : undefined].filter(Boolean));
  fact("Whose privacy", `${unit(meta).name}.`, ...[ofPerson(meta, total ?? privacy.price)].filter(Boolean));
  fact("What is hidden", `${adjacency(meta)}.`);
  const { name, random } = definition(meta);
  fact("Kind of guarantee", `${name}.`, ...randomInWords(random));
  fact("Price of this window", inSymbols(privacy.price));
  for (const block of privacy.blocks) {
    fact("Spent of total", `${spentInWords(block)}, ${untilInWords(block)}.`, ...budgetInWords(meta, block));
  }
  if (privacy.implies) {
    const { epsilon, delta } = privacy.implies;
    fact("Total, at most", `\u03b5 = ${epsilon} at \u03b4 = ${Number(delta).toExponential()}, for everything ever charged to a block.`);
  }
  fact("Noise", `${NOISE[noise.law] ?? noise.law}${isByKey(meta) ? "" : `; scale ${short(noise.scale)} in the units of the values`}.`);
  if (isByKey(meta)) fact("Intervals", capsInWords(meta));
  else {
    fact("Band", `The simultaneous band contains the noise at all points${meta.basis.tables ? " and bandwidths" : ""} at once with ${Math.round(band.level * 100)} % probability, the pointwise band at any single point.`,
      `It covers ${band.covers}${band.draws > 0 ? `; estimated from ${plural(band.draws, "simulated draw")}` : "; exact"}.`);
  }
  fact("Read as", ...readAs(meta));
  if (meta.choices?.length > 0) fact("Chosen from the records, privately", ...meta.choices.map(choice));
  fact("Origin", `Pipeline ${meta.pipeline}, release ${meta.release}${meta.key === null || meta.key === undefined ? "" : `, key ${meta.key}`}.`,
    `Ledger ${meta.ledger.id}, row ${meta.ledger.sequence}. Settings ${meta.digests.configuration.slice(0, 16)}, program ${meta.digests.program}.`);

  byId("about-body").replaceChildren(
    element("p", { class: "promise", text: privacy.in_words }),
    ...flags(meta).map(([head, why]) => element("p", { class: "flag" }, element("strong", { text: head }), ` ${why}`)),
    element("dl", {}, ...facts),
    element("h3", { text: "What is not protected" }),
    element("ul", {}, ...meta.not_protected.map((text) => element("li", { text }))),
    element("h3", { text: "How to read it" }),
    element("p", { text: "Noise was added on purpose; differences smaller than the band are not evidence. The width of the band depends on the public settings and not on the records, except for private choices, if any. A clearer plot does not mean weaker protection: more records stand out more clearly from the same noise. The price states the strength of the guarantee: all else being equal, a higher price makes the band narrower and the guarantee weaker." }),
    isByKey(meta) ? "" : element("p", { text: "To see the effect of the noise, show the plausible curves: the noise could have turned each of them into the published one." }),
  );
}

/** The odds of everything that is ever charged to a block. */
function allInAll(meta, total) {
  const words = odds(meta, total);
  return words && `With everything that may ever be charged to the same block (${inSymbols(total)}): ${words.charAt(0).toLowerCase()}${words.slice(1)}`;
}

function panes({ panes: own }) {
  if (!own) return [];
  const over = own.over === "cumulative" ? "everything since the start" : `the last ${plural(own.over.hopping, "window")}`;
  const newest = span(own.newest.start, own.newest.end);
  return own.step === undefined
    ? [`It covers ${over}; the newest part is ${newest}. Its noise is independent of other synopses.`]
    : [`It is a running sum over ${over}; only the newest part, ${newest}, was paid for now. Its noise is correlated with that of earlier synopses.`];
}

function randomInWords(random) {
  if (!random) return [];
  const prior = random.prior.map(({ column, law }) => `${column}: ${JSON.stringify(law)}`).join("; ");
  return [
    `The guarantee is for windows of ${random.records} records drawn from a declared prior (${prior}). For one record of one window and key it may fail, with a probability of up to \u03b3 = ${random.gamma}.`,
    `These probabilities add up: to at most w \u00d7 ${random.gamma} for w windows and keys together, to at most ${random.records} \u00d7 ${random.gamma} for all records of one at once. A bound of 1 or more says nothing.`,
    `For any records, the noise guarantees \u03b5 = ${short(random.epsilon_at_worst)} a window.`,
  ];
}

function budgetInWords(meta, block) {
  if (isPerWindow(meta)) return [`It is the budget of this window alone, and renews with each window${meta.privacy.unit === "record" ? ": a record belongs to one" : ""}.`];
  return exhausted(meta) === block ? ["It cannot pay for the next window, which will be withheld."] : [];
}

function readAs(meta) {
  if (meta.basis === "bernstein") {
    const points = (meta.degree + 1) ** meta.domain.length;
    return [`A polynomial of degree ${meta.degree} per axis from ${points} published values, by the iterated Bernstein operator of order ${meta.order}.`];
  }
  if (meta.basis === "affine") return ["A linear score, given by its published coefficients."];
  if (meta.basis.kernel) return [`A sum of ${plural(meta.basis.kernel.points.length, "kernel function")} at public points.`];
  if (meta.basis.cells) {
    const { spline, steps } = meta.basis.cells;
    const shared = { box: "nearest node", linear: "nodes around it", quadratic: "three nodes around it" }[spline];
    const grid = steps.length === 1 ? `a grid of ${plural(steps[0], "step")}` : `a grid of ${steps.join(" \u00d7 ")} steps`;
    return [`Counts of records on ${grid}, each with its own noise, smoothed by a Gaussian kernel. A record counts for the ${shared}${steps.length > 1 && spline !== "box" ? " on each axis" : ""}.`,
      ...(meta.reading ? [`The noise is large beside the records: this page draws the reading by "${meta.reading}", which smooths the counts and leaves none below 0, as it is expected to be more accurate. It has no band of its own; the bands are those of the published values, and so are counts in a range.`] : [])];
  }
  if (meta.basis.tables) {
    const { steps, tables } = meta.basis.tables;
    const grid = steps.length === 1 ? `a grid of ${plural(steps[0], "step")}` : `a grid of ${steps.join(" \u00d7 ")} steps`;
    return [`Counts of records on ${grid}${tables > 1 ? `, in ${tables} tables by their label` : ""}, each with its own noise. Every function, count and quantile on this page is read from them, at no further price.`];
  }
  if (isByKey(meta)) {
    const { keys = [], found } = meta.basis.keys;
    const ofFound = found && `Nobody listed the keys. One that a single ${meta.privacy.unit === "record" ? "record" : "user"} has is named with a probability of at most ${Number(found.delta)}. A key stays for ${duration(1000 * found.keep_seconds)} after the last window that published it above the threshold, of at most ${plural(found.most, "key")}.`;
    return [...(ofFound ? [ofFound] : []), `${plural(keys.length, "key")}, each with ${plural(meta.basis.keys.columns.length, "published number")} with its own noise. The number of users or records, a sum and a mean are read from them, at no further price.`];
  }
  return [`${meta.target.moments?.frequencies} frequencies of each axis: it answers queries, and has no value at a point.`];
}

function choice(one) {
  const [[kind, { taken, candidates, price }]] = Object.entries(one);
  return `${kind}: ${JSON.stringify(taken)} of ${JSON.stringify(candidates)}, for \u03b5 = ${price}, part of the price.`;
}
