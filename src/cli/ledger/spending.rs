//! `ledger show --by`: where the budget went, by release, day or block. Everything here is in public rows.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;

use super::rows;
use super::show::not_here;
use crate::cli::components::promise_mismatch;
use crate::cli::failure::Failure;
use crate::cli::figures::count_in_words;
use crate::cli::left::RemainingBudget;
use crate::cli::print::{print, push_section};
use bernstream_config::{WorkerSettings, paid};
use bernstream_ledger::{ClosedWindow, Ledger, LedgerRow, ReleaseOutcome};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::{Span, SpanGrid};
use bernstream_synopsis::price::Price;

/// Number of days or blocks that are listed, the newest ones.
const SHOWN: usize = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SpendingGroup {
    /// What each release was charged, and for which windows.
    Release,
    /// What each release was charged on each day, in UTC by the start of its windows.
    Day,
    /// What each block has spent, for which release, and which of its windows were withheld.
    Block,
}

/// Cost of some windows.
#[derive(Debug, Default)]
struct SpendingTally {
    released: u64,
    withheld: u64,
    /// The time from the start of the first window to the end of the last.
    windows: Option<Span>,
    first_withheld: Option<Timestamp>,
    /// Charges by release; what cannot be attributed has no name.
    charged: BTreeMap<Option<String>, Price>,
}

impl SpendingTally {
    fn add_window(&mut self, window: Span) {
        self.windows.get_or_insert(window).end = window.end;
    }

    fn release(&mut self, window: Span) {
        self.add_window(window);
        self.released += 1;
    }

    fn withhold(&mut self, window: Span) {
        self.add_window(window);
        self.withheld += 1;
        self.first_withheld.get_or_insert(window.start);
    }

    fn charge(&mut self, release: Option<&str>, price: Price) {
        let sum = self
            .charged
            .entry(release.map(str::to_owned))
            .or_insert(price.zero_of_kind());
        // A sum that is shown: over many blocks it can be larger than any price.
        *sum = sum
            .checked_add(price)
            .unwrap_or(price.map_parts(|_| u64::MAX));
    }

    fn windows_in_words(&self) -> String {
        self.windows.map_or(String::new(), |Span { start, end }| {
            format!("windows from {start} to {end}")
        })
    }

    fn charges_in_words(&self) -> String {
        let mut parts = Vec::new();
        for (name, price) in &self.charged {
            parts.push(match name {
                Some(name) => format!("{price} for {name}"),
                None => format!("{price} that cannot be attributed"),
            });
        }
        parts.join(", ")
    }
}

/// All windows of a ledger.
#[derive(Debug, Default)]
struct LedgerSpending {
    releases: BTreeMap<Option<String>, SpendingTally>,
    days: BTreeMap<Timestamp, SpendingTally>,
    blocks: BTreeMap<Span, SpendingTally>,
}

impl LedgerSpending {
    fn add_row(
        &mut self,
        closed: &ClosedWindow,
        since: [Timestamp; 2],
        recorded: Option<&paid::RecordedReleases>,
    ) {
        let window = closed.window;
        let day = SpanGrid::new(Timestamp::from_micros(0), Duration::from_secs(24 * 3600));
        let day = self
            .days
            .entry(day.map_or(window.start, |days| days.span_of(window.start).start))
            .or_default();
        let ReleaseOutcome::Released { charges, .. } = &closed.outcome else {
            day.withhold(window);
            for block in recorded
                .iter()
                .flat_map(|recorded| recorded.blocks().spans_meeting(window))
            {
                self.blocks.entry(block).or_default().withhold(window);
            }
            return;
        };
        day.release(window);
        for (block, _) in charges
            .iter()
            .filter(|(block, _)| block.start < window.end && window.start < block.end)
        {
            self.blocks.entry(*block).or_default().release(window);
        }
        let parts =
            recorded.and_then(|recorded| recorded.charges_of_window(window, since, charges));
        let parts: Vec<_> = match parts {
            Some(parts) => parts
                .into_iter()
                .map(|(name, charges)| (Some(name), charges))
                .collect(),
            None => vec![(None, charges.clone())],
        };
        for (name, charges) in parts {
            let release = self.releases.entry(name.map(str::to_owned)).or_default();
            release.release(window);
            // What one unit of the window's newest block pays: all of them are charged alike.
            if let Some((_, price)) = charges.last() {
                release.charge(name, *price);
                day.charge(name, *price);
            }
            for (block, price) in charges {
                self.blocks.entry(block).or_default().charge(name, price);
            }
        }
    }
}

