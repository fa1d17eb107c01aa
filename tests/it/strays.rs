//! What somebody else writes to the topics of a ledger: void for everyone and for ever, and told; what is lost there is never taken for it.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use bernstream_kafka::ledger::budget::topic::BudgetTopic;
use bernstream_kafka::ledger::log;
use bernstream_kafka::ledger::log::KafkaLog;
use bernstream_kafka::ledger::witness::kafka::{KafkaWitness, OrderedTopicParams};
use bernstream_kafka::ordered::PowerLoss;
use bernstream_kafka::sink;
use bernstream_kafka::sink::Sink;
use bernstream_kafka::sink::kafka::KafkaSink;
use bernstream_kafka::topic;
use bernstream_ledger::budget::error::BudgetError;
use bernstream_ledger::budget::fold::RecordRejection;
use bernstream_ledger::log::{Log, LogReader};
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_synopsis::clock::Timestamp;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};

use crate::harness::kafka::{self, Own};
use crate::harness::running::Running;
use crate::harness::setup::Setup;
use crate::harness::{PATIENCE, wait_for};

type Writer = ThreadedProducer<DefaultProducerContext>;

fn params(servers: &str) -> OrderedTopicParams {
    let topic = OrderedTopicParams {
        broker: kafka::at(servers),
        topic: kafka::fresh_name("strays"),
        min_insync_replicas: 1,
        power_loss: PowerLoss::Together,
    };
    KafkaWitness::create(&topic, 1).expect("it is created");
    topic
}

fn a_claim(previous: Option<&WitnessClaim>, sequence: u64) -> WitnessClaim {
    let head = format!(
        r#"{{"sequence":{sequence},"digest":"{:064x}"}}"#,
        sequence + 77
    );
    let head = serde_json::from_str(&head).expect("a head");
    let previous = previous.map(|claim| claim.head);
    WitnessClaim {
        previous,
        head,
        last_block_end: Timestamp::from_micros(0),
        maker: None,
    }
}

/// Somebody else who writes to the topic.
fn writer(topic: &OrderedTopicParams, settings: &[(&str, &str)]) -> Writer {
    let mut config = topic.broker.client_config().expect("settings");
    for (name, value) in settings {
        config.set(*name, *value);
    }
    config.create().expect("a producer")
}

/// One who writes in transactions, the first of which has begun.
fn transaction(topic: &OrderedTopicParams, id: &str) -> Writer {
    let id = format!("{}-{id}", topic.topic);
    let writer = writer(
        topic,
        &[
            ("transactional.id", &id),
            ("transaction.timeout.ms", "900000"),
        ],
    );
    writer.init_transactions(PATIENCE).expect("transactions");
    writer.begin_transaction().expect("it begins");
    writer
}

fn write(writer: &Writer, topic: &OrderedTopicParams, payload: Option<&[u8]>) {
    let record = BaseRecord::<[u8], [u8]>::to(&topic.topic)
        .partition(0)
        .key(b"key");
    let record = if let Some(payload) = payload {
        record.payload(payload)
    } else {
        record
    };
    writer
        .send(record)
        .map_err(|(error, _)| error)
        .expect("it is queued");
    writer.flush(PATIENCE).expect("the broker takes it");
}

/// Each kind of record that is none of this program, with transaction markers among them and at the end. Returns how many.
fn litter(topic: &OrderedTopicParams) -> u64 {
    let plain = writer(topic, &[]);
    let kinds: [Option<&[u8]>; 5] = [
        Some(b"x"),
        Some(b""),
        None,
        Some(b"\xff\x00"),
        Some(b"{\"head\":1}"),
    ];
    kinds
        .iter()
        .for_each(|payload| write(&plain, topic, *payload));
    let aborted = transaction(topic, "aborted");
    write(&aborted, topic, Some(b"one"));
    write(&aborted, topic, Some(b"two"));
    aborted.abort_transaction(PATIENCE).expect("it is aborted");
    let committed = transaction(topic, "committed");
    write(&committed, topic, Some(b"three"));
    committed
        .commit_transaction(PATIENCE)
        .expect("it is committed");
    8
}

