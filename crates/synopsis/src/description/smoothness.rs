//! What is declared of a function's smoothness.

use serde::{Deserialize, Serialize};

use crate::Basis;

/// What is declared of the function, never estimated from records; in natural units.
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
    /// Whether it speaks of these axes and this form, in proper numbers.
    pub fn fits(&self, axes: usize, basis: &Basis) -> bool {
        let proper = |x: &f64| x.is_finite() && *x > 0.0;
        match (self, basis) {
            (Smoothness::Lipschitz(bounds) | Smoothness::Curvature(bounds), Basis::Bernstein) => {
                bounds.len() == axes && bounds.iter().all(proper)
            }
            (Smoothness::Norm(norm), Basis::Kernel(_)) => proper(norm),
            _ => false,
        }
    }
}
