// Scales, round ticks, and a canvas that is sharp on every screen.

import { exact } from "./words.js";

/** About `count` round numbers from `low` to `high`, and the step between them. */
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= rough * 0.999) ?? unit;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const values = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
  return { step, values };
}

/** The next round numbers below and above, so that a scale rarely changes. */
export function roundOut(low, high) {
  const { step } = ticks(low, high, 5);
  const half = step / 2;
  return [Math.floor(low / half + 1e-9) * half, Math.ceil(high / half - 1e-9) * half];
}

/** The label of a tick; very large and small ones are shortened. */
export function tickLabel(x, step) {
  const size = Math.max(Math.abs(x), step);
  if (size >= 1e6) return `${exact(x / 1e6, step / 1e6)}M`;
  if (size < 1e-3) return Number(x.toPrecision(3)).toExponential().replace("-", "\u2212").replace("e\u2212", "e-");
  return exact(x, step);
}

/** The current colours and font of the style sheet. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"), soft: of("soft"), line: of("line"), paper: of("paper"), curve: of("curve"), wide: of("wide"),
    narrow: of("narrow"), ghost: of("ghost"), beyond: of("beyond"), above: of("above"), below: of("below"),
    hatch: of("hatch"), overlay: of("overlay"), plausible: of("plausible"), rim: of("rim"),
    others: [1, 2, 3].map((i) => ({ line: of(`other-${i}`), wide: of(`other-${i}-wide`) })), font: getComputedStyle(document.body).fontFamily,
  };
}

/** The cleared context of a canvas in CSS pixels, and its size. */
export function sheet(canvas) {
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  const { clientWidth: width, clientHeight: height } = canvas;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height, ratio };
}

/** The plot area within a canvas with text of `size` pixels, and its scales: `x(v)` and `y(v)` to pixels, `toX` and `toY` back. */
export function frame(context, width, height, x, y, colours, { small = false, size = 12 } = {}) {
  context.font = `${small ? 10 : size}px ${colours.font}`;
  const k = size / 12;
  const yTicks = ticks(y.min, y.max, Math.max(2, Math.min(6, height / 55 / k)));
  const labels = yTicks.values.map((v) => tickLabel(v, yTicks.step));
  const widest = Math.max(0, ...labels.map((text) => context.measureText(text).width));
  const room = small
    ? { left: 3, right: width - 3, top: 3, bottom: height - 3 }
    : { left: Math.ceil(widest) + 14 * k, right: width - 16 * k, top: y.label ? 30 * k : 10, bottom: height - 42 * k };
  const across = room.right - room.left;
  const up = room.bottom - room.top;
  return {
    ...room,
    size,
    x: (v) => room.left + ((v - x.min) / (x.max - x.min)) * across,
    y: (v) => room.bottom - ((v - y.min) / (y.max - y.min)) * up,
    toX: (px) => x.min + (Math.min(Math.max(px - room.left, 0), across) / across) * (x.max - x.min),
    toY: (py) => y.min + (Math.min(Math.max(room.bottom - py, 0), up) / up) * (y.max - y.min),
    xTicks: ticks(x.min, x.max, Math.max(2, Math.min(10, across / 70 / k))),
    yTicks,
  };
}

/** Grid lines, tick labels and the names of both axes. */
export function drawAxes(context, room, x, y, colours, { grid = true } = {}) {
  context.save();
  const { size = 12 } = room;
  const k = size / 12;
  context.font = `${size}px ${colours.font}`;
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const v of room.yTicks.values) {
    const py = Math.round(room.y(v)) + 0.5;
    if (grid) rule(context, room.left, py, room.right, py, v === 0 ? colours.soft : colours.line);
    context.fillStyle = colours.soft;
    context.fillText(tickLabel(v, room.yTicks.step), room.left - 8 * k, py);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const v of room.xTicks.values) {
    const px = Math.round(room.x(v)) + 0.5;
    rule(context, px, room.bottom, px, room.bottom + 5 * k, colours.soft);
    context.fillStyle = colours.soft;
    context.fillText(tickLabel(v, room.xTicks.step), px, room.bottom + 8 * k);
  }
  rule(context, room.left, room.bottom + 0.5, room.right, room.bottom + 0.5, colours.soft);
  context.fillStyle = colours.ink;
  context.font = `600 ${size}px ${colours.font}`;
  context.fillText(fitted(context, x.label, room.right - room.left), (room.left + room.right) / 2, room.bottom + 25 * k);
  if (y.label) {
    context.textAlign = "left";
    context.fillText(fitted(context, y.label, room.right - 4), 2, 4);
  }
  context.restore();
}

/** A text truncated to a width. */
export function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let start = text;
  while (start.length > 1 && context.measureText(`${start}\u2026`).width > width) start = start.slice(0, -1);
  return `${start}\u2026`;
}

export function rule(context, x1, y1, x2, y2, colour) {
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/** Diagonal hatching, for what is too close to call. */
export function hatching(context, colours, spacing = 7) {
  const tile = document.createElement("canvas");
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  tile.width = tile.height = Math.round(spacing * ratio);
  const pen = tile.getContext("2d");
  pen.scale(tile.width / spacing, tile.width / spacing);
  pen.strokeStyle = colours.hatch;
  pen.lineWidth = 1.4;
  pen.beginPath();
  for (const shift of [-spacing, 0, spacing]) {
    pen.moveTo(shift - 1, spacing + 1);
    pen.lineTo(shift + spacing + 1, -1);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(spacing / tile.width));
  return pattern;
}
