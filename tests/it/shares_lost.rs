//! Shares whose ledger is copied, lost or built anew, and ends that come late.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bernstream_kafka::Broker;
use bernstream_kafka::ledger::budget::topic::BudgetTopic;
use bernstream_ledger::Ledger;
use bernstream_ledger::budget::entry::{BudgetRecord, ShareEnd};
use bernstream_ledger::budget::fold::RecordRejection;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::harness::kafka;
use crate::harness::ledger::{at, closing, folder, genesis, params};
use crate::harness::running::Running;
use crate::harness::setup::{Setup, read_topic};
use crate::ledger_log::add_log;
use crate::shares::{
    begin, budget_command, charged, first, make_budget, pipeline, refuses, run, said, show,
    topic_of, wanted,
};

fn ends(setup: &Setup, is_done: bool, words: &[&str]) {
    let ended = budget_command(setup, "end");
    let told = said(&ended);
    assert!(
        ended.status.success() == is_done && words.iter().all(|word| told.contains(word)),
        "{words:?}: {told}"
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("the ledger") {
        let path = entry.expect("a file").path();
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("it is copied");
    }
}

/// Moves the ledger of `setup` away, and puts `other` there; returns where it is.
fn exchange(setup: &Setup, other: &Path, name: &str) -> std::path::PathBuf {
    let away = setup.folder.path().join(name);
    fs::rename(setup.ledger(), &away).expect("it is moved");
    fs::rename(other, setup.ledger()).expect("it is moved");
    away
}

/// How many entries of `pipeline` the budget topic has, void ones too.
fn entries(servers: &str, budget: &str, pipeline: &str) -> usize {
    let is_entry = |payload: &[u8]| matches!(BudgetRecord::decode(payload), Some(BudgetRecord::Share(entry)) if entry.pipeline == pipeline);
    read_topic(servers, budget)
        .iter()
        .filter(|record| is_entry(&record.payload))
        .count()
}

fn append(broker: &Broker, topic: &str, payload: &[u8]) {
    let producer: BaseProducer = broker
        .client_config()
        .expect("settings")
        .create()
        .expect("a producer");
    producer
        .send(BaseRecord::<(), _>::to(topic).payload(payload))
        .expect("it is sent");
    producer.flush(Duration::from_secs(60)).expect("it arrives");
}

#[test]
fn a_ledger_charges_no_block_after_its_end_whoever_asks_it_to() {
    let folder = folder();
    let mut ledger =
        Ledger::create(&params(folder.path()), genesis(at(0), "w", None)).expect("a ledger");
    ledger
        .pay_window(closing(&ledger, &["k"], 1, 1))
        .expect("the first window");
    let refused = ledger
        .end_share(at(60))
        .expect_err("the block up to 120 was charged");
    assert!(
        refused.to_string().contains("the share cannot end at"),
        "{refused}"
    );
    ledger
        .end_share(at(120))
        .expect("a block that was never charged");
    ledger
        .end_share(at(240))
        .expect("what has ended goes on for nobody");
    assert_eq!(ledger.until(), Some(at(120)));
    ledger
        .pay_window(closing(&ledger, &["k"], 1, 2))
        .expect("the second window of the block");
    let refused = ledger
        .pay_window(closing(&ledger, &["k"], 1, 3))
        .expect_err("the next block");
    assert!(
        refused
            .to_string()
            .contains("the share of the budget ends at"),
        "{refused}"
    );
    drop(ledger);
    let mut again = Ledger::open(&params(folder.path())).expect("it opens");
    assert!(
        again.pay_window(closing(&again, &["k"], 1, 3)).is_err(),
        "also when it was opened again"
    );
}

#[test]
fn a_copy_of_a_ledger_neither_ends_the_share_of_one_that_goes_on_nor_spends_it_again() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (budget, one) = first(&servers, "0.6");
    run(&one, 2.0);
    let old = one.folder.path().join("copy");
    copy(&one.ledger(), &old);
    run(&one, 4.0);
    let before = charged(&[&one]);

    // The old copy is behind the witness: what it says of its end is accepted by nobody, so that the share is still held.
    let ours = exchange(&one, &old, "ours");
    ends(&one, false, &["witness"]);
    let until = Ledger::inspect(&params(&one.ledger()))
        .expect("the copy")
        .until();
    assert_eq!(until, None, "it does not even say so to itself");
    assert!(
        show(&one).contains("0.6 of the total, epsilon 0.6: one")
            && show(&one).contains("without an end"),
        "{}",
        show(&one)
    );
    let mut worker = Running::start(&one);
    worker.refuses(&one, &["witness"]);
    let two = pipeline(&servers, "two", Some(&one), &budget, "0.5");
    refuses(
        &two,
        &[
            "no share of 0.5 left",
            "0.4 is left from",
            "held by one (0.6 from",
        ],
    );

    // The original goes on, and its end is an end.
    exchange(&one, &ours, "old");
    run(&one, 2.0);
    assert!(charged(&[&one]).len() > before.len());
    assert_eq!(entries(&servers, &budget, "one"), 1);
    let same = one.folder.path().join("same");
    copy(&one.ledger(), &same);
    // Of two copies that are alike the one that ends the share fences the other.
    let ours = exchange(&one, &same, "ours-again");
    ends(&one, true, &["the share of 0.6 ends"]);
    let until = Ledger::inspect(&params(&one.ledger()))
        .expect("the copy")
        .until()
        .expect("an end");
    exchange(&one, &ours, "same-again");
    let mut worker = Running::start(&one);
    worker.refuses(&one, &["witness"]);
    assert!(
        charged(&[&one]).range(until..).next().is_none(),
        "the other has charged nothing after the end"
    );
    begin(&two);
}

