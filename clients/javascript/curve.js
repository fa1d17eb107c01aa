/**
 * A published curve as an element of a page: `<bernstream-curve src="synopsis.json"></bernstream-curve>`. `src` is the JSON of a
 * synopsis on one axis, from a file or the dashboard's API. Colours follow the page: `color`, and `--bernstream-curve`.
 */
import { parse, SynopsisError } from "./bernstream.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, POINTS] = [640, 320, 161];
const ROOM = { left: 56, right: 16, top: 46, bottom: 48 };

export class BernsteinCurve extends HTMLElement {
  static observedAttributes = ["src"];
  #asked = 0;

  connectedCallback() {
    this.#load();
  }

  attributeChangedCallback() {
    if (this.isConnected) this.#load();
  }

  /** Draws what `src` names; of two requests the later one counts. */
  async #load() {
    const asked = ++this.#asked;
    const src = this.getAttribute("src");
    if (!src) return this.replaceChildren();
    let shown;
    try {
      const response = await fetch(src);
      if (!response.ok) throw new Error(`${src} answered ${response.status}`);
      shown = drawn(parse(await response.text()));
    } catch (error) {
      shown = document.createElement("p");
      shown.textContent = `No curve: ${error.message}`;
    }
    if (asked !== this.#asked) return;
    this.replaceChildren(shown);
    this.dispatchEvent(new CustomEvent(shown.localName === "p" ? "error" : "load"));
  }
}

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Round numbers from `low` to `high`, at most about `most`. */
function ticks(low, high, most) {
  const least = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find((of) => power * of >= least * (1 - 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

function drawn(synopsis) {
  const { meta } = synopsis;
  if (meta.domain.length !== 1) throw new SynopsisError(`it has ${meta.domain.length} axes, and a curve has one`);
  const [{ column, min, max }] = meta.domain;
  const axes = [Array.from({ length: POINTS }, (_, i) => (i === POINTS - 1 ? max : min + ((max - min) * i) / (POINTS - 1)))];
  const evaluator = synopsis.evaluator();
  const values = evaluator.on(axes);
  const { lower, upper } = evaluator.intervals(axes, synopsis.halfWidths(axes));
  const [low, high] = [Math.min(0, ...lower), Math.max(0, ...upper)];
  const x = (at) => ROOM.left + ((at - min) / (max - min)) * (WIDTH - ROOM.left - ROOM.right);
  const y = (at) => HEIGHT - ROOM.bottom - ((at - low) / (high - low || 1)) * (HEIGHT - ROOM.top - ROOM.bottom);
  const path = (ends) => Array.from(ends, (at, i) => `${x(axes[0][i]).toFixed(1)},${y(at).toFixed(1)}`);

  const names = meta.names?.axes?.[0] ?? {};
  const label = `${names.label ?? column}${names.unit ? ` (${names.unit})` : ""}`;
  const title = [meta.names?.title ?? meta.release, meta.key, meta.window.start].filter(Boolean).join(", ");
  const level = `${Math.round(meta.band.level * 100)} %`;
  const about = `${title}: ${meta.meaning} by ${label}. The band covers the noise at all points with ${level} probability.`;
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": about, "font-size": 12, "font-family": "inherit", fill: "currentColor", width: "100%" });
  const colour = "var(--bernstream-curve, #4477aa)";
  const text = (at, content, anchor) => element("text", { ...at, "text-anchor": anchor }, content);
  svg.append(
    element("title", {}, about),
    element("polygon", { class: "band", points: [...path(upper), ...path(lower).reverse()].join(" "), fill: colour, "fill-opacity": 0.25 }),
    element("line", { x1: x(min), x2: x(max), y1: y(0), y2: y(0), stroke: "currentColor", "stroke-opacity": 0.4 }),
    element("polyline", { class: "curve", points: path(values).join(" "), fill: "none", stroke: colour, "stroke-width": 2 }),
    ...ticks(min, max, 7).map((at) => text({ x: x(at), y: HEIGHT - ROOM.bottom + 18 }, String(at), "middle")),
    ...ticks(low, high || 1, 5).map((at) => text({ x: ROOM.left - 6, y: y(at) + 4 }, String(at), "end")),
    text({ x: x((min + max) / 2), y: HEIGHT - 8 }, label, "middle"),
    text({ x: 0, y: 14, "font-weight": 600 }, title, "start"),
    text({ x: 0, y: 30 }, meta.meaning.split(";")[0], "start"),
  );
  return svg;
}

customElements.define("bernstream-curve", BernsteinCurve);
