//! Partials: what a process has of one partition, as bytes that anybody would get, sent in pieces that nobody without the key can
//! write.

use std::collections::{BTreeMap, BTreeSet};

use bernstream_ledger::sealing::KeyFileSecret;
use bernstream_release::source::Batch;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_release::window::{
    DomainAxis, FoundKeyCounting, KeyCounting, LONGEST_UNIT, OutsideRule, RankKey, RecordLabel,
    ReleaseInput, Window, WindowRules, WindowStore,
};
use bernstream_synopsis::Positions;
use bernstream_synopsis::grid::Span;
use bernstream_worker::scale::{
    AddedPiece, AnnouncementHead, CollectedPartials, LONGEST, PartialPiece, PartitionPartial,
    ScaleKeys, ScaleMessage, WindowAnnouncement, split_into_pieces,
};
use rand::rngs::ChaCha20Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use sha2::{Digest, Sha256};

use crate::batches::seconds;
use crate::chunks::{forms, messages, rules, tied};

fn open(rules: &WindowRules, panes: u32) -> WindowStore {
    let first = rules.grid.span_of(seconds(0));
    WindowStore::new(rules.clone(), forms(panes), first.start, first, None)
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

/// The bytes of every window of a partition, by a process that reads its messages in this order.
fn encoded(rules: &WindowRules, partition: i32, messages: &[Batch]) -> Vec<(Span, Vec<u8>)> {
    let mut windows = open(rules, 1);
    messages
        .iter()
        .filter(|batch| batch.partition == partition)
        .for_each(|batch| _ = windows.absorb_batch(batch));
    std::iter::from_fn(|| {
        windows
            .next()
            .map(|span| (span, windows.close_part().canonical_bytes()))
    })
    .collect()
}

#[test]
fn windows_of_partials_are_those_of_one_reader_to_the_bit() {
    for seed in 0..3 {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let messages = messages(100 + seed);
        let partitions: BTreeSet<i32> = messages.iter().map(|batch| batch.partition).collect();
        assert!(partitions.len() > 1);
        for (has_keys, cap) in [
            (false, None),
            (true, None),
            (true, Some(2)),
            (false, Some(1)),
        ] {
            let rules = rules(has_keys, cap);
            let partials: Vec<_> = partitions
                .iter()
                .map(|p| encoded(&rules, *p, &messages))
                .collect();
            for panes in [1, 3] {
                let mut whole = open(&rules, panes);
                messages
                    .iter()
                    .for_each(|batch| _ = whole.absorb_batch(batch));
                let mut joined = open(&rules, panes);
                let mut number = 0;
                while let Some(span) = joined.next() {
                    let mut all: Vec<_> =
                        partials.iter().map(|windows| &windows[number].1).collect();
                    all.shuffle(&mut random);
                    for bytes in all {
                        assert!(joined.take_part(span, bytes));
                    }
                    let expected = kept(&whole.close_next());
                    let found = kept(&joined.close_next());
                    assert!(
                        expected == found,
                        "seed {seed}, {has_keys} {cap:?}, {panes} panes, window {number}"
                    );
                    number += 1;
                }
                assert_eq!(number, 10);
            }
        }
    }
}

/// Each group takes the memory of an accumulator, so that one that is there again and again would take it from few bytes.
#[test]
fn a_partial_that_has_a_group_twice_is_refused() {
    let rules = rules(false, None);
    let form = vec![forms(1).remove(0)];
    let first = rules.grid.span_of(seconds(0));
    let windows = || WindowStore::new(rules.clone(), form.clone(), first.start, first, None);
    let mut sent = windows();
    messages(7)
        .iter()
        .for_each(|batch| _ = sent.absorb_batch(batch));
    let bytes = sent.close_part().canonical_bytes();
    let [0, 0, 1, 0, ..] = bytes[..] else {
        panic!(
            "no records, no users, one sum, of group 0: {:?}",
            &bytes[..4]
        )
    };
    assert!(windows().take_part(first, &bytes));
    let twice = [&[0, 0, 2], &bytes[3..], &bytes[3..]].concat();
    assert!(!windows().take_part(first, &twice));
}

/// Records are fetched in other pieces, with other neighbours, and the map of users has another order in each process.
#[test]
fn the_bytes_of_a_partial_do_not_depend_on_who_reads_it() {
    for (has_keys, cap) in [(true, None), (true, Some(2))] {
        let rules = rules(has_keys, cap);
        let messages = messages(7);
        // Offsets differ as they do where records are gathered otherwise; their order does not.
        let others: Vec<_> = messages
            .iter()
            .rev()
            .map(|b| Batch {
                offset: 5000 * b.offset + 17,
                ..b.clone()
            })
            .collect();
        for partition in 0..2 {
            assert!(encoded(&rules, partition, &messages) == encoded(&rules, partition, &others));
        }
    }
}

/// If this fails, records become other bytes than before: raise `window::VERSION`, so that processes of different versions of the
/// program do not exchange partials, and write the new digest here.
#[test]
fn the_bytes_of_a_partial_are_those_of_their_version() {
    let mut digest = Sha256::new();
    for (has_keys, cap) in [(false, None), (true, Some(2))] {
        let messages = tied(7);
        for partition in 0..2 {
            encoded(&rules(has_keys, cap), partition, &messages)
                .iter()
                .for_each(|(_, bytes)| digest.update(bytes));
        }
    }
    let digest: String = digest
        .finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        (bernstream_release::window::VERSION, digest.as_str()),
        (3, "e2de800055fb5d48")
    );
}

