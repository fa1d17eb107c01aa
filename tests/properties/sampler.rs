//! The sensitivity sampler: its choices are those of the R package, they cover as claimed, and less would not.

use bernstream_functions::blackbox;
use bernstream_functions::blackbox::{BlackBox, RecordFunction};
use bernstream_functions::expression;
use bernstream_functions::sampler::{
    RecordPrior, SampledSensitivity, SamplingPlan, sample_sensitivity, sample_summand,
};
use bernstream_release::Target;
use bernstream_release::window::accumulator::Record;
use bernstream_release::window::{DomainAxis, OutsideRule, RecordLabel};
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::sampler::PriorDistribution;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::harness::exact::Opened as _;
use crate::priestley_chao::PriestleyChao;

#[test]
fn samples_order_and_rho_are_those_of_the_r_package() {
    let recorded = include_str!("../data/sampler.txt");
    assert!(recorded.lines().count() >= 16);
    for line in recorded.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |i: usize| words[i].parse::<f64>().ok();
        let plan = match (number(0), number(1)) {
            (Some(m), Some(gamma)) => SamplingPlan::new(m as u32, gamma),
            (Some(m), None) => SamplingPlan::for_samples(m as u32),
            (None, gamma) => SamplingPlan::for_gamma(gamma.unwrap()),
        }
        .unwrap();
        let near = |found: f64, i: usize| (found / number(i).unwrap() - 1.0).abs() < 1e-9;
        assert!(
            f64::from(plan.samples) == number(2).unwrap()
                && f64::from(plan.order) == number(4).unwrap(),
            "{line}"
        );
        assert!(near(plan.gamma, 3) && near(plan.rho, 5), "{line}: {plan:?}");
    }
    // The vignette's: 500 pairs for a gamma of 0.2.
    let vignette = SamplingPlan::new(500, 0.2).unwrap();
    assert!(vignette.order == 439 && (vignette.rho - 0.007_109).abs() < 1e-6);
}

#[test]
fn the_choice_of_rho_is_the_best() {
    let margin = |rho: f64, m: u32| ((1.0 / rho).ln() / (2.0 * f64::from(m))).sqrt();
    for m in [10, 100, 500, 12_345] {
        let plan = SamplingPlan::for_samples(m).unwrap();
        for other in [0.8, 0.99, 1.01, 1.25].map(|factor| factor * plan.rho) {
            assert!(other + margin(other, m) > plan.gamma, "{m}");
        }
    }
    for gamma in [0.4, 0.2, 0.05] {
        let plan = SamplingPlan::for_gamma(gamma).unwrap();
        for rho in (1..1000).map(|i| gamma * f64::from(i) / 1000.0) {
            let needed = (1.0 / rho).ln() / (2.0 * (gamma - rho).powi(2));
            assert!(
                needed.ceil() >= f64::from(plan.samples),
                "{gamma} {rho}: {needed}"
            );
        }
    }
}

/// The chance that the `k`-th of `m` draws lies below the `quantile`: that at least `k` of them do, exactly.
fn missed(m: u32, k: u32, quantile: f64) -> f64 {
    let mut log_choose = 0.0;
    let mut chance = 0.0;
    for i in 0..=m {
        if i >= k {
            chance += (log_choose
                + f64::from(i) * quantile.ln()
                + f64::from(m - i) * (1.0 - quantile).ln())
            .exp();
        }
        log_choose += f64::from(m - i).ln() - f64::from(i + 1).ln();
    }
    chance
}

