use super::lattice::LatticeBandPlan;
use super::sup::{MAX_DRAWS, MIN_DRAWS};
use super::*;
use crate::bernstein::{Bases, Operator};
use crate::cell_kernel::CellKernel;
use crate::cholesky::dot_product;
use crate::histogram::Spline;
use crate::newton::Newton;
use crate::noise::laplace_sample;
use crate::{CellBasis, KernelBasis, PointKernel, machine};

const LAPLACE: NoiseDistribution = NoiseDistribution::DiscreteLaplace;

fn simulate(dimensions: usize, degree: u32, law: NoiseDistribution, order: u32) -> Band {
    Band::simulate(
        &Shape {
            dimensions,
            degree,
            basis: Basis::Bernstein,
        },
        law,
        order,
    )
}

#[test]
fn the_band_of_an_affine_function_is_the_quantile_of_its_noise_at_a_corner() {
    let mut rng = ChaCha12Rng::seed_from_u64(7);
    for dimensions in 1..=3 {
        let band = Band::simulate(
            &Shape {
                dimensions,
                degree: 1,
                basis: Basis::Affine,
            },
            LAPLACE,
            1,
        );
        let corner = |rng: &mut ChaCha12Rng| {
            (0..=dimensions)
                .map(|_| laplace_sample(rng).abs())
                .sum::<f64>()
        };
        let outside = (0..40_000)
            .filter(|_| corner(&mut rng) > band.half_width)
            .count();
        // Four deviations of a count of 2,000.
        assert!(outside.abs_diff(2_000) < 175, "{dimensions}: {outside}");
    }
}

/// How often fresh noise of scale `factor` stays within the band at every point of a grid finer than the nodes.
fn coverage(
    (dimensions, degree, law, order): (usize, u32, NoiseDistribution, u32),
    factor: f64,
    draws: u32,
) -> f64 {
    let band = simulate(dimensions, degree, law, order);
    let noise = NoiseDescription {
        law,
        scale: 1.0,
        grid: 1e-12,
        calibrated: Default::default(),
    };
    let band = band.scaled_to_noise(&noise);
    let steps: u32 = if dimensions == 1 { 2_000 } else { 90 };
    let grid: Vec<f64> = (0..=steps)
        .map(|i| f64::from(i) / f64::from(steps))
        .collect();
    let operator = Operator::new(dimensions, degree);
    let at_grid = Bases::at(degree, &grid);
    let points = (0..dimensions).fold(vec![vec![]], |points: Vec<Vec<f64>>, _| {
        points
            .into_iter()
            .flat_map(|p| grid.iter().map(move |y| [p.clone(), vec![*y]].concat()))
            .collect()
    });
    let widths: Vec<f64> = points
        .iter()
        .map(|point| band.half_width_at(point))
        .collect();
    let mut rng = ChaCha12Rng::seed_from_u64(12);
    let lattice: usize = (0..dimensions).map(|_| degree as usize + 1).product();
    let covered = (0..draws).filter(|_| {
        let noise: Vec<f64> = unit_noise(law, lattice, &mut rng)
            .iter()
            .map(|z| factor * z)
            .collect();
        let moved = at_grid.evaluate_tensor(&operator.coefficients(&noise, order), dimensions);
        moved
            .iter()
            .zip(&widths)
            .all(|(noise, width)| noise.abs() <= *width)
    });
    covered.count() as f64 / f64::from(draws)
}

#[test]
fn the_band_covers_fresh_noise_everywhere_at_once() {
    let cube = NoiseDistribution::DiscreteCube;
    let cases = [
        ((1, 20, LAPLACE, 1), 4_000),
        ((1, 40, LAPLACE, 3), 4_000),
        ((2, 6, LAPLACE, 2), 2_000),
    ];
    let of_cubes = [
        ((1, 20, cube, 1), 4_000),
        ((1, 40, cube, 3), 4_000),
        ((2, 6, cube, 2), 2_000),
    ];
    for (case, draws) in cases.into_iter().chain(of_cubes) {
        let covered = coverage(case, 1.0, draws);
        // At the true level of at least 0.95, three deviations of the count are 0.01 (4,000) and 0.015 (2,000).
        assert!(covered > 0.945 && covered < 0.985, "{case:?}: {covered}");
    }
}

