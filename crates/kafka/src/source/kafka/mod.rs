//! Records from the partitions of a Kafka topic.
//!
//! Partitions are assigned manually and no offset is committed: where to start follows from the ledger. Offsets only decide how
//! far to read; which window a record belongs to depends on the record alone.

mod cutoff_clock;
mod end_offset_tracker;
mod params;
mod partition_consumer;
mod records;
pub mod sample;
mod share;
mod stamps;
mod start;
mod stretches;
mod topic_inspector;
mod unreadable;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::KafkaError;

use self::cutoff_clock::{BrokerCutoffClock, CutoffClock};
use self::end_offset_tracker::{EndOffsetTracker, TAKEN};
use self::params::is_stamped_by_broker;
pub use self::params::{BadMessageRule, KafkaSourceParams, LostOffsets, check_topic};
use self::partition_consumer::{PartitionConsumer, PartitionProgress, ReadOutcome};
use self::records::MessageRecords;
pub use self::sample::{TopicSample, sample_topic};
use self::share::PartitionShare;
pub use self::stamps::{OlderStamps, older_stamps};
use self::start::{PartitionFacts, start_offset};
pub use self::stretches::PartitionRanges;
use self::topic_inspector::{TopicInspector, Watermarks};
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};

use crate::broker::close_client;
use crate::broker_clock::{BrokerClock, BrokerTime};
use crate::source::{RecordSource, RedactedReason, SourceError, SourceEvent};
use crate::topic;
use crate::topic::TopicMetadata;
use bernstream_release::source::Columns;
use bernstream_synopsis::{Positions, RecordedPositions};

/// The wait for records where the end offsets of a window may be known at any moment.
const ENDS: Duration = Duration::from_millis(5);
/// Number of messages of each partition that are looked at behind a broken one.
const MOST_LISTED: i64 = 1_000;

/// A topic as a source, or the share of its partitions that one of several readers reads.
pub struct KafkaSource {
    params: KafkaSourceParams,
    columns: Columns,
    topic: TopicMetadata,
    stamped_by_broker: bool,
    clock: fn() -> Timestamp,
    schedule: ScheduleClock,
    /// Answer of the brokers' clock when the topic was opened, unless producers are trusted.
    opened: Option<BrokerTime>,
    /// These two serve all readers.
    inspector: Arc<TopicInspector>,
    tracker: Arc<EndOffsetTracker>,
    share: PartitionShare,
    /// All partitions that the topic had when reading began.
    partitions: Vec<i32>,
    consumer: Option<PartitionConsumer>,
    /// A broken message is told together with those behind it: what is told then is for operators.
    lists_broken: bool,
}

impl KafkaSource {
    /// Connects and checks the topic. Reading starts with [`RecordSource::rewind`].
    ///
    /// # Errors
    ///
    /// If the topic does not exist, is compacted, has untrusted timestamps, if the clock topic is not one, if a type that records
    /// need is not declared, or if the cluster does not answer or refuses.
    pub fn open(
        params: KafkaSourceParams,
        columns: Columns,
        clock: fn() -> Timestamp,
    ) -> Result<Self, SourceError> {
        let topic = topic::describe_topic(&params.broker, &params.topic)?;
        check_topic(&params, &topic)?;
        MessageRecords::new(&params.format, &columns)?;
        let stamped_by_broker = is_stamped_by_broker(&topic);
        let inspector = TopicInspector::new(&params.broker, &params.topic)?;
        let schedule = ScheduleClock::new(clock);
        let mut opened = None;
        let cutoffs = if params.trust_producer_time {
            CutoffClock::Worker(clock)
        } else {
            let brokers = BrokerClock::open(&params.broker, &params.clock, &params.topic)?;
            let brokers = BrokerCutoffClock::new(brokers, clock, schedule.clone())?;
            opened = Some(brokers.last());
            CutoffClock::Brokers(brokers)
        };
        let tracker = EndOffsetTracker::start(
            inspector,
            &topic,
            params.clone(),
            stamped_by_broker,
            cutoffs,
        )?;
        let inspector = Arc::new(TopicInspector::new(&params.broker, &params.topic)?);
        Ok(KafkaSource {
            params,
            columns,
            topic,
            stamped_by_broker,
            clock,
            schedule,
            opened,
            inspector,
            tracker: Arc::new(tracker),
            share: PartitionShare::ALL,
            partitions: Vec::new(),
            consumer: None,
            lists_broken: false,
        })
    }

