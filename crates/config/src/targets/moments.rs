//! `[release.moments]`: sums of cosines over the records, for queries.

use std::ops::Range;

use crate::text::Spanned;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::settings::ReleasedFunction;
use crate::targets::context::{FrequencyPlan, ReadTarget, TargetContext, built_target};
use crate::text::{Checked, Document, Field, values};
use bernstream_functions::moments::CosineMoments;
use bernstream_release::ValueScaling;
use bernstream_synopsis::description;
use bernstream_synopsis::moments;
use bernstream_synopsis::query;
use bernstream_synopsis::query::MOST_SMOOTHNESS;

/// a table such as { frequencies = 16 } or { smoothness = 4 }
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// a whole number from 1, such as 16: cosines of each axis
    #[schemars(range(min = 1))]
    pub frequencies: Field<u32>,
    /// a whole number from 1 to 32, such as 4: how many derivatives queries will have
    #[schemars(range(min = 1, max = 32))]
    pub smoothness: Field<u32>,
}

pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    written: Table,
) -> Checked<ReadTarget> {
    if let Some(label) = context.label {
        return Err(document.fault(
            label.span(),
            "moments have no label: every column is an axis",
            "remove it",
        ));
    }
    let axes = context.axes.len();
    let has_frequencies = written.frequencies.is_some();
    if has_frequencies == written.smoothness.is_some() {
        let keys = ["frequencies", "smoothness"];
        return Err(document.not_one_of(place.clone(), &keys, has_frequencies));
    }
    let frequencies = if has_frequencies {
        document.required(place, "frequencies", written.frequencies, values::count)?
    } else {
        let smoothness =
            document.required(place, "smoothness", written.smoothness, |smoothness| {
                match smoothness {
                    1..=MOST_SMOOTHNESS => Ok(smoothness),
                    _ => Err(format!("must be from 1 to {MOST_SMOOTHNESS}")),
                }
            })?;
        let most = moments::most_frequencies(axes);
        let chosen = match context.planned {
            Some(FrequencyPlan { records, epsilon }) => {
                query::frequencies(axes, *smoothness.get_ref(), records, epsilon, most)
            }
            // A price that is at fault has been told.
            None => 1,
        };
        Spanned::new(smoothness.span(), chosen)
    };
    let place = frequencies.span();
    let frequencies = frequencies.into_inner();
    let target = built_target(document, &place, CosineMoments::new(axes, frequencies))?;
    Ok(ReleasedFunction {
        meaning: format!(
            "sums over the records of products of cosines of the angles of {}, {frequencies} an axis, the first the number of \
             records: ask `bernstream query` what any smooth function adds up to",
            context.columns_in_words()
        ),
        quantity: "of a sum of cosines over the records".to_owned(),
        about: description::TargetDescription::Moments(description::Moments { frequencies }),
        scaling: ValueScaling::of_target(&*target),
        feature: None,
        target,
    }
    .into())
}
