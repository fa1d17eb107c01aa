/** Reads a bernstream synopsis and evaluates it. All of this is post-processing and costs no privacy. */

/** The version of the format that this module reads. */
export const FORMAT: 1;
/** The largest order of the Bernstein operator that is evaluated. */
export const MAX_ORDER: 1000;

/** What is wrong with a synopsis or a query. */
export class SynopsisError extends Error {}

/** Reads a synopsis: its JSON, or the parsed object. The input may be hostile. Throws a SynopsisError. */
export function parse(textOrObject: string | object): Synopsis;

/** A point in natural units; a number is a point on one axis. */
export type Point = number | readonly number[] | Float64Array;
/** Coordinates of a product grid, one list per axis. */
export type Axes = readonly (readonly number[] | Float64Array)[];
/** `[low, high]` per axis. */
export type Box = readonly (readonly [number, number])[] | readonly [number, number];
/** How values become a function; a number is an order of the Bernstein operator. */
export type By = number | "nearest" | "kernel" | "posterior" | "nonnegative";

/** A released function: what it is, and its noisy values. */
export class Synopsis {
  private constructor();
  /** The description of the synopsis; frozen. */
  readonly meta: Description;
  /** Row-major, the last axis fastest; of a table by key one column after the other. */
  readonly values: Float64Array;
  /** What `as` chose, if this was made by it. */
  readonly choice?: Readonly<TableChoice>;
  /** The reading that is expected to be the most accurate; bands belong to `meta.order`, which is the default. */
  readonly recommended: By;
  /** The function by a reading that the values allow; by default `meta.order`. */
  evaluator(by?: By): Evaluator;
  evaluate(point: Point, by?: By): number;
  /** The integral over the domain, at the recommended order: for a density the noisy number of records. */
  mass(): number;
  /** How far the form is from the density itself at most, everywhere at once: add it to a half-width; null where it is not known. */
  formError(): number | null;
  /** The integral over a box, at the recommended order, for a density the number of records there, and how far it can be off. */
  integrate(box: Box): Integral;
  /** `formError` of `integrate` alone, which is found faster. */
  formErrorOf(box: Box): number | null;
  /** The half-width of the simultaneous band at a point, at the recommended order: the noise, not the approximation error. */
  halfWidth(point: Point): number;
  /** The same on a product grid, row-major, the last axis fastest. */
  halfWidths(axes: Axes): Float64Array;
  /** The ends of the simultaneous band at a point, at the recommended order; of a probability clipped to 0 to 1. */
  interval(point: Point): [number, number];
  /** The pointwise band. */
  pointwise(order?: number): Pointwise;
  /** Everything that can be read from noisy counts of cells; only for tables of cells. */
  tables(): Tables;
  /** Users, records, sums, means, variances or quantiles of each key; only for tables by key. */
  keyTable(): KeyTable;
  /** The same tables of cells, with another function where one is asked for without more. */
  as(choice: TableChoice): Synopsis;
  /** A score or a probability with its band, and which side of 0 or 1/2 it is on. */
  classify(point: Point): Classified;
  /** Synopses minus simulated noise from the same distribution: plausible functions without the noise. */
  sample(count: number, random?: () => number): Synopsis[];
  /** The weights of a query on this and every synopsis with the same domain and frequencies. */
  weights(f: (...point: number[]) => number, options?: QueryOptions): Weights;
  /** The sum of a function over the records; only for moments. `f` takes one number per axis, in natural units. */
  query(query: ((...point: number[]) => number) | Weights, options?: QueryOptions): Answer;
}

export interface Integral {
  readonly value: number;
  readonly noise: NoiseError;
  /** What the form adds to the noise at most, wherever the records are; null where it is not known. */
  readonly formError: number | null;
}

