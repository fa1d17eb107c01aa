//! The errors to expect of a degree and an order, before there are records. Everything here is public.

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use crate::band::{Band, largest_magnitude};
use crate::bernstein::{Bases, DenseNodes, Operator};
use crate::by::SynopsisReading;
use crate::description::Description;
use crate::description::NoiseDistribution;
use crate::noise::unit_noise;
use crate::released::Synopsis;
use crate::rough::{KernelSum, WorstCaseFunctions};
use crate::tensor::{even_coordinates, grid_points, outer_product};
use crate::whitened::Points;
use crate::{Basis, Shape};

/// Draws behind a mean: its standard error is about 2 %, far below what separates two degrees.
const DRAWS: u64 = 64;
const SEED: u64 = 0x7072_6564_6963_7400;

/// Mean sup over the cube of the order-`h` polynomial of noise with scale 1 on the lattice, for each of `orders`, which must
/// ascend; of every other form, the same for each. Of the nearest points it is [`Band::of_released_values`]'s.
///
/// A figure to plan with: few draws, looked at on two Chebyshev nodes a degree. The same for the same arguments.
pub fn mean_noise_sups(shape: &Shape, law: NoiseDistribution, orders: &[u32]) -> Vec<f64> {
    if shape.basis != Basis::Bernstein {
        return vec![Band::expected_sup_of_few(shape, law, DRAWS as u32); orders.len()];
    }
    let operator = Operator::new(shape.dimensions, shape.degree);
    let at_nodes = Bases::at(shape.degree, &DenseNodes::new(shape.degree, 2).points);
    let mut sums = vec![0.0; orders.len()];
    for draw in 0..DRAWS {
        let values = unit_noise(law, shape.value_count(), &mut draw_generator(draw));
        for (sum, coefficients) in sums
            .iter_mut()
            .zip(operator.coefficients_of_orders(&values, orders))
        {
            let moved = at_nodes.evaluate_tensor(&coefficients, shape.dimensions);
            *sum += largest_magnitude(&moved);
        }
    }
    sums.into_iter().map(|sum| sum / DRAWS as f64).collect()
}

/// Distance of the order-`h` polynomial of a Gaussian bump from the bump, in units of its peak, for each of `orders`, which
/// must ascend: the largest over a grid of places of the bump and of points. `widths` are its standard deviations in the
/// unit cube.
///
/// A figure to plan with: a bump between the places can be slightly worse.
pub fn bump_errors(widths: &[f64], degree: u32, orders: &[u32]) -> Vec<f64> {
    let narrowest = widths.iter().fold(1.0_f64, |a, b| a.min(*b));
    let cells = match widths.len() {
        1 => ((8.0 / narrowest).ceil().clamp(16.0, 200.0)) as u32,
        2 => 20,
        _ => 4,
    };
    let points = even_coordinates(cells);
    let lattice = even_coordinates(degree);
    let at_points = Bases::at(degree, &points);
    let operator = Operator::new(widths.len(), degree);
    // The operator is symmetric: half of each axis is enough for the places.
    let half: Vec<f64> = points.iter().copied().filter(|x| *x <= 0.5).collect();
    let mut worst = vec![0.0_f64; orders.len()];
    for place in grid_points(&vec![half; widths.len()]) {
        let exact = gaussian_bump(&points, &place, widths);
        let values = gaussian_bump(&lattice, &place, widths);
        let forms = operator.coefficients_of_orders(&values, orders);
        for (worst, coefficients) in worst.iter_mut().zip(forms) {
            let polynomial = at_points.evaluate_tensor(&coefficients, widths.len());
            *worst = worst.max(largest_magnitude(&differences(&polynomial, &exact)));
        }
    }
    worst
}

/// Values of a Gaussian bump around `place`, on the grid with these coordinates on every axis.
fn gaussian_bump(coordinates: &[f64], place: &[f64], widths: &[f64]) -> Vec<f64> {
    let mut factors = Vec::with_capacity(widths.len());
    for (center, width) in place.iter().zip(widths) {
        factors.push(
            coordinates
                .iter()
                .map(|y| (-((y - center) / width).powi(2) / 2.0).exp())
                .collect(),
        );
    }
    outer_product(&factors)
}

fn differences(found: &[f64], exact: &[f64]) -> Vec<f64> {
    found.iter().zip(exact).map(|(a, b)| a - b).collect()
}

