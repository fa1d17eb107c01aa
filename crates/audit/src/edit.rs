//! What a promise lets differ where a row is.

use std::slice::from_ref;

use super::messages::Row;
use super::pair::Pair;
use super::way::InjectionStrategy;

/// What a promise lets differ where a row is.
pub(super) enum Edit {
    /// The row, or none.
    Add,
    /// So many copies of it, or none: more than count.
    AddMany(usize),
    /// Its values, or other ones; what is there besides is not hidden.
    Replace(Vec<(&'static str, Vec<Option<f64>>)>),
}

impl Edit {
    /// The pairs that differ at `row`, written in this way.
    pub fn pairs(&self, way: &InjectionStrategy<'_>, name: &str, row: &Row) -> Vec<Pair> {
        match self {
            Edit::Add => vec![way.added(name, from_ref(row))],
            Edit::AddMany(copies) => vec![way.added(name, &vec![row.clone(); *copies])],
            Edit::Replace(others) => {
                let other = |(what, values): &(&str, Vec<Option<f64>>)| {
                    (
                        format!("{name} becomes {what}"),
                        Row {
                            values: values.clone(),
                            ..row.clone()
                        },
                    )
                };
                way.replaced(row, others.iter().map(other))
            }
        }
    }
}
