//! How long a budget lasts that is spent as in the newest row.

use super::{Book, Row};
use crate::mechanism::price::Price;
use crate::window::grid::Span;

/// How long the budget lasts, if every row costs what the newest one did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// For ever: each block pays for all windows that read it.
    Ever,
    /// The newest block pays for so many windows more, of so many that will read it.
    Windows { paid: u64, of: u64 },
}

/// Windows are taken to go on at the pace of the output; what reads a block is taken to reach as far back as the newest row.
pub(super) fn outlook(book: &Book, (newest, spent): (Span, Price)) -> Outlook {
    let none = Outlook::Windows { paid: 0, of: 0 };
    let total = book.promise.total;
    let Some((_, row)) = book.rows.last_key_value() else { return none };
    let (Some(price), Some(left), Some(pane)) = (price_of(row, newest), total.checked_sub(spent), pane(book)) else {
        return none;
    };
    let end = i128::from(row.end.micros());
    let (from, to) = (i128::from(newest.start.micros()), i128::from(newest.end.micros()));
    // The rows that read a block after its last pane: as many as the newest row reads before its own.
    let oldest = row.releases.values().filter_map(|release| release.blocks.first()).map(|block| block.end).min();
    let back = end - pane - oldest.map_or(end, |oldest| i128::from(oldest.micros()));
    let after = if back >= 0 { back / pane + 1 } else { 0 };
    let count = |span: i128| u64::try_from(span.max(0)).unwrap_or(u64::MAX);
    // A grid of panes that does not meet the block's start has one more pane in it.
    let straddles = i128::from((end - from).rem_euclid(pane) != 0);
    let all = count(ceil(to - from, pane) + straddles + after);
    if times(price, total) >= all {
        return Outlook::Ever;
    }
    Outlook::Windows { paid: times(price, left), of: count(ceil(to - end, pane).max(0) + after) }
}

fn ceil(span: i128, pane: i128) -> i128 {
    -(-span).div_euclid(pane)
}

/// What the row costs a block.
fn price_of(row: &Row, block: Span) -> Option<Price> {
    let charging =
        row.releases.values().filter(|release| release.blocks.iter().any(|charge| charge.start == block.start));
    charging.map(|release| Some(release.price)).reduce(|a, b| a?.checked_add(b?)).flatten()
}

/// From one row to the next, in microseconds; where there is one row only, its shortest window.
fn pane(book: &Book) -> Option<i128> {
    let ends: Vec<i128> = book.rows.values().map(|row| i128::from(row.end.micros())).collect();
    let steps = ends.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?));
    let windows = book.rows.values().flat_map(|row| row.releases.values());
    let windows =
        windows.map(|release| i128::from(release.window.end.micros()) - i128::from(release.window.start.micros()));
    steps.chain(windows).filter(|step| *step > 0).min()
}

/// How often `price` fits into `left`, exactly, up to 2^40 times.
fn times(price: Price, left: Price) -> u64 {
    let doubled = |price: &Price| price.checked_add(*price).filter(|price| price.is_within(left));
    let first = Some(price).filter(|price| price.is_within(left) && !price.is_zero());
    let powers: Vec<Price> = std::iter::successors(first, doubled).take(40).collect();
    let mut rest = left;
    let fits = move |(power, price): (usize, &Price)| {
        let after = rest.checked_sub(*price)?;
        rest = after;
        Some(1_u64 << power)
    };
    powers.iter().enumerate().rev().filter_map(fits).sum()
}