#[test]
fn what_somebody_else_writes_to_a_witness_is_void_for_every_reader() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = params(&servers);
    let folder = tempfile::tempdir().expect("a folder");
    let memory = folder.path().join("witness-place");
    let mut running = KafkaWitness::open(&topic)
        .expect("it opens")
        .with_memory(&memory)
        .expect("it is read");
    assert_eq!(running.read().expect("it is empty"), None);
    let mut written = litter(&topic);
    let first = a_claim(None, 0);
    running.append(&first).expect("it is written");
    // Everything up to the last marker is read at once.
    assert_eq!(running.read().expect("it can be read"), Some(first));
    written += litter(&topic);
    assert_eq!(running.read().expect("it can be read"), Some(first));
    // A transaction that is open, with what looks like the next claim's place taken: nobody waits for its end.
    let open = transaction(&topic, "open");
    write(&open, &topic, Some(b"four"));
    let second = a_claim(Some(&first), 3);
    running.append(&second).expect("it is written");
    assert_eq!(running.read().expect("it can be read"), Some(second));
    let strays = running.strays().witness;
    assert_eq!(strays, written + 1);
    // One who reads from the beginning, one who remembers, and both again when the transaction has been aborted.
    for _ in 0..2 {
        let mut anew = KafkaWitness::open(&topic).expect("it opens");
        assert_eq!(
            (anew.read().expect("it can be read"), anew.strays().witness),
            (Some(second), strays)
        );
        let mut remembering = KafkaWitness::open(&topic)
            .expect("it opens")
            .with_memory(&memory)
            .expect("it is read");
        assert_eq!(
            (
                remembering.read().expect("it can be read"),
                remembering.strays().witness
            ),
            (Some(second), 0)
        );
        if open.in_flight_count() == 0 {
            let _ = open.abort_transaction(PATIENCE);
        }
    }
    let third = a_claim(Some(&second), 4);
    running.append(&third).expect("it is written");
    assert_eq!(running.read().expect("it can be read"), Some(third));
    // What another version has claimed is not void: whether it counts is not known here.
    let newer = third.encode().replacen('{', r#"{"more":1,"#, 1);
    write(&writer(&topic, &[]), &topic, Some(newer.as_bytes()));
    for witness in [
        &mut running,
        &mut KafkaWitness::open(&topic).expect("it opens"),
    ] {
        for _ in 0..2 {
            let error = witness.read().expect_err("it is of another version");
            assert!(
                matches!(&error, witness::WitnessError::OfAnotherVersion { .. })
                    && !error.is_transient(),
                "{error}"
            );
        }
    }
}

/// Counts the records of a log.
#[derive(Default)]
struct Count(usize);

impl LogReader for Count {
    fn begin(&mut self) {
        self.0 = 0;
    }

    fn take(&mut self, _offset: i64, _record: &[u8]) {
        self.0 += 1;
    }
}

/// A client that has several servers puts the error of each that is down among its messages.
#[test]
fn a_server_that_is_down_is_in_no_readers_way() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = params(&servers);
    let strays = litter(&topic);
    let down = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("its number");
    let topic = OrderedTopicParams {
        broker: kafka::at(&format!("{down},{servers}")),
        ..topic
    };
    // Markers are told from lost records by a reader of their own.
    let mut witness = KafkaWitness::open(&topic).expect("it opens");
    assert_eq!(
        (
            witness.read().expect("it is read"),
            witness.strays().witness
        ),
        (None, strays)
    );
    let log = log::KafkaLogParams {
        records: topic.clone(),
        key_file: PathBuf::new(),
    };
    let mut count = Count::default();
    KafkaLog::open(&log)
        .expect("it opens")
        .read(&mut count)
        .expect("it is read");
    assert_eq!(count.0 as u64, strays);
    let output = sink::kafka::KafkaSinkParams {
        broker: topic.broker,
        topic: topic.topic,
    };
    let tail = KafkaSink::open(&output)
        .expect("it opens")
        .read_tail(&[])
        .expect("it is read")
        .expect("it may be read");
    assert!(tail.rows().is_empty(), "there is no synopsis");
}

/// Where the batches of a segment begin in its file, and where the last one ends.
fn batches(segment: &[u8]) -> Vec<usize> {
    let mut places = vec![0];
    while let Some(length) = segment
        .get(places[places.len() - 1]..)
        .and_then(|rest| rest.get(8..12))
    {
        let length = u32::from_be_bytes(length.try_into().expect("four bytes"));
        if length == 0 {
            break;
        }
        places.push(places[places.len() - 1] + 12 + usize::try_from(length).expect("a length"));
    }
    places
}

