//! The accountant beside exact values, from arithmetic of fifty digits and closed forms: never below them, and hardly above.

use std::fs;

use bernstream_noise::accountant::gaussian::DrawnNoise;
use bernstream_noise::accountant::loss::{PrivacyLoss, PrivacyLosses};
use bernstream_noise::accountant::plan::{AccountantPlan, ReleaseClass, longest_horizon};
use bernstream_noise::accountant::{concentrated, gaussian};
use bernstream_noise::calibrate::Scale;
use bernstream_noise::concentrated::rho_of_laplace;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
use bernstream_synopsis::price::Price;
use serde::Deserialize;

/// What may be too much, of a value.
const LOOSE: f64 = 1e-4;

/// `tests/data/pld_vectors.json`.
#[derive(Deserialize)]
struct Vectors {
    laplace: Vec<Steps>,
    pure: Vec<Steps>,
    gaussian: Vec<Normal>,
    mixtures: Vec<Mixture>,
    response: Vec<Steps>,
    concentrated: Vec<Converted>,
    adaptive: Adaptive,
}

/// `count` releases at `t` each.
#[derive(Deserialize)]
struct Steps {
    t: f64,
    count: u64,
    delta: f64,
    epsilon: f64,
}

#[derive(Deserialize)]
struct Normal {
    mu: f64,
    sigma: f64,
    count: u64,
    delta: f64,
    epsilon: f64,
}

#[derive(Deserialize)]
struct Mixture {
    laplace: Vec<Part>,
    gaussian: Vec<Part>,
    epsilons: Vec<Point>,
    deltas: Vec<Point>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(alias = "sigma")]
    t: f64,
    count: u64,
}

#[derive(Deserialize)]
struct Point {
    epsilon: f64,
    delta: f64,
}

#[derive(Deserialize)]
struct Converted {
    rho: f64,
    delta: f64,
    epsilon: f64,
    gaussian: f64,
}

/// Randomised response, and then, by its answer, one of two that are both (`epsilon`, `claimed`)-private after it.
#[derive(Deserialize)]
struct Adaptive {
    response: f64,
    epsilon: f64,
    claimed: f64,
    t: f64,
    mu: f64,
    delta: f64,
}

fn vectors() -> Vectors {
    serde_json::from_str(&fs::read_to_string("tests/data/pld_vectors.json").unwrap()).unwrap()
}

fn epsilon(value: f64) -> Epsilon {
    format!("{value:.12}").parse().unwrap()
}

fn delta(value: f64) -> Delta {
    format!("{value:.18}").parse().unwrap()
}

fn rho(value: f64) -> Rho {
    format!("{value:.12}").parse().unwrap()
}

/// Noise so fine that whole numbers are no matter.
fn fine() -> DrawnNoise {
    DrawnNoise {
        values: 1,
        sigma: Scale::new(Scale::LARGEST).unwrap(),
    }
}

/// Laplace noise of a scale of `2^40` or so, and a change of `t` times that: `t` exactly, for the values of the table.
fn laplace(t: f64) -> ReleaseClass {
    let scale = 1_000_000_000_000 / 16 * 16;
    ReleaseClass::Laplace {
        change: Sensitivity((t * scale as f64).round() as u64),
        scale: Scale::new(scale).unwrap(),
    }
}

/// One release of Gaussian noise.
fn normal(sigma: f64) -> ReleaseClass {
    ReleaseClass::Gaussian {
        rho: rho(0.5 / sigma / sigma),
        drawn: fine(),
    }
}

/// Never below, and hardly above.
fn is_just_above(found: f64, exact: f64, what: &str) {
    println!("{what}: {:.1e} above {exact}", found / exact - 1.0);
    assert!(
        found >= exact * (1.0 - 1e-15),
        "{what}: {found} is below {exact}"
    );
    assert!(
        found <= exact * (1.0 + LOOSE),
        "{what}: {found} is far above {exact}"
    );
}

#[test]
fn the_epsilon_of_laplace_releases_is_that_of_the_closed_form() {
    for Steps {
        t,
        count,
        delta: of,
        epsilon,
    } in vectors().laplace
    {
        let plan = AccountantPlan::new([(laplace(t), count)]);
        let found = plan.epsilon(delta(of)).unwrap();
        is_just_above(
            found.to_f64(),
            epsilon,
            &format!("Laplace {t}, {count} times, delta {of}"),
        );
        assert!(plan.is_within(found, delta(of)), "{t} {count} {of}");
        // Far below basic and zero-concentrated composition, where there is much to compose.
        let ReleaseClass::Laplace { change, scale } = laplace(t) else {
            panic!()
        };
        let rho = Rho::from_trillionths(rho_of_laplace(change, scale).trillionths() * count);
        let concentrated = concentrated::epsilon_of(rho, delta(of)).unwrap();
        assert!(
            found < concentrated || count < 100 && t * count as f64 <= concentrated.to_f64() + 1e-9,
            "{t} {count}"
        );
        assert!(found.to_f64() <= t * count as f64 + 1e-8, "{t} {count}");
    }
}