/// The same of counts by key, of users and of records.
#[test]
fn the_bytes_of_counts_by_key_are_those_of_their_version() {
    let mut digest = Sha256::new();
    for cap in [None, Some(0)] {
        let rules = rules(true, cap);
        let messages = tied(7);
        for partition in 0..2 {
            let first = rules.grid.span_of(seconds(0));
            let form = vec![counted_form(&rules)];
            let mut windows = WindowStore::new(rules.clone(), form, first.start, first, None);
            messages
                .iter()
                .filter(|batch| batch.partition == partition)
                .for_each(|batch| _ = windows.absorb_batch(batch));
            while windows.next().is_some() {
                digest.update(windows.close_part().canonical_bytes());
            }
        }
    }
    let digest: String = digest
        .finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        (bernstream_release::window::VERSION, digest.as_str()),
        (3, "5eff4b626ba03698")
    );
}

/// The same of keys that nobody listed.
#[test]
fn the_bytes_of_found_keys_are_those_of_their_version() {
    let mut digest = Sha256::new();
    for (cap, limit) in [(None, Some(1000)), (Some(0), None), (None, Some(2))] {
        let rules = WindowRules {
            keys: None,
            longest_key: Some(64),
            ..rules(true, cap)
        };
        let messages = tied(7);
        for partition in 0..2 {
            let first = rules.grid.span_of(seconds(0));
            let form = vec![found_form(limit)];
            let mut windows = WindowStore::new(rules.clone(), form, first.start, first, None);
            messages
                .iter()
                .filter(|batch| batch.partition == partition)
                .for_each(|batch| _ = windows.absorb_batch(batch));
            while windows.next().is_some() {
                digest.update(windows.close_part().canonical_bytes());
            }
        }
    }
    let digest: String = digest
        .finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        (bernstream_release::window::VERSION, digest.as_str()),
        (3, "9273f0ae64258058")
    );
}

/// Two keys of a user, or as many as the limit.
fn found_form(limit: Option<u32>) -> ReleaseInput {
    let counting = FoundKeyCounting {
        max_keys: 2,
        longest: 64,
        limit,
        ranks: RankKey::for_pipeline("golden"),
    };
    ReleaseInput {
        axes: Vec::new(),
        label: None,
        columns: Vec::new(),
        accumulator: AccumulatorSpec::FoundKeys(counting.into()),
        panes: 1,
    }
}

