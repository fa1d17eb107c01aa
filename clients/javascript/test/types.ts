// Checked by `tsc --noEmit --strict`: a use of every part of the types, and one that they refuse.
import { parse, Synopsis, SynopsisError, type Answer, type KeyTable } from "../bernstream.js";

const synopsis: Synopsis = parse("{}");
const smooth = synopsis.evaluator("posterior");
const grid: Float64Array = smooth.on([[0, 1], new Float64Array(2)]);
const error: number | null = smooth.deviation([1, 2]);
const band: Float64Array = synopsis.pointwise(3).halfWidths([[1]]);
const box: number = smooth.integrate([[0, 1], [2, 3]]) + smooth.integrate([0, 1]);
const bounds: number[] = [...synopsis.interval([1]), ...smooth.interval(2, 0.1), ...smooth.intervals([[1]], band).upper];
const answer: Answer = synopsis.query((x, y) => Math.exp(-x * y), { jackson: 2 });
const again: Answer = synopsis.query(synopsis.weights((x) => x));
const seen: string = synopsis.classify(3).says + synopsis.meta.domain[0]!.column + new SynopsisError("").message;
const tables = synopsis.tables();
const late: [number, number] | null = tables.probabilities([1, 2], { bandwidths: [3, 4] })[1]!.simultaneous;
const ratio: [number, number] | null = tables.densityRatio([1, 2], 0, 1, { bandwidths: [3, 4] }).simultaneous;
const bayes: number = tables.probabilities([1, 2], { degree: "naive" })[0]!.value;
const median: number | null = tables.quantile(0.5).value;
const inRange: (number | null)[] = [tables.count([0, 1]), tables.share([[0, 1], null]), tables.mean([0, 1])].map(({ value }) => value);
const smooth20: Float64Array = synopsis.as({ function: "density", bandwidths: 20 }).halfWidths([[1]]);
const ends: Float64Array = tables.on([[0, 1]], { function: "probability", table: 0 }).pointwise.lower;
const byKey: KeyTable = synopsis.keyTable();
const largest: string[] = byKey.top(3, "mean").keys;
const late95: number | null = byKey.quantile("JFK", 0.95).value;
const ofCountry: number | null | undefined = byKey.shares("country")[0]!.records?.value;
const p50: [number, number] | null | undefined = byKey.row("JFK").p50?.pointwise;
const users: [number, number] | null | undefined = byKey.row("CH").users?.pointwise;
const { target } = synopsis.meta;
if ("density" in target && "bandwidths" in target.density.kernel) target.density.kernel.bandwidths.map((b) => b * 2);
// @ts-expect-error there is no such reading
synopsis.evaluate(1, "furthest");
// @ts-expect-error there is no such function
synopsis.as({ function: "mean" });
// @ts-expect-error a synopsis is only made by parse
new Synopsis();
export { again, answer, band, bayes, bounds, box, ends, error, grid, inRange, largest, late, median, ofCountry, ratio, seen, smooth20, users };
