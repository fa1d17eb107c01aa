//! Windows: which record belongs to which, and what a window keeps of its records (`docs/proofs/windows.md`).

pub mod accumulator;
mod chunk;
pub mod counts;
pub mod encoding;
mod keys;
pub mod open;
pub mod part;
pub mod router;
pub mod rules;
pub mod state;
pub mod sum;

pub use counts::RecordCounts;
pub use encoding::VERSION;
pub use open::rank;
pub use part::{Group, Part, Window};
pub use router::LONGEST_UNIT;
pub use rules::{Axis, Cap, Form, Label, Outside, Rules};
pub use state::Windows;
pub use sum::bytes_held;
