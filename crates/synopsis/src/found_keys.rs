//! Keys that nobody listed: how a table by key found its rows, and until when each of them is published.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::calibrate::Delta;
use crate::clock::Timestamp;
use crate::description::{
    Description, KeyedCounts, NoiseDescription, PrivacyDefinition, UnitDescription,
};
use crate::key_parts::is_found_part_name;
use crate::key_threshold::{FoundLaw, UNIT_GRAINS, key_threshold};
use crate::law::NoiseDistribution;
use crate::tables::ConfidenceInterval;
use crate::{Adjacency, Basis, KeyBasis, KeyColumn, KeyStatistic};

/// Largest difference of the threshold from the one that is computed here: another machine may round a logarithm otherwise.
const ROUNDING: u64 = 1;

/// Rule by which a table found the keys that nobody listed, and what it found.
///
/// A key that is not announced is *found* where its count with truncated Laplace noise exceeds the threshold. It is then announced: every
/// later window publishes it, whatever its count is, until the time that its row says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundKeys {
    /// Threshold that the noisy count of a key exceeds where it is found, in grid units of the noise; the noise that finds keys is never
    /// larger, either way.
    pub threshold: u64,
    /// The delta that the threshold was made for.
    pub delta: Delta,
    /// Time for which a key stays announced after the last window that published it above the threshold, in seconds.
    pub keep_seconds: u64,
    /// Most rows of the table.
    pub most: u32,
    /// Longest key, in bytes.
    pub longest: u32,
    /// Test whether there are too many keys to look for new ones; absent where it is not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overfull: Option<OverfullRule>,
    /// What the table says of each key. An Arrow message has it in columns of its own instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<FoundRow>,
}

/// Test whether a window has too many different keys to look for new ones, and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverfullRule {
    /// A window with so many different keys is overfull for certain.
    pub limit: u64,
    /// A window with at most so many is not.
    pub soft_limit: u64,
    /// The window has too many: its table is empty.
    pub is_overfull: bool,
}

/// What a table says of the key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundRow {
    /// The key was found in this window. Its count is selected to be above the threshold.
    pub is_new: bool,
    /// Every window that begins before this time publishes the key.
    pub until: Timestamp,
}

impl FoundKeys {
    /// Threshold in users or records.
    pub fn threshold_count(&self) -> f64 {
        float(self.threshold) / float(UNIT_GRAINS)
    }

    /// The interval of the number of a new key whose published number this is, with noise of this scale.
    pub fn interval_of_new(&self, published: f64, scale: f64, level: f64) -> ConfidenceInterval {
        let law = FoundLaw {
            scale,
            threshold: float(self.threshold),
        };
        law.count_interval(published * float(UNIT_GRAINS), level)
    }

    /// Number of keys that were found in this window.
    pub fn new_keys(&self) -> usize {
        self.rows.iter().filter(|row| row.is_new).count()
    }

    /// The window has too many different keys to look for new ones.
    pub fn is_overfull(&self) -> bool {
        self.overfull.is_some_and(|rule| rule.is_overfull)
    }

    /// Time until which a key stays announced that a window with this end published above the threshold.
    pub fn until(&self, window_end: Timestamp) -> Timestamp {
        window_end.plus(Duration::from_secs(self.keep_seconds))
    }

    /// Says what is wrong, if anything is, with the rows of a table with these keys.
    fn check_rows(&self, keys: &[String], description: &Description) -> Result<(), String> {
        if self.rows.len() != keys.len() {
            return Err("it does not say of each key whether it is new".to_owned());
        }
        let most = if self.is_overfull() { 0 } else { self.most };
        if self.most == 0 || keys.len() > most as usize {
            return Err("its table has more keys than it can have".to_owned());
        }
        if !keys.is_sorted_by(|one, next| one.as_bytes() < next.as_bytes()) {
            return Err("the keys of its table are not in the order of their bytes".to_owned());
        }
        let longest = self.longest as usize;
        if keys.iter().any(|key| key.is_empty() || key.len() > longest) {
            return Err("a key of its table is empty or too long".to_owned());
        }
        let window = description.window;
        let are_announced = self.rows.iter().all(|row| {
            row.until > window.start
                && row.until <= Timestamp::LATEST
                && (!row.is_new || row.until == self.until(window.end))
        });
        match are_announced {
            true => Ok(()),
            false => Err("a key of its table is not announced for the time that it is".to_owned()),
        }
    }