/** One reading of a synopsis, ready for many points. */
export class Evaluator {
  private constructor();
  /** A probability is clipped to 0 to 1. */
  evaluate(point: Point): number;
  /** The value give or take a half-width; of a probability each end is clipped. */
  interval(point: Point, halfWidth: number): [number, number];
  /** The same on a product grid, with a half-width for each of its points. */
  intervals(axes: Axes, halfWidths: ArrayLike<number>): Ends;
  /** On a product grid, row-major, the last axis fastest. */
  on(axes: Axes): Float64Array;
  /** The posterior standard deviation, of noise and approximation under the prior; null except for "posterior". */
  deviation(point: Point): number | null;
  /** The integral over the domain. */
  mass(): number;
  /** The integral over a box. */
  integrate(box: Box): number;
  /** A density that is nowhere negative and integrates to 1. */
  proper(): { readonly mass: number; evaluate(point: Point): number; on(axes: Axes): Float64Array };
  /** A distribution function, nondecreasing from 0 to 1; one axis only. */
  cumulative(): { evaluate(point: Point): number };
}

/** How far the noise can move a function at a single point. */
export class Pointwise {
  private constructor();
  /** The noise is within this with 95 % probability. */
  halfWidth(point: Point): number;
  /** The standard deviation of the noise; of an expected label or a probability of tables to first order, and infinite without records. */
  deviation(point: Point): number;
  halfWidths(axes: Axes): Float64Array;
  deviations(axes: Axes): Float64Array;
}

/** What of tables of cells is read: by default the label's own function, at the finest bandwidths. */
export interface TableChoice extends TableOptions {
  /** "expected" needs a label that is a number, "probability" any label. */
  function?: "density" | "expected" | "probability";
  /** Whose probability: the index of a table. */
  table?: number;
}

export interface TableOptions {
  /** In natural units, one for each axis, none below the finest; a number is that of one axis. */
  bandwidths?: number | readonly number[];
  /** Local constant, local linear, or of classes naive Bayes; by default "linear" for "expected", otherwise "constant". */
  degree?: "constant" | "linear" | "naive";
}

/** Everything that can be read from tables of cells. Points, ranges and bandwidths are in natural units. */
export class Tables {
  private constructor();
  /** Classes, or "below" and "above" a threshold; none of a number and without a label. */
  readonly names: readonly string[];
  /** The finest bandwidths of a reading, one for each axis. */
  readonly finest: readonly number[];
  density(point: Point, options?: TableOptions): PointEstimate;
  expected(point: Point, options?: TableOptions): PointEstimate;
  /** Of every table. */
  probabilities(point: Point, options?: TableOptions): PointEstimate[];
  classify(point: Point, options?: TableOptions): TableClass<PointEstimate>;
  /** How much denser class `of` lies at a point than class `over`, by the indices of their tables; null is unknown. */
  densityRatio(point: Point, of: number, over: number, options?: Pick<TableOptions, "bandwidths">): Estimate & Pick<PointEstimate, "simultaneous">;
  /** On a product grid, row-major, the last axis fastest. The ends of unknown intervals are NaN. */
  on(axes: Axes, choice?: TableChoice): { values: Float64Array; pointwise: Ends; simultaneous: Ends };
  count(range: Range): Estimate;
  /** Of all records. */
  share(range: Range): Estimate;
  /** The mean label of the records in a range. */
  mean(range: Range): Estimate;
  /** Of every table, among the records in a range. */
  proportions(range: Range): Estimate[];
  classifyIn(range: Range): TableClass<Estimate>;
  /** The place below which a part of all records lies: 1/2 is the median. One axis only. */
  quantile(part: number): Estimate;
}

/** What is read of each key. */
export type KeyReading = "users" | "records" | "sum" | "mean" | "values" | `p${number}`;

