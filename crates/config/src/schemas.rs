//! What the schemas of records say of event times and users. A ledger is bound to it for ever: with another meaning of the same names, a
//! record that was charged in one block would be charged in another one too.
//!
//! Of an Avro record every field lies where all before it end, so each pinned id keeps its whole schema; more ids may be pinned. Of a Protobuf
//! message a field has a number and a type, and its descriptor may change in all else.

use serde_json::{Map, Value, json};

use crate::settings::{InputParams, WorkerSettings};
use bernstream_kafka::source::record::avro::{RecordSchema, RegistrySchemas};
use bernstream_kafka::source::record::{MessageType, RecordForm, TopicFormat};
use bernstream_ledger::Digest;
use bernstream_release::source::Columns;

/// The numbers of an enum and their names; more may be added, for a number that has none is read as missing.
const SYMBOLS: &str = "symbols";

/// The digest of a file that the configuration names.
pub fn digest(bytes: &[u8]) -> Value {
    Digest::of_bytes(bytes).to_string().into()
}

/// The digest of each pinned schema, by its id.
pub fn pinned(schemas: &RegistrySchemas) -> Value {
    let one =
        |(id, schema): (&u32, &RecordSchema)| (id.to_string(), digest(schema.canonical.as_bytes()));
    schemas.0.iter().map(one).collect::<Map<_, _>>().into()
}

/// The fields of a message that its event time and its user are.
pub fn fields(columns: &Columns, kind: &MessageType) -> Value {
    let mut fields = json!({ "time": kind.field(&columns.time) });
    if let Some(unit) = &columns.unit {
        fields["user"] = json!(kind.field(unit));
    }
    fields
}

/// What pipelines that share a budget must say alike of their schemas; `None` for records without one.
pub fn shared(settings: &WorkerSettings) -> Option<Value> {
    let InputParams::Kafka(kafka) = &settings.input else {
        return None;
    };
    match &kafka.format {
        TopicFormat::Arrow
        | TopicFormat::Records {
            form: RecordForm::Json,
            ..
        } => None,
        TopicFormat::Records {
            form: RecordForm::Avro(schemas),
            ..
        } => Some(pinned(schemas)),
        TopicFormat::Records {
            form: RecordForm::Protobuf(kind),
            ..
        } => Some(fields(&settings.columns, kind)),
    }
}

/// Whether `recorded` settings are those of a program that did not record the fields of messages, and `ours` have them.
pub fn lacks_fields(recorded: &Value, ours: &Value) -> bool {
    recorded.pointer("/ledger/fields").is_none() && ours.pointer("/ledger/fields").is_some()
}

/// Lets the `recorded` settings have what may be added to them: the fields that they lack, and more numbers of an enum.
pub fn add_what_may_grow(recorded: &mut Value, ours: &Value) {
    if lacks_fields(recorded, ours) {
        recorded["ledger"]["fields"] = ours["ledger"]["fields"].clone();
    }
    for (field, ours) in ours["ledger"]["fields"].as_object().into_iter().flatten() {
        let had = recorded["ledger"]["fields"][field]
            .get_mut(SYMBOLS)
            .and_then(Value::as_object_mut);
        let (Some(had), Some(has)) = (had, ours.get(SYMBOLS).and_then(Value::as_object)) else {
            continue;
        };
        for (number, symbol) in has {
            had.entry(number).or_insert_with(|| symbol.clone());
        }
    }
}

/// Why records may mean something else with the schemas of the file than with those that are `recorded`, a line each, in the words of the file.
///
/// The fields of a Protobuf message are compared as the rest of what a ledger is bound to. Ledgers of earlier programs do not have them; what
/// they have is the digest of the descriptor.
pub fn changes(recorded: &Value, file: &Value) -> Vec<String> {
    if lacks_fields(recorded, file) && recorded.get("schemas") != file.get("schemas") {
        let what = "the descriptor of input.kafka.format: the ledger does not know yet which fields event times and users are, and the file \
                    has another descriptor or message than it; start once with those that it was last started with";
        return vec![what.to_owned()];
    }
    let of_avro = |settings: &Value| {
        let is_avro = settings
            .pointer("/ledger/input/format")
            .is_some_and(|format| format == "avro");
        settings
            .get("schemas")
            .filter(|_| is_avro)
            .and_then(Value::as_object)
            .cloned()
    };
    let (Some(had), Some(has)) = (of_avro(recorded), of_avro(file)) else {
        return Vec::new();
    };
    had.iter()
        .filter(|(id, schema)| has.get(*id) != Some(schema))
        .map(|(id, _)| pin(id, has.contains_key(id)))
        .collect()
}

fn pin(id: &str, is_there: bool) -> String {
    match is_there {
        true => format!(
            "the schema {id} of input.kafka.format: its file is not what it was; a registry never changes the schema of an id, and a new \
             schema is pinned with an id of its own"
        ),
        false => format!(
            "the schema {id} of input.kafka.format: in the ledger, no longer in the file; keep it, so that its id never stands for another one"
        ),
    }
}
