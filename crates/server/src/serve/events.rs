//! Server-sent events: first the cached synopses, then new ones as they arrive. Each client reads at its own pace: a slow one
//! misses what has left the cache, and does not delay the others.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::api_error::ApiError;
use super::state::ServerState;
use crate::feed::{Feed, FeedCursor, FeedEvent};
use bernstream_synopsis::clock::Timestamp;

/// Interval at which a comment is sent, which keeps the connection open and shows the page that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// When a browser that lost the connection reconnects.
const RETRY: Duration = Duration::from_secs(1);

pub async fn stream_events(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    let Ok(permit) = state.streams.clone().try_acquire_owned() else {
        let why = ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many pages are open: close some",
        );
        // Whoever is refused keeps no place.
        return ([(CONNECTION, "close")], why).into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let cursor = match last {
        Some(id) => cursor_after(&state.feed, id),
        None => FeedCursor::default(),
    };
    let events = EventStream {
        changes: state.feed.subscribe_changes(),
        waiting: VecDeque::from([hello_event(&state.feed, cursor)]),
        feed: state.feed,
        cursor,
        _permit: permit,
    };
    let events = stream::unfold(events, async |events| {
        events
            .next_event()
            .await
            .map(|(event, rest)| (Ok::<_, Infallible>(event), rest))
    });
    // Asks proxies not to buffer the stream.
    (
        [("x-accel-buffering", "no")],
        Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("beat")),
    )
        .into_response()
}

/// Where a reconnecting browser resumes; at the beginning if its last event came from another feed.
fn cursor_after(feed: &Feed, id: &str) -> FeedCursor {
    let number = id
        .strip_prefix(feed.instance())
        .and_then(|rest| rest.strip_prefix('-')?.parse().ok());
    match number {
        Some(number) => FeedCursor::after(number),
        None => FeedCursor::default(),
    }
}

fn hello_event(feed: &Feed, cursor: FeedCursor) -> sse::Event {
    let hello = json!({
        "now": Timestamp::now(),
        "version": env!("CARGO_PKG_VERSION"),
        "source": feed.origin(),
        "history": feed.remaining_after(cursor),
    });
    sse::Event::default()
        .event("hello")
        .retry(RETRY)
        .data(hello.to_string())
}

struct EventStream {
    feed: Arc<Feed>,
    cursor: FeedCursor,
    changes: watch::Receiver<()>,
    waiting: VecDeque<sse::Event>,
    _permit: OwnedSemaphorePermit,
}

impl EventStream {
    async fn next_event(mut self) -> Option<(sse::Event, Self)> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some((event, self));
            }
            // Before reading the feed, so that a change in between is not missed.
            self.changes.mark_unchanged();
            let (events, cursor) = self.feed.events_since(self.cursor);
            self.cursor = cursor;
            self.waiting
                .extend(events.iter().map(|event| sse_event(&self.feed, event)));
            if self.waiting.is_empty() {
                self.changes.changed().await.ok()?;
            }
        }
    }
}

fn sse_event(feed: &Feed, event: &FeedEvent) -> sse::Event {
    let instance = feed.instance();
    let written = sse::Event::default();
    match event {
        FeedEvent::Synopsis(number, kept) => written
            .event("synopsis")
            .id(format!("{instance}-{number}"))
            .data(&kept.json),
        FeedEvent::Unreadable(number, what) => written
            .event("unreadable")
            .id(format!("{instance}-{number}"))
            .data(json!(**what).to_string()),
        FeedEvent::Source(connection) => {
            written.event("source").data(json!(connection).to_string())
        }
    }
}
