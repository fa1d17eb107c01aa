//! What every Kafka client of the program needs: connection settings, topic metadata and administration, a producer that waits
//! for its delivery reports, and one error type.
//!
//! Sources, sinks and witnesses stay in their own rooms and use this one.

mod addresses;
pub mod broker;
pub mod broker_clock;
pub mod check;
mod connection_failure;
pub mod error;
pub mod error_context;
pub(crate) mod lost_client;
mod metadata_client;
pub mod offsets;
pub mod ordered;
pub mod producer;
pub mod replica_lag;
pub mod right;
pub mod sealing;
pub mod security;
pub mod topic;
mod topic_id;

pub use self::addresses::addresses;
pub use self::broker::Broker;
pub use self::error::Error;
pub use self::error_context::ErrorContext;
pub use self::metadata_client::MetadataClient;
