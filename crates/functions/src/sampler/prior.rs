//! A public distribution of records, from which a sensitivity is sampled.

use rand::rngs::ChaCha20Rng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Normal};

use bernstream_release::error::TargetError;
use bernstream_release::sampler::error::SamplerError;
use bernstream_release::window::accumulator::{AccumulatorSpec, Record};
use bernstream_release::window::{DomainAxis, RecordLabel};
use bernstream_synopsis::sampler::distribution::PriorDistribution;
use bernstream_synopsis::shape_error::ShapeError;

/// Draws until a value is inside the domain.
const TRIALS: usize = 10_000;

/// A public distribution of records: independent values. One outside the domain is moved to the border or drawn again, as a
/// window clamps or drops it.
#[derive(Clone, Debug)]
pub struct RecordPrior {
    axes: Vec<(DomainAxis, PriorDistribution)>,
    label: Option<(RecordLabel, PriorDistribution)>,
}

impl RecordPrior {
    /// # Errors
    ///
    /// If there are not 1 to 3 axes, a distribution is invalid, or almost all of it lies outside a domain that drops.
    pub fn new(
        axes: Vec<(DomainAxis, PriorDistribution)>,
        label: Option<(RecordLabel, PriorDistribution)>,
    ) -> Result<Self, TargetError> {
        if !(1..=3).contains(&axes.len()) {
            return Err(ShapeError::Axes(axes.len()).into());
        }
        for (_, law) in &axes {
            check_proper(law)?;
        }
        if let Some((_, law)) = &label {
            check_proper(law)?;
        }
        for (axis, law) in &axes {
            check_inside(axis, law)?;
        }
        if let Some((RecordLabel::Number(axis), law)) = &label {
            check_inside(axis, law)?;
        }
        Ok(RecordPrior { axes, label })
    }

    pub fn draw_record<R: Rng + ?Sized>(&self, rng: &mut R) -> Record {
        let drawn = self.draw_values(rng);
        Record::new(&drawn.x, drawn.label)
    }

    /// A record as a window of this kind keeps it.
    pub fn draw_record_for<R: Rng + ?Sized>(&self, spec: &AccumulatorSpec, rng: &mut R) -> Record {
        let drawn = self.draw_values(rng);
        spec.record(&drawn.x, drawn.label)
    }

    fn draw_values<R: Rng + ?Sized>(&self, rng: &mut R) -> DrawnValues {
        let mut x = Vec::with_capacity(self.axes.len());
        for (axis, law) in &self.axes {
            x.push(draw_place(axis, law, rng));
        }
        let label = match &self.label {
            None => 0.0,
            Some((RecordLabel::Number(axis), law)) => 2.0 * draw_place(axis, law, rng) - 1.0,
            Some((label, law)) => (0..TRIALS)
                .find_map(|_| label.of(draw_value(law, rng)))
                .unwrap_or_default(),
        };
        DrawnValues { x, label }
    }
}

struct DrawnValues {
    /// A place in the unit cube.
    x: Vec<f64>,
    /// A label in `[-1, 1]`.
    label: f64,
}

fn check_proper(law: &PriorDistribution) -> Result<(), SamplerError> {
    if law.is_proper() {
        Ok(())
    } else {
        Err(SamplerError::Law(law.clone()))
    }
}

/// Refuses a law of which almost nothing lies within a domain that drops what is outside.
fn check_inside(axis: &DomainAxis, law: &PriorDistribution) -> Result<(), SamplerError> {
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let inside = (0..TRIALS)
        .filter(|_| axis.unit_place(draw_value(law, &mut rng)).is_some())
        .count();
    if inside < TRIALS / 100 {
        return Err(SamplerError::Outside {
            law: law.clone(),
            min: axis.min,
            max: axis.max,
        });
    }
    Ok(())
}

/// Place of a value in `[0, 1]`. Columns are independent, so one that a window would drop is drawn again alone.
fn draw_place<R: Rng + ?Sized>(axis: &DomainAxis, law: &PriorDistribution, rng: &mut R) -> f64 {
    // One in a hundred is inside ([`RecordPrior::new`]), or nearly: this ends long before.
    (0..TRIALS)
        .find_map(|_| axis.unit_place(draw_value(law, rng)))
        .unwrap_or(0.5)
}

/// A value of the law.
fn draw_value<R: Rng + ?Sized>(law: &PriorDistribution, rng: &mut R) -> f64 {
    match law {
        PriorDistribution::Uniform { min, max } => min + (max - min) * rng.random::<f64>(),
        PriorDistribution::Normal { mean, deviation } => {
            Normal::new(*mean, *deviation).map_or(*mean, |normal| normal.sample(rng))
        }
        PriorDistribution::Exponential { min, mean } => min + mean * rng.sample::<f64, _>(Exp1),
        PriorDistribution::Points { values, weights } => {
            let total: f64 = (0..values.len())
                .map(|i| weight_of(weights.as_deref(), i))
                .sum();
            let mut left = rng.random::<f64>() * total;
            for (i, value) in values.iter().enumerate() {
                left -= weight_of(weights.as_deref(), i);
                if left < 0.0 {
                    return *value;
                }
            }
            values.last().copied().unwrap_or_default()
        }
    }
}

/// Weight of a point; points without weights are equally likely.
fn weight_of(weights: Option<&[f64]>, i: usize) -> f64 {
    match weights {
        Some(weights) => weights.get(i).copied().unwrap_or(1.0),
        None => 1.0,
    }
}
