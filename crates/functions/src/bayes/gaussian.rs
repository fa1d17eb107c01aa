//! Naive Bayes with Gaussian likelihoods: `f_i` is normal with the mean of the class on axis `i` and the variance
//! `V_i = v_i + s_i^2`, `v_i` a public least variance and `s_i^2` that of the class (divided by `n`).
//!
//! # How
//!
//! A window keeps `n`, `sum x_i` and `sum x_i^2` of each class as integers; `x` in 2^-31, so the sums hold 2^65 records.
//! `n sum x^2 - (sum x)^2` is exact too, and only then come floats. Beyond `C = 2^36` records the factor `n` stays at `C`.
//!
//! # Why the sensitivities hold
//!
//! Let `kappa_i = 1 / sqrt(2 pi v_i)`, and on one axis `w = (y - mu) / sqrt(V)`, `delta = (x - mu) / sqrt(V)`,
//! `sigma^2 = s^2 / V`, `g = f / kappa = exp(-w^2 / 2) sqrt(v / V)`. Adding the record `x` moves the mean by `(x - mu) / n`
//! and the variance by `((x - mu)^2 - s^2) / n`, so (see [`super`])
//!
//! ```text
//! dG/dt = prod_i kappa_i g_i (1 + sum_i q_i),    q = w delta + (w^2 - 1)(delta^2 - sigma^2) / 2
//! ```
//!
//! without the 1 while `n > C` (and times `C / n < 1`). All of `x`, `y`, `mu` lie in `[0, 1]` and `s^2 <= 1/4`.
//!
//! * Down: `-q <= 1 / 2v`. With `w delta >= 0` and `|w| <= 1` the second term is at most `delta^2 / 2 <= 1 / 2V`. With
//!   `w delta < 0` the place of `mu` between `x` and `y` gives `|w| + |delta| <= R = 1 / sqrt(V)`, and for `|w| <= 1`
//!   `|w|(R - |w|) + (1 - w^2)(R - |w|)^2 / 2 = R^2/2 - w^2/2 - w^2 (R - |w|)^2 / 2`. For `|w| > 1` what counts against
//!   `delta^2` only helps; the rest is at most `R^2 / 4 + w^2 sigma^2 / 2 <= 1 / 4V + s^2 / 2V^2 <= 1 / 4v + 1 / 8v`. So the
//!   change is at least `-H prod kappa`, `H = sum_i 1 / 2v_i`, reached at `y = mu = 0`, `x = 1` (less one `prod kappa` below `C`).
//! * Up: `U prod kappa`, `U` the largest `exp(-sum w_i^2 / 2)(1 + sum_i q*(w_i))` over `w_i` in `[0, R]`, `R` now `1 / sqrt(v)`,
//!   `q*` the largest `w delta + (w^2 - 1) delta^2 / 2` over `delta` in `[0, R]`. Opposite signs make `q` smaller. And `sigma`
//!   does: with `b = (1 - w^2) / 2 <= 1/2` and `a` the bracket at `sigma = 0`, `sqrt(1 - sigma^2)(a + b sigma^2)` is at most `a` if
//!   `a >= 2b`, and at most `2b <= 1 <= U` otherwise; then a smaller `V` leaves more room for `w` and `delta`. Both factors
//!   are monotone in `w`: [`super::bound`] finds `U` from above.
//!
//! So `S = max(H, U) prod kappa`. For the 1-norm, `1 + sum_i q_i = sum_i (q_i + 1 / l)`, so
//!
//! ```text
//! D1 = min(N S, prod kappa max_c sum_i B_i(c) prod_{j != i} a_j)
//! B_i(c) = sup sum_p g_i(p / k) |q_i(p / k) + c|,    a_i = sup sum_p g_i(p / k)
//! ```
//!
//! over all means, variances and records of one axis, `c = 1 / l`, or 0 beyond `C`; [`super::bound`] finds both from above.
//! It gives each axis its own worst `mu`, and its signs do not cancel those of the others: `tests/properties/bayes.rs` has how
//! much that is. In the 2-norm it is the same with the roots of the sums of squares, in which `g` has a `sqrt 2` times smaller
//! deviation.
//!
//! # Floats
//!
//! With `u = 2^-53`: the mean is off by `4u`, `y - mu` by `6u`, `V` by `7u` of itself, so the exponent `t` by
//! `6u |y - mu| / V + 9u t`. Times `exp(-t)` that is at most `u (3.7 / sqrt(v) + 3.4)`; the exponential itself adds `8u`
//! (twice what any libm in use promises; tested here), the factor `sqrt(v / V)` and the product the rest of
//! `|error of g| <= u (3.7 / sqrt(v) + 18)`. Over the axes, with the products and the difference of the classes, a score is
//! off by at most `2 C u sum_i (3.7 / sqrt(v_i) + 24) prod kappa`, one per cent more for products of errors. That is
//! below 0.2 % of `S`, and enters the sensitivities twice.

