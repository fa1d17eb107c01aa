//! Where reading a partition begins.

use super::params::Params;
use crate::source::Error;

/// The start offset in a partition with messages from `low` on, given the `first` message that is late enough, and where there is none an
/// offset with none before it. `is_ahead` says that no message that exists or existed can be late enough, and none before `past` is.
///
/// Where no message is late enough, all of them are read from there on: not every server looks up times, and those that do not say the same.
///
/// # Errors
///
/// If messages that may be needed were deleted.
pub(super) fn offset(
    params: &Params,
    partition: i32,
    low: i64,
    (first, end): (Option<i64>, i64),
    (is_ahead, past): (bool, i64),
) -> Result<i64, Error> {
    // If a message that is too early still exists, nothing after it was deleted.
    let is_complete = match first {
        Some(first) => first > low,
        None => low < end || is_ahead,
    };
    let from = params.lost_until(partition, 0).unwrap_or(0);
    if low <= past || is_complete || low <= from {
        return Ok(first.unwrap_or(past.min(end)).max(low));
    }
    Err(Error::Deleted {
        topic: params.topic.clone(),
        partition,
        from,
        to: low,
    })
}
