//! The table of a comparison, and what it recommends.

use crate::cli::comparison::axes_of_release;
use crate::cli::comparison::reading::ComparedReading;
use crate::cli::comparison::trial::{ComparedRelease, MeanError, MeasuredErrors};
use crate::cli::figures::three_digits;
use bernstream_config::ReleaseSettings;
use bernstream_release::window::RecordLabel;

/// A line of the table.
pub struct ComparisonLine<'c> {
    pub contender: &'c ComparedRelease,
    pub reading: &'c ComparedReading,
    pub measured: MeasuredErrors,
}

/// The errors that lines are ordered by. A reading that tells classes alone comes after all that tell a probability.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Rank {
    error: f64,
    wrong: f64,
}

/// The best of the lines that differ in a free number and in their reading alone; of the file's own release every reading.
pub fn best_of_each(lines: Vec<ComparisonLine<'_>>) -> Vec<ComparisonLine<'_>> {
    let mut best: Vec<ComparisonLine<'_>> = Vec::new();
    for line in lines {
        let is_own = line.contender.lines.is_none();
        let title = &line.contender.title;
        match best
            .iter_mut()
            .find(|other| !is_own && other.contender.title == *title)
        {
            Some(other) if line.rank() < other.rank() => *other = line,
            Some(_) => {}
            None => best.push(line),
        }
    }
    best.sort_by(|a, b| {
        let (a, b) = (a.rank(), b.rank());
        let by_error = a.error.total_cmp(&b.error);
        by_error.then(a.wrong.total_cmp(&b.wrong))
    });
    best
}

impl ComparisonLine<'_> {
    fn rank(&self) -> Rank {
        Rank {
            error: mean_or_infinity(self.measured.error),
            wrong: mean_or_infinity(self.measured.wrong),
        }
    }

    fn name(&self) -> String {
        format!("{}, by {}", self.contender.title, self.reading.name())
    }
}

fn mean_or_infinity(error: Option<MeanError>) -> f64 {
    error.map_or(f64::INFINITY, |error| error.mean)
}

pub fn table_in_words(lines: &[ComparisonLine<'_>], label: &RecordLabel) -> Vec<String> {
    let has_classes = !matches!(label, RecordLabel::Number(_));
    let titles = lines.iter().map(|line| line.contender.title.len());
    let readings = lines.iter().map(|line| line.reading.name().len());
    let widths = ColumnWidths {
        title: titles.max().unwrap_or(0).max(8),
        reading: readings.max().unwrap_or(0).max(7),
    };
    let wrong = if has_classes { "wrong" } else { "" };
    let mut text = vec![widths.row(
        " ",
        ["function", "read by", "error", "without noise", wrong],
    )];
    for (number, line) in lines.iter().enumerate() {
        let MeasuredErrors {
            error,
            wrong,
            without_noise,
        } = &line.measured;
        let mark = if number == 0 { "*" } else { " " };
        let quiet = without_noise.map_or("-".to_owned(), three_digits);
        let wrong = if has_classes {
            with_deviation(*wrong)
        } else {
            String::new()
        };
        text.push(widths.row(
            mark,
            [
                &line.contender.title,
                &line.reading.name(),
                &with_deviation(*error),
                &quiet,
                &wrong,
            ],
        ));
    }
    text.push(
        "error +- its standard deviation by the noise that was drawn; every call draws anew"
            .to_owned(),
    );
    text
}

/// Widths of those columns of the table whose words differ in length.
struct ColumnWidths {
    title: usize,
    reading: usize,
}

impl ColumnWidths {
    fn row(&self, mark: &str, [function, read_by, error, quiet, wrong]: [&str; 5]) -> String {
        let ColumnWidths { title, reading } = self;
        format!("{mark} {function:<title$}  {read_by:<reading$}  {error:<20} {quiet:<14} {wrong}")
            .trim_end()
            .to_owned()
    }
}

fn with_deviation(error: Option<MeanError>) -> String {
    let Some(MeanError { mean, deviation }) = error else {
        return "-".to_owned();
    };
    // Less than the last digit of a float is none.
    let deviation = if deviation < 1e-12 * mean {
        0.0
    } else {
        deviation
    };
    format!("{} +- {}", three_digits(mean), three_digits(deviation))
}

/// The least error, how far it is ahead, and what to write.
pub fn recommendation(
    lines: &[ComparisonLine<'_>],
    release: &ReleaseSettings,
    label: &RecordLabel,
) -> Vec<String> {
    let Some((best, others)) = lines.split_first() else {
        return Vec::new();
    };
    let against = others
        .iter()
        .find(|other| !std::ptr::eq(other.contender, best.contender))
        .map(|next| {
            let apart = match is_ahead(judged_by(best), judged_by(next)) {
                true => "",
                false => ", which may be the noise alone",
            };
            format!(
                ", against {} of {}{apart}",
                three_digits(judged_by(next).mean),
                next.name()
            )
        });
    let least = three_digits(judged_by(best).mean);
    let against = against.unwrap_or_default();
    let mut text = vec![format!(
        "* is recommended: {}: its error is the least, {least}{against}",
        best.name()
    )];
    if let Some(fewest) = lines
        .iter()
        .min_by(|a, b| a.rank().wrong.total_cmp(&b.rank().wrong))
        && let (Some(least), Some(more)) = (fewest.measured.wrong, best.measured.wrong)
        && is_ahead(least, more)
    {
        text.push(format!(
            "where only the class matters, the fewest are wrong of {}",
            fewest.name()
        ));
    }
    match &best.contender.lines {
        Some(written) => {
            text.push(
                "to take it, write in [release], in place of its function, noise and size:"
                    .to_owned(),
            );
            text.extend(
                written
                    .lines()
                    .filter(|line| !line.is_empty())
                    .map(|line| format!("  {line}")),
            );
        }
        None => text.push("the file has it".to_owned()),
    }
    text.push(format!(
        "and read it by {}",
        best.reading.command(label, &axes_of_release(release))
    ));
    text
}

/// The error that a line is judged by.
fn judged_by(line: &ComparisonLine<'_>) -> MeanError {
    line.measured
        .error
        .or(line.measured.wrong)
        .unwrap_or(MeanError {
            mean: f64::NAN,
            deviation: f64::NAN,
        })
}

/// Tells whether the least is less by more than their noise makes likely.
fn is_ahead(least: MeanError, more: MeanError) -> bool {
    let variance = least.deviation * least.deviation + more.deviation * more.deviation;
    more.mean - least.mean > 2.0 * variance.sqrt()
}
