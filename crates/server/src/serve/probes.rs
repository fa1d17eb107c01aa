//! `/metrics`, `/healthz` and `/readyz`.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::Error;
use super::connection_limiter::Limits;
use bernstream_worker::metrics::Metrics;
use bernstream_worker::pipeline::Health;
use bernstream_worker::scale::Pulse;

/// A connection has one answer, which is ready at once: only its request takes time.
const LIMITS: Limits = Limits {
    of: "serve.listen",
    connections: 64,
    eighths: 1,
    first_answer: Duration::from_secs(5),
    next_answer: Duration::from_secs(5),
};

#[derive(Clone)]
struct WorkerState {
    metrics: Metrics,
    health: Arc<Health>,
}

/// Serves until the process ends.
///
/// # Errors
///
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    hosts: Arc<[String]>,
    metrics: Metrics,
    health: Arc<Health>,
) -> Result<(), Error> {
    let routes = Router::new()
        .route("/metrics", get(scrape))
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .with_state(WorkerState { metrics, health })
        .layer(map_response(end_connection));
    super::serve(listener, LIMITS.here(), &hosts, routes).await
}

/// Serves `/healthz` and `/readyz` of an absorber until the process ends. It has no metrics: what an absorber has done is counted by the
/// worker.
///
/// # Errors
///
/// If the listener fails.
pub async fn serve_absorber(
    listener: TcpListener,
    hosts: Arc<[String]>,
    pulse: Arc<Pulse>,
) -> Result<(), Error> {
    let answer = |works, yes, no| {
        if works {
            (StatusCode::OK, yes)
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, no)
        }
    };
    let live = async move |State(pulse): State<Arc<Pulse>>| {
        answer(pulse.is_alive(), "alive\n", "the absorber hangs\n")
    };
    let ready = async move |State(pulse): State<Arc<Pulse>>| {
        answer(
            pulse.is_ready(),
            "ready\n",
            "not ready: reading the input\n",
        )
    };
    let routes = Router::new()
        .route("/healthz", get(live))
        .route("/readyz", get(ready));
    let routes = routes.with_state(pulse).layer(map_response(end_connection));
    super::serve(listener, LIMITS.here(), &hosts, routes).await
}

/// Whoever was answered keeps no place.
async fn end_connection(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn scrape(State(state): State<WorkerState>) -> impl IntoResponse {
    state.health.show(&state.metrics);
    match state.metrics.render() {
        Ok(text) => (
            StatusCode::OK,
            [("content-type", "text/plain; version=0.0.4")],
            text,
        ),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            [("content-type", "text/plain")],
            error.to_string(),
        ),
    }
}

/// Alive while the loops run: an unreachable broker must not restart the worker.
async fn live(State(state): State<WorkerState>) -> impl IntoResponse {
    if state.health.is_alive() {
        (StatusCode::OK, "alive\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "a loop of the worker hangs\n",
        )
    }
}

/// Ready once every part has worked. Names what is missing, never a lag or an offset.
async fn ready(State(state): State<WorkerState>) -> impl IntoResponse {
    let missing = state.health.missing();
    if missing.is_empty() {
        (StatusCode::OK, format!("ready{}\n", state.health.remark()))
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {}\n", missing.join(", ")),
        )
    }
}
