//! Contents of a log: a fold over its records, from the first that it has. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::body::{BodyContent, ClearPart, OpenedBody, RowBody, open_body};
use super::key::LogKey;
use super::pieces::{BodyAssembly, WholeBody};
use super::snapshot::Snapshot;
use crate::chain::{ClosedWindow, Digest, Head, LedgerRow, ReleaseOutcome};
use crate::entry::LedgerEntry;
use bernstream_synopsis::clock::Timestamp;

/// Most rows of which the marks are known. The newest one says all that they say.
const MOST_MARKS: usize = 1024;

/// Most rows of which it is known that their makers have handed over; of consequence is the newest accepted one.
const MOST_HANDOVERS: usize = 64;

/// A row with some digest, as its bodies show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KnownRow {
    pub sequence: u64,
    pub previous: Option<Digest>,
    /// Number of its whole bodies.
    pub copies: u64,
    /// One of them has its messages, or it has none.
    pub has_messages: bool,
    /// The most states that one of them has.
    pub states: usize,
    /// Time at which its messages were due; `None` if it has none.
    pub due: Option<Timestamp>,
    /// The offset of the first piece of all its bodies.
    pub first: i64,
}

/// A checkpoint that is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoggedCheckpoint {
    /// The row that it stands at.
    pub row: Head,
    /// It is good for chains that have this row too.
    pub from: Head,
    /// The offset of its first piece.
    pub first: i64,
}

/// A row of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainRow {
    pub head: Head,
    pub known: KnownRow,
}

/// Rows from which a ledger can be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// The checkpoint before the rows; without one they begin with the first.
    pub base: Option<LoggedCheckpoint>,
    /// In sequence.
    pub rows: Vec<ChainRow>,
}

/// Bodies that are in a log.
#[derive(Debug, Default)]
pub(super) struct LogContents {
    pieces: BodyAssembly,
    rows: HashMap<Digest, KnownRow>,
    points: Vec<LoggedCheckpoint>,
    marks: BTreeMap<u64, HashSet<Digest>>,
    /// The newest rows whose makers have handed over, and when.
    handovers: BTreeMap<Head, Timestamp>,
    /// Rows of which there are bodies that another key opens.
    closed: HashSet<Digest>,
    /// The witnesses of the ledgers whose first rows are there.
    witnesses: BTreeSet<String>,
    /// Number of bytes that were read.
    pub bytes: u64,
}

/// A body that a record has made whole.
pub(super) enum CompletedBody {
    Row(Box<RowBody>),
    Checkpoint(Box<Snapshot>),
    Other,
}

impl LogContents {
    /// Takes the next record, that at `offset`; returns the body that is whole now.
    pub fn take_record(
        &mut self,
        key: &LogKey,
        offset: i64,
        record: &[u8],
    ) -> Option<CompletedBody> {
        self.bytes += record.len() as u64;
        let WholeBody { first, bytes } = self.pieces.take_piece(offset, record)?;
        match open_body(key, &bytes) {
            OpenedBody::Foreign => None,
            OpenedBody::Closed(clear) => {
                self.closed.insert(clear.head().digest);
                Some(CompletedBody::Other)
            }
            OpenedBody::Open(clear, BodyContent::Published) => {
                self.note_mark(clear.head());
                Some(CompletedBody::Other)
            }
            OpenedBody::Open(clear, BodyContent::HandsOver(at)) => {
                self.handovers.insert(clear.head(), at);
                if self.handovers.len() > MOST_HANDOVERS {
                    self.handovers.pop_first();
                }
                Some(CompletedBody::Other)
            }
            OpenedBody::Open(clear, BodyContent::Row(body)) => {
                self.note_row(clear, &body, first);
                Some(CompletedBody::Row(body))
            }
            OpenedBody::Open(_, BodyContent::Checkpoint(snapshot)) => {
                self.know_witness(&snapshot.genesis);
                self.points.push(LoggedCheckpoint {
                    row: snapshot.row.head,
                    from: snapshot.from,
                    first,
                });
                Some(CompletedBody::Checkpoint(snapshot))
            }
        }
    }

    fn note_mark(&mut self, Head { sequence, digest }: Head) {
        self.marks.entry(sequence).or_default().insert(digest);
        if self.marks.len() > MOST_MARKS {
            self.marks.pop_first();
        }
    }

