//! Posterior smoothing by a Gaussian process of released values, given the noise that is known to be on them.
//!
//! The function is `m + A g`, `g` a Gaussian process of a public kernel `K`; the released values are its values on the lattice
//! (or its whitened coordinates) plus uncorrelated noise of public variance, counted as if it were Gaussian. `A` is that of the
//! largest marginal likelihood, `m` has a flat prior. All of it is computed from released values alone and costs no privacy.
//!
//! In Newton's basis of `K` on points chosen from those of the values, `g = w' n(y)` with independent standard normal `w`,
//! and the values are `m u + A F w` plus noise: every system to solve has one row a coordinate, few for a smooth kernel.

use crate::cholesky;
use crate::cholesky::{dot_product, solve_lower, solve_upper};
use crate::description::{Description, Method, Smoothing, TargetDescription};
use crate::machine::CubeKernel;
use crate::newton::{Newton, REST};
use crate::quadratic::diagonal_matrix;
use crate::tensor::{even_coordinates, grid_points};
use crate::{Basis, PointKernel, Shape};

/// Most coordinates: a rougher function is smoothed on so many points.
const MOST: usize = 512;
/// Length scales to choose from where the description has none, in widths of the domain.
const LENGTHS: [f64; 5] = [0.05, 0.1, 0.2, 0.4, 0.8];
/// `A^2` over the variance of the noise: kernel interpolation that only keeps rounding in check.
const INTERPOLATION: f64 = 1e4;

/// A function by kernel functions, and how uncertain it is.
#[derive(Clone, Debug)]
pub(super) struct SmoothFunction {
    mean: f64,
    newton: Newton,
    coefficients: Vec<f64>,
    fit: PosteriorFit,
    noise: f64,
}

impl SmoothFunction {
    /// The posterior, of a lattice or of kernel functions; `None` for what has neither.
    pub fn posterior(description: &Description, values: &[f64]) -> Option<Self> {
        let shape = description.shape();
        let noise =
            description.noise.law.variance(shape.value_count()) * description.noise.scale.powi(2);
        let kernels = match prior_kernel(description) {
            Some(kernel) => vec![kernel],
            None => LENGTHS
                .iter()
                .map(|length| gaussian_kernel(&vec![length.powi(2); shape.dimensions]))
                .collect(),
        };
        let mut best: Option<SmoothFunction> = None;
        for kernel in kernels {
            let model = PosteriorModel::new(&shape, &kernel, values)?;
            let fit = model.likeliest_fit(noise);
            if best
                .as_ref()
                .is_none_or(|best| fit.evidence > best.fit.evidence)
            {
                best = Some(SmoothFunction::new(model, fit, noise, description.offset));
            }
        }
        best
    }

    /// Kernel interpolation of lattice values; `None` where the description names no kernel.
    pub fn interpolation(description: &Description, values: &[f64]) -> Option<Self> {
        let model = PosteriorModel::new(&description.shape(), &prior_kernel(description)?, values)?;
        let fit = model.fit_ratio(INTERPOLATION, 1.0);
        Some(SmoothFunction::new(model, fit, 0.0, description.offset))
    }

    fn new(model: PosteriorModel, fit: PosteriorFit, noise: f64, offset: f64) -> Self {
        let offset = match model.observed {
            ObservedKind::Coordinates => offset,
            ObservedKind::Values => 0.0,
        };
        let coefficients = model.newton.coefficients(&fit.coordinates);
        SmoothFunction {
            mean: offset + fit.mean,
            newton: model.newton,
            coefficients,
            fit,
            noise,
        }
    }

    /// Value at a point of the unit cube.
    pub fn value(&self, y: &[f64]) -> f64 {
        self.mean + self.newton.basis.combine(&self.coefficients, y)
    }

    /// The posterior standard deviation at a point of the unit cube; 0 for an interpolation.
    pub fn deviation(&self, y: &[f64]) -> f64 {
        let PosteriorFit {
            ratio,
            factor,
            ones,
            ones_left,
            ..
        } = &self.fit;
        let n = self.newton.basis_values(y);
        let solved = solve_lower(factor, &n);
        let left = (self.newton.basis.kernel.value(y, y) - dot_product(&n, &n)).max(0.0);
        let of_mean = (1.0 - ratio * dot_product(&solved, ones)).powi(2) / ones_left;
        (self.noise * (ratio * (dot_product(&solved, &solved) + left) + of_mean)).sqrt()
    }
}

/// Kind of the released values.
enum ObservedKind {
    /// Values of the function on the lattice.
    Values,
    /// Whitened coordinates.
    Coordinates,
}

/// `v = m u + F g + noise`, `g` the coordinates in Newton's basis of the prior, by the sums that are needed.
struct PosteriorModel {
    observed: ObservedKind,
    newton: Newton,
    /// The lower triangle of `F'F`.
    gram: Vec<Vec<f64>>,
    /// `F'v` and `F'u`.
    along: [Vec<f64>; 2],
    /// `v'v`, `u'v` and `u'u`.
    squares: [f64; 3],
}

