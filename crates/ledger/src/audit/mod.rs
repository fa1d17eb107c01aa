//! An audit of the output alone, without the ledger. Pure.
//!
//! Every synopsis states the price of its release, and what the charged blocks have spent by then. So any reader of the output
//! can add up the prices and compare: a price that was tampered with, a block that has spent more than its total, and two
//! versions of one window are contradictions. A missing message (retention, compaction) is no contradiction: some of the stated
//! spending is then unaccounted for. Messages removed at the very end cannot be noticed.
//!
//! The price of a release counts once for each row and block, however many keys there are: keys partition the records.

mod sums;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::chain::Digest;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::{
    BlockCharge, Description, PrivacyDefinition, UnitDescription,
};
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// Collects the synopses of an output, in any order.
#[derive(Debug, Default)]
pub struct OutputAudit {
    pipelines: BTreeMap<String, AuditedPipeline>,
    contradictions: Vec<String>,
}

/// The result of an audit.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditFindings {
    /// One for each ledger that paid for something.
    pub statements: Vec<LedgerStatement>,
    /// Contradictions, in words.
    pub contradictions: Vec<String>,
}

/// Statement of the output about one ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerStatement {
    pub pipeline: String,
    pub ledger: String,
    pub promise: LedgerPromise,
    /// The guarantee in words, of the newest synopsis.
    pub in_words: String,
    /// The number of distinct messages.
    pub messages: usize,
    /// The number of further messages with the same bytes.
    pub copies: usize,
    /// The first and the last row that are on the output.
    pub rows: (u64, u64),
    /// The end of the last window.
    pub until: Timestamp,
    /// The block that has spent the largest part of the total.
    pub worst: (Span, Price),
    pub newest: (Span, Price),
    /// Rest of the total of the newest block. The output does not say what later windows will cost.
    pub left: Price,
    pub missing: MissingOutput,
}

/// The guarantee of a ledger, which never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerPromise {
    pub definition: PrivacyDefinition,
    pub unit: UnitDescription,
    pub total: Price,
}

/// Messages and spending that are missing from the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingOutput {
    /// Spending of blocks that no price on the output accounts for, in words.
    pub unaccounted: Vec<String>,
    /// Missing keys of rows that have other keys, in words.
    pub messages: Vec<String>,
    /// Rows without a message between the first and the last: withheld windows, changes of the configuration, or removed messages.
    pub rows: u64,
}

#[derive(Debug, Default)]
struct AuditedPipeline {
    /// Digest of every message.
    versions: BTreeMap<MessageName, Digest>,
    ledgers: BTreeMap<String, LedgerMessages>,
}

/// Fields of which the messages of a pipeline have no two alike.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MessageName {
    release: String,
    window: Span,
    key: Option<String>,
}

/// The messages of one ledger.
#[derive(Debug)]
struct LedgerMessages {
    promise: LedgerPromise,
    rows: BTreeMap<u64, AuditedRow>,
    messages: usize,
    copies: usize,
    /// The guarantee in words, of the row `newest`.
    in_words: String,
    /// The highest number of a row.
    newest: u64,
}

#[derive(Debug)]
struct AuditedRow {
    end: Timestamp,
    releases: BTreeMap<String, AuditedRelease>,
}

/// Common fields of the messages of one release and row, and their keys.
#[derive(Debug)]
struct AuditedRelease {
    window: Span,
    price: Price,
    blocks: Vec<BlockCharge>,
    configuration: String,
    keys: Vec<Option<String>>,
}

impl OutputAudit {
    /// Adds the synopsis that was found at `place`, with the digest of its bytes.
    pub fn add(&mut self, place: &str, bytes: Digest, about: &Description) {
        let pipeline = self.pipelines.entry(about.pipeline.clone()).or_default();
        let ledger = pipeline
            .ledgers
            .entry(about.ledger.id.clone())
            .or_insert_with(|| LedgerMessages::of(about));
        let version = MessageName {
            release: about.release.clone(),
            window: about.window,
            key: about.key.clone(),
        };
        match pipeline.versions.get(&version) {
            Some(first) if *first == bytes => {
                ledger.copies += 1;
                return;
            }
            Some(_) => {
                let start = about.window.start;
                self.contradictions.push(format!(
                    "{place}: a second version of {}, window {start}",
                    name(about)
                ));
                return;
            }
            None => {
                pipeline.versions.insert(version, bytes);
            }
        }
        for what in ledger.add(about) {
            self.contradictions.push(format!("{place}: {what}"));
        }
    }

