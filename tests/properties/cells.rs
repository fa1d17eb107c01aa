//! Noise on cells: what neighbours change, what the form of the function does to a record, and how large the noise is.

use crate::harness::exact::Opened as _;
use bernstream_config::{ReleaseSettings, WorkerSettings};
use bernstream_functions::cells::CellDensity;
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::Target;
use bernstream_release::choice::Candidates;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::{Adjacency, Basis, CellBasis};
use bernstream_synopsis::{Synopsis, cell_error, predict};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

const ADJACENCIES: [Adjacency; 2] = [Adjacency::AddRemove, Adjacency::ReplaceOne];

/// A density of each spline on one to three axes, and one with a full matrix.
fn densities() -> Vec<CellDensity> {
    let steps = [&[5][..], &[4, 7], &[3, 4, 5]];
    let diagonal = |spline: Spline| {
        steps.map(|steps| {
            CellDensity::diagonal(&[0.3, 0.2, 0.25][..steps.len()], spline, steps).unwrap()
        })
    };
    let matrix = [vec![0.04, 0.02], vec![0.02, 0.03]];
    let mut all: Vec<CellDensity> = Spline::ALL.into_iter().flat_map(diagonal).collect();
    all.push(CellDensity::covariance(&matrix, Spline::Quadratic, &[8, 9]).unwrap());
    all
}

fn basis(density: &CellDensity) -> CellBasis {
    density.basis().clone()
}

/// The exact values of records at these places of the unit cube.
fn values(density: &CellDensity, records: &[Vec<f64>]) -> Vec<i128> {
    let spec = density.accumulator();
    let state = spec.filled_accumulator(records.iter().map(|x| spec.record(x, 0.0)));
    density.evaluate(&state).opened()
}

/// Norms of a difference: 1, 2, sup.
fn norms(one: &[i128], other: &[i128]) -> [f64; 3] {
    let away: Vec<f64> = one
        .iter()
        .zip(other)
        .map(|(a, b)| (a - b).unsigned_abs() as f64)
        .collect();
    let sum = away.iter().sum();
    [
        sum,
        away.iter().map(|z| z * z).sum::<f64>().sqrt(),
        away.into_iter().fold(0.0, f64::max),
    ]
}

fn claimed(density: &CellDensity, adjacency: Adjacency, contributions: u32) -> [f64; 3] {
    [
        density.sensitivity(adjacency, contributions).unwrap().0 as f64,
        density
            .euclidean_sensitivity(adjacency, contributions)
            .unwrap() as f64,
        density.sup_sensitivity(adjacency, contributions).unwrap() as f64,
    ]
}

/// Random places, and the nodes, ends and middles of cells, where norms are largest.
fn places(density: &CellDensity, rng: &mut ChaCha12Rng) -> Vec<Vec<f64>> {
    let steps = basis(density).steps;
    let special = |rng: &mut ChaCha12Rng, m: u32| match rng.random_range(0..4) {
        0 => rng.random(),
        1 => f64::from(rng.random_range(0..=m)) / f64::from(m),
        2 => (f64::from(rng.random_range(0..m)) + 0.5) / f64::from(m),
        _ => f64::from(rng.random_range(0..=1_u32)),
    };
    (0..300)
        .map(|_| steps.iter().map(|m| special(rng, *m)).collect())
        .collect()
}

#[test]
fn no_neighbours_differ_by_more_than_is_claimed_and_some_by_all_of_it() {
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    for density in densities() {
        let places = places(&density, &mut rng);
        let none = values(&density, &[]);
        for adjacency in ADJACENCIES {
            let mut most = [0.0_f64; 3];
            for pair in places.windows(2) {
                let found = match adjacency {
                    Adjacency::AddRemove => norms(&values(&density, &pair[..1]), &none),
                    Adjacency::ReplaceOne => {
                        norms(&values(&density, &pair[..1]), &values(&density, &pair[1..]))
                    }
                };
                // A record that was there and is absent now is a replacement too.
                let absent = norms(&values(&density, &pair[..1]), &none);
                for (most, found) in most.iter_mut().zip(found.into_iter().zip(absent)) {
                    *most = most.max(found.0).max(found.1);
                }
            }
            let claimed = claimed(&density, adjacency, 1);
            let shares: Vec<f64> = most
                .iter()
                .zip(&claimed)
                .map(|(found, claimed)| found / claimed)
                .collect();
            println!(
                "{:?} {adjacency:?}: found / claimed {shares:.4?}",
                basis(&density).spline
            );
            assert!(shares.iter().all(|share| *share <= 1.0), "{shares:?}");
            // In the 1-norm all of it, to the grain: a claim that is one grain smaller is false.
            assert_eq!(most[0], claimed[0]);
            assert!(shares[1] > 0.999, "{shares:?}");
        }
    }
}

