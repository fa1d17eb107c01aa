//! `dashboard`: released synopses in a browser.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::runtime::Runtime;
use tracing::error;

use crate::cli::cluster::Cluster;
use crate::cli::failure::Failure;
use crate::cli::print::line;
use crate::cli::runtime::{runtime, stop_on_signal};
use crate::clock::Timestamp;
use crate::feed::topic::{self, History};
use crate::feed::{self, Feed, FeedReader, Origin};
use crate::pipeline::Stop;
use crate::sink::{Location, Output};
use crate::{kafka, serve, telemetry};

/// Where the page is, if nobody says otherwise.
pub const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9465);

/// How far back a worker's own dashboard reads.
const HISTORY: History = History::Last(Duration::from_secs(7 * 24 * 3600));

/// Shows the synopses of a topic or folder in a browser, as they come.
///
/// It reads what everybody may read, and needs no right to records or ledger. The page is for all who can reach the address.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A folder of synopses, as a worker with `[output] files` writes it
    #[arg(required_unless_present = "topic", conflicts_with = "topic")]
    folder: Option<PathBuf>,
    /// A topic of synopses
    #[arg(long, requires = "brokers")]
    topic: Option<String>,
    #[command(flatten)]
    cluster: Option<Cluster>,
    /// Serve the page here
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = ADDRESS)]
    listen: SocketAddr,
    /// Show what was published so long ago too, such as 12h, or `all`; of a folder always the newest. Of each release and key
    /// the newest 60 are kept
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = history)]
    history: History,
}

fn history(text: &str) -> Result<History, String> {
    match text {
        "all" => Ok(History::All),
        text => humantime::parse_duration(text).map(History::Last).map_err(|error| error.to_string()),
    }
}

impl Arguments {
    fn origin(&self) -> Result<Origin, Failure> {
        match (&self.folder, &self.topic, &self.cluster) {
            (Some(folder), _, _) => Ok(Origin::Folder(folder.clone())),
            (None, Some(topic), Some(cluster)) => Ok(Origin::Topic(topic::Params {
                broker: cluster.broker()?,
                topic: topic.clone(),
                history: self.history,
            })),
            _ => Err(Failure::Configuration("name a folder, or a topic and its brokers".to_owned())),
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    telemetry::start();
    let origin = arguments.origin()?;
    let listener =
        serve::listen(arguments.listen, "--listen").map_err(|error| Failure::Unavailable(error.to_string()))?;
    origin.check().map_err(|error| match error {
        feed::Error::Topic(kafka::Error::NoTopic { topic, servers }) => {
            Failure::Unavailable(format!("there is no topic '{topic}' at {servers}; check its name"))
        }
        feed::Error::Topic(error) => error.into(),
        error => Failure::Unavailable(error.to_string()),
    })?;
    let stop = Stop::default();
    let runtime = runtime()?;
    stop_on_signal(&runtime, &stop);
    line(format_args!("dashboard of {origin}: {}", url(&listener)?))?;
    let _until_the_end = open(listener, origin, &runtime)?;
    while !stop.asked() {
        stop.wait(Duration::from_secs(60));
    }
    Ok(())
}

/// Where a browser finds it.
pub fn url(listener: &TcpListener) -> Result<String, Failure> {
    let address = listener.local_addr().map_err(|error| Failure::Other(format!("no address to serve at: {error}")))?;
    Ok(format!("http://{address}"))
}

/// What a worker has published.
pub fn origin(output: &Output) -> Origin {
    match output.location() {
        Location::Topic { broker, topic } => {
            Origin::Topic(topic::Params { broker: broker.clone(), topic: topic.to_owned(), history: HISTORY })
        }
        Location::Folder(path) => Origin::Folder(path.to_owned()),
    }
}

/// Reads and serves beside whatever else is done, until what this returns is dropped. Whatever fails later is told to those who
/// look at the page.
pub fn open(listener: TcpListener, origin: Origin, runtime: &Runtime) -> Result<FeedReader, Failure> {
    let feed = Arc::new(Feed::new(&origin, Timestamp::now()));
    let following = feed::follow(origin, feed.clone());
    runtime.spawn(async {
        if let Err(error) = serve::dashboard::serve(listener, feed).await {
            error!("the dashboard is gone: {error}");
        }
    });
    following.map_err(|error| Failure::Other(format!("no thread for the dashboard could be started: {error}")))
}