    fn note_row(&mut self, clear: ClearPart, body: &RowBody, first: i64) {
        let ClearPart::Row {
            sequence,
            digest,
            previous,
        } = clear
        else {
            return;
        };
        let due = match body.entry.row() {
            Ok(LedgerRow::Window(ClosedWindow {
                outcome: ReleaseOutcome::Released { publish_at, .. },
                ..
            })) => Some(publish_at),
            _ => None,
        };
        if previous.is_none() {
            self.know_witness(&body.entry);
            // Marks on later rows that come before the first one are another ledger's, which this one has replaced.
            if !self.rows.contains_key(&digest) {
                drop(self.marks.split_off(&sequence));
            }
        }
        let known = self.rows.entry(digest).or_insert(KnownRow {
            sequence,
            previous,
            due,
            first,
            ..KnownRow::default()
        });
        known.copies += 1;
        known.first = known.first.min(first);
        known.has_messages |= body.messages.is_some() || due.is_none();
        known.states = known.states.max(body.states.len());
    }

    fn know_witness(&mut self, first: &LedgerEntry) {
        if let Ok(LedgerRow::Genesis(genesis)) = first.row() {
            self.witnesses.insert(genesis.witness);
        }
    }

    /// Returns true if there are rows of a pipeline with another witness, or that another key opens: whose these are is not known.
    pub fn is_shared(&self, witness: &str) -> bool {
        !self.closed.is_empty() || self.witnesses.iter().any(|known| known != witness)
    }

    pub fn row(&self, digest: &Digest) -> Option<&KnownRow> {
        self.rows.get(digest)
    }

    /// Forgets a row that nobody asks for again.
    pub fn forget_row(&mut self, digest: &Digest) {
        self.rows.remove(digest);
    }

    /// Forgets the rows up to number `sequence`, void ones too.
    pub fn forget_to(&mut self, sequence: u64) {
        self.rows.retain(|_, known| known.sequence > sequence);
    }

    /// Offset of the first piece of all bodies of rows that are not forgotten.
    pub fn first_offset(&self) -> Option<i64> {
        self.rows.values().map(|known| known.first).min()
    }

    /// The checkpoints, void ones too.
    pub fn points(&self) -> &[LoggedCheckpoint] {
        &self.points
    }

    /// Forgets the checkpoints of rows before number `sequence`.
    pub fn forget_points_before(&mut self, sequence: u64) {
        self.points.retain(|point| point.row.sequence >= sequence);
    }

    /// The rows after number `sequence`, void ones too.
    pub fn later_than(&self, sequence: u64) -> Vec<Head> {
        let mut later = Vec::new();
        for (&digest, known) in &self.rows {
            if known.sequence > sequence {
                later.push(Head {
                    sequence: known.sequence,
                    digest,
                });
            }
        }
        later
    }

    /// Number of its rows, void ones too.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if only another key opens the bodies of a row.
    pub fn is_closed(&self, digest: &Digest) -> bool {
        !self.rows.contains_key(digest) && self.closed.contains(digest)
    }

    pub fn is_marked(&self, head: &Head) -> bool {
        self.marks
            .get(&head.sequence)
            .is_some_and(|digests| digests.contains(&head.digest))
    }

    /// Time at which the maker of the claim on `head` has handed over, if it has.
    pub fn handed_over(&self, head: &Head) -> Option<Timestamp> {
        self.handovers.get(head).copied()
    }

    /// The rows with a mark, from number `first` on, the newest first.
    pub fn marked_from(&self, first: u64) -> impl Iterator<Item = Head> {
        let marks = self.marks.range(first..).rev();
        marks.flat_map(|(sequence, digests)| {
            digests.iter().map(|digest| Head {
                sequence: *sequence,
                digest: *digest,
            })
        })
    }

    /// Returns true if it says that anything was published.
    pub fn has_marks(&self) -> bool {
        !self.marks.is_empty() || !self.points.is_empty()
    }

