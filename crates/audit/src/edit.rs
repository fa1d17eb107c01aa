//! Changes of a row that a promise lets differ.

use std::slice::from_ref;

use super::messages::{InputRow, NamedRow};
use super::pair::NeighbouringPair;
use super::way::InjectionStrategy;

/// A change of a row that a promise lets differ.
pub(super) enum RowEdit {
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

impl RowEdit {
    /// The pairs that differ at `row`, written in this way.
    pub fn pairs_at_row(
        &self,
        way: &InjectionStrategy<'_>,
        name: &str,
        row: &InputRow,
    ) -> Vec<NeighbouringPair> {
        match self {
            RowEdit::Add => vec![way.pair_added(name, from_ref(row))],
            RowEdit::AddMany(copies) => vec![way.pair_added(name, &vec![row.clone(); *copies])],
            RowEdit::Replace(others) => {
                let mut rows = Vec::new();
                for other in others {
                    let values = other.values.clone();
                    rows.push(NamedRow::new(
                        format!("{name} becomes {}", other.name),
                        InputRow {
                            values,
                            ..row.clone()
                        },
                    ));
                }
                way.pairs_replaced(row, rows)
            }
        }
    }
}
