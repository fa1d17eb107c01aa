//! Many pairs, one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::compare::{PairsReport, compare_replays};
use super::error::ReplayError;
use super::messages::InputMessage;
use super::observed::ReplayObservations;
use super::pair::NeighbouringPair;
use super::replay::replay_stream;
use super::subject::AuditSubject;

/// Everything at once: replays each pair and compares, until there are no more or `go_on` says no.
///
/// # Errors
///
/// If a replay cannot be carried out; what it finds is in the report.
pub fn run_pairs(
    subject: &AuditSubject<'_>,
    pairs: &[NeighbouringPair],
    seed: u64,
    mut go_on: impl FnMut() -> bool,
) -> Result<PairsReport, ReplayError> {
    let mut report = PairsReport::default();
    // Of the streams without the unit, the one that most pairs share is kept, and the one that was replayed last.
    let shared = most_shared(pairs);
    let mut common: Option<StreamReplay<'_>> = None;
    let mut last: Option<StreamReplay<'_>> = None;
    for pair in pairs {
        if !go_on() {
            break;
        }
        let known = if shared.is_some_and(|shared| Arc::ptr_eq(shared, &pair.without)) {
            &mut common
        } else {
            &mut last
        };
        let without = match known.take() {
            Some(known) if Arc::ptr_eq(known.stream, &pair.without) => known.observed,
            _ => replay_stream(subject, &pair.without, seed)?,
        };
        let with = replay_stream(subject, &pair.with, seed)?;
        report.add_pair(pair, compare_replays(subject, pair, &with, &without));
        *known = Some(StreamReplay {
            stream: &pair.without,
            observed: without,
        });
    }
    Ok(report)
}

/// A stream that was replayed.
struct StreamReplay<'a> {
    stream: &'a Arc<Vec<InputMessage>>,
    observed: ReplayObservations,
}

fn most_shared(pairs: &[NeighbouringPair]) -> Option<&Arc<Vec<InputMessage>>> {
    let mut sharing: BTreeMap<*const Vec<InputMessage>, Vec<&Arc<Vec<InputMessage>>>> =
        BTreeMap::new();
    for pair in pairs {
        let stream = &pair.without;
        sharing.entry(Arc::as_ptr(stream)).or_default().push(stream);
    }
    let most = sharing.into_values().max_by_key(|streams| streams.len())?;
    most.first().copied()
}
