//! Tables of cells: what neighbours change, and whether what is read from them is as near to the truth as its intervals say.

use crate::harness::exact::Opened as _;
use bernstream_functions::tables::CellTables;
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::Target;
use bernstream_release::window::accumulator::{Record, TableLabel};
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::description::{
    AxisDescription, Basis, CellLabel, Cells, Description, TargetDescription as Function,
};
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::tables::{ConfidenceInterval, KernelFit, Tables};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};

const LABELS: [Option<TableLabel>; 3] =
    [None, Some(TableLabel::Number), Some(TableLabel::Classes(3))];

/// Tables of each spline and label on one to three axes.
fn all() -> Vec<(CellTables, Option<TableLabel>)> {
    let steps = [&[5][..], &[4, 7], &[3, 4, 5]];
    let of = |spline: Spline, label: Option<TableLabel>| {
        steps.map(|steps| {
            (
                CellTables::new(&[0.4, 0.3, 0.35][..steps.len()], spline, steps, label).unwrap(),
                label,
            )
        })
    };
    Spline::ALL
        .into_iter()
        .flat_map(|spline| LABELS.into_iter().flat_map(move |label| of(spline, label)))
        .collect()
}

fn values(tables: &CellTables, records: &[Record]) -> Vec<i128> {
    tables
        .evaluate(
            &tables
                .accumulator()
                .filled_accumulator(records.iter().copied()),
        )
        .opened()
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

/// Random records, and those on nodes, in the middles of cells and at the ends, with every label that is extreme.
fn records(tables: &CellTables, label: Option<TableLabel>, rng: &mut ChaCha12Rng) -> Vec<Record> {
    let Basis::Tables(basis) = tables.shape().basis else {
        unreachable!("tables")
    };
    let place = |rng: &mut ChaCha12Rng, m: u32| match rng.random_range(0..4) {
        0 => rng.random(),
        1 => f64::from(rng.random_range(0..=m)) / f64::from(m),
        2 => (f64::from(rng.random_range(0..m)) + 0.5) / f64::from(m),
        _ => f64::from(rng.random_range(0..=1_u32)),
    };
    let of = |rng: &mut ChaCha12Rng| match label {
        None => 0.0,
        Some(TableLabel::Number) => {
            [-1.0, 1.0, 0.0, rng.random_range(-1.0..1.0)][rng.random_range(0..4)]
        }
        Some(TableLabel::Classes(count)) => f64::from(rng.random_range(0..count)),
    };
    let spec = tables.accumulator();
    (0..300)
        .map(|_| {
            let x: Vec<f64> = basis.steps.iter().map(|m| place(rng, *m)).collect();
            spec.record(&x, of(rng))
        })
        .collect()
}

fn claimed(tables: &CellTables, adjacency: Adjacency, contributions: u32) -> [f64; 3] {
    [
        tables.sensitivity(adjacency, contributions).unwrap().0 as f64,
        tables
            .euclidean_sensitivity(adjacency, contributions)
            .unwrap() as f64,
        tables.sup_sensitivity(adjacency, contributions).unwrap() as f64,
    ]
}

#[test]
fn no_neighbours_differ_by_more_than_is_claimed_and_some_by_all_of_it() {
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    for (tables, label) in all() {
        let records = records(&tables, label, &mut rng);
        let one = |record: &Record| values(&tables, std::slice::from_ref(record));
        let none = values(&tables, &[]);
        for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
            let mut most = [0.0_f64; 3];
            for pair in records.windows(2) {
                let absent = norms(&one(&pair[0]), &none);
                let found = match adjacency {
                    Adjacency::AddRemove => absent,
                    Adjacency::ReplaceOne => norms(&one(&pair[0]), &one(&pair[1])),
                };
                // A record that was there and is absent now is a replacement too.
                most.iter_mut()
                    .zip(found.into_iter().zip(absent))
                    .for_each(|(most, (a, b))| *most = most.max(a).max(b));
            }
            let claimed = claimed(&tables, adjacency, 1);
            let shares: Vec<f64> = most
                .iter()
                .zip(&claimed)
                .map(|(found, claimed)| found / claimed)
                .collect();
            println!("{label:?} {adjacency:?}: found / claimed {shares:.4?}");
            assert!(shares.iter().all(|share| *share <= 1.0), "{shares:?}");
            assert_eq!(
                most[0], claimed[0],
                "in the 1-norm all of it: a claim that is one grain smaller is false"
            );
            assert!(shares[1] > 0.99, "{shares:?}");
        }
    }
}

