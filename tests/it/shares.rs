//! Pipelines that share one budget, on a real broker.

use std::fs;
use std::process::Output;

use bernstream_config::WorkerSettings;
use bernstream_kafka::ledger::budget::guard::GuardedWitness;
use bernstream_kafka::ledger::budget::topic::{BudgetTopic, OrderedTopicParams};
use bernstream_kafka::ledger::witness::kafka::KafkaWitness;
use bernstream_kafka::ordered::PowerLoss;
use bernstream_kafka::topic;
use bernstream_ledger::budget::entry::{BlockGrid, BudgetTerms, ShareHolder};
use bernstream_ledger::budget::join::WantedShare;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_ledger::{ClosedWindow, Digest, Head, Ledger, LedgerRow, ReleaseOutcome};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::price::Price;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use serde_json::json;

use crate::harness::ledger::params;
use crate::harness::running::Running;
use crate::harness::setup::{Setup, read_topic};
use crate::harness::{kafka, wait_for};
use crate::ledger_log::add_log;

pub fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|text| String::from_utf8_lossy(text))
        .concat()
}

/// A pipeline with windows of a second, which holds a share of the budget of the topic `input`.
pub fn pipeline(
    servers: &str,
    name: &str,
    first: Option<&Setup>,
    budget: &str,
    share: &str,
) -> Setup {
    let mut setup = match first {
        Some(first) => Setup::quick(servers, first.origin, 3600),
        None => Setup::of_seconds(servers, 0),
    };
    if let Some(first) = first {
        setup.edit(
            &format!("topic = \"{}\"", setup.input),
            &format!("topic = \"{}\"", first.input),
        );
        setup.input.clone_from(&first.input);
    }
    setup.edit("pipeline = \"setup\"", &format!("pipeline = \"{name}\""));
    setup.edit(
        "epsilon = 1.0\ndegree",
        &format!("epsilon = {share}\ndegree"),
    );
    let with =
        format!("adjacency = \"add_remove\"\nbudget = {{ topic = \"{budget}\", share = {share} }}");
    setup.edit("adjacency = \"add_remove\"", &with);
    setup
}

pub fn budget_command(setup: &Setup, action: &str) -> Output {
    let mut command = setup.bernstream(&["budget", action]);
    command
        .arg(setup.configuration())
        .output()
        .expect("it runs")
}

pub fn make_budget(setup: &Setup) {
    let made = budget_command(setup, "init");
    assert!(
        made.status.success() && said(&made).contains("created the budget topic"),
        "{}",
        said(&made)
    );
}

pub fn begin(setup: &Setup) {
    let made = setup.ledger_command(&["init", "--replace"]);
    assert!(made.status.success(), "{}", said(&made));
}

/// The first pipeline of a new budget, with its ledger.
pub fn first(servers: &str, share: &str) -> (String, Setup) {
    let budget = kafka::fresh_name("budget");
    let one = pipeline(servers, "one", None, &budget, share);
    make_budget(&one);
    begin(&one);
    (budget, one)
}

pub fn refuses(setup: &Setup, words: &[&str]) -> String {
    let made = setup.ledger_command(&["init", "--replace"]);
    let told = said(&made);
    assert!(
        !made.status.success() && words.iter().all(|word| told.contains(word)),
        "{words:?}: {told}"
    );
    assert!(!setup.ledger().join("ledger.sqlite").exists(), "{told}");
    told
}

/// Runs the worker until it has published `least` messages, and stops it.
pub fn run(setup: &Setup, least: f64) {
    let mut worker = Running::start(setup);
    worker.wait_metric(setup, "synopses_published_total", least);
    worker.terminate();
    assert!(worker.end(setup).success(), "{}", setup.read_log());
}

pub fn show(setup: &Setup) -> String {
    let shown = budget_command(setup, "show");
    assert!(shown.status.success(), "{}", said(&shown));
    said(&shown)
}

