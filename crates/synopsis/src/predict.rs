//! The errors to expect of a degree and an order, before there are records. Everything here is public.

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use crate::band::Band;
use crate::bernstein::{Bases, Operator, nodes};
use crate::by::By;
use crate::description::Description;
use crate::description::NoiseDistribution;
use crate::noise::unit_noise;
use crate::released::Synopsis;
use crate::rough::WorstCaseFunctions;
use crate::whitened::Points;
use crate::{Basis, Shape};

/// Draws behind a mean: its standard error is about 2 %, far below what separates two degrees.
const DRAWS: u64 = 64;
const SEED: u64 = 0x7072_6564_6963_7400;

/// Mean sup over the cube of the order-`h` polynomial of noise with scale 1 on the lattice, for each of `orders`, which must
/// ascend; of every other form, the same for each. Of the nearest points it is [`Band::of_each`]'s.
///
/// A figure to plan with: few draws, looked at on two Chebyshev nodes a degree. The same for the same arguments.
pub fn noise(shape: &Shape, law: NoiseDistribution, orders: &[u32]) -> Vec<f64> {
    if shape.basis != Basis::Bernstein {
        return vec![Band::expect(shape, law, DRAWS as u32); orders.len()];
    }
    let operator = Operator::new(shape.dimensions, shape.degree);
    let at_nodes = Bases::at(shape.degree, &nodes(shape.degree, 2).0);
    let mut sums = vec![0.0; orders.len()];
    for draw in 0..DRAWS {
        let mut rng = ChaCha12Rng::seed_from_u64(SEED);
        rng.set_stream(draw);
        let values = unit_noise(law, shape.values(), &mut rng);
        for (sum, coefficients) in sums.iter_mut().zip(operator.at_orders(&values, orders)) {
            let moved = at_nodes.evaluate(&coefficients, shape.dimensions);
            *sum += moved
                .iter()
                .fold(0.0_f64, |sup, value| sup.max(value.abs()));
        }
    }
    sums.into_iter().map(|sum| sum / DRAWS as f64).collect()
}

/// How far the order-`h` polynomial of a Gaussian bump is from the bump, in units of its peak, for each of `orders`, which
/// must ascend: the largest over a grid of places of the bump and of points. `widths` are its standard deviations in the
/// unit cube.
///
/// A figure to plan with: a bump between the places can be slightly worse.
pub fn approximation(widths: &[f64], degree: u32, orders: &[u32]) -> Vec<f64> {
    let narrowest = widths.iter().fold(1.0_f64, |a, b| a.min(*b));
    let cells = match widths.len() {
        1 => ((8.0 / narrowest).ceil().clamp(16.0, 200.0)) as u32,
        2 => 20,
        _ => 4,
    };
    let along = |count: u32| -> Vec<f64> {
        (0..=count)
            .map(|j| f64::from(j) / f64::from(count))
            .collect()
    };
    let points = along(cells);
    let lattice = along(degree);
    let at_points = Bases::at(degree, &points);
    let operator = Operator::new(widths.len(), degree);
    let bump = |on: &[f64], place: &[f64]| -> Vec<f64> {
        place
            .iter()
            .zip(widths)
            .fold(vec![1.0], |product, (d, width)| {
                let axis: Vec<f64> = on
                    .iter()
                    .map(|y| (-((y - d) / width).powi(2) / 2.0).exp())
                    .collect();
                product
                    .iter()
                    .flat_map(|p| axis.iter().map(move |x| p * x))
                    .collect()
            })
    };
    // The operator is symmetric: half of each axis is enough for the places.
    let half: Vec<f64> = points.iter().copied().filter(|x| *x <= 0.5).collect();
    let places = widths
        .iter()
        .fold(vec![vec![]], |places: Vec<Vec<f64>>, _| {
            places
                .iter()
                .flat_map(|p| half.iter().map(move |x| [p.as_slice(), &[*x]].concat()))
                .collect()
        });
    let mut worst = vec![0.0_f64; orders.len()];
    for place in places {
        let exact = bump(&points, &place);
        for (worst, coefficients) in worst
            .iter_mut()
            .zip(operator.at_orders(&bump(&lattice, &place), orders))
        {
            let polynomial = at_points.evaluate(&coefficients, widths.len());
            let errors = polynomial.iter().zip(&exact).map(|(a, b)| (a - b).abs());
            *worst = errors.fold(*worst, f64::max);
        }
    }
    worst
}

