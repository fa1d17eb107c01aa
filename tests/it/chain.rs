//! What a public export shows to whoever has nothing but it: the whole chain, and no count of messages.

use bernstream_ledger::{ClosingWindow, Ledger, LedgerError, LedgerRow, StoredRow};
use bernstream_synopsis::Positions;

use crate::harness::ledger::{
    at, closing, commitment, folder, format_4, genesis, link, link_whole, params, rechain,
};
use crate::ledger::sample;

fn bytes(hex: &serde_json::Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

/// Follows the public lines of the rows as a stranger would; returns how many of them have a digest that can be computed.
pub fn follow(lines: &[String]) -> usize {
    let mut before = (0, vec![0; 32]);
    let mut followed = 0;
    for line in lines {
        let about: serde_json::Value = serde_json::from_str(line).unwrap();
        let (_, row) = line.split_once(r#","row":"#).unwrap();
        let row = row.strip_suffix('}').unwrap();
        let sequence = about["sequence"].as_u64().unwrap();
        let (form, digest) = match (about.get("commitment"), about.get("salt")) {
            (Some(commitment), None) => (
                2,
                Some(link(
                    (before.0, &before.1),
                    sequence,
                    &bytes(commitment),
                    row,
                )),
            ),
            (None, Some(salt)) => (1, Some(link_whole(&before.1, sequence, &bytes(salt), row))),
            (None, None) => (1, None),
            _ => panic!("{line}"),
        };
        before = (form, bytes(&about["digest"]));
        followed += usize::from(digest.is_some());
        assert!(digest.is_none_or(|digest| digest == before.1), "{line}");
    }
    followed
}

fn public_lines(ledger: &Ledger) -> Vec<String> {
    ledger
        .rows()
        .unwrap()
        .iter()
        .map(|row| row.public_line().unwrap())
        .collect()
}

/// How far the input was read is an exact count, and nobody can guess it from what anyone may see: the salt stays with it.
#[test]
fn an_export_for_everyone_counts_no_messages_and_its_whole_chain_can_be_checked() {
    let folder = folder();
    let ledger = sample(folder.path());
    let lines = public_lines(&ledger);
    assert_eq!(follow(&lines), 6);
    let newest: serde_json::Value = serde_json::from_str(&lines[5]).unwrap();
    assert_eq!(newest["digest"], ledger.head().digest.to_string());
    for (row, line) in ledger.rows().unwrap().iter().zip(&lines) {
        let secret: serde_json::Value = serde_json::from_str(&row.secret_line()).unwrap();
        let public: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(row.is_checkable());
        assert!(
            ["ends", "salt", "secret", secret["salt"].as_str().unwrap()]
                .iter()
                .all(|word| !line.contains(word))
        );
        // Everything else is the same, and the commitment is to what is left out.
        for field in ["sequence", "digest", "row"] {
            assert_eq!(public[field], secret[field], "{line}");
        }
        let line = row.secret_line();
        let (_, text) = line.split_once(r#","secret":"#).unwrap();
        let (text, _) = text.split_once(r#","row":"#).unwrap();
        assert_eq!(
            bytes(&public["commitment"]),
            commitment(&bytes(&secret["salt"]), text)
        );
        assert_eq!(
            text.contains("ends"),
            matches!(row.row, LedgerRow::Window(_))
        );
    }
}

/// Of a public line everything but digests is the same, its length too, however many messages were read.
#[test]
fn a_public_line_does_not_depend_on_how_far_the_input_was_read() {
    let line = |ends: &[(i32, i64)]| {
        let folder = folder();
        let mut ledger = Ledger::create(&params(folder.path()), genesis(at(0), "w", None)).unwrap();
        let ends = Positions(ends.iter().copied().collect());
        ledger
            .pay_window(ClosingWindow {
                ends,
                ..closing(&ledger, &["EWR"], 4, 1)
            })
            .unwrap();
        let line = public_lines(&ledger).remove(1);
        let mut json: serde_json::Value = serde_json::from_str(&line).unwrap();
        let random = ["digest", "commitment"].map(|field| json[field].take());
        (line.len(), json, random)
    };
    let [none, one, many] = [
        vec![],
        vec![(0, 1)],
        (0..50).map(|n| (n, i64::MAX)).collect(),
    ]
    .map(|ends| line(&ends));
    assert!(none.0 == one.0 && one.0 == many.0);
    assert!(none.1 == one.1 && one.1 == many.1);
    // The same ends twice have commitments of their own.
    assert_ne!(one.2, line(&[(0, 1)]).2);
}

#[test]
fn rows_of_older_programs_keep_their_digests_and_new_rows_follow_them() {
    let folder = folder();
    format_4(folder.path(), 300);
    let old = |ledger: &Ledger| -> Vec<String> {
        ledger.rows().unwrap()[..301]
            .iter()
            .map(StoredRow::secret_line)
            .collect()
    };
    let mut ledger = Ledger::open(&params(folder.path())).unwrap();
    let before = old(&ledger);
    ledger.pay_window(closing(&ledger, &["k"], 5, 1)).unwrap();
    drop(ledger);
    // Opened again.
    let mut ledger = Ledger::open(&params(folder.path())).unwrap();
    ledger.pay_window(closing(&ledger, &["k"], 5, 2)).unwrap();
    assert_eq!(old(&ledger), before);
    Ledger::inspect(&params(folder.path())).unwrap();
    let lines = public_lines(&ledger);
    // The first row has no secret; the 300 windows of the older program have theirs in the middle of their text.
    assert_eq!((lines.len(), follow(&lines)), (303, 3));
    assert_eq!(
        ledger
            .rows()
            .unwrap()
            .iter()
            .filter(|row| !row.is_checkable())
            .count(),
        300
    );
    assert!(lines.iter().all(|line| !line.contains("ends")) && lines[1].matches(':').count() > 3);
    assert!(lines[1..301].iter().all(|line| !line.contains("salt")));
}

/// Otherwise what a row says could be shown to be something else, where nobody can compute its digest.
#[test]
fn no_row_that_can_be_checked_is_taken_for_one_that_cannot() {
    let rechained = |older: &[u64]| {
        let folder = folder();
        let ledger = sample(folder.path());
        let whole: Vec<String> = ledger
            .rows()
            .unwrap()
            .iter()
            .map(|r| serde_json::to_string(&r.row).unwrap())
            .collect();
        drop(ledger);
        let file = rusqlite::Connection::open(folder.path().join("ledger.sqlite")).unwrap();
        let mut before = (0, vec![0; 32]);
        for sequence in 0..6 {
            let at = i64::try_from(sequence).unwrap();
            if older.contains(&sequence) {
                let whole = &whole[usize::try_from(sequence).unwrap()];
                file.execute(
                    "UPDATE rows SET body = ?2, secret = NULL WHERE sequence = ?1",
                    (at, whole),
                )
                .unwrap();
            }
            before = rechain(&file, at, before);
        }
        drop(file);
        Ledger::open(&params(folder.path())).map(drop)
    };
    for older in [&[][..], &[0], &[0, 1, 2], &[0, 1, 2, 3, 4, 5]] {
        rechained(older).unwrap();
    }
    for older in [&[1][..], &[0, 2], &[5], &[1, 2, 3, 4, 5]] {
        assert!(
            matches!(rechained(older), Err(LedgerError::Damaged { .. })),
            "{older:?}"
        );
    }
}
