//! Functions that are as rough as their kernel allows: what is assumed before there are records.
//!
//! Every function is a sum of kernels. An error of its form is linear in the function: among sums over records it is worst
//! where all of them are in one place, so a heap is the roughest, and places differ. A regression is roughest where its labels
//! alternate. Where nothing is known but that values are bounded, as of a kernel machine, kernels of either sign lie close to each other:
//! what is fitted to records is smoother than that, so the errors of these are bounds. Functions are drawn once and for all; the
//! figures to plan with are means and quantiles over the worst of them.

use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

use crate::PointKernel;

/// Number of functions that are drawn.
const DRAWN: usize = 64;
/// The kernels of one that is bounded.
const TERMS: usize = 8;
const SEED: u64 = 0x726f_7567_6800;

/// Assumption on a function: as rough as its kernel allows.
#[derive(Clone, Debug)]
pub struct WorstCaseFunctions {
    /// Kernel on the unit cube.
    pub kernel: PointKernel,
    pub axes: usize,
    pub is: WorstCaseKind,
}

/// Parts of a function, and how high it is, in natural units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WorstCaseKind {
    /// All records in one place: the kernel there, so high.
    Heap(f64),
    /// A part of the records, from half to all, in a cluster as wide as the kernel, the others spread evenly; so high were all in one
    /// place.
    Cluster(f64),
    /// Kernels of either sign, at most so far from 0.
    Bounded(f64),
    /// Evenly spaced records on one axis, all with a label so far from 0, whose sign alternates every `least` to `3 least` widths of
    /// the kernel.
    Alternating { height: f64, least: f64 },
}

/// A sum of kernels, and of boxes that a Gaussian has smoothed.
#[derive(Clone, Debug)]
pub struct KernelSum {
    kernel: PointKernel,
    terms: Vec<KernelTerm>,
    boxes: Vec<SmoothedBox>,
    /// Standard deviations of the Gaussian.
    widths: Vec<f64>,
}

/// A weighted kernel.
#[derive(Clone, Debug)]
struct KernelTerm {
    weight: f64,
    center: Vec<f64>,
}

/// A weighted box that a Gaussian has smoothed.
#[derive(Clone, Debug)]
struct SmoothedBox {
    weight: f64,
    /// The lower and the upper end along every axis.
    sides: Vec<[f64; 2]>,
}

impl WorstCaseFunctions {
    /// The functions, the same for the same assumption; `grid` is where they are bounded.
    pub fn draw_functions(&self, grid: &[Vec<f64>]) -> Vec<KernelSum> {
        (0..DRAWN).map(|draw| self.function(draw, grid)).collect()
    }

    fn function(&self, draw: usize, grid: &[Vec<f64>]) -> KernelSum {
        let mut rng = ChaCha12Rng::seed_from_u64(SEED);
        rng.set_stream(draw as u64);
        let smoothing = self.kernel.smoothing_widths(self.axes);
        let widths = smoothing.deviations;
        let mass = smoothing.integral;
        let mut sum = KernelSum {
            kernel: self.kernel.clone(),
            terms: Vec::new(),
            boxes: Vec::new(),
            widths,
        };
        match self.is {
            WorstCaseKind::Heap(height) => {
                let place = evenly_spread(draw, self.axes);
                sum.terms.push(KernelTerm {
                    weight: height,
                    center: place.into_iter().map(in_domain).collect(),
                });
            }
            // A kernel that a cluster as wide as itself has smoothed is wider and lower.
            WorstCaseKind::Cluster(height) => {
                let part = 0.5 + (draw as f64 + 0.5) / (2 * DRAWN) as f64;
                let smoothed = 0.5_f64.powf(self.axes as f64 / 2.0);
                sum.kernel = self.kernel.smoothed_by_itself();
                sum.terms.push(KernelTerm {
                    weight: part * height * smoothed,
                    center: evenly_spread(draw, self.axes),
                });
                sum.boxes.push(SmoothedBox {
                    weight: (1.0 - part) * height * mass,
                    sides: vec![[0.0, 1.0]; self.axes],
                });
            }
            WorstCaseKind::Bounded(height) => {
                for _ in 0..TERMS {
                    let center = (0..self.axes).map(|_| in_domain(rng.random())).collect();
                    let weight = rng.sample(StandardNormal);
                    sum.terms.push(KernelTerm { weight, center });
                }
                let highest = grid
                    .iter()
                    .map(|y| sum.at(y).abs())
                    .fold(f64::MIN_POSITIVE, f64::max);
                for term in &mut sum.terms {
                    term.weight *= height / highest;
                }
            }
            WorstCaseKind::Alternating { height, least } => {
                let least = least * self.kernel.width_along(0);
                let mut from = -least * rng.random::<f64>();
                let mut sign = 1.0;
                while from < 1.0 {
                    let to = from + least * (1.0 + 2.0 * rng.random::<f64>());
                    sum.boxes.push(SmoothedBox {
                        weight: sign * height,
                        sides: vec![[from.max(0.0), to.min(1.0)]],
                    });
                    from = to;
                    sign = -sign;
                }
            }
        }
        sum
    }

