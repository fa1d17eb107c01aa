//! Spaces in which a minimiser is looked for: sums `f = sum_i b_i K(x_i, .)`, by their Gram matrix or by explicit features. What needs few
//! values of the kernel does without that matrix ([`RecordPairs`](super::pairs::RecordPairs)).

use std::thread;

use bernstream_synopsis::machine::kernel;

/// Results do not depend on it: every number is computed by one thread, in an order of its own.
const THREADS: usize = 2;

/// Records summed one after another before their sum is added to a total.
pub const BLOCK: usize = 512;

/// Half a unit in the last place.
pub const ROUNDING: f64 = f64::EPSILON / 2.0;

/// Sums over the records of one window, and what the floats may have lost in them.
pub trait RecordSpace {
    /// `f(x_i)` at every record, each off by at most [`RecordSpace::error`] times `sum |b_i|`.
    fn scores(&self, b: &[f64]) -> Vec<f64>;

    /// `||f||^2`, off by at most [`RecordSpace::error`] times `(sum |b_i|)^2`.
    fn square(&self, b: &[f64]) -> f64;

    /// Bound that the implementations prove.
    fn error(&self) -> f64;
}

/// A space in which one coefficient after another can be changed.
pub trait CoordinateAscent: RecordSpace {
    /// State that is kept up to date meanwhile.
    type Running;

    fn len(&self) -> usize;

    /// `K(x_i, x_i)`.
    fn diagonal(&self, i: usize) -> f64;

    fn start(&self, b: &[f64]) -> Self::Running;

    fn score(&self, running: &Self::Running, i: usize) -> f64;

    fn add(&self, running: &mut Self::Running, i: usize, change: f64);
}

/// All kernel values between the records, row by row: `8 n^2` bytes, 200 MB for 5,000 records.
///
/// Single precision would halve that, but its error of `2^-25 sum |b|` is more than the tolerance of a steep loss.
pub struct GramMatrix {
    n: usize,
    values: Vec<f64>,
}

impl GramMatrix {
    /// `row` writes the kernel values of one record with all.
    pub fn new(n: usize, row: impl Fn(usize, &mut [f64]) + Sync) -> Self {
        let mut values = vec![0.0; n * n];
        in_parallel(&mut values, n, row);
        GramMatrix { n, values }
    }

    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.n..(i + 1) * self.n]
    }

    /// `1.5e-14` for the kernel, and `(BLOCK/8 + 3 + n/BLOCK) u` for a sum in blocks of 8 lanes.
    pub fn error_with(n: usize) -> f64 {
        kernel::ERROR + summation_error(n, BLOCK / 8)
    }
}

impl RecordSpace for GramMatrix {
    fn scores(&self, b: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; self.n];
        in_parallel(&mut scores, 1, |i, score| {
            score[0] = blocked_dot(self.row(i), b)
        });
        scores
    }

    fn square(&self, b: &[f64]) -> f64 {
        blocked_dot(&self.scores(b), b)
    }

    fn error(&self) -> f64 {
        2.0 * Self::error_with(self.n)
    }
}

impl CoordinateAscent for GramMatrix {
    type Running = Vec<f64>;

    fn len(&self) -> usize {
        self.n
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.row(i)[i]
    }

    fn start(&self, b: &[f64]) -> Vec<f64> {
        self.scores(b)
    }

    fn score(&self, scores: &Vec<f64>, i: usize) -> f64 {
        scores[i]
    }

    fn add(&self, scores: &mut Vec<f64>, i: usize, change: f64) {
        for (score, value) in scores.iter_mut().zip(self.row(i)) {
            *score += change * value;
        }
    }
}

/// Feature vectors, one a record, of norm at most 1: `K(x, y)` is their inner product, by definition.
pub struct Features {
    width: usize,
    values: Vec<f32>,
}

impl Features {
    /// `features` writes the features of one record.
    pub fn new(n: usize, width: usize, features: impl Fn(usize, &mut [f32]) + Sync) -> Self {
        let mut values = vec![0.0; n * width];
        in_parallel(&mut values, width, features);
        Features { width, values }
    }

    fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    /// `w = sum_i b_i phi(x_i)`.
    pub fn weights(&self, b: &[f64]) -> Vec<f64> {
        let mut total = vec![0.0; self.width];
        let mut part = vec![0.0; self.width];
        for (b, rows) in b.chunks(BLOCK).zip(self.values.chunks(BLOCK * self.width)) {
            part.fill(0.0);
            for (b, row) in b.iter().zip(rows.chunks_exact(self.width)) {
                for (part, value) in part.iter_mut().zip(row) {
                    *part += b * f64::from(*value);
                }
            }
            for (total, part) in total.iter_mut().zip(&part) {
                *total += part;
            }
        }
        total
    }

    /// Loss of `w` in blocks, each coordinate at most that times `sum |b_i| |phi_i|`, so `w` as a vector no more than
    /// that times `sum |b_i|`; and that of `<w, phi>` in one go.
    pub fn error_with(n: usize, width: usize) -> f64 {
        summation_error(n, BLOCK) + (width + 2) as f64 * ROUNDING
    }
}

impl RecordSpace for Features {
    fn scores(&self, b: &[f64]) -> Vec<f64> {
        let weights = self.weights(b);
        let mut scores = vec![0.0; self.len()];
        in_parallel(&mut scores, 1, |i, score| {
            score[0] = mixed_dot(&weights, self.row(i))
        });
        scores
    }

    fn square(&self, b: &[f64]) -> f64 {
        self.weights(b).iter().map(|weight| weight * weight).sum()
    }

    fn error(&self) -> f64 {
        3.0 * Self::error_with(self.len(), self.width)
    }
}

impl CoordinateAscent for Features {
    type Running = Vec<f64>;

    fn len(&self) -> usize {
        self.values.len() / self.width
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.row(i)
            .iter()
            .map(|value| f64::from(*value) * f64::from(*value))
            .sum()
    }

    fn start(&self, b: &[f64]) -> Vec<f64> {
        self.weights(b)
    }

    fn score(&self, weights: &Vec<f64>, i: usize) -> f64 {
        mixed_dot(weights, self.row(i))
    }

    fn add(&self, weights: &mut Vec<f64>, i: usize, change: f64) {
        for (weight, value) in weights.iter_mut().zip(self.row(i)) {
            *weight += change * f64::from(*value);
        }
    }
}

/// `<w, phi>`.
pub fn mixed_dot(weights: &[f64], features: &[f32]) -> f64 {
    let lanes = 4;
    let mut sums = [0.0; 4];
    let ends = weights
        .chunks_exact(lanes)
        .remainder()
        .iter()
        .zip(features.chunks_exact(lanes).remainder());
    for (weights, features) in weights
        .chunks_exact(lanes)
        .zip(features.chunks_exact(lanes))
    {
        for (sum, (w, phi)) in sums.iter_mut().zip(weights.iter().zip(features)) {
            *sum += w * f64::from(*phi);
        }
    }
    sums.iter().sum::<f64>() + ends.map(|(w, phi)| w * f64::from(*phi)).sum::<f64>()
}

/// The relative error of a sum of `n` products whose blocks are summed in runs of `run`: every product passes at most
/// this many roundings (a few more than needed, which covers their compounding).
fn summation_error(n: usize, run: usize) -> f64 {
    (n.min(run) + 16 + n.div_ceil(BLOCK)) as f64 * ROUNDING
}

/// `<a, b>`, summed in blocks.
pub fn blocked_dot(a: &[f64], b: &[f64]) -> f64 {
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK));
    blocks.map(|(a, b)| dot_in_lanes(a, b)).sum()
}

/// `<a, b>`, summed in eight lanes.
fn dot_in_lanes(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let ends = a
        .chunks_exact(8)
        .remainder()
        .iter()
        .zip(b.chunks_exact(8).remainder());
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + ends.map(|(a, b)| a * b).sum::<f64>()
}

/// Calls `work` with every row of `width` and its index.
pub fn in_parallel<T: Send>(values: &mut [T], width: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    if values.is_empty() {
        return;
    }
    let rows = (values.len() / width).div_ceil(THREADS);
    let work = &work;
    if rows < 256 {
        return work_on_rows(values, width, 0, work);
    }
    thread::scope(|scope| {
        for (index, part) in values.chunks_mut(rows * width).enumerate() {
            scope.spawn(move || work_on_rows(part, width, index * rows, work));
        }
    });
}

/// Calls `work` with every row of `part`, whose first has the index `first`.
fn work_on_rows<T>(part: &mut [T], width: usize, first: usize, work: impl Fn(usize, &mut [T])) {
    for (i, row) in part.chunks_mut(width).enumerate() {
        work(first + i, row);
    }
}
