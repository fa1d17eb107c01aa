//! Functions of a kernel's space on public points: Newton's basis.

use crate::cholesky::{Pivoted, dot_product, solve_lower, solve_upper};
use crate::{KernelBasis, PointKernel};

/// A point is no longer told apart from those before it where the power function's square is this part of `K(y, y)`: what is
/// left out is a part in 10^5 of a function's norm.
pub(super) const REST: f64 = 1e-10;

/// Public points `p_1, ..., p_d` of a kernel, and `L`, `K_PP = L L'`. The functions `n(y) = L^-1 k_P(y)` are orthonormal in the
/// kernel's space, so a function with the coordinates `c` is `c' n(y)`, of norm `||c||_2`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Newton {
    pub basis: KernelBasis,
    /// Row `i` of `L` has `i + 1` numbers.
    factor: Vec<Vec<f64>>,
}

impl Newton {
    /// Newton's basis on the points of a basis, in their order. Points that the kernel cannot tell apart get a pivot of [`REST`].
    pub fn on_points(basis: &KernelBasis) -> Self {
        let KernelBasis { kernel, points } = basis;
        let mut newton = Newton {
            basis: basis.clone(),
            factor: Vec::with_capacity(points.len()),
        };
        for point in points {
            let mut row = newton.basis_values(point);
            let whole = kernel.value(point, point);
            let rest = whole - dot_product(&row, &row);
            row.push(rest.max(REST * whole).sqrt());
            newton.factor.push(row);
        }
        newton
    }

    /// Newton's basis on at most `most` of `candidates`, each next one where the power function is largest.
    pub fn on_chosen_points(kernel: &PointKernel, candidates: &[Vec<f64>], most: usize) -> Self {
        let chosen = Pivoted::new(
            candidates.len(),
            |x, y| kernel.value(&candidates[x], &candidates[y]),
            most,
            REST,
        );
        let points = chosen
            .order
            .iter()
            .map(|at| candidates[*at].clone())
            .collect();
        let mut factor = Vec::with_capacity(chosen.order.len());
        for (row, rest) in chosen.factor_rows().zip(&chosen.rests) {
            // The root of what is left, updated step by step, stands for the pivot.
            factor.push([&row[..row.len() - 1], &[rest.sqrt()]].concat());
        }
        Newton {
            basis: KernelBasis {
                kernel: kernel.clone(),
                points,
            },
            factor,
        }
    }

    /// `d`.
    pub fn count(&self) -> usize {
        self.factor.len()
    }

    /// `n(y)`. `O(d^2)`.
    pub fn basis_values(&self, y: &[f64]) -> Vec<f64> {
        let values: Vec<f64> = self
            .basis
            .points
            .iter()
            .take(self.count())
            .map(|p| self.basis.kernel.value(y, p))
            .collect();
        solve_lower(&self.factor, &values)
    }

    /// `L' a`: the coordinates of `sum_i a_i K(., p_i)`.
    pub fn coordinates(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut coordinates = vec![0.0; self.count()];
        for (row, a) in self.factor.iter().zip(coefficients) {
            for (coordinate, entry) in coordinates.iter_mut().zip(row) {
                *coordinate += a * entry;
            }
        }
        coordinates
    }

    /// `L'^-1 c`: the kernel coefficients of the function with the coordinates `c`.
    pub fn coefficients(&self, coordinates: &[f64]) -> Vec<f64> {
        solve_upper(&self.factor, coordinates)
    }

    /// `L^-1 v`: the coordinates of a function with the values `v` at the points.
    pub fn whiten(&self, values: &[f64]) -> Vec<f64> {
        solve_lower(&self.factor, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(count: u32) -> Vec<Vec<f64>> {
        (0..count)
            .map(|i| vec![f64::from(i) / f64::from(count - 1)])
            .collect()
    }

    #[test]
    fn coordinates_and_coefficients_are_two_ways_to_say_one_function() {
        let kernel = PointKernel::Gaussian {
            precision: vec![vec![1.0 / 0.2_f64.powi(2)]],
        };
        let newton = Newton::on_chosen_points(&kernel, &line(41), 8);
        let same = Newton::on_points(&newton.basis);
        let coefficients: Vec<f64> = (0..8).map(|i| f64::from(i * i % 5) - 2.0).collect();
        let coordinates = newton.coordinates(&coefficients);
        for y in line(17) {
            let as_sum: f64 = newton
                .basis
                .points
                .iter()
                .zip(&coefficients)
                .map(|(p, a)| a * kernel.value(&y, p))
                .sum();
            assert!(
                (dot_product(&same.basis_values(&y), &coordinates) - as_sum).abs() < 1e-9,
                "{y:?}"
            );
        }
        let back = newton.coefficients(&coordinates);
        assert!(
            back.iter()
                .zip(&coefficients)
                .all(|(a, b)| (a - b).abs() < 1e-6),
            "{back:?}"
        );
    }

    #[test]
    fn enough_points_explain_everything_and_few_do_not() {
        let kernel = PointKernel::Gaussian {
            precision: vec![vec![1.0 / 0.3_f64.powi(2)]],
        };
        let rest = |n: Vec<f64>| 1.0 - dot_product(&n, &n);
        let largest = |newton: &Newton| {
            line(100)
                .iter()
                .map(|y| rest(newton.basis_values(y)))
                .fold(0.0, f64::max)
        };
        let all = Newton::on_chosen_points(&kernel, &line(101), 101);
        assert!(all.count() < 20 && largest(&all) < 1e-8, "{}", all.count());
        assert!(largest(&Newton::on_chosen_points(&kernel, &line(101), 3)) > 1e-2);
    }
}
