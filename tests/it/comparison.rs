//! `bernstream explain --compare`: what other functions would tell at the same price, and which to take. Its noise is fresh, so
//! what is asserted holds by a margin.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;

fn bernstream(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("it runs")
}

fn said(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A line of the table.
#[derive(Clone, Debug)]
struct Line {
    is_recommended: bool,
    function: String,
    reading: String,
    /// The mean, and its deviation by the noise.
    error: Option<(f64, f64)>,
    without_noise: Option<f64>,
    wrong: Option<(f64, f64)>,
}

impl Line {
    fn error(&self) -> f64 {
        self.error.unwrap_or_else(|| panic!("{self:?}")).0
    }
}

/// The lines of the table in `text`, in their order.
fn table(text: &str) -> Vec<Line> {
    let figure = |cell: Option<&&str>| {
        let (mean, deviation) = cell?.split_once(" +- ")?;
        Some((
            mean.parse().expect("a mean"),
            deviation.parse().expect("a deviation"),
        ))
    };
    let line = |line: &str| {
        let cells: Vec<&str> = line[4..]
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect();
        Line {
            is_recommended: line.starts_with("  * "),
            function: cells[0].to_owned(),
            reading: cells[1].to_owned(),
            error: figure(cells.get(2)),
            without_noise: cells.get(3).and_then(|cell| cell.parse().ok()),
            wrong: figure(cells.get(4)),
        }
    };
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("    function"))
        .skip(1);
    let lines: Vec<Line> = lines
        .take_while(|line| !line.starts_with("  error +-"))
        .map(line)
        .collect();
    assert!(lines.len() > 3, "{text}");
    lines
}

/// The table of an example, some of its text replaced.
fn compared(example: &str, changes: &[(&str, &str)], more: &[&str]) -> (String, Vec<Line>) {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(format!("config/{example}.toml")).expect("the example");
    let text = changes.iter().fold(text, |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    });
    fs::write(folder.path().join("c.toml"), text).expect("written");
    let text = said(&bernstream(
        folder.path(),
        &[&["explain", "--compare", "c.toml"], more].concat(),
    ));
    let lines = table(&text);
    (text, lines)
}

/// The best line of what is called so.
fn best<'l>(lines: &'l [Line], function: &str) -> &'l Line {
    let found = lines.iter().filter(|line| line.function.contains(function));
    found
        .min_by(|a, b| a.error().total_cmp(&b.error()))
        .unwrap_or_else(|| panic!("{function} in {lines:#?}"))
}

/// The line that is recommended is the first, the only one of its mark, and the least of all.
fn the_least_is_recommended(lines: &[Line], text: &str) {
    let marked: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.is_recommended)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(marked, [0], "{text}");
    let least = lines
        .iter()
        .filter_map(|line| line.error)
        .map(|(mean, _)| mean)
        .fold(f64::INFINITY, f64::min);
    assert_eq!(lines[0].error(), least, "{text}");
    let sentence = format!(
        "* is recommended: {}, by {}:",
        lines[0].function, lines[0].reading
    );
    assert!(text.contains(&sentence), "{text}");
}

/// A minute a window: waves of the label along the axis, which a wide kernel does not follow.
const WINDOW: i64 = 60_000_000;
const A_WINDOW: usize = 4_000;

fn wave(x: f64) -> f64 {
    50.0 + 25.0 * (x / 8.0).sin()
}

fn configuration(function: &str) -> String {
    format!(
        "pipeline = \"waves\"\n[input]\ntime = \"time\"\nfiles = {{ path = \"waves.arrows\" }}\n\
         [windows]\norigin = \"1970-01-01T00:00:00Z\"\nlength = \"1m\"\nend = \"1970-01-01T00:04:00Z\"\n\
         [privacy]\nunit = \"record\"\nadjacency = \"add_remove\"\nepsilon = 1.0\n\
         [release]\nname = \"label\"\nepsilon = 1.0\nexpected_records = {A_WINDOW}\n\
         domain = [{{ column = \"x\", min = 0, max = 100, outside = \"clamp\" }}]\n\
         label = {{ column = \"y\", min = 0, max = 100, outside = \"clamp\" }}\n{function}\n\
         [output]\nfiles = {{ path = \"out\" }}\n[ledger]\npath = \"ledger\"\n"
    )
}

#[test]
fn explain_tells_how_far_the_curve_of_cells_is_off_or_what_tells_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let cells = configuration("[release.cells]\nbandwidths = [4]");
    let expected = format!("expected_records = {A_WINDOW}\n");
    let explained = |grid: &str| {
        assert!(cells.contains(&expected));
        fs::write(folder.path().join("c.toml"), cells.replace(&expected, grid)).expect("written");
        said(&bernstream(folder.path(), &["explain", "c.toml"]))
    };
    let of_auto = explained(&format!("{expected}spline = \"linear\"\nstep = \"auto\"\n"));
    let line = of_auto
        .lines()
        .find(|line| line.contains("The curve that is read off the counts"))
        .expect(&of_auto);
    assert!(
        line.contains(": within ± ")
            && line.contains("in most windows, where the expected records are spread"),
        "{line}"
    );
    let of_fixed = explained("spline = \"linear\"\nstep = [4]\n");
    assert!(
        of_fixed.contains("says `expected_records`, it is predicted here"),
        "{of_fixed}"
    );
}

