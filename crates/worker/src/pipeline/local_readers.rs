//! The partitions that no absorber sends in time: threads of this worker read them, each some of them.
//!
//! A thread is asked and answers by queues without a bound, so that nobody ever waits for room in one, whatever else they wait for.
//! What is in them is bounded all the same: a thread remembers few windows of a partition, and has one partial for each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use super::joining::PartialWindow;
use super::reader::{InputReader, ReaderStatus};
use crate::metrics::Metrics;
use crate::scale::{self, AbsorbingStep, PartitionPartial, WindowAnnouncement};
use bernstream_kafka::source;

/// The longest wait for records, and so the delay with which what is asked is noticed.
const READ_POLL: Duration = Duration::from_millis(100);

/// A request to a thread.
enum ReadRequest {
    /// The partial of a partition.
    Partial(Arc<WindowAnnouncement>, i32),
    /// To read no partitions but these any more.
    Only(Arc<BTreeSet<i32>>),
}

/// The threads, as the loop sees them that joins partials.
pub(super) struct LocalReaderPool {
    threads: Vec<Sender<ReadRequest>>,
    partials: Receiver<PartitionPartial>,
}

/// The queue by which one thread is asked, and the one of its answers.
pub(super) struct ReaderQueues {
    requests: Receiver<ReadRequest>,
    partials: Sender<PartitionPartial>,
}

impl LocalReaderPool {
    /// For so many threads.
    pub fn new(threads: usize) -> (Self, Vec<ReaderQueues>) {
        let (sender, partials) = channel();
        let mut pool = LocalReaderPool {
            threads: Vec::new(),
            partials,
        };
        let mut queues = Vec::new();
        for _ in 0..threads {
            let (asks, requests) = channel();
            pool.threads.push(asks);
            queues.push(ReaderQueues {
                requests,
                partials: sender.clone(),
            });
        }
        (pool, queues)
    }

    /// Asks for the partial of a partition.
    pub fn ask_for_partial(&self, announcement: &Arc<WindowAnnouncement>, partition: i32) {
        // Every partition, a new one too, is one thread's. A thread that has ended has failed, and then the worker stops.
        let thread = partition.unsigned_abs() as usize % self.threads.len().max(1);
        if let Some(thread) = self.threads.get(thread) {
            let _ = thread.send(ReadRequest::Partial(Arc::clone(announcement), partition));
        }
    }

    /// Reads no partitions but these any more.
    pub fn keep_partitions(&self, partitions: &BTreeSet<i32>) {
        let partitions = Arc::new(partitions.clone());
        for thread in &self.threads {
            let _ = thread.send(ReadRequest::Only(Arc::clone(&partitions)));
        }
    }

    /// Returns the partials that are there, or the next one if it comes within `timeout`.
    pub fn next_partials(&self, timeout: Duration) -> Vec<PartitionPartial> {
        match self.partials.recv_timeout(timeout) {
            Ok(first) => [first]
                .into_iter()
                .chain(self.partials.try_iter())
                .collect(),
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => {
                // All threads have failed: the worker stops as soon as it looks.
                thread::sleep(timeout);
                Vec::new()
            }
        }
    }
}

/// One of the threads.
pub(super) struct LocalReader<'a> {
    absorber: scale::PartitionAbsorber,
    queues: ReaderQueues,
    /// Nobody asks any more.
    is_over: bool,
    metrics: Metrics,
    status: ReaderStatus<'a>,
}

impl<'a> LocalReader<'a> {
    pub fn new(
        absorber: scale::PartitionAbsorber,
        queues: ReaderQueues,
        metrics: Metrics,
        status: ReaderStatus<'a>,
    ) -> Self {
        LocalReader {
            absorber,
            queues,
            is_over: false,
            metrics,
            status,
        }
    }

    /// Takes what is asked; waits for it if there is nothing to read.
    fn take_requests(&mut self) {
        let mut request = match self.absorber.is_idle() {
            true => self
                .queues
                .requests
                .recv_timeout(READ_POLL)
                .map_err(|error| error == RecvTimeoutError::Disconnected),
            false => self
                .queues
                .requests
                .try_recv()
                .map_err(|error| error == TryRecvError::Disconnected),
        };
        loop {
            match request {
                Ok(ReadRequest::Partial(announcement, partition)) => {
                    self.absorber.ask_instead(&announcement, partition)
                }
                Ok(ReadRequest::Only(partitions)) => self.absorber.keep_partitions(&partitions),
                Err(is_over) => {
                    self.is_over = is_over;
                    return;
                }
            }
            request = self
                .queues
                .requests
                .try_recv()
                .map_err(|error| error == TryRecvError::Disconnected);
        }
    }
}

impl<'a> InputReader<'a> for LocalReader<'a> {
    fn reader_status(&mut self) -> &mut ReaderStatus<'a> {
        &mut self.status
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn read_once(&mut self) -> Result<Option<PartialWindow>, source::SourceError> {
        self.take_requests();
        let AbsorbingStep {
            finished,
            stuck,
            skipped,
            behind,
        } = match self.absorber.is_idle() {
            true => AbsorbingStep::default(),
            false => self.absorber.read_step(READ_POLL)?,
        };
        for partial in finished {
            let _ = self.queues.partials.send(partial);
        }
        match stuck {
            Some(why) => self.status.report_stuck(why),
            None if self.absorber.stopped_partitions().is_empty() => self.status.clear_stuck(),
            None => {}
        }
        if let Some(why) = skipped {
            self.status.count_skipped(why);
        }
        if let Some(operator) = self.metrics.operator.as_ref().filter(|_| behind > 0) {
            operator
                .records
                .with_label_values(&["behind"])
                .inc_by(behind);
            self.status.count_behind(behind);
        }
        // Whether brokers answer is known to the loop that asks.
        self.status.report_reading(true);
        self.status.log_counts();
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use bernstream_synopsis::Positions;
    use bernstream_synopsis::clock::Timestamp;
    use bernstream_synopsis::grid::Span;

    #[test]
    fn partitions_are_spread_over_threads_and_each_is_always_one_threads() {
        let at = Timestamp::from_micros;
        let announcement = Arc::new(WindowAnnouncement {
            version: 1,
            settings: String::new(),
            choices: String::new(),
            topic: String::new(),
            window: Span {
                start: at(0),
                end: at(1),
            },
            cutoff: at(1),
            first: at(0),
            backfill_until: None,
            ends: Positions(BTreeMap::new()),
            past: Positions::default(),
        });
        let (pool, queues) = LocalReaderPool::new(3);
        for partition in [0, 1, 2, 3, 4, 5, 6, 0, 5] {
            pool.ask_for_partial(&announcement, partition);
        }
        let asked = |queues: &ReaderQueues| -> Vec<i32> {
            let number = |request| {
                if let ReadRequest::Partial(_, partition) = request {
                    Some(partition)
                } else {
                    None
                }
            };
            queues.requests.try_iter().filter_map(number).collect()
        };
        let asked: Vec<_> = queues.iter().map(asked).collect();
        assert_eq!(asked, [vec![0, 3, 6, 0], vec![1, 4], vec![2, 5, 5]]);
    }

    #[test]
    fn nobody_waits_for_threads_that_have_ended() {
        let (pool, queues) = LocalReaderPool::new(2);
        drop(queues);
        pool.keep_partitions(&BTreeSet::from([1]));
        assert!(pool.next_partials(Duration::from_millis(1)).is_empty());
    }
}
