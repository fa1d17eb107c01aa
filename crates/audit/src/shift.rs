//! Distances between exact values.

use super::opened::open_exact_values;
use bernstream_noise::Exact;
use bernstream_synopsis::Norm;
use bernstream_worker::pipeline::ReleaseVariant;

/// The distance of values in the norm of a variant's noise, in grid units.
pub(super) fn distance_of(variant: &ReleaseVariant, one: &Exact, other: &Exact) -> f64 {
    norm_of_changes(
        variant.mechanism.distribution().norm(),
        &value_changes(one, other),
    )
}

/// The change of each value.
pub(super) fn value_changes(one: &Exact, other: &Exact) -> Vec<i128> {
    let one = open_exact_values(one);
    let other = open_exact_values(other);
    let mut changes = Vec::new();
    for place in 0..one.len().max(other.len()) {
        // Values that are not there count as zero.
        let from = one.get(place).copied().unwrap_or(0);
        let to = other.get(place).copied().unwrap_or(0);
        changes.push(from.saturating_sub(to));
    }
    changes
}

/// The size of a change.
pub(super) fn norm_of_changes(norm: Norm, changes: &[i128]) -> f64 {
    let sizes = changes.iter().map(|change| change.unsigned_abs());
    match norm {
        Norm::One => sizes.fold(0, u128::saturating_add) as f64,
        Norm::Sup => sizes.max().unwrap_or(0) as f64,
        Norm::Two => (sizes.fold(0_u128, |sum, size| {
            sum.saturating_add(size.saturating_mul(size))
        }) as f64)
            .sqrt(),
    }
}

/// The change of the two scores that move most, together: the law of the noisy maximum.
pub(super) fn two_largest(one: &Exact, other: &Exact) -> f64 {
    let mut sizes: Vec<u128> = value_changes(one, other)
        .into_iter()
        .map(i128::unsigned_abs)
        .collect();
    sizes.sort_unstable();
    sizes
        .into_iter()
        .rev()
        .take(2)
        .fold(0, u128::saturating_add) as f64
}
