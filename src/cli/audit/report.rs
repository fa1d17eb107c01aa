//! What an audit found, as a document and in words.

use std::time::Duration;

use serde::Serialize;

use super::attack::AttackOutcome;
use super::ledger::{LedgerVerification, VerificationState};
use super::replay::{LargestChange, ReplayFindings};
use crate::cli::figures::three_digits;
use crate::cli::print::push_section;
use bernstream_audit::samplers::SamplerFindings;
use bernstream_audit::{AttackReport, AuditTest, Verdict};
use bernstream_synopsis::clock::Timestamp;

/// The report of an audit; the names of its fields are those of `--json`, which `docs/reference/audit.schema.json` describes.
#[derive(Clone, Debug, Serialize)]
pub struct AuditReport {
    pub format: u32,
    pub program: String,
    pub configuration: String,
    /// The digest of the normalised privacy settings, as in every synopsis.
    pub digest: String,
    pub audited: Timestamp,
    pub seed: u64,
    /// The time that it took, and that it was to take.
    pub seconds: f64,
    pub planned_seconds: f64,
    /// True if a signal ended it before that.
    pub ended_early: bool,
    pub passed: bool,
    /// Tests that have failed; none where everything passed.
    pub failed: Vec<String>,
    /// Parts that were not tested; none where everything was.
    pub left_out: Vec<String>,
    pub promise: Vec<String>,
    pub not_protected: Vec<String>,
    pub replay: ReplayFindings,
    pub samplers: Vec<SamplerFindings>,
    pub attacks: Vec<AttackOutcome>,
    pub ledger: LedgerVerification,
    pub cannot_show: Vec<String>,
}

impl AuditReport {
    /// Adds the verdict.
    #[must_use]
    pub fn with_verdict(mut self, took: Duration) -> Self {
        let violations = self.replay.violations.iter();
        let mut failed: Vec<String> = violations
            .map(|found| format!("replay of \"{}\": {}", found.pair, found.what))
            .collect();
        for one in &self.samplers {
            for test in one.tests.iter().filter(|test| test.has_failed()) {
                failed.push(format!("noise of {}: {}", one.of, test.what));
            }
        }
        for attacked in self.attacked() {
            for test in attacked.tests.iter().filter(|test| test.has_failed()) {
                failed.push(format!("attack on {}: {}", attacked.release, test.what));
            }
        }
        if self.ledger.state == VerificationState::Failed {
            let why = self.ledger.lines.last().map_or("", String::as_str);
            failed.push(format!("ledger and output: {why}"));
        }
        let pairs = self.replay.pairs.saturating_sub(self.replay.replayed);
        let attacks = self.attacks.len() - self.attacked().count();
        self.left_out = Vec::new();
        if pairs > 0 {
            self.left_out.push(format!("{pairs} pairs of streams"));
        }
        match attacks {
            0 => {}
            1 => self.left_out.push("an attack".to_owned()),
            _ => self.left_out.push(format!("{attacks} attacks")),
        }
        if matches!(
            self.ledger.state,
            VerificationState::NotVerified | VerificationState::Unreachable
        ) {
            self.left_out.push("the ledger".to_owned());
        }
        self.passed = failed.is_empty();
        self.failed = failed;
        self.seconds = took.as_secs_f64();
        self
    }

    /// The report as it is printed.
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        push_section(&mut text, "Promise", &self.promise);
        let ReplayFindings {
            changes,
            violations,
            ..
        } = &self.replay;
        let mut replays = vec![self.replays_in_words()];
        replays.extend(changes.iter().map(change_in_words));
        for found in violations {
            replays.push(format!("FAILED  {}: {}", found.pair, found.what));
        }
        push_section(
            &mut text,
            "Neighbouring streams, replayed with the same random numbers",
            &replays,
        );
        let noise: Vec<String> = self.samplers.iter().flat_map(sampler_in_words).collect();
        push_section(&mut text, "Noise", &noise);
        let attacks: Vec<String> = self.attacks.iter().flat_map(attack_in_words).collect();
        push_section(
            &mut text,
            "Attack: is the unit in the window that was released?",
            &attacks,
        );
        push_section(&mut text, "Ledger and output", &self.ledger.lines);
        push_section(&mut text, "What this cannot show", &self.cannot_show);
        push_section(&mut text, "Verdict", &self.verdict());
        text
    }

    /// Tells how many pairs were replayed, and whether anything differed.
    pub fn replays_in_words(&self) -> String {
        let ReplayFindings {
            pairs,
            replayed,
            violations,
            found_tables,
            ..
        } = &self.replay;
        let shape = match found_tables {
            0 => "shape",
            _ => "shape but for rows of keys that nobody listed",
        };
        match violations.as_slice() {
            [] => format!(
                "{replayed} of {pairs} pairs went through the worker itself: the two streams of each had the same control flow, \
                 schedule, {shape}, metrics and log"
            ),
            some => format!(
                "{replayed} of {pairs} pairs went through the worker itself: {} faults",
                some.len()
            ),
        }
    }

    fn attacked(&self) -> impl Iterator<Item = &AttackReport> {
        self.attacks.iter().filter_map(|outcome| match outcome {
            AttackOutcome::Attacked { attacked, .. } => Some(&**attacked),
            AttackOutcome::NotAttacked { .. } => None,
        })
    }

    /// Never plainly "passed" where something was left out.
    pub fn passed_in_words(&self) -> String {
        match self.left_out.as_slice() {
            [] => "passed".to_owned(),
            left_out => format!("passed what was run; left out: {}", left_out.join(", ")),
        }
    }

    /// Tells whether it passed, and how to repeat it.
    pub fn verdict(&self) -> Vec<String> {
        let of_noise: usize = self.samplers.iter().map(|one| one.tests.len()).sum();
        let of_attacks: usize = self.attacked().map(|attacked| attacked.tests.len()).sum();
        let tests = of_noise + of_attacks;
        let verdict = match self.failed.as_slice() {
            [] => self.passed_in_words(),
            failed => format!("FAILED: {}", failed.join("; ")),
        };
        let ended = match self.ended_early {
            true => format!(
                "ended by a signal after {:.0} of {:.0} s",
                self.seconds, self.planned_seconds
            ),
            false => format!("{:.0} s", self.seconds),
        };
        vec![
            verdict,
            format!(
                "{} pairs of streams and {tests} tests; if nothing is wrong, each test fails with a probability of 10^-9 at most",
                self.replay.replayed
            ),
            format!(
                "{ended}; --seed {} draws the same noise, for as many pairs and windows as there is time",
                self.seed
            ),
        ]
    }
}

