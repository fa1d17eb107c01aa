//! Windows: which record belongs to which, and what a window keeps of its records (`docs/proofs/windows.md`).

pub mod accumulator;
mod chunk;
mod counts;
mod encoding;
mod found_encoding;
mod found_keys;
mod keys;
mod open;
mod part;
mod router;
mod rules;
mod state;
mod sum;
mod unit_keys;

pub use counts::RecordCounts;
pub use encoding::VERSION;
pub use found_keys::{FoundKeyCounting, FoundKeyTotals};
pub use keys::KeyGroups;
pub use open::survival_rank;
pub use part::{Window, WindowGroup, WindowPart};
pub use router::LONGEST_UNIT;
pub use rules::{Cap, DomainAxis, OutsideRule, RecordLabel, ReleaseInput, WindowRules};
pub use state::WindowStore;
pub use sum::bytes_held;
pub use unit_keys::{
    CountedKeys, KeyCounting, KeyTotals, MOST_RECORDS, RECORD_GRAINS, RankKey, UnitSum,
};
