//! Pairs for the records of every promise: any event time, any place in the stream, any message timestamp, any form of text, any cut
//! into messages, any producer that infers types.

use super::cuts::cuts;
use super::edit::Edit;
use super::messages::{NamedRow, Row};
use super::pair::Pair;
use super::stage::{BackgroundStream, TICK};
use super::subject::Stamps;
use super::way::InjectionStrategy;
use crate::odd;
use crate::way;

/// The name of a row in which nothing is odd.
const PLAIN: &str = "a plain row";

/// Pairs that differ at `plain`, a row in the full window, by event time, place, message timestamp, form, cut and inferred types.
pub(super) fn everywhere(stage: &BackgroundStream<'_>, edit: &Edit, plain: &Row) -> [Vec<Pair>; 6] {
    [
        times(stage, edit, plain),
        at_each(&way::places(stage), edit, PLAIN, plain),
        at_each(&way::stamps(stage), edit, PLAIN, plain),
        forms(stage, edit, plain),
        at_each(&cuts(stage), edit, PLAIN, plain),
        types(stage, edit, plain),
    ]
}

fn at_each(ways: &[InjectionStrategy<'_>], edit: &Edit, name: &str, row: &Row) -> Vec<Pair> {
    ways.iter()
        .flat_map(|way| edit.pairs(way, name, row))
        .collect()
}

/// A row that decides, by what it has or lacks, which types the columns of its message have.
fn types(stage: &BackgroundStream<'_>, edit: &Edit, plain: &Row) -> Vec<Pair> {
    let mut lacking = ["values", "a key", "a unit", "a time"]
        .map(|part| NamedRow::new(format!("a row without {part}"), plain.clone()));
    let [values, key, unit, time] = &mut lacking;
    values.row.values.fill(None);
    key.row.key = None;
    unit.row.unit = None;
    time.row.time = None;
    let ways = way::types(stage);
    let mut pairs = at_each(&ways, edit, PLAIN, plain);
    for NamedRow { name, row } in &lacking {
        pairs.extend(at_each(&ways, edit, name, row));
    }
    pairs
}

/// Event times of every kind, each beside others and in a message of its own.
fn times(stage: &BackgroundStream<'_>, edit: &Edit, plain: &Row) -> Vec<Pair> {
    let beside = InjectionStrategy::beside(stage);
    let stamp = BackgroundStream::time(stage.full(), 0.6);
    let alone = InjectionStrategy::message("in a message of its own", stage, 1, stamp);
    let mut pairs = ahead(stage, edit, plain);
    for NamedRow { name, row } in odd::times(plain, stage, stamp) {
        pairs.extend(edit.pairs(&alone, &name, &row));
        pairs.extend(edit.pairs(&beside, &name, &row));
    }
    pairs
}

/// In every partition as far ahead of its message timestamp as is allowed, just before others send records that are late: whoever
/// closed windows by the newest event time would lose those.
fn ahead(stage: &BackgroundStream<'_>, edit: &Edit, plain: &Row) -> Vec<Pair> {
    let stamp = stage.late(stage.full()).minus(TICK);
    let time = match stage.subject.stamps {
        Stamps::None => BackgroundStream::time(stage.empty(), 0.9),
        Stamps::Broker { .. } | Stamps::Producers => {
            stamp.plus(stage.subject.plan.rules.max_future_skew)
        }
    };
    let way = InjectionStrategy::messages("just before late ones of others", stage, &[0, 1], stamp);
    edit.pairs(
        &way,
        "as far ahead as allowed",
        &Row {
            time: Some(time),
            ..plain.clone()
        },
    )
}

/// In every form in which text can be written: a plain row, and in several batches rows whose texts are odd.
fn forms(stage: &BackgroundStream<'_>, edit: &Edit, plain: &Row) -> Vec<Pair> {
    const ODD: [&str; 4] = ["null", "empty", "not text", "64 KiB"];
    let [several, one] = [24, 1].map(|batches| way::forms(stage, plain, batches));
    let mut pairs = at_each(&several, edit, PLAIN, plain);
    pairs.extend(at_each(&one, edit, PLAIN, plain));
    for NamedRow { name, row } in texts(stage, plain) {
        if ODD.iter().any(|kind| name.contains(kind)) {
            pairs.extend(at_each(&several, edit, &name, &row));
        }
    }
    pairs
}

/// Rows whose key or unit is odd.
pub(super) fn texts(stage: &BackgroundStream<'_>, row: &Row) -> Vec<NamedRow> {
    let mut all = Vec::new();
    if stage.subject.columns.unit.is_some() {
        all.extend(odd::units(row));
    }
    if stage.subject.columns.key.is_some() {
        all.extend(odd::keys(row));
    }
    all
}

/// The row so many ticks later, so that the order of several is plain.
pub(super) fn later(row: &Row, ticks: usize) -> Row {
    let delay = TICK * u32::try_from(ticks).unwrap_or(u32::MAX);
    Row {
        time: row.time.map(|time| time.plus(delay)),
        ..row.clone()
    }
}
