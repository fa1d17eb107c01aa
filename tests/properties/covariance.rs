//! How much a record can change a density with a full covariance matrix, against searches that try to change it more; and
//! how near the lattice values are to the true intensity.

use std::f64::consts::PI;

use bernstream_functions::covariance::{CovarianceDensity, lattice_sum};
use bernstream_noise::Exact;
use bernstream_release::Target;
use bernstream_synopsis::Adjacency;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::change;
use crate::harness::exact::Opened as _;

type Record = Vec<f64>;

/// Bandwidths, correlations in the order 12, 13, 23, and degree.
type Case = (&'static [f64], &'static [f64], u32);

/// Round and thin, fewer lattice points than widths and more than cells, 2-D and 3-D.
const CASES: [Case; 7] = [
    (&[0.1, 0.2], &[0.5], 8),
    (&[0.1, 0.1], &[0.95], 12),
    (&[0.1, 0.1], &[0.95], 3),
    (&[0.1, 0.3], &[-0.8], 6),
    (&[0.5, 0.4], &[0.6], 21),
    (&[0.3, 0.4, 0.35], &[0.5, -0.3, 0.3], 3),
    (&[0.2, 0.2, 0.2], &[0.7, 0.7, 0.7], 2),
];

fn matrix(bandwidths: &[f64], correlations: &[f64]) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = bandwidths
        .iter()
        .map(|b| bandwidths.iter().map(|c| b * c).collect())
        .collect();
    let pairs = [(0, 1), (0, 2), (1, 2)];
    for ((i, j), correlation) in pairs.into_iter().zip(correlations) {
        rows[i][j] *= correlation;
        rows[j][i] *= correlation;
    }
    rows
}

/// `K_H(0)`.
fn peak(h: &[Vec<f64>]) -> f64 {
    let minor = |i: usize, j: usize| h[0][i] * h[1][j] - h[0][j] * h[1][i];
    let determinant = match h {
        [_, _] => minor(0, 1),
        _ => h[2][0] * minor(1, 2) - h[2][1] * minor(0, 2) + h[2][2] * minor(0, 1),
    };
    ((2.0 * PI).powi(h.len() as i32) * determinant).powf(-0.5)
}

fn evaluate(density: &CovarianceDensity, records: &[Record]) -> Exact {
    let spec = density.accumulator();
    density
        .evaluate(&spec.filled_accumulator(records.iter().map(|record| spec.record(record, 0.0))))
}

/// The difference that the records of `pair` make beside `others`, the second one only if a
/// record is replaced.
fn difference(
    density: &CovarianceDensity,
    others: &[Record],
    pair: &[Record; 2],
    adjacency: Adjacency,
) -> [u128; 3] {
    let beside = |record: &[Record]| evaluate(density, &[others, record].concat());
    let one = beside(&pair[..1]);
    let other = beside(if adjacency == Adjacency::ReplaceOne {
        &pair[1..]
    } else {
        &[]
    });
    change::between(&one, &other)
}

/// Found over claimed, for the 1-norm, the sup norm and the 2-norm: random starts, the best of them improved by ever smaller steps.
fn tightness((bandwidths, correlations, degree): Case, adjacency: Adjacency) -> [f64; 3] {
    let density = CovarianceDensity::new(&matrix(bandwidths, correlations), degree).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let others: Vec<Record> = (0..20)
        .map(|_| bandwidths.iter().map(|_| rng.random()).collect())
        .collect();
    let claimed = change::claims(&density, adjacency, 1);
    [0, 1, 2].map(|norm| {
        let start = |i: usize, rng: &mut ChaCha20Rng| {
            // Lattice points too, where narrow kernels are largest; and corners, where two records are farthest apart.
            let k = f64::from(degree);
            let snap = |x: f64| match i % 3 {
                0 => x,
                1 => (x * k).round() / k,
                _ => x.round(),
            };
            [(); 2].map(|()| {
                bandwidths
                    .iter()
                    .map(|_| snap(rng.random()))
                    .collect::<Record>()
            })
        };
        let change = |pair: &[Record; 2]| difference(&density, &others, pair, adjacency)[norm];
        let starts: Vec<_> = (0..45).map(|i| start(i, &mut rng)).collect();
        let mut best = starts.into_iter().max_by_key(change).unwrap();
        let mut found = change(&best);
        for round in 0..90 {
            let step = 0.3 * 0.94_f64.powi(round);
            let moved = best.clone().map(|record| {
                record
                    .iter()
                    .map(|x| (x + step * (2.0 * rng.random::<f64>() - 1.0)).clamp(0.0, 1.0))
                    .collect()
            });
            let changed = change(&moved);
            if changed > found {
                (found, best) = (changed, moved);
            }
        }
        found as f64 / claimed[norm]
    })
}

