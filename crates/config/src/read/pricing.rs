//! `epsilon`, `delta`, `rho`, `horizon`, `half_after` and `share` of the releases: the prices of all windows.

use std::num::NonZeroU64;

use crate::file;
use crate::read::as_checked;
use crate::read::budget::Amounts;
use crate::read::payment::read_payment;
use crate::settings::{Payment, PrivacySettings, PrivacyUnit};
use crate::text::{Checked, Document, Spanned, values};
use bernstream_noise::accountant::policy::{
    DivisionError, PolicyInput, PricePolicy, divide_budget,
};
use bernstream_synopsis::Fraction;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::clock::saturating_micros;
use bernstream_synopsis::grid::SpanGrid;
use bernstream_synopsis::price::Price;

/// The prices of the windows of a release.
pub struct Pricing {
    /// The price of the noise in the first window.
    pub payment: Spanned<Payment>,
    /// The prices of all windows; `None` if the price is fixed.
    pub policy: Option<PricePolicy>,
}

/// The price that one release asks for.
enum PriceRequest {
    Fixed(Spanned<Payment>),
    Divided(DividedRequest),
}

/// A share of the total that is divided among windows.
struct DividedRequest {
    division: Division,
    windows: Spanned<NonZeroU64>,
    share: Option<Fraction>,
}

/// The way in which a share is divided among windows.
#[derive(Clone, Copy, PartialEq)]
enum Division {
    /// Evenly, among so many.
    Horizon,
    /// In ever smaller parts, half of it among the first so many.
    HalfAfter,
}

/// The price that one release asks for, and the prices of its private choices.
struct ReleaseRequest {
    price: Checked<PriceRequest>,
    choices: Vec<Epsilon>,
}

impl Division {
    fn key(self) -> &'static str {
        match self {
            Division::Horizon => "horizon",
            Division::HalfAfter => "half_after",
        }
    }

    fn policy(self, share: Price, windows: NonZeroU64) -> PricePolicy {
        match self {
            Division::Horizon => PricePolicy::Horizon { share, windows },
            Division::HalfAfter => PricePolicy::Decaying {
                share,
                half_after: windows,
            },
        }
    }
}

/// Reads the prices of all releases and divides the total among them. `grid` is `None` if it has a fault.
pub fn read_pricing(
    document: &mut Document<'_>,
    releases: &mut [Spanned<file::Release>],
    privacy: Checked<&PrivacySettings>,
    grid: Option<SpanGrid>,
) -> Vec<Checked<Pricing>> {
    let mut requests = Vec::new();
    let mut is_divided = false;
    for release in releases {
        let choices = choice_prices(release.get_ref());
        let price = read_request(document, release, privacy, grid);
        is_divided |= matches!(price, Ok(PriceRequest::Divided(_)));
        requests.push(ReleaseRequest { price, choices });
    }
    let shares = match privacy {
        Ok(privacy) if is_divided => block_shares(document, privacy, grid, &requests),
        Ok(_) => Ok(Vec::new()),
        Err(reported) => Err(reported),
    };
    let mut prices = Vec::new();
    for (at, request) in requests.into_iter().enumerate() {
        prices.push(match request.price {
            Ok(PriceRequest::Fixed(payment)) => Ok(Pricing {
                payment,
                policy: None,
            }),
            Ok(PriceRequest::Divided(divided)) => match &shares {
                Ok(shares) => {
                    let share = shares.get(at).copied();
                    divided_pricing(document, divided, share, &request.choices)
                }
                Err(reported) => Err(*reported),
            },
            Err(reported) => Err(reported),
        });
    }
    prices
}

/// The request of one release.
fn read_request(
    document: &mut Document<'_>,
    release: &mut Spanned<file::Release>,
    privacy: Checked<&PrivacySettings>,
    grid: Option<SpanGrid>,
) -> Checked<PriceRequest> {
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
    if horizon.is_some() && half_after.is_some() {
        return Err(document.not_one_of(place, &["horizon", "half_after"], true));
    }
    let division = if horizon.is_some() {
        Division::Horizon
    } else {
        Division::HalfAfter
    };
    let Some(length) = horizon.or(half_after) else {
        if let Ok(Some(share)) = share {
            let hint = "add `horizon` or `half_after`, or remove it";
            document.fault(
                share.span(),
                "is a share of the total, but this release has a fixed price",
                hint,
            );
        }
        let total = privacy.ok().map(|privacy| privacy.total);
        return read_payment(document, &place, amounts, total).map(PriceRequest::Fixed);
    };
    let key = division.key();
    if let Some(price) = amounts.epsilon.or(amounts.delta).or(amounts.rho) {
        let what = format!("`{key}` already determines the price of a window");
        return Err(document.fault(price.span(), what, "keep only one of them"));
    }
    if let Some(PricingRefusal { what, hint }) = refusal(release, division, privacy) {
        return Err(document.fault(length.span(), what, hint));
    }
    let length = document.required(&place, key, Some(length), values::positive_duration)?;
    let Some(grid) = grid else {
        let what = "needs the length of a window, which is not known here";
        return Err(document
            .reported()
            .unwrap_or_else(|| document.fault(length.span(), what, "give a fixed price")));
    };
    let whole = saturating_micros(*length.get_ref()).unsigned_abs();
    let pane = saturating_micros(grid.length()).unsigned_abs();
    let windows = NonZeroU64::new(whole / pane.max(1));
    let Some(windows) = windows.filter(|_| whole.is_multiple_of(pane)) else {
        let what = format!(
            "must be a multiple of windows.length, {}",
            bernstream_synopsis::clock::format_duration(grid.length())
        );
        return Err(document.fault(length.span(), what, ""));
    };
    Ok(PriceRequest::Divided(DividedRequest {
        division,
        windows: Spanned::new(length.span(), windows),
        share: share?.map(Spanned::into_inner),
    }))
}

