//! A release as read: its settings with their positions in the text, for the rules between sections.

use std::ops::Range;

use crate::file;
use crate::settings::{
    Calibration, Coordinates, Function, NoiseKind, Payment, Privacy, PrivateBandwidths,
    PrivateOrder, Release, Selection, Unit, WindowKind,
};
use crate::text::Spanned;
use bernstream_noise::accountant::policy::Policy;
use bernstream_noise::concentrated::epsilon_of_ball;
use bernstream_noise::continual::Series;
use bernstream_noise::{Mechanism, noise};
use bernstream_release::choice::Candidates;
use bernstream_release::window::{Axis, Label};
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::description::{Names, Smoothness};
use bernstream_synopsis::price::Price;

/// `[release]`
pub struct ReleaseDraft {
    pub name: String,
    /// Read by [`crate::read::windowing`], which knows the grid.
    pub windows: Option<Spanned<file::WindowKind>>,
    pub payment: Spanned<Payment>,
    /// None if the price of a window is fixed.
    pub policy: Option<Policy>,
    /// The position of the key that decides the size of a message.
    pub size: Range<usize>,
    pub order: u32,
    pub expected_records: Option<u64>,
    pub auto: Option<Selection>,
    pub private_order: Option<Spanned<PrivateOrder>>,
    pub smoothness: Option<Smoothness>,
    pub private_bandwidths: Option<Spanned<PrivateBandwidths>>,
    pub noise: NoiseKind,
    pub on: Coordinates,
    /// With its position, if the file has it.
    pub calibration: Option<Spanned<Calibration>>,
    /// Those of the axes, then that of the label.
    pub columns: Vec<String>,
    pub axes: Vec<Axis>,
    pub names: Option<Names>,
    pub label: Option<Label>,
    pub function: Spanned<Function>,
    /// Read by [`crate::read::sampled`].
    pub sampled: Option<Spanned<file::Sampled>>,
}

impl ReleaseDraft {
    /// The prices of the private choices of a window.
    pub fn choice_prices(&self) -> impl Iterator<Item = Epsilon> {
        let bandwidths = self
            .private_bandwidths
            .as_ref()
            .map(|choice| choice.get_ref().price);
        bandwidths.into_iter().chain(
            self.private_order
                .as_ref()
                .map(|choice| choice.get_ref().price),
        )
    }

    /// Where a private choice of its windows is written.
    pub fn choice_place(&self) -> Option<Range<usize>> {
        let bandwidths = self.private_bandwidths.as_ref().map(Spanned::span);
        bandwidths.or_else(|| self.private_order.as_ref().map(Spanned::span))
    }

    /// Which bound the noise is calibrated to.
    pub fn calibration(&self) -> Calibration {
        self.calibration
            .as_ref()
            .map_or(Calibration::Tight, |written| *written.get_ref())
    }

    /// Every function that a window can have.
    pub fn functions(&self) -> Candidates<Function> {
        let fixed = || Candidates::new(self.function.get_ref().clone(), Vec::new());
        self.private_bandwidths
            .as_ref()
            .map_or_else(fixed, |choice| choice.get_ref().candidates.clone())
    }

    /// Charges noise that is priced in epsilon under a total in rho its own constant, which for Laplace noise and the ball is less
    /// than that of other mechanisms of pure differential privacy ([`noise::own_rho`]): the largest of its functions, or, of a
    /// sum over windows, that of every node that a pane is in. A unit in several panes of a sum has noise for the rho, and keeps that
    /// price.
    ///
    /// A ball that is priced in rho is made for the largest epsilon that costs no more, but in a sum over windows and where prices fall.
    pub fn charge_own_rho(&mut self, privacy: &Privacy, over: WindowKind) {
        let payment = *self.payment.get_ref();
        let series = over
            .series()
            .filter(|_| self.function.get_ref().target.is_sum());
        let law = self.noise.law();
        let change = |function: &Function| {
            let target = &*function.target;
            Some((
                self.calibration().sensitivity(target, law, privacy).ok()?,
                target.shape().values(),
            ))
        };
        let changes = || {
            self.functions()
                .iter()
                .map(change)
                .collect::<Option<Vec<_>>>()
        };
        let own_rho = |price: Price, change: Sensitivity, values: usize| {
            let touched = privacy.touched(values);
            if let Some(over_panes) = series {
                let series =
                    Series::calibrated(over_panes, law, change, touched, 1, price, over.horizon())
                        .ok()?;
                return series
                    .own_rho(change, values)
                    .filter(|_| privacy.unit == Unit::Record);
            }
            noise::own_rho(
                law,
                change,
                values,
                Mechanism::calibrated(law, change, touched, price)
                    .ok()?
                    .scale(),
            )
        };
        let is_decaying = matches!(self.policy, Some(Policy::Decaying { .. }));
        let charged = match payment {
            Payment::Converted { .. } => changes().and_then(|changes| {
                let each = changes
                    .into_iter()
                    .map(|(change, values)| own_rho(payment.own(), change, values));
                each.collect::<Option<Vec<_>>>()?
                    .into_iter()
                    .max()
                    .map(|own| payment.costing(own))
            }),
            Payment::Own(Price::Concentrated(rho))
                if law == NoiseDistribution::Ball && series.is_none() && !is_decaying =>
            {
                let each = |changes: Vec<_>| {
                    changes
                        .into_iter()
                        .map(|(change, values)| epsilon_of_ball(change, values, rho))
                        .min()
                };
                changes()
                    .and_then(each)
                    .map(|epsilon| Payment::Converted { epsilon, rho })
            }
            Payment::Own(_) | Payment::Planned(_) => None,
        };
        if let Some(charged) = charged {
            self.payment = Spanned::new(self.payment.span(), charged);
        }
    }

    /// The release, once all rules are checked.
    pub fn finish(self, window_kind: WindowKind) -> Release {
        let draft = self;
        let payment = draft.payment.into_inner();
        let mut release = Release {
            name: draft.name,
            window_kind,
            function: draft.function.into_inner(),
            columns: draft.columns,
            axes: draft.axes,
            names: draft.names,
            label: draft.label,
            payment,
            policy: Policy::Fixed(payment.price()),
            order: draft.order,
            noise: draft.noise,
            on: draft.on,
            expected_records: draft.expected_records,
            auto: draft.auto,
            private_order: draft.private_order.map(Spanned::into_inner),
            smoothness: draft.smoothness,
            private_bandwidths: draft.private_bandwidths.map(Spanned::into_inner),
            calibration: draft
                .calibration
                .map_or(Calibration::Tight, Spanned::into_inner),
        };
        release.policy = draft
            .policy
            .unwrap_or(Policy::Fixed(release.window_price()));
        release
    }
}
