//! Intervals, and intervals with their derivatives: what an expression can be over a whole box of records.
//!
//! Ends are rounded outward: sums, products, quotients and roots are correctly rounded in floating point, so the next
//! float holds the exact end. The system's `exp`, `ln`, `sin`, `cos` and `tanh` are within 2 units in the last place (as the
//! C libraries document them); they are given 8. A power of a whole exponent is given 4 a multiplication.

use std::f64::consts::{FRAC_PI_2, TAU};

use super::error::Unbounded;
use super::parse::{Binary, Number, Unary};

/// The numbers from `lo` to `hi`; with a fault nothing is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub lo: f64,
    pub hi: f64,
    pub fault: Option<Unbounded>,
}

impl Interval {
    pub const ZERO: Interval = Interval {
        lo: 0.0,
        hi: 0.0,
        fault: None,
    };
    const UNIT: Interval = Interval {
        lo: -1.0,
        hi: 1.0,
        fault: None,
    };

    pub fn new(lo: f64, hi: f64) -> Self {
        Interval {
            lo,
            hi,
            fault: (!(lo.is_finite() && hi.is_finite())).then_some(Unbounded::TooLarge),
        }
    }

    pub fn point(value: f64) -> Self {
        Interval::new(value, value)
    }

    /// Ends that are off by less than `ulps` units in the last place.
    fn around(lo: f64, hi: f64, ulps: u32) -> Self {
        let part = f64::from(ulps) * f64::EPSILON;
        Interval::new(
            (lo - lo.abs() * part).next_down(),
            (hi + hi.abs() * part).next_up(),
        )
    }

    fn faulty(fault: Unbounded) -> Self {
        Interval {
            lo: f64::NEG_INFINITY,
            hi: f64::INFINITY,
            fault: Some(fault),
        }
    }

    /// Bounds the ends, and keeps the fault of what it came from; rounding does not carry it over a bound that holds.
    fn bounded_within(self, lo: f64, hi: f64, from: [&Interval; 2]) -> Self {
        match from[0].fault.or(from[1].fault) {
            Some(fault) => Interval::faulty(fault),
            None => Interval {
                lo: self.lo.max(lo),
                hi: self.hi.min(hi),
                ..self
            },
        }
    }

    pub fn magnitude(&self) -> f64 {
        self.lo.abs().max(self.hi.abs())
    }

    pub fn middle(&self) -> f64 {
        (self.lo + (self.hi - self.lo) / 2.0).clamp(self.lo, self.hi)
    }

    pub fn width(&self) -> f64 {
        self.hi - self.lo
    }

    /// The middle, and everything as seen from there.
    pub fn split_at_middle(self) -> (Self, Self) {
        let middle = Interval::point(self.middle());
        (middle, self.plus(middle.minus()))
    }

    pub fn plus(self, other: Self) -> Self {
        // A sum that is zero is exact.
        let mut lo = self.lo + other.lo;
        if lo != 0.0 {
            lo = lo.next_down();
        }
        let mut hi = self.hi + other.hi;
        if hi != 0.0 {
            hi = hi.next_up();
        }
        Interval::new(lo, hi).bounded_within(f64::NEG_INFINITY, f64::INFINITY, [&self, &other])
    }

    pub fn minus(self) -> Self {
        Interval {
            lo: -self.hi,
            hi: -self.lo,
            ..self
        }
    }

    pub fn times(self, other: Self) -> Self {
        let mut lo = f64::INFINITY;
        let mut hi = f64::NEG_INFINITY;
        for a in [self.lo, self.hi] {
            for b in [other.lo, other.hi] {
                let product = a * b;
                let is_exact = a == 0.0 || b == 0.0;
                lo = lo.min(if is_exact {
                    product
                } else {
                    product.next_down()
                });
                hi = hi.max(if is_exact { product } else { product.next_up() });
            }
        }
        // Two of one sign have no negative product, though rounding might say so.
        let floor = if self.lo >= 0.0 && other.lo >= 0.0 {
            0.0
        } else {
            f64::NEG_INFINITY
        };
        Interval::new(lo, hi).bounded_within(floor, f64::INFINITY, [&self, &other])
    }

