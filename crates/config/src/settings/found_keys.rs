//! Keys that nobody listed: how they are looked for, and at what price.

use std::time::Duration;

use crate::settings::error::SettingsError;
use crate::settings::privacy::PrivacyUnit;
use crate::settings::release::ReleaseSettings;
use crate::settings::worker::WorkerSettings;
use bernstream_noise::NoiseError;
use bernstream_noise::key_search::KeySearch;
use bernstream_synopsis::price::Price;

/// Rules for keys that nobody listed, as `input.key.found` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundKeySettings {
    /// Time for which a key stays published after the last window that published it above the threshold.
    pub keep: Duration,
    /// Most rows of a window.
    pub most: u32,
    /// Longest key, in bytes.
    pub longest: u32,
    /// Most different keys that a window keeps, where every record is a unit; `None` where users bound them.
    pub candidates: Option<u32>,
}

/// Most different keys that a window keeps where nothing is written.
const CANDIDATES: u32 = 1_000_000;

impl FoundKeySettings {
    /// The rules for this unit of privacy: where every record is a unit, something must bound the keys.
    #[must_use]
    pub fn for_unit(self, unit: &PrivacyUnit) -> Self {
        match unit {
            PrivacyUnit::Record => FoundKeySettings {
                candidates: Some(self.candidates.unwrap_or(CANDIDATES)),
                ..self
            },
            PrivacyUnit::User { .. } => self,
        }
    }

    /// The search that `price` buys where a unit counts in at most `max_keys` keys.
    ///
    /// # Errors
    ///
    /// If the price has no delta, or does not buy the search.
    pub fn key_search(&self, max_keys: u32, price: Price) -> Result<KeySearch, NoiseError> {
        match price {
            Price::Approximate { epsilon, delta } => {
                KeySearch::calibrated(max_keys, self.candidates, self.most, epsilon, delta)
            }
            Price::Pure(_) | Price::Concentrated(_) | Price::Slots(_) => Err(NoiseError::NoPrice),
        }
    }
}

impl WorkerSettings {
    /// The search for keys of a release; `None` where its keys are listed.
    ///
    /// # Errors
    ///
    /// If its price does not buy the search.
    pub fn key_search(
        &self,
        release: &ReleaseSettings,
    ) -> Result<Option<KeySearch>, SettingsError> {
        let (Some(found), Some(counts)) = (&self.found_keys, release.function.keyed_counts())
        else {
            return Ok(None);
        };
        let price = release.payment.mechanism_price();
        Ok(Some(found.key_search(counts.max_keys, price)?))
    }
}
