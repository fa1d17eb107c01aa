//! The newest synopsis of a topic.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Message, Offset, TopicPartitionList};

use crate::cli::failure::Failure;
use crate::cli::progress::{ProgressPrinter, part_in_words};
use bernstream_kafka as kafka;
use bernstream_kafka::broker::REQUEST_TIMEOUT;
use bernstream_kafka::topic;
use bernstream_kafka::{Broker, ErrorContext};
use bernstream_server::feed;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;

/// Number of releases and keys that an error names.
const NAMED: usize = 10;

/// The reason why there is no newest synopsis.
#[derive(Debug, thiserror::Error)]
pub enum NewestError {
    #[error(transparent)]
    Broker(#[from] kafka::ClusterError),
    #[error("topic '{topic}' does not exist on {brokers}; check its name")]
    NoTopic { topic: String, brokers: String },
    #[error("{brokers} stopped answering while '{topic}' was read")]
    Silent { topic: String, brokers: String },
    #[error("'{topic}' has synopses of several releases or keys: add {groups}")]
    Several { topic: String, groups: String },
    #[error(
        "no synopsis in '{topic}' matches, of {messages} messages ({unreadable} of them are not synopses){others}"
    )]
    NoMatch {
        topic: String,
        messages: u64,
        unreadable: u64,
        others: String,
    },
}

impl From<NewestError> for Failure {
    fn from(error: NewestError) -> Self {
        let text = error.to_string();
        match error {
            NewestError::Broker(error) => error.into(),
            NewestError::Silent { .. } => Failure::Unavailable(text),
            NewestError::NoTopic { .. }
            | NewestError::Several { .. }
            | NewestError::NoMatch { .. } => Failure::Configuration(text),
        }
    }
}

/// Which topic, and which of its synopses.
#[derive(Clone, Debug, clap::Args)]
pub struct TopicArguments {
    /// Read the newest synopsis of this topic instead of a file
    #[arg(long, required = false, requires = "brokers")]
    pub topic: String,
    /// Only synopses of this release
    #[arg(long, requires = "topic")]
    pub release: Option<String>,
    /// Only synopses of this group key
    #[arg(long, requires = "topic")]
    pub key: Option<String>,
    /// Only the window that starts at this time, for example 2013-01-01T05:00:00Z
    #[arg(long, requires = "topic", value_name = "START", value_parser = parse_time)]
    pub window: Option<Timestamp>,
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::try_from(text.to_owned())
}

impl TopicArguments {
    /// The last copy of the newest window that matches. The topic is read from its beginning, outside any consumer group.
    ///
    /// # Errors
    ///
    /// If the topic cannot be read, or if no synopsis matches, or several releases or keys do: which of them is the newest
    /// would be chance.
    pub fn newest_synopsis(&self, broker: &Broker) -> Result<Synopsis, NewestError> {
        let consumer = feed::topic::consumer(broker).map_err(|e| self.failed(broker, &e))?;
        let Unread {
            mut ends,
            messages: all,
        } = self.assign_all(broker, &consumer)?;
        let mut newest: Option<Synopsis> = None;
        let mut groups = BTreeSet::new();
        let mut others = BTreeSet::new();
        let mut messages = 0;
        let mut unreadable = 0;
        let mut heard = Instant::now();
        let mut progress = ProgressPrinter::new();
        while !ends.is_empty() {
            if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
                heard = Instant::now();
                messages += 1;
                progress.show(|| {
                    format!(
                        "{} messages of '{}' read",
                        part_in_words(messages, all),
                        self.topic
                    )
                });
                ends.retain(|partition, end| {
                    *partition != message.partition() || message.offset() + 1 < *end
                });
                match Synopsis::decode_message(message.payload().unwrap_or_default()) {
                    Ok(synopsis) if self.matches(&synopsis) => {
                        groups.insert(SynopsisGroup::of(&synopsis));
                        if newest
                            .as_ref()
                            .is_none_or(|newest| is_as_new(&synopsis, newest))
                        {
                            newest = Some(synopsis);
                        }
                    }
                    Ok(other) => _ = others.insert(SynopsisGroup::of(&other)),
                    Err(_) => unreadable += 1,
                }
            } else {
                // Positions pass the marks of transactions, which are never delivered.
                let positions = consumer
                    .position()
                    .map_err(|error| self.failed(broker, &error))?;
                ends.retain(|partition, end| {
                    let position = positions.find_partition(&self.topic, *partition);
                    match position.map(|position| position.offset()) {
                        Some(Offset::Offset(offset)) => offset < *end,
                        _ => true,
                    }
                });
            }
            if heard.elapsed() > REQUEST_TIMEOUT {
                return Err(NewestError::Silent {
                    topic: self.topic.clone(),
                    brokers: broker.servers.clone(),
                });
            }
        }
        if groups.len() > 1 {
            return Err(NewestError::Several {
                topic: self.topic.clone(),
                groups: groups_in_words(&groups),
            });
        }
        newest.ok_or_else(|| {
            let others = if others.is_empty() {
                String::new()
            } else {
                format!("; it has {}", groups_in_words(&others))
            };
            NewestError::NoMatch {
                topic: self.topic.clone(),
                messages,
                unreadable,
                others,
            }
        })
    }

    fn failed(&self, broker: &Broker, error: &KafkaError) -> kafka::ClusterError {
        broker.error_about(&self.topic, error)
    }

    /// Assigns every partition that has messages, from its beginning.
    fn assign_all(
        &self,
        broker: &Broker,
        consumer: &BaseConsumer<ErrorContext>,
    ) -> Result<Unread, NewestError> {
        let partitions =
            topic::partitions(broker, consumer, &self.topic).map_err(|error| match error {
                kafka::ClusterError::NoTopic { topic, servers } => NewestError::NoTopic {
                    topic,
                    brokers: servers,
                },
                error => error.into(),
            })?;
        let mut assignment = TopicPartitionList::new();
        let mut unread = Unread::default();
        for partition in partitions {
            let (low, high) = consumer
                .fetch_watermarks(&self.topic, partition, REQUEST_TIMEOUT)
                .map_err(|error| self.failed(broker, &error))?;
            if low < high {
                assignment
                    .add_partition_offset(&self.topic, partition, Offset::Offset(low))
                    .map_err(|error| self.failed(broker, &error))?;
                unread.ends.insert(partition, high);
                unread.messages += low.abs_diff(high);
            }
        }
        consumer
            .assign(&assignment)
            .map_err(|error| self.failed(broker, &error))?;
        Ok(unread)
    }

    fn matches(&self, candidate: &Synopsis) -> bool {
        let about = candidate.description();
        self.release
            .as_ref()
            .is_none_or(|release| about.release == *release)
            && self
                .key
                .as_ref()
                .is_none_or(|key| about.key.as_ref() == Some(key))
            && self.window.is_none_or(|start| about.window.start == start)
    }
}

