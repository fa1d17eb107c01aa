//! The minimiser of `J(f) = (C/m) sum_i L(y_i, f(x_i)) + ||f||^2 / 2`, to within a public tolerance for all data.
//!
//! `J` is 1-strongly convex, so `||f - f_D|| <= ||grad J(f)||` for every `f`. With `f = sum_i b_i K(x_i, .)` the gradient
//! is `sum_i g_i K(x_i, .)`, `g_i = b_i - a_i`, `a_i = (C/m) pull(y_i, f(x_i))`, so its norm is computed from values of
//! the kernel: a certificate. It is a duality gap: `a` is feasible for the dual problem, and the gap between `f` and `a` is
//! exactly `||grad J(f)||^2 / 2`.
//!
//! # Three methods
//!
//! The result of each of the first two is taken if the certificate says so.
//!
//! 1. Newton's method on a factor of the Gram matrix, where the kernel is so smooth that it has one of few columns (`newton.rs`).
//!    Neither it nor its certificate needs all of that matrix, and writing it down takes longer than both.
//! 2. Dual coordinate ascent, [`EPOCHS`] rounds at most: fast, but its rate holds in expectation only.
//! 3. Otherwise accelerated gradient descent from 0, which cannot fail. `J` is `q`-smooth, `q = 1 + C B`, `B` the curvature of
//!    the loss. With constant steps `1/q` and momentum `(sqrt q - 1) / (sqrt q + 1)`, gradients that are off by
//!    at most `e` in norm, and `rho = 1 - 1/sqrt q`, after `T` steps (`[SRB11]`, proposition 4; without
//!    errors it is `[Nes04]`, theorem 2.2.3)
//!
//!    ```text
//!    sqrt(J(f_T) - J(f_D)) <= rho^(T/2) sqrt(2 (J(0) - J(f_D))) + sqrt 2 e sum_{i < T} rho^(i/2)
//!    ||f_T - f_D|| <= sqrt(2 (J(f_T) - J(f_D))) <= 2 sqrt C rho^(T/2) + 4 sqrt q e
//!    ```
//!
//!    because `J(0) <= C` (no loss is above 1 at 0). So `T = 2 sqrt q ln(4 sqrt C / tolerance)` steps reach any
//!    tolerance of at least `8 sqrt q e`, whatever the records are. A certificate can only end it earlier.
//!
//! # What the floats lose
//!
//! Let values `f(x_i)` be off by at most `d sum |b|`. The recurrence of the coefficients has the double root `rho`: its
//! response to `a` is positive and sums to 1. So `f_k` has `sum |b| <= C P` and an extrapolated point at most `3 C P`, `P` a
//! bound on the pull: 1, and for the squared loss `1 + 6 sqrt C`, since `||f_k|| <= ||f_D|| + 2 sqrt C`. Hence
//! `e <= C (3 C P d B + 16 u P + 24 q u P)`. The second term covers the arithmetic of pulls. The third is that of the
//! steps: a point that is rounded by `15 u C P` at most is one that a gradient off by `q` times that would have led to.

use super::newton::GramFactor;
use super::pairs::RecordPairs;
use super::space::{CoordinateAscent, ROUNDING, RecordSpace};
use bernstream_synopsis::machine::loss::Loss;

/// Rounds of coordinate ascent, and of as much work Newton's method.
const EPOCHS: usize = 400;

/// Rounds between two looks at the certificate.
const LOOK: usize = 4;

/// Smallest residual that the factor of a Gram matrix can be asked for, in floats.
const SMALLEST_RESIDUAL: f64 = 1e-13;

/// A problem without its records. All of it is public.
#[derive(Clone, Copy, Debug)]
pub struct RiskProblem {
    pub loss: Loss,
    /// `C`.
    pub c: f64,
    /// `m`.
    pub records: u32,
    /// Largest distance of the result from the minimiser.
    pub tolerance: f64,
}

impl RiskProblem {
    /// `error` is that of the values in the space that will be used, for `records` records; `wanted` the tolerance where
    /// the floats allow it.
    pub fn new(loss: Loss, c: f64, records: u32, wanted: f64, error: f64) -> Self {
        let mut problem = RiskProblem {
            loss,
            c,
            records,
            tolerance: wanted,
        };
        let arithmetic = (16.0 + 24.0 * problem.condition()) * ROUNDING * problem.largest_pull();
        let off = c * (3.0 * problem.coefficient_bound() * error * loss.curvature() + arithmetic);
        problem.tolerance = wanted.max(8.0 * problem.condition().sqrt() * off);
        problem
    }

    /// No result has `sum |b_i|` above this.
    pub fn coefficient_bound(&self) -> f64 {
        self.c * self.largest_pull()
    }

