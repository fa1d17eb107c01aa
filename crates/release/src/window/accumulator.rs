//! State that a window keeps of its records, and the records themselves as they are kept.

use std::fmt;
use std::sync::Arc;

use super::found_keys::{FoundKeyCounting, FoundKeyTotals};
use super::unit_keys::{CountedKeys, KeyCounting, KeyTotals};
use bernstream_synopsis::histogram::{GridPoint, Histogram, Nodes};

/// The label of a class, and the bound of a number that is a label.
pub const LABEL: i32 = 1 << 30;

/// A record in the public domain, in whole numbers: where it lies in the unit cube, and its label.
///
/// The derived order is that of the record alone, so what is computed from sorted records does not depend on who sent
/// them when; records that compare equal are interchangeable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    pub place: GridPoint,
    /// A number from -[`LABEL`] to [`LABEL`]; one of two classes is one of the two, one of several its place in their list; 0 without
    /// a label.
    pub label: i32,
}

impl Record {
    /// A record for functions that keep records: `x` in the unit cube, at most three axes, `label` in `[-1, 1]`. What
    /// lies outside is moved to the border.
    pub fn new(x: &[f64], label: f64) -> Self {
        let mut place = GridPoint::default();
        for (coordinate, x) in place.0.iter_mut().zip(x) {
            *coordinate = GridPoint::fine_coordinate(*x);
        }
        Record {
            place,
            label: whole_label(label),
        }
    }

    /// The coordinate on `axis` in `[0, 1]`, to 2^-31; for functions that keep records or sums.
    #[inline]
    pub fn x(&self, axis: usize) -> f64 {
        self.place
            .0
            .get(axis)
            .map_or(0.0, |x| f64::from(*x) / f64::from(GridPoint::FINE))
    }

    /// The label in `[-1, 1]`, to 2^-30.
    #[inline]
    pub fn label(&self) -> f64 {
        f64::from(self.label) / f64::from(LABEL)
    }
}

/// Shows nothing of the record.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Record")
    }
}

/// `label` in `[-1, 1]` as a whole number of 2^-30.
#[inline]
pub(super) fn whole_label(label: f64) -> i32 {
    let label = label.clamp(-1.0, 1.0) * f64::from(LABEL);
    // `round` would be a call for each record. Without its whole part a number is exact.
    let whole = label as i32;
    let rest = label - f64::from(whole);
    whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5)
}

/// Numbers that a record adds to the sums of a window.
pub trait RecordFeature: fmt::Debug + Send + Sync {
    /// Number of sums.
    fn sum_count(&self) -> usize;

    /// Adds the record to `sums`, [`RecordFeature::sum_count`] of them. Sums saturate. What is added depends on the record alone.
    fn add(&self, record: &Record, sums: &mut [i128]);

    /// Everything that decides what is added, but for the domain, with a version of its own: processes that read for one another compare
    /// that.
    fn feature_identity(&self) -> serde_json::Value;
}

/// Kind of state that the windows of one release keep: public, and the same for every window and key.
#[derive(Clone, Debug)]
pub enum AccumulatorSpec {
    /// One histogram on a grid over all axes; labels are not looked at.
    Histogram(Nodes),
    /// Several histograms on one grid, over which each record is shared by its label.
    Tables { nodes: Nodes, by: TableLabel },
    /// One histogram an axis and class, each on a grid of one axis.
    Marginals(Vec<Nodes>),
    /// Sums over the records.
    Sums(Arc<dyn RecordFeature>),
    /// The first `most` records by event time, and of one event time by [`survival_rank`](super::open::survival_rank).
    Records { most: u32 },
    /// Totals of each key, under caps that hold over all keys of a unit: one accumulator for all keys.
    Keys(Arc<KeyCounting>),
    /// Number of users or records of each key that nobody listed: one accumulator for all keys.
    FoundKeys(Arc<FoundKeyCounting>),
    /// Histograms as those of another kind, to which each record of a user adds one part of as many as the user has records there.
    UserWeighted(Box<AccumulatorSpec>),
}

/// Sharing of a record over the tables of its window by its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLabel {
    /// A number: the part of it that lies above its least value in the second table, the rest in the first. A class above a threshold
    /// is wholly in the second.
    Number,
    /// One table for each of so many classes.
    Classes(u32),
}

impl TableLabel {
    /// Number of tables.
    pub fn table_count(self) -> usize {
        match self {
            TableLabel::Number => 2,
            TableLabel::Classes(count) => count as usize,
        }
    }
}

