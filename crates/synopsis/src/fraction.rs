//! A part of an amount.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::calibrate::Epsilon;
use super::price::Price;

/// A part of a whole, in millionths. Written as a decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Fraction(u32);

impl Fraction {
    const WHOLE: u32 = 1_000_000;
    pub const ZERO: Fraction = Fraction(0);
    /// The whole.
    pub const ALL: Fraction = Fraction(Self::WHOLE);

    /// `None` where it is more than the whole.
    pub fn from_millionths(count: u32) -> Option<Self> {
        (count <= Self::WHOLE).then_some(Fraction(count))
    }

    fn parse_decimal(text: &str) -> Option<Self> {
        let decimal: Epsilon = text.parse().ok()?;
        if !decimal.trillionths().is_multiple_of(MILLIONTH) {
            return None;
        }
        Fraction::from_millionths(u32::try_from(decimal.trillionths() / MILLIONTH).ok()?)
    }

    pub fn millionths(self) -> u32 {
        self.0
    }

    /// `None` where `other` is more.
    pub fn checked_sub(self, other: Fraction) -> Option<Self> {
        self.0.checked_sub(other.0).map(Fraction)
    }

    /// The whole without it.
    #[must_use]
    pub fn complement_to_whole(self) -> Self {
        Fraction(Self::WHOLE - self.0)
    }

    /// So much of `price`, rounded down.
    #[must_use]
    pub fn part_of_price(self, price: Price) -> Price {
        // A part of a count that fits is one that fits.
        price.map_parts(|count| {
            u64::try_from(u128::from(count) * u128::from(self.0) / u128::from(Self::WHOLE))
                .unwrap_or(u64::MAX)
        })
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Epsilon::from_trillionths(u64::from(self.0) * MILLIONTH).fmt(f)
    }
}

impl From<Fraction> for String {
    fn from(fraction: Fraction) -> String {
        fraction.to_string()
    }
}

impl TryFrom<String> for Fraction {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Fraction::parse_decimal(&text)
            .ok_or_else(|| format!("'{text}' is no fraction with at most 6 decimals"))
    }
}

/// A millionth in trillionths.
const MILLIONTH: u64 = 1_000_000;
