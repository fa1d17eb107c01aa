//! The Kafka source against a real broker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream_kafka::Broker;
use bernstream_kafka::source::kafka::{
    BadMessageRule, KafkaSource, KafkaSourceParams, LostOffsets,
};
use bernstream_kafka::source::record::TopicFormat;
use bernstream_kafka::source::{RecordSource, SourceError, SourceEvent};
use bernstream_kafka::topic;
use bernstream_release::source::{Batch, Columns};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::{Positions, RecordedPositions};
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewPartitions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaResult;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer as _, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};

use crate::harness::{PATIENCE, kafka, wait_for};
use crate::readers::{message_at, origin};

/// Columns of the messages that these tests send.
fn columns() -> Columns {
    Columns {
        time: "time".to_owned(),
        values: vec!["x".to_owned()],
        ..Columns::default()
    }
}

fn message(values: &[f64]) -> Vec<u8> {
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![0; values.len()]));
    let values: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
    let batch = RecordBatch::try_from_iter([("time", times), ("x", values)]).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn params(servers: &str, topic: &str) -> KafkaSourceParams {
    KafkaSourceParams {
        broker: kafka::at(servers),
        topic: topic.to_owned(),
        clock: kafka::fresh_name("clock"),
        clock_slack: Duration::from_millis(200),
        readers: Some(1),
        trust_producer_time: false,
        format: TopicFormat::Arrow,
        on_bad_message: BadMessageRule::Stop,
        skip: BTreeSet::new(),
        lost: vec![],
    }
}

/// A source that stands at the start of the topic.
fn opened(params: KafkaSourceParams) -> KafkaSource {
    let mut source = KafkaSource::open(params, columns(), Timestamp::now).unwrap();
    source
        .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
        .unwrap();
    source
}

type Producer = ThreadedProducer<DefaultProducerContext>;

fn producer(servers: &str, settings: &[(&str, &str)]) -> Producer {
    let mut config = kafka::at(servers).client_config().expect("settings");
    config
        .set("linger.ms", "0")
        .set("message.max.bytes", "20000000");
    settings.iter().for_each(|(name, value)| {
        config.set(*name, *value);
    });
    config.create().unwrap()
}

fn send(producer: &Producer, topic: &str, partition: i32, payload: &[u8]) {
    producer
        .send(
            BaseRecord::<(), _>::to(topic)
                .partition(partition)
                .payload(payload),
        )
        .map_err(|(e, _)| e)
        .unwrap();
}

/// Sends each value as a message of its own and waits until they are stored.
fn send_values(servers: &str, topic: &str, partition: i32, values: &[f64]) {
    let producer = producer(servers, &[]);
    values
        .iter()
        .for_each(|value| send(&producer, topic, partition, &message(&[*value])));
    producer.flush(PATIENCE).unwrap();
}

/// Where the topic ends now.
fn ends_now(source: &mut KafkaSource) -> Positions {
    ends_at(source, Timestamp::now())
}

/// Where the topic ends at `cutoff`, once that is known.
fn ends_at(source: &mut KafkaSource, cutoff: Timestamp) -> Positions {
    wait_for("the ends", String::new, || {
        source.end_offsets(cutoff).unwrap()
    })
}

fn wait_for_partitions(servers: &str, topic: &str, count: usize) {
    let topic = || topic::describe_topic(&kafka::at(servers), topic).ok();
    wait_for("the partitions", String::new, || {
        topic().filter(|topic| topic.partitions.len() == count)
    });
}

/// The next event that is not `Idle`.
fn event(source: &mut KafkaSource, until: Option<&Positions>) -> SourceEvent {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match source
            .next_event(until, Duration::from_millis(100))
            .unwrap()
        {
            SourceEvent::Idle => assert!(Instant::now() < deadline, "nothing happened"),
            event => return event,
        }
    }
}

fn values(batch: &Batch) -> Vec<f64> {
    batch.values[0].values().to_vec()
}

