//! What a worker carries out: every way in which a window can be released.

use std::sync::Arc;
use std::time::Duration;

use super::price::PriceSchedule;
use super::series::NoiseSeries;
use crate::clock::Timestamp;
use crate::mechanism::choice::{self, Candidates};
use crate::mechanism::noise::Generator;
use crate::mechanism::price::Price;
use crate::mechanism::{Mechanism, Noisy};
use crate::synopsis::description::{Description, Panes, WindowKind};
use crate::targets::{Basis, Exact, Sensitivity, Target};
use crate::window::accumulator::Accumulator;
use crate::window::grid::{Blocks, Span};
use crate::window::{Form, Rules};

/// What is released, and for what price. All of it is public.
#[derive(Clone, Debug)]
pub struct Plan {
    pub rules: Rules,
    /// The privacy blocks: a release charges every block that its window meets.
    pub blocks: Blocks,
    /// Never empty. A window pays for all of them or for none.
    pub releases: Vec<Release>,
    /// What a block may spend in all.
    pub total: Price,
    /// What of it ordinary windows may spend: the rest is a reserve for corrections.
    pub limit: Price,
    pub publication: Publication,
}

/// One function that is released of every window and key.
#[derive(Clone, Debug)]
pub struct Release {
    pub form: Form,
    /// The private choice of a bandwidth, where there is one: it says which of `variants` a window and key takes.
    pub bandwidth: Option<choice::Bandwidth>,
    pub variants: Candidates<ReleaseVariant>,
    /// The price of each window, choices and all, for every block that it meets.
    pub price_schedule: PriceSchedule,
    /// For sums over several panes: what they share, and how their noise goes on. The price is that of a pane.
    pub series: Option<NoiseSeries>,
}

/// How a window and key can be released.
#[derive(Clone, Debug)]
pub struct ReleaseVariant {
    pub target: Arc<dyn Target>,
    pub mechanism: Mechanism,
    /// What a unit can change, in the norm of the noise, and in how many values: what another price is calibrated with.
    pub change: Sensitivity,
    pub touched: usize,
    /// The natural values of one grid unit and of none.
    pub unit: f64,
    pub offset: f64,
    /// The private choice of an order, where there is one: it says which of `descriptions` holds.
    pub order: Option<choice::Order>,
    /// The description of a synopsis, but for what differs from window to window.
    pub descriptions: Candidates<Description>,
}

impl Plan {
    /// The most multiplications that a window can take, all releases and keys together.
    pub fn longest(&self) -> u64 {
        let one = |release: &Release| {
            release.variants.iter().map(|variant| variant.target.cost().products).max().unwrap_or(0)
        };
        let all = self.releases.iter().map(one).fold(0, u64::saturating_add);
        all.saturating_mul(self.rules.keys.as_ref().map_or(1, |keys| keys.len() as u64))
    }

    /// The span that a release of the window that starts at `window` speaks of, no earlier than `first`.
    pub(super) fn span_of(&self, release: &Release, window: Span, first: Timestamp) -> Span {
        let start = self.rules.grid.before(window, release.form.panes - 1);
        Span { start: start.max(first), end: window.end }
    }
}

impl Release {
    /// The way that the records choose, or the only one.
    pub(super) fn variant<'w>(
        &self,
        variants: &'w Candidates<ReleaseVariant>,
        state: &Accumulator,
        generator: &mut Generator,
    ) -> &'w ReleaseVariant {
        variants.get(self.bandwidth.as_ref().map_or(0, |choice| choice.choose(state, generator)))
    }

    /// What a synopsis says where the function is evaluated on several windows anew.
    pub(super) fn panes(&self, newest: Span) -> Option<Panes> {
        let over = WindowKind::Hopping(self.form.panes);
        (self.form.panes > 1).then_some(Panes { over, newest, step: None })
    }

    /// What every way and window has in common stands in any description.
    pub fn description(&self) -> &Description {
        self.variants.first().descriptions.first()
    }
}

impl ReleaseVariant {
    /// The description of the order that the values choose, or of the only one.
    pub(super) fn description(&self, exact: &Exact, generator: &mut Generator) -> &Description {
        self.descriptions.get(self.order.as_ref().map_or(0, |choice| choice.choose(exact, generator)))
    }

    /// Noisy values in natural units.
    #[expect(clippy::cast_precision_loss, reason = "already private: rounding is post-processing")]
    pub fn dequantize(&self, noisy: &Noisy) -> Vec<f64> {
        let scaled = noisy.values().iter().map(|value| *value as f64 * self.unit).collect();
        let published = self.target.publish(scaled);
        match self.target.shape().basis {
            // No coefficients of kernel functions add up to a constant: the description has it.
            Basis::Kernel(_) => published,
            _ => published.into_iter().map(|value| self.offset + value).collect(),
        }
    }
}

/// When a window is due on the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publication {
    /// So long after its cutoff.
    AfterCutoff(Duration),
    /// Files have no cutoff: what is written as the time is the window's own end.
    AtWindowEnd,
}

impl Publication {
    /// When the synopses of a window are due.
    pub(super) fn due(self, window: Span, cutoff: Timestamp) -> Timestamp {
        match self {
            Publication::AfterCutoff(delay) => cutoff.plus(delay),
            Publication::AtWindowEnd => window.end,
        }
    }

    /// How many windows that start at `until` or later are due by `now`: by the clock alone. Files have no such schedule.
    pub(super) fn due_after(
        self,
        rules: &Rules,
        until: Timestamp,
        backfill_until: Option<Timestamp>,
        now: Timestamp,
    ) -> u64 {
        let Publication::AfterCutoff(delay) = self else { return 0 };
        let cutoff = now.minus(delay);
        if backfill_until.is_some_and(|backfill| cutoff < backfill) {
            return 0;
        }
        let end = cutoff.minus(rules.allowed_lateness);
        let end = rules.end.map_or(end, |last| end.min(last));
        rules.grid.count(until, end)
    }
}
