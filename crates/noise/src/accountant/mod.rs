//! Composition: what a list of prices costs a privacy unit. Pure functions.
//!
//! Time is cut into disjoint blocks, and a privacy unit lies in one block. Releases that read the same block compose
//! sequentially: their prices add up, each part on its own, also where a later price or target was chosen after the earlier
//! answers were seen, as long as the total was fixed beforehand. For `epsilon`: `[DMNS06]`. For `(epsilon, delta)`: basic
//! composition `[DKMMN06]`, adaptive `[RRUV16]`. For `rho`: `[BS16]`, adaptive [FZ21, WRRW23]. Nothing cleverer is claimed.
//!
//! Releases that read disjoint sets of units compose in parallel: a unit loses the most that any one of them takes
//! (`[McS09]`, theorem 4), whatever the kind. So when no block is ever charged more than the total in any part, no unit
//! loses more than the total, whatever it contributed. The total is what is promised: but for pure budgets, a sum that was
//! looked at because of earlier answers is no guarantee of its own.
//!
//! The keys of one window partition its records and cost its price once. A window that straddles two blocks reads
//! units of both and charges both.
//!
//! The proof is in `docs/proofs/composition.md`. What a total means in other words is said by [`concentrated`] (`rho` as epsilon and delta), [`gaussian`] (a little more,
//! for books of Gaussian noise alone) and [`plan`] (the least epsilon of releases that are all declared beforehand).

pub mod concentrated;
pub mod gaussian;
pub mod loss;
pub mod plan;
pub mod policy;

use std::collections::BTreeMap;

use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// A block that cannot pay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the block {} to {} has spent {spent} of {total} and cannot pay {price}", block.start, block.end)]
pub struct ExhaustedBlock {
    pub block: Span,
    pub spent: Price,
    pub price: Price,
    pub total: Price,
}

/// Payment of a block for one window, and all that it has spent then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargedBlock {
    pub block: Span,
    pub price: Price,
    pub spent: Price,
}

