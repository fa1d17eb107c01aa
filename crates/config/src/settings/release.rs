//! One release: what is published of each window.

use crate::settings::calibration::Calibration;
use crate::settings::choice::{PrivateBandwidths, PrivateOrder};
use crate::settings::function::Function;
use crate::settings::noise::{Coordinates, NoiseKind};
use crate::settings::payment::Payment;
use crate::settings::selection::Selection;
use crate::settings::windowing::WindowKind;
use bernstream_noise::accountant::policy::Policy;
use bernstream_release::choice::Candidates;
use bernstream_release::window::{Axis, Label};
use bernstream_synopsis::Shape;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::description::{Names, Smoothness};
use bernstream_synopsis::price::Price;

/// One function that is published of each window.
#[derive(Clone, Debug)]
pub struct Release {
    pub name: String,
    pub window_kind: WindowKind,
    pub function: Function,
    /// The columns of the axes, then that of the label.
    pub columns: Vec<String>,
    pub axes: Vec<Axis>,
    /// What is written at its plots; in no digest.
    pub names: Option<Names>,
    pub label: Option<Label>,
    /// The price of the noise in the first window.
    pub payment: Payment,
    /// The prices of all windows, private choices included.
    pub policy: Policy,
    /// The order `h` of the iterated Bernstein operator.
    pub order: u32,
    pub noise: NoiseKind,
    /// What the noise is added to, as asked for or chosen.
    pub on: Coordinates,
    pub calibration: Calibration,
    /// A public guess at the records of a window and key.
    pub expected_records: Option<u64>,
    /// How degree and order were chosen, where the file says `auto`.
    pub auto: Option<Selection>,
    /// Chosen by each window and key; `order` and `function` are then the first candidates.
    pub private_order: Option<PrivateOrder>,
    /// Asserted by the operator and never checked: the bound on the approximation error depends on it, privacy does not.
    pub smoothness: Option<Smoothness>,
    pub private_bandwidths: Option<PrivateBandwidths>,
}

impl Release {
    /// What the released values are.
    pub fn shape(&self) -> Shape {
        self.function.target.shape()
    }

    /// Whether it is a sum over several panes, with noise that is correlated from one to the next.
    pub fn is_sum_of_panes(&self) -> bool {
        self.window_kind != WindowKind::Tumbling && self.function.target.is_sum()
    }

    /// Every function that a window can have.
    pub fn functions(&self) -> Candidates<Function> {
        let fixed = || Candidates::new(self.function.clone(), Vec::new());
        self.private_bandwidths
            .as_ref()
            .map_or_else(fixed, |choice| choice.candidates.clone())
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
            .fold(self.payment.price(), Price::with_pure)
    }

    /// Every order that a window can have.
    pub fn orders(&self) -> Candidates<u32> {
        let fixed = || Candidates::new(self.order, Vec::new());
        self.private_order
            .as_ref()
            .map_or_else(fixed, |choice| choice.candidates.clone())
    }
}
