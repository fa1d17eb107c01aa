//! Parts of a whole, all noisy: the part that is told where there are few records, and the set of parts that the noise allows (Fieller,
//! J. R. Statist. Soc. B 16, 1954).

use super::ConfidenceInterval;
use crate::quadratic::diagonal_matrix;

/// A noisy number for each table, whose parts of their sum are probabilities.
#[derive(Clone, Debug)]
pub(super) struct RatioParts {
    pub sums: Vec<f64>,
    /// The products of the gradients of two of the sums by all released values, a row for each table: to first order what noise of
    /// variance 1 on every value does to them.
    pub moves: Vec<Vec<f64>>,
    /// The squared length of the weights of the whole, which it is drawn by to the parts of all records.
    pub drawn_by: f64,
    /// The least of the numbers that were divided by on the way, in lengths of its weights: where the noise may be so large nothing is
    /// known. Infinite where there was none.
    pub least_divisor: f64,
}

impl RatioParts {
    /// Sums with the same weights, of this squared length, in every table.
    pub fn of_weights(sums: Vec<f64>, square: f64) -> Self {
        let squares = vec![square; sums.len()];
        RatioParts::independent(sums, &squares)
    }

    /// Numbers that noise moves each for itself, by gradients of these squared lengths.
    pub fn independent(sums: Vec<f64>, squares: &[f64]) -> Self {
        RatioParts {
            sums,
            moves: diagonal_matrix(squares),
            drawn_by: squares.iter().sum(),
            least_divisor: f64::INFINITY,
        }
    }

    pub fn sum_of_parts(&self) -> f64 {
        self.sums.iter().sum()
    }

    /// The probabilities, where each value has noise of this deviation, and `of_all` are the parts of all records.
    pub fn probabilities(&self, deviation: f64, of_all: &[f64]) -> Vec<f64> {
        shrunk_parts(&self.sums, deviation * self.drawn_by.sqrt(), of_all)
    }

    /// Interval of the probability of a table, where any weighted sum of values is off by at most `q` lengths of its weights; `None` is
    /// unknown.
    pub fn interval(&self, table: usize, q: f64) -> Option<ConfidenceInterval> {
        if self.least_divisor <= q {
            return None;
        }
        let found = fieller_interval(
            self.sums[table],
            self.sum_of_parts(),
            q,
            self.variances(table),
        )?;
        Some(found.clamped(0.0, 1.0))
    }

    /// The deviation of the probability `p` of a table under noise of deviation 1, to first order; infinite without records.
    pub fn probability_deviation(&self, table: usize, p: f64) -> f64 {
        let [c, b, a] = self.variances(table);
        let whole = self.sum_of_parts();
        if whole > 0.0 {
            (c - 2.0 * b * p + a * p * p).max(0.0).sqrt() / whole
        } else {
            f64::INFINITY
        }
    }

    /// Tests that the noise, by at most `q` lengths, may make the second of two tables the larger one.
    pub fn is_too_close(&self, first: usize, second: usize, q: f64) -> bool {
        let square =
            self.moves[first][first] - 2.0 * self.moves[first][second] + self.moves[second][second];
        self.least_divisor <= q
            || self.sums[first] - self.sums[second] <= q * square.max(0.0).sqrt()
    }

    /// Coefficients `[c, b, a]` of the variance of `part - p whole`, which is `c - 2 b p + a p^2`.
    fn variances(&self, table: usize) -> [f64; 3] {
        let rows: Vec<f64> = self.moves.iter().map(|row| row.iter().sum()).collect();
        [self.moves[table][table], rows[table], rows.iter().sum()]
    }
}

