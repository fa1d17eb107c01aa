//! "All records of one user (in one period) more or less": any number of rows, wherever they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::edit::RowEdit;
use super::everywhere::{common_families, row_later, rows_with_odd_texts};
use super::found_crowd::CROWD;
use super::found_pairs::found_key_families;
use super::messages::{ColumnTypes, InputMessage, InputRow, NamedRow, TextForm};
use super::pair::NeighbouringPair;
use super::records::without_rows;
use super::scene::WindowFixture;
use super::stage::BackgroundStream;
use super::way::InjectionStrategy;
use crate::odd;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_release::window::{Cap, KeyCounting};
use bernstream_synopsis::grid::Span;

/// At most so many copies of a row are written in every way: more than count, where not many do.
const COPIES: usize = 65;
/// At most so many rows are in one key: of larger caps a part of the claim is not seen.
const MOST_OF_KEY: usize = 200;

/// Rooms of pairs, each with its most telling one first.
pub(super) fn user_families(stage: &BackgroundStream<'_>, cap: &Cap) -> Vec<Vec<NeighbouringPair>> {
    let most = counted_rows(stage, cap);
    let beside = InjectionStrategy::beside_others(stage);
    let movers = WindowFixture::all_kinds(stage).map(|scenes| {
        scenes
            .iter()
            .flat_map(WindowFixture::rows_to_add)
            .collect::<Vec<_>>()
    });
    let plain = stage.plain_row(movers.iter().flatten().next().map(|mover| &mover.row));
    let mut families = found_key_families(stage);
    for rows in &movers {
        let mut pairs = Vec::new();
        for mover in rows {
            pairs.extend(pairs_by_count(&beside, most, mover));
        }
        families.push(pairs);
    }
    families.push(
        movers
            .iter()
            .filter_map(|rows| in_every_window(stage, cap, most, rows.first()?))
            .collect(),
    );
    families.push(spread_over_windows(stage, cap, most));
    families.push(counted_key_pairs(stage, cap));
    families.extend(told_key_pair(stage, cap).map(|pair| vec![pair]));
    let (named_oddly, texts): (Vec<_>, Vec<_>) = rows_with_odd_texts(stage, &plain)
        .into_iter()
        .partition(|text| text.row.unit != plain.unit);
    families.push(odd_units(stage, most, named_oddly));
    families.push(odd_value_pairs(stage, &plain, texts));
    families.extend(common_families(
        stage,
        &RowEdit::AddMany((2 * most + 1).min(COPIES)),
        &plain,
    ));
    families.push(others_removed(stage, cap));
    families.push(many_row_pairs(stage, &plain));
    families
}

/// One row, as many as count, and more.
fn pairs_by_count(
    beside: &InjectionStrategy<'_>,
    most: usize,
    mover: &NamedRow,
) -> Vec<NeighbouringPair> {
    let NamedRow { name, row } = mover;
    vec![
        beside.pair_added(
            &format!("more than count, {name}"),
            &repeated_row(row, 3 * most + 2),
        ),
        beside.pair_added(
            &format!("as many as count, {name}"),
            &repeated_row(row, most),
        ),
        beside.pair_added(&format!("one, {name}"), &repeated_row(row, 1)),
    ]
}

/// A number of copies of a row, each a tick later than the one before.
fn repeated_row(row: &InputRow, count: usize) -> Vec<InputRow> {
    (0..count).map(|ticks| row_later(row, ticks)).collect()
}

/// The most rows of a unit that count in a window: of records, and of those that count by key in one key.
fn counted_rows(stage: &BackgroundStream<'_>, cap: &Cap) -> usize {
    let mut most = cap.records as usize;
    for counting in countings(stage) {
        most = most.max(rows_of_key(&counting));
    }
    most
}

/// The rules of the releases that count by key.
fn countings(stage: &BackgroundStream<'_>) -> Vec<Arc<KeyCounting>> {
    let mut countings = Vec::new();
    for release in &stage.subject.plan.releases {
        if let AccumulatorSpec::Keys(counting) = &release.form.accumulator {
            countings.push(Arc::clone(counting));
        }
    }
    countings
}

/// So many rows of a unit in a key, at the end of the values that is further from 0, count as much as any number can.
fn rows_of_key(counting: &KeyCounting) -> usize {
    let mut rows = counting.max_records as usize;
    if let Some(sum) = &counting.sum {
        let bound = sum.min.abs().max(sum.max.abs());
        let largest = sum.value_min.abs().max(sum.value_max.abs());
        rows = rows.max((bound / largest).ceil() as usize);
    }
    rows.min(MOST_OF_KEY)
}

