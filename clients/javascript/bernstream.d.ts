/** Reads a bernstream synopsis and evaluates it. All of it is post-processing and costs no privacy. */

/** The version of the format that this module reads. */
export const FORMAT: 1;
/** The largest order of the Bernstein operator that is evaluated. */
export const MAX_ORDER: 1000;

/** What is wrong with a synopsis, or with a question to it. */
export class SynopsisError extends Error {}

/** Reads a synopsis: its JSON, or the object that JSON stands for. It may be hostile. Throws a SynopsisError. */
export function parse(textOrObject: string | object): Synopsis;

/** A point in natural units; a number is a point of one axis. */
export type Point = number | readonly number[] | Float64Array;
/** Coordinates of a product grid, a list an axis. */
export type Axes = readonly (readonly number[] | Float64Array)[];
/** `[low, high]` an axis. */
export type Box = readonly (readonly [number, number])[] | readonly [number, number];
/** How values become a function; a number is an order of the Bernstein operator. */
export type By = number | "nearest" | "kernel" | "posterior";

/** A released function: what it is, and its noisy values. */
export class Synopsis {
  private constructor();
  /** What the synopsis says of itself; frozen. */
  readonly meta: Description;
  /** Row-major, the last axis fastest. */
  readonly values: Float64Array;
  /** The function by a reading that the values allow; `meta.order` where none is named. */
  evaluator(by?: By): Evaluator;
  evaluate(point: Point, by?: By): number;
  /** The integral over the domain, at the recommended order: of a density the noisy number of records. */
  mass(): number;
  /** Half the width of the simultaneous band at a point, at the recommended order: of the noise, not the approximation. */
  halfWidth(point: Point): number;
  /** The same on a product grid, row-major, the last axis fastest. */
  halfWidths(axes: Axes): Float64Array;
  /** The band for one point alone. */
  pointwise(order?: number): Pointwise;
  /** A score or a probability with its band, and which side of 0 or 1/2 it is on. */
  classify(point: Point): Classified;
  /** Synopses with simulated noise of the same law taken off: what the function may have been without the noise. */
  sample(count: number, random?: () => number): Synopsis[];
  /** What a function is to the moments of this and every synopsis of the same domain and frequencies. */
  weights(f: (...point: number[]) => number, options?: QueryOptions): Weights;
  /** What a function adds up to over the records; only of moments. `f` takes a number an axis, in natural units. */
  query(query: ((...point: number[]) => number) | Weights, options?: QueryOptions): Answer;
}

/** One reading of a synopsis, ready for many points. */
export class Evaluator {
  private constructor();
  evaluate(point: Point): number;
  /** On a product grid, row-major, the last axis fastest. */
  on(axes: Axes): Float64Array;
  /** The posterior standard deviation, of noise and approximation as the prior has it; null but for "posterior". */
  deviation(point: Point): number | null;
  /** The integral over the domain. */
  mass(): number;
  /** The integral over a box. */
  integrate(box: Box): number;
  /** A density that is nowhere negative and integrates to 1. */
  proper(): { readonly mass: number; evaluate(point: Point): number; on(axes: Axes): Float64Array };
  /** A distribution function, from 0 to 1 and never falling; one axis only. */
  cumulative(): { evaluate(point: Point): number };
}

/** How far the noise can move a function at one point alone. */
export class Pointwise {
  private constructor();
  /** The noise is within it with 95 % probability. */
  halfWidth(point: Point): number;
  /** The standard deviation of the noise. */
  deviation(point: Point): number;
  halfWidths(axes: Axes): Float64Array;
  deviations(axes: Axes): Float64Array;
}

export interface Classified {
  score: number;
  lower: number;
  upper: number;
  says: "above" | "below" | "too close to call";
}

export interface QueryOptions {
  /** The paper's approximation by a Jackson kernel of this smoothness, 1 to 32, in place of Chebyshev's. */
  jackson?: number | null;
}

export interface Weights {
  weights: ArrayLike<number> & Iterable<number>;
  /** The largest error of a record that was seen on a fine grid: an estimate, not a proof. */
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
  /** What the moments do not hold; null where it was not given. Never proved here. */
  truncation: { perRecord: number; isProved: false; records: number; error: number } | null;
  /** Null where the released number of records is not three times its own noise. Its truncation error is `perRecord`. */
  mean: { value: number; noise: NoiseError } | null;
}

/** RFC 3339. */
export type Time = string;
export interface Span {
  readonly start: Time;
  readonly end: Time;
}

/** The facts of a synopsis: see the format's own page. Fields that a later version adds are kept. */
export interface Description {
  readonly format: 1;
  readonly pipeline: string;
  readonly release: string;
  readonly key?: string | null;
  readonly window: Span;
  readonly published: Time;
  readonly target: Target;
  /** What a value means, in words. */
  readonly meaning: string;
  readonly domain: readonly Axis[];
  readonly basis: Basis;
  readonly offset?: number;
  readonly degree: number;
  readonly order: number;
  readonly noise: { readonly law: Law; readonly scale: number; readonly grid: number; readonly calibrated?: Calibrated };
  readonly privacy: Privacy;
  readonly choices?: readonly object[];
  readonly band: Band;
  readonly smoothness?: Smoothness | null;
  /** What the guarantee does not cover, in words. */
  readonly not_protected: readonly string[];
  readonly incomplete?: boolean;
  readonly digests: { readonly configuration: string; readonly program: string };
  readonly ledger: { readonly id: string; readonly sequence: number };
  readonly panes?: { readonly over: { readonly hopping: number } | "cumulative"; readonly newest: Span; readonly step?: number | null } | null;
  readonly synthetic: boolean;
  readonly [later: string]: unknown;
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
  | { readonly cosine: { readonly frequencies: number } };
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
  | { readonly moments: { readonly frequencies: number } };
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
  readonly unit: "record" | { readonly user: { readonly column: string; readonly per: string; readonly max_records_per_window: number } };
  readonly in_words: string;
  readonly adjacency: "add_remove" | "replace_one";
  readonly implies?: { readonly epsilon: string; readonly delta: string } | null;
  readonly price: Price;
  readonly blocks: readonly { readonly start: Time; readonly end: Time; readonly spent: Price; readonly total: Price }[];
}

/** With probability `level` the noise at `x` is within `half_width` over the product of `s(x_i)`, everywhere at once. */
export interface Band {
  readonly covers: "the noise, not the approximation";
  readonly level: number;
  readonly half_width: number;
  /** Bernstein coefficients of `s`. */
  readonly weights: readonly number[];
  readonly pointwise?: number | null;
  readonly draws: number;
}
