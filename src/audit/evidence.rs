//! What a test has found.

use serde::Serialize;

/// A test of the audit.
#[derive(Clone, Debug, Serialize)]
pub struct Test {
    /// What is held against what.
    pub what: String,
    pub verdict: Verdict,
    /// How far apart they are, and how far they may be before it is an alarm.
    pub found: f64,
    pub allowed: f64,
    /// Independent draws; none where it is a calculation.
    pub draws: u64,
    /// The probability of an alarm if nothing is wrong.
    pub alarm: f64,
    /// Noise of this part of its scale, or less, would have been noticed; `None` where the test says nothing about scales, or notices
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noticed: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Passed,
    Failed,
}

impl Verdict {
    pub fn of(is_right: bool) -> Self {
        if is_right { Verdict::Passed } else { Verdict::Failed }
    }
}

impl Test {
    pub fn has_failed(&self) -> bool {
        self.verdict == Verdict::Failed
    }
}

/// The largest factor below 1 that `distance` notices: at which it is at least `wanted`. `distance` falls as the factor rises to 1.
pub(super) fn noticed(wanted: f64, distance: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut seen, mut unseen) = (1e-3, 1.0);
    if distance(seen) < wanted {
        return None;
    }
    for _ in 0..24 {
        let middle = f64::midpoint(seen, unseen);
        if distance(middle) >= wanted { seen = middle } else { unseen = middle }
    }
    Some(seen)
}
