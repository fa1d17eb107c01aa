//! What operators do to the topics of a worker that is running.

use std::collections::BTreeSet;

use bernstream_kafka::ordered::{FLUSH, SETTINGS};
use bernstream_kafka::topic;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewPartitions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaResult;

use crate::harness::kafka;
use crate::harness::running::Running;
use crate::harness::setup::Setup;

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

/// Replaces all settings of a topic.
fn set(setup: &Setup, topic: &str, settings: &[(&str, &str)]) {
    administer(setup, async |admin, options| {
        let new = AlterConfig::new(ResourceSpecifier::Topic(topic));
        let new = settings
            .iter()
            .fold(new, |new, (key, value)| new.set(key, value));
        admin.alter_configs(&[new], options).await
    });
}

fn ticking() -> Option<(Setup, Running)> {
    let setup = Setup::ticking(&kafka::broker()?);
    let worker = Running::start(&setup);
    worker.wait_metric(&setup, "synopses_published_total", 4.0);
    Some((setup, worker))
}

#[test]
fn an_output_that_is_created_again_ends_the_worker_and_what_it_held_is_published_again() {
    let Some((setup, mut worker)) = ticking() else {
        return;
    };
    let before: BTreeSet<Vec<u8>> = setup
        .published()
        .into_iter()
        .map(|published| published.payload)
        .collect();
    administer(&setup, async |admin, options| {
        admin.delete_topics(&[&setup.output], options).await
    });
    setup.wait_for("a new topic", || {
        topic::create_topic(&kafka::at(&setup.servers), &setup.output, 1, 1, &[]).ok()
    });
    let status = worker.end(&setup);
    let log = setup.read_log();
    assert_eq!(status.code(), Some(69), "{log}");
    let last = log.lines().last().expect("a line").to_owned();
    assert!(
        last.contains(&format!("the output topic '{}' was deleted", setup.output)),
        "{log}"
    );
    assert!(
        last.contains("`bernstream ledger republish --all`") && !log.contains("does not answer"),
        "{log}"
    );

    let sent = setup.ledger_command(&["republish", "--all"]);
    assert!(
        sent.status.success(),
        "{}",
        String::from_utf8_lossy(&sent.stderr)
    );
    let after: BTreeSet<Vec<u8>> = setup
        .published()
        .into_iter()
        .map(|published| published.payload)
        .collect();
    assert!(
        before.is_subset(&after) && before.len() >= 4,
        "{} of {}",
        after.len(),
        before.len()
    );
    let worker = Running::start(&setup);
    worker.wait_metric(&setup, "synopses_published_total", 4.0);
    worker.terminate();
    let verified = setup.ledger_command(&["verify"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stderr)
    );
}

#[test]
fn settings_that_change_are_told_once_and_a_witness_that_may_lose_records_ends_the_worker() {
    let Some((setup, mut worker)) = ticking() else {
        return;
    };
    let input = [
        ("message.timestamp.type", "LogAppendTime"),
        ("retention.ms", "-1"),
        ("unclean.leader.election.enable", "true"),
    ];
    set(&setup, &setup.input, &input);
    let words = format!(
        "the input topic '{}' has unclean.leader.election.enable = true, which was false",
        setup.input
    );
    setup.wait_log(&words);
    assert_eq!(
        worker.get("/readyz").0,
        200,
        "the promise does not rest on it"
    );
    let mut witness = [SETTINGS.as_slice(), &[FLUSH, ("min.insync.replicas", "1")]].concat();
    witness[3].1 = "true";
    set(&setup, &setup.witness, &witness);
    let status = worker.end(&setup);
    let log = setup.read_log();
    assert_eq!(status.code(), Some(74), "{log}");
    assert!(
        log.contains("unclean.leader.election.enable = true, but needs false"),
        "{log}"
    );
    assert_eq!(log.matches(&words).count(), 1, "{log}");
    let mut again = Running::start(&setup);
    assert_eq!(again.end(&setup).code(), Some(74), "as at the start");
}

#[test]
fn a_second_partition_of_the_witness_ends_the_worker_at_once() {
    let Some((setup, mut worker)) = ticking() else {
        return;
    };
    administer(&setup, async |admin, options| {
        admin
            .create_partitions(&[NewPartitions::new(&setup.witness, 2)], options)
            .await
    });
    let started = std::time::Instant::now();
    assert_eq!(worker.end(&setup).code(), Some(74), "{}", setup.read_log());
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    let log = setup.read_log();
    let last = log.lines().last().expect("a line");
    assert!(
        last.contains("has 2 partitions")
            && last.contains("the only way out is a new witness topic"),
        "{log}"
    );
}

/// The clock topic of a setup.
fn clock(setup: &Setup) -> String {
    format!("{}-clock", setup.input)
}

#[test]
fn a_clock_topic_that_no_longer_tells_the_brokers_time_ends_the_worker() {
    let Some((setup, mut worker)) = ticking() else {
        return;
    };
    set(
        &setup,
        &clock(&setup),
        &[
            ("message.timestamp.type", "CreateTime"),
            ("cleanup.policy", "delete"),
        ],
    );
    let status = worker.end(&setup);
    let log = setup.read_log();
    assert!(!status.success(), "{log}");
    let last = log.lines().last().expect("a line");
    assert!(
        last.contains(&clock(&setup)) && last.contains("message.timestamp.type=CreateTime"),
        "{log}"
    );
    assert!(
        log.matches("the brokers' clock cannot be asked").count() <= 1,
        "told at every cutoff: {log}"
    );
    // No window was closed without the brokers' word, and none is missing once they give it.
    set(
        &setup,
        &clock(&setup),
        &[
            ("message.timestamp.type", "LogAppendTime"),
            ("cleanup.policy", "delete"),
        ],
    );
    let before = setup.published().len();
    let worker = Running::start(&setup);
    setup.wait_for("what is due since", || {
        (setup.published().len() >= before + 20).then_some(())
    });
    drop(worker);
    let verified = setup.ledger_command(&["verify"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stderr)
    );
}

