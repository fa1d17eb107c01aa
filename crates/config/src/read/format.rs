//! `input.kafka.format`, and what records need declared: the form of times, and the type of keys and users.

use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::file;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_kafka::source::lines;
use bernstream_kafka::source::record::avro::{Schema, Schemas};
use bernstream_kafka::source::record::{
    Declared, Format, IdType, Impossible, MessageType, RecordForm, TimeFormat, is_integer,
};
use bernstream_release::source::Columns;

/// How much is read of a file with a schema.
const LARGEST_FILE: u64 = 16 << 20;

/// Where the file says how messages are written.
pub fn place(file: &file::File) -> Option<Range<usize>> {
    let kafka = file
        .input
        .as_ref()
        .and_then(|input| input.get_ref().kafka.as_ref());
    kafka
        .and_then(|kafka| kafka.get_ref().format.as_ref())
        .map(Spanned::span)
}

/// How messages are written, and what is declared of the fields of records.
pub fn format(document: &mut Document<'_>, file: &mut file::File) -> Checked<(Format, Declared)> {
    let kafka = file
        .input
        .as_mut()
        .and_then(|input| input.get_mut().kafka.as_mut());
    let written = kafka.and_then(|kafka| kafka.get_mut().format.take());
    let form = written.map_or(Ok(None), |written| form(document, written));
    let input = file.input.as_ref().map(Spanned::get_ref);
    let kafka = input
        .and_then(|input| input.kafka.as_ref())
        .map(Spanned::get_ref);
    // Columns of Arrow and Parquet have types of their own; what a folder holds is known when it is opened.
    let needs_types = match &form {
        Ok(None) => kafka.is_none() && input.is_some_and(names_lines),
        Ok(Some(_)) | Err(_) => true,
    };
    let time = input.and_then(|input| input.time_format.clone());
    let key = input.and_then(|input| input.key.as_ref()).map(|key| {
        let kind = kind(document, needs_types, key, |key| key.kind.clone());
        if let Ok(Some(IdType::Integer)) = kind {
            listed_keys_can_match(document, key.get_ref());
        }
        kind
    });
    let unit = file
        .privacy
        .as_ref()
        .and_then(|privacy| privacy.get_ref().unit.as_ref());
    let unit = match unit.map(Spanned::get_ref) {
        Some(file::Unit::User(user)) => {
            Some(kind(document, needs_types, user, |user| user.kind.clone()))
        }
        Some(file::Unit::Record) | None => None,
    };
    let declared = Declared {
        time: time.map_or_else(Default::default, Spanned::into_inner),
        key: key.transpose()?.flatten(),
        unit: unit.transpose()?.flatten(),
    };
    let Some(form) = form? else {
        return Ok((Format::Arrow, declared));
    };
    if let Some(kafka) = kafka {
        nothing_stops_records(document, kafka);
    }
    Ok((Format::Records { form, declared }, declared))
}

/// How a column of event times is written, where the file says it of Arrow or of files; records have it among what is [`Declared`].
pub fn of_columns(file: &file::File, form: Option<&(Format, Declared)>) -> Option<TimeFormat> {
    let input = file.input.as_ref().map(Spanned::get_ref)?;
    matches!(form, Some((Format::Arrow, _)))
        .then(|| input.time_format.as_ref().map(|format| *format.get_ref()))?
}

/// Whether the input is one file of lines, by its name.
fn names_lines(input: &file::Input) -> bool {
    let path = input
        .files
        .as_ref()
        .and_then(|files| files.get_ref().path.as_ref());
    path.is_some_and(|path| lines::is_named_so(Path::new(path.get_ref())))
}

/// The form of records; `None` for Arrow.
fn form(
    document: &mut Document<'_>,
    written: Spanned<file::Format>,
) -> Checked<Option<RecordForm>> {
    match written.into_inner() {
        file::Format::Arrow => Ok(None),
        file::Format::Json => Ok(Some(RecordForm::Json)),
        file::Format::Avro(table) => {
            schemas(document, table).map(|all| Some(RecordForm::Avro(Arc::new(all))))
        }
        file::Format::Protobuf(table) => {
            message_type(document, table).map(|kind| Some(RecordForm::Protobuf(Arc::new(kind))))
        }
    }
}

fn schemas(document: &mut Document<'_>, table: Spanned<file::Avro>) -> Checked<Schemas> {
    let place = table.span();
    let written = table.into_inner();
    let listed = document.required(&place, "schemas", written.schemas, |listed| {
        if listed.is_empty() {
            Err("must not be empty: every record would be dropped".to_owned())
        } else {
            Ok(listed)
        }
    })?;
    let mut all = Ok(Schemas::default());
    for element in listed.into_inner() {
        let schema = schema(document, element, all.as_ref().ok());
        all = all.and_then(|mut all: Schemas| {
            let (id, schema) = schema?;
            all.0.insert(id, schema);
            Ok(all)
        });
    }
    all
}

