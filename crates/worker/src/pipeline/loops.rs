//! The threads of a worker: its loops are made here, started and joined.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

use tracing::Dispatch;

use super::ReaderTask;
use super::error::PipelineError;
use super::health::Health;
use super::joining::{PartialMerger, WindowHandover};
use super::local_readers::{LocalReader, LocalReaderPool};
use super::outage::CommonOutage;
use super::partial_collector::{AbsorberParams, PartialCollector};
use super::plan::ReleasePlan;
use super::reader::{self, InputReader, ReaderStatus, UnreadReason};
use super::releasing::ReleaseTask;
use super::stop::{StopGuard, StopRequest};
use crate::metrics::Metrics;
use bernstream_kafka::sink::Sink;
use bernstream_kafka::source::RecordSource;
use bernstream_ledger::Ledger;
use bernstream_ledger::witness::Witness;
use bernstream_noise as mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::window::WindowStore;
use bernstream_synopsis::RecordedPositions;
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};
use bernstream_synopsis::grid::Span;

/// The name of the threads that read.
const READER_THREAD: &str = "reader";

/// Number of windows that wait between reading and releasing: a slow output slows reading instead of filling the memory.
const WAITING_WINDOWS: usize = 4;

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
    handover: WindowHandover,
}

/// The loops of a worker, before they run.
struct WorkerLoops<'a> {
    release_task: ReleaseTask<'a>,
    readers: Vec<ReadingLoop<ReaderTask<'a>>>,
    collector: Option<ReadingLoop<PartialCollector<'a>>>,
    /// Readers of the partitions that no absorber sends.
    local_readers: Vec<LocalReader<'a>>,
    merger: PartialMerger<'a>,
}

impl<'a> WorkerLoops<'a> {
    fn new(
        mut worker: Worker<'a>,
        absorbed: Option<AbsorberParams>,
        outage: &'a CommonOutage<UnreadReason>,
        stop: &'a StopRequest,
    ) -> Result<Self, PipelineError> {
        let plan = worker.plan;
        let health = worker.health;
        let metrics = worker.metrics.clone();
        let sources = std::mem::take(&mut worker.readers);
        let start = WindowsStart::new(plan, &worker.ledger)?;
        let clock = clock_of(&sources, absorbed.as_ref());
        let accepted = Arc::new(AtomicI64::new(i64::MIN));
        let mut merger = PartialMerger::new(&plan.publication);
        // Whoever reads gets one of these: the readers of split reading first, then those of the sources.
        let threads = sources.len() + absorbed.as_ref().map_or(0, SplitReaders::count);
        let is_for_operators = metrics.operator.is_some();
        let mut statuses = health
            .begin_readers(&clock, threads)
            .into_iter()
            .map(|reader| ReaderStatus::new(outage, reader, health, is_for_operators));
        let mut split = SplitReaders::default();
        if let Some(absorbed) = absorbed {
            let accepted = Arc::clone(&accepted);
            split = SplitReaders::new(absorbed, &start, accepted, &metrics, &mut statuses);
        }
        let collector = split.collector.map(|reader| ReadingLoop {
            reader,
            handover: merger.add_reader(),
        });
        let readers = sources
            .into_iter()
            .zip(statuses)
            .map(|(source, status)| ReadingLoop {
                reader: ReaderTask::new(source, &start, metrics.clone(), status),
                handover: merger.add_reader(),
            })
            .collect();
        Ok(WorkerLoops {
            release_task: ReleaseTask::new(worker, clock, &start, accepted, stop),
            readers,
            collector,
            local_readers: split.local_readers,
            merger,
        })
    }

    /// Runs all loops until they have ended. One that fails stops the others.
    fn run_all(self, stop: &StopRequest) -> Result<(), PipelineError> {
        let WorkerLoops {
            release_task,
            readers,
            collector,
            local_readers,
            merger,
        } = self;
        let (sender, receiver) = sync_channel(WAITING_WINDOWS);
        let log = &tracing::dispatcher::get_default(Dispatch::clone);
        thread::scope(|scope| {
            let mut threads = Vec::new();
            threads.push(spawn_loop(scope, "release", stop, move || {
                run_guarded(log, stop, || release_task.run_release_loop(receiver))
            })?);
            for ReadingLoop { reader, handover } in readers {
                threads.push(spawn_reader(scope, reader, Some(handover), log, stop)?);
            }
            if let Some(ReadingLoop { reader, handover }) = collector {
                threads.push(spawn_reader(scope, reader, Some(handover), log, stop)?);
            }
            for reader in local_readers {
                threads.push(spawn_reader(scope, reader, None, log, stop)?);
            }
            merger.merge_windows(&sender);
            drop((merger, sender));
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
    collector: Option<PartialCollector<'a>>,
    local_readers: Vec<LocalReader<'a>>,
}

impl<'a> SplitReaders<'a> {
    /// Number of their threads.
    fn count(absorbed: &AbsorberParams) -> usize {
        absorbed.own.len() + 1
    }

    fn new(
        mut absorbed: AbsorberParams,
        start: &WindowsStart<'_>,
        accepted: Arc<AtomicI64>,
        metrics: &Metrics,
        statuses: &mut impl Iterator<Item = ReaderStatus<'a>>,
    ) -> Self {
        let own = std::mem::take(&mut absorbed.own);
        let topic = own.first().map(|own| own.topic_id().to_owned());
        let (pool, queues) = LocalReaderPool::new(own.len());
        let mut readers = SplitReaders::default();
        for (own, queues) in own.into_iter().zip(queues) {
            if let Some(status) = statuses.next() {
                let reader = LocalReader::new(own, queues, metrics.clone(), status);
                readers.local_readers.push(reader);
            }
        }
        if let Some(topic) = topic
            && let Some(status) = statuses.next()
        {
            let metrics = metrics.clone();
            readers.collector = Some(PartialCollector::new(
                absorbed, topic, pool, start, accepted, metrics, status,
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

/// Starts the thread of a reader, which logs to `log`.
fn spawn_reader<'scope, 'a>(
    scope: &'scope Scope<'scope, '_>,
    reader: impl InputReader<'a> + Send + 'scope,
    handover: Option<WindowHandover>,
    log: &'scope Dispatch,
    stop: &'scope StopRequest,
) -> Result<ScopedJoinHandle<'scope, Result<(), PipelineError>>, PipelineError> {
    spawn_loop(scope, READER_THREAD, stop, move || {
        run_guarded(log, stop, || reader::run_reader(reader, handover, stop))
    })
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
