//! Readings of a table by key: users, records, sums, means, variances and quantiles of each key, each with its interval; all of it is
//! post-processing and costs no privacy.
//!
//! The formulas are those of `clients/FORMAT.md`, "Tables by key" and "Quantiles". An interval covers the noise. What the caps leave out of a unit is no
//! part of it: how much that is no row tells.

mod foreseen;
mod found_summary;
mod margin;
mod moments;

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::{Serialize, Serializer};

pub use self::found_summary::FoundSummary;
pub use self::margin::{KeyMargin, KeyShares, MarginRow};
use self::moments::PlacedRecords;
use super::description::{CountedQuantiles, CountedValue, TargetDescription};
use super::error::SynopsisError;
use super::released::Synopsis;
use crate::found_keys::FoundRow;
use crate::key_quantiles::{QuantilePart, RankGrid};
use crate::noise::{pointwise_factor, weighted_noise};
use crate::tables::{ConfidenceInterval, Estimate};
use crate::{Basis, KeyBasis, KeyStatistic, NoiseDistribution};

/// Number that can be read for each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyReading {
    /// Number of different users.
    Users,
    /// Number of records.
    Records,
    /// Sum of the values.
    Sum,
    /// Mean of the values.
    Mean,
    /// Variance of the values.
    Variance,
    /// Standard deviation of the values.
    Deviation,
    /// Number of values that quantiles are of: records, or users with the mean of theirs.
    Values,
    /// Least place that so many of the values lie up to.
    Quantile(QuantilePart),
}

impl KeyReading {
    /// Returns whether it is a mean of something over records, or the root of one: a ratio of noisy numbers.
    fn is_moment(self) -> bool {
        matches!(
            self,
            KeyReading::Mean | KeyReading::Variance | KeyReading::Deviation
        )
    }

    /// Name in tables and on the command line.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            KeyReading::Users => "users",
            KeyReading::Records => "records",
            KeyReading::Sum => "sum",
            KeyReading::Mean => "mean",
            KeyReading::Variance => "variance",
            KeyReading::Deviation => "deviation",
            KeyReading::Values => "values",
            KeyReading::Quantile(part) => return Cow::Owned(part.name()),
        })
    }
}

/// Its name.
impl Serialize for KeyReading {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

/// A table by key, ready to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedTable<'a> {
    basis: &'a KeyBasis,
    /// The columns of a key of several.
    key_columns: &'a [String],
    /// The least that a unit can add to a sum.
    least_summand: f64,
    /// One column after the other.
    values: &'a [f64],
    noise: KeyNoise<'a>,
    readings: Vec<KeyReading>,
    /// Half-width of each reading's interval, the same for every key; of a mean and a variance that of `low` alone, of quantiles that of all
    /// values.
    half_widths: Vec<f64>,
    /// Half-widths that each quantile is read with ([`KeyNoise::rank_half_widths`]); none of other readings.
    rank_half_widths: Vec<Vec<f64>>,
}

/// Probability with which an interval holds.
const LEVEL: f64 = 0.95;

/// The noise of the readings of a table by key, whatever its numbers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyNoise<'a> {
    pub basis: &'a KeyBasis,
    pub value: Option<&'a CountedValue>,
    pub quantiles: Option<&'a CountedQuantiles>,
    pub law: NoiseDistribution,
    /// Scale of the noise that the description gives, in its units.
    pub scale: f64,
}

/// The numbers of one key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyRow<'a> {
    pub key: &'a str,
    /// What is said of a key that nobody listed.
    #[serde(flatten)]
    pub found: Option<FoundRow>,
    /// One estimate for each of [`CountedTable::readings`].
    pub estimates: Vec<Estimate>,
}

impl KeyRow<'_> {
    /// The key was found in this window: its number is selected to be above the threshold.
    fn is_new(&self) -> bool {
        self.found.is_some_and(|found| found.is_new)
    }
}

/// The keys with the largest values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TopKeys<'a> {
    pub rows: Vec<KeyRow<'a>>,
    /// The noise may make the last of them larger than the first one that is left out.
    pub is_last_unclear: bool,
}

