//! The prices of windows: of one release, of all releases, and over time.

use crate::settings::gaussian_limits::{MOST_DRAWN, touched};
use crate::settings::release::Release;
use crate::settings::windowing::WindowKind;
use crate::settings::worker::Settings;
use bernstream_noise::accountant::policy::Policy;
use bernstream_synopsis::description::Definition;
use bernstream_synopsis::price::Price;
use bernstream_worker::pipeline::PriceSchedule;

impl Settings {
    /// The total charge of a block that is one window, for every release that covers it; `None` if the budget cannot pay it.
    pub fn price_in_all(&self) -> Option<Price> {
        let paid = |release: &Release| {
            let price = release.policy.price(0)?;
            let times = match release.window_kind {
                WindowKind::Hopping { panes } if !release.is_sum_of_panes() => panes,
                _ => 1,
            };
            (0..times).try_fold(price.zero(), |sum, _| sum.checked_add(price))
        };
        let all = self
            .releases
            .iter()
            .map(paid)
            .try_fold(self.privacy.total.zero(), |sum, price| {
                sum.checked_add(price?)
            });
        all.filter(|sum| sum.is_within(self.privacy.limit()))
    }

    /// The price of the first window, over all releases.
    pub fn window_price(&self) -> Price {
        let prices = self
            .releases
            .iter()
            .filter_map(|release| release.policy.price(0));
        // A file whose sum does not fit into its total has a fault.
        prices.fold(self.privacy.total.zero(), |sum, price| {
            sum.checked_add(price).unwrap_or(self.privacy.total)
        })
    }

    /// The prices of all windows of a release.
    pub fn price_schedule(&self, release: &Release) -> PriceSchedule {
        let choices = release
            .choice_prices()
            .fold(self.privacy.total.zero(), Price::with_pure);
        let over = match release.policy {
            Policy::Fixed(_) => None,
            policy => policy.lasts(self.privacy.limit(), None, |price| {
                let own = price.checked_sub(choices);
                own.is_some_and(|own| {
                    release
                        .functions()
                        .iter()
                        .all(|function| self.mechanism_at(release, function, own).is_ok())
                })
            }),
        };
        // Where a fixed price is spent before, it needs no other end.
        let drawn_out = self.drawn_out().filter(|most| match release.policy {
            Policy::Fixed(_) => release
                .policy
                .lasts(self.privacy.limit(), Some(*most), |_| true)
                .is_none(),
            _ => true,
        });
        PriceSchedule {
            policy: release.policy,
            choices,
            over: over.into_iter().chain(drawn_out).min(),
        }
    }

    /// The number of the first window of a block for which all noise together would exceed
    /// [`DRAWN`](crate::settings::DRAWN).
    pub fn drawn_out(&self) -> Option<u64> {
        let values = self.releases.iter().map(|release| release.shape().values());
        (self.privacy.definition == Definition::Gaussian)
            .then(|| MOST_DRAWN / touched(&self.privacy, values))
    }
}
