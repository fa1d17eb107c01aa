//! "One record more or less."

use std::sync::Arc;

use super::edit::Edit;
use super::everywhere::{everywhere, texts};
use super::messages::{Message, NamedRow, Row};
use super::pair::Pair;
use super::scene::WindowFixture;
use super::stage::BackgroundStream;
use super::way::InjectionStrategy;
use crate::odd;

/// Rooms of pairs, each with its most telling one first.
pub(super) fn families(stage: &BackgroundStream<'_>) -> Vec<Vec<Pair>> {
    let beside = InjectionStrategy::beside(stage);
    let movers = WindowFixture::all(stage).map(|scenes| {
        scenes
            .iter()
            .flat_map(WindowFixture::added)
            .collect::<Vec<_>>()
    });
    let plain = stage.plain(movers.iter().flatten().next().map(|mover| &mover.row));
    let mut families = Vec::new();
    let odd = [texts(stage, &plain), odd::values(&plain, &stage.ends)];
    for rows in movers.into_iter().chain(odd) {
        let mut pairs = Vec::new();
        for NamedRow { name, row } in rows {
            pairs.extend(Edit::Add.pairs(&beside, &name, &row));
        }
        families.push(pairs);
    }
    families.extend(everywhere(stage, &Edit::Add, &plain));
    families.push(of_others(stage, &beside));
    families
}

/// A record of others less, or twice: the first of a window, one in the middle, the last.
fn of_others(stage: &BackgroundStream<'_>, beside: &InjectionStrategy<'_>) -> Vec<Pair> {
    let full = stage.full();
    let mut pairs = Vec::new();
    let here: Vec<&Row> = stage
        .rows()
        .filter(|row| row.time.is_some_and(|time| full.contains(time)))
        .collect();
    for (name, row) in [
        ("the first", here.first()),
        ("a middle one", here.get(here.len() / 2)),
        ("the last", here.last()),
    ] {
        let Some(row) = row else { continue };
        pairs.push(Pair {
            name: format!("{name} of others less"),
            with: stage.others.clone(),
            without: Arc::new(without(&stage.others, |other| other == *row)),
            times: row.time.into_iter().collect(),
        });
        pairs.push(beside.added(&format!("{name} of others twice"), &[(*row).clone()]));
    }
    pairs
}

/// The messages without some rows; a message that loses all of them stays, for another may have been in it.
pub(super) fn without(messages: &[Message], is_gone: impl Fn(&Row) -> bool) -> Vec<Message> {
    let mut all = messages.to_vec();
    let batches = all.iter_mut().flat_map(|message| &mut message.batches);
    batches.for_each(|rows| rows.retain(|row| !is_gone(row)));
    all
}
