// Functions of two axes as colour maps, and classes as regions, on a canvas.

import { drawAxes, fitted, frame, hatching, rule, sheet, theme, tickLabel, ticks } from "./axes.js";
import { sides } from "./grid.js";

/** Viridis (van der Walt and Smith), evenly sampled: perceptually uniform and safe for the colour-blind. */
const VIRIDIS = [
  [68, 1, 84], [71, 39, 119], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121],
  [110, 206, 88], [181, 222, 44], [253, 231, 37],
];
/** Blue to grey to orange, for diverging values. */
const TWO_SIDED = [[33, 90, 160], [122, 165, 210], [226, 226, 222], [230, 170, 100], [178, 82, 10]];

function colour(scale, t) {
  const at = Math.min(Math.max(t, 0), 1) * (scale.length - 1);
  const i = Math.min(scale.length - 2, Math.floor(at));
  return scale[i].map((a, c) => Math.round(a + (at - i) * (scale[i + 1][c] - a)));
}

const MOST_STEPS = 24;

/**
 * A colour scale from `min` to `max`. Each step is at least twice `half`, the largest half-width of the band, because each of two
 * points can move by one half-width. Adjacent colours may belong to almost equal values; values with colours two steps apart differ
 * by at least a whole step, which is more than the noise. With fewer than three steps there are no such colours.
 */
export function colourScale(min, max, half, label, isTwoSided = false) {
  const steps = Math.max(1, Math.min(MOST_STEPS, Math.floor((max - min) / Math.max(2 * half, 1e-300))));
  const scale = isTwoSided ? TWO_SIDED : VIRIDIS;
  const colours = Array.from({ length: steps }, (_, i) => colour(scale, steps === 1 ? 0.5 : i / (steps - 1)));
  const step = (v) => Math.min(steps - 1, Math.max(0, Math.floor(((v - min) / (max - min)) * steps)));
  return { min, max, half, steps, label, isTwoSided, colours, pixels: colours.map(pixel), step, tellsApart: steps > 2 };
}

/** Where the noise is larger than the colours allow for. */
export const isUnclear = ({ wide }, { half }) => Array.from(wide, (own) => own > half * (1 + 1e-9));

/** A colour as a pixel of an image: machines with browsers are little-endian. */
const pixel = ([r, g, b, a = 255]) => ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;

/** An image of the plane, one pixel per point; `paint(i)` gives the pixel of point `i`. */
function image({ xs, ys }, paint) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: xs.length, height: ys.length });
  const pen = canvas.getContext("2d");
  const data = pen.createImageData(xs.length, ys.length);
  const pixels = new Uint32Array(data.data.buffer);
  for (let i = 0, at = 0; i < xs.length; i++) {
    for (let j = ys.length - 1; j >= 0; j--, at++) pixels[j * xs.length + i] = paint(at);
  }
  pen.putImageData(data, 0, 0);
  return canvas;
}

/** Draws an image so that its outer points lie on the frame. */
function place(context, picture, room) {
  const [w, h] = [(room.right - room.left) / (picture.width - 1), (room.bottom - room.top) / (picture.height - 1)];
  context.save();
  context.beginPath();
  context.rect(room.left, room.top, room.right - room.left, room.bottom - room.top);
  context.clip();
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, room.left - w / 2, room.top - h / 2, w * picture.width, h * picture.height);
  context.restore();
}

/**
 * Draws a plane. `picture`:
 *   x, y      { min, max, label } of the axes
 *   plane     { xs, ys, values, wide }
 *   scale     the colour scale, hatched where the noise is larger than it allows for; without it the sides of `border` are shown
 *   border    { at, above, below }: hatched where the band contains `at`
 *   isFlat    hatched all over: noise could explain all differences between points
 *   mark      [x, y] of the crosshair
 *   small     without axes, for small multiples
 *   size      pixels of its text
 */
