//! An attack on every release, with the pair of streams that changed it most.

use serde::Serialize;

use super::replay::{Change, Replayed};
use crate::cli::failure::Failure;
use crate::cli::progress::WorkDone;
use bernstream_audit as audit;
use bernstream_audit::trade_off;
use bernstream_audit::trade_off::{Attack, Neighbours};
use bernstream_audit::{Attacked, Deadline, Pair, Subject, batches};

/// What an attack on one release found, or why there was none.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    Attacked {
        pair: String,
        #[serde(flatten)]
        attacked: Box<Attacked>,
    },
    NotAttacked {
        release: String,
        why: String,
    },
}

/// Attacks until `deadline`, and counts releases in `done`; every release for an equal part of the time and with `most` windows at most; `alarm` is the probability
/// with which each test fails a correct program.
///
/// # Errors
///
/// If a stream could not be made, or a window not released.
pub fn attack(
    subject: &Subject<'_>,
    replayed: &Replayed,
    pairs: &[Pair],
    seed: u64,
    (alarm, most): (f64, u64),
    deadline: &Deadline,
    done: &WorkDone,
) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    let releases = subject.plan.releases.len();
    for place in 0..releases {
        done.set(place as u64, releases as u64);
        let of_values = |change: &&Change| change.place == place && change.of == "values";
        let worst = replayed.changes.iter().filter(of_values);
        let worst = worst.max_by(|a, b| a.of_sensitivity.total_cmp(&b.of_sensitivity));
        let pair = worst.and_then(|worst| pairs.iter().find(|pair| pair.name == worst.pair));
        #[expect(clippy::cast_precision_loss, reason = "a handful of releases")]
        let share = deadline.part(1.0 / (releases - place) as f64);
        outcomes.push(of_release(
            subject,
            place,
            pair,
            seed,
            (alarm, most),
            &share,
        )?);
    }
    Ok(outcomes)
}

fn of_release(
    subject: &Subject<'_>,
    place: usize,
    pair: Option<&Pair>,
    seed: u64,
    (alarm, most): (f64, u64),
    deadline: &Deadline,
) -> Result<Outcome, Failure> {
    let release = subject
        .plan
        .releases
        .get(place)
        .map(|release| release.description().release.clone());
    let release = release.unwrap_or_default();
    if deadline.is_stopped() {
        return Ok(Outcome::NotAttacked {
            release,
            why: trade_off::Error::Stopped.to_string(),
        });
    }
    let Some(pair) = pair else {
        return Ok(Outcome::NotAttacked {
            release,
            why: "no pair of streams changed it".to_owned(),
        });
    };
    let [with, without] = [&pair.with, &pair.without].map(|stream| batches(subject, stream));
    let other = |error: audit::Error| Failure::Other(error.to_string());
    let with = with.map_err(other)?;
    let without = without.map_err(other)?;
    let neighbours = Neighbours {
        with: &with,
        without: &without,
    };
    let done = Attack::new(subject.plan, place, neighbours, &subject.windows())
        .and_then(|attack| attack.run((seed, place as u64), alarm, most, deadline));
    match done {
        Ok(attacked) => Ok(Outcome::Attacked {
            pair: pair.name.clone(),
            attacked: Box::new(attacked),
        }),
        Err(trade_off::Error::Pipeline(error)) => Err(error.into()),
        Err(why) => Ok(Outcome::NotAttacked {
            release,
            why: why.to_string(),
        }),
    }
}
