//! A topic that was stamped by producers when its older messages were sent, and by brokers since: who comes to the older ones, and what is
//! said of them.

use std::fs;
use std::thread;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;

use crate::harness::kafka;
use crate::harness::running::Running;
use crate::harness::setup::Setup;

/// Alters whose time the messages get that are sent from now on.
fn stamp_by(setup: &Setup, kind: &str) {
    let setting = AlterConfig::new(ResourceSpecifier::Topic(&setup.input))
        .set("message.timestamp.type", kind);
    let admin: AdminClient<DefaultClientContext> = kafka::at(&setup.servers)
        .client_config()
        .expect("settings")
        .create()
        .expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime
        .block_on(admin.alter_configs([&setting], &AdminOptions::new()))
        .expect("it is done");
    thread::sleep(Duration::from_secs(1));
}

/// So many thousand records from before brokers stamped them, and 1000 since, a message a thousand.
fn send_older(setup: &Setup, thousands: usize) {
    stamp_by(setup, "CreateTime");
    setup.send(&setup.rows(1000 * thousands, 1));
    stamp_by(setup, "LogAppendTime");
    setup.send(&setup.rows(1000, 2));
}

/// The exit code of `check`, and all that it says.
fn check(setup: &Setup) -> (Option<i32>, String) {
    let output = setup
        .bernstream(&["check"])
        .arg(setup.configuration())
        .output()
        .expect("it runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
    )
}

#[test]
fn what_producers_stamped_before_stops_a_worker_and_is_found_before_it_starts() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    setup.begin(Duration::from_secs(8));
    let (code, told) = check(&setup);
    let what = format!(
        "the brokers have stamped what a worker reads first of {}",
        setup.input
    );
    assert!(
        code == Some(0) && told.contains(&format!("ok     {what}")),
        "{told}"
    );
    send_older(&setup, 3);

    let (code, told) = check(&setup);
    let why =
        "offsets 0 to 1 of partition 0, 0 to 0 of partition 1 have times that their producers set";
    assert!(
        code == Some(78) && told.contains(&format!("fault  {what}: {why}")),
        "{told}"
    );
    let lost = "lost = [{ partition = 0, from = 0, to = 2 }, { partition = 1, from = 0, to = 1 }]";
    assert!(told.contains(lost), "{told}");

    // No restart helps, and that is what its code says. Where they are is for operators.
    let mut worker = Running::start(&setup);
    let words = "has messages with times that their producers set (partition ";
    worker.refuses(
        &setup,
        &[words, "no restart helps", "`bernstream check` names"],
    );
    assert_eq!(worker.end(&setup).code(), Some(78));
    assert!(
        !setup.read_log().contains("is at offset"),
        "{}",
        setup.read_log()
    );
    setup.show_operators();
    let mut worker = Running::start(&setup);
    worker.refuses(&setup, &[words]);
    assert!(
        setup.read_log().contains("it is at offset 0"),
        "{}",
        setup.read_log()
    );

    // What `check` advises helps.
    setup.edit("clock_slack", &format!("{lost}\nclock_slack"));
    assert_eq!(check(&setup).0, Some(0));
    let mut worker = Running::start(&setup);
    assert!(worker.end(&setup).success(), "{}", setup.read_log());
    setup.assert_whole();
}

#[test]
fn a_ledger_does_not_begin_where_a_worker_would_stop_but_behind_that() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::of_seconds(&servers, 5);
    stamp_by(&setup, "CreateTime");
    setup.send(&setup.rows(1000, 1));
    stamp_by(&setup, "LogAppendTime");
    thread::sleep(Duration::from_secs(1));
    let from = setup.origin.to_string();
    let refused = setup.ledger_command(&["init", "--from", &from]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(78), "{told}");
    assert!(
        told.contains("have times that their producers set") && told.contains("(partitions: 0)"),
        "{told}"
    );
    assert!(!told.contains("offset 0"), "{told}");
    // A window that begins now needs none of them, although nothing was sent since that shows where they end.
    assert!(setup.ledger_command(&["init"]).status.success());
    assert_eq!(check(&setup).0, Some(0));
    let worker = Running::start(&setup);
    worker.wait_metric(&setup, "windows_released_total", 2.0);
}

#[test]
fn a_topic_that_is_set_back_while_it_is_read_stops_the_worker_even_if_it_skips() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::of_seconds(&servers, 0);
    setup.edit("clock_slack", "on_bad_message = \"skip\"\nclock_slack");
    assert!(setup.ledger_command(&["init"]).status.success());
    let mut worker = Running::start(&setup);
    worker.wait_metric(&setup, "windows_released_total", 1.0);
    stamp_by(&setup, "CreateTime");
    setup.send(&setup.rows(1000, 1));
    worker.refuses(&setup, &["has timestamps set by producers (CreateTime)"]);
    assert_eq!(worker.end(&setup).code(), Some(78));
    assert!(fs::exists(setup.ledger()).expect("it can be looked for"));
}
