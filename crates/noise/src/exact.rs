//! Exact values: here, because only code of this crate may open them.

use std::fmt;

/// Exact lattice values of one window and key, in grid units. Secret: this crate makes [`Noisy`](super::Noisy) values of them, and
/// no other can read them, but by asking for distances, which one file may (`tests/it/layers.rs`).
///
/// Functions make them, and cannot look at them again. This compiles:
///
/// ```
/// let exact = bernstream_noise::Exact::new(vec![1, 2, 3]);
/// println!("{exact:?}");
/// let text = serde_json::to_string(&vec![1, 2, 3]);
/// ```
///
/// And this does not:
///
/// ```compile_fail,E0624
/// let exact = bernstream_noise::Exact::new(vec![1, 2, 3]);
/// let values = exact.reveal();
/// ```
///
/// They cannot be printed or serialised; `Debug` shows how many there are:
///
/// ```compile_fail,E0277
/// let exact = bernstream_noise::Exact::new(vec![1, 2, 3]);
/// println!("{exact}");
/// ```
///
/// ```compile_fail,E0277
/// let exact = bernstream_noise::Exact::new(vec![1, 2, 3]);
/// let text = serde_json::to_string(&exact);
/// ```
/// Nor can they be compared:
///
/// ```compile_fail,E0369
/// let exact = bernstream_noise::Exact::new(vec![1, 2, 3]);
/// let found = exact == bernstream_noise::Exact::new(vec![1, 2, 3]);
/// ```
#[derive(Clone)]
pub struct Exact(Vec<i128>);

impl Exact {
    /// Row-major over the lattice `{0, 1/k, ..., 1}^l`, the last axis fastest.
    pub fn new(values: Vec<i128>) -> Self {
        Exact(values)
    }

    /// Each value moved into `[low, high]`.
    #[must_use]
    pub fn clamped(self, low: i128, high: i128) -> Self {
        Exact(
            self.0
                .into_iter()
                .map(|value| value.clamp(low, high))
                .collect(),
        )
    }

    /// The distance in the sup norm: for records that are drawn from a public prior. Of real records it is as secret as they are.
    pub fn sup_distance(&self, other: &Exact) -> u128 {
        self.absolute_changes(other).max().unwrap_or(0)
    }

    /// The distance in the 1-norm: for records that are drawn from a public prior. Of real records it is as secret as they are.
    pub fn sum_distance(&self, other: &Exact) -> u128 {
        self.absolute_changes(other).fold(0, u128::saturating_add)
    }

    fn absolute_changes<'a>(&'a self, other: &'a Exact) -> impl Iterator<Item = u128> + 'a {
        self.0
            .iter()
            .zip(&other.0)
            .map(|(one, other)| one.abs_diff(*other))
    }

    pub(super) fn reveal(&self) -> &[i128] {
        &self.0
    }
}

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exact({} values)", self.0.len())
    }
}
