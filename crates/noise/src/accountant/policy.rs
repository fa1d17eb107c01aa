//! The price of the n-th window of a block. Pure arithmetic on prices, each part on its own, rounded down.
//!
//! A policy is public and looks at no answer: what every window costs is known before the first one. The windows of a block
//! are counted from 0, those that were withheld too, and never cost more than their share together. That is a matter of the
//! budget's course, not of the promise: [`quote_window`](super::quote_window) refuses what a total cannot pay, whatever a policy says.

use std::num::NonZeroU64;

use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::fraction::Fraction;
use bernstream_synopsis::grid::{Span, SpanGrid};
use bernstream_synopsis::price::Price;

/// Prices of one release for its windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PricePolicy {
    /// One price for every window, until the total is spent.
    Fixed(Price),
    /// A share of the total, divided evenly among so many windows; the later ones of the block have nothing.
    Horizon { share: Price, windows: NonZeroU64 },
    /// A share of the total for a block without an end: `m / ((n + m) (n + m + 1))` of it for window `n`, `m` being `half_after`.
    ///
    /// That is `m / (n + m) - m / (n + 1 + m)`, so the first `N` windows have `N / (N + m)` of it, which is half after `m`
    /// windows and never the whole. `half_after` windows from the start the noise of pure differential privacy is about four
    /// times that of the first; from there it grows with the square of the time, Gaussian noise with the time.
    Decaying {
        share: Price,
        half_after: NonZeroU64,
    },
}

impl PricePolicy {
    /// Price that window `n` of a block may have; `None` where it is over, or where a part of the share comes to nothing.
    ///
    /// It never rises with `n`: a window that meets several blocks may cost what the largest of its numbers says.
    pub fn window_price(&self, n: u64) -> Option<Price> {
        match *self {
            PricePolicy::Fixed(price) => Some(price),
            PricePolicy::Horizon { windows, .. } if n >= windows.get() => None,
            PricePolicy::Horizon { share, windows } => {
                let price = share.map_parts(|count| count / windows);
                has_every_part_of(share, price).then_some(price)
            }
            PricePolicy::Decaying { share, half_after } => {
                let n = u128::from(n);
                let m = u128::from(half_after.get());
                // Where it does not fit it is more than any share of 64 bits times `m`.
                let divisor = (n + m).saturating_mul(n + m + 1);
                let price =
                    share.map_parts(|count| saturated_count(u128::from(count) * m / divisor));
                has_every_part_of(share, price).then_some(price)
            }
        }
    }

    /// Number of windows of a block that are paid for before the first that is not; `None` where all of them are.
    ///
    /// `windows` meet a block, `None` without an end. `total` is what all of them may spend. `is_enough` says whether a price
    /// pays for noise that can be drawn; where it does, so does every higher price.
    pub fn paid_windows(
        &self,
        total: Price,
        windows: Option<u64>,
        is_enough: impl Fn(Price) -> bool,
    ) -> Option<u64> {
        let paid = match *self {
            PricePolicy::Fixed(price) if is_enough(price) => times_within(price, total),
            _ => first_over(|n| !self.window_price(n).is_some_and(&is_enough)),
        };
        windows.is_none_or(|windows| paid < windows).then_some(paid)
    }
}

/// The number of `window` in a block that it meets, from 0: how many windows met the block before it, from `first` on, the
/// start of the first window that there is. A matter of the grid alone: those that were withheld count too.
pub fn window_number(windows: SpanGrid, block: Span, first: Timestamp, window: Span) -> u64 {
    let begin = windows.span_of(block.start).start.max(first);
    let number = window.start.since(begin).as_micros() / windows.length().as_micros().max(1);
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Rest of a total for ordinary windows when a part of it is kept back.
pub fn without_reserve(total: Price, reserve: Fraction) -> Price {
    reserve.complement_to_whole().part_of_price(total)
}

/// Request of a release for a part of what a block may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyInput {
    /// One price a window.
    Fixed(Price),
    /// A part of all.
    Part(Fraction),
    /// An equal part with every other release that asks for no more than this.
    Rest,
}