/// Content of one window for one key, once it is closed. `Debug` shows no data.
#[derive(Clone, PartialEq, Eq)]
pub enum Accumulator {
    Histogram(Histogram),
    Tables(Vec<Histogram>),
    /// Histograms of the negative class, then those of the positive one; in each the axes in order.
    Marginals([Vec<Histogram>; 2]),
    Sums(Vec<i128>),
    /// Sorted by the records themselves.
    Records(Vec<Record>),
    /// Totals of each declared key, in their order.
    Keys(CountedKeys),
    /// Numbers of each key that was there.
    FoundKeys(FoundKeyTotals),
}

impl AccumulatorSpec {
    /// Place of a record of the unit cube, to the accuracy that is kept.
    pub fn place(&self, x: &[f64; 3]) -> GridPoint {
        let mut place = GridPoint::default();
        for (axis, x) in x.iter().enumerate() {
            let coordinate = std::slice::from_mut(&mut place.0[axis]);
            self.write_coordinates(axis, std::slice::from_ref(x), coordinate);
        }
        place
    }

    /// Writes the coordinates of many records on one axis; nothing is written for an axis that the kind does not have.
    #[inline]
    pub(super) fn write_coordinates(&self, axis: usize, x: &[f64], coordinates: &mut [u32]) {
        match self {
            AccumulatorSpec::Histogram(nodes) | AccumulatorSpec::Tables { nodes, .. } => {
                nodes.write_coordinates(axis, x, coordinates);
            }
            AccumulatorSpec::Marginals(axes) => {
                if let Some(nodes) = axes.get(axis) {
                    nodes.write_coordinates(0, x, coordinates);
                }
            }
            AccumulatorSpec::UserWeighted(inner) => inner.write_coordinates(axis, x, coordinates),
            AccumulatorSpec::Sums(_)
            | AccumulatorSpec::Records { .. }
            | AccumulatorSpec::Keys(_)
            | AccumulatorSpec::FoundKeys(_) => {
                for (coordinate, x) in coordinates.iter_mut().zip(x) {
                    *coordinate = GridPoint::fine_coordinate(*x);
                }
            }
        }
    }

    /// The largest coordinate on `axis` that [`AccumulatorSpec::write_coordinates`] writes.
    pub(super) fn last_coordinate(&self, axis: usize) -> u32 {
        match self {
            AccumulatorSpec::Histogram(nodes) | AccumulatorSpec::Tables { nodes, .. } => {
                nodes.last_coordinate(axis)
            }
            AccumulatorSpec::Marginals(axes) => {
                axes.get(axis).map_or(0, |nodes| nodes.last_coordinate(0))
            }
            AccumulatorSpec::UserWeighted(inner) => inner.last_coordinate(axis),
            AccumulatorSpec::Sums(_)
            | AccumulatorSpec::Records { .. }
            | AccumulatorSpec::Keys(_)
            | AccumulatorSpec::FoundKeys(_) => GridPoint::FINE,
        }
    }

    /// Memory, about, that one window and key takes, in bytes; without that of users and of keys that nobody listed, of which nobody knows
    /// how many there are.
    pub fn window_bytes(&self) -> u64 {
        match self {
            AccumulatorSpec::Histogram(nodes) => histogram_bytes(nodes),
            AccumulatorSpec::Tables { nodes, by } => {
                histogram_bytes(nodes) * by.table_count() as u64
            }
            AccumulatorSpec::Marginals(axes) => 2 * axes.iter().map(histogram_bytes).sum::<u64>(),
            AccumulatorSpec::Sums(feature) => 16 * feature.sum_count() as u64,
            AccumulatorSpec::Records { most } => 64 * u64::from(*most),
            AccumulatorSpec::Keys(counting) => {
                let places = counting.grid.map_or(0, |grid| u64::from(grid.places));
                size_of::<KeyTotals>() as u64 + 8 * places
            }
            AccumulatorSpec::FoundKeys(_) => 0,
            AccumulatorSpec::UserWeighted(inner) => inner.window_bytes(),
        }
    }

    /// The accumulator of a window without records.
    pub fn empty(&self) -> Accumulator {
        match self {
            AccumulatorSpec::Histogram(nodes) => Accumulator::Histogram(Histogram::new(nodes)),
            AccumulatorSpec::Tables { nodes, by } => {
                Accumulator::Tables(vec![Histogram::new(nodes); by.table_count()])
            }
            AccumulatorSpec::Marginals(axes) => {
                let class: Vec<Histogram> = axes.iter().map(Histogram::new).collect();
                Accumulator::Marginals([class.clone(), class])
            }
            AccumulatorSpec::Sums(feature) => Accumulator::Sums(vec![0; feature.sum_count()]),
            AccumulatorSpec::Records { .. } => Accumulator::Records(Vec::new()),
            AccumulatorSpec::Keys(counting) => Accumulator::Keys(CountedKeys::new(counting)),
            AccumulatorSpec::FoundKeys(_) => Accumulator::FoundKeys(FoundKeyTotals::default()),
            AccumulatorSpec::UserWeighted(inner) => inner.empty(),
        }
    }

