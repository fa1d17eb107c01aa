//! The file as written: names and shapes, no rules.

mod asked;
#[cfg(test)]
mod keys;
mod release;
mod schema;
mod sections;

pub use release::*;
pub use schema::{KEYS, known_keys, schema};
pub use sections::*;