    /// `1 / self`.
    fn inverse(self) -> Self {
        if self.fault.is_none() && self.lo <= 0.0 && self.hi >= 0.0 {
            return Interval::faulty(Unbounded::Division);
        }
        let inverse = Interval::around(1.0 / self.hi, 1.0 / self.lo, 1);
        if self.lo > 0.0 {
            inverse.bounded_within(0.0, f64::INFINITY, [&self, &self])
        } else {
            inverse.bounded_within(f64::NEG_INFINITY, 0.0, [&self, &self])
        }
    }

    fn exp(self) -> Self {
        Interval::around(self.lo.exp(), self.hi.exp(), 8).bounded_within(
            0.0,
            f64::INFINITY,
            [&self, &self],
        )
    }

    fn ln(self) -> Self {
        if self.fault.is_none() && self.lo <= 0.0 {
            return Interval::faulty(Unbounded::Logarithm);
        }
        Interval::around(self.lo.ln(), self.hi.ln(), 8).bounded_within(
            f64::NEG_INFINITY,
            f64::INFINITY,
            [&self, &self],
        )
    }

    fn sqrt(self) -> Self {
        if self.fault.is_none() && self.lo < 0.0 {
            return Interval::faulty(Unbounded::Root);
        }
        Interval::around(self.lo.sqrt(), self.hi.sqrt(), 1).bounded_within(
            0.0,
            f64::INFINITY,
            [&self, &self],
        )
    }

    fn tanh(self) -> Self {
        Interval::around(self.lo.tanh(), self.hi.tanh(), 8).bounded_within(
            -1.0,
            1.0,
            [&self, &self],
        )
    }

    pub fn abs(self) -> Self {
        let lo = self.lo;
        let hi = self.hi;
        let least = if lo <= 0.0 && hi >= 0.0 {
            0.0
        } else {
            lo.abs().min(hi.abs())
        };
        Interval {
            lo: least,
            hi: self.magnitude(),
            ..self
        }
    }

    /// The sine of `self + shift`, `shift` a quarter turn (the cosine) or nothing.
    fn wave(self, function: fn(f64) -> f64, shift: f64) -> Self {
        // In doubt there is a crest or a trough. Beyond 1e6 the doubt is too large.
        if self.fault.is_none() && self.magnitude() > 1e6 {
            return Interval::UNIT;
        }
        let one = function(self.lo);
        let other = function(self.hi);
        let lo = if self.may_hold_turn(shift, -FRAC_PI_2) {
            -1.0
        } else {
            one.min(other)
        };
        let hi = if self.may_hold_turn(shift, FRAC_PI_2) {
            1.0
        } else {
            one.max(other)
        };
        Interval::around(lo, hi, 8).bounded_within(-1.0, 1.0, [&self, &self])
    }

    /// Tells that `angle`, or one that is whole turns away, may lie in `self + shift`.
    fn may_hold_turn(self, shift: f64, angle: f64) -> bool {
        let first = (self.lo + shift - angle) / TAU;
        let last = (self.hi + shift - angle) / TAU;
        (last + 1e-9).floor() >= (first - 1e-9).ceil()
    }

    fn sin(self) -> Self {
        self.wave(f64::sin, 0.0)
    }

    fn cos(self) -> Self {
        self.wave(f64::cos, FRAC_PI_2)
    }

    fn whole_power(self, exponent: i32) -> Self {
        if exponent < 0 {
            return self.whole_power(-exponent).inverse();
        }
        let ulps = 4 * exponent.unsigned_abs();
        let is_even = exponent % 2 == 0;
        let base = if is_even { self.abs() } else { self };
        let floor = if is_even || base.lo >= 0.0 {
            0.0
        } else {
            f64::NEG_INFINITY
        };
        let ends = match exponent {
            0 => Interval::point(1.0),
            1 => base,
            _ => Interval::around(base.lo.powi(exponent), base.hi.powi(exponent), ulps),
        };
        ends.bounded_within(floor, f64::INFINITY, [&self, &self])
    }

