//! What the metrics say of a window, no earlier than its synopses are due.
//!
//! A solver takes as long as the records ask of it. Were a window counted when it is paid for, whoever scrapes the default
//! level would see how long that took.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use super::Health;
use crate::clock::Timestamp;
use crate::ledger::Ledger;
use crate::mechanism::calibrate::Epsilon;
use crate::metrics::Metrics;

/// The figures of the ledger: the schedule and the budget, nothing of the records.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    rows: u64,
    closed_until: Timestamp,
    /// In the newest block charged.
    spent: Option<Epsilon>,
}

impl Figures {
    pub fn of(ledger: &Ledger) -> Self {
        let spent = ledger.blocks().next_back().map(|(_, spent)| spent);
        Figures { rows: ledger.head().sequence, closed_until: ledger.next_window(), spent }
    }

    pub fn show(self, total: Epsilon, metrics: &Metrics) {
        metrics.ledger_entries.set(i64::try_from(self.rows).unwrap_or(i64::MAX));
        #[expect(clippy::cast_precision_loss, reason = "a time to show")]
        metrics.closed_until.set(self.closed_until.micros() as f64 / 1e6);
        if let Some(spent) = self.spent {
            metrics.spent.set(spent.to_f64());
            metrics.used.set(spent.to_f64() / total.to_f64());
        }
    }
}

/// Whether a window could be paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Released,
    Withheld,
}

/// What waits to be told, in the order of the windows.
#[derive(Debug, Default)]
pub struct News(VecDeque<(Timestamp, Outcome, Figures)>);

impl News {
    /// `due` is when the window's synopses are.
    pub fn add(&mut self, due: Timestamp, outcome: Outcome, figures: Figures) {
        self.0.push_back((due, outcome, figures));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells what is due.
    pub fn tell(&mut self, now: Timestamp, total: Epsilon, metrics: &Metrics, health: &Health) {
        while let Some((_, outcome, figures)) = self.0.pop_front_if(|(due, ..)| *due <= now) {
            match outcome {
                Outcome::Released => metrics.released.inc(),
                Outcome::Withheld => metrics.withheld.inc(),
            }
            health.spent.store(outcome == Outcome::Withheld, Relaxed);
            figures.show(total, metrics);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Detail;

    /// A window whose solver was quick and one whose solver was slow look the same until they are due, and then too.
    #[test]
    fn how_long_a_window_took_does_not_show_before_it_is_due() {
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000);
        let total = Epsilon::from_trillionths(1_000_000_000_000);
        let watch = |paid: i64| -> Vec<String> {
            let metrics = Metrics::new(Detail::Safe, "news", "0").unwrap();
            let health = Health::default();
            let mut news = News::default();
            (0..20)
                .map(|second| {
                    if second == paid {
                        let spent = Some(Epsilon::from_trillionths(100_000_000_000));
                        news.add(at(10), Outcome::Released, Figures { rows: 2, closed_until: at(5), spent });
                    }
                    news.tell(at(second), total, &metrics, &health);
                    metrics.render().unwrap()
                })
                .collect()
        };
        let [quick, slow] = [watch(0), watch(9)];
        assert_eq!(quick, slow);
        assert_ne!(quick[9], quick[10]);
        // A worker that is late shows it: that is not protected.
        assert_ne!(watch(12), quick);
    }

    #[test]
    fn windows_are_told_in_order_and_withheld_ones_too() {
        let at = Timestamp::from_micros;
        let metrics = Metrics::new(Detail::Safe, "news", "0").unwrap();
        let (health, mut news) = (Health::default(), News::default());
        for (window, outcome) in [(1, Outcome::Released), (2, Outcome::Withheld), (3, Outcome::Released)] {
            news.add(at(window), outcome, Figures { rows: 1, closed_until: at(window), spent: None });
        }
        for (now, counts, is_spent) in [(0, [0, 0], false), (1, [1, 0], false), (2, [1, 1], true), (9, [2, 1], false)] {
            news.tell(at(now), Epsilon::from_trillionths(1), &metrics, &health);
            assert_eq!([metrics.released.get(), metrics.withheld.get()], counts);
            assert_eq!(health.spent.load(Relaxed), is_spent);
        }
        assert!(news.is_empty());
    }
}
