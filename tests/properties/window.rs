//! What a record can change: its own fate only.

use crate::batches::{Record, batch, form, record, rules, rules_for_users, seconds};
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_release::window::{
    DomainAxis, LONGEST_UNIT, OutsideRule, RecordCounts, ReleaseInput, Window, WindowRules,
    WindowStore,
};
use bernstream_synopsis::histogram::Nodes;
use rand::rngs::ChaCha20Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// What one record deposits.
const ONE: u128 = 1 << 20;

fn nodes() -> Nodes {
    Nodes::new(&[20]).expect("a small grid")
}

fn histogram() -> ReleaseInput {
    form(AccumulatorSpec::Histogram(nodes()))
}

fn open(rules: WindowRules) -> WindowStore {
    let first = rules.grid.span_of(seconds(0));
    WindowStore::new(rules, vec![histogram()], first.start, first, None)
}

fn close_all(mut windows: WindowStore) -> Vec<Window> {
    std::iter::from_fn(|| windows.next().is_some().then(|| windows.close_next())).collect()
}

fn windows_of(rules: WindowRules, records: &[Record]) -> Vec<Window> {
    let mut windows = open(rules);
    for record in records {
        windows.absorb_batch(&batch(record));
    }
    close_all(windows)
}

fn mass(cells: &[u64]) -> u128 {
    cells.iter().map(|cell| u128::from(*cell)).sum()
}

/// The 1-norm of the difference of two groups' states.
fn distance(one: &[u64], other: &[u64]) -> u128 {
    assert_eq!(one.len(), other.len(), "the shape never changes");
    one.iter()
        .zip(other)
        .map(|(a, b)| u128::from(a.abs_diff(*b)))
        .sum()
}

fn fate(rules: WindowRules, record: &Record) -> RecordCounts {
    open(rules).absorb_batch(&batch(record))
}

/// Two hundred ordinary records of many users and both keys, some of them late.
fn stream(seed: u64) -> Vec<Record> {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    let users = ["u", "v", "w", "x"];
    let mut records: Vec<Record> = (0..200)
        .map(|row| {
            let time = random.random_range(0..100);
            Record {
                key: Some(if random.random_bool(0.5) { b"a" } else { b"b" }),
                user: Some(users[random.random_range(0..users.len())]),
                message: time + random.random_range(0..14),
                partition: random.random_range(0..3),
                offset: row,
                ..record(time, random.random_range(-1.0..11.0))
            }
        })
        .collect();
    records.sort_by_key(|record| record.message);
    records
}

/// Every odd record that a stream can bring.
fn odd_records() -> Vec<(&'static str, Record)> {
    let plain = record(55, 5.0);
    vec![
        ("plain", plain.clone()),
        (
            "null time",
            Record {
                time: None,
                ..plain.clone()
            },
        ),
        (
            "null value",
            Record {
                value: None,
                ..plain.clone()
            },
        ),
        (
            "not a number",
            Record {
                value: Some(f64::NAN),
                ..plain.clone()
            },
        ),
        (
            "infinite",
            Record {
                value: Some(f64::INFINITY),
                ..plain.clone()
            },
        ),
        (
            "minus infinite",
            Record {
                value: Some(f64::NEG_INFINITY),
                ..plain.clone()
            },
        ),
        (
            "out of domain",
            Record {
                value: Some(1e300),
                ..plain.clone()
            },
        ),
        (
            "unknown key",
            Record {
                key: Some(b"c"),
                ..plain.clone()
            },
        ),
        (
            "null key",
            Record {
                key: None,
                ..plain.clone()
            },
        ),
        (
            "a key that is not text",
            Record {
                key: Some(b"\xff\xfe"),
                ..plain.clone()
            },
        ),
        (
            "a key of 64 KiB",
            Record {
                key: Some(&[b'a'; 1 << 16]),
                ..plain.clone()
            },
        ),
        (
            "null user",
            Record {
                user: None,
                ..plain.clone()
            },
        ),
        (
            "a user of 64 KiB",
            Record {
                user: Some("u".repeat(1 << 16).leak()),
                ..plain.clone()
            },
        ),
        (
            "far future",
            Record {
                time: Some(i64::MAX),
                ..plain.clone()
            },
        ),
        (
            "far past",
            Record {
                time: Some(i64::MIN),
                ..plain.clone()
            },
        ),
        (
            "far future message",
            Record {
                message: i64::MAX,
                ..plain.clone()
            },
        ),
        (
            "far past message",
            Record {
                message: i64::MIN,
                ..plain.clone()
            },
        ),
        (
            "a message before its event",
            Record {
                message: 50,
                ..plain.clone()
            },
        ),
        (
            "late",
            Record {
                message: 62,
                ..plain
            },
        ),
    ]
}

