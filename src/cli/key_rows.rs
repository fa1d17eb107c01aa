//! A table by key in words, and as JSON.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::cli::figures::above_noise;
use bernstream_synopsis::description::{Description, TargetDescription, UnitDescription};
use bernstream_synopsis::key_table::{CountedTable, KeyMargin, KeyReading, KeyRow, KeyShares};
use bernstream_synopsis::tables::{ConfidenceInterval, Estimate};
use bernstream_synopsis::terminal_text::escape_unprintable;
use bernstream_synopsis::told_caps::{CapReading, ToldBin};
use bernstream_synopsis::{Synopsis, SynopsisError};

/// Name of the only row where no key is declared.
const ALL_RECORDS: &str = "(all)";

/// A row for each key, with the interval of each number, and shares where they are asked for. A key of several columns has a column for
/// each part. Of a key that nobody listed also whether it is new, and until when it stays.
pub fn rows_in_words(
    table: &CountedTable<'_>,
    rows: &[KeyRow<'_>],
    shares: Option<&KeyShares<'_>>,
) -> String {
    let mut names: Vec<String> = match table.key_columns() {
        [] => vec!["key".to_owned()],
        several => several.to_vec(),
    };
    names.extend(reading_names(table.readings()));
    if let Some(shares) = shares {
        for reading in &shares.readings {
            names.push(format!("share of {}", reading.name()));
        }
    }
    if table.found_summary().is_some() {
        names.extend(["stays until", ""].map(str::to_owned));
    }
    let mut lines = vec![names];
    for row in rows {
        let mut line = match table.key_columns() {
            [] => vec![shown_key(row.key)],
            _ => shown_parts(&table.parts_of(row.key)),
        };
        line.extend(row.estimates.iter().map(estimate_in_words));
        if let Some(shares) = shares {
            let own = table.keys().iter().position(|key| key == row.key);
            let own = own.and_then(|place| shares.rows.get(place));
            line.extend(own.into_iter().flatten().map(estimate_in_words));
        }
        if let Some(found) = row.found {
            let mark = if found.is_new { "new" } else { "" };
            line.extend([found.until.to_string(), mark.to_owned()]);
        }
        lines.push(line);
    }
    aligned_columns(&lines)
}

/// Numbers of keys that nobody listed, and what it says that one is not there; nothing where keys are listed.
pub fn found_in_words(table: &CountedTable<'_>) -> String {
    let Some(summary) = table.found_summary() else {
        return String::new();
    };
    let of_new = match summary.new {
        0 => "",
        _ => {
            ". New keys are those whose number, with its noise, is above that: near it numbers are too high, and intervals allow for it"
        }
    };
    format!("\n{}{of_new}\n", summary.in_words())
}

/// A row for each combination of parts, with the number of keys that are summed.
pub fn margin_in_words(margin: &KeyMargin<'_>) -> String {
    let mut names: Vec<String> = margin
        .columns
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    names.push("keys".to_owned());
    names.extend(reading_names(&margin.readings));
    let mut lines = vec![names];
    for row in &margin.rows {
        let mut line = shown_parts(&row.parts);
        line.push(row.keys.to_string());
        line.extend(row.estimates.iter().map(estimate_in_words));
        lines.push(line);
    }
    aligned_columns(&lines)
}

/// Remarks on the numbers that a margin leaves out, and why.
pub fn margin_remarks(table: &CountedTable<'_>, margin: &KeyMargin<'_>) -> String {
    let left_out = match table.readings().len() > margin.readings.len() {
        true => format!("{}. ", SynopsisError::NothingAddsUp),
        false => String::new(),
    };
    format!("\n{left_out}sums are those of the keys that are listed\n")
}

/// The rows of a margin and their synopsis.
pub fn margin_as_json(margin: &KeyMargin<'_>, about: &Description) -> Value {
    let mut rows = Vec::with_capacity(margin.rows.len());
    for row in &margin.rows {
        let mut object = Map::new();
        object.insert(
            "parts".to_owned(),
            parts_as_json(&margin.columns, &row.parts),
        );
        object.insert("keys".to_owned(), json!(row.keys));
        for (reading, estimate) in margin.readings.iter().zip(&row.estimates) {
            object.insert(reading.name().into_owned(), json!(estimate));
        }
        rows.push(Value::Object(object));
    }
    let window = json!({ "start": about.window.start, "end": about.window.end });
    json!({
        "pipeline": about.pipeline, "release": about.release, "window": window,
        "margin": margin.columns, "rows": rows,
    })
}

fn parts_as_json<N: AsRef<str>>(columns: &[N], parts: &[Cow<'_, str>]) -> Value {
    let mut object = Map::new();
    for (column, part) in columns.iter().zip(parts) {
        object.insert(column.as_ref().to_owned(), json!(part));
    }
    Value::Object(object)
}

fn reading_names(readings: &[KeyReading]) -> Vec<String> {
    readings
        .iter()
        .map(|reading| reading.name().into_owned())
        .collect()
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
        Some(1) => ", with at most one record of each".to_owned(),
        Some(most) => format!(", with at most {most} records of each"),
        None => String::new(),
    };
    let window = match about.panes.and_then(|panes| panes.step) {
        None => "a window",
        Some(_) => "each window that is added up",
    };
    let caps = match about.privacy.unit {
        UnitDescription::Record => "Each record counts once".to_owned(),
        UnitDescription::User { .. } => format!(
            "A user counts in at most {keys} of {window}{records}: what a user has beyond that is left out"
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

/// What the numbers of units tell of the cap on keys; nothing where it is not told.
pub fn told_caps_in_words(synopsis: &Synopsis) -> String {
    let Some(told) = synopsis.told_caps() else {
        return String::new();
    };
    let cap = told.max_keys;
    let share = match told.dropped.interval {
        Some(ConfidenceInterval { lower, upper }) => {
            let half_width = 50.0 * (upper - lower);
            let [value, lower, upper] = [told.dropped.value, lower, upper]
                .map(|share| above_noise(100.0 * share, half_width.max(1.0)));
            format!(
                "max_keys = {cap} drops {value} % of all pairs of a user and a key in a period, from {lower} to {upper} % with 95 % probability"
            )
        }
        None => {
            format!("how much max_keys = {cap} drops is unknown: the noise of this window hides it")
        }
    };
    format!("{share}\n{}", other_caps_in_words(&told))
}

/// What other caps would drop, of those whose share is known; the last bin ends at all keys, of which none is dropped.
fn other_caps_in_words(told: &CapReading) -> String {
    let Some((_, bins)) = told.units.split_last() else {
        return String::new();
    };
    let mut others = Vec::new();
    for ToldBin { bin, dropped, .. } in bins {
        if let Some(ConfidenceInterval { lower, upper }) = dropped.interval
            && bin.most != told.max_keys
        {
            let half_width = 50.0 * (upper - lower);
            let share = above_noise(100.0 * dropped.value, half_width.max(1.0));
            others.push(format!("{} would drop {share} %", bin.most));
        }
    }
    match others.is_empty() {
        true => String::new(),
        false => format!("max_keys = {}\n", others.join(", ")),
    }
}

/// The rows and their synopsis; of the largest rows also whether noise may have made the last of them larger than the first that is left
/// out.
pub fn rows_as_json(
    table: &CountedTable<'_>,
    rows: &[KeyRow<'_>],
    shares: Option<&KeyShares<'_>>,
    is_last_unclear: Option<bool>,
    synopsis: &Synopsis,
) -> Value {
    let about = synopsis.description();
    let mut keys = Vec::with_capacity(rows.len());
    for row in rows {
        let mut object = Map::new();
        object.insert("key".to_owned(), json!(row.key));
        if !table.key_columns().is_empty() {
            let parts = parts_as_json(table.key_columns(), &table.parts_of(row.key));
            object.insert("parts".to_owned(), parts);
        }
        if let Some(found) = row.found {
            object.insert("new".to_owned(), json!(found.is_new));
            object.insert("until".to_owned(), json!(found.until));
        }
        for (reading, estimate) in table.readings().iter().zip(&row.estimates) {
            object.insert(reading.name().into_owned(), json!(estimate));
        }
        let own = table.keys().iter().position(|key| key == row.key);
        if let Some(shares) = shares
            && let Some(own) = own.and_then(|place| shares.rows.get(place))
        {
            let readings = shares.readings.iter().map(|reading| reading.name());
            let own: Map<String, Value> = readings
                .zip(own)
                .map(|(name, share)| (name.into_owned(), json!(share)))
                .collect();
            object.insert("shares".to_owned(), Value::Object(own));
        }
        keys.push(Value::Object(object));
    }
    let window = json!({ "start": about.window.start, "end": about.window.end });
    let mut answer = json!({
        "pipeline": about.pipeline, "release": about.release, "window": window, "keys": keys,
    });
    if let Some(is_last_unclear) = is_last_unclear {
        answer["is_last_unclear"] = is_last_unclear.into();
    }
    if let Some(told) = synopsis.told_caps() {
        answer["caps"] = json!(told);
    }
    if let Some(summary) = table.found_summary() {
        answer["found"] = json!(summary);
    }
    answer
}

/// The reading of this name; `None` if the table does not have it.
pub fn reading_of_name(table: &CountedTable<'_>, name: &str) -> Option<KeyReading> {
    let mut readings = table.readings().iter().copied();
    readings.find(|reading| reading.name() == name)
}

/// A key as it is shown.
fn shown_key(key: &str) -> String {
    match key {
        "" => ALL_RECORDS.to_owned(),
        key => escape_unprintable(key),
    }
}

fn shown_parts(parts: &[Cow<'_, str>]) -> Vec<String> {
    parts.iter().map(|part| escape_unprintable(part)).collect()
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
