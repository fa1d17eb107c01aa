//! "All records of one user (in one period) more or less": any number of rows, wherever they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::edit::Edit;
use super::everywhere::{everywhere, later, texts};
use super::messages::{Message, Row, Texts, Types};
use super::pair::Pair;
use super::records::without;
use super::scene::WindowFixture;
use super::stage::BackgroundStream;
use super::way::InjectionStrategy;
use crate::odd;
use bernstream_release::window::Cap;
use bernstream_synopsis::grid::Span;

/// At most so many copies of a row are written in every way: more than count, where not many do.
const COPIES: usize = 65;

/// Rooms of pairs, each with its most telling one first.
pub(super) fn families(stage: &BackgroundStream<'_>, cap: &Cap) -> Vec<Vec<Pair>> {
    let most = cap.records as usize;
    let beside = InjectionStrategy::beside(stage);
    let movers = WindowFixture::all(stage).map(|scenes| {
        scenes
            .iter()
            .flat_map(WindowFixture::added)
            .collect::<Vec<_>>()
    });
    let plain = stage.plain(movers.iter().flatten().next().map(|(_, row)| row));
    let mut families: Vec<Vec<Pair>> = movers
        .iter()
        .map(|rows| {
            rows.iter()
                .flat_map(|(name, row)| counts(&beside, most, name, row))
                .collect()
        })
        .collect();
    families.push(
        movers
            .iter()
            .filter_map(|rows| in_every_window(stage, cap, rows.first()?))
            .collect(),
    );
    families.push(spread(stage, cap));
    let (named_oddly, texts): (Vec<_>, Vec<_>) = texts(stage, &plain)
        .into_iter()
        .partition(|(_, row)| row.unit != plain.unit);
    families.push(odd_units(stage, most, named_oddly));
    families.push(odd(stage, &plain, texts));
    families.extend(everywhere(
        stage,
        &Edit::AddMany((2 * most + 1).min(COPIES)),
        &plain,
    ));
    families.push(of_others(stage, cap));
    families.push(many(stage, &plain));
    families
}

/// One row, as many as count, and more.
fn counts(beside: &InjectionStrategy<'_>, most: usize, name: &str, row: &Row) -> Vec<Pair> {
    let pair = |(how, count): (&str, usize)| {
        let rows: Vec<Row> = (0..count).map(|at| later(row, at)).collect();
        beside.added(&format!("{how}, {name}"), &rows)
    };
    [
        ("more than count", 3 * most + 2),
        ("as many as count", most),
        ("one", 1),
    ]
    .map(pair)
    .into()
}

/// One row, in each window of its period as often as counts: where windows overlap the cap is one of all of them together.
fn in_every_window(
    stage: &BackgroundStream<'_>,
    cap: &Cap,
    (name, row): &(String, Row),
) -> Option<Pair> {
    let period = cap.period.span_of(row.time?);
    let windows = stage
        .windows
        .iter()
        .filter(|window| period.contains(window.start));
    let at = |window: &Span| Row {
        time: Some(BackgroundStream::time(*window, 0.3)),
        ..row.clone()
    };
    let rows: Vec<Row> = windows
        .flat_map(|window| (0..cap.records as usize).map(move |count| later(&at(window), count)))
        .collect();
    Some(InjectionStrategy::beside(stage).added(
        &format!("as many as count in every window of its period, {name}"),
        &rows,
    ))
}

