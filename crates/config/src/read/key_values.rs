//! `input.key`: its columns, and the keys that are published.

use std::collections::HashSet;
use std::ops::Range;

use crate::file;
use crate::file::{WrittenKey, WrittenKeys, WrittenPartValues};
use crate::read::key_file::MOST_KEYS;
use crate::read::key_other::{OtherNames, read_other};
use crate::read::{found_keys, key_file};
use crate::settings::FoundKeySettings;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_kafka::source::record::{IdType, is_integer};
use bernstream_synopsis::key_parts::{MOST_PARTS, is_found_part_name, is_part_name, join_parts};

/// The columns of the key, and the keys that are published.
#[derive(Default)]
pub struct KeySettings {
    /// One or more.
    pub columns: Vec<String>,
    /// The keys; of several columns the text of the parts together ([`join_parts`]).
    pub values: Vec<String>,
    /// The name of what is not listed of each column, where it has one; none at all without `other`.
    pub other: Vec<Option<String>>,
    /// Rules for keys that nobody listed, in place of `values`.
    pub found: Option<Spanned<FoundKeySettings>>,
}

/// Columns of a key, as far as they are sound, and the types that are declared of them, with the names of what is not listed.
struct KeyParts {
    columns: Vec<String>,
    types: Vec<Option<IdType>>,
    other: OtherNames,
}

impl KeyParts {
    /// The columns, for people.
    fn in_words(&self) -> String {
        self.columns.join(", ")
    }

    /// Returns whether a record can have a part.
    fn can_be(&self, part: usize, text: &str) -> bool {
        self.types.get(part) != Some(&Some(IdType::Integer)) || is_integer(text)
    }
}

pub fn read_key(
    document: &mut Document<'_>,
    table: Spanned<file::KeyTable>,
) -> Checked<KeySettings> {
    let place = table.span();
    let written = table.into_inner();
    let types = written_types(&written);
    let columns = match written.columns {
        Some(_) if written.column.is_some() => {
            Err(document.not_one_of(place.clone(), &["column", "columns"], true))
        }
        Some(columns) => several_columns(document, columns),
        None => {
            let column = document.required(&place, "column", written.column, values::words);
            column.map(|column| vec![column.into_inner()])
        }
    };
    // The names are compared with the columns, and have no fault that is known where these have one.
    let other = match &columns {
        Ok(columns) => read_other(document, written.other, columns),
        Err(_) => Ok(OtherNames::default()),
    };
    let other_fault = other.as_ref().err().copied();
    let parts = KeyParts {
        columns: columns.clone().unwrap_or_default(),
        types,
        other: other.unwrap_or_default(),
    };
    if let Some(found) = written.found {
        let listed = written.values.as_ref().map(Spanned::span);
        let listed = listed.or(written.values_file.as_ref().map(Spanned::span));
        let listed = listed.or(parts.other.place.clone());
        return found_settings(document, found, listed, columns);
    }
    let values = match written.values_file {
        Some(_) if written.values.is_some() => {
            Err(document.not_one_of(place, &["values", "values_file"], true))
        }
        Some(path) => keys_of_file(document, path, &parts),
        None => listed_keys(document, &place, written.values, columns.is_ok(), &parts),
    };
    let settings = KeySettings {
        columns: columns?,
        values: values?,
        other: parts.other.into_texts(),
        found: None,
    };
    match other_fault {
        Some(reported) => Err(reported),
        None => Ok(settings),
    }
}

/// The key of records whose keys nobody lists. `listed` is where the file lists some all the same.
fn found_settings(
    document: &mut Document<'_>,
    table: Spanned<file::FoundTable>,
    listed: Option<Range<usize>>,
    columns: Checked<Vec<String>>,
) -> Checked<KeySettings> {
    let place = table.span();
    let found = found_keys::read_found(document, table);
    if let Some(place) = listed {
        let what = "has no effect: keys are found, and none is listed";
        return Err(document.fault(place, what, "remove it, or remove `found`"));
    }
    let columns = columns?;
    if let [_, _, ..] = columns.as_slice()
        && let Some(taken) = columns.iter().find(|column| !is_found_part_name(column))
    {
        let what = format!("{taken:?} is a column that tables of found keys have themselves");
        let hint = "give the column of the records another name";
        return Err(document.fault(place, what, hint));
    }
    Ok(KeySettings {
        columns,
        found: Some(found?),
        ..KeySettings::default()
    })
}

/// The types that are declared of the columns; whether there is one for each is checked where formats are.
fn written_types(table: &file::KeyTable) -> Vec<Option<IdType>> {
    if let Some(types) = &table.types {
        let types = types.get_ref().iter();
        return types.map(|kind| Some(*kind.get_ref())).collect();
    }
    let of_all = table.kind.as_ref().map(|kind| *kind.get_ref());
    vec![of_all; MOST_PARTS]
}

