//! `check` refuses what `run` would refuse, in the same words and with the same exit code; and what it accepts, `run` begins with.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampSecondArray};
use arrow_ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;

use crate::harness::files::{Files, command, ended};
use crate::harness::kafka;
use crate::harness::setup::Setup;
use crate::ledger_log::add_log;

/// What both commands say of this configuration, which both refuse.
#[track_caller]
pub fn refused_by_both(configuration: &Path, offline: bool) -> (i32, String) {
    let run = ended(command(&["run"], configuration));
    assert_ne!(run.0, 0);
    assert_eq!(ended(command(&["check"], configuration)), run);
    if offline {
        assert_eq!(ended(command(&["check", "--offline"], configuration)), run);
    }
    run
}

fn replace(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("a configuration");
    assert!(text.contains(from), "{from}");
    fs::write(file, text.replace(from, to)).expect("written");
}

#[test]
fn a_ledger_that_is_gone_is_told_before_the_worker_starts() {
    let files = Files::new();
    let file = files.has_run("one", "out");
    fs::remove_dir_all(files.path("one.ledger")).expect("it was there");
    let (code, error) = refused_by_both(&file, true);
    assert!(
        code == 74 && error.contains("the witness or the output was written before"),
        "{code} {error}"
    );
}

#[test]
fn a_witness_that_is_gone_or_anothers_is_told_before_the_worker_starts() {
    let files = Files::new();
    let (one, _) = (files.has_run("one", "out"), files.has_run("two", "other"));
    let own = files.path("one.witness");
    fs::rename(&own, files.path("kept")).expect("it was there");
    let (code, error) = refused_by_both(&one, true);
    assert!(code == 74 && error.contains("is missing"), "{code} {error}");
    fs::rename(files.path("kept"), &own).expect("it was there");
    replace(&one, "one.witness", "two.witness");
    let (code, error) = refused_by_both(&one, true);
    assert!(
        code == 74 && error.contains("belongs to the witness"),
        "{code} {error}"
    );
}

#[test]
fn check_makes_no_witness() {
    let files = Files::new();
    let file = files.pipeline("one", "out");
    assert_eq!(ended(command(&["check"], &file)).0, 0);
    assert!(
        !files.path("one.witness").exists()
            && !files.path("out").exists()
            && !files.path("one.ledger").exists()
    );
}

#[test]
fn a_damaged_ledger_is_told_before_the_worker_starts() {
    let files = Files::new();
    let file = files.has_run("one", "out");
    let ledger =
        rusqlite::Connection::open(files.path("one.ledger/ledger.sqlite")).expect("a ledger");
    ledger
        .execute_batch("DELETE FROM rows WHERE sequence = 1")
        .expect("it is changed");
    drop(ledger);
    let (code, error) = refused_by_both(&file, true);
    assert!(code == 74 && error.contains("damaged"), "{code} {error}");
}

#[test]
fn a_folder_of_another_pipeline_is_refused() {
    let files = Files::new();
    files.has_run("one", "out");
    let two = files.pipeline("two", "out");
    let (code, error) = refused_by_both(&two, true);
    let expected = "the output holds synopses of the pipeline \"one\"";
    assert!(
        code == 74 && error.contains(expected) && error.contains("[output.files]"),
        "{code} {error}"
    );
    assert!(!files.path("two.ledger/ledger.sqlite").exists());
    let (code, error) = ended(command(&["ledger", "init"], &two));
    assert!(code == 74 && error.contains(expected), "{code} {error}");
    // Both began before either had published.
    replace(&two, "/out\"", "/elsewhere\"");
    assert_eq!(ended(command(&["run"], &two)).0, 0);
    replace(&two, "/elsewhere\"", "/out\"");
    let (code, error) = refused_by_both(&two, true);
    assert!(code == 74 && error.contains(expected), "{code} {error}");
}

