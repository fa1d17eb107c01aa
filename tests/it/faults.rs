//! What people meet: faults of the input, the ledger, the budget and the configuration, through the real worker. Nothing is
//! lost, nothing is revealed, and the words say what to do.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream_kafka::topic;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewPartitions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaResult;
use rdkafka::producer::{BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

use crate::harness::running::Running;
use crate::harness::setup::{Row, Setup, message};
use crate::harness::{PATIENCE, in_time, kafka};

fn administer<T>(
    setup: &Setup,
    change: impl AsyncFnOnce(&AdminClient<DefaultClientContext>, &AdminOptions) -> KafkaResult<T>,
) {
    let admin = kafka::at(&setup.servers)
        .client_config()
        .expect("settings")
        .create()
        .expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime
        .block_on(change(&admin, &AdminOptions::new()))
        .expect("it is done");
}

/// Deletes the input; makes it anew.
fn recreate(setup: &Setup) {
    administer(setup, async |admin, options| {
        admin.delete_topics(&[&setup.input], options).await
    });
    let settings = [("message.timestamp.type", "LogAppendTime")];
    setup.wait_for("a new topic", || {
        topic::create_topic(&kafka::at(&setup.servers), &setup.input, 2, 1, &settings).ok()
    });
}

fn send_to(setup: &Setup, partition: i32, payload: &[u8]) {
    let producer = setup.producer(&[]);
    let record = BaseRecord::<(), _>::to(&setup.input)
        .partition(partition)
        .payload(payload);
    producer
        .send(record)
        .map_err(|(error, _)| error)
        .expect("it is queued");
    producer.flush(PATIENCE).expect("the broker takes it");
}

/// `count` records of key `a` in the middle of the first window and of the domain.
fn crowd(setup: &Setup, count: usize) -> Vec<Row> {
    let micros = setup.origin.plus(Duration::from_secs(30)).micros();
    vec![
        Row {
            micros,
            key: "a",
            value: 50.0
        };
        count
    ]
}

/// About how many records were counted: the density's sum over the lattice, made private by a little noise.
fn counted(setup: &Setup) -> f64 {
    let synopses: Vec<_> = setup
        .published()
        .iter()
        .map(|p| Synopsis::decode_message(&p.payload).expect("a synopsis"))
        .collect();
    let mass = |synopsis: &Synopsis| synopsis.values().iter().sum::<f64>() * 100.0 / 12.0;
    synopses.iter().map(mass).sum()
}

fn assert_counted(setup: &Setup, expected: f64) {
    let found = counted(setup);
    assert!(
        (found - expected).abs() < 0.1 * expected,
        "{expected} were sent, {found} counted"
    );
}

/// What the newest synopsis says of itself.
fn described(setup: &Setup) -> Description {
    let published = setup.published();
    let last = published.last().expect("a synopsis");
    Synopsis::decode_message(&last.payload)
        .expect("a synopsis")
        .description()
        .clone()
}

fn assert_ends(setup: &Setup) {
    let mut worker = Running::start(setup);
    assert!(worker.end(setup).success(), "{}", setup.read_log());
    setup.assert_whole();
}

#[test]
fn an_input_that_is_missing_or_another_one_stops_the_worker() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    // It is still reading when its input goes.
    setup.begin(Duration::from_secs(3600));
    let mut worker = Running::start(&setup);
    worker.wait_ready(&setup, true);
    recreate(&setup);
    worker.refuses(
        &setup,
        &[
            "was deleted and created again since it was last read",
            &setup.input,
        ],
    );
    Running::start(&setup).refuses(&setup, &["deleted and created anew", "ledger init"]);
    administer(&setup, async |admin, options| {
        admin.delete_topics(&[&setup.input], options).await
    });
    setup.wait_for("the topic's end", || {
        topic::describe_topic(&kafka::at(&servers), &setup.input)
            .is_err()
            .then_some(())
    });
    let missing = [
        "there is no topic",
        "if it is the input, create it with message.timestamp.type=LogAppendTime",
    ];
    Running::start(&setup).refuses(&setup, &missing);
    // Brokers that have just started may not know it yet: it is looked for once more.
    let again = setup
        .read_log()
        .lines()
        .filter(|line| line.contains(missing[0]) && line.contains("; trying again"))
        .count();
    assert_eq!(again, 1, "{}", setup.read_log());
}