/// Two keys of a user, with the label as the value.
fn counted_form(rules: &WindowRules) -> ReleaseInput {
    let counting = KeyCounting {
        keys: rules.keys.clone().expect("keys"),
        max_keys: 2,
        max_records: 3,
        sum: None,
        keeps_squares: false,
        grid: None,
        unit_bins: Vec::new(),
        ranks: RankKey::for_pipeline("golden"),
    };
    ReleaseInput {
        axes: Vec::new(),
        label: Some(RecordLabel::Number(DomainAxis {
            min: -1.0,
            max: 2.0,
            outside: OutsideRule::Clamp,
        })),
        columns: vec![2],
        accumulator: AccumulatorSpec::Keys(counting.into()),
        panes: 1,
    }
}

#[test]
fn bytes_that_end_early_or_late_are_no_partial() {
    let rules = rules(true, Some(2));
    let (span, bytes) = encoded(&rules, 0, &messages(7))
        .into_iter()
        .max_by_key(|(_, b)| b.len())
        .expect("a window");
    let mut windows = open(&rules, 1);
    for end in (0..bytes.len()).step_by(97) {
        assert!(
            !windows.take_part(span, &bytes[..end]),
            "{end} of {}",
            bytes.len()
        );
    }
    assert!(!windows.take_part(span, &[bytes.as_slice(), &[0]].concat()));
    assert!(windows.take_part(span, &bytes));
}

/// Bytes from outside never end the process, whatever they are.
#[test]
fn damaged_bytes_are_refused_or_taken_but_harm_nothing() {
    let rules = rules(true, Some(2));
    let (span, bytes) = encoded(&rules, 0, &messages(7))
        .into_iter()
        .max_by_key(|(_, b)| b.len())
        .expect("a window");
    let mut random = ChaCha20Rng::seed_from_u64(1);
    for _ in 0..300 {
        let mut bytes = bytes.clone();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..bytes.len().min(2000));
            bytes[at] = random.random();
        }
        let mut windows = open(&rules, 1);
        windows.take_part(span, &bytes);
        windows.close_next();
    }
}

/// A record as partials have it.
#[derive(Clone, Copy)]
struct Kept {
    second: i64,
    group: u64,
    place: [u64; 3],
    label: i64,
    /// Which of the users it is of, from 1 on; 0 if of none.
    unit: u64,
}

/// The bytes of these records and of these users, each with its period, and of as many sums as there are none of.
fn written(records: &[Kept], users: &[(i64, usize)], sums: u64) -> Vec<u8> {
    fn natural(bytes: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }
    let signed = |number: i64| ((number << 1) ^ (number >> 63)) as u64;
    let mut bytes = Vec::new();
    let mut last = 0;
    natural(&mut bytes, users.len() as u64);
    for (period, length) in users {
        natural(&mut bytes, signed(1_000_000 * period));
        natural(&mut bytes, *length as u64);
        bytes.extend(vec![b'u'; *length]);
    }
    natural(&mut bytes, records.len() as u64);
    for Kept {
        second,
        group,
        place,
        label,
        unit,
    } in records
    {
        natural(&mut bytes, signed(1_000_000 * (second - last)));
        last = *second;
        [&[*group], &place[..], &[signed(*label), *unit]]
            .concat()
            .into_iter()
            .for_each(|n| natural(&mut bytes, n));
    }
    natural(&mut bytes, sums);
    // Of group 0, with no cells.
    (0..2 * sums).for_each(|_| natural(&mut bytes, 0));
    bytes
}

