//! One synopsis read in several ways: what smoothing gains and what it rests on, pointwise bands, densities that are densities.

use bernstream_functions::whitened::KernelDensity;
use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::Target as _;
use bernstream_synopsis::description::{
    AxisDescription, Basis, Density, Description, KernelBasis, NoiseDescription, NoiseDistribution,
    PointKernel, Smoothing, Smoothness, TargetDescription,
};
use bernstream_synopsis::price::Price;
use bernstream_synopsis::{Adjacency, Sensitivity};
use bernstream_synopsis::{Synopsis, SynopsisError, SynopsisReading};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Exp1, StandardNormal};

/// A window of records in `[0, 1]`, three crowds of them, and the function that is released of it.
struct Window {
    records: Vec<f64>,
    bandwidth: f64,
}

impl Window {
    fn new(seed: u64, count: u32, bandwidth: f64) -> Self {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let crowds: Vec<(f64, f64)> = (0..3)
            .map(|_| (rng.random_range(0.1..0.9), rng.random_range(0.02..0.15)))
            .collect();
        let record = |i: u32| {
            let (centre, width) = crowds[i as usize % 3];
            (centre + width * rng.sample::<f64, _>(StandardNormal)).clamp(0.0, 1.0)
        };
        Window {
            records: (0..count).map(record).collect(),
            bandwidth,
        }
    }

    fn at(&self, y: f64) -> f64 {
        let bump = |d: &f64| (-((y - d) / self.bandwidth).powi(2) / 2.0).exp();
        self.records.iter().map(bump).sum::<f64>()
            / (self.bandwidth * (2.0 * std::f64::consts::PI).sqrt())
    }

    /// On a lattice of degree 40, at order 2, for noise of this scale.
    fn about(&self, law: NoiseDistribution, scale: f64) -> Description {
        let example = bernstream_synopsis::EXAMPLE;
        let mut about: Description = serde_json::from_str(example).expect("the example");
        about.domain = vec![AxisDescription {
            column: "x".to_owned(),
            min: 0.0,
            max: 1.0,
        }];
        (about.degree, about.order) = (40, 2);
        about.noise = NoiseDescription {
            law,
            scale,
            grid: scale * 1e-10,
            calibrated: Default::default(),
        };
        about.target = TargetDescription::Density(Density {
            kernel: Smoothing::Bandwidths(vec![self.bandwidth]),
            divide_by: None,
        });
        about
    }

    fn released(&self, scale: f64, seed: u64) -> Synopsis {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut laplace = || rng.sample::<f64, _>(Exp1) * if rng.random() { scale } else { -scale };
        let values = (0..=40)
            .map(|i| self.at(f64::from(i) / 40.0) + laplace())
            .collect();
        Synopsis::new(
            self.about(NoiseDistribution::DiscreteLaplace, scale),
            values,
        )
        .expect("a synopsis")
    }

    /// The largest error over the domain.
    fn error(&self, synopsis: &Synopsis, by: impl Into<SynopsisReading>) -> f64 {
        let evaluator = synopsis.evaluator(by).expect("a reading");
        let error = |i: u32| {
            (evaluator.evaluate(&[f64::from(i) / 300.0]).unwrap() - self.at(f64::from(i) / 300.0))
                .abs()
        };
        (0..=300).map(error).fold(0.0, f64::max)
    }
}

/// Mean largest errors over 25 windows: of the raw readings, the best of their orders, and of posterior smoothing, where the
/// description tells the noise `told` times as large as it is.
fn raw_and_smoothed(epsilon: f64, told: f64) -> (f64, f64) {
    let orders = [1, 2, 4, 8];
    let mut raw = [0.0; 4];
    let mut smoothed = 0.0;
    for seed in 0..25 {
        let window = Window::new(seed, 3_000, 0.06);
        // A record changes the 41 values by 40 in all.
        let synopsis = window.released(40.0 / epsilon, seed + 1_000);
        for (sum, order) in raw.iter_mut().zip(orders) {
            *sum += window.error(&synopsis, order) / 25.0;
        }
        let mut about = synopsis.description().clone();
        about.noise.scale *= told;
        let as_told = Synopsis::new(about, synopsis.values().to_vec()).unwrap();
        smoothed += window.error(&as_told, SynopsisReading::Posterior) / 25.0;
    }
    (raw.into_iter().fold(f64::INFINITY, f64::min), smoothed)
}

