//! Positive definite quadratic forms of two or three variables: what a covariance matrix is asked.

use crate::cholesky::sequential_dot;

/// `x' A x`, as the sum of squares `q_i (x_i + sum_{j<i} c_ij x_j)^2`.
#[derive(Clone, Debug)]
pub struct QuadraticForm {
    q: Vec<f64>,
    c: Vec<Vec<f64>>,
}

/// Whole points in a row along the last axis.
pub struct PointRun {
    /// The coordinates on the axes before the last.
    pub lead: Vec<i32>,
    pub first: i32,
    pub last: i32,
}

impl QuadraticForm {
    /// `None` unless the symmetric matrix is positive definite.
    pub fn new(matrix: &[Vec<f64>]) -> Option<Self> {
        let mut rest = matrix.to_vec();
        let mut q = Vec::new();
        let mut c = Vec::new();
        // Completing the square in the last variable leaves a form in the others.
        while let Some(mut last) = rest.pop() {
            let pivot = last
                .pop()
                .filter(|pivot| *pivot > 0.0 && pivot.is_finite())?;
            for (row, of_row) in rest.iter_mut().zip(&last) {
                row.pop();
                for (entry, of_column) in row.iter_mut().zip(&last) {
                    *entry -= of_row * of_column / pivot;
                }
            }
            q.insert(0, pivot);
            c.insert(0, last.iter().map(|entry| entry / pivot).collect());
        }
        Some(QuadraticForm { q, c })
    }

    pub fn determinant(&self) -> f64 {
        self.q.iter().product()
    }

    /// `A^-1`.
    pub fn inverse(&self) -> Vec<Vec<f64>> {
        let axes = self.q.len();
        let mut columns = diagonal_matrix(&vec![1.0; axes]);
        for x in &mut columns {
            // `A = C' Q C`, `C` lower triangular with ones.
            for i in (0..axes).rev() {
                for j in 0..i {
                    x[j] -= self.c[i][j] * x[i];
                }
            }
            for (x, q) in x.iter_mut().zip(&self.q) {
                *x /= q;
            }
            for i in 0..axes {
                for j in 0..i {
                    x[i] -= self.c[i][j] * x[j];
                }
            }
        }
        columns
    }

    pub fn evaluate_form(&self, x: &[f64]) -> f64 {
        self.q
            .iter()
            .zip(&self.c)
            .zip(x)
            .map(|((q, c), last)| q * (last + sequential_dot(c, x)).powi(2))
            .sum()
    }

    /// The whole points `z` with `(z - center)' A (z - center) <= bound` and `|z_i| <= limits_i`.
    pub fn points_within(&self, center: &[f64], bound: f64, limits: &[i32]) -> Vec<PointRun> {
        let mut runs = Vec::new();
        self.extend(&mut Vec::new(), center, bound, limits, &mut runs);
        runs
    }

    fn extend(
        &self,
        lead: &mut Vec<i32>,
        center: &[f64],
        left: f64,
        limits: &[i32],
        runs: &mut Vec<PointRun>,
    ) {
        let axis = lead.len();
        let away: Vec<f64> = lead
            .iter()
            .zip(center)
            .map(|(z, center)| f64::from(*z) - center)
            .collect();
        let q = self.q[axis];
        let middle = center[axis] - sequential_dot(&self.c[axis], &away);
        let half = (left.max(0.0) / q).sqrt();
        // Casts from a float saturate.
        let first = ((middle - half).ceil() as i32).max(-limits[axis]);
        let last = ((middle + half).floor() as i32).min(limits[axis]);
        if axis + 1 == self.q.len() {
            if first <= last {
                runs.push(PointRun {
                    lead: lead.clone(),
                    first,
                    last,
                });
            }
            return;
        }
        for z in first..=last {
            lead.push(z);
            self.extend(
                lead,
                center,
                left - q * (f64::from(z) - middle).powi(2),
                limits,
                runs,
            );
            lead.pop();
        }
    }
}

/// Returns the rows of a diagonal matrix.
pub(crate) fn diagonal_matrix(diagonal: &[f64]) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![0.0; diagonal.len()]; diagonal.len()];
    for (index, entry) in diagonal.iter().enumerate() {
        rows[index][index] = *entry;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Vec<Vec<f64>> {
        vec![
            vec![2.0, -0.5, 0.3],
            vec![-0.5, 1.0, 0.6],
            vec![0.3, 0.6, 1.5],
        ]
    }

    #[test]
    fn squares_are_the_form_and_the_inverse_undoes_it() {
        let form = QuadraticForm::new(&matrix()).unwrap();
        let x = [0.3, -1.1, 2.0];
        let expected: f64 = (0..3)
            .flat_map(|i| (0..3).map(move |j| (i, j)))
            .map(|(i, j)| matrix()[i][j] * x[i] * x[j])
            .sum();
        assert!((form.evaluate_form(&x) - expected).abs() < 1e-12);
        assert!(
            (form.determinant() - 1.635).abs() < 1e-12,
            "{}",
            form.determinant()
        );
        let inverse = form.inverse();
        for (i, row) in matrix().iter().enumerate() {
            for j in 0..3 {
                let entry: f64 = row.iter().zip(&inverse).map(|(a, b)| a * b[j]).sum();
                assert!((entry - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_form_that_is_flat_or_falls_somewhere_is_none() {
        for wrong in [
            [[1.0, 1.0], [1.0, 1.0]],
            [[1.0, 2.0], [2.0, 1.0]],
            [[0.0, 0.0], [0.0, 1.0]],
            [[f64::NAN, 0.0]; 2],
        ] {
            assert!(
                QuadraticForm::new(&wrong.map(|row| row.to_vec())).is_none(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn runs_are_the_points_of_the_ellipsoid() {
        let form = QuadraticForm::new(&matrix()).unwrap();
        let center = [0.25, -0.5, 0.125];
        let bound = 9.0;
        let limits = [2, 9, 9];
        let count: i32 = form
            .points_within(&center, bound, &limits)
            .iter()
            .map(|run| run.last - run.first + 1)
            .sum();
        let points =
            (-9..=9).flat_map(|x| (-9..=9).flat_map(move |y| (-9..=9).map(move |z| [x, y, z])));
        let inside = |z: &[i32; 3]| {
            let away: Vec<f64> = z
                .iter()
                .zip(center)
                .map(|(z, center)| f64::from(*z) - center)
                .collect();
            z[0].abs() <= 2 && form.evaluate_form(&away) <= bound
        };
        assert_eq!(count as usize, points.filter(inside).count());
    }
}
