//! Functions of a kernel's space by public points: Newton's basis, the Cholesky factor behind it.

use crate::targets::{KernelBasis, PointKernel};

/// A point is no longer told apart from those before it where the power function's square is this part of `K(y, y)`: what is
/// left out is a part in 10^5 of a function's norm.
const REST: f64 = 1e-10;

/// Public points `p_1, ..., p_d` of a kernel, and `L`, `K_PP = L L'`. The functions `n(y) = L^-1 k_P(y)` are orthonormal in the
/// kernel's space, so a function with the coordinates `c` is `c' n(y)`, of norm `||c||_2`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Newton {
    pub basis: KernelBasis,
    /// Row `i` of `L` has `i + 1` numbers.
    factor: Vec<Vec<f64>>,
}

impl Newton {
    /// On the points of a basis, in their order. Points that the kernel cannot tell apart get a pivot of [`REST`].
    pub fn on(basis: &KernelBasis) -> Self {
        let KernelBasis { kernel, points } = basis;
        let mut newton = Newton { basis: basis.clone(), factor: Vec::with_capacity(points.len()) };
        for point in points {
            let mut row = newton.at(point);
            let whole = kernel.value(point, point);
            let rest = whole - dot(&row, &row);
            row.push(rest.max(REST * whole).sqrt());
            newton.factor.push(row);
        }
        newton
    }

    /// On at most `most` of `candidates`, each next one where the power function is largest.
    pub fn among(kernel: &PointKernel, candidates: &[Vec<f64>], most: usize) -> Self {
        let basis = KernelBasis { kernel: kernel.clone(), points: Vec::new() };
        let mut newton = Newton { basis, factor: Vec::new() };
        let mut rests: Vec<f64> = candidates.iter().map(|y| kernel.value(y, y)).collect();
        let mut rows: Vec<Vec<f64>> = vec![Vec::new(); candidates.len()];
        let least = REST * rests.iter().copied().fold(0.0, f64::max);
        while newton.factor.len() < most {
            let pivot = (0..rests.len()).fold(0, |best, at| if rests[at] > rests[best] { at } else { best });
            let Some((rest, point)) = rests.get(pivot).copied().zip(candidates.get(pivot)) else { break };
            // Not a number is none to go on with.
            if rest.is_nan() || rest <= least {
                break;
            }
            let mut chosen = rows[pivot].clone();
            for ((y, row), left) in candidates.iter().zip(&mut rows).zip(&mut rests) {
                let next = (kernel.value(point, y) - dot(&chosen, row)) / rest.sqrt();
                *left -= next * next;
                row.push(next);
            }
            rests[pivot] = 0.0;
            chosen.push(rest.sqrt());
            newton.factor.push(chosen);
            newton.basis.points.push(point.clone());
        }
        newton
    }

    /// `d`.
    pub fn count(&self) -> usize {
        self.factor.len()
    }

    /// `n(y)`. `O(d^2)`.
    pub fn at(&self, y: &[f64]) -> Vec<f64> {
        let values: Vec<f64> =
            self.basis.points.iter().take(self.count()).map(|p| self.basis.kernel.value(y, p)).collect();
        forward(&self.factor, &values)
    }

    /// `L' a`: the coordinates of `sum_i a_i K(., p_i)`.
    pub fn coordinates(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut coordinates = vec![0.0; self.count()];
        for (row, a) in self.factor.iter().zip(coefficients) {
            coordinates.iter_mut().zip(row).for_each(|(c, l)| *c += a * l);
        }
        coordinates
    }

    /// `L'^-1 c`: the kernel coefficients of the function with the coordinates `c`.
    pub fn coefficients(&self, coordinates: &[f64]) -> Vec<f64> {
        backward(&self.factor, coordinates)
    }

    /// `L^-1 v`: the coordinates of a function with the values `v` at the points.
    pub fn whiten(&self, values: &[f64]) -> Vec<f64> {
        forward(&self.factor, values)
    }
}

