//! The integer cosine table of one axis, and the norms of its columns.

use std::f64::consts::PI;

/// `round(peak cos(m pi j / M) / s(m))` for frequencies `m = 0, ..., t - 1` (rows) and nodes `j = -1, ..., M + 1` (columns).
///
/// `s(m) = (sin a / a)^3`, `a = m pi / 2M`, is what the deposit's quadratic spline leaves of a cosine. As everywhere, what
/// is evaluated and what is claimed are read off these integers; the floats that filled them in decide accuracy only.
#[derive(Clone, Debug)]
pub(super) struct CosineTable {
    columns: Vec<Vec<i64>>,
    rows: usize,
}

/// The largest distance between two columns, or between one and nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WidestColumns {
    pub sum: u128,
    pub square: u128,
}

/// The most multiplications that a search over pairs of columns may take.
const EFFORT: usize = 1 << 26;

impl CosineTable {
    /// `t` frequencies on `m` cells, `t < m`.
    pub fn new(m: u32, t: u32, peak: u32) -> Self {
        let cells = f64::from(m);
        let peak = f64::from(peak);
        let mut heights = Vec::with_capacity(t as usize);
        for frequency in 0..t {
            let a = f64::from(frequency) * PI / (2.0 * cells);
            let left = if a == 0.0 { 1.0 } else { (a.sin() / a).powi(3) };
            heights.push(peak / left);
        }
        let mut columns = Vec::with_capacity(m as usize + 3);
        for j in -1..=i64::from(m) + 1 {
            let angle = PI * j as f64 / cells;
            let mut column = Vec::with_capacity(heights.len());
            for (frequency, height) in heights.iter().enumerate() {
                column.push((height * (frequency as f64 * angle).cos()).round() as i64);
            }
            columns.push(column);
        }
        CosineTable {
            columns,
            rows: t as usize,
        }
    }

    /// `max_c sum_m |T[m][c]|`.
    pub fn largest_mass(&self) -> u128 {
        self.columns
            .iter()
            .map(|column| distance(column, &[]))
            .max()
            .unwrap_or(0)
    }

    /// `max_c sum_m T[m][c]^2`.
    pub fn largest_square(&self) -> u128 {
        self.columns
            .iter()
            .map(|column| square(column, &[]))
            .max()
            .unwrap_or(0)
    }

    /// `max |T|`.
    pub fn largest_weight(&self) -> u128 {
        self.columns
            .iter()
            .flatten()
            .map(|weight| u128::from(weight.unsigned_abs()))
            .max()
            .unwrap_or(0)
    }

    /// Bounds on `sum_m |T[m][a] - T[m][b]|`, and on the sum of squares, over all pairs of columns, a column of zeros
    /// ("absent") among them.
    ///
    /// All pairs of up to `2^26` products are looked at, up to 25 frequencies at 64 cells each; of larger tables the pairs of
    /// every `stride`-th column, and to their distance is added how far the others are from these.
    pub fn widest_pair(&self) -> WidestColumns {
        let count = self.columns.len();
        let stride = (1..count)
            .find(|stride| (count / stride).pow(2) / 2 * self.rows <= EFFORT)
            .unwrap_or(1);
        let few: Vec<&Vec<i64>> = self.columns.iter().step_by(stride).collect();
        let mut widest = WidestColumns {
            sum: self.largest_mass(),
            square: self.largest_square(),
        };
        for (i, a) in few.iter().enumerate() {
            for b in &few[..i] {
                widest.sum = widest.sum.max(distance(a, b));
                widest.square = widest.square.max(square(a, b));
            }
        }
        if stride > 1 {
            let mut off = 0_u128;
            let mut off_square = 0_u128;
            for (c, column) in self.columns.iter().enumerate() {
                let near = few[((c + stride / 2) / stride).min(few.len() - 1)];
                off = off.max(distance(column, near));
                off_square = off_square.max(square(column, near));
            }
            widest.sum = (widest.sum + 2 * off).min(2 * self.largest_mass());
            let root = root_rounded_up(widest.square) + 2 * root_rounded_up(off_square);
            widest.square = (root * root).min(4 * self.largest_square());
        }
        widest
    }