    /// Tells of a broken message together with all that can be seen behind it. How many there are shows something of
    /// the input: for operators.
    #[must_use]
    pub fn listing_broken(self, lists_broken: bool) -> Self {
        KafkaSource {
            lists_broken,
            ..self
        }
    }

    /// This topic for as many readers as the parameters say, but no more than it has partitions now. Together they read all of
    /// it, and partitions that are added later as well.
    pub fn shared_readers(self) -> Vec<KafkaSource> {
        let readers = self.params.readers_of(self.topic.partitions.len());
        let mut shared = Vec::new();
        for share in PartitionShare::each(readers) {
            shared.push(KafkaSource {
                params: self.params.clone(),
                columns: self.columns.clone(),
                topic: self.topic.clone(),
                schedule: self.schedule.clone(),
                inspector: Arc::clone(&self.inspector),
                tracker: Arc::clone(&self.tracker),
                share,
                partitions: Vec::new(),
                consumer: None,
                ..self
            });
        }
        shared
    }

    /// The topic as it was when opened.
    pub fn topic(&self) -> &TopicMetadata {
        &self.topic
    }

    /// Adds to why a partition has stopped what else is broken, where it has just done so.
    fn stuck_event(&mut self, why: RedactedReason) -> SourceEvent {
        let Some(consumer) = &mut self.consumer else {
            return SourceEvent::Stuck { why };
        };
        let Some(stopped) = consumer.just_stopped() else {
            return SourceEvent::Stuck { why };
        };
        // Without an answer there is what is known.
        let Ok(found) = sample::sample_following(
            &self.params,
            &self.columns,
            &self.inspector,
            &stopped.going_on,
            MOST_LISTED,
        ) else {
            return SourceEvent::Stuck { why };
        };
        if found.broken.len() < 2 {
            return SourceEvent::Stuck { why };
        }
        let reasons = found.reasons();
        let remedy = found.remedy();
        let first = why.in_full();
        let why = if found.broken.len() as u64 == found.messages {
            let in_full = format!(
                "{remedy}: of the next messages, {reasons}; if it is only they that are wrong: {first}"
            );
            let words = format!("{remedy}; if it is only they that are wrong: {why}");
            RedactedReason::new(words, in_full)
        } else {
            let in_full = format!("{first}; of the next messages, {reasons}; {remedy}");
            let words = format!("{why}; others of the next messages are broken too");
            RedactedReason::new(words, in_full)
        };
        consumer.stop(stopped.partition, stopped.offset, why.clone());
        SourceEvent::Stuck { why }
    }

    /// Finds which partition has the batch that the client failed on, and stops reading it there.
    fn stop_unreadable(&mut self, error: &KafkaError) -> Result<SourceEvent, SourceError> {
        let Some(consumer) = &mut self.consumer else {
            return Ok(SourceEvent::Idle);
        };
        match unreadable::find_unreadable(&self.params, &self.inspector, &consumer.next_offsets()) {
            Ok(Some(found)) => {
                let why = found.explain(&self.params.topic);
                consumer.stop(found.partition, found.from, why.clone());
                Ok(SourceEvent::Stuck { why })
            }
            // A connection corrupted it.
            Ok(None) => Ok(SourceEvent::Reset {
                why: format!(
                    "messages of topic '{}' were missed: {error}",
                    self.params.topic
                )
                .into(),
            }),
            // The client may have passed messages over: without it reading starts again.
            Err(error) => {
                let failed = self.consumer.take();
                close_client(failed);
                Err(error)
            }
        }
    }

