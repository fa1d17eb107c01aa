//! A ledger that is kept for years: opening it does not take longer, its settings change, its noise goes on.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bernstream_ledger::{
    ArchiveStep, ClosingWindow, Configuration, Genesis, Ledger, LedgerError, LedgerRow,
    LedgerSummary, PendingWrite, ReleaseOutcome,
};
use bernstream_synopsis::Positions;

use crate::harness::ledger::{
    Told, at, block, closing, folder, format_4, genesis, of_years, params, price, window,
};

fn sql(folder: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(folder.join("ledger.sqlite")).unwrap();
    connection.execute_batch(sql).unwrap();
    assert!(connection.changes() > 0, "{sql}");
}

/// A ledger of so many windows, all published but the last `waiting`.
fn grown(folder: &Path, windows: usize, waiting: usize) -> Ledger {
    let mut ledger = Ledger::create(&params(folder), genesis(at(0), "w", None)).unwrap();
    for draw in 0..windows {
        ledger
            .pay_window(closing(&ledger, &["k"], 4, draw as u64))
            .unwrap();
        if draw + waiting < windows {
            let paid = ledger
                .due_messages(ledger.head(), at(i64::MAX / 60_000_000), 1)
                .unwrap()
                .pop()
                .unwrap();
            ledger
                .mark_published(std::slice::from_ref(&paid), paid.window().end)
                .unwrap();
        }
    }
    ledger
}

fn is_damaged<T>(outcome: &Result<T, LedgerError>) -> bool {
    matches!(outcome, Err(LedgerError::Damaged { .. }))
}

#[test]
fn damage_of_an_old_row_stops_whoever_verifies_and_of_a_new_one_the_worker() {
    // Checkpoints are at the rows 256 and 512; blocks are of two windows, so that the last one is live.
    let whole = folder();
    drop(grown(whole.path(), 599, 1));
    let cases = [
        (
            "UPDATE rows SET body = replace(body, '0.4', '0.1') WHERE sequence = 10",
            false,
        ),
        ("DELETE FROM rows WHERE sequence = 10", false),
        (
            "UPDATE rows SET salt = zeroblob(32) WHERE sequence = 400",
            false,
        ),
        (
            "UPDATE spent SET price = '\"0.1\"' WHERE block_start = 0",
            false,
        ),
        (
            "DELETE FROM checkpoints WHERE sequence = 512; UPDATE checkpoints SET body = body || ' '",
            false,
        ),
        (
            "UPDATE checkpoints SET body = replace(body, '\"0.8\"', '\"0.1\"')",
            false,
        ),
        ("UPDATE checkpoints SET sequence = sequence + 1", false),
        (
            "UPDATE rows SET body = replace(body, 'first', 'First') WHERE sequence = 0",
            true,
        ),
        (
            "UPDATE rows SET digest = zeroblob(32) WHERE sequence = 512",
            true,
        ),
        ("DELETE FROM rows WHERE sequence = 512", true),
        (
            "UPDATE rows SET body = replace(body, '0.4', '0.1') WHERE sequence = 513",
            true,
        ),
        (
            "UPDATE rows SET salt = zeroblob(32) WHERE sequence = 599",
            true,
        ),
        ("DELETE FROM rows WHERE sequence = 599", true),
        ("UPDATE outbox SET bytes = x'00' WHERE sequence = 599", true),
        ("UPDATE outbox SET key = 'p/x' WHERE sequence = 598", true),
        ("DELETE FROM outbox WHERE sequence = 598", true),
        (
            "INSERT INTO outbox VALUES (601, 0, 'p/k', '[]', x'00', 1)",
            true,
        ),
        (
            "UPDATE spent SET price = '\"0.1\"' WHERE block_start = (SELECT max(block_start) FROM spent)",
            true,
        ),
        (
            "DELETE FROM spent WHERE block_start = (SELECT max(block_start) FROM spent)",
            true,
        ),
    ];
    for (edit, stops_the_worker) in cases {
        let folder = folder();
        fs::copy(
            whole.path().join("ledger.sqlite"),
            folder.path().join("ledger.sqlite"),
        )
        .unwrap();
        sql(folder.path(), edit);
        assert!(
            is_damaged(&Ledger::inspect(&params(folder.path()))),
            "{edit}"
        );
        let opened = Ledger::open(&params(folder.path()));
        assert_eq!(is_damaged(&opened), stops_the_worker, "{edit}: {opened:?}");
        // What it goes on with is what it was: the newest block can pay 0.6 more, and no more.
        if let Ok(mut ledger) = opened {
            assert_eq!(
                (ledger.next_sequence(), ledger.spent(block(299))),
                (600, price(4)),
                "{edit}"
            );
            assert!(
                ledger.pay_window(closing(&ledger, &["k"], 7, 1)).is_err(),
                "{edit}"
            );
            ledger.pay_window(closing(&ledger, &["k"], 6, 1)).unwrap();
        }
    }
    Ledger::inspect(&params(whole.path())).unwrap();
}