#[test]
fn a_scale_wrong_by_30_percent_is_noticed() {
    assert!(coverage((1, 20, LAPLACE, 1), 1.3, 2_000) < 0.9);
    assert!(coverage((1, 20, NoiseDistribution::DiscreteCube, 1), 1.3, 2_000) < 0.9);
}

#[test]
fn the_width_is_within_10_percent_of_the_true_quantile() {
    let plan = LatticeBandPlan::new(1, 40, LAPLACE, 2);
    let band = simulate(1, 40, LAPLACE, 2);
    let mut fresh: Vec<f64> = draw_sups(20_000, 2, |draw| plan.draw_sup(77, draw), &|_, _| {})
        .iter()
        .map(|sup| sup.weighted / plan.correction)
        .collect();
    fresh.sort_by(f64::total_cmp);
    // The nodes alone miss the sup by less than the correction, so this quantile is at most the true one.
    let least = fresh[19_000];
    let width = band.half_width;
    assert!(
        width > least && width < 1.1 * least,
        "{width} against {least}"
    );
}

#[test]
fn the_band_is_far_narrower_inside_than_at_the_corners() {
    let band = simulate(1, 40, LAPLACE, 2);
    let at = |x| band.half_width / weight_at(&band.weights, x);
    assert!(at(0.5) < 0.45 * at(0.0), "{} {}", at(0.5), at(0.0));
    assert!((1.2..3.0).contains(&band.expected_sup));
}

#[test]
fn threads_do_not_change_the_draws() {
    let plan = LatticeBandPlan::new(2, 4, LAPLACE, 2);
    let sorted = |threads| {
        let mut sups: Vec<f64> =
            draw_sups(100, threads, |draw| plan.draw_sup(SEED, draw), &|_, _| {})
                .iter()
                .map(|sup| sup.weighted)
                .collect();
        sups.sort_by(f64::total_cmp);
        sups
    };
    assert_eq!(sorted(1), sorted(3));
    assert_eq!(sorted(1).len(), 100);
}

#[test]
fn heavy_plans_draw_less_often() {
    assert_eq!(LatticeBandPlan::new(1, 40, LAPLACE, 2).draws(), MAX_DRAWS);
    assert_eq!(LatticeBandPlan::new(3, 20, LAPLACE, 2).draws(), MIN_DRAWS);
    assert_eq!(quantile_rank(20_000), 19_096);
    assert_eq!(quantile_rank(1_000), 972);
}

/// A kernel on `l` axes, and `count` points for it.
fn kernel_basis(kernel: PointKernel, dimensions: usize, count: usize) -> (KernelBasis, Shape) {
    let steps: u32 = if dimensions == 1 { 64 } else { 20 };
    let axis: Vec<f64> = (0..=steps)
        .map(|i| f64::from(i) / f64::from(steps))
        .collect();
    let candidates = (0..dimensions).fold(vec![vec![]], |points: Vec<Vec<f64>>, _| {
        points
            .into_iter()
            .flat_map(|p| axis.iter().map(move |y| [p.clone(), vec![*y]].concat()))
            .collect()
    });
    let basis = Newton::on_chosen_points(&kernel, &candidates, count).basis;
    let shape = Shape {
        dimensions,
        degree: 1,
        basis: Basis::Kernel(basis.clone()),
    };
    (basis, shape)
}

/// Sups of fresh noise of a kernel form over a grid finer than that of the plan.
fn fresh_sups(
    (basis, shape): &(KernelBasis, Shape),
    law: NoiseDistribution,
    draws: u32,
) -> Vec<f64> {
    let steps: u32 = if shape.dimensions == 1 { 700 } else { 70 };
    let axis: Vec<f64> = (0..=steps)
        .map(|i| f64::from(i) / f64::from(steps))
        .collect();
    let newton = Newton::on_points(basis);
    let points = (0..shape.dimensions).fold(vec![vec![]], |points: Vec<Vec<f64>>, _| {
        points
            .into_iter()
            .flat_map(|p| axis.iter().map(move |y| [p.clone(), vec![*y]].concat()))
            .collect()
    });
    let rows: Vec<Vec<f64>> = points.iter().map(|y| newton.basis_values(y)).collect();
    let mut rng = ChaCha12Rng::seed_from_u64(99);
    let sup = |_| {
        let z = unit_noise(law, newton.count(), &mut rng);
        rows.iter()
            .map(|n| dot_product(n, &z).abs())
            .fold(0.0, f64::max)
    };
    let mut sups: Vec<f64> = (0..draws).map(sup).collect();
    sups.sort_by(f64::total_cmp);
    sups
}

