//! Lengths of a kernel, one an axis, in the units of its column.

use std::ops::Range;

use crate::targets::context::TargetContext;
use crate::text::{Checked, Document, Field, Spanned};

/// One length an axis, in natural units.
pub fn lengths_per_axis(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    key: &str,
    written: Field<Vec<Spanned<f64>>>,
) -> Checked<Spanned<Vec<f64>>> {
    let list = document.required(place, key, written, Ok)?;
    checked_lengths(document, context, list)
}

/// A list of lengths, one an axis, each at most as long as the axis.
pub fn checked_lengths(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    list: Spanned<Vec<Spanned<f64>>>,
) -> Checked<Spanned<Vec<f64>>> {
    let axes = context.axes.len();
    let count = list.get_ref().len();
    let list_place = list.span();
    if count != axes {
        let what = format!("has {count} numbers for {axes} axes");
        return Err(document.fault(list_place, what, "write one number for each axis"));
    }
    let mut lengths = Vec::new();
    for (length, width) in list.into_inner().into_iter().zip(context.widths()) {
        let place = length.span();
        let length = length.into_inner();
        lengths.push(if length > 0.0 && length <= width {
            Ok(length)
        } else {
            let what = format!("must be above 0 and at most the width of the domain, {width}");
            let hint = "about a twentieth of the width is a good start";
            Err(document.fault(place, what, hint))
        });
    }
    Ok(Spanned::new(
        list_place,
        lengths.into_iter().collect::<Checked<_>>()?,
    ))
}
