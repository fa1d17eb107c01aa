//! The kernel values of pairs of records, computed whenever they are asked for: all of them take `8 n^2` bytes, and what proposes a
//! solution and proves it needs fewer.

use super::space::{BLOCK, GramMatrix, RecordSpace, blocked_dot, in_parallel};
use bernstream_synopsis::machine::kernel::CubeKernel;

/// The records of a window under a kernel.
pub struct RecordPairs<'a> {
    kernel: CubeKernel,
    axes: usize,
    places: &'a [[f64; 3]],
}

impl<'a> RecordPairs<'a> {
    /// Axes that are not there are 0.
    pub fn new(kernel: CubeKernel, axes: usize, places: &'a [[f64; 3]]) -> Self {
        RecordPairs {
            kernel,
            axes,
            places,
        }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn diagonal(&self, i: usize) -> f64 {
        let x = &self.places[i][..self.axes];
        self.kernel.value(x, x)
    }

    /// `K(x_i, x_j)` of every record.
    pub fn row(&self, i: usize, row: &mut [f64]) {
        self.kernel
            .write_values(self.axes, &self.places[i], self.places, row);
    }

    /// The kernel values of all pairs.
    pub fn gram_matrix(&self) -> GramMatrix {
        GramMatrix::new(self.len(), |i, row| self.row(i, row))
    }

    /// The records whose coefficient is not 0.
    fn nonzero_terms(&self, b: &[f64]) -> SupportRecords {
        let mut support = SupportRecords {
            places: Vec::new(),
            coefficients: Vec::new(),
        };
        for (place, b) in self.places.iter().zip(b) {
            if *b != 0.0 {
                support.places.push(*place);
                support.coefficients.push(*b);
            }
        }
        support
    }

    /// `f(x)` at `places`, of a function with these terms.
    fn values_at(&self, places: &[[f64; 3]], support: &SupportRecords) -> Vec<f64> {
        let mut sums = vec![0.0; places.len()];
        in_parallel(&mut sums, 1, |i, sum| {
            let mut values = [0.0; BLOCK];
            let blocks = support.places.chunks(BLOCK);
            sum[0] = blocks
                .zip(support.coefficients.chunks(BLOCK))
                .map(|(block, coefficients)| {
                    let values = &mut values[..block.len()];
                    self.kernel
                        .write_values(self.axes, &places[i], block, values);
                    blocked_dot(values, coefficients)
                })
                .sum();
        });
        sums
    }
}

/// Records of the terms of a function: few where the loss is 0 for most records.
struct SupportRecords {
    places: Vec<[f64; 3]>,
    coefficients: Vec<f64>,
}

impl RecordSpace for RecordPairs<'_> {
    fn scores(&self, b: &[f64]) -> Vec<f64> {
        self.values_at(self.places, &self.nonzero_terms(b))
    }

    fn square(&self, b: &[f64]) -> f64 {
        let support = self.nonzero_terms(b);
        let values = self.values_at(&support.places, &support);
        blocked_dot(&values, &support.coefficients)
    }

    /// A sum of fewer products loses no more.
    fn error(&self) -> f64 {
        2.0 * GramMatrix::error_with(self.len())
    }
}
