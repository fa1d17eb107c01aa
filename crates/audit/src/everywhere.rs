//! Pairs for the records of every promise: any event time, any place in the stream, any message timestamp, any form of text, any cut
//! into messages, any producer that infers types.

use super::cuts::cutting_producers;
use super::edit::RowEdit;
use super::messages::{InputRow, NamedRow};
use super::pair::NeighbouringPair;
use super::stage::{BackgroundStream, TICK};
use super::subject::StampSource;
use super::way::InjectionStrategy;
use crate::odd;
use crate::way;

/// The name of a row in which nothing is odd.
const PLAIN: &str = "a plain row";

/// Pairs that differ at `plain`, a row in the full window, by event time, place, message timestamp, form, cut and inferred types.
pub(super) fn common_families(
    stage: &BackgroundStream<'_>,
    edit: &RowEdit,
    plain: &InputRow,
) -> [Vec<NeighbouringPair>; 6] {
    [
        event_time_pairs(stage, edit, plain),
        at_each(&way::placement_strategies(stage), edit, PLAIN, plain),
        at_each(&way::stamp_strategies(stage), edit, PLAIN, plain),
        text_form_pairs(stage, edit, plain),
        at_each(&cutting_producers(stage), edit, PLAIN, plain),
        inferred_type_pairs(stage, edit, plain),
    ]
}

fn at_each(
    ways: &[InjectionStrategy<'_>],
    edit: &RowEdit,
    name: &str,
    row: &InputRow,
) -> Vec<NeighbouringPair> {
    ways.iter()
        .flat_map(|way| edit.pairs_at_row(way, name, row))
        .collect()
}

/// A row that decides, by what it has or lacks, which types the columns of its message have.
fn inferred_type_pairs(
    stage: &BackgroundStream<'_>,
    edit: &RowEdit,
    plain: &InputRow,
) -> Vec<NeighbouringPair> {
    let mut lacking = ["values", "a key", "a unit", "a time"]
        .map(|part| NamedRow::new(format!("a row without {part}"), plain.clone()));
    let [values, key, unit, time] = &mut lacking;
    values.row.values.fill(None);
    key.row.key = None;
    unit.row.unit = None;
    time.row.time = None;
    let ways = way::inferred_type_strategies(stage);
    let mut pairs = at_each(&ways, edit, PLAIN, plain);
    for NamedRow { name, row } in &lacking {
        pairs.extend(at_each(&ways, edit, name, row));
    }
    pairs
}

/// Event times of every kind, each beside others and in a message of its own.
fn event_time_pairs(
    stage: &BackgroundStream<'_>,
    edit: &RowEdit,
    plain: &InputRow,
) -> Vec<NeighbouringPair> {
    let beside = InjectionStrategy::beside_others(stage);
    let stamp = BackgroundStream::time_in_window(stage.full_window(), 0.6);
    let alone = InjectionStrategy::in_one_message("in a message of its own", stage, 1, stamp);
    let mut pairs = ahead_of_late_pairs(stage, edit, plain);
    for NamedRow { name, row } in odd::rows_at_odd_times(plain, stage, stamp) {
        pairs.extend(edit.pairs_at_row(&alone, &name, &row));
        pairs.extend(edit.pairs_at_row(&beside, &name, &row));
    }
    pairs
}

/// In every partition as far ahead of its message timestamp as is allowed, just before others send records that are late: whoever
/// closed windows by the newest event time would lose those.
fn ahead_of_late_pairs(
    stage: &BackgroundStream<'_>,
    edit: &RowEdit,
    plain: &InputRow,
) -> Vec<NeighbouringPair> {
    let stamp = stage.late_stamp(stage.full_window()).minus(TICK);
    let time = match stage.subject.stamps {
        StampSource::None => BackgroundStream::time_in_window(stage.empty_window(), 0.9),
        StampSource::Broker { .. } | StampSource::Producers => {
            stamp.plus(stage.subject.plan.rules.max_future_skew)
        }
    };
    let way = InjectionStrategy::one_message_each(
        "just before late ones of others",
        stage,
        &[0, 1],
        stamp,
    );
    edit.pairs_at_row(
        &way,
        "as far ahead as allowed",
        &InputRow {
            time: Some(time),
            ..plain.clone()
        },
    )
}

/// In every form in which text can be written: a plain row, and in several batches rows whose texts are odd.
fn text_form_pairs(
    stage: &BackgroundStream<'_>,
    edit: &RowEdit,
    plain: &InputRow,
) -> Vec<NeighbouringPair> {
    const ODD: [&str; 4] = ["null", "empty", "not text", "64 KiB"];
    let [several, one] = [24, 1].map(|batches| way::text_form_strategies(stage, plain, batches));
    let mut pairs = at_each(&several, edit, PLAIN, plain);
    pairs.extend(at_each(&one, edit, PLAIN, plain));
    for NamedRow { name, row } in rows_with_odd_texts(stage, plain) {
        if ODD.iter().any(|kind| name.contains(kind)) {
            pairs.extend(at_each(&several, edit, &name, &row));
        }
    }
    pairs
}

/// Rows whose key or unit is odd.
pub(super) fn rows_with_odd_texts(stage: &BackgroundStream<'_>, row: &InputRow) -> Vec<NamedRow> {
    let mut all = Vec::new();
    if stage.subject.columns.unit.is_some() {
        all.extend(odd::rows_with_odd_units(row));
    }
    if !stage.subject.columns.key.is_empty() {
        all.extend(odd::rows_with_odd_keys(row));
    }
    all
}

/// The row so many ticks later, so that the order of several is plain.
pub(super) fn row_later(row: &InputRow, ticks: usize) -> InputRow {
    let delay = TICK * u32::try_from(ticks).unwrap_or(u32::MAX);
    InputRow {
        time: row.time.map(|time| time.plus(delay)),
        ..row.clone()
    }
}
