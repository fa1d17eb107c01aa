//! What the log, the metrics and the probes say of reading.

use std::sync::atomic::Ordering::Relaxed;

use tracing::{info, warn};

use super::Reading;
use crate::source::Batch;
use crate::window::RecordCounts;

impl Reading<'_> {
    /// Tells what can happen any number of times, now and then.
    pub(super) fn tell(&mut self) {
        match self.skipped.due() {
            Some((1, why)) => warn!("{why}; it is skipped"),
            Some((count, why)) => warn!("{count} more broken messages were skipped; the last: {why}"),
            None => {}
        }
        if let Some((count, _)) = self.behind.due() {
            warn!(
                "{count} records turned up behind the end of their window, although they were stamped before its cutoff, and are \
                 in no synopsis: replicas lag, or clocks of brokers differ, by more than clock_slack"
            );
        }
    }

    pub(super) fn is_reading(&mut self) {
        // One broker of several may go on sending while another cannot be reached.
        if !self.source.is_connected() {
            self.health.reading.store(false, Relaxed);
            if self.outage.fails() {
                warn!("the brokers of the input cannot be reached; waiting for them");
            }
        } else if !self.is_stuck {
            self.health.reading.store(true, Relaxed);
            if self.outage.works(|| self.all.is_reading()) {
                info!("reading the input");
            }
        }
    }

    pub(super) fn count(&mut self, mut counts: RecordCounts, batch: &Batch) {
        // How many there are shows something of the records: not at the default level, and in no log.
        let Some(operator) = &self.metrics.operator else { return };
        let is_new = self.recorded.0.get(&batch.partition).is_none_or(|end| batch.offset >= *end);
        if counts.closed > 0 && is_new {
            counts.set_behind(self.windows.behind(batch));
            self.behind.add(counts.behind, String::new());
        }
        operator.batches.inc();
        operator.read_until.set(batch.message_time);
        for (fate, count) in counts.by_name() {
            operator.records.with_label_values(&[fate]).inc_by(count);
        }
    }
}
