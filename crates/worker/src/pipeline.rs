//! The worker: the path of a record from the input to the output, one step a line.
//!
//! It has two kinds of loops, so that publishing never holds up reading: each [`Reading`] turns its share of the input into its part
//! of the windows, [`Joining`] makes the windows of the parts, and [`Releasing`] turns windows into published synopses. Windows pass
//! from one to the other one at a time, in order.

mod absorbed;
mod absorbers;
mod alone;
mod asked;
mod catch_up;
mod comparison;
mod draw;
mod due_while_drawing;
mod error;
mod health;
mod joining;
mod lost_claims;
mod outage;
mod plan;
mod price_schedule;
mod pricing;
mod progress;
mod publication;
mod read_here;
mod reader;
mod remarks;
mod repeated;
mod reports;
mod schedule;
mod series;
mod stop;
mod terms;
mod turn;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use tracing::{Dispatch, warn};

pub use self::absorbed::Absorbed;
pub use self::error::Error;
pub use self::health::Health;
pub use self::outage::Outage;
pub use self::plan::{Plan, Release, ReleaseVariant};
pub use self::price_schedule::PriceSchedule;
pub use self::publication::Publication;
pub use self::series::{NoiseSeries, Stored};
pub use self::stop::Stop;
pub use self::terms::{Quoted, Released, Terms};

use self::absorbed::Absorbing;
use self::asked::Asked;
use self::catch_up::CatchUp;
pub use self::catch_up::PROGRESS;
use self::comparison::Comparison;
use self::joining::{Closed, Joining, Share};
use self::outage::CommonOutage;
use self::read_here::{ReadHere, ReadingHere};
use self::reader::{Reader, Seen};
use self::reports::{Outcome, PendingReports};
use self::stop::StopGuard;
use crate::metrics::Metrics;
use bernstream_kafka::sink::Sink;
use bernstream_kafka::sink::deliver;
use bernstream_kafka::sink::deliver::{Ahead, Progress};
use bernstream_kafka::source;
use bernstream_kafka::source::{Event, Source};
use bernstream_ledger as ledger;
use bernstream_ledger::witness::{Strays, Witness};
use bernstream_ledger::{Closing, Head, Ledger};
use bernstream_noise as mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::Sealed;
use bernstream_release::window::{Window, Windows};
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};
use bernstream_synopsis::description::Entry;
use bernstream_synopsis::{Positions, Recorded};

/// The longest wait for input or for a closed window, and so the delay with which a stop is noticed.
const POLL: Duration = Duration::from_millis(100);
/// The pause before a transient failure is retried.
const RETRY: Duration = Duration::from_secs(1);
/// So long before a window is due nothing else is begun: everything is prepared, and then it is waited for the moment.
const LEAD: Duration = Duration::from_millis(250);

/// Everything that a worker needs; the command line provides it.
pub struct Worker<'a> {
    pub plan: &'a Plan,
    /// Shares of one input, each read by a thread of its own: together all of it, and no partition twice.
    pub readers: Vec<Box<dyn Source + Send + 'a>>,
    pub ledger: Ledger,
    pub witness: Box<dyn Witness + Send + 'a>,
    pub sink: Box<dyn Sink + Send + 'a>,
    /// The source of the noise: a fresh generator for each window.
    pub generators: Box<dyn FnMut() -> Result<Generator, mechanism::Error> + Send + 'a>,
    pub metrics: Metrics,
    pub health: &'a Health,
    pub stop: Stop,
}

