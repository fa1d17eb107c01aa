//! Records from a file, or a folder of files: Parquet, Arrow, CSV and JSON lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{ConvertedType, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::source::folder::{self, EqualFiles, FolderListing};
use crate::source::lines::{self, BrokenLines, LineTable};
use crate::source::record::DeclaredTypes;
use crate::source::told::{HOW, RedactedReason, without_numbers};
use crate::source::{RecordSource, SourceError, SourceEvent};
use bernstream_release::source::broken::{DecodeError, truncated_input};
use bernstream_release::source::decode;
use bernstream_release::source::decode::{ArrowMessage, Decoder};
use bernstream_release::source::found::FileContents;
use bernstream_release::source::rows;
use bernstream_release::source::rows::BatchOrigin;
use bernstream_release::source::{Batch, Columns, FoundColumn, FoundColumns};
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};
use bernstream_synopsis::{Positions, RecordedPositions};

/// A file, or a folder of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSourceParams {
    pub path: PathBuf,
    /// Types that CSV and JSON lines need declared.
    pub declared: DeclaredTypes,
}

/// Files that are read one after another, in the order of their names: Parquet, Arrow IPC files (`.arrow`, `.feather`)
/// Arrow IPC streams (`.arrows`), CSV
/// (`.csv`) and JSON lines (`.jsonl`, `.ndjson`).
pub struct FileSource {
    columns: Columns,
    declared: DeclaredTypes,
    files: Vec<PathBuf>,
    /// Everything else in the folder.
    passed_over: Vec<PathBuf>,
    /// Columns that are read of each.
    contents: Vec<FileContents>,
    /// The index of the file that is being read; the number of files at the end.
    at: usize,
    open: Option<OpenFile>,
    /// Number of its batches that have been read.
    batches: i64,
    /// Size in bytes of those files that have been read to their ends.
    finished: u64,
    /// Broken lines of the files that have been read to their ends.
    broken: BTreeMap<PathBuf, BrokenLines>,
}

impl FileSource {
    /// Lists the files and looks at their columns, so that a wrong name or type is reported before a ledger is created: a needed column
    /// must be in one of the files, with a type that it may have. Where others lack it, their records have none.
    ///
    /// # Errors
    ///
    /// If there is no such file, the folder contains none or belongs to a table of several versions, a file cannot be read, none has a
    /// needed column, or two hold the same records.
    pub fn open(params: &FileSourceParams, columns: Columns) -> Result<Self, SourceError> {
        let path = &params.path;
        let about = path.metadata().map_err(|error| io_error(path, &error))?;
        let FolderListing { files, passed_over } = if about.is_dir() {
            folder::list_folder(path).map_err(|broken| file_error(path, &broken))?
        } else {
            FolderListing {
                files: vec![path.clone()],
                passed_over: Vec::new(),
            }
        };
        let mut contents = Vec::with_capacity(files.len());
        for file in &files {
            contents.push(read_contents(file, &columns, &params.declared)?);
        }
        let files = FileSource {
            columns,
            declared: params.declared,
            files,
            passed_over,
            contents,
            at: 0,
            open: None,
            batches: 0,
            finished: 0,
            broken: BTreeMap::new(),
        };
        files.check_columns()?;
        files.check_different(path)?;
        Ok(files)
    }

    /// Checks that no two files have the same bytes, but those without a row that has an event time: each record of a copied file would
    /// count twice.
    fn check_different(&self, path: &Path) -> Result<(), SourceError> {
        let equal = folder::equal_files(&self.files).map_err(|error| io_error(path, &error))?;
        for EqualFiles { first, second } in equal {
            if self.has_records(second)? {
                let why = format!(
                    "has the same content as {}, so each of its records would count twice; remove one of the two",
                    first.display()
                );
                return Err(file_error(second, &why));
            }
        }
        Ok(())
    }

