//! `bernstream produce`: sends the rows of a file to a Kafka topic, in the form that a worker reads.

use std::fmt::Display;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};

use crate::cli::cluster::Cluster;
use crate::cli::failure::Failure;
use crate::cli::print::note;
use crate::cli::produce_lines::LineMessages;
use crate::cli::progress::{ProgressPrinter, part_in_words};
use bernstream_kafka::topic;
use bernstream_kafka::{Broker, ErrorContext};
use bernstream_release::source::cells::column_times;

/// The most time that the broker may take to store a message.
const PATIENCE: Duration = Duration::from_secs(60);

/// Send a file to a Kafka topic, in the order of its rows: Parquet and Arrow as Arrow, CSV and JSON lines as JSON, a row a message
#[derive(Debug, clap::Args)]
pub struct ProduceArguments {
    /// The file: .parquet, .arrow or .feather (Arrow IPC file), .arrows (Arrow IPC stream), .csv, .jsonl or .ndjson (JSON lines)
    file: PathBuf,
    #[command(flatten)]
    cluster: Cluster,
    /// The topic to send to
    #[arg(long, requires = "brokers")]
    topic: String,
    /// Rows per message of Arrow
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// Replay event time this many times faster than real time; without it, send as fast as the broker accepts
    #[arg(long, value_name = "FACTOR", requires = "time", value_parser = pace)]
    pace: Option<f64>,
    /// The event-time column for --pace
    #[arg(long, value_name = "COLUMN", requires = "pace")]
    time: Option<String>,
    /// With --pace: how often a message of Arrow is sent, with the rows of that time, however few they are
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    flush_every: Duration,
    /// Create the topic with this many partitions, broker timestamps and unlimited retention
    #[arg(long, value_name = "PARTITIONS", value_parser = clap::value_parser!(i32).range(1..))]
    create: Option<i32>,
}

fn pace(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|pace: &f64| pace.is_finite() && *pace > 0.0)
        .ok_or("must be a number above 0".to_owned())
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval.is_zero() {
        Err("must be longer than zero".to_owned())
    } else {
        Ok(interval)
    }
}

/// Runs the command; returns when everything is stored.
///
/// # Errors
///
/// If the file cannot be read, or if the topic cannot be created or written.
pub fn run(arguments: &ProduceArguments) -> Result<(), Failure> {
    let broker = arguments.cluster.broker()?;
    let lines = LineMessages::open(&arguments.file, arguments.time.as_deref())?;
    let table = if lines.is_some() {
        None
    } else {
        Some(ArrowTable::open(&arguments.file, arguments.rows)?)
    };
    if let Some(partitions) = arguments.create {
        let settings = [
            ("message.timestamp.type", "LogAppendTime"),
            ("retention.ms", "-1"),
        ];
        // As many replicas as the broker creates by default.
        topic::create_topic(&broker, &arguments.topic, partitions, -1, &settings)?;
    }
    let partitions = topic::describe_topic(&broker, &arguments.topic)?.partitions;
    let sender = Sender::new(&broker, &arguments.topic)?;
    let mut replay = Replay::of(arguments);
    let mut rows = 0;
    let mut messages = 0_u64;
    let mut progress = ProgressPrinter::new();
    let mut partitions = partitions.iter().copied().cycle();
    if let Some(mut lines) = lines {
        while let (Some(line), Some(partition)) = (lines.next_message()?, partitions.next()) {
            if let (Some(replay), Some(time)) = (&mut replay, line.time) {
                replay.wait_until(time.micros());
            }
            sender.send(partition, &line.payload)?;
            rows += 1;
            messages += 1;
            progress.show(|| format!("{} rows sent", part_in_words(rows, 0)));
        }
    }
    if let Some(ArrowTable { batches, rows: all }) = table {
        for batch in slice_batches(batches, arguments.rows) {
            let batch = batch.map_err(|error| unreadable(&arguments.file, error))?;
            let parts = match &mut replay {
                Some(replay) => replay.split_into_intervals(&batch)?,
                None => vec![TimedRows {
                    rows: batch,
                    due: None,
                }],
            };
            for (message, partition) in parts.into_iter().zip(&mut partitions) {
                if let (Some(replay), Some(due)) = (&mut replay, message.due) {
                    replay.wait_until(due);
                }
                sender.send(partition, &encode_message(&message.rows)?)?;
                rows += message.rows.num_rows() as u64;
                messages += 1;
                progress.show(|| format!("{} rows sent", part_in_words(rows, all)));
            }
        }
    }
    sender.finish()?;
    drop(progress);
    note(format_args!(
        "{rows} rows in {messages} messages are in topic '{}'",
        arguments.topic
    ));
    Ok(())
}