#[test]
fn partitions_that_are_added_while_the_worker_reads_are_read_too() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    in_time(|wait| {
        let setup = Setup::new(&servers, 2);
        setup.send(&crowd(&setup, 3000));
        let until = Timestamp::now().plus(wait);
        setup.begin(wait);
        let mut worker = Running::start(&setup);
        if !worker.is_ready_by(&setup, until) {
            return false;
        }
        administer(&setup, async |admin, options| {
            admin
                .create_partitions(&[NewPartitions::new(&setup.input, 3)], options)
                .await
        });
        setup.wait_for("a new partition", || {
            let topic = topic::describe_topic(&kafka::at(&servers), &setup.input).ok()?;
            (topic.partitions.len() == 3).then_some(())
        });
        send_to(&setup, 2, &message(&crowd(&setup, 3000)));
        if Timestamp::now() > until {
            return false;
        }
        assert!(worker.end(&setup).success(), "{}", setup.read_log());
        assert!(
            setup
                .read_log()
                .contains("the topic had 2 partitions and now has 3"),
            "{}",
            setup.read_log()
        );
        assert_counted(&setup, 6000.0);
        setup.assert_whole();
        true
    });
}

#[test]
fn input_that_was_deleted_unread_stops_the_worker_until_its_loss_is_accepted() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    for _ in 0..3 {
        send_to(&setup, 0, &message(&crowd(&setup, 1000)));
    }
    let mut before = TopicPartitionList::new();
    before
        .add_partition_offset(&setup.input, 0, Offset::Offset(1))
        .expect("a partition");
    administer(&setup, async |admin, options| {
        admin.delete_records(&before, options).await
    });
    setup.begin(Duration::ZERO);
    Running::start(&setup).refuses(
        &setup,
        &["the broker has deleted input", "partition 0;", "to 'lost'"],
    );
    setup.show_operators();
    Running::start(&setup).refuses(
        &setup,
        &[
            "partition 0: offsets 0 to 1 were deleted",
            "from = 0, to = 1",
            "to 'lost'",
        ],
    );
    setup.edit(
        "clock_slack",
        "lost = [{ partition = 0, from = 0, to = 1 }]\nclock_slack",
    );
    assert_ends(&setup);
    assert_counted(&setup, 2000.0);
    let said = described(&setup);
    assert!(
        said.not_protected
            .iter()
            .any(|line| line.contains("deleted before it was read")),
        "{said:?}"
    );
    assert!(said.incomplete);
}

#[test]
fn a_broken_message_stops_reading_until_it_is_given_up_and_no_good_one_is_lost() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    send_to(&setup, 0, &message(&crowd(&setup, 1500)));
    send_to(&setup, 0, &message(&crowd(&setup, 10))[..200]);
    send_to(&setup, 0, &message(&crowd(&setup, 1500)));
    send_to(&setup, 1, &message(&crowd(&setup, 1000)));
    setup.begin(Duration::from_secs(1));
    let mut worker = Running::start(&setup);
    setup.wait_log("a message of partition 0");
    assert!(
        setup
            .read_log()
            .contains("detail = \\\"operator\\\" in [serve] has the log say where"),
        "{}",
        setup.read_log()
    );
    thread::sleep(Duration::from_millis(2000));
    let words = worker.get("/readyz");
    assert!(
        words.0 == 503 && words.1.contains("reading the input"),
        "{words:?}"
    );
    assert_eq!(worker.get("/healthz").0, 200);
    assert_eq!(worker.metric("windows_released_total"), Some(0.0));
    worker.terminate();
    assert!(worker.end(&setup).success());
    setup.edit(
        "clock_slack",
        "skip = [{ partition = 0, offset = 1 }]\nclock_slack",
    );
    assert_ends(&setup);
    assert_counted(&setup, 4000.0);
    let said = described(&setup);
    assert!(
        said.not_protected
            .iter()
            .any(|line| line.contains("messages that cannot be read")),
        "{said:?}"
    );
    assert!(!said.incomplete);
}

