//! Released synopses as anybody can read them, from a topic or a folder: the newest are kept, and whoever looks is told of
//! each new one. Needs no right to a record or to the ledger.

pub mod folder;
mod shelf;
pub mod topic;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tracing::{info, warn};

use self::shelf::Shelf;
pub use self::shelf::{Connection, Cursor, Event, Kept, Unreadable};
use crate::clock::Timestamp;
use crate::kafka;
use crate::synopsis::Synopsis;
use crate::synopsis::description::Description;

/// How long to wait before what failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How much later than now a synopsis may say that it is published.
const AHEAD: Duration = Duration::from_secs(3600);
/// Characters of what is told about a message that cannot be read; it may have put them there itself.
const TOLD: usize = 300;

/// Where synopses are read.
#[derive(Clone, Debug)]
pub enum Origin {
    Topic(topic::Params),
    Folder(PathBuf),
}

impl Origin {
    /// An error where it is not there; a broker that is down is no error, for it is waited for.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Origin::Topic(params) => match topic::check(params) {
                Err(error) if !error.is_transient() => Err(error.into()),
                _ => Ok(()),
            },
            Origin::Folder(path) => folder::check(path),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Topic(params) => write!(f, "topic {}", params.topic),
            Origin::Folder(path) => write!(f, "folder {}", path.display()),
        }
    }
}

/// Why synopses cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Topic(#[from] kafka::Error),
    #[error("there is no folder {path}: the worker makes it with its first synopsis")]
    NoFolder { path: PathBuf },
    #[error(transparent)]
    Folder(#[from] crate::sink::Error),
}

/// The newest synopses, shared between the thread that reads them and whoever looks at them. Nobody who looks holds up the
/// reading, or anybody else.
#[derive(Debug)]
pub struct Feed {
    origin: String,
    instance: String,
    shelf: Mutex<Shelf>,
    changed: watch::Sender<()>,
}

impl Feed {
    /// Empty, and not connected yet.
    pub fn new(origin: &Origin, now: Timestamp) -> Self {
        Feed {
            origin: origin.to_string(),
            instance: format!("{:x}{:x}", now.micros(), std::process::id()),
            shelf: Mutex::default(),
            changed: watch::Sender::default(),
        }
    }

    /// Where the synopses come from, in words.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Differs from feed to feed: the numbers of events mean nothing in another one.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Every synopsis that is kept, the newest window last.
    pub fn kept(&self) -> Vec<Arc<Kept>> {
        self.shelf().kept()
    }

    /// How many synopses lie after `cursor`.
    pub fn left(&self, cursor: Cursor) -> usize {
        self.shelf().left(cursor)
    }

    /// What has happened since `cursor`, oldest first, and where to go on. Not all at once.
    pub fn since(&self, cursor: Cursor) -> (Vec<Event>, Cursor) {
        self.shelf().since(cursor)
    }

    /// Tells when there is something new.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Takes a message. One that is no synopsis is told by its place; one that is kept already, or older than all that are
    /// kept of its key, is dropped.
    fn put(&self, place: impl FnOnce() -> String, bytes: &[u8]) {
        let read = Synopsis::open(bytes).and_then(|synopsis| Ok(Kept { json: synopsis.to_json()?, synopsis }));
        match read {
            // It would be the newest of its key for ever.
            Ok(kept) if is_ahead(kept.synopsis.description()) => {
                self.refuse(place(), "it comes from the future: its window or its publication".to_owned());
            }
            Ok(kept) => self.change(|shelf| shelf.add(kept)),
            Err(error) => self.refuse(place(), error.to_string()),
        }
    }

    fn refuse(&self, place: String, why: String) {
        let [place, why] = [place, why].map(|text| text.chars().take(TOLD).collect());
        self.change(|shelf| shelf.refuse(Unreadable { place, why }));
    }

    fn found(&self) {
        self.change(|shelf| {
            let is_new = shelf.connect(Connection { connected: true, why: None });
            if is_new {
                info!("reading synopses from {}", self.origin);
            }
            is_new
        });
    }

    /// `why` is for the log: it may name paths and users. Those who look are told in general.
    fn lost(&self, why: String) {
        self.change(|shelf| {
            let is_news = shelf.connection().connected || shelf.connection().why.is_none();
            if is_news {
                warn!("synopses cannot be read now: {why}; trying again");
            }
            let told = format!("{} cannot be read now; the log of this server says why", self.origin);
            shelf.connect(Connection { connected: false, why: Some(told) })
        });
    }

    fn change(&self, change: impl FnOnce(&mut Shelf) -> bool) {
        let is_changed = change(&mut self.shelf());
        if is_changed {
            self.changed.send_replace(());
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_ahead(about: &Description) -> bool {
    about.published.max(about.window.end) > Timestamp::now().plus(AHEAD)
}

/// Reads until this is dropped.
#[derive(Debug)]
pub struct Following {
    end: End,
    thread: Option<JoinHandle<()>>,
}

/// Starts to read in a thread of its own. Whatever fails is told to those who look, and tried again.
pub fn follow(origin: Origin, feed: Arc<Feed>) -> io::Result<Following> {
    let end = End::default();
    let until = end.clone();
    let read = move || {
        while !until.is_asked() {
            let read = match &origin {
                Origin::Topic(params) => topic::follow(params, &feed, &until).map_err(Error::from),
                Origin::Folder(path) => folder::follow(path, &feed, &until),
            };
            if let Err(error) = read {
                feed.lost(error.to_string());
                until.wait(RETRY);
            }
        }
    };
    let thread = thread::Builder::new().name("feed".to_owned()).spawn(read)?;
    Ok(Following { end, thread: Some(thread) })
}

impl Drop for Following {
    fn drop(&mut self) {
        self.end.0.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

/// The wish that the reading ends.
#[derive(Clone, Debug, Default)]
struct End(Arc<AtomicBool>);

impl End {
    fn is_asked(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Sleeps, or until the end is asked for. To be called by the reading thread.
    fn wait(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_asked() && Instant::now() < until {
            thread::park_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}
