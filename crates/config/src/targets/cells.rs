//! `[release.cells]`: noisy tables of cells, from which readers take densities, shares, quantiles, regressions and classes.
// Forms of values have lists and tables in brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::settings::{Coordinates, FunctionHeight, FunctionRoughness, ReleasedFunction};
use crate::targets::context::{Labelled, ReadTarget, TargetContext, built_target};
use crate::targets::lengths::lengths_per_axis;
use crate::text::{Checked, Document, Field, Spanned, each};
use bernstream_functions::tables::CellTables;
use bernstream_release::ValueScaling;
use bernstream_release::window::RecordLabel;
use bernstream_release::window::accumulator::TableLabel;
use bernstream_synopsis::description;
use bernstream_synopsis::description::CellLabel;

/// a table such as { bandwidths = [10] }, or an empty one, {}, with `step` in the release
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// a list such as [10], a number above 0 for each axis, in the units of its column: the smallest that readers will want
    #[schemars(transform = each(json!({
        "description": "a number above 0 in the units of the column, such as 10",
        "exclusiveMinimum": 0,
    })))]
    pub bandwidths: Field<Vec<Spanned<f64>>>,
}

pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    written: Table,
) -> Checked<ReadTarget> {
    let bandwidths = lengths_per_axis(document, context, place, "bandwidths", written.bandwidths)?;
    let Coordinates::Cells(grid) = context.on else {
        return Err(document.fault(
            place.clone(),
            "needs a grid of cells",
            "use noise = \"laplace\" or \"gaussian\"",
        ));
    };
    let in_cube = context.parts_of_axes(bandwidths.get_ref());
    let place = bandwidths.span();
    let label = context.label.map(|label| labelled(label.get_ref()));
    let by = context
        .label
        .map(|label| table_label(&label.get_ref().label));
    let target = built_target(
        document,
        &place,
        CellTables::new(&in_cube, grid.spline, grid.steps(), by),
    )?;
    Ok(ReleasedFunction {
        meaning: meaning(context, label.as_ref()),
        quantity: quantity(context, label.as_ref()),
        scaling: ValueScaling::of_target(&*target),
        feature: Some(FunctionRoughness::from_widths(
            &in_cube,
            FunctionHeight::AllRecords,
        )),
        about: description::TargetDescription::Cells(description::Cells { label }),
        target,
    }
    .into())
}

/// Number of tables that a label makes.
pub fn table_count(label: Option<&Labelled>) -> u32 {
    match label {
        Some(label) => u32::try_from(table_label(&label.label).table_count()).unwrap_or(u32::MAX),
        None => 1,
    }
}

fn table_label(label: &RecordLabel) -> TableLabel {
    match label {
        RecordLabel::Number(_) | RecordLabel::Above(_) => TableLabel::Number,
        RecordLabel::Classes(values) => {
            TableLabel::Classes(u32::try_from(values.len()).unwrap_or(u32::MAX))
        }
    }
}

fn labelled(label: &Labelled) -> CellLabel {
    let column = label.column.clone();
    match &label.label {
        RecordLabel::Number(axis) => CellLabel::Number {
            column,
            min: axis.min,
            max: axis.max,
        },
        RecordLabel::Above(above) => CellLabel::Above {
            column,
            above: *above,
        },
        RecordLabel::Classes(values) => CellLabel::Classes {
            column,
            values: values.clone(),
        },
    }
}

/// The meaning of the function that a reader gets without asking for another.
fn meaning(context: &TargetContext<'_>, label: Option<&CellLabel>) -> String {
    let per = context.columns_in_words();
    let function = match label {
        None => format!("records per unit of {per}"),
        Some(CellLabel::Number { column, .. }) => format!("{column} as expected at {per}"),
        Some(CellLabel::Above { column, above }) => {
            format!("the probability that {column} is above {above} at {per}")
        }
        Some(CellLabel::Classes { column, values }) => {
            let first = values.first().copied().unwrap_or(f64::NAN);
            format!("the probability that {column} is {first} at {per}")
        }
    };
    format!("{function}, read off noisy counts of cells")
}

/// The unit of the error of that function.
fn quantity(context: &TargetContext<'_>, label: Option<&CellLabel>) -> String {
    match label {
        None => format!("records per unit of {}", context.columns_in_words()),
        Some(CellLabel::Number { column, .. }) => format!("of {column}"),
        Some(CellLabel::Above { .. } | CellLabel::Classes { .. }) => "of a probability".to_owned(),
    }
}
