//! A ledger that another program holds, such as a backup or a database shell. The worker waits, as for a broker that is down:
//! nothing is lost, and to end would help nobody.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tracing::warn;

use bernstream_ledger::{Ledger, LedgerError};
use bernstream_synopsis::clock::Reminder;
use bernstream_worker::pipeline::{Health, StopRequest};

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);
/// Time for which somebody holds the ledger before that is told. The commands of this program hold it for milliseconds.
const LONG: Duration = Duration::from_secs(10);

/// Has the worker wait for as long as its ledger is held, alive and not ready.
///
/// # Errors
///
/// If the ledger cannot be used.
pub fn wait_while_held(
    ledger: &mut Ledger,
    health: &Arc<Health>,
    stop: &StopRequest,
) -> Result<(), LedgerError> {
    let health = health.clone();
    let stop = stop.clone();
    let mut since = Instant::now();
    let mut reminder = Reminder::default();
    ledger.wait_with(move |tries| {
        if tries == 0 {
            since = Instant::now();
            reminder = Reminder::default();
        }
        if since.elapsed() > LONG && reminder.is_due(Instant::now()) {
            warn!(
                "another program has held the ledger's file for {} s, and nothing can be paid for or published meanwhile; no \
                 command of bernstream does that: look for a backup or a database tool (`fuser` on the file lists who has it \
                 open) and end it; waiting for it",
                since.elapsed().as_secs()
            );
        }
        // Neither loop hangs: the one that reads may wait for the one that writes.
        health.record_heartbeat();
        thread::sleep(PAUSE);
        !stop.is_requested()
    })
}
