//! Reports of windows in metrics and log, no earlier than their synopses are due.
//!
//! How long a solver takes depends on the records. If a window were counted when it is paid for, anyone who scrapes the
//! default metrics would learn that time.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use tracing::{info, warn};

use super::health::Health;
use crate::metrics::{Metrics, WithheldReason};
use bernstream_ledger as ledger;
use bernstream_ledger::{ClosedWindow, Ledger};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// The status of the ledger: schedule and budget, nothing about the records.
#[derive(Clone, Copy, Debug)]
pub struct LedgerStatus {
    rows: u64,
    pub closed_until: Timestamp,
    /// By the newest block charged.
    spent: Option<Price>,
    /// The outcome of the newest window; `None` before the first.
    outcome: Option<WindowOutcome>,
}

impl LedgerStatus {
    /// The status after the newest window, whose outcome is `outcome`.
    pub fn after_newest_window(ledger: &Ledger, outcome: Option<WindowOutcome>) -> Self {
        let spent = ledger.newest_block().map(|(_, spent)| spent);
        LedgerStatus {
            rows: ledger.head().sequence,
            closed_until: ledger.next_window(),
            spent,
            outcome,
        }
    }

    pub fn show_status(self, total: Price, metrics: &Metrics, health: &Health) {
        metrics
            .ledger_entries
            .set(i64::try_from(self.rows).unwrap_or(i64::MAX));
        metrics.closed_until.set_time(Some(self.closed_until));
        let why = self.outcome.and_then(WindowOutcome::withheld);
        metrics.show_withheld(why);
        health
            .spent
            .store(why == Some(WithheldReason::Budget), Relaxed);
        if let Some(spent) = self.spent {
            metrics.show_budget(spent, total);
        }
    }
}

/// The outcome of a window: it could be paid for, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOutcome {
    Released,
    Withheld(WithheldReason),
}

impl WindowOutcome {
    fn of_closed(closed: &ClosedWindow, why: impl Fn(Span) -> WithheldReason) -> Self {
        match closed.outcome {
            ledger::ReleaseOutcome::Released { .. } => WindowOutcome::Released,
            ledger::ReleaseOutcome::Withheld => WindowOutcome::Withheld(why(closed.window)),
        }
    }

    fn withheld(self) -> Option<WithheldReason> {
        match self {
            WindowOutcome::Released => None,
            WindowOutcome::Withheld(why) => Some(why),
        }
    }
}

/// A window that is closed, and what is shown of it once it is due.
#[derive(Debug)]
pub struct PendingReport {
    pub due: Timestamp,
    pub window: Span,
    pub outcome: WindowOutcome,
    /// The ledger after this window.
    pub status: LedgerStatus,
}

/// Windows that are closed and not due yet, in order.
#[derive(Debug, Default)]
pub struct PendingReports(VecDeque<PendingReport>);

/// The reports that earlier runs left.
pub struct RecalledReports {
    /// The status that is due by now.
    pub status: LedgerStatus,
    pub pending: PendingReports,
}

impl PendingReports {
    /// Recalls what earlier runs left. `due` says when a window is due, a public time whether it was released or not; `why` says why
    /// one was withheld.
    ///
    /// If the newest row were shown at once, a restart would reveal whether a window that is not due is paid for already.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read or is damaged.
    pub fn recall_pending(
        ledger: &Ledger,
        now: Timestamp,
        due: impl Fn(Span) -> Timestamp,
        why: impl Fn(Span) -> WithheldReason,
    ) -> Result<RecalledReports, ledger::LedgerError> {
        let newest = ledger.newest_windows(|closed| due(closed.window) > now)?;
        let (first_row, first_window) = ledger.complete_from();
        let charges: Vec<_> = newest
            .iter()
            .map(|(_, closed)| charges_of(closed))
            .collect();
        let most_blocks = charges.iter().map(|charges| charges.len()).sum::<usize>() + 1;
        let blocks = ledger.newest_blocks(most_blocks)?;
        let outcome = newest
            .first()
            .map(|(_, closed)| WindowOutcome::of_closed(closed, &why));
        let mut status = LedgerStatus::after_newest_window(ledger, outcome);
        let mut pending = VecDeque::new();
        for (index, (_, closed)) in newest.iter().enumerate() {
            let due = due(closed.window);
            if due <= now {
                break;
            }
            pending.push_front(PendingReport {
                due,
                window: closed.window,
                outcome: WindowOutcome::of_closed(closed, &why),
                status,
            });
            let spent = spent_before(&blocks, charges.get(..=index).unwrap_or_default());
            status = match newest.get(index + 1) {
                Some((row, closed)) => LedgerStatus {
                    rows: *row,
                    closed_until: closed.window.end,
                    spent,
                    outcome: Some(WindowOutcome::of_closed(closed, &why)),
                },
                None => LedgerStatus {
                    rows: first_row,
                    closed_until: first_window,
                    spent,
                    outcome: None,
                },
            };
        }
        Ok(RecalledReports {
            status,
            pending: PendingReports(pending),
        })
    }