#[test]
fn the_epsilon_of_any_pure_mechanisms_is_the_optimal_composition() {
    for Steps {
        t,
        count,
        delta: of,
        epsilon: exact,
    } in vectors().pure
    {
        let plan = AccountantPlan::new([(ReleaseClass::Pure(epsilon(t)), count)]);
        let found = plan.epsilon(delta(of)).unwrap();
        is_just_above(
            found.to_f64(),
            exact,
            &format!("pure {t}, {count} times, delta {of}"),
        );
        let Some(Price::Concentrated(rho)) = Price::Concentrated(Rho::ZERO).of_pure(epsilon(t))
        else {
            panic!()
        };
        let rho = Rho::from_trillionths(rho.trillionths() * count);
        let concentrated = concentrated::epsilon_of(rho, delta(of)).unwrap();
        assert!(found < concentrated, "{t} {count}: {found} {concentrated}");
        assert!(
            AccountantPlan::new([(laplace(t), count)])
                .epsilon(delta(of))
                .unwrap()
                .to_f64()
                <= found.to_f64() * (1.0 + LOOSE)
        );
    }
}

#[test]
fn the_epsilon_of_gaussian_releases_is_that_of_one() {
    for Normal {
        mu,
        sigma,
        count,
        delta: of,
        epsilon: exact,
    } in vectors().gaussian
    {
        let plan = AccountantPlan::new([(normal(sigma), count)]);
        // Where e^epsilon times the size of a grid step is no small number, whole numbers forbid the claim.
        if exact < 40.0 {
            let found = plan.epsilon(delta(of)).unwrap();
            is_just_above(found.to_f64(), exact, &format!("Gaussian {mu}, delta {of}"));
            let book = gaussian::delta_of(rho(mu * mu / 2.0), fine(), epsilon(exact));
            assert!((book.to_f64() / of - 1.0).abs() < 1e-5, "{mu} {of}: {book}");
        }
        let found = PrivacyLosses::new([(PrivacyLoss::Gaussian(1.0 / sigma), count)]).epsilon(of);
        is_just_above(found, exact, &format!("Gaussian law {mu}, delta {of}"));
    }
}

#[test]
fn mixtures_are_composed_on_one_grid() {
    for Mixture {
        laplace: parts,
        gaussian,
        epsilons,
        deltas,
    } in vectors().mixtures
    {
        let parts = parts.iter().map(|part| (laplace(part.t), part.count));
        let plan = AccountantPlan::new(
            parts.chain(gaussian.iter().map(|part| (normal(part.t), part.count))),
        );
        for Point { epsilon, delta: of } in epsilons {
            is_just_above(
                plan.epsilon(delta(of)).unwrap().to_f64(),
                epsilon,
                &format!("{:?}", plan.classes()),
            );
        }
        for Point { epsilon: at, delta } in deltas {
            let found = plan.delta(epsilon(at)).to_f64();
            assert!(
                found >= delta && found < delta * 1.002,
                "{:?}: {found} {delta}",
                plan.classes()
            );
        }
    }
}

#[test]
fn rho_converts_as_in_the_paper_and_gaussian_books_do_better() {
    for Converted {
        rho: of,
        delta: at,
        epsilon: exact,
        gaussian: normal,
    } in vectors().concentrated
    {
        let found = concentrated::epsilon_of(rho(of), delta(at))
            .unwrap()
            .to_f64();
        assert!(
            found >= exact * (1.0 - 1e-15) && found <= exact * (1.0 + 1e-10),
            "{of} {at}: {found} {exact}"
        );
        let book = gaussian::delta_of(rho(of), fine(), epsilon(normal)).to_f64();
        assert!(
            book >= at * (1.0 - 1e-9) && book <= at * (1.0 + 1e-6) || normal > 40.0,
            "{of} {at}: {book}"
        );
        assert!(
            gaussian::rho_for(fine(), epsilon(exact), delta(at))
                > concentrated::rho_for(epsilon(exact), delta(at))
                || exact > 40.0
        );
    }
}

/// Tilted, as the plain transform would say 10^-14 where the truth is 10^-22.
#[test]
fn tiny_deltas_are_exact_and_their_error_term_is_above_the_error() {
    for Steps {
        t,
        count,
        epsilon,
        delta: exact,
    } in vectors().response
    {
        let found = PrivacyLosses::new([(PrivacyLoss::Response(t), count)]).delta(epsilon);
        println!(
            "{t}, {count} times, at {epsilon}: {:.1e} above {exact:e}",
            found / exact - 1.0
        );
        assert!(
            found >= exact && found <= exact * (1.0 + 1e-6),
            "{t} {count} {epsilon}: {found:e} {exact:e}"
        );
    }
}

