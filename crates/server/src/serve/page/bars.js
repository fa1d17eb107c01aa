// Keys as bars on a canvas: the wall, and pictures that are saved.

import { fitted, rule, sheet, theme } from "./axes.js";
import { barScale } from "./keyrows.js";
import { isLocation } from "./keytable.js";
import { plural } from "./words.js";

/** The most rows of a picture of bars. */
const MOST_BARS = 10;
/** The height of a row, in sizes of its text. */
const ROW = 2.1;

/** The height of a picture of so many rows, of text of `size` pixels. */
export const heightOf = (count, size) => ROW * size * linesOf(count);

/** The size of the text with which a picture of so many rows has this height. */
export const sizeFor = (count, height) => height / (ROW * linesOf(count));

/** Lines of a picture: rows, and one that says how many more there are. */
const linesOf = (count) => Math.min(count, MOST_BARS) + (count > MOST_BARS ? 1 : 0);

/** Draws `rows`, the first of them where there is no room for all, with text of `size` pixels. */
export function drawBars(canvas, rows, reading, size) {
  const { context, width, height } = sheet(canvas);
  if (width < 20 || height < 20) return;
  const colours = theme();
  const step = ROW * size;
  const room = Math.max(1, Math.floor(height / step));
  const isAll = rows.length <= Math.min(room, MOST_BARS);
  const shown = rows.slice(0, isAll ? rows.length : Math.max(1, Math.min(room - 1, MOST_BARS)));
  if (rows.length === 0) return;
  context.textBaseline = "middle";
  context.font = `600 ${size}px ${colours.font}`;
  const names = shown.map(({ name, isNew }) => `${fitted(context, name, (isNew ? 0.27 : 0.32) * width)}${isNew ? " (new)" : ""}`);
  const left = Math.max(...names.map((name) => context.measureText(name).width)) + 0.8 * size;
  const right = width - Math.max(...shown.map(({ words }) => context.measureText(words).width)) - 0.8 * size;
  const { min, max } = barScale(rows, reading);
  const x = (value) => left + (Math.max(right - left, 1) * (value - min)) / (max - min);
  shown.forEach((row, i) => {
    const middle = (i + 0.5) * step;
    context.textAlign = "left";
    context.fillStyle = row.isFaint ? colours.soft : colours.ink;
    context.fillText(names[i], 0, middle);
    context.textAlign = "right";
    context.fillText(row.words, width, middle);
    if (row.ends) drawRow(context, row, { x, zero: isLocation(reading) ? undefined : x(0), middle, size }, colours);
  });
  if (isAll) return;
  context.textAlign = "left";
  context.fillStyle = colours.soft;
  context.font = `${size}px ${colours.font}`;
  context.fillText(`and ${plural(rows.length - shown.length, "more key")}`, 0, (shown.length + 0.5) * step);
}

/** A bar from 0, or a dot of a mean, and the interval as a whisker. */
function drawRow(context, row, { x, zero, middle, size }, colours) {
  const [at, lower, upper] = [row.value, ...row.ends].map(x);
  if (zero !== undefined) {
    context.fillStyle = row.isFaint ? colours.line : colours.below;
    context.fillRect(Math.min(zero, at), middle - 0.6 * size, Math.abs(at - zero), 1.2 * size);
    context.lineWidth = 1;
    rule(context, zero, middle - 0.8 * size, zero, middle + 0.8 * size, colours.soft);
  }
  const colour = row.isFaint ? colours.ghost : colours.curve;
  context.lineWidth = Math.max(1.5, size / 9);
  rule(context, lower, middle, upper, middle, colour);
  for (const end of [lower, upper]) rule(context, end, middle - 0.32 * size, end, middle + 0.32 * size, colour);
  context.fillStyle = colour;
  context.beginPath();
  context.arc(at, middle, Math.max(2, size / 5), 0, 2 * Math.PI);
  context.fill();
}