#[test]
fn the_rows_of_messages_that_have_not_left_are_verified_however_old_they_are() {
    let folder = folder();
    drop(grown(folder.path(), 560, 400));
    Ledger::open(&params(folder.path())).unwrap();
    sql(
        folder.path(),
        "UPDATE rows SET salt = zeroblob(32) WHERE sequence = 170",
    );
    assert!(is_damaged(&Ledger::open(&params(folder.path()))));
}

#[test]
fn a_checkpoint_is_of_its_own_ledger() {
    let here = folder();
    let there = folder();
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
fn a_ledger_of_the_format_before_goes_on() {
    for windows in [1, 601] {
        let folder = folder();
        format_4(folder.path(), windows);
        assert_eq!(
            Ledger::pending_write(&params(folder.path())).unwrap(),
            Some(PendingWrite::Older { format: 4 })
        );
        let mut ledger = Ledger::open(&params(folder.path())).unwrap();
        assert_eq!(ledger.next_sequence(), windows + 1);
        let last = i64::try_from(windows).unwrap() - 1;
        assert_eq!(
            (ledger.next_window(), ledger.unpublished_count().unwrap()),
            (window(last).end, 1)
        );
        assert_eq!(
            (ledger.settings(), ledger.newest_block()),
            ("{}", Some((block(last / 2), price(4))))
        );
        assert_eq!(
            ledger.newest_blocks(usize::MAX).unwrap().len() as u64,
            windows.div_ceil(2)
        );
        assert!(ledger.pay_window(closing(&ledger, &["k"], 7, 1)).is_err());
        ledger.pay_window(closing(&ledger, &["k"], 6, 1)).unwrap();
        drop(ledger);
        Ledger::inspect(&params(folder.path())).unwrap();
        assert_eq!(Ledger::pending_write(&params(folder.path())).unwrap(), None);
    }
}

#[test]
fn a_ledger_of_an_older_format_is_refused_whoever_looks_at_it_and_stays_as_it_was() {
    let folder = folder();
    format_4(folder.path(), 3);
    for format in 1..4 {
        sql(
            folder.path(),
            &format!("PRAGMA user_version = {format}; UPDATE kept SET pruned = 0"),
        );
        let before = fs::read(folder.path().join("ledger.sqlite")).unwrap();
        let params = params(folder.path());
        let refusals = [
            Ledger::open(&params).map(drop),
            Ledger::inspect(&params).map(drop),
            Ledger::open_unlocked(&params).map(drop),
            Ledger::pending_write(&params).map(drop),
            Ledger::newest_settings(&params).map(drop),
            LedgerSummary::read_from(&params).map(drop),
        ];
        for refused in refusals {
            assert!(
                matches!(&refused, Err(LedgerError::Older { format: found, .. }) if *found == format),
                "{refused:?}"
            );
        }
        assert_eq!(
            fs::read(folder.path().join("ledger.sqlite")).unwrap(),
            before
        );
    }
}

#[test]
fn a_ledger_of_a_newer_program_is_not_called_damaged() {
    let folder = folder();
    drop(grown(folder.path(), 1, 1));
    rusqlite::Connection::open(folder.path().join("ledger.sqlite"))
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    assert!(matches!(
        Ledger::open(&params(folder.path())),
        Err(LedgerError::Newer { format: 99, .. })
    ));
}

/// What this thread has read from files while it did `work`, in bytes.
#[cfg(target_os = "linux")]
fn read_by<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let read = || -> u64 {
        let counts = fs::read_to_string("/proc/thread-self/io").unwrap();
        counts
            .lines()
            .find_map(|line| line.strip_prefix("rchar: "))
            .unwrap()
            .parse()
            .unwrap()
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
        drop(of_years(folder.path(), windows));
        let (to_open, mut ledger) = read_by(|| Ledger::open(&params(folder.path())).unwrap());
        let (to_pay, paid) = read_by(|| ledger.pay_window(closing(&ledger, &["k"], 1, 1)));
        paid.unwrap();
        let (to_verify, verified) = read_by(|| ledger.verify_all());
        verified.unwrap();
        [to_open, to_pay, to_verify]
    });
    // Nine times the rows: some levels of the trees more, and nothing else.
    for at in 0..2 {
        assert!(long[at] < short[at] + 100_000, "{short:?} {long:?}");
    }
    assert!(
        long[2] > 6 * short[2],
        "verifying reads it all: {short:?} {long:?}"
    );
}

