//! The configuration, through its public face: every file that we ship is sound, every fault is found and told.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use bernstream_config::{OutputParams as To, Period, PrivacyUnit, WorkerSettings, synopsis_bytes};
use bernstream_kafka::source::record::IdType;
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::grid::{Blocks, SpanGrid};

use prost_reflect::prost::Message;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};

use crate::harness::plan::plan;

const FLIGHTS: &str = include_str!("../data/lattice.toml");
const FILES: &str = include_str!("../../config/files.toml");
const USERS: &str = include_str!("../../config/users.toml");
const WRONG: &str = include_str!("../data/wrong.toml");

fn shipped() -> Vec<PathBuf> {
    let folder = std::fs::read_dir("config").unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    // Beside them stand the schema and the list of errors.
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    files
}

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

#[test]
fn every_file_that_we_ship_is_sound() {
    assert!(shipped().len() >= 4);
    for file in shipped() {
        if let Err(faults) = WorkerSettings::load(&file) {
            panic!("{faults}");
        }
    }
}

#[test]
fn a_file_of_lines_needs_the_type_of_its_key_before_anybody_looks_at_it() {
    let reads = |name: &str| with(FILES, r#"path = "flights""#, &format!("path = {name:?}"));
    for name in ["flights.csv", "flights.jsonl", "flights.ndjson"] {
        let found = faults(&reads(name));
        assert!(
            found.len() == 1 && found[0].ends_with("input.key.type: missing"),
            "{name}: {found:?}"
        );
        let declared = with(
            &reads(name),
            r#"column = "origin""#,
            r#"column = "origin", type = "text""#,
        );
        assert_eq!(faults(&declared), Vec::<String>::new(), "{name}");
    }
    assert_eq!(
        faults(&reads("flights.parquet")),
        Vec::<String>::new(),
        "its columns have types"
    );
}

/// Somebody who tries two examples in one folder gets two ledgers, and two outputs.
#[test]
fn no_two_examples_write_into_the_same_place() {
    let mut places = std::collections::BTreeMap::new();
    let mut count = 0;
    for entry in std::fs::read_dir("config").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        count += 1;
        let table: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let output = &table["output"];
        let kafka = output.get("kafka");
        let outputs = [
            kafka.map(|kafka| &kafka["topic"]),
            kafka.map(|kafka| &kafka["witness"]),
        ];
        let files = output.get("files").map(|files| &files["path"]);
        for (kind, place) in [
            ("topic", outputs[0]),
            ("topic", outputs[1]),
            ("folder", files),
            ("folder", Some(&table["ledger"]["path"])),
        ] {
            let Some(place) = place else { continue };
            let other = places.insert((kind, place.as_str().unwrap().to_owned()), path.clone());
            assert_eq!(other, None, "{}: {kind} {place:?}", path.display());
        }
    }
    assert!(count >= 10, "{count}");
    // None lies in another one.
    let folders: Vec<&String> = places
        .keys()
        .filter(|(kind, _)| *kind == "folder")
        .map(|(_, place)| place)
        .collect();
    for one in &folders {
        let inside = folders
            .iter()
            .find(|other| other.starts_with(&format!("{one}/")));
        assert!(inside.is_none(), "{one}: {inside:?}");
    }
}

#[test]
fn the_reference_says_what_the_defaults_are() {
    let text = include_str!("../../config/reference.toml");
    let optional = [
        "trust_producer_time = false",
        "on_bad_message = \"stop\"",
        "scale = \"tight\"",
        "composition = \"sum\"",
        "reserve = 0",
        "brokers = \"localhost:9092\"\ntopic = \"reference-synopses\"",
        "witness_min_insync_replicas = 2",
        "brokers_lose_power = \"together\"",
        "keep_published = \"7d\"",
        "detail = \"safe\"",
    ];
    let shown = |text: &str| format!("{:?}", WorkerSettings::parse(text, "f").unwrap());
    for line in optional {
        let without = line.split_once('\n').map_or("", |(_, rest)| rest);
        assert_eq!(shown(&with(text, line, without)), shown(text), "{line}");
    }
}

/// A change of an example, and what is said of it.
struct FileMistake {
    old: &'static str,
    new: &'static str,
    fault: &'static str,
}

#[test]
fn every_mistake_in_counts_is_told_in_its_place() {
    let revenue = include_str!("../../config/revenue.toml");
    assert_eq!(faults(revenue), Vec::<String>::new());
    let value = "value = { column = \"amount\", min = 0, max = 500, outside = \"clamp\" }";
    let of = "of = [\"sum\", \"users\"]\nparts = { sum = 0.7, users = 0.3 }";
    let of_release = "title = \"Revenue by merchant\"";
    for FileMistake { old, new, fault } in [
        FileMistake {
            old: of,
            new: "of = []",
            fault: "release.counts.of: must name one or more of",
        },
        FileMistake {
            old: of,
            new: "of = \"users\"",
            fault: "a list has brackets: [\"users\"]",
        },
        FileMistake {
            old: of,
            new: "of = [\"sum\", \"median\"]",
            fault: "= [release.quantiles] tells quantiles of a column for each key, in a release of its own",
        },
        FileMistake {
            old: of,
            new: "of = [\"sum\", \"std\"]",
            fault: "= write \"variance\": readers take its root as well",
        },
        FileMistake {
            old: "of = [\"sum\", \"users\"]",
            new: "of = [\"sun\", \"users\"]",
            fault: "release.counts.of[0]: expected \"users\", \"records\", \"sum\", \"mean\" or \"variance\"",
        },
        FileMistake {
            old: of_release,
            new: "key = \"merchant\"",
            fault: "= `key` belongs to [input]",
        },
        FileMistake {
            old: of_release,
            new: "noise = \"gaussian\"",
            fault: "price both in `rho`; or use \"laplace\"",
        },
        FileMistake {
            old: of,
            new: "of = [\"sum\", \"sum\"]",
            fault: "release.counts.of: has \"sum\" twice",
        },
        FileMistake {
            old: of,
            new: "of = [\"users\"]",
            fault: "release.counts.value: has no effect: none of \"sum\", \"mean\" and \"variance\" is told",
        },
        FileMistake {
            old: of,
            new: "of = [\"sum\", \"mean\"]",
            fault: "release.counts.per_user: bounds sums of users, of which no mean and no variance can be told",
        },
        FileMistake {
            old: of,
            new: "of = [\"sum\", \"variance\"]",
            fault: "release.counts.per_user: bounds sums of users, of which no mean and no variance can be told",
        },
        FileMistake {
            old: of,
            new: "of = [\"variance\"]",
            fault: "release.counts.per_user: bounds sums of users, of which no mean and no variance can be told",
        },
        FileMistake {
            old: value,
            new: "",
            fault: "release.counts.value: missing",
        },
        FileMistake {
            old: value,
            new: "value = { column = \"amount\", min = 0, max = 500 }",
            fault: "release.counts.value.outside: missing",
        },
        FileMistake {
            old: "min = 0, max = 300",
            new: "min = 10, max = 300",
            fault: "release.counts.per_user: must have 0 inside, or at an end",
        },
        FileMistake {
            old: "max_keys = 3",
            new: "",
            fault: "release.counts.max_keys: missing",
        },
        FileMistake {
            old: "max_keys = 3",
            new: "max_keys = 3\nmax_records = 4",
            fault: "release.counts.max_records: has no effect: no records are counted",
        },
        FileMistake {
            old: "per_user = { min = 0, max = 300 }",
            new: "",
            fault: "release.counts.max_records: missing",
        },
        FileMistake {
            old: "per_user = { min = 0, max = 300 }",
            new: "max_records = 1048577",
            fault: "release.counts.max_records: must be from 1 to 1048576",
        },
        FileMistake {
            old: "parts = { sum = 0.7, users = 0.3 }",
            new: "parts = { sum = 0.7 }",
            fault: "release.counts.parts: gives no part to \"users\"",
        },
        FileMistake {
            old: "parts = { sum = 0.7, users = 0.3 }",
            new: "parts = { sum = \"0.7\", users = 0.3 }",
            fault: "release.counts.parts.sum: expected a number",
        },
        FileMistake {
            old: "parts = { sum = 0.7, users = 0.3 }",
            new: "parts = { sum = 0.7, users = 0.4 }",
            fault: "release.counts.parts: adds up to 1.1, not to 1",
        },
        FileMistake {
            old: "parts = { sum = 0.7, users = 0.3 }",
            new: "parts = { sum = 0.7, mean = 0.3 }",
            fault: "release.counts.parts.mean: \"mean\" is not told",
        },
        FileMistake {
            old: "parts = { sum = 0.7, users = 0.3 }",
            new: "parts = { sum = 0.7, variance = 0.3 }",
            fault: "release.counts.parts.variance: \"variance\" is not told",
        },
        FileMistake {
            old: "parts = { sum = 0.7, users = 0.3 }",
            new: "parts = { sum = 0, users = 1 }",
            fault: "release.counts.parts.sum: must be above 0 and at most 1",
        },
        FileMistake {
            old: of_release,
            new: "degree = 40",
            fault: "release.degree: does not apply: [release.counts] publishes a number for each key",
        },
        FileMistake {
            old: of_release,
            new: "noise = \"ball\"",
            fault: "release.noise: is not for [release.counts], whose noise is added to each number",
        },
        FileMistake {
            old: of_release,
            new: "domain = [{ column = \"amount\", min = 0, max = 9, outside = \"clamp\" }]",
            fault: "release.domain: has no effect: counts have no axes",
        },
        FileMistake {
            old: of_release,
            new: "label = { column = \"amount\", above = 9 }",
            fault: "release.label: has no effect: counts have no label",
        },
        FileMistake {
            old: of_release,
            new: "windows = { cumulative = \"30d\" }",
            fault: "release.windows: is not for users: somebody in two windows is one user of both",
        },
        FileMistake {
            old: "per = \"1d\"",
            new: "per = \"1d\", max_records_per_window = 20",
            fault: "max_records_per_window: has no effect: counts by key have caps of their own",
        },
        FileMistake {
            old: "unit = { user = { column = \"customer\", type = \"text\", per = \"1d\" } }",
            new: "unit = \"record\"",
            fault: "release.counts.of: users cannot be counted where every record is a unit of its own",
        },
    ] {
        let told = WorkerSettings::parse(&with(revenue, old, new), "f")
            .unwrap_err()
            .to_string();
        assert!(
            told.contains(fault) && told.matches("\n  = ").count() == 1,
            "{new}: {told}"
        );
    }
    let capped = with(
        revenue,
        "per_user = { min = 0, max = 300 }",
        "max_records = 4",
    );
    let of_means = "of = [\"sum\", \"mean\", \"users\"]\nparts = { users = 0.3 }";
    assert_eq!(
        faults(&with(&capped, of, of_means)),
        ["f:39:9: release.counts.parts: gives no part to \"sum\" and \"mean\""]
    );
    // Readers multiply a variance by the square of what lies between the bounds.
    let varied = with(&capped, of, "of = [\"variance\", \"users\"]");
    for (bounds, is_told) in [
        ("min = 0, max = 1e155", true),
        ("min = -7e153, max = 7e153", true),
        ("min = 0, max = 1e-155", true),
        ("min = -6e153, max = 6e153", false),
        ("min = 0, max = 1e-150", false),
    ] {
        let told = faults(&with(&varied, "min = 0, max = 500", bounds));
        let expected = "f:40:9: release.counts.value: has no variance: max - min is too large or too small to be squared";
        assert_eq!(told, vec![expected; usize::from(is_told)], "{bounds}");
    }
    let wide = with(&capped, "min = 0, max = 500", "min = 0, max = 1e155");
    assert!(faults(&with(&wide, of, "of = [\"mean\", \"users\"]")).is_empty());
}

/// Records and sums of windows add up; users, and how many keys they have, do not.
#[test]
fn cumulative_tables_by_key_are_of_what_adds_up() {
    let revenue = include_str!("../../config/revenue.toml");
    let (head, rest) = revenue.split_once("[release.counts]").unwrap();
    let (_, tail) = rest.split_once("[output").unwrap();
    let value = "value = { column = \"amount\", min = 0, max = 500, outside = \"clamp\" }";
    let records = "max_keys = 3\nmax_records = 2";
    let is_not = |what: &str| Some(format!("release.windows: is not for {what}"));
    for (counts, fault) in [
        (format!("of = [\"records\"]\n{records}"), None),
        (
            format!("of = [\"records\", \"sum\", \"mean\"]\n{records}\n{value}"),
            None,
        ),
        (
            format!("of = [\"sum\"]\nmax_keys = 3\n{value}\nper_user = {{ min = 0, max = 300 }}"),
            None,
        ),
        ("of = [\"users\"]\nmax_keys = 3".to_owned(), is_not("users")),
        (
            format!("of = [\"users\", \"records\"]\n{records}"),
            is_not("users"),
        ),
        (
            format!("of = [\"records\"]\n{records}\ncaps = {{}}"),
            is_not("told caps"),
        ),
    ] {
        let windows = [
            ("windows = { cumulative = \"30d\" }", fault),
            ("windows = { hopping = \"7d\" }", None),
        ];
        for (windows, fault) in windows {
            let head = head.replace("title = \"Revenue by merchant\"", windows);
            // Seven windows of a hopping table pay for each day.
            let head = head.replacen("epsilon = 1.0", "epsilon = 7.0", 1);
            let text = format!("{head}[release.counts]\n{counts}\n[output{tail}");
            match (WorkerSettings::parse(&text, "f"), fault) {
                (Ok(settings), None) => {
                    let is_sum = windows.contains("cumulative");
                    assert_eq!(settings.releases[0].is_sum_of_panes(), is_sum, "{counts}");
                }
                (Err(told), Some(fault)) => {
                    let told = told.to_string();
                    assert!(told.contains(&fault), "{counts}: {told}");
                }
                (parsed, fault) => panic!("{counts} {windows}: {fault:?} {parsed:?}"),
            }
        }
    }
}

