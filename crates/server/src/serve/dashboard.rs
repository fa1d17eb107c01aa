//! The dashboard: the page, a stream of synopses for it, and an API for programs. It answers GET only, sets no cookies, loads
//! nothing from other sites, and shows released synopses and nothing else.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Semaphore;

use super::api_error::ApiError;
use super::connection_limiter::ConnectionLimits;
use super::state::ServerState;
use super::{ServeError, api, events, page};
use crate::feed::Feed;

const LIMITS: ConnectionLimits = ConnectionLimits {
    of: "the dashboard",
    connections: 300,
    eighths: 3,
    // Computations wait for each other.
    first_answer: Duration::from_secs(30),
    next_answer: Duration::from_secs(60),
};
/// Concurrent computations. More of them wait; other requests do not.
const MAX_COMPUTATIONS: usize = 2;

/// On every response. Text injected into the page could neither run nor be sent to another site.
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

/// Serves until the process ends.
///
/// # Errors
///
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    hosts: Arc<[String]>,
    feed: Arc<Feed>,
) -> Result<(), ServeError> {
    let limits = LIMITS.within_open_files();
    // The others are for those who ask for something else.
    let streams = limits.connections * 2 / 3;
    super::serve_routes(listener, limits, &hosts, dashboard_routes(feed, streams)).await
}

fn dashboard_routes(feed: Arc<Feed>, streams: usize) -> Router {
    let state = ServerState {
        feed,
        streams: Arc::new(Semaphore::new(streams)),
        computations: Arc::new(Semaphore::new(MAX_COMPUTATIONS)),
    };
    let pages = page::FILES.iter().fold(Router::new(), |routes, file| {
        let prepared = file.prepare_response();
        routes.route(
            file.path,
            get(async move |request: HeaderMap| prepared.clone().answer_request(&request)),
        )
    });
    pages
        .route("/api/v1/events", get(events::stream_events))
        .route("/api/v1/synopses", get(api::list_synopses))
        .route("/api/v1/synopses/latest", get(api::latest_synopsis))
        .route("/api/v1/curve", get(api::answer_curve))
        .route("/api/v1/history", get(api::answer_history))
        .route("/api/v1/keys", get(api::answer_keys))
        .route("/api/v1/caps", get(api::answer_caps))
        .route("/api/v1/query", get(api::answer_query))
        .route("/api/v1/spending", get(api::answer_spending))
        .fallback(async || ApiError::new(StatusCode::NOT_FOUND, "there is nothing here"))
        .method_not_allowed_fallback(async || {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered")
        })
        .with_state(state)
        .layer(map_response(add_headers))
        .layer(from_fn(refuse_cross_site))
}

/// Other sites may link to the page, but scripts of other sites may not call the API.
async fn refuse_cross_site(request: Request, next: Next) -> Response {
    let is_cross_site = request
        .headers()
        .get("sec-fetch-site")
        .is_some_and(|site| site == "cross-site");
    if is_cross_site && request.uri().path().starts_with("/api/") {
        return ApiError::new(
            StatusCode::FORBIDDEN,
            "requests from other sites are refused: open the page itself",
        )
        .into_response();
    }
    next.run(request).await
}

async fn add_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}
