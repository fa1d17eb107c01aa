//! `"auto"`: chooses the noise, degree, order or points with the smallest predicted error, from public quantities only.
//!
//! The prediction is the mean of the largest error over the domain, in natural units, simulated with the noise that the price
//! of the release buys ([`predict`]). It uses measured operator norms instead of `2^h - 1`, and, since `[AR17]` theorem 3 gives
//! only a rate, the approximation error on one function, a bump: half of the expected records form one cluster as wide as the
//! smoothing of the function, anywhere in the domain; the other half are spread evenly and add no error.
//!
//! Why a bump: evenly spread records need no degree at all, and records in one point need no bandwidth. Operators choose a
//! bandwidth no wider than the features they want to see, so the bandwidth is taken as the width of a feature.
//!
//! The choice must be the same on every machine: it depends on no clock, thread or cache. (The last digit of an exponential
//! may differ between machines. That matters only for candidates that are equal to fifteen digits, and a worker whose choice
//! differs from that of its ledger refuses to start.)

use std::thread;

use crate::config::settings::{Candidate, Coordinates, Feature, Function, Height, NoiseKind, Selection};
use crate::mechanism::Mechanism;
use crate::mechanism::price::Price;
use crate::synopsis::predict::{self, Bump, Expected};
use crate::targets::whitened::Points;
use crate::targets::{Adjacency, Basis, KernelBasis, Shape};
use crate::window::Axis;

/// The degrees that are tried, where [`is_quick`] allows.
const DEGREES: [u32; 14] = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
const ORDERS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
/// The numbers of kernel points that are tried.
const POINTS: [u32; 36] = [
    1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 44, 48, 56, 64, 72, 80, 96, 112, 128, 144,
    160, 192, 224, 256, 320, 384, 512,
];
/// The most multiplications of one step of the operator, so that a worker starts within seconds.
const WORK: usize = 300_000;

/// What to choose from, and what the choice depends on.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    pub kinds: &'a [NoiseKind],
    /// A fixed degree, or those of the list.
    pub degree: Option<u32>,
    /// Fixed orders, ascending, or those of the list.
    pub orders: Option<Vec<u32>>,
    /// A fixed number of kernel points, or those of the list.
    pub points: Option<u32>,
    pub expected_records: u64,
    pub price: Price,
    pub terms: Terms,
    pub axes: &'a [Axis],
}

/// What the choice depends on in other sections of the file.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub adjacency: Adjacency,
    pub contributions: u32,
    /// The most values that a message holds.
    pub most_values: usize,
}

/// Whether a lattice is small enough to be tried: up to degree 546 on one axis, 52 on two, 16 on three.
pub fn is_quick(shape: &Shape) -> bool {
    shape.values() * (shape.degree as usize + 1) * shape.dimensions <= WORK
}

/// The smallest degree that can be chosen.
pub fn first_degree() -> u32 {
    DEGREES[0]
}

