//! The newest synopses of a feed, bounded for each key and in total.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;

/// Synopses kept for each pipeline, release and key.
pub(super) const PER_KEY: usize = 60;
/// Bytes of all synopses together.
const MAX_BYTES: usize = 64 << 20;
/// About what a synopsis takes besides its values and its JSON.
const OVERHEAD: usize = 4096;
const MAX_UNREADABLE: usize = 20;
/// Events handed out at a time: what a slow client holds in memory.
const BATCH: usize = 1;

/// A synopsis, also as JSON.
#[derive(Debug)]
pub struct CachedSynopsis {
    pub synopsis: Synopsis,
    pub json: String,
}

/// A message that is not a synopsis.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct UnreadableMessage {
    /// Partition and offset, or the name of the file.
    #[serde(rename = "where")]
    pub place: String,
    pub why: String,
}

/// State of the connection to the topic or folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FeedConnection {
    pub connected: bool,
    /// Also `None` before the first attempt.
    pub why: Option<String>,
}

/// Event that a subscriber receives; the numbers increase.
#[derive(Clone, Debug)]
pub enum FeedEvent {
    Synopsis(u64, Arc<CachedSynopsis>),
    Unreadable(u64, Arc<UnreadableMessage>),
    Source(FeedConnection),
}

/// Position to which a subscriber has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedCursor {
    /// The number of the last event read.
    pub number: u64,
    /// Number of changes of the connection by then.
    connections: Option<u64>,
}

impl FeedCursor {
    /// After the event with this number.
    pub fn after(number: u64) -> Self {
        FeedCursor {
            number,
            connections: None,
        }
    }
}

/// The synopses of one release and key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SynopsisSeries {
    pub pipeline: String,
    pub release: String,
    pub key: Option<String>,
}

impl SynopsisSeries {
    pub fn of(about: &Description) -> Self {
        SynopsisSeries {
            pipeline: about.pipeline.clone(),
            release: about.release.clone(),
            key: about.key.clone(),
        }
    }
}

/// Orders the synopses of a series and identifies copies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SynopsisAge {
    window_end: Timestamp,
    published: Timestamp,
    /// The row of the ledger.
    sequence: u64,
    ledger: String,
}

impl SynopsisAge {
    fn of(about: &Description) -> Self {
        SynopsisAge {
            window_end: about.window.end,
            published: about.published,
            sequence: about.ledger.sequence,
            ledger: about.ledger.id.clone(),
        }
    }
}

#[derive(Debug)]
pub(super) struct SynopsisCache {
    max_bytes: usize,
    bytes: usize,
    newest: u64,
    synopses: BTreeMap<u64, Arc<CachedSynopsis>>,
    series: BTreeMap<SynopsisSeries, BTreeMap<SynopsisAge, u64>>,
    unreadable: BTreeMap<u64, Arc<UnreadableMessage>>,
    connection: FeedConnection,
    connections: u64,
}

impl Default for SynopsisCache {
    fn default() -> Self {
        SynopsisCache {
            max_bytes: MAX_BYTES,
            bytes: 0,
            newest: 0,
            synopses: BTreeMap::new(),
            series: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            connection: FeedConnection::default(),
            connections: 0,
        }
    }
}

impl SynopsisCache {
    /// Returns whether it was new.
    pub fn add_synopsis(&mut self, cached: CachedSynopsis) -> bool {
        let series = SynopsisSeries::of(cached.synopsis.description());
        let age = SynopsisAge::of(cached.synopsis.description());
        let known = self.series.entry(series.clone()).or_default();
        let is_too_old =
            known.len() >= PER_KEY && known.keys().next().is_some_and(|oldest| age < *oldest);
        if is_too_old || known.contains_key(&age) {
            return false;
        }
        self.newest += 1;
        known.insert(age, self.newest);
        if known.len() > PER_KEY {
            self.drop_oldest(&series);
        }
        self.bytes += cached_size(&cached);
        self.synopses.insert(self.newest, Arc::new(cached));
        while self.bytes > self.max_bytes {
            let longest = self.series.iter().max_by_key(|(_, known)| known.len());
            let Some((longest, _)) = longest else { break };
            let longest = longest.clone();
            self.drop_oldest(&longest);
        }
        true
    }

