//! One loss on a grid: connect the dots (`[DGKKM22]`).
//!
//! The mass of each cell `(a, b]` moves to its ends, `a = i h` and `b = a + h`, so that the means of 1 and of `exp(-L)` stay:
//! a mass at `l` leaves `expm1(b - l) / expm1(h)` of itself at `a`. As delta is convex in `exp(epsilon)`, and the same at the
//! points of the grid, it is nowhere less.

use super::privacy_loss::{PrivacyLoss, RepeatedLoss, log_moment, spread};

/// Masses are at least what they should be, up to this part of themselves.
pub(super) const RELATIVE: f64 = 1.0 / (1_u64 << 46) as f64;

/// The bounds on the errors of Gaussian cells hold up to here.
pub(super) const LARGEST_MU: f64 = 1024.0;

/// Beyond it a release loses all it can: exponents stay small, and nobody needs more.
const LARGEST_LOSS: f64 = 50.0;

/// Deviations of the normal law that are kept: `2^-82` is beyond them.
const DEVIATIONS: f64 = 10.5;

/// The most points of a grid.
pub(super) const MOST_POINTS: f64 = (1 << 20) as f64;

/// The distance of the points.
#[derive(Clone, Copy, Debug)]
pub(super) struct GridStep {
    pub step: f64,
}

impl GridStep {
    /// Fine enough that the grid adds about `10^-5` to `epsilon`, where the memory allows; one of the laws has its largest loss
    /// on a point. Any grid is safe.
    #[expect(clippy::cast_precision_loss, reason = "a guide")]
    pub fn new(parts: &[RepeatedLoss], tilt: f64, epsilon: f64) -> Option<Self> {
        const ADDED: f64 = 1e-5;
        // The law of which there are most is aligned: the mass between points is what costs.
        let anchor = parts
            .iter()
            .filter(|part| !is_gaussian(part.law))
            .max_by_key(|part| part.count)
            .copied();
        let between: f64 = parts
            .iter()
            .map(|part| {
                let spread_out = match part.law {
                    PrivacyLoss::Laplace(t) => (t / 2.0).min(1.0),
                    PrivacyLoss::Response(_) => 0.0,
                    PrivacyLoss::Gaussian(_) => 2.0,
                };
                let atoms = if is_gaussian(part.law) || Some(*part) == anchor {
                    0.0
                } else {
                    1.5
                };
                (spread_out + atoms) * part.count as f64
            })
            .sum();
        let square = ADDED * epsilon.max(spread(parts) / 1000.0)
            / (between * (tilt + 1.0) / 12.0 + tilt / 8.0);
        let mut finest = f64::INFINITY;
        let mut longest: f64 = 0.0;
        for part in parts {
            let parameter = part.law.parameter();
            let widths = if is_gaussian(part.law) {
                2.0 * DEVIATIONS
            } else {
                2.0
            };
            finest = finest.min(parameter);
            longest = longest.max(parameter * widths);
        }
        let mut step = square.sqrt().clamp(1e-7, 0.5).min(finest / 4.0);
        // The steps of the tilted sum that matter, as with the exact bounds later.
        let SumBounds { low, high } = tilted_bounds(parts, tilt, |s| {
            log_moment(parts, tilt + s) - log_moment(parts, tilt)
        });
        let width = (high - low).max(longest);
        if !width.is_finite() {
            return None;
        }
        step = step.max(width / (MOST_POINTS * 0.9));
        if let Some(anchor) = anchor.filter(|anchor| anchor.law.parameter() > step) {
            let parameter = anchor.law.parameter();
            // A little more than the quotient, so that rounding keeps the largest loss below its point.
            step = parameter / libm::ceil(parameter / step) * (1.0 + f64::EPSILON);
        }
        Some(GridStep { step })
    }
}

fn is_gaussian(law: PrivacyLoss) -> bool {
    matches!(law, PrivacyLoss::Gaussian(_))
}

/// Bound of the surprise: tails of the tilted sum below this are added, not composed.
pub(super) const TAIL: f64 = 1e-20;

