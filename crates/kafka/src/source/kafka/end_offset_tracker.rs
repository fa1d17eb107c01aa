//! The end offsets of a topic at each cutoff, taken on time by a thread of its own, however long decoding takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::warn;

use super::cutoff_clock::CutoffClock;
use super::params::KafkaSourceParams;
use super::topic_inspector::TopicInspector;
use crate::replica_lag;
use crate::right::TopicRight;
use crate::source::SourceError;
use crate::topic::TopicMetadata;
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock;
use bernstream_synopsis::clock::{Reminder, Timestamp};

/// Pause after which the id and the partitions of the topic are checked again between cutoffs.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Ends that were not taken within this after their cutoff and the slack are asked for again, and then looked up by time.
pub(super) const TAKEN: Duration = Duration::from_secs(60);
/// The pause after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// End offsets taken later than this are looked up by time, if the broker sets the timestamps.
const LATE: Duration = Duration::from_secs(1);
/// Brokers without an answer for this long count as not connected.
const SILENT: Duration = Duration::from_secs(10);
/// Brokers without an answer or an error for this long leave their client no way back: each request ends long before.
const HANGING: Duration = Duration::from_secs(180);
/// Number of cutoffs that are remembered.
const MAX_KNOWN: usize = 1024;

/// Shared by the tracker thread and the reading threads.
#[derive(Default)]
struct TrackerState {
    /// Cutoffs whose end offsets are not known yet.
    pending: BTreeSet<Timestamp>,
    known: BTreeMap<Timestamp, KnownEnds>,
    /// The partitions of the topic, as far as anybody has seen them.
    partitions: Vec<i32>,
    /// Why reading must stop.
    fault: Option<SourceError>,
    connected: bool,
    /// Since when the brokers owe an answer.
    asked: Option<Instant>,
    stop: bool,
}

/// The state, and a notification of a new cutoff or the end.
#[derive(Default)]
struct SharedTrackerState {
    state: Mutex<TrackerState>,
    changed: Condvar,
}

impl SharedTrackerState {
    fn lock(&self) -> MutexGuard<'_, TrackerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrackerState {
    fn has_asked_for(&self, time: Duration) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() >= time)
    }

    /// A topic loses none, but a broker that was asked may not know the newest.
    fn add_partitions(&mut self, partitions: Vec<i32>) {
        if partitions.len() > self.partitions.len() {
            self.partitions = partitions;
        }
    }

    fn record_ends(&mut self, checked: CheckedTopic) {
        self.connected = true;
        // A reader may have seen a new partition meanwhile: then they are taken again.
        if checked.partitions.len() >= self.partitions.len() {
            for (cutoff, known) in checked.ends {
                self.pending.remove(&cutoff);
                while self.known.len() >= MAX_KNOWN {
                    self.known.pop_first();
                }
                self.known.insert(cutoff, known);
            }
        }
        self.add_partitions(checked.partitions);
    }
}

struct KnownEnds {
    ends: Positions,
    /// No message before the end offsets has a later timestamp, where brokers stamp them.
    newest: Timestamp,
}

/// The side of the reading threads.
pub(super) struct EndOffsetTracker(Arc<SharedTrackerState>);

