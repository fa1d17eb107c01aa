//! What the windows of a release cost, one after the other, and until when that lasts. All of it is public.

use std::borrow::Cow;
use std::time::Duration;

use super::plan::{Plan, Publication, Release, ReleaseVariant};
use crate::accountant::policy::{Policy, number};
use crate::accountant::{self, Charged};
use crate::clock::Timestamp;
use crate::ledger::Genesis;
use crate::mechanism::choice::Candidates;
use crate::mechanism::price::Price;
use crate::mechanism::{self, Mechanism};
use crate::metrics::{Metrics, Withheld};
use crate::window::grid::Span;

/// What a release pays for its windows, choices and all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceSchedule {
    pub policy: Policy,
    /// What of every price pays for private choices, and not for the function's noise.
    pub choices: Price,
    /// The number of the first window of a block that is not released: nothing is left for it, or so little that its noise
    /// could not be drawn. A fixed price has none: there the budget decides.
    pub over: Option<u64>,
}

impl PriceSchedule {
    /// What window `n` of a block costs; `None` where the release is over.
    pub fn price(&self, n: u64) -> Option<Price> {
        if self.over.is_some_and(|over| n >= over) { None } else { self.policy.price(n) }
    }
}

impl Plan {
    /// What each release costs in `window`, `spans` being what they speak of; `None` where one is over.
    pub(super) fn prices(&self, window: Span, spans: &[Span], first: Timestamp) -> Vec<Option<Price>> {
        let price = |(release, span): (&Release, &Span)| {
            // The largest number of the blocks that it meets is that of the first: policies never rise.
            let block = self.blocks.span_of(span.start);
            release.price_schedule.price(number(self.rules.grid, block, first, window))
        };
        self.releases.iter().zip(spans).map(price).collect()
    }

    /// What a window costs each block that one of its releases meets, `spans` what they speak of; nothing where a block
    /// cannot pay, or where every release is over.
    pub(super) fn quote(
        &self,
        spans: &[Span],
        prices: &[Option<Price>],
        spent: impl Fn(Span) -> Price,
    ) -> Option<Vec<Charged>> {
        let of_releases = spans
            .iter()
            .zip(prices)
            .filter_map(|(span, price)| Some((span, (*price)?)))
            .flat_map(|(span, price)| self.blocks.spans_meeting(*span).map(move |block| (block, price)));
        let quoted = accountant::quote(of_releases, spent, self.limit).ok()?;
        (!quoted.is_empty()).then_some(quoted)
    }

    /// The start of the first window in the block of `window` of which a release is not paid for; `None` where all are. By the
    /// schedule alone: `first` is the first window of the ledger.
    pub fn lasts_until(&self, window: Span, first: Timestamp) -> Option<Timestamp> {
        let block = self.blocks.span_of(window.start);
        let fixed = self.releases.iter().filter_map(|release| match release.price_schedule.policy {
            Policy::Fixed(price) => Some(price),
            Policy::Horizon { .. } | Policy::Decaying { .. } => None,
        });
        let is_fixed = self.releases.iter().all(|release| release.price_schedule.over.is_none());
        // Beside a policy the fixed prices are set aside for the whole block.
        let paid = match fixed.reduce(|sum, price| sum.checked_add(price).unwrap_or(self.total)) {
            Some(price) if is_fixed => Policy::Fixed(price).lasts(self.limit, None, |_| true),
            _ => self.releases.iter().filter_map(|release| release.price_schedule.over).min(),
        }?;
        let grid = self.rules.grid;
        let length = i64::try_from(grid.length().as_micros()).unwrap_or(i64::MAX);
        let begin = grid.span_of(block.start).start.max(first);
        let until = i64::try_from(paid).ok().and_then(|paid| begin.micros().checked_add(paid.checked_mul(length)?))?;
        let until = Timestamp::from_micros(until);
        (until < block.end && self.rules.end.is_none_or(|end| until < end)).then_some(until)
    }
}

impl Plan {
    /// Shows what the schedule alone says of the window that ended at `until`, or of the first.
    pub(super) fn show(&self, until: Timestamp, ledger: &Genesis, metrics: &Metrics) {
        let first = ledger.first;
        let window = self.rules.grid.span_of(until.minus(Duration::from_micros(1)).max(first));
        metrics.lasts_until.set(self.lasts_until(window, first));
        metrics.next_release.set(self.next_release(until, ledger.backfill_until));
        let block = self.blocks.span_of(window.start);
        for release in &self.releases {
            let price = release.price_schedule.price(number(self.rules.grid, block, first, window));
            // One that is over shows its last.
            let variants = price.and_then(|price| release.variants_at(price).ok());
            if let Some(scale) = variants.map(|variants| variants.first().descriptions.first().noise.scale) {
                metrics.noise_scale.with_label_values(&[&release.description().release]).set(scale);
            }
        }
    }
}

impl Plan {
    /// When the first window after `until` is due. Files have no schedule, and after the last window nothing comes.
    fn next_release(&self, until: Timestamp, backfill_until: Option<Timestamp>) -> Option<Timestamp> {
        let window = self.rules.grid.span_of(until);
        let is_over = self.rules.end.is_some_and(|end| window.end > end);
        let has_schedule = matches!(self.publication, Publication::AfterCutoff(_));
        (has_schedule && !is_over).then(|| self.publication.due(window, self.rules.cutoff(window, backfill_until)))
    }

    /// Why a window was not paid for, `first` being the first that a release speaks of.
    pub(super) fn why_withheld(&self, window: Span, first: Timestamp, began: Timestamp) -> Withheld {
        let spans: Vec<Span> = self.releases.iter().map(|release| self.span_of(release, window, first)).collect();
        let is_over = self.prices(window, &spans, began).iter().all(Option::is_none);
        if is_over { Withheld::Over } else { Withheld::Budget }
    }
}

impl Release {
    /// How a window that costs `price` is released.
    pub(super) fn variants_at(&self, price: Price) -> Result<Cow<'_, Candidates<ReleaseVariant>>, mechanism::Error> {
        match self.price_schedule.policy {
            Policy::Fixed(_) | Policy::Horizon { .. } => Ok(Cow::Borrowed(&self.variants)),
            Policy::Decaying { .. } => {
                let own = price.checked_sub(self.price_schedule.choices).ok_or(mechanism::Error::NoPrice)?;
                self.variants.try_map(|variant| variant.at(price, own)).map(Cow::Owned)
            }
        }
    }
}

impl ReleaseVariant {
    /// The same for a window that costs `price`, `own` of it for the noise. The bands grow with the scale of the noise.
    #[expect(clippy::cast_precision_loss, reason = "a scale to show; the noise itself is drawn from the integer")]
    fn at(&self, price: Price, own: Price) -> Result<ReleaseVariant, mechanism::Error> {
        let mechanism = Mechanism::calibrated(self.mechanism.law(), self.change, self.touched, own)?;
        let factor = mechanism.scale().units() as f64 / self.mechanism.scale().units() as f64;
        let descriptions = self.descriptions.try_map(|description| {
            let mut description = description.clone().at_scale(factor);
            description.privacy.price = price;
            Ok::<_, mechanism::Error>(description)
        })?;
        let order = self.order.as_ref().map(|order| order.at_scale(factor));
        Ok(ReleaseVariant { mechanism, order, descriptions, ..self.clone() })
    }
}
