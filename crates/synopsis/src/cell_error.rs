//! The errors to expect of noise on cells, before there are records. Everything here is public.
//!
//! The noise is a sum of many independent draws at every place, so its largest size over the domain is close to that of a Gaussian
//! process with the same deviation and the same slopes, whose law is known where it is large (Adler and Taylor, Random Fields and
//! Geometry, 2007). The form is off by what the grid does to one record at worst, times the records that are there.

use crate::CellBasis;
use crate::NoiseDistribution;
use crate::eigen::symmetric;
use crate::histogram::Spline;
use crate::predict::ExpectedErrors;

/// Number of places where the noise is largest that are expected above its mean sup, `exp(-gamma)` for the law of extremes; and above
/// what 19 of 20 sups stay below, `-ln 0.95`.
const ABOVE_THE_MEAN: f64 = 0.561;
const ABOVE_MOST: f64 = 0.0513;
/// The normal quantile that 19 of 20 values stay within, either sign.
const AT_ONE_PLACE: f64 = 1.96;

/// The two terms of the error, each a largest one over the domain.
#[derive(Clone, Copy, Debug)]
pub struct CellError {
    /// Mean of the noise's.
    pub noise: f64,
    /// Bound that 19 of 20 of the noise's stay within, and the noise at one place.
    within: f64,
    pointwise: f64,
    /// Error of the form, were all records where it does its worst to them: by about so much any data is off at most.
    pub form_at_most: f64,
    /// Typical part of that.
    typical: f64,
}

impl CellError {
    /// Predicts the error of noise with this scale on the counts, in the units of the scale, where `records` are expected. A value of the basis is a
    /// count times `a_record`, the value that one record adds to its cell.
    pub fn predict_error(
        basis: &CellBasis,
        law: NoiseDistribution,
        scale: f64,
        (records, a_record): (f64, f64),
    ) -> Self {
        let noise = CellNoise::new(basis, law);
        CellError {
            noise: scale * noise.exceeded_by(ABOVE_THE_MEAN),
            within: scale * noise.exceeded_by(ABOVE_MOST),
            pointwise: scale * AT_ONE_PLACE * noise.deviation,
            form_at_most: records * a_record * form_of_a_count(basis),
            typical: match basis.spline {
                Spline::Box => 0.2,
                Spline::Linear => 0.08,
                Spline::Quadratic => 0.12,
            },
        }
    }

    /// Error of a label: what the form does to numerator and denominator of a ratio alike is no error.
    ///
    /// In simulations of six laws of labels a sixth of that for densities made the mean regret small.
    #[must_use]
    pub fn of_a_ratio(self) -> Self {
        CellError {
            typical: self.typical / 6.0,
            ..self
        }
    }

    /// Criterion that a grid is chosen by: the smallest is best.
    ///
    /// Of eight laws of records, smooth ones, heaped ones and spikes, such a part of the worst form makes the mean regret against the best
    /// grid of hindsight smallest, on one, two and three axes.
    pub fn grid_criterion(&self) -> f64 {
        self.noise.hypot(self.typical * self.form_at_most)
    }

    /// Errors of a density in other units, so many for one of these.
    pub fn density_errors(&self, unit: f64) -> ExpectedErrors {
        let errors = self.worst_case_errors();
        ExpectedErrors {
            noise: errors.noise * unit,
            approximation: errors.approximation * unit,
            error: errors.error * unit,
            within: errors.within * unit,
            spread: errors.spread * unit,
        }
    }

    /// Errors of a label that is read off two tables or more, where `records` are spread evenly, `reach` of them under the kernel at a point, and
    /// `range` is that of the label. The form is that of labels that change from bound to bound within a kernel.
    pub fn label_errors(&self, basis: &CellBasis, reach: f64, range: f64) -> ExpectedErrors {
        // Of the sum of two tables the noise is larger by the root of 2 than that of one, which decides at the bounds.
        let unit = range * std::f64::consts::FRAC_1_SQRT_2 / reach;
        let [noise, within, pointwise] =
            [self.noise, self.within, self.pointwise].map(|error| (error * unit).min(range));
        let approximation = (range / 2.0 * form_of_a_record(basis)).min(range);
        let error = noise.hypot(approximation).min(range);
        ExpectedErrors {
            noise,
            approximation,
            error,
            within: within.max(approximation + pointwise).min(range),
            spread: self.grid_criterion() * unit,
        }
    }