use std::f64::consts::PI;
use std::sync::Arc;

use arrow_buffer::i256;

use crate::bayes::bound;
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::lattice;
use bernstream_release::lattice::times_contributions;
use bernstream_release::target::{Target, interpolated_sensitivity, root_rounded_up};
use bernstream_release::window::accumulator::{
    Accumulator, AccumulatorSpec, Record, RecordFeature,
};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::histogram::GridPoint;
use bernstream_synopsis::shape::{Basis, Shape};

/// `C`: a class counts as at most this many records.
const MOST_COUNTED: f64 = (1_u64 << 36) as f64;

/// Grid units of `S`.
const UNITS: f64 = (1_u64 << 32) as f64;

/// The smallest standard deviation that can be asked for.
const LEAST_DEVIATION: f64 = 1e-3;

/// The score of one release. All of it is public.
#[derive(Clone, Debug)]
pub struct GaussianBayes {
    /// `sqrt(v)`, one an axis.
    deviations: Vec<f64>,
    degree: u32,
    points: usize,
    /// `S` in peaks `prod kappa_i`: `max(H, U)`.
    peaks: f64,
    /// `D1` in peaks.
    mass: f64,
    /// `D2` in peaks.
    length: f64,
}

impl GaussianBayes {
    /// `deviations`: the least standard deviation of a class on each axis, in units of the cube's width, in `[0.001, 1]`,
    /// one an axis, 1 to 3; `degree` is `k`, 1 to 5000, the same on all axes, at most `2^20` lattice points.
    ///
    /// The sensitivity grows like the inverse square of the smallest one: an outlier widens a class that has no width.
    ///
    /// # Errors
    ///
    /// If the axes, the deviations or the degree are out of range.
    pub fn new(deviations: &[f64], degree: u32) -> Result<Self, TargetError> {
        let points = lattice::lattice_points(deviations.len(), degree)?;
        if let Some(index) = deviations
            .iter()
            .position(|d| !(LEAST_DEVIATION..=1.0).contains(d))
        {
            let deviation = deviations[index];
            return Err(TargetError::Deviation {
                axis: index + 1,
                deviation,
                least: LEAST_DEVIATION,
            });
        }
        let down: f64 = deviations.iter().map(|d| 0.5 / (d * d)).sum();
        let peaks = bound::largest_rise(deviations).max(down);
        let mass = largest_mass(deviations, degree).min(points as f64 * peaks);
        let length = largest_length(deviations, degree);
        Ok(GaussianBayes {
            deviations: deviations.to_vec(),
            degree,
            points,
            peaks,
            mass,
            length,
        })
    }

    /// `prod kappa_i`.
    fn peak(&self) -> f64 {
        self.deviations
            .iter()
            .map(|d| 1.0 / ((2.0 * PI).sqrt() * d))
            .product()
    }

    /// `G_c` in grid units, from `n` and the sums of the axes.
    fn class_scores(&self, sums: &[i128]) -> Vec<f64> {
        let [n, sums @ ..] = sums else {
            return vec![0.0; self.points];
        };
        if *n <= 0 {
            return vec![0.0; self.points];
        }
        let count = *n as f64;
        let mut values = vec![count.min(MOST_COUNTED) * UNITS / self.peaks];
        for (axis, deviation) in sums.chunks_exact(2).zip(&self.deviations) {
            let sum = i256::from_i128(axis[0]);
            let squares = i256::from_i128(axis[1]);
            let spread = i256::from_i128(*n)
                .wrapping_mul(squares)
                .wrapping_sub(sum.wrapping_mul(sum));
            let fine = f64::from(GridPoint::FINE);
            let mean = axis[0] as f64 / count / fine;
            let least = deviation * deviation;
            let variance = least + nearest_float(spread) / (count * count) / (fine * fine);
            let height = (least / variance).sqrt();
            let mut likelihoods = Vec::with_capacity(self.degree as usize + 1);
            for p in 0..=self.degree {
                let z = f64::from(p) / f64::from(self.degree) - mean;
                likelihoods.push(height * (-z * z / (2.0 * variance)).exp());
            }
            values = values
                .iter()
                .flat_map(|value| likelihoods.iter().map(move |g| value * g))
                .collect();
        }
        values
    }

    /// Most that floats can add to the difference of two scores, in grid units.
    fn float_slack(&self) -> f64 {
        let errors: f64 = self.deviations.iter().map(|d| 3.7 / d + 24.0).sum();
        2.0 * 1.01 * 2.0 * MOST_COUNTED * f64::EPSILON / 2.0 * errors * UNITS / self.peaks
    }
}

