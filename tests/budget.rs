//! The budget of a user's day ends before the day does: what is paid for is published, the rest is not, and both are said.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::ipc::writer::StreamWriter;
use bernstream::synopsis::Synopsis;

const HOUR: i64 = 3_600_000_000;
/// 2026-01-01T00:00:00Z.
const ORIGIN: i64 = 1_767_225_600_000_000;

/// Two days of hourly windows at 0.2 of 0.9 a day, from a file to a folder.
fn configuration() -> String {
    let users = fs::read_to_string("config/users.toml").expect("the example");
    let from = |text: &str, start: &str, end: &str, with: &str| {
        let (before, rest) = text.split_once(start).expect("its start");
        let (_, after) = rest.split_once(end).expect("its end");
        format!("{before}{with}{end}{after}")
    };
    let text = from(&users, "[input.kafka]", "[windows]", "files = { path = \"in.arrows\" }\n\n");
    let text = from(&text, "grace =", "# At most", "end = \"2026-01-03T00:00:00Z\"\n\n[privacy]\n").replacen(
        "[privacy]\n# At most",
        "# At most",
        1,
    );
    let text = from(&text, "[output.kafka]", "[ledger]", "[output]\nfiles = { path = \"out\" }\n\n");
    text.replace("epsilon = 1.0", "epsilon = 0.9").replace("epsilon = 0.04", "epsilon = 0.2")
}

fn records(path: &Path) {
    let times: Vec<i64> = (0..480).map(|i| ORIGIN + i * HOUR / 10).collect();
    let users: Vec<String> = (0..480).map(|i| format!("u{}", i % 7)).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("received_at", Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"))),
        ("user_id", Arc::new(StringArray::from(users))),
        ("milliseconds", Arc::new(Float64Array::from(vec![300.0; 480]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let mut writer = StreamWriter::try_new(File::create(path).expect("a file"), &batch.schema()).expect("a stream");
    writer.write(&batch).expect("it is written");
    writer.finish().expect("it is written");
}

fn bernstream(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("bernstream runs");
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{arguments:?}: {out}{err}");
    (out, err)
}

#[test]
fn a_day_is_published_until_its_budget_ends_and_the_next_one_begins_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("c.toml"), configuration()).expect("the configuration");
    records(&folder.join("in.arrows"));
    let (_, log) = bernstream(folder, &["run", "c.toml"]);
    assert_eq!(log.matches("the budget is spent").count(), 40, "{log}");

    // 0.2, 0.4, 0.6 and 0.8 of 0.9, on both days; a fifth window does not fit.
    let published = folder.join("out/responses/response-time/_");
    let published = if published.exists() { published } else { folder.join("out/responses/response-time") };
    let mut files: Vec<_> = fs::read_dir(published).expect("the output").map(|f| f.expect("a file").path()).collect();
    files.sort();
    let spent: Vec<(i64, String)> = files
        .iter()
        .map(|path| {
            let synopsis = Synopsis::open(&fs::read(path).expect("a synopsis")).expect("a synopsis");
            let about = synopsis.description();
            assert_eq!(about.privacy.price.to_string(), "0.2");
            assert_eq!(about.privacy.blocks.len(), 1);
            ((about.window.start.micros() - ORIGIN) / HOUR, about.privacy.blocks[0].spent.to_string())
        })
        .collect();
    let expected = [(0, "0.2"), (1, "0.4"), (2, "0.6"), (3, "0.8"), (24, "0.2"), (25, "0.4"), (26, "0.6"), (27, "0.8")];
    assert_eq!(spent, expected.map(|(hour, spent)| (hour, spent.to_owned())));

    let (shown, _) = bernstream(folder, &["ledger", "show", "c.toml"]);
    for said in ["8 released", "40 withheld", "0.8 of 0.9"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    bernstream(folder, &["ledger", "verify", "c.toml"]);
}
