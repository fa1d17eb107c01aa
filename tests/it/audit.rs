//! `bernstream audit` on configurations as they are shipped, and on programs that do not keep what they promise.

use std::fs;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use bernstream::audit::trade_off::{Neighbours, Walk, Walked};
use bernstream::audit::{self, Stamps, Subject, Test, neighbours};
use bernstream::config::Settings;
use bernstream::mechanism::Mechanism;
use bernstream::mechanism::choice::Candidates;
use bernstream::pipeline::{Plan, Release, ReleaseVariant};
use bernstream::synopsis::band::Band;
use bernstream::targets::Sensitivity;
use serde_json::Value;

const ALARM: f64 = 1e-9;

fn audit(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_bernstream");
    Command::new(program).arg("audit").args(arguments).output().expect("it runs")
}

/// The tests of a JSON report, by name.
fn tests(report: &Value) -> Vec<(String, Value)> {
    let named = |part: &Value, of: &Value| -> Vec<(String, Value)> {
        let tests = part["tests"].as_array().cloned().unwrap_or_default();
        let name = |test: &Value| {
            format!("{}: {}", of.as_str().unwrap_or_default(), test["what"].as_str().unwrap_or_default())
        };
        tests.iter().map(|test| (name(test), test.clone())).collect()
    };
    let samplers = report["samplers"].as_array().expect("samplers").iter().flat_map(|one| named(one, &one["of"]));
    let walks = report["walks"].as_array().expect("walks").iter().flat_map(|one| named(one, &one["release"]));
    samplers.chain(walks).collect()
}

