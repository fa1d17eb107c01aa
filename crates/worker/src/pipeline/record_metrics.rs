//! Metrics of reading.

use super::ReaderTask;
use bernstream_release::source::Batch;
use bernstream_release::window::RecordCounts;

impl ReaderTask<'_> {
    pub(super) fn count_records(&mut self, mut counts: RecordCounts, batch: &Batch) {
        // How many there are shows something of the records: not at the default level, and in no log.
        let Some(operator) = &self.metrics.operator else {
            return;
        };
        let is_new = self
            .recorded
            .ends
            .0
            .get(&batch.partition)
            .is_none_or(|end| batch.offset >= *end);
        if counts.closed > 0 && is_new {
            counts.set_behind(self.windows.count_behind(batch));
            self.status.count_behind(counts.behind);
        }
        self.status.count_late(counts.late);
        operator.batches.inc();
        operator.read_until.set_time(batch.message_time);
        for column in batch.found.iter().flat_map(|found| found.unread_columns()) {
            operator.unread.with_label_values(&[column.name()]).inc();
        }
        for (fate, count) in counts.by_name() {
            operator.records.with_label_values(&[fate]).inc_by(count);
        }
    }
}
