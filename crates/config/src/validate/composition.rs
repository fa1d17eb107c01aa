//! The conditions that a composition theorem puts on the releases.

use crate::file;
use crate::read::draft::ReleaseDraft;
use crate::settings::{FINEST, MOST_DRAWN, PrivacySettings, ReleaseSettings, touched_values};
use crate::text::{Checked, Document};
use bernstream_noise::Mechanism;
use bernstream_noise::accountant::gaussian::DrawnNoise;
use bernstream_noise::accountant::plan;
use bernstream_noise::accountant::plan::ReleaseClass;
use bernstream_noise::accountant::policy::PricePolicy;
use bernstream_noise::calibrate::Scale;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::description::{ImpliedPrivacy, PrivacyDefinition};
use bernstream_synopsis::grid::SpanGrid;
use bernstream_synopsis::price::Price;

/// Checks the conditions of the composition that the budget uses.
pub fn composition_holds(
    document: &mut Document<'_>,
    privacy: &PrivacySettings,
    drafts: &[ReleaseDraft],
    grid: Option<SpanGrid>,
) -> Checked<()> {
    match privacy.definition {
        PrivacyDefinition::Gaussian => noise_is_gaussian(document, privacy, drafts, grid),
        PrivacyDefinition::Planned => plan_is_within(document, privacy, drafts),
        _ => Ok(()),
    }
}

/// All noise is Gaussian, within the limits of [`DRAWN`](crate::settings::DRAWN).
fn noise_is_gaussian(
    document: &mut Document<'_>,
    privacy: &PrivacySettings,
    drafts: &[ReleaseDraft],
    grid: Option<SpanGrid>,
) -> Checked<()> {
    for draft in drafts {
        if let Some(place) = draft.choice_place() {
            let what = "is not Gaussian noise, and composition = \"gaussian\" allows no other";
            return Err(document.fault(
                place,
                what,
                r#"remove it, or use composition = "concentrated""#,
            ));
        }
        if draft.noise.noise_distribution() != NoiseDistribution::DiscreteGaussian {
            let what = "its noise is not Gaussian, and composition = \"gaussian\" allows no other";
            let hint = r#"use noise = "gaussian", "gaussian_cells" or "gaussian_process", or composition = "concentrated""#;
            return Err(document.fault(draft.payment.span(), what, hint));
        }
        let noise = draft_mechanisms(privacy, draft)
            .into_iter()
            .find(|noise| noise.scale() < FINEST);
        if let Some(noise) = noise {
            let what = format!(
                "buys noise of {} grid units, and below {} rounding to integers costs more than composition = \"gaussian\" saves",
                noise.scale().units(),
                FINEST.units()
            );
            let hint = r#"lower the price, or use composition = "concentrated""#;
            return Err(document.fault(draft.payment.span(), what, hint));
        }
    }
    let a_window = touched_values(
        privacy,
        drafts
            .iter()
            .map(|draft| draft.function.get_ref().target.shape().value_count()),
    );
    let windows = privacy.windows_of_period(grid).unwrap_or(1);
    if a_window.saturating_mul(windows) > MOST_DRAWN
        && let Some(draft) = drafts.first()
    {
        let what =
            format!("all releases together add noise to more than {MOST_DRAWN} values of a block");
        return Err(document.fault(
            draft.size.clone(),
            what,
            r#"use composition = "concentrated""#,
        ));
    }
    Ok(())
}

/// The whole declared plan is within its epsilon and delta.
fn plan_is_within(
    document: &mut Document<'_>,
    privacy: &PrivacySettings,
    drafts: &[ReleaseDraft],
) -> Checked<()> {
    let Some(implied) = privacy.implies else {
        return Ok(());
    };
    let Price::Slots(windows) = privacy.total else {
        return Ok(());
    };
    for draft in drafts {
        if let Some(over) = &draft.windows
            && !matches!(over.get_ref(), file::WrittenWindowKind::Tumbling)
        {
            let what = "reads panes several times, and a declared plan counts each window once";
            return Err(document.fault(
                over.span(),
                what,
                r#"use "tumbling", or composition = "concentrated""#,
            ));
        }
    }
    let classes: Vec<(ReleaseClass, u64)> = drafts
        .iter()
        .flat_map(|draft| privacy_classes(privacy, draft))
        .collect();
    let ImpliedPrivacy { epsilon, delta } = implied;
    let all = classes
        .iter()
        .map(|(class, count)| (*class, count.saturating_mul(windows)));
    if !plan::AccountantPlan::new(all).is_within(epsilon, delta)
        && let Some(draft) = drafts.first()
    {
        let what = match plan::longest_horizon(&classes, epsilon, delta) {
            0 => "not even one window of these prices fits".to_owned(),
            most => format!("at most {most} windows of these prices fit"),
        };
        let what = format!(
            "{what} within epsilon = {epsilon} and delta = {delta}, and the plan has {windows}"
        );
        return Err(document.fault(
            draft.payment.span(),
            what,
            "lower the prices, or privacy.windows",
        ));
    }
    Ok(())
}

