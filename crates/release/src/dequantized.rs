//! Noisy values in natural units.

use super::scaling::ValueScaling;
use super::target::Target;
use bernstream_noise::Noisy;
use bernstream_synopsis::shape::Basis;

/// Noisy values in natural units, as a synopsis has them. Only [`Dequantized::from_noisy`] makes them, and a message takes them:
///
/// ```
/// # fn seal(description: bernstream_synopsis::description::Description, values: bernstream_release::Dequantized) {
/// let sealed = bernstream_release::Sealed::new(description, values);
/// # }
/// ```
///
/// ```compile_fail,E0423
/// let exact = vec![1.0, 2.0, 3.0];
/// let values = bernstream_release::Dequantized(exact);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dequantized(Vec<f64>);

impl Dequantized {
    /// Values that `target` publishes of noisy ones.
    #[expect(
        clippy::cast_precision_loss,
        reason = "already private: rounding is post-processing"
    )]
    pub fn from_noisy(noisy: &Noisy, target: &dyn Target, scaling: ValueScaling) -> Self {
        let scaled = noisy
            .values()
            .iter()
            .map(|value| *value as f64 * scaling.unit())
            .collect();
        let published = target.publish(scaled);
        match target.shape().basis {
            // No combination of kernel functions is a constant: the description carries the offset.
            Basis::Kernel(_) => Dequantized(published),
            _ => Dequantized(
                published
                    .into_iter()
                    .map(|value| scaling.offset() + value)
                    .collect(),
            ),
        }
    }

    pub fn values(&self) -> &[f64] {
        &self.0
    }

    pub fn into_values(self) -> Vec<f64> {
        self.0
    }
}
