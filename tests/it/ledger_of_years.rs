//! A ledger that is kept for years: opening it does not take longer, its settings change, its noise goes on.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bernstream::ledger::{Closing, Configuration, Error, Genesis, Ledger, Outcome, Row};
use bernstream::source::Positions;

use crate::harness::ledger::{at, block, closing, folder, format_1, genesis, params, price, window};

fn sql(folder: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(folder.join("ledger.sqlite")).unwrap();
    connection.execute_batch(sql).unwrap();
    assert!(connection.changes() > 0, "{sql}");
}

/// A ledger of so many windows, all published but the last `waiting`.
fn grown(folder: &Path, windows: usize, waiting: usize) -> Ledger {
    let mut ledger = Ledger::create(&params(folder), genesis(at(0), "w", None)).unwrap();
    for draw in 0..windows {
        ledger.pay(closing(&ledger, &["k"], 4, draw as u64)).unwrap();
        if draw + waiting < windows {
            let paid = ledger.deliverable(ledger.head(), None, at(i64::MAX / 60_000_000)).unwrap().unwrap();
            ledger.mark_published(std::slice::from_ref(&paid), paid.window().end).unwrap();
        }
    }
    ledger
}

fn is_damaged<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Damaged { .. }))
}

#[test]
fn damage_of_an_old_row_stops_whoever_verifies_and_of_a_new_one_the_worker() {
    // Checkpoints are at the rows 256 and 512; blocks are of two windows, so that the last one is live.
    let whole = folder();
    drop(grown(whole.path(), 599, 1));
    let cases = [
        ("UPDATE rows SET body = replace(body, '0.4', '0.1') WHERE sequence = 10", false),
        ("DELETE FROM rows WHERE sequence = 10", false),
        ("UPDATE rows SET salt = zeroblob(32) WHERE sequence = 400", false),
        ("UPDATE outbox SET key = 'p/x' WHERE sequence = 400", false),
        ("UPDATE spent SET price = '\"0.1\"' WHERE block_start = 0", false),
        ("DELETE FROM checkpoints WHERE sequence = 512; UPDATE checkpoints SET body = body || ' '", false),
        ("UPDATE checkpoints SET body = replace(body, '\"0.8\"', '\"0.1\"')", false),
        ("UPDATE checkpoints SET sequence = sequence + 1", false),
        ("UPDATE rows SET body = replace(body, 'first', 'First') WHERE sequence = 0", true),
        ("UPDATE rows SET digest = zeroblob(32) WHERE sequence = 512", true),
        ("DELETE FROM rows WHERE sequence = 512", true),
        ("UPDATE rows SET body = replace(body, '0.4', '0.1') WHERE sequence = 513", true),
        ("UPDATE rows SET salt = zeroblob(32) WHERE sequence = 599", true),
        ("DELETE FROM rows WHERE sequence = 599", true),
        ("UPDATE outbox SET bytes = x'00' WHERE sequence = 599", true),
        ("DELETE FROM outbox WHERE sequence = 590", true),
        ("INSERT INTO outbox VALUES (601, 0, 'p/k', '[]', x'00', 1)", true),
        ("UPDATE spent SET price = '\"0.1\"' WHERE block_start = (SELECT max(block_start) FROM spent)", true),
        ("DELETE FROM spent WHERE block_start = (SELECT max(block_start) FROM spent)", true),
    ];
    for (edit, stops_the_worker) in cases {
        let folder = folder();
        fs::copy(whole.path().join("ledger.sqlite"), folder.path().join("ledger.sqlite")).unwrap();
        sql(folder.path(), edit);
        assert!(is_damaged(&Ledger::inspect(&params(folder.path()))), "{edit}");
        let opened = Ledger::open(&params(folder.path()));
        assert_eq!(is_damaged(&opened), stops_the_worker, "{edit}: {opened:?}");
        // What it goes on with is what it was: the newest block can pay 0.6 more, and no more.
        if let Ok(mut ledger) = opened {
            assert_eq!((ledger.next_sequence(), ledger.spent(block(299))), (600, price(4)), "{edit}");
            assert!(ledger.pay(closing(&ledger, &["k"], 7, 1)).is_err(), "{edit}");
            ledger.pay(closing(&ledger, &["k"], 6, 1)).unwrap();
        }
    }
    Ledger::inspect(&params(whole.path())).unwrap();
}