fn unreadable(file: &Path, why: impl Display) -> Failure {
    Failure::Configuration(format!("cannot read {}: {why}", file.display()))
}

type BatchIterator = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// A file of Arrow or Parquet.
struct ArrowTable {
    batches: BatchIterator,
    /// The number of rows if the file states it, else 0.
    rows: u64,
}

impl ArrowTable {
    fn open(path: &Path, rows_at_once: u32) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| unreadable(path, error))?;
        let ending = path
            .extension()
            .and_then(|ending| ending.to_str())
            .unwrap_or_default();
        let table = match ending {
            "parquet" => ArrowTable::from_parquet(file, rows_at_once),
            "arrow" | "feather" => {
                FileReader::try_new_buffered(file, None).map(ArrowTable::of_batches)
            }
            "arrows" => StreamReader::try_new_buffered(file, None).map(ArrowTable::of_batches),
            _ => {
                return Err(unreadable(
                    path,
                    "its name must end in .parquet, .arrow, .feather, .arrows, .csv, .jsonl or .ndjson",
                ));
            }
        };
        table.map_err(|error| unreadable(path, error))
    }

    fn from_parquet(file: File, rows_at_once: u32) -> Result<Self, ArrowError> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
        let rows = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
        let batches = reader.with_batch_size(rows_at_once as usize).build()?;
        Ok(ArrowTable {
            batches: Box::new(batches),
            rows,
        })
    }

    fn of_batches(
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + 'static,
    ) -> Self {
        ArrowTable {
            batches: Box::new(batches),
            rows: 0,
        }
    }
}

/// Cuts batches down to at most `rows` rows.
fn slice_batches(
    batches: BatchIterator,
    rows: u32,
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    let rows = rows as usize;
    batches.flat_map(move |batch| match batch {
        Ok(batch) => (0..batch.num_rows())
            .step_by(rows)
            .map(|start| Ok(batch.slice(start, rows.min(batch.num_rows() - start))))
            .collect(),
        Err(error) => vec![Err(error)],
    })
}

fn encode_message(batch: &RecordBatch) -> Result<Vec<u8>, Failure> {
    ipc_stream(batch).map_err(|error| Failure::Other(format!("cannot encode a message: {error}")))
}

/// Writes a batch as one self-contained Arrow IPC stream.
pub(super) fn ipc_stream(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    writer.into_inner()
}

/// Rows that are sent together, and the event time, in microseconds, at which they are.
struct TimedRows {
    rows: RecordBatch,
    due: Option<i64>,
}

/// Replays event time faster than real time, from the first row on.
///
/// Event time is cut into intervals, and the rows of an interval are sent at its end: which rows are sent together, and when, depends on
/// their own times alone. If a message were full only after so many rows, each row would move those before it.
struct Replay {
    pace: f64,
    column: String,
    /// Length in microseconds of event time.
    interval: i64,
    start: Option<ReplayStart>,
}

/// The beginning of a replay, and its event time in microseconds.
#[derive(Clone, Copy)]
struct ReplayStart {
    event_time: i64,
    at: Instant,
}