/// Errors to expect of a release: each the largest over the domain, in the units of the scale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExpectedErrors {
    /// Mean error by the noise alone.
    pub noise: f64,
    /// Error by what the form cannot follow of the function, alone: the mean over those of the functions that it follows least.
    pub approximation: f64,
    /// Mean error by both, over the same functions.
    pub error: f64,
    /// Error that both together stay within in 19 of 20 windows, over the same functions.
    pub within: f64,
    /// Mean error by both, over all functions that are less rough ([`WorstCaseFunctions::less_rough`]).
    pub spread: f64,
}

/// Predicts the errors of noise with this scale on a lattice, at each of `orders`, which must ascend, where the function is as
/// [`WorstCaseFunctions`] as is assumed.
///
/// A figure to plan with: few draws, looked at on a grid. The same for the same arguments.
pub fn lattice_errors(
    shape: &Shape,
    law: NoiseDistribution,
    scale: f64,
    orders: &[u32],
    rough: &WorstCaseFunctions,
) -> Vec<ExpectedErrors> {
    let along = axis_coordinates(rough, 2 * shape.degree);
    let points = grid_points(&vec![along.clone(); rough.axes]);
    let lattice = grid_points(&vec![even_coordinates(shape.degree); shape.dimensions]);
    let operator = Operator::new(shape.dimensions, shape.degree);
    let at_points = Bases::at(shape.degree, &along);
    let mut worst = vec![WorstBiases::default(); orders.len()];
    for function in rough.draw_functions(&points) {
        let exact = function.on(&points);
        let forms = operator.coefficients_of_orders(&function.on(&lattice), orders);
        for (worst, form) in worst.iter_mut().zip(forms) {
            let polynomial = at_points.evaluate_tensor(&form, shape.dimensions);
            worst.add(differences(&polynomial, &exact));
        }
    }
    let mut errors = vec![DrawnErrors::default(); orders.len()];
    let spread = rough.less_rough();
    for (draw, function) in (0..DRAWS).zip(spread.draw_functions(&points)) {
        let mut noise = unit_noise(law, shape.value_count(), &mut draw_generator(draw));
        noise.iter_mut().for_each(|z| *z *= scale);
        let exact = function.on(&points);
        let noises = operator.coefficients_of_orders(&noise, orders);
        let forms = operator.coefficients_of_orders(&function.on(&lattice), orders);
        for (index, errors) in errors.iter_mut().enumerate() {
            let noise = at_points.evaluate_tensor(&noises[index], shape.dimensions);
            let polynomial = at_points.evaluate_tensor(&forms[index], shape.dimensions);
            let bias = differences(&polynomial, &exact);
            errors.add(&noise, worst[index].for_draw(draw), &bias);
        }
    }
    summarized(&errors, &worst)
}

/// Predicts the errors of noise with this scale on the whitened coordinates of each of `counts`, which must ascend, of `points`.
pub fn point_errors(
    points: &Points,
    law: NoiseDistribution,
    scale: f64,
    counts: &[usize],
    rough: &WorstCaseFunctions,
) -> Vec<ExpectedErrors> {
    let grid = places(rough, 0);
    // Newton's functions, each at every place.
    let mut newton = vec![Vec::with_capacity(grid.len()); points.count()];
    for place in &grid {
        for (values, value) in newton.iter_mut().zip(points.coordinates(place)) {
            values.push(value);
        }
    }
    let mut worst = vec![WorstBiases::default(); counts.len()];
    for function in rough.draw_functions(&grid) {
        let biases = biases_of_counts(&function, points, &newton, &grid, counts);
        for (worst, bias) in worst.iter_mut().zip(biases) {
            worst.add(bias);
        }
    }
    let mut errors = vec![DrawnErrors::default(); counts.len()];
    let spread = rough.less_rough();
    for (draw, function) in (0..DRAWS).zip(spread.draw_functions(&grid)) {
        let mut rng = draw_generator(draw);
        let biases = biases_of_counts(&function, points, &newton, &grid, counts);
        for (index, bias) in biases.iter().enumerate() {
            let mut noise = vec![0.0; grid.len()];
            let drawn = unit_noise(law, counts[index], &mut rng);
            for (z, values) in drawn.iter().zip(&newton) {
                add_scaled(&mut noise, scale * z, values);
            }
            errors[index].add(&noise, worst[index].for_draw(draw), bias);
        }
    }
    summarized(&errors, &worst)
}

/// Differences on the grid between a function and its interpolation on the first points, for each number of them.
fn biases_of_counts(
    function: &KernelSum,
    points: &Points,
    newton: &[Vec<f64>],
    grid: &[Vec<f64>],
    counts: &[usize],
) -> Vec<Vec<f64>> {
    let coordinates = points.whiten(&function.on(&points.basis().points));
    let mut bias: Vec<f64> = function.on(grid).iter().map(|value| -value).collect();
    let mut done = 0;
    let mut biases = Vec::with_capacity(counts.len());
    for count in counts {
        for (coordinate, values) in coordinates.iter().zip(newton).take(*count).skip(done) {
            add_scaled(&mut bias, *coordinate, values);
        }
        done = *count;
        biases.push(bias.clone());
    }
    biases
}

