//! Bernstein polynomials on the unit cube, and the iterated operator that sharpens them (`docs/proofs/bernstein.md`).

use crate::cholesky::sequential_dot;
use crate::tensor::outer_product;

/// The largest degree for which the basis is known to be exact to 4e-16.
pub const MAX_DEGREE: u32 = 5_000;

/// The largest order that is evaluated; at 200 the error is below 5e-14.
pub const MAX_ORDER: u32 = 1_000;

/// The Bernstein basis `b_j(x) = C(k,j) x^j (1-x)^(k-j)`, `j = 0..=k`, at `x` in `[0, 1]`.
///
/// Computed from its mode outwards and divided by the sum, because a recurrence that starts at `j = 0` underflows from
/// `k = 148` on. Relative to the largest entry the error is below 4e-16 up to [`MAX_DEGREE`].
pub fn bernstein_basis(degree: u32, x: f64) -> Vec<f64> {
    let k = degree as usize;
    let mode = mode(degree, x);
    let mut basis = vec![0.0; k + 1];
    let (low, high) = basis.split_at_mut(mode);
    let mut value = 1.0;
    let mut sum = 0.0;
    for (j, entry) in (mode..).zip(high) {
        *entry = value;
        sum += value;
        value *= (k - j) as f64 / (j + 1) as f64 * (x / (1.0 - x));
    }
    value = 1.0;
    for (j, entry) in (0..mode).zip(low).rev() {
        value *= (j + 1) as f64 / (k - j) as f64 * ((1.0 - x) / x);
        *entry = value;
        sum += value;
    }
    basis.iter_mut().for_each(|entry| *entry /= sum);
    basis
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "x in [0, 1]; the cast saturates"
)]
fn mode(degree: u32, x: f64) -> usize {
    ((f64::from(degree) + 1.0) * x).min(f64::from(degree)) as usize
}

/// A polynomial in Bernstein form at a point of the unit cube: coefficients row-major with the last axis fastest, one
/// basis an axis.
pub fn evaluate_polynomial(coefficients: &[f64], bases: &[Vec<f64>]) -> f64 {
    let mut values = coefficients.to_vec();
    for basis in bases.iter().rev() {
        values = values
            .chunks(basis.len())
            .map(|row| sequential_dot(row, basis))
            .collect();
    }
    values.first().copied().unwrap_or(f64::NAN)
}

/// The iterated Bernstein operator on the lattice `{0, 1/k, ..., 1}^l`.
///
/// `B^(h) v = B c_h` with `c_1 = v`, `c_{j+1} = c_j + (v - A c_j)`, where `A` takes lattice values of `f` to lattice
/// values of `B f`, along each axis in turn. The alternating binomial sum of `[AR17]` is the same operator but loses
/// every digit near `h = 64`; residual correction does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    dimensions: usize,
    on_lattice: Bases,
}

impl Operator {
    /// `O((degree + 1)^2)` memory, whatever the dimension.
    pub fn new(dimensions: usize, degree: u32) -> Self {
        let lattice: Vec<f64> = (0..=degree)
            .map(|i| f64::from(i) / f64::from(degree.max(1)))
            .collect();
        Operator {
            dimensions,
            on_lattice: Bases::at(degree, &lattice),
        }
    }

    /// Coefficients `c_h` of the order-`h` approximation, given the lattice values. `O(h l N k)`.
    pub fn coefficients(&self, values: &[f64], order: u32) -> Vec<f64> {
        let mut coefficients = values.to_vec();
        for _ in 1..order {
            self.correct_residual(&mut coefficients, values);
        }
        coefficients
    }

    /// The coefficients of each of `orders`, which must ascend, at the cost of the last.
    pub(super) fn coefficients_of_orders(&self, values: &[f64], orders: &[u32]) -> Vec<Vec<f64>> {
        let mut coefficients = values.to_vec();
        let mut reached = 1;
        let mut of_orders = Vec::with_capacity(orders.len());
        for order in orders {
            for _ in reached..*order {
                self.correct_residual(&mut coefficients, values);
            }
            reached = reached.max(*order);
            of_orders.push(coefficients.clone());
        }
        of_orders
    }