    /// The rows up to `head` from the newest checkpoint or the first row on, by their previous digests: neither a row nor a checkpoint of a
    /// void branch is one of them.
    ///
    /// # Errors
    ///
    /// The newest one that is not there.
    pub fn chain_to(&self, head: Head) -> Result<Chain, Head> {
        let mut rows = Vec::new();
        let mut next = Some(head);
        let mut passed = HashSet::new();
        let mut base = None;
        while let Some(head) = next {
            passed.insert(head.digest);
            base = self
                .points
                .iter()
                .find(|point| point.row == head && passed.contains(&point.from.digest))
                .copied();
            if base.is_some() {
                break;
            }
            let known = self
                .rows
                .get(&head.digest)
                .filter(|known| known.sequence == head.sequence)
                .ok_or(head)?;
            rows.push(ChainRow {
                head,
                known: *known,
            });
            next = known.previous.map(|digest| Head {
                sequence: head.sequence.wrapping_sub(1),
                digest,
            });
        }
        rows.reverse();
        Ok(Chain { base, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::super::body::{seal_mark, seal_row};
    use super::super::pieces::split_body;
    use super::*;
    use crate::fixtures::{genesis, price, released, span};

    const KEY: [u8; 32] = [1; 32];

    /// Rows that follow `before`, with other digests each time, and their records.
    fn rows(before: Option<&LedgerEntry>, count: u64) -> Vec<(LedgerEntry, Vec<Vec<u8>>)> {
        let mut made: Vec<(LedgerEntry, Vec<Vec<u8>>)> = Vec::new();
        for _ in 0..count {
            let before = made.last().map(|(entry, _)| entry).or(before);
            let row = match before {
                None => LedgerRow::Genesis(genesis(0)),
                Some(_) => LedgerRow::Window(released(span(0, 10), &[(span(0, 10), price(5))])),
            };
            let sequence = before.map_or(0, |before| before.head.sequence + 1);
            let entry = LedgerEntry::new(before.map(LedgerEntry::link_after), sequence, &row, None)
                .unwrap();
            let body = RowBody {
                entry: entry.clone(),
                messages: None,
                states: vec![],
            };
            let whole = seal_row(
                &LogKey::new(&KEY),
                &body,
                before.map(|before| before.head.digest),
            )
            .unwrap();
            made.push((entry, split_body(&whole, 300)));
        }
        made
    }

    fn read(records: impl IntoIterator<Item = Vec<u8>>) -> LogContents {
        let mut contents = LogContents::default();
        for (offset, record) in (0..).zip(records) {
            contents.take_record(&LogKey::new(&KEY), offset, &record);
        }
        contents
    }

    #[test]
    fn the_chain_goes_back_from_the_accepted_row_and_passes_void_ones() {
        let accepted = rows(None, 4);
        let void = rows(Some(&accepted[1].0), 3);
        // A void branch that comes first, and piece by piece between the others.
        let mixed = void.iter().zip(&accepted).flat_map(|(void, accepted)| {
            void.1
                .iter()
                .zip(&accepted.1)
                .flat_map(|(a, b)| [a.clone(), b.clone()])
                .collect::<Vec<_>>()
        });
        let rest = accepted
            .iter()
            .chain(&void)
            .flat_map(|(_, records)| records.clone());
        let contents = read(mixed.chain(rest));
        let head = accepted[3].0.head;
        let chain: Vec<Head> = contents
            .chain_to(head)
            .unwrap()
            .rows
            .into_iter()
            .map(|row| row.head)
            .collect();
        assert_eq!(
            chain,
            accepted
                .iter()
                .map(|(entry, _)| entry.head)
                .collect::<Vec<_>>()
        );
        assert_eq!(contents.row_count(), 7);
    }

    #[test]
    fn the_newest_row_that_is_missing_is_named() {
        let all = rows(None, 4);
        for missing in 0..4 {
            let there = all
                .iter()
                .enumerate()
                .filter(|(place, _)| *place != missing);
            let contents = read(there.flat_map(|(_, (_, records))| records.clone()));
            assert_eq!(
                contents.chain_to(all[3].0.head).unwrap_err(),
                all[missing].0.head
            );
        }
        let another = LogKey::new(&[2; 32]);
        let mut contents = LogContents::default();
        all.iter()
            .flat_map(|(_, records)| records)
            .for_each(|record| drop(contents.take_record(&another, 0, record)));
        assert!(contents.is_closed(&all[3].0.head.digest) && contents.row_count() == 0);
    }

    #[test]
    fn a_mark_is_one_of_its_digest_and_the_newest_are_known() {
        let head = |sequence: u64, seed: u8| Head {
            sequence,
            digest: Digest::of_bytes(&[seed]),
        };
        let record =
            |head| split_body(&seal_mark(&LogKey::new(&KEY), head).unwrap(), 300).remove(0);
        let contents = read([record(head(3, 1)), record(head(3, 2)), record(head(4, 1))]);
        assert!(
            contents.is_marked(&head(3, 1))
                && contents.is_marked(&head(3, 2))
                && !contents.is_marked(&head(4, 2))
        );
        let many = read((0..3000).map(|n| record(head(n, 1))));
        assert!(many.is_marked(&head(2999, 1)) && many.marks.len() == MOST_MARKS);
    }
}
