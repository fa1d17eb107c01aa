//! The scale of noise, and the one that a price of pure differential privacy buys.

use crate::error::NoiseError;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::amount::Epsilon;

/// The scale `s` of discrete Laplace noise, in grid units: `P[Z = z]` is proportional to `exp(-|z| / s)`.
///
/// A multiple of 16, 16 to `2^56`: the sampler works in sixteenths, and its integers end there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scale(u64);

impl Scale {
    pub const LARGEST: u64 = 1 << 56;
    pub const SMALLEST: Scale = Scale(16);
    /// A scale of `2^33` grid units.
    pub const TWO_TO_33: Scale = Scale(1 << 33);

    /// `None` where `units` is not a multiple of 16 from 16 to [`Scale::LARGEST`].
    pub const fn new(units: u64) -> Option<Self> {
        if units.is_multiple_of(16) && units >= 16 && units <= Self::LARGEST {
            Some(Scale(units))
        } else {
            None
        }
    }

    pub fn units(self) -> u64 {
        self.0
    }

    /// The smallest scale whose noise costs at most `price` for neighbours at most `sensitivity` apart in the 1-norm:
    /// `s = 16 ceil(D1 / (16 (price - 10^-15)))`, exactly.
    ///
    /// The `10^-15` pays for the sampler's own error, at most `(N + 1) 2^-97` for `N` coordinates
    /// ([`DiscreteLaplace`](crate::noise::DiscreteLaplace), [`DiscreteCube`](crate::noise::DiscreteCube)), and for whatever
    /// else below `2^-64`; so the charge is `price`. In the sup norm it is the same, with `S` for `D1`.
    ///
    /// # Errors
    ///
    /// If the sensitivity or the price is 0, or the scale would exceed [`Scale::LARGEST`].
    pub fn for_price(sensitivity: Sensitivity, price: Epsilon) -> Result<Self, NoiseError> {
        const QUADRILLION: u128 = 1_000_000_000_000_000;
        if sensitivity.0 == 0 {
            return Err(NoiseError::NoSensitivity);
        }
        let noise_alone = (1000 * u128::from(price.trillionths()))
            .checked_sub(1)
            .ok_or(NoiseError::NoPrice)?;
        // At most 2^64 * 2^50.
        let sixteenths = (u128::from(sensitivity.0) * QUADRILLION).div_ceil(16 * noise_alone);
        u64::try_from(16 * sixteenths)
            .ok()
            .and_then(Scale::new)
            .ok_or(NoiseError::TooMuchNoise { price })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_scale_is_a_multiple_of_sixteen_in_range() {
        for wrong in [0, 8, 15, 17, Scale::LARGEST + 16, u64::MAX] {
            assert_eq!(Scale::new(wrong), None, "{wrong}");
        }
        assert!(Scale::new(16).is_some() && Scale::new(Scale::LARGEST).is_some());
    }

    #[test]
    fn what_cannot_be_calibrated_is_refused_in_words() {
        let says = |sensitivity, price: &str, words: &str| {
            let message = Scale::for_price(Sensitivity(sensitivity), price.parse().unwrap())
                .unwrap_err()
                .to_string();
            assert!(message.contains(words), "{message}");
        };
        says(1 << 40, "0", "price of 0");
        says(1 << 57, "1", "price of 1 is so low");
        says(
            u64::MAX,
            "0.000000000001",
            "price of 0.000000000001 is so low",
        );
        says(0, "1", "sensitivity of 0");
    }

    proptest! {
        #[test]
        fn a_price_is_never_exceeded_and_missed_by_less_than_sixteen_units(
            (sensitivity, price) in (0_u32..50, 0_u32..44)
                .prop_flat_map(|(s, p)| (1..=1_u64 << s, 1..=1_u64 << p))
        ) {
            let cost_at_most = |scale: u64| {
                // sensitivity / scale + 10^-15 <= price / 10^12, all in whole numbers.
                u128::from(sensitivity) * 10_u128.pow(15) <= (u128::from(price) * 1000 - 1) * u128::from(scale)
            };
            match Scale::for_price(Sensitivity(sensitivity), Epsilon::from_trillionths(price)) {
                Ok(scale) => {
                    prop_assert!(cost_at_most(scale.units()));
                    prop_assert!(scale.units() == 16 || !cost_at_most(scale.units() - 16));
                }
                Err(error) => {
                    prop_assert_eq!(error.to_string().contains("is so low"), true);
                    prop_assert!(!cost_at_most(Scale::LARGEST));
                }
            }
        }
    }
}