/// Half a minute of writing the rows: run it by its name, with `--ignored`.
#[test]
#[ignore = "it writes a gigabyte"]
fn a_million_rows_are_opened_in_under_a_second() {
    let folder = folder();
    let clock = |what: &str, started: Instant| println!("{what}: {:?}", started.elapsed());
    let started = Instant::now();
    drop(of_years(folder.path(), 1_000_000));
    clock("written", started);
    let started = Instant::now();
    let mut ledger = Ledger::open(&params(folder.path())).unwrap();
    let taken = started.elapsed();
    clock("opened", started);
    let started = Instant::now();
    ledger.pay_window(closing(&ledger, &["k"], 1, 1)).unwrap();
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
    let to = |settings: &str, first| Configuration {
        settings: settings.into(),
        first,
        reach: Duration::ZERO,
        ended: vec![],
        until: None,
    };
    assert!(matches!(
        ledger.record_settings(to("{2}", at(59))),
        Err(LedgerError::Refused { .. })
    ));
    ledger.record_settings(to("{2}", at(60))).unwrap();
    assert_eq!(
        (ledger.settings(), ledger.genesis().settings.as_str()),
        ("{2}", "{}")
    );
    assert!(
        ledger.pay_window(closing(&ledger, &["k"], 7, 1)).is_err(),
        "the block has spent 0.4 before"
    );
    ledger.pay_window(closing(&ledger, &["k"], 6, 1)).unwrap();
    // Windows that were not closed are skipped for ever.
    ledger.record_settings(to("{3}", at(240))).unwrap();
    assert_eq!(ledger.next_window(), at(240));
    assert!(
        ledger
            .withhold_window(window(2), Positions::default())
            .is_err()
    );
    ledger
        .withhold_window(window(4), Positions::default())
        .unwrap();
    let windows: Vec<_> = ledger
        .newest_windows(|_| true)
        .unwrap()
        .into_iter()
        .map(|(row, closed)| (row, closed.window))
        .collect();
    assert_eq!(windows, [(5, window(4)), (3, window(1)), (1, window(0))]);
    // One claim covers all of it, and what is on the disk says the same.
    let claim = ledger.make_claim(Some(&accepted)).unwrap().unwrap();
    assert_eq!(
        (claim.previous, claim.head),
        (Some(accepted), *ledger.head())
    );
    let head = *ledger.head();
    let blocks = ledger.newest_blocks(9).unwrap();
    drop(ledger);
    for ledger in [
        Ledger::open(&params(folder.path())),
        Ledger::inspect(&params(folder.path())),
    ] {
        let ledger = ledger.unwrap();
        assert_eq!(
            (
                ledger.settings(),
                *ledger.head(),
                ledger.newest_blocks(9).unwrap()
            ),
            ("{3}", head, blocks.clone())
        );
    }
}

