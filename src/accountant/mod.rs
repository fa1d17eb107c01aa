//! Composition: what a list of prices costs a privacy unit. Pure functions, pure epsilon.
//!
//! Time is cut into disjoint blocks, and a privacy unit lies in one block. Releases that read the same block compose
//! sequentially: their prices add up [DMNS06, sequential composition], also where a later price or target was chosen
//! after the earlier answers were seen, as long as the total was fixed beforehand. Releases that read disjoint sets of
//! units compose in parallel: a unit loses the most that any one of them takes [McSherry 2009, theorem 4]. So when no
//! block is ever charged more than the total, no unit loses more than the total, whatever it contributed.
//!
//! The keys of one window partition its records and cost its price once. A window that straddles two blocks reads
//! units of both and charges both.

use crate::mechanism::calibrate::Epsilon;
use crate::window::grid::Span;

/// A block that cannot pay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the block {} to {} has spent {spent} of {total} and cannot pay {price}", block.start, block.end)]
pub struct Exhausted {
    pub block: Span,
    pub spent: Epsilon,
    pub price: Epsilon,
    pub total: Epsilon,
}

/// What the blocks have spent once a release at `price` has charged every one of them.
///
/// `touched` are all blocks that the release's window meets, with what each has spent before. Refused as a whole, for
/// the first block that cannot pay: a release that only some of its blocks have paid for is not private for the others.
pub fn quote(touched: &[(Span, Epsilon)], price: Epsilon, total: Epsilon) -> Result<Vec<(Span, Epsilon)>, Exhausted> {
    touched
        .iter()
        .map(|&(block, spent)| match spent.checked_add(price) {
            Some(sum) if sum <= total => Ok((block, sum)),
            _ => Err(Exhausted { block, spent, price, total }),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::clock::Timestamp;
    use crate::window::grid::Grid;

    /// A window that was released, and its price.
    type Released = (Span, Epsilon);

    fn grid(origin: i64, length: u64) -> Grid {
        Grid::new(Timestamp::from_micros(origin), Duration::from_micros(length)).unwrap()
    }

    /// Releases what can be paid for, charging the blocks that `charged` names.
    fn run(
        releases: &[Released],
        total: Epsilon,
        charged: impl Fn(Span) -> Vec<Span>,
    ) -> (Vec<Released>, BTreeMap<Span, Epsilon>) {
        let mut spent: BTreeMap<Span, Epsilon> = BTreeMap::new();
        let mut released = Vec::new();
        for &(window, price) in releases {
            let touched: Vec<_> =
                charged(window).into_iter().map(|b| (b, spent.get(&b).copied().unwrap_or_default())).collect();
            if let Ok(sums) = quote(&touched, price, total) {
                spent.extend(sums);
                released.push((window, price));
            }
        }
        (released, spent)
    }

    /// The most that any unit loses: each unit has a record at every time of its block.
    fn worst_unit(released: &[Released], blocks: Grid, times: std::ops::Range<i64>) -> Epsilon {
        let mut lost: BTreeMap<Span, BTreeMap<Span, Epsilon>> = BTreeMap::new();
        for time in times.map(Timestamp::from_micros) {
            for &(window, price) in released.iter().filter(|(window, _)| window.start <= time && time < window.end) {
                lost.entry(blocks.span_of(time)).or_default().insert(window, price);
            }
        }
        let sum = |prices: &BTreeMap<Span, Epsilon>| prices.values().map(|price| price.trillionths()).sum();
        Epsilon::from_trillionths(lost.values().map(sum).max().unwrap_or(0))
    }

    proptest! {
        /// Windows of any length over blocks of any length, straddling included, with prices that change.
        #[test]
        fn the_worst_unit_never_loses_more_than_the_total(
            origin in -9i64..9, window in 1u64..9, block in 1u64..12, total in 1u64..20,
            prices in prop::collection::vec(1u64..8, 12),
        ) {
            let (windows, blocks) = (grid(origin, window), grid(origin, block));
            let first = windows.span_of(Timestamp::from_micros(0));
            let spans = std::iter::successors(Some(first), |span| Some(windows.after(*span)));
            let releases: Vec<_> = spans.zip(prices.iter().map(|p| Epsilon::from_trillionths(*p))).collect();
            let total = Epsilon::from_trillionths(total);
            let (released, spent) = run(&releases, total, |window| blocks.spans_meeting(window).collect());
            let worst = worst_unit(&released, blocks, -20..140);
            prop_assert!(worst <= total);
            // Nothing is given away either: what the blocks were charged is what their units lost.
            prop_assert_eq!(worst, spent.values().copied().max().unwrap_or_default());
        }
    }

    #[test]
    fn charging_only_the_block_a_window_starts_in_would_break_the_promise() {
        let (windows, blocks) = (grid(0, 3), grid(0, 4));
        let total = Epsilon::from_trillionths(1);
        let mut window = windows.span_of(Timestamp::from_micros(0));
        let mut releases = Vec::new();
        for _ in 0..6 {
            releases.push((window, total));
            window = windows.after(window);
        }
        let (wrong, _) = run(&releases, total, |window| vec![blocks.span_of(window.start)]);
        assert!(worst_unit(&wrong, blocks, 0..30) > total);
        let (right, _) = run(&releases, total, |window| blocks.spans_meeting(window).collect());
        assert_eq!(worst_unit(&right, blocks, 0..30), total);
    }

    #[test]
    fn one_poor_block_refuses_the_whole_release() {
        let blocks = grid(0, 10);
        let first = blocks.span_of(Timestamp::from_micros(0));
        let second = blocks.after(first);
        let [one, three, four] = [1, 3, 4].map(Epsilon::from_trillionths);
        assert_eq!(
            quote(&[(first, one), (second, three)], one, four),
            Ok(vec![(first, Epsilon::from_trillionths(2)), (second, four),])
        );
        let refused = quote(&[(first, one), (second, four)], one, four).unwrap_err();
        assert_eq!(refused, Exhausted { block: second, spent: four, price: one, total: four });
        assert!(refused.to_string().contains("has spent 0.000000000004 of 0.000000000004"));
    }

    #[test]
    fn a_sum_that_overflows_is_refused() {
        let block = grid(0, 10).span_of(Timestamp::from_micros(0));
        let most = Epsilon::from_trillionths(u64::MAX);
        assert!(quote(&[(block, most)], Epsilon::from_trillionths(1), most).is_err());
    }
}
