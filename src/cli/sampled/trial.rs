//! What is to be tried.

/// How many messages are tried, and the least share of records, in percent, that must be of use.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// So many messages of each partition; of files all records.
    pub most: u32,
    /// In percent.
    pub least: u64,
}
