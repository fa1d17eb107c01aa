// What the privacy of a number is: the badge, the gauge, and the drawer "About this number".

import { byId, element, say } from "./dom.js";
import { adjacency, atMost, definition, exhausted, inSymbols, isPerWindow, shownBlock, spentInWords, spentPart, unit, untilInWords } from "./price.js";
import { duration, instant, plural, short, span } from "./words.js";

const time = (text) => new Date(text).getTime();

/** Price and unit, always in sight. */
export function drawBadge(meta) {
  const { short: name, random } = definition(meta);
  say(byId("badge-price"), atMost(meta));
  say(byId("badge-unit"), `${unit(meta).short} \u00b7 ${name}`);
  byId("badge").classList.toggle("loud", random !== undefined);
}

/** What of the budget is gone, always in sight. */
export function drawGauge(meta) {
  const block = shownBlock(meta);
  const bar = byId("gauge-bar");
  if (!block) {
    byId("gauge-fill").style.width = "0";
    byId("gauge").classList.remove("spent");
    say(byId("gauge-words"), "not told");
    bar.setAttribute("aria-valuenow", 0);
    bar.setAttribute("aria-valuetext", "not told");
    return;
  }
  const part = spentPart(block);
  const spent = exhausted(meta);
  byId("gauge-fill").style.width = `${(100 * part).toFixed(1)}%`;
  const gauge = byId("gauge");
  gauge.classList.toggle("spent", spent !== undefined);
  const percent = `${Math.round(100 * part)} %`;
  const words = isPerWindow(meta)
    ? `this window: ${percent} of its own budget`
    : spent ? `budget spent ${untilInWords(block)}` : `${percent} spent, ${untilInWords(block)}`;
  say(byId("gauge-words"), words);
  bar.setAttribute("aria-valuenow", Math.round(100 * part));
  bar.setAttribute("aria-valuetext", `${spentInWords(block)}; ${words}`);
}

/** What nobody may overlook: simulated, incomplete, less than plain privacy, more noise than needed. */
export function flags(meta) {
  const found = [];
  if (meta.synthetic) found.push(["Simulated records", "These numbers are about nobody: the records were made up by a program."]);
  if (meta.incomplete) found.push(["Incomplete", "Input was deleted before it was read: records may be missing from this window."]);
  const { random } = definition(meta);
  if (random) {
    found.push([`RANDOM differential privacy, \u03b3 = ${random.gamma}`,
      "Less than plain differential privacy: the guarantee is for records like those of a declared prior, and may fail with up to that probability for each record in each window and key, which adds up."]);
  }
  const calibrated = meta.noise.calibrated;
  if (calibrated?.paper) {
    found.push(["Noise as in the paper", `${calibrated.paper.times_needed.toFixed(2)} times more than needed: for comparison.`]);
  }
  return found;
}

export function drawFlags(meta) {
  byId("flags").replaceChildren(...flags(meta).map(([name, why]) =>
    element("p", { class: "flag" }, element("strong", { text: name }), ` ${why}`)));
}

const LAWS = {
  "discrete laplace": "Laplace noise, exactly sampled, on each value apart",
  "discrete gaussian": "Gaussian noise, exactly sampled, on each value apart",
  "discrete cube": "noise of the cube: all values together, for the most that a record changes any one of them",
  "rounded ball": "noise of the ball: on all coordinates together, for what a record changes in the space of the kernel",
};

