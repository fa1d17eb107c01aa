//! Any kernel: a Cholesky factor that grows by a row.

use super::process::{ChangeGrowth, GaussianProcess, ONE, PointOffer, row_norm, whole_row};
use bernstream_synopsis::PointKernel;
use bernstream_synopsis::cholesky::{forward_by, solve_upper};

/// Most points with noise of their own: three triangles of floats, 50 MB.
pub const MOST: usize = 2048;

/// One unit in the last place, halved.
const ROUNDING: f64 = f64::EPSILON / 2.0;

/// The points asked so far.
pub(super) struct DenseProcess {
    kernel: PointKernel,
    /// Largest error of a computed kernel value.
    error: f64,
    points: Vec<Vec<f64>>,
    /// The kernel matrix, its factor `L` and the rows `R` in use: row `i` has `i + 1` numbers.
    gram: Vec<Vec<f64>>,
    factor: Vec<Vec<f64>>,
    rows: Vec<Vec<f64>>,
    /// `||R K R' - I||_F^2` and `sum_i m_i^2`, `m_i` the size of a row in the 1-norm, as floats have them.
    off: f64,
    squares: f64,
    coordinates: Vec<f64>,
}

pub(super) struct DensePoint {
    point: Vec<f64>,
    gram: Vec<f64>,
    factor: Vec<f64>,
    row: Vec<f64>,
    off: f64,
    squares: f64,
}

impl DenseProcess {
    pub fn new(kernel: PointKernel) -> Self {
        let error = kernel.value_error();
        DenseProcess {
            kernel,
            error,
            points: Vec::new(),
            gram: Vec::new(),
            factor: Vec::new(),
            rows: Vec::new(),
            off: 0.0,
            squares: 0.0,
            coordinates: Vec::new(),
        }
    }

    /// `R K` for a new row and the kernel values of its point.
    fn kernel_product(&self, row: &[f64], gram: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; row.len()];
        for (i, of_gram) in self
            .gram
            .iter()
            .map(Vec::as_slice)
            .chain([gram])
            .enumerate()
        {
            for (j, k) in of_gram.iter().enumerate().take(i) {
                product[j] += row[i] * k;
                product[i] += row[j] * k;
            }
            product[i] += row[i] * of_gram[i];
        }
        product
    }
}

impl GaussianProcess for DenseProcess {
    type Place = DensePoint;

    /// `q` as with [`Points::stretch_bound`](bernstream_synopsis::whitened::Points::stretch_bound), of the rows in use.
    fn offer(&self, point: &[f64]) -> PointOffer<DensePoint> {
        let own = self.points.len();
        let whole = self.kernel.value(point, point);
        let mut gram: Vec<f64> = self
            .points
            .iter()
            .map(|p| self.kernel.value(p, point))
            .collect();
        let mut factor = forward_by(inner_product, &self.factor, &gram);
        let rest = whole - inner_product(&factor, &factor);
        let mean = inner_product(&factor, &self.coordinates);
        let weights = solve_upper(&self.factor, &factor);
        let whole_row = whole_row(weights.into_iter().enumerate(), own, rest);
        let row: Vec<f64> = whole_row
            .iter()
            .map(|entry| entry.weight as f64 / ONE)
            .collect();
        gram.push(whole);
        factor.push(rest.sqrt());
        let product = self.kernel_product(&row, &gram);
        let across: f64 = self
            .rows
            .iter()
            .map(|other| inner_product(other, &product).powi(2))
            .sum();
        let off = self.off + 2.0 * across + (inner_product(&row, &product) - 1.0).powi(2);
        let squares = self.squares + row_norm(&whole_row).powi(2);
        let each = self.error + (2 * own + 10) as f64 * ROUNDING;
        let stretch = (1.0 + off.sqrt() + each * squares).sqrt() * (1.0 + 1e-9);
        let stretch = if own < MOST { stretch } else { f64::INFINITY };
        let reach = ChangeGrowth {
            stretch,
            spread: squares.sqrt() * (1.0 + 1e-9),
        };
        let place = DensePoint {
            point: point.to_vec(),
            gram,
            factor,
            row,
            off,
            squares,
        };
        PointOffer {
            whole,
            rest,
            mean,
            row: whole_row,
            reach,
            place,
        }
    }

    fn take(&mut self, offer: PointOffer<DensePoint>, coordinate: f64) -> f64 {
        let DensePoint {
            point,
            gram,
            factor,
            row,
            off,
            squares,
        } = offer.place;
        let value = offer.mean + offer.rest.sqrt() * coordinate;
        self.points.push(point);
        self.gram.push(gram);
        self.factor.push(factor);
        self.rows.push(row);
        self.off = off;
        self.squares = squares;
        self.coordinates.push(coordinate);
        value
    }
}

/// The inner product, as far as both go, summed in order: published values depend on it.
fn inner_product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
