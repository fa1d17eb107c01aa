//! Ways to read the values of one synopsis as a function; each is post-processing and costs no privacy.

use super::bernstein::{MAX_ORDER, Operator, basis};
use super::by::By;
use super::counts::Counts;
use super::description::{
    Axis, Basis, CellBasis, CellLabel, Cells, Description, KernelBasis, Target,
};
use super::domain::unit_point;
use super::error::Error;
use super::posterior::Smooth;
use super::released::Synopsis;
use super::tables::Function;
use crate::bernstein;
use crate::cholesky::dot;

/// One reading of a synopsis, ready for many points.
#[derive(Clone, Debug)]
pub struct Evaluator {
    axes: Vec<Axis>,
    volume: f64,
    form: Form,
    possible: Option<[f64; 2]>,
}

#[derive(Clone, Debug)]
enum Form {
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
        posterior: Option<Box<Counts>>,
    },
    Tables(Box<Function>),
    Smooth {
        function: Box<Smooth>,
        uncertain: bool,
    },
}

impl Synopsis {
    /// The function by any reading that its values allow.
    ///
    /// # Errors
    ///
    /// If the order is out of range, or the values cannot be read that way: cosine moments are no function of a point.
    pub fn evaluator(&self, by: impl Into<By>) -> Result<Evaluator, Error> {
        let about = &self.description;
        let shape = self.description.shape();
        let by = by.into();
        let no = || Error::Reading { by };
        let form = match (by, &shape.basis) {
            (By::Bernstein(order), _) if !(1..=MAX_ORDER).contains(&order) => {
                return Err(Error::Order { order });
            }
            (_, Basis::Cosine { .. }) => return Err(Error::NoFunction),
            (By::Bernstein(order), Basis::Bernstein) => {
                let coefficients = match order {
                    1 => self.values.clone(),
                    _ => Operator::new(shape.dimensions, shape.degree)
                        .coefficients(&self.values, order),
                };
                Form::Bernstein {
                    degree: shape.degree,
                    coefficients,
                }
            }
            (By::Bernstein(_), Basis::Affine) => Form::Affine(self.values.clone()),
            (By::Bernstein(_) | By::Kernel, Basis::Kernel(basis)) => Form::Kernel {
                basis: basis.clone(),
                coefficients: self.values.clone(),
                offset: about.offset,
            },
            (By::Bernstein(_), Basis::Tables(_)) => {
                Form::Tables(Box::new(self.tables()?.function()))
            }
            (By::Bernstein(_) | By::Kernel, Basis::Cells(basis)) => Form::Cells {
                basis: basis.clone(),
                counts: self.values.clone(),
                posterior: None,
            },
            (By::Posterior | By::Nonnegative, Basis::Cells(basis)) => {
                let posterior = Counts::new(about, basis, &self.values).ok_or_else(no)?;
                let basis = basis.clone();
                let counts = posterior.counts.clone();
                match by {
                    By::Posterior => Form::Cells {
                        basis,
                        counts,
                        posterior: Some(Box::new(posterior)),
                    },
                    _ => {
                        let counts = counts.into_iter().map(|count| count.max(0.0)).collect();
                        Form::Cells {
                            basis,
                            counts,
                            posterior: None,
                        }
                    }
                }
            }
            (By::Nearest, Basis::Bernstein) => Form::Nearest {
                degree: shape.degree,
                values: self.values.clone(),
            },
            (By::Kernel, Basis::Bernstein) => {
                let function = Smooth::interpolation(about, &self.values).ok_or_else(no)?;
                Form::Smooth {
                    function: Box::new(function),
                    uncertain: false,
                }
            }
            (By::Posterior, Basis::Bernstein | Basis::Kernel(_)) => {
                let function = Smooth::posterior(about, &self.values).ok_or_else(no)?;
                Form::Smooth {
                    function: Box::new(function),
                    uncertain: true,
                }
            }
            (By::Nearest | By::Kernel | By::Posterior | By::Nonnegative, _) => return Err(no()),
        };
        Ok(Evaluator {
            axes: about.domain.clone(),
            volume: about.volume(),
            form,
            possible: possible(about),
        })
    }

    /// The function at one point, in natural units, at the recommended order. For many points use an [`Evaluator`].
    ///
    /// # Errors
    ///
    /// If the synopsis holds cosine moments, or as [`Evaluator::evaluate`].
    pub fn evaluate(&self, point: &[f64]) -> Result<f64, Error> {
        self.evaluator(self.description.order)?.evaluate(point)
    }

    /// The integral of the function over the domain, at the recommended order: the noisy number of records.
    ///
    /// # Errors
    ///
    /// If the synopsis holds cosine moments.
    pub fn mass(&self) -> Result<f64, Error> {
        Ok(self.evaluator(self.description.order)?.mass())
    }