#[test]
fn bands_of_kernel_functions_cover_and_are_not_wide() {
    let correlated = vec![vec![14.0, 6.0], vec![6.0, 9.0]];
    let cases = [
        (
            PointKernel::Gaussian {
                precision: vec![vec![100.0]],
            },
            1,
            16,
        ),
        (
            PointKernel::Gaussian {
                precision: correlated,
            },
            2,
            30,
        ),
        (
            PointKernel::Machine(machine::CubeKernel::Gaussian { bandwidth: 0.4 }),
            2,
            24,
        ),
        (
            PointKernel::Machine(machine::CubeKernel::Laplacian { bandwidth: 0.3 }),
            1,
            20,
        ),
        (
            PointKernel::Machine(machine::CubeKernel::Laplacian { bandwidth: 0.5 }),
            2,
            16,
        ),
        (
            PointKernel::Machine(machine::CubeKernel::Polynomial { power: 3 }),
            1,
            4,
        ),
        (PointKernel::Machine(machine::CubeKernel::Linear), 2, 3),
    ];
    for (kernel, dimensions, count) in cases {
        let case = kernel_basis(kernel, dimensions, count);
        for law in [
            NoiseDistribution::DiscreteLaplace,
            NoiseDistribution::DiscreteCube,
            NoiseDistribution::Ball,
            NoiseDistribution::DiscreteGaussian,
        ] {
            let band = Band::simulate(&case.1, law, 1);
            let sups = fresh_sups(&case, law, 2_000);
            let covered = sups.partition_point(|sup| *sup <= band.half_width);
            // Three deviations of a count of 1,900.
            assert!(
                covered > 1_900 - 30,
                "{law:?} {:?}: {covered}",
                case.0.kernel
            );
            // A quantile of 2,000 draws is itself off by 2 % or so.
            let width = band.half_width / sups[1_900];
            assert!(width < 1.1, "{law:?} {:?}: {width}", case.0.kernel);
            let louder = sups.partition_point(|sup| 1.3 * sup <= band.half_width);
            assert!(louder < 1_870, "{law:?} {:?}: {louder}", case.0.kernel);
        }
    }
}

/// Counts of cells read by a kernel of these widths, any two axes of which are correlated so much.
fn cells(widths: &[f64], correlation: f64, spline: Spline, steps: &[u32]) -> CellBasis {
    let entry = |(i, a): (usize, &f64)| {
        widths
            .iter()
            .enumerate()
            .map(|(j, b)| a * b * if i == j { 1.0 } else { correlation })
            .collect()
    };
    let matrix: Vec<Vec<f64>> = widths.iter().enumerate().map(entry).collect();
    let kernel = match widths.len() {
        1 => CellKernel::from_bandwidths(widths, spline, steps),
        _ => CellKernel::from_covariance(&matrix, spline, steps),
    };
    kernel.unwrap().basis().clone()
}

fn slanted_cells() -> [CellBasis; 6] {
    [
        cells(&[0.15, 0.15], 0.5, Spline::Quadratic, &[12, 12]),
        cells(&[0.2, 0.1], -0.8, Spline::Linear, &[12, 20]),
        cells(&[0.3, 0.06], 0.8, Spline::Box, &[8, 24]),
        cells(&[0.2, 0.2], 0.95, Spline::Linear, &[20, 20]),
        cells(&[0.3, 0.3, 0.3], 0.6, Spline::Quadratic, &[6, 6, 6]),
        cells(&[0.4, 0.3, 0.2], -0.4, Spline::Linear, &[6, 8, 10]),
    ]
}

