//! Which partitions a reader reads.

/// One of several shares of the partitions of a topic: every partition, new ones too, is in exactly one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartitionShare {
    reader: u32,
    of: u32,
}

impl PartitionShare {
    /// All partitions.
    pub const ALL: PartitionShare = PartitionShare { reader: 0, of: 1 };

    /// One share for each of so many readers.
    pub fn each(of: u32) -> impl Iterator<Item = PartitionShare> {
        (0..of).map(move |reader| PartitionShare { reader, of })
    }

    pub fn has(self, partition: i32) -> bool {
        partition.unsigned_abs() % self.of == self.reader
    }

    /// Number of shares.
    pub fn count(self) -> u32 {
        self.of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_is_in_one_share() {
        for of in 1..7 {
            for partition in 0..50 {
                assert_eq!(
                    PartitionShare::each(of)
                        .filter(|share| share.has(partition))
                        .count(),
                    1
                );
            }
            // As many as there are partitions leave none without one.
            assert!(
                PartitionShare::each(of)
                    .all(|share| (0..of.cast_signed()).any(|partition| share.has(partition)))
            );
        }
        assert!((0..50).all(|partition| PartitionShare::ALL.has(partition)));
    }
}
