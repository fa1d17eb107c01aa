//! Outputs made by hand, whole and tampered with.

use super::*;
use bernstream_synopsis::calibrate::Epsilon;

const HOUR: i64 = 3_600_000_000;

fn hours(start: i64, end: i64) -> Span {
    Span {
        start: Timestamp::from_micros(start * HOUR),
        end: Timestamp::from_micros(end * HOUR),
    }
}

fn price(tenths: u64) -> Price {
    Price::Pure(Epsilon::from_trillionths(tenths * 100_000_000_000))
}

/// A message of the row and window, which cost so many tenths of a total of 1; its blocks and what they have spent.
fn message(
    sequence: u64,
    window: Span,
    of: (&str, &str),
    tenths: u64,
    blocks: &[(Span, u64)],
) -> Description {
    let mut about: Description = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
    about.release = of.0.into();
    about.key = Some(of.1.into());
    about.window = window;
    about.ledger.sequence = sequence;
    about.privacy.price = price(tenths);
    let charge = |(block, spent): &(Span, u64)| BlockCharge {
        start: block.start,
        end: block.end,
        spent: price(*spent),
        total: price(10),
    };
    about.privacy.blocks = blocks.iter().map(charge).collect();
    about
}

/// Two keys, hourly windows at 0.2, blocks of four hours.
fn honest() -> Vec<Description> {
    let row = |n: i64| {
        let block = hours(n / 4 * 4, n / 4 * 4 + 4);
        let spent = 2 * (n as u64 % 4 + 1);
        ["a", "b"].map(|key| {
            message(
                n as u64 + 1,
                hours(n, n + 1),
                ("r", key),
                2,
                &[(block, spent)],
            )
        })
    };
    (0..8).flat_map(row).collect()
}

/// Each message has the bytes of what it says.
fn audit(messages: &[Description]) -> AuditFindings {
    let mut audit = OutputAudit::default();
    for (place, about) in messages.iter().enumerate() {
        let bytes = Digest::of_bytes(serde_json::to_string(about).unwrap().as_bytes());
        audit.add(&format!("0:{place}"), bytes, about);
    }
    audit.finish()
}

fn assert_found(messages: &[Description], said: &str) {
    let found = audit(messages).contradictions;
    assert!(
        found.iter().any(|what| what.contains(said)),
        "{said}: {found:?}"
    );
}

#[test]
fn an_honest_output_adds_up_in_any_order_and_with_copies() {
    let mut messages = honest();
    let first = audit(&messages);
    assert_eq!(first.contradictions, Vec::<String>::new());
    let [statement] = &first.statements[..] else {
        panic!()
    };
    assert_eq!(
        (statement.messages, statement.copies, statement.rows),
        (16, 0, (1, 8))
    );
    assert_eq!(
        (statement.worst.1, statement.newest),
        (price(8), (hours(4, 8), price(8)))
    );
    assert_eq!(statement.missing, MissingOutput::default());
    assert_eq!(statement.left, price(2));
    messages.reverse();
    messages.extend(honest().into_iter().take(3));
    let second = audit(&messages);
    assert_eq!(
        (second.contradictions.len(), second.statements[0].copies),
        (0, 3)
    );
    assert_eq!(second.statements[0].missing, MissingOutput::default());
}

#[test]
fn a_price_that_was_tampered_with_is_found() {
    for tenths in [1, 3] {
        let mut messages = honest();
        messages[2].privacy.price = price(tenths);
        assert_found(&messages, "disagree on its window, price or blocks");
        // In all keys: too high contradicts what the block has spent, too low leaves what nothing accounts for.
        messages[3].privacy.price = price(tenths);
        match tenths {
            3 => assert_found(
                &messages,
                "is stated to have spent 0.4, but the prices on the output add up to 0.5",
            ),
            _ => assert_eq!(audit(&messages).statements[0].missing.unaccounted.len(), 1),
        }
    }
}

#[test]
fn two_versions_of_a_window_are_found() {
    let mut messages = honest();
    let mut second = messages[4].clone();
    second.noise.scale *= 2.0;
    messages.push(second);
    assert_found(
        &messages,
        "0:16: a second version of r, key a, window 1970-01-01T02:00:00Z",
    );
    // By another ledger too.
    let other = messages.last_mut().unwrap();
    other.ledger.id = "another".into();
    assert_found(&messages, "a second version");
}

