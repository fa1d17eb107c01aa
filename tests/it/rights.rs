//! What the Kafka user of a worker must be allowed to do: exactly what `deploy/README.md` says.

use std::time::Duration;

use bernstream_kafka::ordered;
use bernstream_kafka::ordered::PowerLoss;
use bernstream_kafka::{broker_clock, topic};

use crate::harness::kafka;
use crate::harness::running::Running;
use crate::harness::setup::Setup;
use crate::ledger_log::{add_log, log_topic};
use crate::tls::Secure;

const USER: &str = "User:bernstream";

/// The rights of the worker's row, with the name of the topic there.
fn rights_of_the_table() -> Vec<(String, Vec<String>)> {
    let page = include_str!("../../deploy/README.md");
    let row = page
        .lines()
        .find_map(|line| line.strip_prefix("| worker | "))
        .expect("its row");
    let mut rights = Vec::new();
    for part in row.trim_end_matches(" |").split("; ") {
        let (topics, operations) = part.split_once(": ").expect("topics: rights");
        let operations: Vec<String> = operations.split(", ").map(str::to_owned).collect();
        rights.extend(
            topics
                .split(" and ")
                .map(|topic| (topic.to_owned(), operations.clone())),
        );
    }
    rights
}

/// The topics that an administrator creates, by their names in the table.
fn create_topics(setup: &Setup) -> [(&'static str, String); 5] {
    let broker = kafka::at(&setup.servers);
    let log = log_topic(setup);
    topic::create_topic(&broker, &setup.output, 1, 1, &[("retention.ms", "-1")])
        .expect("the output");
    for name in [&setup.witness, &log] {
        let power_loss = PowerLoss::Together;
        let params = ordered::OrderedTopicParams {
            broker: broker.clone(),
            topic: name.clone(),
            min_insync_replicas: 1,
            power_loss,
        };
        ordered::create_topic(&params, 1).expect("a topic that loses nothing");
    }
    let clock = format!("{}-clock", setup.input);
    broker_clock::create_missing(&broker, &clock, &setup.input).expect("the clock");
    [
        ("input", setup.input.clone()),
        ("output", setup.output.clone()),
        ("witness", setup.witness.clone()),
        ("clock", clock),
        ("ledger log", log),
    ]
}

#[test]
#[cfg_attr(not(feature = "tls"), ignore = "built without the feature `tls`")]
fn check_names_each_right_that_is_missing_and_those_of_the_table_suffice() {
    if kafka::broker().is_none() {
        return;
    }
    let own = kafka::Own::with_acls();
    let secure = Secure::of(&own.servers, &own.ask("secure"));
    let setup = secure.setup(&secure.right(), 3);
    add_log(&setup, 1);
    let topics = create_topics(&setup);
    let name = |called: &str| {
        topics
            .iter()
            .find(|(topic, _)| *topic == called)
            .expect(called)
            .1
            .as_str()
    };
    let missing = [
        ("input", "Read"),
        ("clock", "Write"),
        ("output", "Write"),
        ("witness", "Read"),
        ("ledger log", "DescribeConfigs"),
    ];
    let mut left_out = 0;
    for (topic, operations) in rights_of_the_table() {
        let mut arguments = vec!["--add", "--allow-principal", USER, "--topic", name(&topic)];
        for operation in &operations {
            match missing.contains(&(&topic, operation)) {
                true => left_out += 1,
                false => arguments.extend(["--operation", operation]),
            }
        }
        own.acls(&arguments);
    }
    assert_eq!(left_out, missing.len(), "all of them are in the table");

    let check = || {
        let checked = setup
            .bernstream(&["check", &setup.configuration().display().to_string()])
            .output();
        let checked = checked.expect("it runs");
        (
            checked.status.code(),
            String::from_utf8_lossy(&checked.stdout).into_owned(),
        )
    };
    let (code, told) = check();
    assert_eq!(code, Some(78), "{told}");
    let remedies: Vec<Vec<&str>> = told
        .lines()
        .filter_map(|line| line.split_once("kafka-acls "))
        .map(|(_, remedy)| remedy.split(' ').skip(4).collect())
        .collect();
    let given = missing.map(|(topic, operation)| {
        vec![
            "--add",
            "--allow-principal",
            USER,
            "--operation",
            operation,
            "--topic",
            name(topic),
        ]
    });
    assert_eq!(remedies, given, "{told}");
    remedies.iter().for_each(|remedy| own.acls(remedy));

    // Brokers take over rights a moment later.
    setup.wait_for("rights", || (check().0 == Some(0)).then_some(()));
    setup.begin(Duration::from_secs(2));
    setup.send(&setup.rows(300, 1));
    let mut worker = Running::start(&setup);
    assert!(worker.end(&setup).success(), "{}", setup.read_log());
    setup.assert_whole();
}
