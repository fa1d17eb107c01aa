//! Upper bounds of what one record changes in a Gaussian score: the largest value over boxes, from above, the box with the
//! largest bound halved until the bound is near a value that is taken. A search that stops early has a valid bound too.
//!
//! Words as in [`super::gaussian`]; everything in peaks `kappa`.

use std::collections::BinaryHeap;

/// A search ends when its bound is this near to a value that is taken.
const CLOSE: f64 = 1.01;

/// Most boxes of a search.
const MOST_BOXES: usize = 10_000;

/// Covers the floats of a search, which work on sums of positive terms.
const MARGIN: f64 = 1.0 + 1e-9;

/// `U`: the largest `exp(-sum w_i^2 / 2)(1 + sum_i q*(w_i))`, `w_i` in `[0, 1 / deviation_i]`.
///
/// Both factors are monotone in every `w_i`, so two corners bound a box.
pub(super) fn largest_rise(deviations: &[f64]) -> f64 {
    let reach: Vec<f64> = deviations.iter().map(|d| 1.0 / d).collect();
    let whole = reach
        .iter()
        .map(|r| SideRange { low: 0.0, high: *r })
        .collect();
    bound_maximum(whole, |sides| {
        let low: Vec<f64> = sides.iter().map(|side| side.low).collect();
        let high: Vec<f64> = sides.iter().map(|side| side.high).collect();
        Some(BoxBounds {
            bound: rise_between(&low, &high, &reach),
            taken: rise_between(&low, &low, &reach),
        })
    })
}

/// The exponential at the corner `near` times the sum at the corner `far`.
fn rise_between(near: &[f64], far: &[f64], reach: &[f64]) -> f64 {
    let fall: f64 = near.iter().map(|w| w * w / 2.0).sum();
    let rise: f64 = far
        .iter()
        .zip(reach)
        .map(|(w, r)| steepest_rise(*w, *r))
        .sum();
    (-fall).exp() * (1.0 + rise)
}

/// `q*`: the largest `w delta + (w^2 - 1) delta^2 / 2` over `delta` in `[0, r]`, at `r` or where the parabola turns.
fn steepest_rise(w: f64, r: f64) -> f64 {
    if w < 1.0 && w <= r * (1.0 - w * w) {
        w * w / (2.0 * (1.0 - w * w))
    } else {
        w * r + (w * w - 1.0) * r * r / 2.0
    }
}

/// `a`: the largest `sum_p g(p / k)` of one axis, over all means and variances.
///
/// By Poisson summation it is largest with the mean on a lattice point and the least variance, were the lattice endless
/// (`docs/proofs/densities.md`); and no term exceeds 1.
pub(super) fn largest_mass(deviation: f64, degree: u32) -> f64 {
    let step = 1.0 / (f64::from(degree) * deviation);
    // Beyond 40 deviations the terms are below 1e-300.
    let reach = (40.0 / step).ceil() as u32;
    let endless: f64 = (1..=reach)
        .map(|j| (-(f64::from(j) * step).powi(2) / 2.0).exp())
        .sum();
    (1.0 + 2.0 * endless).min(f64::from(degree) + 1.0) * MARGIN
}

/// `B(c)`: the largest `sum_p (g(p / k) |q(p / k) + c|)^power` of one axis, over all means, variances and records.
///
/// A fine lattice is the union of `r` coarse ones, sixteen points a deviation, which start at `0, ..., (r - 1) / k`; a start
/// is a shift of the mean. So `r` times the largest sum of the first, with means from `-(r - 1) / k` too, bounds the whole.
pub(super) fn largest_sum(deviation: f64, degree: u32, c: f64, power: i32) -> f64 {
    let k = f64::from(degree);
    let coarseness = (k * deviation / 16.0).floor().max(1.0);
    let lattice = CoarseLattice {
        least: deviation * deviation,
        k,
        coarseness,
        points: (k / coarseness).floor() as u32,
        shift: (coarseness - 1.0) / k,
        c,
        power,
    };
    coarseness * bound_maximum(lattice.domain(), |sides| lattice.estimate_box(sides))
}

