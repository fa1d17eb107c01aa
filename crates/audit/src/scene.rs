//! Windows and keys in which the records of a unit are tried.

use std::sync::Arc;

use super::messages::{InputRow, NamedRow};
use super::movers::{MoverSearch, RecordValues};
use super::stage::BackgroundStream;
use bernstream_synopsis::grid::Span;
use bernstream_worker::pipeline::PlannedRelease;

/// Number of records that are tried in each scene, those that move a function most.
const MOVERS: usize = 2;

/// A window and key, as one release sees them.
pub(super) struct WindowFixture<'a> {
    stage: &'a BackgroundStream<'a>,
    release: &'a PlannedRelease,
    kind: &'static str,
    window: Span,
    key: Option<Arc<[u8]>>,
    others: Vec<RecordValues>,
}

/// A row, and another one that takes its place.
pub(super) struct Replacement {
    pub name: String,
    pub from: InputRow,
    pub to: InputRow,
}

impl<'a> WindowFixture<'a> {
    /// With many records of others, with few, and with none; of each kind one a release.
    pub fn all_kinds(stage: &'a BackgroundStream<'a>) -> [Vec<Self>; 3] {
        let keys = stage.keys();
        let first = keys.first().cloned().flatten();
        let last = keys.last().cloned().flatten();
        let kinds = [
            ("full", stage.full_window(), &first),
            ("sparse", stage.sparse_window(), &first),
            ("empty", stage.empty_window(), &last),
        ];
        kinds.map(|(kind, window, key)| {
            let releases = stage.subject.plan.releases.iter();
            releases
                .map(|release| WindowFixture {
                    stage,
                    release,
                    kind,
                    window,
                    key: key.clone(),
                    others: stage.others_in(release, window, key),
                })
                .collect()
        })
    }

    /// Rows that move the release most when they are added, the first of all first.
    pub fn rows_to_add(&self) -> Vec<NamedRow> {
        let mut rows = Vec::new();
        for values in self.context().best_additions(MOVERS) {
            let name = format!("{}: {values:?} in a {} window", self.name(), self.kind);
            rows.push(NamedRow::new(name, self.row_with_values(&values)));
        }
        rows
    }

    /// Pairs of rows that move the release most when one takes the place of the other.
    pub fn rows_to_replace(&self) -> Vec<Replacement> {
        let mut replacements = Vec::new();
        for [from, to] in self.context().best_replacements(MOVERS) {
            let kind = self.kind;
            replacements.push(Replacement {
                name: format!(
                    "{}: {from:?} becomes {to:?} in a {kind} window",
                    self.name()
                ),
                from: self.row_with_values(&from),
                to: self.row_with_values(&to),
            });
        }
        replacements
    }

    fn name(&self) -> &str {
        &self.release.description().release
    }

    fn context(&self) -> MoverSearch<'_> {
        MoverSearch {
            release: self.release,
            others: &self.others,
        }
    }

    fn row_with_values(&self, values: &RecordValues) -> InputRow {
        self.stage.neighbour_row(
            BackgroundStream::time_in_window(self.window, 0.02),
            self.key.clone(),
            self.stage.all_columns(self.release, values),
        )
    }
}
