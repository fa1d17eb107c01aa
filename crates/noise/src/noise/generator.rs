//! The source of randomness.

use rand::rngs::{ChaCha20Rng, SysRng};
use rand::{Rng, SeedableRng};

use crate::error::NoiseError;

/// A source of secret random words. One fresh generator a window release; a word is never used twice.
///
/// ChaCha20 with a 256-bit key. So a guarantee that rests on this noise is computational, like all that rest on a
/// pseudo-random generator.
pub struct Generator(pub(super) ChaCha20Rng, Option<DrawCallback>);

/// Is told how many words were drawn.
type DrawCallback = Box<dyn FnOnce(u128) + Send>;

impl Generator {
    /// Keyed by the operating system.
    ///
    /// # Errors
    ///
    /// If the operating system has no entropy to give.
    pub fn from_entropy() -> Result<Self, NoiseError> {
        Ok(Generator(ChaCha20Rng::try_from_rng(&mut SysRng)?, None))
    }

    /// Keyed by `seed`, for tests that replay. Whoever knows the seed can subtract the noise: such a release is not
    /// private.
    pub fn frozen(seed: [u8; 32]) -> Self {
        Generator(ChaCha20Rng::from_seed(seed), None)
    }

    /// A generator from the same source, which says at its end how many words of 32 bits were drawn: for `audit`, whose records are made up.
    pub fn replayed(seed: [u8; 32], tell: impl FnOnce(u128) + Send + 'static) -> Self {
        Generator(ChaCha20Rng::from_seed(seed), Some(Box::new(tell)))
    }

    /// 64 uniform bits.
    pub fn next_word(&mut self) -> u64 {
        self.0.next_u64()
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        if let Some(tell) = self.1.take() {
            tell(self.0.get_word_pos());
        }
    }
}
