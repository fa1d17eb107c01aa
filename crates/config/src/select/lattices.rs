//! Values on a lattice, with noise on each: every degree at every order.

use crate::select::search::{BuildFunction, CandidateSearch, CandidateTask};
use crate::settings::{Coordinates, NoiseCandidate, NoiseKind, ReleasedFunction};
use bernstream_synopsis::band::Band;
use bernstream_synopsis::predict;
use bernstream_synopsis::predict::ExpectedErrors;
use bernstream_synopsis::{Basis, Shape};

/// The degrees that are tried, where [`is_quick`] allows.
const DEGREES: [u32; 14] = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
const ORDERS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
/// The most multiplications of one step of the operator, so that a worker starts within seconds.
const WORK: usize = 300_000;

/// Returns whether a lattice is small enough to be tried: up to degree 546 on one axis, 52 on two, 16 on three.
pub fn is_quick(shape: &Shape) -> bool {
    shape.value_count() * (shape.degree as usize + 1) * shape.dimensions <= WORK
}

/// The smallest degree that can be chosen.
pub fn first_degree() -> u32 {
    DEGREES[0]
}

impl CandidateSearch<'_> {
    /// The lattices, each for itself.
    pub(super) fn lattice_judges(&self, build: &BuildFunction<'_>) -> Vec<CandidateTask<'_>> {
        let kinds = self.kinds_of_family(NoiseKind::is_on_lattice);
        if kinds.is_empty() {
            return Vec::new();
        }
        let degrees = self.degree.map_or(DEGREES.to_vec(), |degree| vec![degree]);
        let mut lattices = Vec::new();
        for degree in degrees {
            let on = Coordinates::Lattice { degree };
            if let Some(function) = build(on) {
                lattices.push(BuiltLattice { on, function });
            }
        }
        // An affine function is the same whatever degree is asked for.
        lattices.dedup_by_key(|lattice| lattice.function.target.shape());
        let mut judges: Vec<CandidateTask<'_>> = Vec::new();
        for lattice in lattices {
            let kinds = kinds.clone();
            judges.push(Box::new(move || self.judge_lattice(&kinds, &lattice)));
        }
        judges
    }

    /// Every order of each kind of noise on one lattice; none if it cannot be drawn or sent.
    fn judge_lattice(&self, kinds: &[NoiseKind], lattice: &BuiltLattice) -> Vec<NoiseCandidate> {
        let BuiltLattice { on, function } = lattice;
        let shape = function.target.shape();
        if shape.value_count() > self.terms.most_values || !is_quick(&shape) {
            return Vec::new();
        }
        let orders = match shape.basis {
            Basis::Bernstein => self.orders.clone().unwrap_or(ORDERS.to_vec()),
            _ => vec![1],
        };
        let Some(rough) = self.worst_functions(function) else {
            return Vec::new();
        };
        let mut candidates = Vec::new();
        for kind in kinds {
            let Some(scale) = self.noise_scale(*kind, function) else {
                continue;
            };
            let expected = match shape.basis {
                Basis::Bernstein => predict::lattice_errors(
                    &shape,
                    kind.noise_distribution(),
                    scale,
                    &orders,
                    &rough,
                ),
                _ => {
                    let band = Band::simulate(&shape, kind.noise_distribution(), 1);
                    let noise = scale * band.expected_sup;
                    let within = scale * band.half_width;
                    vec![
                        ExpectedErrors {
                            noise,
                            approximation: 0.0,
                            error: noise,
                            within,
                            spread: noise
                        };
                        orders.len()
                    ]
                }
            };
            for (order, expected) in orders.iter().zip(expected) {
                candidates.push(NoiseCandidate {
                    noise: *kind,
                    on: *on,
                    order: *order,
                    values: shape.value_count(),
                    expected,
                });
            }
        }
        candidates
    }
}

/// A lattice, and the function on it.
struct BuiltLattice {
    on: Coordinates,
    function: ReleasedFunction,
}