#[test]
fn the_rows_of_messages_that_have_not_left_are_verified_however_old_they_are() {
    let folder = folder();
    drop(grown(folder.path(), 560, 400));
    Ledger::open(&params(folder.path())).unwrap();
    sql(folder.path(), "UPDATE rows SET salt = zeroblob(32) WHERE sequence = 170");
    assert!(is_damaged(&Ledger::open(&params(folder.path()))));
}

#[test]
fn a_checkpoint_is_of_its_own_ledger() {
    let (here, there) = (folder(), folder());
    drop((grown(here.path(), 300, 1), grown(there.path(), 300, 1)));
    let other = there.path().join("ledger.sqlite");
    sql(
        here.path(),
        &format!(
            "ATTACH '{}' AS other; DELETE FROM checkpoints; INSERT INTO checkpoints SELECT * FROM other.checkpoints",
            other.display()
        ),
    );
    assert!(is_damaged(&Ledger::open(&params(here.path()))));
}

#[test]
fn a_ledger_of_format_1_goes_on_and_one_that_is_not_whole_stays_as_it_was() {
    for windows in [1, 601] {
        let folder = folder();
        format_1(folder.path(), windows);
        let copy = fs::read(folder.path().join("ledger.sqlite")).unwrap();
        let mut ledger = Ledger::open(&params(folder.path())).unwrap();
        assert_eq!(ledger.next_sequence(), windows + 1);
        let last = i64::try_from(windows).unwrap() - 1;
        assert_eq!((ledger.next_window(), ledger.unpublished().unwrap()), (window(last).end, 1));
        assert_eq!((ledger.settings(), ledger.newest_block()), ("{}", Some((block(last / 2), price(4)))));
        assert_eq!(ledger.blocks(usize::MAX).unwrap().len() as u64, windows.div_ceil(2));
        assert!(ledger.pay(closing(&ledger, &["k"], 7, 1)).is_err());
        ledger.pay(closing(&ledger, &["k"], 6, 1)).unwrap();
        drop(ledger);
        Ledger::inspect(&params(folder.path())).unwrap();

        for edit in [
            "UPDATE spent SET epsilon = '0.1' WHERE block_start = 0",
            "UPDATE rows SET salt = zeroblob(32) WHERE sequence = 1",
            "UPDATE outbox SET key = 'x' WHERE sequence = 1",
        ] {
            fs::write(folder.path().join("ledger.sqlite"), &copy).unwrap();
            sql(folder.path(), edit);
            let edited = fs::read(folder.path().join("ledger.sqlite")).unwrap();
            assert!(is_damaged(&Ledger::open(&params(folder.path()))), "{edit}");
            assert_eq!(fs::read(folder.path().join("ledger.sqlite")).unwrap(), edited);
        }
    }
}

#[test]
fn a_ledger_of_a_newer_program_is_not_called_damaged() {
    let folder = folder();
    drop(grown(folder.path(), 1, 1));
    rusqlite::Connection::open(folder.path().join("ledger.sqlite"))
        .unwrap()
        .pragma_update(None, "user_version", 3)
        .unwrap();
    assert!(matches!(Ledger::open(&params(folder.path())), Err(Error::Newer { format: 3, .. })));
}

/// What this thread has read from files while it did `work`, in bytes.
#[cfg(target_os = "linux")]
fn read_by<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let read = || -> u64 {
        let counts = fs::read_to_string("/proc/thread-self/io").unwrap();
        counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
    };
    let before = read();
    let done = work();
    (read() - before, done)
}