/// A schema that is not among those before it.
fn schema(
    document: &mut Document<'_>,
    element: Spanned<file::AvroSchema>,
    before: Option<&Schemas>,
) -> Checked<(u32, Schema)> {
    let place = element.span();
    let written = element.into_inner();
    let id = document.required(&place, "id", written.id, Ok);
    let file = document.required(&place, "file", written.file, values::words);
    let id = id?;
    let file = file?;
    if before.is_some_and(|before| before.0.contains_key(id.get_ref())) {
        return Err(document.fault(
            id.span(),
            "duplicate id",
            "a registry gives each schema an id of its own",
        ));
    }
    let text = read(document, &file)?;
    let schema = std::str::from_utf8(&text).map_err(|e| e.to_string());
    match schema.and_then(|text| Schema::parse(text).map_err(|e| e.to_string())) {
        Ok(schema) => Ok((id.into_inner(), schema)),
        Err(why) => {
            let hint =
                "it must be the Avro schema of a record, in JSON, as the registry returns it";
            Err(document.fault(file.span(), format!("cannot be used: {why}"), hint))
        }
    }
}

fn message_type(
    document: &mut Document<'_>,
    table: Spanned<file::Protobuf>,
) -> Checked<MessageType> {
    let place = table.span();
    let written = table.into_inner();
    let file = document.required(&place, "descriptor", written.descriptor, values::words);
    let name = document.required(&place, "message", written.message, values::words);
    let file = file?;
    let name = name?;
    let bytes = read(document, &file)?;
    MessageType::parse(bytes, name.get_ref()).map_err(|why| {
        let hint =
            "write it with `protoc --include_imports --descriptor_set_out=FILE`, and name the message with its package";
        document.fault(file.span(), format!("cannot be used: {why}"), hint)
    })
}

/// What a file holds that says how records are to be read.
fn read(document: &mut Document<'_>, file: &Spanned<String>) -> Checked<Vec<u8>> {
    let bytes = std::fs::File::open(file.get_ref()).and_then(|open| {
        let mut bytes = Vec::new();
        open.take(LARGEST_FILE)
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    });
    bytes.map_err(|why| {
        let hint = "paths are relative to the working directory of the command";
        document.fault(file.span(), format!("cannot be opened: {why}"), hint)
    })
}

/// A field that no record can have is misspelt, or declared as something else.
pub fn fields_can_be_there(
    document: &mut Document<'_>,
    place: Range<usize>,
    (form, declared): (&RecordForm, &Declared),
    columns: &Columns,
) -> Checked<()> {
    let mut found = Ok(());
    // A type that is not declared is told where it is missing.
    for Impossible {
        field,
        types,
        requirement,
    } in form.impossible(columns, declared).unwrap_or_default()
    {
        let (what, hint) = if types.is_empty() {
            let hint = "correct the name, or the path to it, such as \"after.amount\"";
            (
                format!("has no field '{field}', so every record would lack it"),
                hint,
            )
        } else {
            let types = types.into_iter().collect::<Vec<_>>().join(" or ");
            let hint = "correct the name, or what is declared of it";
            (
                format!(
                    "the field '{field}' is {types}, so every record would lack it: {requirement}"
                ),
                hint,
            )
        };
        found = Err(document.fault(place.clone(), what, hint));
    }
    found
}

/// The declared type of a key or a user: needed where no column has one.
fn kind<T>(
    document: &mut Document<'_>,
    is_needed: bool,
    table: &Spanned<T>,
    field: impl Fn(&T) -> Field<IdType>,
) -> Checked<Option<IdType>> {
    let field = field(table.get_ref());
    match is_needed {
        true => document
            .required(&table.span(), "type", field, Ok)
            .map(|kind| Some(kind.into_inner())),
        false => Ok(field.map(Spanned::into_inner)),
    }
}

fn listed_keys_can_match(document: &mut Document<'_>, key: &file::Key) {
    let listed = key.values.as_ref().map(Spanned::get_ref);
    for value in listed
        .into_iter()
        .flatten()
        .filter(|value| !is_integer(value.get_ref()))
    {
        let what = format!(
            "no integer is written as {:?}, so no record can have this key",
            value.get_ref()
        );
        let hint = "write it without a plus, leading zeros and spaces, or declare the key as type = \"text\"";
        document.fault(value.span(), what, hint);
    }
}

fn nothing_stops_records(document: &mut Document<'_>, kafka: &file::InputKafka) {
    let places = [
        kafka.on_bad_message.as_ref().map(Spanned::span),
        kafka.skip.as_ref().map(Spanned::span),
    ];
    for place in places.into_iter().flatten() {
        let what =
            "is for Arrow messages: a record that cannot be read is dropped, and nothing stops";
        document.fault(place, what, "remove it");
    }
}