/// Divides `all` that a block may spend among its releases: what each may spend, together never more than that.
///
/// `windows` meet a block, `None` without an end.
///
/// # Errors
///
/// If the prices exceed the budget of a block, leave nothing for a release, or a fixed price never ends.
pub fn divide_budget(
    all: Price,
    windows: Option<u64>,
    asked: &[PolicyInput],
) -> Result<Vec<Price>, DivisionError> {
    let mut own = Vec::with_capacity(asked.len());
    for asked in asked {
        own.push(match asked {
            PolicyInput::Fixed(price) => {
                let windows = windows.ok_or(DivisionError::Endless)?;
                if times_within(*price, all) < windows {
                    return Err(DivisionError::TooMuch);
                }
                // It fits, so no part is too large for a price.
                Some(price.map_parts(|count| count.saturating_mul(windows)))
            }
            PolicyInput::Part(fraction) => Some(fraction.part_of_price(all)),
            PolicyInput::Rest => None,
        });
    }
    let mut left = all;
    for share in own.iter().flatten() {
        left = left.checked_sub(*share).ok_or(DivisionError::TooMuch)?;
    }
    let others = own.iter().filter(|share| share.is_none()).count() as u64;
    let even = left.map_parts(|count| count.checked_div(others).unwrap_or_default());
    if others > 0 && !has_every_part_of(all, even) {
        return Err(DivisionError::Nothing);
    }
    Ok(own.into_iter().map(|share| share.unwrap_or(even)).collect())
}

/// Reasons why releases cannot share a budget as they ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DivisionError {
    #[error("the releases together cost more than the budget of a block")]
    TooMuch,
    #[error("the releases with a price or share of their own leave nothing for the others")]
    Nothing,
    #[error(
        "a fixed price per window eventually spends all of the budget of a block without an end"
    )]
    Endless,
}

/// Returns true if `price` has something of every part that `share` has something of.
fn has_every_part_of(share: Price, price: Price) -> bool {
    !share.is_zero()
        && share
            .smallest_units()
            .into_iter()
            .zip(price.smallest_units())
            .all(|(share, price)| price > 0 || share == 0)
}

/// Number of times that `total` pays `price`. What costs nothing is paid for without end, another kind never.
fn times_within(price: Price, total: Price) -> u64 {
    if total.checked_add(price.zero_of_kind()).is_none() {
        return 0;
    }
    let times = price
        .smallest_units()
        .into_iter()
        .zip(total.smallest_units())
        .filter_map(|(price, total)| total.checked_div(price));
    times.min().unwrap_or(u64::MAX)
}

