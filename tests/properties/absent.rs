//! `replace_one` promises to hide a record's values, and whether they make it valid: null, not a number and outside a domain that
//! drops are among the other values it may have, and then the record is absent. No target may change by more than it claims for a
//! replacement, in any of the norms that noise is made for, and none may claim 0.

use crate::harness::exact::Opened as _;
use bernstream_functions::bayes::gaussian::GaussianBayes;
use bernstream_functions::bayes::kernel::KernelBayes;
use bernstream_functions::blackbox::{BlackBox, DeclaredChange, LatticeDeclaration};
use bernstream_functions::cells::CellDensity;
use bernstream_functions::covariance::CovarianceDensity;
use bernstream_functions::density::LatticeDensity;
use bernstream_functions::expression::{Expression, Formula, Variable};
use bernstream_functions::key_counts::{CountedStatistic, KeyCounts, StatisticShare};
use bernstream_functions::logistic::{Logistic, LogisticScore};
use bernstream_functions::machine::{KernelMachine, Machine, MachineSettings};
use bernstream_functions::moments::CosineMoments;
use bernstream_functions::regression::LatticeRegression;
use bernstream_functions::sampled::{ClippedTarget, NeighbouringWindows};
use bernstream_functions::sampler::{RecordPrior, SamplingPlan, sample_sensitivity};
use bernstream_functions::whitened::KernelDensity;
use bernstream_functions::whitened::caller;
use bernstream_functions::whitened::caller::{ClosureFunction, KernelBlackBox};
use bernstream_noise::Exact;
use bernstream_release::Target;
use bernstream_release::marginals::Marginals;
use bernstream_release::window::accumulator::Record;
use bernstream_release::window::{DomainAxis, KeyCounting, OutsideRule, RankKey, UnitSum};
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::key_quantiles::RankGrid;
use bernstream_synopsis::machine::{CubeKernel, Loss};
use bernstream_synopsis::sampler::PriorDistribution;
use bernstream_synopsis::{Adjacency, Norm, PointKernel};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

pub const RECORDS: usize = 6;

/// Far from 0, whatever the record is: gone, it takes away far more than it can move.
fn lifted() -> Formula {
    let variable = Variable {
        name: "x".into(),
        min: 0.0,
        max: 1.0,
    };
    Formula::new("1000 + x/100", &[variable], None, 4).unwrap()
}

/// Changes only with the number of records.
fn constant() -> Formula {
    let variable = Variable {
        name: "x".into(),
        min: 0.0,
        max: 1.0,
    };
    Formula::new("5", &[variable], None, 4).unwrap()
}

/// The sum of the labels, a part of what it can be.
fn share(records: &[Record], _: &[f64]) -> f64 {
    records.iter().map(Record::label).sum::<f64>() / RECORDS as f64
}

/// What a record adds there is a triangle.
fn near(records: &[Record], y: &[f64]) -> f64 {
    records
        .iter()
        .map(|d| (1.0 - (y[0] - d.x(0)).abs() / 0.2).max(0.0) / RECORDS as f64)
        .sum()
}