impl Builtin for GaussianBayes {}

impl Target for GaussianBayes {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Sums(Arc::new(ClassMoments {
            axes: self.deviations.len(),
        }))
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: self.deviations.len(),
            degree: self.degree,
            basis: Basis::Bernstein,
        }
    }

    fn unit(&self) -> f64 {
        self.peak() * self.peaks / UNITS
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let (negative, positive) = accumulator.sums().split_at(accumulator.sums().len() / 2);
        let negative = self.class_scores(negative);
        let mut values = Vec::with_capacity(self.points);
        for (plus, minus) in self.class_scores(positive).into_iter().zip(negative) {
            values.push((plus - minus + 0.5).floor() as i128);
        }
        Exact::new(values)
    }

    /// `contributions * (ceil(c D1 + N slack) + N)`, `c` 1 for add-remove and 2 for replace-one.
    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        let change = touched_classes(adjacency) * self.mass / self.peaks * UNITS
            + self.points as f64 * self.float_slack();
        times_contributions(change.ceil() as u128 + self.points as u128, contributions)
            .map(Sensitivity)
    }

    /// `contributions * (ceil(c D2 + sqrt N slack) + ceil(sqrt N))`; or `sqrt(D1 S)`, where that is less.
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let side = root_rounded_up(self.points as u128);
        let change = touched_classes(adjacency) * self.length / self.peaks * UNITS
            + side as f64 * self.float_slack();
        let own = times_contributions(change.ceil() as u128 + u128::from(side), contributions)?;
        Ok(own.min(interpolated_sensitivity(self, adjacency, contributions)?))
    }

    /// `contributions * (ceil(c S + slack) + 1)`.
    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let change = touched_classes(adjacency) * UNITS + self.float_slack();
        times_contributions(change.ceil() as u128 + 1, contributions)
    }
}

/// Number of classes that a record touches.
fn touched_classes(adjacency: Adjacency) -> f64 {
    match adjacency {
        Adjacency::AddRemove => 1.0,
        Adjacency::ReplaceOne => 2.0,
    }
}

/// `n`, then `sum x` and `sum x^2` an axis, of the negative class and then of the positive one.
#[derive(Debug)]
struct ClassMoments {
    axes: usize,
}

impl RecordFeature for ClassMoments {
    fn sum_count(&self) -> usize {
        2 * (1 + 2 * self.axes)
    }

    fn add(&self, record: &Record, sums: &mut [i128]) {
        let class = usize::from(record.label > 0);
        let Some([n, sums @ ..]) = sums.chunks_exact_mut(1 + 2 * self.axes).nth(class) else {
            return;
        };
        *n = n.saturating_add(1);
        for (sums, x) in sums.chunks_exact_mut(2).zip(record.place.0) {
            let x = i128::from(x);
            sums[0] = sums[0].saturating_add(x);
            sums[1] = sums[1].saturating_add(x * x);
        }
    }

    fn feature_identity(&self) -> serde_json::Value {
        serde_json::json!({ "moments": 1, "axes": self.axes })
    }
}

/// The nearest float, to 2 units in the last place, where `value` is not negative.
fn nearest_float(value: i256) -> f64 {
    let (low, high) = value.to_parts();
    high as f64 * 128_f64.exp2() + low as f64
}

/// `max_c sum_i B_i(c) prod_{j != i} a_j`.
fn largest_mass(deviations: &[f64], degree: u32) -> f64 {
    let masses: Vec<f64> = deviations
        .iter()
        .map(|d| bound::largest_mass(*d, degree))
        .collect();
    largest_change(deviations, &masses, |deviation, c| {
        bound::largest_sum(deviation, degree, c, 1)
    })
}

/// The bound of [`largest_mass`] in the 2-norm.
fn largest_length(deviations: &[f64], degree: u32) -> f64 {
    let lengths: Vec<f64> = deviations
        .iter()
        .map(|d| bound::largest_mass(d * std::f64::consts::FRAC_1_SQRT_2, degree).sqrt())
        .collect();
    largest_change(deviations, &lengths, |deviation, c| {
        bound::largest_sum(deviation, degree, c, 2).sqrt()
    })
}

/// The larger of the changes with `c = 1 / l` and with `c = 0`; `norms` are those of a class on each axis.
fn largest_change(deviations: &[f64], norms: &[f64], change: impl Fn(f64, f64) -> f64) -> f64 {
    let below = changed_mass(deviations, norms, 1.0 / deviations.len() as f64, &change);
    below.max(changed_mass(deviations, norms, 0.0, &change))
}

