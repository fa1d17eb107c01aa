//! Real records through a real broker: the departure delays of New York's airports in 2013, a curve a day and airport.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::process::Command;
use std::time::Duration;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int16Type, TimestampMicrosecondType};
use bernstream_functions::cells::CellDensity;
use bernstream_release::Target;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::{AxisDescription, Basis};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use plotters::chart::SeriesLabelPosition::UpperRight;

use crate::harness::exact::Opened as _;
use crate::harness::kafka;
use crate::harness::picture;
use crate::harness::picture::{Axis as Scale, DARK, Layer, Panel, SKY};
use crate::harness::setup;

/// Points at which a released curve is compared with the exact one.
const POINTS: u32 = 200;
/// As in `config/flights.toml`.
const BANDWIDTH: f64 = 10.0;
const DAYS: usize = 365;
const ORIGINS: [&str; 3] = ["EWR", "JFK", "LGA"];

/// One point of the comparison.
#[derive(Clone, Copy, Debug)]
struct Sample {
    x: f64,
    released: f64,
    /// What would be released without noise.
    noiseless: f64,
    half_width: f64,
    exact: f64,
}

/// Delays by (start of the day, airport).
type Delays = BTreeMap<(Timestamp, String), Vec<f64>>;

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn bernstream(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
    command.args(arguments);
    command
}

/// What the worker should see, read without it.
fn delays(axis: &AxisDescription) -> Delays {
    let file = File::open("tests/data/flights.parquet").expect("the data");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .expect("Parquet")
        .build()
        .expect("a reader");
    let midnight = Timestamp::parse("2013-01-01T05:00:00Z")
        .expect("a time")
        .micros();
    let mut delays = Delays::new();
    for batch in reader {
        let batch = batch.expect("a batch");
        let column = |name: &str| batch.column_by_name(name).expect("the column").clone();
        let times = column("time");
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let origins = column("origin");
        let origins = origins.as_string::<i32>();
        let values = column("dep_delay")
            .as_primitive::<Int16Type>()
            .unary::<_, Float64Type>(f64::from);
        for row in 0..batch.num_rows() {
            if times.is_valid(row) && values.is_valid(row) {
                let day = (times.value(row) - midnight).div_euclid(86_400_000_000);
                let start = Timestamp::from_micros(midnight + day * 86_400_000_000);
                let value = values.value(row).clamp(axis.min, axis.max);
                delays
                    .entry((start, origins.value(row).to_owned()))
                    .or_default()
                    .push(value);
            }
        }
    }
    delays
}

/// Records a minute of delay at `x`.
fn exact(delays: &[f64], x: f64) -> f64 {
    let b = BANDWIDTH;
    let kernel =
        |d: &f64| (-((x - d) / b).powi(2) / 2.0).exp() / ((2.0 * std::f64::consts::PI).sqrt() * b);
    delays.iter().map(kernel).sum()
}

/// The curve that would be released without noise: the exact counts of the cells, by the same kernel.
fn noiseless(synopsis: &Synopsis, delays: &[f64], axis: &AxisDescription) -> Synopsis {
    let Basis::Cells(cells) = &synopsis.description().basis else {
        panic!("no cells")
    };
    let width = axis.max - axis.min;
    let density =
        CellDensity::diagonal(&[BANDWIDTH / width], cells.spline, &cells.steps).expect("a density");
    let spec = density.accumulator();
    let places = delays
        .iter()
        .map(|delay| spec.record(&[(delay - axis.min) / width], 0.0));
    let counts = density.evaluate(&spec.filled_accumulator(places));
    let values = counts
        .opened()
        .iter()
        .map(|count| *count as f64 * density.unit() / width)
        .collect();
    Synopsis::new(synopsis.description().clone(), values).expect("a synopsis")
}

