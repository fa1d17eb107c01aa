//! The feed as the reading thread and its subscribers share it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tracing::{info, warn};

use super::synopsis_cache::{
    CachedSynopsis, FeedConnection, FeedCursor, FeedEvent, SynopsisCache, UnreadableMessage,
};
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;

/// Longest time in the future that a synopsis may claim: by how much clocks of machines differ.
const MAX_FUTURE_SKEW: Duration = Duration::from_secs(60);
/// Longest text about an unreadable message, in characters; the text may quote the message.
const MAX_TEXT: usize = 300;

/// The newest synopses, shared between the thread that reads them and its subscribers. A slow subscriber delays neither the
/// reading thread nor other subscribers.
#[derive(Debug)]
pub struct Feed {
    origin: String,
    instance: String,
    cache: Mutex<SynopsisCache>,
    changed: watch::Sender<()>,
}

impl Feed {
    /// An empty feed that is not connected yet.
    pub fn new(origin: &impl std::fmt::Display, now: Timestamp) -> Self {
        Feed {
            origin: origin.to_string(),
            instance: format!("{:x}{:x}", now.micros(), std::process::id()),
            cache: Mutex::default(),
            changed: watch::Sender::default(),
        }
    }

    /// Where the synopses come from, as text.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Identifies this feed: event numbers of another one mean nothing here.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Every cached synopsis, the newest window last.
    pub fn synopses(&self) -> Vec<Arc<CachedSynopsis>> {
        self.lock_cache().synopses()
    }

    /// Number of synopses after `cursor`.
    pub fn remaining_after(&self, cursor: FeedCursor) -> usize {
        self.lock_cache().remaining_after(cursor)
    }

    /// The next events after `cursor`, oldest first, and the cursor after them; a few at a time.
    pub fn events_since(&self, cursor: FeedCursor) -> (Vec<FeedEvent>, FeedCursor) {
        self.lock_cache().events_since(cursor)
    }

    /// Notifies when there are new events.
    pub fn subscribe_changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Adds a message. One that is not a synopsis is reported with its place; a copy, and one older than everything cached for
    /// its key, are dropped.
    pub(super) fn add_message(&self, place: impl FnOnce() -> String, bytes: &[u8]) {
        let read = Synopsis::decode_message(bytes).and_then(|synopsis| {
            Ok(CachedSynopsis {
                json: synopsis.to_json()?,
                synopsis,
            })
        });
        match read {
            // It would stay the newest of its key until then.
            Ok(cached) if is_in_future(cached.synopsis.description()) => {
                self.reject_message(
                    place(),
                    "its window or its time of publication lies in the future".to_owned(),
                );
            }
            Ok(cached) => self.change_cache(|cache| cache.add_synopsis(cached)),
            Err(error) => self.reject_message(place(), error.to_string()),
        }
    }

    pub(super) fn reject_message(&self, place: String, why: String) {
        let place = place.chars().take(MAX_TEXT).collect();
        let why = why.chars().take(MAX_TEXT).collect();
        self.change_cache(|cache| cache.add_unreadable(UnreadableMessage { place, why }));
    }

    pub(super) fn set_connected(&self) {
        self.change_cache(|cache| {
            let is_new = cache.set_connection(FeedConnection {
                connected: true,
                why: None,
            });
            if is_new {
                info!("reading synopses from {}", self.origin);
            }
            is_new
        });
    }

    /// `why` goes to the log only, because it may name paths and users. Subscribers get a general message.
    pub(super) fn set_disconnected(&self, why: String) {
        self.change_cache(|cache| {
            let is_first = cache.connection().connected || cache.connection().why.is_none();
            if is_first {
                warn!("cannot read synopses: {why}; retrying");
            }
            let public = format!(
                "{} cannot be read; the log of this server has the reason",
                self.origin
            );
            cache.set_connection(FeedConnection {
                connected: false,
                why: Some(public),
            })
        });
    }

    fn change_cache(&self, change: impl FnOnce(&mut SynopsisCache) -> bool) {
        let is_changed = change(&mut self.lock_cache());
        if is_changed {
            self.changed.send_replace(());
        }
    }

    fn lock_cache(&self) -> MutexGuard<'_, SynopsisCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_in_future(about: &Description) -> bool {
    about.published.max(about.window.end) > Timestamp::now().plus(MAX_FUTURE_SKEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ahead_by_more_than_clocks_differ_does_not_become_the_newest() {
        let now = Timestamp::now();
        let feed = Feed::new(&"a topic", now);
        for (seconds, kept) in [(0, 1), (30, 2), (120, 2), (3000, 2)] {
            let mut about: Description =
                serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
            about.published = now.plus(Duration::from_secs(seconds));
            let bytes = Synopsis::new(about, vec![1.0, 2.0, 3.0])
                .unwrap()
                .encode()
                .unwrap()
                .bytes;
            feed.add_message(|| "here".to_owned(), &bytes);
            assert_eq!(feed.synopses().len(), kept, "{seconds} s ahead");
        }
        assert_eq!(
            feed.synopses()
                .last()
                .unwrap()
                .synopsis
                .description()
                .published,
            now.plus(Duration::from_secs(30))
        );
    }
}
