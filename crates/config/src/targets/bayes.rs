//! `[release.bayes]`: a score for two classes, from the density of each.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::settings::{FunctionHeight, FunctionRoughness};
use crate::targets::context::{ReadTarget, TargetContext, built_target, class_label};
use crate::targets::lengths::lengths_per_axis;
use crate::targets::wording::score_function;
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
    let label = class_label(document, context, place);
    let is_kernel = written.bandwidths.is_some();
    if is_kernel == written.min_deviations.is_some() {
        let keys = ["bandwidths", "min_deviations"];
        return Err(document.not_one_of(place.clone(), &keys, is_kernel));
    }
    let lengths = if is_kernel {
        lengths_per_axis(document, context, place, "bandwidths", written.bandwidths)?
    } else {
        let deviations = written.min_deviations;
        lengths_per_axis(document, context, place, "min_deviations", deviations)?
    };
    let widths = context.parts_of_axes(lengths.get_ref());
    let degree = context.lattice_degree(document, place)?;
    let place = lengths.span();
    let lengths = lengths.into_inner();
    let target;
    let method;
    if is_kernel {
        target = built_target(document, &place, KernelBayes::new(&widths, degree))?;
        method = Method::KernelBayes {
            bandwidths: lengths,
        };
    } else {
        target = built_target(document, &place, GaussianBayes::new(&widths, degree))?;
        method = Method::GaussianBayes {
            min_deviations: lengths,
        };
    }
    let label = label?;
    let unit = target.unit() / context.volume();
    let quantity = format!("records per unit of {}", context.columns_in_words());
    // With all records in one place a score is their number times a normal density: a record that changes the estimated
    // variances has a larger effect than that.
    let peak = widths
        .iter()
        .map(|width| 1.0 / (std::f64::consts::TAU.sqrt() * width))
        .product::<f64>();
    let feature =
        FunctionRoughness::from_widths(&widths, FunctionHeight::Each(peak / context.volume()));
    Ok(score_function(&label, method, target, unit, quantity, feature).into())
}
