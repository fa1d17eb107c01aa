//! The candidates of `"auto"`, the selected one, and its expected error, in words.

use crate::cli::failure::Failure;
use crate::cli::figures::{join_numbers, three_digits};
use crate::cli::{settings, units};
use bernstream_config::{
    Coordinates, NoiseCandidate, NoiseSelection, ReleaseSettings, WorkerSettings,
};
use bernstream_release::choice::Candidates;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::description::{Basis, Cells, Recommended, TargetDescription};
use bernstream_synopsis::predict;
use bernstream_synopsis::predict::ExpectedErrors;
use bernstream_synopsis::rough::WorstCaseKind;

/// The best candidate of each kind of noise, which of them is selected and why, and what its total error stays within.
pub fn candidates_in_words(table: &NoiseSelection, release: &ReleaseSettings) -> Vec<String> {
    let quantity = units::quantity_of_release(release);
    // A selection has been made for them.
    let records = release.expected_records.unwrap_or_default();
    let AssumedFunctions { ordinary, roughest } = match &release.function.about {
        TargetDescription::Cells(Cells { label: Some(_) }) => AssumedFunctions {
            ordinary: format!(
                "{records} records of a window and key, spread evenly over the domain: the noise"
            ),
            roughest: "the same, and labels that change from bound to bound within a kernel"
                .to_owned(),
        },
        _ => assumed_functions(table, records),
    };
    let mut lines = vec![
        format!(
            "the best of each kind of noise: what it is added to, on how many values, and the largest error to expect ({quantity})"
        ),
        format!("  for ordinary functions: {ordinary}"),
        format!("  for the roughest: {roughest}"),
        format!(
            "  {:<18} {:<24} {:<8} {:<10} roughest",
            "noise", "added to", "values", "ordinary"
        ),
    ];
    let mut best = best_of_each(&table.candidates);
    let taken = table.taken.choice();
    if !best.iter().any(|candidate| candidate.choice() == taken) {
        best.push(table.taken);
    }
    best.sort_by(|a, b| a.expected.spread.total_cmp(&b.expected.spread));
    for candidate in &best {
        let mark = if candidate.choice() == taken {
            "*"
        } else {
            " "
        };
        let NoiseCandidate {
            noise,
            on,
            order,
            values,
            expected,
        } = candidate;
        let on = match on {
            Coordinates::Lattice { degree } => format!("degree {degree}, order {order}"),
            Coordinates::Points { most } => format!("{most} points"),
            Coordinates::Cells(grid) => {
                format!(
                    "{} {} cells",
                    join_numbers(grid.steps(), " x "),
                    grid.spline
                )
            }
            Coordinates::Tensor(counts) => {
                format!("{} points", join_numbers(counts.along(), " x "))
            }
        };
        let [ordinary, roughest] = [expected.spread, expected.error].map(three_digits);
        lines.push(format!(
            "{mark} {:<18} {on:<24} {values:<8} {ordinary:<10} {roughest}",
            noise.to_string()
        ));
    }
    lines.extend(reason_in_words(table, release, &best));
    lines.extend(total_error_in_words(table, release));
    lines
}

/// The best candidate of each kind of noise.
fn best_of_each(candidates: &[NoiseCandidate]) -> Vec<NoiseCandidate> {
    let mut best: Vec<NoiseCandidate> = Vec::new();
    for candidate in candidates {
        match best.iter_mut().find(|other| other.noise == candidate.noise) {
            None => best.push(*candidate),
            Some(other) if candidate.expected.spread < other.expected.spread => *other = *candidate,
            Some(_) => {}
        }
    }
    best
}

/// Tells what is selected and why; `best` is ordered.
fn reason_in_words(
    table: &NoiseSelection,
    release: &ReleaseSettings,
    best: &[NoiseCandidate],
) -> Vec<String> {
    if let Some(kept) = settings::kept_choice(release) {
        return vec![format!("* is in use: {kept}")];
    }
    let own = if release.private_order.is_some() {
        "; each window chooses its own order"
    } else {
        ""
    };
    let ahead = match best {
        [_, second, ..] => {
            let times = three_digits(second.expected.spread / table.taken.expected.spread);
            format!(
                ", where the best of {:?} noise has {times} times as much",
                second.noise.to_string()
            )
        }
        _ => String::new(),
    };
    vec![
        format!("* is selected: the smallest error of ordinary functions{ahead}"),
        format!(
            "to fix this choice, write {}{own}",
            table.taken.keys_in_file(&release.axes, &release.function)
        ),
    ]
}