#[test]
fn an_entry_that_is_delivered_again_is_void_also_after_its_end() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let params = topic_of(&servers);
    BudgetTopic::create(&params, 1).expect("it is created");
    let mut topic = BudgetTopic::open(&params).expect("it opens");
    let (holder, from) = topic.join(&wanted(&params, "a", 600_000)).expect("it fits");
    let entry = read_topic(&servers, &params.topic)[0].payload.clone();
    let again = || append(&params.broker, &params.topic, &entry);
    again();
    let until = topic.end(&holder, from).expect("it ends");
    again();
    let left = topic
        .read_shares()
        .expect("it can be read")
        .left_from(until);
    assert_eq!(
        left,
        bernstream_synopsis::Fraction::ALL,
        "the share was not taken again"
    );
    let void: Vec<RecordRejection> = topic
        .void_records()
        .iter()
        .map(|(_, why)| why.clone())
        .collect();
    assert_eq!(void, [RecordRejection::Again, RecordRejection::Again]);
    assert!(topic.join(&wanted(&params, "b", 1_000_000)).is_ok());
    let late = topic
        .join(&wanted(&params, "c", 1))
        .expect_err("nothing is left");
    assert!(late.to_string().contains("0 is left from"), "{late}");
}

#[test]
fn a_share_of_a_user_for_ever_has_no_end() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let budget = kafka::fresh_name("budget");
    let user = "unit = { user = { column = \"key\", per = \"ever\", max_records_per_window = 1 } }";
    let of = |name: &str, share: &str, before: Option<&Setup>| {
        let setup = pipeline(&servers, name, before, &budget, share);
        setup.edit("unit = \"record\"", user);
        setup
    };
    let one = of("one", "0.6", None);
    make_budget(&one);
    begin(&one);
    ends(&one, false, &["has one block", "it never ends"]);
    assert!(show(&one).contains("without an end"), "{}", show(&one));
    let told = refuses(
        &of("two", "0.5", Some(&one)),
        &["no share of 0.5 left: 0.4 is left. It is held by one (0.6);"],
    );
    assert!(
        !told.contains("0001-01-01") && !show(&one).contains("0001-01-01"),
        "there is no other block: {told}"
    );
    let two = of("two", "0.4", Some(&one));
    begin(&two);
    run(&two, 2.0);
}

