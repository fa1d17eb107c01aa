//! Released synopses, read from a topic or a folder as any consumer can: a cache of the newest, with a notification for each new
//! one. It needs no access to records or to the ledger.

mod error;
pub mod folder;
mod live;
mod stop_flag;
mod synopsis_cache;
pub mod topic;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use self::error::FeedError;
pub use self::live::Feed;
use self::stop_flag::StopFlag;
pub(crate) use self::synopsis_cache::SynopsisSeries;
pub use self::synopsis_cache::{
    CachedSynopsis, FeedConnection, FeedCursor, FeedEvent, UnreadableMessage,
};

/// The pause before a retry.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Where synopses are read from.
#[derive(Clone, Debug)]
pub enum FeedOrigin {
    Topic(topic::FeedTopicParams),
    Folder(PathBuf),
}

impl FeedOrigin {
    /// Checks that the topic or folder exists. An unreachable broker is no error: the feed waits for it.
    ///
    /// # Errors
    ///
    /// If the topic or folder does not exist, or the broker refuses the request.
    pub fn check_exists(&self) -> Result<(), FeedError> {
        match self {
            FeedOrigin::Topic(params) => match topic::check_topic(params) {
                Err(error) if !error.is_transient() => Err(error.into()),
                _ => Ok(()),
            },
            FeedOrigin::Folder(path) => folder::check_folder(path),
        }
    }
}

impl fmt::Display for FeedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeedOrigin::Topic(params) => write!(f, "topic {}", params.topic),
            FeedOrigin::Folder(path) => write!(f, "folder {}", path.display()),
        }
    }
}

/// The reading thread; it ends when this is dropped.
#[derive(Debug)]
pub struct FeedReader {
    stop: StopFlag,
    thread: Option<JoinHandle<()>>,
}

/// Starts a thread that reads until the returned handle is dropped. It reports failures to the feed and retries.
///
/// # Errors
///
/// If the thread cannot be started.
pub fn follow_origin(origin: FeedOrigin, feed: Arc<Feed>) -> io::Result<FeedReader> {
    let stop = StopFlag::default();
    let until = stop.clone();
    let thread = thread::Builder::new()
        .name("feed".to_owned())
        .spawn(move || read_until(&origin, &feed, &until))?;
    Ok(FeedReader {
        stop,
        thread: Some(thread),
    })
}

fn read_until(origin: &FeedOrigin, feed: &Feed, stop: &StopFlag) {
    while !stop.is_set() {
        let read = match origin {
            FeedOrigin::Topic(params) => {
                topic::follow_topic(params, feed, stop).map_err(FeedError::from)
            }
            FeedOrigin::Folder(path) => folder::follow_folder(path, feed, stop),
        };
        if let Err(error) = read {
            feed.set_disconnected(error.to_string());
            stop.wait(RETRY_PAUSE);
        }
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}
