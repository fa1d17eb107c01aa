//! The file as written, except for its releases.
//!
//! Every field is optional and carries its position in the text, so that everything missing or wrong is reported at once, each
//! with its line. No `flatten` and no untagged tables: both lose the position of an error.
//!
//! The doc comment of a key is the form of its value: it is in the hints of errors, and in the JSON Schema.
// Forms of values have lists and tables in brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::file::key_values::{WrittenKeys, WrittenOther};
use crate::file::release::Releases;
use crate::text::values::Time;
use crate::text::{Field, Spanned, each};
use bernstream_kafka::source::record::{IdType, TimeFormat};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "bernstream: what is released of a stream, and what it costs")]
pub struct ConfigFile {
    /// a name such as "flights"
    pub pipeline: Field<String>,
    /// a table [input]
    pub input: Field<InputTable>,
    /// a table [windows]
    pub windows: Field<WindowsTable>,
    /// a table [privacy]
    pub privacy: Field<PrivacyTable>,
    /// a table [release], or several [[release]]
    pub release: Field<Releases>,
    /// a table [output]
    pub output: Field<OutputTable>,
    /// a table [ledger]
    pub ledger: Field<LedgerTable>,
    /// a table [scale]
    pub scale: Field<ScaleTable>,
    /// a table [serve]
    pub serve: Field<ServeTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputTable {
    /// the name of the event-time column, such as "time"
    pub time: Field<String>,
    /// "rfc3339", "seconds", "milliseconds", "microseconds" or "nanoseconds": how the event time is written
    #[schemars(with = "Field<String>", extend("enum" = ["rfc3339", "seconds", "milliseconds", "microseconds", "nanoseconds"]))]
    pub time_format: Field<TimeFormat>,
    /// a table such as { column = "origin", values = ["EWR", "JFK"] }
    pub key: Field<KeyTable>,
    /// a table [input.kafka]
    pub kafka: Field<InputKafka>,
    /// a table such as { path = "flights" }
    pub files: Field<InputFiles>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyTable {
    /// the name of a column, such as "origin"
    pub column: Field<String>,
    /// a list of two or three columns in place of `column`, such as ["country", "device"]: a key has a part from each
    #[schemars(transform = each(json!({ "description": "the name of a column in quotes, such as \"country\"" })))]
    pub columns: Field<Vec<Spanned<String>>>,
    /// "text" or "integer": the type of the key in records
    #[schemars(with = "Field<String>", extend("enum" = ["text", "integer"]))]
    #[serde(rename = "type")]
    pub kind: Field<IdType>,
    /// a list of the types of `columns` in records where they differ, such as ["text", "integer"]
    #[schemars(
        with = "Field<Vec<String>>",
        transform = each(json!({ "description": "\"text\" or \"integer\"", "enum": ["text", "integer"] }))
    )]
    pub types: Field<Vec<Spanned<IdType>>>,
    /// a list of every key, such as ["EWR", "JFK"], or of several columns [["DE", "phone"], ["FR", "web"]], or { country = ["DE", "FR"], device = ["phone", "web"] } for every combination
    pub values: Field<WrittenKeys>,
    /// the path of a text file with one key a line in quotes, in place of `values`; of several columns a CSV file
    pub values_file: Field<String>,
    /// a name such as "other", the key of all records whose key is not listed; where `values` are combined that of each column, or { country = "other" } for some of them
    pub other: Field<WrittenOther>,
    /// a table such as { keep = "7d" }, or {}, in place of `values`: keys are found privately, by how many users or records they have
    pub found: Field<FoundTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FoundTable {
    /// a duration such as "7d": so long a key is published after the last window that had it above the threshold; without it "7d"
    pub keep: Field<String>,
    /// a whole number from 1 to 100000, such as 5000: the most keys that a window publishes; without it 10000
    #[schemars(range(min = 1, max = 100_000))]
    pub most: Field<u32>,
    /// a whole number from 1 to 1024, such as 128: the longest key in bytes, longer ones are dropped; without it 256
    #[schemars(range(min = 1, max = 1024))]
    pub longest: Field<u32>,
    /// a whole number from 1, such as 200000: the most different keys that a window keeps, where every record is a unit; without it 1000000
    #[schemars(range(min = 1))]
    pub candidates: Field<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputKafka {
    /// addresses such as "localhost:9092" or "one:9092,two:9092"
    pub brokers: Field<String>,
    /// a table such as { ca = "/etc/bernstream/ca.pem" }, or {} for the system's authorities
    pub tls: Field<TlsTable>,
    /// a table such as { mechanism = "SCRAM-SHA-512", username = "bernstream", password_file = "/run/secrets/kafka" }
    pub sasl: Field<SaslTable>,
    /// the name of a topic, such as "flights"
    pub topic: Field<String>,
    /// "arrow", "json", { avro = { schemas = [{ id = 7, file = "ride.avsc" }] } } or { protobuf = { descriptor = "ride.binpb", message = "rides.Ride" } }
    pub format: Field<WrittenFormat>,
    /// the name of a small topic that tells the brokers' time, such as "flights-clock"
    pub clock: Field<String>,
    /// a duration such as "45s", more than replica.lag.time.max.ms of the brokers and what their clocks differ
    pub clock_slack: Field<String>,
    /// a duration such as "10s": within it of its event time a producer sends a record, whatever other records there are
    pub producer_delay: Field<String>,
    /// a whole number from 1, such as 4
    #[schemars(range(min = 1))]
    pub readers: Field<u32>,
    /// true or false
    pub trust_producer_time: Field<bool>,
    /// "stop" or "skip"
    pub on_bad_message: Field<WrittenBadMessageRule>,
    /// a list such as [{ partition = 0, offset = 17 }]
    pub skip: Field<Vec<Spanned<SkipTable>>>,
    /// a list such as [{ partition = 0, from = 0, to = 1200 }]
    pub lost: Field<Vec<Spanned<LostTable>>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsTable {
    /// the path of a file of certificate authorities (PEM) in quotes
    pub ca: Field<String>,
    /// the path of the client's certificate (PEM) in quotes
    pub certificate: Field<String>,
    /// the path of the client's private key (PEM) in quotes
    pub key: Field<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaslTable {
    /// "SCRAM-SHA-512", "SCRAM-SHA-256" or "PLAIN"
    #[schemars(extend("enum" = ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]))]
    pub mechanism: Field<String>,
    /// a name such as "bernstream"
    pub username: Field<String>,
    /// the path of a file that holds the password in quotes
    pub password_file: Field<String>,
}

/// How messages are written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenFormat {
    Arrow,
    Json,
    /// a table such as { schemas = [{ id = 7, file = "ride.avsc" }] }
    Avro(Spanned<AvroTable>),
    /// a table such as { descriptor = "ride.binpb", message = "rides.Ride" }
    Protobuf(Spanned<ProtobufTable>),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AvroTable {
    /// a list such as [{ id = 7, file = "ride.avsc" }]
    pub schemas: Field<Vec<Spanned<AvroSchemaTable>>>,
    /// a table such as { url = "http://registry:8081", subject = "rides-value" }
    pub registry: Field<RegistryTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryTable {
    /// the address of a schema registry, such as "http://registry:8081"
    pub url: Field<String>,
    /// the name of a subject, such as "rides-value"
    pub subject: Field<String>,
    /// a name such as "bernstream"
    pub username: Field<String>,
    /// the path of a file that holds the password in quotes
    pub password_file: Field<String>,
}

/// a table such as { id = 7, file = "ride.avsc" }
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AvroSchemaTable {
    /// the id of a schema in the registry, such as 7
    pub id: Field<u32>,
    /// the path of a file with the schema (JSON) in quotes
    pub file: Field<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProtobufTable {
    /// the path of a file that `protoc --include_imports --descriptor_set_out` wrote, in quotes
    pub descriptor: Field<String>,
    /// the name of a message with its package, such as "rides.Ride"
    pub message: Field<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenBadMessageRule {
    Stop,
    Skip,
}

/// a table such as { partition = 0, offset = 17 }
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkipTable {
    /// the number of a partition, such as 0
    pub partition: Field<u32>,
    /// the offset of a broken message, such as 17
    pub offset: Field<u64>,
}

/// a table such as { partition = 0, from = 0, to = 1200 }
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LostTable {
    /// the number of a partition, such as 0
    pub partition: Field<u32>,
    /// the first lost offset, such as 0
    pub from: Field<u64>,
    /// the first offset that is not lost, such as 1200
    pub to: Field<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputFiles {
    /// the path of a file or a folder in quotes
    pub path: Field<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowsTable {
    /// a time with a UTC offset, such as "2013-01-01T05:00:00Z"
    pub origin: Field<Time>,
    /// a duration such as "1d"
    pub length: Field<String>,
    /// a time with a UTC offset, such as "2014-01-01T05:00:00Z"
    pub end: Field<Time>,
    /// a duration such as "1h": allowed lateness, how long after its end a window still accepts records
    pub grace: Field<String>,
    /// a duration such as "5m": max future skew, how far event time may be ahead of the message timestamp
    pub ahead: Field<String>,
    /// a duration such as "1m": from the cutoff of a window to its publication
    pub publish_delay: Field<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrivacyTable {
    /// "record" or { user = { column = "user_id", per = "1d", max_records_per_window = 20 } }
    pub unit: Field<WrittenUnit>,
    /// "add_remove" or { replace_one = { records_per_window = 5000 } }
    pub adjacency: Field<WrittenAdjacency>,
    /// a number above 0 with at most 12 decimals, such as 1.0: the total of a unit
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub epsilon: Field<f64>,
    /// a number above 0 and below 1 with at most 18 decimals, such as 1e-9: the total of a unit
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub delta: Field<f64>,
    /// a number above 0 with at most 12 decimals, such as 0.05: the total of a unit, instead of epsilon
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub rho: Field<f64>,
    /// a number from 0, and below 1, with at most 6 decimals, such as 0.1: the fraction that windows may not spend
    #[schemars(extend("minimum" = 0, "exclusiveMaximum" = 1))]
    pub reserve: Field<f64>,
    /// "sum", "concentrated", "gaussian" or "plan"
    pub composition: Field<Composition>,
    /// a table such as { topic = "flights-budget", share = 0.4 }: the total beside it is that of all pipelines of the input
    pub budget: Field<SharedBudgetTable>,
    /// a whole number from 1, such as 24: the windows of a block that are planned
    #[schemars(range(min = 1))]
    pub windows: Field<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedBudgetTable {
    /// the name of a topic beside the input, such as "flights-budget"
    pub topic: Field<String>,
    /// a number above 0, to 1, with at most 6 decimals, such as 0.4: this pipeline's part of the total, rounded down
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub share: Field<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenUnit {
    Record,
    /// a table such as { column = "user_id", per = "1d", max_records_per_window = 20 }
    User(Spanned<UserTable>),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserTable {
    /// the name of a column, such as "user_id"
    pub column: Field<String>,
    /// "text" or "integer": the type of the column in records
    #[schemars(with = "Field<String>", extend("enum" = ["text", "integer"]))]
    #[serde(rename = "type")]
    pub kind: Field<IdType>,
    /// a duration such as "1d", or "ever"
    pub per: Field<String>,
    /// a whole number from 1, such as 20
    #[schemars(range(min = 1))]
    pub max_records_per_window: Field<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenAdjacency {
    AddRemove,
    /// a table such as { records_per_window = 5000 }
    ReplaceOne(Spanned<ReplaceOneTable>),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceOneTable {
    /// a whole number from 1, such as 5000
    #[schemars(range(min = 1))]
    pub records_per_window: Field<u64>,
}

/// Which composition theorem adds up the prices of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Composition {
    Sum,
    Concentrated,
    Gaussian,
    Plan,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputTable {
    /// a table [output.kafka]
    pub kafka: Field<OutputKafka>,
    /// a table such as { path = "out" }
    pub files: Field<OutputFiles>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputFiles {
    /// the path of a folder in quotes
    pub path: Field<String>,
    /// the absolute path of a file outside that folder in quotes
    pub witness: Field<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputKafka {
    /// addresses such as "localhost:9092"
    pub brokers: Field<String>,
    /// a table such as { ca = "/etc/bernstream/ca.pem" }, or {} for the system's authorities
    pub tls: Field<TlsTable>,
    /// a table such as { mechanism = "SCRAM-SHA-512", username = "bernstream", password_file = "/run/secrets/kafka" }
    pub sasl: Field<SaslTable>,
    /// the name of a topic, such as "flights-synopses"
    pub topic: Field<String>,
    /// the name of a topic of one partition, such as "flights-witness"
    pub witness: Field<String>,
    /// a whole number from 1, such as 2
    #[schemars(range(min = 1))]
    pub witness_min_insync_replicas: Field<u32>,
    /// "together" or "separately"
    pub brokers_lose_power: Field<WrittenPowerLoss>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenPowerLoss {
    Together,
    Separately,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerTable {
    /// the path of a folder in quotes, on a local disk
    pub path: Field<String>,
    /// a duration such as "7d"
    pub keep_published: Field<String>,
    /// the name of a topic of one partition, such as "flights-ledger"
    pub log: Field<String>,
    /// the path of a file of 32 random bytes in quotes
    pub key_file: Field<String>,
    /// a duration of at least a second, such as "10s"
    pub standby: Field<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleTable {
    /// the name of a topic, such as "flights-partials"
    pub topic: Field<String>,
    /// the path of a file of 32 random bytes in quotes
    pub key_file: Field<String>,
    /// the name of a consumer group, such as "flights"
    pub group: Field<String>,
    /// a duration such as "30s", less than windows.publish_delay without input.kafka.clock_slack
    pub deadline: Field<String>,
    /// a whole number from 1, such as 512
    #[schemars(range(min = 1))]
    pub most_megabytes: Field<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServeTable {
    /// an address such as "127.0.0.1:9464"
    pub listen: Field<String>,
    /// an address such as "127.0.0.1:9465"
    pub dashboard: Field<String>,
    /// a list of names such as ["dashboard.example.org"], without a port
    pub hosts: Field<Vec<Spanned<String>>>,
    /// "safe" or "operator"
    pub detail: Field<WrittenDetail>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenDetail {
    Safe,
    Operator,
}
