// Descriptions for the tests, and a generator of random numbers that is the same every time.

/** A description with these fields in place of its own. */
export function describe(fields = {}) {
  return {
    format: 1,
    pipeline: "flights",
    release: "departure-delay",
    key: "JFK",
    window: { start: "2013-01-01T05:00:00Z", end: "2013-01-02T05:00:00Z" },
    published: "2013-01-02T06:01:00Z",
    target: { density: { kernel: { bandwidths: [10] }, divide_by: null } },
    meaning: "records per unit of dep_delay; divide by the released mass for a density",
    domain: [{ column: "dep_delay", min: -30, max: 180 }],
    basis: "bernstein",
    degree: 2,
    order: 2,
    noise: { law: "discrete laplace", scale: 0.25, grid: 5e-10, calibrated: "tight" },
    privacy: {
      definition: "pure epsilon",
      unit: "record",
      in_words: "what is published would be about as likely with any one record added or removed",
      adjacency: "add_remove",
      price: "0.5",
      blocks: [{ start: "2013-01-01T05:00:00Z", end: "2013-01-02T05:00:00Z", spent: "0.5", total: "1" }],
    },
    band: { covers: "the noise, not the approximation", level: 0.95, half_width: 1.25, weights: [1, 1.5, 1], draws: 20000 },
    not_protected: ["that the worker has stopped"],
    incomplete: false,
    digests: { configuration: "9f86d081884c7d65", program: "0.1.0" },
    ledger: { id: "3b1f0c7e9a2d4f60", sequence: 17 },
    synthetic: true,
    ...fields,
  };
}

/** So many axes, none like another and none the unit interval. */
export const axes = (dimensions) =>
  ["x", "y", "z"].slice(0, dimensions).map((column, i) => ({ column, min: -1 - i, max: 3 + 2 * i }));

/** A lattice of a degree with the values of `f`, which takes a point of the unit cube. */
export function lattice(dimensions, degree, f, fields = {}) {
  const points = cube(dimensions, degree + 1);
  const target = { density: { kernel: { bandwidths: axes(dimensions).map(() => 1) }, divide_by: null } };
  return { ...describe({ domain: axes(dimensions), degree, target, ...fields }), values: points.map(f) };
}

/** Cells shared by a spline, read by the kernel of a precision matrix, with seeded values. */
export function cells(precision, spline, steps, fields = {}) {
  const more = { box: 0, linear: 1, quadratic: 3 }[spline];
  const count = steps.reduce((count, m) => count * (m + more), 1);
  const random = generator(8);
  const flat = { domain: axes(steps.length), degree: 1, order: 1, basis: { cells: { precision, spline, steps } } };
  const target = { density: { kernel: { bandwidths: steps.map(() => 1) }, divide_by: null } };
  return { ...describe({ ...flat, target, ...fields }), values: Array.from({ length: count }, () => random() - 0.5) };
}

/** Tables of cells: `count(table, node)` gives their counts, `label` is that of the target; bandwidths are in natural units. */
export function tables(label, spline, steps, bandwidths, count, fields = {}) {
  const more = { box: 0, linear: 1, quadratic: 3 }[spline];
  const nodes = steps.reduce((count, m) => count * (m + more), 1);
  const number = !label ? 1 : label.classes ? label.classes.values.length : 2;
  const meta = describe({
    domain: axes(steps.length), degree: 1, order: 1, basis: { tables: { spline, steps, bandwidths: bandwidths.map((b, i) => b / (axes(3)[i].max - axes(3)[i].min)), tables: number } },
    target: { cells: label ? { label } : {} }, meaning: "noisy counts of cells, in records",
    band: { covers: "the noise, not the approximation", level: 0.95, half_width: 1.4, weights: [1], pointwise: 0.9, draws: 20000 },
    ...fields,
  });
  return { ...meta, values: Array.from({ length: number * nodes }, (_, i) => count(Math.floor(i / nodes), i % nodes)) };
}

/** Evenly spaced points of the unit cube, the last axis fastest. */
export function cube(dimensions, side) {
  const axis = Array.from({ length: side }, (_, i) => i / (side - 1));
  return Array.from({ length: dimensions }).reduce((all) => all.flatMap((p) => axis.map((y) => [...p, y])), [[]]);
}

/** A point of the unit cube in natural units. */
export const natural = (unit) => unit.map((y, i) => axes(3)[i].min + y * (axes(3)[i].max - axes(3)[i].min));

/** Numbers in [0, 1) from a seed (mulberry32). */
export function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
