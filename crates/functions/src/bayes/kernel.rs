//! Naive Bayes with kernel densities as likelihoods: Gaussian kernel, one bandwidth an axis.
//!
//! # How
//!
//! A record is deposited in one histogram an axis, those of its class ([`AccumulatorSpec::Marginals`]); each is convolved with the
//! integer table of its axis, as for a density ([`crate::density`], the same accuracy). With the sums `A_i(y_i)` of
//! axis `i` and `T_i` grains in its histogram, `G = T prod_i A_i / T_i`, `T = min_i T_i`, in integers: one wide product and
//! one division rounded down a factor. All `T_i` are equal unless a cell is full.
//!
//! # Why the sensitivities hold
//!
//! Write `f_i = A_i / T_i` and `k_i` for what the record's deposit makes of the table: both are convex combinations of
//! table columns, whatever the records. With `r_i = k_i - f_i`
//!
//! ```text
//! E = dG/dt = sum_i k_i prod_{j != i} f_j - (l - 1) prod_i f_i
//! ```
//!
//! is affine in every `f_i` and `k_i` apart, and norms are convex: the largest are at single columns.
//!
//! * Sup norm: `f_i(y)` and `k_i(y)` lie in `[0, kappa_i]`, and at the corners of that box `E` is between
//!   `-(l - 1) prod kappa_i` and `prod kappa_i`. So `S = max(1, l - 1) prod kappa_i`.
//! * 1-norm: split the columns `f_i = o_i + a_i`, `k_i = o_i + b_i`, `o_i` their minimum. In the expansion of `E` a product
//!   of `o`s and `a`s with `t` `o`s has the coefficient `t - (l - 1)`, one with a single `b` the coefficient 1, and no other
//!   occurs. With all signs made positive the masses sum up to
//!   `prod f_i + sum_i (k_i - f_i) prod_{j != i} f_j + 2 sum_i f_i prod_{j != i} a_j - 2 a_1 a_2 a_3` in three dimensions and
//!   `f_1 f_2 + sum_i (k_i - f_i) f_j + 2 a_1 a_2` in two. Let `m_i` be the largest mass of a column and `A_i <= m_i` the
//!   largest mass by which one column exceeds another. The part without `a` is at most `prod m_i`: divided by that, and
//!   with `k_i` at its most, it is the probability that at most one of `l` independent coins of bias `f_i / m_i` shows
//!   tails. The rest grows with every `f_i` and `a_i`. So
//!
//! ```text
//! D1 = m_1                                                        l = 1
//!      m_1 m_2 + 2 A_1 A_2                                        l = 2
//!      m_1 m_2 m_3 + 2 sum_i m_i A_j A_k - 2 A_1 A_2 A_3          l = 3
//! ```
//!
//! which is `(2l - 1) prod m_i` for narrow kernels, as for a closed form, and less for wide ones.
//! * 2-norm: `D2 = sqrt(l^2 - l + 1) prod_i L_i`, `L_i` the length of the longest column. In
//!   `E = sum_{i in T} k_i prod_{j != i} f_j - c prod f_j`, with `T` all axes and `c = l - 1`, the square `|E|^2` knows of every
//!   axis only `|k_i|`, `|f_i|` and `<k_i, f_i>`, the last in `[0, |k_i| |f_i|]` as no weight is negative, and is affine in it:
//!   it is largest where on some axes `k_i` and `f_i` are parallel and on the others orthogonal. In units of `L_i`, with `n`
//!   axes of `T` parallel, the terms that are left of `T` are at most 1 and orthogonal to all others. The others are one
//!   vector, of at most `g = sum_i p_i prod_{j != i} q_j - c prod q_j` over those `n`, all `p` and `q` in `[0, 1]`: affine in each,
//!   so from `-c` (all `q` 1) to the larger of `n - c` and 1 (one `q` 0), where without any (`n = 0`) `g = -c`. So
//!   `|E|^2 <= max(c^2, 1) + |T| - n` for `n >= 1` and `c^2 + |T|` for `n = 0`, the largest if `n - c <= 1`.
//!
//! # Full cells
//!
//! A cell saturates at 2^44 records. Then a deposit is only partly taken, and differently on each axis: `s_i k_i` with
//! `s_i` in `[0, 1]`. Let `T_m` be the least. With `c_i = s_i T_m / T_i`, in `[0, 1]` too,
//! `dG/dt = s_m k_m prod_{j != m} f_j + sum_{i != m} c_i (k_i - f_i) prod_{j != i} f_j`, affine in each of `s_m` and `c_i`, so
//! that each is 0 or 1. If `s_m` is 1, it is `E` of the axes that count, times the other `f_i`: no more than `E` of all. If
//! `s_m` is 0, at most `l - 1` axes count: the sup norm is still at most `S`, and the 1-norm at most
//! `sum_i 2 A_i prod_{j != i} m_j` over `l - 1` of the axes. `D1` is the larger of the two; the second is so only where
//! bandwidths are wide and unlike. In the 2-norm the argument above holds for any `T` and `c` with `|T| - c <= 1`: `c` is
//! `|T| - 1` if `s_m` is 1, and `|T| <= l - 1` if it is 0, so `c^2 + |T| <= l^2 - l + 1` either way.
//!
//! # Rounding
//!
//! Each of the `l` divisions loses less than one unit of `2^-18` grid units, and a later factor is at most 1: a class is
//! less than `l` such units too low, and two scores differ by less than `2 l` of them more than they should. The
//! last step rounds to grid units, which moves a difference by less than one at each lattice point.

