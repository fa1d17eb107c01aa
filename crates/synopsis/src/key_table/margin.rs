//! Margins of a table by key, and shares in them: sums over keys, which cost no privacy.
//!
//! Records and sums of different keys add up, and so does their noise, which is independent: `n` keys have `n` times the variance of one.
//! Users do not: a user may be in several keys, and how many are is in no number. The formulas are those of `clients/FORMAT.md`,
//! "Margins and shares".

use std::borrow::Cow;
use std::collections::HashMap;

use super::{CountedTable, KeyNoise, KeyReading};
use crate::NoiseDistribution;
use crate::error::SynopsisError;
use crate::key_parts;
use crate::noise::weighted_noise;
use crate::tables::{ConfidenceInterval, Estimate, fieller_interval};

/// Most keys of a margin whose noise is that of the exact law of their sum. Of more keys it is the law of so many, as wide as more are:
/// the more keys, the nearer is its quantile to that of the normal law, from above.
const EXACT_TERMS: usize = 64;

/// Sums over the keys that have the same parts in some columns.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyMargin<'a> {
    /// The columns; all others are summed over.
    pub columns: Vec<&'a str>,
    /// The readings that add up: some of records, sum, mean, variance and deviation.
    pub readings: Vec<KeyReading>,
    /// A row for each combination of parts, in the order of the first key that has it.
    pub rows: Vec<MarginRow<'a>>,
}

/// Sums over the keys with these parts.
#[derive(Clone, Debug, PartialEq)]
pub struct MarginRow<'a> {
    /// One for each of [`KeyMargin::columns`].
    pub parts: Vec<Cow<'a, str>>,
    /// Number of keys that are summed.
    pub keys: usize,
    /// One for each of [`KeyMargin::readings`].
    pub estimates: Vec<Estimate>,
}

/// Share of each key in the sum over all keys that have the same parts in some columns.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyShares<'a> {
    /// The columns; where there are none, shares are those in all keys.
    pub columns: Vec<&'a str>,
    /// The readings that have shares: records, and a sum of values none of which is below 0.
    pub readings: Vec<KeyReading>,
    /// One for each key of the table, in its order, and in it one for each of [`KeyShares::readings`].
    pub rows: Vec<Vec<Estimate>>,
}

/// Places of the keys of a table that have the same parts in some columns.
struct KeyGroup<'a> {
    parts: Vec<Cow<'a, str>>,
    places: Vec<usize>,
}