impl Synopsis {
    /// The table by key.
    ///
    /// # Errors
    ///
    /// If the synopsis holds none.
    pub fn key_table(&self) -> Result<CountedTable<'_>, SynopsisError> {
        let description = &self.description;
        let Basis::Keys(basis) = &description.basis else {
            return Err(SynopsisError::NoKeys);
        };
        let TargetDescription::Counts(counts) = &description.target else {
            return Err(SynopsisError::NoKeys);
        };
        let noise = KeyNoise {
            basis,
            value: counts.value.as_ref(),
            quantiles: counts.quantiles.as_ref(),
            law: description.noise.law,
            scale: description.noise.scale,
        };
        let of_value = counts.value.as_ref().map(|value| value.min);
        let of_user = counts.per_user.as_ref().map(|range| range.min);
        let least_summand = of_value
            .unwrap_or(f64::NEG_INFINITY)
            .max(of_user.unwrap_or(f64::NEG_INFINITY));
        Ok(CountedTable {
            key_columns: &description.key_columns,
            least_summand,
            ..CountedTable::new(noise, &self.values)
        })
    }
}

impl KeyNoise<'_> {
    /// The readings that the columns allow: `low` and `high` together are records, a sum and a mean, and with `middle` a variance too.
    pub fn readings(&self) -> Vec<KeyReading> {
        let mut readings = Vec::new();
        if let Some(quantiles) = self.quantiles {
            let parts = quantiles.parts.iter();
            readings.extend(
                parts.filter_map(|part| QuantilePart::new(*part).map(KeyReading::Quantile)),
            );
            readings.push(KeyReading::Values);
        }
        for column in &self.basis.columns {
            match column.statistic {
                KeyStatistic::Users => readings.push(KeyReading::Users),
                KeyStatistic::Records => readings.push(KeyReading::Records),
                KeyStatistic::Sum => readings.push(KeyReading::Sum),
                KeyStatistic::Low => {
                    readings.extend([KeyReading::Records, KeyReading::Sum, KeyReading::Mean]);
                }
                KeyStatistic::Middle => {
                    readings.extend([KeyReading::Variance, KeyReading::Deviation]);
                }
                // Quantiles are read from all ranges together.
                KeyStatistic::High | KeyStatistic::Range(_) => {}
            }
        }
        readings
    }

    /// Half-width of a reading, 95 %: of its own column, or of the numbers between both ends of the value; of a mean and a variance that of
    /// one of these numbers, of a quantile that of the number of all values. Infinite without such columns.
    pub fn half_width(&self, reading: KeyReading) -> f64 {
        if let KeyReading::Values | KeyReading::Quantile(_) = reading {
            let length = self.grid().map(|grid| grid.length_of_all());
            return length.map_or(f64::INFINITY, |length| length * self.rank_unit());
        }
        match self.weights_of(reading) {
            Some(weights) => weighted_noise(self.law, self.scale, &weights).half_width,
            None => f64::INFINITY,
        }
    }

    /// Half-width of the difference of a reading between two keys, 95 %; of means and variances that of one of the numbers that they
    /// come of.
    pub fn difference_half_width(&self, reading: KeyReading) -> f64 {
        if reading == KeyReading::Values {
            return 2.0_f64.sqrt() * self.half_width(reading);
        }
        match self.weights_of(reading) {
            Some(weights) => {
                let both = [weights.clone(), weights].concat();
                weighted_noise(self.law, self.scale, &both).half_width
            }
            None => f64::INFINITY,
        }
    }

    /// Half-widths, 95 %, of (values up to a place) - `part` x (all values), for each place; none without quantiles.
    pub fn rank_half_widths(&self, part: QuantilePart) -> Vec<f64> {
        let Some(grid) = self.grid() else {
            return Vec::new();
        };
        let places = 0..grid.places as usize;
        places
            .map(|place| grid.noise_length(place, part.fraction()) * self.rank_unit())
            .collect()
    }

    /// The largest of [`KeyNoise::rank_half_widths`]: so many values may lie between a quantile and the one that is told.
    pub fn rank_half_width(&self, part: QuantilePart) -> f64 {
        let widths = self.rank_half_widths(part);
        widths.into_iter().fold(0.0, f64::max)
    }

    fn grid(&self) -> Option<RankGrid> {
        self.quantiles.map(|quantiles| quantiles.grid)
    }

    /// Half-width of noise with weights of length 1 on counts of ranges, whatever the weights are.
    fn rank_unit(&self) -> f64 {
        let columns = &self.basis.columns;
        let unit = columns.first().map_or(f64::INFINITY, |column| column.unit);
        pointwise_factor(self.law, columns.len()) * self.scale * unit
    }

    /// Units of noise that a reading adds up: that of its own column, or those of all records by their place in the value.
    fn weights_of(&self, reading: KeyReading) -> Option<Vec<f64>> {
        let own_column = match reading {
            KeyReading::Users => self.unit_of(KeyStatistic::Users),
            KeyReading::Records => self.unit_of(KeyStatistic::Records),
            KeyReading::Sum => self.unit_of(KeyStatistic::Sum),
            KeyReading::Mean => self.unit_of(KeyStatistic::Low),
            KeyReading::Variance | KeyReading::Deviation => {
                return self.unit_of(KeyStatistic::Middle).map(|unit| vec![unit]);
            }
            KeyReading::Values | KeyReading::Quantile(_) => return None,
        };
        if let Some(unit) = own_column {
            return Some(vec![unit]);
        }
        let unit = self.unit_of(KeyStatistic::Low)?;
        let weights = self.placed_weights(reading).into_iter();
        Some(weights.map(|weight| weight * unit).collect())
    }

    /// Columns of the records by their place in the value, from its lower end to its upper one.
    fn placed_columns(&self) -> &'static [KeyStatistic] {
        match self.basis.has_middle() {
            true => &[KeyStatistic::Low, KeyStatistic::Middle, KeyStatistic::High],
            false => &[KeyStatistic::Low, KeyStatistic::High],
        }
    }

    /// Weights of [`KeyNoise::placed_columns`] in a reading of all of them.
    fn placed_weights(&self, reading: KeyReading) -> Vec<f64> {
        match (reading, self.value, self.placed_columns().len()) {
            (KeyReading::Sum, Some(value), 3) => {
                vec![value.min, f64::midpoint(value.min, value.max), value.max]
            }
            (KeyReading::Sum, Some(value), _) => vec![value.min, value.max],
            (_, _, columns) => vec![1.0; columns],
        }
    }

    /// Unit of the noise of a column; `None` without the column.
    fn unit_of(&self, statistic: KeyStatistic) -> Option<f64> {
        let mut columns = self.basis.columns.iter();
        let column = columns.find(|column| column.statistic == statistic)?;
        Some(column.unit)
    }
}

