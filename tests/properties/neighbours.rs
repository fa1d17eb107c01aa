//! Neighbouring streams through a whole worker in memory, with the noise frozen, for every function, noise, window, unit and
//! composition: one unit more or less changes the released values, by no more than is declared, and nothing else.
//!
//! `BERNSTREAM_NEIGHBOURS=3600 cargo test --test properties -- neighbours:: --nocapture` replays for an hour;
//! `BERNSTREAM_NEIGHBOURS_SEED=2` has another order. In the test command there is no time for every pair: of each configuration that
//! has its turn the most telling pair of each kind is replayed, then others in random order.
//!
//! What is replayed: the covering array of `configurations.rs`, and the sampled sensitivities and callers' functions of `beyond.rs`.
//! What is left out: three choices together, but for those that two bring along; noise that is selected in space; callers' functions
//! of users, and released one point at a time; values and texts in other types of Arrow than 64-bit floats and bytes (`decode.rs` has
//! those); keys that nobody listed, whose rows follow the noise (`found_keys.rs`, and the replays of `bernstream audit`); crashes, restarts, changes of the configuration and broken messages (`tests/it` has those); and how long anything takes.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use bernstream_audit::compare::{ComparedPart, PairsReport, compare_replays};
use bernstream_audit::messages::InputMessage;
use bernstream_audit::{
    AuditSubject, NeighbouringPair, ReplayObservations, StampSource, neighbours, replay, run_pairs,
};
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::description::PrivacyDefinition;
use bernstream_synopsis::price::Price;
use bernstream_worker::pipeline::{PlannedRelease, ReleasePlan};
use rand::SeedableRng;
use rand::rngs::ChaCha20Rng;
use rand::seq::SliceRandom;

use crate::beyond::BEYOND;
use crate::configurations;
use crate::harness::plan::plan as plan_of;
use crate::memory::peak_of;

/// For how long pairs are replayed in the test command.
const SECONDS: u64 = 40;
const THREADS: usize = 2;
/// So many configurations in any case; on an idle machine nearly all of them, in an order that the seed determines.
const LEAST: usize = 24;
/// So many pairs of each configuration are replayed in any case: the most telling one of each kind.
const FIRST: usize = 8;

/// Who stamps the messages of an input.
fn stamps(settings: &WorkerSettings) -> StampSource {
    match &settings.input {
        InputParams::Files(_) => StampSource::None,
        InputParams::Kafka(kafka) if kafka.trust_producer_time => StampSource::Producers,
        InputParams::Kafka(kafka) => StampSource::Broker {
            slack: kafka.clock_slack,
        },
    }
}

fn subject<'a>(
    settings: &'a WorkerSettings,
    plan: &'a ReleasePlan,
    has_backfill: bool,
) -> AuditSubject<'a> {
    // In the third window: two that are past take records until then, and the others have cutoffs of their own.
    let third = plan
        .rules
        .grid
        .origin()
        .plus(2 * plan.rules.grid.length() + Duration::from_secs(30));
    AuditSubject {
        plan,
        columns: &settings.columns,
        adjacency: settings.privacy.adjacency,
        stamps: stamps(settings),
        backfill_until: has_backfill.then_some(third),
    }
}

#[test]
fn one_unit_more_or_less_changes_released_values_by_no_more_than_declared_and_nothing_else() {
    let number = |name: &str| {
        env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().expect("a whole number"))
    };
    let seconds = number("BERNSTREAM_NEIGHBOURS").unwrap_or(SECONDS);
    let seed = number("BERNSTREAM_NEIGHBOURS_SEED").unwrap_or(1);
    let started = Instant::now();
    let (covered, rows) = configurations::array();
    println!("seed {seed}");
    covers(&rows, covered);
    let mut order: Vec<usize> = (0..rows.len() + BEYOND.len()).collect();
    order.shuffle(&mut ChaCha20Rng::seed_from_u64(seed));
    order.sort_by_key(|at| rows.get(*at).is_some_and(|row| !has_shown_a_fault(row)));
    let next = AtomicUsize::new(0);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let share = Duration::from_secs(seconds).mul_f64(THREADS as f64 / order.len() as f64);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Relaxed);
            if place >= LEAST && Instant::now() > deadline {
                return done;
            }
            let at = order[place % order.len()];
            let case = Case::new(&rows, at);
            done.push((
                at,
                case.replayed(seed + place as u64, Instant::now() + share),
                case,
            ));
        }
    };
    let mut reports: BTreeMap<usize, (Case, PairsReport)> = BTreeMap::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for (at, report, case) in threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("no replay panicked"))
        {
            let (_, all) = reports
                .entry(at)
                .or_insert_with(|| (case, PairsReport::default()));
            all.merge_report(report);
        }
    });
    let pairs: usize = reports.values().map(|(_, report)| report.pairs).sum();
    println!(
        "{pairs} pairs of {} configurations in {:?}",
        reports.len(),
        started.elapsed()
    );
    table(reports.values());
    let wrong: Vec<String> = reports
        .values()
        .flat_map(|(case, report)| {
            // What was sampled may be exceeded, with a probability that is stated.
            let beyond = report.beyond.iter().filter(|_| !case.is_random());
            report
                .violations
                .iter()
                .chain(beyond)
                .map(|(pair, what)| format!("[{}] {pair}: {what}", case.name))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "seed {seed}, {} violations:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    assert!(
        pairs >= FIRST * reports.len() && reports.len() >= LEAST,
        "{pairs} pairs"
    );
}

