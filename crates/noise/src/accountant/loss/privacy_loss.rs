//! The privacy loss of one release.

/// The loss of one release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PrivacyLoss {
    /// One value with Laplace noise, `t` its change over the scale: `t` with probability 1/2, `-t` with `exp(-t)/2`, and
    /// density `exp((l - t)/2)/4` between.
    Laplace(f64),
    /// Randomised response, which dominates every mechanism of pure differential privacy with this epsilon `[KOV15]`.
    Response(f64),
    /// Gaussian noise, `mu` the change over the deviation: normal with mean `mu^2/2` and variance `mu^2`.
    Gaussian(f64),
}

impl PrivacyLoss {
    /// A larger parameter loses more: this pays for the places on the grid, which are rounded.
    pub(super) fn widened(self) -> PrivacyLoss {
        const UP: f64 = 1.0 + 4.0 * f64::EPSILON;
        match self {
            PrivacyLoss::Laplace(t) => PrivacyLoss::Laplace(t * UP),
            PrivacyLoss::Response(t) => PrivacyLoss::Response(t * UP),
            PrivacyLoss::Gaussian(mu) => PrivacyLoss::Gaussian(mu * UP),
        }
    }

    pub(super) fn parameter(self) -> f64 {
        match self {
            PrivacyLoss::Laplace(t) | PrivacyLoss::Response(t) | PrivacyLoss::Gaussian(t) => t,
        }
    }

    /// The largest loss.
    pub(super) fn largest(self) -> f64 {
        match self {
            PrivacyLoss::Gaussian(_) => f64::INFINITY,
            PrivacyLoss::Laplace(t) | PrivacyLoss::Response(t) => t,
        }
    }

    /// About `ln` of the mean of `exp(tilt L)`: guides the choice of grid and tilt, and nothing depends on it. All three laws
    /// are symmetric in `tilt + 1/2`.
    pub(super) fn log_moment(self, tilt: f64) -> f64 {
        let centred = (tilt + 0.5).abs();
        let x = centred * self.parameter();
        match self {
            PrivacyLoss::Laplace(t) => {
                let decay = (-2.0 * x).exp();
                let between = if x < 1e-9 {
                    1.0
                } else {
                    (1.0 - decay) / (2.0 * x)
                };
                x - t / 2.0 + ((1.0 + decay) / 2.0 + t / 2.0 * between).ln()
            }
            PrivacyLoss::Response(t) => x - t / 2.0 + (-2.0 * x).exp().ln_1p() - (-t).exp().ln_1p(),
            PrivacyLoss::Gaussian(mu) => (centred * centred - 0.25) * mu * mu / 2.0,
        }
    }
}

/// A law, and the number of releases that have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RepeatedLoss {
    pub law: PrivacyLoss,
    pub count: u64,
}

#[expect(clippy::cast_precision_loss, reason = "a guide")]
pub(super) fn log_moment(parts: &[RepeatedLoss], tilt: f64) -> f64 {
    parts
        .iter()
        .map(|part| part.law.log_moment(tilt) * part.count as f64)
        .sum()
}

#[expect(clippy::cast_precision_loss, reason = "a guide")]
pub(super) fn spread(parts: &[RepeatedLoss]) -> f64 {
    parts
        .iter()
        .map(|part| part.law.parameter().powi(2) * part.count as f64)
        .sum::<f64>()
        .sqrt()
}
