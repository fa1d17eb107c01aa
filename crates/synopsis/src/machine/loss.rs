//! Losses, and how far one record can push a minimiser under them.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

/// The width over which the corner of the hinge is rounded off. The objective differs from that of the sharp hinge by at
/// most `C CORNER / 2`; the iterations that the solver may need grow with `sqrt(C / CORNER)`.
pub const CORNER: f64 = 1.0 / 128.0;

/// Residual where the Huber loss turns from square to straight, in labels of `[-1, 1]`.
pub const STRAIGHT: f64 = 0.25;

/// `max_t t sigmoid(-t)`, and the `t` where it is.
const LOGISTIC_PEAK: f64 = 0.278_464_542_761_074;
const LOGISTIC_PEAK_MARGIN: f64 = 1.278_464_542_761_074;

/// Angles in a full turn of the search in [`Loss::exchange_bound`].
const ANGLES: usize = 2048;

/// Loss of a value `f` where the label is `y`: 1 or -1 for the first two, in `[-1, 1]` for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// `max(0, 1 - y f)`, the support vector machine, its corner rounded off: `(1 - y f)^2 / 2 CORNER` within [`CORNER`]
    /// below 1 and `1 - y f - CORNER / 2` from there on.
    Hinge,
    /// `ln(1 + exp(-y f))`.
    Logistic,
    /// `(y - f)^2 / 2`, ridge regression; only where one record is replaced.
    Squared,
    /// `(y - f)^2 / 2` where that is within [`STRAIGHT`], `STRAIGHT (|y - f| - STRAIGHT / 2)` beyond.
    Huber,
}

impl Loss {
    /// Tests that the label is a class.
    pub fn classifies(self) -> bool {
        matches!(self, Loss::Hinge | Loss::Logistic)
    }

    /// The label as this loss reads it: a class is 1 above zero and -1 elsewhere.
    pub fn signed_label(self, label: f64) -> f64 {
        if !self.classifies() {
            label
        } else if label > 0.0 {
            1.0
        } else {
            -1.0
        }
    }

    /// The loss itself.
    pub fn value(self, label: f64, f: f64) -> f64 {
        let margin = 1.0 - label * f;
        let residual = (label - f).abs();
        match self {
            Loss::Hinge if margin <= 0.0 => 0.0,
            Loss::Hinge if margin < CORNER => margin * margin / (2.0 * CORNER),
            Loss::Hinge => margin - CORNER / 2.0,
            Loss::Logistic => (-(label * f).abs()).exp().ln_1p() + (-label * f).max(0.0),
            Loss::Huber if residual > STRAIGHT => STRAIGHT * (residual - STRAIGHT / 2.0),
            Loss::Squared | Loss::Huber => residual * residual / 2.0,
        }
    }

    /// `-dL/df`.
    pub fn negative_slope(self, label: f64, f: f64) -> f64 {
        match self {
            Loss::Hinge => label * ((1.0 - label * f) / CORNER).clamp(0.0, 1.0),
            Loss::Logistic => label * sigmoid(-label * f),
            Loss::Squared => label - f,
            Loss::Huber => (label - f).clamp(-STRAIGHT, STRAIGHT),
        }
    }

    /// `d^2 L / df^2`; where it jumps, one of its two values.
    pub fn second_derivative(self, label: f64, f: f64) -> f64 {
        let margin = 1.0 - label * f;
        let is_curved = match self {
            Loss::Hinge => (0.0..CORNER).contains(&margin),
            Loss::Logistic => {
                let part = sigmoid(-label * f);
                return part * (1.0 - part);
            }
            Loss::Squared => true,
            Loss::Huber => (label - f).abs() < STRAIGHT,
        };
        if is_curved { self.curvature() } else { 0.0 }
    }

    /// Largest slope of [`Loss::negative_slope`] in `f`.
    pub fn curvature(self) -> f64 {
        match self {
            Loss::Hinge => 1.0 / CORNER,
            Loss::Logistic => 0.25,
            Loss::Squared | Loss::Huber => 1.0,
        }
    }

    /// The `b` with `b = c pull(label, rest + diagonal b)`: the best coefficient of one record, all others held.
    pub fn best_coefficient(self, label: f64, rest: f64, diagonal: f64, c: f64) -> f64 {
        match self {
            Loss::Hinge => {
                let pull = (1.0 - label * rest).max(0.0);
                let b = pull / (1.0 / (c * (1.0 / CORNER)) + diagonal);
                label * b.clamp(-c, c)
            }
            Loss::Squared => (label - rest) / (1.0 / c + diagonal),
            Loss::Huber => {
                let b = (label - rest) / (1.0 / c + diagonal);
                b.clamp(-(c * STRAIGHT), c * STRAIGHT)
            }
            Loss::Logistic => {
                let mut low = 0.0;
                let mut high = c;
                let mut b = c * sigmoid(-label * rest);
                for _ in 0..40 {
                    let pull = sigmoid(-label * rest - diagonal * b);
                    let excess = b - c * pull;
                    if excess > 0.0 {
                        high = b
                    } else {
                        low = b
                    }
                    let step = excess / (1.0 + c * diagonal * pull * (1.0 - pull));
                    let next = b - step;
                    b = if next >= low && next <= high {
                        next
                    } else {
                        (low + high) / 2.0
                    };
                    if step.abs() <= 1e-12 * c {
                        break;
                    }
                }
                label * b
            }
        }
    }

