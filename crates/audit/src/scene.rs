//! Windows and keys in which the records of a unit are tried.

use std::sync::Arc;

use super::messages::{NamedRow, Row};
use super::movers::{Context, Values};
use super::stage::BackgroundStream;
use bernstream_synopsis::grid::Span;
use bernstream_worker::pipeline::Release;

/// Number of records that are tried in each scene, those that move a function most.
const MOVERS: usize = 2;

/// A window and key, as one release sees them.
pub(super) struct WindowFixture<'a> {
    stage: &'a BackgroundStream<'a>,
    release: &'a Release,
    kind: &'static str,
    window: Span,
    key: Option<Arc<[u8]>>,
    others: Vec<Values>,
}

/// A row, and another one that takes its place.
pub(super) struct Replacement {
    pub name: String,
    pub from: Row,
    pub to: Row,
}

impl<'a> WindowFixture<'a> {
    /// With many records of others, with few, and with none; of each kind one a release.
    pub fn all(stage: &'a BackgroundStream<'a>) -> [Vec<Self>; 3] {
        let keys = stage.keys();
        let first = keys.first().cloned().flatten();
        let last = keys.last().cloned().flatten();
        let kinds = [
            ("full", stage.full(), &first),
            ("sparse", stage.sparse(), &first),
            ("empty", stage.empty(), &last),
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
    pub fn added(&self) -> Vec<NamedRow> {
        let mut rows = Vec::new();
        for values in self.context().added(MOVERS) {
            let name = format!("{}: {values:?} in a {} window", self.name(), self.kind);
            rows.push(NamedRow::new(name, self.row(&values)));
        }
        rows
    }

    /// Pairs of rows that move the release most when one takes the place of the other.
    pub fn replaced(&self) -> Vec<Replacement> {
        let mut replacements = Vec::new();
        for [from, to] in self.context().replaced(MOVERS) {
            let kind = self.kind;
            replacements.push(Replacement {
                name: format!(
                    "{}: {from:?} becomes {to:?} in a {kind} window",
                    self.name()
                ),
                from: self.row(&from),
                to: self.row(&to),
            });
        }
        replacements
    }

    fn name(&self) -> &str {
        &self.release.description().release
    }

    fn context(&self) -> Context<'_> {
        Context {
            release: self.release,
            others: &self.others,
        }
    }

    fn row(&self, values: &Values) -> Row {
        self.stage.row(
            BackgroundStream::time(self.window, 0.02),
            self.key.clone(),
            self.stage.spread(self.release, values),
        )
    }
}
