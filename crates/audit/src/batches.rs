//! The messages of a stream as the worker's source decodes them.

use std::collections::BTreeMap;

use super::encode::encode;
use super::error::Error;
use super::messages::Message;
use super::subject::{Stamps, Subject};
use bernstream_release::source::{Batch, decode};

/// The batches of a stream, in the order in which they were sent; messages that no worker can read are left out.
///
/// # Errors
///
/// If a message cannot be encoded.
pub fn batches(subject: &Subject<'_>, messages: &[Message]) -> Result<Vec<Batch>, Error> {
    let mut offsets: BTreeMap<i32, i64> = BTreeMap::new();
    let mut decoded = Vec::new();
    for message in messages {
        let bytes = encode(message, subject.columns)?;
        let offset = offsets.entry(message.partition).or_default();
        let stamp = (subject.stamps != Stamps::None).then_some(message.stamp);
        decoded.extend(decode::decode(
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