#[test]
fn what_cannot_be_compared_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let cells = configuration("[release.cells]\nbandwidths = [4]");
    let axis = "{ column = \"x\", min = 0, max = 100, outside = \"clamp\" }";
    let axes = ["x", "z", "u", "v"]
        .map(|column| axis.replace("\"x\"", &format!("{column:?}")))
        .join(", ");
    let label = "label = { column = \"y\", min = 0, max = 100, outside = \"clamp\" }\n";
    let cases = [
        (
            cells.replace(label, ""),
            "is neither a regression nor a class",
        ),
        (
            cells
                .replace("[release.cells]", "noise = \"auto\"\n[release.density]")
                .replace(label, ""),
            "it publishes a density, which is neither a regression nor a class",
        ),
        (
            cells.replace(
                "epsilon = 1.0\nexpected",
                "epsilon = 0.1\nwindows = { hopping = \"2m\" }\nexpected",
            ),
            "it covers several windows",
        ),
        (
            cells.replace(
                &format!("expected_records = {A_WINDOW}\n"),
                "spline = \"linear\"\nstep = [4]\n",
            ),
            "does not say how many records a window has: add --records",
        ),
        (cells.replace(axis, &axes), "has 4 axes, must have 1 to 3"),
    ];
    for (text, expected) in cases {
        fs::write(folder.path().join("c.toml"), &text).expect("written");
        let refused = bernstream(folder.path(), &["explain", "--compare", "c.toml"]);
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(78), "{text}\n{why}");
        assert!(why.contains(expected), "{expected}: {why}");
    }
    // Other options belong to the comparison alone, and a public file must be there.
    fs::write(folder.path().join("c.toml"), &cells).expect("written");
    assert_eq!(
        bernstream(folder.path(), &["explain", "c.toml", "--records", "5"])
            .status
            .code(),
        Some(2)
    );
    let missing = bernstream(
        folder.path(),
        &[
            "explain",
            "--compare",
            "c.toml",
            "--public-sample",
            "nothing.parquet",
        ],
    );
    assert_eq!(
        missing.status.code(),
        Some(69),
        "{}",
        String::from_utf8_lossy(&missing.stderr)
    );
}

mod long {
    use super::*;

