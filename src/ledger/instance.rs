//! Which of several copies of a ledger a file is.
//!
//! A copy has everything that its original has, also its id. What it does not have is the original's place on the disk: the
//! number of its file, and when that was made. So the name of an instance is kept beside the ledger together with that place,
//! and whoever finds it with another place is a copy, and takes a name of its own.
//!
//! Nothing rests on it but who claims first: the instance that made the newest accepted claim does so at once, and every other
//! one leaves it [`PRECEDENCE`]. A clone of a whole disk cannot be told from its original, and both then claim at once.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::chain::{Head, random};
use super::error::Error;
use super::store;
use crate::clock::Timestamp;

/// How long rows wait for a claim of the instance that made the last accepted one.
pub(super) const PRECEDENCE: Duration = Duration::from_secs(10);

/// The random name of an instance.
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
pub(super) struct Waiting {
    /// The head of the witness meanwhile.
    pub accepted: Head,
    pub since: Timestamp,
}

/// The file beside the ledger.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    instance: Instance,
    place: FilePlace,
}

/// Where a file is on its disk: a copy is elsewhere.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilePlace {
    number: u64,
    /// When it was made, in nanoseconds; not every file system knows.
    made: Option<u128>,
}

impl FilePlace {
    pub fn of(file: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let about = fs::metadata(file)?;
        let made = about.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        Ok(FilePlace { number: about.ino(), made: made.map(|made| made.as_nanos()) })
    }
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.made.unwrap_or_default())
    }
}

impl Instance {
    /// The instance of the ledger in `folder`, whose lock is held.
    ///
    /// # Errors
    ///
    /// If its name cannot be read or written.
    pub fn of(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("instance");
        let disk = |error| Error::disk(&path, &error);
        let place = FilePlace::of(&store::file_in(folder)).map_err(disk)?;
        let kept = fs::read(&path).ok().and_then(|kept| serde_json::from_slice::<Record>(&kept).ok());
        if let Some(kept) = kept.filter(|kept| kept.place == place) {
            return Ok(kept.instance);
        }
        let [a, b, c, d, e, f, g, h, ..] = random().ok_or(Error::Randomness)?;
        let instance = Instance(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        let draft = folder.join("instance.new");
        let text = serde_json::json!(Record { instance, place }).to_string();
        fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path)).map_err(disk)?;
        Ok(instance)
    }
}
