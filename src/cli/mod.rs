//! cli

pub mod evaluate;
