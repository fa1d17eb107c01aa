//! The worker itself on a stream, in this process, with the noise frozen.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::encode::encode_message;
use super::error::ReplayError;
use super::log::CapturedLog;
use super::messages::InputMessage;
use super::observed::{DrawnWindow, Evaluation, ReplayObservations};
use super::rows::public_rows;
use super::stream::{ReplayedStream, SentMessage};
use super::subject::AuditSubject;
use super::watch::{MemorySink, MemoryWitness, SharedNotes};
use crate::watch;
use bernstream_ledger as ledger;
use bernstream_ledger::{Genesis, Ledger};
use bernstream_noise::NoiseError;
use bernstream_noise::noise::Generator;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline;
use bernstream_worker::pipeline::{Health, StopRequest, Worker};

/// Lets a worker read `messages`, with noise that `seed` determines.
///
/// # Errors
///
/// If it cannot be carried out. That the worker stopped because of a message is an observation, not an error.
pub fn replay_stream(
    subject: &AuditSubject<'_>,
    messages: &[InputMessage],
    seed: u64,
) -> Result<ReplayObservations, ReplayError> {
    let folder = scratch_folder()?;
    let mut sent = Vec::new();
    for message in messages {
        sent.push(SentMessage {
            partition: message.partition,
            stamp: message.stamp,
            bytes: encode_message(message, subject.columns)?,
        });
    }
    let log = CapturedLog::default();
    tracing::dispatcher::with_default(&log.dispatch(), || {
        observe_worker(subject, sent, seed, folder.path())
    })
    .map(|observed| ReplayObservations {
        log: log.sorted_lines(),
        ..observed
    })
}

/// A folder in memory where there is one: the ledger of a replay holds nothing that must last.
fn scratch_folder() -> std::io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir())
    } else {
        tempfile::tempdir()
    }
}

/// Notes on what a worker draws.
#[derive(Clone, Debug, Default)]
struct DrawNotes {
    evaluations: SharedNotes<Evaluation>,
    /// For each window how many evaluations there were before it, and the metrics then.
    windows: SharedNotes<(usize, String)>,
    /// For each window how many words of randomness it used.
    words: SharedNotes<u128>,
}

impl DrawNotes {
    /// The source of the noise of a worker with these `metrics`: for each window a generator that `seed` determines, noted here.
    fn replayed_generators(
        &self,
        seed: u64,
        metrics: &Metrics,
    ) -> impl FnMut() -> Result<Generator, NoiseError> + Send + 'static {
        let notes = self.clone();
        let metrics = metrics.clone();
        let mut window: u64 = 0;
        move || {
            let before = (notes.evaluations.len(), steady_metrics(&metrics));
            notes.windows.push(before);
            window += 1;
            let mut key = [0; 32];
            let numbers = seed.to_be_bytes().into_iter().chain(window.to_be_bytes());
            key.iter_mut()
                .zip(numbers)
                .for_each(|(key, byte)| *key = byte);
            let words = notes.words.clone();
            Ok(Generator::replayed(key, move |used| words.push(used)))
        }
    }

    /// Takes what was noted of each window.
    fn take_windows(&self) -> Vec<DrawnWindow> {
        let drawn = self.windows.take().into_iter().zip(self.words.take());
        drawn
            .map(|((evaluations, metrics), words)| DrawnWindow {
                evaluations,
                words,
                metrics,
            })
            .collect()
    }
}

fn observe_worker(
    subject: &AuditSubject<'_>,
    messages: Vec<SentMessage>,
    seed: u64,
    folder: &Path,
) -> Result<ReplayObservations, ReplayError> {
    let notes = DrawNotes::default();
    let mut plan = watch::watched_plan(subject.plan, &notes.evaluations);
    plan.rules.end = Some(subject.end_of_replay());
    let metrics = audit_metrics(subject)?;
    let params = ledger::LedgerParams {
        path: folder.join("ledger"),
        keep_published: Duration::from_secs(1),
    };
    let asked = Arc::default();
    let witness = MemoryWitness::default();
    let published = SharedNotes::default();
    let claims = witness.claims.clone();
    let ended = Worker {
        plan: &plan,
        readers: vec![Box::new(ReplayedStream::new(
            subject.columns,
            subject.stamps,
            messages,
            Arc::clone(&asked),
        ))],
        ledger: new_ledger(subject, &params)?,
        witness: Box::new(witness),
        sink: Box::new(MemorySink(published.clone())),
        generators: Box::new(notes.replayed_generators(seed, &metrics)),
        metrics: metrics.clone(),
        health: &Health::default(),
        stop: StopRequest::default(),
    }
    .run_alone();
    let stopped = match ended {
        Ok(()) => None,
        Err(pipeline::PipelineError::Source(error)) => Some(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    let asked = std::mem::take(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(ReplayObservations {
        windows: notes.take_windows(),
        evaluations: notes.evaluations.take(),
        published: published.take(),
        metrics: steady_metrics(&metrics),
        log: Vec::new(),
        rows: public_rows(&params)?,
        asked,
        claimed: claims
            .take()
            .last()
            .map(|claim| (claim.head.sequence, claim.last_block_end)),
        stopped,
    })
}

/// The metrics of a worker that replays a stream of `subject`.
fn audit_metrics(subject: &AuditSubject<'_>) -> Result<Metrics, ReplayError> {
    let description = subject
        .plan
        .releases
        .first()
        .map(|release| release.description());
    let pipeline = description.map_or("", |about| &about.pipeline);
    let digest = description.map_or("", |about| &about.digests.configuration);
    Ok(Metrics::new(
        MetricsDetail::Safe,
        pipeline,
        "audit",
        digest,
    )?)
}

/// The metrics without how many messages have left so far: how many windows wait for one claim is a matter of time.
fn steady_metrics(metrics: &Metrics) -> String {
    without_published(
        &metrics
            .render_text()
            .unwrap_or_else(|error| error.to_string()),
    )
}

/// By the name of the metric: a label may have the same words.
fn without_published(text: &str) -> String {
    let mut kept = Vec::new();
    for line in text.lines() {
        let mut words = line.split([' ', '{']);
        let name = words.find(|word| word.starts_with("bernstream_"));
        if name != Some("bernstream_synopses_published_total") {
            kept.push(line);
        }
    }
    kept.join("\n")
}

fn new_ledger(
    subject: &AuditSubject<'_>,
    params: &ledger::LedgerParams,
) -> Result<Ledger, ReplayError> {
    let plan = subject.plan;
    let first = plan.rules.grid.origin();
    let panes = plan
        .releases
        .iter()
        .map(|release| release.form.panes)
        .max()
        .unwrap_or(1);
    let genesis = Genesis {
        ledger: "audit".to_owned(),
        created: first,
        settings: String::new(),
        total: plan.total,
        first,
        backfill_until: subject.backfill_until,
        input: "audit".to_owned(),
        witness: MemoryWitness::NAME.to_owned(),
        previous: None,
        reach: plan
            .rules
            .grid
            .length()
            .saturating_mul(panes.saturating_sub(1)),
        budget: None,
    };
    Ok(Ledger::create(params, genesis)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_left_out_by_its_name_and_not_by_its_labels() {
        let kept = "bernstream_windows_total{pipeline=\"published-x\"} 3";
        let left_out = "# TYPE bernstream_synopses_published_total counter\n\
                        bernstream_synopses_published_total{pipeline=\"published-x\"} 3";
        assert_eq!(without_published(&format!("{left_out}\n{kept}")), kept);
    }
}
