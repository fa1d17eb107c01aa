//! Sizes, delays and destinations that fit each other.

use std::ops::Range;

use crate::read::draft::ReleaseDraft;
use crate::read::input::InputSettings;
use crate::read::output::OutputSettings;
use crate::read::releases::MESSAGE_LIMIT;
use crate::read::schedule::Schedule;
use crate::settings::{InputParams, synopsis_bytes};
use crate::text::Document;
use bernstream_kafka::Broker;
use bernstream_kafka::ledger::log;
use bernstream_kafka::sink::OutputParams;
use bernstream_kafka::source::kafka;

/// The most bytes of a row of the ledger, about: SQLite takes at most 10^9 bytes, and keys that are escaped take more than they have.
const ROW_LIMIT: u64 = 500_000_000;
/// The most bytes of a table by key in a topic: a tenth of what a broker takes in one request, and what readers fetch by default.
const TABLE_LIMIT: usize = 10_000_000;
/// Bytes that a synopsis takes there beside its key: two digests, the state of noise that goes on, the names of the pipeline and the release.
const ROW_OF_SYNOPSIS: u64 = 350;

pub fn delays_past_the_slack(
    document: &mut Document<'_>,
    input: &InputParams,
    schedule: &Schedule,
) {
    if let InputParams::Kafka(kafka) = input
        && let Some(delay) = &schedule.delay
        && *delay.get_ref() <= kafka.clock_slack
    {
        let slack = bernstream_synopsis::clock::format_duration(kafka.clock_slack);
        let what = format!("must be longer than input.kafka.clock_slack, {slack}");
        document.fault(
            delay.span(),
            what,
            "the end of a window is known only that long after its cutoff",
        );
    }
}

/// A record that its producer sends in time is in its window, whatever other records there are.
pub fn grace_exceeds_the_producer_delay(
    document: &mut Document<'_>,
    input: &InputSettings,
    schedule: &Schedule,
) {
    if let Some(delay) = input.producer_delay
        && let Some(place) = &schedule.grace_place
        && schedule.allowed_lateness <= delay
    {
        let what = format!(
            "must be longer than input.kafka.producer_delay, {}",
            bernstream_synopsis::clock::format_duration(delay)
        );
        let hint = "a record that its producer still keeps at the cutoff is missing from its window, and another record may decide how \
                    long it is kept: raise grace, or let producers send more often, by the clock";
        document.fault(place.clone(), what, hint);
    }
}

pub fn fits_a_message(
    document: &mut Document<'_>,
    output: &OutputSettings,
    release: &ReleaseDraft,
    key_columns: usize,
) {
    if !matches!(output.to, OutputParams::Kafka { .. }) {
        return;
    }
    let shape = release.function.get_ref().target.shape();
    let bytes = synopsis_bytes(&shape, key_columns);
    // `ledger init` makes a topic that takes a table, whose size follows from its keys.
    let table = release.function.get_ref().keyed_counts();
    if let Some(counts) = table
        && bytes > TABLE_LIMIT
    {
        let what = format!(
            "a synopsis would have {bytes} bytes, more than {TABLE_LIMIT}, the most that a topic is made for"
        );
        let hint = match counts.quantiles {
            Some(_) => "make `step` larger, list fewer keys, or publish to files",
            None => "list fewer keys or shorter ones, or publish to files",
        };
        document.fault(release.size.clone(), what, hint);
    }
    if table.is_none() && bytes > MESSAGE_LIMIT {
        let what = format!(
            "a synopsis would have {bytes} bytes, more than Kafka's default limit of {MESSAGE_LIMIT}"
        );
        let hint = "use a smaller degree or fewer points, or publish to files";
        document.fault(release.size.clone(), what, hint);
    }
}

/// A window is one row of the ledger, which has all its synopses. `releases` have one for each key.
pub fn fits_a_row(document: &mut Document<'_>, input: &InputSettings, releases: usize) {
    let Some(key) = &input.key else {
        return;
    };
    let Some(place) = &input.key_place else {
        return;
    };
    let of_keys: u64 = key
        .values
        .iter()
        .map(|key| ROW_OF_SYNOPSIS + key.len() as u64)
        .sum();
    let bytes = of_keys.saturating_mul(releases as u64);
    if bytes > ROW_LIMIT {
        let keys = key.values.len();
        let synopses = keys.saturating_mul(releases);
        let what = format!(
            "{keys} keys of {releases} releases are {synopses} synopses a window, and a row of the ledger of some {bytes} bytes, \
             more than {ROW_LIMIT}"
        );
        document.fault(
            place.clone(),
            what,
            "divide the releases or the keys between pipelines with a ledger each",
        );
    }
}

/// The worker must not read its own output.
pub fn reads_no_output(
    document: &mut Document<'_>,
    input: &InputSettings,
    output: &OutputSettings,
) {
    match &input.from {
        InputParams::Kafka(from) => {
            if let OutputParams::Kafka { sink, witness } = &output.to {
                if has_same_servers(&sink.broker, &from.broker) {
                    writes_to_no_input(document, from, &sink.topic, &output.place);
                }
                if has_same_servers(&witness.broker, &from.broker) {
                    writes_to_no_input(document, from, &witness.topic, &output.witness_place);
                }
            }
        }
        InputParams::Files(from) => {
            if let OutputParams::Files(to) = &output.to
                && from.path == to.path
            {
                let place = output.place.clone();
                document.fault(place, "is the input path", "choose another folder");
            }
        }
    }
}

fn writes_to_no_input(
    document: &mut Document<'_>,
    from: &kafka::KafkaSourceParams,
    topic: &str,
    place: &Range<usize>,
) {
    if topic == from.topic {
        document.fault(place.clone(), "is the input topic", "choose another topic");
    }
    if topic == from.clock && !from.trust_producer_time {
        let what = "is the topic of input.kafka.clock";
        document.fault(place.clone(), what, "choose another topic");
    }
}

/// The log of the ledger must not be what the worker reads.
pub fn logs_no_input(
    document: &mut Document<'_>,
    input: &InputSettings,
    log: &log::KafkaLogParams,
    place: Option<Range<usize>>,
) {
    let InputParams::Kafka(from) = &input.from else {
        return;
    };
    let name = &log.records.topic;
    let is_read = *name == from.topic || *name == from.clock && !from.trust_producer_time;
    if has_same_servers(&log.records.broker, &from.broker) && is_read {
        document.fault(
            place.unwrap_or_default(),
            "is the input topic or its clock",
            "choose another topic",
        );
    }
}

fn has_same_servers(one: &Broker, other: &Broker) -> bool {
    one.servers == other.servers
}
