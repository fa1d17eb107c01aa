//! Mark of the functions that there are. What a function publishes counts as noisy, whatever it returns.

/// A function of `bernstream-functions`: one whose page in `docs/proofs` says why what it publishes is noisy. Nothing else may
/// implement this, but for a dummy in the audit.
pub trait Builtin {}