/// What the ledgers have charged each block, in trillionths.
pub fn charged(setups: &[&Setup]) -> std::collections::BTreeMap<Timestamp, u64> {
    let mut sums = std::collections::BTreeMap::new();
    for setup in setups {
        let ledger = Ledger::inspect(&params(&setup.ledger())).expect("the ledger");
        ledger
            .each_row(|stored| {
                if let LedgerRow::Window(ClosedWindow {
                    outcome: ReleaseOutcome::Released { charges, .. },
                    ..
                }) = stored.row
                {
                    for (block, price) in charges {
                        *sums.entry(block.start).or_default() += price.smallest_units()[0];
                    }
                }
                Ok::<(), bernstream_ledger::LedgerError>(())
            })
            .expect("its rows");
    }
    sums
}

#[test]
fn pipelines_of_one_input_keep_its_total_together_and_a_third_is_told_what_is_left() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (budget, one) = first(&servers, "0.6");
    let two = pipeline(&servers, "two", Some(&one), &budget, "0.4");
    begin(&two);
    let third = pipeline(&servers, "third", Some(&one), &budget, "0.3");
    let check = |setup: &Setup| {
        setup
            .bernstream(&["check"])
            .arg(setup.configuration())
            .output()
            .expect("it runs")
    };
    let checked = check(&two);
    let has_share = format!("  ok     {budget} has a share for this pipeline");
    assert!(said(&checked).contains(&has_share), "{}", said(&checked));
    let told = refuses(
        &third,
        &[
            "no share of 0.3 left: 0 is left from",
            "held by one (0.6 from",
            "two (0.4 from",
        ],
    );
    assert!(told.contains(&budget), "{told}");
    let left = topic::describe_topic(&kafka::at(&servers), &third.witness);
    assert!(left.is_err(), "what is refused leaves no topic");

    let first = Running::start(&one);
    let second = Running::start(&two);
    first.wait_metric(&one, "synopses_published_total", 6.0);
    second.wait_metric(&two, "synopses_published_total", 6.0);
    let locked = budget_command(&two, "end");
    assert!(
        said(&locked).contains("another worker uses the ledger"),
        "{}",
        said(&locked)
    );
    drop(second);
    // Its worker was killed: it may have paid for windows that are not claimed yet.
    let ended = budget_command(&two, "end");
    assert!(
        ended.status.success() && said(&ended).contains("the share of 0.4 ends"),
        "{}",
        said(&ended)
    );
    let again = budget_command(&two, "end");
    assert!(
        again.status.success(),
        "to end twice changes nothing: {}",
        said(&again)
    );
    assert_eq!(said(&again), said(&ended));

    let larger = pipeline(&servers, "larger", Some(&one), &budget, "0.5");
    refuses(
        &larger,
        &["no share of 0.5 left", "0.4 is left from", "held by one"],
    );
    begin(&third);
    let mut worker = Running::start(&third);
    worker.wait_metric(&third, "synopses_published_total", 6.0);
    let text = show(&two);
    let ended = if text.contains("ended 2") {
        "ended 2"
    } else {
        "until 2"
    };
    for words in [
        "epsilon 0.6: one",
        "0.4 of the total, epsilon 0.4: two",
        ended,
        "0.3 of the total, epsilon 0.3: third",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        text.contains("0.1 of the total, epsilon 0.1 from"),
        "{text}"
    );
    worker.terminate();
    assert!(worker.end(&third).success(), "{}", third.read_log());

    let told = two
        .bernstream(&["ledger", "show"])
        .arg(two.configuration())
        .output()
        .expect("it runs");
    let share = "its total, 0.4, is a share of 0.4 of its input's whole total, 1, which pipelines share in the budget topic";
    assert!(said(&told).contains(share), "{}", said(&told));

    // What has ended releases nothing more, and says so.
    let published = two.published().len();
    let mut worker = Running::start(&two);
    two.wait_log("the share of this ledger in the budget topic");
    worker.wait_metric(&two, "windows_withheld_total", 1.0);
    worker.wait_metric(&two, "privacy_budget_lasts_until_timestamp_seconds", 1.0);
    worker.terminate();
    assert!(worker.end(&two).success(), "{}", two.read_log());
    let until = Ledger::inspect(&params(&two.ledger()))
        .expect("the ledger")
        .until()
        .expect("an end");
    let explained = said(
        &two.bernstream(&["explain"])
            .arg(two.configuration())
            .output()
            .expect("it runs"),
    );
    let ends = format!("its share of the input's total ends: no block from {until} on is charged");
    assert!(
        explained.contains(&ends) && explained.contains("no window is published any more"),
        "{explained}"
    );
    let explained = two
        .bernstream(&["explain", "--json"])
        .arg(two.configuration())
        .output()
        .expect("it runs");
    let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    assert_eq!(
        explained["ledger"]["windows_paid"], 0,
        "{}",
        explained["ledger"]
    );
    drop(first);
    let sums = charged(&[&one, &two, &third]);
    assert!(
        sums.values().all(|sum| *sum <= 1_000_000_000_000),
        "{sums:?}"
    );
    assert!(
        sums.values().any(|sum| *sum == 1_000_000_000_000),
        "both released a window: {sums:?}"
    );
    assert!(
        sums.range(until..).all(|(_, sum)| *sum <= 900_000_000_000),
        "{sums:?}"
    );
    assert!(charged(&[&two]).range(until..).next().is_none());
    // What was paid for before its end, and not published yet.
    assert!(two.published().len() >= published);
    for setup in [&one, &two, &third] {
        let verified = setup.ledger_command(&["verify"]);
        assert!(verified.status.success(), "{}", said(&verified));
        assert!(
            said(&verified).contains("knows its share"),
            "{}",
            said(&verified)
        );
    }
    let checked = check(&larger);
    let told = said(&checked);
    assert!(
        !checked.status.success()
            && told.contains("no share of 0.5 left")
            && !told.contains(&has_share),
        "{told}"
    );
}