#[test]
fn broken_messages_are_skipped_at_once_where_the_configuration_says_so() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    setup.edit("clock_slack", "on_bad_message = \"skip\"\nclock_slack");
    send_to(&setup, 0, b"not Arrow");
    send_to(&setup, 0, &message(&crowd(&setup, 2000)));
    setup.begin(Duration::ZERO);
    assert_ends(&setup);
    assert_counted(&setup, 2000.0);
    setup.wait_log("skipping what cannot be read; the last: a message of partition 0 is broken");
    let said = described(&setup);
    assert!(
        said.not_protected
            .iter()
            .any(|line| line.contains("messages that cannot be read")),
        "{said:?}"
    );
}

/// A message of one row and 5,000 columns, with names that would clear a terminal; the only ones that are needed are there twice.
fn wide() -> Vec<u8> {
    let names: Vec<String> = (0..5000)
        .map(|column| format!("\u{1b}[2J{column}"))
        .collect();
    let value: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
    let columns = names
        .iter()
        .map(String::as_str)
        .chain(["time", "time"])
        .map(|name| (name, value.clone()));
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}

#[test]
fn what_producers_write_fills_no_log() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    setup.edit("clock_slack", "on_bad_message = \"skip\"\nclock_slack");
    let producer = setup.producer(&[("message.max.bytes", "5000000")]);
    let setting = AlterConfig::new(ResourceSpecifier::Topic(&setup.input));
    let setting = setting
        .set("message.timestamp.type", "LogAppendTime")
        .set("max.message.bytes", "5000000");
    administer(&setup, async |admin, options| {
        admin.alter_configs([&setting], options).await
    });
    let wide = wide();
    for number in 0..2000 {
        let payload: &[u8] = if number % 500 == 0 {
            &wide
        } else {
            b"not Arrow"
        };
        let record = BaseRecord::<(), _>::to(&setup.input)
            .partition(0)
            .payload(payload);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
    }
    producer.flush(PATIENCE).expect("the broker takes it");
    send_to(&setup, 0, &message(&crowd(&setup, 2000)));
    setup.begin(Duration::ZERO);
    assert_ends(&setup);
    assert_counted(&setup, 2000.0);
    let log = setup.read_log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("broken")).collect();
    assert!(
        (1..=20).contains(&told.len()),
        "{} lines: {told:?}",
        told.len()
    );
    assert!(told[0].contains("it has two columns 'time'"), "{}", told[0]);
    assert!(
        told.iter()
            .all(|line| line.len() < 1500 && !line.contains('\u{1b}')),
        "{told:?}"
    );
}

#[test]
fn an_open_transaction_is_waited_for_and_aborted_records_do_not_count() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    let producer = setup.producer(&[
        ("transactional.id", &setup.input),
        ("transaction.timeout.ms", "900000"),
    ]);
    producer.init_transactions(PATIENCE).expect("transactions");
    let payload = message(&crowd(&setup, 2000));
    let send = || {
        producer.begin_transaction().expect("it begins");
        let record = BaseRecord::<(), _>::to(&setup.input)
            .partition(0)
            .payload(&payload);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
        producer.flush(PATIENCE).expect("the broker takes it");
    };
    send();
    producer.abort_transaction(PATIENCE).expect("it is aborted");
    send();
    setup.begin(Duration::ZERO);
    let mut worker = Running::start(&setup);
    worker.wait_ready(&setup, true);
    thread::sleep(Duration::from_secs(2));
    assert_eq!(
        worker.metric("windows_released_total"),
        Some(0.0),
        "an open transaction is waited for"
    );
    producer
        .commit_transaction(PATIENCE)
        .expect("it is committed");
    assert!(worker.end(&setup).success(), "{}", setup.read_log());
    setup.assert_whole();
    assert_counted(&setup, 2000.0);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for file in fs::read_dir(from).expect("the ledger") {
        let file = file.expect("a file");
        fs::copy(file.path(), to.join(file.file_name())).expect("it is copied");
    }
}

#[test]
fn one_ledger_has_one_worker_and_a_copy_publishes_nothing() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    // All of them start before the first window closes.
    in_time(|wait| {
        let setup = Setup::new(&servers, 3);
        setup.send(&crowd(&setup, 1000));
        let until = Timestamp::now().plus(wait);
        setup.begin(wait);
        let other = setup.folder.path().join("other");
        copy(&setup.ledger(), &other);
        let mut first = Running::start(&setup);
        if !first.is_ready_by(&setup, until) {
            return false;
        }
        Running::start(&setup).refuses(
            &setup,
            &["another worker uses the ledger", "stop the other one first"],
        );
        setup.edit("/ledger\"", "/other\"");
        let mut second = Running::start(&setup);
        if !second.is_ready_by(&setup, until) {
            return false;
        }
        let ended = [first.end(&setup).success(), second.end(&setup).success()];
        let log = setup.read_log();
        assert_eq!(ended, [true, false], "the original goes on: {log}");
        assert!(
            log.contains("this is a copy or an older state of a ledger"),
            "{log}"
        );
        setup.edit("/other\"", "/ledger\"");
        setup.assert_whole();
        true
    });
}

