//! "Other values in one record": what is not valid among them. That the record is there, its time and its key are not hidden.

use super::edit::{Edit, NamedValues};
use super::everywhere::everywhere;
use super::messages::{NamedRow, Row};
use super::pair::Pair;
use super::scene::{Replacement, WindowFixture};
use super::stage::BackgroundStream;
use super::way::InjectionStrategy;
use crate::odd;

/// Rooms of pairs, each with its most telling one first.
pub(super) fn families(stage: &BackgroundStream<'_>) -> Vec<Vec<Pair>> {
    let beside = InjectionStrategy::beside(stage);
    let scenes = WindowFixture::all(stage);
    let movers: Vec<_> = scenes
        .iter()
        .map(|scenes| {
            scenes
                .iter()
                .flat_map(WindowFixture::replaced)
                .collect::<Vec<_>>()
        })
        .collect();
    let most = movers.iter().flatten().next();
    let plain = stage.plain(most.map(|most| &most.from));
    let other = match most {
        Some(most) => most.to.values.clone(),
        None => stage.middle.clone(),
    };
    let edit = Edit::Replace(vec![
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
            pairs.extend(beside.replaced(&from, [NamedRow::new(name, to)]));
        }
        families.push(pairs);
    }
    families.push(invalid(&beside, stage, scenes.iter().flatten()));
    families.extend(everywhere(stage, &edit, &plain));
    families.push(odd(&beside, stage, &plain));
    families
}

/// The records that move a release most when they are added, each in turn becoming invalid.
fn invalid<'s>(
    beside: &InjectionStrategy<'_>,
    stage: &BackgroundStream<'_>,
    scenes: impl Iterator<Item = &'s WindowFixture<'s>>,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for NamedRow { name, row } in scenes.flat_map(WindowFixture::added) {
        let mut few = odd::values(&row, &stage.ends);
        // A few of each column: the family of odd values has all of them.
        few.retain(|odd| odd.name.ends_with("null") || odd.name.contains("above"));
        let few = few.into_iter().map(|odd| becoming(&name, odd));
        pairs.extend(beside.replaced(&row, few));
    }
    pairs
}

/// The other row, named after what a row becomes with it.
fn becoming(name: &str, other: NamedRow) -> NamedRow {
    let name = format!("{name} becomes one with {}", other.name);
    NamedRow::new(name, other.row)
}

/// Valid values become odd ones, and odd ones others.
fn odd(beside: &InjectionStrategy<'_>, stage: &BackgroundStream<'_>, plain: &Row) -> Vec<Pair> {
    let all = odd::values(plain, &stage.ends);
    let becoming_odd = all
        .iter()
        .map(|odd| NamedRow::new(format!("becomes one with {}", odd.name), odd.row.clone()));
    let mut pairs = beside.replaced(plain, becoming_odd);
    for pair in all.windows(2) {
        if let [from, to] = pair {
            pairs.extend(beside.replaced(&from.row, [becoming(&from.name, to.clone())]));
        }
    }
    pairs
}
