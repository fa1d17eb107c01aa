//! `horizon`, `half_after` and `share`: what the windows of a release pay, one after the other: written -> used.

use std::num::NonZeroU64;
use std::ops::Range;

use toml::Spanned;

use crate::accountant::policy::{Asked, Fraction, Policy, Unfair, divide};
use crate::clock::micros;
use crate::config::budget::{self, Amounts, Payment};
use crate::config::document::Document;
use crate::config::file::{self, Field};
use crate::config::sections::Found;
use crate::config::{Period, Privacy, Release, Settings, Unit, forms, guarantee};
use crate::mechanism::calibrate::Epsilon;
use crate::mechanism::price::Price;
use crate::pipeline::PriceSchedule;
use crate::window::grid::Grid;

/// What pays for the noise of a release's first window, and what for all its windows where that is no fixed price.
pub struct Paying {
    pub payment: Spanned<Payment>,
    pub policy: Option<Policy>,
}

/// What one release asks for.
enum Written {
    Fixed(Spanned<Payment>),
    Horizon(Spanned<NonZeroU64>, Option<Fraction>),
    Decaying(Spanned<NonZeroU64>, Option<Fraction>),
}

/// Reads the prices of all releases and divides the total among them. `grid` is `None` where it is at fault.
pub(super) fn settle(
    document: &mut Document<'_>,
    releases: &mut [Spanned<file::Release>],
    privacy: Found<&Privacy>,
    grid: Option<Grid>,
) -> Vec<Found<Paying>> {
    let choices: Vec<Vec<Epsilon>> = releases.iter().map(|release| choices(release.get_ref())).collect();
    let written: Vec<Found<Written>> =
        releases.iter_mut().map(|release| read(document, release, privacy, grid)).collect();
    let is_fixed = |written: &Found<Written>| matches!(written, Ok(Written::Fixed(_)) | Err(_));
    let shares = match (privacy, written.iter().all(is_fixed)) {
        (Ok(privacy), false) => shares(document, privacy, grid, &written, &choices),
        (Err(reported), _) => Err(reported),
        (Ok(_), true) => Ok(Vec::new()),
    };
    let mut paying = Vec::new();
    for (at, (written, choices)) in written.into_iter().zip(&choices).enumerate() {
        let share = shares.as_ref().map(|shares| shares.get(at).copied()).map_err(|reported| *reported);
        paying.push(written.and_then(|written| match written {
            Written::Fixed(payment) => Ok(Paying { payment, policy: None }),
            Written::Horizon(windows, _) => {
                let place = windows.span();
                let windows = windows.into_inner();
                let policy = share?.map(|share| Policy::Horizon { share, windows });
                first(document, place, policy, choices)
            }
            Written::Decaying(half_after, _) => {
                let place = half_after.span();
                let half_after = half_after.into_inner();
                let policy = share?.map(|share| Policy::Decaying { share, half_after });
                first(document, place, policy, choices)
            }
        }));
    }
    paying
}

