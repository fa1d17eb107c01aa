//! What a release speaks of: one window, the last several, or all so far.

use std::time::Duration;

use serde::Serialize;
use toml::Spanned;

use crate::clock::{micros, show};
use crate::config::document::Document;
use crate::config::release::Stage;
use crate::config::sections::{Found, Schedule};
use crate::config::{Calibration, Release, file, forms};
use crate::mechanism::continual;

/// The windows that a synopsis speaks of; the windows of the grid are its panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    /// A pane.
    Tumbling,
    /// The last panes, at least two.
    Hopping { panes: u32 },
    /// All panes since the sum began. Its error is kept small for so many.
    Cumulative { horizon: u64 },
}

impl WindowKind {
    /// The same for correlated noise; none for a pane alone.
    pub fn series(self) -> Option<continual::WindowKind> {
        match self {
            WindowKind::Tumbling => None,
            WindowKind::Hopping { panes } => Some(continual::WindowKind::Hopping { panes }),
            WindowKind::Cumulative { .. } => Some(continual::WindowKind::Cumulative),
        }
    }

    pub fn horizon(self) -> u64 {
        match self {
            WindowKind::Cumulative { horizon } => horizon,
            WindowKind::Tumbling | WindowKind::Hopping { .. } => 1,
        }
    }
}

/// `windows` of a release, on the grid of `schedule`.
pub fn settle(document: &mut Document<'_>, stage: &Stage, schedule: &Schedule) -> Found<WindowKind> {
    let Some(written) = &stage.windows else { return Ok(WindowKind::Tumbling) };
    let pane = schedule.grid.length();
    let (text, is_hopping) = match written.get_ref() {
        file::WindowKind::Tumbling => return Ok(WindowKind::Tumbling),
        file::WindowKind::Hopping(length) => (length, true),
        file::WindowKind::Cumulative(length) => (length, false),
    };
    let length = document.required(&text.span(), "windows", Some(text.clone()), forms::positive_duration)?;
    let panes = panes(*length.get_ref(), pane);
    let over = match (is_hopping, panes) {
        (true, Some(panes)) if panes > u64::from(continual::MOST_PANES) => {
            let what = format!("has {panes} windows of [windows], and at most {} can overlap", continual::MOST_PANES);
            return Err(document.fault(text.span(), what, "make the windows of [windows] longer"));
        }
        (true, Some(panes @ 2..)) => WindowKind::Hopping { panes: u32::try_from(panes).unwrap_or(u32::MAX) },
        (false, Some(horizon)) => WindowKind::Cumulative { horizon },
        (true, _) => {
            let what = format!("must be two or more whole windows of [windows], which are {} long", show(pane));
            let hint = "make the windows of [windows] shorter, or this longer";
            return Err(document.fault(text.span(), what, hint));
        }
        (false, None) => {
            let what = format!("must be a whole number of windows of [windows], which are {} long", show(pane));
            return Err(document.fault(text.span(), what, ""));
        }
    };
    sums(document, stage, written, over)
}

/// What takes correlated noise: sums over records, one function for all panes. Other functions are evaluated on the records
/// of all panes together, and charge each of them again.
fn sums(
    document: &mut Document<'_>,
    stage: &Stage,
    written: &Spanned<file::WindowKind>,
    over: WindowKind,
) -> Found<WindowKind> {
    let is_sum = stage.function.get_ref().target.is_sum();
    if let (WindowKind::Cumulative { .. }, false) = (over, is_sum) {
        let what = "is for sums over records: densities, moments and expressions";
        return Err(document.fault(written.span(), what, r#"take "tumbling", or { hopping = "24h" }"#));
    }
    let choice =
        [stage.private_bandwidths.as_ref().map(Spanned::span), stage.private_order.as_ref().map(Spanned::span)];
    if let (true, Some(place)) = (is_sum, choice.into_iter().flatten().next()) {
        let what = "is made for each window anew, and the windows of a sum have one function";
        return Err(document.fault(place, what, r#"leave it out, or take windows = "tumbling""#));
    }
    if let (true, Some(calibration)) = (is_sum, &stage.calibration)
        && *calibration.get_ref() == Calibration::Paper
    {
        let what = "is for one window: the papers have no noise for several";
        return Err(document.fault(calibration.span(), what, r#"leave it out, or take windows = "tumbling""#));
    }
    Ok(over)
}

/// How many of `pane` make up `length`; none where that is no whole number from 1.
fn panes(length: Duration, pane: Duration) -> Option<u64> {
    let (length, pane) = (micros(length).unsigned_abs(), micros(pane).unsigned_abs());
    (pane > 0 && length >= pane && length.is_multiple_of(pane)).then(|| length / pane)
}

/// What the windows of a release share, and what that costs; nothing where it speaks of one window.
pub fn in_words(release: &Release, pane: Duration) -> Option<String> {
    let name = &release.name;
    let (what, paid) = match (release.over, release.is_sum_of_panes()) {
        (WindowKind::Tumbling, _) => return None,
        (WindowKind::Hopping { panes }, is_sum) => {
            let length = show(pane.saturating_mul(panes));
            let what = match is_sum {
                true => format!("is a sum over the last {panes} windows, {length} together"),
                false => format!("is computed from the last {panes} windows together, {length}"),
            };
            let paid = match is_sum {
                true => "a window pays once for all the sums that it is in, whose noise is not independent".to_owned(),
                false => "it is paid for anew each time, by every block that it reads".to_owned(),
            };
            (what, paid)
        }
        (WindowKind::Cumulative { .. }, _) => (
            "is a sum over all windows since it began".to_owned(),
            "a window pays once for all the sums that it is in, whose noise is not independent".to_owned(),
        ),
    };
    Some(format!("The release {name:?} {what}, published with every new window: {paid}."))
}
