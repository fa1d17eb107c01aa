//! Noise for sums over the last few panes.

use super::rounding::round_to_bits;

/// A finite filter `C(x) = sum_(j < 2R) c_j x^j`, `c_j` near those of `sqrt((1 - x^R) / (1 - x))` at `exp(-1 / 6R) x`: the
/// root of the sum over `R` panes, which splits the error evenly between `C` and the sum over `C` and so minimises their
/// product; the damping keeps the inverse stable.
#[derive(Clone, Debug, PartialEq)]
pub struct Fir {
    /// In units of `2^-10`; the first is 1.
    coefficients: Vec<i64>,
    /// The squared 2-norms of the rows of `A / C`, `A` the sums over `R` panes, until they rise no more.
    rows: Vec<f64>,
}

const BITS: u32 = 10;

impl Fir {
    /// For sums over `panes` panes.
    pub fn for_panes(panes: usize) -> Fir {
        let coefficients = filter_coefficients(panes);
        let rows = row_variances(panes, &coefficients);
        Fir { coefficients, rows }
    }

    /// `c_j`, in units of `2^-10`.
    pub fn coefficients(&self) -> &[i64] {
        &self.coefficients
    }

    /// The squared 2-norm of a column, exactly, in units of `2^-64`.
    pub fn norm_squared(&self) -> u128 {
        self.coefficients
            .iter()
            .map(|c| u128::from(c.unsigned_abs()).pow(2) << (64 - 2 * BITS))
            .sum()
    }

    /// Number of panes of noise that are remembered.
    pub(super) fn reach(&self) -> usize {
        self.coefficients.len() - 1
    }

    /// `fresh - round(sum_(j >= 1) c_j w_(t-j))`, put into the ring.
    pub(super) fn correlate(&self, step: u64, ring: &mut [Vec<i128>], fresh: &mut [i128]) {
        let reach = self.reach();
        let now = (step % reach as u64) as usize;
        let mut past = vec![0; fresh.len()];
        for (j, c) in self.coefficients.iter().enumerate().skip(1) {
            let before = &ring[(now + reach - j) % reach];
            for (sum, noise) in past.iter_mut().zip(before) {
                *sum += i128::from(*c) * noise;
            }
        }
        for (noise, past) in fresh.iter_mut().zip(past) {
            *noise -= round_to_bits(past, BITS);
        }
        ring[now].copy_from_slice(fresh);
    }

    /// The variance of the sum over the last panes when there have been so many, of fresh noise of variance 1.
    pub(super) fn row_variance(&self, panes: u64) -> f64 {
        let last = self.rows.len().saturating_sub(1);
        self.rows[usize::try_from(panes.saturating_sub(1))
            .unwrap_or(usize::MAX)
            .min(last)]
    }
}

/// Sums and products of correctly rounded numbers, and `exp` of the same library everywhere: the same on every machine.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "numbers below 2^20"
)]
fn filter_coefficients(panes: usize) -> Vec<i64> {
    // Of 1 / sqrt(1 - x): binom(2j, j) / 4^j.
    let mut root = vec![1.0];
    for j in 1..2 * panes {
        root.push(root[j - 1] * (2 * j - 1) as f64 / (2 * j) as f64);
    }
    let mut coefficients = Vec::with_capacity(2 * panes);
    for j in 0..2 * panes {
        // Times sqrt(1 - x^R) = 1 - x^R / 2 - ...
        let before = if j >= panes {
            root[j - panes] / 2.0
        } else {
            0.0
        };
        let damped = libm::exp(-(j as f64) / (6 * panes) as f64) * (root[j] - before);
        coefficients.push(libm::round(f64::from(1_u32 << BITS) * damped) as i64);
    }
    coefficients
}

#[expect(clippy::cast_precision_loss, reason = "figures to show")]
fn row_variances(panes: usize, coefficients: &[i64]) -> Vec<f64> {
    let rest: Vec<f64> = coefficients[1..]
        .iter()
        .rev()
        .map(|c| *c as f64 / f64::from(1_u32 << BITS))
        .collect();
    // Nothing before the first.
    let mut values = vec![0.0; rest.len()];
    let mut rows = Vec::new();
    let mut squared = 0.0;
    let mut lately = 0.0;
    for step in 0.. {
        let past: f64 = rest
            .iter()
            .zip(&values[step..])
            .map(|(c, value)| c * value)
            .sum();
        let value = f64::from(u8::from(step < panes)) - past;
        values.push(value);
        squared += value * value;
        lately += value * value;
        rows.push(squared);
        if (step + 1) % panes == 0 {
            if lately < 1e-9 * squared {
                break;
            }
            lately = 0.0;
        }
    }
    rows
}