#[test]
fn a_year_of_departure_delays_comes_out_as_close_to_the_truth_as_its_band_says() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let input = kafka::fresh_name("flights");
    let output = kafka::fresh_name("synopses");
    let witness = kafka::fresh_name("witness");
    let text = fs::read_to_string("config/flights.toml")
        .expect("the example")
        .replace("localhost:9092", &servers)
        .replace("\"flights-synopses\"", &format!("\"{output}\""))
        .replace("\"flights-witness\"", &format!("\"{witness}\""))
        .replace("topic = \"flights\"", &format!("topic = \"{input}\""))
        .replace(
            "path = \"ledger/flights\"",
            &format!("path = \"{}\"", folder.path().join("ledger").display()),
        )
        .replace("clock_slack = \"45s\"", "clock_slack = \"200ms\"")
        .replace("publish_delay = \"1m\"", "publish_delay = \"300ms\"")
        .replace("listen = \"127.0.0.1:9464\"", "listen = \"127.0.0.1:0\"");
    let configuration = folder.path().join("flights.toml");
    fs::write(&configuration, text).expect("written");
    let configuration = configuration.to_str().expect("a path");

    let data = "tests/data/flights.parquet";
    run(&mut bernstream(&[
        "produce",
        data,
        "--brokers",
        &servers,
        "--topic",
        &input,
        "--create",
        "3",
    ]));
    let until = Timestamp::now().plus(Duration::from_secs(1)).to_string();
    let from = "2013-01-01T05:00:00Z";
    run(&mut bernstream(&[
        "ledger",
        "init",
        configuration,
        "--from",
        from,
        "--backfill-until",
        &until,
    ]));
    run(&mut bernstream(&["check", configuration]));
    run(&mut bernstream(&["run", configuration]));
    run(&mut bernstream(&["ledger", "verify", configuration]));

    let published = setup::read_topic(&servers, &output);
    assert_eq!(published.len(), DAYS * ORIGINS.len());
    let synopses: Vec<Synopsis> = published
        .iter()
        .map(|message| Synopsis::decode_message(&message.payload).expect("a synopsis"))
        .collect();
    let axis = synopses[0].description().domain[0].clone();
    let delays = delays(&axis);
    let mut covered = 0;
    let mut noise = 0.0;
    let mut whole = 0.0;
    let mut largest = 0.0_f64;
    let mut table = String::from("day,origin,flights,peak,noise_sup,error_sup\n");
    for synopsis in &synopses {
        let description = synopsis.description();
        let place = (
            description.window.start,
            description.key.clone().expect("an airport"),
        );
        let records = delays.get(&place).map_or(&[][..], Vec::as_slice);
        let samples = sample(synopsis, records, &axis);
        let noise_sup = samples
            .iter()
            .map(|s| (s.released - s.noiseless).abs())
            .fold(0.0, f64::max);
        let error_sup = samples
            .iter()
            .map(|s| (s.released - s.exact).abs())
            .fold(0.0, f64::max);
        let peak = samples.iter().map(|s| s.exact).fold(0.0, f64::max);
        covered += usize::from(
            samples
                .iter()
                .all(|s| (s.released - s.noiseless).abs() <= s.half_width),
        );
        noise += noise_sup;
        whole += error_sup;
        largest = largest.max(peak);
        let _ = writeln!(
            table,
            "{},{},{},{peak},{noise_sup},{error_sup}",
            place.0,
            place.1,
            records.len()
        );
        if place
            == (
                Timestamp::parse("2013-07-10T05:00:00Z").expect("a day"),
                "JFK".to_owned(),
            )
        {
            picture::draw(
                &picture::output("curve.svg"),
                1,
                picture::WIDE,
                &[panel(&samples)],
            );
        }
    }
    fs::write(picture::output("flights.csv"), table).expect("written");
    let count = synopses.len() as f64;
    let share = covered as f64 / count;
    println!(
        "flights: {} curves, epsilon {} each: mean sup of the noise {:.3}, mean sup error {:.3} flights a minute (highest peak {largest:.1}); \
         95 % bands cover {:.1} %; table in target/flights.csv, picture in target/curve.svg",
        synopses.len(),
        synopses[0].description().privacy.price,
        noise / count,
        whole / count,
        100.0 * share,
    );
    // 1,095 bands at 95 %: fewer than 92 % has a chance below 1e-5.
    assert!(share >= 0.92, "the bands cover {share}");
    assert!(
        whole / count < 0.25 * largest,
        "the curves resemble the truth"
    );

    let at = run(&mut bernstream(&[
        "evaluate",
        "--brokers",
        &servers,
        "--topic",
        &output,
        "--key",
        "JFK",
        "--at",
        "0",
        "--at",
        "60",
    ]));
    assert_eq!(at.lines().count(), 3, "{at}");
}

/// The released curve in its band, and the exact one dashed.
fn panel(samples: &[Sample]) -> Panel {
    let line = |name: &str, color, is_dashed, value: &dyn Fn(&Sample) -> f64| Layer::Line {
        name: name.to_owned(),
        color,
        is_dashed,
        points: samples.iter().map(|s| (s.x, value(s))).collect(),
    };
    let band = samples
        .iter()
        .map(|s| (s.x, s.released - s.half_width, s.released + s.half_width));
    let low = samples
        .iter()
        .map(|s| s.released - s.half_width)
        .fold(0.0, f64::min);
    let top = samples
        .iter()
        .map(|s| s.released + s.half_width)
        .fold(0.0, f64::max);
    let first = samples.first().expect("a sample").x;
    let last = samples.last().expect("a sample").x;
    Panel {
        title: "JFK, 10 July 2013",
        x: Scale::new("departure delay in minutes", first..last),
        y: Scale::new("flights a minute of delay", low..top),
        legend: UpperRight,
        layers: vec![
            Layer::Band {
                color: SKY,
                points: band.collect(),
            },
            line("exact", DARK, true, &|s| s.exact),
            line("released, with its 95 % band", SKY, false, &|s| s.released),
        ],
    }
}

fn sample(synopsis: &Synopsis, records: &[f64], axis: &AxisDescription) -> Vec<Sample> {
    let order = synopsis.description().order;
    let released = synopsis.evaluator(order).expect("an evaluator");
    let noiseless = noiseless(synopsis, records, axis)
        .evaluator(order)
        .expect("an evaluator");
    (0..=POINTS)
        .map(|point| {
            let x = axis.min + (axis.max - axis.min) * f64::from(point) / f64::from(POINTS);
            Sample {
                x,
                released: released.evaluate(&[x]).expect("a value"),
                noiseless: noiseless.evaluate(&[x]).expect("a value"),
                half_width: synopsis.half_width(&[x]).expect("a width"),
                exact: exact(records, x),
            }
        })
        .collect()
}
