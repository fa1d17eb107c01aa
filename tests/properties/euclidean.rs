//! Noise for the 2-norm has the law that it claims: the rounded ball and the discrete Gaussian.

use std::collections::HashMap;

use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::calibrate::Scale;
use bernstream_noise::noise::{
    DiscreteCube, DiscreteGaussian, DiscreteLaplace, Generator, RoundedBall,
};
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::price::Price;

use crate::statistics::{TWO_SIDED, chi_square, exponential_mean_range};

const DRAWS: usize = 1 << 20;

fn ball_noise(distance: u64, price: Epsilon) -> Mechanism {
    Mechanism::calibrated(
        NoiseDistribution::Ball,
        Sensitivity(distance),
        1,
        Price::Pure(price),
    )
    .unwrap()
}

fn gaussian_noise(distance: u64, values: usize, price: Price) -> Mechanism {
    Mechanism::calibrated(
        NoiseDistribution::DiscreteGaussian,
        Sensitivity(distance),
        values,
        price,
    )
    .unwrap()
}

/// `n` balls of `N` coordinates each.
fn balls<const N: usize>(scale: u64, seed: u8, n: usize) -> Vec<[i128; N]> {
    let ball = RoundedBall::new(Scale::new(scale).unwrap());
    let mut generator = Generator::frozen([seed; 32]);
    let mut one = || {
        let mut values = [0; N];
        ball.fill(&mut generator, &mut values);
        values
    };
    (0..n).map(|_| one()).collect()
}

/// `exp(-||x|| / s)` over its integral: the surface of the sphere times `(N - 1)! s^N`.
fn ball_density<const N: usize>(x: &[f64; N], scale: f64) -> f64 {
    use std::f64::consts::PI;
    let whole = [2.0, 2.0 * PI, 8.0 * PI][N - 1] * scale.powi(N as i32);
    (-x.iter().map(|x| x * x).sum::<f64>().sqrt() / scale).exp() / whole
}

/// What `f` gives for the points of a cube of `side^N` whole numbers that begins at `from`.
fn for_each_point<const N: usize>(from: [i128; N], side: usize, mut f: impl FnMut([i128; N])) {
    for at in 0..side.pow(N as u32) {
        f(std::array::from_fn(|i| {
            from[i] + (at / side.pow(i as u32) % side) as i128
        }));
    }
}

/// The probability that the rounded ball lies in the cube of `side^N` whole numbers that begins at `from`: the density
/// integrated over it, by midpoints of `parts` parts a side.
fn ball_mass<const N: usize>(from: [i128; N], side: usize, scale: f64, parts: usize) -> f64 {
    let mut sum = 0.0;
    let step = side as f64 / parts as f64;
    for_each_point([0; N], parts, |part| {
        let at = |i: usize| from[i] as f64 - 0.5 + (part[i] as f64 + 0.5) * step;
        sum += ball_density(&std::array::from_fn::<f64, N, _>(at), scale);
    });
    sum * step.powi(N as i32)
}

/// How far balls are from their law, in cubes of `side` whole numbers up to `reach` of them from the middle, and the rest:
/// more than 1 rejects.
fn balls_misfit<const N: usize>(balls: &[[i128; N]], scale: u64, side: usize, reach: i128) -> f64 {
    let wide = side as i128;
    let half = side as i128 / 2;
    let mut counts = HashMap::new();
    for values in balls {
        *counts
            .entry(values.map(|z| (z + half).div_euclid(wide)))
            .or_insert(0.0) += 1.0;
    }
    let n = balls.len() as f64;
    let mut bins = Vec::new();
    for_each_point([-reach; N], 2 * reach as usize + 1, |cube| {
        let mass = ball_mass(cube.map(|c| c * wide - half), side, scale as f64, 8);
        bins.push((counts.get(&cube).copied().unwrap_or(0.0), n * mass));
    });
    let inside = bins
        .iter()
        .fold((0.0, 0.0), |sum, bin| (sum.0 + bin.0, sum.1 + bin.1));
    bins.push((n - inside.0, n - inside.1));
    assert!(
        bins.iter().all(|bin| bin.1 > 15.0),
        "cells too small to judge"
    );
    chi_square(&bins)
}

