//! The fixed price of a window, in one of four kinds.

use std::ops::Range;

use crate::read::budget::Amounts;
use crate::settings::Payment;
use crate::text::{Checked, Document, Spanned, values};
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
use bernstream_synopsis::price::Price;

/// The price of a release, in the kind of `total`; if the total has a fault, in the kind that the keys of the price determine.
pub fn payment(
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
    let total = total.unwrap_or(match (&delta, &rho) {
        (_, Some(_)) => Price::Concentrated(Rho::ZERO),
        (Some(_), None) => Price::Approximate {
            epsilon: Epsilon::ZERO,
            delta: Delta::ZERO,
        },
        (None, None) => Price::Pure(Epsilon::ZERO),
    });
    if let (Price::Pure(_) | Price::Approximate { .. }, Some(rho)) = (total, &rho) {
        let hint = "give the price in `epsilon`, or give [privacy] `rho` in place of its total";
        document.fault(
            rho.span(),
            "[privacy] has `epsilon`, which cannot pay for a rho",
            hint,
        );
    }
    match (total, &delta) {
        (Price::Pure(_), Some(delta)) => {
            let hint = "remove it, or add `delta` to [privacy]";
            document.fault(
                delta.span(),
                "[privacy] has only `epsilon`, a pure budget, which cannot pay for a delta",
                hint,
            );
        }
        (Price::Slots(_), Some(delta)) => {
            let hint = "give the noise's own price in `rho`, or in `epsilon` for noise of pure differential privacy";
            document.fault(
                delta.span(),
                "a window of a declared plan has no delta of its own",
                hint,
            );
        }
        (Price::Concentrated(_), Some(delta)) => {
            let hint = "give the price in `rho`; for noise of pure differential privacy, `epsilon` alone will do";
            document.fault(
                delta.span(),
                "[privacy] has `rho`, which cannot pay for a delta",
                hint,
            );
        }
        _ => {}
    }
    match (total, epsilon, rho) {
        (Price::Pure(_), epsilon, _) => document
            .required(place, "epsilon", epsilon, values::epsilon)
            .map(|epsilon| at(epsilon, |epsilon| Payment::Own(Price::Pure(epsilon)))),
        (Price::Approximate { .. }, epsilon, _) => {
            let epsilon = document.required(place, "epsilon", epsilon, values::epsilon);
            let delta = document.optional(delta, values::delta);
            let epsilon = epsilon?;
            let delta = delta?.map_or(Delta::ZERO, Spanned::into_inner);
            Ok(at(epsilon, |epsilon| {
                Payment::Own(Price::Approximate { epsilon, delta })
            }))
        }
        (Price::Slots(_), Some(epsilon), None) => document
            .required(place, "epsilon", Some(epsilon), values::epsilon)
            .map(|epsilon| at(epsilon, |epsilon| Payment::Planned(Price::Pure(epsilon)))),
        (Price::Slots(_), None, Some(rho)) => document
            .required(place, "rho", Some(rho), values::rho)
            .map(|rho| at(rho, |rho| Payment::Planned(Price::Concentrated(rho)))),
        (Price::Concentrated(_), Some(epsilon), None) => document
            .required(place, "epsilon", Some(epsilon), values::epsilon)
            .map(|epsilon| at(epsilon, Payment::converted)),
        (Price::Concentrated(_), None, Some(rho)) => document
            .required(place, "rho", Some(rho), values::rho)
            .map(|rho| at(rho, |rho| Payment::Own(Price::Concentrated(rho)))),
        (Price::Slots(_) | Price::Concentrated(_), epsilon, _) => {
            Err(document.not_one_of(place.clone(), &["rho", "epsilon"], epsilon.is_some()))
        }
    }
}

/// Applies `make` to a value, and keeps its position.
fn at<T, U>(value: Spanned<T>, make: impl FnOnce(T) -> U) -> Spanned<U> {
    let place = value.span();
    Spanned::new(place, make(value.into_inner()))
}
