//! Public points for a kernel, and the whitening that belongs to them: one after the other where the power function is largest,
//! or evenly spaced. Nothing here sees a record.
//!
//! One after the other is the Cholesky factorisation of the kernel matrix of a public grid, pivoted on the diagonal and stopped
//! early (`[DSW05]`; `[PS11]`). Many points are best placed so. A few hug the border of the domain: where the worst error is
//! a tenth of the peak, evenly spaced points, a quarter of a step from the border, have half of it (measured for Gaussians on one
//! to three axes; whole steps from the border are worse, and so are half steps, none, and Chebyshev's places).

use crate::cholesky::{Pivoted, cholesky_factor, dot_product, lower_inverse};
use crate::machine::kernel::ERROR;
use crate::quadratic::QuadraticForm;
use crate::shape::{KernelBasis, PointKernel};
use crate::shape_error::ShapeError;
use crate::tensor::{even_coordinates, grid_points};

/// Most points of one kernel.
pub const MOST_POINTS: usize = 1024;

/// The last point is the one before the power function's square falls below this part of the largest `K(y, y)`.
///
/// Rounding leaves an error of about `d 2^-53` in that square, a part in 10^4 of it here, and the rows of `L^-1` are
/// as long as its inverse root, 10^5. What is left out is at most 10^-5 of the norm of a function.
const REST: f64 = 1e-10;

/// Nor is a point taken with which the floats could stretch a square by more than this ([`Points::stretch_bound`]).
const MOST_STRETCHED: f64 = 0.01;

/// One unit in the last place, halved.
const ROUNDING: f64 = f64::EPSILON / 2.0;

/// Placement of the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// One after the other, at most so many ([`Points::choose_greedily`]).
    Greedy(usize),
    /// Evenly spaced ([`Points::evenly_spaced`]).
    Tensor(AxisCounts),
}

impl From<usize> for Placement {
    fn from(most: usize) -> Self {
        Placement::Greedy(most)
    }
}

/// Numbers of points of a grid along its axes: 1 to 3 numbers from 1, with a product of at most [`MOST_POINTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisCounts {
    along: [u32; 3],
    axes: usize,
}

impl AxisCounts {
    /// `None` if there are too few or too many.
    pub fn new(along: &[u32]) -> Option<Self> {
        let mut counts = AxisCounts {
            along: [1; 3],
            axes: along.len(),
        };
        counts.along.get_mut(..along.len())?.copy_from_slice(along);
        let mut all: u32 = 1;
        for count in along {
            all = all.checked_mul(*count)?;
        }
        if along.is_empty() || !(1..=MOST_POINTS).contains(&(all as usize)) {
            return None;
        }
        Some(counts)
    }

    /// One number an axis.
    pub fn along(&self) -> &[u32] {
        &self.along[..self.axes]
    }

    pub fn point_count(&self) -> usize {
        self.along().iter().map(|count| *count as usize).product()
    }
}

/// Public points `p_1, ..., p_d` of the unit cube, and `M`, the floats that stand for `L^-1`.
#[derive(Clone, Debug)]
pub struct Points {
    basis: KernelBasis,
    /// Row `i` has `i + 1` numbers.
    rows: Vec<Vec<f64>>,
    /// The largest value of the power function on the public grid.
    power: f64,
}

impl Points {
    /// The first `most` points for a kernel on `axes` axes, `most` from 1 to [`MOST_POINTS`]; fewer where the kernel has no
    /// more that floats can tell apart. The points for a smaller `most` are the first of these.
    ///
    /// # Errors
    ///
    /// If the kernel is invalid on the cube, or `most` is out of range.
    pub fn choose_greedily(
        kernel: PointKernel,
        axes: usize,
        most: usize,
    ) -> Result<Self, ShapeError> {
        let kernel = kernel.check_for_cube(axes)?;
        if !(1..=MOST_POINTS).contains(&most) {
            return Err(ShapeError::KernelPoints {
                points: most,
                most: MOST_POINTS,
            });
        }
        let grid = grid(&kernel, axes);
        let chosen = Pivoted::new(
            grid.len(),
            |x, y| kernel.value(&grid[x], &grid[y]),
            most,
            REST,
        );
        let mut points = Points::from_chosen(&chosen, kernel, &grid);
        points.power = chosen
            .rests
            .get(points.count())
            .map_or(1.0, |rest| rest.sqrt());
        Ok(points)
    }