/// The columns of a key of several.
fn several_columns(
    document: &mut Document<'_>,
    columns: Spanned<Vec<Spanned<String>>>,
) -> Checked<Vec<String>> {
    let place = columns.span();
    let columns = columns.into_inner();
    let mut names: Vec<String> = Vec::new();
    let mut faulty = None;
    for column in &columns {
        let name = column.get_ref();
        let fault = if name.trim().is_empty() {
            Some((
                "must not be empty",
                "write the name of a column of the records",
            ))
        } else if names.contains(name) {
            Some(("is there twice", "each part of a key is another column"))
        } else if !is_part_name(name) {
            Some((
                "is the name of a column that tables by key have themselves",
                "give the column of the records another name",
            ))
        } else {
            None
        };
        match fault {
            Some((what, hint)) => faulty = Some(document.fault(column.span(), what, hint)),
            None => names.push(name.clone()),
        }
    }
    if let Some(reported) = faulty {
        return Err(reported);
    }
    match columns.as_slice() {
        [] => Err(document.fault(place, "must not be empty", "name two or three columns")),
        [only] => {
            let hint = format!("write column = {:?} instead", only.get_ref());
            Err(document.fault(place, "names one column only", hint))
        }
        _ if columns.len() > MOST_PARTS => {
            let what = format!("names {} columns, more than {MOST_PARTS}", columns.len());
            let hint = "join some of them to one column before the records are sent";
            Err(document.fault(place, what, hint))
        }
        _ => Ok(names),
    }
}

/// The keys of `values`; `has_columns` if the columns have no fault, which the parts of keys are compared with.
fn listed_keys(
    document: &mut Document<'_>,
    place: &Range<usize>,
    values: Field<WrittenKeys>,
    has_columns: bool,
    parts: &KeyParts,
) -> Checked<Vec<String>> {
    let values = document.required(place, "values", values, |values| match &values {
        WrittenKeys::Listed(keys) if keys.is_empty() => {
            Err("must not be empty: list every key".to_owned())
        }
        WrittenKeys::Listed(keys) if keys.len() > MOST_KEYS => {
            Err(format!("has {} keys, more than {MOST_KEYS}", keys.len()))
        }
        _ => Ok(values),
    })?;
    if !has_columns {
        return Ok(Vec::new());
    }
    let place = values.span();
    match values.into_inner() {
        WrittenKeys::Listed(keys) => {
            let keys = keys_of_list(document, keys, parts);
            with_other_key(document, keys, parts)
        }
        WrittenKeys::Combined(columns) => keys_of_product(document, place, columns, parts),
    }
}

/// Adds the key of what is not listed to keys that are listed one by one.
fn with_other_key(
    document: &mut Document<'_>,
    mut keys: Vec<String>,
    parts: &KeyParts,
) -> Checked<Vec<String>> {
    if parts.columns.len() != 1 {
        parts.other.must_be_absent(document)?;
        return Ok(keys);
    }
    parts.other.add_name(document, 0, &mut keys)?;
    if keys.len() > MOST_KEYS
        && let Some(place) = &parts.other.place
    {
        let what = format!("makes {} keys, more than {MOST_KEYS}", keys.len());
        return Err(document.fault(place.clone(), what, "list a key less"));
    }
    Ok(keys)
}

fn keys_of_list(
    document: &mut Document<'_>,
    listed: Vec<Spanned<WrittenKey>>,
    parts: &KeyParts,
) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut keys = Vec::new();
    for value in listed {
        let place = value.span();
        let key = match value.into_inner() {
            WrittenKey::Text(text) if parts.columns.len() == 1 => match text.is_empty() {
                true => Err(document.fault(place.clone(), "a key must not be empty", "")),
                false => Ok(text),
            },
            WrittenKey::Text(_) => {
                let what = "is one text, and a key has several parts";
                let hint = format!("write a list of its parts: {}", parts.in_words());
                Err(document.fault(place.clone(), what, hint))
            }
            WrittenKey::Parts(_) if parts.columns.len() == 1 => {
                let what = "is a list of parts, and the key is one column";
                let hint =
                    "name the columns in `columns`, such as columns = [\"country\", \"device\"]";
                Err(document.fault(place.clone(), what, hint))
            }
            WrittenKey::Parts(written) => key_of_parts(document, &place, &written, parts),
        };
        let Ok(key) = key else { continue };
        if seen.insert(key.clone()) {
            keys.push(key);
        } else {
            document.fault(place, "duplicate key", "list each key once");
        }
    }
    keys
}

fn key_of_parts(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: &[Spanned<String>],
    parts: &KeyParts,
) -> Checked<String> {
    let wanted = parts.columns.len();
    if written.len() != wanted {
        let found = match written.len() {
            1 => "one part".to_owned(),
            count => format!("{count} parts"),
        };
        let what = format!("has {found}, and a key has {wanted}");
        let hint = format!("write one for each of {}", parts.in_words());
        return Err(document.fault(place.clone(), what, hint));
    }
    let mut texts = Vec::with_capacity(wanted);
    for (part, text) in written.iter().enumerate() {
        check_part(document, part, text, parts)?;
        texts.push(text.get_ref());
    }
    Ok(join_parts(&texts))
}

