//! `check --sample`: a configuration with which every window would be noise is a fault before anything is spent.

use std::fs;

use rdkafka::producer::{BaseRecord, Producer};

use crate::harness::files::{Files, command};
use crate::harness::setup::Setup;
use crate::harness::{PATIENCE, kafka};

/// The exit code of `check` with these arguments, and all that it says.
fn check(setup: &Setup, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = setup.bernstream(&[&["check"], arguments].concat());
    let output = command
        .arg(setup.configuration())
        .output()
        .expect("it runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
    )
}

/// One of `arguments` on files.
fn check_files(file: &std::path::Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(&[&["check"], arguments].concat(), file)
        .output()
        .expect("it runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
    )
}

/// A topic of single records in `format`, whose times are written as `time_format` says.
fn of_records(servers: &str, format: &str, time_format: &str) -> Setup {
    let setup = Setup::new(servers, 2);
    setup.edit("clock_slack", &format!("format = {format}\nclock_slack"));
    setup.edit(
        "time = \"time\"",
        &format!("time = \"time\"\ntime_format = \"{time_format}\""),
    );
    setup.edit("column = \"key\"", "column = \"key\", type = \"text\"");
    setup
}

/// Sends messages to partition 0, a tombstone where there is none.
fn send(setup: &Setup, messages: &[Option<Vec<u8>>]) {
    let producer = setup.producer(&[]);
    for message in messages {
        let record = BaseRecord::<str, [u8]>::to(&setup.input)
            .partition(0)
            .key("any");
        let record = match message {
            Some(payload) => record.payload(payload.as_slice()),
            None => record,
        };
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
    }
    producer.flush(PATIENCE).expect("the broker takes it");
}

fn json(time: &str, key: &str, value: f64) -> Option<Vec<u8>> {
    Some(format!(r#"{{"time":{time},"key":"{key}","value":{value}}}"#).into_bytes())
}

/// A record of use.
fn good() -> Option<Vec<u8>> {
    json("\"2025-01-01T00:00:30Z\"", "a", 50.0)
}

/// The line that begins with a label and has these words.
fn has(told: &str, label: &str, words: &str) -> bool {
    told.lines()
        .any(|line| line.trim().starts_with(label) && line.contains(words))
}

#[test]
fn keys_that_never_occur_are_a_fault_with_the_commonest_that_do() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = of_records(&servers, "\"json\"", "rfc3339");
    let key = |key: &str| json("\"2025-01-01T00:00:30Z\"", key, 50.0);
    let mut messages = vec![good(); 2];
    for (name, count) in [
        ("A", 9),
        ("B", 3),
        ("C\\u001b", 2),
        ("D", 2),
        ("E", 2),
        ("F", 1),
    ] {
        messages.extend(vec![key(name); count]);
    }
    send(&setup, &messages);
    let (code, told) = check(&setup, &["--sample"]);
    let words = r#"have a listed key: 2 of 21; the commonest others: "A" in 9, "B" in 3, "C\u{1b}" in 2, "D" in 2, "E" in 2: less than 50 %"#;
    assert!(code == Some(78) && has(&told, "fault", words), "{told}");
    assert!(told.contains("1 of ") && !told.contains("\"F\""), "{told}");
    // The share is the user's; below the usual one it is a warning.
    let (code, told) = check(&setup, &["--sample", "--least-share", "9"]);
    assert!(
        code == Some(0) && has(&told, "warn", "have a listed key: 2 of 21"),
        "{told}"
    );
    let (code, told) = check(&setup, &["--sample", "--least-share", "101"]);
    assert!(code == Some(2), "{told}");
    let (_, told) = check(&setup, &["--sample", "--json"]);
    let told: serde_json::Value =
        serde_json::from_str(told.split("\nerror: ").next().expect("an object")).expect("JSON");
    let faults =
        |check: &&serde_json::Value| !check["fault"].is_null() && check["is_to_come"] == false;
    assert_eq!(
        told["checks"]
            .as_array()
            .expect("checks")
            .iter()
            .filter(faults)
            .count(),
        1,
        "{told}"
    );
}

#[test]
fn times_in_another_unit_and_a_domain_that_moves_everything_are_faults() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = of_records(&servers, "\"json\"", "seconds");
    send(&setup, &vec![json("1735689630000", "a", 50.0); 10]);
    let (code, told) = check(&setup, &["--sample"]);
    assert!(
        code == Some(78)
            && has(
                &told,
                "fault",
                "lie in a window: 0 of 10, with times from +56971-"
            ),
        "{told}"
    );
    // Nor where windows have no end: they are far ahead of their messages.
    setup.edit(&format!("end = \"{}\"\n", setup.start_of(2)), "");
    let (code, told) = check(&setup, &["--sample"]);
    assert!(
        code == Some(78) && has(&told, "fault", "lie in a window: 0 of 10"),
        "{told}"
    );
    setup.edit("\"seconds\"", "\"milliseconds\"");
    let (code, told) = check(&setup, &["--sample"]);
    assert!(
        code == Some(0) && has(&told, "ok", "lie in a window: 10 of 10"),
        "{told}"
    );
    assert!(
        has(
            &told,
            "warn",
            "came before the cutoff of their window: 0 of 10"
        ),
        "{told}"
    );
    assert!(
        has(&told, "ok", "lie inside the domain of density: 10 of 10"),
        "{told}"
    );
    // An end of the domain belongs to it.
    setup.edit("max = 100", "max = 50");
    let (code, told) = check(&setup, &["--sample"]);
    assert!(
        code == Some(0)
            && has(
                &told,
                "ok",
                "lie inside the domain of density: 0 of 10, and 10 at its ends"
            ),
        "{told}"
    );
    setup.edit("max = 50", "max = 40");
    let (code, told) = check(&setup, &["--sample"]);
    assert!(
        code == Some(78)
            && has(
                &told,
                "fault",
                "lie inside the domain of density: 0 of 10: less than 50 %"
            ),
        "{told}"
    );
    assert!(
        told.contains("records outside are moved to its ends"),
        "{told}"
    );
    setup.edit(
        "max = 40, outside = \"clamp\"",
        "max = 40, outside = \"drop\"",
    );
    assert!(
        check(&setup, &["--sample"])
            .1
            .contains("records outside are dropped")
    );
}

