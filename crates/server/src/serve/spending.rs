//! Where the budget went, by release, by day and by block, as the cached synopses tell it: nothing is shown that was not published.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::parameters::By;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::grid::{Grid, Span};
use bernstream_synopsis::price::Price;

/// What windows were charged, the oldest first. Amounts are in the kind of the budget: epsilon, epsilon and delta, rho, or windows.
#[derive(Debug, Serialize)]
pub struct Spending<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    releases: Option<Vec<OfRelease<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    days: Option<Vec<OfDay<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<Vec<OfBlock<'a>>>,
}

/// Windows of one release, and the sum of their prices. All keys of a window are paid for together.
#[derive(Clone, Copy, Debug, Serialize)]
struct Windows<'a> {
    release: &'a str,
    windows: u64,
    charged: Price,
}

#[derive(Debug, Serialize)]
struct OfRelease<'a> {
    pipeline: &'a str,
    ledger: &'a str,
    #[serde(flatten)]
    of: Windows<'a>,
    /// From the start of the first window to the end of the last one.
    span: Span,
}

#[derive(Debug, Serialize)]
struct OfDay<'a> {
    pipeline: &'a str,
    ledger: &'a str,
    /// The midnight, in UTC, before its windows start.
    day: Timestamp,
    #[serde(flatten)]
    of: Windows<'a>,
}

#[derive(Debug, Serialize)]
struct OfBlock<'a> {
    pipeline: &'a str,
    ledger: &'a str,
    block: Span,
    /// After the newest of the windows; windows that are not cached any more are in it too.
    spent: Price,
    total: Price,
    left: Price,
    /// The newest window.
    newest: Span,
    /// What it was charged for all its releases.
    price: Price,
    /// How many more windows at that price `left` pays for.
    windows_left: u64,
    /// The start of the first window of the block that they leave unpaid; absent if the block ends before.
    #[serde(skip_serializing_if = "Option::is_none")]
    lasts_until: Option<Timestamp>,
    releases: Vec<InBlock<'a>>,
}

/// The windows of one release in a block.
#[derive(Clone, Copy, Debug, Serialize)]
struct InBlock<'a> {
    #[serde(flatten)]
    of: Windows<'a>,
    /// What the newest window was charged for it; nothing if it was not released then.
    price: Price,
}

/// A pipeline and one of its ledgers.
type Ledger<'a> = (&'a str, &'a str);

/// A block while its windows are added, the oldest first.
#[derive(Debug)]
struct Block<'a> {
    spent: Price,
    total: Price,
    /// The newest window, its row, and what it was charged for all its releases.
    newest: Span,
    row: u64,
    price: Price,
    /// The windows of each release, the row of the newest of them, and what that was charged.
    releases: BTreeMap<&'a str, (Windows<'a>, u64, Price)>,
}