    /// `T`.
    pub fn descent_steps(&self) -> usize {
        let start = (4.0 * self.c.sqrt() / self.tolerance).max(1.0);
        (2.0 * self.condition().sqrt() * start.ln()).ceil() as usize + 1
    }

    /// The most times that a solution goes through all of the space: Newton's method, ascent, descent and their certificates.
    pub fn most_rounds(&self) -> u64 {
        2 * (2 * EPOCHS + self.descent_steps()) as u64
    }

    /// Coefficients of a function within `tolerance` of the minimiser. `labels` are as the loss reads them.
    pub fn solve_pairs(&self, pairs: &RecordPairs<'_>, labels: &[f64]) -> Vec<f64> {
        if let Some(proposed) = self.propose_by_newton(pairs, labels)
            && self.gradient_bound(pairs, labels, &proposed) <= self.tolerance
        {
            return proposed;
        }
        self.solve(&pairs.gram_matrix(), labels)
    }

    /// Coefficients of such a function, found without Newton's method.
    pub fn solve<S: CoordinateAscent>(&self, space: &S, labels: &[f64]) -> Vec<f64> {
        let ascent = self.ascend_coordinates(space, labels, EPOCHS);
        if ascent.certified <= self.tolerance {
            ascent.coefficients
        } else {
            self.descend_gradient(space, labels, self.descent_steps())
        }
    }

    /// `q`.
    fn condition(&self) -> f64 {
        1.0 + self.c * self.loss.curvature()
    }

    /// `P`.
    fn largest_pull(&self) -> f64 {
        if self.loss == Loss::Squared {
            1.0 + 6.0 * self.c.sqrt()
        } else {
            1.0
        }
    }

    /// `C/m`.
    fn share(&self) -> f64 {
        self.c / f64::from(self.records)
    }

    /// Upper bound of `||grad J||` of the function with these coefficients; infinite where they are larger than any result's.
    fn gradient_bound<S: RecordSpace>(&self, space: &S, labels: &[f64], b: &[f64]) -> f64 {
        let mass: f64 = b.iter().map(|b| b.abs()).sum();
        // What is not a number is not within them.
        let is_within = mass <= self.coefficient_bound() * (1.0 + 1e-9);
        if !is_within {
            return f64::INFINITY;
        }
        let gradient: Vec<f64> = space
            .scores(b)
            .iter()
            .zip(labels)
            .zip(b)
            .map(|((f, y), b)| b - self.share() * self.loss.negative_slope(*y, *f))
            .collect();
        let size: f64 = gradient.iter().map(|g| g.abs()).sum();
        let lost = self.c
            * (mass * space.error() * self.loss.curvature()
                + 16.0 * ROUNDING * self.largest_pull());
        (space.square(&gradient) + space.error() * size * size)
            .max(0.0)
            .sqrt()
            * (1.0 + 1e-9)
            + lost
    }

    /// Coefficients that Newton's method proposes, if the kernel is smooth enough for it. What the factor leaves out changes the gradient by at
    /// most `C B` times the residual times `sum |b_i|`, and coefficients follow from the values with a slope of `C B`: both
    /// parts take a quarter of the tolerance.
    fn propose_by_newton(&self, pairs: &RecordPairs<'_>, labels: &[f64]) -> Option<Vec<f64>> {
        let residual = self.tolerance / (4.0 * self.condition() * self.coefficient_bound());
        let factor = GramFactor::from_pairs(pairs, residual.max(SMALLEST_RESIDUAL))?;
        let products = EPOCHS * labels.len() * labels.len();
        Some(factor.minimise_risk(
            self.loss,
            labels,
            self.share(),
            self.tolerance / (4.0 * self.condition()),
            products,
        ))
    }

    /// Dual coordinate ascent in a fixed scattered order, and the certificate of what it found.
    fn ascend_coordinates<S: CoordinateAscent>(
        &self,
        space: &S,
        labels: &[f64],
        epochs: usize,
    ) -> AscentResult {
        let n = labels.len();
        let diagonal: Vec<f64> = (0..n).map(|i| space.diagonal(i)).collect();
        let stride = scattered_stride(n);
        let mut b = vec![0.0; n];
        let mut certified = f64::INFINITY;
        let mut running = space.start(&b);
        for epoch in 1..=epochs {
            let mut index = epoch % n.max(1);
            for _ in 0..n {
                index = (index + stride) % n;
                let rest = space.score(&running, index) - diagonal[index] * b[index];
                let best =
                    self.loss
                        .best_coefficient(labels[index], rest, diagonal[index], self.share());
                if best != b[index] {
                    space.add(&mut running, index, best - b[index]);
                    b[index] = best;
                }
            }
            if epoch % LOOK == 0 || n <= 1 {
                certified = self.gradient_bound(space, labels, &b);
                if certified <= self.tolerance {
                    break;
                }
                running = space.start(&b);
            }
        }
        AscentResult {
            coefficients: b,
            certified: if n == 0 { 0.0 } else { certified },
        }
    }