#[test]
fn smoothing_gains_where_noise_rules_and_loses_nothing_where_it_does_not() {
    for (epsilon, at_most) in [
        (0.01, 0.8),
        (0.03, 0.8),
        (0.1, 0.9),
        (1.0, 0.95),
        (30.0, 1.02),
    ] {
        let (raw, smoothed) = raw_and_smoothed(epsilon, 1.0);
        assert!(
            smoothed < at_most * raw,
            "epsilon {epsilon}: raw {raw}, smoothed {smoothed}"
        );
    }
}

#[test]
fn a_scale_told_ten_times_too_small_loses_the_gain() {
    let (raw, smoothed) = raw_and_smoothed(0.03, 1.0);
    let (_, misled) = raw_and_smoothed(0.03, 0.1);
    assert!(
        misled > 1.3 * smoothed,
        "raw {raw}, smoothed {smoothed}, misled {misled}"
    );
}

#[test]
fn the_posterior_deviation_is_that_of_the_error() {
    let mut inside = 0;
    let mut all = 0;
    let mut squares = 0.0;
    for seed in 0..40 {
        let window = Window::new(seed, 3_000, 0.06);
        let synopsis = window.released(400.0, seed + 2_000);
        let evaluator = synopsis.evaluator(SynopsisReading::Posterior).unwrap();
        for i in 0..=20 {
            let y = f64::from(i) / 20.0;
            let deviation = evaluator.deviation(&[y]).unwrap().expect("a deviation");
            let error = (evaluator.evaluate(&[y]).unwrap() - window.at(y)).abs();
            inside += usize::from(error <= 1.96 * deviation);
            squares += (error / deviation).powi(2);
            all += 1;
        }
        assert_eq!(
            synopsis.evaluator(2).unwrap().deviation(&[0.5]).unwrap(),
            None
        );
    }
    let covered = inside as f64 / f64::from(all);
    let square = squares / f64::from(all);
    assert!(
        covered > 0.9 && (0.4..1.5).contains(&square),
        "{covered} {square}"
    );
}

/// `d` whitened coordinates with noise on them, published as kernel coefficients.
#[test]
fn kernel_functions_are_smoothed_too() {
    let kernel = PointKernel::Gaussian {
        precision: vec![vec![1.0 / 0.06_f64.powi(2)]],
    };
    let points: Vec<Vec<f64>> = (0..=24).map(|i| vec![f64::from(i) / 24.0]).collect();
    let basis = KernelBasis {
        kernel: kernel.clone(),
        points: points.clone(),
    };
    // The Cholesky factor, by the book.
    let mut factor = vec![vec![0.0; 25]; 25];
    for i in 0..25 {
        for j in 0..=i {
            let rest = kernel.value(&points[i], &points[j])
                - (0..j).map(|m| factor[i][m] * factor[j][m]).sum::<f64>();
            factor[i][j] = if i == j {
                rest.sqrt()
            } else {
                rest / factor[j][j]
            };
        }
    }
    let mut raw = 0.0;
    let mut smoothed = 0.0;
    for seed in 0..15 {
        let window = Window::new(seed, 3_000, 0.06);
        let mut coordinates: Vec<f64> = Vec::new();
        for i in 0..25 {
            let known: f64 = (0..i).map(|j| factor[i][j] * coordinates[j]).sum();
            coordinates.push((window.at(points[i][0]) - known) / factor[i][i]);
        }
        let mut rng = ChaCha12Rng::seed_from_u64(seed + 500);
        for c in &mut coordinates {
            *c += 4_000.0 * rng.sample::<f64, _>(StandardNormal);
        }
        let mut coefficients = coordinates;
        for i in (0..25).rev() {
            let later: f64 = (i + 1..25).map(|j| factor[j][i] * coefficients[j]).sum();
            coefficients[i] = (coefficients[i] - later) / factor[i][i];
        }
        let mut about = window.about(NoiseDistribution::DiscreteGaussian, 4_000.0);
        (about.degree, about.order, about.basis) = (1, 1, Basis::Kernel(basis.clone()));
        let synopsis = Synopsis::new(about, coefficients).unwrap();
        raw += window.error(&synopsis, SynopsisReading::Kernel);
        smoothed += window.error(&synopsis, SynopsisReading::Posterior);
        // The noise at a point has the deviation |L^-1 k(y)| <= 1, and is 1.96 of that wide at a point of the kernel.
        let width = synopsis.pointwise_half_width(&points[7]).unwrap();
        assert!((width / 7_840.0 - 1.0).abs() < 1e-3, "{width}");
    }
    assert!(smoothed < 0.9 * raw, "{raw} {smoothed}");
}

