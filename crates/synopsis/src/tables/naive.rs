//! Naive Bayes: each axis for itself, as if they were independent within a class.

use super::Tables;
use super::ratio::RatioParts;
use crate::cholesky::dot_product;

impl Tables {
    /// A number for each class, in proportion to its share times the product over the axes of its densities there: `along` has, for
    /// each axis, the kernels of all nodes along it at the point. On one axis these are the sums of a local mean.
    ///
    /// A product is below 0 where a factor is. Of the noise it is told, to first order, what each factor's does beside the
    /// others, each as large as it and its own noise probably are, so that a factor near 0 does not hide the noise of the others.
    pub(super) fn naive_parts(&self, along: &[Vec<f64>]) -> RatioParts {
        let nodes = self.counts.len() as f64;
        let axes = along.len() as i32;
        let error = self.deviation * nodes.sqrt();
        let records = self.table_sums(&vec![1.0; self.counts.len()]);
        let factors: Vec<Vec<f64>> = along
            .iter()
            .map(|kernels| self.table_sums(kernels))
            .collect();
        let deviations: Vec<f64> = along
            .iter()
            .map(|kernels| (self.deviation.powi(2) * dot_product(kernels, kernels)).sqrt())
            .collect();
        let mut sums = Vec::with_capacity(records.len());
        let mut squares = Vec::with_capacity(records.len());
        for (table, records) in records.iter().enumerate() {
            // Of fewer records than the noise there may be any number: no smaller one is divided by.
            let records = records.max(error);
            let divisor = records.powi(axes - 1);
            let mut product = 1.0;
            let mut sign = 1.0;
            for factor in &factors {
                product *= factor[table].abs();
                if factor[table] < 0.0 {
                    sign = -1.0;
                }
            }
            let sum = divided(sign * product, divisor);
            let mut gradient = vec![0.0; self.counts.len()];
            for (axis, kernels) in along.iter().enumerate() {
                let mut others = 1.0;
                for (other, factor) in factors.iter().enumerate() {
                    if other != axis {
                        others *= factor[table].hypot(deviations[other]);
                    }
                }
                let others = divided(others, divisor);
                for (entry, kernel) in gradient.iter_mut().zip(kernels) {
                    *entry += others * kernel;
                }
            }
            if axes > 1 && records > 0.0 {
                let by_count = f64::from(axes - 1) * sum / records;
                gradient.iter_mut().for_each(|entry| *entry -= by_count);
            }
            sums.push(sum);
            squares.push(dot_product(&gradient, &gradient));
        }
        let fewest = records.iter().copied().fold(f64::INFINITY, f64::min);
        let least_divisor = if axes > 1 {
            fewest / nodes.sqrt()
        } else {
            f64::INFINITY
        };
        RatioParts {
            least_divisor,
            ..RatioParts::independent(sums, &squares)
        }
    }
}

fn divided(product: f64, divisor: f64) -> f64 {
    if divisor > 0.0 {
        product / divisor
    } else {
        0.0
    }
}
