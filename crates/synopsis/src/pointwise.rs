//! The pointwise band: how far the noise can move a released function at one point.

use crate::CellBasis;
use crate::bernstein::{MAX_ORDER, Operator, bernstein_basis};
use crate::cholesky::dot_product;
use crate::description::{AxisDescription, Basis, NoiseDescription};
use crate::domain::unit_point;
use crate::error::SynopsisError;
use crate::evaluator::affine_terms;
use crate::newton::Newton;
use crate::noise::pointwise_factor;
use crate::released::Synopsis;
use crate::tables::TableFunction;

/// The pointwise band of a synopsis, ready for many points.
///
/// At any one point, not at all of them at once, the noise is within the half-width with 95 % probability. Like the simultaneous
/// band it covers the noise and not the approximation.
#[derive(Clone, Debug, PartialEq)]
pub struct PointwiseBand {
    axes: Vec<AxisDescription>,
    /// The band is so many times the length of the influences.
    factor: f64,
    /// Standard deviation of the noise on one value.
    deviation: f64,
    influences: Influences,
}

#[derive(Clone, Debug, PartialEq)]
enum Influences {
    Lattice {
        operator: Operator,
        degree: u32,
        order: u32,
    },
    Affine,
    Kernel(Newton),
    Cells(CellBasis),
    Tables(Box<TableFunction>),
}

impl Synopsis {
    /// Half the width of the band at one point alone, at the recommended order. For many points use [`Synopsis::pointwise_band`].
    ///
    /// # Errors
    ///
    /// As [`Synopsis::pointwise_band`] and [`PointwiseBand::half_width`].
    pub fn pointwise_half_width(&self, point: &[f64]) -> Result<f64, SynopsisError> {
        self.pointwise_band(self.description.order)?
            .half_width(point)
    }

    /// The pointwise band of an order.
    ///
    /// # Errors
    ///
    /// If the order is out of range, or the synopsis holds cosine moments.
    pub fn pointwise_band(&self, order: u32) -> Result<PointwiseBand, SynopsisError> {
        if !(1..=MAX_ORDER).contains(&order) {
            return Err(SynopsisError::Order { order });
        }
        let description = &self.description;
        let shape = self.description.shape();
        let influences = match &shape.basis {
            Basis::Bernstein => {
                let operator = Operator::new(shape.dimensions, shape.degree);
                Influences::Lattice {
                    operator,
                    degree: shape.degree,
                    order,
                }
            }
            Basis::Affine => Influences::Affine,
            Basis::Kernel(basis) => Influences::Kernel(Newton::on_points(basis)),
            Basis::Cells(basis) => Influences::Cells(basis.clone()),
            Basis::Tables(_) => Influences::Tables(Box::new(self.tables()?.function())),
            Basis::Cosine { .. } => return Err(SynopsisError::NoFunction),
            Basis::Keys(_) => return Err(SynopsisError::AskKeys),
        };
        let factor = match description.band.pointwise {
            Some(factor) => factor,
            None => pointwise_value(&description.noise, shape.value_count()),
        };
        let deviation =
            description.noise.scale * description.noise.law.variance(shape.value_count()).sqrt();
        Ok(PointwiseBand {
            axes: description.domain.clone(),
            factor,
            deviation,
            influences,
        })
    }
}

impl PointwiseBand {
    /// Half the width of the band at a point.
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    pub fn half_width(&self, point: &[f64]) -> Result<f64, SynopsisError> {
        if let Influences::Tables(function) = &self.influences {
            return Ok(function.pointwise_half_width(&unit_point(&self.axes, point)?));
        }
        Ok(self.factor * self.length(point)?)
    }

    /// The standard deviation of the noise at a point: of kernel functions the standard error of the interpolation, noise times
    /// `sqrt(k' K^-1 k)`, `k` the kernel between the point and those of the basis; of a ratio of counts to first order, and infinite where it is unknown.
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    pub fn deviation(&self, point: &[f64]) -> Result<f64, SynopsisError> {
        Ok(self.deviation * self.length(point)?)
    }

    /// Length of the influences of the values on the function.
    fn length(&self, point: &[f64]) -> Result<f64, SynopsisError> {
        let point = unit_point(&self.axes, point)?;
        let influences = match &self.influences {
            Influences::Lattice {
                operator,
                degree,
                order,
            } => {
                let bases: Vec<Vec<f64>> =
                    point.iter().map(|x| bernstein_basis(*degree, *x)).collect();
                operator.influence_of_values(&bases, *order)
            }
            Influences::Affine => affine_terms(&point),
            Influences::Kernel(newton) => newton.basis_values(&point),
            Influences::Cells(basis) => basis.kernel_values(&point),
            Influences::Tables(function) => return Ok(function.noise_length(&point)),
        };
        Ok(dot_product(&influences, &influences).sqrt())
    }
}

/// Half the width of the pointwise band of one of `count` released values itself.
pub fn pointwise_value(noise: &NoiseDescription, count: usize) -> f64 {
    noise.scale * pointwise_factor(noise.law, count)
}
