//! Part of a window that one of several readers has, and how the window comes of all of them.

use std::sync::Arc;

use super::accumulator::{Accumulator, AccumulatorSpec};
use super::open::OpenWindow;
use super::rules::{ReleaseInput, WindowRules};
use bernstream_synopsis::grid::Span;

/// Part of a window of one reader that it has read to its end.
///
/// What is kept of records are integers, the first records of each user and the first records of each key, in an order that the
/// records alone decide, and of keys that nobody listed the names of those that count, or that there are too many. So the joined parts are the window, bit for bit, however many readers there are, whatever each of them
/// reads, and in whatever order they are joined.
pub struct WindowPart {
    pub(super) rules: Arc<WindowRules>,
    pub(super) all: Arc<[ReleaseInput]>,
    pub(super) span: Span,
    /// Open windows, one a form; `None` where the reader has no records.
    pub(super) forms: Vec<Option<OpenWindow>>,
}

/// A closed window, for each form the groups: one a declared key, in the declared order, empty ones too; of counts by key one for all.
#[derive(Debug)]
pub struct Window {
    pub span: Span,
    pub forms: Vec<Vec<WindowGroup>>,
}

/// Content of a window for one key.
#[derive(Debug)]
pub struct WindowGroup {
    pub key: Option<String>,
    pub accumulator: Accumulator,
}

impl WindowPart {
    pub fn span(&self) -> Span {
        self.span
    }

    /// Adds what another reader has of the same window, with the same rules.
    pub fn join_part(&mut self, other: WindowPart) {
        for ((form, ours), theirs) in self.all.iter().zip(&mut self.forms).zip(other.forms) {
            join_open(&self.rules, form, ours, theirs);
        }
    }

    /// The window, once all parts are joined: who stays under a cap is decided here.
    pub fn into_window(self) -> Window {
        let WindowPart {
            rules,
            all,
            span,
            forms,
        } = self;
        let forms = all.iter().zip(forms);
        Window {
            span,
            forms: forms
                .map(|(form, open)| settled_groups(&rules, form, open))
                .collect(),
        }
    }
}

/// The groups of one form: one a declared key, in the declared order, or one of all keys.
fn settled_groups(
    rules: &WindowRules,
    form: &ReleaseInput,
    open: Option<OpenWindow>,
) -> Vec<WindowGroup> {
    let spec = &form.accumulator;
    let open = open.unwrap_or_else(|| OpenWindow::new(rules, spec));
    let accumulators = open.into_accumulators(spec);
    let keys = match spec {
        AccumulatorSpec::Keys(_) | AccumulatorSpec::FoundKeys(_) => &[],
        _ => rules.keys.as_deref().unwrap_or_default(),
    };
    let mut keys = keys.iter().cloned();
    let mut groups = Vec::with_capacity(accumulators.len());
    for accumulator in accumulators {
        groups.push(WindowGroup {
            key: keys.next(),
            accumulator,
        });
    }
    groups
}

/// Adds what one form has of other records; what waits for the cap of a user waits for that of both together.
pub(super) fn join_open(
    rules: &WindowRules,
    form: &ReleaseInput,
    ours: &mut Option<OpenWindow>,
    theirs: Option<OpenWindow>,
) {
    let Some(theirs) = theirs else { return };
    match ours {
        Some(ours) => ours.join_window(&form.accumulator, rules.cap.as_ref(), theirs),
        None => *ours = Some(theirs),
    }
}
