//! What a topic is: its id, partitions and settings.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::bindings as c;
use rdkafka::client::{Client, DefaultClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::Metadata;

use crate::source::Error;
pub use crate::source::broker::Broker;
use crate::source::broker::{Ear, PATIENCE};

/// A topic as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Changes when the topic is deleted and created anew; all zeros from a broker that has no ids.
    pub id: String,
    /// The numbers of its partitions, ascending.
    pub partitions: Vec<i32>,
    /// Every setting with its value in force, defaults included; empty for a mock cluster.
    pub settings: BTreeMap<String, String>,
}

/// Asks for id, partitions and settings; never creates the topic.
pub fn describe(broker: &Broker, topic: &str) -> Result<Topic, Error> {
    let client = broker.consumer(&[]).map_err(|e| broker.failed(topic, &e))?;
    let partitions = partitions(broker, &client, topic)?;
    let id = id(broker, client.client(), topic)?;
    let settings = if broker.is_mock { BTreeMap::new() } else { settings(broker, topic)? };
    Ok(Topic { id, partitions, settings })
}

/// Creates a topic and waits until the brokers show it; one that exists already is an error.
pub fn create(
    broker: &Broker,
    topic: &str,
    partitions: i32,
    replication: i32,
    settings: &[(&str, &str)],
) -> Result<(), Error> {
    let client = broker.consumer(&[]).map_err(|e| broker.failed(topic, &e))?;
    // An administration request does not tell why nobody answers.
    metadata(broker, &client, topic, PATIENCE)?;
    let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(replication));
    let new = settings.iter().fold(new, |new, (name, value)| new.set(name, value));
    let results = administer(broker, topic, async |admin, options| admin.create_topics([&new], &options).await)?;
    if let Some(Err((_, code))) = results.into_iter().next() {
        return Err(match code {
            RDKafkaErrorCode::TopicAlreadyExists => broker.refused(topic, "it exists already"),
            RDKafkaErrorCode::InvalidReplicationFactor => broker.refused(
                topic,
                &format!(
                    "{replication} replicas are more than it has brokers; for a trial on one broker set \
                     witness_min_insync_replicas = 1 in [output.kafka]"
                ),
            ),
            code => broker.failed(topic, &KafkaError::AdminOp(code)),
        });
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let shown = self::partitions(broker, &client, topic).and_then(|numbers| {
            id(broker, client.client(), topic)?;
            // A leader that is not elected yet would refuse the first question.
            numbers.iter().try_for_each(|number| {
                client.fetch_watermarks(topic, *number, PATIENCE).map(drop).map_err(|e| broker.failed(topic, &e))
            })
        });
        match shown {
            Err(Error::NoTopic { .. } | Error::Unavailable { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            shown => return shown,
        }
    }
}

/// By a client that reads nothing.
fn metadata(broker: &Broker, client: &BaseConsumer<Ear>, topic: &str, patience: Duration) -> Result<Metadata, Error> {
    let asked = broker.ask(client, patience, |patience| client.fetch_metadata(Some(topic), patience));
    asked.map_err(|e| broker.failed(topic, &e))
}

/// The partitions of a topic, ascending.
pub(crate) fn partitions(broker: &Broker, client: &BaseConsumer<Ear>, topic: &str) -> Result<Vec<i32>, Error> {
    partitions_within(broker, client, topic, PATIENCE)
}

/// The partitions of a topic, ascending, where the broker answers within `patience`.
pub(crate) fn partitions_within(
    broker: &Broker,
    client: &BaseConsumer<Ear>,
    topic: &str,
    patience: Duration,
) -> Result<Vec<i32>, Error> {
    numbers(broker, topic, &metadata(broker, client, topic, patience)?)
}

/// The partitions of a topic, ascending, asked by a client that reads it.
pub(crate) fn partitions_while_reading(
    broker: &Broker,
    client: &BaseConsumer<Ear>,
    topic: &str,
    patience: Duration,
) -> Result<Vec<i32>, Error> {
    let metadata = client.fetch_metadata(Some(topic), patience).map_err(|e| broker.failed(topic, &e))?;
    numbers(broker, topic, &metadata)
}

fn numbers(broker: &Broker, topic: &str, metadata: &Metadata) -> Result<Vec<i32>, Error> {
    let found = metadata.topics().iter().find(|t| t.name() == topic);
    if let Some(error) = found.and_then(|t| t.error()) {
        return Err(broker.failed(topic, &KafkaError::MetadataFetch(error.into())));
    }
    let mut partitions: Vec<i32> = found.iter().flat_map(|t| t.partitions()).map(|p| p.id()).collect();
    partitions.sort_unstable();
    if partitions.is_empty() {
        return Err(Error::NoTopic { topic: topic.to_owned(), servers: broker.servers.clone() });
    }
    Ok(partitions)
}

fn settings(broker: &Broker, topic: &str) -> Result<BTreeMap<String, String>, Error> {
    let resource = ResourceSpecifier::Topic(topic);
    let found = administer(broker, topic, async |admin, options| admin.describe_configs([&resource], &options).await)?;
    let mut settings = BTreeMap::new();
    for resource in found {
        let resource = resource.map_err(|code| broker.failed(topic, &KafkaError::AdminOp(code)))?;
        settings.extend(resource.entries.into_iter().filter_map(|e| Some((e.name, e.value?))));
    }
    Ok(settings)
}

/// Waits for one administration request.
fn administer<T>(
    broker: &Broker,
    topic: &str,
    request: impl AsyncFnOnce(&AdminClient<DefaultClientContext>, AdminOptions) -> Result<T, KafkaError>,
) -> Result<T, Error> {
    let admin = broker.client_config().and_then(|config| config.create());
    let admin: AdminClient<_> = admin.map_err(|e| broker.failed(topic, &e))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|e| Error::Unavailable { servers: broker.servers.clone(), why: e.to_string() })?;
    let options = AdminOptions::new().request_timeout(Some(PATIENCE)).operation_timeout(Some(PATIENCE));
    let answer = runtime.block_on(request(&admin, options));
    // Closing takes a tenth of a second, which nobody needs to wait for.
    std::thread::spawn(move || drop(admin));
    answer.map_err(|e| broker.failed(topic, &e))
}

