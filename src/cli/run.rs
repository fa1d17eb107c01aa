//! `run`: the worker, from a configuration to the last window.

mod bands;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

pub use self::bands::noise_bands;
use crate::cli::components::{Components, OpenError, ProcessState};
use crate::cli::dashboard;
use crate::cli::failure::Failure;
use crate::cli::figures::hexadecimal;
use crate::cli::missing_topic::MissingTopic;
use crate::cli::runtime::{start_runtime, stop_on_signal};
use crate::cli::watch::TopicWatch;
use crate::cli::{absorb, held, newest_schema, resources, settings};
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::sink::OutputParams;
use bernstream_kafka::sink::output::OutputLocation;
use bernstream_ledger::{Ledger, private};
use bernstream_noise::noise::Generator;
use bernstream_release::window::WindowRules;
use bernstream_server::feed::FeedReader;
use bernstream_server::serve;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline;
use bernstream_worker::pipeline::{
    AbsorberParams, Health, Outage, ReleasePlan, StopRequest, Worker,
};
use bernstream_worker::telemetry;

/// The pause before an unavailable service is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// For so long a worker waits for rows whose claims are lost and that only another one has. That one may be starting too, after the same power
/// failure, and the code with which a worker ends is one after which nobody starts it again.
const CLAIMED_AGAIN_WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct RunArguments {
    /// The configuration.
    #[arg(env = "BERNSTREAM_CONFIG")]
    configuration: PathBuf,
}

/// Runs a worker until it is stopped.
///
/// # Errors
///
/// Those of [`run_worker`].
pub fn run(arguments: &RunArguments) -> Result<(), Failure> {
    telemetry::start_logging();
    let settings = settings::load_settings(&arguments.configuration)?;
    resources::check_limits(&settings)?;
    if let Some(kept) = settings::kept_total(&settings, &arguments.configuration) {
        info!("{kept}");
    }
    if let Some(unguarded) = settings.output.unguarded_warning() {
        warn!("{unguarded}");
    }
    let stop = StopRequest::default();
    let runtime = start_runtime()?;
    stop_on_signal(&runtime, &stop, || info!("stopping"));
    let origin = SettingsOrigin::File(&arguments.configuration);
    run_worker(&settings, origin, &runtime, &stop).map_err(|failure| failure.with_advice(&settings))
}

/// The source of the settings of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsOrigin<'a> {
    /// This file, which can be read again.
    File(&'a Path),
    /// The program itself: records are simulated.
    Simulation,
}

/// Runs a worker until its grid ends, a stop is requested, or something fails. Every synopsis of a simulation says that it is one.
///
/// # Errors
///
/// If the configuration, the ledger, the witness, the input or the output does not allow the worker to go on.
pub fn run_worker(
    settings: &WorkerSettings,
    origin: SettingsOrigin<'_>,
    runtime: &tokio::runtime::Runtime,
    stop: &StopRequest,
) -> Result<(), Failure> {
    let endpoints = HttpEndpoints::open(settings, runtime)?;
    let process = ProcessState::default();
    let mut read_again = None;
    loop {
        let settings = read_again.as_ref().unwrap_or(settings);
        let ended = run_with(settings, origin, &endpoints, &process, stop)?;
        let SettingsOrigin::File(path) = origin else {
            return Ok(());
        };
        if ended == WorkerEnd::Done {
            return Ok(());
        }
        info!(
            "the ledger has taken from its log what the program had chosen: reading the configuration again with that"
        );
        read_again = Some(settings::load_settings(path)?);
    }
}

/// Endpoints by which others see the worker, for as long as its process lives.
struct HttpEndpoints<'r> {
    runtime: &'r tokio::runtime::Runtime,
    probes: Option<TcpListener>,
    hosts: Arc<[String]>,
    _dashboard: Option<FeedReader>,
}

impl<'r> HttpEndpoints<'r> {
    fn open(
        settings: &WorkerSettings,
        runtime: &'r tokio::runtime::Runtime,
    ) -> Result<Self, Failure> {
        let hosts: Arc<[String]> = settings.hosts.as_slice().into();
        let mut endpoints = HttpEndpoints {
            runtime,
            probes: None,
            hosts: Arc::clone(&hosts),
            _dashboard: None,
        };
        if let Some(asked) = settings.serve {
            let probes = serve::listen(asked, "serve.listen")?;
            // Port 0 stands for any that is free.
            let address = probes.local_addr().unwrap_or(asked);
            info!("serving http://{address}/metrics, /healthz and /readyz");
            endpoints.probes = Some(probes);
        }
        if let Some(address) = settings.dashboard {
            let listener = serve::listen(address, "serve.dashboard")?;
            info!(
                "serving the dashboard at {}",
                dashboard::page_url(&listener)?
            );
            let origin = dashboard::origin_of_output(&settings.output);
            endpoints._dashboard = Some(dashboard::serve_dashboard(
                listener, hosts, origin, runtime,
            )?);
        }
        Ok(endpoints)
    }