pub fn black_boxes() -> [(&'static str, Box<dyn Target>); 2] {
    let replaced = DeclaredChange {
        sup: 2.0 / RECORDS as f64,
        sum: None,
    };
    let declared = LatticeDeclaration {
        replaced,
        added: None,
        error: 1e-12,
        range: [-1.0, 1.0],
    };
    let lattice =
        BlackBox::with_declaration(ClosureFunction(share), 1, 4, RECORDS as u32, declared).unwrap();
    let added = caller::sobolev_norm(
        0.2,
        1.0 / RECORDS as f64,
        0.4_f64.sqrt() * 5.0 / RECORDS as f64,
    );
    let declared = caller::KernelDeclaration {
        replaced: 2.0 * added,
        added: Some(added),
        error: 1e-14,
        longest: 30.0,
    };
    let kernel = PointKernel::Machine(CubeKernel::Laplacian { bandwidth: 0.2 });
    let points = KernelBlackBox::with_declaration(
        ClosureFunction(near),
        kernel,
        1,
        40,
        RECORDS as u32,
        declared,
    )
    .unwrap();
    [
        ("black box", Box::new(lattice)),
        ("black box on points", Box::new(points)),
    ]
}

/// Equal parts for these statistics, of two keys of which a record has one.
fn counts(statistics: &[CountedStatistic]) -> KeyCounts {
    counts_with_squares(statistics, false)
}

fn counts_with_squares(statistics: &[CountedStatistic], keeps_squares: bool) -> KeyCounts {
    let counting = KeyCounting {
        keeps_squares,
        keys: vec!["a".to_owned(), "b".to_owned()],
        max_keys: 1,
        max_records: 1,
        sum: Some(UnitSum {
            value_min: -1.0,
            value_max: 1.0,
            min: -0.8,
            max: 1.0,
        }),
        unit_bins: Vec::new(),
        grid: Some(RankGrid {
            places: 6,
            block: Some(3),
        }),
        ranks: RankKey::for_pipeline("absent"),
    };
    let mut shares = Vec::new();
    for statistic in statistics {
        shares.push(StatisticShare {
            statistic: *statistic,
            part: 1.0 / statistics.len() as f64,
        });
    }
    KeyCounts::new(counting, &shares, Norm::One).unwrap()
}

/// Counts that no record of a user can be replaced in.
pub fn counts_of_users() -> KeyCounts {
    counts(&[CountedStatistic::Users, CountedStatistic::Sums])
}

pub fn targets() -> Vec<(&'static str, Box<dyn Target>)> {
    let correlated = vec![vec![0.04, -0.02], vec![-0.02, 0.04]];
    let machine = |loss| MachineSettings {
        kernel: CubeKernel::Gaussian { bandwidth: 0.5 },
        loss,
        c: 2.0,
        records: RECORDS as u32,
        dimensions: 1,
        degree: 8,
        landmarks: None,
    };
    let logistic = |score| Logistic::new(2, 5.0, RECORDS as u32, score).unwrap();
    let covariance = vec![vec![0.04, 0.02], vec![0.02, 0.03]];
    let [lattice, points] = black_boxes();
    vec![
        lattice,
        points,
        (
            "cells",
            Box::new(CellDensity::diagonal(&[0.3], Spline::Linear, &[5]).unwrap()),
        ),
        (
            "cells in space",
            Box::new(CellDensity::diagonal(&[0.3, 0.2, 0.25], Spline::Box, &[3, 4, 5]).unwrap()),
        ),
        (
            "cells with a covariance",
            Box::new(CellDensity::covariance(&covariance, Spline::Quadratic, &[8, 9]).unwrap()),
        ),
        (
            "constant expression",
            Box::new(constant().with_proved_ranges().unwrap()),
        ),
        ("density", Box::new(LatticeDensity::new(&[0.5], 8).unwrap())),
        (
            "wide density in the plane",
            Box::new(LatticeDensity::new(&[1.0, 1.0], 4).unwrap()),
        ),
        (
            "density in space",
            Box::new(LatticeDensity::new(&[0.5, 0.6, 0.7], 3).unwrap()),
        ),
        (
            "density with a covariance",
            Box::new(CovarianceDensity::new(&correlated, 6).unwrap()),
        ),
        (
            "density on points",
            Box::new(KernelDensity::diagonal(&[1.0], 8).unwrap()),
        ),
        (
            "covariance on points",
            Box::new(KernelDensity::covariance(&correlated, 30).unwrap()),
        ),
        (
            "regression",
            Box::new(LatticeRegression::new(0.2, 10, 0.5, RECORDS as u32).unwrap()),
        ),
        (
            "Bayes with kernels",
            Box::new(KernelBayes::new(&[0.5, 0.8], 5).unwrap()),
        ),
        (
            "Bayes with Gaussians",
            Box::new(GaussianBayes::new(&[0.3, 0.4], 5).unwrap()),
        ),
        (
            "hinge",
            Box::new(Machine::new(machine(Loss::Hinge)).unwrap()),
        ),
        (
            "kernel logistic",
            Box::new(Machine::new(machine(Loss::Logistic)).unwrap()),
        ),
        (
            "ridge",
            Box::new(Machine::new(machine(Loss::Squared)).unwrap()),
        ),
        (
            "Huber",
            Box::new(Machine::new(machine(Loss::Huber)).unwrap()),
        ),
        (
            "ridge on points",
            Box::new(KernelMachine::new(machine(Loss::Squared), 8).unwrap()),
        ),
        ("linear score", Box::new(logistic(LogisticScore::Linear))),
        (
            "sigmoid",
            Box::new(logistic(LogisticScore::Sigmoid { degree: 4 })),
        ),
        ("moments", Box::new(CosineMoments::new(1, 6).unwrap())),
        (
            "records by key",
            Box::new(counts(&[CountedStatistic::Records])),
        ),
        (
            "values by key",
            Box::new(counts(&[CountedStatistic::Values])),
        ),
        (
            "values with squares by key",
            Box::new(counts_with_squares(&[CountedStatistic::Values], true)),
        ),
        (
            "quantiles by key",
            Box::new(counts(&[CountedStatistic::Ranges])),
        ),
        (
            "moments in the plane",
            Box::new(CosineMoments::new(2, 4).unwrap()),
        ),
        (
            "expression",
            Box::new(lifted().with_proved_ranges().unwrap()),
        ),
        (
            "clipped expression",
            Box::new(lifted().with_clipped_ranges(900.0, 4000.0).unwrap()),
        ),
    ]
}

/// Windows of up to [`RECORDS`] records: one alone, all in a corner, all apart, anywhere.
fn windows(target: &dyn Target) -> Vec<Vec<Record>> {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let spec = target.accumulator();
    let at = |x: f64, label: f64| spec.record(&[x, 1.0 - x, x], label);
    let mut windows = vec![
        vec![at(0.0, 1.0)],
        vec![at(0.5, -1.0)],
        vec![at(1.0, 1.0); RECORDS],
        (0..RECORDS)
            .map(|i| at(i as f64 / (RECORDS - 1) as f64, 1.0))
            .collect(),
        (0..RECORDS)
            .map(|i| at(0.5, if i == 0 { 1.0 } else { -1.0 }))
            .collect(),
    ];
    windows.extend((0..12).map(|_| {
        let mut anywhere = || {
            spec.record(
                &[rng.random(), rng.random(), rng.random()],
                2.0 * rng.random::<f64>() - 1.0,
            )
        };
        (0..RECORDS).map(|_| anywhere()).collect()
    }));
    windows
}

/// In the 1-norm, the sup norm and the 2-norm.
pub fn norms(one: &Exact, other: &Exact) -> [f64; 3] {
    let changes: Vec<f64> = one
        .opened()
        .iter()
        .zip(&other.opened())
        .map(|(a, b)| a.abs_diff(*b) as f64)
        .collect();
    let square: f64 = changes.iter().map(|change| change * change).sum();
    [
        changes.iter().sum(),
        changes.iter().copied().fold(0.0, f64::max),
        square.sqrt(),
    ]
}

#[test]
fn a_record_that_becomes_invalid_changes_no_target_by_more_than_a_replacement_may() {
    for (name, target) in targets() {
        let claimed = [
            target.sensitivity(Adjacency::ReplaceOne, 1).unwrap().0,
            target.sup_sensitivity(Adjacency::ReplaceOne, 1).unwrap(),
            target
                .euclidean_sensitivity(Adjacency::ReplaceOne, 1)
                .unwrap(),
        ];
        for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
            let found = [
                target.sensitivity(adjacency, 1).map(|sum| sum.0),
                target.sup_sensitivity(adjacency, 1),
            ];
            assert!(
                found.into_iter().flatten().all(|claim| claim > 0),
                "{name}: noise for no change is none"
            );
        }
        let mut nearest = [0.0_f64; 3];
        for window in windows(&*target) {
            let with = target.evaluate(
                &target
                    .accumulator()
                    .filled_accumulator(window.iter().copied()),
            );
            for gone in 0..window.len() {
                let mut left = window.clone();
                left.remove(gone);
                let found = norms(
                    &with,
                    &target.evaluate(&target.accumulator().filled_accumulator(left)),
                );
                for ((nearest, found), claimed) in nearest.iter_mut().zip(found).zip(claimed) {
                    *nearest = nearest.max(found / claimed as f64);
                }
            }
        }
        println!("{name}: {nearest:.3?} of the claims");
        assert!(
            nearest.iter().all(|found| *found <= 1.0 + 1e-12),
            "{name}: {nearest:?}"
        );
        assert!(
            nearest.iter().all(|found| *found > 0.03),
            "{name}: nothing changed, {nearest:?}"
        );
        // Where no record can move as far as it goes, all of the claim is needed for one that goes.
        assert!(
            !["expression", "constant expression"].contains(&name) || nearest[1] > 0.99,
            "{name}: {nearest:?}"
        );
    }
}

