//! Settings of a machine, and what is refused.

use bernstream_release::error::TargetError;
use bernstream_synopsis::adjacency::Adjacency;
use bernstream_synopsis::machine::kernel::{CubeKernel, CubeLattice};
use bernstream_synopsis::machine::loss::Loss;
use bernstream_synopsis::shape_error::ShapeError;

/// Most records of a window whose Gram matrix is computed (200 MB).
pub const MOST_EXACT: u32 = 5_000;

/// Most features of all records of a window together (1 GB).
const MOST_FEATURES: u64 = 1 << 28;

const MOST_POINTS: usize = 10_000;

/// Settings of a machine; all of them public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineSettings {
    pub kernel: CubeKernel,
    pub loss: Loss,
    /// `C`, more than 0: how much the records count against the norm. `C/m` is what libraries call `C`.
    pub c: f64,
    /// `m`: the most records a window keeps.
    pub records: u32,
    /// `l`, 1 to 3.
    pub dimensions: usize,
    /// `k`; at most 10,000 lattice points.
    pub degree: u32,
    /// The degree of the landmarks' lattice; without it the Gram matrix.
    pub landmarks: Option<u32>,
}

impl MachineSettings {
    /// Refuses the squared loss where a record more or less makes a neighbour.
    pub(super) fn check_adjacency(&self, adjacency: Adjacency) -> Result<(), TargetError> {
        let refused = self.loss == Loss::Squared && adjacency == Adjacency::AddRemove;
        if refused {
            Err(TargetError::SquaredLoss)
        } else {
            Ok(())
        }
    }

    /// The degree of the landmarks' lattice; `None` where the Gram matrix fits.
    pub(super) fn checked_landmarks(&self) -> Result<Option<u32>, TargetError> {
        // Corners are landmarks enough for all affine functions.
        if self.kernel == CubeKernel::Linear {
            return Ok(Some(1));
        }
        if self.landmarks.is_none() && self.records > MOST_EXACT {
            return Err(TargetError::NeedsLandmarks {
                records: self.records,
                most: MOST_EXACT,
            });
        }
        Ok(self.landmarks)
    }
}

pub(crate) fn checked_lattice(axes: usize, degree: u32) -> Result<CubeLattice, TargetError> {
    if !(1..=3).contains(&axes) {
        return Err(ShapeError::Axes(axes).into());
    }
    let most = MOST_POINTS as u32 - 1;
    if !(1..=most).contains(&degree) {
        return Err(TargetError::Degree { degree, most });
    }
    let lattice = CubeLattice { axes, degree };
    if lattice.count() > MOST_POINTS {
        return Err(TargetError::Points {
            degree,
            axes,
            points: lattice.count() as u64,
            most: MOST_POINTS,
        });
    }
    Ok(lattice)
}

pub(crate) fn checked_weight(c: f64, records: u32) -> Result<(), TargetError> {
    if !(1e-6..=1e6).contains(&c) {
        return Err(TargetError::Weight { c });
    }
    if records == 0 {
        Err(TargetError::NoRecords)
    } else {
        Ok(())
    }
}

pub(crate) fn checked_features(records: u32, width: usize) -> Result<(), TargetError> {
    let features = u64::from(records) * width as u64;
    if features > MOST_FEATURES {
        return Err(TargetError::Features {
            records,
            width,
            most: MOST_FEATURES,
        });
    }
    Ok(())
}
