//! A record as one line of CSV (RFC 4180), below a header line of names.
//!
//! A record is one line, always: were line breaks allowed in quotes, one quote too many would take the records behind it along.

use super::declared::DeclaredTypes;
use super::fields::{RecordRow, Scalar};
use super::reader::LARGEST_RECORD;
use super::tree::{FieldTree, whole_name};
use bernstream_release::source::broken::DecodeError;
use bernstream_release::source::columns::Columns;

/// Reads lines of one file.
pub struct CsvReader {
    /// The node of each column that is needed.
    nodes: Vec<Option<usize>>,
    tree: FieldTree,
    row: RecordRow,
}

impl CsvReader {
    /// A reader of the lines below a header; a needed column that it lacks is null in each of them.
    ///
    /// # Errors
    ///
    /// If the header has a needed column twice, or the type of a key or a user is not declared.
    pub fn new(
        header: &[String],
        columns: &Columns,
        declared: &DeclaredTypes,
    ) -> Result<Self, DecodeError> {
        let tree = FieldTree::new(columns, declared, whole_name).map_err(DecodeError::new)?;
        let nodes: Vec<Option<usize>> = header.iter().map(|name| tree.child(0, name)).collect();
        for node in tree.children(0) {
            if nodes.iter().filter(|found| **found == Some(node)).count() > 1 {
                return Err(DecodeError::new(format_args!(
                    "it has two columns '{}'",
                    tree.name(node)
                )));
            }
        }
        Ok(CsvReader {
            nodes,
            tree,
            row: RecordRow::default(),
        })
    }

    /// The needed fields of a line. An empty field counts as null, and so does one of another type than declared.
    ///
    /// # Errors
    ///
    /// If the line cannot be read. It is then to be dropped, and nothing else.
    pub fn read(&mut self, line: &[u8]) -> Result<&RecordRow, DecodeError> {
        let fields = split_line(line)?;
        if fields.len() != self.nodes.len() {
            let found = fields.len();
            let wanted = self.nodes.len();
            return Err(DecodeError::new(format_args!(
                "it has {found} fields, the header has {wanted}"
            )));
        }
        self.row.clear(self.tree.values, self.tree.len());
        for (field, node) in fields.iter().zip(&self.nodes) {
            let Some(node) = node.filter(|_| !field.is_empty()) else {
                continue;
            };
            self.row.set_all(self.tree.roles(node), Scalar::Text(field));
        }
        Ok(&self.row)
    }
}

/// The fields of a line, without their quotes.
///
/// # Errors
///
/// If it is too long, not UTF-8, or has a quote where none can be.
pub fn split_line(line: &[u8]) -> Result<Vec<String>, DecodeError> {
    if line.len() > LARGEST_RECORD {
        return Err(DecodeError::new(format_args!(
            "it has more than {LARGEST_RECORD} bytes"
        )));
    }
    let mut rest = std::str::from_utf8(line).map_err(|_| DecodeError::new("it is not UTF-8"))?;
    let mut fields = Vec::new();
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = quoted;
            fields.push(take_quoted(&mut rest)?);
        } else {
            let length = rest.find(',').unwrap_or(rest.len());
            let (field, after) = rest.split_at(length);
            if field.contains('"') {
                return Err(DecodeError::new(
                    "it has a quote within a field that does not begin with one",
                ));
            }
            fields.push(field.to_owned());
            rest = after;
        }
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None if rest.is_empty() => return Ok(fields),
            None => {
                return Err(DecodeError::new(
                    "it has text after the end of a quoted field",
                ));
            }
        }
    }
}

/// Takes the text up to its closing quote from `rest`, and that quote; two quotes are one in the text.
fn take_quoted(rest: &mut &str) -> Result<String, DecodeError> {
    let mut field = String::new();
    loop {
        let (text, after) = rest.split_once('"').ok_or_else(|| {
            DecodeError::new("it has a quoted field that does not end on its line")
        })?;
        field.push_str(text);
        let Some(more) = after.strip_prefix('"') else {
            *rest = after;
            return Ok(field);
        };
        field.push('"');
        *rest = more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_split_as_rfc_4180_has_it() {
        for (line, expected) in [
            ("a,b", vec!["a", "b"]),
            ("", vec![""]),
            (",", vec!["", ""]),
            ("\"a,b\",\"\",c", vec!["a,b", "", "c"]),
            ("\"say \"\"a\"\"\"", vec!["say \"a\""]),
            (" a , b", vec![" a ", " b"]),
        ] {
            assert_eq!(split_line(line.as_bytes()).unwrap(), expected, "{line}");
        }
        for wrong in ["\"a", "\"a\"b", "a\"b", "\"a\"\"", "a,\"b\nc"] {
            assert!(split_line(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(split_line(&[b'a', 0xff]).is_err());
    }
}
