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
use bernstream_kafka::sink::Output;

/// How many in-sync replicas the witness must have by default.
const MIN_INSYNC_REPLICAS: u32 = 2;

/// `[output]`
pub struct OutputSettings {
    pub to: Output,
    pub place: Range<usize>,
    pub witness_place: Range<usize>,
}

/// `default` is the broker of the input: `None` if the input has a fault, `Some(None)` if it has no broker.
pub fn output(
    document: &mut Document<'_>,
    table: Spanned<file::Output>,
    default: Option<Option<&Broker>>,
) -> Checked<OutputSettings> {
    let place = table.span();
    let written = table.into_inner();
    match (written.kafka, written.files) {
        (Some(kafka), None) => output_kafka(document, kafka, default),
        (None, Some(files)) => output_files(document, files),
        (kafka, _) => Err(document.not_one_of(place, &["kafka", "files"], kafka.is_some())),
    }
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
    let witness_place = witness
        .as_ref()
        .map_or_else(|| place.clone(), Spanned::span);
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
        to: Output::Files(sink::files::Params { path, witness }),
        place,
        witness_place,
    })
}

/// Whether `file` is absolute and not in `folder`.
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
    let servers = match (written.brokers, default) {
        (Some(brokers), _) => document
            .optional(Some(brokers), values::brokers)
            .map(|b| b.map(Spanned::into_inner)),
        (None, Some(Some(broker))) => Ok(Some(broker.servers.clone())),
        (None, Some(None)) => Err(document.missing(place.clone(), "brokers")),
        (None, None) => Ok(None),
    };
    let security = security::security(document, written.tls, written.sasl, &security);
    let topic = document.required(&place, "topic", written.topic, values::name);
    let witness = document.required(&place, "witness", written.witness, values::name);
    let replicas = document.optional(written.witness_min_insync_replicas, values::count);
    let power_loss = match written.brokers_lose_power.map(Spanned::into_inner) {
        Some(file::PowerLoss::Separately) => PowerLoss::Separately,
        Some(file::PowerLoss::Together) | None => PowerLoss::Together,
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
    let broker = Broker::new(servers?.unwrap_or_default(), security?);
    Ok(OutputSettings {
        place: topic.span(),
        witness_place: witness.span(),
        to: Output::Kafka {
            witness: witness::kafka::Params {
                broker: broker.clone(),
                topic: witness.into_inner(),
                min_insync_replicas: replicas?.map_or(MIN_INSYNC_REPLICAS, Spanned::into_inner),
                power_loss,
            },
            sink: sink::kafka::Params {
                broker,
                topic: topic.into_inner(),
            },
        },
    })
}
