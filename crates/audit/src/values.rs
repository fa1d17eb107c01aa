//! "Other values in one record": what is not valid among them. That the record is there, its time and its key are not hidden.

use super::edit::Edit;
use super::everywhere::everywhere;
use super::messages::Row;
use super::pair::Pair;
use super::scene::WindowFixture;
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
    let most = movers.iter().flatten().next().map(|(_, rows)| rows);
    let plain = stage.plain(most.map(|[from, _]| from));
    let other = most.map_or_else(|| stage.middle.clone(), |[_, to]| to.values.clone());
    let edit = Edit::Replace(vec![
        ("other values", other),
        ("null", vec![None; plain.values.len()]),
    ]);
    let replaced = |(name, [from, to]): (String, [Row; 2])| beside.replaced(&from, [(name, to)]);
    let mut families: Vec<Vec<Pair>> = movers
        .into_iter()
        .map(|pairs| pairs.into_iter().flat_map(replaced).collect())
        .collect();
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
    let becomes = |(about, row): (String, Row)| {
        let odd = odd::values(&row, &stage.ends).into_iter();
        // A few of each column: the family of odd values has all of them.
        let few = odd.filter(|(what, _)| what.ends_with("null") || what.contains("above"));
        let named = few
            .map(|(what, odd)| (format!("{about} becomes one with {what}"), odd))
            .collect::<Vec<_>>();
        beside.replaced(&row, named)
    };
    scenes
        .flat_map(WindowFixture::added)
        .flat_map(becomes)
        .collect()
}

/// Valid values become odd ones, and odd ones others.
fn odd(beside: &InjectionStrategy<'_>, stage: &BackgroundStream<'_>, plain: &Row) -> Vec<Pair> {
    let all = odd::values(plain, &stage.ends);
    let mut pairs = beside.replaced(
        plain,
        all.iter()
            .map(|(what, row)| (format!("becomes one with {what}"), row.clone())),
    );
    for pair in all.windows(2) {
        if let [(name, from), (what, to)] = pair {
            pairs.extend(beside.replaced(
                from,
                [(format!("{name} becomes one with {what}"), to.clone())],
            ));
        }
    }
    pairs
}