impl Search<'_> {
    /// The best candidate; `None` if no candidate can be built, drawn and sent. `build` returns the function on given
    /// coordinates.
    pub fn choose(&self, build: impl Fn(Coordinates) -> Option<Function>) -> Option<Selection> {
        let (on_points, on_lattices): (Vec<NoiseKind>, Vec<NoiseKind>) =
            self.kinds.iter().partition(|kind| kind.is_on_points());
        let degrees = match (on_lattices.is_empty(), self.degree) {
            (true, _) => Vec::new(),
            (_, Some(degree)) => vec![degree],
            (_, None) => DEGREES.to_vec(),
        };
        let lattice = |degree| {
            let on = Coordinates::Lattice { degree };
            Some((on, build(on)?))
        };
        let mut lattices: Vec<(Coordinates, Function)> = degrees.into_iter().filter_map(lattice).collect();
        // An affine function is the same whatever degree is asked for.
        lattices.dedup_by_key(|(_, function)| function.target.shape());
        let sizes = self.points.map_or(POINTS.to_vec(), |points| vec![points]);
        // As many points as a function can have: a table that would be too large has fewer.
        let largest = || sizes.iter().rev().find_map(|most| build(Coordinates::Points { most: *most }));
        let pointed = if on_points.is_empty() { None } else { largest() };
        let judged: Vec<Vec<Candidate>> = thread::scope(|scope| {
            let (on_lattices, on_points, sizes) = (&on_lattices, &on_points, &sizes);
            let lattices =
                lattices.iter().map(|(on, function)| scope.spawn(move || self.on_lattice(on_lattices, *on, function)));
            let pointed =
                pointed.iter().map(|function| scope.spawn(move || self.on_points(on_points, sizes, function)));
            let workers: Vec<_> = lattices.chain(pointed).collect();
            workers.into_iter().map(|worker| worker.join().unwrap_or_default()).collect()
        });
        let mut candidates: Vec<Candidate> = judged.into_iter().flatten().collect();
        candidates.sort_by_key(|candidate| candidate.noise);
        // The first of equals: the smallest message of the simplest kind.
        let best = candidates.iter().copied().min_by(|a, b| a.expected.error.total_cmp(&b.expected.error))?;
        let bump = build(best.on).and_then(|function| self.bump(&function));
        Some(Selection { expected_records: self.expected_records, candidates, best, bump })
    }

    /// The best order of each kind of noise on one lattice; none if it cannot be drawn or sent.
    fn on_lattice(&self, kinds: &[NoiseKind], on: Coordinates, function: &Function) -> Vec<Candidate> {
        let shape = function.target.shape();
        if shape.values() > self.terms.most_values || !is_quick(&shape) {
            return Vec::new();
        }
        let orders = match shape.basis {
            Basis::Bernstein => self.orders.clone().unwrap_or(ORDERS.to_vec()),
            _ => vec![1],
        };
        let Some(bump) = self.bump(function) else { return Vec::new() };
        let best = |kind: &NoiseKind| {
            let scale = self.scale(*kind, function)?;
            let expected = match shape.basis {
                Basis::Bernstein => predict::on_lattice(&shape, kind.law(), scale, &orders, &bump),
                _ => predict::noise(&shape, kind.law(), &orders)
                    .into_iter()
                    .map(|noise| Expected { noise: noise * scale, approximation: 0.0, error: noise * scale })
                    .collect(),
            };
            let candidates = orders.iter().zip(expected).map(|(order, expected)| Candidate {
                noise: *kind,
                on,
                order: *order,
                values: shape.values(),
                expected,
            });
            candidates.min_by(|a, b| a.expected.error.total_cmp(&b.expected.error))
        };
        kinds.iter().filter_map(best).collect()
    }

    /// Every number of points up to that of `function`; none if it cannot be drawn or sent.
    fn on_points(&self, kinds: &[NoiseKind], sizes: &[u32], function: &Function) -> Vec<Candidate> {
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

    /// The scale of the noise, in natural units.
    fn scale(&self, kind: NoiseKind, function: &Function) -> Option<f64> {
        let Terms { adjacency, contributions, .. } = self.terms;
        let change = kind.law().sensitivity(&*function.target, adjacency, contributions).ok()?;
        let mechanism = Mechanism::calibrated(
            kind.law(),
            change,
            function.target.shape().values() * contributions as usize,
            self.price,
        )
        .ok()?;
        #[expect(clippy::cast_precision_loss, reason = "a prediction; the noise itself is drawn from the integer")]
        Some(mechanism.scale().units() as f64 * function.unit)
    }

    /// The bump that the release must resolve: widths in the unit cube, height in natural units.
    #[expect(clippy::cast_precision_loss, reason = "a prediction")]
    fn bump(&self, function: &Function) -> Option<Bump> {
        let records = self.expected_records as f64;
        let most = function.target.sup_sensitivity(Adjacency::AddRemove, 1).ok()? as f64 * function.unit;
        let Feature { widths, height } = function.feature.as_ref()?;
        let height = match height {
            Height::HalfOfRecords => records / 2.0 * most,
            Height::Fixed(height) => *height,
            Height::Covered { limit, gap } => limit * (gap * records).min(1.0),
        };
        // Two Gaussians on top of each other: the cluster, and the smoothing, each as wide as the other.
        let lowered = height * 0.5_f64.powf(widths.len() as f64 / 2.0);
        Some(Bump { widths: widths.iter().map(|b| b * 2.0_f64.sqrt()).collect(), height: lowered })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Settings;

    const FLIGHTS: &str = include_str!("../../config/flights.toml");

    fn chosen(records: u64, changes: &[(&str, &str)]) -> (u32, u32) {
        let auto = format!("degree = \"auto\"\norder = \"auto\"\nexpected_records = {records}");
        let text = FLIGHTS.replace("degree = 40\norder = 4", &auto);
        let text = changes.iter().fold(text, |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replace(old, new)
        });
        let settings = Settings::parse(&text, "test").unwrap();
        (settings.releases[0].shape().degree, settings.releases[0].order)
    }

    /// A change here changes the settings of running ledgers: their workers refuse to start until the earlier choice is written
    /// into the file. Say so in the changelog.
    #[test]
    fn the_choice_stays_what_it_was() {
        let found = [
            chosen(300, &[]),
            chosen(20, &[]),
            chosen(10_000, &[]),
            chosen(300, &[("bandwidths = [10]", "bandwidths = [40]")]),
            chosen(300, &[("epsilon = 1.0\ndegree", "epsilon = 0.1\ndegree")]),
        ];
        assert_eq!(found, [(24, 32), (8, 6), (64, 32), (4, 12), (8, 12)]);
    }
}
