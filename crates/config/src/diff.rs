//! The differences between the settings of a ledger and those of a file, in the words of the file.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::schemas;
use bernstream_kafka::source::record::TimeFormat;

/// Settings that have another name in the file; a longer path comes before its prefix.
const NAMES: [(&str, &str); 33] = [
    ("ledger.input.kind", "the kind of [input]"),
    (
        "ledger.input.skips_bad_messages",
        "input.kafka.on_bad_message = \"skip\"",
    ),
    ("ledger.input.time_format", "input.time_format"),
    ("ledger.input", "input.kafka"),
    ("ledger.time", "input.time"),
    (
        "ledger.fields.time.numbers",
        "the field number of input.time",
    ),
    ("ledger.fields.time.type", "the type of input.time"),
    ("ledger.fields.time", "the field of input.time"),
    (
        "ledger.fields.user.numbers",
        "the field number of privacy.unit.user.column",
    ),
    (
        "ledger.fields.user.type",
        "the type of privacy.unit.user.column",
    ),
    (
        "ledger.fields.user",
        "the field of privacy.unit.user.column",
    ),
    (
        "ledger.fields",
        "the fields of event times and users, which earlier programs did not record",
    ),
    ("ledger.unit.column", "privacy.unit.user.column"),
    ("ledger.unit.type", "privacy.unit.user.type"),
    ("ledger.unit.per", "privacy.unit.user.per"),
    (
        "ledger.unit.max_records_per_window",
        "privacy.unit.user.max_records_per_window",
    ),
    ("ledger.unit", "privacy.unit"),
    ("ledger.adjacency", "privacy.adjacency"),
    ("ledger.total", "the total of [privacy]"),
    ("ledger.budget.total", "the whole total of [privacy]"),
    ("ledger.budget", "privacy.budget"),
    ("ledger.blocks.origin", "windows.origin, where blocks begin"),
    ("ledger.blocks.length", "the length of a block"),
    ("ledger.blocks", "the blocks of the total"),
    ("ledger.implies", "epsilon and delta of [privacy]"),
    ("ledger.definition", "privacy.composition"),
    ("ledger.drawn", "privacy.composition"),
    ("ledger.plan", "the plan of [privacy]"),
    ("ledger", ""),
    ("schemas.descriptor", "the descriptor of input.kafka.format"),
    ("schemas", "the schemas of input.kafka.format"),
    ("keys.type", "input.key.type"),
    ("keys", "input.key"),
];

/// Durations, in microseconds.
const SPANS: [&str; 7] = [
    "length",
    "grace",
    "ahead",
    "publish_delay",
    "clock_slack",
    "per",
    "blocks",
];

/// The list of keys.
const KEYS: &str = "keys.values";
/// More keys are counted, and not listed.
const LISTED: usize = 20;

/// The slack, in what a ledger is bound to.
const SLACK: &str = "/input/clock_slack";

/// The differences in what a ledger is bound to forever.
///
/// The slack may grow: later windows then wait longer for records that their cutoff lets in, and miss fewer of them. What
/// [`schemas`] says may be added too.
pub fn of_ledger(ledger: &str, file: &str) -> Vec<String> {
    let read = |text| serde_json::from_str(text).unwrap_or(Value::Null);
    let mut recorded: Value = read(ledger);
    let settings: Value = read(file);
    let mut found = schemas::changes(&recorded, &settings);
    schemas::add_what_may_grow(&mut recorded, &settings);
    let (mut ledger, mut file) = (recorded["ledger"].take(), settings["ledger"].clone());
    for bound in [&mut ledger, &mut file] {
        declare_default_time(bound);
    }
    let slack = |settings: &Value| settings.pointer(SLACK).and_then(Value::as_u64);
    if let (Some(had), Some(has)) = (slack(&ledger), slack(&file))
        && has > had
        && let Some(slack) = ledger.pointer_mut(SLACK)
    {
        *slack = has.into();
    }
    compare("ledger", &ledger, &file, &mut found);
    found
}

