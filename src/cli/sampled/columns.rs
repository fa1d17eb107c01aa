//! How the records of a sample have the columns that are read.

use std::collections::BTreeMap;

use arrow_array::Array;

use crate::cli::figures::count_in_words;
use bernstream_kafka::check::TopicCheck;
use bernstream_release::source::{Batch, Columns, FoundColumn, FoundColumns};

/// Numbers of records that lack each of the columns that are read: the event time, the key, the user, the values.
pub struct ColumnTally<'a> {
    columns: &'a Columns,
    records: u64,
    lacking: BTreeMap<&'a str, u64>,
}

impl<'a> ColumnTally<'a> {
    pub fn new(columns: &'a Columns) -> Self {
        ColumnTally {
            columns,
            records: 0,
            lacking: BTreeMap::new(),
        }
    }

    pub fn count(&mut self, batch: &Batch) {
        self.records += batch.times.len() as u64;
        let rows = batch.times.len();
        let mut nulls = NullCounts::default();
        nulls.add(&self.columns.time, batch.times.null_count());
        let parts = batch.keys.as_ref().map_or(&[][..], |keys| keys.parts());
        for (name, part) in self.columns.key.iter().zip(parts) {
            let without = (0..rows).filter(|row| part.get(*row).is_none());
            nulls.add(name, without.count());
        }
        if let (Some(name), Some(users)) = (&self.columns.unit, &batch.units) {
            let without = (0..rows).filter(|row| users.get(*row).is_none());
            nulls.add(name, without.count());
        }
        for (name, column) in self.columns.values.iter().zip(&batch.values) {
            nulls.add(name, column.null_count());
        }
        for (name, nulls) in nulls.most {
            *self.lacking.entry(name).or_default() += nulls as u64;
        }
    }

    /// Checks that some record has each column.
    pub fn checks(&self) -> Vec<TopicCheck> {
        let records = self.records;
        if records == 0 {
            return Vec::new();
        }
        let mut checks = Vec::new();
        for (column, without) in &self.lacking {
            checks.push(TopicCheck::new(
                format!(
                    "records in them have {column:?}: {} of {records}",
                    records - without
                ),
                *without < records,
                "none has it: it is missing or null, or of another type than is declared",
                "correct the name of the column, or its type",
            ));
        }
        checks
    }
}

/// Numbers of records of a batch that lack each column.
#[derive(Default)]
struct NullCounts<'a> {
    most: BTreeMap<&'a str, usize>,
}

impl<'a> NullCounts<'a> {
    /// Adds the nulls of a column; one that is read as two things counts once.
    fn add(&mut self, column: &'a str, nulls: usize) {
        let most = self.most.entry(column).or_default();
        *most = nulls.max(*most);
    }
}

/// Numbers of messages that have the columns, with which types, for messages that say it.
#[derive(Default)]
pub struct TypeTally {
    kinds: BTreeMap<String, BTreeMap<&'static str, u64>>,
    unread: BTreeMap<String, UnreadColumn>,
}

/// A column that is missing in some messages, or has a type that it may not have.
struct UnreadColumn {
    messages: u64,
    /// The reason in the first of them.
    why: String,
}

impl TypeTally {
    /// Counts how a message has the columns.
    pub fn count(&mut self, found: &FoundColumns) {
        for (name, column) in by_name(found.columns()) {
            let kinds = self.kinds.entry(name.to_owned()).or_default();
            *kinds.entry(column.cells()).or_default() += 1;
        }
        for (name, column) in by_name(found.unread_columns()) {
            let unread = self.unread.entry(name.to_owned());
            let unread = unread.or_insert_with(|| UnreadColumn {
                messages: 0,
                why: found.unread_reason(column).to_string(),
            });
            unread.messages += 1;
        }
    }

    /// Checks that all messages have the columns, with types that they may have, and each column with the same.
    pub fn checks(&self) -> Vec<TopicCheck> {
        let mut checks = Vec::new();
        for (column, UnreadColumn { messages, why }) in &self.unread {
            let all: u64 = self
                .kinds
                .get(column)
                .into_iter()
                .flat_map(BTreeMap::values)
                .sum();
            checks.push(TopicCheck::new(
                format!("messages in which {column:?} can be read: {} of {all}", all - messages),
                false,
                format!("{why}; there it counts as null in every record"),
                "correct the name of the column, or its type; a record must not decide which columns a message has",
            ));
        }
        for (column, kinds) in &self.kinds {
            if kinds.len() < 2 {
                continue;
            }
            let mut in_words = Vec::new();
            for (kind, messages) in kinds {
                in_words.push(format!(
                    "{kind} in {}",
                    count_in_words(*messages, "message")
                ));
            }
            checks.push(TopicCheck::new(
                format!("the type of {column:?} is the same in all messages"),
                false,
                format!(
                    "it is {}: where a program takes the type of a column from the records in it, one record can change what others become",
                    in_words.join(", ")
                ),
                "give the producer a schema: pyarrow.schema, schema= of Polars, or the nullable types of pandas",
            ));
        }
        checks
    }
}

/// Columns in the order of their names; one that is needed for two things is one column.
fn by_name<'c>(
    columns: impl IntoIterator<Item = &'c FoundColumn>,
) -> BTreeMap<&'c str, &'c FoundColumn> {
    columns
        .into_iter()
        .map(|column| (column.name(), column))
        .collect()
}
