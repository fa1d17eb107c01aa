//! The sections of the file, one by one: written -> used.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;

use crate::clock::Timestamp;
use crate::config::budget::Amounts;
use crate::config::document::{Document, Reported};
use crate::config::file::{self, Field};
use crate::config::{Input, Output, Privacy, Unit, cluster, composition, forms, policy};
use crate::kafka::Broker;
use crate::kafka::security::Security;
use crate::ledger::{self, witness};
use crate::metrics::Detail;
use crate::source::kafka::{Lost, OnBadMessage};
use crate::targets::Adjacency;
use crate::window::grid::Grid;
use crate::{sink, source};

/// How long published bytes are kept where the file does not say.
const KEEP_PUBLISHED: Duration = Duration::from_secs(7 * 24 * 3600);

/// How many in-sync replicas the witness must have where the file does not say.
const MIN_INSYNC_REPLICAS: u32 = 2;

/// Whatever was found, or the proof that it is wrong.
pub(super) type Found<T> = Result<T, Reported>;

/// `[input]`
pub struct Inlet {
    pub time: String,
    /// The key's column and its values.
    pub key: Option<(String, Vec<String>)>,
    pub from: Input,
}

/// `[windows]`
pub struct Schedule {
    pub grid: Grid,
    pub end: Option<Timestamp>,
    pub allowed_lateness: Duration,
    pub max_future_skew: Duration,
    /// Files have none.
    pub delay: Option<Spanned<Duration>>,
}

/// `[output]`
pub struct Outlet {
    pub to: Output,
    pub place: Range<usize>,
    pub witness_place: Range<usize>,
}

/// `[serve]`
pub struct Desk {
    pub listen: SocketAddr,
    pub dashboard: Option<SocketAddr>,
    pub detail: Detail,
}

pub fn input(document: &mut Document<'_>, table: Spanned<file::Input>) -> Found<Inlet> {
    let (place, written) = (table.span(), table.into_inner());
    let time = document.required(&place, "time", written.time, forms::words);
    let key = written.key.map(|t| key(document, t)).transpose();
    let from = match (written.kafka, written.files) {
        (Some(kafka), None) => input_kafka(document, kafka).map(Input::Kafka),
        (None, Some(files)) => path(document, files).map(|path| Input::Files(source::files::Params { path })),
        (kafka, _) => Err(document.not_one_of(place, &["kafka", "files"], kafka.is_some())),
    };
    Ok(Inlet { time: time?.into_inner(), key: key?, from: from? })
}

fn key(document: &mut Document<'_>, table: Spanned<file::Key>) -> Found<(String, Vec<String>)> {
    let (place, written) = (table.span(), table.into_inner());
    let column = document.required(&place, "column", written.column, forms::words);
    let values = document.required(&place, "values", written.values, |values| {
        if values.is_empty() { Err("must not be empty: every key is declared".to_owned()) } else { Ok(values) }
    })?;
    let mut seen = HashSet::new();
    let mut keys = Vec::new();
    for value in values.into_inner() {
        let place = value.span();
        let key = value.into_inner();
        if key.is_empty() {
            document.fault(place, "a key must not be empty", "");
        } else if !seen.insert(key.clone()) {
            document.fault(place, "stands here twice", "a key is published once");
        } else {
            keys.push(key);
        }
    }
    Ok((column?.into_inner(), keys))
}

fn input_kafka(document: &mut Document<'_>, table: Spanned<file::InputKafka>) -> Found<source::kafka::Params> {
    let (place, written) = (table.span(), table.into_inner());
    let servers = document.required(&place, "brokers", written.brokers, forms::words);
    let security = cluster::security(document, written.tls, written.sasl, &Security::default());
    let topic = document.required(&place, "topic", written.topic, forms::name);
    let slack = document.required(&place, "clock_slack", written.clock_slack, forms::positive_duration);
    let mut skip = Vec::new();
    for element in written.skip.map_or(Vec::new(), Spanned::into_inner) {
        let (place, element) = (element.span(), element.into_inner());
        let partition = document.required(&place, "partition", element.partition, forms::partition);
        let offset = document.required(&place, "offset", element.offset, forms::offset);
        skip.push(partition.and_then(|partition| Ok((partition.into_inner(), offset?.into_inner()))));
    }
    let mut lost = Vec::new();
    for element in written.lost.map_or(Vec::new(), Spanned::into_inner) {
        lost.push(interval(document, element));
    }
    Ok(source::kafka::Params {
        broker: Broker::new(servers?.into_inner(), security?),
        topic: topic?.into_inner(),
        clock_slack: slack?.into_inner(),
        trust_producer_time: written.trust_producer_time.is_some_and(Spanned::into_inner),
        on_bad_message: match written.on_bad_message.map(Spanned::into_inner) {
            Some(file::OnBadMessage::Skip) => OnBadMessage::Skip,
            Some(file::OnBadMessage::Stop) | None => OnBadMessage::Stop,
        },
        skip: skip.into_iter().collect::<Found<_>>()?,
        lost: lost.into_iter().collect::<Found<_>>()?,
    })
}