#[test]
fn every_mistake_in_quantiles_is_told_in_its_place() {
    let delays = include_str!("../../config/flights-quantiles.toml");
    assert_eq!(faults(delays), Vec::<String>::new());
    let of = "of = [0.25, 0.5, 0.75, 0.9]";
    let value = "value = { column = \"dep_delay\", min = -30, max = 180, outside = \"clamp\" }\n";
    let step = "step = 1  ";
    let of_release = "title = \"How late flights leave\"";
    for FileMistake { old, new, fault } in [
        FileMistake {
            old: of,
            new: "of = []",
            fault: "release.quantiles.of: must have one part or more",
        },
        FileMistake {
            old: of,
            new: "of = 0.5",
            fault: "release.quantiles.of: expected a list such as [0.25, 0.5, 0.95]",
        },
        FileMistake {
            old: of,
            new: "of = [0.5, 95]",
            fault: "release.quantiles.of: has 95: a part is above 0 and below 1",
        },
        FileMistake {
            old: of,
            new: "of = [0.12345]",
            fault: "release.quantiles.of: has 0.12345: a part is above 0 and below 1",
        },
        FileMistake {
            old: of,
            new: "of = [0.5, 0.5]",
            fault: "release.quantiles.of: has 0.5 twice",
        },
        FileMistake {
            old: of,
            new: "",
            fault: "release.quantiles.of: missing",
        },
        FileMistake {
            old: value,
            new: "",
            fault: "release.quantiles.value: missing",
        },
        FileMistake {
            old: step,
            new: "",
            fault: "release.quantiles.step: missing",
        },
        FileMistake {
            old: step,
            new: "step = 0",
            fault: "release.quantiles.step: must be a number above 0",
        },
        FileMistake {
            old: step,
            new: "step = 0.1",
            fault: "release.quantiles.step: makes 2100.0 steps from min to max: there must be 1 to 1023",
        },
        FileMistake {
            old: step,
            new: "step = 400",
            fault: "release.quantiles.step: does not divide max - min = 210 into whole steps",
        },
        FileMistake {
            old: step,
            new: "step = 4",
            fault: "release.quantiles.step: does not divide max - min = 210 into whole steps",
        },
        FileMistake {
            old: step,
            new: "step = 1\nmax_records = 2 ",
            fault: "= remove it: of a user the mean of its values in a key counts, so that records need no cap",
        },
        FileMistake {
            old: step,
            new: "step = 1\nmax_keys = 2 ",
            fault: "release.quantiles.max_keys: has no effect: every record is a unit of its own, in one key",
        },
        FileMistake {
            old: of_release,
            new: "degree = 40",
            fault: "release.degree: does not apply: [release.quantiles] publishes numbers for each key",
        },
        FileMistake {
            old: of_release,
            new: "noise = \"ball\"",
            fault: "release.noise: is not for [release.quantiles], whose noise is added to each count",
        },
        FileMistake {
            old: of_release,
            new: "domain = [{ column = \"dep_delay\", min = 0, max = 9, outside = \"clamp\" }]",
            fault: "release.domain: has no effect: quantiles by key have no axes",
        },
        FileMistake {
            old: of_release,
            new: "label = { column = \"dep_delay\", above = 9 }",
            fault: "release.label: has no effect: quantiles by key have no label",
        },
        FileMistake {
            old: of_release,
            new: "windows = { cumulative = \"30d\" }",
            fault: "release.windows: is not for quantiles: they are of the values of a window",
        },
        FileMistake {
            old: "unit = \"record\"",
            new: "unit = { user = { column = \"carrier\", per = \"1d\" } }",
            fault: "release.quantiles.max_keys: missing",
        },
    ] {
        let told = WorkerSettings::parse(&with(delays, old, new), "f")
            .unwrap_err()
            .to_string();
        assert!(
            told.contains(fault) && told.matches("\n  = ").count() == 1,
            "{new}: {told}"
        );
    }
}

#[test]
fn records_that_are_units_have_no_caps() {
    let records = include_str!("../../config/revenue.toml")
        .replace(
            "unit = { user = { column = \"customer\", type = \"text\", per = \"1d\" } }",
            "unit = \"record\"",
        )
        .replace(
            "of = [\"sum\", \"users\"]\nparts = { sum = 0.7, users = 0.3 }",
            "of = [\"records\", \"sum\", \"mean\"]",
        );
    let told = faults(&records).join("\n");
    assert!(
        told.contains("per_user: has no effect: every record is a unit of its own"),
        "{told}"
    );
    let without = |text: &str, start: &str| {
        let lines = text.lines().filter(|line| !line.starts_with(start));
        lines.collect::<Vec<_>>().join("\n")
    };
    let records = without(&records, "per_user");
    let told = faults(&records).join("\n");
    assert!(
        told.contains("max_keys: has no effect: every record is a unit of its own, in one key"),
        "{told}"
    );
    let settings = WorkerSettings::parse(&without(&records, "max_keys"), "f")
        .unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(settings.releases[0].shape().value_count(), 10);
    assert_eq!(settings.synopses_of_window(), 1);
}

/// The functions that the reference has in comments, code without a space after the `#`: each with its label before it.
fn commented_functions() -> Vec<String> {
    let reference = include_str!("../../config/reference.toml");
    let mut blocks = Vec::new();
    let mut block = String::new();
    for line in reference.lines() {
        match line
            .strip_prefix('#')
            .filter(|code| code.starts_with(|c: char| c == '[' || c.is_ascii_alphabetic()))
        {
            Some(code) => block += &format!("{code}\n"),
            None if line.is_empty() && !block.is_empty() => blocks.push(std::mem::take(&mut block)),
            None => {}
        }
    }
    blocks
}

/// The reference with another function; moments and counts have no lattice, and counts by key have no domain.
fn releasing(function: &str) -> String {
    let text = with(
        include_str!("../../config/reference.toml"),
        "[release.density]\nbandwidths = [10]\n",
        function,
    );
    let without = |size: &str| with(&with(&text, "\ndegree = 40\n", size), "\norder = 2\n", "\n");
    if function.contains("[release.counts]") || function.contains("[release.quantiles]") {
        let text = with(
            &without("\n"),
            "domain = [{ column = \"dep_delay\", min = -30, max = 180, outside = \"clamp\" }]\n",
            "",
        );
        let users = "unit = { user = { column = \"carrier\", per = \"1d\" } }";
        return with(&text, "unit = \"record\"", users);
    }
    match (
        function.contains("[release.moments]"),
        function.contains("[release.cells]"),
    ) {
        (true, _) => without("\n"),
        (_, true) => without("\nexpected_records = 1000\n"),
        _ => text,
    }
}

#[test]
fn every_function_of_the_reference_can_be_released() {
    let functions = commented_functions();
    let names: Vec<&str> = functions
        .iter()
        .filter_map(|text| text.split_once("[release.")?.1.split(']').next())
        .collect();
    assert_eq!(
        names,
        [
            "counts",
            "counts",
            "quantiles",
            "cells",
            "cells",
            "regression",
            "bayes",
            "bayes",
            "machine",
            "machine",
            "logistic",
            "moments",
            "expression",
            "expression"
        ]
    );
    for function in functions {
        let text = releasing(&function);
        assert!(faults(&text).is_empty(), "{function}: {:?}", faults(&text));
    }
}

#[test]
fn every_function_of_the_page_can_be_released() {
    let page = include_str!("../../docs/reference/functions.md");
    let blocks = page
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let functions: Vec<&str> = blocks.filter(|block| block.contains("[release.")).collect();
    assert!(functions.len() >= 5);
    for function in functions {
        let text = releasing(function);
        assert!(faults(&text).is_empty(), "{function}: {:?}", faults(&text));
    }
}

/// A grid that is given says how finely it can be read.
#[test]
fn a_step_of_cells_stands_for_their_bandwidth() {
    let given =
        |table: &str, grid: &str| with(&releasing(table), "\nexpected_records = 1000\n", grid);
    let settings = |table: &str| {
        let text = given(table, "\nspline = \"quadratic\"\nstep = [7.5]\n");
        WorkerSettings::parse(&text, "f").unwrap_or_else(|faults| panic!("{faults}"))
    };
    let alone = settings("[release.cells]\n");
    let both = settings("[release.cells]\nbandwidths = [7.5]\n");
    assert_eq!(alone.releases[0].shape(), both.releases[0].shape());
    assert_eq!(alone.normalised, both.normalised);
    assert_ne!(
        alone.normalised,
        settings("[release.cells]\nbandwidths = [15]\n").normalised
    );
    let none = faults(&releasing("[release.cells]\n"));
    assert!(
        none.iter().any(|fault| fault.contains("bandwidths")),
        "{none:?}"
    );
}

#[test]
fn the_reference_shows_every_key() {
    let reference = include_str!("../../config/reference.toml");
    for known in bernstream_config::KEYS.iter() {
        let path = &known.path;
        let key = path.rsplit('.').next().unwrap().trim_end_matches("[]");
        let is_key = |at: usize| {
            let before = &reference[..at];
            let after = &reference[at + key.len()..];
            let starts = !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            starts && (after.starts_with(" = ") || after.starts_with(']') || after.starts_with('.'))
        };
        assert!(
            reference.match_indices(key).any(|(at, _)| is_key(at)),
            "{path}"
        );
    }
}

#[test]
fn keys_of_a_file_are_those_of_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.txt");
    let text = with(
        FLIGHTS,
        "values = [\"EWR\", \"JFK\", \"LGA\"]",
        &format!("values_file = {path:?}"),
    );
    let normalised = |keys: &str| {
        fs::write(&path, keys).unwrap();
        WorkerSettings::parse(&text, "f").unwrap().normalised
    };
    let listed = WorkerSettings::parse(FLIGHTS, "f").unwrap().normalised;
    assert_eq!(normalised("EWR\nJFK\nLGA\n"), listed);
    assert_ne!(
        normalised("EWR\nJFK\nSFO\n"),
        listed,
        "the promise is for these keys"
    );
    fs::write(&path, "EWR\nJFK\n\nEWR\n").unwrap();
    let faults = WorkerSettings::parse(&text, "f").unwrap_err().to_string();
    for (line, what) in [(3, "is empty"), (4, "has the key of line 1")] {
        assert!(
            faults.contains(&format!("{}:{line}: {what}", path.display())),
            "{faults}"
        );
    }
}

#[test]
fn all_faults_of_a_file_are_told_at_once() {
    assert_eq!(
        faults(WRONG),
        [
            "f:2:12: pipeline: a name has only letters, digits, `.`, `_` and `-`, not ' '",
            "f:3:1: windws: unknown key",
            "f:7:52: input.key.values[2]: duplicate key",
            "f:7:59: input.key.values[3]: a key must not be empty",
            "f:12:15: input.kafka.clock_slack: not a duration: it has a number without a unit",
            "f:13:18: input.kafka.on_bad_message: expected \"stop\" or \"skip\"",
            "f:14:23: input.kafka.skip[0].partition: expected the number of a partition, such as 0",
            "f:14:41: input.kafka.skip[1].offset: missing",
            "f:15:41: input.kafka.lost[0].to: must be more than `from`, 5",
            "f:16:1: input.kafka.grace: unknown key",
            "f:18:1: windows.grace: missing",
            "f:19:10: windows.origin: \"2013-01-01T05:00:00\" is not a time with a UTC offset",
            "f:20:10: windows.length: months and years differ in length: use days",
            "f:26:10: privacy.unit.usr: unknown key",
            "f:27:52: privacy.adjacency.replace_one.records_per_window: must be at least 1",
            "f:28:11: privacy.epsilon: NaN is not a price",
            "f:32:11: release.epsilon: 0.1234567890123 has more than 12 decimals",
            "f:33:10: release.degree: expected a whole number from 1, such as 40, or \"auto\"",
            "f:34:9: release.order: must be from 1 to 200",
            "f:39:7: release.domain[0].max: must be more than `min`, 10",
            "f:42:1: release.domain[1].min: missing",
            "f:43:10: release.domain[1].column: is already an axis",
            "f:48:15: release.density.bandwidths[0]: expected a number above 0 in the units of the column, such as 10",
            "f:52:11: output.kafka.witness: is the output topic",
            "f:54:1: ledger.path: missing",
            "f:58:10: serve.listen: \"localhost\" is not an address and a port",
        ]
    );
}

