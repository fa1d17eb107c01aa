//! The file as written: names and shapes, no rules.

mod asked;
mod key_values;
mod release;
mod schema;
mod sections;

pub use key_values::*;
pub use release::*;
pub use schema::{KEYS, known_keys, schema};
pub use sections::*;
