//! The step from the readers' shares of a window to the window.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use super::health::ReaderHealth;
use super::publication::Publication;
use super::stop::StopRequest;
use bernstream_release::window::{Window, WindowPart};
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;

/// The pause of a reader that is ahead of another one, before it looks again.
const HANDOVER_PAUSE: Duration = Duration::from_millis(5);

/// A window with all its records, and the end of its input.
pub(super) struct JoinedWindow {
    pub window: Window,
    pub ends: Positions,
    pub publish_at: Timestamp,
}

/// A reader's share of a window, and the ends of its partitions there.
pub(super) struct PartialWindow {
    pub part: WindowPart,
    pub ends: Positions,
    pub cutoff: Timestamp,
}

/// The end of a reader: hands over its share of one window after another.
pub(super) struct WindowHandover(SyncSender<PartialWindow>);

impl WindowHandover {
    /// Waits until there is room: a reader is at most one window ahead of what is joined, so that its memory is bounded. `false` if
    /// nobody will take it any more.
    pub fn send_part(
        &self,
        share: PartialWindow,
        health: &ReaderHealth,
        stop: &StopRequest,
    ) -> bool {
        let mut share = share;
        while !stop.is_requested() {
            health.record_heartbeat();
            share = match self.0.try_send(share) {
                Ok(()) => return true,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(back)) => back,
            };
            stop.sleep_or_stop(HANDOVER_PAUSE);
        }
        false
    }
}

/// The end where the shares of all readers come together.
pub(super) struct PartialMerger<'a> {
    publication: &'a Publication,
    readers: Vec<Receiver<PartialWindow>>,
}

impl<'a> PartialMerger<'a> {
    pub fn new(publication: &'a Publication) -> Self {
        PartialMerger {
            publication,
            readers: Vec::new(),
        }
    }

    /// The handover of one more reader.
    pub fn add_reader(&mut self) -> WindowHandover {
        let (sender, receiver) = sync_channel(1);
        self.readers.push(receiver);
        WindowHandover(sender)
    }

    /// The next window, once every reader has read its share of it; `None` as soon as one of them has ended.
    pub fn next_window(&self) -> Option<JoinedWindow> {
        let (first, others) = self.readers.split_first()?;
        let PartialWindow {
            mut part,
            mut ends,
            cutoff,
        } = first.recv().ok()?;
        for reader in others {
            // All of them take the windows of one grid in order, so that this is a share of the same one.
            let share = reader.recv().ok()?;
            part.join_part(share.part);
            // No two readers have a partition in common.
            ends.0.extend(share.ends.0);
        }
        let window = part.into_window();
        let publish_at = self.publication.due_time(window.span, cutoff);
        Some(JoinedWindow {
            window,
            ends,
            publish_at,
        })
    }
}