#[test]
fn a_ledger_that_is_gone_old_or_edited_stops_the_worker_before_it_publishes() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 3);
    setup.send(&crowd(&setup, 1000));
    setup.begin(Duration::ZERO);
    let [old, newest] = ["old", "newest"].map(|name| setup.folder.path().join(name));
    copy(&setup.ledger(), &old);
    assert_ends(&setup);
    let published = setup.published().len();

    fs::rename(setup.ledger(), &newest).expect("it is moved");
    Running::start(&setup).refuses(
        &setup,
        &[
            "there is no ledger, but the witness or the output was written before",
            "ledger init",
        ],
    );
    let _ = fs::remove_dir_all(setup.ledger());
    copy(&old, &setup.ledger());
    Running::start(&setup).refuses(
        &setup,
        &["this is a copy or an older state", "Go on with that one"],
    );

    fs::remove_dir_all(setup.ledger()).expect("it is removed");
    copy(&newest, &setup.ledger());
    let file =
        rusqlite::Connection::open(setup.ledger().join("ledger.sqlite")).expect("a database");
    let newest = "WHERE sequence = (SELECT max(sequence) FROM rows)";
    let body: String = file
        .query_row(&format!("SELECT body FROM rows {newest}"), [], |row| {
            row.get(0)
        })
        .expect("a row");
    let edit = |body: &str| {
        file.execute(&format!("UPDATE rows SET body = ?1 {newest}"), [body])
            .expect("it is edited")
    };
    edit(&body.replace('1', "2"));
    Running::start(&setup).refuses(&setup, &["is damaged", "was changed"]);
    edit(&body);
    file.execute("UPDATE spent SET price = '\"0\"'", [])
        .expect("it is edited");
    file.close().expect("it is closed");
    // Blocks that are over can be charged no more, so a worker does not look at them; whoever verifies does.
    let verified = setup.ledger_command(&["verify"]);
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(
        !verified.status.success() && said.contains("what was spent"),
        "{said}"
    );
    assert_eq!(setup.published().len(), published);
}

#[test]
fn a_full_disk_stops_the_worker_with_a_word_and_loses_nothing() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 30);
    setup.send(&crowd(&setup, 1000));
    setup.begin(Duration::ZERO);
    // The limit on the size of a file stands for a disk that is full.
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(format!(
        "trap '' XFSZ; ulimit -f 100; exec '{}' run '{}'",
        env!("CARGO_BIN_EXE_bernstream"),
        setup.configuration().display()
    ));
    let ended = shell.stdin(Stdio::null()).output().expect("it runs");
    let log = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success(), "{log}");
    assert!(log.contains("start the worker again"), "{log}");
    assert!(
        log.contains("is full") || log.contains("check the volume"),
        "{log}"
    );
    assert_ends(&setup);
}

#[test]
fn a_budget_that_is_spent_withholds_windows_and_says_so_and_the_next_period_goes_on() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::live(&servers, today(), 10);
    let user = "unit = { user = { column = \"key\", per = \"5d\", max_records_per_window = 1 } }";
    setup.edit("unit = \"record\"", user);
    setup.edit("order = 2", "order = 2 # three windows of five");
    setup.edit(
        "name = \"density\"\nepsilon = 1.0",
        "name = \"density\"\nepsilon = 0.3",
    );
    setup.send(&setup.rows(1000, 1));
    setup.begin(Duration::ZERO);
    let worker = Running::start(&setup);
    worker.wait_metric(&setup, "windows_withheld_total", 4.0);
    for withheld in [3, 4, 8, 9].map(|window| setup.start_of(window).to_string()) {
        let is_said = |line: &str| line.contains(&withheld) && line.contains("window withheld");
        setup.wait_for(&withheld, || {
            setup.read_log().lines().any(is_said).then_some(())
        });
    }
    assert_eq!(worker.metric("windows_released_total"), Some(6.0));
    let ready = worker.wait_ready(&setup, true);
    assert!(
        ready.contains("the budget of the current block is spent"),
        "{ready}"
    );
    assert_eq!(worker.get("/healthz").0, 200);
}

