//! Policies from end to end: users for ever, horizons, series that fade, a reserve. What is paid, what it says, when it ends.

use std::fs;

use bernstream::cli::components::Components;
use bernstream_config::WorkerSettings;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::price::Price;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{Health, StopRequest, Worker};

use crate::harness::plan;
use crate::harness::policies::{
    HOUR, ORIGIN, Published, bernstream, command, configuration, faults, hours, read, records, run,
};

fn pure(text: &str) -> Price {
    Price::Pure(text.parse().unwrap())
}

#[test]
fn a_user_for_ever_has_one_total_and_what_comes_after_it_is_withheld() {
    let (published, folder) = run(&configuration("ever", "epsilon = 1.0", &["epsilon = 0.04"]));
    assert_eq!(hours(&published, "r0"), (0..25).collect::<Vec<_>>());
    let last = &published["r0"][&24];
    assert_eq!(
        (last.privacy.blocks.len(), last.privacy.blocks[0].spent),
        (1, pure("1"))
    );
    assert!(
        last.privacy.in_words.contains("whenever they were sent"),
        "{}",
        last.privacy.in_words
    );
    assert_eq!(
        last.privacy.blocks[0].start.to_string(),
        "0001-01-01T00:00:00Z"
    );
    let (shown, _) = bernstream(folder.path(), &["ledger", "show", "c.toml"]);
    assert!(
        shown.contains("25 released") && shown.contains("23 withheld"),
        "{shown}"
    );
    let (said, _) = bernstream(folder.path(), &["explain", "c.toml"]);
    assert!(
        said.contains("pays for 25 windows") && said.contains("2026-01-02T01:00:00Z"),
        "{said}"
    );
    // Its ledger cannot be followed by another one.
    fs::remove_dir_all(folder.path().join("ledger")).unwrap();
    let again = command(folder.path(), &["ledger", "init", "c.toml"]);
    let why = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        !again.status.success() && why.contains("written before"),
        "{why}"
    );
}

#[test]
fn a_horizon_is_divided_evenly_and_the_rest_of_the_block_is_withheld() {
    let (published, folder) = run(&configuration("1d", "epsilon = 0.9", &["horizon = \"3h\""]));
    assert_eq!(hours(&published, "r0"), [0, 1, 2, 24, 25, 26]);
    for about in published["r0"].values() {
        assert_eq!(about.privacy.price, pure("0.3"));
        assert!(
            about
                .privacy
                .in_words
                .contains("0.3 for each of the first 3 windows"),
            "{}",
            about.privacy.in_words
        );
    }
    let (said, _) = bernstream(folder.path(), &["explain", "c.toml"]);
    assert!(
        said.contains("3 of its 24 windows are published, for 0.9; it runs out"),
        "{said}"
    );
}

/// The largest change over the scale of Laplace noise that a price buys: `t` with `t + exp(-t) - 1 = rho`, by halving.
fn change_over_scale(price: Price) -> f64 {
    let Price::Concentrated(rho) = price else {
        return price.largest_pure_epsilon().to_f64();
    };
    let mut low = 0.0_f64;
    let mut high = 100.0_f64;
    while high - low > 1e-12 {
        let t = f64::midpoint(low, high);
        if t + (-t).exp() - 1.0 < rho.to_f64() {
            low = t
        } else {
            high = t
        }
    }
    low
}

#[test]
fn a_series_that_fades_goes_on_and_its_noise_grows_as_its_price_falls() {
    for (total, unit) in [("epsilon = 8.0", 1e-12), ("rho = 8.0\n", 1e-12)] {
        let (published, _folder) = run(&configuration("1d", total, &["half_after = \"6h\""]));
        assert_eq!(hours(&published, "r0"), (0..48).collect::<Vec<_>>());
        for (hour, about) in &published["r0"] {
            let n = hour % 24;
            let parts = about.privacy.blocks[0].spent.smallest_units();
            let spent = parts[0] as f64 * unit;
            let all = (n + 1) as f64 / (n + 7) as f64 * 8.0;
            assert!(spent <= all && spent > all - 1e-9, "{hour}: {spent} {all}");
            // The first window's, as it would be at the price of this one.
            let first = &published["r0"][&(hour - n)];
            let factor = change_over_scale(about.privacy.price).recip()
                * change_over_scale(first.privacy.price);
            let grown = [
                about.noise.scale / first.noise.scale,
                about.band.half_width / first.band.half_width,
                about.band.pointwise.unwrap() / first.band.pointwise.unwrap(),
            ];
            assert!(
                grown
                    .iter()
                    .all(|grown| (grown / factor - 1.0).abs() < 1e-6),
                "{hour}: {grown:?} {factor}"
            );
        }
        let scale = |hour| published["r0"][&hour].noise.scale;
        assert!(scale(23) > scale(0) * 2.0 && scale(24) == scale(0));
    }
}

