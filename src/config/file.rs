//! The file as written: names and shapes, no rules.
//!
//! Every field is optional and carries its place in the text, so that what is missing or wrong is reported by us, with
//! its line, and all of it at once. No `flatten` and no untagged tables: both lose the place of an error.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use toml::value::Datetime;

pub use crate::config::composition::Composition;
pub use crate::synopsis::approximation::Smoothness;
pub use crate::targets::machine::Loss;
pub use crate::targets::sampler::PriorDistribution;

/// A value that may be missing, with its place.
pub type Field<T> = Option<Spanned<T>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub pipeline: Field<String>,
    pub input: Field<Input>,
    pub windows: Field<Windows>,
    pub privacy: Field<Privacy>,
    pub release: Field<Releases>,
    pub output: Field<Output>,
    pub ledger: Field<Ledger>,
    pub serve: Field<Serve>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub time: Field<String>,
    pub key: Field<Key>,
    pub kafka: Field<InputKafka>,
    pub files: Field<Files>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    pub column: Field<String>,
    pub values: Field<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputKafka {
    pub brokers: Field<String>,
    pub tls: Field<Tls>,
    pub sasl: Field<Sasl>,
    pub topic: Field<String>,
    pub clock_slack: Field<String>,
    pub trust_producer_time: Field<bool>,
    pub on_bad_message: Field<OnBadMessage>,
    pub skip: Field<Vec<Spanned<Skip>>>,
    pub lost: Field<Vec<Spanned<Lost>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub ca: Field<String>,
    pub certificate: Field<String>,
    pub key: Field<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sasl {
    pub mechanism: Field<String>,
    pub username: Field<String>,
    pub password_file: Field<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBadMessage {
    Stop,
    Skip,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    pub partition: Field<u32>,
    pub offset: Field<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    pub partition: Field<u32>,
    pub from: Field<u64>,
    pub to: Field<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    pub path: Field<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    pub origin: Field<Time>,
    pub length: Field<String>,
    pub end: Field<Time>,
    pub grace: Field<String>,
    pub ahead: Field<String>,
    pub publish_delay: Field<String>,
}

/// A time, as a string or as a TOML date-time.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Time {
    Datetime(Datetime),
    Text(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Privacy {
    pub unit: Field<Unit>,
    pub adjacency: Field<Adjacency>,
    pub epsilon: Field<f64>,
    pub delta: Field<f64>,
    pub rho: Field<f64>,
    pub composition: Field<Composition>,
    pub windows: Field<u64>,
    pub reserve: Field<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Record,
    User(Spanned<User>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    pub column: Field<String>,
    pub per: Field<String>,
    pub max_records_per_window: Field<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adjacency {
    AddRemove,
    ReplaceOne(Spanned<ReplaceOne>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaceOne {
    pub records_per_window: Field<u64>,
}

/// `[release]`, or several `[[release]]`.
#[derive(Debug)]
pub enum Releases {
    One(Box<Release>),
    Several(Vec<Spanned<Release>>),
}

/// By hand: an untagged enum would lose the places of what is inside.
impl<'de> Deserialize<'de> for Releases {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl<'de> Visitor<'de> for Written {
            type Value = Releases;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("[release], or one or more [[release]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Releases, A::Error> {
                Release::deserialize(MapAccessDeserializer::new(map)).map(|one| Releases::One(Box::new(one)))
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    pub name: Field<String>,
    pub windows: Field<WindowKind>,
    pub epsilon: Field<f64>,
    pub delta: Field<f64>,
    pub rho: Field<f64>,
    pub horizon: Field<String>,
    pub half_after: Field<String>,
    pub share: Field<f64>,
    pub degree: Field<Auto<u32>>,
    pub order: Field<Auto<u32>>,
    pub points: Field<Auto<u32>>,
    pub private_order: Field<PrivateOrder>,
    pub expected_records: Field<u64>,
    pub smoothness: Field<Smoothness>,
    pub noise: Field<Noise>,
    pub scale: Field<Scale>,
    pub domain: Field<Vec<Spanned<Axis>>>,
    pub label: Field<Label>,
    pub density: Field<Density>,
    pub regression: Field<Regression>,
    pub bayes: Field<Bayes>,
    pub machine: Field<Machine>,
    pub logistic: Field<Logistic>,
    pub expression: Field<Expression>,
    pub moments: Field<Moments>,
    pub sampled: Field<Sampled>,
}

/// What a release speaks of.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    Tumbling,
    Hopping(Spanned<String>),
    Cumulative(Spanned<String>),
}

/// The law of the noise.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    Laplace,
    Cube,
    Ball,
    Gaussian,
    GaussianProcess,
    Auto,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    Tight,
    Paper,
}

/// A value, or the word that leaves it to the program.
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
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Density {
    pub bandwidths: Field<Vec<Spanned<f64>>>,
    pub covariance: Field<Vec<Spanned<Vec<Spanned<f64>>>>>,
    pub private_bandwidths: Field<PrivateBandwidths>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivateBandwidths {
    pub epsilon: Field<f64>,
    pub candidates: Field<Vec<Spanned<Vec<Spanned<f64>>>>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivateOrder {
    pub epsilon: Field<f64>,
    pub candidates: Field<Vec<u32>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regression {
    pub bandwidth: Field<f64>,
    pub gap: Field<f64>,
    pub max_records: Field<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bayes {
    pub bandwidths: Field<Vec<Spanned<f64>>>,
    pub min_deviations: Field<Vec<Spanned<f64>>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub loss: Field<Loss>,
    pub kernel: Field<Kernel>,
    pub c: Field<f64>,
    pub max_records: Field<u32>,
    pub landmarks: Field<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    Gaussian(Spanned<Width>),
    Laplacian(Spanned<Width>),
    Polynomial(Spanned<Power>),
    Linear,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Width {
    pub bandwidth: Field<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    pub power: Field<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logistic {
    pub score: Field<Score>,
    pub c: Field<f64>,
    pub max_records: Field<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Score {
    Linear,
    Sigmoid,
}

/// `[release.moments]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moments {
    pub frequencies: Field<u32>,
    pub smoothness: Field<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expression {
    pub value: Field<String>,
    pub clip: Field<Clip>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clip {
    pub sup: Field<f64>,
    pub sum: Field<f64>,
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

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    Clamp,
    Drop,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    pub kafka: Field<OutputKafka>,
    pub files: Field<Files>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputKafka {
    pub brokers: Field<String>,
    pub tls: Field<Tls>,
    pub sasl: Field<Sasl>,
    pub topic: Field<String>,
    pub witness: Field<String>,
    pub witness_min_insync_replicas: Field<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    pub path: Field<String>,
    pub keep_published: Field<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    pub listen: Field<String>,
    pub dashboard: Field<String>,
    pub detail: Field<Detail>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    Safe,
    Operator,
}
