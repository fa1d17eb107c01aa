//! What is in a ledger survives everything, or its damage is noticed: real files, real locks, real crashes.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use bernstream_kafka::sink;
use bernstream_kafka::sink::Sink;
use bernstream_kafka::sink::deliver;
use bernstream_kafka::sink::deliver::{LookAhead, step, step_ahead};
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_ledger::{
    ClosingWindow, Configuration, Ledger, LedgerError, LedgerRow, Paid, ledger_exists,
};
use bernstream_synopsis::Positions;
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

use crate::chain::follow;
use crate::harness::ledger::{
    MemorySink, MemoryWitness, Output, Topic, at, block, closing, folder, genesis, link_whole,
    padded, params, price, rechain, window,
};

/// A ledger of three released windows, a withheld one and a change of the settings. The first window is accepted and published.
pub fn sample(folder: &Path) -> Ledger {
    let mut ledger = Ledger::create(&params(folder), genesis(at(0), "w", None)).unwrap();
    ledger
        .pay_window(closing(&ledger, &["EWR", "JFK"], 4, 1))
        .unwrap();
    let accepted = *ledger.head();
    while let Some(paid) = ledger.due_messages(&accepted, at(60), 1).unwrap().pop() {
        ledger
            .mark_published(std::slice::from_ref(&paid), at(200))
            .unwrap();
    }
    let states = vec![
        ("a".to_owned(), b"first".to_vec()),
        ("b".to_owned(), vec![7; 100]),
    ];
    ledger
        .pay_window(ClosingWindow {
            states,
            ..closing(&ledger, &["EWR", "JFK"], 6, 2)
        })
        .unwrap();
    let states = vec![("a".to_owned(), b"second".to_vec())];
    ledger
        .pay_window(ClosingWindow {
            states,
            ..closing(&ledger, &["EWR", "JFK"], 5, 3)
        })
        .unwrap();
    ledger
        .withhold_window(window(3), Positions([(0, 99)].into()))
        .unwrap();
    let settings = r#"{"n":2}"#.to_owned();
    ledger
        .record_settings(Configuration {
            settings,
            first: at(240),
            reach: Duration::ZERO,
            ended: vec![],
            until: None,
        })
        .unwrap();
    ledger
}

/// Everything that a ledger says.
fn view(ledger: &Ledger) -> String {
    read(ledger).unwrap()
}

/// The same, unless it is found to be damaged.
fn read(ledger: &Ledger) -> Result<String, LedgerError> {
    let head = ledger.head();
    let mut messages = vec![];
    let mut after = None;
    while let Some(paid) = ledger.kept_messages(head, after.as_ref(), 1)?.pop() {
        messages.push(paid.encoded().clone());
        after = Some(paid);
    }
    let blocks = ledger.newest_blocks(usize::MAX)?;
    let settings = ledger.settings();
    let states = [ledger.noise_state("a")?, ledger.noise_state("b")?];
    let genesis = ledger.genesis();
    let next = ledger.next_window();
    let ends = ledger.ends();
    Ok(format!(
        "{genesis:?} {head:?} {settings} {next:?} {blocks:?} {ends:?} {messages:?} {states:?}"
    ))
}

fn edit(folder: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(folder.join("ledger.sqlite")).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
}

#[test]
fn a_ledger_that_is_opened_again_says_the_same() {
    let folder = folder();
    let ledger = sample(folder.path());
    let before = view(&ledger);
    assert_eq!(ledger.next_window(), at(240));
    assert_eq!(
        ledger.newest_blocks(9).unwrap(),
        [(block(1), price(5)), (block(0), price(10))]
    );
    assert_eq!(
        (ledger.newest_block(), ledger.live_from()),
        (Some((block(1), price(5))), at(240))
    );
    // What can no longer be charged has nothing left.
    assert_eq!(
        [0, 1, 2].map(|n| ledger.spent(block(n))),
        [price(10), price(10), price(0)]
    );
    assert_eq!(ledger.ends(), &Positions([(0, 99)].into()));
    assert_eq!(ledger.unpublished_count().unwrap(), 4);
    drop(ledger);
    assert_eq!(view(&Ledger::open(&params(folder.path())).unwrap()), before);
}

#[test]
fn a_ledger_says_how_far_was_read_for_the_newest_window_that_closed_five_minutes_before() {
    let folder = folder();
    let mut ledger = Ledger::create(&params(folder.path()), genesis(at(0), "w", None)).unwrap();
    for draw in 0..3 {
        ledger
            .pay_window(closing(&ledger, &["EWR"], 4, draw))
            .unwrap();
    }
    ledger
        .withhold_window(window(3), Positions([(0, 99)].into()))
        .unwrap();
    let cutoff = |window: Span| window.end.plus(Duration::from_secs(60));
    let past = |ledger: &Ledger, since| {
        let recorded = ledger.recorded_positions(since, cutoff).unwrap();
        assert_eq!(&recorded.ends, ledger.ends());
        recorded.past.map(|(cutoff, ends)| (cutoff, ends.0[&0]))
    };
    let before = |minute| at(minute).minus(Duration::from_micros(1));
    assert_eq!(
        [at(0), before(66)].map(|since| past(&ledger, since)),
        [None, None]
    );
    assert_eq!(
        [at(66), before(126), at(126), before(186)]
            .map(|since| past(&ledger, since))
            .map(Option::unwrap)
            .map(|(cutoff, _)| cutoff),
        [at(61), at(61), at(121), at(121)]
    );
    assert_eq!(
        [at(186), at(100_000)].map(|since| past(&ledger, since)),
        [Some((at(181), 1)), Some((at(241), 99))]
    );
    // Under the settings before, windows may have closed later.
    let settings = r#"{"n":2}"#.to_owned();
    let change = Configuration {
        settings,
        first: at(240),
        reach: Duration::ZERO,
        ended: vec![],
        until: None,
    };
    ledger.record_settings(change).unwrap();
    assert_eq!(past(&ledger, at(100_000)), None);
    ledger
        .withhold_window(window(4), Positions([(0, 100)].into()))
        .unwrap();
    assert_eq!(past(&ledger, at(100_000)), Some((at(301), 100)));
}

