//! The rows of a ledger as anyone may see them.

use serde_json::Value;

use super::error::ReplayError;
use bernstream_ledger::{Ledger, LedgerParams};

/// Each row as `bernstream ledger export` prints it: windows, charges, schedule, keys, slots, and what was withheld.
///
/// # Errors
///
/// If the ledger cannot be read, or is damaged.
pub(super) fn public_rows(params: &LedgerParams) -> Result<Vec<String>, ReplayError> {
    let mut rows = Vec::new();
    Ledger::inspect(params)?.each_row(|row| {
        rows.push(without_random_texts(serde_json::from_str(&row.public_line()?)?).to_string());
        Ok::<(), ReplayError>(())
    })?;
    Ok(rows)
}

/// Without the digests that are salted, or of noisy values. Each has the same length.
fn without_random_texts(value: Value) -> Value {
    const OF_RANDOM_TEXTS: [&str; 4] = ["digest", "commitment", "salt", "bytes"];
    match value {
        Value::Array(all) => all.into_iter().map(without_random_texts).collect(),
        Value::Object(mut all) => {
            all.retain(|name, _| !OF_RANDOM_TEXTS.contains(&name.as_str()));
            for value in all.values_mut() {
                *value = without_random_texts(value.take());
            }
            Value::Object(all)
        }
        other => other,
    }
}
