//! `dashboard`: released synopses in a browser.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::runtime::Runtime;
use tracing::{error, info, warn};

use crate::cli::cluster::Cluster;
use crate::cli::failure::Failure;
use crate::cli::print::line;
use crate::cli::runtime::{start_runtime, stop_on_signal};
use bernstream_config as config;
use bernstream_config::socket_address;
use bernstream_kafka as kafka;
use bernstream_kafka::sink::{OutputLocation, OutputParams, files};
use bernstream_server::feed;
use bernstream_server::feed::topic;
use bernstream_server::feed::topic::HistoryLength;
use bernstream_server::feed::{Feed, FeedOrigin, FeedReader};
use bernstream_server::serve;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::pipeline::StopRequest;
use bernstream_worker::telemetry;

/// The default address of the page.
pub const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9465);

/// The time back to which the dashboard of a worker reads.
const HISTORY: HistoryLength = HistoryLength::Last(Duration::from_secs(7 * 24 * 3600));

/// Shows the synopses of a topic or folder in a browser, as they arrive.
///
/// It reads only published synopses, and needs no access to records or ledger. Anyone who can reach the address can see the
/// page.
#[derive(Debug, Args)]
pub struct DashboardArguments {
    /// A folder of synopses, as a worker with `[output] files` writes it
    #[arg(required_unless_present = "topic", conflicts_with = "topic")]
    folder: Option<PathBuf>,
    /// A topic of synopses
    #[arg(long, requires = "brokers")]
    topic: Option<String>,
    #[command(flatten)]
    cluster: Option<Cluster>,
    /// The address of the page
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = ADDRESS, value_parser = socket_address)]
    listen: SocketAddr,
    /// A name by which browsers may ask for the page, beside localhost and addresses; may be given several times. With none, a page
    /// for this machine alone has no other, and any other page is answered by every name
    #[arg(long = "host", value_name = "NAME", value_parser = host)]
    hosts: Vec<String>,
    /// Also show synopses published this long ago, for example 12h, or `all`; a folder always shows its newest. The newest 60 of
    /// each release and key are kept
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = history)]
    history: HistoryLength,
}

fn history(text: &str) -> Result<HistoryLength, String> {
    match text {
        "all" => Ok(HistoryLength::All),
        text => humantime::parse_duration(text)
            .map(HistoryLength::Last)
            .map_err(|error| error.to_string()),
    }
}

fn host(name: &str) -> Result<String, String> {
    config::host(name)
        .map_err(|what| format!("{what}: write the name alone, such as dashboard.example.org"))
}

impl DashboardArguments {
    fn origin(&self) -> Result<FeedOrigin, Failure> {
        if let Some(folder) = &self.folder {
            return Ok(FeedOrigin::Folder(folder.clone()));
        }
        if let (Some(topic), Some(cluster)) = (&self.topic, &self.cluster) {
            return Ok(FeedOrigin::Topic(topic::FeedTopicParams {
                broker: cluster.broker()?,
                topic: topic.clone(),
                history: self.history,
            }));
        }
        Err(Failure::Configuration(
            "name a folder, or a topic and its brokers".to_owned(),
        ))
    }
}

/// Follows the output and serves the page until it is stopped.
///
/// # Errors
///
/// If the output or the address of the page is not available.
pub fn run(arguments: &DashboardArguments) -> Result<(), Failure> {
    telemetry::start_logging();
    let origin = arguments.origin()?;
    let listener = serve::listen(arguments.listen, "--listen")?;
    origin.check_exists().map_err(|error| match error {
        feed::FeedError::Topic(kafka::ClusterError::NoTopic { topic, servers }) => {
            Failure::Configuration(format!(
                "there is no topic '{topic}' at {servers}; check its name"
            ))
        }
        feed::FeedError::Topic(error) => error.into(),
        feed::FeedError::NotAFolder { .. } => Failure::Configuration(error.to_string()),
        error => Failure::Unavailable(error.to_string()),
    })?;
    let stop = StopRequest::default();
    let runtime = start_runtime()?;
    stop_on_signal(&runtime, &stop, || info!("stopping"));
    if let FeedOrigin::Folder(path) = &origin
        && files::synopses_below(path).is_ok_and(|found| found.is_empty())
    {
        warn!(
            "there is no synopsis in {} yet, nor in a folder in it: waiting for a worker that writes one",
            path.display()
        );
    }
    line(format_args!(
        "dashboard of {origin}: {}",
        page_url(&listener)?
    ))?;
    let _until_the_end = serve_dashboard(
        listener,
        arguments.hosts.as_slice().into(),
        origin,
        &runtime,
    )?;
    while !stop.is_requested() {
        stop.sleep_or_stop(Duration::from_secs(60));
    }
    Ok(())
}

/// The address for a browser.
///
/// # Errors
///
/// If the operating system does not name the address.
pub fn page_url(listener: &TcpListener) -> Result<String, Failure> {
    let address = listener
        .local_addr()
        .map_err(|error| Failure::Other(format!("the address of the page is unknown: {error}")))?;
    Ok(format!("http://{address}"))
}

/// The place where a worker's synopses can be followed.
pub fn origin_of_output(output: &OutputParams) -> FeedOrigin {
    match output.location() {
        OutputLocation::Topic { broker, topic } => FeedOrigin::Topic(topic::FeedTopicParams {
            broker: broker.clone(),
            topic: topic.to_owned(),
            history: HISTORY,
        }),
        OutputLocation::Folder(path) => FeedOrigin::Folder(path.to_owned()),
    }
}

/// Reads and serves in the background until the returned value is dropped. Later failures are shown on the page.
///
/// # Errors
///
/// If the thread cannot be started.
pub fn serve_dashboard(
    listener: TcpListener,
    hosts: Arc<[String]>,
    origin: FeedOrigin,
    runtime: &Runtime,
) -> Result<FeedReader, Failure> {
    let feed = Arc::new(Feed::new(&origin, Timestamp::now()));
    let following = feed::follow_origin(origin, feed.clone());
    runtime.spawn(async {
        if let Err(error) = serve::dashboard::serve(listener, hosts, feed).await {
            error!("the dashboard has failed: {error}");
        }
    });
    following.map_err(|error| {
        Failure::Other(format!(
            "the thread of the dashboard cannot be started: {error}"
        ))
    })
}
