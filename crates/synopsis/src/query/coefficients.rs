//! Functions on the cube `[-1, 1]^d` as sums of products of cosines: `f(cos theta) = sum_m c_m prod_i cos(m_i theta_i)`.
//!
//! Everything is even in each angle, so a cosine transform at Chebyshev's nodes gives the `c_m`, with an error only from
//! frequencies above the number of nodes. The number is small, so transforms are plain sums.

use std::f64::consts::PI;

use crate::tensor::grid_points;

/// Values of a function of one variable at some angles, or of several on their product, row-major, the last axis fastest.
pub(super) struct Tensor {
    pub values: Vec<f64>,
    /// Number of values on each axis.
    pub widths: Vec<usize>,
}

impl Tensor {
    /// Samples `f`, which takes a point of `[-1, 1]^d`, at these angles of each axis.
    pub fn sample_angles(angles: &[Vec<f64>], f: impl Fn(&[f64]) -> f64) -> Tensor {
        let cosines: Vec<Vec<f64>> = angles
            .iter()
            .map(|axis| axis.iter().map(|a| a.cos()).collect())
            .collect();
        let widths: Vec<usize> = angles.iter().map(Vec::len).collect();
        Tensor {
            values: grid_points(&cosines).iter().map(|point| f(point)).collect(),
            widths,
        }
    }

    /// One matrix applied along each axis in turn; entry `(row, column)` of that of axis `i` is `entry(i, row, column)`.
    pub fn transformed_axes(
        mut self,
        rows: &[usize],
        entry: impl Fn(usize, usize, usize) -> f64,
    ) -> Tensor {
        for (axis, rows) in rows.iter().enumerate() {
            let width = self.widths[axis];
            let inner: usize = self.widths[axis + 1..].iter().product();
            let mut matrix = Vec::with_capacity(rows * width);
            for row in 0..*rows {
                for column in 0..width {
                    matrix.push(entry(axis, row, column));
                }
            }
            let mut turned = Vec::with_capacity(self.values.len() / width * rows);
            for block in self.values.chunks_exact(width * inner) {
                for weights in matrix.chunks_exact(width) {
                    turned.extend(weighted_sum(block, weights));
                }
            }
            self.values = turned;
            self.widths[axis] = *rows;
        }
        self
    }

    /// The value at a place; 0 outside.
    fn at(&self, indices: &[usize]) -> f64 {
        let mut flat = 0;
        for (index, width) in indices.iter().zip(&self.widths) {
            if index >= width {
                return 0.0;
            }
            flat = flat * width + index;
        }
        self.values[flat]
    }
}

/// Sum of equally long slices with these weights.
fn weighted_sum(slices: &[f64], weights: &[f64]) -> Vec<f64> {
    let length = slices.len() / weights.len();
    let mut sums = vec![0.0; length];
    for (slice, weight) in slices.chunks_exact(length).zip(weights) {
        for (sum, value) in sums.iter_mut().zip(slice) {
            *sum += weight * value;
        }
    }
    sums
}

/// Writes the index on each axis of a place in a row-major tensor.
pub(super) fn unravel_index(mut flat: usize, widths: &[usize], indices: &mut [usize]) {
    for (index, width) in indices.iter_mut().zip(widths).rev() {
        *index = flat % width;
        flat /= width;
    }
}

/// Angles of the nodes of Chebyshev, inside the interval.
fn inner_angles(count: usize) -> Vec<f64> {
    (0..count)
        .map(|j| PI * (j as f64 + 0.5) / count as f64)
        .collect()
}

/// `n + 1` even angles from end to end: the nodes of Clenshaw and Curtis.
pub(super) fn even_angles(n: usize) -> Vec<f64> {
    (0..=n).map(|j| PI * j as f64 / n as f64).collect()
}

/// Grid on which the coefficients of a query are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoefficientGrid {
    /// On the product of the axes, at two to four nodes a frequency.
    #[default]
    Full,
    /// On Smolyak's sparse grid over the nodes of Clenshaw and Curtis, `2^level + 1` on an axis alone: fewer points on
    /// three axes, as good for functions whose mixed derivatives are bounded.
    Sparse { level: u32 },
}

/// The coefficients below `t` on each axis.
pub(super) fn coefficients(
    dimensions: usize,
    t: usize,
    grid: CoefficientGrid,
    f: impl Fn(&[f64]) -> f64,
) -> Vec<f64> {
    match grid {
        CoefficientGrid::Full => full(dimensions, t, f),
        CoefficientGrid::Sparse { level } => sparse(dimensions, t, level, f),
    }
}

