//! The errors to expect of noise on cells, before there are records. Everything here is public.
//!
//! The noise is a sum of many independent draws at every place, so its largest size over the domain is close to that of a Gaussian
//! process with the same deviation and the same slopes, whose law is known where it is large (Adler and Taylor, Random Fields and
//! Geometry, 2007). The form is off by what the grid does to one record at worst, times the records that are there.

use crate::CellBasis;
use crate::NoiseDistribution;
use crate::eigen::symmetric;
use crate::histogram::Spline;
use crate::predict::Expected;

/// How many places where the noise is largest are expected above its mean sup, `exp(-gamma)` for the law of extremes; and above what 19
/// of 20 sups stay below, `-ln 0.95`.
const ABOVE_THE_MEAN: f64 = 0.561;
const ABOVE_MOST: f64 = 0.0513;
/// The normal quantile that 19 of 20 values stay within, either sign.
const AT_ONE_PLACE: f64 = 1.96;

/// The two terms of the error, each a largest one over the domain.
#[derive(Clone, Copy, Debug)]
pub struct CellError {
    /// The mean of the noise's.
    pub noise: f64,
    /// What 19 of 20 of the noise's stay within, and what the noise at one place does.
    within: f64,
    pointwise: f64,
    /// Of the form, were all records where it does its worst to them: by about so much any data is off at most.
    pub form_at_most: f64,
    /// Of that, what it typically is.
    typical: f64,
}

impl CellError {
    /// For noise with this scale on the counts, in the units of the scale, where `records` are expected. A value of the basis is a
    /// count times `a_record`, the value that one record adds to its cell.
    pub fn expected(
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

    /// The same for a label: what the form does to numerator and denominator of a ratio alike is no error.
    ///
    /// In simulations of six laws of labels a sixth of that for densities made the mean regret small.
    #[must_use]
    pub fn of_a_ratio(self) -> Self {
        CellError {
            typical: self.typical / 6.0,
            ..self
        }
    }

    /// What a grid is chosen by: the smallest is best.
    ///
    /// Of eight laws of records, smooth ones, heaped ones and spikes, such a part of the worst form makes the mean regret against the best
    /// grid of hindsight smallest, on one, two and three axes.
    pub fn of_choice(&self) -> f64 {
        self.noise.hypot(self.typical * self.form_at_most)
    }

    /// The same of a density in other units, so many for one of these.
    pub fn density(&self, unit: f64) -> Expected {
        let Expected {
            noise,
            approximation,
            error,
            within,
            spread,
        } = self.told();
        let [noise, approximation, error, within, spread] =
            [noise, approximation, error, within, spread].map(|error| error * unit);
        Expected {
            noise,
            approximation,
            error,
            within,
            spread,
        }
    }

    /// Of a label that is read off two tables or more, where `records` are spread evenly, `reach` of them under the kernel at a point, and
    /// `range` is that of the label. The form is that of labels that change from bound to bound within a kernel.
    pub fn label(&self, basis: &CellBasis, reach: f64, range: f64) -> Expected {
        // Of the sum of two tables the noise is larger by the root of 2 than that of one, which decides at the bounds.
        let unit = range * std::f64::consts::FRAC_1_SQRT_2 / reach;
        let [noise, within, pointwise] =
            [self.noise, self.within, self.pointwise].map(|error| (error * unit).min(range));
        let approximation = (range / 2.0 * form_of_a_record(basis)).min(range);
        let error = noise.hypot(approximation).min(range);
        Expected {
            noise,
            approximation,
            error,
            within: within.max(approximation + pointwise).min(range),
            spread: self.of_choice() * unit,
        }
    }

    /// What to expect where all records lie in one place of a cell, its worst; and where they are spread, which is what a grid is
    /// chosen by.
    pub fn told(&self) -> Expected {
        let approximation = self.form_at_most;
        let error = self.noise.hypot(approximation);
        // Where the form is off the noise is that of a few places, elsewhere it is alone.
        let within = self.within.max(approximation + self.pointwise);
        Expected {
            noise: self.noise,
            approximation,
            error,
            within,
            spread: self.of_choice(),
        }
    }
}

/// The mean of the largest size of the noise over the cube, of scale 1.
pub fn noise(basis: &CellBasis, law: NoiseDistribution) -> f64 {
    CellNoise::new(basis, law).exceeded_by(ABOVE_THE_MEAN)
}

/// The noise `sum_j z_j K(y - p_j)` over the cube, `z` noise of scale 1.
struct CellNoise {
    /// The largest, over the places.
    deviation: f64,
    /// Its excess kurtosis there.
    excess: f64,
    /// The lengths of the axes, in units in which the slopes of the noise along each deviate as much as the noise itself.
    lengths: Vec<f64>,
}

impl CellNoise {
    fn new(basis: &CellBasis, law: NoiseDistribution) -> Self {
        let axes = basis.nodes();
        let of_axis = |(axis, nodes): (usize, &Vec<f64>)| {
            let precision = basis
                .precision
                .get(axis)
                .and_then(|row| row.get(axis))
                .copied()
                .unwrap_or(1.0);
            Along::new(
                nodes,
                basis.steps.get(axis).copied().unwrap_or(1),
                precision.powf(-0.5),
            )
        };
        let along: Vec<Along> = axes.iter().enumerate().map(of_axis).collect();
        let (variance, kurtosis) = if basis.is_diagonal() {
            along.iter().fold((1.0, 1.0), |(variance, kurtosis), a| {
                (variance * a.variance, kurtosis * a.kurtosis)
            })
        } else {
            // Where the axes are correlated the sum of squares is no product.
            let middle: Vec<f64> = axes
                .iter()
                .filter_map(|nodes| nodes.get(nodes.len() / 2).copied())
                .collect();
            let squares: Vec<f64> = basis.at(&middle).iter().map(|a| a * a).collect();
            let variance = squares.iter().sum::<f64>();
            (
                variance,
                squares.iter().map(|square| square * square).sum::<f64>() / variance.powi(2),
            )
        };
        let (unit, excess) = match law {
            NoiseDistribution::DiscreteLaplace => (2.0, 3.0 * kurtosis),
            _ => (1.0, 0.0),
        };
        let length = |a: &Along| a.as_noisy / (a.width * std::f64::consts::SQRT_2);
        CellNoise {
            deviation: (unit * variance).sqrt(),
            excess,
            lengths: along.iter().map(length).collect(),
        }
    }

