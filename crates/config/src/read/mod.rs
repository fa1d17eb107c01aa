//! The sections of the file, one by one: they become settings, and drafts of releases, which keep their positions in the text.

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
pub mod input;
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