#[test]
fn a_worker_that_is_asked_to_stop_ends_soon_and_goes_on_later() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::live(&servers, today(), 300);
    setup.send(&setup.rows(5000, 1));
    setup.begin(Duration::ZERO);
    for _ in 0..2 {
        let mut worker = Running::start(&setup);
        worker.wait_ready(&setup, true);
        worker.terminate();
        assert!(worker.end(&setup).success(), "{}", setup.read_log());
        let log = setup.read_log();
        assert!(
            log.contains("stopping")
                && log
                    .lines()
                    .last()
                    .is_some_and(|line| line.contains("\"stopped\"")),
            "{log}"
        );
    }
    let mut worker = Running::start(&setup);
    worker.wait_ready(&setup, true);
    worker.terminate();
    worker.terminate();
    let status = worker.end(&setup);
    assert!(matches!(status.code(), Some(0 | 130)), "{status}");
    let mut worker = Running::start(&setup);
    setup.wait_published();
    worker.terminate();
    assert!(worker.end(&setup).success(), "{}", setup.read_log());
    setup.assert_whole();
}

/// One record of each odd kind.
fn odd(setup: &Setup) -> Vec<u8> {
    let good = setup.origin.plus(Duration::from_secs(30)).micros();
    let times = [
        Some(good),
        Some(good),
        Some(good),
        Some(good),
        Some(good),
        Some(good),
        None,
        Some(i64::MAX),
        Some(0),
    ];
    let keys = ["a", "a", "a", "a", "a", "unknown", "a", "a", "b"];
    let values = [
        Some(50.0),
        None,
        Some(f64::NAN),
        Some(f64::INFINITY),
        Some(1e300),
        Some(5.0),
        Some(5.0),
        Some(5.0),
        Some(5.0),
    ];
    let columns: [(&str, ArrayRef); 3] = [
        (
            "time",
            Arc::new(TimestampMicrosecondArray::from(times.to_vec()).with_timezone("UTC")),
        ),
        ("key", Arc::new(StringArray::from_iter_values(keys))),
        ("value", Arc::new(Float64Array::from(values.to_vec()))),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
            .expect("a batch");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}

/// The start of a window of a day that is not over for a while.
fn today() -> Timestamp {
    Timestamp::now().minus(Duration::from_secs(60))
}

/// Metrics and log of a worker that has closed every window that is over, without what differs from setup to setup.
fn shown(servers: &str, today: Timestamp, detail: &str, has_odd: bool) -> (String, String) {
    let setup = Setup::live(servers, today, 4);
    setup.edit(
        "[ledger]",
        &format!("[serve]\ndetail = \"{detail}\"\nlisten = \"127.0.0.1:0\"\n\n[ledger]"),
    );
    setup.send(&setup.rows(2000, 1));
    if has_odd {
        send_to(&setup, 1, &odd(&setup));
    }
    setup.begin(Duration::ZERO);
    let worker = Running::start(&setup);
    worker.wait_metric(&setup, "windows_released_total", 4.0);
    worker.wait_metric(&setup, "synopses_published_total", 8.0);
    worker.wait_ready(&setup, true);
    // Counted first, said then.
    let said = |words: &str| setup.read_log().matches(words).count();
    let is_all = || said("window released") == 4 && said("reading the input") == 1;
    setup.wait_for("the log", || is_all().then_some(()));
    let (_, metrics) = worker.get("/metrics");
    let metrics = metrics.lines().filter(|line| {
        !["build_info", "ledger_info", "seal_seconds", "read_until"]
            .iter()
            .any(|name| line.contains(name))
    });
    let log = setup.read_log();
    // The two run at different times; what they say is compared up to the times of the schedule.
    let said = log
        .lines()
        .map(|line| line.split_once("fields").map_or("", |(_, fields)| fields));
    let said = said.map(|line| line.split("\"cutoff").next().unwrap_or(line));
    let said = said.map(|line| line.split("\"published").next().unwrap_or(line));
    // A slow worker says now and then how far it is, by the clock and the schedule.
    let of_this_run = ["serving", "ledger verified", "catching up", "caught up"];
    let said = said.filter(|line| !of_this_run.iter().any(|words| line.contains(words)));
    // Two loops write the log, so its order is not the schedule's.
    let mut said: Vec<&str> = said.collect();
    said.sort_unstable();
    (metrics.collect::<Vec<_>>().join("\n"), said.join("\n"))
}

#[test]
fn metrics_and_log_of_neighbouring_streams_are_the_same_unless_an_operator_wants_the_counts() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let today = today();
    let [one, other, operator, other_operator] = [
        ("safe", false),
        ("safe", true),
        ("operator", false),
        ("operator", true),
    ]
    .map(|(detail, has_odd)| {
        let servers = servers.clone();
        thread::spawn(move || shown(&servers, today, detail, has_odd))
    })
    .map(|thread| thread.join().expect("it is shown"));
    assert!(
        one.0.contains("bernstream_windows_released_total") && one.1.contains("reading the input"),
        "{one:?}"
    );
    assert_eq!(one, other);
    assert_ne!(operator.0, other_operator.0);
    assert!(
        other_operator.0.contains("bernstream_records_total"),
        "{}",
        other_operator.0
    );
}

