//! The witness as a file beside a folder of synopses.
//!
//! The first line is a random identity, each further line a claim. A line that was torn by a crash is void, and the next claim
//! begins a line of its own. For one machine: whoever copies or restores the whole folder has to know what that means.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use super::{Claim, Error, Witness, fold};
use crate::ledger::chain::{Digest, Head, random};

/// A witness file, opened by its path at every turn, so that another one in its place is noticed.
#[derive(Debug)]
pub struct FileWitness {
    path: PathBuf,
    identity: String,
    /// Accepted when it was last read; it stays accepted or the file was replaced.
    seen: Option<Head>,
}

impl FileWitness {
    /// The witness at `path`, which exists.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut witness = FileWitness { path: path.into(), identity: String::new(), seen: None };
        witness.read()?;
        Ok(witness)
    }

    /// Makes a witness at `path` unless there is one; never half of one.
    pub fn create(path: &Path) -> Result<(), Error> {
        let unavailable =
            |error: io::Error| Error::Unavailable { name: path.display().to_string(), why: error.to_string() };
        let no_randomness = || unavailable(io::Error::other("the operating system gave no randomness"));
        let identity = Digest::from(random().ok_or_else(no_randomness)?);
        let folder = path.parent().unwrap_or(Path::new("."));
        let draft = path.with_extension(format!("{identity}.new"));
        let make = || {
            fs::create_dir_all(folder)?;
            let mut file = File::create_new(&draft)?;
            writeln!(file, "{identity}")?;
            file.sync_all()?;
            // A link, not a renaming, which would replace a witness that another worker has made meanwhile.
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
            // What is acted on must not be lost again: a claim that a crash left in memory is made durable first.
            file.sync_all()?;
            let mut text = Vec::new();
            file.read_to_end(&mut text).map(|_| text)
        };
        let text = read().map_err(|error| self.error(&error))?;
        let damaged = |what: &str| Error::Damaged { name: self.path.display().to_string(), what: what.into() };
        // Without its end a line is not there yet.
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
            // One write; the line break before it ends a line that a crash has torn.
            file.write_all(format!("\n{}\n", claim.encode()).as_bytes())?;
            file.sync_all()
        };
        append().map_err(|error| self.error(&error))
    }
}
