//! Files of one record a line: CSV and JSON lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::Path;
use std::sync::Arc;

use super::record::{
    BatchBuilder, CsvReader, DeclaredTypes, LARGEST_RECORD, RecordForm, RecordReader, split_line,
};
use bernstream_release::source::batch::Batch;
use bernstream_release::source::broken::DecodeError;
use bernstream_release::source::columns::Columns;
use bernstream_release::source::found::{FileContents, FoundColumns};

/// Bytes that many programs write at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns whether a file has lines, by its name.
pub fn is_named_so(path: &Path) -> bool {
    path.extension().is_some_and(|ending| {
        ["csv", "jsonl", "ndjson"]
            .iter()
            .any(|known| ending == *known)
    })
}

/// The lines of a file, without their ends. Of a line that is too long for a record, a byte more than a record can have is kept.
pub struct FileLines {
    input: BufReader<File>,
    line: Vec<u8>,
    /// Number of lines that have been read, empty ones too.
    pub read: u64,
}

impl FileLines {
    pub fn new(file: File) -> Self {
        FileLines {
            input: BufReader::new(file),
            line: Vec::new(),
            read: 0,
        }
    }

    /// Number of bytes of the file that are read.
    pub fn bytes_read(&self) -> u64 {
        self.input.get_ref().stream_position().unwrap_or(0)
    }

    /// The next line that is not empty. A byte-order mark before it is passed over, whichever line it is: were it only the first,
    /// what becomes of a record would depend on those before it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        while self.fill_line()? {
            self.read += 1;
            if self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            self.line.pop_if(|last| *last == b'\r');
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some(&self.line));
            }
        }
        Ok(None)
    }

    /// Reads a line; `false` at the end of the file.
    fn fill_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut is_there = false;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(is_there);
            }
            is_there = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(buffer.len());
            let room = (BYTE_ORDER_MARK.len() + LARGEST_RECORD + 2).saturating_sub(self.line.len());
            self.line.extend(buffer.iter().take(taken.min(room)));
            self.input.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

/// Reads the records of a file.
enum LineReader {
    Json(RecordReader),
    Csv(CsvReader),
}

/// Number of lines that are listed because they are no record.
const MOST_LISTED: usize = 5;

/// The lines of a file that cannot be read as a record: how many, and the first of them. For whoever may see the records.
#[derive(Debug, Default)]
pub struct BrokenLines {
    pub count: u64,
    pub first: Vec<BrokenLine>,
}

#[derive(Debug)]
pub struct BrokenLine {
    pub line: u64,
    pub why: DecodeError,
}

impl BrokenLines {
    fn note_line(&mut self, line: u64, why: DecodeError) {
        self.count += 1;
        if self.first.len() < MOST_LISTED {
            self.first.push(BrokenLine { line, why });
        }
    }
}

/// The records of a file of lines, in batches.
pub(super) struct LineTable {
    lines: FileLines,
    reader: LineReader,
    gather: BatchBuilder,
    pub contents: FileContents,
    pub broken: BrokenLines,
}

impl LineTable {
    /// Number of bytes of the file that are read.
    pub fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }

    /// A file without a line of names has no records.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, names a needed column twice, or a type that it needs is not declared.
    pub fn open(
        file: File,
        is_csv: bool,
        columns: &Columns,
        declared: &DeclaredTypes,
    ) -> Result<Self, DecodeError> {
        let mut lines = FileLines::new(file);
        if !is_csv {
            let reader = RecordReader::new(&RecordForm::Json, columns, declared)
                .map_err(DecodeError::new)?;
            let reader = LineReader::Json(reader);
            let contents = FileContents::Records;
            return Ok(LineTable::new(lines, reader, columns, contents));
        }
        let header = lines
            .next_line()
            .map_err(DecodeError::new)?
            .map(split_line)
            .transpose()?;
        let contents = match &header {
            Some(header) => {
                FileContents::Columns(Arc::new(FoundColumns::from_header(header, columns)))
            }
            None => FileContents::Nothing,
        };
        let reader = LineReader::Csv(CsvReader::new(
            &header.unwrap_or_default(),
            columns,
            declared,
        )?);
        Ok(LineTable::new(lines, reader, columns, contents))
    }

    fn new(
        lines: FileLines,
        reader: LineReader,
        columns: &Columns,
        contents: FileContents,
    ) -> Self {
        LineTable {
            lines,
            reader,
            gather: BatchBuilder::new(columns),
            contents,
            broken: BrokenLines::default(),
        }
    }

    /// The next records. A line that cannot be read is a row without a time, which is dropped.
    pub fn next(&mut self, partition: i32) -> Result<Option<Batch>, DecodeError> {
        let LineTable {
            lines,
            reader,
            gather,
            broken,
            ..
        } = self;
        loop {
            // By its line, so that the order of rows does not depend on where batches end.
            let offset = i64::try_from(lines.read).unwrap_or(i64::MAX);
            let Some(line) = lines.next_line().map_err(DecodeError::new)? else {
                return Ok(gather.take_batch());
            };
            let read = match reader {
                LineReader::Json(reader) => reader.read(line),
                LineReader::Csv(reader) => reader.read(line),
            };
            let row = match read {
                Ok(row) => Some(row),
                Err(why) => {
                    broken.note_line(lines.read, why);
                    None
                }
            };
            if let Some(batch) = gather.push_row(partition, offset, None, row) {
                return Ok(Some(batch));
            }
        }
    }
}
