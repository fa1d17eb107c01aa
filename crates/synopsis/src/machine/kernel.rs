//! Kernels on the unit cube, all with `K(x, x) <= 1`, and what a lattice adds up to under them.

use serde::{Deserialize, Serialize};

use crate::shape_error::ShapeError;
use crate::tensor::outer_product;

/// A computed kernel value is off by at most this: `exp` by 2 units in the last place, its argument by 8 (each costs
/// `z exp(-z) <= 0.37` of a unit), three factors, or a power of at most [`HIGHEST_POWER`].
pub const ERROR: f64 = 1.5e-14;

const HIGHEST_POWER: u32 = 20;

/// The steps in which the largest column sum of a Gaussian is looked for, over half an axis.
const STEPS: u32 = 2048;

/// A kernel on the unit cube, `K(x, x) <= 1`. `t = 2 x - 1` lies in `[-1, 1]` on each axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CubeKernel {
    /// `exp(-|x - y|_2^2 / (2 bandwidth^2))`; the bandwidth in units of the cube's width, the same on all axes.
    Gaussian { bandwidth: f64 },
    /// `exp(-|x - y|_1 / bandwidth)`.
    Laplacian { bandwidth: f64 },
    /// `((1 + <t, u>) / (1 + l))^power`, `power` 1 to 20.
    Polynomial { power: u32 },
    /// `(1 + <t, u>) / (1 + l)`: affine functions whose constant is regularised like their slopes. An intercept that
    /// is not regularised has no sensitivity bound.
    Linear,
}

impl CubeKernel {
    /// The kernel itself, where its parameters are possible.
    ///
    /// # Errors
    ///
    /// If a bandwidth is not in `[0.001, 10]`, or a power not 1 to 20.
    pub fn check_parameters(self) -> Result<Self, ShapeError> {
        match self {
            CubeKernel::Gaussian { bandwidth } | CubeKernel::Laplacian { bandwidth } => {
                let possible = (0.001..=10.0).contains(&bandwidth);
                if possible {
                    Ok(self)
                } else {
                    Err(ShapeError::KernelBandwidth { bandwidth })
                }
            }
            CubeKernel::Polynomial { power } => {
                let possible = (1..=HIGHEST_POWER).contains(&power);
                if possible {
                    Ok(self)
                } else {
                    Err(ShapeError::Power {
                        power,
                        most: HIGHEST_POWER,
                    })
                }
            }
            CubeKernel::Linear => Ok(self),
        }
    }

    /// `K(x, y)`, to within [`ERROR`]; `x` and `y` have the same number of axes.
    pub fn value(self, x: &[f64], y: &[f64]) -> f64 {
        match self {
            CubeKernel::Gaussian { bandwidth } => {
                let mut square = 0.0;
                for (x, y) in x.iter().zip(y) {
                    square += (x - y) * (x - y);
                }
                (-square / (2.0 * bandwidth * bandwidth)).exp()
            }
            CubeKernel::Laplacian { bandwidth } => {
                let mut distance = 0.0;
                for (x, y) in x.iter().zip(y) {
                    distance += f64::abs(x - y);
                }
                (-distance / bandwidth).exp()
            }
            CubeKernel::Polynomial { power } => affine(x, y).powi(power as i32),
            CubeKernel::Linear => affine(x, y),
        }
    }

    /// `K(x, y)` of several `y`, each as [`CubeKernel::value`] computes it to the last bit. Axes that are not there are 0.
    pub fn write_values(self, axes: usize, x: &[f64; 3], y: &[[f64; 3]], values: &mut [f64]) {
        let CubeKernel::Gaussian { bandwidth } = self else {
            for (value, y) in values.iter_mut().zip(y) {
                *value = self.value(&x[..axes], &y[..axes]);
            }
            return;
        };
        // In two loops, of which the compiler makes vector instructions of the first one; an axis that is not there adds 0.
        for (value, y) in values.iter_mut().zip(y) {
            let [a, b, c] = [x[0] - y[0], x[1] - y[1], x[2] - y[2]];
            *value = -(a * a + b * b + c * c) / (2.0 * bandwidth * bandwidth);
        }
        values.iter_mut().for_each(|value| *value = value.exp());
    }

    /// Tests that `K` is the product of its values on the single axes.
    pub fn is_product(self) -> bool {
        matches!(
            self,
            CubeKernel::Gaussian { .. } | CubeKernel::Laplacian { .. }
        )
    }