#[test]
fn a_release_that_is_over_drops_out_and_the_others_go_on() {
    let releases = [
        "horizon = \"2h\"\nshare = 0.5",
        "half_after = \"4h\"",
        "epsilon = 0.01",
    ];
    let (published, folder) = run(&configuration(
        "1d",
        "epsilon = 2.0\nreserve = 0.1",
        &releases,
    ));
    assert_eq!(hours(&published, "r0"), [0, 1, 24, 25]);
    assert_eq!(hours(&published, "r1"), (0..48).collect::<Vec<_>>());
    assert_eq!(hours(&published, "r2"), (0..48).collect::<Vec<_>>());
    // 1.8 are not kept back: half of them, 24 fixed prices, and what is left of 1.8.
    let spent = published["r2"][&23].privacy.blocks[0].spent;
    assert_eq!(published["r0"][&0].privacy.price, pure("0.45"));
    let fading = 0.66 * 24.0 / 28.0;
    assert!(
        (spent.largest_pure_epsilon().to_f64() - (0.9 + 0.24 + fading)).abs() < 1e-9,
        "{spent}"
    );
    assert_eq!(published["r2"][&23].privacy.blocks[0].total, pure("2"));
    let (said, _) = bernstream(folder.path(), &["explain", "c.toml"]);
    assert!(said.contains("of which windows may spend 1.8"), "{said}");
}

