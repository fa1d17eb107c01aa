//! What is served over HTTP: `/metrics`, `/healthz` and `/readyz` of a worker, and the dashboard of a [`crate::feed::Feed`].

mod api;
pub mod dashboard;
mod door;
mod events;
mod page;
pub mod probes;
mod table;

use std::net::{SocketAddr, TcpListener};

use axum::Router;

use self::door::Door;

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address}: {source}; change {setting}")]
    Listen { address: SocketAddr, setting: &'static str, source: std::io::Error },
    #[error("serving stopped: {0}")]
    Stopped(std::io::Error),
}

/// Takes the address that `setting` names, so that a wrong one is an error before anything starts.
pub fn listen(address: SocketAddr, setting: &'static str) -> Result<TcpListener, Error> {
    let listen = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(|source| Error::Listen { address, setting, source })
}

/// Serves `most` connections at a time, until the process ends.
async fn serve(listener: TcpListener, most: usize, routes: Router) -> Result<(), Error> {
    let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Stopped)?;
    axum::serve(Door::new(listener, most), routes).await.map_err(Error::Stopped)
}
