//! How far a topic reached at each cutoff: taken on time, whatever the reading does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::topic_inspector::TopicInspector;
use crate::clock::Timestamp;
use crate::kafka;
use crate::kafka::topic::Topic;
use crate::source::{Error, Positions};

/// How often the topic's id and partitions are looked at between cutoffs.
const ROUND: Duration = Duration::from_secs(5);
/// How long after a failure the next look is.
const RETRY: Duration = Duration::from_secs(1);
/// An end that is taken later than this after its time is looked up by time, if the broker stamps the messages.
const LATE: Duration = Duration::from_secs(1);
/// How many ends are kept for being asked again.
const KEPT: usize = 1024;

/// What the watching thread and the reading thread tell each other.
#[derive(Default)]
struct State {
    /// Cuts whose ends are to be taken.
    pending: BTreeSet<Timestamp>,
    known: BTreeMap<Timestamp, Positions>,
    /// The partitions that are being read.
    reading: Option<Vec<i32>>,
    /// Why what is being read is not the whole topic any more.
    changed: Option<String>,
    /// Why reading cannot go on.
    fault: Option<Error>,
    connected: bool,
    stop: bool,
}

/// The reading thread's side.
pub(super) struct EndOffsetTracker(Arc<(Mutex<State>, Condvar)>);

impl EndOffsetTracker {
    /// Starts watching `topic`. Ends are taken `slack` after their cutoff, as told by `clock`.
    pub fn start(
        inspector: TopicInspector,
        topic: &Topic,
        slack: Duration,
        stamped_by_broker: bool,
        clock: fn() -> Timestamp,
    ) -> Result<Self, Error> {
        let (servers, id) = (inspector.broker.servers.clone(), topic.id.clone());
        let shared = Arc::new((Mutex::new(State { connected: true, ..State::default() }), Condvar::new()));
        let thread = TrackerThread { shared: shared.clone(), inspector, id, slack, stamped_by_broker, clock };
        std::thread::Builder::new()
            .name("topic watch".to_owned())
            .spawn(move || thread.run())
            .map_err(|e| kafka::Error::Unavailable { servers, why: e.to_string() })?;
        Ok(EndOffsetTracker(shared))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Says which partitions are read from now on.
    pub fn reads(&self, partitions: Vec<i32>) {
        let mut state = self.state();
        state.reading = Some(partitions);
        state.changed = None;
    }

    /// Where the partitions end at `cutoff`, once that is known; the first call makes it be taken.
    pub fn ends(&self, cutoff: Timestamp) -> Option<Positions> {
        let mut state = self.state();
        let known = state.known.get(&cutoff).cloned();
        if known.is_none() && state.pending.insert(cutoff) {
            self.0.1.notify_one();
        }
        known
    }

    pub fn connected(&self) -> bool {
        self.state().connected
    }

    /// Why reading must start again, or cannot go on.
    pub fn alarm(&self) -> Result<Option<String>, Error> {
        let mut state = self.state();
        match state.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(state.changed.clone()),
        }
    }
}

impl Drop for EndOffsetTracker {
    // The thread may be in the middle of a question, so nobody waits for it.
    fn drop(&mut self) {
        self.state().stop = true;
        self.0.1.notify_one();
    }
}

fn lock(shared: &(Mutex<State>, Condvar)) -> MutexGuard<'_, State> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one look at the topic shows.
struct Found {
    partitions: Vec<i32>,
    ends: Vec<(Timestamp, Positions)>,
}

/// The watching thread's side.
struct TrackerThread {
    shared: Arc<(Mutex<State>, Condvar)>,
    inspector: TopicInspector,
    id: String,
    slack: Duration,
    stamped_by_broker: bool,
    clock: fn() -> Timestamp,
}

impl TrackerThread {
    fn run(self) {
        let mut pause = ROUND;
        while let Some(due) = self.wait(pause) {
            match self.look(&due) {
                Ok(found) => {
                    self.note(found);
                    pause = ROUND;
                }
                Err(error) => {
                    let mut state = lock(&self.shared);
                    state.connected = false;
                    if matches!(error, Error::Recreated { .. }) {
                        state.fault = Some(error);
                    }
                    pause = RETRY;
                }
            }
        }
    }

    /// Waits for `pause`, or until a cutoff is due; gives the cutoffs that are, `None` at the end.
    fn wait(&self, pause: Duration) -> Option<Vec<Timestamp>> {
        let started = Instant::now();
        let mut state = lock(&self.shared);
        loop {
            if state.stop {
                return None;
            }
            let now = (self.clock)();
            // By a clock that does not jump: one that was ahead for a moment must not make it wait for that time to come.
            let mut rest = pause.saturating_sub(started.elapsed());
            // After a failure nothing is due before the pause is over.
            if pause == ROUND {
                rest = state.pending.first().map_or(rest, |cutoff| cutoff.plus(self.slack).since(now).min(rest));
            }
            if rest.is_zero() {
                return Some(state.pending.iter().copied().filter(|cutoff| cutoff.plus(self.slack) <= now).collect());
            }
            let waited = self.shared.1.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn look(&self, due: &[Timestamp]) -> Result<Found, Error> {
        let partitions = self.inspector.partitions(&self.id)?;
        let ends =
            due.iter().map(|cutoff| Ok((*cutoff, self.ends(*cutoff, &partitions)?))).collect::<Result<_, Error>>()?;
        Ok(Found { partitions, ends })
    }

    fn ends(&self, cutoff: Timestamp, partitions: &[i32]) -> Result<Positions, Error> {
        let time = cutoff.plus(self.slack);
        let mut found = BTreeMap::new();
        // The worker was away. The high watermark would do too, but every window would stay open until it is reached.
        if self.stamped_by_broker && (self.clock)().since(time) > LATE {
            found = self.inspector.first_since(time, partitions)?;
        }
        let end = |partition: &i32| match found.get(partition) {
            Some(Some(offset)) => Ok((*partition, *offset)),
            _ => Ok((*partition, self.inspector.watermarks(*partition)?.1)),
        };
        Ok(Positions(partitions.iter().map(end).collect::<Result<_, Error>>()?))
    }

    fn note(&self, found: Found) {
        let mut state = lock(&self.shared);
        state.connected = true;
        for (cutoff, positions) in found.ends {
            state.pending.remove(&cutoff);
            state.known.insert(cutoff, positions);
        }
        while state.known.len() > KEPT {
            state.known.pop_first();
        }
        if let Some(reading) = state.reading.as_ref().filter(|reading| **reading != found.partitions) {
            let (had, has) = (reading.len(), found.partitions.len());
            state.changed = Some(format!("the topic had {had} partitions and has {has}"));
        }
    }
}
