//! What a worker needs of its input, its output, and what its ledger has beside it: whether it is there.

use std::path::Path;
use std::time::Duration;

use crate::cli::components::input_identity;
use crate::cli::failure::Failure;
use crate::cli::ledger::find_witness;
use crate::cli::shares::{self, ShareRequest};
use crate::cli::{alone, older_stamps};
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::check::{NeededTopic, TopicCheck, check_topic, topic_setting};
use bernstream_kafka::ledger::budget::topic;
use bernstream_kafka::ledger::log;
use bernstream_kafka::right::TopicRight;
use bernstream_kafka::source;
use bernstream_kafka::source::files::{FileSource, FileSourceParams};
use bernstream_kafka::source::{folder, kafka};
use bernstream_kafka::topic::TopicMetadata;
use bernstream_kafka::{broker_clock, ordered, replica_lag};
use bernstream_ledger as ledger;
use bernstream_ledger::log::LogKey;
use bernstream_synopsis::clock::{Timestamp, format_duration};
use bernstream_synopsis::grid::Span;

/// Checks the input, the output, the witness, and what the ledger has beside it.
pub(super) fn online_checks(settings: &WorkerSettings) -> Vec<TopicCheck> {
    let mut checks = Vec::new();
    match &settings.input {
        InputParams::Files(params) => check_files(settings, params, &mut checks),
        InputParams::Kafka(kafka) => {
            let answers = check_input(settings, kafka, &mut checks);
            // Wait only once for a broker that is down.
            if !answers && settings.output.broker() == Some(&kafka.broker) {
                return checks;
            }
            if let Some(scale) = &settings.scale {
                checks.extend(alone::scale_checks(scale, kafka));
            }
        }
    }
    let mut of_output = settings.output.topic_checks(settings.largest_synopsis());
    created_by_init(settings, &mut of_output);
    checks.extend(of_output);
    if let Some(budget) = settings.budget_topic() {
        check_budget(settings, &budget, &mut checks);
    }
    if let Some(log) = &settings.ledger_log {
        check_log(settings, log, &mut checks);
    }
    checks
}

fn check_files(settings: &WorkerSettings, params: &FileSourceParams, checks: &mut Vec<TopicCheck>) {
    let what = format!("files at {}", params.path.display());
    let error = match FileSource::open(params, settings.columns.clone()) {
        Ok(files) => {
            checks.push(TopicCheck::passed(what));
            checks.extend(files_checks(&files));
            return;
        }
        Err(error) => error,
    };
    let is_unanswered = matches!(error, source::SourceError::Disk { .. });
    let remedy = match is_unanswered {
        true => "look after the disk, or wait for it",
        false => "correct `files`, or the names or types of the columns",
    };
    checks.push(TopicCheck {
        is_unanswered,
        ..TopicCheck::new(what, false, error.to_string(), remedy)
    });
}

/// Checks the topic of the input and that of its clock. Returns false if the broker does not answer.
fn check_input(
    settings: &WorkerSettings,
    kafka: &kafka::KafkaSourceParams,
    checks: &mut Vec<TopicCheck>,
) -> bool {
    let input = NeededTopic {
        broker: &kafka.broker,
        name: &kafka.topic,
        rights: &[TopicRight::Read],
        wishes: &[],
        origin: "create it with message.timestamp.type=LogAppendTime, as `bernstream produce --create` does",
        replicas: 1,
    };
    let answers = check_topic(checks, input, |topic| {
        let mut of_topic = input_checks(kafka, topic);
        let may_look = topic.rights.contains(&TopicRight::Read)
            && of_topic.iter().all(|check| check.fault.is_none());
        if may_look {
            of_topic.extend(older_stamps::older_stamps_check(settings, kafka));
        }
        of_topic
    });
    if answers && !kafka.broker.is_mock {
        let lag = replica_lag::longest_lag(&kafka.broker, &kafka.topic);
        checks.push(lag_check(kafka, lag.ok().flatten()));
    }
    if answers && !kafka.trust_producer_time {
        let clock = NeededTopic {
            broker: &kafka.broker,
            name: &kafka.clock,
            rights: &[TopicRight::Write],
            wishes: &[],
            origin: "`bernstream ledger init` creates it, and a worker that may",
            replicas: 1,
        };
        let mut of_clock = Vec::new();
        check_topic(&mut of_clock, clock, |topic| {
            clock_checks(&kafka.clock, topic)
        });
        created_by_init(settings, &mut of_clock);
        checks.extend(of_clock);
    }
    answers
}