#[test]
fn the_order_statistic_covers_with_the_stated_confidence_by_exact_arithmetic() {
    assert!(
        (missed(10, 10, 0.5) - 0.5_f64.powi(10)).abs() < 1e-12
            && (missed(7, 0, 0.3) - 1.0).abs() < 1e-12
    );
    for (m, gamma) in [(500, 0.2), (100, 0.2), (1000, 0.1), (61, 0.2), (1305, 0.05)] {
        let plan = SamplingPlan::new(m, gamma).unwrap();
        let quantile = 1.0 - gamma + plan.rho;
        let missed_at = |order| missed(m, order, quantile);
        println!(
            "m = {m}, gamma = {gamma}: missed {:.2e}, allowed {:.2e}",
            missed_at(plan.order),
            plan.rho
        );
        assert!(missed_at(plan.order) <= plan.rho, "{m} {gamma}");
        // The quantile of the sample itself, without the margin, misses about half the time.
        let plain = (f64::from(m) * quantile).ceil() as u32;
        assert!(
            missed_at(plain) > 10.0 * plan.rho,
            "{m} {gamma}: {}",
            missed_at(plain)
        );
    }
}

/// One record whose place is the function: the change between two uniform records is triangular.
#[test]
fn sampled_changes_cover_a_known_distribution() {
    let plan = SamplingPlan::new(200, 0.2).unwrap();
    let quantile = 1.0 - plan.gamma + plan.rho;
    let wanted = 1.0 - (1.0 - quantile).sqrt();
    let run = |order: u32, seed: u64| {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let plan = SamplingPlan { order, ..plan };
        // Without the record its middle: then no change is larger than half, which is below the quantile.
        let values = |records: &[Record]| vec![records.first().map_or(0.5, |record| record.x(0))];
        let draw = |rng: &mut ChaCha20Rng| Record::new(&[rng.random()], 0.0);
        sample_sensitivity(&plan, 1, Adjacency::ReplaceOne, values, draw, &mut rng).unwrap()
    };
    let runs = 1_000;
    let missed = |order| {
        (0..runs)
            .filter(|seed| run(order, *seed).sup < wanted)
            .count()
    };
    let with = missed(plan.order);
    let without = missed((200.0 * quantile).ceil() as u32);
    println!(
        "missed {with} of {runs}, without the margin {without}; allowed {:.1}",
        plan.rho * runs as f64
    );
    // Half of the runs miss without the margin; with it, the exact chance is 4e-4.
    assert!((with as f64) < plan.rho * runs as f64, "{with}");
    assert!(without as f64 > 10.0 * plan.rho * runs as f64, "{without}");
    assert_eq!(run(plan.order, 7), run(plan.order, 7));
}

fn axis(min: f64, max: f64) -> DomainAxis {
    DomainAxis {
        min,
        max,
        outside: OutsideRule::Clamp,
    }
}

/// The vignette's prior has labels that depend on the place; here they are independent.
fn prior() -> RecordPrior {
    let label = (
        RecordLabel::Number(axis(-1.0, 1.0)),
        PriorDistribution::Normal {
            mean: 0.0,
            deviation: 0.5,
        },
    );
    RecordPrior::new(
        vec![(
            axis(0.0, 1.0),
            PriorDistribution::Uniform { min: 0.0, max: 1.0 },
        )],
        Some(label),
    )
    .unwrap()
}

fn vignette(adjacency: Adjacency) -> SampledSensitivity {
    let function = PriestleyChao {
        bandwidth: 0.1,
        gap: f64::INFINITY,
    };
    let shape = blackbox::lattice_shape(1, 25).unwrap();
    let values =
        |records: &[Record]| blackbox::lattice_values(&function, &shape, [-5.0, 5.0], records);
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let prior = prior();
    sample_sensitivity(
        &SamplingPlan::new(500, 0.2).unwrap(),
        250,
        adjacency,
        values,
        |rng| prior.draw_record(rng),
        &mut rng,
    )
    .unwrap()
}

