//! `ledger verify`: the ledger, its witness and everything on the output against each other.

use serde::Serialize;

use super::log;
use super::promised::definition_in_words;
use super::rows;
use super::show::not_here;
use super::witnessed::{RecognisedHead, recognised_or_behind};
use crate::cli::failure::Failure;
use crate::cli::progress::show_progress;
use crate::cli::shares::{self, HeldShare};
use bernstream_config::WorkerSettings;
use bernstream_kafka::sink::output::OutputExtent;
use bernstream_kafka::sink::{FoundMessage, OutputTail, PaidMessages, Sink};
use bernstream_ledger::{
    ClosedWindow, Evidence, Head, Ledger, LedgerRow, MissingRows, ReleaseOutcome, WitnessStanding,
};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

/// Findings of a verification, of which nothing was wrong.
#[derive(Debug, Serialize)]
pub struct VerificationFindings {
    pub ledger: String,
    pub rows: u64,
    /// Digest of the newest row, in hexadecimal.
    pub digest: String,
    /// The definition of privacy that the ledger accounts for.
    pub definition: String,
    /// The newest row that the witness has accepted; `None` before the first.
    pub witness_row: Option<u64>,
    /// Records of the witness that no program of this kind has written.
    #[serde(skip_serializing_if = "is_zero")]
    pub stray_records: u64,
    /// Messages on the output that were paid for, byte for byte.
    pub published: usize,
    /// Messages that were paid for and are not there.
    pub missing: usize,
    /// Published messages that are missing at the end of the output, and that the worker sends again at its next start.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing_at_end: u64,
    /// Messages whose bytes the ledger does not keep any more.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    pub from_earlier_ledgers: u64,
    /// The rows that the ledger does not have, because it was built from a checkpoint of its log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_rows: Option<MissingRows>,
    /// Messages on the output that name one of these rows: whether it paid for them cannot be verified here.
    #[serde(skip_serializing_if = "is_zero")]
    pub of_missing_rows: u64,
    /// Accepted rows of another worker that the ledger does not have yet, and its log does.
    #[serde(skip_serializing_if = "is_zero")]
    pub rows_behind: u64,
    /// Messages on the output that name one of these rows.
    #[serde(skip_serializing_if = "is_zero")]
    pub of_rows_behind: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Verifies the ledger and the output, and tells what it has found, sentence by sentence, and the verdict last. What was on the output before the ledger is
/// read must be in the ledger: the worker pays first.
///
/// # Errors
///
/// If the ledger, its witness or the output is missing or damaged, or if one of them contradicts another.
pub fn verify_all(
    settings: &WorkerSettings,
    tell: &mut dyn FnMut(String) -> Result<(), Failure>,
) -> Result<VerificationFindings, Failure> {
    let published = settings.output.current_extent()?;
    let mut sink = settings.output.open_sink()?;
    let end = sink.read_tail(&[])?.unwrap_or_default();
    // This verifies all of the ledger; the rest is a comparison with the output.
    let ledger = rows::verified_ledger(settings)?;
    let PaidRows { rows, mut paid } = paid_rows(&ledger, &published)?;
    tell(format!(
        "the ledger has {rows} rows, newest {}",
        ledger.head().digest
    ))?;
    tell(format!(
        "it accounts for {}",
        definition_in_words(ledger.genesis())
    ))?;
    let missing_rows = ledger.missing();
    if let Some(missing) = missing_rows {
        tell(not_here(missing))?;
    }
    let witnessed = verify_witness(settings, &ledger, &end, tell)?;
    verify_share(settings, &ledger, witnessed.head, tell)?;
    let genesis = ledger.genesis();
    let found = compare_output(&ledger, &witnessed, &published, &mut paid)?;
    refuse_unpaid(settings, &published, found.unpaid)?;
    tell(format!(
        "every message on the output was paid for, byte for byte: {}",
        paid.count_found()
    ))?;
    let missing = paid.count_missing();
    if missing > 0 {
        tell(format!(
            "and {missing} that were paid for are missing: not published yet, or removed since; `bernstream ledger republish --all` \
             sends what is kept"
        ))?;
    }
    let at_end = verify_end(&ledger, &mut *sink, tell)?;
    if found.of_missing_rows > 0 {
        tell(format!(
            "and {} of rows that are not in the ledger, which it cannot verify",
            found.of_missing_rows
        ))?;
    }
    if found.of_rows_behind > 0 {
        tell(format!(
            "and {} of rows that it does not have yet, which it cannot verify",
            found.of_rows_behind
        ))?;
    }
    if found.from_earlier_ledgers > 0 {
        tell(format!(
            "and {} from earlier ledgers, which this ledger cannot verify",
            found.from_earlier_ledgers
        ))?;
    }
    // Once nothing contradicts it any more.
    tell("verified: ledger, witness and output agree".to_owned())?;
    Ok(VerificationFindings {
        ledger: genesis.ledger.clone(),
        rows,
        digest: ledger.head().digest.to_string(),
        definition: definition_in_words(genesis),
        witness_row: witnessed.row,
        stray_records: witnessed.strays,
        published: paid.count_found(),
        missing,
        missing_at_end: at_end.missing,
        lost: at_end.lost,
        from_earlier_ledgers: found.from_earlier_ledgers,
        missing_rows,
        of_missing_rows: found.of_missing_rows,
        rows_behind: witnessed.rows_behind,
        of_rows_behind: found.of_rows_behind,
    })
}

/// The witness of a ledger, as it was found.
struct WitnessReport {
    /// The newest accepted row that the ledger has.
    head: Option<Head>,
    /// The newest row that the witness has accepted.
    row: Option<u64>,
    rows_behind: u64,
    strays: u64,
}

/// Verifies that the witness follows the ledger, and its log with it.
fn verify_witness(
    settings: &WorkerSettings,
    ledger: &Ledger,
    end: &OutputTail,
    tell: &mut dyn FnMut(String) -> Result<(), Failure>,
) -> Result<WitnessReport, Failure> {
    let mut witness = settings.output.open_witness()?;
    let RecognisedHead {
        head,
        rows_behind: behind,
    } = recognised_or_behind(settings, ledger, &mut *witness)?;
    let row = head.map(|head| head.sequence);
    let accepted = match row {
        Some(row) => format!("row {row}"),
        None => "none of its rows yet".to_owned(),
    };
    tell(format!("the witness has accepted {accepted}"))?;
    let strays = witness.strays().witness;
    if strays > 0 {
        tell(format!(
            "the witness has {strays} records that no program of this kind has written, which count for nothing"
        ))?;
    }
    if behind > 0 {
        tell(format!(
            "this ledger is {behind} rows behind another worker: all of them are in the ledger log, from which its own worker takes them"
        ))?;
    }
    if behind == 0 {
        verify_claims(ledger, head, end, tell)?;
    }
    // Of the rows that are accepted, it has those up to this one.
    let head = if behind > 0 {
        Some(*ledger.head())
    } else {
        head
    };
    if let (Some(head), Some(log)) = (head, &settings.ledger_log) {
        tell(log::verify_log(ledger, head, log)?)?;
    }
    Ok(WitnessReport {
        head,
        row,
        rows_behind: behind,
        strays,
    })
}

/// Verifies that the ledger has kept to its share of a budget, if it has one.
fn verify_share(
    settings: &WorkerSettings,
    ledger: &Ledger,
    accepted: Option<Head>,
    tell: &mut dyn FnMut(String) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(HeldShare { topic, share: held }) = shares::held_share(settings, ledger)? else {
        return Ok(());
    };
    let mut until = String::new();
    if let Some(end) = held.until {
        until = format!(" until {end}");
        if let Some(Span { start, end }) = claimed_after(ledger, accepted, end)? {
            return Err(Failure::Unsound(format!(
                "the share of this ledger in the budget topic {} ended{until}, and it has charged blocks after that, from {start} to \
                 {end}: others may have charged them too",
                topic.name()
            )));
        }
    }
    tell(format!(
        "the budget topic {} knows its share, {} from {} on{until}",
        topic.name(),
        held.entry.share,
        held.entry.from
    ))
}

/// Messages on the output that the ledger has not paid for, by why.
#[derive(Default)]
struct UnpaidMessages {
    from_earlier_ledgers: u64,
    of_missing_rows: u64,
    of_rows_behind: u64,
    /// Messages for which there is no reason.
    unpaid: Vec<FoundMessage>,
}

/// Finds what is published among what was paid for.
fn compare_output(
    ledger: &Ledger,
    witnessed: &WitnessReport,
    published: &OutputExtent<'_>,
    paid: &mut PaidMessages,
) -> Result<UnpaidMessages, Failure> {
    let genesis = ledger.genesis();
    let missing_rows = ledger.missing();
    let next_rows = ledger.next_sequence()..=witnessed.row.unwrap_or(0);
    let mut unpaid = UnpaidMessages::default();
    let mut read = 0;
    let all = published.most_messages();
    show_progress("comparing the output with the ledger", |done| {
        published.each_published(|found| {
            read += 1;
            done.set(read, all);
            if paid.mark_found(&found) {
                return;
            }
            if genesis.previous.is_some() && found.is_of_another_ledger(&genesis.ledger) {
                unpaid.from_earlier_ledgers += 1;
            } else if let Some(missing) = missing_rows
                && found.is_of_rows(&genesis.ledger, missing.first..=missing.last)
            {
                unpaid.of_missing_rows += 1;
            } else if witnessed.rows_behind > 0
                && found.is_of_rows(&genesis.ledger, next_rows.clone())
            {
                unpaid.of_rows_behind += 1;
            } else {
                unpaid.unpaid.push(found);
            }
        })
    })?;
    Ok(unpaid)
}

/// Refuses messages that the ledger has not paid for. Before anyone is accused, it is read again.
fn refuse_unpaid(
    settings: &WorkerSettings,
    published: &OutputExtent<'_>,
    mut unpaid: Vec<FoundMessage>,
) -> Result<(), Failure> {
    if unpaid.is_empty() {
        return Ok(());
    }
    let mut paid = paid_rows(&rows::verified_ledger(settings)?, published)?.paid;
    unpaid.retain(|found| !paid.mark_found(found));
    if unpaid.is_empty() {
        return Ok(());
    }
    let places: Vec<String> = unpaid.into_iter().map(|found| found.place).collect();
    let places = places.join(", ");
    Err(Failure::Unsound(format!(
        "the output holds what this ledger never paid for: {places}"
    )))
}

/// Numbers of published messages that are missing at the end of the output.
struct EndOfOutput {
    /// Messages that the ledger keeps.
    missing: u64,
    /// Messages whose bytes it does not keep any more.
    lost: u64,
}

/// Tells what the end of the output has lost.
fn verify_end(
    ledger: &Ledger,
    sink: &mut dyn Sink,
    tell: &mut dyn FnMut(String) -> Result<(), Failure>,
) -> Result<EndOfOutput, Failure> {
    let newest = ledger.newest_published()?;
    // The output is read again, now that the newest row is known; messages that arrived meanwhile change nothing here.
    let end = sink
        .read_tail(&ledger.newest_messages()?)?
        .unwrap_or_default();
    let lost = newest
        .map(|newest| end.lost_messages(ledger, &newest))
        .transpose()?
        .unwrap_or_default();
    let missing = lost.kept.len() as u64;
    if missing > 0 {
        tell(format!(
            "and {missing} that were published are missing at the end of the output, which has lost them: the worker sends them again at \
             its next start"
        ))?;
    }
    if lost.gone > 0 {
        tell(format!(
            "and {} that were published are missing at the end of the output, and lost: their bytes are not kept any more",
            lost.gone
        ))?;
    }
    if lost.unknown > 0 {
        tell(format!(
            "and of {} keys nothing is left on the output: whether it has lost messages of them or they were removed cannot be known",
            lost.unknown
        ))?;
    }
    Ok(EndOfOutput {
        missing,
        lost: lost.gone,
    })
}

/// Tells whether the witness has lost claims: rows were published that it has not accepted, or not any more.
fn verify_claims(
    ledger: &Ledger,
    accepted: Option<Head>,
    end: &OutputTail,
    tell: &mut dyn FnMut(String) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let evidence = Evidence::gather(end.rows(), None)?;
    match ledger.standing_of_witness(accepted.as_ref(), None, &evidence)? {
        WitnessStanding::Agrees => Ok(()),
        WitnessStanding::Behind(row) => tell(format!(
            "the witness has lost claims: row {}, which was published, is not accepted any more; the worker claims it again at its next start",
            row.sequence
        )),
        // What the ledger never paid for is named below.
        WitnessStanding::Unknown(shown) => tell(format!(
            "the witness has lost claims: row {} was published, and neither the witness nor this ledger has it",
            shown.sequence()
        )),
    }
}

/// The time between the starts of the first and the last block that end after `until` and were charged by a row that the witness has
/// accepted.
fn claimed_after(
    ledger: &Ledger,
    accepted: Option<Head>,
    until: Timestamp,
) -> Result<Option<Span>, Failure> {
    // Of the rows that are missing, and were accepted, only the newest block is known.
    let newest = ledger
        .charged_by_missing()
        .filter(|block| block.end > until);
    let mut found = newest.map(|block| Span {
        start: block.start,
        end: block.start,
    });
    ledger.each_row(|stored| {
        let is_accepted = accepted.is_some_and(|head| stored.head.sequence <= head.sequence);
        if let LedgerRow::Window(ClosedWindow {
            outcome: ReleaseOutcome::Released { charges, .. },
            ..
        }) = stored.row
            && is_accepted
        {
            for (block, _) in charges.iter().filter(|(block, _)| block.end > until) {
                let starts = found.get_or_insert(Span {
                    start: block.start,
                    end: block.start,
                });
                starts.start = starts.start.min(block.start);
                starts.end = starts.end.max(block.start);
            }
        }
        Ok::<(), Failure>(())
    })?;
    Ok(found)
}

/// Number of rows of a ledger, and the messages that they paid for.
struct PaidRows {
    rows: u64,
    paid: PaidMessages,
}

fn paid_rows(ledger: &Ledger, published: &OutputExtent<'_>) -> Result<PaidRows, Failure> {
    let mut rows = 0;
    let paid = PaidMessages::from_messages(published.has_envelope(), |each| {
        rows::each_row("adding up what the ledger paid for", ledger, |stored| {
            rows += 1;
            if let LedgerRow::Window(ClosedWindow {
                outcome: ReleaseOutcome::Released { messages, .. },
                ..
            }) = stored.row
            {
                messages.iter().for_each(&mut *each);
            }
            Ok(())
        })
    })?;
    Ok(PaidRows { rows, paid })
}