#[test]
fn membership_is_the_predicate_of_the_design() {
    let one = |count: fn(&mut RecordCounts)| {
        let mut fates = RecordCounts::default();
        count(&mut fates);
        fates
    };
    let taken = one(|f| f.taken = 1);
    assert_eq!(fate(rules(), &record(0, 5.0)), taken);
    assert_eq!(fate(rules(), &record(99, 5.0)), taken);
    assert_eq!(
        fate(
            rules(),
            &Record {
                message: 11,
                ..record(5, 5.0)
            }
        ),
        taken,
        "within the grace"
    );
    assert_eq!(
        fate(
            rules(),
            &Record {
                message: 12,
                ..record(5, 5.0)
            }
        ),
        one(|f| f.late = 1),
        "at the cutoff"
    );
    assert_eq!(
        fate(
            rules(),
            &Record {
                message: 4,
                ..record(5, 5.0)
            }
        ),
        taken,
        "just not too far ahead"
    );
    assert_eq!(
        fate(
            rules(),
            &Record {
                message: 3,
                ..record(5, 5.0)
            }
        ),
        one(|f| f.ahead = 1)
    );
    assert_eq!(
        fate(rules(), &record(-1, 5.0)),
        one(|f| f.closed = 1),
        "before the first window"
    );
    assert_eq!(
        fate(rules(), &record(100, 5.0)),
        one(|f| f.closed = 1),
        "after the last window"
    );
    assert_eq!(
        fate(
            rules(),
            &Record {
                key: Some(b"c"),
                ..record(5, 5.0)
            }
        ),
        one(|f| f.unknown_key = 1)
    );
    assert_eq!(fate(rules(), &record(5, f64::NAN)), one(|f| f.missing = 1));
    let user = |length| Record {
        user: Some("u".repeat(length).leak()),
        ..record(5, 5.0)
    };
    assert_eq!(fate(rules_for_users(1, 10), &user(LONGEST_UNIT)), taken);
    assert_eq!(
        fate(rules_for_users(1, 10), &user(LONGEST_UNIT + 1)),
        one(|f| f.long_unit = 1)
    );
    assert_eq!(
        fate(rules(), &user(LONGEST_UNIT + 1)),
        taken,
        "nobody looks at it"
    );
    assert_eq!(fate(rules(), &record(5, 1e300)), taken, "clamped");
    let axes = vec![DomainAxis {
        min: 0.0,
        max: 10.0,
        outside: OutsideRule::Drop,
    }];
    let first = rules().grid.span_of(seconds(0));
    let mut dropping = WindowStore::new(
        rules(),
        vec![ReleaseInput {
            axes,
            ..histogram()
        }],
        first.start,
        first,
        None,
    );
    assert_eq!(
        dropping.absorb_batch(&batch(&record(5, 10.001))),
        one(|f| f.outside = 1)
    );
    assert_eq!(dropping.absorb_batch(&batch(&record(5, 10.0))), taken);
}

#[test]
fn history_that_is_sent_later_than_it_happened_is_taken_until_the_backfill_ends() {
    let first = rules().grid.span_of(seconds(0));
    let mut windows = WindowStore::new(
        rules(),
        vec![histogram()],
        first.start,
        first,
        Some(seconds(1_000)),
    );
    assert_eq!(windows.next_cutoff(), seconds(1_000));
    assert_eq!(
        windows
            .absorb_batch(&batch(&Record {
                message: 999,
                ..record(5, 5.0)
            }))
            .taken,
        1
    );
    assert_eq!(
        windows
            .absorb_batch(&batch(&Record {
                message: 1_000,
                ..record(5, 5.0)
            }))
            .late,
        1
    );
}

