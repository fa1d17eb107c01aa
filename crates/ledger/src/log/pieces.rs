//! Bodies in pieces: records that a broker takes, put together by the digest of the whole, in any order. Pure.
//!
//! Writers do not wait for each other, so their pieces may be interleaved; an append whose acknowledgement got lost is sent again, so a
//! piece may come twice; and one that was cut short never becomes whole.
//!
//! ```text
//! record = "bernstream log 1\n" | SHA-256 of the whole | part, 4 bytes | count, 4 bytes | the part
//! ```

use std::collections::{BTreeMap, HashMap};

use crate::chain::Digest;

const MAGIC: &[u8] = b"bernstream log 1\n";

/// Number of bytes of a record that are not the part.
pub(super) const OVERHEAD: usize = MAGIC.len() + 32 + 4 + 4;

/// The most bodies that are put together at once. One that is given up is missing, and its worker appends it again, in one go.
const MOST_OPEN: usize = 64;

/// The records of a body, none of more than `largest` bytes.
pub(super) fn split_body(whole: &[u8], largest: usize) -> Vec<Vec<u8>> {
    let parts: Vec<&[u8]> = whole
        .chunks(largest.saturating_sub(OVERHEAD).max(1))
        .collect();
    let id = Digest::of_bytes(whole);
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let mut records = Vec::with_capacity(parts.len());
    for (part, bytes) in (0..count).zip(parts) {
        records.push(
            [
                MAGIC,
                id.as_ref(),
                &part.to_be_bytes(),
                &count.to_be_bytes(),
                bytes,
            ]
            .concat(),
        );
    }
    records
}

/// Bodies of which some pieces have come.
#[derive(Debug, Default)]
pub(super) struct BodyAssembly {
    open: HashMap<BodyId, OpenBody>,
    /// Number of records that have come.
    taken: u64,
}

/// Name of a body in its pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BodyId {
    digest: Digest,
    /// Number of its pieces.
    count: u32,
}

/// The pieces of a body that have come.
#[derive(Debug, Default)]
struct OpenBody {
    /// Offset of the first of them.
    first: i64,
    parts: BTreeMap<u32, Vec<u8>>,
    /// Number of the record that was the newest of them.
    newest: u64,
}

/// A body that is whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WholeBody {
    /// Offset of its first piece.
    pub first: i64,
    pub bytes: Vec<u8>,
}

impl BodyAssembly {
    /// Takes the record at `offset`; returns the body, if it is whole now. A record that is no piece is ignored.
    pub fn take_piece(&mut self, offset: i64, record: &[u8]) -> Option<WholeBody> {
        let rest = record.strip_prefix(MAGIC)?;
        let (digest, rest) = rest.split_first_chunk::<32>()?;
        let (part, rest) = rest.split_first_chunk::<4>()?;
        let (count, bytes) = rest.split_first_chunk::<4>()?;
        let part = u32::from_be_bytes(*part);
        let id = BodyId {
            digest: Digest::from(*digest),
            count: u32::from_be_bytes(*count),
        };
        if part >= id.count {
            return None;
        }
        self.taken += 1;
        if id.count == 1 {
            return whole_body(id, offset, bytes.to_vec());
        }
        let open = self.open.entry(id).or_insert_with(|| OpenBody {
            first: offset,
            ..OpenBody::default()
        });
        open.newest = self.taken;
        open.parts.insert(part, bytes.to_vec());
        if open.parts.len() as u64 == u64::from(id.count) {
            let open = self.open.remove(&id)?;
            let parts: Vec<Vec<u8>> = open.parts.into_values().collect();
            return whole_body(id, open.first, parts.concat());
        }
        if self.open.len() > MOST_OPEN {
            let oldest = self.open.iter().min_by_key(|(_, open)| open.newest);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.open.remove(&oldest);
            }
        }
        None
    }
}

/// Returns the body of these bytes, if they have the digest that its pieces name.
fn whole_body(id: BodyId, first: i64, bytes: Vec<u8>) -> Option<WholeBody> {
    (Digest::of_bytes(&bytes) == id.digest).then_some(WholeBody { first, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(seed: u8) -> Vec<u8> {
        (0..1000_u32).map(|n| (n % 251) as u8 ^ seed).collect()
    }

    fn whole(records: impl IntoIterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
        let mut assembly = BodyAssembly::default();
        records
            .into_iter()
            .filter_map(|record| assembly.take_piece(0, &record))
            .map(|whole| whole.bytes)
            .collect()
    }

    #[test]
    fn a_body_comes_together_in_any_order_of_its_pieces() {
        let one = split_body(&body(1), 200);
        let other = split_body(&body(2), 200);
        assert!(one.len() > 5 && one.iter().all(|record| record.len() <= 200));
        assert_eq!(whole(one.clone()), [body(1)]);
        assert_eq!(whole(one.iter().rev().cloned()), [body(1)]);
        // Two writers, piece by piece in turn.
        let turns = one
            .iter()
            .zip(&other)
            .flat_map(|(one, other)| [one.clone(), other.clone()]);
        assert_eq!(whole(turns), [body(1), body(2)]);
    }

    #[test]
    fn doubled_lost_and_foreign_pieces_do_no_harm() {
        let pieces = split_body(&body(1), 200);
        let doubled = pieces
            .iter()
            .flat_map(|piece| [piece.clone(), b"foreign".to_vec(), piece.clone()]);
        assert_eq!(whole(doubled), [body(1)]);
        assert_eq!(
            whole(pieces[1..].to_vec()),
            Vec::<Vec<u8>>::new(),
            "cut short"
        );
        // Cut short, and appended again from its first piece.
        assert_eq!(whole(pieces[..3].iter().chain(&pieces).cloned()), [body(1)]);
        let mut changed = pieces.clone();
        *changed[2].last_mut().unwrap() ^= 1;
        assert_eq!(
            whole(changed),
            Vec::<Vec<u8>>::new(),
            "not what its digest says"
        );
        assert_eq!(whole(split_body(&body(3), 10_000)), [body(3)]);
    }

    #[test]
    fn bodies_that_never_become_whole_are_given_up() {
        let mut assembly = BodyAssembly::default();
        for seed in 0..200 {
            assert!(
                assembly
                    .take_piece(0, &split_body(&body(seed), 200)[0])
                    .is_none()
            );
        }
        assert!(assembly.open.len() <= MOST_OPEN);
        let pieces = split_body(&body(201), 200);
        let whole = (7..)
            .zip(&pieces)
            .filter_map(|(offset, piece)| assembly.take_piece(offset, piece));
        let expected = WholeBody {
            first: 7,
            bytes: body(201),
        };
        assert!(whole.eq([expected]), "it begins with its first piece");
    }
}