    /// `K(x, p)` for all points of a lattice, row-major, into `row`.
    pub fn write_lattice_row(self, x: &[f64], lattice: &CubeLattice, row: &mut Vec<f64>) {
        row.clear();
        if !self.is_product() {
            row.extend(lattice.points().map(|p| self.value(x, &p[..x.len()])));
            return;
        }
        let mut factors = Vec::with_capacity(x.len());
        for x in x {
            factors.push(lattice.axis().map(|p| self.value(&[*x], &[p])).collect());
        }
        *row = outer_product(&factors);
    }

    /// At least `sum_{p, q} |K(p, q)|` over the lattice.
    pub fn pair_sum(self, lattice: &CubeLattice) -> f64 {
        let sum = if self.is_product() {
            let axis: Vec<f64> = lattice.axis().collect();
            let sum: f64 = axis
                .iter()
                .flat_map(|p| axis.iter().map(|q| self.value(&[*p], &[*q])))
                .sum();
            sum.powi(lattice.axes as i32)
        } else {
            let axes = lattice.axes;
            let points: Vec<[f64; 3]> = lattice.points().collect();
            let mut sum = 0.0;
            for p in &points {
                let row = points
                    .iter()
                    .map(|q| self.value(&p[..axes], &q[..axes]).abs());
                sum += row.sum::<f64>();
            }
            sum
        };
        round_up_sum(sum)
    }

    /// At least `sum_p |K(x, p)|` over the lattice, for every `x` in the cube.
    ///
    /// Gaussian: the product of an axis's largest sums. Such a sum is looked for in steps of `h`; it is largest at an end
    /// of the axis, which is a step, or where its derivative is 0, at most `h/2` from a step, so that no step is below it
    /// by more than `(h/2)^2 / 2` times the largest second derivative, which is at most
    /// `sum_j |z_j^2 - 1| exp(-z_j^2 / 2) / b^2`, `z_j` spaced by `1 / (k b)`: at most the integral `4 exp(-1/2) k b` plus
    /// the total variation, which is below 3.8.
    ///
    /// Laplacian: between lattice points the sum is convex, so it is largest on one. Polynomial: convex in `x`, so it is
    /// largest in a corner, and all corners are alike.
    pub fn column_sum(self, lattice: &CubeLattice) -> f64 {
        let sum = match self {
            CubeKernel::Gaussian { bandwidth } => {
                let step = 0.5 / f64::from(STEPS);
                let found = (0..=STEPS)
                    .map(|i| self.axis_sum(lattice, f64::from(i) * step))
                    .fold(0.0, f64::max);
                let curve =
                    (2.43 * f64::from(lattice.degree) * bandwidth + 3.8) / (bandwidth * bandwidth);
                (found + curve * step * step / 8.0)
                    .min(f64::from(lattice.degree) + 1.0)
                    .powi(lattice.axes as i32)
            }
            CubeKernel::Laplacian { .. } => lattice
                .axis()
                .map(|x| self.axis_sum(lattice, x))
                .fold(0.0, f64::max)
                .powi(lattice.axes as i32),
            CubeKernel::Polynomial { .. } | CubeKernel::Linear => lattice
                .points()
                .map(|p| {
                    self.value(&[1.0; 3][..lattice.axes], &p[..lattice.axes])
                        .abs()
                })
                .sum(),
        };
        round_up_sum(sum)
    }

    /// `sum_p K(x, p)` along one axis.
    fn axis_sum(self, lattice: &CubeLattice, x: f64) -> f64 {
        lattice.axis().map(|p| self.value(&[x], &[p])).sum()
    }

    /// At least `sum_p K(x, p)^2` over the lattice, for every `x` in the cube: a square is a kernel of its kind.
    pub fn square_sum(self, lattice: &CubeLattice) -> f64 {
        let squared = match self {
            CubeKernel::Gaussian { bandwidth } => CubeKernel::Gaussian {
                bandwidth: bandwidth * std::f64::consts::FRAC_1_SQRT_2,
            },
            CubeKernel::Laplacian { bandwidth } => CubeKernel::Laplacian {
                bandwidth: bandwidth / 2.0,
            },
            CubeKernel::Polynomial { power } => CubeKernel::Polynomial { power: 2 * power },
            CubeKernel::Linear => CubeKernel::Polynomial { power: 2 },
        };
        squared.column_sum(lattice)
    }
}

/// `(1 + <t, u>) / (1 + l)`.
fn affine(x: &[f64], y: &[f64]) -> f64 {
    let product: f64 = x
        .iter()
        .zip(y)
        .map(|(x, y)| (2.0 * x - 1.0) * (2.0 * y - 1.0))
        .sum();
    (1.0 + product) / (1.0 + x.len() as f64)
}

/// More than all rounding in a sum of up to 10^8 terms of one sign could have lost.
pub fn round_up_sum(sum: f64) -> f64 {
    sum * (1.0 + 1e-7)
}

