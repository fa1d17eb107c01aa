//! Functions of real records through the worker: what `config/flights-*.toml` release of the flights of 2013 is as close to
//! the exact functions as their bands say, and of use.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, TimestampMicrosecondType};
use bernstream_config::WorkerSettings;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::harness::exact::Opened as _;
use crate::harness::plan::plan;

/// The values of a record's columns: axes, then label.
type Row = Vec<f64>;

struct Window {
    released: Synopsis,
    /// The same without noise.
    exact: Synopsis,
    records: Vec<Row>,
}

impl Window {
    fn at(&self, point: &[f64]) -> f64 {
        self.released.evaluate(point).expect("a value")
    }

    /// The noise at the worst point of a grid, in half widths of the band.
    fn worst(&self) -> f64 {
        let about = self.released.description();
        let released = self.released.evaluator(about.order);
        let exact = self.exact.evaluator(about.order);
        let released = released.expect("an evaluator");
        let exact = exact.expect("an evaluator");
        let points = about
            .domain
            .iter()
            .fold(vec![vec![]], |points: Vec<Vec<f64>>, axis| {
                let at = |i| axis.min + (axis.max - axis.min) * f64::from(i) / 30.0;
                points
                    .into_iter()
                    .flat_map(|p| (0..=30).map(move |i| [&p[..], &[at(i)]].concat()))
                    .collect()
            });
        let part = |point: &Vec<f64>| {
            let noise = released.evaluate(point).expect("a value")
                - exact.evaluate(point).expect("a value");
            noise.abs() / self.released.half_width(point).expect("a width")
        };
        points.iter().map(part).fold(0.0, f64::max)
    }
}

/// Every complete record of the flights, by the start of its window.
fn records(settings: &WorkerSettings) -> BTreeMap<Timestamp, Vec<Row>> {
    chosen(settings, None)
}

/// Those from one airport.
fn flights_of(settings: &WorkerSettings, origin: &str) -> BTreeMap<Timestamp, Vec<Row>> {
    chosen(settings, Some(origin))
}

fn chosen(settings: &WorkerSettings, origin: Option<&str>) -> BTreeMap<Timestamp, Vec<Row>> {
    let file = File::open("tests/data/flights.parquet").expect("the data");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .expect("Parquet")
        .build()
        .expect("a reader");
    let mut records: BTreeMap<Timestamp, Vec<Row>> = BTreeMap::new();
    for batch in reader {
        let batch = batch.expect("a batch");
        let times = batch
            .column_by_name("time")
            .expect("times")
            .as_primitive::<TimestampMicrosecondType>()
            .clone();
        let number = |name: &String| {
            let column = batch.column_by_name(name).expect("the column");
            let floats = column
                .as_primitive_opt::<Float32Type>()
                .map(|floats| floats.unary(f64::from));
            floats.unwrap_or_else(|| {
                column
                    .as_primitive::<Int16Type>()
                    .unary::<_, Float64Type>(f64::from)
            })
        };
        let columns: Vec<_> = settings.releases[0].columns.iter().map(number).collect();
        let origins = batch.column_by_name("origin").expect("origins");
        let origins = origins.as_string::<i32>().clone();
        let is_chosen = |row: &usize| {
            columns.iter().all(|column| column.is_valid(*row))
                && origin.is_none_or(|o| origins.value(*row) == o)
        };
        for row in (0..batch.num_rows()).filter(is_chosen) {
            let start = settings
                .windows
                .grid
                .span_of(Timestamp::from_micros(times.value(row)))
                .start;
            records
                .entry(start)
                .or_default()
                .push(columns.iter().map(|column| column.value(row)).collect());
        }
    }
    records
}

