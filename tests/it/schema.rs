//! The schema that editors check a configuration by is current, complete, and of the opinion of the program.

use std::fs;
use std::path::{Path, PathBuf};

use bernstream_config::{KEYS, schema};
use serde_json::{Map, Value};

/// TOML as JSON; dates become texts.
fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::Table(table) => Value::Object(
            table
                .into_iter()
                .map(|(key, value)| (key, json(value)))
                .collect(),
        ),
        toml::Value::Array(list) => list.into_iter().map(json).collect(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
    }
}

fn read(text: &str) -> Value {
    json(toml::Value::Table(text.parse().expect("TOML")))
}

/// Where `value` breaks `rule`: as much of JSON Schema as ours have, and nothing else is in them.
pub fn faults(whole: &Value, rule: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    let wrong = |what: String| vec![format!("{at}: {what}")];
    let number = |name: &str| rule[name].as_f64().zip(value.as_f64());
    for (name, argument) in rule.as_object().expect("a rule is an object") {
        let more = match name.as_str() {
            "$schema" | "title" | "description" | "definitions" => Vec::new(),
            "$ref" => {
                let place = argument
                    .as_str()
                    .and_then(|place| place.strip_prefix('#'))
                    .expect("a place in the schema");
                faults(whole, whole.pointer(place).expect("it is there"), value, at)
            }
            "type" => {
                let is_so = match argument.as_str().expect("a type") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "number" => value.is_number(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "null" => value.is_null(),
                    other => panic!("no type {other}"),
                };
                if is_so {
                    Vec::new()
                } else {
                    wrong(format!("{value} is no {argument}"))
                }
            }
            "anyOf" | "oneOf" => {
                let variants: Vec<_> = argument.as_array().expect("a list").iter().collect();
                let tried: Vec<_> = variants
                    .iter()
                    .map(|variant| faults(whole, variant, value, at))
                    .collect();
                if tried.iter().any(Vec::is_empty) {
                    Vec::new()
                } else {
                    tried.concat()
                }
            }
            "enum"
                if argument
                    .as_array()
                    .is_some_and(|known| known.contains(value)) =>
            {
                Vec::new()
            }
            "enum" => wrong(format!("{value} is none of {argument}")),
            "minimum" if number(name).is_none_or(|(least, value)| value >= least) => Vec::new(),
            "maximum" if number(name).is_none_or(|(most, value)| value <= most) => Vec::new(),
            "exclusiveMinimum" if number(name).is_none_or(|(least, value)| value > least) => {
                Vec::new()
            }
            "exclusiveMaximum" if number(name).is_none_or(|(most, value)| value < most) => {
                Vec::new()
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                wrong(format!("{value}: {name} {argument}"))
            }
            "required" => {
                let needed = argument
                    .as_array()
                    .expect("a list")
                    .iter()
                    .map(|name| name.as_str().expect("a name"));
                let missing = needed.filter(|name| {
                    value
                        .as_object()
                        .is_some_and(|fields| !fields.contains_key(*name))
                });
                missing
                    .map(|name| format!("{at}.{name}: missing"))
                    .collect()
            }
            "items" => {
                let list = value.as_array().into_iter().flatten().enumerate();
                list.flat_map(|(i, element)| {
                    faults(whole, argument, element, &format!("{at}[{i}]"))
                })
                .collect()
            }
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let known =
                    fields.filter_map(|(key, value)| Some((key, argument.get(key)?, value)));
                known
                    .flat_map(|(key, rule, value)| {
                        faults(whole, rule, value, &format!("{at}.{key}"))
                    })
                    .collect()
            }
            "additionalProperties" => {
                let none = Map::new();
                let known = rule["properties"].as_object().unwrap_or(&none);
                let fields = value.as_object().into_iter().flatten();
                let others = fields.filter(|(key, _)| !known.contains_key(*key));
                if argument == &Value::Bool(false) {
                    others
                        .map(|(key, _)| format!("{at}.{key}: unknown"))
                        .collect()
                } else {
                    // A table whose names are those of columns.
                    others
                        .flat_map(|(key, value)| {
                            faults(whole, argument, value, &format!("{at}.{key}"))
                        })
                        .collect()
                }
            }
            other => panic!("the schema has {other}, which this test does not know"),
        };
        found.extend(more);
    }
    found
}

fn check(text: &str) -> Vec<String> {
    let schema = schema();
    faults(&schema, &schema, &read(text), "")
}

fn configurations(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("a name").path())
    {
        match entry.extension() {
            _ if entry.is_dir() => configurations(&entry, found),
            Some(ending) if ending == "toml" => found.push(entry),
            _ => {}
        }
    }
}

#[test]
fn the_schema_in_the_repository_is_what_the_program_prints() {
    let kept = fs::read_to_string("config/bernstream.schema.json").expect("the schema");
    let now = format!("{:#}\n", schema());
    assert!(
        kept == now,
        "write it again: bernstream schema > config/bernstream.schema.json"
    );
}

#[test]
fn every_example_is_as_the_schema_says_and_names_it() {
    let mut examples = Vec::new();
    let mut deployed = Vec::new();
    configurations(Path::new("config"), &mut examples);
    configurations(Path::new("deploy"), &mut deployed);
    assert!(
        examples.len() >= 11 && deployed.len() >= 3,
        "{examples:?} {deployed:?}"
    );
    for path in &examples {
        let text = fs::read_to_string(path).expect("an example");
        assert!(
            text.starts_with("#:schema ./bernstream.schema.json\n"),
            "{}",
            path.display()
        );
    }
    for path in examples.iter().chain(&deployed) {
        let text = fs::read_to_string(path).expect("an example");
        assert_eq!(check(&text), Vec::<String>::new(), "{}", path.display());
    }
}