use std::f64::consts::PI;

use arrow_buffer::i256;

use crate::density::{fine_grid, narrowed_bandwidth};
use crate::kernel::KernelWeights;
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::lattice;
use bernstream_release::lattice::{round_half_up, times_contributions};
use bernstream_release::target::{Target, interpolated_sensitivity, root_rounded_up};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::bandwidths::check_bandwidths;
use bernstream_synopsis::histogram::{Histogram, Nodes};
use bernstream_synopsis::shape::{Basis, Shape};

/// `log2` of the largest weight of a table. A histogram holds less than 2^86 grains, so sums stay below 2^116.
const WEIGHT_BITS: u32 = 30;

/// A score is computed to this many bits below a grid unit: a record's peak is `2^20 2^30` there and `2^32` units.
const SPARE_BITS: u32 = 18;

/// The score of one release: its lattice and its kernel tables. All of it is public.
#[derive(Clone, Debug)]
pub struct KernelBayes {
    /// Fine grids, one an axis.
    nodes: Vec<Nodes>,
    degree: u32,
    points: usize,
    tables: Vec<KernelWeights>,
    /// `b'`, one an axis.
    bandwidths: Vec<f64>,
}

impl KernelBayes {
    /// `bandwidths` in units of the cube's width, in `(0, 1]`, one an axis, 1 to 3; `degree` is `k`, 1 to 5000, the same
    /// on all axes, at most `2^20` lattice points.
    ///
    /// # Errors
    ///
    /// If the axes, the bandwidths or the degree are out of range, or the histograms would be too large.
    pub fn new(bandwidths: &[f64], degree: u32) -> Result<Self, TargetError> {
        let points = lattice::lattice_points(bandwidths.len(), degree)?;
        check_bandwidths(bandwidths)?;
        let nodes = bandwidths
            .iter()
            .map(|b| fine_grid(&[*b]))
            .collect::<Result<Vec<_>, _>>()?;
        let cells: Vec<u32> = nodes.iter().flat_map(Nodes::per_axis).copied().collect();
        let bandwidths: Vec<f64> = bandwidths
            .iter()
            .zip(&cells)
            .map(|(b, m)| narrowed_bandwidth(*b, *m))
            .collect();
        let tables = bandwidths
            .iter()
            .zip(&cells)
            .map(|(b, m)| KernelWeights::gaussian(*b, *m, degree, 1 << WEIGHT_BITS))
            .collect();
        Ok(KernelBayes {
            nodes,
            degree,
            points,
            tables,
            bandwidths,
        })
    }

    /// `G_c` in `2^-18` grid units.
    fn class_scores(&self, axes: &[Histogram]) -> Vec<i128> {
        let totals: Vec<i128> = axes.iter().map(|axis| grains(axis).sum()).collect();
        let least = totals.iter().min().copied().unwrap_or(0);
        if least == 0 {
            return vec![0; self.points];
        }
        let mut values = vec![least << WEIGHT_BITS];
        for ((axis, table), total) in axes.iter().zip(&self.tables).zip(totals) {
            let cells: Vec<i128> = grains(axis).collect();
            let sums = table.apply_along_axis(&cells, 1);
            let divisor = i256::from_i128(total << WEIGHT_BITS);
            let mut products = Vec::with_capacity(values.len() * sums.len());
            for value in values {
                for sum in &sums {
                    // Two factors below 2^116, and a quotient no larger than the first: neither product nor result can wrap.
                    let product = i256::from_i128(value).wrapping_mul(i256::from_i128(*sum));
                    products.push(product.wrapping_div(divisor).as_i128());
                }
            }
            values = products;
        }
        values
    }

