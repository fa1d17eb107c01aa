//! A table for other programs, as JSON or CSV.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::ser::{Serialize, Serializer};

/// A number, a time, or nothing: `null`, and empty in CSV.
#[derive(Debug, serde::Serialize)]
#[serde(untagged)]
pub enum Cell {
    Number(f64),
    Text(String),
    Unknown,
}

#[derive(Debug)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

/// One row as an object, in the order of the columns.
struct Row<'a>(&'a [String], &'a [Cell]);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(self.1))
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(|row| Row(&self.columns, row)))
    }
}

impl Table {
    /// CSV as defined by RFC 4180.
    pub fn csv(&self) -> Response {
        let line = |cells: Vec<String>| cells.join(",") + "\r\n";
        let mut text = line(self.columns.iter().map(|name| quoted(name)).collect());
        for row in &self.rows {
            text += &line(row.iter().map(Cell::to_csv).collect());
        }
        (
            [(CONTENT_TYPE, "text/csv; charset=utf-8; header=present")],
            text,
        )
            .into_response()
    }
}

impl Cell {
    fn to_csv(&self) -> String {
        match self {
            Cell::Number(number) => number.to_string(),
            Cell::Text(text) => quoted(text),
            Cell::Unknown => String::new(),
        }
    }
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