/// The posterior for one ratio `A^2 / variance of the noise`.
#[derive(Clone, Debug)]
struct PosteriorFit {
    ratio: f64,
    mean: f64,
    coordinates: Vec<f64>,
    /// The factor `C` of `I + ratio F'F`, and `C^-1 F'u`.
    factor: Vec<Vec<f64>>,
    ones: Vec<f64>,
    /// `u' S^-1 u`, `S` the covariance of the values in units of the noise's variance.
    ones_left: f64,
    evidence: f64,
}

impl PosteriorModel {
    fn new(shape: &Shape, kernel: &PointKernel, values: &[f64]) -> Option<Self> {
        let points = match &shape.basis {
            Basis::Bernstein => {
                grid_points(&vec![even_coordinates(shape.degree); shape.dimensions])
            }
            Basis::Kernel(basis) => basis.points.clone(),
            Basis::Affine
            | Basis::Cells(_)
            | Basis::Tables(_)
            | Basis::Cosine { .. }
            | Basis::Keys(_) => return None,
        };
        let newton = Newton::on_chosen_points(kernel, &points, MOST);
        // Column by column: the values of the basis at the points, whitened as the values are.
        let mut columns = vec![Vec::with_capacity(points.len()); newton.count()];
        for point in &points {
            for (column, value) in columns.iter_mut().zip(newton.basis_values(point)) {
                column.push(value);
            }
        }
        let mut ones = vec![1.0; points.len()];
        let mut values = values.to_vec();
        let mut observed = ObservedKind::Values;
        if let Basis::Kernel(basis) = &shape.basis {
            let released = Newton::on_points(basis);
            for column in columns.iter_mut().chain([&mut ones]) {
                *column = released.whiten(column);
            }
            values = released.coordinates(&values);
            observed = ObservedKind::Coordinates;
        }
        let mut gram = Vec::with_capacity(columns.len());
        for (index, column) in columns.iter().enumerate() {
            gram.push(
                columns[..=index]
                    .iter()
                    .map(|b| dot_product(column, b))
                    .collect(),
            );
        }
        Some(PosteriorModel {
            observed,
            gram,
            along: [&values, &ones].map(|x| {
                columns
                    .iter()
                    .map(|column| dot_product(column, x))
                    .collect()
            }),
            squares: [
                dot_product(&values, &values),
                dot_product(&ones, &values),
                dot_product(&ones, &ones),
            ],
            newton,
        })
    }

    /// `ratio` is `A^2` over `noise`, the variance.
    fn fit_ratio(&self, ratio: f64, noise: f64) -> PosteriorFit {
        let mut rows = self.gram.clone();
        for (i, row) in rows.iter_mut().enumerate() {
            for (j, entry) in row.iter_mut().enumerate() {
                let one = if i == j { 1.0 } else { 0.0 };
                *entry = one + ratio * *entry;
            }
        }
        let factor = cholesky::cholesky_factor(rows, REST);
        let [values, ones] = self.along.each_ref().map(|x| solve_lower(&factor, x));
        let [vv, uv, uu] = self.squares;
        let ones_left = (uu - ratio * dot_product(&ones, &ones)).max(1e-12 * uu);
        let both_left = uv - ratio * dot_product(&ones, &values);
        let mean = both_left / ones_left;
        let misfit = (vv - ratio * dot_product(&values, &values) - mean * both_left).max(0.0);
        let rest: Vec<f64> = values
            .iter()
            .zip(&ones)
            .map(|(v, u)| ratio * (v - mean * u))
            .collect();
        let volume: f64 = factor
            .iter()
            .filter_map(|row| row.last())
            .map(|pivot| pivot.ln())
            .sum();
        let evidence = -volume - (misfit / noise + ones_left.ln()) / 2.0;
        PosteriorFit {
            ratio,
            mean,
            coordinates: solve_upper(&factor, &rest),
            factor,
            ones,
            ones_left,
            evidence,
        }
    }

    /// The fit of the largest marginal likelihood: over 15 powers of ten, then a tenth of one.
    fn likeliest_fit(&self, noise: f64) -> PosteriorFit {
        let halves = (-12..=18).map(|i| f64::from(i) / 2.0);
        let coarse = self.likeliest_exponent(halves, noise);
        let tenths = (-4..=4).map(|i| coarse + f64::from(i) / 10.0);
        let fine = self.likeliest_exponent(tenths, noise);
        self.fit_ratio(10.0_f64.powf(fine), noise)
    }