    /// Accelerated gradient descent.
    fn descend_gradient<S: RecordSpace>(
        &self,
        space: &S,
        labels: &[f64],
        steps: usize,
    ) -> Vec<f64> {
        let q = self.condition();
        let momentum = (q.sqrt() - 1.0) / (q.sqrt() + 1.0);
        let mut b = vec![0.0; labels.len()];
        let mut ahead = b.clone();
        for step in 1..=steps {
            let scores = space.scores(&ahead);
            for i in 0..labels.len() {
                let pull = self.loss.negative_slope(labels[i], scores[i]);
                let next = ahead[i] - (ahead[i] - self.share() * pull) / q;
                ahead[i] = next + momentum * (next - b[i]);
                b[i] = next;
            }
            if step % 64 == 0 && self.gradient_bound(space, labels, &b) <= self.tolerance {
                break;
            }
        }
        b
    }
}

/// Coefficients that dual coordinate ascent found.
struct AscentResult {
    coefficients: Vec<f64>,
    /// Their certificate.
    certified: f64,
}

/// A stride that visits all of `n` places, no two near each other in a row.
fn scattered_stride(n: usize) -> usize {
    let golden = (n as f64 * 0.618) as usize;
    (golden.max(1)..)
        .find(|stride| is_coprime(n, *stride))
        .unwrap_or(1)
}

fn is_coprime(mut a: usize, mut b: usize) -> bool {
    while b != 0 {
        let rest = a % b;
        a = b;
        b = rest;
    }
    a == 1
}

#[cfg(test)]
mod tests {
    use super::super::space::{Features, GramMatrix};
    use super::*;
    use bernstream_synopsis::machine::kernel::CubeKernel;

    const LOSSES: [Loss; 4] = [Loss::Hinge, Loss::Logistic, Loss::Squared, Loss::Huber];

    fn places(n: usize) -> Vec<[f64; 3]> {
        (0..n)
            .map(|i| {
                [
                    (i * 7919 % 1009) as f64 / 1009.0,
                    (i * 104_729 % 997) as f64 / 997.0,
                    0.0,
                ]
            })
            .collect()
    }

    fn gram(n: usize, bandwidth: f64) -> GramMatrix {
        pairs(&places(n), bandwidth).gram_matrix()
    }

