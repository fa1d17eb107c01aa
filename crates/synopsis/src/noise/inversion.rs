//! Quantiles of symmetric distributions from their characteristic functions.

use std::f64::consts::PI;

/// Probability that a quantile exceeds.
pub(super) const LEVEL: f64 = 0.95;
/// Steps of an integral, in turns over so many standard deviations, and the most of them.
const DEVIATIONS: f64 = 80.0;
const MOST_STEPS: usize = 40_000;
/// Bound below which the rest of a characteristic function is left out.
const NEGLIGIBLE: f64 = 1e-8;

pub(super) fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

/// The smallest `x`, up to 80, that is exceeded with probability at most 5 %.
pub(super) fn quantile(exceeds: impl Fn(f64) -> f64) -> f64 {
    let mut low = 0.0;
    let mut high = DEVIATIONS;
    while high - low > 1e-5 {
        let middle = (low + high) / 2.0;
        if exceeds(middle) > 1.0 - LEVEL {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

/// A symmetric law of variance 1: its characteristic function over `u` at the midpoints of even steps.
pub(super) struct SymmetricLaw(Vec<f64>);

impl SymmetricLaw {
    const STEP: f64 = PI / DEVIATIONS;

    pub fn new(law: impl Fn(f64) -> f64, envelope: impl Fn(f64) -> f64) -> Self {
        let mut parts = Vec::new();
        for step in 0..MOST_STEPS {
            let u = (step as f64 + 0.5) * Self::STEP;
            if envelope(u) > NEGLIGIBLE {
                parts.push(law(u) / u);
            } else {
                break;
            }
        }
        SymmetricLaw(parts)
    }

    /// `P[|X| > x] = 1 - (2 / pi) integral_0^inf phi(u) sin(u x) / u du`. Even steps of `h` fold the law into
    /// `2 pi / h`, 160 deviations: beyond half of that there is nothing.
    pub fn exceeds(&self, x: f64) -> f64 {
        if x > DEVIATIONS {
            return 0.0;
        }
        let mut sum = 0.0;
        for (step, part) in self.0.iter().enumerate() {
            sum += part * ((step as f64 + 0.5) * Self::STEP * x).sin();
        }
        1.0 - 2.0 / PI * Self::STEP * sum
    }
}

/// A value of a discrete law.
pub(super) struct Atom {
    pub value: f64,
    pub probability: f64,
}

/// The Gamma law of this shape as some hundred values with their probabilities.
pub(super) fn gamma_law(shape: f64) -> Vec<Atom> {
    const PARTS: usize = 100;
    let low = (shape - 7.0 * shape.sqrt()).max(0.0);
    let high = shape + 7.0 * shape.sqrt() + 20.0;
    let mode = (shape - 1.0).max(f64::MIN_POSITIVE);
    let mut atoms = Vec::with_capacity(PARTS);
    for part in 0..PARTS {
        let value = low + (high - low) * (part as f64 + 0.5) / PARTS as f64;
        let log = (shape - 1.0) * (value / mode).ln() - (value - mode);
        atoms.push(Atom {
            value,
            probability: log.exp(),
        });
    }
    let mass: f64 = atoms.iter().map(|atom| atom.probability).sum();
    for atom in &mut atoms {
        atom.probability /= mass;
    }
    atoms
}
