//! Sums of losses, by a Fourier transform of their tilted laws.

use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use super::grid::{GridStep, MOST_POINTS, Pmf, RELATIVE, SumBounds, TAIL, tilted_bounds};
use super::privacy_loss::RepeatedLoss;

/// The sum of many losses, its law tilted by `exp(tilt L)`: what matters is then of the size of 1, and rounding too.
///
/// Mass at `i h` for `i` in a window of `n` points from `lowest` on, computed modulo `n`. What lies below the window, or comes
/// around from above it, is found at a larger loss than its own or is counted twice: delta only grows. What lies above is
/// bounded and added.
pub(super) struct ComposedLoss {
    step: f64,
    tilt: f64,
    /// `ln` of the mean of `exp(tilt L)`.
    log_moment: f64,
    lowest: i64,
    masses: Vec<f64>,
    /// The tilted mass above the window, at most.
    above: f64,
    /// The Euclidean norm of the error of `masses`, at most.
    error: f64,
    /// The mass at an infinite loss, not tilted.
    beyond: f64,
    /// Logarithm of the factor with which everything computed is to be multiplied, at least.
    log_factor: f64,
}

/// A unit in the last place, halved.
const UNIT: f64 = f64::EPSILON / 2.0;

impl ComposedLoss {
    /// Good for epsilons from `least` on, and from the bound below the tilted sum if that is less. `None` where the window
    /// would be too large.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "counts and points, far below 2^53"
    )]
    pub fn new(parts: &[RepeatedLoss], grid: GridStep, tilt: f64, least: f64) -> Option<Self> {
        let step = grid.step;
        let mut losses = Vec::with_capacity(parts.len());
        for part in parts {
            let pmf = Pmf::new(part.law, grid);
            losses.push(GridLoss {
                moment: pmf.log_moment(tilt, step),
                count: part.count,
                pmf,
            });
        }
        let log_moment: f64 = losses
            .iter()
            .map(|loss| loss.count as f64 * loss.moment)
            .sum();
        let first: i128 = losses
            .iter()
            .map(|loss| i128::from(loss.pmf.lowest) * i128::from(loss.count))
            .sum();
        let last: i128 = losses
            .iter()
            .map(|loss| i128::from(loss.pmf.highest()) * i128::from(loss.count))
            .sum();
        let SumBounds { low, high } = tilted_bounds(parts, tilt, |shift| {
            total_log_moment(&losses, tilt + shift, step) - log_moment
        });
        let highest = last.min(libm::ceil(high / step) as i128);
        // One point more, as the place of epsilon is rounded.
        let needed = first
            .max(libm::floor(low / step) as i128)
            .min(libm::floor(least / step) as i128 - 1)
            .min(highest);
        let longest = losses.iter().map(|loss| loss.pmf.masses.len()).max()?;
        let length = usize::try_from(highest - needed + 1)
            .ok()?
            .max(longest)
            .max(2);
        if length as f64 > 4.0 * MOST_POINTS {
            return None;
        }
        let length = length.next_power_of_two();
        let TransformedLaw { sum, norm } = transform_losses(&losses, step, tilt, length)?;
        // Index 0 of the transform is the point `first`; the window ends with `highest`.
        let lowest = highest - length as i128 + 1;
        let start = usize::try_from((lowest - first).rem_euclid(length as i128)).ok()?;
        let masses = [&sum[start..], &sum[..start]].concat();
        let relative: f64 = losses
            .iter()
            .map(|loss| {
                let size = tilt * loss.pmf.farthest(step) + loss.moment.abs() + 1.0;
                loss.count as f64 * (RELATIVE + 8.0 * UNIT * size)
            })
            .sum();
        let window = (lowest as f64).abs().max((highest as f64).abs()) * step;
        let log_factor = relative + 8.0 * UNIT * (tilt * window + log_moment.abs() + length as f64);
        Some(ComposedLoss {
            step,
            tilt,
            log_moment,
            lowest: i64::try_from(lowest).ok()?,
            masses,
            above: if highest == last { 0.0 } else { TAIL * 1.001 },
            error: error_of_masses(parts, length, norm),
            beyond: losses
                .iter()
                .map(|loss| loss.pmf.beyond * loss.count as f64)
                .sum(),
            log_factor,
        })
    }

    /// At least the delta at `epsilon`; 1 below the window.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "points, far below 2^53"
    )]
    pub fn delta(&self, epsilon: f64) -> f64 {
        let below = libm::floor(epsilon / self.step) as i64 - 1;
        if below < self.lowest {
            return 1.0;
        }
        let mut sum = 0.0;
        let mut squares = 0.0;
        let skipped = usize::try_from(below - self.lowest).unwrap_or(usize::MAX);
        for (i, mass) in (self.lowest..).zip(&self.masses).skip(skipped) {
            let place = i as f64 * self.step;
            let over = place - epsilon;
            // The place is rounded; a larger one weighs more.
            let over_at_most = over + 4.0 * UNIT * place.abs();
            if over_at_most <= 0.0 {
                continue;
            }
            let weight = -libm::expm1(-over_at_most) * libm::exp(-self.tilt * over.max(0.0));
            if weight < 1e-290 {
                break;
            }
            sum += weight * mass;
            squares += weight * weight;
        }
        let highest = (self.lowest + self.masses.len() as i64 - 1) as f64 * self.step;
        let above = self.above * libm::exp(-self.tilt * (highest - epsilon));
        // What the sum left out.
        let rest = 1e-280;
        let tilted = sum + above + self.error * libm::sqrt(squares * (1.0 + 1e-9)) + rest;
        tilted * libm::exp(self.log_moment - self.tilt * epsilon + self.log_factor) + self.beyond
    }
}

