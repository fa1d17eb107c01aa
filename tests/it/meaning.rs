//! A ledger is bound to what its event times and users are, and not to their names alone: no ride is charged in two blocks.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bernstream::cli::components;
use bernstream_config::{WorkerSettings, diff};
use bernstream_ledger::bootstrap::{PriorState, StartMode, StartSchedule, choose_start};
use bernstream_ledger::budget::entry::{BudgetEntry, BudgetRecord, BudgetTerms, ShareHolder};
use bernstream_ledger::budget::fold::{BudgetShares, RecordRejection};
use bernstream_ledger::witness::WitnessClaim;
use bernstream_ledger::{Digest, Head, Ledger};
use bernstream_synopsis::Fraction;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::SpanGrid;
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};
use rdkafka::producer::{BaseRecord, Producer};
use serde_json::{Value, json};

use crate::foreseen::refused_by_both;
use crate::harness::ledger::params;
use crate::harness::running::Running;
use crate::harness::setup::Setup;
use crate::harness::{PATIENCE, kafka};
use crate::ledger_log::add_log;

const FLIGHTS: &str = include_str!("../data/lattice.toml");

/// Number, name and type of a field.
type Field = (i32, &'static str, Type);

const RIDE: [Field; 5] = [
    (1, "pickup", Type::Int64),
    (2, "dropoff", Type::Int64),
    (3, "key", Type::String),
    (4, "value", Type::Double),
    (5, "rider", Type::Int64),
];

/// `RIDE` with one field replaced by others.
fn with(number: i32, others: &[Field]) -> Vec<Field> {
    RIDE.iter()
        .copied()
        .filter(|field| field.0 != number)
        .chain(others.iter().copied())
        .collect()
}

/// A descriptor file with the message `Ride`.
fn descriptor(fields: &[Field]) -> Vec<u8> {
    let field = |(number, name, kind): &Field| FieldDescriptorProto {
        name: Some((*name).to_owned()),
        number: Some(*number),
        label: Some(Label::Optional.into()),
        r#type: Some((*kind).into()),
        ..FieldDescriptorProto::default()
    };
    let ride = DescriptorProto {
        name: Some("Ride".to_owned()),
        field: fields.iter().map(field).collect(),
        ..DescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some("ride.proto".to_owned()),
        message_type: vec![ride],
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}

/// An Avro schema with these fields, of one type or of a union.
fn schema(fields: &[(&str, Value)]) -> String {
    let fields: Vec<Value> = fields
        .iter()
        .map(|(name, kind)| json!({ "name": name, "type": kind }))
        .collect();
    json!({ "type": "record", "name": "Ride", "fields": fields }).to_string()
}

fn avro_ride() -> Vec<(&'static str, Value)> {
    vec![
        ("pickup", json!("long")),
        ("dropoff", json!("long")),
        ("key", json!("string")),
        ("value", json!("double")),
    ]
}

/// Lets messages have this form, and the event time be `pickup`.
fn declare(setup: &Setup, format: &str) {
    setup.edit(
        "time = \"time\"",
        "time = \"pickup\"\ntime_format = \"microseconds\"",
    );
    setup.edit(
        "key = { column = \"key\",",
        "key = { column = \"key\", type = \"text\",",
    );
    setup.edit("clock_slack", &format!("format = {format}\nclock_slack"));
}

/// A pipeline that reads rides in Protobuf, and its descriptor file.
fn of_messages(servers: &str) -> (Setup, PathBuf) {
    let setup = Setup::of_seconds(servers, 0);
    let file = setup.folder.path().join("ride.binpb");
    fs::write(&file, descriptor(&RIDE)).expect("it is written");
    declare(
        &setup,
        &format!("{{ protobuf = {{ descriptor = {file:?}, message = \"Ride\" }} }}"),
    );
    (setup, file)
}

fn begin(setup: &Setup) {
    let made = setup.ledger_command(&["init"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}

/// Both commands refuse the configuration, and say this.
#[track_caller]
fn refused(setup: &Setup, words: &[&str]) {
    let (code, said) = refused_by_both(&setup.configuration(), true);
    assert_eq!(code, 74, "{said}");
    assert!(
        words.iter().all(|word| said.contains(word)),
        "{words:?}: {said}"
    );
}

/// Starts the worker, which becomes ready, and ends it.
fn goes_on(setup: &Setup) {
    let mut worker = Running::start(setup);
    worker.wait_ready(setup, true);
    worker.terminate();
    assert!(worker.end(setup).success(), "{}", setup.read_log());
}

fn recorded(setup: &Setup) -> Value {
    let settings = Ledger::newest_settings(&params(&setup.ledger())).expect("a ledger");
    serde_json::from_str(&settings).expect("JSON")
}

#[test]
fn a_descriptor_in_which_the_event_time_is_another_field_is_refused() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (setup, file) = of_messages(&servers);
    begin(&setup);
    let write = |fields: &[Field]| fs::write(&file, descriptor(fields)).expect("it is written");
    let renamed = [
        with(1, &[(1, "dropoff", Type::Int64)]),
        vec![(2, "pickup", Type::Int64)],
    ]
    .concat();
    write(
        &renamed
            .into_iter()
            .filter(|field| *field != RIDE[1])
            .collect::<Vec<_>>(),
    );
    refused(
        &setup,
        &[
            "another guarantee",
            "the field number of input.time: [1] in the ledger, [2] in the file",
        ],
    );
    write(&with(1, &[(1, "pickup", Type::Sint64)]));
    refused(
        &setup,
        &[r#"the type of input.time: "int64" in the ledger, "sint64" in the file"#],
    );
    // What else a message has may change, and it may have more.
    write(&with(
        2,
        &[(2, "dropped_off", Type::Int64), (9, "note", Type::String)],
    ));
    goes_on(&setup);
    assert!(
        setup
            .read_log()
            .contains("the descriptor of input.kafka.format"),
        "{}",
        setup.read_log()
    );
    assert_eq!(
        recorded(&setup)["ledger"]["fields"],
        json!({ "time": { "numbers": [1], "type": "int64" } })
    );
}

#[test]
fn the_schema_of_a_pinned_id_never_changes_and_another_id_may_be_pinned() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::of_seconds(&servers, 0);
    let [seven, eight] = ["7.avsc", "8.avsc"].map(|name| setup.folder.path().join(name));
    let write = |file: &Path, fields: &[(&str, Value)]| {
        fs::write(file, schema(fields)).expect("it is written")
    };
    write(&seven, &avro_ride());
    let pin = |id: u32, file: &Path| format!("{{ id = {id}, file = {file:?} }}");
    let one = format!("[{}]", pin(7, &seven));
    declare(&setup, &format!("{{ avro = {{ schemas = {one} }} }}"));
    begin(&setup);
    let mut swapped = avro_ride();
    swapped.swap(0, 1);
    let changed = [
        // The first eight bytes of a record are another field.
        swapped,
        // The position and the type of the event time are what they were, and it lies elsewhere all the same.
        [vec![("before", json!("string"))], avro_ride()].concat(),
    ];
    for fields in changed {
        write(&seven, &fields);
        refused(
            &setup,
            &[
                "another guarantee",
                "the schema 7 of input.kafka.format: its file is not what it was",
            ],
        );
    }
    write(&seven, &avro_ride());
    // A later schema may have the fields elsewhere: its records were dropped until now.
    let mut later = avro_ride();
    later.rotate_left(1);
    write(&eight, &later);
    setup.edit(&one, &format!("[{}, {}]", pin(7, &seven), pin(8, &eight)));
    goes_on(&setup);
    assert_eq!(
        recorded(&setup)["schemas"]
            .as_object()
            .map(|pinned| pinned.len()),
        Some(2)
    );
    setup.edit(&format!("{}, ", pin(7, &seven)), "");
    refused(
        &setup,
        &["the schema 7 of input.kafka.format: in the ledger, no longer in the file; keep it"],
    );
}

/// A ride that ends nine minutes after it begins, which the configuration allows, is charged when it begins.
#[test]
fn a_ledger_that_follows_another_charges_no_ride_again_whatever_its_event_time_is() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::of_seconds(&servers, 0);
    declare(&setup, "\"json\"");
    setup.edit("ahead = \"1s\"", "ahead = \"10m\"");
    begin(&setup);
    let mut worker = Running::start(&setup);
    worker.wait_ready(&setup, true);
    let began = Ledger::open_unlocked(&params(&setup.ledger()))
        .expect("a ledger")
        .expect("of this format")
        .genesis()
        .first;
    let pickup = Timestamp::now().max(began);
    let dropoff = pickup.plus(Duration::from_secs(9 * 60));
    let ride =
        json!({ "pickup": pickup.micros(), "dropoff": dropoff.micros(), "key": "a", "value": 5.0 })
            .to_string();
    let producer = setup.producer(&[]);
    let record = BaseRecord::<(), _>::to(&setup.input).payload(&ride);
    producer
        .send(record)
        .map_err(|(error, _)| error)
        .expect("it is queued");
    producer.flush(PATIENCE).expect("the broker takes it");
    let charged = || {
        let ledger = Ledger::open_unlocked(&params(&setup.ledger())).ok()??;
        (ledger.last_block_end() > pickup).then_some(())
    };
    setup.wait_for("the window of the pickup", charged);
    worker.terminate();
    assert!(worker.end(&setup).success(), "{}", setup.read_log());

    let other = setup.folder.path().join("other");
    setup.edit(
        &format!("path = \"{}\"", setup.ledger().display()),
        &format!("path = \"{}\"", other.display()),
    );
    setup.edit("time = \"pickup\"", "time = \"dropoff\"");
    let replaced = Timestamp::now();
    let made = setup.ledger_command(&["init", "--replace"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let first = Ledger::inspect(&params(&other))
        .expect("a ledger")
        .genesis()
        .first;
    assert!(
        dropoff > replaced,
        "the ride ends after the ledger was replaced, so that it could be charged again"
    );
    assert!(
        first > dropoff,
        "the first window of the new ledger, {first}, takes a ride that was charged already"
    );
    // Whoever lets records be further ahead later would take it all the same.
    setup.edit("ahead = \"10m\"", "ahead = \"12m\"");
    let (code, said) = refused_by_both(&setup.configuration(), false);
    assert!(
        code == 74 && said.contains("windows.ahead: 10m in the ledger"),
        "{code} {said}"
    );
    assert!(
        said.contains("may have charged records that were sent until"),
        "{said}"
    );
    setup.edit("ahead = \"12m\"", "ahead = \"10s\"");
    goes_on(&setup);
}

#[test]
fn a_ledger_after_another_takes_no_record_that_was_sent_before_it() {
    let half_hours = |count: i64| Timestamp::from_micros(count * 1_800_000_000);
    let hour = Duration::from_secs(3600);
    let windows = SpanGrid::new(half_hours(0), hour).expect("windows of an hour");
    let scheme = StartSchedule {
        windows,
        blocks: windows.into(),
        ahead: 3 * hour,
        slack: hour / 2,
    };
    let head = Head {
        sequence: 4,
        digest: Digest::of_bytes(b"row"),
    };
    let claim = WitnessClaim {
        previous: None,
        head,
        last_block_end: half_hours(48),
        maker: None,
    };
    let first = |claim: Option<&WitnessClaim>, is_output_untouched| {
        let prior = PriorState {
            claim,
            is_output_untouched,
        };
        choose_start(scheme, StartMode::Init, prior, half_hours(60))
            .expect("a beginning")
            .first
    };
    // A record of the window at hour 34 was sent at 31 or later, and no clock of the other ledger was past half past 30.
    assert_eq!(first(Some(&claim), false), half_hours(68));
    assert_eq!(first(None, false), half_hours(68), "its witness is gone");
    assert_eq!(
        first(None, true),
        half_hours(60),
        "there is no other ledger"
    );
    let later = WitnessClaim {
        last_block_end: half_hours(72),
        ..claim
    };
    assert_eq!(
        first(Some(&later), false),
        half_hours(72),
        "no block that was charged"
    );
    assert!(
        scheme.is_apart(half_hours(60), half_hours(67))
            && !scheme.is_apart(half_hours(60), half_hours(66))
    );
}

/// As a program made it that did not record the fields of messages.
#[test]
fn a_ledger_of_an_earlier_program_learns_its_fields_with_the_descriptor_that_it_knows() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (setup, file) = of_messages(&servers);
    let settings = WorkerSettings::load(&setup.configuration()).expect("a sound configuration");
    settings
        .output
        .create_missing(settings.largest_synopsis(), &mut Vec::new())
        .expect("topics");
    let mut witness = settings.output.open_witness().expect("a witness");
    let mut genesis =
        components::first_row(&settings, &mut *witness, StartMode::Run, Timestamp::now())
            .expect("a beginning");
    let mut earlier: Value = serde_json::from_str(&genesis.settings).expect("JSON");
    earlier["ledger"]
        .as_object_mut()
        .expect("an object")
        .remove("fields")
        .expect("it is there");
    genesis.settings = earlier.to_string();
    drop(Ledger::create(&settings.ledger, genesis).expect("a ledger"));

    let renamed = with(2, &[(2, "dropped_off", Type::Int64)]);
    fs::write(&file, descriptor(&renamed)).expect("it is written");
    refused(
        &setup,
        &["the ledger does not know yet which fields event times and users are"],
    );
    fs::write(&file, descriptor(&RIDE)).expect("it is written");
    goes_on(&setup);
    let said = setup.read_log();
    assert!(
        said.contains("the fields of event times and users, which earlier programs did not record"),
        "{said}"
    );
    assert_eq!(
        recorded(&setup)["ledger"]["fields"],
        json!({ "time": { "numbers": [1], "type": "int64" } })
    );
    // Once it knows them, the descriptor may change in all else.
    fs::write(&file, descriptor(&renamed)).expect("it is written");
    goes_on(&setup);
}

#[test]
fn a_ledger_that_is_built_from_its_log_is_bound_as_the_lost_one_was() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (setup, file) = of_messages(&servers);
    add_log(&setup, 41);
    begin(&setup);
    fs::remove_dir_all(setup.ledger()).expect("the disk is lost");
    fs::write(&file, descriptor(&with(1, &[(7, "pickup", Type::Int64)]))).expect("it is written");
    let mut worker = Running::start(&setup);
    worker.refuses(
        &setup,
        &["the field number of input.time: [1] in the ledger, [7] in the file"],
    );
    drop(worker);
    fs::write(&file, descriptor(&RIDE)).expect("it is written");
    goes_on(&setup);
}

/// The settings of a pipeline of users that reads `Ride` from this file.
fn of_users(file: &Path, time: &str, rider: &str) -> WorkerSettings {
    let format = format!(
        "format = {{ protobuf = {{ descriptor = {file:?}, message = \"Ride\" }} }}\nbrokers"
    );
    let unit = format!(
        r#"{{ user = {{ column = "{rider}", type = "text", per = "1d", max_records_per_window = 3 }} }}"#
    );
    let text = FLIGHTS
        .replacen("time = \"time\"", &format!("time = \"{time}\""), 1)
        .replacen(
            "column = \"origin\"",
            "column = \"key\", type = \"text\"",
            1,
        )
        .replacen("brokers", &format, 1)
        .replacen("\"record\"", &unit, 1)
        .replacen("dep_delay", "value", 1);
    WorkerSettings::parse(&text, "test").unwrap_or_else(|faults| panic!("{faults}"))
}

/// `Ride` with a timestamp in a message, whose seconds have this number, and with an enum as its rider.
fn nested(seconds: i32, symbols: &[(i32, &str)]) -> Vec<u8> {
    use prost_reflect::prost_types::{EnumDescriptorProto, EnumValueDescriptorProto};
    let of = |name: &str, number: i32, kind: Type, named: Option<&str>| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        type_name: named.map(str::to_owned),
        ..FieldDescriptorProto::default()
    };
    let message = |name: &str, field: Vec<FieldDescriptorProto>| DescriptorProto {
        name: Some(name.to_owned()),
        field,
        ..DescriptorProto::default()
    };
    let time = FileDescriptorProto {
        name: Some("time.proto".to_owned()),
        package: Some("google.protobuf".to_owned()),
        message_type: vec![message(
            "Timestamp",
            vec![
                of("seconds", seconds, Type::Int64, None),
                of("nanos", 3 - seconds, Type::Int32, None),
            ],
        )],
        ..FileDescriptorProto::default()
    };
    let value = |(number, name): &(i32, &str)| EnumValueDescriptorProto {
        name: Some((*name).to_owned()),
        number: Some(*number),
        options: None,
    };
    let rider = EnumDescriptorProto {
        name: Some("Rider".to_owned()),
        value: symbols.iter().map(value).collect(),
        ..EnumDescriptorProto::default()
    };
    let ride = FileDescriptorProto {
        name: Some("ride.proto".to_owned()),
        dependency: vec!["time.proto".to_owned()],
        message_type: vec![
            message(
                "Meta",
                vec![of(
                    "at",
                    5,
                    Type::Message,
                    Some(".google.protobuf.Timestamp"),
                )],
            ),
            message(
                "Ride",
                vec![
                    of("meta", 3, Type::Message, Some(".Meta")),
                    of("key", 1, Type::String, None),
                    of("value", 2, Type::Double, None),
                    of("rider", 4, Type::Enum, Some(".Rider")),
                ],
            ),
        ],
        enum_type: vec![rider],
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet {
        file: vec![time, ride],
    }
    .encode_to_vec()
}

#[test]
fn a_user_and_a_nested_time_are_the_fields_that_they_were() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ride.binpb");
    let settings = |bytes: Vec<u8>| {
        fs::write(&file, bytes).expect("it is written");
        of_users(&file, "meta.at", "rider").normalised
    };
    let known = [(0, "NOBODY"), (1, "ANN")];
    let ledger = settings(nested(1, &known));
    let fields = &serde_json::from_str::<Value>(&ledger).expect("JSON")["ledger"]["fields"];
    let part = |number: i32, kind: &str| json!({ "numbers": [3, 5, number], "type": kind });
    let expected = json!({
        "time": {
            "numbers": [3, 5], "type": "google.protobuf.Timestamp",
            "parts": { "seconds": part(1, "int64"), "nanos": part(2, "int32") },
        },
        "user": { "numbers": [4], "type": "enum", "symbols": { "0": "NOBODY", "1": "ANN" } },
    });
    assert_eq!(*fields, expected);
    let of_ledger = |bytes: Vec<u8>| diff::ledger_differences(&ledger, &settings(bytes));
    assert_eq!(of_ledger(nested(1, &known)), Vec::<String>::new());
    assert_eq!(
        of_ledger(nested(2, &known)).len(),
        2,
        "the seconds are the nanoseconds"
    );
    let said = of_ledger(nested(1, &[(0, "NOBODY"), (1, "BEN")])).join("\n");
    assert!(
        said.contains(
            "the field of privacy.unit.user.column.symbols.1: \"ANN\" in the ledger, \"BEN\""
        ),
        "{said}"
    );
    assert_eq!(
        of_ledger(nested(1, &[known[0], known[1], (2, "BEN")])),
        Vec::<String>::new(),
        "one more"
    );
    assert_eq!(of_ledger(nested(1, &known[..1])).len(), 1, "one less");
    // The columns are bound by their names too.
    let mut fields = with(1, &[(1, "pickup", Type::String)]);
    fields.retain(|field| field.1 != "rider");
    fields.push((5, "rider", Type::String));
    fs::write(&file, descriptor(&fields)).expect("it is written");
    let [riders, values] =
        ["rider", "key"].map(|rider| of_users(&file, "pickup", rider).normalised);
    let said = diff::ledger_differences(&riders, &values).join("\n");
    assert!(
        said.contains("privacy.unit.user.column: \"rider\" in the ledger, \"key\" in the file"),
        "{said}"
    );
    assert!(
        said.contains("the field number of privacy.unit.user.column: [5] in the ledger, [3]"),
        "{said}"
    );
}

/// Where records have no schema, the configuration says what their fields are: JSON in a topic, and a file of CSV.
#[test]
fn what_is_declared_of_an_event_time_and_a_user_without_a_schema_is_bound_too() {
    let unit =
        r#"{ user = { column = "rider", type = "text", per = "1d", max_records_per_window = 3 } }"#;
    let base = |text: &str| {
        text.replacen(
            "time = \"time\"",
            "time = \"time\"\ntime_format = \"seconds\"",
            1,
        )
        .replacen(
            "column = \"origin\"",
            "column = \"key\", type = \"text\"",
            1,
        )
        .replacen("\"record\"", unit, 1)
    };
    let json = base(FLIGHTS).replacen("brokers", "format = \"json\"\nbrokers", 1);
    let csv = base(include_str!("../../config/files.toml")).replacen(
        "path = \"flights\"",
        "path = \"rides.csv\"",
        1,
    );
    let normalised = |text: &str| {
        WorkerSettings::parse(text, "test")
            .unwrap_or_else(|faults| panic!("{faults}"))
            .normalised
    };
    for text in [json, csv] {
        let ledger = normalised(&text);
        for (from, to, told) in [
            (
                "time = \"time\"",
                "time = \"ended\"",
                "input.time: \"time\" in the ledger, \"ended\" in the file",
            ),
            (
                "\"seconds\"",
                "\"milliseconds\"",
                "input.time_format: \"seconds\" in the ledger, \"milliseconds\"",
            ),
            (
                "\"rider\"",
                "\"driver\"",
                "privacy.unit.user.column: \"rider\" in the ledger, \"driver\" in the file",
            ),
            (
                "\"text\", per",
                "\"integer\", per",
                "privacy.unit.user.type: \"text\" in the ledger, \"integer\"",
            ),
        ] {
            assert!(text.contains(from), "{from}");
            let said = diff::ledger_differences(&ledger, &normalised(&text.replacen(from, to, 1)));
            assert!(
                said.len() == 1 && said[0].contains(told),
                "{told}: {said:?}"
            );
        }
    }
}

#[test]
fn pipelines_of_one_budget_read_the_same_fields_whatever_their_names_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let shared = |format: &str| -> BudgetTerms {
        let text = FLIGHTS
            .replacen(
                "time = \"time\"",
                "time = \"pickup\"\ntime_format = \"seconds\"",
                1,
            )
            .replacen(
                "column = \"origin\"",
                "column = \"key\", type = \"text\"",
                1,
            )
            .replacen("brokers", &format!("format = {{ {format} }}\nbrokers"), 1)
            .replacen(
                "[privacy]",
                "[privacy]\nbudget = { topic = \"b\", share = 1.0 }",
                1,
            )
            .replacen("dep_delay", "value", 1);
        let settings =
            WorkerSettings::parse(&text, "test").unwrap_or_else(|faults| panic!("{faults}"));
        settings
            .shared_budget_terms("input".into())
            .expect("a budget")
    };
    let protobuf = |name: &str, fields: &[Field]| {
        fs::write(path(name), descriptor(fields)).expect("it is written");
        shared(&format!(
            "protobuf = {{ descriptor = {:?}, message = \"Ride\" }}",
            path(name)
        ))
    };
    let avro = |pinned: &[(u32, usize)]| {
        let pin = |(id, turn): &(u32, usize)| {
            let mut fields = avro_ride();
            let file = path(&format!("{turn}.avsc"));
            fields.rotate_left(*turn);
            fs::write(&file, schema(&fields)).expect("it is written");
            format!("{{ id = {id}, file = {file:?} }}")
        };
        shared(&format!(
            "avro = {{ schemas = [{}] }}",
            pinned.iter().map(pin).collect::<Vec<_>>().join(", ")
        ))
    };
    let rides = protobuf("rides", &RIDE);
    let renamed = protobuf("renamed", &with(1, &[(6, "pickup", Type::Int64)]));
    let alike = protobuf("alike", &with(2, &[(8, "note", Type::String)]));
    let seven = avro(&[(7, 0)]);
    let both = avro(&[(7, 0), (8, 1)]);
    let eight = avro(&[(8, 1)]);
    let turned = avro(&[(7, 1)]);
    assert_eq!(
        [
            rides.difference(&alike),
            seven.difference(&both),
            seven.difference(&eight)
        ],
        [None, None, None]
    );
    for said in [rides.difference(&renamed), seven.difference(&turned)] {
        assert!(
            said.as_ref()
                .is_some_and(|said| said.contains("which field is the event time")),
            "{said:?}"
        );
    }
    // An entry of an earlier program says nothing of it; those after it must agree with one another.
    let taken = |shares: &mut BudgetShares, owner: &str, of: &BudgetTerms| {
        let holder = ShareHolder {
            owner: owner.into(),
            generation: 0,
        };
        let share = Fraction::from_millionths(100_000).expect("a share");
        let from = Timestamp::parse("2013-01-01T05:00:00Z").expect("a time");
        shares.apply_record(BudgetRecord::Share(BudgetEntry {
            holder,
            pipeline: owner.into(),
            share,
            from,
            of: of.clone(),
        }))
    };
    for (one, other) in [(&rides, &renamed), (&both, &turned)] {
        let mut shares = BudgetShares::default();
        let earlier = BudgetTerms {
            fields: None,
            ..one.clone()
        };
        assert!(
            !json!(earlier).to_string().contains("fields"),
            "as entries were written before"
        );
        assert_eq!(taken(&mut shares, "a", &earlier), Ok(()));
        assert_eq!(taken(&mut shares, "b", one), Ok(()));
        assert!(matches!(
            taken(&mut shares, "c", other),
            Err(RecordRejection::Other(_))
        ));
        assert_eq!(taken(&mut shares, "d", one), Ok(()));
    }
}