fn add_scaled(sums: &mut [f64], factor: f64, values: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += factor * value;
    }
}

/// Predicts the errors of two readings of one release: as published, and smoothed by its posterior. Each is the mean of the largest
/// error over the domain where the function is as [`WorstCaseFunctions`] as is assumed. `publish` is that of the target
/// (`Target::publish`). `None` where there is no posterior, or too many values.
pub fn reading_errors(
    description: &Description,
    rough: &WorstCaseFunctions,
    publish: impl Fn(Vec<f64>) -> Vec<f64>,
) -> Option<[f64; 2]> {
    /// A posterior takes its time.
    const FEW: u64 = 16;
    const MOST_VALUES: usize = 450;
    let shape = description.shape();
    let points = match &shape.basis {
        Basis::Kernel(basis) => Some(Points::from_basis(basis)),
        Basis::Bernstein => None,
        Basis::Affine
        | Basis::Cells(_)
        | Basis::Tables(_)
        | Basis::Cosine { .. }
        | Basis::Keys(_) => return None,
    };
    if shape.value_count() > MOST_VALUES {
        return None;
    }
    let grid = places(rough, 2 * shape.degree);
    let lattice = grid_points(&vec![even_coordinates(shape.degree); shape.dimensions]);
    let functions = rough.draw_functions(&grid);
    let mut means = [0.0; 2];
    for (draw, function) in (0..FEW).zip(&functions) {
        let mut rng = draw_generator(draw);
        let exact = match &points {
            Some(points) => points.whiten(&function.on(&points.basis().points)),
            None => function.on(&lattice),
        };
        let noise = unit_noise(description.noise.law, exact.len(), &mut rng);
        let mut noisy = exact;
        for (value, noise) in noisy.iter_mut().zip(noise) {
            *value += description.noise.scale * noise;
        }
        let synopsis = Synopsis::new(description.clone(), publish(noisy)).ok()?;
        let published = SynopsisReading::Bernstein(description.order);
        for (mean, by) in means
            .iter_mut()
            .zip([published, SynopsisReading::Posterior])
        {
            let evaluator = synopsis.evaluator(by).ok()?;
            let errors: Vec<f64> = grid
                .iter()
                .map(|place| {
                    evaluator.value_in_cube(place) - description.offset - function.at(place)
                })
                .collect();
            *mean += largest_magnitude(&errors) / FEW as f64;
        }
    }
    Some(means)
}

/// Differences between a function and its form at every place, and the largest of them.
#[derive(Clone, Debug)]
struct FormBias {
    largest: f64,
    differences: Vec<f64>,
}

/// Biases of the functions that a form follows least.
#[derive(Clone, Debug, Default)]
struct WorstBiases(Vec<FormBias>);

impl WorstBiases {
    /// An eighth of the functions.
    const MOST: usize = 8;

    fn add(&mut self, differences: Vec<f64>) {
        let bias = FormBias {
            largest: largest_magnitude(&differences),
            differences,
        };
        if self.0.len() < Self::MOST {
            self.0.push(bias);
        } else if let Some(least) = self
            .0
            .iter_mut()
            .min_by(|a, b| a.largest.total_cmp(&b.largest))
            && least.largest < bias.largest
        {
            *least = bias;
        }
    }

    /// Every draw of noise meets one of them.
    fn for_draw(&self, draw: u64) -> &[f64] {
        match self.0.get(draw as usize % self.0.len().max(1)) {
            Some(bias) => &bias.differences,
            None => &[],
        }
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|bias| bias.largest).sum::<f64>() / self.0.len().max(1) as f64
    }
}

/// The largest errors of draws of noise.
#[derive(Clone, Debug, Default)]
struct DrawnErrors {
    noise: Vec<f64>,
    error: Vec<f64>,
    spread: Vec<f64>,
}

impl DrawnErrors {
    /// One draw of noise, which meets a function that the form follows least and one that is less rough.
    fn add(&mut self, noise: &[f64], worst: &[f64], spread: &[f64]) {
        self.noise.push(largest_magnitude(noise));
        self.error.push(largest_sum(noise, worst));
        self.spread.push(largest_sum(noise, spread));
    }

    fn expected(&self, worst: &WorstBiases) -> ExpectedErrors {
        ExpectedErrors {
            noise: mean(&self.noise),
            approximation: worst.mean(),
            error: mean(&self.error),
            // The largest of 64: few draws tell a quantile, so it is not the smallest that would do.
            within: largest_magnitude(&self.error),
            spread: mean(&self.spread),
        }
    }
}