/// The rules of which one holds, where there are several.
fn choices(rule: &Value) -> Vec<&Value> {
    let several = rule["anyOf"].as_array().or(rule["oneOf"].as_array());
    match several {
        Some(several) => several.iter().flat_map(choices).collect(),
        None => vec![rule],
    }
}

#[test]
fn every_key_is_in_the_schema_with_its_meaning() {
    let schema = schema();
    for known in KEYS.iter() {
        let (path, form) = (&known.path, &known.form);
        let mut rules = vec![&schema];
        let parts = path.split('.').flat_map(|part| {
            let lists = part.matches("[]").count();
            std::iter::once(part.trim_end_matches("[]")).chain(std::iter::repeat_n("[]", lists))
        });
        for part in parts {
            let all = rules.into_iter().flat_map(choices);
            let followed = all.map(|rule| {
                match rule["$ref"]
                    .as_str()
                    .and_then(|place| place.strip_prefix('#'))
                {
                    Some(place) => schema.pointer(place).expect("it is there"),
                    None => rule,
                }
            });
            let below = |rule: &'_ Value| {
                if part == "[]" {
                    rule.get("items").is_some()
                } else {
                    rule["properties"].get(part).is_some()
                }
            };
            rules = followed
                .filter(|rule| below(rule))
                .map(|rule| {
                    if part == "[]" {
                        &rule["items"]
                    } else {
                        &rule["properties"][part]
                    }
                })
                .collect();
        }
        assert!(!rules.is_empty(), "{path} is missing");
        assert!(
            rules.iter().any(|rule| rule["description"] == *form),
            "{path} has no meaning"
        );
    }
}

#[test]
fn what_is_misspelt_or_of_the_wrong_kind_is_refused_where_it_stands() {
    let flights = fs::read_to_string("tests/data/lattice.toml").expect("the example");
    let wrong = [
        (
            "pipeline = \"flights\"",
            "pipline = \"flights\"",
            ".pipline: unknown",
        ),
        ("length = \"1d\"", "length = 1", ".windows.length: 1 is no"),
        (
            "length = \"1d\"",
            "lenght = \"1d\"",
            ".windows.lenght: unknown",
        ),
        (
            "unit = \"record\"",
            "unit = \"records\"",
            ".privacy.unit: \"records\" is none of",
        ),
        (
            "unit = \"record\"",
            "unit = { users = {} }",
            ".privacy.unit.users: unknown",
        ),
        (
            "unit = \"record\"",
            "unit = {}",
            ".privacy.unit.user: missing",
        ),
        (
            "epsilon = 1.0",
            "epsilon = \"1\"",
            ".privacy.epsilon: \"1\" is no",
        ),
        (
            "epsilon = 1.0",
            "epsilon = 0",
            ".privacy.epsilon: 0: exclusiveMinimum",
        ),
        ("degree = 40", "degree = 40.5", "degree: 40.5 is no"),
        (
            "degree = 40",
            "degree = \"a lot\"",
            "degree: \"a lot\" is none of",
        ),
        ("order = 4", "order = 201", "order: 201: maximum"),
        (
            "outside = \"clamp\"",
            "outside = \"cut\"",
            ".domain[0].outside: \"cut\" is none of",
        ),
        (
            "bandwidths = [10]",
            "bandwidths = 10",
            ".density.bandwidths: 10 is no",
        ),
        (
            "bandwidths = [10]",
            "bandwidths = [\"10\"]",
            ".density.bandwidths[0]: \"10\" is no",
        ),
        (
            "[release.density]",
            "[release.densty]",
            ".release.densty: unknown",
        ),
    ];
    for (right, wrong, expected) in wrong {
        assert!(flights.contains(right), "the example has no {right}");
        let found = check(&flights.replace(right, wrong));
        assert!(
            found.iter().any(|fault| fault.contains(expected)),
            "{wrong}: {found:?}"
        );
    }
    assert!(check(&fs::read_to_string("tests/data/wrong.toml").expect("the file")).len() > 10);
}

/// What the types take, the schema takes, in the one place that the other tests do not reach: choices of several forms.
#[test]
fn every_form_of_a_value_is_taken() {
    let flights = fs::read_to_string("tests/data/lattice.toml").expect("the example");
    let right = [
        ("degree = 40", "degree = \"auto\""),
        (
            "unit = \"record\"",
            "unit = { user = { column = \"a\", per = \"ever\", max_records_per_window = 3 } }",
        ),
        ("epsilon = 1.0", "epsilon = 1"),
        ("[release]", "[[release]]"),
        ("[release]", "[release]\nwindows = { hopping = \"7d\" }"),
        ("[release]", "[release]\nwindows = \"tumbling\""),
        ("[release]", "[release]\nsmoothness = { norm = 5 }"),
        (
            "[release]",
            "[release]\nprivate_order = { epsilon = 0.1, candidates = [1, 2] }",
        ),
        (
            "[release.density]\nbandwidths = [10]",
            "[release.machine]\nkernel = \"linear\"",
        ),
        (
            "[release.density]\nbandwidths = [10]",
            "[release.machine]\nkernel = { gaussian = { bandwidth = 1 } }",
        ),
    ];
    for (one, other) in right {
        assert!(flights.contains(one), "the example has no {one}");
        let mut text = flights.replace(one, other);
        if other == "[[release]]" {
            text = text.replace("[release.density]", "[release.density ]");
        }
        assert_eq!(check(&text), Vec::<String>::new(), "{other}");
    }
}
