//! The state that the probes see: flags that the loops set, never the data.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::metrics::Metrics;
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};

/// A loop without a heartbeat for this long, plus the time that a window can take, hangs. Publishing waits less for a
/// broker.
const HANGS_AFTER: Duration = Duration::from_secs(180);
/// A request without an answer for this long, and a window that is not published for this long after it was due, plus the time that
/// a window can take, make a worker unready.
const OVERDUE_AFTER: Duration = Duration::from_secs(10);
/// Multiplications per second of a slow machine.
const SLOW_PRODUCTS_PER_SECOND: u64 = 100_000_000;

/// Shared between the loops, which set it, and the endpoints, which read it.
#[derive(Debug, Default)]
pub struct Health {
    /// The witness was read and agrees with the ledger.
    pub witnessed: AtomicBool,
    /// The last attempt to publish what is due has not failed.
    pub publishing: AtomicBool,
    /// Another worker acts, and this one follows it.
    pub following: AtomicBool,
    /// The newest window was withheld: the budget of its block is spent.
    pub spent: AtomicBool,
    /// Those of the worker that runs; none before it does.
    readers: Mutex<Vec<Arc<ReaderHealth>>>,
    /// The clock of the worker that runs.
    clock: Mutex<Option<ScheduleClock>>,
    last_release: AtomicI64,
    /// Seconds that a window can take to compute.
    allowed: AtomicU64,
    /// The time at which the request to witness or output began that has no answer yet; 0 without one.
    asked: AtomicI64,
    /// The time at which the next window was due, or the last progress of a worker that is behind its schedule; 0 if nothing is due. Later than
    /// now if the window is not due yet.
    owed: AtomicI64,
}

/// A step of delivery, as the probes see it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveryReport {
    /// It has published a synopsis.
    pub has_published: bool,
    /// The time at which the next window is due, of those that are paid for and accepted.
    pub next_due: Option<Timestamp>,
    /// Rows still wait for the witness to accept them.
    pub is_unaccepted: bool,
    /// The time at which the window is due that closes next, if it is to be published in time.
    pub coming_due: Option<Timestamp>,
}

impl DeliveryReport {
    /// The report of a worker that follows another one: it owes nothing.
    pub fn of_follower() -> Self {
        DeliveryReport {
            has_published: true,
            ..DeliveryReport::default()
        }
    }
}

/// The state of one reader that the probes see.
#[derive(Debug, Default)]
pub struct ReaderHealth {
    /// Its partitions were found and are being read.
    pub reading: AtomicBool,
    last_read: AtomicI64,
}

impl ReaderHealth {
    /// Records a heartbeat.
    pub fn record_heartbeat(&self) {
        self.last_read
            .store(Timestamp::now().micros(), Ordering::Relaxed);
    }
}

impl Health {
    /// Sets how many multiplications a window can take: a public number, so that no records can make a worker look hung.
    pub fn allow_products(&self, products: u64) {
        self.allowed
            .store(products / SLOW_PRODUCTS_PER_SECOND, Ordering::Relaxed);
    }

    /// Records a heartbeat of the loop that releases.
    pub fn record_heartbeat(&self) {
        self.last_release
            .store(Timestamp::now().micros(), Ordering::Relaxed);
    }

    /// Returns to the state before the first heartbeat: what is opened anew waits for its brokers as long as it takes.
    pub fn stand_still(&self) {
        self.witnessed.store(false, Ordering::Relaxed);
        self.last_release.store(0, Ordering::Relaxed);
        self.readers().clear();
    }

    /// Begins by this clock and with so many readers, none of which reads yet.
    pub(super) fn begin_readers(
        &self,
        clock: &ScheduleClock,
        readers: usize,
    ) -> Vec<Arc<ReaderHealth>> {
        let all: Vec<_> = (0..readers).map(|_| Arc::default()).collect();
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock.clone());
        self.readers().clone_from(&all);
        all
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Arc<ReaderHealth>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether every reader reads its partitions.
    pub(super) fn is_reading(&self) -> bool {
        let readers = self.readers();
        !readers.is_empty()
            && readers
                .iter()
                .all(|reader| reader.reading.load(Ordering::Relaxed))
    }

    /// Returns whether every loop had a heartbeat lately, or has not started yet.
    pub fn is_alive(&self) -> bool {
        let now = Timestamp::now();
        let patience =
            HANGS_AFTER.saturating_add(Duration::from_secs(self.allowed.load(Ordering::Relaxed)));
        has_beat_since(&self.last_release, now, patience)
            && self
                .readers()
                .iter()
                .all(|reader| has_beat_since(&reader.last_read, now, patience))
    }

    /// Notes that a request to witness or output begins.
    pub(super) fn request_begins(&self) {
        self.asked
            .store(Timestamp::now().micros(), Ordering::Relaxed);
    }

