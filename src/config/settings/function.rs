//! The function that a release publishes.

use std::sync::Arc;

use crate::synopsis::description;
use crate::targets::Target;

/// The function that is published, and what its values mean.
#[derive(Clone, Debug)]
pub struct Function {
    pub target: Arc<dyn Target>,
    /// What every synopsis says about it; all that its values depend on, beside domain, lattice and label.
    pub about: description::Target,
    /// What a value means, in words.
    pub meaning: String,
    /// What a value counts, in words: the unit of an error.
    pub quantity: String,
    /// What one grid unit stands for, in natural units.
    pub unit: f64,
    /// The natural value of zero grid units.
    pub offset: f64,
}