    /// Half the width of the simultaneous band at a point, at the recommended order; see [`NoiseBand`](super::description::NoiseBand).
    ///
    /// # Errors
    ///
    /// If the synopsis holds cosine moments, or as [`Evaluator::evaluate`].
    pub fn half_width(&self, point: &[f64]) -> Result<f64, Error> {
        if matches!(self.description.basis, Basis::Cosine { .. }) {
            return Err(Error::NoFunction);
        }
        let point = unit_point(&self.description.domain, point)?;
        Ok(match self.description.basis {
            Basis::Tables(_) => self.tables()?.function().simultaneous(&point),
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
    pub fn evaluate(&self, point: &[f64]) -> Result<f64, Error> {
        Ok(self.clipped(self.at(&unit_point(&self.axes, point)?)))
    }

    /// The ends of the interval of a half-width around the value at a point of the domain. Of a probability they are clipped after they
    /// were computed from the value as it was before it was clipped: wherever that interval holds, so does this one.
    ///
    /// # Errors
    ///
    /// As [`Self::evaluate`].
    pub fn interval(&self, point: &[f64], half_width: f64) -> Result<[f64; 2], Error> {
        let value = self.at(&unit_point(&self.axes, point)?);
        Ok([value - half_width, value + half_width].map(|end| self.clipped(end)))
    }

    /// The posterior standard deviation at a point of the domain, of noise and approximation as the prior has it; `None` but
    /// for [`By::Posterior`].
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    pub fn deviation(&self, point: &[f64]) -> Result<Option<f64>, Error> {
        let point = unit_point(&self.axes, point)?;
        Ok(match &self.form {
            Form::Smooth {
                function,
                uncertain: true,
            } => Some(function.deviation(&point)),
            Form::Cells {
                posterior: Some(posterior),
                ..
            } => Some(posterior.deviation(&point)),
            _ => None,
        })
    }

    /// The integral of the function over the domain, of a probability before it is clipped: its volume times the mean coefficient, or the constant one; of kernel
    /// functions by the midpoint rule, to about 1e-4 of a kernel that is a twentieth of the domain wide.
    pub fn mass(&self) -> f64 {
        let mean = match &self.form {
            Form::Bernstein { coefficients, .. } => {
                coefficients.iter().sum::<f64>() / coefficients.len() as f64
            }
            Form::Affine(coefficients) => coefficients.first().copied().unwrap_or(0.0),
            Form::Nearest { .. }
            | Form::Kernel { .. }
            | Form::Cells { .. }
            | Form::Tables(_)
            | Form::Smooth { .. } => {
                let points = midpoints(self.axes.len());
                points.iter().map(|y| self.at(y)).sum::<f64>() / points.len() as f64
            }
        };
        self.volume * mean
    }

    /// The volume of the domain, in natural units.
    pub(super) fn volume(&self) -> f64 {
        self.volume
    }

    pub(super) fn axes(&self) -> &[Axis] {
        &self.axes
    }

    fn clipped(&self, value: f64) -> f64 {
        self.possible
            .map_or(value, |[least, most]| value.clamp(least, most))
    }

    /// At a point of the unit cube, as the noise left it.
    pub(super) fn at(&self, point: &[f64]) -> f64 {
        match &self.form {
            Form::Bernstein {
                degree,
                coefficients,
            } => {
                let bases: Vec<Vec<f64>> = point.iter().map(|x| basis(*degree, *x)).collect();
                bernstein::evaluate(coefficients, &bases)
            }
            Form::Nearest { degree, values } => values
                .get(nearest(*degree, point))
                .copied()
                .unwrap_or(f64::NAN),
            Form::Affine(coefficients) => {
                let terms = coefficients
                    .iter()
                    .zip(std::iter::once(1.0).chain(point.iter().map(|x| 2.0 * x - 1.0)));
                terms.map(|(c, t)| c * t).sum()
            }
            Form::Kernel {
                basis,
                coefficients,
                offset,
            } => {
                let terms = basis.points.iter().zip(coefficients);
                offset
                    + terms
                        .map(|(p, c)| c * basis.kernel.value(point, p))
                        .sum::<f64>()
            }
            Form::Cells { basis, counts, .. } => dot(&basis.at(point), counts),
            Form::Tables(function) => function.at(point).value,
            Form::Smooth { function, .. } => function.value(point),
        }
    }
}

/// The range of the values of a function that has one: a probability.
fn possible(about: &Description) -> Option<[f64; 2]> {
    match about.target {
        Target::Probability(_)
        | Target::Cells(Cells {
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
fn nearest(degree: u32, point: &[f64]) -> usize {
    point.iter().fold(0, |index, x| {
        index * (degree as usize + 1) + (x * f64::from(degree)).round() as usize
    })
}

/// The midpoints of equal cells of the unit cube.
pub(super) fn midpoints(dimensions: usize) -> Vec<Vec<f64>> {
    let side = match dimensions {
        1 => 500,
        2 => 80,
        _ => 30,
    };
    let axis: Vec<f64> = (0..side)
        .map(|j| (f64::from(j) + 0.5) / f64::from(side))
        .collect();
    (0..dimensions).fold(vec![vec![]], |points, _| {
        points
            .iter()
            .flat_map(|p: &Vec<f64>| axis.iter().map(move |y| [p.as_slice(), &[*y]].concat()))
            .collect()
    })
}