#[test]
fn no_record_changes_the_lattice_by_more_than_claimed_and_some_nearly_do() {
    for case in CASES {
        let found = tightness(case, Adjacency::AddRemove);
        println!("add-remove {case:?}: {found:.4?} of the claim");
        assert!(
            found.iter().all(|found| (0.97..=1.0).contains(found)),
            "{case:?}: {found:?}"
        );
        assert!(
            found.iter().all(|found| found / 0.7 > 1.0),
            "a claim 30 % too small would be found out: {found:?}"
        );
    }
}

#[test]
fn no_replacement_changes_the_lattice_by_more_than_claimed_and_some_nearly_do() {
    for case in CASES {
        let bandwidths = case.0;
        let found = tightness(case, Adjacency::ReplaceOne);
        let [sum, sup, length] = found;
        println!("replace-one {case:?}: {found:.4?} of the claim");
        assert!(
            found.iter().all(|found| *found <= 1.0),
            "{case:?}: {found:?}"
        );
        // Two wide kernels in 3-D share most lattice points, and there are too many pairs of cells to look for the widest:
        // the claim is that of two kernels that share none, and 0.80 of it is found.
        let near = if bandwidths == [0.3, 0.4, 0.35] {
            0.75
        } else {
            0.95
        };
        assert!(
            sum > near && sup > 0.95 && length > near,
            "{case:?}: {found:?}"
        );
        assert!(
            found.iter().all(|found| found / 0.7 > 1.0),
            "a claim 30 % too small would be found out: {found:?}"
        );
    }
}

#[test]
fn sensitivities_are_within_a_percent_an_axis_of_the_closed_form() {
    for case in CASES {
        let (bandwidths, correlations, degree) = case;
        let h = matrix(bandwidths, correlations);
        let density = CovarianceDensity::new(&h, degree).unwrap();
        let claimed =
            density.sensitivity(Adjacency::AddRemove, 1).unwrap().0 as f64 * density.unit();
        let ratio = claimed / lattice_sum(&h, degree).unwrap();
        println!("{case:?}: {ratio:.4} of the closed form");
        assert!(
            ratio < 1.01_f64.powi(bandwidths.len() as i32),
            "{case:?}: {ratio}"
        );
        // The closed form counts lattice points outside the cube too, which wide kernels reach.
        assert!(
            ratio > 0.98 || bandwidths.iter().any(|b| *b > 0.15),
            "{case:?}: {ratio}"
        );
        let both = density.sensitivity(Adjacency::ReplaceOne, 1).unwrap().0 as f64 * density.unit();
        assert!(both <= 2.0 * claimed, "{case:?}");
        // The square of a kernel is one of half its covariance, its peak's `2^(-l/2)` times as large.
        let half: Vec<Vec<f64>> = h
            .iter()
            .map(|row| row.iter().map(|entry| entry / 2.0).collect())
            .collect();
        let peaks = lattice_sum(&half, degree).unwrap() * peak(&h)
            / 2.0_f64.powf(bandwidths.len() as f64 / 2.0);
        let length = density
            .euclidean_sensitivity(Adjacency::AddRemove, 1)
            .unwrap() as f64
            * density.unit();
        let ratio = length / peaks.sqrt();
        println!("{case:?}: {ratio:.4} of the closed form in the 2-norm");
        assert!(
            ratio < 1.01_f64.powi(bandwidths.len() as i32),
            "{case:?}: {ratio}"
        );
        assert!(
            ratio > 0.98 || bandwidths.iter().any(|b| *b > 0.15),
            "{case:?}: {ratio}"
        );
    }
}

/// The example in `docs/proofs/densities.md`: the diagonal alone would promise too little.
#[test]
fn a_thin_kernel_changes_more_than_the_product_of_its_axes() {
    let b = 0.05;
    let k = 20;
    let density = CovarianceDensity::new(&matrix(&[b, b], &[0.97]), k).unwrap();
    let axis: f64 = (-40..=40)
        .map(|j| {
            (-0.5 * (f64::from(j) / (b * f64::from(k))).powi(2)).exp() / ((2.0 * PI).sqrt() * b)
        })
        .sum();
    let found = difference(
        &density,
        &[],
        &[vec![0.5, 0.5], vec![]],
        Adjacency::AddRemove,
    )[0] as f64
        * density.unit();
    let claimed = density.sensitivity(Adjacency::AddRemove, 1).unwrap().0 as f64 * density.unit();
    println!(
        "found {found:.1}, claimed {claimed:.1}, the product of the axes {:.1}",
        axis * axis
    );
    assert!((axis * axis - 400.0).abs() < 1.0);
    assert!((claimed / 652.0 - 1.0).abs() < 0.02 && found > 0.97 * claimed && found <= claimed);
}

