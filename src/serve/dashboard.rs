//! The dashboard: the page, the synopses that it shows as they come, and the same as rows for other programs. GET only, no
//! cookies, nothing from elsewhere; released synopses and nothing else.

use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Semaphore;

use super::api::Refusal;
use super::{Error, api, events, page};
use crate::feed::Feed;

/// Connections at a time, and how many of them may be open event streams, of all browsers together: with those of the probes
/// far fewer than a process may usually have files open.
const CONNECTIONS: usize = 300;
const READERS: usize = 200;
/// Questions that are computed at a time: the others wait, and nothing else does.
const AT_A_TIME: usize = 2;

/// On every answer. A page that somebody smuggled something into could neither run it nor send anything anywhere.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-cache"),
];

/// What every answer needs.
#[derive(Clone)]
pub(super) struct Desk {
    pub feed: Arc<Feed>,
    pub readers: Arc<Semaphore>,
    pub work: Arc<Semaphore>,
}

/// Serves until the process ends.
pub async fn serve(listener: TcpListener, feed: Arc<Feed>) -> Result<(), Error> {
    super::serve(listener, CONNECTIONS, routes(feed)).await
}

fn routes(feed: Arc<Feed>) -> Router {
    let desk = Desk { feed, readers: Arc::new(Semaphore::new(READERS)), work: Arc::new(Semaphore::new(AT_A_TIME)) };
    let pages = page::FILES
        .iter()
        .fold(Router::new(), |routes, file| routes.route(file.path, get(move || async move { file })));
    pages
        .route("/api/v1/events", get(events::stream))
        .route("/api/v1/synopses", get(api::list))
        .route("/api/v1/synopses/latest", get(api::latest))
        .route("/api/v1/curve", get(api::curve))
        .route("/api/v1/history", get(api::history))
        .route("/api/v1/query", get(api::query))
        .fallback(async || Refusal::new(StatusCode::NOT_FOUND, "there is nothing here"))
        .method_not_allowed_fallback(async || Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered"))
        .with_state(desk)
        .layer(map_response(strict))
        .layer(from_fn(own))
}

/// Other sites in the same browser may link to the page; they may not make it compute.
async fn own(request: Request, next: Next) -> Response {
    let is_foreign = request.headers().get("sec-fetch-site").is_some_and(|site| site == "cross-site");
    if is_foreign && request.uri().path().starts_with("/api/") {
        return Refusal::new(StatusCode::FORBIDDEN, "another site asks: open the page itself").into_response();
    }
    next.run(request).await
}

async fn strict(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
