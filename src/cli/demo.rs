//! `demo`: a whole pipeline in one process, on simulated records and the mock cluster of librdkafka.

use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use clap::Args;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Gamma, LogNormal};
use rdkafka::consumer::Consumer;
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};
use tracing::info;

use crate::cli::chart::{self, ChartPoint};
use crate::cli::dashboard;
use crate::cli::failure::Failure;
use crate::cli::key_rows;
use crate::cli::print::{line, print};
use crate::cli::produce::ipc_stream;
use crate::cli::run::{self, SettingsOrigin};
use crate::cli::runtime::{start_runtime, stop_on_signal};
use bernstream_config::{InputParams, OutputParams, WorkerSettings, socket_address};
use bernstream_kafka::Broker;
use bernstream_server::serve;
use bernstream_synopsis as synopsis;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::TargetDescription;
use bernstream_worker::pipeline::StopRequest;

const CONFIGURATION: &str = include_str!("../../config/demo.toml");
/// Records per message, and the pause between messages.
const ROWS: usize = 500;
const PACE: Duration = Duration::from_millis(250);
/// The size of a curve in the terminal.
const COLUMNS: u32 = 72;
const LINES: u32 = 12;

#[derive(Debug, Args)]
pub struct DemoArguments {
    /// End after this many windows; without it, run until interrupted.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    windows: Option<u32>,
    /// Serve /metrics, /healthz and /readyz at this address, for example 127.0.0.1:9464.
    #[arg(long, value_parser = socket_address)]
    listen: Option<SocketAddr>,
    /// The address of the page [default: 127.0.0.1:9465, or a free port if that one is taken].
    #[arg(long, value_parser = socket_address)]
    dashboard: Option<SocketAddr>,
}

/// Runs the demo.
///
/// # Errors
///
/// If an address is taken, or if the mock cluster or the worker fails.
pub fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    let page = listen_for_page(arguments.dashboard)?;
    line(format_args!(
        "\n  ==>  {}  <==  open this in a browser: the curves, live\n",
        dashboard::page_url(&page)?
    ))?;
    let mut settings = WorkerSettings::parse(CONFIGURATION, "config/demo.toml")
        .map_err(|faults| Failure::Other(faults.to_string()))?;
    let InputParams::Kafka(input) = &mut settings.input else {
        return Err(not_kafka());
    };
    let OutputParams::Kafka { sink, witness } = &mut settings.output else {
        return Err(not_kafka());
    };

    let cluster = MockCluster::new(1).map_err(mock_failed)?;
    let broker = Broker::mock_cluster(cluster.bootstrap_servers());
    cluster
        .create_topic(&input.topic, 2, 1)
        .map_err(mock_failed)?;
    cluster
        .create_topic(&sink.topic, 1, 1)
        .map_err(mock_failed)?;
    cluster
        .create_topic(&witness.topic, 1, 1)
        .map_err(mock_failed)?;
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::Other(format!("no temporary folder: {error}")))?;
    input.broker = broker.clone();
    sink.broker = broker.clone();
    witness.broker = broker.clone();
    let source = input.topic.clone();
    let output = sink.topic.clone();
    settings.ledger.path = folder.path().join("ledger");
    settings.serve = arguments.listen;

    line(
        "bernstream demo: simulated customers at two counters. Every 3 seconds a private table, and a curve of the waiting times at each.",
    )?;
    line(
        "The broker is a mock inside this process: it shows how data flows, but proves nothing about delivery.",
    )?;
    line("  ***  the released curve: how many customers waited how long, with noise")?;
    line("  :::  its simultaneous 95 % band: it contains the whole curve without noise")?;
    line("The first ones appear in a few seconds.\n")?;
    if let Some(address) = arguments.listen {
        line(format_args!("metrics: http://{address}/metrics\n"))?;
    }

    let of_window = settings.synopses_of_window() as u64;
    let last = arguments
        .windows
        .map(|windows| u64::from(windows) * of_window);
    let stop = StopRequest::default();
    let runtime = start_runtime()?;
    stop_on_signal(&runtime, &stop, || info!("stopping"));
    let _until_the_end = dashboard::serve_dashboard(
        page,
        Arc::default(),
        dashboard::origin_of_output(&settings.output),
        &runtime,
    )?;
    thread::scope(|scope| {
        let simulating =
            scope.spawn(|| stop_at_end(&stop, send_simulated(&broker, &source, &stop)));
        let showing =
            scope.spawn(|| stop_at_end(&stop, show_synopses(&broker, &output, last, &stop)));
        let worked = run::run_worker(&settings, SettingsOrigin::Simulation, &runtime, &stop);
        stop.request_stop();
        for done in [simulating.join(), showing.join()] {
            done.unwrap_or_else(|_| Err(Failure::Other("a thread panicked".into())))?;
        }
        worked
    })?;
    line(
        "\nDone. For your own records, write a configuration and use bernstream explain, check and run.",
    )?;
    Ok(())
}

/// Listens at the requested address, or else at the default one or at a free port.
fn listen_for_page(asked: Option<SocketAddr>) -> Result<TcpListener, Failure> {
    let setting = "--dashboard";
    if let Some(address) = asked {
        return Ok(serve::listen(address, setting)?);
    }
    if let Ok(listener) = serve::listen(dashboard::ADDRESS, setting) {
        return Ok(listener);
    }
    let free = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    Ok(serve::listen(free, setting)?)
}

fn not_kafka() -> Failure {
    Failure::Other("the configuration of the demo does not name Kafka".into())
}

