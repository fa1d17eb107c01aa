//! `domain` and `label` of a release.

use std::collections::HashSet;
use std::ops::Range;

use crate::file;
use crate::targets::Labelled;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_release::window::{Axis, Label, Outside};
use bernstream_synopsis::MOST_CLASSES;

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
    let axes: Vec<_> = axes
        .into_inner()
        .into_iter()
        .map(|written| axis(document, written, &mut seen))
        .collect();
    axes.into_iter().collect()
}

/// One axis: its column and its bounds.
fn axis(
    document: &mut Document<'_>,
    table: Spanned<file::Axis>,
    seen: &mut HashSet<String>,
) -> Checked<(String, Axis)> {
    let place = table.span();
    let written = table.into_inner();
    let column = document.required(&place, "column", written.column, |column| {
        let column = values::words(column)?;
        if seen.insert(column.clone()) {
            Ok(column)
        } else {
            Err("is already an axis".to_owned())
        }
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
    let min = min?.into_inner();
    let max = max?;
    let width = max.get_ref() - min;
    if width <= 0.0 || !width.is_finite() {
        let what = if width <= 0.0 {
            format!("must be more than `min`, {min}")
        } else {
            "is too far from `min`".to_owned()
        };
        let hint = "bounds are public: take them from what is known, not from the data";
        return Err(document.fault(max.span(), what, hint));
    }
    Ok(Axis {
        min,
        max: max.into_inner(),
        outside: outside?.into_inner(),
    })
}

/// The label: a number within bounds, or a class.
pub fn label(
    document: &mut Document<'_>,
    table: Spanned<file::Label>,
) -> Checked<Spanned<Labelled>> {
    let place = table.span();
    let written = table.into_inner();
    let column = document.required(&place, "column", written.column, values::words);
    let class = written
        .above
        .as_ref()
        .map(Spanned::span)
        .or(written.values.as_ref().map(Spanned::span));
    let is_number = written.min.is_some() || written.max.is_some() || written.outside.is_some();
    let label = match (class, written.above, written.values) {
        (Some(class), _, _) if is_number => Err(document.fault(
            class,
            "a label is a class or a number, not both",
            "keep `above` or `values`, or keep `min`, `max` and `outside`",
        )),
        (Some(class), Some(_), Some(_)) => Err(document.fault(
            class,
            "classes are told by a threshold or by their values, not both",
            "keep one of them",
        )),
        (_, above @ Some(_), _) => document
            .required(&place, "above", above, values::finite)
            .map(|above| Label::Above(above.into_inner())),
        (_, _, classes @ Some(_)) => document
            .required(&place, "values", classes, several)
            .map(|classes| Label::Classes(classes.into_inner())),
        _ => bounds(document, &place, written.min, written.max, written.outside).map(Label::Number),
    };
    Ok(Spanned::new(
        place,
        Labelled {
            column: column?.into_inner(),
            label: label?,
        },
    ))
}

/// The values of several classes.
fn several(classes: Vec<f64>) -> Result<Vec<f64>, String> {
    let is_twice =
        |(at, class): (usize, &f64)| classes.iter().skip(at + 1).any(|other| other == class);
    if !(2..=MOST_CLASSES).contains(&classes.len()) {
        return Err(format!(
            "has {} classes, must have 2 to {MOST_CLASSES}",
            classes.len()
        ));
    }
    if !classes.iter().all(|class| class.is_finite()) {
        return Err("has a class that is not a finite number".to_owned());
    }
    match classes.iter().enumerate().find(|class| is_twice(*class)) {
        Some((_, class)) => Err(format!("has the class {class} twice")),
        None => Ok(classes),
    }
}
