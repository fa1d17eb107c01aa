//! Overlapping windows in words.

use std::time::Duration;

use crate::settings::{Release, WindowKind};
use bernstream_synopsis::clock::show;

/// How the windows of a release overlap, and what that costs; nothing for tumbling windows.
pub fn shared(release: &Release, pane: Duration) -> Option<String> {
    let name = &release.name;
    let (what, paid) = match (release.window_kind, release.is_sum_of_panes()) {
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
            "a window pays once for all the sums that it is in, whose noise is not independent"
                .to_owned(),
        ),
    };
    Some(format!(
        "The release {name:?} {what}, published with every new window: {paid}."
    ))
}