    /// Less rough functions: most of the records in a cluster, the others anywhere; wider kernels; or labels that change less often.
    pub fn less_rough(&self) -> Self {
        let mut spread = self.clone();
        match self.is {
            WorstCaseKind::Heap(height) | WorstCaseKind::Cluster(height) => {
                spread.is = WorstCaseKind::Cluster(height)
            }
            WorstCaseKind::Bounded(_) => spread.kernel = self.kernel.smoothed_by_itself(),
            WorstCaseKind::Alternating { height, least } => {
                spread.is = WorstCaseKind::Alternating {
                    height,
                    least: 2.0 * least,
                };
            }
        }
        spread
    }

    /// The smallest width of the kernel along an axis, as a part of the domain.
    pub fn narrowest_width(&self) -> f64 {
        (0..self.axes)
            .map(|axis| self.kernel.width_along(axis))
            .fold(1.0, f64::min)
    }
}

impl KernelSum {
    pub fn at(&self, y: &[f64]) -> f64 {
        let kernels: f64 = self
            .terms
            .iter()
            .map(|term| term.weight * self.kernel.value(&term.center, y))
            .sum();
        let boxes: f64 = self
            .boxes
            .iter()
            .map(|smoothed| smoothed.weight * smoothed.height_at(y, &self.widths))
            .sum();
        kernels + boxes
    }

    pub fn on(&self, places: &[Vec<f64>]) -> Vec<f64> {
        places.iter().map(|y| self.at(y)).collect()
    }
}

impl SmoothedBox {
    fn height_at(&self, y: &[f64], widths: &[f64]) -> f64 {
        let mut height = 1.0;
        for (([low, high], width), y) in self.sides.iter().zip(widths).zip(y) {
            height *= normal_below(high - y, *width) - normal_below(low - y, *width);
        }
        height
    }
}

