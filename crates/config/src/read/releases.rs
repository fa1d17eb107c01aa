//! `[privacy]`, and every release under it.

use std::collections::HashSet;
use std::ops::Range;

use crate::file;
use crate::read::draft::ReleaseDraft;
use crate::read::{pricing, privacy, release};
use crate::recorded::Recorded;
use crate::select::Terms;
use crate::settings::{Privacy, most_values};
use crate::text::{Checked, Document, Field, Spanned};
use bernstream_synopsis::grid::Grid;

/// The place of the whole document, which has no table header.
pub const ROOT: Range<usize> = 0..0;

/// The largest message that Kafka accepts by default: the smaller of the defaults of producers and brokers.
pub const MESSAGE_LIMIT: usize = 1_000_000;

/// `[privacy]`, and every release under it.
pub fn privacy_and_releases(
    document: &mut Document<'_>,
    privacy: Field<file::Privacy>,
    releases: Field<file::Releases>,
    grid: Option<Grid>,
    to_kafka: bool,
    recorded: Option<&Recorded>,
) -> (Checked<Privacy>, Checked<Vec<ReleaseDraft>>) {
    let privacy = document
        .required(&ROOT, "privacy", privacy, Ok)
        .and_then(|t| privacy::privacy(document, t, recorded));
    let terms = privacy
        .as_ref()
        .map_err(|reported| *reported)
        .map(|privacy| Terms {
            adjacency: privacy.adjacency,
            contributions: privacy.unit.contributions(),
            most_values: if to_kafka {
                most_values(MESSAGE_LIMIT)
            } else {
                usize::MAX
            },
        });
    let releases = document
        .required(&ROOT, "release", releases, Ok)
        .and_then(|written| {
            let place = written.span();
            let mut several = match written.into_inner() {
                file::Releases::One(one) => vec![Spanned::new(place, *one)],
                file::Releases::Several(several) if several.is_empty() => {
                    return Err(document.missing(place, "release"));
                }
                file::Releases::Several(several) => several,
            };
            let mut names = HashSet::new();
            for name in several
                .iter()
                .filter_map(|release| release.get_ref().name.as_ref())
            {
                if !names.insert(name.get_ref()) {
                    document.fault(
                        name.span(),
                        "is already the name of another release",
                        "each release needs its own name",
                    );
                }
            }
            // Every release before the first `?`, so that the faults of all are recorded.
            let prices = pricing::pricing(
                document,
                &mut several,
                privacy.as_ref().map_err(|reported| *reported),
                grid,
            );
            let each = several.into_iter().zip(prices);
            let drafts: Vec<_> = each
                .map(|(one, paying)| release::release(document, one, terms, paying, recorded))
                .collect();
            drafts.into_iter().collect()
        });
    (privacy, releases)
}
