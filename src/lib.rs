//! The program: its commands, and the wiring of the crates that they stand on.
//!
//! `docs/architecture.md` shows these crates, a record's walk through them, and the invariants that carry the promise;
//! `docs/bibliography.md` lists the papers that comments cite.
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

pub mod cli;