/// Reads up to `ends`: partition, offset and values of each message.
fn read_to(source: &mut KafkaSource, ends: &Positions) -> Vec<(i32, i64, Vec<f64>)> {
    let deadline = Instant::now() + PATIENCE;
    let mut found = vec![];
    while !source.has_reached(ends).unwrap() {
        assert!(Instant::now() < deadline, "{ends:?} was not reached");
        match source
            .next_event(Some(ends), Duration::from_millis(100))
            .unwrap()
        {
            SourceEvent::Batch(batch) => {
                found.push((batch.partition, batch.offset, values(&batch)))
            }
            SourceEvent::Idle | SourceEvent::Skipped { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    found
}

/// Asks the broker for a change and waits until it has been made.
fn administer<T>(
    servers: &str,
    change: impl AsyncFnOnce(&AdminClient<DefaultClientContext>, &AdminOptions) -> KafkaResult<T>,
) -> T {
    let admin = kafka::at(servers)
        .client_config()
        .expect("settings")
        .create()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime
        .block_on(change(&admin, &AdminOptions::new()))
        .unwrap()
}

/// Of a ledger whose newest window ended there.
fn recorded(ends: Positions) -> RecordedPositions {
    RecordedPositions { ends, past: None }
}

fn positions<const N: usize>(ends: [(i32, i64); N]) -> Positions {
    Positions(ends.into_iter().collect())
}

#[test]
fn every_message_comes_once_and_in_order_of_its_partition() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 3);
    let producer = producer(&servers, &[]);
    let mut source = opened(params(&servers, &topic));
    let mut found = vec![];
    // In steps, so that partitions are paused and resumed, and one of them is always ahead of the others.
    for step in 0..5 {
        for number in 0..100 {
            let value = f64::from(step * 100 + number);
            send(
                &producer,
                &topic,
                (number % 7 % 3).min(2),
                &message(&[value]),
            );
        }
        producer.flush(PATIENCE).unwrap();
        let ends = ends_now(&mut source);
        for number in 0..10 {
            send(&producer, &topic, number % 3, &message(&[-1.0]));
        }
        producer.flush(PATIENCE).unwrap();
        found.extend(read_to(&mut source, &ends));
        assert!(source.has_reached(&ends).unwrap());
    }
    let ends = ends_now(&mut source);
    found.extend(read_to(&mut source, &ends));
    for partition in 0..3 {
        let offsets: Vec<i64> = found
            .iter()
            .filter(|(p, ..)| *p == partition)
            .map(|(_, offset, _)| *offset)
            .collect();
        assert_eq!(
            offsets,
            (0..ends.0[&partition]).collect::<Vec<_>>(),
            "partition {partition}"
        );
    }
    let mut values: Vec<f64> = found
        .iter()
        .flat_map(|(.., values)| values.clone())
        .filter(|v| *v >= 0.0)
        .collect();
    values.sort_by(f64::total_cmp);
    assert_eq!(values, (0..500).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn a_partition_that_was_held_before_its_first_message_is_read_later() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 2);
    let mut source = opened(params(&servers, &topic));
    send_values(&servers, &topic, 0, &[0.0]);
    let ends = ends_now(&mut source);
    assert_eq!(ends, positions([(0, 1), (1, 0)]));
    assert_eq!(read_to(&mut source, &ends), [(0, 0, vec![0.0])]);
    send_values(&servers, &topic, 1, &[1.0, 2.0]);
    assert!(
        matches!(
            source
                .next_event(Some(&ends), Duration::from_millis(500))
                .unwrap(),
            SourceEvent::Idle
        ),
        "held"
    );
    let ends = ends_now(&mut source);
    assert_eq!(
        read_to(&mut source, &ends),
        [(1, 0, vec![1.0]), (1, 1, vec![2.0])]
    );
}

#[test]
fn a_message_carries_the_time_at_which_the_broker_took_it() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 1);
    let before = Timestamp::now();
    let old = producer(&servers, &[]);
    old.send(
        BaseRecord::<(), _>::to(&topic)
            .partition(0)
            .payload(&message(&[1.0]))
            .timestamp(1_000),
    )
    .map_err(|(e, _)| e)
    .unwrap();
    old.flush(PATIENCE).unwrap();
    let after = Timestamp::now();
    let SourceEvent::Batch(batch) = event(&mut opened(params(&servers, &topic)), None) else {
        panic!("no batch")
    };
    let time = batch.message_time.unwrap();
    assert!(
        time.plus(Duration::from_millis(1)) > before && time <= after,
        "{before} {time} {after}"
    );
}

#[test]
fn an_open_transaction_is_waited_for_and_an_aborted_one_is_passed() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 1);
    let name = kafka::fresh_name("transaction");
    let transactional = producer(
        &servers,
        &[
            ("transactional.id", &name),
            ("transaction.timeout.ms", "900000"),
        ],
    );
    transactional.init_transactions(PATIENCE).unwrap();
    let mut source = opened(params(&servers, &topic));

    // Offsets: 0 plain, 1 in the transaction, 2 plain, 3 the mark of the commit.
    send_values(&servers, &topic, 0, &[0.0]);
    transactional.begin_transaction().unwrap();
    send(&transactional, &topic, 0, &message(&[1.0]));
    transactional.flush(PATIENCE).unwrap();
    send_values(&servers, &topic, 0, &[2.0]);
    let open = ends_now(&mut source);
    assert_eq!(
        open,
        positions([(0, 3)]),
        "the end counts what is not committed yet"
    );
    let SourceEvent::Batch(first) = event(&mut source, Some(&open)) else {
        panic!("no batch")
    };
    assert_eq!(values(&first), [0.0]);
    for _ in 0..10 {
        assert!(matches!(
            source
                .next_event(Some(&open), Duration::from_millis(100))
                .unwrap(),
            SourceEvent::Idle
        ));
        assert!(
            !source.has_reached(&open).unwrap(),
            "an open transaction is waited for"
        );
    }
    transactional.commit_transaction(PATIENCE).unwrap();
    let found: Vec<_> = read_to(&mut source, &open)
        .into_iter()
        .flat_map(|(.., values)| values)
        .collect();
    assert_eq!(found, [1.0, 2.0]);

    // The log now ends with the mark of a commit; then with aborted records and the mark of an abort.
    let committed = ends_now(&mut source);
    assert_eq!(committed, positions([(0, 4)]));
    assert_eq!(
        read_to(&mut source, &committed),
        [],
        "the position passes the mark of a commit"
    );
    transactional.begin_transaction().unwrap();
    send(&transactional, &topic, 0, &message(&[3.0]));
    send(&transactional, &topic, 0, &message(&[4.0]));
    transactional.flush(PATIENCE).unwrap();
    transactional.abort_transaction(PATIENCE).unwrap();
    let aborted = ends_now(&mut source);
    assert_eq!(aborted, positions([(0, 7)]));
    assert_eq!(
        read_to(&mut source, &aborted),
        [],
        "the position passes what was aborted, unseen"
    );

    // All over again, and from the middle of it.
    let all = read_to(&mut opened(params(&servers, &topic)), &aborted);
    assert_eq!(
        all.into_iter()
            .map(|(_, offset, _)| offset)
            .collect::<Vec<_>>(),
        [0, 1, 2]
    );
    source
        .rewind(Timestamp::now(), &recorded(aborted.clone()))
        .unwrap();
    assert!(read_to(&mut source, &aborted).len() <= 3);
}

