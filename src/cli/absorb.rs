//! `absorb`: reads partitions for the worker of a pipeline.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use tracing::{info, warn};

use crate::cli::failure::Failure;
use crate::cli::missing_topic::MissingTopic;
use crate::cli::open_error::OpenError;
use crate::cli::runtime::{start_runtime, stop_on_signal};
use crate::cli::settings;
use bernstream_config::{InputParams, WorkerSettings, socket_address};
use bernstream_kafka::source::kafka;
use bernstream_kafka::source::kafka::{KafkaSource, PartitionRanges};
use bernstream_ledger::sealing::KeyFileSecret;
use bernstream_server::serve;
use bernstream_synopsis::clock::{Reminder, Timestamp};
use bernstream_worker::pipeline::{AbsorberParams, StopRequest};
use bernstream_worker::scale;
use bernstream_worker::scale::{
    Absorber, AbsorberIdentity, AbsorberPulse, ChoiceReader, PartitionAbsorber, ReadSettings,
    ScaleKeys, ScaleTopic,
};
use bernstream_worker::telemetry;

/// The pause before an unavailable service is tried again.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct AbsorbArguments {
    /// The configuration, that of the worker.
    #[arg(env = "BERNSTREAM_CONFIG")]
    configuration: PathBuf,
    /// A name that this absorber keeps over restarts, such as that of its pod: nobody takes its partitions meanwhile
    #[arg(long, env = "BERNSTREAM_MEMBER")]
    member: Option<String>,
    /// Answer /healthz and /readyz there, such as 0.0.0.0:9464. Default: nowhere
    #[arg(long, env = "BERNSTREAM_LISTEN", value_parser = socket_address)]
    listen: Option<SocketAddr>,
}

/// Runs an absorber until it is stopped.
///
/// # Errors
///
/// If the configuration has no `[scale]`, the key file is missing, or a topic cannot be read.
pub fn run(arguments: &AbsorbArguments) -> Result<(), Failure> {
    telemetry::start_logging();
    let settings = settings::load_settings(&arguments.configuration)?;
    let ScaledInput { scale, input } = scaled_input(&settings)?;
    for warning in settings.warnings(Timestamp::now()) {
        warn!("{warning}");
    }
    let stop = StopRequest::default();
    let runtime = start_runtime()?;
    stop_on_signal(&runtime, &stop, || info!("stopping"));
    let keys = load_keys(scale)?;
    let pulse = Arc::new(AbsorberPulse::default());
    if let Some(address) = arguments.listen {
        let listener = serve::listen(address, "--listen")?;
        let address = listener.local_addr().unwrap_or(address);
        runtime.spawn(serve::probes::serve_absorber(
            listener,
            settings.hosts.as_slice().into(),
            Arc::clone(&pulse),
        ));
        info!("serving http://{address}/healthz and /readyz");
    }
    let mut reminder = Reminder::default();
    let mut missing = MissingTopic::at_start();
    while !stop.is_requested() {
        let identity = AbsorberIdentity {
            member: arguments.member.clone(),
            reads: reads_of_file(&settings, &arguments.configuration),
        };
        let forms = settings.release_inputs();
        let rules = settings.windows.clone();
        let input = (input, settings.columns.clone());
        match Absorber::open(
            scale,
            keys.clone(),
            (identity, Arc::clone(&pulse)),
            input,
            (rules, forms),
        ) {
            Ok(absorber) => {
                reminder.forget_reminder();
                info!("waiting for the announcements of a worker");
                absorber.run_until(&|| stop.is_requested())?;
            }
            Err(error) if missing.may_return(error.is_missing()) || error.is_transient() => {
                if reminder.is_due(Instant::now()) {
                    warn!("{error}; trying again");
                }
                pulse.record_heartbeat();
                stop.sleep_or_stop(RETRY);
            }
            Err(error) => return Err(error.into()),
        }
    }
    info!("stopped");
    Ok(())
}

/// Everything that a worker of these settings needs to leave reading to absorbers; `None` without `[scale]`.
///
/// # Errors
///
/// If the key file cannot be used, or a topic cannot be read.
pub fn open_absorbed(settings: &WorkerSettings) -> Result<Option<AbsorberParams>, OpenError> {
    if settings.scale.is_none() {
        return Ok(None);
    }
    let ScaledInput { scale, input } = scaled_input(settings)?;
    let keys = load_keys(scale)?;
    let columns = settings.columns.clone();
    let reader = KafkaSource::open(input.clone(), columns.clone(), Timestamp::now)?;
    let topic = ScaleTopic::of_worker(scale, &input.broker, &input.topic, keys)?;
    let forms = settings.release_inputs();
    let ranges = PartitionRanges::open(input.clone(), columns)?.shared_readers();
    let own = ranges
        .into_iter()
        .map(|range| PartitionAbsorber::new(range, settings.windows.clone(), forms.clone()))
        .collect();
    Ok(Some(AbsorberParams {
        input: reader,
        topic,
        own,
        settings: settings.reading_digest(),
        choices: settings.auto_choices(),
        deadline: scale.deadline,
        most: scale.most,
    }))
}

/// Readings of an absorber of these settings for workers, whose ledgers may keep other choices of `"auto"` than it would make.
fn reads_of_file(settings: &WorkerSettings, path: &Path) -> ChoiceReader {
    let settings = settings.clone();
    let path = path.to_owned();
    Box::new(move |choices| {
        let forms = match settings.auto_choices() == choices {
            true => settings.release_inputs(),
            // Whatever the file says by now: the digest is that of what would be read, by the other settings of this process.
            false => WorkerSettings::load_choosing(&path, choices)
                .ok()?
                .release_inputs(),
        };
        Some(ReadSettings {
            settings: settings.reading_digest_of(&forms),
            forms,
        })
    })
}

/// An input that absorbers read.
struct ScaledInput<'s> {
    scale: &'s scale::ScaleParams,
    input: &'s kafka::KafkaSourceParams,
}

fn scaled_input(settings: &WorkerSettings) -> Result<ScaledInput<'_>, Failure> {
    if let (Some(scale), InputParams::Kafka(input)) = (&settings.scale, &settings.input) {
        return Ok(ScaledInput { scale, input });
    }
    Err(Failure::Configuration(
        "the configuration has no [scale], so nothing is asked of absorbers: add it, as config/reference.toml shows, for the \
         worker too"
            .to_owned(),
    ))
}

fn load_keys(scale: &scale::ScaleParams) -> Result<ScaleKeys, Failure> {
    KeyFileSecret::load(&scale.key_file)
        .map(|secret| ScaleKeys::new(&secret))
        .map_err(Failure::Configuration)
}
