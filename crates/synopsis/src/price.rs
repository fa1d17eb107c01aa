//! Prices and budgets, in one of four kinds that are never mixed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::calibrate::{Delta, Epsilon, Rho};

/// A price or a total.
///
/// One ledger knows one kind, that of its total: [`Price::zero_of_kind`] and [`Price::of_pure`] of the total make its other prices,
/// and what would mix two kinds is `None` or `false`, never a number. The first three kinds also say what noise may take; slots
/// are charged and pay for no noise by themselves.
///
/// Written as `"0.5"`, `{"epsilon": "0.5", "delta": "0.000000001"}`, `{"rho": "0.01"}` or `{"slots": 24}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "WrittenPrice", from = "WrittenPrice")]
pub enum Price {
    /// Pure differential privacy: a probability changes by at most a factor of `exp(epsilon)` `[DMNS06]`.
    Pure(Epsilon),
    /// (epsilon, delta)-differential privacy: by at most that factor, plus `delta` `[DKMMN06]`.
    Approximate { epsilon: Epsilon, delta: Delta },
    /// Zero-concentrated differential privacy: the Renyi divergence of every order `a > 1` is at most `a rho` `[BS16]`.
    Concentrated(Rho),
    /// Windows of a plan that was declared beforehand, with all that one of them takes: the guarantee is that of the whole
    /// plan, worked out once (`[ZDW22]`), in whatever order its windows are used and however many are left.
    Slots(u64),
}

/// The form of a [`Price`] in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum WrittenPrice {
    Pure(Epsilon),
    Approximate { epsilon: Epsilon, delta: Delta },
    Concentrated { rho: Rho },
    Slots { slots: u64 },
}

impl Price {
    /// One window of a declared plan.
    pub const SLOT: Price = Price::Slots(1);

    /// Nothing, in the kind of this.
    #[must_use]
    pub fn zero_of_kind(self) -> Price {
        self.map_parts(|_| 0)
    }

    /// Price of a mechanism of pure differential privacy, in the kind of this. `None` for slots: it is part of the plan, or
    /// cannot be paid for.
    ///
    /// Under `rho`: `epsilon tanh(epsilon / 2)`, rounded up. Every such mechanism is a function of randomised response with
    /// that epsilon `[KOV15]`, whose Renyi divergence of order `a` is at most `a` times that (tight as `a` falls to 1): it holds
    /// for noise of every shape, integers and the error of the sampler included.
    pub fn of_pure(self, epsilon: Epsilon) -> Option<Price> {
        match self {
            Price::Pure(_) => Some(Price::Pure(epsilon)),
            Price::Approximate { .. } => Some(Price::Approximate {
                epsilon,
                delta: Delta::ZERO,
            }),
            Price::Concentrated(_) => Some(Price::Concentrated(rho_of_epsilon(epsilon))),
            Price::Slots(_) => None,
        }
    }

    /// The largest epsilon of a mechanism of pure differential privacy that this pays for; slots alone pay for none.
    pub fn largest_pure_epsilon(self) -> Epsilon {
        match self {
            Price::Pure(epsilon) | Price::Approximate { epsilon, .. } => epsilon,
            Price::Concentrated(rho) => {
                largest_paid_epsilon(Epsilon::ZERO, |epsilon| rho_of_epsilon(epsilon) <= rho)
            }
            Price::Slots(_) => Epsilon::ZERO,
        }
    }

    /// This and a mechanism of pure differential privacy; what would be too large is the largest that there is. Slots stay what
    /// they are: what goes with the noise of a window is declared with the plan.
    #[must_use]
    pub fn with_pure(self, epsilon: Epsilon) -> Price {
        match self {
            Price::Pure(own) => Price::Pure(own.saturating_add(epsilon)),
            Price::Approximate {
                epsilon: own,
                delta,
            } => Price::Approximate {
                epsilon: own.saturating_add(epsilon),
                delta,
            },
            Price::Concentrated(own) => {
                Price::Concentrated(own.saturating_add(rho_of_epsilon(epsilon)))
            }
            Price::Slots(count) => Price::Slots(count),
        }
    }