#[test]
fn a_fault_is_shown_the_way_a_compiler_shows_it() {
    let text = with(FLIGHTS, "degree = 40", "degre = 40");
    let shown = WorkerSettings::parse(&text, "flights.toml")
        .unwrap_err()
        .to_string();
    let line = text.lines().position(|line| line == "degre = 40").unwrap() + 1;
    assert_eq!(
        shown,
        format!(
            r#"flights.toml:{line}:1: release.degre: unknown key
   |
{line} | degre = 40
   | ^^^^^
  = did you mean `degree`?
"#
        )
    );
}

/// People ask for what other programs have: the hint says what does it here, and nothing else is told.
#[test]
fn what_is_asked_for_points_to_what_does_it() {
    let density = "[release.density]\nbandwidths = [10]\n";
    let of_records = with(FLIGHTS, "clock_slack", "format = \"avro\"\nclock_slack");
    for (text, hint) in [
        (
            with(FLIGHTS, density, "[release.count]\n"),
            "[release.counts] tells of each key how many users and records there are",
        ),
        (
            with(FLIGHTS, density, "[release.histogram]\nbins = 9\n"),
            "[release.cells] has noisy counts",
        ),
        (
            with(FLIGHTS, density, "[release.quantile]\n"),
            "[release.quantiles] tells quantiles of a column for each key",
        ),
        (
            with(FLIGHTS, density, "[release.mean]\n"),
            "[release.counts] has the sum and the mean of a column for each key",
        ),
        (
            with(
                FLIGHTS,
                "degree = 40",
                "degree = 40\nwhere = \"dep_delay > 0\"",
            ),
            "are not selected by a condition",
        ),
        (
            with(
                FLIGHTS,
                "time = \"time\"",
                "time = \"time\"\nfilter = \"a\"",
            ),
            "are not selected by a condition",
        ),
        (
            of_records,
            "that needs a table: { avro = { schemas = [{ id = 7, file = \"ride.avsc\" }] } }",
        ),
        (
            with(FLIGHTS, "\"localhost:9092\"", "\"${KAFKA}\""),
            "write the value itself",
        ),
        (
            with(
                FLIGHTS,
                "values = [\"EWR\", \"JFK\", \"LGA\"]",
                "values = [1]",
            ),
            "found 1",
        ),
    ] {
        let told = WorkerSettings::parse(&text, "f").unwrap_err().to_string();
        assert!(
            told.contains(hint) && told.matches("\n  = ").count() == 1,
            "{told}"
        );
    }
}

#[test]
fn words_for_people_may_look_like_variables() {
    let titled = with(
        FLIGHTS,
        "order = 4",
        "order = 4\ntitle = \"fares in ${currency}\"",
    );
    assert!(WorkerSettings::parse(&titled, "f").is_ok());
}

#[test]
fn a_number_of_records_that_nothing_reads_is_a_fault() {
    let csv = include_str!("../../docs/tutorial/csv.md");
    let tutorial = csv
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a configuration");
    let fixed = with(
        tutorial,
        "step = \"auto\"",
        "spline = \"quadratic\"\nstep = [2]",
    );
    let told = WorkerSettings::parse(&fixed, "f").unwrap_err().to_string();
    assert!(
        told.contains("release.expected_records: has no effect: noise and size are fixed"),
        "{told}"
    );
}

#[test]
fn localhost_is_an_address_to_listen_at() {
    let served = with(FLIGHTS, "\"127.0.0.1:9464\"", "\"localhost:9464\"");
    assert_eq!(
        WorkerSettings::parse(&served, "f").unwrap().serve,
        WorkerSettings::parse(FLIGHTS, "f").unwrap().serve
    );
}