#[test]
fn the_vignettes_regression_is_sampled_and_released() {
    let sampled = vignette(Adjacency::ReplaceOne);
    println!("{sampled:?}");
    assert!(sampled.order == 439 && sampled.records == 250);
    // Without a clip the worst case is a gap of the whole domain: about 2 / b. Random data has gaps of a few 250ths.
    assert!(
        sampled.sup > 0.01 && sampled.sup < 0.5 && sampled.sum < 26.0 * sampled.sup,
        "{sampled:?}"
    );
    let target = BlackBox::with_sample(
        PriestleyChao {
            bandwidth: 0.1,
            gap: f64::INFINITY,
        },
        1,
        25,
        [-5.0, 5.0],
        &sampled,
    )
    .unwrap();
    assert_eq!(target.gamma(), Some(0.2));
    let sensitivity =
        target.sensitivity(Adjacency::ReplaceOne, 1).unwrap().0 as f64 * target.unit();
    assert!((sensitivity / sampled.sum - 1.0).abs() < 1e-6);
    assert!(
        target.sensitivity(Adjacency::AddRemove, 1).is_err()
            && target.sensitivity(Adjacency::ReplaceOne, 2).is_err()
    );
    // The failures were counted for the 1-norm: the root of its product with the sup norm would fail wherever one does.
    let one = Adjacency::ReplaceOne;
    let euclidean = target
        .euclidean_sensitivity(Adjacency::ReplaceOne, 1)
        .unwrap();
    assert_eq!(euclidean, target.sensitivity(one, 1).unwrap().0);
    // Fresh pairs: no more than gamma of them change by more. A fifth of 400 is 80.
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let prior = prior();
    let over = (0..400).filter(|_| {
        let mut records: Vec<Record> = (0..251).map(|_| prior.draw_record(&mut rng)).collect();
        let one = target.evaluate(
            &target
                .accumulator()
                .filled_accumulator(records[1..].iter().copied()),
        );
        records.swap(0, 1);
        let other = target.evaluate(
            &target
                .accumulator()
                .filled_accumulator(records[1..].iter().copied()),
        );
        let change: u128 = one
            .opened()
            .iter()
            .zip(&other.opened())
            .map(|(a, b)| a.abs_diff(*b))
            .sum();
        change > u128::from(target.sensitivity(Adjacency::ReplaceOne, 1).unwrap().0)
    });
    let over = over.count();
    println!("{over} of 400 fresh pairs change by more");
    assert!(over > 0 && over < 80, "{over}");
}

#[test]
fn what_is_sampled_under_add_remove_covers_both() {
    let replaced = vignette(Adjacency::ReplaceOne);
    let added = vignette(Adjacency::AddRemove);
    assert!(
        added.sup >= 0.9 * replaced.sup && added.sum >= 0.9 * replaced.sum,
        "{replaced:?} {added:?}"
    );
    let target = BlackBox::with_sample(
        PriestleyChao {
            bandwidth: 0.1,
            gap: f64::INFINITY,
        },
        1,
        25,
        [-5.0, 5.0],
        &added,
    )
    .unwrap();
    assert_eq!(
        target.sensitivity(Adjacency::AddRemove, 1).unwrap(),
        target.sensitivity(Adjacency::ReplaceOne, 1).unwrap()
    );
}

/// For a sum over records the sample is what single records add: a clip that distorts few of them, and a plain guarantee.
#[test]
fn a_sampled_clip_for_an_expression_distorts_few_records() {
    let variable = expression::Variable {
        name: "x".into(),
        min: 0.0,
        max: 1.0,
    };
    let formula = expression::Formula::new(
        "exp(3*abs(x - 0.5)) - 1/(2.1 - at.x)",
        &[variable],
        None,
        10,
    )
    .unwrap();
    let prior = RecordPrior::new(
        vec![(
            axis(0.0, 1.0),
            PriorDistribution::Normal {
                mean: 0.5,
                deviation: 0.1,
            },
        )],
        None,
    )
    .unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    let plan = SamplingPlan::for_gamma(0.1).unwrap();
    let draw = |rng: &mut ChaCha20Rng| prior.draw_record(rng);
    let sampled = sample_summand(
        &plan,
        |records| formula.exact_values(records),
        draw,
        &mut rng,
    )
    .unwrap();
    let proved = formula.clone().with_proved_ranges().unwrap();
    let clipped = formula
        .clone()
        .with_clipped_ranges(sampled.sup, sampled.sum)
        .unwrap();
    let [_, claimed] = proved.natural_bounds(Adjacency::AddRemove);
    println!("proved {claimed:.3}, sampled {:.3}", sampled.sum);
    assert!(sampled.sum < 0.7 * claimed);
    let distorted = (0..500).filter(|_| {
        let record = [prior.draw_record(&mut rng)];
        let values = |target: &expression::Expression| -> Vec<f64> {
            let exact = target.evaluate(&target.accumulator().filled_accumulator(record));
            exact
                .opened()
                .iter()
                .map(|value| *value as f64 * target.unit())
                .collect()
        };
        values(&proved)
            .iter()
            .zip(values(&clipped))
            .any(|(one, other)| (one - other).abs() > 1e-6)
    });
    let distorted = distorted.count();
    println!("{distorted} of 500 records are clipped");
    assert!(distorted > 0 && distorted < 50, "{distorted}");
}

