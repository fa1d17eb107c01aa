//! The function that a release publishes.

use std::sync::Arc;

use bernstream_release::{Target, ValueScaling};
use bernstream_synopsis::PointKernel;
use bernstream_synopsis::description;

/// The function that is published, and what its values mean.
#[derive(Clone, Debug)]
pub struct ReleasedFunction {
    pub target: Arc<dyn Target>,
    /// The description in every synopsis: everything that its values depend on, except domain, lattice and label.
    pub about: description::TargetDescription,
    /// The meaning of a value, in words.
    pub meaning: String,
    /// The unit of a value and of its error, in words.
    pub quantity: String,
    pub scaling: ValueScaling,
    /// The roughest function that `"auto"` must follow; none if nothing is known about it.
    pub feature: Option<FunctionRoughness>,
}

impl ReleasedFunction {
    /// The size of one grid unit, in natural units.
    pub fn grid_unit(&self) -> f64 {
        self.scaling.unit()
    }

    /// The rules of counts by key, which are one table of all keys; `None` for a function of each key.
    pub fn keyed_counts(&self) -> Option<&description::KeyedCounts> {
        match &self.about {
            description::TargetDescription::Counts(counts) => Some(counts),
            _ => None,
        }
    }
}

/// The roughness that a function can have: a sum of kernels.
#[derive(Clone, Debug)]
pub struct FunctionRoughness {
    /// On the unit cube.
    pub kernel: PointKernel,
    pub height: FunctionHeight,
}

impl FunctionRoughness {
    /// Gaussians with these standard deviations along the axes, as parts of the domain.
    pub fn from_widths(widths: &[f64], height: FunctionHeight) -> Self {
        let mut precision = vec![vec![0.0; widths.len()]; widths.len()];
        for (axis, width) in widths.iter().enumerate() {
            precision[axis][axis] = width.powi(-2);
        }
        FunctionRoughness {
            kernel: PointKernel::Gaussian { precision },
            height,
        }
    }
}

/// The largest distance of a function from its offset.
#[derive(Clone, Copy, Debug)]
pub enum FunctionHeight {
    /// The sum over all records, in the place where each has its largest effect on a value.
    AllRecords,
    /// A height for every record, in natural units, where all are in one place.
    Each(f64),
    /// In natural units, however many records there are.
    Fixed(f64),
    /// At most `limit`, in proportion to the part of the domain that records cover with a gap of `gap` each.
    Covered { limit: f64, gap: f64 },
}
