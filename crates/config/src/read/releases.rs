//! `[privacy]`, and every release under it.

use std::collections::HashSet;
use std::ops::Range;

use crate::file;
use crate::read::draft::ReleaseDraft;
use crate::read::key_values::KeySettings;
use crate::read::{as_checked, pricing, privacy, release};
use crate::recorded::RecordedSettings;
use crate::select::ChoiceTerms;
use crate::settings::{PrivacySettings, PrivacyUnit, most_values};
use crate::targets::{DeclaredSearch, DeclaredUnits};
use crate::text::{Checked, Document, Field, Spanned};
use bernstream_synopsis::grid::SpanGrid;

/// The place of the whole document, which has no table header.
pub const ROOT: Range<usize> = 0..0;

/// The largest message that Kafka accepts by default: the smaller of the defaults of producers and brokers.
pub const MESSAGE_LIMIT: usize = 1_000_000;

/// The only key where none is declared.
const ALL_RECORDS: &[String] = &[String::new()];

/// The two sections as written, and what else of the file they depend on.
pub struct WrittenReleases<'a> {
    pub privacy: Field<file::PrivacyTable>,
    pub releases: Field<file::Releases>,
    /// `None` if it has a fault.
    pub grid: Option<SpanGrid>,
    pub to_kafka: bool,
    /// Other sections that functions follow from; `None` if one has a fault.
    pub input: Option<DeclaredInput<'a>>,
}

/// Other sections that functions follow from: counts by key, and votes of users.
#[derive(Clone, Copy)]
pub struct DeclaredInput<'a> {
    pub pipeline: &'a str,
    pub key: Option<&'a KeySettings>,
}

/// `[privacy]`, and every release under it.
pub struct PrivateReleases {
    pub privacy: Checked<PrivacySettings>,
    pub drafts: Checked<Vec<ReleaseDraft>>,
}

/// Reads `[privacy]`, and every release under it.
pub fn privacy_and_releases(
    document: &mut Document<'_>,
    written: WrittenReleases<'_>,
    recorded: Option<&RecordedSettings>,
) -> PrivateReleases {
    let has_records = written.releases.as_ref().is_none_or(keeps_records);
    let privacy = document
        .required(&ROOT, "privacy", written.privacy, Ok)
        .and_then(|table| privacy::read_privacy(document, table, has_records, recorded));
    let terms = match &privacy {
        Ok(privacy) => Ok(ChoiceTerms {
            adjacency: privacy.adjacency,
            contributions: privacy.unit.most_contributions(),
            most_values: if written.to_kafka {
                most_values(MESSAGE_LIMIT)
            } else {
                usize::MAX
            },
        }),
        Err(reported) => Err(*reported),
    };
    let declared = declared_units(privacy.as_ref().ok(), written.input);
    let drafts = listed_releases(document, written.releases).and_then(|mut releases| {
        let privacy = as_checked(&privacy);
        let prices = pricing::read_pricing(document, &mut releases, privacy, written.grid);
        // Every release before the first `?`, so that the faults of all are recorded.
        let mut drafts = Vec::new();
        for (release, price) in releases.into_iter().zip(prices) {
            drafts.push(release::read_release(
                document,
                release,
                terms,
                price,
                declared.as_ref(),
                recorded,
            ));
        }
        drafts.into_iter().collect()
    });
    PrivateReleases { privacy, drafts }
}

/// Returns whether a release keeps records, of which a user has a limited number: counts by key have caps of their own.
fn keeps_records(releases: &Spanned<file::Releases>) -> bool {
    match releases.get_ref() {
        file::Releases::One(release) => release.counts_by_key().is_none(),
        file::Releases::Several(several) => several
            .iter()
            .any(|release| release.get_ref().counts_by_key().is_none()),
    }
}

/// The keys, and whether units are users; `None` where what that follows from has a fault.
fn declared_units<'a>(
    privacy: Option<&PrivacySettings>,
    input: Option<DeclaredInput<'a>>,
) -> Option<DeclaredUnits<'a>> {
    let DeclaredInput { pipeline, key } = input?;
    let unit = &privacy?.unit;
    let found = key.and_then(|key| key.found.as_ref());
    Some(DeclaredUnits {
        pipeline,
        columns: key.map_or(&[], |key| &key.columns),
        keys: key.map_or(ALL_RECORDS, |key| &key.values),
        has_users: matches!(unit, PrivacyUnit::User { .. }),
        search: found.map(|found| DeclaredSearch {
            settings: found.get_ref().for_unit(unit),
            place: found.span(),
        }),
    })
}

/// The tables of all releases, each with a name of its own.
fn listed_releases(
    document: &mut Document<'_>,
    written: Field<file::Releases>,
) -> Checked<Vec<Spanned<file::Release>>> {
    let written = document.required(&ROOT, "release", written, Ok)?;
    let place = written.span();
    let releases = match written.into_inner() {
        file::Releases::One(one) => vec![Spanned::new(place, *one)],
        file::Releases::Several(several) if several.is_empty() => {
            return Err(document.missing(place, "release"));
        }
        file::Releases::Several(several) => several,
    };
    let mut names = HashSet::new();
    for release in &releases {
        if let Some(name) = &release.get_ref().name
            && !names.insert(name.get_ref())
        {
            document.fault(
                name.span(),
                "is already the name of another release",
                "each release needs its own name",
            );
        }
    }
    Ok(releases)
}