/// A user's records change the counts one after the other.
#[test]
fn a_unit_with_several_records_changes_so_many_times_as_much() {
    let mut rng = ChaCha12Rng::seed_from_u64(2);
    for density in densities() {
        let others: Vec<Vec<f64>> = places(&density, &mut rng).into_iter().take(20).collect();
        let node: Vec<f64> = basis(&density)
            .nodes()
            .iter()
            .map(|axis| axis[axis.len() / 2])
            .collect();
        let with: Vec<Vec<f64>> = others.iter().cloned().chain(vec![node; 7]).collect();
        let found = norms(&values(&density, &with), &values(&density, &others));
        let claimed = claimed(&density, Adjacency::AddRemove, 7);
        assert!(
            found
                .iter()
                .zip(&claimed)
                .all(|(found, claimed)| found <= claimed),
            "{found:?} {claimed:?}"
        );
        assert_eq!(found[0], claimed[0]);
    }
}

/// Any number of axes: shares add up to one record, whatever it is, and their mean is the record's place.
#[test]
fn shares_of_a_record_add_up_and_lie_around_it() {
    let mut rng = ChaCha12Rng::seed_from_u64(3);
    for density in densities() {
        let nodes = basis(&density).nodes();
        for x in places(&density, &mut rng) {
            let shares = values(&density, std::slice::from_ref(&x));
            assert_eq!(shares.iter().sum::<i128>(), 1 << 32);
            let mut inner = shares.len();
            for ((along, x), m) in nodes.iter().zip(&x).zip(basis(&density).steps) {
                inner /= along.len();
                let mean: f64 = shares
                    .iter()
                    .enumerate()
                    .map(|(i, w)| *w as f64 * along[i / inner % along.len()])
                    .sum::<f64>()
                    / 2_f64.powi(32);
                let most = if basis(&density).spline == Spline::Box {
                    0.5
                } else {
                    1e-3
                };
                assert!((mean - x).abs() <= most / f64::from(m) + 1e-9, "{mean} {x}");
            }
        }
    }
}

/// The largest error of one record that is shared and read without noise, in units of its kernel's peak, on a grid of places in the
/// middle of the domain.
fn form(density: &CellDensity, widths: &[f64], correlation: f64) -> f64 {
    let basis = basis(density);
    let steps = &basis.steps;
    let unit = density.unit();
    let left = 1.0 - correlation * correlation;
    let peak = widths
        .iter()
        .map(|b| 1.0 / ((2.0 * std::f64::consts::PI).sqrt() * b))
        .product::<f64>()
        / left.sqrt();
    let mut worst = 0.0_f64;
    let fine = if widths.len() == 1 { 24 } else { 6 };
    let product = |axes: Vec<Vec<f64>>| {
        axes.into_iter()
            .fold(vec![vec![]], |all: Vec<Vec<f64>>, axis| {
                all.iter()
                    .flat_map(|p| axis.iter().map(move |y| [&p[..], &[*y]].concat()))
                    .collect()
            })
    };
    let middle = |m: &u32| (f64::from(m / 2)) / f64::from(*m);
    let records = product(
        steps
            .iter()
            .map(|m| {
                (0..=fine)
                    .map(|i| middle(m) + f64::from(i) / f64::from(fine * m))
                    .collect()
            })
            .collect(),
    );
    for record in records {
        let shares = values(density, std::slice::from_ref(&record));
        let near = |(x, b): (&f64, &f64)| -> Vec<f64> {
            let reach = if widths.len() == 1 { 60 } else { 8 };
            (-reach..=reach)
                .map(|i| x + 3.0 * b * f64::from(i) / f64::from(reach))
                .collect()
        };
        for y in product(record.iter().zip(widths).map(near).collect()) {
            let read: f64 = basis
                .kernel_values(&y)
                .iter()
                .zip(&shares)
                .map(|(a, c)| a * *c as f64 * unit)
                .sum();
            let away: Vec<f64> = y
                .iter()
                .zip(&record)
                .zip(widths)
                .map(|((y, d), b)| (y - d) / b)
                .collect();
            let cross = if away.len() == 2 {
                2.0 * correlation * away[0] * away[1]
            } else {
                0.0
            };
            let square = (away.iter().map(|z| z * z).sum::<f64>() - cross) / left;
            worst = worst.max((read / peak - (-square / 2.0).exp()).abs());
        }
    }
    worst
}

