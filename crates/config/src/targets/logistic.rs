//! `[release.logistic]`: logistic regression, as a linear score or a probability.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::settings::{FunctionHeight, FunctionRoughness, ReleasedFunction};
use crate::targets::context::{ClassLabel, ReadTarget, TargetContext, built_target, class_label};
use crate::targets::wording::score_function;
use crate::text::{Checked, Document, Field, values};
use bernstream_functions::logistic::{Logistic, LogisticScore};
use bernstream_release::ValueScaling;
use bernstream_synopsis::description;
use bernstream_synopsis::description::{Classifier, Method};

/// a table [release.logistic]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// "linear" or "sigmoid"
    pub score: Field<ScoreTable>,
    /// a number above 0 such as 1: the weight of the records against smoothness
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub c: Field<f64>,
    /// a whole number from 1, such as 5000: later records of a window are ignored
    #[schemars(range(min = 1))]
    pub max_records: Field<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScoreTable {
    Linear,
    Sigmoid,
}

pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    written: Table,
) -> Checked<ReadTarget> {
    let label = class_label(document, context, place);
    let score_of = document.required(place, "score", written.score, Ok);
    let c = document.required(place, "c", written.c, values::positive);
    let max_records = document.required(place, "max_records", written.max_records, values::count);
    let label = label?;
    let ClassLabel { column, above } = label;
    let written = score_of?.into_inner();
    let c = c?.into_inner();
    let max_records = max_records?.into_inner();
    let is_linear = matches!(written, ScoreTable::Linear);
    let degree = context.lattice_degree(document, place)?;
    let score_of = if is_linear {
        LogisticScore::Linear
    } else {
        LogisticScore::Sigmoid { degree }
    };
    let target = built_target(
        document,
        place,
        Logistic::new(context.axes.len(), c, max_records, score_of),
    )?;
    let method = Method::Logistic { c, max_records };
    let unit = target.unit();
    let height = FunctionHeight::Fixed(if is_linear { 1.0 } else { 0.5 });
    let feature = FunctionRoughness::from_widths(&vec![0.5; context.axes.len()], height);
    if is_linear {
        let quantity = "of the score".to_owned();
        return Ok(score_function(&label, method, target, unit, quantity, feature).into());
    }
    let likely = format!("the probability that {column} > {above}");
    Ok(ReleasedFunction {
        about: description::TargetDescription::Probability(Classifier {
            label: column.to_owned(),
            above,
            method,
        }),
        meaning: likely.clone(),
        quantity: "of the probability".to_owned(),
        scaling: ValueScaling::of_target(&*target),
        feature: Some(feature),
        target,
    }
    .into())
}