/// A configuration that is replayed.
struct Case {
    name: String,
    function: String,
    noise: &'static str,
    settings: WorkerSettings,
    has_backfill: bool,
}

impl Case {
    /// That of a row of the array, or one beyond it.
    fn new(rows: &[configurations::Row], at: usize) -> Self {
        let Some(row) = rows.get(at) else {
            let (name, settings) = BEYOND[at - rows.len()];
            return Case {
                name: name.to_owned(),
                function: name.to_owned(),
                noise: "noise",
                settings: settings(),
                has_backfill: false,
            };
        };
        let of = |choice| configurations::level(row, choice);
        Case {
            name: configurations::shown(row),
            function: format!("{}, {}", of("function"), of("adjacency")),
            noise: of("noise"),
            settings: configurations::parsed(row)
                .unwrap_or_else(|why| panic!("it is refused now: {why}")),
            has_backfill: of("input") == "backfill",
        }
    }

    fn is_random(&self) -> bool {
        matches!(
            self.settings.privacy.definition,
            PrivacyDefinition::Random(_)
        )
    }

    /// As many pairs as time allows: those that tell most, then others in random order.
    fn replayed(&self, seed: u64, until: Instant) -> PairsReport {
        let plan = plan_of(&self.settings);
        let subject = subject(&self.settings, &plan, self.has_backfill);
        let mut pairs = neighbours::neighbouring_pairs(&subject);
        let some = pairs.len().min(FIRST);
        pairs[some..].shuffle(&mut ChaCha20Rng::seed_from_u64(seed));
        let mut done = 0;
        let go_on = || {
            done += 1;
            done <= some || Instant::now() < until
        };
        run_pairs(&subject, &pairs, seed, go_on).expect("replays")
    }
}

/// Of expressions whose values can become invalid the declared change was once too small: they are replayed in any case.
fn has_shown_a_fault(row: &configurations::Row) -> bool {
    let of = |choice| configurations::level(row, choice);
    of("function").starts_with("expression") && of("adjacency") == "replace_one"
}

/// Every couple of choices is in a configuration, but for those that the program refuses.
fn covers(rows: &[configurations::Row], promised: usize) {
    let covered: BTreeSet<_> = rows.iter().flat_map(configurations::couples_of).collect();
    let wanted = configurations::couples();
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for couple in wanted.iter().filter(|couple| !covered.contains(couple)) {
        let row = configurations::plainest(couple);
        let Err(why) = configurations::parsed(&row) else {
            panic!(
                "{} is allowed and not in the array: see configurations.rs",
                configurations::shown(&row)
            );
        };
        let reason = why
            .lines()
            .next()
            .unwrap_or_default()
            .split_once(": ")
            .map_or("", |(_, reason)| reason);
        *refused.entry(reason.to_owned()).or_default() += 1;
    }
    let without: usize = refused.values().sum();
    println!(
        "{} configurations cover {} of {} couples of choices; refused are:",
        rows.len(),
        covered.len(),
        wanted.len()
    );
    refused
        .iter()
        .for_each(|(reason, count)| println!("  {count:3}  {reason}"));
    assert_eq!(
        (covered.len(), without),
        (promised, wanted.len() - promised)
    );
}

