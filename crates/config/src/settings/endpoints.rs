//! The source of records.

use bernstream_kafka::Broker;
use bernstream_kafka::source;

#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
#[derive(Clone, Debug)]
pub enum Input {
    Kafka(source::kafka::Params),
    Files(source::files::Params),
}

impl Input {
    pub fn broker(&self) -> Option<&Broker> {
        match self {
            Input::Kafka(params) => Some(&params.broker),
            Input::Files(_) => None,
        }
    }
}