    /// What so many places of either sign exceed where the noise is largest. That of the Gaussian process is found by bisection;
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
        let longer = |[first, second, third]: [f64; 3], length: &f64| {
            [
                first + length,
                second + first * length,
                third + second * length,
            ]
        };
        self.lengths.iter().fold([0.0; 3], longer)
    }
}

/// The noise along one axis, of scale 1 and variance 1.
struct Along {
    /// The largest, over the places.
    variance: f64,
    /// The sum of fourth powers there over the square of that.
    kurtosis: f64,
    as_noisy: f64,
    /// Of the kernel.
    width: f64,
}

impl Along {
    fn new(nodes: &[f64], steps: u32, width: f64) -> Self {
        let at = |y: f64| -> (f64, f64) {
            // Further away the square of the kernel is below 2^-51.
            let near = nodes.partition_point(|p| *p < y - 6.0 * width)
                ..nodes.partition_point(|p| *p <= y + 6.0 * width);
            let squares = nodes
                .get(near)
                .unwrap_or_default()
                .iter()
                .map(|p| (-((y - p) / width).powi(2)).exp());
            squares.fold((0.0, 0.0), |(sum, fourth), square| {
                (sum + square, fourth + square * square)
            })
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast from a float saturates"
        )]
        let places = (8.0 * (1.0 / width).max(f64::from(steps))).ceil() as u32;
        let found: Vec<(f64, f64)> = (0..=places)
            .map(|i| at(f64::from(i) / f64::from(places)))
            .collect();
        let (variance, fourth) =
            found.iter().copied().fold(
                (0.0, 0.0),
                |best, one| if one.0 > best.0 { one } else { best },
            );
        let as_noisy = found
            .iter()
            .map(|(v, _)| (v / variance).powi(2))
            .sum::<f64>()
            / found.len() as f64;
        Along {
            variance,
            kurtosis: fourth / variance.powi(2),
            as_noisy,
            width,
        }
    }
}

