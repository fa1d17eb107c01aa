//! Points in time, and the only access to the wall clock.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};

/// A point in time: microseconds since 1970-01-01T00:00:00 UTC. Written as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// The start of the year 1 and the end of the year 9999: every RFC 3339 parser accepts the times between them.
    pub const EARLIEST: Timestamp = Timestamp(-62_135_596_800_000_000);
    pub const LATEST: Timestamp = Timestamp(253_402_300_799_999_999);

    pub const fn from_micros(micros: i64) -> Self {
        Timestamp(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Reads the wall clock. Only the pipeline, the feed, the server and the command line call it; everything else gets the time
    /// as an argument.
    pub fn now() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(saturating_micros(since))
    }

    /// Saturates at the ends of the representable range.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Timestamp(self.0.saturating_add(saturating_micros(span)))
    }

    /// Saturates at the ends of the representable range.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Timestamp(self.0.saturating_sub(saturating_micros(span)))
    }

    /// The duration from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        let span = i128::from(self.0) - i128::from(earlier.0);
        Duration::from_micros(u64::try_from(span.max(0)).unwrap_or(u64::MAX))
    }

    /// Parses RFC 3339 with a fixed offset, as in `2013-01-01T00:00:00-05:00`. Between date and time there may be a space; leap seconds,
    /// which no clock here knows, are no times.
    pub fn parse(text: &str) -> Option<Self> {
        // The library also takes a minus sign that is not ASCII, and a second 60 in every minute.
        let is_leap = text.get(17..19) == Some("60");
        let time = DateTime::parse_from_rfc3339(text)
            .ok()
            .filter(|_| text.is_ascii() && !is_leap)?;
        Some(Timestamp(time.timestamp_micros()))
    }
}

impl Timestamp {
    /// Parses an argument of the command line.
    ///
    /// # Errors
    ///
    /// If it is not a time in RFC 3339.
    pub fn parse_argument(text: &str) -> Result<Self, String> {
        Timestamp::try_from(text.to_owned())
    }
}

/// The clock of the schedule: windows close and synopses are published once both clocks have reached the time, the worker's and,
/// where they are asked, the brokers'. One clock for both: were publication by a clock that is ahead of the one by which windows
/// close, every synopsis would leave at the moment at which its records have been read, which depends on them.
#[derive(Clone, Debug)]
pub struct ScheduleClock {
    worker: fn() -> Timestamp,
    /// Last answer of the brokers.
    brokers: Arc<Mutex<Option<ClockAnswer>>>,
}

/// Time that the brokers told, and when the answer came.
#[derive(Clone, Copy, Debug)]
struct ClockAnswer {
    time: Timestamp,
    answered: Instant,
}

impl ScheduleClock {
    /// The worker's clock, until the brokers tell their time.
    pub fn new(worker: fn() -> Timestamp) -> Self {
        ScheduleClock {
            worker,
            brokers: Arc::default(),
        }
    }

    /// The brokers' clock has reached `time`, as was told at `answered`.
    pub fn set_broker_time(&self, time: Timestamp, answered: Instant) {
        *self.brokers.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(ClockAnswer { time, answered });
    }

    /// The earlier of the two clocks; the brokers' goes on with the monotonic clock of this machine.
    pub fn now(&self) -> Timestamp {
        self.broker_time().min((self.worker)())
    }

    /// The brokers' clock; the worker's where they have not told theirs.
    pub fn broker_time(&self) -> Timestamp {
        let last = *self.brokers.lock().unwrap_or_else(PoisonError::into_inner);
        match last {
            Some(answer) => answer.time.plus(answer.answered.elapsed()),
            None => (self.worker)(),
        }
    }

    /// Delay of the worker's clock behind the brokers'.
    pub fn delay_behind_brokers(&self) -> Duration {
        self.broker_time().since((self.worker)())
    }
}

/// Reminder of a state that lasts: told at once, and then once a minute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reminder(Option<Instant>);

impl Reminder {
    const PAUSE: Duration = Duration::from_secs(60);

    /// Tests that it is to be told now.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self
            .0
            .is_none_or(|told| now.saturating_duration_since(told) >= Self::PAUSE);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }

    /// Forgets what was told: the next one is told at once.
    pub fn forget_reminder(&mut self) {
        self.0 = None;
    }
}