impl<'a> CountedTable<'a> {
    fn new(noise: KeyNoise<'a>, values: &'a [f64]) -> Self {
        let readings = noise.readings();
        let mut half_widths = Vec::with_capacity(readings.len());
        let mut rank_half_widths = Vec::with_capacity(readings.len());
        for reading in &readings {
            half_widths.push(noise.half_width(*reading));
            rank_half_widths.push(match reading {
                KeyReading::Quantile(part) => noise.rank_half_widths(*part),
                _ => Vec::new(),
            });
        }
        CountedTable {
            basis: noise.basis,
            key_columns: &[],
            least_summand: noise.value.map_or(f64::NEG_INFINITY, |value| value.min),
            values,
            noise,
            readings,
            half_widths,
            rank_half_widths,
        }
    }

    /// The readings of each key, in the order of the columns.
    pub fn readings(&self) -> &[KeyReading] {
        &self.readings
    }

    /// The keys, in the order of the rows.
    pub fn keys(&self) -> &'a [String] {
        &self.basis.keys
    }

    /// The numbers of all keys.
    pub fn rows(&self) -> Vec<KeyRow<'a>> {
        let mut rows = Vec::with_capacity(self.basis.keys.len());
        for place in 0..self.basis.keys.len() {
            rows.push(self.row(place));
        }
        rows
    }

    /// The numbers of one key.
    ///
    /// # Errors
    ///
    /// If the table does not have the key.
    pub fn row_of(&self, key: &str) -> Result<KeyRow<'a>, SynopsisError> {
        match self.basis.keys.iter().position(|known| known == key) {
            Some(place) => Ok(self.row(place)),
            None => Err(self.missing_key(key)),
        }
    }

    /// The keys with the largest values of a reading, the largest first; `None` if the table does not have the reading. Means that the
    /// noise leaves unknown come last.
    pub fn top_keys(&self, reading: KeyReading, count: usize) -> Option<TopKeys<'a>> {
        let column = self.readings.iter().position(|known| *known == reading)?;
        let mut rows = self.rows();
        rows.sort_by(|one, other| largest_first(&one.estimates[column], &other.estimates[column]));
        let first_left_out = rows.get(count).cloned();
        rows.truncate(count);
        let is_last_unclear = match (rows.last(), &first_left_out) {
            (Some(last), Some(next)) => !self.is_clearly_larger(column, last, next),
            _ => false,
        };
        Some(TopKeys {
            rows,
            is_last_unclear,
        })
    }

    /// Tests that the noise does not explain that one key has more than another: by the noise of the difference, or of means,
    /// variances, quantiles and new keys, of which one noise is not as another, by their intervals.
    fn is_clearly_larger(&self, column: usize, one: &KeyRow<'_>, other: &KeyRow<'_>) -> bool {
        let reading = self.readings[column];
        let is_by_interval = reading.is_moment()
            || matches!(reading, KeyReading::Quantile(_))
            || one.is_new()
            || other.is_new();
        let [one, other] = [one, other].map(|row| row.estimates[column]);
        if !is_by_interval {
            return one.value - other.value > self.noise.difference_half_width(reading);
        }
        match (one.interval, other.interval) {
            (Some(one), Some(other)) => one.lower > other.upper,
            _ => false,
        }
    }

    fn row(&self, place: usize) -> KeyRow<'a> {
        let mut estimates = Vec::with_capacity(self.readings.len());
        let up_to = self.values_up_to(place);
        for (at, reading) in self.readings.iter().enumerate() {
            let half_width = self.half_widths[at];
            estimates.push(match reading {
                KeyReading::Quantile(part) => {
                    self.quantile(&up_to, *part, &self.rank_half_widths[at], half_width)
                }
                KeyReading::Values => {
                    let value = up_to.last().copied().unwrap_or(f64::NAN);
                    Estimate {
                        value,
                        interval: Some(ConfidenceInterval::around(value, half_width)),
                    }
                }
                _ => self.estimate(*reading, place, half_width),
            });
        }
        KeyRow {
            key: &self.basis.keys[place],
            found: self.found_row(place),
            estimates,
        }
    }

    fn estimate(&self, reading: KeyReading, place: usize, half_width: f64) -> Estimate {
        if reading.is_moment() {
            return self.moment_over(reading, &[place], half_width);
        }
        let value = self.value(reading, place);
        let interval = match self.interval_of_new(value, place) {
            Some(interval) => interval,
            None => ConfidenceInterval::around(value, half_width),
        };
        Estimate {
            value,
            interval: Some(interval),
        }
    }

    /// The number of a key that is no ratio.
    fn value(&self, reading: KeyReading, place: usize) -> f64 {
        let own_column = match reading {
            KeyReading::Users => self.number(KeyStatistic::Users, place),
            KeyReading::Records => self.number(KeyStatistic::Records, place),
            KeyReading::Sum => self.number(KeyStatistic::Sum, place),
            KeyReading::Mean
            | KeyReading::Variance
            | KeyReading::Deviation
            | KeyReading::Values
            | KeyReading::Quantile(_) => None,
        };
        own_column.unwrap_or_else(|| {
            let weights = self.noise.placed_weights(reading);
            let numbers = self.placed_numbers(&[place]);
            let weighted = weights.iter().zip(numbers);
            weighted.map(|(weight, number)| weight * number).sum()
        })
    }

    /// A mean or a variance of the records of these keys together; `half_width` is that of the noise on one of their numbers.
    fn moment_over(&self, reading: KeyReading, places: &[usize], half_width: f64) -> Estimate {
        let records = PlacedRecords {
            numbers: self.placed_numbers(places),
            half_width,
        };
        if reading == KeyReading::Mean {
            return records.mean().mapped(|share| self.value_at(share));
        }
        let width = self.value_at(1.0) - self.value_at(0.0);
        let variance = records.variance();
        match reading {
            KeyReading::Deviation => variance.mapped(|square| square.sqrt() * width),
            _ => variance.mapped(|square| square * width * width),
        }
    }

    /// The numbers of [`KeyNoise::placed_columns`], summed over these keys; not known where there are none.
    fn placed_numbers(&self, places: &[usize]) -> Vec<f64> {
        let columns = self.noise.placed_columns().iter();
        columns
            .map(|statistic| {
                let numbers = places.iter().map(|place| self.number(*statistic, *place));
                numbers.map(|number| number.unwrap_or(f64::NAN)).sum()
            })
            .collect()
    }

    /// Numbers of values of a key up to each place; none without quantiles.
    fn values_up_to(&self, place: usize) -> Vec<f64> {
        let Some(grid) = self.noise.grid() else {
            return Vec::new();
        };
        let rows = self.basis.keys.len().max(1);
        let counts: Vec<f64> = self
            .values
            .iter()
            .skip(place)
            .step_by(rows)
            .copied()
            .collect();
        grid.counts_up_to(&counts)
    }

    /// The quantile of a key, and all places but those that are certainly too low or too high.
    fn quantile(
        &self,
        up_to: &[f64],
        part: QuantilePart,
        half_widths: &[f64],
        of_all: f64,
    ) -> Estimate {
        let Some(grid) = self.noise.grid() else {
            return Estimate {
                value: f64::NAN,
                interval: None,
            };
        };
        let found = grid.quantile(up_to, part.fraction(), half_widths, of_all);
        let interval = found.interval.map(|[lower, upper]| ConfidenceInterval {
            lower: self.value_of_place(grid, lower),
            upper: self.value_of_place(grid, upper),
        });
        Estimate {
            value: found
                .estimate
                .map_or(f64::NAN, |place| self.value_of_place(grid, place)),
            interval,
        }
    }

    /// The value at a place.
    fn value_of_place(&self, grid: RankGrid, place: usize) -> f64 {
        let (min, max) = match self.noise.value {
            Some(CountedValue { min, max, .. }) => (*min, *max),
            None => (0.0, 1.0),
        };
        let last = f64::from(grid.places - 1);
        let place = place as f64;
        // Whole numbers stay whole where a step is one.
        (min * (last - place) + max * place) / last
    }

    /// The value so far on the way from its lower end to its upper one.
    fn value_at(&self, share: f64) -> f64 {
        match self.noise.value {
            Some(CountedValue { min, max, .. }) => min + (max - min) * share,
            None => share,
        }
    }

    /// The number of a column and key; `None` without the column.
    fn number(&self, statistic: KeyStatistic, place: usize) -> Option<f64> {
        let mut columns = self.basis.columns.iter();
        let column = columns.position(|column| column.statistic == statistic)?;
        self.values
            .get(column * self.basis.keys.len() + place)
            .copied()
    }
}