    fn has_records(&self, path: &Path) -> Result<bool, SourceError> {
        let mut table = OpenFile::open(path, &self.columns, &self.declared)?;
        loop {
            let batch = table
                .next(&self.columns, FIRST_BATCH)
                .map_err(|broken| unreadable_file(path, &broken))?;
            match batch {
                None => return Ok(false),
                Some(batch) if batch.times.iter().any(|time| time.is_some()) => return Ok(true),
                Some(_) => {}
            }
        }
    }

    /// Everything in the folder that is not read, such as hidden files, folders and files of other kinds.
    pub fn passed_over(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.passed_over.iter().map(PathBuf::as_path)
    }

    /// Checks that each needed column is in one of the files, unless records say themselves what they have, or there are none.
    fn check_columns(&self) -> Result<(), SourceError> {
        if self
            .contents
            .iter()
            .any(|contents| matches!(contents, FileContents::Records))
        {
            return Ok(());
        }
        let with_columns = self.with_columns();
        let Some(first) = with_columns.first() else {
            return Ok(());
        };
        for (at, column) in first.columns.columns().iter().enumerate() {
            let is_unread = with_columns.iter().all(|file| {
                let found = file.columns.columns().get(at);
                found.is_none_or(FoundColumn::is_unread)
            });
            if is_unread {
                return Err(file_error(first.path, &first.columns.unread_reason(column)));
            }
        }
        Ok(())
    }

    fn with_columns(&self) -> Vec<FileColumns<'_>> {
        let mut with_columns = Vec::new();
        for (path, contents) in self.files.iter().zip(&self.contents) {
            if let FileContents::Columns(columns) = contents {
                with_columns.push(FileColumns { path, columns });
            }
        }
        with_columns
    }

    /// The files that lack a needed column, or have it with a type that it may not have, and why: what their records have there counts
    /// as null.
    pub fn unread(&self) -> impl Iterator<Item = (&Path, DecodeError)> {
        self.with_columns().into_iter().flat_map(|file| {
            let unread = file.columns.unread_columns();
            unread.map(move |column| (file.path, file.columns.unread_reason(column)))
        })
    }

    /// The lines that cannot be read, in the files that have been read to their ends.
    pub fn broken_lines(&self) -> impl Iterator<Item = (&Path, &BrokenLines)> {
        self.broken
            .iter()
            .map(|(file, lines)| (file.as_path(), lines))
    }

    /// Size of all files in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.files.iter().map(|file| file_size(file)).sum()
    }

    /// About how many of them are read. Of Parquet a file counts once it is read to its end.
    pub fn bytes_read(&self) -> u64 {
        self.finished
            .saturating_add(self.open.as_ref().map_or(0, OpenFile::bytes_read))
    }

    /// The files without a byte, or without a line of names: they have no records.
    pub fn empty_files(&self) -> impl Iterator<Item = &Path> {
        let contents = self.files.iter().zip(&self.contents);
        contents
            .filter(|(_, contents)| matches!(contents, FileContents::Nothing))
            .map(|(file, _)| file.as_path())
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError> {
        while let Some(path) = self.files.get(self.at) {
            let table = match &mut self.open {
                Some(table) => table,
                None => self
                    .open
                    .insert(OpenFile::open(path, &self.columns, &self.declared)?),
            };
            let origin = BatchOrigin {
                partition: i32::try_from(self.at).unwrap_or(i32::MAX),
                offset: self.batches,
                message_time: None,
            };
            if let Some(batch) = table
                .next(&self.columns, origin)
                .map_err(|broken| unreadable_file(path, &broken))?
            {
                self.batches += 1;
                return Ok(Some(batch));
            }
            if let Some(OpenFile::Lines(lines)) = self.open.take() {
                self.broken.insert(path.clone(), lines.broken);
            }
            self.finished = self.finished.saturating_add(file_size(path));
            self.at += 1;
            self.batches = 0;
        }
        Ok(None)
    }
}