fn interval(document: &mut Document<'_>, element: Spanned<file::Lost>) -> Found<Lost> {
    let (place, written) = (element.span(), element.into_inner());
    let partition = document.required(&place, "partition", written.partition, forms::partition);
    let from = document.required(&place, "from", written.from, forms::offset);
    let to = document.required(&place, "to", written.to, forms::offset);
    let (from, to) = (from?.into_inner(), to?);
    if from >= *to.get_ref() {
        return Err(document.fault(to.span(), format!("must be more than `from`, {from}"), "`to` itself is not lost"));
    }
    Ok(Lost { partition: partition?.into_inner(), from, to: to.into_inner() })
}

fn path(document: &mut Document<'_>, table: Spanned<file::Files>) -> Found<PathBuf> {
    let (place, written) = (table.span(), table.into_inner());
    Ok(document.required(&place, "path", written.path, forms::words)?.into_inner().into())
}

/// `from_kafka` is `None` where the file does not say: then neither kind's keys are asked for.
pub fn schedule(
    document: &mut Document<'_>,
    table: Spanned<file::Windows>,
    from_kafka: Option<bool>,
) -> Found<Schedule> {
    let (place, written) = (table.span(), table.into_inner());
    let origin = document.required(&place, "origin", written.origin, forms::time);
    let length = document.required(&place, "length", written.length, forms::positive_duration);
    let end = document.optional(written.end, forms::time);
    if let (Some(false), Ok(None)) = (from_kafka, &end) {
        document.missing(place.clone(), "end");
    }
    let mut delay_of = |key: &str, field: Field<String>| match (field, from_kafka) {
        (Some(field), Some(false)) => Err(document.fault(
            field.span(),
            "means nothing with files",
            "every cutoff is the end of the input: leave it out",
        )),
        (None, Some(true)) => Err(document.missing(place.clone(), key)),
        (field, _) => document.optional(field, forms::duration),
    };
    let grace = delay_of("grace", written.grace);
    let ahead = delay_of("ahead", written.ahead);
    let delay = delay_of("publish_delay", written.publish_delay);

    let (origin, length, end) = (origin?.into_inner(), length?.into_inner(), end?);
    let Some(grid) = Grid::new(origin, length) else {
        return Err(document.fault(place, "the windows have no length", ""));
    };
    if let Some(end) = &end {
        let last = *end.get_ref();
        if last <= origin {
            document.fault(end.span(), format!("must be later than windows.origin, {origin}"), "");
        } else if grid.span_of(last).start != last {
            let before = grid.span_of(last);
            let hint = format!("windows end at {} and at {}", before.start, before.end);
            document.fault(end.span(), "is not a whole number of windows after windows.origin", hint);
        }
    }
    let zero = |span: Option<Spanned<Duration>>| span.map_or(Duration::ZERO, Spanned::into_inner);
    Ok(Schedule {
        grid,
        end: end.map(Spanned::into_inner),
        allowed_lateness: zero(grace?),
        max_future_skew: zero(ahead?),
        delay: delay?,
    })
}

