//! The loop that turns closed windows into published synopses: what it does when.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tracing::warn;

use super::catch_up::CatchUp;
use super::comparison::WitnessComparison;
use super::error::PipelineError;
use super::health::Health;
use super::joining::JoinedWindow;
use super::loops::{WindowsStart, Worker};
use super::outage::Outage;
use super::plan::ReleasePlan;
use super::reports::PendingReports;
use super::stop::StopRequest;
use super::terms::LedgerBeginning;
use super::timed_requests::TimedRequests;
use super::{LEAD, POLL};
use crate::metrics::Metrics;
use bernstream_kafka::UnknownTopic;
use bernstream_kafka::sink::Sink;
use bernstream_kafka::sink::deliver;
use bernstream_kafka::sink::deliver::{DeliveryProgress, LookAhead};
use bernstream_ledger as ledger;
use bernstream_ledger::witness::{StrayCounts, Witness};
use bernstream_ledger::{Head, Ledger};
use bernstream_noise as mechanism;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};

/// The pause before a transient failure is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The time for which windows are released one after another before they are claimed together.
const LONGEST_BATCH: Duration = Duration::from_secs(1);

/// The loop from closed windows to published synopses, and its state.
pub(super) struct ReleaseTask<'a> {
    pub(super) plan: &'a ReleasePlan,
    /// The clock by which windows close.
    pub(super) clock: ScheduleClock,
    pub(super) beginning: LedgerBeginning,
    pub(super) ledger: Ledger,
    pub(super) witness: TimedRequests<'a, dyn Witness + Send + 'a>,
    pub(super) sink: TimedRequests<'a, dyn Sink + Send + 'a>,
    pub(super) generators: Box<dyn FnMut() -> Result<Generator, mechanism::NoiseError> + Send + 'a>,
    pub(super) outage: Outage<deliver::OutageReason>,
    /// A topic of ledger or output.
    pub(super) unknown_topic: UnknownTopic,
    pub(super) comparison: WitnessComparison,
    /// Records that somebody else has written to the topics of the ledger.
    pub(super) strays: StrayCounts,
    pub(super) reports: PendingReports,
    pub(super) coming: Option<ComingWindow>,
    /// The time at which the next accepted message is due.
    pub(super) next_due: Option<Timestamp>,
    /// The newest row that the witness has accepted, as the last step read it.
    pub(super) accepted_head: Option<Head>,
    pub(super) catch_up: CatchUp,
    pub(super) metrics: Metrics,
    pub(super) health: &'a Health,
    pub(super) stop: &'a StopRequest,
    /// A closed window that waits for this worker's turn; the others wait behind it.
    pub(super) held: Option<JoinedWindow>,
    /// Claims are left to another instance for now.
    pub(super) is_waiting: bool,
    pub(super) logged_role: LoggedRole,
    /// The witness has accepted every window before.
    pub(super) accepted: Arc<AtomicI64>,
}

/// The last word of the log about the role of this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoggedRole {
    /// It has said nothing yet.
    Unknown,
    Acting,
    Following,
}

/// The window that closes next.
pub(super) struct ComingWindow {
    pub start: Timestamp,
    /// `None` for one that comes late whatever the worker does.
    pub due: Option<Timestamp>,
}

impl<'a> ReleaseTask<'a> {
    /// Makes the task of `worker`, whose windows begin at `start` and close by `clock`. It tells by `accepted` up to which window the witness
    /// has accepted everything.
    pub(super) fn new(
        worker: Worker<'a>,
        clock: ScheduleClock,
        start: &WindowsStart<'_>,
        accepted: Arc<AtomicI64>,
        stop: &'a StopRequest,
    ) -> Self {
        let health = worker.health;
        ReleaseTask {
            plan: worker.plan,
            clock,
            beginning: LedgerBeginning {
                first_window: worker.ledger.genesis().first,
                first_covered: start.first,
            },
            ledger: worker.ledger,
            witness: TimedRequests {
                inner: worker.witness,
                health,
            },
            sink: TimedRequests {
                inner: worker.sink,
                health,
            },
            generators: worker.generators,
            outage: Outage::default(),
            unknown_topic: UnknownTopic::default(),
            comparison: WitnessComparison::default(),
            strays: StrayCounts::default(),
            reports: PendingReports::default(),
            coming: None,
            next_due: None,
            accepted_head: None,
            catch_up: CatchUp::new(start.next.start),
            held: None,
            is_waiting: false,
            logged_role: LoggedRole::Unknown,
            accepted,
            metrics: worker.metrics,
            health,
            stop,
        }
    }
}

