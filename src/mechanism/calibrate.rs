//! Prices and scales, and the exact arithmetic between them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::targets::Sensitivity;

/// A privacy price or budget in nats, exact: a whole number of 10^-12.
///
/// Prices are written in decimal, so that ten windows at `0.1` cost exactly `1`; binary fractions would not add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Epsilon(u64);

impl Epsilon {
    pub const ZERO: Epsilon = Epsilon(0);
    const PLACES: usize = 12;

    pub const fn from_trillionths(count: u64) -> Self {
        Epsilon(count)
    }

    pub const fn trillionths(self) -> u64 {
        self.0
    }

    pub fn checked_add(self, other: Epsilon) -> Option<Epsilon> {
        self.0.checked_add(other.0).map(Epsilon)
    }

    /// `self + other`, the largest price where it would be more.
    #[must_use]
    pub fn saturating_add(self, other: Epsilon) -> Epsilon {
        Epsilon(self.0.saturating_add(other.0))
    }

    /// `self - other`, zero where `other` is more.
    #[must_use]
    pub fn saturating_sub(self, other: Epsilon) -> Epsilon {
        Epsilon(self.0.saturating_sub(other.0))
    }

    /// For display and prediction only; nothing that is charged or drawn uses it.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl fmt::Display for Epsilon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal(self.0, Self::PLACES))
    }
}

impl FromStr for Epsilon {
    type Err = String;

    /// Plain decimal with at most twelve places after the point, not negative.
    fn from_str(text: &str) -> Result<Self, String> {
        count(text, Self::PLACES).map(Epsilon).ok_or_else(|| {
            format!("'{text}' is not a plain decimal number with at most {} places, such as 0.5", Self::PLACES)
        })
    }
}

impl From<Epsilon> for String {
    fn from(epsilon: Epsilon) -> String {
        epsilon.to_string()
    }
}

impl TryFrom<String> for Epsilon {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A price or budget in zero-concentrated differential privacy (`[BS16]`), exact: a whole number of 10^-12.
///
/// The Renyi divergence of every order `a > 1` is at most `a rho`; prices add up as those of [`Epsilon`] do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Rho(u64);

impl Rho {
    pub const ZERO: Rho = Rho(0);
    const PLACES: usize = 12;

    pub const fn from_trillionths(count: u64) -> Self {
        Rho(count)
    }

    pub const fn trillionths(self) -> u64 {
        self.0
    }

    pub fn checked_add(self, other: Rho) -> Option<Rho> {
        self.0.checked_add(other.0).map(Rho)
    }

    /// `self + other`, the largest price where it would be more.
    #[must_use]
    pub fn saturating_add(self, other: Rho) -> Rho {
        Rho(self.0.saturating_add(other.0))
    }

    /// `self - other`, zero where `other` is more.
    #[must_use]
    pub fn saturating_sub(self, other: Rho) -> Rho {
        Rho(self.0.saturating_sub(other.0))
    }

    /// For display and prediction only; nothing that is charged or drawn uses it.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl fmt::Display for Rho {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal(self.0, Self::PLACES))
    }
}

impl FromStr for Rho {
    type Err = String;

    /// Plain decimal with at most twelve places after the point, not negative.
    fn from_str(text: &str) -> Result<Self, String> {
        count(text, Self::PLACES).map(Rho).ok_or_else(|| {
            format!("'{text}' is not a plain decimal number with at most {} places, such as 0.5", Self::PLACES)
        })
    }
}

impl From<Rho> for String {
    fn from(rho: Rho) -> String {
        rho.to_string()
    }
}

impl TryFrom<String> for Rho {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// The `delta` of (epsilon, delta)-differential privacy, exact: a whole number of 10^-18.
///
/// The promise of `epsilon` may fail with at most this probability; 1 and more promise nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Delta(u64);

impl Delta {
    pub const ZERO: Delta = Delta(0);
    const PLACES: usize = 18;

    pub const fn from_quintillionths(count: u64) -> Self {
        Delta(count)
    }

    pub const fn quintillionths(self) -> u64 {
        self.0
    }

    pub fn checked_add(self, other: Delta) -> Option<Delta> {
        self.0.checked_add(other.0).map(Delta)
    }

    /// `self + other`, the largest delta where it would be more.
    #[must_use]
    pub fn saturating_add(self, other: Delta) -> Delta {
        Delta(self.0.saturating_add(other.0))
    }

    /// `self - other`, zero where `other` is more.
    #[must_use]
    pub fn saturating_sub(self, other: Delta) -> Delta {
        Delta(self.0.saturating_sub(other.0))
    }

    /// For display and prediction only; nothing that is charged or drawn uses it.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1e18
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal(self.0, Self::PLACES))
    }
}