/// The released values without noise, computed through the library.
fn exact(settings: &WorkerSettings, records: &[Row], released: &Synopsis) -> Synopsis {
    let target = &settings.releases[0].function.target;
    let axes = &settings.releases[0].axes;
    let spec = target.accumulator();
    let record = |row: &Row| {
        let x: Vec<f64> = axes
            .iter()
            .zip(row)
            .map(|(axis, x)| axis.unit_place(*x).expect("clamped"))
            .collect();
        let label = settings.releases[0].label.as_ref();
        let label = label.map_or(0.0, |label| label.of(row[axes.len()]).expect("kept"));
        spec.record(&x, label)
    };
    let values = target.evaluate(&spec.filled_accumulator(records.iter().map(record)));
    let scaled = values
        .opened()
        .iter()
        .map(|value| *value as f64 * settings.releases[0].function.grid_unit())
        .collect();
    // What is put on kernel points has its offset in the description.
    let offset = settings.releases[0].function.scaling.offset() - released.description().offset;
    let values = target
        .publish(scaled)
        .into_iter()
        .map(|value| offset + value)
        .collect();
    Synopsis::new(released.description().clone(), values).expect("a synopsis")
}

fn bernstream(arguments: &[&OsStr]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(arguments)
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs the worker on `config/<name>.toml`, its output and ledger in `folder`.
fn run(name: &str, folder: &Path) -> WorkerSettings {
    let inside = |place: &str| format!("\"{}/{place}/", folder.display());
    let text = fs::read_to_string(format!("config/{name}.toml")).expect("the example");
    let text = text
        .replace("\"out/", &inside("out"))
        .replace("\"ledger/", &inside("ledger"));
    let settings = WorkerSettings::parse(&text, name).expect("a configuration");
    let configuration = folder.join("bernstream.toml");
    fs::write(&configuration, text).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .arg("run")
        .arg(configuration)
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    settings
}

/// The synopses of a release, in the order of their windows.
fn published(folder: &Path, name: &str, release: &str) -> Vec<PathBuf> {
    let folder = folder.join("out").join(name).join(name).join(release);
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("it")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    files
}

/// Runs the worker on `config/<name>.toml` and gives every window, in order, that it should have released.
fn release(name: &str, windows: usize) -> Vec<Window> {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = run(name, folder.path());
    let files = published(folder.path(), name, &settings.releases[0].name);
    let table = bernstream(&[
        "evaluate".as_ref(),
        files[0].as_os_str(),
        "--points".as_ref(),
        "2".as_ref(),
    ]);
    assert_eq!(
        table.lines().count(),
        1 + 2_usize.pow(settings.releases[0].shape().dimensions as u32),
        "{table}"
    );
    let mut records = records(&settings);
    let window = |file| {
        let released =
            Synopsis::decode_message(&fs::read(file).expect("read")).expect("a synopsis");
        let records = records
            .remove(&released.description().window.start)
            .expect("a window of the grid");
        assert!(records.len() > 1_000);
        Window {
            exact: exact(&settings, &records, &released),
            released,
            records,
        }
    };
    let released: Vec<Window> = files.iter().map(window).collect();
    assert_eq!(released.len(), windows, "every window has its synopsis");
    released
}

/// How many windows have noise that stays in its band.
fn covered(windows: &[Window]) -> usize {
    let worst: Vec<f64> = windows.iter().map(Window::worst).collect();
    // The noise is there: a mistake that left it out would be no better than one that doubled it.
    assert!(
        worst.iter().sum::<f64>() > 0.3 * worst.len() as f64,
        "{worst:.2?}"
    );
    worst.iter().filter(|worst| **worst <= 1.0).count()
}

#[test]
fn the_arrival_delay_is_told_from_the_departure_delay() {
    let windows = release("flights-arrival", 13);
    // Fewer than 8 of 13 bands at 95 % have a chance of 3e-5.
    assert!(covered(&windows) >= 8);
    for window in &windows {
        let [early, hour, late] = [0.0, 60.0, 110.0].map(|delay| window.at(&[delay]));
        assert!((-25.0..15.0).contains(&early), "on time: {early}");
        assert!((40.0..75.0).contains(&hour), "an hour late: {hour}");
        assert!((85.0..135.0).contains(&late), "very late: {late}");
    }
}

#[test]
fn the_probability_of_a_late_arrival_is_better_than_a_guess() {
    let windows = release("flights-late", 13);
    assert!(covered(&windows) >= 8);
    let mut better = 0;
    let mut gained = 0.0;
    for window in &windows {
        let is_late = |row: &Row| row[2] > 15.0;
        let evaluator = window
            .released
            .evaluator(window.released.description().order)
            .expect("an evaluator");
        let probability = |row: &Row| {
            let point = [row[0].clamp(5.0, 24.0), row[1].clamp(0.0, 3000.0)];
            evaluator
                .evaluate(&point)
                .expect("a value")
                .clamp(0.001, 0.999)
        };
        let loss = |p: f64, is_late: bool| -(if is_late { p } else { 1.0 - p }).ln();
        let mean = |f: &dyn Fn(&Row) -> f64| {
            window.records.iter().map(f).sum::<f64>() / window.records.len() as f64
        };
        let share = mean(&|row| if is_late(row) { 1.0 } else { 0.0 });
        // A guess that knows how many were late in these very four weeks.
        let guess = mean(&|row| loss(share, is_late(row)));
        let told = mean(&|row| loss(probability(row), is_late(row)));
        better += usize::from(told < guess);
        gained += guess - told;
        let morning = window.at(&[7.0, 1000.0]);
        let evening = window.at(&[20.0, 1000.0]);
        println!(
            "late {share:.3}, told {morning:.3} at 7, {evening:.3} at 20; loss {told:.4}, of a guess {guess:.4}"
        );
        assert!(
            (0.02..0.4).contains(&morning) && evening > morning,
            "{morning}, {evening}"
        );
    }
    assert!(
        better >= 9 && gained > 0.0,
        "better than a guess in {better} of 13, by {gained} in all"
    );
}

/// A function of the flights at a price, drawn once for each window: what it is far from itself without noise, and from what the
/// next window holds.
struct Judged {
    /// The mean over points of the domain.
    from_exact: f64,
    /// The mean over the records of the next window.
    loss: f64,
}

/// `text` with another epsilon, by the library; a loss of what was told and what was found.
fn judged(text: &str, epsilon: &str, loss: impl Fn(f64, f64) -> f64) -> Judged {
    let text = text.replace("epsilon = 1.0", &format!("epsilon = {epsilon}"));
    let settings =
        WorkerSettings::parse(&text, "judged").unwrap_or_else(|faults| panic!("{faults}"));
    let windows: Vec<Vec<Row>> = records(&settings).into_values().collect();
    let plan = plan(&settings);
    let release = &plan.releases[0];
    let function = &settings.releases[0].function;
    let spec = function.target.accumulator();
    let label = settings.releases[0].label.as_ref().expect("a label");
    let axes = &settings.releases[0].axes;
    let mechanism = settings
        .mechanism_of(&settings.releases[0], function)
        .expect("a mechanism");
    let mut from_exact = Vec::new();
    let mut losses = Vec::new();
    for (number, pair) in windows.windows(2).enumerate() {
        let place = |row: &Row| {
            axes.iter()
                .zip(row)
                .map(|(axis, x)| axis.unit_place(*x).expect("clamped"))
                .collect::<Vec<_>>()
        };
        let record = |row: &Row| spec.record(&place(row), label.of(row[axes.len()]).expect("kept"));
        let values = function
            .target
            .evaluate(&spec.filled_accumulator(pair[0].iter().map(record)));
        let noisy = mechanism.release_noisy(&values, &mut Generator::frozen([number as u8; 32]));
        let variant = release.variants.first();
        let natural: Vec<f64> = values
            .opened()
            .iter()
            .map(|value| function.scaling.offset() + *value as f64 * function.grid_unit())
            .collect();
        let of = |values| Synopsis::new(release.description().clone(), values).expect("a synopsis");
        let exact = of(natural);
        let noisy = of(variant.dequantize(&noisy).into_values());
        let order = exact.description().order;
        let [exact, noisy] =
            [exact, noisy].map(|synopsis| synopsis.evaluator(order).expect("an evaluator"));
        let points = release
            .description()
            .even_points(if axes.len() == 1 { 151 } else { 20 });
        let apart = |point: &Vec<f64>| {
            (exact.evaluate(point).expect("it") - noisy.evaluate(point).expect("it")).abs()
        };
        from_exact.push(points.iter().map(apart).sum::<f64>() / points.len() as f64);
        // Every tenth: the mean of thousands.
        let next: Vec<&Row> = pair[1].iter().step_by(10).collect();
        let lost = |row: &&Row| {
            let point: Vec<f64> = axes
                .iter()
                .zip(row.iter())
                .map(|(axis, x)| x.clamp(axis.min, axis.max))
                .collect();
            loss(noisy.evaluate(&point).expect("it"), row[axes.len()])
        };
        losses.push(next.iter().map(lost).sum::<f64>() / next.len() as f64);
    }
    let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
    Judged {
        from_exact: mean(from_exact),
        loss: mean(losses),
    }
}

#[test]
fn the_density_of_delay_and_hour_shows_the_evening() {
    let windows = release("flights-hour", 52);
    // Fewer than 42 of 52 have a chance of 2e-4, fewer than 40 of 1e-5.
    assert!(covered(&windows) >= 40);
    let mut evenings = 0;
    for window in &windows {
        let mass = window.released.total_mass().expect("a mass");
        let records = window.records.len() as f64;
        assert!((mass / records - 1.0).abs() < 0.15, "{mass} of {records}");
        evenings += usize::from(window.at(&[30.0, 19.0]) > window.at(&[30.0, 8.0]));
    }
    assert!(
        evenings >= 46,
        "half an hour late is an evening's delay in {evenings} weeks"
    );
}

/// Sums of the last four weeks and of the year so far, by the worker: as far from the exact sums as they say, every day.
#[test]
fn running_sums_are_as_far_from_the_exact_ones_as_they_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = run("flights-running", folder.path());
    let days: Vec<Vec<Row>> = records(&settings).into_values().collect();
    for (release, panes) in [("last-four-weeks", 28), ("year-so-far", 365)] {
        let files = published(folder.path(), "flights-running", release);
        assert_eq!(files.len(), 365, "a synopsis a day");
        let mut squares = Vec::new();
        // Four weeks apart the sums of four weeks share no day. Those of the year share most, and their noise still is that of
        // many days: it is squared over 41 values each.
        for (day, file) in files.iter().enumerate().skip(27).step_by(28) {
            let released =
                Synopsis::decode_message(&fs::read(file).expect("read")).expect("a synopsis");
            let rows: Vec<Row> = days[(day + 1).saturating_sub(panes)..=day].concat();
            let exact = exact(&settings, &rows, &released);
            let scale = released.description().noise.scale;
            let noise = |(a, b): (&f64, &f64)| ((a - b) / scale).powi(2);
            squares.extend(released.values().iter().zip(exact.values()).map(noise));
            let window = Window {
                released,
                exact,
                records: rows,
            };
            assert!(window.worst() < 2.0, "day {day}");
        }
        let mean = squares.iter().sum::<f64>() / squares.len() as f64;
        println!(
            "{release}: mean square of the noise {mean:.3} of what is claimed, {} values",
            squares.len()
        );
        // 533 values; six deviations of their mean, were they independent, are 0.37.
        assert!(
            (mean - 1.0).abs() < if panes == 28 { 0.37 } else { 0.6 },
            "{release}: {mean}"
        );
    }
}

