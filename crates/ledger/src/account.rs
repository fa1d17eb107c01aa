//! The sum of the rows of a ledger. Pure.
//!
//! It keeps only what a later row can still change. Once a block ends at or before the start of the next window minus the
//! reach, no row may charge it again, and it is dropped here (the table `spent` still has it). So the account does not grow with
//! the number of rows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::chain::{ClosedWindow, Configuration, Digest, Genesis, LedgerRow, ReleaseOutcome};
use super::spent::SpentBlock;
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// Sum of the rows so far. The same rules apply to a row that is appended and to one that is replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    pub next_window: Timestamp,
    pub ends: Positions,
    /// The charged live blocks, and all that each has spent.
    #[serde(with = "pairs")]
    pub live: BTreeMap<Span, Price>,
    /// The newest block, by its start, that was charged, and what it has spent.
    pub newest: Option<(Span, Price)>,
    /// The end of the last block that was charged, here or by the ledgers that this one follows.
    pub last_block_end: Timestamp,
    /// Blocks that end here or earlier are never charged again. It never decreases.
    pub live_from: Timestamp,
    pub settings: String,
    /// For each slot the row that wrote its state, and the digest.
    pub states: BTreeMap<String, (u64, Digest)>,
    reach: Duration,
    total: Price,
    /// Blocks that end later are never charged: the share of the input's budget has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Account {
    pub fn new(genesis: &Genesis) -> Self {
        // The previous ledger may have charged the blocks before the first window.
        let reach = if genesis.previous.is_some() {
            Duration::ZERO
        } else {
            genesis.reach
        };
        Account {
            next_window: genesis.first,
            ends: Positions::default(),
            live: BTreeMap::new(),
            newest: None,
            last_block_end: genesis.first,
            live_from: genesis.first.minus(reach),
            settings: genesis.settings.clone(),
            states: BTreeMap::new(),
            reach: genesis.reach,
            total: genesis.total,
            until: None,
        }
    }

    pub fn reach(&self) -> Duration {
        self.reach
    }

    /// Digest that a row has of the account after it, in a ledger whose first row has the digest `origin`.
    ///
    /// ```text
    /// digest = SHA-256( "bernstream ledger account 1\n" | origin | the account as JSON )
    /// ```
    ///
    /// Rows that were written are compared with it for ever: what an account has more one day is left out of the JSON where it is not used.
    pub fn digest_after(&self, origin: Digest) -> Option<Digest> {
        let account = serde_json::to_string(self).ok()?;
        let hash = Sha256::new()
            .chain_update(b"bernstream ledger account 1\n")
            .chain_update(origin)
            .chain_update(account);
        Some(Digest::from(<[u8; 32]>::from(hash.finalize())))
    }

    /// Sum of the charges to `block` so far; the whole total if it can no longer be charged.
    pub fn spent_by(&self, block: Span) -> Price {
        match self.live.get(&block) {
            Some(spent) => *spent,
            None if block.end <= self.live_from => self.total,
            None if self.until.is_some_and(|until| block.end > until) => self.total,
            None => self.total.zero_of_kind(),
        }
    }

    /// Charged blocks of `row`, and all that each will have spent after it.
    ///
    /// # Errors
    ///
    /// Why the row may not follow.
    pub fn quote_charges(&self, row: &ClosedWindow) -> Result<Vec<SpentBlock>, String> {
        let window = row.window;
        if window.start != self.next_window || window.end <= window.start {
            let start = window.start;
            let end = window.end;
            let next = self.next_window;
            return Err(format!(
                "the window {start} to {end} is not the next one, which starts at {next}"
            ));
        }
        let ReleaseOutcome::Released {
            charges,
            messages,
            states,
            ..
        } = &row.outcome
        else {
            return Ok(Vec::new());
        };
        if !covers_window(charges, window) {
            return Err("the charges do not price every block that the window overlaps".into());
        }
        if messages.is_empty() {
            return Err("a released window has no message".into());
        }
        let keys: BTreeSet<&String> = messages.iter().map(|message| &message.key).collect();
        if keys.len() < messages.len() {
            return Err("two messages have one key: they would be two versions of one".into());
        }
        let slots: BTreeSet<&String> = states.iter().map(|state| &state.slot).collect();
        if slots.len() < states.len() {
            return Err("a slot has two states".into());
        }
        let mut spent = Vec::with_capacity(charges.len());
        for (block, price) in charges {
            spent.push(self.charge_block(*block, *price)?);
        }
        Ok(spent)
    }

    /// Sum of what `block` has spent and `price`.
    ///
    /// # Errors
    ///
    /// Why the block cannot pay the price.
    fn charge_block(&self, block: Span, price: Price) -> Result<SpentBlock, String> {
        let start = block.start;
        if block.end <= self.live_from {
            let from = self.live_from;
            return Err(format!(
                "the block that starts at {start} cannot be charged again: only blocks that end after {from} can"
            ));
        }
        if let Some(until) = self.until.filter(|until| block.end > *until) {
            return Err(format!(
                "the block that starts at {start} cannot be charged: the share of the budget ends at {until}"
            ));
        }
        let spent = self.spent_by(block);
        let total = self.total;
        match spent.checked_add(price) {
            Some(sum) if sum.is_within(total) => Ok(SpentBlock { block, spent: sum }),
            _ => Err(format!(
                "the block that starts at {start} has spent {spent} of {total} and cannot pay {price}"
            )),
        }
    }

    /// Applies the row with this number; returns the charged blocks, with all that they have spent by now.
    ///
    /// # Errors
    ///
    /// Why the row may not follow. The account is then unchanged.
    pub fn apply_row(&mut self, sequence: u64, row: &LedgerRow) -> Result<Vec<SpentBlock>, String> {
        match row {
            LedgerRow::Genesis(_) => {
                Err("a genesis row must be the first row, and no other".into())
            }
            LedgerRow::Window(row) => {
                let spent = self.quote_charges(row)?;
                self.close_window(sequence, row, &spent);
                Ok(spent)
            }
            LedgerRow::Configuration(row) => {
                self.apply_settings(row)?;
                Ok(Vec::new())
            }
        }
    }

    fn close_window(&mut self, sequence: u64, row: &ClosedWindow, charged: &[SpentBlock]) {
        self.ends = row.ends.clone();
        for &SpentBlock { block, spent } in charged {
            self.last_block_end = self.last_block_end.max(block.end);
            self.live.insert(block, spent);
            if self.newest.is_none_or(|(newest, _)| block >= newest) {
                self.newest = Some((block, spent));
            }
        }
        if let ReleaseOutcome::Released { states, .. } = &row.outcome {
            for state in states {
                let written = (sequence, state.digest);
                self.states.insert(state.slot.clone(), written);
            }
        }
        self.advance_to(row.window.end);
    }

    fn apply_settings(&mut self, row: &Configuration) -> Result<(), String> {
        if row.first < self.next_window {
            let first = row.first;
            let next = self.next_window;
            return Err(format!(
                "settings from {first} on would affect closed windows: the next one starts at {next}"
            ));
        }
        for slot in &row.ended {
            if !self.states.contains_key(slot) {
                return Err(format!("the noise of {slot} cannot end: it has no state"));
            }
        }
        if let Some(until) = row.until {
            if until < self.last_block_end {
                let charged = self.last_block_end;
                return Err(format!(
                    "the share cannot end at {until}: blocks up to {charged} were charged"
                ));
            }
            // What has ended goes on for nobody.
            self.until = Some(self.until.map_or(until, |before| before.min(until)));
        }
        self.states.retain(|slot, _| !row.ended.contains(slot));
        self.settings.clone_from(&row.settings);
        self.reach = row.reach;
        self.advance_to(row.first);
        Ok(())
    }

    fn advance_to(&mut self, next: Timestamp) {
        self.next_window = next;
        let from = self.live_from.max(next.minus(self.reach));
        self.live_from = from;
        self.live.retain(|block, _| block.end > from);
    }
}

