//! Announcements and partials as messages. Both are as secret as records: they are encrypted, and what was not encrypted with the key
//! is no message.

use rand::TryRng;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::announcement::{WindowAnnouncement, to_hex};
use super::partition_absorber::PartitionPartial;
use bernstream_ledger::sealing::{KeyFileSecret, SealingKey};
use bernstream_synopsis::clock::Timestamp;

/// The bytes of a partial that one message holds: with what is around it, less than brokers take by default.
const PIECE_BYTES: usize = 512 << 10;
/// The most canonical bytes of a partial, in absorbers and in the worker: the worker reads itself what has more.
pub const LONGEST: u64 = 1 << 30;
/// The most pieces of a partial: what cannot be compressed becomes longer by less than a part in 128.
const MOST_PIECES: u32 = 2_064;
/// The digits of a digest, and of the id of a copy.
const DIGEST_DIGITS: usize = 64;
const ID_BYTES: usize = 32;
/// The longest name of an absorber.
const LONGEST_NAME: usize = 255;

const ANNOUNCEMENT: u8 = 1;
const PARTIAL: u8 = 2;
/// The bytes of a [`AnnouncementHead`].
const HEAD_BYTES: usize = 1 + 8 + ID_BYTES;

/// A message of the topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleMessage {
    Announcement {
        head: AnnouncementHead,
        /// Number of partitions of the topic that its worker reads: what is sent to others does not arrive.
        read: i32,
        announcement: WindowAnnouncement,
    },
    Piece(PartialPiece),
}

/// The head before a sealed announcement, which is sealed with it: it can be read without the key, and not be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncementHead {
    /// Differs from one window and worker to the next, and is the same when an announcement is repeated.
    pub id: String,
    /// By the clock of the worker; later when it is repeated.
    pub sent: Timestamp,
}

impl AnnouncementHead {
    /// The head of the bytes of an announcement; `None` of other messages.
    pub fn from_sealed(sealed: &[u8]) -> Option<Self> {
        let (clear, _) = sealed.split_first_chunk::<HEAD_BYTES>()?;
        let (&ANNOUNCEMENT, rest) = clear.split_first()? else {
            return None;
        };
        let (sent, id) = rest.split_first_chunk::<8>()?;
        let id = String::from_utf8(id.to_vec()).ok()?;
        let sent = Timestamp::from_micros(i64::from_le_bytes(*sent));
        Some(AnnouncementHead { id, sent })
    }

    /// `None` with an id that is none.
    fn to_bytes(&self) -> Option<[u8; HEAD_BYTES]> {
        [
            [ANNOUNCEMENT].as_slice(),
            &self.sent.micros().to_le_bytes(),
            self.id.as_bytes(),
        ]
        .concat()
        .try_into()
        .ok()
    }
}

/// Returns whether a message claims to be a piece of a partial.
pub(super) fn is_piece(sealed: &[u8]) -> bool {
    sealed.first() == Some(&PARTIAL)
}

/// A piece of the compressed bytes of a partial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialPiece {
    /// [`WindowAnnouncement::partial_name`].
    pub name: String,
    pub partition: i32,
    /// The id of the copy of the partial that it is a piece of.
    pub copy: String,
    /// The absorber that has sent it, for the metrics of operators; nothing is decided by it.
    pub absorber: String,
    /// The digest of the canonical bytes.
    pub digest: String,
    /// Number of the canonical bytes.
    pub size: u64,
    pub number: u32,
    pub of: u32,
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

impl PartialPiece {
    /// Returns whether an absorber could have sent it.
    fn is_possible(&self) -> bool {
        let is_named = self.digest.len() == DIGEST_DIGITS
            && self.copy.len() == ID_BYTES
            && self.absorber.len() <= LONGEST_NAME;
        let is_short = self.size <= LONGEST && self.bytes.len() <= PIECE_BYTES;
        is_named && is_short && self.of <= MOST_PIECES && self.number < self.of
    }
}

/// One key for each purpose.
#[derive(Clone, Debug)]
pub struct ScaleKeys {
    announcements: SealingKey,
    partials: SealingKey,
}

impl ScaleKeys {
    pub fn new(secret: &KeyFileSecret) -> Self {
        ScaleKeys {
            announcements: secret.key("scale announcements"),
            partials: secret.key("scale partials"),
        }
    }