impl EndOffsetTracker {
    /// Starts the thread. End offsets are taken once `clock` is `clock_slack` past their cutoff.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(
        inspector: TopicInspector,
        topic: &TopicMetadata,
        params: KafkaSourceParams,
        stamped_by_broker: bool,
        clock: CutoffClock,
    ) -> Result<Self, SourceError> {
        let servers = inspector.broker.servers.clone();
        let id = topic.id.clone();
        let state = TrackerState {
            connected: true,
            partitions: topic.partitions.clone(),
            ..TrackerState::default()
        };
        let shared = Arc::new(SharedTrackerState {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let thread = TrackerThread {
            shared: shared.clone(),
            inspector,
            id,
            slack: params.clock_slack,
            params,
            stamped_by_broker,
            clock,
            has_begun: false,
            clock_reminder: Reminder::default(),
            lag_reminder: Reminder::default(),
        };
        std::thread::Builder::new()
            .name("end offsets".to_owned())
            .spawn(move || thread.run())
            .map_err(|e| crate::ClusterError::Unavailable {
                servers,
                why: e.to_string(),
            })?;
        Ok(EndOffsetTracker(shared))
    }

    fn state(&self) -> MutexGuard<'_, TrackerState> {
        self.0.lock()
    }

    /// The partitions of the topic, as far as anybody has seen them.
    pub fn partitions(&self) -> Vec<i32> {
        self.state().partitions.clone()
    }

    /// A reader has seen that the topic has these partitions.
    pub fn add_partitions(&self, partitions: Vec<i32>) {
        self.state().add_partitions(partitions);
    }

    /// The end offsets at `cutoff`, once they are known; the first call requests them.
    pub fn end_offsets(&self, cutoff: Timestamp) -> Option<Positions> {
        let mut state = self.state();
        let known = state.known.get(&cutoff).map(|known| known.ends.clone());
        if known.is_none() && state.pending.insert(cutoff) {
            self.0.changed.notify_one();
        }
        known
    }

    /// The end offsets of the last cutoff with no message before them that has a timestamp of `since` or later, where brokers stamp them.
    pub fn past_offsets(&self, since: Timestamp) -> Option<Positions> {
        let state = self.state();
        for (_, known) in state.known.range(..since).rev() {
            if known.newest < since {
                return Some(known.ends.clone());
            }
        }
        None
    }

    /// The first cutoff whose end offsets are wanted and not known yet.
    pub fn wanted(&self) -> Option<Timestamp> {
        self.state().pending.first().copied()
    }

    pub fn is_connected(&self) -> bool {
        let state = self.state();
        state.connected && !state.has_asked_for(SILENT)
    }

    /// Returns whether the thread waits for an answer that does not come any more.
    pub fn is_hanging(&self) -> bool {
        self.state().has_asked_for(HANGING)
    }

    /// Why a reader must start again that began when the topic had the partitions `then`, if it must.
    ///
    /// # Errors
    ///
    /// If the topic was created again.
    pub fn changed_partitions(&self, then: &[i32]) -> Result<Option<String>, SourceError> {
        let mut state = self.state();
        if let Some(fault) = state.fault.take() {
            return Err(fault);
        }
        if state.partitions == then {
            return Ok(None);
        }
        let had = then.len();
        let has = state.partitions.len();
        Ok(Some(format!(
            "the topic had {had} partitions and now has {has}"
        )))
    }
}

impl Drop for EndOffsetTracker {
    // The thread may be waiting for an answer, so it is not joined.
    fn drop(&mut self) {
        self.state().stop = true;
        self.0.changed.notify_one();
    }
}

/// The result of one check.
struct CheckedTopic {
    partitions: Vec<i32>,
    ends: Vec<(Timestamp, KnownEnds)>,
}

/// The side of the tracker thread.
struct TrackerThread {
    shared: Arc<SharedTrackerState>,
    inspector: TopicInspector,
    id: String,
    slack: Duration,
    params: KafkaSourceParams,
    stamped_by_broker: bool,
    clock: CutoffClock,
    /// Somebody reads. What a worker only opens again and again until everything is there tells nothing.
    has_begun: bool,
    clock_reminder: Reminder,
    lag_reminder: Reminder,
}

