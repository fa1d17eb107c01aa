//! What of a configuration bears on privacy, in one canonical text.

use serde_json::{Value, json};

use crate::clock::micros;
use crate::config::{Input, Settings, Unit};
use crate::source::kafka::OnBadMessage;
use crate::target::Adjacency;
use crate::window::Outside;

/// Canonical JSON: keys sorted, no spaces, spans in microseconds, prices in decimal.
///
/// `ledger` holds what a ledger is bound to for ever (a change needs a new one), `release` what may change from a
/// future window on. Messages that the operator gave up (`skip`, `lost`) are events of the input, not rules: absent.
pub fn json(settings: &Settings) -> String {
    let Settings { pipeline, input, columns, windows, blocks, privacy, release, bandwidths, .. } = settings;
    let unit = match &privacy.unit {
        Unit::Record => json!("record"),
        Unit::User { column, per, max_records_per_window } => {
            json!({ "column": column, "per": micros(*per), "max_records_per_window": max_records_per_window })
        }
    };
    let adjacency = match privacy.adjacency {
        Adjacency::AddRemove => json!("add_remove"),
        Adjacency::ReplaceOne => json!({ "records_per_window": privacy.records_per_window }),
    };
    let input = match input {
        Input::Kafka(kafka) => json!({
            "kind": "kafka",
            "topic": kafka.topic,
            "clock_slack": micros(kafka.clock_slack),
            "trust_producer_time": kafka.trust_producer_time,
            "skips_bad_messages": kafka.on_bad_message == OnBadMessage::Skip,
        }),
        Input::Files(_) => json!({ "kind": "files" }),
    };
    let axes: Vec<Value> = columns
        .values
        .iter()
        .zip(&windows.axes)
        .zip(bandwidths)
        .map(|((column, axis), bandwidth)| {
            let outside = match axis.outside {
                Outside::Clamp => "clamp",
                Outside::Drop => "drop",
            };
            json!({
                "column": column, "min": axis.min, "max": axis.max, "bandwidth": bandwidth, "outside": outside,
            })
        })
        .collect();
    // Sorted: `serde_json` keeps an object's keys in order.
    json!({
        "ledger": {
            "pipeline": pipeline,
            "input": input,
            "time": columns.time,
            "unit": unit,
            "adjacency": adjacency,
            "total": privacy.total,
            "blocks": { "origin": blocks.origin(), "length": micros(blocks.length()) },
        },
        "release": {
            "name": release.name,
            "price": release.price,
            "degree": settings.density.degree(),
            "order": release.order,
            "density": axes,
            "key": columns.key,
            "keys": windows.keys,
            "windows": {
                "origin": windows.grid.origin(),
                "length": micros(windows.grid.length()),
                "end": windows.end,
                "grace": micros(windows.grace),
                "ahead": micros(windows.ahead),
                "publish_delay": micros(release.publish_delay),
            },
        },
    })
    .to_string()
}