/// Without a declaration text is a time in RFC 3339. A file that declares that, or the type of a key, which brings it along, changes nothing.
fn declare_default_time(bound: &mut Value) {
    if let Some(input) = bound.get_mut("input").and_then(Value::as_object_mut) {
        input
            .entry("time_format")
            .or_insert_with(|| json!(TimeFormat::default()));
    }
}

/// All differences between recorded settings ([`canonical::recorded`](crate::canonical::recorded)), a line each.
pub fn differences(ledger: &str, file: &str) -> Vec<String> {
    let read = |text| serde_json::from_str(text).unwrap_or(Value::Null);
    let ledger: Value = read(ledger);
    let mut file: Value = read(file);
    // Earlier versions did not record what was left to "auto".
    if let (None, Some(file)) = (ledger.get("auto"), file.as_object_mut()) {
        file.remove("auto");
    }
    let mut found = Vec::new();
    compare("", &ledger, &file, &mut found);
    found
}

fn compare(path: &str, ledger: &Value, file: &Value, found: &mut Vec<String>) {
    match (ledger, file) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                let at =
                    |object: &Map<String, Value>| object.get(name).cloned().unwrap_or(Value::Null);
                compare(&path, &at(one), &at(other), found);
            }
        }
        _ if ledger == file => {}
        _ => found.push(line(path, ledger, file)),
    }
}

fn line(path: &str, ledger: &Value, file: &Value) -> String {
    let release = path.strip_prefix("releases.");
    match (release, ledger, file) {
        // The fields of an added or removed release are no differences of their own.
        (Some(name), Value::Null, Value::Object(_)) => {
            format!("release {name:?}: not in the ledger, new in the file")
        }
        (Some(name), Value::Object(_), Value::Null) => {
            format!("release {name:?}: in the ledger, no longer in the file")
        }
        (None, Value::Array(had), Value::Array(has))
            if path == KEYS && had.len().max(has.len()) > LISTED =>
        {
            let [had, has]: [HashSet<&str>; 2] =
                [had, has].map(|keys| keys.iter().filter_map(Value::as_str).collect());
            let new = has.difference(&had).count();
            let gone = had.difference(&has).count();
            let had = had.len();
            let has = has.len();
            format!(
                "{}: {had} keys in the ledger, {has} in the file: {new} are new, {gone} gone",
                named(path)
            )
        }
        _ => {
            let [ledger, file] = [ledger, file].map(|value| shown(path, value));
            format!(
                "{}: {ledger} in the ledger, {file} in the file",
                named(path)
            )
        }
    }
}

/// Its name in the file.
fn named(path: &str) -> String {
    if let Some(asked) = path.strip_prefix("auto.") {
        return match asked.split_once('.') {
            None => format!("what is \"auto\" in release {asked:?}"),
            Some((name, "open")) => format!("what is \"auto\" in release {name:?}"),
            Some((name, key)) => format!("{key} of release {name:?}"),
        };
    }
    if let Some((name, key)) = path
        .strip_prefix("releases.")
        .and_then(|release| release.split_once('.'))
    {
        return format!("{key} of release {name:?}");
    }
    let found = NAMES.iter().find_map(|(ours, theirs)| {
        let rest = path.strip_prefix(ours)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| format!("{theirs}{rest}"))
    });
    match found {
        Some(name) => name.trim_start_matches('.').to_owned(),
        None if path == "limit" => {
            "what windows may spend of the total (privacy.reserve)".to_owned()
        }
        None => path.to_owned(),
    }
}

