//! What the brokers say about a topic: whether it exists, and whether it is set up as it must be.

use serde::Serialize;

use super::broker::Broker;
use super::error::ClusterError;
use super::right::TopicRight;
use super::topic::{TopicMetadata, describe_topic};
use crate::topic;

/// One condition; where it does not hold, why and what to do.
#[derive(Clone, Debug, Serialize)]
pub struct TopicCheck {
    pub what: String,
    /// Why it does not hold, and the remedy.
    pub fault: Option<(String, String)>,
    /// Why it should not stay so although it can, and the remedy.
    pub warning: Option<(String, String)>,
    /// The broker gave no answer.
    #[serde(skip)]
    pub is_unanswered: bool,
    /// There is no such topic.
    #[serde(skip)]
    pub is_absent: bool,
    /// Not wrong: a command creates it that is still to be run, as the remedy says.
    pub is_to_come: bool,
}

impl TopicCheck {
    pub fn passed(what: String) -> Self {
        TopicCheck {
            what,
            fault: None,
            warning: None,
            is_unanswered: false,
            is_absent: false,
            is_to_come: false,
        }
    }

    /// `what` holds if `must` does; otherwise `why` not, and the `remedy`.
    pub fn new(
        what: String,
        must: bool,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let fault = (!must).then(|| (why.into(), remedy.into()));
        TopicCheck {
            fault,
            ..TopicCheck::passed(what)
        }
    }
}

/// A topic that a pipeline uses.
#[derive(Clone, Copy, Debug)]
pub struct NeededTopic<'a> {
    pub broker: &'a Broker,
    pub name: &'a str,
    /// Rights on it that the user of the connection must have.
    pub rights: &'a [TopicRight],
    /// Rights that it should have, and the consequence if it has not.
    pub wishes: &'a [(TopicRight, &'a str)],
    /// Words on how it is created.
    pub origin: &'a str,
    /// Number of replicas that it gets then, at least.
    pub replicas: i32,
}

impl NeededTopic<'_> {
    /// The command that gives a right.
    fn remedy(&self, right: TopicRight) -> String {
        let user = self
            .broker
            .security()
            .sasl()
            .map_or("NAME", |sasl| sasl.username.as_str());
        format!(
            "kafka-acls {} --add --allow-principal User:{user} --operation {right} --topic {}",
            self.broker.for_kafka_commands(),
            self.name
        )
    }

    /// Checks that a new one can be created, where it needs several brokers and they can be counted.
    fn check_room(&self) -> Option<TopicCheck> {
        let brokers = topic::broker_count(self.broker)
            .ok()
            .filter(|_| self.replicas > 1)?;
        let noun = if brokers == 1 { "broker" } else { "brokers" };
        Some(TopicCheck::new(
            format!("{} can get its {} replicas", self.name, self.replicas),
            i32::try_from(brokers).is_ok_and(|brokers| brokers >= self.replicas),
            format!("the cluster has {brokers} {noun}, and each replica needs one of its own"),
            "start more brokers, or for a trial set witness_min_insync_replicas = 1 in [output.kafka], for one replica",
        ))
    }

    fn check_rights(&self, topic: &TopicMetadata) -> Vec<TopicCheck> {
        let mut checks = Vec::new();
        for right in self.rights {
            let mut check = self.right_check(*right);
            if !topic.rights.contains(right) {
                check.fault = Some((format!("it may not {right}"), self.remedy(*right)));
            }
            checks.push(check);
        }
        for (right, without) in self.wishes {
            let mut check = self.right_check(*right);
            if !topic.rights.contains(right) {
                check.warning = Some((format!("it may not, and {without}"), self.remedy(*right)));
            }
            checks.push(check);
        }
        checks
    }

    fn right_check(&self, right: TopicRight) -> TopicCheck {
        TopicCheck::passed(format!("this user may {right} {}", self.name))
    }
}

/// Asks about one topic. Returns false if the broker did not answer.
pub fn check_topic(
    checks: &mut Vec<TopicCheck>,
    needed: NeededTopic<'_>,
    ask: impl FnOnce(&TopicMetadata) -> Vec<TopicCheck>,
) -> bool {
    let NeededTopic {
        broker,
        name,
        origin,
        ..
    } = needed;
    let what = format!("topic {name} at {}", broker.servers);
    match describe_topic(broker, name) {
        Ok(topic) => {
            let partitions = topic.partitions.len();
            let noun = if partitions == 1 {
                "partition"
            } else {
                "partitions"
            };
            checks.push(TopicCheck::passed(format!("{what}: {partitions} {noun}")));
            if !broker.is_mock {
                checks.extend(needed.check_rights(&topic));
                checks.extend(ask(&topic));
            }
        }
        Err(ClusterError::NoTopic { .. }) => {
            let remedy = format!("{origin}; or correct its name");
            checks.push(TopicCheck {
                is_absent: true,
                ..TopicCheck::new(what, false, "there is none", remedy)
            });
            checks.extend(needed.check_room());
        }
        Err(error @ ClusterError::NoRight { right, .. }) => {
            let remedy = needed.remedy(right);
            checks.push(TopicCheck::new(what, false, error.to_string(), remedy));
        }
        Err(error) => {
            let is_security = matches!(
                error,
                ClusterError::Setup { .. } | ClusterError::Denied { .. }
            );
            let remedy = if is_security {
                "correct `tls` or `sasl`, or the files that they name"
            } else {
                "start the broker, or correct `brokers`"
            };
            checks.push(TopicCheck {
                is_unanswered: !is_security,
                ..TopicCheck::new(what, false, error.to_string(), remedy)
            });
            // A broker that refuses the client has answered.
            return matches!(error, ClusterError::Refused { .. });
        }
    }
    true
}

/// The value of a setting of `topic`; empty if the broker does not name it.
pub fn topic_setting<'t>(topic: &'t TopicMetadata, key: &str) -> &'t str {
    topic.settings.get(key).map_or("", String::as_str)
}
