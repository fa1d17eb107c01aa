//! What may be spent and what a window pays, each in one of four kinds: written -> used.

use std::ops::Range;

use toml::Spanned;

use crate::config::document::Document;
use crate::config::file::Field;
use crate::config::forms;
use crate::config::sections::Found;
use crate::mechanism::calibrate::{Delta, Epsilon, Rho};
use crate::mechanism::price::Price;

/// What the noise of a window is paid with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payment {
    /// Written in the kind of the total.
    Own(Price),
    /// What the noise takes of a plan that was declared beforehand; a window of the plan is charged.
    Planned(Price),
    /// Written in `epsilon` where the total is in `rho`: for mechanisms of pure differential privacy only.
    Converted(Epsilon),
}

impl Payment {
    /// What is charged, in the kind of the total.
    pub fn price(self) -> Price {
        match self {
            Payment::Own(price) => price,
            Payment::Planned(_) => Price::SLOT,
            Payment::Converted(epsilon) => Price::Concentrated(Rho::ZERO).with_pure(epsilon),
        }
    }

    /// What a mechanism may take for it, in a kind that it is calibrated in.
    pub fn own(self) -> Price {
        match self {
            Payment::Own(price) | Payment::Planned(price) => price,
            Payment::Converted(epsilon) => Price::Pure(epsilon),
        }
    }

    /// Whether it pays for noise that gives no pure differential privacy.
    pub fn pays_for_gaussian(self) -> bool {
        match self.own() {
            Price::Approximate { delta, .. } => delta > Delta::ZERO,
            Price::Concentrated(_) => true,
            Price::Pure(_) | Price::Slots(_) => false,
        }
    }

    /// What a mechanism of pure differential privacy may take for it.
    pub fn epsilon(self) -> Epsilon {
        self.own().pure()
    }
}

/// The three amounts, as written in one table.
pub(super) struct Amounts {
    pub epsilon: Field<f64>,
    pub delta: Field<f64>,
    pub rho: Field<f64>,
}

/// The total of `[privacy]`: its keys say of which kind.
pub(super) fn total(document: &mut Document<'_>, place: &Range<usize>, written: Amounts) -> Found<Price> {
    let Amounts { epsilon, delta, rho } = written;
    match (epsilon, delta, rho) {
        (None, None, Some(rho)) => {
            document.required(place, "rho", Some(rho), forms::rho).map(|rho| Price::Concentrated(rho.into_inner()))
        }
        (_, _, Some(rho)) => {
            let what = "is a kind of its own: a budget has `epsilon`, `epsilon` and `delta`, or `rho`";
            Err(document.fault(rho.span(), what, "leave out the one or the other"))
        }
        (None, None, None) => Err(document.not_one_of(place.clone(), &["epsilon", "rho"], false)),
        (epsilon, delta, None) => {
            let epsilon = document.required(place, "epsilon", epsilon, forms::epsilon);
            let delta = document.optional(delta, forms::delta);
            let (epsilon, delta) = (epsilon?.into_inner(), delta?.map(Spanned::into_inner));
            Ok(delta.map_or(Price::Pure(epsilon), |delta| Price::Approximate { epsilon, delta }))
        }
    }
}

/// The price of `[release]` where that is the total; where the total is at fault, of the kind that its own keys say.
pub(super) fn payment(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: Amounts,
    total: Option<Price>,
) -> Found<Spanned<Payment>> {
    let Amounts { epsilon, delta, rho } = written;
    let total = total.unwrap_or(match (&delta, &rho) {
        (_, Some(_)) => Price::Concentrated(Rho::ZERO),
        (Some(_), None) => Price::Approximate { epsilon: Epsilon::ZERO, delta: Delta::ZERO },
        (None, None) => Price::Pure(Epsilon::ZERO),
    });
    if let (Price::Pure(_) | Price::Approximate { .. }, Some(rho)) = (total, &rho) {
        let hint = "give the price in `epsilon`, or give [privacy] `rho` in place of its total";
        document.fault(rho.span(), "[privacy] has `epsilon`, which pays for no rho", hint);
    }
    match (total, &delta) {
        (Price::Pure(_), Some(delta)) => {
            let hint = "leave it out, or add `delta` to [privacy]";
            document.fault(delta.span(), "[privacy] has `epsilon` alone, a pure budget: it pays for no delta", hint);
        }
        (Price::Slots(_), Some(delta)) => {
            let hint = "give the noise's own price in `rho`, or in `epsilon` for noise of pure differential privacy";
            document.fault(delta.span(), "a window of a declared plan has no delta of its own", hint);
        }
        (Price::Concentrated(_), Some(delta)) => {
            let hint = "give the price in `rho`; for noise of pure differential privacy, `epsilon` alone will do";
            document.fault(delta.span(), "[privacy] has `rho`, which pays for no delta", hint);
        }
        _ => {}
    }
    match (total, epsilon, rho) {
        (Price::Pure(_), epsilon, _) => document
            .required(place, "epsilon", epsilon, forms::epsilon)
            .map(|epsilon| at(epsilon, |epsilon| Payment::Own(Price::Pure(epsilon)))),
        (Price::Approximate { .. }, epsilon, _) => {
            let epsilon = document.required(place, "epsilon", epsilon, forms::epsilon);
            let delta = document.optional(delta, forms::delta);
            let (epsilon, delta) = (epsilon?, delta?.map_or(Delta::ZERO, Spanned::into_inner));
            Ok(at(epsilon, |epsilon| Payment::Own(Price::Approximate { epsilon, delta })))
        }
        (Price::Slots(_), Some(epsilon), None) => document
            .required(place, "epsilon", Some(epsilon), forms::epsilon)
            .map(|epsilon| at(epsilon, |epsilon| Payment::Planned(Price::Pure(epsilon)))),
        (Price::Slots(_), None, Some(rho)) => document
            .required(place, "rho", Some(rho), forms::rho)
            .map(|rho| at(rho, |rho| Payment::Planned(Price::Concentrated(rho)))),
        (Price::Concentrated(_), Some(epsilon), None) => document
            .required(place, "epsilon", Some(epsilon), forms::epsilon)
            .map(|epsilon| at(epsilon, Payment::Converted)),
        (Price::Concentrated(_), None, Some(rho)) => document
            .required(place, "rho", Some(rho), forms::rho)
            .map(|rho| at(rho, |rho| Payment::Own(Price::Concentrated(rho)))),
        (Price::Slots(_) | Price::Concentrated(_), epsilon, _) => {
            Err(document.not_one_of(place.clone(), &["rho", "epsilon"], epsilon.is_some()))
        }
    }
}

/// What `make` makes of a value, at the value's place.
fn at<T, U>(value: Spanned<T>, make: impl FnOnce(T) -> U) -> Spanned<U> {
    let place = value.span();
    Spanned::new(place, make(value.into_inner()))
}
