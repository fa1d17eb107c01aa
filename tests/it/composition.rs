//! Compositions from end to end: what a promise of epsilon and delta buys, and that no more than that is ever spent.

use std::fs;
use std::path::Path;

use bernstream::cli::components;
use bernstream_config::{Calibration, Payment, WorkerSettings, canonical};
use bernstream_ledger::Ledger;
use bernstream_ledger::bootstrap::StartMode;
use bernstream_noise::Mechanism;
use bernstream_noise::accountant::{concentrated, plan};
use bernstream_noise::calibrate::Scale;
use bernstream_noise::concentrated::rho_of_ball;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::price::Price;

use crate::harness::policies::{
    ORIGIN, bernstream, command, configuration, faults, hours, read, records, run,
};

const PROMISE: &str = "epsilon = 2.0\ndelta = 1e-6\n";

fn promise(composition: &str) -> String {
    format!("{PROMISE}composition = {composition}")
}

fn total(composition: &str, release: &str) -> Price {
    WorkerSettings::parse(&configuration("1d", &promise(composition), &[release]), "f")
        .unwrap()
        .privacy
        .total
}

#[test]
fn a_promise_of_epsilon_and_delta_buys_rho_and_all_gaussian_books_more_of_it() {
    let gaussian = "noise = \"gaussian\"\nrho = 0.001";
    let plain = total("\"concentrated\"", gaussian);
    let epsilon: Epsilon = "2".parse().unwrap();
    let delta: Delta = "0.000001".parse().unwrap();
    let rho = concentrated::rho_for(epsilon, delta);
    assert_eq!(plain, Price::Concentrated(rho));
    assert!(concentrated::epsilon_of(rho, delta).unwrap() <= epsilon);
    let more = total("\"gaussian\"", gaussian);
    let gain = more.smallest_units()[0] as f64 / plain.smallest_units()[0] as f64;
    assert!(gain > 1.02 && gain < 1.5, "{gain}");
    // Laplace noise is paid for too, in what is not all Gaussian.
    assert_eq!(total("\"concentrated\"", "epsilon = 0.05"), plain);
}

#[test]
fn what_is_published_says_what_its_total_implies() {
    for (composition, release, words, definition) in [
        (
            "\"concentrated\"",
            "epsilon = 0.4",
            "zero-concentrated differential privacy of a user's period",
            "zero-concentrated",
        ),
        (
            "\"gaussian\"",
            "noise = \"gaussian\"\nrho = 0.02",
            "Gaussian differential privacy of a user's period",
            "gaussian",
        ),
    ] {
        let (published, folder) = run(&configuration("1d", &promise(composition), &[release]));
        let windows = hours(&published, "r0");
        assert!(windows.len() < 48 && windows.contains(&24), "{windows:?}");
        for about in published["r0"].values() {
            let said = &about.privacy.in_words;
            assert!(
                said.contains(words) && said.contains("epsilon = 2 and delta = 0.000001"),
                "{said}"
            );
            let implied = about.privacy.implies.unwrap();
            assert_eq!(
                (implied.epsilon.to_string(), implied.delta.to_string()),
                ("2".into(), "0.000001".into())
            );
            assert_eq!(about.privacy.definition.name(), definition);
        }
        let (shown, _) = bernstream(folder.path(), &["ledger", "show", "c.toml"]);
        assert!(shown.contains("rho spent of the total"), "{shown}");
    }
}

