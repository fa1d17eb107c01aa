//! The ways to turn released values into a function, and the bounds of each.

use bernstream_synopsis::band::Band;
use bernstream_synopsis::description::{Basis, Description};
use bernstream_synopsis::pointwise::{Pointwise, pointwise_value};
use bernstream_synopsis::tables::Fit;
use bernstream_synopsis::{By, Error, Evaluator, Synopsis};

/// How released values become a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Reading {
    /// As published: on a lattice by the Bernstein operator
    Bernstein,
    /// The value of the nearest lattice point
    Nearest,
    /// Interpolation by the kernel of the release
    Kernel,
    /// Posterior mean of a Gaussian process, given the known noise of the values
    Posterior,
    /// Of cells, the posterior with no count below 0
    Nonnegative,
}

impl Reading {
    pub fn at_order(self, order: u32) -> By {
        match self {
            Reading::Bernstein => By::Bernstein(order),
            Reading::Nearest => By::Nearest,
            Reading::Kernel => By::Kernel,
            Reading::Posterior => By::Posterior,
            Reading::Nonnegative => By::Nonnegative,
        }
    }
}

/// How a label of tables of cells is fitted around a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LabelFit {
    /// Its mean, weighted by the kernel
    Constant,
    /// A line through the records
    Linear,
    /// Of classes, naive Bayes: each axis for itself
    Naive,
}

impl From<LabelFit> for Fit {
    fn from(fit: LabelFit) -> Self {
        match fit {
            LabelFit::Constant => Fit::Constant,
            LabelFit::Linear => Fit::Linear,
            LabelFit::Naive => Fit::Naive,
        }
    }
}

/// The distance of the bounds from the value.
#[derive(Clone, Debug, PartialEq)]
pub enum Width {
    /// Simultaneous: a synopsis with the band of the requested order.
    Simultaneous(Box<Synopsis>),
    /// Simultaneous, and the same at every point.
    Constant(f64),
    Pointwise(Pointwise),
    Posterior,
    None,
}

impl Width {
    /// The width of the requested band.
    ///
    /// # Errors
    ///
    /// If the synopsis does not support the reading.
    pub fn new(
        synopsis: &Synopsis,
        by: Reading,
        pointwise: bool,
        order: u32,
    ) -> Result<Self, Error> {
        let about = synopsis.description();
        let is_lattice = about.basis == Basis::Bernstein;
        Ok(match (by, pointwise) {
            (Reading::Posterior, _) => Width::Posterior,
            (Reading::Nonnegative, _) => Width::None,
            (Reading::Kernel, _) if is_lattice => Width::None,
            (Reading::Nearest, true) => {
                Width::Constant(pointwise_value(&about.noise, about.shape().value_count()))
            }
            (Reading::Nearest, false) => Width::Constant(
                Band::of_released_values(about.noise.law, about.shape().value_count())
                    .scaled_to_noise(&about.noise)
                    .half_width,
            ),
            (_, true) => Width::Pointwise(synopsis.pointwise_band(order)?),
            // The message has the band of its own order; that of another order follows from the noise alone.
            (_, false) if order == about.order || !is_lattice => {
                Width::Simultaneous(Box::new(synopsis.clone()))
            }
            (_, false) => {
                let band = Band::simulate(&about.shape(), about.noise.law, order)
                    .scaled_to_noise(&about.noise);
                let about = Description {
                    order,
                    band,
                    form_error: None,
                    ..about.clone()
                };
                Width::Simultaneous(Box::new(Synopsis::new(about, synopsis.values().to_vec())?))
            }
        })
    }

    /// Half the width at `point`; `None` without a band.
    ///
    /// # Errors
    ///
    /// If `point` is outside the domain.
    pub fn half_width_at(
        &self,
        evaluator: &Evaluator,
        point: &[f64],
    ) -> Result<Option<f64>, Error> {
        Ok(match self {
            Width::Simultaneous(synopsis) => Some(synopsis.half_width(point)?),
            Width::Constant(half) => Some(*half),
            Width::Pointwise(band) => Some(band.half_width(point)?),
            Width::Posterior => evaluator
                .deviation(point)?
                .map(|deviation| 1.96 * deviation),
            Width::None => None,
        })
    }
}