/// A unit that has more keys than count, with as many rows of each as count; and a day of such a unit, whose other days stay.
fn counted_key_pairs(stage: &BackgroundStream<'_>, cap: &Cap) -> Vec<NeighbouringPair> {
    let countings = countings(stage);
    let counts = countings.iter().map(|counting| rows_of_key(counting));
    let most_keys = countings.iter().map(|counting| counting.max_keys);
    let (Some(count), Some(most_keys)) = (counts.max(), most_keys.max()) else {
        return Vec::new();
    };
    let beside = InjectionStrategy::beside_others(stage);
    let period = cap.period.span_of(stage.full_window().start);
    let mut pairs = Vec::new();
    for (corner, name) in [(usize::MAX, "largest values"), (0, "least values")] {
        let mut rows = Vec::new();
        for window in &stage.windows {
            let time = BackgroundStream::time_in_window(*window, 0.3);
            let declared = stage.keys().into_iter().take(most_keys as usize + 2);
            for key in declared.chain(stage.unlisted_keys()) {
                let row = stage.neighbour_row(time, key, domain_corner(&stage.ends, corner));
                rows.extend(repeated_row(&row, count));
            }
        }
        let later = rows_in_later_periods(&rows, stage, cap);
        rows.retain(|row| row.time.is_some_and(|time| period.contains(time)));
        pairs.push(beside.pair_added(&format!("in every key as often as counts, {name}"), &rows));
        pairs.push(NeighbouringPair {
            name: format!("a day of a user whose other days stay, {name}"),
            with: Arc::new(stage.with_rows(&[rows.as_slice(), &later].concat())),
            without: Arc::new(stage.with_rows(&later)),
            times: rows.iter().filter_map(|row| row.time).collect(),
        });
    }
    pairs
}

/// A unit in so many keys, once in each, that the last bin of told caps has it; `None` where no caps are told.
fn told_key_pair(stage: &BackgroundStream<'_>, cap: &Cap) -> Option<NeighbouringPair> {
    let countings = countings(stage);
    let last_bins = countings
        .iter()
        .filter_map(|counting| counting.unit_bins.last());
    let least = last_bins.map(|bin| bin.least).max()?;
    let period = cap.period.span_of(stage.full_window().start);
    let mut rows = Vec::new();
    for window in &stage.windows {
        let time = BackgroundStream::time_in_window(*window, 0.3);
        if period.contains(time) {
            for key in stage.keys().into_iter().take(least as usize) {
                rows.push(stage.neighbour_row(time, key, domain_corner(&stage.ends, 0)));
            }
        }
    }
    let beside = InjectionStrategy::beside_others(stage);
    Some(beside.pair_added("once in each key, as many as caps are told for", &rows))
}

/// The rows, moved to the last part of their windows, of those where this is another period than the first one.
fn rows_in_later_periods(
    rows: &[InputRow],
    stage: &BackgroundStream<'_>,
    cap: &Cap,
) -> Vec<InputRow> {
    let first = cap.period.span_of(stage.full_window().start);
    let mut later = Vec::new();
    for window in &stage.windows {
        let time = BackgroundStream::time_in_window(*window, 0.9);
        if first.contains(time) {
            continue;
        }
        for row in rows {
            if row.time.is_some_and(|time| window.contains(time)) {
                later.push(InputRow {
                    time: Some(time),
                    ..row.clone()
                });
            }
        }
    }
    later
}

/// One row, in each window of its period as often as counts: where windows overlap the cap is one of all of them together.
fn in_every_window(
    stage: &BackgroundStream<'_>,
    cap: &Cap,
    most: usize,
    mover: &NamedRow,
) -> Option<NeighbouringPair> {
    let NamedRow { name, row } = mover;
    let period = cap.period.span_of(row.time?);
    let mut rows = Vec::new();
    for window in &stage.windows {
        if period.contains(window.start) {
            let in_window = InputRow {
                time: Some(BackgroundStream::time_in_window(*window, 0.3)),
                ..row.clone()
            };
            rows.extend(repeated_row(&in_window, most));
        }
    }
    Some(InjectionStrategy::beside_others(stage).pair_added(
        &format!("as many as count in every window of its period, {name}"),
        &rows,
    ))
}

/// Over keys, corners of the domain, and all windows of a period: of the one in which the first window begins, and of the second's.
fn spread_over_windows(
    stage: &BackgroundStream<'_>,
    cap: &Cap,
    most: usize,
) -> Vec<NeighbouringPair> {
    let count = 2 * most + 3;
    let keys = stage.keys();
    let mut all_rows = Vec::new();
    for window in &stage.windows {
        for index in 0..count {
            let time =
                BackgroundStream::time_in_window(*window, (index as f64 + 0.3) / count as f64);
            let key = keys.get(index % keys.len()).cloned().flatten();
            let values = domain_corner(&stage.ends, index / keys.len());
            all_rows.push(stage.neighbour_row(time, key, values));
        }
    }
    let mut pairs = Vec::new();
    let periods: BTreeSet<Span> = stage
        .windows
        .iter()
        .take(2)
        .map(|window| cap.period.span_of(window.start))
        .collect();
    for (place, period) in periods.into_iter().enumerate() {
        let mut rows = all_rows.clone();
        rows.retain(|row| row.time.is_some_and(|time| period.contains(time)));
        let name = format!("over all keys and windows of period {place}");
        pairs.extend([
            InjectionStrategy::beside_others(stage).pair_added(&name, &rows),
            InjectionStrategy::new(
                "each in a message of its own, over partitions",
                stage,
                |rows| {
                    let mut messages = Vec::new();
                    for (row, partition) in rows.iter().zip([0, 1, 7].into_iter().cycle()) {
                        let stamp = row.time.unwrap_or(stage.full_window().start);
                        messages.push(InputMessage::from_rows(partition, stamp, vec![row.clone()]));
                    }
                    stage.with_messages(messages)
                },
            )
            .pair_added(&name, &rows),
            InjectionStrategy::new("all in one message, the last first", stage, |rows| {
                stage.with_message(InputMessage::from_rows(
                    1,
                    stage.full_window().end,
                    rows.iter().rev().cloned().collect(),
                ))
            })
            .pair_added(&name, &rows),
        ]);
    }
    pairs
}

