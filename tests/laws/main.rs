//! Everything that can be said of functions, noise, prices and synopses without a process, a broker or a database: one
//! program, because each that is linked costs seconds.

#[path = "../support/batches.rs"]
mod batches;
#[path = "../support/picture.rs"]
mod picture;
#[cfg(feature = "worker")]
#[path = "../support/plan.rs"]
mod plan;
#[path = "../support/priestley_chao.rs"]
mod priestley_chao;
#[path = "../support/statistics.rs"]
mod statistics;

mod audit;
mod bayes;
mod blackbox;
mod caller;
mod continual;
mod covariance;
mod decode;
mod euclidean;
mod evaluators;
mod expression;
mod kept;
mod kernel_form;
mod machine;
mod moments;
mod noise;
mod online;
mod papers_density;
mod papers_machine;
#[cfg(feature = "worker")]
mod papers_noise;
mod papers_regression;
#[cfg(feature = "worker")]
mod planner;
mod pld;
mod query;
mod regression;
mod sampler;
mod sensitivity;
mod synopsis;
mod window;