/** Users, records, sums, means, variances or quantiles of each key, as far as the table has them. Intervals cover the noise, not what caps leave out. */
export class KeyTable {
  private constructor();
  /** The keys, in the order of the rows. */
  readonly keys: readonly string[];
  readonly readings: readonly KeyReading[];
  row(key: string): { [reading in KeyReading]?: Estimate };
  /** One reading of a key. */
  estimate(key: string, reading: KeyReading): Estimate;
  /** The columns that a key has a part of each of; none where keys are one column. */
  readonly keyColumns: readonly string[];
  /** The parts of a key by their columns. */
  parts(key: string): { [column: string]: string };
  /** Of found keys also whether a key is new, and until when it is published. */
  rows(): ({ key: string; parts?: { [column: string]: string }; isNew?: boolean; until?: string } & { [reading in KeyReading]?: Estimate })[];
  /** Whether its keys were found, and nobody listed them: then one that is not here had fewer than about `absentBelow` users or records. */
  readonly isFound: boolean;
  /** The keys that were found in this window: their counts are near the threshold, or above it, by selection. */
  readonly newKeys: string[];
  isNew(key: string): boolean;
  /** Until when a found key is published, in every window that begins before, whatever its count is; null where keys are listed. */
  until(key: string): string | null;
  /** A key of so many users or records is found with about even odds; null where keys are listed. */
  readonly threshold: number | null;
  /** The threshold, or the least count of a full table; null where nobody looked for new keys, and where keys are listed. */
  readonly absentBelow: number | null;
  /** Whether there were too many different keys to look for new ones; then the table is empty. */
  readonly isOverfull: boolean;
  /** Sums over all keys with the same parts in these columns; users do not add up. */
  margin(...columns: string[]): ({ parts: { [column: string]: string }; keys: number } & { [reading in Exclude<KeyReading, "users">]?: Estimate })[];
  /**
   * The share of every key in all keys with the same parts in these columns, in all keys where there are none: of records, and of sums of
   * values none of which is below 0.
   */
  shares(...columns: string[]): ({ key: string; parts?: { [column: string]: string } } & { records?: Estimate; sum?: Estimate })[];
  /** The share of all pairs of a unit and a key of it that `max_keys` drops; null where caps are not told. */
  readonly dropped: Estimate | null;
  /** The numbers of units with so many keys, before the cap, and the share that a cap of `most` keys would drop; null where caps are not told. */
  readonly units: ({ least: number; most: number; dropped: Estimate } & Estimate)[] | null;
  /**
   * The least value that `part` of the values of a key lie up to, any part above 0 and below 1. Only of tables that count ranges of a value,
   * which those with quantiles do.
   */
  quantile(key: string, part: number): Estimate;
  /**
   * The keys with the largest values of a reading, by default the first; those whose mean is unknown come last. The noise may have made the
   * last of them larger than the first one that is left out: then `isLastUnclear`.
   */
  top(count: number, by?: KeyReading): { keys: string[]; isLastUnclear: boolean };
}

/** `[low, high]` per axis; null is all of an axis. */
export type Range = readonly ([number, number] | readonly number[] | null)[] | readonly [number, number];

export interface Ends {
  lower: Float64Array;
  upper: Float64Array;
}

/** A reading with its interval for the noise; null is unknown: the records may be none. */
export interface Estimate {
  value: number | null;
  /** With 95 % probability, for this reading alone. */
  pointwise: [number, number] | null;
}

export interface PointEstimate extends Estimate {
  value: number;
  /** At all points and all bandwidths at once. */
  simultaneous: [number, number] | null;
}

export interface TableClass<E> {
  /** Null: too close to call. */
  table: number | null;
  says: string;
  probabilities: E[];
}

export interface Classified {
  score: number;
  lower: number;
  upper: number;
  says: "above" | "below" | "too close to call";
}

export interface QueryOptions {
  /** The paper's approximation by a Jackson kernel of this smoothness, 1 to 32, instead of Chebyshev's. */
  jackson?: number | null;
}

export interface Weights {
  weights: ArrayLike<number> & Iterable<number>;
  /** The largest error per record found on a fine grid: an estimate, not a proof. */
  perRecord?: number | null;
}

export interface NoiseError {
  deviation: number;
  /** The noise is within `halfWidth` with this probability. */
  level: number;
  halfWidth: number;
}