fn mock_failed(error: rdkafka::error::KafkaError) -> Failure {
    Failure::Other(format!("the mock broker failed: {error}"))
}

fn stop_at_end(stop: &StopRequest, result: Result<(), Failure>) -> Result<(), Failure> {
    stop.request_stop();
    result
}

/// Sends waiting times with two modes that drift over time.
fn send_simulated(broker: &Broker, topic: &str, stop: &StopRequest) -> Result<(), Failure> {
    let producer: ThreadedProducer<DefaultProducerContext> = broker
        .client_config()
        .and_then(|config| config.create())
        .map_err(simulation_failed)?;
    let mut random = ChaCha12Rng::seed_from_u64(2017);
    let started = Instant::now();
    let mut partition = 0;
    while !stop.is_requested() {
        let drift = (started.elapsed().as_secs_f64() / 12.0).sin();
        let quick = Gamma::new(6.0, 0.8 + 0.2 * drift).map_err(simulation_failed)?;
        let slow = LogNormal::new(2.75 + 0.15 * drift, 0.2).map_err(simulation_failed)?;
        let now = Timestamp::now().micros();
        let counters: Vec<&str> = (0..ROWS)
            .map(|_| {
                if random.random_bool(0.6) {
                    "north"
                } else {
                    "south"
                }
            })
            .collect();
        let minutes: Vec<f64> = counters
            .iter()
            .map(|counter| {
                let share = if *counter == "north" { 0.8 } else { 0.4 };
                if random.random_bool(share) {
                    quick.sample(&mut random)
                } else {
                    slow.sample(&mut random)
                }
            })
            .collect();
        let columns: [(&str, ArrayRef); 3] = [
            (
                "time",
                Arc::new(TimestampMicrosecondArray::from(vec![now; ROWS]).with_timezone("UTC")),
            ),
            ("counter", Arc::new(StringArray::from(counters))),
            ("minutes", Arc::new(Float64Array::from(minutes))),
        ];
        let batch = RecordBatch::try_from_iter(columns).map_err(simulation_failed)?;
        let payload = ipc_stream(&batch).map_err(simulation_failed)?;
        let record = BaseRecord::<(), _>::to(topic)
            .partition(partition)
            .payload(&payload);
        producer
            .send(record)
            .map_err(|(error, _)| simulation_failed(error))?;
        partition = 1 - partition;
        stop.sleep_or_stop(PACE);
    }
    producer
        .flush(Duration::from_secs(1))
        .map_err(simulation_failed)
}

fn simulation_failed(error: impl Display) -> Failure {
    Failure::Other(format!("the simulation failed: {error}"))
}

/// Reads synopses like any consumer, and draws them; `last` is how many, without it until it is to stop.
fn show_synopses(
    broker: &Broker,
    topic: &str,
    last: Option<u64>,
    stop: &StopRequest,
) -> Result<(), Failure> {
    let consumer = broker
        .consumer(&[("group.id", "demo"), ("enable.auto.commit", "false")])
        .map_err(unreadable)?;
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning)
        .map_err(unreadable)?;
    consumer.assign(&list).map_err(unreadable)?;
    let mut shown = 0;
    while !stop.is_requested() {
        let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) else {
            continue;
        };
        let synopsis =
            Synopsis::decode_message(message.payload().unwrap_or_default()).map_err(unreadable)?;
        shown += 1;
        print(match synopsis.description().target {
            TargetDescription::Counts(_) => list_counts(&synopsis),
            _ => draw_curve(&synopsis).map_err(unreadable)?,
        })?;
        // All synopses of a window are published before those of the next window.
        if last.is_some_and(|last| shown >= last) {
            break;
        }
    }
    Ok(())
}

fn unreadable(error: impl Display) -> Failure {
    Failure::Other(format!("the synopses cannot be read: {error}"))
}

/// A table in the terminal: a row for each counter.
fn list_counts(synopsis: &Synopsis) -> String {
    let description = synopsis.description();
    let Ok(table) = synopsis.key_table() else {
        return String::new();
    };
    format!(
        "customers and their mean waiting time, {} to {}, each with its 95 % interval\n\n{}\n\n",
        description.window.start,
        description.window.end,
        key_rows::rows_in_words(&table, &table.rows(), None)
    )
}

/// A synopsis in the terminal: its curve, its number of records and its price.
fn draw_curve(synopsis: &Synopsis) -> Result<String, synopsis::SynopsisError> {
    let description = synopsis.description();
    let evaluator = synopsis.evaluator(description.order)?;
    let [axis] = &description.domain[..] else {
        return Ok(String::new());
    };
    let points: Vec<ChartPoint> = (0..COLUMNS)
        .map(|column| {
            let x = axis.min + (axis.max - axis.min) * f64::from(column) / f64::from(COLUMNS - 1);
            Ok(ChartPoint {
                x,
                value: evaluator.evaluate(&[x])?,
                half_width: synopsis.half_width(&[x])?,
            })
        })
        .collect::<Result<_, synopsis::SynopsisError>>()?;
    Ok(format!(
        "counter {}, {} to {}: about {:.0} records\nprivacy: epsilon = {} for each record; a record lies in one window, so it pays once\n\n\
         customers per minute of waiting time\n{}{:>width$}\n\n\n",
        description.key.as_deref().unwrap_or("all"),
        description.window.start,
        description.window.end,
        evaluator.total_mass(),
        description.privacy.price,
        chart::draw_curve(&points, LINES),
        format!("{} waited", axis.column),
        width = COLUMNS as usize + 12,
    ))
}
