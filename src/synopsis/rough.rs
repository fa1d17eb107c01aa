//! What is assumed of a function before there are records: that it is as rough as its kernel allows.
//!
//! Every function is a sum of kernels. An error of its form is linear in the function: among sums over records it is worst
//! where all of them are in one place, so a heap is the roughest, and places differ. Where the values are bounded instead, as
//! for an expected label, kernels of either sign lie close to each other. Functions are drawn once and for all; the figures to
//! plan with are means over the worst of them.

use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

use crate::targets::PointKernel;

/// How many functions are drawn.
const DRAWN: usize = 64;
/// The kernels of one that is bounded.
const TERMS: usize = 8;
const SEED: u64 = 0x726f_7567_6800;

/// What is assumed of a function.
#[derive(Clone, Debug)]
pub struct Rough {
    /// On the unit cube.
    pub kernel: PointKernel,
    pub axes: usize,
    pub is: Kind,
}

/// How high a function is, in natural units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// All records in one place: the kernel there, so high.
    Heap(f64),
    /// Kernels of either sign, at most so far from 0.
    Bounded(f64),
}

/// A sum of kernels.
#[derive(Clone, Debug)]
pub struct Sum<'a> {
    kernel: &'a PointKernel,
    terms: Vec<(f64, Vec<f64>)>,
}

impl Rough {
    /// The functions, the same for the same assumption; `grid` is where they are bounded.
    pub fn functions(&self, grid: &[Vec<f64>]) -> Vec<Sum<'_>> {
        (0..DRAWN).map(|draw| self.function(draw, grid)).collect()
    }

    fn function(&self, draw: usize, grid: &[Vec<f64>]) -> Sum<'_> {
        let mut rng = ChaCha12Rng::seed_from_u64(SEED);
        rng.set_stream(draw as u64);
        match self.is {
            Kind::Heap(height) => Sum { kernel: &self.kernel, terms: vec![(height, place(draw, self.axes))] },
            Kind::Bounded(height) => {
                let term = |_| {
                    let place = (0..self.axes).map(|_| in_domain(rng.random())).collect();
                    (rng.sample(StandardNormal), place)
                };
                let mut sum = Sum { kernel: &self.kernel, terms: (0..TERMS).map(term).collect() };
                let highest = grid.iter().map(|y| sum.at(y).abs()).fold(f64::MIN_POSITIVE, f64::max);
                sum.terms.iter_mut().for_each(|(weight, _)| *weight *= height / highest);
                sum
            }
        }
    }

    /// What is less rough: half of the records in a cluster as wide as the kernel, the others spread evenly; or wider kernels.
    pub fn spread(&self) -> Self {
        let is = match self.is {
            Kind::Heap(height) => Kind::Heap(height / 2.0 * 0.5_f64.powf(self.axes as f64 / 2.0)),
            bounded @ Kind::Bounded(_) => bounded,
        };
        Rough { kernel: self.kernel.widened(), axes: self.axes, is }
    }

    /// The smallest width of the kernel along an axis, as a part of the domain.
    pub fn narrowest(&self) -> f64 {
        (0..self.axes).map(|axis| self.kernel.width(axis)).fold(1.0, f64::min)
    }
}

impl Sum<'_> {
    pub fn at(&self, y: &[f64]) -> f64 {
        self.terms.iter().map(|(weight, x)| weight * self.kernel.value(x, y)).sum()
    }

    pub fn on(&self, places: &[Vec<f64>]) -> Vec<f64> {
        places.iter().map(|y| self.at(y)).collect()
    }
}

/// Evenly spread: multiples of the powers of a root of `x^(l + 1) = x + 1`.
fn place(draw: usize, axes: usize) -> Vec<f64> {
    let root = [1.618_033_988_749_895, 1.324_717_957_244_746, 1.220_744_084_605_76][axes.clamp(1, 3) - 1];
    (1..=axes as i32).map(|axis| in_domain((0.5 + (draw as f64 + 1.0) * f64::powi(root, -axis)).fract())).collect()
}

/// An eighth at either end, where a domain that clamps has heaps.
fn in_domain(uniform: f64) -> f64 {
    (uniform * 4.0 / 3.0 - 1.0 / 6.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::machine::Kernel;

    #[test]
    fn functions_are_as_high_as_is_said_and_lie_everywhere() {
        let grid: Vec<Vec<f64>> =
            (0..=40).flat_map(|i| (0..=40).map(move |j| vec![f64::from(i) / 40.0, f64::from(j) / 40.0])).collect();
        let kernel = PointKernel::Machine(Kernel::Gaussian { bandwidth: 0.2 });
        for is in [Kind::Heap(3.0), Kind::Bounded(3.0)] {
            let rough = Rough { kernel: kernel.clone(), axes: 2, is };
            let functions = rough.functions(&grid);
            assert_eq!(functions.len(), DRAWN);
            for function in &functions {
                let highest = function.on(&grid).iter().fold(0.0_f64, |sup, f| sup.max(f.abs()));
                assert!(highest <= 3.0 + 1e-12 && highest > 2.9, "{highest}");
            }
            let places: Vec<f64> = functions.iter().flat_map(|f| f.terms.iter().map(|(_, x)| x[1])).collect();
            let share =
                |low, high| places.iter().filter(|x| (low..=high).contains(*x)).count() as f64 / places.len() as f64;
            let shares = [share(0.0, 0.0), share(1.0, 1.0), share(0.0, 0.5), share(0.25, 0.75)];
            let expected = [0.125, 0.125, 0.5, 0.375];
            assert!(shares.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.06), "{shares:?}");
        }
    }
}
