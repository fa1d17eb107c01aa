//! The errors to expect of noise on cells, before there are records. Everything here is public.
//!
//! The noise is a sum of many independent draws at every place, so its largest size over the domain is close to that of a Gaussian
//! process with the same deviation at places that hardly know of each other. The form is off by what the grid does to one record at
//! worst, times the records that are there.

use crate::mechanism::NoiseDistribution;
use crate::synopsis::eigen::symmetric;
use crate::synopsis::predict::Expected;
use crate::targets::CellBasis;
use crate::window::histogram::Spline;

/// The mean of the largest of `N` sizes is near what one of them exceeds with probability `AT_THE_MEAN / N`.
const AT_THE_MEAN: f64 = 0.52;

/// The two terms of the error, each a largest one over the domain.
#[derive(Clone, Copy, Debug)]
pub struct CellError {
    /// The mean of the noise's.
    pub noise: f64,
    /// Of the form, were all records where it does its worst to them: by about so much any data is off at most.
    pub form_at_most: f64,
    spline: Spline,
}

impl CellError {
    /// For noise with this scale on the counts, in the units of the scale, where `records` are expected. A value of the basis is a
    /// count times `a_record`, the value that one record adds to its cell.
    pub fn expected(basis: &CellBasis, law: NoiseDistribution, scale: f64, (records, a_record): (f64, f64)) -> Self {
        let of_a_record = form_of_a_record(basis);
        // The kernel that is asked for is lower than the one that reads the cells.
        let lower = |step: f64| (1.0 - basis.spline.variance() * step * step).max(0.0).sqrt();
        let lower: f64 = steps_in_widths(basis).into_iter().map(lower).product();
        CellError {
            noise: scale * noise(basis, law),
            form_at_most: records * a_record * lower * of_a_record,
            spline: basis.spline,
        }
    }

    /// What a grid is chosen by: the smallest is best.
    ///
    /// Of eight laws of records, smooth ones, heaped ones and spikes, such a part of the worst form makes the mean regret against the best
    /// grid of hindsight smallest, on one, two and three axes.
    pub fn of_choice(&self) -> f64 {
        let typical = match self.spline {
            Spline::Box => 0.2,
            Spline::Linear => 0.08,
            Spline::Quadratic => 0.12,
        };
        self.noise.hypot(typical * self.form_at_most)
    }

    /// What to expect where all records lie in one place of a cell, its worst; and where they are spread, which is what a grid is
    /// chosen by.
    pub fn told(&self) -> Expected {
        let approximation = self.form_at_most;
        let error = self.noise.hypot(approximation);
        Expected { noise: self.noise, approximation, error, spread: self.of_choice() }
    }
}