impl Worker<'_> {
    /// Runs until the grid ends and everything is published, until a stop is requested, or until something fails.
    ///
    /// # Errors
    ///
    /// The failure of either loop that retrying cannot mend.
    pub fn run(self) -> Result<(), Error> {
        self.run_with(None)
    }

    /// The same, but where others read: `absorbed` gets the windows from them, in place of the readers.
    ///
    /// # Errors
    ///
    /// As for [`Worker::run`].
    pub fn run_with(self, absorbed: Option<Absorbed>) -> Result<(), Error> {
        let Worker { plan, readers, ledger, metrics, health, stop, .. } = self;
        health.allow(plan.longest());
        let next = plan.rules.grid.span_of(ledger.next_window());
        let forms: Vec<_> = plan.releases.iter().map(|release| release.form.clone()).collect();
        // Earlier windows belong to other ledgers, or to settings that paid for no overlap.
        let first = ledger.genesis().first.max(ledger.live_from());
        let sources = || absorbed.iter().map(Absorbed::clock).chain(readers.iter().map(|source| source.clock()));
        let clock = sources().next().unwrap_or_else(|| ScheduleClock::new(Timestamp::now));
        let accepted = Arc::new(AtomicI64::new(i64::MIN));
        let mut joining = Joining::new(&plan.publication);
        let outage = CommonOutage::default();
        let here = absorbed.as_ref().map_or(0, |absorbed| absorbed.own.len());
        let begun = health.begin(&clock, readers.len() + here + usize::from(absorbed.is_some()));
        let mut seen = begun.into_iter().map(|reader| Seen::new(&outage, reader, health, metrics.operator.is_some()));
        let backfill_until = ledger.genesis().backfill_until;
        let windows = || Windows::new(plan.rules.clone(), forms.clone(), first, next, backfill_until);
        let cutoff = |window| plan.rules.cutoff(window, backfill_until);
        let recorded = ledger.recorded(windows().oldest_message(), cutoff)?;
        let mut reading_here = Vec::new();
        let mut absorbing = |mut absorbed: Absorbed| {
            let own = std::mem::take(&mut absorbed.own);
            let topic = own.first()?.topic().to_owned();
            let (here, queues) = ReadHere::new(own.len());
            let threads = own.into_iter().zip(queues).zip(&mut seen);
            reading_here
                .extend(threads.map(|((own, queues), seen)| ReadingHere::new(own, queues, metrics.clone(), seen)));
            let known = (recorded.clone(), Arc::clone(&accepted), metrics.clone());
            Some(Absorbing::new((absorbed, topic, here), (windows(), first, backfill_until), known, seen.next()?))
        };
        let absorbing = absorbed.and_then(&mut absorbing).map(|absorbing| (absorbing, joining.reader()));
        let beginning = |(source, seen)| Reading {
            source,
            windows: windows(),
            recorded: recorded.clone(),
            must_rewind: true,
            metrics: metrics.clone(),
            seen,
        };
        let readings: Vec<_> =
            readers.into_iter().zip(seen).map(beginning).map(|reading| (reading, joining.reader())).collect();
        let releasing = Releasing {
            plan,
            clock,
            first,
            ledger,
            witness: Asked { inner: self.witness, health },
            sink: Asked { inner: self.sink, health },
            generators: self.generators,
            outage: Outage::default(),
            comparison: Comparison::default(),
            strays: Strays::default(),
            reports: PendingReports::default(),
            coming: None,
            next_due: None,
            accepted_head: None,
            catch_up: CatchUp::new(next.start),
            held: None,
            is_waiting: false,
            is_acting: None,
            accepted: Arc::clone(&accepted),
            metrics,
            health,
            stop: &stop,
        };
        // Few windows wait between the loops: a slow output slows reading instead of filling the memory.
        let (sender, receiver) = sync_channel(4);
        // All loops log to where the caller does, and one that fails stops the others.
        let log = &tracing::dispatcher::get_default(Dispatch::clone);
        let stop = &stop;
        thread::scope(|scope| {
            let released = scope.spawn(move || guarded(log, stop, || releasing.run(receiver)));
            let absorbed = absorbing.map(|(absorbing, shares)| {
                scope.spawn(move || guarded(log, stop, || reader::run(absorbing, Some(shares), stop)))
            });
            let here = reading_here
                .into_iter()
                .map(|reading| scope.spawn(move || guarded(log, stop, || reader::run(reading, None, stop))));
            let readers = readings.into_iter().map(|(reading, shares)| {
                scope.spawn(move || guarded(log, stop, || reader::run(reading, Some(shares), stop)))
            });
            let readers: Vec<_> = readers.chain(absorbed).chain(here).collect();
            joining.run(&sender);
            drop((joining, sender));
            let ended = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or(Err(Error::Panicked));
            // All have ended before the first failure is returned.
            let ends: Vec<_> = [released].into_iter().chain(readers).map(ended).collect();
            ends.into_iter().collect()
        })
    }
}

/// Runs a loop that logs to where the caller does, and that stops the others if it fails or panics.
fn guarded(log: &Dispatch, stop: &Stop, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let mut guard = StopGuard::new(stop);
    tracing::dispatcher::with_default(log, work).inspect(|()| guard.disarm())
}