#[test]
fn a_topic_stamped_by_producers_is_refused_unless_they_are_trusted() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_topic(
        &servers,
        "created",
        1,
        &[("message.timestamp.type", "CreateTime")],
    );
    let error = KafkaSource::open(params(&servers, &topic), columns(), Timestamp::now)
        .err()
        .unwrap();
    assert!(
        matches!(error, SourceError::ProducerTime { .. }) && !error.is_transient(),
        "{error}"
    );
    let mut source = opened(KafkaSourceParams {
        trust_producer_time: true,
        ..params(&servers, &topic)
    });
    send_values(&servers, &topic, 0, &[1.0]);
    let ends = ends_now(&mut source);
    assert_eq!(read_to(&mut source, &ends).len(), 1);

    let changing = kafka::fresh_input(&servers, 1);
    let mut source = opened(params(&servers, &changing));
    send_values(&servers, &changing, 0, &[1.0]);
    assert!(matches!(event(&mut source, None), SourceEvent::Batch(_)));
    let setting = AlterConfig::new(ResourceSpecifier::Topic(&changing))
        .set("message.timestamp.type", "CreateTime");
    administer(&servers, async |admin, options| {
        admin.alter_configs([&setting], options).await
    });
    let deadline = Instant::now() + PATIENCE;
    let error = loop {
        send_values(&servers, &changing, 0, &[2.0]);
        match source.next_event(None, Duration::from_millis(100)) {
            Ok(_) => assert!(Instant::now() < deadline, "the change was never seen"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, SourceError::ProducerTime { .. }), "{error}");
}

/// A topic that was stamped by producers when its first message was sent, which says that it is from `ahead` later, and was altered then.
fn altered(servers: &str, ahead: Duration) -> String {
    let topic = kafka::fresh_topic(
        servers,
        "altered",
        1,
        &[("message.timestamp.type", "CreateTime")],
    );
    let old = producer(servers, &[]);
    let stamp = Timestamp::now().plus(ahead).micros() / 1000;
    let payload = message(&[1.0]);
    let record = BaseRecord::<(), _>::to(&topic)
        .partition(0)
        .payload(&payload)
        .timestamp(stamp);
    old.send(record).map_err(|(e, _)| e).unwrap();
    old.flush(PATIENCE).unwrap();
    let setting = AlterConfig::new(ResourceSpecifier::Topic(&topic))
        .set("message.timestamp.type", "LogAppendTime");
    administer(servers, async |admin, options| {
        admin.alter_configs([&setting], options).await
    });
    std::thread::sleep(Duration::from_secs(1));
    topic
}

/// With one message more or less that a producer has stamped, and that is given up, a window has the same records of all others.
#[test]
fn a_producers_stamp_from_before_the_topic_was_altered_moves_no_end_of_a_window() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = altered(&servers, Duration::from_secs(600));
    send_values(&servers, &topic, 0, &[2.0]);
    std::thread::sleep(Duration::from_millis(200));
    let cutoff = Timestamp::now();
    // The worker was away then: it looks the end up by time.
    std::thread::sleep(Duration::from_secs(2));
    let lost = vec![LostOffsets {
        partition: 0,
        from: 0,
        to: 1,
    }];
    let mut source = opened(KafkaSourceParams {
        lost,
        ..params(&servers, &topic)
    });
    let ends = ends_at(&mut source, cutoff);
    let read: Vec<_> = read_to(&mut source, &ends)
        .into_iter()
        .map(|(_, _, values)| values)
        .collect();
    assert_eq!(read, [vec![2.0]], "{ends:?}");
    // Where it is not given up, no window closes before reading stops at it.
    let mut source =
        KafkaSource::open(params(&servers, &topic), columns(), Timestamp::now).unwrap();
    let refused = source
        .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
        .unwrap_err();
    assert!(
        matches!(
            refused,
            SourceError::OlderStamp {
                partition: 0,
                offset: 0,
                ..
            }
        ),
        "{refused}"
    );
}

#[test]
fn a_clock_topic_without_append_times_is_refused_and_a_missing_one_is_made() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 1);
    let clock = kafka::fresh_topic(
        &servers,
        "clock",
        1,
        &[("message.timestamp.type", "CreateTime")],
    );
    let wrong = KafkaSourceParams {
        clock,
        ..params(&servers, &topic)
    };
    let error = KafkaSource::open(wrong, columns(), Timestamp::now)
        .err()
        .unwrap();
    let words = "cannot tell the brokers' time: it has message.timestamp.type=CreateTime";
    assert!(
        !error.is_transient() && error.to_string().contains(words),
        "{error}"
    );
    let missing = params(&servers, &topic);
    KafkaSource::open(missing.clone(), columns(), Timestamp::now).unwrap();
    let made = topic::describe_topic(&kafka::at(&servers), &missing.clock).unwrap();
    assert_eq!(
        (
            made.partitions.len(),
            made.settings["message.timestamp.type"].as_str()
        ),
        (1, "LogAppendTime")
    );
}