/// The factor `L` of a positive definite matrix given by its lower triangle, row by row.
pub(super) fn cholesky(mut rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(rows.len());
    for row in &mut rows {
        let whole = row.pop().unwrap_or(f64::NAN);
        let mut next = forward(&factor, row);
        next.push((whole - dot(&next, &next)).max(REST * whole).sqrt());
        factor.push(next);
    }
    factor
}

/// `L^-1 x`.
pub(super) fn forward(factor: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    let mut solved: Vec<f64> = Vec::with_capacity(factor.len() + 1);
    for (row, x) in factor.iter().zip(x) {
        // `solved` is one shorter than the row, whose last entry is the pivot.
        let pivot = row.last().copied().unwrap_or(f64::NAN);
        solved.push((x - dot(row, &solved)) / pivot);
    }
    solved
}

/// `L'^-1 x`.
pub(super) fn backward(factor: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    let mut solved = x.to_vec();
    for (i, row) in factor.iter().enumerate().rev() {
        let (before, from) = solved.split_at_mut(i);
        if let (Some(value), Some(pivot)) = (from.first_mut(), row.last()) {
            *value /= pivot;
            before.iter_mut().zip(row).for_each(|(x, l)| *x -= l * *value);
        }
    }
    solved
}

/// The inner product, in four sums that a processor takes side by side.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (fours, others) = (a.chunks_exact(4).zip(b.chunks_exact(4)), a.len().min(b.len()) / 4 * 4);
    let mut sums = [0.0; 4];
    for (a, b) in fours {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    let rest: f64 = a.iter().zip(b).skip(others).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(count: u32) -> Vec<Vec<f64>> {
        (0..count).map(|i| vec![f64::from(i) / f64::from(count - 1)]).collect()
    }

    #[test]
    fn coordinates_and_coefficients_are_two_ways_to_say_one_function() {
        let kernel = PointKernel::Gaussian { precision: vec![vec![1.0 / 0.2_f64.powi(2)]] };
        let newton = Newton::among(&kernel, &line(41), 8);
        let same = Newton::on(&newton.basis);
        let coefficients: Vec<f64> = (0..8).map(|i| f64::from(i * i % 5) - 2.0).collect();
        let coordinates = newton.coordinates(&coefficients);
        for y in line(17) {
            let as_sum: f64 = newton.basis.points.iter().zip(&coefficients).map(|(p, a)| a * kernel.value(&y, p)).sum();
            assert!((dot(&same.at(&y), &coordinates) - as_sum).abs() < 1e-9, "{y:?}");
        }
        let back = newton.coefficients(&coordinates);
        assert!(back.iter().zip(&coefficients).all(|(a, b)| (a - b).abs() < 1e-6), "{back:?}");
    }

    #[test]
    fn the_factor_of_a_matrix_solves_it() {
        let factor = cholesky(vec![vec![4.0], vec![2.0, 5.0], vec![1.0, -1.0, 3.0]]);
        let x = backward(&factor, &forward(&factor, &[7.0, 6.0, 3.0]));
        let product = [4.0 * x[0] + 2.0 * x[1] + x[2], 2.0 * x[0] + 5.0 * x[1] - x[2], x[0] - x[1] + 3.0 * x[2]];
        assert!(product.iter().zip([7.0, 6.0, 3.0]).all(|(a, b)| (a - b).abs() < 1e-12), "{product:?}");
    }

    #[test]
    fn enough_points_explain_everything_and_few_do_not() {
        let kernel = PointKernel::Gaussian { precision: vec![vec![1.0 / 0.3_f64.powi(2)]] };
        let rest = |n: Vec<f64>| 1.0 - dot(&n, &n);
        let largest = |newton: &Newton| line(100).iter().map(|y| rest(newton.at(y))).fold(0.0, f64::max);
        let all = Newton::among(&kernel, &line(101), 101);
        assert!(all.count() < 20 && largest(&all) < 1e-8, "{}", all.count());
        assert!(largest(&Newton::among(&kernel, &line(101), 3)) > 1e-2);
    }
}
