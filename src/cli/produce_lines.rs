//! The lines of a CSV or JSON-lines file as messages: one JSON object each.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::cli::failure::Failure;
use bernstream_kafka::source::lines::FileLines;
use bernstream_kafka::source::record::{DeclaredTypes, RecordForm, RecordReader, split_line};
use bernstream_release::source::Columns;
use bernstream_synopsis::clock::Timestamp;

/// A line as a message, and the event time in it.
pub(super) struct LineMessage {
    pub payload: Vec<u8>,
    pub time: Option<Timestamp>,
}

/// The messages of a file of lines.
pub(super) struct LineMessages {
    path: PathBuf,
    lines: FileLines,
    /// The names of the columns, as paths; JSON lines have their own.
    header: Option<Vec<String>>,
    /// Reads each message as a worker would.
    reader: RecordReader,
}

impl LineMessages {
    /// Opens a file if it has lines, by its name. `time` is the column whose times are wanted.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or the names in its first line cannot be those of a record.
    pub fn open(path: &Path, time: Option<&str>) -> Result<Option<Self>, Failure> {
        let is_csv = match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => true,
            Some("jsonl" | "ndjson") => false,
            _ => return Ok(None),
        };
        let file = File::open(path).map_err(|error| unreadable(path, 1, error))?;
        let mut lines = FileLines::new(file);
        let header = match is_csv {
            true => {
                let line = lines
                    .next_line()
                    .map_err(|error| unreadable(path, 1, error))?;
                let names = column_names(line.unwrap_or_default());
                Some(names.map_err(|why| unreadable(path, 1, why))?)
            }
            false => None,
        };
        let time = time.unwrap_or("time").to_owned();
        let columns = Columns {
            time,
            ..Columns::default()
        };
        let reader = RecordReader::new(&RecordForm::Json, &columns, &DeclaredTypes::default())
            .map_err(|error| unreadable(path, 1, error))?;
        Ok(Some(LineMessages {
            path: path.to_owned(),
            lines,
            header,
            reader,
        }))
    }

    /// The next message, and the event time in it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or no worker could read the line.
    pub fn next_message(&mut self) -> Result<Option<LineMessage>, Failure> {
        let next = match self.lines.next_line() {
            Ok(line) => Ok(line.map(<[u8]>::to_vec)),
            Err(error) => Err(error.to_string()),
        };
        let number = self.lines.read;
        let Some(line) = next.map_err(|why| unreadable(&self.path, number, why))? else {
            return Ok(None);
        };
        let payload = match &self.header {
            Some(names) => {
                json_object(names, &line).map_err(|why| unreadable(&self.path, number, why))?
            }
            None => line,
        };
        match self.reader.read(&payload) {
            Ok(row) => {
                let time = row.time();
                Ok(Some(LineMessage { payload, time }))
            }
            Err(why) => {
                let why = format_args!("no worker could read it: {why}");
                Err(unreadable(&self.path, number, why))
            }
        }
    }
}

fn unreadable(path: &Path, line: u64, why: impl Display) -> Failure {
    Failure::Configuration(format!(
        "cannot read {}: line {line}: {why}; the lines before it were sent",
        path.display()
    ))
}

/// The names of the columns: paths to different fields.
fn column_names(line: &[u8]) -> Result<Vec<String>, String> {
    let names = split_line(line).map_err(|broken| broken.to_string())?;
    let mut seen = HashSet::new();
    for name in &names {
        if name.split('.').any(str::is_empty) {
            return Err(format!("'{name}' is no name of a column"));
        }
        if !seen.insert(name.as_str()) {
            return Err(format!("it has two columns '{name}'"));
        }
    }
    for name in &names {
        if name
            .match_indices('.')
            .any(|(dot, _)| name.get(..dot).is_some_and(|object| seen.contains(object)))
        {
            return Err(format!("'{name}' lies in another column"));
        }
    }
    Ok(names)
}

/// A line as an object: each field a string, with objects around it where its name is a path. What is empty is left out.
fn json_object(names: &[String], line: &[u8]) -> Result<Vec<u8>, String> {
    let fields = split_line(line).map_err(|broken| broken.to_string())?;
    if fields.len() != names.len() {
        return Err(format!(
            "it has {} fields, the header has {}",
            fields.len(),
            names.len()
        ));
    }
    let mut record = Map::new();
    for (name, field) in names
        .iter()
        .zip(fields)
        .filter(|(_, field)| !field.is_empty())
    {
        let (path, last) = name.rsplit_once('.').unwrap_or(("", name));
        let mut inner = &mut record;
        for step in path.split('.').filter(|step| !step.is_empty()) {
            let object = inner.entry(step).or_insert_with(|| Map::new().into());
            inner = object
                .as_object_mut()
                .ok_or_else(|| format!("'{name}' lies in another column"))?;
        }
        inner.insert(last.to_owned(), field.into());
    }
    Ok(Value::Object(record).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_csv_becomes_an_object() {
        let names = column_names(b"at,ride.city,ride.km,note").unwrap();
        let line = json_object(&names, b"1,\"B\"\"e,rn\",7.25,").unwrap();
        assert_eq!(
            String::from_utf8(line).unwrap(),
            r#"{"at":"1","ride":{"city":"B\"e,rn","km":"7.25"}}"#
        );
        assert!(
            json_object(&names, b"1,2,3")
                .unwrap_err()
                .contains("3 fields")
        );
        for (wrong, why) in [
            ("a,a", "two columns 'a'"),
            ("a.b,a", "lies in another"),
            ("a,,b", "no name"),
            ("a..b", "no name"),
        ] {
            let told = column_names(wrong.as_bytes()).unwrap_err();
            assert!(told.contains(why), "{wrong}: {told}");
        }
    }
}
