//! Adds up the prices on the output, and compares them with what the messages claim.

use std::collections::{BTreeMap, BTreeSet};

use super::{LedgerMessages, Missing, Release, Row, Statement, key_of};
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// What the messages of one ledger add up to.
pub(super) struct Sums {
    pub spent: BTreeMap<Span, Price>,
    pub contradictions: Vec<String>,
    missing: Missing,
}

/// What the releases of one row charge a block, and what they claim that it has spent by then.
struct Claim {
    price: Option<Price>,
    spent: Price,
}

impl LedgerMessages {
    pub(super) fn sums(&self) -> Sums {
        let missing = Missing {
            messages: self.missing_keys(),
            rows: self.missing_rows(),
            unaccounted: Vec::new(),
        };
        let mut sums = Sums {
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
            for (block, claim) in claims(*sequence, row, &mut sums.contradictions) {
                self.compare(*sequence, block, &claim, &mut sums);
            }
        }
        sums
    }

    /// Adds the charge of a row to what the block had spent before.
    fn compare(&self, sequence: u64, block: Span, claim: &Claim, sums: &mut Sums) {
        let total = self.promise.total;
        let before = sums.spent.get(&block).copied().unwrap_or(total.zero());
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
        let mut known: BTreeMap<(&str, &str), BTreeSet<&Option<String>>> = BTreeMap::new();
        let named = || self.rows.values().flat_map(|row| &row.releases);
        for (name, release) in named() {
            known
                .entry((name, &release.configuration))
                .or_default()
                .extend(&release.keys);
        }
        let mut missing = Vec::new();
        for (name, release) in named() {
            let there: BTreeSet<_> = release.keys.iter().collect();
            let Some(known) = known.get(&(name.as_str(), release.configuration.as_str())) else {
                continue;
            };
            missing.extend(known.difference(&there).map(|key| {
                format!(
                    "{}, window {}",
                    key_of(name, key.as_deref()),
                    release.window.start
                )
            }));
        }
        missing
    }

    fn missing_rows(&self) -> u64 {
        let span = self.rows.first_key_value().zip(self.rows.last_key_value());
        let all = span.map_or(0, |((first, _), (last, _))| {
            last.saturating_sub(*first).saturating_add(1)
        });
        all.saturating_sub(self.rows.len() as u64)
    }

    /// `None` if no message charged a block, which has been reported as a contradiction.
    pub(super) fn statement(self, pipeline: &str, id: &str, sums: Sums) -> Option<Statement> {
        let total = self.promise.total;
        let share = |spent: &Price| spent.share_of(total);
        let worst = sums
            .spent
            .iter()
            .max_by(|a, b| share(a.1).total_cmp(&share(b.1)))
            .map(|(b, p)| (*b, *p))?;
        let newest = sums
            .spent
            .last_key_value()
            .map(|(block, spent)| (*block, *spent))?;
        let first = self.rows.first_key_value()?.0;
        let (last, row) = self.rows.last_key_value()?;
        Some(Statement {
            pipeline: pipeline.to_owned(),
            ledger: id.to_owned(),
            in_words: self.in_words.1.clone(),
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
                .unwrap_or(self.promise.total.zero()),
            missing: sums.missing,
            promise: self.promise,
        })
    }
}

/// The charges of a row, block by block; each release counts once.
fn claims(sequence: u64, row: &Row, wrong: &mut Vec<String>) -> BTreeMap<Span, Claim> {
    let mut claims: BTreeMap<Span, Claim> = BTreeMap::new();
    for (
        name,
        Release {
            window,
            price,
            blocks,
            ..
        },
    ) in &row.releases
    {
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
                        Claim {
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