/// An interval with the tilted sum, but for [`TAIL`] on each side.
pub(super) struct SumBounds {
    pub low: f64,
    pub high: f64,
}

/// Bounds of the tilted sum by Chernoff's bound; `growth(s)` is how much the log moment grows from the tilt to `tilt + s`.
pub(super) fn tilted_bounds(
    parts: &[RepeatedLoss],
    tilt: f64,
    growth: impl Fn(f64) -> f64,
) -> SumBounds {
    let down = best_shift(parts, tilt, -1.0);
    let up = best_shift(parts, tilt, 1.0);
    SumBounds {
        low: (growth(-down) - TAIL.ln()) / -down,
        high: (growth(up) - TAIL.ln()) / up,
    }
}

/// The shift of the tilt, upwards or downwards by `sign`, with about the narrowest bound. Any is correct.
fn best_shift(parts: &[RepeatedLoss], tilt: f64, sign: f64) -> f64 {
    let here = log_moment(parts, tilt);
    let mut best = 1.0;
    let mut narrowest = f64::INFINITY;
    for i in -40..60 {
        let shift = 2_f64.powf(f64::from(i) / 2.0);
        let width = (log_moment(parts, tilt + sign * shift) - here - TAIL.ln()) / shift;
        if width.is_finite() && width < narrowest {
            best = shift;
            narrowest = width;
        }
    }
    best
}

/// One loss on the grid: `masses[j]` at `(lowest + j) h`, and `beyond` at infinity.
pub(super) struct Pmf {
    pub lowest: i64,
    pub masses: Vec<f64>,
    pub beyond: f64,
}

impl Pmf {
    pub fn new(law: PrivacyLoss, grid: GridStep) -> Pmf {
        let GridStep { step } = grid;
        match law {
            PrivacyLoss::Gaussian(mu) => gaussian_masses(mu, step),
            PrivacyLoss::Laplace(t) | PrivacyLoss::Response(t) if t > LARGEST_LOSS => Pmf {
                lowest: point_above(t, step) as i64,
                masses: vec![1.0],
                beyond: 0.0,
            },
            PrivacyLoss::Laplace(t) => mirrored_law(&laplace_masses(t, step), step),
            PrivacyLoss::Response(t) => {
                let mut upper = vec![0.0; point_above(t, step) + 1];
                split_mass(&mut upper, t, 1.0 / (1.0 + libm::exp(-t)), step);
                mirrored_law(&upper, step)
            }
        }
    }

    /// `ln` of the sum of `exp(tilt L)`, and the largest exponent in size.
    pub fn log_moment(&self, tilt: f64, step: f64) -> f64 {
        let largest =
            (tilt * self.point(0, step)).max(tilt * self.point(self.masses.len() - 1, step));
        let sum: f64 = self
            .masses
            .iter()
            .enumerate()
            .map(|(j, mass)| mass * libm::exp(tilt * self.point(j, step) - largest))
            .sum();
        largest + libm::log(sum)
    }

    /// The loss of `masses[j]`.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    fn point(&self, j: usize, step: f64) -> f64 {
        (self.lowest + j as i64) as f64 * step
    }

    /// The highest point.
    pub fn highest(&self) -> i64 {
        self.lowest + self.masses.len() as i64 - 1
    }

    /// The largest loss in size, infinity aside.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    pub fn farthest(&self, step: f64) -> f64 {
        self.lowest.abs().max(self.highest().abs()) as f64 * step
    }
}

/// The first point at or above a positive loss.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most the points of a grid, about"
)]
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn point_above(loss: f64, step: f64) -> usize {
    let point = libm::ceil(loss / step) as usize;
    if (point as f64) * step < loss {
        point + 1
    } else {
        point.max(1)
    }
}

/// Adds a mass at `loss`, on the ends of its cell; what is above is never less than it should be.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn split_mass(upper: &mut [f64], loss: f64, mass: f64, step: f64) {
    let above = point_above(loss, step);
    // Rounding may put a loss on a point one cell too high.
    let share = (libm::expm1(above as f64 * step - loss) / libm::expm1(step)).min(1.0);
    upper[above - 1] += mass * share;
    upper[above] += mass * ((1.0 - share) + 2.0 * f64::EPSILON);
}

