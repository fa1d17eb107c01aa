//! `check --sample`: whether records of the input can be read with this configuration, and are of use to its releases.

mod columns;
mod of_cap;
mod of_files;
mod of_topic;
mod of_use;
mod share;
mod tally;
mod trial;

use self::columns::ColumnTally;
use self::of_cap::CapTally;
use self::tally::Tally;
pub use self::trial::Trial;
use crate::cli::progress::counting;
use bernstream_config::{Input, Settings};
use bernstream_kafka::check::Check;
use bernstream_release::source::Batch;

/// Reads records of the input: what was found, and what is wrong with it.
pub fn checks(settings: &Settings, trial: Trial) -> Vec<Check> {
    let mut columns = ColumnTally::new(&settings.columns);
    let mut tally = Tally::new(settings);
    let mut cap = CapTally::new(settings);
    let mut take = |batch: &Batch| {
        columns.count(batch);
        tally.count(batch);
        cap.count(batch);
    };
    let read = match &settings.input {
        Input::Kafka(params) => counting("trying messages", |done| {
            of_topic::checks(params, &settings.columns, trial, &mut take, done)
        }),
        Input::Files(params) => counting("trying records, bytes of files", |done| {
            of_files::checks(params, &settings.columns, trial, &mut take, done)
        }),
    };
    let is_part = matches!(settings.input, Input::Kafka(_));
    [
        read,
        columns.checks(),
        of_use::checks(&tally, trial.least),
        cap.checks(is_part),
    ]
    .concat()
}
