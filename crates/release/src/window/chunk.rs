//! Rows of a batch, column by column: the same as one after another, in loops that the compiler can turn into vector instructions.

use std::ops::Range;

use arrow_array::{Array, Float64Array};
use arrow_buffer::NullBuffer;

use super::accumulator::{Accumulator, AccumulatorSpec, Record};
use super::counts::DropReason;
use super::rules::{DomainAxis, OutsideRule, RecordLabel, ReleaseInput};
use crate::source::Batch;
use bernstream_synopsis::histogram::GridPoint;

/// Number of rows that are worked on together: their columns stay in the processor's nearest cache.
pub(super) const CHUNK: usize = 1024;

/// Rows of a chunk as one form keeps them.
#[derive(Default)]
pub(super) struct ChunkRecords {
    /// Coordinates, one column an axis; of a row that is dropped anything.
    coordinates: [Vec<u32>; 3],
    labels: Vec<i32>,
    /// Reasons why rows are dropped; empty where none is.
    refusals: Vec<Option<DropReason>>,
    /// The values of one axis, in the unit cube.
    units: Vec<f64>,
}

/// A column of a chunk.
struct ChunkColumn<'a> {
    values: &'a [f64],
    /// Only where something is null.
    nulls: Option<NullBuffer>,
}

impl<'a> ChunkColumn<'a> {
    fn next_of(
        columns: &mut impl Iterator<Item = &'a Float64Array>,
        rows: &Range<usize>,
    ) -> Option<Self> {
        let column = columns.next()?;
        let values = column.values().get(rows.clone())?;
        let nulls = column
            .nulls()
            .map(|nulls| nulls.slice(rows.start, rows.len()));
        Some(ChunkColumn {
            values,
            nulls: nulls.filter(|nulls| nulls.null_count() > 0),
        })
    }
}

impl ChunkRecords {
    /// Reads `rows` of a batch as `form` keeps them. What a row becomes depends on its own values alone.
    pub fn read_rows(&mut self, form: &ReleaseInput, batch: &Batch, rows: &Range<usize>) {
        self.refusals.clear();
        self.units.resize(rows.len(), 0.0);
        self.labels.resize(rows.len(), 0);
        // Axes that are not there stay 0.
        for column in &mut self.coordinates {
            column.resize(rows.len(), 0);
        }
        let mut columns = form
            .columns
            .iter()
            .filter_map(|column| batch.values.get(*column));
        for (axis, rule) in form.axes.iter().enumerate().take(self.coordinates.len()) {
            let Some(column) = ChunkColumn::next_of(&mut columns, rows) else {
                return self.refuse_all(rows.len());
            };
            self.read_axis(form, axis, rule, &column);
        }
        if let Some(label) = &form.label {
            let Some(column) = ChunkColumn::next_of(&mut columns, rows) else {
                return self.refuse_all(rows.len());
            };
            self.read_label(label, &column);
        }
    }

    fn read_axis(
        &mut self,
        form: &ReleaseInput,
        axis: usize,
        rule: &DomainAxis,
        column: &ChunkColumn<'_>,
    ) {
        match rule.outside {
            OutsideRule::Drop => self.refuse_outside(column, |value| !rule.contains(value)),
            OutsideRule::Clamp => self.refuse_outside(column, |_| false),
        }
        for (unit, value) in self.units.iter_mut().zip(column.values) {
            *unit = rule.nearest_unit(*value);
        }
        if let Some(coordinates) = self.coordinates.get_mut(axis) {
            form.accumulator
                .write_coordinates(axis, &self.units, coordinates);
        }
    }

    fn read_label(&mut self, label: &RecordLabel, column: &ChunkColumn<'_>) {
        self.refuse_outside(column, |value| label.label_of_record(value).is_none());
        for (whole, value) in self.labels.iter_mut().zip(column.values) {
            *whole = label.label_of_record(*value).unwrap_or(0);
        }
    }

    /// Drops the rows without a number, and those whose number is outside, unless an earlier column has dropped them already.
    #[inline]
    fn refuse_outside(&mut self, column: &ChunkColumn<'_>, is_outside: impl Fn(f64) -> bool) {
        if column.nulls.is_none() {
            // Without an early end, so that it is a loop of vector instructions.
            let mut are_sound = true;
            for value in column.values {
                are_sound = are_sound & !value.is_nan() & !is_outside(*value);
            }
            if are_sound {
                return;
            }
        }
        self.refusals.resize(column.values.len(), None);
        for (row, value) in column.values.iter().enumerate() {
            let is_null = column
                .nulls
                .as_ref()
                .is_some_and(|nulls| nulls.is_null(row));
            let found = if is_null || value.is_nan() {
                Some(DropReason::Missing)
            } else if is_outside(*value) {
                Some(DropReason::Outside)
            } else {
                None
            };
            self.refusals[row] = self.refusals[row].or(found);
        }
    }

    fn refuse_all(&mut self, rows: usize) {
        self.refusals.resize(rows, None);
        for refusal in &mut self.refusals {
            *refusal = refusal.or(Some(DropReason::Missing));
        }
    }

    /// Returns whether no row is dropped.
    pub fn are_all_sound(&self) -> bool {
        self.refusals.is_empty()
    }

    /// Reason why a row of the chunk is dropped; `None` if it is not.
    #[inline]
    pub fn refusal_of(&self, row: usize) -> Option<DropReason> {
        self.refusals.get(row).copied().flatten()
    }

    /// Adds `rows` of the chunk, none of which is dropped, to an accumulator of the kind `spec`: the same as one after another.
    pub fn add_to(
        &self,
        spec: &AccumulatorSpec,
        accumulator: &mut Accumulator,
        rows: Range<usize>,
    ) {
        if let AccumulatorSpec::Histogram(nodes) = spec
            && let Accumulator::Histogram(histogram) = accumulator
        {
            let coordinates = self
                .coordinates
                .each_ref()
                .map(|axis| axis.get(rows.clone()).unwrap_or_default());
            return histogram.deposit_all(nodes, coordinates);
        }
        for row in rows {
            spec.add(accumulator, self.get(row));
        }
    }

    /// A row of the chunk as it is kept.
    #[inline]
    pub fn get(&self, row: usize) -> Record {
        let coordinates = self
            .coordinates
            .each_ref()
            .map(|column| column.get(row).copied().unwrap_or(0));
        Record {
            place: GridPoint(coordinates),
            label: self.labels.get(row).copied().unwrap_or(0),
        }
    }
}
