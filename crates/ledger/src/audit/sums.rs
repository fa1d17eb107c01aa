//! Adds up the prices on the output, and compares them with what the messages claim.

use std::collections::{BTreeMap, BTreeSet};

use super::{AuditedRelease, AuditedRow, LedgerMessages, LedgerStatement, MissingOutput, key_of};
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// Sums of the messages of one ledger.
pub(super) struct MessageSums {
    pub spent: BTreeMap<Span, Price>,
    pub contradictions: Vec<String>,
    missing: MissingOutput,
}

/// Charge of the releases of one row to a block, and the spending that they claim for it by then.
struct ChargeClaim {
    price: Option<Price>,
    spent: Price,
}

/// A release under one configuration, which has the same keys in every window.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct KeySet<'a> {
    release: &'a str,
    configuration: &'a str,
}

impl<'a> KeySet<'a> {
    fn new(name: &'a str, release: &'a AuditedRelease) -> Self {
        KeySet {
            release: name,
            configuration: &release.configuration,
        }
    }
}

impl LedgerMessages {
    pub(super) fn add_up(&self) -> MessageSums {
        let missing = MissingOutput {
            messages: self.missing_keys(),
            rows: self.missing_rows(),
            unaccounted: Vec::new(),
        };
        let mut sums = MessageSums {
            spent: BTreeMap::new(),
            contradictions: Vec::new(),
            missing,
        };
        let mut last = None;
        for (sequence, row) in &self.rows {
            if last.is_some_and(|end| row.end <= end) {
                let what = format!(
                    "row {sequence}: its window ends at {}, no later than that of the row before",
                    row.end
                );
                sums.contradictions.push(what);
            }
            last = Some(row.end);
            for (block, claim) in claims_of_row(*sequence, row, &mut sums.contradictions) {
                self.compare_charge(*sequence, block, &claim, &mut sums);
            }
        }
        sums
    }

    /// Adds the charge of a row to what the block had spent before.
    fn compare_charge(
        &self,
        sequence: u64,
        block: Span,
        claim: &ChargeClaim,
        sums: &mut MessageSums,
    ) {
        let total = self.promise.total;
        let before = sums
            .spent
            .get(&block)
            .copied()
            .unwrap_or(total.zero_of_kind());
        let named = format!("row {sequence}: the block {} to {}", block.start, block.end);
        let Some(sum) = claim.price.and_then(|price| before.checked_add(price)) else {
            sums.contradictions
                .push(format!("{named} is charged prices that cannot be added up"));
            return;
        };
        if !sum.is_within(total) || !claim.spent.is_within(total) {
            let most = if sum.is_within(total) {
                claim.spent
            } else {
                sum
            };
            sums.contradictions.push(format!(
                "{named} has spent {most}, more than its total of {total}"
            ));
        }
        match claim.spent.checked_sub(sum) {
            Some(rest) if rest.is_zero() => {}
            Some(rest) => sums.missing.unaccounted.push(format!(
                "{named} has spent {rest} on messages that are not on the output"
            )),
            None => sums.contradictions.push(format!(
                "{named} is stated to have spent {}, but the prices on the output add up to {sum}",
                claim.spent
            )),
        }
        sums.spent.insert(
            block,
            if sum.is_within(claim.spent) {
                claim.spent
            } else {
                sum
            },
        );
    }

    /// Keys that other rows of the same configuration have.
    fn missing_keys(&self) -> Vec<String> {
        let mut known: BTreeMap<KeySet<'_>, BTreeSet<&Option<String>>> = BTreeMap::new();
        for row in self.rows.values() {
            for (name, release) in &row.releases {
                known
                    .entry(KeySet::new(name, release))
                    .or_default()
                    .extend(&release.keys);
            }
        }
        let mut missing = Vec::new();
        for row in self.rows.values() {
            for (name, release) in &row.releases {
                let Some(known) = known.get(&KeySet::new(name, release)) else {
                    continue;
                };
                let there: BTreeSet<_> = release.keys.iter().collect();
                for key in known.difference(&there) {
                    let message = key_of(name, key.as_deref());
                    missing.push(format!("{message}, window {}", release.window.start));
                }
            }
        }
        missing
    }

    fn missing_rows(&self) -> u64 {
        let first = self.rows.keys().next();
        let last = self.rows.keys().next_back();
        let all = match (first, last) {
            (Some(first), Some(last)) => last.saturating_sub(*first).saturating_add(1),
            _ => 0,
        };
        all.saturating_sub(self.rows.len() as u64)
    }

    /// `None` if no message charged a block, which has been reported as a contradiction.
    pub(super) fn statement(
        self,
        pipeline: &str,
        id: &str,
        sums: MessageSums,
    ) -> Option<LedgerStatement> {
        let total = self.promise.total;
        let worst = sums
            .spent
            .iter()
            .max_by(|(_, a), (_, b)| a.share_of(total).total_cmp(&b.share_of(total)))
            .map(|(block, spent)| (*block, *spent))?;
        let newest = sums
            .spent
            .last_key_value()
            .map(|(block, spent)| (*block, *spent))?;
        let first = self.rows.first_key_value()?.0;
        let (last, row) = self.rows.last_key_value()?;
        Some(LedgerStatement {
            pipeline: pipeline.to_owned(),
            ledger: id.to_owned(),
            in_words: self.in_words.clone(),
            messages: self.messages,
            copies: self.copies,
            rows: (*first, *last),
            until: row.end,
            worst,
            newest,
            left: self
                .promise
                .total
                .checked_sub(newest.1)
                .unwrap_or(self.promise.total.zero_of_kind()),
            missing: sums.missing,
            promise: self.promise,
        })
    }
}

/// The charges of a row, block by block; each release counts once.
fn claims_of_row(
    sequence: u64,
    row: &AuditedRow,
    wrong: &mut Vec<String>,
) -> BTreeMap<Span, ChargeClaim> {
    let mut claims: BTreeMap<Span, ChargeClaim> = BTreeMap::new();
    for (name, release) in &row.releases {
        let AuditedRelease {
            window,
            price,
            blocks,
            ..
        } = release;
        let is_joined = blocks
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a.end == b.start));
        // In a declared plan the first release of a row pays for the window, and the others are free.
        let is_free = price.is_zero() && !matches!(price, Price::Slots(_));
        if !is_joined || is_free || blocks.last().is_none_or(|block| block.end < window.end) {
            wrong.push(format!(
                "row {sequence}: {name} does not pay for the blocks that its window overlaps"
            ));
        }
        for charge in blocks {
            let block = Span {
                start: charge.start,
                end: charge.end,
            };
            match claims.get_mut(&block) {
                None => {
                    claims.insert(
                        block,
                        ChargeClaim {
                            price: Some(*price),
                            spent: charge.spent,
                        },
                    );
                }
                Some(claim) => {
                    claim.price = claim.price.and_then(|sum| sum.checked_add(*price));
                    if claim.spent != charge.spent {
                        let start = block.start;
                        let end = block.end;
                        wrong.push(format!(
                            "row {sequence}: its releases disagree on what the block {start} to {end} has spent"
                        ));
                    }
                }
            }
        }
    }
    claims
}