#[test]
fn the_form_of_a_record_is_off_by_what_is_predicted() {
    for (widths, steps) in [
        (&[0.1][..], &[8][..]),
        (&[0.1], &[12]),
        (&[0.1], &[30]),
        (&[0.1, 0.1], &[10, 10]),
        (&[0.15, 0.1], &[8, 14]),
        (&[0.2, 0.2, 0.2], &[5, 5, 5]),
    ] {
        for spline in Spline::ALL {
            let density = CellDensity::diagonal(widths, spline, steps).unwrap();
            let predicted = cell_error::form_of_a_record(density.basis());
            let found = form(&density, widths, 0.0);
            println!("{widths:?} {steps:?} {spline}: form {found:.5}, predicted {predicted:.5}");
            // Places of a coarse grid miss a little of the largest; a place is known to 1/1024 of a cell.
            let slack = 5e-4
                / widths
                    .iter()
                    .zip(steps)
                    .map(|(b, m)| b * f64::from(*m))
                    .fold(1.0, f64::min);
            assert!(
                found < 1.05 * predicted + slack && found > 0.85 * predicted,
                "{widths:?} {spline}: {found} {predicted}"
            );
        }
    }
}

/// Along the steps of a slanted kernel a linear spline only flattens; the others are over-estimated, never the reverse.
#[test]
fn the_form_under_a_full_covariance_is_not_taken_for_smaller_than_it_is() {
    for (correlation, cells) in [(0.5, 12_u32), (0.8, 14), (-0.8, 20), (0.9, 20), (0.95, 24)] {
        for spline in [Spline::Linear, Spline::Quadratic] {
            let b = 0.1;
            let cross = correlation * 0.01;
            let matrix = [vec![b * b, cross], vec![cross, b * b]];
            let Ok(density) = CellDensity::covariance(&matrix, spline, &[cells, cells]) else {
                continue;
            };
            let predicted = cell_error::form_of_a_record(density.basis());
            let found = form(&density, &[b, b], correlation);
            println!("{correlation} {cells} {spline}: form {found:.5}, predicted {predicted:.5}");
            assert!(
                found < 1.05 * predicted + 1e-3 && predicted < 4.0 * found + 1e-3,
                "{found} {predicted}"
            );
        }
    }
}

#[test]
fn the_predicted_noise_is_that_of_the_simulated_band() {
    for (widths, steps) in [
        (&[0.1][..], &[8][..]),
        (&[0.05], &[20]),
        (&[0.3], &[4]),
        (&[0.1, 0.15], &[10, 8]),
        (&[0.3, 0.3, 0.3], &[4, 4, 4]),
    ] {
        for spline in Spline::ALL {
            let density = CellDensity::diagonal(widths, spline, steps).unwrap();
            for law in [
                NoiseDistribution::DiscreteLaplace,
                NoiseDistribution::DiscreteGaussian,
            ] {
                let predicted = cell_error::mean_noise_sup(density.basis(), law);
                let found = predict::mean_noise_sups(&density.shape(), law, &[1])[0];
                println!(
                    "{widths:?} {steps:?} {spline} {law}: noise {found:.3}, predicted {predicted:.3}"
                );
                assert!(
                    (0.8..1.25).contains(&(predicted / found)),
                    "{widths:?} {spline}: {predicted} {found}"
                );
            }
        }
    }
}

