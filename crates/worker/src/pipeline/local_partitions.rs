//! Partitions that the worker reads itself, although absorbers may.

use std::collections::{BTreeMap, BTreeSet};

/// For how many windows a partition stays whose partial had no room: given back earlier, it would be read from the start of a window again
/// and again.
const WINDOWS_WITHOUT_ROOM: u32 = 60;

/// The partitions that no absorber has sent in time, or whose partials had no room: they are read here, all the time.
#[derive(Default)]
pub(super) struct LocalPartitions {
    /// For how many windows each of them stays at least.
    partitions: BTreeMap<i32, u32>,
}

impl LocalPartitions {
    /// Adds a partition whose partial was late, or is not taken. Returns whether it was left to absorbers before.
    pub fn add_late(&mut self, partition: i32) -> bool {
        let is_new = !self.partitions.contains_key(&partition);
        self.partitions.entry(partition).or_default();
        is_new
    }

    /// Adds a partition for whose partial there was no room. Returns whether the partition was left to them before.
    pub fn add_without_room(&mut self, partition: i32) -> bool {
        self.partitions
            .insert(partition, WINDOWS_WITHOUT_ROOM)
            .is_none()
    }

    /// Gives back a partition that an absorber has sent in time.
    pub fn give_back(&mut self, partition: i32) {
        if self.partitions.get(&partition) == Some(&0) {
            self.partitions.remove(&partition);
        }
    }

    /// Begins a window of a topic with these partitions. Returns those of them that are read here.
    pub fn next_window(&mut self, has: impl Fn(&i32) -> bool) -> BTreeSet<i32> {
        self.partitions.retain(|partition, stays| {
            *stays = stays.saturating_sub(1);
            has(partition)
        });
        self.partitions.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_was_late_is_given_back_as_soon_as_it_is_sent_in_time() {
        let mut alone = LocalPartitions::default();
        assert!(alone.add_late(1) && alone.add_late(2) && !alone.add_late(1));
        alone.give_back(1);
        assert_eq!(alone.next_window(|_| true), BTreeSet::from([2]));
        assert_eq!(
            alone.next_window(|partition| *partition != 2),
            BTreeSet::new()
        );
    }

    #[test]
    fn a_partition_without_room_is_not_given_back_for_many_windows() {
        let mut alone = LocalPartitions::default();
        assert!(alone.add_without_room(1) && !alone.add_late(1));
        for _ in 1..WINDOWS_WITHOUT_ROOM {
            alone.give_back(1);
            assert_eq!(alone.next_window(|_| true), BTreeSet::from([1]));
        }
        // There was no room again.
        assert!(!alone.add_without_room(1));
        for _ in 1..WINDOWS_WITHOUT_ROOM {
            alone.give_back(1);
            assert_eq!(alone.next_window(|_| true), BTreeSet::from([1]));
        }
        alone.next_window(|_| true);
        alone.give_back(1);
        assert_eq!(alone.next_window(|_| true), BTreeSet::new());
    }
}
