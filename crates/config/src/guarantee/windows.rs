//! Overlapping windows in words.

use std::time::Duration;

use crate::settings::{ReleaseSettings, WindowKind};
use bernstream_synopsis::clock::format_duration;

/// A sentence about how the windows of a release overlap, and what that costs; none for tumbling windows.
pub fn overlap_sentence(release: &ReleaseSettings, pane: Duration) -> Option<String> {
    let name = &release.name;
    let mut paid =
        "a window pays once for all the sums that it is in, whose noise is not independent";
    let what = match release.window_kind {
        WindowKind::Tumbling => return None,
        WindowKind::Hopping { panes } => {
            let length = format_duration(pane.saturating_mul(panes));
            if release.is_sum_of_panes() {
                format!("is a sum over the last {panes} windows, {length} together")
            } else {
                paid = "it is paid for anew each time, by every block that it reads";
                format!("is computed from the last {panes} windows together, {length}")
            }
        }
        WindowKind::Cumulative { .. } => "is a sum over all windows since it began".to_owned(),
    };
    Some(format!(
        "The release {name:?} {what}, published with every new window: {paid}."
    ))
}