/// The first number from which on it is over.
fn first_over(is_over: impl Fn(u64) -> bool) -> u64 {
    let mut least = 0;
    let mut most = u64::MAX;
    while least < most {
        let middle = least + (most - least) / 2;
        if is_over(middle) {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    least
}

/// Parts of a count that fits are counts that fit.
fn saturated_count(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::accountant::tests::price;
    use bernstream_synopsis::grid::Blocks;

    fn pure(text: &str) -> Price {
        Price::Pure(text.parse().unwrap())
    }

    fn some(count: u64) -> NonZeroU64 {
        NonZeroU64::new(count).unwrap()
    }

    #[test]
    fn the_number_of_a_window_is_how_many_met_its_block_before() {
        let at = Timestamp::from_micros;
        for (length, per, origin, begin) in [
            (1, 24, 0, 0),
            (3, 7, 2, -4),
            (7, 3, 1, 5),
            (4, 6, 0, 9),
            (5, 5, 3, 0),
        ] {
            let grid = |length| {
                SpanGrid::new(at(origin), std::time::Duration::from_micros(length)).unwrap()
            };
            let windows = grid(length);
            let blocks = Blocks::from(grid(per));
            let first = windows.first_from(at(begin));
            for blocks in [blocks, Blocks::Forever] {
                let mut met: std::collections::BTreeMap<Span, u64> =
                    std::collections::BTreeMap::new();
                let all =
                    std::iter::successors(Some(first), |window| Some(windows.span_after(*window)));
                for window in all.take(60) {
                    for block in blocks.spans_meeting(window) {
                        let before = met.entry(block).or_default();
                        assert_eq!(
                            window_number(windows, block, first.start, window),
                            *before,
                            "{length} {per} {block:?}"
                        );
                        *before += 1;
                    }
                }
            }
        }
    }

    fn policy(which: bool, share: Price, count: u64) -> PricePolicy {
        match which {
            true => PricePolicy::Horizon {
                share,
                windows: some(count),
            },
            false => PricePolicy::Decaying {
                share,
                half_after: some(count),
            },
        }
    }

    fn always(_: Price) -> bool {
        true
    }

    /// Sizes of every magnitude.
    fn sizes() -> impl Strategy<Value = u64> {
        (0_u32..=63).prop_flat_map(|bits| 1..=u64::MAX >> bits)
    }

    proptest! {
        #[test]
        fn windows_never_cost_more_than_their_share_and_never_nothing(
            kind in 0_usize..4, which: bool, share in [sizes(), sizes()], count in sizes(), start in sizes(), windows in 1_u64..300,
        ) {
            let (share, mut last) = (price(kind, share), None);
            let policy = policy(which, share, count);
            let mut sum = share.zero_of_kind();
            for paid in (0..windows).map_while(|n| policy.window_price(n)) {
                sum = sum.checked_add(paid).unwrap();
                prop_assert!(!paid.is_zero() && last.is_none_or(|last| paid.is_within(last)));
                prop_assert!(paid.smallest_units().iter().zip(share.smallest_units()).all(|(paid, share)| *paid > 0 || share == 0));
                last = Some(paid);
            }
            prop_assert!(sum.is_within(share), "{} {}", sum, share);
            // However late, it is no more than at the start.
            let late = policy.window_price(start).unwrap_or(share.zero_of_kind());
            prop_assert!(late.is_within(policy.window_price(0).unwrap_or(late)));
        }

        /// In closed form: `N / (N + m)` of the share, less at most one unit a window.
        #[test]
        fn a_decaying_series_spends_what_its_formula_says(share in 1_u64..1 << 40, m in 1_u64..500, windows in 1_u64..2000) {
            let policy = policy(false, price(0, [share, 0]), m);
            let sum: u64 = (0..windows).map(|n| policy.window_price(n).map_or(0, |price| price.smallest_units()[0])).sum();
            let formula = u128::from(share) * u128::from(windows) / u128::from(windows + m);
            prop_assert!(u128::from(sum) <= formula && formula <= u128::from(sum + windows), "{} {}", sum, formula);
        }

        #[test]
        fn it_lasts_until_the_first_window_that_is_not_paid(
            kind in 0_usize..4, which: bool, share in [sizes(), sizes()], count in sizes(), least in sizes(), windows in sizes(),
        ) {
            let (share, least) = (price(kind, share), price(kind, [least, least]));
            let policy = policy(which, share, count);
            let is_enough = |price: Price| least.smallest_units()[0] <= price.smallest_units()[0];
            let is_paid = |n| policy.window_price(n).is_some_and(is_enough);
            let lasts = policy.paid_windows(share, None, is_enough).unwrap();
            prop_assert!(!is_paid(lasts) && (lasts == 0 || is_paid(lasts - 1)), "{}", lasts);
            prop_assert_eq!(policy.paid_windows(share, Some(windows), is_enough), (lasts < windows).then_some(lasts));
        }

        #[test]
        fn a_fixed_price_lasts_as_long_as_the_total(kind in 0_usize..4, one in [1_u64..50, 1_u64..50], total in [0_u64..900, 0_u64..900]) {
            let (one, total) = (price(kind, one), price(kind, total));
            let lasts = PricePolicy::Fixed(one).paid_windows(total, None, always).unwrap();
            let sum = |count| (0..count).try_fold(total.zero_of_kind(), |sum, _| sum.checked_add(one)).unwrap();
            prop_assert!(sum(lasts).is_within(total) && !sum(lasts + 1).is_within(total), "{} {} {}", one, total, lasts);
        }

        #[test]
        fn shares_together_are_no_more_than_there_is(
            kind in 0_usize..4, all in [sizes(), sizes()], windows in 1_u64..100,
            asked in prop::collection::vec((0_usize..3, sizes(), 0_u32..=1_000_000), 1..5),
        ) {
            let all = price(kind, all);
            let asked = asked.into_iter().map(|(which, size, part)| match which {
                0 => PolicyInput::Fixed(price(kind, [size, size / 2])),
                1 => PolicyInput::Part(Fraction::from_millionths(part).unwrap()),
                _ => PolicyInput::Rest,
            });
            if let Ok(shares) = divide_budget(all, Some(windows), &asked.collect::<Vec<_>>()) {
                let sum = shares.iter().try_fold(all.zero_of_kind(), |sum, share| sum.checked_add(*share));
                prop_assert!(sum.unwrap().is_within(all));
            }
        }
    }

    #[test]
    fn a_year_of_hours_is_divided_evenly_and_over_when_it_is_over() {
        let policy = PricePolicy::Horizon {
            share: pure("1"),
            windows: some(8760),
        };
        assert_eq!(
            (policy.window_price(0), policy.window_price(8759)),
            (Some(pure("0.000114155251")), Some(pure("0.000114155251")))
        );
        assert_eq!(
            (policy.window_price(8760), policy.window_price(u64::MAX)),
            (None, None)
        );
        assert_eq!(policy.paid_windows(pure("1"), None, always), Some(8760));
        // Of a day it is but a part.
        assert_eq!(policy.paid_windows(pure("1"), Some(24), always), None);
    }

    #[test]
    fn a_decaying_series_spends_half_of_its_share_in_time_and_goes_on_for_centuries() {
        let policy = PricePolicy::Decaying {
            share: pure("1"),
            half_after: some(168),
        };
        let spent = |windows| {
            (0..windows)
                .map(|n| policy.window_price(n).unwrap().smallest_units()[0])
                .sum::<u64>()
        };
        assert_eq!(
            [
                spent(168) / 1_000_000_000,
                spent(504) / 1_000_000_000,
                spent(100_000) / 1_000_000_000
            ],
            [499, 749, 998]
        );
        let years = policy.paid_windows(pure("1"), None, always).unwrap() / 8766;
        assert_eq!(years, 1478);
        // Noise that needs 0.0001 a window ends long before the rounding does.
        assert_eq!(
            policy.paid_windows(pure("1"), None, |price| pure("0.0001").is_within(price)),
            Some(1128)
        );
    }

    #[test]
    fn what_rounds_to_nothing_in_one_part_pays_for_nothing() {
        let share = price(1, [1_000_000, 10]);
        assert_eq!(
            policy(true, share, 10).window_price(0),
            Some(price(1, [100_000, 1]))
        );
        assert_eq!(policy(true, share, 11).window_price(0), None);
        assert_eq!(
            policy(true, share, 11).paid_windows(share, None, always),
            Some(0)
        );
        // A part that the share does not have is not missed.
        assert_eq!(
            policy(true, price(1, [11, 0]), 11).window_price(0),
            Some(price(1, [1, 0]))
        );
        assert_eq!(
            policy(false, share.zero_of_kind(), 11).window_price(0),
            None
        );
    }

    #[test]
    fn windows_of_a_day_that_a_fixed_price_pays_for() {
        let fixed = |text| PricePolicy::Fixed(pure(text)).paid_windows(pure("1"), Some(24), always);
        assert_eq!(
            (fixed("0.04"), fixed("0.05"), fixed("1.1")),
            (None, Some(20), Some(0))
        );
        assert_eq!(
            PricePolicy::Fixed(Price::SLOT).paid_windows(Price::Slots(24), Some(24), always),
            None
        );
        assert_eq!(
            PricePolicy::Fixed(Price::SLOT).paid_windows(pure("1"), Some(24), always),
            Some(0)
        );
        assert_eq!(
            PricePolicy::Fixed(pure("0.01")).paid_windows(pure("1"), None, |_| false),
            Some(0)
        );
    }

    #[test]
    fn a_reserve_is_never_less_than_it_says() {
        let tenth = Fraction::from_millionths(100_000).unwrap();
        assert_eq!(without_reserve(pure("1"), tenth), pure("0.9"));
        assert_eq!(without_reserve(Price::Slots(24), tenth), Price::Slots(21));
        assert_eq!(without_reserve(pure("1"), Fraction::ZERO), pure("1"));
        assert_eq!(Fraction::from_millionths(1_000_001), None);
    }

    #[test]
    fn releases_divide_what_is_not_fixed() {
        let half = PolicyInput::Part(Fraction::from_millionths(500_000).unwrap());
        let fixed = |text| PolicyInput::Fixed(pure(text));
        let divide = |windows, asked: &[PolicyInput]| divide_budget(pure("1"), windows, asked);
        assert_eq!(divide(Some(24), &[PolicyInput::Rest]), Ok(vec![pure("1")]));
        assert_eq!(
            divide(
                Some(24),
                &[fixed("0.01"), half, PolicyInput::Rest, PolicyInput::Rest]
            ),
            Ok(["0.24", "0.5", "0.13", "0.13"].map(pure).to_vec())
        );
        assert_eq!(divide(None, &[half, half]), Ok(vec![pure("0.5"); 2]));
        assert_eq!(
            divide(None, &[half, half, PolicyInput::Rest]),
            Err(DivisionError::Nothing)
        );
        assert_eq!(
            divide(Some(24), &[half, half, fixed("0.01")]),
            Err(DivisionError::TooMuch)
        );
        assert_eq!(
            divide(Some(24), &[fixed("0.05")]),
            Err(DivisionError::TooMuch)
        );
        assert_eq!(
            divide(None, &[fixed("0.05"), PolicyInput::Rest]),
            Err(DivisionError::Endless)
        );
        assert_eq!(
            divide(Some(24), &[PolicyInput::Fixed(Price::SLOT)]),
            Err(DivisionError::TooMuch)
        );
    }
}
