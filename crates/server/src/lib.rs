//! Synopses over HTTP: they are followed in a topic or folder ([`feed`]), and served with their page ([`serve`]).
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

pub mod feed;
pub mod serve;