#[test]
fn a_block_that_has_spent_more_than_its_total_is_found() {
    let honest = |spent: u64, n: i64| {
        message(
            n as u64 + 1,
            hours(n, n + 1),
            ("r", "a"),
            4,
            &[(hours(0, 4), spent)],
        )
    };
    assert_found(
        &[honest(4, 0), honest(8, 1), honest(12, 2)],
        "has spent 1.2, more than its total of 1",
    );
    // Also where the claim hides it.
    assert_found(
        &[honest(4, 0), honest(8, 1), honest(10, 2)],
        "has spent 1.2, more than its total of 1",
    );
    assert_eq!(
        audit(&[honest(4, 0), honest(8, 1)]).contradictions,
        Vec::<String>::new()
    );
    assert_eq!(
        audit(&[honest(4, 0), honest(8, 1)]).statements[0].left,
        price(2)
    );
}

#[test]
fn messages_that_are_gone_are_missing_and_no_contradiction() {
    let mut messages = honest();
    // A key of one row, a row in the middle of a block, and the beginning of the output.
    messages.remove(13);
    messages.drain(10..12);
    messages.drain(0..2);
    let findings = audit(&messages);
    assert_eq!(findings.contradictions, Vec::<String>::new());
    let missing = &findings.statements[0].missing;
    assert_eq!(missing.messages, ["r, key b, window 1970-01-01T06:00:00Z"]);
    assert_eq!(missing.rows, 1);
    let [beginning, middle] = &missing.unaccounted[..] else {
        panic!("{missing:?}")
    };
    assert!(
        beginning.contains("row 2: the block 1970-01-01T00:00:00Z")
            && beginning.contains("has spent 0.2 on")
    );
    assert!(
        middle.contains("row 7") && middle.contains("has spent 0.2 on"),
        "{middle}"
    );
}

#[test]
fn releases_of_one_row_add_up_and_count_once_each_and_not_once_a_key() {
    // A tumbling release of the pane, and a hopping one of three panes that charges each of them.
    let row = |n: i64| {
        let window = hours(n, n + 1);
        let spent = |pane: i64| 1 + 2 * (n - pane + 1) as u64;
        let panes: Vec<_> = ((n - 2).max(0)..=n)
            .map(|pane| (hours(pane, pane + 1), spent(pane)))
            .collect();
        let hopping = hours((n - 2).max(0), n + 1);
        vec![
            message(
                n as u64 + 1,
                window,
                ("now", "a"),
                1,
                &panes[panes.len() - 1..],
            ),
            message(
                n as u64 + 1,
                window,
                ("now", "b"),
                1,
                &panes[panes.len() - 1..],
            ),
            message(n as u64 + 1, hopping, ("lately", "a"), 2, &panes),
        ]
    };
    let mut messages: Vec<_> = (0..6).flat_map(row).collect();
    let findings = audit(&messages);
    assert_eq!(findings.contradictions, Vec::<String>::new());
    let statement = &findings.statements[0];
    assert_eq!(
        (statement.worst.1, statement.newest.1),
        (price(7), price(3))
    );
    assert_eq!(
        (&statement.missing, statement.left),
        (&MissingOutput::default(), price(7))
    );
    // A release that hides what the other one charged.
    messages[9].privacy.blocks[0].spent = price(1);
    assert_found(&messages, "disagree on what the block");
}

#[test]
fn a_block_for_many_windows_says_what_it_has_left() {
    let year = hours(0, 8766);
    let row = |n: i64| {
        message(
            n as u64 + 1,
            hours(n, n + 1),
            ("r", "a"),
            1,
            &[(year, n as u64 + 1)],
        )
    };
    let findings = audit(&[row(0), row(1), row(2)]);
    assert_eq!(findings.statements[0].left, price(7));
}

#[test]
fn rows_out_of_order_other_promises_and_blocks_that_overlap_are_found() {
    let mut messages = honest();
    messages[4].ledger.sequence = 20;
    assert_found(&messages, "no later than that of the row before");
    let mut messages = honest();
    messages[4].privacy.blocks[0].total = price(20);
    assert_found(&messages, "its guarantee differs");
    let mut messages = honest();
    messages[15].privacy.unit = UnitDescription::User {
        column: "u".into(),
        per: "1d".into(),
        max_records_per_window: Some(1),
    };
    assert_found(&messages, "its guarantee differs");
    // A new ledger that begins within a block of the old one.
    let mut messages = honest();
    let mut second = message(9, hours(8, 9), ("r", "a"), 1, &[(hours(7, 11), 1)]);
    second.ledger.id = "another".into();
    messages.push(second);
    assert_found(&messages, "overlaps the block");
    let mut messages = honest();
    messages.push(message(9, hours(8, 9), ("r", "a"), 1, &[(hours(4, 8), 9)]));
    assert_found(&messages, "does not pay for the blocks");
}
