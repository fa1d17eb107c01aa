//! One release: what is published of each window.

use crate::settings::calibration::Calibration;
use crate::settings::choice::{PrivateBandwidths, PrivateOrder};
use crate::settings::function::ReleasedFunction;
use crate::settings::noise::{Coordinates, NoiseKind};
use crate::settings::payment::Payment;
use crate::settings::selection::NoiseSelection;
use crate::settings::windowing::WindowKind;
use bernstream_noise::accountant::policy::PricePolicy;
use bernstream_release::choice::Candidates;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_release::window::{DomainAxis, RecordLabel};
use bernstream_synopsis::Shape;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::description::{PlotNames, Smoothness};
use bernstream_synopsis::price::Price;

/// One function that is published of each window.
#[derive(Clone, Debug)]
pub struct ReleaseSettings {
    pub name: String,
    pub window_kind: WindowKind,
    pub function: ReleasedFunction,
    /// The columns of the axes, then that of the label.
    pub columns: Vec<String>,
    pub axes: Vec<DomainAxis>,
    /// Public text that is written at its plots; in no digest.
    pub names: Option<PlotNames>,
    pub label: Option<RecordLabel>,
    /// The price of the noise in the first window.
    pub payment: Payment,
    /// The prices of all windows, private choices included.
    pub policy: PricePolicy,
    /// The order `h` of the iterated Bernstein operator.
    pub order: u32,
    pub noise: NoiseKind,
    /// The coordinates that the noise is added to, as asked for or chosen.
    pub on: Coordinates,
    pub calibration: Calibration,
    /// A public guess at the records of a window and key.
    pub expected_records: Option<u64>,
    /// The search by which degree and order were chosen, where the file says `auto`.
    pub auto: Option<NoiseSelection>,
    /// Chosen by each window and key; `order` and `function` are then the first candidates.
    pub private_order: Option<PrivateOrder>,
    /// Asserted by the operator and never checked: the bound on the approximation error depends on it, privacy does not.
    pub smoothness: Option<Smoothness>,
    pub private_bandwidths: Option<PrivateBandwidths>,
}

impl ReleaseSettings {
    /// The shape of the released values.
    pub fn shape(&self) -> Shape {
        self.function.target.shape()
    }

    /// Returns whether all records of a user in a window weigh as much as one together.
    pub fn is_user_weighted(&self) -> bool {
        matches!(
            self.function.target.accumulator(),
            AccumulatorSpec::UserWeighted(_)
        )
    }

    /// Returns whether it is a sum over several panes, with noise that is correlated from one to the next.
    pub fn is_sum_of_panes(&self) -> bool {
        self.window_kind.is_sum_of_panes(&*self.function.target)
    }

    /// Number of panes that a window charges: those that it is computed from, but a sum over panes charges the newest alone.
    pub(crate) fn panes_charged(&self) -> u32 {
        match self.window_kind {
            WindowKind::Hopping { panes } if !self.is_sum_of_panes() => panes,
            _ => 1,
        }
    }

    /// Returns whether every window has the same price.
    pub(crate) fn has_fixed_price(&self) -> bool {
        matches!(self.policy, PricePolicy::Fixed(_))
    }

    /// Every function that a window can have.
    pub fn candidate_functions(&self) -> Candidates<ReleasedFunction> {
        match &self.private_bandwidths {
            Some(choice) => choice.candidates.clone(),
            None => Candidates::new(self.function.clone(), Vec::new()),
        }
    }

    /// The prices of the private choices of a window.
    pub fn choice_prices(&self) -> impl Iterator<Item = Epsilon> {
        let bandwidths = self.private_bandwidths.as_ref().map(|choice| choice.price);
        bandwidths
            .into_iter()
            .chain(self.private_order.as_ref().map(|choice| choice.price))
    }

    /// The price of the first window: noise and private choices.
    pub fn window_price(&self) -> Price {
        self.choice_prices()
            .fold(self.payment.charged_price(), Price::with_pure)
    }

    /// Every order that a window can have.
    pub fn candidate_orders(&self) -> Candidates<u32> {
        match &self.private_order {
            Some(choice) => choice.candidates.clone(),
            None => Candidates::new(self.order, Vec::new()),
        }
    }
}