#[test]
fn a_plan_counts_windows_whatever_its_releases_are_and_ends_where_it_was_declared_to() {
    let releases = ["epsilon = 0.2", "noise = \"gaussian\"\nrho = 0.002"];
    let (published, folder) = run(&configuration(
        "1d",
        &promise("\"plan\"\nwindows = 5"),
        &releases,
    ));
    for release in ["r0", "r1"] {
        assert_eq!(
            hours(&published, release),
            [0, 1, 2, 3, 4, 24, 25, 26, 27, 28],
            "{release}"
        );
        let last = &published[release][&4].privacy;
        assert_eq!(
            (last.blocks[0].spent, last.blocks[0].total),
            (Price::Slots(5), Price::Slots(5))
        );
        assert!(
            last.in_words
                .contains("of a plan of 5 windows that was declared before"),
            "{}",
            last.in_words
        );
    }
    let (shown, _) = bernstream(folder.path(), &["ledger", "show", "c.toml"]);
    assert!(
        shown.contains("5 windows of the plan of 5 windows of the plan"),
        "{shown}"
    );
    // Another price of a running plan would be an adaptive one.
    let changed = configuration(
        "1d",
        &promise("\"plan\"\nwindows = 5"),
        &["epsilon = 0.1", releases[1]],
    );
    std::fs::write(folder.path().join("c.toml"), changed).unwrap();
    let refused = command(folder.path(), &["run", "c.toml"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success()
            && why.contains("created for another guarantee")
            && why.contains("the plan of [privacy]"),
        "{why}"
    );
}

/// A folder with this configuration, and the ledger that an older program began for it, whose settings had other words.
fn older(text: &str, theirs: impl Fn(&mut WorkerSettings)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name).display().to_string();
    let text = ["in.arrows", "out", "ledger"]
        .iter()
        .fold(text.to_owned(), |text, name| {
            text.replace(
                &format!("path = \"{name}\""),
                &format!("path = \"{}\"", inside(name)),
            )
        });
    fs::write(folder.path().join("c.toml"), &text).unwrap();
    records(&folder.path().join("in.arrows"));
    let mut settings = WorkerSettings::parse(&text, "c.toml").unwrap();
    theirs(&mut settings);
    let mut witness = settings.output.open_witness().unwrap();
    let mode = StartMode::From {
        from: Timestamp::from_micros(ORIGIN),
        backfill_until: None,
    };
    let genesis = components::first_row(
        &settings,
        &mut *witness,
        mode,
        Timestamp::from_micros(ORIGIN),
    )
    .unwrap();
    Ledger::create(&settings.ledger, genesis).unwrap();
    folder
}

/// The total is derived from the promise; a newer program derives more.
#[test]
fn a_ledger_keeps_the_total_that_its_promise_left_when_it_was_created() {
    let promise = "epsilon = 6.0\ndelta = 1e-9\ncomposition = \"gaussian\"";
    let text = configuration("1d", promise, &["noise = \"gaussian\"\nrho = 0.02"]);
    let recorded = |total: &'static str| {
        older(&text, move |settings: &mut WorkerSettings| {
            let today = serde_json::json!(settings.privacy.total).to_string();
            settings.privacy.total = Price::Concentrated(total.parse().unwrap());
            let theirs = serde_json::json!(settings.privacy.total).to_string();
            settings.normalised = settings.normalised.replace(
                &format!("\"total\":{today}"),
                &format!("\"total\":{theirs}"),
            );
        })
    };
    let folder = recorded("0.132");
    let (_, log) = bernstream(folder.path(), &["run", "c.toml"]);
    assert!(
        log.contains("the ledger keeps its total, rho 0.132; a new one would have rho 0.435"),
        "{log}"
    );
    assert!(!log.contains("the settings have changed"), "{log}");
    let published = read(folder.path());
    // Six windows a day are within 0.132; within what there is today there would be 21.
    assert_eq!(
        hours(&published, "r0"),
        (0..6).chain(24..30).collect::<Vec<_>>()
    );
    assert_eq!(
        published["r0"][&5].privacy.blocks[0].total.to_string(),
        "rho 0.132"
    );
    for arguments in [
        &["run", "c.toml"][..],
        &["ledger", "verify", "c.toml"],
        &["ledger", "show", "c.toml"],
    ] {
        bernstream(folder.path(), arguments);
    }
    assert_eq!(read(folder.path()), published);
    // More than there is today was never derived from this promise; nor was this total, for another one.
    let refuses = |folder: &Path| {
        let refused = command(folder, &["run", "c.toml"]);
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && why.contains("created for another guarantee"),
            "{why}"
        );
    };
    refuses(recorded("0.5").path());
    let text = fs::read_to_string(folder.path().join("c.toml")).unwrap();
    fs::write(
        folder.path().join("c.toml"),
        text.replace("epsilon = 6.0", "epsilon = 6.5"),
    )
    .unwrap();
    refuses(folder.path());
}

