//! Pairs for keys that nobody listed: a unit in keys of its own, in those of others, near the threshold, in announced keys that nobody
//! else holds any more, and in windows that are full of keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::found_names::{FoundKeyRelease, KeyKind, key_bytes};
use super::messages::{InputMessage, InputRow};
use super::pair::NeighbouringPair;
use super::stage::BackgroundStream;
use super::way::InjectionStrategy;
use bernstream_synopsis::grid::Span;

/// Larger limits of different keys are not filled.
const LARGEST_FILLED: u64 = 20_000;
/// Rows of a message that fills a window.
const ROWS: usize = 500;

/// Rooms of pairs, each with its most telling one first; none where keys are listed. A unit has as many rows as it likes if it is a
/// user, and one otherwise.
pub(super) fn found_key_families(stage: &BackgroundStream<'_>) -> Vec<Vec<NeighbouringPair>> {
    let subject = stage.subject;
    let Some(found) = FoundKeyRelease::of_subject(subject) else {
        return Vec::new();
    };
    let neighbour = KeyNeighbour { stage, found };
    let mut families = vec![
        neighbour.pairs_of_own_keys(),
        neighbour.pairs_of_announced_keys(),
        neighbour.pairs_of_held_keys(),
        neighbour.pairs_near_threshold(),
        neighbour.pairs_of_odd_keys(),
    ];
    families.push(neighbour.pairs_of_full_windows());
    families
}

/// A unit that is there or not, and its keys.
struct KeyNeighbour<'a> {
    stage: &'a BackgroundStream<'a>,
    found: FoundKeyRelease<'a>,
}

