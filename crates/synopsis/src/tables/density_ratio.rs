//! The ratio of the densities of two classes around a point.

use super::ratio::fieller_interval;
use super::{ConfidenceInterval, PointEstimate, TableKernel};
use crate::cholesky::dot_product;
use crate::domain::unit_point;
use crate::error::SynopsisError;

impl TableKernel<'_> {
    /// The density of the records of class `of` over that of class `over`, each divided by the number of its records: above 1 where a record is likelier to
    /// be of the first than the classes' shares alone say. The interval is the set of ratios that the noise allows, on all four numbers;
    /// unknown where the noise may be all of a number that is divided by. The value is not a number where one of these is not positive.
    ///
    /// # Errors
    ///
    /// As [`TableKernel::density`]; if the label has no classes; if there is no such class, or both are one.
    pub fn density_ratio(
        &self,
        point: &[f64],
        of: usize,
        over: usize,
    ) -> Result<PointEstimate, SynopsisError> {
        let tables = self.tables;
        tables.check_classes()?;
        let of = tables.check_table(of)?;
        let over = tables.check_table(over)?;
        if of == over {
            return Err(SynopsisError::OneClass);
        }
        let weights = self.basis.kernel_values(&unit_point(&tables.axes, point)?);
        let nodes = weights.len() as f64;
        let once = weights.iter().sum::<f64>();
        let square = dot_product(&weights, &weights);
        let here = tables.table_sums(&weights);
        let all = tables.table_sums(&vec![1.0; weights.len()]);
        let [a, b] = [here[of], here[over]];
        let [n, m] = [all[of], all[over]];
        // `a m - r b n` is moved by `m K - r b` in the first table and by `a - r n K` in the second.
        let variances = [
            m * m * square + a * a * nodes,
            (m * b + a * n) * once,
            b * b * nodes + n * n * square,
        ];
        let within = tables.within;
        let [pointwise, simultaneous] = [within.pointwise, within.simultaneous].map(|q| {
            if b > q * square.sqrt() && n.min(m) > q * nodes.sqrt() {
                fieller_interval(a * m, b * n, q, variances).map(nonnegative)
            } else {
                None
            }
        });
        let value = if b > 0.0 && n > 0.0 && m > 0.0 {
            (a * m / (b * n)).max(0.0)
        } else {
            f64::NAN
        };
        Ok(PointEstimate {
            value,
            pointwise,
            simultaneous,
        })
    }
}

fn nonnegative(ratios: ConfidenceInterval) -> ConfidenceInterval {
    ConfidenceInterval {
        lower: ratios.lower.max(0.0),
        upper: ratios.upper.max(0.0),
    }
}
