//! Place at which the newest accepted claim was found, so that a start does not read the witness from its beginning.
//!
//! It is compared before it is used: the witness's identity, and the whole record at its offset, with the time at which it was written, for
//! the same claim may be sent again and come to stand there void. A witness that has another record there, or ends before it, may have lost
//! what it had accepted; only a worker that remembers can tell. The head is then remembered until it is accepted again. Without the
//! memory everything is read, which is always right for what the witness still has: so a damaged memory is dropped.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::WitnessError;
use crate::chain::{Digest, Head};
use crate::private;

/// An accepted claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimPlace {
    /// Identity of the witness.
    pub identity: String,
    pub offset: u64,
    /// The whole record; empty if no claim is accepted.
    pub record: String,
    /// Time at which the broker has appended it, in milliseconds since 1970; a file says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<i64>,
    /// A head that was accepted, and may not be any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<Head>,
}

/// A file that remembers a place.
#[derive(Clone, Debug)]
pub struct PlaceMemory {
    path: PathBuf,
    /// The place that the file has.
    saved: Option<ClaimPlace>,
}

impl PlaceMemory {
    /// The memory in the file `path`, and the place in it, if it is there and whole.
    ///
    /// # Errors
    ///
    /// If it is there and cannot be read: without it a loss may go unnoticed.
    pub fn load(path: PathBuf, name: &str) -> Result<(Self, Option<ClaimPlace>), WitnessError> {
        let text = match fs::read(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let why = format!(
                    "the file {}, in which this worker remembers what it had accepted, cannot be read: {error}; that says nothing about \
                     the ledger: check the volume and let its user read the file, and do not delete it",
                    path.display()
                );
                return Err(WitnessError::Refused {
                    name: name.to_owned(),
                    why,
                });
            }
            text => text.unwrap_or_default(),
        };
        let place = read_place(&text);
        Ok((
            PlaceMemory {
                path,
                saved: place.clone(),
            },
            place,
        ))
    }

    /// Remembers the newest place: every one, so that a start reads on from where the last run ended, however it ended. If it
    /// cannot be written, the next start reads more.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn save(&mut self, place: &ClaimPlace) -> io::Result<()> {
        if self.saved.as_ref() == Some(place) {
            return Ok(());
        }
        let text = serde_json::json!(place).to_string();
        let draft = self.path.with_extension("new");
        let text = format!("{}\n{text}", Digest::of_bytes(text.as_bytes()));
        private::write_private(&draft, text.as_bytes())?;
        fs::rename(&draft, &self.path)?;
        // Its name, too.
        if let Some(folder) = self.path.parent() {
            private::sync_folder(folder)?;
        }
        self.saved = Some(place.clone());
        Ok(())
    }
}

/// Reads the text of a memory; `None` if it is not whole.
fn read_place(text: &[u8]) -> Option<ClaimPlace> {
    let (digest, place) = str::from_utf8(text).ok()?.split_once('\n')?;
    if digest != Digest::of_bytes(place.as_bytes()).to_string() {
        return None;
    }
    serde_json::from_str(place).ok()
}