#[test]
fn a_compacted_topic_is_refused() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let settings = [
        ("message.timestamp.type", "LogAppendTime"),
        ("cleanup.policy", "compact"),
    ];
    let topic = kafka::fresh_topic(&servers, "compacted", 1, &settings);
    let error = KafkaSource::open(params(&servers, &topic), columns(), Timestamp::now)
        .err()
        .unwrap();
    assert!(matches!(error, SourceError::Compacted { .. }), "{error}");
}

#[test]
fn a_new_partition_makes_reading_start_again_with_it() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 1);
    let mut source = opened(params(&servers, &topic));
    send_values(&servers, &topic, 0, &[0.0]);
    assert!(matches!(event(&mut source, None), SourceEvent::Batch(_)));
    administer(&servers, async |admin, options| {
        admin
            .create_partitions([&NewPartitions::new(&topic, 2)], options)
            .await
    });
    let SourceEvent::Reset { why } = event(&mut source, None) else {
        panic!("no reset")
    };
    assert!(
        why.to_string().contains("had 1 partitions and now has 2"),
        "{why}"
    );
    assert!(
        matches!(event(&mut source, None), SourceEvent::Reset { .. }),
        "until reading starts again"
    );
    source
        .rewind(Timestamp::from_micros(0), &recorded(positions([(0, 1)])))
        .unwrap();
    send_values(&servers, &topic, 1, &[1.0]);
    let ends = ends_now(&mut source);
    assert_eq!(ends, positions([(0, 1), (1, 1)]));
    assert_eq!(read_to(&mut source, &ends).len(), 2);
}

#[test]
fn ends_name_a_new_partition_before_it_is_read() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 1);
    let mut source = opened(params(&servers, &topic));
    administer(&servers, async |admin, options| {
        admin
            .create_partitions([&NewPartitions::new(&topic, 2)], options)
            .await
    });
    wait_for_partitions(&servers, &topic, 2);
    let ends = ends_now(&mut source);
    assert_eq!(ends, positions([(0, 0), (1, 0)]));
    assert!(
        !source.has_reached(&ends).unwrap(),
        "a partition that is not read has not been read to its end"
    );
}

#[test]
fn a_topic_created_anew_stops_the_worker() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 1);
    send_values(&servers, &topic, 0, &[0.0, 1.0, 2.0]);
    let mut source = opened(params(&servers, &topic));
    let ends = ends_now(&mut source);
    read_to(&mut source, &ends);
    administer(&servers, async |admin, options| {
        admin.delete_topics(&[&topic], options).await
    });
    let settings = [("message.timestamp.type", "LogAppendTime")];
    wait_for("a new topic", String::new, || {
        topic::create_topic(&kafka::at(&servers), &topic, 1, 1, &settings).ok()
    });
    // More than before, so that offsets alone would not tell.
    send_values(&servers, &topic, 0, &[10.0, 11.0, 12.0, 13.0, 14.0]);

    let deadline = Instant::now() + PATIENCE;
    let error = loop {
        match source.next_event(None, Duration::from_millis(100)) {
            Ok(_) => assert!(Instant::now() < deadline, "the new topic was never noticed"),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, SourceError::Recreated { .. }) && !error.is_transient(),
        "{error}"
    );
    let error = source
        .rewind(Timestamp::from_micros(0), &recorded(ends.clone()))
        .unwrap_err();
    assert!(matches!(error, SourceError::Recreated { .. }), "{error}");

    // A worker that starts again only knows how far it had read.
    let mut later = KafkaSource::open(params(&servers, &topic), columns(), Timestamp::now).unwrap();
    let error = later
        .rewind(Timestamp::from_micros(0), &recorded(positions([(0, 6)])))
        .unwrap_err();
    assert!(
        matches!(error, SourceError::Cut { .. }) && error.is_transient(),
        "the id says that it is the same: {error}"
    );
    let in_full = error.in_full().unwrap();
    assert!(
        in_full.contains("partition 0 ends at offset 5, but was read up to 6"),
        "{in_full}"
    );
    // Of a topic with the same id only a broker can lack a partition that was read.
    let error = later
        .rewind(
            Timestamp::from_micros(0),
            &recorded(positions([(0, 5), (1, 1)])),
        )
        .unwrap_err();
    assert!(
        error.to_string().contains("partition 1 is missing") && error.is_transient(),
        "{error}"
    );
    later
        .rewind(Timestamp::from_micros(0), &recorded(positions([(0, 5)])))
        .unwrap();
}

/// Deletes the messages of partition 0 before `offset`, as retention does.
pub fn delete_before(servers: &str, topic: &str, offset: i64) {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(offset))
        .unwrap();
    administer(servers, async |admin, options| {
        admin.delete_records(&list, options).await
    });
}

