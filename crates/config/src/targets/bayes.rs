//! `[release.bayes]`: a score for two classes, from the density of each.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::settings::{Feature, Height};
use crate::targets::context::{ReadTarget, TargetContext, built, class};
use crate::targets::lengths::per_axis;
use crate::targets::wording::score;
use crate::text::{Checked, Document, Field, Spanned, each};
use bernstream_functions::bayes::gaussian::GaussianBayes;
use bernstream_functions::bayes::kernel::KernelBayes;
use bernstream_synopsis::description::Method;

/// a table [release.bayes]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// a list such as [1, 200], a number above 0 for each axis, in the units of its column
    #[schemars(transform = each(json!({
        "description": "a number above 0 in the units of the column, such as 1",
        "exclusiveMinimum": 0,
    })))]
    pub bandwidths: Field<Vec<Spanned<f64>>>,
    /// a list such as [1, 200], a number above 0 for each axis, in the units of its column
    #[schemars(transform = each(json!({
        "description": "a number above 0 in the units of the column, such as 1",
        "exclusiveMinimum": 0,
    })))]
    pub min_deviations: Field<Vec<Spanned<f64>>>,
}

pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    written: Table,
) -> Checked<ReadTarget> {
    let label = class(document, context, place);
    let (target, method, widths) = match (written.bandwidths, written.min_deviations) {
        (bandwidths @ Some(_), None) => {
            let bandwidths = per_axis(document, context, place, "bandwidths", bandwidths)?;
            let widths = context.parts(bandwidths.get_ref());
            let target = KernelBayes::new(&widths, context.degree(document, place)?);
            let target = built(document, &bandwidths.span(), target)?;
            (
                target,
                Method::KernelBayes {
                    bandwidths: bandwidths.into_inner(),
                },
                widths,
            )
        }
        (None, deviations @ Some(_)) => {
            let deviations = per_axis(document, context, place, "min_deviations", deviations)?;
            let widths = context.parts(deviations.get_ref());
            let target = GaussianBayes::new(&widths, context.degree(document, place)?);
            let target = built(document, &deviations.span(), target)?;
            (
                target,
                Method::GaussianBayes {
                    min_deviations: deviations.into_inner(),
                },
                widths,
            )
        }
        (both, _) => {
            let keys = ["bandwidths", "min_deviations"];
            return Err(document.not_one_of(place.clone(), &keys, both.is_some()));
        }
    };
    let (column, above) = label?;
    let unit = target.unit() / context.volume();
    let quantity = format!("records per unit of {}", context.per());
    // With all records in one place a score is their number times a normal density: a record that changes the estimated
    // variances has a larger effect than that.
    let peak = widths
        .iter()
        .map(|width| 1.0 / (std::f64::consts::TAU.sqrt() * width))
        .product::<f64>();
    let feature = Feature::of_widths(&widths, Height::Each(peak / context.volume()));
    Ok(score(column, above, method, target, unit, quantity, feature).into())
}
