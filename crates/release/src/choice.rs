//! Choices from the records themselves, privately and for a price of its own: a bandwidth; an order
//! is in `crates/noise/src/order.rs` (`docs/proofs/choice.md`).
//!
//! Everything that follows a choice may depend on it, as on anything released: prices add up (sequential composition, also
//! where what comes later depends on what came before). Each choice comes before the release that it is for, from one
//! generator, and one ledger row pays for all.

use crate::marginals::{BINS, Marginals};
use crate::window::accumulator::Accumulator;
use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::NoiseError;
use bernstream_noise::Noisy;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::Epsilon;

/// Candidates of a private choice, at least one.
#[derive(Clone, Debug)]
pub struct Candidates<T> {
    first: T,
    others: Vec<T>,
}

impl<T> Candidates<T> {
    pub fn new(first: T, others: Vec<T>) -> Self {
        Candidates { first, others }
    }

    /// `None` where there are none.
    pub fn from_vec(candidates: Vec<T>) -> Option<Self> {
        let mut candidates = candidates.into_iter();
        candidates.next().map(|first| Candidates {
            first,
            others: candidates.collect(),
        })
    }

    pub fn first(&self) -> &T {
        &self.first
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// # Errors
    ///
    /// The first error of `map`.
    pub fn try_map<U, E>(&self, mut f: impl FnMut(&T) -> Result<U, E>) -> Result<Candidates<U>, E> {
        let first = f(&self.first)?;
        Ok(Candidates {
            first,
            others: self.others.iter().map(f).collect::<Result<_, E>>()?,
        })
    }

    /// The candidate at `index`, from 0; past the end the first.
    pub fn get(&self, index: usize) -> &T {
        self.iter().nth(index).unwrap_or(&self.first)
    }
}

/// A bandwidth from a noisy coarse histogram of each axis.
///
/// # Guarantee
///
/// The counts of all axes get discrete Laplace noise of scale (axes x contributions x one record) / price: their release
/// costs `price` (the price is split evenly over the axes). The choice is made from the noisy counts alone.
///
/// # The rule
///
/// Per axis `b = 0.9 (IQR / 1.34) n^(-1 / (l + 4))`, `l` axes: Silverman's rule with Scott's exponent, `n` and the quartiles
/// from the noisy counts. Its other half, the standard deviation, is left out: noise in the far bins would decide it. The
/// nearest candidate is taken, by the logarithms of all axes together; the first of equals.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    marginals: Marginals,
    noise: Mechanism,
    change: Sensitivity,
    /// Bandwidths in the unit cube, one list an axis.
    candidates: Vec<Vec<f64>>,
}

impl Bandwidth {
    /// `sensitivity` is that of `marginals`; `candidates` in units of the cube's width.
    ///
    /// # Errors
    ///
    /// If the sensitivity or the price is 0, or the noise would be too large.
    pub fn new(
        marginals: Marginals,
        candidates: Vec<Vec<f64>>,
        sensitivity: Sensitivity,
        price: Epsilon,
    ) -> Result<Self, NoiseError> {
        Ok(Bandwidth {
            marginals,
            noise: Mechanism::laplace(sensitivity, price)?,
            change: sensitivity,
            candidates,
        })
    }

    /// Standard deviations of the noise in a count, in records.
    pub fn noise_in_records(&self) -> f64 {
        2.0_f64.sqrt() * records(i128::from(self.noise.scale().units()))
    }

    /// The noise on the counts.
    pub fn mechanism(&self) -> Mechanism {
        self.noise
    }

    /// Draws. The index of a candidate; each call costs the price once more.
    pub fn choose_candidate(&self, state: &Accumulator, generator: &mut Generator) -> usize {
        let counts = self
            .noise
            .release_noisy(&self.exact_counts(state), generator);
        self.nearest_candidate(&counts)
    }

    /// Counts that the choice is made from, once noise is added: as secret as the records.
    pub fn exact_counts(&self, state: &Accumulator) -> Exact {
        self.marginals.evaluate(state)
    }

