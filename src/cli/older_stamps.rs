//! Messages from before the brokers stamped them, where a worker would read them.

use crate::cli::failure::Failure;
use crate::cli::figures::join_numbers;
use bernstream_config::WorkerSettings;
use bernstream_kafka::check::TopicCheck;
use bernstream_kafka::source::kafka::{KafkaSourceParams, OlderStamps, older_stamps};
use bernstream_ledger as ledger;
use bernstream_ledger::Ledger;
use bernstream_ledger::bootstrap::{PriorState, StartMode, choose_start};
use bernstream_synopsis::clock::Timestamp;

/// Looks where a worker would begin that starts now; nothing where that is not known.
pub fn older_stamps_check(
    settings: &WorkerSettings,
    params: &KafkaSourceParams,
) -> Option<TopicCheck> {
    if params.trust_producer_time {
        return None;
    }
    let what = format!(
        "the brokers have stamped what a worker reads first of {}",
        params.topic
    );
    let since = oldest_message(settings, first_window_to_read(settings)?);
    Some(match older_stamps(params, since) {
        Ok(found) if found.is_empty() => TopicCheck::passed(what),
        Ok(found) => TopicCheck::new(
            what,
            false,
            offsets_in_words(&found),
            remedy_in_words(settings, since, &found),
        ),
        Err(error) => {
            let is_unanswered = error.is_transient();
            TopicCheck {
                is_unanswered,
                ..TopicCheck::new(what, false, error.to_string(), "try again")
            }
        }
    })
}

/// Refuses a ledger whose first window starts at `first`, if a worker would stop at such a message.
///
/// # Errors
///
/// If it would, or if the brokers do not say.
pub fn refuse_older_stamps(
    settings: &WorkerSettings,
    params: &KafkaSourceParams,
    first: Timestamp,
) -> Result<(), Failure> {
    let found = older_stamps(params, oldest_message(settings, first))?;
    if found.is_empty() {
        return Ok(());
    }
    // What a job says is in the log of its pod, so offsets are not.
    let partitions = join_numbers(found.iter().map(|older| older.partition), ", ");
    Err(Failure::Configuration(format!(
        "a worker that begins at {first} would stop: messages of topic '{}' have times that their producers set, from before it had \
         LogAppendTime (partitions: {partitions}). Leave out --from, or begin later than that change by windows.ahead; or give them up \
         with 'lost' in [input.kafka]: `bernstream check` names their offsets",
        params.topic
    )))
}

/// The start of the first window whose records a worker reads that starts now; none after the last of the grid.
fn first_window_to_read(settings: &WorkerSettings) -> Option<Timestamp> {
    let end = settings.windows.end;
    if ledger::ledger_exists(&settings.ledger).ok()? {
        let ledger = Ledger::open_unlocked(&settings.ledger).ok()??;
        let oldest = ledger.genesis().first.max(ledger.live_from());
        let next = ledger.next_window();
        return match end {
            Some(end) if next >= end => None,
            _ => Some(next.minus(settings.charge_reach()).max(oldest)),
        };
    }
    let untouched = PriorState {
        claim: None,
        is_output_untouched: true,
    };
    let now = Timestamp::now();
    let begun = choose_start(settings.bootstrap_scheme(), StartMode::Run, untouched, now).ok()?;
    match end {
        Some(end) if begun.first >= end => None,
        _ => Some(begun.first),
    }
}

/// The oldest time of a message that can be in the window that starts at `first`.
fn oldest_message(settings: &WorkerSettings, first: Timestamp) -> Timestamp {
    settings
        .windows
        .oldest_message(settings.windows.grid.span_of(first))
}

fn offsets_in_words(found: &[OlderStamps]) -> String {
    format!(
        "offsets {} have times that their producers set, from before the topic had LogAppendTime",
        found
            .iter()
            .map(offset_range)
            .collect::<Vec<_>>()
            .join(", ")
    )
}

fn offset_range(
    OlderStamps {
        partition,
        from,
        to,
        ..
    }: &OlderStamps,
) -> String {
    format!("{from} to {} of partition {partition}", to - 1)
}

/// As an element of `lost`.
fn lost_entry(
    OlderStamps {
        partition,
        from,
        to,
        ..
    }: &OlderStamps,
) -> String {
    format!("{{ partition = {partition}, from = {from}, to = {to} }}")
}

fn remedy_in_words(settings: &WorkerSettings, since: Timestamp, found: &[OlderStamps]) -> String {
    let lost = found.iter().map(lost_entry).collect::<Vec<_>>().join(", ");
    let give_up = format!(
        "lost = [{lost}] in [input.kafka] gives them up, and every later synopsis says that it is incomplete"
    );
    // One whose time is ahead of its place is found wherever a ledger begins.
    let is_ahead = found
        .iter()
        .any(|older| older.next.is_some_and(|next| next < since));
    if is_ahead || ledger::ledger_exists(&settings.ledger).unwrap_or(true) {
        return give_up;
    }
    let after = match found.iter().filter_map(|older| older.next).max() {
        Some(next) => format!(" after {}", next.plus(settings.windows.max_future_skew)),
        None => String::new(),
    };
    format!(
        "let the ledger begin behind them (`bernstream ledger init`, without --from or with one{after}); or {give_up}"
    )
}
