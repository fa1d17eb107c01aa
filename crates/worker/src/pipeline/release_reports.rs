//! The reports of a worker on what it releases: to its log, its probes and its metrics, and nothing before it is due.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use tracing::{error, info, warn};

use super::PipelineError;
use super::health::DeliveryReport;
use super::plan::ReleasePlan;
use super::releasing::{ComingWindow, LoggedRole, ReleaseTask};
use super::reports::{LedgerStatus, PendingReport, PendingReports, RecalledReports, WindowOutcome};
use bernstream_kafka::sink::deliver;
use bernstream_kafka::sink::deliver::DeliveryProgress;
use bernstream_ledger::witness::Witness;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

impl ReleaseTask<'_> {
    /// Reports that a step of delivery has failed, and is tried again.
    pub(super) fn report_failed_step(&mut self, why: &deliver::DeliveryError) {
        self.metrics.published.inc_by(why.published_before() as u64);
        self.health.publishing.store(false, Relaxed);
        let lost = why.lost_records();
        if lost.is_some() {
            self.metrics.show_lost(lost);
        }
        if !self.outage.record_failure(why.reason(), Instant::now()) {
            return;
        }
        match lost {
            Some(_) => error!("nothing is published: {why}"),
            None if why.is_missing() => {
                warn!(
                    "cannot publish now: brokers do not know a topic of output or ledger, as for a moment after an outage; trying again"
                );
            }
            None => warn!("cannot publish now: {why}; trying again with the same bytes"),
        }
    }

    /// Tells of records that somebody else has written to the topics of the ledger, and that count for nothing.
    fn show_strays(&mut self) {
        let strays = self.witness.strays();
        if strays == self.strays {
            return;
        }
        self.metrics.show_strays(strays);
        if strays.witness > self.strays.witness {
            warn_of_strays("witness");
        }
        if strays.budget > self.strays.budget {
            warn_of_strays("budget");
        }
        self.strays = strays;
    }

    /// Shows that a step of delivery has worked, and what it did.
    pub(super) fn report_step(&mut self, progress: &DeliveryProgress) -> Result<(), PipelineError> {
        let is_first = !self.health.witnessed.swap(true, Relaxed);
        if is_first {
            info!("the witness agrees with the ledger");
        }
        self.report_role();
        if progress.has_followed {
            self.report_due_windows();
            self.recall_reports()?;
        }
        self.report_waiting(progress);
        if !progress.has_claimed && !progress.is_waiting {
            self.accepted
                .store(self.ledger.next_window().micros(), Relaxed);
        }
        self.health.publishing.store(true, Relaxed);
        self.metrics.show_lost(None);
        self.show_strays();
        self.update_health(progress);
        if self.outage.record_recovery(Instant::now()) && !is_first {
            info!("publishing what is due again");
        }
        self.metrics.published.inc_by(progress.published as u64);
        Ok(())
    }

    /// Shows whether this worker acts or follows another one.
    fn report_role(&mut self) {
        let is_acting = self.ledger.is_acting();
        let role = match is_acting {
            true => LoggedRole::Acting,
            false => LoggedRole::Following,
        };
        if self.ledger.is_shared() && std::mem::replace(&mut self.logged_role, role) != role {
            match is_acting {
                true => info!("this worker acts"),
                false => info!("this worker follows another one, and acts when that does not"),
            }
        }
        self.health.following.store(!is_acting, Relaxed);
        self.metrics.acting.set(i64::from(is_acting));
    }

    /// Warns of another instance that this one waits for, and of a log that keeps too much.
    fn report_waiting(&mut self, progress: &DeliveryProgress) {
        if progress.is_waiting && !self.is_waiting && !self.ledger.is_shared() {
            warn!(
                "another instance of this ledger made the last accepted claim: is a copy of it running, or was it moved here? \
                 Waiting some seconds for the other one"
            );
        }
        if let Some(why) = self.ledger.log_refusal() {
            warn!("the ledger log keeps what nobody needs any more: {why}");
        }
        self.is_waiting = progress.is_waiting;
    }

    /// Tells the probes what the step has published, and what is due.
    fn update_health(&mut self, progress: &DeliveryProgress) {
        let now = Timestamp::now();
        let is_unaccepted = progress.has_claimed || progress.is_waiting;
        let report = match self.ledger.is_acting() || is_unaccepted {
            true => DeliveryReport {
                has_published: progress.published > 0,
                next_due: progress.next_due.map(|due| self.to_worker_clock(due)),
                is_unaccepted,
                coming_due: self.coming_window_due(),
            },
            false => DeliveryReport::of_follower(),
        };
        self.health.record_delivery(&report, now);
    }

    /// Reports a window that is in the ledger, as soon as it is due.
    pub(super) fn report_closed_window(
        &mut self,
        due: Timestamp,
        window: Span,
        outcome: WindowOutcome,
    ) {
        self.reports.add_report(PendingReport {
            due,
            window,
            outcome,
            status: LedgerStatus::after_newest_window(&self.ledger, Some(outcome)),
        });
        self.report_due_windows();
    }

    /// The due time of the window that closes next, if that was still to come when it became the next: a worker that is behind
    /// its schedule is measured by what it publishes.
    fn coming_window_due(&mut self) -> Option<Timestamp> {
        let start = self.ledger.next_window();
        if let Some(coming) = &self.coming
            && coming.start == start
        {
            return coming.due;
        }
        let ReleasePlan {
            rules, publication, ..
        } = self.plan;
        let scheduled =
            publication.scheduled_due_time(rules, start, self.ledger.genesis().backfill_until);
        let due = scheduled
            .filter(|due| *due > self.clock.now())
            .map(|due| self.to_worker_clock(due));
        self.coming = Some(ComingWindow { start, due });
        due
    }

    /// The time by the worker's clock, which the probes follow, at which the brokers' clock comes to `due`, or came to it.
    pub(super) fn to_worker_clock(&self, due: Timestamp) -> Timestamp {
        let brokers = self.clock.broker_time();
        Timestamp::now()
            .plus(due.since(brokers))
            .minus(brokers.since(due))
    }

    /// Shows every window that is due by now in log and metrics.
    pub(super) fn report_due_windows(&mut self) {
        let now = self.clock.now();
        if let Some(until) =
            self.reports
                .report_due(now, self.plan.total, &self.metrics, self.health)
        {
            self.plan.show_schedule(until, &self.ledger, &self.metrics);
            let ReleasePlan {
                rules, publication, ..
            } = self.plan;
            self.catch_up.report_progress(
                rules,
                until,
                publication.count_due_windows(
                    rules,
                    until,
                    self.ledger.genesis().backfill_until,
                    now,
                ),
            );
        }
    }

    /// Shows in the metrics what an earlier run left, but nothing before it is due.
    pub(super) fn recall_reports(&mut self) -> Result<(), PipelineError> {
        let genesis = self.ledger.genesis();
        self.metrics
            .show_beginning(&genesis.ledger, self.plan.total, self.plan.limit);
        let ReleasePlan {
            rules, publication, ..
        } = self.plan;
        let RecalledReports { status, pending } = PendingReports::recall_pending(
            &self.ledger,
            self.clock.now(),
            |window| {
                publication.due_time(window, rules.window_cutoff(window, genesis.backfill_until))
            },
            |window| self.plan.why_withheld(window, self.beginning),
        )?;
        status.show_status(self.plan.total, &self.metrics, self.health);
        self.plan
            .show_schedule(status.closed_until, &self.ledger, &self.metrics);
        self.reports = pending;
        Ok(())
    }
}

fn warn_of_strays(topic: &str) {
    warn!(
        "the {topic} topic has records that no program of this kind has written; they count for nothing, but whoever wrote \
         them may write there: find out who it is, and revoke that right"
    );
}
