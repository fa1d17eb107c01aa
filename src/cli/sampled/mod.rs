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
use self::tally::SampleTally;
pub use self::trial::SampleLimits;
use crate::cli::progress::{WorkDone, show_progress};
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::check::TopicCheck;
use bernstream_release::source::Batch;

/// Reads records of the input, and tells what was found and what is wrong with it.
pub fn sample_checks(settings: &WorkerSettings, trial: SampleLimits) -> Vec<TopicCheck> {
    let mut columns = ColumnTally::new(&settings.columns);
    let mut tally = SampleTally::new(settings);
    let mut cap = CapTally::new(settings);
    let is_part = matches!(settings.input, InputParams::Kafka(_));
    let what = match is_part {
        true => "trying messages",
        false => "trying records, bytes of files",
    };
    let read = show_progress(what, |done| {
        read_sample(settings, trial, done, |batch| {
            columns.count(batch);
            tally.count(batch);
            cap.count(batch);
        })
    });
    [
        read,
        columns.checks(),
        of_use::checks_of_use(&tally, trial.least),
        cap.checks(is_part),
    ]
    .concat()
}

/// Reads records and hands them to `take`; returns whether they can be read.
fn read_sample(
    settings: &WorkerSettings,
    trial: SampleLimits,
    done: &WorkDone,
    mut take: impl FnMut(&Batch),
) -> Vec<TopicCheck> {
    let columns = &settings.columns;
    match &settings.input {
        InputParams::Kafka(params) => {
            of_topic::checks_of_topic(params, columns, trial, &mut take, done)
        }
        InputParams::Files(params) => {
            of_files::checks_of_files(params, columns, trial, &mut take, done)
        }
    }
}