    /// Price of the same kind, each part, in its smallest unit, as `f` says.
    #[must_use]
    pub fn map_parts(self, f: impl Fn(u64) -> u64) -> Price {
        match self {
            Price::Pure(epsilon) => {
                Price::Pure(Epsilon::from_trillionths(f(epsilon.trillionths())))
            }
            Price::Approximate { epsilon, delta } => Price::Approximate {
                epsilon: Epsilon::from_trillionths(f(epsilon.trillionths())),
                delta: Delta::from_quintillionths(f(delta.quintillionths())),
            },
            Price::Concentrated(rho) => {
                Price::Concentrated(Rho::from_trillionths(f(rho.trillionths())))
            }
            Price::Slots(count) => Price::Slots(f(count)),
        }
    }

    /// Each part in its smallest unit; of a kind with one part the second is 0.
    pub fn smallest_units(self) -> [u64; 2] {
        match self {
            Price::Pure(epsilon) => [epsilon.trillionths(), 0],
            Price::Approximate { epsilon, delta } => {
                [epsilon.trillionths(), delta.quintillionths()]
            }
            Price::Concentrated(rho) => [rho.trillionths(), 0],
            Price::Slots(count) => [count, 0],
        }
    }

    /// The sum of each part: basic composition. `None` where it is too large for a price, or the kinds differ.
    pub fn checked_add(self, other: Price) -> Option<Price> {
        if !self.is_same_kind(other) {
            return None;
        }
        let [first, second] = self.smallest_units();
        let [other_first, other_second] = other.smallest_units();
        Some(self.with_parts([
            first.checked_add(other_first)?,
            second.checked_add(other_second)?,
        ]))
    }

    /// `None` where a part of `other` is larger, or the kinds differ.
    pub fn checked_sub(self, other: Price) -> Option<Price> {
        if !self.is_same_kind(other) {
            return None;
        }
        let [first, second] = self.smallest_units();
        let [other_first, other_second] = other.smallest_units();
        Some(self.with_parts([
            first.checked_sub(other_first)?,
            second.checked_sub(other_second)?,
        ]))
    }

    /// Tests that no part is more than that of `total`. `false` where the kinds differ.
    pub fn is_within(self, total: Price) -> bool {
        let [first, second] = self.smallest_units();
        let [most_first, most_second] = total.smallest_units();
        self.is_same_kind(total) && first <= most_first && second <= most_second
    }

    fn is_same_kind(self, other: Price) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// Price of this kind with these parts, as of [`Price::smallest_units`].
    fn with_parts(self, [first, second]: [u64; 2]) -> Price {
        match self {
            Price::Pure(_) => Price::Pure(Epsilon::from_trillionths(first)),
            Price::Approximate { .. } => Price::Approximate {
                epsilon: Epsilon::from_trillionths(first),
                delta: Delta::from_quintillionths(second),
            },
            Price::Concentrated(_) => Price::Concentrated(Rho::from_trillionths(first)),
            Price::Slots(_) => Price::Slots(first),
        }
    }

    pub fn is_zero(self) -> bool {
        self == self.zero_of_kind()
    }

    /// Part of `total` that this is, the larger one where there are two. A figure to show.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub fn share_of(self, total: Price) -> f64 {
        match (self, total) {
            (Price::Pure(price), Price::Pure(total)) => price.to_f64() / total.to_f64(),
            (
                Price::Approximate { epsilon, delta },
                Price::Approximate {
                    epsilon: most,
                    delta: largest,
                },
            ) => (epsilon.to_f64() / most.to_f64()).max(delta.to_f64() / largest.to_f64()),
            (Price::Concentrated(price), Price::Concentrated(total)) => {
                price.to_f64() / total.to_f64()
            }
            (Price::Slots(price), Price::Slots(total)) => price as f64 / total as f64,
            _ => f64::NAN,
        }
    }
}

