//! Odd rows: everything that the promise says a record may be.

use std::sync::Arc;
use std::time::Duration;

use super::messages::{InputRow, NamedRow};
use super::stage::{BackgroundStream, TICK};
use bernstream_release::window::LONGEST_UNIT;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

/// The length of a text that is far too long.
const LONG: usize = 1 << 16;
/// Bytes that are not UTF-8.
const NOT_TEXT: [u8; 3] = [0xff, 0xfe, 0x80];

/// The row with each odd value in each column; `ends` are the ends of the domains.
pub(super) fn rows_with_odd_values(row: &InputRow, ends: &[[f64; 2]]) -> Vec<NamedRow> {
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
                all.push(NamedRow::new(format!("value {column} {name}"), odd));
            }
        }
    }
    all
}

/// The row with each odd key, the longest first.
pub(super) fn rows_with_odd_keys(row: &InputRow) -> Vec<NamedRow> {
    let mut all = vec![
        with_key(row, "key of 64 KiB", Some(&[b'k'; LONG])),
        with_key(row, "null key", None),
        with_key(row, "empty key", Some(&[])),
        with_key(row, "unknown key", Some(b"another key")),
        with_key(row, "key that is not text", Some(&NOT_TEXT)),
    ];
    if let Some(key) = &row.key {
        let longer = [key, b"\0".as_slice()].concat();
        all.push(with_key(row, "key with a byte more", Some(&longer)));
        let shorter = key.get(1..).unwrap_or_default();
        all.push(with_key(row, "key with a byte less", Some(shorter)));
    }
    all
}

fn with_key(row: &InputRow, name: &str, key: Option<&[u8]>) -> NamedRow {
    let key = key.map(Arc::from);
    NamedRow::new(name, InputRow { key, ..row.clone() })
}

/// The row with each odd unit, the longest first.
pub(super) fn rows_with_odd_units(row: &InputRow) -> Vec<NamedRow> {
    let longest = [b'u'; LONGEST_UNIT];
    let too_long = [b'u'; LONGEST_UNIT + 1];
    vec![
        with_unit(row, "unit of 64 KiB", Some(&[b'u'; LONG])),
        with_unit(row, "null unit", None),
        with_unit(row, "empty unit", Some(&[])),
        with_unit(row, "unit that is not text", Some(&NOT_TEXT)),
        with_unit(row, "unit as long as it may be", Some(&longest)),
        with_unit(row, "unit a byte too long", Some(&too_long)),
    ]
}

fn with_unit(row: &InputRow, name: &str, unit: Option<&[u8]>) -> NamedRow {
    let unit = unit.map(Arc::from);
    NamedRow::new(
        name,
        InputRow {
            unit,
            ..row.clone()
        },
    )
}

/// The row at each odd event time; `stamp` is the message timestamp that it gets.
pub(super) fn rows_at_odd_times(
    row: &InputRow,
    stage: &BackgroundStream<'_>,
    stamp: Timestamp,
) -> Vec<NamedRow> {
    let Span { start, end } = stage.full_window();
    let century = Duration::from_secs(31_556_952) * 100;
    let first_time = Timestamp::from_micros(i64::MIN);
    let last_time = Timestamp::from_micros(i64::MAX);
    let furthest = stamp.plus(stage.subject.plan.rules.max_future_skew);
    let last_window = BackgroundStream::time_in_window(stage.empty_window(), 0.5);
    let after_all = stage.subject.end_of_replay().plus(TICK);
    let untimed = InputRow {
        time: None,
        ..row.clone()
    };
    vec![
        at_time(row, "far in the future", start.plus(century)),
        NamedRow::new("no event time", untimed),
        at_time(row, "the start of its window", start),
        at_time(row, "the end of its window", end),
        at_time(row, "just before the end of its window", end.minus(TICK)),
        at_time(row, "before the first window", start.minus(TICK)),
        at_time(row, "far in the past", start.minus(century)),
        at_time(row, "the first time there is", first_time),
        at_time(row, "the last time there is", last_time),
        at_time(row, "as far ahead as allowed", furthest),
        at_time(row, "a bit further ahead", furthest.plus(TICK)),
        at_time(row, "in the last window", last_window),
        at_time(row, "after the last window", after_all),
    ]
}

fn at_time(row: &InputRow, name: &str, time: Timestamp) -> NamedRow {
    let time = Some(time);
    NamedRow::new(
        name,
        InputRow {
            time,
            ..row.clone()
        },
    )
}
