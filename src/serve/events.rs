//! Server-sent events: what is kept, and then whatever comes. Each reader goes at its own pace and looks itself what is new:
//! a slow one misses what is no longer kept, and holds up nobody.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::api::Refusal;
use super::dashboard::Desk;
use crate::clock::Timestamp;
use crate::feed::{Cursor, Event, Feed};

/// A comment that often keeps the line open, and shows the page that it is.
const BEAT: Duration = Duration::from_secs(10);
/// When a browser that has lost the line comes back.
const RETRY: Duration = Duration::from_secs(1);

pub async fn stream(State(desk): State<Desk>, headers: HeaderMap) -> Response {
    let Ok(permit) = desk.readers.clone().try_acquire_owned() else {
        return Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open: close some").into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let cursor = last.map_or_else(Cursor::default, |id| cursor(&desk.feed, id));
    let reader = Reader {
        changes: desk.feed.changes(),
        waiting: VecDeque::from([hello(&desk.feed, cursor)]),
        feed: desk.feed,
        cursor,
        _permit: permit,
    };
    let events = stream::unfold(reader, async |reader| {
        reader.next().await.map(|(event, reader)| (Ok::<_, Infallible>(event), reader))
    });
    // Some proxies collect an answer before they pass it on; this asks them not to.
    ([("x-accel-buffering", "no")], Sse::new(events).keep_alive(KeepAlive::new().interval(BEAT).text("beat")))
        .into_response()
}

/// Where a browser that comes back has been; at the beginning, where it was shown another feed.
fn cursor(feed: &Feed, id: &str) -> Cursor {
    let number = id.strip_prefix(feed.instance()).and_then(|rest| rest.strip_prefix('-')?.parse().ok());
    number.map_or_else(Cursor::default, Cursor::after)
}

fn hello(feed: &Feed, cursor: Cursor) -> sse::Event {
    let hello = json!({
        "now": Timestamp::now(),
        "version": env!("CARGO_PKG_VERSION"),
        "source": feed.origin(),
        "history": feed.left(cursor),
    });
    sse::Event::default().event("hello").retry(RETRY).data(hello.to_string())
}

struct Reader {
    feed: Arc<Feed>,
    cursor: Cursor,
    changes: watch::Receiver<()>,
    waiting: VecDeque<sse::Event>,
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    async fn next(mut self) -> Option<(sse::Event, Self)> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some((event, self));
            }
            // Before looking, so that what comes in between is not slept through.
            self.changes.mark_unchanged();
            let (events, cursor) = self.feed.since(self.cursor);
            self.cursor = cursor;
            self.waiting.extend(events.iter().map(|event| written(&self.feed, event)));
            if self.waiting.is_empty() {
                self.changes.changed().await.ok()?;
            }
        }
    }
}

fn written(feed: &Feed, event: &Event) -> sse::Event {
    let id = |number: &u64| format!("{}-{number}", feed.instance());
    let new = |name| sse::Event::default().event(name);
    match event {
        Event::Synopsis(number, kept) => new("synopsis").id(id(number)).data(&kept.json),
        Event::Unreadable(number, what) => new("unreadable").id(id(number)).data(json!(**what).to_string()),
        Event::Source(connection) => new("source").data(json!(connection).to_string()),
    }
}
