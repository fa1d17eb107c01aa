//! The loop of a thread that reads, and what the log and the probes see of it.

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::error::PipelineError;
use super::health::{Health, ReaderHealth};
use super::joining::{PartialWindow, WindowHandover};
use super::outage::CommonOutage;
use super::repeated_event::{RepeatedEvent, RepeatedLine};
use super::stop::StopRequest;
use bernstream_kafka as kafka;
use bernstream_kafka::UnknownTopic;
use bernstream_kafka::source;
use bernstream_kafka::source::RedactedReason;
use bernstream_synopsis::clock::Reminder;

/// The pause before a transient failure is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A thread that reads some of the input.
pub(super) trait InputReader<'a> {
    fn reader_status(&mut self) -> &mut ReaderStatus<'a>;

    /// Returns whether nothing is left to read.
    fn is_over(&self) -> bool;

    /// Reads the input once. Returns the share of the next window as soon as all its records have been absorbed.
    ///
    /// # Errors
    ///
    /// If the input cannot be read.
    fn read_once(&mut self) -> Result<Option<PartialWindow>, source::SourceError>;
}

/// Reads until nothing is left, or a stop is requested; a transient failure is retried.
///
/// # Errors
///
/// A failure that retrying cannot mend.
pub(super) fn run_reader<'a>(
    mut reader: impl InputReader<'a>,
    handover: Option<WindowHandover>,
    stop: &StopRequest,
) -> Result<(), PipelineError> {
    let mut unknown = UnknownTopic::default();
    while !stop.is_requested() && !reader.is_over() {
        reader.reader_status().health.record_heartbeat();
        match reader.read_once() {
            Ok(share) => {
                unknown.note_known();
                // Another loop ends early only if it failed, and then it returns the error.
                if let Some(handover) = &handover
                    && let Some(share) = share
                    && !handover.send_part(share, &reader.reader_status().health, stop)
                {
                    break;
                }
            }
            Err(error)
                if error.is_transient()
                    || error.is_missing() && unknown.note_unknown(Instant::now()) =>
            {
                reader
                    .reader_status()
                    .report_failure(UnreadReason::from_error(&error), &why_unread(&error));
                stop.sleep_or_stop(RETRY_PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn why_unread(error: &source::SourceError) -> String {
    if error.is_missing() {
        return "cannot read the input: brokers do not know its topic, as for a moment after an outage; trying again"
            .to_owned();
    }
    format!("cannot read the input: {error}; trying again")
}

/// The reason why the input is not read for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreadReason {
    Disconnected,
    Kafka(Discriminant<kafka::ClusterError>),
    Other(Discriminant<source::SourceError>),
}

impl UnreadReason {
    fn from_error(error: &source::SourceError) -> Self {
        match error {
            source::SourceError::Kafka(error) => UnreadReason::Kafka(discriminant(error)),
            error => UnreadReason::Other(discriminant(error)),
        }
    }
}

/// The status of a reader, as the log and the probes see it.
pub(super) struct ReaderStatus<'a> {
    outage: &'a CommonOutage<UnreadReason>,
    health: Arc<ReaderHealth>,
    /// The status of all readers.
    all: &'a Health,
    /// The log may tell what follows from records.
    is_for_operators: bool,
    /// The broken message that blocks a partition. The others are still read, but no window can close.
    stuck: Option<RedactedReason>,
    /// The time when that is told again.
    reminder: Reminder,
    /// Broken messages that were skipped.
    skipped: RepeatedEvent,
    /// Records that turned up behind the end of their window.
    behind: RepeatedEvent,
    /// Records that reached the topic after the cutoff of their window.
    late: RepeatedEvent,
}

impl<'a> ReaderStatus<'a> {
    pub fn new(
        outage: &'a CommonOutage<UnreadReason>,
        health: Arc<ReaderHealth>,
        all: &'a Health,
        is_for_operators: bool,
    ) -> Self {
        ReaderStatus {
            outage,
            health,
            all,
            is_for_operators,
            stuck: None,
            reminder: Reminder::default(),
            skipped: RepeatedEvent::default(),
            behind: RepeatedEvent::default(),
            late: RepeatedEvent::default(),
        }
    }

    /// Records a heartbeat.
    pub fn record_heartbeat(&self) {
        self.health.record_heartbeat();
    }

    fn report_failure(&mut self, reason: UnreadReason, why: &str) {
        self.health.reading.store(false, Relaxed);
        if self.outage.record_failure(reason) {
            warn!("{why}");
        }
    }

    /// It has read, or there was nothing to read.
    pub fn report_reading(&mut self, is_connected: bool) {
        // One broker of several may go on sending while another cannot be reached.
        if !is_connected {
            self.report_failure(
                UnreadReason::Disconnected,
                "the brokers of the input cannot be reached; waiting for them",
            );
        } else if self.stuck.is_none() {
            self.health.reading.store(true, Relaxed);
            if self.outage.record_recovery(|| self.all.is_reading()) {
                info!("reading the input");
            }
        }
    }

    /// A partition has stopped at a broken message; told at once, and once a minute.
    pub fn report_stuck(&mut self, why: RedactedReason) {
        self.health.reading.store(false, Relaxed);
        if self.stuck.as_ref() != Some(&why) {
            self.reminder.forget_reminder();
        }
        if self.reminder.is_due(Instant::now()) {
            error!("reading has stopped: {}", why.shown(self.is_for_operators));
        }
        self.stuck = Some(why);
    }

    /// No partition has stopped any more.
    pub fn clear_stuck(&mut self) {
        self.stuck = None;
    }

    pub fn count_skipped(&mut self, why: RedactedReason) {
        self.skipped
            .add_events(1, why.shown(self.is_for_operators).to_owned());
    }

    /// Counts records that have turned up behind the end of their window. How many there are shows something of the records: only
    /// for operators.
    pub fn count_behind(&mut self, records: u64) {
        self.behind.add_events(records, String::new());
    }

    /// Counts records that have reached the topic after the cutoff of their window: only for operators.
    pub fn count_late(&mut self, records: u64) {
        if records > 0 {
            self.late.add_events(records, String::new());
        }
    }

    /// Tells what can happen any number of times, now and then.
    pub fn log_counts(&mut self) {
        if let Some(RepeatedLine { count, newest: why }) = self.skipped.due_line() {
            if self.is_for_operators {
                warn!("broken messages were skipped: {count}; the last: {why}")
            } else {
                // Whether it was one is for operators too.
                warn!("skipping what cannot be read; the last: {why}")
            }
        }
        if let Some(RepeatedLine { count, .. }) = self.late.due_line() {
            warn!(
                "{count} records reached the topic later than grace after the end of their window, and are in no synopsis: whoever sends \
                 them keeps them for longer (input.kafka.producer_delay), or grace is too short"
            );
        }
        if let Some(RepeatedLine { count, .. }) = self.behind.due_line() {
            warn!(
                "{count} records turned up behind the end of their window, although they were stamped before its cutoff, and are \
                 in no synopsis: replicas lag, or clocks of brokers differ, by more than clock_slack"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a topic that brokers do not know at first.
    struct Late<'a> {
        failures: u32,
        status: ReaderStatus<'a>,
    }

    impl<'a> InputReader<'a> for Late<'a> {
        fn reader_status(&mut self) -> &mut ReaderStatus<'a> {
            &mut self.status
        }

        fn is_over(&self) -> bool {
            self.failures == 0
        }

        fn read_once(&mut self) -> Result<Option<PartialWindow>, source::SourceError> {
            self.failures -= 1;
            let topic = "in".to_owned();
            let servers = "a:1".to_owned();
            Err(kafka::ClusterError::NoTopic { topic, servers }.into())
        }
    }

    #[test]
    fn a_topic_that_is_known_again_after_an_outage_is_read_on() {
        let outage = CommonOutage::default();
        let health = Health::default();
        let status = ReaderStatus::new(&outage, Arc::default(), &health, false);
        run_reader(
            Late {
                failures: 3,
                status,
            },
            None,
            &StopRequest::default(),
        )
        .unwrap();
    }
}