/// Whoever has the key can write what no reader would: it is refused, as the windows would not be those of records.
#[test]
fn what_no_reader_keeps_of_a_record_is_refused() {
    const STEPS: u64 = 1024;
    const FINE: u64 = 1 << 31;
    const LABEL: i64 = 1 << 30;
    // For each form the largest place, labels that there are, and labels that there are not.
    let possible: [([u64; 3], &[i64], &[i64]); 10] = [
        ([40 * STEPS, 0, 0], &[0], &[1, -1]),
        ([12 * STEPS, 9 * STEPS, 0], &[0], &[1]),
        ([16 * STEPS, 0, 0], &[0], &[1]),
        ([8 * STEPS, 8 * STEPS, 0], &[0], &[1]),
        ([8 * STEPS, 0, 0], &[0], &[1]),
        (
            [20 * STEPS, 0, 0],
            &[0, LABEL, -LABEL],
            &[LABEL + 1, -LABEL - 1],
        ),
        ([20 * STEPS, 0, 0], &[0, 2], &[3, -1]),
        ([20 * STEPS, 7 * STEPS, 0], &[LABEL, -LABEL], &[0, 1]),
        ([FINE, FINE, 0], &[0, LABEL, -LABEL], &[LABEL + 1]),
        ([FINE, FINE, 0], &[0, LABEL, -LABEL], &[LABEL + 1]),
    ];
    let takes = |form: usize, cap: Option<u32>, bytes: &[u8]| {
        let rules = rules(true, cap);
        let first = rules.grid.span_of(seconds(0));
        let one = forms(1).remove(form);
        WindowStore::new(rules, vec![one], first.start, first, None).take_part(first, bytes)
    };
    // A window of ten seconds, periods of seven from the third on, four keys, and two records of a user.
    for (form, (place, labels, others)) in possible.into_iter().enumerate() {
        let sound = Kept {
            second: 5,
            group: 3,
            place,
            label: labels[0],
            unit: 1,
        };
        let user = [(3, 1)];
        let one = |kept: Kept| takes(form, Some(2), &written(&[kept], &user, 0));
        for label in labels {
            assert!(
                one(Kept {
                    label: *label,
                    ..sound
                }),
                "form {form}, label {label}"
            );
        }
        for label in others {
            assert!(
                !one(Kept {
                    label: *label,
                    ..sound
                }),
                "form {form}, label {label}"
            );
        }
        assert!(one(Kept {
            second: 9,
            place: [0; 3],
            group: 0,
            ..sound
        }));
        for axis in 0..3 {
            let mut beyond = sound;
            beyond.place[axis] += 1;
            assert!(!one(beyond), "form {form}, axis {axis}");
        }
        assert!(!one(Kept { group: 4, ..sound }), "form {form}: no such key");
        // In the right period of its user.
        for (second, period, is_inside) in [
            (0, -4, true),
            (-1, -4, false),
            (9, 3, true),
            (10, 10, false),
        ] {
            let bytes = written(&[Kept { second, ..sound }], &[(period, 1)], 0);
            assert_eq!(
                takes(form, Some(2), &bytes),
                is_inside,
                "form {form}, second {second}"
            );
        }
        assert!(
            !one(Kept { second: 2, ..sound }),
            "form {form}: another period than its user's"
        );
        assert!(
            !one(Kept { unit: 0, ..sound }) && !one(Kept { unit: 2, ..sound }),
            "form {form}: of nobody"
        );
        let all = |count: usize, users: &[(i64, usize)], sums| {
            takes(form, Some(2), &written(&vec![sound; count], users, sums))
        };
        assert!(
            all(2, &user, 0) && !all(3, &user, 0),
            "form {form}: more than the cap"
        );
        assert!(
            all(1, &[(3, LONGEST_UNIT)], 0) && !all(1, &[(3, LONGEST_UNIT + 1)], 0),
            "form {form}: a long name"
        );
        assert!(!all(1, &user, 1), "form {form}: past the cap");
        // Without a cap nobody waits, and records are kept one by one where a bounded number of them is.
        let free = |count: usize, unit| {
            takes(
                form,
                None,
                &written(&vec![Kept { unit, ..sound }; count], &user, 0),
            )
        };
        let keeps_records = form == 9;
        assert_eq!(
            (free(15, 0), free(16, 0), free(1, 1)),
            (keeps_records, false, false),
            "form {form}"
        );
    }
}

/// More than any of these partials needs.
const ROOM: u64 = 1 << 30;

fn announcement() -> WindowAnnouncement {
    let window = Span {
        start: seconds(0),
        end: seconds(10),
    };
    WindowAnnouncement {
        version: 1,
        settings: "settings".to_owned(),
        choices: "{}".to_owned(),
        topic: "topic".to_owned(),
        window,
        cutoff: seconds(12),
        first: seconds(0),
        backfill_until: None,
        ends: Positions(BTreeMap::from([(0, 5), (1, 7)])),
        past: Positions::default(),
    }
}

