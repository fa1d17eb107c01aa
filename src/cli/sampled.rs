//! `check --sample`: whether the newest messages of the input can be read with this configuration.

use std::collections::BTreeMap;

use crate::cli::figures::counted;
use crate::config::{Input, Settings};
use crate::kafka::check::Check;
use crate::source::kafka::{Params, Sample, sample};
use crate::window::Rules;

/// Reads the newest `most` messages of each partition: what was found, and what is wrong with it.
pub fn checks(settings: &Settings, most: u32) -> Vec<Check> {
    let Input::Kafka(kafka) = &settings.input else {
        let what = "the newest messages of the input can be read".to_owned();
        return vec![Check::new(what, false, "files have no messages", "leave out --sample")];
    };
    match sample(kafka, &settings.columns, most) {
        Ok(found) => {
            let mut checks = found_in(kafka, &found);
            checks.extend(columns(&found));
            checks.extend(in_time(&settings.windows, &found));
            checks
        }
        Err(error) => {
            let what = format!("the newest messages of {} can be read", kafka.topic);
            vec![Check::new(what, false, error.to_string(), "correct what the message names, and try again")]
        }
    }
}

/// Whether event times can lie in a window at all: where none does, their unit is mostly another one than was declared.
fn in_time(windows: &Rules, found: &Sample) -> Option<Check> {
    let ((first, last), stamped) = (found.times?, found.stamped?);
    let (origin, end) = (windows.grid.origin(), stamped.plus(windows.max_future_skew));
    Some(Check::new(
        format!("event times in them, from {first} to {last}, lie in windows"),
        last >= origin && first <= end,
        format!(
            "none is between windows.origin, {origin}, and {end}, when the last of the messages may be read: all records are dropped"
        ),
        "correct input.time_format, the column of the event time, or the origin",
    ))
}

/// Whether all messages have the columns, with types that they may have, and each column with the same.
fn columns(found: &Sample) -> Vec<Check> {
    let unread = found.unread.iter().map(|(column, (count, why))| {
        let all: u64 = found.kinds.get(column).into_iter().flat_map(BTreeMap::values).sum();
        Check::new(
            format!("messages in which {column:?} can be read: {} of {all}", all - count),
            false,
            format!("{why}; there it counts as null in every record"),
            "correct the name of the column, or its type; a record must not decide which columns a message has",
        )
    });
    let differ = found.kinds.iter().filter(|(_, kinds)| kinds.len() > 1).map(|(column, kinds)| {
        let of_kind = |(kind, count): (&&str, &u64)| format!("{kind} in {}", counted(*count, "message"));
        Check::new(
            format!("the type of {column:?} is the same in all messages"),
            false,
            format!(
                "it is {}: where a program takes the type of a column from the records in it, one record can change what others become",
                kinds.iter().map(of_kind).collect::<Vec<_>>().join(", ")
            ),
            "give the producer a schema: pyarrow.schema, schema= of Polars, or the nullable types of pandas",
        )
    });
    unread.chain(differ).collect()
}

fn found_in(kafka: &Params, found: &Sample) -> Vec<Check> {
    let Sample { messages, broken, records, lacking, unpacked, silent, .. } = found;
    let topic = &kafka.topic;
    if *messages == 0 && unpacked.is_none() && silent.is_empty() {
        return vec![Check::passed(format!(
            "{topic} has no messages to try: it is empty, or all of them are given up"
        ))];
    }
    let tried = format!("the newest {} of {topic} can be read", counted(*messages, "message"));
    let mut checks = vec![match (broken.as_slice(), unpacked) {
        (_, Some(why)) => {
            let remedy = "the worker names the offsets of the batch when it comes to it; see `lost` in [input.kafka]";
            Check::new(tried, false, format!("a batch cannot be unpacked: {why}"), remedy)
        }
        ([], None) => Check::passed(tried),
        (_, None) => Check::new(tried, false, found.reasons(), found.remedy(&kafka.format)),
    }];
    if unpacked.is_none() && !silent.is_empty() {
        let numbers = silent.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        checks.push(Check::new(
            format!("all that was asked for has arrived from {topic}"),
            false,
            format!("of partitions {numbers} the last messages did not come within some seconds"),
            "try again; if it stays so, a transaction is open there, or the broker that leads them does not answer",
        ));
    }
    for (column, without) in lacking.iter().filter(|_| *records > 0) {
        checks.push(Check::new(
            format!("records in them have {column:?}: {} of {records}", records - without),
            without < records,
            "none has it: it is missing or null, or of another type than is declared",
            "correct the name of the column, or its type",
        ));
    }
    checks
}