/// What is misspelt is one fault: keys that only then seem to be missing, or too many, are not told.
#[test]
fn a_misspelt_word_is_one_fault_with_the_word_that_was_meant() {
    let shown = |text: &str| {
        let faults = WorkerSettings::parse(text, "f").unwrap_err().to_string();
        let is_said = |line: &&str| line.starts_with("f:") || line.trim_start().starts_with("= ");
        let said = faults
            .lines()
            .filter(is_said)
            .map(|line| line.split_once(": ").map_or(line, |(_, said)| said).trim());
        said.map(str::to_owned).collect::<Vec<_>>()
    };
    let noise = r#"release.noise: expected "laplace", "cube", "ball", "cells", "gaussian", "gaussian_process", "gaussian_cells" or "auto""#;
    let summary = include_str!("../../config/summary.toml");
    let hour = include_str!("../../config/flights-hour.toml");
    let cells = with(
        FLIGHTS,
        "degree = 40\norder = 4",
        "noise = \"celsl\"\nspline = \"box\"\nstep = [10]",
    );
    let paper = with(
        FLIGHTS,
        "order = 4",
        "order = 4\nnoise = \"laplac\"\nscale = \"paper\"",
    );
    let misspelt = with(FLIGHTS, "degree = 40\norder = 4", "nose = \"cells\"");
    let table = with(FLIGHTS, "[release.density]", "[release.densty]");
    let moments = with(summary, "[release.moments]", "[release.momnts]");
    let csv = include_str!("../../docs/tutorial/csv.md");
    let tutorial = csv
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a configuration");
    let spline = with(
        tutorial,
        "step = \"auto\"",
        "splin = \"quadratic\"\nstep = [2]",
    );
    let auto = with(hour, "noise = \"auto\"", "noise = \"atuo\"");
    let unlike = with(FLIGHTS, "order = 4", "order = 4\nnoise = \"uniform\"");
    let cases = [
        (&cells, noise, r#"= did you mean "cells"?"#),
        (&paper, noise, r#"= did you mean "laplace"?"#),
        (&auto, noise, r#"= did you mean "auto"?"#),
        (&unlike, noise, r#"= found "uniform""#),
        (
            &misspelt,
            "release.nose: unknown key",
            "= did you mean `noise`?",
        ),
        (
            &table,
            "release.densty: unknown key",
            "= did you mean `density`?",
        ),
        (
            &moments,
            "release.momnts: unknown key",
            "= did you mean `moments`?",
        ),
        (
            &spline,
            "release.splin: unknown key",
            "= did you mean `spline`?",
        ),
    ];
    for (text, what, hint) in cases {
        assert_eq!(shown(text), [what, hint]);
    }
}

/// The scale of the noise of the only release, in grid units.
fn noise_units(settings: &WorkerSettings) -> f64 {
    let release = &settings.releases[0];
    let mechanism = settings.mechanism_of(release, &release.function);
    mechanism.expect("noise").scale().units() as f64
}

#[test]
fn a_user_can_weigh_as_much_as_a_record_and_only_where_that_is_proved() {
    let weighted = with(USERS, "order = 2", "order = 2\nweights = \"user\"");
    let settings = WorkerSettings::parse(&weighted, "f").expect("a sound configuration");
    let plain = WorkerSettings::parse(USERS, "f").expect("a sound configuration");
    // The cap is twenty records, and the noise no longer covers all of them.
    let times = noise_units(&plain) / noise_units(&settings);
    assert!((19.9..20.1).contains(&times), "{times}");
    // Ledgers and absorbers tell the two apart.
    assert_ne!(settings.digest(), plain.digest());
    assert_ne!(settings.reading_digest(), plain.reading_digest());

    let unit =
        "unit = { user = { column = \"user_id\", per = \"1d\", max_records_per_window = 20 } }";
    for FileMistake { old, new, fault } in [
        FileMistake {
            old: unit,
            new: "unit = \"record\"",
            fault: "release.weights: \"user\" needs users",
        },
        FileMistake {
            old: "bandwidths = [150]",
            new: "private_bandwidths = { epsilon = 0.01, candidates = [[100], [200]] }",
            fault: "release.weights: \"user\" is for [release.density] with fixed bandwidths",
        },
        FileMistake {
            old: "order = 2",
            new: "private_order = { epsilon = 0.01, candidates = [1, 2] }",
            fault: "release.weights: \"user\" goes neither with private_order",
        },
    ] {
        let found = faults(&with(&weighted, old, new));
        let is_told = found.iter().any(|line| line.contains(fault));
        assert!(is_told, "{fault}: {found:?}");
    }
}

#[test]
fn each_rule_has_its_message() {
    let kafka_keys = "grace = \"1h\"\nahead = \"5m\"\npublish_delay = \"1m\"";
    let two_axes = r#"{ column = "a", min = 0, max = 1, outside = "drop" }, { column = "b", min = 0, max = 1, outside = "drop" }"#;
    let dep_delay = r#"{ column = "dep_delay", min = -30, max = 180, outside = "clamp" }"#;
    let table = [
        // What is written with a wrong value.
        (
            FLIGHTS,
            "epsilon = 1.0\n\n",
            "epsilon = inf\n\n",
            "privacy.epsilon: inf is not a price",
        ),
        (
            FLIGHTS,
            "epsilon = 1.0\n\n",
            "epsilon = 0\n\n",
            "privacy.epsilon: must be above 0",
        ),
        (
            FLIGHTS,
            "epsilon = 1.0\n\n",
            "epsilon = -1\n\n",
            "privacy.epsilon: must be above 0",
        ),
        (
            FLIGHTS,
            "epsilon = 1.0\n\n",
            "epsilon = 1e9\n\n",
            "privacy.epsilon: 1000000000 gives no meaningful privacy: must be at most 1000",
        ),
        (
            FLIGHTS,
            "degree = 40",
            "degree = 0",
            "release.degree: must be at least 1",
        ),
        (
            FLIGHTS,
            "degree = 40",
            "degree = -3",
            "release.degree: expected a whole number from 1, such as 40, or \"auto\"",
        ),
        (
            FLIGHTS,
            "order = 4",
            "order = 201",
            "release.order: must be from 1 to 200",
        ),
        (
            FLIGHTS,
            "degree = 40",
            "degree = 40\ntitle = \" \"",
            "release.title: must not be empty",
        ),
        (
            FLIGHTS,
            "degree = 40",
            "degree = 40\nrecord = \"a\\nb\"",
            "release.record: must be one line of text",
        ),
        (
            FLIGHTS,
            "column = \"dep_delay\"",
            "column = \"dep_delay\", unit = \"a minute of sixty seconds as it has been since the Babylonians counted\"",
            "release.domain[0].unit: has 70 characters, must have at most 60",
        ),
        (
            FLIGHTS,
            "degree = 40",
            "degree = \"auto\"",
            "release.expected_records: missing",
        ),
        (
            FLIGHTS,
            "order = 4",
            "order = \"auto\"",
            "release.expected_records: missing",
        ),
        (
            FLIGHTS,
            "order = 4",
            "order = \"atuo\"\nexpected_records = 300",
            "release.order: expected a whole number from 1 to 200, such as 2, or \"auto\"",
        ),
        (
            FLIGHTS,
            "order = 4",
            "order = \"auto\"\nexpected_records = 0",
            "release.expected_records: must be at least 1",
        ),
        (
            FLIGHTS,
            "degree = 40\norder = 4",
            "degree = 600\norder = \"auto\"\nexpected_records = 300",
            "release.order: \"auto\" tries lattices of at most degree 546 on one axis, 52 on two and 16 on three",
        ),
        (
            FLIGHTS,
            "order = 4",
            "order = 4\nprivate_order = { epsilon = 0.1, candidates = [1, 2] }",
            "release: has both `order` and `private_order`",
        ),
        (
            FLIGHTS,
            "order = 4",
            "private_order = { epsilon = 0.1, candidates = [2, 1] }",
            "release.private_order.candidates: must be in ascending order, from 1 to 200",
        ),
        (
            FLIGHTS,
            "order = 4",
            "private_order = { epsilon = 0.1, candidates = [2] }",
            "release.private_order.candidates: must have 2 to 16 candidates, has 1",
        ),
        (
            FLIGHTS,
            "order = 4",
            "private_order = { epsilon = 0.1, candidates = [1, 2] }",
            "release.epsilon: the price of one window, 1.1 (1, and the rest for private choices), is more than privacy.epsilon, 1",
        ),
        (
            FLIGHTS,
            "degree = 40\norder = 4",
            "degree = 900\nprivate_order = { epsilon = 0.1, candidates = [1, 2] }",
            "release.private_order: the lattice is too large for a private choice: at order 8, degree 290 on one axis and 20 on \
             two is the most",
        ),
        (
            FLIGHTS,
            "bandwidths = [10]",
            "private_bandwidths = { epsilon = 0.1, candidates = [[5], [10, 3]] }",
            "release.density.private_bandwidths.candidates[1]: has 2 numbers for 1 axes",
        ),
        (
            FLIGHTS,
            "bandwidths = [10]",
            "bandwidths = [10]\nprivate_bandwidths = { epsilon = 0.1, candidates = [[5], [10]] }",
            "release.density: has both `bandwidths` and `private_bandwidths`",
        ),
        (
            FLIGHTS,
            "min = -30",
            "min = nan",
            "release.domain[0].min: NaN is not a finite number",
        ),
        (
            FLIGHTS,
            "min = -30",
            "min = 180",
            "release.domain[0].max: must be more than `min`, 180",
        ),
        (FLIGHTS, "min = -30, ", "", "release.domain[0].min: missing"),
        (FLIGHTS, ", max = 180", "", "release.domain[0].max: missing"),
        (
            FLIGHTS,
            "bandwidths = [10]",
            "bandwidths = [0]",
            "release.density.bandwidths[0]: must be above 0 and at most the width of the domain, 210",
        ),
        (
            FLIGHTS,
            "bandwidths = [10]",
            "bandwidths = [211]",
            "release.density.bandwidths[0]: must be above 0 and at most the width of the domain, 210",
        ),
        (
            FLIGHTS,
            "outside = \"clamp\"",
            "outside = \"clip\"",
            "release.domain[0].outside: expected \"clamp\" or \"drop\"",
        ),
        (
            FLIGHTS,
            dep_delay,
            "",
            "release.domain: has 0 axes, must have 1 to 3",
        ),
        (
            FLIGHTS,
            "length = \"1d\"",
            "length = \"0s\"",
            "windows.length: must be longer than zero",
        ),
        (
            FLIGHTS,
            "origin = \"2013-01-01T05:00:00Z\"",
            "origin = \"New Year\"",
            "windows.origin: \"New Year\" is not a time with a UTC offset",
        ),
        (
            FLIGHTS,
            "\"2014-01-01T05:00:00Z\"",
            "\"2013-12-31T23:00:00Z\"",
            "windows.end: is not a whole number of windows after windows.origin",
        ),
        (
            FLIGHTS,
            "\"2014-01-01T05:00:00Z\"",
            "\"2012-01-01T05:00:00Z\"",
            "windows.end: must be later than windows.origin, 2013-01-01T05:00:00Z",
        ),
        (
            FLIGHTS,
            "values = [\"EWR\", \"JFK\", \"LGA\"]",
            "values = []",
            "input.key.values: must not be empty: list every key",
        ),
        (
            FLIGHTS,
            "values = [\"EWR\", \"JFK\", \"LGA\"]",
            "values_file = \"/no/such/file\"",
            "input.key.values_file: /no/such/file: cannot be read: No such file or directory (os error 2)",
        ),
        (
            FLIGHTS,
            "values = [\"EWR\", \"JFK\", \"LGA\"]",
            "values = [\"EWR\"], values_file = \"keys\"",
            "input.key: has both `values` and `values_file`",
        ),
        (
            FLIGHTS,
            "topic = \"flights\"",
            "topic = \"\"",
            "input.kafka.topic: must not be empty",
        ),
        (
            FLIGHTS,
            "listen = \"127.0.0.1:9464\"",
            "listen = 9464",
            "serve.listen: expected an address such as \"127.0.0.1:9464\"",
        ),
        (FLIGHTS, "pipeline = \"flights\"", "", "pipeline: missing"),
        (
            USERS,
            "max_records_per_window = 20",
            "max_records_per_window = 0",
            "privacy.unit.user.max_records_per_window: must be at least 1",
        ),
        // What does not fit together.
        (
            FLIGHTS,
            "epsilon = 1.0\ndegree",
            "epsilon = 1.5\ndegree",
            "release.epsilon: the price of one window, 1.5, is more than privacy.epsilon, 1",
        ),
        (
            USERS,
            "epsilon = 0.04",
            "epsilon = 1.04",
            "release.epsilon: the price of one window, 1.04, is more than privacy.epsilon, 1",
        ),
        (
            FLIGHTS,
            "publish_delay = \"1m\"",
            "publish_delay = \"10s\"",
            "windows.publish_delay: must be longer than input.kafka.clock_slack, 10s",
        ),
        (
            FLIGHTS,
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\nproducer_delay = \"1h\"",
            "windows.grace: must be longer than input.kafka.producer_delay, 1h",
        ),
        (
            FLIGHTS,
            "\nclock_slack = \"10s\"",
            "",
            "input.kafka.clock_slack: missing",
        ),
        (FLIGHTS, "\ngrace = \"1h\"", "", "windows.grace: missing"),
        (FLIGHTS, "\nahead = \"5m\"", "", "windows.ahead: missing"),
        (
            FLIGHTS,
            "\npublish_delay = \"1m\"",
            "",
            "windows.publish_delay: missing",
        ),
        (
            FILES,
            "\nend = \"2014-01-01T05:00:00Z\"",
            "",
            "windows.end: missing",
        ),
        (
            FILES,
            "files = { path = \"flights\" }",
            "",
            "input: has neither `kafka` nor `files`",
        ),
        (
            FILES,
            "files = { path = \"flights\" }",
            "files = { path = \"x\" }\nkafka = {}",
            "input: has both `kafka` and `files`",
        ),
        (
            FILES,
            "files = { path = \"out/files\" }",
            "",
            "output: has neither `kafka` nor `files`",
        ),
        (
            FILES,
            "files = { path = \"out/files\" }",
            "files = { path = \"flights\" }",
            "output.files: is the input path",
        ),
        (
            FILES,
            "files = { path = \"out/files\" }",
            "kafka = { topic = \"a\", witness = \"b\" }",
            "output.kafka.brokers: missing",
        ),
        (
            FLIGHTS,
            "topic = \"flights-synopses\"",
            "topic = \"flights\"",
            "output.kafka.topic: is the input topic",
        ),
        (
            FLIGHTS,
            "witness = \"flights-witness\"",
            "witness = \"flights\"",
            "output.kafka.witness: is the input topic",
        ),
        (
            FLIGHTS,
            "topic = \"flights-synopses\"",
            "topic = \"flights-clock\"",
            "output.kafka.topic: is the topic of input.kafka.clock",
        ),
        (
            FLIGHTS,
            "clock_slack",
            "clock = \"flights\"\nclock_slack",
            "input.kafka.clock: is the input topic",
        ),
        (
            FLIGHTS,
            "clock_slack",
            "trust_producer_time = true\nclock = \"c\"\nclock_slack",
            "input.kafka.clock: is not used where producers are trusted",
        ),
        (
            FLIGHTS,
            "witness = \"flights-witness\"",
            "witness = \"flights-synopses\"",
            "output.kafka.witness: is the output topic",
        ),
        (
            USERS,
            "adjacency = \"add_remove\"",
            "adjacency = { replace_one = { records_per_window = 5 } }",
            "privacy.adjacency: replace_one protects the values of a record, not all records of a user",
        ),
        // What would be too large.
        (
            FLIGHTS,
            "degree = 40",
            "degree = 5001",
            "release.degree: must be from 1 to 5000",
        ),
    ];
    for (text, old, new, expected) in table {
        let found = faults(&with(text, old, new));
        let told: Vec<_> = found
            .iter()
            .filter_map(|fault| fault.split_once(": "))
            .map(|(_, told)| told)
            .collect();
        assert_eq!(told, [expected], "{old:?} -> {new:?}");
    }
    let number = r#"label = { column = "arr_delay", min = -60, max = 180, outside = "clamp" }"#;
    let class = r#"label = { column = "arr_delay", above = 15 }"#;
    let machine = |loss: &str| {
        format!(
            "[release.machine]\nloss = \"{loss}\"\nkernel = {{ gaussian = {{ bandwidth = 0.2 }} }}\nc = 1\nmax_records = 99"
        )
    };
    let hinge = machine("hinge");
    let logistic = machine("logistic");
    let huber = machine("huber");
    let squared = machine("squared");
    let regression = "[release.regression]\nbandwidth = 10\ngap = 0.5\nmax_records = 99";
    let kernel_bayes = "[release.bayes]\nbandwidths = [10]";
    let gaussian_bayes = "[release.bayes]\nmin_deviations = [10]";
    let sigmoid = "[release.logistic]\nscore = \"sigmoid\"\nc = 1\nmax_records = 99";
    let density = "[release.density]\nbandwidths = [10]";
    let no_mean = "must be a number, with `min` and `max`";
    let no_class = "must be a class, with `above`";
    let without_c = sigmoid.replace("c = 1\n", "");
    let both_bayes = format!("{kernel_bayes}\nmin_deviations = [10]");
    let no_landmarks = huber.replace("99", "5001");
    let few_landmarks = format!("{huber}\nlandmarks = 3");
    let own_axis = number.replace("arr_delay", "dep_delay");
    for (label, function, place, told) in [
        // No label, or one that does not fit.
        (
            "",
            regression,
            "[release.regression]",
            "release.regression: needs release.label",
        ),
        (
            "",
            kernel_bayes,
            "[release.bayes]",
            "release.bayes: needs release.label",
        ),
        (
            "",
            gaussian_bayes,
            "[release.bayes]",
            "release.bayes: needs release.label",
        ),
        (
            "",
            &hinge,
            "[release.machine]",
            "release.machine: needs release.label",
        ),
        (
            "",
            &huber,
            "[release.machine]",
            "release.machine: needs release.label",
        ),
        (
            "",
            sigmoid,
            "[release.logistic]",
            "release.logistic: needs release.label",
        ),
        (
            class,
            regression,
            "{ column = \"arr_delay\"",
            &format!("release.label: {no_mean}"),
        ),
        (
            class,
            &huber,
            "{ column = \"arr_delay\"",
            &format!("release.label: {no_mean}"),
        ),
        (
            number,
            kernel_bayes,
            "{ column = \"arr_delay\"",
            &format!("release.label: {no_class}"),
        ),
        (
            number,
            gaussian_bayes,
            "{ column = \"arr_delay\"",
            &format!("release.label: {no_class}"),
        ),
        (
            number,
            &hinge,
            "{ column = \"arr_delay\"",
            &format!("release.label: {no_class}"),
        ),
        (
            number,
            &logistic,
            "{ column = \"arr_delay\"",
            &format!("release.label: {no_class}"),
        ),
        (
            number,
            sigmoid,
            "{ column = \"arr_delay\"",
            &format!("release.label: {no_class}"),
        ),
        (
            number,
            density,
            "{ column = \"arr_delay\"",
            "release.label: a density has no label",
        ),
        (
            &own_axis,
            regression,
            "{ column = \"dep_delay\", min = -60",
            "release.label: dep_delay is already an axis",
        ),
        // Between landmarks there would be nothing.
        (
            number,
            &few_landmarks,
            "3\n\n",
            "release.machine.landmarks: are farther apart than the width of the kernel, 0.2 of the domain: the fit would miss \
             what lies between them",
        ),
        // No bound.
        (
            number,
            &squared,
            "[release.machine]",
            "release.machine: the squared loss has no proved sensitivity under add_remove: use the huber loss, or the adjacency \
             replace_one",
        ),
        (
            number,
            &no_landmarks,
            "[release.machine]",
            "release.machine: the kernel matrix of 5001 records is too large, at most 5000 fit: give a number of landmarks, \
             or keep fewer records",
        ),
        // Keys that miss or exclude each other.
        (
            class,
            &without_c,
            "[release.logistic]",
            "release.logistic.c: missing",
        ),
        (
            class,
            &both_bayes,
            "[release.bayes]",
            "release.bayes: has both `bandwidths` and `min_deviations`",
        ),
        (
            class,
            "[release.bayes]",
            "[release.bayes]",
            "release.bayes: has neither `bandwidths` nor `min_deviations`",
        ),
        (
            number,
            "[release.expression]\nvalue = \"arrival\"",
            "\"arrival\"",
            "release.expression.value: the expression cannot be read at character 1: 'arrival' is unknown: there are \
             dep_delay, arr_delay, at.dep_delay, pi, and abs, cos, exp, ln, sin, sqrt, tanh, max, min",
        ),
        (
            "",
            "[release.expression]\nvalue = \"1 / (dep_delay - at.dep_delay)\"",
            "\"1 / (dep_delay",
            "release.expression.value: the expression cannot be bounded over the domain: it divides by a value that can be 0; \
             change the expression or the domain, or clip what a record adds",
        ),
    ] {
        let text = with(FLIGHTS, density, &format!("{label}\n{function}\n"));
        let at = text.find(place).unwrap();
        let line = text[..at].matches('\n').count() + 1;
        let column = at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1;
        assert_eq!(
            faults(&text),
            [format!("f:{line}:{column}: {told}")],
            "{function}"
        );
    }
    // What replaces one record may use the squared loss.
    let replaced = with(
        FLIGHTS,
        "\"add_remove\"",
        "{ replace_one = { records_per_window = 99 } }",
    );
    assert!(faults(&with(&replaced, density, &format!("{number}\n{squared}\n"))).is_empty());
    // The rest of Kafka's keys with files, and a lattice that no message holds.
    let told = faults(&with(
        FILES,
        "end = \"2014",
        &format!("{kafka_keys}\nend = \"2014"),
    ));
    assert_eq!(told.len(), 3);
    assert!(
        told.iter()
            .all(|fault| fault.ends_with("does not apply to files")),
        "{told:?}"
    );
    let square = |text| {
        with(
            &with(text, dep_delay, two_axes),
            "bandwidths = [10]",
            "bandwidths = [0.1, 0.1]",
        )
    };
    let large = with(&square(FLIGHTS), "degree = 40", "degree = 400");
    assert!(faults(&large)[0].ends_with(
        "a synopsis would have 1292552 bytes, more than Kafka's default limit of 1000000"
    ));
    let files = with(&square(FILES), "degree = 40", "degree = 400");
    assert!(faults(&files).is_empty());
    let tiny = with(FILES, "bandwidths = [10]", "bandwidths = [1e-7]");
    assert!(faults(&tiny)[0].contains("cells"), "{:?}", faults(&tiny));
}

/// A window is one row of the ledger, and SQLite takes no row of more than 10^9 bytes.
#[test]
fn keys_times_releases_fit_a_row_of_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.txt");
    fs::write(
        &path,
        (0..100_000)
            .map(|key| format!("key-{key:06}\n"))
            .collect::<String>(),
    )
    .unwrap();
    let (head, release) = FILES.split_once("[release]").unwrap();
    let (release, tail) = release.split_once("\n[output]").unwrap();
    let listed = r#"key = { column = "origin", values = ["EWR", "JFK", "LGA"] }"#;
    let head = with(
        head,
        listed,
        &format!("key = {{ column = \"origin\", values_file = {path:?} }}"),
    );
    let told = |releases: usize| {
        let one = |number: usize| {
            let numbered = with(release, "departure-delay", &format!("delay-{number}"));
            format!(
                "[[release]]{}",
                with(&numbered, "epsilon = 1.0", "epsilon = 0.001")
            )
        };
        let all: String = (0..releases).map(one).collect();
        faults(&format!("{head}{all}\n[output]{tail}"))
    };
    assert_eq!(told(13), Vec::<String>::new());
    let line = head[..head.find("key = ").unwrap()].matches('\n').count() + 1;
    assert_eq!(
        told(14),
        [format!(
            "f:{line}:7: input.key: 100000 keys of 14 releases are 1400000 synopses a window, and a row of the ledger of some \
             504000000 bytes, more than 500000000"
        )]
    );
}

/// The flights with these lines for the total and the price.
fn budget(total: &str, price: &str) -> String {
    let text = with(FLIGHTS, "epsilon = 1.0\n\n", &format!("{total}\n\n"));
    with(&text, "epsilon = 1.0\ndegree", &format!("{price}\ndegree"))
}

#[test]
fn a_price_is_of_the_kind_of_its_total() {
    let cases = [
        // The total, the price, where it is told, and what.
        (
            "",
            "epsilon = 0.5",
            "[privacy]",
            "privacy: has neither `epsilon` nor `rho`",
        ),
        (
            "delta = 1e-9",
            "epsilon = 0.5",
            "[privacy]",
            "privacy.epsilon: missing",
        ),
        (
            "epsilon = 1.0\nrho = 0.125",
            "epsilon = 0.5",
            "0.125",
            "privacy.rho: cannot be combined with others: a budget has `epsilon`, `epsilon` and `delta`, or `rho`",
        ),
        (
            "rho = -0.125",
            "rho = 0.1",
            "-0.125",
            "privacy.rho: must be above 0",
        ),
        (
            "epsilon = 1.0\ndelta = 1.5",
            "epsilon = 0.5",
            "1.5",
            "privacy.delta: 1.5 gives no privacy: must be below 1",
        ),
        (
            "epsilon = 1.0\ndelta = 1e-19",
            "epsilon = 0.5",
            "1e-19",
            "privacy.delta: 0.0000000000000000001 has more than 18 decimals",
        ),
        ("epsilon = 1.0", "", "[release]", "release.epsilon: missing"),
        (
            "epsilon = 1.0",
            "epsilon = 0.5\ndelta = 1e-9",
            "1e-9",
            "release.delta: [privacy] has only `epsilon`, a pure budget, which cannot pay for a delta",
        ),
        (
            "epsilon = 1.0",
            "epsilon = 0.5\nrho = 0.125",
            "0.125",
            "release.rho: [privacy] has `epsilon`, which cannot pay for a rho",
        ),
        (
            "epsilon = 1.0\ndelta = 1e-9",
            "epsilon = 0.5\nrho = 0.125",
            "0.125",
            "release.rho: [privacy] has `epsilon`, which cannot pay for a rho",
        ),
        (
            "epsilon = 1.0\ndelta = 1e-9",
            "delta = 1e-10",
            "[release]",
            "release.epsilon: missing",
        ),
        (
            "epsilon = 1.0\ndelta = 1e-9",
            "epsilon = 0.625\ndelta = 1e-8",
            "0.625",
            "release.epsilon: the price of one window, (epsilon 0.625, delta 0.00000001), is more than privacy.epsilon and \
             privacy.delta, (epsilon 1, delta 0.000000001)",
        ),
        (
            "rho = 0.5",
            "rho = 0.125\ndelta = 1e-9",
            "1e-9",
            "release.delta: [privacy] has `rho`, which cannot pay for a delta",
        ),
        (
            "rho = 0.5",
            "rho = 0.125\nepsilon = 0.1",
            "[release]",
            "release: has both `rho` and `epsilon`",
        ),
        (
            "rho = 0.5",
            "",
            "[release]",
            "release: has neither `rho` nor `epsilon`",
        ),
        (
            "rho = 0.5",
            "rho = 0.625",
            "0.625",
            "release.rho: the price of one window, rho 0.625, is more than privacy.rho, rho 0.5",
        ),
        (
            "rho = 0.35",
            "epsilon = 1.0",
            "1.0",
            "release.epsilon: the price of one window, rho 0.367879441176, is more than privacy.rho, rho 0.35",
        ),
    ];
    for (total, price, place, told) in cases {
        let text = budget(total, price);
        let at = text.find(place).unwrap();
        let line = text[..at].matches('\n').count() + 1;
        let column = at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1;
        assert_eq!(
            faults(&text),
            [format!("f:{line}:{column}: {told}")],
            "{total} {price}"
        );
    }
}

#[test]
fn a_pure_budget_is_written_as_ever_and_every_other_enters_the_digest() {
    let settings =
        |total: &str, price: &str| WorkerSettings::parse(&budget(total, price), "f").unwrap();
    let pure = settings("epsilon = 1.0", "epsilon = 0.5");
    assert!(
        pure.normalised.contains(r#""total":"1""#) && pure.normalised.contains(r#""price":"0.5""#)
    );
    assert!(!pure.normalised.contains("delta") && !pure.normalised.contains("rho"));
    let cases = [
        ("epsilon = 1.0", "epsilon = 0.5", "0.5", r#""total":"1""#),
        (
            "epsilon = 1.0\ndelta = 1e-9",
            "epsilon = 0.5",
            "(epsilon 0.5, delta 0)",
            r#""total":{"delta":"0.000000001","epsilon":"1"}"#,
        ),
        (
            "epsilon = 1.0\ndelta = 1e-8",
            "epsilon = 0.5",
            "(epsilon 0.5, delta 0)",
            r#""total":{"delta":"0.00000001","epsilon":"1"}"#,
        ),
        (
            "epsilon = 1.0\ndelta = 1e-9",
            "epsilon = 0.5\ndelta = 1e-10",
            "(epsilon 0.5, delta 0.0000000001)",
            r#""price":{"delta":"#,
        ),
        (
            "rho = 0.5",
            "rho = 0.125",
            "rho 0.125",
            r#""total":{"rho":"0.5"}"#,
        ),
        (
            "rho = 0.5",
            "epsilon = 0.5",
            "rho 0.106530659787",
            r#""epsilon":"0.5""#,
        ),
        // The same rho, and another way to pay it.
        (
            "rho = 0.5",
            "rho = 0.106530659787",
            "rho 0.106530659787",
            r#""price":{"rho":"0.106530659787"}"#,
        ),
    ];
    let all = cases.map(|(total, price, paid, said)| {
        let settings = settings(total, price);
        assert_eq!(settings.releases[0].window_price().to_string(), paid);
        assert!(
            settings.normalised.contains(said),
            "{said}: {}",
            settings.normalised
        );
        settings.digest()
    });
    assert_eq!(std::collections::BTreeSet::from(all).len(), all.len());
    // What noise of pure differential privacy takes for it: 0.5 tanh(0.25) = 0.12245933120...
    let epsilon = |total, price| {
        settings(total, price).releases[0]
            .payment
            .epsilon()
            .to_f64()
    };
    assert_eq!(epsilon("rho = 0.5", "epsilon = 0.5"), 0.5);
    assert!((epsilon("rho = 0.5", "rho = 0.122459331202") - 0.5).abs() < 1e-11);
    assert_eq!(
        epsilon(
            "epsilon = 1.0\ndelta = 1e-9",
            "epsilon = 0.5\ndelta = 1e-10"
        ),
        0.5
    );
    // Choices are of pure differential privacy, and cost what that costs.
    let chosen = with(
        &budget("rho = 0.5", "rho = 0.125"),
        "order = 4",
        "private_order = { epsilon = 0.1, candidates = [1, 2] }",
    );
    assert_eq!(
        WorkerSettings::parse(&chosen, "f").unwrap().releases[0]
            .window_price()
            .to_string(),
        "rho 0.129995837496"
    );
}

#[test]
fn what_is_not_toml_is_told_with_its_line() {
    assert_eq!(
        faults("pipeline = \"flights\"\n[input\ntime = 3\n")[0]
            .split(": ")
            .next(),
        Some("f:2:7")
    );
    assert_eq!(faults("").len(), 7);
    let shown = WorkerSettings::load(&PathBuf::from("no/such/file.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        shown.starts_with("no/such/file.toml: cannot be read: "),
        "{shown}"
    );
    for second in ["[release]", "[[release]]"] {
        let text = format!("[release]\nname = \"one\"\n{second}\nname = \"other\"\n");
        let shown = WorkerSettings::parse(&text, "f").unwrap_err().to_string();
        assert!(
            shown.contains("f:3:") && shown.contains("starts with [[release]]"),
            "{shown}"
        );
    }
}

#[test]
fn a_time_can_be_a_toml_date() {
    let date = with(
        FLIGHTS,
        "origin = \"2013-01-01T05:00:00Z\"",
        "origin = 2013-01-01T00:00:00-05:00",
    );
    assert_eq!(
        WorkerSettings::parse(&date, "f").unwrap().normalised,
        WorkerSettings::parse(FLIGHTS, "f").unwrap().normalised
    );
}

#[test]
fn the_digest_is_that_of_what_bears_on_privacy() {
    let digest = |text: &str| WorkerSettings::parse(text, "f").unwrap().digest();
    let bare = [
        (
            "brokers = \"localhost:9092\"",
            "brokers = \"elsewhere:9092\"",
        ),
        (
            "brokers = \"localhost:9092\"",
            "brokers = \"elsewhere:9092\"\ntls = {}\nsasl = { mechanism = \"PLAIN\", username = \"u\", password_file = \"/p\" }",
        ),
        (
            "path = \"ledger\"",
            "path = \"elsewhere\"\nkeep_published = \"1d\"",
        ),
        (
            "listen = \"127.0.0.1:9464\"",
            "listen = \"127.0.0.1:1\"\ndetail = \"operator\"",
        ),
        ("topic = \"flights-synopses\"", "topic = \"elsewhere\""),
        ("epsilon = 1.0\n\n", "epsilon = 1.00\n\n"),
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\nskip = [{ partition = 0, offset = 1 }]",
        ),
        // A ledger from before there was this key goes on, with it and without.
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\nproducer_delay = \"59m\"",
        ),
        (
            "degree = 40",
            "degree = 40\ntitle = \"Delay\"\ndescription = \"How late.\"\nrecord = \"flight\"",
        ),
        (
            "column = \"dep_delay\"",
            "label = \"delay\", unit = \"minute\", column = \"dep_delay\"",
        ),
    ];
    for (old, new) in bare {
        assert_eq!(digest(&with(FLIGHTS, old, new)), digest(FLIGHTS), "{new}");
    }
    let private = [
        ("degree = 40", "degree = 41"),
        ("order = 4", "order = 3"),
        ("epsilon = 1.0\n\n", "epsilon = 1.1\n\n"),
        ("epsilon = 1.0\ndegree", "epsilon = 0.5\ndegree"),
        ("\"LGA\"", "\"LGB\""),
        ("bandwidths = [10]", "bandwidths = [11]"),
        ("max = 180", "max = 181"),
        ("\"clamp\"", "\"drop\""),
        ("\"dep_delay\"", "\"arr_delay\""),
        ("time = \"time\"", "time = \"when\""),
        ("column = \"origin\"", "column = \"dest\""),
        ("grace = \"1h\"", "grace = \"2h\""),
        ("publish_delay = \"1m\"", "publish_delay = \"2m\""),
        (
            "adjacency = \"add_remove\"",
            "adjacency = { replace_one = { records_per_window = 9 } }",
        ),
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\ntrust_producer_time = true",
        ),
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\non_bad_message = \"skip\"",
        ),
    ];
    for (old, new) in private {
        assert_ne!(digest(&with(FLIGHTS, old, new)), digest(FLIGHTS), "{new}");
    }
}

/// What an absorber is told of the worker's settings: all that decides what is read of a record, also what the ledger leaves out.
#[test]
fn the_digest_of_reading_is_that_of_what_decides_what_is_read() {
    let reading = |text: &str| WorkerSettings::parse(text, "f").unwrap().reading_digest();
    // A partial has what was read for each release in the order of the file, and names none of them.
    let release = |name: &str, column: &str| {
        format!(
            "[[release]]\nname = \"{name}\"\nepsilon = 0.5\ndegree = 20\norder = 2\n\
             domain = [{{ column = \"{column}\", min = 0, max = 100, outside = \"clamp\" }}]\n[release.density]\nbandwidths = [10]\n\n"
        )
    };
    let (head, rest) = FLIGHTS.split_once("[release]").expect("a release");
    let (_, tail) = rest.split_once("[output.kafka]").expect("an output");
    let [x, y] = [release("x", "x"), release("y", "y")];
    let [one, swapped] = [format!("{x}{y}"), format!("{y}{x}")]
        .map(|both| format!("{head}{both}[output.kafka]{tail}"));
    assert_eq!(
        WorkerSettings::parse(&one, "f").unwrap().digest(),
        WorkerSettings::parse(&swapped, "f").unwrap().digest()
    );
    assert_ne!(
        reading(&one),
        reading(&swapped),
        "the same guarantee, and another order"
    );
    let scale =
        |rest: &str| format!("[scale]\ntopic = \"partials\"\nkey_file = \"key\"\n{rest}\n[ledger]");
    let one = with(FLIGHTS, "[ledger]", &scale(""));
    let same = [
        (
            "brokers = \"localhost:9092\"",
            "brokers = \"elsewhere:9092\"".to_owned(),
        ),
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\nreaders = 7".to_owned(),
        ),
        ("path = \"ledger\"", "path = \"elsewhere\"".to_owned()),
        (
            "[ledger]",
            scale("group = \"others\"\ndeadline = \"1s\"\nmost_megabytes = 9"),
        ),
    ];
    for (old, new) in same {
        assert_eq!(reading(&with(FLIGHTS, old, &new)), reading(&one), "{new}");
    }
    let others = [
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\nskip = [{ partition = 0, offset = 1 }]",
        ),
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\nskip = [{ partition = 1, offset = 0 }]",
        ),
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\nlost = [{ partition = 0, from = 0, to = 1 }]",
        ),
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\nlost = [{ partition = 0, from = 0, to = 2 }]",
        ),
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\non_bad_message = \"skip\"",
        ),
        (
            "clock_slack = \"10s\"",
            "clock_slack = \"10s\"\ntrust_producer_time = true",
        ),
        ("time = \"time\"", "time = \"when\""),
        ("column = \"origin\"", "column = \"dest\""),
        ("\"LGA\"", "\"LGB\""),
        ("\"dep_delay\"", "\"arr_delay\""),
        ("max = 180", "max = 181"),
        ("\"clamp\"", "\"drop\""),
        ("grace = \"1h\"", "grace = \"2h\""),
    ];
    let mut all: Vec<String> = others
        .iter()
        .map(|(old, new)| reading(&with(FLIGHTS, old, new)))
        .collect();
    all.push(reading(&one));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), others.len() + 1, "each is another");
}

