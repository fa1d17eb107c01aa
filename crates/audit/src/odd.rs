//! What can be odd about a row: everything that the promise says a record may be.

use std::sync::Arc;
use std::time::Duration;

use super::messages::Row;
use super::stage::{BackgroundStream, TICK};
use bernstream_release::window::LONGEST_UNIT;
use bernstream_synopsis::clock::Timestamp;

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

/// The row with each odd key, the longest first.
pub(super) fn keys(row: &Row) -> Vec<(String, Row)> {
    let mut all: Vec<(&str, Option<Arc<[u8]>>)> = vec![
        ("key of 64 KiB", Some([b'k'; LONG].into())),
        ("null key", None),
        ("empty key", Some([].into())),
        ("unknown key", Some(b"another key".as_slice().into())),
        ("key that is not text", Some(NOT_TEXT.into())),
    ];
    if let Some(key) = &row.key {
        all.push((
            "key with a byte more",
            Some([key, b"\0".as_slice()].concat().into()),
        ));
        all.push((
            "key with a byte less",
            Some(key.get(1..).unwrap_or_default().into()),
        ));
    }
    all.into_iter()
        .map(|(name, key)| (name.to_owned(), Row { key, ..row.clone() }))
        .collect()
}

/// The row with each odd unit, the longest first.
pub(super) fn units(row: &Row) -> Vec<(String, Row)> {
    let all: [(&str, Option<Arc<[u8]>>); 6] = [
        ("unit of 64 KiB", Some([b'u'; LONG].into())),
        ("null unit", None),
        ("empty unit", Some([].into())),
        ("unit that is not text", Some(NOT_TEXT.into())),
        (
            "unit as long as it may be",
            Some([b'u'; LONGEST_UNIT].into()),
        ),
        (
            "unit a byte too long",
            Some([b'u'; LONGEST_UNIT + 1].into()),
        ),
    ];
    all.into_iter()
        .map(|(name, unit)| {
            (
                name.to_owned(),
                Row {
                    unit,
                    ..row.clone()
                },
            )
        })
        .collect()
}

/// The row at each odd event time; `stamp` is the message timestamp that it gets.
pub(super) fn times(
    row: &Row,
    stage: &BackgroundStream<'_>,
    stamp: Timestamp,
) -> Vec<(&'static str, Row)> {
    let window = stage.full();
    let skew = stage.subject.plan.rules.max_future_skew;
    let year = Duration::from_secs(31_556_952);
    let all = [
        ("far in the future", Some(window.start.plus(year * 100))),
        ("no event time", None),
        ("the start of its window", Some(window.start)),
        ("the end of its window", Some(window.end)),
        (
            "just before the end of its window",
            Some(window.end.minus(TICK)),
        ),
        ("before the first window", Some(window.start.minus(TICK))),
        ("far in the past", Some(window.start.minus(year * 100))),
        (
            "the first time there is",
            Some(Timestamp::from_micros(i64::MIN)),
        ),
        (
            "the last time there is",
            Some(Timestamp::from_micros(i64::MAX)),
        ),
        ("as far ahead as allowed", Some(stamp.plus(skew))),
        ("a bit further ahead", Some(stamp.plus(skew).plus(TICK))),
        (
            "in the last window",
            Some(BackgroundStream::time(stage.empty(), 0.5)),
        ),
        (
            "after the last window",
            Some(stage.subject.end().plus(TICK)),
        ),
    ];
    all.into_iter()
        .map(|(name, time)| {
            (
                name,
                Row {
                    time,
                    ..row.clone()
                },
            )
        })
        .collect()
}