/// Laplace noise is charged its own constant; older programs charged that of any pure mechanism.
#[test]
fn a_ledger_in_which_laplace_noise_cost_more_goes_on_at_its_own_price() {
    let text = configuration("1d", "rho = 0.09", &["epsilon = 0.2"]);
    let any = Payment::converted_from("0.2".parse().unwrap()).charged_price();
    let own = WorkerSettings::parse(&text, "f").unwrap().releases[0]
        .payment
        .charged_price();
    assert!(own.is_within(any) && own != any, "{own} {any}");
    let folder = older(&text, |settings| {
        let [own, any] = [own, any].map(|price| serde_json::json!(price).to_string());
        assert!(settings.normalised.contains(&format!("\"price\":{own}")));
        settings.normalised = settings
            .normalised
            .replace(&format!("\"price\":{own}"), &format!("\"price\":{any}"));
    });
    let (_, log) = bernstream(folder.path(), &["run", "c.toml"]);
    assert!(
        log.contains("the settings have changed") && log.contains("price.rho of release"),
        "{log}"
    );
    let published = read(folder.path());
    assert_eq!(hours(&published, "r0"), [0, 1, 2, 3, 24, 25, 26, 27]);
    assert_eq!(published["r0"][&0].privacy.price, own);
    let (_, log) = bernstream(folder.path(), &["run", "c.toml"]);
    assert!(!log.contains("the settings have changed"), "{log}");
    bernstream(folder.path(), &["ledger", "verify", "c.toml"]);
}

/// Before true 2-norms were read off, a plan declared Gaussian noise for `sqrt(D1 S)`: what was composed is not what would be drawn, so
/// the ledger is for the program that began it.
#[test]
fn a_plan_that_declared_the_noise_of_an_older_program_is_refused_and_nothing_is_lost() {
    let text = configuration(
        "1d",
        &promise("\"plan\"\nwindows = 5"),
        &["noise = \"gaussian\"\nrho = 0.002"],
    );
    let folder = older(&text, |settings| {
        let release = &settings.releases[0];
        let target = &*release.function.target;
        let protected = settings.neighbouring_relation();
        let [sum, sup] = [
            NoiseDistribution::DiscreteLaplace,
            NoiseDistribution::DiscreteCube,
        ]
        .map(|law| {
            target
                .sensitivity_in(law.norm(), protected.adjacency, protected.contributions)
                .unwrap()
                .0
        });
        let change = Sensitivity((u128::from(sum) * u128::from(sup)).isqrt() as u64 + 1);
        let law = NoiseDistribution::DiscreteGaussian;
        let values = target.shape().value_count();
        let theirs = Mechanism::calibrated(law, change, values, release.payment.mechanism_price())
            .unwrap()
            .scale()
            .units();
        let today = settings
            .mechanism_of(release, &release.function)
            .unwrap()
            .scale()
            .units();
        assert!(theirs as f64 > 1.1 * today as f64, "{theirs} {today}");
        assert!(settings.normalised.contains(&format!("\"scale\":{today}")));
        settings.normalised = settings.normalised.replace(
            &format!("\"scale\":{today}"),
            &format!("\"scale\":{theirs}"),
        );
    });
    let refused = command(folder.path(), &["run", "c.toml"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    let words =
        why.contains("created for another guarantee") && why.contains("the plan of [privacy]");
    assert!(!refused.status.success() && words, "{why}");
    assert!(!folder.path().join("out/responses").exists());
    // So says who looks before.
    let checked = command(folder.path(), &["check", "--offline", "c.toml"]);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), refused.status.code());
    assert!(
        said.contains("created for another guarantee") && said.contains("the plan of [privacy]"),
        "{said}"
    );
    bernstream(folder.path(), &["ledger", "verify", "c.toml"]);
    // The same ledger of this program goes on.
    let folder = older(&text, |_| {});
    bernstream(folder.path(), &["run", "c.toml"]);
    assert_eq!(hours(&read(folder.path()), "r0").len(), 10);
}

