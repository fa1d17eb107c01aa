//! Names for people.

use serde::{Deserialize, Serialize};

/// What the operator declared to be written at a plot. It is public text: no number depends on it, nor does the digest of the
/// settings, so that a ledger goes on under better names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Names {
    /// Of the release, such as "Departure delay, New York".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A sentence or two under the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What a record is, in the singular, such as "flight".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// Of the axes, in their order; empty if none has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<AxisNames>,
}

/// Names of one axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AxisNames {
    /// In place of the column, such as "departure delay".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The unit of the column, in the singular, such as "minute".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}
