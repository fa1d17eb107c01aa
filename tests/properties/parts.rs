//! Readers that share the partitions: what they have of a window, joined, is the window of one that reads everything.

use bernstream_release::source::Batch;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_release::window::{ReleaseInput, Window, WindowPart, WindowRules, WindowStore};
use bernstream_synopsis::histogram::Nodes;
use rand::rngs::ChaCha20Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::batches::seconds;
use crate::chunks::{forms, messages, rules};

fn open(rules: &WindowRules, forms: &[ReleaseInput]) -> WindowStore {
    let first = rules.grid.span_of(seconds(0));
    WindowStore::new(rules.clone(), forms.to_vec(), first.start, first, None)
}

fn kept(window: &Window) -> Vec<Vec<Accumulator>> {
    window
        .forms
        .iter()
        .map(|groups| {
            groups
                .iter()
                .map(|group| group.accumulator.clone())
                .collect()
        })
        .collect()
}

/// The windows of one reader of everything.
fn whole(
    rules: &WindowRules,
    forms: &[ReleaseInput],
    messages: &[Batch],
) -> Vec<Vec<Vec<Accumulator>>> {
    let mut windows = open(rules, forms);
    messages
        .iter()
        .for_each(|batch| _ = windows.absorb_batch(batch));
    std::iter::from_fn(|| {
        windows
            .next()
            .is_some()
            .then(|| kept(&windows.close_next()))
    })
    .collect()
}

/// The windows of several readers. Some of them fall out, forget everything and read their share again.
fn shared(
    rules: &WindowRules,
    forms: &[ReleaseInput],
    messages: &[Batch],
    readers: usize,
    seed: u64,
) -> Vec<Vec<Vec<Accumulator>>> {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    let mut all: Vec<(WindowStore, Vec<&Batch>)> = (0..readers)
        .map(|reader| {
            let is_ours = |batch: &&Batch| batch.partition as usize % readers == reader;
            let mut ours: Vec<_> = messages.iter().filter(is_ours).collect();
            ours.shuffle(&mut random);
            let mut windows = open(rules, forms);
            ours.iter()
                .for_each(|batch| _ = windows.absorb_batch(batch));
            (windows, ours)
        })
        .collect();
    let mut closed = Vec::new();
    while all[0].0.next().is_some() {
        let mut parts: Vec<WindowPart> = all
            .iter_mut()
            .map(|(windows, ours)| {
                if random.random_bool(0.2) {
                    windows.clear_records();
                    ours.iter()
                        .for_each(|batch| _ = windows.absorb_batch(batch));
                }
                windows.close_part()
            })
            .collect();
        parts.shuffle(&mut random);
        let mut joined = parts.pop().expect("a reader");
        parts.into_iter().for_each(|part| joined.join_part(part));
        closed.push(kept(&joined.into_window()));
    }
    closed
}

#[test]
fn what_several_readers_have_is_the_window_to_the_bit() {
    for seed in 0..3 {
        let messages = messages(100 + seed);
        for (has_keys, cap) in [
            (false, None),
            (true, None),
            (true, Some(2)),
            (false, Some(1)),
        ] {
            for panes in [1, 3] {
                let rules = rules(has_keys, cap);
                let forms = forms(panes);
                let expected = whole(&rules, &forms, &messages);
                for readers in [1, 2, 5] {
                    let found = shared(&rules, &forms, &messages, readers, seed);
                    assert!(
                        found == expected,
                        "seed {seed}, {has_keys} {cap:?}, {panes} panes, {readers} readers"
                    );
                }
            }
        }
    }
}

/// Sums of four keys that are larger than a cache, where records wait before they are added: what a single key has, whose records do
/// not wait, is the sum of theirs.
#[test]
fn records_that_wait_are_added_whoever_has_them() {
    let large = AccumulatorSpec::Histogram(Nodes::new(&[400, 400]).expect("a grid"));
    let messages = messages(7);
    for (cap, panes) in [(None, 1), (None, 3), (Some(2), 1)] {
        let forms = [ReleaseInput {
            accumulator: large.clone(),
            panes,
            ..forms(1).swap_remove(1)
        }];
        let rules = rules(true, cap);
        let expected = whole(&rules, &forms, &messages);
        let mut sums = [0, 0];
        for window in &expected {
            sums[0] += window[0].iter().map(grains).sum::<u64>();
        }
        let one_key = |key: String| {
            whole(
                &WindowRules {
                    keys: Some(vec![key]),
                    ..rules.clone()
                },
                &forms,
                &messages,
            )
        };
        for window in rules.keys.iter().flatten().cloned().flat_map(one_key) {
            sums[1] += grains(&window[0][0]);
        }
        assert!(
            sums[0] > 0 && (cap.is_some() || sums[0] == sums[1]),
            "{cap:?} {panes}: {sums:?}"
        );
        for readers in [1, 2, 5] {
            let found = shared(&rules, &forms, &messages, readers, 7);
            assert!(
                found == expected,
                "{cap:?}, {panes} panes, {readers} readers"
            );
        }
    }
}

fn grains(kept: &Accumulator) -> u64 {
    kept.histogram()
        .map_or(0, |histogram| histogram.grains().iter().sum())
}

/// The first records of a user, and of a key, come from several partitions: a reader that settled its own would keep others.
#[test]
fn caps_hold_for_all_readers_together() {
    let rules = rules(true, Some(1));
    let count = |messages: &[Batch]| -> usize {
        whole(&rules, &forms(1), messages)
            .iter()
            .flat_map(|forms| &forms[9])
            .map(|kept| kept.records().len())
            .sum()
    };
    let [mut together, mut apart] = [0, 0];
    for seed in 0..6 {
        let messages = messages(seed);
        together += count(&messages);
        for reader in 0..2 {
            let ours = messages
                .iter()
                .filter(|batch| batch.partition % 2 == reader);
            apart += count(&ours.cloned().collect::<Vec<_>>());
        }
    }
    assert!(
        together < apart,
        "some user or key is in both: {together}, {apart}"
    );
}
