//! What the brokers say about the output topic and the witness topic.

use super::kafka as topic_sink;
use crate::kafka::check::{Check, check_topic, setting};
use crate::kafka::ordered;
use crate::kafka::topic::Topic;
use crate::ledger::witness;

/// Asks about an output topic and its witness.
pub(super) fn topics(sink: &topic_sink::Params, witness: &witness::kafka::Params, bytes: usize) -> Vec<Check> {
    let mut checks = Vec::new();
    let origin = "`bernstream ledger init` creates it";
    if check_topic(&mut checks, &sink.broker, &sink.topic, origin, |topic| output_checks(&sink.topic, topic, bytes)) {
        check_topic(&mut checks, &witness.broker, &witness.topic, origin, |topic| ordered::checks(witness, topic));
    }
    checks
}

fn output_checks(name: &str, topic: &Topic, bytes: usize) -> Vec<Check> {
    let limit = setting(topic, "max.message.bytes");
    vec![Check::new(
        format!("{name} takes messages of {bytes} bytes"),
        limit.parse().is_ok_and(|limit: usize| bytes <= limit),
        format!("max.message.bytes is {limit}"),
        "raise it, or take a smaller degree",
    )]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::kafka::Broker;

    fn topic(partitions: usize, settings: &[(&str, &str)]) -> Topic {
        Topic {
            id: String::new(),
            partitions: (0..).take(partitions).collect(),
            settings: settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>(),
        }
    }

    fn faults(checks: &[Check]) -> usize {
        checks.iter().filter(|check| check.fault.is_some()).count()
    }

    #[test]
    fn every_setting_of_the_witness_is_asked_for() {
        let broker = Broker::mock("none".to_owned());
        let witness = &witness::kafka::Params { broker, topic: "w".to_owned(), min_insync_replicas: 2 };
        let sound = [
            ("cleanup.policy", "delete"),
            ("retention.ms", "-1"),
            ("retention.bytes", "-1"),
            ("unclean.leader.election.enable", "false"),
            ("min.insync.replicas", "2"),
        ];
        assert_eq!(faults(&ordered::checks(witness, &topic(1, &sound))), 0);
        assert_eq!(faults(&ordered::checks(witness, &topic(2, &sound))), 1);
        for wrong in 0..sound.len() {
            let mut settings = sound;
            settings[wrong].1 = "0";
            assert_eq!(faults(&ordered::checks(witness, &topic(1, &settings))), 1, "{}", settings[wrong].0);
        }
        assert_eq!(faults(&ordered::checks(witness, &topic(1, &[]))), sound.len());
    }

    #[test]
    fn a_message_must_fit_its_topic() {
        let small = topic(1, &[("max.message.bytes", "3000")]);
        assert_eq!(faults(&output_checks("t", &small, 3001)), 1);
        assert_eq!(faults(&output_checks("t", &small, 3000)), 0);
    }
}