/// Over keys, corners of the domain, and all windows of a period: of the one in which the first window begins, and of the second's.
fn spread(stage: &BackgroundStream<'_>, cap: &Cap) -> Vec<Pair> {
    let count = 2 * cap.records as usize + 3;
    let keys = stage.keys();
    let mut pairs = Vec::new();
    let corner = |at: usize| -> Vec<Option<f64>> {
        let end = |(column, ends): (usize, &[f64; 2])| Some(ends[(at >> column) & 1]);
        stage.ends.iter().enumerate().map(end).collect()
    };
    let row = |window: Span, at: usize| {
        let time = BackgroundStream::time(window, (at as f64 + 0.3) / count as f64);
        stage.row(
            time,
            keys.get(at % keys.len()).cloned().flatten(),
            corner(at / keys.len()),
        )
    };
    let periods: BTreeSet<Span> = stage
        .windows
        .iter()
        .take(2)
        .map(|window| cap.period.span_of(window.start))
        .collect();
    for (place, period) in periods.into_iter().enumerate() {
        let rows = stage
            .windows
            .iter()
            .flat_map(|window| (0..count).map(|at| row(*window, at)));
        let rows: Vec<Row> = rows
            .filter(|row| row.time.is_some_and(|time| period.contains(time)))
            .collect();
        let name = format!("over all keys and windows of period {place}");
        let alone = |(at, row): (usize, &Row)| {
            let stamp = row.time.unwrap_or(stage.full().start);
            Message::of([0, 1, 7][at % 3], stamp, vec![row.clone()])
        };
        pairs.extend([
            InjectionStrategy::beside(stage).added(&name, &rows),
            InjectionStrategy::new(
                "each in a message of its own, over partitions",
                stage,
                move |rows| stage.with_messages(rows.iter().enumerate().map(alone)),
            )
            .added(&name, &rows),
            InjectionStrategy::new("all in one message, the last first", stage, |rows| {
                stage.with_message(Message::of(
                    1,
                    stage.full().end,
                    rows.iter().rev().cloned().collect(),
                ))
            })
            .added(&name, &rows),
        ]);
    }
    pairs
}

/// Users whose name is odd, each a user of its own, with more rows than count.
fn odd_units(stage: &BackgroundStream<'_>, most: usize, rows: Vec<(String, Row)>) -> Vec<Pair> {
    let beside = InjectionStrategy::beside(stage);
    let pair = |(name, row): (String, Row)| {
        let rows: Vec<Row> = (0..3 * most + 2).map(|at| later(&row, at)).collect();
        beside.added(&format!("a user with {name}"), &rows)
    };
    rows.into_iter().map(pair).collect()
}

/// Odd rows, alone and before good ones; and odd in every way.
fn odd(stage: &BackgroundStream<'_>, plain: &Row, texts: Vec<(String, Row)>) -> Vec<Pair> {
    let beside = InjectionStrategy::beside(stage);
    let values: Vec<(String, Row)> = odd::values(plain, &stage.ends)
        .into_iter()
        .chain(texts)
        .collect();
    let all: Vec<Row> = values
        .iter()
        .enumerate()
        .map(|(at, (_, row))| later(row, at))
        .collect();
    let mut pairs = vec![beside.added("odd in every way", &all)];
    for (name, row) in values {
        pairs.push(beside.added(&format!("{name}, and a good one"), &[row, later(plain, 1)]));
    }
    pairs
}

/// Thousands of rows in one message, each with the same long text.
fn many(stage: &BackgroundStream<'_>, plain: &Row) -> Vec<Pair> {
    let long = texts(stage, plain)
        .into_iter()
        .filter(|(name, _)| name.contains("64 KiB"));
    let pair = |(name, row): (String, Row)| {
        let way = InjectionStrategy::new("500 in each of 24 batches", stage, |rows| {
            let batches = vec![rows.iter().cycle().take(500).cloned().collect(); 24];
            let stamp = BackgroundStream::time(stage.full(), 0.6);
            let texts = Texts::Dictionary;
            let types = Types::Declared;
            stage.with_message(Message {
                partition: 1,
                stamp,
                batches,
                texts,
                types,
            })
        });
        way.added(&format!("rows with a {name}"), &[row])
    };
    long.map(pair).collect()
}

/// A user of others less, in one period: what that user sent in other periods stays.
fn of_others(stage: &BackgroundStream<'_>, cap: &Cap) -> Vec<Pair> {
    let period = cap.period.span_of(stage.full().start);
    let units: BTreeSet<_> = stage.rows().map(|row| row.unit.clone()).collect();
    let pair = |unit: Option<Arc<[u8]>>| {
        let is_theirs =
            |row: &Row| row.unit == unit && row.time.is_some_and(|time| period.contains(time));
        Pair {
            name: format!(
                "all of {} less",
                String::from_utf8_lossy(unit.as_deref().unwrap_or_default())
            ),
            with: stage.others.clone(),
            without: Arc::new(without(&stage.others, is_theirs)),
            times: stage
                .rows()
                .filter(|row| is_theirs(row))
                .filter_map(|row| row.time)
                .collect(),
        }
    };
    units.into_iter().map(pair).collect()
}
