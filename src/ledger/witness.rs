//! The witness: orders what several copies of a ledger might claim.

pub mod kafka;
