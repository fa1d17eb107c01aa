//! `input.kafka.format`, and what records need declared: the form of times, and the type of keys and users.

use toml::Spanned;

use crate::config::file;
use crate::config::text::{Checked, Document, Field};
use crate::source::record::{Declared, Format, IdType, RecordForm, is_integer};

/// What the form of the input is, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Typed {
    /// Every column has a type.
    Arrow,
    /// Fields have the types that are declared.
    Records,
    /// Each file has a form of its own.
    Files,
}

/// How messages are written, and what is declared of the fields of records.
pub fn format(document: &mut Document<'_>, file: &file::File) -> Checked<(Format, Declared)> {
    let input = file.input.as_ref().map(Spanned::get_ref);
    let kafka = input.and_then(|input| input.kafka.as_ref()).map(Spanned::get_ref);
    let form = kafka.and_then(|kafka| kafka.format.as_ref()).map_or(Ok(None), |written| form(document, written));
    let typed = match &form {
        Ok(None) if kafka.is_some() => Typed::Arrow,
        Ok(None) => Typed::Files,
        Ok(Some(_)) | Err(_) => Typed::Records,
    };
    let time = input.and_then(|input| input.time_format.clone());
    refuse_on_arrow(document, typed, time.as_ref());
    let key = input.and_then(|input| input.key.as_ref()).map(|key| {
        let kind = kind(document, typed, key, |key| key.kind.clone());
        if let Ok(Some(IdType::Integer)) = kind {
            listed_keys_can_match(document, key.get_ref());
        }
        kind
    });
    let unit = file.privacy.as_ref().and_then(|privacy| privacy.get_ref().unit.as_ref());
    let unit = match unit.map(Spanned::get_ref) {
        Some(file::Unit::User(user)) => Some(kind(document, typed, user, |user| user.kind.clone())),
        Some(file::Unit::Record) | None => None,
    };
    let declared = Declared {
        time: time.map_or_else(Default::default, Spanned::into_inner),
        key: key.transpose()?.flatten(),
        unit: unit.transpose()?.flatten(),
    };
    let Some(form) = form? else { return Ok((Format::Arrow, declared)) };
    if let Some(kafka) = kafka {
        nothing_stops_records(document, kafka);
    }
    Ok((Format::Records { form, declared }, declared))
}

/// The form of records; `None` for Arrow.
fn form(_document: &mut Document<'_>, written: &Spanned<file::Format>) -> Checked<Option<RecordForm>> {
    match written.get_ref() {
        file::Format::Arrow => Ok(None),
        file::Format::Json => Ok(Some(RecordForm::Json)),
    }
}

/// The declared type of a key or a user.
fn kind<T>(
    document: &mut Document<'_>,
    typed: Typed,
    table: &Spanned<T>,
    field: impl Fn(&T) -> Field<IdType>,
) -> Checked<Option<IdType>> {
    let field = field(table.get_ref());
    refuse_on_arrow(document, typed, field.as_ref());
    match typed {
        Typed::Records => document.required(&table.span(), "type", field, Ok).map(|kind| Some(kind.into_inner())),
        Typed::Arrow | Typed::Files => Ok(field.map(Spanned::into_inner)),
    }
}

fn refuse_on_arrow<T>(document: &mut Document<'_>, typed: Typed, field: Option<&Spanned<T>>) {
    if let Some(field) = field
        && typed == Typed::Arrow
    {
        let hint = "remove it, or set input.kafka.format to the form of the messages";
        document.fault(field.span(), "is not used with Arrow messages, whose columns have types", hint);
    }
}

fn listed_keys_can_match(document: &mut Document<'_>, key: &file::Key) {
    let listed = key.values.as_ref().map(Spanned::get_ref);
    for value in listed.into_iter().flatten().filter(|value| !is_integer(value.get_ref())) {
        let what = format!("no integer is written as {:?}, so no record can have this key", value.get_ref());
        let hint = "write it without a plus, leading zeros and spaces, or declare the key as type = \"text\"";
        document.fault(value.span(), what, hint);
    }
}

fn nothing_stops_records(document: &mut Document<'_>, kafka: &file::InputKafka) {
    let places = [kafka.on_bad_message.as_ref().map(Spanned::span), kafka.skip.as_ref().map(Spanned::span)];
    for place in places.into_iter().flatten() {
        let what = "is for Arrow messages: a record that cannot be read is dropped, and nothing stops";
        document.fault(place, what, "remove it");
    }
}
