//! Publishing to a Kafka topic.

use crate::source::topic::Broker;

#[derive(Clone, Debug)]
pub struct Params {
    pub broker: Broker,
    pub topic: String,
}
