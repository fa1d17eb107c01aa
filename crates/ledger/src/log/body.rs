//! Bodies in a log: of a row, a checkpoint, and a mark that rows were published. Pure but for the nonces.
//!
//! ```text
//! body = clear part, a line of JSON | "\n" | nonce, 24 bytes | secret part and clear part, encrypted and authenticated
//! secret part = its length, 8 bytes | fields, each its length, 8 bytes, and its bytes | zeros
//! ```

use serde::{Deserialize, Serialize};

use super::fields::{RowNoise, put_field, put_states, take_field, take_states, text_field};
use super::key::LogKey;
use super::snapshot::Snapshot;
use crate::chain::{ClosedWindow, Digest, Head, LedgerRow, ReleaseOutcome, StateDigest};
use crate::entry::LedgerEntry;
use bernstream_synopsis::clock::Timestamp;

/// The smallest size that secret parts are filled up to.
const LEAST_PADDED: usize = 1024;

/// Clear part of a body, which anyone can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ClearPart {
    /// A row, and the digest of the one before it.
    Row {
        sequence: u64,
        digest: Digest,
        previous: Option<Digest>,
    },
    /// Everything that this row and those before it paid for was published.
    Published { sequence: u64, digest: Digest },
    /// The account after a row, for chains that have the row `from` too. Everything up to it was published.
    Checkpoint {
        sequence: u64,
        digest: Digest,
        from: Head,
    },
    /// Whoever claimed this row, the newest accepted one, leaves what comes next to others, from this time on. A hint.
    HandsOver {
        sequence: u64,
        digest: Digest,
        at: Timestamp,
    },
}

impl ClearPart {
    pub fn head(&self) -> Head {
        match *self {
            ClearPart::Row {
                sequence, digest, ..
            }
            | ClearPart::Published { sequence, digest }
            | ClearPart::Checkpoint {
                sequence, digest, ..
            }
            | ClearPart::HandsOver {
                sequence, digest, ..
            } => Head { sequence, digest },
        }
    }
}

/// A message of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyMessage {
    pub key: String,
    /// JSON list of pairs.
    pub headers: String,
    pub bytes: Vec<u8>,
}

/// A row, as much of it as the disk had that appended it.
pub(crate) struct RowBody {
    pub entry: LedgerEntry,
    /// Those that it paid for; `None` if they were published so long ago that they were dropped.
    pub messages: Option<Vec<BodyMessage>>,
    /// The states that it wrote, but those that a later row has replaced.
    pub states: Vec<RowNoise>,
}

/// A body before it is encrypted.
pub(super) enum BodyContent {
    Row(Box<RowBody>),
    Published,
    Checkpoint(Box<Snapshot>),
    HandsOver(Timestamp),
}

impl RowBody {
    /// Returns true if there is nothing more of the row than this.
    pub fn is_full(&self) -> bool {
        match self.entry.row() {
            Ok(LedgerRow::Window(ClosedWindow {
                outcome: ReleaseOutcome::Released { states, .. },
                ..
            })) => self.messages.is_some() && self.states.len() == states.len(),
            _ => true,
        }
    }

    /// Returns true if its messages are there, or if it has paid for none.
    pub fn has_messages(&self) -> bool {
        self.messages.is_some()
            || !matches!(
                self.entry.row(),
                Ok(LedgerRow::Window(ClosedWindow {
                    outcome: ReleaseOutcome::Released { .. },
                    ..
                }))
            )
    }

    /// Returns true if it has the state of noise that its row wrote to `slot`.
    pub fn has_state(&self, slot: &str) -> bool {
        self.states.iter().any(|state| state.slot == slot)
    }

    /// Adds the messages and states that another body of the row has.
    pub fn merge(&mut self, other: RowBody) {
        self.messages = self.messages.take().or(other.messages);
        for state in other.states {
            if !self.states.iter().any(|known| known.slot == state.slot) {
                self.states.push(state);
            }
        }
    }

