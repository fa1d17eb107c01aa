//! A series: correlated noise, calibrated, and its steps.

use super::blt::Blt;
use super::correlation::Correlation;
use super::error::{Error, MOST_PANES};
use super::fir::Fir;
use super::guarded::Spread;
use super::rounding::round;
use super::state::State;
use super::tree::Tree;
use crate::Exact;
use crate::calibrated::Mechanism;
use crate::continual::guarded;
use crate::error::Error as NoiseError;
use crate::noise::{Generator, own_rho};
use crate::noisy::Noisy;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Epsilon, Rho};
use bernstream_synopsis::description::Fresh;
use bernstream_synopsis::law::NoiseDistribution;
use bernstream_synopsis::price::Price;

/// Over which panes a release of a series speaks. One pane alone needs no series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// All since the series began.
    Cumulative,
    /// The last `panes`; while there are fewer, those.
    Hopping { panes: u32 },
}

/// After so many panes a series begins with new noise, at the latest, going on from what was published.
const LONGEST: u64 = 1 << 30;

/// Correlated noise, calibrated: public, and the same for every key.
///
/// A pane is paid for once, when it is first released; that covers every later release that it is in.
///
/// Gaussian noise: cumulative sums by a BLT, hopping ones by a filter; where neither helps (a few panes, or one), fresh noise
/// for every pane. The other laws: fresh noise for every pane, and for cumulative sums of many panes a tree.
///
/// A series does not end. A tree that is full, or a BLT whose rounding is used up, is followed by a new one that goes on from
/// what was published; the variance of what was published then stays in.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    over: WindowKind,
    pub(super) correlation: Correlation,
    noise: Mechanism,
    /// Noisy panes are in units of `2^-bits` of the grid.
    bits: u32,
}

impl Series {
    /// `change` is `Target::sensitivity_in` of one pane: what a unit changes there in all keys together. `values` is how many
    /// values that can be, those of all keys that a unit can be in. `panes_a_unit` is how many panes a unit can be in, 1 for
    /// records, each of which is charged `price`. `horizon` is for how many panes the error of a cumulative series is
    /// made small; nothing ends there.
    ///
    /// # Errors
    ///
    /// If the window has too many panes, the price buys no such noise, or it does not pay for the rounding of a whole series.
    pub fn calibrated(
        over: WindowKind,
        law: NoiseDistribution,
        change: Sensitivity,
        values: usize,
        panes_a_unit: u32,
        price: Price,
        horizon: u64,
    ) -> Result<Series, Error> {
        let plain = |correlation: Correlation, price: Price| {
            let noise = Mechanism::calibrated(law, change, values, price)?;
            Ok(Series {
                over,
                correlation,
                noise,
                bits: 0,
            })
        };
        let gaussian = |spread: &Spread, correlation: &dyn Fn(u64) -> Correlation| {
            if change.0 == 0 {
                return Err(Error::Mechanism(NoiseError::NoSensitivity));
            }
            if panes_a_unit > 1 && matches!(price, Price::Approximate { .. }) {
                return Err(Error::SeveralPanes {
                    panes: panes_a_unit,
                });
            }
            let found = guarded::calibrate(change.0, values, panes_a_unit, price, spread)?;
            let correlation = correlation(found.longest);
            Ok(Series {
                over,
                correlation,
                noise: found.noise,
                bits: found.bits,
            })
        };
        match (over, law) {
            (WindowKind::Hopping { panes }, _) if !(1..=MOST_PANES).contains(&panes) => {
                Err(Error::Panes { panes })
            }
            (WindowKind::Hopping { panes: panes @ 2.. }, NoiseDistribution::DiscreteGaussian) => {
                let fir = Fir::over(panes as usize);
                let later = u64::from(2 * panes - 1);
                let spread = Spread {
                    norm_squared: fir.norm_squared(),
                    drift: 1,
                    least: later,
                    most: later,
                };
                gaussian(&spread, &|_| Correlation::fir(fir.clone()))
            }
            (WindowKind::Hopping { .. }, _) => plain(Correlation::independent(), price),
            (WindowKind::Cumulative, NoiseDistribution::DiscreteGaussian) => {
                match Blt::for_horizon(horizon) {
                    None => plain(Correlation::independent(), price),
                    Some(blt) => {
                        let norm_squared = blt.norm_squared();
                        let drift = blt.drift();
                        let spread = Spread {
                            norm_squared,
                            drift,
                            least: horizon,
                            most: LONGEST,
                        };
                        gaussian(&spread, &|longest| Correlation::blt(blt, longest))
                    }
                }
            }
            (WindowKind::Cumulative, _) => match Tree::for_horizon(horizon) {
                tree if tree.levels() == 1 => plain(Correlation::independent(), price),
                tree => {
                    let price = price_of_a_node(price, tree.levels(), panes_a_unit);
                    plain(Correlation::tree(tree), price)
                }
            },
        }
    }

    /// What the noise costs a unit that is in one pane, in zero-concentrated differential privacy: its own constant
    /// ([`own_rho`]) for every node of the tree that the pane is in. `change` is that which it was calibrated to, `values` those of
    /// one key. `None` for noise of which no more than its price is known.
    pub fn own_rho(&self, change: Sensitivity, values: usize) -> Option<Rho> {
        let nodes = self.correlation.nodes_of_a_pane()? as u64;
        let node = own_rho(
            self.noise.distribution(),
            change,
            values,
            self.noise.scale(),
        )?;
        node.trillionths()
            .checked_mul(nodes)
            .map(Rho::from_trillionths)
    }

