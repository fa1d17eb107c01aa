//! The kinds of output. Everything that differs between them is decided here, once for each question.

use std::path::{Path, PathBuf};

use super::check;
use super::error::SinkError;
use super::files::{self, FolderSink};
use super::kafka::{self as topic_sink, KafkaSink};
use super::publish::Sink;
use super::published::FoundMessage;
use crate::check::TopicCheck;
use crate::ledger::witness;
use crate::ledger::witness::kafka::KafkaWitness;
use crate::{Broker, topic};
use bernstream_ledger::witness::Witness;
use bernstream_ledger::witness::file::FileWitness;

/// A place for synopses, and the witness that belongs to it.
#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
#[derive(Clone, Debug)]
pub enum OutputParams {
    Kafka {
        sink: topic_sink::KafkaSinkParams,
        witness: witness::kafka::OrderedTopicParams,
    },
    Files(files::FolderSinkParams),
}

/// The largest synopsis, in bytes, that a topic takes by default.
const ALWAYS_TAKEN: usize = 1_000_000;

/// Where published synopses can be read.
#[derive(Clone, Copy, Debug)]
pub enum OutputLocation<'o> {
    Topic { broker: &'o Broker, topic: &'o str },
    Folder(&'o Path),
}

/// Messages that were on an output at one time. A worker may publish more meanwhile.
#[derive(Clone, Debug)]
pub enum OutputExtent<'o> {
    Topic(
        &'o topic_sink::KafkaSinkParams,
        Vec<topic_sink::PartitionExtent>,
    ),
    Folder(Vec<PathBuf>),
}

impl OutputExtent<'_> {
    /// Returns whether key and headers of a message are stored: a file holds its bytes only.
    pub fn has_envelope(&self) -> bool {
        matches!(self, OutputExtent::Topic(..))
    }

    /// Largest number of messages that it has.
    pub fn most_messages(&self) -> u64 {
        match self {
            OutputExtent::Topic(_, extents) => extents
                .iter()
                .map(topic_sink::PartitionExtent::most_messages)
                .sum(),
            OutputExtent::Folder(paths) => paths.len() as u64,
        }
    }

    /// Passes everything that was on the output to `each`.
    ///
    /// # Errors
    ///
    /// If it cannot be read to its end.
    pub fn each_published(&self, mut each: impl FnMut(FoundMessage)) -> Result<(), OutputError> {
        match self {
            OutputExtent::Topic(sink, extents) => {
                topic_sink::each_message(sink, extents, |place, message| {
                    each(FoundMessage::of_message(place.to_string(), message))
                })?;
            }
            OutputExtent::Folder(paths) => files::each_synopsis(paths, |place, bytes| {
                each(FoundMessage::of_bytes(place, bytes))
            })?,
        }
        Ok(())
    }
}

/// A synopsis of another pipeline.
#[derive(Clone, Debug)]
pub struct ForeignSynopsis {
    pub pipeline: String,
    /// The file, or topic, partition and offset.
    pub place: String,
}

/// Why an output cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error(
        "there is no output topic '{topic}' at {servers}: `bernstream ledger init` creates it; or correct `topic` of [output.kafka]"
    )]
    NoTopic { topic: String, servers: String },
    #[error(transparent)]
    Broker(crate::ClusterError),
    #[error(transparent)]
    Witness(#[from] bernstream_ledger::witness::WitnessError),
    #[error(transparent)]
    Sink(SinkError),
}

impl From<crate::ClusterError> for OutputError {
    fn from(error: crate::ClusterError) -> Self {
        match error {
            crate::ClusterError::NoTopic { topic, servers } => {
                OutputError::NoTopic { topic, servers }
            }
            error => OutputError::Broker(error),
        }
    }
}

impl From<SinkError> for OutputError {
    fn from(error: SinkError) -> Self {
        match error {
            // No synopsis was to be published: the failure is that of the broker alone.
            SinkError::Broker(error) => error.into(),
            error => OutputError::Sink(error),
        }
    }
}

impl OutputError {
    /// Returns whether to try again.
    pub fn is_transient(&self) -> bool {
        match self {
            OutputError::NoTopic { .. } => false,
            OutputError::Broker(error) => error.is_transient(),
            OutputError::Witness(error) => error.is_transient(),
            OutputError::Sink(error) => error.is_transient(),
        }
    }

    /// Returns whether output or witness is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, OutputError::NoTopic { .. })
            || matches!(self, OutputError::Witness(error) if error.is_missing())
    }
}

impl OutputParams {
    /// Opens the sink.
    ///
    /// # Errors
    ///
    /// If the output topic is missing or its broker cannot be reached.
    pub fn open_sink(&self) -> Result<Box<dyn Sink + Send>, OutputError> {
        match self {
            OutputParams::Kafka { sink, .. } => Ok(Box::new(KafkaSink::open(sink)?)),
            OutputParams::Files(folder) => Ok(Box::new(FolderSink::new(folder))),
        }
    }