    /// The accumulator of a window with these records, all of them: `most` is for whoever knows their order of survival. Of counts by
    /// key each of them is another unit, in the first key; of keys that nobody listed there are none, because a record does not know its key.
    pub fn filled_accumulator(&self, records: impl IntoIterator<Item = Record>) -> Accumulator {
        let mut accumulator = self.empty();
        for record in records {
            self.add(&mut accumulator, record);
        }
        if let Accumulator::Records(records) = &mut accumulator {
            records.sort_unstable();
        }
        accumulator
    }

    /// A record for this kind of accumulator; `x` in the unit cube, `label` in `[-1, 1]`, or the place of its class in a list of several.
    pub fn record(&self, x: &[f64], label: f64) -> Record {
        if let AccumulatorSpec::UserWeighted(inner) = self {
            return inner.record(x, label);
        }
        let mut cube = [0.0; 3];
        for (cube, x) in cube.iter_mut().zip(x) {
            *cube = *x;
        }
        let label = match self {
            AccumulatorSpec::Tables {
                by: TableLabel::Classes(_),
                ..
            } => label.round() as i32,
            _ => whole_label(label),
        };
        Record {
            place: self.place(&cube),
            label,
        }
    }

    /// Adds one record to an accumulator of this kind.
    #[inline]
    pub(super) fn add(&self, accumulator: &mut Accumulator, record: Record) {
        match (self, accumulator) {
            (AccumulatorSpec::Histogram(nodes), Accumulator::Histogram(histogram)) => {
                histogram.deposit_record(nodes, record.place)
            }
            (
                AccumulatorSpec::Tables {
                    nodes,
                    by: TableLabel::Number,
                },
                Accumulator::Tables(tables),
            ) => {
                if let [low, high] = &mut tables[..] {
                    let above = i64::from(record.label.clamp(-LABEL, LABEL)) + i64::from(LABEL);
                    high.deposit_part(low, nodes, record.place, above.unsigned_abs());
                }
            }
            (
                AccumulatorSpec::Tables {
                    nodes,
                    by: TableLabel::Classes(_),
                },
                Accumulator::Tables(tables),
            ) => {
                let class = usize::try_from(record.label)
                    .ok()
                    .and_then(|class| tables.get_mut(class));
                if let Some(histogram) = class {
                    histogram.deposit_record(nodes, record.place);
                }
            }
            (AccumulatorSpec::Marginals(axes), Accumulator::Marginals(classes)) => {
                let class = &mut classes[usize::from(record.label > 0)];
                for ((nodes, histogram), coordinate) in axes.iter().zip(class).zip(record.place.0) {
                    histogram.deposit_record(nodes, GridPoint([coordinate, 0, 0]));
                }
            }
            (AccumulatorSpec::Sums(feature), Accumulator::Sums(sums)) => feature.add(&record, sums),
            (AccumulatorSpec::Records { .. }, Accumulator::Records(records)) => {
                records.push(record)
            }
            // Without a user a record counts whole.
            (AccumulatorSpec::UserWeighted(inner), accumulator) => inner.add(accumulator, record),
            // A record does not know its key, nor its unit.
            (AccumulatorSpec::Keys(counting), Accumulator::Keys(counted)) => {
                counted.add_lone_record(counting, record.label);
            }
            _ => {}
        }
    }
}

impl AccumulatorSpec {
    /// Adds one part of `count` of a record to histograms of this kind.
    pub(super) fn add_part(&self, accumulator: &mut Accumulator, record: Record, count: u64) {
        match (self, accumulator) {
            (AccumulatorSpec::Histogram(nodes), Accumulator::Histogram(histogram)) => {
                histogram.deposit_fraction(nodes, record.place, count);
            }
            (
                AccumulatorSpec::Tables {
                    nodes,
                    by: TableLabel::Number,
                },
                Accumulator::Tables(tables),
            ) => {
                if let [low, high] = &mut tables[..] {
                    let above = i64::from(record.label.clamp(-LABEL, LABEL)) + i64::from(LABEL);
                    let above = above.unsigned_abs();
                    high.deposit_part_of_fraction(low, nodes, record.place, above, count);
                }
            }
            (
                AccumulatorSpec::Tables {
                    nodes,
                    by: TableLabel::Classes(_),
                },
                Accumulator::Tables(tables),
            ) => {
                let class = usize::try_from(record.label).ok();
                if let Some(histogram) = class.and_then(|class| tables.get_mut(class)) {
                    histogram.deposit_fraction(nodes, record.place, count);
                }
            }
            _ => {}
        }
    }
}