#[test]
fn the_ledger_refuses_what_the_accountant_must_not_ask_for_and_nothing_has_changed() {
    let folder = folder();
    let mut ledger = sample(folder.path());
    let before = view(&ledger);
    let next = closing(&ledger, &["EWR"], 1, 9);
    let twice = window(0);
    let skipped = window(5);
    for window in [twice, skipped] {
        let refused = ledger.pay_window(ClosingWindow {
            window,
            ..next.clone()
        });
        assert!(
            matches!(refused, Err(LedgerError::Refused { .. })),
            "{refused:?}"
        );
        assert!(matches!(
            ledger.withhold_window(window, Positions::default()),
            Err(LedgerError::Refused { .. })
        ));
    }
    let too_dear = ClosingWindow {
        charges: vec![(block(2), price(11))],
        ..next.clone()
    };
    let unpaid = ClosingWindow {
        charges: vec![],
        ..next.clone()
    };
    let short = Span {
        end: at(299),
        ..block(2)
    };
    let partly = ClosingWindow {
        charges: vec![(short, price(1))],
        ..next.clone()
    };
    for wrong in [too_dear, unpaid, partly] {
        assert!(matches!(
            ledger.pay_window(wrong),
            Err(LedgerError::Refused { .. })
        ));
    }
    assert_eq!(view(&ledger), before);
    ledger.pay_window(next).unwrap();
}

/// A price of every kind, in tenths of `[1, 0.000001]`: only one has the second part.
fn kinds(first: u64, second: u64) -> [Price; 4] {
    let epsilon = Epsilon::from_trillionths(first * 100_000_000_000);
    let delta = Delta::from_quintillionths(second * 100_000_000_000);
    [
        Price::Pure(epsilon),
        Price::Approximate { epsilon, delta },
        Price::Concentrated(Rho::from_trillionths(first * 100_000_000_000)),
        Price::Slots(first),
    ]
}

#[test]
fn a_ledger_has_one_kind_of_price_and_neither_part_goes_beyond_the_total() {
    for (kind, total) in kinds(10, 10).into_iter().enumerate() {
        let folder = folder();
        let begun = bernstream_ledger::Genesis {
            total,
            ..genesis(at(0), "w", None)
        };
        let mut ledger = Ledger::create(&params(folder.path()), begun).unwrap();
        let paying = |ledger: &Ledger, price| {
            let closing = closing(ledger, &["EWR"], 1, 1);
            ClosingWindow {
                charges: vec![(closing.charges[0].0, price)],
                ..closing
            }
        };
        ledger
            .pay_window(paying(&ledger, kinds(4, 7)[kind]))
            .unwrap();
        let before = view(&ledger);
        let mut wrong: Vec<Price> = (0..4)
            .filter(|other| *other != kind)
            .map(|other| kinds(1, 1)[other])
            .collect();
        wrong.extend([kinds(7, 0)[kind], kinds(0, 0)[kind]]);
        wrong.extend((kind == 1).then(|| kinds(1, 4)[kind]));
        for wrong in wrong {
            let refused = ledger.pay_window(paying(&ledger, wrong));
            assert!(
                matches!(refused, Err(LedgerError::Refused { .. })),
                "{total} {wrong}: {refused:?}"
            );
        }
        assert_eq!(view(&ledger), before);
        ledger
            .pay_window(paying(&ledger, kinds(6, 3)[kind]))
            .unwrap();
        assert_eq!(ledger.spent(block(0)), total);
        let before = view(&ledger);
        drop(ledger);
        assert_eq!(view(&Ledger::open(&params(folder.path())).unwrap()), before);
        // The table of what was spent is compared in every part.
        let (part, less) = [
            ("\"1\"", "\"0.9\""),
            ("0.000001", "0.0000009"),
            ("\"1\"", "\"0.9\""),
            ("10", "9"),
        ][kind];
        edit(
            folder.path(),
            &format!("UPDATE spent SET price = replace(price, '{part}', '{less}')"),
        );
        assert!(matches!(
            Ledger::inspect(&params(folder.path())),
            Err(LedgerError::Damaged { .. })
        ));
    }
}