    /// Returns true if its messages and states are those of its row, by digest.
    fn is_genuine(&self) -> bool {
        let (messages, states) = match self.entry.row() {
            Ok(LedgerRow::Window(ClosedWindow {
                outcome:
                    ReleaseOutcome::Released {
                        messages, states, ..
                    },
                ..
            })) => (messages, states),
            Ok(_) => (vec![], vec![]),
            Err(_) => return false,
        };
        if let Some(sent) = &self.messages {
            if sent.len() != messages.len() {
                return false;
            }
            for (sent, message) in sent.iter().zip(&messages) {
                if !message.has_content(&sent.key, &sent.headers, Some(&sent.bytes)) {
                    return false;
                }
            }
        }
        self.states.iter().all(|RowNoise { slot, salt, bytes }| {
            states.contains(&StateDigest::from_bytes(slot, salt, bytes))
        })
    }
}

/// Encrypts a row after the one with the digest `previous`.
pub(super) fn seal_row(key: &LogKey, body: &RowBody, previous: Option<Digest>) -> Option<Vec<u8>> {
    let Head { sequence, digest } = body.entry.head;
    let mut fields = Vec::new();
    put_field(&mut fields, body.entry.secret_line().as_bytes());
    put_field(&mut fields, &[u8::from(body.messages.is_some())]);
    let messages = body.messages.as_deref().unwrap_or_default();
    put_field(&mut fields, &(messages.len() as u64).to_be_bytes());
    for BodyMessage {
        key,
        headers,
        bytes,
    } in messages
    {
        put_field(&mut fields, key.as_bytes());
        put_field(&mut fields, headers.as_bytes());
        put_field(&mut fields, bytes);
    }
    put_states(&mut fields, &body.states);
    let size = fields.len() + body.entry.hidden_width();
    seal_body(
        key,
        &ClearPart::Row {
            sequence,
            digest,
            previous,
        },
        &fields,
        size,
    )
}

/// Encrypts a checkpoint.
pub(super) fn seal_checkpoint(key: &LogKey, snapshot: &Snapshot) -> Option<Vec<u8>> {
    let Head { sequence, digest } = snapshot.row.head;
    let mut fields = Vec::new();
    for part in snapshot.parts() {
        put_field(&mut fields, &part);
    }
    put_states(&mut fields, &snapshot.states);
    let size = fields.len() + snapshot.hidden_width();
    seal_body(
        key,
        &ClearPart::Checkpoint {
            sequence,
            digest,
            from: snapshot.from,
        },
        &fields,
        size,
    )
}

/// Encrypts a mark.
pub(super) fn seal_mark(key: &LogKey, published: Head) -> Option<Vec<u8>> {
    let Head { sequence, digest } = published;
    seal_body(key, &ClearPart::Published { sequence, digest }, &[], 0)
}

/// Encrypts that the worker that claimed `accepted` hands over.
pub(super) fn seal_handover(key: &LogKey, accepted: Head, at: Timestamp) -> Option<Vec<u8>> {
    let Head { sequence, digest } = accepted;
    seal_body(
        key,
        &ClearPart::HandsOver {
            sequence,
            digest,
            at,
        },
        &[],
        0,
    )
}

fn seal_body(key: &LogKey, clear: &ClearPart, fields: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut secret = (fields.len() as u64).to_be_bytes().to_vec();
    secret.extend(fields);
    if !matches!(
        clear,
        ClearPart::Published { .. } | ClearPart::HandsOver { .. }
    ) {
        secret.resize(filled_size(size.max(fields.len()) + 8), 0);
    }
    let clear = serde_json::to_string(clear).ok()?;
    let sealed = key.seal(clear.as_bytes(), &secret)?;
    Some([clear.as_bytes(), b"\n", &sealed].concat())
}

