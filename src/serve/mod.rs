//! HTTP: `/metrics`, `/healthz` and `/readyz` of a worker, and the dashboard of a [`crate::feed::Feed`].

mod api;
mod api_error;
mod connection_limiter;
pub mod dashboard;
mod events;
mod page;
mod parameters;
pub mod probes;
mod spending;
mod state;
mod table;

use std::net::{SocketAddr, TcpListener};

use axum::Router;

use self::connection_limiter::{ConnectionLimiter, Limits};

/// Why the HTTP server cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address}: {source}; change {setting}")]
    Listen { address: SocketAddr, setting: &'static str, source: std::io::Error },
    #[error("the HTTP server stopped: {0}")]
    Stopped(std::io::Error),
}

/// Binds the address of the setting `setting`, before anything else starts.
///
/// # Errors
///
/// If the address cannot be bound.
pub fn listen(address: SocketAddr, setting: &'static str) -> Result<TcpListener, Error> {
    let listen = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(|source| Error::Listen { address, setting, source })
}

/// Serves within `limits`, until the process ends.
async fn serve(listener: TcpListener, limits: Limits, routes: Router) -> Result<(), Error> {
    let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Stopped)?;
    axum::serve(ConnectionLimiter::new(listener, limits), routes).await.map_err(Error::Stopped)
}