/** Fills the drawer. */
export function drawAbout(meta) {
  const { privacy, noise, band, window } = meta;
  const facts = [];
  const fact = (name, ...words) => facts.push(element("dt", { text: name }), element("dd", {}, ...words.map((text) => element("p", { text: text.replace(/^[a-z]/, (c) => c.toUpperCase()) }))));

  fact("What it is", `${meta.meaning}.`);
  fact("Window", `${span(window.start, window.end)} (${duration(time(window.end) - time(window.start))})`, `Published ${instant(meta.published)}.`, ...panes(meta));
  fact("Whose privacy", `${unit(meta).name}.`);
  fact("What is hidden", `${adjacency(meta)}.`);
  const { name, random } = definition(meta);
  fact("Kind of guarantee", `${name}.`, ...randomInWords(random));
  fact("Price of this window", inSymbols(privacy.price));
  for (const block of privacy.blocks) {
    fact("Spent of total", `${spentInWords(block)}, ${untilInWords(block)}.`, ...budgetInWords(meta, block));
  }
  if (privacy.implies) {
    const { epsilon, delta } = privacy.implies;
    fact("In all, at most", `\u03b5 = ${epsilon} at \u03b4 = ${Number(delta).toExponential()}, for everything ever charged to a block.`);
  }
  fact("Noise", `${LAWS[noise.law] ?? noise.law}; scale ${short(noise.scale)} in the units of the values.`);
  fact("Band", `The wide band holds the noise at all places at once with ${Math.round(band.level * 100)} % probability, the narrow one at any one place.`,
    `It covers ${band.covers}${band.draws > 0 ? `; found with ${plural(band.draws, "simulated draw")}` : "; exact"}.`);
  fact("Read as", ...readAs(meta));
  if (meta.choices?.length > 0) fact("Chosen from the records, privately", ...meta.choices.map(choice));
  fact("Where it comes from", `Pipeline ${meta.pipeline}, release ${meta.release}${meta.key === null || meta.key === undefined ? "" : `, key ${meta.key}`}.`,
    `Ledger ${meta.ledger.id}, row ${meta.ledger.sequence}. Settings ${meta.digests.configuration.slice(0, 16)}, program ${meta.digests.program}.`);

  byId("about-body").replaceChildren(
    element("p", { class: "promise", text: privacy.in_words }),
    ...flags(meta).map(([head, why]) => element("p", { class: "flag" }, element("strong", { text: head }), ` ${why}`)),
    element("dl", {}, ...facts),
    element("h3", { text: "What is not protected" }),
    element("ul", {}, ...meta.not_protected.map((text) => element("li", { text }))),
    element("h3", { text: "How to read it" }),
    element("p", { text: "Noise was added on purpose; differences smaller than the band are not evidence. How wide the band is follows from the public settings and says nothing of the records, but for what was chosen from them privately, if anything was. A picture that looks better is not guarded less well for that: more records stand out more clearly from the same noise. How strong the guarantee is, is told by its price: with all else equal a higher price makes the band narrower and the guarantee weaker." }),
    element("p", { text: "To see what the noise can do, switch on the plausible curves: each is one that the noise could have turned into what was published." }),
  );
}

function panes({ panes: own }) {
  if (!own) return [];
  const over = own.over === "cumulative" ? "everything since the beginning" : `the last ${plural(own.over.hopping, "window")}`;
  const newest = span(own.newest.start, own.newest.end);
  return own.step === undefined
    ? [`It speaks of ${over}; the newest part is ${newest}. Its noise is its own.`]
    : [`It is a running sum over ${over}; only the newest part, ${newest}, was paid for now. Its noise is shared with the synopses before it.`];
}

function randomInWords(random) {
  if (!random) return [];
  const prior = random.prior.map(({ column, law }) => `${column}: ${JSON.stringify(law)}`).join("; ");
  return [
    `It is for windows of ${random.records} records drawn from a declared prior (${prior}). For one record of one window and key it may fail, with a probability of up to \u03b3 = ${random.gamma}.`,
    `That adds up: to at most w \u00d7 ${random.gamma} for w windows and keys together, to at most ${random.records} \u00d7 ${random.gamma} for all records of one at once. From 1 on it says nothing.`,
    `Whatever the records are, the noise gives \u03b5 = ${short(random.epsilon_at_worst)} a window.`,
  ];
}

function budgetInWords(meta, block) {
  if (isPerWindow(meta)) return [`It is the budget of this window alone${meta.privacy.unit === "record" ? ", and a record lies in one window" : ""}.`];
  return exhausted(meta) === block ? ["The next window cannot be paid from it, and will be withheld."] : [];
}

function readAs(meta) {
  if (meta.basis === "bernstein") {
    const points = (meta.degree + 1) ** meta.domain.length;
    return [`A polynomial of degree ${meta.degree} an axis through ${points} published values, by the iterated Bernstein operator of order ${meta.order}.`];
  }
  if (meta.basis === "affine") return ["A linear score, by its published coefficients."];
  if (meta.basis.kernel) return [`A sum of ${plural(meta.basis.kernel.points.length, "kernel function")} at public points.`];
  return [`${meta.target.moments?.frequencies} frequencies of each axis: it answers questions, and has no value at a point.`];
}

function choice(one) {
  const [[kind, { taken, candidates, price }]] = Object.entries(one);
  return `${kind}: ${JSON.stringify(taken)} of ${JSON.stringify(candidates)}, for \u03b5 = ${price}, part of the price.`;
}
