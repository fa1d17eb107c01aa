//! `windows` of a release.

use std::time::Duration;

use crate::file;
use crate::read::draft::ReleaseDraft;
use crate::read::schedule::Schedule;
use crate::settings::{Calibration, WindowKind};
use crate::text::{Checked, Document, Spanned, values};
use bernstream_noise::continual;
use bernstream_synopsis::clock::{format_duration, saturating_micros};
use bernstream_synopsis::description::KeyedCounts;

/// `windows` of a release, on the grid of `schedule`.
pub fn read_windowing(
    document: &mut Document<'_>,
    draft: &ReleaseDraft,
    schedule: &Schedule,
) -> Checked<WindowKind> {
    let Some(written) = &draft.windows else {
        return Ok(WindowKind::Tumbling);
    };
    let pane = schedule.grid.length();
    let kind = match written.get_ref() {
        file::WrittenWindowKind::Tumbling => return Ok(WindowKind::Tumbling),
        file::WrittenWindowKind::Hopping(length) => hopping(document, length, pane)?,
        file::WrittenWindowKind::Cumulative(length) => cumulative(document, length, pane)?,
    };
    can_be_summed(document, draft, written, kind)?;
    Ok(kind)
}

fn hopping(
    document: &mut Document<'_>,
    text: &Spanned<String>,
    pane: Duration,
) -> Checked<WindowKind> {
    match panes(document, text, pane)? {
        Some(panes) if panes > u64::from(continual::MOST_PANES) => {
            let what = format!(
                "spans {panes} windows of [windows], and at most {} can overlap",
                continual::MOST_PANES
            );
            Err(document.fault(text.span(), what, "make the windows of [windows] longer"))
        }
        Some(panes @ 2..) => Ok(WindowKind::Hopping {
            panes: u32::try_from(panes).unwrap_or(u32::MAX),
        }),
        Some(_) | None => {
            let what = format!(
                "must be a multiple of windows.length, {}, and at least twice as long",
                format_duration(pane)
            );
            let hint = "make the windows of [windows] shorter, or this longer";
            Err(document.fault(text.span(), what, hint))
        }
    }
}

fn cumulative(
    document: &mut Document<'_>,
    text: &Spanned<String>,
    pane: Duration,
) -> Checked<WindowKind> {
    match panes(document, text, pane)? {
        Some(horizon) => Ok(WindowKind::Cumulative { horizon }),
        None => {
            let what = format!(
                "must be a multiple of windows.length, {}",
                format_duration(pane)
            );
            let hint = "such as 30 times as long: the error is least for sums of this length, and a sum goes on after it";
            Err(document.fault(text.span(), what, hint))
        }
    }
}

/// Checks that a sum over panes is possible: only sums with one function for all panes have correlated noise. Other functions are
/// evaluated on the records of all panes together, and charge each pane again; the last several panes of a table by key are, too.
fn can_be_summed(
    document: &mut Document<'_>,
    draft: &ReleaseDraft,
    written: &Spanned<file::WrittenWindowKind>,
    kind: WindowKind,
) -> Checked<()> {
    let function = draft.function.get_ref();
    if !kind.is_sum_of_panes(&*function.target) {
        if let WindowKind::Cumulative { .. } = kind {
            let SumRefusal { what, hint } = sum_refusal(function.keyed_counts());
            return Err(document.fault(written.span(), what, hint));
        }
        return Ok(());
    }
    let hint = r#"remove it, or use windows = "tumbling""#;
    if let Some(place) = draft.choice_place() {
        let what = "is made anew for each window, but all windows of a sum need the same function";
        return Err(document.fault(place, what, hint));
    }
    if let Some(calibration) = &draft.calibration
        && *calibration.get_ref() == Calibration::Paper
    {
        let what = "is only for tumbling windows: the papers have no noise for sums of windows";
        return Err(document.fault(calibration.span(), what, hint));
    }
    Ok(())
}

/// The reason why windows of a function cannot be cumulative, and what to do.
struct SumRefusal {
    what: &'static str,
    hint: &'static str,
}

/// The refusal of a function that is no sum: `counts` are told where it is a table by key.
fn sum_refusal(counts: Option<&KeyedCounts>) -> SumRefusal {
    if has_part(counts, "ranges") {
        return SumRefusal {
            what: "is not for quantiles: they are of the values of a window, where a user has one value, and values of several windows do not add up",
            hint: r#"use "tumbling", or { hopping = "7d" }, which is computed anew for each window"#,
        };
    }
    if has_part(counts, "users") {
        return SumRefusal {
            what: "is not for users: somebody in two windows is one user of both, so users of windows do not add up",
            hint: r#"remove "users" from `of`, or use { hopping = "7d" }, which counts each user once and pays for every window anew"#,
        };
    }
    if has_part(counts, "caps") {
        return SumRefusal {
            what: "is not for told caps: somebody in two windows would count in both, with the keys of each by itself",
            hint: "remove `caps`, or tell them in a tumbling release of their own",
        };
    }
    SumRefusal {
        what: "is only for sums over records: densities, cells, moments and expressions, and records, sums, means and variances by key",
        hint: r#"use "tumbling", or { hopping = "24h" }"#,
    }
}

/// Tests that a table by key has something that a part of the price is for.
fn has_part(counts: Option<&KeyedCounts>, of: &str) -> bool {
    counts.is_some_and(|counts| counts.parts.iter().any(|part| part.of == of))
}

/// Number of panes that make up the length `text`; none if that is not a positive multiple of `pane`.
fn panes(
    document: &mut Document<'_>,
    text: &Spanned<String>,
    pane: Duration,
) -> Checked<Option<u64>> {
    let written = Some(text.clone());
    let length = document.required(&text.span(), "windows", written, values::positive_duration)?;
    let length = saturating_micros(*length.get_ref()).unsigned_abs();
    let pane = saturating_micros(pane).unsigned_abs();
    let is_whole = pane > 0 && length >= pane && length.is_multiple_of(pane);
    Ok(is_whole.then(|| length / pane))
}
