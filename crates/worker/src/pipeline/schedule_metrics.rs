//! The metrics that follow from the schedule alone.

use std::time::Duration;

use super::plan::ReleasePlan;
use super::publication::Publication;
use crate::metrics::Metrics;
use bernstream_ledger::Ledger;
use bernstream_noise::accountant::policy::window_number;
use bernstream_synopsis::clock::Timestamp;

impl ReleasePlan {
    /// Shows what the schedule says about the window that ended at `until`, or about the first one.
    pub(super) fn show_schedule(&self, until: Timestamp, ledger: &Ledger, metrics: &Metrics) {
        let first = ledger.genesis().first;
        let backfill_until = ledger.genesis().backfill_until;
        let window = self
            .rules
            .grid
            .span_of(until.minus(Duration::from_micros(1)).max(first));
        // A share of an input's total ends with a block: what its newest block cannot pay for comes before that.
        let share_ends = ledger
            .until()
            .filter(|share_ends| self.rules.end.is_none_or(|end| *share_ends < end));
        metrics.lasts_until.set_time(
            self.lasts_until(window, first)
                .into_iter()
                .chain(share_ends)
                .min(),
        );
        metrics
            .next_release
            .set_time(self.next_release(until, backfill_until));
        let block = self.blocks.span_of(window.start);
        for release in &self.releases {
            let price = release.price_schedule.price_of_window(window_number(
                self.rules.grid,
                block,
                first,
                window,
            ));
            metrics.show_price(
                &release.description().release,
                price.unwrap_or(self.total.zero_of_kind()),
            );
            // A release that is over keeps showing its last scale.
            let variants = price.and_then(|price| release.variants_at(price).ok());
            if let Some(scale) =
                variants.map(|variants| variants.first().descriptions.first().noise.scale)
            {
                metrics
                    .noise_scale
                    .with_label_values(&[&release.description().release])
                    .set(scale);
            }
        }
    }

    /// The time at which the first window after `until` is due; `None` for files, which have no schedule, and after the last window.
    fn next_release(
        &self,
        until: Timestamp,
        backfill_until: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let window = self.rules.grid.span_of(until);
        let is_over = self.rules.end.is_some_and(|end| window.end > end);
        let has_schedule = matches!(self.publication, Publication::AfterCutoff(_));
        (has_schedule && !is_over).then(|| {
            self.publication
                .due_time(window, self.rules.window_cutoff(window, backfill_until))
        })
    }
}
