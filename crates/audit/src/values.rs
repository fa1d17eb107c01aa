//! "Other values in one record": what is not valid among them. That the record is there, its time and its key are not hidden.

use super::edit::{NamedValues, RowEdit};
use super::everywhere::common_families;
use super::messages::{InputRow, NamedRow};
use super::pair::NeighbouringPair;
use super::scene::{Replacement, WindowFixture};
use super::stage::BackgroundStream;
use super::way::InjectionStrategy;
use crate::odd;

/// Rooms of pairs, each with its most telling one first.
pub(super) fn value_families(stage: &BackgroundStream<'_>) -> Vec<Vec<NeighbouringPair>> {
    let beside = InjectionStrategy::beside_others(stage);
    let scenes = WindowFixture::all_kinds(stage);
    let movers: Vec<_> = scenes
        .iter()
        .map(|scenes| {
            scenes
                .iter()
                .flat_map(WindowFixture::rows_to_replace)
                .collect::<Vec<_>>()
        })
        .collect();
    let most = movers.iter().flatten().next();
    let plain = stage.plain_row(most.map(|most| &most.from));
    let other = match most {
        Some(most) => most.to.values.clone(),
        None => stage.middle.clone(),
    };
    let edit = RowEdit::Replace(vec![
        NamedValues {
            name: "other values",
            values: other,
        },
        NamedValues {
            name: "null",
            values: vec![None; plain.values.len()],
        },
    ]);
    let mut families = Vec::new();
    for replacements in movers {
        let mut pairs = Vec::new();
        for Replacement { name, from, to } in replacements {
            pairs.extend(beside.pairs_replaced(&from, [NamedRow::new(name, to)]));
        }
        families.push(pairs);
    }
    families.push(becoming_invalid(&beside, stage, scenes.iter().flatten()));
    families.extend(common_families(stage, &edit, &plain));
    families.push(odd_replacements(&beside, stage, &plain));
    families
}

/// The records that move a release most when they are added, each in turn becoming invalid.
fn becoming_invalid<'s>(
    beside: &InjectionStrategy<'_>,
    stage: &BackgroundStream<'_>,
    scenes: impl Iterator<Item = &'s WindowFixture<'s>>,
) -> Vec<NeighbouringPair> {
    let mut pairs = Vec::new();
    for NamedRow { name, row } in scenes.flat_map(WindowFixture::rows_to_add) {
        let mut few = odd::rows_with_odd_values(&row, &stage.ends);
        // A few of each column: the family of odd values has all of them.
        few.retain(|odd| odd.name.ends_with("null") || odd.name.contains("above"));
        let few = few.into_iter().map(|odd| named_after_change(&name, odd));
        pairs.extend(beside.pairs_replaced(&row, few));
    }
    pairs
}

/// The other row, named after what a row becomes with it.
fn named_after_change(name: &str, other: NamedRow) -> NamedRow {
    let name = format!("{name} becomes one with {}", other.name);
    NamedRow::new(name, other.row)
}

/// Valid values become odd ones, and odd ones others.
fn odd_replacements(
    beside: &InjectionStrategy<'_>,
    stage: &BackgroundStream<'_>,
    plain: &InputRow,
) -> Vec<NeighbouringPair> {
    let all = odd::rows_with_odd_values(plain, &stage.ends);
    let becoming_odd = all
        .iter()
        .map(|odd| NamedRow::new(format!("becomes one with {}", odd.name), odd.row.clone()));
    let mut pairs = beside.pairs_replaced(plain, becoming_odd);
    for pair in all.windows(2) {
        if let [from, to] = pair {
            pairs.extend(
                beside.pairs_replaced(&from.row, [named_after_change(&from.name, to.clone())]),
            );
        }
    }
    pairs
}