    /// The table applied along one axis of a row-major array of shape `(outer, columns, inner)`; the result has shape
    /// `(outer, rows, inner)`. The caller sees to it that no sum reaches `2^127`.
    pub fn apply_along_axis(&self, values: &[i128], inner: usize) -> Vec<i128> {
        let outer = values.len() / (self.columns.len() * inner);
        let mut sums = vec![0_i128; outer * self.rows * inner];
        for (from, to) in values
            .chunks_exact(self.columns.len() * inner)
            .zip(sums.chunks_exact_mut(self.rows * inner))
        {
            for (from, column) in from.chunks_exact(inner).zip(&self.columns) {
                for (to, weight) in to.chunks_exact_mut(inner).zip(column) {
                    for (sum, value) in to.iter_mut().zip(from) {
                        *sum = sum.saturating_add(value.saturating_mul(i128::from(*weight)));
                    }
                }
            }
        }
        sums
    }
}

/// The square root, rounded up.
pub(super) fn root_rounded_up(square: u128) -> u128 {
    let down = square.isqrt();
    if down * down < square { down + 1 } else { down }
}

/// Distance in the 1-norm; a missing column is zeros.
fn distance(a: &[i64], b: &[i64]) -> u128 {
    // At most 2^10 rows of less than 2^33.
    let sum: u64 = match b {
        [] => a.iter().map(|a| a.unsigned_abs()).sum(),
        b => a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).sum(),
    };
    u128::from(sum)
}

/// The square of the distance in the 2-norm.
fn square(a: &[i64], b: &[i64]) -> u128 {
    match b {
        [] => a.iter().map(|a| squared(a.unsigned_abs())).sum(),
        b => a.iter().zip(b).map(|(a, b)| squared(a.abs_diff(*b))).sum(),
    }
}

fn squared(apart: u64) -> u128 {
    u128::from(apart) * u128::from(apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_norms_are_those_of_all_columns_and_all_pairs() {
        for (m, t) in [(8, 1), (64, 4), (320, 5), (160, 20)] {
            let table = CosineTable::new(m, t, 1 << 30);
            let nothing = vec![0; t as usize];
            let columns: Vec<&Vec<i64>> = table.columns.iter().chain([&nothing]).collect();
            let pairs = || {
                columns
                    .iter()
                    .flat_map(|a| columns.iter().map(move |b| (a, b)))
            };
            let sum = |(a, b): (&&Vec<i64>, &&Vec<i64>)| {
                a.iter()
                    .zip(*b)
                    .map(|(a, b)| u128::from(a.abs_diff(*b)))
                    .sum()
            };
            let squares = |(a, b): (&&Vec<i64>, &&Vec<i64>)| {
                a.iter()
                    .zip(*b)
                    .map(|(a, b)| u128::from(a.abs_diff(*b)).pow(2))
                    .sum::<u128>()
            };
            let widest = WidestColumns {
                sum: pairs().map(sum).max().unwrap(),
                square: pairs().map(squares).max().unwrap(),
            };
            assert_eq!(table.widest_pair(), widest);
            let alone = || columns.iter().map(|a| (a, &columns[columns.len() - 1]));
            assert_eq!(Some(table.largest_mass()), alone().map(sum).max());
            assert_eq!(Some(table.largest_square()), alone().map(squares).max());
        }
    }

    /// Found by looking at all pairs, the widest are 1.2 times as far apart as the longest column is long.
    #[test]
    fn a_large_table_has_a_bound_that_is_no_less_than_a_pair_and_no_more_than_two_columns() {
        let table = CosineTable::new(64 * 64, 64, 1 << 30);
        let widest = table.widest_pair();
        let first = &table.columns[1];
        let found = table
            .columns
            .iter()
            .map(|column| distance(first, column))
            .max()
            .unwrap();
        assert!(
            found <= widest.sum && widest.sum < 2 * table.largest_mass(),
            "{found} {widest:?}"
        );
        assert!(
            (widest.sum as f64) < 1.25 * found as f64,
            "{found} {widest:?}"
        );
    }

    #[test]
    fn roots_are_rounded_up() {
        assert_eq!([0, 1, 2, 4, 5, 9].map(root_rounded_up), [0, 1, 2, 2, 3, 3]);
    }
}
