//! How the records of a sample have the columns that are read.

use std::collections::BTreeMap;

use arrow_array::Array;

use crate::cli::figures::counted;
use bernstream_kafka::check::Check;
use bernstream_release::source::{Batch, Columns, FoundColumn, FoundColumns};

/// How many records lack which of the columns that are read: the event time, the key, the user, the values.
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
        let Columns {
            time,
            key,
            unit,
            values,
            ..
        } = self.columns;
        let mut lacking = vec![(time, batch.times.null_count())];
        for (name, ids) in [(key, &batch.keys), (unit, &batch.units)] {
            if let (Some(name), Some(ids)) = (name, ids) {
                lacking.push((
                    name,
                    (0..batch.times.len())
                        .filter(|row| ids.get(*row).is_none())
                        .count(),
                ));
            }
        }
        lacking.extend(
            values
                .iter()
                .zip(&batch.values)
                .map(|(name, column)| (name, column.null_count())),
        );
        // A column that is read as two things counts once.
        let mut most: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, nulls) in lacking {
            let most = most.entry(name).or_default();
            *most = nulls.max(*most);
        }
        for (name, nulls) in most {
            *self.lacking.entry(name).or_default() += nulls as u64;
        }
    }

    /// Whether any record has each column.
    pub fn checks(&self) -> Vec<Check> {
        let records = self.records;
        let of_column = |(column, without): (&&str, &u64)| {
            Check::new(
                format!(
                    "records in them have {column:?}: {} of {records}",
                    records - without
                ),
                *without < records,
                "none has it: it is missing or null, or of another type than is declared",
                "correct the name of the column, or its type",
            )
        };
        self.lacking
            .iter()
            .filter(|_| records > 0)
            .map(of_column)
            .collect()
    }
}

/// In how many messages the columns are there, with which types, for messages that say it.
#[derive(Default)]
pub struct TypeTally {
    kinds: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// In how many messages a column is missing or has a type that it may not have, and why in the first of them.
    unread: BTreeMap<String, (u64, String)>,
}

impl TypeTally {
    /// Counts how a message has the columns.
    pub fn count(&mut self, found: &FoundColumns) {
        // One that is needed for two things is one column.
        let columns: BTreeMap<&str, &FoundColumn> = found
            .columns()
            .iter()
            .map(|column| (column.name(), column))
            .collect();
        for (name, column) in columns {
            *self
                .kinds
                .entry(name.to_owned())
                .or_default()
                .entry(column.cells())
                .or_default() += 1;
        }
        let unread: BTreeMap<&str, &FoundColumn> = found
            .unread()
            .map(|column| (column.name(), column))
            .collect();
        for (name, column) in unread {
            let why = || (0, found.fault(column).to_string());
            self.unread.entry(name.to_owned()).or_insert_with(why).0 += 1;
        }
    }

    /// Whether all messages have the columns, with types that they may have, and each column with the same.
    pub fn checks(&self) -> Vec<Check> {
        let unread = self.unread.iter().map(|(column, (count, why))| {
            let all: u64 = self.kinds.get(column).into_iter().flat_map(BTreeMap::values).sum();
            Check::new(
                format!("messages in which {column:?} can be read: {} of {all}", all - count),
                false,
                format!("{why}; there it counts as null in every record"),
                "correct the name of the column, or its type; a record must not decide which columns a message has",
            )
        });
        let differ = self.kinds.iter().filter(|(_, kinds)| kinds.len() > 1).map(|(column, kinds)| {
            let of_kind = |(kind, count): (&&str, &u64)| format!("{kind} in {}", counted(*count, "message"));
            Check::new(
                format!("the type of {column:?} is the same in all messages"),
                false,
                format!(
                    "it is {}: where a program takes the type of a column from the records in it, one record can change what others become",
                    kinds.iter().map(of_kind).collect::<Vec<_>>().join(", ")
                ),
                "give the producer a schema: pyarrow.schema, schema= of Polars, or the nullable types of pandas",
            )
        });
        unread.chain(differ).collect()
    }
}