fn check_budget(
    settings: &WorkerSettings,
    budget: &topic::OrderedTopicParams,
    checks: &mut Vec<TopicCheck>,
) {
    let origin =
        "`bernstream budget init` creates it, before the first pipeline of the input is started";
    let mut of_topic = Vec::new();
    check_topic(&mut of_topic, budget.needed_topic(origin), |topic| {
        ordered::topic_checks(budget, topic)
    });
    // What the topic lacks is told already.
    let is_sound = of_topic.iter().all(|check| check.fault.is_none());
    checks.extend(of_topic);
    if is_sound {
        checks.push(share_check(settings, &budget.topic));
    }
}

fn check_log(settings: &WorkerSettings, log: &log::KafkaLogParams, checks: &mut Vec<TopicCheck>) {
    let log::KafkaLogParams { records, key_file } = log;
    checks.push(key_check(key_file));
    let origin = match has_ledger(settings) {
        true => "`bernstream ledger log init` creates it",
        false => "`bernstream ledger init` creates it",
    };
    let needed = NeededTopic {
        wishes: &[(TopicRight::Delete, "what nobody needs any more stays there")],
        ..records.needed_topic(origin)
    };
    let mut of_topic = Vec::new();
    check_topic(&mut of_topic, needed, |topic| {
        ordered::topic_checks(records, topic)
    });
    created_by_init(settings, &mut of_topic);
    checks.extend(of_topic);
}

/// Tells whether there is a ledger. That a disk does not say is told by who looks at the ledger.
pub(super) fn has_ledger(settings: &WorkerSettings) -> bool {
    ledger::ledger_exists(&settings.ledger).unwrap_or(true)
}

/// The files of a folder that are passed over, although somebody may think that they are read.
fn files_checks(files: &FileSource) -> Vec<TopicCheck> {
    let mut checks = Vec::new();
    for (path, why) in files.unread() {
        checks.push(TopicCheck::new(
            format!("the columns of {}", path.display()),
            false,
            why.to_string(),
            "give the file the column; until then it counts as null in all of its records",
        ));
    }
    if files.passed_over().len() > 0 {
        checks.push(TopicCheck::passed(format!(
            "passed over in the folder: {}",
            folder::shown_names(files.passed_over())
        )));
    }
    if files.empty_files().next().is_some() {
        checks.push(TopicCheck::passed(format!(
            "empty, so without records: {}",
            folder::shown_names(files.empty_files())
        )));
    }
    checks
}

/// Notes that what `ledger init` creates is not missing before it was run.
fn created_by_init(settings: &WorkerSettings, checks: &mut [TopicCheck]) {
    let is_to_come = !has_ledger(settings);
    for check in checks {
        check.is_to_come = is_to_come && check.is_absent;
    }
}

/// Checks that the key of the ledger log can be used.
fn key_check(path: &Path) -> TopicCheck {
    let why = match LogKey::load(path) {
        Ok(_) => None,
        Err(bernstream_ledger::log::LedgerLogError::KeyFile { why, .. }) => Some(why),
        Err(error) => Some(error.to_string()),
    };
    TopicCheck::new(
        format!("{} is a key of the ledger log", path.display()),
        why.is_none(),
        format!("it {}", why.unwrap_or_default()),
        "put the key there with which the log was written; a new log gets a new one (`head -c 32 /dev/urandom`), the same for all workers",
    )
}

/// Checks that the pipeline holds the share that it asks for, or could take it.
fn share_check(settings: &WorkerSettings, name: &str) -> TopicCheck {
    let why = foresee_share(settings).err().map(|why| why.to_string());
    let what = format!("{name} has a share for this pipeline");
    TopicCheck::new(
        what,
        why.is_none(),
        why.unwrap_or_default(),
        "`bernstream budget show` says who holds what",
    )
}