    /// `self^exponent = exp(exponent ln self)`; where the exponent is positive, the base may be 0.
    fn real_power(self, exponent: Self) -> Self {
        let is_known = self.fault.or(exponent.fault).is_none();
        if is_known && self.lo == 0.0 && exponent.lo > 0.0 {
            // Below 1 a power is at most 1, and it grows with its base.
            let top = if self.hi == 0.0 {
                self
            } else {
                Interval {
                    lo: self.hi,
                    ..self
                }
                .real_power(exponent)
            };
            return Interval {
                lo: 0.0,
                hi: if self.hi > 1.0 {
                    top.hi.max(1.0)
                } else {
                    top.hi
                },
                ..top
            };
        }
        if is_known && self.lo <= 0.0 {
            return Interval::faulty(Unbounded::Power);
        }
        exponent.times(self.ln()).exp()
    }

    fn larger(self, other: Self) -> Self {
        let lo = self.lo.max(other.lo);
        let hi = self.hi.max(other.hi);
        Interval::new(lo, hi).bounded_within(f64::NEG_INFINITY, f64::INFINITY, [&self, &other])
    }
}

/// The most variables of a record: three axes and a label.
pub const SIDES: usize = 4;

/// An interval, and the intervals of its derivatives after the record's variables.
///
/// Where a function has a kink, the derivative's interval holds the slopes of both sides, which is what the mean value
/// theorem needs for functions that are Lipschitz (`[Leb75]`). A derivative may be unknown where the value is not.
#[derive(Clone, Copy, Debug)]
pub struct Slope {
    pub value: Interval,
    pub slopes: [Interval; SIDES],
}

impl Slope {
    pub fn fixed(value: Interval) -> Self {
        Slope {
            value,
            slopes: [Interval::ZERO; SIDES],
        }
    }

    pub fn variable(value: Interval, side: usize) -> Self {
        let mut slopes = [Interval::ZERO; SIDES];
        if let Some(slope) = slopes.get_mut(side) {
            *slope = Interval::point(1.0);
        }
        Slope { value, slopes }
    }

    /// A function of one variable: its value here, and its derivative.
    fn chain(self, value: Interval, derivative: Interval) -> Self {
        Slope {
            value,
            slopes: self.slopes.map(|slope| scaled(slope, derivative)),
        }
    }

    /// A function of two variables: its value here, and its derivatives after both.
    fn join(self, other: Slope, value: Interval, after: [Interval; 2]) -> Self {
        let mut slopes = self.slopes;
        for (slope, other) in slopes.iter_mut().zip(other.slopes) {
            *slope = scaled(*slope, after[0]).plus(scaled(other, after[1]));
        }
        Slope { value, slopes }
    }
}

/// Scales a slope: what does not depend on a variable has no derivative after it, whatever becomes of the rest.
fn scaled(slope: Interval, factor: Interval) -> Interval {
    if slope == Interval::ZERO {
        slope
    } else {
        slope.times(factor)
    }
}

impl Number for Slope {
    fn constant(value: f64) -> Self {
        Slope::fixed(Interval::point(value))
    }

    fn unary(self, operation: Unary) -> Self {
        let x = self.value;
        let one = Interval::point(1.0);
        match operation {
            Unary::Minus => self.chain(x.minus(), one.minus()),
            Unary::Abs => {
                let sign = if x.lo >= 0.0 {
                    one
                } else if x.hi <= 0.0 {
                    one.minus()
                } else {
                    Interval::UNIT
                };
                self.chain(x.abs(), sign)
            }
            Unary::Cos => self.chain(x.cos(), x.sin().minus()),
            Unary::Exp => self.chain(x.exp(), x.exp()),
            Unary::Ln => self.chain(x.ln(), x.inverse()),
            Unary::Sin => self.chain(x.sin(), x.cos()),
            Unary::Sqrt => self.chain(x.sqrt(), x.sqrt().times(Interval::point(2.0)).inverse()),
            Unary::Tanh => self.chain(x.tanh(), one.plus(x.tanh().whole_power(2).minus())),
        }
    }

