//! Names for people.

use serde::{Deserialize, Serialize};

/// Names that the operator declared to be written at a plot. They are public text: no number depends on them, nor does the digest
/// of the settings, so that a ledger goes on under better names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlotNames {
    /// Title of the release, such as "Departure delay, New York".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A sentence or two under the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Noun for a record, in the singular, such as "flight".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// Names of the axes, in their order; empty if none has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<AxisNames>,
}

/// Names of one axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AxisNames {
    /// Label in place of the column's name, such as "departure delay".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Unit of the column, in the singular, such as "minute".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}
