//! Two streams that differ by one unit.

use std::sync::Arc;

use super::messages::Message;
use bernstream_synopsis::clock::Timestamp;

/// Two streams that differ by one unit.
#[derive(Clone, Debug)]
pub struct NeighbouringPair {
    pub name: String,
    pub with: Arc<Vec<Message>>,
    pub without: Arc<Vec<Message>>,
    /// The event times of the rows that differ.
    pub times: Vec<Timestamp>,
}