#[test]
fn a_crash_between_entry_and_ledger_and_a_lost_ledger_go_on_with_the_same_share() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let one = pipeline(&servers, "one", None, &kafka::fresh_name("budget"), "0.6");
    make_budget(&one);
    // The entry is written, and the ledger cannot be.
    let in_the_way = one.ledger().join("ledger.sqlite.new");
    fs::create_dir_all(&in_the_way).expect("a folder");
    let failed = one.ledger_command(&["init"]);
    assert!(
        !failed.status.success() && said(&failed).contains("ledger.sqlite.new"),
        "{}",
        said(&failed)
    );
    assert!(
        show(&one).contains("0.6 of the total, epsilon 0.6: one"),
        "{}",
        show(&one)
    );
    fs::remove_dir(&in_the_way).expect("it is empty");
    // `run` makes it: nothing was ever claimed.
    run(&one, 4.0);
    assert!(
        show(&one).contains("generation 0") && !show(&one).contains("generation 1"),
        "{}",
        show(&one)
    );

    let before = charged(&[&one]);
    fs::remove_dir_all(one.ledger()).expect("it is lost");
    begin(&one);
    run(&one, 4.0);
    // The next generation holds the same share from its first block on, and the old one nothing any more.
    let text = show(&one);
    assert_eq!(
        text.matches("0.6 of the total, epsilon 0.6: one").count(),
        2,
        "{text}"
    );
    assert_eq!(text.matches("without an end").count(), 1, "{text}");
    assert!(
        text.contains("0.4 of the total, epsilon 0.4 from"),
        "{text}"
    );
    let after = charged(&[&one]);
    assert!(
        before.keys().all(|block| !after.contains_key(block)),
        "{before:?} and {after:?}"
    );

    // Another share needs the end of this one, and another ledger.
    let ours = fs::read_to_string(one.configuration()).expect("the configuration");
    one.edit("share = 0.6", "share = 0.5");
    one.edit("epsilon = 0.6\ndegree", "epsilon = 0.5\ndegree");
    let refused = one
        .bernstream(&["run"])
        .arg(one.configuration())
        .output()
        .expect("it runs");
    assert!(
        said(&refused).contains("privacy.budget.share: \"0.6\" in the ledger, \"0.5\" in the file"),
        "{}",
        said(&refused)
    );
    let edited = fs::read_to_string(one.configuration()).expect("the configuration");
    for (from, to, told) in [
        (
            "epsilon = 1.0\n",
            "epsilon = 2.0\n",
            "the whole total of [privacy]",
        ),
        (
            "\"add_remove\"",
            "{ replace_one = { records_per_window = 9 } }",
            "adjacency",
        ),
    ] {
        fs::write(one.configuration(), &ours).expect("it is written");
        one.edit(from, to);
        let refused = one
            .bernstream(&["run"])
            .arg(one.configuration())
            .output()
            .expect("it runs");
        assert!(
            !refused.status.success() && said(&refused).contains(told),
            "{told}: {}",
            said(&refused)
        );
    }
    fs::write(one.configuration(), edited).expect("it is written");
    let moved = one.folder.path().join("before");
    fs::rename(one.ledger(), &moved).expect("it is moved");
    refuses(
        &one,
        &[
            "holds a share of 0.6",
            "asks for 0.5",
            "bernstream budget end",
        ],
    );
    let changed = fs::read_to_string(one.configuration()).expect("the configuration");
    fs::write(one.configuration(), &ours).expect("it is written");
    fs::rename(&moved, one.ledger()).expect("it is moved back");
    assert!(budget_command(&one, "end").status.success());
    fs::rename(one.ledger(), &moved).expect("it is moved");
    fs::write(one.configuration(), changed).expect("it is written");
    begin(&one);
    run(&one, 2.0);
    assert!(show(&one).contains("generation 2"), "{}", show(&one));
}