/// The part of a Gaussian of this width that lies below `x`.
fn normal_below(x: f64, width: f64) -> f64 {
    libm::erfc(-x / width * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// Evenly spread: multiples of the powers of a root of `x^(l + 1) = x + 1`.
fn evenly_spread(draw: usize, axes: usize) -> Vec<f64> {
    let root = [
        1.618_033_988_749_895,
        1.324_717_957_244_746,
        1.220_744_084_605_76,
    ][axes.clamp(1, 3) - 1];
    (1..=axes as i32)
        .map(|axis| (0.5 + (draw as f64 + 1.0) * f64::powi(root, -axis)).fract())
        .collect()
}

/// An eighth at either end, where a domain that clamps has heaps.
fn in_domain(uniform: f64) -> f64 {
    (uniform * 4.0 / 3.0 - 1.0 / 6.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::CubeKernel;

    #[test]
    fn functions_are_as_high_as_is_said_and_lie_everywhere() {
        let grid: Vec<Vec<f64>> = (0..=40)
            .flat_map(|i| (0..=40).map(move |j| vec![f64::from(i) / 40.0, f64::from(j) / 40.0]))
            .collect();
        let kernel = PointKernel::Machine(CubeKernel::Gaussian { bandwidth: 0.2 });
        for is in [WorstCaseKind::Heap(3.0), WorstCaseKind::Bounded(3.0)] {
            let rough = WorstCaseFunctions {
                kernel: kernel.clone(),
                axes: 2,
                is,
            };
            let functions = rough.draw_functions(&grid);
            assert_eq!(functions.len(), DRAWN);
            for function in &functions {
                let highest = function
                    .on(&grid)
                    .iter()
                    .fold(0.0_f64, |sup, f| sup.max(f.abs()));
                assert!(highest <= 3.0 + 1e-12 && highest > 2.9, "{highest}");
            }
            let places: Vec<f64> = functions
                .iter()
                .flat_map(|f| f.terms.iter().map(|term| term.center[1]))
                .collect();
            let share = |low, high| {
                places.iter().filter(|x| (low..=high).contains(*x)).count() as f64
                    / places.len() as f64
            };
            let shares = [
                share(0.0, 0.0),
                share(1.0, 1.0),
                share(0.0, 0.5),
                share(0.25, 0.75),
            ];
            let expected = [0.125, 0.125, 0.5, 0.375];
            assert!(
                shares
                    .iter()
                    .zip(expected)
                    .all(|(a, b)| (a - b).abs() < 0.06),
                "{shares:?}"
            );
        }
    }

    #[test]
    fn boxes_that_are_smoothed_are_sums_of_kernels() {
        let precision = vec![vec![100.0, 0.0], vec![0.0, 25.0]];
        let kernel = PointKernel::Gaussian { precision };
        let rough = WorstCaseFunctions {
            kernel: kernel.clone(),
            axes: 2,
            is: WorstCaseKind::Cluster(7.0),
        };
        let steps = |count: u32| (0..count).map(move |i| (f64::from(i) + 0.5) / f64::from(count));
        let records: Vec<Vec<f64>> = steps(100)
            .flat_map(|x| steps(100).map(move |z| vec![x, z]))
            .collect();
        for y in [[0.5, 0.5], [0.0, 0.3], [0.05, 1.0]] {
            // Half of the records are in the cluster, and half of a 64th of the others.
            let function = &rough.draw_functions(&[])[0];
            let cluster = 7.0 * (0.5 + 1.0 / 256.0) / 2.0
                * kernel
                    .smoothed_by_itself()
                    .value(&function.terms[0].center, &y);
            let others = records.iter().map(|x| kernel.value(x, &y)).sum::<f64>() / 1e4
                * 7.0
                * (0.5 - 1.0 / 256.0);
            assert!(
                (function.at(&y) - cluster - others).abs() < 1e-4,
                "{y:?}: {} {}",
                function.at(&y),
                cluster + others
            );
        }
    }

    #[test]
    fn labels_alternate_every_few_widths_and_cover_the_axis() {
        let kernel = PointKernel::Gaussian {
            precision: vec![vec![1e4]],
        };
        let rough = WorstCaseFunctions {
            kernel,
            axes: 1,
            is: WorstCaseKind::Alternating {
                height: 2.0,
                least: 2.0,
            },
        };
        for function in rough.draw_functions(&[]) {
            let ends: Vec<[f64; 2]> = function.boxes.iter().map(|side| side.sides[0]).collect();
            assert!(ends[0][0] == 0.0 && ends.last().unwrap()[1] == 1.0);
            assert!(ends.windows(2).all(|pair| pair[0][1] == pair[1][0]));
            let inner = &ends[1..ends.len() - 1];
            assert!(
                inner
                    .iter()
                    .all(|[from, to]| (0.02 - 1e-12..0.06).contains(&(to - from))),
                "{inner:?}"
            );
            let highest = (0..=200)
                .map(|i| function.at(&[f64::from(i) / 200.0]).abs())
                .fold(0.0, f64::max);
            assert!((1.3..=2.0).contains(&highest), "{highest}");
        }
    }
}