    /// Offsets before which every message has a timestamp before `since`, as far as is known from windows that have closed.
    pub fn past_offsets(&self, since: Timestamp, recorded: &RecordedPositions) -> Positions {
        // What producers stamp need not be in the order of offsets, and not of the time when end offsets were taken.
        if self.params.trust_producer_time {
            return Positions::default();
        }
        if let Some(past) = self.tracker.past_offsets(since) {
            return past;
        }
        let margin = TAKEN + self.params.clock_slack * 2;
        match &recorded.past {
            Some((cutoff, ends)) if cutoff.plus(margin) <= since => ends.clone(),
            _ => Positions::default(),
        }
    }

    /// Begins for whoever leaves reading to others and asks for [`RecordSource::end_offsets`] only: checks that the topic is the one that was opened and,
    /// as far as is known, was read up to the `recorded` ends.
    ///
    /// # Errors
    ///
    /// If it is not, or if the cluster does not answer or refuses.
    pub fn begin_following(&self, recorded: &Positions) -> Result<(), SourceError> {
        let numbers = self.current_partitions(recorded)?;
        for (&partition, &end) in &recorded.0 {
            self.check_follows(partition, end, self.inspector.watermarks(partition)?)?;
        }
        self.note_partitions(numbers);
        Ok(())
    }

    /// The partitions of the topic, and among them all that were read before.
    fn current_partitions(&self, recorded: &Positions) -> Result<Vec<i32>, SourceError> {
        let mut seen = self.tracker.partitions();
        seen.extend(recorded.0.keys());
        let failure = match self.inspector.partitions(&self.topic.id, seen) {
            Ok(partitions) => return Ok(partitions),
            Err(failure) => failure,
        };
        // While no worker ran, the topic may have been made anew: then it shows in those that are there.
        if matches!(
            failure,
            SourceError::Kafka(crate::ClusterError::Lagging { .. })
        ) {
            for (&partition, &end) in &recorded.0 {
                let Ok(watermarks) = self.inspector.watermarks(partition) else {
                    break;
                };
                self.check_follows(partition, end, watermarks)?;
            }
        }
        Err(failure)
    }

    /// Notes that the topic has these partitions, and that what they have now is too early for every window that begins later: it may be
    /// deleted before any has closed.
    fn note_partitions(&self, numbers: Vec<i32>) {
        self.tracker.add_partitions(numbers);
        // One of the readers is enough.
        if self.share.has(0) && !self.params.trust_producer_time {
            self.tracker.end_offsets(self.schedule.now());
        }
    }

    /// Checks that a partition with these messages was read up to `end`, and that what comes after it is there, as far as that can be known.
    fn check_follows(
        &self,
        partition: i32,
        end: i64,
        Watermarks { low, high }: Watermarks,
    ) -> Result<(), SourceError> {
        // Brokers without ids do not say whether it is the same topic.
        if end > high && self.topic.id != topic::NO_ID && !self.params.broker.is_mock {
            return Err(SourceError::Cut {
                topic: self.params.topic.clone(),
                partition,
                end: high,
                read: end,
            });
        }
        if end > high {
            let words = format!("partition {partition} ends before what was read of it");
            let in_full =
                format!("partition {partition} ends at offset {high}, but was read up to {end}");
            return Err(self.recreated_error(RedactedReason::new(words, in_full)));
        }
        // By the times that producers give, an early message may come after what was deleted and not read.
        let is_unread = self.params.lost_until(partition, end).unwrap_or(end) < low;
        if self.params.trust_producer_time && is_unread {
            let from = self.params.lost_until(partition, 0).unwrap_or(0);
            return Err(SourceError::Deleted {
                topic: self.params.topic.clone(),
                partition,
                from,
                to: low,
            });
        }
        Ok(())
    }

    /// Checks that the topic was still the one that was opened when its end offsets were last taken.
    ///
    /// # Errors
    ///
    /// If it was not, or if the client that asks for them hangs.
    pub fn still_exists(&self) -> Result<(), SourceError> {
        self.changed_partitions(&[]).map(drop)
    }