impl FromStr for Delta {
    type Err = String;

    /// Plain decimal with at most eighteen places after the point, not negative.
    fn from_str(text: &str) -> Result<Self, String> {
        count(text, Self::PLACES).map(Delta).ok_or_else(|| {
            format!("'{text}' is not a plain decimal number with at most {} places, such as 0.000001", Self::PLACES)
        })
    }
}

impl From<Delta> for String {
    fn from(delta: Delta) -> String {
        delta.to_string()
    }
}

impl TryFrom<String> for Delta {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// `count` units of `10^-places`, as plain decimal.
fn decimal(count: u64, places: usize) -> String {
    let digits = format!("{count:0width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    match part.trim_end_matches('0') {
        "" => whole.to_owned(),
        part => format!("{whole}.{part}"),
    }
}

/// How many units of `10^-places` the plain decimal is; `None` where it is none, finer, or too large.
fn count(text: &str, places: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) || part.len() > places {
        return None;
    }
    format!("{whole}{part:0<places$}").parse().ok()
}

/// The scale `s` of discrete Laplace noise, in grid units: `P[Z = z]` is proportional to `exp(-|z| / s)`.
///
/// A multiple of 16, 16 to `2^56`: the sampler works in sixteenths, and its integers end there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scale(u64);

impl Scale {
    pub const LARGEST: u64 = 1 << 56;

    /// `None` where `units` is not a multiple of 16 from 16 to [`Scale::LARGEST`].
    pub const fn new(units: u64) -> Option<Self> {
        if units.is_multiple_of(16) && units >= 16 && units <= Self::LARGEST { Some(Scale(units)) } else { None }
    }

    pub fn units(self) -> u64 {
        self.0
    }

    /// The smallest scale whose noise costs at most `price` for neighbours at most `sensitivity` apart in the 1-norm:
    /// `s = 16 ceil(D1 / (16 (price - 10^-15)))`, exactly.
    ///
    /// The `10^-15` pays for the sampler's own error, at most `(N + 1) 2^-97` for `N` coordinates
    /// ([`DiscreteLaplace`](super::noise::DiscreteLaplace), [`DiscreteCube`](super::noise::DiscreteCube)), and for whatever
    /// else below `2^-64`; so the charge is `price`. In the sup norm it is the same, with `S` for `D1`.
    pub fn for_price(sensitivity: Sensitivity, price: Epsilon) -> Result<Self, Error> {
        const QUADRILLION: u128 = 1_000_000_000_000_000;
        if sensitivity.0 == 0 {
            return Err(Error::NoSensitivity);
        }
        let noise_alone = (1000 * u128::from(price.trillionths())).checked_sub(1).ok_or(Error::NoPrice)?;
        // At most 2^64 * 2^50.
        let sixteenths = (u128::from(sensitivity.0) * QUADRILLION).div_ceil(16 * noise_alone);
        u64::try_from(16 * sixteenths).ok().and_then(Scale::new).ok_or(Error::TooMuchNoise { price })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimal_prices_add_up_exactly() {
        let tenth: Epsilon = "0.1".parse().unwrap();
        let ten = (0..10).try_fold(Epsilon::ZERO, |sum, _| sum.checked_add(tenth));
        assert_eq!(ten, Some("1".parse().unwrap()));
        assert_eq!(ten.unwrap().to_string(), "1");
    }

    #[test]
    fn amounts_are_read_and_written_in_their_own_units() {
        assert_eq!("0.000000000001".parse(), Ok(Rho::from_trillionths(1)));
        assert_eq!("0.000000000000000001".parse(), Ok(Delta::from_quintillionths(1)));
        assert_eq!(Rho::from_trillionths(12_500_000_000_000).to_string(), "12.5");
        assert_eq!(Delta::from_quintillionths(1_000_000_000_000).to_string(), "0.000001");
        assert_eq!(Delta::from_quintillionths(u64::MAX).to_string(), "18.446744073709551615");
        assert_eq!(Delta::ZERO.to_string(), "0");
        for wrong in ["", ".5", "5.", "-1", "1e-6", "0.0000000000000", "19000000"] {
            assert!(wrong.parse::<Rho>().is_err(), "{wrong}");
        }
        for wrong in ["", "1e-6", "0.0000000000000000001", "19"] {
            let message = wrong.parse::<Delta>().unwrap_err();
            assert!(message.contains("at most 18 places"), "{message}");
        }
    }

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
            let message = Scale::for_price(Sensitivity(sensitivity), price.parse().unwrap()).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        };
        says(1 << 40, "0", "price of 0");
        says(1 << 57, "1", "price of 1 is so low");
        says(u64::MAX, "0.000000000001", "price of 0.000000000001 is so low");
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