/// From bytes to the shares of windows: one reader of the input.
struct Reading<'a> {
    source: Box<dyn Source + Send + 'a>,
    windows: Windows,
    /// Of the newest closed window at first the end offsets of all partitions, then of those that it reads.
    recorded: Recorded,
    must_rewind: bool,
    metrics: Metrics,
    seen: Seen<'a>,
}

impl<'a> Reader<'a> for Reading<'a> {
    fn seen(&mut self) -> &mut Seen<'a> {
        &mut self.seen
    }

    fn is_over(&self) -> bool {
        self.windows.next().is_none()
    }

    fn step(&mut self) -> Result<Option<Share>, source::Error> {
        if self.must_rewind {
            self.windows.clear();
            self.source.rewind(self.windows.oldest_message(), &self.recorded)?;
            self.must_rewind = false;
            self.seen.goes_on();
        }
        let cutoff = self.windows.cutoff();
        let ends = self.source.ends(cutoff)?;
        if let Some(ends) = &ends
            && self.source.reached(ends)?
        {
            return Ok(Some(self.close(ends.clone(), cutoff)));
        }
        match self.source.next(ends.as_ref(), POLL)? {
            Event::Batch(batch) => {
                let counts = self.windows.absorb(&batch);
                self.count(counts, &batch);
                self.seen.reads(self.source.is_connected());
            }
            Event::Idle => self.seen.reads(self.source.is_connected()),
            Event::Skipped { why } => self.seen.skips(why),
            Event::Reset { why } => {
                warn!("{why}; reading again from the oldest open window");
                self.must_rewind = true;
            }
            Event::Stuck { why } => self.seen.sticks(why),
        }
        self.seen.tell();
        Ok(None)
    }
}

impl Reading<'_> {
    fn close(&mut self, ends: Positions, cutoff: Timestamp) -> Share {
        self.recorded.ends = ends.clone();
        Share { part: self.windows.part(), ends, cutoff }
    }
}

impl Joining<'_> {
    /// From the shares of all readers to closed windows; ends with the first of the readers, or when nobody takes the windows.
    fn run(&self, closed: &SyncSender<Closed>) {
        while let Some(window) = self.next() {
            if closed.send(window).is_err() {
                break;
            }
        }
    }
}

impl Plan {
    /// From a closed window to its synopses, one a release and key: all of the walk that an exact value takes. Whoever calls
    /// this pays for it before anything leaves. `stored` reads a state that an earlier window left, and `take` gets one synopsis
    /// after another: what it does not keep takes no memory.
    ///
    /// # Errors
    ///
    /// If the price is too low for the noise to be drawn, if a stored state cannot be read or is damaged, or what `take` returns.
    pub fn release(
        &self,
        window: &Window,
        terms: &Terms,
        stored: &Stored<'_>,
        generator: &mut Generator,
        take: &mut dyn FnMut(Released) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Quoted { spans, prices, .. } = &terms.quoted;
        let parts = self.releases.iter().zip(&window.forms).zip(spans).zip(prices).enumerate();
        for (place, (((release, groups), span), price)) in parts {
            // A release that is over skips the window: by the schedule, whatever the records are.
            let Some(price) = price else { continue };
            let variants = release.variants_at(*price)?;
            for group in groups {
                let key = group.key.as_deref();
                let chosen = release.choose(&group.accumulator, generator);
                let variant = variants.get(chosen);
                let exact = variant.target.evaluate(&group.accumulator);
                let description = variant.description(&exact, generator);
                let noise_state = release.noise_state(stored, variant, key, *span)?;
                let drawn = release.draw(variant, &exact, noise_state, generator);
                let description = drawn.describe(release, description, self.rules.grid, *span);
                let description = terms.describe(description, self, key, *span);
                let values = variant.dequantize(&drawn.noisy);
                let state = drawn.state(release);
                let noisy = drawn.noisy;
                take(Released { release: place, variant: chosen, description, values, noisy, state })?;
            }
        }
        Ok(())
    }

    /// The synopses of a window, sealed, with fresh noise or that of the series in `ledger`.
    fn seal(
        &self,
        window: &Window,
        terms: &Terms,
        ledger: &Ledger,
        mut generator: Generator,
        health: &Health,
    ) -> Result<SealedWindow, Error> {
        let stored = |slot: &str| ledger.state(slot);
        let mut sealed = Vec::new();
        let mut states = Vec::new();
        self.release(window, terms, &stored, &mut generator, &mut |released| {
            health.beat();
            sealed.push(Sealed::new(released.description, released.values)?);
            states.extend(released.state);
            Ok(())
        })?;
        Ok(SealedWindow { sealed, states })
    }
}

