//! `[release]` as written.
// Forms of values have lists and tables in brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::json;

use crate::settings::NoiseKind;
use crate::targets;
use crate::targets::with_targets;
use crate::text::{Field, Spanned, each};
use bernstream_synopsis::description::Smoothness;
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::sampler::PriorDistribution;

/// `[release]`, or several `[[release]]`.
#[derive(Debug)]
pub enum Releases {
    One(Box<Release>),
    Several(Vec<Spanned<Release>>),
}

/// Written by hand, because an untagged enum would lose the positions of everything inside.
impl<'de> Deserialize<'de> for Releases {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ReleasesVisitor;

        impl<'de> Visitor<'de> for ReleasesVisitor {
            type Value = Releases;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("[release], or one or more [[release]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Releases, A::Error> {
                Release::deserialize(MapAccessDeserializer::new(map))
                    .map(|one| Releases::One(Box::new(one)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Releases, A::Error> {
                let mut several = Vec::new();
                while let Some(release) = seq.next_element()? {
                    several.push(release);
                }
                Ok(Releases::Several(several))
            }
        }

        deserializer.deserialize_any(ReleasesVisitor)
    }
}

/// The elements of `[[release]]` are what `[release]` is.
impl JsonSchema for Releases {
    fn schema_name() -> Cow<'static, str> {
        "Releases".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let release = Release::json_schema(generator).to_value();
        generator
            .definitions_mut()
            .insert("release".to_owned(), release);
        let release = json!({ "$ref": "#/definitions/release" });
        json_schema!({ "anyOf": [{ "type": "array", "items": release }, release] })
    }
}

macro_rules! release {
    ($($target:ident),*) => {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Release {
            /// a name such as "departure-delay"
            pub name: Field<String>,
            /// public text for people, such as "Departure delay"
            pub title: Field<String>,
            /// public text for people, a sentence or two
            pub description: Field<String>,
            /// what a record is, in the singular, such as "flight"
            pub record: Field<String>,
            /// "record" or "user": what counts as one, whatever records it has
            pub weights: Field<WrittenWeights>,
            /// "tumbling", { hopping = "24h" } or { cumulative = "365d" }
            pub windows: Field<WrittenWindowKind>,
            /// a number above 0 with at most 12 decimals, such as 0.5: the price of a window
            #[schemars(extend("exclusiveMinimum" = 0))]
            pub epsilon: Field<f64>,
            /// a number above 0 and below 1 with at most 18 decimals, such as 1e-9: the price of a window
            #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
            pub delta: Field<f64>,
            /// a number above 0 with at most 12 decimals, such as 0.01: the price of a window
            #[schemars(extend("exclusiveMinimum" = 0))]
            pub rho: Field<f64>,
            /// a duration such as "365d": the total is divided evenly among the windows in this time
            pub horizon: Field<String>,
            /// a duration such as "30d": half of the total is spent in this time, and less and less after it
            pub half_after: Field<String>,
            /// a number above 0, at most 1, with at most 6 decimals, such as 0.5: a fraction of the total
            #[schemars(extend("exclusiveMinimum" = 0))]
            pub share: Field<f64>,
            /// a whole number from 1, such as 40, or "auto"
            #[schemars(extend("minimum" = 1))]
            pub degree: Field<Auto<u32>>,
            /// a whole number from 1 to 200, such as 2, or "auto"
            #[schemars(extend("minimum" = 1, "maximum" = 200))]
            pub order: Field<Auto<u32>>,
            /// a table such as { epsilon = 0.1, candidates = [1, 2, 4, 8] }, instead of `order`
            pub private_order: Field<PrivateOrderTable>,
            /// a whole number from 1, such as 300: a public guess at the records of a window and key
            #[schemars(range(min = 1))]
            pub expected_records: Field<u64>,
            /// "laplace", "cube", "ball", "cells", "gaussian", "gaussian_process", "gaussian_cells" or "auto"
            #[schemars(with = "Field<String>", extend("enum" = ["laplace", "cube", "ball", "cells", "gaussian", "gaussian_process", "gaussian_cells", "auto"]))]
            pub noise: Field<Auto<NoiseKind>>,
            /// "box", "linear", "quadratic" or "auto": how cells share a record
            #[schemars(with = "Field<String>", extend("enum" = ["box", "linear", "quadratic", "auto"]))]
            pub spline: Field<Auto<Spline>>,
            /// a list such as [10], the width of a cell on each axis in the units of its column, or "auto"
            #[schemars(transform = each(json!({
                "description": "a number above 0 in the units of the column, such as 10",
                "exclusiveMinimum": 0,
            })))]
            pub step: Field<Auto<Vec<f64>>>,
            /// a whole number from 1, such as 24, a list such as [6, 6], or "auto": kernel points, in place of degree and order
            #[schemars(extend("minimum" = 1))]
            pub points: Field<Auto<PointCounts>>,
            /// a table such as { lipschitz = [0.1] }, { curvature = [0.01] } or { norm = 5 }: your claim, one number per axis
            pub smoothness: Field<SmoothnessClaim>,
            /// "tight" or "paper"
            pub scale: Field<WrittenScale>,
            /// a list such as [{ column = "delay", min = -30, max = 180, outside = "clamp" }]
            pub domain: Field<Vec<Spanned<AxisTable>>>,
            /// a table such as { column = "delay", min = -60, max = 180, outside = "clamp" } or { column = "delay", above = 15 } or { column = "rating", values = [1, 2, 3] }
            pub label: Field<LabelTable>,
            $(pub $target: Field<targets::$target::Table>,)*
            /// a table [release.sampled]
            pub sampled: Field<SampledTable>,
        }
    };
}
with_targets!(release);