#[test]
fn input_that_was_deleted_unread_stops_the_worker_until_the_loss_is_accepted() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 1);
    send_values(&servers, &topic, 0, &[0.0, 1.0, 2.0, 3.0]);
    std::thread::sleep(Duration::from_millis(50));
    let later = Timestamp::now();
    std::thread::sleep(Duration::from_millis(50));
    send_values(&servers, &topic, 0, &[4.0, 5.0]);
    delete_before(&servers, &topic, 3);

    let mut source =
        KafkaSource::open(params(&servers, &topic), columns(), Timestamp::now).unwrap();
    let error = source
        .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
        .unwrap_err();
    let SourceError::Deleted {
        partition: 0,
        from: 0,
        to: 3,
        ..
    } = error
    else {
        panic!("{error}")
    };
    let in_full = error.in_full().expect("where it is, for operators");
    assert!(
        in_full.contains("add { partition = 0, from = 0, to = 3 } to 'lost'"),
        "{in_full}"
    );
    // Message 3 is still there and too old to matter, so nothing that matters is gone.
    source.rewind(later, &RecordedPositions::default()).unwrap();
    let ends = ends_now(&mut source);
    let offsets = |found: Vec<(i32, i64, Vec<f64>)>| {
        found
            .into_iter()
            .map(|(_, offset, _)| offset)
            .collect::<Vec<_>>()
    };
    assert_eq!(offsets(read_to(&mut source, &ends)), [4, 5]);

    let lost = |intervals: &[(i64, i64)]| KafkaSourceParams {
        lost: intervals
            .iter()
            .map(|&(from, to)| LostOffsets {
                partition: 0,
                from,
                to,
            })
            .collect(),
        ..params(&servers, &topic)
    };
    assert_eq!(
        offsets(read_to(&mut opened(lost(&[(2, 3), (0, 2)])), &ends)),
        [3, 4, 5]
    );
    for (intervals, expected) in [(&[(0, 2)][..], 2), (&[(1, 3)], 0), (&[(0, 1), (2, 3)], 1)] {
        let mut source = KafkaSource::open(lost(intervals), columns(), Timestamp::now).unwrap();
        let error = source
            .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
            .unwrap_err();
        let SourceError::Deleted { from, to: 3, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(from, expected, "{intervals:?}");
    }
    // Everything is gone: what it was, nobody knows.
    delete_before(&servers, &topic, 6);
    let error = source
        .rewind(later, &RecordedPositions::default())
        .unwrap_err();
    assert!(
        matches!(error, SourceError::Deleted { from: 0, to: 6, .. }),
        "{error}"
    );
    // A window that closed before it was to be read had all of that, so that nothing is missing; or it had not.
    let closed = |long_before: u64, end| {
        let cutoff = later.minus(Duration::from_secs(long_before));
        RecordedPositions {
            ends: positions([(0, end)]),
            past: Some((cutoff, positions([(0, end)]))),
        }
    };
    for needed in [closed(61, 5), closed(60, 6)] {
        let error = source.rewind(later, &needed).unwrap_err();
        assert!(
            matches!(error, SourceError::Deleted { from: 0, to: 6, .. }),
            "{error}"
        );
    }
    let producers = KafkaSourceParams {
        trust_producer_time: true,
        ..params(&servers, &topic)
    };
    let mut producers = KafkaSource::open(producers, columns(), Timestamp::now).unwrap();
    let error = producers.rewind(later, &closed(61, 6)).unwrap_err();
    assert!(
        matches!(error, SourceError::Deleted { from: 0, to: 6, .. }),
        "{error}"
    );
    source.rewind(later, &closed(61, 6)).unwrap();
    send_values(&servers, &topic, 0, &[6.0]);
    let ends = ends_now(&mut source);
    assert_eq!(offsets(read_to(&mut source, &ends)), [6]);
    // This process has taken these ends itself, so that it need not be that long before.
    let since = Timestamp::now().plus(Duration::from_millis(400));
    std::thread::sleep(Duration::from_millis(500));
    delete_before(&servers, &topic, 7);
    source.rewind(since, &recorded(ends)).unwrap();
    // But nothing of it can be from a window that is still to come.
    source
        .rewind(
            Timestamp::now().plus(Duration::from_secs(60)),
            &RecordedPositions::default(),
        )
        .unwrap();
}

/// By the times that producers give, an early message may come after what was deleted: it shows nothing.
#[test]
fn a_straggler_does_not_hide_what_was_deleted_unread() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let settings = [("message.timestamp.type", "CreateTime")];
    let topic = kafka::fresh_topic(&servers, "straggler", 1, &settings);
    [100, 110, 120, 5, 130]
        .iter()
        .for_each(|sent| message_at(&servers, &topic, 0, (origin(), 0), *sent));
    delete_before(&servers, &topic, 3);
    let since = origin().plus(Duration::from_secs(60));
    let rewound = |end, lost| {
        let params = KafkaSourceParams {
            trust_producer_time: true,
            lost,
            ..params(&servers, &topic)
        };
        let mut source = KafkaSource::open(params, columns(), Timestamp::now).unwrap();
        [
            source.begin_following(&positions([(0, end)])),
            source.rewind(since, &recorded(positions([(0, end)]))),
        ]
    };
    for refused in rewound(1, vec![]) {
        assert!(
            matches!(refused, Err(SourceError::Deleted { from: 0, to: 3, .. })),
            "{refused:?}"
        );
    }
    rewound(
        1,
        vec![LostOffsets {
            partition: 0,
            from: 0,
            to: 3,
        }],
    )
    .into_iter()
    .for_each(Result::unwrap);
    rewound(3, vec![]).into_iter().for_each(Result::unwrap);
}

/// By the worker's clock the cutoff has just passed, and by the brokers' ten minutes ago: what came since is behind the end.
#[test]
fn ends_are_looked_up_by_time_where_the_worker_s_clock_is_behind() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 1);
    send_values(&servers, &topic, 0, &[0.0, 1.0]);
    let behind = || Timestamp::now().minus(Duration::from_secs(600));
    let mut source = KafkaSource::open(params(&servers, &topic), columns(), behind).unwrap();
    source
        .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
        .unwrap();
    assert_eq!(ends_at(&mut source, behind()), positions([(0, 0)]));
    assert_eq!(
        source.past_offsets(
            Timestamp::now().plus(Duration::from_secs(1)),
            &RecordedPositions::default()
        ),
        positions([(0, 0)])
    );
}

