//! The kernel values of pairs of records, computed whenever they are asked for: all of them take `8 n^2` bytes, and what proposes a
//! solution and proves it needs fewer.

use super::space::{BLOCK, Gram, Space, dot, in_parallel};
use bernstream_synopsis::machine::kernel::Kernel;

/// The records of a window under a kernel.
pub struct Pairs<'a> {
    kernel: Kernel,
    axes: usize,
    places: &'a [[f64; 3]],
}

impl<'a> Pairs<'a> {
    /// Axes that are not there are 0.
    pub fn new(kernel: Kernel, axes: usize, places: &'a [[f64; 3]]) -> Self {
        Pairs {
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
            .values(self.axes, &self.places[i], self.places, row);
    }

    /// All of them.
    pub fn gram(&self) -> Gram {
        Gram::new(self.len(), |i, row| self.row(i, row))
    }

    /// Those whose coefficient is not 0: few where the loss is 0 for most records.
    fn support(&self, b: &[f64]) -> (Vec<[f64; 3]>, Vec<f64>) {
        self.places
            .iter()
            .zip(b)
            .filter(|(_, b)| **b != 0.0)
            .unzip()
    }

    /// `f(x)` at some places, of a function with these terms.
    fn sums(&self, at: &[[f64; 3]], (places, b): &(Vec<[f64; 3]>, Vec<f64>)) -> Vec<f64> {
        let mut sums = vec![0.0; at.len()];
        in_parallel(&mut sums, 1, |i, sum| {
            let mut values = [0.0; BLOCK];
            let block = |(places, b): (&[[f64; 3]], &[f64])| {
                let values = &mut values[..places.len()];
                self.kernel.values(self.axes, &at[i], places, values);
                dot(values, b)
            };
            sum[0] = places.chunks(BLOCK).zip(b.chunks(BLOCK)).map(block).sum();
        });
        sums
    }
}

impl Space for Pairs<'_> {
    fn scores(&self, b: &[f64]) -> Vec<f64> {
        self.sums(self.places, &self.support(b))
    }

    fn square(&self, b: &[f64]) -> f64 {
        let support = self.support(b);
        dot(&self.sums(&support.0, &support), &support.1)
    }

    /// A sum of fewer products loses no more.
    fn error(&self) -> f64 {
        2.0 * Gram::error_with(self.len())
    }
}
