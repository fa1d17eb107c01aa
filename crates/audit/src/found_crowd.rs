//! The records of others, where nobody listed the keys: some keys that many units hold, some that about as many hold as the threshold
//! has, some that few hold, and some with odd names.

use super::found_names::{FoundKeyRelease, key_bytes};
use super::messages::InputRow;
use super::subject::AuditSubject;

/// Most units of a key: above a threshold of half as many it is not certain that any key is found.
const MOST_UNITS: u64 = 500;
/// Units with more keys than count.
const WITH_MANY_KEYS: usize = 2;

/// The beginning of the names of units that are there for their keys.
pub(super) const CROWD: &str = "crowd";

/// Rows of others with the keys of a release, without a time; empty where the keys are listed.
pub(super) fn rows_of_crowd(subject: &AuditSubject<'_>) -> Vec<InputRow> {
    let Some(found) = FoundKeyRelease::of_subject(subject) else {
        return Vec::new();
    };
    let threshold = found.threshold_units();
    let mut rows = Vec::new();
    // Above twice the threshold a key is found whatever its noise is.
    let many = (2 * threshold + 1).min(MOST_UNITS);
    let popular = found.popular_keys(subject);
    for (place, key) in popular.iter().enumerate() {
        // A unit has as many of them as count.
        let first = (place / found.most_keys()) as u64 * many;
        hold_key(&mut rows, key, first..first + many);
    }
    let mut unit = popular.len() as u64 * many;
    for (place, key) in found.near_keys(subject).iter().enumerate() {
        let holders = (threshold + place as u64)
            .saturating_sub(1)
            .clamp(1, MOST_UNITS);
        hold_key(&mut rows, key, unit..unit + holders);
        unit += holders;
    }
    let few = found.rare_keys(subject);
    let odd = found.odd_keys(subject);
    for (place, key) in few.iter().chain(&odd).enumerate() {
        let holders = 1 + place as u64 % 3;
        hold_key(&mut rows, key, unit..unit + holders);
        unit += holders;
    }
    for number in 0..WITH_MANY_KEYS {
        for key in popular.iter().chain(&few) {
            rows.push(row_of(key, format!("many {number}")));
        }
    }
    rows
}

fn hold_key(rows: &mut Vec<InputRow>, key: &str, units: std::ops::Range<u64>) {
    for unit in units {
        rows.push(row_of(key, format!("{CROWD} {unit}")));
    }
}

fn row_of(key: &str, unit: String) -> InputRow {
    InputRow {
        time: None,
        key: key_bytes(key),
        unit: Some(unit.into_bytes().into()),
        values: Vec::new(),
    }
}