/// Columns of one of the files.
struct FileColumns<'f> {
    path: &'f Path,
    columns: &'f FoundColumns,
}

/// Origin of batches that are only looked at.
const FIRST_BATCH: BatchOrigin = BatchOrigin {
    partition: 0,
    offset: 0,
    message_time: None,
};

impl RecordSource for FileSource {
    fn clock(&self) -> ScheduleClock {
        ScheduleClock::new(Timestamp::now)
    }

    fn rewind(
        &mut self,
        _since: Timestamp,
        _recorded: &RecordedPositions,
    ) -> Result<(), SourceError> {
        self.at = 0;
        self.open = None;
        self.batches = 0;
        self.finished = 0;
        Ok(())
    }

    fn next_event(
        &mut self,
        _until: Option<&Positions>,
        _timeout: Duration,
    ) -> Result<SourceEvent, SourceError> {
        Ok(self
            .next_batch()?
            .map_or(SourceEvent::Idle, SourceEvent::Batch))
    }

    /// The end of all files for every cutoff: files have no message timestamps.
    fn end_offsets(&mut self, _cutoff: Timestamp) -> Result<Option<Positions>, SourceError> {
        Ok(Some(Positions([(0, i64::MAX)].into())))
    }

    fn has_reached(&self, _ends: &Positions) -> Result<bool, SourceError> {
        Ok(self.at == self.files.len())
    }

    fn is_connected(&self) -> bool {
        true
    }
}

/// Looks at what a file says before its records are read. Whether the pages of Parquet can be read shows only in one of them.
fn read_contents(
    path: &Path,
    columns: &Columns,
    declared: &DeclaredTypes,
) -> Result<FileContents, SourceError> {
    let mut table = OpenFile::open(path, columns, declared)?;
    if let OpenFile::Parquet(..) = table {
        table
            .next(columns, FIRST_BATCH)
            .map_err(|broken| unreadable_file(path, &broken))?;
    }
    Ok(table.contents())
}

fn file_error(path: &Path, why: &dyn std::fmt::Display) -> SourceError {
    SourceError::File {
        path: path.display().to_string(),
        why: why.to_string().into(),
    }
}

/// A file that is not as the configuration says, or one that its disk does not give, which may pass.
fn io_error(path: &Path, error: &io::Error) -> SourceError {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
    let is_fault =
        [IsADirectory, NotADirectory, NotFound, PermissionDenied].contains(&error.kind());
    match error.raw_os_error() {
        Some(_) if !is_fault => SourceError::Disk {
            path: path.display().to_string(),
            why: error.to_string(),
        },
        _ => file_error(path, error),
    }
}