/// The errors of what is in use.
fn total_error_in_words(table: &NoiseSelection, release: &ReleaseSettings) -> Vec<String> {
    if let TargetDescription::Cells(Cells { label: Some(_) }) = &release.function.about {
        let within = three_digits(table.taken.expected.within);
        let quantity = units::quantity_of_release(release);
        return vec![
            format!(
                "error of noise and form where records are spread evenly: within {within} {quantity} everywhere in most windows"
            ),
            "where there are fewer records the error grows in proportion, and the interval of a reading says so"
                .to_owned(),
        ];
    }
    let ExpectedErrors {
        noise,
        approximation,
        within,
        ..
    } = table.taken.expected;
    let [noise, form, within] = [noise, approximation, within].map(three_digits);
    let quantity = units::quantity_of_release(release);
    // Of cells it is that of the worst place in a cell.
    let at_most = if matches!(table.taken.on, Coordinates::Cells(_)) {
        "at most "
    } else {
        ""
    };
    let mut lines = vec![format!(
        "total error, of noise and form: within {within} {quantity} everywhere in at least 9 of 10 windows, even of the roughest functions, \
         where the noise alone is off by {noise} in the mean and the form alone by {at_most}{form}"
    )];
    if matches!(
        table.rough.as_ref().map(|rough| rough.is),
        Some(WorstCaseKind::Bounded(_))
    ) {
        lines.push(
            "these errors are bounds: what is fitted to records is smoother than the functions that they are predicted for".to_owned(),
        );
    }
    if release.is_sum_of_panes() {
        lines.push(
            "all this is of a single window: the noise of its running sums is larger, see below"
                .to_owned(),
        );
    }
    if matches!(release.function.about, TargetDescription::Sum(_)) {
        lines.push(
            "the shape of an expression is unknown: it is assumed to be a bump a quarter of the domain wide; the error of a finer \
             one is far larger, so choose its degree and order yourself"
                .to_owned(),
        );
    }
    lines
}

/// The functions that errors are predicted for, in words.
struct AssumedFunctions {
    ordinary: String,
    roughest: String,
}

fn assumed_functions(table: &NoiseSelection, records: u64) -> AssumedFunctions {
    match table.rough.as_ref().map(|rough| rough.is) {
        Some(WorstCaseKind::Bounded(_)) => AssumedFunctions {
            ordinary: "sums of kernels of either sign, wider by the root of 2".to_owned(),
            roughest: "sums of kernels of either sign, up to the bounds of the label; the mean over the worst eighth".to_owned(),
        },
        Some(WorstCaseKind::Alternating { .. }) => AssumedFunctions {
            ordinary: format!(
                "{records} evenly spaced records a window and key, whose labels change from bound to bound every 4 to 12 bandwidths"
            ),
            roughest: "the same, every 2 to 6 bandwidths; the mean over the worst eighth".to_owned(),
        },
        Some(WorstCaseKind::Heap(_) | WorstCaseKind::Cluster(_)) | None => AssumedFunctions {
            ordinary: format!(
                "a part of the {records} records of a window and key, from half to all, in a cluster as wide as the kernel, the others \
                 anywhere"
            ),
            roughest: "all of them in one place; the mean over the worst eighth of places".to_owned(),
        },
    }
}

/// The reading of the released values with the smallest predicted error.
///
/// # Errors
///
/// If the noise cannot be calibrated.
pub fn reading_advice(
    table: &NoiseSelection,
    settings: &WorkerSettings,
    release: &ReleaseSettings,
    band: &Band,
) -> Result<Vec<String>, Failure> {
    let variant = settings.release_variant(
        release,
        &release.function,
        &Candidates::new(band.clone(), Vec::new()),
        false,
    );
    let variant = variant.map_err(|e| Failure::Configuration(e.to_string()))?;
    let about = variant.descriptions.first();
    let target = &release.function.target;
    if matches!(about.basis, Basis::Cells(_)) {
        return Ok(vec![reading_of_cells(about.reading)]);
    }
    let readings = table.rough.as_ref();
    let readings = readings
        .and_then(|rough| predict::reading_errors(about, rough, |noisy| target.publish(noisy)));
    let Some([published, smoothed]) = readings else {
        return Ok(Vec::new());
    };
    let best = match smoothed < published {
        true => "`bernstream evaluate --by posterior` is expected to be more accurate",
        false => "plain `bernstream evaluate` is expected to be more accurate",
    };
    let quantity = units::quantity_of_release(release);
    Ok(vec![format!(
        "expected largest error as published {}, smoothed by its posterior {} ({quantity}): {best}",
        three_digits(published),
        three_digits(smoothed)
    )])
}

fn reading_of_cells(recommended: Option<Recommended>) -> String {
    match recommended {
        Some(reading) => format!(
            "the noise is large beside the records: `bernstream evaluate --by {reading}`, which smooths the counts and leaves none below \
             0, is expected to be more accurate; bands are those of plain `bernstream evaluate`"
        ),
        None => "plain `bernstream evaluate` is expected to be the most accurate".to_owned(),
    }
}
