//! What a worker with `[scale]` can read alone in time, and whether its topic and its key can be used.

use std::time::Duration;

use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::check::{NeededTopic, TopicCheck, check_topic, topic_setting};
use bernstream_kafka::error::ClusterError;
use bernstream_kafka::right::TopicRight;
use bernstream_kafka::source::kafka;
use bernstream_kafka::source::record::TopicFormat;
use bernstream_kafka::topic;
use bernstream_kafka::topic::TopicMetadata;
use bernstream_ledger::sealing::KeyFileSecret;
use bernstream_synopsis::clock::{format_duration, saturating_micros};
use bernstream_worker::scale;

/// Rows that one thread is assumed to read in a second: in Arrow, and one a message in other formats. Less than was measured
/// (docs/benchmarks.md), because machines differ.
const ROWS: u64 = 2_000_000;
const MESSAGES: u64 = 500_000;

/// Tells how much the worker can read in time of what no absorber has sent; nothing without `[scale]`.
pub fn capacity_in_words(settings: &WorkerSettings) -> Vec<String> {
    let (Some(scale), InputParams::Kafka(input)) = (&settings.scale, &settings.input) else {
        return Vec::new();
    };
    let rules = &settings.windows;
    let left = settings
        .publish_delay
        .saturating_sub(input.clock_slack)
        .saturating_sub(scale.deadline);
    let span = rules.grid.length() + rules.allowed_lateness + rules.max_future_skew;
    let (thread, what) = match &input.format {
        TopicFormat::Records { .. } => (MESSAGES, "messages"),
        _ => (ROWS, "rows of Arrow"),
    };
    let threads = u64::from(input.most_readers());
    let rate = records_in_time(thread, left, span);
    let all = thread.saturating_mul(threads);
    let mut lines = vec![
        format!(
            "a window is announced {} after its cutoff; what no absorber has sent {} later the worker reads itself, in the {} that are \
             left before it is due",
            format_duration(input.clock_slack),
            format_duration(scale.deadline),
            format_duration(left)
        ),
        format!(
            "it begins at the window's first record: {} of a partition that it was not reading yet, so {:.1} times as fast as they come",
            format_duration(span),
            span.as_secs_f64() / left.as_secs_f64().max(1e-6)
        ),
        format!(
            "if a thread reads {thread} {what} a second, which is assumed here and depends on your machine and releases, that is in \
             time for missing partitions with up to {rate} a second in each of {threads} threads (input.kafka.readers; a partition is \
             read by one); with more, windows are published late",
        ),
    ];
    let expected = settings
        .releases
        .iter()
        .filter_map(|release| release.expected_records);
    if let Some(records) = expected
        .max()
        .map(|each| each.saturating_mul(settings.key_count() as u64))
    {
        let can =
            if records <= all.saturating_mul(saturating_micros(left).unsigned_abs()) / 1_000_000 {
                "can"
            } else {
                "cannot"
            };
        lines.push(format!(
            "by expected_records a window has {records} records: at that rate the worker {can} read all of them in time if no absorber \
             sends any and the partitions are alike"
        ));
    }
    lines
}

