//! The function that a release publishes.

use std::sync::Arc;

use crate::synopsis::description;
use crate::targets::Target;

/// The function that is published, and what its values mean.
#[derive(Clone, Debug)]
pub struct Function {
    pub target: Arc<dyn Target>,
    /// Its description in every synopsis: everything that its values depend on, except domain, lattice and label.
    pub about: description::Target,
    /// What a value means, in words.
    pub meaning: String,
    /// The unit of a value and of its error, in words.
    pub quantity: String,
    /// What one grid unit stands for, in natural units.
    pub unit: f64,
    /// The natural value of zero grid units.
    pub offset: f64,
    /// What `"auto"` must resolve; none if nothing is known about the features of the function.
    pub feature: Option<Feature>,
}

/// The finest feature that a function can show.
#[derive(Clone, Debug)]
pub struct Feature {
    /// Its width along each axis, as a part of the domain.
    pub widths: Vec<f64>,
    pub height: Height,
}

/// The height of a feature.
#[derive(Clone, Copy, Debug)]
pub enum Height {
    /// What half of the records add to a value where each has its largest effect.
    HalfOfRecords,
    /// In natural units, however many records there are.
    Fixed(f64),
    /// At most `limit`, in proportion to the part of the domain that records cover with a gap of `gap` each.
    Covered { limit: f64, gap: f64 },
}
