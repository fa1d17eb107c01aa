//! What the brokers say about the output topic and the witness topic.

use super::kafka as topic_sink;
use crate::check::{NeededTopic, TopicCheck, check_topic, topic_setting};
use crate::ledger::witness;
use crate::ordered;
use crate::right::TopicRight;
use crate::topic::TopicMetadata;

/// Bytes of a message beside its synopsis, at most: its key and its headers.
pub(super) const BESIDE_SYNOPSIS: usize = 20_000;

/// Asks about an output topic and its witness.
pub(super) fn check_topics(
    sink: &topic_sink::KafkaSinkParams,
    witness: &witness::kafka::OrderedTopicParams,
    bytes: usize,
) -> Vec<TopicCheck> {
    let mut checks = Vec::new();
    let origin = "`bernstream ledger init` creates it";
    let wishes = &[(
        TopicRight::Read,
        "nobody notices synopses that the topic has lost",
    )];
    let rights = &[TopicRight::Write];
    let replicas = witness.new_replicas();
    let output = NeededTopic {
        broker: &sink.broker,
        name: &sink.topic,
        rights,
        wishes,
        origin,
        replicas,
    };
    if check_topic(&mut checks, output, |topic| {
        output_checks(sink, topic, bytes)
    }) {
        check_topic(&mut checks, witness.needed_topic(origin), |topic| {
            ordered::topic_checks(witness, topic)
        });
    }
    checks
}

fn output_checks(
    sink: &topic_sink::KafkaSinkParams,
    topic: &TopicMetadata,
    bytes: usize,
) -> Vec<TopicCheck> {
    let name = &sink.topic;
    let limit = topic_setting(topic, "max.message.bytes");
    let policy = topic_setting(topic, "cleanup.policy");
    vec![
        TopicCheck::new(
            format!("{name} takes messages of {bytes} bytes"),
            limit.parse().is_ok_and(|limit: usize| bytes <= limit),
            format!("max.message.bytes is {limit}"),
            format!(
                "take a smaller degree or fewer keys, or raise it: kafka-configs --bootstrap-server {} --alter --entity-type topics \
                 --entity-name {name} --add-config max.message.bytes={}",
                sink.broker.servers,
                bytes.saturating_add(BESIDE_SYNOPSIS)
            ),
        ),
        TopicCheck::new(
            format!("{name} keeps every window"),
            !topic_sink::is_compacted(policy),
            format!(
                "cleanup.policy is {policy}, and messages have the key of their release, not of their window"
            ),
            "set cleanup.policy=delete: windows that were published are deleted otherwise",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Broker;
    use crate::ordered::{FLUSH, PowerLoss};
    use crate::security::Security;

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

    fn output() -> topic_sink::KafkaSinkParams {
        topic_sink::KafkaSinkParams {
            broker: Broker::new("kafka:9092".to_owned(), Security::default()),
            topic: "t".to_owned(),
        }
    }

    fn faults(checks: &[TopicCheck]) -> usize {
        checks.iter().filter(|check| check.fault.is_some()).count()
    }

    #[test]
    fn every_setting_of_the_witness_is_asked_for() {
        let broker = Broker::mock_cluster("none".to_owned());
        let witness = &witness::kafka::OrderedTopicParams {
            broker,
            topic: "w".to_owned(),
            min_insync_replicas: 2,
            power_loss: PowerLoss::Together,
        };
        let sound = [
            ("cleanup.policy", "delete"),
            ("retention.ms", "-1"),
            ("retention.bytes", "-1"),
            ("unclean.leader.election.enable", "false"),
            ("message.timestamp.type", "LogAppendTime"),
            ("flush.messages", "1"),
            ("min.insync.replicas", "2"),
        ];
        assert_eq!(
            faults(&ordered::topic_checks(witness, &topic(1, &sound))),
            0
        );
        assert_eq!(
            faults(&ordered::topic_checks(witness, &topic(2, &sound))),
            1
        );
        for wrong in 0..sound.len() {
            let mut settings = sound;
            settings[wrong].1 = "0";
            assert_eq!(
                faults(&ordered::topic_checks(witness, &topic(1, &settings))),
                1,
                "{}",
                settings[wrong].0
            );
        }
        assert_eq!(
            faults(&ordered::topic_checks(witness, &topic(1, &[]))),
            sound.len()
        );
        let witness = witness::kafka::OrderedTopicParams {
            power_loss: PowerLoss::Separately,
            ..witness.clone()
        };
        assert_eq!(
            faults(&ordered::topic_checks(
                &witness,
                &topic(
                    1,
                    &sound.map(|(key, value)| if key == FLUSH.0 {
                        (key, "100")
                    } else {
                        (key, value)
                    })
                )
            )),
            0
        );
    }

    #[test]
    fn a_command_is_named_that_alters_the_setting() {
        let broker = Broker::new("kafka:9092".to_owned(), Security::default());
        let witness = &witness::kafka::OrderedTopicParams {
            broker,
            topic: "w".to_owned(),
            min_insync_replicas: 2,
            power_loss: PowerLoss::Together,
        };
        let command = "kafka-configs --bootstrap-server kafka:9092 --alter --entity-type topics --entity-name w --add-config";
        for check in &ordered::topic_checks(witness, &topic(1, &[]))[1..] {
            let (_, remedy) = check.fault.as_ref().unwrap();
            assert!(remedy.starts_with(command), "{remedy}");
        }
    }

    #[test]
    fn an_output_that_deletes_windows_is_refused() {
        let found = |policy| {
            faults(&output_checks(
                &output(),
                &topic(
                    1,
                    &[("max.message.bytes", "3000"), ("cleanup.policy", policy)],
                ),
                1,
            ))
        };
        assert_eq!(found("delete"), 0);
        assert_eq!(
            ["compact", "compact,delete", "delete, compact"].map(found),
            [1; 3]
        );
    }

    #[test]
    fn a_message_must_fit_its_topic() {
        let small = topic(1, &[("max.message.bytes", "3000")]);
        assert_eq!(faults(&output_checks(&output(), &small, 3000)), 0);
        let checks = output_checks(&output(), &small, 3001);
        assert_eq!(faults(&checks), 1);
        let (_, remedy) = checks[0].fault.as_ref().unwrap();
        let command = "kafka-configs --bootstrap-server kafka:9092 --alter --entity-type topics --entity-name t --add-config";
        assert!(remedy.contains(command), "{remedy}");
    }
}
