//! A checkpoint, from which a ledger is built instead of the rows up to some row.
//!
//! It is written when everything up to its row was published, so no bytes are in it. The row has the digest of the account after it, and
//! the chain leads from the accepted row to it. Of the states of noise it has those that no later row has replaced when it is written, at
//! the row `from`; what is replaced is in the body of the row that did so. So it is good for a chain that has `from` too.

use std::path::Path;

use rusqlite::{Connection, params};

use super::fields::RowNoise;

use crate::chain::{Digest, Head, Link, RowForm, StateDigest};
use crate::entry;
use crate::entry::LedgerEntry;
use crate::missing_rows::RowGap;
use crate::pages;
use crate::replay;
use crate::replay::LedgerState;

/// A checkpoint with everything that a ledger needs of the rows up to it.
pub(super) struct Snapshot {
    /// The first row of the ledger.
    pub genesis: LedgerEntry,
    /// The row that it stands at.
    pub row: LedgerEntry,
    /// The row before it, and the account after it.
    pub gap: RowGap,
    pub from: Head,
    /// The states of noise after its row but those that rows up to `from` have replaced.
    pub states: Vec<RowNoise>,
}

impl Snapshot {
    /// The newest checkpoint that a ledger with the newest row `head` can give: of a row with the digest of its account, up to which
    /// everything was published.
    ///
    /// # Errors
    ///
    /// If the ledger is damaged or cannot be read.
    pub fn newest_of(
        connection: &Connection,
        file: &Path,
        head: Head,
    ) -> Result<Option<Self>, crate::LedgerError> {
        let Some(found) =
            replay::start_checkpoint(connection).map_err(crate::LedgerError::sqlite(file))?
        else {
            return Ok(None);
        };
        let sequence = i64::try_from(found.head.sequence).unwrap_or(i64::MAX);
        let genesis =
            LedgerEntry::of_first_row(connection).map_err(crate::LedgerError::sqlite(file))?;
        let row =
            LedgerEntry::of_row(connection, sequence).map_err(crate::LedgerError::sqlite(file))?;
        let (Some(genesis), Some(row)) = (genesis, row) else {
            return Ok(None);
        };
        // A row of an older program does not say what the account is.
        if !row.account_digest().is_ok_and(|account| account.is_some()) {
            return Ok(None);
        }
        let gap = RowGap::read(connection)
            .map_err(crate::LedgerError::sqlite(file))?
            .filter(|gap| gap.sequence == found.head.sequence);
        let before = match gap {
            Some(gap) => Some(gap.before),
            None => link_before(connection, file, sequence)?,
        };
        let Some(before) = before else {
            return Ok(None);
        };
        let states =
            states_up_to(connection, sequence).map_err(crate::LedgerError::sqlite(file))?;
        let from = if states.len() == found.account.states.len() {
            found.head
        } else {
            head
        };
        let gap = RowGap {
            sequence: found.head.sequence,
            before,
            account: found.account,
        };
        let snapshot = Snapshot {
            genesis,
            row,
            gap,
            from,
            states,
        };
        Ok(Some(snapshot).filter(Snapshot::is_genuine))
    }

    /// Its parts but the states.
    pub fn parts(&self) -> [Vec<u8>; 4] {
        let Link { form, digest } = self.gap.before;
        let account = serde_json::to_vec(&self.gap.account).unwrap_or_default();
        let before = [&[form as u8], digest.as_ref()].concat();
        [
            self.genesis.secret_line().into_bytes(),
            before,
            self.row.secret_line().into_bytes(),
            account,
        ]
    }

    /// Reads what [`parts`](Self::parts) has written; `None` unless it is what its row says.
    pub fn from_parts(
        [genesis, before, row, account]: [&[u8]; 4],
        from: Head,
        states: Vec<RowNoise>,
    ) -> Option<Self> {
        let genesis = LedgerEntry::parse(std::str::from_utf8(genesis).ok()?)?;
        let row = LedgerEntry::parse(std::str::from_utf8(row).ok()?)?;
        let (form, digest) = before.split_first()?;
        let form = match form {
            1 => RowForm::Whole,
            2 => RowForm::Split,
            _ => return None,
        };
        let before = Link {
            form,
            digest: Digest::from(<[u8; 32]>::try_from(digest).ok()?),
        };
        let account = serde_json::from_slice(account).ok()?;
        let gap = RowGap {
            sequence: row.head.sequence,
            before,
            account,
        };
        Some(Snapshot {
            genesis,
            row,
            gap,
            from,
            states,
        })
        .filter(Snapshot::is_genuine)
    }

    /// Returns true if its row says all of it, by digest.
    fn is_genuine(&self) -> bool {
        let Ok(mut state) = LedgerState::from_first_row(&self.genesis, refused_error) else {
            return false;
        };
        state.gap = Some(self.gap.clone());
        let is_after = self.from == self.row.head || self.from.sequence > self.row.head.sequence;
        if !is_after || state.apply_entry(&self.row, refused_error).is_err() {
            return false;
        }
        let known = &self.gap.account.states;
        self.states.iter().all(|RowNoise { slot, salt, bytes }| {
            known.get(slot).is_some_and(|(_, digest)| {
                *digest == StateDigest::from_bytes(slot, salt, bytes).digest
            })
        })
    }

