//! Names of keys that nobody listed, made up for streams: as a configuration lets them be.

use std::sync::Arc;

use super::subject::AuditSubject;
use bernstream_release::window::FoundKeyCounting;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_synopsis::IdType;
use bernstream_synopsis::key_parts::join_parts;
use bernstream_synopsis::key_threshold::UNIT_GRAINS;
use bernstream_worker::pipeline::{PlannedKeySearch, PlannedRelease};

/// Keys that many hold, at least and at most.
const POPULAR: [usize; 2] = [4, 8];
/// Keys that few hold.
const RARE: usize = 12;
/// Most keys of a unit that are tried.
const MOST_OF_UNIT: usize = 64;
/// Texts that a name should not be.
const ODD: [&str; 7] = [
    "../x",
    "=1+1",
    "<script>",
    "\u{202e}abc",
    "\0",
    "a/b%2F",
    " ",
];
/// Integers at the ends of their type.
const ODD_INTEGERS: [&str; 2] = ["-9223372036854775808", "9223372036854775807"];

/// A release of a plan that finds its keys.
#[derive(Clone)]
pub(super) struct FoundKeyRelease<'a> {
    pub counting: Arc<FoundKeyCounting>,
    pub search: &'a PlannedKeySearch,
}

impl<'a> FoundKeyRelease<'a> {
    /// The rules of a release; `None` where its keys are listed.
    pub fn of_release(release: &'a PlannedRelease) -> Option<Self> {
        match (&release.form.accumulator, &release.key_search) {
            (AccumulatorSpec::FoundKeys(counting), Some(search)) => Some(FoundKeyRelease {
                counting: Arc::clone(counting),
                search,
            }),
            _ => None,
        }
    }

    /// The first release of a subject that finds its keys.
    pub fn of_subject(subject: &AuditSubject<'a>) -> Option<Self> {
        let mut releases = subject.plan.releases.iter();
        releases.find_map(FoundKeyRelease::of_release)
    }

    /// Most keys of a unit, of which no more are tried than a table has rows.
    pub fn most_keys(&self) -> usize {
        let most = self.counting.max_keys.min(self.search.most);
        usize::try_from(most)
            .unwrap_or(MOST_OF_UNIT)
            .clamp(1, MOST_OF_UNIT)
    }

    /// Units of the threshold, rounded up.
    pub fn threshold_units(&self) -> u64 {
        let threshold = self.search.search.selection().threshold();
        threshold.div_ceil(UNIT_GRAINS)
    }

    /// The key with this number of a kind, in every column; `None` where it would be too long.
    pub fn key(&self, subject: &AuditSubject<'_>, kind: KeyKind, number: usize) -> Option<String> {
        let mut parts = Vec::new();
        for column in 0..subject.columns.key.len() {
            parts.push(match is_integer_column(subject, column) {
                true => (kind.offset() + number).to_string(),
                false => format!("{}{number}", kind.letter()),
            });
        }
        self.fitting(join_parts(&parts))
    }

    /// Keys of a kind, from the first on.
    pub fn keys(&self, subject: &AuditSubject<'_>, kind: KeyKind, count: usize) -> Vec<String> {
        (0..count)
            .filter_map(|number| self.key(subject, kind, number))
            .collect()
    }

    /// Keys of texts and numbers that a name should not be, and the longest one.
    pub fn odd_keys(&self, subject: &AuditSubject<'_>) -> Vec<String> {
        let columns = subject.columns.key.len();
        let has_text = (0..columns).any(|column| !is_integer_column(subject, column));
        let mut texts: Vec<String> = match has_text {
            true => ODD.map(str::to_owned).to_vec(),
            false => ODD_INTEGERS.map(str::to_owned).to_vec(),
        };
        if has_text && columns == 1 {
            texts.push("l".repeat(self.counting.longest));
        }
        let mut keys = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let mut parts = Vec::new();
            for column in 0..columns {
                parts.push(match has_text && is_integer_column(subject, column) {
                    true => number.to_string(),
                    false => text.clone(),
                });
            }
            keys.extend(self.fitting(join_parts(&parts)));
        }
        keys
    }

    /// Keys that many hold: all that a unit can hold, where that is not much.
    pub fn popular_keys(&self, subject: &AuditSubject<'_>) -> Vec<String> {
        let [least, most] = POPULAR;
        let count = self.most_keys().clamp(least, most);
        self.keys(subject, KeyKind::Popular, count)
    }

    /// Three keys that are held by about as many as the threshold has.
    pub fn near_keys(&self, subject: &AuditSubject<'_>) -> Vec<String> {
        self.keys(subject, KeyKind::Near, 3)
    }

    /// Keys that few hold.
    pub fn rare_keys(&self, subject: &AuditSubject<'_>) -> Vec<String> {
        self.keys(subject, KeyKind::Rare, RARE)
    }

    fn fitting(&self, key: String) -> Option<String> {
        (!key.is_empty() && key.len() <= self.counting.longest).then_some(key)
    }
}

/// The units that hold a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyKind {
    /// Many.
    Popular,
    /// About as many as the threshold has.
    Near,
    /// Few.
    Rare,
    /// The neighbour alone.
    Own,
    /// One each, of a window that is full of keys.
    Filling,
}

impl KeyKind {
    fn letter(self) -> char {
        match self {
            KeyKind::Popular => 'p',
            KeyKind::Near => 'n',
            KeyKind::Rare => 'r',
            KeyKind::Own => 'o',
            KeyKind::Filling => 'f',
        }
    }

    /// The first number of the kind, where keys are integers.
    fn offset(self) -> usize {
        match self {
            KeyKind::Popular => 100,
            KeyKind::Near => 200,
            KeyKind::Rare => 300,
            KeyKind::Own => 400,
            KeyKind::Filling => 1_000,
        }
    }
}

fn is_integer_column(subject: &AuditSubject<'_>, column: usize) -> bool {
    subject.columns.key_types.get(column) == Some(&Some(IdType::Integer))
}

/// A key as rows have it.
pub(super) fn key_bytes(key: &str) -> Option<Arc<[u8]>> {
    Some(key.as_bytes().into())
}