/// What one release says, on its own.
fn read(
    document: &mut Document<'_>,
    release: &mut Spanned<file::Release>,
    privacy: Found<&Privacy>,
    grid: Option<Grid>,
) -> Found<Written> {
    let place = release.span();
    let release = release.get_mut();
    let amounts = Amounts { epsilon: release.epsilon.take(), delta: release.delta.take(), rho: release.rho.take() };
    let (horizon, half_after) = (release.horizon.take(), release.half_after.take());
    let share = document.optional(release.share.take(), forms::share);
    let (key, length) = match (horizon, half_after) {
        (None, None) => {
            if let Ok(Some(share)) = share {
                let hint = "add `horizon` or `half_after`, or leave it out";
                document.fault(share.span(), "is a part of the total, and a price is fixed", hint);
            }
            let total = privacy.ok().map(|privacy| privacy.total);
            return budget::payment(document, &place, amounts, total).map(Written::Fixed);
        }
        (Some(horizon), None) => ("horizon", horizon),
        (None, Some(half_after)) => ("half_after", half_after),
        (Some(_), Some(_)) => return Err(document.not_one_of(place, &["horizon", "half_after"], true)),
    };
    let priced = [amounts.epsilon, amounts.delta, amounts.rho].into_iter().flatten().map(|price| price.span()).next();
    if let Some(priced) = priced {
        let what = format!("the price of a window follows from `{key}`");
        return Err(document.fault(priced, what, "leave out the one or the other"));
    }
    if let Some((what, hint)) = refusal(release, key, privacy) {
        return Err(document.fault(length.span(), what, hint));
    }
    let length = document.required(&place, key, Some(length), forms::positive_duration)?;
    let Some(grid) = grid else {
        let what = "divides a total among windows, whose length is not known here";
        return Err(document.reported().unwrap_or_else(|| document.fault(length.span(), what, "give a fixed price")));
    };
    let (whole, pane) = (micros(*length.get_ref()).unsigned_abs(), micros(grid.length()).unsigned_abs());
    let windows = NonZeroU64::new(whole / pane.max(1)).filter(|_| whole.is_multiple_of(pane));
    let Some(windows) = windows else {
        let what = format!("must be a whole number of windows, which are {} long", crate::clock::show(grid.length()));
        return Err(document.fault(length.span(), what, ""));
    };
    let share = share?.map(Spanned::into_inner);
    let windows = Spanned::new(length.span(), windows);
    Ok(if key == "horizon" { Written::Horizon(windows, share) } else { Written::Decaying(windows, share) })
}

