//! What an audit finds of programs that do not keep what they promise.

use std::time::{Duration, Instant};

use bernstream_audit as audit;
use bernstream_audit::trade_off::{NeighbouringStreams, WindowAttack};
use bernstream_audit::{AttackReport, AuditSubject, AuditTest, Deadline, StampSource, neighbours};
use bernstream_config::WorkerSettings;
use bernstream_noise::Mechanism;
use bernstream_release::choice::Candidates;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::band::Band;
use bernstream_worker::pipeline::{PlannedRelease, ReleasePlan, ReleaseVariant, StopRequest};

/// The probability with which a test may fail a correct program.
const ALARM: f64 = 1e-9;

/// One function with this noise and price.
fn settings(noise: &str, total: &str) -> WorkerSettings {
    let text = format!(
        r#"
pipeline = "audited"
[input]
time = "time"
files = {{ path = "nowhere" }}
[windows]
origin = "2025-01-01T00:00:00Z"
length = "1d"
end = "2025-01-05T00:00:00Z"
[privacy]
unit = "record"
adjacency = "add_remove"
{total}
[release]
name = "density"
{total}
noise = "{noise}"
degree = 6
order = 1
domain = [{{ column = "x", min = 0, max = 1, outside = "clamp" }}]
[release.density]
bandwidths = [0.05]
[output]
files = {{ path = "out" }}
[ledger]
path = "ledger"
"#
    );
    WorkerSettings::parse(&text, "audited").unwrap_or_else(|faults| panic!("{faults}"))
}

fn plan(settings: &WorkerSettings) -> ReleasePlan {
    let release = &settings.releases[0];
    let band = Band::of_released_values(
        release.noise.noise_distribution(),
        release.shape().value_count(),
    );
    settings
        .plan(|_| Candidates::new(band.clone(), Vec::new()), false)
        .expect("a plan")
}

/// The same plan, its one variant changed.
fn with_variant(
    plan: &ReleasePlan,
    change: impl Fn(&ReleaseVariant) -> ReleaseVariant,
) -> ReleasePlan {
    let release = &plan.releases[0];
    let variants = Candidates::new(change(release.variants.first()), Vec::new());
    ReleasePlan {
        releases: vec![PlannedRelease {
            variants,
            ..release.clone()
        }],
        ..plan.clone()
    }
}

fn subject<'a>(settings: &'a WorkerSettings, plan: &'a ReleasePlan) -> AuditSubject<'a> {
    let adjacency = settings.privacy.adjacency;
    AuditSubject {
        plan,
        columns: &settings.columns,
        adjacency,
        stamps: StampSource::None,
        backfill_until: None,
    }
}

/// So many windows of the pair that differs most.
fn attack(subject: &AuditSubject<'_>, runs: u64) -> AttackReport {
    let pairs = neighbours::neighbouring_pairs(subject);
    let streams = pairs.iter().map(|pair| {
        [&pair.with, &pair.without]
            .map(|stream| audit::decode_batches(subject, stream).expect("it is encoded"))
    });
    let streams: Vec<_> = streams.collect();
    let attacks = streams.iter().filter_map(|[with, without]| {
        WindowAttack::new(
            subject.plan,
            0,
            NeighbouringStreams { with, without },
            &subject.replayed_windows(),
        )
        .ok()
    });
    let worst = attacks
        .max_by(|a, b| a.distance().total_cmp(&b.distance()))
        .expect("a pair that differs");
    let deadline = Deadline::new(
        Instant::now() + Duration::from_secs(600),
        &StopRequest::default(),
    );
    worst
        .run_attack((1, 0), ALARM, runs, &deadline)
        .expect("windows are released")
}

fn failed(attacked: &AttackReport) -> Vec<&str> {
    attacked
        .tests
        .iter()
        .filter(|test| test.has_failed())
        .map(|test: &AuditTest| test.what.as_str())
        .collect()
}