/// Size of a file in bytes; 0 where the disk does not say it.
fn file_size(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

/// Why the disk does not give a file, if it does not.
fn disk_error(path: &Path) -> Option<io::Error> {
    File::open(path)
        .and_then(|mut file| io::copy(&mut file, &mut io::sink()))
        .err()
}

/// The error of a file that cannot be decoded. The numbers in the reason follow from what is in the file. Readers of its formats do not say
/// apart whether the disk is the reason.
fn unreadable_file(path: &Path, broken: &DecodeError) -> SourceError {
    if let Some(error) = disk_error(path) {
        return io_error(path, &error);
    }
    let in_full = broken.to_string();
    let mut words = without_numbers(&in_full);
    if words != in_full {
        words = format!("{words} ({HOW})");
    }
    SourceError::File {
        path: path.display().to_string(),
        why: RedactedReason::new(words, in_full),
    }
}

/// A file that is being read.
enum OpenFile {
    /// A file without a byte.
    Empty,
    Parquet(ParquetRecordBatchReader, Arc<FoundColumns>),
    Arrow(ArrowFileStream, Arc<FoundColumns>),
    Lines(Box<LineTable>),
}

impl OpenFile {
    fn open(path: &Path, columns: &Columns, declared: &DeclaredTypes) -> Result<Self, SourceError> {
        let file = File::open(path).map_err(|error| io_error(path, &error))?;
        let extension = path.extension().unwrap_or_default();
        if lines::is_named_so(path) {
            return match LineTable::open(file, extension == "csv", columns, declared) {
                Ok(lines) => Ok(OpenFile::Lines(Box::new(lines))),
                Err(broken) => Err(unreadable_file(path, &broken)),
            };
        }
        let about = file.metadata().map_err(|error| io_error(path, &error))?;
        if about.len() == 0 {
            return Ok(OpenFile::Empty);
        }
        let table = decode::catch_panic(|| {
            if extension == "parquet" {
                open_parquet(file, columns)
            } else {
                open_arrow(file, about.len(), columns)
            }
        });
        table.map_err(|broken| unreadable_file(path, &broken))
    }

    fn contents(&self) -> FileContents {
        match self {
            OpenFile::Empty => FileContents::Nothing,
            OpenFile::Parquet(_, found) | OpenFile::Arrow(_, found) => {
                FileContents::Columns(Arc::clone(found))
            }
            OpenFile::Lines(lines) => lines.contents.clone(),
        }
    }

    fn bytes_read(&self) -> u64 {
        match self {
            OpenFile::Empty | OpenFile::Parquet(..) => 0,
            OpenFile::Arrow(stream, _) => stream.size.saturating_sub(stream.input.limit()),
            OpenFile::Lines(lines) => lines.bytes_read(),
        }
    }

    fn next(
        &mut self,
        columns: &Columns,
        origin: BatchOrigin,
    ) -> Result<Option<Batch>, DecodeError> {
        decode::catch_panic(|| {
            let records;
            let found = match self {
                OpenFile::Empty => return Ok(None),
                OpenFile::Lines(lines) => return lines.next(origin.partition),
                OpenFile::Parquet(reader, found) => {
                    records = reader.next().transpose().map_err(DecodeError::new)?;
                    found
                }
                OpenFile::Arrow(stream, found) => {
                    records = stream.next(columns)?;
                    found
                }
            };
            match records {
                Some(records) => rows::needed_batch(&records, columns, found, origin).map(Some),
                None => Ok(None),
            }
        })
    }
}

/// Opens a Parquet file, with its text as bytes.
fn open_parquet(file: File, columns: &Columns) -> Result<OpenFile, DecodeError> {
    let metadata =
        ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(DecodeError::new)?;
    let found = FoundColumns::from_schema(metadata.schema(), columns)?;
    let reader = parquet_reader(file, &metadata, &found).map_err(DecodeError::new)?;
    Ok(OpenFile::Parquet(reader, Arc::new(found)))
}

/// A reader of the needed columns, text as bytes.
fn parquet_reader(
    file: File,
    metadata: &ArrowReaderMetadata,
    found: &FoundColumns,
) -> Result<ParquetRecordBatchReader, ParquetError> {
    let mut fields: Vec<Field> = Vec::new();
    for field in metadata.schema().fields() {
        // As views a value that many rows share is there once.
        let kind = match rows::text_as_bytes(field.data_type()) {
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            other => other,
        };
        fields.push(field.as_ref().clone().with_data_type(kind));
    }
    let root = without_text(metadata.parquet_schema().root_schema())?;
    let options = ArrowReaderOptions::new()
        .with_parquet_schema(Arc::new(SchemaDescriptor::new(root)))
        .with_schema(Arc::new(Schema::new(fields)));
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)?;
    let mask = ProjectionMask::roots(reader.parquet_schema(), found.projection.iter().copied());
    reader.with_projection(mask).with_batch_size(8192).build()
}

