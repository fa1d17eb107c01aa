//! The plan of a worker: every variant in which a window can be released.

use std::sync::Arc;

use super::announced_keys::PlannedKeySearch;
use super::price_schedule::PriceSchedule;
use super::publication::Publication;
use super::series::NoiseSeries;
use bernstream_noise::Exact;
use bernstream_noise::noise::Generator;
use bernstream_noise::order::OrderChoice;
use bernstream_noise::{Mechanism, Noisy};
use bernstream_release::choice::{Bandwidth, Candidates};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_release::window::{ReleaseInput, WindowRules};
use bernstream_release::{Dequantized, Target, ValueScaling};
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::{Description, Panes, PanesKind};
use bernstream_synopsis::grid::{Blocks, Span};
use bernstream_synopsis::price::Price;

/// The releases of a worker, and their prices. All of it is public.
#[derive(Clone, Debug)]
pub struct ReleasePlan {
    pub rules: WindowRules,
    /// The privacy blocks: a release charges every block that its window overlaps.
    pub blocks: Blocks,
    /// Never empty. A window pays for all of them or for none.
    pub releases: Vec<PlannedRelease>,
    /// The privacy budget of a block.
    pub total: Price,
    /// The part of the budget that ordinary windows may spend: nothing spends the rest.
    pub limit: Price,
    pub publication: Publication,
}

/// One function that is released for every window and key.
#[derive(Clone, Debug)]
pub struct PlannedRelease {
    pub form: ReleaseInput,
    /// The private choice of a bandwidth, if any: it selects one of `variants` for each window and key.
    pub bandwidth: Option<Bandwidth>,
    pub variants: Candidates<ReleaseVariant>,
    /// The price of each window, choices included, for every block that it overlaps.
    pub price_schedule: PriceSchedule,
    /// Correlated noise, for running sums over several panes. The price is then that of a pane.
    pub series: Option<NoiseSeries>,
    /// The search for keys that nobody listed; `None` where its keys are listed.
    pub key_search: Option<PlannedKeySearch>,
}

/// One of the ways in which a window and key can be released.
#[derive(Clone, Debug)]
pub struct ReleaseVariant {
    pub target: Arc<dyn Target>,
    pub mechanism: Mechanism,
    /// The sensitivity in the norm of the noise, and how many values a unit can change: another price is calibrated with
    /// them.
    pub change: Sensitivity,
    pub touched: usize,
    pub scaling: ValueScaling,
    /// The private choice of an order, if any: it selects one of `descriptions`.
    pub order: Option<OrderChoice>,
    /// The description of a synopsis, but for what differs from window to window.
    pub descriptions: Candidates<Description>,
}

impl ReleasePlan {
    /// The most multiplications that a window can take, all releases and keys together.
    pub fn most_products_per_window(&self) -> u64 {
        let keys = self.rules.keys.as_ref().map_or(1, |keys| keys.len() as u64);
        let mut products: u64 = 0;
        for release in &self.releases {
            // Counts by key are computed once for all keys.
            let times = match release.form.accumulator {
                AccumulatorSpec::Keys(_) | AccumulatorSpec::FoundKeys(_) => 1,
                _ => keys,
            };
            products = products.saturating_add(release.most_products().saturating_mul(times));
        }
        products
    }

    /// The span that a release covers when `window` closes, no earlier than `first`.
    pub(super) fn span_of(&self, release: &PlannedRelease, window: Span, first: Timestamp) -> Span {
        let start = self.rules.grid.start_before(window, release.form.panes - 1);
        Span {
            start: start.max(first),
            end: window.end,
        }
    }
}

impl PlannedRelease {
    /// The multiplications of its most expensive variant, for one key.
    fn most_products(&self) -> u64 {
        let products = self
            .variants
            .iter()
            .map(|variant| variant.target.cost().products);
        products.max().unwrap_or(0)
    }

    /// The place of the variant that the private choice selects, or of the only one.
    pub(super) fn choose_variant(&self, state: &Accumulator, generator: &mut Generator) -> usize {
        match &self.bandwidth {
            Some(bandwidth) => bandwidth.choose_candidate(state, generator),
            None => 0,
        }
    }

    /// The panes that a synopsis names if the function is evaluated afresh on several of them.
    pub(super) fn described_panes(&self, newest: Span) -> Option<Panes> {
        if self.form.panes <= 1 {
            return None;
        }
        Some(Panes {
            over: PanesKind::Hopping(self.form.panes),
            newest,
            step: None,
        })
    }

    /// A description that holds for what all variants and windows have in common.
    pub fn description(&self) -> &Description {
        self.variants.first().descriptions.first()
    }
}

impl ReleaseVariant {
    /// The description of the order that the private choice selects, or the only one.
    pub(super) fn chosen_description(
        &self,
        exact: &Exact,
        generator: &mut Generator,
    ) -> &Description {
        let chosen = match &self.order {
            Some(order) => order.choose_order(exact, generator),
            None => 0,
        };
        self.descriptions.get(chosen)
    }

    /// Noisy values in natural units.
    pub fn dequantize(&self, noisy: &Noisy) -> Dequantized {
        Dequantized::from_noisy(noisy, &*self.target, self.scaling)
    }
}
