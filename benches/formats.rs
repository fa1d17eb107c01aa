//! Messages a second of every form, beside a client that only consumes them: in memory (bytes to batches), and from a broker.
//!
//! `BERNSTREAM_TEST_KAFKA=$(tests/kafka.sh start) cargo bench --bench formats`; `BERNSTREAM_BENCH_MESSAGES` for more or fewer messages.

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_ipc::writer::StreamWriter;
use bernstream_kafka::source::kafka::{BadMessageRule, KafkaSource, KafkaSourceParams};
use bernstream_kafka::source::record::avro::{RecordSchema, RegistrySchemas};
use bernstream_kafka::source::record::{
    BatchBuilder, DeclaredTypes, IdType, MessageType, RecordForm, RecordReader, TimeFormat,
    TopicFormat,
};
use bernstream_kafka::source::{RecordSource, SourceEvent};
use bernstream_release::source::Columns;
use bernstream_release::source::decode::ArrowDecoder;
use bernstream_synopsis::RecordedPositions;
use bernstream_synopsis::clock::Timestamp;
use harness::kafka;
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};
use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};

const PARTITIONS: i32 = 2;
/// Different records, sent over and over.
const RECORDS: usize = 1000;
const ROUNDS: usize = 3;

/// A form with its messages, and how many rows each has.
struct Case {
    name: &'static str,
    format: TopicFormat,
    messages: Vec<Vec<u8>>,
    rows: usize,
}

fn main() {
    let messages: usize = env::var("BERNSTREAM_BENCH_MESSAGES")
        .map_or(1_000_000, |text| text.parse().expect("a number"));
    for case in cases() {
        in_memory(&case);
    }
    let Ok(servers) = env::var("BERNSTREAM_TEST_KAFKA") else {
        return println!("SKIPPED the broker: set BERNSTREAM_TEST_KAFKA=$(tests/kafka.sh start)");
    };
    println!("{messages} messages on {PARTITIONS} partitions, best of {ROUNDS} rounds");
    for case in cases() {
        from_broker(&servers, &case, messages / RECORDS * RECORDS);
    }
}

fn columns() -> Columns {
    Columns {
        time: "time".to_owned(),
        key: vec!["key".to_owned()],
        unit: Some("user".to_owned()),
        values: vec!["value".to_owned()],
        ..Columns::default()
    }
}

fn cases() -> Vec<Case> {
    let declared = DeclaredTypes {
        time: TimeFormat::Microseconds,
        key: [Some(IdType::Text), None, None],
        unit: Some(IdType::Integer),
    };
    let records = |name, form, encode: fn(i64) -> Vec<u8>| Case {
        name,
        format: TopicFormat::Records { form, declared },
        messages: (0..RECORDS as i64).map(encode).collect(),
        rows: 1,
    };
    let schema = r#"{"type": "record", "name": "Row", "fields": [{"name": "time", "type": "long"}, {"name": "note", "type": "string"},
        {"name": "key", "type": "string"}, {"name": "user", "type": "long"}, {"name": "value", "type": "double"}]}"#;
    let schemas = RegistrySchemas(BTreeMap::from([(
        7,
        RecordSchema::parse(schema).expect("a schema"),
    )]));
    let kind = MessageType::parse(descriptor(), "Row").expect("a message type");
    let arrow = |name, rows: usize| Case {
        name,
        format: TopicFormat::Arrow,
        messages: (0..RECORDS / rows)
            .map(|at| arrow((at * rows) as i64, rows as i64))
            .collect(),
        rows,
    };
    vec![
        records("json", RecordForm::Json, json),
        records("avro", RecordForm::Avro(Arc::new(schemas)), avro),
        records("protobuf", RecordForm::Protobuf(Arc::new(kind)), protobuf),
        arrow("arrow, a row a message", 1),
        arrow("arrow, 1,000 rows a message", 1000),
    ]
}