#[test]
fn input_that_is_deleted_ahead_of_the_reading_resets_it() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 1);
    send_values(&servers, &topic, 0, &[0.0, 1.0, 2.0, 3.0]);
    let mut source = opened(params(&servers, &topic));
    // Held at offset 1, so that the rest is not fetched yet.
    let until = positions([(0, 1)]);
    assert_eq!(read_to(&mut source, &until).len(), 1);
    assert!(matches!(
        source
            .next_event(Some(&until), Duration::from_millis(300))
            .unwrap(),
        SourceEvent::Idle
    ));
    delete_before(&servers, &topic, 3);
    let SourceEvent::Reset { why } = event(&mut source, None) else {
        panic!("no reset")
    };
    assert!(why.to_string().contains("were missed"), "{why}");
    let error = source
        .rewind(Timestamp::from_micros(0), &recorded(until.clone()))
        .unwrap_err();
    assert!(
        matches!(error, SourceError::Deleted { from: 0, to: 3, .. }),
        "{error}"
    );
}

#[test]
fn reading_stops_at_a_broken_message_and_goes_on_once_it_is_listed() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 2);
    let sender = producer(&servers, &[]);
    send(&sender, &topic, 0, &message(&[0.0]));
    send(&sender, &topic, 0, &message(&[1.0])[..100]);
    send(&sender, &topic, 0, &message(&[2.0]));
    sender
        .send(BaseRecord::<(), [u8]>::to(&topic).partition(0))
        .map_err(|(e, _)| e)
        .unwrap();
    send(&sender, &topic, 0, b"not Arrow");
    send(&sender, &topic, 0, &message(&[5.0]));
    for value in 0..50 {
        send(&sender, &topic, 1, &message(&[f64::from(value)]));
    }
    sender.flush(PATIENCE).unwrap();

    let mut source = opened(params(&servers, &topic));
    let ends = ends_now(&mut source);
    let mut good = vec![];
    let mut stuck = vec![];
    while stuck.len() < 5 {
        match event(&mut source, Some(&ends)) {
            SourceEvent::Batch(batch) => good.push((batch.partition, batch.offset)),
            SourceEvent::Stuck { why } => stuck.push(why),
            other => panic!("{other:?}"),
        }
    }
    let expected = format!(
        "the message at offset 1 of partition 0 of topic '{topic}' is broken: it ends within the metadata of an Arrow message; \
         to continue without it, add {{ partition = 0, offset = 1 }} to 'skip'"
    );
    assert!(
        stuck.iter().all(|why| why.in_full() == expected),
        "{stuck:?}"
    );
    let words = stuck[0].to_string();
    assert!(
        words.contains(&format!(
            "a message of partition 0 of topic '{topic}' is broken: it ends"
        )),
        "{words}"
    );
    assert!(
        !words.contains("offset 1") && words.contains("detail = \"operator\""),
        "{words}"
    );
    good.sort_unstable();
    let others: Vec<(i32, i64)> = (0..50).map(|offset| (1, offset)).collect();
    assert_eq!(
        good,
        [&[(0, 0)], others.as_slice()].concat(),
        "the other partition is read to its end"
    );
    assert!(!source.has_reached(&ends).unwrap());
    assert!(
        source.has_reached(&positions([(0, 1), (1, 50)])).unwrap()
            && !source.has_reached(&positions([(0, 2)])).unwrap()
    );

    let stops = |mut source: KafkaSource| {
        let mut stuck = Vec::new();
        while stuck.len() < 3 {
            if let SourceEvent::Stuck { why } = event(&mut source, Some(&ends)) {
                stuck.push(why.in_full().to_owned());
            }
        }
        assert!(stuck.iter().all(|why| *why == stuck[0]), "{stuck:?}");
        stuck.swap_remove(0)
    };
    let listed = KafkaSourceParams {
        skip: BTreeSet::from([(0, 1)]),
        ..params(&servers, &topic)
    };
    let why = stops(opened(listed));
    assert!(
        why.contains("offset 3 of partition 0") && why.contains("is broken: it is empty"),
        "{why}"
    );

    // Operators are told of all that are broken, at once, and otherwise of nothing more.
    let for_operators = |params: KafkaSourceParams, columns: Columns| {
        let mut source = KafkaSource::open(params, columns, Timestamp::now)
            .unwrap()
            .listing_broken(true);
        source
            .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
            .unwrap();
        source
    };
    let why = stops(for_operators(params(&servers, &topic), columns()));
    assert!(why.starts_with(&expected), "{why}");
    assert!(why.contains("; of the next messages, 3 of "), "{why}");
    for offset in [1, 3, 4] {
        assert!(
            why.contains(&format!("{{ partition = 0, offset = {offset} }}")),
            "{why}"
        );
    }
    assert!(
        why.contains(
            "offset 3 of partition 0: it is empty; offset 4 of partition 0: it is not an Arrow"
        ),
        "{why}"
    );
    let alone = KafkaSourceParams {
        skip: BTreeSet::from([(0, 1), (0, 3)]),
        ..params(&servers, &topic)
    };
    assert!(
        !stops(for_operators(alone, columns())).contains("of the next messages"),
        "one is told as it always was"
    );
    // Where nothing can be read, it is the configuration that does not fit.
    let foreign = kafka::fresh_topic(
        &servers,
        "foreign",
        1,
        &[("message.timestamp.type", "LogAppendTime")],
    );
    let foreigner = producer(&servers, &[]);
    for _ in 0..2 {
        send(&foreigner, &foreign, 0, b"not Arrow");
    }
    foreigner.flush(PATIENCE).unwrap();
    let mut source = for_operators(params(&servers, &foreign), columns());
    let why = loop {
        if let SourceEvent::Stuck { why } = event(&mut source, None) {
            break why.in_full().to_owned();
        }
    };
    assert!(
        why.starts_with("correct `format` first: no message fits it"),
        "{why}"
    );
    assert!(
        why.contains("if it is only they that are wrong: the message"),
        "{why}"
    );

    // A column that no message has stops nothing: one record can decide which columns a message has.
    let misspelt = Columns {
        values: vec!["delay".to_owned()],
        ..columns()
    };
    let mut source = KafkaSource::open(params(&servers, &topic), misspelt, Timestamp::now).unwrap();
    source
        .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
        .unwrap();
    let batch = loop {
        if let SourceEvent::Batch(batch) = event(&mut source, Some(&ends)) {
            break batch;
        }
    };
    assert!(!batch.times.is_empty() && batch.values[0].iter().all(|value| value.is_none()));
    let unread: Vec<&str> = batch
        .found
        .iter()
        .flat_map(|found| found.unread_columns())
        .map(|column| column.name())
        .collect();
    assert_eq!(unread, ["delay"], "the metrics say it to operators");

    let skipping = KafkaSourceParams {
        on_bad_message: BadMessageRule::Skip,
        ..params(&servers, &topic)
    };
    let all = KafkaSourceParams {
        skip: BTreeSet::from([(0, 1), (0, 3), (0, 4)]),
        ..params(&servers, &topic)
    };
    for params in [skipping, all] {
        let found = read_to(&mut opened(params), &ends);
        let offsets: Vec<i64> = found
            .iter()
            .filter(|(p, ..)| *p == 0)
            .map(|(_, offset, _)| *offset)
            .collect();
        assert_eq!((offsets, found.len()), (vec![0, 2, 5], 53));
    }
}

