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

/// Connections at a time.
const CONNECTIONS: usize = 64;

#[derive(Clone)]
struct Shared {
    metrics: Metrics,
    health: Arc<Health>,
}

/// Serves until the process ends.
pub async fn serve(listener: TcpListener, metrics: Metrics, health: Arc<Health>) -> Result<(), Error> {
    let routes = Router::new()
        .route("/metrics", get(scrape))
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .with_state(Shared { metrics, health });
    super::serve(listener, CONNECTIONS, routes).await
}

async fn scrape(State(shared): State<Shared>) -> impl IntoResponse {
    shared.health.show(&shared.metrics);
    match shared.metrics.render() {
        Ok(text) => (StatusCode::OK, [("content-type", "text/plain; version=0.0.4")], text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, [("content-type", "text/plain")], error.to_string()),
    }
}

/// Alive while the loops turn: a broker that is down must not restart the worker.
async fn live(State(shared): State<Shared>) -> impl IntoResponse {
    if shared.health.is_alive() {
        (StatusCode::OK, "alive\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "a loop hangs\n")
    }
}

/// Ready once everything was seen to work. Says what is missing, never a lag or an offset.
async fn ready(State(shared): State<Shared>) -> impl IntoResponse {
    let missing = shared.health.missing();
    if missing.is_empty() {
        (StatusCode::OK, format!("ready{}\n", shared.health.remark()))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", missing.join(", ")))
    }
}
