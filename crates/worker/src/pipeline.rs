//! The worker: the walk of a record from the input to the output.
//!
//! | step | from | to | where |
//! |---|---|---|---|
//! | read and absorb | messages | sums over open windows | `ReaderTask::read_once` |
//! | close | sums | a reader's share of the next window | `ReaderTask::close_window` |
//! | join | shares of all readers | the window, with its caps decided | `PartialMerger::next_window` in `joining.rs` |
//! | price | the window's place in time | what each block is charged | `ReleaseTask::terms_of_window`, by `ReleasePlan::quote_window` in `terms.rs` |
//! | evaluate, draw, describe | the window | noisy values and what they mean | [`ReleasePlan::release_window`] |
//! | seal | noisy values | the bytes of a message | `ReleasePlan::seal_window` |
//! | pay | bytes and charges | one row of the ledger | `ReleaseTask::pay_closed_window` |
//! | claim | the row | the witness has accepted it | `deliver::publish_and_claim`, called by `ReleaseTask::deliver_step` in `releasing.rs` |
//! | publish | what is accepted and due | a message in the output | the same, one step later |
//!
//! Reading and releasing are loops of their own, in threads that `loops.rs` starts, so that publishing never holds up reading. Windows
//! pass from one to the other one at a time, in order.

mod absorber_metrics;
mod announced_keys;
mod catch_up;
mod comparison;
mod draw;
mod due_while_drawing;
mod error;
mod health;
mod joining;
mod leadership;
mod local_partitions;
mod local_readers;
mod loops;
mod lost_claims;
mod outage;
mod partial_collector;
mod plan;
mod price_schedule;
mod pricing;
mod publication;
mod reader;
mod record_metrics;
mod release_reports;
mod releasing;
mod repeated_event;
mod reports;
mod schedule_metrics;
mod series;
mod stop;
mod terms;
mod timed_requests;

use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use tracing::warn;

pub use self::announced_keys::{AnnouncedKey, AnnouncedKeys, PlannedKeySearch};
pub use self::error::PipelineError;
pub use self::health::Health;
pub use self::loops::Worker;
pub use self::outage::Outage;
pub use self::partial_collector::AbsorberParams;
pub use self::plan::{PlannedRelease, ReleasePlan, ReleaseVariant};
pub use self::price_schedule::PriceSchedule;
pub use self::publication::Publication;
pub use self::series::{NoiseSeries, StateReader};
pub use self::stop::StopRequest;
pub use self::terms::{LedgerBeginning, QuotedRelease, ReleasedSynopsis, WindowQuote, WindowTerms};

pub use self::catch_up::PROGRESS;
use self::joining::{JoinedWindow, PartialMerger, PartialWindow};
use self::loops::WindowsStart;
use self::reader::{InputReader, ReaderStatus};
use self::releasing::ReleaseTask;
use self::reports::WindowOutcome;
use crate::metrics::Metrics;
use bernstream_kafka::source;
use bernstream_kafka::source::{RecordSource, SourceEvent};
use bernstream_ledger::{ClosingWindow, Ledger};
use bernstream_noise::noise::Generator;
use bernstream_release::Sealed;
use bernstream_release::window::{Window, WindowStore};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::PaymentRow;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::{Positions, RecordedPositions};

/// The longest wait for input or for a closed window, and so the delay with which a stop is noticed.
const POLL: Duration = Duration::from_millis(100);
/// So long before a window is due nothing else is begun: everything is prepared, and then it is waited for the moment.
const LEAD: Duration = Duration::from_millis(250);

/// Reads some of the input, and sums it up in its shares of windows.
struct ReaderTask<'a> {
    source: Box<dyn RecordSource + Send + 'a>,
    windows: WindowStore,
    /// The end offsets of the newest closed window: at first those of all partitions, then those of the ones that it reads.
    recorded: RecordedPositions,
    must_rewind: bool,
    metrics: Metrics,
    status: ReaderStatus<'a>,
}

impl<'a> ReaderTask<'a> {
    fn new(
        source: Box<dyn RecordSource + Send + 'a>,
        start: &WindowsStart<'_>,
        metrics: Metrics,
        status: ReaderStatus<'a>,
    ) -> Self {
        ReaderTask {
            source,
            windows: start.open_windows(),
            recorded: start.recorded.clone(),
            must_rewind: true,
            metrics,
            status,
        }
    }
}

