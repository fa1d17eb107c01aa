//! A table for other programs, as JSON or CSV.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::ser::{Serialize, Serializer};

/// A number, a truth, a time or name, or nothing: `null`, and empty in CSV.
#[derive(Debug, serde::Serialize)]
#[serde(untagged)]
pub enum TableCell {
    Number(f64),
    Truth(bool),
    Text(String),
    Unknown,
}

#[derive(Debug)]
pub struct ResponseTable {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<TableCell>>,
}

/// One row as an object, in the order of the columns.
struct ResponseRow<'a>(&'a [String], &'a [TableCell]);

impl Serialize for ResponseRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(self.1))
    }
}

impl Serialize for ResponseTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(|row| ResponseRow(&self.columns, row)))
    }
}

impl ResponseTable {
    /// CSV as defined by RFC 4180. A text that a spreadsheet would take for a formula has `'` before it.
    pub fn csv_response(&self) -> Response {
        let mut text = String::new();
        push_line(&mut text, self.columns.iter().map(|name| quoted_cell(name)));
        for row in &self.rows {
            push_line(&mut text, row.iter().map(TableCell::to_csv));
        }
        (
            [(CONTENT_TYPE, "text/csv; charset=utf-8; header=present")],
            text,
        )
            .into_response()
    }
}

fn push_line(text: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    text.push_str(&cells.join(","));
    text.push_str("\r\n");
}

impl TableCell {
    /// A number, unknown if it is not finite.
    pub fn finite_number(number: f64) -> Self {
        if number.is_finite() {
            TableCell::Number(number)
        } else {
            TableCell::Unknown
        }
    }

    fn to_csv(&self) -> String {
        match self {
            TableCell::Number(number) => number.to_string(),
            TableCell::Truth(truth) => truth.to_string(),
            TableCell::Text(text) => quoted_cell(text),
            TableCell::Unknown => String::new(),
        }
    }
}

/// First characters of what a spreadsheet computes: whoever sends records chooses the names of keys.
const FORMULA_SIGNS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

fn quoted_cell(text: &str) -> String {
    let mark = if text.starts_with(FORMULA_SIGNS) {
        "'"
    } else {
        ""
    };
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{mark}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{mark}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_spreadsheet_would_compute_are_marked_and_numbers_are_not() {
        for (text, cell) in [
            ("DE", "DE"),
            ("a=1", "a=1"),
            ("=1+1", "'=1+1"),
            ("+49", "'+49"),
            ("-", "'-"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("=\"a\",1", "\"'=\"\"a\"\",1\""),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("", ""),
        ] {
            assert_eq!(TableCell::Text(text.to_owned()).to_csv(), cell);
        }
        assert_eq!(TableCell::Number(-1.5).to_csv(), "-1.5");
    }
}
