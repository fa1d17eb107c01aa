//! What is allowed and surely a mistake, for warnings.

use crate::accountant::policy::Policy;
use crate::config::settings::{Period, Release, Settings, Unit};
use crate::mechanism::price::Price;
use crate::synopsis::description::{Density, Smoothing, Target};
use crate::targets::Basis;

/// Above this an epsilon promises next to nothing: a doubt of one in a thousand million becomes a near certainty at 20.7.
const MUCH: u64 = 20;

/// What is suspected, in words: an epsilon that promises nothing, a lattice too coarse for its kernel, a budget that leaves most windows
/// unpaid. Everything is public.
pub fn suspected(settings: &Settings) -> Vec<String> {
    let coarse = settings.releases.iter().filter_map(coarse);
    large(settings).into_iter().chain(unpaid(settings)).chain(coarse).collect()
}

fn large(settings: &Settings) -> Option<String> {
    let epsilon = match settings.privacy.total {
        Price::Pure(epsilon) | Price::Approximate { epsilon, .. } => epsilon,
        Price::Concentrated(_) | Price::Slots(_) => settings.privacy.implies?.epsilon,
    };
    (epsilon.to_f64() > MUCH as f64).then(|| {
        format!("epsilon = {epsilon} protects next to nothing: who sees the synopses can be all but sure of any record; a usual total is 1, and above 10 is rare")
    })
}

/// Of fixed prices alone: a policy says itself how far it goes.
fn unpaid(settings: &Settings) -> Option<String> {
    let is_fixed = |release: &Release| matches!(release.policy, Policy::Fixed(_));
    if !settings.releases.iter().all(is_fixed) {
        return None;
    }
    let grid = settings.windows.grid;
    let (all, of) = match &settings.privacy.unit {
        Unit::User { per: Period::Every(length), .. } => {
            (length.as_micros() / grid.length().as_micros().max(1), "of a period")
        }
        Unit::User { per: Period::Ever, .. } => {
            (u128::from(grid.count(grid.origin(), settings.windows.end?)), "of the grid")
        }
        Unit::Record => return None,
    };
    let paid = Policy::Fixed(settings.window_price()).lasts(settings.privacy.limit(), None, |_| true)?;
    (u128::from(paid) * 2 < all).then(|| {
        format!(
            "the budget pays for {paid} of the {all} windows {of}, and all others are withheld: make windows longer, lower the price of \
             a window, or spread the total with a `horizon`"
        )
    })
}

fn coarse(release: &Release) -> Option<String> {
    let Target::Density(Density { kernel: Smoothing::Bandwidths(bandwidths), .. }) = &release.function.about else {
        return None;
    };
    let shape = release.shape();
    if shape.basis != Basis::Bernstein || release.auto.is_some() {
        return None;
    }
    let (axis, bandwidth, step) = release
        .axes
        .iter()
        .zip(bandwidths)
        .zip(&release.columns)
        .map(|((axis, bandwidth), column)| (column, *bandwidth, (axis.max - axis.min) / f64::from(shape.degree)))
        .find(|(_, bandwidth, step)| *bandwidth < step / 2.0)?;
    Some(format!(
        "release {:?}: the bandwidth {bandwidth} of {axis} is far below the step of the lattice, {step:.3}: a record between two points \
         is hardly seen; raise the bandwidth or the degree, or write degree = \"auto\"",
        release.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, changes: &[(&str, &str)]) -> Vec<String> {
        let text = changes.iter().fold(text.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        suspected(&Settings::parse(&text, "test").unwrap())
    }

    #[test]
    fn only_what_is_surely_a_mistake_is_suspected() {
        let (records, users) = (include_str!("../../../config/files.toml"), include_str!("../../../config/users.toml"));
        assert_eq!((of(records, &[]), of(users, &[])), (vec![], vec![]));
        let large = of(records, &[("epsilon = 1.0", "epsilon = 25.0")]);
        assert!(large.len() == 1 && large[0].starts_with("epsilon = 25 protects next to nothing"), "{large:?}");
        assert_eq!(of(records, &[("epsilon = 1.0", "epsilon = 20.0")]), Vec::<String>::new());
        let unpaid = of(users, &[("epsilon = 0.04", "epsilon = 0.1")]);
        assert!(unpaid.len() == 1 && unpaid[0].contains("pays for 10 of the 24 windows of a period"), "{unpaid:?}");
        let coarse = of(records, &[("bandwidths = [10]", "bandwidths = [2]")]);
        assert!(coarse.len() == 1 && coarse[0].contains("the bandwidth 2 of dep_delay is far below"), "{coarse:?}");
    }
}