/// What was found of what is declared, by function and noise.
fn table<'a>(reports: impl Iterator<Item = &'a (Case, PairsReport)>) {
    let mut cells: BTreeMap<(String, String), (f64, String)> = BTreeMap::new();
    for (case, report) in reports {
        let noise = case.noise;
        for ((release, part), largest) in &report.largest {
            let what = match (release, part) {
                (0, ComparedPart::Values { variant: 0 }) => noise.to_owned(),
                (0, ComparedPart::Values { variant }) => format!("{noise}, variant {variant}"),
                (0, ComparedPart::Counts) => "counts".to_owned(),
                (0, ComparedPart::Scores { .. }) => "scores".to_owned(),
                _ => continue,
            };
            let cell = cells
                .entry((case.function.clone(), what))
                .or_insert((0.0, String::new()));
            if largest.share_of_declared() > cell.0 {
                *cell = (largest.share_of_declared(), largest.pair.clone());
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
    settings: WorkerSettings,
    plan: ReleasePlan,
}

impl Control {
    fn new() -> Self {
        Control::of(&[])
    }

    /// With these choices.
    fn of(choices: &[(&str, &str)]) -> Self {
        let settings =
            configurations::parsed(&configurations::row(choices)).expect("a configuration");
        let plan = plan_of(&settings);
        Control { settings, plan }
    }

    fn subject(&self) -> AuditSubject<'_> {
        subject(&self.settings, &self.plan, false)
    }

    fn pair(&self) -> NeighbouringPair {
        neighbours::neighbouring_pairs(&self.subject()).remove(0)
    }

    fn replays(&self, pair: &NeighbouringPair) -> [ReplayObservations; 2] {
        [&pair.with, &pair.without]
            .map(|stream| replay::replay_stream(&self.subject(), stream, 1).expect("a replay"))
    }

    /// What is said of two replays.
    fn said(
        &self,
        pair: &NeighbouringPair,
        [with, without]: &[ReplayObservations; 2],
    ) -> Vec<String> {
        let found = compare_replays(&self.subject(), pair, with, without);
        found.violations.into_iter().chain(found.beyond).collect()
    }
}

#[test]
fn what_shows_that_a_record_is_there_is_found() {
    let control = Control::new();
    let pair = control.pair();
    let sound = control.replays(&pair);
    assert_eq!(control.said(&pair, &sound), [""; 0]);
    let found = |what: &str, change: &dyn Fn(&mut ReplayObservations)| {
        let mut bent = sound.clone();
        change(&mut bent[0]);
        let said = control.said(&pair, &bent);
        assert!(
            said.iter().any(|said| said.contains(what)),
            "{what}: {said:?}"
        );
    };
    found("log", &|with| with.log.push("a record".to_owned()));
    found("metrics at the end", &|with| with.metrics.push('1'));
    found("metrics before a draw", &|with| {
        with.windows[1].metrics.push('1')
    });
    found("random words", &|with| with.windows[1].words += 2);
    found("number of messages", &|with| {
        with.published.push(with.published[0].clone())
    });
    found("headers", &|with| with.published[1].headers[0].1.push('1'));
    found("published values", &|with| {
        with.published[0].bytes = sound[0].published[2].bytes.clone()
    });
    found("asked", &|with| with.asked.truncate(1));
    found("rows of the ledger", &|with| {
        with.rows[2] = with.rows[2].replace("0.5", "0.4")
    });
    found("claimed", &|with| with.claimed = None);
}

#[test]
fn noise_for_half_the_sensitivity_is_found() {
    let mut control = Control::new();
    let pair = control.pair();
    let replays = control.replays(&pair);
    let release: &mut PlannedRelease = &mut control.plan.releases[0];
    release.variants = release
        .variants
        .try_map(|variant| {
            let change = bernstream_synopsis::Sensitivity(variant.change.0 / 2);
            Ok::<_, std::convert::Infallible>(bernstream_worker::pipeline::ReleaseVariant {
                change,
                ..variant.clone()
            })
        })
        .unwrap();
    let said = control.said(&pair, &replays);
    assert!(
        said.iter().any(|said| said.contains("declared are")),
        "{said:?}"
    );
}

/// What is withheld stands in the ledger, and nowhere else.
#[test]
fn a_window_that_is_withheld_for_one_record_only_is_found() {
    let mut control = Control::of(&[("unit", "user ever")]);
    // Enough for two windows of three.
    let total = Price::Pure("1.2".parse().expect("a price"));
    (control.plan.total, control.plan.limit) = (total, total);
    let pair = control.pair();
    let sound = control.replays(&pair);
    assert_eq!(control.said(&pair, &sound), [""; 0]);
    let withheld = sound[0]
        .rows
        .iter()
        .position(|row| row.contains("\"withheld\""))
        .expect("the third window");
    let mut bent = sound.clone();
    bent[0].rows.remove(withheld);
    assert!(
        control
            .said(&pair, &bent)
            .iter()
            .any(|said| said.contains("rows of the ledger"))
    );
}

/// Each odd value in each column, for every kind of promise.
#[test]
fn no_odd_value_changes_more_than_a_record_may_whatever_the_column() {
    const KINDS: [&str; 10] = [
        "null",
        "not a number",
        "infinite",
        "minus infinite",
        "just above its domain",
        "just below its domain",
        "far outside",
        "far outside below",
        "minus zero",
        "the least there is",
    ];
    for promise in [
        ("adjacency", "add_remove"),
        ("adjacency", "replace_one"),
        ("unit", "user in 1m"),
    ] {
        for outside in ["clamp", "drop"] {
            let control = Control::of(&[
                ("function", "expression of a label"),
                promise,
                ("outside", outside),
            ]);
            let mut pairs = neighbours::neighbouring_pairs(&control.subject());
            pairs.retain(|pair| {
                ["value 0 ", "value 1 "]
                    .iter()
                    .any(|column| pair.name.contains(column))
            });
            for (column, kind) in [0, 1]
                .iter()
                .flat_map(|column| KINDS.map(|kind| (column, kind)))
            {
                let what = format!("value {column} {kind}");
                assert!(
                    pairs.iter().any(|pair| pair.name.contains(&what)),
                    "{promise:?}: {what}"
                );
            }
            let report = run_pairs(&control.subject(), &pairs, 1, || true).expect("replays");
            assert!(
                report.violations.is_empty() && report.beyond.is_empty(),
                "{promise:?}, {outside}: {report:?}"
            );
        }
    }
}

/// `bernstream audit` finds the pair that differed most by its name.
#[test]
fn each_pair_has_a_name_of_its_own() {
    for promise in [
        ("adjacency", "add_remove"),
        ("adjacency", "replace_one"),
        ("unit", "user in 90s"),
    ] {
        let control = Control::of(&[promise, ("keys", "two"), ("releases", "two")]);
        let pairs = neighbours::neighbouring_pairs(&control.subject());
        let names: BTreeSet<&str> = pairs.iter().map(|pair| pair.name.as_str()).collect();
        assert_eq!(names.len(), pairs.len(), "{promise:?}");
    }
}

/// A worker that takes more records of a user than the noise was made for.
#[test]
fn a_cap_that_is_not_kept_is_found() {
    let control = Control::of(&[
        ("unit", "user in 3m"),
        ("keys", "two"),
        ("windows", "hopping"),
    ]);
    let pairs = neighbours::neighbouring_pairs(&control.subject());
    let mut loose = Control::of(&[
        ("unit", "user in 3m"),
        ("keys", "two"),
        ("windows", "hopping"),
    ]);
    loose.plan.rules.cap.as_mut().expect("a cap").records *= 2;
    let report = run_pairs(&loose.subject(), &pairs[..FIRST], 1, || true).expect("replays");
    assert!(report.beyond.len() > FIRST / 2, "{:?}", report.beyond);
}

/// Caps that are told for users with up to eight pages of twelve, of which one counts.
const TOLD_CAPS: &str = r#"
pipeline = "pages"
input = { time = "at", files = { path = "visits" }, key = { column = "page", type = "text", values = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] } }
windows = { origin = "2026-01-05T00:00:00Z", length = "1d", end = "2026-01-08T00:00:00Z" }
privacy = { unit = { user = { column = "user", type = "text", per = "1d" } }, adjacency = "add_remove", epsilon = 1 }
output = { files = { path = "out" } }
ledger = { path = "ledger" }
release = { name = "visitors", epsilon = 1, counts = { of = ["users"], max_keys = 1, caps = { most = 8 } } }
"#;

/// The last number of units by their keys in each synopsis of a replay.
fn last_units(observed: &ReplayObservations) -> Vec<f64> {
    let mut last = Vec::new();
    for message in &observed.published {
        let synopsis = Synopsis::decode_message(&message.bytes).expect("a synopsis");
        last.extend(synopsis.values().last());
    }
    last
}

/// One bin is for all who have more keys than are told apart: a build that is wrong there alone is not found without them.
#[test]
fn a_user_is_in_the_last_bin_of_told_caps() {
    let settings = WorkerSettings::parse(TOLD_CAPS, "told caps").expect("a configuration");
    let plan = plan_of(&settings);
    let control = Control { settings, plan };
    let pairs = neighbours::neighbouring_pairs(&control.subject());
    let mut reached = false;
    for pair in &pairs[..FIRST] {
        let replays = control.replays(pair);
        assert_eq!(control.said(pair, &replays), [""; 0], "{}", pair.name);
        let [with, without] = replays.map(|observed| last_units(&observed));
        reached |= with != without;
    }
    assert!(reached, "no pair of the first {FIRST}");
}

/// However producers cut rows into messages, and whatever types they infer from them, for every kind of promise.
#[test]
fn no_row_decides_how_the_rows_beside_it_are_read() {
    for promise in [
        ("adjacency", "add_remove"),
        ("adjacency", "replace_one"),
        ("unit", "user in 1m"),
    ] {
        let control = Control::of(&[promise, ("keys", "two")]);
        let mut pairs = neighbours::neighbouring_pairs(&control.subject());
        pairs.retain(|pair| {
            ["cut by", " infers"]
                .iter()
                .any(|words| pair.name.contains(words))
        });
        for words in ["by count", "by the clock", "pyarrow", "Polars", "pandas"] {
            assert!(
                pairs.iter().any(|pair| pair.name.contains(words)),
                "{promise:?}: {words}"
            );
        }
        let report = run_pairs(&control.subject(), &pairs, 1, || true).expect("replays");
        assert!(
            report.violations.is_empty() && report.beyond.is_empty(),
            "{promise:?}: {report:?}"
        );
    }
}

/// A producer that keeps rows for longer than grace, until it has so many: a row more decides which others miss the cutoff.
#[test]
fn a_producer_that_counts_rows_and_keeps_them_for_longer_than_grace_is_found() {
    let control = Control::new();
    let mut pairs = neighbours::neighbouring_pairs(&control.subject());
    pairs.retain(|pair| pair.name.contains("cut by"));
    assert!(
        pairs.iter().any(|pair| pair.name.contains("cut by count")),
        "{pairs:?}"
    );
    let mut hasty = Control::new();
    assert!(!hasty.plan.rules.allowed_lateness.is_zero());
    hasty.plan.rules.allowed_lateness = Duration::ZERO;
    let report = run_pairs(&hasty.subject(), &pairs, 1, || true).expect("replays");
    let found: BTreeSet<&str> = report
        .violations
        .iter()
        .chain(&report.beyond)
        .map(|(pair, _)| pair.as_str())
        .collect();
    assert!(
        found.iter().any(|pair| pair.contains("cut by count")),
        "{report:?}"
    );
    // What is cut by the clock is cut in the same places in both streams.
    assert!(
        !found.iter().any(|pair| pair.contains("cut by the clock")),
        "{report:?}"
    );
}

/// All records of one user may be in one message: a few hundred kilobytes must not unfold to gigabytes.
#[test]
fn no_user_takes_much_memory() {
    let control = Control::of(&[("unit", "user in 1m"), ("keys", "two")]);
    let subject = control.subject();
    let pairs = neighbours::neighbouring_pairs(&subject);
    let large: Vec<_> = pairs
        .iter()
        .filter(|pair| pair.name.contains("24 batches"))
        .collect();
    assert!(large.iter().any(|pair| pair.name.contains("500 in each")));
    for pair in large {
        let (observed, peak) =
            peak_of(|| replay::replay_stream(&subject, &pair.with, 1).expect("a replay"));
        assert_eq!(observed.stopped, None, "{}", pair.name);
        assert!(peak < 64 << 20, "{}: {peak} bytes", pair.name);
    }
}

#[test]
fn a_row_that_spoils_its_message_is_found() {
    let control = Control::new();
    let pair = control.pair();
    let mut with = pair.with.to_vec();
    with[1] = InputMessage {
        batches: Vec::new(),
        ..with[1].clone()
    };
    let spoilt = NeighbouringPair {
        with: Arc::new(with),
        ..pair
    };
    let said = control.said(&spoilt, &control.replays(&spoilt));
    assert!(
        said.iter()
            .any(|said| said.contains("how the worker ended")),
        "{said:?}"
    );
}
