//! Noise for sums of everything so far, in a handful of buffers.

use super::rounding::round_to_bits;

/// A buffered linear Toeplitz matrix `C(x) = 1 + sum_i w_i x / (1 - d_i x)` (`[DMPST24]`),
/// its numbers whole: fresh noise is `C` of the noise that is used, so one buffer for each `i` remembers all
/// of the past.
#[derive(Debug, PartialEq, Eq)]
pub struct Blt {
    /// `d_i`, in units of `2^-24`.
    decays: &'static [u64],
    /// `w_i`, in units of `2^-10`.
    weights: &'static [u64],
}

const DECAY_BITS: u32 = 24;
const WEIGHT_BITS: u32 = 10;

/// Found by minimising the largest error up to 64, 256, 1024, 4096 and 16384 panes, then rounded.
const SETS: [Blt; 5] = [
    Blt {
        decays: &[16_599_827, 14_686_172, 7_843_758],
        weights: &[138, 187, 187],
    },
    Blt {
        decays: &[16_734_874, 16_272_284, 14_262_460, 7_399_797],
        weights: &[68, 99, 173, 172],
    },
    Blt {
        decays: &[16_764_287, 16_591_008, 15_465_865, 9_442_535],
        weights: &[38, 71, 164, 236],
    },
    Blt {
        decays: &[16_773_438, 16_710_914, 16_114_477, 11_213_203],
        weights: &[21, 49, 143, 288],
    },
    Blt {
        decays: &[16_776_337, 16_763_023, 16_641_079, 15_438_300, 7_616_086],
        weights: &[10, 22, 67, 197, 223],
    },
];

/// Number of panes after which the error is seen to grow evenly.
const SETTLED: u64 = 1 << 18;

impl Blt {
    /// All that there are, for shorter series first.
    pub fn all_sets() -> &'static [Blt] {
        &SETS
    }

    /// The one of the smallest mean square error over `horizon` panes. `None` where independent noise does as well.
    pub fn for_horizon(horizon: u64) -> Option<&'static Blt> {
        let panes = horizon.min(SETTLED / 4);
        let mut best = None;
        let mut least = independent_variance(panes);
        for blt in &SETS {
            let rows = blt
                .row_variances()
                .take(usize::try_from(panes).unwrap_or(usize::MAX));
            let error = blt.norm_squared_f64() * rows.sum::<f64>();
            if error < least {
                best = Some(blt);
                least = error;
            }
        }
        best
    }

    /// At least the squared 2-norm of a column of `C` without an end, in units of `2^-64`: by how much a change of one pane
    /// moves the fresh noise of all later ones. `1 + sum_ij w_i w_j / (1 - d_i d_j)`, every term rounded up.
    pub fn norm_squared(&self) -> u128 {
        let mut squared = 1_u128 << 64;
        for one in self.buffer_laws() {
            for other in self.buffer_laws() {
                let rest =
                    (1_u128 << (2 * DECAY_BITS)) - u128::from(one.decay) * u128::from(other.decay);
                let weights = u128::from(one.weight * other.weight);
                squared += (weights << (64 + 2 * DECAY_BITS - 2 * WEIGHT_BITS)).div_ceil(rest);
            }
        }
        squared
    }

    /// Distance by which rounding can take the fresh noise of any one value and pane from what `C` makes of a change: `1 + sum_i w_i /
    /// (1 - d_i)`, rounded up.
    ///
    /// A buffer decays as `round(d s)`. The difference of two buffers so follows the exact law but for less than 1 a pane, in
    /// all less than `1 + d + d^2 + ...`; the sum over the buffers is rounded once more.
    pub fn rounding_drift(&self) -> u64 {
        let mut drift = 1;
        for BufferLaw { decay, weight } in self.buffer_laws() {
            drift += (weight << (DECAY_BITS - WEIGHT_BITS)).div_ceil((1 << DECAY_BITS) - decay);
        }
        drift
    }

    pub(super) fn buffers(&self) -> usize {
        self.decays.len()
    }

    /// `fresh - round(sum_i w_i s_i)`, and the buffers moved on.
    pub(super) fn correlate(&self, buffers: &mut [Vec<i128>], fresh: &mut [i128]) {
        for (at, noise) in fresh.iter_mut().enumerate() {
            let past: i128 = buffers
                .iter()
                .zip(self.weights)
                .map(|(buffer, w)| i128::from(*w) * buffer[at])
                .sum();
            *noise -= round_to_bits(past, WEIGHT_BITS);
            for (buffer, decay) in buffers.iter_mut().zip(self.decays) {
                buffer[at] = round_to_bits(i128::from(*decay) * buffer[at], DECAY_BITS) + *noise;
            }
        }
    }

    /// The variance of a sum over so many panes, of fresh noise of variance 1. A figure to show.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub(super) fn row_variance(&self, panes: u64) -> f64 {
        let mut rows = self
            .row_variances()
            .skip(panes.clamp(1, SETTLED) as usize - 1);
        let last = rows.next().unwrap_or(f64::NAN);
        let next = rows.next().unwrap_or(f64::NAN);
        last + panes.saturating_sub(SETTLED) as f64 * (next - last)
    }

    /// The squared 2-norms of the rows of `A / C`, `A` the sums.
    fn row_variances(&self) -> impl Iterator<Item = f64> {
        let decays: Vec<f64> = self
            .decays
            .iter()
            .map(|d| *d as f64 / 16_777_216.0)
            .collect();
        let weights: Vec<f64> = self.weights.iter().map(|w| *w as f64 / 1024.0).collect();
        let mut buffers = vec![0.0; self.buffers()];
        let mut value = 0.0;
        let mut squared = 0.0;
        (0_u64..).map(move |step| {
            let past: f64 = weights
                .iter()
                .zip(&buffers)
                .map(|(w, buffer)| w * buffer)
                .sum();
            let impulse = if step == 0 { 1.0 } else { -past };
            for (decay, buffer) in decays.iter().zip(&mut buffers) {
                *buffer = decay * *buffer + impulse;
            }
            value += impulse;
            squared += value * value;
            squared
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "which set is the better one")]
    fn norm_squared_f64(&self) -> f64 {
        self.norm_squared() as f64 / 18_446_744_073_709_551_616.0
    }

    fn buffer_laws(&self) -> impl Iterator<Item = BufferLaw> + '_ {
        self.decays
            .iter()
            .zip(self.weights)
            .map(|(&decay, &weight)| BufferLaw { decay, weight })
    }

    /// Numbers that make it this one and no other.
    pub(super) fn identifying_numbers(&self) -> Vec<u64> {
        [self.decays, self.weights].concat()
    }
}

/// `d_i` and `w_i`.
struct BufferLaw {
    decay: u64,
    weight: u64,
}

/// The sum of the variances of independent noise added up, over so many panes.
#[expect(clippy::cast_precision_loss, reason = "which is the better one")]
fn independent_variance(panes: u64) -> f64 {
    panes as f64 * (panes as f64 + 1.0) / 2.0
}