#[test]
fn policies_that_cannot_be_kept_are_refused_in_words() {
    let users =
        |per: &str, privacy: &str, release: &str| faults(&configuration(per, privacy, &[release]));
    let total = "epsilon = 1.0";
    for (told, words) in [
        (
            users("1d", total, "horizon = \"3h\"\nhalf_after = \"3h\""),
            "`horizon` and `half_after`",
        ),
        (
            users("1d", total, "horizon = \"3h\"\nepsilon = 0.1"),
            "`horizon` already determines the price of a window",
        ),
        (
            users("1d", total, "epsilon = 0.1\nshare = 0.5"),
            "this release has a fixed price",
        ),
        (
            users("1d", total, "horizon = \"90m\""),
            "must be a multiple of windows.length, 1h",
        ),
        (
            users("1d", total, "horizon = \"3h\"\nshare = 0"),
            "must be above 0 and at most 1",
        ),
        (
            users("1d", total, "horizon = \"3h\"\nshare = 0.1234567"),
            "more than 6 decimals",
        ),
        (
            users("1d", "epsilon = 1.0\nreserve = 1", "horizon = \"3h\""),
            "must be at least 0 and below 1",
        ),
        (
            users("1d", total, "half_after = \"3h\"\nscale = \"paper\""),
            "the scale of the papers",
        ),
        (
            users(
                "1d",
                total,
                "half_after = \"3h\"\nwindows = { hopping = \"2h\" }",
            ),
            "overlapping windows share their noise",
        ),
        (
            users("1d", "epsilon = 1.0\nreserve = 0.5", "epsilon = 0.6"),
            "of which 0.5 is not reserved",
        ),
        (
            users("1d", "epsilon = 0.000000000002", "horizon = \"3h\""),
            "leaves nothing for a window",
        ),
        (
            faults(&configuration(
                "ever",
                total,
                &["horizon = \"3h\"", "epsilon = 0.1"],
            )),
            "give it a `horizon`",
        ),
        (
            faults(&configuration(
                "1d",
                total,
                &["horizon = \"3h\"", "epsilon = 0.1"],
            )),
            "cost more than the budget of a block",
        ),
        (
            faults(&configuration(
                "1d",
                total,
                &["horizon = \"3h\"\nshare = 1", "half_after = \"3h\""],
            )),
            "leave nothing for the others",
        ),
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let record = configuration("1d", total, &["horizon = \"3h\""]);
    let (before, rest) = record.split_once("unit = ").unwrap();
    let (_, after) = rest.split_once('\n').unwrap();
    let told = faults(&format!("{before}unit = \"record\"\n{after}"));
    assert!(
        told.contains("for single records every window is a block"),
        "{told}"
    );
    assert_eq!(users("ever", total, "half_after = \"3h\""), "");
}

#[test]
fn the_schedule_says_until_when_every_release_is_paid_for() {
    let hour = |hour: i64| Timestamp::from_micros(ORIGIN + hour * HOUR);
    let until = |per: &str, release: &[&str], first: i64, window: i64| {
        let settings =
            WorkerSettings::parse(&configuration(per, "epsilon = 1.0", release), "f").unwrap();
        let window = settings.windows.grid.span_of(hour(window));
        plan::plan(&settings)
            .lasts_until(window, hour(first))
            .map(|until| (until.micros() - ORIGIN) / HOUR)
    };
    assert_eq!(until("ever", &["epsilon = 0.04"], 0, 0), Some(25));
    assert_eq!(until("ever", &["epsilon = 0.04"], 7, 40), Some(32));
    // The grid ends before.
    assert_eq!(until("ever", &["epsilon = 0.02"], 0, 0), None);
    assert_eq!(
        (
            until("1d", &["epsilon = 0.04"], 0, 0),
            until("1d", &["epsilon = 0.05"], 0, 30)
        ),
        (None, Some(24 + 20))
    );
    assert_eq!(
        (
            until("1d", &["horizon = \"3h\""], 0, 30),
            until("1d", &["horizon = \"3h\""], 5, 6)
        ),
        (Some(27), Some(8))
    );
    assert_eq!(
        (
            until("1d", &["horizon = \"24h\""], 0, 0),
            until("ever", &["half_after = \"3h\""], 0, 0)
        ),
        (None, None)
    );
    assert_eq!(
        until(
            "1d",
            &["horizon = \"3h\"\nshare = 0.2", "epsilon = 0.01"],
            0,
            1
        ),
        Some(3)
    );
    // Two fixed prices are spent together.
    assert_eq!(
        until("1d", &["epsilon = 0.05", "epsilon = 0.05"], 0, 1),
        Some(10)
    );
}

/// Runs it, stopped and started again after every other window that is paid for; how often, and the last metrics.
fn interrupted(text: &str) -> (Published, u32, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| format!("path = \"{}\"", folder.path().join(name).display());
    let text = ["in.arrows", "out", "ledger"]
        .iter()
        .fold(text.to_owned(), |text, name| {
            text.replace(&format!("path = \"{name}\""), &path(name))
        });
    records(&folder.path().join("in.arrows"));
    let settings = WorkerSettings::parse(&text, "f").unwrap();
    let plan = plan::plan(&settings);
    for runs in 1.. {
        let components = Components::open(&settings)
            .map_err(|error| error.failure)
            .unwrap();
        let health = Health::default();
        let stop = StopRequest::default();
        let metrics = Metrics::new(MetricsDetail::Safe, "responses", "pure epsilon", "0").unwrap();
        let mut drawn = 0;
        let stopping = stop.clone();
        let worker = Worker {
            plan: &plan,
            readers: components.readers,
            ledger: components.ledger,
            witness: components.witness,
            sink: components.sink,
            generators: Box::new(move || {
                drawn += 1;
                if drawn == 2 {
                    stopping.request_stop();
                }
                Generator::from_entropy()
            }),
            metrics: metrics.clone(),
            health: &health,
            stop: stop.clone(),
        };
        worker.run_alone().unwrap();
        if !stop.is_requested() {
            return (read(folder.path()), runs, metrics.render_text().unwrap());
        }
    }
    unreachable!("it ends")
}

#[test]
fn a_restart_changes_no_price_and_gives_nothing_back() {
    for (per, release) in [
        ("1d", "half_after = \"6h\""),
        ("1d", "horizon = \"5h\""),
        ("ever", "epsilon = 0.11"),
    ] {
        let text = configuration(per, "epsilon = 1.0", &[release]);
        let (whole, _folder) = run(&text);
        let (parts, runs, metrics) = interrupted(&text);
        let paid = |published: &Published| -> Vec<_> {
            let one = |(hour, about): (&i64, &Description)| {
                (*hour, about.privacy.price, about.privacy.blocks.clone())
            };
            published["r0"].iter().map(one).collect()
        };
        assert_eq!(paid(&parts), paid(&whole), "{release}");
        assert!(runs > 1, "{release}: {runs}");
        let until = "bernstream_privacy_budget_lasts_until_timestamp_seconds{";
        assert_eq!(
            metrics.contains(until),
            !release.starts_with("half"),
            "{metrics}"
        );
    }
}

#[test]
fn a_changed_policy_changes_the_digest() {
    let digest = |privacy: &str, release: &str| {
        WorkerSettings::parse(&configuration("1d", privacy, &[release]), "f")
            .unwrap()
            .digest()
    };
    let total = "epsilon = 1.0";
    let one = digest(total, "horizon = \"3h\"");
    for other in [
        digest(total, "horizon = \"4h\""),
        digest(total, "half_after = \"3h\""),
        digest("epsilon = 1.0\nreserve = 0.1", "horizon = \"3h\""),
        digest(total, "horizon = \"3h\"\nshare = 0.5"),
        digest(total, "epsilon = 0.333333333333"),
    ] {
        assert_ne!(one, other);
    }
}