#[test]
fn hopping_windows_charge_back_over_checkpoints_and_restarts() {
    let folder = folder();
    let begun = Genesis {
        reach: Duration::from_secs(7200),
        ..genesis(at(0), "w", None)
    };
    let mut ledger = Ledger::create(&params(folder.path()), begun).unwrap();
    // Each window of three hours charges its three hours 0.3: in all 0.9 of 1.
    let hopping = |ledger: &Ledger| {
        let next = closing(ledger, &["k"], 3, 1);
        let n = next.window.start.micros() / 3_600_000_000;
        ClosingWindow {
            charges: (n - 2..=n).map(|n| (window(n), price(3))).collect(),
            ..next
        }
    };
    for n in 0..300 {
        if n % 50 == 0 {
            drop(ledger);
            ledger = Ledger::open(&params(folder.path())).unwrap();
        }
        ledger.pay_window(hopping(&ledger)).unwrap();
    }
    let spent: Vec<_> = ledger
        .newest_blocks(4)
        .unwrap()
        .into_iter()
        .map(|(_, spent)| spent)
        .collect();
    assert_eq!(spent, [3, 6, 9, 9].map(price));
    assert_eq!(ledger.live_from(), window(297).end.minus(Duration::ZERO));
    let next = hopping(&ledger);
    let back = |n: i64| (n..=300).map(|n| (window(n), price(1))).collect();
    assert!(matches!(
        ledger.pay_window(ClosingWindow {
            charges: back(297),
            ..next.clone()
        }),
        Err(LedgerError::Refused { .. })
    ));
    ledger
        .pay_window(ClosingWindow {
            charges: back(298),
            ..next
        })
        .unwrap();
    drop(ledger);
    Ledger::inspect(&params(folder.path())).unwrap();
}

#[test]
fn noise_goes_on_from_the_state_that_was_paid_for_and_from_no_other() {
    let folder = folder();
    let mut ledger = grown(folder.path(), 1, 1);
    assert_eq!(ledger.noise_state("r/k").unwrap(), None);
    let with = |ledger: &Ledger, bytes: &[u8]| ClosingWindow {
        states: vec![
            ("r/k".into(), bytes.to_vec()),
            ("r/l".into(), vec![3; 2_000_000]),
        ],
        ..closing(ledger, &["k"], 1, 1)
    };
    let mut twice = with(&ledger, b"0");
    twice.states.push(("r/k".into(), vec![]));
    assert!(matches!(
        ledger.pay_window(twice),
        Err(LedgerError::Refused { .. })
    ));
    ledger.pay_window(with(&ledger, b"first")).unwrap();
    let copy = fs::read(folder.path().join("ledger.sqlite")).unwrap();
    ledger.pay_window(with(&ledger, b"second")).unwrap();
    ledger
        .withhold_window(window(3), Positions::default())
        .unwrap();
    ledger.pay_window(closing(&ledger, &["k"], 1, 1)).unwrap();
    drop(ledger);
    let ledger = Ledger::inspect(&params(folder.path())).unwrap();
    assert_eq!(
        ledger.noise_state("r/k").unwrap().as_deref(),
        Some(&b"second"[..])
    );
    assert_eq!(
        ledger.noise_state("r/l").unwrap().map(|bytes| bytes.len()),
        Some(2_000_000)
    );
    // Rows name the slots, and say nothing by which a state could be guessed.
    let rows = ledger.rows().unwrap();
    let states = |row: &LedgerRow| match row {
        LedgerRow::Window(row) => match &row.outcome {
            ReleaseOutcome::Released { states, .. } => states.clone(),
            ReleaseOutcome::Withheld => vec![],
        },
        _ => vec![],
    };
    let named: Vec<usize> = rows.iter().map(|row| states(&row.row).len()).collect();
    assert_eq!(named, [0, 0, 2, 2, 0, 0]);
    assert_ne!(
        states(&rows[2].row)[1],
        states(&rows[3].row)[1],
        "the same bytes, another salt"
    );

    // An older state, whole as it is, is not the newest row's.
    let older = folder.path().join("older");
    fs::write(&older, copy).unwrap();
    let restore = format!(
        "ATTACH '{}' AS older; DELETE FROM states; INSERT INTO states SELECT * FROM older.states",
        older.display()
    );
    sql(folder.path(), &restore);
    let error = ledger.noise_state("r/k").unwrap_err();
    assert!(
        matches!(&error, LedgerError::Damaged { .. }) && error.to_string().contains("r/k"),
        "{error}"
    );
    drop(ledger);
    assert!(is_damaged(&Ledger::open(&params(folder.path()))));
}

#[test]
fn a_row_that_could_not_be_read_again_is_refused_before_it_is_written() {
    let folder = folder();
    let mut ledger = grown(folder.path(), 1, 1);
    let next = closing(&ledger, &["k"], 1, 1);
    let ever = bernstream_synopsis::grid::Span {
        start: at(0),
        end: at(i64::MAX / 60_000_000),
    };
    let refused = ledger.pay_window(ClosingWindow {
        charges: vec![(ever, price(1))],
        ..next.clone()
    });
    assert!(
        matches!(refused, Err(LedgerError::Refused { .. })),
        "{refused:?}"
    );
    ledger.pay_window(next).unwrap();
}