impl<'a> InputReader<'a> for ReaderTask<'a> {
    fn reader_status(&mut self) -> &mut ReaderStatus<'a> {
        &mut self.status
    }

    fn is_over(&self) -> bool {
        self.windows.next().is_none()
    }

    fn read_once(&mut self) -> Result<Option<PartialWindow>, source::SourceError> {
        if self.must_rewind {
            self.windows.clear_records();
            self.source
                .rewind(self.windows.oldest_message(), &self.recorded)?;
            self.must_rewind = false;
            self.status.clear_stuck();
        }
        let cutoff = self.windows.next_cutoff();
        let ends = self.source.end_offsets(cutoff)?;
        if let Some(ends) = &ends
            && self.source.has_reached(ends)?
        {
            return Ok(Some(self.close_window(ends.clone(), cutoff)));
        }
        match self.source.next_event(ends.as_ref(), POLL)? {
            SourceEvent::Batch(batch) => {
                let counts = self.windows.absorb_batch(&batch);
                self.count_records(counts, &batch);
                self.status.report_reading(self.source.is_connected());
            }
            SourceEvent::Idle => self.status.report_reading(self.source.is_connected()),
            SourceEvent::Skipped { why } => self.status.count_skipped(why),
            SourceEvent::Reset { why } => {
                warn!("{why}; reading again from the oldest open window");
                self.must_rewind = true;
            }
            SourceEvent::Stuck { why } => self.status.report_stuck(why),
        }
        self.status.log_counts();
        Ok(None)
    }
}

impl ReaderTask<'_> {
    fn close_window(&mut self, ends: Positions, cutoff: Timestamp) -> PartialWindow {
        self.recorded.ends = ends.clone();
        PartialWindow {
            part: self.windows.close_part(),
            ends,
            cutoff,
        }
    }
}

impl PartialMerger<'_> {
    /// Joins the shares of all readers to closed windows; ends with the first of the readers, or when nobody takes the windows.
    fn merge_windows(&self, closed: &SyncSender<JoinedWindow>) {
        while let Some(window) = self.next_window() {
            if closed.send(window).is_err() {
                break;
            }
        }
    }
}

impl ReleaseTask<'_> {
    /// Turns a closed window into a paid one. After a crash before `pay_window` nothing has left, and the noise is drawn again; after a
    /// crash behind it the same bytes are published.
    fn pay_closed_window(&mut self, closed: JoinedWindow) -> Result<(), PipelineError> {
        let started = Instant::now();
        let JoinedWindow {
            window,
            ends,
            publish_at,
        } = closed;
        let span = window.span;
        let Some(terms) = self.terms_of_window(span, publish_at) else {
            return self.withhold_window(span, ends, publish_at);
        };
        let sealed_window = self.seal_and_publish_due(&window, &terms)?;
        // What is exact is not needed any more, and the ledger needs memory for what is noisy.
        drop(window);
        let closing = sealed_window.into_ledger_row(span, terms, ends);
        self.write_ledger(|ledger| ledger.pay_window(closing))?;
        self.health
            .owe_window(self.to_worker_clock(publish_at), Timestamp::now());
        if let Some(operator) = &self.metrics.operator {
            operator
                .seconds_to_seal
                .set(started.elapsed().as_secs_f64());
        }
        self.report_closed_window(publish_at, span, WindowOutcome::Released);
        Ok(())
    }

    /// The terms of a window; `None` if it cannot be paid for.
    fn terms_of_window(&self, window: Span, publish_at: Timestamp) -> Option<WindowTerms> {
        let entry = PaymentRow {
            id: self.ledger.genesis().ledger.clone(),
            sequence: self.ledger.next_sequence(),
        };
        let quoted = self
            .plan
            .quote_window(window, self.beginning, |block| self.ledger.spent(block))?;
        Some(WindowTerms {
            publish_at,
            entry,
            quoted,
        })
    }

    /// Records that a window is not released: its records count for nothing.
    fn withhold_window(
        &mut self,
        window: Span,
        ends: Positions,
        publish_at: Timestamp,
    ) -> Result<(), PipelineError> {
        self.write_ledger(|ledger| ledger.withhold_window(window, ends))?;
        let outcome = WindowOutcome::Withheld(self.plan.why_withheld(window, self.beginning));
        self.report_closed_window(publish_at, window, outcome);
        Ok(())
    }
}