    fn pairs(places: &[[f64; 3]], bandwidth: f64) -> RecordPairs<'_> {
        RecordPairs::new(CubeKernel::Gaussian { bandwidth }, 2, places)
    }

    fn labels(n: usize) -> Vec<f64> {
        (0..n)
            .map(|i| if i * 31 % 7 < 3 { 1.0 } else { -1.0 })
            .collect()
    }

    fn distance<S: RecordSpace>(space: &S, a: &[f64], b: &[f64]) -> f64 {
        space
            .square(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
            .max(0.0)
            .sqrt()
    }

    /// Against a minimiser that is a thousand times more exact, without looking at a certificate.
    #[test]
    fn the_public_number_of_steps_suffices_from_zero() {
        let n = 60;
        let labels = labels(n);
        for loss in LOSSES {
            for (c, bandwidth) in [(1.0, 0.3), (30.0, 0.1), (300.0, 2.0)] {
                let space = gram(n, bandwidth);
                let problem =
                    |tolerance| RiskProblem::new(loss, c, n as u32, tolerance, space.error());
                let near = problem(1e-7).solve(&space, &labels);
                for tolerance in [0.3, 0.01, 1e-4] {
                    let problem = problem(tolerance);
                    // No certificate is below 0, so all steps are taken.
                    let blind = RiskProblem {
                        tolerance: -1.0,
                        ..problem
                    };
                    let found = blind.descend_gradient(&space, &labels, problem.descent_steps());
                    let off = distance(&space, &found, &near);
                    assert!(
                        off <= problem.tolerance + 1e-6,
                        "{loss:?} {c} {tolerance}: {off}"
                    );
                    assert!(
                        found.iter().map(|b| b.abs()).sum::<f64>()
                            <= problem.coefficient_bound() * (1.0 + 1e-9)
                    );
                }
            }
        }
    }

    #[test]
    fn a_certificate_is_at_least_the_distance_to_the_minimiser() {
        let n = 60;
        let space = gram(n, 0.2);
        let labels = labels(n);
        for loss in LOSSES {
            let problem = RiskProblem::new(loss, 20.0, n as u32, 1e-7, space.error());
            let near = problem.solve(&space, &labels);
            for epochs in [4, 8, 16] {
                let AscentResult {
                    coefficients: found,
                    certified,
                } = problem.ascend_coordinates(&space, &labels, epochs);
                let off = distance(&space, &found, &near);
                assert!(
                    off <= certified + 1e-6,
                    "{loss:?} {epochs}: {off} {certified}"
                );
            }
        }
    }

    #[test]
    fn both_methods_and_both_spaces_agree() {
        let n = 300;
        let labels = labels(n);
        let places = places(n);
        let affine = |i: usize| {
            [1.0, 2.0 * places[i][0] - 1.0, 2.0 * places[i][1] - 1.0]
                .map(|t| (t / 3.0_f64.sqrt() * 0.999) as f32)
        };
        let features = Features::new(n, 3, |i, row| row.copy_from_slice(&affine(i)));
        let inner = |a: [f32; 3], b: [f32; 3]| {
            a.iter()
                .zip(b)
                .map(|(a, b)| f64::from(*a) * f64::from(b))
                .sum()
        };
        let row = |i: usize, row: &mut [f64]| {
            row.iter_mut()
                .enumerate()
                .for_each(|(j, v)| *v = inner(affine(i), affine(j)))
        };
        let gram = GramMatrix::new(n, row);
        for loss in LOSSES {
            let problem = RiskProblem::new(
                loss,
                50.0,
                n as u32,
                1e-4,
                gram.error().max(features.error()),
            );
            let ascent = problem.solve(&gram, &labels);
            let descent = problem.descend_gradient(&gram, &labels, problem.descent_steps());
            let explicit = problem.solve(&features, &labels);
            for other in [descent, explicit] {
                let off = distance(&gram, &ascent, &other);
                assert!(
                    off <= 2.0 * problem.tolerance,
                    "{loss:?}: {off} {}",
                    problem.tolerance
                );
            }
        }
    }

    /// Its result is as near as the certificate says, and far nearer than it has to be: whatever the loss, also where ascent and
    /// descent take long.
    #[test]
    fn newtons_method_finds_what_the_others_find() {
        let n = 300;
        let places = places(n);
        let space = gram(n, 1.0);
        let labels = labels(n);
        let pairs = pairs(&places, 1.0);
        for loss in LOSSES {
            for c in [1.0, 50.0, 2_000.0] {
                let problem = RiskProblem::new(loss, c, n as u32, 1e-3, space.error());
                let found = problem
                    .propose_by_newton(&pairs, &labels)
                    .expect("a smooth kernel");
                let certified = problem.gradient_bound(&pairs, &labels, &found);
                let by_matrix = problem.gradient_bound(&space, &labels, &found);
                assert!(
                    (certified - by_matrix).abs() <= problem.tolerance / 1e3,
                    "{certified} {by_matrix}"
                );
                let descent = problem.descend_gradient(&space, &labels, problem.descent_steps());
                let off = distance(&space, &found, &descent);
                println!(
                    "{loss:?} C = {c}: certified {certified:.1e} of {:.1e}, {off:.1e} from descent",
                    problem.tolerance
                );
                assert!(
                    certified <= problem.tolerance / 10.0,
                    "{loss:?} {c}: {certified}"
                );
                assert!(off <= problem.tolerance + certified, "{loss:?} {c}: {off}");
            }
        }
    }

    /// What no method could propose is never taken.
    #[test]
    fn what_newtons_method_did_not_finish_is_certified_as_far_off() {
        let n = 300;
        let places = places(n);
        let labels = labels(n);
        let pairs = pairs(&places, 1.0);
        let problem = RiskProblem::new(Loss::Hinge, 2_000.0, n as u32, 1e-3, pairs.error());
        let factor = GramFactor::from_pairs(&pairs, 1e-9).expect("a smooth kernel");
        let begun = factor.minimise_risk(Loss::Hinge, &labels, problem.share(), 0.0, 2 * n * n);
        assert!(problem.gradient_bound(&pairs, &labels, &begun) > problem.tolerance);
        // Ascent takes over.
        let found = problem.solve_pairs(&pairs, &labels);
        assert!(problem.gradient_bound(&pairs, &labels, &found) <= problem.tolerance);
    }

    #[test]
    fn every_place_is_visited() {
        for n in 1..200 {
            let stride = scattered_stride(n);
            let mut seen = vec![false; n];
            (0..n).for_each(|i| seen[i * stride % n] = true);
            assert!(seen.iter().all(|seen| *seen), "{n} {stride}");
        }
    }
}