#[test]
fn a_share_that_has_ended_stays_ended_in_a_ledger_that_is_built_from_its_log() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = pipeline(&servers, "one", None, &kafka::fresh_name("budget"), "0.6");
    add_log(&setup, 1);
    make_budget(&setup);
    begin(&setup);
    let ended = budget_command(&setup, "end");
    assert!(ended.status.success(), "{}", said(&ended));
    let until = || {
        Ledger::inspect(&params(&setup.ledger()))
            .expect("the ledger")
            .until()
    };
    let before = until();
    fs::remove_dir_all(setup.ledger()).expect("the disk is lost");
    let restored = setup.ledger_command(&["restore"]);
    assert!(restored.status.success(), "{}", said(&restored));
    assert!(before.is_some() && until() == before);
    let verified = setup.ledger_command(&["verify"]);
    assert!(
        verified.status.success() && said(&verified).contains("knows its share"),
        "{}",
        said(&verified)
    );
}

#[test]
fn an_entry_of_another_budget_is_refused_with_what_differs() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (budget, one) = first(&servers, "0.1");
    let other = |edits: &[(&str, &str)], words: &str| {
        let setup = pipeline(&servers, "other", Some(&one), &budget, "0.1");
        edits.iter().for_each(|(from, to)| setup.edit(from, to));
        refuses(&setup, &["is of another budget", words]);
    };
    other(
        &[("length = \"1s\"", "length = \"2s\"")],
        "the blocks is one every 1s",
    );
    other(
        &[("epsilon = 1.0", "epsilon = 2.0")],
        "the whole total is 1 there, and 2 here",
    );
    other(
        &[(
            "\"add_remove\"",
            "{ replace_one = { records_per_window = 9 } }",
        )],
        "privacy.adjacency is",
    );
    other(
        &[("time = \"time\"", "time = \"when\"")],
        "input.time is time there, and when here",
    );
    let elsewhere = pipeline(&servers, "other", None, &budget, "0.1");
    refuses(&elsewhere, &["is of another budget", "another input topic"]);
    assert_eq!(
        show(&one).matches("generation").count(),
        1,
        "none of them has left an entry"
    );

    // A topic that can lose records holds no budget.
    let setup = pipeline(
        &servers,
        "other",
        Some(&one),
        &kafka::fresh_topic(&servers, "weak", 1, &[("cleanup.policy", "compact")]),
        "0.1",
    );
    refuses(
        &setup,
        &[
            "cleanup.policy = compact",
            "a budget must never lose a record",
        ],
    );
    let checked = setup
        .bernstream(&["check"])
        .arg(setup.configuration())
        .output()
        .expect("it runs");
    assert!(
        !checked.status.success() && said(&checked).contains("Other pipelines"),
        "{}",
        said(&checked)
    );
}

