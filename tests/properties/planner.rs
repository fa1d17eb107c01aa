//! `"auto"`: what is predicted is what is found, and what is taken is nearly the best.

use crate::harness::exact::Opened as _;
use crate::harness::plan::plan;
use crate::planner_cases::{Case, Kind, LAWS, Law, density, found, mechanism, sup};
use bernstream_config::{Coordinates, NoiseCandidate};
use bernstream_noise::noise::Generator;
use bernstream_synopsis::{Synopsis, SynopsisReading, predict};

const ORDERS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

const CASES: [Case; 5] = [
    density(1, 10.0, 300, "epsilon = 1.0"),
    density(1, 10.0, 300, "epsilon = 0.1"),
    density(1, 40.0, 300, "epsilon = 1.0"),
    density(1, 10.0, 10_000, "epsilon = 1.0"),
    density(2, 40.0, 3_000, "epsilon = 1.0"),
];

/// Prints a line for each law; what is wrong with what is predicted of the release, beside what `windows` of each law give. Adds to
/// `halves` in what part of releases half of the total error holds, where records are as rough as is assumed.
fn compared(
    case: Case,
    noise: &str,
    laws: &[Law],
    windows: u32,
    halves: &mut Vec<f64>,
) -> Vec<String> {
    let release = case.auto(noise).releases.remove(0);
    let taken = release.auto.unwrap().best;
    let settings = case.fixed(&taken);
    let expected = taken.expected;
    let name = format!(
        "{:?} {} b {:.3} n {} {} {}",
        case.kind,
        case.axes,
        case.bandwidth / 210.0,
        case.records,
        case.price,
        taken.keys_in_file(&release.axes, &release.function)
    );
    let mut wrong = Vec::new();
    let mut demand =
        |is_right: bool, what: String| wrong.extend((!is_right).then(|| format!("{name}: {what}")));
    for law in laws {
        // A form follows some places far less than others: the worst eighth takes many.
        let windows = if *law == Law::Rough && !case.kind.is_bounded() {
            4 * windows
        } else {
            windows
        };
        let found = found(case, *law, settings.clone(), &[taken.order], windows).remove(0);
        let [told, worst, ordinary] = [found.error, found.worst, found.error]
            .iter()
            .zip([expected.error, expected.error, expected.spread])
            .map(|(found, expected)| expected / found)
            .collect::<Vec<f64>>()[..]
        else {
            unreachable!("three")
        };
        let (inside, half) = (
            found.inside(expected.within),
            found.inside(expected.within / 2.0),
        );
        println!(
            "{name} {law:?}: noise {:.4} of {:.4}, both {told:.2}, where it is worst {worst:.2} (form {:.4}), ordinary {ordinary:.2}, \
             inside {inside:.3}, of half {half:.3}",
            expected.noise, found.noise, expected.approximation
        );
        demand(
            told > 0.8,
            format!("{law:?}: predicted {told:.2} of what is found"),
        );
        demand(inside >= 0.9, format!("{law:?}: inside in {inside:.3}"));
        match law {
            Law::Rough if case.kind.is_bounded() => {}
            // Slanted cells, and those of three axes: no place is the worst of its cell along all axes at once.
            Law::Rough
                if matches!(taken.on, Coordinates::Cells(_))
                    && (case.kind == Kind::Covariance || case.axes == 3) =>
            {
                demand(
                    (0.8..3.0).contains(&worst),
                    format!("a bound: predicted {worst:.2} of what is found"),
                );
            }
            Law::Rough => {
                demand(
                    (0.8..1.25).contains(&worst),
                    format!("as rough as assumed: predicted {worst:.2} of what is found"),
                );
                halves.push(half);
            }
            Law::Ordinary if matches!(case.kind, Kind::Density | Kind::Covariance) => {
                // Sixteen windows, no two of them alike.
                demand(
                    (0.8..1.35).contains(&ordinary),
                    format!("ordinary: predicted {ordinary:.2} of what is found"),
                );
            }
            _ => {}
        }
    }
    wrong
}

const fn labelled(
    kind: Kind,
    axes: usize,
    bandwidth: f64,
    records: u64,
    price: &'static str,
) -> Case {
    Case {
        kind,
        axes,
        bandwidth,
        records,
        price,
    }
}

