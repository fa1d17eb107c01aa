//! `title`, `description` and `record` of a release, `label` and `unit` of its axes: public text for people.

use crate::file;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_synopsis::description::{AxisNames, Names};

/// The most characters of a title, a description, and of every other name: they are part of every synopsis.
const MOST: [usize; 3] = [120, 400, 60];

/// Takes the names out of the axes, and adds those of the release: title, description and record. `None` where there are none.
pub fn of_release(
    document: &mut Document<'_>,
    [title, description, record]: [Field<String>; 3],
    axes: Option<&mut Vec<Spanned<file::Axis>>>,
) -> Checked<Option<Names>> {
    let title = name(document, title, MOST[0]);
    let description = name(document, description, MOST[1]);
    let record = name(document, record, MOST[2]);
    let mut of_axis = |axis: &mut Spanned<file::Axis>| {
        let axis = axis.get_mut();
        let label = name(document, axis.label.take(), MOST[2]);
        let unit = name(document, axis.unit.take(), MOST[2]);
        Ok(AxisNames {
            label: label?,
            unit: unit?,
        })
    };
    // Every axis before the first `?`, so that the faults of all are recorded.
    let axes: Vec<_> = axes.into_iter().flatten().map(&mut of_axis).collect();
    let axes: Vec<AxisNames> = axes.into_iter().collect::<Checked<_>>()?;
    let axes = if axes.iter().all(|axis| *axis == AxisNames::default()) {
        Vec::new()
    } else {
        axes
    };
    let names = Names {
        title: title?,
        description: description?,
        record: record?,
        axes,
    };
    Ok((names != Names::default()).then_some(names))
}

fn name(
    document: &mut Document<'_>,
    written: Field<String>,
    most: usize,
) -> Checked<Option<String>> {
    let checked = |text: String| {
        let text = values::words(text)?;
        match text.chars().count() {
            _ if text.chars().any(char::is_control) => Err("must be one line of text".to_owned()),
            count if count > most => {
                Err(format!("has {count} characters, must have at most {most}"))
            }
            _ => Ok(text),
        }
    };
    Ok(document
        .optional(written, checked)?
        .map(Spanned::into_inner))
}