    /// `(I - A)^h` for each of `orders`, which must ascend, row by row: what order `h` leaves undone at the lattice.
    /// `O(h l N^2 k)`.
    pub fn remainders(&self, orders: &[u32]) -> Vec<Vec<f64>> {
        let points: usize = (0..self.dimensions)
            .map(|_| self.on_lattice.columns)
            .product();
        let mut tables = vec![vec![0.0; points * points]; orders.len()];
        for column in 0..points {
            let mut left = vec![0.0; points];
            left[column] = 1.0;
            let mut reached = 0;
            for (order, table) in orders.iter().zip(&mut tables) {
                for _ in reached..*order {
                    let smoothed = self.on_lattice.evaluate_tensor(&left, self.dimensions);
                    for (left, smoothed) in left.iter_mut().zip(smoothed) {
                        *left -= smoothed;
                    }
                }
                reached = *order;
                for (row, left) in left.iter().enumerate() {
                    table[row * points + column] = *left;
                }
            }
        }
        tables
    }

    /// One step of residual correction: from `c_j` to `c_{j+1}`.
    fn correct_residual(&self, coefficients: &mut [f64], values: &[f64]) {
        let smoothed = self
            .on_lattice
            .evaluate_tensor(coefficients, self.dimensions);
        for ((c, v), s) in coefficients.iter_mut().zip(values).zip(smoothed) {
            *c += v - s;
        }
    }

    /// The functions `b_nu^(h)(y)`, `nu` in the lattice, by which noise on lattice value `nu` enters the value at `y`:
    /// the adjoint of [`Operator::coefficients`] on the basis at `y`.
    pub(super) fn influence_of_values(&self, bases: &[Vec<f64>], order: u32) -> Vec<f64> {
        let direct = outer_product(bases);
        let transposed = self.on_lattice.transposed();
        let mut influence = direct.clone();
        for _ in 1..order {
            let smoothed = transposed.evaluate_tensor(&influence, self.dimensions);
            for ((i, d), s) in influence.iter_mut().zip(&direct).zip(smoothed) {
                *i += d - s;
            }
        }
        influence
    }

    /// Standard deviation at `y` of the order-`h` value under independent lattice noise of variance 1; one dimension.
    pub(super) fn noise_deviation(&self, y: f64, order: u32) -> f64 {
        let influence = self.influence_of_values(&[bernstein_basis(self.degree(), y)], order);
        sequential_dot(&influence, &influence).sqrt()
    }

    fn degree(&self) -> u32 {
        u32::try_from(self.on_lattice.columns - 1).unwrap_or(u32::MAX)
    }

    /// An upper bound within 4 % an axis of the operator norm `sup_y sum_nu |b_nu^(h)(y)|`: how far an error of 1 on
    /// every lattice value can move the order-`h` polynomial.
    ///
    /// The norm is 1 at order 1, and far below `2^h - 1`. Costs `O(3^l h l N^2 k)`: a planner's figure, for lattices
    /// of up to some thousand points.
    pub fn norm_bound(&self, order: u32) -> f64 {
        let nodes = DenseNodes::new(self.degree(), 6);
        // Both the operator and the nodes are symmetric in every axis and under exchange of axes.
        let half: Vec<Vec<f64>> = nodes
            .points
            .iter()
            .filter(|y| **y <= 0.5)
            .map(|y| bernstein_basis(self.degree(), *y))
            .collect();
        let mut largest = 0.0_f64;
        for indices in ascending_indices(half.len(), self.dimensions) {
            let bases: Vec<Vec<f64>> = indices.iter().map(|index| half[*index].clone()).collect();
            largest = largest.max(
                self.influence_of_values(&bases, order)
                    .iter()
                    .map(|b| b.abs())
                    .sum(),
            );
        }
        largest
            * nodes
                .factor
                .powi(i32::try_from(self.dimensions).unwrap_or(i32::MAX))
    }
}

