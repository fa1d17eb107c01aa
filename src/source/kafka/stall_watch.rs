//! A client from which nothing comes although its brokers have more for it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::partition_consumer::PartitionConsumer;
use super::topic_inspector::TopicInspector;
use crate::source::{Error, Event, Positions};

/// How long reading may stand still before the brokers are asked whether there is more.
const PATIENCE: Duration = Duration::from_secs(5);

/// Finds a client that stands still before the ends that it must reach: after an outage one may never find its brokers again
/// (<https://github.com/confluentinc/librdkafka/issues/5301>).
///
/// An open transaction keeps a client waiting too. So a new client is asked what is committed: only where that is more than the old one has
/// come to, the old one is lost. Reading then starts again from the oldest open window: a client that began where the old one stood could
/// not tell whether the log had been cut there meanwhile.
#[derive(Default)]
pub(super) struct StallWatch {
    /// The partitions that have not come to their end.
    stalls: BTreeMap<i32, Stall>,
}

struct Stall {
    at: i64,
    end: i64,
    since: Instant,
    /// Twice as long after each new start until the end is reached, so that slow brokers are read at last.
    patience: Duration,
}

impl StallWatch {
    /// What follows from nothing having come: [`Event::Reset`] if the client is lost.
    ///
    /// # Errors
    ///
    /// If the client has no positions.
    pub fn idle(
        &mut self,
        consumer: &PartitionConsumer,
        inspector: &TopicInspector,
        until: &Positions,
    ) -> Result<Event, Error> {
        let at = consumer.positions().map_err(|e| inspector.broker.failed(&inspector.topic, &e))?;
        let now = Instant::now();
        self.note(&at, until, now);
        let mut overdue: BTreeMap<_, _> = self.stalls.iter_mut().filter(|(_, stall)| stall.is_overdue(now)).collect();
        let positions = Positions(overdue.iter().map(|(partition, stall)| (**partition, stall.at)).collect());
        // Brokers that do not answer have nothing for a client either.
        let is_lost = !overdue.is_empty() && inspector.has_committed(&positions).unwrap_or(false);
        for stall in overdue.values_mut() {
            stall.since = now;
            stall.patience *= if is_lost { 2 } else { 1 };
        }
        Ok(match is_lost {
            true => {
                let why = format!("a client of topic '{}' does not get what brokers have for it", inspector.topic);
                Event::Reset { why: why.into() }
            }
            false => Event::Idle,
        })
    }

    /// Notes where the partitions are that have not come to their end.
    fn note(&mut self, at: &Positions, until: &Positions, now: Instant) {
        let end_of = |partition: &i32| until.0.get(partition).copied();
        self.stalls.retain(|partition, stall| end_of(partition) == Some(stall.end));
        for (&partition, &at) in &at.0 {
            match end_of(&partition).filter(|end| at < *end) {
                Some(end) => {
                    let new = Stall { at, end, since: now, patience: PATIENCE };
                    let stall = self.stalls.entry(partition).or_insert(new);
                    if stall.at != at {
                        stall.at = at;
                        stall.since = now;
                    }
                }
                None => {
                    self.stalls.remove(&partition);
                }
            }
        }
    }
}

impl Stall {
    fn is_overdue(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= self.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(at: i64) -> Positions {
        Positions([(0, at), (1, 9)].into())
    }

    #[test]
    fn a_stall_lasts_while_nothing_moves_and_is_forgotten_at_the_end() {
        let (mut watch, begun, until) = (StallWatch::default(), Instant::now(), positions(5));
        let overdue = |watch: &StallWatch, seconds| {
            let now = begun + Duration::from_secs(seconds);
            watch
                .stalls
                .iter()
                .filter(|(_, stall)| stall.is_overdue(now))
                .map(|(number, _)| *number)
                .collect::<Vec<_>>()
        };
        for (seconds, at, expected) in
            [(0, 1, vec![]), (4, 1, vec![]), (5, 1, vec![0]), (6, 2, vec![]), (11, 2, vec![0])]
        {
            watch.note(&positions(at), &until, begun + Duration::from_secs(seconds));
            assert_eq!(overdue(&watch, seconds), expected, "after {seconds} s");
        }
        watch.note(&positions(5), &until, begun + Duration::from_secs(12));
        assert!(overdue(&watch, 100).is_empty());
    }
}
