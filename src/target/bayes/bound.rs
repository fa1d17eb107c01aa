//! Upper bounds of what one record changes in a Gaussian score: the largest value over boxes, from above, the box with the
//! largest bound halved until the bound is near a value that is taken. A search that stops early has a valid bound too.
//!
//! Words as in [`super::gaussian`]; everything in peaks `kappa`.

use std::collections::BinaryHeap;

/// A search ends when its bound is this near to a value that is taken.
const CLOSE: f64 = 1.01;

/// Or after this many boxes.
const MOST_BOXES: usize = 20_000;

/// Covers the floats of a search, which work on sums of positive terms.
const MARGIN: f64 = 1.0 + 1e-9;

/// `U`: the largest `exp(-sum w_i^2 / 2)(1 + sum_i q*(w_i))`, `w_i` in `[0, 1 / deviation_i]`.
///
/// Both factors are monotone in every `w_i`, so two corners bound a box.
pub(super) fn largest_rise(deviations: &[f64]) -> f64 {
    let reach: Vec<f64> = deviations.iter().map(|d| 1.0 / d).collect();
    let value = |near: &[f64], far: &[f64]| {
        let fall: f64 = near.iter().map(|w| w * w / 2.0).sum();
        let rise: f64 = far.iter().zip(&reach).map(|(w, r)| steepest(*w, *r)).sum();
        (-fall).exp() * (1.0 + rise)
    };
    let whole = reach.iter().map(|r| Range { low: 0.0, high: *r }).collect();
    search(whole, |sides| {
        let [low, high] = corners(sides);
        Some((value(&low, &high), value(&low, &low)))
    })
}

/// `q*`: the largest `w delta + (w^2 - 1) delta^2 / 2` over `delta` in `[0, r]`, at `r` or where the parabola turns.
fn steepest(w: f64, r: f64) -> f64 {
    if w < 1.0 && w <= r * (1.0 - w * w) { w * w / (2.0 * (1.0 - w * w)) } else { w * r + (w * w - 1.0) * r * r / 2.0 }
}

/// The largest `sum_p g(p / k) |s q(p / k) + c|` of one axis, over all means, variances and records.
pub(super) fn largest_sum(deviation: f64, degree: u32, s: f64, c: f64) -> f64 {
    let least = deviation * deviation;
    let (unit, k) = (Range { low: 0.0, high: 1.0 }, f64::from(degree));
    // The lattice looks the same from its other end, so x >= mu will do.
    let whole = vec![unit, Range { low: 0.0, high: 0.25 }, unit];
    search(whole, |sides| {
        let [mean, spread, mut step] = <[Range; 3]>::try_from(sides).ok()?;
        // No record lies beyond 1, and no spread exceeds that of two heaps at 0 and 1.
        step.high = step.high.min(1.0 - mean.low);
        let half = 0.5_f64.clamp(mean.low, mean.high);
        if step.low > step.high || spread.low > half * (1.0 - half) {
            return None;
        }
        let bound = |mean: Range, spread: Range, step: Range| -> f64 {
            let variance = Range { low: least + spread.low, high: least + spread.high };
            let height = (least / variance.low).sqrt();
            let growth = Range { low: step.low * step.low - spread.high, high: step.high * step.high - spread.low };
            let (shift, growth) = (step.over(variance), growth.over(variance));
            let term = |p: u32| {
                let y = f64::from(p) / k;
                let z = Range { low: y - mean.high, high: y - mean.low };
                let square = z.square();
                let q = square.over(variance).plus(-1.0).times(growth);
                let q = Range { low: q.low / 2.0, high: q.high / 2.0 }.sum(z.times(shift));
                let most = (s * q.low + c).abs().max((s * q.high + c).abs());
                height * (-square.low / (2.0 * variance.high)).exp() * most
            };
            (0..=degree).map(term).sum()
        };
        let (at, d) = (Range::at(half), Range::at(step.high.min(1.0 - half)));
        let taken = if d.low >= 0.0 { bound(at, Range::at(spread.low.min(half * (1.0 - half))), d) } else { 0.0 };
        Some((bound(mean, spread, step), taken))
    })
}

#[derive(Clone, Copy, Debug)]
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn at(value: f64) -> Self {
        Range { low: value, high: value }
    }

    fn plus(self, value: f64) -> Self {
        Range { low: self.low + value, high: self.high + value }
    }

    fn sum(self, other: Self) -> Self {
        Range { low: self.low + other.low, high: self.high + other.high }
    }

    fn times(self, other: Self) -> Self {
        let products = [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        let [first, ..] = products;
        products.into_iter().fold(Range::at(first), |r, x| Range { low: r.low.min(x), high: r.high.max(x) })
    }

    /// Divided by something positive.
    fn over(self, other: Self) -> Self {
        self.times(Range { low: 1.0 / other.high, high: 1.0 / other.low })
    }

    fn square(self) -> Self {
        let nearest = 0_f64.clamp(self.low, self.high);
        Range { low: nearest * nearest, high: (self.low * self.low).max(self.high * self.high) }
    }
}

fn corners(sides: &[Range]) -> [Vec<f64>; 2] {
    [sides.iter().map(|side| side.low).collect(), sides.iter().map(|side| side.high).collect()]
}

/// A box and what is not exceeded in it; ordered by that.
struct Candidate {
    bound: f64,
    sides: Vec<Range>,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bound.total_cmp(&other.bound)
    }
}

/// Half a box, and what `look` saw in it.
type Half = (Vec<Range>, Option<(f64, f64)>);

/// A bound of the largest value in `whole`. `look` gives what is not exceeded in a box and a value that is taken there;
/// `None` where a box is empty. A box is halved along the side that lowers the bound most.
fn search(whole: Vec<Range>, look: impl Fn(&[Range]) -> Option<(f64, f64)>) -> f64 {
    let Some((bound, mut taken)) = look(&whole) else { return 0.0 };
    let mut boxes = BinaryHeap::from([Candidate { bound, sides: whole }]);
    let mut least = bound;
    for _ in 0..MOST_BOXES {
        let Some(Candidate { bound, sides }) = boxes.pop() else { return least * MARGIN };
        // The halves of a box have no larger bounds than the box but for rounding.
        least = bound;
        if bound <= taken * CLOSE {
            break;
        }
        let halves = |axis: usize| {
            let Range { low, high } = sides[axis];
            let middle = (low + high) / 2.0;
            [Range { low, high: middle }, Range { low: middle, high }].map(|half| {
                let mut sides = sides.clone();
                sides[axis] = half;
                let seen = look(&sides);
                (sides, seen)
            })
        };
        let most =
            |halves: &[Half; 2]| -> f64 { halves.iter().filter_map(|(_, seen)| *seen).map(|(bound, _)| bound).sum() };
        let choices = (0..sides.len()).map(halves);
        let Some(best) = choices.min_by(|a, b| most(a).total_cmp(&most(b))) else { break };
        for (sides, seen) in best {
            if let Some((bound, value)) = seen {
                taken = taken.max(value);
                boxes.push(Candidate { bound, sides });
            }
        }
    }
    least.max(taken) * MARGIN
}
