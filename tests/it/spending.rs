//! `ledger show --by`: where a budget went, exactly, also after prices have changed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Flights, a carrier being the unit for two days: two releases, and a budget that pays for one day of two.
fn configuration(days: u32, price: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let flights = root.join("tests/data/flights.parquet");
    let text = fs::read_to_string(root.join("config/files.toml")).expect("the example");
    let (head, rest) = text.split_once("[release]").expect("a release");
    let (release, tail) = rest.split_once("[output]").expect("an output");
    let one = release.replace("epsilon = 1.0", &format!("epsilon = {price}"));
    let other = release
        .replace("epsilon = 1.0", "epsilon = 0.2")
        .replace("departure-delay", "other");
    format!("{head}[[release]]{one}[[release]]{other}[output]{tail}")
        .replace("degree = 40", "degree = 10")
        .replace("/files\"", "\"")
        .replace("2014-01-01T05", &format!("2013-01-0{}T05", days + 1))
        .replace(
            "path = \"flights\"",
            &format!("path = \"{}\"", flights.display()),
        )
        .replace(
            "unit = \"record\"",
            "unit = { user = { column = \"carrier\", per = \"2d\", max_records_per_window = 1 } }",
        )
}

fn bernstream(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
    command
        .args(arguments)
        .arg("c.toml")
        .current_dir(folder)
        .output()
        .expect("it runs")
}

