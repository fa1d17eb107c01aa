//! `domain` and `label` of a release.

use std::collections::HashSet;
use std::ops::Range;

use crate::file;
use crate::targets::Labelled;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_release::window::{DomainAxis, OutsideRule, RecordLabel};
use bernstream_synopsis::MOST_CLASSES;

/// The axes, and the column of each.
pub struct Domain {
    pub columns: Vec<String>,
    pub axes: Vec<DomainAxis>,
}

/// An axis and its column.
struct NamedAxis {
    column: String,
    axis: DomainAxis,
}

/// Reads `domain`.
pub fn read_domain(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: Field<Vec<Spanned<file::AxisTable>>>,
) -> Checked<Domain> {
    let axes = document.required(place, "domain", written, |axes| match axes.len() {
        1..=3 => Ok(axes),
        count => Err(format!("has {count} axes, must have 1 to 3")),
    })?;
    let mut seen = HashSet::new();
    // Every axis before the first `?`, so that the faults of all are recorded.
    let mut named = Vec::new();
    for written in axes.into_inner() {
        named.push(named_axis(document, written, &mut seen));
    }
    let mut columns = Vec::new();
    let mut axes = Vec::new();
    for named in named {
        let NamedAxis { column, axis } = named?;
        columns.push(column);
        axes.push(axis);
    }
    Ok(Domain { columns, axes })
}

fn named_axis(
    document: &mut Document<'_>,
    table: Spanned<file::AxisTable>,
    seen: &mut HashSet<String>,
) -> Checked<NamedAxis> {
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
    let axis = read_bounds(document, &place, written.min, written.max, written.outside);
    Ok(NamedAxis {
        column: column?.into_inner(),
        axis: axis?,
    })
}

fn read_bounds(
    document: &mut Document<'_>,
    place: &Range<usize>,
    min: Field<f64>,
    max: Field<f64>,
    outside: Field<file::WrittenOutside>,
) -> Checked<DomainAxis> {
    let min = document.required(place, "min", min, values::finite);
    let max = document.required(place, "max", max, values::finite);
    let outside = document.required(place, "outside", outside, |outside| {
        Ok(match outside {
            file::WrittenOutside::Clamp => OutsideRule::Clamp,
            file::WrittenOutside::Drop => OutsideRule::Drop,
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
    Ok(DomainAxis {
        min,
        max: max.into_inner(),
        outside: outside?.into_inner(),
    })
}

/// The label: a number within bounds, or a class.
pub fn read_label(
    document: &mut Document<'_>,
    table: Spanned<file::LabelTable>,
) -> Checked<Spanned<Labelled>> {
    let place = table.span();
    let mut written = table.into_inner();
    let column = document.required(&place, "column", written.column.take(), values::words);
    let label = label_values(document, &place, written);
    Ok(Spanned::new(
        place,
        Labelled {
            column: column?.into_inner(),
            label: label?,
        },
    ))
}

/// The keys of a label but for its column.
fn label_values(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: file::LabelTable,
) -> Checked<RecordLabel> {
    let file::LabelTable {
        above,
        values: classes,
        min,
        max,
        outside,
        ..
    } = written;
    let above_place = above.as_ref().map(Spanned::span);
    let class_place = above_place.or(classes.as_ref().map(Spanned::span));
    if let Some(class_place) = class_place {
        if min.is_some() || max.is_some() || outside.is_some() {
            return Err(document.fault(
                class_place,
                "a label is a class or a number, not both",
                "keep `above` or `values`, or keep `min`, `max` and `outside`",
            ));
        }
        if above.is_some() && classes.is_some() {
            return Err(document.fault(
                class_place,
                "classes are told by a threshold or by their values, not both",
                "keep one of them",
            ));
        }
    }
    if above.is_some() {
        let above = document.required(place, "above", above, values::finite)?;
        return Ok(RecordLabel::Above(above.into_inner()));
    }
    if classes.is_some() {
        let classes = document.required(place, "values", classes, several_classes)?;
        return Ok(RecordLabel::Classes(classes.into_inner()));
    }
    read_bounds(document, place, min, max, outside).map(RecordLabel::Number)
}

/// Checks the values of several classes.
fn several_classes(classes: Vec<f64>) -> Result<Vec<f64>, String> {
    if !(2..=MOST_CLASSES).contains(&classes.len()) {
        return Err(format!(
            "has {} classes, must have 2 to {MOST_CLASSES}",
            classes.len()
        ));
    }
    if !classes.iter().all(|class| class.is_finite()) {
        return Err("has a class that is not a finite number".to_owned());
    }
    for (at, class) in classes.iter().enumerate() {
        if classes.iter().skip(at + 1).any(|other| other == class) {
            return Err(format!("has the class {class} twice"));
        }
    }
    Ok(classes)
}