    /// Says what is wrong, if anything is, with the noise that found the keys, and the threshold.
    fn check_law(&self, noise: &NoiseDescription, counts: &KeyedCounts) -> Result<(), String> {
        if noise.law != NoiseDistribution::DiscreteLaplace || noise.grid != 1.0 {
            return Err("its keys were found by noise that is not that of found keys".to_owned());
        }
        let expected = whole_number(noise.scale)
            .and_then(|scale| key_threshold(scale, counts.max_keys, self.delta));
        match expected {
            Some(expected) if expected.abs_diff(self.threshold) <= ROUNDING => Ok(()),
            _ => Err("its keys were found above another threshold than its noise needs".to_owned()),
        }
    }
}

/// Says what is wrong, if anything is, with a table of keys that nobody listed. Whether its counts fit is for [`check_new_rows`] to say.
pub(crate) fn check_found_keys(
    found: &FoundKeys,
    basis: &KeyBasis,
    counts: &KeyedCounts,
    description: &Description,
) -> Result<(), String> {
    let privacy = &description.privacy;
    let statistic = match privacy.unit {
        UnitDescription::User { .. } => KeyStatistic::Users,
        UnitDescription::Record => KeyStatistic::Records,
    };
    let unit = 1.0 / float(UNIT_GRAINS);
    if basis.columns[..] != [KeyColumn { statistic, unit }] || basis.units.is_some() {
        return Err("its keys were found by another number than that of units".to_owned());
    }
    let names = &description.key_columns;
    if !names.iter().all(|name| is_found_part_name(name)) {
        return Err("a column of its keys is called as one of the table itself".to_owned());
    }
    // A key that only one unit has can be named, with a probability of at most delta; and that a unit is there must be hidden.
    let hides_presence = privacy.adjacency == Adjacency::AddRemove;
    if privacy.definition == PrivacyDefinition::PureEpsilon || !hides_presence {
        return Err("its definition of privacy cannot find keys".to_owned());
    }
    let is_running_sum = description.panes.is_some_and(|panes| panes.step.is_some());
    if is_running_sum {
        return Err("running sums do not find keys".to_owned());
    }
    if let Some(OverfullRule {
        limit, soft_limit, ..
    }) = found.overfull
        && soft_limit >= limit
    {
        return Err("the limits of its number of keys are not in order".to_owned());
    }
    found.check_law(&description.noise, counts)?;
    found.check_rows(&basis.keys, description)
}

/// Says what is wrong, if anything is, with the counts of keys that nobody listed: those of new keys are above the threshold, and any key
/// above it stays announced as long as a new one.
pub(crate) fn check_new_rows(description: &Description, values: &[f64]) -> Result<(), String> {
    let Basis::Keys(KeyBasis {
        found: Some(found), ..
    }) = &description.basis
    else {
        return Ok(());
    };
    let renewed = found.until(description.window.end);
    for (row, value) in found.rows.iter().zip(values) {
        let units = value * float(UNIT_GRAINS);
        if units.fract() != 0.0 {
            return Err("the number of a key is not on the grid of its noise".to_owned());
        }
        let is_above = units > float(found.threshold);
        if row.is_new && !is_above {
            return Err("a new key is not above the threshold".to_owned());
        }
        if is_above && row.until != renewed {
            return Err("a key above the threshold is not announced anew".to_owned());
        }
    }
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a threshold of 2^53 is above every count"
)]
fn float(units: u64) -> f64 {
    units as f64
}

/// The whole number that a float is; `None` if it is none, or too large to tell.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, from 0 to 2^53"
)]
fn whole_number(number: f64) -> Option<u64> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    let is_whole = number.fract() == 0.0 && (0.0..=MOST).contains(&number);
    is_whole.then_some(number as u64)
}