    /// Points at `(j + 1/4) / (m - 1/2)`, `j = 0 ... m - 1`, on every axis (`1/2` where `m = 1`), `m` its number of points; fewer
    /// of them where floats cannot tell so many apart.
    ///
    /// # Errors
    ///
    /// If the kernel is invalid on a cube of so many axes.
    pub fn evenly_spaced(kernel: PointKernel, counts: AxisCounts) -> Result<Self, ShapeError> {
        let axes = counts.along().len();
        let kernel = kernel.check_for_cube(axes)?;
        let mut coordinates = Vec::with_capacity(axes);
        for count in counts.along() {
            coordinates.push(match count {
                1 => vec![0.5],
                _ => (0..*count)
                    .map(|j| (f64::from(j) + 0.25) / (f64::from(*count) - 0.5))
                    .collect(),
            });
        }
        let places = grid_points(&coordinates);
        let chosen = Pivoted::new(
            places.len(),
            |x, y| kernel.value(&places[x], &places[y]),
            places.len(),
            REST,
        );
        let mut points = Points::from_chosen(&chosen, kernel, &places);
        points.power = points.measured_power();
        Ok(points)
    }

    /// Points placed in either way on `axes` axes.
    ///
    /// # Errors
    ///
    /// As for [`Points::choose_greedily`] and [`Points::evenly_spaced`], or if a grid has another number of axes.
    pub fn from_placement(
        kernel: PointKernel,
        axes: usize,
        placement: Placement,
    ) -> Result<Self, ShapeError> {
        match placement {
            Placement::Greedy(most) => Points::choose_greedily(kernel, axes, most),
            Placement::Tensor(counts) if counts.along().len() == axes => {
                Points::evenly_spaced(kernel, counts)
            }
            Placement::Tensor(counts) => Err(ShapeError::PointAxes {
                counts: counts.along().len(),
                axes,
            }),
        }
    }

    /// The points of a synopsis, in the order of its coefficients.
    pub fn from_basis(basis: &KernelBasis) -> Self {
        let KernelBasis { kernel, points } = basis;
        let mut lower = Vec::with_capacity(points.len());
        for (index, p) in points.iter().enumerate() {
            lower.push(
                points[..=index]
                    .iter()
                    .map(|q| kernel.value(p, q))
                    .collect(),
            );
        }
        let factor = cholesky_factor(lower, REST);
        let rows = lower_inverse(factor.iter().map(Vec::as_slice));
        let mut points = Points {
            basis: basis.clone(),
            rows,
            power: 1.0,
        };
        points.power = points.measured_power();
        points
    }

    fn from_chosen(chosen: &Pivoted, kernel: PointKernel, places: &[Vec<f64>]) -> Self {
        let points = chosen.order.iter().map(|at| places[*at].clone()).collect();
        let mut points = Points {
            basis: KernelBasis { kernel, points },
            rows: lower_inverse(chosen.factor_rows()),
            power: 1.0,
        };
        points.truncate_to_stretch();
        points
    }

    /// The power function's largest value on the public grid.
    fn measured_power(&self) -> f64 {
        let mut largest = 0.0_f64;
        for y in grid(&self.basis.kernel, self.axes()) {
            let coordinates = self.coordinates(&y);
            let square = self.basis.kernel.value(&y, &y) - dot_product(&coordinates, &coordinates);
            largest = largest.max(square);
        }
        largest.sqrt()
    }

    /// Drops the last points where they are too many for [`MOST_STRETCHED`].
    fn truncate_to_stretch(&mut self) {
        let error = self.kernel_error();
        let mut square = 0.0;
        let mut count: usize = 0;
        for sum in self.row_sums() {
            square += sum * sum;
            let fits = (error + roundings(count + 1)) * square <= MOST_STRETCHED;
            if !fits {
                break;
            }
            count += 1;
        }
        let count = count.max(1);
        self.basis.points.truncate(count);
        self.rows.truncate(count);
    }

