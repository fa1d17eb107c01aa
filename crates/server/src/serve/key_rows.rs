//! The rows of a table by key with their intervals, and one number of one key over windows.

use std::sync::Arc;

use super::api_error::ApiError;
use super::table::{ResponseTable, TableCell};
use crate::feed::CachedSynopsis;
use bernstream_synopsis::description::Basis;
use bernstream_synopsis::key_table::{CountedTable, KeyReading, KeyRow};
use bernstream_synopsis::tables::{ConfidenceInterval, Estimate};
use bernstream_synopsis::told_caps::CapReading;
use bernstream_synopsis::{Synopsis, SynopsisError};

/// Rows that a request asks for.
#[derive(Debug, Default)]
pub struct KeyRowRequest {
    /// Number of rows with the largest numbers; all rows, in the order of the table, if there is none.
    pub top: Option<u32>,
    /// Name of the number that `top` sorts by; the first one of the table if there is none.
    pub by: Option<String>,
    /// The only key that is wanted.
    pub row: Option<String>,
    /// Columns of the key, with commas between: sums over all keys with the same parts in them, in place of the keys.
    pub margin: Option<String>,
}

/// Returns whether a synopsis holds counts by key, and is no function of a point.
pub fn is_by_key(synopsis: &Synopsis) -> bool {
    matches!(synopsis.description().basis, Basis::Keys(_))
}

/// A row for each key that is asked for: each number, and the ends of its interval; of the largest also whether the noise may have made
/// the last of them larger than the first that is left out.
///
/// # Errors
///
/// If the synopsis holds no counts by key, or lacks the key or the number that is asked for.
pub fn rows_of_window(
    synopsis: &Synopsis,
    wanted: &KeyRowRequest,
) -> Result<ResponseTable, ApiError> {
    let table = synopsis.key_table()?;
    if let Some(columns) = &wanted.margin {
        return rows_of_margin(&table, columns, wanted);
    }
    let mut is_last_unclear = None;
    let rows = match wanted.top {
        Some(count) => {
            let reading = reading_of_name(&table, wanted.by.as_deref())?;
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let top = table.top_keys(reading, count).unwrap_or_default();
            is_last_unclear = Some(top.is_last_unclear);
            top.rows
        }
        None if wanted.by.is_some() => {
            return Err(ApiError::bad_request(
                "by= names the number that top= sorts by: add top=10",
            ));
        }
        None => match &wanted.row {
            Some(key) => vec![table.row_of(key)?],
            None => table.rows(),
        },
    };
    let mut columns = vec!["key".to_owned()];
    columns.extend_from_slice(table.key_columns());
    columns.extend(columns_of_readings(table.readings()));
    if table.found_summary().is_some() {
        columns.extend(["new", "until", "threshold"].map(str::to_owned));
    }
    let mut cells: Vec<Vec<TableCell>> = rows.iter().map(|row| cells_of_row(&table, row)).collect();
    if let Some(is_last_unclear) = is_last_unclear {
        // In every row, since a table of rows has no other place.
        columns.push("is_last_unclear".to_owned());
        for row in &mut cells {
            row.push(TableCell::Truth(is_last_unclear));
        }
    }
    Ok(ResponseTable {
        columns,
        rows: cells,
    })
}

/// Reading of the cap on keys: what it drops, and units by how many keys they have.
///
/// # Errors
///
/// If the synopsis holds no counts by key, or does not tell its caps.
pub fn caps_of_window(synopsis: &Synopsis) -> Result<CapReading, ApiError> {
    synopsis.key_table()?;
    synopsis.told_caps().ok_or_else(|| {
        ApiError::bad_request(
            "what max_keys drops is not told: `caps = {}` in [release.counts] tells it",
        )
    })
}

/// A row for each combination of parts, with the number of keys that are summed; each number, and the ends of its interval.
fn rows_of_margin(
    table: &CountedTable<'_>,
    columns: &str,
    wanted: &KeyRowRequest,
) -> Result<ResponseTable, ApiError> {
    if wanted.top.is_some() || wanted.row.is_some() || wanted.by.is_some() {
        return Err(ApiError::bad_request(
            "margin= sums over keys, and top=, by= and row= choose them: give one of them",
        ));
    }
    let named: Vec<&str> = columns.split(',').collect();
    let margin = table.margin(&named)?;
    let mut columns: Vec<String> = margin
        .columns
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    columns.push("keys".to_owned());
    columns.extend(columns_of_readings(&margin.readings));
    let mut rows = Vec::with_capacity(margin.rows.len());
    for row in &margin.rows {
        let mut cells: Vec<TableCell> = row
            .parts
            .iter()
            .map(|part| TableCell::Text(part.to_string()))
            .collect();
        cells.push(TableCell::finite_number(row.keys as f64));
        cells.extend(row.estimates.iter().flat_map(cells_of_estimate));
        rows.push(cells);
    }
    Ok(ResponseTable { columns, rows })
}

