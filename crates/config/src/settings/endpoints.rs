//! The source of records.

use bernstream_kafka::Broker;
use bernstream_kafka::source;

#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
#[derive(Clone, Debug)]
pub enum InputParams {
    Kafka(source::kafka::KafkaSourceParams),
    Files(source::files::FileSourceParams),
}

impl InputParams {
    pub fn broker(&self) -> Option<&Broker> {
        match self {
            InputParams::Kafka(params) => Some(&params.broker),
            InputParams::Files(_) => None,
        }
    }
}