    /// Adds everything up.
    pub fn finish(self) -> AuditFindings {
        let OutputAudit {
            pipelines,
            mut contradictions,
        } = self;
        let mut statements = Vec::new();
        for (pipeline, AuditedPipeline { ledgers, .. }) in pipelines {
            let mut blocks = Vec::new();
            for (id, ledger) in ledgers {
                let sums = ledger.add_up();
                for what in &sums.contradictions {
                    contradictions.push(format!("ledger {id}, {what}"));
                }
                for &block in sums.spent.keys() {
                    blocks.push(LedgerBlock {
                        block,
                        ledger: id.clone(),
                    });
                }
                statements.extend(ledger.statement(&pipeline, &id, sums));
            }
            contradictions.extend(overlaps(blocks));
        }
        AuditFindings {
            statements,
            contradictions,
        }
    }
}

/// A block that a ledger has charged.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct LedgerBlock {
    block: Span,
    ledger: String,
}

/// Overlapping blocks of two ledgers: the losses of a unit in both compose, and no ledger tracks their sum.
fn overlaps(mut blocks: Vec<LedgerBlock>) -> Vec<String> {
    blocks.sort();
    let mut found = Vec::new();
    let mut last: Option<LedgerBlock> = None;
    for next in blocks {
        let LedgerBlock { block, ledger } = &next;
        if let Some(last) = &last
            && block.start < last.block.end
        {
            found.push(format!(
                "the block {} to {} of ledger {ledger} overlaps the block {} to {} of ledger {}",
                block.start, block.end, last.block.start, last.block.end, last.ledger
            ));
        }
        if last.as_ref().is_none_or(|last| last.block.end < block.end) {
            last = Some(next);
        }
    }
    found
}

fn name(about: &Description) -> String {
    key_of(&about.release, about.key.as_deref())
}

fn key_of(release: &str, key: Option<&str>) -> String {
    match key {
        Some(key) => format!("{release}, key {key}"),
        None => release.to_owned(),
    }
}

impl LedgerMessages {
    fn of(about: &Description) -> Self {
        let total = about
            .privacy
            .blocks
            .first()
            .map_or(about.privacy.price.zero_of_kind(), |charge| charge.total);
        let promise = LedgerPromise {
            definition: about.privacy.definition.clone(),
            unit: about.privacy.unit.clone(),
            total,
        };
        LedgerMessages {
            promise,
            rows: BTreeMap::new(),
            messages: 0,
            copies: 0,
            in_words: String::new(),
            newest: 0,
        }
    }

    /// Adds one message; returns what contradicts the others.
    fn add(&mut self, about: &Description) -> Vec<String> {
        let mut wrong = Vec::new();
        let sequence = about.ledger.sequence;
        let privacy = &about.privacy;
        self.messages += 1;
        if sequence >= self.newest {
            self.newest = sequence;
            self.in_words.clone_from(&privacy.in_words);
        }
        let promise = &self.promise;
        if !privacy.definition.is_kind_of(&promise.definition)
            || privacy.unit != promise.unit
            || privacy
                .blocks
                .iter()
                .any(|charge| charge.total != promise.total)
        {
            wrong.push(
                "its guarantee differs from that of the other messages of its ledger".to_owned(),
            );
        }
        let row = self.rows.entry(sequence).or_insert_with(|| AuditedRow {
            end: about.window.end,
            releases: BTreeMap::new(),
        });
        if row.end != about.window.end {
            wrong.push(format!(
                "row {sequence} has a window that ends at {} and one that ends at {}",
                row.end, about.window.end
            ));
        }
        let release = row
            .releases
            .entry(about.release.clone())
            .or_insert_with(|| AuditedRelease {
                window: about.window,
                price: privacy.price,
                blocks: privacy.blocks.clone(),
                configuration: about.digests.configuration.clone(),
                keys: Vec::new(),
            });
        if release.window != about.window
            || release.price != privacy.price
            || release.blocks != privacy.blocks
        {
            let what = format!(
                "row {sequence}: the keys of {} disagree on its window, price or blocks",
                about.release
            );
            wrong.push(what);
        }
        release.keys.push(about.key.clone());
        wrong
    }
}
