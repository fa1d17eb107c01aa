//! The target tables of a release, exactly one of which must be there.

use std::ops::Range;

use crate::file;
use crate::targets;
use crate::targets::{ReadTarget, TargetContext, with_targets};
use crate::text::{Checked, Document, Field, Spanned};

/// Builds the function of one table; called once for each size that is tried.
pub type Reader =
    Box<dyn Fn(&mut Document<'_>, &TargetContext<'_>) -> Checked<Spanned<ReadTarget>>>;

macro_rules! targets {
    ($($target:ident),*) => {
        /// Every target: the name of its table, and its reader if the table is there.
        fn targets(release: &mut file::Release) -> Vec<(&'static str, Option<Reader>)> {
            vec![$((stringify!($target), reader(release.$target.take(), targets::$target::read))),*]
        }
    };
}
with_targets!(targets);

/// The reader of the only target table.
pub fn only(
    document: &mut Document<'_>,
    place: Range<usize>,
    release: &mut file::Release,
) -> Checked<Reader> {
    let targets = targets(release);
    let known: Vec<&str> = targets.iter().map(|(name, _)| *name).collect();
    let (names, mut found): (Vec<&str>, Vec<Reader>) = targets
        .into_iter()
        .filter_map(|(name, target)| Some((name, target?)))
        .unzip();
    match (found.pop(), &names[..]) {
        (Some(target), [_]) => Ok(target),
        (Some(_), several) => Err(document.not_one_of(place, several, true)),
        (None, _) => Err(document.not_one_of(place, &known, false)),
    }
}

fn reader<T: Clone + 'static>(
    table: Field<T>,
    read: fn(&mut Document<'_>, &TargetContext<'_>, &Range<usize>, T) -> Checked<ReadTarget>,
) -> Option<Reader> {
    let table = table?;
    Some(Box::new(move |document, context| {
        let place = table.span();
        let target = read(document, context, &place, table.get_ref().clone())?;
        Ok(Spanned::new(place, target))
    }))
}