#[test]
fn the_oldest_messages_are_tried_and_the_newest() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = of_records(&servers, "\"json\"", "rfc3339");
    let key = |key: &str| json("\"2025-01-01T00:00:30Z\"", key, 50.0);
    send(
        &setup,
        &[
            vec![key("old"); 30],
            vec![key("middle"); 30],
            vec![key("new"); 30],
        ]
        .concat(),
    );
    let (_, told) = check(&setup, &["--sample=20"]);
    let words = r#"have a listed key: 0 of 20; the commonest others: "new" in 10, "old" in 10"#;
    assert!(has(&told, "fault", words), "{told}");
    let (_, told) = check(&setup, &["--sample=100"]);
    assert!(
        told.contains("the oldest and the newest: 90 of 90") && told.contains("\"middle\" in 30"),
        "{told}"
    );
}

#[test]
fn a_tombstone_is_told_and_a_topic_of_tombstones_is_a_fault() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = of_records(&servers, "\"json\"", "rfc3339");
    send(
        &setup,
        &[vec![good(); 18], vec![None, Some(b"{".to_vec())]].concat(),
    );
    let (code, told) = check(&setup, &["--sample"]);
    let words = "18 of 20; the others are dropped: offset 18 of partition 0: it is empty; offset 19 of partition 0: ";
    assert!(code == Some(0) && has(&told, "ok", words), "{told}");
    assert!(has(&told, "ok", "lie in a window: 18 of 18"), "{told}");
    send(&setup, &vec![None; 10]);
    let (code, told) = check(&setup, &["--sample"]);
    assert!(
        code == Some(0) && has(&told, "warn", "18 of 30; the others are dropped"),
        "{told}"
    );
    send(&setup, &vec![None; 10]);
    let (code, told) = check(&setup, &["--sample"]);
    assert!(
        code == Some(78) && has(&told, "fault", "18 of 40; the others are dropped"),
        "{told}"
    );
}

