//! What an audit finds of programs that name keys nobody listed too easily, and that it finds nothing of the one that does not.

use std::time::{Duration, Instant};

use bernstream_config::WorkerSettings;
use bernstream_noise::key_search::KeySearch;
use bernstream_release::choice::Candidates;
use bernstream_release::window::FoundKeyCounting;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::calibrate::{Delta, Epsilon};
use bernstream_synopsis::key_threshold::UNIT_GRAINS;
use bernstream_worker::pipeline::{PlannedKeySearch, PlannedRelease, ReleasePlan, StopRequest};

use crate::attacked::AttackReport;
use crate::compare::{ComparedPart, PairsReport};
use crate::deadline::Deadline;
use crate::evidence::AuditTest;
use crate::found_attack::{KeyAttack, KeyScene};
use crate::neighbours::neighbouring_pairs;
use crate::run::run_pairs;
use crate::subject::{AuditSubject, StampSource};

/// The probability with which a test may fail a correct program.
const ALARM: f64 = 1e-9;

/// Users in two keys each, at a delta that can be seen: a key of one unit is named in a twentieth of the windows.
const USERS: ConfigurationParts = ConfigurationParts {
    key: r#"{ column = "page", type = "text", found = { keep = "2d", most = 50 } }"#,
    unit: r#"{ user = { column = "user", per = "1d" } }"#,
    price: "epsilon = 1\ndelta = 0.05",
    counts: r#"{ of = ["users"], max_keys = 2 }"#,
};

/// Records with keys of a text and an integer, and so few candidates that a window can be full.
const RECORDS: ConfigurationParts = ConfigurationParts {
    key: r#"{ columns = ["service", "code"], types = ["text", "integer"], found = { keep = "2d", most = 50, longest = 40, candidates = 6000 } }"#,
    unit: r#""record""#,
    price: "epsilon = 20\ndelta = 0.05",
    counts: r#"{ of = ["records"] }"#,
};

#[derive(Clone, Copy)]
struct ConfigurationParts {
    key: &'static str,
    unit: &'static str,
    price: &'static str,
    counts: &'static str,
}

fn settings(parts: ConfigurationParts) -> WorkerSettings {
    let ConfigurationParts {
        key,
        unit,
        price,
        counts,
    } = parts;
    let text = format!(
        r#"
pipeline = "audited"
[input]
time = "time"
files = {{ path = "nowhere" }}
key = {key}
[windows]
origin = "2025-01-01T00:00:00Z"
length = "1d"
end = "2025-01-05T00:00:00Z"
[privacy]
unit = {unit}
adjacency = "add_remove"
{price}
[release]
name = "pages"
{price}
counts = {counts}
[output]
files = {{ path = "out" }}
[ledger]
path = "ledger"
"#
    );
    WorkerSettings::parse(&text, "audited").unwrap_or_else(|faults| panic!("{faults}"))
}

fn plan(settings: &WorkerSettings) -> ReleasePlan {
    let band = Band {
        level: 0.95,
        half_width: 1.0,
        weights: vec![1.0],
        pointwise: 1.0,
        draws: 0,
        expected_sup: 1.0,
        norm: 1.0,
    };
    settings
        .plan(|_| Candidates::new(band.clone(), Vec::new()), false)
        .expect("a plan")
}

fn subject<'a>(settings: &'a WorkerSettings, plan: &'a ReleasePlan) -> AuditSubject<'a> {
    AuditSubject {
        plan,
        columns: &settings.columns,
        adjacency: settings.privacy.adjacency,
        stamps: StampSource::None,
        backfill_until: None,
    }
}

/// The same plan, its one release changed.
fn with_release(
    plan: &ReleasePlan,
    change: impl Fn(&PlannedRelease) -> PlannedRelease,
) -> ReleasePlan {
    ReleasePlan {
        releases: vec![change(&plan.releases[0])],
        ..plan.clone()
    }
}

/// The same plan, whose search is one for another delta.
fn with_delta(plan: &ReleasePlan, max_keys: u32, quintillionths: u64) -> ReleasePlan {
    with_release(plan, |release| {
        let planned = release.key_search.clone().expect("a search");
        let epsilon = Epsilon::from_trillionths(1_000_000_000_000);
        let delta = Delta::from_quintillionths(quintillionths);
        let search = KeySearch::calibrated(max_keys, None, planned.most, epsilon, delta);
        PlannedRelease {
            key_search: Some(PlannedKeySearch {
                search: search.expect("a search"),
                ..planned
            }),
            ..release.clone()
        }
    })
}

fn replays(settings: &WorkerSettings, plan: &ReleasePlan, most: usize) -> PairsReport {
    let subject = subject(settings, plan);
    let mut pairs = neighbouring_pairs(&subject);
    pairs.truncate(most);
    run_pairs(&subject, &pairs, 1, || true).expect("replays")
}

