//! The target tables of a release, exactly one of which must be there.

use std::ops::Range;

use crate::file;
use crate::targets;
use crate::targets::{ReadTarget, TargetContext, with_targets};
use crate::text::{Checked, Document, Field, Spanned};

/// Builds the function of one table; called once for each size that is tried.
pub type TargetReader =
    Box<dyn Fn(&mut Document<'_>, &TargetContext<'_>) -> Checked<Spanned<ReadTarget>>>;

/// The name of a target table, and its reader if the table is there.
struct TargetTable {
    name: &'static str,
    reader: Option<TargetReader>,
}

macro_rules! target_tables {
    ($($target:ident),*) => {
        fn target_tables(release: &mut file::Release) -> Vec<TargetTable> {
            vec![$(TargetTable {
                name: stringify!($target),
                reader: target_reader(release.$target.take(), targets::$target::read),
            }),*]
        }
    };
}
with_targets!(target_tables);

/// The reader of the only target table.
pub fn only_target(
    document: &mut Document<'_>,
    place: Range<usize>,
    release: &mut file::Release,
) -> Checked<TargetReader> {
    let mut known = Vec::new();
    let mut given = Vec::new();
    let mut only = None;
    for table in target_tables(release) {
        known.push(table.name);
        if table.reader.is_some() {
            given.push(table.name);
            only = table.reader;
        }
    }
    match only {
        Some(reader) if given.len() == 1 => Ok(reader),
        Some(_) => Err(document.not_one_of(place, &given, true)),
        None => Err(document.not_one_of(place, &known, false)),
    }
}

fn target_reader<T: Clone + 'static>(
    table: Field<T>,
    read: fn(&mut Document<'_>, &TargetContext<'_>, &Range<usize>, T) -> Checked<ReadTarget>,
) -> Option<TargetReader> {
    let table = table?;
    Some(Box::new(move |document, context| {
        let place = table.span();
        let target = read(document, context, &place, table.get_ref().clone())?;
        Ok(Spanned::new(place, target))
    }))
}
