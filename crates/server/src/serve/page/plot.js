// Curves with their bands on a canvas.

import { drawAxes, fitted, frame, hatching, rule, sheet, theme } from "./axes.js";
import { beyond, runs, sides } from "./grid.js";

/**
 * Draws one curve. `picture`:
 *   x, y         { min, max, label } of the axes
 *   now          { xs, values, wide, outer, inner } of the window that is shown
 *   then         the same for the previous window, a ghost; grey where noise alone could explain the difference
 *   curves       plausible curves, { xs, curves }
 *   others       curves of other keys, each { key, now }, drawn over it with their names; `key` is its own
 *   border       { at, above, below, short }: the threshold between two classes, and their names
 *   mark         the position of the crosshair
 *   range        [from, to] that is counted
 *   small        without axes, for small multiples
 *   size         pixels of its text, 12 unless a wall has room for more
 * Returns the frame, whose `toX` maps a pointer position to a coordinate.
 */
export function drawPlot(canvas, picture) {
  const { context, width, height } = sheet(canvas);
  if (width < 20 || height < 20) return null;
  const colours = theme();
  const { x, y, now, then, curves, others = [], border, mark, range, small, size = 12 } = picture;
  const room = frame(context, width, height, x, y, colours, { small, size });
  if (!small) drawAxes(context, room, x, y, colours);
  context.save();
  context.beginPath();
  context.rect(room.left, room.top, room.right - room.left, room.bottom - room.top);
  context.clip();
  if (border) drawSides(context, room, now, border, colours, small);
  if (small && y.min < 0 && y.max > 0) rule(context, room.left, room.y(0), room.right, room.y(0), colours.line);
  drawBand(context, room, now.xs, now.outer, colours.wide, colours.rim);
  if (!small) others.forEach((other, i) => drawBand(context, room, other.now.xs, other.now.outer, colours.others[i].wide));
  if (!small && !curves && others.length === 0) drawBand(context, room, now.xs, now.inner, colours.narrow);
  if (curves) drawCurves(context, room, curves, colours);
  if (then) drawGhost(context, room, now, then, colours);
  if (!small) others.forEach((other, i) => stroke(context, room, other.now.xs, other.now.values, { colour: colours.others[i].line, width: 2, dash: DASHES[i] }));
  stroke(context, room, now.xs, now.values, { colour: colours.curve, width: small ? 1.5 : (2.25 * size) / 12 });
  drawUnknown(context, room, now, colours, small);
  if (range && !small) drawRange(context, room, range, colours);
  context.restore();
  if (others.length > 0 && !small) {
    const all = [{ key: picture.key, now }, ...others];
    const taken = [];
    all.forEach((one, i) => taken.push(drawName(context, room, one, all, taken, i === 0 ? colours.curve : colours.others[i - 1].line, colours)));
  }
  if (mark !== undefined && !small) drawMark(context, room, now, mark, colours);
  return room;
}

/** The dashes of other keys: colours alone do not tell them apart for everybody. */
const DASHES = [[9, 4], [2, 3], [9, 3, 2, 3]];

/** The name of a curve, where it is furthest from the other curves and no other name stands; returns where it stands. */
function drawName(context, room, { key, now }, all, taken, colour, colours) {
  const others = all.filter((one) => one.now !== now).map((one) => one.now.values);
  let [best, most] = [0, -Infinity];
  for (let i = Math.floor(now.xs.length * 0.04); i < now.xs.length * 0.9; i++) {
    const [x, y] = [room.x(now.xs[i]), room.y(now.values[i])];
    const isTaken = taken.some((place) => Math.abs(place.x - x) < 110 && Math.abs(place.y - y) < 40);
    const apart = Math.min(y - room.top, ...others.map((values) => Math.abs(room.y(values[i]) - y))) - (isTaken ? 1000 : 0);
    if (apart > most) [best, most] = [i, apart];
  }
  context.font = `600 13px ${colours.font}`;
  const text = fitted(context, key ?? "(all records)", 180);
  const width = context.measureText(text).width;
  const left = Math.min(Math.max(room.x(now.xs[best]) - width / 2, room.left + 2), room.right - width - 4);
  const isLower = others.some((values) => values[best] > now.values[best]) && !others.some((values) => values[best] < now.values[best]);
  const middle = Math.min(Math.max(room.y(now.values[best]) + (isLower ? 14 : -14), room.top + 10), room.bottom - 10);
  context.globalAlpha = 0.85;
  context.fillStyle = colours.paper;
  context.fillRect(left - 3, middle - 9, width + 6, 18);
  context.globalAlpha = 1;
  context.fillStyle = colour;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(text, left, middle);
  return { x: left + width / 2, y: room.y(now.values[best]) };
}