fn histogram_bytes(nodes: &Nodes) -> u64 {
    8 * nodes.cells() as u64
}

impl Accumulator {
    /// Adds an accumulator of the same kind: that of the records of both.
    pub(super) fn join_accumulator(&mut self, other: Accumulator) {
        match (self, other) {
            (Accumulator::Histogram(ours), Accumulator::Histogram(theirs)) => {
                ours.add_histogram(&theirs)
            }
            (Accumulator::Tables(ours), Accumulator::Tables(theirs)) => {
                for (ours, theirs) in ours.iter_mut().zip(&theirs) {
                    ours.add_histogram(theirs);
                }
            }
            (Accumulator::Marginals(ours), Accumulator::Marginals(theirs)) => {
                for (ours, theirs) in ours.iter_mut().flatten().zip(theirs.iter().flatten()) {
                    ours.add_histogram(theirs);
                }
            }
            (Accumulator::Sums(ours), Accumulator::Sums(theirs)) => {
                for (ours, theirs) in ours.iter_mut().zip(theirs) {
                    *ours = ours.saturating_add(theirs);
                }
            }
            (Accumulator::Records(ours), Accumulator::Records(theirs)) => {
                ours.extend(theirs);
                ours.sort_unstable();
            }
            _ => {}
        }
    }

    /// The histogram; `None` where something else is kept.
    pub fn histogram(&self) -> Option<&Histogram> {
        if let Accumulator::Histogram(histogram) = self {
            Some(histogram)
        } else {
            None
        }
    }

    /// The histograms of the tables; none where something else is kept.
    pub fn tables(&self) -> &[Histogram] {
        match self {
            Accumulator::Histogram(histogram) => std::slice::from_ref(histogram),
            Accumulator::Tables(tables) => tables,
            _ => &[],
        }
    }

    /// The records, sorted; none where something else is kept.
    pub fn records(&self) -> &[Record] {
        if let Accumulator::Records(records) = self {
            records
        } else {
            &[]
        }
    }

    /// The totals of each key; none where something else is kept.
    pub fn key_totals(&self) -> &[KeyTotals] {
        if let Accumulator::Keys(counted) = self {
            &counted.totals
        } else {
            &[]
        }
    }

    /// Units by how many keys they have; none where that is not told.
    pub fn unit_counts(&self) -> &[u64] {
        if let Accumulator::Keys(counted) = self {
            &counted.units
        } else {
            &[]
        }
    }

    /// Numbers of each key that nobody listed; `None` where something else is kept.
    pub fn found_keys(&self) -> Option<&FoundKeyTotals> {
        if let Accumulator::FoundKeys(totals) = self {
            Some(totals)
        } else {
            None
        }
    }

    /// The sums; none where something else is kept.
    pub fn sums(&self) -> &[i128] {
        if let Accumulator::Sums(sums) = self {
            sums
        } else {
            &[]
        }
    }

    /// The histograms of the negative and of the positive class, one an axis; none where something else is kept.
    pub fn marginals(&self) -> [&[Histogram]; 2] {
        if let Accumulator::Marginals([negative, positive]) = self {
            [negative, positive]
        } else {
            [&[], &[]]
        }
    }
}

impl fmt::Debug for Accumulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Accumulator::Histogram(_) => "Accumulator(a histogram)",
            Accumulator::Tables(_) => "Accumulator(histograms of a label)",
            Accumulator::Marginals(_) => "Accumulator(histograms of two classes)",
            Accumulator::Sums(_) => "Accumulator(sums)",
            Accumulator::Records(_) => "Accumulator(records)",
            Accumulator::Keys(_) => "Accumulator(totals by key)",
            Accumulator::FoundKeys(_) => "Accumulator(numbers of keys that nobody listed)",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_rounded_as_the_standard_library_does(
            x in prop_oneof![-1.5..1.5_f64, (-9_i32..9).prop_map(|halves| f64::from(halves) / 2.0 / f64::from(LABEL)), any::<f64>()],
            last_bits in -2_i64..=2,
        ) {
            let x = f64::from_bits(x.to_bits().wrapping_add_signed(last_bits));
            prop_assert_eq!(whole_label(x), (x.clamp(-1.0, 1.0) * f64::from(LABEL)).round() as i32);
            let fine = ((x * f64::from(GridPoint::FINE)).round() as u32).min(GridPoint::FINE);
            prop_assert_eq!(GridPoint::fine_coordinate(x), fine);
        }
    }
}
