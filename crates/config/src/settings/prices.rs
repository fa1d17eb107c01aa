//! The prices of windows: of one release, of all releases, and over time.

use crate::settings::gaussian_limits::{MOST_DRAWN, touched_values};
use crate::settings::release::ReleaseSettings;
use crate::settings::worker::WorkerSettings;
use bernstream_synopsis::description::PrivacyDefinition;
use bernstream_synopsis::price::Price;
use bernstream_worker::pipeline::PriceSchedule;

impl WorkerSettings {
    /// The total charge of a block that is one window, for every release that covers it; `None` if the budget cannot pay it.
    pub fn total_window_price(&self) -> Option<Price> {
        let mut sum = self.privacy.total.zero_of_kind();
        for release in &self.releases {
            let price = release.policy.window_price(0)?;
            let mut of_release = price.zero_of_kind();
            for _ in 0..release.panes_charged() {
                of_release = of_release.checked_add(price)?;
            }
            sum = sum.checked_add(of_release)?;
        }
        sum.is_within(self.privacy.spendable_limit()).then_some(sum)
    }

    /// The price of the first window, over all releases.
    pub fn window_price(&self) -> Price {
        let total = self.privacy.total;
        let mut sum = total.zero_of_kind();
        for release in &self.releases {
            if let Some(price) = release.policy.window_price(0) {
                // A file whose sum does not fit into its total has a fault.
                sum = sum.checked_add(price).unwrap_or(total);
            }
        }
        sum
    }

    /// The prices of all windows of a release.
    pub fn price_schedule(&self, release: &ReleaseSettings) -> PriceSchedule {
        let choices = release
            .choice_prices()
            .fold(self.privacy.total.zero_of_kind(), Price::with_pure);
        let policy = release.policy;
        let limit = self.privacy.spendable_limit();
        let mut over = None;
        if !release.has_fixed_price() {
            over = policy.paid_windows(limit, None, |price| {
                self.buys_noise(release, price.checked_sub(choices))
            });
        }
        let mut drawn_out = self.noise_limit_window();
        if let Some(most) = drawn_out
            && release.has_fixed_price()
            && policy.paid_windows(limit, Some(most), |_| true).is_some()
        {
            // A fixed price is spent before, and needs no other end.
            drawn_out = None;
        }
        PriceSchedule {
            policy,
            choices,
            over: over.into_iter().chain(drawn_out).min(),
        }
    }

    /// Returns whether a price buys noise for every function of a release.
    fn buys_noise(&self, release: &ReleaseSettings, price: Option<Price>) -> bool {
        let Some(price) = price else {
            return false;
        };
        let functions = release.candidate_functions();
        functions
            .iter()
            .all(|function| self.mechanism_at(release, function, price).is_ok())
    }

    /// The number of the first window of a block for which all noise together would exceed
    /// [`DRAWN`](crate::settings::DRAWN).
    pub fn noise_limit_window(&self) -> Option<u64> {
        if self.privacy.definition != PrivacyDefinition::Gaussian {
            return None;
        }
        let values = self
            .releases
            .iter()
            .map(|release| release.shape().value_count());
        Some(MOST_DRAWN / touched_values(&self.privacy, values))
    }
}
