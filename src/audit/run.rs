//! Many pairs, one after the other.

use std::sync::Arc;

use super::compare::{Report, compare};
use super::error::Error;
use super::observed::Observed;
use super::pair::Pair;
use super::replay::replay;
use super::subject::Subject;

/// Everything at once: replays each pair and compares, until there are no more or `go_on` says no.
///
/// # Errors
///
/// If a replay cannot be carried out; what it finds is in the report.
pub fn run(subject: &Subject<'_>, pairs: &[Pair], seed: u64, mut go_on: impl FnMut() -> bool) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut without: Option<(&Pair, Observed)> = None;
    for pair in pairs {
        if !go_on() {
            break;
        }
        let is_known = |(known, _): &(&Pair, _)| Arc::ptr_eq(&known.without, &pair.without);
        if !without.as_ref().is_some_and(is_known) {
            without = Some((pair, replay(subject, &pair.without, seed)?));
        }
        let with = replay(subject, &pair.with, seed)?;
        if let Some((_, without)) = &without {
            report.add(pair, compare(subject, pair, &with, without));
        }
    }
    Ok(report)
}
