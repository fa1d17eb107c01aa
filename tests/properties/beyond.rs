//! What is replayed beside the covering array: sensitivities that were sampled, which a configuration has only with the answer to its own
//! question; functions of callers, which no configuration has; and tables of cells.

use std::sync::Arc;

use bernstream_config::{SamplerInput, WorkerSettings};
use bernstream_synopsis::Adjacency;

use crate::absent::black_boxes;
use crate::configurations::{row, text};

/// What is made of it when it is replayed.
type Made = fn() -> WorkerSettings;

/// What is replayed beside the array, by name.
pub const BEYOND: [(&str, Made); 8] = [
    ("tables of cells", || {
        tables("", "laplace", "sum", Adjacency::AddRemove)
    }),
    ("tables of a number, of users", || {
        tables(NUMBER, "laplace", "sum", Adjacency::AddRemove)
    }),
    ("tables of a class, replaced", || {
        tables(CLASS, "gaussian", "rho", Adjacency::ReplaceOne)
    }),
    ("tables of classes, of users", || {
        tables(CLASSES, "gaussian", "rho", Adjacency::AddRemove)
    }),
    ("a sampled sensitivity", || sampled(Adjacency::AddRemove)),
    ("a sampled sensitivity, replaced", || {
        sampled(Adjacency::ReplaceOne)
    }),
    ("a caller's function, replaced", || {
        of_a_caller("regression", "laplace", Adjacency::ReplaceOne, 0)
    }),
    ("a caller's function on points", || {
        of_a_caller("machine hinge", "gaussian_process", Adjacency::AddRemove, 1)
    }),
];

const NUMBER: &str = "label = { column = \"z\", min = -10, max = 30, outside = \"clamp\" }\n";
const CLASS: &str = "label = { column = \"z\", above = 5 }\n";
const CLASSES: &str = "label = { column = \"z\", values = [-10, 5, 30] }\n";

/// Tables of cells: of users where records are added, with two keys and windows that overlap.
fn tables(label: &str, noise: &str, composition: &str, adjacency: Adjacency) -> WorkerSettings {
    let (unit, windows) = match adjacency {
        Adjacency::AddRemove if !label.is_empty() => ("user in 3m", "hopping"),
        _ => ("record", "tumbling"),
    };
    let adjacency = if adjacency == Adjacency::AddRemove {
        "add_remove"
    } else {
        "replace_one"
    };
    let choices = [
        ("function", "density"),
        ("noise", noise),
        ("composition", composition),
        ("adjacency", adjacency),
        ("unit", unit),
        ("windows", windows),
        ("keys", "two"),
    ];
    let of_cells = |(text, (from, to)): (String, (&str, &str))| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    let cells = format!("{label}cells = {{ bandwidths = [12] }}\n");
    let changes = [
        (
            "degree = 8\norder = 2\n",
            "spline = \"quadratic\"\nstep = [10]\n",
        ),
        ("density = { bandwidths = [12] }\n", &cells),
    ];
    parsed(
        &changes
            .into_iter()
            .fold(text(&row(&choices)), |text, change| {
                of_cells((text, change))
            }),
    )
}

/// A regression with the sensitivity that `bernstream sample` finds.
fn sampled(adjacency: Adjacency) -> WorkerSettings {
    const SAMPLED: &str = "[release.sampled]\ngamma = 0.5\nrecords = 8\nseed = 1\n\
        prior = [{ column = \"x\", law = { uniform = { min = 0, max = 100 } } }, \
        { column = \"z\", law = { uniform = { min = -10, max = 30 } } }]\n";
    let (before, after) = written("regression", "laplace", "sum", adjacency);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sampled.toml");
    std::fs::write(&file, format!("{before}{SAMPLED}{after}")).expect("it is written");
    let study = SamplerInput::load(&file).unwrap_or_else(|faults| panic!("{faults}"));
    let changes: Vec<_> = (0..study.plan.samples)
        .map(|pair| study.neighbours.pair_change(pair))
        .collect();
    let answer = study.result_table(
        study
            .plan
            .integer_statistic(&changes)
            .expect("as many as asked for"),
    );
    parsed(&format!("{before}{SAMPLED}{answer}{after}"))
}

/// Settings whose function is that of a caller.
fn of_a_caller(function: &str, noise: &str, adjacency: Adjacency, which: usize) -> WorkerSettings {
    let composition = if noise == "laplace" { "sum" } else { "rho" };
    let (before, after) = written(function, noise, composition, adjacency);
    let mut settings = parsed(&format!("{before}{after}"));
    let mut boxes = black_boxes().into_iter();
    settings.releases[0].function.target = Arc::from(boxes.nth(which).expect("a function").1);
    settings
}

/// A configuration, before and after what may be added to its release.
fn written(
    function: &str,
    noise: &str,
    composition: &str,
    adjacency: Adjacency,
) -> (String, String) {
    let adjacency = if adjacency == Adjacency::AddRemove {
        "add_remove"
    } else {
        "replace_one"
    };
    let choices = [
        ("function", function),
        ("noise", noise),
        ("composition", composition),
        ("adjacency", adjacency),
    ];
    let text = text(&row(&choices));
    let (before, after) = text.split_once("[output]").expect("an output");
    (before.to_owned(), format!("[output]{after}"))
}

fn parsed(text: &str) -> WorkerSettings {
    WorkerSettings::parse(text, "beyond").unwrap_or_else(|faults| panic!("{faults}"))
}
