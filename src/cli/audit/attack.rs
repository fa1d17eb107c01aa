//! An attack on every release, with the pair of streams that changed it most.

use serde::Serialize;

use super::replay::ReplayFindings;
use crate::cli::failure::Failure;
use crate::cli::progress::WorkDone;
use bernstream_audit as audit;
use bernstream_audit::found_attack::{KeyAttack, KeyScene};
use bernstream_audit::trade_off;
use bernstream_audit::trade_off::{NeighbouringStreams, WindowAttack};
use bernstream_audit::{AttackReport, AuditSubject, Deadline, NeighbouringPair, decode_batches};

/// More than there are releases.
const SCENES: usize = 1 << 16;

/// Findings of an attack on one release, or why there was none.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum AttackOutcome {
    Attacked {
        pair: String,
        #[serde(flatten)]
        attacked: Box<AttackReport>,
    },
    NotAttacked {
        release: String,
        why: String,
    },
}

/// Attackers of the releases of a subject.
pub struct Attackers<'a> {
    pub subject: &'a AuditSubject<'a>,
    pub seed: u64,
    /// The probability with which each test fails a correct program.
    pub alarm: f64,
    /// The most windows of each attack.
    pub most_windows: u64,
}

impl Attackers<'_> {
    /// Attacks until `deadline`, every release for an equal part of the time, and counts releases in `done`.
    ///
    /// # Errors
    ///
    /// If a stream could not be made, or a window not released.
    pub fn attack_all(
        &self,
        replayed: &ReplayFindings,
        pairs: &[NeighbouringPair],
        deadline: &Deadline,
        done: &WorkDone,
    ) -> Result<Vec<AttackOutcome>, Failure> {
        let mut outcomes = Vec::new();
        let releases = self.subject.plan.releases.len();
        for place in 0..releases {
            done.set(place as u64, releases as u64);
            let worst = replayed
                .changes
                .iter()
                .filter(|change| change.place == place && change.of == "values")
                .max_by(|a, b| a.of_sensitivity.total_cmp(&b.of_sensitivity));
            let pair = worst.and_then(|worst| pairs.iter().find(|pair| pair.name == worst.pair));
            #[expect(clippy::cast_precision_loss, reason = "a handful of releases")]
            let share = deadline.part_of_rest(1.0 / (releases - place) as f64);
            let scenes = KeyScene::scenes_of_release(self.subject, place);
            match scenes.is_empty() {
                true => outcomes.push(self.attack_release(place, pair, &share)?),
                false => outcomes.extend(self.attack_found_keys(place, scenes, &share)?),
            }
        }
        Ok(outcomes)
    }

    /// Attacks a release whose keys nobody listed, each scene for an equal part of the time.
    fn attack_found_keys(
        &self,
        place: usize,
        scenes: Vec<KeyScene>,
        deadline: &Deadline,
    ) -> Result<Vec<AttackOutcome>, Failure> {
        let release = self.subject.plan.releases.get(place);
        let release = release.map(|release| release.description().release.clone());
        let release = release.unwrap_or_default();
        let mut outcomes = Vec::new();
        let count = scenes.len();
        for (number, scene) in scenes.into_iter().enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "a handful of scenes")]
            let share = deadline.part_of_rest(1.0 / (count - number) as f64);
            let pair = scene.name.clone();
            // Scenes have noise of their own, beside every release.
            let draws = (self.seed, (place + (number + 1) * SCENES) as u64);
            let attack = KeyAttack::new(self.subject, place, scene);
            let done = attack
                .and_then(|attack| attack.run_attack(draws, self.alarm, self.most_windows, &share));
            outcomes.push(match done {
                Ok(attacked) => AttackOutcome::Attacked {
                    pair,
                    attacked: Box::new(attacked),
                },
                Err(trade_off::AttackError::Pipeline(error)) => return Err(error.into()),
                Err(why) => AttackOutcome::NotAttacked {
                    release: release.clone(),
                    why: format!("{pair}: {why}"),
                },
            });
        }
        Ok(outcomes)
    }

    fn attack_release(
        &self,
        place: usize,
        pair: Option<&NeighbouringPair>,
        deadline: &Deadline,
    ) -> Result<AttackOutcome, Failure> {
        let subject = self.subject;
        let release = subject
            .plan
            .releases
            .get(place)
            .map(|release| release.description().release.clone());
        let release = release.unwrap_or_default();
        if deadline.is_stopped() {
            return Ok(AttackOutcome::NotAttacked {
                release,
                why: trade_off::AttackError::Stopped.to_string(),
            });
        }
        let Some(pair) = pair else {
            return Ok(AttackOutcome::NotAttacked {
                release,
                why: "no pair of streams changed it".to_owned(),
            });
        };
        let with = decode_batches(subject, &pair.with).map_err(not_attacked)?;
        let without = decode_batches(subject, &pair.without).map_err(not_attacked)?;
        let neighbours = NeighbouringStreams {
            with: &with,
            without: &without,
        };
        let seed = (self.seed, place as u64);
        let done = WindowAttack::new(subject.plan, place, neighbours, &subject.replayed_windows())
            .and_then(|attack| attack.run_attack(seed, self.alarm, self.most_windows, deadline));
        match done {
            Ok(attacked) => Ok(AttackOutcome::Attacked {
                pair: pair.name.clone(),
                attacked: Box::new(attacked),
            }),
            Err(trade_off::AttackError::Pipeline(error)) => Err(error.into()),
            Err(why) => Ok(AttackOutcome::NotAttacked {
                release,
                why: why.to_string(),
            }),
        }
    }
}

fn not_attacked(error: audit::ReplayError) -> Failure {
    Failure::Other(error.to_string())
}