impl TrackerThread {
    fn run(mut self) {
        let mut pause = CHECK_INTERVAL;
        while let Some(due) = self.wait_for_due(pause) {
            self.shared.lock().asked = Some(Instant::now());
            self.begin_warnings();
            let checked = self.check_topic(&due);
            self.shared.lock().asked = None;
            match checked {
                Ok(checked) => {
                    self.lag_reminder.forget_reminder();
                    self.shared.lock().record_ends(checked);
                    pause = CHECK_INTERVAL;
                }
                Err(error) => {
                    if let Some(why) = refusal_reason(&error)
                        && self.lag_reminder.is_due(Instant::now())
                    {
                        warn!("no window closes meanwhile: {why}");
                    }
                    let mut state = self.shared.lock();
                    state.connected = false;
                    if matches!(error, SourceError::Recreated { .. }) {
                        state.fault = Some(error);
                    }
                    pause = RETRY_PAUSE;
                }
            }
        }
    }

    /// Tells what is wrong with the settings and the clocks, once somebody reads.
    fn begin_warnings(&mut self) {
        if !self.has_begun && !self.shared.lock().pending.is_empty() {
            self.has_begun = true;
            self.warn_of_lag();
            self.clock.begin();
        }
    }

    /// Tells if a record that is stamped before a cutoff can turn up when its window has closed.
    fn warn_of_lag(&self) {
        let TopicInspector { broker, topic, .. } = &self.inspector;
        // Without an answer `bernstream check` says what to look at.
        if let Ok(Some(lag)) = replica_lag::longest_lag(broker, topic)
            && self.slack <= lag
        {
            let slack = clock::format_duration(self.slack);
            let lag = clock::format_duration(lag);
            warn!(
                "clock_slack, {slack}, is not above {} of the brokers, {lag}: records that are stamped before a cutoff can turn up \
                 when their window has closed, and are then lost",
                replica_lag::SETTING
            );
        }
    }

