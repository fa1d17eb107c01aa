//! Records from a file, or a folder of files: Parquet, Arrow, CSV and JSON lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{ConvertedType, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::clock::{ScheduleClock, Timestamp};
use crate::source::broken::{Broken, truncated};
use crate::source::decode::{self, Decoder, Message};
use crate::source::lines::{self, LineTable};
use crate::source::record::Declared;
use crate::source::rows::{self, Place};
use crate::source::{Batch, Columns, Error, Event, Positions, Recorded, Source};

/// The extensions of the files that are read.
const EXTENSIONS: [&str; 7] = ["parquet", "arrow", "feather", "arrows", "csv", "jsonl", "ndjson"];

/// A file, or a folder of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    pub path: PathBuf,
    /// What CSV and JSON lines need declared.
    pub declared: Declared,
}

/// Files that are read one after another, in the order of their names: Parquet, Arrow IPC files (`.arrow`, `.feather`)
/// Arrow IPC streams (`.arrows`), CSV
/// (`.csv`) and JSON lines (`.jsonl`, `.ndjson`).
pub struct Files {
    columns: Columns,
    declared: Declared,
    files: Vec<PathBuf>,
    /// The index of the file that is being read; the number of files at the end.
    at: usize,
    open: Option<Table>,
    /// How many of its batches have been read.
    batches: i64,
}

impl Files {
    /// Lists the files. The columns of Parquet files are checked now, so that a wrong name is reported before a ledger is
    /// created; those of Arrow files are checked when they are read.
    ///
    /// # Errors
    ///
    /// If there is no such file, the folder contains none, or a file cannot be read or lacks a needed column.
    pub fn open(params: &Params, columns: Columns) -> Result<Self, Error> {
        let path = &params.path;
        let failed = |error: std::io::Error| fault(path, &error);
        let mut files = vec![path.clone()];
        if path.metadata().map_err(failed)?.is_dir() {
            let entries = path.read_dir().map_err(failed)?.map(|entry| entry.map(|e| e.path()));
            files = entries.collect::<Result<_, _>>().map_err(failed)?;
            files.retain(|file| file.extension().is_some_and(|e| EXTENSIONS.iter().any(|extension| e == *extension)));
            files.sort();
        }
        if files.is_empty() {
            return Err(fault(
                path,
                &"the folder contains no .parquet, .arrow, .feather, .arrows, .csv, .jsonl or .ndjson file",
            ));
        }
        for file in &files {
            Table::open(file, &columns, &params.declared)?;
        }
        Ok(Files { columns, declared: params.declared, files, at: 0, open: None, batches: 0 })
    }

    fn read(&mut self) -> Result<Option<Batch>, Error> {
        while let Some(path) = self.files.get(self.at) {
            let table = match &mut self.open {
                Some(table) => table,
                None => self.open.insert(Table::open(path, &self.columns, &self.declared)?),
            };
            let partition = i32::try_from(self.at).unwrap_or(i32::MAX);
            let place = Place { partition, offset: self.batches, message_time: None };
            if let Some(batch) = table.next(&self.columns, place).map_err(|broken| fault(path, &broken))? {
                self.batches += 1;
                return Ok(Some(batch));
            }
            (self.at, self.open, self.batches) = (self.at + 1, None, 0);
        }
        Ok(None)
    }
}

impl Source for Files {
    fn clock(&self) -> ScheduleClock {
        ScheduleClock::new(Timestamp::now)
    }

    fn rewind(&mut self, _since: Timestamp, _recorded: &Recorded) -> Result<(), Error> {
        (self.at, self.open, self.batches) = (0, None, 0);
        Ok(())
    }

    fn next(&mut self, _until: Option<&Positions>, _timeout: Duration) -> Result<Event, Error> {
        Ok(self.read()?.map_or(Event::Idle, Event::Batch))
    }

    /// The end of all files for every cutoff: files have no message timestamps.
    fn ends(&mut self, _cutoff: Timestamp) -> Result<Option<Positions>, Error> {
        Ok(Some(Positions([(0, i64::MAX)].into())))
    }

    fn reached(&self, _ends: &Positions) -> Result<bool, Error> {
        Ok(self.at == self.files.len())
    }

    fn is_connected(&self) -> bool {
        true
    }
}

fn fault(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), why: why.to_string() }
}

/// A file that is being read.
enum Table {
    Parquet(ParquetRecordBatchReader),
    Arrow(Stream),
    Lines(Box<LineTable>),
}