/// The kernels of all nodes on an even grid of the cube, ends included.
fn kernels_on_a_grid(cells: &CellBasis, steps: u32) -> Vec<Vec<f64>> {
    let axis: Vec<f64> = (0..=steps)
        .map(|i| f64::from(i) / f64::from(steps))
        .collect();
    let places = (0..cells.steps.len()).fold(vec![vec![]], |places: Vec<Vec<f64>>, _| {
        places
            .into_iter()
            .flat_map(|p| axis.iter().map(move |y| [p.clone(), vec![*y]].concat()))
            .collect()
    });
    places.iter().map(|y| cells.kernel_values(y)).collect()
}

fn largest(rows: &[Vec<f64>], z: &[f64]) -> f64 {
    rows.iter()
        .map(|row| dot_product(row, z).abs())
        .fold(0.0, f64::max)
}

#[test]
fn bands_of_lattices_and_affine_functions_cover_under_the_ball_and_the_gaussian() {
    for law in [NoiseDistribution::Ball, NoiseDistribution::DiscreteGaussian] {
        for (dimensions, degree, order) in [(1, 20, 1), (2, 6, 2)] {
            let covered = coverage((dimensions, degree, law, order), 1.0, 2_000);
            assert!(
                covered > 0.935 && covered < 0.99,
                "{law:?} {dimensions}: {covered}"
            );
        }
        assert!(coverage((1, 20, law, 1), 1.3, 2_000) < 0.9);
        let band = Band::simulate(
            &Shape {
                dimensions: 2,
                degree: 1,
                basis: Basis::Affine,
            },
            law,
            1,
        );
        let mut rng = ChaCha12Rng::seed_from_u64(5);
        let inside = |_: &u32| {
            unit_noise(law, 3, &mut rng)
                .iter()
                .map(|z| z.abs())
                .sum::<f64>()
                <= band.half_width
        };
        let covered = (0..4_000).filter(inside).count();
        assert!((3_760..3_880).contains(&covered), "{law:?}: {covered}");
    }
}

#[test]
fn the_band_of_moments_holds_for_all_of_them_at_once() {
    let shape = Shape {
        dimensions: 2,
        degree: 1,
        basis: Basis::Cosine { frequencies: 5 },
    };
    for law in [
        NoiseDistribution::DiscreteLaplace,
        NoiseDistribution::DiscreteCube,
        NoiseDistribution::Ball,
        NoiseDistribution::DiscreteGaussian,
    ] {
        let band = Band::simulate(&shape, law, 1);
        let covered = |factor: f64| {
            let mut rng = ChaCha12Rng::seed_from_u64(6);
            let inside = |_: &u32| {
                unit_noise(law, 25, &mut rng)
                    .iter()
                    .all(|z| factor * z.abs() <= band.half_width)
            };
            (0..4_000).filter(inside).count()
        };
        assert!(
            (3_760..3_880).contains(&covered(1.0)),
            "{law:?}: {}",
            covered(1.0)
        );
        assert!(covered(1.3) < 3_700, "{law:?}: {}", covered(1.3));
    }
    // In closed form: the largest of 25 Laplace sizes.
    let exact = -(1.0 - 0.95_f64.powf(1.0 / 25.0)).ln();
    let found = Band::simulate(&shape, LAPLACE, 1).half_width;
    assert!((found / exact - 1.0).abs() < 0.04, "{found} {exact}");
}

/// How often a sum of `terms` draws stays within the band of sums, everywhere and at one point.
fn coverage_of_sums(law: NoiseDistribution, values: usize, terms: usize, factor: f64) -> [f64; 2] {
    const DRAWS: u32 = 6_000;
    let normal = Band::of_released_values(NoiseDistribution::DiscreteGaussian, values);
    let band = Band::of_released_values(law, values).of_sums(law, values, &normal);
    let mut rng = ChaCha12Rng::seed_from_u64(14);
    let mut within = [0, 0];
    for _ in 0..DRAWS {
        let mut sum = vec![0.0; values];
        for _ in 0..terms {
            sum.iter_mut()
                .zip(unit_noise(law, values, &mut rng))
                .for_each(|(sum, z)| *sum += z);
        }
        let scaled = |z: &f64| factor * z.abs() / (terms as f64).sqrt();
        within[0] += u32::from(sum.iter().map(scaled).fold(0.0, f64::max) <= band.half_width);
        within[1] += u32::from(sum.first().is_some_and(|z| scaled(z) <= band.pointwise));
    }
    within.map(|count| f64::from(count) / f64::from(DRAWS))
}

