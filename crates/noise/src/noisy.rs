//! Noisy values, which may be published once they are paid for.

/// Noisy lattice values in grid units: safe to publish once paid for. Only a mechanism makes one. Who has one reads it:
///
/// ```
/// # fn read(noisy: bernstream_noise::Noisy) {
/// let values = noisy.values();
/// # }
/// ```
///
/// ```compile_fail,E0603
/// let exact = vec![1, 2, 3];
/// let noisy = bernstream_noise::Noisy(exact);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noisy(pub(super) Vec<i128>);

impl Noisy {
    /// Row-major over the lattice, the last axis fastest.
    pub fn values(&self) -> &[i128] {
        &self.0
    }
}
