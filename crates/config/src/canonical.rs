//! Everything in a configuration that affects privacy, as one canonical text.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::schemas;
use crate::settings::{
    Calibration, CellGrid, Choice, Coordinates, DRAWN, Input, NoiseKind, Payment, Period, Release,
    Settings, Unit, WindowKind,
};
use bernstream_kafka::source::kafka::OnBadMessage;
use bernstream_kafka::source::record::{Declared, Format, RecordForm};
use bernstream_ledger::Digest;
use bernstream_noise::accountant::policy::Policy;
use bernstream_release::source::Columns;
use bernstream_release::window::{Axis, Label, Outside, Rules};
use bernstream_synopsis::calibrate::Rho;
use bernstream_synopsis::clock::micros;
use bernstream_synopsis::description::{Definition, Implied};
use bernstream_synopsis::grid::Blocks;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::whitened::Counts;
use bernstream_synopsis::{Adjacency, Basis};

/// Canonical JSON: keys sorted, no spaces, durations in microseconds, prices in decimal.
///
/// `ledger` holds what a ledger is bound to forever (a change needs a new ledger, but for a slack that grows); the rest may change
/// from a future window on.
/// Messages that the operator gave up (`skip`, `lost`) are absent: they are events of the input, not rules. So is `producer_delay`, a
/// statement about producers: synopses say it, and no rule of the worker depends on it.
pub fn json(settings: &Settings) -> String {
    let Settings {
        pipeline,
        input,
        columns,
        windows,
        blocks,
        privacy,
        releases,
        ..
    } = settings;
    let unit = match &privacy.unit {
        Unit::Record => json!("record"),
        Unit::User {
            column,
            per,
            max_records_per_window,
        } => {
            let per = match per {
                Period::Every(length) => json!(micros(*length)),
                Period::Ever => json!("ever"),
            };
            json!({ "column": column, "per": per, "max_records_per_window": max_records_per_window })
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
    let blocks = match blocks {
        Blocks::Every(grid) => json!({ "origin": grid.origin(), "length": micros(grid.length()) }),
        Blocks::Forever => json!("ever"),
    };
    let releases: Map<String, Value> = releases
        .iter()
        .map(|one| (one.name.clone(), release(settings, one)))
        .collect();
    // Sorted: `serde_json` keeps an object's keys in order.
    let mut normalised = json!({
        "ledger": {
            "pipeline": pipeline,
            "input": input,
            "time": columns.time,
            "unit": unit,
            "adjacency": adjacency,
            "total": privacy.total,
            "blocks": blocks,
        },
        "keys": { "column": columns.key, "values": windows.keys },
        "windows": membership(windows),
        "releases": releases,
    });
    normalised["windows"]["publish_delay"] = json!(micros(settings.publish_delay));
    declared(settings, &mut normalised);
    if let Definition::Gaussian = &privacy.definition {
        normalised["ledger"]["definition"] = json!(privacy.definition);
        normalised["ledger"]["drawn"] = json!([DRAWN.values, DRAWN.sigma.units()]);
    }
    if let Definition::Planned = &privacy.definition {
        normalised["ledger"]["plan"] = json!(plan(settings));
    }
    if let Some(implies) = &privacy.implies {
        normalised["ledger"]["implies"] = json!(implies);
    }
    if let Some(budget) = &privacy.budget {
        normalised["ledger"]["budget"] = json!({ "share": budget.share, "total": budget.whole });
    }
    if privacy.limit() != privacy.total {
        normalised["limit"] = json!(privacy.limit());
    }
    if let definition @ Definition::Random(_) = &privacy.definition {
        normalised["ledger"]["definition"] = json!(definition);
    }
    normalised.to_string()
}

/// What decides to which window a record belongs.
pub fn membership(rules: &Rules) -> Value {
    json!({
        "origin": rules.grid.origin(),
        "length": micros(rules.grid.length()),
        "end": rules.end,
        "grace": micros(rules.allowed_lateness),
        "ahead": micros(rules.max_future_skew),
    })
}

/// Adds the form of records, and the types that are declared of their fields; for Arrow, those that are declared of its columns.
pub fn declared(settings: &Settings, normalised: &mut Value) {
    let (form, declared) = match &settings.input {
        Input::Kafka(kafka) => match &kafka.format {
            Format::Arrow => {
                // What was not declared is not there, as in the digests of files that were written before it could be.
                if let Some(format) = settings.columns.time_format {
                    normalised["ledger"]["input"]["time_format"] = json!(format);
                }
                types(&settings.columns, normalised);
                return;
            }
            Format::Records { form, declared } => (Some(form), declared),
        },
        Input::Files(files) if files.declared == Declared::default() => return,
        Input::Files(files) => (None, &files.declared),
    };
    if let Some(form) = form {
        normalised["ledger"]["input"]["format"] = json!(form.name());
    }
    normalised["ledger"]["input"]["time_format"] = json!(declared.time);
    // A topic gets new schemas in the course of time: they may change from a future window on, but for what a ledger is bound to.
    match form {
        None | Some(RecordForm::Json) => {}
        Some(RecordForm::Avro(schemas)) => normalised["schemas"] = schemas::pinned(schemas),
        Some(RecordForm::Protobuf(kind)) => {
            normalised["schemas"] =
                json!({ "message": kind.name(), "descriptor": schemas::digest(&kind.file) });
            normalised["ledger"]["fields"] = schemas::fields(&settings.columns, kind);
        }
    }
    types(&settings.columns, normalised);
}

/// Adds the types that are declared of the key and the user.
fn types(columns: &Columns, normalised: &mut Value) {
    if let Some(unit) = columns.unit_type {
        normalised["ledger"]["unit"]["type"] = json!(unit);
    }
    if let Some(key) = columns.key_type {
        normalised["keys"]["type"] = json!(key);
    }
}

/// What [`choice`] reads of one release.
pub fn chosen(settings: &Settings, one: &Release) -> Value {
    let Value::Object(mut about) = release(settings, one) else {
        return Value::Null;
    };
    about.retain(|key, _| ["noise", "degree", "order", "points", "cells"].contains(&key.as_str()));
    about.into()
}

/// What a ledger keeps of the settings: the canonical text, and what was left to `"auto"`, which is no setting of its own
/// and in no digest. Absent in the ledgers of earlier versions.
pub fn recorded(settings: &Settings) -> String {
    let one = |release: &Release| {
        let auto = release.auto.as_ref()?;
        Some((
            release.name.clone(),
            json!({ "open": auto.open, "expected_records": release.expected_records }),
        ))
    };
    let asked: Map<String, Value> = settings.releases.iter().filter_map(one).collect();
    let mut recorded: Value = serde_json::from_str(&settings.normalised).unwrap_or_default();
    recorded["auto"] = asked.into();
    recorded.to_string()
}

/// How far the event time of a record may exceed its message timestamp, in recorded settings.
pub fn ahead(recorded: &str) -> Option<Duration> {
    let settings: Value = serde_json::from_str(recorded).ok()?;
    settings
        .pointer("/windows/ahead")?
        .as_u64()
        .map(Duration::from_micros)
}

/// The noise and the size of a release in recorded settings; `None` if this program does not know them.
pub fn choice(recorded: &str, release: &str) -> Option<Choice> {
    let settings: Value = serde_json::from_str(recorded).ok()?;
    let release = settings.get("releases")?.get(release)?;
    let number = |key| {
        release
            .get(key)
            .and_then(Value::as_u64)
            .and_then(|number| u32::try_from(number).ok())
    };
    let noise: NoiseKind = serde_json::from_value(release.get("noise")?.clone()).ok()?;
    let on = if noise.is_on_cells() {
        let cells = release.get("cells")?;
        let steps: Vec<u32> = serde_json::from_value(cells.get("steps")?.clone()).ok()?;
        Coordinates::Cells(CellGrid::new(
            serde_json::from_value(cells.get("spline")?.clone()).ok()?,
            &steps,
        ))
    } else {
        match release.get("points") {
            None => Coordinates::Lattice {
                degree: number("degree")?,
            },
            Some(Value::Array(along)) => {
                let along: Option<Vec<u32>> = along
                    .iter()
                    .map(|count| u32::try_from(count.as_u64()?).ok())
                    .collect();
                Coordinates::Tensor(Counts::new(&along?)?)
            }
            Some(_) => Coordinates::Points {
                most: number("points")?,
            },
        }
    };
    Some(Choice {
        noise,
        on,
        order: number("order")?,
    })
}

/// The promise and the total of recorded settings under `composition = "gaussian"`; `None` under any other.
pub fn gaussian_total(recorded: &str) -> Option<(Implied, Rho)> {
    if definition(recorded)? != Definition::Gaussian {
        return None;
    }
    let settings: Value = serde_json::from_str(recorded).ok()?;
    let ledger = settings.get("ledger")?;
    let promise = serde_json::from_value(ledger.get("implies")?.clone()).ok()?;
    match serde_json::from_value(ledger.get("total")?.clone()).ok()? {
        Price::Concentrated(total) => Some((promise, total)),
        Price::Pure(_) | Price::Approximate { .. } | Price::Slots(_) => None,
    }
}

/// Identifies a release with its windows: if it changes, a sum starts again.
pub fn identity(settings: &Settings, release: &Release) -> String {
    let windows = &settings.windows.grid;
    let mut about = self::release(settings, release);
    if let Payment::Converted { epsilon, .. } = release.payment {
        // The epsilon makes the noise. What it is charged has become less, which is no reason to start again.
        about["price"] = json!(Payment::converted(epsilon).price());
    }
    let about = json!([
        about,
        windows.origin(),
        micros(windows.length()),
        settings.columns.time,
        settings.columns.key
    ]);
    Digest::of(about.to_string().as_bytes()).to_string()
}

/// One release with its price.
fn release(settings: &Settings, release: &Release) -> Value {
    let (domain, label) = domain(&release.columns, &release.axes, release.label.as_ref());
    let mut normalised = json!({
        "price": release.payment.price(),
        "degree": release.shape().degree,
        "order": release.order,
        "domain": domain,
        "label": label,
        "function": release.function.about,
        "noise": release.noise,
    });
    // Keys that were added later are absent by default, so that older digests stay the same.
    match release.policy {
        Policy::Fixed(_) => {}
        Policy::Horizon { share, windows } => {
            normalised["price"] = json!({ "share": share, "horizon": windows })
        }
        Policy::Decaying { share, half_after } => {
            normalised["price"] = json!({ "share": share, "half_after": half_after });
        }
    }
    if release.window_kind != WindowKind::Tumbling {
        normalised["windows"] = json!(release.window_kind);
    }
    match release.on {
        Coordinates::Lattice { .. } | Coordinates::Cells(_) => {}
        Coordinates::Points { .. } => normalised["points"] = json!(release.shape().values()),
        Coordinates::Tensor(counts) => normalised["points"] = json!(counts.along()),
    }
    if let Basis::Cells(cells) = release.shape().basis {
        normalised["cells"] = json!({ "spline": cells.spline, "steps": cells.steps });
    }
    if let Basis::Tables(tables) = release.shape().basis {
        normalised["cells"] = json!({ "spline": tables.spline, "steps": tables.steps, "bandwidths": tables.bandwidths });
    }
    if release.calibration == Calibration::Paper {
        normalised["scale"] = json!("paper");
    }
    if let Payment::Converted { epsilon, .. } = release.payment {
        normalised["epsilon"] = json!(epsilon);
    }
    if let Definition::Random(_) = &settings.privacy.definition {
        let sampled = settings.sensitivity(release, &release.function, Calibration::Tight);
        normalised["sensitivity"] = json!(sampled.map(|s| s.0).ok());
    }
    if let Some(choice) = &release.private_bandwidths {
        let candidates: Vec<_> = choice
            .candidates
            .iter()
            .map(|function| &function.about)
            .collect();
        normalised["private_bandwidths"] =
            json!({ "price": choice.price, "candidates": candidates });
    }
    if let Some(choice) = &release.private_order {
        let candidates: Vec<_> = choice.candidates.iter().collect();
        normalised["private_order"] = json!({ "price": choice.price, "candidates": candidates });
    }
    normalised
}

/// The declared plan that a ledger is bound to.
fn plan(settings: &Settings) -> Vec<Value> {
    let one = |release: &Release| {
        json!({
            "noise": release.payment.own(),
            "law": release.noise.law(),
            "values": release.shape().values(),
            "scale": settings.mechanism_of(release, &release.function).map(|noise| noise.scale().units()).ok(),
            "choices": [
                release.private_bandwidths.as_ref().map(|choice| choice.price),
                release.private_order.as_ref().map(|choice| choice.price),
            ],
        })
    };
    settings.releases.iter().map(one).collect()
}

/// The definition of privacy of a ledger with these settings; `None` if this program does not know it.
pub fn definition(settings: &str) -> Option<Definition> {
    let settings: Value = serde_json::from_str(settings).ok()?;
    let ledger = settings.get("ledger")?;
    match ledger.get("definition") {
        Some(definition) => serde_json::from_value(definition.clone()).ok(),
        None => serde_json::from_value::<Price>(ledger.get("total")?.clone())
            .ok()
            .map(Definition::of),
    }
}

/// The bounds of the axes, and of the label if there is one; its column is the last.
pub fn domain(
    columns: &[String],
    axes: &[Axis],
    label: Option<&Label>,
) -> (Vec<Value>, Option<Value>) {
    let domain = columns
        .iter()
        .zip(axes)
        .map(|(column, axis)| bounds(column, axis))
        .collect();
    let label = label
        .zip(columns.last())
        .map(|(label, column)| match label {
            Label::Number(axis) => bounds(column, axis),
            Label::Above(above) => json!({ "column": column, "above": above }),
            Label::Classes(values) => json!({ "column": column, "values": values }),
        });
    (domain, label)
}

fn bounds(column: &str, axis: &Axis) -> Value {
    let outside = match axis.outside {
        Outside::Clamp => "clamp",
        Outside::Drop => "drop",
    };
    json!({ "column": column, "min": axis.min, "max": axis.max, "outside": outside })
}
