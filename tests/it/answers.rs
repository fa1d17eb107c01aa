//! What commands answer: first what matters, as JSON for programs, in bold on a terminal alone.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::harness::policies::{bernstream, command, configuration, records, run};

/// A day of hours at 0.1 of 1: ten of them are paid for.
fn ten_hours() -> String {
    configuration("1d", "epsilon = 1.0", &["epsilon = 0.1"])
}

fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("c.toml"), text).expect("the configuration");
    records(&folder.path().join("in.arrows"));
    folder
}

fn json(folder: &tempfile::TempDir, arguments: &[&str]) -> Value {
    let (out, _) = bernstream(folder.path(), arguments);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn explain_begins_with_the_error_in_the_units_of_the_release() {
    let named = ten_hours().replace(
        "domain = [{ column",
        "record = \"answer\"\ndomain = [{ unit = \"millisecond\", column",
    );
    let folder = folder(&named);
    let (said, _) = bernstream(folder.path(), &["explain", "c.toml"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        (lines[0], lines[3]),
        ("In short", "Price and error"),
        "{said}"
    );
    let first = "  At epsilon = 0.1, 95 % of curves are within ± ";
    assert!(
        lines[1].starts_with(first) && lines[1].contains(" answers per millisecond"),
        "{said}"
    );
    assert!(
        lines[2].contains("where the file says `expected_records`, it is told here"),
        "{said}"
    );
    assert!(
        !said.contains("grid units") && !said.contains("Sensitivity"),
        "{said}"
    );
    let (all, _) = bernstream(folder.path(), &["explain", "c.toml", "--verbose"]);
    assert!(
        all.starts_with(said.split("Note\n").next().expect("text")) && all.contains("Grid units"),
        "{all}"
    );

    // Twice the price, half the noise; and the one of the file is among them.
    let told = json(&folder, &["explain", "c.toml", "--json"]);
    let accuracy = &told["releases"][0]["accuracy"];
    let at: Vec<(f64, f64)> = accuracy["at_prices"]
        .as_array()
        .expect("prices")
        .iter()
        .map(|at| {
            (
                at["price"]
                    .as_str()
                    .expect("epsilon")
                    .parse()
                    .expect("a number"),
                at["in_the_middle"].as_f64().expect("an error"),
            )
        })
        .collect();
    assert_eq!(at.len(), 5);
    for pair in at.windows(2) {
        assert!(
            (pair[1].0 / pair[0].0 - 2.0).abs() < 1e-9
                && (pair[0].1 / pair[1].1 - 2.0).abs() < 1e-3,
            "{at:?}"
        );
    }
    assert_eq!(
        accuracy["price"]
            .as_str()
            .expect("epsilon")
            .parse::<f64>()
            .expect("a number"),
        at[2].0
    );
    assert_eq!(accuracy["quantity"], "answers per millisecond");
    assert_eq!(told["ledger"], Value::Null);
}

#[test]
fn a_ledger_at_work_says_what_is_left_and_until_when() {
    let folder = folder(&ten_hours());
    let without = json(&folder, &["explain", "c.toml", "--json"]);
    assert_eq!(without["ledger"], Value::Null);
    bernstream(folder.path(), &["ledger", "init", "c.toml"]);
    let left = json(&folder, &["explain", "c.toml", "--json"])["ledger"].clone();
    assert_eq!(
        (&left["spent"], &left["left"], &left["windows_paid"]),
        (&"0".into(), &"1".into(), &10.into()),
        "{left}"
    );
    assert_eq!(left["until"], "2026-01-01T10:00:00Z");
    for command in [
        &["explain", "c.toml"][..],
        &["check", "--offline", "c.toml"],
    ] {
        let (said, _) = bernstream(folder.path(), command);
        for words in [
            "the next window of the ledger is that of 2026-01-01T00:00:00Z",
            "1 of 1 is left for 2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z, after 0 was spent",
            "pays for 10 of its 24 coming windows: the window of 2026-01-01T10:00:00Z is the first that is not published; the next \
             block begins at 2026-01-02T00:00:00Z",
            "the next budget, for 2026-01-02T00:00:00Z to 2026-01-03T00:00:00Z, pays for 10 of its 24 coming windows: \
             the window of 2026-01-02T10:00:00Z is the first that is not published",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(!said.contains("changes the settings"), "{said}");
    }
}

/// With this ledger and this change: until when, in its block and in every full one after it.
#[test]
fn a_change_is_answered_for_this_block_and_for_the_next() {
    let text = ten_hours();
    let early = text.replace(
        "end = \"2026-01-03T00:00:00Z\"",
        "end = \"2026-01-01T03:00:00Z\"",
    );
    assert_ne!(early, text);
    let (_, folder) = run(&early);
    let changed = text.replace("epsilon = 0.1", "epsilon = 0.2");
    assert_ne!(changed, text);
    fs::write(folder.path().join("c.toml"), changed).expect("it is written");
    let (said, _) = bernstream(folder.path(), &["explain", "c.toml"]);
    for words in [
        "from that window on the file changes the settings of the ledger:",
        "price of release \"r0\": \"0.1\" in the ledger, \"0.2\" in the file",
        "0.7 of 1 is left for 2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z, after 0.3 was spent",
        "that pays for 3 of its 21 coming windows: the window of 2026-01-01T06:00:00Z is the first that is not published; the next",
        "pays for 5 of its 24 coming windows: the window of 2026-01-02T05:00:00Z is the first that is not published",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let left = json(&folder, &["explain", "c.toml", "--json"])["ledger"].clone();
    assert_eq!(
        (&left["windows"], &left["windows_paid"]),
        (&21.into(), &3.into()),
        "{left}"
    );
    let next = &left["next_block"];
    assert_eq!(
        (&next["windows"], &next["windows_paid"]),
        (&24.into(), &5.into()),
        "{left}"
    );
    assert_eq!(next["until"], "2026-01-02T05:00:00Z");

    // A ledger of another promise pays for nothing of this file.
    fs::write(
        folder.path().join("c.toml"),
        text.replace("epsilon = 1.0", "epsilon = 2.0"),
    )
    .expect("it is written");
    let told = json(&folder, &["explain", "c.toml", "--json"]);
    assert_eq!(told["ledger"], Value::Null);
    let why = told["refused"].as_str().expect("a reason");
    assert!(
        why.contains("created for another guarantee") && why.contains("the total of [privacy]"),
        "{why}"
    );
}

/// A worker that stopped in the middle of a block: the price that the file asks for now decides how far the rest goes.
#[test]
fn what_is_left_of_a_block_goes_as_far_as_the_new_price_says() {
    let text = configuration("ever", "epsilon = 1.0", &["epsilon = 0.04"]);
    let early = text.replace(
        "end = \"2026-01-03T00:00:00Z\"",
        "end = \"2026-01-01T10:00:00Z\"",
    );
    assert_ne!(early, text);
    let (_, folder) = run(&early);
    fs::write(
        folder.path().join("c.toml"),
        text.replace("epsilon = 0.04", "epsilon = 0.2"),
    )
    .expect("it is written");
    let left = json(&folder, &["explain", "c.toml", "--json"])["ledger"].clone();
    assert_eq!(
        (&left["spent"], &left["left"], &left["windows_paid"]),
        (&"0.4".into(), &"0.6".into(), &3.into()),
        "{left}"
    );
    assert_eq!(left["until"], "2026-01-01T13:00:00Z");
}

/// Bold headings and red errors on a terminal, and nowhere else.
#[test]
fn colours_are_for_terminals_that_want_them() {
    let folder = folder(&ten_hours());
    let on_a_terminal = |environment: &str, line: &str| {
        let line = format!("{environment} {} {line}", env!("CARGO_BIN_EXE_bernstream"));
        let output = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .current_dir(folder.path())
            .output()
            .expect("`script` gives it a terminal");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let explained = on_a_terminal("", "explain c.toml");
    assert!(
        explained.contains("\x1b[1mIn short\x1b[0m"),
        "{explained:?}"
    );
    let plain = on_a_terminal("NO_COLOR=1", "explain c.toml");
    assert!(
        plain.contains("In short") && !plain.contains("\x1b[1"),
        "{plain:?}"
    );
    assert!(!on_a_terminal("TERM=dumb", "explain c.toml").contains("\x1b[1"));
    fs::write(
        folder.path().join("c.toml"),
        ten_hours().replace("adjacency", "adjacenzy"),
    )
    .expect("it is written");
    let wrong = on_a_terminal("", "check c.toml");
    assert!(
        wrong.contains("\x1b[1;31merror") && wrong.contains("\x1b[1;31m^^^^^^^^^\x1b[0m"),
        "{wrong:?}"
    );
    let piped = command(folder.path(), &["check", "c.toml"]);
    let piped = String::from_utf8_lossy(&piped.stderr).into_owned();
    assert!(
        !piped.contains('\x1b') && piped.contains("c.toml:11:1: ") && piped.contains("^^^^^^^^^"),
        "{piped}"
    );
}

#[test]
fn explain_tells_what_a_cap_drops_of_the_records_that_users_have() {
    let folder = folder(&ten_hours());
    let explained = |mean: &str| {
        bernstream(
            folder.path(),
            &["explain", "c.toml", "--records-per-user", mean],
        )
    };
    let (said, warned) = explained("8");
    assert!(
        said.contains("\nCap\n  max_records_per_window = 2 drops 76.6 % of the records, if users"),
        "{said}"
    );
    let other = "max_records_per_window = 18 drops 10 % at most, at the same sizes with 9.00 times the noise";
    assert!(
        said.contains(other) && warned.contains("warning: the cap drops most of the records: "),
        "{said}{warned}"
    );
    assert!(warned.contains(other), "{warned}");
    let (said, warned) = explained("1.5");
    assert!(
        said.contains("drops 11.1 % of the records") && !warned.contains("warning"),
        "{said}{warned}"
    );
    let told = json(
        &folder,
        &["explain", "c.toml", "--records-per-user", "8", "--json"],
    );
    assert!(
        told["cap"][1]
            .as_str()
            .expect("a sentence")
            .starts_with(other),
        "{told}"
    );
    // Nobody asked, or there is nothing to ask for.
    assert_eq!(
        json(&folder, &["explain", "c.toml", "--json"])["cap"]
            .as_array()
            .expect("sentences")
            .len(),
        0
    );
    let wrong = command(
        folder.path(),
        &["explain", "c.toml", "--records-per-user", "0.5"],
    );
    assert!(
        wrong.status.code() == Some(2),
        "{}",
        String::from_utf8_lossy(&wrong.stderr)
    );
}

/// What the fields of docs/commands.md say of a ledger at work.
#[test]
fn a_ledger_is_shown_and_verified_as_json() {
    let (_, folder) = run(&ten_hours());
    let shown = json(&folder, &["ledger", "show", "c.toml", "--json"]);
    assert_eq!(
        (
            &shown["released"],
            &shown["withheld"],
            &shown["unpublished"]
        ),
        (&20.into(), &28.into(), &0.into())
    );
    assert_eq!(
        (&shown["total"], &shown["blocks"][0]["spent"]),
        (&"1".into(), &"1".into()),
        "{shown}"
    );
    assert_eq!(shown["head"]["sequence"], 48);
    let verified = json(&folder, &["ledger", "verify", "c.toml", "--json"]);
    assert_eq!(
        (
            &verified["rows"],
            &verified["published"],
            &verified["missing"]
        ),
        (&49.into(), &20.into(), &0.into())
    );
    assert_eq!(verified["digest"], shown["head"]["digest"]);

    let again = |window: &str| {
        command(
            folder.path(),
            &["ledger", "republish", "c.toml", "--window", window],
        )
    };
    assert!(again("2026-01-01T03:00:00Z").status.success());
    let unknown = again("2025-01-01T03:00:00Z");
    let why = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert_eq!(unknown.status.code(), Some(78), "{why}");
    assert!(
        why.contains("nothing that is kept is of a window that starts at 2025-01-01T03:00:00Z"),
        "{why}"
    );
}

/// What the fields of docs/commands.md say of a file; the check that fails is told there too.
#[test]
fn a_check_is_told_as_json() {
    let (_, folder) = run(&ten_hours());
    let (said, _) = bernstream(folder.path(), &["check", "c.toml"]);
    assert!(
        said.contains("\nFiles\n  ok     files at in.arrows\n"),
        "{said}"
    );
    let told = json(&folder, &["check", "c.toml", "--json"]);
    let sentences = [
        "guarantee",
        "not_protected",
        "other_pipelines",
        "schedule",
        "memory",
        "disk",
        "message",
    ];
    for sentence in sentences
        .iter()
        .flat_map(|field| told[field].as_array().expect("sentences"))
    {
        assert!(
            said.contains(sentence.as_str().expect("a sentence")),
            "{sentence}: {said}"
        );
    }
    assert_eq!(
        (&told["checks"][0]["fault"], &told["refused"]),
        (&Value::Null, &Value::Null),
        "{told}"
    );
    assert_eq!(
        (&told["ledger"]["total"], &told["ledger"]["spent"]),
        (&"1".into(), &"0".into()),
        "{told}"
    );
    let offline = json(&folder, &["check", "c.toml", "--offline", "--json"]);
    assert_eq!(offline["checks"].as_array().expect("checks").len(), 0);
    assert!(
        offline["not_looked_at"]
            .as_str()
            .is_some_and(|unseen| unseen.contains("in.arrows")),
        "{offline}"
    );

    fs::remove_file(folder.path().join("in.arrows")).expect("it was there");
    let failed = command(folder.path(), &["check", "c.toml", "--json"]);
    let told: Value = serde_json::from_slice(&failed.stdout).expect("JSON");
    assert_eq!(failed.status.code(), Some(78));
    assert!(
        told["checks"][0]["fault"][0]
            .as_str()
            .is_some_and(|why| why.contains("No such file")),
        "{told}"
    );
}

/// As an auditor has it: a snapshot of a volume, which nobody may write to.
#[test]
fn a_ledger_on_a_volume_that_cannot_be_written_is_shown_and_verified() {
    let (_, folder) = run(&ten_hours());
    let ledger = |action: &str| {
        format!(
            "{} ledger {action} c.toml",
            env!("CARGO_BIN_EXE_bernstream")
        )
    };
    let read_only =
        "mount --bind . /mnt && mount -o remount,bind,ro /mnt && cd /mnt && ! touch ledger/x";
    let asked = |action: &str| {
        let script = format!("{read_only} && {}", ledger(action));
        Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .current_dir(folder.path())
            .output()
            .expect("unshare")
    };
    let mounted = Command::new("unshare")
        .args(["-m", "sh", "-c", read_only])
        .current_dir(folder.path())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("only root can mount a volume: a ledger that cannot be written is NOT tested");
        return;
    }
    for (action, expected) in [
        ("show", "next window"),
        ("verify", "the witness has accepted row 48"),
        ("export", "\n"),
    ] {
        let output = asked(action);
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && out.contains(expected),
            "{action}: {out}{err}"
        );
    }
}

/// A synopsis from which records are missing says so, wherever it is read.
#[test]
fn what_is_incomplete_is_said_beside_the_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    for (case, arguments) in [
        ("density-1d", &["evaluate", "s.json"][..]),
        ("moments-1d", &["query", "s.json", "1"]),
    ] {
        let text = fs::read_to_string(format!("clients/golden/{case}.json")).expect("the case");
        let mut synopsis = serde_json::from_str::<Value>(&text).expect("JSON")["synopsis"].take();
        for incomplete in [false, true] {
            synopsis["incomplete"] = incomplete.into();
            fs::write(folder.path().join("s.json"), synopsis.to_string()).expect("it is written");
            let (out, err) = bernstream(folder.path(), arguments);
            let said = format!("{out}{err}");
            assert_eq!(
                said.contains("records of this window may be missing"),
                incomplete,
                "{said}"
            );
        }
    }
}

#[test]
fn a_run_ends_with_where_its_synopses_are_and_warns_of_what_is_surely_a_mistake() {
    let folder = folder(&ten_hours().replace("epsilon = 1.0", "epsilon = 30.0"));
    let (_, log) = bernstream(folder.path(), &["run", "c.toml"]);
    let [.., told, _] = log.lines().collect::<Vec<_>>()[..] else {
        panic!("{log}")
    };
    assert!(
        told.contains("the synopses are in the folder ") && told.contains("`bernstream dashboard "),
        "{log}"
    );
    let (_, warned) = bernstream(folder.path(), &["check", "--offline", "c.toml"]);
    assert!(
        warned.contains("warning: epsilon = 30 protects next to nothing"),
        "{warned}"
    );
}

/// How many records lie in a range, with what noise and form add: in words and as JSON, of the forms that know it and of others.
#[test]
fn a_density_is_asked_for_the_count_of_a_range() {
    let folder = tempfile::tempdir().expect("a folder");
    for (case, is_known) in [
        ("density-1d", true),
        ("density-cells-1d-quadratic", true),
        ("density-points-1d", false),
    ] {
        let text = fs::read_to_string(format!("clients/golden/{case}.json")).expect("the case");
        let synopsis = serde_json::from_str::<Value>(&text).expect("JSON")["synopsis"].take();
        fs::write(folder.path().join("s.json"), synopsis.to_string()).expect("it is written");
        let (out, _) = bernstream(folder.path(), &["query", "s.json", "--range", "15..120"]);
        assert!(
            out.starts_with("records with dep_delay from 15 to 120: "),
            "{case}: {out}"
        );
        assert_eq!(
            out.contains("  what the form cannot follow is at most "),
            is_known,
            "{case}: {out}"
        );
        assert_eq!(
            out.contains(" in at least 9 of 10 windows\n"),
            is_known,
            "{case}: {out}"
        );
        assert!(
            out.contains("the ends of ranges are blurred by about a bandwidth, "),
            "{case}: {out}"
        );
        let (json, _) = bernstream(
            folder.path(),
            &["query", "s.json", "--range", "15..120", "--json"],
        );
        let answer = &serde_json::from_str::<Value>(&json).expect("JSON")["answers"][0];
        assert_eq!(answer["kind"], "count");
        let number = |value: &Value| value.as_f64().expect("a number");
        let half = number(&answer["value"]) - number(&answer["interval"]["lower"]);
        assert!(
            half > 0.0 && answer["form_error"].as_f64().is_some_and(|form| form > 0.0) == is_known,
            "{answer}"
        );
    }
    let asked = command(folder.path(), &["query", "s.json", "--quantile", "0.5"]);
    let why = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(why.contains("no tables of cells"), "{why}");
}

/// The newest synopsis of a topic answers as its file does; without either the command says what it needs.
#[test]
fn a_query_names_a_file_or_a_topic() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = |arguments: &[&str]| {
        let output = command(folder.path(), &[&["query"], arguments].concat());
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, why) = asked(&[]);
    assert!(
        code == Some(78) && why.contains("Name a file, or --topic with --brokers"),
        "{why}"
    );
    let synopsis = bernstream_synopsis::query::example().to_json();
    fs::write(folder.path().join("s.json"), synopsis.expect("JSON")).expect("it is written");
    let (code, why) = asked(&["s.json"]);
    assert!(
        code == Some(78) && why.contains("Give a function of the columns"),
        "{why}"
    );
    let (code, why) = asked(&[
        "x",
        "--topic",
        "t",
        "--brokers",
        "b:9092",
        "--range",
        "1..2",
    ]);
    assert!(
        code == Some(78)
            && why.contains(
                "--range and --quantile ask tables of cells and densities, 'x' asks moments"
            ),
        "{why}"
    );
}
