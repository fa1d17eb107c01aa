// Synopses of tables of cells, as the program publishes them, over simulated records with seeded noise.

import { generator } from "../../../clients/javascript/test/example.js";
import { given } from "./server.js";

const DAY = 86_400_000;
const SCALE = 2;

/** The shares of a record at `x` among the nodes of a linear spline. */
function shares({ min, max }, steps, x) {
  const at = ((x - min) / (max - min)) * steps;
  const first = Math.min(Math.floor(at), steps - 1);
  return [[first, first + 1 - at], [first + 1, at - first]];
}

/**
 * `count` windows of a day over `domain`; `record(random, window)` gives a record as { at: [..], parts: [..] }, its coordinates and
 * what each table gets of it.
 */
export function tablesOf({ release, label, tables, domain, steps, records, record, count = 6 }) {
  // The error of a form is one of a density.
  const [{ band, form_error: _, ...base }] = given("curve");
  const random = generator(17);
  const laplace = () => SCALE * (random() < 0.5 ? 1 : -1) * -Math.log(1 - random());
  const nodes = steps.reduce((product, m) => product * (m + 1), 1);
  return Array.from({ length: count }, (_, window) => {
    const values = new Array(tables * nodes).fill(0);
    for (let i = 0; i < records; i++) {
      const { at, parts } = record(random, window);
      const places = domain.map((axis, a) => shares(axis, steps[a], at[a]))
        .reduce((all, own, a) => all.flatMap(([j, w]) => own.map(([k, v]) => [j * (steps[a] + 1) + k, w * v])), [[0, 1]]);
      parts.forEach((part, t) => places.forEach(([j, w]) => { values[t * nodes + j] += w * part; }));
    }
    const time = (days) => new Date(Date.parse("2013-06-01T05:00:00Z") + days * DAY).toISOString().replace(".000", "");
    return {
      ...base, key: null, release, domain, basis: { tables: { spline: "linear", steps, bandwidths: steps.map((m) => 1 / m), tables } },
      target: { cells: label ? { label } : {} }, meaning: "noisy counts of records in cells, by their label", degree: 1, order: 1,
      window: { start: time(window), end: time(window + 1) }, published: time(window + 1),
      noise: { law: "discrete laplace", scale: SCALE, grid: 1e-9, calibrated: "tight" },
      synthetic: true,
      band: { ...band, half_width: 4.6 * SCALE, weights: [1], pointwise: 2.8 * SCALE },
      ledger: { ...base.ledger, sequence: 100 + window }, values: values.map((value) => value + laplace()),
    };
  });
}

const normal = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
const DELAY = { column: "dep_delay", min: -30, max: 180 };
const HOUR = { column: "hour", min: 5, max: 24 };
const clip = (x, { min, max }) => Math.min(Math.max(x, min), max);

/** Arrival by departure delay: few are very late, and the ends are empty. */
export const arrivals = () => tablesOf({
  release: "arrival", label: { number: { column: "arr_delay", min: -60, max: 240 } }, tables: 2, domain: [DELAY], steps: [70], records: 4000,
  record: (random, window) => {
    const late = clip(random() < 0.3 ? 45 * -Math.log(1 - random()) : 2 + window + 6 * normal(random), { min: -25, max: 130 });
    const part = (clip(late - 5 + 12 * normal(random), { min: -60, max: 240 }) + 60) / 300;
    return { at: [late], parts: [1 - part, part] };
  },
});

/** Late or not, by hour and departure delay. */
export const late = () => tablesOf({
  release: "late", label: { above: { column: "arr_delay", above: 15 } }, tables: 2, domain: [HOUR, DELAY], steps: [19, 30], records: 30_000, count: 2,
  record: (random) => {
    const hour = clip(14 + 4 * normal(random), HOUR);
    const delay = clip(2 * (hour - 6) * random() ** 2 * 8 - 10, DELAY);
    const isLate = delay + 10 * normal(random) > 15;
    return { at: [hour, delay], parts: isLate ? [0, 1] : [1, 0] };
  },
});

/** Which of three airports, by departure delay. */
export const origins = () => tablesOf({
  release: "origin", label: { classes: { column: "origin", values: ["EWR", "JFK", "LGA"] } }, tables: 3, domain: [DELAY], steps: [40], records: 6000, count: 3,
  record: (random) => {
    const delay = clip(30 + 45 * normal(random), DELAY);
    const of = random() < 0.2 ? 2 : delay + 30 * normal(random) > 30 ? 1 : 0;
    return { at: [delay], parts: [0, 1, 2].map((t) => (t === of ? 1 : 0)) };
  },
});
