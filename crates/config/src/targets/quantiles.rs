//! `[release.quantiles]`: quantiles of a bounded value for each key.
// Forms of values have lists and tables in brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::counts::ValueColumn;
use crate::settings::ReleasedFunction;
use crate::targets::context::{
    DeclaredUnits, NumberLabel, ReadTarget, TargetContext, built_target, number_label,
};
use crate::text::{Checked, Document, Field, Spanned, each, values};
use bernstream_functions::key_counts::{CountedStatistic, KeyCounts, StatisticShare};
use bernstream_release::ValueScaling;
use bernstream_release::window::{DomainAxis, KeyCounting, RankKey};
use bernstream_synopsis::Norm;
use bernstream_synopsis::description;
use bernstream_synopsis::description::{CountedQuantiles, CountedValue, KeyedCounts, PricePart};
use bernstream_synopsis::key_quantiles::{MOST_PLACES, QuantilePart, RankGrid};

/// Most quantiles of a release: all of them are read from the same counts.
const MOST_QUANTILES: usize = 16;

/// a table such as { of = [0.5], value = { column = "amount", min = 0, max = 500, outside = "clamp" }, step = 5 }
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// a list such as [0.25, 0.5, 0.95]: the part of the values up to each quantile, above 0 and below 1 with at most 3 decimals
    #[schemars(transform = each(json!({
        "description": "a number such as 0.5, above 0 and below 1 with at most 3 decimals",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
    })))]
    pub of: Field<Vec<Spanned<f64>>>,
    /// a table such as { column = "amount", min = 0, max = 500, outside = "clamp" }: what quantiles are told of
    pub value: Field<ValueColumn>,
    /// a number above 0 such as 5, in the units of the value: what it is rounded to
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub step: Field<f64>,
    /// a whole number from 1, such as 3: the most keys of a user that count in a window
    #[schemars(range(min = 1))]
    pub max_keys: Field<u32>,
}

pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    written: Table,
) -> Checked<ReadTarget> {
    let Some(declared) = &context.declared else {
        // The fault of `[input]` or `[privacy]` has been told.
        return Err(match document.reported() {
            Some(reported) => reported,
            None => document.fault(place.clone(), "needs [input] and [privacy]", ""),
        });
    };
    let of = document.required(place, "of", written.of.clone(), several_parts);
    let value = match context.label {
        Some(_) => number_label(document, context, place),
        None => Err(document.missing(place.clone(), "value")),
    };
    let step = document.required(place, "step", written.step.clone(), values::positive);
    let max_keys = unit_keys(document, place, &written, declared);
    let (of, value, step, max_keys) = (of?, value?, step?, max_keys?);
    let grid = rank_grid(document, &step, value.bounds, context.law.norm())?;
    let keys: Vec<String> = declared.keys.to_vec();
    let counting = KeyCounting {
        max_keys: max_keys.min(u32::try_from(keys.len()).unwrap_or(u32::MAX)),
        max_records: 1,
        keys,
        sum: None,
        keeps_squares: false,
        grid: Some(grid),
        unit_bins: Vec::new(),
        ranks: RankKey::for_pipeline(declared.pipeline),
    };
    let about = described_quantiles(&counting, grid, of.get_ref(), &value, declared);
    let share = StatisticShare {
        statistic: CountedStatistic::Ranges,
        part: 1.0,
    };
    let built = KeyCounts::new(counting, &[share], context.law.norm());
    let target = built_target(document, place, built)?;
    Ok(ReleasedFunction {
        quantity: format!("of {}", value.column),
        scaling: ValueScaling::of_target(&*target),
        about: description::TargetDescription::Counts(about),
        feature: None,
        meaning: meaning(of.get_ref(), value.column, declared),
        target,
    }
    .into())
}

fn several_parts(written: Vec<Spanned<f64>>) -> Result<Vec<QuantilePart>, String> {
    let mut parts = Vec::new();
    for number in written {
        let number = number.into_inner();
        let Some(part) = QuantilePart::new(number) else {
            return Err(format!(
                "has {number}: a part is above 0 and below 1, with at most 3 decimals, such as 0.5 or 0.999"
            ));
        };
        if parts.contains(&part) {
            return Err(format!("has {number} twice"));
        }
        parts.push(part);
    }
    match parts.len() {
        0 => Err("must have one part or more, such as 0.5 for the median".to_owned()),
        1..=MOST_QUANTILES => Ok(parts),
        count => Err(format!(
            "has {count} parts: at most {MOST_QUANTILES} are told"
        )),
    }
}

/// The places that values count at: as many as steps between the bounds, and one more.
fn rank_grid(
    document: &mut Document<'_>,
    step: &Spanned<f64>,
    bounds: &DomainAxis,
    norm: Norm,
) -> Checked<RankGrid> {
    let width = bounds.max - bounds.min;
    let steps = width / step.get_ref();
    let whole = steps.round();
    let hint = format!(
        "such as step = {}, the largest of which there are {}",
        width / f64::from(MOST_PLACES / 4),
        MOST_PLACES / 4
    );
    if !(1.0..=f64::from(MOST_PLACES - 1)).contains(&whole) {
        let what = format!(
            "makes {steps:.1} steps from min to max: there must be 1 to {}",
            MOST_PLACES - 1
        );
        return Err(document.fault(step.span(), what, hint));
    }
    if (steps - whole).abs() > 1e-6 {
        let what = format!("does not divide max - min = {width} into whole steps");
        let hint = format!("such as step = {}, or move a bound", width / whole);
        return Err(document.fault(step.span(), what, hint));
    }
    Ok(RankGrid::with_least_noise(
        whole as u32 + 1,
        |levels| match norm {
            Norm::Two => f64::from(levels).sqrt(),
            Norm::One | Norm::Sup => f64::from(levels),
        },
    ))
}

/// The most keys of a unit.
fn unit_keys(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: &Table,
    declared: &DeclaredUnits<'_>,
) -> Checked<u32> {
    match (&written.max_keys, declared.columns) {
        (Some(cap), _) if !declared.has_users => {
            let what = "has no effect: every record is a unit of its own, in one key";
            Err(document.fault(cap.span(), what, "remove it"))
        }
        (None, _) if !declared.has_users => Ok(1),
        (None, []) => Ok(1),
        _ => {
            let cap =
                document.required(place, "max_keys", written.max_keys.clone(), values::count)?;
            Ok(cap.into_inner())
        }
    }
}

fn described_quantiles(
    counting: &KeyCounting,
    grid: RankGrid,
    of: &[QuantilePart],
    value: &NumberLabel<'_>,
    declared: &DeclaredUnits<'_>,
) -> KeyedCounts {
    KeyedCounts {
        max_keys: counting.max_keys,
        max_records: (!declared.has_users).then_some(1),
        per_user: None,
        value: Some(CountedValue {
            column: value.column.to_owned(),
            min: value.bounds.min,
            max: value.bounds.max,
        }),
        quantiles: Some(CountedQuantiles {
            grid,
            parts: of.iter().map(|part| part.fraction()).collect(),
        }),
        parts: vec![PricePart {
            of: "ranges".to_owned(),
            part: 1.0,
        }],
    }
}

fn meaning(of: &[QuantilePart], column: &str, declared: &DeclaredUnits<'_>) -> String {
    let names: Vec<String> = of.iter().map(|part| part.name()).collect();
    let of_user = match declared.has_users {
        true => "the mean of a user's ",
        false => "",
    };
    let each = match declared.columns {
        [] => String::new(),
        columns => format!(" of each {}", columns.join(" and ")),
    };
    format!("quantiles {} of {of_user}{column}{each}", names.join(", "))
}