    fn drop_oldest(&mut self, series: &SynopsisSeries) {
        let Some(known) = self.series.get_mut(series) else {
            return;
        };
        if let Some((_, number)) = known.pop_first()
            && let Some(cached) = self.synopses.remove(&number)
        {
            self.bytes -= cached_size(&cached);
        }
        if known.is_empty() {
            self.series.remove(series);
        }
    }

    /// Returns whether it was new.
    pub fn add_unreadable(&mut self, unreadable: UnreadableMessage) -> bool {
        if self.unreadable.values().any(|known| **known == unreadable) {
            return false;
        }
        self.newest += 1;
        self.unreadable.insert(self.newest, Arc::new(unreadable));
        if self.unreadable.len() > MAX_UNREADABLE {
            self.unreadable.pop_first();
        }
        true
    }

    /// Returns whether the state changed.
    pub fn set_connection(&mut self, connection: FeedConnection) -> bool {
        let is_new = self.connection != connection;
        if is_new {
            self.connection = connection;
            self.connections += 1;
        }
        is_new
    }

    pub fn connection(&self) -> &FeedConnection {
        &self.connection
    }

    pub fn synopses(&self) -> Vec<Arc<CachedSynopsis>> {
        let mut all: Vec<(&SynopsisAge, &u64)> = self.series.values().flatten().collect();
        all.sort_unstable();
        all.iter()
            .filter_map(|(_, number)| self.synopses.get(number).cloned())
            .collect()
    }

    pub fn remaining_after(&self, cursor: FeedCursor) -> usize {
        self.synopses
            .range(cursor.number.saturating_add(1)..)
            .count()
    }

    pub fn events_since(&self, cursor: FeedCursor) -> (Vec<FeedEvent>, FeedCursor) {
        let after = cursor.number.saturating_add(1);
        let mut by_number = BTreeMap::new();
        for (number, cached) in self.synopses.range(after..).take(BATCH) {
            by_number.insert(*number, FeedEvent::Synopsis(*number, cached.clone()));
        }
        for (number, what) in self.unreadable.range(after..).take(BATCH) {
            by_number.insert(*number, FeedEvent::Unreadable(*number, what.clone()));
        }
        let mut next = FeedCursor {
            number: cursor.number,
            connections: Some(self.connections),
        };
        let mut events = Vec::new();
        if cursor.connections != next.connections {
            events.push(FeedEvent::Source(self.connection.clone()));
        }
        for (number, event) in by_number.into_iter().take(BATCH) {
            next.number = number;
            events.push(event);
        }
        (events, next)
    }
}

