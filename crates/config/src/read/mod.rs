//! The sections of the file, one by one: they become settings, and drafts of releases, which keep their positions in the text.

use crate::text::Checked;

mod budget;
mod cells;
mod domain;
mod key_file;
mod names;
mod noise;
mod payment;
mod private_order;
mod share;

pub mod draft;
pub mod format;
pub mod found_keys;
pub mod input;
pub mod key_other;
pub mod key_values;
pub mod ledger;
pub mod output;
pub mod pricing;
pub mod privacy;
pub mod registry;
pub mod release;
pub mod releases;
pub mod sampled;
pub mod scale;
pub mod schedule;
mod security;
pub mod serve;
mod targets;
pub mod windowing;

/// A section by reference, or the proof that it has a fault.
pub fn as_checked<T>(section: &Checked<T>) -> Checked<&T> {
    match section {
        Ok(read) => Ok(read),
        Err(reported) => Err(*reported),
    }
}