#[test]
fn a_record_is_divided_among_the_tables_and_nothing_of_it_is_lost() {
    let mut rng = ChaCha12Rng::seed_from_u64(2);
    for (tables, label) in all() {
        let others = records(&tables, label, &mut rng);
        for record in &others {
            assert_eq!(
                values(&tables, std::slice::from_ref(record))
                    .iter()
                    .sum::<i128>(),
                1 << 32
            );
        }
        // A user's records, one after the other.
        let more = [&others[..], &[others[0]; 7]].concat();
        let found = norms(&values(&tables, &more), &values(&tables, &others));
        let claimed = claimed(&tables, Adjacency::AddRemove, 7);
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

/// Without noise, what is read is what the records are.
#[test]
fn counts_shares_means_and_quantiles_are_those_of_the_records() {
    let mut rng = ChaCha12Rng::seed_from_u64(3);
    let law = Law {
        records: 20_000,
        bandwidth: 0.1,
        steps: 40,
        spline: Spline::Quadratic,
    };
    let rows = law.rows(&mut rng);
    let synopsis = law.synopsis(&rows, None, 1.0);
    let tables = synopsis.tables().unwrap();
    for [low, high] in [[0.0, 0.25], [0.25, 0.6], [0.5, 1.0]] {
        let inside: Vec<&[f64; 2]> = rows
            .iter()
            .filter(|[x, _]| (low..high).contains(x))
            .collect();
        let range = tables.range(&[[low, high]]).unwrap();
        let count = range.count().value;
        let share = range.share().value;
        let mean = range.mean().unwrap().value;
        let true_mean = inside.iter().map(|[_, y]| y).sum::<f64>() / inside.len() as f64;
        println!(
            "{low} to {high}: {count:.0} of {}, share {share:.4}, mean {mean:.3} of {true_mean:.3}",
            inside.len()
        );
        assert!((count / inside.len() as f64 - 1.0).abs() < 0.02);
        assert!((share - inside.len() as f64 / rows.len() as f64).abs() < 0.01);
        assert!((mean - true_mean).abs() < 0.02);
    }
    let mut sorted: Vec<f64> = rows.iter().map(|[x, _]| *x).collect();
    sorted.sort_by(f64::total_cmp);
    for part in [0.05, 0.25, 0.5, 0.9] {
        let found = tables.quantile(part).unwrap().value;
        let truth = sorted[(part * sorted.len() as f64) as usize];
        assert!((found - truth).abs() < 0.01, "{part}: {found}, not {truth}");
    }
}

/// Records on one axis: two groups, and a label that rises, bends and falls.
struct Law {
    records: usize,
    bandwidth: f64,
    steps: u32,
    spline: Spline,
}

impl Law {
    fn rows(&self, rng: &mut ChaCha12Rng) -> Vec<[f64; 2]> {
        let row = |_| {
            let x: f64 = match rng.random_range(0..3) {
                0 => 0.25 + 0.08 * rng.sample::<f64, _>(StandardNormal),
                1 => 0.7 + 0.12 * rng.sample::<f64, _>(StandardNormal),
                _ => rng.random(),
            };
            let x = x.clamp(0.0, 1.0);
            [
                x,
                ((5.0 * x).sin() * 0.7 + 0.2 * rng.sample::<f64, _>(StandardNormal))
                    .clamp(-1.0, 1.0),
            ]
        };
        (0..self.records).map(row).collect()
    }

    fn target(&self) -> CellTables {
        CellTables::new(
            &[self.bandwidth],
            self.spline,
            &[self.steps],
            Some(TableLabel::Number),
        )
        .unwrap()
    }

    /// A synopsis with a label from -1 to 1; its noise is `times` that which its description tells.
    fn synopsis(
        &self,
        rows: &[[f64; 2]],
        noise: Option<(&mut Generator, NoiseDistribution)>,
        times: f64,
    ) -> Synopsis {
        let target = self.target();
        let epsilon = "1".parse::<Epsilon>().unwrap();
        let spec = target.accumulator();
        let exact = target
            .evaluate(&spec.filled_accumulator(rows.iter().map(|[x, y]| spec.record(&[*x], *y))));
        let law = noise
            .as_ref()
            .map_or(NoiseDistribution::DiscreteLaplace, |(_, law)| *law);
        let price = match law {
            NoiseDistribution::DiscreteGaussian => Price::Concentrated("0.5".parse().unwrap()),
            _ => Price::Pure(epsilon),
        };
        let change = target
            .sensitivity_in(law.norm(), Adjacency::AddRemove, 1)
            .unwrap();
        let mechanism =
            Mechanism::calibrated(law, change, target.shape().value_count(), price).unwrap();
        let unit = target.unit();
        let plain: Vec<f64> = exact
            .opened()
            .iter()
            .map(|value| *value as f64 * unit)
            .collect();
        let values = match noise {
            None => plain,
            Some((generator, _)) => {
                let noisy = mechanism.release_noisy(&exact, generator);
                let noisy = noisy.values().iter().map(|value| *value as f64 * unit);
                noisy
                    .zip(plain)
                    .map(|(noisy, plain)| plain + times * (noisy - plain))
                    .collect()
            }
        };
        let mut about = self.description(law);
        about.noise.scale = mechanism.scale().units() as f64 * unit;
        about.noise.grid = unit;
        about.band = BAND.with(|bands| {
            let mut bands = bands.borrow_mut();
            let key = (law, self.steps);
            let band = bands
                .entry(key)
                .or_insert_with(|| Band::simulate(&target.shape(), law, 1));
            band.scaled_to_noise(&about.noise)
        });
        Synopsis::new(about, values).unwrap()
    }

    fn description(&self, law: NoiseDistribution) -> Description {
        let mut about: Description = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
        about.domain = vec![AxisDescription {
            column: "x".to_owned(),
            min: 0.0,
            max: 1.0,
        }];
        (about.degree, about.order, about.basis) = (1, 1, self.target().shape().basis);
        let label = CellLabel::Number {
            column: "y".to_owned(),
            min: -1.0,
            max: 1.0,
        };
        (about.target, about.noise.law) = (Function::Cells(Cells { label: Some(label) }), law);
        about
    }
}

thread_local! {
    static BAND: std::cell::RefCell<std::collections::HashMap<(NoiseDistribution, u32), Band>> =
        std::cell::RefCell::default();
}

/// In which part of the releases an interval holds what is read without noise.
#[derive(Debug, Default)]
struct Coverage {
    releases: f64,
    count: f64,
    share: f64,
    mean: f64,
    median: f64,
    at_points: [f64; 3],
    everywhere: [f64; 3],
}

const PLACES: u32 = 40;

/// Frozen, with a seed of its own for each release.
fn generator(release: u32) -> Generator {
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&release.to_le_bytes());
    Generator::frozen(seed)
}

fn holds(interval: Option<ConfidenceInterval>, value: f64) -> bool {
    // What is unknown is not excluded.
    interval.is_none_or(|ConfidenceInterval { lower, upper }| {
        (lower - 1e-9..=upper + 1e-9).contains(&value)
    })
}

fn readings(
    tables: &Tables,
    wider: f64,
    x: f64,
) -> [bernstream_synopsis::tables::PointEstimate; 3] {
    let bandwidths: Vec<f64> = tables.bandwidths().iter().map(|b| b * wider).collect();
    let kernel = tables.kernel(Some(&bandwidths)).unwrap();
    [
        kernel.density(&[x]).unwrap(),
        kernel.expected(&[x], KernelFit::Constant).unwrap(),
        kernel.expected(&[x], KernelFit::Linear).unwrap(),
    ]
}

fn coverage(law: &Law, noise: NoiseDistribution, times: f64, releases: u32) -> Coverage {
    let mut rng = ChaCha12Rng::seed_from_u64(7);
    let rows = law.rows(&mut rng);
    let truth = law.synopsis(&rows, None, 1.0);
    let truth = truth.tables().unwrap();
    let mut found = Coverage {
        releases: f64::from(releases),
        ..Coverage::default()
    };
    for release in 0..releases {
        let mut generator = generator(release);
        let noisy = law.synopsis(&rows, Some((&mut generator, noise)), times);
        let noisy = noisy.tables().unwrap();
        let (range, exact) = (
            noisy.range(&[[0.2, 0.5]]).unwrap(),
            truth.range(&[[0.2, 0.5]]).unwrap(),
        );
        let held = |interval, value| f64::from(u8::from(holds(interval, value)));
        found.count += held(range.count().interval, exact.count().value);
        found.share += held(range.share().interval, exact.share().value);
        found.mean += held(range.mean().unwrap().interval, exact.mean().unwrap().value);
        found.median += held(
            noisy.quantile(0.5).unwrap().interval,
            truth.quantile(0.5).unwrap().value,
        );
        let mut everywhere = [true; 3];
        for place in 0..=PLACES {
            for wider in [1.0, 2.0] {
                let x = f64::from(place) / f64::from(PLACES);
                let pairs = readings(&noisy, wider, x)
                    .into_iter()
                    .zip(readings(&truth, wider, x));
                for ((noisy, exact), (at, all)) in
                    pairs.zip(found.at_points.iter_mut().zip(&mut everywhere))
                {
                    *at += held(noisy.pointwise, exact.value) / f64::from(2 * (PLACES + 1));
                    *all &= holds(noisy.simultaneous, exact.value);
                }
            }
        }
        found
            .everywhere
            .iter_mut()
            .zip(everywhere)
            .for_each(|(sum, all)| *sum += f64::from(u8::from(all)));
    }
    found
}

/// Of many releases at least 95 in 100, a share that 300 releases tell to 4 in 100, hold what is read without noise; and with noise that
/// is half as large again as is told, far fewer.
#[test]
fn intervals_hold_what_is_read_without_noise_and_larger_noise_is_found_out() {
    let rich = Law {
        records: 4_000,
        bandwidth: 0.1,
        steps: 16,
        spline: Spline::Quadratic,
    };
    let poor = Law {
        records: 150,
        bandwidth: 0.2,
        steps: 7,
        spline: Spline::Linear,
    };
    let releases = 300;
    let laws = [
        NoiseDistribution::DiscreteLaplace,
        NoiseDistribution::DiscreteGaussian,
    ];
    for (name, law) in [("rich", &rich), ("poor", &poor)] {
        for noise in laws {
            let found = coverage(law, noise, 1.0, releases);
            let part = |sum: f64| sum / found.releases;
            let [count, share, mean, median] =
                [found.count, found.share, found.mean, found.median].map(part);
            let points = found.at_points.map(part);
            let everywhere = found.everywhere.map(part);
            println!(
                "{name} {noise:?}: count {count:.3}, share {share:.3}, mean {mean:.3}, median {median:.3}; density, constant and line at a \
                 point {points:.3?}, everywhere {everywhere:.3?}"
            );
            assert!(
                [count, share, mean, median].iter().all(|part| *part > 0.91),
                "{name} {noise:?}"
            );
            assert!(
                points.iter().chain(&everywhere).all(|part| *part > 0.93),
                "{name} {noise:?}"
            );
        }
    }
    let misled = coverage(&rich, NoiseDistribution::DiscreteLaplace, 1.5, releases);
    println!("noise half as large again: {misled:?}");
    assert!(misled.count / misled.releases < 0.9 && misled.mean / misled.releases < 0.9);
    assert!(
        misled
            .everywhere
            .iter()
            .all(|held| held / misled.releases < 0.85),
        "{misled:?}"
    );
}

/// A law of the noise's tails: the bands of few cells must hold too.
#[test]
fn heaps_do_not_make_intervals_smaller_than_their_noise() {
    let mut rng = ChaCha12Rng::seed_from_u64(5);
    let law = Law {
        records: 0,
        bandwidth: 0.25,
        steps: 4,
        spline: Spline::Box,
    };
    let rows: Vec<[f64; 2]> = (0..2_000)
        .map(|_| [0.5, Distribution::<f64>::sample(&Exp1, &mut rng).min(1.0)])
        .collect();
    let truth = law.synopsis(&rows, None, 1.0);
    let mut held = 0;
    for release in 0..400_u32 {
        let mut generator = generator(release);
        let noisy = law.synopsis(
            &rows,
            Some((&mut generator, NoiseDistribution::DiscreteLaplace)),
            1.0,
        );
        let exact = truth
            .tables()
            .unwrap()
            .kernel(None)
            .unwrap()
            .expected(&[0.5], KernelFit::Constant)
            .unwrap()
            .value;
        let found = noisy
            .tables()
            .unwrap()
            .kernel(None)
            .unwrap()
            .expected(&[0.5], KernelFit::Constant)
            .unwrap();
        held += u32::from(holds(found.pointwise, exact));
    }
    println!("held in {held} of 400");
    assert!(held >= 368, "{held} of 400");
}
