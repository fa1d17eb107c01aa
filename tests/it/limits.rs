//! A worker that may not have the memory that it needs.

use std::process::{Command, Output};

/// Runs a worker whose address space is limited to so many MB.
fn run_within(megabytes: u64) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string("tests/data/lattice.toml").expect("the configuration");
    let configuration = folder.path().join("bernstream.toml");
    std::fs::write(&configuration, text).expect("it is written");
    let script = format!("ulimit -v {}; exec \"$0\" run \"$1\"", megabytes * 1024);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_bernstream")]).arg(configuration).env_remove("MALLOC_ARENA_MAX");
    shell.current_dir(folder.path()).output().expect("it runs")
}

#[test]
fn too_little_address_space_is_said_before_anything_starts() {
    for megabytes in [150, 250, 350, 450, 550, 650] {
        let ended = run_within(megabytes);
        let words = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(70), "{megabytes} MB: {words}");
        assert!(words.contains("the address space of this process is limited to"), "{megabytes} MB: {words}");
        assert!(words.contains("memory.max"), "what to do instead: {words}");
    }
}
