//! `input.kafka.format`, and what records need declared: the form of times, and the type of keys and users.

use std::io;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::file;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_kafka::source::lines;
use bernstream_kafka::source::record::avro::{RecordSchema, RegistrySchemas};
use bernstream_kafka::source::record::{
    DeclaredTypes, IdType, ImpossibleField, MessageType, RecordForm, TimeFormat, TopicFormat,
    is_integer,
};
use bernstream_release::source::{Columns, PartTypes};

/// The most bytes that are read of a file with a schema.
const LARGEST_FILE: u64 = 16 << 20;

/// The format of messages, and what is declared of the fields of records.
#[derive(Clone)]
pub struct MessageForm {
    pub format: TopicFormat,
    pub declared: DeclaredTypes,
}

/// The place where the file says how messages are written.
pub fn format_place(file: &file::ConfigFile) -> Option<Range<usize>> {
    let kafka = file
        .input
        .as_ref()
        .and_then(|input| input.get_ref().kafka.as_ref());
    kafka
        .and_then(|kafka| kafka.get_ref().format.as_ref())
        .map(Spanned::span)
}

/// Reads how messages are written, and what is declared of the fields of records.
pub fn read_format(
    document: &mut Document<'_>,
    file: &mut file::ConfigFile,
) -> Checked<MessageForm> {
    let kafka = file
        .input
        .as_mut()
        .and_then(|input| input.get_mut().kafka.as_mut());
    let written = kafka.and_then(|kafka| kafka.get_mut().format.take());
    let form = match written {
        Some(written) => record_form(document, written),
        None => Ok(None),
    };
    let input = file.input.as_ref().map(Spanned::get_ref);
    let kafka = input
        .and_then(|input| input.kafka.as_ref())
        .map(Spanned::get_ref);
    // Columns of Arrow and Parquet have types of their own; what a folder holds is known when it is opened.
    let needs_types = match &form {
        Ok(None) => kafka.is_none() && input.is_some_and(names_lines),
        Ok(Some(_)) | Err(_) => true,
    };
    let mut key_types = Ok(PartTypes::default());
    if let Some(key) = input.and_then(|input| input.key.as_ref()) {
        key_types = declared_key_types(document, needs_types, key);
        if let Ok([Some(IdType::Integer), None, None]) = key_types {
            listed_keys_can_match(document, key.get_ref());
        }
    }
    let unit = file
        .privacy
        .as_ref()
        .and_then(|privacy| privacy.get_ref().unit.as_ref());
    let unit_type = match unit.map(Spanned::get_ref) {
        Some(file::WrittenUnit::User(user)) => {
            let written = user.get_ref().kind.clone();
            id_type(document, needs_types, &user.span(), written)
        }
        Some(file::WrittenUnit::Record) | None => Ok(None),
    };
    let declared = DeclaredTypes {
        time: input.and_then(time_format).unwrap_or_default(),
        key: key_types?,
        unit: unit_type?,
    };
    let Some(form) = form? else {
        return Ok(MessageForm {
            format: TopicFormat::Arrow,
            declared,
        });
    };
    if let Some(kafka) = kafka {
        nothing_stops_records(document, kafka);
    }
    Ok(MessageForm {
        format: TopicFormat::Records { form, declared },
        declared,
    })
}

/// The form of a column of event times, where the file says it of Arrow or of files; records have it among what is [`DeclaredTypes`].
pub fn column_time_format(
    file: &file::ConfigFile,
    form: &Checked<MessageForm>,
) -> Option<TimeFormat> {
    match form {
        Ok(MessageForm {
            format: TopicFormat::Arrow,
            ..
        }) => time_format(file.input.as_ref()?.get_ref()),
        _ => None,
    }
}

fn time_format(input: &file::InputTable) -> Option<TimeFormat> {
    input.time_format.as_ref().map(|format| *format.get_ref())
}

/// Returns whether the input is one file of lines, by its name.
fn names_lines(input: &file::InputTable) -> bool {
    let path = input
        .files
        .as_ref()
        .and_then(|files| files.get_ref().path.as_ref());
    path.is_some_and(|path| lines::is_named_so(Path::new(path.get_ref())))
}

/// The form of records; `None` for Arrow.
fn record_form(
    document: &mut Document<'_>,
    written: Spanned<file::WrittenFormat>,
) -> Checked<Option<RecordForm>> {
    match written.into_inner() {
        file::WrittenFormat::Arrow => Ok(None),
        file::WrittenFormat::Json => Ok(Some(RecordForm::Json)),
        file::WrittenFormat::Avro(table) => {
            read_schemas(document, table).map(|all| Some(RecordForm::Avro(Arc::new(all))))
        }
        file::WrittenFormat::Protobuf(table) => {
            message_type(document, table).map(|kind| Some(RecordForm::Protobuf(Arc::new(kind))))
        }
    }
}

fn read_schemas(
    document: &mut Document<'_>,
    table: Spanned<file::AvroTable>,
) -> Checked<RegistrySchemas> {
    let place = table.span();
    let written = table.into_inner();
    let listed = document.required(&place, "schemas", written.schemas, |listed| {
        if listed.is_empty() {
            Err("must not be empty: every record would be dropped".to_owned())
        } else {
            Ok(listed)
        }
    })?;
    let mut all = Ok(RegistrySchemas::default());
    for element in listed.into_inner() {
        let pinned = pinned_schema(document, element, all.as_ref().ok());
        if let Ok(known) = &mut all {
            match pinned {
                Ok(PinnedSchema { id, schema }) => {
                    known.0.insert(id, schema);
                }
                Err(reported) => all = Err(reported),
            }
        }
    }
    all
}