    /// `d`.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// `l`.
    pub fn axes(&self) -> usize {
        self.basis.points.first().map_or(0, Vec::len)
    }

    pub fn basis(&self) -> &KernelBasis {
        &self.basis
    }

    /// The largest value on the grid of the power function: what the points leave out of a function, in units of its norm.
    pub fn largest_power(&self) -> f64 {
        self.power
    }

    /// `M v`: the whitened coordinates of a function with the values `v` at the points.
    pub fn whiten(&self, values: &[f64]) -> Vec<f64> {
        self.rows
            .iter()
            .map(|row| dot_product(row, values))
            .collect()
    }

    /// `M k_P(y)`: the coordinates of `K(y, .)`, which are also the values at `y` of the functions that they count.
    pub fn coordinates(&self, y: &[f64]) -> Vec<f64> {
        let values: Vec<f64> = self
            .basis
            .points
            .iter()
            .map(|p| self.basis.kernel.value(y, p))
            .collect();
        self.whiten(&values)
    }

    /// `M' c`: the kernel coefficients of the function with the whitened coordinates `c`.
    pub fn coefficients(&self, coordinates: &[f64]) -> Vec<f64> {
        let mut coefficients = vec![0.0; self.rows.len()];
        for (row, c) in self.rows.iter().zip(coordinates) {
            for (coefficient, m) in coefficients.iter_mut().zip(row) {
                *coefficient += m * c;
            }
        }
        coefficients
    }

    /// At least `||M e||_2` for every `e` with no entry above 1.
    pub fn whitening_norm(&self) -> f64 {
        let square: f64 = self.row_sums().map(|sum| sum * sum).sum();
        square.sqrt() * (1.0 + 1e-9)
    }

    /// At least `||M f(P)||_2` for every function `f` of norm 1: the root of the largest eigenvalue of `M K M'`, `K` the exact
    /// kernel matrix.
    ///
    /// That eigenvalue is at most `1 + ||G - I||_F + (e + (2 d + 8) u) sum_i m_i^2`, `G` what floats make of `M K M'`, `e` the
    /// error of a kernel value, `u` that of a rounding, `m_i` the sum of the sizes in row `i` of `M`: an error of at most `t` in
    /// each entry of `K` changes `x' M K M' x` by at most `t (sum_i m_i |x_i|)^2`, and the two products pass each entry
    /// through fewer than `2 d + 8` roundings, relative to sums that `m_i m_j` bounds.
    pub fn stretch_bound(&self) -> f64 {
        let KernelBasis { kernel, points } = &self.basis;
        let d = points.len();
        let mut gram: Vec<Vec<f64>> = Vec::with_capacity(d);
        for p in points {
            gram.push(points.iter().map(|q| kernel.value(p, q)).collect());
        }
        let mut off = 0.0;
        for (i, row) in self.rows.iter().enumerate() {
            // Row `i` of `M K`, and its products with the rows of `M` up to its own: `M K M'` is symmetric.
            let mut product = vec![0.0; i + 1];
            for (m, of_gram) in row.iter().zip(&gram) {
                for (sum, k) in product.iter_mut().zip(of_gram) {
                    *sum += m * k;
                }
            }
            let others = self.rows[..i]
                .iter()
                .map(|other| dot_product(other, &product).powi(2));
            off += 2.0 * others.sum::<f64>();
            off += (dot_product(row, &product) - 1.0).powi(2);
        }
        let each = self.kernel_error() + roundings(d);
        (1.0 + off.sqrt() + each * self.whitening_norm().powi(2)).sqrt() * (1.0 + 1e-9)
    }

    /// Largest error of a computed kernel value.
    pub fn kernel_error(&self) -> f64 {
        self.basis.kernel.value_error()
    }

    /// Loss of the floats of [`Points::whiten`] for values of at most 1, in the 2-norm.
    pub fn rounding_loss(&self) -> f64 {
        (self.count() + 2) as f64 * ROUNDING * self.whitening_norm()
    }

