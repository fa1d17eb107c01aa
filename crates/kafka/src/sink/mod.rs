//! Where synopses go: a sink accepts only what was paid for.

mod check;
pub mod deliver;
mod error;
pub mod files;
pub mod kafka;
pub mod output;
mod publish;
mod published;
mod tail;

pub use self::error::SinkError;
pub use self::output::{OutputLocation, OutputParams};
pub use self::publish::{Sink, Unpublished};
pub use self::published::{FoundMessage, PaidMessages};
pub use self::tail::{LostMessages, OutputTail};
