//! `input.key.other`: the names under which values that are not listed count.

use std::ops::Range;

use crate::file::{WrittenOther, WrittenOtherName};
use crate::text::{Checked, Document, Field, Spanned};

/// The names of what is not listed of each column of the key.
#[derive(Default)]
pub struct OtherNames {
    /// The place of `other`; `None` where it is not in the file.
    pub place: Option<Range<usize>>,
    /// One for each column of the key, or none at all.
    names: Vec<Option<Spanned<String>>>,
}

impl OtherNames {
    /// The name for a column.
    pub fn name(&self, part: usize) -> Option<&Spanned<String>> {
        self.names.get(part)?.as_ref()
    }

    /// The names without their places.
    pub fn into_texts(self) -> Vec<Option<String>> {
        let names = self.names.into_iter();
        names.map(|name| name.map(Spanned::into_inner)).collect()
    }

    /// Adds the name for a column to what is listed of it.
    pub fn add_name(
        &self,
        document: &mut Document<'_>,
        part: usize,
        listed: &mut Vec<String>,
    ) -> Checked<()> {
        let Some(name) = self.name(part) else {
            return Ok(());
        };
        if listed.contains(name.get_ref()) {
            let what = format!("{:?} is listed as well", name.get_ref());
            let hint = "choose a name that is not in the list: records with that very value count under it too";
            return Err(document.fault(name.span(), what, hint));
        }
        listed.push(name.get_ref().clone());
        Ok(())
    }

    /// Refuses names where keys of several columns are listed one by one.
    pub fn must_be_absent(&self, document: &mut Document<'_>) -> Checked<()> {
        let Some(place) = &self.place else {
            return Ok(());
        };
        let what = "needs the values of each column, and keys are listed as a whole";
        let hint = "write values = { country = [\"DE\"], device = [\"phone\"] }: what is not listed of a column then counts \
                    under the name that `other` gives it";
        Err(document.fault(place.clone(), what, hint))
    }
}

/// Reads `other`; `columns` are those of the key.
pub fn read_other(
    document: &mut Document<'_>,
    written: Field<WrittenOther>,
    columns: &[String],
) -> Checked<OtherNames> {
    let Some(written) = written else {
        return Ok(OtherNames::default());
    };
    let place = written.span();
    let names = match written.into_inner() {
        WrittenOther::Text(name) => {
            let name = Spanned::new(place.clone(), name);
            check_name(document, &name)?;
            vec![Some(name); columns.len()]
        }
        WrittenOther::OfColumns(_) if columns.len() == 1 => {
            let what = "is a table of the names of several columns, and the key is one column";
            return Err(document.fault(place, what, "write its name: other = \"other\""));
        }
        WrittenOther::OfColumns(named) => names_of_columns(document, &place, named, columns)?,
    };
    Ok(OtherNames {
        place: Some(place),
        names,
    })
}

fn names_of_columns(
    document: &mut Document<'_>,
    place: &Range<usize>,
    named: Vec<WrittenOtherName>,
    columns: &[String],
) -> Checked<Vec<Option<Spanned<String>>>> {
    if named.is_empty() {
        let hint = "name a column: other = { country = \"other\" }";
        return Err(document.fault(place.clone(), "must not be empty", hint));
    }
    let mut names = vec![None; columns.len()];
    let mut checked = Ok(());
    for WrittenOtherName { column, name } in named {
        let part = columns.iter().position(|known| *known == column);
        match part.and_then(|part| names.get_mut(part)) {
            Some(known) => {
                if let Err(reported) = check_name(document, &name) {
                    checked = Err(reported);
                }
                *known = Some(name);
            }
            None => {
                let what = format!("{column:?} is no column of the key");
                let hint = format!("its columns are {}", columns.join(", "));
                checked = Err(document.fault(name.span(), what, hint));
            }
        }
    }
    checked.map(|()| names)
}

fn check_name(document: &mut Document<'_>, name: &Spanned<String>) -> Checked<()> {
    if name.get_ref().trim().is_empty() {
        let hint = "write a name such as \"other\"";
        return Err(document.fault(name.span(), "must not be empty", hint));
    }
    Ok(())
}