/// Size that `size` is filled up to: eight sizes from one power of two to the next.
fn filled_size(size: usize) -> usize {
    let step = (size.max(LEAST_PADDED).next_power_of_two() / 16).max(1);
    size.max(LEAST_PADDED).next_multiple_of(step)
}

/// A whole body after an attempt to decrypt it.
pub(super) enum OpenedBody {
    /// One of another program, or changed.
    Foreign,
    /// One of another key; its clear part is not known to be true.
    Closed(ClearPart),
    Open(ClearPart, BodyContent),
}

/// Decrypts and verifies a body.
pub(super) fn open_body(key: &LogKey, whole: &[u8]) -> OpenedBody {
    let Some(end) = whole.iter().position(|byte| *byte == b'\n') else {
        return OpenedBody::Foreign;
    };
    let line = whole.get(..end).unwrap_or_default();
    let sealed = whole.get(end + 1..).unwrap_or_default();
    let Ok(clear) = serde_json::from_slice::<ClearPart>(line) else {
        return OpenedBody::Foreign;
    };
    let Some(secret) = key.open(line, sealed) else {
        return OpenedBody::Closed(clear);
    };
    let content = match clear {
        ClearPart::Published { .. } => Some(BodyContent::Published),
        ClearPart::HandsOver { at, .. } => Some(BodyContent::HandsOver(at)),
        ClearPart::Row { .. } => read_row(&secret)
            .filter(|body| body.entry.head == clear.head())
            .map(|body| BodyContent::Row(Box::new(body))),
        ClearPart::Checkpoint { from, .. } => read_checkpoint(&secret, from)
            .filter(|snapshot| snapshot.row.head == clear.head())
            .map(|snapshot| BodyContent::Checkpoint(Box::new(snapshot))),
    };
    match content {
        Some(content) => OpenedBody::Open(clear, content),
        None => OpenedBody::Foreign,
    }
}

fn read_row(secret: &[u8]) -> Option<RowBody> {
    let mut rest = secret;
    let mut rest = take_field(&mut rest)?;
    let entry = LedgerEntry::parse(&text_field(take_field(&mut rest)?)?)?;
    let has_messages = take_field(&mut rest)? == [1];
    let count = u64::from_be_bytes(take_field(&mut rest)?.try_into().ok()?);
    let mut messages = Vec::new();
    for _ in 0..count {
        let key = text_field(take_field(&mut rest)?)?;
        let headers = text_field(take_field(&mut rest)?)?;
        messages.push(BodyMessage {
            key,
            headers,
            bytes: take_field(&mut rest)?.to_vec(),
        });
    }
    let body = RowBody {
        entry,
        messages: has_messages.then_some(messages),
        states: take_states(rest)?,
    };
    body.is_genuine().then_some(body)
}