/// `sum_i B_i(c) prod_{j != i} a_j`.
fn changed_mass(
    deviations: &[f64],
    norms: &[f64],
    c: f64,
    change: impl Fn(f64, f64) -> f64,
) -> f64 {
    let mut sum = 0.0;
    for changed in 0..deviations.len() {
        let mut product = 1.0;
        for (axis, deviation) in deviations.iter().enumerate() {
            product *= if axis == changed {
                change(*deviation, c)
            } else {
                norms[axis]
            };
        }
        sum += product;
    }
    sum
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::*;
    use crate::opened::opened;

    /// `exp(-j / 64)` as a whole number of 2^-300, to 2^-290.
    fn exponential(j: u32) -> BigUint {
        let one: BigUint = BigUint::from(1_u8) << 300_u32;
        let mut sum = one.clone();
        let mut term = one.clone();
        for i in 1_u32.. {
            term = (term * j) / (64 * i);
            if term == BigUint::ZERO {
                break;
            }
            sum += &term;
        }
        (&one * &one) / sum
    }

    #[test]
    fn the_exponential_is_as_accurate_as_the_bound_takes_it_to_be() {
        let mut worst = 0.0_f64;
        for j in 0..64 * 40 {
            let exact = exponential(j);
            let found = (-f64::from(j) / 64.0).exp();
            // A float is a whole number of 2^-300 here.
            let bits = (found.to_bits() & ((1 << 52) - 1)) | (1 << 52);
            let found =
                BigUint::from(bits) << (300 + (found.to_bits() >> 52) as i64 - 1023 - 52) as u64;
            let error = if found > exact {
                &found - &exact
            } else {
                &exact - &found
            };
            // In units of u = 2^-53.
            worst = worst.max(
                ((error << 73_u32) / &exact)
                    .to_string()
                    .parse::<f64>()
                    .unwrap()
                    / f64::from(1 << 20),
            );
        }
        println!("exp is off by {worst:.3} u at most");
        assert!(worst < 4.0 && worst > 0.1, "{worst}");
    }

    #[test]
    fn what_floats_add_is_small() {
        for deviations in [
            &[0.001][..],
            &[0.1],
            &[1.0],
            &[0.2; 2],
            &[1.0; 3],
            &[0.001, 1.0, 0.1],
        ] {
            let target = GaussianBayes::new(deviations, 5).unwrap();
            println!(
                "{deviations:?}: floats add {:.2e} of S",
                target.float_slack() / UNITS
            );
            assert!(target.float_slack() < 4e-3 * UNITS, "{deviations:?}");
        }
    }

    /// The same class at a million times the size has a million times the score, to what floats are allowed.
    #[test]
    fn scores_grow_with_the_count_up_to_the_most_that_is_counted() {
        let target = GaussianBayes::new(&[0.1, 0.3], 6).unwrap();
        let records = [[0.2, 0.7], [0.4, 0.1], [0.9, 0.95]].map(|x| Record::new(&x, 1.0));
        let one = target.accumulator().filled_accumulator(records);
        let scaled = |n: i128| Accumulator::Sums(one.sums().iter().map(|sum| sum * n).collect());
        let values = |n: i128| opened(&target.evaluate(&scaled(n)));
        let bound = (target.float_slack() / 2.0).ceil() as u128;
        for (a, b) in values(1).into_iter().zip(values(1 << 30)) {
            assert!((a << 30).abs_diff(b) <= bound + (1 << 30), "{a} {b}");
        }
        let most = values(1 << 36);
        for n in [1 << 40, 1 << 60] {
            for (a, b) in most.iter().zip(values(n)) {
                assert!(a.abs_diff(b) <= 2 * bound && *a > 0);
            }
        }
    }

    #[test]
    fn bounds_are_those_of_known_maxima() {
        // A class without width that meets an outlier: H where the deviation is small, and so in every dimension.
        for deviations in [&[0.1][..], &[0.05, 0.1], &[0.2; 3]] {
            let down: f64 = deviations.iter().map(|d| 0.5 / (d * d)).sum();
            assert_eq!(GaussianBayes::new(deviations, 5).unwrap().peaks, down);
        }
        // One lattice point: all that a record does there is S.
        let one = bound::largest_sum(0.2, 1, 0.0, 1);
        assert!((12.5..12.5 * 1.02).contains(&one), "{one}");
        // A fine lattice, split into coarse ones, has the sums of a coarse one as far as sixteen points a deviation go.
        let [coarse, fine] = [160, 1600].map(|k| bound::largest_sum(0.2, k, 1.0, 1) / f64::from(k));
        assert!((fine / coarse - 1.0).abs() < 0.03, "{fine} {coarse}");
        let sum = bound::largest_mass(0.05, 40) / 40.0 / 0.05 / (2.0 * PI).sqrt();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    }
}
