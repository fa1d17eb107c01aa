//! Declared smoothness of a function.

use serde::{Deserialize, Serialize};

use super::is_positive;
use crate::Basis;

/// Declared bound on the function, never estimated from records; in natural units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Smoothness {
    /// Along each axis the function changes by at most so much a unit.
    Lipschitz(Vec<f64>),
    /// Along each axis its second derivative is at most so large.
    Curvature(Vec<f64>),
    /// Its norm in the space of the kernel of its form is at most this.
    Norm(f64),
}

impl Smoothness {
    /// Tests that it speaks of these axes and this form, in proper numbers.
    pub fn fits_basis(&self, axes: usize, basis: &Basis) -> bool {
        match self {
            Smoothness::Lipschitz(bounds) | Smoothness::Curvature(bounds) => {
                *basis == Basis::Bernstein
                    && bounds.len() == axes
                    && bounds.iter().all(|bound| is_positive(*bound))
            }
            Smoothness::Norm(norm) => matches!(basis, Basis::Kernel(_)) && is_positive(*norm),
        }
    }
}
