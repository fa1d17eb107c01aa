//! `[input]`

use std::ops::Range;
use std::time::Duration;

use crate::file;
use crate::read::format::MessageForm;
use crate::read::key_values::{KeySettings, read_key};
use crate::read::security;
use crate::settings::InputParams;
use crate::text::{Checked, Document, Spanned, values};
use bernstream_kafka::Broker;
use bernstream_kafka::security::Security;
use bernstream_kafka::source;
use bernstream_kafka::source::kafka::{BadMessageRule, LostOffsets};

/// `[input]`
pub struct InputSettings {
    pub time: String,
    pub key: Option<KeySettings>,
    /// The place of the declaration of the key.
    pub key_place: Option<Range<usize>>,
    /// Within it of its event time a producer sends a record, as the operator declares.
    pub producer_delay: Option<Duration>,
    pub from: InputParams,
}

/// Reads `[input]`; `form` is how messages are written, and what is declared of fields.
pub fn read_input(
    document: &mut Document<'_>,
    table: Spanned<file::InputTable>,
    form: Checked<MessageForm>,
) -> Checked<InputSettings> {
    let place = table.span();
    let mut written = table.into_inner();
    let time = document.required(&place, "time", written.time, values::words);
    let key_place = written.key.as_ref().map(Spanned::span);
    let key = match written.key {
        Some(table) => read_key(document, table).map(Some),
        None => Ok(None),
    };
    let producer_delay = written
        .kafka
        .as_mut()
        .and_then(|kafka| kafka.get_mut().producer_delay.take());
    let producer_delay = document.optional(producer_delay, values::duration);
    let from = match written.kafka {
        Some(kafka) if written.files.is_none() => {
            input_kafka(document, kafka, form).map(InputParams::Kafka)
        }
        Some(_) => Err(document.not_one_of(place, &["kafka", "files"], true)),
        None => match written.files {
            Some(files) => input_files(document, files, form).map(InputParams::Files),
            None => Err(document.not_one_of(place, &["kafka", "files"], false)),
        },
    };
    let producer_delay = producer_delay?.map(Spanned::into_inner);
    Ok(InputSettings {
        time: time?.into_inner(),
        key: key?,
        key_place,
        producer_delay,
        from: from?,
    })
}

fn input_kafka(
    document: &mut Document<'_>,
    table: Spanned<file::InputKafka>,
    form: Checked<MessageForm>,
) -> Checked<source::kafka::KafkaSourceParams> {
    let place = table.span();
    let written = table.into_inner();
    let servers = document.required(&place, "brokers", written.brokers, values::brokers);
    let security =
        security::read_security(document, written.tls, written.sasl, &Security::default());
    let topic = document.required(&place, "topic", written.topic, values::name);
    let trust_producer_time = written.trust_producer_time.is_some_and(Spanned::into_inner);
    let clock_place = written.clock.as_ref().map(Spanned::span);
    let clock = document.optional(written.clock, values::name);
    if let Some(place) = &clock_place
        && trust_producer_time
    {
        document.fault(
            place.clone(),
            "is not used where producers are trusted",
            "remove it: only the worker's own clock says when a window closes then",
        );
    }
    let slack = document.required(
        &place,
        "clock_slack",
        written.clock_slack,
        values::positive_duration,
    );
    let readers = document.optional(written.readers, values::count);
    let mut skip = Vec::new();
    for element in written.skip.map_or(Vec::new(), Spanned::into_inner) {
        let place = element.span();
        let element = element.into_inner();
        let partition =
            document.required(&place, "partition", element.partition, values::partition);
        let offset = document.required(&place, "offset", element.offset, values::offset);
        skip.push(match partition {
            Ok(partition) => offset.map(|offset| (partition.into_inner(), offset.into_inner())),
            Err(reported) => Err(reported),
        });
    }
    let mut lost = Vec::new();
    for element in written.lost.map_or(Vec::new(), Spanned::into_inner) {
        lost.push(lost_interval(document, element));
    }
    let topic = topic?.into_inner();
    let clock = clock?.map_or_else(|| format!("{topic}-clock"), Spanned::into_inner);
    if clock == topic {
        return Err(document.fault(
            clock_place.unwrap_or(place),
            "is the input topic",
            "the clock is a small topic of its own, which the worker writes to",
        ));
    }
    Ok(source::kafka::KafkaSourceParams {
        broker: Broker::new(servers?.into_inner(), security?),
        topic,
        clock,
        clock_slack: slack?.into_inner(),
        readers: readers?.map(Spanned::into_inner),
        trust_producer_time,
        format: form?.format,
        on_bad_message: match written.on_bad_message.map(Spanned::into_inner) {
            Some(file::WrittenBadMessageRule::Skip) => BadMessageRule::Skip,
            Some(file::WrittenBadMessageRule::Stop) | None => BadMessageRule::Stop,
        },
        skip: skip.into_iter().collect::<Checked<_>>()?,
        lost: lost.into_iter().collect::<Checked<_>>()?,
    })
}

fn lost_interval(
    document: &mut Document<'_>,
    element: Spanned<file::LostTable>,
) -> Checked<LostOffsets> {
    let place = element.span();
    let written = element.into_inner();
    let partition = document.required(&place, "partition", written.partition, values::partition);
    let from = document.required(&place, "from", written.from, values::offset);
    let to = document.required(&place, "to", written.to, values::offset);
    let from = from?.into_inner();
    let to = to?;
    if from >= *to.get_ref() {
        return Err(document.fault(
            to.span(),
            format!("must be more than `from`, {from}"),
            "`to` is the first offset that is not lost",
        ));
    }
    Ok(LostOffsets {
        partition: partition?.into_inner(),
        from,
        to: to.into_inner(),
    })
}

/// The path of a file or a folder.
fn input_files(
    document: &mut Document<'_>,
    table: Spanned<file::InputFiles>,
    form: Checked<MessageForm>,
) -> Checked<source::files::FileSourceParams> {
    let place = table.span();
    let written = table.into_inner();
    let path = document.required(&place, "path", written.path, values::words)?;
    Ok(source::files::FileSourceParams {
        path: path.into_inner().into(),
        declared: form?.declared,
    })
}
