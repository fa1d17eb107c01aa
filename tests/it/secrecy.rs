//! Nothing that follows from records is there for others: not in the files of a ledger, and not in what is said at the default level.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use crate::harness::kafka;
use crate::harness::setup::{Setup, counted_in};

/// Runs the program under a umask that forbids nothing.
fn unmasked(setup: &Setup, arguments: &str) -> Output {
    let script = format!("umask 000; exec \"$0\" {arguments}");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_bernstream")])
        .arg(setup.configuration());
    let output = command
        .env("BERNSTREAM_LOG", "info")
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The folder of a ledger and what is in it, each with what its mode allows.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
    let files = fs::read_dir(folder)
        .expect("a folder")
        .map(|file| file.expect("a file").path());
    let name = |path: &Path| {
        path.file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    let mut found: Vec<_> = files.map(|path| (name(&path), mode(&path))).collect();
    found.push((".".to_owned(), mode(folder)));
    found.sort();
    found
}

#[test]
fn nobody_else_can_read_a_ledger_whatever_the_umask() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 3);
    let until = bernstream_synopsis::clock::Timestamp::now().plus(Duration::ZERO);
    unmasked(
        &setup,
        &format!(
            "ledger init \"$1\" --from {} --backfill-until {until}",
            setup.origin
        ),
    );
    unmasked(&setup, "run \"$1\"");
    unmasked(&setup, "ledger archive \"$1\"");
    let found = modes(&setup.ledger());
    for name in [
        "ledger.sqlite",
        "lock",
        "instance",
        "witness-place",
        "archive.lock",
    ] {
        assert!(
            found.iter().any(|(file, _)| file == name),
            "{name}: {found:?}"
        );
    }
    for (name, mode) in &found {
        let wanted = if name == "." { 0o700 } else { 0o600 };
        assert_eq!(*mode, wanted, "{name}: {mode:o}");
    }
    // One that an older version has made is told, and closed at the next start.
    let file = setup.ledger().join("ledger.sqlite");
    fs::set_permissions(setup.ledger(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let check = || {
        let output = setup
            .bernstream(&["check"])
            .arg(setup.configuration())
            .output()
            .expect("it runs");
        let told = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&told).contains("every user of this machine can read the ledger in")
    };
    assert!(check());
    unmasked(&setup, "run \"$1\"");
    assert!(!check());
    assert!(
        modes(&setup.ledger())
            .iter()
            .all(|(_, mode)| mode & 0o007 == 0),
        "{:?}",
        modes(&setup.ledger())
    );
}

/// The log of every worker that a test starts is read when the test ends: for these.
#[test]
fn lines_that_count_records_are_found() {
    for line in [
        "the message at offset 178 of partition 0",
        "offsets 3 to 7 were deleted",
        "add { partition = 0, offset = 1 } to 'skip'",
        "it was read up to 6",
        "17 records turned up",
        "broken messages were skipped: 2; and 5 messages",
    ] {
        assert_eq!(counted_in(line), [line]);
    }
    for line in [
        "a message of partition 0 of topic 't9' is broken",
        "row 5 of the ledger",
        "window 2025-01-01T00:00:00Z",
    ] {
        assert!(counted_in(line).is_empty(), "{line}");
    }
}