/// A schema with the id that a registry gave it.
struct PinnedSchema {
    id: u32,
    schema: RecordSchema,
}

/// A schema that is not among those before it.
fn pinned_schema(
    document: &mut Document<'_>,
    element: Spanned<file::AvroSchemaTable>,
    before: Option<&RegistrySchemas>,
) -> Checked<PinnedSchema> {
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
    let text = read_file(document, &file)?;
    match parsed_schema(&text) {
        Ok(schema) => Ok(PinnedSchema {
            id: id.into_inner(),
            schema,
        }),
        Err(why) => {
            let hint =
                "it must be the Avro schema of a record, in JSON, as the registry returns it";
            Err(document.fault(file.span(), format!("cannot be used: {why}"), hint))
        }
    }
}

fn parsed_schema(text: &[u8]) -> Result<RecordSchema, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    RecordSchema::parse(text).map_err(|error| error.to_string())
}

fn message_type(
    document: &mut Document<'_>,
    table: Spanned<file::ProtobufTable>,
) -> Checked<MessageType> {
    let place = table.span();
    let written = table.into_inner();
    let file = document.required(&place, "descriptor", written.descriptor, values::words);
    let name = document.required(&place, "message", written.message, values::words);
    let file = file?;
    let name = name?;
    let bytes = read_file(document, &file)?;
    MessageType::parse(bytes, name.get_ref()).map_err(|why| {
        let hint =
            "write it with `protoc --include_imports --descriptor_set_out=FILE`, and name the message with its package";
        document.fault(file.span(), format!("cannot be used: {why}"), hint)
    })
}

/// The bytes of a file that says how records are to be read.
fn read_file(document: &mut Document<'_>, file: &Spanned<String>) -> Checked<Vec<u8>> {
    bytes_of(file.get_ref()).map_err(|why| {
        let hint = "paths are relative to the working directory of the command";
        document.fault(file.span(), format!("cannot be opened: {why}"), hint)
    })
}

fn bytes_of(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(LARGEST_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A field that no record can have is misspelt, or declared as something else.
pub fn fields_can_be_there(
    document: &mut Document<'_>,
    place: Range<usize>,
    form: &RecordForm,
    declared: &DeclaredTypes,
    columns: &Columns,
) -> Checked<()> {
    let mut found = Ok(());
    // A type that is not declared is told where it is missing.
    for ImpossibleField {
        field,
        types,
        requirement,
    } in form
        .impossible_fields(columns, declared)
        .unwrap_or_default()
    {
        let what;
        let hint;
        if types.is_empty() {
            what = format!("has no field '{field}', so every record would lack it");
            hint = "correct the name, or the path to it, such as \"after.amount\"";
        } else {
            let types = types.into_iter().collect::<Vec<_>>().join(" or ");
            what = format!(
                "the field '{field}' is {types}, so every record would lack it: {requirement}"
            );
            hint = "correct the name, or what is declared of it";
        }
        found = Err(document.fault(place.clone(), what, hint));
    }
    found
}

/// The declared type of a key or a user, in the table at `place`: needed where no column has one.
fn id_type(
    document: &mut Document<'_>,
    is_needed: bool,
    place: &Range<usize>,
    written: Field<IdType>,
) -> Checked<Option<IdType>> {
    if !is_needed {
        return Ok(written.map(Spanned::into_inner));
    }
    let kind = document.required(place, "type", written, Ok)?;
    Ok(Some(kind.into_inner()))
}

/// The types of the columns of a key: one for all, or one for each.
fn declared_key_types(
    document: &mut Document<'_>,
    are_needed: bool,
    key: &Spanned<file::KeyTable>,
) -> Checked<PartTypes> {
    let table = key.get_ref();
    let columns = table
        .columns
        .as_ref()
        .map_or(1, |columns| columns.get_ref().len());
    let mut types = PartTypes::default();
    let Some(written) = &table.types else {
        let of_all = id_type(document, are_needed, &key.span(), table.kind.clone())?;
        types
            .iter_mut()
            .take(columns)
            .for_each(|kind| *kind = of_all);
        return Ok(types);
    };
    if table.kind.is_some() {
        return Err(document.not_one_of(key.span(), &["type", "types"], true));
    }
    if table.columns.is_none() {
        let what = "is for a key of several columns";
        return Err(document.fault(written.span(), what, "write type = \"text\" or \"integer\""));
    }
    let count = written.get_ref().len();
    if count != columns {
        let what = format!("has {count} types, and the key has {columns} columns");
        let hint = "write one for each column, in their order";
        return Err(document.fault(written.span(), what, hint));
    }
    for (kind, written) in types.iter_mut().zip(written.get_ref()) {
        *kind = Some(*written.get_ref());
    }
    Ok(types)
}

/// Keys of one column: parts of several are checked where they are read.
fn listed_keys_can_match(document: &mut Document<'_>, key: &file::KeyTable) {
    let Some(file::WrittenKeys::Listed(listed)) = key.values.as_ref().map(Spanned::get_ref) else {
        return;
    };
    for value in listed {
        let file::WrittenKey::Text(text) = value.get_ref() else {
            continue;
        };
        if is_integer(text) {
            continue;
        }
        let what = format!("no integer is written as {text:?}, so no record can have this key");
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