    /// Opens the witness. A witness file is created if nothing was ever published beside it.
    ///
    /// # Errors
    ///
    /// If the witness is missing, damaged or not set up as a witness must be, or if it cannot be reached.
    pub fn open_witness(&self) -> Result<Box<dyn Witness + Send>, OutputError> {
        match self {
            OutputParams::Kafka { witness, .. } => Ok(Box::new(KafkaWitness::open(witness)?)),
            OutputParams::Files(folder) => {
                let witness = FileWitness::open(&witness_file(folder)?)?;
                Ok(bound_witness(folder, witness))
            }
        }
    }

    /// Opens the witness for whoever may change nothing; `None` where a worker would make one.
    ///
    /// # Errors
    ///
    /// As for [`open_witness`](Self::open_witness).
    pub fn look_at_witness(&self) -> Result<Option<Box<dyn Witness + Send>>, OutputError> {
        match self {
            OutputParams::Files(folder)
                if !folder.witness_path().exists() && files::is_untouched(folder)? =>
            {
                Ok(None)
            }
            output => output.open_witness().map(Some),
        }
    }

    /// Opens the witness for a worker, which remembers its place in a file in `folder`, that of its ledger.
    ///
    /// # Errors
    ///
    /// As for [`open_witness`](Self::open_witness).
    pub fn open_witness_remembering(
        &self,
        folder: &Path,
    ) -> Result<Box<dyn Witness + Send>, OutputError> {
        let memory = folder.join("witness-place");
        match self {
            OutputParams::Kafka { witness, .. } => {
                Ok(Box::new(KafkaWitness::open(witness)?.with_memory(&memory)?))
            }
            OutputParams::Files(folder) => {
                let witness = FileWitness::open_remembering(&witness_file(folder)?, &memory)?;
                Ok(bound_witness(folder, witness))
            }
        }
    }

    /// Creates what is missing of output and witness, and adds the name of each new topic to `created`. A new output topic takes synopses
    /// of `bytes` bytes.
    ///
    /// # Errors
    ///
    /// If a topic or the witness file cannot be created.
    pub fn create_missing(
        &self,
        bytes: usize,
        created: &mut Vec<String>,
    ) -> Result<(), OutputError> {
        match self {
            OutputParams::Kafka { sink, witness } => {
                let replication = witness.new_replicas();
                if let Err(crate::ClusterError::NoTopic { .. }) =
                    topic::describe_topic(&sink.broker, &sink.topic)
                {
                    let limit = bytes.saturating_add(check::BESIDE_SYNOPSIS).to_string();
                    // The settings of the cluster hold where they are enough.
                    let settings: &[(&str, &str)] = match bytes > ALWAYS_TAKEN {
                        true => &[("max.message.bytes", &limit)],
                        false => &[],
                    };
                    topic::create_topic(&sink.broker, &sink.topic, 1, replication, settings)?;
                    created.push(format!("output topic {}", sink.topic));
                }
                if let Err(crate::ClusterError::NoTopic { .. }) =
                    topic::describe_topic(&witness.broker, &witness.topic)
                {
                    KafkaWitness::create(witness, replication)?;
                    created.push(format!("witness topic {}", witness.topic));
                }
            }
            OutputParams::Files(folder) => FileWitness::create(&folder.witness_path())?,
        }
        Ok(())
    }

    /// Checks that the output takes synopses of `bytes` bytes, if that is more than every topic takes.
    ///
    /// # Errors
    ///
    /// If its topic takes only smaller messages.
    pub fn check_message_limit(&self, bytes: usize) -> Result<(), OutputError> {
        let OutputParams::Kafka { sink, .. } = self else {
            return Ok(());
        };
        if bytes <= ALWAYS_TAKEN {
            return Ok(());
        }
        // Where the limit is not told, publishing says so.
        let settings = topic::topic_settings(&sink.broker, &sink.topic).unwrap_or_default();
        let limit = settings.get("max.message.bytes");
        match limit.and_then(|limit| limit.parse::<usize>().ok()) {
            Some(limit) if limit < bytes => Err(OutputError::Sink(SinkError::TooLarge {
                topic: sink.topic.clone(),
                bytes,
            })),
            _ => Ok(()),
        }
    }

    /// Returns whether nothing was ever written to the output, or nothing of it is left.
    ///
    /// # Errors
    ///
    /// If the output cannot be read.
    pub fn is_untouched(&self) -> Result<bool, OutputError> {
        match self {
            OutputParams::Kafka { sink, .. } => Ok(topic_sink::is_untouched(sink)?),
            OutputParams::Files(folder) => Ok(files::is_untouched(folder)?),
        }
    }