export interface Answer {
  sum: number;
  noise: NoiseError;
  /** The error of ending the cosine expansion; null if `perRecord` was not given. Never proved here. */
  truncation: { perRecord: number; isProved: false; records: number; error: number } | null;
  /** Null if the released number of records is below three times its own noise. Its truncation error is `perRecord`. */
  mean: { value: number; noise: NoiseError } | null;
}

/** RFC 3339. */
export type Time = string;
export interface Span {
  readonly start: Time;
  readonly end: Time;
}

/** The description of a synopsis: see FORMAT.md. Fields that a later version adds are kept. */
export interface Description {
  readonly format: 1;
  readonly pipeline: string;
  readonly release: string;
  readonly key?: string | null;
  /** The columns that a key has a part of each of; absent where keys are one column. */
  readonly key_columns?: readonly string[];
  readonly window: Span;
  readonly published: Time;
  /** Where the windows end, as configured; absent where they go on. */
  readonly grid_end?: Time | null;
  readonly target: Target;
  /** What a value means, in words. */
  readonly meaning: string;
  readonly domain: readonly Axis[];
  /** Public text for people, declared by who runs the pipeline. */
  readonly names?: {
    readonly title?: string; readonly description?: string; readonly record?: string;
    readonly axes?: readonly { readonly label?: string; readonly unit?: string }[];
  } | null;
  readonly basis: Basis;
  readonly offset?: number;
  readonly degree: number;
  readonly order: number;
  readonly noise: { readonly law: Law; readonly scale: number; readonly grid: number; readonly calibrated?: Calibrated };
  /** Absent in synopses of older programs. */
  readonly sensitivity?: Sensitivity | null;
  readonly privacy: Privacy;
  readonly choices?: readonly object[];
  readonly band: Band;
  readonly smoothness?: Smoothness | null;
  /** How far the form is from the density at most, as a part of the sum of the exact values. */
  readonly form_error?: number | null;
  /** Expected to be more accurate than the published reading; see FORMAT.md. */
  readonly reading?: "nonnegative" | null;
  /** What the guarantee does not cover, in words. */
  readonly not_protected: readonly string[];
  readonly incomplete?: boolean;
  readonly digests: { readonly configuration: string; readonly program: string };
  readonly ledger: { readonly id: string; readonly sequence: number };
  readonly panes?: { readonly over: { readonly hopping: number } | "cumulative"; readonly newest: Span; readonly step?: number | null } | null;
  readonly synthetic: boolean;
  readonly [later: string]: unknown;
}

/** What the noise was made for; evaluation does not need it. */
export interface Sensitivity {
  readonly norm: "1-norm" | "2-norm" | "sup norm";
  /** In units of `noise.grid`; beyond 2^53 rounded by JSON.parse. */
  readonly units: number;
  readonly records: number;
  readonly values: number;
  readonly derived: string;
  readonly fresh?: { readonly scale: number; readonly nodes?: number; readonly norm_squared?: number };
}

export interface Axis {
  readonly column: string;
  readonly min: number;
  readonly max: number;
}

export type Law = "discrete laplace" | "discrete cube" | "rounded ball" | "discrete gaussian";
export type Calibrated = "tight" | "sampled" | { readonly paper: { readonly times_needed: number } };

export type Basis =
  | "bernstein"
  | "affine"
  | { readonly kernel: { readonly kernel: PointKernel; readonly points: readonly (readonly number[])[] } }
  | { readonly cells: { readonly precision: readonly (readonly number[])[]; readonly spline: Spline; readonly steps: readonly number[] } }
  | { readonly tables: { readonly spline: Spline; readonly steps: readonly number[]; readonly bandwidths: readonly number[]; readonly tables: number } }
  | { readonly keys: { readonly keys: readonly string[]; readonly columns: readonly KeyColumn[]; readonly units?: UnitCounts | null } }
  | { readonly cosine: { readonly frequencies: number } };
