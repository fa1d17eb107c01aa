//! Kernel points, with noise on the whitened coordinates: chosen one after the other, or evenly spaced.

use crate::select::search::{BuildFunction, CandidateSearch, CandidateTask};
use crate::settings::{Coordinates, NoiseCandidate, NoiseKind};
use bernstream_synopsis::machine::CubeKernel;
use bernstream_synopsis::predict;
use bernstream_synopsis::rough::WorstCaseFunctions;
use bernstream_synopsis::whitened::{AxisCounts, Points};
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

impl CandidateSearch<'_> {
    /// The points that are chosen one after the other, all numbers of them together; and those that are evenly spaced.
    pub(super) fn point_judges(&self, build: &BuildFunction<'_>) -> Vec<CandidateTask<'_>> {
        let kinds = self.kinds_of_family(NoiseKind::is_on_points);
        if kinds.is_empty() {
            return Vec::new();
        }
        let sizes = match self.points {
            None => POINTS.to_vec(),
            Some(Coordinates::Points { most }) => vec![most],
            Some(_) => Vec::new(),
        };
        // As many points as a function can have: a table that would be too large has fewer.
        let function = match self.points {
            Some(on) => build(on),
            None => sizes
                .iter()
                .rev()
                .find_map(|most| build(Coordinates::Points { most: *most })),
        };
        let Some(function) = function else {
            return Vec::new();
        };
        let Basis::Kernel(KernelBasis { kernel, points }) = function.target.shape().basis else {
            return Vec::new();
        };
        let Some(rough) = self.worst_functions(&function) else {
            return Vec::new();
        };
        // Each point stands in the message twice: as a coefficient, and as its coordinates.
        let most = points
            .len()
            .min(self.terms.most_values / (1 + 3 * self.axes.len()));
        let grids = match self.points {
            None => self.point_grids(&kernel, most),
            Some(Coordinates::Tensor(counts)) => vec![counts],
            Some(_) => Vec::new(),
        };
        let counts: Vec<usize> = sizes
            .iter()
            .map(|count| *count as usize)
            .filter(|count| *count <= most)
            .collect();
        let mut scales = Vec::new();
        for kind in kinds {
            if let Some(scale) = self.noise_scale(kind, &function) {
                scales.push(NoiseScale { kind, scale });
            }
        }
        let axes = self.axes.len();
        let judge = PointJudge { scales, rough };
        let mut judges: Vec<CandidateTask<'_>> = Vec::new();
        for grid in grids {
            let kernel = kernel.clone();
            let judge = judge.clone();
            judges.push(Box::new(move || {
                match Points::evenly_spaced(kernel, grid) {
                    Ok(points) => judge.candidates(&points, &[points.count()], Some(grid)),
                    Err(_) => Vec::new(),
                }
            }));
        }
        if !counts.is_empty() {
            judges.push(Box::new(move || {
                match Points::choose_greedily(kernel, axes, most) {
                    Ok(points) => judge.candidates(&points, &counts, None),
                    Err(_) => Vec::new(),
                }
            }));
        }
        judges
    }

    /// Grids of at most so many points, as fine along every axis as the kernel is wide; for kernels that are as wide everywhere.
    fn point_grids(&self, kernel: &PointKernel, most: usize) -> Vec<AxisCounts> {
        if !matches!(
            kernel,
            PointKernel::Gaussian { .. } | PointKernel::Machine(CubeKernel::Gaussian { .. })
        ) {
            return Vec::new();
        }
        let mut grids = Vec::new();
        for step in STEPS {
            let mut along = Vec::new();
            for axis in 0..self.axes.len() {
                // A cast from a float saturates.
                along.push(
                    (1.0 / (step * kernel.width_along(axis)) + 0.5)
                        .round()
                        .max(1.0) as u32,
                );
            }
            if let Some(counts) = AxisCounts::new(&along)
                && counts.point_count() <= most
            {
                grids.push(counts);
            }
        }
        grids.dedup();
        grids
    }
}

/// A kind of noise and its scale, in natural units.
#[derive(Clone, Copy)]
struct NoiseScale {
    kind: NoiseKind,
    scale: f64,
}

/// Judges kernel points, with every kind of noise.
#[derive(Clone)]
struct PointJudge {
    scales: Vec<NoiseScale>,
    rough: WorstCaseFunctions,
}

impl PointJudge {
    /// Every number of points of `counts`, up to that of `points`; where they are evenly spaced, on this `grid`.
    fn candidates(
        &self,
        points: &Points,
        counts: &[usize],
        grid: Option<AxisCounts>,
    ) -> Vec<NoiseCandidate> {
        let mut candidates = Vec::new();
        for NoiseScale { kind, scale } in &self.scales {
            let expected = predict::point_errors(
                points,
                kind.noise_distribution(),
                *scale,
                counts,
                &self.rough,
            );
            for (count, expected) in counts.iter().zip(expected) {
                let on = match grid {
                    Some(counts) => Coordinates::Tensor(counts),
                    None => Coordinates::Points {
                        most: u32::try_from(*count).unwrap_or(u32::MAX),
                    },
                };
                candidates.push(NoiseCandidate {
                    noise: *kind,
                    on,
                    order: 1,
                    values: *count,
                    expected,
                });
            }
        }
        candidates
    }
}
