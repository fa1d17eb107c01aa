//! A line through the records around a point.

use super::Tables;
use super::ratio::RatioParts;
use crate::cholesky::{cholesky_factor, dot_product, solve_lower, solve_upper};

impl Tables {
    /// The sums of each table with the weights of a line at a point, `K (1 - slope . d)`, `kernels` and `away` the `K` and `d` of each
    /// node. The noise on the second moments draws the slope to 0; `None` where it leaves no line.
    ///
    /// The slope depends on the noise as well: a value moves the sum of its own table by `w`, and that of every table `t` by
    /// `-w (g_t . d)`, `g_t` what the slope would be were that table's records the only ones.
    pub(super) fn line_parts(&self, kernels: &[f64], away: &[Vec<f64>]) -> Option<RatioParts> {
        let tables = self.count() as f64;
        let firsts: Vec<Vec<f64>> = self
            .values
            .chunks(kernels.len().max(1))
            .map(|table| first_moments(table, kernels, away))
            .collect();
        let lower = cholesky_factor(self.steadied_moments(kernels, away), 0.0);
        if !lower
            .iter()
            .all(|row| row.last().is_some_and(|pivot| *pivot > 0.0))
        {
            return None;
        }
        let slope = solve(&lower, &first_moments(&self.counts, kernels, away));
        let weights: Vec<f64> = kernels
            .iter()
            .zip(away)
            .map(|(kernel, d)| kernel * (1.0 - dot_product(&slope, d)))
            .collect();
        let slopes: Vec<Vec<f64>> = firsts.iter().map(|first| solve(&lower, first)).collect();
        let squares: Vec<f64> = weights.iter().map(|weight| weight * weight).collect();
        let square = squares.iter().sum::<f64>();
        let along = first_moments(&squares, &vec![1.0; squares.len()], away);
        let across = second_moments(&squares, away);
        let mut parts = RatioParts::of_weights(self.table_sums(&weights), square);
        for (s, one) in slopes.iter().enumerate() {
            for (t, other) in slopes.iter().enumerate() {
                let turned: Vec<f64> = across.iter().map(|row| dot_product(row, other)).collect();
                let own = if s == t { square } else { 0.0 };
                parts.moves[s][t] = own - dot_product(&along, one) - dot_product(&along, other)
                    + tables * dot_product(one, &turned);
            }
        }
        Some(parts)
    }

    /// The lower triangle of `sum_j c_j K_j d_j d_j'`, and on its diagonal twice the deviation of its noise.
    fn steadied_moments(&self, kernels: &[f64], away: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let error = self.deviation * (self.count() as f64).sqrt();
        let counted: Vec<f64> = kernels
            .iter()
            .zip(&self.counts)
            .map(|(kernel, count)| kernel * count)
            .collect();
        let mut matrix = second_moments(&counted, away);
        for (i, row) in matrix.iter_mut().enumerate() {
            row.truncate(i + 1);
            let fourth: f64 = kernels
                .iter()
                .zip(away)
                .map(|(kernel, d)| (kernel * d[i] * d[i]).powi(2))
                .sum();
            row[i] += 2.0 * error * fourth.sqrt();
        }
        matrix
    }
}

/// `sum_j v_j K_j d_j`.
fn first_moments(values: &[f64], kernels: &[f64], away: &[Vec<f64>]) -> Vec<f64> {
    let mut first = vec![0.0; away.first().map_or(0, Vec::len)];
    for ((value, kernel), d) in values.iter().zip(kernels).zip(away) {
        for (sum, d) in first.iter_mut().zip(d) {
            *sum += value * kernel * d;
        }
    }
    first
}

/// Solves a system whose matrix has the factor `lower`.
fn solve(lower: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    solve_upper(lower, &solve_lower(lower, right))
}

/// `sum_j w_j d_j d_j'`.
fn second_moments(weights: &[f64], away: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let axes = away.first().map_or(0, Vec::len);
    let mut matrix = vec![vec![0.0; axes]; axes];
    for (weight, d) in weights.iter().zip(away) {
        for (row, along) in matrix.iter_mut().zip(d) {
            for (entry, other) in row.iter_mut().zip(d) {
                *entry += weight * along * other;
            }
        }
    }
    matrix
}
