//! Newton's method for smooth kernels: the Gram matrix of many records has few columns that matter, and a problem in as few
//! variables is solved in a handful of steps.
//!
//! `K = F F' + R` by a pivoted Cholesky factorisation (`[FS01]`), every entry of `R` at most `residual` because `R` is positive
//! semidefinite. In the variables `w = F' b` the objective is `(C/m) sum_i L(y_i, <w, F_i>) + |w|^2 / 2`, whose Hessian is small
//! and at least the identity; Newton's method with a line search minimises it (`[Cha07]`). What it finds is only proposed: the
//! solver's certificate, from the Gram matrix itself, decides.

use super::pairs::RecordPairs;
use super::space::blocked_dot;
use bernstream_synopsis::machine::loss::Loss;

/// Most columns of a factor, in parts of the records and at all. Beyond it coordinate ascent is faster where it comes to an end: 0.33 s
/// compared with 0.49 for 5,000 records, 543 columns and `C = 10`. It does not for `C = 500`, where 628 columns take 1.6 s; but of
/// 1,142 columns Newton's method makes nothing that is proved either, in 4 s.
const PART: usize = 2;
const COLUMNS: usize = 512;

/// A step of which less than this part makes the objective smaller has met the limit of the floats.
const SMALLEST: f64 = 1e-10;

/// `F`, row by row.
pub struct GramFactor {
    width: usize,
    rows: Vec<f64>,
}

impl GramFactor {
    /// Most memory that Newton's method takes for so many records: the rows twice, while they are made narrower, and two matrices.
    pub fn most_bytes(records: u64) -> u64 {
        let most = (COLUMNS as u64).min(records / PART as u64);
        16 * most * (records + most)
    }

    /// The factor of the Gram matrix, if few columns leave no more than `residual` of any entry.
    pub fn from_pairs(pairs: &RecordPairs<'_>, residual: f64) -> Option<Self> {
        let n = pairs.len();
        let most = COLUMNS.min(n / PART);
        let mut left: Vec<f64> = (0..n).map(|i| pairs.diagonal(i)).collect();
        let mut column = vec![0.0; n];
        let mut rows = vec![0.0; n * most];
        for width in 0..=most {
            let mut pivot = 0;
            let mut size = 0.0;
            for (i, left) in left.iter().enumerate() {
                if *left > size {
                    pivot = i;
                    size = *left;
                }
            }
            if size <= residual {
                let rows = (0..n)
                    .flat_map(|i| rows[i * most..][..width].iter().copied())
                    .collect();
                return Some(GramFactor { width, rows });
            }
            if width == most {
                break;
            }
            pairs.row(pivot, &mut column);
            let chosen = rows[pivot * most..][..width].to_vec();
            for ((own, left), value) in rows.chunks_exact_mut(most).zip(&mut left).zip(&column) {
                let entry = (value - blocked_dot(&own[..width], &chosen)) / size.sqrt();
                own[width] = entry;
                *left -= entry * entry;
            }
            left[pivot] = 0.0;
        }
        None
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.rows.chunks_exact(self.width.max(1))
    }

    /// `<w, F_i>` of every record.
    fn scores(&self, w: &[f64]) -> Vec<f64> {
        self.rows().map(|row| blocked_dot(row, w)).collect()
    }

    /// `b_i = share pull(y_i, f(x_i))` of a function whose gradient is at most `wanted` long, or of the last one found in so many
    /// products; `share` is `C/m`. A rounded hinge takes up to 50 steps, the other losses 10.
    pub fn minimise_risk(
        &self,
        loss: Loss,
        labels: &[f64],
        share: f64,
        wanted: f64,
        mut products: usize,
    ) -> Vec<f64> {
        let problem = NewtonProblem {
            factor: self,
            loss,
            labels,
            share,
        };
        let mut point = problem.evaluate_at(vec![0.0; self.width], vec![0.0; labels.len()]);
        loop {
            let gradient = problem.gradient(&point);
            let curved = problem.second_derivatives(&point);
            let count = curved.iter().filter(|second| **second > 0.0).count();
            let taken =
                (count + self.width) * self.width * self.width / 2 + 4 * labels.len() * self.width;
            if taken > products || blocked_dot(&gradient, &gradient).sqrt() <= wanted {
                break;
            }
            products -= taken;
            let direction = solve_cholesky(problem.hessian(&curved), &gradient);
            let Some(next) =
                problem.line_search(&point, &direction, blocked_dot(&gradient, &direction))
            else {
                break;
            };
            point = next;
        }
        point
            .scores
            .iter()
            .zip(labels)
            .map(|(f, y)| share * loss.negative_slope(*y, *f))
            .collect()
    }
}

struct NewtonProblem<'a> {
    factor: &'a GramFactor,
    loss: Loss,
    labels: &'a [f64],
    share: f64,
}

/// A function, its values at the records, and its objective.
struct NewtonIterate {
    w: Vec<f64>,
    scores: Vec<f64>,
    value: f64,
}

