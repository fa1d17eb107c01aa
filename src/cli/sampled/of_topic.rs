//! The messages of a topic that are tried: whether they can be read.

use super::columns::TypeTally;
use super::share::UsableShare;
use super::trial::SampleLimits;
use crate::cli::figures::join_numbers;
use crate::cli::progress::WorkDone;
use bernstream_kafka::check::TopicCheck;
use bernstream_kafka::source::kafka::{
    BadMessageRule, KafkaSourceParams, TopicSample, sample_topic,
};
use bernstream_kafka::source::record::TopicFormat;
use bernstream_release::source::{Batch, Columns};

/// Reads messages and hands their records to `take`.
pub fn checks_of_topic(
    params: &KafkaSourceParams,
    columns: &Columns,
    trial: SampleLimits,
    take: &mut dyn FnMut(&Batch),
    done: &WorkDone,
) -> Vec<TopicCheck> {
    let mut types = TypeTally::default();
    let found = sample_topic(
        params,
        columns,
        trial.most,
        &mut |batch: &Batch| {
            batch.found.iter().for_each(|found| types.count(found));
            take(batch);
        },
        &mut |read, all| done.set(read, all),
    );
    match found {
        Ok(found) => [message_checks(params, &found, trial.least), types.checks()].concat(),
        Err(error) => {
            let what = format!("messages of {} can be read", params.topic);
            vec![TopicCheck::new(
                what,
                false,
                error.to_string(),
                "correct what the message names, and try again",
            )]
        }
    }
}

fn message_checks(params: &KafkaSourceParams, found: &TopicSample, least: u64) -> Vec<TopicCheck> {
    let TopicSample {
        messages,
        by_producers,
        unpacked,
        silent,
        ..
    } = found;
    let topic = &params.topic;
    if *messages == 0 && unpacked.is_none() && silent.is_empty() {
        return vec![TopicCheck::passed(format!(
            "{topic} has no messages to try: it is empty, or all of them are given up"
        ))];
    }
    let mut checks = vec![readable_check(params, found, least)];
    if let Some(why) = unpacked {
        let remedy = "the worker names the offsets of the batch when it comes to it; see `lost` in [input.kafka]";
        let what = format!("batches of {topic} can be unpacked");
        checks.push(TopicCheck::new(
            what,
            false,
            format!("a batch cannot be unpacked: {why}"),
            remedy,
        ));
    }
    if unpacked.is_none() && !silent.is_empty() {
        let numbers = join_numbers(silent.iter(), ", ");
        checks.push(TopicCheck::new(
            format!("all that was asked for has arrived from {topic}"),
            false,
            format!("of partitions {numbers} some messages did not come within some seconds"),
            "try again; if it stays so, a transaction is open there, or the broker that leads them does not answer",
        ));
    }
    if !by_producers.is_empty() {
        let mut last = Vec::new();
        for (partition, offset) in by_producers {
            last.push(format!("offset {offset} of partition {partition}"));
        }
        let last = last.join(", ");
        let why =
            "they were written before the topic had LogAppendTime, and a worker that comes to them stops".to_owned();
        let remedy = "let the ledger begin behind them, without --from, or give them up: see `lost` in [input.kafka]";
        let what = format!("messages with a time that their producers set, up to {last} at least");
        checks.push(TopicCheck {
            warning: Some((why, remedy.to_owned())),
            ..TopicCheck::passed(what)
        });
    }
    checks
}

/// A broken message of many records stops the worker, unless it may pass it; one of a single record is dropped by itself.
fn readable_check(params: &KafkaSourceParams, found: &TopicSample, least: u64) -> TopicCheck {
    let share = UsableShare {
        part: found.messages - found.broken.len() as u64,
        whole: found.messages,
    };
    let UsableShare { part, whole } = share;
    let what = format!(
        "messages of {} can be read, of the oldest and the newest: {part} of {whole}",
        params.topic
    );
    if found.broken.is_empty() {
        return TopicCheck::passed(what);
    }
    if matches!(params.format, TopicFormat::Arrow) && params.on_bad_message == BadMessageRule::Stop
    {
        return TopicCheck::new(what, false, found.listed(), found.remedy());
    }
    let what = format!("{what}; the others are dropped: {}", found.listed());
    share.judge_share(
        what,
        least,
        "correct `format`, with its schemas, or what is sent",
    )
}
