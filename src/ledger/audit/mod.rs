//! What the output says of its own budget, worked out from the output alone. Pure.
//!
//! Every synopsis says what its release cost and what the blocks that it charged have spent by then. So whoever reads the
//! output can add the prices up and compare, without the ledger: a price that was tampered with, a block that has spent more
//! than its total, and two versions of one window contradict each other. A message that is gone (retention, compaction) is no
//! contradiction: it leaves a claim that the prices do not account for. What was removed at the very end nobody can notice.
//!
//! A release's price counts once a row and block, whatever the number of keys, which partition the records.

mod sums;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::chain::Digest;
use crate::clock::Timestamp;
use crate::mechanism::price::Price;
use crate::synopsis::description::{Charge, Definition, Description, Unit};
use crate::window::grid::Span;

/// Takes every synopsis of an output, in any order.
#[derive(Debug, Default)]
pub struct Audit {
    pipelines: BTreeMap<String, Pipeline>,
    contradictions: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// One a ledger that paid for something.
    pub statements: Vec<Statement>,
    /// What cannot all be true, in words.
    pub contradictions: Vec<String>,
}

/// What the output says of one ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub pipeline: String,
    pub ledger: String,
    pub promise: Promise,
    /// Of the newest synopsis.
    pub in_words: String,
    /// Different messages.
    pub messages: usize,
    /// The same bytes once more.
    pub copies: usize,
    /// The first and the last row that are on the output.
    pub rows: (u64, u64),
    /// The end of the last window.
    pub until: Timestamp,
    /// The block that has spent the largest part of the total.
    pub worst: (Span, Price),
    pub newest: (Span, Price),
    /// What the newest block has left of the total. What later windows will cost does not follow from the output.
    pub left: Price,
    pub missing: Missing,
}

/// What a ledger promises for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    pub definition: Definition,
    pub unit: Unit,
    pub total: Price,
}

/// What is not on the output and was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// What blocks have spent that no price on the output accounts for, in words.
    pub unaccounted: Vec<String>,
    /// Messages whose release has others of the same row, in words.
    pub messages: Vec<String>,
    /// Rows between the first and the last without a message: withheld windows and changes of configuration, or removed ones.
    pub rows: u64,
}

#[derive(Debug, Default)]
struct Pipeline {
    /// Release, window and key of every message.
    versions: BTreeMap<(String, Span, Option<String>), Digest>,
    books: BTreeMap<String, Book>,
}

/// The messages of one ledger.
#[derive(Debug)]
struct Book {
    promise: Promise,
    rows: BTreeMap<u64, Row>,
    messages: usize,
    copies: usize,
    /// Of the row with the highest number.
    in_words: (u64, String),
}

#[derive(Debug)]
struct Row {
    end: Timestamp,
    releases: BTreeMap<String, Release>,
}

/// What the messages of one release and row have in common, and their keys.
#[derive(Debug)]
struct Release {
    window: Span,
    price: Price,
    blocks: Vec<Charge>,
    configuration: String,
    keys: Vec<Option<String>>,
}

impl Audit {
    /// Takes the synopsis that was found at `place`, with the digest of its bytes.
    pub fn add(&mut self, place: &str, bytes: Digest, about: &Description) {
        let pipeline = self.pipelines.entry(about.pipeline.clone()).or_default();
        let book = pipeline.books.entry(about.ledger.id.clone()).or_insert_with(|| Book::of(about));
        let version = (about.release.clone(), about.window, about.key.clone());
        match pipeline.versions.get(&version) {
            Some(first) if *first == bytes => {
                book.copies += 1;
                return;
            }
            Some(_) => {
                let start = about.window.start;
                self.contradictions.push(format!("{place}: a second version of {}, window {start}", name(about)));
                return;
            }
            None => {
                pipeline.versions.insert(version, bytes);
            }
        }
        for what in book.add(about) {
            self.contradictions.push(format!("{place}: {what}"));
        }
    }

    /// Adds everything up.
    pub fn finish(self) -> Findings {
        let Audit { pipelines, mut contradictions } = self;
        let mut statements = Vec::new();
        for (pipeline, Pipeline { books, .. }) in pipelines {
            let mut blocks = Vec::new();
            for (id, book) in books {
                let sums = book.sums();
                contradictions.extend(sums.contradictions.iter().map(|what| format!("ledger {id}, {what}")));
                blocks.extend(sums.spent.keys().map(|block| (*block, id.clone())));
                statements.extend(book.statement(&pipeline, &id, sums));
            }
            contradictions.extend(overlaps(blocks));
        }
        Findings { statements, contradictions }
    }
}

/// Blocks that a unit could lie in two of: its loss would be a sum that nobody keeps.
fn overlaps(mut blocks: Vec<(Span, String)>) -> Vec<String> {
    blocks.sort();
    let (mut found, mut last) = (Vec::new(), None::<(Span, String)>);
    for (block, id) in blocks {
        if let Some((before, other)) = last.as_ref().filter(|(before, _)| block.start < before.end) {
            found.push(format!(
                "the block {} to {} of ledger {id} meets the block {} to {} of ledger {other}",
                block.start, block.end, before.start, before.end
            ));
        }
        if last.as_ref().is_none_or(|(before, _)| before.end < block.end) {
            last = Some((block, id));
        }
    }
    found
}

fn name(about: &Description) -> String {
    key_of(&about.release, about.key.as_deref())
}

fn key_of(release: &str, key: Option<&str>) -> String {
    key.map_or_else(|| release.to_owned(), |key| format!("{release}, key {key}"))
}

impl Book {
    fn of(about: &Description) -> Self {
        let total = about.privacy.blocks.first().map_or(about.privacy.price.zero(), |charge| charge.total);
        let promise = Promise { definition: about.privacy.definition.clone(), unit: about.privacy.unit.clone(), total };
        Book { promise, rows: BTreeMap::new(), messages: 0, copies: 0, in_words: (0, String::new()) }
    }

    /// Takes one message; says what does not fit the others.
    fn add(&mut self, about: &Description) -> Vec<String> {
        let mut wrong = Vec::new();
        let (sequence, privacy) = (about.ledger.sequence, &about.privacy);
        self.messages += 1;
        if sequence >= self.in_words.0 {
            self.in_words = (sequence, privacy.in_words.clone());
        }
        let promise = &self.promise;
        if !privacy.definition.is_kind_of(&promise.definition)
            || privacy.unit != promise.unit
            || privacy.blocks.iter().any(|charge| charge.total != promise.total)
        {
            wrong.push("it promises something else than the other messages of its ledger".to_owned());
        }
        let row = self.rows.entry(sequence).or_insert_with(|| Row { end: about.window.end, releases: BTreeMap::new() });
        if row.end != about.window.end {
            wrong.push(format!(
                "row {sequence} has a window that ends at {} and one that ends at {}",
                row.end, about.window.end
            ));
        }
        let release = row.releases.entry(about.release.clone()).or_insert_with(|| Release {
            window: about.window,
            price: privacy.price,
            blocks: privacy.blocks.clone(),
            configuration: about.digests.configuration.clone(),
            keys: Vec::new(),
        });
        if (release.window, release.price, &release.blocks) != (about.window, privacy.price, &privacy.blocks) {
            let what = format!(
                "row {sequence}: the keys of {} do not say the same of its window, price or blocks",
                about.release
            );
            wrong.push(what);
        }
        release.keys.push(about.key.clone());
        wrong
    }
}
