//! The integer kernel table of one axis, and the norms of its columns.

use bernstream_release::target::root_rounded_up;

/// `round(peak exp(-(p/k - j/M)^2 / 2 b'^2))` for lattice points `p / k` (rows) and nodes `j / M` (columns).
///
/// Everything that is evaluated and everything that is claimed about sensitivity is read off these integers; the floats
/// that filled them in decide accuracy only.
#[derive(Clone, Debug)]
pub(super) struct KernelWeights {
    columns: Vec<KernelColumn>,
    rows: usize,
}

/// Weights that one grain on one node adds to the lattice points near it; to all others nothing.
#[derive(Clone, Debug)]
struct KernelColumn {
    /// Lattice index of the first weight. Never falls from one column to the next.
    first: usize,
    weights: Vec<u32>,
}

impl KernelWeights {
    /// `m` cells and `k` lattice steps on `[0, 1]`; `bandwidth` is `b'`.
    pub fn gaussian(bandwidth: f64, m: u32, k: u32, peak: u32) -> Self {
        let m = f64::from(m);
        let k = f64::from(k);
        // 2^30 exp(-7^2 / 2) < 1/2: further out all weights round to 0.
        let reach = 7.0 * bandwidth;
        let mut columns = Vec::new();
        for j in -1..=m as i64 + 1 {
            let node = j as f64 / m;
            let first = ((node - reach) * k).ceil().clamp(0.0, k + 1.0) as usize;
            let end = ((node + reach) * k + 1.0).floor().clamp(0.0, k + 1.0) as usize;
            let mut weights = Vec::new();
            for p in first..end {
                let z = (p as f64 / k - node) / bandwidth;
                weights.push((f64::from(peak) * (-z * z / 2.0).exp()).round() as u32);
            }
            columns.push(KernelColumn { first, weights });
        }
        KernelWeights {
            columns,
            rows: k as usize + 1,
        }
    }

    /// `sum_p K[p][c]`, one a column.
    pub fn column_masses(&self) -> impl Iterator<Item = u64> {
        self.columns.iter().map(KernelColumn::mass)
    }

    /// `max_c sum_p K[p][c]`.
    pub fn largest_mass(&self) -> u64 {
        self.column_masses().max().unwrap_or(0)
    }

    /// Every weight of every column.
    pub fn dense_columns(&self) -> impl Iterator<Item = impl Iterator<Item = u32>> {
        self.columns
            .iter()
            .map(|column| (0..self.rows).map(|p| column.weight(p)))
    }

    /// `max_p K[p][c]`, one a column.
    pub fn column_peaks(&self) -> impl Iterator<Item = u64> {
        self.columns
            .iter()
            .map(|column| u64::from(column.weights.iter().copied().max().unwrap_or(0)))
    }

    /// The 2-norm `sqrt(sum_p K[p][c]^2)` of every column, rounded up.
    pub fn column_lengths(&self) -> impl Iterator<Item = u64> {
        self.columns
            .iter()
            .map(|column| root_rounded_up(column.sum(square)))
    }

    /// `max_c sqrt(sum_p K[p][c]^2)`, rounded up.
    pub fn largest_length(&self) -> u64 {
        self.column_lengths().max().unwrap_or(0)
    }

    /// `max_c max_p K[p][c]`.
    pub fn largest_weight(&self) -> u32 {
        self.columns
            .iter()
            .flat_map(|column| &column.weights)
            .copied()
            .max()
            .unwrap_or(0)
    }

    /// `max sum_p |K[p][a] - K[p][b]|` over all pairs of columns, a column of zeros ("absent") among them.
    pub fn widest_pair(&self) -> u64 {
        // At most twice a mass, which fits.
        u64::try_from(self.widest_pair_by(u128::from)).unwrap_or(u64::MAX)
    }