/// A partial of random bytes, of several pieces.
fn partial(announcement: &WindowAnnouncement, partition: i32, seed: u64) -> PartitionPartial {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    let bytes = (0..1_500_000).map(|_| random.random()).collect();
    PartitionPartial {
        name: announcement.partial_name(partition).expect("announced"),
        partition,
        bytes,
    }
}

fn missing(collected: &CollectedPartials) -> Vec<i32> {
    collected.missing_partitions().collect()
}

#[test]
fn a_partial_arrives_whatever_becomes_of_its_pieces_on_the_way() {
    let announcement = announcement();
    let whole = partial(&announcement, 1, 1);
    let mut all: Vec<PartialPiece> = [
        split_into_pieces(&whole).expect("pieces"),
        split_into_pieces(&whole).expect("pieces"),
    ]
    .concat();
    assert!(
        all.len() >= 6 && all.iter().all(|piece| piece.bytes.len() < 600_000),
        "{}",
        all.len()
    );
    let mut random = ChaCha20Rng::seed_from_u64(2);
    for _ in 0..10 {
        all.shuffle(&mut random);
        let mut collected = CollectedPartials::new(&announcement, ROOM);
        // A piece of each copy is lost, if it is not the same one.
        let complete = all
            .iter()
            .cloned()
            .map(|piece| collected.add_piece(piece))
            .filter(|a| *a == AddedPiece::Complete)
            .count();
        assert_eq!((complete, missing(&collected)), (1, vec![0]));
        assert!(
            collected
                .complete_partials()
                .all(|(partition, bytes)| partition == 1 && bytes == whole.bytes)
        );
    }
    // Pieces of two copies are not mixed, and half of one is nothing.
    let mut collected = CollectedPartials::new(&announcement, ROOM);
    let one = split_into_pieces(&whole).expect("pieces");
    let other = split_into_pieces(&whole).expect("pieces");
    one.iter()
        .take(2)
        .chain(other.iter().skip(2))
        .cloned()
        .for_each(|piece| _ = collected.add_piece(piece));
    assert_eq!(missing(&collected), [0, 1]);
}

#[test]
fn what_was_not_announced_is_not_taken() {
    let announcement = announcement();
    let others = [
        WindowAnnouncement {
            version: 2,
            ..announcement.clone()
        },
        WindowAnnouncement {
            settings: "others".to_owned(),
            ..announcement.clone()
        },
        WindowAnnouncement {
            topic: "made anew".to_owned(),
            ..announcement.clone()
        },
        WindowAnnouncement {
            cutoff: seconds(13),
            ..announcement.clone()
        },
        WindowAnnouncement {
            first: seconds(-10),
            ..announcement.clone()
        },
        WindowAnnouncement {
            backfill_until: Some(seconds(3)),
            ..announcement.clone()
        },
        WindowAnnouncement {
            ends: Positions(BTreeMap::from([(0, 5), (1, 8)])),
            ..announcement.clone()
        },
        WindowAnnouncement {
            window: Span {
                start: seconds(10),
                end: seconds(20),
            },
            ..announcement.clone()
        },
    ];
    // What two workers know of windows before may differ.
    let past = Positions(BTreeMap::from([(1, 3)]));
    assert_eq!(
        WindowAnnouncement {
            past,
            ..announcement.clone()
        }
        .partial_name(1),
        announcement.partial_name(1)
    );
    for other in others {
        let mut collected = CollectedPartials::new(&announcement, ROOM);
        let foreign = partial(&other, 1, 1);
        split_into_pieces(&foreign)
            .expect("pieces")
            .into_iter()
            .for_each(|piece| assert_eq!(collected.add_piece(piece), AddedPiece::Nothing));
        assert_eq!(collected.add_own(foreign), AddedPiece::Nothing);
        assert_eq!(missing(&collected), [0, 1], "{other:?}");
    }
}

