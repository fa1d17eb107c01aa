//! A table by key in words, and as JSON.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::cli::figures::above_noise;
use bernstream_synopsis::description::{Description, TargetDescription, UnitDescription};
use bernstream_synopsis::key_table::{CountedTable, KeyReading, KeyRow};
use bernstream_synopsis::tables::{ConfidenceInterval, Estimate};

/// Name of the only row where no key is declared.
const ALL_RECORDS: &str = "(all)";

/// A row for each key, with the interval of each number.
pub fn rows_in_words(table: &CountedTable<'_>, rows: &[KeyRow<'_>]) -> String {
    let readings = table.readings().iter();
    let names = readings.map(|reading| reading.name().into_owned());
    let mut lines = vec![std::iter::once("key".to_owned()).chain(names).collect()];
    for row in rows {
        let mut line = vec![shown_key(row.key)];
        line.extend(row.estimates.iter().map(estimate_in_words));
        lines.push(line);
    }
    aligned_columns(&lines)
}

/// What caps leave out, which no interval covers.
pub fn caps_in_words(about: &Description) -> String {
    let TargetDescription::Counts(counts) = &about.target else {
        return String::new();
    };
    let keys = match counts.max_keys {
        1 => "one key".to_owned(),
        most => format!("{most} keys"),
    };
    let records = match counts.max_records {
        None if counts.quantiles.is_some() => ", with the mean of its values in each".to_owned(),
        Some(most) if most > 1 => format!(", with at most {most} records of each"),
        _ => String::new(),
    };
    let caps = match about.privacy.unit {
        UnitDescription::Record => "Each record counts once".to_owned(),
        UnitDescription::User { .. } => format!(
            "A user counts in at most {keys} of a window{records}: what a user has beyond that is left out"
        ),
    };
    let grid = match (&counts.quantiles, &counts.value) {
        (Some(quantiles), Some(value)) => {
            let step = (value.max - value.min) / f64::from(quantiles.grid.places - 1);
            let step = above_noise(step, step / 100.0);
            format!(
                ". Values are rounded to steps of {step} from {} to {}",
                value.min, value.max
            )
        }
        _ => String::new(),
    };
    format!("\nintervals cover the noise, with 95 % probability. {caps}{grid}\n")
}

/// The rows and their synopsis.
pub fn rows_as_json(table: &CountedTable<'_>, rows: &[KeyRow<'_>], about: &Description) -> Value {
    let mut keys = Vec::with_capacity(rows.len());
    for row in rows {
        let mut object = Map::new();
        object.insert("key".to_owned(), json!(row.key));
        for (reading, estimate) in table.readings().iter().zip(&row.estimates) {
            object.insert(reading.name().into_owned(), json!(estimate));
        }
        keys.push(Value::Object(object));
    }
    let window = json!({ "start": about.window.start, "end": about.window.end });
    json!({
        "pipeline": about.pipeline, "release": about.release, "window": window, "keys": keys,
    })
}

/// The reading of this name; `None` if the table does not have it.
pub fn reading_of_name(table: &CountedTable<'_>, name: &str) -> Option<KeyReading> {
    let mut readings = table.readings().iter().copied();
    readings.find(|reading| reading.name() == name)
}

/// A key as it is shown: what a terminal would not print is escaped.
fn shown_key(key: &str) -> String {
    match key {
        "" => ALL_RECORDS.to_owned(),
        key => key.escape_debug().to_string(),
    }
}

fn estimate_in_words(estimate: &Estimate) -> String {
    match estimate.interval {
        Some(ConfidenceInterval { lower, upper }) => {
            let half = (upper - lower) / 2.0;
            let [value, lower, upper] =
                [estimate.value, lower, upper].map(|x| above_noise(x, half));
            format!("{value} ({lower} to {upper})")
        }
        None => "unknown".to_owned(),
    }
}

fn aligned_columns(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let mut widths = vec![0; columns];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for line in lines {
        let mut shown = String::new();
        for (width, cell) in widths.iter().zip(line) {
            let _infallible = write!(shown, "{cell:<width$}  ");
        }
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text
}