/** A band, with edges of the colour `rim`. */
function drawBand(context, room, xs, { lower, upper }, colour, rim) {
  // Where it is unknown, the band has no end.
  const place = (v) => Math.min(Math.max(room.y(v), room.top - 10), room.bottom + 10);
  context.beginPath();
  for (let i = 0; i < xs.length; i++) context.lineTo(room.x(xs[i]), place(upper[i]));
  for (let i = xs.length - 1; i >= 0; i--) context.lineTo(room.x(xs[i]), place(lower[i]));
  context.closePath();
  context.fillStyle = colour;
  context.fill();
  if (!rim) return;
  for (const edge of [lower, upper]) {
    context.beginPath();
    for (let i = 0; i < xs.length; i++) context.lineTo(room.x(xs[i]), place(edge[i]));
    context.strokeStyle = rim;
    context.lineWidth = 1;
    context.stroke();
  }
}

export function stroke(context, room, xs, values, { colour, width, dash = [] }) {
  context.beginPath();
  for (let i = 0; i < xs.length; i++) context.lineTo(room.x(xs[i]), room.y(values[i]));
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.setLineDash(dash);
  context.stroke();
  context.setLineDash([]);
}

function drawCurves(context, room, { xs, curves }, colours) {
  for (const values of curves) stroke(context, room, xs, values, { colour: colours.plausible, width: 1 });
}

/** The previous window: thin and grey, highlighted only where the difference exceeds both bands. */
function drawGhost(context, room, now, then, colours) {
  const isKnown = Array.from(then.wide, (half) => half < Infinity);
  for (let i = 0; i < isKnown.length; i++) {
    const start = i;
    while (isKnown[i]) i++;
    stroke(context, room, then.xs.slice(start, i), then.values.slice(start, i), { colour: colours.ghost, width: 1.25, dash: [4, 4] });
  }
  const marks = beyond(now, then);
  for (let i = 0; i < marks.length; i++) {
    if (marks[i] === 0) continue;
    const start = i;
    while (i + 1 < marks.length && marks[i + 1] !== 0) i++;
    stroke(context, room, then.xs.slice(start, i + 1), then.values.slice(start, i + 1), { colour: colours.beyond, width: 1.75, dash: [4, 4] });
  }
  for (const { mark, from, to } of runs(now.xs, marks)) {
    if (mark === 0) continue;
    context.fillStyle = colours.beyond;
    context.fillRect(room.x(from), room.bottom - 5, Math.max(2, room.x(to) - room.x(from)), 5);
  }
}

/** The sides of a threshold: tinted where the band excludes it, hatched where it does not. */
function drawSides(context, room, now, { at, above, below, short }, colours, small) {
  const hatch = hatching(context, colours, small ? 5 : 8);
  for (const { mark, from, to } of runs(now.xs, sides(now, at))) {
    const [left, right] = [room.x(from), room.x(to)];
    context.fillStyle = mark > 0 ? colours.above : mark < 0 ? colours.below : hatch;
    context.fillRect(left, room.top, right - left, room.bottom - room.top);
    if (small) continue;
    context.font = `600 ${room.size}px ${colours.font}`;
    context.textAlign = "center";
    context.textBaseline = "top";
    const names = mark > 0 ? [above, short[1]] : mark < 0 ? [below, short[0]] : ["too close to call"];
    const text = names.find((name) => context.measureText(name).width < right - left - 12);
    if (!text) continue;
    if (mark === 0) {
      const half = context.measureText(text).width / 2 + 5;
      context.fillStyle = colours.paper;
      context.fillRect((left + right) / 2 - half, room.top + 3, 2 * half, room.size + 7);
    }
    context.fillStyle = colours.ink;
    context.fillText(text, (left + right) / 2, room.top + 7);
  }
  rule(context, room.left, room.y(at), room.right, room.y(at), colours.soft);
}

