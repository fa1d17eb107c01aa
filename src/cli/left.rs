//! What a ledger at work has left, and until when that lasts under the settings of a file.

use std::iter::Peekable;

use serde::Serialize;

use crate::cli::budget_forecast::{LedgerStart, WindowToCome, kept_back_in_words, windows_to_come};
use crate::cli::components::promise_mismatch;
use crate::cli::figures::count_in_words;
use crate::cli::restarted_sums::restarted_sums;
use bernstream_config::{PrivacyUnit, WorkerSettings, canonical, diff};
use bernstream_ledger::{Ledger, LedgerSummary, ledger_exists};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::{Blocks, Span};
use bernstream_synopsis::price::Price;

/// The most windows of a block that are looked at.
const MOST_WINDOWS: usize = 100_000;

/// Windows that the budget of one block pays for.
#[derive(Clone, Debug, Serialize)]
pub struct BlockToCome {
    pub block: Span,
    /// Number of its windows, from the next one on, that are looked at.
    pub windows: usize,
    /// Number of these that are paid for.
    pub windows_paid: usize,
    /// The start of the first one that is not; absent if all are.
    pub until: Option<Timestamp>,
    /// The time at which looking ended before the block does; absent if all of its windows were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_to: Option<Timestamp>,
}

/// State of the budget in a ledger that exists. Nothing here depends on a record.
#[derive(Clone, Debug, Serialize)]
pub struct RemainingBudget {
    /// The start of the next window to close.
    pub next_window: Timestamp,
    /// The most that one block may spend.
    pub total: Price,
    pub spent: Price,
    /// The rest that windows can still spend of the block, in the unit of `total`.
    pub left: Price,
    /// Changes of the file to the settings of the ledger, which hold from the next window on.
    pub changes: Vec<String>,
    /// Running sums that start over with the next window, because they are changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restarted_sums: Vec<String>,
    #[serde(flatten)]
    pub to_come: BlockToCome,
    /// The next block, which begins with a budget of its own; absent if there is none or nothing of it is charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_block: Option<BlockToCome>,
    /// The end of the share of its input's total, if it ends: no window of a block that ends later is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_ends: Option<Timestamp>,
    /// Every window is a block of its own; whether its budget always pays for all releases that cover it.
    #[serde(skip)]
    renewed: Option<bool>,
    /// The part of the total that windows may spend, in words, if not all of it.
    #[serde(skip)]
    kept_back: String,
}

impl RemainingBudget {
    /// The rest of the budget in the ledger of these settings; `None` without a ledger, if it is of another promise, or if it cannot be read,
    /// which whoever opens it tells.
    pub fn of_ledger(settings: &WorkerSettings) -> Option<Self> {
        if !ledger_exists(&settings.ledger).ok()? {
            return None;
        }
        let recorded = Ledger::newest_settings(&settings.ledger).ok()?;
        if promise_mismatch(settings, &recorded).is_some() {
            return None;
        }
        let glance = LedgerSummary::read_from(&settings.ledger).ok()?;
        (glance.total.zero_of_kind() == settings.privacy.total.zero_of_kind())
            .then(|| RemainingBudget::follow_windows(settings, &glance, &recorded))
    }

    fn follow_windows(settings: &WorkerSettings, glance: &LedgerSummary, recorded: &str) -> Self {
        let grid = settings.windows.grid;
        let next = grid.first_from(glance.next_window);
        let block = settings.blocks.span_of(next.start);
        let spent = glance.spent(block);
        let limit = settings.privacy.spendable_limit();
        let start = LedgerStart {
            first: glance.first,
            covered_from: glance.covered_from,
        };
        let mut coming =
            windows_to_come(settings, start, next, |block| glance.spent(block)).peekable();
        let to_come = BlockToCome::take_windows(block, &mut coming);
        let is_record = matches!(settings.privacy.unit, PrivacyUnit::Record);
        let next_block = match settings.blocks {
            // Of a block that was not followed to its end nothing is known of what its last windows charge the next one.
            Blocks::Every(blocks) if !is_record && to_come.looked_to.is_none() => Some(
                BlockToCome::take_windows(blocks.span_after(block), &mut coming),
            ),
            _ => None,
        };
        let next_block = next_block.filter(|next| {
            let is_over = glance.share_ends.is_some_and(|ends| next.block.end > ends);
            next.windows > 0 && !is_over
        });
        RemainingBudget {
            next_window: next.start,
            total: settings.privacy.total,
            spent,
            left: limit.checked_sub(spent).unwrap_or(limit.zero_of_kind()),
            changes: diff::setting_differences(recorded, &canonical::recorded_text(settings)),
            restarted_sums: match Ledger::open_unlocked(&settings.ledger) {
                Ok(Some(ledger)) => restarted_sums(settings, &ledger),
                Ok(None) | Err(_) => Vec::new(),
            },
            to_come,
            next_block,
            share_ends: glance.share_ends,
            renewed: is_record.then(|| settings.total_window_price().is_some()),
            kept_back: kept_back_in_words(settings),
        }
    }

