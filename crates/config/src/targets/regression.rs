//! `[release.regression]`: the expected value of a label, by the estimator of Priestley and Chao.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::settings::{FunctionHeight, FunctionRoughness};
use crate::targets::context::{ReadTarget, TargetContext, built_target, number_label};
use crate::targets::wording::expected_label_function;
use crate::text::{Checked, Document, Field, values};
use bernstream_functions::regression::LatticeRegression;
use bernstream_synopsis::description::Method;

/// a table [release.regression]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// a number above 0 in the units of the column, such as 10
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub bandwidth: Field<f64>,
    /// a number above 0 in the units of the column, such as 0.5: larger gaps are capped at this
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub gap: Field<f64>,
    /// a whole number from 1, such as 1000: later records of a window are ignored
    #[schemars(range(min = 1))]
    pub max_records: Field<u32>,
}

pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    written: Table,
) -> Checked<ReadTarget> {
    let label = number_label(document, context, place);
    let bandwidth = document.required(place, "bandwidth", written.bandwidth, values::positive);
    let gap = document.required(place, "gap", written.gap, values::positive);
    let max_records = document.required(place, "max_records", written.max_records, values::count);
    let label = label?;
    let bounds = label.bounds;
    let bandwidth = bandwidth?.into_inner();
    let gap = gap?.into_inner();
    let max_records = max_records?.into_inner();
    let [axis] = context.axes else {
        let what = format!("has {} axes, this regression has one", context.axes.len());
        return Err(document.fault(place.clone(), what, "use [release.machine] for more"));
    };
    let width = axis.max - axis.min;
    let target = LatticeRegression::new(
        bandwidth / width,
        context.lattice_degree(document, place)?,
        gap / width,
        max_records,
    );
    let target = built_target(document, place, target)?;
    let method = Method::PriestleyChao {
        bandwidth,
        gap,
        max_records,
    };
    // Gaps that count share out the domain: a label's effect is bounded by the label, not by the records.
    let height = FunctionHeight::Covered {
        limit: (bounds.max - bounds.min) / 2.0,
        gap: gap / width,
    };
    let feature = FunctionRoughness::from_widths(&[bandwidth / width], height);
    Ok(expected_label_function(context, &label, method, target, feature).into())
}
