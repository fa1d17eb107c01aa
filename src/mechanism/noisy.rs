//! Noisy values, which may be published once they are paid for.

use crate::targets::{Basis, Target, ValueScaling};

/// Noisy lattice values in grid units: safe to publish once paid for. Only a mechanism makes one. Who has one reads it:
///
/// ```
/// # fn read(noisy: bernstream::mechanism::Noisy) {
/// let values = noisy.values();
/// # }
/// ```
///
/// ```compile_fail,E0603
/// let exact = vec![1, 2, 3];
/// let noisy = bernstream::mechanism::Noisy(exact);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noisy(pub(super) Vec<i128>);

/// Noisy values in natural units, as a synopsis has them. Only [`Noisy::dequantized`] makes them, and a message takes them:
///
/// ```
/// # fn seal(description: bernstream::synopsis::description::Description, values: bernstream::mechanism::Dequantized) {
/// let sealed = bernstream::synopsis::Sealed::new(description, values);
/// # }
/// ```
///
/// ```compile_fail,E0423
/// let exact = vec![1.0, 2.0, 3.0];
/// let values = bernstream::mechanism::Dequantized(exact);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dequantized(Vec<f64>);

impl Noisy {
    /// Row-major over the lattice, the last axis fastest.
    pub fn values(&self) -> &[i128] {
        &self.0
    }

    /// In natural units, and what `target` publishes of that.
    #[expect(clippy::cast_precision_loss, reason = "already private: rounding is post-processing")]
    pub fn dequantized(&self, target: &dyn Target, scaling: ValueScaling) -> Dequantized {
        let scaled = self.0.iter().map(|value| *value as f64 * scaling.unit()).collect();
        let published = target.publish(scaled);
        match target.shape().basis {
            // No combination of kernel functions is a constant: the description carries the offset.
            Basis::Kernel(_) => Dequantized(published),
            _ => Dequantized(published.into_iter().map(|value| scaling.offset() + value).collect()),
        }
    }
}

impl Dequantized {
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    pub fn into_values(self) -> Vec<f64> {
        self.0
    }
}
