//! Quantiles of the one axis of a synopsis.

use super::{Estimate, Interval, Tables};
use crate::cholesky::dot;
use crate::error::Error;
use crate::proper::isotonic;

/// Steps that the axis is looked at on.
const STEPS: u32 = 1_000;

impl Tables {
    /// Where `part` of the records lie below, in natural units: the nearest nondecreasing distribution function (`[Aye55]`) reaches it
    /// there. The interval is everything but what is certainly below and certainly above, and a step of a
    /// thousandth of the domain more on either side.
    ///
    /// # Errors
    ///
    /// If there is more than one axis, or `part` does not lie between 0 and 1.
    pub fn quantile(&self, part: f64) -> Result<Estimate, Error> {
        let [axis] = &self.axes[..] else {
            return Err(Error::NotOneAxis {
                axes: self.axes.len(),
            });
        };
        if !(0.0..=1.0).contains(&part) {
            return Err(Error::Part { part });
        }
        let q = self.within.pointwise * (self.count() as f64).sqrt();
        let mut sums = Vec::new();
        let mut first = None;
        let mut last = None;
        for step in 0..=STEPS {
            let below = self.below(0, f64::from(step) / f64::from(STEPS));
            let away: Vec<f64> = below.iter().map(|below| below - part).collect();
            sums.push(dot(&self.counts, &below));
            let apart = dot(&self.counts, &away);
            let noise = q * dot(&away, &away).sqrt();
            // With many records all of the noise may lie between two places.
            if apart >= -noise {
                first = first.or(Some(step));
            }
            if apart <= noise {
                last = Some(step);
            }
        }
        let place = |x: f64| axis.min + (axis.max - axis.min) * x.clamp(0.0, 1.0);
        let at = |step: f64| place(step / f64::from(STEPS));
        let lower = first.map_or(axis.max, |first| at(f64::from(first) - 1.0));
        let interval = Interval {
            lower,
            upper: last.map_or(axis.min, |last| at(f64::from(last) + 1.0)),
        };
        let value = reached(&isotonic(&sums), part * self.all()).filter(|_| self.all() > 0.0);
        Ok(Estimate {
            value: value.map_or(f64::NAN, at),
            interval: Some(interval),
        })
    }
}

/// Where a rising sequence first reaches `level`, linear between its entries; the last one if it never does.
fn reached(rising: &[f64], level: f64) -> Option<f64> {
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
