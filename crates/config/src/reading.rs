//! The settings that bear on reading: processes that read for one another compare a digest of them.
//!
//! It is not what affects privacy: prices, totals, noise and delays change nothing in what a window keeps of its records, while the
//! messages that an operator has given up do.

use serde_json::{Map, Value, json};

use crate::canonical;
use crate::settings::{InputParams, WorkerSettings};
use bernstream_kafka::source::kafka;
use bernstream_kafka::source::kafka::BadMessageRule;
use bernstream_ledger::Digest;
use bernstream_release::window::accumulator::{AccumulatorSpec, TableLabel};
use bernstream_release::window::{Cap, FoundKeyCounting, KeyCounting, ReleaseInput};
use bernstream_synopsis::histogram::Nodes;

/// Raised whenever a field of the text gets another meaning.
const VERSION: u32 = 1;

impl WorkerSettings {
    /// The input that each release takes of the records of a single window, in order.
    pub fn release_inputs(&self) -> Vec<ReleaseInput> {
        self.releases
            .iter()
            .map(|release| self.release_input(release))
            .collect()
    }

    /// SHA-256 of everything that decides what a window keeps of the messages before an end, in hexadecimal digits: equal where that is
    /// the same. Programs of two versions never have the same.
    pub fn reading_digest(&self) -> String {
        self.reading_digest_of(&self.release_inputs())
    }

    /// [`WorkerSettings::reading_digest`], if windows kept what `forms` say.
    pub fn reading_digest_of(&self, forms: &[ReleaseInput]) -> String {
        Digest::of_bytes(self.reading_text(forms).as_bytes()).to_string()
    }

    /// Canonical JSON, as the text of a ledger's settings is: keys sorted, no spaces.
    fn reading_text(&self, forms: &[ReleaseInput]) -> String {
        let windows = &self.windows;
        let mut about = json!({
            "version": VERSION,
            // How a message is decoded is the program's, and may change with it.
            "program": env!("CARGO_PKG_VERSION"),
            "time": self.columns.time,
            "ledger": { "unit": { "column": self.columns.unit } },
            "keys": canonical::keys_text(self),
            "windows": canonical::membership_rules(windows),
            "cap": windows.cap.as_ref().map(cap_text),
            "forms": forms.iter().map(|form| self.input_text(form)).collect::<Vec<_>>(),
        });
        canonical::add_declared_types(self, &mut about);
        if let Some(longest) = windows.longest_key {
            about["longest_key"] = json!(longest);
        }
        if let InputParams::Kafka(input) = &self.input {
            about["messages"] = messages_text(input);
        }
        about.to_string()
    }

    /// The choices that were left to `"auto"`, and what is in use for them: [`RecordedSettings`](super::recorded::RecordedSettings) reads it, as it reads what a ledger
    /// has recorded.
    pub fn auto_choices(&self) -> String {
        let mut chosen = Map::new();
        for release in &self.releases {
            if release.auto.is_some() {
                chosen.insert(release.name.clone(), canonical::chosen_keys(self, release));
            }
        }
        json!({ "releases": chosen }).to_string()
    }

    /// The values that one release takes of a record, and the form in which it keeps them. Columns go by their names.
    fn input_text(&self, form: &ReleaseInput) -> Value {
        let names = &self.columns.values;
        let columns: Vec<String> = form
            .columns
            .iter()
            .map(|at| names.get(*at).cloned().unwrap_or_default())
            .collect();
        json!({
            "domain": canonical::domain_bounds(&columns, &form.axes),
            "label": canonical::label_text(&columns, form.label.as_ref()),
            "keeps": accumulator_text(&form.accumulator),
        })
    }
}

/// The form in which a window keeps the records that a release takes, written out.
fn accumulator_text(spec: &AccumulatorSpec) -> Value {
    match spec {
        AccumulatorSpec::Histogram(nodes) => json!({ "histogram": grid_text(nodes) }),
        AccumulatorSpec::Tables {
            nodes,
            by: TableLabel::Number,
        } => json!({ "tables_by_number": grid_text(nodes) }),
        AccumulatorSpec::Tables {
            nodes,
            by: TableLabel::Classes(count),
        } => {
            json!({ "tables_by_class": grid_text(nodes), "classes": count })
        }
        AccumulatorSpec::Marginals(axes) => {
            json!({ "marginals": axes.iter().map(grid_text).collect::<Vec<_>>() })
        }
        AccumulatorSpec::Sums(feature) => json!({ "sums": feature.feature_identity() }),
        AccumulatorSpec::Records { most } => json!({ "records": most }),
        AccumulatorSpec::Keys(counting) => keys_text(counting),
        AccumulatorSpec::FoundKeys(counting) => json!({ "found": found_keys_text(counting) }),
        AccumulatorSpec::UserWeighted(histograms) => {
            json!({ "user_weighted": accumulator_text(histograms) })
        }
    }
}

