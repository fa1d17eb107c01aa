//! A public distribution of records, from which a sensitivity is sampled.

use rand::rngs::ChaCha20Rng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Normal};

use bernstream_release::error::Error as TargetError;
use bernstream_release::sampler::error::Error;
use bernstream_release::window::accumulator::{AccumulatorSpec, Record};
use bernstream_release::window::{Axis, Label};
use bernstream_synopsis::sampler::distribution::PriorDistribution;
use bernstream_synopsis::shape_error::ShapeError;

/// Draws until a value is inside the domain.
const TRIALS: usize = 10_000;

/// A public distribution of records: independent values. One outside the domain is moved to the border or drawn again, as a
/// window clamps or drops it.
#[derive(Clone, Debug)]
pub struct Prior {
    axes: Vec<(Axis, PriorDistribution)>,
    label: Option<(Label, PriorDistribution)>,
}

impl Prior {
    /// # Errors
    ///
    /// If there are not 1 to 3 axes, a distribution is invalid, or almost all of it lies outside a domain that drops.
    pub fn new(
        axes: Vec<(Axis, PriorDistribution)>,
        label: Option<(Label, PriorDistribution)>,
    ) -> Result<Self, TargetError> {
        if !(1..=3).contains(&axes.len()) {
            return Err(ShapeError::Axes(axes.len()).into());
        }
        for law in axes
            .iter()
            .map(|(_, law)| law)
            .chain(label.as_ref().map(|(_, law)| law))
        {
            if !law.is_proper() {
                return Err(Error::Law(law.clone()).into());
            }
        }
        let labelled = label.iter().filter_map(|(label, law)| match label {
            Label::Number(axis) => Some((axis, law)),
            Label::Above(_) | Label::Classes(_) => None,
        });
        for (axis, law) in axes.iter().map(|(axis, law)| (axis, law)).chain(labelled) {
            let mut rng = ChaCha20Rng::seed_from_u64(0);
            let inside = (0..TRIALS)
                .filter(|_| axis.unit(draw(law, &mut rng)).is_some())
                .count();
            if inside < TRIALS / 100 {
                return Err(Error::Outside {
                    law: law.clone(),
                    min: axis.min,
                    max: axis.max,
                }
                .into());
            }
        }
        Ok(Prior { axes, label })
    }

    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> Record {
        let (x, label) = self.values(rng);
        Record::new(&x, label)
    }

    /// A record as a window of this kind keeps it.
    pub fn draw_for<R: Rng + ?Sized>(&self, spec: &AccumulatorSpec, rng: &mut R) -> Record {
        let (x, label) = self.values(rng);
        spec.record(&x, label)
    }

    /// A place in the unit cube, and a label in `[-1, 1]`.
    fn values<R: Rng + ?Sized>(&self, rng: &mut R) -> (Vec<f64>, f64) {
        let x: Vec<f64> = self
            .axes
            .iter()
            .map(|(axis, law)| place(axis, law, rng))
            .collect();
        let label = self.label.as_ref().map_or(0.0, |(label, law)| match label {
            Label::Number(axis) => 2.0 * place(axis, law, rng) - 1.0,
            Label::Above(_) | Label::Classes(_) => (0..TRIALS)
                .find_map(|_| label.of(draw(law, rng)))
                .unwrap_or_default(),
        });
        (x, label)
    }
}

/// Where a value lies in `[0, 1]`. Columns are independent, so one that a window would drop is drawn again alone.
fn place<R: Rng + ?Sized>(axis: &Axis, law: &PriorDistribution, rng: &mut R) -> f64 {
    // One in a hundred is inside ([`Prior::new`]), or nearly: this ends long before.
    (0..TRIALS)
        .find_map(|_| axis.unit(draw(law, rng)))
        .unwrap_or(0.5)
}

/// A value of the law.
fn draw<R: Rng + ?Sized>(law: &PriorDistribution, rng: &mut R) -> f64 {
    match law {
        PriorDistribution::Uniform { min, max } => min + (max - min) * rng.random::<f64>(),
        PriorDistribution::Normal { mean, deviation } => {
            Normal::new(*mean, *deviation).map_or(*mean, |normal| normal.sample(rng))
        }
        PriorDistribution::Exponential { min, mean } => min + mean * rng.sample::<f64, _>(Exp1),
        PriorDistribution::Points { values, weights } => {
            let weight = |i: usize| {
                weights
                    .as_ref()
                    .and_then(|weights| weights.get(i))
                    .map_or(1.0, |weight| *weight)
            };
            let mut left = rng.random::<f64>() * (0..values.len()).map(weight).sum::<f64>();
            let chosen = values.iter().enumerate().find(|(i, _)| {
                left -= weight(*i);
                left < 0.0
            });
            chosen
                .map(|(_, value)| *value)
                .or(values.last().copied())
                .unwrap_or_default()
        }
    }
}
