//! The partials of a window as they come in: pieces in any order, copies, broken ones, and such as differ.

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::announcement::WindowAnnouncement;
use super::partition_absorber::PartitionPartial;
use super::wire::{PartialPiece, partial_digest};

/// The most copies of a partial whose pieces are waited for at a time.
const MOST_COPIES: usize = 8;
/// The power of two beyond which what absorbers compress does not refer back.
const WINDOW_LOG: u32 = 23;
/// The bytes of the place of a piece.
const PIECE_OVERHEAD: u64 = size_of::<Option<Vec<u8>>>() as u64;

/// The partials of one announcement, as far as they are there.
pub struct CollectedPartials {
    partitions: BTreeMap<i32, CollectedPartition>,
    /// The most bytes of all that absorbers have sent: whoever has the key fills no more.
    most: u64,
}

struct CollectedPartition {
    name: String,
    /// The digest that the first copy stated.
    digest: Option<String>,
    /// Copies said different things: none of them is taken.
    is_disputed: bool,
    /// Copies whose pieces are not all there.
    copies: BTreeMap<String, Vec<Option<Vec<u8>>>>,
    bytes: Option<Vec<u8>>,
    is_own: bool,
    /// The sizes of copies of what this process has read itself: their bytes are not kept.
    known_copies: BTreeMap<String, CopySize>,
    /// The absorber that has sent `bytes`; empty where none has.
    absorber: String,
}

/// The pieces of a copy that have come, one after the other from the first on.
#[derive(Default)]
struct CopySize {
    pieces: u32,
    bytes: u64,
}

impl CopySize {
    fn of_pieces(pieces: &[Option<Vec<u8>>]) -> Self {
        let mut size = CopySize::default();
        for piece in pieces.iter().map_while(Option::as_ref) {
            size.pieces += 1;
            size.bytes += piece.len() as u64;
        }
        size
    }
}

/// The outcome of adding a piece or a partial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedPiece {
    /// It belongs to something else, or does not complete anything.
    Nothing,
    /// The partition is there now.
    Complete,
    /// All of it was sent, and it is there already: this process has read it faster.
    Known,
    /// The pieces are all there and do not make what they say.
    Broken,
    /// It differs from another one of the same name: told once.
    Differing,
    /// There is no room for it: this process reads the partition.
    Full,
}

impl CollectedPartials {
    /// Keeps up to `most` bytes of what absorbers send.
    pub fn new(announcement: &WindowAnnouncement, most: u64) -> Self {
        let mut partitions = BTreeMap::new();
        for number in announcement.ends.0.keys() {
            if let Some(name) = announcement.partial_name(*number) {
                partitions.insert(*number, CollectedPartition::new(name));
            }
        }
        CollectedPartials { partitions, most }
    }

    /// Takes a piece that an absorber has sent.
    pub fn add_piece(&mut self, piece: PartialPiece) -> AddedPiece {
        let mut others: u64 = 0;
        for (number, partition) in &self.partitions {
            if *number != piece.partition {
                others += partition.sent_bytes();
            }
        }
        let Some(partition) = self.partitions.get_mut(&piece.partition) else {
            return AddedPiece::Nothing;
        };
        if partition.name != piece.name {
            return AddedPiece::Nothing;
        }
        if partition.digest.get_or_insert_with(|| piece.digest.clone()) != &piece.digest {
            return partition.mark_disputed();
        }
        if partition.is_disputed || (partition.bytes.is_some() && !partition.is_own) {
            return AddedPiece::Nothing;
        }
        if partition.is_own {
            return partition.count_known(piece, self.most.saturating_sub(others));
        }
        // It will be unpacked beside its pieces and all others, and until then there are the places of the pieces that are not there.
        let packed = partition
            .waiting_bytes()
            .saturating_add(PIECE_OVERHEAD * u64::from(piece.of) + piece.bytes.len() as u64);
        if others.saturating_add(packed).saturating_add(piece.size) > self.most {
            return AddedPiece::Full;
        }
        if partition.copies.len() >= MOST_COPIES && !partition.copies.contains_key(&piece.copy) {
            partition.copies.pop_first();
        }
        let copy = partition
            .copies
            .entry(piece.copy.clone())
            .or_insert_with(|| vec![None; piece.of as usize]);
        if let Some(place) = copy.get_mut(piece.number as usize) {
            *place = Some(piece.bytes);
        }
        if copy.iter().any(Option::is_none) {
            return AddedPiece::Nothing;
        }
        let all = partition.copies.remove(&piece.copy).unwrap_or_default();
        let Some(bytes) = decompress_pieces(&all, piece.size)
            .filter(|bytes| partial_digest(bytes) == piece.digest)
        else {
            return AddedPiece::Broken;
        };
        partition.bytes = Some(bytes);
        partition.absorber = piece.absorber;
        partition.copies.clear();
        AddedPiece::Complete
    }

