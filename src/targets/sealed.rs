//! What a ledger takes: a message of noisy values.

use super::dequantized::Dequantized;
use crate::synopsis::description::Description;
use crate::synopsis::{Encoded, Error, Synopsis};

/// A finished message: exactly the bytes that will leave, and where they go. A ledger pays for nothing else, and it is made of
/// noisy values:
///
/// ```
/// # use bernstream::mechanism::{Mechanism, noise::Generator, calibrate::Epsilon};
/// # use bernstream::synopsis::description::Description;
/// # use bernstream::targets::{Dequantized, Exact, Sealed, ValueScaling, Sensitivity, density::Density};
/// # let density = Density::new(&[0.1], 2)?;
/// # let description: Description = serde_json::from_str(include_str!("../synopsis/example.json"))?;
/// let exact = Exact::new(vec![1, 2, 3]);
/// let mechanism = Mechanism::laplace(Sensitivity(100), Epsilon::from_trillionths(1_000_000_000_000))?;
/// let noisy = mechanism.release(&exact, &mut Generator::from_entropy()?);
/// let sealed = Sealed::new(description, Dequantized::of(&noisy, &density, ValueScaling::of(&density)))?;
/// assert_eq!(sealed.encoded().key, "flights/departure-delay/JFK");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Other numbers do not do:
///
/// ```compile_fail,E0308
/// # fn exact(description: bernstream::synopsis::description::Description) {
/// let sealed = bernstream::targets::Sealed::new(description, vec![1.0, 2.0, 3.0]);
/// # }
/// ```
///
/// What was made by hand, or read from somewhere, does not become sealed:
///
/// ```compile_fail,E0423
/// # fn read(found: bernstream::synopsis::Encoded) {
/// let sealed = bernstream::targets::Sealed(found);
/// # }
/// ```
///
/// And what is sealed is not changed any more:
///
/// ```compile_fail,E0616
/// # fn change(mut sealed: bernstream::targets::Sealed) {
/// sealed.0.bytes = vec![1, 2, 3];
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed(Encoded);

impl Sealed {
    /// # Errors
    ///
    /// As for [`Synopsis::new`] and [`Synopsis::encode`].
    pub fn new(description: Description, values: Dequantized) -> Result<Self, Error> {
        Synopsis::new(description, values.into_values())?.encode().map(Sealed)
    }

    pub fn encoded(&self) -> &Encoded {
        &self.0
    }

    /// For unit tests of what becomes of it.
    #[cfg(test)]
    pub(crate) fn of_test(encoded: Encoded) -> Self {
        Sealed(encoded)
    }
}
