//! The witness as a topic of one partition.

use crate::source::topic::Broker;

#[derive(Clone, Debug)]
pub struct Params {
    pub broker: Broker,
    pub topic: String,
    /// What the topic's `min.insync.replicas` must be at least.
    pub min_insync_replicas: u32,
}