    /// What a description says of its noise, of values in units of `grid`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a scale to show; the noise itself is drawn from the integer"
    )]
    pub fn fresh(&self, grid: f64) -> Fresh {
        let unit = grid / (1_u64 << self.bits) as f64;
        Fresh {
            scale: self.noise.scale().units() as f64 * unit,
            nodes: self.correlation.nodes_of_a_pane().map(|nodes| nodes as u64),
            norm_squared: self.correlation.norm_squared(),
        }
    }

    /// Of one key, before its first pane.
    pub fn begin(&self, values: usize) -> State {
        let published = vec![vec![0; values]; self.kept()];
        State {
            memory: self.correlation.memory(values),
            published,
            values,
        }
    }

    /// Draws, moves `state` on and gives what is published now: the sum over the panes that this release speaks of, in grid
    /// units. Costs the price of a pane. `state` must be that of this series and key, after its last pane, and `pane` have as
    /// many values.
    pub fn step(&self, pane: &Exact, state: &mut State, generator: &mut Generator) -> Noisy {
        debug_assert_eq!(pane.reveal().len(), state.values, "a pane of another shape");
        let nothing = Exact::new(vec![0; state.values]);
        let step = state.step();
        let mut draw = || self.noise.release(&nothing, generator).0;
        let mut noisy = self.correlation.correlate(&mut state.memory, &mut draw);
        for (noisy, exact) in noisy.iter_mut().zip(pane.reveal()) {
            *noisy = exact.saturating_mul(1 << self.bits).saturating_add(*noisy);
        }
        let mut sum = noisy.clone();
        state
            .published
            .iter()
            .for_each(|vector| add(&mut sum, vector));
        let place = step.checked_rem(self.kept() as u64).unwrap_or(0) as usize;
        if let Some(kept) = state.published.get_mut(place) {
            *kept = if self.over == WindowKind::Cumulative {
                sum.clone()
            } else {
                noisy
            };
        }
        Noisy(
            sum.into_iter()
                .map(|value| round(value, self.bits))
                .collect(),
        )
    }

    /// The standard deviation of the noise in each value published at step `step`, from 0, of a key of `values` values; in grid
    /// units. A figure to show; it is the same for all keys, and worth keeping where they are many.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub fn deviation(&self, values: usize, step: u64) -> f64 {
        let over = match self.over {
            WindowKind::Cumulative => None,
            WindowKind::Hopping { panes } => Some(panes),
        };
        let unit = (1_u64 << self.bits) as f64;
        let fresh =
            self.noise.scale().units() as f64 / unit * self.noise.distribution().deviation(values);
        fresh * self.correlation.row(step.saturating_add(1), over).sqrt()
    }

    pub fn over(&self) -> WindowKind {
        self.over
    }

    /// The fresh noise, in units of `2^-`[`bits`](Series::bits) of the grid.
    pub fn noise(&self) -> Mechanism {
        self.noise
    }

    pub fn correlation(&self) -> &Correlation {
        &self.correlation
    }

    /// Noisy panes are kept in units of `2^-bits` of the grid.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// How many vectors of published values the next step needs: the sum, or the panes of its window but itself.
    pub(super) fn kept(&self) -> usize {
        match self.over {
            WindowKind::Cumulative => 1,
            WindowKind::Hopping { panes } => panes as usize - 1,
        }
    }

    /// What makes it this one and no other.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let over = match self.over {
            WindowKind::Cumulative => 0,
            WindowKind::Hopping { panes } => u64::from(panes),
        };
        let law = self.noise.distribution().number();
        let own = [over, law, self.noise.scale().units(), u64::from(self.bits)];
        [own.as_slice(), self.correlation.numbers().as_slice()].concat()
    }
}

/// What a node of a tree may cost, in the kind of `price`.
///
/// Under `rho` a level pays its part of it. A unit in `panes` panes can have all of them in one node, whose noise then loses
/// so many times its epsilon, and `rho` of that grows faster than its epsilon does: so the epsilon of a node is such that
/// all of the panes in one node cost what the level is paid for them. Fewer panes cost less each.
pub(super) fn price_of_a_node(price: Price, levels: usize, panes: u32) -> Price {
    let levels = levels as u64;
    let panes = u64::from(panes.max(1));
    let part = |epsilon: Epsilon, of: u64| {
        Price::Pure(Epsilon::from_trillionths(epsilon.trillionths() / of))
    };
    match price {
        Price::Pure(epsilon) | Price::Approximate { epsilon, .. } => part(epsilon, levels),
        Price::Concentrated(rho) => {
            let of_all = u128::from(rho.trillionths()) * u128::from(panes) / u128::from(levels);
            let of_all = Rho::from_trillionths(u64::try_from(of_all).unwrap_or(u64::MAX));
            part(Price::Concentrated(of_all).pure(), panes)
        }
        // Calibrates nothing.
        Price::Slots(_) => price,
    }
}

fn add(sum: &mut [i128], vector: &[i128]) {
    sum.iter_mut()
        .zip(vector)
        .for_each(|(sum, value)| *sum = sum.saturating_add(*value));
}