#[test]
fn the_band_of_a_sum_holds_between_one_draw_and_the_normal_law() {
    let mut least: f64 = 1.0;
    for law in [
        LAPLACE,
        NoiseDistribution::DiscreteCube,
        NoiseDistribution::Ball,
    ] {
        for (values, terms) in [1, 2, 5, 20, 100]
            .into_iter()
            .flat_map(|v| [1, 2, 3, 7, 30].map(|terms| (v, terms)))
        {
            let covered = coverage_of_sums(law, values, terms, 1.0);
            // At a true level of 0.95 three deviations of the count are 0.0085.
            assert!(
                covered.iter().all(|covered| *covered > 0.941),
                "{law} {values} {terms}: {covered:?}"
            );
            least = covered.into_iter().fold(least, f64::min);
        }
        // Noise that is 30 % larger than claimed is found out.
        let tight = if law == LAPLACE { 1 } else { 30 };
        let more = coverage_of_sums(law, 20, tight, 1.3);
        assert!(
            more.iter().all(|covered| *covered < 0.93),
            "{law}: {more:?}"
        );
    }
    println!("the least of all coverages is {least:.4}");
}

mod long {
    use super::*;

    #[test]
    fn bands_of_slanted_cells_cover_and_are_not_wide() {
        let gaussian = NoiseDistribution::DiscreteGaussian;
        let [_, plane, _, oblique, cube, _] = slanted_cells();
        for (cell_basis, law, fine) in [
            (plane, LAPLACE, 50),
            (oblique, gaussian, 50),
            (cube, LAPLACE, 16),
        ] {
            let rows = kernels_on_a_grid(&cell_basis, fine);
            let shape = Shape {
                dimensions: cell_basis.steps.len(),
                degree: 1,
                basis: Basis::Cells(cell_basis.clone()),
            };
            let band = Band::simulate(&shape, law, 1);
            let mut rng = ChaCha12Rng::seed_from_u64(98);
            let sup = |_| largest(&rows, &unit_noise(law, cell_basis.count(), &mut rng));
            let mut sups: Vec<f64> = (0..1_000).map(sup).collect();
            sups.sort_by(f64::total_cmp);
            let covered = sups.partition_point(|sup| *sup <= band.half_width);
            let width = band.half_width / sups[950];
            println!(
                "{:?} {law}: covers {covered} of 1,000, {width:.3} times the quantile",
                cell_basis.steps
            );
            // Three deviations of a count of 950; the quantile of 1,000 draws is itself off by 2 % or so.
            assert!(
                covered > 929 && width < 1.1,
                "{law} {:?}: {covered} {width}",
                cell_basis
            );
            let louder = sups.partition_point(|sup| 1.15 * sup <= band.half_width);
            assert!(louder < 929, "{law} {:?}: {louder}", cell_basis);
        }
    }

    /// Draw by draw: the bound is at least what is found on another grid, and hardly more. The points alone are not enough.
    #[test]
    fn no_noise_of_cells_exceeds_its_bound_between_the_points() {
        let mut missed = 0;
        for cell_basis in slanted_cells() {
            let rows = kernels_on_a_grid(
                &cell_basis,
                if cell_basis.steps.len() == 2 { 160 } else { 32 },
            );
            let plan = cells::CellBandPlan::new(&cell_basis, LAPLACE);
            let mut most = 0.0_f64;
            for draw in 0..12 {
                let mut rng = ChaCha12Rng::seed_from_u64(31);
                rng.set_stream(u64::from(draw));
                let found = largest(&rows, &unit_noise(LAPLACE, cell_basis.count(), &mut rng));
                let bound = plan.draw_sup(31, draw);
                assert!(
                    bound.weighted >= found,
                    "{:?}: {} {found}",
                    cell_basis,
                    bound.weighted
                );
                missed += u32::from(bound.plain < found);
                most = most.max(bound.weighted / found);
            }
            println!(
                "{:?}: at most {most:.3} times what is found",
                cell_basis.steps
            );
            assert!(most < 1.12, "{:?}: {most}", cell_basis);
        }
        assert!(missed > 0);
    }
}