/// A ball that is priced in rho is made for the largest epsilon whose own constant is that rho.
#[test]
fn a_ball_that_is_priced_in_rho_has_the_noise_that_the_rho_buys() {
    let text = |privacy: &str, price: &str| {
        let text = configuration("1d", privacy, &[&format!("noise = \"ball\"\n{price}")]);
        text.replace("degree = 4\norder = 2", "points = 8")
    };
    let settings =
        |privacy: &str, price: &str| WorkerSettings::parse(&text(privacy, price), "f").unwrap();
    let rho: Rho = "0.01".parse().unwrap();
    let scale = |settings: &WorkerSettings| {
        let release = &settings.releases[0];
        settings
            .mechanism_of(release, &release.function)
            .unwrap()
            .scale()
    };
    let ball = settings("rho = 1.0", "rho = 0.01");
    let release = &ball.releases[0];
    assert_eq!(release.payment.charged_price(), Price::Concentrated(rho));
    // Of one key, though the two records of a user can be in different ones.
    let values = release.shape().value_count();
    let change = ball
        .sensitivity(release, &release.function, Calibration::Tight)
        .unwrap();
    let cost = rho_of_ball(change, values, scale(&ball));
    assert!(
        values > 2 && cost <= rho && cost.to_f64() > 0.999_99 * rho.to_f64(),
        "{values} {cost}"
    );
    let any = Scale::for_price(change, Price::Concentrated(rho).largest_pure_epsilon()).unwrap();
    let gain = any.units() as f64 / scale(&ball).units() as f64;
    assert!(
        (gain / (values as f64).sqrt() - 1.0).abs() < 0.01,
        "{gain} {values}"
    );
    // The same as for that epsilon, which is told.
    let epsilon = release.payment.epsilon();
    let written = settings("rho = 1.0", &format!("epsilon = {epsilon}"));
    let charged = written.releases[0].payment.charged_price().smallest_units()[0];
    assert!(
        scale(&written) == scale(&ball) && (9_999_999_000..=10_000_000_000).contains(&charged),
        "{charged}"
    );
    let (published, folder) = run(&text("rho = 0.03", "rho = 0.01"));
    assert_eq!(hours(&published, "r0"), [0, 1, 2, 24, 25, 26]);
    assert_eq!(published["r0"][&0].privacy.price, Price::Concentrated(rho));
    let (told, _) = bernstream(folder.path(), &["explain", "c.toml"]);
    assert!(
        told.contains(&format!(
            "a ball of pure differential privacy with epsilon = {epsilon}"
        )),
        "{told}"
    );
    // A plan composes the epsilon that it declares; a sum over windows keeps what any mechanism costs.
    let planned = settings(&promise("\"plan\"\nwindows = 5"), "rho = 0.01");
    assert_eq!(scale(&planned), any);
    let sum = settings(
        "rho = 1.0",
        "rho = 0.01\nwindows = { cumulative = \"48h\" }",
    );
    assert_eq!(
        sum.releases[0].payment,
        Payment::Own(Price::Concentrated(rho))
    );
    let falling = settings("rho = 1.0", "half_after = \"5h\"");
    assert!(matches!(
        falling.releases[0].payment,
        Payment::Own(Price::Concentrated(_))
    ));
    let horizon = settings("rho = 1.0", "horizon = \"1d\"");
    assert!(matches!(
        horizon.releases[0].payment,
        Payment::Converted { .. }
    ));
}