/// The largest epsilon that is paid for, at least `paid`; what is dearer than one that is not paid for is not paid for either.
pub fn largest_paid_epsilon(paid: Epsilon, is_paid: impl Fn(Epsilon) -> bool) -> Epsilon {
    let mut paid = paid.trillionths();
    let mut unpaid = u64::MAX;
    while unpaid - paid > 1 {
        let middle = paid.midpoint(unpaid);
        if is_paid(Epsilon::from_trillionths(middle)) {
            paid = middle;
        } else {
            unpaid = middle;
        }
    }
    Epsilon::from_trillionths(paid)
}

/// A bound on `epsilon tanh(epsilon / 2)`, less than two units of 10^-12 above it up to an epsilon of 10.
///
/// `tanh(epsilon / 2) = (1 - y) / (1 + y)` falls with `y = exp(-epsilon)`, so `y` is rounded down and the rest up. Whole
/// numbers alone: what it says enters the ledger, and must be the same on every machine.
fn rho_of_epsilon(epsilon: Epsilon) -> Rho {
    let count = u128::from(epsilon.trillionths());
    let y = exp_of_minus(epsilon);
    // At most 2^64 * 2^62, and the quotient at most `count`.
    let rho = (count * (ONE - y)).div_ceil(ONE + y);
    Rho::from_trillionths(u64::try_from(rho).unwrap_or(u64::MAX))
}

/// Fixed point.
const ONE: u128 = 1 << 62;

/// At most `exp(-epsilon)`, in units of `1 / ONE`.
///
/// `1 - x + x^2 / 2 - x^3 / 6` is at most `exp(-x)` (Taylor, the next term being positive). With `x = epsilon / 2^16` rounded
/// up, and every other term and square rounded down, squaring sixteen times gives at most `exp(-epsilon)`.
fn exp_of_minus(epsilon: Epsilon) -> u128 {
    const HALVINGS: u32 = 16;
    const TRILLION: u128 = 1_000_000_000_000;
    let x = (u128::from(epsilon.trillionths()) * (ONE >> HALVINGS)).div_ceil(TRILLION);
    if x >= ONE {
        return 0;
    }
    let cube = (x * x).div_ceil(ONE) * x;
    let root = ONE - x + x * x / (2 * ONE) - cube.div_ceil(6 * ONE);
    (0..HALVINGS).fold(root, |y, _| y * y / ONE)
}

impl From<Epsilon> for Price {
    fn from(epsilon: Epsilon) -> Self {
        Price::Pure(epsilon)
    }
}

impl From<Price> for WrittenPrice {
    fn from(price: Price) -> Self {
        match price {
            Price::Pure(epsilon) => WrittenPrice::Pure(epsilon),
            Price::Approximate { epsilon, delta } => WrittenPrice::Approximate { epsilon, delta },
            Price::Concentrated(rho) => WrittenPrice::Concentrated { rho },
            Price::Slots(slots) => WrittenPrice::Slots { slots },
        }
    }
}

