//! An empirical law: how many of so many numbers are at most each of some thresholds.

/// Counts between thresholds.
#[derive(Clone, Debug)]
pub struct ThresholdCounts {
    /// They rise.
    thresholds: Vec<f64>,
    /// One more than there are thresholds.
    counts: Vec<u64>,
    total: u64,
}

impl ThresholdCounts {
    pub fn new(mut thresholds: Vec<f64>) -> Self {
        thresholds.sort_by(f64::total_cmp);
        thresholds.dedup();
        let counts = vec![0; thresholds.len() + 1];
        ThresholdCounts {
            thresholds,
            counts,
            total: 0,
        }
    }

    pub fn add(&mut self, x: f64) {
        let below = self.thresholds.partition_point(|threshold| *threshold < x);
        if let Some(count) = self.counts.get_mut(below) {
            *count += 1;
        }
        self.total += 1;
    }

    /// Adds what another of the same thresholds has counted.
    pub fn join(&mut self, other: &ThresholdCounts) {
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(ours, theirs)| *ours += theirs);
        self.total += other.total;
    }

    pub fn thresholds(&self) -> &[f64] {
        &self.thresholds
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// The parts that are at most each threshold.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn parts_up_to(&self) -> Vec<f64> {
        let mut sum = 0;
        let mut parts = Vec::with_capacity(self.thresholds.len());
        for count in self.counts.iter().take(self.thresholds.len()) {
            sum += count;
            parts.push(sum as f64 / self.total.max(1) as f64);
        }
        parts
    }

    /// The largest distance of its distribution function from another at the thresholds.
    pub fn distance(&self, law: &[f64]) -> f64 {
        largest_difference(&self.parts_up_to(), law)
    }
}

/// The largest difference.
pub(super) fn largest_difference(one: &[f64], other: &[f64]) -> f64 {
    one.iter()
        .zip(other)
        .map(|(one, other)| (one - other).abs())
        .fold(0.0, f64::max)
}

/// Thresholds at even steps of a distribution function that rises from `low` to `high`.
pub(super) fn quantiles(count: u32, low: f64, high: f64, law: impl Fn(f64) -> f64) -> Vec<f64> {
    (1..count)
        .map(|i| quantile(f64::from(i) / f64::from(count), low, high, &law))
        .collect()
}

/// The place between `low` and `high` where a distribution function reaches `part`.
fn quantile(part: f64, mut low: f64, mut high: f64, law: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if law(middle) < part {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_what_is_at_most_a_threshold() {
        let mut tally = ThresholdCounts::new(vec![2.0, 1.0, 2.0]);
        [0.5, 1.0, 1.5, 2.0, 9.0]
            .into_iter()
            .for_each(|x| tally.add(x));
        assert_eq!(
            (tally.thresholds(), tally.parts_up_to()),
            (&[1.0, 2.0][..], vec![0.4, 0.8])
        );
        assert!((tally.distance(&[0.5, 0.5]) - 0.3).abs() < 1e-12);
        let other = tally.clone();
        tally.join(&other);
        assert_eq!((tally.total(), tally.parts_up_to()), (10, vec![0.4, 0.8]));
        let found = quantiles(4, 0.0, 1.0, |x| x * x);
        assert!(
            found
                .iter()
                .zip([0.25_f64, 0.5, 0.75])
                .all(|(x, y)| (x * x - y).abs() < 1e-6),
            "{found:?}"
        );
    }
}
