//! A TOML text with the position of everything in it, its faults, and parsers of single values. The caller says which keys
//! exist.

mod document;
mod faults;
mod known_keys;
mod tree;
pub mod values;

pub use document::{Checked, Document, Field, Reported};
pub use faults::Faults;
pub use known_keys::{Asked, Key, KnownKeys};