fn summarized(errors: &[DrawnErrors], worst: &[WorstBiases]) -> Vec<ExpectedErrors> {
    errors
        .iter()
        .zip(worst)
        .map(|(errors, worst)| errors.expected(worst))
        .collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

fn largest_sum(noise: &[f64], bias: &[f64]) -> f64 {
    let sums = noise.iter().zip(bias).map(|(noise, bias)| noise + bias);
    sums.fold(0.0, |largest, sum| largest.max(sum.abs()))
}

/// Coordinates of the places on every axis: at least so many cells, and four to the narrowest width where that is not too many.
fn axis_coordinates(rough: &WorstCaseFunctions, cells: u32) -> Vec<f64> {
    let most = [600, 96, 24][rough.axes.clamp(1, 3) - 1];
    // A cast from a float saturates.
    let narrow = (4.0 / rough.narrowest_width()).ceil() as u32;
    even_coordinates(cells.max(narrow).clamp(16, most))
}

fn places(rough: &WorstCaseFunctions, cells: u32) -> Vec<Vec<f64>> {
    grid_points(&vec![axis_coordinates(rough, cells); rough.axes])
}

fn draw_generator(draw: u64) -> ChaCha12Rng {
    let mut rng = ChaCha12Rng::seed_from_u64(SEED);
    rng.set_stream(draw);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PointKernel;
    use crate::machine::CubeKernel;
    use crate::rough::WorstCaseKind;

    #[test]
    fn the_mean_noise_is_that_of_the_band() {
        for law in [
            NoiseDistribution::DiscreteLaplace,
            NoiseDistribution::DiscreteCube,
        ] {
            for (dimensions, degree, order) in [(1, 12, 1), (1, 30, 4), (2, 4, 2)] {
                let shape = Shape {
                    dimensions,
                    degree,
                    basis: Basis::Bernstein,
                };
                let few = mean_noise_sups(&shape, law, &[1, order])[usize::from(order > 1)];
                let many = Band::simulate(&shape, law, order).expected_sup;
                assert!(
                    (few / many - 1.0).abs() < 0.15,
                    "{law:?} {dimensions} {degree} {order}: {few} {many}"
                );
            }
        }
    }

    #[test]
    fn the_approximation_error_is_that_of_the_operator() {
        // Degree 1, order 1 is the straight line between the ends: a wide bump in the middle is missed by
        // 1 - exp(-1/8 b^2) at its peak.
        let expected = 1.0 - (-0.125_f64 / 0.25).exp();
        assert!((bump_errors(&[0.5], 1, &[1])[0] - expected).abs() < 1e-12);
        // Higher degrees and orders follow more closely, in every dimension.
        for widths in [&[0.2][..], &[0.2, 0.3], &[0.3, 0.3, 0.3]] {
            let low = bump_errors(widths, 8, &[1, 3]);
            let high = bump_errors(widths, 16, &[1]);
            assert!(high[0] < low[0] && low[1] < low[0], "{low:?} {high:?}");
        }
    }

    #[test]
    fn several_orders_are_each_what_they_are_alone() {
        let together = bump_errors(&[0.1], 20, &[1, 2, 5, 9]);
        for (order, worst) in [1, 2, 5, 9].into_iter().zip(together) {
            assert_eq!(bump_errors(&[0.1], 20, &[order]), [worst]);
        }
    }

    /// A kernel machine on the plane with so many eigenfunctions. Points are as good
    /// within a few per cent.
    #[test]
    fn the_noise_on_kernel_points_is_nearly_that_of_eigenfunctions() {
        for (bandwidth, count, expected) in [(1.0, 8, 4.1), (0.3, 32, 12.0), (0.1, 141, 34.0)] {
            let kernel = PointKernel::Machine(CubeKernel::Gaussian { bandwidth });
            let points = Points::choose_greedily(kernel, 2, count).unwrap();
            let rough = WorstCaseFunctions {
                kernel: points.basis().kernel.clone(),
                axes: 2,
                is: WorstCaseKind::Heap(1.0),
            };
            let found = point_errors(
                &points,
                NoiseDistribution::Ball,
                1.0,
                &[count / 2, count],
                &rough,
            );
            println!("{bandwidth}: {found:?}");
            assert!(
                (found[1].noise / expected - 1.0).abs() < 0.25,
                "{bandwidth}: {found:?}"
            );
            assert!(
                found[0].noise < found[1].noise && found[0].approximation > found[1].approximation
            );
        }
    }
}
