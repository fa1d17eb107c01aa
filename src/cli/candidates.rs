//! The candidates of `"auto"`, the selected one, and its expected error, in words.

use crate::cli::failure::Failure;
use crate::cli::figures::three_digits;
use crate::cli::settings;
use crate::config::{Candidate, Coordinates, Release, Selection, Settings};
use crate::mechanism::choice::Candidates;
use crate::synopsis::band::Band;
use crate::synopsis::description::{Basis, Recommended, Target};
use crate::synopsis::predict::{self, Expected};
use crate::synopsis::rough::Kind;

/// Candidates that are worse than the best by more than this are counted, not shown.
const MOST_TIMES: f64 = 5.0;

/// The candidates: the best of each kind of noise, and for a lattice the best order of each degree.
pub fn list(table: &Selection, release: &Release) -> Vec<String> {
    let (is_private, quantity) = (release.private_order.is_some(), &release.function.quantity);
    let mut lines = vec![
        format!("expected largest errors ({quantity}) {}", assumed(table)),
        format!(
            "  {:<17} {:<20} {:<8} {:<10} {:<14} {:<10} spread",
            "noise", "on", "values", "noise", "approximation", "both"
        ),
    ];
    if release.is_sum_of_panes() {
        lines.push("for a single window: the noise of its running sums is larger, see below".to_owned());
    }
    let best = best_of_each(&table.candidates);
    let shown = |candidate: &&Candidate| candidate.expected.spread <= MOST_TIMES * table.best.expected.spread;
    let is_taken = |candidate: &Candidate| candidate.choice() == table.taken.choice();
    let kept = (!best.iter().filter(shown).any(is_taken)).then_some(&table.taken);
    lines.extend(best.iter().filter(shown).chain(kept).map(|candidate| {
        let mark = if is_taken(candidate) { "*" } else { " " };
        let Candidate { noise, on, order, values, expected } = candidate;
        let on = match on {
            Coordinates::Lattice { degree } => format!("degree {degree}, order {order}"),
            Coordinates::Points { most } => format!("{most} points"),
            Coordinates::Cells(grid) => {
                let steps = grid.steps().iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
                format!("{steps} {} cells", grid.spline)
            }
            Coordinates::Tensor(counts) => format!("{:?} points", counts.along()),
        };
        let Expected { noise: drawn, approximation, error, spread } = *expected;
        let [drawn, approximation, error, spread] = [drawn, approximation, error, spread].map(three_digits);
        format!("{mark} {noise:<17} {on:<20} {values:<8} {drawn:<10} {approximation:<14} {error:<10} {spread}")
    }));
    lines.push(
        "in the last column half of the records lie in a cluster as wide as the kernel, or labels vary less; what is selected has \
         the smallest error there"
            .to_owned(),
    );
    let left_out = best.iter().filter(|candidate| !shown(candidate)).count();
    if left_out > 0 {
        lines.push(format!("  and {left_out} with more than {MOST_TIMES} times the error of the best"));
    }
    if matches!(release.function.about, Target::Sum(_)) {
        lines.push(
            "the shape of an expression is unknown: it is assumed to be a bump a quarter of the domain wide; the error of a finer \
             one is far larger, so choose its degree and order yourself"
                .to_owned(),
        );
    }
    let own = if is_private { "; each window chooses its own order" } else { "" };
    lines.push(match settings::kept(release) {
        Some(kept) => format!("* is in use: {kept}"),
        None => format!("* is selected; to fix this choice, write {}{own}", table.taken.written(&release.axes)),
    });
    lines
}

/// Of each noise and coordinates the best order.
fn best_of_each(candidates: &[Candidate]) -> Vec<Candidate> {
    let mut best: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        match best.iter_mut().find(|other| (other.noise, other.on) == (candidate.noise, candidate.on)) {
            None => best.push(*candidate),
            Some(other) if candidate.expected.spread < other.expected.spread => *other = *candidate,
            Some(_) => {}
        }
    }
    best
}

/// What the errors are predicted for.
fn assumed(table: &Selection) -> String {
    let records = table.expected_records;
    match table.rough.as_ref().map(|rough| rough.is) {
        Some(Kind::Bounded(_)) => format!(
            "of functions as rough as the kernel allows, for {records} records a window and key: means over the worst eighth"
        ),
        Some(Kind::Heap(_)) | None => {
            format!(
                "if all {records} records of a window and key are in one place: means over the worst eighth of places"
            )
        }
    }
}

/// The reading of the released values with the smallest predicted error.
///
/// # Errors
///
/// If the noise cannot be calibrated.
pub fn readings(
    table: &Selection,
    settings: &Settings,
    release: &Release,
    band: &Band,
) -> Result<Vec<String>, Failure> {
    let variant = settings.variant(release, &release.function, &Candidates::new(band.clone(), Vec::new()), false);
    let variant = variant.map_err(|e| Failure::Configuration(e.to_string()))?;
    let (about, target) = (variant.descriptions.first(), &release.function.target);
    if matches!(about.basis, Basis::Cells(_)) {
        return Ok(vec![of_cells(about.reading)]);
    }
    let readings = table.rough.as_ref();
    let readings = readings.and_then(|rough| predict::readings(about, rough, |noisy| target.publish(noisy)));
    let Some([published, smoothed]) = readings else { return Ok(Vec::new()) };
    let best = match smoothed < published {
        true => "`bernstream evaluate --by posterior` is expected to be more accurate",
        false => "plain `bernstream evaluate` is expected to be more accurate",
    };
    let quantity = &release.function.quantity;
    Ok(vec![format!(
        "expected largest error as published {}, smoothed by its posterior {} ({quantity}): {best}",
        three_digits(published),
        three_digits(smoothed)
    )])
}

fn of_cells(recommended: Option<Recommended>) -> String {
    match recommended {
        Some(reading) => format!(
            "the noise is large beside the records: `bernstream evaluate --by {reading}`, which smooths the counts and leaves none below \
             0, is expected to be more accurate; bands are those of plain `bernstream evaluate`"
        ),
        None => "plain `bernstream evaluate` is expected to be the most accurate".to_owned(),
    }
}