#[test]
fn messages_from_before_the_brokers_stamped_them_are_told() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let mut setup = of_records(&servers, "\"json\"", "rfc3339");
    let of_producers = kafka::fresh_topic(
        &servers,
        "producers",
        1,
        &[("message.timestamp.type", "CreateTime")],
    );
    setup.edit(&setup.input, &of_producers);
    setup.input = of_producers;
    send(&setup, &vec![good(); 3]);
    let (_, told) = check(&setup, &["--sample"]);
    let words =
        "messages with a time that their producers set, up to offset 2 of partition 0 at least";
    assert!(has(&told, "warn", words), "{told}");
    // Where that is what is meant, nothing is said.
    setup.edit("clock_slack", "trust_producer_time = true\nclock_slack");
    let (code, told) = check(&setup, &["--sample"]);
    assert!(
        code == Some(0) && !told.contains("their producers set"),
        "{told}"
    );
}

#[test]
fn a_column_that_is_read_as_key_and_as_value_counts_once() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = of_records(&servers, "\"json\"", "rfc3339");
    setup.edit("column = \"value\"", "column = \"key\"");
    let without = Some(br#"{"time":"2025-01-01T00:00:30Z"}"#.to_vec());
    send(&setup, &[vec![good(); 2], vec![without; 8]].concat());
    let (code, told) = check(&setup, &["--sample"]);
    assert!(
        code == Some(78) && has(&told, "fault", "have \"key\": 0 of 10"),
        "{told}"
    );
}

