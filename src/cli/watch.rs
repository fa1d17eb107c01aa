//! Looks again and again at the topics of a running worker. What a worker refuses at its start ends it later too; other changes
//! are told, each once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::warn;

use crate::cli::background::BackgroundThread;
use crate::cli::failure::Failure;
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::broker_clock;
use bernstream_kafka::check::topic_setting;
use bernstream_kafka::ledger::budget::topic as budget_topic;
use bernstream_kafka::ledger::witness;
use bernstream_kafka::sink;
use bernstream_kafka::sink::OutputParams;
use bernstream_kafka::source;
use bernstream_kafka::topic;
use bernstream_kafka::topic::TopicMetadata;
use bernstream_kafka::{Broker, ClusterError, UnknownTopic};
use bernstream_ledger::budget;
use bernstream_worker::pipeline::StopRequest;

/// Time between two looks at the topics.
const INTERVAL: Duration = Duration::from_secs(15);
/// The settings whose changes are told.
const SETTINGS: [&str; 7] = [
    "cleanup.policy",
    "max.message.bytes",
    "message.timestamp.type",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "unclean.leader.election.enable",
];

/// A thread that looks at the topics, and why the worker had to end, if it had to.
#[derive(Debug)]
pub struct TopicWatch {
    found: Arc<Mutex<Option<Failure>>>,
    _until_the_end: BackgroundThread,
}

