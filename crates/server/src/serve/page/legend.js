// The legend of a plot, and the switches beside it.

import { byId, element, say } from "./dom.js";
import { isFlat, line, plane } from "./grid.js";
import { isUnclear } from "./heat.js";
import { nameOf } from "./keys.js";
import { border, hasPlot, kindOf } from "./kinds.js";
import { percent } from "./sentence.js";
import { mapScale, SIDE } from "./stage.js";

/** Draws both for a look; a choice of regions or values that is not made is made by the kind of function. */
export function drawLegend(now, regions) {
  const { meta } = now.entry;
  const isDrawn = hasPlot(meta);
  byId("regions").value = regions ?? usualRegions(meta);
  for (const id of ["ghost", "plausible"]) byId(id).closest("label").hidden = !isDrawn;
  byId("ghost").disabled = now.others.length > 0;
  byId("regions").closest("label").hidden = !border(meta) || meta.domain.length === 1;
  byId("legend").hidden = !isDrawn;
  const isMap = isDrawn && meta.domain.length > 1;
  const sided = border(meta);
  say(byId("wide-words"), `${percent(meta)} simultaneous band (all points at once)`);
  say(byId("narrow-words"), `${percent(meta)} pointwise band (a single point)`);
  say(byId("above-words"), sided?.above ?? "");
  say(byId("below-words"), sided?.below ?? "");
  say(byId("curve-words"), now.others.length > 0 ? nameOf(meta.key) : meta.reading ? `curve read by "${meta.reading}", closer than the published one` : "published curve");
  const scale = isMap ? mapScale(now) : undefined;
  const drawn = !isDrawn ? undefined : isMap ? plane(now.entry.synopsis, now.at, SIDE) : line(now.entry.synopsis, 0, now.at);
  const isBlind = scale && (scale.steps === 1 || isFlat(drawn));
  const isShown = {
    map: scale?.tellsApart && !isBlind,
    few: scale && !scale.tellsApart && !isBlind,
    flat: isBlind,
    range: now.range,
    unknown: !isMap && drawn?.wide.some((half) => half === Infinity),
    unclear: scale && !isBlind && isUnclear(drawn, scale).includes(true),
    above: sided,
    below: sided,
    ghost: now.isGhost && now.before && now.others.length === 0,
    plausible: now.isPlausible,
    narrow: !now.isPlausible && now.others.length === 0,
    close: sided && !isBlind,
    none: isMap && !isBlind && kindOf(meta) === "density",
  };
  for (const item of document.querySelectorAll("#legend [data-for]")) item.hidden = !isShown[item.dataset.for];
  drawOthers(now.others);
}

const usualRegions = (meta) => (kindOf(meta) === "probability" ? "values" : "regions");

function drawOthers(others) {
  const list = byId("legend");
  const old = [...list.querySelectorAll(".other-key")];
  if (old.map((item) => item.textContent).join("\n") === others.map(({ key }) => nameOf(key)).join("\n")) return;
  old.forEach((item) => item.remove());
  list.firstElementChild.after(...others.map(({ key }, i) =>
    element("li", { class: "other-key" }, element("span", { class: `swatch other-${i + 1}` }), nameOf(key))));
}
