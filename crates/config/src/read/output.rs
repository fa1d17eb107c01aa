//! `[output]`

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use crate::file;
use crate::read::security;
use crate::text::{Checked, Document, Spanned, values};
use bernstream_kafka::Broker;
use bernstream_kafka::ledger::witness;
use bernstream_kafka::ordered::PowerLoss;
use bernstream_kafka::security::Security;
use bernstream_kafka::sink;
use bernstream_kafka::sink::OutputParams;

/// Number of in-sync replicas that the witness must have by default.
const MIN_INSYNC_REPLICAS: u32 = 2;

/// `[output]`
pub struct OutputSettings {
    pub to: OutputParams,
    pub place: Range<usize>,
    pub witness_place: Range<usize>,
}

/// `default` is the broker of the input: `None` if the input has a fault, `Some(None)` if it has no broker.
pub fn read_output(
    document: &mut Document<'_>,
    table: Spanned<file::OutputTable>,
    default: Option<Option<&Broker>>,
) -> Checked<OutputSettings> {
    let place = table.span();
    let written = table.into_inner();
    match written.kafka {
        Some(kafka) if written.files.is_none() => output_kafka(document, kafka, default),
        Some(_) => Err(document.not_one_of(place, &["kafka", "files"], true)),
        None => match written.files {
            Some(files) => output_files(document, files),
            None => Err(document.not_one_of(place, &["kafka", "files"], false)),
        },
    }
}

/// Returns whether the file names a topic for synopses, however many faults that has.
pub fn publishes_to_kafka(file: &file::ConfigFile) -> bool {
    let output = file.output.as_ref();
    output.is_some_and(|output| output.get_ref().kafka.is_some())
}

fn output_files(
    document: &mut Document<'_>,
    table: Spanned<file::OutputFiles>,
) -> Checked<OutputSettings> {
    let place = table.span();
    let written = table.into_inner();
    let path = document.required(&place, "path", written.path, values::words);
    let witness = document.optional(written.witness, values::words);
    let path = PathBuf::from(path?.into_inner());
    let witness = witness?;
    let witness_place = witness.as_ref().map_or(place.clone(), Spanned::span);
    let witness = witness.map(|witness| PathBuf::from(witness.into_inner()));
    if let Some(witness) = &witness
        && !is_elsewhere(witness, &path)
    {
        return Err(document.fault(
            witness_place,
            "is not the absolute path of a file outside the output",
            "what is copied with the output does not notice the copy",
        ));
    }
    Ok(OutputSettings {
        to: OutputParams::Files(sink::files::FolderSinkParams { path, witness }),
        place,
        witness_place,
    })
}

/// Returns whether `file` is absolute and not in `folder`.
fn is_elsewhere(file: &Path, folder: &Path) -> bool {
    let is_plain = !file.components().any(|part| part == Component::ParentDir);
    let folder = std::path::absolute(folder);
    file.is_absolute() && is_plain && folder.is_ok_and(|folder| !file.starts_with(folder))
}

fn output_kafka(
    document: &mut Document<'_>,
    table: Spanned<file::OutputKafka>,
    default: Option<Option<&Broker>>,
) -> Checked<OutputSettings> {
    let place = table.span();
    let written = table.into_inner();
    // Another cluster is told no password of the input's.
    let inherited = default.flatten().filter(|_| written.brokers.is_none());
    let security = inherited.map_or_else(Security::default, |broker| broker.security().clone());
    let servers = if written.brokers.is_some() {
        document
            .required(&place, "brokers", written.brokers, values::brokers)
            .map(Spanned::into_inner)
    } else {
        match default {
            Some(Some(broker)) => Ok(broker.servers.clone()),
            Some(None) => Err(document.missing(place.clone(), "brokers")),
            None => Ok(Default::default()),
        }
    };
    let security = security::read_security(document, written.tls, written.sasl, &security);
    let topic = document.required(&place, "topic", written.topic, values::name);
    let witness = document.required(&place, "witness", written.witness, values::name);
    let replicas = document.optional(written.witness_min_insync_replicas, values::count);
    let power_loss = match written.brokers_lose_power.map(Spanned::into_inner) {
        Some(file::WrittenPowerLoss::Separately) => PowerLoss::Separately,
        Some(file::WrittenPowerLoss::Together) | None => PowerLoss::Together,
    };
    let topic = topic?;
    let witness = witness?;
    if topic.get_ref() == witness.get_ref() {
        document.fault(
            witness.span(),
            "is the output topic",
            "the witness is a topic of its own, of one partition",
        );
    }
    let broker = Broker::new(servers?, security?);
    Ok(OutputSettings {
        place: topic.span(),
        witness_place: witness.span(),
        to: OutputParams::Kafka {
            witness: witness::kafka::OrderedTopicParams {
                broker: broker.clone(),
                topic: witness.into_inner(),
                min_insync_replicas: replicas?.map_or(MIN_INSYNC_REPLICAS, Spanned::into_inner),
                power_loss,
            },
            sink: sink::kafka::KafkaSinkParams {
                broker,
                topic: topic.into_inner(),
            },
        },
    })
}
