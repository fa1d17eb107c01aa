//! The witness as a file beside a folder of synopses.
//!
//! The first line is a random identity, each further line a claim. A line torn by a crash is void, and the next claim starts a
//! line of its own.
//!
//! A witness outside the output is bound to its file: its identity is the random one, the number of the file on its disk, and when
//! that was made; so a copy of it is another witness, and so is what a backup brings back, unless that is written into the file that is
//! there: this is what its [seal](super::seal) shows. (Not to the host: that of a pod changes.) What
//! no file can tell from its original is a snapshot of its whole disk. One inside the output, where it was before it could be elsewhere,
//! is copied with the output, and then orders nothing between the two.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::place::{ClaimPlace, PlaceMemory};
use super::seal::SealComparison;
use super::{Witness, WitnessClaim, WitnessError, WitnessRecord, fold_claim};
use crate::chain::{Digest, Head, random_bytes};
use crate::instance::FilePlace;
use crate::witness::seal;

/// A witness file, opened by its path for every access, so that a replaced file is noticed.
#[derive(Debug, Default)]
pub struct FileWitness {
    path: PathBuf,
    identity: String,
    /// Set if its identity includes that of the file.
    is_bound: bool,
    /// The accepted claim when the file was last read. If it is gone, the file was replaced.
    place: Option<ClaimPlace>,
    memory: Option<PlaceMemory>,
}

impl FileWitness {
    /// Opens the existing witness at `path`.
    ///
    /// # Errors
    ///
    /// If it is missing, damaged or cannot be read.
    pub fn open(path: &Path) -> Result<Self, WitnessError> {
        let mut witness = FileWitness {
            path: path.into(),
            ..FileWitness::default()
        };
        witness.read()?;
        Ok(witness)
    }

    /// Opens the witness at `path` for the one worker of a ledger, from the accepted claim that the file `memory` remembers, if it does.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_remembering(path: &Path, memory: &Path) -> Result<Self, WitnessError> {
        let (memory, place) = PlaceMemory::load(memory.into(), &path.display().to_string())?;
        let mut witness = FileWitness {
            path: path.into(),
            memory: Some(memory),
            ..FileWitness::default()
        };
        witness.identity = witness.first_line()?;
        // Of another file it says nothing.
        witness.place = place.filter(|place| place.identity == witness.identity);
        witness.read()?;
        Ok(witness)
    }

    /// Binds its identity to its file as well.
    #[must_use]
    pub fn bound_to_its_file(self) -> Self {
        FileWitness {
            is_bound: true,
            ..self
        }
    }

    fn first_line(&self) -> Result<String, WitnessError> {
        let mut line = Vec::new();
        File::open(&self.path)
            .and_then(|file| BufReader::new(file).read_until(b'\n', &mut line))
            .map_err(|error| self.error(&error))?;
        let identity = line
            .strip_suffix(b"\n")
            .ok_or_else(|| self.damaged("it has no identity"))?;
        Ok(String::from_utf8_lossy(identity).into_owned())
    }

    fn damaged(&self, what: &str) -> WitnessError {
        WitnessError::Damaged {
            name: self.name(),
            what: what.into(),
        }
    }

    /// Creates a witness at `path`, atomically, unless there is one.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn create(path: &Path) -> Result<(), WitnessError> {
        let identity = random_bytes().ok_or_else(|| {
            let error = io::Error::other("the operating system provides no randomness");
            unavailable(path, &error)
        })?;
        create_with(path, Digest::from(identity)).map_err(|error| unavailable(path, &error))
    }

    /// Compares the newest accepted claim with the seal; the worker of a ledger seals it before anything is published that it covers.
    fn check_seal(&self, identity: &str, newest: Option<Head>) -> Result<(), WitnessError> {
        let sealed = seal::compare_seal(&self.path, identity, newest.as_ref())
            .map_err(|error| self.error(&error))?;
        match sealed {
            SealComparison::BroughtBack { known } => {
                let what = format!(
                    "an older state was brought back: it ends before row {known}, which it had accepted"
                );
                Err(self.damaged(&what))
            }
            SealComparison::SealBroughtBack => {
                Err(self.damaged("its seal was copied, or an older state of it brought back"))
            }
            SealComparison::Behind => match newest {
                Some(newest) if self.memory.is_some() => {
                    seal::renew_seal(&self.path, identity, newest)
                        .map_err(|error| self.error(&error))
                }
                _ => Ok(()),
            },
            SealComparison::Fits => Ok(()),
        }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn error(&self, error: &io::Error) -> WitnessError {
        match error.kind() {
            ErrorKind::NotFound => WitnessError::Missing { name: self.name() },
            _ => WitnessError::Unavailable {
                name: self.name(),
                why: error.to_string(),
            },
        }
    }
}