#[test]
fn a_standby_needs_a_log_and_time_to_act_before_a_window_is_due_on_the_output() {
    let log = |standby: &str, delay: &str| {
        let ledger = format!("[ledger]\nlog = \"log\"\nkey_file = \"key\"\n{standby}");
        let text = with(FLIGHTS, "[ledger]", &ledger);
        WorkerSettings::parse(
            &with(
                &text,
                "publish_delay = \"1m\"",
                &format!("publish_delay = \"{delay}\""),
            ),
            "f",
        )
    };
    let notes = |standby: &str, delay: &str| {
        let settings = log(standby, delay).expect("it is sound");
        (
            settings.standby,
            bernstream_config::guarantee::surprising_settings(&settings).join("\n"),
        )
    };
    // The slack is ten seconds; the standby, and a second and a half.
    let (standby, told) = notes("", "21s");
    assert!(
        standby == Duration::from_secs(10)
            && told.contains("publishes a window up to 21s 500ms after"),
        "{told}"
    );
    assert!(!notes("", "22s").1.contains("standby"));
    let (standby, told) = notes("standby = \"1m\"", "71s");
    assert!(
        standby == Duration::from_secs(60) && told.contains("up to 1m 11s 500ms after"),
        "{told}"
    );
    let faults = |text: &str| {
        WorkerSettings::parse(text, "f")
            .expect_err("it is refused")
            .to_string()
    };
    let alone = faults(&with(FLIGHTS, "[ledger]", "[ledger]\nstandby = \"10s\""));
    assert!(
        alone.contains("is how long a standby waits, and without a log there is none"),
        "{alone}"
    );
    let short = log("standby = \"900ms\"", "2m")
        .expect_err("it is too short")
        .to_string();
    assert!(
        short.contains("is too short: a standby looks a few times meanwhile"),
        "{short}"
    );
}