/// The errors to expect of a release: each of the largest over the domain, in the units of the scale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// The mean by the noise alone.
    pub noise: f64,
    /// By what the form cannot follow of the function, alone: the mean over those of the functions that it follows least.
    pub approximation: f64,
    /// The mean by both, over the same functions.
    pub error: f64,
    /// What both together stay within in 19 of 20 windows, over the same functions.
    pub within: f64,
    /// The mean by both, over all functions that are less rough ([`WorstCaseFunctions::spread`]).
    pub spread: f64,
}

/// What to expect of noise with this scale on a lattice, at each of `orders`, which must ascend, where the function is as
/// [`WorstCaseFunctions`] as is assumed.
///
/// A figure to plan with: few draws, looked at on a grid. The same for the same arguments.
pub fn on_lattice(
    shape: &Shape,
    law: NoiseDistribution,
    scale: f64,
    orders: &[u32],
    rough: &WorstCaseFunctions,
) -> Vec<Expected> {
    let grid = Grid::new(rough, 2 * shape.degree);
    let (points, lattice) = (
        grid.points(),
        Grid {
            axes: shape.dimensions,
            along: places(shape.degree),
        }
        .points(),
    );
    let operator = Operator::new(shape.dimensions, shape.degree);
    let at_points = Bases::at(shape.degree, &grid.along);
    let evaluate = |coefficients: Vec<f64>| at_points.evaluate(&coefficients, shape.dimensions);
    let mut worst = vec![Worst::default(); orders.len()];
    for function in rough.functions(&points) {
        let exact = function.on(&points);
        for (worst, coefficients) in worst
            .iter_mut()
            .zip(operator.at_orders(&function.on(&lattice), orders))
        {
            worst.add(
                evaluate(coefficients)
                    .iter()
                    .zip(&exact)
                    .map(|(a, b)| a - b)
                    .collect(),
            );
        }
    }
    let mut sups = vec![Sups::default(); orders.len()];
    let spread = rough.spread();
    for (draw, function) in (0..DRAWS).zip(spread.functions(&points)) {
        let noise: Vec<f64> = unit_noise(law, shape.values(), &mut stream(draw))
            .iter()
            .map(|z| scale * z)
            .collect();
        let exact = function.on(&points);
        let noises = operator.at_orders(&noise, orders);
        let forms = operator.at_orders(&function.on(&lattice), orders);
        for (((sups, worst), noise), form) in sups.iter_mut().zip(&worst).zip(noises).zip(forms) {
            let off: Vec<f64> = evaluate(form)
                .iter()
                .zip(&exact)
                .map(|(a, b)| a - b)
                .collect();
            sups.add(&evaluate(noise), worst.for_draw(draw), &off);
        }
    }
    sups.iter()
        .zip(&worst)
        .map(|(sups, worst)| sups.expected(worst))
        .collect()
}

