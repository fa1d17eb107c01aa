//! Keys that are not listed and count under one name: what a window counts is what it counts of records that have the name, whatever their
//! keys are, and a user with many of them changes it by one key.

use super::*;

/// Keys of records, each with the place of the declared key that it counts under: `c` is the name of what is not listed.
const WRITTEN: [(&[u8], usize); 7] = [
    (b"a", 0),
    (b"b", 1),
    (b"c", 2),
    (b"x", 2),
    (b"", 2),
    (&[0xff, 0xfe], 2),
    (&[b'a'; 300], 2),
];

fn with_other(rules: WindowRules) -> WindowRules {
    WindowRules {
        other: vec![Some("c".to_owned())],
        ..rules
    }
}

/// The rows that streams are made of: two users, and each of these keys.
fn written_atoms() -> Vec<Record> {
    let mut atoms = Vec::new();
    for user in ["u", "v"] {
        for (place, (key, _)) in WRITTEN.into_iter().enumerate() {
            let value = [10.0, -10.0, 5.0][place % 3];
            atoms.push(Record {
                key: Some(key),
                ..row(user, 2, 0, value)
            });
        }
    }
    atoms
}

/// The row with the declared key that its own counts under.
fn renamed(row: &Record) -> Record {
    let written = WRITTEN.iter().find(|(key, _)| Some(*key) == row.key);
    let (_, place) = written.expect("one of the keys");
    Record {
        key: Some(KEYS[*place].as_bytes()),
        ..row.clone()
    }
}

#[test]
fn what_is_not_listed_counts_as_records_that_have_the_name() {
    let atoms = written_atoms();
    let declared = user_rules();
    let rules = with_other(user_rules());
    for caps in CAPS {
        let counting = counting(caps);
        for stream in streams(atoms.len(), 3) {
            let rows = chosen(&atoms, &stream);
            let names: Vec<Record> = rows.iter().map(renamed).collect();
            assert_eq!(
                totals_of(&rules, &counting, &rows),
                reference_totals(&counting, &names),
                "{caps:?}: {rows:?}"
            );
            assert_eq!(
                partial_of(&rules, &counting, &rows),
                partial_of(&declared, &counting, &names),
                "{caps:?}: {rows:?}"
            );
        }
    }
}

#[test]
fn a_record_without_a_key_counts_nowhere() {
    let counting = counting(CAPS[3]);
    let nameless = Record {
        key: None,
        ..row("u", 2, 0, 1.0)
    };
    let totals = totals_of(&with_other(user_rules()), &counting, &[nameless]);
    assert_eq!(totals, vec![KeyTotals::default(); KEYS.len()]);
}

/// Every stream of up to four rows with two keys that are not listed, each unit of it in and out.
#[test]
fn keys_that_are_not_listed_change_no_more_than_is_claimed_and_some_all_of_it() {
    let mut atoms = Vec::new();
    for user in ["u", "v"] {
        for (key, value) in [
            (b"a".as_slice(), 10.0),
            (b"x", -10.0),
            (b"y", -10.0),
            (b"y", 10.0),
        ] {
            atoms.push(Record {
                key: Some(key),
                ..row(user, 2, 0, value)
            });
        }
    }
    let rules = with_other(user_rules());
    for caps in CAPS {
        let counting = counting(caps);
        let mut windows = WindowTotals::default();
        for stream in streams(atoms.len(), 4) {
            let found = totals_of(&rules, &counting, &chosen(&atoms, &stream));
            windows.add(stream, found);
        }
        let mut pairs = Vec::new();
        for stream in windows.places.keys() {
            let units: BTreeSet<Unit> = stream.iter().map(|at| unit_of(&atoms[*at])).collect();
            for unit in units {
                let mut rest = stream.clone();
                rest.retain(|at| unit_of(&atoms[*at]) != unit);
                pairs.push(windows.pair(stream, &rest));
            }
        }
        for shares in OF_USERS {
            let target = target(&counting, shares, Norm::One);
            let largest = windows.largest_parts(&target, Adjacency::AddRemove, &pairs);
            assert_claims_are_reached(largest, &format!("{caps:?}, {shares:?}"));
        }
    }
}

/// Records of a user of so many keys that are not listed, twice each, and of one that is.
fn rows_of_wanderer(user: &'static str) -> Vec<Record> {
    let keys: &'static [u8] = b"defghijklmnopqrstuvwxyz";
    let mut rows = vec![row(user, 2, 0, 10.0)];
    for place in 0..keys.len() {
        let wandering = Record {
            key: Some(&keys[place..=place]),
            ..row(user, 2, 0, 10.0)
        };
        rows.extend([wandering.clone(), wandering]);
    }
    rows
}

#[test]
fn a_user_with_many_unlisted_keys_is_one_user_of_one_key() {
    let rules = with_other(user_rules());
    let others = [row("v", 2, 0, 5.0), row("v", 2, 2, 5.0)];
    for caps in CAPS {
        let counting = counting(caps);
        let without = totals_of(&rules, &counting, &others);
        let rows = [others.as_slice(), &rows_of_wanderer("u")].concat();
        let with = totals_of(&rules, &counting, &rows);
        let users = |key: usize| with[key].users - without[key].users;
        let records = |key: usize| with[key].records - without[key].records;
        assert_eq!((users(1), records(1)), (0, 0), "{caps:?}");
        assert!(
            users(2) <= 1 && records(2) <= caps.records.into(),
            "{caps:?}"
        );
        // All that is not listed is one key, so two keys have room for the listed one beside it, however many there are.
        if caps.keys == 2 {
            assert_eq!((users(0), users(2)), (1, 1), "{caps:?}");
            assert_eq!(
                (records(0), records(2)),
                (1, caps.records.into()),
                "{caps:?}"
            );
        } else {
            assert_eq!(users(0) + users(2), 1, "{caps:?}");
        }
    }
}
