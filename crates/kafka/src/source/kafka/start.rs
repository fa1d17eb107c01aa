//! Where reading a partition begins.

use super::params::KafkaSourceParams;
use crate::source::SourceError;

/// Facts about a partition that decide where reading it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartitionFacts {
    /// Its first offset.
    pub low: i64,
    /// The first message that is late enough.
    pub first: Option<i64>,
    /// Where there is none, an offset with none before it.
    pub end: i64,
    /// No message that exists or existed can be late enough.
    pub is_ahead: bool,
    /// No message before this offset is late enough.
    pub past: i64,
}

/// The offset at which reading a partition starts.
///
/// Where no message is late enough, all of them are read from there on: not every server looks up times, and those that do not say the same.
///
/// # Errors
///
/// If messages that may be needed were deleted.
pub(super) fn start_offset(
    params: &KafkaSourceParams,
    partition: i32,
    facts: PartitionFacts,
) -> Result<i64, SourceError> {
    let PartitionFacts {
        low,
        first,
        end,
        is_ahead,
        past,
    } = facts;
    // If a message that is too early still exists, nothing after it was deleted.
    let is_complete = match first {
        Some(first) => first > low,
        None => low < end || is_ahead,
    };
    let from = params.lost_until(partition, 0).unwrap_or(0);
    if low <= past || is_complete || low <= from {
        return Ok(first.unwrap_or(past.min(end)).max(low));
    }
    Err(SourceError::Deleted {
        topic: params.topic.clone(),
        partition,
        from,
        to: low,
    })
}