#[test]
fn priors_draw_what_they_say() {
    let text = r#"{"normal":{"mean":0.0,"deviation":10.0}}"#;
    let law: PriorDistribution = serde_json::from_str(text).unwrap();
    assert_eq!(
        law,
        PriorDistribution::Normal {
            mean: 0.0,
            deviation: 10.0
        }
    );
    assert!(
        serde_json::from_str::<PriorDistribution>(
            r#"{"uniform":{"min":0.0,"max":1.0,"mode":0.5}}"#
        )
        .is_err()
    );
    let points = PriorDistribution::Points {
        values: vec![0.0, 5.0, 20.0],
        weights: Some(vec![1.0, 3.0, 0.0]),
    };
    let label = Some((
        RecordLabel::Above(2.0),
        PriorDistribution::Points {
            values: vec![1.0, 2.0, 3.0],
            weights: None,
        },
    ));
    let axes = vec![
        (axis(-10.0, 10.0), law),
        (axis(0.0, 10.0), points),
        (
            axis(0.0, 1.0),
            PriorDistribution::Uniform { min: 0.0, max: 0.5 },
        ),
    ];
    let prior = RecordPrior::new(axes, label).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let records: Vec<Record> = (0..4_000).map(|_| prior.draw_record(&mut rng)).collect();
    let share = |is: &dyn Fn(&Record) -> bool| {
        records.iter().filter(|record| is(record)).count() as f64 / 4_000.0
    };
    // Five standard deviations of a share are at most 0.04.
    for (found, meant) in [
        (share(&|r| r.x(0) == 0.0), 0.1587),
        (share(&|r| r.x(0) < 0.5), 0.5),
        (share(&|r| r.x(1) == 0.0), 0.25),
        (share(&|r| r.x(1) == 0.5), 0.75),
        (share(&|r| r.x(2) < 0.25), 0.5),
        (share(&|r| r.x(2) <= 0.5), 1.0),
        (share(&|r| r.label() == 1.0), 1.0 / 3.0),
        (share(&|r| r.label() == -1.0), 2.0 / 3.0),
    ] {
        assert!((found - meant).abs() < 0.04, "{found} {meant}");
    }
}