impl From<WrittenPrice> for Price {
    fn from(written: WrittenPrice) -> Self {
        match written {
            WrittenPrice::Pure(epsilon) => Price::Pure(epsilon),
            WrittenPrice::Approximate { epsilon, delta } => Price::Approximate { epsilon, delta },
            WrittenPrice::Concentrated { rho } => Price::Concentrated(rho),
            WrittenPrice::Slots { slots } => Price::Slots(slots),
        }
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Price::Pure(epsilon) => write!(f, "{epsilon}"),
            Price::Approximate { epsilon, delta } => {
                write!(f, "(epsilon {epsilon}, delta {delta})")
            }
            Price::Concentrated(rho) => write!(f, "rho {rho}"),
            Price::Slots(1) => f.write_str("1 window of the plan"),
            Price::Slots(count) => write!(f, "{count} windows of the plan"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pure(text: &str) -> Price {
        Price::Pure(text.parse().unwrap())
    }

    fn approximate(epsilon: &str, delta: &str) -> Price {
        Price::Approximate {
            epsilon: epsilon.parse().unwrap(),
            delta: delta.parse().unwrap(),
        }
    }

    fn rho(text: &str) -> Price {
        Price::Concentrated(text.parse().unwrap())
    }

    #[test]
    fn a_pure_price_is_written_as_ever_and_the_others_as_objects() {
        for (price, text) in [
            (pure("0.5"), r#""0.5""#),
            (
                approximate("0.5", "0.000000001"),
                r#"{"epsilon":"0.5","delta":"0.000000001"}"#,
            ),
            (approximate("0.5", "0"), r#"{"epsilon":"0.5","delta":"0"}"#),
            (rho("0.01"), r#"{"rho":"0.01"}"#),
            (Price::Slots(24), r#"{"slots":24}"#),
        ] {
            assert_eq!(serde_json::to_string(&price).unwrap(), text);
            assert_eq!(serde_json::from_str::<Price>(text).unwrap(), price);
        }
        for wrong in [
            "0.5",
            r#"{"epsilon":"0.5"}"#,
            r#"{"delta":"0.5"}"#,
            r#"{"epsilon":"1","rho":"1"}"#,
            r#"{"epsilon":"1","delta":"0","rho":"1"}"#,
            r#"{"rho":"-1"}"#,
            r#"{"rho":"1","gamma":"1"}"#,
            r#"{"slots":"1"}"#,
            r#"{"slots":-1}"#,
            r#"{"slots":1,"rho":"1"}"#,
            "null",
        ] {
            assert!(serde_json::from_str::<Price>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_kinds_are_never_added_nor_compared() {
        let kinds = [pure("1"), approximate("1", "0.5"), rho("1"), Price::SLOT];
        for (i, a) in kinds.into_iter().enumerate() {
            for (j, b) in kinds.into_iter().enumerate() {
                assert_eq!(a.checked_add(b).is_some(), i == j, "{a} {b}");
                assert_eq!(a.checked_sub(b).is_some(), i == j, "{a} {b}");
                assert_eq!(a.is_within(b), i == j, "{a} {b}");
                assert_eq!(a.share_of(b).is_nan(), i != j, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_total_holds_in_both_of_its_parts() {
        let total = approximate("1", "0.000001");
        for (price, is_within) in [
            (approximate("1", "0.000001"), true),
            (approximate("1.000000000001", "0"), false),
            (approximate("0", "0.000001000000000001"), false),
        ] {
            assert_eq!(
                (price.is_within(total), total.checked_sub(price).is_some()),
                (is_within, is_within),
                "{price}"
            );
        }
        assert_eq!(approximate("0.5", "0.00000075").share_of(total), 0.75);
        assert!(approximate("0", "0").is_zero() && !approximate("0", "0.1").is_zero());
        let most = Price::Approximate {
            epsilon: Epsilon::ZERO,
            delta: Delta::from_quintillionths(u64::MAX),
        };
        assert_eq!(
            most.checked_add(approximate("1", "0.000000000000000001")),
            None
        );
    }

    #[test]
    fn windows_of_a_plan_add_up_and_pay_for_no_noise() {
        let used = Price::Slots(23);
        let total = Price::Slots(24);
        assert_eq!(
            [Price::SLOT, total].map(|price| price.to_string()),
            ["1 window of the plan", "24 windows of the plan"]
        );
        assert_eq!(used.checked_add(Price::SLOT), Some(total));
        assert!(
            total.is_within(total)
                && !Price::Slots(25).is_within(total)
                && Price::Slots(0).is_zero()
        );
        assert_eq!(
            (total.checked_sub(used), used.checked_sub(total)),
            (Some(Price::SLOT), None)
        );
        assert_eq!(Price::Slots(u64::MAX).checked_add(Price::SLOT), None);
        assert_eq!(
            (Price::Slots(6).share_of(total), total.zero_of_kind()),
            (0.25, Price::Slots(0))
        );
        // What a mechanism may take is not a matter of slots.
        let epsilon = "0.5".parse().unwrap();
        assert_eq!(
            (
                total.largest_pure_epsilon(),
                total.of_pure(epsilon),
                total.with_pure(epsilon)
            ),
            (Epsilon::ZERO, None, total)
        );
    }

    #[test]
    fn parts_are_counted_in_their_smallest_units_and_stay_of_their_kind() {
        let trillion = 1_000_000_000_000;
        let tenth = 100_000_000_000_000_000;
        for (price, parts) in [
            (pure("1"), [trillion, 0]),
            (approximate("1", "0.1"), [trillion, tenth]),
            (rho("1"), [trillion, 0]),
            (Price::Slots(3), [3, 0]),
        ] {
            assert_eq!(price.smallest_units(), parts, "{price}");
            assert_eq!(
                Some(price.map_parts(|count| 2 * count)),
                price.checked_add(price)
            );
        }
    }

    /// Randomised response with `epsilon`, the worst mechanism of pure differential privacy: its Renyi divergence over the order.
    fn divergence(epsilon: f64, order: f64) -> f64 {
        let yes = 1.0 / (1.0 + (-epsilon).exp());
        let no = 1.0 / (1.0 + epsilon.exp());
        let moment = yes * (yes / no).powf(order - 1.0) + no * (no / yes).powf(order - 1.0);
        moment.ln() / (order - 1.0) / order
    }

    #[test]
    fn under_rho_a_pure_mechanism_costs_what_the_worst_one_loses_and_no_less() {
        for epsilon in [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0] {
            let price = rho("1").of_pure(epsilon.to_string().parse().unwrap());
            let Some(Price::Concentrated(cost)) = price else {
                panic!("{price:?}")
            };
            let worst = (1..250)
                .map(|i| divergence(epsilon, 1.0 + 1e-3 * 1.04_f64.powi(i)))
                .fold(0.0, f64::max);
            assert!(
                worst <= cost.to_f64() * (1.0 + 1e-7),
                "{epsilon}: {worst} {cost}"
            );
            // Tight: a rho that is 1 % too small is found out.
            assert!(worst > 0.99 * cost.to_f64(), "{epsilon}: {worst} {cost}");
        }
    }

    #[test]
    fn what_a_rho_pays_for_costs_no_more_and_nearly_all_of_it() {
        for text in [
            "0.000000000001",
            "0.000000000005",
            "0.005",
            "0.462117157261",
            "7",
            "1000",
        ] {
            let Price::Concentrated(paid) = rho(text) else {
                panic!()
            };
            let epsilon = rho(text).largest_pure_epsilon();
            assert!(rho_of_epsilon(epsilon) <= paid, "{text}");
            assert!(
                rho_of_epsilon(Epsilon::from_trillionths(epsilon.trillionths() + 1)) > paid,
                "{text}"
            );
        }
        assert_eq!(
            pure("0.3").largest_pure_epsilon(),
            approximate("0.3", "0.1").largest_pure_epsilon()
        );
        assert_eq!(rho("0").largest_pure_epsilon(), Epsilon::ZERO);
    }

    proptest! {
        #[test]
        fn the_cost_under_rho_is_never_below_the_formula_and_hardly_above(trillionths in (0_u32..44).prop_flat_map(|b| 0..=1_u64 << b)) {
            let epsilon = trillionths as f64 / 1e12;
            // In floating point with a small relative error; for small arguments the subtraction would lose digits.
            let exact = 1e12 * epsilon * (epsilon / 2.0).tanh();
            let cost = rho_of_epsilon(Epsilon::from_trillionths(trillionths)).trillionths() as f64;
            prop_assert!(cost >= exact * (1.0 - 1e-14), "{} {}", cost, exact);
            prop_assert!(cost <= exact * (1.0 + 1e-13) + 2.0, "{} {}", cost, exact);
        }

        #[test]
        fn sums_are_exact_in_both_parts(a in any::<(u32, u32)>(), b in any::<(u32, u32)>()) {
            let price = |(epsilon, delta): (u32, u32)| Price::Approximate {
                epsilon: Epsilon::from_trillionths(epsilon.into()),
                delta: Delta::from_quintillionths(delta.into()),
            };
            let sum = price(a).checked_add(price(b)).unwrap();
            let expected = (u64::from(a.0) + u64::from(b.0), u64::from(a.1) + u64::from(b.1));
            let Price::Approximate { epsilon, delta } = sum else { panic!() };
            prop_assert_eq!((epsilon.trillionths(), delta.quintillionths()), expected);
            prop_assert_eq!(sum.checked_sub(price(b)), Some(price(a)));
        }
    }
}