#[test]
fn auto_enters_the_digest_as_the_numbers_that_it_takes() {
    let auto = |records: &str| {
        let lines = format!("degree = \"auto\"\norder = \"auto\"\nexpected_records = {records}");
        WorkerSettings::parse(&with(FLIGHTS, "degree = 40\norder = 4", &lines), "f").unwrap()
    };
    let few = auto("300");
    let many = auto("301");
    assert_eq!(few.digest(), many.digest());
    let degree = few.releases[0].shape().degree;
    let order = few.releases[0].order;
    let pinned = with(
        FLIGHTS,
        "degree = 40\norder = 4",
        &format!("degree = {degree}\norder = {order}"),
    );
    assert_eq!(
        WorkerSettings::parse(&pinned, "f").unwrap().digest(),
        few.digest()
    );
    // What is given stays: the other is chosen for it.
    let fixed = with(
        FLIGHTS,
        "order = 4",
        "order = \"auto\"\nexpected_records = 300",
    );
    let fixed = WorkerSettings::parse(&fixed, "f").unwrap();
    let candidates = &fixed.releases[0].auto.as_ref().unwrap().candidates;
    assert_eq!(
        (fixed.releases[0].shape().degree, candidates.len()),
        (40, 10),
        "every order on one lattice"
    );
}

#[test]
fn blocks_are_the_windows_of_records_and_the_periods_of_users() {
    let records = WorkerSettings::parse(FLIGHTS, "f").unwrap();
    assert_eq!(records.blocks, Blocks::Every(records.windows.grid));
    let users = WorkerSettings::parse(USERS, "f").unwrap();
    let PrivacyUnit::User {
        per: Period::Every(per),
        ..
    } = users.privacy.unit
    else {
        panic!("users are the unit")
    };
    assert_eq!(
        users.blocks,
        Blocks::Every(SpanGrid::new(users.windows.grid.origin(), per).unwrap())
    );
    let ever = WorkerSettings::parse(&with(USERS, "per = \"1d\"", "per = \"ever\""), "f").unwrap();
    assert_eq!(
        (ever.blocks, ever.windows.cap.unwrap().period),
        (Blocks::Forever, Blocks::Forever)
    );
}

#[test]
fn check_and_explain_take_every_file_that_we_ship() {
    for file in shipped() {
        let file = file.to_str().unwrap();
        let check = bernstream(&["check", "--offline", file]);
        assert!(check.status.success(), "{file}");
        let explain = bernstream(&["explain", file]);
        assert!(explain.status.success(), "{file}");
        for (output, sections) in [
            (check, ["Guarantee", "Schedule", "Memory"]),
            (explain, ["Price and error", "Noise", "Budget"]),
        ] {
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(
                sections
                    .iter()
                    .all(|section| text.lines().any(|line| line.starts_with(section))),
                "{text}"
            );
        }
    }
}

#[test]
fn check_tells_the_faults_on_stderr_and_exits_78() {
    let output = bernstream(&["check", "tests/data/wrong.toml"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(78), 0));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("tests/data/wrong.toml:3:1: windws: unknown key\n"),
        "{told}"
    );
}

/// The flights, read from a cluster with these keys.
fn reached(keys: &str) -> String {
    with(
        FLIGHTS,
        "brokers = \"localhost:9092\"\n",
        &format!("brokers = \"localhost:9092\"\n{keys}\n"),
    )
}

#[test]
fn wrong_tls_and_sasl_are_told_with_place_and_hint() {
    let sasl = |mechanism: &str| {
        format!(
            "sasl = {{ mechanism = \"{mechanism}\", username = \"u\", password_file = \"/run/p\" }}"
        )
    };
    let plain = WorkerSettings::parse(&reached(&sasl("PLAIN")), "f")
        .unwrap_err()
        .to_string();
    let line = reached("")
        .lines()
        .position(|line| line.starts_with("brokers"))
        .unwrap()
        + 2;
    assert!(
        plain.starts_with(&format!("f:{line}:8: input.kafka.sasl: PLAIN without TLS")),
        "{plain}"
    );
    assert!(
        plain.contains("  = add `tls`, such as tls = {} for the system's authorities"),
        "{plain}"
    );
    assert!(faults(&reached(&format!("tls = {{}}\n{}", sasl("PLAIN")))).is_empty());
    let wrong = [
        (
            sasl("GSSAPI"),
            ":22: input.kafka.sasl.mechanism: there is no mechanism \"GSSAPI\"",
        ),
        (
            "sasl = { mechanism = \"PLAIN\" }".to_owned(),
            ":8: input.kafka.sasl.username: missing",
        ),
        (
            "tls = { certificate = \"/c\" }".to_owned(),
            ":7: input.kafka.tls.key: missing",
        ),
        (
            "tls = { key = \"/k\" }".to_owned(),
            ":7: input.kafka.tls.certificate: missing",
        ),
        (
            "tls = { ca = \"\" }".to_owned(),
            ":14: input.kafka.tls.ca: must not be empty",
        ),
        (
            "tls = true".to_owned(),
            ":7: input.kafka.tls: expected a table such as",
        ),
        (
            "sasl = { password = \"secret\" }".to_owned(),
            ":10: input.kafka.sasl.password: unknown key",
        ),
    ];
    for (keys, message) in wrong {
        let found = faults(&reached(&keys));
        assert!(
            found
                .iter()
                .any(|fault| fault.starts_with(&format!("f:{line}{message}"))),
            "{keys}: {found:?}"
        );
    }
}

#[test]
fn the_output_is_reached_as_the_input_unless_it_names_a_cluster_or_says_otherwise() {
    let tls = "tls = { ca = \"/ca\" }";
    let sasl = |user: &str| {
        format!(
            "sasl = {{ mechanism = \"SCRAM-SHA-512\", username = \"{user}\", password_file = \"/run/p\" }}"
        )
    };
    let output = |keys: &str| {
        let text = reached(&format!("{tls}\n{}", sasl("reader")));
        let text = with(
            &text,
            "[output.kafka]\n",
            &format!("[output.kafka]\n{keys}\n"),
        );
        let settings = WorkerSettings::parse(&text, "f").unwrap();
        let To::Kafka { sink, witness } = settings.output else {
            panic!()
        };
        assert_eq!(sink.broker, witness.broker);
        let security = sink.broker.security();
        (
            security.tls().is_some(),
            security.sasl().map(|sasl| sasl.username.clone()),
        )
    };
    assert_eq!(output(""), (true, Some("reader".to_owned())));
    assert_eq!(output(&sasl("writer")), (true, Some("writer".to_owned())));
    // Another cluster is not told the password of this one.
    assert_eq!(output("brokers = \"elsewhere:9092\""), (false, None));
    assert_eq!(
        output("brokers = \"elsewhere:9092\"\ntls = {}"),
        (true, None)
    );
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_program_without_tls_says_how_to_get_one() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), reached("tls = {}")).unwrap();
    let path = file.path().to_str().unwrap();
    let checked = bernstream(&["check", path]);
    assert_eq!(checked.status.code(), Some(78));
    let told = String::from_utf8(checked.stdout).unwrap();
    assert!(
        told.contains("built without TLS") && told.contains("cargo build --release --features tls"),
        "{told}"
    );
    let offline = bernstream(&["check", "--offline", path]);
    assert!(
        offline.status.success(),
        "what it promises can be read all the same"
    );
    assert!(
        String::from_utf8(offline.stderr)
            .unwrap()
            .contains("built without TLS"),
        "and that it cannot be carried out"
    );
}

#[test]
fn a_linear_score_has_degree_1_and_order_1() {
    let score = |score: &str, degree: &str, order: &str| {
        let lines = format!(
            "degree = {degree}\norder = {order}\nlabel = {{ column = \"arr_delay\", above = 15 }}\n{}",
            if degree == "\"auto\"" {
                "expected_records = 300\n"
            } else {
                ""
            }
        );
        let text = with(FLIGHTS, "degree = 40\norder = 4\n", &lines);
        with(
            &text,
            "[release.density]\nbandwidths = [10]",
            &format!("[release.logistic]\nscore = \"{score}\"\nc = 1\nmax_records = 400"),
        )
    };
    let wrong = faults(&score("linear", "40", "1"));
    assert!(
        wrong.len() == 1 && wrong[0].contains("release.degree: must be 1: a linear score"),
        "{wrong:?}"
    );
    let wrong = faults(&score("linear", "1", "2"));
    assert!(
        wrong.len() == 1 && wrong[0].contains("release.order: must be 1: a linear score"),
        "{wrong:?}"
    );
    for degree in ["1", "\"auto\""] {
        let settings = WorkerSettings::parse(&score("linear", degree, degree), "f").unwrap();
        assert_eq!(
            (
                settings.releases[0].shape().value_count(),
                settings.releases[0].order
            ),
            (2, 1)
        );
        assert!(
            settings.releases[0]
                .auto
                .as_ref()
                .is_none_or(|table| table.candidates.len() == 1)
        );
    }
    assert_eq!(faults(&score("sigmoid", "20", "2")), Vec::<String>::new());
    let chosen = score("linear", "\"auto\"", "1").replace(
        "order = 1\n",
        "private_order = { epsilon = 0.1, candidates = [1, 2] }\n",
    );
    let wrong = faults(&chosen);
    assert!(
        wrong.len() == 1 && wrong[0].contains("there is nothing to choose"),
        "{wrong:?}"
    );
}

