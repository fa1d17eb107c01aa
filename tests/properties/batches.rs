//! Records written by hand, as the source would hand them out.

use std::time::Duration;

use arrow_array::{BinaryArray, Float64Array, Int64Array};
use bernstream_release::source::Batch;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_release::window::{Cap, DomainAxis, OutsideRule, ReleaseInput, WindowRules};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::SpanGrid;

/// One record, with every way in which it can be odd.
#[derive(Clone, Debug)]
pub struct Record {
    /// Seconds; `None` is null.
    pub time: Option<i64>,
    pub key: Option<&'static [u8]>,
    pub user: Option<&'static str>,
    pub value: Option<f64>,
    /// The broker's timestamp, seconds.
    pub message: i64,
    pub partition: i32,
    pub offset: i64,
}

/// A record that is fine: key `a`, written one second after it happened.
pub fn record(time: i64, value: f64) -> Record {
    Record {
        time: Some(time),
        key: Some(b"a"),
        user: Some("u"),
        value: Some(value),
        message: time + 1,
        partition: 0,
        offset: 0,
    }
}

pub fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds.saturating_mul(1_000_000))
}

/// A message of one row.
pub fn batch(record: &Record) -> Batch {
    Batch {
        partition: record.partition,
        offset: record.offset,
        message_time: Some(seconds(record.message)),
        times: Int64Array::from(vec![record.time.map(|time| time.saturating_mul(1_000_000))]),
        keys: Some(BinaryArray::from(vec![record.key]).into()),
        units: Some(BinaryArray::from(vec![record.user.map(str::as_bytes)]).into()),
        values: vec![Float64Array::from(vec![record.value])],
        found: None,
    }
}

/// Windows of ten seconds from zero to a hundred, two seconds of grace, one second ahead, keys `a` and `b`.
pub fn rules() -> WindowRules {
    WindowRules {
        grid: SpanGrid::new(seconds(0), Duration::from_secs(10)).expect("a length"),
        end: Some(seconds(100)),
        allowed_lateness: Duration::from_secs(2),
        max_future_skew: Duration::from_secs(1),
        keys: Some(vec!["a".into(), "b".into()]),
        other: Vec::new(),
        longest_key: None,
        cap: None,
    }
}

/// One axis from 0 to 10.
pub fn form(spec: AccumulatorSpec) -> ReleaseInput {
    let axes = vec![DomainAxis {
        min: 0.0,
        max: 10.0,
        outside: OutsideRule::Clamp,
    }];
    ReleaseInput {
        axes,
        label: None,
        columns: vec![0],
        accumulator: spec,
        panes: 1,
    }
}

/// The same for users, `records` of each a window and period.
pub fn rules_for_users(records: u32, period: u64) -> WindowRules {
    let period = SpanGrid::new(seconds(0), Duration::from_secs(period)).expect("a length");
    WindowRules {
        cap: Some(Cap {
            period: period.into(),
            records,
        }),
        ..rules()
    }
}
