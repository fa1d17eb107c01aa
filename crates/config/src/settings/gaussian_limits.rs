//! Limits on the Gaussian noise of a block under `composition = "gaussian"`: how much, and how fine.

use crate::settings::privacy::PrivacySettings;
use bernstream_noise::accountant::gaussian::DrawnNoise;
use bernstream_noise::calibrate::Scale;

/// The most values that a unit affects in a block under `gaussian`, and the smallest scale of noise on them, in grid units. The
/// cost of discrete noise is derived from these, so they are the same for every ledger: `(1 + exp(epsilon)) 3e-12` of the
/// delta.
pub const DRAWN: DrawnNoise = DrawnNoise {
    values: 1 << 33,
    sigma: FINEST,
};

/// The most values under constant settings. Settings can change from window to window, and each is counted as if it had held
/// since the start of the block: window `n` then draws at most this over `n + 1`, and the sum, a logarithm of the number of
/// windows, stays within [`DRAWN`].
pub const MOST_DRAWN: u64 = DRAWN.values / 64;

pub const FINEST: Scale = Scale::TWO_TO_33;

/// Returns how many values one unit can change in a window.
pub fn touched_values(privacy: &PrivacySettings, values: impl Iterator<Item = usize>) -> u64 {
    let values = values
        .map(|values| privacy.touched_values(values))
        .fold(0, usize::saturating_add);
    u64::try_from(values).unwrap_or(u64::MAX).max(1)
}
