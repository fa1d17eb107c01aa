//! Exact amounts of privacy loss. Each kind is a type of its own: an epsilon cannot be added to a rho.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A privacy price or budget in nats, a whole number of 10^-12.
pub type Epsilon = Amount<EpsilonKind>;

/// A price or budget in zero-concentrated differential privacy (`[BS16]`), a whole number of 10^-12: the Renyi divergence of
/// every order `a > 1` is at most `a rho`.
pub type Rho = Amount<RhoKind>;

/// The `delta` of (epsilon, delta)-differential privacy, a whole number of 10^-18: the promise of `epsilon` may fail with at most
/// this probability, and 1 or more promises nothing.
pub type Delta = Amount<DeltaKind>;

/// An exact decimal amount of one kind.
///
/// Amounts are written in decimal, so that ten windows at `0.1` cost exactly `1`; binary fractions would not add up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String", bound = "K: AmountKind")]
pub struct Amount<K> {
    count: u64,
    kind: PhantomData<K>,
}

/// Kind of an amount: its name, and how finely it is counted.
pub trait AmountKind: Copy + 'static {
    const NAME: &str;
    /// Decimal places.
    const PLACES: usize;
    /// `10^PLACES`.
    const UNITS: f64;
    /// An amount to show in an error message.
    const EXAMPLE: &str;
}

/// Marks an [`Epsilon`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EpsilonKind {}

/// Marks a [`Rho`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RhoKind {}

/// Marks a [`Delta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeltaKind {}

impl AmountKind for EpsilonKind {
    const NAME: &str = "Epsilon";
    const PLACES: usize = 12;
    const UNITS: f64 = 1e12;
    const EXAMPLE: &str = "0.5";
}

impl AmountKind for RhoKind {
    const NAME: &str = "Rho";
    const PLACES: usize = 12;
    const UNITS: f64 = 1e12;
    const EXAMPLE: &str = "0.5";
}

impl AmountKind for DeltaKind {
    const NAME: &str = "Delta";
    const PLACES: usize = 18;
    const UNITS: f64 = 1e18;
    const EXAMPLE: &str = "0.000001";
}

impl<K: AmountKind> Amount<K> {
    pub const ZERO: Self = Self::from_units(0);

    const fn from_units(count: u64) -> Self {
        Amount {
            count,
            kind: PhantomData,
        }
    }

    /// `self + other`, `None` where it does not fit.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.count.checked_add(other.count).map(Self::from_units)
    }

    /// `self + other`, the largest amount where it would be more.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self::from_units(self.count.saturating_add(other.count))
    }

    /// `self - other`, zero where `other` is more.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self::from_units(self.count.saturating_sub(other.count))
    }

    /// For display and prediction only; nothing that is charged or drawn uses it.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub fn to_f64(self) -> f64 {
        self.count as f64 / K::UNITS
    }
}

impl Epsilon {
    pub const fn from_trillionths(count: u64) -> Self {
        Self::from_units(count)
    }

    pub const fn trillionths(self) -> u64 {
        self.count
    }
}

impl Rho {
    pub const fn from_trillionths(count: u64) -> Self {
        Self::from_units(count)
    }

    pub const fn trillionths(self) -> u64 {
        self.count
    }
}

impl Delta {
    pub const fn from_quintillionths(count: u64) -> Self {
        Self::from_units(count)
    }

    pub const fn quintillionths(self) -> u64 {
        self.count
    }
}

impl<K: AmountKind> Default for Amount<K> {
    fn default() -> Self {
        Self::ZERO
    }
}

impl<K: AmountKind> fmt::Debug for Amount<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(K::NAME).field(&self.count).finish()
    }
}

impl<K: AmountKind> fmt::Display for Amount<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal(self.count, K::PLACES))
    }
}

impl<K: AmountKind> FromStr for Amount<K> {
    type Err = String;

    /// Plain decimal, not negative, with no more places than the kind has.
    fn from_str(text: &str) -> Result<Self, String> {
        let places = K::PLACES;
        let example = K::EXAMPLE;
        count(text, places).map(Self::from_units).ok_or_else(|| {
            format!("'{text}' is not a plain decimal number with at most {places} places, such as {example}")
        })
    }
}

impl<K: AmountKind> From<Amount<K>> for String {
    fn from(amount: Amount<K>) -> String {
        amount.to_string()
    }
}

impl<K: AmountKind> TryFrom<String> for Amount<K> {
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

/// Number of units of `10^-places` that the plain decimal is; `None` where it is none, finer, or too large.
fn count(text: &str, places: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if !is_digits(whole) || !is_digits(part) || part.len() > places {
        return None;
    }
    format!("{whole}{part:0<places$}").parse().ok()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            "0.000000000000000001".parse(),
            Ok(Delta::from_quintillionths(1))
        );
        assert_eq!(
            Rho::from_trillionths(12_500_000_000_000).to_string(),
            "12.5"
        );
        assert_eq!(
            Delta::from_quintillionths(1_000_000_000_000).to_string(),
            "0.000001"
        );
        assert_eq!(
            Delta::from_quintillionths(u64::MAX).to_string(),
            "18.446744073709551615"
        );
        assert_eq!(Delta::ZERO.to_string(), "0");
        for wrong in ["", ".5", "5.", "-1", "1e-6", "0.0000000000000", "19000000"] {
            assert!(wrong.parse::<Rho>().is_err(), "{wrong}");
        }
        for wrong in ["", "1e-6", "0.0000000000000000001", "19"] {
            let message = wrong.parse::<Delta>().unwrap_err();
            assert!(message.contains("at most 18 places"), "{message}");
        }
    }
}
