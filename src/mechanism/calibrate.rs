//! Prices, sensitivities and scales, and the exact arithmetic between them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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
        let (whole, part) = (self.0 / 1_000_000_000_000, self.0 % 1_000_000_000_000);
        let digits = format!("{part:012}");
        match digits.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            digits => write!(f, "{whole}.{digits}"),
        }
    }
}

impl FromStr for Epsilon {
    type Err = String;

    /// Plain decimal with at most twelve places after the point, not negative.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a plain decimal number with at most 12 places, such as 0.5");
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(part) || part.len() > Self::PLACES {
            return Err(wrong());
        }
        let digits = format!("{whole}{part:0<12}");
        digits.parse().map(Epsilon).map_err(|_| wrong())
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

/// How much neighbours can differ in the 1-norm, in grid units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sensitivity(pub u64);

/// The scale of discrete Laplace noise, in grid units: `P[Z = z]` is proportional to `exp(-|z| / scale)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scale(pub u64);