    /// `D1` in products of weights.
    fn mass(&self) -> u128 {
        let m: Vec<u128> = self
            .tables
            .iter()
            .map(|table| u128::from(table.largest_mass()))
            .collect();
        let a: Vec<u128> = self
            .tables
            .iter()
            .map(|table| u128::from(table.largest_excess()))
            .collect();
        match [&m[..], &a[..]] {
            [[m], _] => *m,
            [[m, n], [a, b]] => (m * n + 2 * a * b).max(2 * a * n).max(2 * m * b),
            [[m, n, o], [a, b, c]] => {
                let open = m * n * o + 2 * (m * b * c + a * n * c + a * b * o) - 2 * a * b * c;
                let sides = [2 * a * n * o, 2 * m * b * o, 2 * m * n * c];
                let full = sides.iter().sum::<u128>() - sides.into_iter().min().unwrap_or(0);
                open.max(full)
            }
            _ => 0,
        }
    }

    /// `S` in products of weights.
    fn peak(&self) -> u128 {
        let steps = (self.tables.len() as u128 - 1).max(1);
        steps
            * self
                .tables
                .iter()
                .map(|table| u128::from(table.largest_weight()))
                .product::<u128>()
    }

    /// `D2 / sqrt(l^2 - l + 1)` in products of weights.
    fn length(&self) -> u128 {
        self.tables
            .iter()
            .map(|table| u128::from(table.largest_length()))
            .product()
    }

    /// Products of weights that one record makes, in grid units.
    fn record_units(&self, product: u128) -> u128 {
        // A product of l largest weights is 2^32 units.
        (product << 2).div_ceil(1 << (WEIGHT_BITS * (self.tables.len() as u32 - 1)))
    }

    /// Most that rounding down adds to a difference at `points` lattice points, in grid units.
    fn rounding_slack(&self, points: usize) -> u128 {
        (2 * self.tables.len() as u128 * points as u128).div_ceil(1 << SPARE_BITS)
    }
}

/// Grains of every cell.
fn grains(axis: &Histogram) -> impl Iterator<Item = i128> {
    axis.cells.iter().map(|grains| i128::from(*grains))
}

/// Number of classes that a record touches.
fn touched_classes(adjacency: Adjacency) -> u128 {
    match adjacency {
        Adjacency::AddRemove => 1,
        Adjacency::ReplaceOne => 2,
    }
}

impl Builtin for KernelBayes {}

