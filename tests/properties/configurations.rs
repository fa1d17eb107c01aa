//! A covering array of configurations: every two choices that the program takes together are together in one of them.
//!
//! `neighbours.rs` says what is not in it.

use std::collections::BTreeSet;
use std::fmt::Write;

use bernstream_config::WorkerSettings;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

/// What is chosen, and from what.
pub const CHOICES: [(&str, &[&str]); 11] = [
    (
        "function",
        &[
            "density",
            "density auto",
            "density in the plane",
            "density with a covariance",
            "private bandwidths",
            "private order",
            "regression",
            "bayes with kernels",
            "bayes with normals",
            "machine hinge",
            "machine huber",
            "machine squared",
            "logistic linear",
            "logistic sigmoid",
            "moments",
            "expression",
            "expression of a label",
            "expression clipped",
            "density in space",
            "counts",
            "counts of sums",
            "votes",
            "quantiles",
        ],
    ),
    (
        "noise",
        &[
            "laplace",
            "cube",
            "ball",
            "cells",
            "gaussian",
            "gaussian_process",
            "gaussian_cells",
            "auto",
        ],
    ),
    ("windows", &["tumbling", "hopping", "cumulative"]),
    (
        "unit",
        &[
            "record",
            "user in 1m",
            "user in 3m",
            "user in 90s",
            "user ever",
        ],
    ),
    ("adjacency", &["add_remove", "replace_one"]),
    (
        "composition",
        &[
            "sum",
            "sum with delta",
            "rho",
            "concentrated",
            "gaussian",
            "plan",
        ],
    ),
    ("keys", &["none", "two"]),
    ("input", &["broker", "producers", "files", "backfill"]),
    ("outside", &["clamp", "drop"]),
    ("releases", &["one", "two"]),
    ("policy", &["price", "horizon", "half_after"]),
];

/// A level of each choice.
pub type Row = [usize; CHOICES.len()];

pub fn level(row: &Row, choice: &str) -> &'static str {
    let at = CHOICES
        .iter()
        .position(|(name, _)| *name == choice)
        .expect("a choice");
    CHOICES[at].1[row[at]]
}

/// The plainest row with these choices.
pub fn row(choices: &[(&str, &str)]) -> Row {
    let mut row = [0; CHOICES.len()];
    for (choice, level) in choices {
        let at = CHOICES
            .iter()
            .position(|(name, _)| name == choice)
            .expect("a choice");
        row[at] = CHOICES[at]
            .1
            .iter()
            .position(|known| known == level)
            .expect("a level");
    }
    row
}

