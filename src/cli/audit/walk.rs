//! The walk of every release on the pair that changed it most.

use std::time::Instant;

use serde::Serialize;

use super::replay::{Change, Replayed};
use crate::audit::trade_off::{self, Neighbours, Walk, Walked};
use crate::audit::{Pair, Subject, batches};
use crate::cli::failure::Failure;

/// What a walk of one release found, or why there was none.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    Walked {
        pair: String,
        #[serde(flatten)]
        walked: Box<Walked>,
    },
    NotWalked {
        release: String,
        why: String,
    },
}

/// Walks until `end`, every release for an equal part of the time and `most` windows at most; `alarm` is the probability of a false
/// alarm, of each test.
///
/// # Errors
///
/// If a stream could not be made, or a window not released.
pub fn walk(
    subject: &Subject<'_>,
    replayed: &Replayed,
    pairs: &[Pair],
    seed: u64,
    (alarm, most): (f64, u64),
    end: Instant,
) -> Result<Vec<Outcome>, Failure> {
    let other = |error: &dyn std::fmt::Display| Failure::Other(error.to_string());
    let mut outcomes = Vec::new();
    let releases = subject.plan.releases.len();
    for (place, release) in subject.plan.releases.iter().enumerate() {
        let name = release.description().release.clone();
        let of_values = |change: &&Change| change.place == place && change.of == "values";
        let worst = replayed.changes.iter().filter(of_values);
        let worst = worst.max_by(|a, b| a.found_of_declared.total_cmp(&b.found_of_declared));
        let pair = worst.and_then(|worst| pairs.iter().find(|pair| pair.name == worst.pair));
        let Some(pair) = pair else {
            outcomes.push(Outcome::NotWalked { release: name, why: "no pair changed it".to_owned() });
            continue;
        };
        let with = batches(subject, &pair.with).map_err(|error| other(&error))?;
        let without = batches(subject, &pair.without).map_err(|error| other(&error))?;
        let share = end.saturating_duration_since(Instant::now()).div_f64((releases - place) as f64);
        let until = Instant::now() + share;
        let neighbours = Neighbours { with: &with, without: &without };
        let done = Walk::new(subject.plan, place, neighbours, &subject.windows())
            .and_then(|walk| walk.run((seed, place as u64), alarm, most, until));
        outcomes.push(match done {
            Ok(walked) => Outcome::Walked { pair: pair.name.clone(), walked: Box::new(walked) },
            Err(trade_off::Error::Pipeline(error)) => return Err(error.into()),
            Err(why) => Outcome::NotWalked { release: name, why: why.to_string() },
        });
    }
    Ok(outcomes)
}
