//! Which functions there are: those of this crate. What a function publishes counts as noisy, whatever it returns.

/// A function of this crate. It is not named outside of it.
pub trait Builtin {}
