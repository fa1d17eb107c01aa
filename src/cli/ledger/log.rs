//! `ledger log init`, `ledger restore`, and what `ledger verify` says of the log.

use crate::cli::failure::Failure;
use crate::cli::print::line;
use crate::cli::progress::{show_during, show_progress};
use bernstream_config::WorkerSettings;
use bernstream_kafka as kafka;
use bernstream_kafka::ledger::log::{KafkaLog, KafkaLogParams, open_log};
use bernstream_kafka::topic;
use bernstream_ledger as ledger;
use bernstream_ledger::{Head, Ledger, LedgerError};
use bernstream_synopsis::clock::Timestamp;

/// Number of rows that are named.
const NAMED: usize = 5;

/// The log of the configuration.
fn log_params(settings: &WorkerSettings) -> Result<&KafkaLogParams, Failure> {
    settings.ledger_log.as_ref().ok_or_else(|| {
        Failure::Configuration(
            "the configuration has no ledger log: add ledger.log and ledger.key_file".to_owned(),
        )
    })
}

/// Creates the topic of the log if it is missing.
///
/// # Errors
///
/// If it cannot be created.
pub fn create_missing(settings: &WorkerSettings, created: &mut Vec<String>) -> Result<(), Failure> {
    let Some(log) = &settings.ledger_log else {
        return Ok(());
    };
    match topic::describe_topic(&log.records.broker, &log.records.topic) {
        Err(kafka::ClusterError::NoTopic { .. }) => {
            KafkaLog::create(log)?;
            created.push(format!("ledger log topic {}", log.records.topic));
        }
        found => drop(found?),
    }
    Ok(())
}

/// `ledger log init`.
///
/// # Errors
///
/// If the configuration has no log, or the key or the topic cannot be used.
pub fn create_log(settings: &WorkerSettings) -> Result<(), Failure> {
    let log = log_params(settings)?;
    let mut created = Vec::new();
    create_missing(settings, &mut created)?;
    open_log(log)?;
    match created.is_empty() {
        true => line(format_args!(
            "the ledger log topic {} is there and can be used",
            log.records.topic
        )),
        false => line(format_args!(
            "created the {}; a worker that is started now fills it",
            created.join(", ")
        )),
    }
}

/// `ledger restore`.
///
/// # Errors
///
/// If the log does not have what the witness has accepted, or the ledger is in use or there already.
pub fn restore_ledger(settings: &WorkerSettings, is_dry: bool) -> Result<(), Failure> {
    let mut log = open_log(log_params(settings)?)?;
    let mut witness = settings.output.open_witness()?;
    let Some(accepted) = witness.read()? else {
        return Err(Failure::Ledger(
            "the witness has no claim, so there is nothing to build: a worker makes a new ledger"
                .into(),
        ));
    };
    if ledger::ledger_exists(&settings.ledger)? {
        let ledger = Ledger::open(&settings.ledger)?;
        match ledger.check_accepted(&witness.identity()?, Some(&accepted)) {
            Ok(()) => {
                return line(
                    "nothing to build: the ledger on the disk is the one that the witness follows",
                );
            }
            Err(LedgerError::ForeignHead { .. }) if is_dry => {}
            Err(LedgerError::ForeignHead { .. }) => {
                ledger.fill_other_log(&mut log, &accepted.head)?
            }
            Err(error) => return Err(error.into()),
        }
    }
    let now = Timestamp::now();
    let verb = if is_dry { "would build" } else { "built" };
    let built = if is_dry {
        show_progress("reading the ledger log", |done| {
            log.restorable_with_progress(&settings.ledger, &accepted.head, now, &mut |read, all| {
                done.set(read, all)
            })
        })?
    } else {
        show_progress("building the ledger from its log", |done| {
            log.restore_with_progress(&settings.ledger, &accepted.head, now, &mut |read, all| {
                done.set(read, all)
            })
        })?
    };
    let from = built.checkpoint.map_or(String::new(), |row| {
        format!(" from the checkpoint of row {row} on")
    });
    line(format_args!(
        "{verb} the ledger from its log{from}: {} rows, newest {}, of {} bytes in the log; {} windows are not known to be published",
        built.rows, built.newest, built.bytes, built.unpublished
    ))
}

/// Compares the log with the ledger, and says what was found.
///
/// # Errors
///
/// If the log lacks a row that the witness has accepted, or cannot be read.
pub fn verify_log(
    ledger: &Ledger,
    accepted: Head,
    log: &KafkaLogParams,
) -> Result<String, Failure> {
    let mut log = open_log(log)?;
    let (lacking, (rows, bytes)) = show_during("comparing the ledger with its log", || {
        ledger.compare_with_log(&mut log, accepted)
    })?;
    if lacking.is_empty() {
        let from = log.base_row().map_or(String::new(), |row| {
            format!(" after that of a checkpoint, row {row}")
        });
        return Ok(format!(
            "the ledger log has every row that was accepted{from}: {rows} rows, {bytes} bytes"
        ));
    }
    let named: Vec<String> = lacking
        .iter()
        .take(NAMED)
        .map(|head| head.sequence.to_string())
        .collect();
    let dots = if lacking.len() > NAMED { ", ..." } else { "" };
    Err(Failure::Unsound(format!(
        "the ledger log lacks rows that the witness has accepted ({}{dots}): if this disk is lost now, nothing can be published any \
         more; start the worker, which appends them",
        named.join(", ")
    )))
}