/// The values at one corner of the domain: bit `n` of `number` says which end column `n` is at.
fn domain_corner(ends: &[[f64; 2]], number: usize) -> Vec<Option<f64>> {
    let columns = ends.iter().enumerate();
    columns
        .map(|(column, ends)| Some(ends[(number >> column) & 1]))
        .collect()
}

/// Users whose name is odd, each a user of its own, with more rows than count.
fn odd_units(
    stage: &BackgroundStream<'_>,
    most: usize,
    rows: Vec<NamedRow>,
) -> Vec<NeighbouringPair> {
    let beside = InjectionStrategy::beside_others(stage);
    let mut pairs = Vec::new();
    for NamedRow { name, row } in rows {
        let rows = repeated_row(&row, 3 * most + 2);
        pairs.push(beside.pair_added(&format!("a user with {name}"), &rows));
    }
    pairs
}

/// Odd rows, alone and before good ones; and odd in every way.
fn odd_value_pairs(
    stage: &BackgroundStream<'_>,
    plain: &InputRow,
    texts: Vec<NamedRow>,
) -> Vec<NeighbouringPair> {
    let beside = InjectionStrategy::beside_others(stage);
    let mut values = odd::rows_with_odd_values(plain, &stage.ends);
    values.extend(texts);
    let all: Vec<InputRow> = values
        .iter()
        .enumerate()
        .map(|(index, odd)| row_later(&odd.row, index))
        .collect();
    let mut pairs = vec![beside.pair_added("odd in every way", &all)];
    for NamedRow { name, row } in values {
        pairs.push(beside.pair_added(
            &format!("{name}, and a good one"),
            &[row, row_later(plain, 1)],
        ));
    }
    pairs
}

/// Thousands of rows in one message, each with the same long text.
fn many_row_pairs(stage: &BackgroundStream<'_>, plain: &InputRow) -> Vec<NeighbouringPair> {
    let way = InjectionStrategy::new("500 in each of 24 batches", stage, |rows| {
        stage.with_message(InputMessage {
            partition: 1,
            stamp: BackgroundStream::time_in_window(stage.full_window(), 0.6),
            batches: vec![rows.iter().cycle().take(500).cloned().collect(); 24],
            texts: TextForm::Dictionary,
            types: ColumnTypes::Declared,
        })
    });
    let mut pairs = Vec::new();
    for NamedRow { name, row } in rows_with_odd_texts(stage, plain) {
        if name.contains("64 KiB") {
            pairs.push(way.pair_added(&format!("rows with a {name}"), &[row]));
        }
    }
    pairs
}

/// A user of others less, in one period: what that user sent in other periods stays.
fn others_removed(stage: &BackgroundStream<'_>, cap: &Cap) -> Vec<NeighbouringPair> {
    let period = cap.period.span_of(stage.full_window().start);
    let mut units: BTreeSet<_> = stage.rows_of_others().map(|row| row.unit.clone()).collect();
    // Of those that are there for their keys, one is like the other.
    let mut crowd = 0;
    units.retain(|unit| {
        let is_of_crowd = unit
            .as_deref()
            .is_some_and(|unit| unit.starts_with(CROWD.as_bytes()));
        crowd += usize::from(is_of_crowd);
        !is_of_crowd || crowd <= 2
    });
    let mut pairs = Vec::new();
    for unit in units {
        let name = String::from_utf8_lossy(unit.as_deref().unwrap_or_default());
        let theirs = stage.rows_of_others().filter(|row| row.unit == unit);
        let times = theirs.filter_map(|row| row.time);
        pairs.push(NeighbouringPair {
            name: format!("all of {name} less"),
            with: stage.others.clone(),
            without: Arc::new(without_rows(&stage.others, |row| {
                row.unit == unit && row.time.is_some_and(|time| period.contains(time))
            })),
            times: times.filter(|time| period.contains(*time)).collect(),
        });
    }
    pairs
}