#[test]
fn records_of_closed_windows_are_skipped() {
    let mut windows = open(rules());
    windows.close_next();
    assert_eq!(windows.absorb_batch(&batch(&record(5, 5.0))).closed, 1);
    assert_eq!(windows.absorb_batch(&batch(&record(15, 5.0))).taken, 1);
}

#[test]
fn one_record_more_changes_its_own_window_and_key_by_one_deposit_and_nothing_else() {
    let stream = stream(1);
    let without = windows_of(rules(), &stream);
    for (name, odd) in odd_records() {
        for position in [0, 77, stream.len()] {
            let mut more = stream.clone();
            more.insert(position, odd.clone());
            let with = windows_of(rules(), &more);
            assert_eq!(without.len(), with.len(), "{name}: the schedule");
            let mut changed = 0;
            for (a, b) in without.iter().zip(&with) {
                assert_eq!(a.span, b.span, "{name}: the schedule");
                for (a, b) in a.forms[0].iter().zip(&b.forms[0]) {
                    assert_eq!(a.key, b.key, "{name}: the keys");
                    let difference = distance(
                        a.accumulator.histogram().unwrap().grains(),
                        b.accumulator.histogram().unwrap().grains(),
                    );
                    assert!(difference == 0 || difference == ONE, "{name}: {difference}");
                    changed += difference;
                }
            }
            assert!(changed <= ONE, "{name}: changed {changed}");
            assert_eq!(
                changed == ONE,
                fate(rules(), &odd).taken == 1,
                "{name}: its own fate"
            );
        }
    }
}

#[test]
fn a_user_changes_a_window_by_at_most_the_cap_over_all_keys() {
    let stream = stream(2);
    for records in [1, 2, 4] {
        let with = windows_of(rules_for_users(records, 100), &stream);
        let others: Vec<Record> = stream
            .iter()
            .filter(|record| record.user != Some("u"))
            .cloned()
            .collect();
        let without = windows_of(rules_for_users(records, 100), &others);
        let mut largest = 0;
        for (a, b) in with.iter().zip(&without) {
            let pairs = a.forms[0].iter().zip(&b.forms[0]);
            let change: u128 = pairs
                .map(|(a, b)| {
                    distance(
                        a.accumulator.histogram().unwrap().grains(),
                        b.accumulator.histogram().unwrap().grains(),
                    )
                })
                .sum();
            assert!(change <= u128::from(records) * ONE);
            largest = largest.max(change);
        }
        assert_eq!(
            largest,
            u128::from(records) * ONE,
            "the cap is reached, so the test could fail"
        );
    }
}

#[test]
fn windows_do_not_depend_on_the_order_of_arrival() {
    let mut stream = stream(3);
    let expected: Vec<Window> = windows_of(rules_for_users(2, 100), &stream);
    for seed in 0..10 {
        stream.shuffle(&mut ChaCha20Rng::seed_from_u64(seed));
        for (a, b) in expected
            .iter()
            .zip(windows_of(rules_for_users(2, 100), &stream))
        {
            for (a, b) in a.forms[0].iter().zip(&b.forms[0]) {
                assert_eq!(a.accumulator, b.accumulator);
            }
        }
    }
}

/// A producer deals messages to partitions in turn, and fills them with what is there: one record more moves all that follow.
#[test]
fn which_of_several_records_of_one_time_count_does_not_depend_on_where_they_lie() {
    let at_once = |row: &Record| Record {
        time: row.time.map(|time| time / 10 * 10),
        ..row.clone()
    };
    let stream: Vec<Record> = stream(4).iter().map(at_once).collect();
    let mut moved = stream.clone();
    let mut random = ChaCha20Rng::seed_from_u64(4);
    for row in &mut moved {
        (row.partition, row.offset) = (random.random_range(0..3), random.random_range(0..1_000));
    }
    let first_of_several = ReleaseInput {
        accumulator: AccumulatorSpec::Records { most: 3 },
        ..histogram()
    };
    for (rules, form) in [
        (rules_for_users(2, 100), histogram()),
        (rules_for_users(2, 100), first_of_several.clone()),
        (rules(), first_of_several),
    ] {
        let closed = |rows: &[Record]| -> Vec<Window> {
            let first = rules.grid.span_of(seconds(0));
            let mut windows =
                WindowStore::new(rules.clone(), vec![form.clone()], first.start, first, None);
            rows.iter()
                .for_each(|row| _ = windows.absorb_batch(&batch(row)));
            std::iter::from_fn(|| windows.next().is_some().then(|| windows.close_next())).collect()
        };
        for (a, b) in closed(&stream).iter().zip(&closed(&moved)) {
            for (a, b) in a.forms[0].iter().zip(&b.forms[0]) {
                assert_eq!(a.accumulator, b.accumulator, "{}", rules.cap.is_some());
            }
        }
    }
}

