//! The declared keys, and where each stands in their order.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use super::rules::WindowRules;
use crate::source::KeyRows;
use bernstream_synopsis::key_parts::split_key;

/// The group of each declared key, which is its place in the declared order, found by the bytes of a record's key. Declared keys are public
/// and at most 100,000, so a producer can neither grow the map nor choose what is in it: a hash that can be attacked is safe here.
///
/// A part that is not listed gets its name before anything else is done with the key: everything of a unit under one name is one key to caps.
pub struct KeyGroups {
    groups: HashMap<Vec<u8>, u32, BuildHasherDefault<Fnv>>,
    /// The length of the longest one: nothing longer is hashed.
    longest: usize,
    /// Listed texts of each part, and its name for all else; empty where nothing but listed keys is taken.
    parts: Vec<Option<PartNames>>,
    /// Groups of keys with a part that stands for what is not listed, for `check --sample`.
    of_others: HashSet<u32>,
}

/// The listed texts of a part of the key, the name of all others among them.
struct PartNames {
    listed: HashSet<Vec<u8>, BuildHasherDefault<Fnv>>,
    /// The length of the longest one: nothing longer is hashed.
    longest: usize,
    other: Vec<u8>,
}

impl KeyGroups {
    /// `None` where no keys are declared.
    pub fn of_rules(rules: &WindowRules) -> Option<Self> {
        let keys = rules.keys.as_deref()?;
        let mut groups = HashMap::default();
        for (group, key) in (0..).zip(keys) {
            groups.insert(key.clone().into_bytes(), group);
        }
        let mut found = KeyGroups {
            groups,
            longest: keys.iter().map(String::len).max().unwrap_or(0),
            parts: Vec::new(),
            of_others: HashSet::new(),
        };
        for other in &rules.other {
            found.parts.push(other.as_deref().map(PartNames::of_other));
        }
        found.list_parts(keys);
        Some(found)
    }

    /// Notes the parts of the declared keys, and which keys stand for what is not listed.
    fn list_parts(&mut self, keys: &[String]) {
        if self.parts.is_empty() {
            return;
        }
        for (group, key) in (0..).zip(keys) {
            let written = split_key(key, self.parts.len()).unwrap_or_default();
            for (names, part) in self.parts.iter_mut().zip(&written) {
                let Some(names) = names else { continue };
                if part.as_bytes() == names.other {
                    self.of_others.insert(group);
                }
                names.add_listed(part.as_bytes());
            }
        }
    }

    /// The group of each row; `None` where its key is null, or neither declared nor among what a name stands for.
    pub fn groups_of_rows(&self, rows: &KeyRows) -> Vec<Option<u32>> {
        match self.parts.as_slice() {
            [] => rows.map_keys(self.longest, |key| self.group_of(key)),
            [only] => {
                let other = only.as_ref().and_then(|names| self.group_of(&names.other));
                rows.map_keys(self.longest, |key| self.group_of(key).or(other))
            }
            _ => rows.map_renamed_keys(
                self.longest,
                |place, part| self.name_of_part(place, part),
                |key| self.group_of(key),
            ),
        }
    }

    /// Returns whether a group is of a key that stands for what is not listed, in one part at least.
    pub fn is_of_others(&self, group: u32) -> bool {
        self.of_others.contains(&group)
    }

    /// The group of a key; `None` if it is not declared.
    #[inline]
    fn group_of(&self, key: &[u8]) -> Option<u32> {
        if key.len() > self.longest {
            None
        } else {
            self.groups.get(key).copied()
        }
    }

    /// The part itself where it is listed, or no name stands for others.
    fn name_of_part<'r>(&'r self, place: usize, part: &'r [u8]) -> &'r [u8] {
        match self.parts.get(place) {
            Some(Some(names)) if !names.has_listed(part) => &names.other,
            _ => part,
        }
    }
}

impl PartNames {
    fn of_other(name: &str) -> Self {
        PartNames {
            listed: HashSet::default(),
            longest: 0,
            other: name.as_bytes().to_vec(),
        }
    }

    fn add_listed(&mut self, part: &[u8]) {
        self.longest = self.longest.max(part.len());
        if !self.listed.contains(part) {
            self.listed.insert(part.to_vec());
        }
    }

    fn has_listed(&self, part: &[u8]) -> bool {
        part.len() <= self.longest && self.listed.contains(part)
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