/// How often the noise of real releases stays within the bands, everywhere and at one point; and noise that is 30 % larger.
fn coverage(density: &CellDensity, kind: NoiseDistribution, releases: u32) -> [[f64; 2]; 2] {
    let shape = density.shape();
    let Basis::Cells(basis) = &shape.basis else {
        unreachable!("cells")
    };
    let price = match kind {
        NoiseDistribution::DiscreteGaussian => Price::Concentrated("0.5".parse().unwrap()),
        _ => Price::Pure("0.7".parse::<Epsilon>().unwrap()),
    };
    let change = density
        .sensitivity_in(kind.norm(), Adjacency::AddRemove, 1)
        .unwrap();
    let mechanism = Mechanism::calibrated(kind, change, shape.value_count(), price).unwrap();
    let band = Band::simulate(&shape, kind, 1);
    let mut generator = Generator::frozen([7; 32]);
    let exact = density.evaluate(&density.accumulator().filled_accumulator(std::iter::empty()));
    let steps: u32 = if shape.dimensions == 1 { 200 } else { 30 };
    let along: Vec<f64> = (0..=steps)
        .map(|i| f64::from(i) / f64::from(steps))
        .collect();
    let places = (0..shape.dimensions).fold(vec![vec![]], |all: Vec<Vec<f64>>, _| {
        all.iter()
            .flat_map(|p| along.iter().map(move |y| [&p[..], &[*y]].concat()))
            .collect()
    });
    let rows: Vec<Vec<f64>> = places.iter().map(|y| basis.kernel_values(y)).collect();
    let scale = mechanism.scale().units() as f64;
    let at = rows.len() / 3;
    let length = rows[at].iter().map(|a| a * a).sum::<f64>().sqrt();
    let mut within = [[0, 0]; 2];
    for _ in 0..releases {
        let noise: Vec<f64> = mechanism
            .release_noisy(&exact, &mut generator)
            .values()
            .iter()
            .map(|z| *z as f64 / scale)
            .collect();
        let moved: Vec<f64> = rows
            .iter()
            .map(|row| {
                row.iter()
                    .zip(&noise)
                    .map(|(a, z)| a * z)
                    .sum::<f64>()
                    .abs()
            })
            .collect();
        let largest = moved.iter().copied().fold(0.0, f64::max);
        for (within, factor) in within.iter_mut().zip([1.0, 1.3]) {
            within[0] += u32::from(factor * largest <= band.half_width);
            within[1] += u32::from(factor * moved[at] <= band.pointwise * length);
        }
    }
    within.map(|counts| counts.map(|count| f64::from(count) / f64::from(releases)))
}

#[test]
fn bands_cover_the_noise_of_real_releases_and_larger_noise_is_found_out() {
    let cases = [
        (
            CellDensity::diagonal(&[0.1], Spline::Linear, &[9]).unwrap(),
            4_000,
        ),
        (
            CellDensity::diagonal(&[0.1], Spline::Box, &[6]).unwrap(),
            4_000,
        ),
        (
            CellDensity::diagonal(&[0.2, 0.3], Spline::Quadratic, &[6, 5]).unwrap(),
            1_000,
        ),
        (
            CellDensity::covariance(
                &[vec![0.04, 0.02], vec![0.02, 0.03]],
                Spline::Quadratic,
                &[8, 9],
            )
            .unwrap(),
            1_000,
        ),
    ];
    for (density, releases) in cases {
        for kind in [
            NoiseDistribution::DiscreteLaplace,
            NoiseDistribution::DiscreteGaussian,
        ] {
            let [found, louder] = coverage(&density, kind, releases);
            println!("{:?} {kind}: {found:?} of 0.95", density.basis().steps);
            // Three and a half deviations of the count; a band of the whole cube is a little wider than that of a grid of places.
            let slack = 3.5 * (0.95 * 0.05 / f64::from(releases)).sqrt();
            assert!(
                found
                    .iter()
                    .all(|covered| *covered > 0.95 - slack && *covered < 0.985),
                "{found:?}"
            );
            assert!(louder.iter().all(|covered| *covered < 0.92), "{louder:?}");
        }
    }
}

#[test]
fn what_cannot_be_built_is_refused_in_words() {
    let says = |widths: &[f64], spline, steps: &[u32], words: &str| {
        let message = CellDensity::diagonal(widths, spline, steps)
            .expect_err(words)
            .to_string();
        assert!(message.contains(words), "{message}");
    };
    says(&[], Spline::Box, &[], "1 to 3 axes, not 0");
    says(&[0.1], Spline::Quadratic, &[5], "the steps are too wide");
    says(&[0.1], Spline::Box, &[2], "the steps are too wide");
    says(
        &[0.1, 1.5],
        Spline::Box,
        &[9, 9],
        "the bandwidth of axis 2 is 1.5",
    );
    says(
        &[0.1, 0.1],
        Spline::Linear,
        &[300, 300],
        "90601 cells in all, more than 65536",
    );
    says(&[0.1], Spline::Linear, &[0], "cells in all");
}