#[test]
fn records_of_a_schema_that_is_not_pinned_are_told() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let field = |name: &str, kind: &str| format!(r#"{{"name":"{name}","type":"{kind}"}}"#);
    let fields = [
        field("time", "long"),
        field("key", "string"),
        field("value", "double"),
    ]
    .join(",");
    let schema = tempfile::NamedTempFile::new().expect("a file");
    fs::write(
        &schema,
        format!(r#"{{"type":"record","name":"ride","fields":[{fields}]}}"#),
    )
    .expect("written");
    let format = format!(
        "{{ avro = {{ schemas = [{{ id = 7, file = {:?} }}] }} }}",
        schema.path()
    );
    let setup = of_records(&servers, &format, "milliseconds");
    // 1735689630000 as a zigzag varint.
    let zigzag = |mut rest: u64| {
        let mut bytes = Vec::new();
        while rest >= 0x80 {
            bytes.push((rest % 0x80) as u8 | 0x80);
            rest /= 0x80;
        }
        bytes.push(rest as u8);
        bytes
    };
    let record = |id: u8| {
        let value = 50.0_f64.to_le_bytes();
        Some(
            [
                &[0, 0, 0, 0, id][..],
                &zigzag(2 * 1_735_689_630_000),
                &[2, b'a'],
                &value,
            ]
            .concat(),
        )
    };
    send(&setup, &[vec![record(6); 11], vec![record(7); 9]].concat());
    let (code, told) = check(&setup, &["--sample"]);
    let words = "9 of 20; the others are dropped: offset 0 of partition 0: no schema with id 6 is configured";
    assert!(code == Some(78) && has(&told, "fault", words), "{told}");
    assert!(
        has(&told, "ok", "lie inside the domain of density: 9 of 9"),
        "{told}"
    );
}

#[test]
fn files_are_tried_with_the_same_words() {
    let files = Files::new();
    let file = files.pipeline("one", "out");
    let (code, told) = check_files(&file, &["--sample"]);
    assert_eq!(code, Some(0), "{told}");
    for words in [
        "can be read: 2 of 2",
        "lie in a window: 2 of 2",
        "have a listed key: 2 of 2",
        "of density: 2 of 2",
    ] {
        assert!(has(&told, "ok", words), "{words}: {told}");
    }
    let rows = |row: &str, count: usize| format!("{row}\n").repeat(count);
    let text = [
        "time,key,value\n",
        &rows("2025-01-01T00:00:30Z,a,5", 8),
        &rows("2026-01-01T00:00:30Z,b,500", 11),
        "x\n",
    ];
    fs::write(files.path("records.csv"), text.concat()).expect("written");
    let (code, told) = check_files(&file, &["--sample"]);
    assert_eq!(code, Some(78), "{told}");
    assert!(
        has(
            &told,
            "ok",
            "can be read: 19 of 20; the others are dropped: line 21 of records.csv: "
        ),
        "{told}"
    );
    for words in [
        "lie in a window: 8 of 20",
        "have a listed key: 8 of 20; the commonest others: \"b\" in 11",
        "of density: 8 of 19",
    ] {
        assert!(has(&told, "fault", words), "{words}: {told}");
    }
    assert!(
        told.contains("`other` there counts all others under one name"),
        "{told}"
    );
    // Nobody asked.
    assert_eq!(check_files(&file, &[]).0, Some(0));
    let (code, told) = check_files(&file, &["--sample", "--least-share=40"]);
    assert!(
        code == Some(0) && has(&told, "warn", "of density: 8 of 19: less than 90 %"),
        "{told}"
    );
    // What lies beside the files is named.
    let folder = files.path("records");
    fs::create_dir(&folder).expect("a folder");
    fs::rename(files.path("records.csv"), folder.join("a.csv")).expect("moved");
    fs::write(folder.join(".b.csv"), "time").expect("written");
    let text = fs::read_to_string(&file)
        .expect("the configuration")
        .replace("records.csv", "records");
    fs::write(&file, text).expect("written");
    let (_, told) = check_files(&file, &["--sample", "--least-share=40"]);
    assert!(
        has(&told, "ok", "passed over in the folder: .b.csv") && has(&told, "warn", "8 of 20"),
        "{told}"
    );
    let text = fs::read_to_string(&file)
        .expect("the configuration")
        .replace(", type = \"text\"", "");
    fs::write(&file, text).expect("written");
    let (_, told) = check_files(&file, &[]);
    assert!(
        has(&told, "fault", "the type of the key is not declared")
            && told.contains("correct `files`, or the names or types of the columns"),
        "{told}"
    );
}

const USERS: &str = "unit = { user = { column = \"user\", type = \"text\", per = \"1m\", max_records_per_window = 3 } }";

#[test]
fn what_a_cap_drops_of_files_is_told() {
    let files = Files::new();
    let file = files.pipeline("one", "out");
    let text = fs::read_to_string(&file)
        .expect("the configuration")
        .replace("unit = \"record\"", USERS);
    fs::write(&file, &text).expect("written");
    let rows = |row: &str, count: usize| format!("{row}\n").repeat(count);
    // A user's records in another window have a cap of their own; without a listed key, or a user, they have none.
    let used = [
        "time,key,value,user\n",
        &rows("2025-01-01T00:00:30Z,a,5,busy", 7),
        &rows("2025-01-01T00:01:30Z,a,5,busy", 2),
        &rows("2025-01-01T00:01:30Z,a,5,rare", 1),
        &rows("2025-01-01T00:01:30Z,b,5,busy", 1),
        &rows("2025-01-01T00:01:30Z,a,5,", 1),
    ]
    .concat();
    fs::write(files.path("records.csv"), &used).expect("written");
    let (code, told) = check_files(&file, &["--sample"]);
    let words = "count under the cap of 3 for a user in a window: 6 of 10 (60 %)";
    assert!(
        code == Some(0) && has(&told, "ok", words) && !told.contains("may have more records"),
        "{told}"
    );
    fs::write(
        files.path("records.csv"),
        used + &rows("2025-01-01T00:00:30Z,a,5,busiest", 90),
    )
    .expect("written");
    let (code, told) = check_files(&file, &["--sample"]);
    let words = "count under the cap of 3 for a user in a window: 9 of 100 (9 %): the cap drops more than half";
    assert!(code == Some(0) && has(&told, "warn", words), "{told}");
    let words = "max_records_per_window = 80 drops 10 % at most, at the same sizes with 26.7 times the noise";
    assert!(told.contains(words), "{told}");
    fs::write(
        &file,
        text.replace("max_records_per_window = 3", "max_records_per_window = 80"),
    )
    .expect("written");
    let (_, told) = check_files(&file, &["--sample"]);
    assert!(
        has(
            &told,
            "ok",
            "count under the cap of 80 for a user in a window: 90 of 100 (90 %)"
        ),
        "{told}"
    );
}

#[test]
fn of_a_topic_a_cap_may_drop_more_than_of_its_sample() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = of_records(&servers, "\"json\"", "rfc3339");
    setup.edit("unit = \"record\"", USERS);
    let of_user = br#"{"time":"2025-01-01T00:00:30Z","key":"a","value":5,"user":"busy"}"#.to_vec();
    send(&setup, &vec![Some(of_user); 4]);
    let (_, told) = check(&setup, &["--sample"]);
    let words = "count under the cap of 3 for a user in a window: 3 of 4 (75 %); a user may have more records";
    assert!(has(&told, "ok", words), "{told}");
}