#[test]
fn copies_that_differ_are_not_taken_and_what_is_read_here_is() {
    let announcement = announcement();
    let right = partial(&announcement, 1, 1);
    let wrong = partial(&announcement, 1, 2);
    let add = |collected: &mut CollectedPartials, partial: &PartitionPartial| -> Vec<AddedPiece> {
        split_into_pieces(partial)
            .expect("pieces")
            .into_iter()
            .map(|piece| collected.add_piece(piece))
            .collect()
    };
    for (one, other) in [(&right, &wrong), (&wrong, &right)] {
        let mut collected = CollectedPartials::new(&announcement, ROOM);
        assert!(add(&mut collected, one).contains(&AddedPiece::Complete));
        assert!(add(&mut collected, other).contains(&AddedPiece::Differing));
        assert_eq!(missing(&collected), [0, 1], "neither is taken");
        // Not even if one of them comes again.
        assert!(!add(&mut collected, one).contains(&AddedPiece::Complete));
        assert_eq!(missing(&collected), [0, 1]);
        assert_eq!(collected.add_own(right.clone()), AddedPiece::Complete);
        assert!(
            collected
                .complete_partials()
                .eq([(1, right.bytes.as_slice())])
        );
        // Told once.
        assert!(!add(&mut collected, one).contains(&AddedPiece::Differing));
        assert!(
            collected
                .complete_partials()
                .eq([(1, right.bytes.as_slice())])
        );
    }
    // All of a copy was sent, of which some had come before this process had read the partition itself; and of another one the end is missing.
    let mut collected = CollectedPartials::new(&announcement, ROOM);
    let sent = split_into_pieces(&right).expect("pieces");
    assert_eq!(collected.add_piece(sent[0].clone()), AddedPiece::Nothing);
    assert_eq!(collected.add_own(right.clone()), AddedPiece::Complete);
    let rest: Vec<_> = sent[1..]
        .iter()
        .map(|piece| collected.add_piece(piece.clone()))
        .collect();
    assert!(
        rest.split_last()
            .is_some_and(|(last, others)| *last == AddedPiece::Known && !others.contains(last)),
        "{rest:?}"
    );
    let other = split_into_pieces(&right).expect("pieces");
    let gap: Vec<_> = [&other[0], &other[2]]
        .map(|piece| collected.add_piece(piece.clone()))
        .into();
    assert_eq!((sent.len(), gap), (3, vec![AddedPiece::Nothing; 2]));
    // A wrong copy that comes after the own one is told, and one that comes when the window is closed too.
    for is_closed in [false, true] {
        let mut collected = CollectedPartials::new(&announcement, ROOM);
        assert_eq!(collected.add_own(right.clone()), AddedPiece::Complete);
        if is_closed {
            collected.forget_bytes();
        }
        // All of it was sent: somebody else reads the partition too.
        assert!(add(&mut collected, &right).ends_with(&[AddedPiece::Known]));
        assert!(add(&mut collected, &wrong).contains(&AddedPiece::Differing));
    }
    // And one that was there before it.
    let mut collected = CollectedPartials::new(&announcement, ROOM);
    assert!(add(&mut collected, &wrong).contains(&AddedPiece::Complete));
    assert_eq!(collected.add_own(right.clone()), AddedPiece::Differing);
    assert!(
        collected
            .complete_partials()
            .eq([(1, right.bytes.as_slice())])
    );
}

#[test]
fn a_partial_is_what_its_digest_says() {
    let announcement = announcement();
    let whole = partial(&announcement, 1, 1);
    let damage: [fn(&mut PartialPiece); 4] = [
        |piece| piece.bytes[100] ^= 1,
        |piece| _ = piece.bytes.pop(),
        |piece| piece.size -= 1,
        |piece| piece.size += 1,
    ];
    for (number, damage) in damage.into_iter().enumerate() {
        let mut collected = CollectedPartials::new(&announcement, ROOM);
        let mut broken = split_into_pieces(&whole).expect("pieces");
        broken.iter_mut().for_each(damage);
        let added: Vec<_> = broken
            .into_iter()
            .map(|piece| collected.add_piece(piece))
            .collect();
        assert_eq!(
            (added.last(), missing(&collected)),
            (Some(&AddedPiece::Broken), vec![0, 1]),
            "{number}"
        );
        // A sound copy is still taken.
        split_into_pieces(&whole)
            .expect("pieces")
            .into_iter()
            .for_each(|piece| _ = collected.add_piece(piece));
        assert_eq!(missing(&collected), [0]);
    }
}