#[test]
fn messages_leave_in_order_when_they_are_due_and_only_up_to_the_accepted_head() {
    let folder = folder();
    let mut ledger = Ledger::create(&params(folder.path()), genesis(at(0), "w", None)).unwrap();
    let first = *ledger.head();
    ledger
        .pay_window(closing(&ledger, &["b", "a"], 1, 1))
        .unwrap();
    let second = *ledger.head();
    ledger
        .pay_window(closing(&ledger, &["b", "a"], 1, 2))
        .unwrap();
    assert!(ledger.due_messages(&first, at(999), 1).unwrap().is_empty());
    assert!(ledger.due_messages(&second, at(59), 1).unwrap().is_empty());
    assert_eq!(ledger.next_due(&second).unwrap(), Some(at(60)));
    let mut keys = vec![];
    while let Some(paid) = ledger.due_messages(&second, at(999), 1).unwrap().pop() {
        keys.push((paid.window(), paid.encoded().key.clone()));
        ledger
            .mark_published(std::slice::from_ref(&paid), at(999))
            .unwrap();
    }
    assert_eq!(
        keys,
        [(window(0), "p/r/b".into()), (window(0), "p/r/a".into())]
    );
    let mut stranger = *ledger.head();
    stranger.digest = first.digest;
    assert!(
        ledger
            .due_messages(&stranger, at(999), 1)
            .unwrap()
            .is_empty()
    );
    assert!(
        !ledger
            .due_messages(&ledger.head().clone(), at(999), 1)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn published_bytes_are_kept_for_a_time_and_unpublished_ones_for_ever() {
    let folder = folder();
    let mut ledger = sample(folder.path());
    let head = *ledger.head();
    let kept = |ledger: &Ledger| {
        let mut windows = vec![];
        let mut after = None;
        while let Some(paid) = ledger
            .kept_messages(&head, after.as_ref(), 1)
            .unwrap()
            .pop()
        {
            windows.push(paid.window());
            after = Some(paid);
        }
        windows
    };
    let publish = |ledger: &mut Ledger, minute| {
        let paid = ledger
            .due_messages(&head, at(999), 1)
            .unwrap()
            .pop()
            .unwrap();
        ledger
            .mark_published(std::slice::from_ref(&paid), at(minute))
            .unwrap();
    };
    publish(&mut ledger, 200 + 60);
    assert_eq!(kept(&ledger), [window(0), window(0), window(1)]);
    publish(&mut ledger, 200 + 61);
    assert_eq!(kept(&ledger), [window(1), window(1)]);
    publish(&mut ledger, 1_000_000);
    assert_eq!(kept(&ledger), [window(2)]);
    drop(ledger);
    let ledger = Ledger::open(&params(folder.path())).unwrap();
    assert_eq!(ledger.unpublished_count().unwrap(), 1);
    assert!(
        !ledger
            .due_messages(ledger.head(), at(999), 1)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_missing_ledger_is_not_a_new_one() {
    let folder = folder();
    assert!(!ledger_exists(&params(folder.path())).unwrap());
    assert!(matches!(
        Ledger::open(&params(folder.path())),
        Err(LedgerError::Missing { .. })
    ));
    drop(sample(folder.path()));
    assert!(matches!(
        Ledger::create(&params(folder.path()), genesis(at(0), "w", None)),
        Err(LedgerError::Exists { .. })
    ));
    fs::write(folder.path().join("ledger.sqlite"), b"").unwrap();
    assert!(matches!(
        Ledger::open(&params(folder.path())),
        Err(LedgerError::Damaged { .. })
    ));
    assert!(matches!(
        Ledger::create(&params(folder.path()), genesis(at(0), "w", None)),
        Err(LedgerError::Exists { .. })
    ));
}

#[test]
fn an_edit_of_any_row_is_noticed() {
    let edits = [
        "UPDATE rows SET body = replace(body, '0.6', '0.1') WHERE sequence = 2",
        "UPDATE rows SET body = replace(body, 'first', 'First') WHERE sequence = 0",
        "UPDATE rows SET body = body || ' ' WHERE sequence = 4",
        "UPDATE rows SET salt = zeroblob(32) WHERE sequence = 3",
        "UPDATE rows SET salt = zeroblob(31) WHERE sequence = 3",
        "UPDATE rows SET digest = zeroblob(32) WHERE sequence = 4",
        "UPDATE rows SET body = CAST(x'ff' AS TEXT) WHERE sequence = 2",
        "UPDATE rows SET sequence = 9 WHERE sequence = 4",
        "UPDATE rows SET sequence = -1 WHERE sequence = 0",
        "DELETE FROM rows WHERE sequence = 0",
        "DELETE FROM rows WHERE sequence = 2",
        "DELETE FROM rows WHERE sequence >= 3",
        "DELETE FROM rows",
        "UPDATE rows SET secret = replace(secret, '99', '98') WHERE sequence = 4",
        "UPDATE rows SET secret = NULL WHERE sequence = 4",
        "UPDATE rows SET secret = NULL WHERE sequence = 0",
        "UPDATE rows SET secret = secret || ' ' WHERE sequence = 5",
        "INSERT INTO rows SELECT 6, salt, body, digest, secret FROM rows WHERE sequence = 5",
        "UPDATE spent SET price = '\"0.1\"' WHERE price = '\"1\"'",
        "DELETE FROM spent",
        "INSERT INTO spent VALUES (1, 2, '0')",
        "UPDATE outbox SET bytes = x'00' WHERE sequence = 2 AND place = 1",
        "UPDATE outbox SET bytes = NULL WHERE sequence = 2 AND place = 1",
        "UPDATE outbox SET key = 'p/LGA' WHERE sequence = 1 AND place = 0",
        "UPDATE outbox SET headers = '[]' WHERE sequence = 1 AND place = 0",
        "UPDATE outbox SET place = place + 1 WHERE sequence = 3 AND place = 1",
        "DELETE FROM outbox WHERE sequence = 3",
        "INSERT INTO outbox VALUES (9, 0, 'p/EWR', '[]', x'00', NULL)",
        "DELETE FROM states WHERE slot = 'a'",
        "UPDATE states SET bytes = x'00' WHERE slot = 'b'",
        "UPDATE states SET sequence = 1 WHERE slot = 'a'",
        "UPDATE states SET salt = zeroblob(32)",
        "INSERT INTO states SELECT 'c', sequence, salt, bytes FROM states WHERE slot = 'a'",
        "INSERT INTO checkpoints VALUES (3, '{}', zeroblob(32))",
        "UPDATE rows SET body = replace(body, ':2}', ':3}') WHERE sequence = 5",
        "PRAGMA user_version = 0",
    ];
    for sql in edits {
        let folder = folder();
        drop(sample(folder.path()));
        let connection = rusqlite::Connection::open(folder.path().join("ledger.sqlite")).unwrap();
        connection.execute_batch(sql).unwrap();
        assert!(
            connection.changes() > 0 || sql.starts_with("PRAGMA"),
            "{sql}"
        );
        drop(connection);
        let error = Ledger::inspect(&params(folder.path())).err();
        let error = error.unwrap_or_else(|| panic!("not noticed: {sql}"));
        assert!(
            matches!(error, LedgerError::Damaged { .. }),
            "{sql}: {error}"
        );
        assert!(
            error.is_final() && error.to_string().contains("do not repair it"),
            "{error}"
        );
    }
}

/// Exported by the program that knew pure prices only, with the first two days of `config/files.toml`.
#[test]
fn rows_and_settings_of_older_ledgers_are_what_they_were() {
    let mut before = vec![0; 32];
    for line in include_str!("../data/ledger-of-pure-prices.jsonl").lines() {
        let stored: serde_json::Value = serde_json::from_str(line).unwrap();
        let row: LedgerRow = serde_json::from_value(stored["row"].clone()).unwrap();
        let hex = |text: &str| -> Vec<u8> {
            (0..64)
                .step_by(2)
                .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
                .collect()
        };
        let [salt, digest] = ["salt", "digest"].map(|field| hex(stored[field].as_str().unwrap()));
        // What this program writes has the digest of what that one wrote.
        before = link_whole(
            &before,
            stored["sequence"].as_u64().unwrap(),
            &salt,
            &serde_json::to_string(&row).unwrap(),
        );
        assert_eq!(before, digest);
        if let LedgerRow::Genesis(genesis) = row {
            let text =
                include_str!("../../config/files.toml").replace("2014-01-01T05", "2013-01-03T05");
            // What such a ledger is bound to for ever is what this program writes; the rest it takes over in a row.
            let now = bernstream_config::WorkerSettings::parse(&text, "f")
                .unwrap()
                .normalised;
            assert_eq!(
                bernstream_config::diff::ledger_differences(&genesis.settings, &now),
                Vec::<String>::new()
            );
            let other = now.replace(r#""time":"time""#, r#""time":"sent""#);
            assert_eq!(
                bernstream_config::diff::ledger_differences(&genesis.settings, &other).len(),
                1
            );
            assert_eq!(genesis.total, price(10));
        }
    }
}

#[test]
fn rows_that_are_numbered_wrong_are_noticed_even_where_the_chain_fits() {
    let renumbered = |number: fn(u64) -> u64| {
        let folder = folder();
        drop(sample(folder.path()));
        let file = rusqlite::Connection::open(folder.path().join("ledger.sqlite")).unwrap();
        let mut before = (0, vec![0; 32]);
        // From the newest on, so that no number is taken; then the digests from the first on.
        for sequence in (0..6).rev() {
            let tables = ["rows", "outbox", "states"];
            for table in tables {
                let renumber = format!("UPDATE {table} SET sequence = ?2 WHERE sequence = ?1");
                file.execute(
                    &renumber,
                    [sequence, number(sequence)].map(|n| i64::try_from(n).unwrap()),
                )
                .unwrap();
            }
        }
        for sequence in (0..6).map(number) {
            before = rechain(&file, i64::try_from(sequence).unwrap(), before);
        }
        drop(file);
        Ledger::open(&params(folder.path())).map(drop)
    };
    renumbered(|sequence| sequence).unwrap();
    assert!(matches!(
        renumbered(|sequence| sequence + 1),
        Err(LedgerError::Damaged { .. })
    ));
    assert!(matches!(
        renumbered(|sequence| sequence + sequence / 3),
        Err(LedgerError::Damaged { .. })
    ));
}

#[test]
fn a_flip_of_any_byte_of_the_file_is_noticed_or_without_meaning() {
    let folder = folder();
    let before = view(&sample(folder.path()));
    let file = folder.path().join("ledger.sqlite");
    let whole = fs::read(&file).unwrap();
    let mut noticed = 0;
    for place in (0..whole.len()).step_by(11) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << (place % 8);
        fs::write(&file, &bytes).unwrap();
        match Ledger::inspect(&params(folder.path())) {
            // Which messages are known to be published is not part of the chain: at worst they are published again.
            Ok(ledger) if ledger.unpublished_count().unwrap() == 4 => match read(&ledger) {
                Err(LedgerError::Damaged { .. }) => noticed += 1,
                read => assert_eq!(read.unwrap(), before, "byte {place}"),
            },
            Ok(_) => {}
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > 500, "{noticed}");
}

#[test]
fn a_truncated_file_is_noticed() {
    let folder = folder();
    drop(sample(folder.path()));
    let file = folder.path().join("ledger.sqlite");
    let whole = fs::read(&file).unwrap();
    for length in (0..whole.len()).step_by(1024) {
        fs::write(&file, &whole[..length]).unwrap();
        let error = Ledger::open(&params(folder.path())).err();
        assert!(
            matches!(error, Some(LedgerError::Damaged { .. })),
            "{length}: {error:?}"
        );
    }
}

#[test]
fn a_ledger_has_one_worker() {
    let folder = folder();
    let ledger = sample(folder.path());
    assert!(matches!(
        Ledger::open(&params(folder.path())),
        Err(LedgerError::Locked { .. })
    ));
    let mut look = Ledger::inspect(&params(folder.path())).unwrap();
    assert_eq!(view(&look), view(&ledger));
    assert!(matches!(
        look.pay_window(closing(&look, &["EWR"], 1, 1)),
        Err(LedgerError::Locked { .. })
    ));
    drop(ledger);
    Ledger::open(&params(folder.path())).unwrap();
}

#[test]
fn a_file_that_is_replaced_under_a_running_worker_stops_it() {
    // Written over in place by an older copy.
    let folder = folder();
    let mut ledger = sample(folder.path());
    let file = folder.path().join("ledger.sqlite");
    let copy = fs::read(&file).unwrap();
    ledger.pay_window(closing(&ledger, &["EWR"], 1, 1)).unwrap();
    fs::write(&file, &copy).unwrap();
    assert!(ledger.make_claim(None).is_err());
    let error = ledger
        .pay_window(closing(&ledger, &["EWR"], 1, 1))
        .unwrap_err();
    assert!(matches!(error, LedgerError::Replaced { .. }), "{error}");
    assert!(matches!(
        ledger.pay_window(closing(&ledger, &["EWR"], 1, 1)),
        Err(LedgerError::Broken { .. })
    ));
    assert!(matches!(
        ledger.make_claim(None),
        Err(LedgerError::Broken { .. })
    ));
    drop(ledger);

    // Another file under the same name, and the file taken away.
    let mut ledger = Ledger::open(&params(folder.path())).unwrap();
    fs::write(folder.path().join("other"), &copy).unwrap();
    fs::rename(folder.path().join("other"), &file).unwrap();
    let error = ledger
        .pay_window(closing(&ledger, &["EWR"], 1, 1))
        .unwrap_err();
    assert!(matches!(error, LedgerError::Replaced { .. }), "{error}");
    drop(ledger);
    let mut ledger = Ledger::open(&params(folder.path())).unwrap();
    fs::remove_file(&file).unwrap();
    let error = ledger
        .pay_window(closing(&ledger, &["EWR"], 1, 1))
        .unwrap_err();
    assert!(matches!(error, LedgerError::Replaced { .. }), "{error}");
}

#[test]
fn bytes_that_are_edited_under_a_running_worker_do_not_leave() {
    let folder = folder();
    let ledger = sample(folder.path());
    edit(
        folder.path(),
        "UPDATE outbox SET bytes = x'00' WHERE sequence = 2 AND place = 0",
    );
    assert!(matches!(
        ledger.due_messages(ledger.head(), at(999), 1),
        Err(LedgerError::Damaged { .. })
    ));
}

/// A worker's whole world, for tests of one step after the other.
struct World {
    topic: Rc<RefCell<Topic>>,
    output: Rc<RefCell<Output>>,
}

impl World {
    fn new() -> Self {
        World {
            topic: Rc::default(),
            output: Rc::default(),
        }
    }

    fn step(
        &self,
        ledger: &mut Ledger,
    ) -> Result<deliver::DeliveryProgress, deliver::DeliveryError> {
        step(
            ledger,
            &mut MemoryWitness::new(&self.topic),
            &mut MemorySink::new(&self.output),
            at(100_000),
        )
    }
}

#[test]
fn nothing_is_published_before_the_witness_has_accepted_it() {
    let folder = folder();
    let world = World::new();
    let mut ledger = Ledger::create(&params(folder.path()), genesis(at(0), "0", None)).unwrap();
    ledger
        .pay_window(closing(&ledger, &["EWR", "JFK"], 1, 1))
        .unwrap();
    let progress = world.step(&mut ledger).unwrap();
    assert_eq!((progress.published, progress.has_claimed), (0, true));
    let progress = world.step(&mut ledger).unwrap();
    assert_eq!((progress.published, progress.has_claimed), (2, false));
    let progress = world.step(&mut ledger).unwrap();
    assert_eq!(
        (progress.published, progress.has_claimed, progress.next_due),
        (0, false, None)
    );
    assert_eq!(world.output.borrow().0.len(), 2);
}

/// A witness, or a sink, that notes what it is asked.
struct Noted<'a, T>(T, &'a RefCell<Vec<String>>);

impl Witness for Noted<'_, MemoryWitness> {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        self.1.borrow_mut().push("the witness is read".into());
        self.0.read()
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        self.0.identity()
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
        self.0.append(claim)
    }
}

impl Sink for Noted<'_, MemorySink> {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        self.1.borrow_mut().push(format!("{} are sent", paid.len()));
        self.0.publish(paid)
    }

    fn confirm_place(&mut self) -> Result<(), sink::SinkError> {
        self.1.borrow_mut().push("the output is asked".into());
        self.0.confirm_place()
    }
}

