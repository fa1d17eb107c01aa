//! Plans: what releases cost together that are all declared before the first of them (`docs/proofs/plans.md`).
//!
//! A plan is a multiset of classes. Declared before any output was seen, it bounds everything that is then released in any
//! adaptive order, with any adaptive choice of class and of when to stop, as long as each release has a slot of a class that
//! dominates it and no slot is used twice. Proof: draw a sample of every slot beforehand; each release is a randomised map
//! of its slot's sample (Blackwell), chosen by what was released before; so the transcript is a function of all samples.
//! Slots that were not used are not refunded into another plan.
//!
//! There is no function that takes a list that grows, and there must be none: where parameters follow earlier outputs, a
//! filter on the composed delta of what was chosen so far is no guarantee. Randomised response of 0.25, and then, by its
//! answer, Laplace noise of 2.1417 or Gaussian noise of 1.3433: each of the two plans is (2, 0.1)-private, the choice between
//! them only (2, 0.1298)-private (`tests/properties/pld.rs`). There the sums of the parent module hold.

use super::concentrated::round_up;
use super::gaussian::{DrawnNoise, round_up_delta};
use super::loss::{PrivacyLoss, PrivacyLosses};
use crate::calibrate::Scale;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};

/// One release, as much as is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseClass {
    /// Discrete Laplace noise of `scale` on any number of values, which neighbours change by at most `change` in the 1-norm.
    Laplace { change: Sensitivity, scale: Scale },
    /// Any mechanism of pure differential privacy: noise of every shape, choices.
    Pure(Epsilon),
    /// Discrete Gaussian noise at a price of `rho`, of which `drawn` says how discrete it is.
    Gaussian { rho: Rho, drawn: DrawnNoise },
}

/// Classes with the number of their slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountantPlan(Vec<(ReleaseClass, u64)>);

/// `10^-12` of epsilon, and this part of delta, pay for the constants of the samplers: `(N + 1) 2^-97` for each of up to `2^40` releases of up to
/// `2^15` values, or the like.
const SAMPLER: f64 = 1e-12;

/// The most windows that [`longest_horizon`] tells apart from any number.
const MOST_WINDOWS: u64 = 1 << 40;

impl AccountantPlan {
    /// Equal classes are one, with all their slots.
    pub fn new(classes: impl IntoIterator<Item = (ReleaseClass, u64)>) -> Self {
        let mut plan: Vec<(ReleaseClass, u64)> = Vec::new();
        for (class, count) in classes {
            match plan.iter_mut().find(|(known, _)| *known == class) {
                Some((_, slots)) => *slots = slots.saturating_add(count),
                None => plan.push((class, count)),
            }
        }
        AccountantPlan(plan)
    }

    pub fn classes(&self) -> &[(ReleaseClass, u64)] {
        &self.0
    }

    /// At least the delta of the plan at `epsilon`, hardly above the least one: rounded up by up to two units.
    pub fn delta(&self, epsilon: Epsilon) -> Delta {
        let losses = self.losses();
        // A smaller epsilon promises more.
        let delta = losses.delta(epsilon.to_f64() * (1.0 - f64::EPSILON) - SAMPLER);
        if losses.is_empty() {
            Delta::ZERO
        } else {
            round_up_delta(delta * (1.0 + SAMPLER))
        }
    }

    /// At least the epsilon of the plan with `delta`, some `10^-5` above the least one; `None` where there is none, or it is
    /// too large for a price.
    pub fn epsilon(&self, delta: Delta) -> Option<Epsilon> {
        let losses = self.losses();
        if losses.is_empty() {
            return Some(Epsilon::ZERO);
        }
        let pure = self.sum_of_epsilons();
        if delta == Delta::ZERO {
            return pure;
        }
        let found = round_up(losses.epsilon(delta.to_f64() * (1.0 - 2.0 * SAMPLER)) + SAMPLER);
        // What is lost at worst is known without rounding.
        found.into_iter().chain(pure).min()
    }