/// The lattice `{0, 1/k, ..., 1}^l`.
#[derive(Clone, Copy, Debug)]
pub struct CubeLattice {
    pub axes: usize,
    pub degree: u32,
}

impl CubeLattice {
    /// `(k + 1)^l`.
    pub fn count(self) -> usize {
        (self.degree as usize + 1).saturating_pow(self.axes as u32)
    }

    pub fn axis(self) -> impl Iterator<Item = f64> {
        (0..=self.degree).map(move |j| f64::from(j) / f64::from(self.degree))
    }

    /// Row-major, the last axis fastest; axes that are not there are 0.
    pub fn points(self) -> impl Iterator<Item = [f64; 3]> {
        let side = self.degree as usize + 1;
        (0..self.count()).map(move |index| {
            let mut point = [0.0; 3];
            let mut rest = index;
            for coordinate in point[..self.axes].iter_mut().rev() {
                *coordinate = (rest % side) as f64 / f64::from(self.degree);
                rest /= side;
            }
            point
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: [CubeKernel; 6] = [
        CubeKernel::Gaussian { bandwidth: 0.03 },
        CubeKernel::Gaussian { bandwidth: 0.7 },
        CubeKernel::Laplacian { bandwidth: 0.2 },
        CubeKernel::Polynomial { power: 3 },
        CubeKernel::Polynomial { power: 4 },
        CubeKernel::Linear,
    ];

    #[test]
    fn sums_over_the_lattice_are_bounds_and_tight() {
        for kernel in KERNELS {
            for lattice in [
                CubeLattice { axes: 1, degree: 9 },
                CubeLattice { axes: 2, degree: 4 },
            ] {
                let points: Vec<[f64; 3]> = lattice.points().collect();
                let column = |x: &[f64]| -> f64 {
                    points
                        .iter()
                        .map(|p| kernel.value(x, &p[..lattice.axes]).abs())
                        .sum()
                };
                let pairs: f64 = points.iter().map(|p| column(&p[..lattice.axes])).sum();
                let ratio = kernel.pair_sum(&lattice) / pairs;
                assert!((1.0..1.000_001).contains(&ratio), "{kernel:?} {ratio}");
                let fine = CubeLattice {
                    axes: lattice.axes,
                    degree: 180,
                };
                let largest = fine
                    .points()
                    .map(|x| column(&x[..lattice.axes]))
                    .fold(0.0, f64::max);
                let ratio = kernel.column_sum(&lattice) / largest;
                assert!(
                    (1.0..1.001).contains(&ratio),
                    "{kernel:?} {lattice:?} {ratio}"
                );
                let square = |x: &[f64]| -> f64 {
                    points
                        .iter()
                        .map(|p| kernel.value(x, &p[..lattice.axes]).powi(2))
                        .sum()
                };
                let largest = fine
                    .points()
                    .map(|x| square(&x[..lattice.axes]))
                    .fold(0.0, f64::max);
                let ratio = kernel.square_sum(&lattice) / largest;
                assert!(
                    (1.0..1.002).contains(&ratio),
                    "{kernel:?} {lattice:?} squared: {ratio}"
                );
            }
        }
    }

    #[test]
    fn many_values_are_those_of_each_place_to_the_last_bit() {
        for axes in 1..=3 {
            let there = |x: [f64; 3]| {
                [
                    x[0],
                    if axes > 1 { x[1] } else { 0.0 },
                    if axes > 2 { x[2] } else { 0.0 },
                ]
            };
            let places: Vec<[f64; 3]> = CubeLattice { axes: 3, degree: 7 }
                .points()
                .map(there)
                .collect();
            let x = there([0.123, 0.987, 0.351]);
            for kernel in KERNELS {
                let mut values = vec![0.0; places.len()];
                kernel.write_values(axes, &x, &places, &mut values);
                for (value, y) in values.iter().zip(&places) {
                    assert_eq!(
                        value.to_bits(),
                        kernel.value(&x[..axes], &y[..axes]).to_bits(),
                        "{kernel:?} {axes}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_row_holds_the_values_and_none_is_above_one() {
        let lattice = CubeLattice { axes: 3, degree: 3 };
        let mut row = Vec::new();
        for kernel in KERNELS {
            let x = [0.1, 0.9, 0.35];
            kernel.write_lattice_row(&x, &lattice, &mut row);
            assert_eq!(row.len(), lattice.count());
            for (value, p) in row.iter().zip(lattice.points()) {
                assert!(
                    (value - kernel.value(&x, &p)).abs() < ERROR && value.abs() <= 1.0,
                    "{kernel:?}"
                );
            }
            assert!(
                lattice
                    .points()
                    .all(|p| kernel.value(&p, &p) <= 1.0 + ERROR)
            );
        }
    }
}
