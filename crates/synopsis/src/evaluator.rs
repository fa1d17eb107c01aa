//! Readings of the values of one synopsis as a function; each is post-processing and costs no privacy.

use super::bernstein::{MAX_ORDER, Operator, bernstein_basis};
use super::by::SynopsisReading;
use super::counts::CountPosterior;
use super::description::{
    AxisDescription, Basis, CellBasis, CellLabel, Cells, Description, KernelBasis,
    TargetDescription,
};
use super::domain::unit_point;
use super::error::SynopsisError;
use super::posterior::SmoothFunction;
use super::released::Synopsis;
use super::tables::TableFunction;
use crate::bernstein;
use crate::cholesky::{dot_product, sequential_dot};
use crate::tensor::grid_points;

/// One reading of a synopsis, ready for many points.
#[derive(Clone, Debug)]
pub struct Evaluator {
    axes: Vec<AxisDescription>,
    volume: f64,
    form: EvaluatorForm,
    /// Range of the values of a probability.
    value_range: Option<[f64; 2]>,
}

#[derive(Clone, Debug)]
enum EvaluatorForm {
    Bernstein {
        degree: u32,
        coefficients: Vec<f64>,
    },
    Nearest {
        degree: u32,
        values: Vec<f64>,
    },
    Affine(Vec<f64>),
    Kernel {
        basis: KernelBasis,
        coefficients: Vec<f64>,
        offset: f64,
    },
    Cells {
        basis: CellBasis,
        counts: Vec<f64>,
        posterior: Option<Box<CountPosterior>>,
    },
    Tables(Box<TableFunction>),
    Smooth {
        function: Box<SmoothFunction>,
        uncertain: bool,
    },
}

impl Synopsis {
    /// The function by any reading that its values allow.
    ///
    /// # Errors
    ///
    /// If the order is out of range, or the values cannot be read that way: cosine moments are no function of a point.
    pub fn evaluator(&self, by: impl Into<SynopsisReading>) -> Result<Evaluator, SynopsisError> {
        let by = by.into();
        if let SynopsisReading::Bernstein(order) = by
            && !(1..=MAX_ORDER).contains(&order)
        {
            return Err(SynopsisError::Order { order });
        }
        let description = &self.description;
        let form = match &description.basis {
            Basis::Bernstein => self.lattice_form(by),
            Basis::Affine => match by {
                SynopsisReading::Bernstein(_) => Some(EvaluatorForm::Affine(self.values.clone())),
                _ => None,
            },
            Basis::Kernel(basis) => self.kernel_form(basis, by),
            Basis::Cells(basis) => self.cells_form(basis, by),
            Basis::Tables(_) => match by {
                SynopsisReading::Bernstein(_) => {
                    Some(EvaluatorForm::Tables(Box::new(self.tables()?.function())))
                }
                _ => None,
            },
            Basis::Cosine { .. } => return Err(SynopsisError::NoFunction),
            Basis::Keys(_) => return Err(SynopsisError::AskKeys),
        };
        Ok(Evaluator {
            axes: description.domain.clone(),
            volume: description.volume(),
            form: form.ok_or(SynopsisError::Reading { by })?,
            value_range: value_range(description),
        })
    }

    fn lattice_form(&self, by: SynopsisReading) -> Option<EvaluatorForm> {
        let degree = self.description.degree;
        Some(match by {
            SynopsisReading::Bernstein(1) => EvaluatorForm::Bernstein {
                degree,
                coefficients: self.values.clone(),
            },
            SynopsisReading::Bernstein(order) => {
                let operator = Operator::new(self.description.domain.len(), degree);
                EvaluatorForm::Bernstein {
                    degree,
                    coefficients: operator.coefficients(&self.values, order),
                }
            }
            SynopsisReading::Nearest => EvaluatorForm::Nearest {
                degree,
                values: self.values.clone(),
            },
            SynopsisReading::Kernel => EvaluatorForm::Smooth {
                function: Box::new(SmoothFunction::interpolation(
                    &self.description,
                    &self.values,
                )?),
                uncertain: false,
            },
            SynopsisReading::Posterior => EvaluatorForm::Smooth {
                function: Box::new(SmoothFunction::posterior(&self.description, &self.values)?),
                uncertain: true,
            },
            SynopsisReading::Nonnegative => return None,
        })
    }

