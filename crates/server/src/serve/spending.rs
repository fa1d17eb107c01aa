//! Where the budget went, by release, by day and by block, as the cached synopses tell it: nothing is shown that was not published.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::parameters::SpendingPart;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::grid::{Span, SpanGrid};
use bernstream_synopsis::price::Price;

/// Charges of windows, the oldest first. Amounts are in the kind of the budget: epsilon, epsilon and delta, rho, or windows.
#[derive(Debug, Serialize)]
pub struct SpendingResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    releases: Option<Vec<OfRelease<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    days: Option<Vec<OfDay<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<Vec<OfBlock<'a>>>,
}

/// ChargedWindows of one release, and the sum of their prices. All keys of a window are paid for together.
#[derive(Clone, Copy, Debug, Serialize)]
struct ChargedWindows<'a> {
    release: &'a str,
    windows: u64,
    charged: Price,
}

#[derive(Debug, Serialize)]
struct OfRelease<'a> {
    pipeline: &'a str,
    ledger: &'a str,
    #[serde(flatten)]
    of: ChargedWindows<'a>,
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
    of: ChargedWindows<'a>,
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
    /// Price that it was charged for all its releases.
    price: Price,
    /// Number of further windows at that price that `left` pays for.
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
    of: ChargedWindows<'a>,
    /// Price that the newest window was charged for it; nothing if it was not released then.
    price: Price,
}

/// A pipeline and one of its ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PipelineLedger<'a> {
    pipeline: &'a str,
    id: &'a str,
}

/// A charge: synopses that share it are keys of one window, which were paid for once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ChargeKey<'a> {
    ledger: PipelineLedger<'a>,
    row: u64,
    release: &'a str,
}

/// The order of releases that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReleaseKey<'a> {
    ledger: PipelineLedger<'a>,
    release: &'a str,
}

/// The order of days that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DayKey<'a> {
    ledger: PipelineLedger<'a>,
    day: Timestamp,
    release: &'a str,
}

/// The order of blocks that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BlockKey<'a> {
    ledger: PipelineLedger<'a>,
    start: Timestamp,
    end: Timestamp,
}

/// A block while its windows are added, the oldest first.
#[derive(Debug)]
struct BlockTotal<'a> {
    spent: Price,
    total: Price,
    /// The newest window, its row, and what it was charged for all its releases.
    newest: Span,
    row: u64,
    price: Price,
    releases: BTreeMap<&'a str, BlockRelease<'a>>,
}

/// The windows of one release in a block while they are added.
#[derive(Debug)]
struct BlockRelease<'a> {
    of: ChargedWindows<'a>,
    /// The row of the newest of them, and what it was charged.
    row: u64,
    price: Price,
}

impl<'a> SpendingResponse<'a> {
    /// Adds up what the synopses with these descriptions were charged.
    pub fn from_descriptions(descriptions: impl Iterator<Item = &'a Description>) -> Self {
        let mut charges = BTreeMap::new();
        for about in descriptions {
            charges.insert(ChargeKey::of(about), about);
        }
        let days = SpanGrid::new(Timestamp::from_micros(0), Duration::from_secs(24 * 3600));
        let mut by_release: BTreeMap<ReleaseKey, OfRelease> = BTreeMap::new();
        let mut by_day: BTreeMap<DayKey, OfDay> = BTreeMap::new();
        let mut by_block: BTreeMap<BlockKey, BlockTotal> = BTreeMap::new();
        for (charge, about) in charges {
            let ChargeKey {
                ledger, release, ..
            } = charge;
            let price = about.privacy.price;
            // Of windows that overlap, each pays when its newest part is over.
            let window = about.panes.map_or(about.window, |panes| panes.newest);
            let nothing = ChargedWindows {
                release,
                windows: 0,
                charged: price.zero_of_kind(),
            };
            let of_release =
                by_release
                    .entry(ReleaseKey { ledger, release })
                    .or_insert(OfRelease {
                        pipeline: ledger.pipeline,
                        ledger: ledger.id,
                        of: nothing,
                        span: window,
                    });
            of_release.of.add_window(price);
            of_release.span.end = window.end;
            let day = days.map_or(window.start, |days| days.span_of(window.start).start);
            let key = DayKey {
                ledger,
                day,
                release,
            };
            let of_day = by_day.entry(key).or_insert(OfDay {
                pipeline: ledger.pipeline,
                ledger: ledger.id,
                day,
                of: nothing,
            });
            of_day.of.add_window(price);
            for charged in &about.privacy.blocks {
                let key = BlockKey {
                    ledger,
                    start: charged.start,
                    end: charged.end,
                };
                let block = by_block.entry(key).or_insert(BlockTotal {
                    spent: charged.spent,
                    total: charged.total,
                    newest: window,
                    row: charge.row,
                    price: price.zero_of_kind(),
                    releases: BTreeMap::new(),
                });
                block.spent = charged.spent;
                block.total = charged.total;
                block.add_window(charge, window, price);
            }
        }
        let blocks = by_block.into_iter();
        SpendingResponse {
            releases: Some(by_release.into_values().collect()),
            days: Some(by_day.into_values().collect()),
            blocks: Some(blocks.map(|(key, block)| OfBlock::of(key, block)).collect()),
        }
    }

