//! The file as written, except for its releases.
//!
//! Every field is optional and carries its position in the text, so that everything missing or wrong is reported at once, each
//! with its line. No `flatten` and no untagged tables: both lose the position of an error.

use serde::Deserialize;
use toml::Spanned;

use crate::file::release::Releases;
use crate::text::Field;
use crate::text::values::Time;
use bernstream_kafka::source::record::{IdType, TimeFormat};

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
    pub scale: Field<SplitReading>,
    pub serve: Field<Serve>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub time: Field<String>,
    pub time_format: Field<TimeFormat>,
    pub key: Field<Key>,
    pub kafka: Field<InputKafka>,
    pub files: Field<Files>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    pub column: Field<String>,
    #[serde(rename = "type")]
    pub kind: Field<IdType>,
    pub values: Field<Vec<Spanned<String>>>,
    pub values_file: Field<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputKafka {
    pub brokers: Field<String>,
    pub tls: Field<Tls>,
    pub sasl: Field<Sasl>,
    pub topic: Field<String>,
    pub format: Field<Format>,
    pub clock: Field<String>,
    pub clock_slack: Field<String>,
    pub producer_delay: Field<String>,
    pub readers: Field<u32>,
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

/// How messages are written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Arrow,
    Json,
    Avro(Spanned<Avro>),
    Protobuf(Spanned<Protobuf>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Avro {
    pub schemas: Field<Vec<Spanned<AvroSchema>>>,
    pub registry: Field<Registry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    pub url: Field<String>,
    pub subject: Field<String>,
    pub username: Field<String>,
    pub password_file: Field<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AvroSchema {
    pub id: Field<u32>,
    pub file: Field<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protobuf {
    pub descriptor: Field<String>,
    pub message: Field<String>,
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
    pub budget: Field<SharedBudget>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedBudget {
    pub topic: Field<String>,
    pub share: Field<f64>,
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
    #[serde(rename = "type")]
    pub kind: Field<IdType>,
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

/// Which composition theorem adds up the prices of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Composition {
    Sum,
    Concentrated,
    Gaussian,
    Plan,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    pub kafka: Field<OutputKafka>,
    pub files: Field<OutputFiles>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputFiles {
    pub path: Field<String>,
    pub witness: Field<String>,
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
    pub brokers_lose_power: Field<PowerLoss>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerLoss {
    Together,
    Separately,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    pub path: Field<String>,
    pub keep_published: Field<String>,
    pub log: Field<String>,
    pub key_file: Field<String>,
    pub standby: Field<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitReading {
    pub topic: Field<String>,
    pub key_file: Field<String>,
    pub group: Field<String>,
    pub deadline: Field<String>,
    pub most_megabytes: Field<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    pub listen: Field<String>,
    pub dashboard: Field<String>,
    pub hosts: Field<Vec<Spanned<String>>>,
    pub detail: Field<Detail>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    Safe,
    Operator,
}
