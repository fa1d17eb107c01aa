//! Messages that only the holders of a key can read or write.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use rand::TryRng;
use rand::rngs::SysRng;
use sha2::{Digest, Sha256};

/// Number of bytes of a nonce: random ones of this length never meet.
const NONCE: usize = 24;

/// The secret of a key file, from which one key for each purpose is derived.
#[derive(Clone)]
pub struct KeyFileSecret([u8; 32]);

/// XChaCha20-Poly1305 (RFC 8439, with the longer nonce of draft-irtf-cfrg-xchacha) under the key of one purpose.
#[derive(Clone)]
pub struct SealingKey(XChaCha20Poly1305);

impl KeyFileSecret {
    /// Reads a key file.
    ///
    /// # Errors
    ///
    /// What is wrong with the file.
    pub fn load(path: &Path) -> Result<Self, String> {
        key_file(path)
            .map(KeyFileSecret)
            .map_err(|why| format!("the key file {} {why}", path.display()))
    }

    pub fn new(bytes: [u8; 32]) -> Self {
        KeyFileSecret(bytes)
    }

    /// The key for `purpose`: from it neither the secret nor the key of another purpose can be computed.
    pub fn key(&self, purpose: &str) -> SealingKey {
        let digest = Sha256::new()
            .chain_update(b"bernstream key 1\n")
            .chain_update(self.0)
            .chain_update(purpose);
        SealingKey::new(digest.finalize().into())
    }
}

/// Reads a file of exactly 32 bytes.
///
/// # Errors
///
/// What is wrong with it, to be said behind its name.
pub fn key_file(path: &Path) -> Result<[u8; 32], String> {
    let bytes = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    let key: [u8; 32] = bytes.as_slice().try_into().map_err(|_| {
        format!(
            "has {} bytes and needs exactly 32 random ones, without a line break: head -c 32 /dev/urandom > {}",
            bytes.len(),
            path.display()
        )
    })?;
    // What a file has that was made by its length alone, or whose content was lost.
    if key == [0; 32] {
        return Err(format!(
            "has 32 bytes that are zero, which everybody can guess: head -c 32 /dev/urandom > {}",
            path.display()
        ));
    }
    Ok(key)
}

/// That everyone can read a key file. Group access is fine, because Kubernetes mounts secrets that way.
pub fn key_file_warning(path: &Path, whose: &str) -> Option<String> {
    let is_open = fs::metadata(path).is_ok_and(|about| about.mode() & 0o004 != 0);
    let path = path.display();
    is_open.then(|| {
        format!("every user of this machine can read the key of {whose} in {path}: chmod o= {path}")
    })
}

impl SealingKey {
    /// The key of these bytes, which are derived for one purpose.
    pub fn new(derived: [u8; 32]) -> Self {
        SealingKey(XChaCha20Poly1305::new(&derived.into()))
    }

    /// A random nonce, and what `secret` encrypts to. `None` without randomness.
    pub fn seal(&self, clear: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE];
        SysRng.try_fill_bytes(&mut nonce).ok()?;
        let sealed = self
            .0
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: secret,
                    aad: clear,
                },
            )
            .ok()?;
        Some([nonce.as_slice(), &sealed].concat())
    }

    /// Decrypts the bytes that were sealed together with `clear`; `None` with another key, or if a bit of either was changed.
    pub fn open(&self, clear: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
        let nonce: [u8; NONCE] = nonce.try_into().ok()?;
        self.0
            .decrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: sealed,
                    aad: clear,
                },
            )
            .ok()
    }
}

impl fmt::Debug for KeyFileSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_sealed_is_opened_with_the_same_key_for_the_same_purpose_only() {
        let secret = KeyFileSecret::new([1; 32]);
        let key = secret.key("one");
        let sealed = key.seal(b"clear", b"secret").unwrap();
        assert_eq!(key.open(b"clear", &sealed).unwrap(), b"secret");
        assert!(key.open(b"Clear", &sealed).is_none());
        assert!(secret.key("two").open(b"clear", &sealed).is_none());
        assert!(
            KeyFileSecret::new([2; 32])
                .key("one")
                .open(b"clear", &sealed)
                .is_none()
        );
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(key.open(b"clear", &changed).is_none(), "byte {at}");
            assert!(key.open(b"clear", &sealed[..at]).is_none(), "{at} bytes");
        }
        assert_ne!(
            key.seal(b"clear", b"secret").unwrap(),
            sealed,
            "no nonce comes twice"
        );
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
    }

    #[test]
    fn a_key_file_has_32_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(
            KeyFileSecret::load(&path)
                .unwrap_err()
                .contains("cannot be read")
        );
        fs::write(&path, [7; 33]).unwrap();
        assert!(
            KeyFileSecret::load(&path)
                .unwrap_err()
                .contains("has 33 bytes and needs exactly 32")
        );
        fs::write(&path, [0; 32]).unwrap();
        assert!(
            KeyFileSecret::load(&path)
                .unwrap_err()
                .contains("which everybody can guess")
        );
        fs::write(&path, [7; 32]).unwrap();
        assert_eq!(KeyFileSecret::load(&path).unwrap().0, [7; 32]);
    }

    #[test]
    fn a_key_that_everyone_can_read_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert_eq!(
            key_file_warning(&path, "absorbers"),
            None,
            "whoever needs it says that there is none"
        );
        fs::write(&path, [7; 32]).unwrap();
        for (mode, is_told) in [(0o600, false), (0o440, false), (0o444, true), (0o604, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let told = key_file_warning(&path, "absorbers");
            assert_eq!(
                told.is_some_and(|told| told.contains("read the key of absorbers in")),
                is_told,
                "{mode:o}"
            );
        }
    }
}
