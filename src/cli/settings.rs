//! The settings of a command: those of its file, with what the ledger has recorded of `"auto"`.

use std::path::Path;

use crate::config::{Faults, Release, Settings};
use crate::ledger::Ledger;

/// Reads the file. Where the ledger that it names can be read, the choices of `"auto"` that it has recorded hold until the
/// file changes.
///
/// # Errors
///
/// All faults of the file, or that it cannot be read.
pub fn load(path: &Path) -> Result<Settings, Faults> {
    // A ledger that cannot be read is told by whoever opens it.
    Settings::load_keeping(path, |params| Ledger::newest_settings(params).ok())
}

/// That a release goes on with the choice of an earlier version; `None` if it has this version's.
pub fn kept(release: &Release) -> Option<String> {
    let table = release.auto.as_ref().filter(|table| table.is_kept())?;
    Some(format!(
        "release {:?} goes on with {}, which the ledger has recorded for this file; \"auto\" would select {} today: to change to \
         it, write that into the file",
        release.name,
        table.taken.written(&release.axes),
        table.best.written(&release.axes),
    ))
}