/// Formats a duration as in the configuration, such as `1d 2h`; never in months, which differ in length.
pub fn format_duration(span: Duration) -> String {
    let mut left = span.as_micros();
    let mut parts = Vec::new();
    for (unit, micros) in [
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("m", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1000),
        ("us", 1),
    ] {
        if left >= micros {
            parts.push(format!("{}{unit}", left / micros));
            left %= micros;
        }
    }
    if parts.is_empty() {
        "0s".to_owned()
    } else {
        parts.join(" ")
    }
}

/// The microseconds of a duration, saturating.
pub fn saturating_micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::from_timestamp_micros(self.0) {
            Some(time) => f.write_str(&time.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            None => write!(f, "{} us", self.0),
        }
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Timestamp::parse(&text)
            .ok_or_else(|| format!("'{text}' is not a time such as 2013-01-01T00:00:00Z"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_and_the_latest_time_are_written_and_read_again() {
        let written = [Timestamp::EARLIEST, Timestamp::LATEST].map(|time| time.to_string());
        assert_eq!(
            written,
            ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"]
        );
        assert_eq!(
            written.map(|text| Timestamp::parse(&text)),
            [Some(Timestamp::EARLIEST), Some(Timestamp::LATEST)]
        );
        assert_eq!(
            Timestamp::parse(&Timestamp::LATEST.plus(Duration::from_micros(1)).to_string()),
            None
        );
    }

    #[test]
    fn a_time_is_rfc_3339_in_ascii_and_no_leap_second() {
        let noon = Timestamp::parse("2026-01-05T12:00:00Z");
        assert!(noon.is_some());
        for same in [
            "2026-01-05t12:00:00z",
            "2026-01-05 12:00:00Z",
            "2026-01-05T12:00:00.000+00:00",
            "2026-01-05T11:00:00-01:00",
        ] {
            assert_eq!(Timestamp::parse(same), noon, "{same}");
        }
        let none = [
            "2026-01-05T11:00:00\u{2212}01:00",
            "2026-01-05T12:00:60Z",
            "2016-12-31T23:59:60Z",
            "2026-01-05T23:59:60.5Z",
            "2026-01-05T12:00:00",
            "2026-01-05T12:00Z",
            "2026-01-05T12:00:00+0100",
            "2026-01-05T12:00:00+24:00",
            " 2026-01-05T12:00:00Z",
            "",
        ];
        for none in none {
            assert_eq!(Timestamp::parse(none), None, "{none}");
        }
    }

    #[test]
    fn the_schedule_follows_the_clock_that_is_behind() {
        let worker = || Timestamp::from_micros(50_000_000);
        let schedule = ScheduleClock::new(worker);
        assert_eq!(schedule.now(), worker());
        let shared = schedule.clone();
        shared.set_broker_time(Timestamp::from_micros(1_000_000), Instant::now());
        assert!(schedule.now() < Timestamp::from_micros(40_000_000));
        assert_eq!(schedule.delay_behind_brokers(), Duration::ZERO);
        shared.set_broker_time(Timestamp::from_micros(90_000_000), Instant::now());
        assert_eq!(schedule.now(), worker());
        assert!(
            schedule.delay_behind_brokers() >= Duration::from_secs(40)
                && schedule.broker_time() > worker()
        );
    }

    #[test]
    fn what_lasts_is_told_at_once_and_once_a_minute() {
        let mut reminder = Reminder::default();
        let start = Instant::now();
        let told = (0..180)
            .filter(|second| reminder.is_due(start + Duration::from_secs(*second)))
            .collect::<Vec<_>>();
        assert_eq!(told, [0, 60, 120]);
        reminder.forget_reminder();
        assert!(reminder.is_due(start + Duration::from_secs(180)));
    }

    #[test]
    fn spans_are_shown_as_they_are_written() {
        let shown = [0, 1, 90_000_000, 31 * 86_400_000_000, 93_600_500_000]
            .map(|us| format_duration(Duration::from_micros(us)));
        assert_eq!(shown, ["0s", "1us", "1m 30s", "31d", "1d 2h 500ms"]);
    }
}