    fn binary(self, operation: Binary, other: Self) -> Self {
        let x = self.value;
        let y = other.value;
        let one = Interval::point(1.0);
        match operation {
            Binary::Plus => self.join(other, x.plus(y), [one, one]),
            Binary::Minus => self.join(other, x.plus(y.minus()), [one, one.minus()]),
            Binary::Times => self.join(other, x.times(y), [y, x]),
            Binary::Over => {
                let part = y.inverse();
                self.join(
                    other,
                    x.times(part),
                    [part, x.times(part.whole_power(2)).minus()],
                )
            }
            Binary::Max | Binary::Min => {
                // The minimum is that of the negatives, turned round.
                let is_max = operation == Binary::Max;
                let [a, b] = if is_max {
                    [x, y]
                } else {
                    [x.minus(), y.minus()]
                };
                let largest = a.larger(b);
                let extreme = if is_max { largest } else { largest.minus() };
                let one_wins = a.lo >= b.hi;
                let other_wins = b.lo >= a.hi;
                let shares = if one_wins == other_wins {
                    [Interval::new(0.0, 1.0); 2]
                } else if one_wins {
                    [one, Interval::ZERO]
                } else {
                    [Interval::ZERO, one]
                };
                self.join(other, extreme, shares)
            }
            Binary::Power => {
                let value = x.real_power(y);
                self.join(
                    other,
                    value,
                    [
                        y.times(x.real_power(y.plus(one.minus()))),
                        value.times(x.ln()),
                    ],
                )
            }
        }
    }

    fn power(self, exponent: i32) -> Self {
        let x = self.value;
        let derivative = match exponent {
            0 => Interval::ZERO,
            _ => Interval::point(f64::from(exponent)).times(x.whole_power(exponent - 1)),
        };
        self.chain(x.whole_power(exponent), derivative)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha20Rng;
    use rand::{RngExt, SeedableRng};

    use super::super::parse::ExpressionTree;
    use super::*;

    const TEXTS: [&str; 24] = [
        "x + y",
        "x - y*x",
        "x*y",
        "x/(y^2 + 0.1)",
        "1/(x + 4)",
        "exp(x - y)",
        "ln(x + 3.5)*y",
        "sqrt(abs(x))",
        "sin(5*x)",
        "cos(3*x + y)",
        "tanh(x*4)",
        "abs(x - y)",
        "max(x, y)",
        "min(x, y - 1)",
        "x^2",
        "x^3",
        "x^-3",
        "(x - y)^7",
        "abs(x)^0.3",
        "abs(x)^(2 + y/4)",
        "(x + 5)^y",
        "exp(-(x - y)^2/2)",
        "x^2*cos(x) - max(y, x^3)",
        "-x^4 + x^0",
    ];

    fn box_of(rng: &mut ChaCha20Rng) -> [Interval; 2] {
        [(); 2].map(|()| {
            let width = 10_f64.powf(-4.0 * rng.random::<f64>());
            let lo = 6.0 * rng.random::<f64>() - 3.0;
            // Whole numbers too, and 0, where signs and powers change.
            let lo = if rng.random::<f64>() < 0.3 {
                lo.round()
            } else {
                lo
            };
            Interval::new(lo, (lo + width).min(3.0).max(lo))
        })
    }

    fn slope(tree: &ExpressionTree, cell: &[Interval; 2]) -> Slope {
        tree.evaluate(&[Slope::variable(cell[0], 0), Slope::variable(cell[1], 1)])
    }

    #[test]
    fn every_value_and_every_slope_lies_in_its_interval() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let names = ["x", "y"].map(String::from);
        for text in TEXTS {
            let tree = ExpressionTree::parse(text, &names).unwrap();
            let mut bounded = 0;
            for _ in 0..400 {
                let cell = box_of(&mut rng);
                let bound = slope(&tree, &cell);
                if bound.value.fault.is_some() {
                    continue;
                }
                bounded += 1;
                let anywhere = |rng: &mut ChaCha20Rng| {
                    cell.map(|side| (side.lo + side.width() * rng.random::<f64>()).min(side.hi))
                };
                for _ in 0..20 {
                    let one = anywhere(&mut rng);
                    let other = anywhere(&mut rng);
                    let values = [one, other].map(|at| tree.evaluate(&at));
                    for value in values {
                        assert!(
                            value >= bound.value.lo && value <= bound.value.hi,
                            "{text} {cell:?}: {value} {bound:?}"
                        );
                    }
                    // The mean value theorem, between two places.
                    if bound.slopes.iter().all(|slope| slope.fault.is_none()) {
                        let reach = |side: usize| {
                            bound.slopes[side].times(Interval::point(other[side] - one[side]))
                        };
                        let change = reach(0).plus(reach(1));
                        let slack =
                            1e-12 * (1.0 + values[0].abs() + values[1].abs() + change.magnitude());
                        let found = values[1] - values[0];
                        assert!(
                            found >= change.lo - slack && found <= change.hi + slack,
                            "{text} {cell:?}: {found} {change:?}"
                        );
                    }
                }
            }
            assert!(bounded > 40, "{text}: bounded on {bounded} boxes only");
        }
    }

