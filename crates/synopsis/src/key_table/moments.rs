//! Mean and variance of the values of noisy records, on the way from the lower end of the value, 0, to its upper end, 1.

use crate::tables::{ConfidenceInterval, Estimate, fieller_interval};

/// The largest variance of numbers from 0 to 1.
const LARGEST_VARIANCE: f64 = 0.25;

/// Noisy numbers of records of which a moment of the value is a mean with public weights: at both ends of the value, and in the middle
/// where squares are told.
pub(super) struct PlacedRecords {
    /// From the lower end to the upper one.
    pub numbers: Vec<f64>,
    /// Half-width of the noise on one of them, 95 %.
    pub half_width: f64,
}

impl PlacedRecords {
    /// The mean, and the set of means that the noise allows (Fieller); unknown where the noise may be all of the records.
    pub fn mean(&self) -> Estimate {
        let last = self.numbers.len().saturating_sub(1).max(1) as f64;
        let places = 0..self.numbers.len();
        let weights: Vec<f64> = places.map(|place| place as f64 / last).collect();
        self.ratio(&weights).clamped(0.0, 1.0)
    }

    /// The variance, of records at three places; unknown where the mean is.
    ///
    /// It is the mean square distance from the mean `m` that is estimated, less `(m - mean)^2`. The noise of the former is that of a ratio;
    /// the latter is as large as the interval of the mean allows, which lowers the lower end, and at least 0.
    pub fn variance(&self) -> Estimate {
        let mean = self.mean();
        let about = mean.value;
        // The square of the distance in the basis of the records: y^2 is 0, 0 and 1 in it, y is 0, 1/2 and 1.
        let weights = [
            about * about,
            about * (about - 1.0),
            (1.0 - about) * (1.0 - about),
        ];
        let mut square = self.ratio(&weights);
        if let (Some(interval), Some(mean)) = (&mut square.interval, mean.interval) {
            let farthest = (about - mean.lower).max(mean.upper - about);
            interval.lower -= farthest * farthest;
        }
        square.clamped(0.0, LARGEST_VARIANCE)
    }

    /// The mean of these weights over the records.
    fn ratio(&self, weights: &[f64]) -> Estimate {
        let whole: f64 = self.numbers.iter().sum();
        let weighted = self.numbers.iter().zip(weights);
        let part: f64 = weighted.map(|(number, weight)| number * weight).sum();
        let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
        let variances = [squares, weights.iter().sum(), self.numbers.len() as f64];
        Estimate {
            value: match whole > 0.0 {
                true => part / whole,
                false => f64::NAN,
            },
            interval: fieller_interval(part, whole, self.half_width, variances),
        }
    }
}

impl Estimate {
    /// Moves value and interval into a range, wherever they are known.
    fn clamped(self, least: f64, most: f64) -> Self {
        Estimate {
            value: self.value.clamp(least, most),
            interval: self.interval.map(|interval| interval.clamped(least, most)),
        }
    }

    /// Maps value and interval to another scale, which keeps the order.
    pub(super) fn mapped(self, scale: impl Fn(f64) -> f64) -> Self {
        Estimate {
            value: scale(self.value),
            interval: self.interval.map(|interval| ConfidenceInterval {
                lower: scale(interval.lower),
                upper: scale(interval.upper),
            }),
        }
    }
}