/// What is told of every kind of function and noise on one to three axes: the mean error of the roughest functions and of ordinary
/// ones, and a total error that at least 9 of 10 windows stay within, whatever their records are like.
fn all_are_right(cases: &[Case], laws: &[Law], windows: u32) {
    let jobs: Vec<(Case, &str)> = cases
        .iter()
        .flat_map(|case| {
            case.kind
                .noises(case.price)
                .into_iter()
                .map(|noise| (*case, noise))
        })
        .collect();
    let mut halves = Vec::new();
    let compare = |(case, noise): &(Case, &str)| compared(*case, noise, laws, windows, &mut halves);
    let wrong: Vec<String> = jobs.iter().flat_map(compare).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The control: half of it would not do. (It nearly does where a few places are far worse than all others.)
    let failed = halves.iter().filter(|half| **half < 0.9).count();
    assert!(4 * failed >= 3 * halves.len(), "{halves:?}");
}

/// Where a lattice of degree 8 and order 32 was once chosen, told to be off by half of what it was.
#[test]
fn what_is_told_of_weather_holds() {
    let cases = [
        density(2, 31.5, 300, "epsilon = 1.0"),
        density(2, 21.0, 3_000, "epsilon = 1.0"),
        density(2, 31.5, 3_000, "epsilon = 0.1"),
    ];
    all_are_right(&cases, &[Law::Weather, Law::Rough], 13);
}

/// By hand: more prices, records and windows.
#[test]
#[ignore = "an hour"]
fn the_error_that_is_predicted_is_what_windows_give_everywhere() {
    let mut cases = CASES.to_vec();
    for price in ["epsilon = 1.0", "epsilon = 0.1", "rho = 0.5", "rho = 0.01"] {
        cases.extend([
            density(1, 21.0, 5_000, price),
            density(1, 10.5, 5_000, price),
            density(2, 31.5, 5_000, price),
            density(3, 63.0, 5_000, price),
            labelled(Kind::Covariance, 2, 42.0, 5_000, price),
            labelled(Kind::Regression, 1, 21.0, 1_000, price),
            labelled(Kind::KernelBayes, 2, 42.0, 5_000, price),
            labelled(Kind::GaussianBayes, 2, 42.0, 5_000, price),
        ]);
    }
    for price in ["epsilon = 1.0", "rho = 0.5"] {
        for loss in ["huber", "squared"] {
            cases.extend([1, 2].map(|axes| labelled(Kind::Machine(loss), axes, 42.0, 400, price)));
        }
        for loss in ["hinge", "logistic"] {
            cases.extend(
                [1, 2].map(|axes| labelled(Kind::Classifier(loss), axes, 42.0, 400, price)),
            );
        }
        cases.extend([1, 2].map(|axes| labelled(Kind::Logistic, axes, 42.0, 400, price)));
    }
    all_are_right(&cases, &[&LAWS[..], &[Law::Ordinary]].concat(), 32);
}

/// What `explain` says of the two readings is what windows give, and at a low price smoothing is worth it even where all
/// records are in one place.
#[test]
fn the_reading_that_is_recommended_is_the_closer_one() {
    let case = density(1, 10.0, 300, "epsilon = 0.05");
    let settings = case.settings("noise = \"laplace\"\ndegree = 24\norder = 2");
    let table = case.auto("laplace").releases.remove(0).auto.unwrap();
    let plan = plan(&settings);
    let about = plan.releases[0].description();
    let target = &settings.releases[0].function.target;
    let predicted =
        predict::reading_errors(about, &table.rough.unwrap(), |noisy| target.publish(noisy))
            .unwrap();
    let spec = target.accumulator();
    let mechanism = mechanism(&settings);
    let places = case.places();
    let fine = case
        .settings(&format!("degree = {}\norder = 1", case.steps()))
        .releases
        .remove(0)
        .function;
    let mut found = [0.0; 2];
    for seed in 0..60 {
        let records = case.window(Law::Rough, seed, 60);
        let filled = |target: &dyn bernstream_release::Target| {
            target.evaluate(
                &spec.filled_accumulator(records.iter().map(|(x, label)| spec.record(x, *label))),
            )
        };
        let exact: Vec<f64> = filled(&*fine.target)
            .opened()
            .iter()
            .map(|v| *v as f64 * fine.grid_unit())
            .collect();
        let truth = filled(&**target);
        let noisy = mechanism.release_noisy(&truth, &mut Generator::frozen([seed as u8; 32]));
        let synopsis = Synopsis::new(
            about.clone(),
            plan.releases[0]
                .variants
                .first()
                .dequantize(&noisy)
                .into_values(),
        )
        .unwrap();
        for (found, by) in found
            .iter_mut()
            .zip([SynopsisReading::Bernstein(2), SynopsisReading::Posterior])
        {
            let evaluator = synopsis.evaluator(by).unwrap();
            let at = |y: &Vec<f64>| evaluator.evaluate(&[-30.0 + 210.0 * y[0]]).unwrap();
            found_sup(found, &places.iter().map(at).collect::<Vec<f64>>(), &exact);
        }
    }
    println!("predicted {predicted:?}, found {found:?}");
    for (predicted, found) in predicted.iter().zip(found) {
        // Sixteen draws, sixty windows, and a bump that is not the windows' own.
        assert!(
            (0.7..1.4).contains(&(found / predicted)),
            "{found} {predicted}"
        );
    }
    assert!(
        predicted[1] < 0.95 * predicted[0] && found[1] < 0.95 * found[0],
        "{predicted:?} {found:?}"
    );
}