    /// Sums of the sizes in the rows of `M`.
    fn row_sums(&self) -> impl Iterator<Item = f64> {
        self.rows
            .iter()
            .map(|row| row.iter().map(|m| m.abs()).sum())
    }
}

impl PointKernel {
    /// Largest error of a computed kernel value.
    ///
    /// The quadratic form of a Gaussian adds up `l^2` products, `q` in size together. With `z` half the form,
    /// `q <= |P| |x - y|^2 <= |P| trace(P^-1) 2 z`, `|P|` the largest row sum; and `z exp(-z) < 0.37`.
    pub fn value_error(&self) -> f64 {
        match self {
            PointKernel::Machine(_) => ERROR,
            PointKernel::Gaussian { precision } => {
                let largest = precision
                    .iter()
                    .map(|row| row.iter().map(|p| p.abs()).sum::<f64>())
                    .fold(0.0, f64::max);
                let mut trace = 0.0;
                if let Some(form) = QuadraticForm::new(precision) {
                    for (axis, row) in form.inverse().iter().enumerate() {
                        trace += row[axis];
                    }
                }
                ((precision.len().pow(2) + 8) as f64 * largest * trace * (1.0 + 1e-3) + 4.0)
                    * ROUNDING
            }
        }
    }

    /// The kernel itself, where it is one on the unit cube of `axes` axes.
    ///
    /// # Errors
    ///
    /// If there are not 1 to 3 axes, its matrix does not fit them, or its parameters are impossible.
    pub fn check_for_cube(self, axes: usize) -> Result<Self, ShapeError> {
        if !(1..=3).contains(&axes) {
            return Err(ShapeError::Axes(axes));
        }
        match self {
            PointKernel::Machine(kernel) => kernel.check_parameters().map(PointKernel::Machine),
            PointKernel::Gaussian { precision } => {
                let square =
                    precision.len() == axes && precision.iter().all(|row| row.len() == axes);
                if !square || QuadraticForm::new(&precision).is_none() {
                    return Err(ShapeError::NotPositiveDefinite);
                }
                Ok(PointKernel::Gaussian { precision })
            }
        }
    }
}

/// The public grid: eight steps a width of the kernel on one axis, four on two, and 32 for a kernel with a corner; at
/// most 4,096 points.
fn grid(kernel: &PointKernel, axes: usize) -> Vec<Vec<f64>> {
    let a_width = if axes == 1 { 8.0 } else { 4.0 };
    let [least, most] = [[64, 4095], [24, 63], [9, 15]][axes - 1];
    let mut coordinates = Vec::with_capacity(axes);
    for axis in 0..axes {
        // A cast from a float saturates.
        let steps = (a_width / kernel.width_along(axis)).ceil() as u32;
        coordinates.push(even_coordinates(steps.clamp(least, most)));
    }
    grid_points(&coordinates)
}

