//! `domain` and `label` of a release.

use std::collections::HashSet;
use std::ops::Range;

use toml::Spanned;

use crate::config::file;
use crate::config::targets::Labelled;
use crate::config::text::{Checked, Document, Field, values};
use crate::window::{Axis, Label, Outside};

/// The axes, each with its column.
pub fn domain(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: Field<Vec<Spanned<file::Axis>>>,
) -> Checked<Vec<(String, Axis)>> {
    let axes = document.required(place, "domain", written, |axes| match axes.len() {
        1..=3 => Ok(axes),
        count => Err(format!("has {count} axes, must have 1 to 3")),
    })?;
    let mut seen = HashSet::new();
    // Every axis before the first `?`, so that the faults of all are recorded.
    let axes: Vec<_> = axes.into_inner().into_iter().map(|written| axis(document, written, &mut seen)).collect();
    axes.into_iter().collect()
}

/// One axis: its column and its bounds.
fn axis(
    document: &mut Document<'_>,
    table: Spanned<file::Axis>,
    seen: &mut HashSet<String>,
) -> Checked<(String, Axis)> {
    let (place, written) = (table.span(), table.into_inner());
    let column = document.required(&place, "column", written.column, |column| {
        let column = values::words(column)?;
        if seen.insert(column.clone()) { Ok(column) } else { Err("is already an axis".to_owned()) }
    });
    let bounds = bounds(document, &place, written.min, written.max, written.outside);
    Ok((column?.into_inner(), bounds?))
}

fn bounds(
    document: &mut Document<'_>,
    place: &Range<usize>,
    min: Field<f64>,
    max: Field<f64>,
    outside: Field<file::Outside>,
) -> Checked<Axis> {
    let min = document.required(place, "min", min, values::finite);
    let max = document.required(place, "max", max, values::finite);
    let outside = document.required(place, "outside", outside, |outside| {
        Ok(match outside {
            file::Outside::Clamp => Outside::Clamp,
            file::Outside::Drop => Outside::Drop,
        })
    });
    let (min, max) = (min?.into_inner(), max?);
    let width = max.get_ref() - min;
    if width <= 0.0 || !width.is_finite() {
        let what =
            if width <= 0.0 { format!("must be more than `min`, {min}") } else { "is too far from `min`".to_owned() };
        let hint = "bounds are public: take them from what is known, not from the data";
        return Err(document.fault(max.span(), what, hint));
    }
    Ok(Axis { min, max: max.into_inner(), outside: outside?.into_inner() })
}

/// The label: a number within bounds, or a class.
pub fn label(document: &mut Document<'_>, table: Spanned<file::Label>) -> Checked<Spanned<Labelled>> {
    let (place, written) = (table.span(), table.into_inner());
    let column = document.required(&place, "column", written.column, values::words);
    let label = match written.above {
        Some(above) if written.min.is_none() && written.max.is_none() && written.outside.is_none() => document
            .required(&place, "above", Some(above), values::finite)
            .map(|above| Label::Above(above.into_inner())),
        Some(above) => Err(document.fault(
            above.span(),
            "a label is a class or a number, not both",
            "keep `above`, or keep `min`, `max` and `outside`",
        )),
        None => bounds(document, &place, written.min, written.max, written.outside).map(Label::Number),
    };
    Ok(Spanned::new(place, Labelled { column: column?.into_inner(), label: label? }))
}