fn found_sup(mean: &mut f64, values: &[f64], exact: &[f64]) {
    *mean += sup(values, exact) / 60.0;
}

mod long {
    use super::*;

    #[test]
    fn the_error_that_is_predicted_is_what_windows_give() {
        let cases = [
            density(1, 21.0, 1_000, "epsilon = 0.1"),
            density(1, 10.5, 1_000, "rho = 0.5"),
            density(2, 31.5, 1_000, "epsilon = 1.0"),
            density(3, 63.0, 500, "epsilon = 1.0"),
            labelled(Kind::Covariance, 2, 42.0, 1_000, "epsilon = 1.0"),
            labelled(Kind::Regression, 1, 21.0, 1_000, "epsilon = 1.0"),
            labelled(Kind::KernelBayes, 1, 21.0, 1_000, "epsilon = 1.0"),
            labelled(Kind::KernelBayes, 2, 42.0, 1_000, "epsilon = 1.0"),
            labelled(Kind::GaussianBayes, 1, 21.0, 1_000, "epsilon = 1.0"),
        ];
        all_are_right(
            &cases,
            &[Law::Rough, Law::Ordinary, Law::Heaped, Law::Mixture],
            16,
        );
    }

    #[test]
    fn the_error_that_is_predicted_of_a_fit_is_a_bound() {
        let cases = [
            labelled(Kind::Machine("huber"), 1, 42.0, 200, "epsilon = 1.0"),
            labelled(Kind::Machine("squared"), 1, 42.0, 200, "epsilon = 1.0"),
            labelled(Kind::Machine("huber"), 2, 63.0, 200, "rho = 0.5"),
            labelled(Kind::Classifier("hinge"), 1, 42.0, 200, "epsilon = 1.0"),
            labelled(Kind::Classifier("logistic"), 1, 42.0, 200, "epsilon = 1.0"),
            labelled(Kind::Logistic, 1, 42.0, 200, "epsilon = 1.0"),
            labelled(Kind::Logistic, 2, 42.0, 200, "epsilon = 1.0"),
        ];
        all_are_right(&cases, &[Law::Rough, Law::Mixture, Law::Uniform], 32);
    }

    /// Of all pairs up to degree 128, by the error found in the same windows.
    #[test]
    fn the_pair_that_is_taken_is_nearly_the_best_of_all() {
        for case in &CASES[..4] {
            let table = case.auto("laplace").releases.remove(0).auto.unwrap();
            let fixed = |degree: u32| case.settings(&format!("degree = {degree}\norder = 1"));
            let degree = |candidate: &NoiseCandidate| match candidate.on {
                Coordinates::Lattice { degree } => degree,
                _ => 0,
            };
            let degrees: std::collections::BTreeSet<u32> = table
                .candidates
                .iter()
                .map(degree)
                .filter(|degree| *degree <= 128)
                .collect();
            let all: Vec<(u32, u32, f64)> = degrees
                .into_iter()
                .flat_map(|degree| {
                    let found = found(*case, Law::Ordinary, fixed(degree), &ORDERS, 16);
                    ORDERS
                        .into_iter()
                        .zip(found)
                        .map(move |(order, found)| (degree, order, found.error))
                })
                .collect();
            let best = all.iter().min_by(|a, b| a.2.total_cmp(&b.2)).unwrap();
            let taken = all
                .iter()
                .find(|found| (found.0, found.1) == (degree(&table.best), table.best.order))
                .unwrap();
            let times = taken.2 / best.2;
            println!(
                "{case:?}: took {} and {}, {times:.3} times the error of the best, {best:?}",
                taken.0, taken.1
            );
            assert!(times < 1.5, "{times}");
            // What it is worth: a third of all pairs are more than twice as bad as the best.
            let bad = all.iter().filter(|found| found.2 > 2.0 * best.2).count();
            assert!(3 * bad > all.len(), "{bad} of {}", all.len());
        }
    }
}
