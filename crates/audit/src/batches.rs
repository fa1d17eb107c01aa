//! The messages of a stream as the worker's source decodes them.

use std::collections::BTreeMap;

use super::encode::encode_message;
use super::error::ReplayError;
use super::messages::InputMessage;
use super::subject::{AuditSubject, StampSource};
use bernstream_release::source::{Batch, decode};

/// The batches of a stream, in the order in which they were sent; messages that no worker can read are left out.
///
/// # Errors
///
/// If a message cannot be encoded.
pub fn decode_batches(
    subject: &AuditSubject<'_>,
    messages: &[InputMessage],
) -> Result<Vec<Batch>, ReplayError> {
    let mut offsets: BTreeMap<i32, i64> = BTreeMap::new();
    let mut decoded = Vec::new();
    for message in messages {
        let bytes = encode_message(message, subject.columns)?;
        let offset = offsets.entry(message.partition).or_default();
        let stamp = (subject.stamps != StampSource::None).then_some(message.stamp);
        decoded.extend(decode::decode_message(
            &bytes,
            subject.columns,
            message.partition,
            *offset,
            stamp,
        ));
        *offset += 1;
    }
    Ok(decoded)
}