/// At the kernel's points, between them and at the ends; noise as the mechanism draws it, and as a target publishes it.
#[test]
fn the_standard_error_of_kernel_interpolation_is_that_of_its_noise() {
    const DRAWS: u32 = 1_500;
    let density = KernelDensity::diagonal(&[0.06], 15).unwrap();
    let change = Sensitivity(
        density
            .euclidean_sensitivity(Adjacency::AddRemove, 1)
            .unwrap(),
    );
    for (law, price) in [
        (
            NoiseDistribution::DiscreteGaussian,
            Price::Concentrated("0.5".parse().unwrap()),
        ),
        (NoiseDistribution::Ball, Price::Pure("1".parse().unwrap())),
    ] {
        let mechanism = Mechanism::calibrated(law, change, 15, price).unwrap();
        let mut about = Window::new(1, 0, 0.06).about(law, mechanism.scale().units() as f64);
        (about.degree, about.order, about.basis) = (1, 1, density.shape().basis);
        let mut generator = Generator::frozen([8; 32]);
        let places = [0.0, 0.03, 0.5, 0.77, density.points().basis().points[6][0]];
        let mut seen = [(0.0, 0, 0); 5];
        // Bands know no values.
        let band = Synopsis::new(about.clone(), vec![0.0; 15])
            .unwrap()
            .pointwise_band(1)
            .unwrap();
        let stated = places.map(|y| band.deviation(&[y]).unwrap());
        for _ in 0..DRAWS {
            let noisy = mechanism.release_noisy(&Exact::new(vec![0; 15]), &mut generator);
            let coefficients = density.publish(noisy.values().iter().map(|c| *c as f64).collect());
            let synopsis = Synopsis::new(about.clone(), coefficients).unwrap();
            let evaluator = synopsis.evaluator(SynopsisReading::Kernel).unwrap();
            for (i, y) in places.iter().enumerate() {
                let noise = evaluator.evaluate(&[*y]).unwrap().abs();
                let width = band.half_width(&[*y]).unwrap();
                let (square, covered, louder) = &mut seen[i];
                *square += noise * noise / f64::from(DRAWS);
                *covered += u32::from(noise <= width);
                *louder += u32::from(1.3 * noise <= width);
            }
        }
        for ((square, covered, louder), stated) in seen.into_iter().zip(stated) {
            // Six deviations of a count, and of a mean of squares.
            assert!(
                (1_374..=1_475).contains(&covered) && louder < 1_374,
                "{law:?}: {covered} {louder}"
            );
            assert!(
                (square.sqrt() / stated - 1.0).abs() < 0.13,
                "{law:?}: {} {stated}",
                square.sqrt()
            );
        }
    }
}

