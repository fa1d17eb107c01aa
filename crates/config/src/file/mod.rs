//! The file as written: names and shapes, no rules.

mod asked;
mod release;
mod schema;
mod sections;

pub use release::*;
pub use schema::{KEYS, known_keys, schema};
pub use sections::*;