    /// Largest change of the counts by a unit in the 1-norm: their noise is made for that.
    pub fn count_sensitivity(&self) -> Sensitivity {
        self.change
    }

    /// Index of the nearest candidate, from noisy counts: nothing here sees a record.
    fn nearest_candidate(&self, counts: &Noisy) -> usize {
        let wanted: Vec<f64> = counts
            .values()
            .chunks_exact(BINS)
            .map(|axis| wanted_bandwidth(axis, self.marginals.axis_count()))
            .collect();
        let mut nearest = 0;
        let mut least = None;
        for (index, candidate) in self.candidates.iter().enumerate() {
            let ratios = candidate.iter().zip(&wanted);
            let distance: f64 = ratios.map(|(b, wanted)| (b / wanted).ln().powi(2)).sum();
            if least.is_none_or(|least| distance.total_cmp(&least).is_lt()) {
                nearest = index;
                least = Some(distance);
            }
        }
        nearest
    }
}

/// Grains as records.
#[expect(
    clippy::cast_precision_loss,
    reason = "already private: rounding is post-processing"
)]
fn records(grains: i128) -> f64 {
    grains as f64 / bernstream_synopsis::histogram::GRAINS as f64
}

/// The bandwidth that the noisy counts of one axis ask for, as a part of its width.
fn wanted_bandwidth(counts: &[i128], axes: usize) -> f64 {
    let counts: Vec<f64> = counts.iter().map(|grains| records(*grains)).collect();
    let total = counts.iter().sum::<f64>();
    // Where nothing can be told from nothing: records that lie evenly.
    let spread = if total < 1.0 {
        0.5
    } else {
        quartiles(&counts, total)
    };
    0.9 * (spread / 1.34) * total.max(1.0).powf(-1.0 / (axes as f64 + 4.0))
}

/// The distance of the quartiles, at least a hundredth of a bin.
///
/// Noisy sums from the left are made to rise: the mean of the largest so far and the smallest yet to come.
fn quartiles(counts: &[f64], total: f64) -> f64 {
    let mut sums = Vec::with_capacity(counts.len());
    let mut risen = Vec::with_capacity(counts.len());
    let mut sum = 0.0_f64;
    let mut largest = 0.0_f64;
    for count in counts {
        sum += count;
        largest = largest.max(sum);
        sums.push(sum);
        risen.push(largest);
    }
    let mut least = total;
    for (sum, risen) in sums.iter_mut().zip(&risen).rev() {
        least = least.min(*sum);
        *sum = (least + risen) / 2.0;
    }
    let distance = quantile(&sums, 0.75 * total) - quantile(&sums, 0.25 * total);
    distance.max(0.01 / BINS as f64)
}

/// The place on the axis where rising sums reach `wanted`.
fn quantile(sums: &[f64], wanted: f64) -> f64 {
    let mut before = 0.0;
    for (bin, sum) in sums.iter().enumerate() {
        if *sum >= wanted {
            let within = if *sum > before {
                (wanted - before) / (sum - before)
            } else {
                0.0
            };
            return (bin as f64 + within.clamp(0.0, 1.0)) / BINS as f64;
        }
        before = *sum;
    }
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_those_of_the_counts() {
        let even = vec![10.0; BINS];
        assert!((quartiles(&even, 160.0) - 0.5).abs() < 1e-12);
        let mut one = vec![0.0; BINS];
        one[5] = 100.0;
        assert!((quartiles(&one, 100.0) - 0.5 / 16.0).abs() < 1e-12);
        // Counts below zero, as noise makes them, do not turn the quartiles around.
        for noise in [[-30.0, 40.0], [40.0, -30.0], [-90.0, -90.0]] {
            let mut counts = one.clone();
            counts[2] = noise[0];
            counts[12] = noise[1];
            let total = counts.iter().sum::<f64>();
            if total >= 1.0 {
                let spread = quartiles(&counts, total);
                assert!(spread > 0.0 && spread <= 1.0, "{noise:?}: {spread}");
            }
        }
    }
}
