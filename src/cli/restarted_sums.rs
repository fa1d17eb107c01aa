//! Running sums that start over under the settings of a file, because their noise becomes that of another series.

use bernstream_config::{ReleaseSettings, WorkerSettings, canonical};
use bernstream_ledger::Ledger;
use bernstream_worker::pipeline::NoiseSeries;

/// A line for each release whose running sum, in the ledger, does not go on under these settings. A state that cannot be read is told by
/// the worker, which then does not go on.
pub fn restarted_sums(settings: &WorkerSettings, ledger: &Ledger) -> Vec<String> {
    let mut lines = Vec::new();
    for release in &settings.releases {
        if starts_over(settings, release, ledger).unwrap_or(false) {
            lines.push(format!(
                "the running sum of release {:?} starts over with the next window, without the records before it",
                release.name
            ));
        }
    }
    lines
}

/// The slots where the ledger keeps the noise of a release that is a running sum: one for each key; a table by key is one sum.
pub fn series_slots(settings: &WorkerSettings, release: &ReleaseSettings) -> Vec<String> {
    match &settings.windows.keys {
        Some(keys) if release.function.keyed_counts().is_none() => keys
            .iter()
            .map(|key| NoiseSeries::slot_name(&release.name, Some(key)))
            .collect(),
        _ => vec![NoiseSeries::slot_name(&release.name, None)],
    }
}

/// Returns whether the sum of a release, or that of one of its keys, starts over; `None` if that cannot be said.
fn starts_over(
    settings: &WorkerSettings,
    release: &ReleaseSettings,
    ledger: &Ledger,
) -> Option<bool> {
    let Some(series) = settings.noise_series(release).ok()? else {
        return Some(false);
    };
    let series = NoiseSeries {
        series,
        identity: canonical::release_identity(settings, release),
    };
    let values = release.shape().value_count();
    for slot in series_slots(settings, release) {
        if let Some(stored) = ledger.noise_state(&slot).ok()?
            && !series.continues_sum(&stored, values).ok()?
        {
            return Some(true);
        }
    }
    Some(false)
}
