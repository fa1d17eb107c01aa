//! Gaussian noise for a series, and the bits below the grid that make up for rounding.

use num_bigint::BigUint;

use super::error::SeriesError;
use crate::calibrated::Mechanism;
use crate::error::NoiseError;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::Rho;
use bernstream_synopsis::law::NoiseDistribution;
use bernstream_synopsis::price::Price;

/// Most numbers that may be drawn before a series begins with new noise.
const MOST_DRAWS: u64 = 1 << 36;

/// Return of a change of one pane in the fresh noise of it and of later panes.
pub(super) struct ChangeSpread {
    /// At least the squared 2-norm of a column, in units of `2^-64`.
    pub norm_squared: u128,
    /// Distance by which rounding can move any one of the values of any one pane.
    pub drift: u64,
    /// Numbers of panes for which rounding must and may be paid for.
    pub least: u64,
    pub most: u64,
}

/// Noise that pays for a series.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GuardedNoise {
    pub noise: Mechanism,
    /// The series is kept in units of `2^-bits` of the grid.
    pub bits: u32,
    /// Number of panes for which rounding is paid for.
    pub longest: u64,
}

/// As many bits as can be had beside the largest noise; beyond these, nothing is gained.
const MOST_BITS: u32 = 40;
/// Part of the noise that rounding may add to it.
const ROUNDING: u64 = 1024;

/// `change` is that of one pane in the 2-norm; a unit is in at most `panes` panes, each of which is charged `price`. `values`
/// is how many values a unit can touch in a pane.
///
/// `|fresh' - fresh|` over all panes is at most `D2 |c| + drift sqrt(longest values)` by Minkowski. The changes of several
/// panes add up to at most their number times that, and so does what is paid, but for the square: a root of `panes` more.
pub(super) fn calibrate_guarded(
    change: u64,
    values: usize,
    panes: u32,
    price: Price,
    spread: &ChangeSpread,
) -> Result<GuardedNoise, SeriesError> {
    let most = spread.most.min(MOST_DRAWS / values.max(1) as u64).max(1);
    let least = spread.least.min(most);
    let squared = BigUint::from(change).pow(2) * panes.max(1) * spread.norm_squared;
    let mut refused = None;
    for bits in (0..=MOST_BITS).rev() {
        let root = ((&squared << (2 * bits)) >> 64_u32).sqrt() + 1_u32;
        let Ok(exact) = u64::try_from(root) else {
            continue;
        };
        // The root of `panes` in the doc above is on the rounding, too.
        let several = u64::from(panes.max(1).isqrt()) + u64::from(panes > 1);
        let room = u128::from(exact / ROUNDING / spread.drift / several);
        let longest = u64::try_from(room * room / values.max(1) as u128)
            .unwrap_or(u64::MAX)
            .min(most);
        let slack = (u128::from(longest) * values as u128).isqrt() as u64 + 1;
        match gaussian_mechanism(
            exact.saturating_add(slack.saturating_mul(spread.drift).saturating_mul(several)),
            longest,
            values,
            price,
        ) {
            Ok(noise) if longest >= least => {
                return Ok(GuardedNoise {
                    noise,
                    bits,
                    longest,
                });
            }
            // With fewer bits there would be still less room.
            Ok(_) => return Err(SeriesError::Rounding { longest, least }),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.map_or(SeriesError::Change { change }, SeriesError::Mechanism))
}

/// Under `rho`, `2^-20` of it and `10^-12` pay for the constants of the sampler instead of what a single release takes for
/// `2^20` values: with every probability within `exp(2^-97)`, orders below `1 + 2^-20` counted as that order, `2^36` values
/// need `2^-20 rho + (2^20 + 2) 2^-61`.
fn gaussian_mechanism(
    change: u64,
    panes: u64,
    values: usize,
    price: Price,
) -> Result<Mechanism, NoiseError> {
    let price = match price {
        Price::Concentrated(rho) => {
            let whole = rho.trillionths();
            Price::Concentrated(Rho::from_trillionths(
                whole.saturating_sub(whole.div_ceil(1 << 20) + 1),
            ))
        }
        Price::Pure(_) | Price::Approximate { .. } | Price::Slots(_) => price,
    };
    let draws = usize::try_from(panes)
        .unwrap_or(usize::MAX)
        .saturating_mul(values);
    Mechanism::calibrated(
        NoiseDistribution::DiscreteGaussian,
        Sensitivity(change),
        draws,
        price,
    )
}
