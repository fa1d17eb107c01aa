//! Two streams that differ by one unit.

use std::sync::Arc;

use super::messages::InputMessage;
use bernstream_synopsis::clock::Timestamp;

/// Two streams that differ by one unit.
#[derive(Clone, Debug)]
pub struct NeighbouringPair {
    pub name: String,
    pub with: Arc<Vec<InputMessage>>,
    pub without: Arc<Vec<InputMessage>>,
    /// The event times of the rows that differ.
    pub times: Vec<Timestamp>,
}
