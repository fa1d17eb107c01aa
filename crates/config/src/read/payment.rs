//! The fixed price of a window, in one of four kinds.

use std::ops::Range;

use crate::read::budget::Amounts;
use crate::settings::Payment;
use crate::text::{Checked, Document, Spanned, values};
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
use bernstream_synopsis::price::Price;

/// The price of a release, in the kind of `total`; if the total has a fault, in the kind that the keys of the price determine.
pub fn read_payment(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: Amounts,
    total: Option<Price>,
) -> Checked<Spanned<Payment>> {
    let Amounts {
        epsilon,
        delta,
        rho,
    } = written;
    let total = total.unwrap_or(if rho.is_some() {
        Price::Concentrated(Rho::ZERO)
    } else if delta.is_some() {
        Price::Approximate {
            epsilon: Epsilon::ZERO,
            delta: Delta::ZERO,
        }
    } else {
        Price::Pure(Epsilon::ZERO)
    });
    if let Some(rho) = &rho
        && matches!(total, Price::Pure(_) | Price::Approximate { .. })
    {
        let hint = "give the price in `epsilon`, or give [privacy] `rho` in place of its total";
        document.fault(
            rho.span(),
            "[privacy] has `epsilon`, which cannot pay for a rho",
            hint,
        );
    }
    if let Some(delta) = &delta {
        total_pays_for_delta(document, delta.span(), total);
    }
    match total {
        Price::Pure(_) => {
            let epsilon = document.required(place, "epsilon", epsilon, values::epsilon)?;
            let paid = Payment::Own(Price::Pure(*epsilon.get_ref()));
            Ok(Spanned::new(epsilon.span(), paid))
        }
        Price::Approximate { .. } => {
            let epsilon = document.required(place, "epsilon", epsilon, values::epsilon);
            let delta = document.optional(delta, values::delta);
            let epsilon = epsilon?;
            let paid = Payment::Own(Price::Approximate {
                epsilon: *epsilon.get_ref(),
                delta: delta?.map_or(Delta::ZERO, Spanned::into_inner),
            });
            Ok(Spanned::new(epsilon.span(), paid))
        }
        Price::Slots(_) | Price::Concentrated(_) => {
            if epsilon.is_some() == rho.is_some() {
                let keys = ["rho", "epsilon"];
                return Err(document.not_one_of(place.clone(), &keys, epsilon.is_some()));
            }
            let is_planned = matches!(total, Price::Slots(_));
            if epsilon.is_some() {
                let epsilon = document.required(place, "epsilon", epsilon, values::epsilon)?;
                let paid = if is_planned {
                    Payment::Planned(Price::Pure(*epsilon.get_ref()))
                } else {
                    Payment::converted_from(*epsilon.get_ref())
                };
                return Ok(Spanned::new(epsilon.span(), paid));
            }
            let rho = document.required(place, "rho", rho, values::rho)?;
            let price = Price::Concentrated(*rho.get_ref());
            let paid = if is_planned {
                Payment::Planned(price)
            } else {
                Payment::Own(price)
            };
            Ok(Spanned::new(rho.span(), paid))
        }
    }
}

/// Checks that the total is one of the kind that can pay for a delta.
fn total_pays_for_delta(document: &mut Document<'_>, place: Range<usize>, total: Price) {
    match total {
        Price::Approximate { .. } => {}
        Price::Pure(_) => {
            let what = "[privacy] has only `epsilon`, a pure budget, which cannot pay for a delta";
            document.fault(place, what, "remove it, or add `delta` to [privacy]");
        }
        Price::Slots(_) => {
            let what = "a window of a declared plan has no delta of its own";
            let hint = "give the noise's own price in `rho`, or in `epsilon` for noise of pure differential privacy";
            document.fault(place, what, hint);
        }
        Price::Concentrated(_) => {
            let what = "[privacy] has `rho`, which cannot pay for a delta";
            let hint = "give the price in `rho`; for noise of pure differential privacy, `epsilon` alone will do";
            document.fault(place, what, hint);
        }
    }
}