/// What to expect of noise with this scale on the whitened coordinates of each of `counts`, which must ascend, of `points`.
pub fn on_points(
    points: &Points,
    law: NoiseDistribution,
    scale: f64,
    counts: &[usize],
    rough: &WorstCaseFunctions,
) -> Vec<Expected> {
    let grid = Grid::new(rough, 0).points();
    // Newton's functions, each at every place.
    let mut newton = vec![vec![0.0; grid.len()]; points.count()];
    for (at, y) in grid.iter().enumerate() {
        newton
            .iter_mut()
            .zip(points.coordinates(y))
            .for_each(|(values, value)| values[at] = value);
    }
    let add = |sum: &mut Vec<f64>, coordinate: f64, values: &[f64]| {
        sum.iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum += coordinate * value);
    };
    let mut worst = vec![Worst::default(); counts.len()];
    for function in rough.functions(&grid) {
        let coordinates = points.whiten(&function.on(&points.basis().points));
        let mut bias: Vec<f64> = function.on(&grid).iter().map(|f| -f).collect();
        let mut done: usize = 0;
        for (worst, count) in worst.iter_mut().zip(counts) {
            let next = coordinates.iter().zip(&newton).take(*count).skip(done);
            next.for_each(|(coordinate, values)| add(&mut bias, *coordinate, values));
            done = *count;
            worst.add(bias.clone());
        }
    }
    let mut sups = vec![Sups::default(); counts.len()];
    let spread = rough.spread();
    for (draw, function) in (0..DRAWS).zip(spread.functions(&grid)) {
        let mut rng = stream(draw);
        let coordinates = points.whiten(&function.on(&points.basis().points));
        let mut bias: Vec<f64> = function.on(&grid).iter().map(|f| -f).collect();
        let mut done: usize = 0;
        for ((sups, worst), count) in sups.iter_mut().zip(&worst).zip(counts) {
            let mut noise = vec![0.0; grid.len()];
            let drawn = unit_noise(law, *count, &mut rng);
            drawn
                .iter()
                .zip(&newton)
                .for_each(|(z, values)| add(&mut noise, scale * z, values));
            let next = coordinates.iter().zip(&newton).take(*count).skip(done);
            next.for_each(|(coordinate, values)| add(&mut bias, *coordinate, values));
            done = *count;
            sups.add(&noise, worst.for_draw(draw), &bias);
        }
    }
    sups.iter()
        .zip(&worst)
        .map(|(sups, worst)| sups.expected(worst))
        .collect()
}

/// What to expect of two readings of one release: as published, and smoothed by its posterior. Each is the mean of the largest
/// error over the domain where the function is as [`WorstCaseFunctions`] as is assumed. `publish` is that of the target
/// (`Target::publish`). `None` where there is no posterior, or too many values.
pub fn readings(
    about: &Description,
    rough: &WorstCaseFunctions,
    publish: impl Fn(Vec<f64>) -> Vec<f64>,
) -> Option<[f64; 2]> {
    /// A posterior takes its time.
    const FEW: u64 = 16;
    const MOST_VALUES: usize = 450;
    let shape = about.shape();
    let points = match &shape.basis {
        Basis::Kernel(basis) => Some(Points::again(basis)),
        Basis::Bernstein => None,
        Basis::Affine | Basis::Cells(_) | Basis::Tables(_) | Basis::Cosine { .. } => return None,
    };
    if shape.values() > MOST_VALUES {
        return None;
    }
    let grid = Grid::new(rough, 2 * shape.degree).points();
    let lattice = Grid {
        axes: shape.dimensions,
        along: places(shape.degree),
    }
    .points();
    let functions = rough.functions(&grid);
    let mut means = [0.0; 2];
    for (draw, function) in (0..FEW).zip(&functions) {
        let mut rng = stream(draw);
        let exact = match &points {
            Some(points) => points.whiten(&function.on(&points.basis().points)),
            None => function.on(&lattice),
        };
        let noise = unit_noise(about.noise.law, exact.len(), &mut rng);
        let noisy = exact
            .iter()
            .zip(noise)
            .map(|(f, z)| f + about.noise.scale * z)
            .collect();
        let synopsis = Synopsis::new(about.clone(), publish(noisy)).ok()?;
        for (mean, by) in means
            .iter_mut()
            .zip([By::Bernstein(about.order), By::Posterior])
        {
            let evaluator = synopsis.evaluator(by).ok()?;
            let off = |y: &Vec<f64>| (evaluator.at(y) - about.offset - function.at(y)).abs();
            *mean += grid.iter().map(off).fold(0.0, f64::max) / FEW as f64;
        }
    }
    Some(means)
}

/// What a form makes of the functions that it follows least: the differences at every place.
#[derive(Clone, Debug, Default)]
struct Worst(Vec<(f64, Vec<f64>)>);

impl Worst {
    /// An eighth of the functions.
    const KEPT: usize = 8;

    fn add(&mut self, bias: Vec<f64>) {
        let off = sup(bias.iter().copied());
        if self.0.len() < Self::KEPT {
            self.0.push((off, bias));
        } else if let Some(least) = self.0.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0))
            && least.0 < off
        {
            *least = (off, bias);
        }
    }

    /// Every draw of noise meets one of them.
    fn for_draw(&self, draw: u64) -> &[f64] {
        self.0
            .get(draw as usize % self.0.len().max(1))
            .map_or(&[], |(_, bias)| bias)
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|(off, _)| off).sum::<f64>() / self.0.len().max(1) as f64
    }
}