/// What a window is to pay for, and what its noise series leave for the next one.
struct SealedWindow {
    sealed: Vec<Sealed>,
    /// The slot and the bytes of each.
    states: Vec<(String, Vec<u8>)>,
}

/// From closed windows to published synopses.
struct Releasing<'a> {
    plan: &'a Plan,
    /// The clock by which windows close.
    clock: ScheduleClock,
    /// No release covers an earlier window.
    first: Timestamp,
    ledger: Ledger,
    witness: Asked<'a, dyn Witness + Send + 'a>,
    sink: Asked<'a, dyn Sink + Send + 'a>,
    generators: Box<dyn FnMut() -> Result<Generator, mechanism::Error> + Send + 'a>,
    outage: Outage<deliver::Reason>,
    comparison: Comparison,
    /// Records that somebody else has written to the topics of the ledger.
    strays: Strays,
    reports: PendingReports,
    /// The window that closes next, and when it is due; `None` for one that comes late whatever the worker does.
    coming: Option<(Timestamp, Option<Timestamp>)>,
    /// When the next accepted message is due.
    next_due: Option<Timestamp>,
    /// The newest row that the witness has accepted, as the last step read it.
    accepted_head: Option<Head>,
    catch_up: CatchUp,
    metrics: Metrics,
    health: &'a Health,
    stop: &'a Stop,
    /// A closed window that waits for this worker's turn; the others wait behind it.
    held: Option<Closed>,
    /// Claims are left to another instance for now.
    is_waiting: bool,
    /// Whether the log says that this worker acts, or that it follows another one; nothing at first.
    is_acting: Option<bool>,
    /// The witness has accepted every window before.
    accepted: Arc<AtomicI64>,
}

