//! The key of a ledger log.

use std::fmt;
use std::fs;
use std::path::Path;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use sha2::{Digest as _, Sha256};

use super::error::Error;
use crate::ledger::chain::random;

/// How long a nonce is, in bytes.
const NONCE: usize = 24;

/// The key with which the bodies of a log are encrypted and authenticated.
#[derive(Clone)]
pub struct Key(XChaCha20Poly1305);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// Reads the key from a file of exactly 32 bytes.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or has another length.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let refused = |why: String| Error::KeyFile { path: path.into(), why };
        let bytes = fs::read(path).map_err(|error| refused(format!("cannot be read: {error}")))?;
        let bytes: [u8; 32] = bytes.as_slice().try_into().map_err(|_| {
            refused(format!("has {} bytes and needs exactly 32, random ones, without a line break", bytes.len()))
        })?;
        Ok(Key::new(&bytes))
    }

    /// Derived, so that the same file could be the key of something else.
    pub fn new(secret: &[u8; 32]) -> Self {
        let derived = Sha256::new().chain_update(b"bernstream ledger log key 1\n").chain_update(secret).finalize();
        Key(XChaCha20Poly1305::new(&<[u8; 32]>::from(derived).into()))
    }

    /// Encrypts `secret` and authenticates it together with `clear`: a random nonce, and what it encrypts to. `None` without
    /// randomness.
    pub(super) fn seal(&self, clear: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
        let nonce: [u8; NONCE] = random()?.get(..NONCE)?.try_into().ok()?;
        let sealed = self.0.encrypt(&XNonce::from(nonce), Payload { msg: secret, aad: clear }).ok()?;
        Some([nonce.as_slice(), &sealed].concat())
    }

    /// What was sealed together with `clear`; `None` with another key, or if anything was changed.
    pub(super) fn open(&self, clear: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
        let nonce: [u8; NONCE] = nonce.try_into().ok()?;
        self.0.decrypt(&XNonce::from(nonce), Payload { msg: sealed, aad: clear }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_with_the_same_key_and_the_same_words_only() {
        let key = Key::new(&[1; 32]);
        let sealed = key.seal(b"clear", b"secret").unwrap();
        assert_eq!(key.open(b"clear", &sealed).unwrap(), b"secret");
        assert!(key.open(b"Clear", &sealed).is_none());
        assert!(Key::new(&[2; 32]).open(b"clear", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(key.open(b"clear", &changed).is_none(), "byte {at}");
        }
        assert!(key.open(b"clear", &sealed[..10]).is_none());
        assert_ne!(key.seal(b"clear", b"secret").unwrap(), sealed, "no nonce comes twice");
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
    }
}