    /// Returns true if [`AccountantPlan::delta`] or [`AccountantPlan::epsilon`] says so: each has its own grid, and both are true.
    pub fn is_within(&self, epsilon: Epsilon, delta: Delta) -> bool {
        self.delta(epsilon) <= delta || self.epsilon(delta).is_some_and(|needed| needed <= epsilon)
    }

    /// The sum of the epsilons, where all classes have one: basic composition.
    fn sum_of_epsilons(&self) -> Option<Epsilon> {
        let mut sum = Epsilon::ZERO;
        for &(class, count) in &self.0 {
            let each = match class {
                ReleaseClass::Pure(epsilon) => epsilon,
                // A unit more than the quotient pays for the sampler.
                ReleaseClass::Laplace { change, scale } => {
                    let units = (u128::from(change.0) * 1_000_000_000_000)
                        .div_ceil(u128::from(scale.units()))
                        + 1;
                    Epsilon::from_trillionths(u64::try_from(units).ok()?)
                }
                ReleaseClass::Gaussian { .. } if count == 0 => Epsilon::ZERO,
                ReleaseClass::Gaussian { .. } => return None,
            };
            let all = each.trillionths().checked_mul(count)?;
            sum = sum.checked_add(Epsilon::from_trillionths(all))?;
        }
        Some(sum)
    }

    /// Losses of the classes. Those of Gaussian noise are apart from the continuous law by how discrete the noise is.
    #[expect(clippy::cast_precision_loss, reason = "rounded up")]
    fn losses(&self) -> PrivacyLosses {
        let parts = self.0.iter().map(|&(class, count)| (class.loss(), count));
        let apart = self.0.iter().map(|(class, count)| match class {
            ReleaseClass::Gaussian { drawn, .. } => drawn.total_variation() * *count as f64,
            _ => 0.0,
        });
        PrivacyLosses::new(parts).with_variation(apart.sum())
    }
}

impl ReleaseClass {
    /// Discrete Laplace noise has, at `epsilon = (change - 2m) / scale`, the delta of the continuous law, and chords in
    /// `exp(epsilon)` between; the worst change has all of it in one value. So its delta is nowhere above that of the
    /// continuous law at an epsilon lower by `2 / scale`: that of a change larger by two units.
    #[expect(clippy::cast_precision_loss, reason = "rounded up")]
    fn loss(self) -> PrivacyLoss {
        const UP: f64 = 1.0 + 4.0 * f64::EPSILON;
        match self {
            ReleaseClass::Laplace {
                change: Sensitivity(0),
                ..
            } => PrivacyLoss::Laplace(0.0),
            ReleaseClass::Laplace { change, scale } => {
                PrivacyLoss::Laplace((change.0 as f64 + 2.0) / scale.units() as f64 * UP)
            }
            ReleaseClass::Pure(epsilon) => PrivacyLoss::Response(epsilon.to_f64() * UP),
            ReleaseClass::Gaussian { rho, .. } => {
                PrivacyLoss::Gaussian(libm::sqrt(2.0 * rho.to_f64()) * UP)
            }
        }
    }
}

/// The most windows of these classes each that are within the total together: for a horizon. Zero where one is too much,
/// `2^40` where more are.
///
/// The number itself was checked, with one slot of a class for each of its releases in each window.
pub fn longest_horizon(window: &[(ReleaseClass, u64)], epsilon: Epsilon, delta: Delta) -> u64 {
    let mut within = 0;
    let mut step = 1;
    while step <= MOST_WINDOWS && is_plan_within(window, step, epsilon, delta) {
        within = step;
        step *= 2;
    }
    let mut beyond = step;
    while within < MOST_WINDOWS && beyond - within > 1 {
        let middle = within.midpoint(beyond);
        if is_plan_within(window, middle, epsilon, delta) {
            within = middle;
        } else {
            beyond = middle;
        }
    }
    within
}

/// Returns true if so many windows of these classes each are within the total together.
fn is_plan_within(
    window: &[(ReleaseClass, u64)],
    windows: u64,
    epsilon: Epsilon,
    delta: Delta,
) -> bool {
    let classes = window
        .iter()
        .map(|&(class, count)| (class, count.saturating_mul(windows)));
    AccountantPlan::new(classes).is_within(epsilon, delta)
}
