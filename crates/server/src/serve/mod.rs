//! HTTP: `/metrics`, `/healthz` and `/readyz` of a worker, and the dashboard of a [`crate::feed::Feed`].

mod api;
mod api_error;
mod connection_limiter;
pub mod dashboard;
mod descriptors;
mod events;
mod hosts;
mod key_rows;
mod page;
mod parameters;
pub mod probes;
mod spending;
mod state;
mod table;

use std::net::{SocketAddr, TcpListener};

use axum::Router;
use axum::middleware::from_fn_with_state;

use self::connection_limiter::{ConnectionLimiter, ConnectionLimits};
use self::hosts::{AllowedHosts, refuse_foreign};

/// Why the HTTP server cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}; change {setting}")]
    Listen {
        address: SocketAddr,
        setting: &'static str,
        source: std::io::Error,
    },
    #[error("the HTTP server stopped: {0}")]
    Stopped(std::io::Error),
}

/// Binds the address of the setting `setting`, before anything else starts.
///
/// # Errors
///
/// If the address cannot be bound.
pub fn listen(address: SocketAddr, setting: &'static str) -> Result<TcpListener, ServeError> {
    bind_nonblocking(address).map_err(|source| ServeError::Listen {
        address,
        setting,
        source,
    })
}

fn bind_nonblocking(address: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves within `limits` those who ask by an address, as `localhost` or by one of the names `hosts`, until the process ends.
async fn serve_routes(
    listener: TcpListener,
    limits: ConnectionLimits,
    hosts: &[String],
    routes: Router,
) -> Result<(), ServeError> {
    let listener = tokio::net::TcpListener::from_std(listener).map_err(ServeError::Stopped)?;
    let routes = match AllowedHosts::checked_names(
        listener.local_addr().map_err(ServeError::Stopped)?,
        hosts,
    ) {
        Some(hosts) => routes.layer(from_fn_with_state(hosts, refuse_foreign)),
        None => routes,
    };
    axum::serve(ConnectionLimiter::new(listener, limits), routes)
        .await
        .map_err(ServeError::Stopped)
}