/// Number of nodes of an axis that are looked at: what a moment has the patience for.
pub(super) fn nodes_per_axis(dimensions: usize, t: usize) -> usize {
    let wanted = match dimensions {
        1 => (4 * t).clamp(1024, 2048),
        2 => (4 * t).clamp(128, 256),
        _ => (4 * t).clamp(24, 48),
    };
    wanted.max(2 * t)
}

fn full(dimensions: usize, t: usize, f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let count = nodes_per_axis(dimensions, t);
    let angles = inner_angles(count);
    Tensor::sample_angles(&vec![angles.clone(); dimensions], f)
        .transformed_axes(&vec![t; dimensions], |_, m, j| {
            let scale = if m == 0 { 1.0 } else { 2.0 };
            scale / count as f64 * (m as f64 * angles[j]).cos()
        })
        .values
}

/// The coefficients of the sparse-grid interpolant, by the combination of small full grids (`[GG98]`, after
/// Smolyak): `sum (-1)^(L-|k|) C(d-1, L-|k|)` of those with `2^k_i + 1` nodes on axis `i`, over `L-d < |k| <= L`. (One node
/// where `k_i` is 0.)
fn sparse(dimensions: usize, t: usize, level: u32, f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut sum = vec![0.0; t.pow(dimensions as u32)];
    let level = level as usize;
    let grid_counts = vec![level + 1; dimensions];
    let frequency_counts = vec![t; dimensions];
    let mut levels = vec![0; dimensions];
    let mut frequencies = vec![0; dimensions];
    for grid in 0..(level + 1).pow(dimensions as u32) {
        unravel_index(grid, &grid_counts, &mut levels);
        let all: usize = levels.iter().sum();
        if all > level || level - all >= dimensions {
            continue;
        }
        let below = level - all;
        let sign = if below.is_multiple_of(2) { 1.0 } else { -1.0 };
        let part = on_even_angles(&levels, t, &f);
        let weight = sign * binomial_coefficient(dimensions as u64 - 1, below as u64);
        for (flat, sum) in sum.iter_mut().enumerate() {
            unravel_index(flat, &frequency_counts, &mut frequencies);
            *sum += weight * part.at(&frequencies);
        }
    }
    sum
}

/// The coefficients of the interpolant at `2^k + 1` even angles an axis.
fn on_even_angles(levels: &[usize], t: usize, f: impl Fn(&[f64]) -> f64) -> Tensor {
    let mut angles = Vec::with_capacity(levels.len());
    for level in levels {
        angles.push(match level {
            0 => vec![PI / 2.0],
            _ => even_angles(1 << level),
        });
    }
    let rows: Vec<usize> = angles.iter().map(|axis| axis.len().min(t)).collect();
    Tensor::sample_angles(&angles, f)
        .transformed_axes(&rows, |axis, m, j| interpolation_entry(&angles[axis], m, j))
}

/// Weight of the value at angle `j` in the coefficient of frequency `m`, of the interpolant at even angles.
fn interpolation_entry(angles: &[f64], m: usize, j: usize) -> f64 {
    let n = angles.len() - 1;
    if n == 0 {
        return 1.0;
    }
    // Both the ends of the interval and the first and the last frequency count half.
    let halved = [m, j].into_iter().filter(|i| *i == 0 || *i == n).count();
    2.0 / n as f64 * 0.5_f64.powi(halved as i32) * (m as f64 * angles[j]).cos()
}

/// `C(n, k)`.
fn binomial_coefficient(n: u64, k: u64) -> f64 {
    let mut product = 1.0;
    for i in 0..k {
        product = product * (n - i) as f64 / (i + 1) as f64;
    }
    product
}

/// Multipliers of the paper's operator for each frequency below `t`, on one axis: `[WFZW13]` section 4, with the generalised
/// Jackson kernel `H` of degree `t - 1` and `r = ceil((K + 3) / 2)`.
///
/// The operator is a sum of convolutions, so it takes `cos(n x)` to `-sum_k (-1)^k C(K+1, k) rho(k n) cos(n x)`, `k` from 1 to
/// `K + 1`, `rho(l) = integral H(s) cos(l s) ds`, 0 from `t` on: its coefficients are those of Chebyshev times that, and the
/// paper's integrals of `cos(l theta / k)` are not needed. `(sin(t s/2) / sin(s/2))^2` is the sum of `(t - |j|) exp(i j s)`,
/// and its powers are convolutions.
pub(super) fn jackson_multipliers(t: usize, smoothness: u32) -> Vec<f64> {
    let r = (smoothness as usize + 3).div_ceil(2);
    let side = (t - 1) / r + 1;
    let triangle: Vec<f64> = (1..=side)
        .chain((1..side).rev())
        .map(|j| j as f64)
        .collect();
    let mut power = triangle.clone();
    for _ in 1..r {
        power = convolved(&power, &triangle);
    }
    let middle = power.len() / 2;
    let terms = u64::from(smoothness) + 1;
    let mut multipliers = Vec::with_capacity(t);
    for n in 0..t {
        let mut multiplier = 0.0;
        for k in 1..=terms {
            let sign = if k.is_multiple_of(2) { -1.0 } else { 1.0 };
            let moment = power.get(middle + k as usize * n).copied().unwrap_or(0.0);
            multiplier += sign * binomial_coefficient(terms, k) * (moment / power[middle]);
        }
        multipliers.push(multiplier);
    }
    multipliers
}

