//! Everything that can be said of functions, noise, prices, synopses and whole workers without a process or a broker: one
//! program, because each that is linked costs seconds.
#![allow(clippy::too_many_lines, reason = "lists of cases")]

#[path = "../harness/mod.rs"]
mod harness;

mod absent;
mod audit;
mod batches;
mod bayes;
mod beyond;
mod blackbox;
mod caller;
mod cell_deviation;
mod cell_readings;
mod cells;
mod change;
mod chunks;
mod composite_keys;
mod configurations;
mod continual;
mod covariance;
mod decode;
mod euclidean;
mod evaluators;
mod expression;
mod form_error;
mod found_keys;
mod found_messages;
mod fuzz;
mod inferred;
mod kept;
mod kernel_form;
mod key_counts;
mod key_selection;
mod ledger_log;
mod machine;
mod memory;
mod moments;
mod neighbours;
mod noise;
mod online;
mod oracle;
mod papers_density;
mod papers_machine;
mod papers_noise;
mod papers_regression;
mod partials;
mod parts;
mod planner;
mod planner_cases;
mod pld;
mod priestley_chao;
mod query;
mod records;
mod regression;
mod rivals;
mod sampler;
mod sensitivity;
mod statistics;
mod synopsis;
mod table_classes;
mod tables;
mod tiny;
mod user_weighted;
mod window;