#[test]
fn pointwise_bands_cover_at_a_point_and_are_far_narrower_than_simultaneous_ones() {
    let window = Window::new(3, 0, 0.06);
    let points = [0.0, 0.013, 0.31, 0.5, 0.97];
    let mut covered = [0_u32; 5];
    let mut louder = [0_u32; 5];
    for seed in 0..2_000 {
        let synopsis = window.released(1.0, seed);
        let evaluator = synopsis.evaluator(2).unwrap();
        let band = synopsis.pointwise_band(2).unwrap();
        for (i, y) in points.iter().enumerate() {
            let noise = evaluator.evaluate(&[*y]).unwrap().abs();
            let width = band.half_width(&[*y]).unwrap();
            covered[i] += u32::from(noise <= width);
            louder[i] += u32::from(1.3 * noise <= width);
        }
    }
    // Three deviations of a count of 1,900; the band of Laplace noise is up to 8 % too wide, so at most 1,933 or so.
    assert!(
        covered.iter().all(|count| (1_871..1_960).contains(count)),
        "{covered:?}"
    );
    assert!(louder.iter().all(|count| *count < 1_850), "{louder:?}");
}

#[test]
fn the_nearest_point_is_a_step_function_through_the_values() {
    let window = Window::new(5, 100, 0.1);
    let synopsis = window.released(1.0, 5);
    let nearest = synopsis.evaluator(SynopsisReading::Nearest).unwrap();
    for (y, index) in [(0.0, 0), (0.012, 0), (0.013, 1), (0.5, 20), (1.0, 40)] {
        assert_eq!(
            nearest.evaluate(&[y]).unwrap(),
            synopsis.values()[index],
            "{y}"
        );
    }
    // Interpolation goes through exact values, all but.
    let exact = window.released(1e-9, 5);
    assert!(window.error(&exact, SynopsisReading::Kernel) < 0.02 * window.at(0.5).max(100.0));
    assert!(window.error(&exact, SynopsisReading::Posterior) < 0.02 * window.at(0.5).max(100.0));
}

#[test]
fn readings_that_values_do_not_allow_are_refused() {
    let window = Window::new(5, 10, 0.1);
    let mut about = window.about(NoiseDistribution::DiscreteLaplace, 1.0);
    (about.degree, about.order, about.basis) = (1, 1, Basis::Affine);
    let affine = Synopsis::new(about.clone(), vec![1.0, 2.0]).unwrap();
    for by in [
        SynopsisReading::Nearest,
        SynopsisReading::Kernel,
        SynopsisReading::Posterior,
    ] {
        assert!(matches!(
            affine.evaluator(by),
            Err(SynopsisError::Reading { .. })
        ));
    }
    about.basis = Basis::Cosine { frequencies: 3 };
    let moments = Synopsis::new(about, vec![1.0; 3]).unwrap();
    assert!(matches!(
        moments.evaluator(SynopsisReading::Posterior),
        Err(SynopsisError::NoFunction)
    ));
    assert!(matches!(
        moments.half_width(&[0.5]),
        Err(SynopsisError::NoFunction)
    ));
    assert!(matches!(
        moments.pointwise_half_width(&[0.5]),
        Err(SynopsisError::NoFunction)
    ));
}