impl Replay {
    fn of(arguments: &ProduceArguments) -> Option<Self> {
        let (pace, column) = arguments.pace.zip(arguments.time.clone())?;
        let interval = arguments.flush_every.as_secs_f64() * 1e6 * pace;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a longer interval than can be is the longest"
        )]
        let interval = (interval as i64).max(1);
        Some(Replay {
            pace,
            column,
            interval,
            start: None,
        })
    }

    /// The rows of a batch, interval by interval. A row without a time is in that of the row before it.
    fn split_into_intervals(&mut self, batch: &RecordBatch) -> Result<Vec<TimedRows>, Failure> {
        let column = batch.column_by_name(&self.column);
        let column = column.ok_or_else(|| {
            Failure::Configuration(format!("there is no column '{}'", self.column))
        })?;
        let times = column_times(column, None)
            .map_err(|broken| Failure::Configuration(broken.to_string()))?;
        if let Some(first) = times.iter().flatten().next() {
            self.begin(first);
        }
        let mut parts = Vec::new();
        let mut from = 0;
        let mut due = None;
        for (row, time) in times.iter().enumerate() {
            let end = time.map(|time| self.end_of_interval(time)).or(due);
            if end != due && row > from {
                parts.push(TimedRows {
                    rows: batch.slice(from, row - from),
                    due,
                });
                from = row;
            }
            due = end;
        }
        if batch.num_rows() > from {
            parts.push(TimedRows {
                rows: batch.slice(from, batch.num_rows() - from),
                due,
            });
        }
        Ok(parts)
    }

    fn end_of_interval(&self, time: i64) -> i64 {
        time.div_euclid(self.interval)
            .saturating_add(1)
            .saturating_mul(self.interval)
    }

    fn begin(&mut self, event_time: i64) -> ReplayStart {
        *self.start.get_or_insert_with(|| ReplayStart {
            event_time,
            at: Instant::now(),
        })
    }

    /// Waits until an event time, in microseconds.
    fn wait_until(&mut self, due: i64) {
        let start = self.begin(due);
        let seconds = due.saturating_sub(start.event_time).max(0) as f64 / 1e6 / self.pace;
        let due = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        std::thread::sleep(due.saturating_sub(start.at.elapsed()));
    }
}

/// Sends messages idempotently, and keeps the first error.
struct Sender {
    producer: ThreadedProducer<DeliveryFailures>,
    failed: Arc<OnceLock<KafkaError>>,
    broker: Broker,
    topic: String,
}

struct DeliveryFailures {
    first: Arc<OnceLock<KafkaError>>,
    error_context: ErrorContext,
}

impl ClientContext for DeliveryFailures {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.error_context.log(level, facility, message);
    }
}

impl ProducerContext for DeliveryFailures {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            // Only the first error is reported.
            let _ = self.first.set(error.clone());
        }
    }
}

impl Sender {
    fn new(broker: &Broker, topic: &str) -> Result<Self, Failure> {
        let failed = Arc::new(OnceLock::new());
        let mut config = broker
            .client_config()
            .map_err(|e| broker.error_about(topic, &e))?;
        config
            .set("enable.idempotence", "true")
            .set("compression.type", "lz4")
            .set("linger.ms", "5")
            // The limit of the broker decides.
            .set("message.max.bytes", "100000000")
            .set("message.timeout.ms", PATIENCE.as_millis().to_string());
        let producer = config
            .create_with_context(DeliveryFailures {
                first: failed.clone(),
                error_context: broker.error_context(),
            })
            .map_err(|e| broker.error_about(topic, &e))?;
        Ok(Sender {
            producer,
            failed,
            broker: broker.clone(),
            topic: topic.to_owned(),
        })
    }

    fn send(&self, partition: i32, payload: &[u8]) -> Result<(), Failure> {
        let mut record = BaseRecord::<(), [u8]>::to(&self.topic)
            .partition(partition)
            .payload(payload);
        loop {
            self.first_failure()?;
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), unsent)) => {
                    record = unsent;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err((error, _)) => return Err(self.failure(&error)),
            }
        }
    }

    fn finish(&self) -> Result<(), Failure> {
        let flushed = self.producer.flush(PATIENCE);
        self.first_failure()?;
        flushed.map_err(|e| self.failure(&e))
    }

    fn first_failure(&self) -> Result<(), Failure> {
        self.failed
            .get()
            .map_or(Ok(()), |error| Err(self.failure(error)))
    }

    fn failure(&self, error: &KafkaError) -> Failure {
        let Sender { broker, topic, .. } = self;
        let servers = &broker.servers;
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize) => {
                Failure::Configuration(format!(
                    "a message is too large for topic '{topic}': send fewer --rows per message, or raise its max.message.bytes"
                ))
            }
            Some(RDKafkaErrorCode::MessageTimedOut | RDKafkaErrorCode::AllBrokersDown) => {
                broker.error_about(topic, error).into()
            }
            _ => Failure::Other(format!(
                "kafka at {servers} refused a message of topic '{topic}': {error}"
            )),
        }
    }
}
