//! A storm: workers that are killed at system calls, torn, cut off from power, frozen and misled, again and again, and a judge who
//! knows what must have come of it. One minute of it here; for hours:
//!
//! ```text
//! BERNSTREAM_STORM_MINUTES=60 BERNSTREAM_STORM_SEED=2 cargo test --test storm a_storm -- --nocapture
//! ```
//!
//! What fails is made small, and printed as a line that can be given again as `BERNSTREAM_STORM_SCHEDULE`.

#[path = "../harness/mod.rs"]
mod harness;

mod controls;
mod counts;
mod episode;
mod judge;
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
use self::episode::{Place, play};
use self::harness::kafka::{self, Own};
use self::harness::preload;
use self::schedule::Schedule;

/// How many pipelines have their storm at the same time: they wait more than they work.
const LANES: u64 = 3;

fn setting<T: FromStr<Err: Display>>(name: &str, otherwise: T) -> T {
    let Ok(text) = env::var(name) else { return otherwise };
    text.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Unlike `println!` not captured.
fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// A place to play: the broker of all tests, or one of its own.
fn place(servers: &str, lane: u64) -> Place {
    if lane > 0 {
        return Place { servers: servers.to_owned(), own: None };
    }
    let own = Own::start();
    Place { servers: own.servers.clone(), own: Some(own) }
}

#[test]
fn a_storm_loses_nothing_and_publishes_nothing_twice() {
    let Some(servers) = kafka::broker() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_) = preload::build("storm/faults.c", folder.path()) else { return };
    let seed: u64 = setting("BERNSTREAM_STORM_SEED", 17);
    let time = Duration::from_secs_f64(60.0 * setting("BERNSTREAM_STORM_MINUTES", 1.0));
    let lanes = setting("BERNSTREAM_STORM_LANES", LANES);
    let counts = Counts::default();
    let failures = Mutex::new(Vec::new());
    if let Ok(line) = env::var("BERNSTREAM_STORM_SCHEDULE") {
        let schedule: Schedule = line.parse().expect("a schedule");
        let lane = u64::from(!schedule.harms_the_broker());
        let played = play(&schedule, &place(&servers, lane), &counts);
        say(&format!("{counts}"));
        played.expect("it loses nothing");
        return;
    }
    say(&format!("a storm of {time:?} from seed {seed}: BERNSTREAM_STORM_SEED={seed}"));
    let (begun, next) = (Instant::now(), AtomicU64::new(0));
    thread::scope(|scope| {
        for lane in 0..lanes {
            let (counts, failures, servers, next) = (&counts, &failures, &servers, &next);
            scope.spawn(move || {
                let place = place(servers, lane);
                while begun.elapsed() < time {
                    let schedule =
                        Schedule::draw(seed.wrapping_mul(1_000_003) + next.fetch_add(1, Relaxed), place.site());
                    if let Err(why) = play(&schedule, &place, counts) {
                        let told = told(&schedule, &why, &place, time);
                        say(&told);
                        failures.lock().expect("the list").push(told);
                    }
                }
            });
        }
    });
    say(&format!("{counts}{:>9.1}  minutes", begun.elapsed().as_secs_f64() / 60.0));
    let failures = failures.into_inner().expect("the list");
    assert!(failures.is_empty(), "seed {seed}:\n{}", failures.join("\n"));
    assert!(counts.of("seen: episodes") > 0, "no episode came to its end");
}

/// What failed, and the smallest schedule that still does.
fn told(schedule: &Schedule, why: &str, place: &Place, time: Duration) -> String {
    say(&format!("FAILED: {why}\n  schedule: {schedule}\n  making it smaller"));
    let unseen = Counts::default();
    // What fails only now and then gets a second chance.
    let fails = |schedule: &Schedule| (0..2).any(|_| play(schedule, place, &unseen).is_err());
    let smallest = shrink::smallest(schedule, time.clamp(Duration::from_secs(60), Duration::from_secs(600)), fails);
    format!("FAILED: {why}\n  schedule: {schedule}\n  smaller:  BERNSTREAM_STORM_SCHEDULE='{smallest}'")
}
