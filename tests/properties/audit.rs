//! A semantic audit: neighbouring streams go through windows, density and noise many times, and what an adversary can
//! tell from the results is compared with the price. Nothing in the way is known to the audit but records in, values out.
//!
//! With exact (Clopper-Pearson) bounds on the odds of one event, a right program fails with probability at most [`ALARM`]
//! over seeds; the seeds are fixed. Each audit has a control that is not private enough, and is found out.

use crate::batches::{Record, batch, form, record, rules, rules_for_users, seconds};
#[allow(dead_code)]
use crate::harness::exact::Opened as _;
use bernstream_functions::density::LatticeDensity;
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::Target;
use bernstream_release::window::{WindowRules, WindowStore};
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::{Adjacency, Sensitivity};

/// How often a right program is taken for a wrong one, over seeds.
const ALARM: f64 = 1e-6;

/// Two lattice points, 0 and 1, and a kernel so narrow that a record at one of them is not felt at the other: the whole
/// loss of a record is at one value, where one event shows all of it.
fn density() -> LatticeDensity {
    LatticeDensity::new(&[0.1], 1).unwrap()
}

fn price(text: &str) -> Epsilon {
    text.parse().unwrap()
}

/// What is audited: an operator, the event that tells the neighbours apart, and how they differ.
struct Audit {
    rules: WindowRules,
    laplace: Mechanism,
    /// The values that the event is about, as (window, group, lattice point), and whether the neighbour raises it.
    watched: Vec<(usize, usize, usize, bool)>,
    with: Vec<Record>,
    without: Vec<Record>,
    runs: u64,
}

impl Audit {
    /// Exact values and released ones, both in the order of `watched`.
    fn release(&self, records: &[Record], generator: &mut Generator) -> (Vec<i128>, Vec<i128>) {
        let density = density();
        let first = self.rules.grid.span_of(seconds(0));
        let mut windows = WindowStore::new(
            self.rules.clone(),
            vec![form(density.accumulator())],
            first.start,
            first,
            None,
        );
        for record in records {
            windows.absorb_batch(&batch(record));
        }
        let last = self
            .watched
            .iter()
            .map(|(window, ..)| *window)
            .max()
            .unwrap();
        let closed: Vec<_> = (0..=last).map(|_| windows.close_next()).collect();
        let mut exact = Vec::new();
        let mut released = Vec::new();
        for (window, group, point, _) in &self.watched {
            let truth = density.evaluate(&closed[*window].forms[0][*group].accumulator);
            released.push(self.laplace.release_noisy(&truth, generator).values()[*point]);
            exact.push(truth.opened()[*point]);
        }
        (exact, released)
    }

    /// A lower bound on the epsilon of the program, wrong with probability [`ALARM`] at most.
    fn epsilon_at_least(&self, seed: u8) -> f64 {
        let background: Vec<Record> = (0..20)
            .map(|i| Record {
                user: Some("other"),
                offset: i,
                ..record(i % 20, 0.4 * i as f64)
            })
            .collect();
        let stream = |own: &[Record]| [background.as_slice(), own].concat();
        let with = stream(&self.with);
        let without = stream(&self.without);
        let mut generator = Generator::frozen([seed; 32]);
        let (threshold, _) = self.release(&without, &mut generator);
        let mut count = |records: &[Record]| {
            let is_there = |_: &u64| {
                let (_, released) = self.release(records, &mut generator);
                let mut values = released.iter().zip(&threshold).zip(&self.watched);
                values.all(|((y, t), (.., raised))| if *raised { y <= t } else { y >= t })
            };
            (0..self.runs).filter(is_there).count() as u64
        };
        let common = count(&without);
        let rare = count(&with);
        (lowest_odds(common, self.runs) / highest_odds(rare, self.runs)).ln()
    }
}

/// The odds at which `count` or more of `n` come with probability [`ALARM`] / 2.
fn lowest_odds(count: u64, n: u64) -> f64 {
    bisect(|p| (count..=n).map(|k| binomial(k, n, p)).sum::<f64>() > ALARM / 2.0)
}

/// The odds at which `count` or fewer of `n` come with probability [`ALARM`] / 2.
fn highest_odds(count: u64, n: u64) -> f64 {
    bisect(|p| (0..=count).map(|k| binomial(k, n, p)).sum::<f64>() < ALARM / 2.0)
}

/// Where `is_above` begins to hold in (0, 1).
fn bisect(is_above: impl Fn(f64) -> bool) -> f64 {
    let mut low = 0.0;
    let mut high = 1.0;
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if is_above(middle) {
            high = middle
        } else {
            low = middle
        }
    }
    low
}

fn binomial(k: u64, n: u64, p: f64) -> f64 {
    let log_choose: f64 = (1..=k).map(|i| ((n - k + i) as f64 / i as f64).ln()).sum();
    (log_choose + k as f64 * p.ln() + (n - k) as f64 * (1.0 - p).ln()).exp()
}