/// Every law of noise: as declared it passes, and at 0.8 of its scale it is caught, by the size of the noise at least.
#[test]
fn noise_at_four_fifths_of_its_scale_is_caught_and_the_declared_noise_is_not() {
    for (noise, total) in [
        ("laplace", "epsilon = 1"),
        ("cube", "epsilon = 1"),
        ("gaussian", "rho = 0.5"),
    ] {
        let settings = settings(noise, total);
        let honest = plan(&settings);
        let attacked = attack(&subject(&settings, &honest), 10_000);
        assert!(
            failed(&attacked).is_empty(),
            "{noise}: {:?}",
            attacked.tests
        );
        assert!(
            attacked.change_in_scales > 0.9,
            "{noise}: {}",
            attacked.change_in_scales
        );
        let price = honest.releases[0].description().privacy.price;
        let weak = with_variant(&honest, |variant| {
            let change = Sensitivity(variant.change.0 / 5 * 4);
            let law = variant.mechanism.distribution();
            let mechanism =
                Mechanism::calibrated(law, change, variant.touched, price).expect("noise");
            ReleaseVariant {
                mechanism,
                ..variant.clone()
            }
        });
        let attacked = attack(&subject(&settings, &weak), 10_000);
        println!(
            "{noise}: {:?} after {} windows",
            failed(&attacked),
            attacked.windows
        );
        assert!(
            failed(&attacked).contains(&"the size of the noise has the declared distribution"),
            "{noise}: {:?}",
            attacked.tests
        );
    }
}

/// What needs no knowledge of the law: an attacker who does better than the promise allows. It is said from where on.
#[test]
fn noise_as_weak_as_is_said_breaks_the_promise_by_the_attacker_alone() {
    let settings = settings("laplace", "epsilon = 1");
    let honest = plan(&settings);
    let price = honest.releases[0].description().privacy.price;
    let attacked = attack(&subject(&settings, &honest), 20_000);
    let detects = attacked.detects.expect("20,000 windows say something");
    println!("{detects:?}");
    assert!(
        failed(&attacked).is_empty() && attacked.epsilon_at_least < 1.0,
        "{:?}",
        attacked.tests
    );
    assert!(
        detects.scale > 0.6 && detects.of == Some("epsilon"),
        "{detects:?}"
    );
    let weak = with_variant(&honest, |variant| {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let change = Sensitivity((variant.change.0 as f64 * detects.scale) as u64);
        let mechanism = Mechanism::calibrated(
            variant.mechanism.distribution(),
            change,
            variant.touched,
            price,
        );
        let mechanism = mechanism.expect("noise");
        // The description knows: only the promise is left to be broken.
        let descriptions = variant
            .descriptions
            .try_map(|about| Ok::<_, ()>(about.clone().at_scale(detects.scale)));
        ReleaseVariant {
            mechanism,
            descriptions: descriptions.expect("one"),
            ..variant.clone()
        }
    });
    let attacked = attack(&subject(&settings, &weak), 20_000);
    let expected = [
        "the attacker's error rates are no lower than the promise allows",
        "the largest change, found or declared, costs no more than the price",
    ];
    assert_eq!(failed(&attacked), expected, "{:?}", attacked.tests);
    assert!(
        attacked.epsilon_at_least > 1.0,
        "{}",
        attacked.epsilon_at_least
    );
}

#[test]
fn half_the_sensitivity_is_caught_by_the_replays() {
    let settings = settings("laplace", "epsilon = 1");
    let honest = plan(&settings);
    let halved = with_variant(&honest, |variant| ReleaseVariant {
        change: Sensitivity(variant.change.0 / 2),
        ..variant.clone()
    });
    for (plan, is_right) in [(&honest, true), (&halved, false)] {
        let subject = subject(&settings, plan);
        let pairs = neighbours::neighbouring_pairs(&subject);
        let report =
            audit::run_pairs(&subject, &pairs[..pairs.len().min(12)], 1, || true).expect("replays");
        assert_eq!(
            (report.violations.len(), report.beyond.is_empty()),
            (0, is_right),
            "{report:?}"
        );
    }
}