#[test]
fn what_somebody_else_writes_to_a_budget_topic_is_void() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = params(&servers);
    let mut budget = BudgetTopic::open(&topic).expect("it opens");
    let written = litter(&topic);
    for _ in 0..2 {
        assert!(
            budget
                .read_shares()
                .expect("it can be read")
                .held_shares()
                .is_empty()
        );
        assert_eq!(budget.count_strays(), written);
        assert!(
            budget
                .void_records()
                .iter()
                .all(|(_, void)| *void == RecordRejection::Stray)
        );
    }
    write(
        &writer(&topic, &[]),
        &topic,
        Some(br#"{"share":{"more":1}}"#),
    );
    assert!(matches!(
        budget.read_shares(),
        Err(BudgetError::OfAnotherVersion { .. })
    ));
}

#[test]
fn a_worker_and_every_command_go_on_with_a_littered_witness_and_say_so() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    setup.begin(Duration::ZERO);
    let topic = OrderedTopicParams {
        broker: kafka::at(&servers),
        topic: setup.witness.clone(),
        min_insync_replicas: 1,
        power_loss: PowerLoss::Together,
    };
    litter(&topic);
    setup.edit(
        "end = \"2025-01-01T00:02:00Z\"",
        "end = \"2030-01-01T00:00:00Z\"",
    );
    let mut worker = Running::start(&setup);
    worker.wait_metric(&setup, "windows_released_total", 2.0);
    let line = r#"bernstream_stray_records{topic="witness",pipeline="setup"}"#;
    let metrics = worker.get("/metrics").1;
    assert!(metrics.contains(&format!("{line} 8")), "{metrics}");
    assert_eq!(
        setup
            .read_log()
            .matches("no program of this kind has written")
            .count(),
        1,
        "{}",
        setup.read_log()
    );
    litter(&topic);
    setup.wait_for("the others", || {
        worker
            .get("/metrics")
            .1
            .contains(&format!("{line} 16"))
            .then_some(())
    });
    worker.terminate();
    assert!(worker.end(&setup).success(), "{}", setup.read_log());
    for command in ["verify", "show", "export"] {
        let output = setup.ledger_command(&[command]);
        assert!(
            output.status.success(),
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let told = String::from_utf8_lossy(&output.stdout)
            .contains("the witness has 16 records that no program");
        assert_eq!(told, command == "verify", "{command}");
    }
    let checked = setup
        .bernstream(&["check"])
        .arg(setup.configuration())
        .output()
        .expect("it runs");
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
    let again = setup.ledger_command(&["init", "--replace"]);
    assert!(
        !String::from_utf8_lossy(&again.stderr).contains("no claim"),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
}

mod long {
    use super::*;

    /// A marker and a record that is gone leave the same gap in what a client shows.
    #[test]
    fn a_record_that_is_gone_is_not_taken_for_a_transaction_marker() {
        if kafka::broker().is_none() {
            return;
        }
        let own = Own::start();
        let topic = params(&own.servers);
        let mut witness = KafkaWitness::open(&topic).expect("it opens");
        let first = a_claim(None, 0);
        witness.append(&first).expect("it is written");
        litter(&topic);
        let second = a_claim(Some(&first), 1);
        witness.append(&second).expect("it is written");
        // Void, and so is everything behind it: nothing but the gap tells that a claim before it is gone.
        witness.append(&a_claim(None, 9)).expect("it is written");
        assert_eq!(witness.read().expect("it can be read"), Some(second));
        own.ask("halt");
        let place = own.data().join(format!("{}-0", topic.topic));
        let path = place.join("00000000000000000000.log");
        let segment = fs::read(&path).expect("the segment");
        let places = batches(&segment);
        let [.., from, to, _] = places[..] else {
            panic!("{places:?}")
        };
        fs::write(&path, [&segment[..from], &segment[to..]].concat()).expect("it is written");
        for index in ["index", "timeindex"] {
            let _ = fs::remove_file(place.join(format!("00000000000000000000.{index}")));
        }
        own.ask("restart");
        wait_for("the broker", String::new, || {
            topic::describe_topic(&topic.broker, &topic.topic).ok()
        });
        let mut anew = KafkaWitness::open(&topic).expect("it opens");
        let error = wait_for("an answer", String::new, || match anew.read() {
            Err(error) if error.is_transient() => None,
            other => Some(other.expect_err("a claim is gone")),
        });
        assert!(
            matches!(&error, witness::WitnessError::Damaged { .. }),
            "{error}"
        );
    }
}
