//! The privacy that a synopsis keeps.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Adjacency;
use crate::calibrate::{Delta, Epsilon};
use crate::clock::Timestamp;
use crate::price::Price;
use crate::sampler::PriorDistribution;

/// The guarantee, and what it has cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivacyDescription {
    pub definition: PrivacyDefinition,
    pub unit: UnitDescription,
    /// The guarantee in words: who is protected, against what, and by how much.
    pub in_words: String,
    pub adjacency: Adjacency,
    /// Implication of the totals as (epsilon, delta), where it was worked out beforehand. Of a declared plan it is the guarantee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implies: Option<ImpliedPrivacy>,
    /// Price of this window, in the kind of the definition.
    pub price: Price,
    /// Every block that this window charged, after the charge.
    pub blocks: Vec<BlockCharge>,
}

/// (epsilon, delta)-differential privacy of everything that is ever charged to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImpliedPrivacy {
    pub epsilon: Epsilon,
    pub delta: Delta,
}

impl PrivacyDescription {
    /// Says what is wrong, if anything is.
    pub(super) fn check(&self) -> Result<(), String> {
        let PrivacyDescription {
            definition,
            implies,
            price,
            blocks,
            ..
        } = self;
        let mut prices = std::iter::once(price)
            .chain(blocks.iter().flat_map(|block| [&block.spent, &block.total]));
        if !prices.all(|price| definition.is_paid_by(*price)) {
            return Err("its prices are not those of its definition of privacy".to_owned());
        }
        match definition {
            PrivacyDefinition::Planned if implies.is_none() => {
                Err("it does not say what epsilon and delta its plan has".to_owned())
            }
            PrivacyDefinition::Random(random) if !(random.gamma > 0.0 && random.gamma < 1.0) => {
                Err("its gamma is not between 0 and 1".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Kind of differential privacy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PrivacyDefinition {
    #[serde(rename = "pure epsilon")]
    PureEpsilon,
    /// (epsilon, delta).
    #[serde(rename = "epsilon-delta")]
    Approximate,
    /// rho.
    #[serde(rename = "zero-concentrated")]
    Concentrated,
    /// Every release is Gaussian noise: rho, of which `sqrt(2 rho)` is the `mu` of Gaussian differential privacy.
    #[serde(rename = "gaussian")]
    Gaussian,
    /// A plan that was declared before any of it was released: [`PrivacyDescription::implies`], of all its windows together.
    #[serde(rename = "declared plan")]
    Planned,
    /// Less: the noise is made for a sensitivity that was sampled.
    #[serde(rename = "random")]
    Random(RandomPrivacy),
}

impl PrivacyDefinition {
    /// Definition of a budget with this total, where nothing more is known of what it is spent on.
    pub fn from_total(total: Price) -> Self {
        match total {
            Price::Pure(_) => PrivacyDefinition::PureEpsilon,
            Price::Approximate { .. } => PrivacyDefinition::Approximate,
            Price::Concentrated(_) => PrivacyDefinition::Concentrated,
            Price::Slots(_) => PrivacyDefinition::Planned,
        }
    }

    /// Name in a word.
    pub fn name(&self) -> &'static str {
        match self {
            PrivacyDefinition::PureEpsilon => "pure epsilon",
            PrivacyDefinition::Approximate => "epsilon-delta",
            PrivacyDefinition::Concentrated => "zero-concentrated",
            PrivacyDefinition::Gaussian => "gaussian",
            PrivacyDefinition::Planned => "declared plan",
            PrivacyDefinition::Random(_) => "random",
        }
    }

    /// Tests that budgets of the two add up: the kinds are the same, and so is whether the guarantee is plain.
    pub fn is_kind_of(&self, other: &PrivacyDefinition) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Tests that a price of this kind is what such a guarantee costs.
    fn is_paid_by(&self, price: Price) -> bool {
        match self {
            PrivacyDefinition::Random(_) => {
                PrivacyDefinition::from_total(price) == PrivacyDefinition::PureEpsilon
            }
            PrivacyDefinition::Gaussian => {
                PrivacyDefinition::from_total(price) == PrivacyDefinition::Concentrated
            }
            plain => PrivacyDefinition::from_total(price) == *plain,
        }
    }
}

impl fmt::Display for PrivacyDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivacyDefinition::PureEpsilon => f.write_str("pure differential privacy"),
            PrivacyDefinition::Approximate => {
                f.write_str("approximate, (epsilon, delta)-differential privacy")
            }
            PrivacyDefinition::Concentrated => {
                f.write_str("zero-concentrated differential privacy")
            }
            PrivacyDefinition::Gaussian => f.write_str("Gaussian differential privacy"),
            PrivacyDefinition::Planned => {
                f.write_str("(epsilon, delta)-differential privacy of a declared plan")
            }
            PrivacyDefinition::Random(RandomPrivacy { gamma, .. }) => {
                write!(f, "RANDOM differential privacy, gamma = {gamma}")
            }
        }
    }
}

/// Random differential privacy (`[RA17]`): for a window of records drawn independently from the prior, and one of them, the
/// guarantee holds with probability at least `1 - gamma`, over those draws and the sampler's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RandomPrivacy {
    pub gamma: f64,
    /// The size of a window that it speaks of.
    pub records: u32,
    pub prior: Vec<PriorColumn>,
    /// Number of pairs that were drawn, which order statistic of their changes was taken, and how `gamma` was split.
    pub samples: u32,
    pub order: u32,
    pub rho: f64,
    pub seed: u64,
    /// Range that every value is clipped to before the noise, in the units of the values.
    pub range: [f64; 2],
    /// Epsilon a window of the pure differential privacy that the noise gives, whatever the records are.
    pub epsilon_at_worst: f64,
}

/// Law that a column was drawn from, in natural units, moved to the bounds where it lies outside of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PriorColumn {
    pub column: String,
    pub law: PriorDistribution,
}

/// Unit whose privacy is protected; written as in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitDescription {
    Record,
    User {
        column: String,
        per: String,
        /// Absent where no release keeps records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_records_per_window: Option<u32>,
    },
}

/// One block of time, and what of its budget is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCharge {
    pub start: Timestamp,
    pub end: Timestamp,
    pub spent: Price,
    pub total: Price,
}