/// Returns true if `charges` price blocks without a gap that cover `window`, each with more than nothing.
fn covers_window(charges: &[(Span, Price)], window: Span) -> bool {
    let mut covered_to = None;
    for (block, price) in charges {
        let is_next = match covered_to {
            None => block.start <= window.start,
            Some(end) => block.start == end,
        };
        if !is_next || block.start >= block.end || price.is_zero() {
            return false;
        }
        covered_to = Some(block.end);
    }
    covered_to.is_some_and(|end| end >= window.end)
}

/// A map as a list of pairs: JSON keys are text.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use bernstream_synopsis::grid::Span;
    use bernstream_synopsis::price::Price;

    pub fn serialize<S: Serializer>(
        map: &BTreeMap<Span, Price>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Span, Price>, D::Error> {
        Vec::<(Span, Price)>::deserialize(deserializer).map(|pairs| pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{Head, MessageDigests, StateDigest};
    use crate::fixtures::{genesis, price, released, span};
    use bernstream_synopsis::calibrate::Epsilon;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    fn account(reach: u64) -> Account {
        Account::new(&genesis(reach))
    }

    fn take(account: &mut Account, row: ClosedWindow) {
        account.apply_row(1, &LedgerRow::Window(row)).unwrap();
    }

    fn configuration(first: i64, reach: u64) -> LedgerRow {
        LedgerRow::Configuration(Configuration {
            settings: "new".into(),
            first: at(first),
            reach: Duration::from_micros(reach),
            ended: vec![],
            until: None,
        })
    }

    /// By an independent program (Python hashlib). Another digest would turn all ledgers into damaged ones.
    #[test]
    fn the_digest_of_an_account_is_that_of_its_json() {
        let mut account = account(20);
        take(
            &mut account,
            released(span(0, 10), &[(span(0, 10), price(5))]),
        );
        account.ends.0.insert(0, 17);
        let expected = "2b45f06c7f69407009c5c344f721af4b3437836610e9b5a25563dc0fddaad928";
        assert_eq!(
            account
                .digest_after(Digest::of_bytes(b"first"))
                .unwrap()
                .to_string(),
            expected
        );
        assert_ne!(
            account.digest_after(Digest::of_bytes(b"other")),
            account.digest_after(Digest::of_bytes(b"first"))
        );
    }

    #[test]
    fn windows_close_in_the_order_of_the_grid_and_once_each() {
        let mut account = account(200);
        take(
            &mut account,
            released(span(0, 10), &[(span(0, 10), price(5))]),
        );
        for (start, end) in [(0, 10), (20, 30), (5, 15), (10, 10), (10, 5)] {
            let row = released(span(start, end), &[(span(-100, 100), price(1))]);
            assert!(account.quote_charges(&row).is_err(), "{start} {end}");
        }
        assert!(
            account
                .quote_charges(&released(span(10, 20), &[(span(10, 20), price(5))]))
                .is_ok()
        );
    }

    #[test]
    fn a_release_pays_for_every_block_that_it_touches() {
        let account = account(0);
        let p = price(1);
        let cases: [(&[(Span, Price)], bool); 8] = [
            (&[(span(0, 10), p)], true),
            (&[(span(-5, 5), p), (span(5, 15), p)], true),
            (&[], false),
            (&[(span(0, 9), p)], false),
            (&[(span(1, 10), p)], false),
            (&[(span(-5, 5), p), (span(6, 15), p)], false),
            (&[(span(0, 10), Price::Pure(Epsilon::ZERO))], false),
            (&[(span(0, 12), p), (span(12, 11), p)], false),
        ];
        for (charges, is_fine) in cases {
            assert_eq!(
                account
                    .quote_charges(&released(span(0, 10), charges))
                    .is_ok(),
                is_fine,
                "{charges:?}"
            );
        }
    }

    #[test]
    fn a_block_is_charged_up_to_its_total_and_not_beyond() {
        let mut account = account(0);
        let day = span(0, 100);
        for (start, tenths) in [(0, 4), (10, 6)] {
            take(
                &mut account,
                released(span(start, start + 10), &[(day, price(tenths))]),
            );
        }
        assert_eq!(account.spent_by(day), price(10));
        assert!(
            account
                .quote_charges(&released(
                    span(20, 30),
                    &[(day, Price::Pure(Epsilon::from_trillionths(1)))]
                ))
                .is_err()
        );
        assert!(
            account
                .quote_charges(&released(
                    span(20, 30),
                    &[(day, Price::Pure(Epsilon::from_trillionths(u64::MAX)))]
                ))
                .is_err()
        );
        let withheld = ClosedWindow {
            window: span(20, 30),
            ends: Positions::default(),
            outcome: ReleaseOutcome::Withheld,
        };
        assert_eq!(account.quote_charges(&withheld), Ok(vec![]));
        assert_eq!(account.last_block_end, day.end);
    }

    #[test]
    fn a_hopping_window_charges_back_as_far_as_the_reach_and_no_farther() {
        // Three panes of ten: the one that closes and the two before it.
        let mut account = account(20);
        let panes = |from: i64, to: i64| -> Vec<(Span, Price)> {
            (from..=to)
                .map(|n| (span(10 * n, 10 * n + 10), price(3)))
                .collect()
        };
        for n in 0..4 {
            take(
                &mut account,
                released(span(10 * n, 10 * n + 10), &panes(n - 2, n)),
            );
        }
        assert!(
            account
                .quote_charges(&released(span(40, 50), &panes(1, 4)))
                .is_err(),
            "the block 10 to 20 is over"
        );
        assert!(
            account
                .quote_charges(&released(span(40, 50), &panes(2, 4)))
                .is_ok()
        );
        // Three charges of 0.3 and no fourth; and only what can still be charged is kept.
        assert_eq!(account.spent_by(span(20, 30)), price(6));
        assert_eq!(
            account.live.keys().copied().collect::<Vec<_>>(),
            [span(20, 30), span(30, 40)]
        );
        assert_eq!(
            account.spent_by(span(10, 20)),
            price(10),
            "nothing is left of a block that is over"
        );
        assert_eq!(account.newest, Some((span(30, 40), price(3))));
    }

    #[test]
    fn a_ledger_that_follows_another_does_not_reach_into_its_blocks() {
        let previous = Some(Head {
            sequence: 7,
            digest: Digest::ZERO,
        });
        let after = Account::new(&Genesis {
            previous,
            ..genesis(20)
        });
        let back = released(
            span(0, 10),
            &[(span(-10, 0), price(1)), (span(0, 10), price(1))],
        );
        assert!(after.quote_charges(&back).is_err());
        assert!(account(20).quote_charges(&back).is_ok());
    }

    #[test]
    fn other_settings_reopen_no_window_and_no_block() {
        let mut account = account(0);
        take(
            &mut account,
            released(span(0, 10), &[(span(0, 10), price(5))]),
        );
        assert!(account.clone().apply_row(2, &configuration(9, 0)).is_err());
        account.apply_row(2, &configuration(30, 100)).unwrap();
        assert_eq!(
            (account.next_window, account.settings.as_str()),
            (at(30), "new")
        );
        // A longer reach does not bring back what was over.
        assert!(
            account
                .quote_charges(&released(
                    span(30, 40),
                    &[(span(0, 10), price(1)), (span(10, 40), price(1))]
                ))
                .is_err()
        );
        assert!(
            account
                .quote_charges(&released(span(30, 40), &[(span(10, 40), price(1))]))
                .is_ok()
        );
        assert!(
            account
                .quote_charges(&released(span(10, 20), &[(span(10, 20), price(1))]))
                .is_err()
        );
    }

    #[test]
    fn what_is_spent_is_carried_over_to_other_settings() {
        let mut account = account(0);
        take(
            &mut account,
            released(span(0, 10), &[(span(0, 100), price(7))]),
        );
        account.apply_row(2, &configuration(10, 0)).unwrap();
        assert!(
            account
                .quote_charges(&released(span(10, 20), &[(span(0, 100), price(4))]))
                .is_err()
        );
        assert!(
            account
                .quote_charges(&released(span(10, 20), &[(span(0, 100), price(3))]))
                .is_ok()
        );
    }

    #[test]
    fn a_window_pays_for_one_version_of_a_message() {
        let account = account(0);
        let mut row = released(span(0, 10), &[(span(0, 10), price(1))]);
        assert!(account.quote_charges(&row).is_ok());
        let ReleaseOutcome::Released { messages, .. } = &mut row.outcome else {
            panic!()
        };
        messages.push(MessageDigests {
            bytes: Digest::of_bytes(b"other"),
            ..messages[0].clone()
        });
        assert!(account.quote_charges(&row).is_err());
        let ReleaseOutcome::Released { messages, .. } = &mut row.outcome else {
            panic!()
        };
        messages[1].key.push('x');
        assert!(account.quote_charges(&row).is_ok());
    }

    #[test]
    fn the_newest_state_of_a_slot_counts_and_a_window_without_leaves_it() {
        let mut account = account(0);
        let state = |slot: &str, bytes: &[u8]| StateDigest::from_bytes(slot, &[1; 32], bytes);
        let with = |window, states| {
            let mut row = released(window, &[(window, price(1))]);
            if let ReleaseOutcome::Released { states: all, .. } = &mut row.outcome {
                *all = states;
            }
            LedgerRow::Window(row)
        };
        account
            .apply_row(
                1,
                &with(span(0, 10), vec![state("a", b"1"), state("b", b"1")]),
            )
            .unwrap();
        account
            .apply_row(2, &with(span(10, 20), vec![state("a", b"2")]))
            .unwrap();
        account.apply_row(3, &with(span(20, 30), vec![])).unwrap();
        let expected = [
            ("a", (2, state("a", b"2").digest)),
            ("b", (1, state("b", b"1").digest)),
        ];
        assert_eq!(
            account.states,
            expected
                .map(|(slot, state)| (slot.to_owned(), state))
                .into()
        );
        assert!(
            account
                .apply_row(
                    4,
                    &with(span(30, 40), vec![state("a", b"3"), state("a", b"4")])
                )
                .is_err()
        );
        let LedgerRow::Configuration(next) = configuration(30, 0) else {
            panic!()
        };
        let without = |slot: &str| {
            LedgerRow::Configuration(Configuration {
                ended: vec![slot.to_owned()],
                ..next.clone()
            })
        };
        assert!(account.apply_row(4, &without("c")).is_err());
        account.apply_row(4, &without("a")).unwrap();
        assert_eq!(account.states.keys().collect::<Vec<_>>(), ["b"]);
        assert!(account.apply_row(5, &without("a")).is_err(), "it has ended");
    }

    #[test]
    fn an_account_is_read_as_it_is_written() {
        let mut account = account(20);
        take(
            &mut account,
            released(span(0, 10), &[(span(0, 10), price(5))]),
        );
        let text = serde_json::to_string(&account).unwrap();
        assert_eq!(serde_json::from_str::<Account>(&text).unwrap(), account);
    }
}
