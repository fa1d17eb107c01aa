//! A series: correlated noise, calibrated, and its steps.

use super::blt::Blt;
use super::correlation::Correlation;
use super::error::{MOST_PANES, SeriesError};
use super::fir::Fir;
use super::guarded::{ChangeSpread, GuardedNoise};
use super::rounding::round_to_bits;
use super::state::SeriesState;
use super::tree::NoiseTree;
use crate::Exact;
use crate::calibrated::Mechanism;
use crate::continual::guarded;
use crate::error::NoiseError;
use crate::noise::{Generator, own_rho};
use crate::noisy::Noisy;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Epsilon, Rho};
use bernstream_synopsis::description::FreshNoise;
use bernstream_synopsis::law::NoiseDistribution;
use bernstream_synopsis::price::Price;

/// Panes over which a release of a series speaks. One pane alone needs no series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// All since the series began.
    Cumulative,
    /// The last `panes`; while there are fewer, those.
    Hopping { panes: u32 },
}

/// Number of panes after which a series begins with new noise, at the latest, going on from what was published.
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
pub struct CalibratedSeries {
    over: SeriesKind,
    pub(super) correlation: Correlation,
    noise: Mechanism,
    /// Noisy panes are in units of `2^-bits` of the grid.
    bits: u32,
}

impl CalibratedSeries {
    /// `change` is `Target::sensitivity_in` of one pane: what a unit changes there in all keys together. `values` is how many
    /// values that can be, those of all keys that a unit can be in. `panes_a_unit` is how many panes a unit can be in, 1 for
    /// records, each of which is charged `price`. `horizon` is for how many panes the error of a cumulative series is
    /// made small; nothing ends there.
    ///
    /// # Errors
    ///
    /// If the window has too many panes, the price buys no such noise, or it does not pay for the rounding of a whole series.
    pub fn calibrated(
        over: SeriesKind,
        law: NoiseDistribution,
        change: Sensitivity,
        values: usize,
        panes_a_unit: u32,
        price: Price,
        horizon: u64,
    ) -> Result<CalibratedSeries, SeriesError> {
        let request = SeriesRequest {
            over,
            law,
            change,
            values,
            panes_a_unit,
            price,
        };
        let is_gaussian = law == NoiseDistribution::DiscreteGaussian;
        match over {
            SeriesKind::Hopping { panes } if !(1..=MOST_PANES).contains(&panes) => {
                Err(SeriesError::Panes { panes })
            }
            SeriesKind::Hopping { panes: panes @ 2.. } if is_gaussian => {
                let fir = Fir::for_panes(panes as usize);
                let later = u64::from(2 * panes - 1);
                let found = request.guarded(&ChangeSpread {
                    norm_squared: fir.norm_squared(),
                    drift: 1,
                    least: later,
                    most: later,
                })?;
                Ok(request.correlated(Correlation::fir(fir), found))
            }
            SeriesKind::Hopping { .. } => request.plain(Correlation::independent(), price),
            SeriesKind::Cumulative if is_gaussian => {
                let Some(blt) = Blt::for_horizon(horizon) else {
                    return request.plain(Correlation::independent(), price);
                };
                let found = request.guarded(&ChangeSpread {
                    norm_squared: blt.norm_squared(),
                    drift: blt.rounding_drift(),
                    least: horizon,
                    most: LONGEST,
                })?;
                Ok(request.correlated(Correlation::blt(blt, found.longest), found))
            }
            SeriesKind::Cumulative => {
                let tree = NoiseTree::for_horizon(horizon);
                if tree.levels() == 1 {
                    return request.plain(Correlation::independent(), price);
                }
                let price = price_of_a_node(price, tree.levels(), panes_a_unit);
                request.plain(Correlation::tree(tree), price)
            }
        }
    }

    /// Cost of the noise to a unit that is in one pane, in zero-concentrated differential privacy: its own constant
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

