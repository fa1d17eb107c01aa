//! Producers that cut the rows of a topic into messages: by count, so that one row more moves all cuts behind it, and by the clock.

use std::time::Duration;

use super::messages::{InputMessage, InputRow};
use super::stage::BackgroundStream;
use super::way::InjectionStrategy;
use bernstream_synopsis::clock::{Timestamp, saturating_micros};

/// A row, and when its producer has it.
struct TimedRow {
    at: Timestamp,
    row: InputRow,
}

/// Number of rows that a producer that counts sends at once.
const ROWS: usize = 4;

/// The moment at which a producer sends the rows that it keeps.
#[derive(Clone, Copy)]
enum FlushRule {
    /// Once it has [`ROWS`], or has kept one for the delay. So many others were held before the first row.
    ByCount { held: usize },
    /// Whenever the delay has passed on its clock.
    ByClock,
}

/// Ways in which a producer that keeps no row for longer than grace cuts the rows of others and of the unit. Each row
/// comes into being at its event time, or as far ahead of it as is allowed: what is created later or earlier can miss its window in one
/// stream and not in the other.
pub(super) fn cutting_producers<'s>(stage: &'s BackgroundStream<'_>) -> Vec<InjectionStrategy<'s>> {
    let skew = stage.subject.plan.rules.max_future_skew;
    let mut all = Vec::new();
    // How many rows wait already decides which of the others then wait in vain.
    for held in 0..ROWS {
        let name = format!("cut by count, {ROWS} rows a message, {held} held before");
        let flush = FlushRule::ByCount { held };
        all.push(cut(
            stage,
            format!("{name}, as far ahead as allowed"),
            flush,
            skew,
        ));
        all.push(cut(stage, name, flush, Duration::ZERO));
    }
    all.push(cut(
        stage,
        "cut by the clock".to_owned(),
        FlushRule::ByClock,
        Duration::ZERO,
    ));
    all
}

fn cut<'s>(
    stage: &'s BackgroundStream<'_>,
    name: String,
    flush: FlushRule,
    ahead: Duration,
) -> InjectionStrategy<'s> {
    let delay = stage.subject.plan.rules.allowed_lateness;
    InjectionStrategy::from_whole_stream(name, move |rows| {
        cut_into_messages(created(stage, rows, ahead), flush, delay)
    })
}

/// The rows of others that are not late, and those of the unit, in the order in which they come into being: so far ahead of their event
/// times.
fn created(stage: &BackgroundStream<'_>, own: &[InputRow], ahead: Duration) -> Vec<TimedRow> {
    let in_time = stage
        .others
        .iter()
        .filter(|message| !is_late(stage, message));
    let middle = BackgroundStream::time_in_window(stage.full_window(), 0.5);
    let rows = in_time.flat_map(InputMessage::rows).chain(own).cloned();
    let mut all: Vec<TimedRow> = rows
        .map(|row| TimedRow {
            at: row.time.unwrap_or(middle).minus(ahead),
            row,
        })
        .collect();
    all.sort_by_key(|created| created.at);
    all
}

fn is_late(stage: &BackgroundStream<'_>, message: &InputMessage) -> bool {
    stage
        .windows
        .iter()
        .any(|window| message.stamp == stage.late_stamp(*window))
}

/// The messages of one producer, in the order in which it sends them.
fn cut_into_messages(
    created: Vec<TimedRow>,
    flush: FlushRule,
    delay: Duration,
) -> Vec<InputMessage> {
    let mut messages = Vec::new();
    let mut kept = Vec::new();
    let mut due = Timestamp::EARLIEST;
    for (place, TimedRow { at, row }) in created.into_iter().enumerate() {
        if !kept.is_empty() && due <= at {
            messages.push(InputMessage::from_rows(0, due, std::mem::take(&mut kept)));
        }
        if kept.is_empty() {
            due = flush.send_deadline(at, delay);
        }
        kept.push(row);
        if flush.is_full(place + 1) {
            messages.push(InputMessage::from_rows(0, at, std::mem::take(&mut kept)));
        }
    }
    if !kept.is_empty() {
        messages.push(InputMessage::from_rows(0, due, kept));
    }
    messages
}

impl FlushRule {
    /// The latest time at which a row is sent that comes into being at `at`, and that no other row waits for.
    fn send_deadline(self, at: Timestamp, delay: Duration) -> Timestamp {
        let period = saturating_micros(delay);
        match self {
            FlushRule::ByClock if period > 0 => {
                Timestamp::from_micros((at.micros().div_euclid(period) + 1) * period)
            }
            FlushRule::ByCount { .. } | FlushRule::ByClock => at.plus(delay),
        }
    }

    /// Returns whether it sends after the row with this number, the first being 1.
    fn is_full(self, number: usize) -> bool {
        matches!(self, FlushRule::ByCount { held } if (held + number).is_multiple_of(ROWS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(seconds: &[i64]) -> Vec<TimedRow> {
        let row = |at: &i64| TimedRow {
            at: Timestamp::from_micros(at * 1_000_000),
            row: InputRow::default(),
        };
        seconds.iter().map(row).collect()
    }

    /// When each message is sent, in seconds, and how many rows it has.
    fn cut(seconds: &[i64], flush: FlushRule) -> Vec<(i64, usize)> {
        let messages = cut_into_messages(created(seconds), flush, Duration::from_secs(10));
        messages
            .iter()
            .map(|message| (message.stamp.micros() / 1_000_000, message.rows().count()))
            .collect()
    }

    #[test]
    fn a_row_more_moves_the_cuts_behind_it_if_rows_are_counted_and_no_cut_of_the_clock() {
        let by_count = FlushRule::ByCount { held: 1 };
        assert_eq!(cut(&[1, 2, 4, 5, 6], by_count), [(4, 3), (15, 2)]);
        assert_eq!(cut(&[1, 2, 3, 4, 5, 6, 7], by_count), [(3, 3), (7, 4)]);
        assert_eq!(
            cut(&[1, 2, 4, 5, 16], FlushRule::ByClock),
            [(10, 4), (20, 1)]
        );
        assert_eq!(
            cut(&[1, 2, 3, 4, 5, 16], FlushRule::ByClock),
            [(10, 5), (20, 1)]
        );
    }

    #[test]
    fn no_row_is_kept_for_longer_than_the_delay() {
        assert_eq!(
            cut(&[1, 12, 40], FlushRule::ByCount { held: 0 }),
            [(11, 1), (22, 1), (50, 1)]
        );
        assert_eq!(
            cut(&[9, 10, 20], FlushRule::ByClock),
            [(10, 1), (20, 1), (30, 1)]
        );
    }
}
