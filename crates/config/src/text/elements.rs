//! What a schema says of the elements of a list.

use schemars::Schema;
use serde_json::{Map, Value};

/// Adds keywords, such as the description, to the schema of each element of a list.
pub fn each(keywords: Value) -> impl FnMut(&mut Schema) {
    move |schema| {
        if let Some(schema) = schema.as_object_mut() {
            extend_items(schema, &keywords);
        }
    }
}

fn extend_items(schema: &mut Map<String, Value>, keywords: &Value) {
    if let Some(items) = schema.get_mut("items") {
        extend(items, keywords);
    }
    // A list, or a word in its place.
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        for choice in choices.iter_mut().filter_map(Value::as_object_mut) {
            extend_items(choice, keywords);
        }
    }
}

fn extend(schema: &mut Value, keywords: &Value) {
    match (schema, keywords) {
        (Value::Object(schema), Value::Object(keywords)) => {
            for (name, keyword) in keywords {
                extend(schema.entry(name).or_insert(Value::Null), keyword);
            }
        }
        (schema, keyword) => *schema = keyword.clone(),
    }
}
