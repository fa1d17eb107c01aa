//! What is kept of what was read: the newest synopses, bounded for each key and in all.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::synopsis::Synopsis;

/// Synopses of one pipeline, release and key.
pub(super) const PER_KEY: usize = 60;
/// Of all synopses together.
const BYTES: usize = 64 << 20;
/// What a synopsis takes beside its values and its text, about.
const OVERHEAD: usize = 4096;
const UNREADABLE: usize = 20;
/// Events that are handed out at a time: what a slow reader holds.
const SOME: usize = 1;

/// A synopsis, and itself as JSON.
#[derive(Debug)]
pub struct Kept {
    pub synopsis: Synopsis,
    pub json: String,
}

/// A message that is no synopsis.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// The partition and the offset, or the name of the file.
    #[serde(rename = "where")]
    pub place: String,
    pub why: String,
}

/// Whether the topic or folder answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connection {
    pub connected: bool,
    /// None before the first attempt too.
    pub why: Option<String>,
}

/// What somebody who looks is told; numbers rise from event to event.
#[derive(Clone, Debug)]
pub enum Event {
    Synopsis(u64, Arc<Kept>),
    Unreadable(u64, Arc<Unreadable>),
    Source(Connection),
}

/// How far somebody has looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The number of the newest event that was seen.
    pub number: u64,
    /// How often the connection had changed.
    connections: Option<u64>,
}

impl Cursor {
    /// After the event of that number.
    pub fn after(number: u64) -> Self {
        Cursor { number, connections: None }
    }
}

/// Pipeline, release and key.
type Group = (String, String, Option<String>);

/// Orders the synopses of a group, and tells copies: the end of the window, when it was published, and the row of which ledger
/// paid for it.
type Age = (Timestamp, Timestamp, u64, String);

#[derive(Debug)]
pub(super) struct Shelf {
    most_bytes: usize,
    bytes: usize,
    newest: u64,
    synopses: BTreeMap<u64, Arc<Kept>>,
    groups: BTreeMap<Group, BTreeMap<Age, u64>>,
    unreadable: BTreeMap<u64, Arc<Unreadable>>,
    connection: Connection,
    connections: u64,
}

impl Default for Shelf {
    fn default() -> Self {
        Shelf {
            most_bytes: BYTES,
            bytes: 0,
            newest: 0,
            synopses: BTreeMap::new(),
            groups: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            connection: Connection::default(),
            connections: 0,
        }
    }
}

impl Shelf {
    /// Whether it was new.
    pub fn add(&mut self, kept: Kept) -> bool {
        let (group, age) = place(&kept.synopsis);
        let known = self.groups.entry(group.clone()).or_default();
        let is_too_old = known.len() >= PER_KEY && known.first_key_value().is_some_and(|(oldest, _)| age < *oldest);
        if is_too_old || known.contains_key(&age) {
            return false;
        }
        self.newest += 1;
        known.insert(age, self.newest);
        if known.len() > PER_KEY {
            self.drop_oldest(&group);
        }
        self.bytes += size(&kept);
        self.synopses.insert(self.newest, Arc::new(kept));
        while self.bytes > self.most_bytes {
            let longest = self.groups.iter().max_by_key(|(_, known)| known.len()).map(|(group, _)| group.clone());
            let Some(group) = longest else { break };
            self.drop_oldest(&group);
        }
        true
    }

    fn drop_oldest(&mut self, group: &Group) {
        let Some(known) = self.groups.get_mut(group) else { return };
        if let Some((_, number)) = known.pop_first()
            && let Some(kept) = self.synopses.remove(&number)
        {
            self.bytes -= size(&kept);
        }
        if known.is_empty() {
            self.groups.remove(group);
        }
    }

    /// Whether it was new.
    pub fn refuse(&mut self, unreadable: Unreadable) -> bool {
        if self.unreadable.values().any(|known| **known == unreadable) {
            return false;
        }
        self.newest += 1;
        self.unreadable.insert(self.newest, Arc::new(unreadable));
        if self.unreadable.len() > UNREADABLE {
            self.unreadable.pop_first();
        }
        true
    }

