//! What can be odd about a row: everything that the promise says a record may be.

use super::messages::Row;
use crate::window::LONGEST_UNIT;

/// The length of a text that is far too long.
const LONG: usize = 1 << 16;
/// Bytes that are not UTF-8.
const NOT_TEXT: [u8; 3] = [0xff, 0xfe, 0x80];

/// The row with each odd value in each column; `ends` are the ends of the domains.
pub(super) fn values(row: &Row, ends: &[[f64; 2]]) -> Vec<(String, Row)> {
    let mut all = Vec::new();
    for (column, [min, max]) in ends.iter().enumerate() {
        let kinds = [
            ("null", None),
            ("not a number", Some(f64::NAN)),
            ("infinite", Some(f64::INFINITY)),
            ("minus infinite", Some(f64::NEG_INFINITY)),
            ("just above its domain", Some(max.next_up())),
            ("just below its domain", Some(min.next_down())),
            ("far outside", Some(1e300)),
            ("far outside below", Some(-1e300)),
            ("minus zero", Some(-0.0)),
            ("the least there is", Some(f64::from_bits(1))),
        ];
        for (name, value) in kinds {
            let mut odd = row.clone();
            if let Some(place) = odd.values.get_mut(column) {
                *place = value;
                all.push((format!("value {column} {name}"), odd));
            }
        }
    }
    all
}

/// The row with each odd key.
pub(super) fn keys(row: &Row) -> Vec<(String, Row)> {
    let mut all: Vec<(&str, Option<Vec<u8>>)> = vec![
        ("null key", None),
        ("empty key", Some(Vec::new())),
        ("unknown key", Some(b"another key".to_vec())),
        ("key that is not text", Some(NOT_TEXT.to_vec())),
        ("key of 64 KiB", Some(vec![b'k'; LONG])),
    ];
    if let Some(key) = &row.key {
        all.push(("key with a byte more", Some([key.as_slice(), b"\0"].concat())));
        all.push(("key with a byte less", Some(key.get(1..).unwrap_or_default().to_vec())));
    }
    all.into_iter().map(|(name, key)| (name.to_owned(), Row { key, ..row.clone() })).collect()
}

/// The row with each odd unit.
pub(super) fn units(row: &Row) -> Vec<(String, Row)> {
    let all: [(&str, Option<Vec<u8>>); 6] = [
        ("null unit", None),
        ("empty unit", Some(Vec::new())),
        ("unit that is not text", Some(NOT_TEXT.to_vec())),
        ("unit as long as it may be", Some(vec![b'u'; LONGEST_UNIT])),
        ("unit a byte too long", Some(vec![b'u'; LONGEST_UNIT + 1])),
        ("unit of 64 KiB", Some(vec![b'u'; LONG])),
    ];
    all.into_iter().map(|(name, unit)| (name.to_owned(), Row { unit, ..row.clone() })).collect()
}