    /// Waits for `pause`, or until a cutoff is due. Returns the due cutoffs, or `None` when the thread must end.
    fn wait_for_due(&self, pause: Duration) -> Option<Vec<Timestamp>> {
        let started = Instant::now();
        let mut state = self.shared.lock();
        loop {
            if state.stop {
                return None;
            }
            let now = self.clock.now();
            // Measured by a monotonic clock: a wall clock that was briefly ahead must not prolong the pause.
            let mut rest = pause.saturating_sub(started.elapsed());
            // After a failure the pause is kept even if a cutoff is due.
            if pause == CHECK_INTERVAL
                && let Some(cutoff) = state.pending.first()
            {
                rest = cutoff.plus(self.slack).since(now).min(rest);
            }
            if rest.is_zero() {
                let pending = state.pending.iter().copied();
                let due = pending.filter(|cutoff| cutoff.plus(self.slack) <= now);
                return Some(due.collect());
            }
            let waited = self.shared.changed.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn check_topic(&mut self, due: &[Timestamp]) -> Result<CheckedTopic, SourceError> {
        let seen = self.shared.lock().partitions.clone();
        let partitions = self.inspector.partitions(&self.id, seen)?;
        let wanted = due.last().map(|cutoff| cutoff.plus(self.slack));
        let reached = self.clock.reached_time(wanted).inspect_err(|error| {
            if self.clock_reminder.is_due(Instant::now()) {
                warn!("the brokers' clock cannot be asked, and no window closes meanwhile: {error}; trying again");
            }
        })?;
        self.clock_reminder.forget_reminder();
        let mut ends = Vec::new();
        for &cutoff in due {
            if cutoff.plus(self.slack) <= reached {
                let known = KnownEnds {
                    ends: self.take_ends(cutoff, &partitions)?,
                    newest: self.clock.latest().plus(self.slack),
                };
                ends.push((cutoff, known));
            }
        }
        Ok(CheckedTopic { ends, partitions })
    }

    /// The end offsets at `cutoff`. Where brokers stamp messages, none before them is stamped later than [`TAKEN`] and twice the slack after it.
    fn take_ends(&self, cutoff: Timestamp, partitions: &[i32]) -> Result<Positions, SourceError> {
        let time = cutoff.plus(self.slack);
        let was_late = self.is_late(time, LATE);
        let mut ends = self.inspector.end_offsets(partitions)?;
        // The worker was stopped, or its clock is behind. High watermarks would also be correct, but every window would stay open until they
        // are reached. They were taken before, so that what comes in between is behind them.
        if was_late {
            // A message that a fast clock stamped is before others that were sent before the cutoff: not if it is that late.
            let since = time.plus(self.slack);
            for (partition, offset) in self.inspector.first_since(since, partitions)? {
                // A message that is given up can have a producer's time, which ends no window: others behind it would be missing.
                if let Some(offset) = offset
                    && self.params.passed_from(partition, offset) == offset
                {
                    ends.insert(partition, offset);
                }
            }
        } else if self.is_late(time, TAKEN) {
            return Err(SourceError::Kafka(crate::ClusterError::Unavailable {
                servers: self.inspector.broker.servers.clone(),
                why: "the end offsets of the input took a minute".to_owned(),
            }));
        }
        Ok(Positions(ends))
    }

    /// Returns whether `time` has passed for longer than `by`, where that says something of messages.
    fn is_late(&self, time: Timestamp, by: Duration) -> bool {
        self.stamped_by_broker && self.clock.latest().since(time) > by
    }
}

/// Why brokers that answer do not say what is asked; of those that do not answer readers tell, and of a topic that is another one its error.
fn refusal_reason(error: &SourceError) -> Option<String> {
    match error {
        SourceError::Kafka(crate::ClusterError::Unavailable { .. })
        | SourceError::Recreated { .. } => None,
        // They say so to a user who may not see it.
        SourceError::Kafka(crate::ClusterError::NoTopic { topic, servers }) => Some(format!(
            "kafka at {servers} does not show topic '{topic}' any more: it was deleted, or this user has lost the right {} on it",
            TopicRight::Read
        )),
        error => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_longer_than_any_request_hangs() {
        let tracker = EndOffsetTracker(Arc::default());
        tracker.state().connected = true;
        for (seconds, is_connected, is_hanging) in
            [(0, true, false), (11, false, false), (181, false, true)]
        {
            tracker.state().asked = Instant::now().checked_sub(Duration::from_secs(seconds));
            assert_eq!(
                (tracker.is_connected(), tracker.is_hanging()),
                (is_connected, is_hanging),
                "{seconds} s"
            );
        }
        tracker.state().asked = None;
        assert!(tracker.is_connected() && !tracker.is_hanging());
    }

    #[test]
    fn brokers_that_refuse_are_not_brokers_that_cannot_be_reached() {
        let topic = "in".to_owned();
        let servers = "a:1".to_owned();
        let no_right = crate::ClusterError::NoRight {
            topic: topic.clone(),
            servers: servers.clone(),
            right: TopicRight::Read,
        };
        let missing = crate::ClusterError::NoTopic {
            topic,
            servers: servers.clone(),
        };
        for error in [no_right, missing] {
            assert!(
                refusal_reason(&error.into()).is_some_and(|why| why.contains("the right Read on"))
            );
        }
        let silent = crate::ClusterError::Unavailable {
            servers,
            why: String::new(),
        };
        assert_eq!(refusal_reason(&silent.into()), None);
    }

    #[test]
    fn ends_without_a_partition_that_a_reader_has_seen_meanwhile_are_taken_again() {
        let [newest, cutoff] = [2, 1].map(Timestamp::from_micros);
        let known = || KnownEnds {
            ends: Positions::default(),
            newest,
        };
        let mut state = TrackerState {
            partitions: vec![0, 1, 2],
            pending: [cutoff].into(),
            ..TrackerState::default()
        };
        state.record_ends(CheckedTopic {
            partitions: vec![0, 1],
            ends: vec![(cutoff, known())],
        });
        assert!(state.known.is_empty() && state.pending.contains(&cutoff));
        state.record_ends(CheckedTopic {
            partitions: vec![0, 1, 2],
            ends: vec![(cutoff, known())],
        });
        assert!(state.known.contains_key(&cutoff) && state.pending.is_empty());
    }
}