    /// Errors to expect where all records lie in one place of a cell, its worst; and where they are spread, which is what a grid is
    /// chosen by.
    pub fn worst_case_errors(&self) -> ExpectedErrors {
        let approximation = self.form_at_most;
        let error = self.noise.hypot(approximation);
        // Where the form is off the noise is that of a few places, elsewhere it is alone.
        let within = self.within.max(approximation + self.pointwise);
        ExpectedErrors {
            noise: self.noise,
            approximation,
            error,
            within,
            spread: self.grid_criterion(),
        }
    }
}

/// The mean of the largest size of the noise over the cube, of scale 1.
pub fn mean_noise_sup(basis: &CellBasis, law: NoiseDistribution) -> f64 {
    CellNoise::new(basis, law).exceeded_by(ABOVE_THE_MEAN)
}

/// The noise `sum_j z_j K(y - p_j)` over the cube, `z` noise of scale 1.
struct CellNoise {
    /// Largest standard deviation over the places.
    deviation: f64,
    /// Excess kurtosis there.
    excess: f64,
    /// Lengths of the axes, in units in which the slopes of the noise along each deviate as much as the noise itself.
    lengths: Vec<f64>,
}

impl CellNoise {
    fn new(basis: &CellBasis, law: NoiseDistribution) -> Self {
        let nodes = basis.nodes();
        let mut axes = Vec::with_capacity(nodes.len());
        for (axis, nodes) in nodes.iter().enumerate() {
            let precision = basis
                .precision
                .get(axis)
                .and_then(|row| row.get(axis))
                .copied()
                .unwrap_or(1.0);
            let steps = basis.steps.get(axis).copied().unwrap_or(1);
            axes.push(AxisNoise::new(nodes, steps, precision.powf(-0.5)));
        }
        let mut variance = 1.0;
        let mut kurtosis = 1.0;
        if basis.is_diagonal() {
            for axis in &axes {
                variance *= axis.variance;
                kurtosis *= axis.kurtosis;
            }
        } else {
            // Where the axes are correlated the sum of squares is no product.
            let middle: Vec<f64> = nodes
                .iter()
                .filter_map(|nodes| nodes.get(nodes.len() / 2).copied())
                .collect();
            let squares: Vec<f64> = basis.kernel_values(&middle).iter().map(|a| a * a).collect();
            variance = squares.iter().sum::<f64>();
            kurtosis = squares.iter().map(|square| square * square).sum::<f64>() / variance.powi(2);
        }
        let lengths = axes
            .iter()
            .map(|axis| axis.noisy_part / (axis.width * std::f64::consts::SQRT_2))
            .collect();
        match law {
            NoiseDistribution::DiscreteLaplace => CellNoise {
                deviation: (2.0 * variance).sqrt(),
                excess: 3.0 * kurtosis,
                lengths,
            },
            _ => CellNoise {
                deviation: variance.sqrt(),
                excess: 0.0,
                lengths,
            },
        }
    }