fn delete(servers: &str, name: &str) {
    let admin: AdminClient<DefaultClientContext> = kafka::at(servers)
        .client_config()
        .expect("settings")
        .create()
        .expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime
        .block_on(admin.delete_topics(&[name], &AdminOptions::new()))
        .expect("it is deleted");
}

fn made_anew(params: &OrderedTopicParams) {
    delete(&params.broker.servers, &params.topic);
    wait_for("a new topic", String::new, || {
        BudgetTopic::create(params, 1).ok()
    });
}

pub fn topic_of(servers: &str) -> OrderedTopicParams {
    OrderedTopicParams {
        broker: kafka::at(servers),
        topic: kafka::fresh_name("budget"),
        min_insync_replicas: 1,
        power_loss: PowerLoss::Together,
    }
}

pub fn wanted(params: &OrderedTopicParams, owner: &str, millionths: u32) -> WantedShare {
    let blocks = BlockGrid::Every {
        origin: Timestamp::from_micros(0),
        length: 1_000_000,
    };
    WantedShare {
        topic: params.topic.clone(),
        owner: owner.to_owned(),
        pipeline: owner.to_owned(),
        share: bernstream_synopsis::Fraction::from_millionths(millionths).expect("a share"),
        of: BudgetTerms {
            fields: None,
            input: "i".into(),
            unit: json!("record"),
            time: "t".into(),
            time_format: None,
            blocks,
            adjacency: json!("add_remove"),
            total: Price::Pure("1".parse().expect("a total")),
        },
        from: Timestamp::from_micros(5_000_000),
        may_wait: true,
        was_claimed: false,
    }
}