#[test]
fn what_is_promised_stays_that_of_the_ledger_and_the_rest_may_change() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    setup.begin(Duration::ZERO);
    let one = r#""add_remove""#;
    let other = "{ replace_one = { records_per_window = 9 } }";
    setup.edit(one, other);
    Running::start(&setup).refuses(&setup, &["was created for another guarantee", "adjacency"]);
    setup.edit(other, one);
    setup.edit("brokers = \"127.0.0.1", "brokers = \"localhost");
    setup.edit("bandwidths = [10]", "bandwidths = [11]");
    setup.edit("clock_slack = \"200ms\"", "clock_slack = \"100ms\"");
    Running::start(&setup).refuses(
        &setup,
        &["input.kafka.clock_slack: 200ms in the ledger, 100ms in the file"],
    );
    // A slack that grows is a change like others.
    setup.edit("clock_slack = \"100ms\"", "clock_slack = \"250ms\"");
    assert_ends(&setup);
    let log = setup.read_log();
    assert!(log.contains("the settings have changed"), "{log}");
    assert!(
        log.contains("input.kafka.clock_slack: 200ms in the ledger, 250ms in the file"),
        "{log}"
    );
    let exported = setup.ledger_command(&["export"]);
    assert!(
        String::from_utf8_lossy(&exported.stdout).contains(r#"\"clock_slack\":250000"#),
        "a row says so"
    );
    let again = setup.ledger_command(&["verify"]);
    assert!(
        again.status.success(),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
}

#[test]
fn a_slack_that_replicas_may_exceed_is_a_fault_of_check_and_a_warning_of_the_worker() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 1);
    setup.begin(Duration::ZERO);
    let check = || {
        let checked = setup
            .bernstream(&["check"])
            .arg(setup.configuration())
            .output()
            .expect("it runs");
        (
            checked.status.code(),
            String::from_utf8_lossy(&checked.stdout).into_owned(),
        )
    };
    let (code, said) = check();
    let setting =
        "input.kafka.clock_slack is longer than replica.lag.time.max.ms of the brokers, 50ms";
    assert!(
        code == Some(0) && said.contains(&format!("ok     {setting}")),
        "{said}"
    );
    assert!(
        said.contains("-clock has message.timestamp.type = LogAppendTime"),
        "{said}"
    );
    setup.edit("clock_slack = \"200ms\"", "clock_slack = \"50ms\"");
    let (code, said) = check();
    // The ledger has promised another slack: with that a worker ends, and so does `check`.
    assert!(
        code == Some(74) && said.contains(&format!("fault  {setting}: it is 50ms")),
        "{said}"
    );
    assert!(said.contains("raise clock_slack above 50ms"), "{said}");
    // And nothing else that stops the worker is kept back for it.
    let both = setup
        .bernstream(&["check"])
        .arg(setup.configuration())
        .output()
        .expect("it runs");
    let both = String::from_utf8_lossy(&both.stderr).into_owned();
    assert!(
        both.contains("input.kafka.clock_slack: 200ms in the ledger, 50ms in the file"),
        "{both}"
    );
    let other = Setup::new(&servers, 1);
    other.edit("clock_slack = \"200ms\"", "clock_slack = \"50ms\"");
    other.begin(Duration::ZERO);
    assert_ends(&other);
    let words = "clock_slack, 50ms, is not above replica.lag.time.max.ms of the brokers, 50ms";
    assert!(other.read_log().contains(words), "{}", other.read_log());
}

