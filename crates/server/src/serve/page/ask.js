// Queries on moments: the user types a function of a record, and the server answers its sum over the records.

import { element } from "./dom.js";
import { drawAnswers } from "./plot.js";
import { fieldOf, records } from "./names.js";
import { heading, ofAnswer } from "./sentence.js";
import { giveOrTake, rounded, short, shortStart } from "./words.js";
import { roundOut } from "./axes.js";
import { stepOf } from "./store.js";

/** The number of windows to query and draw. */
const WINDOWS = 12;

const MOST_ANSWERS = 2000;
const MOST_FITS = 100;

const get = async (address) => {
  const response = await fetch(address);
  const body = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error(body.error ?? `the server answered ${response.status}`);
  return body;
};

export class Ask {
  #home;
  #parts;
  #question = "";
  #answers = new Map();
  #fits = new Map();
  #look;
  #drawn;

  /** `drawn` is called on new answers. */
  constructor(home, drawn) {
    this.#home = home;
    this.#drawn = drawn;
  }

  /** The answers that are on screen, oldest first: { meta, answer }. */
  get shown() {
    return this.#windows().map(({ meta }) => ({ meta, answer: this.#answers.get(this.#name(meta)) })).filter(({ answer }) => answer?.sum !== undefined);
  }

  get question() {
    return this.#question;
  }

