//! Nodes of a TOML tree, found by their position in the text.

use std::ops::Range;

use toml::de::{DeArray, DeTable, DeValue};

pub fn path_in(table: &DeTable<'_>, place: &Range<usize>) -> Option<String> {
    if let Some((key, value)) = table
        .iter()
        .find(|(key, value)| key.span() == *place || value.span() == *place)
    {
        // `[[list]]`: the list is at the place of its first element, and the element is what is meant.
        let first = value.get_ref().as_array().and_then(|list| list.first());
        let is_element =
            key.span() != *place && first.is_some_and(|element| element.span() == *place);
        return Some(format!(
            "{}{}",
            key.get_ref(),
            if is_element { "[0]" } else { "" }
        ));
    }
    table
        .iter()
        .find_map(|(key, value)| path_below(key.get_ref(), value.get_ref(), place))
}

fn path_below(path: &str, value: &DeValue<'_>, place: &Range<usize>) -> Option<String> {
    match value {
        DeValue::Table(table) => path_in(table, place).map(|below| format!("{path}.{below}")),
        DeValue::Array(list) => list.iter().enumerate().find_map(|(i, element)| {
            let path = format!("{path}[{i}]");
            if element.span() == *place {
                Some(path)
            } else {
                path_below(&path, element.get_ref(), place)
            }
        }),
        _ => None,
    }
}

/// Words for people, in which anything may stand.
const SHOWN: [&str; 5] = ["title", "description", "record", "label", "unit"];

/// The places of texts in which a shell would replace a variable or a home, but for words for people and the elements of lists, which are
/// keys.
pub fn unexpanded(table: &DeTable<'_>) -> Vec<Range<usize>> {
    let is_unexpanded =
        |text: &str| text.starts_with("~/") || text.contains("${") && text.contains('}');
    let mut places = Vec::new();
    let mut tables = vec![table];
    while let Some(table) = tables.pop() {
        for (key, value) in table {
            match value.get_ref() {
                DeValue::String(_) if SHOWN.contains(&key.get_ref().as_ref()) => {}
                DeValue::Table(below) => tables.push(below),
                DeValue::Array(list) => tables.extend(
                    list.iter()
                        .filter_map(|element| element.get_ref().as_table()),
                ),
                DeValue::String(text) if is_unexpanded(text) => places.push(value.span()),
                _ => {}
            }
        }
    }
    places
}

/// Removes the outermost node whose key or value is at `place`; `false` where there is none.
pub fn remove(table: &mut DeTable<'_>, place: &Range<usize>) -> bool {
    let found = table
        .iter()
        .find(|(key, value)| key.span() == *place || value.span() == *place);
    match found.map(|(key, _)| key.get_ref().to_string()) {
        Some(key) => table.remove(key.as_str()).is_some(),
        None => table
            .iter_mut()
            .any(|(_, value)| remove_below(value.get_mut(), place)),
    }
}

fn remove_below(value: &mut DeValue<'_>, place: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => remove(table, place),
        DeValue::Array(list) => {
            let count = list.len();
            let elements = std::mem::replace(list, DeArray::new());
            *list = elements
                .into_iter()
                .filter(|element| element.span() != *place)
                .collect();
            list.len() < count
                || list
                    .iter_mut()
                    .any(|element| remove_below(element.get_mut(), place))
        }
        _ => false,
    }
}
