//! Privacy-loss distributions: the exact composition of laws that are known, up to an error that is on the safe side.
//!
//! A law is known by its privacy loss `L = ln(P/Q)` under `P`, where `(P, Q)` dominates the release for all neighbours in both
//! directions; pairs multiply (`[ZDW22]`), so losses add up, and `delta(epsilon)` is the mean of
//! `1 - exp(epsilon - L)` where `L` is above epsilon. It grows when mass moves to a larger loss, or is added: every rounding
//! here does one of the two, or is bounded and added.
//!
//! Floating point: nothing here enters a ledger. [`plan`](super::plan) says what the laws are of, and rounds.

mod compose;
mod grid;
mod privacy_loss;

use compose::ComposedLoss;
use grid::GridStep;
pub use privacy_loss::PrivacyLoss;
use privacy_loss::{RepeatedLoss, log_moment, spread};

/// The losses of independent releases together.
#[derive(Clone, Debug, Default)]
pub struct PrivacyLosses {
    /// At most one is Gaussian, and none loses nothing.
    parts: Vec<RepeatedLoss>,
    /// A total variation that separates these laws from what is meant.
    apart: f64,
}

/// More releases of one law than this are not composed: `delta` is 1.
const MOST: u64 = 1 << 40;

impl PrivacyLosses {
    /// `parts` are laws and how many releases have each. Gaussian ones are one: `mu^2` adds up.
    #[expect(clippy::cast_precision_loss, reason = "rounded up")]
    pub fn new(parts: impl IntoIterator<Item = (PrivacyLoss, u64)>) -> Self {
        let mut losses = PrivacyLosses::default();
        let mut square = 0.0;
        for (law, count) in parts {
            match law {
                // What is no number is kept, and refused later.
                _ if count == 0 || law.parameter() == 0.0 => {}
                PrivacyLoss::Gaussian(mu) => square += mu * mu * count as f64 * (1.0 + 1e-15),
                _ => losses.parts.push(RepeatedLoss {
                    law: law.widened(),
                    count,
                }),
            }
        }
        if square != 0.0 {
            losses.parts.push(RepeatedLoss {
                law: PrivacyLoss::Gaussian(square.sqrt() * (1.0 + 1e-12)),
                count: 1,
            });
        }
        losses
    }

    /// The laws meant are within this total variation of those given, all together: `(1 + exp(epsilon))` times it is added to
    /// delta.
    #[must_use]
    pub fn with_variation(self, apart: f64) -> Self {
        PrivacyLosses { apart, ..self }
    }