impl NewtonProblem<'_> {
    fn evaluate_at(&self, w: Vec<f64>, scores: Vec<f64>) -> NewtonIterate {
        let losses: f64 = scores
            .iter()
            .zip(self.labels)
            .map(|(f, y)| self.loss.value(*y, *f))
            .sum();
        NewtonIterate {
            value: self.share * losses + blocked_dot(&w, &w) / 2.0,
            w,
            scores,
        }
    }

    fn gradient(&self, point: &NewtonIterate) -> Vec<f64> {
        let mut gradient = point.w.clone();
        for ((row, y), f) in self.factor.rows().zip(self.labels).zip(&point.scores) {
            let pull = self.share * self.loss.negative_slope(*y, *f);
            if pull != 0.0 {
                for (gradient, entry) in gradient.iter_mut().zip(row) {
                    *gradient -= pull * entry;
                }
            }
        }
        gradient
    }

    fn second_derivatives(&self, point: &NewtonIterate) -> Vec<f64> {
        point
            .scores
            .iter()
            .zip(self.labels)
            .map(|(f, y)| self.share * self.loss.second_derivative(*y, *f))
            .collect()
    }

    /// The lower triangle, row by row.
    fn hessian(&self, second_derivatives: &[f64]) -> Vec<f64> {
        let width = self.factor.width;
        let mut hessian = vec![0.0; width * width];
        for (row, second) in self.factor.rows().zip(second_derivatives) {
            if *second > 0.0 {
                for i in 0..width {
                    let scaled = second * row[i];
                    let sums = &mut hessian[i * width..=i * width + i];
                    for (sum, entry) in sums.iter_mut().zip(row) {
                        *sum += scaled * entry;
                    }
                }
            }
        }
        for i in 0..width {
            hessian[i * width + i] += 1.0;
        }
        hessian
    }

    /// The longest halving of a step against `direction` that makes the objective smaller by a part of what its slope
    /// promises (Armijo's rule); none if there is none.
    fn line_search(
        &self,
        from: &NewtonIterate,
        direction: &[f64],
        slope: f64,
    ) -> Option<NewtonIterate> {
        let along = self.factor.scores(direction);
        let mut part = 1.0;
        while part > SMALLEST {
            let next = self.evaluate_at(
                step_along(&from.w, direction, part),
                step_along(&from.scores, &along, part),
            );
            if next.value <= from.value - 1e-4 * part * slope {
                return Some(next);
            }
            part /= 2.0;
        }
        None
    }
}

/// `from - part by`.
fn step_along(from: &[f64], by: &[f64], part: f64) -> Vec<f64> {
    from.iter()
        .zip(by)
        .map(|(from, by)| from - part * by)
        .collect()
}

/// `A^-1 g` by Cholesky's factorisation of a symmetric `A`, given by its lower triangle, that is at least the identity.
fn solve_cholesky(mut a: Vec<f64>, g: &[f64]) -> Vec<f64> {
    let n = g.len();
    for i in 0..n {
        let (above, row) = a.split_at_mut(i * n);
        for j in 0..i {
            let other = &above[j * n..=j * n + j];
            row[j] = (row[j] - blocked_dot(&row[..j], &other[..j])) / other[j];
        }
        // A pivot is at least 1 but for rounding.
        row[i] = (row[i] - blocked_dot(&row[..i], &row[..i])).max(1.0).sqrt();
    }
    let mut x = g.to_vec();
    for i in 0..n {
        x[i] = (x[i] - blocked_dot(&a[i * n..i * n + i], &x[..i])) / a[i * n + i];
    }
    for i in (0..n).rev() {
        x[i] /= a[i * n + i];
        let (before, rest) = x.split_at_mut(i);
        for (x, entry) in before.iter_mut().zip(&a[i * n..]) {
            *x -= entry * rest[0];
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use bernstream_synopsis::machine::kernel::CubeKernel;

    fn places() -> Vec<[f64; 3]> {
        (0..120)
            .map(|i| [(i * 7919 % 1009) as f64 / 1009.0, 0.0, 0.0])
            .collect()
    }

    #[test]
    fn a_factor_leaves_no_more_than_it_says_of_any_entry() {
        let places = places();
        let pairs = RecordPairs::new(CubeKernel::Gaussian { bandwidth: 0.2 }, 1, &places);
        let gram = pairs.gram_matrix();
        for residual in [1e-3, 1e-6, 1e-9] {
            let factor = GramFactor::from_pairs(&pairs, residual).expect("a smooth kernel");
            let rows: Vec<&[f64]> = factor.rows().collect();
            let off = |i: usize, j: usize| (gram.row(i)[j] - blocked_dot(rows[i], rows[j])).abs();
            let worst = (0..120)
                .flat_map(|i| (0..120).map(move |j| (i, j)))
                .map(|(i, j)| off(i, j))
                .fold(0.0, f64::max);
            println!(
                "{} columns leave {worst:.2e} of {residual:.0e}",
                factor.width
            );
            assert!(
                worst <= residual + 1e-14 && worst > residual / 1e3,
                "{worst} {residual}"
            );
        }
    }

    #[test]
    fn a_rough_kernel_has_no_factor() {
        let places = places();
        let pairs = RecordPairs::new(CubeKernel::Gaussian { bandwidth: 0.001 }, 1, &places);
        assert!(GramFactor::from_pairs(&pairs, 1e-6).is_none());
    }

    #[test]
    fn a_system_is_solved() {
        let n = 7;
        let whole = |i: usize, j: usize| {
            if i == j {
                3.0
            } else {
                1.0 / (1.0 + (i + j) as f64)
            }
        };
        let lower = (0..n * n)
            .map(|at| {
                if at % n <= at / n {
                    whole(at / n, at % n)
                } else {
                    f64::NAN
                }
            })
            .collect();
        let g: Vec<f64> = (0..n).map(|i| i as f64 - 2.5).collect();
        let x = solve_cholesky(lower, &g);
        for (i, g) in g.iter().enumerate() {
            let row: f64 = x.iter().enumerate().map(|(j, x)| whole(i, j) * x).sum();
            assert!((row - g).abs() < 1e-12, "{row} {g}");
        }
    }
}