#[test]
fn a_shipped_configuration_passes_and_its_report_says_what_was_tested() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("report.html");
    let output = audit(&[
        "config/flights.toml",
        "--minutes",
        "0.1",
        "--seed",
        "7",
        "--json",
        "--html",
        &page.display().to_string(),
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(
        (&report["passed"], &report["format"], &report["seed"]),
        (&true.into(), &1.into(), &7.into()),
        "{report}"
    );
    assert_eq!(report["ledger"]["state"], "missing");
    assert!(report["replay"]["replayed"].as_u64() > Some(0) && report["replay"]["violations"] == Value::Array(vec![]));
    let changes = report["replay"]["changes"].as_array().expect("changes");
    assert!(changes.iter().all(|change| change["found_of_declared"].as_f64() <= Some(1.0)), "{changes:?}");
    let tests = tests(&report);
    assert!(tests.len() >= 9, "{tests:?}");
    for (name, test) in &tests {
        assert_eq!(test["verdict"], "passed", "{name}: {test}");
        let is_calculated = name.ends_with("costs no more than the price");
        let draws = test["draws"].as_u64().expect("a count");
        assert!(test["alarm"].as_f64() <= Some(ALARM) && (is_calculated || draws >= 400), "{name}: {test}");
    }
    let noticed = |name: &str| tests.iter().find(|(known, _)| known.ends_with(name)).expect(name).1["noticed"].as_f64();
    assert!(noticed("the size of a draw") > Some(0.8), "noise at 0.8 of its scale would have been noticed");
    assert!(noticed("the size of the noise is that of the declared noise") > Some(0.8));
    assert!(report["cannot_show"].as_array().expect("limits").len() > 5);

    // The page holds everything by itself: nothing is loaded, and nothing runs.
    let page = fs::read_to_string(page).expect("the page");
    assert!(page.contains("Audit of config/flights.toml: <span class=\"passed\">passed"), "{page}");
    assert_eq!(page.matches("<svg").count(), 4, "changes, a sampler, and two of the walk");
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href="));
    for words in ["found / declared", "false accusations", "What this cannot show", "--seed 7"] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn sums_with_noise_that_is_correlated_pass_and_what_is_left_out_is_named() {
    let output = audit(&["config/flights-running.toml", "--minutes", "0.1", "--seed", "7"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    for words in
        ["Gaussian noise", "last-four-weeks: ", "promised: rho 0.01", "later synopses of the running sum", "\n  passed"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// A whole pipeline over files: what it left is verified, and one byte of it changed fails the audit.
#[test]
fn a_ledger_and_an_output_that_are_there_are_verified_and_a_byte_that_was_not_paid_for_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, flights) = (folder.path(), fs::canonicalize("tests/data/flights.parquet").expect("the flights"));
    let text = format!(
        r#"
pipeline = "audited"
[input]
time = "time"
files = {{ path = "{}" }}
[windows]
origin = "2013-01-01T05:00:00Z"
length = "28d"
end = "2013-03-26T05:00:00Z"
[privacy]
unit = "record"
adjacency = "add_remove"
epsilon = 1
[release]
name = "delay"
epsilon = 1
degree = 6
order = 1
domain = [{{ column = "dep_delay", min = -30, max = 180, outside = "clamp" }}]
density = {{ bandwidths = [20] }}
[output]
files = {{ path = "{}" }}
[ledger]
path = "{}"
"#,
        flights.display(),
        path.join("out").display(),
        path.join("ledger").display()
    );
    let configuration = path.join("audited.toml");
    fs::write(&configuration, text).expect("it can be written");
    let configuration = configuration.display().to_string();
    let ran = Command::new(env!("CARGO_BIN_EXE_bernstream")).args(["run", &configuration]).output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let report = |output: &Output| -> Value { serde_json::from_slice(&output.stdout).expect("one document") };
    let arguments = [configuration.as_str(), "--minutes", "0.01", "--json"];

    let right = audit(&arguments);
    let found = report(&right);
    assert_eq!((right.status.code(), &found["ledger"]["state"]), (Some(0), &"verified".into()), "{found}");
    let lines = found["ledger"]["lines"].to_string();
    assert!(lines.contains("every message on the output was paid for, byte for byte: 3"), "{lines}");

    let synopsis = path.join("out/audited/delay/2013-01-29T050000Z.arrows");
    let mut bytes = fs::read(&synopsis).expect("a synopsis");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(&synopsis, bytes).expect("it can be written");
    let wrong = audit(&arguments);
    let (found, said) = (report(&wrong), String::from_utf8_lossy(&wrong.stderr).into_owned());
    assert_eq!((wrong.status.code(), &found["ledger"]["state"]), (Some(1), &"failed".into()), "{found}");
    let words = "1 of its tests failed: ledger and output: the output holds what this ledger never paid for";
    assert!(said.contains(words), "{said}");
}

/// To verify an older format is to rewrite it: an audit leaves that to whoever runs the worker.
#[test]
fn a_ledger_of_an_older_format_is_not_verified_and_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger");
    fs::create_dir(&path).expect("a folder");
    let old = fs::read_dir("tests/data/upgrade/sums-of-format-3/ledger").expect("a ledger");
    for file in old.map(|file| file.expect("a file")) {
        fs::copy(file.path(), path.join(file.file_name())).expect("a copy");
    }
    let text = fs::read_to_string("config/flights.toml").expect("a configuration");
    let text = text.replace("path = \"ledger\"", &format!("path = \"{}\"", path.display()));
    let file = folder.path().join("audited.toml");
    fs::write(&file, text).expect("it can be written");
    let content = || {
        let files = fs::read_dir(&path).expect("a folder").map(|file| file.expect("a file").path());
        files.map(|file| (file.clone(), fs::read(file).expect("bytes"))).collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = content();
    let output = audit(&[&file.display().to_string(), "--minutes", "0.01", "--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!((output.status.code(), &report["ledger"]["state"]), (Some(0), &"not_verified".into()), "{said}");
    assert!(report["ledger"]["lines"].to_string().contains("has format 3, of an older program"), "{report}");
    assert!(content() == before, "an audit changes nothing");
}

#[test]
fn what_cannot_be_audited_is_refused_in_words() {
    let code = |arguments: &[&str]| {
        let output = audit(arguments);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (wrong, said) = code(&["tests/data/wrong.toml"]);
    assert_eq!(wrong, Some(78), "{said}");
    let (never, said) = code(&["config/flights.toml", "--minutes", "0"]);
    assert!(never == Some(2) && said.contains("must be more than 0"), "{said}");
    let (nowhere, said) = code(&["config/flights.toml", "--minutes", "0.0001", "--html", "/nowhere/report.html"]);
    assert!(nowhere == Some(69) && said.contains("cannot write /nowhere/report.html"), "{said}");
}

/// One function with this noise and price.
fn settings(noise: &str, total: &str) -> Settings {
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
    Settings::parse(&text, "audited").unwrap_or_else(|faults| panic!("{faults}"))
}

fn plan(settings: &Settings) -> Plan {
    let release = &settings.releases[0];
    let band = Band::of_each(release.noise.law(), release.shape().values());
    settings.plan(|_| Candidates::new(band.clone(), Vec::new()), false).expect("a plan")
}

/// The same plan, its one variant changed.
fn with_variant(plan: &Plan, change: impl Fn(&ReleaseVariant) -> ReleaseVariant) -> Plan {
    let release = &plan.releases[0];
    let variants = Candidates::new(change(release.variants.first()), Vec::new());
    Plan { releases: vec![Release { variants, ..release.clone() }], ..plan.clone() }
}

fn subject<'a>(settings: &'a Settings, plan: &'a Plan) -> Subject<'a> {
    let adjacency = settings.privacy.adjacency;
    Subject { plan, columns: &settings.columns, adjacency, stamps: Stamps::None }
}

/// So many windows of the pair that differs most.
fn walk(subject: &Subject<'_>, runs: u64) -> Walked {
    let pairs = neighbours::pairs(subject);
    let streams = pairs
        .iter()
        .map(|pair| [&pair.with, &pair.without].map(|stream| audit::batches(subject, stream).expect("it is encoded")));
    let streams: Vec<_> = streams.collect();
    let walks = streams.iter().filter_map(|[with, without]| {
        Walk::new(subject.plan, 0, Neighbours { with, without }, &subject.windows()).ok()
    });
    let worst = walks.max_by(|a, b| a.distance().total_cmp(&b.distance())).expect("a pair that differs");
    worst.run((1, 0), ALARM, runs, Instant::now() + Duration::from_secs(600)).expect("it walks")
}

fn failed(walked: &Walked) -> Vec<&str> {
    walked.tests.iter().filter(|test| test.has_failed()).map(|test: &Test| test.what.as_str()).collect()
}

/// Every law of noise: as declared it passes, and at 0.8 of its scale it is caught, by the size of the noise at least.
#[test]
fn noise_at_four_fifths_of_its_scale_is_caught_and_the_declared_noise_is_not() {
    for (noise, total) in [("laplace", "epsilon = 1"), ("cube", "epsilon = 1"), ("gaussian", "rho = 0.5")] {
        let settings = settings(noise, total);
        let honest = plan(&settings);
        let walked = walk(&subject(&settings, &honest), 10_000);
        assert!(failed(&walked).is_empty(), "{noise}: {:?}", walked.tests);
        assert!(walked.change_in_scales > 0.9, "{noise}: {}", walked.change_in_scales);
        let price = honest.releases[0].description().privacy.price;
        let weak = with_variant(&honest, |variant| {
            let change = Sensitivity(variant.change.0 / 5 * 4);
            let law = variant.mechanism.distribution();
            let mechanism = Mechanism::calibrated(law, change, variant.touched, price).expect("noise");
            ReleaseVariant { mechanism, ..variant.clone() }
        });
        let walked = walk(&subject(&settings, &weak), 10_000);
        println!("{noise}: {:?} after {} windows", failed(&walked), walked.runs);
        assert!(
            failed(&walked).contains(&"the size of the noise is that of the declared noise"),
            "{noise}: {:?}",
            walked.tests
        );
    }
}

/// What needs no knowledge of the law: an attacker who does better than the promise allows.
#[test]
fn noise_for_half_the_sensitivity_breaks_the_promise_by_the_attacker_alone() {
    let settings = settings("laplace", "epsilon = 1");
    let honest = plan(&settings);
    let price = honest.releases[0].description().privacy.price;
    let weak = with_variant(&honest, |variant| {
        let change = Sensitivity(variant.change.0 / 2);
        let mechanism = Mechanism::calibrated(variant.mechanism.distribution(), change, variant.touched, price);
        let mechanism = mechanism.expect("noise");
        // The description knows: only the promise is left to be broken.
        let descriptions = variant.descriptions.try_map(|about| Ok::<_, ()>(about.clone().at_scale(0.5))).expect("one");
        ReleaseVariant { mechanism, descriptions, ..variant.clone() }
    });
    let walked = walk(&subject(&settings, &weak), 20_000);
    let expected = [
        "no attacker is better than the promise allows",
        "the change that was found or declared costs no more than the price",
    ];
    assert_eq!(failed(&walked), expected, "{:?}", walked.tests);
    assert!(walked.epsilon_shown > 1.0, "{}", walked.epsilon_shown);
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
        let pairs = neighbours::pairs(&subject);
        let report = audit::run(&subject, &pairs[..pairs.len().min(12)], 1, || true).expect("replays");
        assert_eq!((report.violations.len(), report.beyond.is_empty()), (0, is_right), "{report:?}");
    }
}