/// What comes in at that moment, and how busy the machine is then, moves nothing but the sending itself.
#[test]
fn everything_is_prepared_before_the_moment_at_which_a_window_is_due() {
    let folder = folder();
    let world = World::new();
    let notes = RefCell::<Vec<String>>::default();
    let mut ledger = Ledger::create(&params(folder.path()), genesis(at(0), "0", None)).unwrap();
    ledger
        .pay_window(closing(&ledger, &["EWR", "JFK"], 1, 1))
        .unwrap();
    let second = Duration::from_secs(1);
    let mut step = |lead: Duration, is_waited_for: bool| {
        let wait = |moment: Timestamp| {
            notes.borrow_mut().push(format!("it is {moment}"));
            is_waited_for
        };
        let mut witness = Noted(MemoryWitness::new(&world.topic), &notes);
        let mut sink = Noted(MemorySink::new(&world.output), &notes);
        let now = at(60).minus(second);
        let progress = step_ahead(
            &mut ledger,
            &mut witness,
            &mut sink,
            now,
            &LookAhead { lead, wait: &wait },
        )
        .unwrap();
        (progress.published, notes.take())
    };
    assert_eq!(
        step(2 * second, true),
        (0, vec!["the witness is read".into()]),
        "it is claimed"
    );
    let asked = ["the witness is read", "the output is asked"];
    assert_eq!(
        step(second / 2, true),
        (0, asked.map(String::from).to_vec()),
        "it is not due soon"
    );
    let prepared = [
        "the witness is read",
        "the output is asked",
        "it is 1970-01-01T01:00:00Z",
    ];
    assert_eq!(
        step(second, false),
        (0, prepared.map(String::from).to_vec()),
        "the worker stops before"
    );
    let sent = ["2 are sent", "the output is asked"];
    assert_eq!(
        step(second, true),
        (
            2,
            prepared
                .iter()
                .chain(&sent)
                .map(ToString::to_string)
                .collect()
        )
    );
}