    /// The state in words.
    pub fn in_words(&self) -> Vec<String> {
        let RemainingBudget {
            next_window,
            total,
            spent,
            left,
            changes,
            restarted_sums,
            to_come,
            next_block,
            share_ends,
            ..
        } = self;
        let block = &to_come.block;
        if to_come.windows == 0 {
            return vec![format!(
                "the windows of the ledger end before {next_window}: none is to come"
            )];
        }
        let mut lines = vec![format!(
            "the next window of the ledger is that of {next_window}"
        )];
        if !changes.is_empty() {
            lines.push(
                "from that window on the file changes the settings of the ledger:".to_owned(),
            );
            lines.extend(changes.iter().map(|change| format!("  {change}")));
        }
        lines.extend(restarted_sums.iter().map(|line| format!("  {line}")));
        if let Some(ends) = share_ends {
            lines.push(format!(
                "its share of the input's total ends: no block from {ends} on is charged"
            ));
            if block.end > *ends {
                lines.push("no window is published any more".to_owned());
                return lines;
            }
        }
        match self.renewed {
            Some(true) if to_come.until.is_none() => {
                lines.push(format!(
                    "every window has a budget of its own, {total}: nothing is used up"
                ));
                return lines;
            }
            Some(false) => {
                lines.push(format!(
                    "every window has a budget of its own, {total}, which does not pay for all releases that cover it: some windows \
                     will repeatedly be withheld"
                ));
                return lines;
            }
            _ => {}
        }
        let period = match *block {
            Span::ALL => String::new(),
            Span { start, end } => format!(" for {start} to {end}"),
        };
        let kept_back = if self.kept_back.is_empty() {
            String::new()
        } else {
            format!("{},", self.kept_back)
        };
        lines.push(format!(
            "{left} of {total}{kept_back} is left{period}, after {spent} was spent"
        ));
        let is_last = *block == Span::ALL || share_ends.is_some_and(|ends| block.end >= ends);
        let then = if is_last {
            String::new()
        } else {
            format!("; the next block begins at {}", block.end)
        };
        lines.push(format!("that pays for {}{then}", to_come.in_words()));
        if let Some(next) = next_block {
            let Span { start, end } = next.block;
            lines.push(format!(
                "the next budget, for {start} to {end}, pays for {}",
                next.in_words()
            ));
        }
        lines
    }
}

impl BlockToCome {
    /// Takes the windows of `block` from those that are coming.
    fn take_windows(
        block: Span,
        coming: &mut Peekable<impl Iterator<Item = WindowToCome>>,
    ) -> BlockToCome {
        let mut found = BlockToCome {
            block,
            windows: 0,
            windows_paid: 0,
            until: None,
            looked_to: None,
        };
        while let Some(WindowToCome { window, charged }) =
            coming.next_if(|coming| coming.window.start < block.end)
        {
            if found.windows == MOST_WINDOWS {
                found.looked_to = Some(window.start);
                break;
            }
            found.windows += 1;
            if charged.is_empty() {
                found.until.get_or_insert(window.start);
            } else {
                found.windows_paid += 1;
            }
        }
        found
    }

    fn in_words(&self) -> String {
        let BlockToCome {
            windows,
            windows_paid,
            until,
            looked_to,
            ..
        } = self;
        let looked = looked_to.map_or(String::new(), |to| {
            format!(" up to {to}; later ones were not looked at")
        });
        match until {
            None => format!("all its windows to come{looked}"),
            // A budget that is spent for good: how many windows that leaves out says nothing.
            Some(until) if looked_to.is_some() => format!(
                "{}: the window of {until} is the first that is not published",
                count_in_words(*windows_paid as u64, "more window")
            ),
            Some(until) => format!(
                "{windows_paid} of its {}: the window of {until} is the first that is not published",
                count_in_words(*windows as u64, "coming window")
            ),
        }
    }
}