    /// `max sqrt(sum_p (K[p][a] - K[p][b])^2)` over the same pairs, rounded up.
    pub fn longest_pair(&self) -> u64 {
        root_rounded_up(self.widest_pair_by(square))
    }

    /// `max sum_p power(|K[p][a] - K[p][b]|)` over all pairs of columns, a column of zeros among them; `power` never falls, and is 0
    /// at 0.
    fn widest_pair_by(&self, power: fn(u32) -> u128) -> u128 {
        // Columns that share no lattice point differ by the sum of their own: there the heaviest partner suffices.
        let mut heaviest_from = vec![0; self.columns.len() + 1];
        for (c, column) in self.columns.iter().enumerate().rev() {
            heaviest_from[c] = column.sum(power).max(heaviest_from[c + 1]);
        }
        let mut widest = 0;
        for (a, column) in self.columns.iter().enumerate() {
            let others = &self.columns[a..];
            let meeting = others.partition_point(|other| other.first < column.end());
            let farthest = others[..meeting]
                .iter()
                .map(|other| column.distance_by(other, power))
                .max()
                .unwrap_or(0);
            widest = widest
                .max(farthest)
                .max(column.sum(power) + heaviest_from[a + meeting]);
        }
        widest
    }

    /// `max sum_p max(0, K[p][a] - K[p][b])` over all pairs of columns.
    pub fn largest_excess(&self) -> u64 {
        let nowhere = KernelColumn {
            first: 0,
            weights: Vec::new(),
        };
        let first = self.columns.first().unwrap_or(&nowhere);
        let last = self.columns.last().unwrap_or(&nowhere);
        let mut largest = 0_u64;
        for column in &self.columns {
            // Next to a column that it shares no lattice point with, all of it counts: no pair does better.
            let excess = if !column.shares_points_with(first) || !column.shares_points_with(last) {
                column.mass()
            } else {
                let others = self.columns.iter();
                others
                    .map(|other| column.excess_over(other))
                    .max()
                    .unwrap_or(0)
            };
            largest = largest.max(excess);
        }
        largest
    }

    /// The table applied along one axis of a row-major array of shape `(outer, columns, inner)`; the result has shape
    /// `(outer, rows, inner)`. Sums saturate. Every value takes the same steps whatever it is.
    pub fn apply_along_axis(&self, values: &[i128], inner: usize) -> Vec<i128> {
        let outer = values.len() / (self.columns.len() * inner);
        let mut sums = vec![0_i128; outer * self.rows * inner];
        for (from, to) in values
            .chunks_exact(self.columns.len() * inner)
            .zip(sums.chunks_exact_mut(self.rows * inner))
        {
            for (from, column) in from.chunks_exact(inner).zip(&self.columns) {
                let reached = to.chunks_exact_mut(inner).skip(column.first);
                for (to, weight) in reached.zip(&column.weights) {
                    for (sum, value) in to.iter_mut().zip(from) {
                        *sum = sum.saturating_add(value.saturating_mul(i128::from(*weight)));
                    }
                }
            }
        }
        sums
    }
}

impl KernelColumn {
    fn end(&self) -> usize {
        self.first + self.weights.len()
    }

    fn shares_points_with(&self, other: &KernelColumn) -> bool {
        self.first < other.end() && other.first < self.end()
    }

    fn mass(&self) -> u64 {
        self.weights.iter().map(|w| u64::from(*w)).sum()
    }

    /// `sum_p power(K[p])`.
    fn sum(&self, power: fn(u32) -> u128) -> u128 {
        self.weights.iter().map(|w| power(*w)).sum()
    }

    fn weight(&self, p: usize) -> u32 {
        p.checked_sub(self.first)
            .and_then(|i| self.weights.get(i))
            .copied()
            .unwrap_or(0)
    }

    /// `sum_p max(0, K[p] - other[p])`.
    fn excess_over(&self, other: &KernelColumn) -> u64 {
        (self.distance(other) + self.mass()).saturating_sub(other.mass()) / 2
    }