/// The privacy losses of one window of a declared plan.
fn privacy_classes(privacy: &PrivacySettings, draft: &ReleaseDraft) -> Vec<(ReleaseClass, u64)> {
    let own = draft.payment.get_ref().mechanism_price();
    let target = &*draft.function.get_ref().target;
    let finest = draft_mechanisms(privacy, draft)
        .iter()
        .map(Mechanism::scale)
        .min();
    let noise = match draft.noise.noise_distribution() {
        NoiseDistribution::DiscreteGaussian => {
            if let Price::Concentrated(rho) = own
                && let Some(sigma) = finest
            {
                let values = privacy.touched_values(target.shape().value_count()) as u64;
                ReleaseClass::Gaussian {
                    rho,
                    drawn: DrawnNoise { values, sigma },
                }
            } else {
                ReleaseClass::Pure(own.largest_pure_epsilon())
            }
        }
        // Laplace noise that is priced in rho has a larger epsilon than other pure mechanisms at that rho.
        NoiseDistribution::DiscreteLaplace => {
            worst_laplace(privacy, draft).unwrap_or(ReleaseClass::Pure(own.largest_pure_epsilon()))
        }
        NoiseDistribution::DiscreteCube | NoiseDistribution::Ball => {
            ReleaseClass::Pure(own.largest_pure_epsilon())
        }
    };
    draft
        .choice_prices()
        .map(ReleaseClass::Pure)
        .chain([noise])
        .map(|class| (class, 1))
        .collect()
}

/// The Laplace noise with the largest privacy loss, over every function that a window can have: the largest ratio of
/// sensitivity to scale.
fn worst_laplace(privacy: &PrivacySettings, draft: &ReleaseDraft) -> Option<ReleaseClass> {
    let calibration = draft.calibration();
    let price = draft.payment.get_ref().mechanism_price();
    let law = NoiseDistribution::DiscreteLaplace;
    let mut worst: Option<LaplaceLoss> = None;
    for function in draft.functions().iter() {
        let target = &*function.target;
        let change = calibration.sensitivity(target, law, privacy).ok()?;
        let noise = calibration.mechanism(target, law, privacy, price).ok()?;
        let loss = LaplaceLoss {
            change,
            scale: noise.scale(),
        };
        // The last of equals.
        if worst.is_none_or(|worst| !worst.is_above(loss)) {
            worst = Some(loss);
        }
    }
    let LaplaceLoss { change, scale } = worst?;
    Some(ReleaseClass::Laplace { change, scale })
}

/// The privacy loss of Laplace noise: its sensitivity over its scale.
#[derive(Clone, Copy)]
struct LaplaceLoss {
    change: Sensitivity,
    scale: Scale,
}

impl LaplaceLoss {
    fn is_above(self, other: LaplaceLoss) -> bool {
        let own = u128::from(self.change.0) * u128::from(other.scale.units());
        own > u128::from(other.change.0) * u128::from(self.scale.units())
    }
}

/// The noise of every function that a window can have, in its first window.
fn draft_mechanisms(privacy: &PrivacySettings, draft: &ReleaseDraft) -> Vec<Mechanism> {
    let calibration = draft.calibration();
    let law = draft.noise.noise_distribution();
    let price = draft.payment.get_ref().mechanism_price();
    let functions = draft.functions();
    functions
        .iter()
        .filter_map(|function| {
            calibration
                .mechanism(&*function.target, law, privacy, price)
                .ok()
        })
        .collect()
}

/// In a declared plan the first release is charged the slot of a window, and the others nothing.
pub fn share_the_slot(total: Price, releases: &mut [ReleaseSettings]) {
    if let Price::Slots(_) = total {
        for release in releases.iter_mut().skip(1) {
            release.policy = PricePolicy::Fixed(total.zero_of_kind());
        }
    }
}
