//! The function that a release publishes.

use std::sync::Arc;

use bernstream_release::{Target, ValueScaling};
use bernstream_synopsis::PointKernel;
use bernstream_synopsis::description;

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
    pub scaling: ValueScaling,
    /// The roughest function that `"auto"` must follow; none if nothing is known about it.
    pub feature: Option<Feature>,
}

impl Function {
    /// What one grid unit stands for, in natural units.
    pub fn unit(&self) -> f64 {
        self.scaling.unit()
    }
}

/// How rough a function can be: a sum of kernels.
#[derive(Clone, Debug)]
pub struct Feature {
    /// On the unit cube.
    pub kernel: PointKernel,
    pub height: Height,
}

impl Feature {
    /// Gaussians with these standard deviations along the axes, as parts of the domain.
    pub fn of_widths(widths: &[f64], height: Height) -> Self {
        let mut precision = vec![vec![0.0; widths.len()]; widths.len()];
        for (axis, width) in widths.iter().enumerate() {
            precision[axis][axis] = width.powi(-2);
        }
        Feature {
            kernel: PointKernel::Gaussian { precision },
            height,
        }
    }
}

/// How far from its offset a function can be.
#[derive(Clone, Copy, Debug)]
pub enum Height {
    /// What all records add to a value in the place where each has its largest effect.
    AllRecords,
    /// So much for every record, in natural units, where all are in one place.
    Each(f64),
    /// In natural units, however many records there are.
    Fixed(f64),
    /// At most `limit`, in proportion to the part of the domain that records cover with a gap of `gap` each.
    Covered { limit: f64, gap: f64 },
}