    fn changed_partitions(&self, then: &[i32]) -> Result<Option<String>, SourceError> {
        if self.tracker.is_hanging() {
            let KafkaSourceParams { topic, broker, .. } = &self.params;
            return Err(SourceError::Hanging {
                topic: topic.clone(),
                servers: broker.servers.clone(),
            });
        }
        self.tracker.changed_partitions(then)
    }

    fn recreated_error(&self, why: RedactedReason) -> SourceError {
        SourceError::Recreated {
            topic: self.params.topic.clone(),
            why,
        }
    }
}

fn position_of(positions: &Positions, partition: i32) -> i64 {
    positions.0.get(&partition).copied().unwrap_or(0)
}

impl RecordSource for KafkaSource {
    fn clock(&self) -> ScheduleClock {
        self.schedule.clone()
    }

    fn rewind(
        &mut self,
        since: Timestamp,
        recorded: &RecordedPositions,
    ) -> Result<(), SourceError> {
        // A new client each time: messages fetched by the old one cannot appear again.
        if let Some(old) = self.consumer.take() {
            close_client(old);
        }
        let numbers = self.current_partitions(&recorded.ends)?;
        let ours: Vec<i32> = numbers
            .iter()
            .copied()
            .filter(|partition| self.share.has(*partition))
            .collect();
        // What comes before the first that is late enough is looked for is behind these, and what is deleted until then counts as deleted.
        let ends = Positions(self.inspector.end_offsets(&ours)?);
        let first = self.inspector.first_since(since, &ours)?;
        // With broker timestamps, no message that exists or existed can be later than the clock of the broker. A clock that is
        // behind, or stood still, must not excuse a message that is gone.
        let mut now = (self.clock)();
        if let Some(opened) = self.opened {
            now = now.max(opened.now());
        }
        let is_ahead = self.stamped_by_broker && since > now.plus(self.params.clock_slack);
        let mut partitions = BTreeMap::new();
        let past = self.past_offsets(since, recorded);
        for &partition in &ours {
            let watermarks = self.inspector.watermarks(partition)?;
            if let Some(end) = recorded.ends.0.get(&partition) {
                self.check_follows(partition, *end, watermarks)?;
            }
            let facts = PartitionFacts {
                low: watermarks.low,
                first: first.get(&partition).copied().flatten(),
                end: position_of(&ends, partition),
                is_ahead,
                past: position_of(&past, partition),
            };
            let start = start_offset(&self.params, partition, facts)?;
            partitions.insert(partition, PartitionProgress::new(start, since));
        }
        stamps::refuse_producer_stamps(&self.params, &first)?;
        self.consumer = Some(PartitionConsumer::start(
            &self.params,
            &self.columns,
            self.share.count(),
            partitions,
        )?);
        self.note_partitions(numbers.clone());
        self.partitions = numbers;
        Ok(())
    }

    fn next_event(
        &mut self,
        until: Option<&Positions>,
        timeout: Duration,
    ) -> Result<SourceEvent, SourceError> {
        if let Some(why) = self.changed_partitions(&self.partitions)? {
            return Ok(SourceEvent::Reset { why: why.into() });
        }
        // The wait for records does not outlast the cutoff: a window whose end is known and reached closes at once.
        let mut timeout = timeout;
        if let Some(cutoff) = self.tracker.wanted() {
            let time = cutoff.plus(self.params.clock_slack);
            timeout = timeout.min(time.since(self.schedule.now()).max(ENDS));
        }
        let Some(consumer) = &mut self.consumer else {
            return Ok(SourceEvent::Reset {
                why: "reading has not started".to_owned().into(),
            });
        };
        match consumer.next_event(&self.params, until, timeout)? {
            ReadOutcome::Event(SourceEvent::Stuck { why }) if self.lists_broken => {
                Ok(self.stuck_event(why))
            }
            ReadOutcome::Event(event) => Ok(event),
            ReadOutcome::Unreadable(error) => self.stop_unreadable(&error),
        }
    }

