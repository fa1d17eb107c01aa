//! Kernel points, with noise on the whitened coordinates: chosen one after the other, or evenly spaced.

use crate::select::search::{Build, Judge, Search};
use crate::settings::{Candidate, Coordinates, NoiseKind};
use bernstream_synopsis::machine::Kernel;
use bernstream_synopsis::predict;
use bernstream_synopsis::predict::Expected;
use bernstream_synopsis::rough::WorstCaseFunctions;
use bernstream_synopsis::whitened::{Counts, Points};
use bernstream_synopsis::{Basis, KernelBasis, PointKernel};

/// The numbers of points that are tried, where they are chosen one after the other.
const POINTS: [u32; 36] = [
    1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 44, 48, 56, 64, 72, 80,
    96, 112, 128, 144, 160, 192, 224, 256, 320, 384, 512,
];
/// The steps that are tried where they are evenly spaced, in widths of the kernel.
const STEPS: [f64; 14] = [
    4.0, 3.4, 3.0, 2.6, 2.3, 2.0, 1.8, 1.6, 1.45, 1.3, 1.2, 1.1, 1.0, 0.9,
];

impl Search<'_> {
    /// The points that are chosen one after the other, all numbers of them together; and those that are evenly spaced.
    pub(super) fn points(&self, build: &Build<'_>) -> Vec<Judge<'_>> {
        let kinds = self.kinds(NoiseKind::is_on_points);
        if kinds.is_empty() {
            return Vec::new();
        }
        let sizes = match self.points {
            None => POINTS.to_vec(),
            Some(Coordinates::Points { most }) => vec![most],
            Some(_) => Vec::new(),
        };
        // As many points as a function can have: a table that would be too large has fewer.
        let largest = || {
            sizes
                .iter()
                .rev()
                .find_map(|most| build(Coordinates::Points { most: *most }))
        };
        let Some(function) = self.points.map_or_else(largest, build) else {
            return Vec::new();
        };
        let Basis::Kernel(KernelBasis { kernel, points }) = function.target.shape().basis else {
            return Vec::new();
        };
        let Some(rough) = self.rough(&function) else {
            return Vec::new();
        };
        // Each point stands in the message twice: as a coefficient, and as its coordinates.
        let most = points
            .len()
            .min(self.terms.most_values / (1 + 3 * self.axes.len()));
        let grids = match self.points {
            None => self.grids(&kernel, most),
            Some(Coordinates::Tensor(counts)) => vec![counts],
            Some(_) => Vec::new(),
        };
        let counts: Vec<usize> = sizes
            .iter()
            .map(|count| *count as usize)
            .filter(|count| *count <= most)
            .collect();
        let scales: Vec<(NoiseKind, f64)> = kinds
            .iter()
            .filter_map(|kind| Some((*kind, self.scale(*kind, &function)?)))
            .collect();
        let axes = self.axes.len();
        let on_grid = |counts: Counts| -> Judge<'_> {
            let kernel = kernel.clone();
            let scales = scales.clone();
            let rough = rough.clone();
            Box::new(move || match Points::tensor(kernel, counts) {
                Ok(points) => judged(
                    &scales,
                    &points,
                    &[points.count()],
                    |_| Coordinates::Tensor(counts),
                    &rough,
                ),
                Err(_) => Vec::new(),
            })
        };
        let mut judges: Vec<Judge<'_>> = grids.into_iter().map(on_grid).collect();
        if !counts.is_empty() {
            let kernel = kernel.clone();
            let scales = scales.clone();
            let rough = rough.clone();
            let on = |count: usize| Coordinates::Points {
                most: u32::try_from(count).unwrap_or(u32::MAX),
            };
            judges.push(Box::new(move || match Points::choose(kernel, axes, most) {
                Ok(points) => judged(&scales, &points, &counts, on, &rough),
                Err(_) => Vec::new(),
            }));
        }
        judges
    }

    /// Grids of at most so many points, as fine along every axis as the kernel is wide; for kernels that are as wide everywhere.
    fn grids(&self, kernel: &PointKernel, most: usize) -> Vec<Counts> {
        if !matches!(
            kernel,
            PointKernel::Gaussian { .. } | PointKernel::Machine(Kernel::Gaussian { .. })
        ) {
            return Vec::new();
        }
        let along = |step: f64| -> Option<Counts> {
            // A cast from a float saturates.
            let count = |axis| (1.0 / (step * kernel.width(axis)) + 0.5).round().max(1.0) as u32;
            Counts::new(&(0..self.axes.len()).map(count).collect::<Vec<u32>>())
        };
        let mut grids: Vec<Counts> = STEPS
            .iter()
            .filter_map(|step| along(*step))
            .filter(|counts| counts.product() <= most)
            .collect();
        grids.dedup();
        grids
    }
}

/// Every number of points of `counts`, up to that of `points`, with every kind of noise and its scale.
fn judged(
    scales: &[(NoiseKind, f64)],
    points: &Points,
    counts: &[usize],
    on: impl Fn(usize) -> Coordinates,
    rough: &WorstCaseFunctions,
) -> Vec<Candidate> {
    let of_kind = |(noise, scale): &(NoiseKind, f64)| -> Vec<Candidate> {
        let expected = predict::on_points(points, noise.law(), *scale, counts, rough);
        let candidate = |(count, expected): (&usize, Expected)| Candidate {
            noise: *noise,
            on: on(*count),
            order: 1,
            values: *count,
            expected,
        };
        counts.iter().zip(expected).map(candidate).collect()
    };
    scales.iter().flat_map(of_kind).collect()
}
