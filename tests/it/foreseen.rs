//! `check` refuses what `run` would refuse, in the same words and with the same exit code; and what it accepts, `run` begins with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

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
    assert!(code == 74 && error.contains("the witness or the output was written before"), "{code} {error}");
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
    assert!(code == 74 && error.contains("belongs to the witness"), "{code} {error}");
}

#[test]
fn check_makes_no_witness() {
    let files = Files::new();
    let file = files.pipeline("one", "out");
    assert_eq!(ended(command(&["check"], &file)).0, 0);
    assert!(!files.path("one.witness").exists() && !files.path("out").exists() && !files.path("one.ledger").exists());
}

#[test]
fn a_damaged_ledger_is_told_before_the_worker_starts() {
    let files = Files::new();
    let file = files.has_run("one", "out");
    let ledger = rusqlite::Connection::open(files.path("one.ledger/ledger.sqlite")).expect("a ledger");
    ledger.execute_batch("DELETE FROM rows WHERE sequence = 1").expect("it is changed");
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
    assert!(code == 74 && error.contains(expected) && error.contains("[output.files]"), "{code} {error}");
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

#[test]
fn a_topic_of_another_pipeline_is_refused() {
    let Some(servers) = kafka::broker() else { return };
    let [one, two] = [(); 2].map(|()| Setup::new(&servers, 2));
    one.send(&one.rows(100, 1));
    one.begin(Duration::from_millis(300));
    assert!(one.start().wait().expect("it ends").success(), "{}", one.read_log());
    two.edit("pipeline = \"setup\"", "pipeline = \"other\"");
    two.edit(&two.output, &one.output);
    let made = two.ledger_command(&["init", "--from", &two.origin.to_string()]);
    let told = String::from_utf8_lossy(&made.stderr).into_owned();
    let expected = "the output holds synopses of the pipeline \"setup\"";
    assert!(made.status.code() == Some(74) && told.contains(expected), "{told}");
    assert!(!two.ledger().exists());
    // Both began before either had published.
    two.edit(&one.output, &two.output);
    two.begin(Duration::from_millis(1));
    two.edit(&format!("topic = \"{}\"", two.output), &format!("topic = \"{}\"", one.output));
    let (code, error) = refused_by_both(&two.configuration(), false);
    assert!(code == 74 && error.contains(expected) && error.contains("[output.kafka]"), "{code} {error}");
}

#[test]
fn what_ledger_init_creates_is_the_next_step_and_a_topic_that_is_missing_has_one_code() {
    let Some(servers) = kafka::broker() else { return };
    let setup = Setup::of_seconds(&servers, 0);
    let file = setup.configuration();
    let output = command(&["check"], &file).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains(&format!("  next   topic {}", setup.output)) && !told.contains("  fault  "), "{told}");
    let next = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && next.contains("next: `bernstream ledger init` creates what is missing"),
        "{next}"
    );
    assert_eq!(ended(command(&["run"], &file)).0, 78);
    let made = setup.ledger_command(&["init"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(ended(command(&["check"], &file)), (0, String::new()));
    // Of a ledger that exists nothing is to come: its witness cannot be made anew, and its output was there.
    for (topic, code) in [(&setup.input, 78), (&setup.output, 78), (&setup.witness, 74)] {
        setup.edit(&format!("\"{topic}\""), "\"no-such-topic\"");
        assert_eq!(ended(command(&["run"], &file)).0, code, "{topic}");
        let (found, error) = ended(command(&["check"], &file));
        assert_eq!(found, code, "{topic}: {error}");
        setup.edit("\"no-such-topic\"", &format!("\"{topic}\""));
    }
}

#[test]
fn what_a_log_cannot_rebuild_is_told_before_the_worker_starts() {
    let Some(servers) = kafka::broker() else { return };
    let setup = Setup::of_seconds(&servers, 0);
    add_log(&setup, 1);
    let made = setup.ledger_command(&["init"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
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
    assert!(asked.contains("`bernstream run` builds it from its log"), "{asked}");
    let asked = told(&["--replace"]);
    assert!(asked.contains("is not lost") && asked.contains("add --abandon") && !setup.ledger().exists(), "{asked}");
    let key = setup.folder.path().join("key");
    fs::write(&key, [7; 32]).expect("another key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("it is a secret");
    let (code, error) = refused_by_both(&file, false);
    assert!(code == 74 && error.contains("this key (ledger.key_file) does not open it"), "{code} {error}");
    // With this key nothing can be built, so that it may be replaced.
    assert!(replaced(&["--replace"]).status.success());
}