/// Checks that a record can have a part of a key.
fn check_part(
    document: &mut Document<'_>,
    part: usize,
    text: &Spanned<String>,
    parts: &KeyParts,
) -> Checked<()> {
    if text.get_ref().is_empty() {
        return Err(document.fault(text.span(), "a part of a key must not be empty", ""));
    }
    if !parts.can_be(part, text.get_ref()) {
        let what = format!(
            "no integer is written as {:?}, so no record can have this key",
            text.get_ref()
        );
        let hint =
            "write it without a plus, leading zeros and spaces, or declare the column as \"text\"";
        return Err(document.fault(text.span(), what, hint));
    }
    Ok(())
}

/// Every combination of the values of the columns, the name of what is not listed among them, those of the last column fastest.
fn keys_of_product(
    document: &mut Document<'_>,
    place: Range<usize>,
    written: Vec<WrittenPartValues>,
    parts: &KeyParts,
) -> Checked<Vec<String>> {
    if parts.columns.len() == 1 {
        let what = "is a table of the values of several columns, and the key is one column";
        return Err(document.fault(place, what, "list its values: values = [\"DE\", \"FR\"]"));
    }
    let mut lists: Vec<Option<Vec<String>>> = vec![None; parts.columns.len()];
    let mut faulty = None;
    for WrittenPartValues { column, values } in written {
        let Some(part) = parts.columns.iter().position(|known| *known == column) else {
            let what = format!("{column:?} is no column of the key");
            let hint = format!("its columns are {}", parts.in_words());
            faulty = Some(document.fault(values.span(), what, hint));
            continue;
        };
        match values_of_part(document, part, values, parts) {
            Ok(mut texts) => match parts.other.add_name(document, part, &mut texts) {
                Ok(()) => lists[part] = Some(texts),
                Err(reported) => faulty = Some(reported),
            },
            Err(reported) => faulty = Some(reported),
        }
    }
    if let Some(reported) = faulty {
        return Err(reported);
    }
    let mut count: usize = 1;
    let mut keys: Vec<Vec<&str>> = vec![Vec::new()];
    for (column, list) in parts.columns.iter().zip(&lists) {
        let Some(list) = list else {
            let what = format!("lacks the values of {column}");
            let hint = "list them, or list every key as a list of its parts";
            return Err(document.fault(place, what, hint));
        };
        count = count.saturating_mul(list.len());
        if count > MOST_KEYS {
            let sizes: Vec<String> = lists
                .iter()
                .flatten()
                .map(|list| list.len().to_string())
                .collect();
            let what = format!("{} make more than {MOST_KEYS} keys", sizes.join(" times "));
            let hint = "list the combinations that there are, in `values` or `values_file`";
            return Err(document.fault(place, what, hint));
        }
        let mut longer = Vec::with_capacity(count);
        for key in &keys {
            for text in list {
                longer.push([key.as_slice(), &[text.as_str()]].concat());
            }
        }
        keys = longer;
    }
    Ok(keys.iter().map(|key| join_parts(key)).collect())
}

/// The values of one column, each once.
fn values_of_part(
    document: &mut Document<'_>,
    part: usize,
    values: Spanned<Vec<Spanned<String>>>,
    parts: &KeyParts,
) -> Checked<Vec<String>> {
    if values.get_ref().is_empty() {
        return Err(document.fault(values.span(), "must not be empty: list every value", ""));
    }
    let mut seen = HashSet::new();
    let mut checked = Ok(());
    for text in values.get_ref() {
        if let Err(reported) = check_part(document, part, text, parts) {
            checked = Err(reported);
        } else if !seen.insert(text.get_ref()) {
            checked = Err(document.fault(text.span(), "duplicate value", "list each value once"));
        }
    }
    checked?;
    Ok(values
        .into_inner()
        .into_iter()
        .map(Spanned::into_inner)
        .collect())
}

/// The keys of `values_file`.
fn keys_of_file(
    document: &mut Document<'_>,
    path: Spanned<String>,
    parts: &KeyParts,
) -> Checked<Vec<String>> {
    let place = path.span();
    if let [header, _, ..] = parts.columns.as_slice() {
        let keys = key_file::read_part_file(path.get_ref(), &parts.columns, |part, text| {
            parts.can_be(part, text)
        });
        let hint = format!(
            "a CSV file with one key a line, each once: {}; a first line with just these names, in this order, is a header, such as \
             {header},..; a part with a comma or a quote stands in quotes",
            parts.columns.join(",")
        );
        let keys = keys.map_err(|faults| document.fault(place, faults.join("; "), hint))?;
        return with_other_key(document, keys, parts);
    }
    let header = parts.columns.first().map_or("", String::as_str);
    let keys = key_file::read_key_file(path.get_ref(), header, |key| parts.can_be(0, key));
    let keys = keys.map_err(|faults| {
        let hint = "one key a line, each once; no header, quotes, commas or comments: keys that have them are listed in `values`";
        document.fault(place, faults.join("; "), hint)
    })?;
    with_other_key(document, keys, parts)
}