impl Target for KernelBayes {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Marginals(self.nodes.clone())
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: self.tables.len(),
            degree: self.degree,
            basis: Basis::Bernstein,
        }
    }

    fn unit(&self) -> f64 {
        let peak: f64 = self
            .bandwidths
            .iter()
            .map(|b| 1.0 / ((2.0 * PI).sqrt() * b))
            .product();
        peak / 32_f64.exp2()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let [negative, positive] = accumulator.marginals().map(|axes| self.class_scores(axes));
        Exact::new(
            positive
                .iter()
                .zip(negative)
                .map(|(plus, minus)| round_half_up(plus - minus, SPARE_BITS))
                .collect(),
        )
    }

    /// `contributions * (ceil(c D1 + N 2 l 2^-18) + N)`, `c` 1 for add-remove and 2 for replace-one, `D1` at most `N S`.
    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        let points = self.points as u128;
        let change = self.mass().min(points.saturating_mul(self.peak()));
        times_contributions(
            self.record_units(touched_classes(adjacency) * change)
                + self.rounding_slack(self.points)
                + points,
            contributions,
        )
        .map(Sensitivity)
    }

    /// `contributions * ceil(c S + 2 l 2^-18)`: rounding halves up adds nothing to a bound of whole units.
    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        times_contributions(
            self.record_units(touched_classes(adjacency) * self.peak()) + self.rounding_slack(1),
            contributions,
        )
    }

    /// `contributions * (ceil(c D2 + 2 l 2^-18 ceil(sqrt N)) + ceil(sqrt N))`; or `sqrt(D1 S)`, where that is less.
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let axes = self.tables.len() as u128;
        let change = (axes * axes - axes + 1)
            * self
                .record_units(touched_classes(adjacency) * self.length())
                .pow(2);
        let side = root_rounded_up(self.points as u128);
        let one = u128::from(root_rounded_up(change))
            + self.rounding_slack(side as usize)
            + u128::from(side);
        Ok(
            times_contributions(one, contributions)?.min(interpolated_sensitivity(
                self,
                adjacency,
                contributions,
            )?),
        )
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;
    use rand::rngs::ChaCha20Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::opened::opened;

    /// Histograms of all axes with the same total, or with full cells where `is_full`.
    fn class(target: &KernelBayes, is_full: bool, rng: &mut ChaCha20Rng) -> Vec<Histogram> {
        let records = rng.random_range(0..60);
        let weight = 1_u64 << rng.random_range(0..38);
        let mut axes: Vec<Histogram> = target.nodes.iter().map(Histogram::new).collect();
        for (axis, nodes) in axes.iter_mut().zip(&target.nodes) {
            for _ in 0..records {
                axis.deposit_record(nodes, nodes.place_record(&[rng.random()]));
            }
            axis.cells.iter_mut().for_each(|cell| *cell *= weight);
            for cell in &mut axis.cells {
                if is_full && rng.random_bool(0.6) {
                    let bits = rng.random_range(1..23);
                    *cell = u64::MAX - rng.random_range(0..1_u64 << bits);
                }
            }
        }
        axes
    }

    const CASES: [(&[f64], u32); 6] = [
        (&[0.3], 9),
        (&[0.1, 0.2], 5),
        (&[1.0, 0.05], 4),
        (&[0.9, 0.8], 3),
        (&[0.2, 0.3, 0.1], 3),
        (&[1.0, 0.6, 0.9], 2),
    ];

    #[test]
    fn a_class_is_the_exact_rational_rounded_down_by_less_than_one_unit_an_axis() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for (widths, degree) in CASES {
            let target = KernelBayes::new(widths, degree).unwrap();
            for round in 0..20 {
                let axes = class(&target, round % 2 == 0, &mut rng);
                let total = |axis: &Histogram| {
                    axis.cells
                        .iter()
                        .map(|grains| BigUint::from(*grains))
                        .sum::<BigUint>()
                };
                let least = axes.iter().map(total).min().unwrap();
                if least == BigUint::ZERO {
                    assert!(target.class_scores(&axes).iter().all(|value| *value == 0));
                    continue;
                }
                // Numerator and denominator of the score in 2^-18 units.
                let mut exact = vec![least << WEIGHT_BITS];
                let mut divisor = BigUint::from(1_u8);
                for (axis, table) in axes.iter().zip(&target.tables) {
                    let cells: Vec<i128> = axis
                        .cells
                        .iter()
                        .map(|grains| i128::from(*grains))
                        .collect();
                    let sums = table.apply_along_axis(&cells, 1);
                    exact = exact
                        .iter()
                        .flat_map(|value| sums.iter().map(move |sum| value * sum.unsigned_abs()))
                        .collect();
                    divisor *= total(axis) << WEIGHT_BITS;
                }
                for (found, exact) in target.class_scores(&axes).into_iter().zip(exact) {
                    let found = BigUint::from(found.unsigned_abs()) * &divisor;
                    assert!(
                        found <= exact && exact < found + widths.len() * &divisor,
                        "{widths:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn next_to_full_cells_no_record_changes_more_than_claimed() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        for (widths, degree) in CASES {
            let target = KernelBayes::new(widths, degree).unwrap();
            let sum = u128::from(target.sensitivity(Adjacency::AddRemove, 1).unwrap().0);
            let sup = u128::from(target.sup_sensitivity(Adjacency::AddRemove, 1).unwrap());
            let mut nearest = 0.0_f64;
            for round in 0..400 {
                let before = class(&target, round % 4 > 0, &mut rng);
                let mut after = before.clone();
                for (axis, nodes) in after.iter_mut().zip(&target.nodes) {
                    axis.deposit_record(nodes, nodes.place_record(&[rng.random()]));
                }
                let empty: Vec<Histogram> = target.nodes.iter().map(Histogram::new).collect();
                let [before, after] = [before, after]
                    .map(|axes| target.evaluate(&Accumulator::Marginals([empty.clone(), axes])));
                let changes = || {
                    opened(&before)
                        .into_iter()
                        .zip(opened(&after))
                        .map(|(a, b)| a.abs_diff(b))
                };
                let found: u128 = changes().sum();
                nearest = nearest.max(found as f64 / sum as f64);
                assert!(
                    found <= sum && changes().max() <= Some(sup),
                    "{widths:?}: {found} {sum}"
                );
            }
            println!("{widths:?}: {nearest:.3} of the claim next to full cells");
            assert!(nearest > 0.1, "{widths:?}");
        }
    }

    #[test]
    fn narrow_kernels_have_the_closed_form() {
        for (axes, factor) in [(1, 1), (2, 3), (3, 5)] {
            let target = KernelBayes::new(&[0.02; 3][..axes], 10).unwrap();
            let mass: u128 = target
                .tables
                .iter()
                .map(|table| u128::from(table.largest_mass()))
                .product();
            assert_eq!(target.mass(), factor * mass);
        }
    }
}
