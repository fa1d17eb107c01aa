//! The differences between the settings of a ledger and those of a file, in the words of the file.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::canonical::parsed_settings;
use crate::schemas;
use bernstream_kafka::source::record::TimeFormat;

/// Names of durations, in microseconds.
const SPANS: [&str; 8] = [
    "length",
    "grace",
    "ahead",
    "publish_delay",
    "clock_slack",
    "per",
    "blocks",
    "keep",
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
pub fn ledger_differences(ledger: &str, file: &str) -> Vec<String> {
    let mut recorded = parsed_settings(ledger);
    let settings = parsed_settings(file);
    let mut found = schemas::changes(&recorded, &settings);
    schemas::add_what_may_grow(&mut recorded, &settings);
    let mut ledger = recorded["ledger"].take();
    let mut file = settings["ledger"].clone();
    declare_default_time(&mut ledger);
    declare_default_time(&mut file);
    if let Some(slack) = ledger.pointer_mut(SLACK)
        && let Some(had) = slack.as_u64()
        && let Some(has) = file.pointer(SLACK).and_then(Value::as_u64)
        && has > had
    {
        *slack = has.into();
    }
    collect_differences("ledger", &ledger, &file, &mut found);
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

/// All differences between recorded settings ([`recorded_text`](crate::canonical::recorded_text)), a line each.
pub fn setting_differences(ledger: &str, file: &str) -> Vec<String> {
    let ledger = parsed_settings(ledger);
    let mut file = parsed_settings(file);
    // Earlier versions did not record what was left to "auto".
    if ledger.get("auto").is_none()
        && let Some(file) = file.as_object_mut()
    {
        file.remove("auto");
    }
    let mut found = Vec::new();
    collect_differences("", &ledger, &file, &mut found);
    found
}

fn collect_differences(path: &str, ledger: &Value, file: &Value, found: &mut Vec<String>) {
    if let Value::Object(recorded) = ledger
        && let Value::Object(written) = file
    {
        let names: BTreeSet<&String> = recorded.keys().chain(written.keys()).collect();
        for name in names {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            let ledger = recorded.get(name).unwrap_or(&Value::Null);
            let file = written.get(name).unwrap_or(&Value::Null);
            collect_differences(&path, ledger, file, found);
        }
    } else if ledger != file {
        found.push(difference_line(path, ledger, file));
    }
}

fn difference_line(path: &str, ledger: &Value, file: &Value) -> String {
    // The fields of an added or removed release are no differences of their own.
    if let Some(release) = path.strip_prefix("releases.") {
        if ledger.is_null() && file.is_object() {
            return format!("release {release:?}: not in the ledger, new in the file");
        }
        if ledger.is_object() && file.is_null() {
            return format!("release {release:?}: in the ledger, no longer in the file");
        }
    }
    let name = name_in_file(path);
    if path == KEYS
        && let Value::Array(recorded) = ledger
        && let Value::Array(written) = file
        && recorded.len().max(written.len()) > LISTED
    {
        let recorded: HashSet<&str> = recorded.iter().filter_map(Value::as_str).collect();
        let written: HashSet<&str> = written.iter().filter_map(Value::as_str).collect();
        let new = written.difference(&recorded).count();
        let gone = recorded.difference(&written).count();
        let had = recorded.len();
        let has = written.len();
        return format!(
            "{name}: {had} keys in the ledger, {has} in the file: {new} are new, {gone} gone"
        );
    }
    let ledger = shown_value(path, ledger);
    let file = shown_value(path, file);
    format!("{name}: {ledger} in the ledger, {file} in the file")
}

/// The name in the file of the setting at `path`.
fn name_in_file(path: &str) -> String {
    if let Some(asked) = path.strip_prefix("auto.") {
        return match asked.split_once('.') {
            None => format!("what is \"auto\" in release {asked:?}"),
            Some((name, "open")) => format!("what is \"auto\" in release {name:?}"),
            Some((name, key)) => format!("{key} of release {name:?}"),
        };
    }
    if let Some(release) = path.strip_prefix("releases.")
        && let Some((name, key)) = release.split_once('.')
    {
        return format!("{key} of release {name:?}");
    }
    if path == "limit" {
        return "what windows may spend of the total (privacy.reserve)".to_owned();
    }
    let mut known = path;
    loop {
        if let Some(name) = own_name(known) {
            let rest = path.strip_prefix(known).unwrap_or_default();
            return format!("{name}{rest}").trim_start_matches('.').to_owned();
        }
        match known.rsplit_once('.') {
            Some((parent, _)) => known = parent,
            None => return path.to_owned(),
        }
    }
}

/// The name in the file of a setting that has another one there; what is within it keeps its own.
fn own_name(path: &str) -> Option<&'static str> {
    let name = match path {
        "ledger.input.kind" => "the kind of [input]",
        "ledger.input.skips_bad_messages" => "input.kafka.on_bad_message = \"skip\"",
        "ledger.input.time_format" => "input.time_format",
        "ledger.input" => "input.kafka",
        "ledger.time" => "input.time",
        "ledger.fields.time.numbers" => "the field number of input.time",
        "ledger.fields.time.type" => "the type of input.time",
        "ledger.fields.time" => "the field of input.time",
        "ledger.fields.user.numbers" => "the field number of privacy.unit.user.column",
        "ledger.fields.user.type" => "the type of privacy.unit.user.column",
        "ledger.fields.user" => "the field of privacy.unit.user.column",
        "ledger.fields" => {
            "the fields of event times and users, which earlier programs did not record"
        }
        "ledger.unit.column" => "privacy.unit.user.column",
        "ledger.unit.type" => "privacy.unit.user.type",
        "ledger.unit.per" => "privacy.unit.user.per",
        "ledger.unit.max_records_per_window" => "privacy.unit.user.max_records_per_window",
        "ledger.unit" => "privacy.unit",
        "ledger.adjacency" => "privacy.adjacency",
        "ledger.total" => "the total of [privacy]",
        "ledger.budget.total" => "the whole total of [privacy]",
        "ledger.budget" => "privacy.budget",
        "ledger.blocks.origin" => "windows.origin, where blocks begin",
        "ledger.blocks.length" => "the length of a block",
        "ledger.blocks" => "the blocks of the total",
        "ledger.implies" => "epsilon and delta of [privacy]",
        "ledger.definition" => "privacy.composition",
        "ledger.drawn" => "privacy.composition",
        "ledger.plan" => "the plan of [privacy]",
        "ledger" => "",
        "schemas.descriptor" => "the descriptor of input.kafka.format",
        "schemas" => "the schemas of input.kafka.format",
        "keys.type" | "keys.types" => "input.key.type",
        "keys.other" => "input.key.other",
        "keys" => "input.key",
        _ => return None,
    };
    Some(name)
}

fn shown_value(path: &str, value: &Value) -> String {
    let name = path.rsplit('.').next().unwrap_or_default();
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Number(micros) if SPANS.contains(&name) => match micros.as_u64() {
            Some(micros) => {
                bernstream_synopsis::clock::format_duration(Duration::from_micros(micros))
            }
            None => micros.to_string(),
        },
        Value::Object(fields) => {
            let mut shown = Vec::new();
            for (name, value) in fields {
                let value = shown_value(&format!("{path}.{name}"), value);
                shown.push(format!("{name} = {value}"));
            }
            format!("{{ {} }}", shown.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkerSettings;

    const FLIGHTS: &str = include_str!("../../../tests/data/lattice.toml");

    fn changed(edits: &[(&str, &str)]) -> Vec<String> {
        let edited = edits.iter().fold(FLIGHTS.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        let [ours, theirs] =
            [FLIGHTS, &edited].map(|text| WorkerSettings::parse(text, "test").unwrap().normalised);
        setting_differences(&ours, &theirs)
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
            WorkerSettings::parse(
                &FLIGHTS.replace("[input]\n", &format!("[input]\n{line}")),
                "test",
            )
            .unwrap()
            .normalised
        });
        assert!(
            ledger_differences(&silent, &declared).is_empty()
                && ledger_differences(&declared, &silent).is_empty()
        );
        assert_eq!(
            ledger_differences(&silent, &another),
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
            WorkerSettings::parse(&text, "test").unwrap().normalised
        });
        assert!(
            ledger_differences(&short, &long).is_empty()
                && ledger_differences(&short, &short).is_empty()
        );
        assert_eq!(
            ledger_differences(&long, &short),
            ["input.kafka.clock_slack: 45s in the ledger, 10s in the file"]
        );
        // It is a change all the same, which the ledger records.
        assert_eq!(
            setting_differences(&short, &long),
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
