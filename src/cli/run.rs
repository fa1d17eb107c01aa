//! `run`: the worker, from a configuration to the last window.

use std::convert::Infallible;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::cli::components::{Components, Process};
use crate::cli::dashboard;
use crate::cli::failure::Failure;
use crate::cli::missing_topic::MissingTopic;
use crate::cli::progress::counting;
use crate::cli::runtime::{runtime, stop_on_signal};
use crate::cli::watch::Watch;
use crate::cli::{absorb, held, newest_schema, resources, settings};
use bernstream_config::{Input, Release, Settings};
use bernstream_kafka::sink::Output;
use bernstream_kafka::sink::output::Location;
use bernstream_ledger::{Ledger, private};
use bernstream_noise::noise::Generator;
use bernstream_release::choice::Candidates;
use bernstream_release::window::Rules;
use bernstream_server::feed::FeedReader;
use bernstream_server::serve;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Shape;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_worker::metrics::{Detail, Metrics};
use bernstream_worker::pipeline;
use bernstream_worker::pipeline::{Absorbed, Health, Outage, Plan, Stop, Worker};
use bernstream_worker::telemetry;

/// The pause before an unavailable service is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// For so long a worker waits for rows whose claims are lost and that only another one has. That one may be starting too, after the same power
/// failure, and the code with which a worker ends is one after which nobody starts it again.
const CLAIMED_AGAIN_WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct Arguments {
    /// The configuration.
    #[arg(env = "BERNSTREAM_CONFIG")]
    configuration: PathBuf,
}

/// Runs a worker until it is stopped.
///
/// # Errors
///
/// As for [`work`].
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    telemetry::start();
    let settings = settings::load(&arguments.configuration)?;
    resources::check_limits(&settings)?;
    if let Some(kept) = settings::kept_total(&settings, &arguments.configuration) {
        info!("{kept}");
    }
    if let Some(unguarded) = settings.output.unguarded() {
        warn!("{unguarded}");
    }
    let stop = Stop::default();
    let runtime = runtime()?;
    stop_on_signal(&runtime, &stop, || info!("stopping"));
    let origin = Origin::File(&arguments.configuration);
    work(&settings, origin, &runtime, &stop).map_err(|failure| failure.advised(&settings))
}

/// Where the settings of a worker are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
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
pub fn work(
    settings: &Settings,
    origin: Origin<'_>,
    runtime: &tokio::runtime::Runtime,
    stop: &Stop,
) -> Result<(), Failure> {
    let front = HttpEndpoints::open(settings, runtime)?;
    let process = Process::default();
    let mut read_again = None;
    loop {
        match (
            go(
                read_again.as_ref().unwrap_or(settings),
                origin,
                &front,
                &process,
                stop,
            )?,
            origin,
        ) {
            (Ended::OtherChoices, Origin::File(path)) => {
                info!(
                    "the ledger has taken from its log what the program had chosen: reading the configuration again with that"
                );
                read_again = Some(settings::load(path)?);
            }
            _ => return Ok(()),
        }
    }
}

/// What others see of the worker, for as long as its process lives.
struct HttpEndpoints<'r> {
    runtime: &'r tokio::runtime::Runtime,
    probes: Option<TcpListener>,
    hosts: Arc<[String]>,
    _dashboard: Option<FeedReader>,
}

impl<'r> HttpEndpoints<'r> {
    fn open(settings: &Settings, runtime: &'r tokio::runtime::Runtime) -> Result<Self, Failure> {
        let listen = |address, setting| {
            serve::listen(address, setting).map_err(|error| Failure::Unavailable(error.to_string()))
        };
        let probes = settings
            .serve
            .map(|address| listen(address, "serve.listen"))
            .transpose()?;
        if let (Some(asked), Some(probes)) = (settings.serve, &probes) {
            // Port 0 stands for any that is free.
            let address = probes.local_addr().unwrap_or(asked);
            info!("serving http://{address}/metrics, /healthz and /readyz");
        }
        let hosts: Arc<[String]> = settings.hosts.as_slice().into();
        let dashboard = settings.dashboard.map(|address| {
            let listener = listen(address, "serve.dashboard")?;
            info!("serving the dashboard at {}", dashboard::url(&listener)?);
            dashboard::open(
                listener,
                Arc::clone(&hosts),
                dashboard::origin(&settings.output),
                runtime,
            )
        });
        Ok(HttpEndpoints {
            runtime,
            probes,
            hosts: Arc::clone(&hosts),
            _dashboard: dashboard.transpose()?,
        })
    }

    /// Answers the probes of a worker until the returned value is dropped.
    fn answer(
        &self,
        metrics: &Metrics,
        health: &Arc<Health>,
    ) -> Result<Option<Answering>, Failure> {
        let Some(probes) = &self.probes else {
            return Ok(None);
        };
        let listener = probes
            .try_clone()
            .map_err(|error| Failure::Unavailable(format!("serve.listen: {error}")))?;
        let hosts = Arc::clone(&self.hosts);
        let metrics = metrics.clone();
        let health = Arc::clone(health);
        Ok(Some(Answering(self.runtime.spawn(serve::probes::serve(
            listener, hosts, metrics, health,
        )))))
    }
}