/// The id of a topic, which rdkafka does not show: asked of librdkafka itself.
#[allow(unsafe_code)]
pub(crate) fn id<C: rdkafka::ClientContext>(broker: &Broker, client: &Client<C>, topic: &str) -> Result<String, Error> {
    if broker.is_mock {
        return Ok("mock".to_owned());
    }
    let name = CString::new(topic).map_err(|_| broker.refused(topic, "the name holds a zero byte"))?;
    let patience = i32::try_from(PATIENCE.as_millis()).unwrap_or(i32::MAX);
    // SAFETY. `client` is borrowed for the whole call, so its handle is alive. `name` outlives `names`, and librdkafka
    // copies it. The queue, the collection, the options and the event are made here, freed here, once each, on the one
    // path through this block, and never shared. `rd_kafka_queue_poll` gives null (handled) or an event that we own.
    // `rd_kafka_event_DescribeTopics_result` gives null (handled) for any other kind of event. Results and strings
    // belong to the event: they are read, and copied, before it is freed. `found` has `count` valid elements, of which
    // the first is read only if there is one; a description's id and error pointers are valid as long as it is, and a
    // null error is handled. An event that comes after the poll gave up is freed with the queue.
    unsafe {
        let handle = client.native_ptr();
        let queue = c::rd_kafka_queue_new(handle);
        let mut names = [name.as_ptr()];
        let topics = c::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), names.len());
        let options = c::rd_kafka_AdminOptions_new(handle, c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS);
        c::rd_kafka_AdminOptions_set_request_timeout(options, patience, std::ptr::null_mut(), 0);
        c::rd_kafka_DescribeTopics(handle, topics, options, queue);
        // Longer than the request's own limit, so that librdkafka's own reason comes first.
        let event = c::rd_kafka_queue_poll(queue, patience.saturating_add(1000));
        let answer = if event.is_null() {
            Err(c::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__TIMED_OUT)
        } else if c::rd_kafka_event_error(event) != c::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            Err(c::rd_kafka_event_error(event))
        } else {
            let result = c::rd_kafka_event_DescribeTopics_result(event);
            let mut count = 0;
            let found = if result.is_null() {
                std::ptr::null_mut()
            } else {
                c::rd_kafka_DescribeTopics_result_topics(result, &mut count)
            };
            if found.is_null() || count == 0 {
                Err(c::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
            } else {
                let error = c::rd_kafka_TopicDescription_error(*found);
                if error.is_null() {
                    let uuid = c::rd_kafka_TopicDescription_topic_id(*found);
                    Ok((c::rd_kafka_Uuid_most_significant_bits(uuid), c::rd_kafka_Uuid_least_significant_bits(uuid)))
                } else {
                    Err(c::rd_kafka_error_code(error))
                }
            }
        };
        if !event.is_null() {
            c::rd_kafka_event_destroy(event);
        }
        c::rd_kafka_AdminOptions_destroy(options);
        c::rd_kafka_TopicCollection_destroy(topics);
        c::rd_kafka_queue_destroy(queue);
        match answer {
            Ok((high, low)) => Ok(format!("{high:016x}{low:016x}")),
            Err(code) => Err(broker.failed(topic, &KafkaError::AdminOp(code.into()))),
        }
    }
}
