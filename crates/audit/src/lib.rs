//! What the promise says of one unit more or less, held against the program that keeps it.
//!
//! Neighbouring streams, replayed: [`neighbours::neighbouring_pairs`] makes pairs of streams that differ by one unit, from the words of the
//! promise and not from the code that keeps it. [`replay::replay_stream`] lets the worker itself, with its own ledger, read a stream with
//! random numbers that a seed fixes. [`compare`] says whether anything but the released values differs (messages, schedule, ledger,
//! metrics, log), and how far those move in the norm that the noise is made for, against what was declared.
//!
//! The noise: [`samplers`] tests every mechanism of a plan at the scale in use, and [`trade_off`] what the best attacker learns
//! from a released window about which of two neighbouring streams it was released from.
//!
//! Nothing here is random but by a seed, and no real record is read.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::missing_errors_doc,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod attacked;
mod attacker;
pub mod batches;
pub mod compare;
mod cuts;
mod deadline;
mod edit;
mod encode;
mod error;
mod everywhere;
mod evidence;
pub mod found_attack;
mod found_crowd;
mod found_law;
mod found_names;
mod found_pairs;
mod found_tables;
#[cfg(test)]
mod found_tests;
mod gamma;
mod law;
mod log;
mod looks;
mod low_bits;
pub mod messages;
mod movers;
pub mod neighbours;
mod observed;
mod odd;
mod opened;
mod pair;
mod promise;
mod records;
pub mod replay;
mod rows;
pub mod run;
pub mod samplers;
mod scene;
mod shift;
mod stage;
mod stream;
mod subject;
mod tally;
mod threads;
pub mod trade_off;
mod users;
mod values;
mod watch;
mod way;

pub use self::attacked::{AttackReport, DetectableScale, ErrorRatePoint};
pub use self::batches::decode_batches;
pub use self::deadline::Deadline;
pub use self::error::ReplayError;
pub use self::evidence::{AuditTest, Verdict};
pub use self::observed::{DrawnWindow, Evaluation, PublishedBytes, ReplayObservations};
pub use self::pair::NeighbouringPair;
pub use self::run::run_pairs;
pub use self::stream::SourceQuestion;
pub use self::subject::{AuditSubject, StampSource};
