// Downloads: files that include their own description.

import { theme } from "./axes.js";
import { title } from "./kinds.js";
import { definition, inSymbols, unit } from "./price.js";
import { span } from "./words.js";

/** A file name that is valid on any system. */
export function fileName(meta, ending) {
  const parts = [meta.release, meta.key, meta.window.start].filter((part) => part !== null && part !== undefined);
  return `${parts.join("-").replace(/[^A-Za-z0-9._-]+/g, "_").replace(/^[.\-]+/, "_").slice(0, 120)}.${ending}`;
}

export function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  saveFrom(name, address);
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Saves what is at an address. */
export function saveFrom(name, address) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}

/**
 * The plots as laid out on the page, with their title above, and `said`, what is off at the crosshair, and their guarantee below: a picture in a data URL. As a blob it would come
 * when the browser is idle, by when the click that asked for it may no longer allow a download.
 */
export function png(home, meta, said) {
  const canvases = [...home.querySelectorAll("canvas")].filter((canvas) => canvas.width > 0 && !canvas.hidden);
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  const boxes = canvases.map((canvas) => canvas.getBoundingClientRect());
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const width = Math.max(...boxes.map((box) => box.right)) - left;
  const height = Math.max(...boxes.map((box) => box.bottom)) - top;
  const margin = 24;
  const sheet = document.createElement("canvas");
  Object.assign(sheet, { width: Math.round((width + 2 * margin) * ratio), height: Math.round((height + 4 * margin + 46 + (said ? 20 : 0)) * ratio) });
  const pen = sheet.getContext("2d");
  pen.scale(ratio, ratio);
  const colours = theme();
  pen.fillStyle = colours.paper;
  pen.fillRect(0, 0, sheet.width, sheet.height);
  pen.fillStyle = colours.ink;
  pen.font = `600 17px ${colours.font}`;
  const key = meta.key === null || meta.key === undefined ? "" : ` \u00b7 ${meta.key}`;
  pen.fillText(`${title(meta)}${key}`, margin, margin + 14, width);
  pen.font = `13px ${colours.font}`;
  pen.fillStyle = colours.soft;
  const simulated = meta.synthetic ? " \u00b7 SIMULATED RECORDS" : "";
  pen.fillText(`${span(meta.window.start, meta.window.end)}${simulated}`, margin, margin + 36, width);
  canvases.forEach((canvas, i) => {
    const box = boxes[i];
    pen.drawImage(canvas, margin + box.left - left, 2 * margin + 28 + box.top - top, box.width, box.height);
  });
  const { short: kind } = definition(meta);
  pen.fillText(`${inSymbols(meta.privacy.price)} a window, ${unit(meta).short}, ${kind}. Noise was added on purpose; differences smaller than the band are not evidence.`,
    margin, height + 3 * margin + 34, width);
  if (said) pen.fillText(said, margin, height + 3 * margin + 54, width);
  return sheet.toDataURL("image/png");
}