/// For a record, which is in one pane: every node of the tree at its own epsilon. For a user the noise is made for the rho.
#[test]
fn a_sum_with_laplace_noise_is_charged_what_its_nodes_cost() {
    let sum = "epsilon = 1.0\nwindows = { cumulative = \"1000h\" }";
    let of_users = configuration("ever", "rho = 2.0", &[sum]);
    let user = "{ user = { column = \"user_id\", per = \"ever\", max_records_per_window = 2 } }";
    let of_records = of_users.replace(user, "\"record\"");
    let settings = |text: &str| WorkerSettings::parse(text, "f").unwrap();
    let rho = |settings: &WorkerSettings| {
        settings.releases[0]
            .payment
            .charged_price()
            .smallest_units()[0] as f64
            / 1e12
    };
    assert!((rho(&settings(&of_users)) - 0.5_f64.tanh()).abs() < 1e-9);
    let records = settings(&of_records);
    let series = records.noise_series(&records.releases[0]).unwrap().unwrap();
    let levels = f64::from(u32::try_from(series.correlation().nodes_of_a_pane().unwrap()).unwrap());
    assert!(levels > 2.0, "{levels}");
    let expected = levels * (1.0 / levels + (-1.0 / levels).exp() - 1.0);
    assert!(
        (rho(&records) / expected - 1.0).abs() < 1e-6,
        "{} {expected}",
        rho(&records)
    );
    // A window of its own, and other noise.
    let alone = of_records.replace("windows = { cumulative = \"1000h\" }", "");
    assert!((rho(&settings(&alone)) / (-1.0_f64).exp() - 1.0).abs() < 1e-8);
    let cube = alone.replace("epsilon = 1.0", "epsilon = 1.0\nnoise = \"cube\"");
    assert!((rho(&settings(&cube)) - 0.5_f64.tanh()).abs() < 1e-9);
    // A ball costs as many times less as it has values.
    let ball = alone
        .replace("epsilon = 1.0", "epsilon = 1.0\nnoise = \"ball\"")
        .replace("degree = 4\norder = 2", "points = 8");
    let ball = settings(&ball);
    let values = ball.releases[0].shape().value_count() as f64;
    assert!(
        values > 2.0 && (rho(&ball) * 2.0 * values - 1.0).abs() < 1e-6,
        "{values} {}",
        rho(&ball)
    );
    // What is charged for the same noise is no reason for a sum to start again.
    let mut charged = settings(&of_records);
    let identity =
        |settings: &WorkerSettings| canonical::release_identity(settings, &settings.releases[0]);
    let before = identity(&charged);
    charged.releases[0].payment = charged.releases[0]
        .payment
        .with_lower_charge(Rho::from_trillionths(1));
    assert_eq!(identity(&charged), before);
    charged.releases[0].payment = Payment::converted_from("0.9".parse().unwrap());
    assert_ne!(identity(&charged), before);
}

/// Any mechanism of pure differential privacy is at most randomised response: its windows are composed outcome by outcome.
#[test]
fn a_plan_that_is_accepted_is_within_its_promise_and_one_window_more_is_not() {
    let cube = "noise = \"cube\"\nepsilon = 0.05";
    let told = faults(&configuration(
        "1d",
        &promise("\"plan\"\nwindows = 1000"),
        &[cube],
    ));
    let (_, rest) = told.split_once("at most ").unwrap();
    let most: u32 = rest.split_once(' ').unwrap().0.parse().unwrap();
    let sound = |windows: u32| {
        faults(&configuration(
            "1d",
            &promise(&format!("\"plan\"\nwindows = {windows}")),
            &[cube],
        ))
        .is_empty()
    };
    assert!(sound(most) && !sound(most + 1));
    assert!(
        exact(0.05, most, 2.0) <= 1e-6 && exact(0.05, most + 1, 2.0) > 1e-6,
        "{most}"
    );
    // Forty would be all without the delta.
    assert!(most > 50, "{most}");
    let class = [(plan::ReleaseClass::Pure("0.05".parse().unwrap()), 1)];
    assert_eq!(
        plan::longest_horizon(&class, "2".parse().unwrap(), "0.000001".parse().unwrap()),
        u64::from(most)
    );
}

/// The delta of so many randomised responses at `epsilon`: `sum_k C(n, k) (p^k q^(n-k) - exp(epsilon) q^k p^(n-k))_+`.
fn exact(each: f64, windows: u32, epsilon: f64) -> f64 {
    let truth = 1.0 / (1.0 + (-each).exp());
    let mut choose = 1.0;
    (0..=windows)
        .map(|k| {
            let k = f64::from(k);
            let n = f64::from(windows);
            let at = |p: f64| choose * p.powf(k) * (1.0 - p).powf(n - k);
            let beyond = (at(truth) - epsilon.exp() * at(1.0 - truth)).max(0.0);
            choose *= (n - k) / (k + 1.0);
            beyond
        })
        .sum()
}