#[test]
fn messages_may_be_large_and_compressed_by_kafka() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let settings = [
        ("message.timestamp.type", "LogAppendTime"),
        ("max.message.bytes", "20000000"),
    ];
    let topic = kafka::fresh_topic(&servers, "large", 1, &settings);
    let values: Vec<f64> = (0..400_000).map(f64::from).collect();
    for codec in ["none", "lz4", "zstd", "gzip", "snappy"] {
        let producer = producer(&servers, &[("compression.type", codec)]);
        send(&producer, &topic, 0, &message(&values));
        producer.flush(PATIENCE).unwrap();
    }
    let mut source = opened(params(&servers, &topic));
    let ends = ends_now(&mut source);
    let found = read_to(&mut source, &ends);
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|(.., found)| *found == values));
}

/// The clock of the next test, in microseconds: it goes on when the test says so.
static CLOCK: AtomicI64 = AtomicI64::new(0);

fn stopped_clock() -> Timestamp {
    Timestamp::from_micros(CLOCK.load(Relaxed))
}

#[test]
fn ends_are_taken_on_time_though_nobody_reads() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 2);
    CLOCK.store(Timestamp::now().micros(), Relaxed);
    // Only where producers are trusted is the worker's clock the one that counts.
    let params = KafkaSourceParams {
        trust_producer_time: true,
        ..params(&servers, &topic)
    };
    let mut source = KafkaSource::open(params, columns(), stopped_clock).unwrap();
    source
        .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
        .unwrap();
    send_values(&servers, &topic, 0, &[0.0, 1.0]);
    let cutoffs = [1, 2].map(|seconds| stopped_clock().plus(Duration::from_secs(seconds)));
    for cutoff in cutoffs {
        assert_eq!(
            source.end_offsets(cutoff).unwrap(),
            None,
            "the cutoff is still to come"
        );
    }
    send_values(&servers, &topic, 1, &[2.0]);
    // Past the first cutoff and its slack, before the second.
    CLOCK.fetch_add(1_200_000, Relaxed);
    assert_eq!(
        ends_at(&mut source, cutoffs[0]),
        positions([(0, 2), (1, 1)])
    );
    send_values(&servers, &topic, 0, &[3.0]);
    assert_eq!(
        source.end_offsets(cutoffs[1]).unwrap(),
        None,
        "the second is still to come"
    );
    CLOCK.fetch_add(1_000_000, Relaxed);
    assert_eq!(
        ends_at(&mut source, cutoffs[1]),
        positions([(0, 3), (1, 1)])
    );
    send_values(&servers, &topic, 0, &[4.0]);
    assert_eq!(
        ends_at(&mut source, cutoffs[0]),
        positions([(0, 2), (1, 1)]),
        "what was taken stays"
    );
    assert_eq!(
        ends_at(&mut source, cutoffs[1]),
        positions([(0, 3), (1, 1)]),
        "what was taken stays"
    );
}