pub fn shown(row: &Row) -> String {
    CHOICES
        .iter()
        .map(|(name, _)| level(row, name))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The configuration of a row, as a user would write it.
pub fn text(row: &Row) -> String {
    let of = |choice| level(row, choice);
    let function = of("function");
    let noise = of("noise");
    let mut text = String::from("pipeline = \"neighbours\"\n[input]\ntime = \"time\"\n");
    if of("keys") == "two" {
        text += "key = { column = \"key\", values = [\"east\", \"west\"] }\n";
    }
    match of("input") {
        "files" => text += "files = { path = \"records\" }\n",
        who => {
            let trust = who == "producers";
            let _ = writeln!(
                text,
                "[input.kafka]\nbrokers = \"localhost:9092\"\ntopic = \"records\"\nclock_slack = \"1s\"\ntrust_producer_time = {trust}"
            );
        }
    }
    text += "[windows]\norigin = \"2025-01-01T00:00:00Z\"\nlength = \"1m\"\nend = \"2025-01-01T00:08:00Z\"\n";
    if of("input") != "files" {
        text += "grace = \"10s\"\nahead = \"5s\"\npublish_delay = \"2s\"\n";
    }
    let two = of("releases") == "two";
    let cap = if is_key_table(function) && !two {
        ""
    } else {
        ", max_records_per_window = 3"
    };
    let unit = match of("unit") {
        "record" => "\"record\"".to_owned(),
        user => {
            let per = user.trim_start_matches("user ").trim_start_matches("in ");
            format!("{{ user = {{ column = \"user\", per = \"{per}\"{cap} }} }}")
        }
    };
    let adjacency = match of("adjacency") {
        "replace_one" => "{ replace_one = { records_per_window = 24 } }",
        _ => "\"add_remove\"",
    };
    let total = match of("composition") {
        "sum" => "epsilon = 30",
        "sum with delta" => "epsilon = 30\ndelta = 1e-5",
        "rho" => "rho = 20",
        "concentrated" => "epsilon = 30\ndelta = 1e-5\ncomposition = \"concentrated\"",
        "gaussian" => "epsilon = 30\ndelta = 1e-5\ncomposition = \"gaussian\"",
        _ => "epsilon = 30\ndelta = 1e-5\ncomposition = \"plan\"\nwindows = 4",
    };
    let _ = writeln!(
        text,
        "[privacy]\nunit = {unit}\nadjacency = {adjacency}\n{total}"
    );
    let head = if two { "[[release]]" } else { "[release]" };
    let _ = writeln!(text, "{head}\nname = \"first\"\n{}", paid(row, noise, true));
    text += &release(function, noise, row);
    if two {
        let _ = writeln!(
            text,
            "[[release]]\nname = \"second\"\n{}",
            paid(row, "laplace", false)
        );
        let second = if of("composition") == "gaussian" {
            "gaussian"
        } else {
            "laplace"
        };
        text += &release("density", second, row);
    }
    text += "[output]\nfiles = { path = \"out\" }\n[ledger]\npath = \"ledger\"\n";
    text
}

/// The price of a window, or the policy that gives it.
fn paid(row: &Row, noise: &str, is_first: bool) -> String {
    let is_gaussian = noise.starts_with("gaussian");
    match level(row, "policy") {
        "horizon" if is_first => return "horizon = \"3m\"\nshare = 0.5".to_owned(),
        "half_after" if is_first => return "half_after = \"3m\"\nshare = 0.5".to_owned(),
        _ => {}
    }
    match level(row, "composition") {
        "sum" => "epsilon = 0.5".to_owned(),
        "sum with delta" | "plan" if is_gaussian => "epsilon = 0.5\ndelta = 1e-7".to_owned(),
        "sum with delta" | "plan" => "epsilon = 0.5".to_owned(),
        _ if is_gaussian || noise == "auto" => "rho = 0.1".to_owned(),
        "gaussian" => "rho = 0.1".to_owned(),
        _ => "epsilon = 0.4".to_owned(),
    }
}

/// Whether a function is a table by key, with a cap of its own on the keys of a user.
fn is_key_table(function: &str) -> bool {
    function.starts_with("counts") || function == "quantiles"
}

/// A table by key: at most one key of a user, and two records of it.
fn key_table(function: &str, row: &Row) -> String {
    let outside = level(row, "outside");
    let value =
        format!("value = {{ column = \"x\", min = 0, max = 100, outside = \"{outside}\" }}");
    let is_of_records = level(row, "unit") == "record";
    match function {
        "quantiles" if is_of_records => {
            format!("quantiles = {{ of = [0.5, 0.9], step = 10, {value} }}\n")
        }
        "quantiles" => {
            format!("quantiles = {{ of = [0.5, 0.9], step = 10, max_keys = 1, {value} }}\n")
        }
        "counts of sums" => format!(
            "counts = {{ of = [\"users\", \"sum\"], max_keys = 1, per_user = {{ min = 0, max = 150 }}, {value} }}\n"
        ),
        _ if is_of_records => format!("counts = {{ of = [\"records\", \"mean\"], {value} }}\n"),
        _ => format!(
            "counts = {{ of = [\"users\", \"mean\"], max_keys = 1, max_records = 2, {value} }}\n"
        ),
    }
}

/// The rest of a release: what it is added to, the domain and the function.
fn release(function: &str, noise: &str, row: &Row) -> String {
    let outside = level(row, "outside");
    let mut text = String::new();
    let windows = match level(row, "windows") {
        "tumbling" => "\"tumbling\"",
        "hopping" => "{ hopping = \"3m\" }",
        _ => "{ cumulative = \"4m\" }",
    };
    let _ = writeln!(text, "windows = {windows}\nnoise = \"{noise}\"");
    if is_key_table(function) {
        return text + &key_table(function, row);
    }
    let is_plane = ["density in the plane", "density with a covariance"].contains(&function);
    let is_space = function == "density in space";
    let is_of_points = ["ball", "gaussian_process"].contains(&noise);
    let is_of_cells = noise.ends_with("cells");
    let has_lattice = function != "moments";
    if noise == "auto" || function == "density auto" {
        text += "expected_records = 40\n";
    }
    if noise != "auto" {
        text += match (is_of_points, is_of_cells, is_plane) {
            (true, ..) if is_space => "points = [2, 2, 2]\n",
            (_, true, _) if is_space => "spline = \"box\"\nstep = [50, 50, 50]\n",
            _ if is_space => "degree = 2\norder = 1\n",
            (true, _, true) => "points = [3, 3]\n",
            (true, _, false) if function == "density auto" => "points = \"auto\"\n",
            (true, _, false) => "points = 5\n",
            (_, true, true) => "spline = \"linear\"\nstep = [25, 25]\n",
            (_, true, false) if function == "density auto" => "",
            (_, true, false) => "spline = \"quadratic\"\nstep = [10]\n",
            _ if !has_lattice => "",
            _ if function == "logistic linear" => "degree = 1\norder = 1\n",
            _ if function == "density auto" => "degree = \"auto\"\norder = \"auto\"\n",
            _ if function == "private order" => {
                "degree = 8\nprivate_order = { epsilon = 0.1, candidates = [1, 2, 4] }\n"
            }
            (_, _, true) => "degree = 5\norder = 2\n",
            _ => "degree = 8\norder = 2\n",
        };
    } else if function == "private order" {
        text += "degree = 8\nprivate_order = { epsilon = 0.1, candidates = [1, 2, 4] }\n";
    }
    let axis = |name: &str| {
        format!("{{ column = \"{name}\", min = 0, max = 100, outside = \"{outside}\" }}")
    };
    let axes: &[&str] = if is_space {
        &["x", "y", "w"]
    } else {
        &["x", "y"][..1 + usize::from(is_plane)]
    };
    let _ = writeln!(
        text,
        "domain = [{}]",
        axes.iter()
            .map(|name| axis(name))
            .collect::<Vec<_>>()
            .join(", ")
    );
    let number = "label = { column = \"z\", min = -10, max = 30, outside = \"clamp\" }\n";
    let class = "label = { column = \"z\", above = 5 }\n";
    text += match function {
        "regression" | "machine huber" | "machine squared" | "expression of a label" => number,
        "bayes with kernels" | "bayes with normals" | "machine hinge" | "logistic linear"
        | "logistic sigmoid" => class,
        _ => "",
    };
    text += match function {
        "density" | "density auto" | "private order" => "density = { bandwidths = [12] }\n",
        "votes" => "weights = \"user\"\ndensity = { bandwidths = [12] }\n",
        "density in the plane" => "density = { bandwidths = [20, 30] }\n",
        "density in space" => "density = { bandwidths = [50, 60, 80] }\n",
        "density with a covariance" => "density = { covariance = [[400, 200], [200, 600]] }\n",
        "private bandwidths" => {
            "density = { private_bandwidths = { epsilon = 0.1, candidates = [[10], [20], [40]] } }\n"
        }
        "regression" => "regression = { bandwidth = 12, gap = 8, max_records = 8 }\n",
        "bayes with kernels" => "bayes = { bandwidths = [15] }\n",
        "bayes with normals" => "bayes = { min_deviations = [10] }\n",
        "machine hinge" => {
            "machine = { loss = \"hinge\", kernel = { gaussian = { bandwidth = 0.3 } }, c = 4, max_records = 8 }\n"
        }
        "machine huber" => {
            "machine = { loss = \"huber\", kernel = { laplacian = { bandwidth = 0.5 } }, c = 4, max_records = 8, landmarks = 4 }\n"
        }
        "machine squared" => {
            "machine = { loss = \"squared\", kernel = \"linear\", c = 4, max_records = 8 }\n"
        }
        "logistic linear" => "logistic = { score = \"linear\", c = 4, max_records = 8 }\n",
        "logistic sigmoid" => "logistic = { score = \"sigmoid\", c = 4, max_records = 8 }\n",
        "moments" => "moments = { frequencies = 6 }\n",
        "expression" => "expression = { value = \"1 + exp(-((x - at.x) / 15)^2)\" }\n",
        "expression of a label" => "expression = { value = \"z * exp(-((x - at.x) / 15)^2)\" }\n",
        _ => {
            "expression = { value = \"ln(x + 1) / (x + at.x + 1)\", clip = { sup = 0.5, sum = 2.0 } }\n"
        }
    };
    text
}

/// Two levels of two choices.
pub type Couple = ((usize, usize), (usize, usize));

/// Every two levels of two choices, but for noise that is selected in space: that alone takes longer than the test.
pub fn couples() -> Vec<Couple> {
    let mut all = Vec::new();
    for (one, (_, levels)) in CHOICES.iter().enumerate() {
        for (other, (_, others)) in CHOICES.iter().enumerate().skip(one + 1) {
            all.extend(
                (0..levels.len())
                    .flat_map(|a| (0..others.len()).map(move |b| ((one, a), (other, b)))),
            );
        }
    }
    all.retain(|((one, a), (other, b))| {
        let names = [CHOICES[*one].1[*a], CHOICES[*other].1[*b]];
        names != ["density in space", "auto"]
    });
    all
}

/// The couples of a row.
pub fn couples_of(row: &Row) -> impl Iterator<Item = Couple> + '_ {
    (0..row.len()).flat_map(move |one| {
        (one + 1..row.len()).map(move |other| ((one, row[one]), (other, row[other])))
    })
}

