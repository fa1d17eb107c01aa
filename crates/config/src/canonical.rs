//! Everything in a configuration that affects privacy, as one canonical text.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::schemas;
use crate::settings::{
    AutoChoice, Calibration, CellGrid, Coordinates, DRAWN, InputParams, NoiseKind, Payment, Period,
    PrivacySettings, PrivacyUnit, ReleaseSettings, WindowKind, WorkerSettings,
};
use bernstream_kafka::source::kafka::BadMessageRule;
use bernstream_kafka::source::record::{DeclaredTypes, RecordForm, TopicFormat};
use bernstream_ledger::Digest;
use bernstream_noise::accountant::policy::PricePolicy;
use bernstream_release::source::Columns;
use bernstream_release::window::{DomainAxis, OutsideRule, RecordLabel, WindowRules};
use bernstream_synopsis::calibrate::Rho;
use bernstream_synopsis::clock::saturating_micros;
use bernstream_synopsis::description::{ImpliedPrivacy, PrivacyDefinition};
use bernstream_synopsis::grid::Blocks;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::whitened::AxisCounts;
use bernstream_synopsis::{Adjacency, Basis};

/// Canonical JSON: keys sorted, no spaces, durations in microseconds, prices in decimal.
///
/// `ledger` holds what a ledger is bound to forever (a change needs a new ledger, but for a slack that grows); the rest may change
/// from a future window on.
/// Messages that the operator gave up (`skip`, `lost`) are absent: they are events of the input, not rules. So is `producer_delay`, a
/// statement about producers: synopses say it, and no rule of the worker depends on it.
pub(crate) fn canonical_json(settings: &WorkerSettings) -> String {
    let privacy = &settings.privacy;
    let mut releases = Map::new();
    for one in &settings.releases {
        releases.insert(one.name.clone(), release_text(settings, one));
    }
    // Sorted: `serde_json` keeps an object's keys in order.
    let mut normalised = json!({
        "ledger": {
            "pipeline": settings.pipeline,
            "input": ledger_input(&settings.input),
            "time": settings.columns.time,
            "unit": unit_text(&privacy.unit),
            "adjacency": adjacency_text(privacy),
            "total": privacy.total,
            "blocks": blocks_text(settings.blocks),
        },
        "keys": keys_text(settings),
        "windows": membership_rules(&settings.windows),
        "releases": releases,
    });
    normalised["windows"]["publish_delay"] = json!(saturating_micros(settings.publish_delay));
    add_declared_types(settings, &mut normalised);
    match &privacy.definition {
        PrivacyDefinition::Gaussian => {
            normalised["ledger"]["definition"] = json!(privacy.definition);
            normalised["ledger"]["drawn"] = json!([DRAWN.values, DRAWN.sigma.units()]);
        }
        PrivacyDefinition::Planned => normalised["ledger"]["plan"] = declared_plan(settings),
        PrivacyDefinition::Random(_) => {
            normalised["ledger"]["definition"] = json!(privacy.definition)
        }
        _ => {}
    }
    if let Some(implies) = &privacy.implies {
        normalised["ledger"]["implies"] = json!(implies);
    }
    if let Some(budget) = &privacy.budget {
        normalised["ledger"]["budget"] = json!({ "share": budget.share, "total": budget.whole });
    }
    if privacy.spendable_limit() != privacy.total {
        normalised["limit"] = json!(privacy.spendable_limit());
    }
    normalised.to_string()
}

/// The columns of the key and its values; of several columns a value is the text of [`key_parts`](bernstream_synopsis::key_parts).
/// With `other` the names of what is not listed, of each column.
pub(crate) fn keys_text(settings: &WorkerSettings) -> Value {
    let values = &settings.windows.keys;
    let mut text = match settings.columns.key.as_slice() {
        several @ [_, _, ..] => json!({ "columns": several, "values": values }),
        one_or_none => json!({ "column": one_or_none.first(), "values": values }),
    };
    // Absent without a name, as earlier programs recorded it.
    match settings.windows.other.as_slice() {
        [] => {}
        [only] => text["other"] = json!(only),
        several => text["other"] = json!(several),
    }
    if let Some(found) = &settings.found_keys {
        text["found"] = json!({
            "keep": saturating_micros(found.keep),
            "most": found.most,
            "longest": found.longest,
            "candidates": found.candidates,
        });
    }
    text
}

