//! The eigenvalues and eigenvectors of a symmetric matrix.

use crate::cholesky::dot_product;

/// Steps for one eigenvalue; two or three are usual.
const MOST_STEPS: usize = 60;

/// `A = Q diag(values) Q'`.
#[derive(Clone, Debug)]
pub(super) struct Eigen {
    pub values: Vec<f64>,
    /// The columns of `Q`.
    pub vectors: Vec<Vec<f64>>,
}

/// Householder's tridiagonal form, then implicit QL steps (Golub and Van Loan, section 8.3): about `6 n^3` operations. Errors are
/// of the order of the rounding of the largest eigenvalue.
pub(super) fn symmetric(mut a: Vec<Vec<f64>>) -> Eigen {
    let n = a.len();
    let mut vectors = tridiagonal(&mut a);
    let mut d: Vec<f64> = (0..n).map(|i| a[i][i]).collect();
    let mut e: Vec<f64> = (0..n)
        .map(|i| if i + 1 < n { a[i][i + 1] } else { 0.0 })
        .collect();
    let size = d
        .iter()
        .chain(&e)
        .fold(0.0_f64, |most, x| most.max(x.abs()));
    for l in 0..n {
        for _ in 0..MOST_STEPS {
            let m = (l..n - 1)
                .find(|m| e[*m].abs() <= f64::EPSILON * size)
                .unwrap_or(n - 1);
            if m == l {
                break;
            }
            step(&mut d, &mut e, &mut vectors, l, m);
        }
    }
    Eigen { values: d, vectors }
}

/// Leaves the tridiagonal `T` of `A = Q T Q'` in place of the diagonal and the entries beside it, and returns the columns of `Q`.
fn tridiagonal(a: &mut [Vec<f64>]) -> Vec<Vec<f64>> {
    let n = a.len();
    let mut q: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect())
        .collect();
    for k in 0..n.saturating_sub(2) {
        let mut v = a[k][k + 1..].to_vec();
        let length = dot_product(&v, &v).sqrt();
        if length == 0.0 {
            continue;
        }
        a[k][k + 1] = -length.copysign(v[0]);
        v[0] += length.copysign(v[0]);
        let beta = 2.0 / dot_product(&v, &v);
        // `H A H = A - v w' - w v'`, `H = I - beta v v'`.
        let mut w: Vec<f64> = a[k + 1..]
            .iter()
            .map(|row| beta * dot_product(&row[k + 1..], &v))
            .collect();
        let half = beta / 2.0 * dot_product(&w, &v);
        w.iter_mut().zip(&v).for_each(|(w, v)| *w -= half * v);
        for (i, row) in a[k + 1..].iter_mut().enumerate() {
            row[k + 1..]
                .iter_mut()
                .zip(v.iter().zip(&w))
                .for_each(|(entry, (x, y))| *entry -= v[i] * y + w[i] * x);
        }
        for row in &mut q {
            let along = beta * dot_product(&row[k + 1..], &v);
            for (entry, v) in row[k + 1..].iter_mut().zip(&v) {
                *entry -= along * v;
            }
        }
    }
    (0..n)
        .map(|j| q.iter().map(|row| row[j]).collect())
        .collect()
}

/// One QL step with Wilkinson's shift on the block from `l` to `m`.
fn step(d: &mut [f64], e: &mut [f64], vectors: &mut [Vec<f64>], l: usize, m: usize) {
    let shift = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let mut g = d[m] - d[l] + e[l] / (shift + shift.hypot(1.0).copysign(shift));
    let mut sine = 1.0;
    let mut cosine = 1.0;
    let mut p = 0.0;
    for i in (l..m).rev() {
        let f = sine * e[i];
        let b = cosine * e[i];
        let r = f.hypot(g);
        e[i + 1] = r;
        if r == 0.0 {
            d[i + 1] -= p;
            e[m] = 0.0;
            return;
        }
        sine = f / r;
        cosine = g / r;
        g = d[i + 1] - p;
        let turn = (d[i] - g) * sine + 2.0 * cosine * b;
        p = sine * turn;
        d[i + 1] = g + p;
        g = cosine * turn - b;
        let (before, after) = vectors.split_at_mut(i + 1);
        for (x, y) in before[i].iter_mut().zip(&mut after[0]) {
            let turned = cosine * *x - sine * *y;
            *y = sine * *x + cosine * *y;
            *x = turned;
        }
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0.0;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest entry of `A - Q diag(values) Q'`, and of `Q'Q - I`.
    fn errors(a: &[Vec<f64>], Eigen { values, vectors }: &Eigen) -> (f64, f64) {
        let n = a.len();
        let mut apart = 0.0_f64;
        let mut turned = 0.0_f64;
        for i in 0..n {
            for j in 0..n {
                let sum: f64 = values
                    .iter()
                    .zip(vectors)
                    .map(|(value, v)| value * v[i] * v[j])
                    .sum();
                apart = apart.max((a[i][j] - sum).abs());
                turned = turned.max(
                    (dot_product(&vectors[i], &vectors[j]) - f64::from(u8::from(i == j))).abs(),
                );
            }
        }
        (apart, turned)
    }

    #[test]
    fn eigenvectors_are_orthonormal_and_give_the_matrix_back() {
        let kernel = |n: usize, width: f64| -> Vec<Vec<f64>> {
            let entry = |i: usize, j: usize| (-((i as f64 - j as f64) / width).powi(2) / 2.0).exp();
            (0..n)
                .map(|i| (0..n).map(|j| entry(i, j)).collect())
                .collect()
        };
        // Nearly singular, nearly diagonal, diagonal, a block of zeros, and small ones.
        let zeros = vec![vec![0.0; 5]; 5];
        let slanted = vec![vec![2.0, -1.0], vec![-1.0, 3.0]];
        for matrix in [
            kernel(60, 9.0),
            kernel(33, 0.4),
            kernel(7, 1e-9),
            zeros,
            slanted,
            kernel(3, 1.0),
            kernel(1, 1.0),
        ] {
            let eigen = symmetric(matrix.clone());
            let (apart, turned) = errors(&matrix, &eigen);
            assert!(
                apart < 1e-13 * matrix.len() as f64 && turned < 1e-13,
                "{apart} {turned}"
            );
            let mut wrong = eigen;
            wrong.values[0] += 1e-3;
            assert!(errors(&matrix, &wrong).0 > 1e-6);
        }
    }

    #[test]
    fn the_eigenvalues_of_second_differences_are_known() {
        let n = 12;
        let entry = |i: usize, j: usize| {
            if i == j {
                2.0
            } else if i.abs_diff(j) == 1 {
                -1.0
            } else {
                0.0
            }
        };
        let mut values = symmetric(
            (0..n)
                .map(|i| (0..n).map(|j| entry(i, j)).collect())
                .collect(),
        )
        .values;
        values.sort_by(f64::total_cmp);
        for (k, value) in values.iter().enumerate() {
            let known = 2.0 - 2.0 * (std::f64::consts::PI * (k + 1) as f64 / (n + 1) as f64).cos();
            assert!((value - known).abs() < 1e-13, "{value}, not {known}");
        }
    }
}