#[test]
fn balls_have_the_rounded_law() {
    let misfits = [
        balls_misfit(&balls::<1>(16, 41, DRAWS / 16), 16, 1, 60),
        balls_misfit(&balls::<2>(16, 42, DRAWS / 16), 16, 3, 8),
        balls_misfit(&balls::<3>(16, 43, DRAWS / 16), 16, 9, 3),
        balls_misfit(&balls::<3>(48, 44, DRAWS / 16), 48, 21, 3),
    ];
    println!("balls: chi-square at {misfits:.3?} of its limit");
    assert!(misfits.iter().all(|misfit| *misfit < 1.0), "{misfits:?}");
}

#[test]
fn balls_of_a_wrong_scale_or_shape_are_found_out() {
    let found = balls::<2>(160, 45, DRAWS / 16);
    assert!(balls_misfit(&found, 160, 41, 6) < 1.0);
    assert!(balls_misfit(&found, 208, 41, 6) > 1.0 && balls_misfit(&found, 112, 41, 6) > 1.0);
    // Coordinates of different balls, and a length for one dimension less.
    let mixed: Vec<[i128; 2]> = found
        .windows(2)
        .map(|pair| [pair[0][0], pair[1][1]])
        .collect();
    assert!(balls_misfit(&mixed, 160, 41, 6) > 1.0);
    let short: Vec<[i128; 2]> = balls::<1>(160, 46, DRAWS / 8)
        .chunks_exact(2)
        .map(|pair| [pair[0][0], pair[1][0]])
        .collect();
    assert!(balls_misfit(&short, 160, 41, 6) > 1.0);
}

