//! Whether the newest schema of an input is pinned, for a command and beside a worker. What a registry says changes nothing in what is read.
//! It is public where people register schemas, and no producer does by what it is about to send.

use std::time::Duration;

use tracing::{info, warn};

use crate::cli::background::BackgroundThread;
use crate::cli::failure::Failure;
use bernstream_kafka::check::TopicCheck;
use bernstream_kafka::source::registry::{NewestSchema, RegistryFailure, SchemaRegistry};
use bernstream_worker::metrics::Metrics;
use bernstream_worker::pipeline::StopRequest;

/// Time between two questions to a registry.
const INTERVAL: Duration = Duration::from_secs(60);

/// Asks the registry until `stop` is asked for, in a thread that no window waits for.
///
/// # Errors
///
/// If the thread cannot be started.
pub fn follow_registry(
    registry: &SchemaRegistry,
    metrics: &Metrics,
    stop: &StopRequest,
) -> Result<BackgroundThread, Failure> {
    let registry = registry.clone();
    let metrics = metrics.clone();
    BackgroundThread::start("schemas", &stop.child_request(), move |stop| {
        ask_again_and_again(&registry, &metrics, stop);
    })
}

fn ask_again_and_again(registry: &SchemaRegistry, metrics: &Metrics, stop: &StopRequest) {
    let mut told = None;
    while !stop.is_requested() {
        let newest = registry.newest_schema();
        let is_pinned = newest
            .as_ref()
            .ok()
            .map(|newest| registry.pins_schema(newest));
        metrics.show_newest_schema(&registry.subject, is_pinned);
        let wrong = judge_newest(registry, &newest).warning;
        if wrong != told {
            log_change(wrong.as_ref());
        }
        told = wrong;
        stop.sleep_or_stop(INTERVAL);
    }
}

fn log_change(wrong: Option<&(String, String)>) {
    match wrong {
        Some((why, remedy)) => warn!("{why}; {remedy}"),
        None => info!("the registry answers, and its newest schema is pinned"),
    }
}

/// Asks the registry once.
pub fn newest_schema_check(registry: &SchemaRegistry) -> TopicCheck {
    judge_newest(registry, &registry.newest_schema())
}

fn judge_newest(
    registry: &SchemaRegistry,
    newest: &Result<NewestSchema, RegistryFailure>,
) -> TopicCheck {
    let SchemaRegistry { url, subject, .. } = registry;
    let what = format!("the newest schema of {subject} at {url} is pinned");
    let warning = match newest {
        Ok(newest) if registry.pins_schema(newest) => {
            return TopicCheck::passed(format!("{what}: id {}", newest.id));
        }
        Ok(newest) if newest.is_avro() => (
            format!(
                "the newest schema of subject '{subject}', id {}, is not pinned: what is written with it is dropped",
                newest.id
            ),
            registry.remedy(newest.id),
        ),
        Ok(NewestSchema { id, format }) => (
            format!(
                "the newest schema of subject '{subject}', id {id}, is one of {format}, and records are read as Avro"
            ),
            "see that producers write Avro to the topic, or name another subject".to_owned(),
        ),
        Err(failure) => (
            failure.to_string(),
            "see that it runs and takes this user, or correct input.kafka.format.avro.registry"
                .to_owned(),
        ),
    };
    TopicCheck {
        warning: Some(warning),
        ..TopicCheck::passed(what)
    }
}