/// Number, salt, body and digest of the rows in the file.
fn rows_in(folder: &Path) -> Vec<(i64, Vec<u8>, String, Vec<u8>)> {
    let file = rusqlite::Connection::open(folder.join("ledger.sqlite")).unwrap();
    let mut rows = file
        .prepare("SELECT sequence, salt, body, digest FROM rows ORDER BY sequence")
        .unwrap();
    let rows = rows
        .query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    rows.map(|row| row.unwrap()).collect()
}

/// How many messages are kept.
fn kept(ledger: &Ledger) -> usize {
    let mut kept = 0;
    let mut last = None;
    while let Some(paid) = ledger
        .kept_messages(ledger.head(), last.as_ref(), 1)
        .unwrap()
        .pop()
    {
        (kept, last) = (kept + 1, Some(paid));
    }
    kept
}

#[test]
fn messages_that_were_dropped_are_not_mistaken_for_lost_ones() {
    let whole = folder();
    drop(grown(whole.path(), 600, 1));
    let edits = [
        // Messages that are to be kept.
        "DELETE FROM outbox WHERE sequence = 598",
        "DELETE FROM outbox WHERE sequence = 599",
        // What says which those are.
        "UPDATE kept SET pruned = pruned - 1",
        "UPDATE kept SET pruned = pruned + 1",
        "UPDATE kept SET pruned = 10000",
        "UPDATE kept SET pruned = -1",
        "INSERT INTO outbox VALUES (7, 0, 'p/k', '[]', x'00', 1)",
        "DELETE FROM kept",
    ];
    for edit in edits {
        let folder = folder();
        fs::copy(
            whole.path().join("ledger.sqlite"),
            folder.path().join("ledger.sqlite"),
        )
        .unwrap();
        sql(folder.path(), edit);
        assert!(
            is_damaged(&Ledger::inspect(&params(folder.path()))),
            "{edit}"
        );
    }
}

fn exported(ledger: &Ledger) -> Vec<String> {
    let mut rows = Vec::new();
    ledger
        .each_row(|row| -> Result<(), LedgerError> {
            rows.push(row.secret_line());
            Ok(())
        })
        .unwrap();
    rows
}

fn archives(folder: &Path) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut archives: Vec<_> = files
        .filter(|file| file.to_string_lossy().ends_with(".jsonl.zst"))
        .collect();
    archives.sort();
    archives
}

