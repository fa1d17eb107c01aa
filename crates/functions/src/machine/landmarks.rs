//! Explicit features from public landmarks, for windows whose Gram matrix would not fit.
//!
//! `phi(x) = L^-1 k_Z(x)`, `L L' = K_ZZ` over landmarks `Z` on a public lattice, in pivoted order and cut where nothing is
//! left: the functions that are searched are those spanned by the landmarks' kernels (`phi' phi` is the Nyström kernel).
//! A product kernel has the product of its axes' features, and the lattice sums are products too.
//!
//! The features that are computed are the features, whatever the floats did to them: the kernel of the target *is*
//! their inner product. What the sensitivity asks of a record is enforced on these numbers, on each record alone: its
//! norm is at most 1, and on a product kernel's axis its column sum at most that of the kernel; longer ones are
//! shortened.

use bernstream_synopsis::cholesky::{Pivoted, dot_product};
use bernstream_synopsis::machine::kernel::{CubeKernel, CubeLattice, round_up_sum};

/// The features are cut where every landmark keeps less than this of `K(z, z)`.
const REST: f64 = 1e-8;

/// Longest feature vector: shortening leaves room for the rounding to single precision.
const MARGIN: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// Single precision may move a feature vector by this much.
const SINGLE: f64 = 1.0 / (1 << 22) as f64;

/// The features of a kernel, and those of the lattice points. Public.
#[derive(Clone, Debug)]
pub(super) struct LandmarkMap {
    /// Factors, one an axis for a product kernel, one for all axes together otherwise.
    factors: Vec<LandmarkFactor>,
    points: usize,
}

#[derive(Clone, Debug)]
struct LandmarkFactor {
    kernel: CubeKernel,
    landmarks: Vec<[f64; 3]>,
    /// The rows of `L`.
    rows: Vec<Vec<f64>>,
    /// The features of the lattice points.
    lattice: Vec<Vec<f64>>,
    /// No record has a larger column sum.
    column: f64,
}

impl LandmarkMap {
    /// Landmarks on the lattice of degree `landmarks`.
    pub fn new(kernel: CubeKernel, landmarks: u32, lattice: &CubeLattice) -> Self {
        let parts = if kernel.is_product() { lattice.axes } else { 1 };
        let axes = lattice.axes / parts;
        let factor = LandmarkFactor::new(
            kernel,
            &CubeLattice {
                axes,
                degree: landmarks,
            },
            &CubeLattice {
                axes,
                degree: lattice.degree,
            },
            kernel.is_product(),
        );
        LandmarkMap {
            factors: vec![factor; parts],
            points: lattice.count(),
        }
    }

    /// Number of features.
    pub fn width(&self) -> usize {
        self.factors
            .iter()
            .map(|factor| factor.rows.len())
            .product()
    }

    /// The features of a record at `x`.
    pub fn write_features(&self, x: &[f64], features: &mut [f32]) {
        for (single, feature) in features.iter_mut().zip(self.features_at(x)) {
            *single = feature as f32;
        }
    }

    /// The features at a point where a function is asked for.
    pub fn features_at(&self, x: &[f64]) -> Vec<f64> {
        let mut product = vec![1.0];
        let axes = x.len() / self.factors.len();
        for (factor, x) in self.factors.iter().zip(x.chunks(axes)) {
            let inner = factor.features(x);
            product = product
                .iter()
                .flat_map(|outer| inner.iter().map(move |inner| outer * inner))
                .collect();
        }
        product
    }

    /// `<w, phi(p)>` for all lattice points, row-major.
    pub fn lattice_values(&self, weights: &[f64]) -> Vec<f64> {
        let mut values = weights.to_vec();
        let mut inner = weights.len();
        for factor in &self.factors {
            let width = factor.rows.len();
            inner /= width;
            let mut sums = Vec::with_capacity(values.len() / width * factor.lattice.len());
            for block in values.chunks_exact(width * inner) {
                for phi in &factor.lattice {
                    for i in 0..inner {
                        let rows = block.chunks_exact(inner);
                        sums.push(phi.iter().zip(rows).map(|(phi, row)| phi * row[i]).sum());
                    }
                }
            }
            values = sums;
        }
        values
    }

    /// Upper bound of `sum_{p, q} |<phi(p), phi(q)>|`.
    pub fn pair_sum(&self) -> f64 {
        let factors = self.factors.iter();
        round_up_sum(
            factors
                .map(|factor| factor.row_sums().sum::<f64>())
                .product(),
        )
    }

    /// Upper bound of `sum_q |<phi(p), phi(q)>|` for every lattice point `p`.
    pub fn row_sum(&self) -> f64 {
        let factors = self.factors.iter();
        round_up_sum(
            factors
                .map(|factor| factor.row_sums().fold(0.0, f64::max))
                .product(),
        )
    }