/// Order of two readings by size, the largest first; those that are unknown are last, as they come.
fn largest_first(one: &Estimate, other: &Estimate) -> Ordering {
    match (one.interval, other.interval) {
        (Some(_), Some(_)) => other.value.total_cmp(&one.value),
        (one, other) => one.is_none().cmp(&other.is_none()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyColumn;

    static VALUE: CountedValue = CountedValue {
        column: String::new(),
        min: -10.0,
        max: 30.0,
    };

    /// A table with the numbers of records at both ends of a value, under Laplace noise of scale 1.
    struct EndsTable {
        basis: KeyBasis,
        values: Vec<f64>,
    }

    impl EndsTable {
        fn new(rows: &[[f64; 2]]) -> Self {
            let unit = 1.0;
            let columns = [KeyStatistic::Low, KeyStatistic::High]
                .map(|statistic| KeyColumn { statistic, unit });
            let low = rows.iter().map(|row| row[0]);
            let high = rows.iter().map(|row| row[1]);
            EndsTable {
                basis: KeyBasis {
                    found: None,
                    keys: (0..rows.len()).map(|place| place.to_string()).collect(),
                    columns: columns.to_vec(),
                    units: None,
                },
                values: low.chain(high).collect(),
            }
        }

        fn read(&self) -> CountedTable<'_> {
            let noise = KeyNoise {
                basis: &self.basis,
                value: Some(&VALUE),
                quantiles: None,
                law: NoiseDistribution::DiscreteLaplace,
                scale: 1.0,
            };
            CountedTable::new(noise, &self.values)
        }
    }

    fn keys_of<'a>(top: &TopKeys<'a>) -> Vec<&'a str> {
        top.rows.iter().map(|row| row.key).collect()
    }

    #[test]
    fn without_records_there_is_no_mean() {
        let table = EndsTable::new(&[[-3.0, -1.0], [1.0, -1.0], [300.0, 100.0]]);
        let rows = table.read().rows();
        for (row, is_known) in rows.iter().zip([false, false, true]) {
            let mean = row.estimates[2];
            assert_eq!(mean.value.is_finite(), is_known, "{row:?}");
            assert_eq!(mean.interval.is_some(), is_known, "{row:?}");
        }
        assert_eq!(rows[2].estimates[2].value, 0.0);
    }

    #[test]
    fn unknown_means_come_last_and_means_that_are_near_cannot_be_told_apart() {
        let near = EndsTable::new(&[[0.5, 3.0], [300.0, 100.0], [305.0, 100.0], [-1.0, 0.0]]);
        let near = near.read();
        let top = near.top_keys(KeyReading::Mean, 2).expect("means");
        assert_eq!(keys_of(&top), ["1", "2"]);
        // What the noise may be all of tells nothing of its place.
        assert!(top.is_last_unclear);
        assert!(
            near.top_keys(KeyReading::Mean, 1)
                .expect("means")
                .is_last_unclear
        );
        // The means are as far apart as the ends of the value: no number of records says so.
        let apart = EndsTable::new(&[[0.0, 900.0], [900.0, 0.0]]);
        let top = apart.read().top_keys(KeyReading::Mean, 1).expect("means");
        assert_eq!(keys_of(&top), ["0"]);
        assert!(!top.is_last_unclear);
        assert!(
            apart
                .read()
                .top_keys(KeyReading::Records, 1)
                .expect("records")
                .is_last_unclear
        );
    }
}
