//! A text of TOML: where everything stands in it, what is wrong with it, and what single values mean. Which keys there are is
//! said by whoever reads it.

mod document;
mod faults;
mod known_keys;
mod tree;
pub mod values;

pub use document::{Checked, Document, Field, Reported};
pub use faults::Faults;
pub use known_keys::{Key, KnownKeys};
