//! Users, hours and files: what the tests of budgets run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream_config::WorkerSettings;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::description::Description;

pub const HOUR: i64 = 3_600_000_000;
/// 2026-01-01T00:00:00Z.
pub const ORIGIN: i64 = 1_767_225_600_000_000;

/// Two days of hourly windows from a file to a folder.
pub fn configuration(per: &str, privacy: &str, releases: &[&str]) -> String {
    let mut text = format!(
        "pipeline = \"responses\"\n\
         [input]\ntime = \"received_at\"\nfiles = {{ path = \"in.arrows\" }}\n\
         [windows]\norigin = \"2026-01-01T00:00:00Z\"\nlength = \"1h\"\nend = \"2026-01-03T00:00:00Z\"\n\
         [privacy]\nunit = {{ user = {{ column = \"user_id\", per = \"{per}\", max_records_per_window = 2 }} }}\n\
         adjacency = \"add_remove\"\n{privacy}\n\
         [output]\nfiles = {{ path = \"out\" }}\n[ledger]\npath = \"ledger\"\n"
    );
    for (at, release) in releases.iter().enumerate() {
        text += &format!(
            "[[release]]\nname = \"r{at}\"\ndegree = 4\norder = 2\n{release}\n\
             domain = [{{ column = \"milliseconds\", min = 0, max = 2000, outside = \"clamp\" }}]\n\
             [release.density]\nbandwidths = [500]\n"
        );
    }
    text
}

pub fn records(path: &Path) {
    let times: Vec<i64> = (0..480).map(|i| ORIGIN + i * HOUR / 10).collect();
    let users: Vec<String> = (0..480).map(|i| format!("u{}", i % 7)).collect();
    let columns: [(&str, ArrayRef); 3] = [
        (
            "received_at",
            Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")),
        ),
        ("user_id", Arc::new(StringArray::from(users))),
        (
            "milliseconds",
            Arc::new(Float64Array::from(vec![300.0; 480])),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let mut writer = StreamWriter::try_new(File::create(path).expect("a file"), &batch.schema())
        .expect("a stream");
    writer.write(&batch).expect("it is written");
    writer.finish().expect("it is written");
}

pub fn command(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("bernstream runs")
}

/// Runs it; it succeeds.
pub fn bernstream(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = command(folder, arguments);
    let [out, err] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{arguments:?}: {out}{err}");
    (out, err)
}

/// What is published of each release, by the hour.
pub type Published = BTreeMap<String, BTreeMap<i64, Description>>;

/// Runs it, twice: a restart changes nothing.
pub fn run(text: &str) -> (Published, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("c.toml"), text).expect("the configuration");
    records(&folder.path().join("in.arrows"));
    bernstream(folder.path(), &["run", "c.toml"]);
    let first = read(folder.path());
    bernstream(folder.path(), &["run", "c.toml"]);
    assert_eq!(read(folder.path()), first);
    bernstream(folder.path(), &["ledger", "verify", "c.toml"]);
    bernstream(
        folder.path(),
        &["ledger", "verify", "--output-only", "c.toml"],
    );
    bernstream(folder.path(), &["check", "--offline", "c.toml"]);
    (first, folder)
}

pub fn read(folder: &Path) -> Published {
    let mut published = Published::new();
    for release in fs::read_dir(folder.join("out/responses")).expect("the output") {
        for file in fs::read_dir(release.expect("a folder").path()).expect("its files") {
            let synopsis =
                Synopsis::decode_message(&fs::read(file.expect("a file").path()).expect("bytes"))
                    .expect("a synopsis");
            let about = synopsis.description().clone();
            let hour = (about.window.start.micros() - ORIGIN) / HOUR;
            published
                .entry(about.release.clone())
                .or_default()
                .insert(hour, about);
        }
    }
    published
}

pub fn hours(published: &Published, release: &str) -> Vec<i64> {
    published
        .get(release)
        .map(|hours| hours.keys().copied().collect())
        .unwrap_or_default()
}

/// The faults of a configuration, one line each, without their place.
pub fn faults(text: &str) -> String {
    WorkerSettings::parse(text, "f")
        .map(|_| String::new())
        .unwrap_or_else(|faults| faults.to_string())
}
