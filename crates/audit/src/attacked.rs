//! The findings of an attack on one release.

use serde::Serialize;

use super::evidence::AuditTest;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::grid::Span;

/// The findings of an attack.
#[derive(Clone, Debug, Serialize)]
pub struct AttackReport {
    pub release: String,
    /// The promise of one release of one window.
    pub promised: String,
    pub window: Span,
    pub noise: NoiseDistribution,
    /// Number of values that are released in the keys in which the streams differ, and how far the streams are apart
    /// in the norm of the noise, as a part of its scale.
    pub values: usize,
    pub change_in_scales: f64,
    /// Number of windows that were released of each of the two streams.
    pub windows: u64,
    pub seconds: f64,
    pub tests: Vec<AuditTest>,
    /// With the confidence of the tests, the error rates are those of no smaller epsilon, at delta 0.
    pub epsilon_at_least: f64,
    /// `None` where a tenth of the noise would pass, too.
    pub detects: Option<DetectableScale>,
    pub curve: Vec<ErrorRatePoint>,
}

/// The part of the scale from which on the error rates of the attacker, in that many windows, would have contradicted the promise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DetectableScale {
    /// Noise of this part of its declared scale, or less.
    pub scale: f64,
    /// The cost of a unit with that noise; `None` where the price says nothing about one window.
    pub cost: Option<f64>,
    /// `epsilon`, `rho`, or the `delta` at the promised epsilon.
    pub of: Option<&'static str>,
}

/// One threshold of the attacker, who says that the unit is there if the log likelihood ratio is above it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ErrorRatePoint {
    /// The part of wrong answers, without the unit and with it: measured, and calculated for the declared noise.
    pub false_positives: f64,
    pub false_negatives: f64,
    pub calculated_false_positives: f64,
    pub calculated_false_negatives: f64,
    /// The fewest false negatives that the promise allows beside the false positives that were measured.
    pub promised_false_negatives: f64,
}