    /// Records of the test's own: what the comparison says of them is what the worker then releases of them, judged by the law that they
    /// were drawn from.
    #[test]
    fn the_order_of_the_table_is_that_of_what_is_really_released() {
        let folder = tempfile::tempdir().expect("a folder");
        let count = 4 * A_WINDOW;
        // Evenly spread places and scatter, without a generator.
        let part = |i: usize, root: f64| ((i as f64 + 0.5) * root).fract();
        let x: Vec<f64> = (0..count)
            .map(|i| 100.0 * part(i, 0.618_033_988_749_895))
            .collect();
        let y: Vec<f64> = (0..count)
            .map(|i| wave(x[i]) + 16.0 * (part(i, 0.414_213_562_373_095) - 0.5))
            .collect();
        let time: Vec<i64> = (0..count as i64)
            .map(|i| i * WINDOW / A_WINDOW as i64)
            .collect();
        let columns: [(&str, ArrayRef); 3] = [
            (
                "time",
                Arc::new(TimestampMicrosecondArray::from(time).with_timezone("UTC")),
            ),
            ("x", Arc::new(Float64Array::from(x))),
            ("y", Arc::new(Float64Array::from(y))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let file = File::create(folder.path().join("waves.arrows")).expect("a file");
        let mut writer = StreamWriter::try_new(file, &batch.schema()).expect("a writer");
        writer
            .write(&batch)
            .and_then(|()| writer.finish())
            .expect("written");

        let cells = "[release.cells]\nbandwidths = [4]";
        let huber = format!(
            "noise = \"auto\"\n[release.machine]\nloss = \"huber\"\nkernel = {{ gaussian = {{ bandwidth = 0.5 }} }}\nc = 100\n\
             max_records = {A_WINDOW}\nlandmarks = 6"
        );
        let off = |function: &str| {
            for old in ["out", "ledger"] {
                let _ = fs::remove_dir_all(folder.path().join(old));
            }
            fs::write(folder.path().join("c.toml"), configuration(function)).expect("written");
            said(&bernstream(folder.path(), &["run", "c.toml"]));
            let files = fs::read_dir(folder.path().join("out/waves/label")).expect("synopses");
            let mut errors = Vec::new();
            for file in files.map(|file| file.expect("a file").path()) {
                let csv = said(&bernstream(
                    folder.path(),
                    &["evaluate", file.to_str().expect("a path"), "--points", "81"],
                ));
                for row in csv.lines().skip(1) {
                    let cells: Vec<f64> = row
                        .split(',')
                        .map(|cell| cell.parse().unwrap_or(f64::NAN))
                        .collect();
                    errors.push((cells[1] - wave(cells[0])).abs());
                }
            }
            assert_eq!(errors.len(), 4 * 81);
            errors.iter().sum::<f64>() / errors.len() as f64
        };
        let by_huber = off(&huber);
        let by_cells = off(cells);
        println!("released: {by_cells:.2} by cells, {by_huber:.2} by the machine");
        let arguments = [
            "explain",
            "--compare",
            "c.toml",
            "--public-sample",
            "waves.arrows",
        ];
        let text = said(&bernstream(folder.path(), &arguments));
        println!("{text}");
        assert_ne!(
            said(&bernstream(folder.path(), &arguments)),
            text,
            "the noise is drawn anew"
        );
        let lines = table(&text);
        the_least_is_recommended(&lines, &text);
        assert!(text.contains("16000 public rows of waves.arrows"), "{text}");
        let own = best(&lines, "this file: cells, bandwidths [4]");
        let machine = best(&lines, "Huber regression");
        assert!(
            by_huber > 1.5 * by_cells && machine.error() > own.error() + 1.0,
            "{by_huber} {by_cells}\n{text}"
        );
        // A row is off from what is expected by 4 in the mean, whatever tells it.
        assert!((3.9..8.0).contains(&own.error()), "{text}");
    }

    /// Few records at a low price, and cells too narrow for both: the file is told what to change.
    #[test]
    fn a_wider_bandwidth_is_recommended_where_the_noise_is_large() {
        let changes = [
            ("epsilon = 1.0", "epsilon = 0.1"),
            ("expected_records = 28000", "expected_records = 860"),
            ("bandwidths = [3, 500]", "bandwidths = [1, 150]"),
        ];
        let (text, lines) = compared("flights-late", &changes, &[]);
        println!("{text}");
        the_least_is_recommended(&lines, &text);
        let plain = lines
            .iter()
            .find(|line| line.function.starts_with("this file") && line.reading == "local means");
        let plain = plain.expect("the file's own, as published");
        assert!(plain.error() > lines[0].error() + 0.02, "{text}");
        let is_wider = lines[0].reading.contains("bandwidths");
        let is_whole = lines[0].reading.contains("all records");
        assert!(
            !lines[0].function.starts_with("this file") || is_wider || is_whole,
            "{text}"
        );
        // It is the noise that the narrow ones lose by.
        assert!(
            plain
                .without_noise
                .is_some_and(|form| form < plain.error() - 0.1),
            "{text}"
        );
    }

    #[test]
    fn cells_tell_an_expected_arrival_better_than_any_machine_at_the_price_of_the_example() {
        let (text, lines) = compared("flights-arrival", &[], &[]);
        println!("{text}");
        the_least_is_recommended(&lines, &text);
        assert!(
            text.contains("28000 records a window") && text.contains("none of the stream"),
            "{text}"
        );
        let cells = &lines[0];
        let huber = best(&lines, "Huber regression");
        assert!(cells.function.contains("cells"), "{text}");
        assert!(huber.error() > 1.5 * cells.error(), "{text}");
        // What the noise adds to the form, at a mean over places and laws.
        assert!(
            cells
                .without_noise
                .is_some_and(|form| form < 1.1 * cells.error()),
            "{text}"
        );
        // A bound for the squared loss holds only where records are replaced: it is not in the table, and the reason is.
        let ridge = text
            .lines()
            .find(|line| line.contains("not in the table: ridge regression: "))
            .expect("ridge");
        assert!(ridge.contains("replace"), "{text}");
    }

    #[test]
    fn cells_tell_late_flights_better_than_logistic_regression_and_a_support_vector_machine() {
        // A quarter of the example's records tells them apart as well, in less time.
        let (text, lines) = compared(
            "flights-late",
            &[("expected_records = 28000", "expected_records = 7000")],
            &[],
        );
        println!("{text}");
        the_least_is_recommended(&lines, &text);
        assert!(lines[0].function.contains("cells"), "{text}");
        assert!(
            best(&lines, "logistic regression").error() > lines[0].error() + 0.005,
            "{text}"
        );
        // A score tells classes alone.
        let svm = lines
            .iter()
            .find(|line| line.function == "support vector machine")
            .expect("it");
        assert!(
            svm.error.is_none()
                && svm
                    .wrong
                    .is_some_and(|(share, _)| (0.0..0.6).contains(&share)),
            "{text}"
        );
    }
}