/// The input that a ledger is bound to; [`add_declared_types`] adds the form of its records.
fn ledger_input(input: &InputParams) -> Value {
    match input {
        InputParams::Kafka(kafka) => json!({
            "kind": "kafka",
            "topic": kafka.topic,
            "clock_slack": saturating_micros(kafka.clock_slack),
            "trust_producer_time": kafka.trust_producer_time,
            "skips_bad_messages": kafka.on_bad_message == BadMessageRule::Skip,
        }),
        InputParams::Files(_) => json!({ "kind": "files" }),
    }
}

/// The privacy unit.
pub(crate) fn unit_text(unit: &PrivacyUnit) -> Value {
    let PrivacyUnit::User {
        column,
        per,
        max_records_per_window,
    } = unit
    else {
        return json!("record");
    };
    let per = match per {
        Period::Every(length) => json!(saturating_micros(*length)),
        Period::Ever => json!("ever"),
    };
    json!({ "column": column, "per": per, "max_records_per_window": max_records_per_window })
}

/// The adjacency, with the public number of records under `replace_one`.
pub(crate) fn adjacency_text(privacy: &PrivacySettings) -> Value {
    match privacy.adjacency {
        Adjacency::AddRemove => json!("add_remove"),
        Adjacency::ReplaceOne => json!({ "records_per_window": privacy.records_per_window }),
    }
}

/// A grid of blocks or periods.
pub(crate) fn blocks_text(blocks: Blocks) -> Value {
    match blocks {
        Blocks::Every(grid) => {
            json!({ "origin": grid.origin(), "length": saturating_micros(grid.length()) })
        }
        Blocks::Forever => json!("ever"),
    }
}

/// The rules that decide to which window a record belongs.
pub(crate) fn membership_rules(rules: &WindowRules) -> Value {
    json!({
        "origin": rules.grid.origin(),
        "length": saturating_micros(rules.grid.length()),
        "end": rules.end,
        "grace": saturating_micros(rules.allowed_lateness),
        "ahead": saturating_micros(rules.max_future_skew),
    })
}

/// Adds the form of records, and the types that are declared of their fields; for Arrow, those that are declared of its columns.
pub(crate) fn add_declared_types(settings: &WorkerSettings, normalised: &mut Value) {
    let columns = &settings.columns;
    let time_format = match &settings.input {
        InputParams::Kafka(kafka) => match &kafka.format {
            // What was not declared is not there, as in the digests of files that were written before it could be.
            TopicFormat::Arrow => columns.time_format,
            TopicFormat::Records { form, declared } => {
                normalised["ledger"]["input"]["format"] = json!(form.name());
                add_record_schemas(columns, form, normalised);
                Some(declared.time)
            }
        },
        InputParams::Files(files) if files.declared == DeclaredTypes::default() => return,
        InputParams::Files(files) => Some(files.declared.time),
    };
    if let Some(format) = time_format {
        normalised["ledger"]["input"]["time_format"] = json!(format);
    }
    if let Some(unit) = columns.unit_type {
        normalised["ledger"]["unit"]["type"] = json!(unit);
    }
    match columns.key.len() {
        0 | 1 => {
            if let Some(key) = columns.key_types[0] {
                normalised["keys"]["type"] = json!(key);
            }
        }
        parts => {
            let types = &columns.key_types[..parts];
            if types.iter().any(Option::is_some) {
                normalised["keys"]["types"] = json!(types);
            }
        }
    }
}

/// Adds the schemas of records. A topic gets new ones in the course of time: they may change from a future window on, but for what a
/// ledger is bound to.
fn add_record_schemas(columns: &Columns, form: &RecordForm, normalised: &mut Value) {
    match form {
        RecordForm::Json => {}
        RecordForm::Avro(schemas) => normalised["schemas"] = schemas::pinned(schemas),
        RecordForm::Protobuf(kind) => {
            normalised["schemas"] =
                json!({ "message": kind.name(), "descriptor": schemas::digest(&kind.file) });
            normalised["ledger"]["fields"] = schemas::fields(columns, kind);
        }
    }
}

/// The part of one release that [`recorded_choice`] reads.
pub(crate) fn chosen_keys(settings: &WorkerSettings, one: &ReleaseSettings) -> Value {
    let Value::Object(mut about) = release_text(settings, one) else {
        return Value::Null;
    };
    about.retain(|key, _| ["noise", "degree", "order", "points", "cells"].contains(&key.as_str()));
    about.into()
}

