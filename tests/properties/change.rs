//! How far two exact results are apart, and what a target claims of neighbours: 1-norm, sup norm, 2-norm.

use crate::harness::exact::Opened as _;
use bernstream_noise::Exact;
use bernstream_release::Target;
use bernstream_synopsis::Adjacency;

/// The 2-norm is rounded up: it exceeds a whole claim if it did before.
pub fn norms(one: &[i128], other: &[i128]) -> [u128; 3] {
    let changes = || one.iter().zip(other).map(|(a, b)| a.abs_diff(*b));
    let square: u128 = changes().map(|change| change * change).sum();
    let length = square.isqrt();
    [
        changes().sum(),
        changes().max().unwrap_or(0),
        length + u128::from(length * length < square),
    ]
}

pub fn between(one: &Exact, other: &Exact) -> [u128; 3] {
    norms(&one.opened(), &other.opened())
}

pub fn claims(target: &dyn Target, adjacency: Adjacency, contributions: u32) -> [f64; 3] {
    [
        target.sensitivity(adjacency, contributions).unwrap().0,
        target.sup_sensitivity(adjacency, contributions).unwrap(),
        target
            .euclidean_sensitivity(adjacency, contributions)
            .unwrap(),
    ]
    .map(|claim| claim as f64)
}

/// `sqrt(D1 S)`, the 2-norm that follows from the other two, over the one that is claimed.
pub fn gain(target: &dyn Target, adjacency: Adjacency) -> f64 {
    let [sum, sup, length] = claims(target, adjacency, 1);
    (sum * sup).sqrt() / length
}