/// A window drops what lies outside, so what is sampled must be what survives: not heaps on the borders.
#[test]
fn a_prior_of_records_that_are_dropped_is_that_of_those_that_are_not() {
    let dropped = |min, max| DomainAxis {
        min,
        max,
        outside: OutsideRule::Drop,
    };
    let law = PriorDistribution::Uniform {
        min: -8.0,
        max: 9.0,
    };
    let mut rng = ChaCha20Rng::seed_from_u64(10);
    let prior = RecordPrior::new(vec![(dropped(0.0, 1.0), law.clone())], None).unwrap();
    let x: Vec<f64> = (0..4_000)
        .map(|_| prior.draw_record(&mut rng).x(0))
        .collect();
    assert!(x.iter().all(|x| (0.0..1.0).contains(x) && *x > 0.0));
    assert!((x.iter().sum::<f64>() / 4_000.0 - 0.5).abs() < 0.03);
    // Clamped, nearly all of them are heaped.
    let prior = RecordPrior::new(vec![(axis(0.0, 1.0), law.clone())], None).unwrap();
    assert!(
        (0..1_000)
            .filter(|_| [0.0, 1.0].contains(&prior.draw_record(&mut rng).x(0)))
            .count()
            > 900
    );
    // A label as well.
    let label = Some((RecordLabel::Number(dropped(0.0, 1.0)), law));
    let prior = RecordPrior::new(
        vec![(
            axis(0.0, 1.0),
            PriorDistribution::Uniform { min: 0.0, max: 1.0 },
        )],
        label,
    )
    .unwrap();
    assert!((0..1_000).all(|_| prior.draw_record(&mut rng).label().abs() < 1.0));

    let outside = RecordPrior::new(
        vec![(
            dropped(0.0, 1.0),
            PriorDistribution::Uniform { min: 2.0, max: 3.0 },
        )],
        None,
    )
    .unwrap_err();
    assert!(
        outside.to_string().contains("lies within 0 to 1"),
        "{outside}"
    );
}

#[test]
fn what_cannot_be_sampled_is_refused_in_words() {
    let says = |message: String, words: &str| assert!(message.contains(words), "{message}");
    for gamma in [0.0, 1.0, -0.1, f64::NAN] {
        says(
            SamplingPlan::for_gamma(gamma).unwrap_err().to_string(),
            "it must lie between 0 and 1",
        );
        says(
            SamplingPlan::new(100, gamma).unwrap_err().to_string(),
            "it must lie between 0 and 1",
        );
    }
    says(
        SamplingPlan::new(100, 0.1).unwrap_err().to_string(),
        "100 samples are too few for a gamma of 0.1: they allow 0.1597 or more",
    );
    says(
        SamplingPlan::new(0, 0.1).unwrap_err().to_string(),
        "0 samples cannot be drawn",
    );
    says(
        SamplingPlan::for_samples(1).unwrap_err().to_string(),
        "it must lie between 0 and 1",
    );
    says(
        SamplingPlan::for_gamma(1e-5).unwrap_err().to_string(),
        "samples cannot be drawn: the number must lie between 1 and 10000000",
    );
    let mut rng = ChaCha20Rng::seed_from_u64(10);
    let plan = SamplingPlan::for_gamma(0.5).unwrap();
    let draw = |_: &mut ChaCha20Rng| Record::new(&[0.5], 0.0);
    let none = sample_sensitivity(
        &plan,
        0,
        Adjacency::AddRemove,
        |_| vec![0.0],
        draw,
        &mut rng,
    );
    says(none.unwrap_err().to_string(), "no neighbours to sample");
    let wild = sample_sensitivity(
        &plan,
        3,
        Adjacency::AddRemove,
        |_| vec![f64::NAN, 0.0],
        draw,
        &mut rng,
    );
    says(wild.unwrap_err().to_string(), "not finite");
    for law in [
        PriorDistribution::Uniform { min: 1.0, max: 0.0 },
        PriorDistribution::Normal {
            mean: 0.0,
            deviation: f64::NAN,
        },
        PriorDistribution::Points {
            values: vec![],
            weights: None,
        },
        PriorDistribution::Points {
            values: vec![1.0],
            weights: Some(vec![0.0]),
        },
        PriorDistribution::Points {
            values: vec![1.0],
            weights: Some(vec![1.0, 1.0]),
        },
    ] {
        says(
            RecordPrior::new(vec![(axis(0.0, 1.0), law)], None)
                .unwrap_err()
                .to_string(),
            "is not a valid distribution",
        );
    }
}

/// The regression of the vignette is a function like any other.
#[test]
fn the_regression_of_one_record_or_none_is_zero() {
    let function = PriestleyChao {
        bandwidth: 0.1,
        gap: f64::INFINITY,
    };
    for records in [&[][..], &[Record::new(&[0.3], 1.0)]] {
        assert_eq!(function.fit(records)(&[0.3]), 0.0);
    }
}
