//! `title`, `description` and `record` of a release, `label` and `unit` of its axes: public text for people.

use crate::file;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_synopsis::description::{AxisNames, PlotNames};

/// The most characters of a title, a description, and of every other name: they are part of every synopsis.
const MOST: [usize; 3] = [120, 400, 60];

/// Takes the names out of the axes, and adds those of the release: title, description and record. `None` where there are none.
pub fn release_names(
    document: &mut Document<'_>,
    [title, description, record]: [Field<String>; 3],
    axes: Option<&mut Vec<Spanned<file::AxisTable>>>,
) -> Checked<Option<PlotNames>> {
    let title = read_name(document, title, MOST[0]);
    let description = read_name(document, description, MOST[1]);
    let record = read_name(document, record, MOST[2]);
    // Every axis before the first `?`, so that the faults of all are recorded.
    let mut of_axes = Vec::new();
    for axis in axes.into_iter().flatten() {
        of_axes.push(axis_names(document, axis.get_mut()));
    }
    let mut axes = of_axes.into_iter().collect::<Checked<Vec<AxisNames>>>()?;
    if axes.iter().all(|axis| *axis == AxisNames::default()) {
        axes.clear();
    }
    let names = PlotNames {
        title: title?,
        description: description?,
        record: record?,
        axes,
    };
    Ok((names != PlotNames::default()).then_some(names))
}

fn axis_names(document: &mut Document<'_>, axis: &mut file::AxisTable) -> Checked<AxisNames> {
    let label = read_name(document, axis.label.take(), MOST[2]);
    let unit = read_name(document, axis.unit.take(), MOST[2]);
    Ok(AxisNames {
        label: label?,
        unit: unit?,
    })
}

fn read_name(
    document: &mut Document<'_>,
    written: Field<String>,
    most: usize,
) -> Checked<Option<String>> {
    let name = document.optional(written, |text| short_line(text, most))?;
    Ok(name.map(Spanned::into_inner))
}

/// Checks that a text is one line of at most so many characters.
fn short_line(text: String, most: usize) -> Result<String, String> {
    let text = values::words(text)?;
    if text.chars().any(char::is_control) {
        return Err("must be one line of text".to_owned());
    }
    let count = text.chars().count();
    if count > most {
        return Err(format!("has {count} characters, must have at most {most}"));
    }
    Ok(text)
}