#[test]
fn moments_answer_questions_about_delays() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = |place: &str| format!("\"{}/{place}/", folder.path().display());
    let text = fs::read_to_string("config/summary.toml").expect("the example");
    let text = text
        .replace("\"out/", &inside("out"))
        .replace("\"ledger/", &inside("ledger"));
    let settings = WorkerSettings::parse(&text, "summary").expect("a configuration");
    let configuration = folder.path().join("bernstream.toml");
    fs::write(&configuration, text).expect("written");
    bernstream(&["run".as_ref(), configuration.as_ref()]);
    let file = folder
        .path()
        .join("out/summary/flights/delays/EWR/2013-05-21T050000Z.arrows");
    let question = "exp(-(dep_delay/30)^2) * arr_delay";
    let ask = |more: &[&OsStr]| {
        bernstream(
            &[
                &["query".as_ref(), file.as_os_str(), question.as_ref()],
                more,
            ]
            .concat(),
        )
    };
    let text = ask(&[]);
    assert!(
        text.contains("noise within")
            && text.contains("truncation at most")
            && text.contains("(proved)"),
        "{text}"
    );
    let answer: serde_json::Value = serde_json::from_str(&ask(&["--json".as_ref()])).expect("JSON");
    let number = |path: &str| {
        answer
            .pointer(path)
            .and_then(serde_json::Value::as_f64)
            .unwrap_or_else(|| panic!("{path}: {answer}"))
    };

    let synopsis = Synopsis::decode_message(&fs::read(&file).expect("read")).expect("a synopsis");
    let about = synopsis.description();
    let mut flights = flights_of(&settings, "EWR");
    let records = flights.remove(&about.window.start).expect("a window");
    let clamped = |row: &Row| {
        let natural = |(x, axis): (&f64, &bernstream_synopsis::description::AxisDescription)| {
            x.clamp(axis.min, axis.max)
        };
        row.iter()
            .zip(&about.domain)
            .map(natural)
            .collect::<Vec<f64>>()
    };
    let exact: f64 = records
        .iter()
        .map(clamped)
        .map(|x| (-(x[0] / 30.0).powi(2)).exp() * x[1])
        .sum();
    // Five times what is exceeded once in twenty: noise, and what the moments do not hold.
    let limit = 5.0 * number("/answer/noise/half_width") + number("/answer/truncation/error");
    assert!(
        (number("/answer/sum") - exact).abs() < limit,
        "{exact} {answer}"
    );
    let mean = exact / records.len() as f64;
    let limit =
        5.0 * number("/answer/mean/noise/half_width") + number("/answer/truncation/per_record");
    assert!(
        (number("/answer/mean/value") - mean).abs() < limit,
        "{mean} {answer}"
    );
    assert!(
        (number("/answer/truncation/records") / records.len() as f64 - 1.0).abs() < 0.2,
        "{answer}"
    );

    let output = Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .arg("evaluate")
        .arg(&file)
        .output()
        .expect("it runs");
    let refused = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && refused.contains("bernstream query"),
        "{refused}"
    );
}