/// Answers probes, until it is dropped.
struct Answering(JoinHandle<Result<(), serve::Error>>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How a worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Done,
    /// The ledger was built from its log, and says otherwise than these settings what was left to the program.
    OtherChoices,
}

/// Runs a worker with these settings to its end.
fn go(
    settings: &Settings,
    origin: Origin<'_>,
    front: &HttpEndpoints<'_>,
    process: &Process,
    stop: &Stop,
) -> Result<Ended, Failure> {
    private::make_folder(&settings.ledger.path).map_err(|error| {
        Failure::Ledger(format!(
            "cannot create {}: {error}",
            settings.ledger.path.display()
        ))
    })?;
    for warning in settings.warnings(Timestamp::now()) {
        warn!("{warning}");
    }
    for kept in settings.releases.iter().filter_map(settings::kept) {
        info!("{kept}");
    }
    let plan = settings.plan(
        |release| bands(release, &settings.ledger.path),
        origin == Origin::Simulation,
    )?;
    let digest: String = settings
        .digest()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let definition = settings.privacy.definition.name();
    let metrics = Metrics::new(settings.detail, &settings.pipeline, definition, &digest)
        .map_err(|error| Failure::Other(error.to_string()))?;
    let health = Arc::new(Health::default());
    let _until_the_end = front.answer(&metrics, &health)?;
    // What ends this worker ends no other one that comes after it.
    let stop = &stop.below();
    let first = match open(settings, process, &metrics, stop, MissingTopic::at_start())? {
        Opened::Parts(parts) => *parts,
        Opened::OtherChoices => return Ok(Ended::OtherChoices),
        Opened::Stopped => return Ok(Ended::Done),
    };
    // What is wrong with the configuration is told by what opens its topics, and the watch looks at them after that.
    let watch = Watch::start(settings, stop)?;
    let registry = settings.registry.as_ref();
    let _beside = registry
        .map(|registry| newest_schema::follow(registry, &metrics, stop))
        .transpose()?;
    let mut parts = Some(first);
    while let Some((components, absorbed)) = parts.take() {
        match carry_out(
            settings, &plan, components, absorbed, &metrics, &health, stop,
        ) {
            // The witness follows another disk, whose rows this one takes from the log, or what was read is of no use.
            Err(error)
                if error.is_hanging() || settings.ledger_log.is_some() && error.begins_again() =>
            {
                // Then another worker goes on with the pipeline.
                if stop.asked() {
                    break;
                }
                health.stand_still();
                if !error.is_overtaken() {
                    warn!("{error}");
                }
                stop.wait(RETRY);
                parts = match open(settings, process, &metrics, stop, MissingTopic::later())? {
                    Opened::Parts(parts) => Some(*parts),
                    Opened::OtherChoices => return Ok(Ended::OtherChoices),
                    Opened::Stopped => None,
                };
            }
            done => {
                // The exit message is for everyone.
                if let Err(pipeline::Error::Source(failure)) = &done
                    && let Some(in_full) = failure
                        .in_full()
                        .filter(|_| settings.detail == Detail::Operator)
                {
                    error!("{in_full}");
                }
                done?;
            }
        }
    }
    if let Some(failure) = watch.failure() {
        return Err(failure);
    }
    info!("{}", where_it_is(&settings.output));
    info!(
        "{}",
        if stop.asked() {
            "stopped"
        } else {
            "done: every window is closed, and everything paid for is published"
        }
    );
    Ok(Ended::Done)
}

/// What came of opening everything.
enum Opened {
    Parts(Box<(Components, Option<Absorbed>)>),
    /// The ledger was built from its log, and says otherwise than these settings what was left to the program.
    OtherChoices,
    /// A stop was requested before.
    Stopped,
}

/// Opens everything, once it can be reached, and once another worker has claimed again what only that one has.
fn open(
    settings: &Settings,
    process: &Process,
    metrics: &Metrics,
    stop: &Stop,
    mut missing: MissingTopic,
) -> Result<Opened, Failure> {
    let mut outage = Outage::default();
    let mut lost_since = None;
    loop {
        let error = match Components::open_in(settings, process)
            .and_then(|parts| Ok((parts, absorb::absorbed(settings)?)))
        {
            Ok(parts) => return Ok(Opened::Parts(Box::new(parts))),
            Err(error) if error.is_about_choices() => return Ok(Opened::OtherChoices),
            Err(error) => error,
        };
        let may_be_elsewhere = error.is_of_lost_claims && settings.ledger_log.is_some();
        if may_be_elsewhere {
            metrics.witness_lost_claims.set(1);
        }
        let is_awaited = may_be_elsewhere
            && lost_since.get_or_insert_with(Instant::now).elapsed() < CLAIMED_AGAIN_WITHIN;
        let may_return = missing.may_return(error.is_missing);
        if !(error.is_transient || may_return || is_awaited) {
            return Err(error.failure);
        }
        if stop.asked() {
            return Ok(Opened::Stopped);
        }
        let why = error.failure.to_string();
        // The client says after how many milliseconds a connection has failed.
        let reason = why.replace(|c: char| c.is_ascii_digit(), "");
        if outage.fails(reason, Instant::now()) {
            match is_awaited {
                true => error!("{why}; waiting for such a worker for a minute"),
                false => warn!("{why}; trying again"),
            }
        }
        stop.wait(RETRY);
    }
}