impl KeyNeighbour<'_> {
    /// A unit is a user, who can have several keys.
    fn is_user(&self) -> bool {
        self.stage.subject.plan.rules.cap.is_some()
    }

    fn own_keys(&self, count: usize) -> Vec<String> {
        self.found.keys(self.stage.subject, KeyKind::Own, count)
    }

    /// A row for each key in a window.
    fn rows(&self, window: Span, keys: &[String]) -> Vec<InputRow> {
        let time = BackgroundStream::time_in_window(window, 0.3);
        let mut rows = Vec::new();
        for key in keys {
            let middle = self.stage.middle.clone();
            rows.push(self.stage.neighbour_row(time, key_bytes(key), middle));
        }
        rows
    }

    /// With these keys in a window and without; of a record the first of them.
    fn pair(&self, name: &str, window: Span, keys: &[String]) -> Option<NeighbouringPair> {
        let keys = match self.is_user() {
            true => keys,
            false => keys.get(..1)?,
        };
        let beside = InjectionStrategy::beside_others(self.stage);
        (!keys.is_empty()).then(|| beside.pair_added(name, &self.rows(window, keys)))
    }

    fn pairs_of_own_keys(&self) -> Vec<NeighbouringPair> {
        let most = self.found.most_keys();
        let full = self.stage.full_window();
        let mut pairs = Vec::new();
        pairs.extend(self.pair("alone in as many keys as count", full, &self.own_keys(most)));
        if self.is_user() {
            let more = self.own_keys(most + 3);
            pairs.extend(self.pair("alone in more keys than count", full, &more));
            pairs.extend(self.pair("alone in one key", full, &self.own_keys(1)));
            pairs.extend(self.in_every_window(&more));
        }
        pairs
    }

    /// In every window of the period of the first; what the user does in later ones stays.
    fn in_every_window(&self, keys: &[String]) -> Option<NeighbouringPair> {
        let cap = self.stage.subject.plan.rules.cap.as_ref()?;
        let period = cap.period.span_of(self.stage.full_window().start);
        let mut rows = Vec::new();
        let mut later = Vec::new();
        let popular = self.found.popular_keys(self.stage.subject);
        for window in &self.stage.windows {
            for row in self.rows(*window, &[keys, &popular].concat()) {
                match row.time.is_some_and(|time| period.contains(time)) {
                    true => rows.push(row),
                    false => later.push(row),
                }
            }
        }
        Some(NeighbouringPair {
            name: "in keys of its own and of others in every window of a period".to_owned(),
            times: rows.iter().filter_map(|row| row.time).collect(),
            with: Arc::new(self.stage.with_rows(&[rows, later.clone()].concat())),
            without: Arc::new(self.stage.with_rows(&later)),
        })
    }

    /// Keys that a full window before has announced, and that nobody else holds any more.
    fn pairs_of_announced_keys(&self) -> Vec<NeighbouringPair> {
        let mut announced = self.found.popular_keys(self.stage.subject);
        // The first is that of the records of others in a sparse window.
        announced.rotate_left(1);
        announced.truncate(self.found.most_keys());
        let mut pairs = Vec::new();
        for (name, window) in [
            (
                "the last in announced keys, in a sparse window",
                self.stage.sparse_window(),
            ),
            (
                "the last in announced keys, in an empty window",
                self.stage.empty_window(),
            ),
        ] {
            pairs.extend(self.pair(name, window, &announced));
        }
        pairs
    }

    /// Keys that others hold, so that both streams have the same keys.
    fn pairs_of_held_keys(&self) -> Vec<NeighbouringPair> {
        let subject = self.stage.subject;
        let full = self.stage.full_window();
        let most = self.found.most_keys();
        let popular = self.found.popular_keys(subject);
        let rare = self.found.rare_keys(subject);
        let held = [popular, self.found.near_keys(subject), rare.clone()].concat();
        let as_many = held.get(..most.min(held.len())).unwrap_or_default();
        let mut pairs = Vec::new();
        pairs.extend(self.pair("in as many keys of others as count", full, as_many));
        if self.is_user() && held.len() > most {
            pairs.extend(self.pair("in more keys of others than count", full, &held));
        }
        pairs.extend(self.pair("in a key that one other holds", full, &rare));
        pairs
    }

    fn pairs_near_threshold(&self) -> Vec<NeighbouringPair> {
        let mut pairs = Vec::new();
        for (place, key) in self
            .found
            .near_keys(self.stage.subject)
            .into_iter()
            .enumerate()
        {
            let name = format!("one more of a key near the threshold, number {place}");
            pairs.extend(self.pair(&name, self.stage.full_window(), &[key]));
        }
        pairs
    }

    fn pairs_of_odd_keys(&self) -> Vec<NeighbouringPair> {
        let mut pairs = Vec::new();
        for key in self.found.odd_keys(self.stage.subject) {
            let name = format!("in the key {:?}", key.chars().take(12).collect::<String>());
            let sparse = self.stage.sparse_window();
            pairs.extend(self.pair(&name, sparse, &[key]));
        }
        pairs
    }

    /// A key more in windows that have as many as there may be: at the limit, and at the number up to which none is overfull.
    fn pairs_of_full_windows(&self) -> Vec<NeighbouringPair> {
        let mut pairs = Vec::new();
        let Some(test) = self.found.search.search.overfull_test() else {
            return pairs;
        };
        if test.limit() > LARGEST_FILLED {
            return pairs;
        }
        for (name, keys) in [
            ("the key at which a window is full", test.limit() - 1),
            ("the first key above the soft limit", test.soft_limit()),
        ] {
            let filling = self.filling_rows(keys);
            let way = InjectionStrategy::from_whole_stream("", |rows| {
                let mut messages = self.stage.with_rows(rows);
                messages.extend(self.filling_messages(&filling));
                messages.sort_by_key(|message| message.stamp);
                messages
            });
            pairs.push(way.pair_added(
                name,
                &self.rows(self.stage.full_window(), &self.own_keys(1)),
            ));
        }
        pairs
    }

    /// Rows so that there are so many different keys in the full window, those of others among them.
    fn filling_rows(&self, keys: u64) -> Vec<InputRow> {
        let full = self.stage.full_window();
        let mut held = BTreeSet::new();
        for row in self.stage.rows_of_others() {
            if row.time.is_some_and(|time| full.contains(time)) {
                held.insert(row.key.clone());
            }
        }
        let missing = usize::try_from(keys)
            .unwrap_or(0)
            .saturating_sub(held.len());
        let names = self
            .found
            .keys(self.stage.subject, KeyKind::Filling, missing);
        self.rows(full, &names)
    }

    fn filling_messages(&self, rows: &[InputRow]) -> Vec<InputMessage> {
        let stamp = BackgroundStream::time_in_window(self.stage.full_window(), 0.5);
        rows.chunks(ROWS)
            .map(|rows| InputMessage::from_rows(0, stamp, rows.to_vec()))
            .collect()
    }
}