#[test]
fn an_earlier_row_that_comes_later_takes_the_place_of_a_later_one() {
    let early = record(3, 0.0);
    let late = record(7, 10.0);
    let both = windows_of(rules_for_users(1, 100), &[late, early.clone()]);
    let alone = windows_of(rules_for_users(1, 100), &[early]);
    assert_eq!(
        both[0].forms[0][0].accumulator,
        alone[0].forms[0][0].accumulator
    );
}

#[test]
fn a_window_that_straddles_a_period_counts_each_period_apart() {
    // Periods of 15 seconds: the window from 10 to 20 holds the end of one and the start of the next.
    let rows: Vec<Record> = [11, 12, 16, 17].map(|time| record(time, 5.0)).to_vec();
    let windows = windows_of(rules_for_users(1, 15), &rows);
    assert_eq!(
        mass(
            windows[1].forms[0][0]
                .accumulator
                .histogram()
                .unwrap()
                .grains()
        ),
        2 * ONE
    );
}

#[test]
fn every_window_of_the_grid_is_closed_for_every_key_even_if_nothing_came() {
    let windows = windows_of(rules(), &[]);
    assert_eq!(windows.len(), 10);
    for window in &windows {
        let keys: Vec<_> = window.forms[0]
            .iter()
            .map(|group| group.key.as_deref())
            .collect();
        assert_eq!(keys, [Some("a"), Some("b")]);
        assert!(
            window.forms[0]
                .iter()
                .all(|group| mass(group.accumulator.histogram().unwrap().grains()) == 0)
        );
    }
}

/// One form of the value as it is, one that drops what is above 5, both of one column.
fn two_forms() -> Vec<ReleaseInput> {
    let axes = vec![DomainAxis {
        min: 0.0,
        max: 5.0,
        outside: OutsideRule::Drop,
    }];
    vec![
        histogram(),
        ReleaseInput {
            axes,
            ..histogram()
        },
    ]
}

fn masses(window: &Window, form: usize) -> Vec<u128> {
    window.forms[form]
        .iter()
        .map(|group| mass(group.accumulator.histogram().unwrap().grains()) / ONE)
        .collect()
}

#[test]
fn each_release_takes_what_it_can_use_of_a_row() {
    let first = rules().grid.span_of(seconds(0));
    let mut windows = WindowStore::new(rules(), two_forms(), first.start, first, None);
    let taken = |fates: RecordCounts| (fates.taken, fates.outside);
    assert_eq!(taken(windows.absorb_batch(&batch(&record(1, 4.0)))), (1, 0));
    assert_eq!(
        taken(windows.absorb_batch(&batch(&record(2, 6.0)))),
        (1, 0),
        "one of the two takes it"
    );
    let window = windows.close_next();
    assert_eq!(
        (masses(&window, 0), masses(&window, 1)),
        (vec![2, 0], vec![1, 0])
    );
}