/// Runs a worker on what is open.
fn carry_out(
    settings: &Settings,
    plan: &Plan,
    mut components: Components,
    absorbed: Option<Absorbed>,
    metrics: &Metrics,
    health: &Arc<Health>,
    stop: &Stop,
) -> Result<(), pipeline::Error> {
    let ledger = &components.ledger;
    let instance = ledger
        .instance()
        .map(|instance| instance.to_string())
        .unwrap_or_default();
    info!(ledger = %ledger.genesis().ledger, row = ledger.head().sequence, instance, "ledger verified");
    log_next_window(settings, &components.ledger);
    held::wait(&mut components.ledger, health, stop)?;
    let worker = Worker {
        plan,
        readers: components.readers,
        ledger: components.ledger,
        witness: components.witness,
        sink: components.sink,
        generators: Box::new(Generator::from_entropy),
        metrics: metrics.clone(),
        health,
        // One loop that fails stops the others, and not the program.
        stop: stop.below(),
    };
    worker.run_with(absorbed)
}

/// Where the synopses are, and how to look at them.
fn where_it_is(output: &Output) -> String {
    let (place, asked) = match output.location() {
        Location::Folder(path) => (
            format!("in the folder {}", path.display()),
            path.display().to_string(),
        ),
        Location::Topic { broker, topic } => (
            format!("in the topic {topic}"),
            format!("--topic {topic} --brokers {}", broker.servers),
        ),
    };
    format!("the synopses are {place}: `bernstream dashboard {asked}` shows them in a browser")
}

/// Logs when the next window is due.
fn log_next_window(settings: &Settings, ledger: &Ledger) {
    let rules = &settings.windows;
    let next = rules.grid.span_of(ledger.next_window());
    let cutoff = rules.cutoff(next, ledger.genesis().backfill_until);
    match settings.input {
        _ if rules.end.is_some_and(|end| next.end > end) => info!("every window is already closed"),
        Input::Files(_) => {
            info!(window = %next.start, "next window; all windows that have ended are released when the input has been read")
        }
        Input::Kafka(_) => info!(
            window = %next.start,
            // A backfill closes and publishes its windows together.
            windows = ledger.genesis().backfill_until.map_or(1, |until| history(rules, next, until)),
            cutoff = %cutoff,
            published = %cutoff.plus(settings.publish_delay),
            "next window"
        ),
    }
}

/// How many windows from `next` on are closed together, when everything sent until `backfill` has been read.
fn history(rules: &Rules, next: Span, backfill: Timestamp) -> u64 {
    let last = backfill.minus(rules.allowed_lateness);
    rules
        .grid
        .count(next.start, rules.end.map_or(last, |end| last.min(end)))
        .max(1)
}

/// The noise band for each order that a window can have: simulated once per plan from public quantities, and cached in
/// `folder`, beside the ledger.
pub fn bands(release: &Release, folder: &Path) -> Candidates<Band> {
    let shape = release.shape();
    let law = release.noise.law();
    let of_order = |order| {
        let one = band(&shape, law, order, folder);
        match release.is_sum_of_panes() && law.is_pure() {
            true => one.of_sums(
                law,
                shape.values(),
                &band(&shape, NoiseDistribution::DiscreteGaussian, order, folder),
            ),
            false => one,
        }
    };
    let bands = release
        .orders()
        .try_map(|order| Ok::<_, Infallible>(of_order(*order)));
    bands.unwrap_or_else(|never| match never {})
}

fn band(shape: &Shape, law: NoiseDistribution, order: u32, folder: &Path) -> Band {
    // The name identifies everything that determines the band.
    let about = serde_json::json!([
        env!("CARGO_PKG_VERSION"),
        shape.dimensions,
        shape.degree,
        shape.basis,
        law,
        order
    ]);
    let digest: String = Sha256::digest(about.to_string())
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let name = format!("band-{digest}.json");
    let cached = folder.join(name);
    if let Some(band) = fs::read(&cached)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
    {
        return band;
    }
    info!(
        values = shape.values(),
        "simulating the noise band; it is cached beside the ledger"
    );
    let band = counting("simulating the noise band", |done| {
        Band::simulate_telling(shape, law, order, &|draws, all| done.set(draws, all))
    });
    // How long it took is seen from the two lines' times: a log that is compared has no other times of its own.
    info!(values = shape.values(), "simulated the noise band");
    // Only a cache: without it the same band is simulated again.
    if let Err(error) = serde_json::to_vec(&band)
        .map_err(std::io::Error::from)
        .and_then(|bytes| private::write(&cached, &bytes))
    {
        warn!(
            "cannot cache the noise band in {}: {error}",
            cached.display()
        );
    }
    band
}
