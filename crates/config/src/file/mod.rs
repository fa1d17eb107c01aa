//! The file as written: names and shapes, no rules.

mod asked;
pub mod keys;
mod release;
pub mod schema;
mod sections;

pub use keys::{KEYS, known_keys};
pub use release::*;
pub use schema::schema;
pub use sections::*;
