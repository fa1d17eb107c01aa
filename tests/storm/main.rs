//! A storm: workers that are killed at system calls, torn, cut off from power, frozen and misled, again and again, and a judge who
//! knows what must have come of it. One minute of it here; for hours:
//!
//! ```text
//! BERNSTREAM_STORM_MINUTES=60 BERNSTREAM_STORM_SEED=2 cargo test --test storm a_storm -- --nocapture
//! ```
//!
//! What fails is made small, and printed as a line that can be given again as `BERNSTREAM_STORM_SCHEDULE`.
#![allow(clippy::too_many_lines, reason = "lists of cases")]

#[path = "../harness/mod.rs"]
mod harness;

mod controls;
mod counts;
mod disk;
mod episode;
mod judge;
mod place;
mod power;
mod schedule;
mod sender;
mod shrink;
mod storm;
mod topics;
mod worker;

use std::env;
use std::fmt::Display;
use std::io::Write;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use self::counts::Counts;
use self::episode::play;
use self::harness::kafka::{self, Own};
use self::harness::{cluster, preload};
use self::place::{Flush, Place};
use self::schedule::Schedule;

/// How many pipelines have their storm at the same time: they wait more than they work.
const LANES: u64 = 3;

/// Between two reports of what was counted so far.
const BETWEEN_COUNTS: Duration = Duration::from_secs(300);

fn setting<T: FromStr<Err: Display>>(name: &str, otherwise: T) -> T {
    let Ok(text) = env::var(name) else {
        return otherwise;
    };
    text.parse()
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Unlike `println!` not captured.
fn say(words: &str) {
    let _ = writeln!(std::io::stdout(), "{words}");
}

/// By hand: three brokers, and what is between them; with `BERNSTREAM_STORM_CLUSTER=power` their power fails too.
#[test]
fn a_storm_over_three_brokers() {
    let inside = match env::var("BERNSTREAM_STORM_CLUSTER").as_deref() {
        Ok("power") => cluster::inside_on_disks,
        Ok(_) => cluster::inside,
        Err(_) => {
            say(
                "NOT tested without BERNSTREAM_STORM_CLUSTER=1 or =power: a storm over three brokers",
            );
            return;
        }
    };
    // One at a time: the cluster is one for all.
    if let Some(brokers) = inside("a_storm_over_three_brokers", 1000) {
        let place = Mutex::new(Some(Place::Cluster {
            brokers,
            claims: Flush::AtOnce,
        }));
        storm(1, |_| place.lock().expect("free").take().expect("one lane"));
    }
}

/// A storm in so many lanes, each in a place of its own.
fn storm(lanes: u64, place: impl Fn(u64) -> Place + Sync) {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_) = preload::build("storm/faults.c", folder.path()) else {
        return;
    };
    let seed: u64 = setting("BERNSTREAM_STORM_SEED", 17);
    let time = Duration::from_secs_f64(60.0 * setting("BERNSTREAM_STORM_MINUTES", 1.0));
    let counts = Counts::default();
    if let Ok(line) = env::var("BERNSTREAM_STORM_SCHEDULE") {
        let schedule: Schedule = line.parse().expect("a schedule");
        let lane = u64::from(lanes > 1 && !schedule.harms_the_broker());
        let played = play(&schedule, &place(lane), &counts);
        say(&counts.to_string());
        played.expect("it loses nothing");
        return;
    }
    say(&format!(
        "a storm of {time:?} from seed {seed}: BERNSTREAM_STORM_SEED={seed}"
    ));
    let failures = Mutex::new(Vec::new());
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let told_at = Mutex::new(Instant::now());
    thread::scope(|scope| {
        for lane in 0..lanes {
            let counts = &counts;
            let failures = &failures;
            let place = &place;
            let next = &next;
            let told_at = &told_at;
            scope.spawn(move || {
                let place = place(lane);
                while begun.elapsed() < time {
                    let number = seed
                        .wrapping_mul(1_000_003)
                        .wrapping_add(next.fetch_add(1, Relaxed));
                    let schedule = Schedule::draw(number, place.site());
                    if let Err(why) = play(&schedule, &place, counts) {
                        let told = told(&schedule, &why, &place, time);
                        say(&told);
                        failures.lock().expect("the list").push(told);
                    }
                    // What is killed with the storm still counts.
                    let mut told_at = told_at.lock().expect("a time");
                    if told_at.elapsed() > BETWEEN_COUNTS {
                        say(&format!(
                            "{counts}{:>9.1}  minutes",
                            begun.elapsed().as_secs_f64() / 60.0
                        ));
                        *told_at = Instant::now();
                    }
                }
            });
        }
    });
    say(&format!(
        "{counts}{:>9.1}  minutes",
        begun.elapsed().as_secs_f64() / 60.0
    ));
    let failures = failures.into_inner().expect("the list");
    assert!(failures.is_empty(), "seed {seed}:\n{}", failures.join("\n"));
    assert!(
        counts.of("seen: episodes") > 0,
        "no episode came to its end"
    );
}

/// What failed, and the smallest schedule that still does.
fn told(schedule: &Schedule, why: &str, place: &Place, time: Duration) -> String {
    say(&format!(
        "FAILED: {why}\n  schedule: {schedule}\n  making it smaller"
    ));
    let unseen = Counts::default();
    // What fails only now and then gets a second chance.
    let fails = |schedule: &Schedule| (0..2).any(|_| play(schedule, place, &unseen).is_err());
    let smallest = shrink::smallest(
        schedule,
        time.clamp(Duration::from_secs(60), Duration::from_secs(600)),
        fails,
    );
    format!(
        "FAILED: {why}\n  schedule: {schedule}\n  smaller:  BERNSTREAM_STORM_SCHEDULE='{smallest}'"
    )
}

mod long {
    use super::*;

    #[test]
    fn a_storm_loses_nothing_and_publishes_nothing_twice() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        storm(
            setting("BERNSTREAM_STORM_LANES", LANES),
            |lane| match lane {
                // Started for those who harm it.
                0 => Place::Own(Own::start()),
                _ => Place::Shared(servers.clone()),
            },
        );
    }
}
