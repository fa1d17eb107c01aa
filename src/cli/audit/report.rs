//! What an audit found, as a document and in words.

use std::time::Duration;

use serde::Serialize;

use super::ledger::{State, Verified};
use super::replay::Replayed;
use super::walk::Outcome;
use crate::audit::samplers::Sampled;
use crate::audit::{Test, Verdict};
use crate::cli::figures::three_digits;
use crate::cli::print::section;
use crate::clock::Timestamp;

/// The report of an audit; the names of its fields are those of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub format: u32,
    pub program: String,
    pub configuration: String,
    /// Of the normalised privacy settings, as in every synopsis.
    pub digest: String,
    pub audited: Timestamp,
    pub seed: u64,
    pub seconds: f64,
    pub passed: bool,
    /// What failed; nothing where everything passed.
    pub failed: Vec<String>,
    pub promise: Vec<String>,
    pub not_protected: Vec<String>,
    pub replay: Replayed,
    pub samplers: Vec<Sampled>,
    pub walks: Vec<Outcome>,
    pub ledger: Verified,
    pub cannot_show: Vec<String>,
}

impl Report {
    /// With its verdict.
    #[must_use]
    pub fn judged(mut self, took: Duration) -> Self {
        let violations = self.replay.violations.iter();
        let mut failed: Vec<String> =
            violations.map(|found| format!("replay of \"{}\": {}", found.pair, found.what)).collect();
        for one in &self.samplers {
            failed.extend(
                one.tests
                    .iter()
                    .filter(|test| test.has_failed())
                    .map(|test| format!("sampler of {}: {}", one.of, test.what)),
            );
        }
        for outcome in &self.walks {
            if let Outcome::Walked { walked, .. } = outcome {
                let tests = walked.tests.iter().filter(|test| test.has_failed());
                failed.extend(tests.map(|test| format!("walk of {}: {}", walked.release, test.what)));
            }
        }
        if self.ledger.state == State::Failed {
            let why = self.ledger.lines.last().map_or("", String::as_str);
            failed.push(format!("ledger and output: {why}"));
        }
        self.passed = failed.is_empty();
        self.failed = failed;
        self.seconds = took.as_secs_f64();
        self
    }

    /// As it is printed.
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        section(&mut text, "Promise", &self.promise);
        section(&mut text, "Neighbours, replayed with the noise frozen", &self.replays());
        section(&mut text, "Samplers", &self.samplers.iter().flat_map(of_sampler).collect::<Vec<_>>());
        section(
            &mut text,
            "The real walk, with the best attacker",
            &self.walks.iter().flat_map(of_walk).collect::<Vec<_>>(),
        );
        section(&mut text, "Ledger and output", &self.ledger.lines);
        section(&mut text, "What this cannot show", &self.cannot_show);
        section(&mut text, "Verdict", &self.verdict());
        text
    }

    /// What the replays found, a sentence each.
    pub fn replays(&self) -> Vec<String> {
        let Replayed { pairs, replayed, violations, changes } = &self.replay;
        let same = "through the worker itself: the same control flow, schedule, shape, metrics and log";
        let mut lines = vec![match violations.as_slice() {
            [] => format!("{replayed} of {pairs} pairs of neighbouring streams {same}"),
            some => format!("{replayed} of {pairs} pairs of neighbouring streams; {} faults", some.len()),
        }];
        lines.extend(changes.iter().map(|change| {
            let variant = if change.variant > 0 { format!(", variant {}", change.variant + 1) } else { String::new() };
            format!(
                "{}, {}{variant}: found {:.3} of the declared change, by \"{}\"",
                change.release, change.of, change.found_of_declared, change.pair
            )
        }));
        lines.extend(violations.iter().map(|found| format!("FAILED  {}: {}", found.pair, found.what)));
        lines
    }

    /// Never plainly "passed" where something was left out.
    pub fn passed_in_words(&self) -> String {
        let walks = self.walks.iter().filter(|outcome| matches!(outcome, Outcome::NotWalked { .. })).count();
        let pairs = self.replay.pairs.saturating_sub(self.replay.replayed);
        let left_out = [
            (pairs > 0).then(|| format!("{pairs} pairs of streams")),
            (walks > 0).then(|| format!("{walks} walks")),
            matches!(self.ledger.state, State::NotVerified | State::Unreachable).then(|| "the ledger".to_owned()),
        ];
        match left_out.into_iter().flatten().collect::<Vec<_>>().as_slice() {
            [] => "passed".to_owned(),
            left_out => format!("passed what was run; left out: {}", left_out.join(", ")),
        }
    }

    /// Whether it passed, and how to repeat it.
    pub fn verdict(&self) -> Vec<String> {
        let tests = self.samplers.iter().map(|one| one.tests.len()).sum::<usize>();
        let walked =
            |outcome: &Outcome| if let Outcome::Walked { walked, .. } = outcome { walked.tests.len() } else { 0 };
        let tests = tests + self.walks.iter().map(walked).sum::<usize>();
        let mut lines = vec![match self.failed.as_slice() {
            [] => format!(
                "{}: {} pairs and {tests} tests, each with a false alarm in 10^9 audits",
                self.passed_in_words(),
                self.replay.replayed
            ),
            failed => format!("FAILED: {}", failed.join("; ")),
        }];
        lines.push(format!(
            "{:.0} s; --seed {} draws the same noise, for as many pairs and windows as there is time",
            self.seconds, self.seed
        ));
        lines
    }
}

/// What was found of a sampler, a line each.
pub fn of_sampler(one: &Sampled) -> Vec<String> {
    let heading = format!(
        "{}: {} noise of scale {} grid units on {} values, {} draws",
        one.of, one.law, one.scale_in_grid_units, one.values, one.draws
    );
    std::iter::once(heading).chain(one.tests.iter().map(of_test)).collect()
}

/// What was found of a walk, a line each.
pub fn of_walk(outcome: &Outcome) -> Vec<String> {
    match outcome {
        Outcome::NotWalked { release, why } => vec![format!("{release}: not walked: {why}")],
        Outcome::Walked { pair, walked } => {
            let heading = format!(
                "{}: {} windows with the unit and {} without, of \"{pair}\"; their {} values are {} of the scale of the {} noise apart",
                walked.release,
                walked.runs,
                walked.runs,
                walked.values,
                three_digits(walked.change_in_scales),
                walked.law
            );
            let shown = format!(
                "  promised: {}; the attacker's success alone shows an epsilon of {} or more",
                walked.promised,
                three_digits(walked.epsilon_shown)
            );
            [heading, shown].into_iter().chain(walked.tests.iter().map(of_test)).collect()
        }
    }
}

fn of_test(test: &Test) -> String {
    let verdict = match test.verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "FAILED",
    };
    let (found, allowed) = (three_digits(test.found.max(0.0)), three_digits(test.allowed));
    if test.draws == 0 {
        return format!("  {verdict}  {}: {found} of {allowed}", test.what);
    }
    let power =
        test.noticed.map_or(String::new(), |factor| format!("; noise at {factor:.3} of its scale would be noticed"));
    format!("  {verdict}  {}: off by {found}, allowed {allowed}{power}", test.what)
}