/// Three records that are stamped before the cutoff of a window of the past, sent when it has closed.
fn turn_up_late(servers: &str, detail: &str) -> (String, String, Description) {
    let setup = Setup::live(servers, today(), 2);
    let setting = AlterConfig::new(ResourceSpecifier::Topic(&setup.input))
        .set("message.timestamp.type", "CreateTime");
    administer(&setup, async |admin, options| {
        admin.alter_configs([&setting], options).await
    });
    setup.edit("clock_slack", "trust_producer_time = true\nclock_slack");
    setup.edit(
        "[ledger]",
        &format!("[serve]\ndetail = \"{detail}\"\nlisten = \"127.0.0.1:0\"\n\n[ledger]"),
    );
    setup.send(&crowd(&setup, 100));
    let before = Timestamp::now().minus(Duration::from_secs(1)).micros() / 1000;
    setup.begin(Duration::ZERO);
    let worker = Running::start(&setup);
    worker.wait_metric(&setup, "windows_released_total", 2.0);
    let producer = setup.producer(&[]);
    let payload = message(&crowd(&setup, 3));
    let record = BaseRecord::<(), _>::to(&setup.input)
        .partition(0)
        .payload(&payload)
        .timestamp(before);
    producer
        .send(record)
        .map_err(|(error, _)| error)
        .expect("it is queued");
    producer.flush(PATIENCE).expect("the broker takes it");
    if detail == "operator" {
        let behind = || {
            worker
                .get("/metrics")
                .1
                .lines()
                .any(|l| l.contains("fate=\"behind\"") && l.ends_with(" 3"))
                .then_some(())
        };
        setup.wait_for("the count", behind);
        setup.wait_log("turned up behind");
    } else {
        thread::sleep(Duration::from_secs(2));
    }
    worker.wait_metric(&setup, "synopses_published_total", 4.0);
    (
        worker.get("/metrics").1,
        setup.read_log(),
        described(&setup),
    )
}

#[test]
fn records_that_reach_the_topic_after_their_cutoff_are_told_to_operators() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let today = today();
    let setup = Setup::live(&servers, today, 2);
    // A producer's time may then be that of tomorrow.
    let setting = AlterConfig::new(ResourceSpecifier::Topic(&setup.input))
        .set("message.timestamp.type", "CreateTime");
    let setting = setting.set("message.timestamp.after.max.ms", "9223372036854775807");
    administer(&setup, async |admin, options| {
        admin.alter_configs([&setting], options).await
    });
    setup.edit("clock_slack", "trust_producer_time = true\nclock_slack");
    setup.edit(
        "[ledger]",
        "[serve]\ndetail = \"operator\"\nlisten = \"127.0.0.1:0\"\n\n[ledger]",
    );
    setup.begin(Duration::ZERO);
    let worker = Running::start(&setup);
    worker.wait_metric(&setup, "windows_released_total", 2.0);
    let row = Row {
        micros: today.micros(),
        key: "a",
        value: 5.0,
    };
    let after_cutoff = today.plus(Duration::from_secs(24 * 3600 + 2));
    let producer = setup.producer(&[]);
    let payload = message(&[row; 3]);
    let record = BaseRecord::<(), _>::to(&setup.input)
        .partition(0)
        .payload(&payload)
        .timestamp(after_cutoff.micros() / 1000);
    producer
        .send(record)
        .map_err(|(error, _)| error)
        .expect("it is queued");
    producer.flush(PATIENCE).expect("the broker takes it");
    setup.wait_log("3 records reached the topic later than grace after the end of their window");
}

#[test]
fn a_record_behind_the_end_of_its_window_is_counted_for_operators_only() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let words = "3 records turned up behind the end of their window";
    let (_, log, said) = turn_up_late(&servers, "operator");
    assert!(log.contains(words), "{log}");
    assert!(!said.incomplete, "{said:?}");
    let (metrics, log, said) = turn_up_late(&servers, "safe");
    assert!(
        !log.contains("turned up") && !metrics.contains("fate=\"behind\"") && !said.incomplete,
        "{log}{metrics}{said:?}"
    );
}