impl Table {
    fn open(path: &Path, columns: &Columns, declared: &Declared) -> Result<Self, Error> {
        let failed = |error: std::io::Error| fault(path, &error);
        let file = File::open(path).map_err(failed)?;
        let is = |wanted: &str| path.extension().is_some_and(|ending| ending == wanted);
        if lines::is_named_so(path) {
            let lines = LineTable::open(file, is("csv"), columns, declared);
            return lines.map(|lines| Table::Lines(Box::new(lines))).map_err(|broken| fault(path, &broken));
        }
        if is("parquet") {
            let open = || parquet(file, columns);
            return decode::catch_panic(open).map(Table::Parquet).map_err(|broken| fault(path, &broken));
        }
        let size = file.metadata().map_err(failed)?.len();
        let mut input = BufReader::new(file).take(size);
        // An IPC file is a stream between a zero-padded header and a footer.
        let start = input.fill_buf().map_err(failed)?;
        let is_file = start.starts_with(b"ARROW1");
        if is_file {
            let head = 6 + start.iter().skip(6).take_while(|byte| **byte == 0).count();
            input.consume(head);
        }
        Ok(Table::Arrow(Stream { input, decoder: Decoder::unfolding(), is_file }))
    }

    fn next(&mut self, columns: &Columns, place: Place) -> Result<Option<Batch>, Broken> {
        decode::catch_panic(|| {
            let records = match self {
                Table::Parquet(reader) => reader.next().transpose().map_err(Broken::new)?,
                Table::Arrow(stream) => stream.next(columns)?,
                Table::Lines(lines) => return lines.next(place.partition),
            };
            records.map(|records| rows::batch(&records, columns, place)).transpose()
        })
    }
}

/// A reader of the needed columns, text as bytes.
fn parquet(file: File, columns: &Columns) -> Result<ParquetRecordBatchReader, Broken> {
    let failed = |error: ParquetError| Broken::new(error);
    let found = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(failed)?;
    let needed = rows::needed(found.schema(), columns)?;
    // As views a value that many rows share is there once.
    let kind = |kind: &DataType| match rows::as_bytes(kind) {
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other,
    };
    let bytes = |field: &Field| field.clone().with_data_type(kind(field.data_type()));
    let schema = Schema::new(found.schema().fields().iter().map(|field| bytes(field)).collect::<Vec<_>>());
    let plain = without_text(found.parquet_schema().root_schema()).map_err(failed)?;
    let options = ArrowReaderOptions::new().with_parquet_schema(Arc::new(SchemaDescriptor::new(plain)));
    let options = options.with_schema(Arc::new(schema));
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(failed)?;
    let mask = ProjectionMask::roots(reader.parquet_schema(), needed);
    reader.with_projection(mask).with_batch_size(8192).build().map_err(failed)
}

/// The schema with text columns as byte columns, which are not checked for valid UTF-8.
fn without_text(root: &Type) -> Result<TypePtr, ParquetError> {
    let plain = |field: &TypePtr| {
        let info = field.get_basic_info();
        let is_text = field.is_primitive()
            && field.get_physical_type() == Physical::BYTE_ARRAY
            && info.converted_type() == ConvertedType::UTF8;
        if !is_text {
            return Ok(field.clone());
        }
        let bytes = Type::primitive_type_builder(field.name(), Physical::BYTE_ARRAY);
        let id = info.has_id().then(|| info.id());
        bytes.with_repetition(info.repetition()).with_id(id).build().map(Arc::new)
    };
    let fields = root.get_fields().iter().map(plain).collect::<Result<_, _>>()?;
    Type::group_type_builder(root.name()).with_fields(fields).build().map(Arc::new)
}

/// An Arrow IPC stream in a file, message by message.
struct Stream {
    /// Limited to the size of the file, so that the rest of it is known.
    input: std::io::Take<BufReader<File>>,
    decoder: Decoder,
    /// In an IPC file the end-of-stream marker is mandatory.
    is_file: bool,
}

impl Stream {
    fn next(&mut self, columns: &Columns) -> Result<Option<RecordBatch>, Broken> {
        loop {
            if !self.is_file && self.input.limit() == 0 {
                self.decoder.shape()?;
                return Ok(None);
            }
            let mut head = [0; 8];
            self.input.read_exact(&mut head).map_err(|e| read_failed(&e))?;
            let Some(length) = decode::metadata_length(head)? else {
                self.decoder.shape()?;
                return Ok(None);
            };
            let metadata = self.take(length)?;
            let message = Message::parse(&metadata)?;
            let body = Buffer::from(self.take(message.body)?);
            if let Some(records) = self.decoder.read(&message, &body, columns)? {
                return Ok(Some(records));
            }
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, Broken> {
        if u64::try_from(length).map_or(true, |length| length > self.input.limit()) {
            return Err(truncated("an Arrow message"));
        }
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes).map_err(|e| read_failed(&e))?;
        Ok(bytes)
    }
}

fn read_failed(error: &std::io::Error) -> Broken {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => truncated("an Arrow message"),
        _ => Broken::new(error),
    }
}