#[test]
#[cfg(target_os = "linux")]
fn what_opening_and_paying_read_does_not_grow_with_the_number_of_rows() {
    // As many rows after the newest checkpoint in each.
    let [short, long] = [2_000, 2_000 + 64 * 256].map(|windows| {
        let folder = folder();
        format_1(folder.path(), windows);
        drop(Ledger::open(&params(folder.path())).unwrap());
        let (to_open, mut ledger) = read_by(|| Ledger::open(&params(folder.path())).unwrap());
        let (to_pay, paid) = read_by(|| ledger.pay(closing(&ledger, &["k"], 1, 1)));
        paid.unwrap();
        let (to_verify, verified) = read_by(|| ledger.verify_all());
        verified.unwrap();
        [to_open, to_pay, to_verify]
    });
    // Nine times the rows: some levels of the trees more, and nothing else.
    for at in 0..2 {
        assert!(long[at] < short[at] + 100_000, "{short:?} {long:?}");
    }
    assert!(long[2] > 6 * short[2], "verifying reads it all: {short:?} {long:?}");
}

/// Half a minute of writing the rows: run it by its name, with `--ignored`.
#[test]
#[ignore = "it writes a gigabyte"]
fn a_million_rows_are_opened_in_under_a_second() {
    let folder = folder();
    let clock = |what: &str, started: Instant| println!("{what}: {:?}", started.elapsed());
    let started = Instant::now();
    format_1(folder.path(), 1_000_000);
    clock("written", started);
    let started = Instant::now();
    drop(Ledger::open(&params(folder.path())).unwrap());
    clock("brought to this format", started);
    let started = Instant::now();
    let mut ledger = Ledger::open(&params(folder.path())).unwrap();
    let taken = started.elapsed();
    clock("opened", started);
    let started = Instant::now();
    ledger.pay(closing(&ledger, &["k"], 1, 1)).unwrap();
    clock("paid", started);
    let started = Instant::now();
    ledger.verify_all().unwrap();
    clock("verified", started);
    assert!(taken < Duration::from_secs(1), "{taken:?}");
}

#[test]
fn settings_change_from_a_window_on_and_what_was_spent_stays_spent() {
    let folder = folder();
    let mut ledger = grown(folder.path(), 1, 1);
    let accepted = *ledger.head();
    let to = |settings: &str, first| Configuration { settings: settings.into(), first, reach: Duration::ZERO };
    assert!(matches!(ledger.reconfigure(to("{2}", at(59))), Err(Error::Refused { .. })));
    ledger.reconfigure(to("{2}", at(60))).unwrap();
    assert_eq!((ledger.settings(), ledger.genesis().settings.as_str()), ("{2}", "{}"));
    assert!(ledger.pay(closing(&ledger, &["k"], 7, 1)).is_err(), "the block has spent 0.4 before");
    ledger.pay(closing(&ledger, &["k"], 6, 1)).unwrap();
    // Windows that were not closed are skipped for ever.
    ledger.reconfigure(to("{3}", at(240))).unwrap();
    assert_eq!(ledger.next_window(), at(240));
    assert!(ledger.withhold(window(2), Positions::default()).is_err());
    ledger.withhold(window(4), Positions::default()).unwrap();
    let windows: Vec<_> =
        ledger.newest(|_| true).unwrap().into_iter().map(|(row, closed)| (row, closed.window)).collect();
    assert_eq!(windows, [(5, window(4)), (3, window(1)), (1, window(0))]);
    // One claim covers all of it, and what is on the disk says the same.
    let claim = ledger.claim(Some(&accepted)).unwrap().unwrap();
    assert_eq!((claim.previous, claim.head), (Some(accepted), *ledger.head()));
    let (head, blocks) = (*ledger.head(), ledger.blocks(9).unwrap());
    drop(ledger);
    for ledger in [Ledger::open(&params(folder.path())), Ledger::inspect(&params(folder.path()))] {
        let ledger = ledger.unwrap();
        assert_eq!((ledger.settings(), *ledger.head(), ledger.blocks(9).unwrap()), ("{3}", head, blocks.clone()));
    }
}