    /// Level that so many places of either sign exceed where the noise is largest. That of the Gaussian process is found by bisection;
    /// it is corrected for the kurtosis to first order (Cornish and Fisher).
    fn exceeded_by(&self, count: f64) -> f64 {
        let mut low = 0.0;
        let mut high = 40.0;
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.peaks_above(middle) > count {
                low = middle
            } else {
                high = middle
            }
        }
        self.deviation * (high + self.excess / 24.0 * (high.powi(3) - 3.0 * high))
    }

    /// The expected Euler characteristic of where a Gaussian process with these lengths exceeds `z`, of either sign.
    fn peaks_above(&self, z: f64) -> f64 {
        use std::f64::consts::{FRAC_1_SQRT_2, TAU};
        let [first, second, third] = self.volumes();
        let density = (-z * z / 2.0).exp();
        libm::erfc(z * FRAC_1_SQRT_2)
            + 2.0
                * density
                * (first / TAU
                    + second * z / TAU.powf(1.5)
                    + third * (z * z - 1.0).max(0.0) / TAU.powi(2))
    }

    /// The intrinsic volumes of the box: the sums of its lengths, of the products of two, and of three.
    fn volumes(&self) -> [f64; 3] {
        let mut volumes = [0.0; 3];
        for length in &self.lengths {
            let [first, second, third] = volumes;
            volumes = [
                first + length,
                second + first * length,
                third + second * length,
            ];
        }
        volumes
    }
}

/// The noise along one axis, of scale 1 and variance 1.
struct AxisNoise {
    /// Largest variance over the places.
    variance: f64,
    /// Sum of fourth powers there over the square of that.
    kurtosis: f64,
    /// Part of the axis that is as noisy as that.
    noisy_part: f64,
    /// Width of the kernel.
    width: f64,
}

impl AxisNoise {
    fn new(nodes: &[f64], steps: u32, width: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast from a float saturates"
        )]
        let places = (8.0 * (1.0 / width).max(f64::from(steps))).ceil() as u32;
        let found: Vec<KernelPowers> = (0..=places)
            .map(|place| KernelPowers::new(nodes, width, f64::from(place) / f64::from(places)))
            .collect();
        let mut most = KernelPowers {
            squares: 0.0,
            fourths: 0.0,
        };
        for powers in &found {
            if powers.squares > most.squares {
                most = *powers;
            }
        }
        let variance = most.squares;
        let noisy = found
            .iter()
            .map(|powers| (powers.squares / variance).powi(2))
            .sum::<f64>();
        AxisNoise {
            variance,
            kurtosis: most.fourths / variance.powi(2),
            noisy_part: noisy / found.len() as f64,
            width,
        }
    }
}

/// Sums at one place of the powers of the kernels of all nodes.
#[derive(Clone, Copy)]
struct KernelPowers {
    squares: f64,
    fourths: f64,
}

impl KernelPowers {
    fn new(nodes: &[f64], width: f64, y: f64) -> Self {
        // Further away the square of the kernel is below 2^-51.
        let first = nodes.partition_point(|node| *node < y - 6.0 * width);
        let end = nodes.partition_point(|node| *node <= y + 6.0 * width);
        let mut powers = KernelPowers {
            squares: 0.0,
            fourths: 0.0,
        };
        for node in nodes.get(first..end).unwrap_or_default() {
            let square = (-((y - node) / width).powi(2)).exp();
            powers.squares += square;
            powers.fourths += square * square;
        }
        powers
    }
}

/// Largest distance of one record that is shared and read from its kernel, in units of the kernel's peak, far from the ends of the
/// domain.
///
/// On one axis, with `f` the place of the record in a cell and `w_j` its shares, it is `max_y |sum_j w_j K_s(y - j) - K_1(y - f)|`
/// over all `f`. On several, one plus the errors of splines multiply: found is 0.94 to 1 times that. A box moves the record along each
/// axis; what that does is joined by a norm that comes within a few per cent of what is found.
///
/// Of a full covariance it is an estimate: axes and steps are those of [`steps_in_widths`].
pub fn form_of_a_record(basis: &CellBasis) -> f64 {
    let errors: Vec<f64> = steps_in_widths(basis)
        .into_iter()
        .map(|step| form_on_an_axis(basis.spline, step))
        .collect();
    match basis.spline {
        Spline::Box => {
            let sum: f64 = errors.iter().map(|error| error.powf(1.7)).sum();
            sum.powf(1.0 / 1.7)
        }
        Spline::Linear | Spline::Quadratic => {
            errors.iter().map(|error| 1.0 + error).product::<f64>() - 1.0
        }
    }
}