/// All `i_1 <= ... <= i_l` below `bound`.
fn ascending_indices(bound: usize, length: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![vec![]];
    for _ in 0..length {
        let mut longer = Vec::new();
        for indices in &all {
            let first = indices.last().copied().unwrap_or(0);
            for next in first..bound {
                longer.push([indices.as_slice(), &[next]].concat());
            }
        }
        all = longer;
    }
    all
}

/// Points in `[0, 1]` so dense that no polynomial of a degree can hide between them, and the factor that proves it:
/// `sup |p| <= factor * max over points |p|`.
///
/// The `m = density * degree` Chebyshev nodes and `1 / cos(pi degree / 2m)` (`[EZ64]`). For a polynomial of that degree in each of `l` variables the factor is
/// taken `l` times.
pub(super) struct DenseNodes {
    pub points: Vec<f64>,
    pub factor: f64,
}

impl DenseNodes {
    pub(super) fn new(degree: u32, density: u32) -> Self {
        let count = degree.max(1) * density;
        let mut points = Vec::with_capacity(count as usize);
        for index in 0..count {
            let angle = std::f64::consts::PI * (f64::from(index) + 0.5) / f64::from(count);
            points.push((1.0 - angle.cos()) / 2.0);
        }
        DenseNodes {
            points,
            factor: 1.0 / (std::f64::consts::FRAC_PI_2 / f64::from(density)).cos(),
        }
    }
}

/// The bases at several points of one axis: a matrix with a column a point, stored by rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bases {
    columns: usize,
    entries: Vec<f64>,
}

impl Bases {
    pub(super) fn at(degree: u32, points: &[f64]) -> Self {
        let by_point = Bases {
            columns: degree as usize + 1,
            entries: points
                .iter()
                .flat_map(|&x| bernstein_basis(degree, x))
                .collect(),
        };
        by_point.transposed()
    }

    fn transposed(&self) -> Self {
        let columns = self.entries.len() / self.columns;
        let mut entries = Vec::with_capacity(self.entries.len());
        for column in 0..self.columns {
            entries.extend(self.entries.iter().skip(column).step_by(self.columns));
        }
        Bases { columns, entries }
    }

    /// Number of points.
    pub(super) fn points(&self) -> usize {
        self.columns
    }

    /// Values at every tuple of points, row-major: each of the equal axes of `tensor` goes from coefficients to values.
    pub(super) fn evaluate_tensor(&self, tensor: &[f64], dimensions: usize) -> Vec<f64> {
        let mut values = tensor.to_vec();
        for _ in 0..dimensions {
            values = self.turn_first_axis(&values);
        }
        values
    }

    /// Contracts the first axis and puts the result last, so that one call an axis restores their order.
    pub(super) fn turn_first_axis(&self, tensor: &[f64]) -> Vec<f64> {
        let others = tensor.len() * self.columns / self.entries.len();
        let mut turned = vec![0.0; others * self.columns];
        for (i, row) in turned.chunks_exact_mut(self.columns).enumerate() {
            self.contract(tensor, i, row);
        }
        turned
    }

