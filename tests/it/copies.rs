//! A folder of synopses, its ledger and its witness, copied: no window leaves in two versions, or whoever runs them was warned.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The flights of some days, read from where they are.
fn configuration(days: u32, witness: Option<&Path>) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let flights = root.join("tests/data/flights.parquet");
    let text = fs::read_to_string(root.join("config/files.toml")).expect("the example");
    let witness = witness.map_or(String::new(), |file| {
        format!(", witness = \"{}\"", file.display())
    });
    text.replace("2014-01-01T05", &format!("2013-01-0{}T05", days + 1))
        .replace(
            "path = \"flights\"",
            &format!("path = \"{}\"", flights.display()),
        )
        .replace("path = \"ledger/files\"", "path = \"ledger\"")
        .replace(
            "{ path = \"out/files\" }",
            &format!("{{ path = \"out\"{witness} }}"),
        )
}

fn run(folder: &Path, days: u32, witness: Option<&Path>) -> Output {
    fs::write(folder.join("c.toml"), configuration(days, witness)).expect("it is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
    command
        .args(["run", "c.toml"])
        .current_dir(folder)
        .output()
        .expect("it runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn copied(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    let from = folder.join(".");
    let done = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(copy.path())
        .status()
        .expect("cp");
    assert!(done.success());
    copy
}

/// What every synopsis below the folders is, by its path there.
fn published<'f>(folders: impl Iterator<Item = &'f Path>) -> BTreeMap<PathBuf, BTreeSet<Vec<u8>>> {
    let mut found: BTreeMap<PathBuf, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for folder in folders {
        let mut open = vec![folder.join("out")];
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(next).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    open.push(path);
                } else if path
                    .extension()
                    .is_some_and(|extension| extension == "arrows")
                {
                    let name = path.strip_prefix(folder).expect("below it").to_owned();
                    found
                        .entry(name)
                        .or_default()
                        .insert(fs::read(&path).expect("a synopsis"));
                }
            }
        }
    }
    found
}

#[test]
fn of_three_copies_of_a_folder_with_its_ledger_one_publishes() {
    let here = tempfile::tempdir().expect("a folder");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let witness = elsewhere.path().join("flights.witness");
    let begun = run(here.path(), 1, Some(&witness));
    assert!(
        begun.status.success() && !said(&begun).contains("would not be noticed"),
        "{}",
        said(&begun)
    );
    let copies = [(); 3].map(|()| copied(here.path()));
    let ended: Vec<Output> = copies
        .iter()
        .map(|copy| run(copy.path(), 3, Some(&witness)))
        .collect();
    let published = published(copies.iter().map(TempDir::path));
    assert_eq!(published.len(), 9, "three days of three airports");
    assert!(
        published.values().all(|versions| versions.len() == 1),
        "a window was published in two versions"
    );
    assert!(ended[0].status.success(), "{}", said(&ended[0]));
    for other in &ended[1..] {
        assert_eq!(other.status.code(), Some(74));
        assert!(
            said(other).contains("this is a copy or an older state"),
            "{}",
            said(other)
        );
    }
}

#[test]
fn a_copy_of_a_witness_is_another_witness_and_so_is_what_a_backup_brings_back() {
    let here = tempfile::tempdir().expect("a folder");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let witness = elsewhere.path().join("flights.witness");
    assert!(run(here.path(), 1, Some(&witness)).status.success());
    let copy = elsewhere.path().join("copy.witness");
    fs::copy(&witness, &copy).expect("a copy");
    let refused = |output: Output| {
        assert_eq!(output.status.code(), Some(74));
        assert!(
            said(&output).contains("belongs to the witness"),
            "{}",
            said(&output)
        );
    };
    refused(run(copied(here.path()).path(), 2, Some(&copy)));
    // The file itself goes on, also where it was moved to on its disk: that is the same file.
    let moved = elsewhere.path().join("moved.witness");
    fs::rename(&witness, &moved).expect("it is moved");
    let done = run(here.path(), 2, Some(&moved));
    assert!(done.status.success(), "{}", said(&done));
    let newest = fs::read(&moved).expect("all of it");
    fs::remove_file(&moved).expect("it is lost");
    fs::write(&moved, newest).expect("and brought back");
    refused(run(here.path(), 3, Some(&moved)));
}

/// The plainest restore there is, `cp backup original`, keeps the file and all that is known of it but its content.
#[test]
fn a_backup_that_is_written_into_the_witness_that_is_there_is_noticed() {
    let here = tempfile::tempdir().expect("a folder");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let witness = elsewhere.path().join("flights.witness");
    let kept = |seal: bool| -> Vec<(PathBuf, Vec<u8>)> {
        let files = fs::read_dir(elsewhere.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path());
        let files = files.filter(|file| seal || *file == witness);
        files
            .map(|file| (file.clone(), fs::read(&file).expect("all of it")))
            .collect()
    };
    assert!(run(here.path(), 1, Some(&witness)).status.success());
    let backup = copied(here.path());
    let alone = kept(false);
    let with_seal = kept(true);
    assert!(with_seal.len() > alone.len(), "a seal");
    assert!(run(here.path(), 2, Some(&witness)).status.success());
    for brought_back in [alone, with_seal] {
        brought_back
            .into_iter()
            .for_each(|(file, content)| fs::write(file, content).expect("it is written"));
        let output = run(copied(backup.path()).path(), 3, Some(&witness));
        assert_eq!(output.status.code(), Some(74), "{}", said(&output));
        assert!(said(&output).contains("brought back"), "{}", said(&output));
    }
}

/// Ledgers from before a witness could be elsewhere keep it where it is; a copy with all three goes unnoticed, so their owner is told.
#[test]
fn a_witness_in_the_output_is_kept_and_its_owner_is_warned() {
    let here = tempfile::tempdir().expect("a folder");
    for days in [1, 2] {
        let output = run(here.path(), days, None);
        assert!(output.status.success(), "{}", said(&output));
        assert!(
            said(&output).contains("a copy of this output and its ledger would not be noticed"),
            "{}",
            said(&output)
        );
    }
    assert!(here.path().join("out/witness").is_file());
    let check = Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(["check", "c.toml"])
        .current_dir(here.path())
        .output();
    let told = String::from_utf8_lossy(&check.expect("it runs").stdout).into_owned();
    assert!(told.contains("output.files.witness"), "{told}");
}

#[test]
fn a_witness_that_would_be_copied_with_the_output_is_refused() {
    let here = tempfile::tempdir().expect("a folder");
    let inside = here.path().join("out/witness");
    for wrong in [
        "witness",
        "out/witness",
        "../witness",
        inside.to_str().expect("a path"),
        "/tmp/../witness",
    ] {
        let output = run(here.path(), 1, Some(Path::new(wrong)));
        assert_eq!(output.status.code(), Some(78), "{wrong}");
        assert!(
            said(&output).contains("is not the absolute path of a file outside the output"),
            "{}",
            said(&output)
        );
    }
    assert!(!here.path().join("ledger").exists() && !inside.exists());
}