#[test]
fn a_proper_density_is_nowhere_negative_and_integrates_to_one_and_its_distribution_never_falls() {
    let window = Window::new(11, 300, 0.06);
    let synopsis = window.released(400.0, 7);
    let raw = synopsis.evaluator(2).unwrap();
    let points: Vec<f64> = (0..2_000).map(|i| (f64::from(i) + 0.5) / 2_000.0).collect();
    assert!(
        points.iter().any(|y| raw.evaluate(&[*y]).unwrap() < 0.0),
        "noise that shows"
    );
    let proper = raw.clone().proper_density().unwrap();
    let values: Vec<f64> = points
        .iter()
        .map(|y| proper.evaluate(&[*y]).unwrap())
        .collect();
    assert!(values.iter().all(|value| *value >= 0.0));
    assert!((values.iter().sum::<f64>() / 2_000.0 - 1.0).abs() < 1e-3);
    let cumulative = raw.distribution_function().unwrap();
    let values: Vec<f64> = points
        .iter()
        .map(|y| cumulative.evaluate(&[*y]).unwrap())
        .collect();
    assert!(values.windows(2).all(|pair| pair[0] <= pair[1] + 1e-12));
    assert_eq!(
        (
            cumulative.evaluate(&[0.0]).unwrap(),
            cumulative.evaluate(&[1.0]).unwrap()
        ),
        (0.0, 1.0)
    );
    let nothing = Synopsis::new(synopsis.description().clone(), vec![-1.0; 41]).unwrap();
    assert!(matches!(
        nothing.evaluator(1).unwrap().proper_density(),
        Err(SynopsisError::NoMass { .. })
    ));
    assert!(matches!(
        nothing.evaluator(1).unwrap().distribution_function(),
        Err(SynopsisError::NoMass { .. })
    ));
}

/// Sums of bumps of a known norm, curvature and slope, at every order: the declared bound holds, 30 % less does not where it is
/// tight, and nothing is said where nothing was declared.
#[test]
fn the_approximation_is_within_its_declared_bound() {
    let about = Window::new(1, 0, 0.1).about(NoiseDistribution::DiscreteLaplace, 1.0);
    // A parabola has the same curvature everywhere: the bound is its error, at every point.
    let parabola = |y: f64| 3.0 * y * y;
    let line = |degree: u32| {
        (0..=degree)
            .map(|i| f64::from(i) / f64::from(degree))
            .collect::<Vec<f64>>()
    };
    let values: Vec<f64> = line(40).into_iter().map(parabola).collect();
    assert!(
        Synopsis::new(about.clone(), values.clone())
            .unwrap()
            .approximation_band()
            .is_none()
    );
    for (order, declared) in [
        (1, Smoothness::Curvature(vec![6.0])),
        (1, Smoothness::Lipschitz(vec![6.0])),
        (2, Smoothness::Curvature(vec![6.0])),
        (5, Smoothness::Lipschitz(vec![6.0])),
    ] {
        let about = Description {
            order,
            smoothness: Some(declared.clone()),
            ..about.clone()
        };
        let synopsis = Synopsis::new(about, values.clone()).unwrap();
        let bound = synopsis.approximation_band().unwrap();
        let evaluator = synopsis.evaluator(order).unwrap();
        for y in line(97) {
            let error = (evaluator.evaluate(&[y]).unwrap() - parabola(y)).abs();
            let width = bound.half_width(&[y]).unwrap();
            assert!(
                error <= width + 1e-12,
                "{order} {declared:?} {y}: {error} {width}"
            );
            if (order, &declared) == (1, &Smoothness::Curvature(vec![6.0])) {
                assert!(error >= 0.7 * width, "{y}: {error} {width}");
            }
        }
    }
    // A single kernel function between the points has norm 1, and misses by the power function at its own place.
    let kernel = PointKernel::Gaussian {
        precision: vec![vec![25.0]],
    };
    let basis = KernelBasis {
        kernel: kernel.clone(),
        points: vec![vec![0.2], vec![0.7]],
    };
    // Its projection: K a = k.
    let near = kernel.value(&[0.4], &[0.2]);
    let far = kernel.value(&[0.4], &[0.7]);
    let between = kernel.value(&[0.2], &[0.7]);
    let determinant = 1.0 - between * between;
    let projection = vec![
        (near - between * far) / determinant,
        (far - between * near) / determinant,
    ];
    let mut of_kernel = Description {
        smoothness: Some(Smoothness::Norm(1.0)),
        ..about.clone()
    };
    (of_kernel.degree, of_kernel.order, of_kernel.basis) = (1, 1, Basis::Kernel(basis));
    let synopsis = Synopsis::new(of_kernel, projection).unwrap();
    let bound = synopsis.approximation_band().unwrap();
    let error = |y: f64| (synopsis.evaluate(&[y]).unwrap() - kernel.value(&[0.4], &[y])).abs();
    assert!(
        line(97)
            .into_iter()
            .all(|y| error(y) <= bound.half_width(&[y]).unwrap() + 1e-9)
    );
    let at_place = bound.half_width(&[0.4]).unwrap();
    assert!(
        (error(0.4) - at_place.powi(2)).abs() < 1e-9 && at_place > 0.1,
        "{} {at_place}",
        error(0.4)
    );
    // A declaration that does not fit the form is refused.
    for wrong in [
        Smoothness::Norm(1.0),
        Smoothness::Lipschitz(vec![1.0, 1.0]),
        Smoothness::Curvature(vec![-1.0]),
    ] {
        let about = Description {
            smoothness: Some(wrong),
            ..about.clone()
        };
        assert!(matches!(
            Synopsis::new(about, values.clone()),
            Err(SynopsisError::Damaged(_))
        ));
    }
}

