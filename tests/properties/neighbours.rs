//! Neighbouring streams through a whole worker in memory, with the noise frozen, for every function, noise, window, unit and
//! composition: one unit more or less changes the released values, by no more than is declared, and nothing else.
//!
//! `BERNSTREAM_NEIGHBOURS=3600 cargo test --test properties -- neighbours:: --nocapture` replays for an hour;
//! `BERNSTREAM_NEIGHBOURS_SEED=2` has another order.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use bernstream::audit::compare::{Part, Report, compare};
use bernstream::audit::messages::{Body, Message};
use bernstream::audit::{Observed, Pair, Stamps, Subject, neighbours, replay, run};
use bernstream::config::{Input, Settings};
use bernstream::pipeline::{Plan, Release};
use rand::SeedableRng;
use rand::rngs::ChaCha20Rng;
use rand::seq::SliceRandom;

use crate::configurations::{self, CHOICES};
use crate::harness::plan::plan as plan_of;
use crate::memory::peak_of;

/// For how long pairs are replayed in the test command.
const SECONDS: u64 = 40;
const THREADS: usize = 2;
/// So many configurations in any case; on an idle machine nearly all of them, in an order that the seed determines.
const LEAST: usize = 24;
/// So many pairs of each configuration are replayed in any case: those that move most.
const FIRST: usize = 6;
/// How many couples of choices the array covers.
const COVERED: usize = 1119;

/// Who stamps the messages of an input.
fn stamps(settings: &Settings) -> Stamps {
    match &settings.input {
        Input::Files(_) => Stamps::None,
        Input::Kafka(kafka) if kafka.trust_producer_time => Stamps::Producers,
        Input::Kafka(kafka) => Stamps::Broker { slack: kafka.clock_slack },
    }
}

fn subject<'a>(settings: &'a Settings, plan: &'a Plan) -> Subject<'a> {
    Subject { plan, columns: &settings.columns, adjacency: settings.privacy.adjacency, stamps: stamps(settings) }
}

#[test]
fn one_unit_more_or_less_changes_released_values_by_no_more_than_declared_and_nothing_else() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a whole number"));
    let seconds = number("BERNSTREAM_NEIGHBOURS").unwrap_or(SECONDS);
    let seed = number("BERNSTREAM_NEIGHBOURS_SEED").unwrap_or(1);
    let started = Instant::now();
    let rows = configurations::array();
    println!("seed {seed}");
    covers(&rows);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.shuffle(&mut ChaCha20Rng::seed_from_u64(seed));
    order.sort_by_key(|at| !has_shown_a_fault(&rows[*at]));
    let next = AtomicUsize::new(0);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let share = Duration::from_secs(seconds).mul_f64(THREADS as f64 / rows.len() as f64);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Relaxed);
            if place >= LEAST && Instant::now() > deadline {
                return done;
            }
            let at = order[place % rows.len()];
            let until = Instant::now() + share;
            let settings = configurations::parsed(&rows[at]).unwrap_or_else(|why| panic!("it is refused now: {why}"));
            done.push((at, replayed(&settings, seed + place as u64, until), configurations::shown(&rows[at])));
        }
    };
    let mut reports: BTreeMap<usize, (String, Report)> = BTreeMap::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for (at, report, name) in threads.into_iter().flat_map(|thread| thread.join().expect("no replay panicked")) {
            let (_, all) = reports.entry(at).or_insert_with(|| (name, Report::default()));
            all.join(report);
        }
    });
    let pairs: usize = reports.values().map(|(_, report)| report.pairs).sum();
    println!("{pairs} pairs of {} configurations in {:?}", reports.len(), started.elapsed());
    table(&rows, &reports);
    let wrong: Vec<String> = reports
        .values()
        .flat_map(|(name, report)| {
            report.violations.iter().chain(&report.beyond).map(move |(pair, what)| format!("[{name}] {pair}: {what}"))
        })
        .collect();
    assert!(wrong.is_empty(), "seed {seed}, {} violations:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(pairs >= FIRST * reports.len() && reports.len() >= LEAST, "{pairs} pairs");
}

