//! The error of a released function without any noise: bounded where somebody vouches for the smoothness of the function.

use super::bernstein::Operator;
use super::description::{AxisDescription, Basis, Smoothness};
use super::domain::unit_point;
use super::error::SynopsisError;
use super::newton::Newton;
use super::released::Synopsis;
use crate::Shape;
use crate::cholesky::dot_product;

/// Most lattice points for which the norm of the operator is measured.
const MOST_MEASURED: usize = 2_000;

/// Bound on how far the exact values' function at the recommended order is from the function itself, everywhere and with certainty, if
/// it is as smooth as declared. It says nothing of the noise: add it to a [`crate::band::Band`].
///
/// With `w` the width of an axis and `y` the point in the unit cube, at order 1 it is `sum_i L_i w_i sqrt(y_i (1 - y_i) / k)`
/// or `sum_i H_i w_i^2 y_i (1 - y_i) / 2k`: a Bernstein polynomial is the mean of the function over binomial lattice points.
/// At order `h` the error is that of order 1 with `I - B^(h-1)` applied: at most `1 + |B^(h-1)|` times its largest value. Of
/// kernel functions it is the declared norm times the power function.
#[derive(Clone, Debug, PartialEq)]
pub struct ApproximationBand {
    axes: Vec<AxisDescription>,
    bound: ApproximationBound,
}

#[derive(Clone, Debug, PartialEq)]
enum ApproximationBound {
    /// Share of each axis at the middle, by the power of `4 y (1 - y)` that it follows.
    Order1 {
        shares: Vec<f64>,
        power: f64,
    },
    Everywhere(f64),
    Power {
        norm: f64,
        newton: Newton,
    },
}

impl Synopsis {
    /// Band of the approximation; `None` where no smoothness was declared.
    pub fn approximation_band(&self) -> Option<ApproximationBand> {
        let description = &self.description;
        let shape = description.shape();
        let k = f64::from(description.degree);
        let bound = match description.smoothness.as_ref()? {
            Smoothness::Norm(norm) => {
                let Basis::Kernel(basis) = &description.basis else {
                    return None;
                };
                ApproximationBound::Power {
                    norm: *norm,
                    newton: Newton::on_points(basis),
                }
            }
            Smoothness::Lipschitz(slopes) => {
                let mut shares = slopes.clone();
                for (share, axis) in shares.iter_mut().zip(&description.domain) {
                    *share = *share * (axis.max - axis.min) / (2.0 * k.sqrt());
                }
                ApproximationBound::of_order(&shape, description.order, shares, 0.5)
            }
            Smoothness::Curvature(curvatures) => {
                let mut shares = curvatures.clone();
                for (share, axis) in shares.iter_mut().zip(&description.domain) {
                    *share = *share * (axis.max - axis.min).powi(2) / (8.0 * k);
                }
                ApproximationBound::of_order(&shape, description.order, shares, 1.0)
            }
        };
        Some(ApproximationBand {
            axes: description.domain.clone(),
            bound,
        })
    }
}

impl ApproximationBound {
    fn of_order(shape: &Shape, order: u32, shares: Vec<f64>, power: f64) -> Self {
        if order == 1 {
            return ApproximationBound::Order1 { shares, power };
        }
        let norm = if shape.value_count() <= MOST_MEASURED {
            Operator::new(shape.dimensions, shape.degree).norm_bound(order - 1)
        } else {
            f64::from(order - 1).exp2() - 1.0
        };
        ApproximationBound::Everywhere((1.0 + norm) * shares.iter().sum::<f64>())
    }
}

impl ApproximationBand {
    /// Half the width at a point of the domain, in the units of the values.
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    pub fn half_width(&self, point: &[f64]) -> Result<f64, SynopsisError> {
        let point = unit_point(&self.axes, point)?;
        Ok(match &self.bound {
            ApproximationBound::Order1 { shares, power } => shares
                .iter()
                .zip(&point)
                .map(|(share, y)| share * (4.0 * y * (1.0 - y)).powf(*power))
                .sum(),
            ApproximationBound::Everywhere(bound) => *bound,
            ApproximationBound::Power { norm, newton } => {
                let n = newton.basis_values(&point);
                norm * (newton.basis.kernel.value(&point, &point) - dot_product(&n, &n))
                    .max(0.0)
                    .sqrt()
            }
        })
    }
}
