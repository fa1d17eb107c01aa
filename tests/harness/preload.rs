//! Libraries that are preloaded: between a process and its system.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the library of a source file of `tests/`; without a C compiler the test is skipped.
pub fn build(source: &str, folder: &Path) -> Option<PathBuf> {
    let name = Path::new(source)
        .file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let library = folder.join(format!("{name}.so"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(source);
    match Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .status()
    {
        Ok(built) => {
            assert!(built.success(), "it builds");
            Some(library)
        }
        Err(_) => {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED {test}: it needs a C compiler, cc"
            );
            None
        }
    }
}

/// The wall clock of a process that a test moves while it runs.
pub struct Clock {
    pub library: PathBuf,
    pub shift: PathBuf,
}

impl Clock {
    /// The name of the variable that tells a process where its shift is.
    pub const SHIFT: &str = "BERNSTREAM_TEST_CLOCK";

    pub fn new(folder: &Path) -> Option<Self> {
        let clock = Clock {
            library: build("harness/clock.c", folder)?,
            shift: folder.join("shift"),
        };
        clock.move_to(0);
        Some(clock)
    }

    pub fn move_to(&self, seconds: i64) {
        // In place: the process has mapped the file.
        let file = fs::File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.shift)
            .expect("a file");
        file.write_all_at(&(seconds * 1_000_000).to_ne_bytes(), 0)
            .expect("it is written");
    }
}

/// Threads of a process that hang in their Kafka clients, as long as a test says.
pub struct Hang {
    pub library: PathBuf,
    pub threads: PathBuf,
}

impl Hang {
    /// The name of the variable that tells a process which of its threads hang.
    pub const THREADS: &str = "BERNSTREAM_TEST_HANG";

    pub fn new(folder: &Path) -> Option<Self> {
        Some(Hang {
            library: build("harness/hang.c", folder)?,
            threads: folder.join("hanging"),
        })
    }

    pub fn begin(&self, thread: &str) {
        fs::write(&self.threads, thread).expect("it is written");
    }

    pub fn end(&self) {
        fs::remove_file(&self.threads).expect("it is removed");
    }
}