/// The `p` with `(part - p whole)^2 <= q^2 (c - 2 b p + a p^2)`, where `[c, b, a]` say how the variance of the left side depends on `p`;
/// `None` where the noise may be all of the whole.
pub(crate) fn fieller_interval(
    part: f64,
    whole: f64,
    q: f64,
    [c, b, a]: [f64; 3],
) -> Option<ConfidenceInterval> {
    let square = q * q;
    let of_square = whole * whole - square * a;
    let half = part * whole - square * b;
    if of_square <= 0.0 || whole <= 0.0 {
        return None;
    }
    // The discriminant without the difference of two large numbers.
    let spread =
        whole * whole * c - 2.0 * part * whole * b + part * part * a - square * (a * c - b * b);
    let root = q * spread.max(0.0).sqrt();
    Some(ConfidenceInterval {
        lower: (half - root) / of_square,
        upper: (half + root) / of_square,
    })
}

/// The part of each table of `sums`, drawn to that of all records as far as the noise on the whole, of deviation `error`, is large beside
/// it.
fn shrunk_parts(sums: &[f64], error: f64, of_all: &[f64]) -> Vec<f64> {
    let whole: f64 = sums.iter().sum();
    if error == 0.0 && whole == 0.0 {
        return of_all.to_vec();
    }
    let more = if error > 0.0 {
        error * error / whole.max(error)
    } else {
        0.0
    };
    let drawn_whole = whole.max(0.0) + more;
    let mut parts: Vec<f64> = sums
        .iter()
        .zip(of_all)
        .map(|(sum, part)| ((sum + more * part) / drawn_whole).clamp(0.0, 1.0))
        .collect();
    let all = parts.iter().sum::<f64>();
    if all > 0.0 {
        parts.iter_mut().for_each(|part| *part /= all);
        parts
    } else {
        of_all.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends are where the inequality is an equality, and it holds between them alone.
    #[test]
    fn the_interval_is_the_set_that_the_noise_allows() {
        for (sums, square) in [
            ([30.0, 70.0, 0.0], 25.0),
            ([2.0, 30.0, 8.0], 81.0),
            ([99.0, 1.0, 0.0], 64.0),
        ] {
            let part = sums[0];
            let whole = 100.0_f64.min(sums.iter().sum());
            let q = 1.0;
            let parts = RatioParts::of_weights(sums.to_vec(), square);
            let holds =
                |p: f64| (part - p * whole).powi(2) <= square * ((1.0 - p).powi(2) + 2.0 * p * p);
            let ConfidenceInterval { lower, upper } = parts.interval(0, q).unwrap();
            for i in 0..=10_000 {
                let p = f64::from(i) / 10_000.0;
                let away = (p - lower).abs().min((p - upper).abs());
                assert!(
                    away < 1e-9 || holds(p) == (lower..=upper).contains(&p),
                    "{part} of {whole}: {p}"
                );
            }
        }
        assert_eq!(
            RatioParts::of_weights(vec![3.0, 2.0], 1.0).interval(0, 4.0),
            None
        );
        assert_eq!(
            RatioParts::of_weights(vec![3.0, -103.0], 1.0).interval(0, 4.0),
            None
        );
        let divided = RatioParts {
            least_divisor: 3.0,
            ..RatioParts::of_weights(vec![30.0, 20.0], 1.0)
        };
        assert!(divided.interval(0, 4.0).is_none() && divided.is_too_close(0, 1, 4.0));
        assert!(divided.interval(0, 2.0).is_some() && !divided.is_too_close(0, 1, 2.0));
    }

    #[test]
    fn parts_add_up_and_are_those_of_all_where_there_is_noise_alone() {
        let of_all = [0.7, 0.3];
        assert_eq!(shrunk_parts(&[30.0, 10.0], 0.0, &of_all), [0.75, 0.25]);
        assert_eq!(shrunk_parts(&[0.0, 0.0], 5.0, &of_all), [0.7, 0.3]);
        for sums in [[-3.0, 5.0], [-20.0, 4.0], [1.0, 1.0]] {
            assert!((shrunk_parts(&sums, 5.0, &of_all).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}