fn sensitivity(adjacency: Adjacency, contributions: u32) -> Sensitivity {
    density().sensitivity(adjacency, contributions).unwrap()
}

/// A record at the lower clip of the domain, wherever it says it is.
fn clipped(time: i64, offset: i64) -> Record {
    Record {
        offset,
        ..record(time, -1e300)
    }
}

#[test]
fn the_bounds_are_those_of_clopper_and_pearson() {
    // Closed forms: 1 - (alpha/2)^(1/n) for none of n, and its mirror image.
    let none = 1.0 - (ALARM / 2.0_f64).powf(0.01);
    assert!((highest_odds(0, 100) - none).abs() < 1e-9);
    assert!((lowest_odds(100, 100) - (1.0 - none)).abs() < 1e-9);
    assert!(lowest_odds(50, 100) < 0.5 && highest_odds(50, 100) > 0.5);
}

fn one_record(claimed: Sensitivity) -> Audit {
    Audit {
        rules: rules(),
        laplace: Mechanism::laplace(claimed, price("1")).unwrap(),
        watched: vec![(0, 0, 0, true)],
        with: vec![clipped(5, 100)],
        without: vec![],
        runs: 4096,
    }
}

#[test]
fn one_record_costs_no_more_than_its_price() {
    let claimed = sensitivity(Adjacency::AddRemove, 1);
    let found = one_record(claimed).epsilon_at_least(1);
    println!("one record: epsilon is at least {found:.3}");
    assert!(found <= 1.0, "{found}");
    assert!(found > 0.5, "the audit sees most of what there is: {found}");
    let half = one_record(Sensitivity(claimed.0 / 2)).epsilon_at_least(2);
    assert!(half > 1.0, "half the noise is found out: {half}");
}

fn a_value_replaced(claimed: Sensitivity) -> Audit {
    Audit {
        rules: rules(),
        laplace: Mechanism::laplace(claimed, price("1")).unwrap(),
        watched: vec![(0, 0, 0, true), (0, 0, 1, false)],
        with: vec![clipped(5, 100)],
        without: vec![Record {
            value: Some(f64::INFINITY),
            ..clipped(5, 100)
        }],
        runs: 4096,
    }
}

#[test]
fn one_value_replaced_costs_no_more_than_the_price() {
    let claimed = sensitivity(Adjacency::ReplaceOne, 1);
    let found = a_value_replaced(claimed).epsilon_at_least(3);
    println!("a value replaced: epsilon is at least {found:.3}");
    assert!(found <= 1.0 && found > 0.5, "{found}");
    let as_if_added = a_value_replaced(sensitivity(Adjacency::AddRemove, 1)).epsilon_at_least(4);
    assert!(
        as_if_added > 1.0,
        "the noise of add-remove is found out: {as_if_added}"
    );
}

/// A user floods both keys of one window; three records of nine survive.
fn a_user_floods(rules: WindowRules) -> Audit {
    Audit {
        rules,
        laplace: Mechanism::laplace(sensitivity(Adjacency::AddRemove, 3), price("1")).unwrap(),
        watched: vec![(0, 0, 0, true)],
        with: (0..9)
            .map(|i| Record {
                key: Some(if i < 3 { b"a" } else { b"b" }),
                ..clipped(i, 100 + i)
            })
            .rev()
            .collect(),
        without: vec![],
        runs: 4096,
    }
}

#[test]
fn a_user_who_floods_a_window_costs_no_more_than_the_price() {
    let found = a_user_floods(rules_for_users(3, 100)).epsilon_at_least(5);
    println!("a user who floods a window: epsilon is at least {found:.3}");
    assert!(found <= 1.0 && found > 0.5, "{found}");
    let flooded = Audit {
        with: (0..9).map(|i| clipped(i, 100 + i)).collect(),
        ..a_user_floods(rules_for_users(9, 100))
    };
    let found = flooded.epsilon_at_least(6);
    assert!(found > 1.0, "a cap that is not kept is found out: {found}");
}

/// A user's period of two windows, at half the total each.
fn a_period(price_of_a_window: &str) -> Audit {
    Audit {
        rules: rules_for_users(1, 20),
        laplace: Mechanism::laplace(
            sensitivity(Adjacency::AddRemove, 1),
            price(price_of_a_window),
        )
        .unwrap(),
        watched: vec![(0, 0, 0, true), (1, 0, 0, true)],
        with: vec![clipped(5, 100), clipped(6, 101), clipped(15, 102)],
        without: vec![],
        runs: 4096,
    }
}

#[test]
fn the_windows_of_a_period_together_cost_no_more_than_the_total() {
    let found = a_period("0.5").epsilon_at_least(7);
    println!("a period of two windows: epsilon is at least {found:.3}");
    assert!(found <= 1.0 && found > 0.5, "{found}");
    let twice = a_period("1").epsilon_at_least(8);
    assert!(
        twice > 1.0,
        "a total that every window spends alone is found out: {twice}"
    );
}