#[test]
fn an_older_copy_that_is_restored_stops() {
    let folder = folder();
    let world = World::new();
    let mut ledger = Ledger::create(&params(folder.path()), genesis(at(0), "0", None)).unwrap();
    world.step(&mut ledger).unwrap();
    let file = folder.path().join("ledger.sqlite");
    let copy = fs::read(&file).unwrap();
    ledger.pay_window(closing(&ledger, &["EWR"], 1, 1)).unwrap();
    world.step(&mut ledger).unwrap();
    world.step(&mut ledger).unwrap();
    drop(ledger);
    fs::write(&file, copy).unwrap();
    let mut ledger = Ledger::open(&params(folder.path())).unwrap();
    ledger.pay_window(closing(&ledger, &["EWR"], 1, 2)).unwrap();
    let error = world.step(&mut ledger).unwrap_err();
    assert!(
        matches!(
            error,
            deliver::DeliveryError::Ledger(LedgerError::ForeignHead { .. })
        ) && !error.is_transient(),
        "{error}"
    );
    assert_eq!(world.output.borrow().0.len(), 1);
}

#[test]
fn a_copy_that_is_started_beside_the_worker_publishes_nothing_whoever_is_faster() {
    for names_its_maker in [true, false] {
        let here = folder();
        let there = folder();
        let world = World::new();
        let mut ledger = Ledger::create(&params(here.path()), genesis(at(0), "0", None)).unwrap();
        world.step(&mut ledger).unwrap();
        if !names_its_maker {
            // As an earlier version claimed.
            world
                .topic
                .borrow_mut()
                .log
                .iter_mut()
                .for_each(|claim| claim.maker = None);
        }
        for file in fs::read_dir(here.path()).unwrap().map(|file| file.unwrap()) {
            fs::copy(file.path(), there.path().join(file.file_name())).unwrap();
        }
        let mut copy = Ledger::open(&params(there.path())).unwrap();
        ledger.pay_window(closing(&ledger, &["EWR"], 1, 1)).unwrap();
        copy.pay_window(closing(&copy, &["EWR"], 1, 2)).unwrap();
        let mut winner = ledger;
        let mut loser = copy;
        // The copy is faster.
        let progress = world.step(&mut loser).unwrap();
        assert_eq!(
            (progress.is_waiting, progress.has_claimed),
            (names_its_maker, !names_its_maker)
        );
        if !names_its_maker {
            // Nobody knows which is the original: the first claim in the topic wins.
            std::mem::swap(&mut winner, &mut loser);
        } else {
            assert!(world.step(&mut winner).unwrap().has_claimed);
        }
        let error = world.step(&mut loser).unwrap_err();
        assert!(
            matches!(
                error,
                deliver::DeliveryError::Ledger(LedgerError::ForeignHead { .. })
            ),
            "{error}"
        );
        let text = error.to_string();
        for words in [
            &winner.instance().unwrap().to_string(),
            "a copy or an older state",
            "a copy of it was started",
        ] {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(world.step(&mut winner).unwrap().published, 1);
        assert_eq!(world.output.borrow().0.len(), 1);
    }
}

#[test]
fn a_ledger_that_was_moved_goes_on_after_some_seconds_and_one_that_stayed_at_once() {
    let here = folder();
    let there = folder();
    let world = World::new();
    let mut ledger = Ledger::create(&params(here.path()), genesis(at(0), "0", None)).unwrap();
    world.step(&mut ledger).unwrap();
    let instance = ledger.instance();
    drop(ledger);
    let mut ledger = Ledger::open(&params(here.path())).unwrap();
    assert_ne!(ledger.instance(), instance, "it is another process");
    ledger.pay_window(closing(&ledger, &["EWR"], 1, 1)).unwrap();
    assert!(world.step(&mut ledger).unwrap().has_claimed);
    drop(ledger);
    // One that ends before it claims changes nothing for the next one.
    for _ in 0..3 {
        let mut ledger = Ledger::open(&params(here.path())).unwrap();
        ledger.pay_window(closing(&ledger, &["EWR"], 1, 1)).unwrap();
        let accepted = world.topic.borrow().accepted().unwrap();
        assert!(ledger.schedule_claim(Some(&accepted), at(1000)).unwrap() <= at(1000));
        assert!(ledger.make_claim(Some(&accepted.head)).unwrap().is_some());
    }
    let mut ledger = Ledger::open(&params(here.path())).unwrap();
    assert!(world.step(&mut ledger).unwrap().has_claimed);
    drop(ledger);
    for file in fs::read_dir(here.path()).unwrap().map(|file| file.unwrap()) {
        fs::copy(file.path(), there.path().join(file.file_name())).unwrap();
    }
    let mut ledger = Ledger::open(&params(there.path())).unwrap();
    assert_ne!(ledger.instance(), instance);
    ledger.pay_window(closing(&ledger, &["EWR"], 1, 2)).unwrap();
    let step = |ledger: &mut Ledger, seconds: u64| {
        let mut witness = MemoryWitness::new(&world.topic);
        let mut sink = MemorySink::new(&world.output);
        step(
            ledger,
            &mut witness,
            &mut sink,
            at(1000).plus(Duration::from_secs(seconds)),
        )
        .unwrap()
    };
    for seconds in [5, 9] {
        assert!(step(&mut ledger, seconds).is_waiting);
    }
    // Where the clock steps back the wait begins anew.
    assert!(step(&mut ledger, 1).is_waiting && step(&mut ledger, 10).is_waiting);
    // Not to the microsecond: what a step takes counts too.
    assert!(step(&mut ledger, 12).has_claimed);
    ledger.pay_window(closing(&ledger, &["EWR"], 1, 3)).unwrap();
    assert!(
        step(&mut ledger, 13).has_claimed,
        "it has made the last accepted claim"
    );
}

#[test]
fn a_witness_that_was_made_anew_stops_the_worker() {
    let folder = folder();
    let world = World::new();
    let mut ledger = Ledger::create(&params(folder.path()), genesis(at(0), "0", None)).unwrap();
    world.step(&mut ledger).unwrap();
    world.topic.borrow_mut().remake();
    assert!(matches!(
        world.step(&mut ledger),
        Err(deliver::DeliveryError::Ledger(
            LedgerError::ForeignWitness { .. }
        ))
    ));
}

#[test]
fn a_new_ledger_fences_the_one_before_it() {
    let (old, new, world) = (folder(), folder(), World::new());
    let mut before = Ledger::create(&params(old.path()), genesis(at(0), "0", None)).unwrap();
    world.step(&mut before).unwrap();
    before.pay_window(closing(&before, &["EWR"], 1, 1)).unwrap();
    let previous = world.topic.borrow().accepted().map(|claim| claim.head);
    let mut after = Ledger::create(&params(new.path()), genesis(at(240), "0", previous)).unwrap();
    assert_eq!(after.head().sequence, 1);
    world.step(&mut after).unwrap();
    assert!(matches!(
        world.step(&mut before),
        Err(deliver::DeliveryError::Ledger(
            LedgerError::ForeignHead { .. }
        ))
    ));
    after.pay_window(closing(&after, &["EWR"], 1, 2)).unwrap();
    world.step(&mut after).unwrap();
    assert_eq!(world.step(&mut after).unwrap().published, 1);
    drop(after);
    Ledger::open(&params(new.path())).unwrap();
}

// Real crashes: this test binary runs itself, as a worker that pays, publishes and forgets until it is stopped.

const WORKER: &str = "BERNSTREAM_TEST_LEDGER_WORKER";

#[test]
fn worker() {
    let Ok(folder) = std::env::var(WORKER) else {
        return;
    };
    let params = params(Path::new(&folder));
    let run = || {
        let mut ledger = if ledger_exists(&params)? {
            Ledger::open(&params)?
        } else {
            Ledger::create(&params, genesis(at(0), "w", None))?
        };
        loop {
            let draw = ledger.next_sequence();
            let mut closing = closing(&ledger, &["EWR", "JFK", "LGA"], 2, draw);
            closing.sealed = ["EWR", "JFK", "LGA"]
                .map(|key| padded(closing.window, key, draw, 15_000))
                .to_vec();
            ledger.pay_window(closing)?;
            // Only what was committed is announced; what was announced must be there for ever.
            println!("paid {} {}", ledger.head().sequence, ledger.head().digest);
            let accepted = *ledger.head();
            while let Some(paid) = ledger
                .due_messages(&accepted, at(i64::MAX / 60_000_000), 1)?
                .pop()
            {
                ledger.mark_published(std::slice::from_ref(&paid), paid.window().end)?;
            }
        }
    };
    let error: LedgerError = match run() {
        Ok(never) => never,
        Err(error) => error,
    };
    println!("stopped {error:?}");
}

/// The newest row that the worker announced, and what it stopped with.
fn run_worker(
    command: &mut Command,
    kill_after: Option<usize>,
) -> (Option<String>, Option<String>) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut announced = None;
    let mut stopped = None;
    let mut count = 0;
    for line in BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
    {
        if let Some(paid) = line.split_once("paid ").map(|(_, paid)| paid) {
            announced = Some(paid.to_string());
            count += 1;
            if kill_after.is_some_and(|after| count > after) {
                child.kill().unwrap();
            }
        } else if let Some((_, why)) = line.split_once("stopped ") {
            stopped = Some(why.to_string());
        }
    }
    child.wait().unwrap();
    (announced, stopped)
}