/// The reason why a release cannot have a share of the total, and what to do.
struct PricingRefusal {
    what: &'static str,
    hint: &'static str,
}

fn refusal(
    release: &file::Release,
    division: Division,
    privacy: Checked<&PrivacySettings>,
) -> Option<PricingRefusal> {
    if let Ok(privacy) = privacy {
        if privacy.unit == PrivacyUnit::Record {
            return Some(PricingRefusal {
                what: "divides the total of a block among its windows, but for single records every window is a block",
                hint: "give the price of a window, which can be the whole total",
            });
        }
        if matches!(privacy.total, Price::Slots(_)) {
            return Some(PricingRefusal {
                what: "divides a total, but a declared plan has a number of windows, `privacy.windows`",
                hint: "give the noise's own price in `epsilon` or `rho`",
            });
        }
    }
    if release.sampled.is_some() {
        return Some(PricingRefusal {
            what: "a release with a sampled sensitivity needs a fixed price",
            hint: "give `epsilon`",
        });
    }
    if division == Division::Horizon {
        return None;
    }
    let scale = release.scale.as_ref().map(Spanned::get_ref);
    if matches!(scale, Some(file::WrittenScale::Paper)) {
        return Some(PricingRefusal {
            what: "the scale of the papers needs a fixed price",
            hint: r#"remove scale = "paper""#,
        });
    }
    match release.windows.as_ref().map(Spanned::get_ref) {
        Some(file::WrittenWindowKind::Hopping(_) | file::WrittenWindowKind::Cumulative(_)) => {
            Some(PricingRefusal {
                what: "changes the noise from window to window, but overlapping windows share their noise",
                hint: r#"use `horizon`, or windows = "tumbling""#,
            })
        }
        Some(file::WrittenWindowKind::Tumbling) | None => None,
    }
}

/// The share of a block of each release.
fn block_shares(
    document: &mut Document<'_>,
    privacy: &PrivacySettings,
    grid: Option<SpanGrid>,
    requests: &[ReleaseRequest],
) -> Checked<Vec<Price>> {
    let mut asked = Vec::new();
    let mut fixed = 0..0;
    let mut divided = 0..0;
    for request in requests {
        asked.push(match as_checked(&request.price)? {
            PriceRequest::Fixed(payment) => {
                fixed = payment.span();
                let mut price = payment.get_ref().charged_price();
                for choice in &request.choices {
                    price = price.with_pure(*choice);
                }
                PolicyInput::Fixed(price)
            }
            PriceRequest::Divided(request) => {
                divided = request.windows.span();
                request.share.map_or(PolicyInput::Rest, PolicyInput::Part)
            }
        });
    }
    let windows = privacy.windows_of_period(grid);
    divide_budget(privacy.spendable_limit(), windows, &asked).map_err(|unfair| match unfair {
        DivisionError::Endless => document.fault(fixed, unfair.to_string(), "give it a `horizon`"),
        DivisionError::TooMuch | DivisionError::Nothing => {
            document.fault(divided, unfair.to_string(), "lower prices or shares")
        }
    })
}

/// The prices of a release that has this share of a block.
fn divided_pricing(
    document: &mut Document<'_>,
    request: DividedRequest,
    share: Option<Price>,
    choices: &[Epsilon],
) -> Checked<Pricing> {
    let place = request.windows.span();
    let windows = request.windows.into_inner();
    let policy = share.map(|share| request.division.policy(share, windows));
    let Some(price) = policy.and_then(|policy| policy.window_price(0)) else {
        let what = "leaves nothing for a window, because prices are rounded down";
        return Err(document.fault(place, what, "use a shorter one, or raise the total"));
    };
    let Some(own) = left_for_noise(price, choices) else {
        let what = format!(
            "leaves {price} for the first window, which does not pay for its private choices"
        );
        return Err(document.fault(
            place,
            what,
            "lower the prices of the choices, or remove them",
        ));
    };
    Ok(Pricing {
        payment: Spanned::new(place, Payment::Own(own)),
        policy,
    })
}

/// The part of a price that private choices leave for the noise; `None` if that is nothing.
fn left_for_noise(price: Price, choices: &[Epsilon]) -> Option<Price> {
    let mut left = price;
    for choice in choices {
        left = left.checked_sub(left.of_pure(*choice)?)?;
    }
    (!left.is_zero()).then_some(left)
}

/// The prices of the private choices that can be read; their faults are recorded elsewhere.
fn choice_prices(release: &file::Release) -> Vec<Epsilon> {
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
