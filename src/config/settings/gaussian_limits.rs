//! How much Gaussian noise a block under `composition = "gaussian"` may have, and how fine.

use crate::accountant::gaussian::Drawn;
use crate::config::settings::privacy::Privacy;
use crate::mechanism::calibrate::Scale;

/// The most values that a unit meets in a block under `gaussian`, and the least noise on any of them, in grid units: what the
/// discreteness of the noise may cost is worked out from these, so they are the same for every ledger. `(1 + exp(epsilon))
/// 3e-12` of the delta.
pub const DRAWN: Drawn = Drawn { values: 1 << 33, sigma: FINEST };

/// What one setting may draw in a block. Settings can change from window to window, each counted as if it had held from the
/// block's beginning: window `n` then draws at most this over `n + 1`, and their sum, a logarithm of the windows, stays within
/// [`DRAWN`].
pub const MOST_DRAWN: u64 = DRAWN.values / 64;

pub const FINEST: Scale = match Scale::new(1 << 33) {
    Some(scale) => scale,
    None => unreachable!(),
};

/// How many values one unit meets in a window.
pub fn touched(privacy: &Privacy, values: impl Iterator<Item = usize>) -> u64 {
    let values = values.map(|values| privacy.touched(values)).fold(0, usize::saturating_add);
    u64::try_from(values).unwrap_or(u64::MAX).max(1)
}
