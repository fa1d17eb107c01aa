//! A stream of messages as a source, which answers as the real ones do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::subject::StampSource;
use bernstream_kafka::source;
use bernstream_kafka::source::{RecordSource, SourceEvent};
use bernstream_release::source::{Columns, decode};
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};
use bernstream_synopsis::{Positions, RecordedPositions};

/// A question to a source outside of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceQuestion {
    /// To go back to this message timestamp.
    Rewind { since: Timestamp },
    /// The end of the messages before this time; repeated questions count once.
    Ends { cutoff: Timestamp },
}

/// Encoded messages, each in its partition, in the order in which they were sent.
pub(super) struct ReplayedStream<'a> {
    columns: &'a Columns,
    stamps: StampSource,
    messages: Vec<SentMessage>,
    /// The messages of each partition, by their place in `messages`.
    partitions: BTreeMap<i32, Vec<usize>>,
    positions: BTreeMap<i32, usize>,
    asked: Arc<Mutex<Vec<SourceQuestion>>>,
}

/// A message on its partition.
pub(super) struct SentMessage {
    pub partition: i32,
    pub stamp: Timestamp,
    pub bytes: Vec<u8>,
}

impl<'a> ReplayedStream<'a> {
    pub fn new(
        columns: &'a Columns,
        stamps: StampSource,
        messages: Vec<SentMessage>,
        asked: Arc<Mutex<Vec<SourceQuestion>>>,
    ) -> Self {
        let mut partitions: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for (place, message) in messages.iter().enumerate() {
            partitions.entry(message.partition).or_default().push(place);
        }
        let positions = partitions.keys().map(|partition| (*partition, 0)).collect();
        ReplayedStream {
            columns,
            stamps,
            messages,
            partitions,
            positions,
            asked,
        }
    }

    fn note_question(&self, what: SourceQuestion) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.last() != Some(&what) {
            asked.push(what);
        }
    }

    /// The first message of a partition that is stamped at or after `time`.
    fn first_from(&self, places: &[usize], time: Timestamp) -> Option<usize> {
        places.iter().position(|place| {
            self.messages
                .get(*place)
                .is_some_and(|message| message.stamp >= time)
        })
    }

    fn end_of_partition(&self, places: &[usize], cutoff: Timestamp) -> usize {
        match self.stamps {
            StampSource::Broker { slack } => self
                .first_from(places, cutoff.plus(slack))
                .unwrap_or(places.len()),
            StampSource::Producers | StampSource::None => places.len(),
        }
    }

    /// The next message of a partition that is not paused: the first that was sent.
    fn next_message(&self, until: Option<&Positions>) -> Option<usize> {
        let mut first: Option<usize> = None;
        for (partition, places) in &self.partitions {
            let Some(position) = self.positions.get(partition) else {
                continue;
            };
            let end = until.and_then(|until| until.0.get(partition));
            if end.is_some_and(|end| offset(*position) >= *end) {
                continue;
            }
            if let Some(place) = places.get(*position) {
                first = Some(first.map_or(*place, |first| first.min(*place)));
            }
        }
        first
    }
}

fn offset(place: usize) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

impl RecordSource for ReplayedStream<'_> {
    /// Everything is long past, so that nothing waits.
    fn clock(&self) -> ScheduleClock {
        ScheduleClock::new(|| Timestamp::LATEST)
    }

    fn rewind(
        &mut self,
        since: Timestamp,
        _recorded: &RecordedPositions,
    ) -> Result<(), source::SourceError> {
        self.note_question(SourceQuestion::Rewind { since });
        let mut positions = BTreeMap::new();
        for (partition, places) in &self.partitions {
            let start = match self.stamps {
                StampSource::None => 0,
                // None found means the start of the log.
                StampSource::Broker { .. } | StampSource::Producers => {
                    self.first_from(places, since).unwrap_or(0)
                }
            };
            positions.insert(*partition, start);
        }
        self.positions = positions;
        Ok(())
    }

    fn next_event(
        &mut self,
        until: Option<&Positions>,
        _timeout: Duration,
    ) -> Result<SourceEvent, source::SourceError> {
        let Some(sent) = self
            .next_message(until)
            .and_then(|place| self.messages.get(place))
        else {
            return Ok(SourceEvent::Idle);
        };
        let SentMessage {
            partition,
            stamp,
            bytes,
        } = sent;
        let Some(position) = self.positions.get_mut(partition) else {
            return Ok(SourceEvent::Idle);
        };
        let at = offset(*position);
        *position += 1;
        let stamp = (self.stamps != StampSource::None).then_some(*stamp);
        match decode::decode_message(bytes, self.columns, *partition, at, stamp) {
            Ok(batch) => Ok(SourceEvent::Batch(batch)),
            // A worker waits here for ever; a replay ends.
            Err(broken) => Err(source::SourceError::File {
                path: format!("partition {partition}, offset {at}"),
                why: broken.to_string().into(),
            }),
        }
    }

    fn end_offsets(&mut self, cutoff: Timestamp) -> Result<Option<Positions>, source::SourceError> {
        self.note_question(SourceQuestion::Ends { cutoff });
        let mut ends = Positions::default();
        for (partition, places) in &self.partitions {
            ends.0
                .insert(*partition, offset(self.end_of_partition(places, cutoff)));
        }
        Ok(Some(ends))
    }

    fn has_reached(&self, ends: &Positions) -> Result<bool, source::SourceError> {
        Ok(ends.0.iter().all(|(partition, end)| {
            let position = self.positions.get(partition);
            position.is_some_and(|position| offset(*position) >= *end)
        }))
    }

    fn is_connected(&self) -> bool {
        true
    }
}
