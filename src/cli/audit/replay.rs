//! Adversarial neighbours, replayed with the same random numbers.

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::progress::WorkDone;
use bernstream_audit as audit;
use bernstream_audit::compare::{ComparedPart, LargestShift};
use bernstream_audit::{AuditSubject, Deadline, NeighbouringPair};

/// Findings of the replays.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayFindings {
    /// Number of pairs for this configuration, and of those that there was time for.
    pub pairs: usize,
    pub replayed: usize,
    /// Changes that the promise rules out, with the pair that showed them.
    pub violations: Vec<Violation>,
    pub changes: Vec<LargestChange>,
    /// Pairs of tables of keys that nobody listed, and those of them whose rows were not compared.
    #[serde(skip)]
    pub found_tables: usize,
    #[serde(skip)]
    pub uncompared_tables: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    pub pair: String,
    pub what: String,
}

/// The largest change that was found of one part of a release.
#[derive(Clone, Debug, Serialize)]
pub struct LargestChange {
    pub release: String,
    /// Its place in the plan.
    #[serde(skip)]
    pub place: usize,
    /// `values`, or what a private choice is made from.
    pub of: &'static str,
    /// The variant of a private choice of bandwidths.
    pub variant: usize,
    pub found_in_grid_units: f64,
    /// The declared sensitivity.
    pub sensitivity_in_grid_units: u64,
    /// The change as a part of the sensitivity.
    pub of_sensitivity: f64,
    pub pair: String,
}

/// Pairs that are replayed however little time there is.
const LEAST: u32 = 4;

/// Replays `pairs` until there are no more, or until `deadline`, and counts them in `done`. Under random differential privacy a change
/// beyond the declared one is no fault: it may happen, with a probability that is stated.
///
/// # Errors
///
/// If a replay could not be carried out.
pub fn replay_pairs(
    subject: &AuditSubject<'_>,
    pairs: &[NeighbouringPair],
    seed: u64,
    is_random: bool,
    deadline: &Deadline,
    done: &WorkDone,
) -> Result<ReplayFindings, Failure> {
    let mut begun = 0;
    let report = audit::run_pairs(subject, pairs, seed, || {
        done.set(u64::from(begun), pairs.len() as u64);
        begun += 1;
        !deadline.is_stopped() && (begun <= LEAST || !deadline.is_over())
    })
    .map_err(|error| Failure::Other(error.to_string()))?;
    let beyond = if is_random { Vec::new() } else { report.beyond };
    let violations = report.violations.into_iter().chain(beyond);
    let changes = report.largest.iter();
    Ok(ReplayFindings {
        pairs: pairs.len(),
        replayed: report.pairs,
        found_tables: report.found_tables,
        uncompared_tables: report.uncompared_tables,
        violations: violations
            .map(|(pair, what)| Violation { pair, what })
            .collect(),
        changes: changes
            .map(|((place, part), largest)| LargestChange::new(subject, *place, part, largest))
            .collect(),
    })
}

impl LargestChange {
    fn new(
        subject: &AuditSubject<'_>,
        place: usize,
        part: &ComparedPart,
        largest: &LargestShift,
    ) -> Self {
        let release = subject
            .plan
            .releases
            .get(place)
            .map(|release| release.description().release.clone());
        let of = match part {
            ComparedPart::Values { .. } => "values",
            ComparedPart::Counts => "the counts that bandwidths are chosen from",
            ComparedPart::Scores { .. } => "the scores that an order is chosen from",
            ComparedPart::DifferentKeys => "the number of different keys",
        };
        let variant = match part {
            ComparedPart::Values { variant } | ComparedPart::Scores { variant } => *variant,
            ComparedPart::Counts | ComparedPart::DifferentKeys => 0,
        };
        LargestChange {
            release: release.unwrap_or_default(),
            place,
            of,
            variant,
            found_in_grid_units: largest.found,
            sensitivity_in_grid_units: largest.declared,
            of_sensitivity: largest.share_of_declared(),
            pair: largest.pair.clone(),
        }
    }
}