impl Releasing<'_> {
    /// Releases closed windows and publishes what is due; ends when the other loop has ended and nothing is left to publish.
    fn run(mut self, closed: Receiver<Closed>) -> Result<(), Error> {
        let stop = self.stop;
        self.recall()?;
        // An earlier run may have paid for synopses that are not published yet.
        let mut next_step = Instant::now();
        let mut is_reading = true;
        while !stop.asked() {
            self.health.beat();
            let pause = next_step.saturating_duration_since(Instant::now()).min(POLL);
            let received = match self.health.witnessed.load(Relaxed) && self.held.is_none() {
                true => closed.recv_timeout(pause),
                // A ledger that the witness rejects must not pay for windows.
                false => {
                    stop.wait(pause);
                    Err(RecvTimeoutError::Timeout)
                }
            };
            match received {
                Ok(first) => {
                    self.held = Some(first);
                    next_step = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) => {}
                // No window comes any more, and everything may be done already.
                Err(RecvTimeoutError::Disconnected) if is_reading => {
                    is_reading = false;
                    next_step = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => stop.wait(pause),
            }
            // Where workers share a log, each looks before it draws whether another one has drawn.
            let may_release = self.held.is_some() && !self.ledger.is_shared() && self.comparison.agrees();
            if may_release && self.release_all(&closed)? {
                next_step = Instant::now();
            }
            self.report();
            if Instant::now() < next_step {
                continue;
            }
            match self.step() {
                Ok(progress) => {
                    self.delivered(&progress)?;
                    let is_waiting = self.ledger.is_shared() || self.held.is_some();
                    let has_released = is_waiting && self.comparison.agrees() && self.release_all(&closed)?;
                    let is_claimed = !progress.has_claimed && !progress.is_waiting && !has_released;
                    let is_done = is_claimed && progress.next_due.is_none() && self.held.is_none();
                    if !is_reading && is_done && self.reports.is_empty() {
                        break;
                    }
                    let pause = if has_released { Duration::ZERO } else { self.pause(&progress) };
                    next_step = Instant::now() + pause;
                }
                Err(Error::Deliver(error)) if error.is_transient() => {
                    self.comparison.begin_again();
                    self.undelivered(&error);
                    next_step = Instant::now() + RETRY;
                }
                Err(error) => return Err(error),
            }
        }
        if stop.asked() {
            self.resign();
        }
        Ok(())
    }

    /// Publishes and claims what is due, and what is due within [`LEAD`] at its moment; before that compares the witness with what was
    /// published, where that is to be done.
    fn step(&mut self) -> Result<Progress, Error> {
        self.next_due = None;
        self.look_at_output()?;
        let now = self.clock.now();
        let mut accepted = deliver::read(&mut self.ledger, &mut self.witness, now)?;
        if self.witness.remembered().is_some() && self.comparison.found.is_none() {
            // It was cut since it agreed, and only its reader has seen that.
            self.comparison.begin_again();
            self.look_at_output()?;
            accepted = deliver::read(&mut self.ledger, &mut self.witness, now)?;
        }
        self.compare(accepted.head())?;
        self.accepted_head = accepted.head();
        let stop = self.stop;
        let clock = self.clock.clone();
        let ahead = Ahead { lead: LEAD, wait: &|moment| stop.wait_until(moment, &clock) };
        let progress = deliver::act(&mut self.ledger, &mut self.witness, &mut self.sink, &accepted, now, &ahead)?;
        self.next_due = progress.next_due;
        self.comparison.step(progress.has_claimed && !self.ledger.is_acting());
        Ok(progress)
    }

    /// Releases the window that is held and those queued behind it, for a second at most: one claim then covers them all. What is
    /// due soon comes first. Windows that another worker has released are dropped, and others wait for this worker's turn. Whether
    /// there was anything to write.
    fn release_all(&mut self, closed: &Receiver<Closed>) -> Result<bool, Error> {
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
            if !self.ledger.may_draw(next.publish_at, self.clock.now())? {
                self.held = Some(next);
                break;
            }
            if let Some(first) = self.ledger.settle()? {
                warn!(
                    "this worker acts: its settings hold for windows from {first} on, and what was spent stays spent"
                );
                self.held = Some(next);
                return Ok(true);
            }
            if self.ledger.is_shared() && !self.may_reach(next.window.span) {
                return Err(Error::ReadsTooFar);
            }
            self.release(next)?;
            has_written = true;
            if started.elapsed() >= RETRY || !self.comparison.agrees() {
                break;
            }
        }
        Ok(has_written)
    }

    /// From a closed window to a paid one. After a crash before `pay` nothing has left, and the noise is drawn again; after a
    /// crash behind it the same bytes are published.
    fn release(&mut self, closed: Closed) -> Result<(), Error> {
        let started = Instant::now();
        let Closed { window, ends, publish_at } = closed;
        let plan = self.plan;
        let genesis = self.ledger.genesis();
        let began = genesis.first;
        let entry = Entry { id: genesis.ledger.clone(), sequence: self.ledger.head().sequence + 1 };
        let quoted = plan.quoted(window.span, (self.first, began), |block| self.ledger.spent(block));
        let Some(terms) = quoted.map(|quoted| Terms { publish_at, entry, quoted }) else {
            self.write(|ledger| ledger.withhold(window.span, ends))?;
            let outcome = Outcome::Withheld(plan.why_withheld(window.span, self.first, began));
            self.closed(publish_at, window.span, outcome);
            return Ok(());
        };
        let due = self.due_while_drawing()?;
        let Releasing { ledger, generators, health, witness, sink, clock, stop, .. } = &mut *self;
        let mut draw = || plan.seal(&window, &terms, ledger, generators()?, health);
        let drawn = match due {
            Some(due) => {
                let (drawn, published) = due.publish_beside((witness, sink), clock, stop, draw)?;
                self.mark_published_while_drawing(&due, published)?;
                drawn
            }
            None => draw(),
        };
        let SealedWindow { sealed, states } = drawn?;
        // What is exact is not needed any more, and the ledger needs memory for what is noisy.
        let span = window.span;
        drop(window);
        let charges = terms.quoted.charged.into_iter().map(|quoted| (quoted.block, quoted.price)).collect();
        let closing = Closing { window: span, publish_at, charges, ends, sealed, states };
        self.write(|ledger| ledger.pay(closing))?;
        self.health.owe(self.by_worker(publish_at), Timestamp::now());
        if let Some(operator) = &self.metrics.operator {
            operator.seconds_to_seal.set(started.elapsed().as_secs_f64());
        }
        self.closed(publish_at, span, Outcome::Released);
        Ok(())
    }

    /// Writes to the ledger, which somebody may hold: the readiness probe sees how long it takes.
    fn write(&mut self, write: impl FnOnce(&mut Ledger) -> Result<(), ledger::Error>) -> Result<(), ledger::Error> {
        self.health.ask();
        let written = write(&mut self.ledger);
        self.health.rest();
        written
    }
}