/// A law with `P[-L = l] = exp(-l) P[L = l]`, from what the cells above 0 leave at the points from 0 on.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "far below 2^53"
)]
fn mirrored_law(upper: &[f64], step: f64) -> Pmf {
    let below = upper
        .iter()
        .enumerate()
        .skip(1)
        .rev()
        .map(|(i, mass)| mass * libm::exp(-(i as f64) * step));
    let masses = below
        .chain([2.0 * upper[0]])
        .chain(upper[1..].iter().copied())
        .collect();
    Pmf {
        lowest: 1 - upper.len() as i64,
        masses,
        beyond: 0.0,
    }
}

/// Every term is positive: a full cell leaves `tanh(h/4)/2 exp((i h - t)/2)` at each end, without cancellation.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn laplace_masses(t: f64, step: f64) -> Vec<f64> {
    let above = point_above(t, step);
    let mut upper = vec![0.0; above + 1];
    let half = libm::tanh(step / 4.0) / 2.0;
    for cell in 0..above - 1 {
        upper[cell] += half * libm::exp((cell as f64 * step - t) / 2.0);
        upper[cell + 1] += half * libm::exp(((cell + 1) as f64 * step - t) / 2.0);
    }
    // The last cell ends at t: its density, and half of all mass at its end.
    let low = (above - 1) as f64 * step;
    let high = above as f64 * step;
    let part = ((t - low) / 2.0).max(0.0);
    let density = -libm::expm1(-part) / 2.0;
    let share = (libm::expm1(high - t + part) / libm::expm1(step)).min(1.0);
    upper[above - 1] += density * share;
    upper[above] += density * ((1.0 - share) + 2.0 * f64::EPSILON);
    split_mass(&mut upper, t, 0.5, step);
    upper
}

/// The mass of each cell is split as if its density were exponential with the steepest slope in it, that at its lower end: it
/// has its mass above the true one, which is log-concave, and so leaves less at the lower point.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "far below 2^53"
)]
fn gaussian_masses(mu: f64, step: f64) -> Pmf {
    const MARGIN: f64 = 1.0 / (1_u64 << 36) as f64;
    let mean = mu * mu / 2.0;
    let lowest = libm::floor((mean - DEVIATIONS * mu) / step) as i64;
    let highest = libm::ceil((mean + DEVIATIONS * mu) / step) as i64;
    let grown = libm::exp(step);
    let whole = libm::expm1(step);
    let mut masses = vec![0.0; usize::try_from(highest - lowest + 1).unwrap_or(1)];
    let mut near = CellEnd::new((lowest as f64 * step - mean) / mu);
    masses[0] += near.tail * (1.0 + MARGIN);
    for (j, i) in (lowest..highest).enumerate() {
        let far = CellEnd::new(((i + 1) as f64 * step - mean) / mu);
        let mass = if near.standard < 0.0 && far.standard > 0.0 {
            1.0 - near.tail - far.tail
        } else {
            (near.tail - far.tail).abs()
        };
        // An argument is good to mu + 11 parts of 2^-51, a tail to 11 times as much: less than 2^-38 of it.
        let mass = mass.max(0.0) + MARGIN * near.tail.max(far.tail);
        let slope = -near.standard / mu + (1.0 + 1.0 / mu) / (1_u64 << 40) as f64;
        let ratio = grown * mean_growth((slope - 1.0) * step) / mean_growth(slope * step);
        let share = ((ratio - 1.0) / whole - 1.0 / ((1_u64 << 48) as f64 * step)).clamp(0.0, 1.0);
        masses[j] += mass * share;
        masses[j + 1] += mass * (1.0 - share);
        near = far;
    }
    Pmf {
        lowest,
        masses,
        beyond: near.tail * (1.0 + MARGIN),
    }
}

/// An end of a cell under the standard normal law.
struct CellEnd {
    standard: f64,
    /// Mass beyond it, on the side away from 0.
    tail: f64,
}