fn in_memory(case: &Case) {
    let columns = columns();
    let rounds = 100;
    let each = |duration: Duration| duration.as_nanos() as f64 / (rounds * RECORDS) as f64;
    let start = Instant::now();
    match &case.format {
        TopicFormat::Records { form, declared } => {
            let mut reader = RecordReader::new(form, &columns, declared).expect("all is declared");
            let mut gather = BatchBuilder::new(&columns);
            for _ in 0..rounds {
                for (offset, message) in case.messages.iter().enumerate() {
                    let row = Some(reader.read(message).expect("a record"));
                    black_box(gather.push_row(0, offset as i64, None, row));
                }
            }
            println!(
                "{}: {:.0} ns a row in memory",
                case.name,
                each(start.elapsed())
            );
        }
        TopicFormat::Arrow => {
            let mut decoder = ArrowDecoder::new(columns.clone());
            for _ in 0..rounds {
                for message in &case.messages {
                    black_box(
                        decoder
                            .decode_message(message, 0, 0, None)
                            .expect("a message"),
                    );
                }
            }
            let kept = each(start.elapsed());
            let start = Instant::now();
            // A new decoder has no schema of an earlier message.
            for _ in 0..rounds {
                for message in &case.messages {
                    let mut decoder = ArrowDecoder::new(columns.clone());
                    black_box(
                        decoder
                            .decode_message(message, 0, 0, None)
                            .expect("a message"),
                    );
                }
            }
            let read = each(start.elapsed());
            println!(
                "{}: {kept:.0} ns a row in memory; {read:.0} where the schema of each message is read",
                case.name
            );
        }
    }
}

fn from_broker(servers: &str, case: &Case, rows: usize) {
    let messages = rows.div_ceil(case.rows);
    let topic = kafka::fresh_input(servers, PARTITIONS);
    send(servers, &topic, case, messages);
    let mut bare = Duration::MAX;
    let mut read = Duration::MAX;
    for _ in 0..ROUNDS {
        bare = bare.min(consume(servers, &topic, messages));
        read = read.min(source(servers, &topic, case, messages));
    }
    println!(
        "{}: {:.0} messages a second bare, {:.0} as batches ({:.0} %); {:.2} million rows a second",
        case.name,
        messages as f64 / bare.as_secs_f64(),
        messages as f64 / read.as_secs_f64(),
        100.0 * bare.as_secs_f64() / read.as_secs_f64(),
        (messages * case.rows) as f64 / read.as_secs_f64() / 1e6,
    );
}

fn send(servers: &str, topic: &str, case: &Case, messages: usize) {
    let mut config = kafka::at(servers).client_config().expect("settings");
    config.set("linger.ms", "50").set("compression.type", "lz4");
    let producer: ThreadedProducer<DefaultProducerContext> = config.create().expect("a producer");
    for (at, payload) in (0..messages).zip(case.messages.iter().cycle()) {
        let mut record = BaseRecord::<(), _>::to(topic)
            .partition(at as i32 % PARTITIONS)
            .payload(payload);
        while let Err((error, unsent)) = producer.send(record) {
            assert!(
                matches!(
                    error,
                    KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)
                ),
                "{error}"
            );
            record = unsent;
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    producer
        .flush(Duration::from_secs(120))
        .expect("the broker takes it");
}

/// Only consumes: what the client itself costs.
fn consume(servers: &str, topic: &str, messages: usize) -> Duration {
    let consumer: BaseConsumer = {
        let mut config = kafka::at(servers).client_config().expect("settings");
        config
            .set("group.id", "bench")
            .set("fetch.queue.backoff.ms", "10");
        config.create().expect("a consumer")
    };
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition, Offset::Beginning)
            .expect("an offset");
    }
    consumer.assign(&list).expect("it is assigned");
    let start = Instant::now();
    let mut bytes = 0;
    for _ in 0..messages {
        let message = consumer
            .poll(Duration::from_secs(60))
            .expect("a message")
            .expect("it is readable");
        bytes += message.payload().map_or(0, <[u8]>::len);
    }
    black_box(bytes);
    start.elapsed()
}

