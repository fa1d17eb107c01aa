//! Everything that speaks to a Kafka cluster for the other rooms: how it is reached, what a topic is, a producer that waits for
//! its delivery reports, and one error for all of them.
//!
//! Sources, sinks and witnesses stay in their own rooms and use this one.

pub mod broker;
pub mod check;
pub mod error;
pub mod error_context;
pub mod producer;
mod refusal;
pub mod security;
pub mod topic;
mod topic_id;

pub use self::broker::Broker;
pub use self::error::Error;
pub use self::error_context::ErrorContext;