#[test]
fn replays_of_found_keys_differ_in_the_keys_of_the_unit_alone() {
    for (parts, max_keys) in [(USERS, 2), (RECORDS, 1)] {
        let settings = settings(parts);
        let report = replays(&settings, &plan(&settings), 40);
        assert!(report.violations.is_empty(), "{:?}", report.violations);
        assert!(report.beyond.is_empty(), "{:?}", report.beyond);
        let largest = &report.largest[&(0, ComparedPart::Values { variant: 0 })];
        println!(
            "{} of {} tables not compared; {largest:?}",
            report.uncompared_tables, report.found_tables
        );
        assert_eq!(largest.found, (max_keys * UNIT_GRAINS) as f64);
        assert_eq!(largest.declared, max_keys * UNIT_GRAINS);
        // Some pairs have the same keys in both streams, and some have not.
        let compared = report.found_tables - report.uncompared_tables;
        assert!(compared > 20 && report.uncompared_tables > 0);
    }
}

/// A cap of one key more than is declared.
#[test]
fn a_unit_in_more_keys_than_count_is_caught_by_the_replays() {
    let settings = settings(USERS);
    let loose = with_release(&plan(&settings), |release| {
        let AccumulatorSpec::FoundKeys(counting) = &release.form.accumulator else {
            panic!("keys are found");
        };
        let counting = FoundKeyCounting {
            max_keys: counting.max_keys + 1,
            ..FoundKeyCounting::clone(counting)
        };
        let mut changed = release.clone();
        changed.form.accumulator = AccumulatorSpec::FoundKeys(counting.into());
        changed
    });
    let report = replays(&settings, &loose, 12);
    let beyond = report.beyond.iter().map(|(_, what)| what);
    assert!(
        beyond.clone().any(|what| what.contains("declared are")),
        "{report:?}"
    );
}

/// So many windows of each scene.
fn attacks(settings: &WorkerSettings, plan: &ReleasePlan, runs: u64) -> Vec<AttackReport> {
    let subject = subject(settings, plan);
    let deadline = Deadline::new(
        Instant::now() + Duration::from_secs(600),
        &StopRequest::default(),
    );
    let scenes = KeyScene::scenes_of_release(&subject, 0);
    assert_eq!(scenes.len(), 3);
    let mut reports = Vec::new();
    for scene in scenes {
        let attack = KeyAttack::new(&subject, 0, scene).expect("an attack");
        let report = attack.run_attack((1, 0), ALARM, runs, &deadline);
        reports.push(report.expect("windows are released"));
    }
    reports
}

fn failed(reports: &[AttackReport]) -> Vec<&str> {
    let tests = reports.iter().flat_map(|report| &report.tests);
    tests
        .filter(|test| test.has_failed())
        .map(|test: &AuditTest| test.what.as_str())
        .collect()
}

const NAMED: &str = "keys that only one unit has are named no more often than delta";
const COSTS: &str = "the threshold costs no more of delta than there is for a key";

#[test]
fn attacks_on_found_keys_fail() {
    for parts in [USERS, RECORDS] {
        let settings = settings(parts);
        let reports = attacks(&settings, &plan(&settings), 3000);
        assert!(failed(&reports).is_empty(), "{reports:?}");
        for report in &reports {
            println!(
                "{} windows, epsilon at least {}",
                report.windows, report.epsilon_at_least
            );
        }
    }
}

/// With the noise of epsilon 1 a threshold that is lower by a unit is that of `exp(1)` times the delta, so keys of one unit are named that
/// much more often.
#[test]
fn a_threshold_one_unit_too_low_is_caught_by_names_alone() {
    let one = ConfigurationParts {
        counts: r#"{ of = ["users"], max_keys = 1 }"#,
        ..USERS
    };
    let settings = settings(one);
    let honest = plan(&settings);
    let low = with_delta(&honest, 1, 145_000_000_000_000_000);
    let [threshold, lower] = [&honest, &low].map(|plan| {
        let search = plan.releases[0].key_search.as_ref().expect("a search");
        search.search.selection().threshold()
    });
    println!("{threshold} and {lower}");
    assert!(
        (UNIT_GRAINS * 9 / 10..=UNIT_GRAINS * 11 / 10).contains(&(threshold - lower)),
        "{threshold} {lower}"
    );
    let reports = attacks(&settings, &low, 20_000);
    let alone = &reports[..1];
    println!("{} windows", alone[0].windows);
    assert!(failed(alone).contains(&NAMED), "{alone:?}");
    assert!(failed(alone).contains(&COSTS), "{alone:?}");
    let honest = attacks(&settings, &honest, 3000);
    assert!(failed(&honest).is_empty(), "{honest:?}");
}