fn assert_whole(folder: &Path, announced: Option<&str>) {
    let ledger = Ledger::open(&params(folder)).unwrap();
    if let Some((sequence, digest)) = announced.and_then(|paid| paid.split_once(' ')) {
        let head = format!(r#"{{"sequence":{sequence},"digest":"{digest}"}}"#);
        assert!(
            ledger
                .contains(&serde_json::from_str(&head).unwrap())
                .unwrap(),
            "an announced row is gone"
        );
    }
    // Every closed window is charged, exactly once.
    let closed = u64::try_from(ledger.next_window().micros() / 3_600_000_000).unwrap();
    let blocks = ledger.newest_blocks(usize::MAX).unwrap().into_iter();
    let spent = blocks
        .map(|(_, spent)| spent)
        .fold(price(0), |sum, spent| sum.checked_add(spent).unwrap());
    assert_eq!(spent, price(2 * closed));
    let released = ledger
        .rows()
        .unwrap()
        .iter()
        .filter(|row| matches!(row.row, LedgerRow::Window(_)))
        .count();
    assert_eq!(u64::try_from(released).unwrap(), closed);
}

fn this_program(shell: &str, folder: &Path) -> Command {
    let mut command = Command::new("bash");
    let program = std::env::current_exe().unwrap();
    command.args([
        "-c",
        &format!("{shell} exec \"$0\" --exact ledger::worker --nocapture"),
        program.to_str().unwrap(),
    ]);
    command.env(WORKER, folder);
    command
}

#[test]
fn a_worker_that_is_killed_at_any_moment_leaves_a_whole_ledger() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let (announced, _) = run_worker(&mut this_program("", folder.path()), Some(round % 7));
        assert!(announced.is_some());
        assert_whole(folder.path(), announced.as_deref());
    }
}

