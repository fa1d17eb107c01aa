//! A sum over records that can take many of them at once.

use std::ops::Range;

use super::accumulator::{Accumulator, AccumulatorSpec, Record};
use super::chunk::ChunkRecords;

/// Memory of the sums of all keys, in bytes, above which they do not stay in a processor's cache.
const CACHE: u64 = 4 << 20;

/// The sum over the records of one key.
///
/// Where there are many keys, records wait and are added together: each by itself would have to wait for memory, five times as
/// long as adding it takes. Sums are integers, so it makes no difference when one is added.
#[derive(Clone, Default)]
pub(super) struct KeySum {
    /// `None` before the first record is added.
    total: Option<Accumulator>,
    waiting: Vec<Record>,
}

/// Most records of a key that wait, where there are so many keys: they take no more memory than their sum.
pub(super) fn waiting_room(spec: &AccumulatorSpec, keys: usize) -> usize {
    let bytes = spec.window_bytes();
    if bytes.saturating_mul(keys as u64) <= CACHE {
        return 0;
    }
    let records = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<Record>();
    // A vector grows to powers of two.
    records.checked_ilog2().map_or(0, |bits| 1 << bits)
}

/// Memory, about, that is held of the records of one window and key, where there are so many keys, in bytes.
pub fn bytes_held(spec: &AccumulatorSpec, keys: usize) -> u64 {
    let waiting = match spec {
        AccumulatorSpec::Records { .. } | AccumulatorSpec::FoundKeys(_) => 0,
        _ => waiting_room(spec, keys),
    };
    spec.window_bytes()
        .saturating_add((waiting * size_of::<Record>()) as u64)
}

impl KeySum {
    /// `room` is that of [`waiting_room`].
    #[inline]
    pub fn add(&mut self, spec: &AccumulatorSpec, room: usize, record: Record) {
        if room == 0 {
            return spec.add(self.total.get_or_insert_with(|| spec.empty()), record);
        }
        self.waiting.push(record);
        if self.waiting.len() >= room {
            self.add_waiting(spec);
        }
    }

    /// Adds `rows` of a chunk, none of which is dropped.
    pub fn add_all(
        &mut self,
        spec: &AccumulatorSpec,
        room: usize,
        records: &ChunkRecords,
        rows: Range<usize>,
    ) {
        if room == 0 {
            return records.add_to(spec, self.total.get_or_insert_with(|| spec.empty()), rows);
        }
        for row in rows {
            self.add(spec, room, records.get(row));
        }
    }

    /// Adds one part of `count` of a record to histograms of the kind `spec`.
    pub fn add_part(&mut self, spec: &AccumulatorSpec, record: Record, count: u64) {
        let total = self.total.get_or_insert_with(|| spec.empty());
        spec.add_part(total, record, count);
    }

    fn add_waiting(&mut self, spec: &AccumulatorSpec) {
        let total = self.total.get_or_insert_with(|| spec.empty());
        for record in self.waiting.drain(..) {
            spec.add(total, record);
        }
    }

    /// Adds the records of another sum of the same kind.
    pub fn join_sum(&mut self, mut other: KeySum) {
        if let Some(theirs) = other.total {
            match &mut self.total {
                Some(ours) => ours.join_accumulator(theirs),
                None => self.total = Some(theirs),
            }
        }
        self.waiting.append(&mut other.waiting);
    }

    /// The sum of all; `None` if there is nothing.
    pub fn total_if_any(self, spec: &AccumulatorSpec) -> Option<Accumulator> {
        let is_nothing = self.total.is_none() && self.waiting.is_empty();
        (!is_nothing).then(|| self.into_total(spec))
    }

    /// The sum of all.
    pub fn into_total(mut self, spec: &AccumulatorSpec) -> Accumulator {
        self.add_waiting(spec);
        self.total.unwrap_or_else(|| spec.empty())
    }
}

impl From<Accumulator> for KeySum {
    fn from(total: Accumulator) -> Self {
        KeySum {
            total: Some(total),
            waiting: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bernstream_synopsis::histogram::Nodes;

    fn spec() -> AccumulatorSpec {
        AccumulatorSpec::Histogram(Nodes::new(&[9, 7]).expect("a small grid"))
    }

    fn record(i: u32) -> Record {
        spec().record(
            &[
                f64::from(i * 7919 % 1009) / 1009.0,
                f64::from(i * 104_729 % 997) / 997.0,
            ],
            0.0,
        )
    }

    fn sum(room: usize, records: impl IntoIterator<Item = u32>) -> KeySum {
        let mut sum = KeySum::default();
        records
            .into_iter()
            .for_each(|i| sum.add(&spec(), room, record(i)));
        sum
    }

    #[test]
    fn it_makes_no_difference_how_many_wait_and_who_has_them() {
        let direct = spec().filled_accumulator((0..200).map(record));
        assert!(sum(0, 0..0).into_total(&spec()) == spec().empty());
        for room in [0, 1, 3, 64, 200, 1000] {
            assert!(sum(room, 0..200).into_total(&spec()) == direct, "{room}");
            for first in [0, 1, 70, 200] {
                let mut joined = sum(room, 0..first);
                joined.join_sum(sum(room, first..200));
                assert!(
                    joined.into_total(&spec()) == direct,
                    "{room}, {first} with one reader"
                );
            }
        }
    }

    #[test]
    fn records_wait_where_the_sums_are_larger_than_a_cache_and_take_no_more_than_they_do() {
        let spec = AccumulatorSpec::Histogram(Nodes::new(&[80, 80]).expect("a grid"));
        // 83 x 83 cells of 8 bytes, records of 16.
        assert_eq!(
            [1, 76, 77, 1000].map(|keys| waiting_room(&spec, keys)),
            [0, 0, 2048, 2048]
        );
        assert_eq!(
            [76, 77].map(|keys| bytes_held(&spec, keys)),
            [55_112, 55_112 + 32_768]
        );
        let mut sum = KeySum::default();
        for i in 0..10_000 {
            sum.add(&spec, 2048, record(i));
            assert!(sum.waiting.capacity() <= 2048);
        }
    }
}