/// Costs of a window to each block that it charges, in the order of the blocks.
///
/// `prices` are those of every release, for every block that what it speaks of meets; `spent` says what a block has spent
/// before. Refused as a whole, for the first block that cannot pay: a release that only some of its blocks have paid for is
/// not private for the others. A price of another kind than the total pays for nothing.
///
/// # Errors
///
/// If a block cannot pay its price in full: the first such block. Nothing is charged then.
pub fn quote_window(
    prices: impl IntoIterator<Item = (Span, Price)>,
    spent: impl Fn(Span) -> Price,
    total: Price,
) -> Result<Vec<ChargedBlock>, ExhaustedBlock> {
    let mut blocks: BTreeMap<Span, ChargedBlock> = BTreeMap::new();
    for (block, price) in prices {
        let charged = blocks.entry(block).or_insert(ChargedBlock {
            block,
            price: total.zero_of_kind(),
            spent: spent(block),
        });
        let refused = ExhaustedBlock {
            block,
            spent: charged.spent,
            price,
            total,
        };
        charged.price = charged.price.checked_add(price).ok_or(refused.clone())?;
        charged.spent = charged
            .spent
            .checked_add(price)
            .filter(|sum| sum.is_within(total))
            .ok_or(refused)?;
    }
    Ok(blocks.into_values().collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
    use bernstream_synopsis::clock::Timestamp;
    use bernstream_synopsis::grid::SpanGrid;

    /// A window that was released, and its price.
    type Released = (Span, Price);

    /// The parts of a price, in their units.
    pub(super) type Parts = [u64; 2];

    /// A price of one of the four kinds; only one of them has two parts.
    pub(super) fn price(kind: usize, [first, second]: Parts) -> Price {
        let epsilon = Epsilon::from_trillionths(first);
        match kind {
            0 => Price::Pure(epsilon),
            1 => Price::Approximate {
                epsilon,
                delta: Delta::from_quintillionths(second),
            },
            2 => Price::Concentrated(Rho::from_trillionths(first)),
            _ => Price::Slots(first),
        }
    }

    fn grid(origin: i64, length: u64) -> SpanGrid {
        SpanGrid::new(
            Timestamp::from_micros(origin),
            Duration::from_micros(length),
        )
        .unwrap()
    }

    /// Releases what can be paid for, charging the blocks that `charged` names.
    fn run(
        releases: &[Released],
        total: Price,
        charged: impl Fn(Span) -> Vec<Span>,
    ) -> (Vec<Released>, BTreeMap<Span, Price>) {
        let mut spent: BTreeMap<Span, Price> = BTreeMap::new();
        let mut released = Vec::new();
        for &(window, price) in releases {
            let prices = charged(window).into_iter().map(|block| (block, price));
            let quoted = quote_window(
                prices,
                |block| spent.get(&block).copied().unwrap_or(total.zero_of_kind()),
                total,
            );
            if let Ok(quoted) = quoted {
                spent.extend(
                    quoted
                        .into_iter()
                        .map(|quoted| (quoted.block, quoted.spent)),
                );
                released.push((window, price));
            }
        }
        (released, spent)
    }

    /// The most that any unit loses, part by part: each unit has a record at every time of its block.
    fn worst_unit(released: &[Released], blocks: SpanGrid, times: std::ops::Range<i64>) -> Parts {
        let mut lost: BTreeMap<Span, BTreeMap<Span, Parts>> = BTreeMap::new();
        for time in times.map(Timestamp::from_micros) {
            for &(window, price) in released
                .iter()
                .filter(|(window, _)| window.start <= time && time < window.end)
            {
                lost.entry(blocks.span_of(time))
                    .or_default()
                    .insert(window, price.smallest_units());
            }
        }
        let most = |part: fn(&Parts) -> u64| {
            lost.values()
                .map(|paid| paid.values().map(part).sum())
                .max()
                .unwrap_or(0)
        };
        [most(|paid| paid[0]), most(|paid| paid[1])]
    }

    proptest! {
        /// Windows of any length over blocks of any length, straddling included, with prices that change.
        #[test]
        fn the_worst_unit_never_loses_more_than_the_total(
            kind in 0_usize..4, origin in -9i64..9, window in 1u64..9, block in 1u64..12, total in [1u64..20, 1u64..20],
            prices in prop::collection::vec([1u64..8, 0u64..8], 12),
        ) {
            let (windows, blocks) = (grid(origin, window), grid(origin, block));
            let first = windows.span_of(Timestamp::from_micros(0));
            let spans = std::iter::successors(Some(first), |span| Some(windows.span_after(*span)));
            let releases: Vec<_> = spans.zip(prices.iter().map(|parts| price(kind, *parts))).collect();
            let total = price(kind, total);
            let (released, spent) = run(&releases, total, |window| blocks.spans_meeting(window).collect());
            let worst = worst_unit(&released, blocks, -20..140);
            prop_assert!(worst[0] <= total.smallest_units()[0] && worst[1] <= total.smallest_units()[1]);
            // Nothing is given away either: what the blocks were charged is what their units lost.
            let most = |part: usize| spent.values().map(|spent| spent.smallest_units()[part]).max().unwrap_or_default();
            prop_assert_eq!(worst, [most(0), most(1)]);
            // And what was withheld did not fit into one part or the other.
            for (window, price) in releases.iter().filter(|release| !released.contains(release)) {
                let is_full = blocks.spans_meeting(*window).any(|block| {
                    let [a, b] = spent.get(&block).copied().unwrap_or(total.zero_of_kind()).smallest_units();
                    a + price.smallest_units()[0] > total.smallest_units()[0] || b + price.smallest_units()[1] > total.smallest_units()[1]
                });
                prop_assert!(is_full);
            }
        }
    }

    #[test]
    fn charging_only_the_block_a_window_starts_in_would_break_the_promise() {
        let windows = grid(0, 3);
        let blocks = grid(0, 4);
        let total = price(1, [1, 1]);
        let mut window = windows.span_of(Timestamp::from_micros(0));
        let mut releases = Vec::new();
        for _ in 0..6 {
            releases.push((window, total));
            window = windows.span_after(window);
        }
        let (wrong, _) = run(&releases, total, |window| {
            vec![blocks.span_of(window.start)]
        });
        assert!(worst_unit(&wrong, blocks, 0..30) > [1, 1]);
        let (right, _) = run(&releases, total, |window| {
            blocks.spans_meeting(window).collect()
        });
        assert_eq!(worst_unit(&right, blocks, 0..30), [1, 1]);
    }

    #[test]
    fn one_poor_block_refuses_the_whole_release() {
        let blocks = grid(0, 10);
        let first = blocks.span_of(Timestamp::from_micros(0));
        let second = blocks.span_after(first);
        let [one, two, three, four] = [1, 2, 3, 4].map(|count| price(0, [count, 0]));
        let quoted = |spent: [Price; 2]| {
            let spent = move |block| if block == first { spent[0] } else { spent[1] };
            quote_window([(first, one), (second, one)], spent, four)
        };
        let charged = |block, spent| ChargedBlock {
            block,
            price: one,
            spent,
        };
        assert_eq!(
            quoted([one, three]),
            Ok(vec![charged(first, two), charged(second, four)])
        );
        let refused = quoted([one, four]).unwrap_err();
        assert_eq!(
            refused,
            ExhaustedBlock {
                block: second,
                spent: four,
                price: one,
                total: four
            }
        );
        assert!(
            refused
                .to_string()
                .contains("has spent 0.000000000004 of 0.000000000004")
        );
    }

    #[test]
    fn either_part_of_a_total_refuses_and_so_does_another_kind() {
        let block = grid(0, 10).span_of(Timestamp::from_micros(0));
        let total = price(1, [4, 4]);
        let is_paid =
            |spent, cost| quote_window([(block, cost)], |_| price(1, spent), total).is_ok();
        assert!(is_paid([1, 1], price(1, [3, 3])));
        assert!(!is_paid([1, 1], price(1, [4, 0])));
        assert!(!is_paid([1, 1], price(1, [1, 4])));
        assert!(!is_paid([0, 0], price(0, [1, 0])) && !is_paid([0, 0], price(2, [1, 0])));
    }

    #[test]
    fn releases_of_one_window_add_up_in_each_block() {
        let blocks = grid(0, 10);
        let first = blocks.span_of(Timestamp::from_micros(0));
        let second = blocks.span_after(first);
        let p = |count| price(0, [count, 0]);
        // One release speaks of both blocks, the other of the second alone.
        let quoted = quote_window(
            [(first, p(1)), (second, p(1)), (second, p(2))],
            |_| p(1),
            p(4),
        )
        .unwrap();
        let charged = |block, price, spent| ChargedBlock {
            block,
            price: p(price),
            spent: p(spent),
        };
        assert_eq!(quoted, [charged(first, 1, 2), charged(second, 3, 4)]);
        assert!(quote_window([(second, p(1)), (second, p(2))], |_| p(2), p(4)).is_err());
    }

    #[test]
    fn a_sum_that_overflows_is_refused() {
        let block = grid(0, 10).span_of(Timestamp::from_micros(0));
        for kind in 0..4 {
            let most = price(kind, [u64::MAX; 2]);
            assert!(quote_window([(block, price(kind, [1, 0]))], |_| most, most).is_err());
        }
        let most = price(1, [u64::MAX; 2]);
        assert!(quote_window([(block, price(1, [0, 1]))], |_| most, most).is_err());
    }
}
