//! How a topic is read.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::kafka::Broker;

/// What to read and how to judge it.
#[derive(Clone, Debug)]
pub struct Params {
    pub broker: Broker,
    pub topic: String,
    /// More than the clocks and replicas of the brokers lag: end offsets are taken this long after a cutoff.
    pub clock_slack: Duration,
    /// Accept `CreateTime` topics: producers then decide what belongs to a window.
    pub trust_producer_time: bool,
    pub on_bad_message: OnBadMessage,
    /// Broken messages that the operator has accepted to lose: (partition, offset).
    pub skip: BTreeSet<(i32, i64)>,
    /// Input that the broker deleted unread and that the operator has accepted to lose.
    pub lost: Vec<Lost>,
}

/// What happens at a message that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBadMessage {
    Stop,
    Skip,
}

/// Offsets `from..to` of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub partition: i32,
    pub from: i64,
    pub to: i64,
}