    /// Adds a closed window behind those that are due earlier.
    pub fn add_report(&mut self, report: PendingReport) {
        self.0.push_back(report);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports every window that is due; returns the end of the newest one.
    pub fn report_due(
        &mut self,
        now: Timestamp,
        total: Price,
        metrics: &Metrics,
        health: &Health,
    ) -> Option<Timestamp> {
        let mut newest = None;
        while let Some(report) = self.0.pop_front_if(|report| report.due <= now) {
            let window = report.window;
            match report.outcome {
                WindowOutcome::Released => {
                    metrics.released.inc();
                    info!(window = %window.start, "window released");
                }
                WindowOutcome::Withheld(why) => {
                    metrics.withheld.inc();
                    let why = match why {
                        WithheldReason::Budget => {
                            "the remaining budget of its block is too small, or its share has ended"
                        }
                        WithheldReason::Over => "every release is over",
                    };
                    warn!(window = %window.start, "window withheld: {why}; running sums, where there are any, restart after it");
                }
            }
            report.status.show_status(total, metrics, health);
            newest = Some(report.status.closed_until);
        }
        newest
    }
}

fn charges_of(closed: &ClosedWindow) -> &[(Span, Price)] {
    match &closed.outcome {
        ledger::ReleaseOutcome::Released { charges, .. } => charges,
        ledger::ReleaseOutcome::Withheld => &[],
    }
}

/// The spending of the newest charged block before the charges `later`; `blocks` come newest first.
fn spent_before(blocks: &[(Span, Price)], later: &[&[(Span, Price)]]) -> Option<Price> {
    for (block, spent) in blocks {
        let mut before = Some(*spent);
        for (charged, price) in later.iter().copied().flatten() {
            if charged == block {
                before = before.and_then(|spent| spent.checked_sub(*price));
            }
        }
        if before.is_some_and(|spent| !spent.is_zero()) {
            return before;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::metrics::MetricsDetail;
    use bernstream_functions::density::LatticeDensity;
    use bernstream_noise::noise::Generator;
    use bernstream_noise::{Exact, Mechanism};
    use bernstream_release::{Dequantized, Sealed, ValueScaling};
    use bernstream_synopsis::Positions;
    use bernstream_synopsis::Sensitivity;
    use bernstream_synopsis::calibrate::Epsilon;

    /// A window whose solver was quick and one whose solver was slow look the same until they are due, and then too.
    fn sealed_message() -> Sealed {
        let density = LatticeDensity::new(&[0.1], 2).unwrap();
        let mechanism = Mechanism::laplace(Sensitivity(100), "1".parse().unwrap()).unwrap();
        let noisy =
            mechanism.release_noisy(&Exact::new(vec![1, 2, 3]), &mut Generator::frozen([0; 32]));
        let description = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
        Sealed::new(
            description,
            Dequantized::from_noisy(&noisy, &density, ValueScaling::of_target(&density)),
        )
        .unwrap()
    }

    #[test]
    fn how_long_a_window_took_does_not_show_before_it_is_due() {
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000);
        let total = Price::Pure(Epsilon::from_trillionths(1_000_000_000_000));
        let watch = |paid: i64| -> Vec<String> {
            let metrics = Metrics::new(MetricsDetail::Safe, "news", "pure epsilon", "0").unwrap();
            let health = Health::default();
            let mut reports = PendingReports::default();
            (0..20)
                .map(|second| {
                    if second == paid {
                        let spent = Some(Price::Pure(Epsilon::from_trillionths(100_000_000_000)));
                        reports.add_report(PendingReport {
                            due: at(10),
                            window: Span {
                                start: at(4),
                                end: at(5),
                            },
                            outcome: WindowOutcome::Released,
                            status: LedgerStatus {
                                rows: 2,
                                closed_until: at(5),
                                spent,
                                outcome: Some(WindowOutcome::Released),
                            },
                        });
                    }
                    reports.report_due(at(second), total, &metrics, &health);
                    metrics.render_text().unwrap()
                })
                .collect()
        };
        let [quick, slow] = [watch(0), watch(9)];
        assert_eq!(quick, slow);
        assert_ne!(quick[9], quick[10]);
        // A worker that is late shows it: that is not protected.
        assert_ne!(watch(12), quick);
    }

    /// A restart between a window's payment and its due time: the metrics are those of a worker that has not paid yet.
    #[test]
    #[expect(clippy::too_many_lines, reason = "one story of a ledger")]
    fn a_restart_shows_no_window_before_it_is_due() {
        let at = |minute: i64| Timestamp::from_micros(minute * 60_000_000);
        let hour = |n: i64| Span {
            start: at(60 * n),
            end: at(60 * n + 60),
        };
        let tenths = |n: u64| Price::Pure(Epsilon::from_trillionths(n * 100_000_000_000));
        let folder = tempfile::tempdir().unwrap();
        let params = ledger::LedgerParams {
            path: folder.path().to_path_buf(),
            keep_published: Duration::from_secs(1),
        };
        let genesis = ledger::Genesis {
            ledger: "1".into(),
            created: at(0),
            settings: "{}".into(),
            total: tenths(10),
            first: at(0),
            backfill_until: None,
            input: "i".into(),
            witness: "w".into(),
            previous: None,
            reach: Duration::ZERO,
            budget: None,
        };
        let mut ledger = Ledger::create(&params, genesis).unwrap();
        // A window is due ten minutes after its end, released or not.
        let due = |window: Span| window.end.plus(Duration::from_secs(600));
        let seen = |ledger: &Ledger, minute: i64| -> Vec<String> {
            let metrics = Metrics::new(MetricsDetail::Safe, "news", "pure epsilon", "0").unwrap();
            let health = Health::default();
            let RecalledReports {
                status,
                pending: mut reports,
            } = PendingReports::recall_pending(ledger, at(minute), due, |_| WithheldReason::Budget)
                .unwrap();
            status.show_status(tenths(10), &metrics, &health);
            // What is reported as the clock goes on.
            (minute..minute + 200)
                .map(|minute| {
                    reports.report_due(at(minute), tenths(10), &metrics, &health);
                    metrics.render_text().unwrap()
                })
                .collect()
        };
        let mut before = seen(&ledger, 0);
        for n in 0..4 {
            let now = 60 * n + 60;
            let block = Span {
                start: at(120 * (n / 2)),
                end: at(120 * (n / 2) + 120),
            };
            if n == 2 {
                ledger
                    .withhold_window(hour(n), Positions::default())
                    .unwrap();
            } else {
                let sealed = vec![sealed_message()];
                let charges = vec![(block, tenths(3))];
                let closing = ledger::ClosingWindow {
                    window: hour(n),
                    publish_at: due_at(now),
                    charges,
                    ends: Positions::default(),
                    sealed,
                    states: Vec::new(),
                };
                ledger.pay_window(closing).unwrap();
            }
            let after = seen(&ledger, now);
            // Until the minute before it is due nobody can tell that it was paid for; then it shows.
            assert_eq!(
                after[..10],
                vec![before.last().cloned().unwrap(); 10],
                "window {n}"
            );
            assert_ne!(after[9], after[10], "window {n}");
            let outcome = if n == 2 {
                WindowOutcome::Withheld(WithheldReason::Budget)
            } else {
                WindowOutcome::Released
            };
            let status = LedgerStatus::after_newest_window(&ledger, Some(outcome));
            assert_eq!(
                spent_before(&ledger.newest_blocks(1).unwrap(), &[]),
                status.spent
            );
            // As a worker shows it that was there all the time, but for what it counted since its start.
            let metrics = Metrics::new(MetricsDetail::Safe, "news", "pure epsilon", "0").unwrap();
            status.show_status(tenths(10), &metrics, &Health::default());
            before = vec![metrics.render_text().unwrap()];
        }
        fn due_at(end: i64) -> Timestamp {
            Timestamp::from_micros((end + 10) * 60_000_000)
        }
        // Two windows at once, both paid for and neither due: each in its time.
        let both = seen(&ledger, 181);
        assert!(
            both[8] != both[9] && both[68] != both[69],
            "each at its time"
        );
    }

    #[test]
    fn windows_are_reported_in_order_and_withheld_ones_too() {
        let at = Timestamp::from_micros;
        let metrics = Metrics::new(MetricsDetail::Safe, "news", "pure epsilon", "0").unwrap();
        let health = Health::default();
        let mut reports = PendingReports::default();
        for (window, outcome) in [
            (1, WindowOutcome::Released),
            (2, WindowOutcome::Withheld(WithheldReason::Budget)),
            (3, WindowOutcome::Released),
        ] {
            let span = Span {
                start: at(window - 1),
                end: at(window),
            };
            reports.add_report(PendingReport {
                due: at(window),
                window: span,
                outcome,
                status: LedgerStatus {
                    rows: 1,
                    closed_until: at(window),
                    spent: None,
                    outcome: Some(outcome),
                },
            });
        }
        for (now, counts, is_spent) in [
            (0, [0, 0], false),
            (1, [1, 0], false),
            (2, [1, 1], true),
            (9, [2, 1], false),
        ] {
            reports.report_due(
                at(now),
                Price::Pure(Epsilon::from_trillionths(1)),
                &metrics,
                &health,
            );
            assert_eq!([metrics.released.get(), metrics.withheld.get()], counts);
            assert_eq!(health.spent.load(Relaxed), is_spent);
            let spent = "newest_window_withheld{reason=\"budget\",pipeline=\"news\"} 1";
            assert_eq!(metrics.render_text().unwrap().contains(spent), is_spent);
        }
        // Where every release is over nothing is spent.
        health.spent.store(true, Relaxed);
        let outcome = Some(WindowOutcome::Withheld(WithheldReason::Over));
        LedgerStatus {
            rows: 2,
            closed_until: at(9),
            spent: None,
            outcome,
        }
        .show_status(Price::Pure(Epsilon::from_trillionths(1)), &metrics, &health);
        assert!(!health.spent.load(Relaxed));
        assert!(reports.is_empty());
    }
}
