//! Private functions from a stream.
//!
//! The walk of a record, one room a step; `pipeline.rs` shows it, a step a line:
//!
//! ```text
//! Batch --> Window --> Exact --> Noisy --> Synopsis --> Sealed --> Paid --> published
//! source    window     targets   mechanism synopsis     synopsis   ledger   sink
//! ```
//!
//! Five invariants carry the promise:
//!
//! 1. Bounded before it is summed: a record is mapped into the public domain and capped before it touches any state.
//! 2. Exact, then noisy: sums are integers; noise is drawn exactly on the same grid; `mechanism` is the only door.
//! 3. What leaves was paid for, byte for byte: the sink takes only [`ledger::Paid`], and only the ledger makes one.
//! 4. The schedule knows no data: every window is released for every declared key, with the same shape, until its policy says
//!    in advance that it is over.
//! 5. Spent is spent: a ledger that is missing, damaged, a copy or behind the witness stops the worker.
//!
//! Rooms import only rooms before them in the list below (`tests/it/layers.rs` keeps that true), and none imports
//! `config`: it hands each room its own parameters. `targets`, `mechanism`, `accountant` and `synopsis` do no I/O, read
//! no clock and log nothing.
//!
//! Papers, by the key used in docstrings: `[AR17]` Alda and Rubinstein, The Bernstein Mechanism, AAAI 2017;
//! `[RA17]` Rubinstein and Alda, Pain-Free Random Differential Privacy with Sensitivity Sampling, ICML 2017;
//! `[CKS20]` Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy, NeurIPS 2020;
//! `[WFZW13]` Wang, Fan, Zhang and Wang, Efficient Algorithm for Privately Releasing Smooth Queries, NIPS 2013;
//! `[BS16]` Bun and Steinke, Concentrated Differential Privacy, TCC 2016;
//! `[DMNS06]` Dwork, McSherry, Nissim and Smith, Calibrating Noise to Sensitivity, TCC 2006;
//! `[DKMMN06]` Dwork, Kenthapadi, McSherry, Mironov and Naor, Our Data, Ourselves, EUROCRYPT 2006;
//! `[KOV15]` Kairouz, Oh and Viswanath, The Composition Theorem for Differential Privacy, ICML 2015;
//! `[RRUV16]` Rogers, Roth, Ullman and Vadhan, Privacy Odometers and Filters, NeurIPS 2016;
//! `[FZ21]` Feldman and Zrnic, Individual Privacy Accounting via a Renyi Filter, NeurIPS 2021;
//! `[WRRW23]` Whitehouse, Ramdas, Rogers and Wu, Fully Adaptive Composition in Differential Privacy, ICML 2023.
#![deny(unsafe_code)]

pub mod clock;
#[cfg(feature = "worker")]
pub mod kafka;
pub mod source;
pub mod window;
pub mod targets;
pub mod mechanism;
pub mod accountant;
pub mod synopsis;
#[cfg(feature = "worker")]
pub mod ledger;
#[cfg(feature = "worker")]
pub mod sink;
#[cfg(feature = "worker")]
pub mod feed;
#[cfg(feature = "worker")]
pub mod metrics;
#[cfg(feature = "worker")]
pub mod pipeline;
#[cfg(feature = "worker")]
pub mod config;
#[cfg(feature = "worker")]
pub mod serve;
#[cfg(feature = "worker")]
pub mod telemetry;
#[cfg(feature = "worker")]
pub mod cli;