#[test]
fn of_nine_copies_that_are_not_whole_one_is_forgotten_and_the_longest_partial_is_a_gigabyte() {
    let announcement = announcement();
    let whole = partial(&announcement, 1, 1);
    let mut copies: Vec<_> = (0..9)
        .map(|_| split_into_pieces(&whole).expect("pieces"))
        .collect();
    copies.sort_by_key(|pieces| pieces[0].copy.clone());
    let mut collected = CollectedPartials::new(&announcement, ROOM);
    copies
        .iter()
        .for_each(|pieces| assert_eq!(collected.add_piece(pieces[0].clone()), AddedPiece::Nothing));
    let mut rest = |copy: usize| {
        copies[copy][1..]
            .iter()
            .map(|piece| collected.add_piece(piece.clone()))
            .last()
    };
    assert_eq!(
        rest(0),
        Some(AddedPiece::Nothing),
        "its first piece is gone"
    );
    assert_eq!(rest(8), Some(AddedPiece::Complete));
    let longest = PartitionPartial {
        bytes: vec![0; usize::try_from(LONGEST).expect("a length") + 1],
        ..whole
    };
    assert!(split_into_pieces(&longest).is_none());
}

/// Whoever has the key can claim any size: nothing is kept or unpacked for it.
#[test]
fn what_no_absorber_could_have_sent_is_not_taken() {
    let announcement = announcement();
    let whole = partial(&announcement, 1, 1);
    let keys = ScaleKeys::new(&KeyFileSecret::new([1; 32]));
    let opened = |piece: &PartialPiece| {
        keys.open_message(
            &keys
                .seal_message(&ScaleMessage::Piece(piece.clone()))
                .expect("sealed"),
        )
    };
    let claims: [fn(&mut PartialPiece); 7] = [
        |piece| piece.size = LONGEST + 1,
        |piece| piece.of = u32::MAX,
        |piece| piece.number = piece.of,
        |piece| piece.digest = "0".repeat(1 << 20),
        |piece| piece.copy = "0".repeat(1 << 20),
        |piece| piece.absorber = "0".repeat(256),
        |piece| piece.bytes.resize(1 << 20, 0),
    ];
    for (number, claim) in claims.into_iter().enumerate() {
        for mut piece in split_into_pieces(&whole).expect("pieces") {
            assert!(opened(&piece).is_some());
            claim(&mut piece);
            assert!(opened(&piece).is_none(), "claim {number}");
        }
    }
}

