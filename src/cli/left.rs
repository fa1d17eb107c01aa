//! What a ledger at work has left, and until when that lasts under the settings of a file.

use serde::Serialize;

use crate::cli::budget_forecast::windows_to_come;
use crate::cli::components::other_promise;
use crate::cli::figures::counted;
use crate::clock::Timestamp;
use crate::config::{Settings, Unit, canonical, diff};
use crate::ledger::{Glance, Ledger, exists};
use crate::mechanism::price::Price;
use crate::window::grid::{Blocks, Span};

/// The most windows of a block that are looked at.
const MOST_WINDOWS: usize = 100_000;

/// How far the budget of one block goes.
#[derive(Clone, Debug, Serialize)]
pub struct BlockToCome {
    pub block: Span,
    /// How many of its windows, those from the next one on, are looked at.
    pub windows: usize,
    /// How many of these are paid for before the first one that is not.
    pub windows_paid: usize,
    /// The start of the first window that is not paid for; absent if all are.
    pub until: Option<Timestamp>,
    /// Where looking ended before the block does; absent if all of its windows were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_to: Option<Timestamp>,
}

/// How the budget stands in a ledger that exists. Nothing here depends on a record.
#[derive(Clone, Debug, Serialize)]
pub struct Left {
    /// The start of the next window to close.
    pub next_window: Timestamp,
    /// What one block may spend.
    pub total: Price,
    pub spent: Price,
    /// What windows can still spend of the block; the same unit as `total`.
    pub left: Price,
    /// What the file changes in the settings of the ledger: that holds from the next window on.
    pub changes: Vec<String>,
    #[serde(flatten)]
    pub to_come: BlockToCome,
    /// The next block, which begins with a budget of its own; absent if there is none or nothing of it is charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_block: Option<BlockToCome>,
    /// Where the share of its input's total ends, if it does: no window of a block that ends later is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_ends: Option<Timestamp>,
    /// Every window is a block of its own, so that nothing is used up.
    #[serde(skip)]
    is_renewed: bool,
}

impl Left {
    /// What is left in the ledger of these settings; `None` without a ledger, if it is of another promise, or if it cannot be read,
    /// which whoever opens it tells.
    pub fn of(settings: &Settings) -> Option<Self> {
        if !exists(&settings.ledger) {
            return None;
        }
        let recorded = Ledger::newest_settings(&settings.ledger).ok()?;
        if other_promise(settings, &recorded).is_some() {
            return None;
        }
        let glance = Glance::at(&settings.ledger).ok()?;
        (glance.total.zero() == settings.privacy.total.zero()).then(|| Left::follow(settings, &glance, &recorded))
    }

    fn follow(settings: &Settings, glance: &Glance, recorded: &str) -> Self {
        let grid = settings.windows.grid;
        let next = grid.first_from(glance.next_window);
        let block = settings.blocks.span_of(next.start);
        let (spent, limit) = (glance.spent(block), settings.privacy.limit());
        let mut coming = windows_to_come(settings, glance.first, next, |block| glance.spent(block)).peekable();
        let mut look = |block: Span| {
            let mut found = BlockToCome { block, windows: 0, windows_paid: 0, until: None, looked_to: None };
            while let Some((window, charged)) = coming.next_if(|(window, _)| window.start < block.end) {
                if found.windows == MOST_WINDOWS {
                    found.looked_to = Some(window.start);
                    break;
                }
                found.windows += 1;
                match found.until {
                    None if charged.is_empty() => found.until = Some(window.start),
                    None => found.windows_paid += 1,
                    Some(_) => {}
                }
            }
            found
        };
        let to_come = look(block);
        let is_renewed = matches!(settings.privacy.unit, Unit::Record);
        let next_block = match settings.blocks {
            // Of a block that was not followed to its end nothing is known of what its last windows charge the next one.
            Blocks::Every(blocks) if !is_renewed && to_come.looked_to.is_none() => Some(look(blocks.after(block))),
            _ => None,
        };
        let ends = |to_come: &BlockToCome| glance.share_ends.is_some_and(|ends| to_come.block.end > ends);
        Left {
            next_window: next.start,
            total: settings.privacy.total,
            spent,
            left: limit.checked_sub(spent).unwrap_or(limit.zero()),
            changes: diff::differences(recorded, &canonical::recorded(settings)),
            to_come,
            next_block: next_block.filter(|next| next.windows > 0 && !ends(next)),
            share_ends: glance.share_ends,
            is_renewed,
        }
    }

    /// The same in words.
    pub fn in_words(&self) -> Vec<String> {
        let Left { next_window, total, spent, left, changes, to_come, next_block, share_ends, is_renewed } = self;
        let BlockToCome { block, windows_paid, until, .. } = to_come;
        let mut lines = vec![format!("the next window of the ledger is that of {next_window}")];
        if !changes.is_empty() {
            lines.push("from that window on the file changes the settings of the ledger:".to_owned());
            lines.extend(changes.iter().map(|change| format!("  {change}")));
        }
        if let Some(ends) = share_ends {
            lines.push(format!("its share of the input's total ends: no block from {ends} on is charged"));
            if block.end > *ends {
                lines.push("no window is published any more".to_owned());
                return lines;
            }
        }
        if *is_renewed && until.is_none() {
            lines.push(format!("every window has a budget of its own, {total}: nothing is used up"));
            return lines;
        }
        let of = match *block {
            Span::ALL => String::new(),
            Span { start, end } => format!(" for {start} to {end}"),
        };
        lines.push(format!("{left} of {total} is left{of}, after {spent} was spent"));
        let is_last = *block == Span::ALL || share_ends.is_some_and(|ends| block.end >= ends);
        lines.push(match until {
            Some(until) => format!(
                "that pays for {}: the window of {until} is the first that is not published{}",
                counted(*windows_paid as u64, "more window"),
                if is_last {
                    ", nor is any later one".to_owned()
                } else {
                    format!(", until {} renews the budget", block.end)
                }
            ),
            None => format!("that pays for {}", to_come.all()),
        });
        if let Some(next) = next_block {
            let Span { start, end } = next.block;
            lines.push(match next.until {
                Some(until) => format!(
                    "the next budget, for {start} to {end}, pays for {}: the window of {until} is the first that is not published",
                    counted(next.windows_paid as u64, "window"),
                ),
                None => format!("the next budget, for {start} to {end}, pays for {}", next.all()),
            });
        }
        lines
    }
}

impl BlockToCome {
    /// What is paid for where nothing is missing.
    fn all(&self) -> String {
        match self.looked_to {
            Some(to) => format!("all its windows up to {to}; later ones were not looked at"),
            None => "all its windows to come".to_owned(),
        }
    }
}
