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

use super::ServeError;
use super::connection_limiter::ConnectionLimits;
use bernstream_worker::metrics::Metrics;
use bernstream_worker::pipeline::Health;
use bernstream_worker::scale::AbsorberPulse;

/// A connection has one answer, which is ready at once: only its request takes time.
const LIMITS: ConnectionLimits = ConnectionLimits {
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
) -> Result<(), ServeError> {
    let routes = Router::new()
        .route("/metrics", get(answer_metrics))
        .route("/healthz", get(worker_live))
        .route("/readyz", get(worker_ready))
        .with_state(WorkerState { metrics, health })
        .layer(map_response(end_connection));
    super::serve_routes(listener, LIMITS.within_open_files(), &hosts, routes).await
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
    pulse: Arc<AbsorberPulse>,
) -> Result<(), ServeError> {
    let routes = Router::new()
        .route("/healthz", get(absorber_live))
        .route("/readyz", get(absorber_ready))
        .with_state(pulse)
        .layer(map_response(end_connection));
    super::serve_routes(listener, LIMITS.within_open_files(), &hosts, routes).await
}

async fn absorber_live(State(pulse): State<Arc<AbsorberPulse>>) -> Response {
    if pulse.is_alive() {
        "alive\n".into_response()
    } else {
        unavailable_response("the absorber hangs\n")
    }
}

async fn absorber_ready(State(pulse): State<Arc<AbsorberPulse>>) -> Response {
    if pulse.is_ready() {
        "ready\n".into_response()
    } else {
        unavailable_response("not ready: reading the input\n")
    }
}

fn unavailable_response(why: impl IntoResponse) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

/// Whoever was answered keeps no place.
async fn end_connection(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn answer_metrics(State(state): State<WorkerState>) -> impl IntoResponse {
    state.health.show_parts(&state.metrics);
    match state.metrics.render_text() {
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
async fn worker_live(State(state): State<WorkerState>) -> Response {
    if state.health.is_alive() {
        "alive\n".into_response()
    } else {
        unavailable_response("a loop of the worker hangs\n")
    }
}

/// Ready once every part has worked. Names what is missing, never a lag or an offset.
async fn worker_ready(State(state): State<WorkerState>) -> Response {
    let missing = state.health.missing_tasks();
    if missing.is_empty() {
        format!("ready{}\n", state.health.readiness_remark()).into_response()
    } else {
        unavailable_response(format!("not ready: {}\n", missing.join(", ")))
    }
}