    #[test]
    fn a_function_of_one_operation_has_no_slack() {
        let names = ["x", "y"].map(String::from);
        let cell = [Interval::new(-0.5, 2.0), Interval::new(1.0, 1.5)];
        for (text, lo, hi) in [
            ("x + y", 0.5, 3.5),
            ("x*y", -0.75, 3.0),
            ("y/(x + 1)", 1.0 / 3.0, 3.0),
            ("x^2", 0.0, 4.0),
            ("x^3", -0.125, 8.0),
            ("abs(x)", 0.0, 2.0),
            ("sin(x)", -0.5_f64.sin(), 1.0),
            ("cos(x)", 2.0_f64.cos(), 1.0),
            ("exp(x)", (-0.5_f64).exp(), 2.0_f64.exp()),
            ("max(x, y)", 1.0, 2.0),
            ("sqrt(x + 0.5)", 0.0, 2.5_f64.sqrt()),
            ("y^0.5", 1.0, 1.5_f64.sqrt()),
        ] {
            let found = slope(&ExpressionTree::parse(text, &names).unwrap(), &cell).value;
            let near = |one: f64, other: f64| (one - other).abs() <= 1e-13;
            assert!(
                near(found.lo, lo) && near(found.hi, hi) && found.fault.is_none(),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn what_may_fail_is_said() {
        let names = ["x", "y"].map(String::from);
        let cell = [Interval::new(0.0, 1.0), Interval::new(-1.0, 1.0)];
        for (text, fault) in [
            ("1/x", Unbounded::Division),
            ("y^-2", Unbounded::Division),
            ("tanh(1/y)", Unbounded::Division),
            ("min(1/y, 2)", Unbounded::Division),
            ("ln(x)", Unbounded::Logarithm),
            ("sqrt(y)", Unbounded::Root),
            ("y^0.5", Unbounded::Power),
            ("x^y", Unbounded::Power),
            ("exp(1000*x)", Unbounded::TooLarge),
        ] {
            let tree = ExpressionTree::parse(text, &names).unwrap();
            let found = slope(&tree, &cell).value.fault;
            assert_eq!(found, Some(fault), "{text}");
        }
    }
}
