//! `/metrics`, `/healthz` and `/readyz`.

use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;

use super::Error;
use crate::metrics::Metrics;
use crate::pipeline::Health;

/// Concurrent connections.
const MAX_CONNECTIONS: usize = 64;

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
pub async fn serve(listener: TcpListener, metrics: Metrics, health: Arc<Health>) -> Result<(), Error> {
    let routes = Router::new()
        .route("/metrics", get(scrape))
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .with_state(WorkerState { metrics, health });
    super::serve(listener, MAX_CONNECTIONS, routes).await
}

async fn scrape(State(state): State<WorkerState>) -> impl IntoResponse {
    state.health.show(&state.metrics);
    match state.metrics.render() {
        Ok(text) => (StatusCode::OK, [("content-type", "text/plain; version=0.0.4")], text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, [("content-type", "text/plain")], error.to_string()),
    }
}

/// Alive while the loops run: an unreachable broker must not restart the worker.
async fn live(State(state): State<WorkerState>) -> impl IntoResponse {
    if state.health.is_alive() {
        (StatusCode::OK, "alive\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "a loop of the worker hangs\n")
    }
}

/// Ready once every part has worked. Names what is missing, never a lag or an offset.
async fn ready(State(state): State<WorkerState>) -> impl IntoResponse {
    let missing = state.health.missing();
    if missing.is_empty() {
        (StatusCode::OK, format!("ready{}\n", state.health.remark()))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", missing.join(", ")))
    }
}