/// Of expressions whose values can become invalid the declared change was once too small: they are replayed in any case.
fn has_shown_a_fault(row: &configurations::Row) -> bool {
    let of = |choice| configurations::level(row, choice);
    of("function").starts_with("expression") && of("adjacency") == "replace_one"
}

/// Every couple of choices is in a configuration, but for those that the program refuses.
fn covers(rows: &[configurations::Row]) {
    let covered: BTreeSet<_> = rows.iter().flat_map(configurations::couples_of).collect();
    let wanted = configurations::couples();
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for couple in wanted.iter().filter(|couple| !covered.contains(couple)) {
        let row = configurations::plainest(couple);
        let Err(why) = configurations::parsed(&row) else {
            panic!("{} is allowed and not in the array: see configurations.rs", configurations::shown(&row));
        };
        let reason = why.lines().next().unwrap_or_default().split_once(": ").map_or("", |(_, reason)| reason);
        *refused.entry(reason.to_owned()).or_default() += 1;
    }
    let without: usize = refused.values().sum();
    println!(
        "{} configurations cover {} of {} couples of choices; refused are:",
        rows.len(),
        covered.len(),
        wanted.len()
    );
    refused.iter().for_each(|(reason, count)| println!("  {count:3}  {reason}"));
    assert_eq!((covered.len(), without), (COVERED, wanted.len() - COVERED));
}

/// As many pairs as time allows: those that move most, then others in random order.
fn replayed(settings: &Settings, seed: u64, until: Instant) -> Report {
    let plan = plan_of(settings);
    let subject = subject(settings, &plan);
    let mut pairs = neighbours::pairs(&subject);
    let some = pairs.len().min(FIRST);
    pairs[some..].shuffle(&mut ChaCha20Rng::seed_from_u64(seed));
    let mut done = 0;
    let go_on = || {
        done += 1;
        done <= some || Instant::now() < until
    };
    run(&subject, &pairs, seed, go_on).expect("replays")
}

/// What was found of what is declared, by function and noise.
fn table(rows: &[configurations::Row], reports: &BTreeMap<usize, (String, Report)>) {
    let mut cells: BTreeMap<(String, String), (f64, String)> = BTreeMap::new();
    for (at, (_, report)) in reports {
        let function = configurations::level(&rows[*at], "function");
        let noise = configurations::level(&rows[*at], "noise");
        let adjacency = configurations::level(&rows[*at], "adjacency");
        for ((release, part), largest) in &report.largest {
            let what = match (release, part) {
                (0, Part::Values { variant: 0 }) => noise.to_owned(),
                (0, Part::Values { variant }) => format!("{noise}, variant {variant}"),
                (0, Part::Counts) => "counts".to_owned(),
                (0, Part::Scores { .. }) => "scores".to_owned(),
                _ => continue,
            };
            let cell = cells.entry((format!("{function}, {adjacency}"), what)).or_insert((0.0, String::new()));
            if largest.part() > cell.0 {
                *cell = (largest.part(), largest.pair.clone());
            }
        }
    }
    println!("found / declared:");
    for ((function, what), (part, pair)) in cells {
        println!("  {part:.4}  {function}, {what}: {pair}");
    }
}

/// A plain configuration, a stream and the same with a record more.
struct Control {
    settings: Settings,
    plan: Plan,
}

impl Control {
    fn new() -> Self {
        let settings = Settings::parse(&configurations::text(&[0; CHOICES.len()]), "control").expect("a configuration");
        let plan = plan_of(&settings);
        Control { settings, plan }
    }

