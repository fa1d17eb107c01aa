//! Message of noisy values, which a ledger takes.

use super::dequantized::Dequantized;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::{Encoded, Synopsis, SynopsisError};

/// A finished message: exactly the bytes that will leave, and where they go. A ledger pays for nothing else, and it is made of
/// noisy values:
///
/// ```
/// # use bernstream_noise::Noisy;
/// # use bernstream_release::{Dequantized, Sealed, Target, ValueScaling};
/// # use bernstream_synopsis::description::Description;
/// # fn seal(description: Description, target: &dyn Target, noisy: &Noisy) -> Result<(), bernstream_synopsis::SynopsisError> {
/// let sealed = Sealed::new(description, Dequantized::from_noisy(noisy, target, ValueScaling::of_target(target)))?;
/// # Ok(())
/// # }
/// ```
///
/// Other numbers do not do:
///
/// ```compile_fail,E0308
/// # fn exact(description: bernstream_synopsis::description::Description) {
/// let sealed = bernstream_release::Sealed::new(description, vec![1.0, 2.0, 3.0]);
/// # }
/// ```
///
/// What was made by hand, or read from somewhere, does not become sealed:
///
/// ```compile_fail,E0423
/// # fn read(found: bernstream_synopsis::Encoded) {
/// let sealed = bernstream_release::Sealed(found);
/// # }
/// ```
///
/// And what is sealed is not changed any more:
///
/// ```compile_fail,E0616
/// # fn change(mut sealed: bernstream_release::Sealed) {
/// sealed.0.bytes = vec![1, 2, 3];
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed(Encoded);

impl Sealed {
    /// # Errors
    ///
    /// As for [`Synopsis::new`] and [`Synopsis::encode`].
    pub fn new(description: Description, values: Dequantized) -> Result<Self, SynopsisError> {
        Synopsis::new(description, values.into_values())?
            .encode()
            .map(Sealed)
    }

    pub fn encoded(&self) -> &Encoded {
        &self.0
    }
}
