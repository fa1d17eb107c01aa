//! A user of several records and a window that keeps a bounded number: from rows to lattice values.

use crate::batches;
use crate::harness::exact::Opened as _;

use crate::batches::{batch, form, record, rules_for_users, seconds};
use arrow_array::Float64Array;
use bernstream_functions::machine::{Machine, MachineSettings};
use bernstream_functions::regression::LatticeRegression;
use bernstream_release::Target;
use bernstream_release::window::{DomainAxis, OutsideRule, RecordLabel, ReleaseInput, WindowStore};
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::machine::{CubeKernel, Loss};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

/// Records of a user that count.
const CAP: u32 = 3;
/// Records that a window keeps of a key.
const MOST: u32 = 12;
const USERS: [&str; 10] = ["u", "v", "w", "x", "y", "z", "1", "2", "3", "4"];

type Row = (batches::Record, f64);

/// Rows of one window, both keys and all users: more than are kept, ties and odd labels among them.
fn rows(rng: &mut ChaCha20Rng) -> Vec<Row> {
    let odd = [f64::NAN, f64::INFINITY, -5.0];
    let mut rows: Vec<Row> = (0..rng.random_range(10..60))
        .map(|offset| {
            let value = [1.0, 1.1, 5.0, 9.0, rng.random_range(-1.0..11.0)][rng.random_range(0..5)];
            let label = if rng.random_bool(0.05) {
                odd[rng.random_range(0..3)]
            } else {
                [-1.0, 1.0][rng.random_range(0..2)]
            };
            let row = batches::Record {
                user: Some(USERS[rng.random_range(0..USERS.len())]),
                key: Some(if rng.random_bool(0.5) { b"a" } else { b"b" }),
                partition: rng.random_range(0..2),
                offset,
                ..record(rng.random_range(0..10), value)
            };
            (row, label)
        })
        .collect();
    rows.sort_by_key(|(row, _)| row.message);
    rows
}

/// The lattice values of both keys, without the rows of one user.
fn values(target: &dyn Target, rows: &[Row], without: Option<&str>) -> Vec<i128> {
    let label = RecordLabel::Number(DomainAxis {
        min: -1.0,
        max: 1.0,
        outside: OutsideRule::Clamp,
    });
    let rules = rules_for_users(CAP, 100);
    let form = ReleaseInput {
        label: Some(label),
        columns: vec![0, 1],
        ..form(target.accumulator())
    };
    let first = rules.grid.span_of(seconds(0));
    let mut windows = WindowStore::new(rules, vec![form], first.start, first, None);
    for (row, label) in rows
        .iter()
        .filter(|(row, _)| without.is_none() || row.user != without)
    {
        let mut batch = batch(row);
        batch.values.push(Float64Array::from(vec![*label]));
        windows.absorb_batch(&batch);
    }
    windows.close_next().forms[0]
        .iter()
        .flat_map(|group| target.evaluate(&group.accumulator).opened())
        .collect()
}

/// What a user changes over what is claimed, at most.
fn tightness(target: &dyn Target, seed: u64) -> f64 {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let claimed = target.sensitivity(Adjacency::AddRemove, CAP).unwrap().0 as f64;
    let change = |rng: &mut ChaCha20Rng| {
        let rows = rows(rng);
        let one = values(target, &rows, None);
        let other = values(target, &rows, Some("u"));
        one.iter()
            .zip(&other)
            .map(|(a, b)| a.abs_diff(*b))
            .sum::<u128>() as f64
            / claimed
    };
    (0..400).map(|_| change(&mut rng)).fold(0.0, f64::max)
}

#[test]
fn a_user_changes_what_is_kept_by_no_more_than_its_records_are_charged() {
    let settings = MachineSettings {
        kernel: CubeKernel::Gaussian { bandwidth: 0.2 },
        loss: Loss::Hinge,
        c: 1.0,
        records: MOST,
        dimensions: 1,
        degree: 10,
        landmarks: None,
    };
    let machine = tightness(&Machine::new(settings).unwrap(), 7);
    let regression = tightness(&LatticeRegression::new(0.1, 10, 0.1, MOST).unwrap(), 7);
    println!("machine {machine:.3}, regression {regression:.3} of the claim");
    assert!(machine <= 1.0 && regression <= 1.0);
    // The charge of a single record would be found out.
    assert!(machine > 1.0 / f64::from(CAP));
}
