//! All rows of a ledger, with their progress on a terminal.

use crate::cli::failure::Failure;
use crate::cli::progress::show_progress;
use bernstream_config::WorkerSettings;
use bernstream_ledger::{Ledger, LedgerError, StoredRow};

/// The ledger, once all of it is verified.
///
/// # Errors
///
/// If it is missing or damaged, or cannot be read.
pub fn verified_ledger(settings: &WorkerSettings) -> Result<Ledger, LedgerError> {
    show_progress("verifying the rows of the ledger", |done| {
        Ledger::inspect_with_progress(&settings.ledger, &mut |rows, all| done.set(rows, all))
    })
}

/// Passes every row to `each`, in sequence, while a terminal shows `what`.
///
/// # Errors
///
/// The first error of `each`, or if the ledger cannot be read or is damaged.
pub(super) fn each_row(
    what: &str,
    ledger: &Ledger,
    mut each: impl FnMut(StoredRow) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut rows = 0;
    let all = ledger.row_count();
    show_progress(what, |done| {
        ledger.each_row(|stored| {
            rows += 1;
            done.set(rows, all);
            each(stored)
        })
    })
}
