//! The file as written: names and shapes, no rules.

mod asked;
mod keys;
mod release;
mod schema;
mod sections;

pub use keys::{KEYS, known_keys};
pub use release::*;
pub use schema::schema;
pub use sections::*;
