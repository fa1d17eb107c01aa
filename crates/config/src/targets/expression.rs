//! `[release.expression]`: the sum of an expression over the records.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::settings::{FunctionHeight, FunctionRoughness, ReleasedFunction};
use crate::targets::context::{Labelled, ReadTarget, TargetContext, built_target};
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_functions::expression;
use bernstream_functions::expression::{Formula, Variable};
use bernstream_release::ValueScaling;
use bernstream_release::window::{DomainAxis, RecordLabel};
use bernstream_synopsis::description;
use bernstream_synopsis::description::Clip;

/// a table [release.expression]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// an expression in quotes, such as "exp(-((delay - at.delay) / 15)^2)"
    pub value: Field<String>,
    /// a table such as { sup = 1.0, sum = 20.0 }, or none if a bound can be proved
    pub clip: Field<ClipTable>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClipTable {
    /// a number above 0: the most that a record can add at any lattice point
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub sup: Field<f64>,
    /// a number from `sup` on: the most that a record can add over all lattice points
    pub sum: Field<f64>,
}

pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    written: Table,
) -> Checked<ReadTarget> {
    let text = document.required(place, "value", written.value, values::words)?;
    let axes: Vec<Variable> = context
        .columns
        .iter()
        .zip(context.axes)
        .map(|(name, axis)| variable(name, axis))
        .collect();
    let label = match context.label {
        Some(label) => Some(expression_label(document, label)?),
        None => None,
    };
    let clip = match written.clip {
        Some(table) => Some(read_clip(document, table)?),
        None => None,
    };
    let formula = Formula::new(
        text.get_ref(),
        &axes,
        label.as_ref(),
        context.lattice_degree(document, place)?,
    );
    let target = match &clip {
        Some(clip) => {
            let Clip { sup, sum } = *clip.get_ref();
            let target = formula.and_then(|formula| formula.with_clipped_ranges(sup, sum));
            built_target(document, &clip.span(), target)?
        }
        None => built_target(
            document,
            &text.span(),
            formula.and_then(Formula::with_proved_ranges),
        )?,
    };
    let text = text.into_inner();
    let clip = clip.map(Spanned::into_inner);
    let clipped = match clip {
        Some(Clip { sup, sum }) => {
            format!(", each clipped to {sup} a lattice point and {sum} in all")
        }
        None => String::new(),
    };
    Ok(ReleasedFunction {
        meaning: format!("the sum of {text} over the records{clipped}"),
        quantity: "of the sum".to_owned(),
        about: description::TargetDescription::Sum(description::ExpressionSum {
            expression: text,
            clip,
        }),
        scaling: ValueScaling::of_target(&*target),
        // Nothing is known of its shape: a bump half the domain wide.
        feature: Some(FunctionRoughness::from_widths(
            &vec![0.25; context.axes.len()],
            FunctionHeight::AllRecords,
        )),
        target,
    }
    .into())
}

fn variable(name: &str, axis: &DomainAxis) -> Variable {
    Variable {
        name: name.to_owned(),
        min: axis.min,
        max: axis.max,
    }
}

fn expression_label(
    document: &mut Document<'_>,
    label: &Spanned<Labelled>,
) -> Checked<expression::LabelVariable> {
    let column = &label.get_ref().column;
    match &label.get_ref().label {
        RecordLabel::Number(axis) => Ok(expression::LabelVariable::Number(variable(column, axis))),
        RecordLabel::Above(_) => Ok(expression::LabelVariable::Class(column.clone())),
        RecordLabel::Classes(_) => {
            let what = "an expression takes a label that is a number or has two classes";
            let hint = "give `above`, or `min`, `max` and `outside`";
            Err(document.fault(label.span(), what, hint))
        }
    }
}

/// The bounds to which the contribution of a record is clipped; the target checks whether they are consistent.
fn read_clip(document: &mut Document<'_>, table: Spanned<ClipTable>) -> Checked<Spanned<Clip>> {
    let place = table.span();
    let written = table.into_inner();
    let sup = document.required(&place, "sup", written.sup, values::positive);
    let sum = document.required(&place, "sum", written.sum, values::positive);
    Ok(Spanned::new(
        place,
        Clip {
            sup: sup?.into_inner(),
            sum: sum?.into_inner(),
        },
    ))
}