/// The part of a topic that is still to be read.
#[derive(Default)]
struct Unread {
    /// The end of each partition when reading began.
    ends: BTreeMap<i32, i64>,
    /// An upper bound of the number of messages.
    messages: u64,
}

/// A release and a key, whose synopses follow each other.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SynopsisGroup {
    release: String,
    key: Option<String>,
}

impl SynopsisGroup {
    fn of(synopsis: &Synopsis) -> Self {
        let about = synopsis.description();
        SynopsisGroup {
            release: about.release.clone(),
            key: about.key.clone(),
        }
    }
}

/// The first of these releases and keys, as options.
fn groups_in_words(groups: &BTreeSet<SynopsisGroup>) -> String {
    let mut names = Vec::new();
    for SynopsisGroup { release, key } in groups.iter().take(NAMED) {
        names.push(match key {
            Some(key) => format!("--release {release} --key {key}"),
            None => format!("--release {release}"),
        });
    }
    names.join(", or ")
}

/// Tells whether a synopsis is of a later window than another, or of the same and from the same row of its ledger or a later one.
fn is_as_new(synopsis: &Synopsis, other: &Synopsis) -> bool {
    let about = synopsis.description();
    let other = other.description();
    match about.window.end.cmp(&other.window.end) {
        Ordering::Equal => about.ledger.sequence >= other.ledger.sequence,
        order => order.is_gt(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rdkafka::config::ClientConfig;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

    use super::*;
    use crate::cli::cluster::Cluster;
    use bernstream_synopsis::description::Description;
    use bernstream_synopsis::grid::Span;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        topic: TopicArguments,
        #[command(flatten)]
        cluster: Cluster,
    }

    #[test]
    fn the_newest_matching_synopsis_is_read_from_a_topic() {
        let example: Description = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
        let cluster = MockCluster::new(1).unwrap();
        let brokers = cluster.bootstrap_servers();
        cluster.create_topic("synopses", 2, 1).unwrap();
        let producer: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", &brokers)
            .create()
            .unwrap();
        // The newest window comes before a late copy of an older one.
        for (key, day, sequence) in [("JFK", 1, 1), ("LGA", 1, 1), ("JFK", 3, 3), ("JFK", 2, 2)] {
            let start = Timestamp::parse(&format!("2013-01-0{day}T05:00:00Z")).unwrap();
            let mut about = Description {
                key: Some(key.to_owned()),
                ..example.clone()
            };
            about.window = Span {
                start,
                end: start.plus(Duration::from_secs(86_400)),
            };
            about.ledger.sequence = sequence;
            let sealed = Synopsis::new(about, vec![0.0; 3])
                .unwrap()
                .encode()
                .unwrap();
            producer
                .send(
                    BaseRecord::to("synopses")
                        .key(&sealed.key)
                        .payload(&sealed.bytes),
                )
                .map_err(|e| e.0)
                .unwrap();
        }
        producer
            .send(
                BaseRecord::to("synopses")
                    .key("noise")
                    .payload("not one of ours"),
            )
            .map_err(|e| e.0)
            .unwrap();
        producer.flush(REQUEST_TIMEOUT).unwrap();

        let newest = |more: &str| {
            let line = format!("--topic synopses --brokers {brokers} {more}");
            let words = std::iter::once("evaluate").chain(line.split_whitespace());
            let Command { topic, cluster } = Command::try_parse_from(words).unwrap();
            topic
                .newest_synopsis(&cluster.broker().unwrap())
                .map(|s| s.description().ledger.sequence)
        };
        let several = newest("").unwrap_err().to_string();
        assert!(
            several.contains(
                "--release departure-delay --key JFK, or --release departure-delay --key LGA"
            ),
            "{several}"
        );
        assert_eq!(newest("--key JFK").unwrap(), 3);
        assert_eq!(newest("--key LGA --release departure-delay").unwrap(), 1);
        assert!(matches!(
            newest("--key LGA --release other"),
            Err(NewestError::NoMatch { .. })
        ));
        assert_eq!(
            newest("--key JFK --window 2013-01-02T05:00:00Z").unwrap(),
            2
        );
        let none = newest("--key EWR").unwrap_err().to_string();
        let there = "of 5 messages (1 of them are not synopses); it has --release departure-delay --key JFK, or --release";
        assert!(none.contains(there), "{none}");
    }
}
