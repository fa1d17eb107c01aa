//! The kinds of output. Everything that differs between them is decided here, once for each question.

use std::path::{Path, PathBuf};

use super::check;
use super::error::Error as SinkError;
use super::files::{self, FolderSink};
use super::kafka::{self as topic_sink, KafkaSink};
use super::publish::Sink;
use super::published::Published;
use crate::check::Check;
use crate::ledger::witness;
use crate::ledger::witness::kafka::KafkaWitness;
use crate::{Broker, topic};
use bernstream_ledger::witness::Witness;
use bernstream_ledger::witness::file::FileWitness;

/// A place for synopses, and the witness that belongs to it.
#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
#[derive(Clone, Debug)]
pub enum Output {
    Kafka {
        sink: topic_sink::Params,
        witness: witness::kafka::Params,
    },
    Files(files::Params),
}

/// Where published synopses can be read.
#[derive(Clone, Copy, Debug)]
pub enum Location<'o> {
    Topic { broker: &'o Broker, topic: &'o str },
    Folder(&'o Path),
}

/// Messages that were on an output at one time. A worker may publish more meanwhile.
#[derive(Clone, Debug)]
pub enum Extent<'o> {
    Topic(&'o topic_sink::Params, Vec<topic_sink::Extent>),
    Folder(Vec<PathBuf>),
}

impl Extent<'_> {
    /// Returns whether key and headers of a message are stored: a file holds its bytes only.
    pub fn has_envelope(&self) -> bool {
        matches!(self, Extent::Topic(..))
    }

    /// Largest number of messages that it has.
    pub fn most_messages(&self) -> u64 {
        match self {
            Extent::Topic(_, extents) => {
                extents.iter().map(topic_sink::Extent::most_messages).sum()
            }
            Extent::Folder(paths) => paths.len() as u64,
        }
    }

    /// Passes everything that was on the output to `each`.
    ///
    /// # Errors
    ///
    /// If it cannot be read to its end.
    pub fn each_published(&self, mut each: impl FnMut(Published)) -> Result<(), Error> {
        match self {
            Extent::Topic(sink, extents) => {
                topic_sink::each_message(sink, extents, |place, message| {
                    each(Published::of_message(place.to_string(), message))
                })?;
            }
            Extent::Folder(paths) => files::each_synopsis(paths, |place, bytes| {
                each(Published::of_bytes(place, bytes))
            })?,
        }
        Ok(())
    }
}

/// A synopsis of another pipeline.
#[derive(Clone, Debug)]
pub struct Another {
    pub pipeline: String,
    /// The file, or topic, partition and offset.
    pub place: String,
}

/// Why an output cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "there is no output topic '{topic}' at {servers}: `bernstream ledger init` creates it; or correct `topic` of [output.kafka]"
    )]
    NoTopic { topic: String, servers: String },
    #[error(transparent)]
    Broker(crate::Error),
    #[error(transparent)]
    Witness(#[from] bernstream_ledger::witness::Error),
    #[error(transparent)]
    Sink(SinkError),
}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        match error {
            crate::Error::NoTopic { topic, servers } => Error::NoTopic { topic, servers },
            error => Error::Broker(error),
        }
    }
}

impl From<SinkError> for Error {
    fn from(error: SinkError) -> Self {
        match error {
            // No synopsis was to be published: the failure is that of the broker alone.
            SinkError::Broker(error) => error.into(),
            error => Error::Sink(error),
        }
    }
}

impl Error {
    /// Returns whether to try again.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::NoTopic { .. } => false,
            Error::Broker(error) => error.is_transient(),
            Error::Witness(error) => error.is_transient(),
            Error::Sink(error) => error.is_transient(),
        }
    }

    /// Returns whether output or witness is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Error::NoTopic { .. })
            || matches!(self, Error::Witness(error) if error.is_missing())
    }
}

impl Output {
    /// Opens the sink.
    ///
    /// # Errors
    ///
    /// If the output topic is missing or its broker cannot be reached.
    pub fn open_sink(&self) -> Result<Box<dyn Sink + Send>, Error> {
        match self {
            Output::Kafka { sink, .. } => Ok(Box::new(KafkaSink::open(sink)?)),
            Output::Files(folder) => Ok(Box::new(FolderSink::new(folder))),
        }
    }

