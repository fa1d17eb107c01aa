//! What a ledger has recorded of its settings: with it, a choice of `"auto"` holds until the file changes.
//!
//! A new version may choose otherwise for the same file. Its settings are then those of the ledger again: every setting
//! follows from the file and the recorded choices, and where nothing else differs, nothing has changed.

use crate::config::settings::{Choice, Settings};
use crate::config::{canonical, diff};

/// The newest settings of a ledger, as recorded ([`canonical::recorded`]).
#[derive(Clone, Debug)]
pub struct Recorded(pub String);

impl Recorded {
    /// The noise and the size of a release; `None` if it has no such release, or if this version cannot read it.
    pub fn choice(&self, release: &str) -> Option<Choice> {
        canonical::choice(&self.0, release)
    }

    /// Whether these settings are the recorded ones, chosen for the same request where the ledger says for which.
    pub fn is_of(&self, settings: &Settings) -> bool {
        diff::differences(&self.0, &canonical::recorded(settings)).is_empty()
    }
}
