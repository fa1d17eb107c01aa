//! `epsilon`, `delta`, `rho`, `horizon`, `half_after` and `share` of the releases: the prices of all windows.

use std::num::NonZeroU64;
use std::ops::Range;

use crate::file;
use crate::read::budget::Amounts;
use crate::read::payment::payment;
use crate::settings::{Payment, Period, Privacy, Unit, most_blocks};
use crate::text::{Checked, Document, Spanned, values};
use bernstream_noise::accountant::policy::{Policy, PolicyInput, Unfair, divide};
use bernstream_synopsis::Fraction;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::clock::micros;
use bernstream_synopsis::grid::Grid;
use bernstream_synopsis::price::Price;

/// The price of the noise in the first window, and the policy for all windows if the price is not fixed.
pub type Pricing = (Spanned<Payment>, Option<Policy>);

/// The price that one release asks for.
enum Request {
    Fixed(Spanned<Payment>),
    Horizon(Spanned<NonZeroU64>, Option<Fraction>),
    Decaying(Spanned<NonZeroU64>, Option<Fraction>),
}

/// Reads the prices of all releases and divides the total among them. `grid` is `None` if it has a fault.
pub fn pricing(
    document: &mut Document<'_>,
    releases: &mut [Spanned<file::Release>],
    privacy: Checked<&Privacy>,
    grid: Option<Grid>,
) -> Vec<Checked<Pricing>> {
    let choices: Vec<Vec<Epsilon>> = releases
        .iter()
        .map(|release| choices(release.get_ref()))
        .collect();
    let written: Vec<Checked<Request>> = releases
        .iter_mut()
        .map(|release| read(document, release, privacy, grid))
        .collect();
    let is_fixed = |written: &Checked<Request>| matches!(written, Ok(Request::Fixed(_)) | Err(_));
    let shares = match (privacy, written.iter().all(is_fixed)) {
        (Ok(privacy), false) => shares(document, privacy, grid, &written, &choices),
        (Err(reported), _) => Err(reported),
        (Ok(_), true) => Ok(Vec::new()),
    };
    let mut prices = Vec::new();
    for (at, (written, choices)) in written.into_iter().zip(&choices).enumerate() {
        let share = shares
            .as_ref()
            .map(|shares| shares.get(at).copied())
            .map_err(|reported| *reported);
        prices.push(written.and_then(|written| match written {
            Request::Fixed(payment) => Ok((payment, None)),
            Request::Horizon(windows, _) => {
                let place = windows.span();
                let windows = windows.into_inner();
                let policy = share?.map(|share| Policy::Horizon { share, windows });
                first(document, place, policy, choices)
            }
            Request::Decaying(half_after, _) => {
                let place = half_after.span();
                let half_after = half_after.into_inner();
                let policy = share?.map(|share| Policy::Decaying { share, half_after });
                first(document, place, policy, choices)
            }
        }));
    }
    prices
}

/// The request of one release.
fn read(
    document: &mut Document<'_>,
    release: &mut Spanned<file::Release>,
    privacy: Checked<&Privacy>,
    grid: Option<Grid>,
) -> Checked<Request> {
    let place = release.span();
    let release = release.get_mut();
    let amounts = Amounts {
        epsilon: release.epsilon.take(),
        delta: release.delta.take(),
        rho: release.rho.take(),
    };
    let horizon = release.horizon.take();
    let half_after = release.half_after.take();
    let share = document.optional(release.share.take(), values::share);
    let (key, length) = match (horizon, half_after) {
        (None, None) => {
            if let Ok(Some(share)) = share {
                let hint = "add `horizon` or `half_after`, or remove it";
                document.fault(
                    share.span(),
                    "is a share of the total, but this release has a fixed price",
                    hint,
                );
            }
            let total = privacy.ok().map(|privacy| privacy.total);
            return payment(document, &place, amounts, total).map(Request::Fixed);
        }
        (Some(horizon), None) => ("horizon", horizon),
        (None, Some(half_after)) => ("half_after", half_after),
        (Some(_), Some(_)) => {
            return Err(document.not_one_of(place, &["horizon", "half_after"], true));
        }
    };
    let priced = [amounts.epsilon, amounts.delta, amounts.rho]
        .into_iter()
        .flatten()
        .map(|price| price.span())
        .next();
    if let Some(priced) = priced {
        let what = format!("`{key}` already determines the price of a window");
        return Err(document.fault(priced, what, "keep only one of them"));
    }
    if let Some((what, hint)) = refusal(release, key, privacy) {
        return Err(document.fault(length.span(), what, hint));
    }
    let length = document.required(&place, key, Some(length), values::positive_duration)?;
    let Some(grid) = grid else {
        let what = "needs the length of a window, which is not known here";
        return Err(document
            .reported()
            .unwrap_or_else(|| document.fault(length.span(), what, "give a fixed price")));
    };
    let whole = micros(*length.get_ref()).unsigned_abs();
    let pane = micros(grid.length()).unsigned_abs();
    let windows = NonZeroU64::new(whole / pane.max(1)).filter(|_| whole.is_multiple_of(pane));
    let Some(windows) = windows else {
        let what = format!(
            "must be a multiple of windows.length, {}",
            bernstream_synopsis::clock::show(grid.length())
        );
        return Err(document.fault(length.span(), what, ""));
    };
    let share = share?.map(Spanned::into_inner);
    let windows = Spanned::new(length.span(), windows);
    Ok(if key == "horizon" {
        Request::Horizon(windows, share)
    } else {
        Request::Decaying(windows, share)
    })
}

