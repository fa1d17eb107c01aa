//! What is to be tried.

/// Number of messages that are tried, and the least share of records, in percent, that must be of use.
#[derive(Clone, Copy, Debug)]
pub struct SampleLimits {
    /// Messages of each partition; of files all records are tried.
    pub most: u32,
    /// The least share in percent.
    pub least: u64,
}