/// The text that a ledger keeps of the settings: the canonical one, and what was left to `"auto"`, which is no setting of its own
/// and in no digest. Absent in the ledgers of earlier versions.
pub fn recorded_text(settings: &WorkerSettings) -> String {
    let mut asked = Map::new();
    for release in &settings.releases {
        if let Some(auto) = &release.auto {
            let about = json!({ "open": auto.open, "expected_records": release.expected_records });
            asked.insert(release.name.clone(), about);
        }
    }
    let mut recorded = parsed_settings(&settings.normalised);
    recorded["auto"] = asked.into();
    recorded.to_string()
}

/// Recorded settings as JSON; null if they are none.
pub(crate) fn parsed_settings(recorded: &str) -> Value {
    serde_json::from_str(recorded).unwrap_or_default()
}

/// The value of `key`; `None` if it is missing, or has a form that this program does not know.
pub(crate) fn read_field<T: DeserializeOwned>(about: &Value, key: &str) -> Option<T> {
    serde_json::from_value(about.get(key)?.clone()).ok()
}

/// The time by which the event time of a record may exceed its message timestamp, in recorded settings.
pub fn recorded_skew(recorded: &str) -> Option<Duration> {
    let micros = parsed_settings(recorded)
        .pointer("/windows/ahead")?
        .as_u64()?;
    Some(Duration::from_micros(micros))
}

/// The noise and the size of a release in recorded settings; `None` if this program does not know them.
pub(crate) fn recorded_choice(recorded: &str, release: &str) -> Option<AutoChoice> {
    let settings = parsed_settings(recorded);
    let release = settings.get("releases")?.get(release)?;
    let noise: NoiseKind = read_field(release, "noise")?;
    Some(AutoChoice {
        noise,
        on: recorded_coordinates(release, noise)?,
        order: read_field(release, "order")?,
    })
}

/// The coordinates of a recorded release with this noise.
fn recorded_coordinates(release: &Value, noise: NoiseKind) -> Option<Coordinates> {
    if noise.is_on_cells() {
        let cells = release.get("cells")?;
        let steps: Vec<u32> = read_field(cells, "steps")?;
        let grid = CellGrid::new(read_field(cells, "spline")?, &steps);
        return Some(Coordinates::Cells(grid));
    }
    Some(match release.get("points") {
        None => Coordinates::Lattice {
            degree: read_field(release, "degree")?,
        },
        Some(Value::Array(_)) => {
            let along: Vec<u32> = read_field(release, "points")?;
            Coordinates::Tensor(AxisCounts::new(&along)?)
        }
        Some(_) => Coordinates::Points {
            most: read_field(release, "points")?,
        },
    })
}

/// A total that was worked out from a promise.
pub(crate) struct DerivedTotal {
    pub promise: ImpliedPrivacy,
    pub total: Rho,
}

/// The promise and the total of recorded settings under `composition = "gaussian"`; `None` under any other.
pub(crate) fn recorded_gaussian_total(recorded: &str) -> Option<DerivedTotal> {
    if recorded_definition(recorded)? != PrivacyDefinition::Gaussian {
        return None;
    }
    let settings = parsed_settings(recorded);
    let ledger = settings.get("ledger")?;
    let promise = read_field(ledger, "implies")?;
    match read_field(ledger, "total")? {
        Price::Concentrated(total) => Some(DerivedTotal { promise, total }),
        Price::Pure(_) | Price::Approximate { .. } | Price::Slots(_) => None,
    }
}

/// Identifies a release with its windows: if it changes, a sum starts again.
pub fn release_identity(settings: &WorkerSettings, release: &ReleaseSettings) -> String {
    let windows = &settings.windows.grid;
    let mut about = self::release_text(settings, release);
    if let Payment::Converted { epsilon, .. } = release.payment {
        // The epsilon makes the noise. What it is charged has become less, which is no reason to start again.
        about["price"] = json!(Payment::converted_from(epsilon).charged_price());
    }
    if release.function.keyed_counts().is_some() {
        // A table is one sum of all keys: with other keys its rows are others.
        about["keys"] = keys_text(settings);
    }
    let about = json!([
        about,
        windows.origin(),
        saturating_micros(windows.length()),
        settings.columns.time,
        match settings.columns.key.as_slice() {
            [] => Value::Null,
            [only] => json!(only),
            several => json!(several),
        }
    ]);
    Digest::of_bytes(about.to_string().as_bytes()).to_string()
}

