//! `composition`: by which theorem the prices of a block add up: written -> used.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::accountant::gaussian::Drawn;
use crate::accountant::plan::{self, Class};
use crate::accountant::policy::Policy;
use crate::accountant::{concentrated, gaussian};
use crate::config::budget::{self, Amounts};
use crate::config::document::Document;
use crate::config::file::{self, Field};
use crate::config::release::Stage;
use crate::config::sections::Found;
use crate::config::{Calibration, Function, Period, Privacy, Release, Settings, Unit, forms, guarantee};
use crate::mechanism::calibrate::{Delta, Epsilon, Scale};
use crate::mechanism::price::Price;
use crate::mechanism::{Mechanism, NoiseDistribution};
use crate::synopsis::description::{Definition, Implied};
use crate::targets::Sensitivity;
use crate::window::grid::Grid;

/// By which theorem prices add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Composition {
    Sum,
    Concentrated,
    Gaussian,
    Plan,
}

/// What a block may spend, and what that promises.
pub(super) struct Book {
    pub total: Price,
    pub definition: Definition,
    pub implies: Option<Implied>,
}

/// The most values that a unit meets in a block under `gaussian`, and the least noise on any of them, in grid units: what the
/// discreteness of the noise may cost is worked out from these, so they are the same for every ledger. `(1 + exp(epsilon))
/// 3e-12` of the delta.
pub const DRAWN: Drawn = Drawn { values: 1 << 33, sigma: FINEST };
/// What one setting may draw in a block. Settings can change from window to window, each counted as if it had held from the
/// block's beginning: window `n` then draws at most this over `n + 1`, and their sum, a logarithm of the windows, stays within
/// [`DRAWN`].
const MOST_DRAWN: u64 = DRAWN.values / 64;
const FINEST: Scale = match Scale::new(1 << 33) {
    Some(scale) => scale,
    None => unreachable!(),
};