  draw(look) {
    this.#look = look;
    const { meta } = look.entry;
    const signature = JSON.stringify([meta.pipeline, meta.release, meta.key, meta.domain]);
    if (this.#parts?.signature !== signature) this.#build(meta, signature);
    this.#ask();
  }

  forget() {
    this.#parts = undefined;
    this.#home.replaceChildren();
  }

  #build(meta, signature) {
    const examples = suggestions(meta);
    if (!this.#question || this.#parts?.columns !== columnsOf(meta)) this.#question = examples[0].ask;
    const input = element("input", {
      id: "question", type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", value: this.#question,
      "aria-describedby": "question-hint",
    });
    const form = element("form", { class: "ask" },
      element("label", { for: "question", text: `Or any function, summed over the ${records(meta)}:` }),
      element("div", { class: "row" }, input, element("button", { type: "submit", class: "main", text: "Query" })));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#question = input.value.trim();
      // What failed is tried again: it may have been the line.
      for (const all of [this.#fits, this.#answers]) all.forEach(({ error }, name) => error && all.delete(name));
      this.#ask();
    });
    const chips = element("p", { class: "chips" }, ...examples.map(({ name, ask }) => element("button", {
      type: "button", text: name, title: ask,
      onclick: () => {
        input.value = this.#question = ask;
        this.#ask();
      },
    })));
    const hint = element("p", { id: "question-hint", class: "hint",
      text: `A function of ${meta.domain.map(fieldOf).join(" and ")}, the smoother the better: + \u2212 * / ^, abs cos exp ln max min sin sqrt tanh. Any number of queries costs no further privacy.` });
    const answer = element("div", { class: "answer" });
    const canvas = element("canvas", { class: "answers", role: "img" });
    this.#parts = { signature, columns: columnsOf(meta), answer, canvas, examples };
    this.#home.replaceChildren(chips, form, hint, answer, canvas);
  }

  #windows() {
    if (!this.#look) return [];
    const { series, entry } = this.#look;
    const at = series.indexOf(entry);
    const end = Math.max(at + 1, Math.min(WINDOWS, series.length));
    return series.slice(Math.max(0, end - WINDOWS), end);
  }

  #name = (meta) => JSON.stringify([this.#question, meta.pipeline, meta.release, meta.key, meta.window.start, meta.ledger]);

  /** A question is fitted once for all windows and keys that have the same axes and frequencies. */
  #fit = ({ synopsis: { meta: { domain, basis } } }) => JSON.stringify([this.#question, domain, basis]);

  #ask() {
    if (this.#answers.size > MOST_ANSWERS) this.#answers.clear();
    const { entry } = this.#look;
    const missing = this.#windows().filter(({ meta }) => !this.#answers.has(this.#name(meta)));
    missing.sort((a, b) => (b === entry) - (a === entry));
    for (const one of missing) {
      const fit = this.#fits.get(this.#fit(one));
      if (fit === undefined) this.#fetch(one);
      else if (fit.error) this.#answers.set(this.#name(one.meta), fit);
      else if (fit.weights) this.#answers.set(this.#name(one.meta), answerBy(fit, one.synopsis));
    }
    this.#show();
  }

  /** Asks the server about one window; what it fits to the question answers the others. */
  async #fetch(one) {
    const { meta } = one;
    const [name, fit] = [this.#name(meta), this.#fit(one)];
    if (this.#fits.size > MOST_FITS) this.#fits.clear();
    this.#fits.set(fit, {});
    const about = new URLSearchParams({ pipeline: meta.pipeline, release: meta.release, ask: this.#question, window: meta.window.start });
    if (meta.key !== null && meta.key !== undefined) about.set("key", meta.key);
    try {
      const { answer, weights } = await get(`/api/v1/query?${about}`);
      this.#answers.set(name, answer);
      this.#fits.set(fit, { weights, perRecord: answer.truncation.per_record, isProved: answer.truncation.is_proved, noises: new Map([[ofNoise(one.synopsis.meta.noise), answer.noise]]) });
    } catch (error) {
      this.#fits.set(fit, { error: error.message });
    }
    if (this.#parts) this.#ask();
  }

  #show() {
    const { entry } = this.#look;
    const answer = this.#answers.get(this.#name(entry.meta));
    this.#parts.answer.replaceChildren(...answerElements(answer, this.#parts.examples.find(({ ask }) => ask === this.#question) ?? { name: this.#question }));
    const points = this.shown.map(({ meta, answer: { sum, noise, truncation } }) => ({
      label: shortStart(meta.window.start, stepOf(meta)), value: sum, inner: noise.half_width,
      outer: noise.half_width + truncation.error, isChosen: meta === entry.meta,
    }));
    this.#parts.canvas.hidden = points.length === 0;
    if (points.length > 0) {
      const [min, max] = roundOut(
        Math.min(0, ...points.map(({ value, outer }) => value - outer)), Math.max(0, ...points.map(({ value, outer }) => value + outer)));
      drawAnswers(this.#parts.canvas, {
        points, chosen: points.findIndex(({ isChosen }) => isChosen), y: { min, max, label: `sum of ${this.#question}` },
      });
    }
    const words = answer?.sum === undefined ? `${heading(entry.meta)}: no answer yet.` : ofAnswer(entry.meta, this.#question, answer);
    this.#parts.canvas.setAttribute("aria-label", `${words} ${points.length} windows are drawn, each with its errors.`);
    this.#drawn();
  }
}

const ofNoise = ({ law, scale }) => JSON.stringify([law, scale]);
const words = ({ deviation, halfWidth, level }) => ({ deviation, half_width: halfWidth, level: level ?? 0.95 });

/**
 * The answer of a window by weights that were fitted to the question, as the server words it. Its noise is worked out once for all
 * windows that have the same, and that of a mean when it is looked at: it takes long.
 */
function answerBy({ weights, perRecord, isProved, noises }, synopsis) {
  const { meta, values } = synopsis;
  const whole = () => synopsis.query({ weights, perRecord });
  const law = ofNoise(meta.noise);
  if (!noises.has(law)) noises.set(law, words(whole().noise));
  const records = Math.max(values[0], 0);
  let mean;
  return {
    sum: values.reduce((sum, moment, i) => sum + weights[i] * moment, 0), noise: noises.get(law),
    truncation: { per_record: perRecord, is_proved: isProved, records, error: perRecord * records },
    get mean() {
      if (mean === undefined) {
        const { mean: own } = whole();
        mean = own && { value: own.value, noise: words(own.noise) };
      }
      return mean;
    },
  };
}

const columnsOf = (meta) => meta.domain.map(fieldOf).join("\n");

/** A column as written in a query. */
const quoted = (column) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(column) ? column : `"${column}"`);

/**
 * Plain questions: { name, ask } with what else is to be said: `heads`, the names of both numbers, `isMean`, whether the mean comes
 * first, and `hint`. A step is asked with its edge smoothed by the resolution of the frequencies: sharper ones they cannot tell.
 */
function suggestions(meta) {
  const { frequencies } = meta.target.moments;
  const name = records(meta);
  const ofAxis = (axis) => {
    const { column, min, max } = axis;
    const x = round((2 * min + max) / 3);
    const width = Number(((max - min) / frequencies).toPrecision(2));
    const from = (edge) => `(${edge === 0 ? quoted(fieldOf(axis)) : `(${quoted(fieldOf(axis))} ${edge < 0 ? "+" : "-"} ${Math.abs(edge)})`} / ${width})`;
    const hint = `The edges are smoothed: what is less than about ${short(width)} from one counts in part.`;
    const heads = [`Number of ${name}`, `Share of all ${name}`];
    const other = round((min + 3 * max) / 4);
    return [
      { name: `Mean ${column}`, ask: quoted(fieldOf(axis)), heads: [`Sum of ${column}`, `Mean ${column}`], isMean: true },
      { name: `${column} above ${exactly(x)}`, ask: `(1 + tanh${from(x)}) / 2`, heads, hint },
      { name: `${column} between ${exactly(x)} and ${exactly(other)}`, ask: `(tanh${from(x)} - tanh${from(other)}) / 2`, heads, hint },
    ];
  };
  return [...meta.domain.flatMap(ofAxis), { name: `Number of ${name}`, ask: "1", heads: [`Number of ${name}`] }];
}

const round = (x) => Number(x.toPrecision(1));
const exactly = (x) => String(x).replace("-", "\u2212");

function answerElements(answer, { name, heads = ["Sum", "Mean"], isMean = false, hint }) {
  if (!answer || answer.pending) return [element("p", { class: "hint", text: "Querying \u2026" })];
  if (answer.error) return [element("p", { class: "wrong", role: "alert", text: `${name}: ${answer.error}` })];
  const { sum, noise, truncation, mean } = answer;
  const level = `${Math.round(noise.level * 100)} %`;
  const proved = truncation.is_proved ? "at most (proved)" : "about (not proved)";
  const line = (class_, text) => element("p", { class: class_, text });
  const parts = [
    line("figure", rounded(sum, noise.half_width)),
    line("", `the noise is within \u00b1 ${short2(noise.half_width)} with ${level} probability`),
    line("", `truncation error: ${proved} ${short2(truncation.error)}, ${short2(truncation.per_record)} per record`),
  ];
  const second = mean
    ? [
      line("figure", rounded(mean.value, mean.noise.half_width)),
      line("", `per record: the noise is within \u00b1 ${short2(mean.noise.half_width)}, truncation ${proved} ${short2(truncation.per_record)}`),
    ]
    : [line("", "none: the number of records is too small compared with its noise")];
  const both = [parts, second].map((own, i) => heads[i] && element("div", {}, element("h3", { text: heads[i] }), ...own)).filter(Boolean);
  return [...(isMean ? both.reverse() : both), ...(hint ? [line("hint", hint)] : [])];
}

const short2 = (x) => short(Number(x.toPrecision(2)));

/** An answer as a row of the table. */
export const answerRow = ({ meta, answer }) => [
  meta.window.start, meta.window.end, giveOrTake(answer.sum, answer.noise.half_width), short2(answer.truncation.error),
];
