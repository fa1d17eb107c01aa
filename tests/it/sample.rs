//! From a public prior to a release: sampled, pasted, checked, run, evaluated; and what was sampled for something else is
//! refused.
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use crate::harness::exact::Opened as _;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream_config::SamplerInput;
use bernstream_config::WorkerSettings;
use bernstream_functions::sampled::{ClippedTarget, NeighbouringWindows, SampledChange};
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::{CalibrationBound, PrivacyDefinition, RandomPrivacy};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;

const SAMPLED: &str = include_str!("../../config/sampled.toml");

fn bernstream(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(arguments)
        .env("BERNSTREAM_LOG", "info")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `text` with one thing in it replaced; what is not there cannot be.
fn with(text: &str, old: &str, new: &str) -> String {
    assert_eq!(
        text.matches(old).count(),
        1,
        "{old:?} is there once in {text}"
    );
    text.replacen(old, new, 1)
}

/// The example without its result: what somebody writes by hand.
fn question() -> String {
    let lines = SAMPLED
        .lines()
        .skip_while(|line| *line != "[release.sampled.result]");
    let result: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    assert_eq!(result.len(), 7);
    with(SAMPLED, &result.join("\n"), "")
}

/// A folder with a configuration of its own, all of whose paths lead into it.
struct Setup(TempDir);

impl Setup {
    fn new(configuration: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let inside = |name: &str| folder.path().join(name).display().to_string();
        let text = ["visits", "out/sampled", "ledger/sampled"].iter().fold(
            configuration.to_owned(),
            |text, name| {
                with(
                    &text,
                    &format!("path = \"{name}\""),
                    &format!("path = \"{}\"", inside(name)),
                )
            },
        );
        fs::write(folder.path().join("c.toml"), text).unwrap();
        Setup(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn configuration(&self) -> String {
        fs::read_to_string(self.path("c.toml")).unwrap()
    }

    fn on(&self, arguments: &[&str]) -> Output {
        let file = self.path("c.toml");
        bernstream(&[arguments, &[file.to_str().unwrap()]].concat())
    }

    /// What `sample` prints, added as it says.
    fn paste(&self) {
        let sampled = self.on(&["sample"]);
        assert!(sampled.status.success(), "{}", text(&sampled.stderr));
        fs::write(
            self.path("c.toml"),
            format!("{}\n{}", self.configuration(), text(&sampled.stdout)),
        )
        .unwrap();
    }

    /// Two weeks of visitors as the prior of the example has them.
    fn visitors(&self) {
        let origin = Timestamp::parse("2026-01-05T00:00:00Z").unwrap().micros();
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let times: Vec<i64> = (0..600).map(|i| origin + i * 2_000_000_000).collect();
        let ages: Vec<f64> = times.iter().map(|_| rng.random_range(18.0..90.0)).collect();
        let pressures: Vec<f64> = times
            .iter()
            .map(|_| rng.random_range(105.0..155.0))
            .collect();
        let columns: [(&str, ArrayRef); 3] = [
            (
                "time",
                Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")),
            ),
            ("age", Arc::new(Float64Array::from(ages))),
            ("pressure", Arc::new(Float64Array::from(pressures))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        fs::create_dir(self.path("visits")).unwrap();
        let file = File::create(self.path("visits").join("1.arrows")).unwrap();
        let mut writer = StreamWriter::try_new(file, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }
}

fn synopses(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if path.is_dir() {
            found.extend(synopses(&path));
        } else if Synopsis::decode_message(&fs::read(&path).unwrap()).is_ok() {
            found.push(path);
        }
    }
    found
}

#[test]
fn what_was_sampled_is_pasted_checked_released_and_labelled_everywhere() {
    let setup = Setup::new(&question());
    let refused = setup.on(&["check", "--offline"]);
    assert!(refused.status.code() == Some(78) && text(&refused.stderr).contains("has no result"));
    // Neither input nor output nor ledger is there yet, and none is made.
    setup.paste();
    assert_eq!(
        fs::read_dir(setup.0.path()).unwrap().count(),
        1,
        "only the configuration"
    );

    for command in [&["check", "--offline"][..], &["explain"]] {
        let said = text(&setup.on(command).stdout);
        assert!(
            said.contains(
                "RANDOM differential privacy of records, not plain: epsilon = 1 with gamma = 0.1"
            ),
            "{said}"
        );
        assert!(
            said.contains("adds up (union bound)")
                && said.contains("values are clipped to 80 to 200"),
            "{said}"
        );
        assert!(!said.contains(": pure differential privacy of"), "{said}");
    }

    setup.visitors();
    let run = setup.on(&["run"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let files = synopses(&setup.path("out/sampled"));
    assert_eq!(files.len(), 2);
    let synopsis = Synopsis::decode_message(&fs::read(&files[0]).unwrap()).unwrap();
    let about = synopsis.description();
    let PrivacyDefinition::Random(random) = &about.privacy.definition else {
        panic!("{:?}", about.privacy.definition)
    };
    assert_eq!(
        (
            random.gamma,
            random.records,
            random.range,
            random.prior.len()
        ),
        (0.1, 300, [80.0, 200.0], 2)
    );
    assert_eq!(about.noise.calibrated, CalibrationBound::Sampled);
    // The noise is that of the sampled sensitivity, and less than that of the proved one.
    let settings = WorkerSettings::load(&setup.path("c.toml")).unwrap();
    let proved =
        WorkerSettings::parse(&with(&plain(), "path = \"visits\"", "path = \"v\""), "f").unwrap();
    let [sampled, proved] = [&settings, &proved].map(|s| mechanism(s).scale().units() as f64);
    assert!(
        (about.noise.scale / (sampled * settings.releases[0].function.grid_unit()) - 1.0).abs()
            < 1e-12
    );
    println!(
        "sampled {:.3} of proved; at worst epsilon {}",
        sampled / proved,
        random.epsilon_at_worst
    );
    assert!(sampled < 0.8 * proved && random.epsilon_at_worst >= proved / sampled);
    assert!(random.epsilon_at_worst <= proved / sampled + 0.2);

    let headers = synopsis.encode().unwrap().headers;
    assert!(headers.contains(&("random_dp_gamma".to_owned(), "0.1".to_owned())));
    assert!(headers.contains(&("random_dp_epsilon".to_owned(), "1".to_owned())));
    assert!(headers.iter().all(|(name, _)| name != "epsilon"));
    let label = "RANDOM differential privacy, gamma = 0.1";
    let evaluated = bernstream(&["evaluate", files[0].to_str().unwrap(), "--at", "40"]);
    assert!(
        text(&evaluated.stderr).contains(&format!("{label}, epsilon 1")),
        "{}",
        text(&evaluated.stderr)
    );
    for command in ["show", "verify"] {
        let said = setup.on(&["ledger", command]);
        assert!(
            said.status.success() && text(&said.stdout).contains(label),
            "{command}: {}",
            text(&said.stdout)
        );
    }
    assert!(
        text(&setup.on(&["ledger", "export"]).stdout).contains(r#"\"definition\":{\"random\":{"#)
    );

    // The ledger is its own: a plain configuration may not use it.
    let sound = setup.configuration();
    fs::write(setup.path("c.toml"), without_sampled(&sound)).unwrap();
    let other = setup.on(&["run"]);
    assert_eq!(other.status.code(), Some(74));
    let said = text(&other.stderr);
    assert!(
        said.contains(label)
            && said.contains("pure differential privacy")
            && said.contains("of its own"),
        "{said}"
    );
}

#[test]
fn a_ledger_of_plain_privacy_takes_no_sampled_release() {
    let setup = Setup::new(&question());
    setup.paste();
    let sampled = setup.configuration();
    fs::write(setup.path("c.toml"), without_sampled(&sampled)).unwrap();
    setup.visitors();
    let run = setup.on(&["run"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(text(&setup.on(&["ledger", "show"]).stdout).contains("pure differential privacy"));
    fs::write(setup.path("c.toml"), sampled).unwrap();
    let other = setup.on(&["run"]);
    assert_eq!(other.status.code(), Some(74));
    assert!(
        text(&other.stderr).contains("accounts for pure differential privacy"),
        "{}",
        text(&other.stderr)
    );
}

/// Leaves out `[release.sampled]` and its result.
fn without_sampled(configuration: &str) -> String {
    let mut is_kept = true;
    let keep = |line: &&str| {
        if line.starts_with('[') {
            is_kept = !line.starts_with("[release.sampled");
        }
        is_kept
    };
    configuration
        .lines()
        .filter(keep)
        .collect::<Vec<_>>()
        .join("\n")
}

fn plain() -> String {
    without_sampled(SAMPLED)
}

#[test]
fn what_the_example_says_is_what_the_sampler_finds() {
    let setup = Setup::new(&question());
    let sampled = setup.on(&["sample"]);
    let table = text(&sampled.stdout);
    let (_, table) = table.split_once("[release.sampled.result]\n").unwrap();
    assert!(
        SAMPLED.contains(table),
        "config/sampled.toml must hold\n{table}"
    );
    // Who draws which pair does not matter; another seed does.
    assert_eq!(sampled.stdout, setup.on(&["sample"]).stdout);
    fs::write(
        setup.path("c.toml"),
        with(&setup.configuration(), "seed = 1", "seed = 2"),
    )
    .unwrap();
    assert_ne!(sampled.stdout, setup.on(&["sample"]).stdout);
}

#[test]
fn a_result_of_another_question_is_refused() {
    let faults = |text: &str| {
        WorkerSettings::parse(text, "f")
            .err()
            .map(|faults| faults.to_string())
            .unwrap_or_default()
    };
    assert_eq!(faults(SAMPLED), "");
    let digit = SAMPLED
        .lines()
        .find(|line| line.starts_with("sensitivity = "))
        .unwrap();
    let lower = digit.replacen("= ", "= 1", 1);
    let edits = [
        (digit, lower.as_str()),
        ("degree = 16", "degree = 17"),
        (
            "adjacency = \"add_remove\"",
            "adjacency = { replace_one = { records_per_window = 300 } }",
        ),
        ("bandwidth = 8", "bandwidth = 9"),
        ("gap = 2", "gap = 2.1"),
        ("max = 90, outside", "max = 91, outside"),
        ("min = 80", "min = 79"),
        ("records = 300\nseed", "records = 200\nseed"),
        ("gamma = 0.1\n", "gamma = 0.2\n"),
        ("deviation = 15", "deviation = 10"),
        ("seed = 1", "seed = 2"),
        ("seed = 1", "seed = 1\nrange = [90, 190]"),
    ];
    for (old, new) in edits {
        let told = faults(&with(SAMPLED, old, new));
        assert!(
            told.contains("is not the result of this configuration"),
            "{new}: {told}"
        );
        assert!(
            told.contains("f:") && told.contains("release.sampled.result.digest"),
            "{new}: {told}"
        );
    }
    // What the sampler does not depend on may change.
    for (old, new) in [
        ("order = 2\n", "order = 3\n"),
        ("pipeline = \"clinic\"", "pipeline = \"other\""),
    ] {
        assert_eq!(faults(&with(SAMPLED, old, new)), "", "{new}");
    }
    let users = with(
        SAMPLED,
        "unit = \"record\"",
        "unit = { user = { column = \"id\", per = \"7d\", max_records_per_window = 2 } }",
    );
    assert!(
        faults(&users).contains("protects single records"),
        "{}",
        faults(&users)
    );
    for total in ["epsilon = 1.0\ndelta = 1e-9", "rho = 0.5"] {
        let told = faults(&with(SAMPLED, "epsilon = 1.0\n\n", &format!("{total}\n\n")));
        assert!(
            told.contains("release.sampled: a sampled sensitivity needs a pure budget"),
            "{told}"
        );
    }
    let paper = with(SAMPLED, "order = 2\n", "order = 2\nscale = \"paper\"\n");
    assert!(
        faults(&paper).contains("release.scale"),
        "{}",
        faults(&paper)
    );
    let half = with(
        SAMPLED,
        "    { column = \"pressure\", law = { normal = { mean = 130, deviation = 15 } } },\n",
        "",
    );
    assert!(
        faults(&half).contains("has no law for pressure"),
        "{}",
        faults(&half)
    );
    let typo = with(SAMPLED, "deviation = 15", "deviaton = 15");
    assert!(faults(&typo).contains("deviat"), "{}", faults(&typo));
}

fn study(text: &str) -> SamplerInput {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("c.toml");
    fs::write(&file, text).unwrap();
    SamplerInput::load(&file).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Fresh pairs of the example: at most gamma of them change by more; a bound 30 % too small is found out.
#[test]
fn fresh_pairs_of_the_prior_are_covered_and_a_smaller_bound_would_not_cover_them() {
    // The fewest pairs for a gamma take the largest of all changes; more come closer to what is needed.
    let study = study(&with(&question(), "seed = 1", "seed = 1\nsamples = 3000"));
    let changes: Vec<SampledChange> = (0..study.plan.samples)
        .map(|pair| study.neighbours.pair_change(pair))
        .collect();
    let bound = study.plan.integer_statistic(&changes).unwrap().sum;
    assert!(
        study.plan.integer_statistic(&changes[1..]).is_err(),
        "pairs are missing"
    );
    let fresh = NeighbouringWindows {
        seed: 77,
        ..study.neighbours.clone()
    };
    let changes: Vec<SampledChange> = (0..400).map(|pair| fresh.pair_change(pair)).collect();
    let over = |bound: u64| changes.iter().filter(|change| change.sum > bound).count();
    let (over, less) = (over(bound), over(bound * 7 / 10));
    println!("{over} of 400 change by more, {less} by more than 70 % of it");
    assert!(over < 40, "{over}");
    assert!(less > 40, "{less}");
}

/// Neighbours that the prior never gives, all at one place: no further apart than what is said to hold whatever they are.
#[test]
fn records_that_the_prior_does_not_resemble_stay_within_what_is_said_of_them() {
    let settings = WorkerSettings::parse(SAMPLED, "f").unwrap();
    let PrivacyDefinition::Random(RandomPrivacy {
        epsilon_at_worst, ..
    }) = settings.privacy.definition
    else {
        panic!()
    };
    let target = &settings.releases[0].function.target;
    let scale = mechanism(&settings).scale().units() as f64;
    let values = |records: &[([f64; 1], f64)]| {
        let records = records
            .iter()
            .map(|(x, label)| target.accumulator().record(x, *label));
        target.evaluate(&target.accumulator().filled_accumulator(records))
    };
    // One record alone in its gap, with and without a neighbour on either side.
    let one = values(&[([0.2], 1.0), ([0.5], 1.0), ([0.53], 1.0)]);
    let other = values(&[([0.2], 1.0), ([0.53], 1.0)]);
    let change: u128 = one
        .opened()
        .iter()
        .zip(&other.opened())
        .map(|(a, b)| a.abs_diff(*b))
        .sum();
    let sampled = target.sensitivity(Adjacency::AddRemove, 1).unwrap().0;
    println!(
        "found {change}, sampled {sampled}, at worst {:.0}",
        epsilon_at_worst * scale
    );
    assert!(
        change > u128::from(sampled),
        "the example would need no prior"
    );
    assert!((change as f64) < epsilon_at_worst * scale);
}

#[test]
fn every_value_is_clipped() {
    let wide = WorkerSettings::parse(&plain(), "f").unwrap().releases[0]
        .function
        .target
        .clone();
    let narrow = ClippedTarget::new(wide.clone(), [-5, 7]).unwrap();
    assert_eq!(
        narrow.worst_change(Adjacency::AddRemove),
        12 * wide.shape().value_count() as u128
    );
    let prior = study(SAMPLED).neighbours.prior;
    let neighbours = NeighbouringWindows {
        target: narrow,
        prior,
        records: 50,
        adjacency: Adjacency::ReplaceOne,
        seed: 1,
    };
    let changes: Vec<SampledChange> = (0..50).map(|pair| neighbours.pair_change(pair)).collect();
    assert!(
        changes
            .iter()
            .all(|change| change.sup <= 12 && change.sum <= 12 * 17),
        "{changes:?}"
    );
    assert!(changes.iter().any(|change| change.sum > 0));
    assert!(ClippedTarget::new(wide, [7, 7]).is_err());
}

/// A range that clips every value away would leave no noise: neither the sampler nor a pasted result gets through.
#[test]
fn a_range_that_hides_every_change_is_refused() {
    let clipped = study(&with(&question(), "seed = 1", "seed = 1\nsamples = 300"));
    let target = ClippedTarget::new(
        WorkerSettings::parse(&plain(), "f").unwrap().releases[0]
            .function
            .target
            .clone(),
        [i128::from(1_u64 << 61), 1 << 62],
    );
    let neighbours = NeighbouringWindows {
        target: target.unwrap(),
        ..clipped.neighbours.clone()
    };
    let changes: Vec<SampledChange> = (0..clipped.plan.samples)
        .map(|pair| neighbours.pair_change(pair))
        .collect();
    assert!(changes.iter().all(|change| change.sum == 0));
    let refused = clipped
        .plan
        .integer_statistic(&changes)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("most pairs do not differ at all"),
        "{refused}"
    );

    // Some change, but the plain guarantee that is left protects nobody.
    let setup = Setup::new(&with(
        &question(),
        "mean = 130, deviation = 15",
        "mean = 140, deviation = 0.001",
    ));
    setup.paste();
    let told = WorkerSettings::parse(&setup.configuration(), "f")
        .unwrap_err()
        .to_string();
    assert!(told.contains("next to no noise left"), "{told}");
}

/// For a histogram the change of a pair is what one record adds: the sampler must find what brute force finds.
#[test]
fn the_sampler_evaluates_the_configured_function_whatever_it_is() {
    let density = "[release.density]\nbandwidths = [5]";
    let number = "label = { column = \"pressure\", min = 80, max = 200, outside = \"clamp\" }";
    let regression = "[release.regression]\nbandwidth = 8\ngap = 2\nmax_records = 300";
    let class = "label = { column = \"pressure\", above = 140 }";
    let quick = with(
        &with(&question(), "records = 300\nseed", "records = 40\nseed"),
        "degree = 16",
        "degree = 6",
    );
    let classifier = |table: &str| {
        let text = with(&with(&quick, number, class), regression, table);
        with(&text, "seed = 1", "seed = 1\nrange = [-1, 1]")
    };
    let logistic = "[release.logistic]\nscore = \"sigmoid\"\nc = 1\nmax_records = 40";
    let machine = "[release.machine]\nloss = \"hinge\"\nkernel = { gaussian = { bandwidth = 0.3 } }\nc = 1\nmax_records = 40";
    let bayes = "[release.bayes]\nmin_deviations = [10]";
    let sum = "[release.expression]\nvalue = \"exp(-((age - at.age) / 10)^2)\"";
    let unlabelled = |table: &str| {
        let text = with(
            &with(&with(&quick, number, ""), regression, table),
            "seed = 1",
            "seed = 1\nrange = [0, 300]",
        );
        with(
            &text,
            "    { column = \"pressure\", law = { normal = { mean = 130, deviation = 15 } } },\n",
            "",
        )
    };
    let bounded = with(&classifier(logistic), "\nrange = [-1, 1]", "");
    let texts = [
        quick.clone(),
        bounded,
        classifier(machine),
        classifier(bayes),
        unlabelled(density),
        unlabelled(sum),
    ];
    for text in texts {
        for adjacency in [
            "\"add_remove\"",
            "{ replace_one = { records_per_window = 40 } }",
        ] {
            let text = with(
                &text,
                "adjacency = \"add_remove\"",
                &format!("adjacency = {adjacency}"),
            );
            let study = study(&text);
            let neighbours = &study.neighbours;
            let proved = neighbours
                .target
                .target()
                .sensitivity(neighbours.adjacency, 1)
                .unwrap()
                .0;
            let largest = (0..20)
                .map(|pair| neighbours.pair_change(pair).sum)
                .max()
                .unwrap();
            println!(
                "{}: {:.3} of what is proved",
                study.quantity,
                largest as f64 / proved as f64
            );
            assert!(
                largest > 0 && largest <= proved,
                "{largest} {proved} {text}"
            );
        }
    }
}

/// The mechanism of the only release.
fn mechanism(settings: &WorkerSettings) -> bernstream_noise::Mechanism {
    let release = &settings.releases[0];
    settings.mechanism_of(release, &release.function).unwrap()
}