/// Why this release cannot have a share of the total, and what to do.
fn refusal(
    release: &file::Release,
    key: &str,
    privacy: Checked<&Privacy>,
) -> Option<(&'static str, &'static str)> {
    let is_decaying = key == "half_after";
    let over = release.windows.as_ref().map(Spanned::get_ref);
    let privacy = privacy.ok();
    if privacy.is_some_and(|privacy| privacy.unit == Unit::Record) {
        let what = "divides the total of a block among its windows, but for single records every window is a block";
        return Some((
            what,
            "give the price of a window, which can be the whole total",
        ));
    }
    if privacy.is_some_and(|privacy| matches!(privacy.total, Price::Slots(_))) {
        let what =
            "divides a total, but a declared plan has a number of windows, `privacy.windows`";
        return Some((what, "give the noise's own price in `epsilon` or `rho`"));
    }
    if release.sampled.is_some() {
        return Some((
            "a release with a sampled sensitivity needs a fixed price",
            "give `epsilon`",
        ));
    }
    if is_decaying
        && matches!(
            release.scale.as_ref().map(Spanned::get_ref),
            Some(file::Scale::Paper)
        )
    {
        return Some((
            "the scale of the papers needs a fixed price",
            r#"remove scale = "paper""#,
        ));
    }
    if is_decaying
        && matches!(
            over,
            Some(file::WindowKind::Hopping(_) | file::WindowKind::Cumulative(_))
        )
    {
        let what =
            "changes the noise from window to window, but overlapping windows share their noise";
        return Some((what, r#"use `horizon`, or windows = "tumbling""#));
    }
    None
}

/// The share of a block of each release.
fn shares(
    document: &mut Document<'_>,
    privacy: &Privacy,
    grid: Option<Grid>,
    written: &[Checked<Request>],
    choices: &[Vec<Epsilon>],
) -> Checked<Vec<Price>> {
    let mut asked = Vec::new();
    let mut fixed = 0..0;
    let mut divided = 0..0;
    for (written, choices) in written.iter().zip(choices) {
        asked.push(match written.as_ref().map_err(|reported| *reported)? {
            Request::Fixed(payment) => {
                fixed = payment.span();
                PolicyInput::Fixed(
                    choices
                        .iter()
                        .copied()
                        .fold(payment.get_ref().price(), Price::with_pure),
                )
            }
            Request::Horizon(windows, share) | Request::Decaying(windows, share) => {
                divided = windows.span();
                share.map_or(PolicyInput::Rest, PolicyInput::Part)
            }
        });
    }
    let windows = match (&privacy.unit, grid) {
        (
            Unit::User {
                per: Period::Every(per),
                ..
            },
            Some(grid),
        ) => Some(most_blocks(*per, grid.length())),
        _ => None,
    };
    divide(privacy.limit(), windows, &asked).map_err(|unfair| match unfair {
        Unfair::Endless => document.fault(fixed, unfair.to_string(), "give it a `horizon`"),
        Unfair::TooMuch | Unfair::Nothing => {
            document.fault(divided, unfair.to_string(), "lower prices or shares")
        }
    })
}

/// The price of the noise in the first window.
fn first(
    document: &mut Document<'_>,
    place: Range<usize>,
    policy: Option<Policy>,
    choices: &[Epsilon],
) -> Checked<Pricing> {
    let price = policy.and_then(|policy| policy.price(0));
    let Some(price) = price else {
        let what = "leaves nothing for a window, because prices are rounded down";
        return Err(document.fault(place, what, "use a shorter one, or raise the total"));
    };
    let own = choices.iter().try_fold(price, |left, choice| {
        left.checked_sub(left.of_pure(*choice)?)
    });
    match own.filter(|own| !own.is_zero()) {
        Some(own) => Ok((Spanned::new(place, Payment::Own(own)), policy)),
        None => {
            let what = format!(
                "leaves {price} for the first window, which does not pay for its private choices"
            );
            Err(document.fault(
                place,
                what,
                "lower the prices of the choices, or remove them",
            ))
        }
    }
}

/// The prices of the private choices that can be read; their faults are recorded elsewhere.
fn choices(release: &file::Release) -> Vec<Epsilon> {
    let of_order = release
        .private_order
        .as_ref()
        .and_then(|choice| choice.get_ref().epsilon.as_ref());
    let density = release
        .density
        .as_ref()
        .and_then(|density| density.get_ref().private_bandwidths.as_ref());
    let of_bandwidths = density.and_then(|choice| choice.get_ref().epsilon.as_ref());
    [of_bandwidths, of_order]
        .into_iter()
        .flatten()
        .filter_map(|price| values::epsilon(*price.get_ref()).ok())
        .collect()
}
