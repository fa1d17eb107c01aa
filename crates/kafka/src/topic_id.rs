//! What rdkafka does not expose of a topic: its id, and what the user of the connection may do with it.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::time::{Duration, Instant};

use rdkafka::bindings as c;
use rdkafka::client::Client;
use rdkafka::error::KafkaError;

use crate::broker::Broker;
use crate::error::ClusterError;
use crate::right::TopicRight;

/// Facts that brokers tell of a topic besides its settings.
pub(crate) struct TopicDescription {
    pub id: String,
    /// Number of its partitions.
    pub partitions: usize,
    pub rights: BTreeSet<TopicRight>,
}

/// Id, partitions and rights of a topic, by a DescribeTopics request of librdkafka. A topic of a mock cluster counts as one partition, with
/// which everything is allowed.
///
/// # Errors
///
/// If the topic does not exist, or the cluster does not answer or refuses.
#[allow(unsafe_code)]
pub(crate) fn describe_partitions<C: rdkafka::ClientContext>(
    broker: &Broker,
    client: &Client<C>,
    topic: &str,
    timeout: Duration,
) -> Result<TopicDescription, ClusterError> {
    if broker.is_mock {
        return Ok(TopicDescription {
            id: "mock".to_owned(),
            partitions: 1,
            rights: TopicRight::ALL.into(),
        });
    }
    let begun = Instant::now();
    let metadata = client
        .fetch_metadata(Some(topic), timeout)
        .map_err(|error| broker.error_about(topic, &error))?;
    // A cluster of which no broker is in service describes nothing, and librdkafka waits for it, whatever comes meanwhile.
    if metadata.brokers().is_empty() {
        let why = format!("no broker is in service, says the one that answers for topic '{topic}'");
        return Err(ClusterError::Unavailable {
            servers: broker.servers.clone(),
            why,
        });
    }
    let timeout = timeout.saturating_sub(begun.elapsed());
    let name = CString::new(topic)
        .map_err(|_| broker.refused_request(topic, "the name contains a NUL byte"))?;
    let timeout = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY. `client` is borrowed for the whole call, so its handle is alive. `name` outlives `names`, and librdkafka
    // copies it. The queue, the collection, the options and the event are made here, freed here, once each, on the one
    // path through this block, and never shared. `rd_kafka_queue_poll` gives null (handled by `read_event` and below) or an event that
    // we own, which `read_event` reads before it is freed. That of an option that is not set is null. An event that comes after
    // the poll gave up is freed with the queue.
    let answer = unsafe {
        let handle = client.native_ptr();
        let queue = c::rd_kafka_queue_new(handle);
        let mut names = [name.as_ptr()];
        let topics = c::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), names.len());
        let options = c::rd_kafka_AdminOptions_new(
            handle,
            c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS,
        );
        c::rd_kafka_AdminOptions_set_request_timeout(options, timeout, std::ptr::null_mut(), 0);
        // An error says that the option is not known, and then no operations are listed.
        c::rd_kafka_error_destroy(c::rd_kafka_AdminOptions_set_include_authorized_operations(
            options, 1,
        ));
        c::rd_kafka_DescribeTopics(handle, topics, options, queue);
        // Longer than the timeout of the request, so that its own error arrives first.
        let event = c::rd_kafka_queue_poll(queue, timeout.saturating_add(1000));
        let answer = read_event(event);
        if !event.is_null() {
            c::rd_kafka_event_destroy(event);
        }
        c::rd_kafka_AdminOptions_destroy(options);
        c::rd_kafka_TopicCollection_destroy(topics);
        c::rd_kafka_queue_destroy(queue);
        answer
    };
    answer.map_err(|code| broker.error_about(topic, &KafkaError::AdminOp(code.into())))
}

/// Reads the answer to a DescribeTopics request for one topic.
///
/// # Safety
///
/// `event` is null, if no answer has come, or an event that is alive and not shared.
#[allow(unsafe_code)]
unsafe fn read_event(
    event: *mut c::rd_kafka_event_t,
) -> Result<TopicDescription, c::rd_kafka_resp_err_t> {
    if event.is_null() {
        return Err(c::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__TIMED_OUT);
    }
    // SAFETY. The event is alive. `rd_kafka_event_DescribeTopics_result` gives null (handled) for any other kind of event. The
    // result belongs to the event. `found` has `count` valid elements, of which the first is read only if there is one.
    unsafe {
        let error = c::rd_kafka_event_error(event);
        if error != c::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return Err(error);
        }
        let result = c::rd_kafka_event_DescribeTopics_result(event);
        let mut count = 0;
        let found = if result.is_null() {
            std::ptr::null_mut()
        } else {
            c::rd_kafka_DescribeTopics_result_topics(result, &mut count)
        };
        if found.is_null() || count == 0 {
            return Err(c::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        }
        read_description(*found)
    }
}

/// Copies what is needed of a description of librdkafka.
///
/// # Safety
///
/// `found` is a description whose event is alive.
#[allow(unsafe_code)]
unsafe fn read_description(
    found: *const c::rd_kafka_TopicDescription_t,
) -> Result<TopicDescription, c::rd_kafka_resp_err_t> {
    // SAFETY. The description's id and error pointers are valid as long as its event is, and a null error is handled. Of its
    // partitions only the number is read. Its operations are `allowed` C enums, which are read as integers, for a newer broker may
    // list one that has no name here; of none the pointer is not used.
    unsafe {
        let error = c::rd_kafka_TopicDescription_error(found);
        if !error.is_null() {
            return Err(c::rd_kafka_error_code(error));
        }
        let uuid = c::rd_kafka_TopicDescription_topic_id(found);
        let high = c::rd_kafka_Uuid_most_significant_bits(uuid);
        let low = c::rd_kafka_Uuid_least_significant_bits(uuid);
        let mut partitions = 0;
        c::rd_kafka_TopicDescription_partitions(found, &mut partitions);
        let mut allowed = 0;
        let operations = c::rd_kafka_TopicDescription_authorized_operations(found, &mut allowed);
        let rights = match operations.is_null() {
            true => TopicRight::from_operations(&[]),
            false => TopicRight::from_operations(std::slice::from_raw_parts(
                operations.cast::<u32>(),
                allowed,
            )),
        };
        Ok(TopicDescription {
            id: format!("{high:016x}{low:016x}"),
            partitions,
            rights,
        })
    }
}
