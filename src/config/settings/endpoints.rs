//! Where records come from, and where synopses go.

use crate::kafka::Broker;
use crate::{ledger, sink, source};

#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
#[derive(Clone, Debug)]
pub enum Input {
    Kafka(source::kafka::Params),
    Files(source::files::Params),
}

#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
#[derive(Clone, Debug)]
pub enum Output {
    Kafka { sink: sink::kafka::Params, witness: ledger::witness::kafka::Params },
    Files(sink::files::Params),
}

impl Input {
    pub fn broker(&self) -> Option<&Broker> {
        match self {
            Input::Kafka(params) => Some(&params.broker),
            Input::Files(_) => None,
        }
    }
}