    /// Upper bound of `sum_p |<phi(x), phi(p)>|` for every record.
    pub fn column_sum(&self) -> f64 {
        let columns: f64 = self.factors.iter().map(|factor| factor.column).product();
        round_up_sum(columns) + self.points as f64 * SINGLE
    }
}

impl LandmarkFactor {
    fn new(
        kernel: CubeKernel,
        landmarks: &CubeLattice,
        lattice: &CubeLattice,
        shorten: bool,
    ) -> Self {
        let points: Vec<[f64; 3]> = landmarks.points().collect();
        let axes = landmarks.axes;
        // In the order of the largest rests.
        let chosen = Pivoted::new(
            points.len(),
            |i, j| kernel.value(&points[i][..axes], &points[j][..axes]),
            points.len(),
            REST,
        );
        let mut factor = LandmarkFactor {
            kernel,
            landmarks: chosen.order.iter().map(|index| points[*index]).collect(),
            rows: chosen.factor_rows().map(<[f64]>::to_vec).collect(),
            lattice: Vec::new(),
            column: f64::INFINITY,
        };
        factor.lattice = lattice
            .points()
            .map(|p| factor.features(&p[..lattice.axes]))
            .collect();
        factor.column = if shorten {
            kernel.column_sum(lattice)
        } else {
            factor.row_sums().sum::<f64>().sqrt()
        };
        factor
    }

    /// `sum_q |<phi(p), phi(q)>|` of every lattice point `p`.
    fn row_sums(&self) -> impl Iterator<Item = f64> {
        let points = self.lattice.iter();
        points.map(|p| self.lattice.iter().map(|q| dot_product(p, q).abs()).sum())
    }

    fn features(&self, x: &[f64]) -> Vec<f64> {
        let mut features = Vec::with_capacity(self.rows.len());
        for (landmark, row) in self.landmarks.iter().zip(&self.rows) {
            let rest = self.kernel.value(x, &landmark[..x.len()]) - dot_product(row, &features);
            features.push(rest / row.last().copied().unwrap_or(1.0));
        }
        let mut length = dot_product(&features, &features).sqrt();
        if x.len() == 1 && self.column.is_finite() {
            let column: f64 = self
                .lattice
                .iter()
                .map(|p| dot_product(p, &features).abs())
                .sum();
            length = length.max(column / self.column);
        }
        let scale = (MARGIN / length).min(1.0);
        for feature in &mut features {
            *feature *= scale;
        }
        features
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the numbers that are used, whatever the floats did on the way there.
    #[test]
    fn no_record_is_longer_than_one_or_adds_up_to_more_than_its_column() {
        let narrow = CubeKernel::Gaussian { bandwidth: 0.05 };
        let wide = CubeKernel::Gaussian { bandwidth: 5.0 };
        for kernel in [
            narrow,
            wide,
            CubeKernel::Laplacian { bandwidth: 0.1 },
            CubeKernel::Polynomial { power: 4 },
            CubeKernel::Linear,
        ] {
            for axes in 1..=2 {
                let lattice = CubeLattice { axes, degree: 7 };
                let map = LandmarkMap::new(kernel, 9, &lattice);
                let mut features = vec![0.0_f32; map.width()];
                for x in (CubeLattice {
                    axes,
                    degree: 60 / axes as u32,
                })
                .points()
                {
                    map.write_features(&x[..axes], &mut features);
                    let exact: Vec<f64> =
                        features.iter().map(|feature| f64::from(*feature)).collect();
                    assert!(dot_product(&exact, &exact) <= 1.0, "{kernel:?}");
                    let column: f64 = map
                        .lattice_values(&exact)
                        .iter()
                        .map(|value| value.abs())
                        .sum();
                    assert!(
                        column <= map.column_sum(),
                        "{kernel:?} {axes}: {column} {}",
                        map.column_sum()
                    );
                }
            }
        }
    }

    #[test]
    fn between_landmarks_the_kernel_is_itself() {
        let lattice = CubeLattice { axes: 2, degree: 5 };
        for (kernel, off) in [
            (CubeKernel::Gaussian { bandwidth: 0.5 }, 1e-4),
            (CubeKernel::Polynomial { power: 3 }, 1e-5),
            (CubeKernel::Linear, 1e-5),
        ] {
            let map = LandmarkMap::new(kernel, 8, &lattice);
            let mut features = vec![0.0_f32; map.width()];
            let x = [0.23, 0.81];
            map.write_features(&x, &mut features);
            let values = map.lattice_values(
                &features
                    .iter()
                    .map(|feature| f64::from(*feature))
                    .collect::<Vec<_>>(),
            );
            for (value, p) in values.iter().zip(lattice.points()) {
                assert!(
                    (value - kernel.value(&x, &p[..2])).abs() < off,
                    "{kernel:?}"
                );
            }
        }
        assert_eq!(LandmarkMap::new(CubeKernel::Linear, 1, &lattice).width(), 3);
        assert_eq!(
            LandmarkMap::new(CubeKernel::Polynomial { power: 3 }, 8, &lattice).width(),
            10
        );
    }
}
