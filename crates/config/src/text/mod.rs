//! A TOML text with the position of everything in it, its faults, and parsers of single values. The caller says which keys
//! exist.

mod document;
mod elements;
mod faults;
mod known_keys;
mod spanned;
mod tree;
pub mod values;

pub use document::{Checked, Document, Field, Reported};
pub use elements::each;
pub use faults::Faults;
pub use known_keys::{AskedName, KnownKey, KnownKeys};
pub use spanned::Spanned;
