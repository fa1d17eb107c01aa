//! Kernel points, with noise on the whitened coordinates.

use crate::config::select::search::{Build, Judge, Search};
use crate::config::settings::{Candidate, Coordinates, Function, NoiseKind};
use crate::synopsis::predict::{self, Expected};
use crate::targets::whitened::Points;
use crate::targets::{Basis, KernelBasis};

/// The numbers of kernel points that are tried.
const POINTS: [u32; 36] = [
    1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 44, 48, 56, 64, 72, 80, 96, 112, 128, 144,
    160, 192, 224, 256, 320, 384, 512,
];

impl Search<'_> {
    /// The points that are chosen one after the other, all numbers of them together.
    pub(super) fn points(&self, build: &Build<'_>) -> Vec<Judge<'_>> {
        let kinds = self.kinds(NoiseKind::is_on_points);
        if kinds.is_empty() {
            return Vec::new();
        }
        let sizes = self.points.map_or(POINTS.to_vec(), |points| vec![points]);
        // As many points as a function can have: a table that would be too large has fewer.
        let largest = sizes.iter().rev().find_map(|most| build(Coordinates::Points { most: *most }));
        let judge = |function: Function| -> Judge<'_> { Box::new(move || self.of_points(&kinds, &sizes, &function)) };
        largest.map(judge).into_iter().collect()
    }

    /// Every number of points up to that of `function`; none if it cannot be drawn or sent.
    fn of_points(&self, kinds: &[NoiseKind], sizes: &[u32], function: &Function) -> Vec<Candidate> {
        let Basis::Kernel(KernelBasis { kernel, points }) = function.target.shape().basis else { return Vec::new() };
        // Each point stands in the message twice: as a coefficient, and as its coordinates.
        let most = points.len().min(self.terms.most_values / (1 + 3 * self.axes.len()));
        let counts: Vec<usize> = sizes.iter().map(|count| *count as usize).filter(|count| *count <= most).collect();
        let (Some(bump), Ok(points)) = (self.bump(function), Points::choose(kernel, self.axes.len(), most)) else {
            return Vec::new();
        };
        let of_body = |kind: &NoiseKind| -> Vec<Candidate> {
            let Some(scale) = self.scale(*kind, function) else { return Vec::new() };
            let expected = predict::on_points(&points, kind.law(), scale, &counts, &bump);
            let candidate = |(count, expected): (&usize, Expected)| Candidate {
                noise: *kind,
                on: Coordinates::Points { most: u32::try_from(*count).unwrap_or(u32::MAX) },
                order: 1,
                values: *count,
                expected,
            };
            counts.iter().zip(expected).map(candidate).collect()
        };
        kinds.iter().flat_map(of_body).collect()
    }
}
