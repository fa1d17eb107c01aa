//! The total of `[privacy]`, and the composition of prices.

use std::ops::Range;

use crate::file::Composition;
use crate::recorded::RecordedSettings;
use crate::settings::DRAWN;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_noise::accountant::{concentrated, gaussian};
use bernstream_synopsis::description::{ImpliedPrivacy, PrivacyDefinition};
use bernstream_synopsis::price::Price;

/// The three keys of a price, as written in one table.
pub struct Amounts {
    pub epsilon: Field<f64>,
    pub delta: Field<f64>,
    pub rho: Field<f64>,
}

/// The total that a block may spend, and the definition of privacy that this gives.
pub struct BudgetSpec {
    pub total: Price,
    pub definition: PrivacyDefinition,
    pub implies: Option<ImpliedPrivacy>,
}

/// `epsilon`, `delta`, `rho`, `composition` and `windows` of `[privacy]`.
pub fn read_budget(
    document: &mut Document<'_>,
    place: &Range<usize>,
    amounts: Amounts,
    composition: Field<Composition>,
    windows: Field<u64>,
    recorded: Option<&RecordedSettings>,
) -> Checked<BudgetSpec> {
    let kind = composition
        .as_ref()
        .map_or(Composition::Sum, |composition| *composition.get_ref());
    let composition_place = composition.map_or(place.clone(), |composition| composition.span());
    if let Some(windows) = &windows
        && kind != Composition::Plan
    {
        let hint = r#"remove it, or add composition = "plan""#;
        return Err(document.fault(
            windows.span(),
            "is the length of a declared plan, but there is no plan",
            hint,
        ));
    }
    if kind == Composition::Sum {
        let total = read_total(document, place, amounts)?;
        return Ok(BudgetSpec {
            total,
            definition: PrivacyDefinition::from_total(total),
            implies: None,
        });
    }
    if let Some(rho) = amounts.rho {
        let what =
            "composes by itself: the other compositions derive a rho from `epsilon` and `delta`";
        return Err(document.fault(rho.span(), what, "keep only one of them"));
    }
    let epsilon = document.required(place, "epsilon", amounts.epsilon, values::epsilon);
    let delta = document.required(place, "delta", amounts.delta, values::delta);
    let windows = match kind {
        Composition::Plan => Some(document.required(place, "windows", windows, values::count)),
        _ => None,
    };
    let epsilon = epsilon?.into_inner();
    let delta = delta?.into_inner();
    let windows = windows.transpose()?;
    let implies = Some(ImpliedPrivacy { epsilon, delta });
    if let Some(windows) = windows {
        return Ok(BudgetSpec {
            total: Price::Slots(windows.into_inner()),
            definition: PrivacyDefinition::Planned,
            implies,
        });
    }
    let mut rho;
    let definition;
    if kind == Composition::Gaussian {
        definition = PrivacyDefinition::Gaussian;
        rho = gaussian::rho_for(DRAWN, epsilon, delta);
        if let Some(recorded) = recorded {
            rho = recorded.kept_total(ImpliedPrivacy { epsilon, delta }, rho);
        }
    } else {
        definition = PrivacyDefinition::Concentrated;
        rho = concentrated::rho_for(epsilon, delta);
    }
    let total = Price::Concentrated(rho);
    if total.is_zero() {
        let what = format!(
            "leaves no rho: epsilon = {epsilon} with delta = {delta} is too small for this composition"
        );
        let hint = r#"raise them, or use composition = "sum""#;
        return Err(document.fault(composition_place, what, hint));
    }
    Ok(BudgetSpec {
        total,
        definition,
        implies,
    })
}

/// The total of `[privacy]`: its keys determine its kind.
fn read_total(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: Amounts,
) -> Checked<Price> {
    let Amounts {
        epsilon,
        delta,
        rho,
    } = written;
    let has_epsilon = epsilon.is_some() || delta.is_some();
    if let Some(rho) = rho {
        if has_epsilon {
            let what = "cannot be combined with others: a budget has `epsilon`, `epsilon` and `delta`, or `rho`";
            return Err(document.fault(rho.span(), what, "keep only one of them"));
        }
        let rho = document.required(place, "rho", Some(rho), values::rho)?;
        return Ok(Price::Concentrated(rho.into_inner()));
    }
    if !has_epsilon {
        return Err(document.not_one_of(place.clone(), &["epsilon", "rho"], false));
    }
    let epsilon = document.required(place, "epsilon", epsilon, values::epsilon);
    let delta = document.optional(delta, values::delta);
    let epsilon = epsilon?.into_inner();
    Ok(match delta?.map(Spanned::into_inner) {
        Some(delta) => Price::Approximate { epsilon, delta },
        None => Price::Pure(epsilon),
    })
}
