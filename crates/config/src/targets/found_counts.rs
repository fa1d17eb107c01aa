//! `[release.counts]` of keys that nobody listed.

use std::ops::Range;
use std::sync::Arc;

use crate::settings::ReleasedFunction;
use crate::targets::context::{DeclaredSearch, DeclaredUnits, ReadTarget};
use crate::targets::counts::{CountedName, Table, unit_caps};
use crate::text::{Checked, Document, Spanned};
use bernstream_functions::found_key_counts::FoundKeyCounts;
use bernstream_functions::key_counts::CountedStatistic;
use bernstream_release::window::{FoundKeyCounting, RankKey};
use bernstream_release::{Target, ValueScaling};
use bernstream_synopsis::KeyStatistic;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::description;
use bernstream_synopsis::description::{KeyedCounts, PricePart};

/// `[release.counts]` where `input.key.found` finds the keys.
pub struct FoundCounts<'a> {
    written: &'a Table,
    search: &'a DeclaredSearch,
    declared: &'a DeclaredUnits<'a>,
}

impl<'a> FoundCounts<'a> {
    pub fn new(
        written: &'a Table,
        search: &'a DeclaredSearch,
        declared: &'a DeclaredUnits<'a>,
    ) -> Self {
        FoundCounts {
            written,
            search,
            declared,
        }
    }

    /// The number of users, or of records where each is a unit, of every key that is found.
    pub fn read(
        &self,
        document: &mut Document<'_>,
        place: &Range<usize>,
        of: &Spanned<Vec<CountedName>>,
        law: NoiseDistribution,
    ) -> Checked<ReadTarget> {
        let FoundCounts {
            written,
            search,
            declared,
        } = self;
        let (name, statistic, counted) = match declared.has_users {
            true => (
                CountedName::Users,
                KeyStatistic::Users,
                CountedStatistic::Users,
            ),
            false => (
                CountedName::Records,
                KeyStatistic::Records,
                CountedStatistic::Records,
            ),
        };
        if *of.get_ref() != [name] {
            let what = format!(
                "keys that nobody listed are found by their number of {0}, and nothing else is told of them",
                name.name()
            );
            let hint = format!(
                "write of = [\"{}\"], or list the keys in input.key.values",
                name.name()
            );
            return Err(document.fault(of.span(), what, hint));
        }
        if law != NoiseDistribution::DiscreteLaplace {
            let what = "keys are found with Laplace noise, and with no other";
            return Err(document.fault(place.clone(), what, "remove `noise` from [release]"));
        }
        refuse_others(document, written)?;
        let caps = unit_caps(document, place, written, declared, &[counted])?;
        let limit = candidates(document, search, declared)?;
        let counting = FoundKeyCounting {
            max_keys: caps.max_keys,
            longest: search.settings.longest as usize,
            limit,
            ranks: RankKey::for_pipeline(declared.pipeline),
        };
        let about = KeyedCounts {
            max_keys: caps.max_keys,
            max_records: caps.max_records,
            per_user: None,
            value: None,
            quantiles: None,
            parts: vec![PricePart {
                of: name.name().to_owned(),
                part: 1.0,
            }],
        };
        let built = FoundKeyCounts::new(counting, statistic, search.settings.most);
        let target: Arc<dyn Target> = Arc::new(built);
        let unit = match declared.has_users {
            true => "different users",
            false => "records",
        };
        Ok(ReleasedFunction {
            quantity: "of each column".to_owned(),
            scaling: ValueScaling::of_target(&*target),
            about: description::TargetDescription::Counts(about),
            feature: None,
            meaning: format!(
                "{unit} of each {} that was found",
                declared.columns.join(" and ")
            ),
            target,
        }
        .into())
    }
}

/// Refuses what only listed keys can have.
fn refuse_others(document: &mut Document<'_>, written: &Table) -> Checked<()> {
    let what = "is for listed keys, and these are found";
    let hint = "remove it, or list the keys in input.key.values";
    if let Some(parts) = &written.parts {
        return Err(document.fault(parts.span(), what, hint));
    }
    if let Some(caps) = &written.caps {
        return Err(document.fault(caps.span(), what, hint));
    }
    if let Some(sums) = &written.per_user {
        return Err(document.fault(sums.span(), what, hint));
    }
    Ok(())
}

/// The limit on different keys, which only records have.
fn candidates(
    document: &mut Document<'_>,
    search: &DeclaredSearch,
    declared: &DeclaredUnits<'_>,
) -> Checked<Option<u32>> {
    match search.settings.candidates {
        Some(_) if declared.has_users => {
            let what = "`candidates` has no effect: the keys of a window are at most max_keys of each user";
            Err(document.fault(search.place.clone(), what, "remove `candidates`"))
        }
        limit => Ok(limit),
    }
}