/// The first of the coarse lattices of one axis, and the sum over it that is to be bounded.
struct CoarseLattice {
    /// `v`, the least variance.
    least: f64,
    k: f64,
    /// Fine steps in one of its steps.
    coarseness: f64,
    /// Steps on the axis.
    points: u32,
    /// Largest shift of the mean by the other lattices.
    shift: f64,
    c: f64,
    power: i32,
}

impl CoarseLattice {
    /// All means, variances of a class and distances of the record from the mean.
    fn domain(&self) -> Vec<SideRange> {
        let mean = SideRange {
            low: -self.shift,
            high: 1.0,
        };
        let spread = SideRange {
            low: 0.0,
            high: 0.25,
        };
        // The lattice looks the same from its other end, so x >= mu will do.
        let step = SideRange {
            low: 0.0,
            high: 1.0,
        };
        vec![mean, spread, step]
    }

    fn estimate_box(&self, sides: &[SideRange]) -> Option<BoxBounds> {
        let [mean, spread, mut step] = <[SideRange; 3]>::try_from(sides).ok()?;
        step.high = step.high.min(longest_step(mean.low));
        if step.low > step.high || spread.low > self.widest_spread(mean) {
            return None;
        }
        let middle = SideRange::point((mean.low + mean.high) / 2.0);
        let taken = self.bound_sum(
            middle,
            SideRange::point(spread.low.min(self.widest_spread(middle))),
            SideRange::point(step.high.min(longest_step(middle.low))),
        );
        Some(BoxBounds {
            bound: self.bound_sum(mean, spread, step),
            taken,
        })
    }

    /// No class with such a mean is wider than two heaps at 0 and 1.
    fn widest_spread(&self, mean: SideRange) -> f64 {
        let mean = 0.5_f64.clamp(mean.low.max(0.0), (mean.high + self.shift).clamp(0.0, 1.0));
        mean * (1.0 - mean)
    }

    /// Bound of the sum for every mean, variance of a class and distance of the record in these ranges.
    fn bound_sum(&self, mean: SideRange, spread: SideRange, step: SideRange) -> f64 {
        let variance = SideRange {
            low: self.least + spread.low,
            high: self.least + spread.high,
        };
        let height = (self.least / variance.low).sqrt();
        let growth = SideRange {
            low: step.low * step.low - spread.high,
            high: step.high * step.high - spread.low,
        };
        let shift = step.over(variance);
        let growth = growth.over(variance);
        // Further out exp is below e^-80 and q below 1e13: the margin covers them.
        let reach = (160.0 * variance.high).sqrt();
        let first = self.index(mean.low - reach).floor() as u32;
        let last = self.index(mean.high + reach).ceil() as u32;
        let mut sum = 0.0;
        for p in first..=last {
            let y = f64::from(p) * self.coarseness / self.k;
            let z = SideRange {
                low: y - mean.high,
                high: y - mean.low,
            };
            let square = z.square();
            let q = square.over(variance).plus(-1.0).times(growth);
            let q = SideRange {
                low: q.low / 2.0,
                high: q.high / 2.0,
            }
            .sum(z.times(shift));
            let most = (q.low + self.c).abs().max((q.high + self.c).abs());
            sum += (height * (-square.low / (2.0 * variance.high)).exp() * most).powi(self.power);
        }
        sum
    }

    /// The place of `y` among the lattice points, in steps.
    fn index(&self, y: f64) -> f64 {
        (y * self.k / self.coarseness).clamp(0.0, f64::from(self.points))
    }
}

/// No record lies beyond 1.
fn longest_step(mean: f64) -> f64 {
    1.0 - mean.max(0.0)
}

#[derive(Clone, Copy, Debug)]
struct SideRange {
    low: f64,
    high: f64,
}