/** Hatches where there may be no records: nothing is known of the function there. */
function drawUnknown(context, room, now, colours, small) {
  const hatch = hatching(context, colours, small ? 5 : 8);
  for (const { mark, from, to } of runs(now.xs, Array.from(now.wide, (half) => (half < Infinity ? 1 : 0)))) {
    if (mark === 1) continue;
    const [left, width] = [room.x(from), room.x(to) - room.x(from)];
    for (const fill of [colours.paper, hatch]) {
      context.fillStyle = fill;
      context.fillRect(left, room.top, width, room.bottom - room.top);
    }
    context.font = `600 ${room.size}px ${colours.font}`;
    const half = context.measureText("unknown").width / 2 + 5;
    if (small || 2 * half > width) continue;
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillStyle = colours.paper;
    context.fillRect(left + width / 2 - half, room.top + 3, 2 * half, room.size + 7);
    context.fillStyle = colours.ink;
    context.fillText("unknown", left + width / 2, room.top + 7);
  }
}

/** The range that is counted, as a bar on the axis with lines at its ends. */
function drawRange(context, room, [from, to], colours) {
  context.lineWidth = 1;
  for (const end of [from, to]) rule(context, room.x(end), room.top, room.x(end), room.bottom, colours.plausible);
  context.fillStyle = colours.plausible;
  context.fillRect(room.x(from), room.bottom - 7, Math.max(2, room.x(to) - room.x(from)), 7);
}

function drawMark(context, room, now, mark, colours) {
  const px = Math.round(room.x(mark)) + 0.5;
  context.lineWidth = 1;
  rule(context, px, room.top, px, room.bottom, colours.ghost);
  const at = (mark - now.xs[0]) / (now.xs[now.xs.length - 1] - now.xs[0]) * (now.xs.length - 1);
  const i = Math.min(now.xs.length - 2, Math.floor(at));
  const between = (list) => list[i] + (at - i) * (list[i + 1] - list[i]);
  if (!(between(now.wide) < Infinity)) return;
  const value = between(now.values);
  context.lineWidth = 2;
  const [top, bottom] = [room.y(between(now.outer.upper)), room.y(between(now.outer.lower))].map((y) => Math.min(Math.max(y, room.top), room.bottom));
  rule(context, px, top, px, bottom, colours.curve);
  context.beginPath();
  context.arc(px, Math.min(Math.max(room.y(value), room.top), room.bottom), 4.5, 0, 2 * Math.PI);
  context.fillStyle = colours.paper;
  context.fill();
  context.strokeStyle = colours.curve;
  context.stroke();
}

/**
 * Answers by window with their errors: `points` of { label, value, inner, outer }, `inner` the noise and `outer` noise plus
 * truncation; `chosen` is the index of the selected window.
 */
export function drawAnswers(canvas, { points, chosen, y }) {
  const { context, width, height } = sheet(canvas);
  if (width < 20 || points.length === 0) return;
  const colours = theme();
  const x = { min: -0.5, max: points.length - 0.5, label: "" };
  const room = frame(context, width, height, x, y, colours);
  room.xTicks.values = [];
  drawAxes(context, room, x, y, colours);
  const every = Math.ceil(points.length / Math.max(1, (room.right - room.left) / 64));
  points.forEach(({ label, value, inner, outer }, i) => {
    const px = room.x(i);
    const colour = i === chosen ? colours.curve : colours.soft;
    context.lineWidth = 1.5;
    rule(context, px, room.y(value + outer), px, room.y(value - outer), colour);
    context.lineWidth = 5;
    context.globalAlpha = 0.35;
    rule(context, px, room.y(value + inner), px, room.y(value - inner), colour);
    context.globalAlpha = 1;
    context.beginPath();
    context.arc(px, room.y(value), i === chosen ? 5 : 3.5, 0, 2 * Math.PI);
    context.fillStyle = colour;
    context.fill();
    if ((points.length - 1 - i) % every !== 0) return;
    context.fillStyle = colours.soft;
    context.font = `12px ${colours.font}`;
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillText(label, px, room.bottom + 8);
  });
}
