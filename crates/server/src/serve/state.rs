//! What the handlers of the dashboard share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::feed::Feed;

#[derive(Clone)]
pub(super) struct ServerState {
    pub feed: Arc<Feed>,
    /// One permit for each open event stream.
    pub streams: Arc<Semaphore>,
    /// One permit for each running computation.
    pub computations: Arc<Semaphore>,
}