#[test]
fn a_claim_is_refused_where_the_topic_was_made_anew_or_the_share_has_ended() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let params = topic_of(&servers);
    BudgetTopic::create(&params, 1).expect("it is created");
    let witness = OrderedTopicParams {
        topic: kafka::fresh_name("witness"),
        ..params.clone()
    };
    KafkaWitness::create(&witness, 1).expect("it is created");
    let claim = |previous: Option<u64>, sequence: u64, block: i64| {
        let head = |sequence: u64| Head {
            sequence,
            digest: Digest::of_bytes(&sequence.to_be_bytes()),
        };
        let last_block_end = Timestamp::from_micros(block * 1_000_000);
        WitnessClaim {
            previous: previous.map(head),
            head: head(sequence),
            last_block_end,
            maker: None,
        }
    };
    let mut topic = BudgetTopic::open(&params).expect("it opens");
    let (holder, from) = topic.join(&wanted(&params, "a", 600_000)).expect("it fits");
    assert_eq!(
        (holder.clone(), from.micros()),
        (
            ShareHolder {
                owner: "a".into(),
                generation: 0
            },
            5_000_000
        )
    );
    assert!(
        topic.join(&wanted(&params, "b", 600_000)).is_err(),
        "only 0.4 is left"
    );
    let plain = || Box::new(KafkaWitness::open(&witness).expect("it opens"));
    let mut guarded = GuardedWitness::new(plain(), topic, holder.clone());
    guarded.append(&claim(None, 0, 6)).expect("its share holds");

    // Another program ends it.
    let until = Timestamp::from_micros(8_000_000);
    let mut other = BudgetTopic::open(&params).expect("it opens");
    assert_eq!(other.end(&holder, until).expect("it ends"), until);
    guarded
        .append(&claim(Some(0), 1, 8))
        .expect("a block before the end");
    let refused = guarded
        .append(&claim(Some(1), 2, 9))
        .expect_err("a block after the end");
    assert!(
        !refused.is_transient() && refused.to_string().contains("has ended at"),
        "{refused}"
    );
    assert!(
        other
            .join(&wanted(&params, "b", 600_000))
            .expect("it fits")
            .1
            == until,
        "from the end on"
    );

    made_anew(&params);
    let refused = guarded
        .append(&claim(Some(1), 2, 8))
        .expect_err("another topic");
    assert!(
        !refused.is_transient() && refused.to_string().contains("was deleted and created anew"),
        "{refused}"
    );
    let accepted = guarded
        .read()
        .expect("it can be read")
        .map(|claim| claim.head.sequence);
    assert_eq!(
        accepted,
        Some(1),
        "the witness was told of nothing that the share does not cover"
    );
}

#[test]
fn of_two_that_take_what_fits_once_at_the_same_time_one_holds() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    for _ in 0..5 {
        let params = topic_of(&servers);
        BudgetTopic::create(&params, 1).expect("it is created");
        let together = std::sync::Barrier::new(2);
        let takes = |owner: &str| {
            let mut topic = BudgetTopic::open(&params).expect("it opens");
            together.wait();
            topic.join(&wanted(&params, owner, 600_000)).is_ok()
        };
        let hold = std::thread::scope(|scope| {
            let threads = ["a", "b"].map(|owner| scope.spawn(move || takes(owner)));
            threads.map(|thread| thread.join().expect("it ends"))
        });
        assert_eq!(hold.iter().filter(|held| **held).count(), 1, "{hold:?}");
    }
}

#[test]
fn whoever_is_killed_while_it_begins_goes_on_with_the_share_that_it_took() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (budget, one) = first(&servers, "0.6");
    let two = pipeline(&servers, "two", Some(&one), &budget, "0.4");
    let mut command = two.bernstream(&["ledger", "init"]);
    let mut child = command.arg(two.configuration()).spawn().expect("it starts");
    wait_for("an entry", String::new, || {
        (read_topic(&servers, &budget).len() == 2).then_some(())
    });
    // Whether its ledger was made by then or not.
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    run(&two, 2.0);
    assert_eq!(read_topic(&servers, &budget).len(), 2, "{}", show(&one));
    assert!(
        show(&one).contains("0.4 of the total, epsilon 0.4: two"),
        "{}",
        show(&one)
    );

    // A share cannot be given back where it was spent.
    let mut ledger = Ledger::open(&params(&two.ledger())).expect("the ledger");
    let spent = ledger.genesis().first;
    let refused = ledger
        .end_share(spent)
        .expect_err("its first block was charged");
    assert!(
        refused.to_string().contains("the share cannot end at"),
        "{refused}"
    );
}

/// A topic that was deleted, or whose name was mistyped, says of everything that it is left.
#[test]
fn only_who_asks_for_it_makes_a_budget_topic() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (budget, one) = first(&servers, "0.6");
    let again = budget_command(&one, "init");
    assert!(
        again.status.success() && said(&again).contains("is there already"),
        "{}",
        said(&again)
    );
    let mistyped = pipeline(
        &servers,
        "two",
        Some(&one),
        &format!("{budget}-typo"),
        "1.0",
    );
    let told = refuses(
        &mistyped,
        &[
            &format!("{budget}-typo is missing"),
            "bernstream budget init",
        ],
    );
    assert!(!told.contains("created"), "nothing is made: {told}");
    let broker = kafka::at(&servers);
    assert!(topic::describe_topic(&broker, &format!("{budget}-typo")).is_err());
}

