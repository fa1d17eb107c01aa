//! What belongs where, and what a window remembers.

pub mod grid;
pub mod histogram;