fn unavailable(path: &Path, error: &io::Error) -> WitnessError {
    WitnessError::Unavailable {
        name: path.display().to_string(),
        why: error.to_string(),
    }
}

/// Creates a witness with this identity, unless there is one.
fn create_with(path: &Path, identity: Digest) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let draft = path.with_extension(format!("{identity}.new"));
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
}

/// Reads a witness from an offset on.
fn read_from(path: &Path, offset: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    // A claim must be durable before anyone acts on it; a crash may have left it in memory.
    file.sync_all()?;
    file.seek(SeekFrom::Start(offset))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(text)
}

fn append_line(path: &Path, claim: &WitnessClaim) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    // A single write; the leading line break ends a line that a crash has torn.
    file.write_all(format!("\n{}\n", claim.encode()).as_bytes())?;
    file.sync_all()
}

impl Witness for FileWitness {
    fn read(&mut self) -> Result<Option<WitnessClaim>, WitnessError> {
        let identity = self.first_line()?;
        let from = match &self.place {
            Some(place) => place.offset,
            None => identity.len() as u64 + 1,
        };
        let text = read_from(&self.path, from).map_err(|error| self.error(&error))?;
        if let Some(place) = &self.place {
            let rest = text.strip_prefix(place.record.as_bytes());
            let is_there = rest.is_some_and(|rest| rest.first() == Some(&b'\n'));
            if place.identity != identity || !is_there {
                return Err(self.damaged("a claim that it had accepted is gone"));
            }
        }
        let mut accepted = self
            .place
            .as_ref()
            .and_then(|place| WitnessClaim::decode(place.record.as_bytes()));
        let mut offset = from;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let start = offset;
            offset += line.len() as u64;
            // A line without its line break is not complete.
            let Some(line) = line.strip_suffix(b"\n") else {
                continue;
            };
            let claim = match WitnessRecord::decode(line) {
                WitnessRecord::Claim(claim) => claim,
                WitnessRecord::OfAnotherVersion => {
                    return Err(WitnessError::OfAnotherVersion { name: self.name() });
                }
                WitnessRecord::Stray => continue,
            };
            let newest = fold_claim(accepted, claim);
            if newest != accepted {
                let record = String::from_utf8_lossy(line).into_owned();
                let identity = identity.clone();
                self.place = Some(ClaimPlace {
                    identity,
                    offset: start,
                    record,
                    written: None,
                    remembered: None,
                });
                accepted = newest;
            }
        }
        if self.is_bound {
            self.check_seal(&identity, accepted.map(|claim| claim.head))?;
        }
        self.identity = identity;
        if let (Some(memory), Some(place)) = (&mut self.memory, &self.place) {
            // Without it the next start reads more.
            let _ = memory.save(place);
        }
        Ok(accepted)
    }

    fn identity(&mut self) -> Result<String, WitnessError> {
        if !self.is_bound {
            return Ok(self.identity.clone());
        }
        let file = FilePlace::of_file(&self.path).map_err(|error| self.error(&error))?;
        Ok(format!("{} {file}", self.identity))
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), WitnessError> {
        append_line(&self.path, claim).map_err(|error| self.error(&error))
    }
}
