//! The threads of a worker: its loops are made here, started and joined.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

use tracing::Dispatch;

use super::ReaderTask;
use super::absorbed::{AbsorberParams, PartialCollector};
use super::asked::TimedRequests;
use super::catch_up::CatchUp;
use super::comparison::WitnessComparison;
use super::error::PipelineError;
use super::health::Health;
use super::joining::{PartialMerger, WindowHandover};
use super::outage::{CommonOutage, Outage};
use super::plan::ReleasePlan;
use super::read_here::{LocalReader, LocalReaderPool};
use super::reader::{self, ReaderStatus, UnreadReason};
use super::releasing::ReleaseTask;
use super::reports::PendingReports;
use super::stop::{StopGuard, StopRequest};
use super::terms::LedgerBeginning;
use crate::metrics::Metrics;
use bernstream_kafka::UnknownTopic;
use bernstream_kafka::sink::Sink;
use bernstream_kafka::source::RecordSource;
use bernstream_ledger::Ledger;
use bernstream_ledger::witness::{StrayCounts, Witness};
use bernstream_noise as mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::window::WindowStore;
use bernstream_synopsis::RecordedPositions;
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};
use bernstream_synopsis::grid::Span;

/// The name of the threads that read.
const READER: &str = "reader";

/// Number of windows that wait between reading and releasing: a slow output slows reading instead of filling the memory.
const WAITING: usize = 4;

/// Everything that a worker needs; the command line provides it.
pub struct Worker<'a> {
    pub plan: &'a ReleasePlan,
    /// Shares of one input, each read by a thread of its own: together all of it, and no partition twice.
    pub readers: Vec<Box<dyn RecordSource + Send + 'a>>,
    pub ledger: Ledger,
    pub witness: Box<dyn Witness + Send + 'a>,
    pub sink: Box<dyn Sink + Send + 'a>,
    /// The source of the noise: a fresh generator for each window.
    pub generators: Box<dyn FnMut() -> Result<Generator, mechanism::NoiseError> + Send + 'a>,
    pub metrics: Metrics,
    pub health: &'a Health,
    pub stop: StopRequest,
}

impl<'a> Worker<'a> {
    /// Runs until the grid ends and everything is published, until a stop is requested, or until something fails.
    ///
    /// # Errors
    ///
    /// The failure of either loop that retrying cannot mend.
    pub fn run_alone(self) -> Result<(), PipelineError> {
        self.run_with_absorbers(None)
    }

    /// Runs as [`Worker::run_alone`] does, but where others read: `absorbed` gets the windows from them, in place of the readers.
    ///
    /// # Errors
    ///
    /// As for [`Worker::run_alone`].
    pub fn run_with_absorbers(self, absorbed: Option<AbsorberParams>) -> Result<(), PipelineError> {
        let stop = self.stop.clone();
        let outage = CommonOutage::default();
        self.health
            .allow_products(self.plan.most_products_per_window());
        WorkerLoops::new(self, absorbed, &outage, &stop)?.run_all(&stop)
    }
}

/// The beginning of the windows of a worker, and what its ledger has of them.
pub(super) struct WindowsStart<'a> {
    plan: &'a ReleasePlan,
    /// No release covers an earlier window.
    pub first: Timestamp,
    /// The window that closes next.
    pub next: Span,
    pub backfill_until: Option<Timestamp>,
    pub recorded: RecordedPositions,
}

impl<'a> WindowsStart<'a> {
    fn new(plan: &'a ReleasePlan, ledger: &Ledger) -> Result<Self, PipelineError> {
        // Earlier windows belong to other ledgers, or to settings that paid for no overlap.
        let first = ledger.genesis().first.max(ledger.live_from());
        let next = plan.rules.grid.span_of(ledger.next_window());
        let backfill_until = ledger.genesis().backfill_until;
        let mut start = WindowsStart {
            plan,
            first,
            next,
            backfill_until,
            recorded: RecordedPositions::default(),
        };
        let oldest_message = start.open_windows().oldest_message();
        start.recorded = ledger.recorded_positions(oldest_message, |window| {
            plan.rules.window_cutoff(window, backfill_until)
        })?;
        Ok(start)
    }

    /// The windows of one reader, before it has read anything.
    pub fn open_windows(&self) -> WindowStore {
        let forms = self
            .plan
            .releases
            .iter()
            .map(|release| release.form.clone())
            .collect();
        WindowStore::new(
            self.plan.rules.clone(),
            forms,
            self.first,
            self.next,
            self.backfill_until,
        )
    }
}

/// A loop that reads, and where it hands over its share of each window.
struct ReadingLoop<R> {
    reader: R,
    shares: WindowHandover,
}

/// The loops of a worker, before they run.
struct WorkerLoops<'a> {
    releasing: ReleaseTask<'a>,
    readings: Vec<ReadingLoop<ReaderTask<'a>>>,
    absorbing: Option<ReadingLoop<PartialCollector<'a>>>,
    /// Readers of the partitions that no absorber sends.
    reading_here: Vec<LocalReader<'a>>,
    joining: PartialMerger<'a>,
}