impl TopicWatch {
    /// Starts a thread that looks at the topics of `settings` until `stop` is asked for. It asks for it where the worker must end.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(settings: &WorkerSettings, stop: &StopRequest) -> Result<Self, Failure> {
        let found = Arc::<Mutex<Option<Failure>>>::default();
        let shared = Arc::clone(&found);
        let mut topics = watched_topics(settings);
        let thread = BackgroundThread::start("topics", stop, move |stop| {
            while !topics.is_empty() && !stop.is_requested() {
                let mut looks = topics.iter_mut().take_while(|_| !stop.is_requested());
                if let Some(failure) = looks.find_map(|topic| topic.look_at_topic().err()) {
                    *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                    stop.request_stop();
                }
                stop.sleep_or_stop(INTERVAL);
            }
        })?;
        Ok(TopicWatch {
            found,
            _until_the_end: thread,
        })
    }

    /// The reason why the worker had to end, if it had to.
    pub fn take_failure(&self) -> Option<Failure> {
        self.found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// A condition without which a worker does not start.
type TopicCondition = Box<dyn Fn(&TopicMetadata) -> Result<(), Failure> + Send>;

/// A topic of the worker.
struct WatchedTopic {
    role: &'static str,
    broker: Broker,
    name: String,
    check: TopicCondition,
    /// The failure of a worker whose topic is gone or was created again.
    gone: Box<dyn Fn(TopicChange) -> Failure + Send>,
    unknown: UnknownTopic,
    last: Option<TopicMetadata>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TopicChange {
    Deleted,
    Recreated,
}

/// The topics of a worker; none for a mock cluster, which has no settings.
fn watched_topics(settings: &WorkerSettings) -> Vec<WatchedTopic> {
    let mut topics = Vec::new();
    if let InputParams::Kafka(input) = &settings.input {
        topics.push(WatchedTopic::input(input));
        if !input.trust_producer_time {
            topics.push(WatchedTopic::clock(input));
        }
    }
    if let OutputParams::Kafka { sink, witness } = &settings.output {
        topics.push(WatchedTopic::output(sink));
        topics.push(WatchedTopic::witness(witness));
    }
    if let Some(params) = settings.budget_topic() {
        topics.push(WatchedTopic::budget(params));
    }
    topics.retain(|topic| !topic.broker.is_mock);
    topics
}

impl WatchedTopic {
    fn new(
        role: &'static str,
        broker: &Broker,
        name: &str,
        check: impl Fn(&TopicMetadata) -> Result<(), Failure> + Send + 'static,
        gone: impl Fn(TopicChange) -> Failure + Send + 'static,
    ) -> Self {
        WatchedTopic {
            role,
            broker: broker.clone(),
            name: name.to_owned(),
            check: Box::new(check),
            gone: Box::new(gone),
            unknown: UnknownTopic::default(),
            last: None,
        }
    }

    fn input(input: &source::kafka::KafkaSourceParams) -> Self {
        let params = input.clone();
        let name = input.topic.clone();
        WatchedTopic::new(
            "input",
            &input.broker,
            &input.topic,
            move |topic| Ok(source::kafka::check_topic(&params, topic)?),
            move |gone| {
                let why = match gone {
                    TopicChange::Deleted => {
                        "it is not there any more, or this user has lost the right Read on it"
                    }
                    TopicChange::Recreated => "it has another id",
                };
                source::SourceError::Recreated {
                    topic: name.clone(),
                    why: why.to_owned().into(),
                }
                .into()
            },
        )
    }

    fn clock(input: &source::kafka::KafkaSourceParams) -> Self {
        let clock = input.clock.clone();
        let name = input.clock.clone();
        let servers = input.broker.servers.clone();
        WatchedTopic::new(
            "clock",
            &input.broker,
            &input.clock,
            move |topic| Ok(broker_clock::check_settings(&clock, topic)?),
            move |_| {
                ClusterError::ClockGone {
                    topic: name.clone(),
                    servers: servers.clone(),
                }
                .into()
            },
        )
    }

    fn output(sink: &sink::kafka::KafkaSinkParams) -> Self {
        let params = sink.clone();
        let name = sink.topic.clone();
        WatchedTopic::new(
            "output",
            &sink.broker,
            &sink.topic,
            move |topic| Ok(sink::kafka::check_topic(&params, topic)?),
            move |gone| {
                let topic = name.clone();
                match gone {
                    TopicChange::Deleted => sink::SinkError::Deleted { topic }.into(),
                    TopicChange::Recreated => sink::SinkError::Recreated { topic }.into(),
                }
            },
        )
    }

    fn witness(witness: &witness::kafka::OrderedTopicParams) -> Self {
        let params = witness.clone();
        let name = witness.topic.clone();
        WatchedTopic::new(
            "witness",
            &witness.broker,
            &witness.topic,
            move |topic| Ok(witness::kafka::check_topic(&params, topic)?),
            move |_| {
                bernstream_ledger::witness::WitnessError::Missing { name: name.clone() }.into()
            },
        )
    }

    fn budget(params: budget_topic::OrderedTopicParams) -> Self {
        let broker = params.broker.clone();
        let topic = params.topic.clone();
        let name = params.topic.clone();
        WatchedTopic::new(
            "budget",
            &broker,
            &topic,
            move |topic| Ok(budget_topic::check_topic(&params, topic)?),
            move |gone| {
                let name = name.clone();
                match gone {
                    TopicChange::Deleted => budget::error::BudgetError::Missing { name }.into(),
                    TopicChange::Recreated => budget::error::BudgetError::Remade { name }.into(),
                }
            },
        )
    }

    /// # Errors
    ///
    /// If the worker must end.
    fn look_at_topic(&mut self) -> Result<(), Failure> {
        let found = topic::describe_topic(&self.broker, &self.name);
        self.compare_topic(found, Instant::now())
    }

    /// # Errors
    ///
    /// If the worker must end. A cluster that does not answer is told elsewhere.
    fn compare_topic(
        &mut self,
        found: Result<TopicMetadata, ClusterError>,
        now: Instant,
    ) -> Result<(), Failure> {
        let topic = match found {
            Ok(topic) => topic,
            Err(error) if error.is_missing() && !self.unknown.note_unknown(now) => {
                return Err((self.gone)(TopicChange::Deleted));
            }
            Err(_) => return Ok(()),
        };
        self.unknown.note_known();
        if self.last.as_ref().is_some_and(|last| last.id != topic.id) {
            return Err((self.gone)(TopicChange::Recreated));
        }
        (self.check)(&topic)?;
        for change in changes_in_words(self.role, &self.name, self.last.as_ref(), &topic) {
            warn!("{change}");
        }
        self.last = Some(topic);
        Ok(())
    }
}

/// Remarks on `topic`: every change, and at first what endangers records.
fn changes_in_words(
    role: &str,
    name: &str,
    last: Option<&TopicMetadata>,
    topic: &TopicMetadata,
) -> Vec<String> {
    let before = last.map(watched_values);
    let mut told = Vec::new();
    for (key, value) in watched_values(topic) {
        let what = format!("the {role} topic '{name}' has {key} = {value}");
        let danger = if is_unclean(key, &value) { UNCLEAN } else { "" };
        match before.as_ref().and_then(|before| before.get(key)) {
            Some(before) if *before != value => {
                told.push(format!("{what}, which was {before}{danger}"));
            }
            None if !danger.is_empty() => told.push(format!("{what}{danger}")),
            _ => {}
        }
    }
    told
}

fn watched_values(topic: &TopicMetadata) -> BTreeMap<&'static str, String> {
    let mut values = BTreeMap::new();
    for key in SETTINGS {
        values.insert(key, topic_setting(topic, key).to_owned());
    }
    values.insert("partitions", topic.partitions.len().to_string());
    values
}

const UNCLEAN: &str =
    ": a broker that lags can become leader, and what it lacks is lost without a word";

fn is_unclean(key: &str, value: &str) -> bool {
    key == "unclean.leader.election.enable" && value == "true"
}

#[cfg(test)]
mod tests {
    use super::*;
    use bernstream_kafka::right::TopicRight;

    #[test]
    fn a_topic_is_deleted_where_it_is_missing_for_half_a_minute_and_brokers_that_do_not_answer_say_nothing()
     {
        let mut watched = WatchedTopic {
            role: "input",
            broker: Broker::without_security("none"),
            name: "in".to_owned(),
            check: Box::new(|_| Ok(())),
            gone: Box::new(|gone| Failure::Other(format!("{gone:?}"))),
            unknown: UnknownTopic::default(),
            last: None,
        };
        let topic_name = "in".to_owned();
        let servers = "none".to_owned();
        let missing = || {
            Err(ClusterError::NoTopic {
                topic: topic_name.clone(),
                servers: servers.clone(),
            })
        };
        let silent = || {
            Err(ClusterError::Unavailable {
                servers: servers.clone(),
                why: String::new(),
            })
        };
        let start = Instant::now();
        let mut look =
            |second, found| watched.compare_topic(found, start + Duration::from_secs(second));
        look(0, Ok(topic(1, &[]))).unwrap();
        look(15, missing()).unwrap();
        look(30, Ok(topic(1, &[]))).unwrap();
        look(45, missing()).unwrap();
        look(60, silent()).unwrap();
        look(75, missing()).unwrap();
        look(90, missing()).unwrap();
        assert_eq!(look(105, missing()).unwrap_err().to_string(), "Deleted");
        let other = TopicMetadata {
            id: "two".to_owned(),
            ..topic(1, &[])
        };
        assert_eq!(look(120, Ok(other)).unwrap_err().to_string(), "Recreated");
    }

    fn topic(partitions: i32, settings: &[(&str, &str)]) -> TopicMetadata {
        TopicMetadata {
            id: "one".to_owned(),
            partitions: (0..partitions).collect(),
            settings: settings
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            rights: TopicRight::ALL.into(),
        }
    }

    #[test]
    fn a_change_is_told_once() {
        let sound = topic(
            2,
            &[
                ("retention.ms", "-1"),
                ("unclean.leader.election.enable", "false"),
            ],
        );
        let unclean = topic(
            3,
            &[
                ("retention.ms", "-1"),
                ("unclean.leader.election.enable", "true"),
            ],
        );
        let told = |last, now| changes_in_words("input", "in", last, now);
        assert!(told(None, &sound).is_empty() && told(Some(&sound), &sound).is_empty());
        let lines = told(Some(&sound), &unclean);
        assert_eq!(
            lines,
            [
                "the input topic 'in' has partitions = 3, which was 2".to_owned(),
                format!(
                    "the input topic 'in' has unclean.leader.election.enable = true, which was false{UNCLEAN}"
                ),
            ]
        );
        assert!(told(Some(&unclean), &unclean).is_empty());
        assert_eq!(
            told(None, &unclean).len(),
            1,
            "what endangers records is told at the start too"
        );
    }
}
