//! Everything that reaches Kafka or files: clients, sources of records, sinks of synopses, and the topics of a ledger.
//!
//! The modules at the root are what every Kafka client needs: connection settings, topic metadata and administration, a producer
//! that waits for its delivery reports, and one error type.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::missing_errors_doc,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

pub mod addresses;
pub mod broker;
pub mod broker_clock;
pub mod check;
mod connection_failure;
pub mod error;
pub mod error_context;
pub mod ledger;
pub mod lost_client;
mod metadata_client;
pub mod offsets;
pub mod ordered;
pub mod producer;
pub mod replica_lag;
pub mod right;
pub mod security;
pub mod sink;
pub mod source;
pub mod topic;
mod topic_id;
mod unknown_topic;

pub use self::addresses::addresses;
pub use self::broker::Broker;
pub use self::error::ClusterError;
pub use self::error_context::ErrorContext;
pub use self::metadata_client::MetadataClient;
pub use self::unknown_topic::UnknownTopic;