/// A loss on the grid.
struct GridLoss {
    pmf: Pmf,
    /// Number of releases that have it.
    count: u64,
    /// `ln` of the mean of `exp(tilt L)`.
    moment: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts, far below 2^53")]
fn total_log_moment(losses: &[GridLoss], tilt: f64, step: f64) -> f64 {
    losses
        .iter()
        .map(|loss| loss.count as f64 * loss.pmf.log_moment(tilt, step))
        .sum()
}

/// Bound of the Euclidean norm of the error of the masses.
///
/// Each of the two transforms has a relative error of 8u (log2 n + 2) at most (`[Hig02]`, theorem 24.2, for powers of
/// two), in the Euclidean norm; a power of a number of modulus 1 at most multiplies an error with its exponent.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and points, far below 2^53"
)]
fn error_of_masses(parts: &[RepeatedLoss], length: usize, norm: f64) -> f64 {
    let count: f64 = parts.iter().map(|part| part.count as f64).sum();
    let transform_error = 8.0 * UNIT * ((length as f64).log2() + 2.0);
    let compounded = (count * transform_error * (length as f64).sqrt() * norm).exp();
    transform_error * (count + 1.0) * norm * compounded
}

/// The tilted law of a sum modulo a length.
struct TransformedLaw {
    /// Its first point is at index 0.
    sum: Vec<f64>,
    /// The largest norm of a part.
    norm: f64,
}

fn transform_losses(
    losses: &[GridLoss],
    step: f64,
    tilt: f64,
    length: usize,
) -> Option<TransformedLaw> {
    let mut planner = RealFftPlanner::<f64>::new();
    let forward = planner.plan_fft_forward(length);
    let inverse = planner.plan_fft_inverse(length);
    let mut product = vec![Complex::new(1.0, 0.0); length / 2 + 1];
    let mut largest: f64 = 0.0;
    for GridLoss { pmf, count, moment } in losses {
        let mut tilted = vec![0.0; length];
        for (i, (to, mass)) in (pmf.lowest..).zip(tilted.iter_mut().zip(&pmf.masses)) {
            *to = mass * libm::exp(tilt * (i as f64 * step) - moment);
        }
        largest = largest.max(tilted.iter().map(|mass| mass * mass).sum::<f64>().sqrt());
        let mut spectrum = forward.make_output_vec();
        forward.process(&mut tilted, &mut spectrum).ok()?;
        for (to, value) in product.iter_mut().zip(spectrum) {
            *to *= complex_power(value, *count);
        }
    }
    // Of a real law these are real.
    product[0].im = 0.0;
    product[length / 2].im = 0.0;
    let mut sum = inverse.make_output_vec();
    inverse.process(&mut product, &mut sum).ok()?;
    for mass in &mut sum {
        // No true mass is negative.
        *mass = (*mass / length as f64).max(0.0);
    }
    Some(TransformedLaw { sum, norm: largest })
}

fn complex_power(mut base: Complex<f64>, mut exponent: u64) -> Complex<f64> {
    let mut result = Complex::new(1.0, 0.0);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::privacy_loss::PrivacyLoss;
    use super::*;

    /// Randomised response, tilted, is a binomial law: by products from its mode, to the last digits.
    fn binomial(count: usize, chance: f64) -> Vec<f64> {
        let mode = (count as f64 * chance) as usize;
        let odds = chance / (1.0 - chance);
        let mut masses = vec![0.0; count + 1];
        masses[mode] = 1.0;
        for k in mode..count {
            masses[k + 1] = masses[k] * (count - k) as f64 / (k + 1) as f64 * odds;
        }
        for k in (0..mode).rev() {
            masses[k] = masses[k + 1] * (k + 1) as f64 / (count - k) as f64 / odds;
        }
        let sum: f64 = masses.iter().sum();
        masses.iter().map(|mass| mass / sum).collect()
    }

    #[test]
    fn the_error_term_is_above_the_error_of_the_transform() {
        for (t, count, tilt) in [
            (0.0625, 1000, 0.5),
            (0.5, 100, 2.0),
            (0.015_625, 4096, 5.0),
            (0.1, 100_000, 0.2),
        ] {
            let grid = GridStep { step: t };
            let parts = [RepeatedLoss {
                law: PrivacyLoss::Response(t),
                count: count as u64,
            }];
            let composed = ComposedLoss::new(&parts, grid, tilt, f64::INFINITY).unwrap();
            let chance = 1.0 / (1.0 + (-2.0 * t * (tilt + 0.5)).exp());
            let exact = binomial(count, chance);
            let mass = |i: i64| {
                let ups = i + count as i64;
                if ups % 2 == 0 {
                    exact.get((ups / 2) as usize).copied().unwrap_or(0.0)
                } else {
                    0.0
                }
            };
            let points = (composed.lowest..).zip(&composed.masses);
            let error: f64 = points
                .map(|(i, found)| (found - mass(i)).powi(2))
                .sum::<f64>()
                .sqrt();
            println!(
                "{t}, {count} times: an error of {error:.1e}, at most {:.1e}",
                composed.error
            );
            assert!(
                error < composed.error,
                "{t} {count}: {error} {}",
                composed.error
            );
            // Of use: a small part of the law.
            assert!(composed.error < 1e-6, "{}", composed.error);
        }
    }
}