#[test]
fn private_choices_enter_the_digest_with_their_prices_and_candidates() {
    let settings = |bandwidths: &str, order: &str| {
        let cheap = with(FLIGHTS, "epsilon = 1.0\ndegree", "epsilon = 0.5\ndegree");
        let text = with(
            &with(&cheap, "bandwidths = [10]", bandwidths),
            "order = 4",
            order,
        );
        WorkerSettings::parse(&text, "f").unwrap()
    };
    let bandwidths = "bandwidths = [5]";
    let order = "order = 2";
    let private = "private_bandwidths = { epsilon = 0.1, candidates = [[5], [10]] }";
    let private_order = "private_order = { epsilon = 0.2, candidates = [2, 8] }";
    let all = [
        settings(bandwidths, order),
        settings(private, order),
        settings(&private.replace("[10]", "[20]"), order),
        settings(&private.replace("0.1", "0.11"), order),
        settings(bandwidths, private_order),
        settings(bandwidths, &private_order.replace("8", "9")),
        settings(bandwidths, &private_order.replace("0.2", "0.21")),
        settings(private, private_order),
    ];
    let digests: std::collections::BTreeSet<_> = all.iter().map(WorkerSettings::digest).collect();
    assert_eq!(digests.len(), all.len());
    assert_eq!(all[0].releases[0].window_price().to_string(), "0.5");
    assert_eq!(all[7].releases[0].window_price().to_string(), "0.8");
}

#[test]
fn the_private_choices_of_the_reference_are_sound() {
    let reference = include_str!("../../config/reference.toml");
    let line = |key: &str| {
        let line = reference
            .lines()
            .find(|line| line.starts_with(&format!("# {key} =")))
            .expect(key);
        format!("\n{}\n", line.trim_start_matches("# "))
    };
    let order = with(reference, "\norder = 2\n", &line("private_order"));
    let both = with(
        &order,
        "]\nbandwidths = [10]\n",
        &format!("]{}", line("private_bandwidths")),
    );
    for text in [order, both] {
        assert_eq!(faults(&text), Vec::<String>::new());
    }
}

#[test]
fn moments_have_frequencies_or_a_smoothness_and_no_lattice() {
    let moments = include_str!("../../config/summary.toml");
    let says = |old: &str, new: &str| faults(&with(moments, old, new)).join("\n");
    let lattice = says("noise = \"cube\"", "degree = 3");
    assert!(
        lattice.contains("alone says how many moments there are"),
        "{lattice}"
    );
    assert!(says("noise = \"cube\"", "noise = \"ball\"").contains("kernel points"));
    assert!(says("frequencies = 12", "frequencies = 259").contains("from 1 to 258"));
    assert!(says("frequencies = 12", "frequencies = 0").contains("frequencies"));
    assert!(says("frequencies = 12", "").contains("frequencies"));
    assert!(says("frequencies = 12", "smoothness = 4").contains("expected_records: missing"));
    assert!(says("noise = \"cube\"", "expected_records = 9000").contains("has no effect"));
    let label = "label = { column = \"x\", above = 15 }\n\n[release.moments]";
    assert!(says("[release.moments]", label).contains("moments have no label"));
    let smooth = with(moments, "frequencies = 12", "smoothness = 4");
    let smooth = with(
        &smooth,
        "noise = \"cube\"",
        "noise = \"auto\"\nexpected_records = 9000",
    );
    let settings = WorkerSettings::parse(&smooth, "f").unwrap();
    assert_eq!(settings.releases[0].shape().value_count(), 5_usize.pow(2));
    assert_eq!(settings.releases[0].order, 1);
}

/// A unit of several records can be in as many keys, and the slack for whole numbers is paid in each: where delta is small it
/// shows in the scale.
#[test]
fn gaussian_noise_pays_for_whole_numbers_in_every_key_that_a_unit_can_be_in() {
    let text = USERS
        .replace("epsilon = 1.0", "epsilon = 24\ndelta = 1e-15")
        .replace("epsilon = 0.04", "epsilon = 24\ndelta = 1e-15");
    let text = text.replacen("degree = ", "noise = \"gaussian\"\ndegree = ", 1);
    let settings =
        WorkerSettings::parse(&text, "users").unwrap_or_else(|faults| panic!("{faults}"));
    let target = &settings.releases[0].function.target;
    let contributions = settings.privacy.unit.most_contributions();
    let law = NoiseDistribution::DiscreteGaussian;
    let change = target
        .sensitivity_in(law.norm(), settings.privacy.adjacency, contributions)
        .unwrap();
    let of = |values| {
        Mechanism::calibrated(
            law,
            change,
            values,
            settings.releases[0].payment.mechanism_price(),
        )
        .unwrap()
        .scale()
    };
    let values = target.shape().value_count();
    assert!(contributions > 1 && of(values) < of(values * contributions as usize));
    assert_eq!(
        mechanism(&settings).scale(),
        of(values * contributions as usize)
    );
}

/// `check` compares with the topic's limit before anything is paid for: no message may be longer than it says.
#[test]
fn no_message_is_longer_than_what_is_checked() {
    for (axes, points) in [(1, 24), (2, 200), (3, 200)] {
        let axis = |i| format!("{{ column = \"x{i}\", min = 0, max = 1, outside = \"clamp\" }}");
        let axes_text = (0..axes).map(axis).collect::<Vec<_>>().join(", ");
        let text = FLIGHTS
            .replace(
                "degree = 40\norder = 4",
                &format!("noise = \"ball\"\npoints = {points}"),
            )
            .replace(
                "{ column = \"dep_delay\", min = -30, max = 180, outside = \"clamp\" }",
                &axes_text,
            )
            .replace(
                "bandwidths = [10]",
                &format!("bandwidths = {:?}", vec![[0.02, 0.1, 0.2][axes - 1]; axes]),
            );
        let settings =
            WorkerSettings::parse(&text, "points").unwrap_or_else(|faults| panic!("{faults}"));
        let about = plan(&settings).releases[0].description().clone();
        let values = vec![-1.0 / 3.0; settings.releases[0].shape().value_count()];
        let bytes = Synopsis::new(about, values)
            .unwrap()
            .encode()
            .unwrap()
            .bytes
            .len();
        let said = synopsis_bytes(&settings.releases[0].shape(), settings.columns.key.len());
        println!("{axes} axes, {points} points: {bytes} bytes, at most {said} said");
        assert!(bytes <= said && said < 2 * bytes + 4096, "{bytes} {said}");
    }
}

/// A table has a row for each key, with more than its name and its numbers.
#[test]
fn no_table_by_key_is_longer_than_what_is_checked() {
    for count in [1, 100, 20_000] {
        let keys: Vec<String> = (0..count).map(|key| format!("\"ключ {key}\"")).collect();
        let keys = format!("values = [{}]", keys.join(", "));
        let known = r#"values = ["bakery", "bookshop", "cinema", "grocery", "pharmacy"]"#;
        let text = with(include_str!("../../config/revenue.toml"), known, &keys);
        let settings =
            WorkerSettings::parse(&text, "keys").unwrap_or_else(|faults| panic!("{faults}"));
        let about = plan(&settings).releases[0].description().clone();
        let shape = settings.releases[0].shape();
        let values = vec![-1.0 / 3.0; shape.value_count()];
        let synopsis = Synopsis::new(about, values).expect("a synopsis");
        let bytes = synopsis.encode().expect("a message").bytes.len();
        let said = synopsis_bytes(&shape, 1);
        println!("{count} keys: {bytes} bytes, at most {said} said");
        assert!(bytes <= said && said < bytes + 8192, "{bytes} {said}");
    }
}

/// A label's middle stands in the description where there is no lattice that could carry it: both forms tell the same label.
#[test]
fn a_regression_on_kernel_points_tells_the_label_that_a_lattice_tells() {
    let text =
        include_str!("../data/arrival-machine.toml").replace("epsilon = 1.0", "epsilon = 1000");
    let told = |size: &str| {
        let text = text.replace("degree = 5\norder = 2", size);
        let settings =
            WorkerSettings::parse(&text, "arrival").unwrap_or_else(|faults| panic!("{faults}"));
        let plan = plan(&settings);
        let target = settings.releases[0].function.target.clone();
        let spec = target.accumulator();
        // An arrival 0.3 of its range above the middle everywhere.
        let exact = target.evaluate(
            &spec.filled_accumulator((0..400).map(|i| spec.record(&[f64::from(i) / 399.0], 0.3))),
        );
        let noisy = mechanism(&settings).release_noisy(&exact, &mut Generator::frozen([3; 32]));
        let synopsis = Synopsis::new(
            plan.releases[0].description().clone(),
            plan.releases[0]
                .variants
                .first()
                .dequantize(&noisy)
                .into_values(),
        )
        .unwrap();
        [0.0, 45.0, 100.0].map(|delay| synopsis.evaluate(&[delay]).unwrap())
    };
    let lattice = told("degree = 12\norder = 40");
    let points = told("noise = \"ball\"\npoints = 10");
    println!("{lattice:?} {points:?}");
    for (lattice, points) in lattice.iter().zip(points) {
        // The range is 210 minutes around 45.
        assert!(
            (lattice - points).abs() < 1.0 && points > 46.0,
            "{lattice} {points}"
        );
    }
}

/// The mechanism of the only release.
fn mechanism(settings: &WorkerSettings) -> Mechanism {
    let release = &settings.releases[0];
    settings.mechanism_of(release, &release.function).unwrap()
}

const RIDES: &str = include_str!("../../config/rides.toml");

/// The types of fields are declared where records are read; columns of Arrow have types, and one may be declared all the same.
#[test]
fn what_records_need_is_declared_and_arrow_needs_none_of_it() {
    let arrow = with(RIDES, "format = \"json\"", "format = \"arrow\"").replace("ride.city", "city");
    let settings =
        |text: &str| WorkerSettings::parse(text, "f").unwrap_or_else(|faults| panic!("{faults}"));
    let declared = settings(&arrow);
    assert_eq!(declared.columns.key_types[0], Some(IdType::Text));
    assert_eq!(declared.columns.unit_type, Some(IdType::Integer));
    let of_columns = settings(
        &arrow
            .replace(", type = \"text\"", "")
            .replace(", type = \"integer\"", ""),
    );
    assert_eq!(
        (
            of_columns.columns.key_types[0],
            of_columns.columns.unit_type
        ),
        (None, None)
    );
    let other = settings(&arrow.replace("type = \"integer\"", "type = \"text\""));
    assert!(
        ![declared.digest(), other.digest()].contains(&of_columns.digest())
            && declared.digest() != other.digest()
    );

    let says = |old: &str, new: &str| faults(&with(RIDES, old, new)).join("\n");
    let key = says("\"ride.city\", type = \"text\",", "\"ride.city\",");
    assert!(key.contains("input.key.type: missing"), "{key}");
    let user = says("\"rider\", type = \"integer\",", "\"rider\",");
    assert!(user.contains("privacy.unit.user.type: missing"), "{user}");
    let time = says(
        "format = \"json\" ",
        "on_bad_message = \"skip\"\nskip = []\nformat = \"json\"",
    );
    assert_eq!(time.matches("is for Arrow messages").count(), 2, "{time}");
    let listed = with(
        RIDES,
        "type = \"text\", values = [\"Bern\", \"Bergen\"]",
        "type = \"integer\", values = [\"2\", \"02\"]",
    );
    let listed = faults(&listed).join("\n");
    assert!(
        listed.contains("no integer is written as \"02\", so no record can have this key"),
        "{listed}"
    );
    assert_eq!(listed.matches("no integer").count(), 1, "{listed}");
}

/// What decides which records count is in the digest.
#[test]
fn the_form_of_records_and_their_types_are_part_of_the_promise() {
    let digest = |text: &str| {
        WorkerSettings::parse(text, "f")
            .unwrap_or_else(|faults| panic!("{faults}"))
            .digest()
    };
    let changed = [
        RIDES.to_owned(),
        with(RIDES, "type = \"integer\"", "type = \"text\""),
        with(
            RIDES,
            "type = \"text\", values",
            "type = \"integer\", values",
        )
        .replace("[\"Bern\", \"Bergen\"]", "[\"1\"]"),
        with(
            RIDES,
            "time = \"started_at\"",
            "time_format = \"seconds\"\ntime = \"started_at\"",
        ),
        with(RIDES, "format = \"json\"", "")
            .replace(" type = \"text\",", "")
            .replace(" type = \"integer\",", ""),
    ];
    let digests: std::collections::BTreeSet<_> = changed.iter().map(|text| digest(text)).collect();
    assert_eq!(digests.len(), changed.len());
    assert_eq!(
        digest(&with(
            RIDES,
            "time = \"started_at\"",
            "time_format = \"rfc3339\"\ntime = \"started_at\""
        )),
        digest(RIDES)
    );
    // Arrow whose times have a type of their own promises what it did before they could be written.
    let arrow = with(RIDES, "format = \"json\"", "")
        .replace(" type = \"text\",", "")
        .replace(" type = \"integer\",", "");
    let declared = |format: &str| {
        with(
            &arrow,
            "time = \"started_at\"",
            &format!("time_format = \"{format}\"\ntime = \"started_at\""),
        )
    };
    let digests =
        [arrow.clone(), declared("rfc3339"), declared("seconds")].map(|text| digest(&text));
    assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
    let normalised = WorkerSettings::parse(&arrow, "f").unwrap().normalised;
    assert!(!normalised.contains("time_format"), "{normalised}");
}

