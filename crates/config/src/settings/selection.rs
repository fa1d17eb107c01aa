//! The candidates that `"auto"` tried, the one that it chooses, and the one that is in use.

use crate::settings::ReleasedFunction;
use crate::settings::noise::{Coordinates, NoiseKind};
use bernstream_release::window::DomainAxis;
use bernstream_synopsis::description::TargetDescription;
use bernstream_synopsis::predict::ExpectedErrors;
use bernstream_synopsis::rough::WorstCaseFunctions;

/// The candidates that were tried, and the one that is in use.
#[derive(Clone, Debug)]
pub struct NoiseSelection {
    /// The keys of the file that are left to `"auto"`.
    pub open: Vec<&'static str>,
    /// By kind of noise, then by size; of a lattice every order of each degree.
    pub candidates: Vec<NoiseCandidate>,
    /// The one with the smallest predicted error for functions that are less rough.
    pub best: NoiseCandidate,
    /// The one in use: the best, or what the ledger has recorded of an earlier version's choice.
    pub taken: NoiseCandidate,
    /// The functions that the errors were predicted for.
    pub rough: Option<WorstCaseFunctions>,
}

/// A kind of noise with its size, and its predicted errors in natural units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseCandidate {
    pub noise: NoiseKind,
    pub on: Coordinates,
    /// 1 if there is no lattice.
    pub order: u32,
    /// Number of values of a synopsis.
    pub values: usize,
    pub expected: ExpectedErrors,
}

/// A choice by `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoChoice {
    pub noise: NoiseKind,
    pub on: Coordinates,
    /// 1 if there is no lattice.
    pub order: u32,
}

impl NoiseSelection {
    /// Returns whether the ledger has recorded another choice than that of this version.
    pub fn is_recorded_choice(&self) -> bool {
        self.taken.choice() != self.best.choice()
    }
}

impl NoiseCandidate {
    pub fn choice(&self) -> AutoChoice {
        AutoChoice {
            noise: self.noise,
            on: self.on,
            order: self.order,
        }
    }

    /// The keys that select it in a file.
    pub fn keys_in_file(&self, axes: &[DomainAxis], function: &ReleasedFunction) -> String {
        // The noise of tables is on counts whatever its name.
        let noise = match &function.about {
            TargetDescription::Cells(_) if self.noise == NoiseKind::GaussianCells => {
                NoiseKind::Gaussian
            }
            TargetDescription::Cells(_) => NoiseKind::Laplace,
            _ => self.noise,
        };
        match self.on {
            Coordinates::Lattice { degree } => {
                format!(
                    "noise = \"{}\", degree = {degree} and order = {}",
                    self.noise, self.order
                )
            }
            Coordinates::Points { most } => {
                format!("noise = \"{}\" and points = {most}", self.noise)
            }
            Coordinates::Cells(grid) => {
                let step: Vec<f64> = axes
                    .iter()
                    .zip(grid.steps())
                    .map(|(a, m)| (a.max - a.min) / f64::from(*m))
                    .collect();
                format!(
                    "noise = \"{noise}\", spline = \"{}\" and step = {step:?}",
                    grid.spline
                )
            }
            Coordinates::Tensor(counts) => format!(
                "noise = \"{}\" and points = {:?}",
                self.noise,
                counts.along()
            ),
        }
    }
}