/// `epsilon`, `delta`, `rho`, `composition` and `windows` of `[privacy]`.
pub(super) fn book(
    document: &mut Document<'_>,
    place: &Range<usize>,
    amounts: Amounts,
    composition: Field<Composition>,
    windows: Field<u64>,
) -> Found<Book> {
    let kind = composition.as_ref().map_or(Composition::Sum, |composition| *composition.get_ref());
    let at = composition.map_or(place.clone(), |composition| composition.span());
    if let (Some(windows), false) = (&windows, kind == Composition::Plan) {
        let hint = r#"leave it out, or add composition = "plan""#;
        return Err(document.fault(windows.span(), "is the length of a declared plan, and there is none", hint));
    }
    if kind == Composition::Sum {
        let total = budget::total(document, place, amounts)?;
        return Ok(Book { total, definition: Definition::of(total), implies: None });
    }
    if let Some(rho) = amounts.rho {
        let what = "is composed by itself: the other compositions find it for an `epsilon` and a `delta`";
        return Err(document.fault(rho.span(), what, "leave out the one or the other"));
    }
    let epsilon = document.required(place, "epsilon", amounts.epsilon, forms::epsilon);
    let delta = document.required(place, "delta", amounts.delta, forms::delta);
    let windows = match kind {
        Composition::Plan => Some(document.required(place, "windows", windows, forms::count)),
        _ => None,
    };
    let (epsilon, delta, windows) = (epsilon?.into_inner(), delta?.into_inner(), windows.transpose()?);
    let implies = Some(Implied { epsilon, delta });
    let (rho, definition) = match (kind, windows) {
        (_, Some(windows)) => {
            let total = Price::Slots(windows.into_inner());
            return Ok(Book { total, definition: Definition::Planned, implies });
        }
        (Composition::Gaussian, _) => (gaussian::rho_for(DRAWN, epsilon, delta), Definition::Gaussian),
        _ => (concentrated::rho_for(epsilon, delta), Definition::Concentrated),
    };
    let total = Price::Concentrated(rho);
    if total.is_zero() {
        let what =
            format!("leaves no rho: epsilon = {epsilon} with delta = {delta} is too little for this composition");
        return Err(document.fault(at, what, r#"raise them, or take composition = "sum""#));
    }
    Ok(Book { total, definition, implies })
}

/// What a composition takes for granted of every release; said where it is not so.
pub(super) fn holds(document: &mut Document<'_>, privacy: &Privacy, stages: &[Stage], grid: Option<Grid>) -> Found<()> {
    match privacy.definition {
        Definition::Gaussian => all_gaussian(document, privacy, stages, grid),
        Definition::Planned => as_declared(document, privacy, stages),
        _ => Ok(()),
    }
}

/// Gaussian noise alone, none finer than [`DRAWN`], and no more of it than there may be.
fn all_gaussian(document: &mut Document<'_>, privacy: &Privacy, stages: &[Stage], grid: Option<Grid>) -> Found<()> {
    for stage in stages {
        let choice =
            [stage.private_bandwidths.as_ref().map(Spanned::span), stage.private_order.as_ref().map(Spanned::span)];
        if let Some(place) = choice.into_iter().flatten().next() {
            let what = "is no Gaussian noise, and composition = \"gaussian\" is for that alone";
            return Err(document.fault(place, what, r#"leave it out, or take composition = "concentrated""#));
        }
        if stage.body.law() != NoiseDistribution::DiscreteGaussian {
            let what = "its noise is not Gaussian, and composition = \"gaussian\" is for that alone";
            let hint = r#"take noise = "gaussian" or "gaussian_process", or composition = "concentrated""#;
            return Err(document.fault(stage.payment.span(), what, hint));
        }
        let noise = mechanisms(privacy, stage).into_iter().find(|noise| noise.scale() < FINEST);
        if let Some(noise) = noise {
            let what = format!(
                "buys noise of {} grid units, and below {} whole numbers cost more than composition = \"gaussian\" gains",
                noise.scale().units(),
                FINEST.units()
            );
            let hint = r#"lower the price, or take composition = "concentrated""#;
            return Err(document.fault(stage.payment.span(), what, hint));
        }
    }
    let a_window = touched(privacy, stages.iter().map(|stage| stage.function.get_ref().target.shape().values()));
    let windows = match (&privacy.unit, grid) {
        (Unit::User { per: Period::Every(per), .. }, Some(grid)) => guarantee::most_blocks(*per, grid.length()),
        _ => 1,
    };
    if let (true, Some(stage)) = (a_window.saturating_mul(windows) > MOST_DRAWN, stages.first()) {
        let what = format!("all releases together put noise on more than {MOST_DRAWN} values of a block");
        return Err(document.fault(stage.size.clone(), what, r#"take composition = "concentrated""#));
    }
    Ok(())
}

/// Everything that a plan is made of is within what it promises.
fn as_declared(document: &mut Document<'_>, privacy: &Privacy, stages: &[Stage]) -> Found<()> {
    let (Some(implied), Price::Slots(windows)) = (privacy.implies, privacy.total) else { return Ok(()) };
    for stage in stages {
        if let Some(over) = &stage.windows
            && !matches!(over.get_ref(), file::WindowKind::Tumbling)
        {
            let what = "reads panes several times, and a declared plan counts each window once";
            return Err(document.fault(over.span(), what, r#"take "tumbling", or composition = "concentrated""#));
        }
    }
    let classes: Vec<(Class, u64)> = stages.iter().flat_map(|stage| classes(privacy, stage)).collect();
    let Implied { epsilon, delta } = implied;
    let all = classes.iter().map(|(class, count)| (*class, count.saturating_mul(windows)));
    if let (false, Some(stage)) = (plan::Plan::new(all).is_within(epsilon, delta), stages.first()) {
        let what = match plan::longest(&classes, epsilon, delta) {
            0 => "not even one window of these prices fits".to_owned(),
            most => format!("at most {most} windows of these prices fit"),
        };
        let what = format!("{what} within epsilon = {epsilon} and delta = {delta}, and the plan has {windows}");
        return Err(document.fault(stage.payment.span(), what, "lower the prices, or privacy.windows"));
    }
    Ok(())
}

/// What one window releases, as a plan declares it.
fn classes(privacy: &Privacy, stage: &Stage) -> Vec<(Class, u64)> {
    let own = stage.payment.get_ref().own();
    let choices = [
        stage.private_bandwidths.as_ref().map(|choice| choice.get_ref().price),
        stage.private_order.as_ref().map(|choice| choice.get_ref().price),
    ];
    let target = &*stage.function.get_ref().target;
    let finest = mechanisms(privacy, stage).iter().map(Mechanism::scale).min();
    let noise = match (own, finest, stage.body.law()) {
        (Price::Concentrated(rho), Some(sigma), NoiseDistribution::DiscreteGaussian) => {
            let values = privacy.touched(target.shape().values()) as u64;
            Class::Gaussian { rho, drawn: Drawn { values, sigma } }
        }
        // What is bought with a rho has more than the epsilon that any pure mechanism has for it.
        (_, _, NoiseDistribution::DiscreteLaplace) => worst_laplace(privacy, stage).unwrap_or(Class::Pure(own.pure())),
        _ => Class::Pure(own.pure()),
    };
    choices.into_iter().flatten().map(Class::Pure).chain([noise]).map(|class| (class, 1)).collect()
}

/// The Laplace noise that loses most, of those of every function that a window can have: where the change is the largest part
/// of the scale.
fn worst_laplace(privacy: &Privacy, stage: &Stage) -> Option<Class> {
    let calibration = stage.calibration.as_ref().map_or(Calibration::Tight, |written| *written.get_ref());
    let price = stage.payment.get_ref().own();
    let of = |function: &Function| {
        let target = &*function.target;
        let change = calibration.sensitivity(target, NoiseDistribution::DiscreteLaplace, privacy).ok()?;
        let noise = calibration.mechanism(target, NoiseDistribution::DiscreteLaplace, privacy, price).ok()?;
        Some((change, noise.scale()))
    };
    let all = functions(stage).into_iter().map(of).collect::<Option<Vec<_>>>()?;
    let (change, scale) = all.into_iter().max_by(|(one, its), (other, others)| {
        let product = |change: Sensitivity, scale: Scale| u128::from(change.0) * u128::from(scale.units());
        product(*one, *others).cmp(&product(*other, *its))
    })?;
    Some(Class::Laplace { change, scale })
}

/// Every function that a window can have.
fn functions(stage: &Stage) -> Vec<&Function> {
    match &stage.private_bandwidths {
        Some(choice) => choice.get_ref().candidates.iter().collect(),
        None => vec![stage.function.get_ref()],
    }
}

/// The noise of every function that a window can have, in its first window.
fn mechanisms(privacy: &Privacy, stage: &Stage) -> Vec<Mechanism> {
    let calibration = stage.calibration.as_ref().map_or(Calibration::Tight, |written| *written.get_ref());
    let (law, price) = (stage.body.law(), stage.payment.get_ref().own());
    functions(stage)
        .into_iter()
        .filter_map(|function| calibration.mechanism(&*function.target, law, privacy, price).ok())
        .collect()
}

/// How many values one unit meets in a window.
fn touched(privacy: &Privacy, values: impl Iterator<Item = usize>) -> u64 {
    let values = values.map(|values| privacy.touched(values)).fold(0, usize::saturating_add);
    u64::try_from(values).unwrap_or(u64::MAX).max(1)
}

impl Settings {
    /// The number of the first window of a block from which on there would be more noise than [`DRAWN`] says.
    pub(super) fn drawn_out(&self) -> Option<u64> {
        let values = self.releases.iter().map(|release| release.shape().values());
        (self.privacy.definition == Definition::Gaussian).then(|| MOST_DRAWN / touched(&self.privacy, values))
    }
}

/// In a plan the first release has the window, and the others go with it.
pub(super) fn share_the_slot(total: Price, releases: &mut [Release]) {
    if let Price::Slots(_) = total {
        for release in releases.iter_mut().skip(1) {
            release.policy = Policy::Fixed(total.zero());
        }
    }
}

/// What a ledger is bound to, in canonical JSON: what a declared plan consists of.
pub(super) fn declared(settings: &Settings) -> Vec<serde_json::Value> {
    let one = |release: &Release| {
        serde_json::json!({
            "noise": release.payment.own(),
            "law": release.body.law(),
            "values": release.shape().values(),
            "scale": settings.mechanism_of(release, &release.function).map(|noise| noise.scale().units()).ok(),
            "choices": [
                release.private_bandwidths.as_ref().map(|choice| choice.price),
                release.private_order.as_ref().map(|choice| choice.price),
            ],
        })
    };
    settings.releases.iter().map(one).collect()
}

/// What a promise means that is kept by another one, in words.
pub(super) fn in_words(implied: Implied, total: Price) -> String {
    let Implied { epsilon, delta } = implied;
    meaning(epsilon, delta, total)
}

fn meaning(epsilon: Epsilon, delta: Delta, total: Price) -> String {
    format!(
        "Of this total, {total}, follows (epsilon, delta)-differential privacy with epsilon = {epsilon} and delta = {delta}, which \
         is what was asked for."
    )
}