#[test]
fn rows_move_to_an_archive_beside_the_worker_and_the_chain_goes_through_it() {
    let folder = folder();
    let params = params(folder.path());
    let mut ledger = grown(folder.path(), 1500, 1);
    let early = ledger.rows().unwrap()[7].head;
    let accepted = *ledger.head();
    let before = exported(&Ledger::inspect(&params).unwrap());
    let looking = Ledger::inspect(&params).unwrap();
    let mut paid = 0;
    let mut written = Told::default();
    let mut removed = Told::default();
    let moved = looking.archive_rows(&accepted, &mut |step| {
        match step {
            ArchiveStep::Written { rows, of } => written.take(rows, of),
            ArchiveStep::Removed { rows, of } => removed.take(rows, of),
            ArchiveStep::Durable | ArchiveStep::Recorded => {}
        }
        // The worker goes on at every step.
        ledger.pay_window(closing(&ledger, &["k"], 1, 7)).unwrap();
        paid += 1;
    });
    let (first, last) = moved.unwrap().unwrap();
    assert!(
        first == 1 && last > 1000 && paid > 4,
        "{first} to {last}, {paid}"
    );
    assert_eq!(rows_in(folder.path()).len() as u64, 1501 + paid - last);
    assert_eq!((written.all, removed.all), (last, last));
    written.is_done();
    removed.is_done();
    let mut told = Told::default();
    let whole =
        Ledger::inspect_with_progress(&params, &mut |done, all| told.take(done, all)).unwrap();
    assert_eq!((whole.row_count(), told.all), (1501 + paid, 1501 + paid));
    told.is_done();
    assert_eq!(archives(folder.path()).len(), 1);
    // Everyone reads the same, and a look that was begun before goes on.
    for ledger in [&looking, &ledger, &Ledger::inspect(&params).unwrap()] {
        assert_eq!(exported(ledger)[..before.len()], before);
        assert!(ledger.contains(&early).unwrap() && ledger.contains(&accepted).unwrap());
    }
    // The head of a witness that is behind is not moved.
    drop(ledger);
    let mut ledger = Ledger::open(&params).unwrap();
    for draw in 0..600 {
        ledger
            .withhold_window(
                closing(&ledger, &["k"], 1, draw).window,
                Positions::default(),
            )
            .unwrap();
    }
    for draw in 0..5 {
        ledger
            .pay_window(closing(&ledger, &["k"], 1, draw))
            .unwrap();
    }
    while let Some(paid) = ledger
        .due_messages(ledger.head(), at(i64::MAX / 60_000_000), 1)
        .unwrap()
        .pop()
    {
        let end = paid.window().end;
        ledger.mark_published(&[paid], end).unwrap();
    }
    assert_eq!(
        Ledger::inspect(&params)
            .unwrap()
            .archive_rows(&accepted, &mut |_| {})
            .unwrap()
            .unwrap()
            .1,
        1499
    );
    let rest = Ledger::inspect(&params)
        .unwrap()
        .archive_rows(ledger.head(), &mut |_| {})
        .unwrap()
        .unwrap();
    assert!(rest.0 == 1500 && rest.1 > 1500, "{rest:?}");
    assert_eq!(
        Ledger::inspect(&params)
            .unwrap()
            .archive_rows(ledger.head(), &mut |_| {})
            .unwrap(),
        None
    );
    ledger.verify_all().unwrap();

    // A damaged or missing archive stops who verifies, and no worker.
    drop(ledger);
    let [archive, ..] = &archives(folder.path())[..] else {
        panic!("no archive")
    };
    let whole = fs::read(archive).unwrap();
    for place in (0..whole.len()).step_by(whole.len() / 50) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << (place % 8);
        fs::write(archive, &bytes).unwrap();
        let found = Ledger::inspect(&params);
        assert!(
            is_damaged(&found)
                || found.is_ok_and(|found| exported(&found)[..before.len()] == before),
            "byte {place}"
        );
    }
    for bytes in [
        &whole[..0],
        &whole[..whole.len() / 2],
        &[whole.as_slice(), &whole].concat(),
    ] {
        fs::write(archive, bytes).unwrap();
        assert!(
            is_damaged(&Ledger::inspect(&params)),
            "{} bytes",
            bytes.len()
        );
    }
    fs::remove_file(archive).unwrap();
    assert!(is_damaged(&Ledger::inspect(&params)));
    Ledger::open(&params).unwrap();
}

#[test]
fn windows_that_are_withheld_age_too() {
    let folder = folder();
    let mut ledger = grown(folder.path(), 300, 1);
    // The last window is published late, and then the budget is spent for months.
    let paid = ledger
        .due_messages(ledger.head(), at(i64::MAX / 60_000_000), 1)
        .unwrap()
        .pop()
        .unwrap();
    let end = paid.window().end;
    ledger.mark_published(&[paid], end).unwrap();
    assert!(kept(&ledger) > 0);
    for draw in 0..1200 {
        ledger
            .withhold_window(
                closing(&ledger, &["k"], 1, draw).window,
                Positions::default(),
            )
            .unwrap();
    }
    assert_eq!(
        kept(&ledger),
        0,
        "nothing is kept for longer than it should be"
    );
    ledger.verify_all().unwrap();
    let moved = Ledger::inspect(&params(folder.path()))
        .unwrap()
        .archive_rows(ledger.head(), &mut |_| {});
    let (_, last) = moved.unwrap().unwrap();
    assert!(last > 900, "of 1500 rows {last} are moved");
    drop(ledger);
    // What is not known to be published is kept, however long windows are withheld.
    let other = self::folder();
    let next = 300;
    let mut ledger = grown(other.path(), next, 1);
    for draw in 0..1200 {
        ledger
            .withhold_window(
                closing(&ledger, &["k"], 1, draw).window,
                Positions::default(),
            )
            .unwrap();
    }
    let paid = ledger
        .due_messages(ledger.head(), at(i64::MAX / 60_000_000), 1)
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(
        (paid.window(), ledger.unpublished_count().unwrap()),
        (window(next as i64 - 1), 1)
    );
    ledger.verify_all().unwrap();
}