/// Error of the form of one record in units of the peak of the kernel that reads the cells: of a value of one record. The kernel that is asked for is lower.
pub(super) fn form_of_a_count(basis: &CellBasis) -> f64 {
    let mut lower = 1.0;
    for step in steps_in_widths(basis) {
        let left = 1.0 - basis.spline.variance() * step * step;
        lower *= left.max(0.0).sqrt();
    }
    lower * form_of_a_record(basis)
}

/// The steps in widths of the kernel that is asked for. Where that is no product over the axes: along the directions in which the variance
/// of the spline and the kernel's are both independent, the roots of the eigenvalues of `D^(1/2) H^-1 D^(1/2)`, `D` the squares of the
/// steps. With `H = S + v D` these follow from those of the kernel `S` that reads the cells.
fn steps_in_widths(basis: &CellBasis) -> Vec<f64> {
    let mut scaled = basis.precision.clone();
    for (row, row_steps) in scaled.iter_mut().zip(&basis.steps) {
        for (entry, column_steps) in row.iter_mut().zip(&basis.steps) {
            *entry = 1.0 / f64::from(*row_steps) * *entry * (1.0 / f64::from(*column_steps));
        }
    }
    let v = basis.spline.variance();
    symmetric(scaled)
        .values
        .into_iter()
        .map(|square| (square.max(0.0) / (1.0 + v * square.max(0.0))).sqrt())
        .collect()
}

/// Error of the form of one record on one axis, whose steps are so many widths of the kernel.
pub(super) fn form_on_an_axis(spline: Spline, step: f64) -> f64 {
    let left = 1.0 - spline.variance() * step * step;
    if left <= 0.0 {
        return f64::INFINITY;
    }
    let width = left.sqrt();
    let mut largest = 0.0_f64;
    // Records in the upper half of a cell are mirror images.
    for place in 0..=12 {
        let f = f64::from(place) / 24.0;
        let NodeShares { first, shares } = NodeShares::new(spline, f);
        for i in -60..=60 {
            let y = f64::from(i) / 16.0;
            let mut read = 0.0;
            let mut node = first;
            for share in &shares {
                read += share * (-((y - node * step) / width).powi(2) / 2.0).exp() / width;
                node += 1.0;
            }
            let exact = (-(y - f * step).powi(2) / 2.0).exp();
            largest = largest.max((read - exact).abs());
        }
    }
    largest
}

/// The shares of a record on the nodes around it, in a cell whose lowest node is 0.
struct NodeShares {
    first: f64,
    shares: Vec<f64>,
}

impl NodeShares {
    /// Shares of a record at `f` of the cell, up to a half.
    fn new(spline: Spline, f: f64) -> Self {
        match spline {
            Spline::Box => NodeShares {
                first: 0.0,
                shares: vec![1.0],
            },
            Spline::Linear => NodeShares {
                first: 0.0,
                shares: vec![1.0 - f, f],
            },
            Spline::Quadratic => NodeShares {
                first: -1.0,
                shares: vec![
                    (0.5 - f).powi(2) / 2.0,
                    0.75 - f * f,
                    (0.5 + f).powi(2) / 2.0,
                ],
            },
        }
    }
}

/// The steps of each axis to try: cells of equal size in widths of the kernel, from a tenth of one to where the spline has a third of
/// the kernel's variance.
pub fn candidate_grids(spline: Spline, widths: &[f64]) -> Vec<Vec<u32>> {
    const RATIO: f64 = 1.06;
    let widest = (0.32 / spline.variance()).sqrt();
    let mut grids: Vec<Vec<u32>> = Vec::new();
    let mut step = widest;
    while step >= 0.1 {
        let mut grid = Vec::with_capacity(widths.len());
        for width in widths {
            // A cast from a float saturates.
            let nearest = (1.0 / (step * width)).round() as u32;
            let least = (1.0 / (widest * width)).ceil() as u32;
            grid.push(nearest.max(least).max(1));
        }
        if grids.last() != Some(&grid) {
            grids.push(grid);
        }
        step /= RATIO;
    }
    grids
}