impl<'a> CountedTable<'a> {
    /// The columns that keys have a part of each of; none where a key is one column.
    pub fn key_columns(&self) -> &'a [String] {
        self.key_columns
    }

    /// The parts of a key, one for each of [`CountedTable::key_columns`].
    pub fn parts_of<'k>(&self, key: &'k str) -> Vec<Cow<'k, str>> {
        match self.key_columns.len() {
            0 => Vec::new(),
            columns => key_parts::split_key(key, columns).unwrap_or_default(),
        }
    }

    /// Sums over all keys with the same parts in these columns; over all keys where there are none. Intervals are 95 %, each for itself;
    /// those of a mean and a variance come of Fieller's.
    ///
    /// # Errors
    ///
    /// If keys have no such column, nobody listed them, or the table has nothing that adds up.
    pub fn margin(&self, columns: &[&str]) -> Result<KeyMargin<'a>, SynopsisError> {
        let places = self.places_of_columns(columns)?;
        self.check_has_all_keys()?;
        let readings = self.readings.iter().copied();
        let readings: Vec<_> = readings.filter(|reading| reading.adds_up()).collect();
        if readings.is_empty() {
            return Err(SynopsisError::NothingAddsUp);
        }
        let mut widths = MarginWidths::new(self.noise);
        let mut rows = Vec::new();
        for KeyGroup { parts, places } in self.groups(&places) {
            let mut estimates = Vec::with_capacity(readings.len());
            for reading in &readings {
                estimates.push(self.sum_over(*reading, &places, &mut widths));
            }
            rows.push(MarginRow {
                parts,
                keys: places.len(),
                estimates,
            });
        }
        Ok(KeyMargin {
            columns: self.named(&places),
            readings,
            rows,
        })
    }

    /// The share of each key in the sum over the keys that have its parts in these columns, in all keys where there are none; 95 %
    /// intervals of Fieller, unknown where the noise may be all of the sum.
    ///
    /// # Errors
    ///
    /// If keys have no such column, nobody listed them, or the table has nothing that has shares.
    pub fn shares(&self, columns: &[&str]) -> Result<KeyShares<'a>, SynopsisError> {
        let places = self.places_of_columns(columns)?;
        self.check_has_all_keys()?;
        let readings = self.readings.iter().copied();
        let readings: Vec<_> = readings
            .filter(|reading| self.has_shares(*reading))
            .collect();
        if readings.is_empty() {
            return Err(SynopsisError::NoShares);
        }
        let mut rows = vec![Vec::with_capacity(readings.len()); self.basis.keys.len()];
        for group in self.groups(&places) {
            for reading in &readings {
                for (place, share) in group.places.iter().zip(self.shares_in(*reading, &group)) {
                    rows[*place].push(share);
                }
            }
        }
        Ok(KeyShares {
            columns: self.named(&places),
            readings,
            rows,
        })
    }

    /// Returns whether a share is one of a whole: records are, and sums of values none of which is below 0.
    fn has_shares(&self, reading: KeyReading) -> bool {
        match reading {
            KeyReading::Records => true,
            KeyReading::Sum => self.least_summand >= 0.0,
            _ => false,
        }
    }

    /// Places of columns among those of the keys.
    fn places_of_columns(&self, columns: &[&str]) -> Result<Vec<usize>, SynopsisError> {
        let mut places = Vec::with_capacity(columns.len());
        for column in columns {
            match self.key_columns.iter().position(|known| known == column) {
                Some(place) => places.push(place),
                None => {
                    return Err(SynopsisError::NoSuchKeyColumn {
                        column: (*column).to_owned(),
                        known: self.key_columns.join(", "),
                    });
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }

    fn named(&self, places: &[usize]) -> Vec<&'a str> {
        let names = places
            .iter()
            .filter_map(|place| self.key_columns.get(*place));
        names.map(String::as_str).collect()
    }

    /// The keys by their parts in these columns, in the order of the first of each.
    fn groups(&self, columns: &[usize]) -> Vec<KeyGroup<'a>> {
        let mut groups: Vec<KeyGroup<'a>> = Vec::new();
        let mut known: HashMap<Vec<Cow<'a, str>>, usize> = HashMap::new();
        for (place, key) in self.basis.keys.iter().enumerate() {
            let all = self.parts_of(key);
            let own = columns.iter().filter_map(|column| all.get(*column));
            let parts: Vec<Cow<'a, str>> = own.cloned().collect();
            let group = *known.entry(parts.clone()).or_insert_with(|| {
                groups.push(KeyGroup {
                    parts,
                    places: Vec::new(),
                });
                groups.len() - 1
            });
            groups[group].places.push(place);
        }
        groups
    }

    fn sum_over(
        &self,
        reading: KeyReading,
        places: &[usize],
        widths: &mut MarginWidths<'_>,
    ) -> Estimate {
        let keys = places.len();
        let half_width = widths.half_width(reading, keys);
        if reading.is_moment() {
            return self.moment_over(reading, places, half_width);
        }
        let value = places.iter().map(|place| self.value(reading, *place)).sum();
        Estimate {
            value,
            interval: Some(ConfidenceInterval::around(value, half_width)),
        }
    }

    /// The shares of the keys of a group. The noise of a key is part of that of the whole: with the variance of a key as the unit their
    /// covariance is 1, and the variance of the whole the number of keys. The quantile is that of one key, which no sum of several exceeds
    /// in deviations.
    fn shares_in(&self, reading: KeyReading, group: &KeyGroup<'a>) -> Vec<Estimate> {
        let of_keys: Vec<f64> = group
            .places
            .iter()
            .map(|place| self.value(reading, *place))
            .collect();
        let whole: f64 = of_keys.iter().sum();
        let keys = of_keys.len() as f64;
        let half_width = self.noise.half_width(reading);
        let mut shares = Vec::with_capacity(of_keys.len());
        for value in of_keys {
            let interval = fieller_interval(value, whole, half_width, [1.0, 1.0, keys]);
            let share = if whole > 0.0 {
                (value / whole).clamp(0.0, 1.0)
            } else {
                f64::NAN
            };
            shares.push(Estimate {
                value: share,
                interval: interval.map(|interval| interval.clamped(0.0, 1.0)),
            });
        }
        shares
    }
}

impl KeyReading {
    /// Returns whether the numbers of several keys make that of all of them: those of users do not, as a user may be in several keys.
    pub fn adds_up(self) -> bool {
        self.is_moment() || matches!(self, KeyReading::Records | KeyReading::Sum)
    }
}

/// Half-widths of sums over keys, 95 %; of means and variances those of the numbers at one end of the value.
struct MarginWidths<'a> {
    noise: KeyNoise<'a>,
    known: HashMap<(KeyReading, usize), f64>,
}

impl<'a> MarginWidths<'a> {
    fn new(noise: KeyNoise<'a>) -> Self {
        MarginWidths {
            noise,
            known: HashMap::new(),
        }
    }

    fn half_width(&mut self, reading: KeyReading, keys: usize) -> f64 {
        let noise = self.noise;
        *self
            .known
            .entry((reading, keys))
            .or_insert_with(|| noise.margin_half_width(reading, keys))
    }
}

impl KeyNoise<'_> {
    /// Half-width of the sum of a reading over so many keys, 95 %; of means and variances that of the numbers at one end of the value. Infinite without
    /// the columns that it is read from.
    pub fn margin_half_width(&self, reading: KeyReading, keys: usize) -> f64 {
        let Some(weights) = self.weights_of(reading) else {
            return f64::INFINITY;
        };
        // The normal law has one quantile, whatever the number of terms.
        let most = match self.law {
            NoiseDistribution::DiscreteGaussian => 1,
            _ => EXACT_TERMS,
        };
        let terms = keys.clamp(1, most);
        let more = keys.max(1) as f64 / terms as f64;
        weighted_noise(self.law, self.scale, &weights.repeat(terms)).half_width * more.sqrt()
    }
}