fn run(folder: &Path, days: u32, price: &str) {
    fs::write(folder.join("c.toml"), configuration(days, price)).expect("it is written");
    let output = bernstream(folder, &["run"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn shown(folder: &Path, by: &str) -> String {
    let output = bernstream(folder, &["ledger", "show", "--by", by]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_price_is_attributed_to_its_release_its_day_and_its_block() {
    let folder = tempfile::tempdir().expect("a folder");
    // Two days of a block: 0.6 for the first, and the second does not fit. Then two days at half the price, which both fit.
    run(folder.path(), 2, "0.4");
    let text = shown(folder.path(), "block");
    let first = "0.6 of 1: 0.4 for departure-delay, 0.2 for other; 1 window released, 1 withheld, the first at 2013-01-02T05:00:00Z";
    assert!(text.contains(first), "{text}");
    run(folder.path(), 4, "0.3");
    let text = shown(folder.path(), "block");
    assert!(text.contains(first), "{text}");
    assert!(
        text.contains("1 of 1: 0.6 for departure-delay, 0.4 for other; 2 windows released\n"),
        "{text}"
    );
    let text = shown(folder.path(), "release");
    let expected = [
        "1 for departure-delay: 3 windows released, windows from 2013-01-01T05:00:00Z to 2013-01-05T05:00:00Z",
        "0.6 for other: 3 windows released",
        "a unit has lost only what was charged to its own block",
    ];
    assert!(expected.iter().all(|words| text.contains(words)), "{text}");
    let text = shown(folder.path(), "day");
    for words in [
        "2013-01-01: 0.4 for departure-delay, 0.2 for other; 1 window released\n",
        "2013-01-02: nothing; 0 windows released, 1 withheld\n",
        "2013-01-04: 0.3 for departure-delay, 0.2 for other; 1 window released\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        !text.contains("cannot be attributed") && text.contains("Outlook"),
        "{text}"
    );
}

/// A regression over three windows, each of whose blocks pays each time, beside what was there.
fn with_regression(text: &str, price: &str) -> String {
    let (head, tail) = text.split_once("[output]").expect("an output");
    let regression = format!(
        "[[release]]\nname = \"regression\"\nepsilon = {price}\ndegree = 10\norder = 2\n\
         domain = [{{ column = \"dep_delay\", min = -30, max = 180, outside = \"clamp\" }}]\n\
         label = {{ column = \"distance\", min = 0, max = 5000, outside = \"clamp\" }}\nwindows = {{ hopping = \"3d\" }}\n\n\
         [release.regression]\nbandwidth = 20\ngap = 20\nmax_records = 50\n\n"
    );
    format!("{head}{regression}[output]{tail}")
}

/// What a change adds covers nothing of what was before it: neither in the forecast, nor in the account of where the budget went.
#[test]
fn what_explain_says_of_a_change_is_what_the_worker_then_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = |days, price| {
        let text = configuration(days, price);
        let user = text
            .lines()
            .find(|line| line.starts_with("unit ="))
            .expect("a unit")
            .to_owned();
        text.replace(&user, "unit = \"record\"")
    };
    fs::write(folder.path().join("c.toml"), record(3, "0.5")).expect("it is written");
    assert!(bernstream(folder.path(), &["run"]).status.success());
    let said = |arguments: &[&str]| {
        let output = bernstream(folder.path(), arguments);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let none = said(&["explain"]);
    assert!(
        none.contains("the windows of the ledger end before 2013-01-04T05:00:00Z: none is to come"),
        "{none}"
    );

    // 0.1 and 0.2 a window, and 0.2 three times: 0.9 of 1.
    fs::write(
        folder.path().join("c.toml"),
        with_regression(&record(6, "0.1"), "0.2"),
    )
    .expect("it is written");
    let before = said(&["explain"]);
    assert!(
        before.contains("every window has a budget of its own, 1: nothing is used up"),
        "{before}"
    );
    assert!(
        before.contains("release \"regression\": not in the ledger, new in the file"),
        "{before}"
    );
    assert!(bernstream(folder.path(), &["run"]).status.success());
    let by = shown(folder.path(), "release");
    assert!(
        by.contains("for regression: ") || by.contains("for regression, "),
        "{by}"
    );
    assert!(
        by.contains("6 windows released") && by.contains("3 windows released"),
        "{by}"
    );
    assert!(
        !by.contains("withheld") && !by.contains("cannot be attributed"),
        "{by}"
    );

    // 0.1, 0.2 and 0.3 three times do not fit.
    fs::write(
        folder.path().join("c.toml"),
        with_regression(&record(8, "0.1"), "0.3"),
    )
    .expect("it is written");
    let short = said(&["explain"]);
    assert!(
        short.contains(
            "does not pay for all releases that cover it: some windows will repeatedly be withheld"
        ),
        "{short}"
    );
    assert!(!short.contains("nothing is used up"), "{short}");
}

/// Windows that are not published leave room for later ones: both are counted.
#[test]
fn a_forecast_with_gaps_is_what_the_worker_then_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = with_regression(
        &configuration(8, "0.02").replace("per = \"2d\"", "per = \"4d\""),
        "0.1",
    );
    fs::write(folder.path().join("c.toml"), &text).expect("it is written");
    let made = bernstream(folder.path(), &["ledger", "init"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let output = bernstream(folder.path(), &["explain", "--json"]);
    let left = serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")["ledger"]
        .clone();
    assert!(bernstream(folder.path(), &["run"]).status.success());
    let spent = shown(folder.path(), "day");
    let released = |days: std::ops::Range<u32>| {
        days.filter(|day| {
            spent.lines().any(|line| {
                line.contains(&format!("2013-01-0{day}: ")) && line.contains(" 1 window released")
            })
        })
        .count() as u64
    };
    for (block, days) in [(&left, 1..5), (&left["next_block"], 5..9)] {
        assert_eq!(block["windows"], 4, "{left}");
        assert_eq!(
            block["windows_paid"].as_u64(),
            Some(released(days)),
            "{block}\n{spent}"
        );
    }
    let all = left["windows_paid"].as_u64().expect("a number")
        + left["next_block"]["windows_paid"]
            .as_u64()
            .expect("a number");
    assert!(
        left["next_block"]["until"] == "2013-01-05T05:00:00Z" && all == 5,
        "some are withheld, and not all later ones: {left}\n{spent}"
    );
}

#[test]
fn releases_over_several_windows_and_prices_that_change_are_attributed_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let configuration = configuration(6, "0.02")
        .replace("per = \"2d\"", "per = \"ever\"")
        .replacen(
            "[release.density]\nbandwidths = [10]",
            "half_after = \"3d\"\n\n[release.density]\nbandwidths = [10]",
            1,
        );
    let configuration = configuration.replacen("epsilon = 0.02\n", "", 1);
    let regression = "label = { column = \"distance\", min = 0, max = 5000, outside = \"clamp\" }\nwindows = { hopping = \"2d\" }";
    let (head, tail) = configuration
        .rsplit_once("[release.density]\nbandwidths = [10]")
        .expect("the other release");
    let text = format!(
        "{head}{regression}\n\n[release.regression]\nbandwidth = 20\ngap = 20\nmax_records = 50{tail}"
    );
    let text = text.replace("epsilon = 0.2\n", "horizon = \"60d\"\n");
    fs::write(folder.path().join("c.toml"), &text).expect("it is written");
    let output = bernstream(folder.path(), &["run"]);
    assert!(
        output.status.success(),
        "{}\n{text}",
        String::from_utf8_lossy(&output.stderr)
    );
    let shown = shown(folder.path(), "block");
    assert!(
        shown.contains("for departure-delay") && shown.contains("for other"),
        "{shown}"
    );
    assert!(
        shown.contains("6 windows released") && !shown.contains("cannot be attributed"),
        "{shown}"
    );
}