#[test]
fn smoothing_gains_more_in_two_dimensions() {
    let degree = 12_u32;
    let bandwidth = 0.15;
    let epsilon = 0.1;
    let scale = f64::from(degree * degree) / epsilon;
    let mut about = Window::new(1, 0, bandwidth).about(NoiseDistribution::DiscreteLaplace, scale);
    about.degree = degree;
    about.domain = ["x", "y"]
        .map(|name| AxisDescription {
            column: name.to_owned(),
            min: 0.0,
            max: 1.0,
        })
        .to_vec();
    about.target = TargetDescription::Density(Density {
        kernel: Smoothing::Bandwidths(vec![bandwidth; 2]),
        divide_by: None,
    });
    let grid = |side: u32| -> Vec<[f64; 2]> {
        let at = |i: u32| f64::from(i) / f64::from(side);
        (0..=side)
            .flat_map(|i| (0..=side).map(move |j| [at(i), at(j)]))
            .collect()
    };
    let mut raw = [0.0; 3];
    let mut smoothed = 0.0;
    for seed in 0..6 {
        let [first, second] = [seed, seed + 50].map(|seed| Window::new(seed, 3_000, bandwidth));
        let records: Vec<[f64; 2]> = first
            .records
            .iter()
            .zip(&second.records)
            .map(|(x, y)| [*x, *y])
            .collect();
        let exact = |y: &[f64; 2]| {
            let square =
                |d: &[f64; 2]| ((y[0] - d[0]).powi(2) + (y[1] - d[1]).powi(2)) / bandwidth.powi(2);
            records
                .iter()
                .map(|d| (-square(d) / 2.0).exp())
                .sum::<f64>()
                / (2.0 * std::f64::consts::PI * bandwidth.powi(2))
        };
        let mut rng = ChaCha12Rng::seed_from_u64(seed + 300);
        let mut laplace = || rng.sample::<f64, _>(Exp1) * if rng.random() { scale } else { -scale };
        let values = grid(degree).iter().map(|y| exact(y) + laplace()).collect();
        let synopsis = Synopsis::new(about.clone(), values).unwrap();
        let points: Vec<([f64; 2], f64)> = grid(24).into_iter().map(|y| (y, exact(&y))).collect();
        let error = |by: SynopsisReading| {
            let evaluator = synopsis.evaluator(by).unwrap();
            points
                .iter()
                .map(|(y, f)| (evaluator.evaluate(y).unwrap() - f).abs())
                .fold(0.0, f64::max)
        };
        for (sum, order) in raw.iter_mut().zip([1, 2, 4]) {
            *sum += error(SynopsisReading::Bernstein(order));
        }
        smoothed += error(SynopsisReading::Posterior);
    }
    let raw = raw.into_iter().fold(f64::INFINITY, f64::min);
    assert!(smoothed < 0.75 * raw, "raw {raw}, smoothed {smoothed}");
}
