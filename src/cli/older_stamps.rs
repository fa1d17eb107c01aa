//! Messages from before the brokers stamped them, where a worker would read them.

use crate::cli::failure::Failure;
use crate::clock::Timestamp;
use crate::config::Settings;
use crate::kafka::check::Check;
use crate::ledger::bootstrap::{PriorState, StartMode, bootstrap};
use crate::ledger::{self, Ledger};
use crate::source::Error;
use crate::source::kafka::{OlderStamps, OnBadMessage, Params, older_stamps};
use crate::source::record::Format;

/// Looks where a worker would begin that starts now; nothing where that is not known.
pub fn checks(settings: &Settings, params: &Params) -> Option<Check> {
    if params.trust_producer_time {
        return None;
    }
    let what = format!("the brokers have stamped what a worker reads first of {}", params.topic);
    let found = match reads_from(settings, begins(settings)?, params) {
        Ok(found) if found.is_empty() => return Some(Check::passed(what)),
        Ok(found) => found,
        Err(error) => {
            let is_unanswered = error.is_transient();
            return Some(Check { is_unanswered, ..Check::new(what, false, error.to_string(), "try again") });
        }
    };
    Some(match params.on_bad_message {
        OnBadMessage::Skip => Check { warning: Some((told(&found), skipped())), ..Check::passed(what) },
        OnBadMessage::Stop => Check::new(what, false, told(&found), remedy(settings, params, &found)),
    })
}

/// Refuses a ledger whose first window starts at `first`, if a worker would stop at such a message; returns what it would skip.
///
/// # Errors
///
/// If it would, or if the brokers do not say.
pub fn refuse(settings: &Settings, params: &Params, first: Timestamp) -> Result<Option<String>, Failure> {
    let found = reads_from(settings, first, params)?;
    match params.on_bad_message {
        _ if found.is_empty() => Ok(None),
        OnBadMessage::Skip => Ok(Some(format!("{}: {}", told(&found), skipped()))),
        OnBadMessage::Stop => Err(Failure::Configuration(format!(
            "a worker that begins at {first} would stop: {}; {}",
            told(&found),
            remedy(settings, params, &found)
        ))),
    }
}

/// The start of the first window whose records a worker reads that starts now; none after the last of the grid.
fn begins(settings: &Settings) -> Option<Timestamp> {
    let is_to_come = |next: &Timestamp| settings.windows.end.is_none_or(|end| *next < end);
    if ledger::exists(&settings.ledger).ok()? {
        let ledger = Ledger::peek(&settings.ledger).ok()??;
        let oldest = ledger.genesis().first.max(ledger.live_from());
        let next = Some(ledger.next_window()).filter(is_to_come)?;
        return Some(next.minus(settings.reach()).max(oldest));
    }
    let untouched = PriorState { claim: None, is_output_untouched: true };
    let begun = bootstrap(settings.scheme(), StartMode::Run, untouched, Timestamp::now()).ok()?;
    Some(begun.first).filter(is_to_come)
}

fn reads_from(settings: &Settings, first: Timestamp, params: &Params) -> Result<Vec<OlderStamps>, Error> {
    older_stamps(params, settings.windows.oldest_message(settings.windows.grid.span_of(first)))
}

fn skipped() -> String {
    "they are skipped, as `on_bad_message` says, and every later synopsis says that messages are".to_owned()
}

fn told(found: &[OlderStamps]) -> String {
    let one = |OlderStamps { partition, from, to, .. }: &OlderStamps| {
        format!("{from} to {} of partition {partition}", to - 1)
    };
    format!(
        "offsets {} have times that their producers set, from before the topic had LogAppendTime",
        found.iter().map(one).collect::<Vec<_>>().join(", ")
    )
}

fn remedy(settings: &Settings, params: &Params, found: &[OlderStamps]) -> String {
    let lost = |OlderStamps { partition, from, to, .. }: &OlderStamps| {
        format!("{{ partition = {partition}, from = {from}, to = {to} }}")
    };
    let after = match found.iter().filter_map(|older| older.next).max() {
        Some(next) => format!(" after {}", next.plus(settings.windows.max_future_skew)),
        None => String::new(),
    };
    let skip = match params.format {
        Format::Arrow => ", pass them with on_bad_message = \"skip\"",
        Format::Records { .. } => "",
    };
    format!(
        "let a ledger begin behind them (`bernstream ledger init`, without --from or with one{after}), wait until retention has deleted \
         them{skip}, or give them up: lost = [{}] in [input.kafka], with which every later synopsis says that it is incomplete",
        found.iter().map(lost).collect::<Vec<_>>().join(", ")
    )
}
