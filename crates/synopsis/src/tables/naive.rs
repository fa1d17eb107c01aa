//! Naive Bayes: each axis for itself, as if they were independent within a class.

use super::Tables;
use super::ratio::Parts;
use crate::cholesky::dot;

impl Tables {
    /// A number for each class, in proportion to its share times the product over the axes of its densities there: `along` has, for
    /// each axis, the kernels of all nodes along it at the point. On one axis these are the sums of a local mean.
    ///
    /// A product is below 0 where a factor is. Of the noise it is told, to first order, what each factor's does beside the
    /// others, each as large as it and its own noise probably are, so that a factor near 0 does not hide the noise of the others.
    pub(super) fn naive(&self, along: &[Vec<f64>]) -> Parts {
        let nodes = self.counts.len() as f64;
        let axes = along.len() as i32;
        let error = self.deviation * nodes.sqrt();
        let records = self.sums(&vec![1.0; self.counts.len()]);
        let factors: Vec<Vec<f64>> = along.iter().map(|kernels| self.sums(kernels)).collect();
        let noise: Vec<f64> = along
            .iter()
            .map(|kernels| self.deviation.powi(2) * dot(kernels, kernels))
            .collect();
        let of_class = |(table, records): (usize, &f64)| {
            // Of fewer records than the noise there may be any number: no smaller one is divided by.
            let divisor = records.max(error).powi(axes - 1);
            let divided = |product: f64| {
                if divisor > 0.0 {
                    product / divisor
                } else {
                    0.0
                }
            };
            let sign = if factors.iter().any(|factor| factor[table] < 0.0) {
                -1.0
            } else {
                1.0
            };
            let sum = divided(
                sign * factors
                    .iter()
                    .map(|factor| factor[table].abs())
                    .product::<f64>(),
            );
            let mut gradient = vec![0.0; self.counts.len()];
            for (axis, kernels) in along.iter().enumerate() {
                let others = factors
                    .iter()
                    .zip(&noise)
                    .enumerate()
                    .filter(|(other, _)| *other != axis);
                let others = divided(
                    others
                        .map(|(_, (factor, noise))| factor[table].hypot(noise.sqrt()))
                        .product(),
                );
                gradient
                    .iter_mut()
                    .zip(kernels)
                    .for_each(|(to, kernel)| *to += others * kernel);
            }
            if axes > 1 && records.max(error) > 0.0 {
                let by_count = f64::from(axes - 1) * sum / records.max(error);
                gradient.iter_mut().for_each(|to| *to -= by_count);
            }
            (sum, dot(&gradient, &gradient))
        };
        let (sums, squares): (Vec<f64>, Vec<f64>) =
            records.iter().enumerate().map(of_class).unzip();
        let fewest = records.iter().copied().fold(f64::INFINITY, f64::min);
        let least_divisor = if axes > 1 {
            fewest / nodes.sqrt()
        } else {
            f64::INFINITY
        };
        Parts {
            least_divisor,
            ..Parts::apart(sums, &squares)
        }
    }
}