/// A release of thirty records with these bandwidths, from a frozen generator.
fn released(bandwidths: &str) -> Synopsis {
    let text = format!(
        "pipeline = \"cells\"\n[input]\ntime = \"time\"\nfiles.path = \"records\"\n\
         [windows]\norigin = \"2026-01-01T00:00:00Z\"\nlength = \"1d\"\nend = \"2026-01-02T00:00:00Z\"\n\
         [privacy]\nunit = \"record\"\nadjacency = \"add_remove\"\nepsilon = 1\n\
         [release]\nname = \"density\"\nepsilon = 1\nnoise = \"cells\"\nspline = \"quadratic\"\nstep = [4, 0.25]\n\
         domain = [{{ column = \"x\", min = 0, max = 40, outside = \"clamp\" }}, {{ column = \"y\", min = -1, max = 1, outside = \"clamp\" }}]\n\
         [release.density]\nbandwidths = {bandwidths}\n[output]\nfiles.path = \"synopses\"\n[ledger]\npath = \"ledger\"\n"
    );
    let settings =
        WorkerSettings::parse(&text, "cells").unwrap_or_else(|faults| panic!("{faults}"));
    let release = &settings.releases[0];
    let target = &release.function.target;
    let mechanism = settings.mechanism_of(release, &release.function).unwrap();
    let spec = target.accumulator();
    let places = (0..30).map(|i| [f64::from(i) / 29.0, f64::from(i * i % 17) / 16.0]);
    let exact = target.evaluate(&spec.filled_accumulator(places.map(|x| spec.record(&x, 0.0))));
    let noisy = mechanism.release_noisy(&exact, &mut Generator::frozen([9; 32]));
    let values = noisy
        .values()
        .iter()
        .map(|value| *value as f64 * release.function.grid_unit())
        .collect();
    let band = |release: &ReleaseSettings| {
        Candidates::new(
            Band::simulate(&release.shape(), release.noise.noise_distribution(), 1),
            Vec::new(),
        )
    };
    let about = settings.plan(band, true).expect("a plan").releases[0]
        .description()
        .clone();
    Synopsis::new(about, target.publish(values)).expect("a synopsis")
}

/// The bandwidth is the reader's: what is read with a larger one is what a release with that one would have been.
#[test]
fn a_larger_bandwidth_is_what_would_have_been_released_with_it() {
    let narrow = released("[4, 0.3]");
    let wide = released("[7.5, 0.3]");
    let read = narrow
        .at_bandwidths(&[7.5, 0.3])
        .expect("a larger bandwidth");
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    assert!(
        read.values()
            .iter()
            .zip(wide.values())
            .all(|(a, b)| near(*a, *b))
    );
    assert_eq!(
        (&read.description().target, &read.description().basis),
        (&wide.description().target, &wide.description().basis)
    );
    for point in [[3.0, -0.9], [20.0, 0.1], [40.0, 1.0]] {
        assert!(near(
            read.evaluate(&point).unwrap(),
            wide.evaluate(&point).unwrap()
        ));
        assert!(near(
            read.half_width(&point).unwrap(),
            wide.half_width(&point).unwrap()
        ));
        assert!(near(
            read.pointwise_half_width(&point).unwrap(),
            wide.pointwise_half_width(&point).unwrap()
        ));
        // And it is another function than the released one, with less noise.
        assert!(!near(
            read.evaluate(&point).unwrap(),
            narrow.evaluate(&point).unwrap()
        ));
        assert!(read.half_width(&point).unwrap() < 0.7 * narrow.half_width(&point).unwrap());
    }
    for wrong in [&[3.9, 0.3][..], &[4.0], &[4.0, 2.1], &[f64::NAN, 0.3]] {
        let why = narrow
            .at_bandwidths(wrong)
            .expect_err("it is refused")
            .to_string();
        assert!(
            why.contains("none smaller than the released [4.0, 0.3]"),
            "{why}"
        );
    }
}