/// The schema with text columns as byte columns, which are not checked for valid UTF-8.
fn without_text(root: &Type) -> Result<TypePtr, ParquetError> {
    let mut fields = Vec::new();
    for field in root.get_fields() {
        let info = field.get_basic_info();
        let is_text = field.is_primitive()
            && field.get_physical_type() == Physical::BYTE_ARRAY
            && info.converted_type() == ConvertedType::UTF8;
        if !is_text {
            fields.push(field.clone());
            continue;
        }
        let bytes = Type::primitive_type_builder(field.name(), Physical::BYTE_ARRAY)
            .with_repetition(info.repetition())
            .with_id(info.has_id().then(|| info.id()))
            .build()?;
        fields.push(Arc::new(bytes));
    }
    let group = Type::group_type_builder(root.name())
        .with_fields(fields)
        .build()?;
    Ok(Arc::new(group))
}

/// An Arrow IPC stream in a file, message by message.
struct ArrowFileStream {
    /// Limited to the size of the file, so that the rest of it is known.
    input: io::Take<BufReader<File>>,
    /// Size of the file in bytes.
    size: u64,
    decoder: Decoder,
    /// In an IPC file the end-of-stream marker is mandatory.
    is_file: bool,
}

/// One message of a stream.
enum StreamMessage {
    Batch(RecordBatch),
    /// A schema or a dictionary.
    Other,
    End,
}

/// Opens an Arrow file of `size` bytes and reads its schema.
fn open_arrow(file: File, size: u64, columns: &Columns) -> Result<OpenFile, DecodeError> {
    let mut input = BufReader::new(file).take(size);
    // An IPC file is a stream between a zero-padded header and a footer.
    let start = input.fill_buf().map_err(DecodeError::new)?;
    let is_file = start.starts_with(b"ARROW1");
    if is_file {
        let head = 6 + start.iter().skip(6).take_while(|byte| **byte == 0).count();
        input.consume(head);
    }
    let mut stream = ArrowFileStream {
        input,
        size,
        decoder: Decoder::with_compression(),
        is_file,
    };
    // Anything before the schema is an error, and so is the end.
    while stream.decoder.adapted_schema().is_err() {
        stream.read_message(columns)?;
    }
    let found = Arc::clone(&stream.decoder.adapted_schema()?.found);
    Ok(OpenFile::Arrow(stream, found))
}

impl ArrowFileStream {
    fn next(&mut self, columns: &Columns) -> Result<Option<RecordBatch>, DecodeError> {
        loop {
            match self.read_message(columns)? {
                StreamMessage::Batch(records) => return Ok(Some(records)),
                StreamMessage::Other => {}
                StreamMessage::End => return Ok(None),
            }
        }
    }

    fn read_message(&mut self, columns: &Columns) -> Result<StreamMessage, DecodeError> {
        if !self.is_file && self.input.limit() == 0 {
            self.decoder.adapted_schema()?;
            return Ok(StreamMessage::End);
        }
        let mut head = [0; 8];
        self.input
            .read_exact(&mut head)
            .map_err(|error| broken_read(&error))?;
        let Some(length) = decode::metadata_length(head)? else {
            self.decoder.adapted_schema()?;
            return Ok(StreamMessage::End);
        };
        let metadata = self.read_bytes(length)?;
        let message = ArrowMessage::parse(&metadata)?;
        let body = Buffer::from(self.read_bytes(message.body)?);
        let records = self.decoder.read_batch(&message, &body, columns)?;
        Ok(records.map_or(StreamMessage::Other, StreamMessage::Batch))
    }

    fn read_bytes(&mut self, length: usize) -> Result<Vec<u8>, DecodeError> {
        if u64::try_from(length).map_or(true, |length| length > self.input.limit()) {
            return Err(truncated_input("an Arrow message"));
        }
        let mut bytes = vec![0; length];
        self.input
            .read_exact(&mut bytes)
            .map_err(|error| broken_read(&error))?;
        Ok(bytes)
    }
}

fn broken_read(error: &io::Error) -> DecodeError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => truncated_input("an Arrow message"),
        _ => DecodeError::new(error),
    }
}