impl CellEnd {
    fn new(standard: f64) -> Self {
        CellEnd {
            standard,
            tail: libm::erfc(standard.abs() * std::f64::consts::FRAC_1_SQRT_2) / 2.0,
        }
    }
}

/// Mean of `exp` from 0 to `x`.
fn mean_growth(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { libm::expm1(x) / x }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delta of one loss on its grid, at every point of it.
    fn deltas(pmf: &Pmf, step: f64) -> Vec<(f64, f64)> {
        let at = |j: usize| (pmf.lowest + j as i64) as f64 * step;
        let delta = |epsilon: f64| {
            let above = pmf
                .masses
                .iter()
                .enumerate()
                .filter(|(j, _)| at(*j) > epsilon);
            pmf.beyond
                + above
                    .map(|(j, mass)| mass * -(epsilon - at(j)).exp_m1())
                    .sum::<f64>()
        };
        (0..pmf.masses.len())
            .map(|j| (at(j), delta(at(j))))
            .collect()
    }

    /// At the points of the grid delta is that of the law; between, a chord.
    #[test]
    fn at_its_points_a_grid_has_the_delta_of_the_law() {
        for t in [0.003, 0.1, 0.77, 3.0] {
            for step in [t, t / 2.0, t / 7.0, t / 6.3, t / 40.7, t * 1.3] {
                for (epsilon, found) in
                    deltas(&Pmf::new(PrivacyLoss::Laplace(t), GridStep { step }), step)
                {
                    let exact = if epsilon.abs() <= t {
                        -((epsilon - t) / 2.0).exp_m1()
                    } else {
                        (-epsilon.exp_m1()).max(0.0)
                    };
                    assert!(
                        (found - exact).abs() < 1e-14,
                        "{t} {step} {epsilon}: {found} {exact}"
                    );
                }
                for (epsilon, found) in
                    deltas(&Pmf::new(PrivacyLoss::Response(t), GridStep { step }), step)
                {
                    let yes = 1.0 / (1.0 + (-t).exp());
                    let terms = [(yes, t), (1.0 - yes, -t)]
                        .map(|(mass, l)| mass * (-(epsilon - l).exp_m1()).max(0.0));
                    assert!(
                        (found - terms[0] - terms[1]).abs() < 1e-14,
                        "{t} {step} {epsilon}: {found} {terms:?}"
                    );
                }
            }
        }
        for mu in [0.01, 0.5, 3.0, 40.0] {
            for step in [mu / 8.0, mu / 40.3] {
                for (epsilon, found) in deltas(
                    &Pmf::new(PrivacyLoss::Gaussian(mu), GridStep { step }),
                    step,
                ) {
                    let tail = |x: f64| libm::erfc(x / 2_f64.sqrt()) / 2.0;
                    let near = epsilon / mu - mu / 2.0;
                    let far = epsilon / mu + mu / 2.0;
                    let exact = tail(near)
                        - if far < 35.0 {
                            epsilon.exp() * tail(far)
                        } else {
                            0.0
                        };
                    assert!(
                        found > exact * (1.0 - 1e-12) - 1e-14 || far > 30.0,
                        "{mu} {step} {epsilon}: {found} {exact}"
                    );
                    assert!(
                        found < exact * 1.2 + 1e-10,
                        "{mu} {step} {epsilon}: {found} {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_mass_is_lost() {
        let laws = [
            PrivacyLoss::Laplace(0.1),
            PrivacyLoss::Laplace(60.0),
            PrivacyLoss::Response(0.7),
            PrivacyLoss::Gaussian(0.01),
            PrivacyLoss::Gaussian(30.0),
        ];
        for law in laws {
            for step in [0.000_3, 0.001, 0.002_2] {
                let pmf = Pmf::new(law, GridStep { step });
                let sum = pmf.masses.iter().sum::<f64>() + pmf.beyond;
                assert!(
                    (1.0 - 1e-13..1.0 + 1e-5).contains(&sum),
                    "{law:?} {step}: {sum}"
                );
            }
        }
    }
}