    /// Description of its noise, of values in units of `grid`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a scale to show; the noise itself is drawn from the integer"
    )]
    pub fn describe_noise(&self, grid: f64) -> FreshNoise {
        let unit = grid / (1_u64 << self.bits) as f64;
        FreshNoise {
            scale: self.noise.scale().units() as f64 * unit,
            nodes: self.correlation.nodes_of_a_pane().map(|nodes| nodes as u64),
            norm_squared: self.correlation.norm_squared(),
        }
    }

    /// State of one key, before its first pane.
    pub fn begin_state(&self, values: usize) -> SeriesState {
        let published = vec![vec![0; values]; self.kept_vectors()];
        SeriesState {
            memory: self.correlation.empty_memory(values),
            published,
            values,
        }
    }

    /// Draws, moves `state` on and gives what is published now: the sum over the panes that this release speaks of, in grid
    /// units. Costs the price of a pane. `state` must be that of this series and key, after its last pane, and `pane` have as
    /// many values.
    pub fn release_step(
        &self,
        pane: &Exact,
        state: &mut SeriesState,
        generator: &mut Generator,
    ) -> Noisy {
        debug_assert_eq!(pane.reveal().len(), state.values, "a pane of another shape");
        let nothing = Exact::new(vec![0; state.values]);
        let step = state.step();
        let mut noisy = self.correlation.next_noise(&mut state.memory, &mut || {
            self.noise.release_noisy(&nothing, generator).0
        });
        for (noisy, exact) in noisy.iter_mut().zip(pane.reveal()) {
            *noisy = exact.saturating_mul(1 << self.bits).saturating_add(*noisy);
        }
        let mut sum = noisy.clone();
        for vector in &state.published {
            add_saturating(&mut sum, vector);
        }
        let place = step.checked_rem(self.kept_vectors() as u64).unwrap_or(0) as usize;
        if let Some(kept) = state.published.get_mut(place) {
            *kept = if self.over == SeriesKind::Cumulative {
                sum.clone()
            } else {
                noisy
            };
        }
        Noisy(
            sum.into_iter()
                .map(|value| round_to_bits(value, self.bits))
                .collect(),
        )
    }

    /// The standard deviation of the noise in each value published at step `step`, from 0, of a key of `values` values; in grid
    /// units. A figure to show; it is the same for all keys, and worth keeping where they are many.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub fn deviation(&self, values: usize, step: u64) -> f64 {
        let over = match self.over {
            SeriesKind::Cumulative => None,
            SeriesKind::Hopping { panes } => Some(panes),
        };
        let unit = (1_u64 << self.bits) as f64;
        let fresh =
            self.noise.scale().units() as f64 / unit * self.noise.distribution().deviation(values);
        fresh
            * self
                .correlation
                .row_variance(step.saturating_add(1), over)
                .sqrt()
    }

    pub fn over(&self) -> SeriesKind {
        self.over
    }

    /// The fresh noise, in units of `2^-`[`bits`](CalibratedSeries::bits) of the grid.
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

    /// Number of vectors of published values that the next step needs: the sum, or the panes of its window but itself.
    pub(super) fn kept_vectors(&self) -> usize {
        match self.over {
            SeriesKind::Cumulative => 1,
            SeriesKind::Hopping { panes } => panes as usize - 1,
        }
    }

    /// Numbers that make it this one and no other.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let over = match self.over {
            SeriesKind::Cumulative => 0,
            SeriesKind::Hopping { panes } => u64::from(panes),
        };
        let law = self.noise.distribution().number();
        let own = [over, law, self.noise.scale().units(), u64::from(self.bits)];
        [own.as_slice(), self.correlation.numbers().as_slice()].concat()
    }
}

/// Series that is asked for, as [`CalibratedSeries::calibrated`] says.
struct SeriesRequest {
    over: SeriesKind,
    law: NoiseDistribution,
    change: Sensitivity,
    values: usize,
    panes_a_unit: u32,
    price: Price,
}

impl SeriesRequest {
    /// Noise of the law itself on every pane, or node, that costs `price`.
    fn plain(
        &self,
        correlation: Correlation,
        price: Price,
    ) -> Result<CalibratedSeries, SeriesError> {
        let noise = Mechanism::calibrated(self.law, self.change, self.values, price)?;
        Ok(CalibratedSeries {
            over: self.over,
            correlation,
            noise,
            bits: 0,
        })
    }

    /// Gaussian noise that pays for a change that comes back by `spread`.
    fn guarded(&self, spread: &ChangeSpread) -> Result<GuardedNoise, SeriesError> {
        if self.change.0 == 0 {
            return Err(SeriesError::Mechanism(NoiseError::NoSensitivity));
        }
        if self.panes_a_unit > 1 && matches!(self.price, Price::Approximate { .. }) {
            return Err(SeriesError::SeveralPanes {
                panes: self.panes_a_unit,
            });
        }
        let panes = self.panes_a_unit;
        guarded::calibrate_guarded(self.change.0, self.values, panes, self.price, spread)
    }

    fn correlated(&self, correlation: Correlation, found: GuardedNoise) -> CalibratedSeries {
        CalibratedSeries {
            over: self.over,
            correlation,
            noise: found.noise,
            bits: found.bits,
        }
    }
}

/// Price that a node of a tree may have, in the kind of `price`.
///
/// Under `rho` a level pays its part of it. A unit in `panes` panes can have all of them in one node, whose noise then loses
/// so many times its epsilon, and `rho` of that grows faster than its epsilon does: so the epsilon of a node is such that
/// all of the panes in one node cost what the level is paid for them. Fewer panes cost less each.
pub(super) fn price_of_a_node(price: Price, levels: usize, panes: u32) -> Price {
    let levels = levels as u64;
    let panes = u64::from(panes.max(1));
    match price {
        Price::Pure(epsilon) | Price::Approximate { epsilon, .. } => part_of(epsilon, levels),
        Price::Concentrated(rho) => {
            let of_all = u128::from(rho.trillionths()) * u128::from(panes) / u128::from(levels);
            let of_all = Rho::from_trillionths(u64::try_from(of_all).unwrap_or(u64::MAX));
            part_of(Price::Concentrated(of_all).largest_pure_epsilon(), panes)
        }
        // Calibrates nothing.
        Price::Slots(_) => price,
    }
}

/// One of so many equal parts of an epsilon.
fn part_of(epsilon: Epsilon, parts: u64) -> Price {
    Price::Pure(Epsilon::from_trillionths(epsilon.trillionths() / parts))
}

fn add_saturating(sum: &mut [i128], vector: &[i128]) {
    for (sum, value) in sum.iter_mut().zip(vector) {
        *sum = sum.saturating_add(*value);
    }
}