    fn distance(&self, other: &KernelColumn) -> u64 {
        // At most twice a mass, which fits.
        u64::try_from(self.distance_by(other, u128::from)).unwrap_or(u64::MAX)
    }

    /// `sum_p power(|K[p] - other[p]|)`.
    fn distance_by(&self, other: &KernelColumn, power: fn(u32) -> u128) -> u128 {
        let points = self.first.min(other.first)..self.end().max(other.end());
        points
            .map(|p| power(self.weight(p).abs_diff(other.weight(p))))
            .sum()
    }
}

fn square(weight: u32) -> u128 {
    u128::from(weight) * u128::from(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(table: &KernelWeights) -> Vec<Vec<u32>> {
        table
            .columns
            .iter()
            .map(|column| (0..table.rows).map(|p| column.weight(p)).collect())
            .collect()
    }

    #[test]
    fn only_weights_that_round_to_zero_are_left_out() {
        for (b, m, k) in [(0.05, 80, 20), (0.3, 14, 7), (1.0, 4, 3), (0.01, 400, 1)] {
            for (c, column) in dense(&KernelWeights::gaussian(b, m, k, 1 << 30))
                .iter()
                .enumerate()
            {
                for (p, weight) in column.iter().enumerate() {
                    let z = (p as f64 / f64::from(k) - (c as f64 - 1.0) / f64::from(m)) / b;
                    let exact = f64::from(1 << 30) * (-z * z / 2.0).exp();
                    assert!(
                        (exact - f64::from(*weight)).abs() <= 0.5 + 1e-6,
                        "{b} {c} {p}: {exact} {weight}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_norms_are_those_of_all_columns_and_all_pairs() {
        for (b, m, k) in [
            (0.05, 80, 20),
            (0.05, 80, 5),
            (0.3, 14, 7),
            (1.0, 4, 3),
            (0.01, 400, 1),
            (0.02, 200, 99),
        ] {
            let table = KernelWeights::gaussian(b, m, k, 1 << 30);
            let mut columns = dense(&table);
            let mass = |column: &Vec<u32>| column.iter().map(|w| u64::from(*w)).sum::<u64>();
            assert_eq!(Some(table.largest_mass()), columns.iter().map(mass).max());
            assert_eq!(
                Some(table.largest_weight()),
                columns.iter().flatten().copied().max()
            );
            let length =
                |column: &Vec<u32>| root_rounded_up(column.iter().map(|w| square(*w)).sum());
            assert_eq!(
                Some(table.largest_length()),
                columns.iter().map(length).max()
            );
            let excess = |(a, b): (&Vec<u32>, &Vec<u32>)| -> u64 {
                a.iter()
                    .zip(b)
                    .map(|(a, b)| u64::from(a.saturating_sub(*b)))
                    .sum()
            };
            let pairs = columns
                .iter()
                .flat_map(|a| columns.iter().map(move |b| (a, b)));
            assert_eq!(
                Some(table.largest_excess()),
                pairs.map(excess).max(),
                "{b} {k}"
            );
            columns.push(vec![0; table.rows]);
            let distance = |(a, b): (&Vec<u32>, &Vec<u32>)| -> u64 {
                a.iter()
                    .zip(b)
                    .map(|(a, b)| u64::from(a.abs_diff(*b)))
                    .sum()
            };
            let pairs = columns
                .iter()
                .flat_map(|a| columns.iter().map(move |b| (a, b)));
            assert_eq!(
                Some(table.widest_pair()),
                pairs.clone().map(distance).max(),
                "{b} {k}"
            );
            let apart = |(a, b): (&Vec<u32>, &Vec<u32>)| {
                root_rounded_up(a.iter().zip(b).map(|(a, b)| square(a.abs_diff(*b))).sum())
            };
            assert_eq!(
                Some(table.longest_pair()),
                pairs.map(apart).max(),
                "{b} {k}"
            );
        }
    }
}
