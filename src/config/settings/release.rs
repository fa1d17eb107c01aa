//! One release: what is published of each window.

use crate::accountant::policy::Policy;
use crate::config::settings::calibration::Calibration;
use crate::config::settings::choice::{PrivateBandwidths, PrivateOrder};
use crate::config::settings::function::Function;
use crate::config::settings::noise::NoiseKind;
use crate::config::settings::payment::Payment;
use crate::config::settings::selection::Selection;
use crate::config::settings::windowing::WindowKind;
use crate::mechanism::calibrate::Epsilon;
use crate::mechanism::choice::Candidates;
use crate::mechanism::price::Price;
use crate::synopsis::description::Smoothness;
use crate::targets::Shape;
use crate::window::{Axis, Label};

/// What is published of each window: one function.
#[derive(Clone, Debug)]
pub struct Release {
    pub name: String,
    pub window_kind: WindowKind,
    pub function: Function,
    /// The columns of the axes, then that of the label.
    pub columns: Vec<String>,
    pub axes: Vec<Axis>,
    pub label: Option<Label>,
    /// What pays for the function's noise, in the first window.
    pub payment: Payment,
    /// What the windows cost, choices and all.
    pub policy: Policy,
    /// The order `h` of the iterated Bernstein operator.
    pub order: u32,
    pub noise: NoiseKind,
    pub calibration: Calibration,
    /// How degree and order were chosen, where the file says `auto`.
    pub auto: Option<Selection>,
    /// What every window and key chooses for itself; `order` and the function are then the first candidates.
    pub private_order: Option<PrivateOrder>,
    /// What the operator vouches for, never checked: the bound on the approximation rests on it, no privacy does.
    pub smoothness: Option<Smoothness>,
    pub private_bandwidths: Option<PrivateBandwidths>,
}

impl Release {
    /// What the released values are.
    pub fn shape(&self) -> Shape {
        self.function.target.shape()
    }

    /// Whether it is a sum over several windows of the grid, with noise that goes on from one to the next.
    pub fn is_sum_of_panes(&self) -> bool {
        self.window_kind != WindowKind::Tumbling && self.function.target.is_sum()
    }

    /// Every function that a window can have.
    pub fn functions(&self) -> Candidates<Function> {
        let fixed = || Candidates::new(self.function.clone(), Vec::new());
        self.private_bandwidths.as_ref().map_or_else(fixed, |choice| choice.candidates.clone())
    }

    /// The prices of the private choices of a window.
    pub fn choice_prices(&self) -> impl Iterator<Item = Epsilon> {
        let bandwidths = self.private_bandwidths.as_ref().map(|choice| choice.price);
        bandwidths.into_iter().chain(self.private_order.as_ref().map(|choice| choice.price))
    }

    /// What the first window costs: the function, and every choice.
    pub fn window_price(&self) -> Price {
        self.choice_prices().fold(self.payment.price(), Price::with_pure)
    }

    /// Every order that a window can have.
    pub fn orders(&self) -> Candidates<u32> {
        let fixed = || Candidates::new(self.order, Vec::new());
        self.private_order.as_ref().map_or_else(fixed, |choice| choice.candidates.clone())
    }
}
