//! The keys and the JSON Schema of a configuration, both derived from the types of the file: the doc comment of a field is the form
//! of its value. The schema has no rules between two keys: `bernstream check` has them.

use std::sync::LazyLock;

use schemars::Schema;
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::{RecursiveTransform, RestrictFormats};
use serde_json::Value;

use crate::file::asked::ASKED;
use crate::file::sections::ConfigFile;
use crate::text::{KnownKey, KnownKeys};

/// Every key, in the order of the types.
pub static KEYS: LazyLock<Vec<KnownKey>> = LazyLock::new(|| {
    // The serialized form has every field, so that `required` has their order. `properties` are sorted by name.
    let schema = generated(Contract::Serialize);
    let mut keys = Vec::new();
    add_keys(&mut keys, "", &schema, &schema["definitions"]["release"]);
    keys
});

/// Every key, as a [`Document`](crate::text::Document) needs them.
pub fn known_keys() -> KnownKeys {
    KnownKeys {
        keys: &KEYS,
        asked: ASKED,
    }
}

/// The JSON Schema (draft 7), for editors that check TOML by one.
pub fn schema() -> Value {
    generated(Contract::Deserialize)
}

fn generated(contract: Contract) -> Value {
    SchemaSettings::draft07()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.contract = contract;
        })
        .with_transform(RestrictFormats::default())
        .with_transform(RecursiveTransform(without_null))
        .with_transform(RecursiveTransform(describe_variants))
        .into_generator()
        .into_root_schema_for::<ConfigFile>()
        .to_value()
}

/// Takes out null: every field is optional, but TOML has no null.
fn without_null(schema: &mut Schema) {
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = &choices[..] {
            let only = only.clone();
            schema.remove("anyOf");
            for (name, keyword) in only {
                if schema.get(&name).is_none() {
                    schema.insert(name, keyword);
                }
            }
        }
    }
}

/// Moves the description of a variant such as `{ user = .. }` to its only key.
fn describe_variants(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.get_mut("oneOf") else {
        return;
    };
    for variant in variants.iter_mut().filter_map(Value::as_object_mut) {
        let description = variant.remove("description");
        let keys = variant.get_mut("properties").and_then(Value::as_object_mut);
        if let (Some(description), Some(keys)) = (description, keys) {
            for key in keys.values_mut() {
                key["description"] = description.clone();
            }
        }
    }
}

/// Adds the keys below `path`. The release has a definition of its own, because there may be one or several.
fn add_keys(keys: &mut Vec<KnownKey>, path: &str, schema: &Value, release: &Value) {
    if schema.get("$ref").is_some() {
        return add_keys(keys, path, release, release);
    }
    for choices in ["anyOf", "oneOf"] {
        for choice in schema[choices].as_array().into_iter().flatten() {
            add_keys(keys, path, choice, release);
        }
    }
    let names = schema["required"].as_array().into_iter().flatten();
    for name in names.filter_map(Value::as_str) {
        let below = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        };
        let value = &schema["properties"][name];
        keys.push(key(&below, value));
        add_keys(keys, &below, value, release);
    }
    if let Some(items) = schema
        .get("items")
        .filter(|items| items.get("$ref").is_none())
    {
        let element = format!("{path}[]");
        if items.get("description").is_some() {
            keys.push(key(&element, items));
        }
        add_keys(keys, &element, items, release);
    }
}

fn key(path: &str, value: &Value) -> KnownKey {
    KnownKey {
        path: path.to_owned(),
        form: value["description"].as_str().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;
    use crate::settings::NoiseKind;
    use bernstream_kafka::source::record::{IdType, TimeFormat};
    use bernstream_synopsis::histogram::Spline;
    use bernstream_synopsis::machine::Loss;

    #[test]
    fn every_key_says_the_form_of_its_value() {
        let silent = KEYS.iter().find(|key| key.form.is_empty());
        assert_eq!(silent.map(|key| &key.path), None);
    }

    /// They are written at the field: types of other crates have no schema.
    #[test]
    fn the_words_of_other_types_are_those_that_they_read() {
        check_words::<TimeFormat>("/properties/input/properties/time_format", &[]);
        check_words::<IdType>("/properties/input/properties/key/properties/type", &[]);
        check_words::<NoiseKind>("/definitions/release/properties/noise", &["auto"]);
        check_words::<Spline>("/definitions/release/properties/spline", &["auto"]);
        let machine = "/definitions/release/properties/machine/properties";
        check_words::<Loss>(&format!("{machine}/loss"), &[]);
    }

    fn check_words<T: DeserializeOwned>(place: &str, more: &[&str]) {
        let complaint = match serde_json::from_value::<T>(json!("?")) {
            Ok(_) => panic!("{place} takes any word"),
            Err(error) => error.to_string(),
        };
        let (_, known) = complaint.split_once("expected ").unwrap();
        let known = known.split('`').skip(1).step_by(2);
        let words: Vec<&str> = known.chain(more.iter().copied()).collect();
        assert_eq!(schema().pointer(place).unwrap()["enum"], json!(words));
    }
}