fn foresee_share(settings: &WorkerSettings) -> Result<(), Failure> {
    let witness = find_witness(settings)?;
    let first = settings
        .blocks
        .first_from(Timestamp::now())
        .map_or(Span::ALL.start, |block| block.start);
    let beginner = ShareRequest {
        owner: &witness.identity,
        was_claimed: witness.accepted.is_some(),
        first,
        may_wait: true,
    };
    Ok(shares::foresee_share(
        settings,
        &input_identity(settings)?,
        &beginner,
    )?)
}

fn input_checks(kafka: &kafka::KafkaSourceParams, topic: &TopicMetadata) -> Vec<TopicCheck> {
    let name = &kafka.topic;
    let kind = topic_setting(topic, "message.timestamp.type");
    if kafka.trust_producer_time {
        return vec![TopicCheck::passed(format!(
            "{name} has {kind}, producers are trusted"
        ))];
    }
    vec![TopicCheck::new(
        format!("{name} has LogAppendTime"),
        kind == "LogAppendTime",
        format!("message.timestamp.type is {kind}"),
        "set it to LogAppendTime before records are written, or trust_producer_time = true",
    )]
}

/// Checks that no record can turn up after its window has closed because a replica lags by `lag`.
fn lag_check(kafka: &kafka::KafkaSourceParams, lag: Option<Duration>) -> TopicCheck {
    let setting = replica_lag::SETTING;
    let slack = format_duration(kafka.clock_slack);
    let Some(lag) = lag else {
        return TopicCheck::passed(format!(
            "the brokers do not tell {setting}; clock_slack, {slack}, must be longer"
        ));
    };
    let longest = format_duration(lag);
    TopicCheck::new(
        format!("input.kafka.clock_slack is longer than {setting} of the brokers, {longest}"),
        kafka.clock_slack > lag,
        format!(
            "it is {slack}: a record that is stamped before a cutoff can turn up when its window has closed, and is lost"
        ),
        format!(
            "raise clock_slack above {longest} (and windows.publish_delay above it), or lower {setting}"
        ),
    )
}

fn clock_checks(name: &str, topic: &TopicMetadata) -> Vec<TopicCheck> {
    let mut checks = Vec::new();
    for (key, value) in broker_clock::SETTINGS {
        let found = topic_setting(topic, key);
        checks.push(TopicCheck::new(
            format!("{name} has {key} = {value}"),
            found == value,
            format!("it is {found}"),
            format!("set {key}={value}, or name another topic as input.kafka.clock"),
        ));
    }
    checks
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn settings(text: &str) -> WorkerSettings {
        WorkerSettings::parse(text, "test").unwrap()
    }

    const FLIGHTS: &str = include_str!("../../../tests/data/lattice.toml");

    fn topic(partitions: usize, settings: &[(&str, &str)]) -> TopicMetadata {
        TopicMetadata {
            id: String::new(),
            partitions: (0..).take(partitions).collect(),
            settings: settings
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            rights: TopicRight::ALL.into(),
        }
    }

    fn faults(checks: &[TopicCheck]) -> usize {
        checks.iter().filter(|check| check.fault.is_some()).count()
    }

    #[test]
    fn the_slack_must_be_longer_than_a_replica_may_lag() {
        let settings = settings(FLIGHTS);
        let InputParams::Kafka(kafka) = settings.input else {
            panic!()
        };
        assert_eq!(kafka.clock_slack, Duration::from_secs(10));
        for (millis, expected) in [(9_999, 0), (10_000, 1), (30_000, 1)] {
            assert_eq!(
                faults(&[lag_check(&kafka, Some(Duration::from_millis(millis)))]),
                expected,
                "{millis}"
            );
        }
        assert_eq!(faults(&[lag_check(&kafka, None)]), 0);
    }

    #[test]
    fn the_input_must_have_the_brokers_time_unless_producers_are_trusted() {
        let settings = settings(FLIGHTS);
        let InputParams::Kafka(mut kafka) = settings.input else {
            panic!()
        };
        let [create, append] = ["CreateTime", "LogAppendTime"]
            .map(|kind| topic(1, &[("message.timestamp.type", kind)]));
        assert_eq!(faults(&input_checks(&kafka, &append)), 0);
        assert_eq!(faults(&input_checks(&kafka, &create)), 1);
        kafka.trust_producer_time = true;
        assert_eq!(faults(&input_checks(&kafka, &create)), 0);
    }
}