/// As a worker reads: up to batches that windows take.
fn source(servers: &str, topic: &str, case: &Case, messages: usize) -> Duration {
    let params = KafkaSourceParams {
        broker: kafka::at(servers),
        topic: topic.to_owned(),
        clock: kafka::fresh_name("clock"),
        clock_slack: Duration::from_millis(200),
        readers: Some(1),
        trust_producer_time: false,
        format: case.format.clone(),
        on_bad_message: BadMessageRule::Stop,
        skip: BTreeSet::new(),
        lost: Vec::new(),
    };
    let mut source = KafkaSource::open(params, columns(), Timestamp::now).expect("it opens");
    let start = Instant::now();
    source
        .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
        .expect("it goes back");
    let mut rows = 0;
    while rows < messages * case.rows {
        match source
            .next_event(None, Duration::from_secs(1))
            .expect("it reads")
        {
            SourceEvent::Batch(batch) => rows += black_box(batch).times.len(),
            SourceEvent::Idle => {}
            other => panic!("{other:?}"),
        }
    }
    start.elapsed()
}

fn time(at: i64) -> i64 {
    1_735_689_600_000_000 + at
}

fn key(at: i64) -> &'static str {
    if at % 2 == 0 { "Bern" } else { "Bergen" }
}

fn value(at: i64) -> f64 {
    at as f64 / 7.0
}

fn json(at: i64) -> Vec<u8> {
    let time = time(at);
    let key = key(at);
    let value = value(at);
    serde_json::json!({ "time": time, "note": "nothing", "key": key, "user": at, "value": value })
        .to_string()
        .into_bytes()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn avro(at: i64) -> Vec<u8> {
    let long = |number: i64| varint((number << 1) as u64);
    let text = |text: &str| [long(text.len() as i64), text.as_bytes().to_vec()].concat();
    let value = value(at).to_le_bytes().to_vec();
    [
        vec![0, 0, 0, 0, 7],
        long(time(at)),
        text("nothing"),
        text(key(at)),
        long(at),
        value,
    ]
    .concat()
}

fn protobuf(at: i64) -> Vec<u8> {
    let number = |field: u64, number: i64| [varint(field << 3), varint(number as u64)].concat();
    let text = |field: u64, text: &str| {
        [
            varint(field << 3 | 2),
            vec![text.len() as u8],
            text.as_bytes().to_vec(),
        ]
        .concat()
    };
    let value = [varint(5 << 3 | 1), value(at).to_le_bytes().to_vec()].concat();
    [
        number(1, time(at)),
        text(2, "nothing"),
        text(3, key(at)),
        number(4, at),
        value,
    ]
    .concat()
}

fn descriptor() -> Vec<u8> {
    let field = |(number, name, kind): (i32, &str, Type)| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        ..FieldDescriptorProto::default()
    };
    let fields = [
        (1, "time", Type::Int64),
        (2, "note", Type::String),
        (3, "key", Type::String),
        (4, "user", Type::Int64),
        (5, "value", Type::Double),
    ];
    let row = DescriptorProto {
        name: Some("Row".to_owned()),
        field: fields.map(field).to_vec(),
        ..DescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some("row.proto".to_owned()),
        message_type: vec![row],
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}

fn arrow(from: i64, rows: i64) -> Vec<u8> {
    let rows = from..from + rows;
    let columns: [(&str, ArrayRef); 4] = [
        (
            "time",
            Arc::new(
                rows.clone()
                    .map(|at| Some(time(at)))
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("UTC"),
            ),
        ),
        (
            "key",
            Arc::new(
                rows.clone()
                    .map(|at| Some(key(at)))
                    .collect::<StringArray>(),
            ),
        ),
        (
            "user",
            Arc::new(rows.clone().map(Some).collect::<Int64Array>()),
        ),
        (
            "value",
            Arc::new(rows.map(|at| Some(value(at))).collect::<Float64Array>()),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}