    /// At least `sup |pull|` over what minimisers can take for values: `M` of `docs/proofs/machines.md`.
    pub fn steepest_pull(self, c: f64) -> f64 {
        match self {
            Loss::Hinge => 1.0,
            Loss::Logistic => sigmoid(self.reach(c)) * (1.0 + 1e-12),
            Loss::Squared => 1.0 + self.reach(c),
            Loss::Huber => STRAIGHT,
        }
    }

    /// At least `||f||` of a minimiser, where there are no more records than `m`.
    ///
    /// At the minimum `||f||^2 = (C/m) sum_i pull_i f_i <= C max pull f`, over `|f| <= ||f||`. Put into itself again and
    /// again, every bound gives a smaller one.
    fn reach(self, c: f64) -> f64 {
        let mut reach = f64::INFINITY;
        for _ in 0..100 {
            let gain = match self {
                Loss::Hinge => 1.0,
                Loss::Logistic if reach > LOGISTIC_PEAK_MARGIN => LOGISTIC_PEAK,
                Loss::Logistic => reach * sigmoid(-reach),
                Loss::Squared if reach > 0.5 => 0.25,
                Loss::Squared => reach * (1.0 - reach),
                Loss::Huber => STRAIGHT,
            };
            reach = (c * gain).sqrt() * (1.0 + 1e-12);
        }
        reach
    }

    /// At least `sup || pull(y, f(x)) K_x - pull(y', f(x')) K_x' ||` over two records and one minimiser: times `C/m` it
    /// is how far an exchanged record can move the minimiser, `r`.
    ///
    /// It is at most `2 M`. Hinge and Huber reach that: a record that lies alone changes sides. The logistic and the
    /// squared loss do not, because a record pulls hard only where the others hold the function against it, and two
    /// records that pull hard to one side lie apart. With `z = y K_x` (the pull is monotone in a label, so extreme
    /// labels are extreme) what a record adds is `g(z) = s(<f, z>) z`, `|z| <= 1`, `s(t)` the pull at the margin `t`. With
    /// `R >= ||f||`, `e` the direction of `g(z) - g(z')` and `psi` its angle with `f`,
    ///
    /// ```text
    /// ||g(z) - g(z')|| = <e, g(z)> + <-e, g(z')> <= H(psi) + H(pi - psi)
    /// H(psi) = max_phi b(R cos(phi - psi)) cos(phi),    b(t) = max_{0 <= a <= 1} a s(a t)
    /// ```
    ///
    /// `phi` is the angle of `z` with `e`; what leaves the plane of `e` and `f` makes `z` shorter, and `b` has all
    /// lengths. The maximum over three angles is looked for on a grid; where it is, the derivatives are 0, so the grid
    /// misses it by at most half the largest second derivative (`16 R^2 + 6 R + 1`) times the squared distance
    /// `3 (pi / ANGLES)^2`.
    pub fn exchange_bound(self, c: f64) -> f64 {
        let worst = 2.0 * self.steepest_pull(c);
        if matches!(self, Loss::Hinge | Loss::Huber) {
            return worst;
        }
        let reach = self.reach(c);
        let cosine: Vec<f64> = (0..ANGLES)
            .map(|i| (2.0 * PI * i as f64 / ANGLES as f64).cos())
            .collect();
        let pulls: Vec<f64> = cosine
            .iter()
            .map(|cosine| self.strongest_shortened_pull(reach * cosine))
            .collect();
        let mut sides = Vec::with_capacity(ANGLES / 2 + 1);
        for psi in 0..=ANGLES / 2 {
            let mut largest = 0.0_f64;
            for (phi, cosine) in cosine.iter().enumerate() {
                largest = largest.max(pulls[(ANGLES + phi - psi) % ANGLES] * cosine);
            }
            sides.push(largest);
        }
        let found = sides
            .iter()
            .zip(sides.iter().rev())
            .map(|(a, b)| a + b)
            .fold(0.0, f64::max);
        let second = 16.0 * reach * reach + 6.0 * reach + 1.0;
        let missed = second / 2.0 * 3.0 * (PI / ANGLES as f64).powi(2);
        (found + missed + 1e-9).min(worst)
    }