fn records() -> RecordBatch {
    let time: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1_735_689_630]));
    let key: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let value: ArrayRef = Arc::new(Float64Array::from(vec![5.0]));
    RecordBatch::try_from_iter([("time", time), ("key", key), ("value", value)]).expect("records")
}

#[test]
fn pages_that_nobody_can_read_are_told_before_there_is_a_ledger() {
    let files = Files::new();
    let file = files.pipeline("one", "out");
    replace(&file, "records.csv", "records.parquet");
    let parquet = files.path("records.parquet");
    let mut writer = ArrowWriter::try_new(
        File::create(&parquet).expect("made"),
        records().schema(),
        None,
    )
    .expect("a writer");
    writer.write(&records()).expect("written");
    writer.close().expect("closed");
    let mut bytes = fs::read(&parquet).expect("a file");
    // The first page begins behind the four bytes that every file has; what describes the columns is at the end.
    bytes
        .iter_mut()
        .skip(4)
        .take(16)
        .for_each(|byte| *byte = 0xff);
    fs::write(&parquet, bytes).expect("written");
    assert_eq!(ended(command(&["check"], &file)).0, 78);
    let (code, error) = ended(command(&["run"], &file));
    assert!(
        code == 78 && error.contains("records.parquet"),
        "{code} {error}"
    );
    assert!(!files.path("one.ledger/ledger.sqlite").exists());
}

#[test]
fn a_fault_of_the_data_that_shows_late_is_no_service_that_does_not_answer() {
    let files = Files::new();
    let file = files.pipeline("one", "out");
    replace(&file, "records.csv", "records.arrows");
    let mut writer = StreamWriter::try_new(Vec::new(), &records().schema()).expect("a writer");
    writer.write(&records()).expect("written");
    writer.write(&records()).expect("written");
    let mut bytes = writer.into_inner().expect("the stream");
    bytes.truncate(bytes.len() - 20);
    fs::write(files.path("records.arrows"), bytes).expect("written");
    let (code, error) = ended(command(&["run"], &file));
    assert!(
        code == 78 && error.contains("records.arrows: it ends within an Arrow message"),
        "{code} {error}"
    );
}

#[test]
fn a_key_that_is_too_long_for_a_name_of_a_file_is_published() {
    let files = Files::new();
    let file = files.pipeline("one", "out");
    let key = "東京都千代田区丸の内一丁目九番一号東京駅丸の内北口改札前案内";
    replace(&file, "\"a\"", &format!("\"a\", \"{key}\""));
    assert_eq!(ended(command(&["run"], &file)).0, 0);
    assert_eq!(
        ended(command(&["ledger", "verify"], &file)),
        (0, String::new())
    );
    let published = fs::read_dir(files.path("out/one/density"))
        .expect("a folder")
        .count();
    assert_eq!(published, 2);
}

#[test]
fn windows_of_files_that_end_later_are_told_and_waited_for() {
    let files = Files::new();
    let file = files.pipeline("one", "out");
    fs::write(
        files.path("records.csv"),
        "time,key,value\n2568-01-01T00:00:30Z,a,5\n",
    )
    .expect("written");
    replace(&file, "2025-", "2568-");
    let told = "2 of 2 windows end in the future: each is published when it has ended, and the worker is waiting until 2568-01-01T00:02:00Z";
    let checked = command(&["check"], &file).output().expect("it runs");
    assert!(checked.status.success());
    let checked = String::from_utf8_lossy(&checked.stderr)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(checked.contains(told), "{checked}");
    let mut worker = command(&["run"], &file)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut log = BufReader::new(worker.stderr.take().expect("a log"))
        .lines()
        .map_while(Result::ok);
    let is_told = log.any(|line| line.contains(told));
    worker.kill().expect("it waits");
    worker.wait().expect("it has ended");
    assert!(is_told);
}