    fn end_offsets(&mut self, cutoff: Timestamp) -> Result<Option<Positions>, SourceError> {
        let mut ends = self.tracker.end_offsets(cutoff);
        if let Some(ends) = &mut ends {
            ends.0.retain(|partition, _| self.share.has(*partition));
        }
        Ok(ends)
    }

    fn has_reached(&self, ends: &Positions) -> Result<bool, SourceError> {
        let Some(consumer) = &self.consumer else {
            return Ok(false);
        };
        if consumer.has_gathered() {
            return Ok(false);
        }
        let is_past = ends.0.iter().all(|(number, end)| {
            let partition = consumer.partitions.get(number);
            partition.is_some_and(|partition| partition.next_offset() >= *end)
        });
        // The client is asked only when it is idle: the rest may be transaction markers, which are never returned.
        if !consumer.is_idle || is_past {
            return Ok(is_past);
        }
        let positions = self.params.checked(consumer.positions())?;
        Ok(ends
            .0
            .iter()
            .all(|(number, end)| positions.0.get(number).is_some_and(|at| at >= end)))
    }

    fn is_connected(&self) -> bool {
        self.tracker.is_connected()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Instant;

    use rdkafka::mocking::MockCluster;

    use super::*;
    use crate::Broker;
    use crate::source::record::TopicFormat;

    /// A broker that was asked later than another one, and knows of one partition less.
    #[test]
    #[expect(clippy::too_many_lines, reason = "one case after the other")]
    fn nothing_is_read_and_no_window_closes_without_a_partition_that_was_seen() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("input", 2, 1).unwrap();
        let params = KafkaSourceParams {
            broker: Broker::mock_cluster(cluster.bootstrap_servers()),
            topic: "input".to_owned(),
            clock: String::new(),
            clock_slack: Duration::ZERO,
            readers: Some(1),
            trust_producer_time: true,
            format: TopicFormat::Arrow,
            on_bad_message: BadMessageRule::Stop,
            skip: BTreeSet::new(),
            lost: vec![],
        };
        let columns = Columns {
            time: "time".to_owned(),
            ..Columns::default()
        };
        let mut source = KafkaSource::open(params, columns, Timestamp::now).unwrap();
        let ends = |source: &mut KafkaSource, cutoff: i64| {
            source.end_offsets(Timestamp::from_micros(cutoff)).unwrap()
        };
        let started = Instant::now();
        while ends(&mut source, 0).is_none() {
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "both partitions are there"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let cutoff = Timestamp::from_micros(0);
        let is_waited_for = |failure: &SourceError| {
            assert!(failure.is_transient(), "{failure}");
            assert!(
                failure
                    .to_string()
                    .contains("does not know all of topic 'input' yet: partition 2 is missing"),
                "{failure}"
            );
        };
        // The ledger knows it, from before a restart.
        let recorded = Positions([(2, 1)].into());
        let failures = [
            source.begin_following(&recorded),
            source.rewind(
                cutoff,
                &RecordedPositions {
                    ends: recorded,
                    past: None,
                },
            ),
        ];
        failures
            .map(Result::unwrap_err)
            .iter()
            .for_each(is_waited_for);
        // Another reader has seen it.
        source.tracker.add_partitions(vec![0, 1, 2]);
        source.tracker.add_partitions(vec![0, 1]);

        let failures = [
            source.rewind(cutoff, &RecordedPositions::default()),
            source.begin_following(&Positions::default()),
        ];
        failures
            .map(Result::unwrap_err)
            .iter()
            .for_each(is_waited_for);
        let started = Instant::now();
        while source.is_connected() {
            assert_eq!(ends(&mut source, 1), None);
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "the partition is not missed"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(ends(&mut source, 1), None);
        // One that was made anew has not even what was read of the partitions that are there.
        let made_anew = source
            .begin_following(&Positions([(0, 5), (2, 1)].into()))
            .unwrap_err();
        assert!(
            matches!(made_anew, SourceError::Recreated { .. }),
            "{made_anew}"
        );
    }
}
