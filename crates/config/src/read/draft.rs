//! A release as read: its settings with their positions in the text, for the rules between sections.

use std::ops::Range;

use crate::file;
use crate::settings::{
    Calibration, Coordinates, NoiseKind, NoiseSelection, Payment, PrivacySettings, PrivacyUnit,
    PrivateBandwidths, PrivateOrder, ReleaseSettings, ReleasedFunction, WindowKind,
};
use crate::text::Spanned;
use bernstream_noise::accountant::policy::PricePolicy;
use bernstream_noise::concentrated::epsilon_of_ball;
use bernstream_noise::continual;
use bernstream_noise::continual::CalibratedSeries;
use bernstream_noise::{Mechanism, noise};
use bernstream_release::choice::Candidates;
use bernstream_release::window::{DomainAxis, RecordLabel};
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Epsilon, Rho};
use bernstream_synopsis::description::{PlotNames, Smoothness};
use bernstream_synopsis::price::Price;

/// `[release]`
pub struct ReleaseDraft {
    pub name: String,
    /// Read by [`crate::read::windowing`], which knows the grid.
    pub windows: Option<Spanned<file::WrittenWindowKind>>,
    pub payment: Spanned<Payment>,
    /// None if the price of a window is fixed.
    pub policy: Option<PricePolicy>,
    /// The position of the key that decides the size of a message.
    pub size: Range<usize>,
    pub order: u32,
    pub expected_records: Option<u64>,
    pub auto: Option<NoiseSelection>,
    pub private_order: Option<Spanned<PrivateOrder>>,
    pub smoothness: Option<Smoothness>,
    pub private_bandwidths: Option<Spanned<PrivateBandwidths>>,
    pub noise: NoiseKind,
    pub on: Coordinates,
    /// With its position, if the file has it.
    pub calibration: Option<Spanned<Calibration>>,
    /// Those of the axes, then that of the label.
    pub columns: Vec<String>,
    pub axes: Vec<DomainAxis>,
    pub names: Option<PlotNames>,
    pub label: Option<RecordLabel>,
    pub function: Spanned<ReleasedFunction>,
    /// Read by [`crate::read::sampled`].
    pub sampled: Option<Spanned<file::SampledTable>>,
}

/// The sensitivity of a function, and how many values it has.
#[derive(Clone, Copy)]
struct FunctionChange {
    sensitivity: Sensitivity,
    values: usize,
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

    /// The place where a private choice of its windows is written.
    pub fn choice_place(&self) -> Option<Range<usize>> {
        let bandwidths = self.private_bandwidths.as_ref().map(Spanned::span);
        bandwidths.or_else(|| self.private_order.as_ref().map(Spanned::span))
    }

    /// The bound that the noise is calibrated to.
    pub fn calibration(&self) -> Calibration {
        self.calibration
            .as_ref()
            .map_or(Calibration::Tight, |written| *written.get_ref())
    }

    /// Every function that a window can have.
    pub fn functions(&self) -> Candidates<ReleasedFunction> {
        match &self.private_bandwidths {
            Some(choice) => choice.get_ref().candidates.clone(),
            None => Candidates::new(self.function.get_ref().clone(), Vec::new()),
        }
    }