#[test]
fn a_topic_of_another_pipeline_is_refused() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let [one, two] = [(); 2].map(|()| Setup::new(&servers, 2));
    one.send(&one.rows(100, 1));
    one.begin(Duration::from_millis(300));
    assert!(
        one.start().wait().expect("it ends").success(),
        "{}",
        one.read_log()
    );
    two.edit("pipeline = \"setup\"", "pipeline = \"other\"");
    two.edit(&two.output, &one.output);
    let made = two.ledger_command(&["init", "--from", &two.origin.to_string()]);
    let told = String::from_utf8_lossy(&made.stderr).into_owned();
    let expected = "the output holds synopses of the pipeline \"setup\"";
    assert!(
        made.status.code() == Some(74) && told.contains(expected),
        "{told}"
    );
    assert!(!two.ledger().exists());
    // Both began before either had published.
    two.edit(&one.output, &two.output);
    two.begin(Duration::from_millis(1));
    two.edit(
        &format!("topic = \"{}\"", two.output),
        &format!("topic = \"{}\"", one.output),
    );
    let (code, error) = refused_by_both(&two.configuration(), false);
    assert!(
        code == 74 && error.contains(expected) && error.contains("[output.kafka]"),
        "{code} {error}"
    );
}

#[test]
fn what_ledger_init_creates_is_the_next_step_and_a_topic_that_is_missing_has_one_code() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::of_seconds(&servers, 0);
    let file = setup.configuration();
    let output = command(&["check"], &file).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        told.contains(&format!("  next   topic {}", setup.output)) && !told.contains("  fault  "),
        "{told}"
    );
    let next = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success()
            && next.contains("next: `bernstream ledger init` creates what is missing"),
        "{next}"
    );
    assert_eq!(ended(command(&["run"], &file)).0, 78);
    let made = setup.ledger_command(&["init"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    assert_eq!(ended(command(&["check"], &file)), (0, String::new()));
    // Of a ledger that exists nothing is to come: its witness cannot be made anew, and its output was there.
    for (topic, code) in [
        (&setup.input, 78),
        (&setup.output, 78),
        (&setup.witness, 74),
    ] {
        setup.edit(&format!("\"{topic}\""), "\"no-such-topic\"");
        assert_eq!(ended(command(&["run"], &file)).0, code, "{topic}");
        let (found, error) = ended(command(&["check"], &file));
        assert_eq!(found, code, "{topic}: {error}");
        setup.edit("\"no-such-topic\"", &format!("\"{topic}\""));
    }
}

#[test]
fn what_a_log_cannot_rebuild_is_told_before_the_worker_starts() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::of_seconds(&servers, 0);
    add_log(&setup, 1);
    let made = setup.ledger_command(&["init"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let file = setup.configuration();
    fs::remove_dir_all(setup.ledger()).expect("it was there");
    // The log has it all.
    assert_eq!(ended(command(&["check"], &file)), (0, String::new()));
    assert!(!setup.ledger().exists());
    // Nobody ends by mistake what is not lost.
    let replaced = |more: &[&str]| setup.ledger_command(&[&["init"], more].concat());
    let told = |arguments: &[&str]| {
        let refused = replaced(arguments);
        assert_eq!(refused.status.code(), Some(74));
        String::from_utf8_lossy(&refused.stderr).into_owned()
    };
    let asked = told(&[]);
    assert!(
        asked.contains("`bernstream run` builds it from its log"),
        "{asked}"
    );
    let asked = told(&["--replace"]);
    assert!(
        asked.contains("is not lost")
            && asked.contains("add --abandon")
            && !setup.ledger().exists(),
        "{asked}"
    );
    let key = setup.folder.path().join("key");
    fs::write(&key, [7; 32]).expect("another key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("it is a secret");
    let (code, error) = refused_by_both(&file, false);
    assert!(
        code == 74 && error.contains("this key (ledger.key_file) does not open it"),
        "{code} {error}"
    );
    // With this key nothing can be built, so that it may be replaced.
    assert!(replaced(&["--replace"]).status.success());
}