/// A third less noise than said: what is computed for it must not cover the truth.
#[test]
fn a_shift_of_30_percent_less_is_found_out() {
    for Steps {
        t,
        count,
        delta: of,
        epsilon,
    } in vectors().laplace
    {
        let found = AccountantPlan::new([(laplace(0.7 * t), count)])
            .epsilon(delta(of))
            .unwrap()
            .to_f64();
        assert!(found < 0.8 * epsilon, "{t} {count} {of}: {found} {epsilon}");
    }
    for Normal {
        sigma,
        count,
        delta: of,
        epsilon,
        ..
    } in vectors().gaussian
    {
        let found = PrivacyLosses::new([(PrivacyLoss::Gaussian(0.7 / sigma), count)]).epsilon(of);
        assert!(
            found < 0.8 * epsilon,
            "{sigma} {count} {of}: {found} {epsilon}"
        );
    }
}

/// Why no function takes a list that grows: each way to go on keeps the promise of its plan, the choice between them breaks it.
#[test]
fn a_choice_of_parameters_after_an_answer_is_no_plan() {
    let Adaptive {
        response,
        epsilon: at,
        claimed,
        t,
        mu,
        delta: truth,
    } = vectors().adaptive;
    for law in [PrivacyLoss::Laplace(t), PrivacyLoss::Gaussian(mu)] {
        let fixed = PrivacyLosses::new([(PrivacyLoss::Response(response), 1), (law, 1)]).delta(at);
        assert!(
            fixed >= claimed * (1.0 - 1e-9) && fixed < claimed * (1.0 + 1e-3),
            "{law:?}: {fixed}"
        );
    }
    // What is lost first leaves the rest of epsilon to the second.
    let yes = 1.0 / (1.0 + (-response).exp());
    let second = |at: f64| {
        [PrivacyLoss::Laplace(t), PrivacyLoss::Gaussian(mu)]
            .map(|law| PrivacyLosses::new([(law, 1)]).delta(at))
            .into_iter()
            .fold(0.0, f64::max)
    };
    let chosen = yes * second(at - response) + (1.0 - yes) * second(at + response);
    assert!(
        (chosen / truth - 1.0).abs() < 1e-3 && chosen > 1.25 * claimed,
        "{chosen} {truth}"
    );
}

#[test]
fn the_longest_horizon_is_within_the_total_and_one_window_more_is_not() {
    let total = epsilon(1.0);
    let of = delta(1e-6);
    for window in [
        vec![(laplace(0.01), 1)],
        vec![(ReleaseClass::Pure(epsilon(0.02)), 3)],
        vec![(laplace(0.01), 2), (normal(100.0), 1)],
    ] {
        let windows = longest_horizon(&window, total, of);
        let of_windows = |windows: u64| {
            AccountantPlan::new(
                window
                    .iter()
                    .map(|&(class, count)| (class, count * windows)),
            )
        };
        println!("{windows} windows of {window:?}");
        assert!(
            windows > 10 && of_windows(windows).is_within(total, of),
            "{windows}"
        );
        assert!(!of_windows(windows + 1).is_within(total, of), "{windows}");
    }
    assert_eq!(longest_horizon(&[(laplace(1.1), 1)], total, Delta::ZERO), 0);
    assert_eq!(
        longest_horizon(&[(ReleaseClass::Pure(epsilon(0.1)), 1)], total, Delta::ZERO),
        10
    );
    assert_eq!(longest_horizon(&[], total, Delta::ZERO), 1 << 40);
}

#[test]
fn what_promises_nothing_says_so() {
    let one = delta(1.0);
    assert_eq!(
        AccountantPlan::new([]).epsilon(Delta::ZERO),
        Some(Epsilon::ZERO)
    );
    assert_eq!(
        AccountantPlan::new([(laplace(1.0), 0)]).delta(Epsilon::ZERO),
        Delta::ZERO
    );
    assert_eq!(
        AccountantPlan::new([(normal(1.0), 1)]).epsilon(Delta::ZERO),
        None
    );
    assert_eq!(
        AccountantPlan::new([(normal(0.001), 1)]).delta(epsilon(1.0)),
        one
    );
    assert_eq!(
        AccountantPlan::new([(laplace(1.0), u64::MAX)]).delta(epsilon(1.0)),
        one
    );
    assert_eq!(
        AccountantPlan::new([(ReleaseClass::Pure(epsilon(100.0)), 3)]).delta(epsilon(200.0)),
        one
    );
    assert!(
        AccountantPlan::new([(ReleaseClass::Pure(epsilon(100.0)), 3)])
            .is_within(epsilon(300.0), Delta::ZERO)
    );
    assert_eq!(
        PrivacyLosses::new([(PrivacyLoss::Laplace(f64::NAN), 1)]).delta(1.0),
        1.0
    );
    assert_eq!(
        PrivacyLosses::new([(PrivacyLoss::Gaussian(f64::NAN), 1)]).delta(1.0),
        1.0
    );
}
