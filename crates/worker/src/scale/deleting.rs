//! Deleting from the topic what belongs to accepted windows: nobody needs it any more, and it is as secret as the records.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use tracing::{info, warn};

use bernstream_kafka::{Broker, topic};
use bernstream_synopsis::Positions;

/// A thread that deletes, so that nobody waits for brokers that are down.
pub(super) struct DeletingThread(SyncSender<Positions>);

impl DeletingThread {
    pub fn start(broker: &Broker, name: &str) -> Self {
        let (sender, queue) = sync_channel::<Positions>(1);
        let broker = broker.clone();
        let name = name.to_owned();
        let log = tracing::dispatcher::get_default(tracing::Dispatch::clone);
        thread::spawn(move || {
            tracing::dispatcher::with_default(&log, || delete_queued(&broker, &name, queue))
        });
        DeletingThread(sender)
    }

    /// Deletes everything before, unless two deletions have not ended yet: then the next one will.
    pub fn delete_before(&self, positions: Positions) {
        let _ = self.0.try_send(positions);
    }
}

fn delete_queued(broker: &Broker, name: &str, queue: impl IntoIterator<Item = Positions>) {
    let mut is_failing = false;
    for before in queue {
        match topic::delete_before(broker, name, &before.0) {
            Ok(()) if std::mem::take(&mut is_failing) => {
                info!("deleting from topic '{name}' again")
            }
            Ok(()) => {}
            Err(error) if !std::mem::replace(&mut is_failing, true) => warn!(
                "what belongs to accepted windows cannot be deleted from topic '{name}', and stays there as long as its retention.ms \
                 says: {error}; the worker needs the permission to delete records of it"
            ),
            Err(_) => {}
        }
    }
}
