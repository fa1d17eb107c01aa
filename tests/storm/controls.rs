//! The storm can fail: what it looks for is planted, and found.

use std::fs;
use std::time::Duration;

use super::counts::Counts;
use super::episode::{Episode, play};
use super::harness::kafka;
use super::harness::preload;
use super::harness::setup::{Row, message};
use super::judge::{Evidence, judge};
use super::place::Place;
use super::schedule::{Fault, Schedule, Site};
use super::shrink::smallest;
use super::topics::Message;

/// Where the broker of all tests is, if there is one and a C compiler.
fn place() -> Option<Place> {
    let servers = kafka::broker()?;
    let folder = tempfile::tempdir().expect("a folder");
    preload::build("storm/faults.c", folder.path())?;
    Some(Place::Shared(servers))
}

fn schedule(line: &str) -> Schedule {
    line.parse().expect("a schedule")
}

/// What is planted, what the judge says of it, and how.
type Plant<'a> = (&'a str, &'a str, &'a dyn Fn(&mut Evidence));

/// The longest message that was in time: it has records of every window.
fn longest(evidence: &Evidence) -> usize {
    let in_time = |(_, message): &(usize, &Message)| message.stamp < evidence.rules.backfill_until;
    let messages = evidence.input.iter().enumerate().filter(in_time);
    messages
        .max_by_key(|(_, message)| message.payload.len())
        .expect("there are some")
        .0
}

#[test]
fn what_is_lost_doubled_moved_or_changed_is_found() {
    let Some(place) = place() else { return };
    let quiet = schedule("past:5:1");
    let episode = Episode::new(&quiet, &place);
    episode.storm(&quiet, &place, &Counts::default());
    let whole = episode.evidence();
    let seen = judge(&whole).expect("nothing is wrong with it");
    assert!(
        seen.slots == 10 && seen.taken > 100 && seen.deviation < 0.05,
        "{seen:?}"
    );
    let one = |window: u32, key, stamp: i64| Message {
        partition: 0,
        offset: 1_000_000,
        stamp,
        key: vec![],
        headers: vec![],
        payload: message(&[Row {
            micros: episode.setup.start_of(window).micros(),
            key,
            value: 47.0,
        }]),
    };
    let last = whole.rules.backfill_until - 1000;
    let plants: [Plant<'_>; 9] = [
        ("a record is lost", "off by", &|it| {
            it.input.push(one(2, "a", last))
        }),
        ("a message is counted twice", "off by", &|it| {
            it.input.remove(longest(it));
        }),
        ("a late message is taken", "off by", &|it| {
            let at = longest(it);
            it.input[at].stamp = it.rules.backfill_until;
        }),
        ("a slot is missing", "is missing", &|it| {
            drop((it.output.pop(), it.committed.pop()))
        }),
        (
            "a repeat has another header",
            "was published twice",
            &|it| {
                let mut repeat = it.output[0].clone();
                repeat.headers[0].1 = b"else".to_vec();
                it.output.push(repeat.clone());
                it.committed.push(repeat);
            },
        ),
        ("a message is in an aborted transaction", "differ", &|it| {
            drop(it.committed.pop())
        }),
        ("what is published is garbage", "is no synopsis", &|it| {
            it.output[0].payload = vec![0; 9];
            it.committed[0].payload = vec![0; 9];
        }),
        (
            "a window comes too late",
            "comes after a later one",
            &|it| {
                it.output.reverse();
                it.committed.reverse();
            },
        ),
        (
            "two messages have one id",
            "has the ce_id of another",
            &|it| {
                for messages in [&mut it.output, &mut it.committed] {
                    messages[1].headers = messages[0].headers.clone();
                }
            },
        ),
    ];
    for (what, words, plant) in plants {
        let mut evidence = whole.clone();
        plant(&mut evidence);
        let found = judge(&evidence).expect_err(what);
        assert!(found.contains(words), "{what}: {found}");
    }
    // What the rules leave out changes nothing.
    let mut evidence = whole.clone();
    evidence.input.extend([
        one(2, "a", last + 1000),
        one(2, "unknown", last),
        one(5, "a", last),
    ]);
    judge(&evidence).expect("they belong nowhere");
}

#[test]
fn a_ledger_beside_another_without_their_witness_publishes_twice_and_is_found() {
    let Some(place) = place() else { return };
    let quiet = schedule("past:3:2");
    let episode = Episode::new(&quiet, &place);
    let setup = &episode.setup;
    let text = fs::read_to_string(setup.configuration()).expect("the configuration");
    let other = setup.folder.path().join("other.toml");
    let text = text.replace(&setup.witness, &kafka::fresh_name("witness"));
    fs::write(
        &other,
        text.replace(
            &setup.ledger().display().to_string(),
            &format!("{}-other", setup.ledger().display()),
        ),
    )
    .expect("it is written");
    let from = setup.origin.to_string();
    let run = |arguments: &[&str]| {
        let done = setup.bernstream(arguments).output().expect("it runs");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    let other = other.display().to_string();
    run(&["ledger", "init", &other, "--from", &from]);
    run(&["run", &other]);
    let storm = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        episode.storm(&quiet, &place, &Counts::default());
    }));
    assert!(
        storm.is_err(),
        "`ledger verify` finds what another has published"
    );
    let found = judge(&episode.evidence()).expect_err("each window was drawn for twice");
    assert!(found.contains("was published twice"), "{found}");
}

#[test]
fn a_disk_that_never_syncs_is_found() {
    let Some(place) = place() else { return };
    // A ledger deletes its journal once for each window that it pays for, and once for each time that it marks what was published:
    // by the 21st time something was published, however fast, and whatever is sent at once.
    let lies = schedule("past:20:3 lie:unlink:21:1");
    let found = play(&lies, &place, &Counts::default())
        .expect_err("what was published is no longer in the ledger");
    assert!(
        found.contains("the worker ended with exit status: 74"),
        "{found}"
    );
}

#[test]
fn a_schedule_is_the_same_for_the_same_seed_and_is_read_as_it_is_written() {
    for (seed, site) in (0..900).zip(
        [Site::Shared, Site::Own, Site::Cluster, Site::Powered]
            .into_iter()
            .cycle(),
    ) {
        let drawn = Schedule::draw(seed, site);
        assert_eq!(drawn, Schedule::draw(seed, site));
        assert_eq!(drawn.to_string().parse(), Ok(drawn));
    }
    assert!(
        "past:1:2 killed".parse::<Schedule>().is_err() && "past:1".parse::<Schedule>().is_err()
    );
}

#[test]
fn what_fails_is_made_as_small_as_it_can_be() {
    let drawn = Schedule::draw(5, Site::Own);
    let needed = [drawn.faults[3], drawn.faults[8]];
    let fails = |schedule: &Schedule| {
        needed
            .iter()
            .all(|fault: &Fault| schedule.faults.contains(fault))
    };
    let found = smallest(&drawn, Duration::from_secs(60), fails);
    assert_eq!(found.faults, needed);
    assert_eq!(
        smallest(&drawn, Duration::ZERO, fails),
        drawn,
        "it takes no longer than it may"
    );
}

#[test]
fn a_batch_that_cannot_be_read_is_given_up_and_the_worker_goes_on() {
    let (Some(place), counts) = (place(), Counts::default()) else {
        return;
    };
    play(&schedule("past:5:3 bomb:0:1"), &place, &counts).expect("nothing else is lost");
    assert_eq!(counts.of("kills: to give up a batch"), 1, "{counts}");
}