/// Why this release cannot have a price that follows from its share, and what to do.
fn refusal(release: &file::Release, key: &str, privacy: Found<&Privacy>) -> Option<(&'static str, &'static str)> {
    let is_decaying = key == "half_after";
    let over = release.windows.as_ref().map(Spanned::get_ref);
    let privacy = privacy.ok();
    if privacy.is_some_and(|privacy| privacy.unit == Unit::Record) {
        let what = "divides the total of a block among its windows, and for records every window is a block";
        return Some((what, "give the price of a window: it can be the whole total"));
    }
    if privacy.is_some_and(|privacy| matches!(privacy.total, Price::Slots(_))) {
        let what = "divides a total, and every window of a declared plan is one of its `privacy.windows`";
        return Some((what, "give the noise's own price in `epsilon` or `rho`"));
    }
    if release.sampled.is_some() {
        return Some(("a sampled sensitivity is priced by the window", "give `epsilon`"));
    }
    if is_decaying && matches!(release.scale.as_ref().map(Spanned::get_ref), Some(file::Scale::Paper)) {
        return Some(("the papers' scale is for a fixed price", r#"leave out scale = "paper""#));
    }
    if is_decaying && matches!(over, Some(file::WindowKind::Hopping(_) | file::WindowKind::Cumulative(_))) {
        let what = "changes the noise from window to window, and windows that overlap share theirs";
        return Some((what, r#"take `horizon`, or windows = "tumbling""#));
    }
    None
}

/// What each release may spend of a block.
fn shares(
    document: &mut Document<'_>,
    privacy: &Privacy,
    grid: Option<Grid>,
    written: &[Found<Written>],
    choices: &[Vec<Epsilon>],
) -> Found<Vec<Price>> {
    let (mut asked, mut fixed, mut divided) = (Vec::new(), 0..0, 0..0);
    for (written, choices) in written.iter().zip(choices) {
        asked.push(match written.as_ref().map_err(|reported| *reported)? {
            Written::Fixed(payment) => {
                fixed = payment.span();
                Asked::Fixed(choices.iter().copied().fold(payment.get_ref().price(), Price::with_pure))
            }
            Written::Horizon(windows, share) | Written::Decaying(windows, share) => {
                divided = windows.span();
                share.map_or(Asked::Rest, Asked::Part)
            }
        });
    }
    let windows = match (&privacy.unit, grid) {
        (Unit::User { per: Period::Every(per), .. }, Some(grid)) => Some(guarantee::most_blocks(*per, grid.length())),
        _ => None,
    };
    divide(privacy.limit(), windows, &asked).map_err(|unfair| match unfair {
        Unfair::Endless => document.fault(fixed, unfair.to_string(), "give it a `horizon`"),
        Unfair::TooMuch | Unfair::Nothing => document.fault(divided, unfair.to_string(), "lower prices or shares"),
    })
}

/// What the noise of the first window is paid with.
fn first(
    document: &mut Document<'_>,
    place: Range<usize>,
    policy: Option<Policy>,
    choices: &[Epsilon],
) -> Found<Paying> {
    let price = policy.and_then(|policy| policy.price(0));
    let Some(price) = price else {
        let what = "leaves nothing for a window: each price is rounded down";
        return Err(document.fault(place, what, "take a shorter one, or raise the total"));
    };
    let own = choices.iter().try_fold(price, |left, choice| left.checked_sub(left.of_pure(*choice)?));
    match own.filter(|own| !own.is_zero()) {
        Some(own) => Ok(Paying { payment: Spanned::new(place, Payment::Own(own)), policy }),
        None => {
            let what = format!("leaves {price} for the first window, which does not pay for its private choices");
            Err(document.fault(place, what, "take cheaper choices, or none"))
        }
    }
}

/// The prices of the private choices, as far as they can be read: their faults are told elsewhere.
fn choices(release: &file::Release) -> Vec<Epsilon> {
    let of_order = release.private_order.as_ref().and_then(|choice| choice.get_ref().epsilon.as_ref());
    let density = release.density.as_ref().and_then(|density| density.get_ref().private_bandwidths.as_ref());
    let of_bandwidths = density.and_then(|choice| choice.get_ref().epsilon.as_ref());
    [of_bandwidths, of_order].into_iter().flatten().filter_map(|price| forms::epsilon(*price.get_ref()).ok()).collect()
}

/// `privacy.reserve`
pub(super) fn reserve(document: &mut Document<'_>, written: Field<f64>) -> Found<Fraction> {
    Ok(document.optional(written, forms::reserve)?.map_or(Fraction::ZERO, Spanned::into_inner))
}

impl Release {
    /// What of a price pays for private choices, in the kind of `total`.
    fn price_of_choices(&self, total: Price) -> Price {
        let choices = [
            self.private_bandwidths.as_ref().map(|choice| choice.price),
            self.private_order.as_ref().map(|choice| choice.price),
        ];
        choices.into_iter().flatten().fold(total.zero(), Price::with_pure)
    }
}

impl Settings {
    /// What the windows of a release cost.
    pub fn price_schedule(&self, release: &Release) -> PriceSchedule {
        let choices = release.price_of_choices(self.privacy.total);
        let over = match release.policy {
            Policy::Fixed(_) => None,
            policy => policy.lasts(self.privacy.limit(), None, |price| {
                let own = price.checked_sub(choices);
                own.is_some_and(|own| {
                    release.functions().iter().all(|function| self.mechanism_at(release, function, own).is_ok())
                })
            }),
        };
        // Where a fixed price is spent before, it needs no other end.
        let drawn_out = self.drawn_out().filter(|most| match release.policy {
            Policy::Fixed(_) => release.policy.lasts(self.privacy.limit(), Some(*most), |_| true).is_none(),
            _ => true,
        });
        PriceSchedule { policy: release.policy, choices, over: over.into_iter().chain(drawn_out).min() }
    }
}

/// What the windows of a block cost, in words.
pub fn in_words(policy: Policy) -> String {
    match policy {
        Policy::Fixed(price) => format!("{price} for every window"),
        Policy::Horizon { share, windows } => {
            let price = policy.price(0).unwrap_or(share.zero());
            format!("{price} for each of the first {windows} windows of its block, together {share}")
        }
        Policy::Decaying { share, half_after } => {
            let price = policy.price(0).unwrap_or(share.zero());
            format!(
                "{price} for the first window of its block, and always less: the first N windows together have N / (N + \
                 {half_after}) of {share}, half of it after {half_after}"
            )
        }
    }
}