    /// A synopsis of another pipeline than `own`, if what is looked at is one: in a folder any file that has another place than its own,
    /// in a topic the newest message of each partition, if it may be read.
    ///
    /// # Errors
    ///
    /// If the output cannot be read.
    pub fn another_pipeline(&self, own: &str) -> Result<Option<ForeignSynopsis>, OutputError> {
        let mut found = None;
        match self {
            OutputParams::Kafka { sink, .. } => {
                let newest = topic_sink::newest_extents(sink)?;
                let read = topic_sink::each_message(sink, &newest, |place, message| {
                    let place = format!("{} {place}", sink.topic);
                    note_another(&mut found, own, FoundMessage::of_message(place, message));
                });
                match read {
                    // A worker needs no right to read what it writes: then nothing is known.
                    Err(SinkError::Broker(crate::ClusterError::Refused { .. })) => {}
                    read => read?,
                }
            }
            OutputParams::Files(folder) => {
                let one_of_each = files::other_pipelines(folder, own)?;
                files::each_synopsis(&one_of_each, |place, bytes| {
                    note_another(&mut found, own, FoundMessage::of_bytes(place, bytes));
                })?;
            }
        }
        Ok(found)
    }

    /// Looks up what is on the output now.
    ///
    /// # Errors
    ///
    /// If the output cannot be reached.
    pub fn current_extent(&self) -> Result<OutputExtent<'_>, OutputError> {
        match self {
            OutputParams::Kafka { sink, .. } => {
                Ok(OutputExtent::Topic(sink, topic_sink::read_extent(sink)?))
            }
            OutputParams::Files(folder) => Ok(OutputExtent::Folder(files::synopsis_files(folder)?)),
        }
    }

    /// Where published synopses can be read.
    pub fn location(&self) -> OutputLocation<'_> {
        match self {
            OutputParams::Kafka { sink, .. } => OutputLocation::Topic {
                broker: &sink.broker,
                topic: &sink.topic,
            },
            OutputParams::Files(folder) => OutputLocation::Folder(&folder.path),
        }
    }

    /// The cluster that holds the output, if one does.
    pub fn broker(&self) -> Option<&Broker> {
        match self.location() {
            OutputLocation::Topic { broker, .. } => Some(broker),
            OutputLocation::Folder(_) => None,
        }
    }

    /// Asks the brokers about the output and its witness, where a synopsis has up to `bytes` bytes.
    pub fn topic_checks(&self, bytes: usize) -> Vec<TopicCheck> {
        match self {
            OutputParams::Kafka { sink, witness } => check::check_topics(sink, witness, bytes),
            OutputParams::Files(_) => Vec::new(),
        }
    }

    /// Warns of a copy of the output, if it could go unnoticed.
    pub fn unguarded_warning(&self) -> Option<String> {
        let OutputParams::Files(folder) = self else {
            return None;
        };
        folder.witness.is_none().then(|| {
            format!(
                "a copy of this output and its ledger would not be noticed, because the witness lies in the output, {}: set \
                 output.files.witness to an absolute path elsewhere before a ledger is created",
                folder.witness_path().display()
            )
        })
    }

    /// Advice on how to start a new ledger when this one cannot be continued, for an error message.
    pub fn new_ledger_advice(&self) -> &'static str {
        match self {
            OutputParams::Kafka { .. } => {
                "start a new ledger in another folder (ledger.path) with `bernstream ledger init --replace`, which begins at the next block that takes no \
                 record sent before"
            }
            // Files are history: no later block begins.
            OutputParams::Files(_) => {
                "use another ledger.path and another output.files.path; the privacy losses of both compose, and no ledger tracks \
                 their sum"
            }
        }
    }
}

/// A witness in another place than the output is another one if its file was replaced.
fn bound_witness(
    folder: &files::FolderSinkParams,
    witness: FileWitness,
) -> Box<dyn Witness + Send> {
    Box::new(if folder.witness.is_some() {
        witness.bound_to_its_file()
    } else {
        witness
    })
}

/// Keeps in `found` the first synopsis of another pipeline than `own`.
fn note_another(found: &mut Option<ForeignSynopsis>, own: &str, published: FoundMessage) {
    if found.is_none()
        && let Some(pipeline) = published.pipeline()
        && pipeline != own
    {
        *found = Some(ForeignSynopsis {
            pipeline,
            place: published.place,
        });
    }
}

/// The witness of a folder of synopses, made if nothing was ever published there.
fn witness_file(folder: &files::FolderSinkParams) -> Result<PathBuf, OutputError> {
    let path = folder.witness_path();
    if !path.exists() && files::is_untouched(folder)? {
        FileWitness::create(&path)?;
    }
    Ok(path)
}