impl ReleaseTask<'_> {
    /// Releases closed windows and publishes what is due; ends when the other loop has ended and nothing is left to publish.
    pub(super) fn run_release_loop(
        mut self,
        closed: Receiver<JoinedWindow>,
    ) -> Result<(), PipelineError> {
        let stop = self.stop;
        self.recall_reports()?;
        // An earlier run may have paid for synopses that are not published yet.
        let mut next_step = Instant::now();
        let mut is_reading = true;
        while !stop.is_requested() {
            self.health.record_heartbeat();
            let pause = next_step
                .saturating_duration_since(Instant::now())
                .min(POLL);
            match self.receive_window(&closed, pause) {
                Ok(next) => {
                    self.held = Some(next);
                    next_step = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) => {}
                // No window comes any more, and everything may be done already.
                Err(RecvTimeoutError::Disconnected) if is_reading => {
                    is_reading = false;
                    next_step = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => stop.sleep_or_stop(pause),
            }
            // Where workers share a log, each looks before it draws whether another one has drawn.
            let may_release =
                self.held.is_some() && !self.ledger.is_shared() && self.comparison.has_agreed();
            if may_release && self.release_all(&closed)? {
                next_step = Instant::now();
            }
            self.report_due_windows();
            if Instant::now() < next_step {
                continue;
            }
            match self.deliver_step() {
                Ok(progress) => {
                    self.unknown_topic.note_known();
                    self.report_step(&progress)?;
                    let may_release = (self.ledger.is_shared() || self.held.is_some())
                        && self.comparison.has_agreed();
                    let has_released = may_release && self.release_all(&closed)?;
                    let is_all_claimed =
                        !progress.has_claimed && !progress.is_waiting && !has_released;
                    let is_done =
                        is_all_claimed && progress.next_due.is_none() && self.held.is_none();
                    if !is_reading && is_done && self.reports.is_empty() {
                        break;
                    }
                    let pause = if has_released {
                        Duration::ZERO
                    } else {
                        self.pause_before_step(&progress)
                    };
                    next_step = Instant::now() + pause;
                }
                Err(PipelineError::Deliver(error))
                    if error.is_transient()
                        || error.is_missing()
                            && self.unknown_topic.note_unknown(Instant::now()) =>
                {
                    self.comparison.begin_again();
                    self.report_failed_step(&error);
                    next_step = Instant::now() + RETRY_PAUSE;
                }
                Err(error) => return Err(error),
            }
        }
        if stop.is_requested() {
            self.resign_turn();
        }
        Ok(())
    }

    /// Waits for a closed window, unless this worker may not take one now.
    fn receive_window(
        &self,
        closed: &Receiver<JoinedWindow>,
        pause: Duration,
    ) -> Result<JoinedWindow, RecvTimeoutError> {
        // A ledger that the witness rejects must not pay for windows.
        if self.health.witnessed.load(Relaxed) && self.held.is_none() {
            return closed.recv_timeout(pause);
        }
        self.stop.sleep_or_stop(pause);
        Err(RecvTimeoutError::Timeout)
    }

    /// Publishes and claims what is due, and what is due within [`LEAD`] at its moment; before that compares the witness with what was
    /// published, where that is to be done.
    pub(super) fn deliver_step(&mut self) -> Result<DeliveryProgress, PipelineError> {
        self.next_due = None;
        self.read_output_tail()?;
        let now = self.clock.now();
        let mut accepted = deliver::read_witness(&mut self.ledger, &mut self.witness, now)?;
        if self.witness.remembered().is_some() && self.comparison.found.is_none() {
            // It was cut since it agreed, and only its reader has seen that.
            self.comparison.begin_again();
            self.read_output_tail()?;
            accepted = deliver::read_witness(&mut self.ledger, &mut self.witness, now)?;
        }
        self.compare_with_witness(accepted.head())?;
        self.accepted_head = accepted.head();
        let stop = self.stop;
        let clock = self.clock.clone();
        let ahead = LookAhead {
            lead: LEAD,
            wait: &|moment| stop.wait_until(moment, &clock),
        };
        let progress = deliver::publish_and_claim(
            &mut self.ledger,
            &mut self.witness,
            &mut self.sink,
            &accepted,
            now,
            &ahead,
        )?;
        self.next_due = progress.next_due;
        self.comparison
            .step_done(progress.has_claimed && !self.ledger.is_acting());
        Ok(progress)
    }

    /// Releases the window that is held and those queued behind it, for a second at most: one claim then covers them all. What is
    /// due soon comes first. Windows that another worker has released are dropped, and others wait for this worker's turn. Returns
    /// whether there was anything to write.
    pub(super) fn release_all(
        &mut self,
        closed: &Receiver<JoinedWindow>,
    ) -> Result<bool, PipelineError> {
        let started = Instant::now();
        let mut has_written = false;
        while !self.is_due_soon()
            && let Some(next) = self.held.take().or_else(|| closed.try_recv().ok())
        {
            if self.ledger.is_shared() && next.window.span.start < self.ledger.next_window() {
                continue;
            }
            if self.must_compare(next.publish_at) {
                self.comparison.begin_again();
                self.held = Some(next);
                break;
            }
            if !self
                .ledger
                .try_begin_draw(next.publish_at, self.clock.now())?
            {
                self.held = Some(next);
                break;
            }
            if let Some(first) = self.ledger.record_postponed_settings()? {
                warn!(
                    "this worker acts: its settings hold for windows from {first} on, and what was spent stays spent"
                );
                self.held = Some(next);
                return Ok(true);
            }
            if self.ledger.is_shared() && !self.is_reach_chargeable(next.window.span) {
                return Err(PipelineError::ReadsTooFar);
            }
            self.pay_closed_window(next)?;
            has_written = true;
            if started.elapsed() >= LONGEST_BATCH || !self.comparison.has_agreed() {
                break;
            }
        }
        Ok(has_written)
    }

    /// Writes to the ledger, which somebody may hold: the readiness probe sees how long it takes.
    pub(super) fn write_ledger(
        &mut self,
        write: impl FnOnce(&mut Ledger) -> Result<(), ledger::LedgerError>,
    ) -> Result<(), ledger::LedgerError> {
        self.health.request_begins();
        let written = write(&mut self.ledger);
        self.health.request_ends();
        written
    }
}
