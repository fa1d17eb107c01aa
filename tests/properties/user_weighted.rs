//! Functions to which a user counts as much as one record: every small set of records of two users against the claim for one record.

use bernstream_functions::cells::CellDensity;
use bernstream_functions::density::LatticeDensity;
use bernstream_functions::tables::CellTables;
use bernstream_functions::user_weighted::UserWeighted;
use bernstream_release::Target;
use bernstream_release::window::accumulator::TableLabel;
use bernstream_release::window::{DomainAxis, OutsideRule, RecordLabel, ReleaseInput, WindowStore};
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::histogram::{GRAINS, Spline};
use std::sync::Arc;

use crate::batches::{Record, batch, record, rules_for_users, seconds};
use crate::change::{claims, norms};
use crate::harness::exact::Opened as _;

/// More than a user has here.
const CAP: u32 = 5;
/// Values of records: on nodes, between them, and at both ends.
const VALUES: [f64; 4] = [-10.0, -3.7, 2.0, 10.0];

/// Functions of one axis, with and without a label.
fn targets() -> Vec<(Arc<dyn Target>, bool)> {
    let spline = Spline::Quadratic;
    let steps = &[5];
    let bandwidths = &[0.4];
    let mut targets: Vec<(Arc<dyn Target>, bool)> = vec![
        (
            Arc::new(CellDensity::diagonal(bandwidths, spline, steps).expect("cells")),
            false,
        ),
        (
            Arc::new(LatticeDensity::new(bandwidths, 6).expect("a lattice")),
            false,
        ),
    ];
    let tables = CellTables::new(bandwidths, spline, steps, Some(TableLabel::Number));
    targets.push((Arc::new(tables.expect("tables")), true));
    targets
}

fn axis() -> DomainAxis {
    DomainAxis {
        min: -10.0,
        max: 10.0,
        outside: OutsideRule::Clamp,
    }
}

/// The exact values of the first window for these records, the label of each the value too.
fn values_of(target: &dyn Target, has_label: bool, records: &[Record]) -> Vec<i128> {
    let rules = rules_for_users(CAP, 100);
    let form = ReleaseInput {
        axes: vec![axis()],
        label: has_label.then(|| RecordLabel::Number(axis())),
        columns: vec![0, 0],
        accumulator: target.accumulator(),
        panes: 1,
    };
    let first = rules.grid.span_of(seconds(0));
    let mut store = WindowStore::new(rules, vec![form], first.start, first, None);
    for record in records {
        store.absorb_batch(&batch(record));
    }
    let window = store.close_next();
    let groups = window.forms[0].iter();
    groups
        .flat_map(|group| target.evaluate(&group.accumulator).opened())
        .collect()
}

fn row(user: &'static str, key: &'static [u8], time: i64, value: f64) -> Record {
    Record {
        user: Some(user),
        key: Some(key),
        ..record(time, value)
    }
}

/// Every list of one to three records of a user, over two keys.
fn lists_of_records() -> Vec<Vec<Record>> {
    let mut single = Vec::new();
    for value in VALUES {
        for key in [b"a", b"b"] {
            single.push((value, key));
        }
    }
    let mut lists = Vec::new();
    for (value, key) in &single {
        lists.push(vec![row("u", *key, 1, *value)]);
        for (second, other) in &single {
            let two = vec![row("u", *key, 1, *value), row("u", *other, 2, *second)];
            lists.push([two.clone(), vec![row("u", b"a", 3, 2.0)]].concat());
            lists.push(two);
        }
    }
    lists
}

#[test]
fn a_user_changes_no_more_than_one_record_and_one_with_one_record_changes_all_of_it() {
    let others = [row("v", b"a", 4, 2.0), row("v", b"b", 5, -3.7)];
    for (target, has_label) in targets() {
        let weighted = UserWeighted::new(Arc::clone(&target)).expect("histograms");
        let claim = claims(&weighted, Adjacency::AddRemove, CAP);
        assert_eq!(claim, claims(&*target, Adjacency::AddRemove, 1));
        let without = values_of(&weighted, has_label, &others);
        let mut nearest = [0.0_f64; 3];
        let mut heaviest: f64 = 0.0;
        for records in lists_of_records() {
            let mut with = others.to_vec();
            with.extend(records.clone());
            let found = norms(&values_of(&weighted, has_label, &with), &without);
            for (place, (found, claim)) in found.iter().zip(claim).enumerate() {
                let part = *found as f64 / claim;
                assert!(part <= 1.0, "{target:?}: {part} of norm {place}");
                nearest[place] = nearest[place].max(part);
            }
            // Whole records beside it, as without weights.
            let whole = norms(
                &values_of(&*target, has_label, &with),
                &values_of(&*target, has_label, &others),
            );
            heaviest = heaviest.max(whole[0] as f64 / claim[0]);
        }
        // Counts of cells claim a whole record in the sup norm, of which a quadratic spline puts three quarters into a cell.
        let [sum, sup, length] = nearest;
        assert!(sum > 0.9 && sup > 0.7 && length > 0.9, "{nearest:?}");
        assert!(
            heaviest > 2.5,
            "without weights three records count: {heaviest}"
        );
    }
}

#[test]
fn counts_add_up_to_users_and_not_to_records() {
    let target = CellDensity::diagonal(&[0.4], Spline::Box, &[5]).expect("cells");
    let weighted = UserWeighted::new(Arc::new(target)).expect("histograms");
    let mut records = Vec::new();
    for time in 0..5 {
        records.push(row("u", b"a", time, VALUES[time as usize % 4]));
    }
    records.push(row("v", b"b", 6, 2.0));
    let grains: i128 = values_of(&weighted, false, &records).iter().sum();
    let users = grains as f64 / (GRAINS as f64 * 4096.0);
    assert!((users - 2.0).abs() < 1e-4, "{users} users");
}