/// What fails for want of a folder has not taken the share from a ledger that goes on.
#[test]
fn a_ledger_that_cannot_be_made_takes_nothing_over() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (_, one) = first(&servers, "0.6");
    run(&one, 2.0);
    let there = format!("path = \"{}\"", one.ledger().display());
    one.edit(&there, "path = \"/dev/null/ledger\"");
    let failed = one.ledger_command(&["init", "--replace"]);
    assert!(
        !failed.status.success() && said(&failed).contains("/dev/null/ledger"),
        "{}",
        said(&failed)
    );
    one.edit("path = \"/dev/null/ledger\"", &there);
    assert!(!show(&one).contains("generation 1"), "{}", show(&one));
    run(&one, 4.0);

    // A crash after the entry was written has: then only the newer one can end it.
    let in_the_way = one.folder.path().join("newer/ledger.sqlite.new");
    fs::create_dir_all(&in_the_way).expect("a folder");
    let newer = format!("path = \"{}\"", one.folder.path().join("newer").display());
    one.edit(&there, &newer);
    let failed = one.ledger_command(&["init", "--replace"]);
    assert!(
        !failed.status.success() && said(&failed).contains("ledger.sqlite.new"),
        "{}",
        said(&failed)
    );
    one.edit(&newer, &there);
    let ended = budget_command(&one, "end");
    let told = said(&ended);
    assert!(
        !ended.status.success() && told.contains("of generation 1, has taken the share over"),
        "{told}"
    );
    assert!(!told.contains("another pipeline may take it"), "{told}");
    fs::remove_dir(&in_the_way).expect("it is empty");
    one.edit(&there, &newer);
    begin(&one);
    let ended = budget_command(&one, "end");
    assert!(
        ended.status.success() && said(&ended).contains("another pipeline may take it"),
        "{}",
        said(&ended)
    );
}

#[test]
fn a_worker_whose_budget_topic_is_made_anew_claims_nothing_more() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (budget, one) = first(&servers, "0.6");
    let mut worker = Running::start(&one);
    worker.wait_metric(&one, "synopses_published_total", 4.0);
    let params = OrderedTopicParams {
        broker: kafka::at(&servers),
        topic: budget.clone(),
        min_insync_replicas: 1,
        power_loss: PowerLoss::Together,
    };
    made_anew(&params);
    let claims = read_topic(&servers, &one.witness).len();
    // It may have asked in between, when there was none.
    worker.refuses(&one, &[&format!("the budget topic {budget}")]);
    let log = one.read_log();
    assert!(
        log.contains("was deleted and created anew") || log.contains("is missing"),
        "{log}"
    );
    // One claim may have been on its way.
    let later = read_topic(&servers, &one.witness).len();
    assert!(later <= claims + 1, "{claims} and {later}");
    let mut again = Running::start(&one);
    again.refuses(&one, &["was deleted and created anew"]);
    let gone = one
        .bernstream(&["budget", "end"])
        .arg(one.configuration())
        .output()
        .expect("it runs");
    assert!(
        !gone.status.success() && said(&gone).contains("was deleted and created anew"),
        "{}",
        said(&gone)
    );
    assert_eq!(
        topic::describe_topic(&params.broker, &budget)
            .expect("the topic")
            .partitions
            .len(),
        1
    );
}

const FLIGHTS: &str = include_str!("../data/lattice.toml");

