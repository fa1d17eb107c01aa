//! The Cholesky factorisation `L L'` of a positive definite matrix, and what is solved with `L`. Row `i` of `L` has `i + 1` numbers.

/// The factorisation of a kernel matrix pivoted on its diagonal and stopped early (`[DSW05]`):
/// Newton's basis, which says what the chosen places explain of all.
pub struct Pivoted {
    /// The chosen places, by their index.
    pub order: Vec<usize>,
    /// `L^-1 k_P(y)`, one row for each place.
    rows: Vec<Vec<f64>>,
    /// The largest square of the power function on the places, for 0 to `d` chosen ones.
    pub rests: Vec<f64>,
}

impl Pivoted {
    /// Chooses at most `most` of `places` places, while the largest rest is more than `rest` of the largest `K(y, y)`.
    pub fn new(places: usize, value: impl Fn(usize, usize) -> f64, most: usize, rest: f64) -> Self {
        let mut rests: Vec<f64> = (0..places).map(|y| value(y, y)).collect();
        let mut chosen = Pivoted {
            order: Vec::new(),
            rows: vec![Vec::new(); places],
            rests: Vec::new(),
        };
        let least = rest * rests.iter().copied().fold(0.0, f64::max);
        loop {
            // The first of equals.
            let mut pivot = 0;
            let mut largest = 0.0;
            for (place, rest) in rests.iter().enumerate() {
                if *rest > largest {
                    pivot = place;
                    largest = *rest;
                }
            }
            chosen.rests.push(largest);
            if chosen.order.len() == most || largest <= least {
                return chosen;
            }
            let row = chosen.rows[pivot].clone();
            for (place, rest) in rests.iter_mut().enumerate() {
                let explained = &mut chosen.rows[place];
                let next = (value(pivot, place) - dot_product(&row, explained)) / largest.sqrt();
                *rest = (*rest - next * next).max(0.0);
                explained.push(next);
            }
            rests[pivot] = 0.0;
            chosen.order.push(pivot);
        }
    }

    /// Rows of `L`.
    pub fn factor_rows(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.order.len()).map(|index| &self.rows[self.order[index]][..=index])
    }
}

/// The factor `L` of a matrix given by its lower triangle, row by row. A pivot whose square is below `rest` of the diagonal entry
/// becomes the root of that.
pub(crate) fn cholesky_factor(mut rows: Vec<Vec<f64>>, rest: f64) -> Vec<Vec<f64>> {
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(rows.len());
    for row in &mut rows {
        let whole = row.pop().unwrap_or(f64::NAN);
        let mut next = solve_lower(&factor, row);
        next.push((whole - dot_product(&next, &next)).max(rest * whole).sqrt());
        factor.push(next);
    }
    factor
}

/// `L^-1 x`.
pub(crate) fn solve_lower(factor: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    forward_by(dot_product, factor, x)
}

/// `L^-1 x` with an inner product of the caller's: another order of summation rounds differently.
pub fn forward_by(dot: fn(&[f64], &[f64]) -> f64, factor: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    let mut solved: Vec<f64> = Vec::with_capacity(factor.len() + 1);
    for (row, x) in factor.iter().zip(x) {
        // `solved` is one shorter than the row, whose last entry is the pivot.
        let pivot = row.last().copied().unwrap_or(f64::NAN);
        solved.push((x - dot(row, &solved)) / pivot);
    }
    solved
}

/// `L'^-1 x`.
pub fn solve_upper(factor: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    let mut solved = x.to_vec();
    for (i, row) in factor.iter().enumerate().rev() {
        let (before, from) = solved.split_at_mut(i);
        if let Some(value) = from.first_mut()
            && let Some(pivot) = row.last()
        {
            *value /= pivot;
            for (x, l) in before.iter_mut().zip(row) {
                *x -= l * *value;
            }
        }
    }
    solved
}

/// The inverse of a lower triangular matrix; row `i` has `i + 1` numbers.
pub(crate) fn lower_inverse<'a>(factor: impl Iterator<Item = &'a [f64]>) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for (i, of_factor) in factor.enumerate() {
        let mut row = vec![0.0; i + 1];
        row[i] = 1.0;
        for (weight, other) in of_factor.iter().zip(&rows) {
            for (entry, m) in row.iter_mut().zip(other) {
                *entry -= weight * m;
            }
        }
        row.iter_mut().for_each(|entry| *entry /= of_factor[i]);
        rows.push(row);
    }
    rows
}

/// The inner product, as far as both go; in four lanes, so that a product passes no more roundings than in one go.
pub fn dot_product(a: &[f64], b: &[f64]) -> f64 {
    let both = a.len().min(b.len());
    let (a, a_rest) = a[..both].as_chunks::<4>();
    let (b, b_rest) = b[..both].as_chunks::<4>();
    let mut lanes = [0.0; 4];
    for (a, b) in a.iter().zip(b) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    lanes.iter().sum::<f64>() + sequential_dot(a_rest, b_rest)
}

/// The inner product, summed from the first entry to the last: [`dot_product`] rounds differently.
pub(crate) fn sequential_dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_of_a_matrix_solves_it() {
        let factor = cholesky_factor(vec![vec![4.0], vec![2.0, 5.0], vec![1.0, -1.0, 3.0]], 1e-10);
        let x = solve_upper(&factor, &solve_lower(&factor, &[7.0, 6.0, 3.0]));
        let product = [
            4.0 * x[0] + 2.0 * x[1] + x[2],
            2.0 * x[0] + 5.0 * x[1] - x[2],
            x[0] - x[1] + 3.0 * x[2],
        ];
        assert!(
            product
                .iter()
                .zip([7.0, 6.0, 3.0])
                .all(|(a, b)| (a - b).abs() < 1e-12),
            "{product:?}"
        );
    }
}
