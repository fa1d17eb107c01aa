//! THE LOOP: the walk of a record, a step a line.
//!
//! Two loops, so that publishing never holds up reading: [`Reading`] turns input into closed windows, [`Releasing`] turns
//! closed windows into published synopses. What passes between them is one closed window at a time, in order.

mod catch_up;
mod health;
mod reports;
mod plan;
mod price;
mod series;
mod stop;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

pub use health::{Health, Loop};
pub use plan::{Plan, Publication, Release, ReleaseVariant};
pub use price::PriceSchedule;
pub use series::NoiseSeries;
pub use stop::Stop;

use crate::accountant::Charged;
use crate::clock::Timestamp;
use crate::ledger::witness::Witness;
use crate::ledger::{self, Closing, Ledger};
use crate::mechanism;
use crate::mechanism::continual;
use crate::mechanism::noise::Generator;
use crate::metrics::Metrics;
use crate::pipeline::catch_up::CatchUp;
use crate::pipeline::reports::{LedgerStatus, Outcome, PendingReports};
use crate::sink::Sink;
use crate::sink::deliver::{self, Progress};
use crate::source::{self, Event, Positions, Source};
use crate::synopsis::description::{self, Charge, Description, Entry};
use crate::synopsis::{self, Synopsis};
use crate::window::grid::Span;
use crate::window::{RecordCounts, Window, Windows};

/// How long one look at the input may take, and so how late a stop is noticed.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long to wait before something that failed in passing is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How long the witness is left alone while nothing is due.
const WATCH: Duration = Duration::from_secs(5);

/// Why a worker stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Source(#[from] source::Error),
    #[error(transparent)]
    Mechanism(#[from] mechanism::Error),
    #[error(transparent)]
    Continual(#[from] continual::Error),
    #[error(transparent)]
    Synopsis(#[from] synopsis::Error),
    #[error(transparent)]
    Ledger(#[from] ledger::Error),
    #[error(transparent)]
    Deliver(#[from] deliver::Error),
    #[error("a loop of the worker panicked; this is a bug, please report it with the log")]
    Panicked,
}

/// What a worker works with: every part real, handed in by the command line.
pub struct Worker<'a> {
    pub plan: &'a Plan,
    pub source: Box<dyn Source + Send + 'a>,
    pub ledger: Ledger,
    pub witness: Box<dyn Witness + Send + 'a>,
    pub sink: Box<dyn Sink + Send + 'a>,
    /// Where the noise of each window comes from: a fresh generator a window.
    pub generators: Box<dyn FnMut() -> Result<Generator, mechanism::Error> + Send + 'a>,
    pub metrics: Metrics,
    pub health: &'a Health,
    pub stop: Stop,
}

/// A window with all its records, and how far the input was read for it.
struct Closed {
    window: Window,
    ends: Positions,
    publish_at: Timestamp,
}

impl Worker<'_> {
    /// Works until the grid ends and all is published, until somebody asks to stop, or until something is wrong.
    pub fn run(self) -> Result<(), Error> {
        let Worker { plan, source, ledger, metrics, health, stop, .. } = self;
        health.allow(plan.longest());
        let next = plan.rules.grid.span_of(ledger.next_window());
        let forms = plan.releases.iter().map(|release| release.form.clone()).collect();
        // Of windows before here other ledgers have spoken, or settings that paid for no overlap.
        let first = ledger.genesis().first.max(ledger.live_from());
        let windows = Windows::new(plan.rules.clone(), forms, first, next, ledger.genesis().backfill_until);
        let reading = Reading {
            plan,
            source,
            windows,
            recorded: ledger.ends().clone(),
            must_rewind: true,
            is_stuck: false,
            metrics: metrics.clone(),
            health,
        };
        let releasing = Releasing {
            plan,
            first,
            ledger,
            witness: self.witness,
            sink: self.sink,
            generators: self.generators,
            reports: PendingReports::default(),
            catch_up: CatchUp::new(next.start),
            metrics,
            health,
        };
        // Few windows wait between the loops: a slow output slows reading instead of filling the memory.
        let (sender, receiver) = sync_channel(4);
        thread::scope(|scope| {
            let released = scope.spawn(|| {
                let mut alarm = Alarm { stop: &stop, is_set: true };
                let result = releasing.run(&receiver, &stop);
                alarm.is_set = result.is_err();
                drop(receiver);
                result
            });
            let mut alarm = Alarm { stop: &stop, is_set: true };
            let read = reading.run(&sender, &stop);
            alarm.is_set = read.is_err();
            drop((alarm, sender));
            let released = released.join().unwrap_or(Err(Error::Panicked));
            released.and(read)
        })
    }
}

/// Stops the other loop when this one ends with an error or a panic.
struct Alarm<'a> {
    stop: &'a Stop,
    is_set: bool,
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if self.is_set {
            self.stop.ask();
        }
    }
}

