//! Pipelines of files: the whole program, without a broker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The exit code of a command, and the error that it ends with.
pub fn ended(mut command: Command) -> (i32, String) {
    let output = command.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    let error = told
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("error: "))
        .unwrap_or_default();
    (output.status.code().expect("no signal"), error.to_owned())
}

/// A command of the program on a configuration.
pub fn command(arguments: &[&str], configuration: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
    command.args(arguments).arg(configuration);
    command
}

/// Pipelines of files, in a folder.
pub struct Files(tempfile::TempDir);

impl Files {
    pub fn new() -> Self {
        let files = Files(tempfile::tempdir().expect("a folder"));
        let records = "time,key,value\n2025-01-01T00:00:30Z,a,5\n2025-01-01T00:01:30Z,a,7\n";
        fs::write(files.path("records.csv"), records).expect("written");
        files
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The configuration of a pipeline with a ledger and a witness of its own, which writes to `output`.
    pub fn pipeline(&self, name: &str, output: &str) -> PathBuf {
        let [records, output, witness, ledger] = [
            "records.csv",
            output,
            &format!("{name}.witness"),
            &format!("{name}.ledger"),
        ]
        .map(|name| self.path(name));
        let text = format!(
            r#"
pipeline = "{name}"
[input]
time = "time"
key = {{ column = "key", type = "text", values = ["a"] }}
files = {{ path = {records:?} }}
[windows]
origin = "2025-01-01T00:00:00Z"
length = "1m"
end = "2025-01-01T00:02:00Z"
[privacy]
unit = "record"
adjacency = "add_remove"
epsilon = 1.0
[release]
name = "density"
epsilon = 1.0
degree = 8
order = 2
domain = [{{ column = "value", min = 0, max = 100, outside = "clamp" }}]
[release.density]
bandwidths = [40]
[output.files]
path = {output:?}
witness = {witness:?}
[ledger]
path = {ledger:?}
"#
        );
        let file = self.path(&format!("{name}.toml"));
        fs::write(&file, text).expect("written");
        file
    }

    /// The configuration of one that has run.
    pub fn has_run(&self, name: &str, output: &str) -> PathBuf {
        let file = self.pipeline(name, output);
        assert_eq!(ended(command(&["check"], &file)), (0, String::new()));
        assert_eq!(ended(command(&["run"], &file)).0, 0);
        assert_eq!(ended(command(&["check"], &file)), (0, String::new()));
        file
    }
}