/// The same records, by a worker that has them all and by one that begins again before window `restart`.
#[test]
fn a_hopping_window_holds_the_last_windows_and_no_more_also_after_a_restart() {
    let hopping = |panes| {
        vec![
            histogram(),
            ReleaseInput {
                panes,
                ..histogram()
            },
        ]
    };
    let rows = stream(5);
    let close_all = |mut windows: WindowStore| -> Vec<Vec<u128>> {
        for row in &rows {
            windows.absorb_batch(&batch(row));
        }
        std::iter::from_fn(|| windows.next().is_some().then(|| windows.close_next()))
            .map(|window| [masses(&window, 0), masses(&window, 1)].concat())
            .collect()
    };
    let span = |window: i64| rules().grid.span_of(seconds(10 * window));
    for (rules, panes) in [
        (rules(), 3),
        (rules_for_users(2, 100), 3),
        (rules(), 1),
        (rules(), 20),
    ] {
        let new = |first, next| {
            WindowStore::new(
                rules.clone(),
                hopping(panes),
                seconds(first),
                span(next),
                None,
            )
        };
        let whole = close_all(new(0, 0));
        for (at, counts) in whole.iter().enumerate() {
            let of_panes: Vec<u128> = whole[at.saturating_sub(panes as usize - 1)..=at]
                .iter()
                .fold(vec![0; 2], |sum, pane| {
                    vec![sum[0] + pane[0], sum[1] + pane[1]]
                });
            // Under a cap it holds less: the next test.
            let is_capped = rules.cap.is_some();
            assert!(
                is_capped || counts[2..] == of_panes,
                "{panes} panes, window {at}"
            );
        }
        for restart in 1..10 {
            assert_eq!(
                close_all(new(0, restart)),
                whole[restart as usize..],
                "{panes} panes, from {restart}"
            );
        }
        // Of what lies before the ledger's first window another ledger has spoken.
        let later = close_all(new(50, 5));
        assert_eq!(later[0][..2], later[0][2..]);
    }
}

/// What is closed takes no more, whatever windows overlap it.
#[test]
fn a_window_that_is_closed_stays_as_it_was_in_the_windows_that_overlap_it() {
    let mut windows = WindowStore::new(
        rules(),
        vec![ReleaseInput {
            panes: 3,
            ..histogram()
        }],
        seconds(0),
        rules().grid.span_of(seconds(0)),
        None,
    );
    windows.absorb_batch(&batch(&record(1, 4.0)));
    assert_eq!(masses(&windows.close_next(), 0), [1, 0]);
    assert_eq!(windows.absorb_batch(&batch(&record(2, 4.0))).closed, 1);
    windows.absorb_batch(&batch(&record(11, 4.0)));
    assert_eq!(masses(&windows.close_next(), 0), [2, 0]);
    assert_eq!(
        windows.oldest_message(),
        seconds(-1),
        "a restart reads the first window again"
    );
    assert_eq!(masses(&windows.close_next(), 0), [2, 0]);
    assert_eq!(masses(&windows.close_next(), 0), [1, 0]);
}

/// The cap of a user holds for the longer window, not for each of the windows that it is made of.
#[test]
fn a_user_changes_a_hopping_window_by_at_most_the_cap_over_all_keys_and_panes() {
    let stream = stream(2);
    for (records, period, panes) in [(1, 100, 3), (2, 100, 5), (4, 100, 10), (1, 20, 4)] {
        let mut largest = 0;
        let hopping = |rows: &[Record]| -> Vec<Window> {
            let rules = rules_for_users(records, period as u64);
            let first = rules.grid.span_of(seconds(0));
            let mut windows = WindowStore::new(
                rules,
                vec![ReleaseInput {
                    panes,
                    ..histogram()
                }],
                first.start,
                first,
                None,
            );
            for row in rows {
                windows.absorb_batch(&batch(row));
            }
            std::iter::from_fn(|| windows.next().is_some().then(|| windows.close_next())).collect()
        };
        // A user's period is a unit of its own: of one user there can be several in a window.
        for start in (0..100).step_by(period) {
            let is_in = |time: i64| (start..start + period as i64).contains(&time);
            let is_of_unit = |row: &Record| row.user == Some("u") && row.time.is_some_and(is_in);
            let others: Vec<Record> = stream
                .iter()
                .filter(|row| !is_of_unit(row))
                .cloned()
                .collect();
            for (a, b) in hopping(&stream).iter().zip(&hopping(&others)) {
                let pairs = a.forms[0].iter().zip(&b.forms[0]);
                let change: u128 = pairs
                    .map(|(a, b)| {
                        distance(
                            a.accumulator.histogram().unwrap().grains(),
                            b.accumulator.histogram().unwrap().grains(),
                        )
                    })
                    .sum();
                assert!(
                    change <= u128::from(records) * ONE,
                    "{records} {period} {panes}: {change}"
                );
                largest = largest.max(change);
            }
        }
        assert_eq!(
            largest,
            u128::from(records) * ONE,
            "the cap is reached, so the test could fail"
        );
    }
}