/// Where the array is kept: a search takes a minute or two.
const FILE: &str = "tests/data/configurations.txt";

/// The array: how many couples it covers, then a row a line, a level a letter. [`search`] completes it.
pub fn array() -> (usize, Vec<Row>) {
    let row = |line: &str| -> Row {
        let levels: Vec<usize> = line
            .chars()
            .map(|level| level.to_digit(36).expect("a level") as usize)
            .collect();
        levels.try_into().expect("a level of each choice")
    };
    let text = std::fs::read_to_string(FILE).expect("the array");
    let (covered, rows) = text.split_once('\n').expect("a number and rows");
    (
        covered.parse().expect("a number"),
        rows.lines().map(row).collect(),
    )
}

/// The plainest row with a couple.
pub fn plainest(couple: &Couple) -> Row {
    completed(couple, [0; CHOICES.len()])
}

fn completed(couple: &Couple, mut row: Row) -> Row {
    (row[couple.0.0], row[couple.1.0]) = (couple.0.1, couple.1.1);
    repair(&mut row, couple);
    row
}

pub fn parsed(row: &Row) -> Result<WorkerSettings, String> {
    WorkerSettings::parse(&text(row), "row").map_err(|faults| faults.to_string())
}

/// The rows that are there stay, but for those that are refused. Then, greedily: for each couple that is not covered yet a row that
/// completes it, from random ones to the plainest.
fn search() -> Vec<Row> {
    const TRIES: usize = 16;
    let mut random = ChaCha20Rng::seed_from_u64(18);
    let (_, mut rows) = array();
    rows.retain(|row| parsed(row).is_ok());
    let mut covered: BTreeSet<Couple> = rows.iter().flat_map(couples_of).collect();
    for couple in couples() {
        if covered.contains(&couple) {
            continue;
        }
        for attempt in 0..=TRIES {
            let mut row: Row = [0; CHOICES.len()];
            for (at, (_, levels)) in CHOICES.iter().enumerate() {
                let is_plain = random.random_range(0..TRIES) < attempt;
                row[at] = if is_plain {
                    0
                } else {
                    random.random_range(0..levels.len())
                };
            }
            let row = completed(&couple, row);
            if parsed(&row).is_ok() {
                covered.extend(couples_of(&row));
                rows.push(row);
                break;
            }
        }
    }
    rows
}

