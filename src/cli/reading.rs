//! The ways to turn released values into a function, and the bounds of each.

use bernstream_synopsis::band::Band;
use bernstream_synopsis::description::{Basis, Description};
use bernstream_synopsis::pointwise::{PointwiseBand, pointwise_value};
use bernstream_synopsis::tables::KernelFit;
use bernstream_synopsis::{Evaluator, Synopsis, SynopsisError, SynopsisReading};

/// How released values become a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReadingArgument {
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

impl ReadingArgument {
    pub fn at_order(self, order: u32) -> SynopsisReading {
        match self {
            ReadingArgument::Bernstein => SynopsisReading::Bernstein(order),
            ReadingArgument::Nearest => SynopsisReading::Nearest,
            ReadingArgument::Kernel => SynopsisReading::Kernel,
            ReadingArgument::Posterior => SynopsisReading::Posterior,
            ReadingArgument::Nonnegative => SynopsisReading::Nonnegative,
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

impl From<LabelFit> for KernelFit {
    fn from(fit: LabelFit) -> Self {
        match fit {
            LabelFit::Constant => KernelFit::Constant,
            LabelFit::Linear => KernelFit::Linear,
            LabelFit::Naive => KernelFit::Naive,
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
    Pointwise(PointwiseBand),
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
        by: ReadingArgument,
        pointwise: bool,
        order: u32,
    ) -> Result<Self, SynopsisError> {
        let about = synopsis.description();
        let is_lattice = about.basis == Basis::Bernstein;
        Ok(match (by, pointwise) {
            (ReadingArgument::Posterior, _) => Width::Posterior,
            (ReadingArgument::Nonnegative, _) => Width::None,
            (ReadingArgument::Kernel, _) if is_lattice => Width::None,
            (ReadingArgument::Nearest, true) => {
                Width::Constant(pointwise_value(&about.noise, about.shape().value_count()))
            }
            (ReadingArgument::Nearest, false) => Width::Constant(
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
    ) -> Result<Option<f64>, SynopsisError> {
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