/// Prints where the budget of a ledger went, and how long it lasts.
///
/// # Errors
///
/// If the ledger is missing or damaged, or if standard output cannot be written.
pub fn show_spending(settings: &WorkerSettings, by: SpendingGroup) -> Result<(), Failure> {
    let ledger = rows::verified_ledger(settings)?;
    let genesis = ledger.genesis();
    let total = genesis.total;
    let mut spending = LedgerSpending::default();
    let mut recorded = None;
    // As in the account of the ledger: settings that reach farther back do not bring back what others had left behind.
    let mut reach = genesis.reach;
    let mut live_from = genesis.first;
    let mut covered_from = genesis.first;
    rows::each_row("reading the ledger", &ledger, |stored| {
        // The settings may have changed in the rows that are missing.
        if let Some((_, settings)) = ledger
            .settings_after_missing()
            .filter(|(row, _)| *row == stored.head.sequence)
        {
            recorded = paid::RecordedReleases::from_settings(settings);
        }
        match &stored.row {
            LedgerRow::Genesis(genesis) => {
                recorded = paid::RecordedReleases::from_settings(&genesis.settings)
            }
            LedgerRow::Configuration(row) => {
                recorded = paid::RecordedReleases::from_settings(&row.settings);
                reach = row.reach;
                covered_from = live_from;
            }
            LedgerRow::Window(closed) => {
                spending.add_row(closed, [genesis.first, covered_from], recorded.as_ref());
                live_from = live_from.max(closed.window.end.minus(reach));
            }
        }
        Ok(())
    })?;
    let title = match by {
        SpendingGroup::Release => "Spent by release, a window after the other",
        SpendingGroup::Day => "Spent by day (UTC), a window after the other, the newest 30 days",
        SpendingGroup::Block => "Newest blocks: what of the total, and for which release",
    };
    let mut lines = match by {
        SpendingGroup::Release => by_release(&spending),
        SpendingGroup::Day => by_day(&spending),
        SpendingGroup::Block => by_block(&spending, total),
    };
    if lines.is_empty() {
        lines.push("nothing yet".to_owned());
    }
    let mut text = String::new();
    push_section(&mut text, title, &lines);
    if by != SpendingGroup::Block {
        let note =
            "sums of windows: a unit has lost only what was charged to its own block (--by block)";
        push_section(&mut text, "Note", &[note.to_owned()]);
    }
    if let Some(missing) = ledger.missing() {
        push_section(&mut text, "Not counted", &[not_here(missing)]);
    }
    let outlook = outlook_in_words(settings, &ledger);
    if !outlook.is_empty() {
        push_section(&mut text, "Outlook", &outlook);
    }
    print(text)
}

/// Until when it lasts, with the settings as they are now.
fn outlook_in_words(settings: &WorkerSettings, ledger: &Ledger) -> Vec<String> {
    if let Some(why) = promise_mismatch(settings, ledger.settings()) {
        return vec![why];
    }
    RemainingBudget::of_ledger(settings)
        .iter()
        .flat_map(RemainingBudget::in_words)
        .collect()
}

fn by_release(spending: &LedgerSpending) -> Vec<String> {
    let mut lines = Vec::new();
    for tally in spending.releases.values() {
        lines.push(format!(
            "{}: {}, {}",
            tally.charges_in_words(),
            counts_in_words(tally),
            tally.windows_in_words()
        ));
    }
    lines
}

fn by_day(spending: &LedgerSpending) -> Vec<String> {
    let mut lines = Vec::new();
    for (day, tally) in spending.days.iter().rev().take(SHOWN) {
        let day = day.to_string();
        let day = day.split('T').next().unwrap_or_default();
        let parts = if tally.charged.is_empty() {
            "nothing".to_owned()
        } else {
            tally.charges_in_words()
        };
        lines.push(format!("{day}: {parts}; {}", counts_in_words(tally)));
    }
    lines
}

fn by_block(spending: &LedgerSpending, total: Price) -> Vec<String> {
    let mut lines = Vec::new();
    for (block, tally) in spending.blocks.iter().rev().take(SHOWN) {
        let sum = tally
            .charged
            .values()
            .try_fold(total.zero_of_kind(), |sum, price| sum.checked_add(*price));
        let sum = sum.map_or("more than is known".to_owned(), |sum| sum.to_string());
        let parts = if tally.charged.is_empty() {
            String::new()
        } else {
            format!(": {}", tally.charges_in_words())
        };
        let withheld = tally
            .first_withheld
            .map_or(String::new(), |first| format!(", the first at {first}"));
        lines.push(format!(
            "{} - {}  {sum} of {total}{parts}; {}{withheld}",
            block.start,
            block.end,
            counts_in_words(tally)
        ));
    }
    lines
}

fn counts_in_words(tally: &SpendingTally) -> String {
    let withheld = if tally.withheld > 0 {
        format!(", {} withheld", tally.withheld)
    } else {
        String::new()
    };
    format!(
        "{} released{withheld}",
        count_in_words(tally.released, "window")
    )
}