/// Identifies a list of announced keys: if the columns of the key or the longest key change, it starts again.
pub fn announced_identity(settings: &WorkerSettings) -> String {
    let longest = settings.found_keys.map(|found| found.longest);
    let about = json!([settings.columns.key, settings.columns.key_types, longest]);
    Digest::of_bytes(about.to_string().as_bytes()).to_string()
}

/// One release with its price.
fn release_text(settings: &WorkerSettings, release: &ReleaseSettings) -> Value {
    let mut normalised = json!({
        "price": release.payment.charged_price(),
        "degree": release.shape().degree,
        "order": release.order,
        "domain": domain_bounds(&release.columns, &release.axes),
        "label": label_text(&release.columns, release.label.as_ref()),
        "function": release.function.about,
        "noise": release.noise,
    });
    // Keys that were added later are absent by default, so that older digests stay the same.
    match release.policy {
        PricePolicy::Fixed(_) => {}
        PricePolicy::Horizon { share, windows } => {
            normalised["price"] = json!({ "share": share, "horizon": windows })
        }
        PricePolicy::Decaying { share, half_after } => {
            normalised["price"] = json!({ "share": share, "half_after": half_after });
        }
    }
    if release.is_user_weighted() {
        normalised["weights"] = json!("user");
    }
    if release.window_kind != WindowKind::Tumbling {
        normalised["windows"] = json!(release.window_kind);
    }
    match release.on {
        Coordinates::Lattice { .. } | Coordinates::Cells(_) => {}
        Coordinates::Points { .. } => normalised["points"] = json!(release.shape().value_count()),
        Coordinates::Tensor(counts) => normalised["points"] = json!(counts.along()),
    }
    match release.shape().basis {
        Basis::Cells(cells) => {
            normalised["cells"] = json!({ "spline": cells.spline, "steps": cells.steps });
        }
        Basis::Tables(tables) => {
            normalised["cells"] = json!({ "spline": tables.spline, "steps": tables.steps, "bandwidths": tables.bandwidths });
        }
        Basis::Keys(table) => {
            if table.has_middle() {
                normalised["squares"] = json!(true);
            }
            if let Some(told) = table.units {
                normalised["told_units"] = json!(told.bins);
            }
        }
        _ => {}
    }
    if release.calibration == Calibration::Paper {
        normalised["scale"] = json!("paper");
    }
    if let Payment::Converted { epsilon, .. } = release.payment {
        normalised["epsilon"] = json!(epsilon);
    }
    if let PrivacyDefinition::Random(_) = &settings.privacy.definition {
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
fn declared_plan(settings: &WorkerSettings) -> Value {
    let mut plan = Vec::new();
    for release in &settings.releases {
        let mechanism = settings.mechanism_of(release, &release.function).ok();
        plan.push(json!({
            "noise": release.payment.mechanism_price(),
            "law": release.noise.noise_distribution(),
            "values": release.shape().value_count(),
            "scale": mechanism.map(|noise| noise.scale().units()),
            "choices": [
                release.private_bandwidths.as_ref().map(|choice| choice.price),
                release.private_order.as_ref().map(|choice| choice.price),
            ],
        }));
    }
    plan.into()
}

/// The definition of privacy of a ledger with these settings; `None` if this program does not know it.
pub fn recorded_definition(settings: &str) -> Option<PrivacyDefinition> {
    let settings = parsed_settings(settings);
    let ledger = settings.get("ledger")?;
    if ledger.get("definition").is_some() {
        return read_field(ledger, "definition");
    }
    read_field(ledger, "total").map(PrivacyDefinition::from_total)
}

/// The bounds of the axes.
pub(crate) fn domain_bounds(columns: &[String], axes: &[DomainAxis]) -> Vec<Value> {
    let axes = columns.iter().zip(axes);
    axes.map(|(column, axis)| axis_bounds(column, axis))
        .collect()
}

/// The label, if there is one; its column is the last of `columns`.
pub(crate) fn label_text(columns: &[String], label: Option<&RecordLabel>) -> Option<Value> {
    let label = label?;
    let column = columns.last()?;
    Some(match label {
        RecordLabel::Number(axis) => axis_bounds(column, axis),
        RecordLabel::Above(above) => json!({ "column": column, "above": above }),
        RecordLabel::Classes(values) => json!({ "column": column, "values": values }),
    })
}

fn axis_bounds(column: &str, axis: &DomainAxis) -> Value {
    let outside = match axis.outside {
        OutsideRule::Clamp => "clamp",
        OutsideRule::Drop => "drop",
    };
    json!({ "column": column, "min": axis.min, "max": axis.max, "outside": outside })
}