#[test]
fn a_ledger_that_is_built_from_its_log_goes_on_with_its_share_and_with_its_blocks() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let budget = kafka::fresh_name("budget");
    let one = pipeline(&servers, "one", None, &budget, "0.6");
    add_log(&one, 2);
    make_budget(&one);
    begin(&one);
    run(&one, 4.0);
    let before = charged(&[&one]);
    fs::remove_dir_all(one.ledger()).expect("the disk is lost");
    run(&one, 2.0);
    let after = charged(&[&one]);
    assert!(
        before
            .iter()
            .all(|(block, spent)| after.get(block) == Some(spent))
            && after.len() > before.len()
    );
    assert!(
        after.values().all(|spent| *spent <= 600_000_000_000),
        "{after:?}"
    );
    assert_eq!(
        entries(&servers, &budget, "one"),
        1,
        "the share is the same"
    );
    let verified = one.ledger_command(&["verify"]);
    assert!(
        verified.status.success() && said(&verified).contains("knows its share"),
        "{}",
        said(&verified)
    );
}

/// An end that is to come later, and a ledger that is lost before it has come.
#[test]
fn of_an_end_that_is_to_come_a_lost_ledger_leaves_the_blocks_before_it_to_nobody() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (budget, one) = first(&servers, "0.6");
    run(&one, 2.0);
    let late = one.start_of(3000);
    let mut command = one.bernstream(&["budget", "end", "--from", &late.to_string()]);
    let ended = command.arg(one.configuration()).output().expect("it runs");
    assert!(
        ended.status.success() && said(&ended).contains(&format!("from {late} on")),
        "{}",
        said(&ended)
    );
    let two = pipeline(&servers, "two", Some(&one), &budget, "0.5");
    // It fits from the end on, and may wait for it.
    begin(&two);
    assert!(
        show(&one).contains(&format!(
            "0.5 of the total, epsilon 0.5: two, from {late} on"
        )),
        "{}",
        show(&one)
    );
    fs::remove_dir_all(one.ledger()).expect("it is lost");
    // Nobody knows any more what it has charged of the blocks before its end: a new ledger begins with the end, if it fits then.
    refuses(
        &one,
        &[
            "no share of 0.6 left",
            &format!("0.5 is left from {late} on"),
        ],
    );
    one.edit("share = 0.6", "share = 0.5");
    one.edit("epsilon = 0.6\ndegree", "epsilon = 0.5\ndegree");
    begin(&one);
    let genesis = Ledger::inspect(&params(&one.ledger()))
        .expect("the ledger")
        .genesis()
        .clone();
    assert_eq!(
        (
            genesis.first,
            genesis.budget.map(|holding| holding.generation)
        ),
        (late, Some(1))
    );
}

#[test]
fn an_end_that_only_a_lost_ledger_knew_is_said_again_with_a_new_one() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (budget, one) = first(&servers, "0.6");
    run(&one, 2.0);
    // As if `budget end` was killed after the ledger's own row.
    let mut ledger = Ledger::open(&params(&one.ledger())).expect("the ledger");
    ledger
        .end_share(one.start_of(3000))
        .expect("a block that was never charged");
    drop(ledger);
    assert!(show(&one).contains("without an end"), "{}", show(&one));
    let before = charged(&[&one]);
    fs::remove_dir_all(one.ledger()).expect("it is lost");
    begin(&one);
    run(&one, 2.0);
    let after = charged(&[&one]);
    assert!(
        before.keys().all(|block| !after.contains_key(block)),
        "{before:?} and {after:?}"
    );
    ends(&one, true, &["the share of 0.6 ends"]);
    let text = show(&one);
    assert!(
        text.contains("generation 1") && !text.contains("without an end"),
        "{text}"
    );
    assert_eq!(entries(&servers, &budget, "one"), 2);
}