#[test]
fn a_cluster_with_too_few_brokers_is_told_before_a_topic_is_created_on_it() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
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
    let (code, told) = check();
    assert!(code == Some(0) && !told.contains("replicas: "), "{told}");
    setup.edit(
        "witness_min_insync_replicas = 1",
        "witness_min_insync_replicas = 2",
    );
    let (code, told) = check();
    let words = format!(
        "fault  {} can get its 3 replicas: the cluster has 1 broker",
        setup.witness
    );
    assert!(code == Some(78) && told.contains(&words), "{told}");
    assert!(
        told.contains("start more brokers, or for a trial set witness_min_insync_replicas = 1"),
        "{told}"
    );
    assert!(
        !setup.ledger_command(&["init"]).status.success(),
        "what is told is true"
    );
}

#[test]
fn a_right_that_is_taken_away_is_named_by_the_worker_that_needs_it() {
    if kafka::broker().is_none() {
        return;
    }
    let own = kafka::Own::with_some_acls();
    let setup = Setup::ticking(&own.servers);
    let rule = |action: &str, operations: &[&str]| {
        let who = [
            action,
            "--force",
            "--allow-principal",
            "User:ANONYMOUS",
            "--topic",
            &setup.input,
        ];
        own.acls(&[&who, operations].concat());
    };
    let mut worker = Running::start(&setup);
    rule(
        "--add",
        &["--operation", "Read", "--operation", "DescribeConfigs"],
    );
    worker.wait_metric(&setup, "synopses_published_total", 4.0);
    rule("--remove", &["--operation", "Read"]);
    worker.refuses(
        &setup,
        &[
            "does not give this user the right Read on topic",
            &setup.input,
        ],
    );
    assert_eq!(worker.end(&setup).code(), Some(69));
}

mod long {
    use super::*;

    #[test]
    fn a_clock_topic_that_is_deleted_ends_the_worker_and_the_next_start_creates_it() {
        let Some((setup, mut worker)) = ticking() else {
            return;
        };
        administer(&setup, async |admin, options| {
            admin.delete_topics(&[&clock(&setup)], options).await
        });
        let status = worker.end(&setup);
        let log = setup.read_log();
        assert!(!status.success(), "{log}");
        let words = format!(
            "topic '{}' at {}, which tells the brokers' time, was deleted",
            clock(&setup),
            setup.servers
        );
        assert!(
            log.lines().last().expect("a line").contains(&words),
            "{log}"
        );
        assert!(
            log.matches("the brokers' clock cannot be asked").count() <= 1,
            "told at every cutoff: {log}"
        );
        let before = setup.published().len();
        let worker = Running::start(&setup);
        setup.wait_for("what is due since", || {
            (setup.published().len() >= before + 20).then_some(())
        });
        worker.terminate();
        let verified = setup.ledger_command(&["verify"]);
        assert!(
            verified.status.success(),
            "{}",
            String::from_utf8_lossy(&verified.stderr)
        );
    }

    #[test]
    fn an_output_that_is_deleted_is_said_to_be_missing_and_an_empty_one_is_told_at_the_start() {
        let Some((setup, mut worker)) = ticking() else {
            return;
        };
        administer(&setup, async |admin, options| {
            admin.delete_topics(&[&setup.output], options).await
        });
        let status = worker.end(&setup);
        let log = setup.read_log();
        assert_eq!(status.code(), Some(69), "{log}");
        assert!(
            log.lines()
                .last()
                .expect("a line")
                .contains("was deleted while the worker ran"),
            "{log}"
        );
        assert!(!log.contains("does not answer"), "{log}");
        setup.wait_for("a new topic", || {
            topic::create_topic(&kafka::at(&setup.servers), &setup.output, 1, 1, &[]).ok()
        });
        let worker = Running::start(&setup);
        setup.wait_log("the output is empty, but this ledger has published");
        worker.wait_metric(&setup, "synopses_published_total", 2.0);
    }

    #[test]
    fn an_input_that_has_lost_its_newest_messages_is_waited_for_and_is_no_other_one() {
        if kafka::broker().is_none() {
            return;
        }
        let own = kafka::Own::start();
        let setup = Setup::ticking(&own.servers);
        // A batch each, all of partition 0.
        let send = || (0..3).for_each(|_| setup.send(&setup.rows(10, 1)));
        send();
        let mut worker = Running::start(&setup);
        worker.wait_metric(&setup, "synopses_published_total", 6.0);
        worker.terminate();
        assert!(worker.end(&setup).success());
        own.ask("crash");
        own.cut(&setup.input, |_| 1);
        own.ask("restart");

        let worker = Running::start(&setup);
        setup.wait_log("ends before what was read of it, and it is the same topic");
        worker.wait_ready(&setup, false);
        send();
        worker.wait_metric(&setup, "synopses_published_total", 6.0);
        assert!(
            !setup.read_log().contains("created again"),
            "{}",
            setup.read_log()
        );
    }
}
