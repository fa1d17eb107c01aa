//! The findings of a test.

use serde::Serialize;

use super::tally::largest_difference;

/// A test of the audit.
#[derive(Clone, Debug, Serialize)]
pub struct AuditTest {
    /// A sentence that says what is held against what.
    pub what: String,
    pub verdict: Verdict,
    /// The distance between them, and the largest one before the test fails.
    pub difference: f64,
    pub allowed: f64,
    /// Independent draws; none where it is a calculation.
    pub draws: u64,
    /// The probability, at most, with which it fails a correct program.
    pub false_alarm: f64,
    /// Noise of this part of its declared scale, or less, would have failed; `None` where the test says nothing about scales, or
    /// would fail none.
    pub fails_at: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Passed,
    Failed,
}

impl Verdict {
    pub fn from_result(is_right: bool) -> Self {
        if is_right {
            Verdict::Passed
        } else {
            Verdict::Failed
        }
    }
}

impl AuditTest {
    /// A test of a distance that chance lets be `allowed` at most.
    pub(super) fn of_distance(
        what: &str,
        difference: f64,
        allowed: f64,
        draws: u64,
        false_alarm: f64,
    ) -> Self {
        AuditTest {
            what: what.to_owned(),
            verdict: Verdict::from_result(difference <= allowed),
            difference,
            allowed,
            draws,
            false_alarm,
            fails_at: None,
        }
    }

    pub fn has_failed(&self) -> bool {
        self.verdict == Verdict::Failed
    }
}

/// The largest factor of the scale of a law, `up_to` in closed form, at which it is at least `wanted` from its own values `expected` at
/// some thresholds.
pub(super) fn scale_fails_at(
    wanted: f64,
    thresholds: &[f64],
    expected: &[f64],
    up_to: impl Fn(f64) -> f64,
) -> Option<f64> {
    fails_at(wanted, |factor| {
        let shrunk: Vec<f64> = thresholds.iter().map(|x| up_to(x / factor)).collect();
        largest_difference(&shrunk, expected)
    })
}

/// The largest factor below 1 at which `distance` is at least `wanted`. `distance` falls as the factor rises to 1.
fn fails_at(wanted: f64, distance: impl Fn(f64) -> f64) -> Option<f64> {
    let mut fails = 1e-3;
    let mut passes = 1.0;
    if distance(fails) < wanted {
        return None;
    }
    for _ in 0..24 {
        let middle = f64::midpoint(fails, passes);
        if distance(middle) >= wanted {
            fails = middle
        } else {
            passes = middle
        }
    }
    Some(fails)
}