/// The largest errors of draws of noise.
#[derive(Clone, Debug, Default)]
struct Sups {
    noise: Vec<f64>,
    error: Vec<f64>,
    spread: Vec<f64>,
}

impl Sups {
    /// One draw of noise, which meets a function that the form follows least and one that is less rough.
    fn add(&mut self, noise: &[f64], worst: &[f64], spread: &[f64]) {
        let with = |off: &[f64]| sup(noise.iter().zip(off).map(|(z, off)| z + off));
        self.noise.push(sup(noise.iter().copied()));
        self.error.push(with(worst));
        self.spread.push(with(spread));
    }

    fn expected(&self, worst: &Worst) -> Expected {
        let mean = |sups: &[f64]| sups.iter().sum::<f64>() / sups.len().max(1) as f64;
        // The largest of 64: few draws tell a quantile, so it is not the smallest that would do.
        let within = sup(self.error.iter().copied());
        let [noise, error, spread] =
            [&self.noise, &self.error, &self.spread].map(|sups| mean(sups));
        Expected {
            noise,
            approximation: worst.mean(),
            error,
            within,
            spread,
        }
    }
}

fn sup(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sup, x| sup.max(x.abs()))
}

/// The same points on every axis.
struct Grid {
    axes: usize,
    along: Vec<f64>,
}

impl Grid {
    /// At least so many cells an axis, and four to the narrowest width where that is not too many.
    fn new(rough: &WorstCaseFunctions, cells: u32) -> Self {
        let most = [600, 96, 24][rough.axes.clamp(1, 3) - 1];
        // A cast from a float saturates.
        let cells = cells
            .max((4.0 / rough.narrowest()).ceil() as u32)
            .clamp(16, most);
        Grid {
            axes: rough.axes,
            along: places(cells),
        }
    }

    fn points(&self) -> Vec<Vec<f64>> {
        (0..self.axes).fold(vec![vec![]], |points: Vec<Vec<f64>>, _| {
            points
                .iter()
                .flat_map(|p| {
                    self.along
                        .iter()
                        .map(move |y| [p.as_slice(), &[*y]].concat())
                })
                .collect()
        })
    }
}

fn places(cells: u32) -> Vec<f64> {
    (0..=cells)
        .map(|j| f64::from(j) / f64::from(cells))
        .collect()
}

fn stream(draw: u64) -> ChaCha12Rng {
    let mut rng = ChaCha12Rng::seed_from_u64(SEED);
    rng.set_stream(draw);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PointKernel;
    use crate::machine::Kernel;
    use crate::rough::Kind;

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
                let few = noise(&shape, law, &[1, order])[usize::from(order > 1)];
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
        assert!((approximation(&[0.5], 1, &[1])[0] - expected).abs() < 1e-12);
        // Higher degrees and orders follow more closely, in every dimension.
        for widths in [&[0.2][..], &[0.2, 0.3], &[0.3, 0.3, 0.3]] {
            let low = approximation(widths, 8, &[1, 3]);
            let high = approximation(widths, 16, &[1]);
            assert!(high[0] < low[0] && low[1] < low[0], "{low:?} {high:?}");
        }
    }

    #[test]
    fn several_orders_are_each_what_they_are_alone() {
        let together = approximation(&[0.1], 20, &[1, 2, 5, 9]);
        for (order, worst) in [1, 2, 5, 9].into_iter().zip(together) {
            assert_eq!(approximation(&[0.1], 20, &[order]), [worst]);
        }
    }

    /// A kernel machine on the plane with so many eigenfunctions. Points are as good
    /// within a few per cent.
    #[test]
    fn the_noise_on_kernel_points_is_nearly_that_of_eigenfunctions() {
        for (bandwidth, count, expected) in [(1.0, 8, 4.1), (0.3, 32, 12.0), (0.1, 141, 34.0)] {
            let kernel = PointKernel::Machine(Kernel::Gaussian { bandwidth });
            let points = Points::choose(kernel, 2, count).unwrap();
            let rough = WorstCaseFunctions {
                kernel: points.basis().kernel.clone(),
                axes: 2,
                is: Kind::Heap(1.0),
            };
            let found = on_points(
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