fn cached_size(cached: &CachedSynopsis) -> usize {
    cached.json.len() + size_of_val(cached.synopsis.values()) + OVERHEAD
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn cached(key: &str, hour: u32, sequence: u64) -> CachedSynopsis {
        let mut about: Description = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
        about.key = Some(key.to_owned());
        about.window.start = about.window.start.plus(Duration::from_secs(3600) * hour);
        about.window.end = about.window.end.plus(Duration::from_secs(3600) * hour);
        about.ledger.sequence = sequence;
        let synopsis = Synopsis::new(about, vec![1.0, 2.0, 3.0]).unwrap();
        CachedSynopsis {
            json: synopsis.to_json().unwrap(),
            synopsis,
        }
    }

    fn sequences(cache: &SynopsisCache) -> Vec<u64> {
        cache
            .synopses()
            .iter()
            .map(|cached| cached.synopsis.description().ledger.sequence)
            .collect()
    }

    fn seen(cache: &SynopsisCache, mut cursor: FeedCursor) -> Vec<u64> {
        let mut seen = Vec::new();
        loop {
            let (events, next) = cache.events_since(cursor);
            if next == cursor {
                return seen;
            }
            cursor = next;
            seen.extend(events.iter().filter_map(|event| match event {
                FeedEvent::Synopsis(number, _) | FeedEvent::Unreadable(number, _) => Some(*number),
                FeedEvent::Source(_) => None,
            }));
        }
    }

    #[test]
    fn the_newest_of_each_key_are_kept_whatever_the_order_and_copies_are_dropped() {
        let mut cache = SynopsisCache::default();
        for hour in (0..100).rev() {
            cache.add_synopsis(cached("JFK", hour, u64::from(hour)));
        }
        assert!(cache.add_synopsis(cached("LGA", 0, 0)));
        assert!(!cache.add_synopsis(cached("LGA", 0, 0)), "a copy");
        assert!(
            !cache.add_synopsis(cached("JFK", 7, 7)),
            "older than all that are kept"
        );
        assert_eq!(
            sequences(&cache),
            std::iter::once(0).chain(40..100).collect::<Vec<_>>()
        );
        assert!(cache.add_synopsis(cached("JFK", 100, 100)));
        assert_eq!(sequences(&cache)[1], 41);
    }

    #[test]
    fn all_together_never_take_more_than_their_bytes() {
        let one = cached_size(&cached("JFK", 0, 0));
        let mut cache = SynopsisCache {
            max_bytes: 10 * one + one / 2,
            ..SynopsisCache::default()
        };
        for hour in 0..20 {
            cache.add_synopsis(cached("JFK", hour, u64::from(hour)));
            cache.add_synopsis(cached(&format!("key {}", hour % 3), hour, u64::from(hour)));
        }
        assert_eq!(cache.synopses.len(), 10);
        assert_eq!(
            cache.bytes,
            cache
                .synopses
                .values()
                .map(|cached| cached_size(cached))
                .sum::<usize>()
        );
        let lengths: Vec<usize> = cache.series.values().map(BTreeMap::len).collect();
        assert!(
            lengths.iter().all(|length| (2..=3).contains(length)),
            "none is starved: {lengths:?}"
        );
        cache.max_bytes = 0;
        cache.add_synopsis(cached("JFK", 99, 99));
        assert!(cache.synopses.is_empty() && cache.series.is_empty() && cache.bytes == 0);
    }

    #[test]
    fn whoever_looks_sees_every_event_once_and_can_go_on_where_he_was() {
        let mut cache = SynopsisCache::default();
        let (events, start) = cache.events_since(FeedCursor::default());
        assert!(matches!(
            &events[..],
            [FeedEvent::Source(FeedConnection {
                connected: false,
                why: None
            })]
        ));
        for hour in 0..40 {
            cache.add_synopsis(cached("JFK", hour, u64::from(hour)));
            cache.add_unreadable(UnreadableMessage {
                place: format!("offset {hour}"),
                why: "no".to_owned(),
            });
            cache.add_unreadable(UnreadableMessage {
                place: format!("offset {hour}"),
                why: "no".to_owned(),
            });
        }
        let numbers = seen(&cache, start);
        assert!(
            numbers.is_sorted() && numbers.len() == 40 + MAX_UNREADABLE,
            "{numbers:?}"
        );
        assert_eq!(
            seen(&cache, FeedCursor::after(70)),
            (71..=80).collect::<Vec<_>>()
        );
        assert_eq!(cache.remaining_after(FeedCursor::after(70)), 5);
        assert!(cache.set_connection(FeedConnection {
            connected: true,
            why: None
        }));
        assert!(matches!(
            &cache.events_since(FeedCursor::after(80)).0[..],
            [FeedEvent::Source(FeedConnection {
                connected: true,
                ..
            })]
        ));
        assert!(cache.events_since(FeedCursor::after(u64::MAX)).0.len() == 1);
    }
}
