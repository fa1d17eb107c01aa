//! The program from outside and its parts together: one test program, because each that is linked costs seconds.

#[path = "../harness/mod.rs"]
mod harness;

mod answers;
mod api;
mod attack;
mod audit;
mod broker;
mod budget;
mod calibration;
mod chain;
mod choice;
mod clock;
mod cluster;
mod commands;
mod comparison;
mod composition;
mod config;
mod copies;
mod crash;
mod demo;
mod deploy;
mod errors;
mod faults;
mod files;
mod flights;
mod functions;
mod golden;
mod kept_choice;
mod keys;
mod layers;
mod ledger;
mod ledger_costs;
mod ledger_of_years;
mod limits;
mod looking;
mod monitoring;
mod names;
mod neighbours;
mod outage;
mod policies;
mod probes;
mod produce;
mod proofs;
mod readers;
mod running_sums;
mod sample;
mod schema;
mod soak;
mod source;
mod telemetry;
#[cfg(feature = "tls")]
mod tls;
mod topics;
mod unreadable;
mod witness;
