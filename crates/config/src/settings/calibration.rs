//! The bound on the sensitivity that the noise of a release is calibrated to.

use crate::settings::error::SettingsError;
use crate::settings::privacy::PrivacySettings;
use bernstream_noise::Mechanism;
use bernstream_release as targets;
use bernstream_release::Target;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::Delta;
use bernstream_synopsis::price::Price;

/// The bound on the sensitivity that the noise is calibrated to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calibration {
    /// The bound that we prove for the target.
    Tight,
    /// The bound of the papers, for comparison: equally private, with more noise.
    Paper,
}

impl Calibration {
    /// The sensitivity in the norm of `law`; that of the papers is in the 1-norm.
    ///
    /// # Errors
    ///
    /// If the target has no sensitivity for this adjacency and number of contributions, or none by the papers' bound.
    pub fn sensitivity(
        self,
        target: &dyn Target,
        law: NoiseDistribution,
        privacy: &PrivacySettings,
    ) -> Result<Sensitivity, targets::TargetError> {
        let adjacency = privacy.adjacency;
        let contributions = privacy.unit.most_contributions();
        match self {
            Calibration::Tight => target.sensitivity_in(law.norm(), adjacency, contributions),
            Calibration::Paper => target.papers_sensitivity(adjacency, contributions),
        }
    }

    /// The mechanism for `target` at a price. That of the papers uses their `lambda_delta` if the price has a delta.
    ///
    /// # Errors
    ///
    /// If there is no sensitivity, or the price does not pay for its noise.
    pub fn mechanism(
        self,
        target: &dyn Target,
        law: NoiseDistribution,
        privacy: &PrivacySettings,
        price: Price,
    ) -> Result<Mechanism, SettingsError> {
        let change = self.sensitivity(target, law, privacy)?;
        let values = target.shape().value_count();
        let touched = privacy.touched_values(values);
        if self == Calibration::Paper
            && let Price::Approximate { epsilon, delta } = price
            && delta > Delta::ZERO
        {
            let sup = change.0.div_ceil(values as u64);
            return Ok(Mechanism::advanced_laplace(sup, values, epsilon, delta)?);
        }
        Ok(Mechanism::calibrated(law, change, touched, price)?)
    }
}