/// What files say of records is read with the configuration: faults in them are faults of it, and their contents are in the digest.
#[test]
fn schemas_are_pinned_and_have_the_needed_fields() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let schema = |rider: &str| {
        format!(
            r#"{{"type": "record", "name": "E", "fields": [{{"name": "started_at", "type": "string"}}, {{"name": "{rider}", "type": "long"}},
            {{"name": "ride", "type": {{"type": "record", "name": "R", "fields": [{{"name": "city", "type": "string"}},
            {{"name": "kilometres", "type": "double"}}]}}}}]}}"#
        )
    };
    for (name, text) in [
        ("good", schema("rider")),
        ("spaced", schema("rider").replace(": ", " :  ")),
        ("other", schema("user")),
    ] {
        std::fs::write(path(name), text).unwrap();
    }
    std::fs::write(path("none"), "{}").unwrap();
    let text = |schemas: &str| {
        with(
            RIDES,
            "format = \"json\"",
            &format!("format = {{ avro = {{ schemas = [{schemas}] }} }}"),
        )
    };
    let one = |id: u32, name: &str| format!("{{ id = {id}, file = {:?} }}", path(name));
    let digest = |schemas: &str| {
        WorkerSettings::parse(&text(schemas), "f")
            .unwrap_or_else(|faults| panic!("{faults}"))
            .digest()
    };
    let good = digest(&one(7, "good"));
    assert_eq!(digest(&one(7, "spaced")), good, "spaces change nothing");
    assert_ne!(digest(&one(8, "good")), good);
    let both = format!("{}, {}", one(7, "good"), one(8, "other"));
    assert_ne!(
        digest(&both),
        good,
        "a field that one schema has may be missing in others"
    );
    let says = |schemas: &str| faults(&text(schemas)).join("\n");
    for (schemas, told) in [
        (
            String::new(),
            "must not be empty: every record would be dropped",
        ),
        (one(7, "missing"), "cannot be opened"),
        (one(7, "none"), "cannot be used: a type has no 'type'"),
        (
            one(7, "other"),
            "has no field 'rider', so every record would lack it",
        ),
        (
            format!("{}, {}", one(7, "good"), one(7, "other")),
            "duplicate id",
        ),
        (
            "{ id = 7 }".to_owned(),
            "input.kafka.format.avro.schemas[0].file: missing",
        ),
    ] {
        let found = says(&schemas);
        assert!(found.contains(told), "{schemas}: {found}");
    }
    let protobuf = format!(
        "format = {{ protobuf = {{ descriptor = {:?}, message = \"rides.Event\" }} }}",
        path("none")
    );
    let found = faults(&with(RIDES, "format = \"json\"", &protobuf)).join("\n");
    assert!(
        found.contains("cannot be used: it is not a descriptor file"),
        "{found}"
    );
}

/// `RIDES` with `format`, and what stands in place of the declared form of times and types of ids.
fn rides_in(format: &str, time_format: &str, key: &str) -> String {
    let text = with(
        RIDES,
        "noise = \"auto\"\nexpected_records = 15000",
        "degree = 16\norder = 2",
    );
    let text = with(&text, "format = \"json\"", &format!("format = {format}"));
    let text = with(
        &text,
        "\ntime = ",
        &format!("\ntime_format = \"{time_format}\"\ntime = "),
    );
    with(
        &text,
        "type = \"text\", values = [\"Bern\", \"Bergen\"]",
        &format!("type = \"{key}\", values = [\"1\"]"),
    )
}

/// A pinned type is as public as a name: where no record can have what is needed, every window would be noise.
#[test]
fn a_field_with_a_type_that_no_record_can_pass_with_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let avro = |types: &[[&str; 4]]| {
        let one = |(id, [time, rider, city, kilometres]): (usize, &[&str; 4])| {
            let path = folder.path().join(format!("{id}.avsc"));
            let text = format!(
                r#"{{"type": "record", "name": "E", "fields": [{{"name": "started_at", "type": {time}}}, {{"name": "rider", "type": {rider}}},
                {{"name": "ride", "type": ["null", {{"type": "record", "name": "R", "fields": [{{"name": "city", "type": {city}}},
                {{"name": "kilometres", "type": {kilometres}}}]}}]}}]}}"#
            );
            fs::write(&path, text).unwrap();
            format!("{{ id = {id}, file = {path:?} }}")
        };
        let listed: Vec<String> = types.iter().enumerate().map(one).collect();
        format!("{{ avro = {{ schemas = [{}] }} }}", listed.join(", "))
    };
    let [text, long, double, boolean] = [r#""string""#, r#""long""#, r#""double""#, r#""boolean""#];
    let millis = r#"{"type": "long", "logicalType": "timestamp-millis"}"#;
    let decimal = r#"{"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}"#;
    let array = r#"{"type": "array", "items": "double"}"#;
    let maybe = r#"["null", "double"]"#;
    for (types, time_format, key, told) in [
        ([text, long, text, double], "rfc3339", "text", None),
        ([millis, long, text, maybe], "milliseconds", "text", None),
        ([long, long, "\"bytes\"", text], "seconds", "text", None),
        (
            [long, text, double, "\"float\""],
            "seconds",
            "integer",
            None,
        ),
        (
            [long, long, text, double],
            "rfc3339",
            "text",
            Some("'started_at' is an integer"),
        ),
        (
            [double, long, text, double],
            "rfc3339",
            "text",
            Some("'started_at' is a floating-point number"),
        ),
        (
            [millis, long, text, double],
            "microseconds",
            "text",
            Some("'started_at' is timestamp-millis"),
        ),
        (
            [text, boolean, text, double],
            "rfc3339",
            "text",
            Some("'rider' is boolean"),
        ),
        (
            [text, "\"bytes\"", text, double],
            "rfc3339",
            "text",
            Some("'rider' is bytes"),
        ),
        (
            [text, long, double, double],
            "rfc3339",
            "text",
            Some("'ride.city' is a floating-point number"),
        ),
        (
            [text, long, text, boolean],
            "rfc3339",
            "text",
            Some("'ride.kilometres' is boolean"),
        ),
        (
            [text, long, text, decimal],
            "rfc3339",
            "text",
            Some("'ride.kilometres' is decimal"),
        ),
        (
            [text, long, text, array],
            "rfc3339",
            "text",
            Some("'ride.kilometres' is an array"),
        ),
        (
            [text, long, text, "\"null\""],
            "rfc3339",
            "text",
            Some("'ride.kilometres' is null"),
        ),
    ] {
        let found = faults(&rides_in(&avro(&[types]), time_format, key));
        match told {
            None => assert_eq!(found, Vec::<String>::new(), "{types:?}"),
            Some(told) => assert!(
                found.len() == 1 && found[0].contains(told),
                "{types:?}: {found:?}"
            ),
        }
    }
    // One schema that fits is enough: records of the others lack the field.
    let both = avro(&[[text, long, text, boolean], [text, long, text, double]]);
    assert_eq!(
        faults(&rides_in(&both, "rfc3339", "text")),
        Vec::<String>::new()
    );
}

#[test]
fn a_field_of_protobuf_with_a_type_that_no_record_can_pass_with_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ride.binpb");
    let field = |number: i32, name: &str, kind: Type, is_list: bool| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(
            if is_list {
                Label::Repeated
            } else {
                Label::Optional
            }
            .into(),
        ),
        r#type: Some(kind.into()),
        type_name: (kind == Type::Message).then(|| ".Ride".to_owned()),
        ..FieldDescriptorProto::default()
    };
    let message = |name: &str, field: Vec<FieldDescriptorProto>| DescriptorProto {
        name: Some(name.to_owned()),
        field,
        ..DescriptorProto::default()
    };
    for (time, rides, kilometres, told) in [
        (Type::Int64, false, Type::Float, None),
        (Type::Bool, false, Type::Float, Some("'started_at' is bool")),
        (
            Type::Int64,
            false,
            Type::Bool,
            Some("'ride.kilometres' is bool"),
        ),
        (
            Type::Int64,
            false,
            Type::Bytes,
            Some("'ride.kilometres' is bytes"),
        ),
        (
            Type::Int64,
            true,
            Type::Float,
            Some("'ride.kilometres' is repeated float"),
        ),
    ] {
        let event = vec![
            field(1, "started_at", time, false),
            field(2, "rider", Type::Uint64, false),
            field(3, "ride", Type::Message, rides),
        ];
        let ride = vec![
            field(1, "city", Type::String, false),
            field(2, "kilometres", kilometres, false),
        ];
        let file = FileDescriptorProto {
            name: Some("ride.proto".to_owned()),
            message_type: vec![message("Event", event), message("Ride", ride)],
            ..FileDescriptorProto::default()
        };
        fs::write(
            &path,
            FileDescriptorSet { file: vec![file] }.encode_to_vec(),
        )
        .unwrap();
        let format = format!("{{ protobuf = {{ descriptor = {path:?}, message = \"Event\" }} }}");
        let found = faults(&rides_in(&format, "seconds", "text"));
        match told {
            None => assert_eq!(found, Vec::<String>::new()),
            Some(told) => assert!(
                found.iter().any(|found| found.contains(told)),
                "{told}: {found:?}"
            ),
        }
    }
}

#[test]
fn what_scale_leaves_out_follows_from_the_pipeline_and_what_is_wrong_in_it_is_told() {
    let folder = Path::new("f");
    let base = crate::readers::configuration("localhost:9092", "visits", folder, 1)
        .replace("publish_delay = \"300ms\"", "publish_delay = \"10200ms\"");
    let scale = |text: &str, rest: &str| format!("{text}\n[scale]\nkey_file = \"key\"\n{rest}\n");
    let read = |text: &str| {
        WorkerSettings::parse(&scale(text, "topic = \"partials\""), "f")
            .unwrap()
            .scale
            .unwrap()
    };
    // The delay without the slack of 200 ms is ten seconds.
    let of_users = read(&base);
    assert_eq!(
        (of_users.group.as_str(), of_users.deadline, of_users.most),
        ("readers", Duration::from_secs(5), 64_000_000)
    );
    let unit = r#"{ user = { column = "user", per = "1d", max_records_per_window = 3 } }"#;
    assert_eq!(read(&with(&base, unit, "\"record\"")).most, 512_000_000);
    let [topic, after] = ["topic = \"partials\"", "deadline = \"9999ms\""].map(str::to_owned);
    assert_eq!(
        faults(&scale(&base, &format!("{topic}\n{after}"))),
        Vec::<String>::new()
    );
    for (rest, fault) in [
        (
            format!("{topic}\ndeadline = \"10s\""),
            "must be shorter than windows.publish_delay without the slack, 10s",
        ),
        ("topic = \"visits\"".to_owned(), "is a topic of the input"),
        (
            "topic = \"visits-clock\"".to_owned(),
            "is a topic of the input",
        ),
        (String::new(), "topic"),
    ] {
        let found = faults(&scale(&base, &rest));
        assert!(
            found.len() == 1 && found[0].contains(fault),
            "{rest}: {found:?}"
        );
    }
    let files = scale(
        &fs::read_to_string("config/files.toml").unwrap(),
        "topic = \"partials\"",
    );
    assert!(
        faults(&files)
            .iter()
            .any(|fault| fault.contains("splits reading a topic")),
        "{:?}",
        faults(&files)
    );
}

mod long {
    use super::*;

    /// From public quantities: the more a window costs, the less is there to smooth.
    #[test]
    fn a_release_of_cells_recommends_its_best_reading() {
        // A quarter of its cells.
        let cells = with(
            include_str!("../../config/flights-hour.toml"),
            "bandwidths = [10, 1.5]",
            "bandwidths = [20, 3]",
        );
        let folder = tempfile::tempdir().unwrap();
        for (epsilon, told) in [
            ("1.0", "plain `bernstream evaluate`"),
            ("0.05", "`bernstream evaluate --by nonnegative`"),
        ] {
            let file = folder.path().join("cells.toml");
            std::fs::write(
                &file,
                cells.replace("epsilon = 1.0", &format!("epsilon = {epsilon}")),
            )
            .unwrap();
            let explained =
                String::from_utf8(bernstream(&["explain", file.to_str().unwrap()]).stdout).unwrap();
            let readings = explained
                .lines()
                .skip_while(|line| *line != "Readings")
                .nth(1)
                .unwrap();
            assert!(readings.contains(told), "epsilon {epsilon}: {readings}");
        }
    }
}
