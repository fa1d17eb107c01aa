//! Every pair of neighbours on a tiny domain, for every target, under both adjacencies and in every norm that noise is made for: what
//! is off by a factor between two adjacencies shows, for nothing is searched for.

use std::collections::BTreeMap;

use bernstream_noise::Exact;
use bernstream_release::Target;
use bernstream_release::window::accumulator::{AccumulatorSpec, Record};
use bernstream_synopsis::Adjacency;

use crate::absent::{RECORDS, counts_of_users, norms, targets};

/// How many records vary in a window.
const VARIED: usize = 3;

/// Ends and middles of every axis, with labels at the ends and between; in space, corners and the middle.
fn domain(target: &dyn Target) -> Vec<Record> {
    let axes = target.shape().dimensions;
    let corners = (0..1_usize << axes).map(|corner| {
        (0..axes)
            .map(|axis| ((corner >> axis) & 1) as f64)
            .collect()
    });
    let places: Vec<Vec<f64>> = corners.chain([vec![0.5; axes]]).collect();
    let labels: &[f64] = if axes == 1 {
        &[-1.0, 0.25, 1.0]
    } else {
        &[-1.0, 1.0]
    };
    let labels = if axes == 3 { &labels[..1] } else { labels };
    let spec = target.accumulator();
    let spec = &spec;
    places
        .iter()
        .flat_map(|place| labels.iter().map(move |label| spec.record(place, *label)))
        .collect()
}

/// All windows of up to [`VARIED`] records of the domain, each as ascending places in it, beside `fixed`, and their values.
fn windows(
    target: &dyn Target,
    domain: &[Record],
    fixed: &[Record],
) -> BTreeMap<Vec<usize>, Exact> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    let mut newest = all.clone();
    for _ in 0..VARIED {
        let more = |window: &Vec<usize>| {
            let from = window.last().copied().unwrap_or(0);
            (from..domain.len())
                .map(|next| window.iter().copied().chain([next]).collect())
                .collect::<Vec<_>>()
        };
        newest = newest.iter().flat_map(more).collect();
        all.extend(newest.clone());
    }
    let value = |window: Vec<usize>| {
        let records = fixed
            .iter()
            .chain(window.iter().map(|place| &domain[*place]))
            .copied();
        let exact = target.evaluate(&target.accumulator().filled_accumulator(records));
        (window, exact)
    };
    all.into_iter().map(value).collect()
}

/// Found over claimed, in those of the 1-norm, the sup norm and the 2-norm for which there is a claim.
fn nearest(target: &dyn Target, adjacency: Adjacency) -> Vec<f64> {
    let claimed = [
        target.sensitivity(adjacency, 1).map(|sum| sum.0),
        target.sup_sensitivity(adjacency, 1),
        target.euclidean_sensitivity(adjacency, 1),
    ];
    if claimed.iter().all(Result::is_err) {
        return Vec::new();
    }
    let domain = domain(target);
    let background: Vec<Record> = (0..RECORDS - VARIED)
        .map(|at| domain[at * 2 % domain.len()])
        .collect();
    let mut found = [0.0_f64; 3];
    for fixed in [&[][..], &background] {
        let all = windows(target, &domain, fixed);
        let keeps_few = matches!(target.accumulator(), AccumulatorSpec::Records { .. });
        for (window, exact) in &all {
            for gone in 0..window.len() {
                let mut rest = window.clone();
                rest.remove(gone);
                let with = |place: usize| {
                    let mut other = rest.clone();
                    other.insert(other.partition_point(|known| *known <= place), place);
                    &all[&other]
                };
                // One more in a window that is full pushes another one out.
                let is_replaced = adjacency == Adjacency::ReplaceOne
                    || (keeps_few && fixed.len() + window.len() == RECORDS);
                let others = is_replaced
                    .then(|| (0..domain.len()).map(with))
                    .into_iter()
                    .flatten();
                for other in others.chain([&all[&rest]]) {
                    let changes = norms(exact, other);
                    found
                        .iter_mut()
                        .zip(changes)
                        .for_each(|(found, change)| *found = found.max(change));
                }
            }
        }
    }
    let parts = found.into_iter().zip(claimed);
    parts
        .filter_map(|(found, claimed)| Some(found / claimed.ok()? as f64))
        .collect()
}

#[test]
fn no_pair_of_neighbours_differs_by_more_than_claimed_whatever_the_target_and_the_adjacency() {
    for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
        let mut judged = 0;
        let mut near = 0;
        let mut all = targets();
        all.push(("users by key", Box::new(counts_of_users())));
        for (name, target) in all {
            let found = nearest(&*target, adjacency);
            if found.is_empty() {
                println!("{adjacency:?} {name}: no claim");
                continue;
            }
            println!("{adjacency:?} {name}: {found:.3?} of the claims");
            assert!(
                found.iter().all(|part| *part <= 1.0 + 1e-12),
                "{adjacency:?} {name}: {found:?}"
            );
            judged += 1;
            near += usize::from(found.iter().any(|part| *part > 0.5));
        }
        // Of these, half the claim would have been found out.
        assert!(
            judged >= 23 && 2 * near >= judged,
            "{adjacency:?}: {near} of {judged}"
        );
    }
}
