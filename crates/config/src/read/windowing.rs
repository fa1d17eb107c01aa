//! `windows` of a release.

use std::time::Duration;

use crate::file;
use crate::read::draft::ReleaseDraft;
use crate::read::schedule::Schedule;
use crate::settings::{Calibration, WindowKind};
use crate::text::{Checked, Document, Spanned, values};
use bernstream_noise::continual;
use bernstream_synopsis::clock::{micros, show};

/// `windows` of a release, on the grid of `schedule`.
pub fn windowing(
    document: &mut Document<'_>,
    draft: &ReleaseDraft,
    schedule: &Schedule,
) -> Checked<WindowKind> {
    let Some(written) = &draft.windows else {
        return Ok(WindowKind::Tumbling);
    };
    let pane = schedule.grid.length();
    let (text, is_hopping) = match written.get_ref() {
        file::WindowKind::Tumbling => return Ok(WindowKind::Tumbling),
        file::WindowKind::Hopping(length) => (length, true),
        file::WindowKind::Cumulative(length) => (length, false),
    };
    let length = document.required(
        &text.span(),
        "windows",
        Some(text.clone()),
        values::positive_duration,
    )?;
    let panes = panes(*length.get_ref(), pane);
    let over = match (is_hopping, panes) {
        (true, Some(panes)) if panes > u64::from(continual::MOST_PANES) => {
            let what = format!(
                "spans {panes} windows of [windows], and at most {} can overlap",
                continual::MOST_PANES
            );
            return Err(document.fault(text.span(), what, "make the windows of [windows] longer"));
        }
        (true, Some(panes @ 2..)) => WindowKind::Hopping {
            panes: u32::try_from(panes).unwrap_or(u32::MAX),
        },
        (false, Some(horizon)) => WindowKind::Cumulative { horizon },
        (true, _) => {
            let what = format!(
                "must be a multiple of windows.length, {}, and at least twice as long",
                show(pane)
            );
            let hint = "make the windows of [windows] shorter, or this longer";
            return Err(document.fault(text.span(), what, hint));
        }
        (false, None) => {
            let what = format!("must be a multiple of windows.length, {}", show(pane));
            return Err(document.fault(text.span(), what, ""));
        }
    };
    sums(document, draft, written, over)
}

/// Checks that a sum over panes is possible: only sums over records with one function for all panes have correlated noise.
/// Other functions are evaluated on the records of all panes together, and charge each pane again.
fn sums(
    document: &mut Document<'_>,
    draft: &ReleaseDraft,
    written: &Spanned<file::WindowKind>,
    over: WindowKind,
) -> Checked<WindowKind> {
    let is_sum = draft.function.get_ref().target.is_sum();
    if let (WindowKind::Cumulative { .. }, false) = (over, is_sum) {
        let what = "is only for sums over records: densities, cells, moments and expressions";
        return Err(document.fault(
            written.span(),
            what,
            r#"use "tumbling", or { hopping = "24h" }"#,
        ));
    }
    if let (true, Some(place)) = (is_sum, draft.choice_place()) {
        let what = "is made anew for each window, but all windows of a sum need the same function";
        return Err(document.fault(place, what, r#"remove it, or use windows = "tumbling""#));
    }
    if let (true, Some(calibration)) = (is_sum, &draft.calibration)
        && *calibration.get_ref() == Calibration::Paper
    {
        let what = "is only for tumbling windows: the papers have no noise for sums of windows";
        return Err(document.fault(
            calibration.span(),
            what,
            r#"remove it, or use windows = "tumbling""#,
        ));
    }
    Ok(over)
}

/// How many panes make up `length`; none if `length` is not a positive multiple of `pane`.
fn panes(length: Duration, pane: Duration) -> Option<u64> {
    let length = micros(length).unsigned_abs();
    let pane = micros(pane).unsigned_abs();
    (pane > 0 && length >= pane && length.is_multiple_of(pane)).then(|| length / pane)
}
