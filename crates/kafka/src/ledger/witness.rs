//! The witness of a ledger, in a topic.

pub mod kafka;
