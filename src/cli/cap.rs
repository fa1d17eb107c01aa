//! What the cap on a user's records drops, and what another one would.

use crate::cli::figures::three_digits;

/// The share of records that another cap would drop at most.
const FEW: f64 = 0.1;
/// More than this share is worth a warning.
const MUCH: f64 = 0.5;

/// A cap, and the share of records that it drops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapLoss {
    pub cap: u64,
    /// The share from 0 to 1.
    pub dropped: f64,
    /// The smallest cap that drops few.
    enough: u64,
}

impl CapLoss {
    /// The loss by a geometric law: users that have records in a window have `mean` of them, 1 or more, and each next one is as likely as the one before.
    /// The cap is at least 1.
    pub fn of_mean(cap: u64, mean: f64) -> Self {
        let has_next = 1.0 - 1.0 / mean;
        CapLoss::new(cap, |cap| has_next.powf(float(cap)))
    }

    /// The loss of users of whom each has so many records in a window, under a cap of at least 1.
    pub fn of_counts(cap: u64, counts: &[u64]) -> Self {
        let records = float(counts.iter().sum::<u64>().max(1));
        CapLoss::new(cap, |cap| {
            float(counts.iter().map(|count| count.saturating_sub(cap)).sum()) / records
        })
    }

    /// `dropped` is the share that a cap drops, which falls.
    fn new(cap: u64, dropped: impl Fn(u64) -> f64) -> Self {
        let mut low = 0;
        let mut enough = 1;
        while dropped(enough) > FEW && enough < u64::from(u32::MAX) {
            low = enough;
            enough *= 2;
        }
        while enough - low > 1 {
            let middle = low.midpoint(enough);
            if dropped(middle) > FEW {
                low = middle
            } else {
                enough = middle
            }
        }
        CapLoss {
            cap,
            dropped: dropped(cap),
            enough,
        }
    }

    pub fn is_much(self) -> bool {
        self.dropped > MUCH
    }

    /// Names the cap that drops few, and what it costs.
    pub fn alternative_in_words(self) -> String {
        let CapLoss { cap, enough, .. } = self;
        if cap == enough {
            return "no smaller cap drops 10 % at most".to_owned();
        }
        format!(
            "max_records_per_window = {enough} drops 10 % at most, at the same sizes with {} times the noise",
            three_digits(float(enough) / float(cap))
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures to show")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_drop_is_counted() {
        // Of ten records a cap of 3 keeps 1 + 3 + 3.
        let loss = CapLoss::of_counts(3, &[1, 4, 5]);
        assert_eq!((loss.dropped, loss.enough, loss.is_much()), (0.3, 4, false));
        assert!(
            loss.alternative_in_words().starts_with(
                "max_records_per_window = 4 drops 10 % at most, at the same sizes with 1.33 times the noise"
            )
        );
        let loss = CapLoss::of_counts(3, &[100]);
        assert_eq!(
            (loss.dropped, loss.enough, loss.is_much()),
            (0.97, 90, true)
        );
        // Half is not more than half.
        assert!(!CapLoss::of_counts(3, &[6]).is_much());
        let loss = CapLoss::of_counts(1, &[]);
        assert_eq!((loss.dropped, loss.enough), (0.0, 1));
        assert_eq!(
            loss.alternative_in_words(),
            "no smaller cap drops 10 % at most"
        );
    }

    #[test]
    fn what_a_geometric_law_drops_is_what_its_draws_do() {
        for (cap, mean) in [(1, 1.0), (1, 8.0), (3, 8.0), (20, 2.5)] {
            // So many of a million users have each count.
            let has_next: f64 = 1.0 - 1.0 / mean;
            let mut records = 0.0;
            let mut dropped = 0.0;
            for count in 1..1000_u64 {
                let users = has_next.powf(float(count - 1)) / mean;
                records += users * float(count);
                dropped += users * float(count.saturating_sub(cap));
            }
            let loss = CapLoss::of_mean(cap, mean);
            assert!(
                (loss.dropped - dropped / records).abs() < 1e-6,
                "{cap} of {mean}: {loss:?}"
            );
        }
        let loss = CapLoss::of_mean(3, 8.0);
        assert_eq!((loss.enough, loss.is_much()), (18, true));
    }
}