export function drawHeat(canvas, picture) {
  const { context, width, height, ratio } = sheet(canvas);
  if (width < 20 || height < 20) return null;
  const colours = theme();
  const { x, y, plane, scale, border, isFlat, mark, small, size = 12 } = picture;
  const bar = small || !scale ? 0 : (74 * size) / 12;
  const room = frame(context, width - bar, height, x, y, colours, { small, size });
  const sided = isFlat ? new Array(plane.values.length).fill(0) : border ? sides(plane, border.at) : new Array(plane.values.length).fill(1);
  const unclear = scale && isUnclear(plane, scale);
  const marks = scale ? sided.map((mark, i) => (unclear[i] ? 0 : mark)) : sided;
  const tints = [colours.below, colours.paper, colours.above].map((css) => pixel(channels(context, css)));
  const isUnknown = (i) => plane.wide[i] === Infinity;
  place(context, image(plane, (i) => (scale && !isUnknown(i) ? scale.pixels[scale.step(plane.values[i])] : tints[marks[i] + 1])), room);
  if (scale && plane.wide.includes(Infinity)) {
    drawHatched(context, image(plane, (i) => (isUnknown(i) ? 0xff000000 : 0)), room, ratio, colours, small);
  }
  if (marks.includes(0)) {
    const mask = image(plane, (i) => (marks[i] === 0 && !(scale && isUnknown(i)) ? 0xff000000 : 0));
    drawHatched(context, mask, room, ratio, scale ? { ...colours, hatch: scale.isTwoSided ? "rgba(25,35,45,.4)" : colours.overlay } : colours, small);
  }
  if (small) return room;
  drawAxes(context, room, x, y, colours, { grid: false });
  if (scale) drawBar(context, scale, { ...room, left: room.right + 1.5 * size, right: width - 2 }, colours);
  if (mark) drawCross(context, room, mark, scale ? [["rgba(0,0,0,.55)", 3], ["#fff", 1]] : [[colours.ink, 1]]);
  return room;
}

/** The channels of a CSS colour. */
function channels(context, css) {
  context.save();
  context.fillStyle = css;
  const text = context.fillStyle;
  context.restore();
  const match = /^#(..)(..)(..)$/.exec(text);
  if (match) return match.slice(1).map((part) => parseInt(part, 16));
  const numbers = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 1];
  return [...numbers.slice(0, 3), Math.round(255 * (numbers[3] ?? 1))];
}

function drawHatched(context, mask, room, ratio, colours, small) {
  const layer = document.createElement("canvas");
  const [w, h] = [room.right - room.left, room.bottom - room.top];
  Object.assign(layer, { width: Math.ceil(w * ratio), height: Math.ceil(h * ratio) });
  const pen = layer.getContext("2d");
  pen.scale(ratio, ratio);
  place(pen, mask, { left: 0, top: 0, right: w, bottom: h });
  pen.globalCompositeOperation = "source-in";
  pen.fillStyle = hatching(pen, colours, small ? 4 : 8);
  pen.fillRect(0, 0, w, h);
  context.drawImage(layer, room.left, room.top, w, h);
}

/** The colour bar with its numbers. */
function drawBar(context, scale, { left, right, top, bottom, size }, colours) {
  const across = size + 2;
  const up = (bottom - top) / scale.steps;
  scale.colours.forEach(([r, g, b], i) => {
    context.fillStyle = `rgb(${r},${g},${b})`;
    context.fillRect(left, bottom - (i + 1) * up - 0.3, across, up + 0.6);
  });
  const y = (v) => bottom - ((v - scale.min) / (scale.max - scale.min)) * (bottom - top);
  context.font = `${size}px ${colours.font}`;
  context.fillStyle = colours.soft;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const marks = ticks(scale.min, scale.max, Math.max(2, (bottom - top) / (5 * size)));
  for (const v of marks.values) context.fillText(tickLabel(v, marks.step), left + across + 6, y(v));
  context.fillStyle = colours.ink;
  context.font = `600 ${size}px ${colours.font}`;
  context.textAlign = "right";
  context.textBaseline = "top";
  context.fillText(fitted(context, scale.label, right - 110), right, 4);
}

function drawCross(context, room, [x, y], pens) {
  const [px, py] = [Math.round(room.x(x)) + 0.5, Math.round(room.y(y)) + 0.5];
  for (const [colour, width] of pens) {
    context.lineWidth = width;
    rule(context, px, room.top, px, room.bottom, colour);
    rule(context, room.left, py, room.right, py, colour);
  }
  for (const [colour, width] of pens) {
    context.beginPath();
    context.arc(px, py, 5, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.lineWidth = width + 1;
    context.stroke();
  }
}