fn euclidean(values: &[i128], scale: u64) -> f64 {
    values
        .iter()
        .map(|z| (*z as f64 / scale as f64).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// How far the lengths of balls are from `Gamma(N)`: more than 1 rejects.
fn lengths_misfit<const N: usize>(balls: &[[i128; N]], scale: u64) -> f64 {
    let shape = N as f64;
    let log_gamma: f64 = (1..N).map(|i| (i as f64).ln()).sum();
    let density = |x: f64| ((shape - 1.0) * x.ln() - x - log_gamma).exp();
    let n = balls.len() as f64;
    let width = shape.sqrt() / 4.0;
    let mut bins = vec![(0.0, 0.0); (4.0 * shape / shape.sqrt()).ceil() as usize * 3];
    for values in balls {
        let bin = (euclidean(values, scale) / width) as usize;
        bins[bin].0 += 1.0;
    }
    for (i, bin) in bins.iter_mut().enumerate() {
        bin.1 = (0..64)
            .map(|j| density((i as f64 + (f64::from(j) + 0.5) / 64.0) * width))
            .sum::<f64>()
            * n
            * width
            / 64.0;
    }
    // Neighbours share a bin until 20 are expected there.
    let mut shared = vec![(0.0, 0.0)];
    for bin in bins {
        if shared.last().unwrap().1 >= 20.0 {
            shared.push((0.0, 0.0));
        }
        let last = shared.last_mut().unwrap();
        *last = (last.0 + bin.0, last.1 + bin.1);
    }
    if shared.last().unwrap().1 < 20.0 {
        let rest = shared.pop().unwrap();
        let last = shared.last_mut().unwrap();
        *last = (last.0 + rest.0, last.1 + rest.1);
    }
    assert!(shared.len() > 15, "{}", shared.len());
    chi_square(&shared)
}

#[test]
fn the_lengths_of_balls_are_sums_of_exponentials() {
    const N: usize = 141;
    let scale = 16 * ((1 << 36) + 12_345);
    let found = balls::<N>(scale, 47, 2_000);
    let misfit = lengths_misfit(&found, scale);
    println!("lengths: chi-square at {misfit:.3} of its limit");
    assert!(misfit < 1.0, "{misfit}");
    assert!(
        lengths_misfit(&found, scale / 10 * 11 / 16 * 16) > 1.0
            && lengths_misfit(&found, scale / 11 * 10 / 16 * 16) > 1.0
    );
    // No coordinate has more of the squares than another: a share has mean 1/N and is Beta(1/2, (N - 1)/2).
    let n = N as f64;
    let deviation = (2.0 * (n - 1.0) / (n * n * (n + 2.0)) / 2_000.0).sqrt();
    for i in 0..N {
        let share = found
            .iter()
            .map(|values| (values[i] as f64 / scale as f64 / euclidean(values, scale)).powi(2))
            .sum::<f64>();
        assert!(
            (share / 2_000.0 - 1.0 / n).abs() < TWO_SIDED * deviation,
            "coordinate {i}: {share}"
        );
    }
}

/// In the plane the direction is uniform whatever the length, in space its height too (Archimedes).
#[test]
fn balls_point_everywhere_alike() {
    let scale = 1 << 40;
    let mut angles = vec![(0.0, 30_000.0 / 128.0); 128];
    for [x, y] in balls::<2>(scale, 48, 30_000) {
        let turn = (y as f64).atan2(x as f64) / std::f64::consts::TAU + 0.5;
        let length = euclidean(&[x, y], scale);
        let below = 1.0 - (1.0 + length) * (-length).exp();
        angles[(turn * 16.0) as usize % 16 + 16 * (below * 8.0).min(7.0) as usize].0 += 1.0;
    }
    assert!(chi_square(&angles) < 1.0);
    let mut heights = vec![(0.0, 30_000.0 / 64.0); 64];
    for values in balls::<3>(scale, 49, 30_000) {
        let height = values[2] as f64 / scale as f64 / euclidean(&values, scale);
        heights[((height + 1.0) * 32.0) as usize % 64].0 += 1.0;
    }
    assert!(chi_square(&heights) < 1.0);
    // A cube does not.
    let mut corners = vec![(0.0, 30_000.0 / 16.0); 16];
    let cube = DiscreteCube::new(Scale::new(scale).unwrap());
    let mut generator = Generator::frozen([50; 32]);
    for _ in 0..30_000 {
        let mut values = [0; 2];
        cube.fill(&mut generator, &mut values);
        let [x, y] = values;
        corners[((y as f64).atan2(x as f64) / std::f64::consts::TAU * 16.0 + 8.0) as usize % 16]
            .0 += 1.0;
    }
    assert!(chi_square(&corners) > 1.0);
}

#[test]
fn large_balls_have_the_mean_length_and_even_low_bits() {
    for (seed, scale) in [
        (51, 1 << 40),
        (52, 16 * ((1 << 41) + 12_345)),
        (53, Scale::LARGEST),
    ] {
        let balls = balls::<9>(scale, seed, 10_000);
        let mean = balls
            .iter()
            .map(|values| euclidean(values, scale))
            .sum::<f64>()
            / 10_000.0;
        let range = exponential_mean_range(9 * 10_000);
        assert!(
            range.contains(&(mean / 9.0)),
            "scale {scale}: {mean} outside {range:?} times 9"
        );
        assert!(!range.contains(&(mean / 9.0 * 1.3)) && !range.contains(&(mean / 9.0 / 1.3)));
        let mut low = [(0.0, 9.0 * 10_000.0 / 256.0); 256];
        balls
            .iter()
            .flatten()
            .for_each(|z| low[(z & 255) as usize].0 += 1.0);
        assert!(chi_square(&low) < 1.0, "low bits");
    }
}

/// The largest logarithm of the odds of any rounded value between neighbours `shift` apart.
fn largest_odds<const N: usize>(shift: [i128; N], scale: f64, reach: i128) -> f64 {
    let mut odds: f64 = 0.0;
    for_each_point([-reach; N], 2 * reach as usize + 1, |z| {
        let moved: [i128; N] = std::array::from_fn(|i| z[i] - shift[i]);
        odds = odds.max(
            (ball_mass(z, 1, scale, 4) / ball_mass(moved, 1, scale, 4))
                .ln()
                .abs(),
        );
    });
    odds
}

/// By integration over every cell around both neighbours: no value tells more than the price, some tell nearly as much, and
/// with 30 % less noise some tell more.
#[test]
fn the_odds_of_neighbours_under_a_ball_are_those_of_the_price() {
    let scale = |distance: u64| {
        ball_noise(distance, "1.00000001".parse().unwrap())
            .scale()
            .units() as f64
    };
    for (found, less) in [
        (
            largest_odds([80], scale(80), 200),
            largest_odds([80], 0.7 * scale(80), 200),
        ),
        (
            largest_odds([48, -64], scale(80), 100),
            largest_odds([48, -64], 0.7 * scale(80), 100),
        ),
    ] {
        println!("a price of 1: {found:.4}, with 30 % less noise {less:.4}");
        assert!(
            (0.99..=1.000_000_011).contains(&found) && less > 1.4,
            "{found} {less}"
        );
    }
    // The same from draws: the half-plane behind the one neighbour, seen from the other.
    let odds = |scale: u64, seed: u8| -> f64 {
        let draws = balls::<2>(scale, seed, DRAWS / 16);
        let beyond = |by: i128| draws.iter().filter(|[x, y]| 3 * x - 4 * y > 5 * by).count() as f64;
        (beyond(100) / beyond(180)).ln()
    };
    let right = odds(80, 54);
    let small = odds(48, 55);
    println!("from draws {right:.3}, with 40 % less noise {small:.3}");
    assert!(
        (0.5..1.02).contains(&right) && small > 1.02,
        "{right} {small}"
    );
}

fn gaussians(sigma: u64, seed: u8, n: usize) -> Vec<i128> {
    let mut values = vec![0; n];
    DiscreteGaussian::new(Scale::new(sigma).unwrap())
        .fill(&mut Generator::frozen([seed; 32]), &mut values);
    values
}

/// The discrete Gaussian law on `-most..=most`.
fn gaussian_law(sigma: f64, most: i128) -> Vec<f64> {
    let weight = |z: i128| (-(z as f64 / sigma).powi(2) / 2.0).exp();
    let whole: f64 = (-(40.0 * sigma) as i128..=(40.0 * sigma) as i128)
        .map(weight)
        .sum();
    (-most..=most).map(|z| weight(z) / whole).collect()
}

/// How far draws are from the discrete Gaussian law: more than 1 rejects.
fn gaussian_misfit(draws: &[i128], sigma: u64) -> f64 {
    let n = draws.len() as f64;
    let most = 3 * i128::from(sigma);
    let law = gaussian_law(sigma as f64, most);
    let mut bins: Vec<(f64, f64)> = law.iter().map(|p| (0.0, n * p)).collect();
    let mut outside = (0.0, n * (1.0 - law.iter().sum::<f64>()));
    for z in draws {
        match usize::try_from(z + most)
            .ok()
            .and_then(|at| bins.get_mut(at))
        {
            Some(bin) => bin.0 += 1.0,
            None => outside.0 += 1.0,
        }
    }
    bins.push(outside);
    chi_square(&bins)
}

#[test]
fn gaussians_have_the_discrete_law() {
    for (seed, sigma) in [(61, 16), (62, 48), (63, 112)] {
        let misfit = gaussian_misfit(&gaussians(sigma, seed, DRAWS), sigma);
        println!("sigma {sigma}: chi-square at {misfit:.3} of its limit");
        assert!(misfit < 1.0, "sigma {sigma}: {misfit}");
    }
    for (drawn, claimed) in [(112, 160), (160, 112)] {
        assert!(gaussian_misfit(&gaussians(drawn, 64, DRAWS / 8), claimed) > 1.0);
    }
    // Laplace noise of the same deviation, and one that keeps both zeros.
    let mut laplace = vec![0; DRAWS / 8];
    DiscreteLaplace::new(Scale::new(80).unwrap())
        .fill(&mut Generator::frozen([65; 32]), &mut laplace);
    assert!(gaussian_misfit(&laplace, 112) > 1.0);
    let right = gaussians(16, 66, DRAWS);
    let zeros: Vec<i128> = right
        .iter()
        .copied()
        .chain(right.iter().copied().filter(|z| *z == 0))
        .collect();
    assert!(gaussian_misfit(&zeros, 16) > 1.0);
}

#[test]
fn large_gaussians_have_their_moments_and_even_low_bits() {
    const N: usize = DRAWS / 4;
    for (seed, sigma) in [
        (67, 1 << 40),
        (68, 16 * ((1 << 41) + 12_345)),
        (69, Scale::LARGEST),
    ] {
        let draws = gaussians(sigma, seed, N);
        let moment = |power: i32| {
            draws
                .iter()
                .map(|z| (*z as f64 / sigma as f64).powi(power))
                .sum::<f64>()
                / N as f64
        };
        // Mean, square and fourth power with their variances.
        for (power, mean, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (4, 3.0, 96.0_f64)] {
            let found = moment(power);
            assert!(
                (found - mean).abs() < TWO_SIDED * (variance / N as f64).sqrt(),
                "{sigma}, power {power}: {found}"
            );
        }
        let reach = TWO_SIDED * (2.0 / N as f64).sqrt();
        assert!((moment(2) * 1.69 - 1.0).abs() > reach && (moment(2) / 1.69 - 1.0).abs() > reach);
        let mut low = [(0.0, N as f64 / 256.0); 256];
        draws.iter().for_each(|z| low[(z & 255) as usize].0 += 1.0);
        assert!(chi_square(&low) < 1.0, "low bits");
    }
}

/// What neighbours `(x, y)` apart lose under two independent discrete Gaussians, summed over every value: the delta at a
/// price, and the Renyi divergence of order 2.
fn gaussian_loss([x, y]: [i128; 2], sigma: f64, price: f64) -> (f64, f64) {
    let most = (9.0 * sigma) as i128;
    let law = gaussian_law(sigma, most + x.abs() + y.abs());
    let at = |z: i128| law[(z + most + x.abs() + y.abs()) as usize];
    let mut delta = 0.0;
    let mut second = 0.0;
    for i in -most..=most {
        for j in -most..=most {
            let p = at(i) * at(j);
            let q = at(i - x) * at(j - y);
            delta += (p - price.exp() * q).max(0.0);
            second += p * p / q;
        }
    }
    (delta, second.ln())
}

/// By summation over every value: the delta and the rho that are paid for are not exceeded, nearly reached, and exceeded with
/// 30 % less noise. Discrete Gaussians of several coordinates are not round: so in one and in two directions.
#[test]
fn neighbours_under_gaussians_lose_what_is_paid_for() {
    for shift in [[50, 0], [30, -40]] {
        let sigma = gaussian_noise(
            50,
            2,
            Price::Approximate {
                epsilon: "1".parse().unwrap(),
                delta: "0.01".parse().unwrap(),
            },
        )
        .scale()
        .units();
        let found = gaussian_loss(shift, sigma as f64, 1.0).0;
        let less = gaussian_loss(shift, 0.7 * sigma as f64, 1.0).0;
        println!("a delta of 0.01: {found:.5}, with 30 % less noise {less:.5}");
        assert!(
            (0.004..=0.01).contains(&found) && less > 0.012,
            "{found} {less}"
        );
        let sigma = gaussian_noise(50, 1, Price::Concentrated("0.25".parse().unwrap()))
            .scale()
            .units();
        let found = gaussian_loss(shift, sigma as f64, 1.0).1;
        let less = gaussian_loss(shift, 0.7 * sigma as f64, 1.0).1;
        println!("a rho of 0.25 at order 2: {found:.5}, with 30 % less noise {less:.5}");
        assert!(
            (0.35..=0.5 + 1e-9).contains(&found) && less > 0.6,
            "{found} {less}"
        );
    }
}

/// At one sensitivity in the 2-norm, 141 values and a delta of 10^-9.
#[test]
fn a_release_has_the_deviation_of_its_law() {
    const VALUES: usize = 141;
    let price = "1".parse().unwrap();
    let delta = "0.000000001".parse().unwrap();
    let exact = Exact::new(vec![7; VALUES]);
    let mut generator = Generator::frozen([70; 32]);
    let gaussian = gaussian_noise(
        1 << 40,
        VALUES,
        Price::Approximate {
            epsilon: price,
            delta,
        },
    );
    let ball = ball_noise(1 << 40, price);
    let mut deviation = |release: &dyn Fn(&mut Generator) -> Vec<i128>| -> f64 {
        let square = |values: Vec<i128>| {
            values.iter().map(|z| ((z - 7) as f64).powi(2)).sum::<f64>() / VALUES as f64
        };
        ((0..400)
            .map(|_| square(release(&mut generator)))
            .sum::<f64>()
            / 400.0)
            .sqrt()
            / f64::from(1 << 20).powi(2)
    };
    let of_gaussian =
        deviation(&|generator| gaussian.release_noisy(&exact, generator).values().to_vec());
    let of_ball = deviation(&|generator| ball.release_noisy(&exact, generator).values().to_vec());
    assert!(
        (of_gaussian / 5.495_266 - 1.0).abs() < 0.03,
        "{of_gaussian}"
    );
    assert!((of_ball / 142.0_f64.sqrt() - 1.0).abs() < 0.03, "{of_ball}");
}

/// A change of these values is a change of every replay: say so in the changelog.
#[test]
fn a_frozen_generator_draws_the_same_for_ever() {
    assert_eq!(gaussians(112, 42, 8), [-67, -33, -229, 25, 55, 64, 148, 25]);
    assert_eq!(
        gaussians(1 << 40, 42, 2),
        [-666_352_113_398, -329_117_749_544]
    );
    assert_eq!(balls::<4>(112, 42, 1), [[39, -50, 330, -37]]);
    assert_eq!(
        balls::<2>(1 << 40, 42, 1),
        [[-304_452_262_300, -593_556_544_789]]
    );
}

#[test]
fn values_at_the_end_of_the_range_do_not_wrap() {
    let exact = Exact::new(vec![i128::MAX, i128::MIN]);
    let ball = ball_noise(1 << 40, "0.01".parse().unwrap());
    let gaussian = gaussian_noise(1 << 40, 1, Price::Concentrated("0.01".parse().unwrap()));
    for seed in 0..16 {
        let mut generator = Generator::frozen([seed; 32]);
        for noisy in [
            ball.release_noisy(&exact, &mut generator),
            gaussian.release_noisy(&exact, &mut generator),
        ] {
            assert!(noisy.values()[0] > i128::MAX / 2 && noisy.values()[1] < i128::MIN / 2);
        }
    }
}

#[test]
fn a_vector_of_any_length_is_released_and_no_two_alike() {
    let ball = ball_noise(1 << 40, "1".parse().unwrap());
    let gaussian = gaussian_noise(1 << 40, 1, Price::Concentrated("1".parse().unwrap()));
    let mut generator = Generator::frozen([73; 32]);
    for n in [0, 1, 2, 63, 64, 65, 4096] {
        let exact = Exact::new(vec![0; n]);
        let mut release = || {
            [
                ball.release_noisy(&exact, &mut generator),
                gaussian.release_noisy(&exact, &mut generator),
            ]
        };
        let first = release();
        let second = release();
        for (first, second) in first.iter().zip(&second) {
            assert!(first.values().len() == n && first.values().iter().all(|z| *z != 0));
            assert!(n == 0 || first != second);
        }
    }
}