fn columns_of_readings(readings: &[KeyReading]) -> Vec<String> {
    let mut columns = Vec::new();
    for reading in readings {
        let name = reading.name();
        columns.extend([
            name.to_string(),
            format!("{name}_lower"),
            format!("{name}_upper"),
        ]);
    }
    columns
}

/// A number of one key, window by window, with the ends of its interval. The key may be left out where a table has only one.
///
/// Windows whose tables lack the key or the number are left out: the configuration may have changed. Where nobody listed the keys, a window
/// without the key has a row without a number: it was not published, and is not 0.
///
/// # Errors
///
/// If the newest synopsis holds no counts by key, or lacks the key or the number that is asked for; of keys that nobody listed, if no
/// window has the key.
pub fn row_over_time(
    synopses: &[Arc<CachedSynopsis>],
    wanted: &KeyRowRequest,
) -> Result<ResponseTable, ApiError> {
    let mut rows = Vec::with_capacity(synopses.len());
    let mut absence = None;
    let mut is_known = false;
    for (place, cached) in synopses.iter().enumerate() {
        match window_row(&cached.synopsis, wanted) {
            Ok(WindowRow::Known(row)) => {
                is_known = true;
                rows.push(row);
            }
            Ok(WindowRow::Absent(row, why)) => {
                absence = Some(why);
                rows.push(row);
            }
            Err(error) if place + 1 == synopses.len() => return Err(error),
            Err(_) => {}
        }
    }
    if let Some(why) = absence.filter(|_| !is_known) {
        return Err(why.into());
    }
    let columns = [
        "time",
        "window_start",
        "published",
        "value",
        "lower",
        "upper",
    ];
    Ok(ResponseTable {
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    })
}

/// Row of a window in the history of a key.
enum WindowRow {
    Known(Vec<TableCell>),
    /// Nobody listed the keys, and the window does not have this one.
    Absent(Vec<TableCell>, SynopsisError),
}

/// The times of a window, and the number of the key in it.
fn window_row(synopsis: &Synopsis, wanted: &KeyRowRequest) -> Result<WindowRow, ApiError> {
    let table = synopsis.key_table()?;
    let reading = reading_of_name(&table, wanted.by.as_deref())?;
    let row = match (&wanted.row, table.keys()) {
        (Some(key), _) => match table.row_of(key) {
            Err(absent @ SynopsisError::AbsentKey { .. }) => {
                let mut cells = times_of_window(synopsis);
                cells.extend([const { TableCell::Unknown }; 3]);
                return Ok(WindowRow::Absent(cells, absent));
            }
            row => row?,
        },
        (None, [only]) => table.row_of(only)?,
        (None, _) => {
            return Err(ApiError::bad_request(
                "the parameter 'row' is missing: the key whose history is wanted, for example row=DE; /api/v1/keys lists them",
            ));
        }
    };
    let mut cells = times_of_window(synopsis);
    let mut estimates = table.readings().iter().zip(&row.estimates);
    if let Some((_, estimate)) = estimates.find(|(known, _)| **known == reading) {
        cells.extend(cells_of_estimate(estimate));
    }
    Ok(WindowRow::Known(cells))
}

/// End and start of a window, and when it was due. Windows that were published late, all at once, stand where they ended.
fn times_of_window(synopsis: &Synopsis) -> Vec<TableCell> {
    let about = synopsis.description();
    let times = [about.window.end, about.window.start, about.published];
    Vec::from(times.map(|time| TableCell::Text(time.to_string())))
}

/// The reading of this name, the first one of the table if there is no name.
fn reading_of_name(table: &CountedTable<'_>, name: Option<&str>) -> Result<KeyReading, ApiError> {
    let readings = table.readings();
    let found = match name {
        Some(name) => readings.iter().find(|reading| reading.name() == name),
        None => readings.first(),
    };
    found.copied().ok_or_else(|| {
        let names: Vec<_> = readings.iter().map(|reading| reading.name()).collect();
        ApiError::bad_request(format!(
            "by={}: the table has {}",
            name.unwrap_or_default(),
            names.join(", ")
        ))
    })
}

fn cells_of_row(table: &CountedTable<'_>, row: &KeyRow<'_>) -> Vec<TableCell> {
    let mut cells = vec![TableCell::Text(row.key.to_owned())];
    let parts = table.parts_of(row.key);
    cells.extend(parts.iter().map(|part| TableCell::Text(part.to_string())));
    for estimate in &row.estimates {
        cells.extend(cells_of_estimate(estimate));
    }
    if let (Some(found), Some(summary)) = (row.found, table.found_summary()) {
        cells.extend([
            TableCell::Truth(found.is_new),
            TableCell::Text(found.until.to_string()),
            TableCell::Number(summary.threshold),
        ]);
    }
    cells
}

/// The value and the ends of its interval; nothing of a mean whose records may all be noise.
fn cells_of_estimate(estimate: &Estimate) -> [TableCell; 3] {
    match estimate.interval {
        Some(ConfidenceInterval { lower, upper }) => {
            [estimate.value, lower, upper].map(TableCell::finite_number)
        }
        None => [const { TableCell::Unknown }; 3],
    }
}
