//! The witness as a file beside a folder of synopses.
//!
//! The first line is a random identity, each further line a claim. A line torn by a crash is void, and the next claim starts a
//! line of its own. It protects a single machine only: it cannot detect a copy or a restore of the whole folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use super::{Claim, Error, Witness, fold};
use crate::ledger::chain::{Digest, Head, random};

/// A witness file, opened by its path for every access, so that a replaced file is noticed.
#[derive(Debug)]
pub struct FileWitness {
    path: PathBuf,
    identity: String,
    /// The claim that was accepted when the file was last read. If it is gone, the file was replaced.
    seen: Option<Head>,
}

impl FileWitness {
    /// Opens the existing witness at `path`.
    ///
    /// # Errors
    ///
    /// If it is missing, damaged or cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut witness = FileWitness { path: path.into(), identity: String::new(), seen: None };
        witness.read()?;
        Ok(witness)
    }

    /// Creates a witness at `path`, atomically, unless there is one.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn create(path: &Path) -> Result<(), Error> {
        let unavailable =
            |error: io::Error| Error::Unavailable { name: path.display().to_string(), why: error.to_string() };
        let no_randomness = || unavailable(io::Error::other("the operating system provides no randomness"));
        let identity = Digest::from(random().ok_or_else(no_randomness)?);
        let folder = path.parent().unwrap_or(Path::new("."));
        let draft = path.with_extension(format!("{identity}.new"));
        let make = || {
            fs::create_dir_all(folder)?;
            let mut file = File::create_new(&draft)?;
            writeln!(file, "{identity}")?;
            file.sync_all()?;
            // A hard link: a rename would replace a witness that another worker has created meanwhile.
            let made = fs::hard_link(&draft, path);
            fs::remove_file(&draft)?;
            File::open(folder)?.sync_all()?;
            match made {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                _ => Ok(()),
            }
        };
        make().map_err(unavailable)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn error(&self, error: &io::Error) -> Error {
        match error.kind() {
            ErrorKind::NotFound => Error::Missing { name: self.name() },
            _ => Error::Unavailable { name: self.name(), why: error.to_string() },
        }
    }
}

impl Witness for FileWitness {
    fn read(&mut self) -> Result<Option<Claim>, Error> {
        let read = || {
            let mut file = File::open(&self.path)?;
            // A claim must be durable before anyone acts on it; a crash may have left it in memory.
            file.sync_all()?;
            let mut text = Vec::new();
            file.read_to_end(&mut text).map(|_| text)
        };
        let text = read().map_err(|error| self.error(&error))?;
        let damaged = |what: &str| Error::Damaged { name: self.path.display().to_string(), what: what.into() };
        // A line without its line break is not complete.
        let mut lines = text.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
        let identity = lines.next().ok_or_else(|| damaged("it has no identity"))?;
        let mut accepted = None;
        let mut is_seen = self.seen.is_none();
        for claim in lines.filter_map(Claim::decode) {
            accepted = fold(accepted, claim);
            is_seen |= accepted.map(|claim| claim.head) == self.seen;
        }
        if !is_seen {
            return Err(damaged("a claim that it had accepted is gone"));
        }
        self.identity = String::from_utf8_lossy(identity).into_owned();
        self.seen = accepted.map(|claim| claim.head);
        Ok(accepted)
    }

    fn identity(&mut self) -> Result<String, Error> {
        Ok(self.identity.clone())
    }

    fn append(&mut self, claim: &Claim) -> Result<(), Error> {
        let append = || {
            let mut file = OpenOptions::new().append(true).open(&self.path)?;
            // A single write; the leading line break ends a line that a crash has torn.
            file.write_all(format!("\n{}\n", claim.encode()).as_bytes())?;
            file.sync_all()
        };
        append().map_err(|error| self.error(&error))
    }
}