    /// Takes what this process has read itself: it is taken whatever others say.
    pub fn add_own(&mut self, partial: PartitionPartial) -> AddedPiece {
        let Some(partition) = self.partitions.get_mut(&partial.partition) else {
            return AddedPiece::Nothing;
        };
        if partition.name != partial.name || partition.is_own {
            return AddedPiece::Nothing;
        }
        let ours = partial_digest(&partial.bytes);
        let is_differing =
            partition.digest.get_or_insert_with(|| ours.clone()) != &ours && !partition.is_disputed;
        partition.is_own = true;
        partition.bytes = Some(partial.bytes);
        partition.absorber.clear();
        partition.known_copies.clear();
        for (copy, pieces) in std::mem::take(&mut partition.copies) {
            let size = CopySize::of_pieces(&pieces);
            partition.known_copies.insert(copy, size);
        }
        if is_differing {
            partition.is_disputed = true;
            return AddedPiece::Differing;
        }
        AddedPiece::Complete
    }

    /// Its bytes cannot be read, though they are what was sent: it counts as missing. Returns who has sent them.
    pub fn refuse_partial(&mut self, partition: i32) -> Option<String> {
        let partition = self.partitions.get_mut(&partition)?;
        partition.is_disputed = true;
        partition.bytes = None;
        Some(std::mem::take(&mut partition.absorber))
    }

    /// The partitions that are not there.
    pub fn missing_partitions(&self) -> impl Iterator<Item = i32> {
        self.partitions
            .iter()
            .filter(|(_, partition)| partition.bytes.is_none())
            .map(|(number, _)| *number)
    }

    /// The canonical bytes of each partition that is there.
    pub fn complete_partials(&self) -> impl Iterator<Item = (i32, &[u8])> {
        self.partitions
            .iter()
            .filter_map(|(number, partition)| Some((*number, partition.bytes.as_deref()?)))
    }

    /// Forgets the bytes; copies that come later are still compared with what was taken, and known where this process was faster.
    pub fn forget_bytes(&mut self) {
        for partition in self.partitions.values_mut() {
            partition.bytes = Some(Vec::new());
            partition.copies.clear();
            partition.known_copies.clear();
        }
    }

    /// Returns whether a piece is of one of these partials.
    pub fn is_named(&self, piece: &PartialPiece) -> bool {
        self.partitions
            .get(&piece.partition)
            .is_some_and(|partition| partition.name == piece.name)
    }
}

impl CollectedPartition {
    fn new(name: String) -> Self {
        CollectedPartition {
            name,
            digest: None,
            is_disputed: false,
            copies: BTreeMap::new(),
            bytes: None,
            is_own: false,
            known_copies: BTreeMap::new(),
            absorber: String::new(),
        }
    }

    /// The bytes of what absorbers have sent.
    fn sent_bytes(&self) -> u64 {
        let whole = match &self.bytes {
            Some(bytes) if !self.is_own => bytes.len() as u64,
            _ => 0,
        };
        whole.saturating_add(self.waiting_bytes())
    }

    /// The bytes of the pieces that wait for others, and of the places of those.
    fn waiting_bytes(&self) -> u64 {
        let mut waiting = 0;
        for piece in self.copies.values().flatten() {
            waiting += PIECE_OVERHEAD + piece.as_ref().map_or(0, |bytes| bytes.len() as u64);
        }
        waiting
    }

    /// Counts a piece of what is there already: all of a copy have come, one after the other as absorbers write them, or not yet. What
    /// would not have fitted into the `room` has none.
    fn count_known(&mut self, piece: PartialPiece, room: u64) -> AddedPiece {
        if self.known_copies.len() >= MOST_COPIES && !self.known_copies.contains_key(&piece.copy) {
            self.known_copies.pop_first();
        }
        let come = self.known_copies.entry(piece.copy).or_default();
        if piece.number != come.pieces {
            return AddedPiece::Nothing;
        }
        come.pieces += 1;
        come.bytes += piece.bytes.len() as u64;
        if come.pieces != piece.of {
            AddedPiece::Nothing
        } else if come.bytes.saturating_add(piece.size) > room {
            AddedPiece::Full
        } else {
            AddedPiece::Known
        }
    }

    fn mark_disputed(&mut self) -> AddedPiece {
        if !self.is_own {
            self.bytes = None;
        }
        self.copies.clear();
        if std::mem::replace(&mut self.is_disputed, true) {
            AddedPiece::Nothing
        } else {
            AddedPiece::Differing
        }
    }
}

/// The bytes of a compressed partial, exactly `size` of them.
fn decompress_pieces(pieces: &[Option<Vec<u8>>], size: u64) -> Option<Vec<u8>> {
    let pieces = PieceReader {
        piece: &[],
        rest: pieces.iter().flatten(),
    };
    let mut decoder = zstd::stream::read::Decoder::new(pieces).ok()?;
    decoder.window_log_max(WINDOW_LOG).ok()?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
    // One more than there should be is enough to see that there are too many.
    decoder
        .take(size.saturating_add(1))
        .read_to_end(&mut bytes)
        .ok()?;
    (bytes.len() as u64 == size).then_some(bytes)
}

/// Pieces as one reader: without a copy of all of them.
struct PieceReader<'a, I> {
    piece: &'a [u8],
    rest: I,
}

impl<'a, I: Iterator<Item = &'a Vec<u8>>> Read for PieceReader<'a, I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty()
            && let Some(next) = self.rest.next()
        {
            self.piece = next;
        }
        self.piece.read(buffer)
    }
}