impl<'a> WorkerLoops<'a> {
    fn new(
        worker: Worker<'a>,
        absorbed: Option<AbsorberParams>,
        outage: &'a CommonOutage<UnreadReason>,
        stop: &'a StopRequest,
    ) -> Result<Self, PipelineError> {
        let Worker {
            plan,
            readers,
            health,
            ..
        } = worker;
        let metrics = worker.metrics.clone();
        let start = WindowsStart::new(plan, &worker.ledger)?;
        let clock = clock_of(&readers, absorbed.as_ref());
        let accepted = Arc::new(AtomicI64::new(i64::MIN));
        let mut joining = PartialMerger::new(&plan.publication);
        let threads = readers.len()
            + absorbed
                .as_ref()
                .map_or(0, |absorbed| absorbed.own.len() + 1);
        let is_for_operators = metrics.operator.is_some();
        let mut seen = health
            .begin_readers(&clock, threads)
            .into_iter()
            .map(|reader| ReaderStatus::new(outage, reader, health, is_for_operators));
        let mut split = SplitReaders::default();
        if let Some(absorbed) = absorbed {
            let accepted = Arc::clone(&accepted);
            split = SplitReaders::new(absorbed, &start, accepted, &metrics, &mut seen);
        }
        let absorbing = split.absorbing.map(|reader| ReadingLoop {
            reader,
            shares: joining.add_reader(),
        });
        let mut readings = Vec::new();
        for (source, seen) in readers.into_iter().zip(seen) {
            let reader = ReaderTask {
                source,
                windows: start.open_windows(),
                recorded: start.recorded.clone(),
                must_rewind: true,
                metrics: metrics.clone(),
                seen,
            };
            readings.push(ReadingLoop {
                reader,
                shares: joining.add_reader(),
            });
        }
        let releasing = ReleaseTask {
            plan,
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
            is_acting: None,
            accepted,
            metrics,
            health,
            stop,
        };
        Ok(WorkerLoops {
            releasing,
            readings,
            absorbing,
            reading_here: split.reading_here,
            joining,
        })
    }

    /// Runs all loops until they have ended. One that fails stops the others.
    fn run_all(self, stop: &StopRequest) -> Result<(), PipelineError> {
        let WorkerLoops {
            releasing,
            readings,
            absorbing,
            reading_here,
            joining,
        } = self;
        let (sender, receiver) = sync_channel(WAITING);
        let log = &tracing::dispatcher::get_default(Dispatch::clone);
        thread::scope(|scope| {
            let mut threads = Vec::new();
            threads.push(spawn_loop(scope, "release", stop, move || {
                run_guarded(log, stop, || releasing.run_release_loop(receiver))
            })?);
            for ReadingLoop { reader, shares } in readings {
                threads.push(spawn_loop(scope, READER, stop, move || {
                    run_guarded(log, stop, || reader::run_reader(reader, Some(shares), stop))
                })?);
            }
            if let Some(ReadingLoop { reader, shares }) = absorbing {
                threads.push(spawn_loop(scope, READER, stop, move || {
                    run_guarded(log, stop, || reader::run_reader(reader, Some(shares), stop))
                })?);
            }
            for reader in reading_here {
                threads.push(spawn_loop(scope, READER, stop, move || {
                    run_guarded(log, stop, || reader::run_reader(reader, None, stop))
                })?);
            }
            joining.merge_windows(&sender);
            drop((joining, sender));
            // All have ended before the first failure is returned.
            let ends: Vec<Result<(), PipelineError>> =
                threads.into_iter().map(end_of_thread).collect();
            ends.into_iter().collect()
        })
    }
}

/// The readers of a worker whose reading is split over processes.
#[derive(Default)]
struct SplitReaders<'a> {
    absorbing: Option<PartialCollector<'a>>,
    reading_here: Vec<LocalReader<'a>>,
}

impl<'a> SplitReaders<'a> {
    fn new(
        mut absorbed: AbsorberParams,
        start: &WindowsStart<'_>,
        accepted: Arc<AtomicI64>,
        metrics: &Metrics,
        seen: &mut impl Iterator<Item = ReaderStatus<'a>>,
    ) -> Self {
        let own = std::mem::take(&mut absorbed.own);
        let topic = own.first().map(|own| own.topic_id().to_owned());
        let (pool, queues) = LocalReaderPool::new(own.len());
        let mut readers = SplitReaders::default();
        for (own, queues) in own.into_iter().zip(queues) {
            if let Some(seen) = seen.next() {
                let reader = LocalReader::new(own, queues, metrics.clone(), seen);
                readers.reading_here.push(reader);
            }
        }
        if let Some(topic) = topic
            && let Some(seen) = seen.next()
        {
            let metrics = metrics.clone();
            readers.absorbing = Some(PartialCollector::new(
                absorbed, topic, pool, start, accepted, metrics, seen,
            ));
        }
        readers
    }
}

/// The clock by which windows close: that of the input.
fn clock_of(
    readers: &[Box<dyn RecordSource + Send + '_>],
    absorbed: Option<&AbsorberParams>,
) -> ScheduleClock {
    if let Some(absorbed) = absorbed {
        return absorbed.clock();
    }
    match readers.first() {
        Some(source) => source.clock(),
        None => ScheduleClock::new(Timestamp::now),
    }
}

/// Starts a thread; where it cannot be started, the others stop.
fn spawn_loop<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    stop: &StopRequest,
    work: impl FnOnce() -> Result<(), PipelineError> + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<(), PipelineError>>, PipelineError> {
    Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, work)
        .map_err(|error| {
            stop.request_stop();
            PipelineError::Thread(error)
        })
}

fn end_of_thread(
    thread: ScopedJoinHandle<'_, Result<(), PipelineError>>,
) -> Result<(), PipelineError> {
    thread.join().unwrap_or(Err(PipelineError::Panicked))
}

/// Runs a loop that logs to where the caller does, and that stops the others if it fails or panics.
fn run_guarded(
    log: &Dispatch,
    stop: &StopRequest,
    work: impl FnOnce() -> Result<(), PipelineError>,
) -> Result<(), PipelineError> {
    let mut guard = StopGuard::new(stop);
    tracing::dispatcher::with_default(log, work).inspect(|()| guard.disarm())
}
