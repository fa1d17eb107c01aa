//! Changes of a row that a promise lets differ.

use std::slice::from_ref;

use super::messages::{NamedRow, Row};
use super::pair::Pair;
use super::way::InjectionStrategy;

/// A change of a row that a promise lets differ.
pub(super) enum Edit {
    /// The row, or none.
    Add,
    /// A number of copies of it, or none: more than count.
    AddMany(usize),
    /// Its values, or other ones; what is there besides is not hidden.
    Replace(Vec<NamedValues>),
}

/// Values that take the place of those of a row, and their name in the report.
pub(super) struct NamedValues {
    pub name: &'static str,
    pub values: Vec<Option<f64>>,
}

impl Edit {
    /// The pairs that differ at `row`, written in this way.
    pub fn pairs(&self, way: &InjectionStrategy<'_>, name: &str, row: &Row) -> Vec<Pair> {
        match self {
            Edit::Add => vec![way.added(name, from_ref(row))],
            Edit::AddMany(copies) => vec![way.added(name, &vec![row.clone(); *copies])],
            Edit::Replace(others) => {
                let mut rows = Vec::new();
                for other in others {
                    let values = other.values.clone();
                    rows.push(NamedRow::new(
                        format!("{name} becomes {}", other.name),
                        Row {
                            values,
                            ..row.clone()
                        },
                    ));
                }
                way.replaced(row, rows)
            }
        }
    }
}
