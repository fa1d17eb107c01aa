//! What noise and approximation to expect of a degree and an order, before there are records. Everything here is public.

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use crate::synopsis::band::Band;
use crate::synopsis::bernstein::{Bases, Operator, nodes};
use crate::synopsis::description::Law;
use crate::synopsis::evaluator::midpoints;
use crate::synopsis::newton::dot;
use crate::synopsis::noise::unit_noise;
use crate::synopsis::posterior::Error;
use crate::target::{Basis, PointKernel, Shape};

/// Draws behind a mean: its standard error is about 2 %, far below what separates two degrees.
const DRAWS: u64 = 64;
const SEED: u64 = 0x7072_6564_6963_7400;

/// Mean sup over the cube of the order-`h` polynomial of noise with scale 1 on the lattice, for each of `orders`, which must
/// ascend.
///
/// A figure to plan with: few draws, looked at on two Chebyshev nodes a degree. The same for the same arguments.
pub fn noise(shape: &Shape, law: Law, orders: &[u32]) -> Vec<f64> {
    if shape.basis != Basis::Bernstein {
        return vec![Band::simulate(shape, law, 1).expected_sup; orders.len()];
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
            *sum += moved.iter().fold(0.0_f64, |sup, value| sup.max(value.abs()));
        }
    }
    sums.into_iter().map(|sum| sum / DRAWS as f64).collect()
}

/// Mean sup over the cube of the error of posterior smoothing, noise and approximation together, where the noise has scale 1 and
/// the function is drawn from the prior: a Gaussian process with the kernel `prior` and the standard deviation `amplitude`, in
/// units of the noise's scale. `None` where [`crate::synopsis::By::Posterior`] does not apply.
///
/// A figure to plan with: few draws, looked at on midpoints, and the noise taken for Gaussian. What `amplitude` stands for must
/// be public.
pub fn smoothed(shape: &Shape, law: Law, prior: &PointKernel, amplitude: f64) -> Option<f64> {
    let error = Error::of(shape, law, prior, amplitude)?;
    let rows: Vec<Vec<f64>> = midpoints(shape.dimensions).iter().map(|y| error.at(y)).collect();
    let sup = |draw: u64| {
        let mut rng = ChaCha12Rng::seed_from_u64(SEED);
        rng.set_stream(draw);
        let coordinates = error.coordinates(&unit_noise(Law::DiscreteGaussian, error.count(), &mut rng));
        rows.iter().map(|n| dot(n, &coordinates).abs()).fold(0.0, f64::max)
    };
    Some((0..DRAWS).map(sup).sum::<f64>() / DRAWS as f64)
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
    let along = |count: u32| -> Vec<f64> { (0..=count).map(|j| f64::from(j) / f64::from(count)).collect() };
    let (points, lattice) = (along(cells), along(degree));
    let at_points = Bases::at(degree, &points);
    let operator = Operator::new(widths.len(), degree);
    let bump = |on: &[f64], place: &[f64]| -> Vec<f64> {
        place.iter().zip(widths).fold(vec![1.0], |product, (d, width)| {
            let axis: Vec<f64> = on.iter().map(|y| (-((y - d) / width).powi(2) / 2.0).exp()).collect();
            product.iter().flat_map(|p| axis.iter().map(move |x| p * x)).collect()
        })
    };
    // The operator is symmetric: half of each axis is enough for the places.
    let half: Vec<f64> = points.iter().copied().filter(|x| *x <= 0.5).collect();
    let places = widths.iter().fold(vec![vec![]], |places: Vec<Vec<f64>>, _| {
        places.iter().flat_map(|p| half.iter().map(move |x| [p.as_slice(), &[*x]].concat())).collect()
    });
    let mut worst = vec![0.0_f64; orders.len()];
    for place in places {
        let exact = bump(&points, &place);
        for (worst, coefficients) in worst.iter_mut().zip(operator.at_orders(&bump(&lattice, &place), orders)) {
            let polynomial = at_points.evaluate(&coefficients, widths.len());
            let errors = polynomial.iter().zip(&exact).map(|(a, b)| (a - b).abs());
            *worst = errors.fold(*worst, f64::max);
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_noise_is_that_of_the_band() {
        for law in [Law::DiscreteLaplace, Law::DiscreteCube] {
            for (dimensions, degree, order) in [(1, 12, 1), (1, 30, 4), (2, 4, 2)] {
                let shape = Shape { dimensions, degree, basis: Basis::Bernstein };
                let few = noise(&shape, law, &[1, order])[usize::from(order > 1)];
                let many = Band::simulate(&shape, law, order).expected_sup;
                assert!((few / many - 1.0).abs() < 0.15, "{law:?} {dimensions} {degree} {order}: {few} {many}");
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
}