    /// Notes that it was answered, or has failed.
    pub(super) fn request_ends(&self) {
        self.asked.store(0, Ordering::Relaxed);
    }

    /// Notes that a window was paid for that is due at `due`. Withheld windows are not due.
    pub(super) fn owe_window(&self, due: Timestamp, now: Timestamp) {
        // Windows are due in order, so that an earlier one stays.
        let _ = self.owed.compare_exchange(
            0,
            due.max(now).micros(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Records what a step of delivery has done.
    ///
    /// One clock for all that stands between the input and the output: what waits for the brokers of the one and then for those of
    /// the other is as late as what waits for one of them as long.
    pub(super) fn record_delivery(&self, report: &DeliveryReport, now: Timestamp) {
        let DeliveryReport {
            has_published,
            next_due,
            is_unaccepted,
            coming_due,
        } = *report;
        let owed = self.owed.load(Ordering::Relaxed);
        let owed = match next_due {
            Some(due) if owed == 0 || has_published || due > now => due.max(now).micros(),
            None if !is_unaccepted => coming_due.map_or(0, Timestamp::micros),
            // Every synopsis that is published is progress.
            _ if owed != 0 && has_published => now.micros(),
            _ => owed,
        };
        self.owed.store(owed, Ordering::Relaxed);
    }

    /// Returns whether an answer, or the publication of a window, has been due for too long.
    fn is_overdue(&self, now: Timestamp) -> bool {
        let patience =
            OVERDUE_AFTER.saturating_add(Duration::from_secs(self.allowed.load(Ordering::Relaxed)));
        is_older_than(&self.asked, now, OVERDUE_AFTER) || is_older_than(&self.owed, now, patience)
    }

    /// Returns whether the worker's clock is so far behind the brokers' that each window is published too late, whoever acts now.
    fn is_behind(&self) -> bool {
        let clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        clock
            .as_ref()
            .is_some_and(|clock| clock.delay_behind_brokers() > OVERDUE_AFTER)
    }

    /// The parts that must work.
    fn worker_parts(&self) -> [WorkerPart; 4] {
        [
            WorkerPart {
                name: "clock",
                task: "a right clock (that of this machine is behind the brokers')",
                works: !self.is_behind(),
            },
            WorkerPart {
                name: "input",
                task: "reading the input",
                works: self.is_reading(),
            },
            WorkerPart {
                name: "witness",
                task: "agreeing with the witness",
                works: self.witnessed.load(Ordering::Relaxed),
            },
            WorkerPart {
                name: "output",
                task: "publishing what is due",
                works: self.publishing.load(Ordering::Relaxed)
                    && !self.is_overdue(Timestamp::now()),
            },
        ]
    }

    /// The tasks that the worker still waits for, in words.
    pub fn missing_tasks(&self) -> Vec<&'static str> {
        self.worker_parts()
            .into_iter()
            .filter(|part| !part.works)
            .map(|part| part.task)
            .collect()
    }

    /// Shows which parts work, as the readiness probe does.
    pub fn show_parts(&self, metrics: &Metrics) {
        for WorkerPart { name, works, .. } in self.worker_parts() {
            metrics
                .ready
                .with_label_values(&[name])
                .set(i64::from(works));
        }
    }

    /// A remark that people should read about a ready worker.
    pub fn readiness_remark(&self) -> &'static str {
        if self.following.load(Ordering::Relaxed) {
            ", following another worker"
        } else if self.spent.load(Ordering::Relaxed) {
            "; the budget of the current block is spent"
        } else {
            ""
        }
    }
}

/// A part of the worker that must work.
struct WorkerPart {
    /// Its name in the metrics.
    name: &'static str,
    /// Its task in words.
    task: &'static str,
    works: bool,
}

/// Returns whether the last heartbeat is less than `patience` old, or none has come yet.
fn has_beat_since(heartbeat: &AtomicI64, now: Timestamp, patience: Duration) -> bool {
    let last = heartbeat.load(Ordering::Relaxed);
    last == 0 || now.since(Timestamp::from_micros(last)) < patience
}

/// Returns whether `moment` is set, and longer ago than `patience`.
fn is_older_than(moment: &AtomicI64, now: Timestamp, patience: Duration) -> bool {
    let moment = moment.load(Ordering::Relaxed);
    moment != 0 && now.since(Timestamp::from_micros(moment)) > patience
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_takes_as_long_as_it_may_does_not_hang() {
        let health = Health::default();
        assert!(health.is_alive());
        let ago =
            |seconds: i64| Timestamp::from_micros(Timestamp::now().micros() - 1_000_000 * seconds);
        health
            .last_release
            .store(ago(600).micros(), Ordering::Relaxed);
        assert!(!health.is_alive());
        health.allow_products(1000 * SLOW_PRODUCTS_PER_SECOND);
        assert!(health.is_alive());
        health
            .last_release
            .store(ago(1200).micros(), Ordering::Relaxed);
        assert!(!health.is_alive());
    }

    #[test]
    fn what_was_paid_for_and_is_due_is_published_or_the_worker_is_not_ready() {
        let health = Health::default();
        let start = Timestamp::from_micros(1_000_000_000);
        let at = |seconds: u64| start.plus(Duration::from_secs(seconds));
        assert!(!health.is_overdue(at(1000)), "nothing is due");
        health.owe_window(at(5), at(0));
        health.owe_window(at(65), at(1));
        assert!(!health.is_overdue(at(15)) && health.is_overdue(at(16)));
        // Every published synopsis is progress, and a step that publishes nothing is none.
        health.record_delivery(
            &DeliveryReport {
                has_published: true,
                next_due: Some(at(6)),
                ..DeliveryReport::default()
            },
            at(16),
        );
        assert!(!health.is_overdue(at(26)));
        health.record_delivery(
            &DeliveryReport {
                next_due: Some(at(6)),
                is_unaccepted: true,
                ..DeliveryReport::default()
            },
            at(26),
        );
        assert!(health.is_overdue(at(27)));
        health.record_delivery(&DeliveryReport::default(), at(27));
        assert!(!health.is_overdue(at(1000)), "everything is published");
        // What is withheld has no synopses: a claim for it is not due.
        health.record_delivery(
            &DeliveryReport {
                is_unaccepted: true,
                ..DeliveryReport::default()
            },
            at(1000),
        );
        assert!(!health.is_overdue(at(2000)));
        health.record_delivery(
            &DeliveryReport {
                next_due: Some(at(3000)),
                ..DeliveryReport::default()
            },
            at(2000),
        );
        assert!(!health.is_overdue(at(3010)) && health.is_overdue(at(3011)));
    }

    #[test]
    fn what_is_due_later_is_not_late_after_a_late_publication() {
        let health = Health::default();
        let start = Timestamp::from_micros(1_000_000_000);
        let at = |seconds: u64| start.plus(Duration::from_secs(seconds));
        health.owe_window(at(0), at(0));
        // One window is published late, and the next one, which is due in an hour, is claimed and then accepted.
        health.record_delivery(
            &DeliveryReport {
                has_published: true,
                is_unaccepted: true,
                ..DeliveryReport::default()
            },
            at(5),
        );
        health.record_delivery(
            &DeliveryReport {
                next_due: Some(at(3600)),
                ..DeliveryReport::default()
            },
            at(6),
        );
        assert!(!health.is_overdue(at(3610)) && health.is_overdue(at(3611)));
    }

    #[test]
    fn a_window_that_comes_late_is_late_whatever_it_waits_for() {
        let health = Health::default();
        let start = Timestamp::from_micros(1_000_000_000);
        let at = |seconds: u64| start.plus(Duration::from_secs(seconds));
        health.record_delivery(
            &DeliveryReport {
                has_published: true,
                coming_due: Some(at(60)),
                ..DeliveryReport::default()
            },
            at(0),
        );
        // The brokers of the input do not answer for nine seconds, and then those of the witness for nine.
        health.record_delivery(
            &DeliveryReport {
                coming_due: Some(at(60)),
                ..DeliveryReport::default()
            },
            at(65),
        );
        health.owe_window(at(60), at(69));
        assert!(!health.is_overdue(at(70)));
        health.record_delivery(
            &DeliveryReport {
                is_unaccepted: true,
                coming_due: Some(at(120)),
                ..DeliveryReport::default()
            },
            at(70),
        );
        assert!(health.is_overdue(at(71)) && health.is_overdue(at(78)));
        health.record_delivery(
            &DeliveryReport {
                has_published: true,
                coming_due: Some(at(120)),
                ..DeliveryReport::default()
            },
            at(78),
        );
        assert!(!health.is_overdue(at(130)) && health.is_overdue(at(131)));
        // Who is behind the schedule catches up.
        health.record_delivery(
            &DeliveryReport {
                has_published: true,
                ..DeliveryReport::default()
            },
            at(140),
        );
        assert!(!health.is_overdue(at(1000)));
    }

    #[test]
    fn a_request_that_hangs_is_seen_before_it_fails() {
        let health = Health::default();
        health.request_begins();
        let now = Timestamp::now();
        assert!(!health.is_overdue(now) && health.is_overdue(now.plus(Duration::from_secs(11))));
        health.request_ends();
        assert!(!health.is_overdue(now.plus(Duration::from_secs(11))));
    }
}
