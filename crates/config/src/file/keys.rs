//! Every key of a configuration, and the form of its value.

use std::sync::LazyLock;

use crate::targets;
type Key = (&'static str, &'static str);

/// Every key, in the order of the file.
pub static KEYS: LazyLock<Vec<Key>> =
    LazyLock::new(|| [&[BEFORE], targets::KEYS, &[AFTER]].concat().concat());

/// The keys before the tables of the targets.
const BEFORE: &[Key] = &[
    ("pipeline", r#"a name such as "flights""#),
    ("input", "a table [input]"),
    (
        "input.time",
        r#"the name of the event-time column, such as "time""#,
    ),
    (
        "input.time_format",
        r#""rfc3339", "seconds", "milliseconds", "microseconds" or "nanoseconds": how the event time is written"#,
    ),
    (
        "input.key",
        r#"a table such as { column = "origin", values = ["EWR", "JFK"] }"#,
    ),
    (
        "input.key.column",
        r#"the name of a column, such as "origin""#,
    ),
    (
        "input.key.type",
        r#""text" or "integer": the type of the key in records"#,
    ),
    (
        "input.key.values",
        r#"a list of every key, such as ["EWR", "JFK"]"#,
    ),
    ("input.key.values[]", r#"a key in quotes, such as "EWR""#),
    (
        "input.key.values_file",
        r#"the path of a text file with one key a line in quotes, in place of `values`"#,
    ),
    ("input.kafka", "a table [input.kafka]"),
    (
        "input.kafka.brokers",
        r#"addresses such as "localhost:9092" or "one:9092,two:9092""#,
    ),
    (
        "input.kafka.tls",
        r#"a table such as { ca = "/etc/bernstream/ca.pem" }, or {} for the system's authorities"#,
    ),
    (
        "input.kafka.tls.ca",
        "the path of a file of certificate authorities (PEM) in quotes",
    ),
    (
        "input.kafka.tls.certificate",
        "the path of the client's certificate (PEM) in quotes",
    ),
    (
        "input.kafka.tls.key",
        "the path of the client's private key (PEM) in quotes",
    ),
    (
        "input.kafka.sasl",
        r#"a table such as { mechanism = "SCRAM-SHA-512", username = "bernstream", password_file = "/run/secrets/kafka" }"#,
    ),
    (
        "input.kafka.sasl.mechanism",
        r#""SCRAM-SHA-512", "SCRAM-SHA-256" or "PLAIN""#,
    ),
    (
        "input.kafka.sasl.username",
        r#"a name such as "bernstream""#,
    ),
    (
        "input.kafka.sasl.password_file",
        "the path of a file that holds the password in quotes",
    ),
    (
        "input.kafka.topic",
        r#"the name of a topic, such as "flights""#,
    ),
    (
        "input.kafka.format",
        r#""arrow", "json", { avro = { schemas = [{ id = 7, file = "ride.avsc" }] } } or { protobuf = { descriptor = "ride.binpb", message = "rides.Ride" } }"#,
    ),
    (
        "input.kafka.format.avro",
        r#"a table such as { schemas = [{ id = 7, file = "ride.avsc" }] }"#,
    ),
    (
        "input.kafka.format.avro.schemas",
        r#"a list such as [{ id = 7, file = "ride.avsc" }]"#,
    ),
    (
        "input.kafka.format.avro.schemas[]",
        r#"a table such as { id = 7, file = "ride.avsc" }"#,
    ),
    (
        "input.kafka.format.avro.schemas[].id",
        "the id of a schema in the registry, such as 7",
    ),
    (
        "input.kafka.format.avro.schemas[].file",
        "the path of a file with the schema (JSON) in quotes",
    ),
    (
        "input.kafka.format.avro.registry",
        r#"a table such as { url = "http://registry:8081", subject = "rides-value" }"#,
    ),
    (
        "input.kafka.format.avro.registry.url",
        r#"the address of a schema registry, such as "http://registry:8081""#,
    ),
    (
        "input.kafka.format.avro.registry.subject",
        r#"the name of a subject, such as "rides-value""#,
    ),
    (
        "input.kafka.format.avro.registry.username",
        r#"a name such as "bernstream""#,
    ),
    (
        "input.kafka.format.avro.registry.password_file",
        "the path of a file that holds the password in quotes",
    ),
    (
        "input.kafka.format.protobuf",
        r#"a table such as { descriptor = "ride.binpb", message = "rides.Ride" }"#,
    ),
    (
        "input.kafka.format.protobuf.descriptor",
        "the path of a file that `protoc --include_imports --descriptor_set_out` wrote, in quotes",
    ),
    (
        "input.kafka.format.protobuf.message",
        r#"the name of a message with its package, such as "rides.Ride""#,
    ),
    (
        "input.kafka.clock",
        r#"the name of a small topic that tells the brokers' time, such as "flights-clock""#,
    ),
    (
        "input.kafka.clock_slack",
        r#"a duration such as "45s", more than replica.lag.time.max.ms of the brokers and what their clocks differ"#,
    ),
    (
        "input.kafka.producer_delay",
        r#"a duration such as "10s": within it of its event time a producer sends a record, whatever other records there are"#,
    ),
    ("input.kafka.readers", "a whole number from 1, such as 4"),
    ("input.kafka.trust_producer_time", "true or false"),
    ("input.kafka.on_bad_message", r#""stop" or "skip""#),
    (
        "input.kafka.skip",
        "a list such as [{ partition = 0, offset = 17 }]",
    ),
    (
        "input.kafka.skip[]",
        "a table such as { partition = 0, offset = 17 }",
    ),
    (
        "input.kafka.skip[].partition",
        "the number of a partition, such as 0",
    ),
    (
        "input.kafka.skip[].offset",
        "the offset of a broken message, such as 17",
    ),
    (
        "input.kafka.lost",
        "a list such as [{ partition = 0, from = 0, to = 1200 }]",
    ),
    (
        "input.kafka.lost[]",
        "a table such as { partition = 0, from = 0, to = 1200 }",
    ),
    (
        "input.kafka.lost[].partition",
        "the number of a partition, such as 0",
    ),
    (
        "input.kafka.lost[].from",
        "the first lost offset, such as 0",
    ),
    (
        "input.kafka.lost[].to",
        "the first offset that is not lost, such as 1200",
    ),
    ("input.files", r#"a table such as { path = "flights" }"#),
    (
        "input.files.path",
        "the path of a file or a folder in quotes",
    ),
    ("windows", "a table [windows]"),
    (
        "windows.origin",
        r#"a time with a UTC offset, such as "2013-01-01T05:00:00Z""#,
    ),
    ("windows.length", r#"a duration such as "1d""#),
    (
        "windows.end",
        r#"a time with a UTC offset, such as "2014-01-01T05:00:00Z""#,
    ),
    (
        "windows.grace",
        r#"a duration such as "1h": allowed lateness, how long after its end a window still accepts records"#,
    ),
    (
        "windows.ahead",
        r#"a duration such as "5m": max future skew, how far event time may be ahead of the message timestamp"#,
    ),
    (
        "windows.publish_delay",
        r#"a duration such as "1m": from the cutoff of a window to its publication"#,
    ),
    ("privacy", "a table [privacy]"),
    (
        "privacy.unit",
        r#""record" or { user = { column = "user_id", per = "1d", max_records_per_window = 20 } }"#,
    ),
    (
        "privacy.unit.user",
        r#"a table such as { column = "user_id", per = "1d", max_records_per_window = 20 }"#,
    ),
    (
        "privacy.unit.user.column",
        r#"the name of a column, such as "user_id""#,
    ),
    (
        "privacy.unit.user.type",
        r#""text" or "integer": the type of the column in records"#,
    ),
    (
        "privacy.unit.user.per",
        r#"a duration such as "1d", or "ever""#,
    ),
    (
        "privacy.unit.user.max_records_per_window",
        "a whole number from 1, such as 20",
    ),
    (
        "privacy.adjacency",
        r#""add_remove" or { replace_one = { records_per_window = 5000 } }"#,
    ),
    (
        "privacy.adjacency.replace_one",
        "a table such as { records_per_window = 5000 }",
    ),
    (
        "privacy.adjacency.replace_one.records_per_window",
        "a whole number from 1, such as 5000",
    ),
    (
        "privacy.epsilon",
        "a number above 0 with at most 12 decimals, such as 1.0: the total of a unit",
    ),
    (
        "privacy.delta",
        "a number above 0 and below 1 with at most 18 decimals, such as 1e-9: the total of a unit",
    ),
    (
        "privacy.rho",
        "a number above 0 with at most 12 decimals, such as 0.05: the total of a unit, instead of epsilon",
    ),
    (
        "privacy.reserve",
        "a number from 0, and below 1, with at most 6 decimals, such as 0.1: the fraction that windows may not spend",
    ),
    (
        "privacy.composition",
        r#""sum", "concentrated", "gaussian" or "plan""#,
    ),
    (
        "privacy.budget",
        r#"a table such as { topic = "flights-budget", share = 0.4 }: the total beside it is that of all pipelines of the input"#,
    ),
    (
        "privacy.budget.topic",
        r#"the name of a topic beside the input, such as "flights-budget""#,
    ),
    (
        "privacy.budget.share",
        "a number above 0, to 1, with at most 6 decimals, such as 0.4: this pipeline's part of the total, rounded down",
    ),
    (
        "privacy.windows",
        "a whole number from 1, such as 24: the windows of a block that are planned",
    ),
    ("release", "a table [release], or several [[release]]"),
    ("release.name", r#"a name such as "departure-delay""#),
    (
        "release.title",
        r#"public text for people, such as "Departure delay""#,
    ),
    (
        "release.description",
        "public text for people, a sentence or two",
    ),
    (
        "release.record",
        r#"what a record is, in the singular, such as "flight""#,
    ),
    (
        "release.windows",
        r#""tumbling", { hopping = "24h" } or { cumulative = "365d" }"#,
    ),
    (
        "release.windows.hopping",
        r#"a duration such as "24h", several windows of [windows]"#,
    ),
    (
        "release.windows.cumulative",
        r#"a duration such as "365d": how long the error of the sum is optimized for"#,
    ),
    (
        "release.epsilon",
        "a number above 0 with at most 12 decimals, such as 0.5: the price of a window",
    ),
    (
        "release.delta",
        "a number above 0 and below 1 with at most 18 decimals, such as 1e-9: the price of a window",
    ),
    (
        "release.rho",
        "a number above 0 with at most 12 decimals, such as 0.01: the price of a window",
    ),
    (
        "release.horizon",
        r#"a duration such as "365d": the total is divided evenly among the windows in this time"#,
    ),
    (
        "release.half_after",
        r#"a duration such as "30d": half of the total is spent in this time, and less and less after it"#,
    ),
    (
        "release.share",
        "a number above 0, at most 1, with at most 6 decimals, such as 0.5: a fraction of the total",
    ),
    (
        "release.degree",
        r#"a whole number from 1, such as 40, or "auto""#,
    ),
    (
        "release.order",
        r#"a whole number from 1 to 200, such as 2, or "auto""#,
    ),
    (
        "release.private_order",
        "a table such as { epsilon = 0.1, candidates = [1, 2, 4, 8] }, instead of `order`",
    ),
    (
        "release.private_order.epsilon",
        "a number above 0 with at most 12 decimals, such as 0.1: the price of a choice",
    ),
    (
        "release.private_order.candidates",
        "a list of 2 to 16 ascending orders, such as [1, 2, 4, 8]",
    ),
    (
        "release.expected_records",
        "a whole number from 1, such as 300: a public guess at the records of a window and key",
    ),
    (
        "release.noise",
        r#""laplace", "cube", "ball", "cells", "gaussian", "gaussian_process", "gaussian_cells" or "auto""#,
    ),
    (
        "release.spline",
        r#""box", "linear", "quadratic" or "auto": how cells share a record"#,
    ),
    (
        "release.step",
        r#"a list such as [10], the width of a cell on each axis in the units of its column, or "auto""#,
    ),
    (
        "release.step[]",
        "a number above 0 in the units of the column, such as 10",
    ),
    (
        "release.points",
        r#"a whole number from 1, such as 24, a list such as [6, 6], or "auto": kernel points, in place of degree and order"#,
    ),
    (
        "release.points[]",
        "a whole number from 1, such as 6: evenly spaced points along this axis",
    ),
    (
        "release.smoothness",
        "a table such as { lipschitz = [0.1] }, { curvature = [0.01] } or { norm = 5 }: your claim, one number per axis",
    ),
    (
        "release.smoothness.lipschitz",
        "a list such as [0.1]: a Lipschitz constant for each axis, per unit",
    ),
    (
        "release.smoothness.lipschitz[]",
        "a number above 0, such as 0.1",
    ),
    (
        "release.smoothness.curvature",
        "a list such as [0.01]: the largest second derivative along each axis",
    ),
    (
        "release.smoothness.curvature[]",
        "a number above 0, such as 0.01",
    ),
    (
        "release.smoothness.norm",
        "a number above 0, such as 5: the norm of the function in the kernel's Hilbert space",
    ),
    ("release.scale", r#""tight" or "paper""#),
    (
        "release.domain",
        r#"a list such as [{ column = "delay", min = -30, max = 180, outside = "clamp" }]"#,
    ),
    (
        "release.domain[]",
        r#"a table such as { column = "delay", min = -30, max = 180, outside = "clamp" }"#,
    ),
    (
        "release.domain[].column",
        r#"the name of a column of numbers, such as "delay""#,
    ),
    (
        "release.domain[].label",
        r#"public text for people in place of the column, such as "departure delay""#,
    ),
    (
        "release.domain[].unit",
        r#"the unit of the column, in the singular, such as "minute""#,
    ),
    (
        "release.domain[].min",
        "a number such as -30: a bound that does not come from the data",
    ),
    (
        "release.domain[].max",
        "a number such as 180: a bound that does not come from the data",
    ),
    ("release.domain[].outside", r#""clamp" or "drop""#),
    (
        "release.label",
        r#"a table such as { column = "delay", min = -60, max = 180, outside = "clamp" } or { column = "delay", above = 15 } or { column = "rating", values = [1, 2, 3] }"#,
    ),
    (
        "release.label.column",
        r#"the name of a column of numbers, such as "delay""#,
    ),
    (
        "release.label.min",
        "a number such as -60: a bound that does not come from the data",
    ),
    (
        "release.label.max",
        "a number such as 180: a bound that does not come from the data",
    ),
    ("release.label.outside", r#""clamp" or "drop""#),
    (
        "release.label.above",
        "a number such as 15: labels above it are one class, all others the other",
    ),
    (
        "release.label.values",
        "a list of 2 to 16 numbers such as [1, 2, 3]: a class each; records with others are left out",
    ),
    ("release.label.values[]", "a number such as 1"),
];

/// The keys after the tables of the targets.
const AFTER: &[Key] = &[
    ("release.sampled", "a table [release.sampled]"),
    (
        "release.sampled.gamma",
        "a number between 0 and 1, such as 0.1",
    ),
    (
        "release.sampled.samples",
        "a whole number from 1, such as 500: how many pairs are drawn",
    ),
    (
        "release.sampled.records",
        "a whole number from 1, such as 500: the public size of a window",
    ),
    ("release.sampled.seed", "a whole number from 0, such as 1"),
    (
        "release.sampled.range",
        "two numbers such as [0, 50] that do not come from the data: values are clipped to them",
    ),
    ("release.sampled.range[]", "a number such as 50"),
    (
        "release.sampled.prior",
        r#"a list such as [{ column = "delay", law = { normal = { mean = 0, deviation = 10 } } }]"#,
    ),
    (
        "release.sampled.prior[]",
        r#"a table such as { column = "delay", law = { normal = { mean = 0, deviation = 10 } } }"#,
    ),
    (
        "release.sampled.prior[].column",
        r#"the name of a column of the domain or of the label, such as "delay""#,
    ),
    (
        "release.sampled.prior[].law",
        "a distribution such as { uniform = { min = 0, max = 1 } }, normal, exponential or points",
    ),
    (
        "release.sampled.prior[].law.uniform",
        "a table such as { min = 0, max = 1 }",
    ),
    (
        "release.sampled.prior[].law.uniform.min",
        "a number such as 0",
    ),
    (
        "release.sampled.prior[].law.uniform.max",
        "a number such as 1",
    ),
    (
        "release.sampled.prior[].law.normal",
        "a table such as { mean = 0, deviation = 10 }",
    ),
    (
        "release.sampled.prior[].law.normal.mean",
        "a number such as 0",
    ),
    (
        "release.sampled.prior[].law.normal.deviation",
        "a number from 0, such as 10",
    ),
    (
        "release.sampled.prior[].law.exponential",
        "a table such as { min = 0, mean = 20 }",
    ),
    (
        "release.sampled.prior[].law.exponential.min",
        "a number such as 0: where it starts",
    ),
    (
        "release.sampled.prior[].law.exponential.mean",
        "a number above 0, such as 20: the mean above `min`",
    ),
    (
        "release.sampled.prior[].law.points",
        "a table such as { values = [0, 1], weights = [3, 1] }",
    ),
    (
        "release.sampled.prior[].law.points.values",
        "a list of numbers such as [0, 1]",
    ),
    (
        "release.sampled.prior[].law.points.weights",
        "a list of numbers from 0, such as [3, 1]",
    ),
    (
        "release.sampled.result",
        "the table that `bernstream sample` prints",
    ),
    (
        "release.sampled.result.sensitivity",
        "a whole number, as `bernstream sample` prints it",
    ),
    (
        "release.sampled.result.largest",
        "a whole number, as `bernstream sample` prints it",
    ),
    (
        "release.sampled.result.samples",
        "a whole number, as `bernstream sample` prints it",
    ),
    (
        "release.sampled.result.order",
        "a whole number, as `bernstream sample` prints it",
    ),
    (
        "release.sampled.result.rho",
        "a number, as `bernstream sample` prints it",
    ),
    (
        "release.sampled.result.digest",
        "64 hexadecimal digits in quotes, as `bernstream sample` prints them",
    ),
    ("output", "a table [output]"),
    ("output.kafka", "a table [output.kafka]"),
    (
        "output.kafka.brokers",
        r#"addresses such as "localhost:9092""#,
    ),
    (
        "output.kafka.tls",
        r#"a table such as { ca = "/etc/bernstream/ca.pem" }, or {} for the system's authorities"#,
    ),
    (
        "output.kafka.tls.ca",
        "the path of a file of certificate authorities (PEM) in quotes",
    ),
    (
        "output.kafka.tls.certificate",
        "the path of the client's certificate (PEM) in quotes",
    ),
    (
        "output.kafka.tls.key",
        "the path of the client's private key (PEM) in quotes",
    ),
    (
        "output.kafka.sasl",
        r#"a table such as { mechanism = "SCRAM-SHA-512", username = "bernstream", password_file = "/run/secrets/kafka" }"#,
    ),
    (
        "output.kafka.sasl.mechanism",
        r#""SCRAM-SHA-512", "SCRAM-SHA-256" or "PLAIN""#,
    ),
    (
        "output.kafka.sasl.username",
        r#"a name such as "bernstream""#,
    ),
    (
        "output.kafka.sasl.password_file",
        "the path of a file that holds the password in quotes",
    ),
    (
        "output.kafka.topic",
        r#"the name of a topic, such as "flights-synopses""#,
    ),
    (
        "output.kafka.witness",
        r#"the name of a topic of one partition, such as "flights-witness""#,
    ),
    (
        "output.kafka.witness_min_insync_replicas",
        "a whole number from 1, such as 2",
    ),
    (
        "output.kafka.brokers_lose_power",
        r#""together" or "separately""#,
    ),
    ("output.files", r#"a table such as { path = "out" }"#),
    ("output.files.path", "the path of a folder in quotes"),
    (
        "output.files.witness",
        "the absolute path of a file outside that folder in quotes",
    ),
    ("ledger", "a table [ledger]"),
    (
        "ledger.path",
        "the path of a folder in quotes, on a local disk",
    ),
    ("ledger.keep_published", r#"a duration such as "7d""#),
    (
        "ledger.log",
        r#"the name of a topic of one partition, such as "flights-ledger""#,
    ),
    (
        "ledger.key_file",
        "the path of a file of 32 random bytes in quotes",
    ),
    (
        "ledger.standby",
        r#"a duration of at least a second, such as "10s""#,
    ),
    ("scale", "a table [scale]"),
    (
        "scale.topic",
        r#"the name of a topic, such as "flights-partials""#,
    ),
    (
        "scale.key_file",
        "the path of a file of 32 random bytes in quotes",
    ),
    (
        "scale.group",
        r#"the name of a consumer group, such as "flights""#,
    ),
    (
        "scale.deadline",
        r#"a duration such as "30s", less than windows.publish_delay without input.kafka.clock_slack"#,
    ),
    ("scale.most_megabytes", "a whole number from 1, such as 512"),
    ("serve", "a table [serve]"),
    ("serve.listen", r#"an address such as "127.0.0.1:9464""#),
    ("serve.dashboard", r#"an address such as "127.0.0.1:9465""#),
    (
        "serve.hosts",
        r#"a list of names such as ["dashboard.example.org"], without a port"#,
    ),
    ("serve.detail", r#""safe" or "operator""#),
];

#[test]
fn the_derived_keys_are_the_old_ones() {
    let derived: Vec<(&str, &str)> = crate::file::KEYS
        .iter()
        .map(|key| (key.path.as_str(), key.form.as_str()))
        .collect();
    for (a, b) in derived.iter().zip(KEYS.iter()) {
        assert_eq!(a, b);
    }
    assert_eq!(derived.len(), KEYS.len());
}