export interface KeyColumn {
  readonly statistic: "users" | "records" | "low" | "middle" | "high" | "sum" | { readonly range: { readonly from: number; readonly to: number } };
  /** Of `noise.scale` and `noise.grid`. */
  readonly unit: number;
}
/** Numbers of units by how many keys they have: the last values. */
export interface UnitCounts {
  readonly bins: readonly { readonly least: number; readonly most: number }[];
  /** Of `noise.scale` and `noise.grid`. */
  readonly unit: number;
}
/** How records are shared among the nodes of a grid. */
export type Spline = "box" | "linear" | "quadratic";
export type PointKernel =
  | { readonly gaussian: { readonly precision: readonly (readonly number[])[] } }
  | { readonly machine: MachineKernel };
export type MachineKernel =
  | { readonly gaussian: { readonly bandwidth: number } }
  | { readonly laplacian: { readonly bandwidth: number } }
  | { readonly polynomial: { readonly power: number } }
  | "linear";

export type Target =
  | { readonly density: { readonly kernel: Smoothing; readonly divide_by?: number | null } }
  | { readonly regression: { readonly label: string; readonly min: number; readonly max: number; readonly method: object } }
  | { readonly classifier: { readonly label: string; readonly above: number; readonly method: object } }
  | { readonly probability: { readonly label: string; readonly above: number; readonly method: object } }
  | { readonly sum: { readonly expression: string; readonly clip?: object | null } }
  | { readonly moments: { readonly frequencies: number } }
  | { readonly cells: { readonly label?: CellLabel | null } }
  | { readonly counts: Counts };
/** The rules by which users and records count for a key; see FORMAT.md. */
export interface Counts {
  readonly max_keys: number;
  readonly max_records?: number | null;
  readonly quantiles?: { readonly grid: { readonly places: number; readonly block?: number | null }; readonly parts: readonly number[] } | null;
  readonly per_user?: { readonly min: number; readonly max: number } | null;
  readonly value?: { readonly column: string; readonly min: number; readonly max: number } | null;
  readonly parts: readonly { readonly of: "users" | "records" | "values" | "sums" | "caps"; readonly part: number }[];
}
export type CellLabel =
  | { readonly number: { readonly column: string; readonly min: number; readonly max: number } }
  | { readonly above: { readonly column: string; readonly above: number } }
  | { readonly classes: { readonly column: string; readonly values: readonly (string | number | boolean)[] } };
export type Smoothing =
  | { readonly bandwidths: readonly number[] }
  | { readonly covariance: readonly (readonly number[])[] };
export type Smoothness =
  | { readonly lipschitz: readonly number[] }
  | { readonly curvature: readonly number[] }
  | { readonly norm: number };

export type Price =
  | string
  | { readonly epsilon: string; readonly delta: string }
  | { readonly rho: string }
  | { readonly slots: number };
export interface Privacy {
  readonly definition:
    | "pure epsilon" | "epsilon-delta" | "zero-concentrated" | "gaussian" | "declared plan"
    | { readonly random: { readonly gamma: number; readonly [more: string]: unknown } };
  readonly unit: "record" | { readonly user: { readonly column: string; readonly per: string; readonly max_records_per_window?: number | null } };
  readonly in_words: string;
  readonly adjacency: "add_remove" | "replace_one";
  readonly implies?: { readonly epsilon: string; readonly delta: string } | null;
  readonly price: Price;
  readonly blocks: readonly { readonly start: Time; readonly end: Time; readonly spent: Price; readonly total: Price }[];
}

/** With probability `level` the noise is within `half_width` divided by the product of `s(x_i)`, at all `x` simultaneously. */
export interface Band {
  readonly covers: "the noise, not the approximation";
  readonly level: number;
  readonly half_width: number;
  /** Bernstein coefficients of `s`. */
  readonly weights: readonly number[];
  readonly pointwise?: number | null;
  readonly draws: number;
}
