//! Neighbouring streams, replayed: what the promise says of one unit more or less, held against a whole worker.
//!
//! [`neighbours::pairs`] makes pairs of streams that differ by one unit, from the words of the promise and not from the code that
//! keeps it. [`replay::replay`] lets the worker itself, with its own ledger, read a stream with the noise frozen. [`compare`] says
//! whether anything but the released values differs, and how far those move in the norm that the noise is made for, against what
//! was declared. Nothing here is random but by a seed, and no real record is read.

pub mod compare;
mod encode;
mod error;
mod log;
pub mod messages;
mod movers;
pub mod neighbours;
mod observed;
mod odd;
mod pair;
pub mod replay;
mod run;
mod shift;
mod stage;
mod stream;
mod subject;
mod watch;

pub use self::error::Error;
pub use self::observed::{Drawn, Evaluation, Observed, Published};
pub use self::pair::Pair;
pub use self::run::run;
pub use self::stream::Asked;
pub use self::subject::{Stamps, Subject};
