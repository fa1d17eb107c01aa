//! Pairs of neighbouring streams, from the words of the promise.
//!
//! "One record more or less", "other values in one record, which may also make it invalid, or valid", "all records of one user (in one
//! period) more or less": any row, however odd, in a message with others, in ones of its own, before or after others, at any time and
//! in every form that a producer can write it in; of a user any number of rows, wherever they are. Every other row keeps its message
//! timestamp and its place relative to the others. How the program keeps the promise is not looked at, but for the values that move a
//! function most: those are found by trying.

use super::pair::NeighbouringPair;
use super::stage::BackgroundStream;
use super::subject::AuditSubject;
use crate::{records, users, values};
use bernstream_synopsis::Adjacency;

/// All pairs for a subject; of each kind the most telling one comes first, then of each kind the next.
pub fn neighbouring_pairs(subject: &AuditSubject<'_>) -> Vec<NeighbouringPair> {
    let stage = BackgroundStream::new(subject);
    in_turn(match (&subject.plan.rules.cap, subject.adjacency) {
        (Some(cap), _) => users::user_families(&stage, cap),
        (None, Adjacency::AddRemove) => records::record_families(&stage),
        (None, Adjacency::ReplaceOne) => values::value_families(&stage),
    })
}

/// The first of each family, then the second of each, and so on.
fn in_turn(families: Vec<Vec<NeighbouringPair>>) -> Vec<NeighbouringPair> {
    let mut families: Vec<_> = families.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    loop {
        let known = all.len();
        all.extend(families.iter_mut().filter_map(Iterator::next));
        if all.len() == known {
            return all;
        }
    }
}