fn read_checkpoint(secret: &[u8], from: Head) -> Option<Snapshot> {
    let mut rest = secret;
    let mut rest = take_field(&mut rest)?;
    let genesis = take_field(&mut rest)?;
    let before = take_field(&mut rest)?;
    let row = take_field(&mut rest)?;
    let parts = [genesis, before, row, take_field(&mut rest)?];
    Snapshot::from_parts(parts, from, take_states(rest)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{MessageDigests, headers_as_json};
    use crate::fixtures::{price, released, span};
    use bernstream_synopsis::Encoded;

    fn body(offset: u64) -> RowBody {
        let sealed = Encoded {
            key: "k".into(),
            headers: vec![("a".into(), "b".into())],
            bytes: vec![7; 300],
        };
        let mut row = released(span(0, 10), &[(span(0, 10), price(5))]);
        row.ends.0.insert(3, i64::try_from(offset).unwrap());
        let ReleaseOutcome::Released {
            messages, states, ..
        } = &mut row.outcome
        else {
            panic!()
        };
        *messages = vec![MessageDigests::from_encoded(&sealed)];
        *states = vec![StateDigest::from_bytes("s", &[1; 32], b"noise")];
        let entry = LedgerEntry::new(None, 4, &LedgerRow::Window(row), None).unwrap();
        let headers = headers_as_json(&sealed.headers);
        let sent = BodyMessage {
            key: sealed.key,
            headers,
            bytes: sealed.bytes,
        };
        let noise = RowNoise {
            slot: "s".into(),
            salt: [1; 32],
            bytes: b"noise".to_vec(),
        };
        RowBody {
            entry,
            messages: Some(vec![sent]),
            states: vec![noise],
        }
    }

    fn opened(key: &LogKey, whole: &[u8]) -> Option<RowBody> {
        match open_body(key, whole) {
            OpenedBody::Open(_, BodyContent::Row(body)) => Some(*body),
            _ => None,
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written_and_nothing_of_it_is_in_the_clear() {
        let key = LogKey::new(&[1; 32]);
        let body = body(17);
        let whole = seal_row(&key, &body, Some(Digest::of_bytes(b"before"))).unwrap();
        let read = opened(&key, &whole).unwrap();
        assert!(
            read.entry == body.entry
                && read.messages == body.messages
                && read.states == body.states
        );
        assert!(read.is_full());
        let text = String::from_utf8_lossy(&whole);
        let (clear, secret) = text.split_once('\n').unwrap();
        let expected = format!(
            r#"{{"row":{{"sequence":4,"digest":"{}","previous":"{}"}}}}"#,
            body.entry.head.digest,
            Digest::of_bytes(b"before")
        );
        assert_eq!(clear, expected);
        assert!(!secret.contains("ends") && !secret.contains("noise"));
        assert!(matches!(
            open_body(&LogKey::new(&[2; 32]), &whole),
            OpenedBody::Closed(_)
        ));
        // Another row's clear part before it.
        let other = whole
            .iter()
            .map(|byte| if *byte == b'4' { b'5' } else { *byte })
            .collect::<Vec<_>>();
        assert!(opened(&key, &other).is_none());
    }

    #[test]
    fn what_a_row_did_not_pay_for_is_no_part_of_it() {
        let key = LogKey::new(&[1; 32]);
        let is_read = |body: &RowBody| opened(&key, &seal_row(&key, body, None).unwrap()).is_some();
        assert!(is_read(&body(1)));
        let mut wrong = body(1);
        wrong.messages.as_mut().unwrap()[0].bytes[0] ^= 1;
        assert!(!is_read(&wrong));
        let mut wrong = body(1);
        wrong.states[0].bytes[0] ^= 1;
        assert!(!is_read(&wrong));
        let mut less = body(1);
        (less.messages, less.states) = (None, vec![]);
        assert!(is_read(&less) && !less.is_full());
        less.merge(body(1));
        assert!(less.is_full());
    }

    #[test]
    fn the_size_does_not_depend_on_how_many_digits_an_offset_has() {
        let key = LogKey::new(&[1; 32]);
        let size = |offset| seal_row(&key, &body(offset), None).unwrap().len();
        assert_eq!(size(1), size(u64::try_from(i64::MAX).unwrap()));
        // Near every size that is filled up to, the digits of an offset could carry it over.
        for bytes in 0..2000 {
            let sized = |offset| {
                let mut body = body(offset);
                body.messages.as_mut().unwrap()[0].bytes = vec![7; bytes];
                seal_row(&key, &body, None).unwrap().len()
            };
            assert_eq!(sized(1), sized(u64::try_from(i64::MAX).unwrap()), "{bytes}");
        }
    }

    #[test]
    fn there_are_eight_sizes_from_one_power_of_two_to_the_next() {
        let sizes = |from: usize| {
            (from..2 * from)
                .map(|size| filled_size(size + 1))
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!([1024, 65536].map(|from| sizes(from).len()), [8, 8]);
        assert!((0..100_000).all(|size| filled_size(size) >= size
            && filled_size(size) <= (size + size / 8 + 1).max(LEAST_PADDED)));
    }
}
