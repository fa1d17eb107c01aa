//! The settings of a command: those of its file, with what the ledger has recorded of `"auto"`.

use std::path::Path;

use crate::cli::progress::show_during;
use bernstream_config::{Faults, ReleaseSettings, WorkerSettings};
use bernstream_ledger::{Ledger, PendingWrite};
use bernstream_synopsis::description::PrivacyDefinition;

const READING: &str = "reading the configuration, and selecting what is automatic";

/// Reads the file. Where the ledger that it names can be read, the choices of `"auto"` that it has recorded hold until the
/// file changes, and its total as long as the promise is the same.
///
/// # Errors
///
/// All faults of the file, or that it cannot be read.
pub fn load_settings(path: &Path) -> Result<WorkerSettings, Faults> {
    // A ledger that cannot be read is told by whoever opens it.
    WorkerSettings::load_keeping(path, |params| Ledger::newest_settings(params).ok())
}

/// Reads the file, like [`load_settings`], while a terminal shows that this may take its time.
///
/// # Errors
///
/// Those of [`load_settings`].
pub fn load_visibly(path: &Path) -> Result<WorkerSettings, Faults> {
    show_during(READING, || load_settings(path))
}

/// Reads the file for whoever may not change the ledger: one that a crash has left in the middle of a write is not read, because only a
/// writer can roll that back.
///
/// # Errors
///
/// Those of [`load_settings`].
pub fn load_only_looking(path: &Path) -> Result<WorkerSettings, Faults> {
    show_during(READING, || {
        WorkerSettings::load_keeping(path, |params| match Ledger::pending_write(params) {
            Ok(Some(PendingWrite::Unfinished)) => None,
            _ => Ledger::newest_settings(params).ok(),
        })
    })
}

/// Tells that a ledger keeps the total of its promise, where a new one would have more; `None` where it has this version's.
pub fn kept_total(settings: &WorkerSettings, path: &Path) -> Option<String> {
    if settings.privacy.definition != PrivacyDefinition::Gaussian {
        return None;
    }
    let total = settings.privacy.total;
    let today = WorkerSettings::load(path).ok()?.privacy.total;
    (today != total).then(|| {
        format!("the ledger keeps its total, {total}; a new one would have {today} for the same epsilon and delta")
    })
}

/// The name of a release with a colon, for a line that several releases have; empty for the only one.
pub fn name_before(settings: &WorkerSettings, release: &ReleaseSettings) -> String {
    if settings.releases.len() > 1 {
        format!("{}: ", release.name)
    } else {
        String::new()
    }
}

/// Tells that a release goes on with the choice of an earlier version; `None` if it has this version's.
pub fn kept_choice(release: &ReleaseSettings) -> Option<String> {
    let table = release
        .auto
        .as_ref()
        .filter(|table| table.is_recorded_choice())?;
    Some(format!(
        "release {:?} goes on with {}, which the ledger has recorded for this file; \"auto\" would select {} today: to change to \
         it, write that into the file",
        release.name,
        table.taken.keys_in_file(&release.axes, &release.function),
        table.best.keys_in_file(&release.axes, &release.function),
    ))
}
