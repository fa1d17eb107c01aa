//! The declared keys, and where each stands in their order.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Finds the group of a key. The keys are public and few, so what a producer sends can neither grow the map nor choose what is in it.
pub(super) struct KeyGroups {
    groups: HashMap<Vec<u8>, u32, BuildHasherDefault<Fnv>>,
    /// The length of the longest one: nothing longer is hashed.
    longest: usize,
}

impl KeyGroups {
    pub fn new(keys: &[String]) -> Self {
        let mut groups = HashMap::default();
        for (group, key) in (0..).zip(keys) {
            groups.insert(key.clone().into_bytes(), group);
        }
        KeyGroups {
            groups,
            longest: keys.iter().map(String::len).max().unwrap_or(0),
        }
    }

    /// The length of the longest key in bytes.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The group of a key; `None` if it is not declared.
    #[inline]
    pub fn group_of(&self, key: &[u8]) -> Option<u32> {
        if key.len() > self.longest {
            None
        } else {
            self.groups.get(key).copied()
        }
    }
}

/// The hash of Fowler, Noll and Vo (FNV-1a, 64 bits): short keys in a few nanoseconds.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The length of a slice, which tells nothing here: a key is one slice.
    fn write_usize(&mut self, _length: usize) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
