//! One total for all pipelines of an input: a topic of one partition, in which each pipeline holds a fixed share of it.
//!
//! Shares are fixed because who spends first depends on processing time, and so on the data: first come, first served would leak.
//!
//! A pipeline writes an entry, reads it back, and only then creates its ledger, which begins with a block that the entry covers
//! ([`join`]). Which entries hold follows from reading the whole topic from its start ([`fold`]), which gives everyone the same
//! result; who wrote first, acknowledgements and timeouts decide nothing. So the shares of a block never exceed its total, and
//! each ledger never spends more of a block than its share, rounded down: together they keep the total.
//!
//! A share ends from a block on that was never charged: first the ledger says so in a row that its witness accepts, and only
//! then the topic. The other way round a crash between the two would leave a ledger that goes on spending what another pipeline
//! has taken over.

pub mod entry;
pub mod error;
pub mod fold;
pub mod join;