/// The mean of the largest size of `sum_j z_j K(y - p_j)` over the cube, `z` noise of scale 1.
///
/// With `V` the largest variance of the sum and `k` its excess kurtosis there, it is about the value that one of
/// `N = prod (1 + T / 2 s)` independent places exceeds, `s` the width of the kernel on an axis and `T` the part of the axis that is
/// as noisy as its noisiest place; the normal quantile is corrected for `k` to first order (Cornish and Fisher).
pub fn noise(basis: &CellBasis, law: NoiseDistribution) -> f64 {
    let axes = basis.nodes();
    let of_axis = |(axis, nodes): (usize, &Vec<f64>)| {
        let precision = basis.precision.get(axis).and_then(|row| row.get(axis)).copied().unwrap_or(1.0);
        Along::new(nodes, basis.steps.get(axis).copied().unwrap_or(1), precision.powf(-0.5))
    };
    let along: Vec<Along> = axes.iter().enumerate().map(of_axis).collect();
    let places: f64 = along.iter().map(|axis| 1.0 + 0.5 * axis.as_noisy / axis.width).product();
    let (variance, kurtosis) = if basis.is_diagonal() {
        along.iter().fold((1.0, 1.0), |(variance, kurtosis), a| (variance * a.variance, kurtosis * a.kurtosis))
    } else {
        // Where the axes are correlated the sum of squares is no product.
        let middle: Vec<f64> = axes.iter().filter_map(|nodes| nodes.get(nodes.len() / 2).copied()).collect();
        let squares: Vec<f64> = basis.at(&middle).iter().map(|a| a * a).collect();
        let variance = squares.iter().sum::<f64>();
        (variance, squares.iter().map(|square| square * square).sum::<f64>() / variance.powi(2))
    };
    let z = upper_quantile(AT_THE_MEAN / 2.0 / places);
    let (unit, excess) = match law {
        NoiseDistribution::DiscreteLaplace => (2.0, 3.0 * kurtosis),
        _ => (1.0, 0.0),
    };
    (unit * variance).sqrt() * (z + excess / 24.0 * (z.powi(3) - 3.0 * z))
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
            let near =
                nodes.partition_point(|p| *p < y - 6.0 * width)..nodes.partition_point(|p| *p <= y + 6.0 * width);
            let squares = nodes.get(near).unwrap_or_default().iter().map(|p| (-((y - p) / width).powi(2)).exp());
            squares.fold((0.0, 0.0), |(sum, fourth), square| (sum + square, fourth + square * square))
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from a float saturates")]
        let places = (8.0 * (1.0 / width).max(f64::from(steps))).ceil() as u32;
        let found: Vec<(f64, f64)> = (0..=places).map(|i| at(f64::from(i) / f64::from(places))).collect();
        let (variance, fourth) =
            found.iter().copied().fold((0.0, 0.0), |best, one| if one.0 > best.0 { one } else { best });
        let as_noisy = found.iter().map(|(v, _)| (v / variance).powi(2)).sum::<f64>() / found.len() as f64;
        Along { variance, kurtosis: fourth / variance.powi(2), as_noisy, width }
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
    let of_axes = steps_in_widths(basis).into_iter().map(|step| form_on_an_axis(spline, step));
    match spline {
        Spline::Box => of_axes.map(|error| error.powf(1.7)).sum::<f64>().powf(1.0 / 1.7),
        Spline::Linear | Spline::Quadratic => of_axes.map(|error| 1.0 + error).product::<f64>() - 1.0,
    }
}

/// The steps in widths of the kernel that is asked for. Where that is no product over the axes: along the directions in which the variance
/// of the spline and the kernel's are both independent, the roots of the eigenvalues of `D^(1/2) H^-1 D^(1/2)`, `D` the squares of the
/// steps. With `H = S + v D` these follow from those of the kernel `S` that reads the cells.
fn steps_in_widths(basis: &CellBasis) -> Vec<f64> {
    let step = |axis: usize| basis.steps.get(axis).map_or(1.0, |m| 1.0 / f64::from(*m));
    let entry = |(i, row): (usize, &Vec<f64>)| row.iter().enumerate().map(|(j, p)| step(i) * p * step(j)).collect();
    let of_reader = symmetric(basis.precision.iter().enumerate().map(entry).collect()).values;
    let v = basis.spline.variance();
    of_reader.into_iter().map(|square| (square.max(0.0) / (1.0 + v * square.max(0.0))).sqrt()).collect()
}

fn form_on_an_axis(spline: Spline, step: f64) -> f64 {
    let left = 1.0 - spline.variance() * step * step;
    if left <= 0.0 {
        return f64::INFINITY;
    }
    let s = left.sqrt();
    let error = |f: f64, y: f64| {
        let shares: &[(f64, f64)] = match spline {
            Spline::Box => &[(0.0, 1.0)],
            Spline::Linear => &[(0.0, 1.0 - f), (1.0, f)],
            Spline::Quadratic => {
                &[(-1.0, (0.5 - f).powi(2) / 2.0), (0.0, 0.75 - f * f), (1.0, (0.5 + f).powi(2) / 2.0)]
            }
        };
        let read: f64 = shares.iter().map(|(j, w)| w * (-((y - j * step) / s).powi(2) / 2.0).exp() / s).sum();
        (read - (-(y - f * step).powi(2) / 2.0).exp()).abs()
    };
    // Records in the upper half of a cell are mirror images.
    let places = (0..=12).map(|i| f64::from(i) / 24.0);
    let along = |f: f64| (-60..=60).map(move |i| (f, f64::from(i) / 16.0));
    places.flat_map(along).map(|(f, y)| error(f, y)).fold(0.0, f64::max)
}

/// What a standard normal variable exceeds with this probability, at most 1/2 (Abramowitz and Stegun 26.2.23; off by less than 5e-4).
fn upper_quantile(probability: f64) -> f64 {
    let t = (-2.0 * probability.min(0.5).ln()).sqrt();
    t - (2.515_517 + 0.802_853 * t + 0.010_328 * t * t)
        / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t.powi(3))
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