/// The part of a release that has changed: the values, or what a private choice is made from.
pub fn part_of(change: &LargestChange) -> String {
    let variant = if change.variant > 0 {
        format!(", variant {}", change.variant + 1)
    } else {
        String::new()
    };
    format!("{}{variant}", change.of)
}

fn change_in_words(change: &LargestChange) -> String {
    format!(
        "{}, {}: the largest change was {:.3} of the declared sensitivity, for the pair \"{}\"",
        change.release,
        part_of(change),
        change.of_sensitivity,
        change.pair
    )
}

/// Names the noise that was drawn, and how often.
pub fn sampler_heading(one: &SamplerFindings) -> String {
    format!(
        "{}: {} noise of scale {} grid units on {} values, {} draws",
        one.of, one.noise, one.scale_in_grid_units, one.values, one.draws
    )
}

fn sampler_in_words(one: &SamplerFindings) -> Vec<String> {
    let mut lines = vec![sampler_heading(one)];
    lines.extend(one.tests.iter().map(test_in_words));
    lines
}

fn attack_in_words(outcome: &AttackOutcome) -> Vec<String> {
    match outcome {
        AttackOutcome::NotAttacked { release, why } => {
            vec![format!("{release}: not attacked: {why}")]
        }
        AttackOutcome::Attacked { pair, attacked } => {
            let mut lines = vec![format!(
                "{}: {} windows with the unit and {} without, of the pair \"{pair}\"",
                attacked.release, attacked.windows, attacked.windows
            )];
            lines.extend(attack_summary(attacked).map(|line| format!("  {line}")));
            lines.extend(attacked.tests.iter().map(test_in_words));
            lines
        }
    }
}

/// Tells what the attacker had to tell apart, what it achieved, and how weak the noise would have to be for it to break the promise.
pub fn attack_summary(attacked: &AttackReport) -> [String; 3] {
    let apart = format!(
        "with and without the unit, the {} values are {} of the scale of the {} noise apart",
        attacked.values,
        three_digits(attacked.change_in_scales),
        attacked.noise
    );
    let achieved = format!(
        "promised: {}; the attacker's error rates alone show that epsilon is {} or more",
        attacked.promised,
        three_digits(attacked.epsilon_at_least)
    );
    let detects = match attacked.detects {
        Some(detects) => {
            let cost = match (detects.cost, detects.of) {
                (Some(cost), Some(of)) => format!(", a real {of} of about {} or more", three_digits(cost)),
                _ => String::new(),
            };
            format!(
                "in as many windows, the error rates would break the promise for noise of {} of its declared scale or less{cost}",
                three_digits(detects.scale)
            )
        }
        None => {
            "in as many windows, even a tenth of the declared noise would not break the promise by the error rates \
                 alone"
                .to_owned()
        }
    };
    [apart, achieved, detects]
}

pub fn verdict_of(test: &AuditTest) -> &'static str {
    match test.verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "FAILED",
    }
}

fn test_in_words(test: &AuditTest) -> String {
    let verdict = verdict_of(test);
    let difference = three_digits(test.difference);
    let allowed = three_digits(test.allowed);
    if test.draws == 0 {
        return format!("  {verdict}  {}: {difference} of {allowed}", test.what);
    }
    let power = test
        .fails_at
        .map(|scale| format!("; fails for noise of {scale:.3} of its declared scale or less"));
    format!(
        "  {verdict}  {}: off by {difference}, allowed {allowed}{}",
        test.what,
        power.unwrap_or_default()
    )
}