    /// The first of the powers of ten with the largest marginal likelihood.
    fn likeliest_exponent(&self, mut exponents: impl Iterator<Item = f64>, noise: f64) -> f64 {
        let mut best = exponents.next().unwrap_or(0.0);
        let mut largest = self.fit_ratio(10.0_f64.powf(best), noise).evidence;
        for exponent in exponents {
            let evidence = self.fit_ratio(10.0_f64.powf(exponent), noise).evidence;
            if evidence > largest {
                best = exponent;
                largest = evidence;
            }
        }
        best
    }
}

/// The prior's kernel, from the public description: what sums of a kernel's functions at places of no order have as their
/// covariance, a kernel `sqrt 2` wider where it is Gaussian.
fn prior_kernel(description: &Description) -> Option<PointKernel> {
    let widths: Vec<f64> = description
        .domain
        .iter()
        .map(|axis| axis.max - axis.min)
        .collect();
    let method = match &description.target {
        TargetDescription::Density(density) => match &density.kernel {
            Smoothing::Bandwidths(bandwidths) if bandwidths.len() == widths.len() => {
                let variances: Vec<f64> = bandwidths
                    .iter()
                    .zip(&widths)
                    .map(|(bandwidth, width)| 2.0 * (bandwidth / width).powi(2))
                    .collect();
                return Some(gaussian_kernel(&variances));
            }
            Smoothing::Covariance(matrix) if matrix.len() == widths.len() => {
                return correlated_kernel(matrix, &widths);
            }
            _ => return None,
        },
        TargetDescription::Regression(regression) => &regression.method,
        TargetDescription::Classifier(classifier) | TargetDescription::Probability(classifier) => {
            &classifier.method
        }
        TargetDescription::Sum(_)
        | TargetDescription::Moments(_)
        | TargetDescription::Cells(_)
        | TargetDescription::Counts(_) => return None,
    };
    match method {
        Method::KernelMachine {
            kernel: CubeKernel::Gaussian { bandwidth },
            ..
        } => Some(gaussian_kernel(&vec![
            2.0 * bandwidth.powi(2);
            widths.len()
        ])),
        Method::KernelMachine { kernel, .. } => Some(PointKernel::Machine(*kernel)),
        _ => None,
    }
}

/// The Gaussian kernel with these variances.
fn gaussian_kernel(variances: &[f64]) -> PointKernel {
    let inverses: Vec<f64> = variances.iter().map(|variance| 1.0 / variance).collect();
    PointKernel::Gaussian {
        precision: diagonal_matrix(&inverses),
    }
}

/// The Gaussian kernel with twice a covariance matrix, in the domain mapped to the unit cube.
fn correlated_kernel(matrix: &[Vec<f64>], widths: &[f64]) -> Option<PointKernel> {
    let mut lower = Vec::with_capacity(widths.len());
    for (i, width) in widths.iter().enumerate() {
        let mut row = matrix.get(i)?.get(..=i)?.to_vec();
        for (covariance, other) in row.iter_mut().zip(widths) {
            *covariance = 2.0 * *covariance / (width * other);
        }
        lower.push(row);
    }
    let factor = cholesky::cholesky_factor(lower, REST);
    let mut precision = diagonal_matrix(&vec![1.0; widths.len()]);
    for column in &mut precision {
        *column = solve_upper(&factor, &solve_lower(&factor, column));
    }
    Some(PointKernel::Gaussian { precision })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{AxisDescription, Density};

    #[test]
    fn the_prior_of_a_density_is_sqrt_2_wider_than_its_kernel_in_widths_of_the_domain() {
        let mut about: Description = serde_json::from_str(crate::EXAMPLE).unwrap();
        let axis = |width: f64| AxisDescription {
            column: "x".to_owned(),
            min: -1.0,
            max: width - 1.0,
        };
        about.domain = vec![axis(10.0), axis(4.0)];
        let mut prior_of = |kernel: Smoothing| {
            about.target = TargetDescription::Density(Density {
                kernel,
                divide_by: None,
            });
            prior_kernel(&about).expect("a kernel")
        };
        let diagonal = prior_of(Smoothing::Bandwidths(vec![1.0, 0.8]));
        let matrix = prior_of(Smoothing::Covariance(vec![vec![1.0, 0.0], vec![0.0, 0.64]]));
        let tilted = prior_of(Smoothing::Covariance(vec![vec![1.0, 0.5], vec![0.5, 0.64]]));
        let x = [0.3, 0.4];
        let y = [0.45, 0.7];
        // Apart by 1.5 and 1.2 in natural units, twice the variances.
        let expected = (-(1.5_f64.powi(2) / 2.0 + 1.2_f64.powi(2) / 1.28) / 2.0).exp();
        assert!((diagonal.value(&x, &y) - expected).abs() < 1e-12);
        assert!((matrix.value(&x, &y) - expected).abs() < 1e-12);
        assert!(tilted.value(&x, &y) > expected + 0.01);
    }
}