impl Release {
    /// The table by key that it publishes; `None` for a function of each key.
    pub fn counts_by_key(&self) -> Option<KeyedFunction> {
        match (&self.counts, &self.quantiles) {
            (Some(_), _) => Some(KeyedFunction::Counts),
            (None, Some(_)) => Some(KeyedFunction::Quantiles),
            (None, None) => None,
        }
    }

    /// How many numbers of such a table a unit changes: one of each key that counts, or of quantiles a place and its block.
    pub fn changed_numbers(&self) -> u32 {
        if let Some(counts) = &self.counts {
            return counts
                .get_ref()
                .max_keys
                .as_ref()
                .map_or(1, |most| *most.get_ref());
        }
        let quantiles = self
            .quantiles
            .as_ref()
            .and_then(|quantiles| quantiles.get_ref().max_keys.as_ref());
        quantiles
            .map_or(1, |most| *most.get_ref())
            .saturating_mul(2)
    }
}

/// One table of all keys, in place of a function of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyedFunction {
    Counts,
    Quantiles,
}

/// Which windows a synopsis covers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenWindowKind {
    Tumbling,
    /// a duration such as "24h", several windows of [windows]
    Hopping(Spanned<String>),
    /// a duration such as "365d": how long the error of the sum is optimized for
    Cumulative(Spanned<String>),
}

/// Unit that counts as one: a record, or all records of a user in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenWeights {
    Record,
    User,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenScale {
    Tight,
    Paper,
}

// At most so many kernel points, or so many evenly spaced ones along each axis.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PointCounts {
    Most(u32),
    Tensor(
        #[schemars(transform = each(json!({
            "description": "a whole number from 1, such as 6: evenly spaced points along this axis",
            "minimum": 1,
        })))]
        Vec<u32>,
    ),
}

/// A value, or the word `"auto"`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Auto<T> {
    Fixed(T),
    Auto(AutoWord),
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AutoWord {
    Auto,
}

