//! `[ledger]`

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use crate::file;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_kafka::ledger::log;
use bernstream_kafka::ordered;
use bernstream_kafka::sink::OutputParams;
use bernstream_ledger as ledger;

/// Time that published bytes are kept by default.
const KEEP_PUBLISHED: Duration = Duration::from_secs(7 * 24 * 3600);

/// Time that workers that follow wait for the one that acts by default, and at least: they look a few times meanwhile.
const STANDBY: Duration = Duration::from_secs(10);
const LEAST_STANDBY: Duration = Duration::from_secs(1);

/// `[ledger]`
pub struct LedgerSettings {
    pub params: ledger::LedgerParams,
    log: Option<LogSettings>,
    /// Time that workers that follow wait for the one that acts.
    pub standby: Duration,
}

/// The topic of the log of a ledger, and the file of its key.
struct LogSettings {
    topic: Spanned<String>,
    key_file: PathBuf,
}

pub fn read_ledger(
    document: &mut Document<'_>,
    table: Spanned<file::LedgerTable>,
) -> Checked<LedgerSettings> {
    let place = table.span();
    let written = table.into_inner();
    let path = document.required(&place, "path", written.path, values::words);
    let keep_published = document.optional(written.keep_published, values::duration);
    let standby = read_standby(document, written.standby, written.log.is_some());
    let log = read_log(document, &place, written.log, written.key_file);
    let params = ledger::LedgerParams {
        path: path?.into_inner().into(),
        keep_published: keep_published?.map_or(KEEP_PUBLISHED, Spanned::into_inner),
    };
    Ok(LedgerSettings {
        params,
        log: log?,
        standby: standby?,
    })
}

fn read_standby(
    document: &mut Document<'_>,
    written: Field<String>,
    has_log: bool,
) -> Checked<Duration> {
    let Some(standby) = document.optional(written, values::duration)? else {
        return Ok(STANDBY);
    };
    if !has_log {
        let what = "is how long a standby waits, and without a log there is none";
        return Err(document.fault(
            standby.span(),
            what,
            "add ledger.log and ledger.key_file, or remove it",
        ));
    }
    if *standby.get_ref() < LEAST_STANDBY {
        return Err(document.fault(
            standby.span(),
            "is too short: a standby looks a few times meanwhile",
            "use 1s or more",
        ));
    }
    Ok(standby.into_inner())
}

fn read_log(
    document: &mut Document<'_>,
    place: &Range<usize>,
    log: Option<Spanned<String>>,
    key_file: Option<Spanned<String>>,
) -> Checked<Option<LogSettings>> {
    if log.is_none() {
        return match key_file {
            None => Ok(None),
            Some(key) => Err(document.fault(
                key.span(),
                "is the key of a ledger log, and there is none",
                "add ledger.log, or remove it",
            )),
        };
    }
    let topic = document.required(place, "log", log, values::name);
    let key_file = document.required(place, "key_file", key_file, values::words);
    Ok(Some(LogSettings {
        topic: topic?,
        key_file: key_file?.into_inner().into(),
    }))
}

impl LedgerSettings {
    /// The log, which is beside the witness.
    pub fn log_params(
        &self,
        document: &mut Document<'_>,
        output: &OutputParams,
    ) -> Checked<Option<log::KafkaLogParams>> {
        let Some(LogSettings { topic, key_file }) = &self.log else {
            return Ok(None);
        };
        let OutputParams::Kafka { sink, witness } = output else {
            return Err(document.fault(
                topic.span(),
                "needs a witness in Kafka",
                "publish to [output.kafka], or remove ledger.log and ledger.key_file",
            ));
        };
        if [&sink.topic, &witness.topic].contains(&topic.get_ref()) {
            return Err(document.fault(
                topic.span(),
                "is the output topic or its witness",
                "the ledger log is a topic of its own, of one partition",
            ));
        }
        Ok(Some(log::KafkaLogParams {
            records: ordered::OrderedTopicParams {
                topic: topic.get_ref().clone(),
                ..witness.clone()
            },
            key_file: key_file.clone(),
        }))
    }

    /// The place where the topic is named.
    pub fn log_place(&self) -> Option<Range<usize>> {
        self.log.as_ref().map(|log| log.topic.span())
    }
}
