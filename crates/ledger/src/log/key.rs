//! The key of a ledger log.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::error::LedgerLogError;
use crate::sealing;

/// The key with which the bodies of a log are encrypted and authenticated.
#[derive(Clone, Debug)]
pub struct LogKey(sealing::SealingKey);

impl LogKey {
    /// Reads the key from a file of exactly 32 bytes.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or has another length.
    pub fn load(path: &Path) -> Result<Self, LedgerLogError> {
        let secret = sealing::key_file(path).map_err(|why| LedgerLogError::KeyFile {
            path: path.into(),
            why,
        })?;
        Ok(LogKey::new(&secret))
    }

    /// Derived, so that the same file could be the key of something else.
    pub fn new(secret: &[u8; 32]) -> Self {
        let derived = Sha256::new()
            .chain_update(b"bernstream ledger log key 1\n")
            .chain_update(secret)
            .finalize();
        LogKey(sealing::SealingKey::new(derived.into()))
    }

    /// Encrypts `secret` and authenticates it together with `clear`; `None` without randomness.
    pub(super) fn seal(&self, clear: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
        self.0.seal(clear, secret)
    }

    /// Decrypts the bytes that were sealed together with `clear`; `None` with another key, or if anything was changed.
    pub(super) fn open(&self, clear: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        self.0.open(clear, sealed)
    }
}

/// A log that was written by an earlier version is read by this one.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_file_is_that_of_earlier_versions() {
        let derived =
            Sha256::digest([b"bernstream ledger log key 1\n".as_slice(), &[1; 32]].concat());
        let sealed = sealing::SealingKey::new(derived.into())
            .seal(b"clear", b"secret")
            .unwrap();
        assert_eq!(
            LogKey::new(&[1; 32]).open(b"clear", &sealed).unwrap(),
            b"secret"
        );
        assert!(LogKey::new(&[2; 32]).open(b"clear", &sealed).is_none());
    }
}