/// The records a second of which a thread reads those of `span` in the time that is `left`.
fn records_in_time(thread: u64, left: Duration, span: Duration) -> u64 {
    let rate = u128::from(thread) * left.as_micros() / span.as_micros().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Checks that the key and the topic of `[scale]` can be used.
pub fn scale_checks(
    params: &scale::ScaleParams,
    input: &kafka::KafkaSourceParams,
) -> Vec<TopicCheck> {
    let why = KeyFileSecret::load(&params.key_file).err();
    let mut checks = vec![TopicCheck::new(
        format!("{} is a key of absorbers", params.key_file.display()),
        why.is_none(),
        why.unwrap_or_default(),
        "`head -c 32 /dev/urandom` makes one, which the worker and every absorber need",
    )];
    let name = &params.topic;
    if let Err(ClusterError::NoTopic { .. }) = topic::describe_topic(&input.broker, name) {
        let what =
            format!("there is no topic {name} yet: the worker or an absorber makes it, if it may");
        checks.push(TopicCheck::passed(what));
    } else {
        let rights = &[TopicRight::Read, TopicRight::Write];
        let wishes = &[(TopicRight::Delete, "what nobody needs any more stays there")];
        let needed = NeededTopic {
            broker: &input.broker,
            name,
            rights,
            wishes,
            origin: "the worker makes it",
            replicas: 1,
        };
        check_topic(&mut checks, needed, |topic| topic_checks(name, topic));
    }
    checks
}

fn topic_checks(name: &str, topic: &TopicMetadata) -> Vec<TopicCheck> {
    let policy = topic_setting(topic, "cleanup.policy");
    let too_small = scale::message_limit_below(topic);
    let is_kept = topic_setting(topic, "retention.ms").parse::<u64>().is_err();
    vec![
        TopicCheck::new(
            format!("{name} forgets what is old"),
            policy == "delete" && !is_kept,
            "it keeps partials, which are as secret as the input, without end",
            "set cleanup.policy=delete and retention.ms=3600000",
        ),
        TopicCheck::new(
            format!("{name} takes messages of {} bytes", scale::LARGEST),
            too_small.is_none(),
            format!("its max.message.bytes is {}", too_small.unwrap_or_default()),
            "raise max.message.bytes to the default of Kafka, 1048588",
        ),
        TopicCheck::new(
            format!("{name} takes no compressed batches"),
            !scale::takes_compressed(topic),
            format!(
                "its compression.type is {}",
                topic_setting(topic, "compression.type")
            ),
            "set compression.type=uncompressed: a batch that unfolds could fill the memory of whoever reads it",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_reads_alone_in_time_follows_from_the_delays() {
        let second = Duration::from_secs(1);
        assert_eq!(records_in_time(1_000, 10 * second, 100 * second), 100);
        assert_eq!(records_in_time(1_000, Duration::ZERO, 100 * second), 0);
        let text = include_str!("../../tests/data/lattice.toml")
            .replace("[input.kafka]", "[input.kafka]\nreaders = 3");
        let without = WorkerSettings::parse(&text, "test").unwrap();
        assert_eq!(capacity_in_words(&without), Vec::<String>::new());
        // A day, an hour and five minutes of records, to be read in a minute less the slack of ten seconds and the deadline.
        let text = format!(
            "{text}\n[scale]\ntopic = \"partials\"\nkey_file = \"key\"\ndeadline = \"1s\"\n"
        );
        let lines = capacity_in_words(&WorkerSettings::parse(&text, "test").unwrap()).join("\n");
        assert!(
            lines.contains("1s later the worker reads itself, in the 49s that are left"),
            "{lines}"
        );
        assert!(
            lines.contains("which is assumed here")
                && lines.contains("with up to 1085 a second in each of 3 threads"),
            "{lines}"
        );
    }

    #[test]
    fn a_topic_that_keeps_partials_or_takes_none_is_a_fault() {
        let of = |settings: &[(&str, &str)]| TopicMetadata {
            id: String::new(),
            partitions: vec![0],
            settings: settings
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            rights: TopicRight::ALL.into(),
        };
        let faults = |settings: &[(&str, &str)]| {
            topic_checks("t", &of(settings))
                .iter()
                .filter(|check| check.fault.is_some())
                .count()
        };
        let sound = [
            ("cleanup.policy", "delete"),
            ("retention.ms", "3600000"),
            ("max.message.bytes", "1048588"),
        ];
        assert_eq!(faults(&sound), 0);
        let compressed = |kind| faults(&[sound[0], sound[1], sound[2], ("compression.type", kind)]);
        assert_eq!(
            ["uncompressed", "producer", "gzip"].map(compressed),
            [0, 1, 1]
        );
        assert_eq!(
            faults(&[("cleanup.policy", "compact"), sound[1], sound[2]]),
            1
        );
        assert_eq!(faults(&[sound[0], ("retention.ms", "-1"), sound[2]]), 1);
        assert_eq!(
            faults(&[sound[0], sound[1], ("max.message.bytes", "100000")]),
            1
        );
    }
}