#[test]
fn a_disk_that_fills_up_stops_the_worker_and_leaves_a_whole_ledger() {
    // The limit on the size of a file stands for a disk that is full: writes fail, at another place in every round.
    let mut stops = vec![];
    for kilobytes in (60..200).step_by(9) {
        let folder = tempfile::tempdir().unwrap();
        let limited = format!("trap '' XFSZ; ulimit -f {kilobytes};");
        let (announced, stopped) = run_worker(&mut this_program(&limited, folder.path()), None);
        let stopped = stopped.expect("the worker says why it stops");
        assert!(
            stopped.starts_with("Full") || stopped.starts_with("Disk"),
            "{stopped}"
        );
        stops.push(announced.clone());
        if ledger_exists(&params(folder.path())).unwrap() {
            assert_whole(folder.path(), announced.as_deref());
        }
    }
    stops.dedup();
    assert!(stops.len() > 5, "{stops:?}");
}

// The command line, on files.

fn bernstream(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
    let output = command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn the_command_line_proves_what_is_on_the_output_and_brings_back_what_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = fs::read_to_string(root.join("config/files.toml")).unwrap();
    let config = config
        .replace("2014-01-01T05", "2013-01-04T05")
        .replace("/files\"", "\"");
    fs::write(folder.path().join("config.toml"), config).unwrap();
    fs::create_dir(folder.path().join("flights")).unwrap();
    fs::copy(
        root.join("tests/data/flights.parquet"),
        folder.path().join("flights/flights.parquet"),
    )
    .unwrap();
    let ledger = |action| bernstream(folder.path(), &["ledger", action, "config.toml"]);

    assert!(!ledger("show").0);
    assert!(ledger("init").0);
    assert!(!ledger("init").0);
    assert!(bernstream(folder.path(), &["run", "config.toml"]).0);
    let (is_fine, text) = ledger("verify");
    assert!(
        is_fine
            && text.contains("byte for byte: 9")
            && text
                .lines()
                .last()
                .is_some_and(|l| l.starts_with("verified: ")),
        "{text}"
    );
    let (is_fine, text) = ledger("export");
    assert!(is_fine && text.lines().count() == 4, "{text}");
    assert!(
        !text.contains("ends") && !text.contains("salt") && !text.contains("note:"),
        "{text}"
    );
    assert_eq!(
        follow(&text.lines().map(str::to_owned).collect::<Vec<_>>()),
        4
    );
    let (is_fine, text) = bernstream(
        folder.path(),
        &["ledger", "export", "--secret", "config.toml"],
    );
    assert!(
        is_fine && text.matches(r#""ends":"#).count() == 3 && text.matches("salt").count() == 4,
        "{text}"
    );
    assert!(ledger("show").1.contains("3 released"));

    // From the output alone: nobody needs the ledger.
    let output_only = || {
        let away = folder.path().join("away");
        fs::rename(folder.path().join("ledger"), &away).unwrap();
        let found = bernstream(
            folder.path(),
            &["ledger", "verify", "--output-only", "config.toml"],
        );
        fs::rename(away, folder.path().join("ledger")).unwrap();
        found
    };
    let (is_fine, text) = output_only();
    assert!(
        is_fine && text.contains("9 messages of the rows 1 to 3"),
        "{text}"
    );
    for said in [
        "pure differential privacy, at most 1 per block, for a record",
        "1 of 1",
        "has 0 left",
        "nothing that",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }

    let lost = folder
        .path()
        .join("out/flights/departure-delay/EWR/2013-01-02T050000Z.arrows");
    let bytes = fs::read(&lost).unwrap();
    fs::remove_file(&lost).unwrap();
    let (is_fine, text) = output_only();
    assert!(
        is_fine && text.contains("departure-delay, key EWR, window 2013-01-02T05:00:00Z"),
        "{text}"
    );
    // Nothing is sent again that nobody has asked for.
    let (is_fine, text) = ledger("republish");
    let asked = "9 messages of 3 windows again, those that start from 2013-01-01T05:00:00Z to 2013-01-03T05:00:00Z: add --all";
    assert!(!is_fine && text.contains(asked) && !lost.exists(), "{text}");
    assert!(
        bernstream(
            folder.path(),
            &["ledger", "republish", "config.toml", "--all"]
        )
        .1
        .contains("published 9")
    );
    assert_eq!(fs::read(&lost).unwrap(), bytes);
    let other = lost.with_file_name("2013-01-09T050000Z.arrows");
    fs::write(&other, [bytes, vec![0]].concat()).unwrap();
    let (is_fine, text) = ledger("verify");
    // There is one verdict, and it comes last.
    assert!(
        !is_fine && text.contains("2013-01-09") && !text.contains("verified"),
        "{text}"
    );
    let (is_fine, text) = output_only();
    assert!(!is_fine && text.contains("2013-01-09"), "{text}");
    fs::remove_file(&other).unwrap();

    // What cannot go on says how another one can, and `ledger init` is not it: it refuses for files that were released.
    let advice = "another ledger.path and another output.files.path";
    let says_how = |arguments: &[&str], words: &str| {
        let (is_fine, text) = bernstream(folder.path(), arguments);
        assert!(!is_fine && text.contains(words), "{text}");
        assert!(
            text.contains(advice) && !text.contains("ledger init"),
            "{text}"
        );
    };
    let file = folder.path().join("ledger/ledger.sqlite");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    says_how(&["run", "config.toml"], "is damaged");
    says_how(&["ledger", "verify", "config.toml"], "is damaged");
    fs::remove_file(&file).unwrap();
    says_how(&["ledger", "verify", "config.toml"], "there is no ledger");
    says_how(&["run", "config.toml"], "may have been published already");
    says_how(
        &["ledger", "init", "config.toml"],
        "may have been published already",
    );
    fs::write(&file, &whole).unwrap();

    fs::remove_file(folder.path().join("out/witness")).unwrap();
    for arguments in [
        ["ledger", "verify", "config.toml"].as_slice(),
        &["ledger", "republish", "config.toml"],
    ] {
        says_how(arguments, "is missing; it is never created anew");
    }
    says_how(
        &["run", "config.toml"],
        "is missing; it is never created anew",
    );

    // An output without a synopsis proves nothing.
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    for _ in ["no folder", "an empty folder"] {
        let (is_fine, text) = bernstream(
            folder.path(),
            &["ledger", "verify", "--output-only", "config.toml"],
        );
        assert!(
            !is_fine && text.contains("so there is nothing to verify"),
            "{text}"
        );
        fs::create_dir_all(folder.path().join("out")).unwrap();
    }
}