impl<'a> Spending<'a> {
    /// What the synopses with these descriptions were charged.
    pub fn of(descriptions: impl Iterator<Item = &'a Description>) -> Self {
        let charges: BTreeMap<_, _> = descriptions
            .map(|about| (charge_of(about), about))
            .collect();
        let days = Grid::new(Timestamp::from_micros(0), Duration::from_secs(24 * 3600));
        let mut by_release: BTreeMap<(Ledger, &str), (Windows, Span)> = BTreeMap::new();
        let mut by_day: BTreeMap<(Ledger, Timestamp, &str), Windows> = BTreeMap::new();
        let mut by_block: BTreeMap<(Ledger, Timestamp, Timestamp), Block> = BTreeMap::new();
        for ((ledger, row, release), about) in charges {
            let price = about.privacy.price;
            // Of windows that overlap, each pays when its newest part is over.
            let window = about.panes.map_or(about.window, |panes| panes.newest);
            let nothing = Windows {
                release,
                windows: 0,
                charged: price.zero(),
            };
            let (of, span) = by_release
                .entry((ledger, release))
                .or_insert((nothing, window));
            of.add(price);
            span.end = window.end;
            let day = days.map_or(window.start, |days| days.span_of(window.start).start);
            by_day
                .entry((ledger, day, release))
                .or_insert(nothing)
                .add(price);
            for charged in &about.privacy.blocks {
                let new = Block {
                    spent: charged.spent,
                    total: charged.total,
                    newest: window,
                    row,
                    price: price.zero(),
                    releases: BTreeMap::new(),
                };
                let block = by_block
                    .entry((ledger, charged.start, charged.end))
                    .or_insert(new);
                let others = if block.row == row {
                    block.price
                } else {
                    price.zero()
                };
                (block.newest, block.row, block.price) = (window, row, together(others, price));
                (block.spent, block.total) = (charged.spent, charged.total);
                let (of, newest, paid) = block
                    .releases
                    .entry(release)
                    .or_insert((nothing, row, price));
                of.add(price);
                (*newest, *paid) = (row, price);
            }
        }
        let of_release = |(((pipeline, ledger), _), (of, span))| OfRelease {
            pipeline,
            ledger,
            of,
            span,
        };
        let of_day = |(((pipeline, ledger), day, _), of)| OfDay {
            pipeline,
            ledger,
            day,
            of,
        };
        Spending {
            releases: Some(by_release.into_iter().map(of_release).collect()),
            days: Some(by_day.into_iter().map(of_day).collect()),
            blocks: Some(
                by_block
                    .into_iter()
                    .map(|(key, block)| OfBlock::of(key, block))
                    .collect(),
            ),
        }
    }

    /// Only this of it; all without `by`.
    pub fn by(self, by: Option<By>) -> Self {
        let only = |this| by.is_none_or(|by| by == this);
        Spending {
            releases: self.releases.filter(|_| only(By::Release)),
            days: self.days.filter(|_| only(By::Day)),
            blocks: self.blocks.filter(|_| only(By::Block)),
        }
    }
}

impl Windows<'_> {
    fn add(&mut self, price: Price) {
        self.windows += 1;
        self.charged = sum(self.charged, price);
    }
}

impl<'a> OfBlock<'a> {
    fn of(
        ((pipeline, ledger), start, end): (Ledger<'a>, Timestamp, Timestamp),
        block: Block<'a>,
    ) -> Self {
        let Block {
            spent,
            total,
            newest,
            row,
            price,
            releases,
        } = block;
        let left = total.checked_sub(spent).unwrap_or(total.zero());
        let parts = left.parts().into_iter().zip(price.parts());
        let windows_left = parts
            .filter_map(|(left, price)| left.checked_div(price))
            .min()
            .unwrap_or(0);
        let paid = newest
            .end
            .micros()
            .checked_add(micros_of(newest, windows_left))
            .map(Timestamp::from_micros);
        let lasts_until = paid.filter(|until| *until < end);
        let in_block = |(of, last, price): (Windows<'a>, u64, Price)| InBlock {
            of,
            price: if last == row { price } else { price.zero() },
        };
        let releases = releases.into_values().map(in_block).collect();
        let block = Span { start, end };
        OfBlock {
            pipeline,
            ledger,
            block,
            spent,
            total,
            left,
            newest,
            price,
            windows_left,
            lasts_until,
            releases,
        }
    }
}

/// How long `count` windows as long as `window` last, in microseconds.
fn micros_of(window: Span, count: u64) -> i64 {
    let length = window.end.micros().saturating_sub(window.start.micros());
    length.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Pipeline and ledger, row and release: synopses that share them are keys of one window, which were paid for once.
fn charge_of(about: &Description) -> (Ledger<'_>, u64, &str) {
    (
        (&about.pipeline, &about.ledger.id),
        about.ledger.sequence,
        &about.release,
    )
}

/// A sum that is shown: over many blocks it can be larger than any price.
fn sum(a: Price, b: Price) -> Price {
    a.checked_add(b).unwrap_or(a.map(|_| u64::MAX))
}

/// What releases of one window cost together: of a declared plan they take one of its windows.
fn together(a: Price, b: Price) -> Price {
    if let Price::Slots(_) = b {
        b
    } else {
        sum(a, b)
    }
}
