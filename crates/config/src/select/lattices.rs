//! Values on a lattice, with noise on each: every degree at every order.

use crate::select::search::{Build, Judge, Search};
use crate::settings::{Candidate, Coordinates, Function, NoiseKind};
use bernstream_synopsis::band::Band;
use bernstream_synopsis::predict;
use bernstream_synopsis::predict::Expected;
use bernstream_synopsis::{Basis, Shape};

/// The degrees that are tried, where [`is_quick`] allows.
const DEGREES: [u32; 14] = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
const ORDERS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
/// The most multiplications of one step of the operator, so that a worker starts within seconds.
const WORK: usize = 300_000;

/// Whether a lattice is small enough to be tried: up to degree 546 on one axis, 52 on two, 16 on three.
pub fn is_quick(shape: &Shape) -> bool {
    shape.values() * (shape.degree as usize + 1) * shape.dimensions <= WORK
}

/// The smallest degree that can be chosen.
pub fn first_degree() -> u32 {
    DEGREES[0]
}

impl Search<'_> {
    /// The lattices, each for itself.
    pub(super) fn lattices(&self, build: &Build<'_>) -> Vec<Judge<'_>> {
        let kinds = self.kinds(NoiseKind::is_on_lattice);
        if kinds.is_empty() {
            return Vec::new();
        }
        let degrees = self.degree.map_or(DEGREES.to_vec(), |degree| vec![degree]);
        let lattice = |degree| {
            let on = Coordinates::Lattice { degree };
            Some((on, build(on)?))
        };
        let mut lattices: Vec<(Coordinates, Function)> =
            degrees.into_iter().filter_map(lattice).collect();
        // An affine function is the same whatever degree is asked for.
        lattices.dedup_by_key(|(_, function)| function.target.shape());
        let judge = |(on, function): (Coordinates, Function)| -> Judge<'_> {
            let kinds = kinds.clone();
            Box::new(move || self.of_lattice(&kinds, on, &function))
        };
        lattices.into_iter().map(judge).collect()
    }

    /// Every order of each kind of noise on one lattice; none if it cannot be drawn or sent.
    fn of_lattice(
        &self,
        kinds: &[NoiseKind],
        on: Coordinates,
        function: &Function,
    ) -> Vec<Candidate> {
        let shape = function.target.shape();
        if shape.values() > self.terms.most_values || !is_quick(&shape) {
            return Vec::new();
        }
        let orders = match shape.basis {
            Basis::Bernstein => self.orders.clone().unwrap_or(ORDERS.to_vec()),
            _ => vec![1],
        };
        let Some(rough) = self.rough(function) else {
            return Vec::new();
        };
        let of_kind = |kind: &NoiseKind| -> Vec<Candidate> {
            let Some(scale) = self.scale(*kind, function) else {
                return Vec::new();
            };
            let expected = match shape.basis {
                Basis::Bernstein => predict::on_lattice(&shape, kind.law(), scale, &orders, &rough),
                _ => {
                    let band = Band::simulate(&shape, kind.law(), 1);
                    let noise = scale * band.expected_sup;
                    let within = scale * band.half_width;
                    vec![
                        Expected {
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
            let candidates = orders
                .iter()
                .zip(expected)
                .map(|(order, expected)| Candidate {
                    noise: *kind,
                    on,
                    order: *order,
                    values: shape.values(),
                    expected,
                });
            candidates.collect()
        };
        kinds.iter().flat_map(of_kind).collect()
    }
}