/// How far one record that is shared and read is from its kernel at most, in units of the kernel's peak, far from the ends of the
/// domain.
///
/// On one axis, with `f` the place of the record in a cell and `w_j` its shares, it is `max_y |sum_j w_j K_s(y - j) - K_1(y - f)|`
/// over all `f`. On several, one plus the errors of splines multiply: found is 0.94 to 1 times that. A box moves the record along each
/// axis; what that does is joined by a norm that comes within a few per cent of what is found.
///
/// Of a full covariance it is an estimate: axes and steps are those of [`steps_in_widths`].
pub fn form_of_a_record(basis: &CellBasis) -> f64 {
    let spline = basis.spline;
    let of_axes = steps_in_widths(basis)
        .into_iter()
        .map(|step| form_on_an_axis(spline, step));
    match spline {
        Spline::Box => of_axes
            .map(|error| error.powf(1.7))
            .sum::<f64>()
            .powf(1.0 / 1.7),
        Spline::Linear | Spline::Quadratic => {
            of_axes.map(|error| 1.0 + error).product::<f64>() - 1.0
        }
    }
}

/// The same in units of the peak of the kernel that reads the cells: of a value of one record. The kernel that is asked for is lower.
pub(super) fn form_of_a_count(basis: &CellBasis) -> f64 {
    let lower = |step: f64| {
        (1.0 - basis.spline.variance() * step * step)
            .max(0.0)
            .sqrt()
    };
    steps_in_widths(basis)
        .into_iter()
        .map(lower)
        .product::<f64>()
        * form_of_a_record(basis)
}

/// The steps in widths of the kernel that is asked for. Where that is no product over the axes: along the directions in which the variance
/// of the spline and the kernel's are both independent, the roots of the eigenvalues of `D^(1/2) H^-1 D^(1/2)`, `D` the squares of the
/// steps. With `H = S + v D` these follow from those of the kernel `S` that reads the cells.
fn steps_in_widths(basis: &CellBasis) -> Vec<f64> {
    let step = |axis: usize| basis.steps.get(axis).map_or(1.0, |m| 1.0 / f64::from(*m));
    let entry = |(i, row): (usize, &Vec<f64>)| {
        row.iter()
            .enumerate()
            .map(|(j, p)| step(i) * p * step(j))
            .collect()
    };
    let of_reader = symmetric(basis.precision.iter().enumerate().map(entry).collect()).values;
    let v = basis.spline.variance();
    of_reader
        .into_iter()
        .map(|square| (square.max(0.0) / (1.0 + v * square.max(0.0))).sqrt())
        .collect()
}

/// The same on one axis, whose steps are so many widths of the kernel.
pub(super) fn form_on_an_axis(spline: Spline, step: f64) -> f64 {
    let left = 1.0 - spline.variance() * step * step;
    if left <= 0.0 {
        return f64::INFINITY;
    }
    let s = left.sqrt();
    let error = |f: f64, y: f64| {
        let shares: &[(f64, f64)] = match spline {
            Spline::Box => &[(0.0, 1.0)],
            Spline::Linear => &[(0.0, 1.0 - f), (1.0, f)],
            Spline::Quadratic => &[
                (-1.0, (0.5 - f).powi(2) / 2.0),
                (0.0, 0.75 - f * f),
                (1.0, (0.5 + f).powi(2) / 2.0),
            ],
        };
        let read: f64 = shares
            .iter()
            .map(|(j, w)| w * (-((y - j * step) / s).powi(2) / 2.0).exp() / s)
            .sum();
        (read - (-(y - f * step).powi(2) / 2.0).exp()).abs()
    };
    // Records in the upper half of a cell are mirror images.
    let places = (0..=12).map(|i| f64::from(i) / 24.0);
    let along = |f: f64| (-60..=60).map(move |i| (f, f64::from(i) / 16.0));
    places
        .flat_map(along)
        .map(|(f, y)| error(f, y))
        .fold(0.0, f64::max)
}

/// The steps of each axis to try: cells of equal size in widths of the kernel, from a tenth of one to where the spline has a third of
/// the kernel's variance.
pub fn grids(spline: Spline, widths: &[f64]) -> Vec<Vec<u32>> {
    const RATIO: f64 = 1.06;
    let widest = (0.32 / spline.variance()).sqrt();
    let mut grids: Vec<Vec<u32>> = Vec::new();
    let mut step = widest;
    while step >= 0.1 {
        let along = |width: &f64| {
            // A cast from a float saturates.
            let nearest = (1.0 / (step * width)).round() as u32;
            nearest.max((1.0 / (widest * width)).ceil() as u32).max(1)
        };
        let grid: Vec<u32> = widths.iter().map(along).collect();
        if grids.last() != Some(&grid) {
            grids.push(grid);
        }
        step /= RATIO;
    }
    grids
}