    /// A message as it is sent; `None` without randomness.
    pub fn seal_message(&self, message: &ScaleMessage) -> Option<Vec<u8>> {
        match message {
            ScaleMessage::Announcement {
                head,
                read,
                announcement,
            } => {
                let text = serde_json::to_vec(&(read, announcement)).ok()?;
                sealed_behind(&head.to_bytes()?, &self.announcements, &text)
            }
            ScaleMessage::Piece(piece) => {
                let head = serde_json::to_vec(piece).ok()?;
                let length = u32::try_from(head.len()).ok()?.to_le_bytes();
                let text = [length.as_slice(), &head, &piece.bytes].concat();
                sealed_behind(&[PARTIAL], &self.partials, &text)
            }
        }
    }

    /// A message that somebody with the same key has sealed; `None` if it is none, and for a piece that no absorber could have sent: of
    /// that nothing is kept, whatever sizes and names it claims.
    pub fn open_message(&self, sealed: &[u8]) -> Option<ScaleMessage> {
        match *sealed.first()? {
            ANNOUNCEMENT => self.opened_announcement(sealed),
            PARTIAL => self.opened_piece(sealed.get(1..)?).map(ScaleMessage::Piece),
            _ => None,
        }
    }

    fn opened_announcement(&self, sealed: &[u8]) -> Option<ScaleMessage> {
        let head = AnnouncementHead::from_sealed(sealed)?;
        let (clear, rest) = sealed.split_at_checked(HEAD_BYTES)?;
        let (read, announcement) =
            serde_json::from_slice(&self.announcements.open(clear, rest)?).ok()?;
        Some(ScaleMessage::Announcement {
            head,
            read,
            announcement,
        })
    }

    fn opened_piece(&self, sealed: &[u8]) -> Option<PartialPiece> {
        let text = self.partials.open(&[PARTIAL], sealed)?;
        let (length, rest) = text.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (head, bytes) = rest.split_at_checked(length)?;
        let mut piece: PartialPiece = serde_json::from_slice(head).ok()?;
        piece.bytes = bytes.to_vec();
        piece.is_possible().then_some(piece)
    }
}

/// The bytes `clear`, and behind them `text`, which is sealed with them.
fn sealed_behind(clear: &[u8], key: &SealingKey, text: &[u8]) -> Option<Vec<u8>> {
    let sealed = key.seal(clear, text)?;
    Some([clear, &sealed].concat())
}

/// A new copy of a partial, in pieces; `None` if it is too long, or without randomness.
pub fn split_into_pieces(partial: &PartitionPartial) -> Option<Vec<PartialPiece>> {
    if partial.bytes.len() as u64 > LONGEST {
        return None;
    }
    let compressed = zstd::encode_all(partial.bytes.as_slice(), 1).ok()?;
    // Even of nothing there is something to send: a frame of zstd is never empty.
    let chunks = compressed.chunks(PIECE_BYTES);
    let copy = random_id()?;
    let digest = partial_digest(&partial.bytes);
    let of = u32::try_from(chunks.len()).ok()?;
    let mut pieces = Vec::new();
    for (number, bytes) in (0..).zip(chunks) {
        pieces.push(PartialPiece {
            name: partial.name.clone(),
            partition: partial.partition,
            copy: copy.clone(),
            absorber: String::new(),
            digest: digest.clone(),
            size: partial.bytes.len() as u64,
            number,
            of,
            bytes: bytes.to_vec(),
        });
    }
    Some(pieces)
}

/// The digest of the canonical bytes of a partial.
pub(super) fn partial_digest(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

/// An id that nothing else has; `None` without randomness.
pub(super) fn random_id() -> Option<String> {
    let mut bytes = [0; 16];
    SysRng.try_fill_bytes(&mut bytes).ok()?;
    Some(to_hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_purpose_has_a_key_of_its_own() {
        let ScaleKeys {
            announcements,
            partials,
        } = ScaleKeys::new(&KeyFileSecret::new([1; 32]));
        let sealed = announcements.seal(b"a", b"text").unwrap();
        assert_eq!(
            announcements.open(b"a", &sealed).as_deref(),
            Some(b"text".as_slice())
        );
        assert_eq!(partials.open(b"a", &sealed), None);
    }
}