    fn subject(&self) -> Subject<'_> {
        subject(&self.settings, &self.plan)
    }

    fn pair(&self) -> Pair {
        neighbours::pairs(&self.subject()).remove(0)
    }

    fn replays(&self, pair: &Pair) -> [Observed; 2] {
        [&pair.with, &pair.without].map(|stream| replay::replay(&self.subject(), stream, 1).expect("a replay"))
    }

    /// What is said of two replays.
    fn said(&self, pair: &Pair, [with, without]: &[Observed; 2]) -> Vec<String> {
        let found = compare(&self.subject(), pair, with, without);
        found.violations.into_iter().chain(found.beyond).collect()
    }
}

#[test]
fn what_shows_that_a_record_is_there_is_found() {
    let control = Control::new();
    let pair = control.pair();
    let sound = control.replays(&pair);
    assert_eq!(control.said(&pair, &sound), [""; 0]);
    let found = |what: &str, change: &dyn Fn(&mut Observed)| {
        let mut bent = sound.clone();
        change(&mut bent[0]);
        let said = control.said(&pair, &bent);
        assert!(said.iter().any(|said| said.contains(what)), "{what}: {said:?}");
    };
    found("log", &|with| with.log.push("a record".to_owned()));
    found("metrics at the end", &|with| with.metrics.push('1'));
    found("metrics before a draw", &|with| with.windows[1].metrics.push('1'));
    found("random words", &|with| with.windows[1].words += 2);
    found("number of messages", &|with| with.published.push(with.published[0].clone()));
    found("headers", &|with| with.published[1].headers[0].1.push('1'));
    found("published values", &|with| with.published[0].bytes = sound[0].published[2].bytes.clone());
    found("asked", &|with| with.asked.truncate(1));
    found("claimed", &|with| with.claimed = None);
}

#[test]
fn noise_for_half_the_sensitivity_is_found() {
    let mut control = Control::new();
    let pair = control.pair();
    let replays = control.replays(&pair);
    let release: &mut Release = &mut control.plan.releases[0];
    release.variants = release
        .variants
        .try_map(|variant| {
            let change = bernstream::targets::Sensitivity(variant.change.0 / 2);
            Ok::<_, std::convert::Infallible>(bernstream::pipeline::ReleaseVariant { change, ..variant.clone() })
        })
        .unwrap();
    let said = control.said(&pair, &replays);
    assert!(said.iter().any(|said| said.contains("declared are")), "{said:?}");
}

/// All records of one user may be in one message: a few hundred kilobytes must not unfold to gigabytes.
#[test]
fn no_user_takes_much_memory() {
    let mut row = [0; CHOICES.len()];
    for (choice, wanted) in [("unit", "user in 1m"), ("keys", "two")] {
        let at = CHOICES.iter().position(|(name, _)| *name == choice).expect("a choice");
        row[at] = CHOICES[at].1.iter().position(|level| *level == wanted).expect("a level");
    }
    let settings = configurations::parsed(&row).expect("a configuration");
    let plan = plan_of(&settings);
    let subject = subject(&settings, &plan);
    let pairs = neighbours::pairs(&subject);
    let large: Vec<_> = pairs.iter().filter(|pair| pair.name.contains("in 24 batches")).collect();
    assert!(!large.is_empty());
    for pair in large {
        let (observed, peak) = peak_of(|| replay::replay(&subject, &pair.with, 1).expect("a replay"));
        assert_eq!(observed.stopped, None, "{}", pair.name);
        assert!(peak < 64 << 20, "{}: {peak} bytes", pair.name);
    }
}

#[test]
fn a_row_that_spoils_its_message_is_found() {
    let control = Control::new();
    let pair = control.pair();
    let mut with = pair.with.to_vec();
    with[1] = Message { body: Body::Raw(vec![1, 2, 3]), ..with[1].clone() };
    let spoilt = Pair { with: Arc::new(with), ..pair };
    let said = control.said(&spoilt, &control.replays(&spoilt));
    assert!(said.iter().any(|said| said.contains("how the worker ended")), "{said:?}");
}