/// `tests/data/covariance.py` writes lines of a name, `k`, `H`, records and lattice values; those of scipy.
#[test]
fn lattice_values_are_within_a_four_thousandth_of_a_peak_a_record_and_axis() {
    let text = include_str!("../data/covariance.txt");
    for line in text.lines() {
        let name = line.split('|').next().unwrap();
        let parts: Vec<Vec<f64>> = line
            .split('|')
            .skip(1)
            .map(|part| part.split(' ').map(|n| n.parse().unwrap()).collect())
            .collect();
        let [degree, h, records, expected] = &parts[..] else {
            panic!("{line}")
        };
        let axes = if h.len() == 4 { 2 } else { 3 };
        let rows =
            |flat: &[f64]| -> Vec<Vec<f64>> { flat.chunks(axes).map(<[f64]>::to_vec).collect() };
        let density = CovarianceDensity::new(&rows(h), degree[0] as u32).unwrap();
        let records = rows(records);
        let exact = evaluate(&density, &records);
        assert_eq!(exact.opened().len(), expected.len());
        let peak = density.unit() * 2_f64.powi(32);
        let values = exact.opened();
        let errors = values
            .iter()
            .zip(expected)
            .map(|(v, e)| (*v as f64 * density.unit() - e).abs());
        let error = errors.fold(0.0, f64::max) / peak / records.len() as f64;
        println!("{name}: {error:.1e} of a peak a record");
        assert!(error < 2.5e-4 * axes as f64, "{name}: {error}");
        // One record at a time, where errors cannot cancel.
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let narrow = rows(h);
        for _ in 0..20 {
            let record: Record = (0..axes).map(|_| rng.random()).collect();
            let worst = single(&density, &narrow, degree[0] as usize, &record) / peak;
            assert!(worst < 2.5e-4 * axes as f64, "{name}: {worst}");
        }
    }
    assert_eq!(text.lines().count(), 5);
}

/// The largest error over the lattice for one record in two dimensions, by the formula; 0 in three.
fn single(density: &CovarianceDensity, h: &[Vec<f64>], k: usize, record: &Record) -> f64 {
    if h.len() != 2 {
        return 0.0;
    }
    let determinant = h[0][0] * h[1][1] - h[0][1] * h[0][1];
    let exact = evaluate(density, std::slice::from_ref(record));
    let values = exact.opened();
    let errors = values.iter().enumerate().map(|(index, value)| {
        let x = (index / (k + 1)) as f64 / k as f64 - record[0];
        let y = (index % (k + 1)) as f64 / k as f64 - record[1];
        let squared = (h[1][1] * x * x - 2.0 * h[0][1] * x * y + h[0][0] * y * y) / determinant;
        let expected = (-0.5 * squared).exp() / (2.0 * PI * determinant.sqrt());
        (*value as f64 * density.unit() - expected).abs()
    });
    errors.fold(0.0, f64::max)
}

#[test]
fn the_intensity_of_one_record_has_mass_one() {
    for (bandwidths, correlations, degree) in [
        (&[0.07, 0.05][..], &[0.6][..], 60),
        (&[0.09, 0.09], &[-0.9], 99),
        (&[0.1, 0.1, 0.1], &[0.3, 0.2, -0.2], 14),
    ] {
        let density = CovarianceDensity::new(&matrix(bandwidths, correlations), degree).unwrap();
        let record: Record = [0.5, 0.47, 0.51][..bandwidths.len()].to_vec();
        let sum: i128 = evaluate(&density, &[record]).opened().iter().sum();
        let mass = sum as f64 * density.unit() / f64::from(degree).powi(bandwidths.len() as i32);
        println!("{bandwidths:?}: mass {mass:.9}");
        assert!((mass - 1.0).abs() < 1e-5, "{bandwidths:?}: {mass}");
    }
}

#[test]
fn the_order_and_the_labels_of_records_do_not_matter() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let density = CovarianceDensity::new(&matrix(&[0.1, 0.2], &[0.5]), 10).unwrap();
    let mut records: Vec<Record> = (0..300).map(|_| vec![rng.random(), rng.random()]).collect();
    let exact = evaluate(&density, &records).opened();
    records.reverse();
    let spec = density.accumulator();
    let labelled = density
        .evaluate(&spec.filled_accumulator(records.iter().map(|record| spec.record(record, 0.7))));
    assert_eq!(labelled.opened(), exact);
    assert_ne!(evaluate(&density, &records[1..]).opened(), exact);
}

/// Records on and beyond the border, and all in one place.
#[test]
fn degenerate_windows_are_finite_and_of_the_same_shape() {
    let density = CovarianceDensity::new(&matrix(&[0.1, 0.2], &[0.5]), 10).unwrap();
    let one = evaluate(&density, &[vec![0.0, 1.0]]).opened();
    assert_eq!(evaluate(&density, &[vec![-5.0, 7.0]]).opened(), one);
    let many = evaluate(&density, &vec![vec![0.0, 1.0]; 1000]);
    assert_eq!(many.opened().len(), density.shape().value_count());
    for (many, one) in many.opened().iter().zip(&one) {
        assert!((many - 1000 * one).abs() <= 500, "{many} {one}");
    }
}