pub fn privacy(document: &mut Document<'_>, table: Spanned<file::Privacy>) -> Found<Privacy> {
    let (place, written) = (table.span(), table.into_inner());
    let amounts = Amounts { epsilon: written.epsilon, delta: written.delta, rho: written.rho };
    let book = composition::book(document, &place, amounts, written.composition, written.windows);
    let unit = document.required(&place, "unit", written.unit, Ok);
    let is_user = unit.as_ref().is_ok_and(|unit| matches!(unit.get_ref(), file::Unit::User(_)));
    let unit = unit.and_then(|unit| match unit.into_inner() {
        file::Unit::Record => Ok(Unit::Record),
        file::Unit::User(user) => self::user(document, user),
    });
    let adjacency = document.required(&place, "adjacency", written.adjacency, Ok).and_then(|adjacency| {
        let place = adjacency.span();
        match adjacency.into_inner() {
            file::Adjacency::AddRemove => Ok((Adjacency::AddRemove, None)),
            file::Adjacency::ReplaceOne(_) if is_user => {
                let what = "replace_one protects the values of a record, not all records of a user";
                Err(document.fault(place, what, r#"take "add_remove""#))
            }
            file::Adjacency::ReplaceOne(replace) => {
                let (place, written) = (replace.span(), replace.into_inner());
                let n = document.required(&place, "records_per_window", written.records_per_window, forms::count)?;
                Ok((Adjacency::ReplaceOne, Some(n.into_inner())))
            }
        }
    });
    let reserve = policy::reserve(document, written.reserve);
    let (adjacency, records_per_window) = adjacency?;
    let (unit, composition::Book { total, definition, implies }, reserve) = (unit?, book?, reserve?);
    Ok(Privacy { unit, adjacency, records_per_window, definition, total, implies, reserve })
}

fn user(document: &mut Document<'_>, table: Spanned<file::User>) -> Found<Unit> {
    let (place, written) = (table.span(), table.into_inner());
    let column = document.required(&place, "column", written.column, forms::words);
    let per = document.required(&place, "per", written.per, forms::period);
    let cap = document.required(&place, "max_records_per_window", written.max_records_per_window, forms::count);
    Ok(Unit::User { column: column?.into_inner(), per: per?.into_inner(), max_records_per_window: cap?.into_inner() })
}

/// `default` is the input's broker: `None` where the input is itself at fault, `Some(None)` where it has none.
pub fn output(
    document: &mut Document<'_>,
    table: Spanned<file::Output>,
    default: Option<Option<&Broker>>,
) -> Found<Outlet> {
    let (place, written) = (table.span(), table.into_inner());
    match (written.kafka, written.files) {
        (Some(kafka), None) => output_kafka(document, kafka, default),
        (None, Some(files)) => {
            let place = files.span();
            let to = Output::Files(sink::files::Params { path: path(document, files)? });
            Ok(Outlet { to, place: place.clone(), witness_place: place })
        }
        (kafka, _) => Err(document.not_one_of(place, &["kafka", "files"], kafka.is_some())),
    }
}

fn output_kafka(
    document: &mut Document<'_>,
    table: Spanned<file::OutputKafka>,
    default: Option<Option<&Broker>>,
) -> Found<Outlet> {
    let (place, written) = (table.span(), table.into_inner());
    // Another cluster is told no password of the input's.
    let inherited = default.flatten().filter(|_| written.brokers.is_none());
    let security = inherited.map_or_else(Security::default, |broker| broker.security().clone());
    let servers = match (written.brokers, default) {
        (Some(brokers), _) => document.optional(Some(brokers), forms::words).map(|b| b.map(Spanned::into_inner)),
        (None, Some(Some(broker))) => Ok(Some(broker.servers.clone())),
        (None, Some(None)) => Err(document.missing(place.clone(), "brokers")),
        (None, None) => Ok(None),
    };
    let security = cluster::security(document, written.tls, written.sasl, &security);
    let topic = document.required(&place, "topic", written.topic, forms::name);
    let witness = document.required(&place, "witness", written.witness, forms::name);
    let replicas = document.optional(written.witness_min_insync_replicas, forms::count);
    let (topic, witness) = (topic?, witness?);
    if topic.get_ref() == witness.get_ref() {
        document.fault(witness.span(), "is the output topic", "the witness is a topic of its own, of one partition");
    }
    let broker = Broker::new(servers?.unwrap_or_default(), security?);
    Ok(Outlet {
        place: topic.span(),
        witness_place: witness.span(),
        to: Output::Kafka {
            witness: witness::kafka::Params {
                broker: broker.clone(),
                topic: witness.into_inner(),
                min_insync_replicas: replicas?.map_or(MIN_INSYNC_REPLICAS, Spanned::into_inner),
            },
            sink: sink::kafka::Params { broker, topic: topic.into_inner() },
        },
    })
}

pub fn ledger(document: &mut Document<'_>, table: Spanned<file::Ledger>) -> Found<ledger::Params> {
    let (place, written) = (table.span(), table.into_inner());
    let path = document.required(&place, "path", written.path, forms::words);
    let keep_published = document.optional(written.keep_published, forms::duration);
    Ok(ledger::Params {
        path: path?.into_inner().into(),
        keep_published: keep_published?.map_or(KEEP_PUBLISHED, Spanned::into_inner),
    })
}

pub fn serve(document: &mut Document<'_>, table: Spanned<file::Serve>) -> Found<Desk> {
    let (place, written) = (table.span(), table.into_inner());
    let address = |text: String| text.parse().map_err(|_| format!("{text:?} is not an address and a port"));
    let listen = document.required(&place, "listen", written.listen, address);
    let dashboard = document.optional(written.dashboard, address);
    let detail = match written.detail.map(Spanned::into_inner) {
        Some(file::Detail::Operator) => Detail::Operator,
        Some(file::Detail::Safe) | None => Detail::Safe,
    };
    let (listen, dashboard): (SocketAddr, Option<Spanned<SocketAddr>>) = (listen?.into_inner(), dashboard?);
    if let Some(dashboard) = &dashboard
        && *dashboard.get_ref() == listen
        && listen.port() != 0
    {
        let hint = "metrics are for operators, the dashboard for all who may see what is released: take another port";
        document.fault(dashboard.span(), "is serve.listen", hint);
    }
    Ok(Desk { listen, dashboard: dashboard.map(Spanned::into_inner), detail })
}