    /// Returns true if nothing is lost.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.apart == 0.0
    }

    /// At least the delta at `epsilon`, at most 1.
    pub fn delta(&self, epsilon: f64) -> f64 {
        if self.parts.is_empty() {
            return self.with_apart(0.0, epsilon);
        }
        if !self.is_usable() || !epsilon.is_finite() {
            return 1.0;
        }
        let tilt = self.least_tilt(epsilon, |tilt| self.log_moment(tilt) - tilt * epsilon);
        let delta = GridStep::new(&self.parts, tilt, epsilon)
            .and_then(|grid| ComposedLoss::new(&self.parts, grid, tilt, epsilon))
            .map_or(1.0, |composed| composed.delta(epsilon));
        self.with_apart(delta, epsilon)
    }

    /// The smallest epsilon found whose delta is at most `delta`: the upper end of a bisection, `2^-30` of it wide.
    /// Infinite where none is found.
    pub fn epsilon(&self, delta: f64) -> f64 {
        if self.with_apart(0.0, 0.0) <= delta && self.parts.is_empty() {
            return 0.0;
        }
        if !self.is_usable() || delta <= 0.0 {
            return f64::INFINITY;
        }
        let tilt = golden_section(|tilt| self.renyi_epsilon(tilt, delta), -12.0, 18.0);
        // Never more than what is lost at worst.
        let near = self
            .renyi_epsilon(tilt, delta)
            .min(self.largest_loss())
            .max(self.spread() / 1000.0);
        let tilt = tilt.min(LARGEST_TILT / near);
        let composed = GridStep::new(&self.parts, tilt, near)
            .and_then(|grid| ComposedLoss::new(&self.parts, grid, tilt, near * 0.5));
        let Some(composed) = composed else {
            return f64::INFINITY;
        };
        if self.is_within(&composed, 0.0, delta) {
            return 0.0;
        }
        let mut within = f64::INFINITY;
        for i in 0..14 {
            let epsilon = near * (1.0 + 1e-3 * f64::from(1 << i));
            if self.is_within(&composed, epsilon, delta) {
                within = epsilon;
                break;
            }
        }
        if within == f64::INFINITY {
            return f64::INFINITY;
        }
        let mut beyond = 0.0;
        while within - beyond > within / f64::from(1 << 30) {
            let middle = f64::midpoint(beyond, within);
            if self.is_within(&composed, middle, delta) {
                within = middle;
            } else {
                beyond = middle;
            }
        }
        within
    }

    /// An epsilon that holds with this delta by the moment at `tilt`: [CKS20, corollary 13], with the moments in the place of rho.
    fn renyi_epsilon(&self, tilt: f64, delta: f64) -> f64 {
        (self.log_moment(tilt) - delta.ln() - tilt.ln_1p()) / tilt + (tilt / (1.0 + tilt)).ln()
    }

    fn is_within(&self, composed: &ComposedLoss, epsilon: f64, delta: f64) -> bool {
        self.with_apart(composed.delta(epsilon), epsilon) <= delta
    }

    fn with_apart(&self, delta: f64, epsilon: f64) -> f64 {
        let slack = if self.apart == 0.0 {
            0.0
        } else {
            self.apart * (1.0 + epsilon.exp()) * (1.0 + 1e-12)
        };
        // Also for what is no number.
        if delta + slack <= 1.0 {
            delta + slack
        } else {
            1.0
        }
    }

    /// Returns true if the bounds on the errors hold for these numbers.
    fn is_usable(&self) -> bool {
        self.parts.iter().all(|RepeatedLoss { law, count }| {
            let most = if matches!(law, PrivacyLoss::Gaussian(_)) {
                grid::LARGEST_MU
            } else {
                f64::from(1 << 20)
            };
            law.parameter() > 1e-9 && law.parameter() < most && *count <= MOST
        })
    }

    fn log_moment(&self, tilt: f64) -> f64 {
        log_moment(&self.parts, tilt)
    }

    /// About the deviation of the sum, at most.
    fn spread(&self) -> f64 {
        spread(&self.parts)
    }

    /// The largest loss.
    #[expect(clippy::cast_precision_loss, reason = "a guide")]
    fn largest_loss(&self) -> f64 {
        self.parts
            .iter()
            .map(|part| part.law.largest() * part.count as f64)
            .sum()
    }

    /// The tilt for which `of` is least, as far as a tilt is of use near `epsilon`.
    fn least_tilt(&self, epsilon: f64, of: impl Fn(f64) -> f64) -> f64 {
        let largest = LARGEST_TILT / epsilon.max(self.spread());
        golden_section(of, -12.0, largest.ln().max(-11.0))
    }
}

/// A tilt above this over epsilon tells more about the last step of the loss than about its sum.
const LARGEST_TILT: f64 = 200.0;

/// Place between `exp(low)` and `exp(high)` at which a function with one valley is least, about; by golden section.
fn golden_section(of: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    const RATIO: f64 = 0.618_033_988_749_894_9;
    let mut a = high - RATIO * (high - low);
    let mut b = low + RATIO * (high - low);
    let mut at_a = of(a.exp());
    let mut at_b = of(b.exp());
    for _ in 0..36 {
        if at_a < at_b {
            high = b;
            b = a;
            at_b = at_a;
            a = high - RATIO * (high - low);
            at_a = of(a.exp());
        } else {
            low = a;
            a = b;
            at_a = at_b;
            b = low + RATIO * (high - low);
            at_b = of(b.exp());
        }
    }
    f64::midpoint(low, high).exp()
}
