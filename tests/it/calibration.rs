//! What noise is made for, as the configuration says it: our bound, the paper's to compare with, or a clip's.
use std::process::{Command, Output};

use bernstream_config::WorkerSettings;
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::description::{CalibrationBound, PrivacyDefinition};

const FLIGHTS: &str = include_str!("../data/lattice.toml");

fn bernstream(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(arguments)
        .output()
        .unwrap()
}

/// The first line of every fault.
fn faults(text: &str) -> Vec<String> {
    match WorkerSettings::parse(text, "f") {
        Ok(_) => Vec::new(),
        Err(faults) => faults
            .to_string()
            .lines()
            .filter(|l| l.starts_with("f:"))
            .map(str::to_owned)
            .collect(),
    }
}

/// `text` with one thing in it replaced; what is not there cannot be.
fn with(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old:?} is there once");
    text.replacen(old, new, 1)
}

/// The scale of the noise, and what the synopsis says of it.
fn noise(text: &str) -> (f64, CalibrationBound, String) {
    let settings = WorkerSettings::parse(text, "f").unwrap();
    let band = settings.releases[0]
        .candidate_orders()
        .try_map(|order| {
            Ok::<_, ()>(Band::simulate(
                &settings.releases[0].shape(),
                settings.releases[0].noise.noise_distribution(),
                *order,
            ))
        })
        .unwrap();
    let plan = settings.plan(|_| band.clone(), true).unwrap();
    let description = plan.releases[0].variants.first().descriptions.first();
    (
        description.noise.scale,
        description.noise.calibrated,
        description.privacy.in_words.clone(),
    )
}

#[test]
fn the_papers_scale_is_the_papers_and_is_labelled() {
    let paper = with(FLIGHTS, "order = 4", "order = 4\nscale = \"paper\"");
    let (tight, none, plain) = noise(FLIGHTS);
    let (scale, calibrated, said) = noise(&paper);
    // `[AR17]`: lambda = S N / epsilon, S the peak of the kernel. That of the table in use is 0.8 % above it.
    let papers = 41.0 / (10.0 * (2.0 * std::f64::consts::PI).sqrt());
    assert!((1.0..1.01).contains(&(scale / papers)), "{scale} {papers}");
    let CalibrationBound::Paper { times_needed } = calibrated else {
        panic!("{calibrated:?}")
    };
    assert!(
        none == CalibrationBound::Tight && (times_needed / (scale / tight) - 1.0).abs() < 1e-6,
        "{times_needed}"
    );
    let words =
        format!("Noise calibrated as in the paper, {times_needed:.2} times more than needed");
    assert!(said.contains(&words) && !plain.contains("paper"), "{said}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("paper.toml");
    std::fs::write(&file, &paper).unwrap();
    for command in [&["check", "--offline"][..], &["explain"]] {
        let output = bernstream(&[command, &[file.to_str().unwrap()]].concat());
        assert!(
            String::from_utf8(output.stdout).unwrap().contains(&words),
            "{command:?}"
        );
    }
    // The default adds nothing to what a ledger is bound to.
    let settings = |text: &str| WorkerSettings::parse(text, "f").unwrap();
    assert!(
        !settings(FLIGHTS).normalised.contains("scale")
            && settings(&paper).digest() != settings(FLIGHTS).digest()
    );
    let tight = with(FLIGHTS, "order = 4", "order = 4\nscale = \"tight\"");
    assert_eq!(settings(&tight).digest(), settings(FLIGHTS).digest());
}

#[test]
fn the_papers_scale_is_refused_where_its_constant_is_false_or_there_is_none() {
    let label = r#"label = { column = "arr_delay", min = -60, max = 180, outside = "clamp" }"#;
    let class = r#"label = { column = "arr_delay", above = 15 }"#;
    let table = [
        (
            label,
            "[release.regression]\nbandwidth = 10\ngap = 1\nmax_records = 50",
            "a Priestley-Chao regression",
        ),
        (
            class,
            "[release.machine]\nloss = \"hinge\"\nkernel = \"linear\"\nc = 1\nmax_records = 50",
            "empirical risk",
        ),
        (
            "",
            "[release.expression]\nvalue = \"dep_delay\"",
            "the papers give no sensitivity",
        ),
    ];
    for (label, function, why) in table {
        let text = with(FLIGHTS, "[release.density]\nbandwidths = [10]", function);
        let text = with(&text, "order = 4", &format!("order = 4\n{label}"));
        assert!(faults(&text).is_empty(), "{:?}", faults(&text));
        let text = with(&text, "order = 4", "order = 4\nscale = \"paper\"");
        let line = text
            .lines()
            .position(|line| line.starts_with("scale"))
            .unwrap()
            + 1;
        let told = faults(&text);
        let [told] = &told[..] else {
            panic!("{told:?}")
        };
        assert!(
            told.starts_with(&format!("f:{line}:9: release.scale: ")) && told.contains(why),
            "{told}"
        );
        assert!(told.contains("leave out scale"), "{told}");
    }
}

#[test]
fn an_expression_without_a_bound_needs_a_clip() {
    let text = |table: &str| {
        with(
            FLIGHTS,
            "[release.density]\nbandwidths = [10]",
            &format!("[release.expression]\n{table}"),
        )
    };
    let unbounded = "value = \"1 / dep_delay\"";
    let told = faults(&text(unbounded));
    assert!(
        told[0].contains("cannot be bounded") && told[0].contains("clip what a record adds"),
        "{told:?}"
    );
    let clipped = text(&format!("{unbounded}\nclip = {{ sup = 0.5, sum = 4 }}"));
    let settings = WorkerSettings::parse(&clipped, "f").unwrap();
    assert!(
        settings.releases[0]
            .function
            .meaning
            .ends_with("each clipped to 0.5 a lattice point and 4 in all")
    );
    let target = &settings.releases[0].function.target;
    // What is promised is what the clip says, in natural units, and no word of a prior.
    let bound = target.sensitivity(Adjacency::AddRemove, 1).unwrap().0 as f64 * target.unit();
    assert!((bound - 4.0).abs() < 1e-6, "{bound}");
    assert!(settings.privacy.definition == PrivacyDefinition::PureEpsilon);
    let other = clipped.replace("sum = 4", "sum = 5");
    assert_ne!(
        WorkerSettings::parse(&other, "f").unwrap().digest(),
        settings.digest()
    );
    // A sound expression says the same as before there were clips.
    assert!(
        !WorkerSettings::parse(&text("value = \"dep_delay\""), "f")
            .unwrap()
            .normalised
            .contains("clip")
    );
    let told = faults(&clipped.replace("sum = 4", "sum = 0.1"));
    assert!(
        told[0].contains("release.expression.clip: a record cannot be clipped"),
        "{told:?}"
    );
    let told = faults(&clipped.replace("sup = 0.5, ", ""));
    assert!(
        told[0].ends_with("release.expression.clip.sup: missing"),
        "{told:?}"
    );
}