/// The keys themselves, and the pipeline that ranks follow from, stand beside it.
fn keys_text(counting: &KeyCounting) -> Value {
    let sum = counting.sum.map(|sum| json!([sum.min, sum.max]));
    let mut text = json!({ "max_keys": counting.max_keys, "max_records": counting.max_records, "sum": sum, "ranks": counting.ranks.as_hex() });
    if counting.keeps_squares {
        text["squares"] = json!(true);
    }
    if let Some(grid) = counting.grid {
        text["places"] = json!(grid.places);
    }
    if !counting.unit_bins.is_empty() {
        text["unit_bins"] = json!(counting.unit_bins);
    }
    text
}

fn found_keys_text(counting: &FoundKeyCounting) -> Value {
    json!({
        "max_keys": counting.max_keys,
        "longest": counting.longest,
        "limit": counting.limit,
        "ranks": counting.ranks.as_hex(),
    })
}

fn grid_text(nodes: &Nodes) -> Value {
    json!({ "steps": nodes.per_axis(), "spline": nodes.spline(), "of_angles": nodes.is_of_angles() })
}

fn cap_text(cap: &Cap) -> Value {
    json!({ "period": canonical::blocks_text(cap.period), "records": cap.records })
}

/// The messages that are read, and those that are given up.
fn messages_text(input: &kafka::KafkaSourceParams) -> Value {
    let lost = input.lost.iter();
    let lost: Vec<Value> = lost
        .map(|lost| json!([lost.partition, lost.from, lost.to]))
        .collect();
    json!({
        "trust_producer_time": input.trust_producer_time,
        "skips_bad_messages": input.on_bad_message == BadMessageRule::Skip,
        "skip": input.skip,
        "lost": lost,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use super::*;
    use bernstream_release::window::RankKey;
    use bernstream_release::window::accumulator::{Record, RecordFeature};
    use bernstream_synopsis::histogram::Spline;

    const FILE: &str = r#"
pipeline = "rides"

[input]
time = "started_at"
time_format = "milliseconds"
key = { column = "city", type = "text", values = ["11", "12"] }

[input.kafka]
brokers = "localhost:9092"
topic = "rides"
clock_slack = "45s"
format = "json"
lost = [{ partition = 1, from = 0, to = 12 }]

[windows]
origin = "2026-01-01T00:00:00Z"
length = "1h"
end = "2026-02-01T00:00:00Z"
grace = "5m"
ahead = "1m"
publish_delay = "3m"

[privacy]
unit = { user = { column = "rider", type = "integer", per = "1d", max_records_per_window = 5 } }
adjacency = "add_remove"
epsilon = 1.0

[[release]]
name = "fares"
epsilon = 0.01
noise = "laplace"
step = [5]
spline = "box"
label = { column = "fare", min = 2, max = 80, outside = "drop" }
domain = [{ column = "kilometres", min = 0, max = 30, outside = "clamp" }]
cells = { bandwidths = [5] }

[output.kafka]
topic = "rides-synopses"
witness = "rides-witness"

[ledger]
path = "ledger"
"#;

    const EDITS: &[(&str, &str)] = &[
        ("\"started_at\"", "\"ended_at\""),
        ("\"milliseconds\"", "\"seconds\""),
        ("\"city\"", "\"town\""),
        ("\"text\"", "\"integer\""),
        ("[\"11\", \"12\"]", "[\"12\", \"11\"]"),
        ("[\"11\", \"12\"]", "[\"11\", \"12\"], other = \"13\""),
        // A listed key in place of that name takes no other records.
        ("[\"11\", \"12\"]", "[\"11\", \"12\", \"13\"]"),
        ("\"json\"", "\"arrow\""),
        (
            "partition = 1, from = 0, to = 12",
            "partition = 2, from = 1, to = 13",
        ),
        (
            "topic = \"rides\"",
            "topic = \"rides\"\ntrust_producer_time = true",
        ),
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("\"1h\"", "\"2h\""),
        ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"),
        ("\"5m\"", "\"6m\""),
        ("\"1m\"", "\"2m\""),
        ("\"rider\"", "\"driver\""),
        ("type = \"integer\", per", "type = \"text\", per"),
        ("\"1d\"", "\"2d\""),
        ("window = 5", "window = 4"),
        ("\"fare\"", "\"tip\""),
        (
            "min = 2, max = 80, outside = \"drop\"",
            "min = 3, max = 81, outside = \"clamp\"",
        ),
        ("\"kilometres\"", "\"miles\""),
        (
            "min = 0, max = 30, outside = \"clamp\"",
            "min = 5, max = 35, outside = \"drop\"",
        ),
        ("[5]\nspline = \"box\"", "[2]\nspline = \"linear\""),
    ];

    fn settings(text: &str) -> WorkerSettings {
        WorkerSettings::parse(text, "f").unwrap()
    }

    /// The settings of the file, changed where JSON may not be.
    fn changed(change: fn(&mut kafka::KafkaSourceParams)) -> WorkerSettings {
        let mut settings = settings(FILE);
        let InputParams::Kafka(params) = &mut settings.input else {
            panic!("messages")
        };
        change(params);
        settings
    }

    fn text(settings: &WorkerSettings) -> String {
        settings.reading_text(&settings.release_inputs())
    }

    /// If this fails, worker and absorbers of this commit and of the last one refuse each other: say so in the changelog, and raise the
    /// version where a field means something else.
    #[test]
    fn what_is_hashed_is_written_out() {
        let settings = settings(FILE);
        let expected = [
            r#"{"cap":{"period":{"length":86400000000,"origin":"2026-01-01T00:00:00Z"},"records":5},"#,
            r#""forms":[{"domain":[{"column":"kilometres","max":30.0,"min":0.0,"outside":"clamp"}],"#,
            r#""keeps":{"tables_by_number":{"of_angles":false,"spline":"box","steps":[6]}},"#,
            r#""label":{"column":"fare","max":80.0,"min":2.0,"outside":"drop"}}],"#,
            r#""keys":{"column":"city","type":"text","values":["11","12"]},"#,
            r#""ledger":{"input":{"format":"json","time_format":"milliseconds"},"unit":{"column":"rider","type":"integer"}},"#,
            r#""messages":{"lost":[[1,0,12]],"skip":[],"skips_bad_messages":false,"trust_producer_time":false},"#,
            r#""program":"PROGRAM","time":"started_at","version":1,"#,
            r#""windows":{"ahead":60000000,"end":"2026-02-01T00:00:00Z","grace":300000000,"length":3600000000,"origin":"2026-01-01T00:00:00Z"}}"#,
        ]
        .concat();
        assert_eq!(
            text(&settings),
            expected.replace("PROGRAM", env!("CARGO_PKG_VERSION"))
        );
        assert_eq!(
            settings.reading_digest(),
            bernstream_ledger::Digest::of_bytes(text(&settings).as_bytes()).to_string()
        );
    }

    /// What the text says, by places; a list that is empty has one too.
    fn fields(place: &str, value: &Value) -> BTreeMap<String, Value> {
        let of_parts = |parts: Vec<(String, &Value)>| {
            parts
                .into_iter()
                .flat_map(|(name, part)| fields(&format!("{place}/{name}"), part))
                .collect()
        };
        match value {
            Value::Object(parts) => of_parts(
                parts
                    .iter()
                    .map(|(name, part)| (name.clone(), part))
                    .collect(),
            ),
            Value::Array(parts) if !parts.is_empty() => of_parts(
                parts
                    .iter()
                    .enumerate()
                    .map(|(at, part)| (at.to_string(), part))
                    .collect(),
            ),
            value => BTreeMap::from([(place.to_owned(), value.clone())]),
        }
    }

    #[test]
    fn each_field_changes_the_digest() {
        let ours = settings(FILE);
        let before = fields("", &serde_json::from_str(&text(&ours)).unwrap());
        let mut unchanged: BTreeSet<&str> = before.keys().map(String::as_str).collect();
        let mut others: Vec<WorkerSettings> = Vec::new();
        for (from, to) in EDITS {
            assert!(FILE.contains(from), "{from}");
            others.push(settings(&FILE.replace(from, to)));
        }
        others.push(changed(|params| {
            params.on_bad_message = BadMessageRule::Skip
        }));
        others.push(changed(|params| params.skip = [(0, 17)].into()));
        let mut digests = BTreeSet::from([ours.reading_digest()]);
        for other in &others {
            assert!(digests.insert(other.reading_digest()), "{}", text(other));
            let after = fields("", &serde_json::from_str(&text(other)).unwrap());
            unchanged.retain(|place| before.get(*place) == after.get(*place));
        }
        // No file changes these.
        assert_eq!(
            unchanged,
            BTreeSet::from([
                "/forms/0/keeps/tables_by_number/of_angles",
                "/program",
                "/version"
            ])
        );
    }

    #[derive(Debug)]
    struct Summand(u32);

    impl RecordFeature for Summand {
        fn sum_count(&self) -> usize {
            1
        }

        fn add(&self, _: &Record, _: &mut [i128]) {}

        fn feature_identity(&self) -> Value {
            json!({ "summand": self.0 })
        }
    }

    fn found_keys() -> FoundKeyCounting {
        FoundKeyCounting {
            max_keys: 3,
            longest: 128,
            limit: None,
            ranks: RankKey::for_pipeline("rides"),
        }
    }

    fn found_with(change: fn(&mut FoundKeyCounting)) -> AccumulatorSpec {
        let mut counting = found_keys();
        change(&mut counting);
        AccumulatorSpec::FoundKeys(counting.into())
    }

    /// A file whose keys are listed says nothing of it, so that its digest stays.
    #[test]
    fn the_longest_key_is_in_the_text_where_nobody_lists_keys() {
        let listed = settings(FILE);
        let mut others = listed.clone();
        let mut texts = BTreeSet::from([text(&listed)]);
        assert!(!text(&listed).contains("longest_key"));
        for longest in [128, 129] {
            others.windows.longest_key = Some(longest);
            assert!(texts.insert(text(&others)), "{longest}");
        }
    }

    #[test]
    fn every_part_of_what_a_window_keeps_is_in_the_text() {
        let nodes = |per_axis: &[u32]| Nodes::new(per_axis).unwrap();
        let by_class = |count| AccumulatorSpec::Tables {
            nodes: nodes(&[4]),
            by: TableLabel::Classes(count),
        };
        let specs = [
            AccumulatorSpec::Histogram(nodes(&[4, 5])),
            AccumulatorSpec::Histogram(nodes(&[4, 6])),
            AccumulatorSpec::Histogram(Nodes::shared_by(Spline::Box, &[4, 5]).unwrap()),
            AccumulatorSpec::Histogram(Nodes::of_angles(&[4, 5]).unwrap()),
            AccumulatorSpec::Tables {
                nodes: nodes(&[4]),
                by: TableLabel::Number,
            },
            by_class(3),
            by_class(4),
            AccumulatorSpec::Marginals(vec![nodes(&[4]), nodes(&[5])]),
            AccumulatorSpec::Marginals(vec![nodes(&[5]), nodes(&[4])]),
            AccumulatorSpec::Sums(Arc::new(Summand(1))),
            AccumulatorSpec::Sums(Arc::new(Summand(2))),
            AccumulatorSpec::Records { most: 30 },
            AccumulatorSpec::Records { most: 31 },
            AccumulatorSpec::FoundKeys(found_keys().into()),
            found_with(|counting| counting.max_keys = 4),
            found_with(|counting| counting.longest = 129),
            found_with(|counting| counting.limit = Some(1000)),
            found_with(|counting| counting.limit = Some(1001)),
            found_with(|counting| counting.ranks = RankKey::for_pipeline("fares")),
        ];
        let texts: Vec<String> = specs
            .iter()
            .map(|spec| accumulator_text(spec).to_string())
            .collect();
        assert_eq!(
            texts.iter().collect::<BTreeSet<_>>().len(),
            specs.len(),
            "{texts:?}"
        );
        assert_eq!(
            texts[3],
            r#"{"histogram":{"of_angles":true,"spline":"quadratic","steps":[4,5]}}"#
        );
        assert_eq!(
            texts[6],
            r#"{"classes":4,"tables_by_class":{"of_angles":false,"spline":"quadratic","steps":[4]}}"#
        );
        assert_eq!(texts[9], r#"{"sums":{"summand":1}}"#);
        assert_eq!(texts[11], r#"{"records":30}"#);
        let ranks = RankKey::for_pipeline("rides").as_hex();
        assert_eq!(
            texts[13],
            r#"{"found":{"limit":null,"longest":128,"max_keys":3,"ranks":"RANKS"}}"#
                .replace("RANKS", &ranks)
        );
    }
}