#[test]
fn counts_for_a_choice_of_bandwidths_change_by_half_of_what_they_may() {
    let density = LatticeDensity::new(&[0.1, 0.2], 5).unwrap();
    let spec = density.accumulator();
    let counts = Marginals::new(density.nodes().clone());
    let record = spec.record(&[0.3, 0.9], 0.0);
    let [with, without] = [vec![record], Vec::new()]
        .map(|records| counts.evaluate(&spec.filled_accumulator(records)));
    let [sum, ..] = norms(&with, &without);
    assert_eq!(
        sum * 2.0,
        counts.sensitivity(Adjacency::ReplaceOne, 1).unwrap().0 as f64
    );
}

fn prior() -> RecordPrior {
    let axis = DomainAxis {
        min: 0.0,
        max: 1.0,
        outside: OutsideRule::Drop,
    };
    RecordPrior::new(
        vec![(axis, PriorDistribution::Uniform { min: 0.0, max: 1.0 })],
        None,
    )
    .unwrap()
}

#[test]
fn a_sampled_change_is_also_that_of_a_record_that_becomes_invalid() {
    let target: std::sync::Arc<Expression> =
        std::sync::Arc::new(lifted().with_proved_ranges().unwrap());
    let unit = target.unit();
    let target = ClippedTarget::new(target, [0, 1 << 50]).unwrap();
    let neighbours = NeighbouringWindows {
        target,
        prior: prior(),
        records: 9,
        adjacency: Adjacency::ReplaceOne,
        seed: 1,
    };
    for pair in 0..20 {
        let found = neighbours.pair_change(pair).sup as f64 * unit;
        assert!(found > 999.0 && found < 1001.0, "{found}");
    }
    let formula = lifted();
    let prior = prior();
    let plan = SamplingPlan::new(200, 0.2).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let values = |records: &[Record]| formula.exact_values(records);
    let draw = |rng: &mut ChaCha20Rng| prior.draw_record(rng);
    let sampled =
        sample_sensitivity(&plan, 9, Adjacency::ReplaceOne, values, draw, &mut rng).unwrap();
    assert!(sampled.sup > 999.0, "{sampled:?}");
}