/// From bytes to closed windows.
struct Reading<'a> {
    plan: &'a Plan,
    source: Box<dyn Source + Send + 'a>,
    windows: Windows,
    /// End offsets of the newest closed window.
    recorded: Positions,
    must_rewind: bool,
    /// A broken message stands in the way: other partitions are read on, but no window can close.
    is_stuck: bool,
    metrics: Metrics,
    health: &'a Health,
}

impl Reading<'_> {
    fn run(mut self, closed: &SyncSender<Closed>, stop: &Stop) -> Result<(), Error> {
        while !stop.asked() && self.windows.next().is_some() {
            self.health.turn(Loop::Read);
            match self.step() {
                Ok(None) => {}
                // The other loop is gone only if it failed, and then says why itself.
                Ok(Some(window)) => {
                    if closed.send(window).is_err() {
                        break;
                    }
                }
                Err(error) if error.is_transient() => {
                    if self.health.reading.swap(false, Relaxed) {
                        warn!("the input cannot be read now: {error}; trying again");
                    }
                    stop.wait(RETRY);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// One look at the input. Returns the next window once everything that belongs to it has been absorbed.
    fn step(&mut self) -> Result<Option<Closed>, source::Error> {
        if self.must_rewind {
            self.windows.clear();
            self.source.rewind(self.windows.oldest_message(), &self.recorded)?;
            self.must_rewind = false;
            self.is_stuck = false;
        }
        let cutoff = self.windows.cutoff();
        let ends = self.source.ends(cutoff)?;
        if let Some(ends) = &ends
            && self.source.reached(ends)?
        {
            return Ok(Some(self.close(ends.clone(), cutoff)));
        }
        match self.source.next(ends.as_ref(), PATIENCE)? {
            Event::Batch(batch) => {
                let fates = self.windows.absorb(&batch);
                self.count(&fates, batch.message_time);
                self.is_reading();
            }
            Event::Idle if self.source.is_connected() => self.is_reading(),
            Event::Idle => {
                if self.health.reading.swap(false, Relaxed) {
                    warn!("the brokers of the input cannot be reached; waiting for them");
                }
            }
            Event::Skipped { why } => warn!("{why}; it is skipped"),
            Event::Reset { why } => {
                warn!("{why}; reading again from the oldest open window");
                self.must_rewind = true;
            }
            Event::Stuck { why } => {
                self.health.reading.store(false, Relaxed);
                if !std::mem::replace(&mut self.is_stuck, true) {
                    error!("reading has stopped: {why}");
                }
            }
        }
        Ok(None)
    }

    fn close(&mut self, ends: Positions, cutoff: Timestamp) -> Closed {
        let window = self.windows.close();
        let publish_at = self.plan.publication.due(window.span, cutoff);
        self.recorded = ends.clone();
        Closed { window, ends, publish_at }
    }

    fn is_reading(&self) {
        if !self.is_stuck && !self.health.reading.swap(true, Relaxed) {
            info!("reading the input");
        }
    }

    fn count(&self, fates: &RecordCounts, message_time: Option<Timestamp>) {
        let Some(operator) = &self.metrics.operator else { return };
        operator.batches.inc();
        operator.read_until.set(message_time);
        for (fate, count) in fates.by_name() {
            operator.records.with_label_values(&[fate]).inc_by(count);
        }
    }
}

/// From closed windows to published synopses.
struct Releasing<'a> {
    plan: &'a Plan,
    /// No release speaks of a window before.
    first: Timestamp,
    ledger: Ledger,
    witness: Box<dyn Witness + Send + 'a>,
    sink: Box<dyn Sink + Send + 'a>,
    generators: Box<dyn FnMut() -> Result<Generator, mechanism::Error> + Send + 'a>,
    reports: PendingReports,
    catch_up: CatchUp,
    metrics: Metrics,
    health: &'a Health,
}

impl Releasing<'_> {
    /// Releases what comes, publishes what is due; ends once the other loop has and nothing is left to publish.
    fn run(mut self, closed: &Receiver<Closed>, stop: &Stop) -> Result<(), Error> {
        self.recall()?;
        // What an earlier run has paid for may be left to publish.
        let mut next_step = Instant::now();
        let mut is_reading = true;
        while !stop.asked() {
            self.health.turn(Loop::Release);
            let received = match self.health.witnessed.load(Relaxed) {
                true => closed.recv_timeout(PATIENCE),
                // A ledger that the witness does not know would pay for nothing.
                false => {
                    stop.wait(next_step.saturating_duration_since(Instant::now()).min(PATIENCE));
                    Err(RecvTimeoutError::Timeout)
                }
            };
            match received {
                Ok(first) => {
                    self.release_all(first, closed)?;
                    next_step = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    is_reading = false;
                    stop.wait(PATIENCE);
                }
            }
            self.report();
            if Instant::now() < next_step {
                continue;
            }
            match deliver::step(&mut self.ledger, &mut *self.witness, &mut *self.sink, Timestamp::now()) {
                Ok(progress) => {
                    self.delivered(&progress);
                    if !is_reading && !progress.has_claimed && progress.next_due.is_none() && self.reports.is_empty() {
                        break;
                    }
                    next_step = Instant::now() + self.pause(&progress);
                }
                Err(error) if error.is_transient() => {
                    if self.health.publishing.swap(false, Relaxed) {
                        warn!("cannot publish now: {error}; trying again with the same bytes");
                    }
                    next_step = Instant::now() + RETRY;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Releases `first` and what waits behind it, for a second at most: one claim then covers them all.
    fn release_all(&mut self, first: Closed, closed: &Receiver<Closed>) -> Result<(), Error> {
        let started = Instant::now();
        let mut next = Some(first);
        while let Some(window) = next {
            self.release(window)?;
            next = if started.elapsed() < RETRY { closed.try_recv().ok() } else { None };
        }
        Ok(())
    }

    /// How long the witness need not be looked at again: until something is due, and no longer than a while.
    fn pause(&self, progress: &Progress) -> Duration {
        if progress.has_claimed || progress.published > 0 {
            return Duration::ZERO;
        }
        progress.next_due.map_or(WATCH, |due| due.since(Timestamp::now()).min(WATCH))
    }

    fn delivered(&mut self, progress: &Progress) {
        if !self.health.witnessed.swap(true, Relaxed) {
            info!("the witness agrees with the ledger");
        }
        self.health.publishing.store(true, Relaxed);
        self.metrics.published.inc_by(progress.published as u64);
    }

    /// The walk from a closed window to a paid one. A crash before `pay`: nothing left, the window is drawn again from
    /// the input. After it: the same bytes are published.
    fn release(&mut self, closed: Closed) -> Result<(), Error> {
        let started = Instant::now();
        let Closed { window, ends, publish_at } = closed;
        let plan = self.plan;
        let began = self.ledger.genesis().first;
        let spans: Vec<Span> =
            plan.releases.iter().map(|release| plan.span_of(release, window.span, self.first)).collect();
        // Numbered from the ledger's first window, whatever was changed since.
        let prices = plan.prices(window.span, &spans, began);
        let Some(quoted) = plan.quote(&spans, &prices, |block| self.ledger.spent(block)) else {
            self.ledger.withhold(window.span, ends)?;
            let outcome = Outcome::Withheld(plan.why_withheld(window.span, self.first, began));
            self.closed(publish_at, window.span, outcome);
            return Ok(());
        };
        let mut generator = (self.generators)()?;
        let (mut sealed, mut states) = (Vec::new(), Vec::new());
        let parts = plan.releases.iter().zip(&window.forms).zip(spans).zip(prices);
        for (((release, groups), span), price) in parts {
            // A release that is over has no part in the window: by the schedule, whatever the records are.
            let Some(price) = price else { continue };
            let variants = release.variants_at(price)?;
            for group in groups {
                self.health.turn(Loop::Release);
                let key = group.key.as_deref();
                let variant = release.variant(&variants, &group.state, &mut generator);
                let exact = variant.target.evaluate(&group.state);
                let about = variant.description(&exact, &mut generator);
                let noise_state = release.noise_state(&self.ledger, variant, key, span)?;
                let drawn = release.draw(variant, &exact, noise_state, &mut generator);
                let about = drawn.describe(release, about, plan.rules.grid, span);
                let description = self.describe(about, key, span, publish_at, &quoted);
                let synopsis = Synopsis::new(description, variant.dequantize(&drawn.noisy))?;
                sealed.push(synopsis.seal()?);
                states.extend(drawn.state(release));
            }
        }
        let charges = quoted.into_iter().map(|quoted| (quoted.block, quoted.price)).collect();
        self.ledger.pay(Closing { window: window.span, publish_at, charges, ends, sealed, states })?;
        if let Some(operator) = &self.metrics.operator {
            operator.seconds_to_seal.set(started.elapsed().as_secs_f64());
        }
        self.closed(publish_at, window.span, Outcome::Released);
        Ok(())
    }

    /// A window is in the ledger: to be told of when it is due.
    fn closed(&mut self, due: Timestamp, window: Span, outcome: Outcome) {
        self.reports.add(due, window, outcome, LedgerStatus::of(&self.ledger, Some(outcome)));
        self.report();
    }

    /// A description with everything that differs from window to window; `paid` are the panes that were charged for it.
    fn describe(
        &self,
        about: Description,
        key: Option<&str>,
        paid: Span,
        published: Timestamp,
        quoted: &[Charged],
    ) -> Description {
        let Plan { blocks, total, .. } = self.plan;
        let is_ours = |block: Span| blocks.spans_meeting(paid).any(|met| met == block);
        let blocks = quoted.iter().filter(|quoted| is_ours(quoted.block)).map(|quoted| Charge {
            start: quoted.block.start,
            end: quoted.block.end,
            spent: quoted.spent,
            total: *total,
        });
        Description {
            key: key.map(str::to_owned),
            published,
            privacy: description::Privacy { blocks: blocks.collect(), ..about.privacy },
            ledger: Entry { id: self.ledger.genesis().ledger.clone(), sequence: self.ledger.head().sequence + 1 },
            ..about
        }
    }

    fn report(&mut self) {
        let now = Timestamp::now();
        if let Some(until) = self.reports.report(now, self.plan.total, &self.metrics, self.health) {
            self.plan.show(until, self.ledger.genesis(), &self.metrics);
            let Plan { rules, publication, .. } = self.plan;
            self.catch_up.report(
                rules,
                until,
                publication.due_after(rules, until, self.ledger.genesis().backfill_until, now),
            );
        }
    }

    /// Shows in the metrics what an earlier run left, no earlier than it is due.
    fn recall(&mut self) -> Result<(), Error> {
        let genesis = self.ledger.genesis();
        self.metrics.begin(&genesis.ledger, self.plan.total, self.plan.limit);
        let Plan { rules, publication, .. } = self.plan;
        let due = |window| publication.due(window, rules.cutoff(window, genesis.backfill_until));
        let why = |window| self.plan.why_withheld(window, self.first, genesis.first);
        let (figures, news) = PendingReports::recall(&self.ledger, Timestamp::now(), due, why)?;
        figures.show(self.plan.total, &self.metrics, self.health);
        self.plan.show(figures.closed_until, genesis, &self.metrics);
        self.reports = news;
        Ok(())
    }
}
