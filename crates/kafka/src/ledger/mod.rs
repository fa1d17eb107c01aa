//! What stands beside a ledger in topics.

pub mod budget;
pub mod log;
pub mod witness;
