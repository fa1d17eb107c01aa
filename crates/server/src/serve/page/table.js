// The numbers behind the plot, as a table for people and as CSV for programs.

import { ticks } from "./axes.js";
import { answerRow } from "./ask.js";
import { byId, element } from "./dom.js";
import { along, banded } from "./grid.js";
import { valueLabel } from "./kinds.js";
import { axisTitle, fieldOf } from "./names.js";
import { placeOn } from "./sentence.js";
import { instant, plusMinus, rounded } from "./words.js";

/** The points of an axis in a table: round numbers. */
const rowsOf = (axis, count) => ticks(axis.min, axis.max, count).values.filter((x) => x >= axis.min && x <= axis.max);

/** Grid points per axis in the CSV: 201 for a curve, 41 for a map; on a third axis only the slice shown. */
const CSV_SIDES = [0, 201, 41, 41];

function* gridRows(synopsis, axes) {
  const { values, published, form, wide, outer, narrow, inner } = banded(synopsis, axes, true);
  const sizes = axes.map((axis) => axis.length);
  for (let i = 0; i < values.length; i++) {
    let rest = i;
    const at = [];
    for (let a = axes.length - 1; a >= 0; a--) {
      at[a] = axes[a][rest % sizes[a]];
      rest = Math.floor(rest / sizes[a]);
    }
    yield {
      at, form, value: values[i], published: published[i], wide: wide[i], narrow: narrow[i],
      outer: [outer.lower[i], outer.upper[i]], inner: [inner.lower[i], inner.upper[i]],
    };
  }
}

const withThird = (meta, axes, at) => meta.domain.map((axis, i) => (i < 2 ? axes(axis, i) : [at[i]]));

/** Fills the table of the page. */
export function fill(caption, heads, rows) {
  const cell = (name) => (text) => element(name, name === "th" ? { scope: "col", text } : { text });
  byId("table").replaceChildren(
    element("caption", { text: caption }),
    element("thead", {}, element("tr", {}, ...heads.map(cell("th")))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell("td"))))),
  );
}

/** Fills the table: numbers rounded to their noise. */
export function drawTable({ entry, at }) {
  const { meta, synopsis } = entry;
  const axes = withThird(meta, (axis) => rowsOf(axis, meta.domain.length === 1 ? 21 : 8), at);
  const percent = `${Math.round(meta.band.level * 100)} %`;
  const isFollowed = synopsis.formError() !== null && !synopsis.choice;
  const rows = [...gridRows(synopsis, axes)].map(({ at: place, value, form, wide, narrow, outer }) => [
    ...place.map((x, i) => placeOn(meta.domain[i], x)), rounded(value, wide), ...outer.map((end) => rounded(end, wide)),
    plusMinus(narrow), ...(isFollowed ? [plusMinus(wide + form)] : []),
  ]);
  const followed = isFollowed ? ", with the form what noise and form stay within together in at least 9 of 10 windows" : "";
  fill(`${valueLabel(meta)}, rounded to the noise; lower and upper cover the noise at all points simultaneously with ${percent} probability${followed}`,
    [...meta.domain.map(axisTitle), meta.reading ? `value by "${meta.reading}"` : "value", "lower", "upper", "pointwise", ...(isFollowed ? ["with the form"] : [])], rows);
}

export function drawAnswerTable(ask) {
  fill(`Sum of ${ask.question} over the records of each window`, ["from", "to", "sum", "truncation"],
    ask.shown.map((one) => {
      const [from, to, ...rest] = answerRow(one);
      return [instant(from), instant(to), ...rest];
    }));
}

/** A text as a CSV cell: quoted if necessary, and never a formula. */
export function csvText(text) {
  const plain = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/**
 * The published values with their bands, those of noise and form together if the form is known, and the closer reading if there is one. Every number with enough digits to round-trip:
 * programs round for themselves. What is unknown is empty.
 */
export function csv({ entry, at }) {
  const { meta, synopsis } = entry;
  const axes = withThird(meta, (axis) => along(axis, CSV_SIDES[meta.domain.length]), at);
  const isFollowed = synopsis.formError() !== null && !synopsis.choice;
  const heads = [...meta.domain.map((axis) => csvText(fieldOf(axis))), "value", "lower", "upper", "pointwise_lower", "pointwise_upper", ...(isFollowed ? ["total_lower", "total_upper"] : []), ...(meta.reading ? [`value_${meta.reading}`] : [])];
  const lines = [heads.join(",")];
  for (const { at: place, value, form, published, outer, inner } of gridRows(synopsis, axes)) {
    const total = isFollowed ? [outer[0] - form, outer[1] + form] : [];
    const ends = [...outer, ...inner, ...total].map((end) => (Number.isFinite(end) ? end : ""));
    lines.push([...place, published, ...ends, ...(meta.reading ? [value] : [])].join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}

export function answersCsv(ask) {
  const lines = ["window_start,window_end,question,sum,lower,upper,truncation"];
  for (const { meta, answer } of ask.shown) {
    const { sum, noise, truncation } = answer;
    lines.push([meta.window.start, meta.window.end, csvText(ask.question), sum, sum - noise.half_width, sum + noise.half_width, truncation.error].join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}
