//! What a ledger at work has left, and until when that lasts under the settings of a file.

use serde::Serialize;

use crate::accountant;
use crate::accountant::policy::number;
use crate::clock::Timestamp;
use crate::config::{Settings, Unit, WindowKind};
use crate::ledger::{Glance, exists};
use crate::mechanism::price::Price;
use crate::pipeline::PriceSchedule;
use crate::window::grid::Span;

/// The most windows that are looked at.
const MOST_WINDOWS: usize = 100_000;

/// How the budget stands in a ledger that exists. Nothing here depends on a record.
#[derive(Clone, Debug, Serialize)]
pub struct Left {
    /// The start of the next window to close.
    pub next_window: Timestamp,
    /// The block of that window.
    pub block: Span,
    /// What one block may spend.
    pub total: Price,
    pub spent: Price,
    /// What windows can still spend of the block; the same unit as `total`.
    pub left: Price,
    /// How many windows from the next one on are paid for, up to the end of the block, and of a block without end for as long as is looked.
    pub windows_paid: usize,
    /// The start of the first window of the block that is not paid for; absent if all are.
    pub until: Option<Timestamp>,
    /// Where the share of its input's total ends, if it does: no window of a block that ends later is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_ends: Option<Timestamp>,
    /// Every window is a block of its own, so that nothing is used up.
    #[serde(skip)]
    is_renewed: bool,
}

impl Left {
    /// What is left in the ledger of these settings; `None` without a ledger, or if it cannot be read, which whoever opens it tells.
    pub fn of(settings: &Settings) -> Option<Self> {
        if !exists(&settings.ledger) {
            return None;
        }
        let glance = Glance::at(&settings.ledger).ok()?;
        (glance.total.zero() == settings.privacy.total.zero()).then(|| Left::follow(settings, &glance))
    }

    /// Charges the windows of the block one after the other, by the accountant that the worker uses.
    fn follow(settings: &Settings, glance: &Glance) -> Self {
        let (grid, limit) = (settings.windows.grid, settings.privacy.limit());
        let first = grid.first_from(glance.next_window);
        let block = settings.blocks.span_of(first.start);
        let spent = glance.spent(block);
        let schedules: Vec<PriceSchedule> =
            settings.releases.iter().map(|release| settings.price_schedule(release)).collect();
        let is_within =
            |window: &Span| window.start < block.end && settings.windows.end.is_none_or(|end| window.start < end);
        let windows = std::iter::successors(Some(first), |window| Some(grid.after(*window)));
        let (mut windows_paid, mut until) = (0, None);
        let mut charged = std::collections::BTreeMap::<Span, Price>::new();
        for window in windows.take_while(is_within).take(MOST_WINDOWS) {
            let spans = settings.releases.iter().map(|release| match release.window_kind {
                WindowKind::Hopping { panes } if !release.is_sum_of_panes() => {
                    Span { start: grid.before(window, panes - 1).max(glance.first), ..window }
                }
                _ => window,
            });
            let prices = schedules.iter().zip(spans).filter_map(|(schedule, span)| {
                let number = number(grid, settings.blocks.span_of(span.start), glance.first, window);
                Some((schedule.price(number)?, span))
            });
            let prices = prices.flat_map(|(price, span)| settings.blocks.spans_meeting(span).map(move |b| (b, price)));
            let now = |block| charged.get(&block).copied().unwrap_or_else(|| glance.spent(block));
            match accountant::quote(prices, now, limit) {
                Ok(quoted) if !quoted.is_empty() => {
                    charged.extend(quoted.iter().map(|quoted| (quoted.block, quoted.spent)));
                    windows_paid += 1;
                }
                _ => {
                    until = Some(window.start);
                    break;
                }
            }
        }
        Left {
            next_window: first.start,
            block,
            total: settings.privacy.total,
            spent,
            left: limit.checked_sub(spent).unwrap_or(limit.zero()),
            windows_paid,
            until,
            share_ends: glance.share_ends,
            is_renewed: matches!(settings.privacy.unit, Unit::Record),
        }
    }

    /// The same in words.
    pub fn in_words(&self) -> Vec<String> {
        let Left { next_window, block, total, spent, left, windows_paid, until, share_ends, .. } = self;
        let mut lines = vec![format!("the next window of the ledger is that of {next_window}")];
        if let Some(ends) = share_ends {
            lines.push(format!("its share of the input's total ends: no block from {ends} on is charged"));
            if block.end > *ends {
                lines.push("no window is published any more".to_owned());
                return lines;
            }
        }
        if self.is_renewed && until.is_none() {
            lines.push(format!("every window has a budget of its own, {total}: nothing is used up"));
            return lines;
        }
        let of = match *block {
            Span::ALL => String::new(),
            Span { start, end } => format!(" for {start} to {end}"),
        };
        lines.push(format!("{left} of {total} is left{of}, after {spent} was spent"));
        let is_last = share_ends.is_some_and(|ends| block.end >= ends);
        lines.push(match until {
            Some(until) => format!(
                "that pays for {windows_paid} more windows: the window of {until} is the first that is not published{}",
                if *block == Span::ALL || is_last {
                    ", nor is any later one".to_owned()
                } else {
                    format!(", until {} renews the budget", block.end)
                }
            ),
            None if *block == Span::ALL => {
                format!("that pays for all the {windows_paid} windows to come that were looked at")
            }
            None => "that pays for all its windows to come".to_owned(),
        });
        lines
    }
}