    fn kernel_form(&self, basis: &KernelBasis, by: SynopsisReading) -> Option<EvaluatorForm> {
        Some(match by {
            SynopsisReading::Bernstein(_) | SynopsisReading::Kernel => EvaluatorForm::Kernel {
                basis: basis.clone(),
                coefficients: self.values.clone(),
                offset: self.description.offset,
            },
            SynopsisReading::Posterior => EvaluatorForm::Smooth {
                function: Box::new(SmoothFunction::posterior(&self.description, &self.values)?),
                uncertain: true,
            },
            SynopsisReading::Nearest | SynopsisReading::Nonnegative => return None,
        })
    }

    fn cells_form(&self, basis: &CellBasis, by: SynopsisReading) -> Option<EvaluatorForm> {
        let mut counts = self.values.clone();
        let mut posterior = None;
        match by {
            SynopsisReading::Bernstein(_) | SynopsisReading::Kernel => {}
            SynopsisReading::Posterior => {
                let smoothed = CountPosterior::new(&self.description, basis, &self.values)?;
                counts = smoothed.counts.clone();
                posterior = Some(Box::new(smoothed));
            }
            SynopsisReading::Nonnegative => {
                counts = CountPosterior::new(&self.description, basis, &self.values)?.counts;
                for count in &mut counts {
                    *count = count.max(0.0);
                }
            }
            SynopsisReading::Nearest => return None,
        }
        Some(EvaluatorForm::Cells {
            basis: basis.clone(),
            counts,
            posterior,
        })
    }

    /// The function at one point, in natural units, at the recommended order. For many points use an [`Evaluator`].
    ///
    /// # Errors
    ///
    /// If the synopsis holds cosine moments, or as [`Evaluator::evaluate`].
    pub fn evaluate(&self, point: &[f64]) -> Result<f64, SynopsisError> {
        self.evaluator(self.description.order)?.evaluate(point)
    }

    /// The integral of the function over the domain, at the recommended order: the noisy number of records.
    ///
    /// # Errors
    ///
    /// If the synopsis holds cosine moments.
    pub fn total_mass(&self) -> Result<f64, SynopsisError> {
        Ok(self.evaluator(self.description.order)?.total_mass())
    }

    /// Half the width of the simultaneous band at a point, at the recommended order; see [`NoiseBand`](super::description::NoiseBand).
    ///
    /// # Errors
    ///
    /// If the synopsis holds cosine moments, or as [`Evaluator::evaluate`].
    pub fn half_width(&self, point: &[f64]) -> Result<f64, SynopsisError> {
        match self.description.basis {
            Basis::Cosine { .. } => return Err(SynopsisError::NoFunction),
            Basis::Keys(_) => return Err(SynopsisError::AskKeys),
            _ => {}
        }
        let point = unit_point(&self.description.domain, point)?;
        Ok(match self.description.basis {
            Basis::Tables(_) => self.tables()?.function().simultaneous_half_width(&point),
            _ => self.description.band.half_width_at(&point),
        })
    }
}

impl Evaluator {
    /// The function at a point of the domain, in natural units; a probability is clipped to 0 to 1.
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    pub fn evaluate(&self, point: &[f64]) -> Result<f64, SynopsisError> {
        Ok(self.clipped(self.value_in_cube(&unit_point(&self.axes, point)?)))
    }

    /// The ends of the interval of a half-width around the value at a point of the domain. Of a probability they are clipped after they
    /// were computed from the value as it was before it was clipped: wherever that interval holds, so does this one.
    ///
    /// # Errors
    ///
    /// As [`Self::evaluate`].
    pub fn interval(&self, point: &[f64], half_width: f64) -> Result<[f64; 2], SynopsisError> {
        let value = self.value_in_cube(&unit_point(&self.axes, point)?);
        Ok([value - half_width, value + half_width].map(|end| self.clipped(end)))
    }

    /// The posterior standard deviation at a point of the domain, of noise and approximation as the prior has it; `None` but
    /// for [`SynopsisReading::Posterior`].
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    pub fn deviation(&self, point: &[f64]) -> Result<Option<f64>, SynopsisError> {
        let point = unit_point(&self.axes, point)?;
        Ok(match &self.form {
            EvaluatorForm::Smooth {
                function,
                uncertain: true,
            } => Some(function.deviation(&point)),
            EvaluatorForm::Cells {
                posterior: Some(posterior),
                ..
            } => Some(posterior.deviation(&point)),
            _ => None,
        })
    }