    /// Number of bytes that it would have more if the input's offsets had as many digits as they can have, and some.
    pub fn hidden_width(&self) -> usize {
        self.row.hidden_width() + entry::hidden_width(&self.gap.account.ends)
    }
}

/// Error of a checkpoint that is not genuine; nobody sees it.
fn refused_error(why: String) -> crate::LedgerError {
    crate::LedgerError::Refused { why }
}

/// The states of noise that rows up to `sequence` have written, and no later row has replaced.
fn states_up_to(connection: &Connection, sequence: i64) -> rusqlite::Result<Vec<RowNoise>> {
    let states = "SELECT slot, salt, bytes FROM states WHERE sequence <= ?1 ORDER BY slot";
    connection
        .prepare(states)?
        .query_map(params![sequence], RowNoise::read)?
        .collect()
}

/// Link to the row before the row `sequence`.
fn link_before(
    connection: &Connection,
    file: &Path,
    sequence: i64,
) -> Result<Option<Link>, crate::LedgerError> {
    let mut before = None;
    pages::each_entry(
        connection,
        file,
        sequence.saturating_sub(2),
        sequence.saturating_sub(1),
        |entry| {
            before = Some(entry.link_after());
            Ok::<(), crate::LedgerError>(())
        },
    )?;
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::super::body::{BodyContent, OpenedBody, open_body, seal_checkpoint};
    use super::super::key::LogKey;
    use super::*;
    use crate::account::Account;
    use crate::chain::{LedgerRow, ReleaseOutcome};
    use crate::fixtures::{genesis, price, released, span};

    /// A checkpoint of the second row, whose input was read up to `offset`.
    fn snapshot(offset: i64, tenths: u64) -> Snapshot {
        let genesis = genesis(0);
        let first = LedgerEntry::new(None, 0, &LedgerRow::Genesis(genesis.clone()), None).unwrap();
        let mut account = Account::new(&genesis);
        let mut window = released(span(0, 10), &[(span(0, 100), price(tenths))]);
        window.ends.0.insert(0, offset);
        let ReleaseOutcome::Released { states, .. } = &mut window.outcome else {
            panic!()
        };
        *states = vec![StateDigest::from_bytes("s", &[1; 32], b"noise")];
        let row = LedgerRow::Window(window);
        account.apply_row(1, &row).unwrap();
        let before = first.link_after();
        let entry = LedgerEntry::new(
            Some(before),
            1,
            &row,
            account.digest_after(first.head.digest),
        )
        .unwrap();
        let from = entry.head;
        let gap = RowGap {
            sequence: 1,
            before,
            account,
        };
        let noise = RowNoise {
            slot: "s".into(),
            salt: [1; 32],
            bytes: b"noise".to_vec(),
        };
        Snapshot {
            genesis: first,
            row: entry,
            gap,
            from,
            states: vec![noise],
        }
    }

    fn is_read(snapshot: &Snapshot) -> bool {
        let key = LogKey::new(&[1; 32]);
        let whole = seal_checkpoint(&key, snapshot).unwrap();
        matches!(
            open_body(&key, &whole),
            OpenedBody::Open(_, BodyContent::Checkpoint(_))
        )
    }

    /// Whoever has the key can write one, and a program with a fault has it.
    #[test]
    fn a_checkpoint_says_what_its_row_says_and_nothing_else() {
        assert!(is_read(&snapshot(1, 5)));
        let changes: [fn(&mut Snapshot); 8] = [
            // An account that has spent less.
            |one| one.gap.account = snapshot(1, 4).gap.account,
            |one| one.gap.account.settings.push(' '),
            |one| one.gap.before.digest = Digest::of_bytes(b"other"),
            |one| one.gap.before.form = RowForm::Whole,
            |one| one.genesis = snapshot(1, 5).genesis,
            |one| one.states[0].bytes[0] ^= 1,
            |one| one.states[0].slot = "t".into(),
            |one| one.from.digest = Digest::of_bytes(b"other"),
        ];
        for (place, change) in changes.iter().enumerate() {
            let mut one = snapshot(1, 5);
            change(&mut one);
            // Salts are random: another first row is that of another ledger.
            let is_changed = place != 4 || one.genesis != snapshot(1, 5).genesis;
            assert!(is_changed && !is_read(&one), "{place}");
        }
        // What a later row has replaced is missing.
        let mut one = snapshot(1, 5);
        one.states.clear();
        one.from = Head {
            sequence: 2,
            digest: Digest::of_bytes(b"later"),
        };
        assert!(is_read(&one));
    }

    #[test]
    fn the_size_does_not_depend_on_how_many_digits_an_offset_has() {
        let key = LogKey::new(&[1; 32]);
        let size = |offset, bytes| {
            let mut one = snapshot(offset, 5);
            one.states[0].bytes = vec![7; bytes];
            seal_checkpoint(&key, &one).unwrap().len()
        };
        // Near every size that is filled up to, the digits of an offset could carry it over.
        for bytes in 0..1500 {
            assert_eq!(size(1, bytes), size(i64::MAX, bytes), "{bytes}");
        }
    }
}