#[test]
fn a_share_of_the_total_is_rounded_down_and_needs_topics() {
    let parse = |edits: &[(&str, &str)]| {
        let edited = edits.iter().fold(FLIGHTS.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        WorkerSettings::parse(&edited, "test")
    };
    let budget = |share: &str| format!("[privacy]\nbudget = {{ topic = \"b\", share = {share} }}");
    let with = budget("0.333333");
    let own = ("epsilon = 1.0\ndegree", "epsilon = 0.333333\ndegree");
    let shared = parse(&[
        ("[privacy]", &with),
        ("epsilon = 1.0\n\n", "epsilon = 1.000000000001\n\n"),
        own,
    ]);
    let shared = shared.expect("a share");
    assert_eq!(
        shared.privacy.total,
        Price::Pure("0.333333".parse().expect("a total")),
        "rounded down"
    );
    assert!(
        shared
            .normalised
            .contains(r#""budget":{"share":"0.333333","total":"1.000000000001"}"#),
        "{}",
        shared.normalised
    );
    assert!(!parse(&[]).expect("no share").normalised.contains("budget"));
    // No more than its share can pay for a window.
    assert!(parse(&[("[privacy]", &with)]).is_err());
    let faults = |edits: &[(&str, &str)]| parse(edits).expect_err("a fault").to_string();
    let with = budget("0.5");
    let said = faults(&[
        ("[privacy]", &with),
        (
            "adjacency =",
            "composition = \"plan\"\nwindows = 3\ndelta = 1e-9\nadjacency =",
        ),
    ]);
    assert!(said.contains("cannot be shared with others"), "{said}");
    for (share, words) in [
        ("0", "above 0"),
        ("1.1", "at most 1"),
        ("0.1234567", "6 decimals"),
    ] {
        let said = faults(&[("[privacy]", &budget(share))]);
        assert!(said.contains(words), "{said}");
    }
    let output = FLIGHTS
        .split("[output.kafka]")
        .nth(1)
        .and_then(|rest| rest.split("[ledger]").next())
        .expect("an output");
    let said = faults(&[
        ("[privacy]", &with),
        (
            &format!("[output.kafka]{output}"),
            "[output]\nfiles = { path = \"out\" }\n\n",
        ),
    ]);
    assert!(
        said.contains("an output of files has none") && said.contains("privacy.budget"),
        "{said}"
    );
}

#[test]
fn pipelines_that_share_a_budget_must_say_alike_how_times_are_written() {
    let shared = |time_format: &str| {
        let text = FLIGHTS
            .replacen(
                "time = \"time\"\n",
                &format!("time = \"time\"\n{time_format}"),
                1,
            )
            .replacen(
                "key = { column = \"origin\"",
                "key = { column = \"origin\", type = \"text\"",
                1,
            )
            .replacen("[input.kafka]", "[input.kafka]\nformat = \"json\"", 1)
            .replacen(
                "[privacy]",
                "[privacy]\nbudget = { topic = \"b\", share = 1.0 }",
                1,
            );
        let settings =
            WorkerSettings::parse(&text, "test").unwrap_or_else(|faults| panic!("{faults}"));
        settings
            .shared_budget_terms("input".into())
            .expect("a budget")
    };
    let seconds = shared("time_format = \"seconds\"\n");
    assert_eq!(
        seconds.difference(&shared("time_format = \"seconds\"\n")),
        None
    );
    // The same integer lies in another block.
    let said = seconds.difference(&shared("time_format = \"milliseconds\"\n"));
    assert_eq!(
        said.as_deref(),
        Some("input.time_format is \"milliseconds\" there, and \"seconds\" here")
    );
    assert!(
        seconds
            .difference(&shared(""))
            .expect("they differ")
            .contains("\"rfc3339\" there")
    );
    let arrow = BudgetTerms {
        time_format: None,
        ..seconds.clone()
    };
    assert!(
        seconds
            .difference(&arrow)
            .expect("they differ")
            .contains("not declared there")
    );
    let written = json!(arrow).to_string();
    assert!(
        !written.contains("time_format"),
        "as entries were written before: {written}"
    );
}