impl ReleasePlan {
    /// Turns a closed window into its synopses, one a release and key: all of the walk that an exact value takes. Whoever calls
    /// this pays for it before anything leaves. `stored` reads a state that an earlier window left, and `take` gets one synopsis
    /// after another: what it does not keep takes no memory.
    ///
    /// # Errors
    ///
    /// If the price is too low for the noise to be drawn, if a stored state cannot be read or is damaged, or what `take` returns.
    pub fn release_window(
        &self,
        window: &Window,
        terms: &WindowTerms,
        stored: &StateReader<'_>,
        generator: &mut Generator,
        take: &mut dyn FnMut(ReleasedSynopsis) -> Result<(), PipelineError>,
    ) -> Result<(), PipelineError> {
        for (place, release) in self.releases.iter().enumerate() {
            let QuotedRelease { span, price } = terms.quoted.releases[place];
            // A release that is over skips the window: by the schedule, whatever the records are.
            let Some(price) = price else { continue };
            let variants = release.variants_at(price)?;
            for group in &window.forms[place] {
                let key = group.key.as_deref();
                let chosen = release.choose_variant(&group.accumulator, generator);
                let variant = variants.get(chosen);
                if let Some(search) = &release.key_search
                    && let Some(candidates) = variant.target.candidates(&group.accumulator)
                {
                    let found =
                        release.release_found_keys(search, &candidates, stored, span, generator)?;
                    take(ReleasedSynopsis {
                        release: place,
                        variant: chosen,
                        description: terms.complete_description(found.description, self, key, span),
                        values: variant.dequantize(&found.noisy),
                        noisy: found.noisy,
                        state: Some(found.state),
                    })?;
                    continue;
                }
                let exact = variant.target.evaluate(&group.accumulator);
                let description = variant.chosen_description(&exact, generator);
                let noise_state = release.noise_state(stored, variant, key, span)?;
                let drawn = release.draw_noise(variant, &exact, noise_state, generator);
                let description =
                    drawn.describe_synopsis(release, description, self.rules.grid, span);
                let description = terms.complete_description(description, self, key, span);
                let values = variant.dequantize(&drawn.noisy);
                let state = drawn.stored_state(release);
                let noisy = drawn.noisy;
                take(ReleasedSynopsis {
                    release: place,
                    variant: chosen,
                    description,
                    values,
                    noisy,
                    state,
                })?;
            }
        }
        Ok(())
    }

    /// The synopses of a window, sealed, with fresh noise or that of the series in `ledger`.
    fn seal_window(
        &self,
        window: &Window,
        terms: &WindowTerms,
        ledger: &Ledger,
        mut generator: Generator,
        health: &Health,
    ) -> Result<SealedWindow, PipelineError> {
        let mut sealed = Vec::new();
        let mut states = Vec::new();
        let mut take = |released: ReleasedSynopsis| {
            health.record_heartbeat();
            sealed.push(Sealed::new(released.description, released.values)?);
            states.extend(released.state);
            Ok(())
        };
        let stored: &StateReader<'_> = &|slot| ledger.noise_state(slot);
        self.release_window(window, terms, stored, &mut generator, &mut take)?;
        Ok(SealedWindow { sealed, states })
    }
}

/// The messages that a window pays for, and what its noise series leave for the next one.
struct SealedWindow {
    sealed: Vec<Sealed>,
    /// The slot and the bytes of each.
    states: Vec<(String, Vec<u8>)>,
}

impl SealedWindow {
    /// The row of the ledger that pays for it.
    fn into_ledger_row(self, window: Span, terms: WindowTerms, ends: Positions) -> ClosingWindow {
        let charged = terms.quoted.charged.into_iter();
        ClosingWindow {
            window,
            publish_at: terms.publish_at,
            charges: charged.map(|quoted| (quoted.block, quoted.price)).collect(),
            ends,
            sealed: self.sealed,
            states: self.states,
        }
    }
}