/// What absorbers send of a window fills so much memory and no more, whole, in pieces, or both of one while it is unpacked; what has no room is read here, and then the room
/// of others does not depend on it.
#[test]
fn what_is_held_of_a_window_is_bounded() {
    let mut announcement = announcement();
    announcement.ends = Positions((0..5).map(|partition| (partition, 9)).collect());
    // What cannot be compressed becomes a little longer.
    let bytes = 1_501_000;
    let add = |collected: &mut CollectedPartials, partition: i32, most: usize| -> Vec<AddedPiece> {
        let all = split_into_pieces(&partial(&announcement, partition, 1)).expect("pieces");
        all.into_iter()
            .take(most)
            .map(|piece| collected.add_piece(piece))
            .collect()
    };
    let mut collected = CollectedPartials::new(&announcement, 3 * bytes);
    assert!(add(&mut collected, 0, 9).ends_with(&[AddedPiece::Complete]));
    assert!(add(&mut collected, 1, 9).ends_with(&[AddedPiece::Complete]));
    assert!(
        add(&mut collected, 2, 9)
            .iter()
            .all(|added| *added == AddedPiece::Full)
    );
    assert_eq!(missing(&collected), [2, 3, 4]);
    // What is there already is not without room.
    assert!(
        add(&mut collected, 1, 9)
            .iter()
            .all(|added| *added == AddedPiece::Nothing)
    );
    // What was read here is taken, and takes no room.
    for partition in 0..5 {
        assert_eq!(
            collected.add_own(partial(&announcement, partition, 1)),
            AddedPiece::Complete
        );
    }
    assert!(
        add(&mut collected, 4, 9).ends_with(&[AddedPiece::Known]),
        "there is room now"
    );
    assert!(missing(&collected).is_empty());
    // What would not fit is not given back to absorbers.
    let mut collected = CollectedPartials::new(&announcement, 3 * bytes);
    assert!(
        add(&mut collected, 0, 9).ends_with(&[AddedPiece::Complete])
            && add(&mut collected, 1, 9).ends_with(&[AddedPiece::Complete])
    );
    assert_eq!(
        collected.add_own(partial(&announcement, 2, 1)),
        AddedPiece::Complete
    );
    assert!(add(&mut collected, 2, 9).ends_with(&[AddedPiece::Full]));
    // Pieces that wait for others take room too, and what is disputed leaves it.
    let mut collected = CollectedPartials::new(&announcement, 13 * bytes / 5);
    for partition in [0, 1] {
        assert!(
            add(&mut collected, partition, 2)
                .iter()
                .all(|added| *added == AddedPiece::Nothing)
        );
    }
    assert_eq!(add(&mut collected, 2, 1), [AddedPiece::Full]);
    for partition in [0, 1] {
        let lie = split_into_pieces(&partial(&announcement, partition, 2))
            .expect("pieces")
            .remove(0);
        assert_eq!(collected.add_piece(lie), AddedPiece::Differing);
    }
    assert!(add(&mut collected, 2, 9).ends_with(&[AddedPiece::Complete]));
    // Nor are there places for any number of pieces that never come.
    let mut collected = CollectedPartials::new(&announcement, 3 * 24 * 2_000);
    let claims = (0..5).map(|partition| {
        let piece = split_into_pieces(&PartitionPartial {
            bytes: vec![0],
            ..partial(&announcement, partition, 1)
        })
        .expect("pieces")
        .remove(0);
        collected.add_piece(PartialPiece { of: 2_000, ..piece })
    });
    let found: Vec<_> = claims.collect();
    assert_eq!(
        found
            .iter()
            .filter(|added| **added == AddedPiece::Nothing)
            .count(),
        2,
        "{found:?}"
    );
    assert_eq!(
        found
            .iter()
            .filter(|added| **added == AddedPiece::Full)
            .count(),
        3,
        "{found:?}"
    );
    // What says that it is too long is not unpacked to see whether it is.
    let mut collected = CollectedPartials::new(&announcement, bytes);
    let bomb = PartitionPartial {
        bytes: vec![0; 2_000_000],
        ..partial(&announcement, 0, 1)
    };
    let bomb = split_into_pieces(&bomb).expect("pieces");
    assert!(bomb.len() == 1 && bomb[0].bytes.len() < 1_000);
    assert_eq!(collected.add_piece(bomb[0].clone()), AddedPiece::Full);
}

#[test]
fn only_the_holders_of_the_key_write_messages() {
    let keys = ScaleKeys::new(&KeyFileSecret::new([1; 32]));
    let announcement = announcement();
    let piece = split_into_pieces(&partial(&announcement, 1, 1))
        .expect("pieces")
        .remove(1);
    let head = AnnouncementHead {
        id: "a".repeat(32),
        sent: seconds(7),
    };
    for message in [
        ScaleMessage::Announcement {
            head,
            read: 9,
            announcement,
        },
        ScaleMessage::Piece(piece),
    ] {
        let sealed = keys.seal_message(&message).expect("sealed");
        assert_eq!(keys.open_message(&sealed), Some(message));
        assert_eq!(
            ScaleKeys::new(&KeyFileSecret::new([2; 32])).open_message(&sealed),
            None
        );
        // One kind of message is not passed off as the other.
        assert_eq!(
            keys.open_message(&[&[3 - sealed[0]], &sealed[1..]].concat()),
            None
        );
        for end in [0, 1, 20, 40, sealed.len() - 1] {
            assert_eq!(keys.open_message(&sealed[..end]), None);
        }
        // When an announcement was sent can be read without the key, and not be changed.
        for at in 1..60 {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(keys.open_message(&changed), None, "byte {at}");
        }
        assert!(!sealed.windows(8).any(|window| window == b"settings"));
    }
}
