//! The configuration as a JSON Schema (draft 7), for editors that check TOML by one.
//!
//! Which types a key accepts is found by trying values of every type with the types that read the file. Names, meanings and
//! ranges come from [`KEYS`]. The schema has no rules between two keys: `bernstream check` has them.

use serde_json::{Map, Value, json};

use crate::file::keys::{KEYS, complaint};

/// A table that no key accepts.
const TABLE: &str = r#"{ "?" = 1 }"#;

/// The definition of `[release]`, which is also an element of `[[release]]`.
const RELEASE: &str = "#/definitions/release";

pub fn schema() -> Value {
    let mut schema = table("");
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("bernstream: what is released of a stream, and what it costs");
    schema["definitions"] = json!({ "release": table("release") });
    schema
}

/// The schema of the value at `path`.
fn value(path: &str) -> Value {
    let form = KEYS
        .iter()
        .find(|(key, _)| *key == path)
        .map(|(_, form)| *form);
    let mut kinds = Vec::new();
    if takes(path, "true") {
        kinds.push(json!({ "type": "boolean" }));
    }
    kinds.extend(number(path, form.unwrap_or_default()));
    kinds.extend(text(path, form.unwrap_or_default()));
    if takes(path, "[]") {
        kinds.push(json!({ "type": "array", "items": value(&format!("{path}[]")) }));
    }
    if path.trim_end_matches("[]") == "release" {
        kinds.push(json!({ "$ref": RELEASE }));
    } else if has_keys(path) {
        kinds.push(table(path));
    }
    let mut found = match kinds.pop() {
        Some(only) if kinds.is_empty() => only,
        last => json!({ "anyOf": kinds.into_iter().chain(last).collect::<Vec<_>>() }),
    };
    if let Some(form) = form {
        found["description"] = json!(form);
    }
    found
}

/// Whether `text` is accepted at `path`, even if other keys are then missing.
fn takes(path: &str, text: &str) -> bool {
    let complaint = complaint(path, text);
    complaint.is_empty() || complaint.starts_with("missing field")
}

fn number(path: &str, form: &str) -> Option<Value> {
    let kind = if takes(path, "1.5") {
        "number"
    } else {
        "integer"
    };
    if !takes(path, "1") {
        return None;
    }
    let mut number = Map::from_iter([("type".to_owned(), json!(kind))]);
    if !takes(path, "-1") {
        number.insert("minimum".to_owned(), json!(0));
    }
    let mut put = |name: &str, bound: i64| number.insert(name.to_owned(), json!(bound));
    let words: Vec<&str> = form
        .split([' ', ',', ':'])
        .filter(|word| !word.is_empty())
        .collect();
    for words in words.windows(2) {
        let &[word, bound] = words else { continue };
        let Ok(bound) = bound.parse() else { continue };
        match word {
            "above" => put("exclusiveMinimum", bound),
            "below" => put("exclusiveMaximum", bound),
            "from" => put("minimum", bound),
            "to" => put("maximum", bound),
            _ => None,
        };
    }
    Some(Value::Object(number))
}

/// Any string, or the words that are known.
fn text(path: &str, form: &str) -> Option<Value> {
    let is_words = form.starts_with('"') && !form.contains('{');
    if !is_words && takes(path, r#""?""#) {
        return Some(json!({ "type": "string" }));
    }
    let complaint = complaint(path, r#""?""#);
    let variants = complaint
        .split_once("expected ")
        .map_or("", |(_, variants)| variants);
    let words = variants
        .split('`')
        .skip(1)
        .step_by(2)
        .chain(form.split('"').skip(1).step_by(2));
    let mut known: Vec<&str> = Vec::new();
    for word in words {
        if !known.contains(&word) && takes(path, &format!("{word:?}")) {
            known.push(word);
        }
    }
    (!known.is_empty()).then(|| json!({ "enum": known }))
}

/// The names of the keys below `path`.
fn keys(path: &str) -> impl Iterator<Item = &'static str> {
    let below = move |key: &'static str| {
        let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
        (table == path && !name.ends_with("[]")).then_some(name)
    };
    KEYS.iter().filter_map(move |(key, _)| below(key))
}

fn has_keys(path: &str) -> bool {
    keys(path).next().is_some()
}

fn table(path: &str) -> Value {
    let full = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    let properties: Map<String, Value> = keys(path)
        .map(|name| (name.to_owned(), value(&full(name))))
        .collect();
    let mut table =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    // `{ user = .. }`: one choice of several.
    if !path.is_empty() && complaint(path, TABLE).starts_with("unknown variant") {
        table["minProperties"] = json!(1);
        table["maxProperties"] = json!(1);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_words_come_from_the_forms() {
        let range = |path: &str, form: &str| number(path, form).unwrap();
        assert_eq!(
            range("release.order", "a whole number from 1 to 200, such as 2")["maximum"],
            200
        );
        assert_eq!(
            range(
                "privacy.epsilon",
                "a number above 0 with at most 12 decimals, such as 1.0"
            )["exclusiveMinimum"],
            0
        );
        assert_eq!(
            range("privacy.delta", "above 0 and below 1, such as")["exclusiveMaximum"],
            1
        );
        assert_eq!(number("pipeline", "a name"), None);
        assert_eq!(
            text("release.scale", "").unwrap()["enum"],
            json!(["tight", "paper"])
        );
        assert_eq!(
            text("release.degree", r#"a number or "auto""#).unwrap()["enum"],
            json!(["auto"])
        );
        // The variant that has a table of its own is no word.
        assert_eq!(text("privacy.unit", "").unwrap()["enum"], json!(["record"]));
        assert_eq!(text("privacy.epsilon", ""), None);
    }
}