    /// Answers the probes of a worker until the returned value is dropped.
    fn answer(
        &self,
        metrics: &Metrics,
        health: &Arc<Health>,
    ) -> Result<Option<ProbeServer>, Failure> {
        let Some(probes) = &self.probes else {
            return Ok(None);
        };
        let listener = probes
            .try_clone()
            .map_err(|error| Failure::Unavailable(format!("serve.listen: {error}")))?;
        let hosts = Arc::clone(&self.hosts);
        let metrics = metrics.clone();
        let health = Arc::clone(health);
        Ok(Some(ProbeServer(self.runtime.spawn(serve::probes::serve(
            listener, hosts, metrics, health,
        )))))
    }
}

/// Answers probes, until it is dropped.
struct ProbeServer(JoinHandle<Result<(), serve::ServeError>>);

impl Drop for ProbeServer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The way in which a worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerEnd {
    Done,
    /// The ledger was built from its log, and says otherwise than these settings what was left to the program.
    OtherChoices,
}

/// Runs a worker with these settings to its end.
fn run_with(
    settings: &WorkerSettings,
    origin: SettingsOrigin<'_>,
    endpoints: &HttpEndpoints<'_>,
    process: &ProcessState,
    stop: &StopRequest,
) -> Result<WorkerEnd, Failure> {
    private::make_folder(&settings.ledger.path).map_err(|error| {
        Failure::Ledger(format!(
            "cannot create {}: {error}",
            settings.ledger.path.display()
        ))
    })?;
    for warning in settings.warnings(Timestamp::now()) {
        warn!("{warning}");
    }
    for kept in settings.releases.iter().filter_map(settings::kept_choice) {
        info!("{kept}");
    }
    let plan = settings.plan(
        |release| noise_bands(release, &settings.ledger.path),
        origin == SettingsOrigin::Simulation,
    )?;
    let digest = hexadecimal(&settings.digest());
    let definition = settings.privacy.definition.name();
    let metrics = Metrics::new(settings.detail, &settings.pipeline, definition, &digest)
        .map_err(|error| Failure::Other(error.to_string()))?;
    let health = Arc::new(Health::default());
    let _until_the_end = endpoints.answer(&metrics, &health)?;
    // What ends this worker ends no other one that comes after it.
    let stop = &stop.child_request();
    let worker = WorkerRun {
        settings,
        process,
        plan: &plan,
        metrics: &metrics,
        health: &health,
        stop,
    };
    let first = match worker.open(MissingTopic::at_start())? {
        OpenOutcome::Parts(parts) => *parts,
        OpenOutcome::OtherChoices => return Ok(WorkerEnd::OtherChoices),
        OpenOutcome::Stopped => return Ok(WorkerEnd::Done),
    };
    // What is wrong with the configuration is told by what opens its topics, and the watch looks at them after that.
    let watch = TopicWatch::start(settings, stop)?;
    let registry = settings.registry.as_ref();
    let _beside = registry
        .map(|registry| newest_schema::follow_registry(registry, &metrics, stop))
        .transpose()?;
    if worker.run(first)? == WorkerEnd::OtherChoices {
        return Ok(WorkerEnd::OtherChoices);
    }
    if let Some(failure) = watch.take_failure() {
        return Err(failure);
    }
    info!("{}", where_it_is(&settings.output));
    info!(
        "{}",
        if stop.is_requested() {
            "stopped"
        } else {
            "done: every window is closed, and everything paid for is published"
        }
    );
    Ok(WorkerEnd::Done)
}

/// Everything that a worker has opened.
struct OpenedComponents {
    components: Components,
    /// Absent without `[scale]`.
    absorbed: Option<AbsorberParams>,
}

/// The result of opening everything.
enum OpenOutcome {
    Parts(Box<OpenedComponents>),
    /// The ledger was built from its log, and says otherwise than these settings what was left to the program.
    OtherChoices,
    /// A stop was requested before.
    Stopped,
}

/// A worker with one plan, which may have to open everything several times.
struct WorkerRun<'a> {
    settings: &'a WorkerSettings,
    process: &'a ProcessState,
    plan: &'a ReleasePlan,
    metrics: &'a Metrics,
    health: &'a Arc<Health>,
    stop: &'a StopRequest,
}

