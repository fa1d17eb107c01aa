//! The bytes of a series' state.

use sha2::{Digest as _, Sha256};

use super::correlation::NoiseMemory;
use super::error::SeriesError;
use super::series::{CalibratedSeries, SeriesKind};
use super::state::SeriesState;

const VERSION: u8 = 2;
/// Kept one pane more of a hopping series, which no step needs.
const FIRST_VERSION: u8 = 1;
const DIGEST: usize = 16;
/// Version, series, step, values.
const HEAD: usize = 1 + DIGEST + 8 + 8;
const NUMBER: usize = size_of::<i128>();

impl SeriesState {
    /// Always of [`CalibratedSeries::state_bytes`], whatever the values. Not encrypted.
    pub fn to_bytes(&self, series: &CalibratedSeries) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(series.state_bytes(self.values));
        bytes.push(VERSION);
        bytes.extend(series_fingerprint(series));
        bytes.extend(self.step().to_le_bytes());
        bytes.extend((self.values as u64).to_le_bytes());
        let numbers = self.memory.noise.iter().chain(&self.published).flatten();
        bytes.extend(numbers.flat_map(|number| number.to_le_bytes()));
        bytes.extend(short_digest(&bytes));
        bytes
    }

    /// Reads what [`SeriesState::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// If the bytes are damaged, of another version, or were written by a series with other noise, panes or correlation.
    pub fn from_bytes(series: &CalibratedSeries, bytes: &[u8]) -> Result<SeriesState, SeriesError> {
        let version = match bytes.first() {
            Some(&version @ (FIRST_VERSION | VERSION)) => version,
            Some(&version) => return Err(SeriesError::StateVersion { version }),
            None => return Err(SeriesError::StateDamaged),
        };
        let (written, sum) = bytes
            .split_last_chunk::<DIGEST>()
            .ok_or(SeriesError::StateDamaged)?;
        if short_digest(written) != *sum || written.len() < HEAD {
            return Err(SeriesError::StateDamaged);
        }
        let (head, body) = written.split_at(HEAD);
        if head[1..=DIGEST] != series_fingerprint(series) {
            return Err(SeriesError::StateForeign);
        }
        let step = number_at(head, 1 + DIGEST);
        let values = usize::try_from(number_at(head, 1 + DIGEST + 8))
            .map_err(|_| SeriesError::StateDamaged)?;
        let of_memory = series.correlation.vector_count();
        let one_more = usize::from(
            version == FIRST_VERSION && matches!(series.over(), SeriesKind::Hopping { .. }),
        );
        let vectors = of_memory + series.kept_vectors() + one_more;
        if values
            .checked_mul(vectors)
            .and_then(|n| n.checked_mul(NUMBER))
            != Some(body.len())
        {
            return Err(SeriesError::StateDamaged);
        }
        let (numbers, _) = body.as_chunks::<NUMBER>();
        let mut numbers = numbers.iter().map(|number| i128::from_le_bytes(*number));
        let mut read: Vec<Vec<i128>> = (0..vectors)
            .map(|_| numbers.by_ref().take(values).collect())
            .collect();
        let mut published = read.split_off(of_memory);
        if one_more > 0 {
            published = without_oldest(&published, step);
        }
        Ok(SeriesState {
            memory: NoiseMemory { step, noise: read },
            published,
            values,
        })
    }
}

fn number_at(head: &[u8], offset: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&head[offset..offset + 8]);
    u64::from_le_bytes(eight)
}

/// The ring of all panes of a window after `step` steps, without the pane that the next step leaves out.
fn without_oldest(ring: &[Vec<i128>], step: u64) -> Vec<Vec<i128>> {
    let panes = ring.len() as u64;
    let kept = ring.len().saturating_sub(1);
    let mut left = vec![Vec::new(); kept];
    for back in 1..=kept as u64 {
        // Before the first pane there are zeros, wherever they stand.
        let pane = (step + panes * kept as u64) - back;
        let from = (pane % panes) as usize;
        let to = (pane % kept as u64) as usize;
        left[to].clone_from(&ring[from]);
    }
    left
}

impl CalibratedSeries {
    /// Number of bytes that [`SeriesState::to_bytes`] takes, and memory about as much: 16 bytes a number.
    pub fn state_bytes(&self, values: usize) -> usize {
        HEAD + (self.correlation.vector_count() + self.kept_vectors()) * values * NUMBER + DIGEST
    }
}

/// Digest that tells series apart, but for the number of values.
fn series_fingerprint(series: &CalibratedSeries) -> [u8; DIGEST] {
    let bytes: Vec<u8> = series
        .numbers()
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    short_digest(&[b"bernstream series 1\n", bytes.as_slice()].concat())
}

fn short_digest(bytes: &[u8]) -> [u8; DIGEST] {
    let whole: [u8; 32] = Sha256::digest(bytes).into();
    let mut first = [0; DIGEST];
    first.copy_from_slice(&whole[..DIGEST]);
    first
}