#[test]
fn hopping_windows_charge_back_over_checkpoints_and_restarts() {
    let folder = folder();
    let begun = Genesis { reach: Duration::from_secs(7200), ..genesis(at(0), "w", None) };
    let mut ledger = Ledger::create(&params(folder.path()), begun).unwrap();
    // Each window of three hours charges its three hours 0.3: in all 0.9 of 1.
    let hopping = |ledger: &Ledger| {
        let next = closing(ledger, &["k"], 3, 1);
        let n = next.window.start.micros() / 3_600_000_000;
        Closing { charges: (n - 2..=n).map(|n| (window(n), price(3))).collect(), ..next }
    };
    for n in 0..300 {
        if n % 50 == 0 {
            drop(ledger);
            ledger = Ledger::open(&params(folder.path())).unwrap();
        }
        ledger.pay(hopping(&ledger)).unwrap();
    }
    let spent: Vec<_> = ledger.blocks(4).unwrap().into_iter().map(|(_, spent)| spent).collect();
    assert_eq!(spent, [3, 6, 9, 9].map(price));
    assert_eq!(ledger.live_from(), window(297).end.minus(Duration::ZERO));
    let next = hopping(&ledger);
    let back = |n: i64| (n..=300).map(|n| (window(n), price(1))).collect();
    assert!(matches!(ledger.pay(Closing { charges: back(297), ..next.clone() }), Err(Error::Refused { .. })));
    ledger.pay(Closing { charges: back(298), ..next }).unwrap();
    drop(ledger);
    Ledger::inspect(&params(folder.path())).unwrap();
}

#[test]
fn noise_goes_on_from_the_state_that_was_paid_for_and_from_no_other() {
    let folder = folder();
    let mut ledger = grown(folder.path(), 1, 1);
    assert_eq!(ledger.state("r/k").unwrap(), None);
    let with = |ledger: &Ledger, bytes: &[u8]| Closing {
        states: vec![("r/k".into(), bytes.to_vec()), ("r/l".into(), vec![3; 2_000_000])],
        ..closing(ledger, &["k"], 1, 1)
    };
    let mut twice = with(&ledger, b"0");
    twice.states.push(("r/k".into(), vec![]));
    assert!(matches!(ledger.pay(twice), Err(Error::Refused { .. })));
    ledger.pay(with(&ledger, b"first")).unwrap();
    let copy = fs::read(folder.path().join("ledger.sqlite")).unwrap();
    ledger.pay(with(&ledger, b"second")).unwrap();
    ledger.withhold(window(3), Positions::default()).unwrap();
    ledger.pay(closing(&ledger, &["k"], 1, 1)).unwrap();
    drop(ledger);
    let ledger = Ledger::inspect(&params(folder.path())).unwrap();
    assert_eq!(ledger.state("r/k").unwrap().as_deref(), Some(&b"second"[..]));
    assert_eq!(ledger.state("r/l").unwrap().map(|bytes| bytes.len()), Some(2_000_000));
    // Rows name the slots, and say nothing by which a state could be guessed.
    let rows = ledger.rows().unwrap();
    let states = |row: &Row| match row {
        Row::Window(row) => match &row.outcome {
            Outcome::Released { states, .. } => states.clone(),
            Outcome::Withheld => vec![],
        },
        _ => vec![],
    };
    let named: Vec<usize> = rows.iter().map(|row| states(&row.row).len()).collect();
    assert_eq!(named, [0, 0, 2, 2, 0, 0]);
    assert_ne!(states(&rows[2].row)[1], states(&rows[3].row)[1], "the same bytes, another salt");

    // An older state, whole as it is, is not the newest row's.
    let older = folder.path().join("older");
    fs::write(&older, copy).unwrap();
    let restore = format!(
        "ATTACH '{}' AS older; DELETE FROM states; INSERT INTO states SELECT * FROM older.states",
        older.display()
    );
    sql(folder.path(), &restore);
    let error = ledger.state("r/k").unwrap_err();
    assert!(matches!(&error, Error::Damaged { .. }) && error.to_string().contains("r/k"), "{error}");
    drop(ledger);
    assert!(is_damaged(&Ledger::open(&params(folder.path()))));
}

#[test]
fn a_row_that_could_not_be_read_again_is_refused_before_it_is_written() {
    let folder = folder();
    let mut ledger = grown(folder.path(), 1, 1);
    let next = closing(&ledger, &["k"], 1, 1);
    let ever = bernstream::window::grid::Span { start: at(0), end: at(i64::MAX / 60_000_000) };
    let refused = ledger.pay(Closing { charges: vec![(ever, price(1))], ..next.clone() });
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    ledger.pay(next).unwrap();
}
