//! Which of several copies of a ledger makes a claim.
//!
//! Every process that opens a ledger claims under a fresh name. Before its first claim it keeps that beside the ledger: the next process there
//! goes on in its stead, if it made the newest accepted claim that this finds.
//!
//! A copy has everything that its original has. What it does not have is the original's place on the disk: the number of its file, and
//! when that was made. So the name is kept together with that place, and whoever finds it with another place is a copy, and goes on for nobody.
//! A clone of a whole disk has that too, and both go on: until the next claim of one of them is accepted, which the other one did not make.
//!
//! Nothing rests on it but who claims first: the instance that made the newest accepted claim does so at once, and every other
//! one leaves it [`PRECEDENCE`].

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::chain::{Head, random_bytes};
use super::error::LedgerError;
use crate::{private, store};
use bernstream_synopsis::clock::Timestamp;

/// Time for which rows wait for a claim of the instance that made the last accepted one.
pub(super) const PRECEDENCE: Duration = Duration::from_secs(10);

/// The random name of a process that claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Instance(u64);

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Instance {
    /// The name as a number.
    pub(super) fn number(self) -> u64 {
        self.0
    }
}

impl From<Instance> for String {
    fn from(instance: Instance) -> String {
        instance.to_string()
    }
}

impl TryFrom<String> for Instance {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let instance = u64::from_str_radix(&text, 16).ok().map(Instance);
        let instance = instance.filter(|instance| instance.to_string() == text);
        instance.ok_or_else(|| format!("'{text}' is not 16 lower-case hexadecimal digits"))
    }
}

/// Rows that wait for a claim of another instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingRows {
    /// The head of the witness meanwhile.
    pub accepted: Head,
    pub since: Timestamp,
}

/// The file beside the ledger.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct InstanceFile {
    /// The last process here that was about to claim.
    instance: Instance,
    /// The one before it: the last one may have ended before it claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    earlier: Option<Instance>,
    pub place: FilePlace,
}

/// Maker of the claims that are a ledger's own.
#[derive(Debug)]
pub(super) struct ClaimMaker {
    own: Instance,
    is_kept: bool,
    /// The processes here before.
    before: Vec<Instance>,
    /// The first accepted claim that was seen.
    first: Option<FirstClaim>,
}

/// The first accepted claim that a process has seen.
#[derive(Clone, Copy, Debug)]
struct FirstClaim {
    head: Head,
    /// The process here before that made it, if one did.
    maker: Option<Instance>,
}

/// Place of a file on its disk: a copy is elsewhere.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilePlace {
    number: u64,
    /// Time at which it was made, in nanoseconds; not every file system knows.
    made: Option<u128>,
}

impl FilePlace {
    pub fn of_file(file: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let about = fs::metadata(file)?;
        let made = about
            .created()
            .ok()
            .and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        Ok(FilePlace {
            number: about.ino(),
            made: made.map(|made| made.as_nanos()),
        })
    }
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.made.unwrap_or_default())
    }
}

impl ClaimMaker {
    /// A new one, for the ledger in `folder`, whose lock is held.
    ///
    /// # Errors
    ///
    /// If the ledger's place, or what is kept there, cannot be read.
    pub fn for_folder(folder: &Path) -> Result<Self, LedgerError> {
        let path = record_in(folder);
        let place =
            FilePlace::of_file(&store::file_in(folder)).map_err(LedgerError::disk(&path))?;
        let kept = match fs::read(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(LedgerError::from_disk(&path, &error));
            }
            kept => kept.unwrap_or_default(),
        };
        // A loss of power can leave it empty.
        let kept = serde_json::from_slice::<InstanceFile>(&kept)
            .ok()
            .filter(|kept| kept.place == place);
        let mut before = Vec::new();
        if let Some(kept) = kept {
            before.push(kept.instance);
            before.extend(kept.earlier);
        }
        let [a, b, c, d, e, f, g, h, ..] = random_bytes().ok_or(LedgerError::Randomness)?;
        let own = Instance(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        Ok(ClaimMaker {
            own,
            is_kept: false,
            before,
            first: None,
        })
    }

    pub fn own(&self) -> Instance {
        self.own
    }

    /// Notes the newest accepted claim, made by `maker`, if it is the first one that this process sees.
    pub fn note_first_claim(&mut self, claim: Head, maker: Instance) {
        self.first.get_or_insert_with(|| FirstClaim {
            head: claim,
            maker: self.before.contains(&maker).then_some(maker),
        });
    }

    /// Returns true if the newest accepted claim, made by `maker`, is its own, or that of the process in whose stead it goes on.
    pub fn is_own(&self, claim: Head, maker: Instance) -> bool {
        let goes_on = self
            .first
            .is_some_and(|first| first.head == claim && first.maker == Some(maker));
        maker == self.own || goes_on
    }

    /// Keeps its name beside the ledger in `folder`, before it claims.
    ///
    /// # Errors
    ///
    /// If that cannot be written.
    pub fn keep_name(&mut self, folder: &Path) -> Result<(), LedgerError> {
        if self.is_kept {
            return Ok(());
        }
        let path = record_in(folder);
        let place =
            FilePlace::of_file(&store::file_in(folder)).map_err(LedgerError::disk(&path))?;
        let earlier = self
            .first
            .and_then(|first| first.maker)
            .or(self.before.first().copied());
        let draft = folder.join("instance.new");
        let text = serde_json::json!(InstanceFile {
            instance: self.own,
            earlier,
            place
        })
        .to_string();
        private::write_private(&draft, text.as_bytes())
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(LedgerError::disk(&path))?;
        self.is_kept = true;
        Ok(())
    }
}

fn record_in(folder: &Path) -> PathBuf {
    folder.join("instance")
}