fn shown(path: &str, value: &Value) -> String {
    let is_span = path
        .rsplit('.')
        .next()
        .is_some_and(|name| SPANS.contains(&name));
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Number(micros) if is_span => micros.as_u64().map_or_else(
            || micros.to_string(),
            |micros| bernstream_synopsis::clock::show(Duration::from_micros(micros)),
        ),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                format!("{name} = {}", shown(&format!("{path}.{name}"), value))
            };
            format!(
                "{{ {} }}",
                fields.iter().map(field).collect::<Vec<_>>().join(", ")
            )
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    const FLIGHTS: &str = include_str!("../../../tests/data/lattice.toml");

    fn changed(edits: &[(&str, &str)]) -> Vec<String> {
        let edited = edits.iter().fold(FLIGHTS.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        let [ours, theirs] =
            [FLIGHTS, &edited].map(|text| Settings::parse(text, "test").unwrap().normalised);
        differences(&ours, &theirs)
    }

    #[test]
    fn a_changed_setting_is_named_as_the_file_does() {
        assert!(changed(&[]).is_empty());
        assert_eq!(
            changed(&[("publish_delay = \"1m\"", "publish_delay = \"90s\"")]),
            ["windows.publish_delay: 1m in the ledger, 1m 30s in the file"]
        );
        assert_eq!(
            changed(&[("time = \"time\"", "time = \"when\"")]),
            ["input.time: \"time\" in the ledger, \"when\" in the file"]
        );
        let lines = changed(&[("degree = 40", "degree = 50")]);
        assert!(
            lines[0].starts_with("degree of release \"departure-delay\": 40 in the ledger, 50"),
            "{lines:?}"
        );
        let lines = changed(&[("name = \"departure-delay\"", "name = \"other\"")]);
        let expected = [
            "release \"departure-delay\": in the ledger, no longer in the file",
            "release \"other\": not in the ledger, new in the file",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_ledger_is_the_same_where_the_default_form_of_times_is_declared() {
        let [silent, declared, another] = [
            "",
            "time_format = \"rfc3339\"\n",
            "time_format = \"seconds\"\n",
        ]
        .map(|line| {
            Settings::parse(
                &FLIGHTS.replace("[input]\n", &format!("[input]\n{line}")),
                "test",
            )
            .unwrap()
            .normalised
        });
        assert!(
            of_ledger(&silent, &declared).is_empty() && of_ledger(&declared, &silent).is_empty()
        );
        assert_eq!(
            of_ledger(&silent, &another),
            ["input.time_format: \"rfc3339\" in the ledger, \"seconds\" in the file"]
        );
    }

    #[test]
    fn the_slack_of_a_ledger_may_grow_and_not_shrink() {
        let [short, long] = ["10s", "45s"].map(|slack| {
            let text = FLIGHTS.replace(
                "clock_slack = \"10s\"",
                &format!("clock_slack = \"{slack}\""),
            );
            Settings::parse(&text, "test").unwrap().normalised
        });
        assert!(of_ledger(&short, &long).is_empty() && of_ledger(&short, &short).is_empty());
        assert_eq!(
            of_ledger(&long, &short),
            ["input.kafka.clock_slack: 45s in the ledger, 10s in the file"]
        );
        // It is a change all the same, which the ledger records.
        assert_eq!(
            differences(&short, &long),
            ["input.kafka.clock_slack: 10s in the ledger, 45s in the file"]
        );
    }

    #[test]
    fn what_a_ledger_is_for_ever_says_nothing_of_microseconds_or_of_itself() {
        let lines = changed(&[
            (
                "unit = \"record\"",
                "unit = { user = { column = \"carrier\", per = \"1d\", max_records_per_window = 3 } }",
            ),
            ("length = \"1d\"", "length = \"12h\""),
        ]);
        let text = lines.join("\n");
        assert!(
            !text.contains("000000") && !text.contains("ledger."),
            "{text}"
        );
        assert!(
            text.contains("windows.length: 1d in the ledger, 12h in the file"),
            "{text}"
        );
        assert!(
            text.contains("privacy.unit: \"record\" in the ledger, { column"),
            "{text}"
        );
        assert!(text.contains("per = 1d"), "{text}");
        let text = changed(&[("length = \"1d\"", "length = \"12h\"")]).join("\n");
        assert!(
            text.contains("the length of a block: 1d in the ledger, 12h in the file"),
            "{text}"
        );
    }
}
