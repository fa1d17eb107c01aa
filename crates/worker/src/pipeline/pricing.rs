//! Prices of windows for each block, how long a budget lasts, and how a window of a given price is released. All of it is
//! public.

use std::borrow::Cow;

use super::plan::{PlannedRelease, ReleasePlan, ReleaseVariant};
use super::terms::{LedgerBeginning, QuotedRelease};
use crate::metrics::WithheldReason;
use bernstream_noise as mechanism;
use bernstream_noise::Mechanism;
use bernstream_noise::accountant;
use bernstream_noise::accountant::ChargedBlock;
use bernstream_noise::accountant::policy::{PricePolicy, window_number};
use bernstream_release::choice::Candidates;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

impl ReleasePlan {
    /// The span and the price of each release in `window`.
    pub(super) fn quote_releases(
        &self,
        window: Span,
        beginning: LedgerBeginning,
    ) -> Vec<QuotedRelease> {
        let mut quoted = Vec::new();
        for release in &self.releases {
            let span = self.span_of(release, window, beginning.first_covered);
            // Of the overlapped blocks the first gives the largest number: policies never rise.
            let block = self.blocks.span_of(span.start);
            let number = window_number(self.rules.grid, block, beginning.first_window, window);
            quoted.push(QuotedRelease {
                span,
                price: release.price_schedule.price_of_window(number),
            });
        }
        quoted
    }

    /// The charge of a window to each block that one of its releases overlaps; `None` if a block cannot pay, or if every release is over.
    pub(super) fn quote_blocks(
        &self,
        releases: &[QuotedRelease],
        spent: impl Fn(Span) -> Price,
    ) -> Option<Vec<ChargedBlock>> {
        let mut of_releases = Vec::new();
        for release in releases {
            let Some(price) = release.price else { continue };
            of_releases.extend(
                self.blocks
                    .spans_meeting(release.span)
                    .map(|block| (block, price)),
            );
        }
        let quoted = accountant::quote_window(of_releases, spent, self.limit).ok()?;
        (!quoted.is_empty()).then_some(quoted)
    }

    /// The reason why a window was not paid for.
    pub(super) fn why_withheld(&self, window: Span, beginning: LedgerBeginning) -> WithheldReason {
        let is_over = self
            .quote_releases(window, beginning)
            .iter()
            .all(|release| release.price.is_none());
        if is_over {
            WithheldReason::Over
        } else {
            WithheldReason::Budget
        }
    }

    /// The start of the first window in the block of `window` that leaves a release unpaid; `None` if all are paid for. By
    /// the schedule alone: `first` is the first window of the ledger.
    pub fn lasts_until(&self, window: Span, first: Timestamp) -> Option<Timestamp> {
        let block = self.blocks.span_of(window.start);
        let fixed =
            self.releases
                .iter()
                .filter_map(|release| match release.price_schedule.policy {
                    PricePolicy::Fixed(price) => Some(price),
                    PricePolicy::Horizon { .. } | PricePolicy::Decaying { .. } => None,
                });
        let is_fixed = self
            .releases
            .iter()
            .all(|release| release.price_schedule.over.is_none());
        // Beside a policy the fixed prices are set aside for the whole block.
        let paid = match fixed.reduce(|sum, price| sum.checked_add(price).unwrap_or(self.total)) {
            Some(price) if is_fixed => {
                PricePolicy::Fixed(price).paid_windows(self.limit, None, |_| true)
            }
            _ => self
                .releases
                .iter()
                .filter_map(|release| release.price_schedule.over)
                .min(),
        }?;
        let grid = self.rules.grid;
        let length = i64::try_from(grid.length().as_micros()).unwrap_or(i64::MAX);
        let begin = grid.span_of(block.start).start.max(first);
        let until = i64::try_from(paid)
            .ok()
            .and_then(|paid| begin.micros().checked_add(paid.checked_mul(length)?))?;
        let until = Timestamp::from_micros(until);
        (until < block.end && self.rules.end.is_none_or(|end| until < end)).then_some(until)
    }
}

impl PlannedRelease {
    /// The variants of a window that costs `price`.
    ///
    /// # Errors
    ///
    /// If the price is too low for the noise to be drawn.
    pub fn variants_at(
        &self,
        price: Price,
    ) -> Result<Cow<'_, Candidates<ReleaseVariant>>, mechanism::NoiseError> {
        match self.price_schedule.policy {
            PricePolicy::Fixed(_) | PricePolicy::Horizon { .. } => {
                Ok(Cow::Borrowed(&self.variants))
            }
            PricePolicy::Decaying { .. } => {
                let own = price
                    .checked_sub(self.price_schedule.choices)
                    .ok_or(mechanism::NoiseError::NoPrice)?;
                self.variants
                    .try_map(|variant| variant.at_price(price, own))
                    .map(Cow::Owned)
            }
        }
    }
}

impl ReleaseVariant {
    /// The variant for a window that costs `price`, of which `own` pays for the noise. The bands scale with the noise.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a scale to show; the noise itself is drawn from the integer"
    )]
    fn at_price(&self, price: Price, own: Price) -> Result<ReleaseVariant, mechanism::NoiseError> {
        let mechanism = Mechanism::calibrated(
            self.mechanism.distribution(),
            self.change,
            self.touched,
            own,
        )?;
        let factor = mechanism.scale().units() as f64 / self.mechanism.scale().units() as f64;
        let descriptions = self.descriptions.try_map(|description| {
            let mut description = description.clone().at_scale(factor);
            description.privacy.price = price;
            Ok::<_, mechanism::NoiseError>(description)
        })?;
        let order = self.order.as_ref().map(|order| order.at_scale(factor));
        Ok(ReleaseVariant {
            mechanism,
            order,
            descriptions,
            ..self.clone()
        })
    }
}