    /// The integral of the function over the domain, of a probability before it is clipped: its volume times the mean coefficient, or the constant one; of kernel
    /// functions by the midpoint rule, to about 1e-4 of a kernel that is a twentieth of the domain wide.
    pub fn total_mass(&self) -> f64 {
        let mean = match &self.form {
            EvaluatorForm::Bernstein { coefficients, .. } => {
                coefficients.iter().sum::<f64>() / coefficients.len() as f64
            }
            EvaluatorForm::Affine(coefficients) => coefficients.first().copied().unwrap_or(0.0),
            EvaluatorForm::Nearest { .. }
            | EvaluatorForm::Kernel { .. }
            | EvaluatorForm::Cells { .. }
            | EvaluatorForm::Tables(_)
            | EvaluatorForm::Smooth { .. } => {
                let points = cube_midpoints(self.axes.len());
                points.iter().map(|y| self.value_in_cube(y)).sum::<f64>() / points.len() as f64
            }
        };
        self.volume * mean
    }

    /// The volume of the domain, in natural units.
    pub(super) fn volume(&self) -> f64 {
        self.volume
    }

    pub(super) fn axes(&self) -> &[AxisDescription] {
        &self.axes
    }

    fn clipped(&self, value: f64) -> f64 {
        match self.value_range {
            Some([least, most]) => value.clamp(least, most),
            None => value,
        }
    }

    /// Value at a point of the unit cube, as the noise left it.
    pub(super) fn value_in_cube(&self, point: &[f64]) -> f64 {
        match &self.form {
            EvaluatorForm::Bernstein {
                degree,
                coefficients,
            } => {
                let bases: Vec<Vec<f64>> =
                    point.iter().map(|x| bernstein_basis(*degree, *x)).collect();
                bernstein::evaluate_polynomial(coefficients, &bases)
            }
            EvaluatorForm::Nearest { degree, values } => values
                .get(nearest_lattice_index(*degree, point))
                .copied()
                .unwrap_or(f64::NAN),
            EvaluatorForm::Affine(coefficients) => {
                sequential_dot(coefficients, &affine_terms(point))
            }
            EvaluatorForm::Kernel {
                basis,
                coefficients,
                offset,
            } => offset + basis.combine(coefficients, point),
            EvaluatorForm::Cells { basis, counts, .. } => {
                dot_product(&basis.kernel_values(point), counts)
            }
            EvaluatorForm::Tables(function) => function.reading_in_cube(point).value,
            EvaluatorForm::Smooth { function, .. } => function.value(point),
        }
    }
}

/// Functions that the coefficients of an affine function belong to, at a point of the unit cube: 1, then `2 y - 1`.
pub(super) fn affine_terms(point: &[f64]) -> Vec<f64> {
    let mut terms = vec![1.0];
    terms.extend(point.iter().map(|x| 2.0 * x - 1.0));
    terms
}

/// Range of the values of a function that has one: a probability.
fn value_range(description: &Description) -> Option<[f64; 2]> {
    match description.target {
        TargetDescription::Probability(_)
        | TargetDescription::Cells(Cells {
            label: Some(CellLabel::Above { .. } | CellLabel::Classes { .. }),
        }) => Some([0.0, 1.0]),
        _ => None,
    }
}

/// The index of the lattice point nearest to one of the unit cube.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to the degree"
)]
fn nearest_lattice_index(degree: u32, point: &[f64]) -> usize {
    let mut index = 0;
    for x in point {
        index = index * (degree as usize + 1) + (x * f64::from(degree)).round() as usize;
    }
    index
}

/// The midpoints of equal cells of the unit cube.
pub(super) fn cube_midpoints(dimensions: usize) -> Vec<Vec<f64>> {
    let side = match dimensions {
        1 => 500,
        2 => 80,
        _ => 30,
    };
    let axis: Vec<f64> = (0..side)
        .map(|j| (f64::from(j) + 0.5) / f64::from(side))
        .collect();
    grid_points(&vec![axis; dimensions])
}