/// Rounding of an entry of `M K M'` relative to the sums of two rows of `M`, for `d` points.
fn roundings(d: usize) -> f64 {
    (2 * d + 8) as f64 * ROUNDING
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::CubeKernel;

    fn gaussian(bandwidths: &[f64]) -> PointKernel {
        let row = |i: usize| {
            (0..bandwidths.len())
                .map(|j| if i == j { bandwidths[i].powi(-2) } else { 0.0 })
                .collect()
        };
        PointKernel::Gaussian {
            precision: (0..bandwidths.len()).map(row).collect(),
        }
    }

    fn kernels() -> Vec<(PointKernel, usize, usize)> {
        let machine = PointKernel::Machine;
        vec![
            (gaussian(&[0.1]), 1, 12),
            (gaussian(&[1.0]), 1, 7),
            (gaussian(&[0.3, 0.2]), 2, 30),
            (
                PointKernel::Gaussian {
                    precision: vec![vec![30.0, -27.0], vec![-27.0, 30.0]],
                },
                2,
                12,
            ),
            (machine(CubeKernel::Gaussian { bandwidth: 0.4 }), 3, 40),
            (machine(CubeKernel::Laplacian { bandwidth: 0.2 }), 1, 50),
            (machine(CubeKernel::Polynomial { power: 4 }), 2, 15),
            (machine(CubeKernel::Linear), 3, 4),
        ]
    }

    #[test]
    fn a_point_more_leaves_less_and_the_first_points_stay() {
        for (kernel, axes, most) in kernels() {
            let points = Points::choose_greedily(kernel.clone(), axes, most).unwrap();
            assert_eq!((points.count(), points.axes()), (most, axes), "{kernel:?}");
            let fewer = Points::choose_greedily(kernel.clone(), axes, most / 2).unwrap();
            assert!(
                points.power <= fewer.power + 1e-9 && fewer.power <= 1.0,
                "{} {}",
                points.power,
                fewer.power
            );
            assert!(
                (points.measured_power() - points.power).abs() < 1e-4,
                "{kernel:?}"
            );
            let again = Points::from_basis(&points.basis);
            let off = again
                .rows
                .iter()
                .flatten()
                .zip(points.rows.iter().flatten())
                .map(|(a, b)| (a - b).abs());
            assert!(
                off.fold(0.0, f64::max) <= 1e-6 * points.whitening_norm(),
                "{kernel:?}"
            );
            assert_eq!(fewer.basis.points, points.basis.points[..most / 2]);
            assert_eq!(fewer.rows, points.rows[..most / 2]);
        }
        // The first of equals: a corner, then the one opposite.
        let points = Points::choose_greedily(gaussian(&[0.3]), 1, 2).unwrap();
        assert_eq!(points.basis.points, [[0.0], [1.0]]);
    }

    /// Few of them leave half of what as many chosen ones leave.
    #[test]
    fn evenly_spaced_points_are_a_quarter_of_a_step_from_the_border() {
        let counts = |along: &[u32]| AxisCounts::new(along).unwrap();
        let points = Points::evenly_spaced(gaussian(&[0.2]), counts(&[3])).unwrap();
        let mut along: Vec<f64> = points.basis.points.iter().map(|p| p[0]).collect();
        along.sort_by(f64::total_cmp);
        assert_eq!(along, [0.1, 0.5, 0.9]);
        for (bandwidths, m) in [
            (&[0.1][..], &[8][..]),
            (&[0.15, 0.15], &[6, 6]),
            (&[0.3, 0.15, 0.3], &[3, 5, 3]),
        ] {
            let even = Points::evenly_spaced(gaussian(bandwidths), counts(m)).unwrap();
            let chosen =
                Points::choose_greedily(gaussian(bandwidths), m.len(), even.count()).unwrap();
            assert_eq!(even.count(), counts(m).point_count());
            assert!(
                even.stretch_bound() < 1.001
                    && even.largest_power() < 0.75 * chosen.largest_power(),
                "{} {}",
                even.power,
                chosen.power
            );
        }
        // More than floats can tell apart.
        assert!(
            Points::evenly_spaced(gaussian(&[1.0]), counts(&[64]))
                .unwrap()
                .count()
                < 20
        );
        assert!(
            AxisCounts::new(&[]).is_none()
                && AxisCounts::new(&[4, 0]).is_none()
                && AxisCounts::new(&[64, 64]).is_none()
        );
        assert!(AxisCounts::new(&[1; 4]).is_none());
        let other = Placement::Tensor(counts(&[4]));
        let placed = Points::from_placement(gaussian(&[0.2, 0.2]), 2, other);
        assert!(matches!(
            placed,
            Err(ShapeError::PointAxes { counts: 1, axes: 2 })
        ));
    }

    #[test]
    fn a_kernel_of_finite_rank_has_no_more_points() {
        for (kernel, axes, rank) in [
            (CubeKernel::Linear, 2, 3),
            (CubeKernel::Polynomial { power: 3 }, 1, 4),
            (CubeKernel::Polynomial { power: 3 }, 2, 10),
        ] {
            let points = Points::choose_greedily(PointKernel::Machine(kernel), axes, 100).unwrap();
            assert_eq!(points.count(), rank, "{kernel:?}");
            assert!(points.largest_power() < 1e-5);
        }
        // A wide Gaussian is nearly so.
        let points = Points::choose_greedily(gaussian(&[1.0]), 1, 100).unwrap();
        assert!(
            (6..10).contains(&points.count()) && points.largest_power() <= 1e-5,
            "{}",
            points.count()
        );
    }

    /// Functions are sums of kernels, so both norms are known.
    #[test]
    fn coordinates_are_no_longer_than_the_function_and_those_at_a_point_are_its_kernel() {
        for (kernel, axes, most) in kernels() {
            let points = Points::choose_greedily(kernel.clone(), axes, most).unwrap();
            let stretch = points.stretch_bound();
            assert!((1.0..1.001).contains(&stretch), "{kernel:?}: {stretch}");
            let at = |i: usize| -> Vec<f64> {
                (0..axes)
                    .map(|a| ((i * 37 + a * 61 + 11) % 97) as f64 / 97.0)
                    .collect()
            };
            for i in 0..20 {
                let terms = [(1.0, at(i)), (-0.7, at(i + 1)), (0.4, at(i + 2))];
                let f =
                    |y: &[f64]| -> f64 { terms.iter().map(|(b, x)| b * kernel.value(x, y)).sum() };
                let norm = terms.iter().map(|(b, x)| b * f(x)).sum::<f64>().sqrt();
                let values: Vec<f64> = points.basis.points.iter().map(|p| f(p)).collect();
                let c = points.whiten(&values);
                let length = c.iter().map(|c| c * c).sum::<f64>().sqrt();
                assert!(
                    length <= norm * stretch + 1e-6,
                    "{kernel:?}: {length} {norm}"
                );
                // The kernel's coefficients are the same function as the coordinates, and are off by the power function.
                let y = at(i + 3);
                let a = points.coefficients(&c);
                let by_kernel: f64 = points
                    .basis
                    .points
                    .iter()
                    .zip(&a)
                    .map(|(p, a)| a * kernel.value(&y, p))
                    .sum();
                let by_newton: f64 = points
                    .coordinates(&y)
                    .iter()
                    .zip(&c)
                    .map(|(n, c)| n * c)
                    .sum();
                assert!(
                    (by_kernel - by_newton).abs() < 1e-4,
                    "{kernel:?}: {by_kernel} {by_newton}"
                );
                let off = (by_newton - f(&y)).abs();
                assert!(
                    off <= norm * points.largest_power() * 1.05 + 1e-4,
                    "{kernel:?}: {off} {}",
                    points.largest_power()
                );
            }
        }
    }

    /// Why sensitivities are read off the numbers in use: rounded at 2^-16, a record's kernel is far longer than 1.
    #[test]
    fn a_kernel_that_is_rounded_leaves_the_ball() {
        let points = Points::choose_greedily(gaussian(&[0.3]), 1, 16).unwrap();
        let longest = |unit: f64| {
            let length = |y: f64| {
                let value =
                    |p: &Vec<f64>| (points.basis.kernel.value(p, &[y]) / unit).round() * unit;
                let values: Vec<f64> = points.basis.points.iter().map(value).collect();
                points
                    .whiten(&values)
                    .iter()
                    .map(|c| c * c)
                    .sum::<f64>()
                    .sqrt()
            };
            (0..=100)
                .map(|i| length(f64::from(i) / 100.0))
                .fold(0.0, f64::max)
        };
        let [coarse, fine] = [16, 50].map(|bits| longest(2.0_f64.powi(-bits)));
        assert!(coarse > 1.2 && (fine - 1.0).abs() < 1e-4, "{coarse} {fine}");
    }

    #[test]
    fn errors_at_the_points_are_bounded() {
        let points = Points::choose_greedily(gaussian(&[0.3]), 1, 12).unwrap();
        let largest = (0..64_u32)
            .map(|signs| {
                let e: Vec<f64> = (0..12)
                    .map(|i| if signs >> (i % 6) & 1 == 1 { 1.0 } else { -1.0 })
                    .collect();
                points.whiten(&e).iter().map(|c| c * c).sum::<f64>().sqrt()
            })
            .fold(0.0, f64::max);
        assert!(
            largest <= points.whitening_norm() && points.whitening_norm() > 1000.0,
            "{largest} {}",
            points.whitening_norm()
        );
    }
}