impl WorkerRun<'_> {
    /// Opens everything, once it can be reached, and once another worker has claimed again what only that one has.
    fn open(&self, mut missing: MissingTopic) -> Result<OpenOutcome, Failure> {
        let mut outage = Outage::default();
        let mut lost_since = None;
        loop {
            let error = match self.open_once() {
                Ok(parts) => return Ok(OpenOutcome::Parts(Box::new(parts))),
                Err(error) if error.is_about_choices() => return Ok(OpenOutcome::OtherChoices),
                Err(error) => error,
            };
            let may_be_elsewhere = error.is_of_lost_claims && self.settings.ledger_log.is_some();
            if may_be_elsewhere {
                self.metrics.witness_lost_claims.set(1);
            }
            let is_awaited = may_be_elsewhere
                && lost_since.get_or_insert_with(Instant::now).elapsed() < CLAIMED_AGAIN_WITHIN;
            let may_return = missing.may_return(error.is_missing);
            if !(error.is_transient || may_return || is_awaited) {
                return Err(error.failure);
            }
            if self.stop.is_requested() {
                return Ok(OpenOutcome::Stopped);
            }
            let why = error.failure.to_string();
            // The client says after how many milliseconds a connection has failed.
            let reason = why.replace(|c: char| c.is_ascii_digit(), "");
            if outage.record_failure(reason, Instant::now()) {
                match is_awaited {
                    true => error!("{why}; waiting for such a worker for a minute"),
                    false => warn!("{why}; trying again"),
                }
            }
            self.stop.sleep_or_stop(RETRY);
        }
    }

    fn open_once(&self) -> Result<OpenedComponents, OpenError> {
        Ok(OpenedComponents {
            components: Components::open_in(self.settings, self.process)?,
            absorbed: absorb::open_absorbed(self.settings)?,
        })
    }

    /// Runs a worker on `first`, and on what is opened again wherever it has to begin again, to its end.
    fn run(&self, first: OpenedComponents) -> Result<WorkerEnd, Failure> {
        let mut parts = first;
        loop {
            let error = match self.run_once(parts) {
                Ok(()) => return Ok(WorkerEnd::Done),
                Err(error) => error,
            };
            // The witness follows another disk, whose rows this one takes from the log, or what was read is of no use.
            let begins_again =
                error.is_hanging() || self.settings.ledger_log.is_some() && error.begins_again();
            if !begins_again {
                self.log_in_full(&error);
                return Err(error.into());
            }
            // Then another worker goes on with the pipeline.
            if self.stop.is_requested() {
                return Ok(WorkerEnd::Done);
            }
            self.health.stand_still();
            if !error.is_overtaken() {
                warn!("{error}");
            }
            self.stop.sleep_or_stop(RETRY);
            parts = match self.open(MissingTopic::later())? {
                OpenOutcome::Parts(parts) => *parts,
                OpenOutcome::OtherChoices => return Ok(WorkerEnd::OtherChoices),
                OpenOutcome::Stopped => return Ok(WorkerEnd::Done),
            };
        }
    }

    /// Logs what the exit message, which is for everyone, leaves out.
    fn log_in_full(&self, error: &pipeline::PipelineError) {
        if self.settings.detail == MetricsDetail::Operator
            && let pipeline::PipelineError::Source(failure) = error
            && let Some(in_full) = failure.in_full()
        {
            error!("{in_full}");
        }
    }

    fn run_once(&self, parts: OpenedComponents) -> Result<(), pipeline::PipelineError> {
        let OpenedComponents {
            mut components,
            absorbed,
        } = parts;
        let ledger = &components.ledger;
        let instance = ledger
            .instance()
            .map(|instance| instance.to_string())
            .unwrap_or_default();
        info!(ledger = %ledger.genesis().ledger, row = ledger.head().sequence, instance, "ledger verified");
        log_next_window(self.settings, &components.ledger);
        held::wait_while_held(&mut components.ledger, self.health, self.stop)?;
        let worker = Worker {
            plan: self.plan,
            readers: components.readers,
            ledger: components.ledger,
            witness: components.witness,
            sink: components.sink,
            generators: Box::new(Generator::from_entropy),
            metrics: self.metrics.clone(),
            health: self.health,
            // One loop that fails stops the others, and not the program.
            stop: self.stop.child_request(),
        };
        worker.run_with_absorbers(absorbed)
    }
}

/// The place of the synopses, and how to look at them.
fn where_it_is(output: &OutputParams) -> String {
    match output.location() {
        OutputLocation::Folder(path) => {
            let path = path.display();
            format!(
                "the synopses are in the folder {path}: `bernstream dashboard {path}` shows them in a browser"
            )
        }
        OutputLocation::Topic { broker, topic } => format!(
            "the synopses are in the topic {topic}: `bernstream dashboard --topic {topic} --brokers {}` shows them in a browser",
            broker.servers
        ),
    }
}

/// Logs when the next window is due.
fn log_next_window(settings: &WorkerSettings, ledger: &Ledger) {
    let rules = &settings.windows;
    let next = rules.grid.span_of(ledger.next_window());
    let cutoff = rules.window_cutoff(next, ledger.genesis().backfill_until);
    match settings.input {
        _ if rules.end.is_some_and(|end| next.end > end) => info!("every window is already closed"),
        InputParams::Files(_) => {
            info!(window = %next.start, "next window; all windows that have ended are released when the input has been read")
        }
        InputParams::Kafka(_) => info!(
            window = %next.start,
            // A backfill closes and publishes its windows together.
            windows = ledger.genesis().backfill_until.map_or(1, |until| windows_of_backfill(rules, next, until)),
            cutoff = %cutoff,
            published = %cutoff.plus(settings.publish_delay),
            "next window"
        ),
    }
}

/// Number of windows from `next` on that are closed together, when everything sent until `backfill` has been read.
fn windows_of_backfill(rules: &WindowRules, next: Span, backfill: Timestamp) -> u64 {
    let last = backfill.minus(rules.allowed_lateness);
    rules
        .grid
        .count_spans(next.start, rules.end.map_or(last, |end| last.min(end)))
        .max(1)
}