/// `budget end` is frozen between the ledger's row and the topic, its ledger is lost, and it wakes when the next one has spent.
#[test]
fn an_end_that_comes_after_a_new_ledger_has_spent_frees_nothing() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (budget, one) = first(&servers, "0.6");
    run(&one, 2.0);
    let mut ledger = Ledger::open(&params(&one.ledger())).expect("the ledger");
    let holder = ledger.genesis().holder().expect("a share");
    ledger
        .end_share(one.start_of(3000))
        .expect("a block that was never charged");
    drop(ledger);
    fs::remove_dir_all(one.ledger()).expect("it is lost");
    begin(&one);
    run(&one, 4.0);
    let late = BudgetRecord::End(ShareEnd {
        holder,
        from: Ledger::inspect(&params(&one.ledger()))
            .expect("it")
            .genesis()
            .first,
    });
    append(&kafka::at(&servers), &budget, late.encode().as_bytes());

    run(&one, 4.0);
    assert!(
        show(&one).contains("the record at offset 2: that share has ended before"),
        "{}",
        show(&one)
    );
    let two = pipeline(&servers, "two", Some(&one), &budget, "0.6");
    let start = one.start_of(0).to_string();
    let made = two.ledger_command(&["init", "--from", &start, "--backfill-until", "now"]);
    assert!(
        !made.status.success() && said(&made).contains("no share of 0.6 left"),
        "{}",
        said(&made)
    );
    let verified = one.ledger_command(&["verify"]);
    assert!(verified.status.success(), "{}", said(&verified));

    // An end that frees what was charged, which only somebody who may write to the topic can forge, is noticed afterwards.
    let genesis = Ledger::inspect(&params(&one.ledger()))
        .expect("the ledger")
        .genesis()
        .clone();
    let forged = BudgetRecord::End(ShareEnd {
        holder: genesis.holder().expect("a share"),
        from: genesis.first,
    });
    append(&kafka::at(&servers), &budget, forged.encode().as_bytes());
    let verified = one.ledger_command(&["verify"]);
    let after = format!("it has charged blocks after that, from {}", genesis.first);
    assert!(
        !verified.status.success() && said(&verified).contains(&after),
        "{}",
        said(&verified)
    );
}

#[test]
fn budget_end_says_what_the_file_has_that_the_ledger_has_not() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (budget, one) = first(&servers, "0.6");
    let (other, _) = first(&servers, "0.6");
    let ours = fs::read_to_string(one.configuration()).expect("the configuration");
    let topic = format!("budget = {{ topic = \"{budget}\", share = 0.6 }}");
    for (edited, words) in [
        (
            topic.replace(&budget, &other),
            "is not the one that this ledger has its share in",
        ),
        (
            topic.replace("0.6", "0.7"),
            "privacy.budget.share: \"0.6\" in the ledger, \"0.7\" in the file",
        ),
        (String::new(), "privacy.budget"),
    ] {
        one.edit(&topic, &edited);
        ends(&one, false, &[words]);
        fs::write(one.configuration(), &ours).expect("it is written");
    }
    ends(&one, true, &["the share of 0.6 ends"]);
    let later = one
        .bernstream(&["budget", "end", "--from", "2100-01-01T00:00:00Z"])
        .arg(one.configuration())
        .output();
    let later = later.expect("it runs");
    assert!(
        later.status.success() && said(&later).contains("is final: --from changes nothing"),
        "{}",
        said(&later)
    );
}

#[test]
fn an_end_that_no_witness_has_accepted_yet_frees_nothing() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let budget = kafka::fresh_name("budget");
    let one = pipeline(&servers, "one", None, &budget, "0.6");
    add_log(&one, 3);
    make_budget(&one);
    begin(&one);
    run(&one, 2.0);
    // The ledger says so, and the claim cannot be made: a body has to be in the log first, and there is none of that name.
    one.edit("log = \"", "log = \"no-");
    ends(&one, false, &["no ledger log no-"]);
    assert!(show(&one).contains("without an end"), "{}", show(&one));
    let two = pipeline(&servers, "two", Some(&one), &budget, "0.5");
    refuses(&two, &["no share of 0.5 left", "held by one (0.6 from"]);
    one.edit("log = \"no-", "log = \"");
    ends(&one, true, &["the share of 0.6 ends"]);
    begin(&two);
}