/// a table such as { column = "delay", min = -30, max = 180, outside = "clamp" }
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AxisTable {
    /// the name of a column of numbers, such as "delay"
    pub column: Field<String>,
    /// public text for people in place of the column, such as "departure delay"
    pub label: Field<String>,
    /// the unit of the column, in the singular, such as "minute"
    pub unit: Field<String>,
    /// a number such as -30: a bound that does not come from the data
    pub min: Field<f64>,
    /// a number such as 180: a bound that does not come from the data
    pub max: Field<f64>,
    /// "clamp" or "drop"
    pub outside: Field<WrittenOutside>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelTable {
    /// the name of a column of numbers, such as "delay"
    pub column: Field<String>,
    /// a number such as -60: a bound that does not come from the data
    pub min: Field<f64>,
    /// a number such as 180: a bound that does not come from the data
    pub max: Field<f64>,
    /// "clamp" or "drop"
    pub outside: Field<WrittenOutside>,
    /// a number such as 15: labels above it are one class, all others the other
    pub above: Field<f64>,
    /// a list of 2 to 16 numbers such as [1, 2, 3]: a class each; records with others are left out
    #[schemars(transform = each(json!({ "description": "a number such as 1" })))]
    pub values: Field<Vec<f64>>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenOutside {
    Clamp,
    Drop,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrivateOrderTable {
    /// a number above 0 with at most 12 decimals, such as 0.1: the price of a choice
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub epsilon: Field<f64>,
    /// a list of 2 to 16 ascending orders, such as [1, 2, 4, 8]
    pub candidates: Field<Vec<u32>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampledTable {
    /// a number between 0 and 1, such as 0.1
    pub gamma: Field<f64>,
    /// a whole number from 1, such as 500: how many pairs are drawn
    #[schemars(range(min = 1))]
    pub samples: Field<u32>,
    /// a whole number from 1, such as 500: the public size of a window
    #[schemars(range(min = 1))]
    pub records: Field<u32>,
    /// a whole number from 0, such as 1
    pub seed: Field<u64>,
    /// two numbers such as [0, 50] that do not come from the data: values are clipped to them
    #[schemars(transform = each(json!({ "description": "a number such as 50" })))]
    pub range: Field<Vec<Spanned<f64>>>,
    /// a list such as [{ column = "delay", law = { normal = { mean = 0, deviation = 10 } } }]
    pub prior: Field<Vec<Spanned<PriorColumnTable>>>,
    /// the table that `bernstream sample` prints
    pub result: Field<SampledResult>,
}

/// a table such as { column = "delay", law = { normal = { mean = 0, deviation = 10 } } }
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorColumnTable {
    /// the name of a column of the domain or of the label, such as "delay"
    pub column: Field<String>,
    /// a distribution such as { uniform = { min = 0, max = 1 } }, normal, exponential or points
    pub law: Field<ColumnLaw>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampledResult {
    /// a whole number, as `bernstream sample` prints it
    pub sensitivity: Field<u64>,
    /// a whole number, as `bernstream sample` prints it
    pub largest: Field<u64>,
    /// a whole number, as `bernstream sample` prints it
    pub samples: Field<u32>,
    /// a whole number, as `bernstream sample` prints it
    pub order: Field<u32>,
    /// a number, as `bernstream sample` prints it
    pub rho: Field<f64>,
    /// 64 hexadecimal digits in quotes, as `bernstream sample` prints them
    pub digest: Field<String>,
}

/// A claim about the function, which nobody can check from the records.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SmoothnessClaim(#[serde(with = "SmoothnessTable")] pub Smoothness);

#[derive(Deserialize, JsonSchema)]
#[serde(remote = "Smoothness", rename_all = "snake_case")]
enum SmoothnessTable {
    /// a list such as [0.1]: a Lipschitz constant for each axis, per unit
    Lipschitz(
        #[schemars(transform = each(json!({
            "description": "a number above 0, such as 0.1",
            "exclusiveMinimum": 0,
        })))]
        Vec<f64>,
    ),
    /// a list such as [0.01]: the largest second derivative along each axis
    Curvature(
        #[schemars(transform = each(json!({
            "description": "a number above 0, such as 0.01",
            "exclusiveMinimum": 0,
        })))]
        Vec<f64>,
    ),
    /// a number above 0, such as 5: the norm of the function in the kernel's Hilbert space
    Norm(#[schemars(extend("exclusiveMinimum" = 0))] f64),
}

/// The distribution of a column.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ColumnLaw(#[serde(with = "LawTable")] pub PriorDistribution);

#[derive(Deserialize, JsonSchema)]
#[serde(
    remote = "PriorDistribution",
    rename_all = "snake_case",
    deny_unknown_fields
)]
enum LawTable {
    /// a table such as { min = 0, max = 1 }
    Uniform {
        /// a number such as 0
        min: f64,
        /// a number such as 1
        max: f64,
    },
    /// a table such as { mean = 0, deviation = 10 }
    Normal {
        /// a number such as 0
        mean: f64,
        /// a number from 0, such as 10
        #[schemars(extend("minimum" = 0))]
        deviation: f64,
    },
    /// a table such as { min = 0, mean = 20 }
    Exponential {
        /// a number such as 0: where it starts
        min: f64,
        /// a number above 0, such as 20: the mean above `min`
        #[schemars(extend("exclusiveMinimum" = 0))]
        mean: f64,
    },
    /// a table such as { values = [0, 1], weights = [3, 1] }
    Points {
        /// a list of numbers such as [0, 1]
        values: Vec<f64>,
        /// a list of numbers from 0, such as [3, 1]
        #[serde(default)]
        weights: Option<Vec<f64>>,
    },
}
