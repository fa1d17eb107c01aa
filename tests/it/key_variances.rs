//! Variances by key, from the configuration to what readers see.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use bernstream_config::WorkerSettings;
use bernstream_synopsis::{Basis, Synopsis};
use serde_json::Value;

const CONFIGURATION: &str = r#"
pipeline = "shops"
input = { time = "at", files = { path = "FOLDER/sales.csv" }, key = { column = "shop", type = "text", values = ["a", "b"] } }
windows = { origin = "2026-01-05T00:00:00Z", length = "1d", end = "2026-01-06T00:00:00Z" }
privacy = { unit = { user = { column = "user", type = "text", per = "1d" } }, adjacency = "add_remove", epsilon = 4 }
output = { files = { path = "FOLDER/out" } }
ledger = { path = "FOLDER/ledger" }
[release]
name = "amounts"
epsilon = 4
[release.counts]
of = ["users", "mean", "variance"]
max_keys = 1
max_records = 2
value = { column = "amount", min = 0, max = 100, outside = "clamp" }
"#;

fn settings(of: &str) -> WorkerSettings {
    let own = r#"["users", "mean", "variance"]"#;
    assert!(CONFIGURATION.contains(own));
    WorkerSettings::parse(&CONFIGURATION.replace(own, of), "f").unwrap()
}

fn columns(settings: &WorkerSettings) -> Vec<String> {
    let Basis::Keys(basis) = settings.releases[0].shape().basis else {
        panic!("a table by key")
    };
    let names = basis.columns.iter().map(|column| column.statistic.name());
    names.map(|name| name.into_owned()).collect()
}

/// What is asked together with a variance comes of its numbers; without one nothing of it is kept, and a ledger is another one.
#[test]
fn a_variance_tells_records_sum_and_mean_of_the_same_numbers() {
    let alone = settings(r#"["variance"]"#);
    assert_eq!(columns(&alone), ["low", "middle", "high"]);
    let all = settings(r#"["records", "sum", "mean", "variance"]"#);
    assert_eq!(columns(&all), columns(&alone));
    assert_eq!(all.digest(), alone.digest());
    let mean = settings(r#"["mean"]"#);
    assert_eq!(columns(&mean), ["low", "high"]);
    assert_ne!(mean.digest(), alone.digest());
}

/// Shop a sells at 20 and at 40, and shop b at 50 alone; some users buy twice, at one price.
fn write_sales(path: &Path) {
    let mut text = "at,user,shop,amount\n".to_owned();
    for user in 0..6000 {
        let (shop, amount) = match user % 3 {
            0 => ("a", 20),
            1 => ("a", 40),
            _ => ("b", 50),
        };
        for _ in 0..=(user / 3 % 2) {
            writeln!(text, "2026-01-05T10:00:00Z,u{user},{shop},{amount}").unwrap();
        }
    }
    fs::write(path, text).unwrap();
}

fn said_by(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn a_variance_is_read_from_the_synopsis_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let file = folder.path().join("shops.toml");
    let file = file.to_str().unwrap();
    fs::write(file, CONFIGURATION.replace("FOLDER", path)).unwrap();
    write_sales(&folder.path().join("sales.csv"));
    let told = said_by(&["explain", file]);
    assert!(
        told.contains("Its variance has an interval of its own in every window"),
        "{told}"
    );
    // At this price 100 records show a mean, and its error falls with their number.
    let mean = told
        .lines()
        .find(|line| line.contains("Its mean has"))
        .expect("a mean");
    let (_, errors) = mean
        .split_once("evenly over the value: ± ")
        .expect("errors");
    let errors: Vec<f64> = errors
        .trim_end_matches('.')
        .split(", ± ")
        .map(|error| error.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(errors.len() == 3 && errors[1] / errors[2] > 9.5, "{mean}");
    said_by(&["ledger", "init", file]);
    said_by(&["run", file]);
    let synopsis = folder
        .path()
        .join("out/shops/amounts/2026-01-05T000000Z.arrows");
    let read = Synopsis::decode_message(&fs::read(&synopsis).unwrap()).unwrap();
    let table = read.key_table().unwrap();
    let synopsis = synopsis.to_str().unwrap();
    let json: Value = serde_json::from_str(&said_by(&["query", synopsis, "--json"])).unwrap();
    for (place, exact) in [[30.0, 100.0, 10.0], [50.0, 0.0, 0.0]]
        .into_iter()
        .enumerate()
    {
        let row = &table.rows()[place];
        for (name, exact) in ["mean", "variance", "deviation"].into_iter().zip(exact) {
            let mut readings = table.readings().iter();
            let at = readings.position(|reading| reading.name() == name).unwrap();
            let estimate = row.estimates[at];
            let interval = estimate.interval.expect("many records");
            // Wider than 95 %: whatever is drawn.
            let width = interval.upper - interval.lower;
            assert!(
                (interval.lower - width..=interval.upper + width).contains(&exact),
                "{name}: {estimate:?}"
            );
            assert!(width < 20.0, "{name}: {estimate:?}");
            assert_eq!(json["keys"][place][name]["value"], estimate.value);
        }
    }
    let words = said_by(&["query", synopsis, "--top", "1", "--by", "variance"]);
    assert!(words.contains("deviation"), "{words}");
}
