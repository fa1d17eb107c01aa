//! What the tests and benchmarks share.
#![allow(dead_code, reason = "each program uses some of it")]

pub mod kafka;
pub mod ledger;
pub mod picture;
pub mod plan;
pub mod policies;
pub mod prometheus;
pub mod running;
pub mod scene;