/// `cargo test --test properties -- configurations:: --ignored` completes the array: where a level was added at the end of a choice,
/// or a refusal.
#[test]
#[ignore = "it writes tests/data/configurations.txt"]
fn the_array_is_searched_for_again() {
    let letter = |level: usize| {
        char::from_digit(u32::try_from(level).expect("few levels"), 36).expect("few levels")
    };
    let line = |row: Row| {
        row.into_iter()
            .map(letter)
            .chain(['\n'])
            .collect::<String>()
    };
    let rows = search();
    let covered: BTreeSet<_> = rows.iter().flat_map(couples_of).collect();
    let text: String = rows.into_iter().map(line).collect();
    std::fs::write(FILE, format!("{}\n{text}", covered.len())).expect("it is written");
}

/// What goes together by the documents: changes choices that are not in the couple.
fn repair(row: &mut Row, couple: &Couple) {
    let at = |choice: &str| {
        CHOICES
            .iter()
            .position(|(name, _)| *name == choice)
            .expect("a choice")
    };
    let is_free = |choice: &str| at(choice) != couple.0.0 && at(choice) != couple.1.0;
    let set = |row: &mut Row, choice: &str, wanted: &str| {
        if is_free(choice) {
            let level = CHOICES[at(choice)]
                .1
                .iter()
                .position(|level| *level == wanted)
                .expect("a level");
            row[at(choice)] = level;
        }
    };
    if level(row, "unit") != "record" {
        set(row, "adjacency", "add_remove");
    }
    if level(row, "adjacency") == "replace_one" {
        set(row, "unit", "record");
    }
    if level(row, "function") == "machine squared" {
        set(row, "adjacency", "replace_one");
        set(row, "unit", "record");
    }
    if level(row, "unit") == "record" {
        set(row, "policy", "price");
    }
    if level(row, "noise").starts_with("gaussian") && level(row, "composition") == "sum" {
        set(row, "composition", "rho");
    }
    if level(row, "composition") == "gaussian" {
        set(row, "noise", "gaussian");
    }
    if ["counts of sums", "votes"].contains(&level(row, "function")) {
        set(row, "adjacency", "add_remove");
        if level(row, "unit") == "record" {
            set(row, "unit", "user in 1m");
        }
    }
    let function = level(row, "function");
    if is_key_table(function) && !["laplace", "gaussian", "auto"].contains(&level(row, "noise")) {
        set(row, "noise", "laplace");
        set(row, "function", "density");
    }
    let function = level(row, "function");
    let is_on_cells = function.contains("density") || function == "votes";
    if level(row, "noise").ends_with("cells") && !is_on_cells {
        set(row, "function", "density");
        set(row, "noise", "laplace");
    }
    if level(row, "noise") == "auto" && function == "density in space" {
        set(row, "noise", "laplace");
        set(row, "function", "density");
    }
    let is_kernel = function.contains("density") || function.starts_with("machine");
    if ["ball", "gaussian_process"].contains(&level(row, "noise")) && !is_kernel {
        set(row, "function", "density");
        set(row, "noise", "laplace");
    }
    let is_sum = ["density", "moments", "expression", "votes"]
        .iter()
        .any(|sum| function.starts_with(sum));
    if level(row, "windows") == "cumulative" && !is_sum {
        set(row, "windows", "hopping");
        set(row, "function", "density");
    }
}