const ARCHIVER: &str = "BERNSTREAM_TEST_ARCHIVER";

/// Archives the ledger in a folder, and dies at a step.
#[test]
fn archiver() {
    let Ok(folder) = std::env::var(ARCHIVER) else {
        return;
    };
    let (folder, dies_at) = folder.split_once(' ').unwrap();
    let mut step = 0;
    let dies_at = dies_at.parse::<u32>().unwrap();
    let ledger = Ledger::inspect(&params(Path::new(folder))).unwrap();
    let head = *ledger.head();
    let moved = ledger.archive_rows(&head, &mut |what| {
        step += 1;
        if step == dies_at {
            println!("dies after {what:?}");
            std::process::abort();
        }
    });
    println!("moved {:?}", moved.unwrap());
}

fn archiving(folder: &Path, dies_at: u32) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "ledger_of_years::archiver", "--nocapture"]);
    command.env(ARCHIVER, format!("{} {dies_at}", folder.display()));
    command
}

#[test]
fn a_ledger_is_verified_while_another_process_moves_its_rows() {
    let whole = folder();
    drop(grown(whole.path(), 4000, 1));
    for round in 0..3 {
        let folder = folder();
        fs::copy(
            whole.path().join("ledger.sqlite"),
            folder.path().join("ledger.sqlite"),
        )
        .unwrap();
        let mut archiver = archiving(folder.path(), 0);
        let mut archiver = archiver
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut looked = 0;
        // One after the other, so that rows are moved while one of them is in the middle.
        let ended = loop {
            if let Err(error) = Ledger::inspect(&params(folder.path())) {
                panic!("round {round}, after {looked}: {error}");
            }
            looked += 1;
            if let Some(ended) = archiver.try_wait().unwrap() {
                break ended;
            }
        };
        assert!(ended.success() && looked > 1, "{ended}, {looked}");
        assert!(rows_in(folder.path()).len() < 1000, "round {round}");
    }
}

mod long {
    use super::*;

    #[test]
    fn a_crash_in_the_middle_of_archiving_loses_nothing() {
        let whole = folder();
        drop(grown(whole.path(), 4000, 1));
        let rows = exported(&Ledger::inspect(&params(whole.path())).unwrap());
        let mut deaths = 0;
        let mut steps = Vec::new();
        // At every step; then at any moment, with a signal.
        for dies_at in 1..40 {
            let folder = folder();
            fs::copy(
                whole.path().join("ledger.sqlite"),
                folder.path().join("ledger.sqlite"),
            )
            .unwrap();
            let is_killed = dies_at > 12;
            let mut child = archiving(folder.path(), if is_killed { 0 } else { dies_at });
            let mut child = child
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            if is_killed {
                std::thread::sleep(Duration::from_millis(u64::from(dies_at - 12) * 12));
                let _ = child.kill();
            }
            let ended = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ended.stdout).into_owned();
            deaths += u32::from(!ended.status.success());
            steps.extend(
                said.split_once("dies after ")
                    .map(|(_, step)| step.lines().next().unwrap().to_owned()),
            );
            // Whole at once, for whoever looks and whoever works; and done by the next one.
            assert_eq!(
                exported(&Ledger::inspect(&params(folder.path())).unwrap()),
                rows,
                "step {dies_at}: {said}"
            );
            let mut worker = Ledger::open(&params(folder.path())).unwrap();
            worker.pay_window(closing(&worker, &["k"], 1, 9)).unwrap();
            let again = archiving(folder.path(), 0).output().unwrap();
            assert!(
                again.status.success(),
                "{}",
                String::from_utf8_lossy(&again.stdout)
            );
            assert_eq!(
                exported(&Ledger::inspect(&params(folder.path())).unwrap())[..rows.len()],
                rows,
                "step {dies_at}"
            );
            assert!(rows_in(folder.path()).len() < 1000, "step {dies_at}");
        }
        println!("{deaths} deaths, {steps:?}");
        for step in ["Written", "Durable", "Recorded", "Removed"] {
            assert!(
                steps.iter().any(|died| died.starts_with(step)),
                "{step}: {steps:?}"
            );
        }
        assert!(deaths >= 12, "{deaths}");
    }
}