    /// One row of [`Bases::turn_first_axis`]: the values at every point, at index `i` of the other axes.
    pub(super) fn contract(&self, tensor: &[f64], i: usize, row: &mut [f64]) {
        let others = tensor.len() * self.columns / self.entries.len();
        row.fill(0.0);
        let coefficients = tensor.iter().skip(i).step_by(others);
        for (coefficient, bases) in coefficients.zip(self.entries.chunks_exact(self.columns)) {
            for (value, basis) in row.iter_mut().zip(bases) {
                *value += coefficient * basis;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_lattice(degree: u32, f: impl Fn(f64) -> f64) -> Vec<f64> {
        (0..=degree)
            .map(|i| f(f64::from(i) / f64::from(degree)))
            .collect()
    }

    /// The order-`h` approximation in one dimension.
    fn approximate(values: &[f64], order: u32) -> impl Fn(f64) -> f64 + use<> {
        let degree = values.len() as u32 - 1;
        let coefficients = Operator::new(1, degree).coefficients(values, order);
        move |y| evaluate_polynomial(&coefficients, &[bernstein_basis(degree, y)])
    }

    fn sup_error(degree: u32, order: u32, f: impl Fn(f64) -> f64 + Copy) -> f64 {
        let approximation = approximate(&on_lattice(degree, f), order);
        (0..=1000)
            .map(|i| f64::from(i) / 1000.0)
            .map(|y| (approximation(y) - f(y)).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn the_basis_is_a_partition_of_unity_and_has_the_binomial_mean_and_variance() {
        for degree in [1, 2, 40, 148, 149, 1000, MAX_DEGREE] {
            for y in [0.0, 1e-300, 1e-9, 0.1, 0.5, 0.77, 1.0 - 1e-9, 1.0] {
                let basis = bernstein_basis(degree, y);
                let k = f64::from(degree);
                let moment = |f: &dyn Fn(f64) -> f64| -> f64 {
                    basis.iter().enumerate().map(|(j, b)| b * f(j as f64)).sum()
                };
                assert!(
                    basis.iter().all(|b| (0.0..=1.0 + 1e-15).contains(b)),
                    "{degree} {y}"
                );
                assert!((moment(&|_| 1.0) - 1.0).abs() < 1e-14, "{degree} {y}");
                assert!((moment(&|j| j) - k * y).abs() < 1e-13 * k, "{degree} {y}");
                assert!(
                    (moment(&|j| (j - k * y).powi(2)) - k * y * (1.0 - y)).abs() < 1e-12 * k,
                    "{degree} {y}"
                );
            }
        }
    }

    #[test]
    fn linear_functions_are_fixed_points_at_every_order_and_in_every_dimension() {
        for dimensions in 1..=3_usize {
            let degree = 7;
            let point = [0.13, 0.5, 0.92];
            let f = |x: &[f64]| {
                3.0 + x
                    .iter()
                    .enumerate()
                    .map(|(i, x)| (i as f64 - 4.0) * x)
                    .sum::<f64>()
            };
            let lattice = (0..dimensions).fold(vec![vec![]], |points: Vec<Vec<f64>>, _| {
                let longer = |p: Vec<f64>| {
                    (0..=degree).map(move |i| [p.clone(), vec![f64::from(i) / 7.0]].concat())
                };
                points.into_iter().flat_map(longer).collect()
            });
            let values: Vec<f64> = lattice.iter().map(|x| f(x)).collect();
            let bases: Vec<_> = point
                .iter()
                .take(dimensions)
                .map(|y| bernstein_basis(degree, *y))
                .collect();
            for order in [1, 2, 9, 200] {
                let value = evaluate_polynomial(
                    &Operator::new(dimensions, degree).coefficients(&values, order),
                    &bases,
                );
                assert!(
                    (value - f(&point[..dimensions])).abs() < 1e-12,
                    "{dimensions} {order} {value}"
                );
            }
        }
    }

    /// diffpriv's vignette, section 2.1 (papers' R package): `x sin(10 x)`, `k = 25`.
    #[test]
    fn the_vignette_is_reproduced() {
        let vignette = [
            0.00000000,
            0.01557673,
            0.05738849,
            0.11184469,
            0.15993178,
            0.18185949,
            0.16211116,
            0.09379668,
            -0.01867973,
            -0.15930736,
            -0.30272100,
            -0.41870491,
            -0.47815901,
            -0.45939642,
            -0.35350932,
            -0.16764930,
            0.07459149,
            0.33599708,
            0.57144086,
            0.73561895,
            0.79148660,
            0.71786308,
            0.51472713,
            0.20505872,
            -0.16735371,
            -0.54402111,
        ];
        let values = on_lattice(25, |x| x * (10.0 * x).sin());
        assert_eq!(values.len(), vignette.len());
        assert!(
            values
                .iter()
                .zip(vignette)
                .all(|(a, b)| (a - b).abs() < 6e-9)
        );
        assert!((approximate(&values, 1)(0.2) - 0.1101786).abs() < 5e-8);
    }

    /// `tests/data/bernstein.py` computes the fixture in integers of 400 bits.
    #[test]
    fn order_200_agrees_with_exact_arithmetic_to_5e_14() {
        let mut cases = 0;
        for line in include_str!("../../../tests/data/bernstein.txt").lines() {
            let fields: Vec<f64> = line
                .split(' ')
                .map(|field| field.parse().unwrap())
                .collect();
            let degree = fields[0] as u32;
            let order = fields[1] as u32;
            let y = fields[2];
            let exact = fields[3];
            let values: Vec<f64> = (0..=degree)
                .map(|j| f64::from(7919 * j % 1009) / 512.0 - 1.0)
                .collect();
            let error = (approximate(&values, order)(y) - exact).abs();
            assert!(
                error < 5e-14,
                "degree {degree} order {order} at {y}: {error:e}"
            );
            cases += 1;
        }
        assert_eq!(cases, 64);
    }

    /// `docs/proofs/bernstein.md`: measured by another program.
    #[test]
    fn the_operator_norm_is_what_was_measured() {
        let tolerance = 1.0 / (std::f64::consts::PI / 12.0).cos();
        for (dimensions, degree, order, measured) in [
            (1, 40, 1, 1.0),
            (1, 40, 2, 1.16),
            (1, 40, 8, 1.52),
            (1, 40, 32, 2.7),
            (1, 40, 200, 7.2),
            (2, 8, 2, 1.28),
            (2, 8, 3, 1.43),
        ] {
            let norm = Operator::new(dimensions, degree).norm_bound(order);
            let bound = measured * tolerance.powi(dimensions as i32);
            assert!(
                norm > 0.97 * measured && norm < 1.05 * bound,
                "l {dimensions} h {order}: {norm}, not {measured}"
            );
        }
    }

    #[test]
    fn the_influence_of_a_lattice_value_is_the_polynomial_of_its_indicator() {
        let degree = 6;
        let order = 5;
        let point = [0.3, 0.85];
        let operator = Operator::new(2, degree);
        let bases: Vec<_> = point.iter().map(|y| bernstein_basis(degree, *y)).collect();
        for (nu, influence) in operator
            .influence_of_values(&bases, order)
            .into_iter()
            .enumerate()
        {
            let mut indicator = vec![0.0; 49];
            indicator[nu] = 1.0;
            assert!(
                (evaluate_polynomial(&operator.coefficients(&indicator, order), &bases)
                    - influence)
                    .abs()
                    < 1e-13
            );
        }
    }

    #[test]
    fn the_error_on_a_smooth_function_falls_like_k_to_the_minus_h() {
        for order in 1..=4 {
            let error = |degree| sup_error(degree, order, |x| (3.0 * x).sin());
            let rate = (error(80) / error(160)).log2();
            assert!(
                rate > f64::from(order) - 0.35,
                "order {order}: k^-{rate:.2}"
            );
        }
    }

    /// `|f - B_k f| <= L (4k)^(-gamma/2)`; functions with the steepest kink come close to it.
    #[test]
    fn the_hoelder_bound_holds_and_is_approached() {
        for degree in [4, 25, 100, 400] {
            for gamma in [0.5, 1.0] {
                let error = sup_error(degree, 1, |x| (x - 0.5).abs().powf(gamma));
                let bound = (4.0 * f64::from(degree)).powf(-gamma / 2.0);
                assert!(
                    error <= bound && error > 0.65 * bound,
                    "k {degree} gamma {gamma}: {error} of {bound}"
                );
            }
        }
    }

    #[test]
    fn no_polynomial_hides_between_the_nodes() {
        let DenseNodes { points, factor } = DenseNodes::new(11, 6);
        // A Chebyshev polynomial of the same degree has as many extremes as possible; turned, they miss the nodes.
        let p = |y: f64, turn: f64| (11.0 * (1.0 - 2.0 * y).clamp(-1.0, 1.0).acos() + turn).cos();
        let at_nodes = points.iter().map(|y| p(*y, 0.0).abs()).fold(0.0, f64::max);
        assert!(
            at_nodes <= 1.0 && at_nodes * factor >= 1.0 && at_nodes * factor < 1.04,
            "{at_nodes} {factor}"
        );
    }
}
