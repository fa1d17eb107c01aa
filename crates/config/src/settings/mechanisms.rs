//! The noise that follows from the settings: sensitivity, mechanism, and the series of a sum over several windows.

use crate::settings::block_count::most_blocks;
use crate::settings::calibration::Calibration;
use crate::settings::error::SettingsError;
use crate::settings::function::ReleasedFunction;
use crate::settings::privacy::{NeighbourRelation, Period, PrivacyUnit};
use crate::settings::release::ReleaseSettings;
use crate::settings::worker::WorkerSettings;
use bernstream_noise::Mechanism;
use bernstream_noise::continual::CalibratedSeries;
use bernstream_release as targets;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::description::{CalibrationBound, PrivacyDefinition};
use bernstream_synopsis::price::Price;

impl WorkerSettings {
    /// The sensitivity of a function of a release in the norm of its noise, by the given bound.
    ///
    /// # Errors
    ///
    /// If the target has no sensitivity for this adjacency and number of contributions, or none by the papers' bound.
    pub fn sensitivity(
        &self,
        release: &ReleaseSettings,
        function: &ReleasedFunction,
        calibration: Calibration,
    ) -> Result<Sensitivity, targets::TargetError> {
        calibration.sensitivity(
            &*function.target,
            release.noise.noise_distribution(),
            &self.privacy,
        )
    }

    /// The bound that the noise of a function is calibrated to, for display.
    ///
    /// # Errors
    ///
    /// If a bound to compare with is missing.
    pub fn calibration_shown(
        &self,
        release: &ReleaseSettings,
        function: &ReleasedFunction,
    ) -> Result<CalibrationBound, SettingsError> {
        match release.calibration {
            Calibration::Tight
                if matches!(self.privacy.definition, PrivacyDefinition::Random(_)) =>
            {
                Ok(CalibrationBound::Sampled)
            }
            Calibration::Tight => Ok(CalibrationBound::Tight),
            Calibration::Paper => {
                let paper = self.sensitivity(release, function, Calibration::Paper)?;
                let tight = self.sensitivity(release, function, Calibration::Tight)?;
                #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
                let times_needed = paper.0 as f64 / tight.0 as f64;
                Ok(CalibrationBound::Paper { times_needed })
            }
        }
    }

    /// The mechanism for a function that a window of a release can have.
    ///
    /// # Errors
    ///
    /// If there is no sensitivity, or the price does not pay for its noise.
    pub fn mechanism_of(
        &self,
        release: &ReleaseSettings,
        function: &ReleasedFunction,
    ) -> Result<Mechanism, SettingsError> {
        self.mechanism_at(release, function, release.payment.mechanism_price())
    }

    /// The mechanism for a function at another price.
    ///
    /// # Errors
    ///
    /// If there is no sensitivity, or the price does not pay for its noise.
    pub fn mechanism_at(
        &self,
        release: &ReleaseSettings,
        function: &ReleasedFunction,
        price: Price,
    ) -> Result<Mechanism, SettingsError> {
        if let (Some(found), Some(counts)) = (&self.found_keys, function.keyed_counts()) {
            let search = found.key_search(counts.max_keys, price)?;
            return Ok(search.announced_noise());
        }
        release.calibration.mechanism(
            &*function.target,
            release.noise.noise_distribution(),
            &self.privacy,
            price,
        )
    }

    /// The correlated noise of a release that is a sum over several panes.
    ///
    /// # Errors
    ///
    /// If there is no sensitivity, or the price does not pay for its noise.
    pub fn noise_series(
        &self,
        release: &ReleaseSettings,
    ) -> Result<Option<CalibratedSeries>, SettingsError> {
        if !release.is_sum_of_panes() {
            return Ok(None);
        }
        let Some(kind) = release.window_kind.noise_windows() else {
            return Ok(None);
        };
        let law = release.noise.noise_distribution();
        let target = &*release.function.target;
        let NeighbourRelation {
            adjacency,
            contributions,
        } = self.neighbouring_relation();
        let change = target.sensitivity_in(law.norm(), adjacency, contributions)?;
        let values = self.privacy.touched_values(target.shape().value_count());
        let panes = self.panes_of_unit(release);
        let horizon = release.window_kind.horizon();
        // What is written in epsilon is that epsilon, as for a window of its own. For a unit in several panes it is the rho.
        let price = if panes == 1 {
            release.payment.mechanism_price()
        } else {
            release.payment.charged_price()
        };
        Ok(Some(CalibratedSeries::calibrated(
            kind, law, change, values, panes, price, horizon,
        )?))
    }

    /// The most panes that one unit can be in and that the release pays for.
    fn panes_of_unit(&self, release: &ReleaseSettings) -> u32 {
        match &self.privacy.unit {
            PrivacyUnit::Record => 1,
            PrivacyUnit::User {
                per: Period::Every(per),
                ..
            } => u32::try_from(most_blocks(*per, self.windows.grid.length())).unwrap_or(u32::MAX),
            // As many as the total pays for, were it for this release alone.
            PrivacyUnit::User {
                per: Period::Ever, ..
            } => match release
                .policy
                .paid_windows(self.privacy.total, None, |_| true)
            {
                Some(paid) => u32::try_from(paid).unwrap_or(u32::MAX),
                None => u32::MAX,
            },
        }
    }
}