    /// Charges noise that is priced in epsilon under a total in rho its own constant, which for Laplace noise and the ball is less
    /// than that of other mechanisms of pure differential privacy ([`noise::own_rho`]): the largest of its functions, or, of a
    /// sum over windows, that of every node that a pane is in. A unit in several panes of a sum has noise for the rho, and keeps that
    /// price.
    ///
    /// A ball that is priced in rho is made for the largest epsilon that costs no more, but in a sum over windows and where prices fall.
    pub fn charge_own_rho(&mut self, privacy: &PrivacySettings, over: WindowKind) {
        let payment = *self.payment.get_ref();
        let is_decaying = matches!(self.policy, Some(PricePolicy::Decaying { .. }));
        let charged = match payment {
            Payment::Converted { .. } => self
                .largest_own_rho(privacy, over, payment.mechanism_price())
                .map(|own| payment.with_lower_charge(own)),
            Payment::Own(Price::Concentrated(rho))
                if self.noise.noise_distribution() == NoiseDistribution::Ball
                    && self.summed_windows(over).is_none()
                    && !is_decaying =>
            {
                self.smallest_ball_epsilon(privacy, rho)
                    .map(|epsilon| Payment::Converted { epsilon, rho })
            }
            Payment::Own(_) | Payment::Planned(_) => None,
        };
        if let Some(charged) = charged {
            self.payment = Spanned::new(self.payment.span(), charged);
        }
    }

    /// The windows of correlated noise; none for a single pane, and for functions that are no sums.
    fn summed_windows(&self, over: WindowKind) -> Option<continual::SeriesKind> {
        over.noise_windows()
            .filter(|_| over.is_sum_of_panes(&*self.function.get_ref().target))
    }

    /// The sensitivity and the number of values of every function; `None` if one has no sensitivity.
    fn function_changes(&self, privacy: &PrivacySettings) -> Option<Vec<FunctionChange>> {
        let law = self.noise.noise_distribution();
        let mut changes = Vec::new();
        for function in self.functions().iter() {
            let target = &*function.target;
            let sensitivity = self.calibration().sensitivity(target, law, privacy).ok()?;
            changes.push(FunctionChange {
                sensitivity,
                values: target.shape().value_count(),
            });
        }
        Some(changes)
    }

    /// The largest rho of the noise that `price` buys, over all functions.
    fn largest_own_rho(
        &self,
        privacy: &PrivacySettings,
        over: WindowKind,
        price: Price,
    ) -> Option<Rho> {
        let mut largest = None;
        for change in self.function_changes(privacy)? {
            largest = largest.max(Some(self.rho_of_function(privacy, over, price, change)?));
        }
        largest
    }

    /// The rho of the noise that `price` buys for one function, by the constant of the noise itself.
    fn rho_of_function(
        &self,
        privacy: &PrivacySettings,
        over: WindowKind,
        price: Price,
        change: FunctionChange,
    ) -> Option<Rho> {
        let law = self.noise.noise_distribution();
        let FunctionChange {
            sensitivity,
            values,
        } = change;
        let touched = privacy.touched_values(values);
        let Some(panes) = self.summed_windows(over) else {
            let mechanism = Mechanism::calibrated(law, sensitivity, touched, price).ok()?;
            return noise::own_rho(law, sensitivity, values, mechanism.scale());
        };
        let horizon = over.horizon();
        let series =
            CalibratedSeries::calibrated(panes, law, sensitivity, touched, 1, price, horizon)
                .ok()?;
        series
            .own_rho(sensitivity, values)
            .filter(|_| privacy.unit == PrivacyUnit::Record)
    }

    /// The smallest epsilon of a ball that costs at most `rho`, over all functions.
    fn smallest_ball_epsilon(&self, privacy: &PrivacySettings, rho: Rho) -> Option<Epsilon> {
        let changes = self.function_changes(privacy)?;
        changes
            .iter()
            .map(|change| epsilon_of_ball(change.sensitivity, change.values, rho))
            .min()
    }

    /// The release, once all rules are checked.
    pub fn into_release(self, window_kind: WindowKind) -> ReleaseSettings {
        let draft = self;
        let payment = draft.payment.into_inner();
        let mut release = ReleaseSettings {
            name: draft.name,
            window_kind,
            function: draft.function.into_inner(),
            columns: draft.columns,
            axes: draft.axes,
            names: draft.names,
            label: draft.label,
            payment,
            policy: PricePolicy::Fixed(payment.charged_price()),
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
            .unwrap_or(PricePolicy::Fixed(release.window_price()));
        release
    }
}