    /// `b(t) = max_{0 <= a <= 1} a s(a t)`; of the squared loss only where the pull is with `z`, which is where it is
    /// strongest: the opposite `z` is pulled harder than this one is pushed.
    fn strongest_shortened_pull(self, margin: f64) -> f64 {
        let is_logistic = self == Loss::Logistic;
        let peak_margin = if is_logistic {
            LOGISTIC_PEAK_MARGIN
        } else {
            0.5
        };
        if margin <= peak_margin {
            return self.negative_slope(1.0, margin);
        }
        let peak = if is_logistic { LOGISTIC_PEAK } else { 0.25 };
        peak / margin
    }
}

fn sigmoid(t: f64) -> f64 {
    1.0 / (1.0 + (-t).exp())
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha20Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const LOSSES: [Loss; 4] = [Loss::Hinge, Loss::Logistic, Loss::Squared, Loss::Huber];

    #[test]
    fn a_pull_is_the_slope_of_the_loss_and_no_steeper_than_its_curvature() {
        for loss in LOSSES {
            for step in -400..400 {
                let f = f64::from(step) * 0.01 + 0.0013;
                let h = 1e-6;
                for label in [1.0, -1.0] {
                    let slope = (loss.value(label, f + h) - loss.value(label, f - h)) / (2.0 * h);
                    assert!(
                        (loss.negative_slope(label, f) + slope).abs() < 1e-4,
                        "{loss:?} {f}"
                    );
                    let bend = (loss.negative_slope(label, f + h) - loss.negative_slope(label, f))
                        .abs()
                        / h;
                    assert!(
                        bend <= loss.curvature() * (1.0 + 1e-6) + 1e-6,
                        "{loss:?} {f}: {bend}"
                    );
                    let second = loss.second_derivative(label, f);
                    assert!(
                        (bend - second).abs() < 1e-3 * loss.curvature(),
                        "{loss:?} {f}: {bend} {second}"
                    );
                }
            }
            assert!(
                [1.0, -1.0, 0.3]
                    .iter()
                    .all(|label| loss.value(*label, 0.0) <= 1.0)
            );
        }
    }

    #[test]
    fn a_settled_coefficient_is_what_its_record_pulls() {
        for loss in LOSSES {
            for (rest, diagonal, c) in [
                (0.0, 1.0, 0.01),
                (0.995, 0.5, 2.0),
                (-3.0, 1.0, 7.0),
                (4.0, 0.0, 1.0),
            ] {
                for label in [1.0, -1.0] {
                    let b = loss.best_coefficient(label, rest, diagonal, c);
                    let pull = c * loss.negative_slope(label, rest + diagonal * b);
                    assert!(
                        (b - pull).abs() < 1e-9 * loss.curvature() * (1.0 + c),
                        "{loss:?} {rest} {c}: {b} {pull}"
                    );
                }
            }
        }
    }

    /// Vectors of three coordinates stand for any: `z`, `z'` and `f` span no more.
    #[test]
    fn no_exchange_is_larger_than_claimed_and_some_are_nearly_as_large() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        for loss in [Loss::Logistic, Loss::Squared] {
            for c in [0.1, 1.0, 10.0, 1000.0] {
                let reach = loss.reach(c);
                let mut vector = || [(); 3].map(|()| rng.random_range(-1.0..=1.0_f64));
                let dot =
                    |a: &[f64; 3], b: &[f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let within =
                    |v: &[f64; 3], most: f64| v.map(|x| x * most / dot(v, v).sqrt().max(1.0));
                let seen = |[z, other, f]: &[[f64; 3]; 3]| {
                    let z = within(z, 1.0);
                    let other = within(other, 1.0);
                    let f = within(f, reach);
                    let here = loss.negative_slope(1.0, dot(&f, &z));
                    let there = loss.negative_slope(1.0, dot(&f, &other));
                    z.iter()
                        .zip(other)
                        .map(|(z, other)| (here * z - there * other).powi(2))
                        .sum::<f64>()
                        .sqrt()
                };
                let mut best = [[1.0, 0.0, 0.0], [-1.0, 0.1, 0.0], [0.0, 1.0, 0.0]];
                for round in 0..20_000 {
                    let size = 0.9995_f64.powi(round);
                    let moved = best.map(|v| {
                        let step = vector();
                        [0, 1, 2].map(|i| v[i] + size * step[i])
                    });
                    if seen(&moved) > seen(&best) {
                        best = moved.map(|v| within(&v, 1.0));
                    }
                }
                let found = seen(&best);
                let claimed = loss.exchange_bound(c);
                println!(
                    "{loss:?} C = {c}: {found:.4} of {claimed:.4}, 2 M is {:.4}",
                    2.0 * loss.steepest_pull(c)
                );
                assert!(
                    found <= claimed && found > 0.99 * claimed,
                    "{loss:?} {c}: {found} {claimed}"
                );
            }
        }
    }
}