    /// Opens the witness. A witness file is created if nothing was ever published beside it.
    ///
    /// # Errors
    ///
    /// If the witness is missing, damaged or not set up as a witness must be, or if it cannot be reached.
    pub fn open_witness(&self) -> Result<Box<dyn Witness + Send>, Error> {
        match self {
            Output::Kafka { witness, .. } => Ok(Box::new(KafkaWitness::open(witness)?)),
            Output::Files(folder) => {
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
    pub fn look_at_witness(&self) -> Result<Option<Box<dyn Witness + Send>>, Error> {
        match self {
            Output::Files(folder)
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
    ) -> Result<Box<dyn Witness + Send>, Error> {
        let memory = folder.join("witness-place");
        match self {
            Output::Kafka { witness, .. } => {
                Ok(Box::new(KafkaWitness::open(witness)?.with_memory(&memory)?))
            }
            Output::Files(folder) => {
                let witness = FileWitness::open_remembering(&witness_file(folder)?, &memory)?;
                Ok(bound_witness(folder, witness))
            }
        }
    }

    /// Creates what is missing of output and witness, and adds the name of each new topic to `created`.
    ///
    /// # Errors
    ///
    /// If a topic or the witness file cannot be created.
    pub fn create_missing(&self, created: &mut Vec<String>) -> Result<(), Error> {
        match self {
            Output::Kafka { sink, witness } => {
                let replication = witness.new_replicas();
                if let Err(crate::Error::NoTopic { .. }) =
                    topic::describe_topic(&sink.broker, &sink.topic)
                {
                    topic::create_topic(&sink.broker, &sink.topic, 1, replication, &[])?;
                    created.push(format!("output topic {}", sink.topic));
                }
                if let Err(crate::Error::NoTopic { .. }) =
                    topic::describe_topic(&witness.broker, &witness.topic)
                {
                    KafkaWitness::create(witness, replication)?;
                    created.push(format!("witness topic {}", witness.topic));
                }
            }
            Output::Files(folder) => FileWitness::create(&folder.witness_path())?,
        }
        Ok(())
    }

    /// Returns whether nothing was ever written to the output, or nothing of it is left.
    ///
    /// # Errors
    ///
    /// If the output cannot be read.
    pub fn is_untouched(&self) -> Result<bool, Error> {
        match self {
            Output::Kafka { sink, .. } => Ok(topic_sink::is_untouched(sink)?),
            Output::Files(folder) => Ok(files::is_untouched(folder)?),
        }
    }

    /// A synopsis of another pipeline than `own`, if what is looked at is one: in a folder any file that has another place than its own,
    /// in a topic the newest message of each partition, if it may be read.
    ///
    /// # Errors
    ///
    /// If the output cannot be read.
    pub fn another_pipeline(&self, own: &str) -> Result<Option<Another>, Error> {
        let mut found = None;
        match self {
            Output::Kafka { sink, .. } => {
                let newest = topic_sink::newest_extents(sink)?;
                let read = topic_sink::each_message(sink, &newest, |place, message| {
                    let place = format!("{} {place}", sink.topic);
                    note_another(&mut found, own, Published::of_message(place, message));
                });
                match read {
                    // A worker needs no right to read what it writes: then nothing is known.
                    Err(SinkError::Broker(crate::Error::Refused { .. })) => {}
                    read => read?,
                }
            }
            Output::Files(folder) => {
                let one_of_each = files::other_pipelines(folder, own)?;
                files::each_synopsis(&one_of_each, |place, bytes| {
                    note_another(&mut found, own, Published::of_bytes(place, bytes));
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
    pub fn current_extent(&self) -> Result<Extent<'_>, Error> {
        match self {
            Output::Kafka { sink, .. } => Ok(Extent::Topic(sink, topic_sink::read_extent(sink)?)),
            Output::Files(folder) => Ok(Extent::Folder(files::synopsis_files(folder)?)),
        }
    }

    /// Where published synopses can be read.
    pub fn location(&self) -> Location<'_> {
        match self {
            Output::Kafka { sink, .. } => Location::Topic {
                broker: &sink.broker,
                topic: &sink.topic,
            },
            Output::Files(folder) => Location::Folder(&folder.path),
        }
    }

    /// The cluster that holds the output, if one does.
    pub fn broker(&self) -> Option<&Broker> {
        match self.location() {
            Location::Topic { broker, .. } => Some(broker),
            Location::Folder(_) => None,
        }
    }

    /// Asks the brokers about the output and its witness, where a synopsis has up to `bytes` bytes.
    pub fn topic_checks(&self, bytes: usize) -> Vec<Check> {
        match self {
            Output::Kafka { sink, witness } => check::check_topics(sink, witness, bytes),
            Output::Files(_) => Vec::new(),
        }
    }

    /// Warns of a copy of the output, if it could go unnoticed.
    pub fn unguarded_warning(&self) -> Option<String> {
        let Output::Files(folder) = self else {
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
            Output::Kafka { .. } => {
                "start a new ledger in another folder (ledger.path) with `bernstream ledger init --replace`, which begins at the next block that takes no \
                 record sent before"
            }
            // Files are history: no later block begins.
            Output::Files(_) => {
                "use another ledger.path and another output.files.path; the privacy losses of both compose, and no ledger tracks \
                 their sum"
            }
        }
    }
}

/// A witness in another place than the output is another one if its file was replaced.
fn bound_witness(folder: &files::Params, witness: FileWitness) -> Box<dyn Witness + Send> {
    Box::new(if folder.witness.is_some() {
        witness.bound_to_its_file()
    } else {
        witness
    })
}

/// Keeps in `found` the first synopsis of another pipeline than `own`.
fn note_another(found: &mut Option<Another>, own: &str, published: Published) {
    if found.is_none()
        && let Some(pipeline) = published.pipeline()
        && pipeline != own
    {
        *found = Some(Another {
            pipeline,
            place: published.place,
        });
    }
}

/// The witness of a folder of synopses, made if nothing was ever published there.
fn witness_file(folder: &files::Params) -> Result<PathBuf, Error> {
    let path = folder.witness_path();
    if !path.exists() && files::is_untouched(folder)? {
        FileWitness::create(&path)?;
    }
    Ok(path)
}