    /// Keeps only this of it; all without `by`.
    pub fn filtered_by(mut self, by: Option<SpendingPart>) -> Self {
        if by.is_some_and(|by| by != SpendingPart::Release) {
            self.releases = None;
        }
        if by.is_some_and(|by| by != SpendingPart::Day) {
            self.days = None;
        }
        if by.is_some_and(|by| by != SpendingPart::Block) {
            self.blocks = None;
        }
        self
    }
}

impl<'a> ChargeKey<'a> {
    fn of(about: &'a Description) -> Self {
        ChargeKey {
            ledger: PipelineLedger {
                pipeline: &about.pipeline,
                id: &about.ledger.id,
            },
            row: about.ledger.sequence,
            release: &about.release,
        }
    }
}

impl<'a> BlockTotal<'a> {
    /// Adds a window, which is no older than those before.
    fn add_window(&mut self, charge: ChargeKey<'a>, window: Span, price: Price) {
        let ChargeKey { row, release, .. } = charge;
        let others = if self.row == row {
            self.price
        } else {
            price.zero_of_kind()
        };
        self.newest = window;
        self.row = row;
        self.price = window_price(others, price);
        let in_block = self.releases.entry(release).or_insert(BlockRelease {
            of: ChargedWindows {
                release,
                windows: 0,
                charged: price.zero_of_kind(),
            },
            row,
            price,
        });
        in_block.of.add_window(price);
        in_block.row = row;
        in_block.price = price;
    }
}

impl ChargedWindows<'_> {
    fn add_window(&mut self, price: Price) {
        self.windows += 1;
        self.charged = shown_sum(self.charged, price);
    }
}

impl<'a> OfBlock<'a> {
    fn of(key: BlockKey<'a>, block: BlockTotal<'a>) -> Self {
        let BlockKey { ledger, start, end } = key;
        let BlockTotal {
            spent,
            total,
            newest,
            row,
            price,
            releases,
        } = block;
        let left = total.checked_sub(spent).unwrap_or(total.zero_of_kind());
        let parts = left
            .smallest_units()
            .into_iter()
            .zip(price.smallest_units());
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
        let mut shown = Vec::new();
        for release in releases.into_values() {
            let price = release.price;
            shown.push(InBlock {
                of: release.of,
                price: if release.row == row {
                    price
                } else {
                    price.zero_of_kind()
                },
            });
        }
        OfBlock {
            pipeline: ledger.pipeline,
            ledger: ledger.id,
            block: Span { start, end },
            spent,
            total,
            left,
            newest,
            price,
            windows_left,
            lasts_until,
            releases: shown,
        }
    }
}

/// Length of `count` windows as long as `window`, in microseconds.
fn micros_of(window: Span, count: u64) -> i64 {
    let length = window.end.micros().saturating_sub(window.start.micros());
    length.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX))
}

/// A sum that is shown: over many blocks it can be larger than any price.
fn shown_sum(a: Price, b: Price) -> Price {
    a.checked_add(b).unwrap_or(a.map_parts(|_| u64::MAX))
}

/// Price of releases of one window together: of a declared plan they take one of its windows.
fn window_price(a: Price, b: Price) -> Price {
    if let Price::Slots(_) = b {
        b
    } else {
        shown_sum(a, b)
    }
}
