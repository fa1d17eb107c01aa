//! "One record more or less."

use std::sync::Arc;

use super::edit::RowEdit;
use super::everywhere::{common_families, rows_with_odd_texts};
use super::found_pairs::found_key_families;
use super::messages::{InputMessage, InputRow, NamedRow};
use super::pair::NeighbouringPair;
use super::scene::WindowFixture;
use super::stage::BackgroundStream;
use super::way::InjectionStrategy;
use crate::odd;

/// Rooms of pairs, each with its most telling one first.
pub(super) fn record_families(stage: &BackgroundStream<'_>) -> Vec<Vec<NeighbouringPair>> {
    let beside = InjectionStrategy::beside_others(stage);
    let movers = WindowFixture::all_kinds(stage).map(|scenes| {
        scenes
            .iter()
            .flat_map(WindowFixture::rows_to_add)
            .collect::<Vec<_>>()
    });
    let plain = stage.plain_row(movers.iter().flatten().next().map(|mover| &mover.row));
    let mut families = found_key_families(stage);
    let odd = [
        rows_with_odd_texts(stage, &plain),
        odd::rows_with_odd_values(&plain, &stage.ends),
    ];
    for rows in movers.into_iter().chain(odd) {
        let mut pairs = Vec::new();
        for NamedRow { name, row } in rows {
            pairs.extend(RowEdit::Add.pairs_at_row(&beside, &name, &row));
        }
        families.push(pairs);
    }
    families.extend(common_families(stage, &RowEdit::Add, &plain));
    families.push(of_others(stage, &beside));
    families
}

/// A record of others less, or twice: the first of a window, one in the middle, the last.
fn of_others(
    stage: &BackgroundStream<'_>,
    beside: &InjectionStrategy<'_>,
) -> Vec<NeighbouringPair> {
    let full = stage.full_window();
    let mut pairs = Vec::new();
    let here: Vec<&InputRow> = stage
        .rows_of_others()
        .filter(|row| row.time.is_some_and(|time| full.contains(time)))
        .collect();
    for (name, row) in [
        ("the first", here.first()),
        ("a middle one", here.get(here.len() / 2)),
        ("the last", here.last()),
    ] {
        let Some(row) = row else { continue };
        pairs.push(NeighbouringPair {
            name: format!("{name} of others less"),
            with: stage.others.clone(),
            without: Arc::new(without_rows(&stage.others, |other| other == *row)),
            times: row.time.into_iter().collect(),
        });
        pairs.push(beside.pair_added(&format!("{name} of others twice"), &[(*row).clone()]));
    }
    pairs
}

/// The messages without some rows; a message that loses all of them stays, for another may have been in it.
pub(super) fn without_rows(
    messages: &[InputMessage],
    is_gone: impl Fn(&InputRow) -> bool,
) -> Vec<InputMessage> {
    let mut all = messages.to_vec();
    let batches = all.iter_mut().flat_map(|message| &mut message.batches);
    batches.for_each(|rows| rows.retain(|row| !is_gone(row)));
    all
}
