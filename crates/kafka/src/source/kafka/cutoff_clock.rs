//! The clock that says whether a cutoff has passed: the brokers', which stamps the records, and the worker's as well. Neither
//! closes a window before its time if only it is ahead.

use std::time::{Duration, Instant};

use tracing::{info, warn};

use crate::broker_clock::{BrokerClock, BrokerTime};
use crate::source::SourceError;
use bernstream_synopsis::clock;
use bernstream_synopsis::clock::{Reminder, ScheduleClock, Timestamp};

/// A worker's clock that is further than this from the brokers' is told, and one that moves further has been set.
const TOLERANCE: Duration = Duration::from_secs(1);

/// So long after an answer that is ahead of this machine the brokers are asked again: their clock may have been set.
const DOUBT: Duration = Duration::from_secs(5);

/// Says whether a cutoff has passed.
#[expect(clippy::large_enum_variant, reason = "there is one in a worker")]
pub(super) enum CutoffClock {
    Brokers(BrokerCutoffClock),
    /// Producers stamp their records: no clock of the brokers says whether more will come.
    Worker(fn() -> Timestamp),
}

/// The brokers' clock. It is asked at each cutoff, and when the worker's clock was set; in between this machine's monotonic
/// clock goes on from the last answer.
pub(super) struct BrokerCutoffClock {
    clock: BrokerClock,
    worker: fn() -> Timestamp,
    schedule: ScheduleClock,
    last: BrokerTime,
    /// Lead of the worker's clock over the last answer, in microseconds.
    ahead: i64,
    /// This lead, less the time that the answer may have taken: by so much the clocks certainly differ.
    off: i64,
    /// Somebody reads: from then on the log tells of the clocks.
    has_begun: bool,
    is_told: bool,
    reminder: Reminder,
}

impl BrokerCutoffClock {
    /// Asks once.
    ///
    /// # Errors
    ///
    /// If the brokers do not tell their time.
    pub fn new(
        mut clock: BrokerClock,
        worker: fn() -> Timestamp,
        schedule: ScheduleClock,
    ) -> Result<Self, SourceError> {
        let before = worker();
        let last = clock.ask_time()?;
        let mut brokers = BrokerCutoffClock {
            clock,
            worker,
            schedule,
            last,
            ahead: 0,
            off: 0,
            has_begun: false,
            is_told: false,
            reminder: Reminder::default(),
        };
        brokers.compare_clocks(before);
        Ok(brokers)
    }

    /// The last answer.
    pub fn last(&self) -> BrokerTime {
        self.last
    }

    fn ask_brokers(&mut self) -> Result<(), SourceError> {
        let before = (self.worker)();
        self.last = self.clock.ask_time()?;
        self.compare_clocks(before);
        Ok(())
    }

    /// Compares the worker's clock, which showed `before` when the brokers were asked, with theirs.
    fn compare_clocks(&mut self, before: Timestamp) {
        let stamp = self.last.stamp;
        let after = (self.worker)();
        self.schedule.set_broker_time(stamp, self.last.acknowledged);
        self.ahead = after.micros().saturating_sub(stamp.micros());
        // The record was stamped between the two.
        self.off = clock::saturating_micros(before.since(stamp))
            - clock::saturating_micros(stamp.since(after));
    }

    /// Tells if the clocks disagree, and if no more; of a worker that is behind, and so publishes too late, again and again.
    fn warn_if_off(&mut self) {
        let off = Duration::from_micros(self.off.unsigned_abs());
        if !self.has_begun {
            return;
        }
        if off <= TOLERANCE {
            self.reminder.forget_reminder();
            if std::mem::take(&mut self.is_told) {
                info!("the clock of this machine agrees with the brokers' again");
            }
            return;
        }
        let which = if self.off > 0 { "ahead of" } else { "behind" };
        let is_news = !std::mem::replace(&mut self.is_told, true);
        let is_due = self.reminder.is_due(Instant::now());
        if is_news || (self.off < 0 && is_due) {
            let off = clock::format_duration(Duration::from_millis(
                u64::try_from(off.as_millis()).unwrap_or(u64::MAX),
            ));
            warn!(
                "the clock of this machine is {off} {which} the brokers'; windows close and synopses are published by the clock \
                 that is behind: synchronise them"
            );
        }
    }

    /// Returns whether the worker's clock has moved otherwise than time does since the last answer.
    fn has_stepped(&self) -> bool {
        let ahead = (self.worker)()
            .micros()
            .saturating_sub(self.last.now().micros());
        ahead.saturating_sub(self.ahead).unsigned_abs()
            > TOLERANCE.as_micros().try_into().unwrap_or(u64::MAX)
    }

    /// Returns whether the last answer is not to be relied on any more: a clock may have been set.
    fn is_doubtful(&self) -> bool {
        let is_behind = self.last.now().since((self.worker)()) > TOLERANCE;
        self.has_stepped() || is_behind && self.last.acknowledged.elapsed() >= DOUBT
    }
}

impl CutoffClock {
    /// The time, about.
    pub fn now(&self) -> Timestamp {
        match self {
            CutoffClock::Brokers(brokers) => brokers.schedule.now(),
            CutoffClock::Worker(clock) => clock(),
        }
    }

    /// Somebody reads: from now on the log tells whether the clocks agree.
    pub fn begin(&mut self) {
        if let CutoffClock::Brokers(brokers) = self {
            brokers.has_begun = true;
        }
    }

    /// The time, about, by the clock that is ahead.
    pub fn latest(&self) -> Timestamp {
        match self {
            CutoffClock::Brokers(brokers) => brokers.last.now().max((brokers.worker)()),
            CutoffClock::Worker(clock) => clock(),
        }
    }

    /// A time that has certainly been reached. Asks the brokers if `wanted` is not known to be, or if a clock may have been set.
    ///
    /// # Errors
    ///
    /// If the brokers do not tell their time.
    pub fn reached_time(&mut self, wanted: Option<Timestamp>) -> Result<Timestamp, SourceError> {
        match self {
            CutoffClock::Brokers(brokers) => {
                if wanted.is_some_and(|wanted| wanted > brokers.last.stamp) || brokers.is_doubtful()
                {
                    brokers.ask_brokers()?;
                }
                brokers.warn_if_off();
                Ok(brokers.last.stamp.min((brokers.worker)()))
            }
            CutoffClock::Worker(clock) => Ok(clock()),
        }
    }
}
