//! `[release]` as written.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

use crate::settings::NoiseKind;
use crate::targets;
use crate::targets::with_targets;
use crate::text::Field;
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
        struct Written;

        impl<'de> Visitor<'de> for Written {
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

        deserializer.deserialize_any(Written)
    }
}

macro_rules! release {
    ($($target:ident),*) => {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Release {
            pub name: Field<String>,
            pub title: Field<String>,
            pub description: Field<String>,
            pub record: Field<String>,
            pub windows: Field<WindowKind>,
            pub epsilon: Field<f64>,
            pub delta: Field<f64>,
            pub rho: Field<f64>,
            pub horizon: Field<String>,
            pub half_after: Field<String>,
            pub share: Field<f64>,
            pub degree: Field<Auto<u32>>,
            pub order: Field<Auto<u32>>,
            pub points: Field<Auto<PointCounts>>,
            pub spline: Field<Auto<Spline>>,
            pub step: Field<Auto<Vec<f64>>>,
            pub private_order: Field<PrivateOrder>,
            pub expected_records: Field<u64>,
            pub smoothness: Field<Smoothness>,
            pub noise: Field<Auto<NoiseKind>>,
            pub scale: Field<Scale>,
            pub domain: Field<Vec<Spanned<Axis>>>,
            pub label: Field<Label>,
            $(pub $target: Field<targets::$target::Table>,)*
            pub sampled: Field<Sampled>,
        }
    };
}
with_targets!(release);

/// Which windows a synopsis covers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    Tumbling,
    Hopping(Spanned<String>),
    Cumulative(Spanned<String>),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    Tight,
    Paper,
}

/// At most so many kernel points, or so many evenly spaced ones along each axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum PointCounts {
    Most(u32),
    Tensor(Vec<u32>),
}

/// A value, or the word `"auto"`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Auto<T> {
    Fixed(T),
    Auto(Word),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Auto,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    pub column: Field<String>,
    pub label: Field<String>,
    pub unit: Field<String>,
    pub min: Field<f64>,
    pub max: Field<f64>,
    pub outside: Field<Outside>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    pub column: Field<String>,
    pub min: Field<f64>,
    pub max: Field<f64>,
    pub outside: Field<Outside>,
    pub above: Field<f64>,
    pub values: Field<Vec<f64>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    Clamp,
    Drop,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivateOrder {
    pub epsilon: Field<f64>,
    pub candidates: Field<Vec<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampled {
    pub gamma: Field<f64>,
    pub samples: Field<u32>,
    pub records: Field<u32>,
    pub seed: Field<u64>,
    pub range: Field<Vec<Spanned<f64>>>,
    pub prior: Field<Vec<Spanned<PriorColumn>>>,
    pub result: Field<SampledResult>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorColumn {
    pub column: Field<String>,
    pub law: Field<PriorDistribution>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampledResult {
    pub sensitivity: Field<u64>,
    pub largest: Field<u64>,
    pub samples: Field<u32>,
    pub order: Field<u32>,
    pub rho: Field<f64>,
    pub digest: Field<String>,
}