    /// Whether it was another one.
    pub fn connect(&mut self, connection: Connection) -> bool {
        let is_new = self.connection != connection;
        if is_new {
            self.connection = connection;
            self.connections += 1;
        }
        is_new
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    pub fn kept(&self) -> Vec<Arc<Kept>> {
        let mut all: Vec<(&Age, u64)> = self.groups.values().flatten().map(|(age, number)| (age, *number)).collect();
        all.sort_unstable();
        all.iter().filter_map(|(_, number)| self.synopses.get(number).cloned()).collect()
    }

    pub fn left(&self, cursor: Cursor) -> usize {
        self.synopses.range(cursor.number.saturating_add(1)..).count()
    }

    pub fn since(&self, cursor: Cursor) -> (Vec<Event>, Cursor) {
        let after = cursor.number.saturating_add(1);
        let mut events: Vec<(u64, Event)> = Vec::new();
        events.extend(self.synopses.range(after..).take(SOME).map(|(n, kept)| (*n, Event::Synopsis(*n, kept.clone()))));
        let unreadable = self.unreadable.range(after..).take(SOME);
        events.extend(unreadable.map(|(n, what)| (*n, Event::Unreadable(*n, what.clone()))));
        events.sort_unstable_by_key(|(number, _)| *number);
        events.truncate(SOME);
        let number = events.last().map_or(cursor.number, |(number, _)| *number);
        let mut events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
        if cursor.connections != Some(self.connections) {
            events.insert(0, Event::Source(self.connection.clone()));
        }
        (events, Cursor { number, connections: Some(self.connections) })
    }
}

fn place(synopsis: &Synopsis) -> (Group, Age) {
    let about = synopsis.description();
    let group = (about.pipeline.clone(), about.release.clone(), about.key.clone());
    (group, (about.window.end, about.published, about.ledger.sequence, about.ledger.id.clone()))
}

fn size(kept: &Kept) -> usize {
    kept.json.len() + size_of_val(kept.synopsis.values()) + OVERHEAD
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::synopsis::description::Description;

    fn kept(key: &str, hour: u32, sequence: u64) -> Kept {
        let mut about: Description = serde_json::from_str(include_str!("../synopsis/example.json")).unwrap();
        about.key = Some(key.to_owned());
        about.window.start = about.window.start.plus(Duration::from_secs(3600) * hour);
        about.window.end = about.window.end.plus(Duration::from_secs(3600) * hour);
        about.ledger.sequence = sequence;
        let synopsis = Synopsis::new(about, vec![1.0, 2.0, 3.0]).unwrap();
        Kept { json: synopsis.to_json().unwrap(), synopsis }
    }

    fn sequences(shelf: &Shelf) -> Vec<u64> {
        shelf.kept().iter().map(|kept| kept.synopsis.description().ledger.sequence).collect()
    }

    fn seen(shelf: &Shelf, mut cursor: Cursor) -> Vec<u64> {
        let mut seen = Vec::new();
        loop {
            let (events, next) = shelf.since(cursor);
            if next == cursor {
                return seen;
            }
            cursor = next;
            seen.extend(events.iter().filter_map(|event| match event {
                Event::Synopsis(number, _) | Event::Unreadable(number, _) => Some(*number),
                Event::Source(_) => None,
            }));
        }
    }

    #[test]
    fn the_newest_of_each_key_are_kept_whatever_the_order_and_copies_are_dropped() {
        let mut shelf = Shelf::default();
        for hour in (0..100).rev() {
            shelf.add(kept("JFK", hour, u64::from(hour)));
        }
        assert!(shelf.add(kept("LGA", 0, 0)));
        assert!(!shelf.add(kept("LGA", 0, 0)), "a copy");
        assert!(!shelf.add(kept("JFK", 7, 7)), "older than all that are kept");
        assert_eq!(sequences(&shelf), std::iter::once(0).chain(40..100).collect::<Vec<_>>());
        assert!(shelf.add(kept("JFK", 100, 100)));
        assert_eq!(sequences(&shelf)[1], 41);
    }

    #[test]
    fn all_together_never_take_more_than_their_bytes() {
        let one = size(&kept("JFK", 0, 0));
        let mut shelf = Shelf { most_bytes: 10 * one + one / 2, ..Shelf::default() };
        for hour in 0..20 {
            shelf.add(kept("JFK", hour, u64::from(hour)));
            shelf.add(kept(&format!("key {}", hour % 3), hour, u64::from(hour)));
        }
        assert_eq!(shelf.synopses.len(), 10);
        assert_eq!(shelf.bytes, shelf.synopses.values().map(|kept| size(kept)).sum::<usize>());
        let lengths: Vec<usize> = shelf.groups.values().map(BTreeMap::len).collect();
        assert!(lengths.iter().all(|length| (2..=3).contains(length)), "none is starved: {lengths:?}");
        shelf.most_bytes = 0;
        shelf.add(kept("JFK", 99, 99));
        assert!(shelf.synopses.is_empty() && shelf.groups.is_empty() && shelf.bytes == 0);
    }

    #[test]
    fn whoever_looks_sees_every_event_once_and_can_go_on_where_he_was() {
        let mut shelf = Shelf::default();
        let (events, start) = shelf.since(Cursor::default());
        assert!(matches!(&events[..], [Event::Source(Connection { connected: false, why: None })]));
        for hour in 0..40 {
            shelf.add(kept("JFK", hour, u64::from(hour)));
            shelf.refuse(Unreadable { place: format!("offset {hour}"), why: "no".to_owned() });
            shelf.refuse(Unreadable { place: format!("offset {hour}"), why: "no".to_owned() });
        }
        let numbers = seen(&shelf, start);
        assert!(numbers.is_sorted() && numbers.len() == 40 + UNREADABLE, "{numbers:?}");
        assert_eq!(seen(&shelf, Cursor::after(70)), (71..=80).collect::<Vec<_>>());
        assert_eq!(shelf.left(Cursor::after(70)), 5);
        assert!(shelf.connect(Connection { connected: true, why: None }));
        assert!(matches!(&shelf.since(Cursor::after(80)).0[..], [Event::Source(Connection { connected: true, .. })]));
        assert!(shelf.since(Cursor::after(u64::MAX)).0.len() == 1);
    }
}