fn convolved(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; one.len() + other.len() - 1];
    for (i, a) in one.iter().enumerate() {
        for (j, b) in other.iter().enumerate() {
            sums[i + j] += a * b;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chebyshev(m: usize, x: f64) -> f64 {
        (m as f64 * x.acos()).cos()
    }

    #[test]
    fn products_of_cosines_have_one_coefficient() {
        for grid in [CoefficientGrid::Full, CoefficientGrid::Sparse { level: 9 }] {
            let f = |x: &[f64]| {
                3.0 * chebyshev(2, x[0]) * chebyshev(1, x[1]) * chebyshev(3, x[2]) - 0.5
            };
            let found = coefficients(3, 4, grid, f);
            for (flat, c) in found.iter().enumerate() {
                let expected = match flat {
                    0 => -0.5,
                    39 => 3.0,
                    _ => 0.0,
                };
                assert!((c - expected).abs() < 1e-12, "{grid:?} {flat}: {c}");
            }
        }
    }

    /// `exp(x) = I_0(1) + 2 sum I_m(1) T_m(x)`.
    #[test]
    fn an_exponential_has_the_coefficients_of_bessel() {
        let bessel = [
            1.266_065_877_752_008,
            0.565_159_103_992_485,
            0.135_747_669_767_038_3,
            0.022_168_424_924_331_9,
        ];
        for grid in [CoefficientGrid::Full, CoefficientGrid::Sparse { level: 5 }] {
            for (m, (c, i)) in coefficients(1, 4, grid, |x| x[0].exp())
                .iter()
                .zip(bessel)
                .enumerate()
            {
                let expected = if m == 0 { i } else { 2.0 * i };
                assert!((c - expected).abs() < 1e-12, "{m}: {c} {expected}");
            }
        }
    }

    #[test]
    fn a_sparse_grid_finds_what_a_full_one_does_from_fewer_points() {
        use std::cell::Cell;
        let count = Cell::new(0_u32);
        let f = |x: &[f64]| {
            count.set(count.get() + 1);
            (0.5 * x[0] - x[1] + 0.3 * x[2]).exp() / (2.0 + x[0] * x[2])
        };
        let exact = coefficients(3, 8, CoefficientGrid::Full, f);
        let points = count.replace(0);
        let sparse = coefficients(3, 8, CoefficientGrid::Sparse { level: 7 }, f);
        let apart = exact
            .iter()
            .zip(&sparse)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        assert!(apart < 1e-5, "{apart}");
        assert!(count.get() * 2 < points, "{} of {points}", count.get());
    }

    /// Against the integral that defines the operator.
    #[test]
    fn the_papers_operator_is_a_multiplier() {
        for (t, smoothness) in [(5, 1), (9, 2), (12, 4), (3, 6)] {
            let found = jackson_multipliers(t, smoothness);
            let r = (smoothness as i32 + 3 + 1) / 2;
            let side = ((t - 1) / r as usize + 1) as f64;
            let kernel = |s: f64| ((side * s / 2.0).sin() / (s / 2.0).sin()).powi(2 * r);
            // Even steps are exact for trigonometric polynomials.
            let steps: Vec<f64> = (0..400)
                .map(|j| PI * (2.0 * f64::from(j) + 1.0) / 400.0)
                .collect();
            let mass: f64 = steps.iter().map(|s| kernel(*s)).sum();
            for (n, multiplier) in found.iter().enumerate() {
                let inside = |s: f64| -> f64 {
                    let term = |l: u32| -> f64 {
                        (-1.0_f64).powi(l as i32)
                            * binomial_coefficient(u64::from(smoothness) + 1, l.into())
                            * (n as f64 * f64::from(l) * s).cos()
                    };
                    (1..=smoothness + 1).map(term).sum()
                };
                let expected = -steps.iter().map(|s| kernel(*s) * inside(*s)).sum::<f64>() / mass;
                assert!(
                    (multiplier - expected).abs() < 1e-9,
                    "{t} {smoothness} {n}: {multiplier} {expected}"
                );
            }
            assert!((found[0] - 1.0).abs() < 1e-9);
        }
    }
}