#[test]
fn ends_of_cuts_that_passed_while_the_worker_was_away_are_looked_up_by_time() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let stamped = kafka::fresh_input(&servers, 2);
    let trusted = kafka::fresh_topic(&servers, "trusted", 2, &[]);
    for topic in [&stamped, &trusted] {
        send_values(&servers, topic, 0, &[0.0, 1.0]);
        send_values(&servers, topic, 1, &[2.0]);
    }
    std::thread::sleep(Duration::from_millis(100));
    let cutoff = Timestamp::now();
    std::thread::sleep(Duration::from_millis(1_500));
    for topic in [&stamped, &trusted] {
        send_values(&servers, topic, 0, &[3.0, 4.0]);
    }
    assert_eq!(
        ends_at(&mut opened(params(&servers, &stamped)), cutoff),
        positions([(0, 2), (1, 1)])
    );
    // Producers may have bent the time, so all there is has to be read.
    let params = KafkaSourceParams {
        trust_producer_time: true,
        ..params(&servers, &trusted)
    };
    assert_eq!(
        ends_at(&mut opened(params), cutoff),
        positions([(0, 4), (1, 1)])
    );
}

#[test]
fn reading_starts_at_the_first_message_that_is_late_enough() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = kafka::fresh_input(&servers, 2);
    send_values(&servers, &topic, 0, &[0.0, 1.0]);
    send_values(&servers, &topic, 1, &[10.0]);
    std::thread::sleep(Duration::from_millis(50));
    let since = Timestamp::now();
    send_values(&servers, &topic, 0, &[2.0, 3.0]);
    let mut source =
        KafkaSource::open(params(&servers, &topic), columns(), Timestamp::now).unwrap();
    source.rewind(since, &RecordedPositions::default()).unwrap();
    send_values(&servers, &topic, 1, &[11.0]);
    let ends = ends_now(&mut source);
    let mut found: Vec<f64> = read_to(&mut source, &ends)
        .into_iter()
        .flat_map(|(.., values)| values)
        .collect();
    found.sort_by(f64::total_cmp);
    assert_eq!(
        found,
        [2.0, 3.0, 10.0, 11.0],
        "a partition without a late enough message is read from its start"
    );
}

#[test]
fn a_topic_is_described_by_its_id_partitions_and_settings() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let broker = kafka::at(&servers);
    let name = kafka::fresh_input(&servers, 3);
    let first = topic::describe_topic(&broker, &name).unwrap();
    assert_eq!(first.partitions, [0, 1, 2]);
    assert_eq!(first.settings["message.timestamp.type"], "LogAppendTime");
    assert_eq!(first.settings["retention.ms"], "-1");
    assert_eq!(
        first.settings["cleanup.policy"], "delete",
        "defaults are listed too"
    );
    assert_eq!(first.id.len(), 32);
    assert_ne!(first.id, "0".repeat(32));
    let other = topic::describe_topic(&broker, &kafka::fresh_input(&servers, 3)).unwrap();
    assert_ne!(first.id, other.id);
    assert_eq!(first, topic::describe_topic(&broker, &name).unwrap());
}

#[test]
fn asking_for_a_topic_does_not_create_it() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let broker = kafka::at(&servers);
    let name = kafka::fresh_name("never");
    for _ in 0..2 {
        let error = topic::describe_topic(&broker, &name).unwrap_err();
        assert!(
            matches!(error, bernstream_kafka::ClusterError::NoTopic { .. }),
            "{error}"
        );
    }
    topic::create_topic(&broker, &name, 1, 1, &[]).unwrap();
    let error = topic::create_topic(&broker, &name, 1, 1, &[]).unwrap_err();
    assert!(
        !error.is_transient() && error.to_string().contains("already exists"),
        "{error}"
    );
}

mod long {
    use super::*;

    #[test]
    fn a_broker_that_is_down_is_waited_for() {
        // The mock cluster, since it can be taken down alone.
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("mocked", 1, 1).unwrap();
        let servers = cluster.bootstrap_servers();
        let broker = Broker::mock_cluster(&servers);
        let mut source = opened(KafkaSourceParams {
            broker,
            trust_producer_time: true,
            ..params(&servers, "mocked")
        });
        assert_eq!(
            (
                source.topic().id.as_str(),
                source.topic().partitions.as_slice()
            ),
            ("mock", &[0][..])
        );
        send_values(&servers, "mocked", 0, &[0.0]);
        assert!(matches!(event(&mut source, None), SourceEvent::Batch(_)));
        assert!(source.is_connected());

        cluster.broker_down(1).unwrap();
        let deadline = Instant::now() + PATIENCE;
        while source.is_connected() {
            assert!(
                Instant::now() < deadline,
                "the broker's absence was never noticed"
            );
            assert!(matches!(
                source.next_event(None, Duration::from_millis(200)).unwrap(),
                SourceEvent::Idle
            ));
        }
        let mut other = KafkaSource::open(
            KafkaSourceParams {
                trust_producer_time: true,
                ..params(&servers, "mocked")
            },
            columns(),
            Timestamp::now,
        );
        assert!(
            other
                .as_mut()
                .err()
                .is_some_and(|error| error.is_transient())
        );
        let ends = Timestamp::now();
        assert_eq!(source.end_offsets(ends).unwrap(), None);

        cluster.broker_up(1).unwrap();
        send_values(&servers, "mocked", 0, &[1.0]);
        let SourceEvent::Batch(batch) = event(&mut source, None) else {
            panic!("no batch")
        };
        assert_eq!((batch.offset, values(&batch)), (1, vec![1.0]));
        wait_for("the ends", String::new, || {
            source
                .end_offsets(ends)
                .unwrap()
                .filter(|_| source.is_connected())
        });
    }
}
