//! Quantiles of the one axis of a synopsis.

use super::{ConfidenceInterval, Estimate, Tables};
use crate::cholesky::dot_product;
use crate::description::AxisDescription;
use crate::error::SynopsisError;
use crate::proper::isotonic_regression;

/// Steps that the axis is looked at on.
const STEPS: u32 = 1_000;

impl Tables {
    /// Place that `part` of the records lie below, in natural units: the nearest nondecreasing distribution function (`[Aye55]`) reaches
    /// it there. The interval is everything but what is certainly below and certainly above, and a step of a
    /// thousandth of the domain more on either side.
    ///
    /// # Errors
    ///
    /// If there is more than one axis, or `part` does not lie between 0 and 1.
    pub fn quantile(&self, part: f64) -> Result<Estimate, SynopsisError> {
        let [axis] = &self.axes[..] else {
            return Err(SynopsisError::NotOneAxis {
                axes: self.axes.len(),
            });
        };
        if !(0.0..=1.0).contains(&part) {
            return Err(SynopsisError::Part { part });
        }
        let q = self.within.pointwise * (self.count() as f64).sqrt();
        let mut sums = Vec::new();
        let mut first = None;
        let mut last = None;
        for step in 0..=STEPS {
            let below = self.parts_below(0, f64::from(step) / f64::from(STEPS));
            let away: Vec<f64> = below.iter().map(|below| below - part).collect();
            sums.push(dot_product(&self.counts, &below));
            let apart = dot_product(&self.counts, &away);
            let noise = q * dot_product(&away, &away).sqrt();
            // With many records all of the noise may lie between two places.
            if apart >= -noise {
                first = first.or(Some(step));
            }
            if apart <= noise {
                last = Some(step);
            }
        }
        let lower = match first {
            Some(first) => place_of_step(axis, f64::from(first) - 1.0),
            None => axis.max,
        };
        let upper = match last {
            Some(last) => place_of_step(axis, f64::from(last) + 1.0),
            None => axis.min,
        };
        let all = self.all();
        let value = match first_reaching(&isotonic_regression(&sums), part * all) {
            Some(step) if all > 0.0 => place_of_step(axis, step),
            _ => f64::NAN,
        };
        Ok(Estimate {
            value,
            interval: Some(ConfidenceInterval { lower, upper }),
        })
    }
}

fn place_of_step(axis: &AxisDescription, step: f64) -> f64 {
    axis.min + (axis.max - axis.min) * (step / f64::from(STEPS)).clamp(0.0, 1.0)
}

/// Step where a rising sequence first reaches `level`, linear between its entries; the last one if it never does.
fn first_reaching(rising: &[f64], level: f64) -> Option<f64> {
    let last = rising.len().checked_sub(1)?;
    let step = rising.partition_point(|value| *value < level).min(last);
    let low = rising[step.saturating_sub(1)];
    let high = rising[step];
    let within = if high > low {
        ((level - low) / (high - low)).clamp(0.0, 1.0)
    } else {
        1.0
    };
    Some(if step == 0 {
        0.0
    } else {
        step as f64 - 1.0 + within
    })
}