impl SideRange {
    fn point(value: f64) -> Self {
        SideRange {
            low: value,
            high: value,
        }
    }

    fn plus(self, value: f64) -> Self {
        SideRange {
            low: self.low + value,
            high: self.high + value,
        }
    }

    fn sum(self, other: Self) -> Self {
        SideRange {
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }

    fn times(self, other: Self) -> Self {
        let products = [
            self.low * other.low,
            self.low * other.high,
            self.high * other.low,
            self.high * other.high,
        ];
        let mut range = SideRange::point(products[0]);
        for product in products {
            range.low = range.low.min(product);
            range.high = range.high.max(product);
        }
        range
    }

    /// Quotient by something positive.
    fn over(self, other: Self) -> Self {
        self.times(SideRange {
            low: 1.0 / other.high,
            high: 1.0 / other.low,
        })
    }

    fn square(self) -> Self {
        let nearest = 0_f64.clamp(self.low, self.high);
        SideRange {
            low: nearest * nearest,
            high: (self.low * self.low).max(self.high * self.high),
        }
    }
}

/// A box, ordered by its bound.
struct BoxCandidate {
    /// Not exceeded in the box.
    bound: f64,
    sides: Vec<SideRange>,
}

impl PartialEq for BoxCandidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for BoxCandidate {}

impl PartialOrd for BoxCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BoxCandidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bound.total_cmp(&other.bound)
    }
}

/// Bounds of the largest value in a box.
#[derive(Clone, Copy)]
struct BoxBounds {
    /// Not exceeded in the box.
    bound: f64,
    /// A value that is taken there.
    taken: f64,
}

/// Half a box; `None` where it is empty.
struct HalfBox {
    sides: Vec<SideRange>,
    estimate: Option<BoxBounds>,
}

/// The halves of a box along one side.
struct SplitBox {
    halves: [HalfBox; 2],
    /// The sum of their bounds.
    bound: f64,
}

/// A bound of the largest value in `whole`. `look` gives the estimate of a box; `None` where a box is empty. A box is halved
/// along the side that lowers the bound most.
fn bound_maximum(whole: Vec<SideRange>, look: impl Fn(&[SideRange]) -> Option<BoxBounds>) -> f64 {
    let Some(BoxBounds { bound, mut taken }) = look(&whole) else {
        return 0.0;
    };
    let mut boxes = BinaryHeap::from([BoxCandidate {
        bound,
        sides: whole,
    }]);
    let mut least = bound;
    for _ in 0..MOST_BOXES {
        let Some(BoxCandidate { bound, sides }) = boxes.pop() else {
            return least * MARGIN;
        };
        // The halves of a box have no larger bounds than the box but for rounding.
        least = bound;
        if bound <= taken * CLOSE {
            break;
        }
        let splits = (0..sides.len()).map(|axis| split_box(&sides, axis, &look));
        let Some(best) = splits.min_by(|a, b| a.bound.total_cmp(&b.bound)) else {
            break;
        };
        for half in best.halves {
            if let Some(estimate) = half.estimate {
                taken = taken.max(estimate.taken);
                boxes.push(BoxCandidate {
                    bound: estimate.bound,
                    sides: half.sides,
                });
            }
        }
    }
    least.max(taken) * MARGIN
}

fn split_box(
    sides: &[SideRange],
    axis: usize,
    look: impl Fn(&[SideRange]) -> Option<BoxBounds>,
) -> SplitBox {
    let SideRange { low, high } = sides[axis];
    let middle = (low + high) / 2.0;
    let halves = [
        SideRange { low, high: middle },
        SideRange { low: middle, high },
    ]
    .map(|half| {
        let mut sides = sides.to_vec();
        sides[axis] = half;
        let estimate = look(&sides);
        HalfBox { sides, estimate }
    });
    let estimates = halves.iter().filter_map(|half| half.estimate);
    let bound = estimates.map(|estimate| estimate.bound).sum();
    SplitBox { halves, bound }
}