mod long {
    use super::*;

    /// Counts of cells beside the kernel machine and the logistic regression, at the same epsilon, on the same windows.
    #[test]
    fn cells_are_several_times_nearer_than_a_machine_at_the_same_price() {
        let arrival = [
            include_str!("../data/arrival-machine.toml"),
            include_str!("../../config/flights-arrival.toml"),
        ];
        let late = [
            include_str!("../data/late-logistic.toml"),
            include_str!("../../config/flights-late.toml"),
        ];
        let minutes = |told: f64, found: f64| (told - found.clamp(-60.0, 150.0)).abs();
        let log = |told: f64, found: f64| {
            let p = told.clamp(0.001, 0.999);
            -(if found > 15.0 { p } else { 1.0 - p }).ln()
        };
        for (epsilon, times) in [("1.0", 5.0), ("0.1", 2.0)] {
            let [machine, cells] = arrival.map(|text| judged(text, epsilon, minutes));
            println!(
                "arrival, epsilon {epsilon}: noise {:.3} and {:.3} minutes, next window {:.2} and {:.2}",
                machine.from_exact, cells.from_exact, machine.loss, cells.loss
            );
            assert!(
                machine.from_exact > times * cells.from_exact,
                "{} {}",
                machine.from_exact,
                cells.from_exact
            );
            assert!(cells.loss < machine.loss);
            let [logistic, cells] = late.map(|text| judged(text, epsilon, log));
            println!(
                "late, epsilon {epsilon}: noise {:.4} and {:.4}, next window {:.4} and {:.4}",
                logistic.from_exact, cells.from_exact, logistic.loss, cells.loss
            );
            assert!(
                logistic.from_exact > times * cells.from_exact,
                "{} {}",
                logistic.from_exact,
                cells.from_exact
            );
            assert!(cells.loss < logistic.loss);
        }
    }
}
