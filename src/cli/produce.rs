//! `produce`: a file as Arrow messages on a topic, at once or at the pace of its own event times.

use std::fs::File;
use std::io::{BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use arrow::array::{Array, RecordBatch, RecordBatchReader, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::ipc::writer::StreamWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};

use crate::cli::Failure;
use crate::source::topic::{self, Broker};

/// How long the broker may take for what is still under way at the end.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A Parquet (.parquet) or Arrow (.arrow, .feather, .arrows) file.
    file: PathBuf,
    /// Where the cluster is, as in localhost:9092.
    #[arg(long)]
    brokers: String,
    /// The topic to send to.
    #[arg(long)]
    topic: String,
    /// Rows a message.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rows: u32,
    /// Make the topic first, with so many partitions, append times and no expiry.
    #[arg(long, value_name = "PARTITIONS", value_parser = clap::value_parser!(i32).range(1..=1000))]
    create: Option<i32>,
    /// Replay event time so many times faster than it happened; without it, send as fast as it goes.
    #[arg(long, value_name = "TIMES", requires = "time", value_parser = positive)]
    pace: Option<f64>,
    /// The column of event times that --pace follows.
    #[arg(long)]
    time: Option<String>,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
    if number.is_finite() && number > 0.0 { Ok(number) } else { Err("it must be more than 0".to_owned()) }
}

/// Sends the whole file; returns once the broker has all of it.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let broker = Broker { servers: arguments.brokers.clone(), is_mock: false };
    let unavailable = |error: crate::source::Error| Failure::Unavailable(error.to_string());
    if let Some(partitions) = arguments.create {
        let settings = [("message.timestamp.type", "LogAppendTime"), ("retention.ms", "-1")];
        topic::create(&broker, &arguments.topic, partitions, 1, &settings).map_err(unavailable)?;
    }
    let partitions = topic::describe(&broker, &arguments.topic).map_err(unavailable)?.partitions;
    let mut sending = Sending {
        producer: producer(&broker)?,
        topic: &arguments.topic,
        partitions: partitions.into_iter().cycle(),
        shows: std::io::stderr().is_terminal(),
        rows: 0,
    };
    let mut pace = arguments.pace.zip(arguments.time.as_deref()).map(|(times, column)| Pace::new(times, column));
    for batch in open(&arguments.file, arguments.rows)? {
        let batch = batch.map_err(|error| unreadable(&arguments.file, &error))?;
        // A file may hold larger batches than asked for.
        let rows = arguments.rows as usize;
        for start in (0..batch.num_rows()).step_by(rows) {
            let batch = batch.slice(start, rows.min(batch.num_rows() - start));
            if let Some(pace) = &mut pace {
                pace.wait_for(&batch)?;
            }
            sending.send(&batch)?;
        }
    }
    sending.finish()
}

fn producer(broker: &Broker) -> Result<ThreadedProducer<DefaultProducerContext>, Failure> {
    broker
        .client_config()
        .set("enable.idempotence", "true")
        .set("compression.type", "lz4")
        .set("linger.ms", "5")
        .create()
        .map_err(|error| Failure::Unavailable(format!("no producer can be made: {error}")))
}

/// What is on its way.
struct Sending<'a, P> {
    producer: ThreadedProducer<DefaultProducerContext>,
    topic: &'a str,
    /// The partitions in turn, for ever.
    partitions: P,
    shows: bool,
    rows: usize,
}

impl<P: Iterator<Item = i32>> Sending<'_, P> {
    fn send(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let payload = message(batch).map_err(|error| Failure::Other(format!("rows cannot be encoded: {error}")))?;
        let partition = self.partitions.next().unwrap_or(0);
        let mut record = BaseRecord::<(), _>::to(self.topic).partition(partition).payload(&payload);
        loop {
            match self.producer.send(record) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                    record = again;
                    thread::sleep(Duration::from_millis(10));
                }
                Err((error, _)) => return Err(self.failed(&error)),
            }
        }
        self.rows += batch.num_rows();
        if self.shows {
            eprint!("\r{} rows", self.rows);
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Failure> {
        self.producer.flush(PATIENCE).map_err(|error| self.failed(&error))?;
        let clear = if self.shows { "\r" } else { "" };
        eprintln!("{clear}{} rows sent to {}", self.rows, self.topic);
        Ok(())
    }

    fn failed(&self, error: &KafkaError) -> Failure {
        Failure::Unavailable(format!("topic '{}' does not take the rows: {error}", self.topic))
    }
}

/// One self-contained Arrow IPC stream.
fn message(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    writer.into_inner()
}

/// Follows the event times of the rows.
struct Pace<'a> {
    times: f64,
    column: &'a str,
    /// The first event time, microseconds, and when it was sent.
    start: Option<(i64, Instant)>,
}

impl<'a> Pace<'a> {
    fn new(times: f64, column: &'a str) -> Self {
        Pace { times, column, start: None }
    }

    /// Sleeps until the newest row of `batch` would have happened.
    fn wait_for(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let Some(newest) = self.newest(batch)? else { return Ok(()) };
        let (first, sent) = *self.start.get_or_insert((newest, Instant::now()));
        #[expect(clippy::cast_precision_loss, reason = "a pause to the nearest instant")]
        let seconds = newest.saturating_sub(first).max(0) as f64 / 1e6 / self.times;
        let due = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        thread::sleep(due.saturating_sub(sent.elapsed()));
        Ok(())
    }

    fn newest(&self, batch: &RecordBatch) -> Result<Option<i64>, Failure> {
        let wrong = |what: &str| Failure::Configuration(format!("--time: the column '{}' {what}", self.column));
        let column = batch.column_by_name(self.column).ok_or_else(|| wrong("is not in the file"))?;
        if !matches!(column.data_type(), DataType::Timestamp(..)) {
            return Err(wrong(&format!("is {}, not a timestamp", column.data_type())));
        }
        let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, None)).map_err(|_| wrong("overflows"))?;
        let micros = micros.as_any().downcast_ref::<TimestampMicrosecondArray>().ok_or_else(|| wrong("cannot be read"))?;
        Ok(micros.iter().flatten().max())
    }
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

fn open(path: &Path, rows: u32) -> Result<Batches, Failure> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let batches: Result<Batches, ArrowError> = match ending {
        "parquet" => ParquetRecordBatchReaderBuilder::try_new(file)
            .and_then(|builder| builder.with_batch_size(rows as usize).build())
            .map(|reader| boxed(reader))
            .map_err(ArrowError::from),
        "arrow" | "feather" => FileReader::try_new(BufReader::new(file), None).map(boxed),
        "arrows" => StreamReader::try_new(BufReader::new(file), None).map(boxed),
        _ => return Err(unreadable(path, &"its name must end in .parquet, .arrow, .feather or .arrows")),
    };
    batches.map_err(|error| unreadable(path, &error))
}

fn boxed(reader: impl RecordBatchReader + 'static) -> Batches {
    Box::new(reader)
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Configuration(format!("{} cannot be read: {error}", path.display()))
}