#[test]
fn what_a_composition_cannot_hold_is_refused_in_words() {
    let told = |composition: &str, release: &str| {
        faults(&configuration("1d", &promise(composition), &[release]))
    };
    let of = |privacy: &str| faults(&configuration("1d", privacy, &["epsilon = 0.1"]));
    let loud = "epsilon = 20.0\ndelta = 0.01\ncomposition = \"gaussian\"";
    let loud = faults(&configuration(
        "1d",
        loud,
        &["noise = \"gaussian\"\nrho = 8.0"],
    ));
    for (told, words) in [
        (loud, "rounding to integers costs more"),
        (
            of("rho = 0.1\ncomposition = \"concentrated\""),
            "composes by itself",
        ),
        (
            of("epsilon = 1.0\ncomposition = \"concentrated\""),
            "privacy.delta: missing",
        ),
        (
            of("epsilon = 1.0\nwindows = 24"),
            "is the length of a declared plan, but there is no plan",
        ),
        (
            of("epsilon = 1e-9\ndelta = 1e-18\ncomposition = \"concentrated\""),
            "leaves no rho",
        ),
        (
            told("\"plan\"", "epsilon = 0.1"),
            "privacy.windows: missing",
        ),
        (
            told("\"gaussian\"", "epsilon = 0.1"),
            "its noise is not Gaussian",
        ),
        (
            told("\"plan\"\nwindows = 24", "epsilon = 0.9"),
            "windows of these prices fit within epsilon = 2",
        ),
        (
            told("\"plan\"\nwindows = 24", "epsilon = 2.1"),
            "not even one window of these prices fits",
        ),
        (
            told("\"plan\"\nwindows = 24", "horizon = \"3h\""),
            "a declared plan has a number of windows",
        ),
        (
            told(
                "\"plan\"\nwindows = 24",
                "epsilon = 0.01\nwindows = { hopping = \"2h\" }",
            ),
            "reads panes several times",
        ),
        (
            told("\"plan\"\nwindows = 2\nreserve = 0.9", "epsilon = 0.01"),
            "does not cover one window",
        ),
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

/// What an attack found: a release that is dear at first and then over left a sum beside it with noise for one window.
#[test]
fn the_noise_of_a_sum_for_ever_does_not_depend_on_what_ends_beside_it() {
    let scale = |releases: &[&str]| {
        let text = configuration("ever", "rho = 1.0", releases);
        let settings = WorkerSettings::parse(&text, "f").unwrap();
        settings
            .noise_series(&settings.releases[0])
            .unwrap()
            .unwrap()
            .deviation(settings.releases[0].shape().value_count(), 0)
    };
    let sum =
        "noise = \"gaussian\"\nhorizon = \"96h\"\nshare = 0.5\nwindows = { cumulative = \"96h\" }";
    let brief = "noise = \"gaussian\"\nhorizon = \"1h\"\nshare = 0.5";
    let alone = scale(&[sum]);
    assert_eq!(scale(&[sum, brief]), alone);
    // For 96 windows of one user, not for one.
    let one = scale(&[
        "noise = \"gaussian\"\nhorizon = \"1h\"\nshare = 0.5\nwindows = { cumulative = \"96h\" }",
    ]);
    assert!(alone > 90.0 * one, "{alone} {one}");
}

/// What an attack found: Laplace noise that is bought with a rho has a larger epsilon than a pure mechanism of that rho, and
/// a plan declared the smaller one where bandwidths are chosen privately.
#[test]
fn a_plan_declares_the_laplace_noise_that_is_drawn_also_where_bandwidths_are_chosen() {
    let text = |epsilon: &str, bandwidths: &str| {
        let promise =
            format!("epsilon = {epsilon}\ndelta = 1e-6\ncomposition = \"plan\"\nwindows = 5");
        configuration("1d", &promise, &["noise = \"laplace\"\nrho = 0.5"])
            .replace("bandwidths = [500]", bandwidths)
    };
    let chosen = "private_bandwidths = { epsilon = 0.01, candidates = [[400], [500]] }";
    // Five draws of epsilon 1.198, and the choices.
    for (epsilon, is_sound) in [("5.27", false), ("5.9", false), ("6.1", true)] {
        let faults = faults(&text(epsilon, chosen));
        assert_eq!(faults.is_empty(), is_sound, "{epsilon}: {faults:?}");
    }
}
