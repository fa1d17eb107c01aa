//! What is to be tried.

/// What is to be tried, and how many of the records have to be of use.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// So many messages of each partition; of files all records.
    pub most: u32,
    /// In percent.
    pub least: u64,
}
